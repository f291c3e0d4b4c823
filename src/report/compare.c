// What a comparison found (include/assay/compare.h), as text and JSON.
#include <assay/compare.h>
#include <math.h>

#include "base/shown.h"
#include "io/json.h"
#include "report/report_public.h"

enum { ULP_SLOTS = 65, SHOWN = 8 };

static size_t count_failed(const assay_comparison_t* c) {
  size_t n = 0;
  for (size_t i = 0; i < assay_comparison_count(c); i++) n += !assay_comparison_pair_passed(c, i);
  return n;
}

// ---- text ---------------------------------------------------------------------------------------

static void put_statistics(const assay_comparison_t* c, size_t i, assay_str_t* out) {
  const double max_abs = assay_comparison_statistic(c, i, ASSAY_STATISTIC_MAX_ABS);
  const double snr = assay_comparison_statistic(c, i, ASSAY_STATISTIC_SNR_DB);
  if (isnan(max_abs)) return;
  if (max_abs == 0) {
    assay_str_append(out, "   no error");
    return;
  }
  assay_str_printf(out, "   max abs %.3g, RMS %.3g", max_abs,
                   assay_comparison_statistic(c, i, ASSAY_STATISTIC_RMS));
  if (isfinite(snr)) assay_str_printf(out, ", SNR %.1f dB", snr);
  assay_str_printf(out, ", cosine %.6f", assay_comparison_statistic(c, i, ASSAY_STATISTIC_COSINE));
}

static void put_pair(const assay_comparison_t* c, size_t i, assay_str_t* out) {
  assay_str_append(out, assay_comparison_pair_passed(c, i) ? "  passed  '" : "  failed  '");
  assay_str_shown(out, assay_comparison_name(c, i));
  assay_str_append(out, "'");
  put_statistics(c, i, out);
  if (!assay_comparison_pair_passed(c, i)) {
    assay_str_append(out, "   ");
    assay_str_shown(out, assay_comparison_why(c, i));
  }
  assay_str_append(out, "\n");
}

static void put_text(const assay_comparison_t* c, bool all, assay_str_t* out) {
  const size_t n = assay_comparison_count(c), failed = count_failed(c);
  size_t shown = 0;
  if (failed)
    assay_str_printf(out, "FAILED  %zu of %zu tensors\n", failed, n);
  else if (n)
    assay_str_printf(out, "PASSED  %zu tensor%s\n", n, n == 1 ? "" : "s");
  else
    assay_str_append(out, "FAILED  there is nothing to compare\n");
  for (int passed = 0; passed < 2; passed++)
    for (size_t i = 0; i < n; i++) {
      if (assay_comparison_pair_passed(c, i) != passed || (!all && shown == SHOWN)) continue;
      put_pair(c, i, out);
      shown++;
    }
  if (shown < n) assay_str_printf(out, "  and %zu more\n", n - shown);
}

// ---- JSON ---------------------------------------------------------------------------------------

static json_t* statistics(const assay_comparison_t* c, size_t i) {
  json_t* j = json_object();
  for (int s = 0; s < ASSAY_STATISTIC_COUNT; s++) {
    const double x = assay_comparison_statistic(c, i, (assay_statistic_t)s);
    j = assay_json_put(j, assay_statistic_name((assay_statistic_t)s),
                       isnan(x) ? json_null() : assay_json_number(x));
  }
  return j;
}

// As many slots as there are counts.
static json_t* ulps(const assay_comparison_t* c, size_t i) {
  int n = ULP_SLOTS;
  json_t* list = json_array();
  while (n && !assay_comparison_ulps(c, i, n - 1)) n--;
  for (int k = 0; k < n; k++)
    list = assay_json_push(list, json_integer((json_int_t)assay_comparison_ulps(c, i, k)));
  return list;
}

static json_t* pair(const assay_comparison_t* c, size_t i) {
  return json_pack("{s:o, s:b, s:o, s:o, s:I, s:o}", "name",
                   assay_json_text(assay_comparison_name(c, i)), "passed",
                   (int)assay_comparison_pair_passed(c, i), "why",
                   assay_json_text(assay_comparison_why(c, i)), "statistics", statistics(c, i),
                   "worst_at", (json_int_t)assay_comparison_worst_at(c, i), "ulps", ulps(c, i));
}

static assay_status_t make_json(const assay_comparison_t* c, json_t** out) {
  json_t* pairs = json_array();
  for (size_t i = 0; i < assay_comparison_count(c); i++) pairs = assay_json_push(pairs, pair(c, i));
  json_t* j = json_pack("{s:s, s:b, s:I, s:o}", "schema", "assay.compare/1", "passed",
                        (int)assay_comparison_passed(c), "failed", (json_int_t)count_failed(c),
                        "pairs", pairs);
  if (!j) return assay_status_no_memory();
  *out = j;
  return NULL;
}

// ---- the public face ----------------------------------------------------------------------------

static assay_status_t make(const assay_comparison_t* c, assay_report_kind_t kind,
                           const assay_compare_report_options_t* options, assay_str_t* out) {
  assay_compare_report_options_t o = ASSAY_COMPARE_REPORT_OPTIONS_INIT;
  json_t* json = NULL;
  ASSAY_TRY(assay_report_want_kind(kind, "comparisons"));
  assay_report_options_read(options, options ? options->struct_size : 0, &o, sizeof o);
  if (kind == ASSAY_REPORT_TEXT) return put_text(c, o.all, out), assay_str_status(out);
  assay_status_t st = make_json(c, &json);
  return assay_report_print(st, json, out);
}

assay_status_t assay_comparison_report(const assay_comparison_t* c, assay_report_kind_t kind,
                                       const assay_compare_report_options_t* options,
                                       assay_report_fn_t* write, void* user) {
  assay_str_t text = {0};
  assay_status_t st = make(c, kind, options, &text);
  return assay_report_deliver(st, &text, write, user);
}

assay_status_t assay_comparison_write_report(const assay_comparison_t* c, assay_report_kind_t kind,
                                             const assay_compare_report_options_t* options,
                                             const char* path) {
  return assay_comparison_report(c, kind, options, assay_report_to_file, &path);
}
