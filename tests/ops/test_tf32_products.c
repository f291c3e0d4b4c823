// Sums of products of tf32 parts: the parts; the error model of the accuracy gate beside sums that
// are made here, as tensor cores make them; bounds that hold for them; weights that are kept out.
#include <math.h>

#include "ops/matmul/tf32_products.h"
#include "ops/op_case.h"

enum { COLUMNS = 8, STEP = 8, UNIT = 16, MAX = 1024 };

static double uniform(uint64_t* state) {
  *state = *state * 6364136223846793005u + 1442695040888963407u;
  return (double)(int64_t)(*state >> 11) / 0x1p52 - 1;
}

static float number(uint64_t* state) {
  return (float)(uniform(state) + uniform(state) + uniform(state));
}

static uint32_t bits_of(float x) {
  uint32_t b;
  memcpy(&b, &x, sizeof b);
  return b;
}

static void parts_add_up(void** state) {
  (void)state;
  static const float given[] = {
      1,          1.5F,       3.14159274F,     -2.71828175F,     0x1.ffffffp0F,
      0x1.001p0F, 0x1.003p0F, 0x1.fffffep127F, -0x1.fffffep127F, 0x1p-100F,
      0,          -0.0F};
  for (size_t i = 0; i < sizeof given / sizeof *given; i++) {
    const float x = given[i], b = assay_tf32_part(x), s = assay_tf32_rest(x, b);
    assert_int_equal(bits_of(b) & 0x1fff, 0);
    assert_int_equal(bits_of(s) & 0x1fff, 0);
    assert_true(isfinite(b) && isfinite(s));
    assert_true(fabs((double)x - (double)b - (double)s) <= 0x1p-21 * fabs((double)x));
  }
  assert_true(isinf(assay_tf32_part(INFINITY)) && isnan(assay_tf32_part(NAN)));
  assert_true(assay_tf32_part(0x1.001p0F) == 1 && assay_tf32_part(0x1.003p0F) == 0x1.004p0F);
}

// ---- sums, made as tensor cores make them -------------------------------------------------------

static double cut(double x, int below) { return ldexp(trunc(ldexp(x, -below)), below); }

static float step(float before, const float* a, const float* b, int n) {
  int top = before != 0 ? ilogb((double)before) : -1000;
  double sum = 0;
  for (int i = 0; i < n; i++)
    if (a[i] != 0 && b[i] != 0 && ilogb((double)a[i]) + ilogb((double)b[i]) > top)
      top = ilogb((double)a[i]) + ilogb((double)b[i]);
  if (top == -1000) return before;
  sum = cut((double)before, top - 25);
  for (int i = 0; i < n; i++) sum += cut((double)a[i] * (double)b[i], top - 25);
  return sum == 0 ? 0 : (float)cut(sum, ilogb(sum) - 23);
}

static float sum_of(int n, const float* x, const float* w) {
  float b[2][MAX], s[2][MAX], all = 0;
  for (int i = 0; i < n; i++) {
    b[0][i] = assay_tf32_part(x[i]), s[0][i] = assay_tf32_rest(x[i], b[0][i]);
    b[1][i] = assay_tf32_part(w[i]), s[1][i] = assay_tf32_rest(w[i], b[1][i]);
  }
  for (int u = 0; u < n; u += UNIT) {
    float sum = 0;
    for (int p = 0; p < 3; p++)
      for (int i = u; i < n && i < u + UNIT; i += STEP)
        sum = step(sum, (p == 0 ? s : b)[0] + i, (p == 1 ? s : b)[1] + i,
                   n - i < STEP ? n - i : STEP);
    all += sum;
  }
  return all;
}

static void make_weights(int n, bool positive, float scale, float* w) {
  uint64_t seed = 11;
  for (int i = 0; i < COLUMNS * n; i++) {
    w[i] = scale * number(&seed);
    if (positive) w[i] = fabsf(w[i]);
  }
}

static assay_sum_account_t judged(int n, const float* w) {
  const assay_split_weights_t all = {w, COLUMNS, n, n, 1};
  assay_sum_account_t a;
  op_case_ok(assay_tf32_judge(&all, &a));
  return a;
}

// Own errors beside plain ones, of inputs of mean zero or of one sign.
static double measured(int n, const float* w, bool positive, double* worst) {
  enum { SUMS = 400 };
  uint64_t inputs = 29;
  double own2 = 0, plain2 = 0;
  const assay_rounding_t rounding = {.accumulator = ASSAY_FORMAT_FP32,
                                     .compute = ASSAY_FORMAT_FP32,
                                     .algorithm = ASSAY_ALGORITHM_TF32_3};
  const assay_factor_t f = assay_bound_sum(&rounding, n);
  for (int s = 0; s < SUMS; s++) {
    const float* of = w + s % COLUMNS * n;
    float x[MAX], plain = 0;
    double truth = 0, size = 0;
    for (int i = 0; i < n; i++) {
      x[i] = positive ? fabsf(number(&inputs)) : number(&inputs);
      plain = fmaf(x[i], of[i], plain);
      truth += (double)x[i] * (double)of[i];
      size += fabs((double)x[i] * (double)of[i]);
    }
    const double own = (double)sum_of(n, x, of) - truth;
    own2 += own * own;
    plain2 += ((double)plain - truth) * ((double)plain - truth);
    *worst = fmax(*worst, fabs(own) / (f.guaranteed * size));
  }
  return sqrt(own2 / plain2);
}

static void model_is_near_sums(void** state) {
  (void)state;
  static const int sizes[] = {27, 64, 147, 256, 768};
  float* w = NULL;
  op_case_ok(assay_new_array(COLUMNS * MAX, sizeof *w, &w));
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
    for (int positive = 0; positive < 2; positive++) {
      const int n = sizes[i];
      make_weights(n, positive, 1, w);
      const assay_sum_account_t a = judged(n, w);
      double worst = 0;
      const double zero = measured(n, w, false, &worst), one = measured(n, w, true, &worst);
      const double own = fmax(zero, one), model = a.own / a.plain;
      print_message("%d terms%s: %.2f and %.2f of plain's, by the model %.2f; %.2f of the bound\n",
                    n, positive ? ", positive" : "", zero, one, model, worst);
      assert_true(worst < 1 && worst > 0.002);
      if (own > 1.3 * model || own < 0.35 * model)
        fail_msg("%d terms: %.3g of plain's, by the model %.3g", n, own, model);
    }
  assay_free(w);
}

static void weights_are_kept_out(void** state) {
  (void)state;
  float w[COLUMNS * 64];
  static const float others[] = {4096, INFINITY, NAN, 1e-35F};
  make_weights(64, false, 1, w);
  assert_true(judged(64, w).max > 0);
  w[70] = 0;
  assert_true(judged(64, w).max > 0);
  for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
    w[70] = others[i];
    assert_true(judged(64, w).max == 0);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(parts_add_up),
                                     cmocka_unit_test(model_is_near_sums),
                                     cmocka_unit_test(weights_are_kept_out)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
