// The flags of comparisons, as the library takes them.
#include "frontends/polygraphy/data/compare_flags.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/shown.h"

// ---- lines --------------------------------------------------------------------------------------

// The severities of both have the same numbers.
static void put_line(void* self, assay_severity_t severity, int depth, const char* text) {
  (void)self;
  pg_log_indent(depth);
  pg_log((pg_severity_t)severity, ASSAY_LINES, text);
  pg_log_indent(-depth);
}

static bool shows(void* self, assay_severity_t severity) {
  (void)self;
  return pg_log_shows((pg_severity_t)severity);
}

assay_compare_log_t pg_compare_log(void) {
  return (assay_compare_log_t){.line = put_line, .shows = shows};
}

// ---- metrics ------------------------------------------------------------------------------------

// Words of --compare that stand for several.
static const struct {
  const char* name;
  assay_metric_t metrics[2];
} aliases[] = {{"distance_metrics", {ASSAY_METRIC_L2, ASSAY_METRIC_COSINE}},
               {"quality_metrics", {ASSAY_METRIC_PSNR, ASSAY_METRIC_SNR}}};
enum { N_ALIASES = sizeof aliases / sizeof *aliases };

static bool uses(const assay_comparing_settings_t* c, assay_metric_t metric) {
  for (size_t i = 0; i < c->n_metrics; i++)
    if (c->metrics[i] == metric) return true;
  return false;
}

static void add_metric(assay_comparing_settings_t* c, assay_metric_t metric) {
  if (!uses(c, metric)) c->metrics[c->n_metrics++] = metric;
}

static assay_status_t add_word(assay_comparing_settings_t* c, const char* word) {
  for (int i = 0; i < N_ALIASES; i++)
    for (int k = 0; k < 2 && strcmp(aliases[i].name, word) == 0; k++)
      add_metric(c, aliases[i].metrics[k]);
  for (int i = 0; i < ASSAY_N_METRICS; i++)
    if (strcmp(assay_metric_info((assay_metric_t)i)->name, word) == 0)
      add_metric(c, (assay_metric_t)i);
  if (!uses(c, ASSAY_METRIC_LPIPS)) return NULL;
  return ASSAY_ERROR(ASSAY_UNSUPPORTED,
                     "--compare perceptual_metrics needs a neural network, which is not there; "
                     "compare pictures by quality_metrics (psnr and snr)");
}

// ---- what is asked of an output -----------------------------------------------------------------

// Flags of "[output:]value", and which metric uses them.
static const struct {
  pg_flag_id_t flag;
  assay_metric_t metric;
  const char* in_words;
} listed[] = {
    {PG_FLAG_rtol, ASSAY_METRIC_SIMPLE, "rtol"},
    {PG_FLAG_atol, ASSAY_METRIC_SIMPLE, "atol"},
    {PG_FLAG_check_error_stat, ASSAY_METRIC_SIMPLE, "check_error_stat"},
    {PG_FLAG_error_quantile, ASSAY_METRIC_SIMPLE, "quantile"},
    {PG_FLAG_index_tolerance, ASSAY_METRIC_INDICES, "index_tolerance"},
    {PG_FLAG_l2_threshold, ASSAY_METRIC_L2, "l2_threshold"},
    {PG_FLAG_cosine_similarity_threshold, ASSAY_METRIC_COSINE, "cosine_similarity_threshold"},
    {PG_FLAG_psnr_threshold, ASSAY_METRIC_PSNR, "psnr_threshold"},
    {PG_FLAG_snr_threshold, ASSAY_METRIC_SNR, "snr_threshold"},
};
enum { N_LISTED = sizeof listed / sizeof *listed };

static const char* first_name(pg_flag_id_t f, char* buffer, size_t size) {
  snprintf(buffer, size, "%.*s", (int)strcspn(pg_flags[f].names, " "), pg_flags[f].names);
  return buffer;
}
#define FIRST_NAME(f) first_name((f), (char[64]){0}, 64)

static assay_status_t read_bound(pg_flag_id_t f, const char* text, assay_tolerance_t* out) {
  ASSAY_TRY(pg_number(FIRST_NAME(f), text, &out->x));
  out->whole = text[strspn(text, "+-0123456789")] == 0;
  return NULL;
}

static assay_status_t read_stat(const char* text, assay_tolerances_t* d) {
  if (assay_error_stat_parse(text, &d->stat)) return NULL;
  return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                     "Invalid choice for check_error_stat: %s; valid choices are: ['max', "
                     "'mean', 'median', 'elemwise', 'quantile']",
                     text);
}

static assay_status_t read_quantile(const char* text, assay_tolerances_t* d) {
  ASSAY_TRY(pg_number("--error-quantile", text, &d->quantile));
  if (d->quantile >= 0 && d->quantile <= 1) return NULL;
  return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "--error-quantile: %s is not between 0 and 1", text);
}

static assay_status_t read_indices(const char* text, assay_tolerances_t* d) {
  ASSAY_TRY(pg_whole("--index-tolerance", text, &d->index_tolerance));
  if (d->index_tolerance >= 0) return NULL;
  return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "--index-tolerance: %s is below 0", text);
}

static assay_status_t read_value(int i, const char* text, assay_tolerances_t* d) {
  const pg_flag_id_t f = listed[i].flag;
  if (f == PG_FLAG_check_error_stat) return read_stat(text, d);
  if (f == PG_FLAG_error_quantile) return read_quantile(text, d);
  if (f == PG_FLAG_index_tolerance) return read_indices(text, d);
  return read_bound(f, text,
                    f == PG_FLAG_rtol   ? &d->rtol
                    : f == PG_FLAG_atol ? &d->atol
                                        : &d->limit[listed[i].metric]);
}

static assay_status_t read_tolerances(const pg_compare_t* c, const char* output,
                                      assay_tolerances_t* out) {
  assay_tolerances_init(out);
  for (int i = 0; i < N_LISTED; i++) {
    const char* text = NULL;
    ASSAY_TRY(pg_pair_find(c->arena, pg_words(c->args, listed[i].flag), output, &text));
    if (text) ASSAY_TRY(read_value(i, text, out));
  }
  return NULL;
}

static assay_status_t tolerances(void* self, const char* output, assay_tolerances_t* out) {
  pg_compare_t* c = self;
  for (size_t i = 0; i < c->n_known; i++)
    if (strcmp(c->known[i].output, output) == 0) return *out = c->known[i].tolerances, NULL;
  pg_tolerances_t d = {0};
  ASSAY_TRY(assay_arena_strdup(c->arena, output, &d.output));
  ASSAY_TRY(read_tolerances(c, output, &d.tolerances));
  ASSAY_TRY(assay_grow(&c->known, &c->cap_known, c->n_known + 1, sizeof *c->known));
  c->known[c->n_known++] = d;
  *out = d.tolerances;
  return NULL;
}

// Every value of every flag, also of outputs that may never come.
static assay_status_t check_values(const pg_compare_t* c) {
  for (int i = 0; i < N_LISTED; i++) {
    const pg_words_t* words = pg_words(c->args, listed[i].flag);
    for (size_t k = 0; k < words->n; k++) {
      assay_tolerances_t d;
      pg_pair_t pair;
      ASSAY_TRY(pg_pair_split(c->arena, words->items[k], &pair));
      ASSAY_TRY(read_value(i, pair.value, &d));
    }
  }
  return NULL;
}

// ---- what nobody uses ---------------------------------------------------------------------------

static bool fits_any(const char* pattern, const assay_set_t* set) {
  for (size_t i = 0; i < set->n; i++)
    if (strcmp(pattern, set->names[i]) == 0 || pg_fits(pattern, set->names[i])) return true;
  return false;
}

static void put_name(assay_str_t* out, const char* name) {
  assay_str_printf(out, "%s'%s'", out->len ? ", " : "", name);
}

static void warn_extra(const pg_compare_t* c, int i, const assay_set_t* a, const assay_set_t* b) {
  const pg_words_t* words = pg_words(c->args, listed[i].flag);
  assay_str_t extra = {0}, given = {0}, all = {0};
  for (size_t k = 0; k < words->n; k++) {
    const char* colon = strrchr(words->items[k], ':');
    char* name = strndup(words->items[k], colon ? (size_t)(colon - words->items[k]) : 0);
    if (name) put_name(&given, name);
    if (name && *name && !fits_any(name, a) && !fits_any(name, b)) put_name(&extra, name);
    free(name);
  }
  put_name(&all, "");
  for (size_t k = 0; k < a->n; k++) put_name(&all, a->names[k]);
  for (size_t k = 0; k < b->n; k++)
    if (!assay_set_find(a, b->names[k])) put_name(&all, b->names[k]);
  pg_log_indent(1);
  if (extra.len)
    pg_log(PG_WARNING,
           "Extra items in the %s dictionary: {%s}.\nNote: items requested were: {%s}, but all "
           "items are: {%s}",
           listed[i].in_words, extra.text, assay_str_get(&all), assay_str_get(&given));
  pg_log_indent(-1);
  assay_str_deinit(&extra);
  assay_str_deinit(&given);
  assay_str_deinit(&all);
}

static void unknown(void* self, assay_metric_t metric, const assay_set_t* a, const assay_set_t* b) {
  for (int i = 0; i < N_LISTED; i++)
    if (listed[i].metric == metric) warn_extra(self, i, a, b);
}

// "['l2', 'distance_metrics']": words that choose a metric.
static void put_choices(assay_str_t* out, assay_metric_t metric) {
  assay_str_printf(out, "['%s'", assay_metric_info(metric)->name);
  for (int i = 0; i < N_ALIASES; i++)
    if (aliases[i].metrics[0] == metric || aliases[i].metrics[1] == metric)
      assay_str_printf(out, ", '%s'", aliases[i].name);
  assay_str_append(out, "]");
}

static void warn_unused(const pg_compare_t* c, pg_flag_id_t flag, assay_metric_t metric) {
  const pg_words_t* words = pg_words(c->args, PG_FLAG_compare);
  assay_str_t text = {0};
  if (!pg_given(c->args, flag) || uses(&c->comparison, metric)) return;
  assay_str_append(&text, "Option: ");
  for (const char* p = pg_flags[flag].names; *p; p++)
    assay_str_printf(&text, "%c", *p == ' ' ? '/' : *p);
  assay_str_append(&text, " is only valid for comparison function(s): ");
  put_choices(&text, metric);
  assay_str_append(&text, ". The selected comparison functions are: [");
  for (size_t i = 0; i < words->n; i++)
    assay_str_printf(&text, "%s'%s'", i ? ", " : "", words->items[i]);
  assay_str_append(&text, "], so this option will be ignored.");
  pg_log(PG_WARNING, ASSAY_LINES, assay_str_get(&text));
  assay_str_deinit(&text);
}

static void warn_all_unused(const pg_compare_t* c) {
  static const pg_flag_id_t simple[] = {PG_FLAG_infinities_compare_equal, PG_FLAG_save_heatmaps,
                                        PG_FLAG_save_error_metrics_plot};
  for (int i = 0; i < N_LISTED; i++) warn_unused(c, listed[i].flag, listed[i].metric);
  for (size_t i = 0; i < sizeof simple / sizeof *simple; i++)
    warn_unused(c, simple[i], ASSAY_METRIC_SIMPLE);
}

// ---- all of it ----------------------------------------------------------------------------------

// A function of the user's gives verdicts without numbers, as the comparison of indices does.
static assay_status_t init_scripted(const pg_args_t* a, pg_compare_t* out) {
  if (pg_given(a, PG_FLAG_check_average))
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                       "--check-average cannot be used with --compare-func-script, which gives no "
                       "number to average");
  if (pg_given(a, PG_FLAG_compare))
    pg_log(PG_WARNING, "--compare is ignored, since --compare-func-script was given");
  add_metric(&out->comparison, ASSAY_METRIC_INDICES);
  return NULL;
}

assay_status_t pg_compare_init(const pg_args_t* a, assay_arena_t* arena, pg_compare_t* out) {
  const pg_words_t* words = pg_words(a, PG_FLAG_compare);
  *out = (pg_compare_t){
      .args = a,
      .arena = arena,
      .comparison = {.no_shape_check = pg_given(a, PG_FLAG_no_shape_check),
                     .fail_fast = pg_given(a, PG_FLAG_fail_fast),
                     .check_average = pg_given(a, PG_FLAG_check_average),
                     .infinities_equal = pg_given(a, PG_FLAG_infinities_compare_equal),
                     .heatmaps = pg_text(a, PG_FLAG_save_heatmaps),
                     .plots = pg_text(a, PG_FLAG_save_error_metrics_plot),
                     .tolerances = tolerances,
                     .unknown = unknown,
                     .self = out,
                     .log = pg_compare_log()}};
  if (pg_given(a, PG_FLAG_compare_func_script)) return init_scripted(a, out);
  for (size_t i = 0; i < words->n; i++) ASSAY_TRY(add_word(&out->comparison, words->items[i]));
  ASSAY_TRY(check_values(out));
  ASSAY_TRY(assay_comparing_check(&out->comparison));
  warn_all_unused(out);
  return NULL;
}

void pg_compare_deinit(pg_compare_t* c) {
  assay_free(c->known);
  c->known = NULL;
  c->n_known = c->cap_known = 0;
}

assay_status_t pg_save_accuracy(const pg_args_t* a, const assay_accuracy_results_t* r) {
  const char* path = pg_text(a, PG_FLAG_save_accuracy_results);
  if (!path) return NULL;
  pg_log(PG_INFO, "Saving accuracy results to %s", path);
  return assay_accuracy_results_write(path, r);
}
