// How comparisons print: lines with their severity and depth.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/shown.h"
#include "compare/comparison_internal.h"
#include "compare/numeric_text.h"

bool assay_log_shows(const assay_compare_log_t* log, assay_severity_t severity) {
  return log->line && (!log->shows || log->shows(log->self, severity));
}

assay_status_t assay_log_text(const assay_compare_log_t* log, assay_severity_t severity, int depth,
                              assay_str_t* take_text) {
  assay_status_t st = assay_str_status(take_text);
  while (!st && take_text->len && take_text->text[take_text->len - 1] == '\n')
    take_text->text[--take_text->len] = 0;
  if (!st && assay_log_shows(log, severity))
    log->line(log->self, severity, depth, assay_str_get(take_text));
  assay_str_deinit(take_text);
  return st;
}

void assay_compare_log(const assay_compare_log_t* log, assay_severity_t severity, int depth,
                       const char* format, ...) {
  assay_str_t text = {0};
  va_list args;
  if (!assay_log_shows(log, severity)) return;
  va_start(args, format);
  assay_str_vprintf(&text, format, args);
  va_end(args);
  log->line(log->self, severity, depth, text.failed ? "(out of memory)" : assay_str_get(&text));
  assay_str_deinit(&text);
}

assay_status_t assay_log_once(const assay_compare_log_t* log, assay_set_t* said,
                              assay_severity_t severity, int depth, const char* text) {
  assay_tensor_t* mark = NULL;
  for (size_t i = 0; i < said->n; i++)
    if (strcmp(said->names[i], text) == 0) return NULL;
  ASSAY_TRY(assay_tensor_scalar_i64(ASSAY_TYPE_BOOL, 1, &mark));
  ASSAY_TRY(assay_set_add(said, text, mark));
  assay_compare_log(log, severity, depth, ASSAY_LINES, text);
  return NULL;
}

assay_status_t assay_log_array(const assay_compare_log_t* log, assay_severity_t severity, int depth,
                               const char* heading, int indent, const assay_numeric_t* a) {
  const assay_numpy_style_t style = ASSAY_NUMPY_STYLE;
  assay_str_t values = {0}, text = {0};
  if (!assay_log_shows(log, severity)) return NULL;
  assay_put_values(a, &style, &values);
  assay_str_printf(&text, "%s\n", heading);
  assay_put_indented(assay_str_get(&values), indent, &text);
  text.failed |= values.failed;
  assay_str_deinit(&values);
  return assay_log_text(log, severity, depth, &text);
}

assay_status_t assay_log_stats(const assay_compare_log_t* log, int depth, const char* prefix,
                               const assay_numeric_t* a, const assay_numeric_stats_t* stats,
                               bool failed, const assay_numeric_range_t* range) {
  enum { SMALL = 100, INDENT = 4 };  // arrays of so many elements are shown as a whole
  const assay_severity_t severity = failed ? ASSAY_LOG_INFO : ASSAY_LOG_VERBOSE;
  assay_str_t text = {0}, bins = {0};
  if (!assay_log_shows(log, ASSAY_LOG_INFO)) return NULL;
  assay_str_append(&text, prefix);
  assay_status_t st = assay_put_stats(a, stats, &text);
  st = assay_status_join(st, assay_log_text(log, ASSAY_LOG_INFO, depth, &text));
  if (st || !assay_log_shows(log, severity)) return st;
  if (a->n <= SMALL)
    ASSAY_TRY(assay_log_array(log, severity, depth + 1, "---- Values ----", INDENT, a));
  assay_put_bins(a, range, &bins);
  return assay_log_text(log, severity, depth + 1, &bins);
}

// ---- validation ---------------------------------------------------------------------------------

// Tells of one kind of element that should not be there.
static assay_status_t report_unfinite(const assay_compare_log_t* log, int depth,
                                      const assay_numeric_t* a, bool nan, const char* found,
                                      const char* note, const char* places, assay_set_t* said,
                                      bool* valid) {
  assay_numeric_t where = {0};
  bool any = false;
  for (int64_t i = 0; a->f && !any && i < a->n; i++)
    any = nan ? isnan(a->f[i]) : !isfinite(a->f[i]);
  if (!any) return NULL;
  *valid = false;
  assay_compare_log(log, ASSAY_LOG_ERROR, depth, "%s", found);
  ASSAY_TRY(assay_log_once(log, said, ASSAY_LOG_INFO, depth, note));
  if (!assay_log_shows(log, ASSAY_LOG_EXTRA)) return NULL;
  ASSAY_TRY(assay_numeric_like(a, ASSAY_NUMERIC_BOOL, &where));
  for (int64_t i = 0; i < a->n; i++) where.i[i] = nan ? isnan(a->f[i]) : !isfinite(a->f[i]);
  assay_status_t st = assay_log_array(log, ASSAY_LOG_EXTRA, depth, places, 0, &where);
  assay_numeric_deinit(&where);
  return st;
}

static assay_status_t validate(const assay_compare_log_t* log, int depth, const char* name,
                               const assay_numeric_t* a, assay_set_t* said, bool* valid) {
  ASSAY_TRY(assay_log_stats(log, depth, "", a, NULL, false, NULL));
  ASSAY_TRY(report_unfinite(
      log, depth, a, true, "NaN Detected | One or more NaNs were encountered in this output",
      "Note: Use -vv or set logging verbosity to EXTRA_VERBOSE to display locations of NaNs",
      "Note: NaNs at:", said, valid));
  ASSAY_TRY(report_unfinite(
      log, depth, a, false,
      "Inf Detected | One or more non-finite values were encountered in this output",
      "Note: Use -vv or set logging verbosity to EXTRA_VERBOSE to display non-finite values",
      "Note: non-finite values at:", said, valid));
  if (*valid)
    assay_compare_log(log, ASSAY_LOG_FINISH, depth, "PASSED | Output: %s is valid", name);
  else
    assay_compare_log(log, ASSAY_LOG_ERROR, depth, "FAILED | Errors detected in output: %s", name);
  return NULL;
}

assay_status_t assay_validate_output(const assay_compare_log_t* log, int depth, const char* prefix,
                                     const char* name, assay_tensor_t* t, assay_set_t* said,
                                     bool* out_valid) {
  assay_numeric_t a = {0};
  bool valid = true;
  ASSAY_TRY(assay_numeric_from(t, &a));
  assay_compare_log(log, ASSAY_LOG_START, depth,
                    "%sValidating output: %s (check_inf=True, check_nan=True)", prefix, name);
  assay_status_t st = validate(log, depth + 1, name, &a, said, &valid);
  assay_numeric_deinit(&a);
  if (!st) *out_valid = valid;
  return st;
}
