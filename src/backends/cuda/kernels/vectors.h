// Elements that lie side by side, read and written at once: load_N_TYPE(p, i, x) reads elements
// [i, i + N) as float32. They lie at a multiple of their bytes, of which there are at most 16,
// and are written into global memory only.
#ifndef ASSAY_BACKENDS_CUDA_KERNELS_VECTORS_H_
#define ASSAY_BACKENDS_CUDA_KERNELS_VECTORS_H_

#include "elements.h"

#define LOAD_N(n, type) JOINED(JOINED(load_, n), JOINED(_, type))
#define STORE_N(n, type) JOINED(JOINED(store_, n), JOINED(_, type))

#define READ_4(p, words) ((words)[0] = *(const uint32_t*)(p))

#define ONE(type)                                                                                 \
  DEVICE void load_1_##type(const type##_t* p, int64_t i, float* x) { x[0] = load_##type(p, i); } \
  DEVICE void store_1_##type(type##_t* p, int64_t i, const float* x) { store_##type(p, i, x[0]); }
ONE(f32)
ONE(f16)
ONE(bf16)
#undef ONE

#define WIDE(n, bytes)                                               \
  DEVICE void load_##n##_f32(const f32_t* p, int64_t i, float* x) {  \
    uint32_t w[n];                                                   \
    READ_##bytes((const void*)(p + i), w);                           \
    UNROLL for (int k = 0; k < n; k++) x[k] = float_of(w[k]);        \
  }                                                                  \
  DEVICE void store_##n##_f32(f32_t* p, int64_t i, const float* x) { \
    uint32_t w[n];                                                   \
    UNROLL for (int k = 0; k < n; k++) w[k] = bits_of(x[k]);         \
    STORE_##bytes((void*)(p + i), w);                                \
  }
WIDE(2, 8)
WIDE(4, 16)
#undef WIDE

// n elements of 16 bits.
#define NARROW(type, n, bytes)                                                        \
  DEVICE void load_##n##_##type(const type##_t* p, int64_t i, float* x) {             \
    uint32_t w[n / 2];                                                                \
    READ_##bytes((const void*)(p + i), w);                                            \
    UNROLL for (int k = 0; k < n / 2; k++) {                                          \
      x[2 * k] = type##_to_f32((type##_t)(w[k] & 0xffff));                            \
      x[2 * k + 1] = type##_to_f32((type##_t)(w[k] >> 16));                           \
    }                                                                                 \
  }                                                                                   \
  DEVICE void store_##n##_##type(type##_t* p, int64_t i, const float* x) {            \
    uint32_t w[n / 2];                                                                \
    UNROLL for (int k = 0; k < n / 2; k++) w[k] = two_##type(x[2 * k], x[2 * k + 1]); \
    STORE_##bytes((void*)(p + i), w);                                                 \
  }
NARROW(f16, 2, 4)
NARROW(f16, 4, 8)
NARROW(f16, 8, 16)
NARROW(bf16, 2, 4)
NARROW(bf16, 4, 8)
NARROW(bf16, 8, 16)
#undef NARROW

#endif  // ASSAY_BACKENDS_CUDA_KERNELS_VECTORS_H_
