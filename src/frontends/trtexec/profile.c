// --dumpProfile and --exportProfile: how long each layer took.
#include <stdlib.h>

#include "base/alloc.h"
#include "frontends/trtexec/log.h"
#include "frontends/trtexec/measure.h"
#include "frontends/trtexec/text.h"

typedef struct row {
  double total, mean, median;  // milliseconds
} row_t;

static assay_status_t make_rows(const trt_trace_t* t, row_t** out, row_t* total) {
  double* times = NULL;
  const size_t n = t->n_profiled;
  ASSAY_TRY(assay_new_array(t->n_layers, sizeof **out, out));
  assay_status_t st = assay_new_array(n, sizeof *times, &times);
  for (size_t i = 0; !st && i < t->n_layers; i++) {
    row_t* r = &(*out)[i];
    for (size_t k = 0; k < n; k++) {
      times[k] = (double)t->layer_ms[k * t->n_layers + i];
      r->total += times[k];
    }
    if (n) qsort(times, n, sizeof *times, trt_ascending);
    r->mean = n ? r->total / (double)n : 0;
    r->median = trt_median(times, n);
    total->total += r->total;
    total->mean += r->mean;
    total->median += r->median;
  }
  assay_free(times);
  return st;
}

static double share(const row_t* r, const row_t* total) {
  return total->total > 0 ? 100 * r->total / total->total : 0;
}

static void print_row(const row_t* r, const row_t* total, const char* name) {
  trt_info("%12.2f%12.4f%12.4f%10.1f   %s", r->total, r->mean, r->median, share(r, total), name);
}

static void dump(const assay_layers_t* layers, const trt_trace_t* t, const row_t* rows,
                 const row_t* total) {
  trt_info("=== Profile (%zu iterations ) ===", t->n_profiled);
  trt_info("%12s%12s%12s%10s   %s", "Time(ms)", "Avg.(ms)", "Median(ms)", "Time(%)", "Layer");
  for (size_t i = 0; i < t->n_layers && i < layers->n_layers; i++) {
    assay_str_t name = {0};
    if (!(rows[i].total > 0)) continue;
    trt_put_layer_name(&name, &layers->layers[i], t->profile);
    print_row(&rows[i], total, assay_str_get(&name));
    assay_str_deinit(&name);
  }
  print_row(total, total, "Total");
  trt_info("%s", "");
}

static assay_status_t export(const char* path, const assay_layers_t* layers, const trt_trace_t* t,
                             const row_t* rows, const row_t* total) {
  assay_str_t text = {0};
  assay_str_printf(&text, "[\n  { \"count\" : %zu }\n", t->n_profiled);
  for (size_t i = 0; i < t->n_layers && i < layers->n_layers; i++) {
    assay_str_t name = {0};
    trt_put_layer_name(&name, &layers->layers[i], t->profile);
    assay_str_append(&text, ", { \"name\" : ");
    trt_put_json(&text, assay_str_get(&name));
    assay_str_printf(&text,
                     ", \"timeMs\" : %g, \"averageMs\" : %g, \"medianMs\" : %g, \"percentage\" : "
                     "%g }\n",
                     rows[i].total, rows[i].mean, rows[i].median, share(&rows[i], total));
    assay_str_deinit(&name);
  }
  assay_str_append(&text, "]\n");
  return trt_write_text("--exportProfile", path, &text);
}

assay_status_t trt_report_profile(const trt_job_t* j, const trt_trace_t* t) {
  const assay_layers_t* layers = assay_plan_layers(assay_engine_plan(j->engine));
  const char* path = trt_text(j->options, TRT_FLAG_exportProfile);
  row_t *rows = NULL, total = {0};
  assay_status_t st = make_rows(t, &rows, &total);
  if (!st && trt_given(j->options, TRT_FLAG_dumpProfile)) dump(layers, t, rows, &total);
  if (!st && path) st = export(path, layers, t, rows, &total);
  assay_free(rows);
  return st;
}
