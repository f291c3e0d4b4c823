// The table of formats, types, and what is done to one value at a time.
//
// Rounding scales nothing: around x a format with p significant bits has the quantum
// 2^(max(floor(log2 |x|), e_min) - (p-1)), and adding 2^52 quanta to |x| in float64 and taking them
// off again leaves the nearest multiple, ties to even, subnormals included. It happens once, from
// float64.
// Source: Muller et al., Handbook of Floating-Point Arithmetic, 2nd ed., 2.1, 2.2 and 4.1; IEEE
// 754-2019, 4.3.1.
#include "formats/format.h"

#include <limits.h>
#include <math.h>
#include <string.h>
#include <strings.h>

#include "formats/codec.h"

#define INT_ROW(NAME, TYPE, BITS, SIGN, MAX) \
  { .name = NAME, .type = TYPE, .bits = BITS, .is_signed = SIGN, .max = MAX }

static const assay_format_info_t rows[ASSAY_FORMAT_COUNT] = {
    [ASSAY_FORMAT_NONE] = {.name = "none"},
    [ASSAY_FORMAT_FP64] = {.name = "fp64",
                           .type = ASSAY_TYPE_DOUBLE,
                           .bits = 64,
                           .is_float = true,
                           .is_signed = true,
                           .precision = 53,
                           .min_exponent = -1022,
                           .max = 0x1.fffffffffffffp1023,
                           .min_normal = 0x1p-1022,
                           .min_subnormal = 0x1p-1074,
                           .unit_roundoff = 0x1p-53,
                           .has_infinity = true,
                           .has_nan = true},
#define R(ID, NAME, TYPE, BITS, SIGN, P, EMIN, MAX, SUB, INF, NANS) \
  [ID] = {.name = NAME,                                             \
          .type = TYPE,                                             \
          .bits = BITS,                                             \
          .is_float = true,                                         \
          .is_signed = SIGN,                                        \
          .precision = P,                                           \
          .min_exponent = EMIN,                                     \
          .max = MAX,                                               \
          .min_normal = (SUB) * (1 << (P - 1)),                     \
          .min_subnormal = SUB,                                     \
          .unit_roundoff = 1.0 / (1 << P),                          \
          .has_infinity = INF,                                      \
          .has_nan = NANS}
    R(ASSAY_FORMAT_FP32, "fp32", ASSAY_TYPE_FLOAT, 32, true, 24, -126, 0x1.fffffep127, 0x1p-149,
      true, true),
    R(ASSAY_FORMAT_TF32, "tf32", ASSAY_TYPE_UNDEFINED, 32, true, 11, -126, 0x1.ffcp127, 0x1p-136,
      true, true),
    R(ASSAY_FORMAT_BF16, "bf16", ASSAY_TYPE_BFLOAT16, 16, true, 8, -126, 0x1.fep127, 0x1p-133, true,
      true),
    R(ASSAY_FORMAT_FP16, "fp16", ASSAY_TYPE_FLOAT16, 16, true, 11, -14, 65504, 0x1p-24, true, true),
    R(ASSAY_FORMAT_FP8E4M3, "fp8e4m3", ASSAY_TYPE_FLOAT8E4M3FN, 8, true, 4, -6, 448, 0x1p-9, false,
      true),
    R(ASSAY_FORMAT_FP8E4M3FNUZ, "fp8e4m3fnuz", ASSAY_TYPE_FLOAT8E4M3FNUZ, 8, true, 4, -7, 240,
      0x1p-10, false, true),
    R(ASSAY_FORMAT_FP8E5M2, "fp8e5m2", ASSAY_TYPE_FLOAT8E5M2, 8, true, 3, -14, 57344, 0x1p-16, true,
      true),
    R(ASSAY_FORMAT_FP8E5M2FNUZ, "fp8e5m2fnuz", ASSAY_TYPE_FLOAT8E5M2FNUZ, 8, true, 3, -15, 57344,
      0x1p-17, false, true),
    R(ASSAY_FORMAT_FP8E8M0, "fp8e8m0", ASSAY_TYPE_FLOAT8E8M0, 8, false, 1, -127, 0x1p127, 0x1p-127,
      false, true),
    R(ASSAY_FORMAT_FP6E2M3, "fp6e2m3", ASSAY_TYPE_FLOAT6E2M3, 6, true, 4, 0, 7.5, 0.125, false,
      false),
    R(ASSAY_FORMAT_FP6E3M2, "fp6e3m2", ASSAY_TYPE_FLOAT6E3M2, 6, true, 3, -2, 28, 0.0625, false,
      false),
    R(ASSAY_FORMAT_FP4E2M1, "fp4e2m1", ASSAY_TYPE_FLOAT4E2M1, 4, true, 2, 0, 6, 0.5, false, false),
#undef R
    [ASSAY_FORMAT_INT64] = INT_ROW("int64", ASSAY_TYPE_INT64, 64, true, 0x1p63),
    [ASSAY_FORMAT_INT32] = INT_ROW("int32", ASSAY_TYPE_INT32, 32, true, 0x7fffffff),
    [ASSAY_FORMAT_INT16] = INT_ROW("int16", ASSAY_TYPE_INT16, 16, true, 0x7fff),
    [ASSAY_FORMAT_INT8] = INT_ROW("int8", ASSAY_TYPE_INT8, 8, true, 127),
    [ASSAY_FORMAT_INT4] = INT_ROW("int4", ASSAY_TYPE_INT4, 4, true, 7),
    [ASSAY_FORMAT_INT2] = INT_ROW("int2", ASSAY_TYPE_INT2, 2, true, 1),
    [ASSAY_FORMAT_UINT64] = INT_ROW("uint64", ASSAY_TYPE_UINT64, 64, false, 0x1p64),
    [ASSAY_FORMAT_UINT32] = INT_ROW("uint32", ASSAY_TYPE_UINT32, 32, false, 4294967295.0),
    [ASSAY_FORMAT_UINT16] = INT_ROW("uint16", ASSAY_TYPE_UINT16, 16, false, 65535),
    [ASSAY_FORMAT_UINT8] = INT_ROW("uint8", ASSAY_TYPE_UINT8, 8, false, 255),
    [ASSAY_FORMAT_UINT4] = INT_ROW("uint4", ASSAY_TYPE_UINT4, 4, false, 15),
    [ASSAY_FORMAT_UINT2] = INT_ROW("uint2", ASSAY_TYPE_UINT2, 2, false, 3),
    [ASSAY_FORMAT_BOOL] = INT_ROW("bool", ASSAY_TYPE_BOOL, 8, false, 1),
};
#undef INT_ROW

const assay_format_info_t* assay_format_info(assay_format_t format) {
  return &rows[(unsigned)format < ASSAY_FORMAT_COUNT ? format : ASSAY_FORMAT_NONE];
}

const char* assay_format_name(assay_format_t format) {
  return (unsigned)format < ASSAY_FORMAT_COUNT ? rows[format].name : "none";
}

bool assay_format_is_float(assay_format_t format) {
  return (unsigned)format < ASSAY_FORMAT_COUNT && rows[format].is_float;
}

// ---- types ------------------------------------------------------------------------------------

// By element type: ONNX's name, and the format of its elements (of its parts, if complex).
static const struct {
  const char* name;
  assay_format_t format;
} types[ASSAY_TYPE_COUNT] = {
    [ASSAY_TYPE_UNDEFINED] = {"undefined", ASSAY_FORMAT_NONE},
    [ASSAY_TYPE_FLOAT] = {"float", ASSAY_FORMAT_FP32},
    [ASSAY_TYPE_UINT8] = {"uint8", ASSAY_FORMAT_UINT8},
    [ASSAY_TYPE_INT8] = {"int8", ASSAY_FORMAT_INT8},
    [ASSAY_TYPE_UINT16] = {"uint16", ASSAY_FORMAT_UINT16},
    [ASSAY_TYPE_INT16] = {"int16", ASSAY_FORMAT_INT16},
    [ASSAY_TYPE_INT32] = {"int32", ASSAY_FORMAT_INT32},
    [ASSAY_TYPE_INT64] = {"int64", ASSAY_FORMAT_INT64},
    [ASSAY_TYPE_STRING] = {"string", ASSAY_FORMAT_NONE},
    [ASSAY_TYPE_BOOL] = {"bool", ASSAY_FORMAT_BOOL},
    [ASSAY_TYPE_FLOAT16] = {"float16", ASSAY_FORMAT_FP16},
    [ASSAY_TYPE_DOUBLE] = {"double", ASSAY_FORMAT_FP64},
    [ASSAY_TYPE_UINT32] = {"uint32", ASSAY_FORMAT_UINT32},
    [ASSAY_TYPE_UINT64] = {"uint64", ASSAY_FORMAT_UINT64},
    [ASSAY_TYPE_COMPLEX64] = {"complex64", ASSAY_FORMAT_FP32},
    [ASSAY_TYPE_COMPLEX128] = {"complex128", ASSAY_FORMAT_FP64},
    [ASSAY_TYPE_BFLOAT16] = {"bfloat16", ASSAY_FORMAT_BF16},
    [ASSAY_TYPE_FLOAT8E4M3FN] = {"float8e4m3fn", ASSAY_FORMAT_FP8E4M3},
    [ASSAY_TYPE_FLOAT8E4M3FNUZ] = {"float8e4m3fnuz", ASSAY_FORMAT_FP8E4M3FNUZ},
    [ASSAY_TYPE_FLOAT8E5M2] = {"float8e5m2", ASSAY_FORMAT_FP8E5M2},
    [ASSAY_TYPE_FLOAT8E5M2FNUZ] = {"float8e5m2fnuz", ASSAY_FORMAT_FP8E5M2FNUZ},
    [ASSAY_TYPE_UINT4] = {"uint4", ASSAY_FORMAT_UINT4},
    [ASSAY_TYPE_INT4] = {"int4", ASSAY_FORMAT_INT4},
    [ASSAY_TYPE_FLOAT4E2M1] = {"float4e2m1", ASSAY_FORMAT_FP4E2M1},
    [ASSAY_TYPE_FLOAT8E8M0] = {"float8e8m0", ASSAY_FORMAT_FP8E8M0},
    [ASSAY_TYPE_UINT2] = {"uint2", ASSAY_FORMAT_UINT2},
    [ASSAY_TYPE_INT2] = {"int2", ASSAY_FORMAT_INT2},
    [ASSAY_TYPE_FLOAT6E2M3] = {"float6e2m3", ASSAY_FORMAT_FP6E2M3},
    [ASSAY_TYPE_FLOAT6E3M2] = {"float6e3m2", ASSAY_FORMAT_FP6E3M2},
};

static bool is_type(assay_type_t t) { return t > ASSAY_TYPE_UNDEFINED && t < ASSAY_TYPE_COUNT; }

const char* assay_type_name(assay_type_t type) {
  return is_type(type) ? types[type].name : types[0].name;
}

assay_format_t assay_type_format(assay_type_t type) {
  return is_type(type) ? types[type].format : ASSAY_FORMAT_NONE;
}

assay_type_t assay_type_parse(const char* name) {
  for (int i = 1; i < ASSAY_TYPE_COUNT; i++)
    if (strcmp(types[i].name, name) == 0) return (assay_type_t)i;
  return ASSAY_TYPE_UNDEFINED;
}

assay_format_t assay_format_parse(const char* name) {
  static const struct {
    const char* name;
    assay_format_t format;
  } aliases[] = {{"half", ASSAY_FORMAT_FP16},         {"float", ASSAY_FORMAT_FP32},
                 {"float32", ASSAY_FORMAT_FP32},      {"float64", ASSAY_FORMAT_FP64},
                 {"fp8", ASSAY_FORMAT_FP8E4M3},       {"fp8e4m3fn", ASSAY_FORMAT_FP8E4M3},
                 {"e4m3", ASSAY_FORMAT_FP8E4M3},      {"e5m2", ASSAY_FORMAT_FP8E5M2},
                 {"e8m0", ASSAY_FORMAT_FP8E8M0},      {"fp4", ASSAY_FORMAT_FP4E2M1},
                 {"tensorfloat32", ASSAY_FORMAT_TF32}};
  for (int i = 1; i < ASSAY_FORMAT_COUNT; i++)
    if (strcasecmp(rows[i].name, name) == 0) return (assay_format_t)i;
  for (size_t i = 0; i < sizeof aliases / sizeof *aliases; i++)
    if (strcasecmp(aliases[i].name, name) == 0) return aliases[i].format;
  for (int i = 1; i < ASSAY_TYPE_COUNT; i++)
    if (strcasecmp(types[i].name, name) == 0) return types[i].format;
  return ASSAY_FORMAT_NONE;
}

bool assay_type_is_complex(assay_type_t type) {
  return type == ASSAY_TYPE_COMPLEX64 || type == ASSAY_TYPE_COMPLEX128;
}
bool assay_type_is_float(assay_type_t type) {
  return !assay_type_is_complex(type) && rows[assay_type_format(type)].is_float;
}
bool assay_type_is_integer(assay_type_t type) {
  assay_format_t f = assay_type_format(type);
  return f >= ASSAY_FORMAT_INT64 && f < ASSAY_FORMAT_BOOL;
}
bool assay_type_is_signed(assay_type_t type) { return rows[assay_type_format(type)].is_signed; }

int assay_type_bits(assay_type_t type) {
  int bits = rows[assay_type_format(type)].bits;
  return assay_type_is_complex(type) ? 2 * bits : bits;
}

bool assay_type_packed_bytes(assay_type_t type, int64_t n, int64_t* out_bytes) {
  int64_t bits = assay_type_bits(type), total;
  if (!bits || n < 0) return false;
  // Groups of 8 elements are whole bytes; 6-bit floats are packed as densely as the others.
  int64_t rest = (n % 8 * bits + 7) / 8;
  if (__builtin_mul_overflow(n / 8, bits, &total) || __builtin_add_overflow(total, rest, &total))
    return false;
  *out_bytes = total;
  return true;
}

// ---- codecs -------------------------------------------------------------------------------------

// Derived from the same parameters as the rows above; the tests hold them against each other.
#define CODEC(ID, P, EMIN, MAX, LIMIT, SUB, TOP, PAD, NAN_PATTERN, SIGN, SHIFT, ZERO_SIGN, INF, \
              NANS)                                                                             \
  [ID] = {.min_normal = (SUB) * (double)(UINT64_C(1) << ((P)-1)),                               \
          .magic = (double)(UINT64_C(1) << (53 - (P))),                                         \
          .max = MAX,                                                                           \
          .limit = LIMIT,                                                                       \
          .nan_keep = (NANS) ? UINT64_MAX : ASSAY_SIGN,                                         \
          .nan_flip = (NANS) ? 0 : ASSAY_SIGN,                                                  \
          .zero_sign = (ZERO_SIGN) ? ASSAY_SIGN : 0,                                            \
          .shift = 53 - (P),                                                                    \
          .pad = PAD,                                                                           \
          .half = (UINT64_C(1) << (52 - (P))) - 1,                                              \
          .odd = 1,                                                                             \
          .offset = (uint64_t)(1022 + (EMIN)) << ((P)-1),                                       \
          .sub_magic = (SUB)*0x1p52,                                                            \
          .max_ordinal = TOP,                                                                   \
          .min_normal_ordinal = UINT64_C(1) << ((P)-1),                                         \
          .nan_pattern = NAN_PATTERN,                                                           \
          .sign_pattern = SIGN,                                                                 \
          .sign_shift = SHIFT,                                                                  \
          .past = ASSAY_EXPONENT | ((INF) ? 0 : ASSAY_QUIET),                                   \
          .negative_zero = (ZERO_SIGN) ? ASSAY_SIGN : ASSAY_EXPONENT | ASSAY_QUIET,             \
          .none_sign = (NANS) ? 0 : (SIGN),                                                     \
          .has_infinity = INF,                                                                  \
          .has_nan = NANS}

static const assay_codec_t codecs[ASSAY_FORMAT_COUNT] = {
    CODEC(ASSAY_FORMAT_FP32, 24, -126, 0x1.fffffep127, 0x1p128, 0x1p-149, 0x7f7fffff, 0, 0x7fc00000,
          0x80000000, 32, true, true, true),
    CODEC(ASSAY_FORMAT_TF32, 11, -126, 0x1.ffcp127, 0x1p128, 0x1p-136, 0x3fbff, 13, 0x7fc00000,
          0x80000000, 32, true, true, true),
    CODEC(ASSAY_FORMAT_BF16, 8, -126, 0x1.fep127, 0x1p128, 0x1p-133, 0x7f7f, 0, 0x7fc0, 0x8000, 48,
          true, true, true),
    CODEC(ASSAY_FORMAT_FP16, 11, -14, 65504, 65536, 0x1p-24, 0x7bff, 0, 0x7e00, 0x8000, 48, true,
          true, true),
    CODEC(ASSAY_FORMAT_FP8E4M3, 4, -6, 448, 512, 0x1p-9, 0x7e, 0, 0x7f, 0x80, 56, true, false,
          true),
    CODEC(ASSAY_FORMAT_FP8E4M3FNUZ, 4, -7, 240, 256, 0x1p-10, 0x7f, 0, 0x80, 0x80, 56, false, false,
          true),
    CODEC(ASSAY_FORMAT_FP8E5M2, 3, -14, 57344, 65536, 0x1p-16, 0x7b, 0, 0x7e, 0x80, 56, true, true,
          true),
    CODEC(ASSAY_FORMAT_FP8E5M2FNUZ, 3, -15, 57344, 65536, 0x1p-17, 0x7f, 0, 0x80, 0x80, 56, false,
          false, true),
    CODEC(ASSAY_FORMAT_FP6E2M3, 4, 0, 7.5, 8, 0.125, 0x1f, 0, 0, 0x20, 58, true, false, false),
    CODEC(ASSAY_FORMAT_FP6E3M2, 3, -2, 28, 32, 0.0625, 0x1f, 0, 0, 0x20, 58, true, false, false),
    CODEC(ASSAY_FORMAT_FP4E2M1, 2, 0, 6, 8, 0.5, 0x7, 0, 0, 0x8, 60, true, false, false),
};
#undef CODEC

const assay_codec_t* assay_codec(assay_format_t format) {
  const assay_codec_t* c = &codecs[(unsigned)format < ASSAY_FORMAT_COUNT ? format : 0];
  return c->shift ? c : NULL;
}

// ---- rounding -----------------------------------------------------------------------------------

double assay_format_round_e8m0(double x, assay_e8m0_mode_t mode, assay_overflow_t overflow) {
  return assay_e8m0_decode(assay_e8m0_encode(x, mode, overflow));
}

static double integer_value(assay_type_t type, int64_t i) {
  return type == ASSAY_TYPE_UINT64 ? (double)(uint64_t)i : (double)i;
}

double assay_format_round(assay_format_t format, double x, assay_overflow_t overflow) {
  const assay_codec_t* c = assay_codec(format);
  if (c) return assay_codec_round(c, x, assay_codec_over(c, overflow));
  const assay_format_info_t* f = assay_format_info(format);
  if (format == ASSAY_FORMAT_FP8E8M0)
    return assay_format_round_e8m0(x, ASSAY_E8M0_NEAREST, overflow);
  if (f->is_float) return overflow == ASSAY_OVERFLOW_SATURATE && isinf(x) ? copysign(f->max, x) : x;
  return format == ASSAY_FORMAT_NONE ? x : integer_value(f->type, assay_type_saturate(f->type, x));
}

ASSAY_WIDE static void round_float_n(const assay_codec_t* codec, const double* x, double* y,
                                     size_t n, double over) {
  const assay_codec_t c = *codec;
#pragma omp simd
  for (size_t i = 0; i < n; i++) y[i] = assay_codec_round(&c, x[i], over);
}

// Integers of up to 32 bits: clamped, so that adding 1.5 * 2^52 rounds them.
ASSAY_WIDE static void round_integer_n(double low, double high, const double* x, double* y,
                                       size_t n) {
#pragma omp simd
  for (size_t i = 0; i < n; i++) {
    double v = x[i] == x[i] ? x[i] : 0;
    v = v > low ? v : low;
    v = v < high ? v : high;
    y[i] = (v + 0x1.8p52) - 0x1.8p52;
  }
}

static void round_some(assay_format_t format, const double* x, double* y, size_t n,
                       assay_overflow_t overflow) {
  const assay_format_info_t* f = &rows[format];
  const assay_codec_t* c = assay_codec(format);
  if (c) {
    round_float_n(c, x, y, n, assay_codec_over(c, overflow));
  } else if (format == ASSAY_FORMAT_FP64 && overflow == ASSAY_OVERFLOW_IEEE) {
    if (x != y) memcpy(y, x, n * sizeof *x);
  } else if (!f->is_float && f->bits <= 32 && f->bits > 0 && format != ASSAY_FORMAT_BOOL) {
    round_integer_n(f->is_signed ? -f->max - 1 : 0, f->max, x, y, n);
  } else {
    for (size_t i = 0; i < n; i++) y[i] = assay_format_round(format, x[i], overflow);
  }
}

double assay_format_round_stochastic(assay_format_t format, double x, double random) {
  const double near = assay_format_round(format, x, ASSAY_OVERFLOW_IEEE);
  if (near == x || !isfinite(near) || !isfinite(x)) return near;
  const double other = assay_format_next(format, near, x > near ? 1 : -1);
  const double low = near < other ? near : other, high = near < other ? other : near;
  if (!isfinite(other)) return near;
  return random < (x - low) / (high - low) ? high : low;
}

void assay_format_round_n(assay_format_t format, const double* x, double* y, size_t n,
                          assay_overflow_t overflow) {
  enum { CHUNK = 1 << 15 };
  size_t chunks = n / CHUNK + (n % CHUNK != 0);
#pragma omp parallel for schedule(static) if (chunks > 8)
  for (size_t k = 0; k < chunks; k++)
    round_some(format, x + k * CHUNK, y + k * CHUNK, n - k * CHUNK < CHUNK ? n - k * CHUNK : CHUNK,
               overflow);
}

// ---- bit patterns -------------------------------------------------------------------------------

uint64_t assay_format_encode(assay_format_t format, double x, assay_overflow_t overflow) {
  const assay_codec_t* c = assay_codec(format);
  if (format == ASSAY_FORMAT_FP32 && (overflow == ASSAY_OVERFLOW_IEEE || x != x)) {
    float v = (float)x;
    uint32_t pattern;
    memcpy(&pattern, &v, sizeof pattern);
    return pattern;
  }
  if (c) return assay_codec_encode(c, x, assay_codec_over_pattern(c, overflow));
  const assay_format_info_t* f = assay_format_info(format);
  if (format == ASSAY_FORMAT_FP8E8M0) return assay_e8m0_encode(x, ASSAY_E8M0_NEAREST, overflow);
  if (f->is_float) return assay_bits_of(assay_format_round(format, x, overflow));
  uint64_t mask = f->bits == 64 ? UINT64_MAX : (UINT64_C(1) << f->bits) - 1;
  return (uint64_t)assay_type_saturate(f->type, x) & mask;
}

double assay_format_decode(assay_format_t format, uint64_t bits) {
  if (format == ASSAY_FORMAT_FP32 || format == ASSAY_FORMAT_TF32) {
    uint32_t pattern = (uint32_t)bits;
    float v;
    memcpy(&v, &pattern, sizeof v);
    return (double)v;
  }
  const assay_codec_t* c = assay_codec(format);
  if (c) return assay_codec_decode(c, bits & (2 * c->sign_pattern - 1));
  const assay_format_info_t* f = assay_format_info(format);
  if (format == ASSAY_FORMAT_FP8E8M0) return assay_e8m0_decode(bits & 0xff);
  if (f->is_float) return assay_of_bits(bits);
  if (format == ASSAY_FORMAT_BOOL) return (bits & 0xff) != 0;
  return integer_value(f->type, assay_type_wrap(f->type, (int64_t)bits));
}

// ---- integers -----------------------------------------------------------------------------------

int64_t assay_type_wrap(assay_type_t type, int64_t x) {
  if (type == ASSAY_TYPE_BOOL) return x != 0;
  const assay_format_info_t* f = &rows[assay_type_format(type)];
  if (f->bits <= 0 || f->bits >= 64) return x;
  uint64_t low = (uint64_t)x & ((UINT64_C(1) << f->bits) - 1);
  if (!f->is_signed || !(low >> (f->bits - 1))) return (int64_t)low;
  return (int64_t)(low | ~((UINT64_C(1) << f->bits) - 1));
}

int64_t assay_type_saturate(assay_type_t type, double x) {
  if (x != x) return 0;
  if (type == ASSAY_TYPE_BOOL) return x != 0;
  const assay_format_info_t* f = &rows[assay_type_format(type)];
  double r = nearbyint(x);
  if (type == ASSAY_TYPE_UINT64) {
    if (r >= 0x1p64) return -1;
    return r <= 0 ? 0 : (int64_t)(uint64_t)r;
  }
  if (type == ASSAY_TYPE_INT64) {
    if (r >= 0x1p63) return INT64_MAX;
    return r < -0x1p63 ? INT64_MIN : (int64_t)r;
  }
  double low = f->is_signed ? -f->max - 1 : 0;
  return (int64_t)(r < low ? low : r > f->max ? f->max : r);
}

// ---- neighbours and distances -------------------------------------------------------------------

// A monotone numbering of a format's values: 0 for zero (2^-127 in e8m0), +-k for the k-th value
// from it. What is past the end counts as one step more, whether the format has an infinity or not.
static int64_t ordinal(assay_format_t format, double x) {
  const assay_codec_t* c = assay_codec(format);
  if (format == ASSAY_FORMAT_FP8E8M0)
    return x > 0x1p127 ? 255
                       : (int64_t)assay_e8m0_encode(x, ASSAY_E8M0_NEAREST, ASSAY_OVERFLOW_SATURATE);
  int64_t k = (int64_t)(c ? assay_codec_ordinal(c, x) : assay_bits_of(x) & ~ASSAY_SIGN);
  return signbit(x) ? -k : k;
}

static double at_ordinal(assay_format_t format, int64_t k) {
  const assay_codec_t* c = assay_codec(format);
  const assay_format_info_t* f = &rows[format];
  if (format == ASSAY_FORMAT_FP8E8M0)
    return assay_e8m0_decode((uint64_t)(k < 0 ? 0 : k > 254 ? 254 : k));
  uint64_t magnitude = (uint64_t)(k < 0 ? -k : k), top = c ? c->max_ordinal : assay_bits_of(f->max);
  double r;
  if (magnitude > top)
    r = f->has_infinity ? (double)INFINITY : f->max;
  else
    r = c ? assay_codec_decode(c, magnitude << c->pad) : assay_of_bits(magnitude);
  return k < 0 ? -r : r;
}

double assay_format_next(assay_format_t format, double x, int direction) {
  const assay_format_info_t* f = assay_format_info(format);
  if (x != x || !direction || format == ASSAY_FORMAT_NONE) return x;
  if (!f->is_float) {
    double low = f->is_signed ? -f->max - (f->bits < 64) : 0, high = f->max;
    double r = direction > 0 ? floor(x) + 1 : ceil(x) - 1;
    return r < low ? low : r > high ? high : r;
  }
  if (!f->is_signed && x < f->min_subnormal) return f->min_subnormal;  // e8m0, which begins there
  double r = assay_format_round(format, x, ASSAY_OVERFLOW_SATURATE);
  if (isinf(x) && f->has_infinity) r = x;
  if (direction > 0 ? r > x : r < x) return r;  // x is not in the format, and rounded that way
  if (isinf(r) && (direction > 0) == (r > 0)) return r;
  if (isinf(x) && !f->has_infinity) return r;  // the end of the format is next to infinity
  return at_ordinal(format, ordinal(format, r) + (direction > 0 ? 1 : -1));
}

double assay_format_ulp(assay_format_t format, double x) {
  const assay_format_info_t* f = assay_format_info(format);
  if (!f->is_float) return 1;
  if (x != x) return x;
  double a = fabs(x);
  if (a > f->max) a = f->max;
  int e = a < f->min_normal ? f->min_exponent : ilogb(a);
  return ldexp(1, e - (f->precision - 1));
}

int64_t assay_format_ulp_distance(assay_format_t format, double a, double b) {
  const assay_format_info_t* f = assay_format_info(format);
  if (a != a || b != b) return a != a && b != b ? 0 : -1;
  if (a == b) return 0;
  if (!f->is_float) {
    double d = fabs(a - b);
    return d < 0x1p63 ? (int64_t)d : INT64_MAX;
  }
  int64_t i = ordinal(format, a), k = ordinal(format, b);
  uint64_t distance = i > k ? (uint64_t)i - (uint64_t)k : (uint64_t)k - (uint64_t)i;
  return distance > INT64_MAX ? INT64_MAX : (int64_t)distance;
}
