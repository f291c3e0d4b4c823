// Between float32 and the 16-bit formats, many elements at a time; ties to even, NaN stays NaN.
#include "backends/cpu/pointwise/convert.h"

#include "base/target.h"

// fp16 to float32 by a multiplication, which normalizes subnormals; exact.
static inline float from_fp16(uint16_t h) {
  const uint32_t sign = (uint32_t)(h & 0x8000) << 16, rest = (uint32_t)(h & 0x7fff) << 13;
  const uint32_t special = rest >= 0x0f800000u ? 0x70000000u : 0;  // exponent 31: Inf and NaN
  const uint32_t magnitude = cpu_bits(cpu_from_bits(rest) * 0x1p112F);
  return cpu_from_bits(sign | (special ? rest | 0x7f800000u : magnitude));
}

// float32 to fp16: below 2^-14 an addition of 0.5 rounds at the place of the last bit; above, the
// bits are rounded as an integer.
static inline uint16_t to_fp16(float x) {
  const uint32_t b = cpu_bits(x), sign = b >> 16 & 0x8000, a = b & 0x7fffffff;
  const uint32_t normal = (a - 0x38000000u + 0xfff + (a >> 13 & 1)) >> 13;
  const uint32_t subnormal = cpu_bits(cpu_from_bits(a) + 0.5F) - 0x3f000000u;
  uint32_t h = a < 0x38800000u ? subnormal : normal;
  h = a >= 0x477ff000u ? 0x7c00 : h;                     // rounds to infinity
  h = a > 0x7f800000u ? 0x7e00 | (a >> 13 & 0x3ff) : h;  // NaN
  return (uint16_t)(sign | h);
}

ASSAY_CLONES("arch=x86-64-v4", "arch=x86-64-v3", "default")
static void widen_fp16(const uint16_t* restrict from, int64_t n, float* restrict to) {
  _Pragma("omp simd") for (int64_t i = 0; i < n; i++) to[i] = from_fp16(from[i]);
}
ASSAY_CLONES("arch=x86-64-v4", "arch=x86-64-v3", "default")
static void widen_bf16(const uint16_t* restrict from, int64_t n, float* restrict to) {
  _Pragma("omp simd") for (int64_t i = 0; i < n; i++) to[i] = cpu_from_bf16(from[i]);
}
ASSAY_CLONES("arch=x86-64-v4", "arch=x86-64-v3", "default")
static void narrow_fp16(const float* restrict from, int64_t n, uint16_t* restrict to) {
  _Pragma("omp simd") for (int64_t i = 0; i < n; i++) to[i] = to_fp16(from[i]);
}
ASSAY_CLONES("arch=x86-64-v4", "arch=x86-64-v3", "default")
static void narrow_bf16(const float* restrict from, int64_t n, uint16_t* restrict to) {
  _Pragma("omp simd") for (int64_t i = 0; i < n; i++) to[i] = cpu_to_bf16(from[i]);
}

#define WIDEN(name, type)                                                       \
  ASSAY_CLONES("arch=x86-64-v4", "arch=x86-64-v3", "default")                   \
  static void name(const type* restrict from, int64_t n, float* restrict to) {  \
    _Pragma("omp simd") for (int64_t i = 0; i < n; i++) to[i] = (float)from[i]; \
  }
WIDEN(widen_uint8, uint8_t)
WIDEN(widen_int8, int8_t)
WIDEN(widen_int32, int32_t)
WIDEN(widen_int64, int64_t)

ASSAY_CLONES("arch=x86-64-v4", "arch=x86-64-v3", "default")
static void narrow_bool(const float* restrict from, int64_t n, uint8_t* restrict to) {
  _Pragma("omp simd") for (int64_t i = 0; i < n; i++) to[i] = from[i] != 0;
}

void cpu_widen(const void* from, assay_type_t type, int64_t at, int64_t n, float* to) {
  switch (type) {
    case ASSAY_TYPE_FLOAT16:
      widen_fp16((const uint16_t*)from + at, n, to);
      break;
    case ASSAY_TYPE_BFLOAT16:
      widen_bf16((const uint16_t*)from + at, n, to);
      break;
    case ASSAY_TYPE_BOOL:
    case ASSAY_TYPE_UINT8:
      widen_uint8((const uint8_t*)from + at, n, to);
      break;
    case ASSAY_TYPE_INT8:
      widen_int8((const int8_t*)from + at, n, to);
      break;
    case ASSAY_TYPE_INT32:
      widen_int32((const int32_t*)from + at, n, to);
      break;
    case ASSAY_TYPE_INT64:
      widen_int64((const int64_t*)from + at, n, to);
      break;
    default:
      memmove(to, (const float*)from + at, (size_t)n * sizeof *to);
      break;
  }
}

void cpu_narrow(const float* from, int64_t n, assay_type_t type, int64_t at, void* to) {
  switch (type) {
    case ASSAY_TYPE_FLOAT16:
      narrow_fp16(from, n, (uint16_t*)to + at);
      break;
    case ASSAY_TYPE_BFLOAT16:
      narrow_bf16(from, n, (uint16_t*)to + at);
      break;
    case ASSAY_TYPE_BOOL:
      narrow_bool(from, n, (uint8_t*)to + at);
      break;
    default:
      memmove((float*)to + at, from, (size_t)n * sizeof *from);
      break;
  }
}
