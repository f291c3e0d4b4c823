// Rows shared out among threads, and what these have joined: the same order for any number of rows
// and any grid.
//
// ACROSS 0: SPAN threads side by side have a row, VEC terms that lie side by side at once; what
// they have is joined by shuffles within warps, and over the warps in order. SPAN is a power of two
// or whole warps. ACROSS W: a thread
// of each of W warps has a row, lanes beside each other have neighbours; over the warps in order.
// KEEP vectors of a thread stay in registers; 0: they are read again for each pass. DIMS: along so
// many dimensions lie the terms.
#ifndef ASSAY_BACKENDS_CUDA_KERNELS_ROWS_H_
#define ASSAY_BACKENDS_CUDA_KERNELS_ROWS_H_

#include "rows_args.h"
#include "vectors.h"

#if ACROSS
#define ROW_THREADS (WARP * ACROSS)  // of a block
#define ROW_OF_BLOCKS (BLOCK * WARP + LANE)
#define FIRST_VECTOR (THREAD / WARP)
#define NEXT_VECTOR ACROSS
#define JOINED_PLACES (WARP * ACROSS)
#else
#define ROW_THREADS (SPAN < 128 ? 128 : SPAN)
#define ROW_OF_BLOCKS (BLOCK * (THREADS / SPAN) + THREAD / SPAN)
#define FIRST_VECTOR (THREAD % SPAN)
#define NEXT_VECTOR SPAN
#define JOINED_PLACES (SPAN < WARP ? 1 : SPAN / WARP)
#endif

// Vectors v of this thread among `n` of a row; k: where they are kept.
#if KEEP
#define EACH_VECTOR(k, v, n) \
  UNROLL for (int k = 0, v = FIRST_VECTOR; k < KEEP; k++, v += NEXT_VECTOR) if (v < (n))
#define KEPT KEEP
#else
#define EACH_VECTOR(k, v, n) for (int k = 0, v = FIRST_VECTOR; v < (n); v += NEXT_VECTOR)
#define KEPT 1
#endif

// The same for kernels that keep nothing.
#define EACH_OF_ROW(v, n) for (int v = FIRST_VECTOR; v < (n); v += NEXT_VECTOR)

DEVICE int64_t row_place(const rows_geometry_t* g, const int64_t* steps, int64_t r) {
  int64_t at = 0;
  ROLLED for (int i = g->n_row - 1; i > 0; i--) at += take_digit(&r, g->row[i]) * steps[i];
  return g->n_row ? at + r * steps[0] : 0;
}

DEVICE int64_t term_place(const rows_geometry_t* g, uint32_t e) {
#if DIMS == 1 && !ACROSS
  (void)g;
  return (int64_t)e;  // one after the other
#else
  int64_t at = 0;
  UNROLL for (int i = DIMS - 1; i > 0; i--) {
    const uint32_t n = (uint32_t)g->term[i];
    at += (int64_t)(e % n) * g->term_from[i];
    e /= n;
  }
  return at + (int64_t)e * g->term_from[0];
#endif
}

DEVICE float sum(float x, float y) { return x + y; }
DEVICE float product(float x, float y) { return x * y; }
DEVICE float larger(float x, float y) { return x > y || x != x ? x : y; }
DEVICE float smaller(float x, float y) { return x < y || x != x ? x : y; }

// JOIN_ROW(join, type, shuffle) makes join_of_row(x, shared): what the threads of a row have,
// joined, in all of them. shared: JOINED_PLACES of its own.
#if ACROSS
#define JOIN_ROW(join, type, shuffle)                                      \
  DEVICE type join##_of_row(type x, type* shared) {                        \
    if (ACROSS == 1) return x;                                             \
    shared[THREAD] = x;                                                    \
    SYNC();                                                                \
    x = shared[LANE];                                                      \
    for (int w = 1; w < ACROSS; w++) x = join(x, shared[w * WARP + LANE]); \
    return x;                                                              \
  }
#else
#define JOIN_ROW(join, type, shuffle)                                                           \
  DEVICE type join##_of_row(type x, type* shared) {                                             \
    UNROLL for (int i = (SPAN < WARP ? SPAN : WARP) / 2; i; i /= 2) x = join(x, shuffle(x, i)); \
    if (SPAN <= WARP) return x;                                                                 \
    if (LANE == 0) shared[THREAD / WARP] = x;                                                   \
    SYNC();                                                                                     \
    x = shared[0];                                                                              \
    for (int w = 1; w < SPAN / WARP; w++) x = join(x, shared[w]);                               \
    return x;                                                                                   \
  }
#endif

#define JOIN_FLOATS(join) JOIN_ROW(join, float, shuffle_xor_f32)

#endif  // ASSAY_BACKENDS_CUDA_KERNELS_ROWS_H_
