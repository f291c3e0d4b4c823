// The kernels of coded_kernel.h, for those who say first what lanes can do: included once each by
// coded_kernel.c and coded_avx512.c. They define
//   INLINE            of functions that are inlined
//   floats_t, ints_t  vectors of 16; compilers may make several registers of one
//   READ_BYTES(p)     16 int8 as floats
//   READ_WORDS(p)     16 words
//   FILL(x, m, b)     (x & m) | b, of words
//   HAS_TABLE         whether a lookup makes floats of codes, less a zero that is the same for all:
//   TABLE(zero)       what it looks up
//   LOOK_UP(x, t)     by the words' low 4 bits
//   MADD(x, y, z)     x * y + z: rounded once where the CPU can
//   VECTORS, MOST     columns (in vectors) and rows whose sums fit in registers
#ifndef ASSAY_BACKENDS_CPU_GEMM_CODED_LANES_H_
#define ASSAY_BACKENDS_CPU_GEMM_CODED_LANES_H_

#include "backends/cpu/gemm/coded_kernel.h"
#include "backends/cpu/gemm/gemm.h"

enum {
  LANES = 16,
  WORD = 4,
  PAIR = CPU_PANEL / LANES,
  AHEAD = 2048  // bytes that are fetched before they are read: CPUs do not run so far ahead alone
};

#ifdef __clang__
#define UNROLL _Pragma("unroll")
#else
#define UNROLL _Pragma("GCC unroll 8")
#endif

// x - 0 is x, also where that is -0: nothing is left of it.
#define ALL(x) ((x) - (floats_t){0})
#define READ_FLOATS(p) (*(const floats_t*)(const void*)(p))
#define WRITE_FLOATS(p, x) (*(floats_t*)(void*)(p) = (x))

// How codes become floats less their zeros. Without a lookup, 4 bits at `place` of a word are made
// the mantissa's of a large float, which is the code more than a power of two: 2^23, 2^19, 2^15 at
// the places 0, 4 and 8. Both are subtracted at once where the zero is a whole number: exactly.
typedef enum coding {
  BYTES = 0,     // of 8 bits, zero 0
  BYTES_LESS,    // of 8 bits, less zeros
  LOOKUP,        // of 4 bits, by a table
  OFFSET,        // of 4 bits, less the power and a whole number
  OFFSET_TWICE,  // of 4 bits, less the power, less a zero
} coding_t;

enum { PLACES = 3 };
#define PLACE_MASK(place) (15 << 4 * (place))
#define PLACE_BITS(place) ((150 - 4 * (place)) << 23)
#define PLACE_POWER(place) ((float)(1 << (23 - 4 * (place))))

static inline coding_t coding_of(const cpu_coded_t* w) {
  const bool one = w->zeros == CPU_CODED_ONE_ZERO;
  if (w->bits == 8) return one && w->zero == 0 ? BYTES : BYTES_LESS;
  if (one && HAS_TABLE) return LOOKUP;
  const bool whole = w->zeros == CPU_CODED_BYTE_ZEROS || (one && w->zero == (float)(int8_t)w->zero);
  return whole ? OFFSET : OFFSET_TWICE;
}

// Of some vectors of columns, in one block.
typedef struct scaling {
  floats_t scale[VECTORS], zero[VECTORS], offset[PLACES][VECTORS], table;
} scaling_t;

// head: of the block; column: the first.
INLINE void read_scaling(coding_t coding, const cpu_coded_t* w, const uint8_t* head, int column,
                         int vectors, scaling_t* s) {
  const uint8_t* zeros = head + CPU_CODED_PANEL * sizeof(float);
  UNROLL for (int j = 0; j < vectors; j++) {
    const int at = column + j * LANES;
    s->scale[j] = READ_FLOATS(head + at * WORD);
    if (coding == BYTES || coding == LOOKUP) continue;
    if (w->zeros == CPU_CODED_ONE_ZERO)
      s->zero[j] = ALL(w->zero);
    else if (w->zeros == CPU_CODED_BYTE_ZEROS)
      s->zero[j] = READ_BYTES(zeros + at);
    else
      s->zero[j] = READ_FLOATS(zeros + at * WORD);
    UNROLL for (int p = 0; coding == OFFSET && p < PLACES; p++) s->offset[p][j] =
        s->zero[j] + PLACE_POWER(p);
  }
}

// *w = the weights of 16 codes: `from` are words, at a place, or bytes. Constants where this is
// inlined: coding, place.
#define WEIGH(coding, s, j, words, bytes, place, w)                                   \
  do {                                                                                \
    if ((coding) <= BYTES_LESS)                                                       \
      (w) = READ_BYTES(bytes);                                                        \
    else if ((coding) == LOOKUP)                                                      \
      (w) = LOOK_UP(words, (s)->table);                                               \
    else                                                                              \
      (w) = (floats_t)FILL(words, PLACE_MASK(place), PLACE_BITS(place));              \
    if ((coding) == OFFSET) (w) = (w) - (s)->offset[place][j];                        \
    if ((coding) == OFFSET_TWICE) (w) = (w)-PLACE_POWER(place);                       \
    if ((coding) == BYTES_LESS || (coding) == OFFSET_TWICE) (w) = (w) - (s)->zero[j]; \
    (w) = (w) * (s)->scale[j];                                                        \
  } while (0)

// A row of weights times one element each of `rows` rows of a.
INLINE void add_row(int rows, const floats_t* w, const float* a, int64_t a_step,
                    floats_t sum[MAX][VECTORS]) {
  UNROLL for (int j = 0; j < VECTORS; j++) UNROLL for (int i = 0; i < rows; i++) sum[i][j] =
      MADD(ALL(a[i * a_step]), w[j], sum[i][j]);
}

// Constants in all that follows: rows, coding.
INLINE void add_bytes(int rows, coding_t coding, const uint8_t* at, int64_t n, const scaling_t* s,
                      const float* a, int64_t a_step, floats_t sum[MAX][VECTORS]) {
  for (int64_t l = 0; l < n; l++, at += CPU_CODED_PANEL) {
    floats_t w[VECTORS];
    __builtin_prefetch(at + AHEAD);
    UNROLL for (int j = 0; j < VECTORS; j++)
        WEIGH(coding, s, j, (ints_t){0}, at + j * LANES, 0, w[j]);
    add_row(rows, w, a + l, a_step, sum);
  }
}

// A whole group of OFFSET: each word is moved twice.
INLINE void add_group(int rows, const uint8_t* at, const scaling_t* s, const float* a,
                      int64_t a_step, floats_t sum[MAX][VECTORS]) {
  floats_t w[VECTORS];
  ints_t words[VECTORS];
  UNROLL for (int j = 0; j < VECTORS; j++) words[j] = READ_WORDS(at + j * LANES * WORD);
  UNROLL for (int q = 0; q < CPU_CODED_GROUP; q++) {
    UNROLL for (int j = 0; j < VECTORS; j++) {
      if (q && q % PLACES == 0) words[j] >>= 4 * PLACES;
      WEIGH(OFFSET, s, j, words[j], at, q % PLACES, w[j]);
    }
    add_row(rows, w, a + q, a_step, sum);
  }
}

// n rows of weights of one group.
INLINE void add_some(int rows, coding_t coding, const uint8_t* at, int64_t n, const scaling_t* s,
                     const float* a, int64_t a_step, floats_t sum[MAX][VECTORS]) {
  floats_t w[VECTORS];
  ints_t words[VECTORS];
  UNROLL for (int j = 0; j < VECTORS; j++) words[j] = READ_WORDS(at + j * LANES * WORD);
  for (int64_t q = 0; q < n; q++) {
    UNROLL for (int j = 0; j < VECTORS; j++) {
      WEIGH(coding, s, j, words[j], at, 0, w[j]);
      words[j] >>= 4;
    }
    add_row(rows, w, a + q, a_step, sum);
  }
}

// All of k, for `rows` rows from `row` on and VECTORS of columns from `column` on.
INLINE void add_rows(int rows, coding_t coding, const cpu_coded_rows_t* r, int64_t row,
                     int column) {
  const cpu_coded_t* w = r->w;
  const int64_t step = r->a_step;
  const uint8_t* head = r->panel;
  const float* a = r->a + row * step;
  floats_t sum[MAX][VECTORS];
  scaling_t s;
  s.table = TABLE(w->zero);
  UNROLL for (int i = 0; i < rows; i++) UNROLL for (int j = 0; j < VECTORS; j++) sum[i][j] =
      r->bias ? READ_FLOATS(r->bias + column + j * LANES) : (floats_t){0};
  for (int64_t first = 0, n; first < w->k; first += n, a += n) {
    n = w->k - first < w->block ? w->k - first : w->block;
    read_scaling(coding, w, head, column, VECTORS, &s);
    const uint8_t* codes = head + cpu_coded_head_bytes(w);
    head = codes + cpu_coded_code_bytes(w, n);
    if (coding <= BYTES_LESS) {
      add_bytes(rows, coding, codes + column, n, &s, a, step, sum);
      continue;
    }
    codes += column * WORD;
    for (int64_t l = 0; l < n; l += CPU_CODED_GROUP, codes += CPU_CODED_PANEL * WORD) {
      const int64_t left = n - l < CPU_CODED_GROUP ? n - l : CPU_CODED_GROUP;
      if (coding == OFFSET && left == CPU_CODED_GROUP)
        add_group(rows, codes, &s, a + l, step, sum);
      else
        add_some(rows, coding, codes, left, &s, a + l, step, sum);
    }
  }
  UNROLL for (int i = 0; i < rows; i++) UNROLL for (int j = 0; j < VECTORS; j++)
      WRITE_FLOATS(r->c + (row + i) * r->c_step + column + j * LANES, sum[i][j]);
}

// The weights of n rows of one block and of CPU_PANEL columns. at: their codes.
INLINE void widen_block(coding_t coding, const uint8_t* at, int64_t n, const scaling_t* s,
                        float* to) {
  const bool bytes = coding <= BYTES_LESS;
  const int some = bytes ? 1 : CPU_CODED_GROUP;
  for (int64_t l = 0; l < n; l += some, at += CPU_CODED_PANEL * (bytes ? 1 : WORD)) {
    const int64_t end = n - l < some ? n : l + some;
    ints_t words[PAIR] = {{0}};
    for (int j = 0; !bytes && j < PAIR; j++) words[j] = READ_WORDS(at + j * LANES * WORD);
    for (int64_t q = l; q < end; q++) UNROLL for (int j = 0; j < PAIR; j++) {
        floats_t w;
        WEIGH(coding, s, j, words[j], at + j * LANES, 0, w);
        words[j] >>= 4;
        WRITE_FLOATS(to + q * CPU_PANEL + j * LANES, w);
      }
  }
}

INLINE void widen(coding_t coding, const cpu_coded_t* w, const uint8_t* panel, int64_t from,
                  int64_t end, float* to) {
  const int64_t bytes = cpu_coded_head_bytes(w) + cpu_coded_code_bytes(w, w->block);
  scaling_t s;
  s.table = TABLE(w->zero);
  for (int64_t l = from, next; l < end; l = next) {
    const int64_t first = l / w->block * w->block;
    const uint8_t* head = panel + l / w->block * bytes;
    const uint8_t* codes = head + cpu_coded_head_bytes(w) + cpu_coded_code_bytes(w, l - first);
    next = first + w->block < end ? first + w->block : end;
    for (int column = 0; column < CPU_CODED_PANEL; column += CPU_PANEL) {
      read_scaling(coding, w, head, column, PAIR, &s);
      widen_block(coding, codes + column * (w->bits == 8 ? 1 : WORD), next - l, &s,
                  to + column * (end - from) + (l - from) * CPU_PANEL);
    }
  }
}

// ---- the functions of coded_kernel.h ------------------------------------------------------------

// Constants for each coding.
#define BY_CODING(coding, DO)        \
  switch (coding) {                  \
    case BYTES:                      \
      DO(BYTES)                      \
      break;                         \
    case BYTES_LESS:                 \
      DO(BYTES_LESS)                 \
      break;                         \
    case LOOKUP:                     \
      DO(HAS_TABLE ? LOOKUP : BYTES) \
      break;                         \
    case OFFSET:                     \
      DO(OFFSET)                     \
      break;                         \
    default:                         \
      DO(OFFSET_TWICE)               \
      break;                         \
  }

#define ADD_COLUMNS(rows, coding)                                           \
  for (int column = 0; column < CPU_CODED_PANEL; column += VECTORS * LANES) \
    add_rows(rows, coding, r, row, column);
#define ADD_ALL(coding)                                               \
  for (int64_t row = 0, rows; row < r->m; row += rows) {              \
    rows = r->m - row >= 4 && MAX >= 4 ? 4 : r->m - row >= 2 ? 2 : 1; \
    if (rows == 4) {                                                  \
      ADD_COLUMNS(MAX >= 4 ? 4 : 1, coding)                           \
    } else if (rows == 2) {                                           \
      ADD_COLUMNS(2, coding)                                          \
    } else {                                                          \
      ADD_COLUMNS(1, coding)                                          \
    }                                                                 \
  }
#define ROWS_BODY BY_CODING(coding_of(r->w), ADD_ALL)

#define WIDEN(coding) widen(coding, w, panel, from, end, to);
#define WIDEN_BODY BY_CODING(coding_of(w), WIDEN)

#endif  // ASSAY_BACKENDS_CPU_GEMM_CODED_LANES_H_
