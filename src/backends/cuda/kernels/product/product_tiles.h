// Products by tiles whose operands lie in shared memory, so many terms at a time: how steps are
// brought there by the threads that multiply.
//
// Options besides those of product.h: X_FAST 1: rows of the left side begin at multiples of 16
// bytes, and eight terms lie side by side (of one tap, with CONV), four of f32; W_FAST 1: so do
// terms of a column, 2: so do columns of a term, 0: neither. The kernel says BM x BN, the tile;
// N_THREADS; BK, terms of a step; PIECE, elements of 16 bytes; place(row, piece): where a piece of
// the left side lies, and one of the weights, whose rows are columns of the product; with W_FAST 2
// rows are terms: wide_place(row, piece). Where groups of threads have tiles of terms of their own
// it says LOADERS, the threads of one, and LOADER, the number of one among them; else all threads
// bring the only one.
#ifndef ASSAY_BACKENDS_CUDA_KERNELS_PRODUCT_TILES_H_
#define ASSAY_BACKENDS_CUDA_KERNELS_PRODUCT_TILES_H_

#include "product_sums.h"

typedef ELEMENT(IN) element_t;
#ifndef LOADERS
#define LOADERS N_THREADS
#define LOADER THREAD
#endif

// ---- the left side ------------------------------------------------------------------------------

// Of each row a thread copies the same piece of 16 bytes, or reads the same term.
#if X_FAST
#define X_WIDTH 8
#define X_TERMS PIECE
#else
#define X_WIDTH BK
#define X_TERMS 1
#define AT_ONCE (X_LOADS < 8 ? X_LOADS : 8)  // loads of a thread under way
#endif
#define X_LOADS (BM * X_WIDTH / LOADERS)
#define X_ROW(i) (LOADER / X_WIDTH + (i) * (LOADERS / X_WIDTH))
#if LOADERS % X_WIDTH || BM % (LOADERS / X_WIDTH) || (!X_FAST && X_LOADS % AT_ONCE)
#error "threads do not share the left side out evenly"
#endif

typedef struct left {
  term_t term;  // of the thread
  int64_t k;    // its number
#if X_FAST
  const element_t* from[X_LOADS];  // where rows have it
#if CONV
  bool there[X_LOADS];  // it is not a zero
#endif
#endif
} left_t;

// Looks up where rows have the term. A matrix's row behind the last one is taken for the first one
// of the tile: what becomes of it is not stored.
DEVICE void aim_left(const product_args_t* a, const row_t* rows, const element_t* x, left_t* l) {
#if X_FAST && CONV
  UNROLL
  for (int i = 0; i < X_LOADS; i++) {
    const int64_t at = l->k < a->k ? element_of(a, &rows[X_ROW(i)], &l->term) : -1;
    l->there[i] = at >= 0;
    l->from[i] = x + (at < 0 ? 0 : at);
  }
#elif X_FAST
  UNROLL
  for (int i = 0; i < X_LOADS; i++) {
    const int64_t at = rows[X_ROW(i)].at;
    l->from[i] = x + (at < 0 ? rows[0].at : at) + l->k;
  }
  (void)a;
#else
  (void)a;
  (void)rows;
  (void)x;
  (void)l;
#endif
}

// Goes on by a step: within a tap, and in a matrix, to what lies behind it.
DEVICE void next_left(const product_args_t* a, const row_t* rows, const element_t* x, left_t* l) {
  l->k += BK;
#if CONV
  const bool same_tap = l->term.channel + BK < a->channels;
#else
  const bool same_tap = true;
#endif
  next_term(a, &l->term, BK);
  if (!same_tap) {
    aim_left(a, rows, x, l);
    return;
  }
#if X_FAST
  UNROLL
  for (int i = 0; i < X_LOADS; i++) l->from[i] += BK;
#endif
}

// Where there is nothing to read, nothing is read: where it would lie does not matter.
DEVICE void load_left(const product_args_t* a, const row_t* rows, const element_t* x,
                      const left_t* l, element_t* to) {
  const bool inside = l->k < a->k;
  const int place_in = LOADER % X_WIDTH;
#if X_FAST
  (void)rows;
  (void)x;
  UNROLL
  for (int i = 0; i < X_LOADS; i++) {
#if CONV
    const bool there = inside && l->there[i];
#else
    const bool there = inside;
#endif
    copy_16(to + place(X_ROW(i), place_in), l->from[i], there ? 16 : 0);
  }
#else
  for (int i = 0; i < X_LOADS; i += AT_ONCE) {
    element_t loaded[AT_ONCE];
    UNROLL
    for (int j = 0; j < AT_ONCE; j++) {
      const int64_t at = inside ? element_of(a, &rows[X_ROW(i + j)], &l->term) : -1;
      loaded[j] = at < 0 ? (element_t)0 : x[at];
    }
    UNROLL
    for (int j = 0; j < AT_ONCE; j++)
      to[place(X_ROW(i + j), place_in / PIECE) + place_in % PIECE] = loaded[j];
  }
#endif
}

// ---- the weights --------------------------------------------------------------------------------

#if W_FAST == 1  // rows are columns of the product
#define W_LOADS (BN * 8 / LOADERS)
#define W_ROW(i) (LOADER / 8 + (i) * (LOADERS / 8))
#define W_PIECE(i) (LOADER % 8)
#define W_TO(i) place(W_ROW(i), W_PIECE(i))
#elif W_FAST == 2  // rows are terms
#define W_LOADS (BK * BN / PIECE / LOADERS)
#define W_ROW(i) ((LOADER + (i)*LOADERS) / (BN / PIECE))
#define W_PIECE(i) ((LOADER + (i)*LOADERS) % (BN / PIECE))
#define W_TO(i) wide_place(W_ROW(i), W_PIECE(i))
#endif
#if W_FAST && (BN * 8 % LOADERS || BK * BN / PIECE % LOADERS)
#error "threads do not share the weights out evenly"
#endif

typedef struct right {
  int64_t k;  // the first term of the step
#if W_FAST
  const element_t* from[W_LOADS];
#endif
} right_t;

// From term `first` on. A column behind the last one is taken for the first one of the matrix: what
// becomes of it is not stored.
DEVICE void aim_right(const product_args_t* a, const tile_t* t, const element_t* w, int64_t first,
                      right_t* r) {
  r->k = first;
#if W_FAST
  UNROLL
  for (int i = 0; i < W_LOADS; i++) {
    const int64_t column = t->column + (W_FAST == 1 ? W_ROW(i) : W_PIECE(i) * PIECE);
    const int64_t k = first + (W_FAST == 1 ? W_PIECE(i) * PIECE : W_ROW(i));
    r->from[i] = w + (t->w + (column < a->n ? column * a->w_column : 0) + k * a->w_k);
  }
#else
  (void)a;
  (void)t;
  (void)w;
#endif
}

DEVICE void next_right(const product_args_t* a, right_t* r) {
  r->k += BK;
#if W_FAST
  UNROLL
  for (int i = 0; i < W_LOADS; i++) r->from[i] += BK * (W_FAST == 1 ? 1 : a->w_k);
#else
  (void)a;
#endif
}

DEVICE void load_right(const product_args_t* a, const tile_t* t, const element_t* w,
                       const right_t* r, element_t* to) {
#if W_FAST
  const int rest = a->k - r->k < BK ? (int)(a->k - r->k) : BK;  // terms of the step
  (void)t;
  (void)w;
  UNROLL
  for (int i = 0; i < W_LOADS; i++) {
    const bool there = (W_FAST == 1 ? W_PIECE(i) * PIECE : W_ROW(i)) < rest;
    copy_16(to + W_TO(i), r->from[i], there ? 16 : 0);
  }
#else
  for (int i = LOADER; i < BN * BK; i += LOADERS) {
    const int column = i / BK, k = i % BK;
    const bool inside = r->k + k < a->k && t->column + column < a->n;
    const int64_t at = t->w + (r->k + k) * a->w_k + (t->column + column) * a->w_column;
    to[place(column, k / PIECE) + k % PIECE] = inside ? w[at] : (element_t)0;
  }
#endif
}

#endif  // ASSAY_BACKENDS_CUDA_KERNELS_PRODUCT_TILES_H_
