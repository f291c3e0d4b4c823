// Reductions (reduce.cu) of rows that lie side by side: the innermost dimension is one of rows.
//
// A thread reads a term of COLUMNS rows at once, and every ACROSS-th term of theirs; BESIDE threads
// have neighbours. What ACROSS threads have of a row is joined in order, so that the order of sums
// follows from ACROSS alone, and that from the terms.
#include "reduce_terms.h"
#include "rows.h"
#include "vectors.h"
#include "reduce_result.h"

#define AHEAD 8
#define PADDED (COLUMNS | 1)  // warps write each bank once

// Term e + k * ACROSS of a row. Steps are the same all along one dimension.
DEVICE const ELEMENT(T) * term_at(const reduce_args_t* a, const ELEMENT(T) * first, int e, int k) {
#if DIMS == 1
  return first + e * a->g.term_from[0] + k * (ACROSS * a->g.term_from[0]);
#else
  return first + term_place(&a->g, (uint32_t)(e + k * ACROSS));
#endif
}

// Joins to s AHEAD terms of a thread's rows, from term e on, or, unless there are as many, those
// before `end`. All are asked for before the first is joined; for what is no term, term e is read
// again, as loads under a condition wait for each other.
DEVICE void join_terms(const reduce_args_t* a, const ELEMENT(T) * first, int e, int end, bool all,
                       float* s) {
  const ELEMENT(T) * at[AHEAD];
  float x[AHEAD][COLUMNS];
  UNROLL for (int k = 0; k < AHEAD; k++)
    at[k] = all || e + k * ACROSS < end ? term_at(a, first, e, k) : at[0];
  UNROLL for (int k = 0; k < AHEAD; k++) LOAD_N(COLUMNS, T)(at[k], 0, x[k]);
  UNROLL for (int k = 0; k < AHEAD; k++) UNROLL for (int i = 0; i < COLUMNS; i++) {
    const float joined = JOIN(s[i], OF(x[k][i]));
    s[i] = all || e + k * ACROSS < end ? joined : s[i];
  }
}

LARGE_KERNEL(reduce_across, reduce_args_t, BESIDE* ACROSS) {
  SHARED float joined[ACROSS][PADDED][BESIDE];
  const int lane = THREAD % BESIDE, share = THREAD / BESIDE;
  const int64_t rows = (BLOCK * BESIDE + lane) * COLUMNS;
  const ELEMENT(T)* first = GLOBAL(const ELEMENT(T), a.x) + row_place(&a.g, a.g.row_from, rows);
  const int begin = BLOCK_Y * a.part, left = a.g.terms - begin;
  const int end = rows < a.g.rows ? begin + (left < a.part ? left : a.part) : 0;
  float s[COLUMNS];
  UNROLL for (int i = 0; i < COLUMNS; i++) s[i] = NEUTRAL(JOIN);
  WAIT_FOR_INPUTS();
  LAUNCH_NEXT();
  int e = begin + share;
  ROLLED for (; e + (AHEAD - 1) * ACROSS < end; e += AHEAD * ACROSS)
      join_terms(&a, first, e, end, true, s);
  if (e < end) join_terms(&a, first, e, end, false, s);
  UNROLL for (int i = 0; i < COLUMNS; i++) joined[share][i][lane] = s[i];
  SYNC();
  // Few threads have a row here, or, where ACROSS is small, a thread has some.
  ROLLED for (int c = THREAD; c < BESIDE * COLUMNS; c += THREADS) {
    const int64_t row = (BLOCK * BESIDE + c % BESIDE) * COLUMNS + c / BESIDE;
    if (row >= a.g.rows) continue;
    float x = joined[0][c / BESIDE][c % BESIDE];
    UNROLL for (int i = 1; i < ACROSS; i++) x = JOIN(x, joined[i][c / BESIDE][c % BESIDE]);
    if (a.parts > 1)
      GLOBAL(float, a.y)[row * a.parts + BLOCK_Y] = x;
    else
      store_result(&a, row, JOINED(end_, END)(x, a.count));
  }
}
