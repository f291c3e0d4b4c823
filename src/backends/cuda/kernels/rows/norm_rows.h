// Normalization of rows that lie one after the other, by warps that have whole rows each: the bits
// of rows_normalize (rows.cu), whose threads of a row the lanes of a warp stand for.
//
// Options: NORM_TYPE, of the rows; NORM_SPAN, NORM_KEEP, NORM_VEC: as rows.cu's of these names, by
// which sums have their order; NORM_CENTERED 1: the mean is taken off; NORM_SCALE, NORM_BIAS 0:
// there is none, 1: of elements, 2: one; NORM_OF: their type; NORM_MOVED 1: rows get other places.
#ifndef ASSAY_BACKENDS_CUDA_KERNELS_ROWS_NORM_ROWS_H_
#define ASSAY_BACKENDS_CUDA_KERNELS_ROWS_NORM_ROWS_H_

#include "norm_args.h"
#include "vectors.h"

// A warp has a row, and its lanes what NORM_WARPS threads have there; or, of short rows, several.
#define NORM_LANES (NORM_SPAN < WARP ? NORM_SPAN : WARP)
#define NORM_WARPS (NORM_SPAN / NORM_LANES)
#define NORM_ROWS (WARP / NORM_LANES)  // of a warp at once

// Vectors v of a thread that a lane stands for, the w-th, among `n` of a row; k: where it keeps
// them.
#define EACH_OF_THREAD(w, k, v, n)                                        \
  UNROLL for (int k = 0, v = w * WARP + LANE % NORM_LANES; k < NORM_KEEP; \
              k++, v += NORM_SPAN) if (v < (n))

// What the threads of a row have, joined as sum_of_row of rows.h does it.
DEVICE float norm_sum(float* of) {
  UNROLL
  for (int w = 0; w < NORM_WARPS; w++) UNROLL
  for (int i = NORM_LANES / 2; i; i /= 2) of[w] = of[w] + shuffle_xor_f32(of[w], i);
  float s = of[0];
  UNROLL
  for (int w = 1; w < NORM_WARPS; w++) s = s + of[w];
  return s;
}

#if NORM_SCALE || NORM_BIAS
DEVICE void norm_parameters(address_t from, int single, int v, float* x) {
  const ELEMENT(NORM_OF)* p = GLOBAL(const ELEMENT(NORM_OF), from);
  if (!single) {
    LOAD_N(NORM_VEC, NORM_OF)(p, (int64_t)v * NORM_VEC, x);
    return;
  }
  UNROLL
  for (int i = 0; i < NORM_VEC; i++) x[i] = LOAD(NORM_OF)(p, 0);
}
#endif

DEVICE void norm_scale(const norm_args_t* a, int v, float* y) {
  (void)a, (void)v, (void)y;
#if NORM_SCALE
  float scale[NORM_VEC];
  norm_parameters(a->scale, NORM_SCALE == 2, v, scale);
  UNROLL
  for (int i = 0; i < NORM_VEC; i++) y[i] = y[i] * scale[i];
#endif
#if NORM_BIAS
  float bias[NORM_VEC];
  norm_parameters(a->bias, NORM_BIAS == 2, v, bias);
  UNROLL
  for (int i = 0; i < NORM_VEC; i++) y[i] = y[i] + bias[i];
#endif
}

DEVICE int64_t norm_place(const norm_args_t* a, int64_t row) {
#if NORM_MOVED
  const uint32_t within = (uint32_t)row % (uint32_t)a->period;
  return row - within + GLOBAL(const int32_t, a->places)[within];
#else
  (void)a;
  return row;
#endif
}

// What a lane has of a row.
typedef struct norm_row {
  float x[NORM_WARPS][NORM_KEEP][NORM_VEC];
} norm_row_t;

// n: vectors of the row; 0: there is none.
DEVICE void norm_load(const ELEMENT(NORM_TYPE) * from, int n, norm_row_t* r) {
  UNROLL
  for (int w = 0; w < NORM_WARPS; w++)
    EACH_OF_THREAD(w, k, v, n) LOAD_N(NORM_VEC, NORM_TYPE)(from, (int64_t)v * NORM_VEC, r->x[w][k]);
}

// n 0: the lanes take part in sums alone.
DEVICE void norm_store(const norm_args_t* a, const norm_row_t* r, ELEMENT(NORM_TYPE) * to, int n,
                       float terms) {
  float of[NORM_WARPS], mean = 0;
#if NORM_CENTERED
  UNROLL
  for (int w = 0; w < NORM_WARPS; w++) {
    of[w] = 0;
    EACH_OF_THREAD(w, k, v, n)
    UNROLL for (int i = 0; i < NORM_VEC; i++) of[w] = of[w] + r->x[w][k][i];
  }
  mean = norm_sum(of) / terms;
#endif
  UNROLL
  for (int w = 0; w < NORM_WARPS; w++) {
    of[w] = 0;
    EACH_OF_THREAD(w, k, v, n) UNROLL for (int i = 0; i < NORM_VEC; i++) {
      const float d = NORM_CENTERED ? r->x[w][k][i] - mean : r->x[w][k][i];
      of[w] = of[w] + d * d;
    }
  }
  const float inverse = 1 / SQRT(norm_sum(of) / terms + a->epsilon);
  UNROLL
  for (int w = 0; w < NORM_WARPS; w++) EACH_OF_THREAD(w, k, v, n) {
      float y[NORM_VEC];
      UNROLL
      for (int i = 0; i < NORM_VEC; i++)
        y[i] = (NORM_CENTERED ? r->x[w][k][i] - mean : r->x[w][k][i]) * inverse;
      norm_scale(a, v, y);
      STORE_N(NORM_VEC, NORM_TYPE)(to, (int64_t)v * NORM_VEC, y);
    }
}

// Rows [first, end) of `terms` elements each from `x` on, which warps share out. A row may be
// written over what it is made of. While one is normalized, the next one is on its way.
DEVICE void norm_rows(const norm_args_t* a, address_t x, int64_t first, int64_t end, int terms,
                      int warp, int warps) {
  const int64_t step = (int64_t)warps * NORM_ROWS;
  int64_t row = first + (int64_t)warp * NORM_ROWS + LANE / NORM_LANES;
  const ELEMENT(NORM_TYPE)* from = GLOBAL(const ELEMENT(NORM_TYPE), x);
  ELEMENT(NORM_TYPE)* to = GLOBAL(ELEMENT(NORM_TYPE), a->y);
  norm_row_t next = {{{{0}}}};
  int n = row < end ? terms / NORM_VEC : 0;
  norm_load(from + row * terms, n, &next);
  // All lanes of a warp go on as long as its first row is there.
  ROLLED
  for (int64_t at = first + (int64_t)warp * NORM_ROWS; at < end; at += step, row += step) {
    const norm_row_t r = next;
    const int of_row = n;
    n = row + step < end ? terms / NORM_VEC : 0;
    norm_load(from + (row + step) * terms, n, &next);
    norm_store(a, &r, to + (of_row ? norm_place(a, row) : 0) * terms, of_row, (float)terms);
  }
}

#endif  // ASSAY_BACKENDS_CUDA_KERNELS_ROWS_NORM_ROWS_H_
