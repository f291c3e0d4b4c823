// The table of formats, and rounding by one formula for all of them.
//
// A float format with p significant bits and smallest normal exponent e_min has, around x, the quantum
// 2^(max(floor(log2 |x|), e_min) - (p - 1)). Scaling by it, rounding to an integer and scaling back
// is exact but for the rounding wanted, subnormals included, since all that happens in float64 with room
// to spare. Source: Muller et al., Handbook of Floating-Point Arithmetic, 2nd ed., 2.1 and 2.2.
#include "formats/format.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

// Loops below are compiled for several widths of vectors; every step is exact or a single IEEE operation,
// so that all of them give the same bits.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__)
#define WIDE __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define WIDE
#endif

#define INT_ROW(NAME, TYPE, BITS, SIGN, MAX) \
  {.name = NAME, .type = TYPE, .bits = BITS, .is_signed = SIGN, .max = MAX}

static const assay_format_info_t rows[ASSAY_FORMAT_COUNT] = {
    [ASSAY_FORMAT_NONE] = {.name = "none"},
    [ASSAY_FORMAT_FP64] = {.name = "fp64", .type = ASSAY_TYPE_DOUBLE, .bits = 64, .is_float = true,
                           .is_signed = true, .precision = 53, .min_exponent = -1022,
                           .max = 0x1.fffffffffffffp1023, .min_normal = 0x1p-1022,
                           .min_subnormal = 0x1p-1074, .unit_roundoff = 0x1p-53,
                           .has_infinity = true, .has_nan = true},
#define R(ID, NAME, TYPE, BITS, SIGN, P, EMIN, MAX, SUB, INF, NANS)                             \
  [ID] = {.name = NAME, .type = TYPE, .bits = BITS, .is_float = true, .is_signed = SIGN,        \
          .precision = P, .min_exponent = EMIN, .max = MAX, .min_normal = (SUB) * (1 << (P - 1)),  \
          .min_subnormal = SUB, .unit_roundoff = 1.0 / (1 << P), .has_infinity = INF,           \
          .has_nan = NANS}
    R(ASSAY_FORMAT_FP32, "fp32", ASSAY_TYPE_FLOAT, 32, true, 24, -126, 0x1.fffffep127, 0x1p-149,
      true, true),
    R(ASSAY_FORMAT_TF32, "tf32", ASSAY_TYPE_UNDEFINED, 32, true, 11, -126, 0x1.ffcp127, 0x1p-136,
      true, true),
    R(ASSAY_FORMAT_BF16, "bf16", ASSAY_TYPE_BFLOAT16, 16, true, 8, -126, 0x1.fep127, 0x1p-133,
      true, true),
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

const assay_format_info_t* assay_format_info(assay_format_t format) { return &rows[format]; }

const char* assay_format_name(assay_format_t format) {
  return (unsigned)format < ASSAY_FORMAT_COUNT ? rows[format].name : "none";
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
  } aliases[] = {{"half", ASSAY_FORMAT_FP16}, {"float", ASSAY_FORMAT_FP32},
                 {"float32", ASSAY_FORMAT_FP32}, {"float64", ASSAY_FORMAT_FP64},
                 {"fp8", ASSAY_FORMAT_FP8E4M3}, {"fp4", ASSAY_FORMAT_FP4E2M1},
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

// Bits that an element takes in raw_data: 6-bit floats take a byte each.
static int stored_bits(assay_type_t type) {
  int bits = assay_type_bits(type);
  return bits == 6 ? 8 : bits;
}

bool assay_type_packed_bytes(assay_type_t type, int64_t n, int64_t* out_bytes) {
  int64_t bits = stored_bits(type);
  int64_t total;
  if (!bits || n < 0) return false;
  if (bits < 8) {
    int64_t each = 8 / bits;
    *out_bytes = n / each + (n % each != 0);
    return true;
  }
  if (__builtin_mul_overflow(n, bits / 8, &total)) return false;
  *out_bytes = total;
  return true;
}

// ---- rounding -----------------------------------------------------------------------------------

static inline uint64_t bits_of(double x) {
  uint64_t b;
  memcpy(&b, &x, sizeof b);
  return b;
}
static inline double of_bits(uint64_t b) {
  double x;
  memcpy(&x, &b, sizeof x);
  return x;
}
static inline double power_of_two(int64_t e) { return of_bits((uint64_t)(e + 1023) << 52); }

// Rounds to p significant bits, exponents from e_min, with no upper end; NaN and infinity pass.
// p is at most 24 and e_min at least -149, so that nothing here overflows or goes subnormal.
static inline double round_unbounded(double x, int p, int e_min) {
  const double magic = 0x1.8p52;  // adding and subtracting it rounds to an integer, ties to even
  uint64_t magnitude = bits_of(x) & INT64_MAX;
  int64_t e = (int64_t)(magnitude >> 52) - 1023;
  if (e < e_min) e = e_min;
  if (e > 1000) e = 1000;  // far past every range; NaN and infinity have 1024
  int64_t q = e - (p - 1);
  double scaled = of_bits(magnitude) * power_of_two(-q);
  double r = scaled < 0x1p51 ? ((scaled + magic) - magic) * power_of_two(q) : of_bits(magnitude);
  return of_bits(bits_of(r) | (bits_of(x) & ~(uint64_t)INT64_MAX));
}

// Beyond the largest finite value: what the format has there.
static inline double past_the_end(double r, double max, bool has_infinity, bool has_nan,
                                  assay_overflow_t overflow) {
  if (overflow == ASSAY_OVERFLOW_SATURATE || (!has_infinity && !has_nan)) return copysign(max, r);
  return has_infinity ? copysign((double)INFINITY, r) : (double)NAN;
}

static inline double round_float(const assay_format_info_t* f, double x,
                                 assay_overflow_t overflow) {
  if (x != x) return f->has_nan ? x : -0.0;  // as ml_dtypes: NaN becomes -0 in fp6 and fp4
  double r = round_unbounded(x, f->precision, f->min_exponent);
  return fabs(r) > f->max ? past_the_end(r, f->max, f->has_infinity, f->has_nan, overflow) : r;
}

double assay_format_round_e8m0(double x, assay_e8m0_mode_t mode) {
  const assay_format_info_t* f = &rows[ASSAY_FORMAT_FP8E8M0];
  if (!(x > 0)) return (double)NAN;  // no zero, no sign; NaN
  if (x > f->max) {
    // The largest power of two is 2^127; past it there is NaN only.
    if (isinf(x) || mode == ASSAY_E8M0_UP) return (double)NAN;
    return mode == ASSAY_E8M0_NEAREST && x >= 0x1.8p127 ? (double)NAN : f->max;
  }
  if (x <= f->min_subnormal) return f->min_subnormal;
  double down = of_bits(bits_of(x) & UINT64_C(0x7ff0000000000000));
  if (down == x || mode == ASSAY_E8M0_DOWN) return down;
  if (mode == ASSAY_E8M0_UP) return 2 * down;
  // Ties to even: of the biased exponent, which is the whole pattern.
  double middle = 1.5 * down;
  bool odd = ((bits_of(down) >> 52) & 1) == ((1023 - 127 + 1) & 1);
  return x > middle || (x == middle && odd) ? 2 * down : down;
}

double assay_format_round(assay_format_t format, double x, assay_overflow_t overflow) {
  const assay_format_info_t* f = &rows[format];
  switch (format) {
    case ASSAY_FORMAT_NONE:
    case ASSAY_FORMAT_FP64:
      return x;
    case ASSAY_FORMAT_FP32:
      if (overflow == ASSAY_OVERFLOW_IEEE) return (double)(float)x;
      break;
    case ASSAY_FORMAT_FP8E8M0:
      return assay_format_round_e8m0(x, ASSAY_E8M0_NEAREST);
    case ASSAY_FORMAT_FP8E4M3FNUZ:
    case ASSAY_FORMAT_FP8E5M2FNUZ: {
      double r = round_float(f, x, overflow);
      return r == 0 ? 0.0 : r;  // no negative zero
    }
    default:
      break;
  }
  if (!f->is_float) return (double)assay_type_saturate(f->type, x);
  return round_float(f, x, overflow);
}

WIDE static void round_fp32_n(const double* x, double* y, size_t n) {
  for (size_t i = 0; i < n; i++) y[i] = (double)(float)x[i];
}

// Branch-free form for formats with infinities.
#define ROUND_LOOP(NAME, P, E_MIN, MAX)                                            \
  WIDE static void NAME(const double* x, double* y, size_t n) {                    \
    for (size_t i = 0; i < n; i++) {                                               \
      double r = round_unbounded(x[i], P, E_MIN);                                  \
      y[i] = fabs(r) > (MAX) ? copysign((double)INFINITY, r) : r;                  \
    }                                                                              \
  }
ROUND_LOOP(round_bf16_n, 8, -126, 0x1.fep127)
ROUND_LOOP(round_fp16_n, 11, -14, 65504.0)
ROUND_LOOP(round_tf32_n, 11, -126, 0x1.ffcp127)
#undef ROUND_LOOP

void assay_format_round_n(assay_format_t format, const double* x, double* y, size_t n,
                          assay_overflow_t overflow) {
  if (overflow == ASSAY_OVERFLOW_IEEE) {
    void (*loop)(const double*, double*, size_t) = format == ASSAY_FORMAT_FP32   ? round_fp32_n
                                                   : format == ASSAY_FORMAT_BF16 ? round_bf16_n
                                                   : format == ASSAY_FORMAT_FP16 ? round_fp16_n
                                                   : format == ASSAY_FORMAT_TF32 ? round_tf32_n
                                                                                 : NULL;
    if (loop) {
      enum { CHUNK = 1 << 15 };
      size_t chunks = (n + CHUNK - 1) / CHUNK;
#pragma omp parallel for schedule(static) if (chunks > 8)
      for (size_t k = 0; k < chunks; k++)
        loop(x + k * CHUNK, y + k * CHUNK, n - k * CHUNK < CHUNK ? n - k * CHUNK : CHUNK);
      return;
    }
  }
  if (format == ASSAY_FORMAT_FP64 || format == ASSAY_FORMAT_NONE) {
    if (x != y && n) memmove(y, x, n * sizeof *x);
    return;
  }
  for (size_t i = 0; i < n; i++) y[i] = assay_format_round(format, x[i], overflow);
}

// ---- bit patterns -------------------------------------------------------------------------------

// The pattern of NaN in formats that have one.
static uint64_t nan_pattern(assay_format_t format) {
  switch (format) {
    case ASSAY_FORMAT_FP8E4M3FNUZ:
    case ASSAY_FORMAT_FP8E5M2FNUZ:
      return 0x80;
    case ASSAY_FORMAT_FP8E8M0:
      return 0xff;
    case ASSAY_FORMAT_FP8E4M3:
      return 0x7f;
    case ASSAY_FORMAT_FP8E5M2:
      return 0x7e;
    default: {
      const assay_format_info_t* f = &rows[format];
      uint64_t all = (UINT64_C(1) << (f->bits - 1)) - 1;
      return all ^ ((UINT64_C(1) << (f->precision - 2)) - 1);  // quiet, empty payload
    }
  }
}

// tf32 values live in fp32 patterns.
static assay_format_t pattern_format(assay_format_t format) {
  return format == ASSAY_FORMAT_TF32 ? ASSAY_FORMAT_FP32 : format;
}

uint64_t assay_format_encode(assay_format_t format, double x, assay_overflow_t overflow) {
  const assay_format_info_t* f = &rows[pattern_format(format)];
  if (!f->is_float) {
    if (format == ASSAY_FORMAT_BOOL) return x != 0;
    uint64_t mask = f->bits == 64 ? UINT64_MAX : (UINT64_C(1) << f->bits) - 1;
    return (uint64_t)assay_type_saturate(f->type, x) & mask;
  }
  double r = assay_format_round(format, x, overflow);
  if (f->type == ASSAY_TYPE_DOUBLE) return bits_of(r);
  uint64_t sign = f->is_signed ? bits_of(r) >> 63 << (f->bits - 1) : 0;
  if (r != r) {
    bool sign_is_part = format == ASSAY_FORMAT_FP8E4M3FNUZ || format == ASSAY_FORMAT_FP8E5M2FNUZ;
    return nan_pattern(pattern_format(format)) | (sign_is_part ? 0 : sign);
  }
  double a = fabs(r);
  int mantissa_bits = f->precision - 1;
  if (isinf(a)) {
    uint64_t all = (UINT64_C(1) << (f->bits - 1)) - 1;
    return sign | (all >> mantissa_bits << mantissa_bits);
  }
  if (format == ASSAY_FORMAT_FP8E8M0) return (uint64_t)(ilogb(a) + 127);
  if (a < f->min_normal) return sign | (uint64_t)(a / f->min_subnormal);
  int e = ilogb(a);
  uint64_t mantissa = (uint64_t)(ldexp(a, mantissa_bits - e)) - (UINT64_C(1) << mantissa_bits);
  return sign | (uint64_t)(e - f->min_exponent + 1) << mantissa_bits | mantissa;
}

double assay_format_decode(assay_format_t format, uint64_t bits) {
  const assay_format_info_t* f = &rows[pattern_format(format)];
  if (!f->is_float) {
    if (format == ASSAY_FORMAT_BOOL) return bits != 0;
    int64_t i = assay_type_wrap(f->type, (int64_t)bits);
    return f->type == ASSAY_TYPE_UINT64 ? (double)(uint64_t)i : (double)i;
  }
  if (f->type == ASSAY_TYPE_DOUBLE) return of_bits(bits);
  int mantissa_bits = f->precision - 1;
  bits &= (UINT64_C(1) << f->bits) - 1;
  if (format == ASSAY_FORMAT_FP8E8M0)
    return bits == 0xff ? (double)NAN : ldexp(1, (int)bits - 127);
  uint64_t top = UINT64_C(1) << (f->bits - 1), magnitude = bits & (top - 1);
  double sign = bits & top ? -1 : 1;
  bool unsigned_zero = format == ASSAY_FORMAT_FP8E4M3FNUZ || format == ASSAY_FORMAT_FP8E5M2FNUZ;
  if (unsigned_zero && bits == top) return (double)NAN;
  if (format == ASSAY_FORMAT_FP8E4M3 && magnitude == 0x7f) return copysign((double)NAN, sign);
  uint64_t exponent = magnitude >> mantissa_bits;
  uint64_t mantissa = magnitude & ((UINT64_C(1) << mantissa_bits) - 1);
  if (f->has_infinity && exponent == (top - 1) >> mantissa_bits)
    return mantissa ? copysign((double)NAN, sign) : sign * (double)INFINITY;
  if (!exponent) return sign * (double)mantissa * f->min_subnormal;
  return sign * ldexp((double)(mantissa | UINT64_C(1) << mantissa_bits),
                      (int)exponent - 1 + f->min_exponent - mantissa_bits);
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

// ---- neighbours and distances ---------------------------------------------------------------------

// A monotone numbering of a format's values: 0 for zero, +-k for the k-th value from zero.
static int64_t ordinal(const assay_format_info_t* f, double x) {
  double a = fabs(x);
  int64_t k;
  int m = f->precision - 1;
  if (isinf(a)) {
    k = ordinal(f, f->max) + 1;
  } else if (a < f->min_normal) {
    k = (int64_t)(a / f->min_subnormal);
  } else {
    int e = ilogb(a);
    k = ((int64_t)(e - f->min_exponent + 1) << m) +
        (int64_t)(ldexp(a, m - e) - ldexp(1, m));
  }
  return x < 0 ? -k : k;
}

static double at_ordinal(const assay_format_info_t* f, int64_t k) {
  int m = f->precision - 1;
  uint64_t a = (uint64_t)(k < 0 ? -k : k);
  uint64_t exponent = a >> m, mantissa = a & ((UINT64_C(1) << m) - 1);
  double r = exponent ? ldexp((double)(mantissa | UINT64_C(1) << m),
                              (int)exponent - 1 + f->min_exponent - m)
                      : (double)mantissa * f->min_subnormal;
  return k < 0 ? -r : r;
}

double assay_format_next(assay_format_t format, double x, int direction) {
  const assay_format_info_t* f = &rows[format];
  if (x != x || !direction) return x;
  if (format == ASSAY_FORMAT_FP64)
    return nextafter(x, direction > 0 ? (double)INFINITY : -(double)INFINITY);
  if (!f->is_float) return x + (direction > 0 ? 1 : -1);
  if (format == ASSAY_FORMAT_FP8E8M0) {
    double r = direction > 0 ? 2 * x : x / 2;
    return r < f->min_subnormal ? f->min_subnormal : r > f->max ? f->max : r;
  }
  double r = at_ordinal(f, ordinal(f, x) + (direction > 0 ? 1 : -1));
  if (fabs(r) <= f->max) return r;
  if (fabs(x) > f->max && (x > 0) == (direction > 0)) return x;  // past infinity there is nothing
  return f->has_infinity ? copysign((double)INFINITY, r) : copysign(f->max, r);
}

double assay_format_ulp(assay_format_t format, double x) {
  const assay_format_info_t* f = &rows[format];
  if (!f->is_float) return 1;
  double a = fabs(x);
  if (!(a <= f->max)) a = f->max;
  int e = a < f->min_normal ? f->min_exponent : ilogb(a);
  return ldexp(1, e - (f->precision - 1));
}

int64_t assay_format_ulp_distance(assay_format_t format, double a, double b) {
  const assay_format_info_t* f = &rows[format];
  if (a != a || b != b) return a != a && b != b ? 0 : -1;
  if (a == b) return 0;
  if (!f->is_float) return (int64_t)fabs(a - b);
  if (format == ASSAY_FORMAT_FP8E8M0) return abs((isinf(a) ? 128 : ilogb(a)) - (isinf(b) ? 128 : ilogb(b)));
  int64_t i = ordinal(f, a), k = ordinal(f, b);
  uint64_t distance = i > k ? (uint64_t)i - (uint64_t)k : (uint64_t)k - (uint64_t)i;
  return distance > INT64_MAX ? INT64_MAX : (int64_t)distance;
}
