// What an output's statistics will be at another size of its error, and how large that may be.
#include "tune/forecast.h"

#include <math.h>

#include "base/alloc.h"
#include "base/functions.h"

// ---- gaps ---------------------------------------------------------------------------------------

enum { TOP = 6, MAX_ROWS = 1 << 20 };

static assay_status_t add_gap(double** at, size_t* capacity, size_t n, double gap) {
  ASSAY_TRY(assay_grow(at, capacity, n + 1, sizeof **at));
  (*at)[n] = gap;
  return NULL;
}

// The largest of a row, falling; fewer than TOP are followed by -INFINITY.
static void find_largest(const double* x, int64_t n, double* top) {
  for (int i = 0; i < TOP; i++) top[i] = -(double)INFINITY;
  for (int64_t c = 0; c < n; c++) {
    double v = x[c];
    for (int i = 0; i < TOP; i++)
      if (v > top[i]) {
        const double other = top[i];
        top[i] = v;
        v = other;
      }
  }
}

assay_status_t assay_tune_gaps_add(assay_tune_gaps_t* g, const assay_tensor_t* t) {
  if (!t || t->kind != ASSAY_KIND_TENSOR || t->store != ASSAY_STORE_F64) return NULL;
  if (t->rank < 1 || t->rank > 2 || t->dims[t->rank - 1] < 2) return NULL;
  const int64_t n = t->dims[t->rank - 1];
  for (int64_t row = 0; row < t->size / n && g->n < MAX_ROWS; row++) {
    double top[TOP];
    find_largest(assay_f64(t) + row * n, n, top);
    ASSAY_TRY(add_gap(&g->first, &g->cap_first, g->n, top[0] - top[1]));
    ASSAY_TRY(add_gap(&g->fifth, &g->cap_fifth, g->n, top[4] - top[5]));
    g->n++;
  }
  return NULL;
}

void assay_tune_gaps_deinit(assay_tune_gaps_t* g) {
  assay_free(g->first);
  assay_free(g->fifth);
  *g = (assay_tune_gaps_t){0};
}

// How many of `rows` keep their order, where both neighbours of a gap are off by so much,
// independently.
static int64_t rows_kept(const double* gaps, size_t n, double rms, int64_t rows) {
  double sum = 0;
  for (size_t i = 0; i < n; i++)
    sum += isfinite(gaps[i]) && rms > 0 ? 0.5 * assay_erfc(-gaps[i] / (2 * rms)) : 1;
  return n ? llround(sum / (double)n * (double)rows) : rows;
}

// ---- statistics ---------------------------------------------------------------------------------

double assay_tune_mean_square(const assay_output_check_t* o) {
  if (o->is_float) return o->error.finite ? o->error.sum_err2 / (double)o->error.finite : 0;
  if (o->quantized && o->steps.n) return o->steps.difference2 / (double)o->steps.n;
  return (double)o->differing * (double)o->differing;
}

assay_output_check_t assay_tune_forecast(const assay_output_check_t* measured,
                                         const assay_tune_gaps_t* gaps, double ratio) {
  assay_output_check_t o = *measured;
  assay_output_resize(&o, ratio);
  if (gaps && gaps->n && o.is_float) {
    const double rms = sqrt(assay_tune_mean_square(&o));
    o.top1 = rows_kept(gaps->first, gaps->n, rms, o.rows);
    o.top5 = rows_kept(gaps->fifth, gaps->n, rms, o.rows);
  }
  return o;
}

// ---- how large an error may be ------------------------------------------------------------------

static bool holds_at(const assay_output_check_t* measured, const assay_tune_gaps_t* gaps,
                     const assay_requirements_t* require, double ratio) {
  const assay_output_check_t o = assay_tune_forecast(measured, gaps, ratio);
  return assay_output_holds(&o, require);
}

double assay_tune_largest_ratio(const assay_output_check_t* measured, const assay_tune_gaps_t* gaps,
                                const assay_requirements_t* require) {
  enum { OCTAVES = 60, HALVINGS = 40 };
  double low = -OCTAVES, high = OCTAVES;
  if (holds_at(measured, gaps, require, assay_exp2(high))) return (double)INFINITY;
  if (!holds_at(measured, gaps, require, assay_exp2(low))) return 0;
  for (int k = 0; k < HALVINGS; k++) {
    const double middle = (low + high) / 2;
    if (holds_at(measured, gaps, require, assay_exp2(middle)))
      low = middle;
    else
      high = middle;
  }
  return assay_exp2(low);
}
