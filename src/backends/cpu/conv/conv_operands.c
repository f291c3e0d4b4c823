// What a layer that begins with Conv reads, for the tactics that take such layers.
#include "backends/cpu/conv/conv_operands.h"

#include <string.h>

enum { X, WEIGHTS, BIAS };

assay_tensor_t cpu_operand_head(const assay_operand_t* o) {
  assay_tensor_t t = {.kind = ASSAY_KIND_TENSOR, .type = o->type, .rank = o->rank, .size = o->size};
  if (o->rank) memcpy(t.dims, o->dims, (size_t)o->rank * sizeof *o->dims);
  return t;
}

bool cpu_conv_operands(const assay_sized_layer_t* l, cpu_conv_operands_t* o) {
  const assay_node_t* n = l->layer->nodes[0];
  *o = (cpu_conv_operands_t){0};
  if (*n->domain || strcmp(n->op_type, "Conv") != 0 || l->n_out != 1 || !l->out[0].value)
    return false;
  o->x = assay_sized_input(l, n->inputs[X]);
  o->weights = assay_sized_input(l, n->inputs[WEIGHTS]);
  if (n->n_inputs > BIAS && n->inputs[BIAS]) {
    o->bias = assay_sized_input(l, n->inputs[BIAS]);
    if (!o->bias || !o->bias->constant || !assay_type_is_kernel_float(o->bias->type)) return false;
  }
  return o->x && o->weights && o->weights->constant && o->x->size && l->out[0].size &&
         o->x->rank >= 3 && o->x->rank <= 5 && o->weights->rank == o->x->rank &&
         o->x->type == o->weights->type && assay_type_is_kernel_float(o->x->type) &&
         assay_type_is_kernel_float(l->out[0].type);
}

assay_status_t cpu_conv_read(const assay_sized_layer_t* l, const cpu_conv_operands_t* o,
                             assay_conv_t* s, bool* ok) {
  const assay_tensor_t x = cpu_operand_head(o->x), w = cpu_operand_head(o->weights);
  ASSAY_TRY(assay_conv_read(l->layer->nodes[0], &x, &w, NULL, false, s));
  *ok = !o->bias || o->bias->size == s->m;
  return NULL;
}
