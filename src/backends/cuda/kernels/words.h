// Elements of any type as words of memory and as values: of_TYPE(word), to_TYPE(value),
// WORD_OF(TYPE), one at a time or so many at once as PROGRAM_VECTOR says. Values are float; where
// PROGRAM_INTEGERS is defined they are int64_t (uint64 as the same bits), and floats stay what they
// are.
#ifndef ASSAY_BACKENDS_CUDA_KERNELS_WORDS_H_
#define ASSAY_BACKENDS_CUDA_KERNELS_WORDS_H_

#include "float8.h"

#ifdef PROGRAM_INTEGERS
typedef int64_t value_t;
#else
typedef float value_t;
#endif

#define WORD_OF(type) JOINED(word_, type)
#define FROM_WORD(type) JOINED(of_, type)
#define TO_WORD(type) JOINED(to_, type)

typedef uint32_t word_f32;
typedef uint16_t word_f16, word_bf16, word_s16, word_u16;
typedef uint8_t word_b8, word_s8, word_u8, word_e4m3, word_e5m2, word_e4m3z, word_e5m2z;
typedef uint32_t word_s32, word_u32;
typedef uint64_t word_s64, word_u64;

DEVICE float of_f32(word_f32 w) { return float_of(w); }
DEVICE float of_f16(word_f16 w) { return f16_to_f32(w); }
DEVICE float of_bf16(word_bf16 w) { return bf16_to_f32(w); }
DEVICE float of_e4m3(word_e4m3 w) { return value_e4m3(w); }
DEVICE float of_e5m2(word_e5m2 w) { return value_e5m2(w); }
DEVICE float of_e4m3z(word_e4m3z w) { return value_e4m3z(w); }
DEVICE float of_e5m2z(word_e5m2z w) { return value_e5m2z(w); }
DEVICE value_t of_b8(word_b8 w) { return (value_t)w; }
DEVICE value_t of_u8(word_u8 w) { return (value_t)w; }
DEVICE value_t of_s8(word_s8 w) { return (value_t)(int8_t)w; }
DEVICE value_t of_u16(word_u16 w) { return (value_t)w; }
DEVICE value_t of_s16(word_s16 w) { return (value_t)(int16_t)w; }
DEVICE value_t of_u32(word_u32 w) { return (value_t)w; }
DEVICE value_t of_s32(word_s32 w) { return (value_t)(int32_t)w; }
DEVICE value_t of_u64(word_u64 w) { return (value_t)w; }
DEVICE value_t of_s64(word_s64 w) { return (value_t)(int64_t)w; }

DEVICE word_b8 to_b8(value_t x) { return x != 0; }
#ifdef PROGRAM_INTEGERS
DEVICE word_u8 to_u8(value_t x) { return (word_u8)x; }
DEVICE word_s8 to_s8(value_t x) { return (word_s8)x; }
DEVICE word_u16 to_u16(value_t x) { return (word_u16)x; }
DEVICE word_s16 to_s16(value_t x) { return (word_s16)x; }
DEVICE word_u32 to_u32(value_t x) { return (word_u32)x; }
DEVICE word_s32 to_s32(value_t x) { return (word_s32)x; }
DEVICE word_u64 to_u64(value_t x) { return (word_u64)x; }
DEVICE word_s64 to_s64(value_t x) { return (word_s64)x; }
#else
DEVICE word_f32 to_f32(float x) { return bits_of(x); }
DEVICE word_f16 to_f16(float x) { return f32_to_f16(x); }
DEVICE word_bf16 to_bf16(float x) { return f32_to_bf16(x); }
// Of whole numbers that fit, and of numbers that are ones of 8 bits.
DEVICE word_u8 to_u8(float x) { return (word_u8)(int)x; }
DEVICE word_s8 to_s8(float x) { return (word_s8)(int)x; }
DEVICE word_u16 to_u16(float x) { return (word_u16)(int)x; }
DEVICE word_s16 to_s16(float x) { return (word_s16)(int)x; }
DEVICE word_e4m3 to_e4m3(float x) { return code_e4m3(x); }
DEVICE word_e5m2 to_e5m2(float x) { return code_e5m2(x); }
DEVICE word_e4m3z to_e4m3z(float x) { return code_e4m3z(x); }
DEVICE word_e5m2z to_e5m2z(float x) { return code_e5m2z(x); }
#endif

#ifdef PROGRAM_VECTOR
// PROGRAM_VECTOR elements in global memory that begin at a multiple of their bytes, at least 8, at
// most 16 a piece.
typedef struct pieces {
  uint32_t at[PROGRAM_VECTOR * 2];
} pieces_t;

DEVICE void read_pieces(const void* p, int bytes, pieces_t* v) {
  if (bytes < 16) {
    READ_8(p, v->at);
    return;
  }
  UNROLL for (int i = 0; i < bytes / 16; i++) READ_16((const uint8_t*)p + 16 * i, v->at + 4 * i);
}
DEVICE void write_pieces(void* p, int bytes, const pieces_t* v) {
  if (bytes < 16) {
    STORE_8(p, v->at);
    return;
  }
  UNROLL for (int i = 0; i < bytes / 16; i++) STORE_16((uint8_t*)p + 16 * i, v->at + 4 * i);
}
DEVICE uint64_t piece(const pieces_t* v, int bytes, int i) {
  if (bytes == 8) return v->at[2 * i] | (uint64_t)v->at[2 * i + 1] << 32;
  if (bytes == 4) return v->at[i];
  if (bytes == 2) return v->at[i / 2] >> (16 * (i % 2)) & 0xffff;
  return v->at[i / 4] >> (8 * (i % 4)) & 0xff;
}
DEVICE void put_piece(pieces_t* v, int bytes, int i, uint64_t word) {
  if (bytes == 8) {
    v->at[2 * i] = (uint32_t)word;
    v->at[2 * i + 1] = (uint32_t)(word >> 32);
  } else if (bytes == 4) {
    v->at[i] = (uint32_t)word;
  } else if (bytes == 2) {
    v->at[i / 2] = (i % 2 ? v->at[i / 2] : 0) | (uint32_t)word << (16 * (i % 2));
  } else {
    v->at[i / 4] = (i % 4 ? v->at[i / 4] : 0) | (uint32_t)word << (8 * (i % 4));
  }
}
// Element i of such an array, where i is not a constant: registers have no numbers.
DEVICE value_t pick(const value_t* values, int i) {
  value_t x = values[0];
  UNROLL for (int j = 1; j < PROGRAM_VECTOR; j++) x = i == j ? values[j] : x;
  return x;
}
DEVICE void put_at(value_t x, int i, value_t* values) {
  UNROLL for (int j = 0; j < PROGRAM_VECTOR; j++) values[j] = i == j ? x : values[j];
}
// y: an array of PROGRAM_VECTOR values. PROGRAM_PAIRS: how two of them become a word of 32 bits at
// once, where the output has 16.
#define LOAD_VECTOR(type, p, y)                                                        \
  {                                                                                    \
    pieces_t pieces;                                                                   \
    read_pieces(p, PROGRAM_VECTOR*(int)sizeof(WORD_OF(type)), &pieces);                \
    UNROLL for (int k = 0; k < PROGRAM_VECTOR; k++)(y)[k] =                            \
        FROM_WORD(type)((WORD_OF(type))piece(&pieces, (int)sizeof(WORD_OF(type)), k)); \
  }
#ifdef PROGRAM_PAIRS
#define PUT_VALUES(type, y, pieces)                                   \
  UNROLL for (int k = 0; k < PROGRAM_VECTOR / 2; k++)(pieces).at[k] = \
      PROGRAM_PAIRS((y)[2 * k], (y)[2 * k + 1]);
#else
#define PUT_VALUES(type, y, pieces)               \
  UNROLL for (int k = 0; k < PROGRAM_VECTOR; k++) \
      put_piece(&(pieces), (int)sizeof(WORD_OF(type)), k, TO_WORD(type)((y)[k]));
#endif
#define STORE_VECTOR(type, p, y)                                         \
  {                                                                      \
    pieces_t pieces;                                                     \
    PUT_VALUES(type, y, pieces)                                          \
    write_pieces(p, PROGRAM_VECTOR*(int)sizeof(WORD_OF(type)), &pieces); \
  }
#endif

#endif  // ASSAY_BACKENDS_CUDA_KERNELS_WORDS_H_
