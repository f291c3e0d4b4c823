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

// `rows` is a constant where this is inlined: its sums stay in registers.
__attribute__((always_inline)) static inline void block(int rows, int64_t k, const float* a,
                                                        int64_t a_step, const float* panel,
                                                        float* c, int64_t c_step, bool adds) {
  enum { MOST = 6 };
  lanes_t left[MOST], right[MOST];
  UNROLL for (int i = 0; i < rows; i++) {
    const lanes_t* from = (const lanes_t*)(const void*)(c + i * c_step);
    left[i] = adds ? from[0] : (lanes_t){0};
    right[i] = adds ? from[1] : (lanes_t){0};
  }
  for (int64_t l = 0; l < k; l++, panel += CPU_PANEL) {
    const lanes_t* b = (const lanes_t*)(const void*)panel;
    UNROLL for (int i = 0; i < rows; i++) {
      const lanes_t x = ALL(a[i * a_step + l]);
      left[i] = x * b[0] + left[i];
      right[i] = x * b[1] + right[i];
    }
  }
  UNROLL for (int i = 0; i < rows; i++) {
    lanes_t* to = (lanes_t*)(void*)(c + i * c_step);
    to[0] = left[i];
    to[1] = right[i];
  }
}

CLONES
void cpu_gemm_panel(int64_t m, int64_t k, const float* a, int64_t a_step, const float* panel,
                    float* c, int64_t c_step, bool adds) {
  for (; m >= 6; m -= 6, a += 6 * a_step, c += 6 * c_step)
    block(6, k, a, a_step, panel, c, c_step, adds);
  for (; m >= 2; m -= 2, a += 2 * a_step, c += 2 * c_step)
    block(2, k, a, a_step, panel, c, c_step, adds);
  if (m) block(1, k, a, a_step, panel, c, c_step, adds);
}
