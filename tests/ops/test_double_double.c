// Numbers of twice the precision of double, and operators' definitions in them, against MPFR with
// 300 bits on seeded inputs that have low parts themselves.
#include "base/random.h"
#include "ops/dd_array.h"
#include "ops/mp.h"
#include "ops/op_case.h"

// ---- numbers -----------------------------------------------------------------------------------

static assay_random_t stream(const char* name) { return assay_random_make(11, name, 0); }

// Number i of a stream, in [lo, hi], with a low part that is at most half an ulp.
static assay_dd_t draw(const assay_random_t* r, uint64_t i, double lo, double hi) {
  const double x = lo + (hi - lo) * assay_random_uniform(r, 2 * i);
  const double half_ulp = ldexp(1, ilogb(x == 0 ? 1 : x) - 53);
  return assay_dd_end(x, (2 * assay_random_uniform(r, 2 * i + 1) - 1) * half_ulp);
}

// log2 of |y - reference| / scale; -inf if equal.
static double error_bits(assay_dd_t y, mp_t reference, mp_t scale) {
  mp_t e = mp_abs(mp_sub(mp_of(y.high, y.low), reference));
  if (mpfr_zero_p(e)) return -(double)INFINITY;
  e = mp_div(e, mp_abs(scale));
  return mpfr_get_d(e, MPFR_RNDN) > 0 ? (double)mpfr_get_exp(e) : -(double)INFINITY;
}

static const struct {
  const char* name;
  assay_dd_fn1_t* f;
  mp_t (*reference)(mp_t x);
  double lo, hi;
  int bits;  // relative error at most 2^-bits
} functions[] = {
    {"root", assay_dd_root, mp_sqrt, 0, 1e9, 103},
    {"exp", assay_dd_exp, mp_exp, -1, 1, 95},
    {"exp", assay_dd_exp, mp_exp, -600, 700, 90},
    {"expm1", assay_dd_expm1, mp_expm1, -1e-9, 1e-9, 95},
    {"expm1", assay_dd_expm1, mp_expm1, -1, 1, 95},
    {"log", assay_dd_log, mp_log, 0.9, 1.1, 93},
    {"log", assay_dd_log, mp_log, 0, 3, 93},
    {"log", assay_dd_log, mp_log, 0, 1e300, 93},
    {"log1p", assay_dd_log1p, mp_log1p, -1e-9, 1e-9, 95},
    {"log1p", assay_dd_log1p, mp_log1p, -0.5, 9, 93},
    {"sin", assay_dd_sin, mp_sin, -4, 4, 93},
    {"sin", assay_dd_sin, mp_sin, -1e-9, 1e-9, 100},
    {"sin", assay_dd_sin, mp_sin, -6e7, 6e7, 70},  // the argument's own bits
    {"cos", assay_dd_cos, mp_cos, -4, 4, 93},
    {"tan", assay_dd_tan, mp_tan, -1.5, 1.5, 93},
    {"asin", assay_dd_asin, mp_asin, -1, 1, 93},
    {"acos", assay_dd_acos, mp_acos, -1, 1, 93},
    {"atan", assay_dd_atan, mp_atan, -9, 9, 95},
    {"atan", assay_dd_atan, mp_atan, -1e200, 1e200, 95},
    {"sinh", assay_dd_sinh, mp_sinh, -1e-6, 1e-6, 95},
    {"sinh", assay_dd_sinh, mp_sinh, -60, 60, 93},
    {"cosh", assay_dd_cosh, mp_cosh, -60, 60, 93},
    {"tanh", assay_dd_tanh, mp_tanh, -3, 3, 93},
    {"tanh", assay_dd_tanh, mp_tanh, -90, 90, 93},
    {"asinh", assay_dd_asinh, mp_asinh, -3, 3, 93},
    {"asinh", assay_dd_asinh, mp_asinh, -1e200, 1e200, 93},
    {"acosh", assay_dd_acosh, mp_acosh, 1, 2, 90},
    {"acosh", assay_dd_acosh, mp_acosh, 1, 1e30, 93},
    {"atanh", assay_dd_atanh, mp_atanh, -1, 1, 93},
    {"erf", assay_dd_erf, mp_erf, -1e-3, 1e-3, 93},
    {"erf", assay_dd_erf, mp_erf, -7, 7, 93},
    {"erfc", assay_dd_erfc, mp_erfc, -3, 3, 93},
    {"erfc", assay_dd_erfc, mp_erfc, 1, 25, 92},
    {"sigmoid", assay_dd_sigmoid, mp_sigmoid, -50, 50, 93},
    {"round", assay_dd_round, mp_round, -9, 9, 1000},
    {"floor", assay_dd_floor, mp_floor, -9, 9, 1000},
};

static void functions_of_one(void** state) {
  (void)state;
  enum { DRAWS = 3000 };
  for (size_t k = 0; k < sizeof functions / sizeof *functions; k++) {
    const assay_random_t r = stream(functions[k].name);
    double worst = -(double)INFINITY, at = 0;
    for (uint64_t i = 0; i < DRAWS; i++) {
      mp_forget();
      const assay_dd_t x = draw(&r, i, functions[k].lo, functions[k].hi);
      mp_t reference = functions[k].reference(mp_of(x.high, x.low));
      const double e = error_bits(functions[k].f(x), reference, reference);
      if (e > worst) worst = e, at = x.high;
    }
    if (worst > -functions[k].bits)
      fail_msg("row %zu: %s of %.17g is off by 2^%g", k, functions[k].name, at, worst);
  }
}

// What lies between two whole numbers by the low part alone, and special values.
static void functions_at_edges(void** state) {
  (void)state;
  static const struct {
    assay_dd_fn1_t* f;
    double high, low, y_high, y_low;
  } rows[] = {
      {assay_dd_floor, 3, -1e-20, 2, 0},
      {assay_dd_floor, 3, 1e-20, 3, 0},
      {assay_dd_round, 2.5, 1e-20, 3, 0},
      {assay_dd_round, 2.5, 0, 2, 0},
      {assay_dd_round, -2.5, 1e-20, -2, 0},
      {assay_dd_exp, 710, 0, (double)INFINITY, 0},
      {assay_dd_exp, -(double)INFINITY, 0, 0, 0},
      {assay_dd_log, 0, 0, -(double)INFINITY, 0},
      {assay_dd_root, (double)INFINITY, 0, (double)INFINITY, 0},
      {assay_dd_atan, (double)INFINITY, 0, 0x1.921fb54442d18p+0, 0x1.1a62633145c07p-54},
      {assay_dd_acos, -1, 0, 0x1.921fb54442d18p+1, 0x1.1a62633145c07p-53},
      {assay_dd_tanh, -(double)INFINITY, 0, -1, 0},
      {assay_dd_sigmoid, (double)INFINITY, 0, 1, 0},
      {assay_dd_erf, (double)INFINITY, 0, 1, 0},
      {assay_dd_sin, 0, 0, 0, 0},
  };
  for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
    const assay_dd_t y = rows[k].f((assay_dd_t){rows[k].high, rows[k].low});
    if (y.high != rows[k].y_high || y.low != rows[k].y_low)
      fail_msg("row %zu: %.17g + %.17g", k, y.high, y.low);
  }
  assert_true(isnan(assay_dd_log(assay_dd(-1)).high));
  assert_true(isnan(assay_dd_asin(assay_dd(2)).high));
  assert_true(isnan(assay_dd_over(assay_dd(0), assay_dd(0)).high));
}

static const struct {
  const char* name;
  assay_dd_fn2_t* f;
  mp_t (*reference)(mp_t a, mp_t b);
  double a_lo, a_hi, b_lo, b_hi;
  int bits;
} operations[] = {
    {"plus", assay_dd_plus, mp_add, -1, 1, -1, 1, 103},
    {"minus", assay_dd_minus, mp_sub, 1, 1 + 1e-9, 1, 1 + 1e-9, 103},
    {"times", assay_dd_times, mp_mul, -9, 9, -9, 9, 102},
    {"over", assay_dd_over, mp_div, -9, 9, -9, 9, 101},
    {"pow", assay_dd_pow, mp_pow, 0, 9, -9, 9, 90},
    {"pow", assay_dd_pow, mp_pow, 0, 1e3, -99, 99, 87},  // |y ln x| up to 684
};

static void operations_of_two(void** state) {
  (void)state;
  enum { DRAWS = 10000 };
  for (size_t k = 0; k < sizeof operations / sizeof *operations; k++) {
    const assay_random_t r = stream(operations[k].name), s = stream("second");
    double worst = -(double)INFINITY;
    for (uint64_t i = 0; i < DRAWS; i++) {
      mp_forget();
      const assay_dd_t a = draw(&r, i, operations[k].a_lo, operations[k].a_hi);
      const assay_dd_t b = draw(&s, i, operations[k].b_lo, operations[k].b_hi);
      mp_t reference = operations[k].reference(mp_of(a.high, a.low), mp_of(b.high, b.low));
      worst = fmax(worst, error_bits(operations[k].f(a, b), reference, reference));
    }
    if (worst > -operations[k].bits)
      fail_msg("row %zu: %s is off by 2^%g", k, operations[k].name, worst);
  }
  for (int n = -9; n <= 9; n++) {  // whole powers, of negative numbers too
    const assay_dd_t x = {-1.1, 3e-17}, y = assay_dd_pow(x, assay_dd(n));
    mp_t reference = mp_pow(mp_of(x.high, x.low), mp(n));
    if (n) assert_true(error_bits(y, reference, reference) < -100);
  }
}

// ---- operators ---------------------------------------------------------------------------------

// Tensors as references see them: [outer, n, inner].
typedef struct array {
  const assay_tensor_t* t;
  mp_t* x;
} array_t;

typedef struct job {
  int64_t outer, n, inner;  // of input 0
  double p, q;              // what the operator has besides
  const array_t* in;
  mp_t* y;
} job_t;

static mp_t at(const job_t* j, int64_t o, int64_t i, int64_t r) {
  return j->in[0].x[(o * j->n + i) * j->inner + r];
}
#define FOR_ROWS                         \
  for (int64_t o = 0; o < j->outer; o++) \
    for (int64_t r = 0; r < j->inner; r++)
#define FOR_TERMS for (int64_t i = 0; i < j->n; i++)
#define Y(i) j->y[(o * j->n + (i)) * j->inner + r]
#define Y1 j->y[o * j->inner + r]

static void softmax(job_t* j) {  // p: LogSoftmax
  FOR_ROWS {
    mp_t sum = mp(0);
    FOR_TERMS sum = mp_add(sum, mp_exp(at(j, o, i, r)));
    FOR_TERMS Y(i) =
        j->p != 0 ? mp_sub(at(j, o, i, r), mp_log(sum)) : mp_div(mp_exp(at(j, o, i, r)), sum);
  }
}

static mp_t folded(const job_t* j, int64_t o, int64_t r, mp_t (*join)(mp_t, mp_t),
                   mp_t (*f)(mp_t)) {
  mp_t y = f ? f(at(j, o, 0, r)) : at(j, o, 0, r);
  for (int64_t i = 1; i < j->n; i++) y = join(y, f ? f(at(j, o, i, r)) : at(j, o, i, r));
  return y;
}
static mp_t mean_of(const job_t* j, int64_t o, int64_t r) {
  return mp_div(folded(j, o, r, mp_add, NULL), mp((double)j->n));
}

static void reduce_sum(job_t* j) { FOR_ROWS Y1 = folded(j, o, r, mp_add, NULL); }
static void reduce_mean(job_t* j) { FOR_ROWS Y1 = mean_of(j, o, r); }
static void reduce_prod(job_t* j) { FOR_ROWS Y1 = folded(j, o, r, mp_mul, NULL); }
static void reduce_max(job_t* j) { FOR_ROWS Y1 = folded(j, o, r, mp_max, NULL); }
static void reduce_min(job_t* j) { FOR_ROWS Y1 = folded(j, o, r, mp_min, NULL); }
static void reduce_l1(job_t* j) { FOR_ROWS Y1 = folded(j, o, r, mp_add, mp_abs); }
static void reduce_square(job_t* j) { FOR_ROWS Y1 = folded(j, o, r, mp_add, mp_sqr); }
static void reduce_l2(job_t* j) { FOR_ROWS Y1 = mp_sqrt(folded(j, o, r, mp_add, mp_sqr)); }
static void reduce_log(job_t* j) { FOR_ROWS Y1 = mp_log(folded(j, o, r, mp_add, NULL)); }
static void reduce_exp(job_t* j) { FOR_ROWS Y1 = mp_log(folded(j, o, r, mp_add, mp_exp)); }

static void lp_norm(job_t* j) {
  FOR_ROWS {
    mp_t s = j->p == 1 ? folded(j, o, r, mp_add, mp_abs) : mp_sqrt(folded(j, o, r, mp_add, mp_sqr));
    FOR_TERMS Y(i) = mp_div(at(j, o, i, r), s);
  }
}

// p: epsilon under the root; q: added to it. centered: less the mean.
static void normalize(job_t* j, bool centered) {
  FOR_ROWS {
    mp_t mean = centered ? mean_of(j, o, r) : mp(0), v = mp(0);
    FOR_TERMS v = mp_add(v, mp_sqr(mp_sub(at(j, o, i, r), mean)));
    mp_t s = mp_sqrt(mp_add(mp_div(v, mp((double)j->n)), mp(j->p)));
    s = mp_add(s, mp(j->q));
    FOR_TERMS Y(i) = mp_div(mp_sub(at(j, o, i, r), mean), s);
  }
}
static void mean_variance(job_t* j) { normalize(j, true); }
static void layer_norm(job_t* j) {
  normalize(j, true);
  FOR_ROWS FOR_TERMS Y(i) = mp_add(mp_mul(Y(i), j->in[1].x[i]), j->in[2].x[i]);
}
static void rms_norm(job_t* j) {
  normalize(j, false);
  FOR_ROWS FOR_TERMS Y(i) = mp_mul(Y(i), j->in[1].x[i]);
}
// [samples * groups, elements of a group, 1]; q: elements of a channel. All channels lie along the
// last two, over and over.
static void group_norm(job_t* j) {
  const int64_t run = (int64_t)j->q, channels = j->in[1].t->size;
  j->q = 0;
  normalize(j, true);
  for (int64_t k = 0; k < j->in[0].t->size; k++) {
    const int64_t channel = k / run % channels;
    j->y[k] = mp_add(mp_mul(j->y[k], j->in[1].x[channel]), j->in[2].x[channel]);
  }
}
static void batch_norm(job_t* j) {  // [samples, channels, elements]
  FOR_ROWS FOR_TERMS {
    mp_t s = mp_sqrt(mp_add(j->in[4].x[i], mp(j->p)));
    mp_t d = mp_div(mp_sub(at(j, o, i, r), j->in[3].x[i]), s);
    Y(i) = mp_add(mp_mul(d, j->in[1].x[i]), j->in[2].x[i]);
  }
}

// [m, k] and [k, n]; p, q: alpha, beta of C [n].
static void product(job_t* j) {
  const int64_t k = j->in[1].t->dims[0], n = j->in[1].t->dims[1];
  for (int64_t a = 0; a < j->in[0].t->size / k; a++) {
    for (int64_t b = 0; b < n; b++) {
      mp_t s = mp(0);
      for (int64_t l = 0; l < k; l++)
        s = mp_add(s, mp_mul(j->in[0].x[a * k + l], j->in[1].x[l * n + b]));
      s = mp_mul(mp(j->p), s);
      j->y[a * n + b] = j->q != 0 ? mp_add(s, mp_mul(mp(j->q), j->in[2].x[b])) : s;
    }
  }
}

// One axis: [1, channels, size] and [m, channels, 3], a pad of 1 at both ends.
static void convolution(job_t* j) {
  const int64_t channels = j->in[0].t->dims[1], size = j->in[0].t->dims[2];
  for (int64_t m = 0; m < j->in[1].t->dims[0]; m++) {
    for (int64_t k = 0; k < size; k++) {
      mp_t s = j->in[2].x[m];
      for (int64_t c = 0; c < channels; c++)
        for (int64_t t = 0; t < 3; t++)
          if (k + t - 1 >= 0 && k + t - 1 < size)
            s = mp_add(s, mp_mul(j->in[1].x[(m * channels + c) * 3 + t],
                                 j->in[0].x[c * size + k + t - 1]));
      j->y[m * size + k] = s;
    }
  }
}

static void average(job_t* j) {  // windows of 3 over the last axis, steps of 2
  const int64_t size = j->in[0].t->dims[2], steps = (size - 3) / 2 + 1;
  for (int64_t c = 0; c < j->in[0].t->dims[1]; c++)
    for (int64_t k = 0; k < steps; k++) {
      mp_t *x = &j->in[0].x[c * size + 2 * k], s = mp_add(mp_add(x[0], x[1]), x[2]);
      j->y[c * steps + k] = mp_div(s, mp(3));
    }
}

// ---- element by element

static mp_t half(mp_t x) { return mp_div(x, mp(2)); }
static bool below(mp_t x, double limit) { return mpfr_cmp_d(x, limit) < 0; }

#define POINTWISE(NAME, FORMULA)                     \
  static void NAME(job_t* j) {                       \
    for (int64_t k = 0; k < j->in[0].t->size; k++) { \
      mp_t x = j->in[0].x[k];                        \
      j->y[k] = FORMULA;                             \
    }                                                \
  }
#define SOFTPLUS mp_log1p(mp_exp(x))
POINTWISE(p_relu, below(x, 0) ? mp(0) : x)
POINTWISE(p_leaky, below(x, 0) ? mp_mul(mp((double)0.1F), x) : x)
POINTWISE(p_thresholded, below(x, 0.5) ? mp(0) : x)
POINTWISE(p_elu, below(x, 0) ? mp_mul(mp((double)1.5F), mp_expm1(x)) : x)
POINTWISE(p_celu, below(x, 0) ? mp_mul(mp(2), mp_expm1(half(x))) : x)
POINTWISE(p_selu, mp_mul(mp(1.5), below(x, 0) ? mp_mul(mp(0.75), mp_expm1(x)) : x))
POINTWISE(p_sigmoid, mp_sigmoid(x))
POINTWISE(p_hard_sigmoid, mp_min(mp(1), mp_max(mp(0), mp_add(mp_mul(mp(0.25), x), mp(0.5)))))
POINTWISE(p_hard_swish,
          mp_mul(x, mp_min(mp(1), mp_max(mp(0), mp_add(mp_mul(mp(0x1.555556p-3), x), mp(0.5))))))
POINTWISE(p_softplus, SOFTPLUS)
POINTWISE(p_softsign, mp_div(x, mp_add(mp(1), mp_abs(x))))
POINTWISE(p_gelu, mp_mul(half(x), mp_erfc(mp_neg(mp_div(x, mp_sqrt(mp(2)))))))
POINTWISE(p_mish, mp_mul(x, mp_tanh(SOFTPLUS)))
POINTWISE(p_swish, mp_mul(x, mp_sigmoid(mp_mul(mp(1.5), x))))
POINTWISE(p_shrink, below(x, -0.5)           ? mp_add(x, mp(0.25))
                    : below(mp_neg(x), -0.5) ? mp_sub(x, mp(0.25))
                                             : mp(0))
POINTWISE(p_reciprocal, mp_div(mp(1), x))
POINTWISE(p_erf, mp_erf(x))
POINTWISE(p_clip, mp_min(j->in[2].x[0], mp_max(j->in[1].x[0], x)))
POINTWISE(p_cube, mp_pow(x, mp(3)))

// gelu by tanh: sqrt(2/pi) and 0.044715 as the text has them.
static mp_t decimal(const char* text) {
  mp_t y = mp_new();
  mpfr_set_str(y, text, 10, MPFR_RNDN);
  return y;
}
static mp_t circle(void) {
  mp_t y = mp_new();
  mpfr_const_pi(y, MPFR_RNDN);
  return y;
}
POINTWISE(p_gelu_tanh,
          mp_mul(half(x),
                 mp_add(mp(1),
                        mp_tanh(mp_mul(mp_sqrt(mp_div(mp(2), circle())),
                                       mp_add(x, mp_mul(decimal("0.044715"), mp_pow(x, mp(3)))))))))

// Two inputs of shapes [2, 3] and [3].
#define PAIRWISE(NAME, FORMULA)                                     \
  static void NAME(job_t* j) {                                      \
    for (int64_t k = 0; k < j->in[0].t->size; k++) {                \
      mp_t x = j->in[0].x[k], y = j->in[1].x[k % j->in[1].t->size]; \
      j->y[k] = FORMULA;                                            \
    }                                                               \
  }
PAIRWISE(p_add, mp_add(x, y))
PAIRWISE(p_sub, mp_sub(x, y))
PAIRWISE(p_mul, mp_mul(x, y))
PAIRWISE(p_div, mp_div(x, y))
PAIRWISE(p_pow, mp_pow(mp_abs(x), y))
PAIRWISE(p_max, mp_max(x, y))
PAIRWISE(p_min, mp_min(x, y))
PAIRWISE(p_mean, half(mp_add(x, y)))
PAIRWISE(p_prelu, below(x, 0) ? mp_mul(x, y) : x)

typedef struct row {
  op_case_t c;
  void (*reference)(job_t* j);
  int64_t outer, n, inner;
  double p, q;
  double lo, hi;
} row_t;

#define EPSILON ((double)1e-5F)
#define X235 "double[2,3,5] iota"
#define X2345 "double[2,4,3,2] iota"
#define V(N) "double[" #N "] iota"

static const row_t rows[] = {
    // clang-format off
    {{"Softmax", 13, "axis=1", {X235}, {0}, 0}, softmax, 2, 3, 5, 0, 0, -9, 9},
    {{"Softmax", 11, "axis=1", {X235}, {0}, 0}, softmax, 2, 15, 1, 0, 0, -9, 9},
    {{"LogSoftmax", 13, "axis=-1", {X235}, {0}, 0}, softmax, 6, 5, 1, 1, 0, -9, 9},
    {{"LogSoftmax", 11, "axis=2", {X235}, {0}, 0}, softmax, 6, 5, 1, 1, 0, -9, 9},
    {{"ReduceSum", 13, NULL, {X235, "int64[1] 1"}, {0}, 0}, reduce_sum, 2, 3, 5, 0, 0, -9, 9},
    {{"ReduceMean", 13, "axes=0,1", {X235}, {0}, 0}, reduce_mean, 1, 6, 5, 0, 0, -9, 9},
    {{"ReduceMean", 18, "keepdims=0", {X235, "int64[1] -1"}, {0}, 0}, reduce_mean, 6, 5, 1, 0, 0,
     -9, 9},
    {{"ReduceProd", 18, NULL, {X235}, {0}, 0}, reduce_prod, 1, 30, 1, 0, 0, -9, 9},
    {{"ReduceMax", 18, NULL, {X235, "int64[1] 2"}, {0}, 0}, reduce_max, 6, 5, 1, 0, 0, -9, 9},
    {{"ReduceMin", 18, NULL, {X235, "int64[1] 0"}, {0}, 0}, reduce_min, 1, 2, 15, 0, 0, -9, 9},
    {{"ReduceL1", 18, NULL, {X235, "int64[1] 1"}, {0}, 0}, reduce_l1, 2, 3, 5, 0, 0, -9, 9},
    {{"ReduceL2", 18, NULL, {X235, "int64[1] 1"}, {0}, 0}, reduce_l2, 2, 3, 5, 0, 0, -9, 9},
    {{"ReduceSumSquare", 18, NULL, {X235, "int64[1] 2"}, {0}, 0}, reduce_square, 6, 5, 1, 0, 0,
     -9, 9},
    {{"ReduceLogSum", 18, NULL, {X235, "int64[1] 2"}, {0}, 0}, reduce_log, 6, 5, 1, 0, 0, 0.1, 9},
    {{"ReduceLogSumExp", 18, NULL, {X235, "int64[1] 1"}, {0}, 0}, reduce_exp, 2, 3, 5, 0, 0, -9,
     9},
    {{"LpNormalization", 1, "axis=1 p=1", {X235}, {0}, 0}, lp_norm, 2, 3, 5, 1, 0, -9, 9},
    {{"LpNormalization", 1, "axis=2", {X235}, {0}, 0}, lp_norm, 6, 5, 1, 2, 0, -9, 9},
    {{"MeanVarianceNormalization", 13, "axes=1", {X235}, {0}, 0}, mean_variance, 2, 3, 5, 0, 1e-9,
     -9, 9},
    {{"LayerNormalization", 17, "axis=1", {X235, "double[3,5] iota", "double[3,5] iota"}, {0}, 0},
     layer_norm, 2, 15, 1, EPSILON, 0, -9, 9},
    {{"RMSNormalization", 23, NULL, {X235, V(5)}, {0}, 0}, rms_norm, 6, 5, 1, EPSILON, 0, -9, 9},
    {{"InstanceNormalization", 6, NULL, {X235, V(3), V(3)}, {0}, 0}, group_norm, 6, 5, 1, EPSILON,
     5, -9, 9},
    {{"GroupNormalization", 21, "num_groups=2", {X2345, V(4), V(4)}, {0}, 0}, group_norm, 4, 12,
     1, EPSILON, 6, -9, 9},
    {{"BatchNormalization", 15, NULL, {X235, V(3), V(3), V(3), V(3)}, {0}, 0}, batch_norm, 2, 3,
     5, EPSILON, 0, 0.5, 9},
    {{"MatMul", 13, NULL, {X235, "double[5,4] iota"}, {0}, 0}, product, 1, 1, 30, 1, 0, -9, 9},
    {{"Gemm", 13, "alpha=0.25 beta=1.5", {"double[3,7] iota", "double[7,2] iota", V(2)}, {0}, 0},
     product, 1, 1, 21, 0.25, 1.5, -9, 9},
    {{"Gemm", 13, NULL, {"double[40,600] iota", "double[600,3] iota", V(3)}, {0}, 0}, product, 1,
     1, 24000, 1, 1, -9, 9},
    {{"Conv", 22, "pads=1,1", {"double[1,2,6] iota", "double[4,2,3] iota", V(4)}, {0}, 0},
     convolution, 1, 1, 12, 0, 0, -9, 9},
    {{"Conv", 22, "pads=1,1", {"double[1,200,9] iota", "double[2,200,3] iota", V(2)}, {0}, 0},
     convolution, 1, 1, 1800, 0, 0, -9, 9},
    {{"AveragePool", 22, "kernel_shape=3 strides=2", {"double[1,3,9] iota"}, {0}, 0}, average, 1,
     1, 27, 0, 0, -9, 9},
    {{"GlobalAveragePool", 22, NULL, {X235}, {0}, 0}, reduce_mean, 6, 5, 1, 0, 0, -9, 9},
    {{"GlobalMaxPool", 22, NULL, {X235}, {0}, 0}, reduce_max, 6, 5, 1, 0, 0, -9, 9},
    {{"Relu", 14, NULL, {X235}, {0}, 0}, p_relu, 1, 1, 30, 0, 0, -9, 9},
    {{"LeakyRelu", 16, "alpha=0.1", {X235}, {0}, 0}, p_leaky, 1, 1, 30, 0, 0, -9, 9},
    {{"ThresholdedRelu", 10, "alpha=0.5", {X235}, {0}, 0}, p_thresholded, 1, 1, 30, 0, 0, -2, 2},
    {{"Elu", 6, "alpha=1.5", {X235}, {0}, 0}, p_elu, 1, 1, 30, 0, 0, -9, 9},
    {{"Celu", 12, "alpha=2.0", {"float[2,3,5] iota"}, {0}, 0}, p_celu, 1, 1, 30, 0, 0, -9, 9},
    {{"Selu", 6, "alpha=0.75 gamma=1.5", {X235}, {0}, 0}, p_selu, 1, 1, 30, 0, 0, -9, 9},
    {{"Sigmoid", 13, NULL, {X235}, {0}, 0}, p_sigmoid, 1, 1, 30, 0, 0, -40, 40},
    {{"HardSigmoid", 6, "alpha=0.25 beta=0.5", {X235}, {0}, 0}, p_hard_sigmoid, 1, 1, 30, 0, 0,
     -3, 3},
    {{"HardSwish", 14, NULL, {X235}, {0}, 0}, p_hard_swish, 1, 1, 30, 0, 0, -2.9, 2.9},
    {{"Softplus", 1, NULL, {X235}, {0}, 0}, p_softplus, 1, 1, 30, 0, 0, -40, 40},
    {{"Softsign", 1, NULL, {X235}, {0}, 0}, p_softsign, 1, 1, 30, 0, 0, -40, 40},
    {{"Gelu", 20, NULL, {X235}, {0}, 0}, p_gelu, 1, 1, 30, 0, 0, -20, 9},
    {{"Gelu", 20, "approximate=tanh", {X235}, {0}, 0}, p_gelu_tanh, 1, 1, 30, 0, 0, -6, 9},
    {{"Mish", 18, NULL, {X235}, {0}, 0}, p_mish, 1, 1, 30, 0, 0, -30, 30},
    {{"Swish", 24, "alpha=1.5", {X235}, {0}, 0}, p_swish, 1, 1, 30, 0, 0, -30, 30},
    {{"Shrink", 9, "lambd=0.5 bias=0.25", {X235}, {0}, 0}, p_shrink, 1, 1, 30, 0, 0, -2, 2},
    {{"Reciprocal", 13, NULL, {X235}, {0}, 0}, p_reciprocal, 1, 1, 30, 0, 0, 0.1, 9},
    {{"Erf", 13, NULL, {X235}, {0}, 0}, p_erf, 1, 1, 30, 0, 0, -4, 4},
    {{"Clip", 13, NULL, {X235, "double[] 0", "double[1] 0"}, {0}, 0}, p_clip, 1, 1, 30, 0, 0, -9,
     9},
    {{"Pow", 15, NULL, {X235, "int64[] 3"}, {0}, 0}, p_cube, 1, 1, 30, 0, 0, -9, 9},
    {{"Add", 14, NULL, {"double[2,3] iota", V(3)}, {0}, 0}, p_add, 1, 1, 6, 0, 0, -9, 9},
    {{"Sub", 14, NULL, {"double[2,3] iota", V(3)}, {0}, 0}, p_sub, 1, 1, 6, 0, 0, -9, 9},
    {{"Mul", 14, NULL, {"double[2,3] iota", V(3)}, {0}, 0}, p_mul, 1, 1, 6, 0, 0, -9, 9},
    {{"Div", 14, NULL, {"double[2,3] iota", V(3)}, {0}, 0}, p_div, 1, 1, 6, 0, 0, -9, 9},
    {{"Pow", 15, NULL, {"double[2,3] iota", V(3)}, {0}, 0}, p_pow, 1, 1, 6, 0, 0, 0.1, 9},
    {{"Max", 13, NULL, {"double[2,3] iota", V(3)}, {0}, 0}, p_max, 1, 1, 6, 0, 0, -9, 9},
    {{"Min", 13, NULL, {"double[2,3] iota", V(3)}, {0}, 0}, p_min, 1, 1, 6, 0, 0, -9, 9},
    {{"Mean", 13, NULL, {"double[2,3] iota", V(3)}, {0}, 0}, p_mean, 1, 1, 6, 0, 0, -9, 9},
    {{"PRelu", 16, NULL, {"double[2,3] iota", V(3)}, {0}, 0}, p_prelu, 1, 1, 6, 0, 0, -9, 9},
    // clang-format on
};

// ---- running one -------------------------------------------------------------------------------

static void configure(void* user, const assay_node_t* node, assay_eval_t* c) {
  (void)node;
  c->low = *(assay_tensor_t***)user;
  if (c->low) c->arith = ASSAY_ARITH_DOUBLE_DOUBLE;
}

typedef struct runner {
  assay_evaluator_t* evaluator;
  assay_tensor_t** low;
} runner_t;

static assay_status_t evaluate(assay_dd_eval_t* c, assay_tensor_t* const* in, assay_tensor_t** out,
                               assay_tensor_t** low) {
  runner_t* r = c->driver;
  r->low = low;
  return assay_evaluator_node(r->evaluator, c->node, c->n_in, in, c->n_out, out);
}

// Each allocation fails once, and nothing is left.
static void fail_allocations(assay_dd_eval_t* c, uint64_t n) {
  const int64_t before = assay_alloc_live();
  for (uint64_t k = 1; k <= n; k++) {
    assay_pair_t out = {0};
    c->out = &out;
    assay_alloc_fail_after(k, false);
    assay_status_t st = assay_dd_node(c);
    assay_alloc_fail_after(0, false);
    assert_int_equal(assay_status_code(st), ASSAY_NO_MEMORY);
    assert_null(out.high);
    assay_status_free(st);
    assert_int_equal(assay_alloc_live(), before);
  }
}

static void check_row(size_t number, const row_t* row) {
  assay_tensor_t* in[OP_CASE_VALUES] = {NULL};
  assay_value_t* values[OP_CASE_VALUES] = {NULL};
  assay_pair_t pairs[OP_CASE_VALUES] = {{0}}, out = {0};
  array_t arrays[OP_CASE_VALUES] = {{0}};
  const size_t n = op_case_count(row->c.in);
  for (size_t i = 0; i < n; i++) in[i] = op_case_tensor(row->c.in[i]);
  assay_model_t* m = op_case_model(&row->c, OP_CASE_STATIC, in, values);
  op_case_ok(assay_infer_model(m));
  mp_forget();
  const assay_random_t r = stream(row->c.op);
  for (size_t i = 0; i < n; i++) {
    pairs[i].high = in[i];
    arrays[i] = (array_t){in[i], calloc((size_t)in[i]->size + 1, sizeof(mp_t))};
    assert_non_null(arrays[i].x);
    const bool real = in[i]->store == ASSAY_STORE_F64;
    if (real) op_case_ok(assay_tensor_create(in[i]->type, in[i]->rank, in[i]->dims, &pairs[i].low));
    for (int64_t k = 0; k < in[i]->size; k++) {
      const assay_dd_t x = draw(&r, (uint64_t)(k + 100000 * (int64_t)i), row->lo, row->hi);
      if (real) assay_f64(in[i])[k] = x.high, assay_f64(pairs[i].low)[k] = x.low;
      arrays[i].x[k] = real ? mp_of(x.high, x.low) : mp((double)assay_i64(in[i])[k]);
    }
  }
  runner_t runner = {0};
  const assay_evaluator_config_t config = {.mode = ASSAY_MODE_TRUTH,
                                           .hooks = {.configure = configure, .user = &runner.low}};
  op_case_ok(assay_evaluator_create(m, &config, &runner.evaluator));
  assay_dd_eval_t c = {.node = m->graph->nodes[0],
                       .n_in = n,
                       .n_out = 1,
                       .in = pairs,
                       .out = &out,
                       .evaluate = evaluate,
                       .driver = &runner};
  assay_alloc_fail_after(0, false);
  op_case_ok(assay_dd_node(&c));
  fail_allocations(&c, assay_alloc_fail_after(0, false));
  job_t job = {row->outer, row->n, row->inner, row->p, row->q, arrays, NULL};
  const int64_t size = out.high->size;
  job.y = calloc((size_t)(size > in[0]->size ? size : in[0]->size), sizeof *job.y);
  assert_non_null(job.y);
  row->reference(&job);
  mp_t scale = mp(0);
  for (int64_t k = 0; k < size; k++) scale = mp_max(scale, mp_abs(job.y[k]));
  for (int64_t k = 0; k < size; k++) {
    const assay_dd_t y = {assay_f64(out.high)[k], out.low ? assay_f64(out.low)[k] : 0};
    const double e = error_bits(y, job.y[k], scale);
    if (!(e <= -90))
      fail_msg("row %zu (%s): element %lld, %.17g + %.17g, is off by 2^%g", number, row->c.op,
               (long long)k, y.high, y.low, e);
  }
  free(job.y);
  assay_pair_deinit(&out);
  assay_evaluator_destroy(runner.evaluator);
  for (size_t i = 0; i < n; i++) {
    free(arrays[i].x);
    assay_tensor_release(pairs[i].low);
    assay_tensor_release(in[i]);
  }
  assay_model_release(m);
}

static void operators(void** state) {
  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) check_row(i, &rows[i]);
}

static int end(void** state) {
  (void)state;
  mp_end();
  return 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(functions_of_one),
      cmocka_unit_test(functions_at_edges),
      cmocka_unit_test(operations_of_two),
      cmocka_unit_test(operators),
  };
  return cmocka_run_group_tests(tests, NULL, end);
}
