// Comparisons that are one number, and those of indices.
#include <inttypes.h>
#include <math.h>

#include "base/alloc.h"
#include "base/functions.h"
#include "compare/comparison_internal.h"
#include "io/numpy_text.h"

enum { DEPTH = 2 };

// ---- one number ---------------------------------------------------------------------------------

// Squares: of floats and uint64 in float64, of other integers in int64, as Polygraphy has them.
static assay_status_t square(const assay_numeric_t* a, assay_numeric_t* out) {
  const bool whole = a->i && a->number != ASSAY_NUMERIC_U64;
  ASSAY_TRY(assay_numeric_like(a, whole ? ASSAY_NUMERIC_I64 : ASSAY_NUMERIC_F64, out));
  for (int64_t i = 0; i < a->n; i++) {
    const double x = assay_numeric_at(a, i);
    if (whole)
      out->i[i] = (int64_t)((uint64_t)a->i[i] * (uint64_t)a->i[i]);
    else
      out->f[i] = x * x;
  }
  return NULL;
}

// Sum and mean of the squares.
typedef struct squares {
  double sum, mean;
} squares_t;

static assay_status_t square_sums(const assay_numeric_t* a, squares_t* out) {
  assay_numeric_t p = {0};
  ASSAY_TRY(square(a, &p));
  *out =
      (squares_t){.sum = assay_numeric_sum(&p), .mean = assay_numeric_mean(&p, ASSAY_NUMERIC_F64)};
  assay_numeric_deinit(&p);
  return NULL;
}

static assay_status_t noise(const assay_compare_job_t* j, squares_t* out) {
  assay_numeric_t d = {0};
  ASSAY_TRY(assay_numeric_subtract(&j->a, &j->b, &d));
  assay_status_t st = square_sums(&d, out);
  assay_numeric_deinit(&d);
  return st;
}

static assay_status_t l2(const assay_compare_job_t* j, double* out) {
  squares_t d;
  ASSAY_TRY(noise(j, &d));
  *out = sqrt(d.sum);
  return NULL;
}

static assay_status_t cosine(const assay_compare_job_t* j, double* out) {
  assay_numeric_t p = {0};
  squares_t a, b;
  ASSAY_TRY(assay_numeric_multiply(&j->a, &j->b, &p));
  const double dot = assay_numeric_sum(&p);
  assay_numeric_deinit(&p);
  ASSAY_TRY(square_sums(&j->a, &a));
  ASSAY_TRY(square_sums(&j->b, &b));
  if (a.sum == 0 || b.sum == 0) {
    *out = a.sum == 0 && b.sum == 0;
    return NULL;
  }
  const double x = dot / (sqrt(a.sum) * sqrt(b.sum));
  *out = x > 1 ? 1 : x < -1 ? -1 : x;
  return NULL;
}

static assay_status_t psnr(const assay_compare_job_t* j, double* out) {
  squares_t d;
  ASSAY_TRY(noise(j, &d));
  const double max = assay_numeric_max(&j->a).x;
  *out = d.mean == 0 ? (double)INFINITY
                     : 20 * assay_log10(max <= 0 ? 1 : max) - 10 * assay_log10(d.mean);
  return NULL;
}

static assay_status_t snr(const assay_compare_job_t* j, double* out) {
  squares_t signal, d;
  ASSAY_TRY(square_sums(&j->a, &signal));
  ASSAY_TRY(noise(j, &d));
  if (d.mean == 0)
    *out = INFINITY;
  else if (signal.mean == 0)
    *out = -INFINITY;
  else
    *out = 10 * assay_log10(signal.mean / d.mean);
  return NULL;
}

static assay_status_t (*const numbers[ASSAY_N_METRICS])(const assay_compare_job_t* j,
                                                        double* out) = {
    [ASSAY_METRIC_L2] = l2,
    [ASSAY_METRIC_COSINE] = cosine,
    [ASSAY_METRIC_PSNR] = psnr,
    [ASSAY_METRIC_SNR] = snr,
};

assay_status_t assay_compare_one_number(assay_compare_job_t* j, assay_metric_t metric,
                                        assay_compared_t* out) {
  assay_str_t text = {0};
  bool passed = false;
  assay_numeric_widen(&j->a);
  assay_numeric_widen(&j->b);
  ASSAY_TRY(numbers[metric](j, &out->value));
  out->measured = out->known = true;
  out->threshold.limit = j->tolerances.limit[metric];
  ASSAY_TRY(assay_compared_passed(metric, out, &passed));
  assay_compared_describe(metric, out, passed, &text);
  return assay_log_text(&j->run->comparison->log, passed ? ASSAY_LOG_FINISH : ASSAY_LOG_ERROR,
                        DEPTH, &text);
}

// ---- indices ------------------------------------------------------------------------------------

static void put_element(const assay_numeric_t* a, int64_t i, assay_str_t* out) {
  const assay_numpy_array_t one = {
      .type = a->type, .n = 1, .f = a->f ? a->f + i : NULL, .i = a->i ? a->i + i : NULL};
  const assay_numpy_style_t style = ASSAY_NUMPY_STYLE;
  assay_numpy_print(&one, &style, out);
}

static bool equal(const assay_numeric_t* a, int64_t i, const assay_numeric_t* b, int64_t k) {
  if (a->i && b->i) return a->i[i] == b->i[k];
  return assay_numeric_at(a, i) == assay_numeric_at(b, k);
}

// Where an element of a row of a is in the row of b, from its begin; n: nowhere.
static int64_t find(const assay_compare_job_t* j, int64_t row, int64_t n, int64_t i) {
  int64_t k = 0;
  if (equal(&j->a, row + i, &j->b, row + i)) return i;
  while (k < n && !equal(&j->a, row + i, &j->b, row + k)) k++;
  return k;
}

static assay_status_t check_index(const assay_compare_job_t* j, int64_t row, int64_t n, int64_t i,
                                  bool* passed) {
  const assay_compare_log_t* log = &j->run->comparison->log;
  const int64_t tolerance = j->tolerances.index_tolerance, k = find(j, row, n, i);
  const int64_t distance = k > i ? k - i : i - k;
  assay_str_t text = {0};
  if (k < n && distance <= tolerance) return NULL;
  *passed = false;
  if (k < n) {
    assay_str_printf(&text, "FAILED | Difference exceeds index tolerance (%" PRId64 ")", tolerance);
  } else {
    assay_str_append(&text, "FAILED | Value: ");
    put_element(&j->a, row + i, &text);
    assay_str_append(&text, " not found in output");
  }
  return assay_log_text(log, ASSAY_LOG_ERROR, DEPTH, &text);
}

assay_status_t assay_compare_indices(assay_compare_job_t* j, assay_compared_t* out) {
  const assay_comparing_settings_t* s = j->run->comparison;
  const int64_t n = j->a.rank ? j->a.dims[j->a.rank - 1] : 1,
                tolerance = j->tolerances.index_tolerance;
  const int64_t last = tolerance < n ? n - tolerance : 0;
  bool passed = true;
  if (!assay_numeric_same_shape(&j->a, &j->b)) {
    assay_compare_log(&s->log, ASSAY_LOG_ERROR, DEPTH,
                      "Cannot compare outputs of different shapes.");
    return NULL;
  }
  for (int64_t row = 0; n && row < j->a.n; row += n) {
    for (int64_t i = 0; i < last; i++) {
      ASSAY_TRY(check_index(j, row, n, i, &passed));
      if (!passed && s->fail_fast) return NULL;
    }
  }
  out->verdict = passed;
  if (passed)
    assay_compare_log(&s->log, ASSAY_LOG_FINISH, DEPTH,
                      "PASSED | Difference is within index tolerance (%" PRId64 ")", tolerance);
  return NULL;
}
