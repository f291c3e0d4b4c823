// Runs, and when each began and ended.
#ifndef ASSAY_FRONTENDS_TRTEXEC_MEASURE_H_
#define ASSAY_FRONTENDS_TRTEXEC_MEASURE_H_

#include "frontends/trtexec/bindings.h"

// Milliseconds since the runs of all streams began, and what a device's events say of a run's
// parts. A CPU transfers nothing: what comes in is there at start_compute, and what goes out at
// end_compute.
typedef struct trt_run {
  double enqueue, start_compute, end_compute;
  double enqueue_ms, h2d_ms, compute_ms, d2h_ms;
} trt_run_t;

typedef struct trt_trace {
  trt_run_t* runs;  // of all streams, by their start
  size_t n_runs;
  size_t n_warm_up;
  double warm_up_ms;
  float* layer_ms;  // by run of the profile and layer; NULL: not profiled
  size_t n_profiled, n_layers;
  int profile;               // --useProfile
  assay_context_t* context;  // of the first stream, after its last run
} trt_trace_t;

assay_status_t trt_measure(const trt_job_t* j, const trt_inputs_t* in, bool profile,
                           trt_trace_t* out) ASSAY_MUST_USE;
void trt_trace_deinit(trt_trace_t* t);

// The trace and the summary (report.c); times of the layers (profile.c).
assay_status_t trt_report(const trt_job_t* j, const trt_trace_t* t) ASSAY_MUST_USE;
assay_status_t trt_report_profile(const trt_job_t* j, const trt_trace_t* t) ASSAY_MUST_USE;
// Element max(n - 1 - trunc((1 - p/100) n), 0) of sorted values; the middle, or the mean of the
// two middle ones.
double trt_percentile(const double* sorted, size_t n, double p);
double trt_median(const double* sorted, size_t n);
int trt_ascending(const void* a, const void* b);  // of doubles, for qsort

#endif  // ASSAY_FRONTENDS_TRTEXEC_MEASURE_H_
