// The JSON of accuracy results. Source: Polygraphy 0.53, files of run --save-accuracy-results.
#include <string.h>

#include "base/file.h"
#include "base/shown.h"
#include "compare/accuracy_results.h"
#include "io/json.h"

static const struct {
  int diff;
  const char *abs, *rel;
} diff_fields[ASSAY_N_DIFFS] = {
    {ASSAY_DIFF_MAX, "max_absdiff", "max_reldiff"},
    {ASSAY_DIFF_MEAN, "mean_absdiff", "mean_reldiff"},
    {ASSAY_DIFF_MEDIAN, "median_absdiff", "median_reldiff"},
    {ASSAY_DIFF_QUANTILE, "quantile_absdiff", "quantile_reldiff"},
};

// ---- writing ------------------------------------------------------------------------------------

typedef struct out {
  assay_str_t text;
  int depth;
  bool first;  // of what is open
} out_t;

static void begin_item(out_t* o) {
  assay_str_printf_raw(&o->text, "%s\n%*s", o->first ? "" : ",", 4 * o->depth, "");
  o->first = false;
}

static void open_with(out_t* o, const char* bracket) {
  assay_str_append(&o->text, bracket);
  o->depth++;
  o->first = true;
}

static void close_with(out_t* o, const char* bracket) {
  o->depth--;
  if (!o->first) assay_str_printf_raw(&o->text, "\n%*s", 4 * o->depth, "");
  assay_str_append(&o->text, bracket);
  o->first = false;
}

static void put_key(out_t* o, const char* key) {
  begin_item(o);
  assay_json_quote(key, &o->text);
  assay_str_append(&o->text, ": ");
}

static void put_text(out_t* o, const char* key, const char* text) {
  put_key(o, key);
  assay_json_quote(text, &o->text);
}

// Python's words for what JSON has no numbers for.
static void put_bound(out_t* o, const char* key, bool known, assay_tolerance_t b) {
  put_key(o, key);
  if (!known)
    assay_str_append(&o->text, "null");
  else if (b.x != b.x)
    assay_str_append(&o->text, "NaN");
  else if (b.x - b.x != 0)
    assay_str_append(&o->text, b.x > 0 ? "Infinity" : "-Infinity");
  else
    assay_tolerance_put(b, &o->text);
}

static void put_number(out_t* o, const char* key, bool known, double x) {
  put_bound(o, key, known, (assay_tolerance_t){.x = x});
}

static void put_threshold(out_t* o, assay_metric_t metric, const assay_threshold_t* t) {
  put_key(o, "thresholds");
  open_with(o, "{");
  if (metric == ASSAY_METRIC_SIMPLE) {
    put_text(o, "check_error_stat", assay_error_stat_name(t->stat));
    put_bound(o, "atol", true, t->atol);
    put_bound(o, "rtol", true, t->rtol);
  } else {
    put_bound(o, "threshold", true, t->limit);
  }
  put_text(o, "polygraphy_class", assay_metric_info(metric)->threshold);
  close_with(o, "}");
}

static void put_compared(out_t* o, assay_metric_t metric, const assay_compared_t* c) {
  put_key(o, c->output);
  if (!c->measured) {
    assay_str_append(&o->text, c->verdict ? "true" : "false");
    return;
  }
  open_with(o, "{");
  for (int i = 0; metric == ASSAY_METRIC_SIMPLE && i < ASSAY_N_DIFFS; i++) {
    const assay_diff_t* d = &c->diffs[diff_fields[i].diff];
    put_number(o, diff_fields[i].abs, d->known, d->abs);
    put_number(o, diff_fields[i].rel, d->known, d->rel);
  }
  if (metric != ASSAY_METRIC_SIMPLE)
    put_number(o, assay_metric_info(metric)->field, c->known, c->value);
  put_threshold(o, metric, &c->threshold);
  if (metric == ASSAY_METRIC_SIMPLE) {
    put_key(o, "passed");
    assay_str_append(&o->text, !c->decided ? "null" : c->verdict ? "true" : "false");
  }
  put_text(o, "polygraphy_class", assay_metric_info(metric)->result);
  close_with(o, "}");
}

static void put_pair(out_t* o, assay_metric_t metric, const assay_compared_pair_t* pair) {
  begin_item(o);
  open_with(o, "[");
  begin_item(o);
  open_with(o, "[");
  begin_item(o);
  assay_json_quote(pair->first, &o->text);
  begin_item(o);
  assay_json_quote(pair->second, &o->text);
  close_with(o, "]");
  begin_item(o);
  open_with(o, "[");
  for (size_t i = 0; i < pair->n; i++) {
    begin_item(o);
    open_with(o, "{");
    for (size_t k = 0; k < pair->runs[i].n; k++) put_compared(o, metric, &pair->runs[i].outputs[k]);
    close_with(o, "}");
  }
  close_with(o, "]");
  close_with(o, "]");
}

assay_status_t assay_accuracy_results_write(const char* path, const assay_accuracy_results_t* r) {
  out_t o = {0};
  open_with(&o, "{");
  put_key(&o, "lst");
  open_with(&o, "[");
  for (size_t i = 0; i < r->n; i++) {
    begin_item(&o);
    open_with(&o, "{");
    put_key(&o, "lst");
    open_with(&o, "[");
    for (size_t k = 0; k < r->items[i].n; k++)
      put_pair(&o, r->items[i].metric, &r->items[i].pairs[k]);
    close_with(&o, "]");
    put_text(&o, "aggregation", r->items[i].average ? "average" : "per_sample");
    put_text(&o, "polygraphy_class", "AccuracyResult");
    close_with(&o, "}");
  }
  close_with(&o, "]");
  put_text(&o, "polygraphy_class", "AccuracyResults");
  close_with(&o, "}");
  assay_status_t st = assay_str_status(&o.text);
  if (!st) st = assay_file_write(path, o.text.text, o.text.len);
  assay_str_deinit(&o.text);
  return st;
}

// ---- reading ------------------------------------------------------------------------------------

#define CORRUPT(...) ASSAY_ERROR(ASSAY_CORRUPT, "accuracy results: " __VA_ARGS__)

static const char* text_of(const json_t* j, const char* key) {
  return json_string_value(json_object_get(j, key));
}

// A number, or null: *out_known tells.
static assay_status_t read_bound(const json_t* j, const char* key, bool* out_known,
                                 assay_tolerance_t* out) {
  const json_t* value = json_object_get(j, key);
  *out_known = value && !json_is_null(value);
  if (!*out_known) return NULL;
  out->whole = json_is_integer(value);
  if (!assay_json_get_number(value, &out->x)) return CORRUPT("'%s' is not a number", key);
  return NULL;
}

static assay_status_t need_bound(const json_t* j, const char* key, assay_tolerance_t* out) {
  bool known = false;
  ASSAY_TRY(read_bound(j, key, &known, out));
  return known ? NULL : CORRUPT("a threshold lacks '%s'", key);
}

static assay_status_t read_threshold(const json_t* j, assay_metric_t metric,
                                     assay_threshold_t* out) {
  const char* stat = text_of(j, "check_error_stat");
  if (metric != ASSAY_METRIC_SIMPLE) return need_bound(j, "threshold", &out->limit);
  if (!stat || !assay_error_stat_parse(stat, &out->stat))
    return CORRUPT("'check_error_stat' is none of elemwise, max, mean, median, quantile");
  ASSAY_TRY(need_bound(j, "atol", &out->atol));
  return need_bound(j, "rtol", &out->rtol);
}

static assay_status_t read_diffs(const json_t* j, assay_compared_t* c) {
  for (int i = 0; i < ASSAY_N_DIFFS; i++) {
    assay_diff_t* d = &c->diffs[diff_fields[i].diff];
    assay_tolerance_t abs = {0}, rel = {0};
    bool has_abs = false, has_rel = false;
    ASSAY_TRY(read_bound(j, diff_fields[i].abs, &has_abs, &abs));
    ASSAY_TRY(read_bound(j, diff_fields[i].rel, &has_rel, &rel));
    *d = (assay_diff_t){.known = has_abs && has_rel, .abs = abs.x, .rel = rel.x};
  }
  const json_t* passed = json_object_get(j, "passed");
  c->decided = json_is_boolean(passed);
  c->verdict = json_is_true(passed);
  return NULL;
}

static assay_status_t read_compared(const json_t* j, assay_metric_t metric, assay_compared_t* c) {
  if (json_is_boolean(j)) {
    c->verdict = json_is_true(j);
    return NULL;
  }
  assay_tolerance_t value = {0};
  c->measured = true;
  if (metric == ASSAY_METRIC_SIMPLE)
    ASSAY_TRY(read_diffs(j, c));
  else
    ASSAY_TRY(read_bound(j, assay_metric_info(metric)->field, &c->known, &value));
  c->value = value.x;
  return read_threshold(json_object_get(j, "thresholds"), metric, &c->threshold);
}

// The metric whose result an object is.
static assay_status_t metric_of(const json_t* j, assay_metric_t* out) {
  const char* class = text_of(j, "polygraphy_class");
  if (!json_is_object(j)) return CORRUPT("a result is neither true or false nor an object");
  for (int i = 0; i < ASSAY_N_METRICS; i++) {
    const assay_metric_info_t* m = assay_metric_info((assay_metric_t)i);
    if (!m->field ||
        !(class ? strcmp(class, m->result) == 0 : json_object_get(j, m->field) != NULL))
      continue;
    *out = (assay_metric_t)i;
    return NULL;
  }
  return ASSAY_ERROR(ASSAY_UNSUPPORTED,
                     "accuracy results: class '%s' is of a comparison function of one's own, which "
                     "is not known here",
                     class ? class : "(none)");
}

typedef struct reading {
  assay_accuracy_results_t* results;
  assay_metric_t metric;
  bool known;  // the metric was found
} reading_t;

// The metric of a result is that of its first object; where all are true or false, indices.
static assay_status_t find_metric(const json_t* iterations, reading_t* r) {
  for (size_t i = 0; !r->known && i < json_array_size(iterations); i++) {
    const char* name;
    json_t* j;
    json_object_foreach(json_array_get(iterations, i), name, j) {
      (void)name;
      if (json_is_boolean(j) || r->known) continue;
      ASSAY_TRY(metric_of(j, &r->metric));
      r->known = true;
    }
  }
  return NULL;
}

static assay_status_t read_run(json_t* outputs, const reading_t* r, assay_compared_run_t* run) {
  const char* name;
  json_t* j;
  if (!json_is_object(outputs)) return CORRUPT("an iteration is not an object of outputs");
  json_object_foreach(outputs, name, j) {
    assay_compared_t* c = NULL;
    assay_metric_t metric = r->metric;
    if (strcmp(name, "polygraphy_class") == 0) continue;
    if (!json_is_boolean(j)) ASSAY_TRY(metric_of(j, &metric));
    if (metric != r->metric)
      return CORRUPT("output '%s' is of another metric than the others", name);
    ASSAY_TRY(assay_compared_run_add(r->results, run, name, NULL, &c));
    assay_status_t st = read_compared(j, metric, c);
    if (st) return assay_status_note(st, "output '%s'", name);
  }
  return NULL;
}

static assay_status_t read_pair(const json_t* entry, const reading_t* r,
                                assay_accuracy_result_t* result) {
  const json_t *names = json_array_get(entry, 0), *iterations = json_array_get(entry, 1);
  const char* first = json_string_value(json_array_get(names, 0));
  const char* second = json_string_value(json_array_get(names, 1));
  assay_compared_pair_t* pair = NULL;
  if (!first || !second || !json_is_array(iterations))
    return CORRUPT("a pair of runners with its iterations is missing");
  ASSAY_TRY(assay_accuracy_result_add_pair(r->results, result, first, second, &pair));
  for (size_t i = 0; i < json_array_size(iterations); i++) {
    assay_compared_run_t* run = NULL;
    ASSAY_TRY(assay_compared_pair_add(pair, &run));
    assay_status_t st = read_run(json_array_get(iterations, i), r, run);
    if (st) return assay_status_note(st, "iteration %zu", i);
  }
  return NULL;
}

static assay_status_t read_result(const json_t* j, assay_accuracy_results_t* out) {
  const json_t* pairs = json_object_get(j, "lst");
  const char* aggregation = text_of(j, "aggregation");
  reading_t r = {.results = out, .metric = ASSAY_METRIC_INDICES};
  assay_accuracy_result_t* result = NULL;
  if (!json_is_array(pairs)) return CORRUPT("a result's list 'lst' is missing");
  for (size_t i = 0; i < json_array_size(pairs); i++)
    ASSAY_TRY(find_metric(json_array_get(json_array_get(pairs, i), 1), &r));
  ASSAY_TRY(assay_accuracy_results_add(
      out, r.metric, aggregation && strcmp(aggregation, "average") == 0, &result));
  for (size_t i = 0; i < json_array_size(pairs); i++)
    ASSAY_TRY(read_pair(json_array_get(pairs, i), &r, result));
  return NULL;
}

static bool is_results(const json_t* root) {
  const char* class = text_of(root, "polygraphy_class");
  return class && strcmp(class, "AccuracyResults") == 0;
}

static assay_status_t read_root(const json_t* root, assay_accuracy_results_t* out) {
  const json_t* list = json_object_get(root, "lst");
  if (!is_results(root) || !json_is_array(list))
    return ASSAY_ERROR(ASSAY_CORRUPT,
                       "it holds no accuracy results, which 'polygraphy run "
                       "--save-accuracy-results' writes");
  for (size_t i = 0; i < json_array_size(list); i++)
    ASSAY_TRY(read_result(json_array_get(list, i), out));
  return NULL;
}

assay_status_t assay_accuracy_results_parse(const void* data, size_t size,
                                            assay_accuracy_results_t* out) {
  assay_accuracy_results_t r = {0};
  json_t* root = NULL;
  assay_status_t st = assay_json_parse_python(data, size, &root);
  if (!st) st = read_root(root, &r);
  json_decref(root);
  if (st) return assay_accuracy_results_deinit(&r), st;
  *out = r;
  return NULL;
}

assay_status_t assay_accuracy_results_read(const char* path, assay_accuracy_results_t* out) {
  assay_mapping_t* m = NULL;
  ASSAY_TRY(assay_mapping_open(path, &m));
  assay_status_t st =
      assay_accuracy_results_parse(assay_mapping_data(m), assay_mapping_size(m), out);
  assay_mapping_release(m);
  return assay_status_note(st, "'%s'", path);
}
