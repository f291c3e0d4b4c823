// The error model of sums of products of parts says what the accuracy gates of fp32 rest on: how it
// grows with the terms, beside sums that are made here; and that it keeps out weights that parts
// cannot hold.
#include <math.h>

#include "ops/matmul/split_products.h"
#include "ops/op_case.h"

enum { COLUMNS = 8 };

static double uniform(uint64_t* state) {
  *state = *state * 6364136223846793005u + 1442695040888963407u;
  return (double)(int64_t)(*state >> 11) / 0x1p52 - 1;
}

static float weight(uint64_t* state) {
  return (float)(uniform(state) + uniform(state) + uniform(state));
}

static assay_sum_account_t judged(assay_algorithm_t algorithm, int64_t n, float scale,
                                  float special) {
  uint64_t seed = 11;
  float* w = NULL;
  assay_sum_account_t account;
  op_case_ok(assay_new_array((size_t)(COLUMNS * n), sizeof *w, &w));
  for (int64_t i = 0; i < COLUMNS * n; i++) w[i] = scale * weight(&seed);
  if (special != 0) w[COLUMNS * n / 2] = special;
  const assay_split_weights_t by_columns = {w, COLUMNS, n, n, 1};
  op_case_ok(assay_split_judge(algorithm, &by_columns, &account));
  assay_free(w);
  return account;
}

// ---- sums, made as they are defined ---------------------------------------------------------

static float bf16(float x) {
  uint32_t b;
  memcpy(&b, &x, sizeof b);
  b = (b + 0x7fff + (b >> 16 & 1)) & 0xffff0000u;
  memcpy(&x, &b, sizeof x);
  return x;
}

static void split(float x, float* parts) {
  parts[0] = bf16(x);
  parts[1] = bf16(x - parts[0]);
  parts[2] = x - parts[0] - parts[1];
}

static float sum_of(int parts, int64_t n, const float* x, const float* w) {
  static const int left[2][6] = {{1, 0, 0}, {2, 1, 1, 0, 0, 0}};
  static const int right[2][6] = {{0, 0, 1}, {0, 0, 1, 1, 0, 2}};
  float sum = 0;
  for (int64_t u = 0; u < n; u += ASSAY_SPLIT_UNIT)
    for (int p = 0; p < (parts == 2 ? 3 : 6); p++) {
      float chain[2] = {0};
      for (int64_t i = u; i < n && i < u + ASSAY_SPLIT_UNIT; i++) {
        float a[3], b[3];
        split(x[i], a);
        split(w[i], b);
        chain[i % 2] = fmaf(a[left[parts - 2][p]], b[right[parts - 2][p]], chain[i % 2]);
      }
      sum += chain[0] + chain[1];
    }
  return sum;
}

static void model_is_near_sums(void** state) {
  (void)state;
  enum { N = 400, SUMS = 400 };
  for (int parts = 2; parts <= 3; parts++)
    for (int sign = 0; sign < 2; sign++) {
      const assay_sum_account_t a =
          judged(parts == 2 ? ASSAY_ALGORITHM_SPLIT_3 : ASSAY_ALGORITHM_SPLIT_6, N, 1, 0);
      uint64_t seed = 11, inputs = 29;
      double own2 = 0, plain2 = 0;
      float w[COLUMNS][N];
      for (int i = 0; i < COLUMNS * N; i++) w[i / N][i % N] = weight(&seed);
      for (int s = 0; s < SUMS; s++) {
        float x[N], plain = 0;
        double truth = 0;
        for (int i = 0; i < N; i++) {
          x[i] = sign ? fabsf(weight(&inputs)) : weight(&inputs);
          plain = fmaf(x[i], w[s % COLUMNS][i], plain);
          truth += (double)x[i] * (double)w[s % COLUMNS][i];
        }
        const double own = (double)sum_of(parts, N, x, w[s % COLUMNS]) - truth;
        own2 += own * own;
        plain2 += ((double)plain - truth) * ((double)plain - truth);
      }
      // Parts' own errors are at most as large as the model has them.
      const double measured = sqrt(own2 / plain2), model = a.own / a.plain;
      if (measured > 1.3 * model || measured < 0.4 * model)
        fail_msg("%d parts, sign %d: %.3g of plain's, by the model %.3g", parts, sign, measured,
                 model);
    }
}

static void model_tells_algorithms_apart(void** state) {
  (void)state;
  double before = INFINITY;
  for (int64_t n = 16; n <= 4096; n *= 4) {
    const assay_sum_account_t three = judged(ASSAY_ALGORITHM_SPLIT_3, n, 1, 0);
    const assay_sum_account_t six = judged(ASSAY_ALGORITHM_SPLIT_6, n, 1, 0);
    assert_true(six.own < 2 * six.plain && six.own < three.own);
    assert_true(three.bound > 0 && six.bound > 0);
    assert_true(three.own / three.plain < before);  // relatively smaller in long sums
    before = three.own / three.plain;
  }
  const assay_sum_account_t few = judged(ASSAY_ALGORITHM_SPLIT_3, 100, 1, 0);
  const assay_sum_account_t many = judged(ASSAY_ALGORITHM_SPLIT_3, 800, 1, 0);
  assert_true(few.six_sigma > few.bound);
  assert_true(many.six_sigma < many.bound);
}

// The places of the weights in memory do not matter.
static void weights_lie_either_way(void** state) {
  (void)state;
  enum { N = 70 };
  uint64_t seed = 3;
  float rows[COLUMNS * N], columns[COLUMNS * N];
  for (int i = 0; i < COLUMNS * N; i++) {
    columns[i] = weight(&seed);
    rows[i % N * COLUMNS + i / N] = columns[i];
  }
  const assay_split_weights_t a = {columns, COLUMNS, N, N, 1}, b = {rows, COLUMNS, N, 1, COLUMNS};
  assay_sum_account_t x, y;
  op_case_ok(assay_split_judge(ASSAY_ALGORITHM_SPLIT_6, &a, &x));
  op_case_ok(assay_split_judge(ASSAY_ALGORITHM_SPLIT_6, &b, &y));
  assert_memory_equal(&x, &y, sizeof x);
}

// Errors are relative: the weights' scale does not matter but for the range that inputs may have.
static void range_follows_weights(void** state) {
  (void)state;
  const assay_algorithm_t six = ASSAY_ALGORITHM_SPLIT_6;
  const assay_sum_account_t one = judged(six, 64, 1, 0), large = judged(six, 64, 0x1p40F, 0);
  const assay_sum_account_t small = judged(six, 64, 0x1p-40F, 0);
  assert_true(fabs(large.own / large.plain - one.own / one.plain) < 1e-6);
  assert_true(one.max > 0x1p100 && one.max < 0x1p125);
  assert_true(one.min >= 0x1p-102 && one.min <= 0x1p-98);
  assert_true(large.min == 0x1p-102 && large.max < one.max * 0x1p-39);
  assert_true(small.min == one.min * 0x1p40);
  assert_true(judged(six, 64, 1, INFINITY).max == 0);
  assert_true(judged(six, 64, 1, NAN).max == 0);
  assert_true(judged(six, 64, 1, 1e-40F).max == 0);
  assert_true(judged(six, 64, 1, 0x1p110F).max == 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(model_is_near_sums), cmocka_unit_test(model_tells_algorithms_apart),
      cmocka_unit_test(weights_lie_either_way), cmocka_unit_test(range_follows_weights)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
