// The layers of two plans side by side, where they compute the same nodes or values.
#ifndef ASSAY_CLI_VERBS_BENCH_BENCH_LAYERS_H_
#define ASSAY_CLI_VERBS_BENCH_BENCH_LAYERS_H_

#include <stdio.h>

#include "io/json.h"
#include "plan/plan.h"

typedef struct bench_layer_times {
  const assay_plan_t* plan;
  const double* seconds;  // by layer, of all runs together
  size_t runs;
} bench_layer_times_t;

// Layers of either plan that share nodes or values with each other, and with no further layer.
typedef struct bench_layer_row {
  double milliseconds[2];  // of a run
  size_t n[2];             // layers; 0: the other plan has nothing of the kind
  assay_str_t names[2];    // " + " between
} bench_layer_row_t;

typedef struct bench_layer_rows {
  bench_layer_row_t* at;  // those that take the longest first
  size_t n;
} bench_layer_rows_t;

// Layers match by their names, by the names of the nodes that they stand for in the models as they
// were given, and by the names of the values that they make.
assay_status_t bench_layer_rows_make(const bench_layer_times_t times[2],
                                     bench_layer_rows_t* out) ASSAY_MUST_USE;
void bench_layer_rows_deinit(bench_layer_rows_t* rows);

void bench_layer_rows_print(const bench_layer_rows_t* rows, FILE* out);
json_t* bench_layer_rows_json(const bench_layer_rows_t* rows);  // NULL: no memory

void bench_sort(double* x, size_t n);  // ascending

#endif  // ASSAY_CLI_VERBS_BENCH_BENCH_LAYERS_H_
