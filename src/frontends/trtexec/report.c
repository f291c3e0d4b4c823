// The trace, the performance summary, and --exportTimes.
#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "frontends/trtexec/log.h"
#include "frontends/trtexec/measure.h"
#include "frontends/trtexec/specs.h"
#include "frontends/trtexec/text.h"

int trt_ascending(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

double trt_percentile(const double* sorted, size_t n, double p) {
  const double left_out = trunc((1 - p / 100) * (double)n);
  const double at = (double)n - 1 - left_out;
  return n ? sorted[at > 0 ? (size_t)at : 0] : 0;
}

double trt_median(const double* sorted, size_t n) {
  if (!n) return 0;
  return n % 2 ? sorted[n / 2] : (sorted[n / 2 - 1] + sorted[n / 2]) / 2;
}

static double latency_ms(const trt_run_t* r) { return r->h2d_ms + r->compute_ms + r->d2h_ms; }

// ---- the trace ----------------------------------------------------------------------------------

static void print_trace(const trt_job_t* j, const trt_trace_t* t) {
  enum { ENDS = 200 };
  const size_t each = (size_t)trt_number(j->options, TRT_FLAG_avgRuns);
  const size_t lines = t->n_runs / each;
  trt_info("=== Trace details ===");
  trt_info("Trace averages of %zu runs:", each);
  for (size_t k = 0; k < lines; k++) {
    double gpu = 0, host = 0, enqueue = 0;
    if (k == ENDS && lines > 2 * ENDS) {
      trt_info("... Omitting %zu lines", lines - 2 * ENDS);
      k = lines - ENDS;
    }
    for (size_t i = 0; i < each; i++) {
      const trt_run_t* r = &t->runs[k * each + i];
      gpu += r->compute_ms;
      host += latency_ms(r);
      enqueue += r->enqueue_ms;
    }
    trt_info("Average on %zu runs - GPU latency: %g ms - Host latency: %g ms (enqueue %g ms)", each,
             gpu / (double)each, host / (double)each, enqueue / (double)each);
  }
  trt_info("%s", "");
}

// ---- the summary --------------------------------------------------------------------------------

// What of a run a line is about.
typedef double part_fn_t(const trt_run_t* r);
static double enqueue_ms(const trt_run_t* r) { return r->enqueue_ms; }
static double h2d_ms(const trt_run_t* r) { return r->h2d_ms; }
static double compute_ms(const trt_run_t* r) { return r->compute_ms; }
static double d2h_ms(const trt_run_t* r) { return r->d2h_ms; }

// "Latency: min = 3.3 ms, max = ..."; sorted: room for a number a run, which they are in then.
static void print_times(const char* name, const trt_trace_t* t, part_fn_t* part, double* sorted,
                        const double* percentiles, size_t n_percentiles) {
  const size_t n = t->n_runs;
  assay_str_t text = {0};
  double sum = 0;
  for (size_t i = 0; i < n; i++) sum += sorted[i] = part(&t->runs[i]);
  qsort(sorted, n, sizeof *sorted, trt_ascending);
  assay_str_printf(&text, "%s: min = %g ms, max = %g ms, mean = %g ms, median = %g ms", name,
                   sorted[0], sorted[n - 1], sum / (double)n, trt_median(sorted, n));
  for (size_t i = 0; i < n_percentiles; i++)
    assay_str_printf(&text, ", percentile(%g%%) = %g ms", percentiles[i],
                     trt_percentile(sorted, n, percentiles[i]));
  trt_info("%s", assay_str_get(&text));
  assay_str_deinit(&text);
}

static void explain(bool on_gpu) {
  trt_verbose("=== Explanations of the performance metrics ===");
  trt_verbose(
      "Total Host Walltime: the time from the first measured run's start to the last one's end.");
  trt_verbose(
      on_gpu
          ? "GPU Compute Time: by the GPU's events, from the first kernel of a run to the last one."
          : "GPU Compute Time: how long a run took; on this device, a CPU, in the thread that "
            "started it.");
  trt_verbose("Total GPU Compute Time: the sum of these over all runs.");
  trt_verbose(
      on_gpu
          ? "Enqueue Time: how long the host took until a run was in the GPU's queue. H2D Latency, "
            "D2H Latency: copying to the GPU and from it, by its events."
          : "Enqueue Time, H2D Latency, D2H Latency: 0, since a CPU starts no queue and copies "
            "nothing.");
  trt_verbose("Throughput: runs by the wall time. A run is one query, whatever its batch.");
  trt_verbose("Latency: the sum of H2D Latency, GPU Compute Time and D2H Latency.");
}

static void warn_of_noise(const trt_job_t* j, const double* sorted, size_t n, double sum) {
  const double mean = sum / (double)n;
  double squares = 0;
  for (size_t i = 0; i < n; i++) squares += (sorted[i] - mean) * (sorted[i] - mean);
  const double variation = 100 * sqrt(squares / (double)n) / mean;
  if (variation > 2.5)
    trt_warn(
        "* GPU compute time is unstable, with coefficient of variance = %g%%: other work on this "
        "machine disturbs it",
        variation);
  if (trt_number(j->options, TRT_FLAG_infStreams) > 1)
    trt_warn("* Latencies overlap, since there is more than one stream: throughput is what counts");
}

static assay_status_t print_summary(const trt_job_t* j, const trt_trace_t* t) {
  double *percentiles = NULL, *times = NULL, sum = 0, end = 0;
  const size_t n = t->n_runs;
  size_t n_percentiles = 0;
  ASSAY_TRY(trt_percentiles_parse(j->arena, "--percentile",
                                  trt_text(j->options, TRT_FLAG_percentile), &percentiles,
                                  &n_percentiles));
  ASSAY_TRY(assay_new_array(n, sizeof *times, &times));
  for (size_t i = 0; i < n; i++) {
    sum += t->runs[i].compute_ms;
    end = fmax(end, t->runs[i].end_compute);
  }
  const double wall = 1e-3 * (end - t->runs[0].start_compute);
  trt_info("=== Performance summary ===");
  trt_info("Throughput: %g qps", (double)n / wall);
  print_times("Latency", t, latency_ms, times, percentiles, n_percentiles);
  print_times("Enqueue Time", t, enqueue_ms, times, percentiles, n_percentiles);
  print_times("H2D Latency", t, h2d_ms, times, percentiles, n_percentiles);
  print_times("GPU Compute Time", t, compute_ms, times, percentiles, n_percentiles);
  print_times("D2H Latency", t, d2h_ms, times, percentiles, n_percentiles);
  trt_info("Total Host Walltime: %g s", wall);
  trt_info("Total GPU Compute Time: %g s", 1e-3 * sum);
  for (size_t i = 0; i < n; i++) times[i] = t->runs[i].compute_ms;
  warn_of_noise(j, times, n, sum);
  trt_info("Explanations of the performance metrics are printed in the verbose logs.");
  explain(t->runs[0].enqueue_ms > 0);
  assay_free(times);
  return NULL;
}

// ---- --exportTimes ------------------------------------------------------------------------------

static assay_status_t export_times(const char* path, const trt_trace_t* t) {
  assay_str_t text = {0};
  assay_str_append(&text, "[\n");
  for (size_t i = 0; i < t->n_runs; i++) {
    const trt_run_t* r = &t->runs[i];
    const double begin = r->start_compute - r->h2d_ms, end = r->end_compute + r->d2h_ms;
    assay_str_printf(&text,
                     "%s{ \"startEnqMs\" : %g, \"endEnqMs\" : %g, \"startH2dMs\" : %g, "
                     "\"endH2dMs\" : %g, \"startComputeMs\" : %g, \"endComputeMs\" : %g, "
                     "\"startD2hMs\" : %g, \"endD2hMs\" : %g, \"h2dMs\" : %g, \"computeMs\" : %g, "
                     "\"d2hMs\" : %g, \"latencyMs\" : %g }\n",
                     i ? ", " : "  ", r->enqueue, r->enqueue + r->enqueue_ms, begin,
                     r->start_compute, r->start_compute, r->end_compute, r->end_compute, end,
                     r->h2d_ms, r->compute_ms, r->d2h_ms, latency_ms(r));
  }
  assay_str_append(&text, "]\n");
  return trt_write_text("--exportTimes", path, &text);
}

assay_status_t trt_report(const trt_job_t* j, const trt_trace_t* t) {
  const trt_options_t* o = j->options;
  double end = 0;
  for (size_t i = 0; i < t->n_runs; i++) end = fmax(end, t->runs[i].end_compute);
  if (!t->n_runs) return trt_warn("Interrupted before the first measured run"), NULL;
  trt_info("Warmup completed %zu queries over %g ms", t->n_warm_up, trt_number(o, TRT_FLAG_warmUp));
  trt_info("Timing trace has %zu queries over %g s", t->n_runs,
           1e-3 * (end - t->runs[0].start_compute));
  trt_info("%s", "");
  if (trt_given(o, TRT_FLAG_exportTimes))
    ASSAY_TRY(export_times(trt_text(o, TRT_FLAG_exportTimes), t));
  if (t->layer_ms)
    return trt_info(
               "The layers' times were taken in these runs, which slows them down: no summary is "
               "printed. Use --separateProfileRun for both"),
           NULL;
  print_trace(j, t);
  return print_summary(j, t);
}
