// polygraphy inspect data: what files of inputs, outputs and comparisons hold.
#include <dirent.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/shown.h"
#include "compare/accuracy_results.h"
#include "compare/numeric_text.h"
#include "data/tensor_files.h"
#include "frontends/polygraphy/job.h"
#include "io/json.h"

enum { INDENT = 4 };

// What is shown of each array.
typedef struct view {
  bool all, values, bins;
  assay_numpy_style_t style;
  assay_str_t text;
} view_t;

static assay_status_t read_view(const pg_args_t* a, view_t* out) {
  const int64_t items = pg_int(a, PG_FLAG_num_items), width = pg_int(a, PG_FLAG_line_width);
  if (items < -1 || width < -1)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "%s: %" PRId64 " is below -1",
                       items < -1 ? "--num-items" : "--line-width", items < -1 ? items : width);
  *out = (view_t){.all = pg_given(a, PG_FLAG_all),
                  .values = pg_given(a, PG_FLAG_show_values),
                  .bins = pg_given(a, PG_FLAG_histogram),
                  .style = ASSAY_NUMPY_STYLE};
  out->style.edge_items = items < 0 ? INT32_MAX : items;
  out->style.line_width = width < 0 ? INT32_MAX : width;
  return NULL;
}

// Prints the text without the blank lines at its end.
static assay_status_t show(view_t* v) {
  ASSAY_TRY(assay_str_status(&v->text));
  while (v->text.len && strchr(" \n", v->text.text[v->text.len - 1])) v->text.len--;
  if (v->text.len) v->text.text[v->text.len] = 0;
  pg_log(PG_INFO, ASSAY_LINES, assay_str_get(&v->text));
  return NULL;
}

// ---- tensors ------------------------------------------------------------------------------------

static void put_block(view_t* v, assay_str_t* take_text, int depth) {
  assay_str_append(&v->text, "\n");
  assay_put_indented(assay_str_get(take_text), INDENT * depth, &v->text);
  v->text.failed |= take_text->failed;
  assay_str_deinit(take_text);
}

static void put_more(view_t* v, const assay_numeric_t* a, int depth) {
  assay_str_t bins = {0}, values = {0};
  if (v->bins) {
    assay_put_bins(a, NULL, &bins);
    put_block(v, &bins, depth);
  }
  if (!v->values) return;
  assay_put_values(a, &v->style, &values);
  put_block(v, &values, depth);
}

// "name [dtype=float32, shape=(2, 5)] | Stats: ..." after an empty line that is indented like it.
static assay_status_t put_tensor(view_t* v, const char* name, assay_tensor_t* t, int depth) {
  const int spaces = INDENT * (depth - 1);
  assay_numeric_t a = {0};
  assay_str_printf(&v->text, "%*s\n%*s%s [dtype=%s, shape=", spaces, "", spaces, "", name,
                   assay_numpy_type_name(t->type));
  assay_numpy_print_shape(t->rank, t->dims, &v->text);
  assay_str_append(&v->text, "] | Stats: ");
  assay_status_t st = assay_numeric_from(t, &a);
  if (st && assay_status_code(st) == ASSAY_UNSUPPORTED) {  // texts and the like have none
    assay_str_append(&v->text, "<Error while computing statistics>");
    assay_status_free(st);
    return NULL;
  }
  if (!st) st = assay_put_stats(&a, NULL, &v->text);
  if (!st) put_more(v, &a, depth);
  assay_numeric_deinit(&a);
  return st;
}

static assay_status_t put_iterations(view_t* v, const assay_saved_t* s) {
  const bool headed = s->n > 1 && v->all;
  for (size_t i = 0; i < s->n && (v->all || !i); i++) {
    if (headed) assay_str_printf(&v->text, "\n-- Iteration: %zu", i);
    for (size_t k = 0; k < s->runs[i].n; k++)
      ASSAY_TRY(put_tensor(v, s->runs[i].names[k], s->runs[i].tensors[k], 1 + headed));
    if (headed) assay_str_append(&v->text, "\n");
  }
  return NULL;
}

static assay_status_t show_results(view_t* v, const assay_run_results_t* r) {
  size_t longest = 0;
  for (size_t i = 0; i < r->n; i++)
    if (strlen(r->runners[i].name) > longest) longest = strlen(r->runners[i].name);
  assay_str_printf(&v->text, "==== Run Results (%zu runners) ====\n\n", r->n);
  for (size_t i = 0; i < r->n; i++) {
    const assay_saved_t* s = &r->runners[i].saved;
    assay_str_printf(&v->text, "---- %-*s (%zu iterations) ----\n", (int)longest,
                     r->runners[i].name, s->n);
    ASSAY_TRY(put_iterations(v, s));
    assay_str_append(&v->text, "\n");
  }
  return show(v);
}

static assay_status_t show_inputs(view_t* v, const assay_run_results_t* r) {
  static const assay_saved_t none = {0};
  const assay_saved_t* s = r->n ? &r->runners[0].saved : &none;
  assay_str_printf(&v->text, "==== Data (%zu iterations) ====\n", s->n);
  ASSAY_TRY(put_iterations(v, s));
  return show(v);
}

// ---- comparisons --------------------------------------------------------------------------------

static void put_metric(assay_str_t* out, const char* name, double x) {
  assay_str_printf(out, "%s%s=", out->len ? ", " : " | ", name);
  assay_numpy_print_g(x, 5, out);
}

static assay_status_t put_compared(view_t* v, assay_metric_t metric, const assay_compared_t* c) {
  static const char* const diffs[ASSAY_N_DIFFS] = {"max", "mean", "median", "quantile"};
  assay_str_t numbers = {0};
  bool passed = false;
  ASSAY_TRY(assay_compared_passed(metric, c, &passed));
  for (int i = 0; i < ASSAY_N_DIFFS; i++) {
    char name[32];
    if (!c->diffs[i].known) continue;
    snprintf(name, sizeof name, "%s_absdiff", diffs[i]);
    put_metric(&numbers, name, c->diffs[i].abs);
    snprintf(name, sizeof name, "%s_reldiff", diffs[i]);
    put_metric(&numbers, name, c->diffs[i].rel);
  }
  if (c->known) put_metric(&numbers, assay_metric_info(metric)->field, c->value);
  assay_str_printf(&v->text, "%*s\n%*s%s | %s%s", 2 * INDENT, "", 2 * INDENT, "", c->output,
                   passed ? "PASSED" : "FAILED", assay_str_get(&numbers));
  v->text.failed |= numbers.failed;
  assay_str_deinit(&numbers);
  return NULL;
}

static assay_status_t put_pair(view_t* v, assay_metric_t metric,
                               const assay_compared_pair_t* pair) {
  size_t passed = 0;
  ASSAY_TRY(assay_compared_count(metric, pair, &passed));
  assay_str_printf(&v->text, "\n%s vs. %s | %zu/%zu iteration(s) matched", pair->first,
                   pair->second, passed, pair->n);
  for (size_t i = 0; i < pair->n && (v->all || !i); i++) {
    assay_str_printf(&v->text, "%*s\n%*s-- Iteration: %zu", INDENT, "", INDENT, "", i);
    for (size_t k = 0; k < pair->runs[i].n; k++)
      ASSAY_TRY(put_compared(v, metric, &pair->runs[i].outputs[k]));
  }
  assay_str_append(&v->text, "\n");
  return NULL;
}

static assay_status_t show_comparisons(view_t* v, const char* path) {
  assay_accuracy_results_t r = {0};
  ASSAY_TRY(assay_accuracy_results_read(path, &r));
  assay_status_t st = NULL;
  assay_str_printf(&v->text, "==== Accuracy Results (%zu comparison(s)) ====\n", r.n);
  for (size_t i = 0; i < r.n; i++) {
    assay_str_printf(&v->text, "\n---- Aggregation: %s ----\n",
                     r.items[i].average ? "average" : "per_sample");
    for (size_t k = 0; !st && k < r.items[i].n; k++)
      st = put_pair(v, r.items[i].metric, &r.items[i].pairs[k]);
  }
  assay_accuracy_results_deinit(&r);
  return st ? st : show(v);
}

// ---- the command --------------------------------------------------------------------------------

// Whether a file says that it holds comparisons.
static bool holds_comparisons(const char* path) {
  static const char class[] = "\"AccuracyResults\"";
  assay_mapping_t* m = NULL;
  assay_status_t st = assay_mapping_open(path, &m);
  if (st) return assay_status_free(st), false;  // a folder, or nothing: told by who reads it
  const uint8_t* data = assay_mapping_data(m);
  const size_t n = assay_mapping_size(m);
  const bool is = n && *data == '{' && memmem(data, n, class, sizeof class - 1);
  assay_mapping_release(m);
  return is;
}

static int is_json_name(const struct dirent* entry) {
  const size_t n = strlen(entry->d_name);
  return n > 5 && entry->d_name[0] != '.' && strcmp(entry->d_name + n - 5, ".json") == 0;
}

// Names the files of a folder, one for each iteration.
static void report_files(const char* path, bool inputs) {
  struct dirent** names = NULL;
  const int n = scandir(path, &names, is_json_name, alphasort);
  for (int i = 0; i < n; i++) {
    pg_log(PG_INFO, "Loading %s from %s/%s", inputs ? "input data" : "inference results", path,
           names[i]->d_name);
    free(names[i]);
  }
  free(names);
}

static assay_status_t show_tensors(view_t* v, const char* path) {
  const assay_tensor_request_t request = {.path = path};
  assay_run_results_t r = {0};
  ASSAY_TRY(assay_tensor_file_read_all(&request, &r));
  if (assay_saved_is_folder(path)) report_files(path, r.inputs);
  assay_status_t st = r.inputs ? show_inputs(v, &r) : show_results(v, &r);
  assay_run_results_deinit(&r);
  return st;
}

assay_status_t pg_run_inspect_data(pg_job_t* j) {
  const char* path = j->args->positional.items[0];
  view_t v = {0};
  ASSAY_TRY(read_view(j->args, &v));
  assay_status_t st = holds_comparisons(path) ? show_comparisons(&v, path) : show_tensors(&v, path);
  assay_str_deinit(&v.text);
  return st;
}
