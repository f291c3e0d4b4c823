// Statistics and histograms of arrays in the words that Polygraphy prints.
#include "compare/numeric_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/shown.h"

// ---- statistics ---------------------------------------------------------------------------------

static void put_number(assay_str_t* out, const char* name, double x) {
  assay_str_printf(out, "%s=", name);
  assay_numpy_print_g(x, 5, out);
}

// "(1, 2)", where an element is; of no elements 0.
static void put_place(assay_str_t* out, const assay_numeric_t* a, int64_t at) {
  int64_t index[ASSAY_MAX_RANK] = {0};
  assay_str_append(out, " at ");
  if (at < 0) {
    assay_str_append(out, "0");
    return;
  }
  for (int i = a->rank; i-- > 0; at /= a->dims[i]) index[i] = at % a->dims[i];
  assay_numpy_print_shape(a->rank, index, out);
}

assay_status_t assay_put_stats(const assay_numeric_t* a, const assay_numeric_stats_t* known,
                               assay_str_t* out) {
  assay_numeric_stats_t s;
  if (known)
    s = *known;
  else
    ASSAY_TRY(assay_numeric_stats(a, &s));
  put_number(out, "mean", s.mean);
  put_number(out, ", std-dev", s.deviation);
  put_number(out, ", var", s.variance);
  put_number(out, ", median", s.median);
  put_number(out, ", min", s.min.x);
  put_place(out, a, s.min.at);
  put_number(out, ", max", s.max.x);
  put_place(out, a, s.max.at);
  put_number(out, ", avg-magnitude", s.magnitude);
  if (a->number == ASSAY_NUMERIC_BOOL) return NULL;
  put_number(out, ", p90", s.p90);
  put_number(out, ", p95", s.p95);
  put_number(out, ", p99", s.p99);
  return NULL;
}

// ---- histograms ---------------------------------------------------------------------------------

static void put_bins(const assay_numeric_bins_t* b, int64_t fullest, assay_str_t* out) {
  enum { N = ASSAY_NUMERIC_BINS, EDGE = 32, BAR = 40 };
  static const char bar[] = "########################################";
  char edge[N + 1][EDGE];
  int start = 0, end = 0;
  for (int i = 0; i <= N; i++) {
    const int n = snprintf(edge[i], EDGE, "%.3g", b->edges[i]);
    if (n > start) start = n;
    if (i && n > end) end = n;
  }
  assay_str_printf(out, "---- Histogram ----\n%-*s|  Num Elems | Visualization\n", start + end + 5,
                   "Bin Range");
  for (int i = 0; i < N; i++) {
    const int length = (int)(BAR * (double)b->count[i] / (double)fullest);
    assay_str_printf(out, "(%-*s, %-*s) | %10" PRId64 " | %.*s\n", start, edge[i], end, edge[i + 1],
                     b->count[i], length, bar);
  }
}

void assay_put_bins(const assay_numeric_t* a, const assay_numeric_range_t* range,
                    assay_str_t* out) {
  assay_numeric_bins_t bins;
  int64_t fullest = 0;
  if (a->number == ASSAY_NUMERIC_BOOL || !assay_numeric_bins(a, range, &bins)) return;
  for (int i = 0; i < ASSAY_NUMERIC_BINS; i++)
    if (bins.count[i] > fullest) fullest = bins.count[i];
  if (fullest) put_bins(&bins, fullest, out);
}

// ---- values -------------------------------------------------------------------------------------

void assay_put_values(const assay_numeric_t* a, const assay_numpy_style_t* style,
                      assay_str_t* out) {
  const assay_numpy_array_t array = {
      .type = a->type, .rank = a->rank, .dims = a->dims, .n = a->n, .f = a->f, .i = a->i};
  assay_numpy_print(&array, style, out);
}

void assay_put_indented(const char* text, int spaces, assay_str_t* out) {
  for (bool first = true; *text || first; first = false) {
    const size_t n = strcspn(text, "\n");
    assay_str_printf(out, ASSAY_LINES "%*s", first ? "" : "\n", spaces, "");
    assay_str_append_n(out, text, n);
    text += n + (text[n] == '\n');
  }
}
