// A constant that is a function of the one that is there: what was not computed of a checkpoint's
// numbers, or was computed twice.
//
// Frameworks keep logarithms of rates, roots of variances, scales less one, noise of each step, and
// compute what is used when a model is loaded: exp, softplus, running products. Each function that
// is likely is tried on the whole constant, and the node has to give golden with it. Nothing is
// fitted, so one output is enough if its numbers are not ones that many functions have.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/functions.h"
#include "diagnose/solve/formulas/along.h"
#include "diagnose/solve/formulas/curves.h"
#include "diagnose/solve/missing.h"

static double negative(double x) { return -x; }
static double rest(double x) { return 1 - x; }
static double plus_1(double x) { return 1 + x; }
static double less_1(double x) { return x - 1; }
static double negative_exp(double x) { return -assay_exp(x); }
static double exp_of_negative(double x) { return assay_exp(-x); }
static double negative_log(double x) { return -assay_log(x); }
static double root_of_exp(double x) { return assay_exp(x / 2); }
static double log_of_square(double x) { return 2 * assay_log(x); }
static double root_of_rest(double x) { return sqrt(1 - x); }
static double inverse_square(double x) { return 1 / (x * x); }
static double power_of_2(double x) { return assay_pow(2, x); }
static double power_of_10(double x) { return assay_pow(10, x); }
static double log_2(double x) { return assay_log(x) / 0.69314718055994531; }
static double log_10(double x) { return assay_log(x) / 2.302585092994046; }
static double radians(double x) { return x * 3.14159265358979323846 / 180; }
static double degrees(double x) { return x * 180 / 3.14159265358979323846; }
static double over_255(double x) { return x / 255; }
static double times_255(double x) { return x * 255; }
static double logit(double x) { return assay_log(x / (1 - x)); }
static double inverse_softplus(double x) { return assay_log(assay_expm1(x)); }
static double log_1(double x) { return assay_log1p(x); }
static double expm1_of(double x) { return assay_expm1(x); }
static double sign(double x) { return (x > 0) - (x < 0); }

// Beside those of curves.h.
static const struct {
  const char* says;
  double (*of)(double x);
} FUNCTIONS[] = {
    {"-x", negative},
    {"1 - x", rest},
    {"1 + x", plus_1},
    {"x - 1", less_1},
    {"-exp(x)", negative_exp},
    {"exp(-x)", exp_of_negative},
    {"-log(x)", negative_log},
    {"exp(x / 2)", root_of_exp},
    {"2 log(x)", log_of_square},
    {"sqrt(1 - x)", root_of_rest},
    {"1 / x^2", inverse_square},
    {"2^x", power_of_2},
    {"10^x", power_of_10},
    {"log2(x)", log_2},
    {"log10(x)", log_10},
    {"radians of degrees", radians},
    {"degrees of radians", degrees},
    {"x / 255", over_255},
    {"255 x", times_255},
    {"log(x / (1 - x))", logit},
    {"log(exp(x) - 1)", inverse_softplus},
    {"log(1 + x)", log_1},
    {"exp(x) - 1", expm1_of},
    {"the sign", sign},
};

static bool is_finite(const assay_tensor_t* t) {
  for (int64_t i = 0; i < t->size; i++)
    if (!isfinite(assay_f64(t)[i])) return false;
  return true;
}

static assay_repair_t repair_of(const assay_missing_search_t* s, size_t input) {
  assay_repair_t r = {.node = s->node, .cause = "constant not computed", .n_edits = 1};
  r.edits[0] = (assay_repair_edit_t){.kind = ASSAY_EDIT_CONSTANT, .input = input};
  return r;
}

static assay_status_t offer(assay_missing_search_t* s, assay_repair_t* r) {
  return is_finite(r->edits[0].tensor) ? assay_missing_offer(s, r) : NULL;
}

// Element by element.
static assay_status_t by_element(assay_missing_search_t* s, size_t input, const char* says,
                                 double (*of)(double x)) {
  const assay_tensor_t* was = s->in[input];
  assay_repair_t r = repair_of(s, input);
  ASSAY_TRY(assay_tensor_create(was->type, was->rank, was->dims, &r.edits[0].tensor));
  for (int64_t i = 0; i < was->size; i++) assay_f64(r.edits[0].tensor)[i] = of(assay_f64(was)[i]);
  snprintf(r.text, sizeof r.text, "'%.100s' is %s of what is there", s->node->inputs[input]->name,
           says);
  assay_status_t st = offer(s, &r);
  assay_repair_deinit(&r);
  return st;
}

// Row by row along an axis. rows: room for two.
static assay_status_t by_row(assay_missing_search_t* s, size_t input, int axis,
                             const assay_along_kind_t* k, double* rows) {
  const assay_tensor_t* was = s->in[input];
  const int64_t n = was->dims[axis], inner = assay_dims_product(was->dims, axis + 1, was->rank);
  assay_repair_t r = repair_of(s, input);
  ASSAY_TRY(assay_tensor_create(was->type, was->rank, was->dims, &r.edits[0].tensor));
  for (int64_t row = 0; row < was->size / n; row++) {
    const int64_t at = row / inner * inner * n + row % inner;
    for (int64_t i = 0; i < n; i++) rows[i] = assay_f64(was)[at + i * inner];
    k->of(rows, n, rows + n);
    for (int64_t i = 0; i < n; i++) assay_f64(r.edits[0].tensor)[at + i * inner] = rows[n + i];
  }
  snprintf(r.text, sizeof r.text, "'%.100s' is the %s along axis %d of what is there",
           s->node->inputs[input]->name, k->says, axis);
  assay_status_t st = offer(s, &r);
  assay_repair_deinit(&r);
  return st;
}

static assay_status_t by_rows(assay_missing_search_t* s, size_t input, int axis) {
  double* rows = NULL;
  const int64_t n = s->in[input]->dims[axis];
  if (n < 2) return NULL;
  ASSAY_TRY(assay_new_array((size_t)(2 * n), sizeof *rows, &rows));
  assay_status_t st = NULL;
  for (size_t i = 0; !st && i < assay_along_count() && !assay_missing_is_over(s); i++)
    st = by_row(s, input, axis, assay_along_get(i), rows);
  assay_free(rows);
  return st;
}

static assay_status_t remake(assay_missing_search_t* s, size_t input) {
  for (size_t i = 0; i < sizeof FUNCTIONS / sizeof *FUNCTIONS && !assay_missing_is_over(s); i++)
    ASSAY_TRY(by_element(s, input, FUNCTIONS[i].says, FUNCTIONS[i].of));
  for (size_t i = 0; i < assay_curve_count() && !assay_missing_is_over(s); i++) {
    const assay_curve_kind_t* f = assay_curve_get(i);
    if (f->of) ASSAY_TRY(by_element(s, input, f->name, f->of));
  }
  for (int axis = 0; axis < s->in[input]->rank && !assay_missing_is_over(s); axis++)
    ASSAY_TRY(by_rows(s, input, axis));
  return NULL;
}

// Whether what is wrong could hardly be met by chance: several elements, or one of many digits.
static bool is_telling(const assay_missing_search_t* s, const assay_tensor_t* want) {
  enum { SEVERAL = 4 };
  const assay_tensor_t* is = s->target->truth;
  int64_t off = 0;
  if (!is || !assay_tensor_alike(is, want)) return false;
  for (int64_t i = 0; i < want->size && off < SEVERAL; i++) {
    const double w = assay_f64(want)[i];
    char text[32];
    snprintf(text, sizeof text, "%.4g", w);
    if (!(fabs(assay_f64(is)[i] - w) > 1e-6 * fabs(w))) continue;
    off += fabs(strtod(text, NULL) - w) > 1e-6 * fabs(w) ? SEVERAL : 1;
  }
  return off >= SEVERAL;
}

assay_status_t assay_missing_remade(assay_missing_search_t* s, const assay_tensor_t* want) {
  static const int64_t LARGEST = 1 << 20;  // elements
  if (want->store != ASSAY_STORE_F64 || !want->size || !is_telling(s, want)) return NULL;
  for (size_t i = 0; i < s->n_in && !assay_missing_is_over(s); i++) {
    const assay_value_t* v = s->node->inputs[i];
    const assay_tensor_t* t = s->in[i];
    if (!v || !v->constant || !t || t->kind != ASSAY_KIND_TENSOR || t->store != ASSAY_STORE_F64 ||
        !t->size || t->size > LARGEST)
      continue;
    ASSAY_TRY(remake(s, i));
  }
  return NULL;
}
