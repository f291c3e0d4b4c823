// The kernels of coded_kernel.h, for those who say first what lanes can do: included once each by
// coded_kernel.c and coded_avx512.c. They define
//   INLINE            of functions that are inlined
//   floats_t, ints_t  vectors of 16; compilers may make several registers of one
//   READ_BYTES(p)     16 int8 as floats
//   READ_WORDS(p)     16 words
//   TABLE(zero)       what LOW_CODES looks up, if anything
//   LOW_CODES(x, t)   floats of the words' low 4 bits, less the zero of the table
//   HAS_TABLE         whether that zero is subtracted so
//   VECTORS, MOST     columns (in vectors) and rows whose sums fit in registers
// Both are compiled with contraction of products and sums (CMakeLists.txt): a chain of multiply-adds
// is what is promised. In what makes a weight, a product of a difference, nothing can be contracted.
#ifndef ASSAY_BACKENDS_CPU_CODED_LANES_H_
#define ASSAY_BACKENDS_CPU_CODED_LANES_H_

#include "backends/cpu/coded_kernel.h"
#include "backends/cpu/gemm.h"

enum { LANES = 16, WORD = 4, PAIR = CPU_PANEL / LANES };

#ifdef __clang__
#define UNROLL _Pragma("unroll")
#else
#define UNROLL _Pragma("GCC unroll 8")
#endif

// x - 0 is x, also where that is -0: nothing is left of it.
#define ALL(x) ((x) - (floats_t){0})
#define READ_FLOATS(p) (*(const floats_t*)(const void*)(p))
#define WRITE_FLOATS(p, x) (*(floats_t*)(void*)(p) = (x))

// Whether zeros are subtracted from codes after they are read.
static inline bool subtracts_zeros(const cpu_coded_t* w) {
  if (w->zeros != CPU_CODED_ONE_ZERO) return true;
  return w->bits == 8 ? w->zero != 0 : !HAS_TABLE;
}

// The zero that a table subtracts.
static inline float zero_of_table(const cpu_coded_t* w) {
  return w->zeros == CPU_CODED_ONE_ZERO ? w->zero : 0;
}

// Of some vectors of columns, in one block.
typedef struct scaling {
  floats_t scale[VECTORS], zero[VECTORS];
} scaling_t;

// head: of the block; column: the first.
INLINE void read_scaling(const cpu_coded_t* w, const uint8_t* head, int column, int vectors,
                         scaling_t* s) {
  const uint8_t* zeros = head + CPU_CODED_PANEL * sizeof(float);
  UNROLL for (int j = 0; j < vectors; j++) {
    const int at = column + j * LANES;
    s->scale[j] = READ_FLOATS(head + at * WORD);
    if (w->zeros == CPU_CODED_ONE_ZERO)
      s->zero[j] = ALL(w->zero);
    else if (w->zeros == CPU_CODED_BYTE_ZEROS)
      s->zero[j] = READ_BYTES(zeros + at);
    else
      s->zero[j] = READ_FLOATS(zeros + at * WORD);
  }
}

// A row of weights times one element each of `rows` rows of a. Constants where this is inlined:
// rows, subtracts.
INLINE void add_row(int rows, bool subtracts, const floats_t* codes, const scaling_t* s,
                    const float* a, int64_t a_step, floats_t sum[MOST][VECTORS]) {
  UNROLL for (int j = 0; j < VECTORS; j++) {
    floats_t w = codes[j];
    if (subtracts) w = w - s->zero[j];
    w = w * s->scale[j];
    UNROLL for (int i = 0; i < rows; i++) sum[i][j] = ALL(a[i * a_step]) * w + sum[i][j];
  }
}

// The same for n rows of weights of one block, whose codes lie at `at`. Constants: bits, too.
INLINE void add_block(int rows, int bits, bool subtracts, const floats_t* table, const uint8_t* at, int64_t n,
                      const scaling_t* s, const float* a, int64_t a_step,
                      floats_t sum[MOST][VECTORS]) {
  floats_t codes[VECTORS];
  if (bits == 8) {
    for (int64_t l = 0; l < n; l++, at += CPU_CODED_PANEL) {
      UNROLL for (int j = 0; j < VECTORS; j++) codes[j] = READ_BYTES(at + j * LANES);
      add_row(rows, subtracts, codes, s, a + l, a_step, sum);
    }
    return;
  }
  for (int64_t l = 0; l < n; l += CPU_CODED_GROUP, at += CPU_CODED_PANEL * WORD) {
    const int64_t end = n - l < CPU_CODED_GROUP ? n : l + CPU_CODED_GROUP;
    ints_t words[VECTORS];
    UNROLL for (int j = 0; j < VECTORS; j++) words[j] = READ_WORDS(at + j * LANES * WORD);
    for (int64_t q = l; q < end; q++) {
      UNROLL for (int j = 0; j < VECTORS; j++) codes[j] = LOW_CODES(words[j], *table);
      UNROLL for (int j = 0; j < VECTORS; j++) words[j] >>= 4;
      add_row(rows, subtracts, codes, s, a + q, a_step, sum);
    }
  }
}

// All of k, for `rows` rows from `row` on and VECTORS of columns from `column` on.
INLINE void add_rows(int rows, int bits, bool subtracts, const cpu_coded_rows_t* r, int64_t row,
                     int column) {
  const cpu_coded_t* w = r->w;
  const uint8_t* head = r->panel;
  const float* a = r->a + row * r->a_step;
  const floats_t table = TABLE(zero_of_table(w));
  floats_t sum[MOST][VECTORS];
  UNROLL for (int i = 0; i < rows; i++) UNROLL for (int j = 0; j < VECTORS; j++) sum[i][j] =
      r->bias ? READ_FLOATS(r->bias + column + j * LANES) : (floats_t){0};
  for (int64_t first = 0; first < w->k; first += w->block) {
    const int64_t n = w->k - first < w->block ? w->k - first : w->block;
    const uint8_t* codes = head + cpu_coded_head_bytes(w);
    scaling_t s;
    read_scaling(w, head, column, VECTORS, &s);
    add_block(rows, bits, subtracts, &table, codes + column * (bits == 8 ? 1 : WORD), n, &s, a + first,
              r->a_step, sum);
    head = codes + cpu_coded_code_bytes(w, n);
  }
  UNROLL for (int i = 0; i < rows; i++) UNROLL for (int j = 0; j < VECTORS; j++)
      WRITE_FLOATS(r->c + (row + i) * r->c_step + column + j * LANES, sum[i][j]);
}

// The weights of n rows of one block and of CPU_PANEL columns. at: their codes.
INLINE void widen_block(int bits, bool subtracts, const floats_t* table, const uint8_t* at, int64_t n,
                        const scaling_t* s, float* to) {
  const int some = bits == 8 ? 1 : CPU_CODED_GROUP;
  for (int64_t l = 0; l < n; l += some, at += CPU_CODED_PANEL * (bits == 8 ? 1 : WORD)) {
    const int64_t end = n - l < some ? n : l + some;
    ints_t words[PAIR] = {{0}};
    for (int j = 0; bits == 4 && j < PAIR; j++) words[j] = READ_WORDS(at + j * LANES * WORD);
    for (int64_t q = l; q < end; q++) {
      UNROLL for (int j = 0; j < PAIR; j++) {
        floats_t w;
        if (bits == 8)
          w = READ_BYTES(at + j * LANES);
        else
          w = LOW_CODES(words[j], *table);
        words[j] >>= 4;
        if (subtracts) w = w - s->zero[j];
        WRITE_FLOATS(to + q * CPU_PANEL + j * LANES, w * s->scale[j]);
      }
    }
  }
}

INLINE void widen(int bits, bool subtracts, const cpu_coded_t* w, const uint8_t* panel, int64_t from,
                  int64_t end, float* to) {
  const floats_t table = TABLE(zero_of_table(w));
  const int64_t bytes = cpu_coded_head_bytes(w) + cpu_coded_code_bytes(w, w->block);
  for (int64_t l = from, next; l < end; l = next) {
    const int64_t first = l / w->block * w->block;
    const uint8_t* head = panel + l / w->block * bytes;
    const uint8_t* codes = head + cpu_coded_head_bytes(w) + cpu_coded_code_bytes(w, l - first);
    next = first + w->block < end ? first + w->block : end;
    for (int column = 0; column < CPU_CODED_PANEL; column += CPU_PANEL) {
      scaling_t s;
      read_scaling(w, head, column, PAIR, &s);
      widen_block(bits, subtracts, &table, codes + column * (bits == 8 ? 1 : WORD), next - l, &s,
                  to + column * (end - from) + (l - from) * CPU_PANEL);
    }
  }
}

// ---- the functions of coded_kernel.h ------------------------------------------------------------

#define ADD_SOME(rows, bits, subtracts)                               \
  for (int column = 0; column < CPU_CODED_PANEL; column += VECTORS * LANES) \
    add_rows(rows, bits, subtracts, r, row, column);
#define ADD_ALL(bits, subtracts)                                  \
  for (int64_t row = 0, rows; row < r->m; row += rows) {          \
    rows = r->m - row >= 4 && MOST >= 4 ? 4 : r->m - row >= 2 ? 2 : 1; \
    if (rows == 4) {                                              \
      ADD_SOME(MOST >= 4 ? 4 : 1, bits, subtracts)                \
    } else if (rows == 2) {                                       \
      ADD_SOME(2, bits, subtracts)                                \
    } else {                                                      \
      ADD_SOME(1, bits, subtracts)                                \
    }                                                             \
  }
#define ROWS_BODY(r)                    \
  if ((r)->w->bits == 8) {              \
    if (subtracts_zeros((r)->w)) {      \
      ADD_ALL(8, true)                  \
    } else {                            \
      ADD_ALL(8, false)                 \
    }                                   \
  } else if (subtracts_zeros((r)->w)) { \
    ADD_ALL(4, true)                    \
  } else {                              \
    ADD_ALL(4, !HAS_TABLE)              \
  }
#define WIDEN_BODY(w)                                      \
  if ((w)->bits == 8)                                      \
    widen(8, true, w, panel, from, end, to);               \
  else if (subtracts_zeros(w))                             \
    widen(4, true, w, panel, from, end, to);               \
  else                                                     \
    widen(4, !HAS_TABLE, w, panel, from, end, to);

#endif  // ASSAY_BACKENDS_CPU_CODED_LANES_H_
