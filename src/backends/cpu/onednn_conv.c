// Conv by oneDNN, channels last, and what the layer does to each of its elements.
#ifdef ASSAY_ONEDNN
#include <string.h>

#include "backends/cpu/onednn_tiles.h"

enum { X, W, BIAS };

static assay_tensor_t head(const assay_operand_t* o) {
  assay_tensor_t t = {.kind = ASSAY_KIND_TENSOR, .type = o->type, .rank = o->rank, .size = o->size};
  if (o->rank) memcpy(t.dims, o->dims, (size_t)o->rank * sizeof *o->dims);
  return t;
}

// In 16 bits kernels take channels in twos. Of an odd number they read the next place's first one
// (behind the last place: what lies behind the tensor) and multiply it by zero; NaN and infinity
// would come in.
static bool reads_beside(const assay_conv_t* s) {
  return s->cg % 2 && (s->cg > 1 || s->mg > 1 || s->group == 1);
}

static assay_status_t make(const assay_sized_layer_t* l, assay_kernel_t** out) {
  const assay_node_t* n = l->layer->nodes[0];
  if (*n->domain || strcmp(n->op_type, "Conv") != 0 || l->n_out != 1 || !l->out[0].value)
    return NULL;
  dnn_conv_t c = {.x = assay_sized_input(l, n->inputs[X]), .w = assay_sized_input(l, n->inputs[W])};
  const bool has_bias = n->n_inputs > BIAS && n->inputs[BIAS];
  if (has_bias) c.bias = assay_sized_input(l, n->inputs[BIAS]);
  if (!c.x || !c.w || !c.w->constant || c.x->rank < 3 || c.x->rank > 5 || !c.x->size ||
      !l->out[0].size || (has_bias && (!c.bias || !c.bias->constant)) ||
      !assay_type_is_kernel_float(c.x->type) || c.x->type != c.w->type ||
      !assay_type_is_kernel_float(l->out[0].type))
    return NULL;
  const assay_tensor_t x = head(c.x), w = head(c.w);
  ASSAY_TRY(assay_conv_read(n, &x, &w, NULL, false, &c.s));
  if (c.bias && c.bias->size != c.s.m) return NULL;
  if (c.x->type != ASSAY_TYPE_FLOAT && !reads_beside(&c.s))
    ASSAY_TRY(dnn_tiles_make(l, &c, c.x->type, out));
  return *out ? NULL : dnn_tiles_make(l, &c, ASSAY_TYPE_FLOAT, out);
}

const assay_tactic_t cpu_tactic_onednn_conv = {
    .name = "onednn_conv",
    .source = "onednn",
    .make = make,
    .rounding = {.compute = ASSAY_FORMAT_FP32,
                 .accumulator = ASSAY_FORMAT_FP32,
                 .fma = true,
                 .by_definition = true,
                 .flushes = true,
                 .function_ulps = 4},
};
#endif
