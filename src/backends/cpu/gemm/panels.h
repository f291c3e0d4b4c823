// Weights in panels of CPU_PANEL columns, as cpu_gemm_block() takes them: a row of a panel holds
// one unit of each column, a float or a pair of bf16.
#ifndef ASSAY_BACKENDS_CPU_GEMM_PANELS_H_
#define ASSAY_BACKENDS_CPU_GEMM_PANELS_H_

#include "backends/cpu/gemm/gemm.h"
#include "backends/cpu/pointwise/convert.h"
#include "exec/kernel.h"

// Puts number i of a column: `first` is the unit of number 0, and 0 where nothing was put yet.
static inline void cpu_panel_put(uint32_t* first, int64_t i, float x, bool pairs) {
  if (pairs)
    first[i / 2 * CPU_PANEL] |= (uint32_t)cpu_to_bf16(x) << (i % 2 ? 16 : 0);
  else
    first[i * CPU_PANEL] = cpu_bits(x);
}

// Where the numbers of the columns lie in a weight: a column has `places`, each of which holds k
// numbers, in units of its own.
typedef struct cpu_panels {
  int64_t n, n_step;  // columns
  int64_t places, place_step;
  int64_t k, k_step;
  bool pairs;
} cpu_panels_t;

// Rows of a panel.
int64_t cpu_panels_rows(const cpu_panels_t* p);
// The weight in panels, in the store: found under this key, or packed.
assay_status_t cpu_panels_get(const cpu_panels_t* p, const assay_operand_t* weights,
                              assay_str_t* take_key, const uint32_t** out) ASSAY_MUST_USE;

#endif  // ASSAY_BACKENDS_CPU_GEMM_PANELS_H_
