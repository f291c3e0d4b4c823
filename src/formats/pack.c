// Packed elements to canonical ones and back, in bulk.
//
// Packed data lies where the file has it, at any address: elements go through memcpy, which
// compilers turn into plain loads. Elements of fewer than 8 bits are first spread to a byte each,
// in blocks.
#include <math.h>
#include <string.h>

#include "formats/codec.h"

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>
#endif

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "packed data is little endian");

enum { BLOCK = 1024 };  // elements spread at a time; a multiple of 8

// ---- packed to canonical ------------------------------------------------------------------------

#define WIDEN(NAME, IN, OUT)                                                \
  ASSAY_WIDE static void NAME(const unsigned char* p, int64_t n, void* y) { \
    OUT* out = y;                                                           \
    _Pragma("omp simd") for (int64_t i = 0; i < n; i++) {                   \
      IN v;                                                                 \
      memcpy(&v, p + (size_t)i * sizeof v, sizeof v);                       \
      out[i] = (OUT)v;                                                      \
    }                                                                       \
  }
WIDEN(widen_f32, float, double)
WIDEN(widen_i8, int8_t, int64_t)
WIDEN(widen_i16, int16_t, int64_t)
WIDEN(widen_i32, int32_t, int64_t)
WIDEN(widen_u8, uint8_t, int64_t)
WIDEN(widen_u16, uint16_t, int64_t)
WIDEN(widen_u32, uint32_t, int64_t)
#undef WIDEN

ASSAY_WIDE static void widen_bool(const unsigned char* p, int64_t n, int64_t* y) {
#pragma omp simd
  for (int64_t i = 0; i < n; i++) y[i] = p[i] != 0;
}

ASSAY_WIDE static void decode_8(const assay_codec_t* codec, const uint8_t* p, int64_t n,
                                double* y) {
  const assay_codec_t c = *codec;
#pragma omp simd
  for (int64_t i = 0; i < n; i++) y[i] = assay_codec_decode(&c, p[i]);
}

ASSAY_WIDE static void decode_16(const assay_codec_t* codec, const unsigned char* p, int64_t n,
                                 double* y) {
  const assay_codec_t c = *codec;
#pragma omp simd
  for (int64_t i = 0; i < n; i++) {
    uint16_t v;
    memcpy(&v, p + 2 * i, sizeof v);
    y[i] = assay_codec_decode(&c, v);
  }
}

// Both formats of 16 bits are quickly made into fp32, 16 at a time; returns how many were done.
#if defined(__x86_64__) && defined(__GNUC__)
__attribute__((target("avx512f"))) static int64_t decode_16_grouped(const assay_codec_t* c,
                                                                    const unsigned char* p,
                                                                    int64_t n, double* y) {
  const __m512d sign = _mm512_set1_pd(-0.0), nan = _mm512_set1_pd((double)NAN);
  const bool fp16 = c->min_normal_ordinal == 1 << 10;
  int64_t i = 0;
  for (; i + 16 <= n; i += 16) {
    __m256i v = _mm256_loadu_si256((const __m256i*)(const void*)(p + 2 * i));
    __m512 f = fp16 ? _mm512_cvtph_ps(v)
                    : _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(v), 16));
    for (int half = 0; half < 2; half++) {
      __m256i bits = half ? _mm512_extracti64x4_epi64(_mm512_castps_si512(f), 1)
                          : _mm512_castsi512_si256(_mm512_castps_si512(f));
      __m512d d = _mm512_cvtps_pd(_mm256_castsi256_ps(bits));
      // NaN loses its payload: nan's bits, and the sign of d.
      __m512i plain = _mm512_ternarylogic_epi64(_mm512_castpd_si512(sign), _mm512_castpd_si512(d),
                                                _mm512_castpd_si512(nan), 0xca);
      d = _mm512_mask_mov_pd(d, _mm512_cmp_pd_mask(d, d, _CMP_UNORD_Q), _mm512_castsi512_pd(plain));
      _mm512_storeu_pd(y + i + 8 * half, d);
    }
  }
  return i;
}
static bool has_groups(void) { return __builtin_cpu_supports("avx512f"); }
#else
static int64_t decode_16_grouped(const assay_codec_t* c, const unsigned char* p, int64_t n,
                                 double* y) {
  return (void)c, (void)p, (void)n, (void)y, 0;
}
static bool has_groups(void) { return false; }
#endif

// Element i of a stream of elements of 2, 4 or 6 bits.
static uint8_t spread_one(const unsigned char* p, int64_t i, int bits) {
  // Not i * bits: that may overflow where the address does not.
  int64_t byte = i / 8 * bits + i % 8 * bits / 8;
  int low = (int)(i % 8 * bits % 8);
  unsigned v = (unsigned)p[byte] >> low;
  if (low + bits > 8) v |= (unsigned)p[byte + 1] << (8 - low);
  return (uint8_t)(v & ((1u << bits) - 1));
}

// n elements from `first` to a byte each.
static void spread(const unsigned char* p, int64_t first, int64_t n, int bits, uint8_t* out) {
  int64_t i = 0;
  for (; i < n && (first + i) % 8; i++) out[i] = spread_one(p, first + i, bits);
  const unsigned char* q = p + (first + i) / 8 * bits;
  int64_t groups = (n - i) / 8;
  uint8_t* y = out + i;
  if (bits == 4) {
#pragma omp simd
    for (int64_t k = 0; k < 4 * groups; k++) {
      y[2 * k] = q[k] & 15;
      y[2 * k + 1] = q[k] >> 4;
    }
  } else if (bits == 2) {
#pragma omp simd
    for (int64_t k = 0; k < 2 * groups; k++) {
      y[4 * k] = q[k] & 3;
      y[4 * k + 1] = q[k] >> 2 & 3;
      y[4 * k + 2] = q[k] >> 4 & 3;
      y[4 * k + 3] = q[k] >> 6;
    }
  } else {
    for (int64_t k = 0; k < 2 * groups; k++) {
      unsigned v = q[3 * k] | (unsigned)q[3 * k + 1] << 8 | (unsigned)q[3 * k + 2] << 16;
      y[4 * k] = v & 63;
      y[4 * k + 1] = v >> 6 & 63;
      y[4 * k + 2] = v >> 12 & 63;
      y[4 * k + 3] = (uint8_t)(v >> 18);
    }
  }
  for (i += 8 * groups; i < n; i++) out[i] = spread_one(p, first + i, bits);
}

static void unpack_small(assay_type_t type, const unsigned char* p, int64_t first, int64_t n,
                         void* canonical) {
  const assay_codec_t* c = assay_codec(assay_type_format(type));
  int bits = assay_type_bits(type);
  bool is_signed = assay_type_is_signed(type);
  uint8_t codes[BLOCK];
  for (int64_t i = 0; i < n; i += BLOCK) {
    int64_t m = n - i < BLOCK ? n - i : BLOCK;
    spread(p, first + i, m, bits, codes);
    if (c) {
      decode_8(c, codes, m, (double*)canonical + i);
      continue;
    }
    int top = is_signed ? 1 << (bits - 1) : 0;
    int64_t* y = (int64_t*)canonical + i;
    for (int64_t k = 0; k < m; k++) y[k] = (codes[k] ^ top) - top;
  }
}

void assay_unpack(assay_type_t type, const void* packed, int64_t first, int64_t n,
                  void* canonical) {
  if (n <= 0) return;
  const unsigned char* p = packed;
  int bits = assay_type_bits(type);
  if (bits < 8) {
    if (bits) unpack_small(type, p, first, n, canonical);
    return;
  }
  p += (size_t)first * (size_t)(bits / 8);
  switch (type) {
    case ASSAY_TYPE_COMPLEX64:
      n *= 2;
      // fallthrough
    case ASSAY_TYPE_FLOAT:
      widen_f32(p, n, canonical);
      return;
    case ASSAY_TYPE_COMPLEX128:
      n *= 2;
      // fallthrough
    case ASSAY_TYPE_DOUBLE:
    case ASSAY_TYPE_INT64:
    case ASSAY_TYPE_UINT64:
      memcpy(canonical, p, (size_t)n * 8);
      return;
    case ASSAY_TYPE_INT8:
      widen_i8(p, n, canonical);
      return;
    case ASSAY_TYPE_INT16:
      widen_i16(p, n, canonical);
      return;
    case ASSAY_TYPE_INT32:
      widen_i32(p, n, canonical);
      return;
    case ASSAY_TYPE_UINT8:
      widen_u8(p, n, canonical);
      return;
    case ASSAY_TYPE_UINT16:
      widen_u16(p, n, canonical);
      return;
    case ASSAY_TYPE_UINT32:
      widen_u32(p, n, canonical);
      return;
    case ASSAY_TYPE_BOOL:
      widen_bool(p, n, canonical);
      return;
    case ASSAY_TYPE_FLOAT8E8M0:
      for (int64_t i = 0; i < n; i++) ((double*)canonical)[i] = assay_e8m0_decode(p[i]);
      return;
    default:
      break;
  }
  const assay_codec_t* c = assay_codec(assay_type_format(type));
  if (bits == 16) {
    int64_t done = has_groups() ? decode_16_grouped(c, p, n, canonical) : 0;
    decode_16(c, p + 2 * done, n - done, (double*)canonical + done);
  } else {
    decode_8(c, p, n, canonical);
  }
}

// ---- canonical to packed ------------------------------------------------------------------------

#define NARROW(NAME, IN, OUT)                                               \
  ASSAY_WIDE static void NAME(const void* x, int64_t n, unsigned char* p) { \
    const IN* in = x;                                                       \
    _Pragma("omp simd") for (int64_t i = 0; i < n; i++) {                   \
      OUT v = (OUT)in[i];                                                   \
      memcpy(p + (size_t)i * sizeof v, &v, sizeof v);                       \
    }                                                                       \
  }
NARROW(narrow_f32, double, float)
NARROW(narrow_8, uint64_t, uint8_t)
NARROW(narrow_16, uint64_t, uint16_t)
NARROW(narrow_32, uint64_t, uint32_t)
#undef NARROW

ASSAY_WIDE static void narrow_bool(const int64_t* x, int64_t n, unsigned char* p) {
#pragma omp simd
  for (int64_t i = 0; i < n; i++) p[i] = x[i] != 0;
}

ASSAY_WIDE static void encode(const assay_codec_t* codec, const double* x, int64_t n, uint64_t over,
                              uint64_t* out) {
  const assay_codec_t c = *codec;
#pragma omp simd
  for (int64_t i = 0; i < n; i++) out[i] = assay_codec_encode(&c, x[i], over);
}

// In blocks, since narrowing and encoding together make for narrow vectors.
static void pack_floats(const assay_codec_t* c, const double* x, int64_t n, int bits,
                        assay_overflow_t overflow, unsigned char* p) {
  uint64_t over = assay_codec_over_pattern(c, overflow), patterns[BLOCK];
  for (int64_t i = 0; i < n; i += BLOCK) {
    int64_t m = n - i < BLOCK ? n - i : BLOCK;
    encode(c, x + i, m, over, patterns);
    if (bits == 16)
      narrow_16(patterns, m, p + 2 * i);
    else
      narrow_8(patterns, m, p + i);
  }
}

// n elements, a byte each, to a stream of elements of 2, 4 or 6 bits.
static void gather(const uint8_t* codes, int64_t n, int bits, unsigned char* out) {
  unsigned mask = (1u << bits) - 1, held = 0;
  int have = 0;
  int64_t i = 0;
  if (bits == 4) {
    i = n / 2 * 2;
#pragma omp simd
    for (int64_t k = 0; k < n / 2; k++)
      out[k] = (unsigned char)((codes[2 * k] & 15) | (codes[2 * k + 1] & 15) << 4);
    out += n / 2;
  }
  for (; i < n; i++) {
    held |= (codes[i] & mask) << have;
    have += bits;
    if (have >= 8) {
      *out++ = (unsigned char)held;
      held >>= 8;
      have -= 8;
    }
  }
  if (have) *out = (unsigned char)held;
}

static void pack_small(assay_type_t type, const void* canonical, int64_t n, unsigned char* p,
                       assay_overflow_t overflow) {
  const assay_codec_t* c = assay_codec(assay_type_format(type));
  int bits = assay_type_bits(type);
  uint8_t codes[BLOCK];
  for (int64_t i = 0; i < n; i += BLOCK) {
    int64_t m = n - i < BLOCK ? n - i : BLOCK;
    if (c)
      pack_floats(c, (const double*)canonical + i, m, bits, overflow, codes);
    else
      narrow_8((const int64_t*)canonical + i, m, codes);
    gather(codes, m, bits, p + i / 8 * bits);
  }
}

void assay_pack(assay_type_t type, const void* canonical, int64_t n, void* packed,
                assay_overflow_t overflow) {
  if (n <= 0) return;
  unsigned char* p = packed;
  int bits = assay_type_bits(type);
  if (assay_type_is_complex(type)) {
    n *= 2;
    bits /= 2;
  }
  assay_format_t format = assay_type_format(type);
  const assay_codec_t* c = assay_codec(format);
  const double* x = canonical;
  if (!bits) return;
  if (bits < 8) {
    pack_small(type, canonical, n, p, overflow);
  } else if (format == ASSAY_FORMAT_FP64) {
    for (int64_t i = 0; i < n; i += BLOCK) {
      double y[BLOCK];
      size_t m = n - i < BLOCK ? (size_t)(n - i) : BLOCK;
      assay_format_round_n(format, x + i, y, m, overflow);
      memcpy(p + 8 * i, y, 8 * m);
    }
  } else if (format == ASSAY_FORMAT_FP32 && overflow == ASSAY_OVERFLOW_IEEE) {
    narrow_f32(x, n, p);
  } else if (format == ASSAY_FORMAT_FP32) {
    for (int64_t i = 0; i < n; i++) {
      uint32_t v = (uint32_t)assay_format_encode(format, x[i], overflow);
      memcpy(p + 4 * i, &v, sizeof v);
    }
  } else if (format == ASSAY_FORMAT_FP8E8M0) {
    for (int64_t i = 0; i < n; i++)
      p[i] = (unsigned char)assay_e8m0_encode(x[i], ASSAY_E8M0_NEAREST, overflow);
  } else if (c) {
    pack_floats(c, x, n, bits, overflow, p);
  } else if (type == ASSAY_TYPE_BOOL) {
    narrow_bool(canonical, n, p);
  } else if (bits == 8) {
    narrow_8(canonical, n, p);
  } else if (bits == 16) {
    narrow_16(canonical, n, p);
  } else if (bits == 32) {
    narrow_32(canonical, n, p);
  } else {
    memcpy(p, canonical, (size_t)n * 8);
  }
}
