// What the kernels of products have in common: where a block works, where elements of the left side
// lie, and what becomes of a sum.
//
// Options: CONV 0: the left side is a matrix; 1: the input of a convolution, 2: of a transposed
// one. OUT: the type of the output (not there: sums are not floats); THROUGH, where it is there:
// the one that results are rounded to before. EPILOGUE 1: what follows is in "program.h".
// GATE: the program makes an element of the output of a column of either half of the product's
// (PRODUCT_GATED), which are rounded to this type before.
#ifndef ASSAY_BACKENDS_CUDA_KERNELS_PRODUCT_H_
#define ASSAY_BACKENDS_CUDA_KERNELS_PRODUCT_H_

#include "elements.h"
#include "product_args.h"

#ifndef DOWN_FIRST
#define DOWN_FIRST 0
#endif
#if EPILOGUE
#include "program.h"
#endif

// A tile of one matrix: the first row and column, and where the matrix begins in each operand.
typedef struct tile {
  int64_t row, column, x, w, y, matrix;
} tile_t;

DEVICE tile_t find_tile(const product_args_t* a, int rows, int columns) {
  // Blocks have numbers of 31 bits; to divide by more takes as long as a step.
  const uint32_t across = (uint32_t)((a->n + columns - 1) / columns);
  const uint32_t of_matrix = across * (uint32_t)((a->m + rows - 1) / rows);
  const uint32_t first = (uint32_t)BLOCK / of_matrix, at = (uint32_t)BLOCK - first * of_matrix;
  const uint32_t down = at / across;
  int64_t matrix = first;
  tile_t t = {(int64_t)down * rows, (int64_t)(at - down * across) * columns, 0, 0, 0, matrix};
  for (int d = a->n_dims - 1; d >= 0; d--) {
    const int64_t i = take_digit(&matrix, a->dims[d]);
    t.x += i * a->x_step[d];
    t.w += i * a->w_step[d];
    t.y += i * a->y_step[d];
  }
  return t;
}

// Tile `number` where there is one matrix. DOWN_FIRST 1: blocks that run at once have the same
// columns, so that weights which no cache holds are read once.
DEVICE tile_t find_only_tile(const product_args_t* a, uint32_t number, int rows, int columns) {
  const uint32_t of = DOWN_FIRST ? (uint32_t)a->m : (uint32_t)a->n;
  const uint32_t each = DOWN_FIRST ? (uint32_t)rows : (uint32_t)columns;
  const uint32_t line = (of + each - 1) / each, outer = number / line;
  const uint32_t inner = number - outer * line;
  const tile_t t = {(int64_t)(DOWN_FIRST ? inner : outer) * rows,
                    (int64_t)(DOWN_FIRST ? outer : inner) * columns,
                    0,
                    0,
                    0,
                    0};
  return t;
}

// ---- the left side ------------------------------------------------------------------------------

// A row: where it begins, and with CONV where its window begins.
typedef struct row {
  int64_t at;  // -1: past the last row
#if CONV
  int32_t window[PRODUCT_AXES];
#endif
} row_t;

DEVICE row_t find_row(const product_args_t* a, const tile_t* t, int64_t i) {
  row_t r;
  r.at = -1;
  if (i >= a->m) return r;
#if CONV
  int64_t place = i;
  UNROLL
  for (int d = PRODUCT_AXES - 1; d >= 0; d--) {
    const product_axis_t* x = &a->axes[d];
    const int32_t o = (int32_t)(place % x->out);
    place /= x->out;
    r.window[d] = CONV == 1 ? o * x->stride - x->pad : o + x->pad;
  }
  r.at = t->x + place * a->x_sample;
#else
  r.at = t->x + i * a->x_row;
#endif
  return r;
}

// A term: with CONV a tap of the kernel, by its place along each axis, and a channel.
typedef struct term {
#if CONV
  int32_t channel, tap[PRODUCT_AXES];
#else
  int64_t k;
#endif
} term_t;

DEVICE term_t term_at(const product_args_t* a, int64_t k) {
  term_t t;
#if CONV
  int32_t tap = (int32_t)k / a->channels;
  t.channel = (int32_t)k % a->channels;
  UNROLL
  for (int d = PRODUCT_AXES - 1; d >= 0; d--) {
    t.tap[d] = tap % a->axes[d].kernel;
    tap /= a->axes[d].kernel;
  }
#else
  (void)a;
  t.k = k;
#endif
  return t;
}

// The term `by` behind it, without a division.
DEVICE void next_term(const product_args_t* a, term_t* t, int by) {
#if CONV
  t->channel += by;
  while (t->channel >= a->channels) {
    t->channel -= a->channels;
    bool carry = true;
    UNROLL
    for (int d = PRODUCT_AXES - 1; d >= 0; d--) {
      t->tap[d] += carry;
      carry = t->tap[d] == a->axes[d].kernel;
      if (carry) t->tap[d] = 0;
    }
  }
#else
  (void)a;
  t->k += by;
#endif
}

// The element of a row that is a term, which is not past the last one; -1: a zero.
DEVICE int64_t element_of(const product_args_t* a, const row_t* r, const term_t* t) {
  if (r->at < 0) return -1;
#if CONV
  int32_t place = 0;
  UNROLL
  for (int d = 0; d < PRODUCT_AXES; d++) {
    const product_axis_t* x = &a->axes[d];
#if CONV == 1
    const int32_t i = r->window[d] + t->tap[d] * x->dilation;
    if ((uint32_t)i >= (uint32_t)x->in) return -1;
#else
    int32_t i = r->window[d] - t->tap[d] * x->dilation;
    if (i < 0 || i % x->stride) return -1;
    i /= x->stride;
    if (i >= x->in) return -1;
#endif
    place = place * x->in + i;
  }
  return r->at + (int64_t)place * a->x_place + t->channel;
#else
  return r->at + t->k * a->x_k;
#endif
}

// The same of term k < a->k.
DEVICE int64_t find_term(const product_args_t* a, const row_t* r, int64_t k) {
  const term_t t = term_at(a, k);
  return element_of(a, r, &t);
}

// ---- the output ---------------------------------------------------------------------------------

#ifdef THROUGH
#define ROUNDED(x) ROUND(THROUGH)(x)
#else
#define ROUNDED(x) (x)
#endif

// Sum i of TOGETHER as a program's argument.
#ifdef GATE
#define SUM(sums, i) (sums)[i], (sums)[TOGETHER + (i)]
#define PICKED_SUM(sums, i) pick(sums, i), pick((sums) + TOGETHER, i)
#else
#define SUM(sums, i) (sums)[i]
#define PICKED_SUM(sums, i) pick(sums, i)
#endif

#ifdef OUT
#ifndef GATE
DEVICE void finish_sum(const product_args_t* a, const tile_t* t, int64_t row, int64_t column,
                       float sum) {
  if (row >= a->m || column >= a->n) return;
  if (a->bias) sum += GLOBAL(const float, a->bias)[t->matrix * a->bias_step + column];
  const int64_t at = t->y + row * a->y_row + column;
#if EPILOGUE
  const index_t line = (index_t)(t->y / a->y_row + row);
  const index_t place = (index_t)(t->y % a->y_row + column);
  WORD_OF(PROGRAM_OUT)* y = GLOBAL(WORD_OF(PROGRAM_OUT), a->y);
  y[at] = TO_WORD(PROGRAM_OUT)(program(sum, line, place, &a->program));
#else
  STORE(OUT)(GLOBAL(ELEMENT(OUT), a->y), at, ROUNDED(sum));
#endif
}
#endif

// The same of TOGETHER sums that lie side by side, which are stored at once where all of them are
// there and the place is a multiple of their bytes.
#if EPILOGUE
typedef WORD_OF(PROGRAM_OUT) product_word_t;
#else
typedef ELEMENT(OUT) product_word_t;
#endif
#if EPILOGUE && PROGRAM_VECTOR > 1
#define TOGETHER PROGRAM_VECTOR
#elif EPILOGUE
#define TOGETHER 4
#else
#define TOGETHER (16 / (int)sizeof(product_word_t))
#endif

// Where the tile's matrix begins in the output, as a line and a place in it: what divides stands
// before the loop over sums.
typedef struct ending {
  int64_t line, place;
} ending_t;
DEVICE ending_t find_ending(const product_args_t* a, const tile_t* t) {
  const int64_t line = t->y ? t->y / a->y_row : 0;
  const ending_t e = {line, t->y - line * a->y_row};
  return e;
}

// Where p is a multiple of 16 bytes.
DEVICE void read_four(const float* p, float* to) {
  uint32_t words[4];
  READ_16(p, words);
  UNROLL
  for (int i = 0; i < 4; i++) to[i] = float_of(words[i]);
}

// The bias of n of TOGETHER columns, where there is one.
DEVICE void take_bias(const product_args_t* a, const tile_t* t, int64_t column, int n,
                      float* bias) {
  if (!a->bias) return;
  const int64_t at = t->matrix * a->bias_step + column;
  const float* from = GLOBAL(const float, a->bias) + at;
  if (n == TOGETHER && at % 4 == 0) {
    UNROLL
    for (int i = 0; i < TOGETHER; i += 4) read_four(from + i, bias + i);
  } else {
    UNROLL
    for (int i = 0; i < TOGETHER; i++)
      if (i < n) bias[i] = from[i];
  }
}

// Stores what n of TOGETHER sums become. What it gives: bits of those that are open, which are to
// be stored once more (PROGRAM_IS_ROUGH): they take long, and are few.
#if EPILOGUE && PROGRAM_VECTOR > 1
// Whether n sums of a place are whole vectors, whatever the line.
DEVICE bool are_whole(const product_args_t* a, int64_t place, int n) {
  return n == TOGETHER && place % TOGETHER == 0 && a->y % (TOGETHER * sizeof(product_word_t)) == 0;
}
// y: where the first one is stored.
DEVICE uint32_t store_at(const product_args_t* a, product_word_t* y, int64_t line, int64_t place,
                         int n, bool whole, const float* sums) {
  if (whole) {
    value_t values[PROGRAM_VECTOR];
#if PROGRAM_IS_ROUGH
    const uint32_t open = program_at_once(sums, (index_t)line, (index_t)place, &a->program, values);
#else
    const uint32_t open = 0;
    program_vector(sums, (index_t)line, (index_t)place, &a->program, values);
#endif
    STORE_VECTOR(PROGRAM_OUT, y, values)
    return open;
  }
#if PROGRAM_IS_ROUGH
  return (1u << n) - 1;
#else
  ROLLED
  for (int i = 0; i < n; i++)
    y[i] = TO_WORD(PROGRAM_OUT)(
        program(PICKED_SUM(sums, i), (index_t)line, (index_t)(place + i), &a->program));
  return 0;
#endif
}

DEVICE product_word_t* find_sums(const product_args_t* a, int64_t line, int64_t place) {
  return GLOBAL(product_word_t, a->y) + line * a->y_row + place;
}
DEVICE uint32_t store_sums(const product_args_t* a, int64_t line, int64_t place, int n,
                           const float* sums) {
  return store_at(a, find_sums(a, line, place), line, place, n, are_whole(a, place, n), sums);
}
#else
DEVICE void store_together(product_word_t* to, const product_word_t* from) {
  enum { BYTES = TOGETHER * sizeof *from };
  union {
    product_word_t all[TOGETHER];
    uint32_t words[BYTES / 4];
  } u;
  UNROLL
  for (int i = 0; i < TOGETHER; i++) u.all[i] = from[i];
  switch ((int)BYTES) {
    case 4:
      STORE_4(to, u.words);
      break;
    case 8:
      STORE_8(to, u.words);
      break;
    case 16:
      STORE_16(to, u.words);
      break;
    default:
      UNROLL
      for (int i = 0; i < TOGETHER; i++) to[i] = from[i];
  }
}

DEVICE uint32_t store_sums(const product_args_t* a, int64_t line, int64_t place, int n,
                           const float* sums) {
  const int64_t at = line * a->y_row + place;
  product_word_t* y = GLOBAL(product_word_t, a->y);
  product_word_t all[TOGETHER];
  UNROLL
  for (int i = 0; i < TOGETHER; i++) {
    if (i >= n) continue;
#if EPILOGUE
    all[i] = TO_WORD(PROGRAM_OUT)(
        program(SUM(sums, i), (index_t)line, (index_t)(place + i), &a->program));
#else
    STORE(OUT)(all, i, ROUNDED(sums[i]));
#endif
  }
  if (n == TOGETHER && at % TOGETHER == 0 && a->y % (TOGETHER * sizeof *y) == 0) {
    store_together(y + at, all);
  } else {
    UNROLL
    for (int i = 0; i < TOGETHER; i++)
      if (i < n) y[at + i] = all[i];
  }
  return 0;
}
#endif

#ifndef GATE
// How many of TOGETHER sums of a column are there.
DEVICE int columns_left(const product_args_t* a, int64_t column) {
  return a->n - column < TOGETHER ? (int)(a->n - column) : TOGETHER;
}

DEVICE uint32_t finish_together(const product_args_t* a, const ending_t* e, int64_t row,
                                int64_t column, const float* bias, float* sums) {
  if (row >= a->m || column >= a->n) return 0;
  if (a->bias) UNROLL
  for (int i = 0; i < TOGETHER; i++) sums[i] += bias[i];
  return store_sums(a, e->line + row, e->place + column, columns_left(a, column), sums);
}

// One of those that it left open.
DEVICE void finish_open(const product_args_t* a, const ending_t* e, int64_t row, int64_t column,
                        float sum, float bias) {
#if PROGRAM_IS_ROUGH
  const int64_t line = e->line + row, place = e->place + column;
  if (a->bias) sum += bias;
  GLOBAL(product_word_t, a->y)
  [line * a->y_row + place] =
      TO_WORD(PROGRAM_OUT)(program_later(sum, (index_t)line, (index_t)place, &a->program));
#else
  (void)a, (void)e, (void)row, (void)column, (void)sum, (void)bias;
#endif
}
#endif
#endif

#endif  // ASSAY_BACKENDS_CUDA_KERNELS_PRODUCT_H_
