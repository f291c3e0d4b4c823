// Boxes of elements copied between tensors with any strides: what layers that move elements are
// made of.
#include "backends/cpu/data/copies.h"

#include <string.h>

#include "backends/cpu/threads.h"
#include "base/target.h"

#define CLONES ASSAY_CLONES("arch=x86-64-v4", "arch=x86-64-v3", "default")

// ---- runs -----------------------------------------------------------------------------------

// A row of n elements: with steps of 1 in the output, and of `step` in the input.
#define ROWS(type)                                                                               \
  CLONES                                                                                         \
  static void row_##type(const type* from, int64_t step, int64_t n, int64_t to_step, type* to) { \
    if (to_step != 1) {                                                                          \
      for (int64_t i = 0; i < n; i++) to[i * to_step] = from[i * step];                          \
      return;                                                                                    \
    }                                                                                            \
    if (step == 0) {                                                                             \
      const type x = *from;                                                                      \
      _Pragma("omp simd") for (int64_t i = 0; i < n; i++) to[i] = x;                             \
      return;                                                                                    \
    }                                                                                            \
    for (int64_t i = 0; i < n; i++) to[i] = from[i * step];                                      \
  }
ROWS(uint8_t)
ROWS(uint16_t)
ROWS(uint32_t)
ROWS(uint64_t)

static void copy_row(const char* from, int64_t step, int64_t n, int64_t to_step, size_t elem,
                     char* to) {
  if (step == 1 && to_step == 1) {
    memcpy(to, from, (size_t)n * elem);
    return;
  }
  switch (elem) {
    case 1:
      row_uint8_t((const void*)from, step, n, to_step, (void*)to);
      break;
    case 2:
      row_uint16_t((const void*)from, step, n, to_step, (void*)to);
      break;
    case 4:
      row_uint32_t((const void*)from, step, n, to_step, (void*)to);
      break;
    default:
      row_uint64_t((const void*)from, step, n, to_step, (void*)to);
      break;
  }
}

// ---- matrices -------------------------------------------------------------------------------

// Blocks in vectors of 16 bytes, which every x86-64 has (wider ones would be taken apart where this
// is compiled for all of them): in rounds pairs of rows exchange ever larger parts.
typedef uint32_t vector32_t __attribute__((vector_size(16), aligned(4), may_alias));
typedef uint16_t vector16_t __attribute__((vector_size(16), aligned(2), may_alias));

static inline void four_by_four(const uint32_t* from, int64_t step, uint32_t* to, int64_t to_step) {
  vector32_t r[4], s[4];
  for (int i = 0; i < 4; i++) r[i] = *(const vector32_t*)(const void*)(from + i * step);
  for (int i = 0; i < 2; i++) {
    s[2 * i] = __builtin_shufflevector(r[2 * i], r[2 * i + 1], 0, 4, 1, 5);
    s[2 * i + 1] = __builtin_shufflevector(r[2 * i], r[2 * i + 1], 2, 6, 3, 7);
  }
  for (int i = 0; i < 2; i++) {
    *(vector32_t*)(void*)(to + 2 * i * to_step) =
        __builtin_shufflevector(s[i], s[i + 2], 0, 1, 4, 5);
    *(vector32_t*)(void*)(to + (2 * i + 1) * to_step) =
        __builtin_shufflevector(s[i], s[i + 2], 2, 3, 6, 7);
  }
}

static inline void block_uint32_t(const uint32_t* from, int64_t step, uint32_t* to,
                                  int64_t to_step) {
  for (int i = 0; i < 8; i += 4)
    for (int k = 0; k < 8; k += 4)
      four_by_four(from + i + k * step, step, to + i * to_step + k, to_step);
}

#define BLOCK(type, vector)                                                                      \
  static inline void block_##type(const type* from, int64_t step, type* to, int64_t to_step) {   \
    vector r[8], s[8];                                                                           \
    for (int i = 0; i < 8; i++) r[i] = *(const vector*)(const void*)(from + i * step);           \
    for (int i = 0; i < 4; i++) {                                                                \
      s[2 * i] = __builtin_shufflevector(r[2 * i], r[2 * i + 1], 0, 8, 2, 10, 4, 12, 6, 14);     \
      s[2 * i + 1] = __builtin_shufflevector(r[2 * i], r[2 * i + 1], 1, 9, 3, 11, 5, 13, 7, 15); \
    }                                                                                            \
    for (int i = 0; i < 8; i++) {                                                                \
      if (i & 2) continue;                                                                       \
      r[i] = __builtin_shufflevector(s[i], s[i + 2], 0, 1, 8, 9, 4, 5, 12, 13);                  \
      r[i + 2] = __builtin_shufflevector(s[i], s[i + 2], 2, 3, 10, 11, 6, 7, 14, 15);            \
    }                                                                                            \
    for (int i = 0; i < 4; i++) {                                                                \
      *(vector*)(void*)(to + i * to_step) =                                                      \
          __builtin_shufflevector(r[i], r[i + 4], 0, 1, 2, 3, 8, 9, 10, 11);                     \
      *(vector*)(void*)(to + (i + 4) * to_step) =                                                \
          __builtin_shufflevector(r[i], r[i + 4], 4, 5, 6, 7, 12, 13, 14, 15);                   \
    }                                                                                            \
  }
BLOCK(uint16_t, vector16_t)

#define SCALARS(type)                                                                          \
  static inline void block_##type(const type* from, int64_t step, type* to, int64_t to_step) { \
    for (int i = 0; i < 8; i++)                                                                \
      for (int k = 0; k < 8; k++) to[i * to_step + k] = from[i + k * step];                    \
  }
SCALARS(uint8_t)
SCALARS(uint64_t)

// Three rows interleaved, and the way back: images of three channels.
#define INTERLEAVE(type)                                                                       \
  static inline void interleave_##type(const type* restrict from, int64_t step, int64_t m,     \
                                       type* restrict to) {                                    \
    const type* restrict a = from, * restrict b = from + step, * restrict c = from + 2 * step; \
    _Pragma("omp simd") for (int64_t i = 0; i < m; i++) {                                      \
      to[3 * i] = a[i];                                                                        \
      to[3 * i + 1] = b[i];                                                                    \
      to[3 * i + 2] = c[i];                                                                    \
    }                                                                                          \
  }                                                                                            \
  static inline void part_##type(const type* restrict from, int64_t n, type* restrict to,      \
                                 int64_t to_step) {                                            \
    type* restrict a = to, * restrict b = to + to_step, * restrict c = to + 2 * to_step;       \
    _Pragma("omp simd") for (int64_t k = 0; k < n; k++) {                                      \
      a[k] = from[3 * k];                                                                      \
      b[k] = from[3 * k + 1];                                                                  \
      c[k] = from[3 * k + 2];                                                                  \
    }                                                                                          \
  }
INTERLEAVE(uint8_t)
INTERLEAVE(uint16_t)
INTERLEAVE(uint32_t)
INTERLEAVE(uint64_t)

#define NARROW(type)                      \
  if (n == 3 && to_step == 3) {           \
    interleave_##type(from, step, m, to); \
    return;                               \
  }                                       \
  if (m == 3 && step == 3) {              \
    part_##type(from, n, to, to_step);    \
    return;                               \
  }

// to[i * to_step + k] = from[i + k * step] for i < m, k < n.
#define MATRIX(type)                                                                        \
  CLONES                                                                                    \
  static void matrix_##type(const type* from, int64_t step, int64_t m, int64_t n, type* to, \
                            int64_t to_step) {                                              \
    NARROW(type)                                                                            \
    const int64_t whole_m = m / 8 * 8, whole_n = n / 8 * 8;                                 \
    for (int64_t k = 0; k < whole_n; k += 8) {                                              \
      for (int64_t i = 0; i < whole_m; i += 8)                                              \
        block_##type(from + i + k * step, step, to + i * to_step + k, to_step);             \
      for (int64_t i = whole_m; i < m; i++)                                                 \
        for (int64_t j = k; j < k + 8; j++) to[i * to_step + j] = from[i + j * step];       \
    }                                                                                       \
    for (int64_t i = 0; i < m; i++)                                                         \
      for (int64_t k = whole_n; k < n; k++) to[i * to_step + k] = from[i + k * step];       \
  }
MATRIX(uint8_t)
MATRIX(uint16_t)
MATRIX(uint32_t)
MATRIX(uint64_t)

static void copy_matrix(const char* from, int64_t step, int64_t m, int64_t n, size_t elem, char* to,
                        int64_t to_step) {
  switch (elem) {
    case 1:
      matrix_uint8_t((const void*)from, step, m, n, (void*)to, to_step);
      break;
    case 2:
      matrix_uint16_t((const void*)from, step, m, n, (void*)to, to_step);
      break;
    case 4:
      matrix_uint32_t((const void*)from, step, m, n, (void*)to, to_step);
      break;
    default:
      matrix_uint64_t((const void*)from, step, m, n, (void*)to, to_step);
      break;
  }
}

// ---- boxes ----------------------------------------------------------------------------------

enum { STRIP = 64 };  // rows of a matrix that are one piece of work: some lines of cache wide

// Pieces [first, end) of a box: rows, or strips of matrices.
static void copy_pieces(const box_t* b, size_t elem, const char* x, char* y, int64_t first,
                        int64_t end) {
  const bool matrix = box_is_matrix(b);
  const int last = b->rank - 1, outer = matrix ? last - 1 : last;
  const int64_t strips = matrix ? (b->dims[outer] + STRIP - 1) / STRIP : 1;
  int64_t index[BOX_RANK] = {0}, rest = first / strips, strip = first % strips;
  int64_t from = b->from_at, to = b->to_at;
  for (int d = outer - 1; d >= 0; d--) {
    index[d] = rest % b->dims[d];
    rest /= b->dims[d];
    from += index[d] * b->from_strides[d];
    to += index[d] * b->to_strides[d];
  }
  for (int64_t i = first; i < end; i++) {
    if (matrix) {
      const int64_t m = b->dims[outer] - strip * STRIP;
      copy_matrix(x + (from + strip * STRIP) * (int64_t)elem, b->from_strides[last],
                  m < STRIP ? m : STRIP, b->dims[last], elem,
                  y + (to + strip * STRIP * b->to_strides[outer]) * (int64_t)elem,
                  b->to_strides[outer]);
    } else {
      copy_row(x + from * (int64_t)elem, b->from_strides[last], b->dims[last], b->to_strides[last],
               elem, y + to * (int64_t)elem);
    }
    if (++strip < strips) continue;
    strip = 0;
    for (int d = outer - 1; d >= 0; d--) {
      from += b->from_strides[d];
      to += b->to_strides[d];
      if (++index[d] < b->dims[d]) break;
      from -= index[d] * b->from_strides[d];
      to -= index[d] * b->to_strides[d];
      index[d] = 0;
    }
  }
}

void cpu_box_copy(const box_t* b, size_t elem, const void* const* in, const void* value,
                  void* const* out) {
  const char* x = b->from < 0 ? value : in[b->from];
  char* y = out[b->to];
  const int last = b->rank - 1;
  const bool matrix = box_is_matrix(b);
  int64_t pieces = matrix ? (b->dims[last - 1] + STRIP - 1) / STRIP : 1;
  int64_t elements = b->dims[last] * (matrix ? b->dims[last - 1] : 1);
  for (int d = 0; d < last - matrix; d++) {
    pieces *= b->dims[d];
    elements *= b->dims[d];
  }
  // Elements that do not lie in a row cost more.
  const bool runs = b->from_strides[last] == 1 && b->to_strides[last] == 1;
  int parts = cpu_threads(elements * (int64_t)(runs ? elem : elem + 8) / 2);
  if (parts > pieces) parts = (int)pieces;
  if (parts <= 1) {
    copy_pieces(b, elem, x, y, 0, pieces);
    return;
  }
#pragma omp parallel for schedule(static, 1) num_threads(parts)
  for (int i = 0; i < parts; i++)
    copy_pieces(b, elem, x, y, pieces * i / parts, pieces * (i + 1) / parts);
}

bool cpu_box_is_runs(const box_t* b) {
  return b->rank == 2 && b->from_strides[1] == 1 && b->to_strides[1] == 1;
}

void cpu_box_copy_runs(const box_t* b, size_t elem, const void* const* in, const void* value,
                       void* const* out, int64_t first, int64_t end) {
  copy_pieces(b, elem, b->from < 0 ? value : in[b->from], out[b->to], first, end);
}
