// Compiled with contraction of products and sums (CMakeLists.txt): a chain of multiply-adds is what
// is promised, and what CPUs are fast at. Where a CPU has none, products are rounded.
#include "backends/cpu/gemm.h"

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
#define UNROLL _Pragma("GCC unroll 8")
#endif

#define ALL(x) ((lanes_t){0} + (x))

// `rows` and `panels` are constants where this is inlined: its sums stay in registers.
__attribute__((always_inline)) static inline void block(int rows, int panels, int64_t k,
                                                        const float* a, int64_t a_step,
                                                        const float* panel, float* c,
                                                        int64_t c_step, bool adds) {
  enum { MOST = 6, WIDE = 4 };
  lanes_t sum[MOST][WIDE];
  UNROLL for (int i = 0; i < rows; i++) {
    const lanes_t* from = (const lanes_t*)(const void*)(c + i * c_step);
    UNROLL for (int j = 0; j < 2 * panels; j++) sum[i][j] = adds ? from[j] : (lanes_t){0};
  }
  for (int64_t l = 0; l < k; l++, panel += CPU_PANEL) {
    const lanes_t* b = (const lanes_t*)(const void*)panel;
    const lanes_t* next = (const lanes_t*)(const void*)(panel + k * CPU_PANEL);
    UNROLL for (int i = 0; i < rows; i++) {
      const lanes_t x = ALL(a[i * a_step + l]);
      sum[i][0] = x * b[0] + sum[i][0];
      sum[i][1] = x * b[1] + sum[i][1];
      if (panels == 1) continue;
      sum[i][2] = x * next[0] + sum[i][2];
      sum[i][3] = x * next[1] + sum[i][3];
    }
  }
  UNROLL for (int i = 0; i < rows; i++) {
    lanes_t* to = (lanes_t*)(void*)(c + i * c_step);
    UNROLL for (int j = 0; j < 2 * panels; j++) to[j] = sum[i][j];
  }
}

// Rows to take of m that are left: few make few sums, which wait for each other.
static inline int64_t rows_of(int64_t m) {
  return m >= 6 && m != 8 ? 6 : m >= 4 ? 4 : m >= 2 ? 2 : 1;
}

#define ROWS(panels)                                                         \
  for (int64_t rows; m; m -= rows, a += rows * a_step, c += rows * c_step) { \
    rows = rows_of(m);                                                       \
    if (rows == 6)                                                           \
      block(6, panels, k, a, a_step, panel, c, c_step, adds);                \
    else if (rows == 4)                                                      \
      block(4, panels, k, a, a_step, panel, c, c_step, adds);                \
    else if (rows == 2)                                                      \
      block(2, panels, k, a, a_step, panel, c, c_step, adds);                \
    else                                                                     \
      block(1, panels, k, a, a_step, panel, c, c_step, adds);                \
  }

CLONES
void cpu_gemm_panel(int64_t m, int64_t k, const float* a, int64_t a_step, const float* panel,
                    float* c, int64_t c_step, bool adds){ROWS(1)}

CLONES void cpu_gemm_panels(int64_t m, int64_t k, const float* a, int64_t a_step,
                            const float* panel, float* c, int64_t c_step, bool adds){ROWS(2)}

CLONES void cpu_gemm_rows(int64_t m, int64_t n, const float* a, int64_t a_step, const float* b,
                          float* c, int64_t c_step) {
  for (; m; m--, a += a_step, c += c_step) {
#pragma omp simd
    for (int64_t j = 0; j < n; j++) c[j] = a[j] * b[j] + c[j];
  }
}
