// Number formats: rounding against MPFR, everything else against brute force over all values. The
// comparison with ml_dtypes and onnx is check_vectors.c.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

// cmocka needs the four above before it
#include <inttypes.h>
#include <math.h>
#include <mpfr.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "formats/format.h"

static const double inf = (double)INFINITY, nan_ = (double)NAN;

static uint64_t bits_of(double x) {
  uint64_t b;
  memcpy(&b, &x, sizeof b);
  return b;
}
static double of_bits(uint64_t b) {
  double x;
  memcpy(&x, &b, sizeof x);
  return x;
}
// Same value, zeros by sign, NaN as NaN.
static bool same(double a, double b) { return bits_of(a) == bits_of(b) || (a != a && b != b); }

static uint64_t seed;
static uint64_t random_bits(uint64_t* state) {  // splitmix64
  uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));
  z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
  return z ^ z >> 31;
}

#define CHECK(condition, ...)     \
  do {                            \
    if (!(condition)) {           \
      print_error(__VA_ARGS__);   \
      fail_msg("%s", #condition); \
    }                             \
  } while (0)

// ---- the table against the definitions --------------------------------------------------------

// Format, sign, exponent and mantissa bits, bias, what the topmost patterns are.
static const struct definition {
  assay_format_t format;
  int exponent_bits, mantissa_bits, bias;
  enum { IEEE, ONE_NAN, UNSIGNED_ZERO, ALL_FINITE } top;
} definitions[] = {
    {ASSAY_FORMAT_BF16, 8, 7, 127, IEEE},
    {ASSAY_FORMAT_FP16, 5, 10, 15, IEEE},
    {ASSAY_FORMAT_FP8E4M3, 4, 3, 7, ONE_NAN},
    {ASSAY_FORMAT_FP8E4M3FNUZ, 4, 3, 8, UNSIGNED_ZERO},
    {ASSAY_FORMAT_FP8E5M2, 5, 2, 15, IEEE},
    {ASSAY_FORMAT_FP8E5M2FNUZ, 5, 2, 16, UNSIGNED_ZERO},
    {ASSAY_FORMAT_FP6E2M3, 2, 3, 1, ALL_FINITE},
    {ASSAY_FORMAT_FP6E3M2, 3, 2, 3, ALL_FINITE},
    {ASSAY_FORMAT_FP4E2M1, 2, 1, 1, ALL_FINITE},
};
enum { N_DEFINITIONS = sizeof definitions / sizeof *definitions };

// The value of a pattern, from the definition.
static double defined_value(const struct definition* d, uint32_t pattern) {
  int bits = 1 + d->exponent_bits + d->mantissa_bits;
  uint32_t mantissa = pattern & ((1u << d->mantissa_bits) - 1);
  uint32_t exponent = pattern >> d->mantissa_bits & ((1u << d->exponent_bits) - 1);
  bool negative = pattern >> (bits - 1);
  uint32_t top = (1u << d->exponent_bits) - 1;
  double sign = negative ? -1 : 1;
  if (d->top == IEEE && exponent == top) return mantissa ? nan_ : sign * inf;
  if (d->top == ONE_NAN && exponent == top && mantissa == (1u << d->mantissa_bits) - 1) return nan_;
  if (d->top == UNSIGNED_ZERO && negative && !exponent && !mantissa) return nan_;
  if (!exponent) return sign * ldexp(mantissa, 1 - d->bias - d->mantissa_bits);
  return sign *
         ldexp(mantissa + (1u << d->mantissa_bits), (int)exponent - d->bias - d->mantissa_bits);
}

static void test_table(void** state) {
  (void)state;
  for (int f = 0; f < N_DEFINITIONS; f++) {
    const struct definition* d = &definitions[f];
    const assay_format_info_t* info = assay_format_info(d->format);
    double max = 0, min_normal = inf, min = inf;
    bool has_inf = false, has_nan = false;
    for (uint32_t p = 0; p < 1u << info->bits; p++) {
      double v = defined_value(d, p);
      double got = assay_format_decode(d->format, p);
      CHECK(same(v, got), "%s: pattern %x is %a, expected %a", info->name, p, got, v);
      if (v == v) {
        uint64_t back = assay_format_encode(d->format, v, ASSAY_OVERFLOW_IEEE);
        CHECK(back == p, "%s: %a has pattern %" PRIx64 ", expected %x", info->name, v, back, p);
      }
      has_nan |= v != v;
      has_inf |= isinf(v) != 0;
      if (!isfinite(v) || v <= 0) continue;
      if (v > max) max = v;
      if (v < min) min = v;
      if (p >> d->mantissa_bits && v < min_normal) min_normal = v;
    }
    CHECK(info->bits == 1 + d->exponent_bits + d->mantissa_bits, "%s: bits", info->name);
    CHECK(same(info->max, max), "%s: max is %a, expected %a", info->name, info->max, max);
    CHECK(same(info->min_normal, min_normal), "%s: min_normal is %a", info->name, info->min_normal);
    CHECK(same(info->min_subnormal, min), "%s: min_subnormal is %a", info->name,
          info->min_subnormal);
    CHECK(info->precision == d->mantissa_bits + 1, "%s: precision", info->name);
    CHECK(info->min_exponent == 1 - d->bias, "%s: min_exponent", info->name);
    CHECK(same(info->unit_roundoff, ldexp(1, -info->precision)), "%s: u", info->name);
    CHECK(info->has_infinity == has_inf && info->has_nan == has_nan, "%s: specials", info->name);
  }
  for (int f = 1; f < ASSAY_FORMAT_COUNT; f++) {
    const assay_format_info_t* info = assay_format_info((assay_format_t)f);
    CHECK((int)assay_format_parse(info->name) == f, "%s", info->name);
    assert_string_equal(assay_format_name((assay_format_t)f), info->name);
    if (info->type) CHECK((int)assay_type_format(info->type) == f, "%s", info->name);
    if (info->is_float)
      CHECK(same(info->min_normal, ldexp(1, info->min_exponent)), "%s", info->name);
  }
  for (int t = 1; t < ASSAY_TYPE_COUNT; t++) {
    const char* name = assay_type_name((assay_type_t)t);
    CHECK((int)assay_type_parse(name) == t, "%s", name);
  }
}

static void test_names(void** state) {
  (void)state;
  static const struct {
    const char* name;
    assay_format_t format;
  } rows[] = {{"fp16", ASSAY_FORMAT_FP16},    {"FP16", ASSAY_FORMAT_FP16},
              {"float16", ASSAY_FORMAT_FP16}, {"half", ASSAY_FORMAT_FP16},
              {"bf16", ASSAY_FORMAT_BF16},    {"bfloat16", ASSAY_FORMAT_BF16},
              {"float32", ASSAY_FORMAT_FP32}, {"double", ASSAY_FORMAT_FP64},
              {"tf32", ASSAY_FORMAT_TF32},    {"fp8", ASSAY_FORMAT_FP8E4M3},
              {"e5m2", ASSAY_FORMAT_FP8E5M2}, {"float8e8m0", ASSAY_FORMAT_FP8E8M0},
              {"int4", ASSAY_FORMAT_INT4},    {"bool", ASSAY_FORMAT_BOOL},
              {"", ASSAY_FORMAT_NONE},        {"fp17", ASSAY_FORMAT_NONE},
              {"string", ASSAY_FORMAT_NONE},  {"complex64", ASSAY_FORMAT_FP32}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    CHECK(assay_format_parse(rows[i].name) == rows[i].format, "'%s'", rows[i].name);
  assert_string_equal(assay_type_name((assay_type_t)99), "undefined");
  assert_string_equal(assay_type_name((assay_type_t)-1), "undefined");
  assert_string_equal(assay_format_name((assay_format_t)99), "none");
  assert_int_equal(assay_format_info((assay_format_t)-1)->bits, 0);
}

// ---- rounding, against MPFR -------------------------------------------------------------------

// x rounded once to p bits with subnormals from 2^e_min, then the format's end.
static double mpfr_rounding(mpfr_t y, const assay_format_info_t* f, double x,
                            assay_overflow_t overflow) {
  if (x != x) return f->has_nan ? x : copysign(0, -x);
  mpfr_set_prec(y, f->precision);
  mpfr_set_emax(2000);
  mpfr_set_emin(f->min_exponent - f->precision + 2);
  int t = mpfr_set_d(y, x, MPFR_RNDN);
  t = mpfr_check_range(y, t, MPFR_RNDN);
  mpfr_subnormalize(y, t, MPFR_RNDN);
  double r = mpfr_get_d(y, MPFR_RNDN);
  if (f->type == ASSAY_TYPE_FLOAT8E4M3FNUZ || f->type == ASSAY_TYPE_FLOAT8E5M2FNUZ)
    r = r == 0 ? 0 : r;
  if (fabs(r) <= f->max) return r;
  if (overflow == ASSAY_OVERFLOW_SATURATE || (!f->has_infinity && !f->has_nan))
    return copysign(f->max, x);
  return f->has_infinity ? copysign(inf, x) : copysign(nan_, x);
}

static void check_rounding(mpfr_t y, assay_format_t format, double x) {
  const assay_format_info_t* f = assay_format_info(format);
  for (int o = 0; o < 2; o++) {
    assay_overflow_t overflow = (assay_overflow_t)o;
    double want = mpfr_rounding(y, f, x, overflow);
    double got = assay_format_round(format, x, overflow);
    CHECK(same(want, got) && signbit(want) == signbit(got),
          "%s, overflow %d: %a rounds to %a, expected %a (seed %" PRIu64 ")", f->name, o, x, got,
          want, seed);
    double copy[1];
    assay_format_round_n(format, &x, copy, 1, overflow);
    CHECK(bits_of(copy[0]) == bits_of(got), "%s: round_n of %a gives %a", f->name, x, copy[0]);
    uint64_t pattern = assay_format_encode(format, x, overflow);
    double back = assay_format_decode(format, pattern);
    CHECK(same(back, got), "%s: %a -> pattern %" PRIx64 " -> %a, expected %a", f->name, x, pattern,
          back, got);
  }
}

// Around v: itself, its float64 neighbours, both signs.
static void check_around(mpfr_t y, assay_format_t format, double v) {
  const double around[] = {v, nextafter(v, inf), nextafter(v, -inf)};
  for (int i = 0; i < 3; i++) {
    check_rounding(y, format, around[i]);
    check_rounding(y, format, -around[i]);
  }
}

static void test_rounding(void** state) {
  (void)state;
  static const assay_format_t formats[] = {
      ASSAY_FORMAT_FP32,        ASSAY_FORMAT_TF32,        ASSAY_FORMAT_BF16,
      ASSAY_FORMAT_FP16,        ASSAY_FORMAT_FP8E4M3,     ASSAY_FORMAT_FP8E5M2,
      ASSAY_FORMAT_FP8E4M3FNUZ, ASSAY_FORMAT_FP8E5M2FNUZ, ASSAY_FORMAT_FP6E2M3,
      ASSAY_FORMAT_FP6E3M2,     ASSAY_FORMAT_FP4E2M1};
  mpfr_t y;
  mpfr_init2(y, 53);
  for (size_t f = 0; f < sizeof formats / sizeof *formats; f++) {
    assay_format_t format = formats[f];
    const assay_format_info_t* info = assay_format_info(format);
    const double special[] = {0,
                              info->max,
                              info->max * (1 + 0x1p-30),
                              inf,
                              info->min_subnormal,
                              info->min_subnormal / 2,
                              0x1p-1074,
                              0x1p-1022,
                              1e308,
                              info->min_normal};
    for (size_t i = 0; i < sizeof special / sizeof *special; i++)
      check_around(y, format, special[i]);
    uint64_t random = seed + f;
    for (int i = 0; i < 60000; i++) {
      // A value of the format, a middle, something between, at a random exponent in and around its
      // range.
      int span = ilogb(info->max) - info->min_exponent + info->precision + 6;
      int e =
          info->min_exponent - info->precision - 2 + (int)(random_bits(&random) % (uint64_t)span);
      int digits = info->precision + (int)(random_bits(&random) % 4) - 1;
      double m = (double)(random_bits(&random) >> (63 - digits));
      check_around(y, format, ldexp(m, e - digits));
      check_rounding(y, format, of_bits(random_bits(&random)));
    }
  }
  mpfr_clear(y);
}

// Rounding to fp16 by way of fp32 is wrong for these: just past a middle, by less than fp32 can
// see.
static void test_once(void** state) {
  (void)state;
  static const struct {
    assay_format_t format;
    double x, want;
  } rows[] = {{ASSAY_FORMAT_FP16, 1 + 0x1p-11 + 0x1p-40, 1 + 0x1p-10},
              {ASSAY_FORMAT_FP16, 1 + 0x3p-11 - 0x1p-40, 1 + 0x1p-10},
              {ASSAY_FORMAT_FP16, 65520 - 0x1p-30, 65504},
              {ASSAY_FORMAT_FP16, 65520, (double)INFINITY},
              {ASSAY_FORMAT_FP16, 0x1p-25 + 0x1p-70, 0x1p-24},
              {ASSAY_FORMAT_FP16, 0x1p-25, 0},
              {ASSAY_FORMAT_BF16, 1 + 0x1p-8 + 0x1p-45, 1 + 0x1p-7},
              {ASSAY_FORMAT_FP32, 1 + 0x1p-24 + 0x1p-52, 1 + 0x1p-23},
              {ASSAY_FORMAT_FP32, 0x1p-150, 0},
              {ASSAY_FORMAT_FP32, 0x1.8p-150, 0x1p-149},
              {ASSAY_FORMAT_TF32, 1 + 0x1p-11 + 0x1p-50, 1 + 0x1p-10},
              {ASSAY_FORMAT_FP8E4M3, 464, 448},
              {ASSAY_FORMAT_FP8E5M2, 61440 - 0x1p-30, 57344},
              {ASSAY_FORMAT_FP8E5M2, 61440, (double)INFINITY},
              {ASSAY_FORMAT_FP4E2M1, 5, 4},
              {ASSAY_FORMAT_FP4E2M1, 1e9, 6},
              {ASSAY_FORMAT_FP4E2M1, 0.25, 0},
              {ASSAY_FORMAT_INT8, 0.5, 0},
              {ASSAY_FORMAT_INT8, 1.5, 2},
              {ASSAY_FORMAT_INT8, -128.5, -128},
              {ASSAY_FORMAT_UINT4, -3, 0},
              {ASSAY_FORMAT_UINT64, 0x1p70, 0x1p64},
              {ASSAY_FORMAT_UINT64, 0x1p63, 0x1p63},
              {ASSAY_FORMAT_INT64, -0x1p70, -0x1p63},
              {ASSAY_FORMAT_INT32, 3e9, 2147483647},
              {ASSAY_FORMAT_BOOL, 0.1, 1}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    double got = assay_format_round(rows[i].format, rows[i].x, ASSAY_OVERFLOW_IEEE);
    CHECK(same(got, rows[i].want), "%s: %a gives %a, expected %a",
          assay_format_name(rows[i].format), rows[i].x, got, rows[i].want);
  }
}

static void test_nan(void** state) {
  (void)state;
  for (int f = 1; f < ASSAY_FORMAT_COUNT; f++) {
    assay_format_t format = (assay_format_t)f;
    const assay_format_info_t* info = assay_format_info(format);
    const double payload = of_bits(UINT64_C(0xfff0000000000001));  // signaling, negative
    const double inputs[] = {nan_, -nan_, payload};
    for (int i = 0; i < 3; i++) {
      for (int o = 0; o < 2; o++) {
        double r = assay_format_round(format, inputs[i], (assay_overflow_t)o), bulk;
        assay_format_round_n(format, &inputs[i], &bulk, 1, (assay_overflow_t)o);
        CHECK(info->has_nan ? r != r : r == 0, "%s: NaN gives %a", info->name, r);
        CHECK(same(r, bulk), "%s: NaN gives %a and %a", info->name, r, bulk);
        uint64_t p = assay_format_encode(format, inputs[i], (assay_overflow_t)o);
        double back = assay_format_decode(format, p);
        CHECK(info->has_nan ? back != back : back == 0, "%s: NaN gives pattern %" PRIx64,
              info->name, p);
      }
    }
  }
  static const struct {
    assay_format_t format;
    uint64_t positive, negative;
  } rows[] = {{ASSAY_FORMAT_FP32, 0x7fc00000, 0xffc00000},
              {ASSAY_FORMAT_BF16, 0x7fc0, 0xffc0},
              {ASSAY_FORMAT_TF32, 0x7fc00000, 0xffc00000},
              {ASSAY_FORMAT_FP16, 0x7e00, 0xfe00},
              {ASSAY_FORMAT_FP8E4M3, 0x7f, 0xff},
              {ASSAY_FORMAT_FP8E5M2, 0x7e, 0xfe},
              {ASSAY_FORMAT_FP8E4M3FNUZ, 0x80, 0x80},
              {ASSAY_FORMAT_FP8E5M2FNUZ, 0x80, 0x80},
              {ASSAY_FORMAT_FP8E8M0, 0xff, 0xff},
              {ASSAY_FORMAT_FP4E2M1, 8, 0},
              {ASSAY_FORMAT_FP6E2M3, 0x20, 0},
              {ASSAY_FORMAT_INT8, 0, 0}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    const char* name = assay_format_name(rows[i].format);
    CHECK(assay_format_encode(rows[i].format, nan_, ASSAY_OVERFLOW_IEEE) == rows[i].positive, "%s",
          name);
    CHECK(assay_format_encode(rows[i].format, -nan_, ASSAY_OVERFLOW_IEEE) == rows[i].negative,
          "-NaN, %s", name);
  }
}

// Rows of the table in ONNX's Cast 28, and of its round modes.
static void test_e8m0(void** state) {
  (void)state;
  static const struct {
    double x;
    assay_e8m0_mode_t mode;
    assay_overflow_t overflow;
    uint64_t want;
  } rows[] = {
      {0, ASSAY_E8M0_UP, ASSAY_OVERFLOW_SATURATE, 0},
      {0, ASSAY_E8M0_NEAREST, ASSAY_OVERFLOW_IEEE, 0xff},
      {(double)NAN, ASSAY_E8M0_UP, ASSAY_OVERFLOW_SATURATE, 0xff},
      {(double)INFINITY, ASSAY_E8M0_UP, ASSAY_OVERFLOW_SATURATE, 0xfe},
      {(double)INFINITY, ASSAY_E8M0_NEAREST, ASSAY_OVERFLOW_IEEE, 0xff},
      {0x1p130, ASSAY_E8M0_UP, ASSAY_OVERFLOW_SATURATE, 0xfe},
      {0x1p130, ASSAY_E8M0_NEAREST, ASSAY_OVERFLOW_IEEE, 0xff},
      {0x1p-130, ASSAY_E8M0_UP, ASSAY_OVERFLOW_SATURATE, 0},
      {0x1p-130, ASSAY_E8M0_NEAREST, ASSAY_OVERFLOW_IEEE, 0xff},
      {0x1p-1074, ASSAY_E8M0_UP, ASSAY_OVERFLOW_SATURATE, 0},
      {-1, ASSAY_E8M0_UP, ASSAY_OVERFLOW_SATURATE, 0xff},
      {1, ASSAY_E8M0_UP, ASSAY_OVERFLOW_SATURATE, 0x7f},
      {1 + 0x1p-52, ASSAY_E8M0_UP, ASSAY_OVERFLOW_SATURATE, 0x80},
      {2 - 0x1p-52, ASSAY_E8M0_DOWN, ASSAY_OVERFLOW_SATURATE, 0x7f},
      {1.5, ASSAY_E8M0_NEAREST, ASSAY_OVERFLOW_SATURATE, 0x80},
      {3, ASSAY_E8M0_NEAREST, ASSAY_OVERFLOW_SATURATE, 0x81},
      {1.5 - 0x1p-52, ASSAY_E8M0_NEAREST, ASSAY_OVERFLOW_SATURATE, 0x7f},
      {0x1p127, ASSAY_E8M0_UP, ASSAY_OVERFLOW_IEEE, 0xfe},
      {0x1.8p127, ASSAY_E8M0_NEAREST, ASSAY_OVERFLOW_IEEE, 0xff},
      {0x1.8p-128, ASSAY_E8M0_NEAREST, ASSAY_OVERFLOW_IEEE, 0},
      {0x1.fp127, ASSAY_E8M0_DOWN, ASSAY_OVERFLOW_IEEE, 0xfe},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    double r = assay_format_round_e8m0(rows[i].x, rows[i].mode, rows[i].overflow);
    double want = assay_format_decode(ASSAY_FORMAT_FP8E8M0, rows[i].want);
    CHECK(same(r, want), "row %zu: %a, mode %d, overflow %d: got %a, expected %a", i, rows[i].x,
          (int)rows[i].mode, (int)rows[i].overflow, r, want);
  }
  for (uint64_t p = 0; p < 255; p++) {
    double v = assay_format_decode(ASSAY_FORMAT_FP8E8M0, p);
    CHECK(same(v, ldexp(1, (int)p - 127)), "pattern %" PRIx64, p);
    CHECK(assay_format_encode(ASSAY_FORMAT_FP8E8M0, v, ASSAY_OVERFLOW_IEEE) == p, "%a", v);
  }
}

// round_n is round, for any length and in place.
static void test_round_n(void** state) {
  (void)state;
  enum { N = 1000 };
  for (int f = 0; f < ASSAY_FORMAT_COUNT; f++) {
    for (int o = 0; o < 2; o++) {
      static const size_t lengths[] = {0, 1, 7, 8, 9, 63, N};
      uint64_t random = seed + (uint64_t)f;
      double x[N], y[N], z[N];
      for (int i = 0; i < N; i++) {
        uint64_t b = random_bits(&random);
        x[i] = i % 3 ? ldexp((double)(int64_t)b, (int)(b % 80) - 100) : of_bits(b);
      }
      for (size_t l = 0; l < sizeof lengths / sizeof *lengths; l++) {
        size_t n = lengths[l];
        memset(y, 0xab, sizeof y);
        memcpy(z, x, sizeof z);
        assay_format_round_n((assay_format_t)f, x, y, n, (assay_overflow_t)o);
        assay_format_round_n((assay_format_t)f, z, z, n, (assay_overflow_t)o);
        for (size_t i = 0; i < N; i++) {
          double want = i < n ? assay_format_round((assay_format_t)f, x[i], (assay_overflow_t)o)
                              : of_bits(UINT64_C(0xabababababababab));
          CHECK(same(y[i], want), "%s: y[%zu] of %a is %a, expected %a (seed %" PRIu64 ")",
                assay_format_name((assay_format_t)f), i, x[i], y[i], want, seed);
          if (i < n) CHECK(same(z[i], want), "in place: %a", z[i]);
        }
      }
    }
  }
}

// ---- neighbours and distances -------------------------------------------------------------------

static int by_value(const void* a, const void* b) {
  double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

// All values of a format in ascending order, infinities included, one zero.
static size_t all_values(assay_format_t format, double* out) {
  const assay_format_info_t* info = assay_format_info(format);
  size_t n = 0, m = 0;
  for (uint64_t p = 0; p < UINT64_C(1) << info->bits; p++) {
    double v = assay_format_decode(format, p);
    if (v == v) out[n++] = v + 0.0;
  }
  qsort(out, n, sizeof *out, by_value);
  for (size_t i = 0; i < n; i++)
    if (!m || out[i] != out[m - 1]) out[m++] = out[i];
  return m;
}

static void test_neighbours(void** state) {
  (void)state;
  static double v[1 << 16];
  for (int f = 1; f < ASSAY_FORMAT_COUNT; f++) {
    assay_format_t format = (assay_format_t)f;
    const assay_format_info_t* info = assay_format_info(format);
    if (info->bits > 16 || format == ASSAY_FORMAT_BOOL) continue;
    size_t n = all_values(format, v);
    uint64_t random = seed;
    for (size_t i = 0; i < n; i++) {
      double up = i + 1 < n ? v[i + 1] : v[i], down = i ? v[i - 1] : v[i];
      double got = assay_format_next(format, v[i], 1);
      CHECK(got == up, "%s: next(%a, up) is %a, expected %a", info->name, v[i], got, up);
      got = assay_format_next(format, v[i], -1);
      CHECK(got == down, "%s: next(%a, down) is %a, expected %a", info->name, v[i], got, down);
      CHECK(same(assay_format_next(format, v[i], 0), v[i]), "%s", info->name);
      if (i + 1 < n && isfinite(v[i]) && isfinite(v[i + 1])) {
        double between = v[i] + (v[i + 1] - v[i]) * 0.375;
        got = assay_format_next(format, between, 1);
        CHECK(got == v[i + 1], "%s: next(%a, up) is %a", info->name, between, got);
        got = assay_format_next(format, between, -1);
        CHECK(got == v[i], "%s: next(%a, down) is %a", info->name, between, got);
        double step = v[i] >= 0 ? v[i + 1] - v[i] : 0;
        if (step > 0) {
          CHECK(assay_format_ulp(format, v[i]) == step, "%s: ulp(%a)", info->name, v[i]);
          CHECK(assay_format_ulp(format, -v[i]) == step, "%s: ulp(%a)", info->name, -v[i]);
        }
      }
      for (int k = 0; k < 8; k++) {
        size_t j = k < 2 ? (i + (size_t)k) % n : random_bits(&random) % n;
        int64_t want = i > j ? (int64_t)(i - j) : (int64_t)(j - i);
        int64_t d = assay_format_ulp_distance(format, v[i], v[j]);
        CHECK(d == want, "%s: distance of %a and %a is %" PRId64 ", expected %" PRId64, info->name,
              v[i], v[j], d, want);
      }
    }
    if (info->has_infinity) continue;
    CHECK(assay_format_next(format, inf, -1) == v[n - 1], "%s", info->name);
    CHECK(assay_format_next(format, inf, 1) == v[n - 1], "%s", info->name);
    CHECK(assay_format_next(format, -inf, 1) == v[0], "%s", info->name);
  }
}

static void test_wide_neighbours(void** state) {
  (void)state;
  uint64_t random = seed;
  for (int i = 0; i < 200000; i++) {
    double x = of_bits(random_bits(&random));
    float y = (float)ldexp((double)(int64_t)random_bits(&random),
                           (int)(random_bits(&random) % 250) - 200);
    if (x == x) {
      double up = nextafter(x, inf), down = nextafter(x, -inf);
      CHECK(assay_format_next(ASSAY_FORMAT_FP64, x, 1) == up, "%a", x);
      CHECK(assay_format_next(ASSAY_FORMAT_FP64, x, -1) == down, "%a", x);
      CHECK(assay_format_ulp_distance(ASSAY_FORMAT_FP64, x, up) == (x < up), "%a", x);
      double a = fabs(x);
      if (isfinite(nextafter(a, inf)))
        CHECK(assay_format_ulp(ASSAY_FORMAT_FP64, x) == nextafter(a, inf) - a, "%a", x);
    }
    CHECK(assay_format_next(ASSAY_FORMAT_FP32, (double)y, 1) == (double)nextafterf(y, INFINITY),
          "%a", (double)y);
    CHECK(assay_format_next(ASSAY_FORMAT_FP32, (double)y, -1) == (double)nextafterf(y, -INFINITY),
          "%a", (double)y);
    double t = assay_format_round(ASSAY_FORMAT_TF32, (double)y, ASSAY_OVERFLOW_IEEE);
    double up = assay_format_next(ASSAY_FORMAT_TF32, t, 1);
    if (isfinite(t) && isfinite(up)) {
      CHECK(assay_format_ulp_distance(ASSAY_FORMAT_TF32, t, up) == 1, "%a", t);
      CHECK(assay_format_next(ASSAY_FORMAT_TF32, up, -1) == t, "%a", t);
      if (t >= 0) CHECK(up - t == assay_format_ulp(ASSAY_FORMAT_TF32, t), "%a", t);
    }
  }
  static const struct {
    assay_format_t format;
    double a, b;
    int64_t want;
  } rows[] = {{ASSAY_FORMAT_FP64, -(double)INFINITY, (double)INFINITY, INT64_MAX},
              {ASSAY_FORMAT_FP32, (double)NAN, (double)NAN, 0},
              {ASSAY_FORMAT_FP32, (double)NAN, 1, -1},
              {ASSAY_FORMAT_FP32, 0.0, -0.0, 0},
              {ASSAY_FORMAT_FP32, -0x1p-149, 0x1p-149, 2},
              {ASSAY_FORMAT_FP32, 0x1.fffffep127, (double)INFINITY, 1},
              {ASSAY_FORMAT_FP8E4M3, 448, (double)INFINITY, 1},
              {ASSAY_FORMAT_INT8, -128, 127, 255},
              {ASSAY_FORMAT_INT64, -0x1p63, 0x1p63, INT64_MAX},
              {ASSAY_FORMAT_FP8E8M0, 1, 8, 3}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    int64_t d = assay_format_ulp_distance(rows[i].format, rows[i].a, rows[i].b);
    CHECK(d == rows[i].want, "row %zu: %" PRId64, i, d);
  }
  assert_true(assay_format_ulp(ASSAY_FORMAT_FP16, inf) == 32);
  assert_true(isnan(assay_format_ulp(ASSAY_FORMAT_FP16, nan_)));
}

// ---- integers ---------------------------------------------------------------------------------

static void test_integers(void** state) {
  (void)state;
  static const struct {
    assay_type_t type;
    double x;
    int64_t saturated;
  } rows[] = {{ASSAY_TYPE_INT8, 127.5, 127},
              {ASSAY_TYPE_INT8, 126.5, 126},
              {ASSAY_TYPE_INT8, -1e300, -128},
              {ASSAY_TYPE_UINT8, 255.4, 255},
              {ASSAY_TYPE_UINT8, -0.6, 0},
              {ASSAY_TYPE_INT4, 7.6, 7},
              {ASSAY_TYPE_INT2, 5, 1},
              {ASSAY_TYPE_UINT2, 2.5, 2},
              {ASSAY_TYPE_INT64, 1e19, INT64_MAX},
              {ASSAY_TYPE_INT64, -1e19, INT64_MIN},
              {ASSAY_TYPE_INT64, 0x1p63, INT64_MAX},
              {ASSAY_TYPE_INT64, -0x1p63, INT64_MIN},
              {ASSAY_TYPE_UINT64, 1e20, -1},
              {ASSAY_TYPE_UINT64, -5, 0},
              {ASSAY_TYPE_UINT64, 0x1p63, INT64_MIN},
              {ASSAY_TYPE_UINT32, 5e9, UINT32_MAX},
              {ASSAY_TYPE_BOOL, -2, 1},
              {ASSAY_TYPE_BOOL, 0, 0},
              {ASSAY_TYPE_INT32, (double)NAN, 0},
              {ASSAY_TYPE_INT32, (double)INFINITY, INT32_MAX}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    int64_t got = assay_type_saturate(rows[i].type, rows[i].x);
    CHECK(got == rows[i].saturated, "%s(%g) is %" PRId64, assay_type_name(rows[i].type), rows[i].x,
          got);
  }
  uint64_t random = seed;
  for (int i = 0; i < 10000; i++) {
    int64_t x = (int64_t)random_bits(&random);
    assert_int_equal(assay_type_wrap(ASSAY_TYPE_INT8, x), (int8_t)x);
    assert_int_equal(assay_type_wrap(ASSAY_TYPE_UINT8, x), (uint8_t)x);
    assert_int_equal(assay_type_wrap(ASSAY_TYPE_INT16, x), (int16_t)x);
    assert_int_equal(assay_type_wrap(ASSAY_TYPE_UINT16, x), (uint16_t)x);
    assert_int_equal(assay_type_wrap(ASSAY_TYPE_INT32, x), (int32_t)x);
    assert_int_equal(assay_type_wrap(ASSAY_TYPE_UINT32, x), (uint32_t)x);
    assert_int_equal(assay_type_wrap(ASSAY_TYPE_INT64, x), x);
    assert_int_equal(assay_type_wrap(ASSAY_TYPE_UINT64, x), x);
    assert_int_equal(assay_type_wrap(ASSAY_TYPE_INT4, x), (x & 7) - (x & 8));
    assert_int_equal(assay_type_wrap(ASSAY_TYPE_UINT4, x), x & 15);
    assert_int_equal(assay_type_wrap(ASSAY_TYPE_INT2, x), (x & 1) - (x & 2));
    assert_int_equal(assay_type_wrap(ASSAY_TYPE_UINT2, x), x & 3);
    assert_int_equal(assay_type_wrap(ASSAY_TYPE_BOOL, x), x != 0);
  }
}

// ---- packing ----------------------------------------------------------------------------------

static void test_packed_bytes(void** state) {
  (void)state;
  static const struct {
    assay_type_t type;
    int64_t n, bytes;  // -1: refused
  } rows[] = {{ASSAY_TYPE_INT4, 0, 0},
              {ASSAY_TYPE_INT4, 1, 1},
              {ASSAY_TYPE_INT4, 3, 2},
              {ASSAY_TYPE_UINT2, 5, 2},
              {ASSAY_TYPE_FLOAT6E2M3, 1, 1},
              {ASSAY_TYPE_FLOAT6E3M2, 4, 3},
              {ASSAY_TYPE_FLOAT6E3M2, 5, 4},
              {ASSAY_TYPE_FLOAT6E3M2, 9, 7},
              {ASSAY_TYPE_BOOL, 9, 9},
              {ASSAY_TYPE_COMPLEX128, 3, 48},
              {ASSAY_TYPE_FLOAT, -1, -1},
              {ASSAY_TYPE_STRING, 1, -1},
              {ASSAY_TYPE_DOUBLE, INT64_MAX, -1},
              {ASSAY_TYPE_INT8, INT64_MAX, INT64_MAX},
              {ASSAY_TYPE_INT4, INT64_MAX, INT64_MAX / 2 + 1}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    int64_t bytes = -1;
    bool ok = assay_type_packed_bytes(rows[i].type, rows[i].n, &bytes);
    CHECK(ok == (rows[i].bytes >= 0) && bytes == rows[i].bytes, "%s[%" PRId64 "] takes %" PRId64,
          assay_type_name(rows[i].type), rows[i].n, bytes);
  }
}

static uint64_t get_bits(const unsigned char* p, int64_t first, int bits) {
  uint64_t v = 0;
  for (int b = 0; b < bits; b++) v |= (uint64_t)(p[(first + b) / 8] >> ((first + b) % 8) & 1) << b;
  return v;
}

// Packed elements bit by bit, at every start and many lengths, at an odd address.
static void test_packing(void** state) {
  (void)state;
  enum { N = 300, BYTES = N * 16 };
  static unsigned char raw[BYTES + 16], packed[BYTES + 16];
  static uint64_t words[2 * N];
  for (int t = 1; t < ASSAY_TYPE_COUNT; t++) {
    assay_type_t type = (assay_type_t)t;
    if (type == ASSAY_TYPE_STRING) continue;
    assay_format_t format = assay_type_format(type);
    bool is_complex = assay_type_is_complex(type), floats = assay_type_is_float(type) || is_complex;
    int parts = is_complex ? 2 : 1, bits = assay_type_bits(type) / parts;
    const char* name = assay_type_name(type);
    uint64_t random = seed + (uint64_t)t;
    unsigned char *from = raw + 1, *to = packed + 3;
    for (int i = 0; i < BYTES; i++) from[i] = (unsigned char)random_bits(&random);
    for (int first = 0; first < 70; first++) {
      int n = first % 5 == 0 ? N - first : (int)(random_bits(&random) % 40);
      assay_unpack(type, from, first, n, words);
      for (int i = 0; i < n * parts; i++) {
        uint64_t p = get_bits(from, (int64_t)(first * parts + i) * bits, bits);
        double value;
        memcpy(&value, &words[i], sizeof value);
        if (floats)
          CHECK(same(value, assay_format_decode(format, p)), "%s[%d]: %" PRIx64 " is %a", name,
                first + i, p, value);
        else
          CHECK((int64_t)words[i] == assay_type_wrap(type, (int64_t)p), "%s[%d]", name, first + i);
      }
      for (int o = 0; o < 2; o++) {
        int64_t bytes = 0;
        assert_true(assay_type_packed_bytes(type, n, &bytes));
        memset(packed, 0xcd, sizeof packed);
        assay_pack(type, words, n, to, (assay_overflow_t)o);
        CHECK(to[-1] == 0xcd && to[bytes] == 0xcd, "%s: %d elements: past the ends", name, n);
        for (int i = 0; i < n * parts; i++) {
          uint64_t p = get_bits(to, (int64_t)i * bits, bits), want = words[i];
          double value;
          memcpy(&value, &words[i], sizeof value);
          if (floats)
            want = assay_format_encode(format, value, (assay_overflow_t)o);
          else if (bits < 64)
            want &= (UINT64_C(1) << bits) - 1;
          CHECK(p == want, "%s: pack[%d] of %a gives %" PRIx64 ", expected %" PRIx64, name, i,
                value, p, want);
        }
        for (int64_t b = (int64_t)n * parts * bits; b < 8 * bytes; b++)
          CHECK(!get_bits(to, b, 1), "%s: %d elements: last bits", name, n);
      }
    }
  }
  int64_t truth[3] = {0, 7, -1};
  assay_pack(ASSAY_TYPE_BOOL, truth, 3, packed, ASSAY_OVERFLOW_IEEE);
  assert_memory_equal(packed, "\0\1\1", 3);
}

// Values that overflow, packed in bulk and singly.
static void test_pack_overflow(void** state) {
  (void)state;
  const double x[] = {inf, -inf, 1e300, -1e300, 3.5e38, 65520, 464.5, -250, 1e5, nan_, -nan_, -0.0};
  enum { N = sizeof x / sizeof *x };
  for (int t = 1; t < ASSAY_TYPE_COUNT; t++) {
    assay_type_t type = (assay_type_t)t;
    if (!assay_type_is_float(type)) continue;
    for (int o = 0; o < 2; o++) {
      unsigned char packed[8 * N];
      double back[N];
      assay_pack(type, x, N, packed, (assay_overflow_t)o);
      assay_unpack(type, packed, 0, N, back);
      for (int i = 0; i < N; i++) {
        double want = assay_format_round(assay_type_format(type), x[i], (assay_overflow_t)o);
        CHECK(same(back[i], want), "%s, overflow %d: %a gives %a, expected %a",
              assay_type_name(type), o, x[i], back[i], want);
      }
    }
  }
}

int main(void) {
  const char* text = getenv("ASSAY_TEST_SEED");
  seed = text ? strtoull(text, NULL, 10) : 20250101;
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_table),
                                     cmocka_unit_test(test_names),
                                     cmocka_unit_test(test_rounding),
                                     cmocka_unit_test(test_once),
                                     cmocka_unit_test(test_nan),
                                     cmocka_unit_test(test_e8m0),
                                     cmocka_unit_test(test_round_n),
                                     cmocka_unit_test(test_neighbours),
                                     cmocka_unit_test(test_wide_neighbours),
                                     cmocka_unit_test(test_integers),
                                     cmocka_unit_test(test_packed_bytes),
                                     cmocka_unit_test(test_packing),
                                     cmocka_unit_test(test_pack_overflow)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
