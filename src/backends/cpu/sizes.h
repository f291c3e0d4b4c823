// Sizes of dimensions while a model runs: names are bound as values that have them come into being.
#ifndef ASSAY_BACKENDS_CPU_SIZES_H_
#define ASSAY_BACKENDS_CPU_SIZES_H_

#include "base/str.h"
#include "ir/ir.h"

typedef struct cpu_sizes {
  assay_map_t index;  // of a name in `size`
  int64_t* size;
  size_t n, cap;
} cpu_sizes_t;

void cpu_sizes_deinit(cpu_sizes_t* s);
void cpu_sizes_clear(cpu_sizes_t* s);
// A value of this type has these dimensions.
assay_status_t cpu_sizes_bind(cpu_sizes_t* s, const assay_valtype_t* type, int rank,
                              const int64_t* dims);
// The dimensions of a value; false if they are not all known yet, or more than max.
bool cpu_sizes_of(const cpu_sizes_t* s, const assay_value_t* v, int max, int* out_rank,
                  int64_t* out_dims);

#endif  // ASSAY_BACKENDS_CPU_SIZES_H_
