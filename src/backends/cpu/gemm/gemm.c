// Compiled with contraction of products and sums (CMakeLists.txt): a chain of multiply-adds is what
// is promised, and what CPUs are fast at. Where a CPU has none, products are rounded.
#include "backends/cpu/gemm/gemm.h"

#include <string.h>

#include "base/target.h"

#define CLONES ASSAY_CLONES("arch=x86-64-v4", "arch=x86-64-v3", "default")

void cpu_gemm_pack(const float* b, int64_t row_step, int64_t column_step, int64_t k, int64_t n,
                   float* packed) {
  for (int64_t j0 = 0; j0 < n; j0 += CPU_PANEL) {
    const int64_t width = n - j0 < CPU_PANEL ? n - j0 : CPU_PANEL;
    for (int64_t i = 0; i < k; i++, packed += CPU_PANEL) {
      for (int64_t j = 0; j < width; j++) packed[j] = b[i * row_step + (j0 + j) * column_step];
      for (int64_t j = width; j < CPU_PANEL; j++) packed[j] = 0;
    }
  }
}

// A vector of 16; compilers make of it as many registers as the CPU needs.
typedef float lanes_t __attribute__((vector_size(64), aligned(4), may_alias));

// Loops over rows have to disappear for the sums to be registers.
#ifdef __clang__
#define UNROLL _Pragma("unroll")
#else
#define UNROLL _Pragma("GCC unroll 12")
#endif

// A vector of x in all places. Not 0 + x: that is another number where x is -0, so it would be
// computed, and take the places of multiply-adds in the CPU.
#define ALL(x) ((x) - (lanes_t){0})

// `rows` and `vectors` are constants where this is inlined: its sums stay in registers. `row`: the
// first of them.
__attribute__((always_inline)) static inline void block(int rows, int vectors,
                                                        const cpu_gemm_block_t* b, int64_t row) {
  enum { MAX = 12, WIDE = 4 };
  const int64_t k = b->k, a_step = b->a_step, n = b->pieces ? b->n_pieces : 1;
  const float* a = (const float*)b->a + row * a_step;
  const float* panel = b->panels;
  lanes_t sum[MAX][WIDE];
  UNROLL for (int i = 0; i < rows; i++) {
    const lanes_t* from = (const lanes_t*)(const void*)(b->start + (row + i) * b->start_step);
    UNROLL for (int j = 0; j < vectors; j++) sum[i][j] = b->start ? from[j] : (lanes_t){0};
  }
  const int64_t panel_size = (b->panel_rows ? b->panel_rows : k * n) * CPU_PANEL;
  cpu_gemm_ahead_t ahead = cpu_gemm_ahead(b, row, rows);
  const bool streams = rows <= CPU_GEMM_STREAM_ROWS && b->streams;
  for (int64_t p = 0; p < n; p++) {
    const float* at = a + (b->pieces ? b->pieces[p] : 0);
    for (int64_t l = 0, end; l < k; l = end) {
      for (int64_t f = 0; f < ahead.lines; f++, ahead.at += 64) {
        __builtin_prefetch(ahead.at, 0, 2);
        __builtin_prefetch(ahead.at + panel_size * (int64_t)sizeof(float), 0, 2);
      }
      end = k - l < CPU_GEMM_K_BLOCK ? k : l + CPU_GEMM_K_BLOCK;
      for (int64_t q = l; q < end; q++, panel += CPU_PANEL) {
        const lanes_t* w = (const lanes_t*)(const void*)panel;
        const lanes_t* next = (const lanes_t*)(const void*)(panel + panel_size);
        if (streams) {
          const int later = CPU_GEMM_STREAM_AHEAD * CPU_PANEL / 16;
          __builtin_prefetch(w + later);
          if (vectors > 1) __builtin_prefetch(w + later + 1);
          if (vectors > 2) __builtin_prefetch(next + later);
          if (vectors > 3) __builtin_prefetch(next + later + 1);
        }
        UNROLL for (int i = 0; i < rows; i++) {
          const lanes_t x = ALL(at[i * a_step + q]);
          sum[i][0] = x * w[0] + sum[i][0];
          if (vectors > 1) sum[i][1] = x * w[1] + sum[i][1];
          if (vectors > 2) sum[i][2] = x * next[0] + sum[i][2];
          if (vectors > 3) sum[i][3] = x * next[1] + sum[i][3];
        }
      }
    }
  }
  UNROLL for (int i = 0; i < rows; i++) {
    lanes_t* to = (lanes_t*)(void*)(b->c + (row + i) * b->c_step);
    UNROLL for (int j = 0; j < vectors; j++) to[j] = sum[i][j];
  }
}

// Whether there are registers for 24 vectors of 16.
static inline bool has_many_registers(void) {
#if defined(__x86_64__) && defined(__GNUC__)
  return __builtin_cpu_supports("avx512f");
#else
  return false;
#endif
}

// Rows to take of m that are left: few make few sums, which wait for each other. All 8 at once:
// each weight is read once only.
static inline int64_t rows_of(int64_t m, int vectors) {
  if (m == 8 && vectors <= 2 && has_many_registers()) return 8;
  if (m >= 12 && (vectors == 1 || (vectors == 2 && has_many_registers()))) return 12;
  return m >= 6 && m != 8 ? 6 : m >= 4 ? 4 : m >= 2 ? 2 : 1;
}

#define ROWS(vectors)                                    \
  for (int64_t row = 0, rows; row < b->m; row += rows) { \
    rows = rows_of(b->m - row, vectors);                 \
    if (rows == 12)                                      \
      block((vectors) <= 2 ? 12 : 1, vectors, b, row);   \
    else if (rows == 8)                                  \
      block((vectors) <= 2 ? 8 : 1, vectors, b, row);    \
    else if (rows == 6)                                  \
      block(6, vectors, b, row);                         \
    else if (rows == 4)                                  \
      block(4, vectors, b, row);                         \
    else if (rows == 2)                                  \
      block(2, vectors, b, row);                         \
    else                                                 \
      block(1, vectors, b, row);                         \
  }

// 8 rows by one panel after the other, the second one first: what the last vector of a row writes
// after it is written over.
__attribute__((always_inline)) static inline void block_of_eight(const cpu_gemm_block_t* b) {
  const int64_t rows = b->panel_rows ? b->panel_rows : b->k * (b->pieces ? b->n_pieces : 1);
  cpu_gemm_block_t second = *b;
  second.panels = (const float*)b->panels + rows * CPU_PANEL;
  second.start = b->start ? b->start + CPU_PANEL : NULL;
  second.c = b->c + CPU_PANEL;
  if (b->vectors == 3)
    block(8, 1, &second, 0);
  else
    block(8, 2, &second, 0);
  block(8, 2, b, 0);
}

CLONES void cpu_gemm_block(const cpu_gemm_block_t* b) {
  if (b->m == 8 && b->vectors > 2 && !b->ahead && has_many_registers()) {
    block_of_eight(b);
    return;
  }
  switch (b->vectors) {
    case 1:
      ROWS(1)
      break;
    case 2:
      ROWS(2)
      break;
    case 3:
      ROWS(3)
      break;
    default:
      ROWS(4)
      break;
  }
}

void cpu_gemm_panel(int64_t m, int64_t k, const float* a, int64_t a_step, const float* panel,
                    float* c, int64_t c_step, bool adds) {
  const cpu_gemm_block_t b = cpu_gemm_block_of(2, m, k, a, a_step, panel, c, c_step, adds);
  cpu_gemm_block(&b);
}

void cpu_gemm_panels(int64_t m, int64_t k, const float* a, int64_t a_step, const float* from,
                     float* c, int64_t c_step, bool adds) {
  const cpu_gemm_block_t b = cpu_gemm_block_of(4, m, k, a, a_step, from, c, c_step, adds);
  cpu_gemm_block(&b);
}

CLONES void cpu_gemm_rows(int64_t m, int64_t n, const float* a, int64_t a_step, const float* b,
                          float* c, int64_t c_step) {
  for (; m; m--, a += a_step, c += c_step) {
#pragma omp simd
    for (int64_t j = 0; j < n; j++) c[j] = a[j] * b[j] + c[j];
  }
}
