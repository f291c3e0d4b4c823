// Packed elements to canonical ones and back, in bulk.
#include <math.h>
#include <string.h>

#include "formats/format.h"

// Packed data may be unaligned (it lies where the file has it): every element goes through memcpy,
// which compilers turn into plain loads.
#define LOAD_LOOP(T, OUT)                                                       \
  do {                                                                          \
    const unsigned char* p = (const unsigned char*)packed + (size_t)first * sizeof(T); \
    OUT* y = canonical;                                                         \
    for (int64_t i = 0; i < n; i++) {                                           \
      T v;                                                                      \
      memcpy(&v, p + (size_t)i * sizeof v, sizeof v);                           \
      y[i] = (OUT)v;                                                            \
    }                                                                           \
    return;                                                                     \
  } while (0)

// 16-bit floats through bits of a float: exact, and the loop vectorizes.
static void unpack_bf16(const unsigned char* p, int64_t n, double* y) {
  for (int64_t i = 0; i < n; i++) {
    uint16_t h;
    memcpy(&h, p + 2 * i, sizeof h);
    uint32_t w = (uint32_t)h << 16;
    float f;
    memcpy(&f, &w, sizeof f);
    y[i] = (double)f;
  }
}

static void unpack_fp16(const unsigned char* p, int64_t n, double* y) {
  for (int64_t i = 0; i < n; i++) {
    uint16_t h;
    memcpy(&h, p + 2 * i, sizeof h);
    // The magnitude's bits moved into a float's place are the value times 2^-112, subnormals too.
    uint32_t w = (uint32_t)(h & 0x7fff) << 13;
    float f;
    memcpy(&f, &w, sizeof f);
    double x = (double)f * 0x1p112;
    if ((h & 0x7c00) == 0x7c00) x = h & 0x3ff ? (double)NAN : (double)INFINITY;
    y[i] = h & 0x8000 ? -x : x;
  }
}

// Elements of fewer than 8 bits: the first one in the lowest bits of the first byte.
static uint64_t small_bits(const unsigned char* p, int64_t i, int bits) {
  int64_t each = 8 / bits;
  return (uint64_t)(p[i / each] >> (i % each * bits)) & ((1u << bits) - 1);
}

void assay_unpack(assay_type_t type, const void* packed, int64_t first, int64_t n,
                  void* canonical) {
  const unsigned char* bytes = packed;
  switch (type) {
    case ASSAY_TYPE_FLOAT:
      LOAD_LOOP(float, double);
    case ASSAY_TYPE_DOUBLE:
      LOAD_LOOP(double, double);
    case ASSAY_TYPE_INT8:
      LOAD_LOOP(int8_t, int64_t);
    case ASSAY_TYPE_INT16:
      LOAD_LOOP(int16_t, int64_t);
    case ASSAY_TYPE_INT32:
      LOAD_LOOP(int32_t, int64_t);
    case ASSAY_TYPE_INT64:
      LOAD_LOOP(int64_t, int64_t);
    case ASSAY_TYPE_UINT8:
      LOAD_LOOP(uint8_t, int64_t);
    case ASSAY_TYPE_UINT16:
      LOAD_LOOP(uint16_t, int64_t);
    case ASSAY_TYPE_UINT32:
      LOAD_LOOP(uint32_t, int64_t);
    case ASSAY_TYPE_UINT64:
      LOAD_LOOP(uint64_t, int64_t);
    case ASSAY_TYPE_BOOL:
      for (int64_t i = 0; i < n; i++) ((int64_t*)canonical)[i] = bytes[first + i] != 0;
      return;
    case ASSAY_TYPE_BFLOAT16:
      unpack_bf16(bytes + 2 * first, n, canonical);
      return;
    case ASSAY_TYPE_FLOAT16:
      unpack_fp16(bytes + 2 * first, n, canonical);
      return;
    case ASSAY_TYPE_COMPLEX64:
      first *= 2;
      n *= 2;
      LOAD_LOOP(float, double);
    case ASSAY_TYPE_COMPLEX128:
      first *= 2;
      n *= 2;
      LOAD_LOOP(double, double);
    default:
      break;
  }
  assay_format_t format = assay_type_format(type);
  int bits = assay_type_bits(type);
  for (int64_t i = 0; i < n; i++) {
    uint64_t b = bits < 6 ? small_bits(bytes, first + i, bits) : bytes[first + i];
    if (assay_type_is_float(type))
      ((double*)canonical)[i] = assay_format_decode(format, b);
    else
      ((int64_t*)canonical)[i] = assay_type_wrap(type, (int64_t)b);
  }
}

#define STORE_LOOP(IN, T)                                      \
  do {                                                         \
    const IN* x = canonical;                                   \
    for (int64_t i = 0; i < n; i++) {                          \
      T v = (T)x[i];                                           \
      memcpy((char*)packed + (size_t)i * sizeof v, &v, sizeof v); \
    }                                                          \
    return;                                                    \
  } while (0)

void assay_pack(assay_type_t type, const void* canonical, int64_t n, void* packed,
                assay_overflow_t overflow) {
  bool ieee = overflow == ASSAY_OVERFLOW_IEEE;
  if (type == ASSAY_TYPE_FLOAT && ieee) STORE_LOOP(double, float);
  if (type == ASSAY_TYPE_DOUBLE) STORE_LOOP(double, double);
  if (type == ASSAY_TYPE_COMPLEX64 || type == ASSAY_TYPE_COMPLEX128) {
    n *= 2;
    if (type == ASSAY_TYPE_COMPLEX64) STORE_LOOP(double, float);
    STORE_LOOP(double, double);
  }
  assay_format_t format = assay_type_format(type);
  int bits = assay_type_bits(type);
  bool is_float = assay_type_is_float(type);
  unsigned char* out = packed;
  int64_t total = 0;
  if (bits < 6 && assay_type_packed_bytes(type, n, &total) && total)
    memset(out, 0, (size_t)total);
  for (int64_t i = 0; i < n; i++) {
    uint64_t b = is_float ? assay_format_encode(format, ((const double*)canonical)[i], overflow)
                          : (uint64_t)((const int64_t*)canonical)[i];
    if (type == ASSAY_TYPE_BOOL) b = b != 0;
    if (bits < 6) {
      int64_t each = 8 / bits;
      unsigned char part = (unsigned char)((b & ((1u << bits) - 1)) << (i % each * bits));
      out[i / each] = (unsigned char)(out[i / each] | part);
    } else {
      // Little endian, whatever the machine.
      for (int k = 0; k < (bits + 7) / 8; k++)
        out[i * ((bits + 7) / 8) + k] = (unsigned char)(b >> (8 * k));
    }
  }
}
