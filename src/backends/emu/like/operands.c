// What a layer reads, as float32 numbers.
#include "backends/emu/like/operands.h"

#include <string.h>

#include "base/alloc.h"
#include "eval/evaluator.h"

void emu_operands_deinit(emu_operands_t* o) {
  for (int i = 0; i < ASSAY_KERNEL_OPERANDS; i++)
    for (int k = 0; k < 2; k++) assay_free(o->floats[i][k]);
}

void emu_relayout(int rank, const int64_t* dims, assay_layout_t from, const float* x, float* y) {
  const int64_t channels = dims[1], places = assay_dims_product(dims, 2, rank);
  for (int64_t n = 0; n < dims[0]; n++)
    for (int64_t c = 0; c < channels; c++)
      for (int64_t p = 0; p < places; p++) {
        const int64_t plain = (n * channels + c) * places + p,
                      last = (n * places + p) * channels + c;
        if (from == ASSAY_LAYOUT_PLAIN)
          y[last] = x[plain];
        else
          y[plain] = x[last];
      }
}

static assay_status_t widen(const assay_operand_t* o, assay_tensor_t* t, float** out) {
  assay_tensor_t *wide = NULL, *rounded = NULL;
  ASSAY_TRY(assay_tensor_widen(t, &wide));
  const bool is_float = assay_type_is_kernel_float(o->type);
  const assay_format_t format = is_float ? assay_type_format(o->type) : ASSAY_FORMAT_NONE;
  assay_status_t st = NULL;
  if (is_float)
    st = assay_round_tensor(wide, format, &rounded);
  else
    rounded = assay_tensor_retain(wide);
  if (!st) st = assay_tensor_widen(rounded, &t);
  if (!st) st = assay_new_array((size_t)o->size, sizeof **out, out);
  for (int64_t i = 0; !st && i < o->size; i++)
    (*out)[i] = t->store == ASSAY_STORE_F64 ? (float)assay_f64(t)[i] : (float)assay_i64(t)[i];
  if (rounded) assay_tensor_release(t);
  assay_tensor_release(rounded);
  assay_tensor_release(wide);
  return st;
}

assay_status_t emu_operand_get(emu_operands_t* o, int i, assay_layout_t layout, const float** out) {
  const assay_operand_t* x = &o->l->in[i];
  float** plain = &o->floats[i][ASSAY_LAYOUT_PLAIN];
  float** last = &o->floats[i][ASSAY_LAYOUT_CHANNELS_LAST];
  if (!*plain) ASSAY_TRY(widen(x, o->tensors[i], plain));
  *out = *plain;
  if (layout == ASSAY_LAYOUT_PLAIN || x->rank < 3) return NULL;
  if (!*last) {
    ASSAY_TRY(assay_new_array((size_t)x->size, sizeof **last, last));
    emu_relayout(x->rank, x->dims, ASSAY_LAYOUT_PLAIN, *plain, *last);
  }
  *out = *last;
  return NULL;
}
