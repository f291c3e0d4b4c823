// Reductions of rows (rows.h) of floats of type T to type TO, in float32.
//
// Each term is put through OF (itself, magnitude, square), joined by JOIN (sum, product, larger,
// smaller), and the result put through END (itself, mean, root, logarithm). LOG_SUM_EXP is a kernel
// of its own. Long rows are cut into parts, whose number follows from the terms alone: a block
// takes one, and another launch joins what they have. QUANTIZED: results become bytes, too
// (quantizer.h); in the last launch.
#include "reduce_terms.h"
#include "rows.h"
#include "reduce_result.h"

// Vector v of this block's part of a row that begins at `first`.
DEVICE void take(const reduce_args_t* a, int64_t first, int v, float* x) {
  const uint32_t e = (uint32_t)BLOCK_Y * (uint32_t)a->part + (uint32_t)v * VEC;
  LOAD_N(VEC, T)(GLOBAL(const ELEMENT(T), a->x), first + term_place(&a->g, e), x);
}

DEVICE int vectors_of(const reduce_args_t* a, int64_t row) {
  const int left = a->g.terms - BLOCK_Y * a->part;
  return row < a->g.rows ? (left < a->part ? left : a->part) / VEC : 0;
}

#ifndef LOG_SUM_EXP
#define JOIN_FLOATS_BY(join) JOIN_FLOATS(join)
JOIN_FLOATS_BY(JOIN)
#define AHEAD (VEC == 1 ? 16 : VEC == 2 ? 8 : 4)

KERNEL(reduce_floats, reduce_args_t, ROW_THREADS) {
  SHARED float joined[JOINED_PLACES];
  const int64_t row = ROW_OF_BLOCKS, first = row_place(&a.g, a.g.row_from, row);
  const int n = vectors_of(&a, row);
  float s = NEUTRAL(JOIN);
  WAIT_FOR_INPUTS();
  LAUNCH_NEXT();
  // Several are asked for before the first is joined.
  for (int v = FIRST_VECTOR; v < n; v += AHEAD * NEXT_VECTOR) {
    float x[AHEAD][VEC];
    UNROLL for (int k = 0; k < AHEAD; k++) if (v + k * NEXT_VECTOR < n)
        take(&a, first, v + k * NEXT_VECTOR, x[k]);
    UNROLL for (int k = 0; k < AHEAD; k++) if (v + k * NEXT_VECTOR < n) UNROLL
    for (int i = 0; i < VEC; i++) s = JOIN(s, OF(x[k][i]));
  }
  s = JOINED(JOIN, _of_row)(s, joined);
  if (FIRST_VECTOR || !n) return;
  if (a.parts > 1)
    GLOBAL(float, a.y)[row * a.parts + BLOCK_Y] = s;
  else
    store_result(&a, row, JOINED(end_, END)(s, a.count));
}
#else
JOIN_FLOATS(larger)
JOIN_FLOATS(sum)

// The largest term is taken off before, and added again; where it is infinite, it is left alone.
KERNEL(reduce_log_sum_exp, reduce_args_t, ROW_THREADS) {
  SHARED float joined[2][JOINED_PLACES];
  const int64_t row = ROW_OF_BLOCKS, first = row_place(&a.g, a.g.row_from, row);
  const int n = vectors_of(&a, row);
  float x[VEC], m = -POSITIVE_INFINITY, s = 0;
  WAIT_FOR_INPUTS();
  LAUNCH_NEXT();
  EACH_OF_ROW(v, n) {
    take(&a, first, v, x);
    UNROLL for (int i = 0; i < VEC; i++) m = larger(m, x[i]);
  }
  m = larger_of_row(m, joined[0]);
  if (!(magnitude(m) < POSITIVE_INFINITY)) m = 0;
  EACH_OF_ROW(v, n) {
    take(&a, first, v, x);
    UNROLL for (int i = 0; i < VEC; i++) s = s + v_exp(x[i] - m);
  }
  s = sum_of_row(s, joined[1]);
  if (FIRST_VECTOR || !n) return;
  store_result(&a, row, v_log(s, false) + m);
}
#endif
