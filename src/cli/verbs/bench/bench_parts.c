// The parts of a run's time on a device.
#include "cli/verbs/bench/bench_parts.h"

#include <stdio.h>
#include <stdlib.h>

enum { RUNS = 31 };

static int ascending(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

static double median(double* x) {
  qsort(x, RUNS, sizeof *x, ascending);
  return x[RUNS / 2];
}

assay_status_t bench_parts_measure(const bench_source_t* source, assay_executor_t* e,
                                   bench_parts_t* out) {
  double enqueue[RUNS], upload[RUNS], compute[RUNS], download[RUNS];
  assay_executor_timed(e, true);
  for (int i = 0; i < RUNS; i++) {
    assay_run_times_t t;
    assay_executor_reset(e);
    ASSAY_TRY(bench_source_set(source, e));
    ASSAY_TRY(assay_executor_run(e));
    ASSAY_TRY(assay_executor_times(e, &t, &out->known));
    if (!out->known) return NULL;
    enqueue[i] = t.enqueue;
    upload[i] = t.upload;
    compute[i] = t.compute;
    download[i] = t.download;
  }
  assay_executor_timed(e, false);
  out->times.enqueue = median(enqueue);
  out->times.upload = median(upload);
  out->times.compute = median(compute);
  out->times.download = median(download);
  return NULL;
}

void bench_parts_print(const bench_parts_t* p) {
  const assay_run_times_t* t = &p->times;
  if (p->known)
    printf(
        "device     %.4f ms computing, %.4f ms copying to it, %.4f ms from it, by its events; put "
        "into its queue in %.4f ms\n",
        1e-3 * t->compute, 1e-3 * t->upload, 1e-3 * t->download, 1e-3 * t->enqueue);
}

json_t* bench_parts_put(json_t* to, const bench_parts_t* p) {
  const assay_run_times_t* t = &p->times;
  if (!p->known) return to;
  return assay_json_put(to, "device",
                        json_pack("{s:f, s:f, s:f, s:f}", "compute_ms", 1e-3 * t->compute,
                                  "upload_ms", 1e-3 * t->upload, "download_ms", 1e-3 * t->download,
                                  "enqueue_ms", 1e-3 * t->enqueue));
}
