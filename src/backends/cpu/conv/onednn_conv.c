// Conv by oneDNN, channels last, and what the layer does to each of its elements.
#ifdef ASSAY_ONEDNN
#include "backends/cpu/conv/conv_operands.h"
#include "backends/cpu/conv/onednn_tiles.h"

// In 16 bits kernels take channels in twos. Of an odd number they read the next place's first one
// (after the last place: what lies after the tensor) and multiply it by zero; NaN and infinity
// would come in.
static bool reads_beside(const assay_conv_t* s) {
  return s->cg % 2 && (s->cg > 1 || s->mg > 1 || s->group == 1);
}

static assay_status_t make(const assay_sized_layer_t* l, assay_kernel_t** out) {
  cpu_conv_operands_t o;
  bool ok;
  if (!cpu_conv_operands(l, &o)) return NULL;
  dnn_conv_t c = {.x = o.x, .w = o.weights, .bias = o.bias};
  ASSAY_TRY(cpu_conv_read(l, &o, &c.s, &ok));
  if (!ok) return NULL;
  if (c.x->type != ASSAY_TYPE_FLOAT && !reads_beside(&c.s))
    ASSAY_TRY(dnn_tiles_make(l, &c, c.x->type, out));
  return *out ? NULL : dnn_tiles_make(l, &c, ASSAY_TYPE_FLOAT, out);
}

const assay_tactic_t cpu_tactic_onednn_conv = {
    .name = "onednn_conv",
    .source = "onednn",
    .make = make,
    .rounding = {CPU_FLOAT_SUMS},
};
#endif
