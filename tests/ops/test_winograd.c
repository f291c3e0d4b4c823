// Winograd's matrices give convolutions, and the error model says what the accuracy gates of fp32
// rest on: how it grows with channels, and that it keeps out weights that it cannot hold.
#include <math.h>

#include "ops/conv/winograd.h"
#include "ops/op_case.h"

static double uniform(uint64_t* state) {
  *state = *state * 6364136223846793005u + 1442695040888963407u;
  return (double)(int64_t)(*state >> 11) / 0x1p52 - 1;
}

static const assay_algorithm_t algorithms[] = {ASSAY_ALGORITHM_WINOGRAD_2_3,
                                               ASSAY_ALGORITHM_WINOGRAD_4_3};

static void matrices_give_convolutions(void** state) {
  (void)state;
  uint64_t seed = 5;
  for (int a = 0; a < 2; a++) {
    const assay_winograd_t* f = assay_winograd_of(algorithms[a]);
    double d[ASSAY_WINOGRAD_POINTS], g[ASSAY_WINOGRAD_POINTS], v[ASSAY_WINOGRAD_POINTS];
    for (int i = 0; i < f->in * f->in; i++) v[i] = d[i] = uniform(&seed);
    double kernel[9];
    for (int i = 0; i < 9; i++) g[i] = kernel[i] = uniform(&seed);
    assay_winograd_transform(2, f->in, f->in, &f->b[0][0], ASSAY_WINOGRAD_TILE, v);
    assay_winograd_transform(2, f->in, 3, &f->g[0][0], ASSAY_WINOGRAD_KERNEL, g);
    for (int i = 0; i < f->in * f->in; i++) v[i] *= g[i];
    assay_winograd_transform(2, f->out, f->in, &f->a[0][0], ASSAY_WINOGRAD_TILE, v);
    for (int y = 0; y < f->out; y++)
      for (int x = 0; x < f->out; x++) {
        double sum = 0;
        for (int q = 0; q < 9; q++) sum += kernel[q] * d[(y + q / 3) * f->in + x + q % 3];
        if (fabs(sum - v[y * f->out + x]) > 1e-13)
          fail_msg("F(%d,3) at %d, %d: %.17g, not %.17g", f->out, y, x, v[y * f->out + x], sum);
      }
  }
}

// The last sum on an element's way is the element.
static void sums_end_in_the_matrices(void** state) {
  (void)state;
  for (int a = 0; a < 2; a++) {
    const assay_winograd_t* f = assay_winograd_of(algorithms[a]);
    for (int i = 0; i < f->in; i++)
      for (int j = 0; j < f->in; j++) {
        const assay_winograd_sums_t* s = &f->in_sums[i];
        assert_true(s->of[s->n - 1][j] == f->b[i][j]);
        if (i >= f->out) continue;
        const assay_winograd_sums_t* t = &f->out_sums[i];
        assert_true(t->of[t->n - 1][j] == f->a[i][j]);
      }
  }
}

static assay_sum_account_t judged(assay_algorithm_t algorithm, int64_t channels, float scale,
                                  float special) {
  enum { OUTPUTS = 8 };
  const assay_conv_t s = {.n = 1,
                          .c = channels,
                          .m = OUTPUTS,
                          .group = 1,
                          .cg = channels,
                          .mg = OUTPUTS,
                          .kernel_size = 9,
                          .w = {.rank = 2}};
  const int64_t size = OUTPUTS * channels * 9;
  uint64_t seed = 11;
  float* w = NULL;
  assay_sum_account_t account;
  op_case_ok(assay_new_array((size_t)size, sizeof *w, &w));
  for (int64_t i = 0; i < size; i++)
    w[i] = scale * (float)(uniform(&seed) + uniform(&seed) + uniform(&seed));
  if (special != 0) w[size / 2] = special;
  op_case_ok(assay_winograd_judge(assay_winograd_of(algorithm), &s, w, &account));
  assay_free(w);
  return account;
}

static void model_tells_algorithms_apart(void** state) {
  (void)state;
  double before = 10;
  for (int64_t c = 3; c <= 192; c *= 4) {
    const assay_sum_account_t two = judged(algorithms[0], c, 1, 0);
    const assay_sum_account_t four = judged(algorithms[1], c, 1, 0);
    const double ratio = two.own / two.plain;
    assert_true(ratio < before && ratio > 0.3 && ratio < 2);  // relatively smaller in long sums
    assert_true(four.own > 3 * two.own && four.own < 20 * two.own);
    assert_true(two.six_sigma < four.six_sigma);
    before = ratio;
  }
  const assay_sum_account_t few = judged(algorithms[1], 2, 1, 0);
  const assay_sum_account_t many = judged(algorithms[1], 64, 1, 0);
  assert_true(few.six_sigma > few.bound);
  assert_true(many.six_sigma < many.bound);
}

// Errors are relative: the weights' scale does not matter but for the range that inputs may have.
static void range_follows_weights(void** state) {
  (void)state;
  for (int a = 0; a < 2; a++) {
    const assay_sum_account_t one = judged(algorithms[a], 24, 1, 0);
    const assay_sum_account_t large = judged(algorithms[a], 24, 0x1p40F, 0);
    assert_true(fabs(large.own / large.plain - one.own / one.plain) < 1e-6);
    assert_true(one.max > 0x1p90 && one.max < 0x1p125 && one.min == 0x1p-102);
    assert_true(large.max < one.max * 0x1p-38);
    assert_true(judged(algorithms[a], 24, 1, INFINITY).max <= one.min);
    assert_true(judged(algorithms[a], 24, 1, NAN).max <= one.min);
    assert_true(judged(algorithms[a], 24, 1, 0x1p127F).max <= one.max * 0x1p-100);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(matrices_give_convolutions), cmocka_unit_test(sums_end_in_the_matrices),
      cmocka_unit_test(model_tells_algorithms_apart), cmocka_unit_test(range_follows_weights)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
