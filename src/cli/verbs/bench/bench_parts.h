// The parts of a run's time on a device, by its events: in runs of their own, since events take
// time, too.
#ifndef ASSAY_CLI_VERBS_BENCH_BENCH_PARTS_H_
#define ASSAY_CLI_VERBS_BENCH_BENCH_PARTS_H_

#include <assay/context.h>

#include "cli/verbs/bench/bench_source.h"
#include "io/json.h"

typedef struct bench_parts {
  bool known;               // false: the host, whose runs have no parts
  assay_run_times_t times;  // medians, in microseconds
} bench_parts_t;

assay_status_t bench_parts_measure(const bench_source_t* source, assay_executor_t* e,
                                   bench_parts_t* out) ASSAY_MUST_USE;
void bench_parts_print(const bench_parts_t* p);  // a line; nothing where they are not known
json_t* bench_parts_put(json_t* to, const bench_parts_t* p);

#endif  // ASSAY_CLI_VERBS_BENCH_BENCH_PARTS_H_
