// Convolution against its definition: any shape in double, and bit for bit in the emulated
// arithmetics, whose order of sums is part of the contract.
#include <math.h>
#include <omp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "ops/conv/conv.h"

typedef struct shape {
  const char* what;
  int rank;
  int64_t n, group, cg, mg;
  int64_t in[3], kernel[3], stride[3], dilation[3], pads[3][2];
} shape_t;

static const shape_t shapes[] = {
    {"pointwise", 2, 2, 1, 17, 9, {7, 5}, {1, 1}, {1, 1}, {1, 1}, {{0, 0}, {0, 0}}},
    {"pointwise with stride", 2, 1, 2, 3, 4, {9, 8}, {1, 1}, {2, 3}, {1, 1}, {{0, 0}, {0, 0}}},
    {"3x3, padded", 2, 2, 1, 5, 6, {11, 13}, {3, 3}, {1, 1}, {1, 1}, {{1, 1}, {1, 1}}},
    {"odd padding", 2, 1, 3, 2, 2, {8, 9}, {3, 2}, {2, 1}, {2, 3}, {{0, 3}, {2, 1}}},
    {"depthwise", 2, 2, 12, 1, 1, {14, 15}, {3, 5}, {1, 2}, {1, 1}, {{1, 1}, {2, 2}}},
    {"depthwise, two outputs", 1, 1, 5, 1, 2, {33}, {7}, {3}, {2}, {{4, 5}}},
    {"one axis", 1, 3, 1, 4, 3, {40}, {9}, {2}, {3}, {{5, 0}}},
    {"three axes",
     3,
     1,
     2,
     3,
     4,
     {5, 6, 7},
     {2, 3, 3},
     {1, 2, 1},
     {1, 1, 2},
     {{1, 0}, {1, 1}, {2, 2}}},
    {"several tiles and panels",
     2,
     1,
     1,
     100,
     110,
     {14, 25},
     {3, 3},
     {1, 1},
     {1, 1},
     {{1, 1}, {1, 1}}},
    {"many tiles", 2, 2, 1, 9, 10, {60, 61}, {3, 3}, {1, 1}, {1, 1}, {{1, 1}, {1, 1}}},
    {"kernel in the padding only", 2, 1, 1, 2, 2, {2, 2}, {2, 2}, {3, 3}, {1, 1}, {{4, 4}, {4, 4}}},
    {"no channels", 2, 1, 1, 0, 3, {4, 4}, {2, 2}, {1, 1}, {1, 1}, {{0, 0}, {0, 0}}},
    {"no outputs", 2, 1, 1, 3, 0, {4, 4}, {2, 2}, {1, 1}, {1, 1}, {{0, 0}, {0, 0}}},
    {"empty batch", 2, 0, 1, 3, 2, {4, 4}, {2, 2}, {1, 1}, {1, 1}, {{0, 0}, {0, 0}}},
    {"empty input, padded", 1, 1, 1, 3, 2, {0}, {2}, {1}, {1}, {{2, 1}}},
};

static void fill_conv(const shape_t* s, assay_conv_t* out) {
  *out = (assay_conv_t){.n = s->n,
                        .c = s->group * s->cg,
                        .m = s->group * s->mg,
                        .group = s->group,
                        .cg = s->cg,
                        .mg = s->mg,
                        .kernel_size = 1};
  out->w.rank = s->rank;
  for (int i = 0; i < s->rank; i++) {
    out->w.axis[i] = (assay_window_axis_t){.kernel = s->kernel[i],
                                           .stride = s->stride[i],
                                           .dilation = s->dilation[i],
                                           .pads = {s->pads[i][0], s->pads[i][1]}};
    out->kernel_size *= s->kernel[i];
  }
  assay_status_t st = assay_window_fit(NULL, &out->w, s->in);
  assert_null(st);
  out->in_size = assay_window_in_size(&out->w);
  out->out_size = assay_window_out_size(&out->w);
}

static double step(const assay_eval_t* c, double w, double x, double s) {
  if (c->arith == ASSAY_ARITH_F64) return s + w * x;
  if (c->arith == ASSAY_ARITH_F32) return (double)fmaf((float)w, (float)x, (float)s);
  return assay_format_round(c->accumulator, fma(w, x, s), ASSAY_OVERFLOW_IEEE);
}

// One output element, by the definition; *out_size gets the sum of magnitudes.
static double element(const assay_eval_t* c, const assay_conv_t* s, const double* x,
                      const double* w, const double* bias, int64_t n, int64_t m, int64_t at,
                      double* out_size) {
  int64_t o[3];
  for (int i = s->w.rank - 1; i >= 0; i--) {
    o[i] = at % s->w.axis[i].out;
    at /= s->w.axis[i].out;
  }
  double sum = 0;
  *out_size = fabs(bias[m]);
  for (int64_t k = 0; k < s->cg * s->kernel_size; k++) {
    int64_t q[3], rest = k % s->kernel_size, place = 0;
    for (int i = s->w.rank - 1; i >= 0; i--) {
      q[i] = rest % s->w.axis[i].kernel;
      rest /= s->w.axis[i].kernel;
    }
    for (int i = 0; i < s->w.rank && place >= 0; i++) {
      const assay_window_axis_t* a = &s->w.axis[i];
      const int64_t p = o[i] * a->stride + q[i] * a->dilation - a->pads[0];
      place = p < 0 || p >= a->in ? -1 : place * a->in + p;
    }
    const int64_t channel = m / s->mg * s->cg + k / s->kernel_size;
    const double v = place < 0 ? 0 : x[(n * s->c + channel) * s->in_size + place];
    sum = step(c, w[m * s->cg * s->kernel_size + k], v, sum);
    *out_size += fabs(w[m * s->cg * s->kernel_size + k] * v);
  }
  return assay_acc(c, sum + assay_acc(c, bias[m]));
}

static double* random_floats(int64_t n) {
  double* x = assay_malloc((size_t)n * sizeof *x);
  assert_non_null(x);
  for (int64_t i = 0; i < n; i++) x[i] = (double)(float)(rand() / (double)RAND_MAX - 0.5);
  return x;
}

static void check_shape(const shape_t* shape, const assay_eval_t* c) {
  assay_conv_t s;
  fill_conv(shape, &s);
  double* x = random_floats(s.n * s.c * s.in_size);
  double* w = random_floats(s.m * s.cg * s.kernel_size);
  double* bias = random_floats(s.m);
  double* y = random_floats(s.n * s.m * s.out_size);
  assay_status_t st = assay_conv_run(c, &s, x, w, bias, y);
  assert_null(st);
  for (int64_t i = 0; i < s.n * s.m * s.out_size; i++) {
    double size;
    const int64_t plane = i / s.out_size;
    const double want = element(c, &s, x, w, bias, plane / s.m, plane % s.m, i % s.out_size, &size);
    const double allowed =
        c->arith == ASSAY_ARITH_F64 ? 0x1p-52 * (double)(s.cg * s.kernel_size + 2) * size : 0;
    if (fabs(y[i] - want) <= allowed) continue;
    fail_msg("%s, arithmetic %d: element %lld is %.17g, expected %.17g", shape->what, c->arith,
             (long long)i, y[i], want);
  }
  assay_free(x);
  assay_free(w);
  assay_free(bias);
  assay_free(y);
}

static void check_arith(assay_arith_t arith, assay_format_t accumulator) {
  const assay_eval_t c = {.arith = arith, .accumulator = accumulator};
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) check_shape(&shapes[i], &c);
}

static void test_double(void** state) {
  (void)state;
  check_arith(ASSAY_ARITH_F64, ASSAY_FORMAT_NONE);
}

static void test_float(void** state) {
  (void)state;
  check_arith(ASSAY_ARITH_F32, ASSAY_FORMAT_NONE);
}

static void test_narrow(void** state) {
  (void)state;
  check_arith(ASSAY_ARITH_NARROW, ASSAY_FORMAT_FP16);
  check_arith(ASSAY_ARITH_NARROW, ASSAY_FORMAT_FP64);
}

// The same bits for any number of threads.
static void test_threads(void** state) {
  (void)state;
  const int before = omp_get_max_threads();
  const assay_eval_t c = {.arith = ASSAY_ARITH_F64};
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
    assay_conv_t s;
    fill_conv(&shapes[i], &s);
    const size_t size = (size_t)(s.n * s.m * s.out_size) * sizeof(double);
    double* x = random_floats(s.n * s.c * s.in_size);
    double* w = random_floats(s.m * s.cg * s.kernel_size);
    double *one = assay_calloc(size, 1), *many = assay_calloc(size, 1);
    omp_set_num_threads(1);
    assay_status_t st = assay_conv_run(&c, &s, x, w, NULL, one);
    assert_null(st);
    omp_set_num_threads(5);
    st = assay_conv_run(&c, &s, x, w, NULL, many);
    assert_null(st);
    if (memcmp(one, many, size) != 0) fail_msg("%s: 5 threads give other bits", shapes[i].what);
    assay_free(x);
    assay_free(w);
    assay_free(one);
    assay_free(many);
  }
  omp_set_num_threads(before);
}

// An infinite weight meets the padding: 0 * inf is NaN on the direct path as on the others.
static void test_infinite_weight(void** state) {
  (void)state;
  for (size_t k = 2; k <= 4; k += 2) {  // 3x3 and depthwise
    assay_conv_t s;
    fill_conv(&shapes[k], &s);
    const assay_eval_t c = {.arith = ASSAY_ARITH_F64};
    double* x = random_floats(s.n * s.c * s.in_size);
    double* w = random_floats(s.m * s.cg * s.kernel_size);
    double* y = random_floats(s.n * s.m * s.out_size);
    w[0] = INFINITY;
    assay_status_t st = assay_conv_run(&c, &s, x, w, NULL, y);
    assert_null(st);
    assert_true(isnan(y[0]));
    assert_true(isinf(y[s.out_size - 1]));
    assay_free(x);
    assay_free(w);
    assay_free(y);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_double),          cmocka_unit_test(test_float),
      cmocka_unit_test(test_narrow),          cmocka_unit_test(test_threads),
      cmocka_unit_test(test_infinite_weight),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
