// Sizes of dimensions while a model runs: names are bound as values that have them come into being.
#ifndef ASSAY_BACKENDS_CPU_SIZES_H_
#define ASSAY_BACKENDS_CPU_SIZES_H_

#include "base/str.h"
#include "ir/ir.h"

typedef struct cpu_sizes {
  assay_map_t index;  // of a name in `size`
  const char** name;  // the model's
  int64_t* size;
  size_t n, cap, cap_names;
} cpu_sizes_t;

void cpu_sizes_deinit(cpu_sizes_t* s);
void cpu_sizes_clear(cpu_sizes_t* s);
// A value of this type has these dimensions.
assay_status_t cpu_sizes_bind(cpu_sizes_t* s, const assay_valtype_t* type, int rank,
                              const int64_t* dims);
// What an expression is with them; false if it has names that are not bound.
bool cpu_sizes_eval(const cpu_sizes_t* s, const assay_dim_t* d, int64_t* out);
// A copy; whether two have the same names bound to the same sizes, in the same order.
assay_status_t cpu_sizes_copy(const cpu_sizes_t* s, cpu_sizes_t* out);
bool cpu_sizes_same(const cpu_sizes_t* a, const cpu_sizes_t* b);
// The dimensions of a value; false if they are not all known yet, or more than max.
bool cpu_sizes_of(const cpu_sizes_t* s, const assay_value_t* v, int max, int* out_rank,
                  int64_t* out_dims);

#endif  // ASSAY_BACKENDS_CPU_SIZES_H_
