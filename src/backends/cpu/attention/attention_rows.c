// Rows of operands of attention that do not lie as its kernels read them.
#include <string.h>

#include "backends/cpu/attention/attention.h"
#include "backends/cpu/pointwise/convert.h"

void attention_copy_row(const attention_t* k, const attention_view_t* v, const void* const* in,
                        int64_t at, int64_t n, void* to) {
  const void* from = in[v->index];
  const bool same = v->type == k->kind->type;
  if (v->column == 1) {
    if (same)
      memcpy(to, attention_element(v, in, at), (size_t)(n * assay_type_bits(v->type) / 8));
    else
      cpu_widen(from, v->type, at, n, to);
    return;
  }
  for (int64_t i = 0; i < n; i++)
    if (v->type == ASSAY_TYPE_FLOAT)
      ((float*)to)[i] = ((const float*)from)[at + i * v->column];
    else if (same)
      ((uint16_t*)to)[i] = ((const uint16_t*)from)[at + i * v->column];
    else
      cpu_widen(from, v->type, at + i * v->column, 1, (float*)to + i);
}
