// assay bench A B: two models or plans, measured in turns.
#ifndef ASSAY_CLI_VERBS_BENCH_BENCH_PAIR_H_
#define ASSAY_CLI_VERBS_BENCH_BENCH_PAIR_H_

#include "cli/verbs/engine_source.h"
#include "cli/verbs/reading.h"

typedef struct bench_pair_args {
  const cli_engine_args_t* engine;  // of A; but for the model, of B, too
  const char* model_b;
  const opt_list_t* inputs;
  const cli_reading_args_t* reading;
  double seconds, warm_up;
  int threads;
  bool layers;
  const char* json;  // NULL: none
} bench_pair_args_t;

// Measures and prints; returns an exit code.
int bench_pair_run(const bench_pair_args_t* a);

#endif  // ASSAY_CLI_VERBS_BENCH_BENCH_PAIR_H_
