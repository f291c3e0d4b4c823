// What `assay bench` has measured, for viewers of traces (chrome://tracing, Perfetto).
#ifndef ASSAY_CLI_VERBS_BENCH_BENCH_TRACE_H_
#define ASSAY_CLI_VERBS_BENCH_BENCH_TRACE_H_

#include "runtime/executor.h"

typedef struct bench_event {
  uint32_t run, layer;
  int64_t start_ns, duration_ns;  // since measuring began
} bench_event_t;

// The layers that a context ran, in order; whole runs.
typedef struct bench_lane {
  const assay_executor_t* executor;
  bench_event_t* events;
  size_t n, cap;
} bench_lane_t;

// Writes trace-event JSON: a lane is a thread, with an event for each run and one for each layer.
assay_status_t bench_trace_write(const char* path, const assay_layers_t* layers,
                                 const bench_lane_t* lanes, size_t n_lanes) ASSAY_MUST_USE;

#endif  // ASSAY_CLI_VERBS_BENCH_BENCH_TRACE_H_
