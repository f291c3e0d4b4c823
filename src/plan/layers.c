// What the formats of a plan mean, for every backend.
#include "plan/layers.h"

assay_format_t assay_layer_storage(const assay_layer_t* layer, assay_type_t type) {
  if (type != ASSAY_TYPE_FLOAT || !layer) return assay_type_format(type);
  return layer->format == ASSAY_FORMAT_TF32 ? ASSAY_FORMAT_FP32 : layer->format;
}

// Whether an engine would hand this input over in the layer's format: not where the operator takes
// float32 only (scales and sizes, which engines treat as shapes).
static bool follows_format(const assay_node_t* node, size_t i) {
  const assay_param_t* p = node->schema ? assay_schema_input(node->schema, i) : NULL;
  return !p || p->types.tensor >> ASSAY_TYPE_FLOAT16 & 1;
}

bool assay_node_multiplies(const assay_node_t* node, size_t i) {
  const assay_op_t* op = node->op;
  if (!op || !(op->flags & ASSAY_OP_CONTRACTS)) return false;
  return !op->factors || (i < 32 && op->factors >> i & 1);
}

assay_format_t assay_layer_operand(const assay_layers_t* layers, const assay_layer_t* layer,
                                   const assay_node_t* node, size_t i, const assay_tensor_t* in) {
  if (!layer || !node->op || node->op->flags & (ASSAY_OP_MOVES | ASSAY_OP_CONTROL))
    return ASSAY_FORMAT_NONE;
  if (!in || in->kind != ASSAY_KIND_TENSOR || in->type != ASSAY_TYPE_FLOAT)
    return ASSAY_FORMAT_NONE;
  if (layer->format == ASSAY_FORMAT_FP32 || !follows_format(node, i)) return ASSAY_FORMAT_NONE;
  // tf32 is a format of what is multiplied in sums of products, not of what is added to them.
  if (layer->format == ASSAY_FORMAT_TF32 && !assay_node_multiplies(node, i))
    return ASSAY_FORMAT_NONE;
  const assay_value_t* v = node->inputs[i];
  if (v && layers->hidden_value[v->id]) return ASSAY_FORMAT_NONE;
  return layer->format;
}

bool assay_layer_multiplies_tf32(const assay_layer_t* layer, const assay_node_t* node, size_t i,
                                 const assay_tensor_t* in) {
  return layer && layer->format == ASSAY_FORMAT_TF32 && in && in->kind == ASSAY_KIND_TENSOR &&
         in->type == ASSAY_TYPE_FLOAT && in->store == ASSAY_STORE_F64 &&
         assay_node_multiplies(node, i);
}

bool assay_layer_is_double(size_t n_in, assay_tensor_t* const* in) {
  for (size_t i = 0; i < n_in; i++)
    if (in[i] && (in[i]->type == ASSAY_TYPE_DOUBLE || in[i]->type == ASSAY_TYPE_COMPLEX128))
      return true;
  return false;
}

void assay_layer_arithmetic(const assay_layer_t* layer, assay_eval_t* c) {
  c->accumulator = assay_layer_is_double(c->n_in, c->in) ? ASSAY_FORMAT_FP64
                   : layer                               ? layer->accumulator
                                                         : ASSAY_FORMAT_FP32;
  c->arith = c->accumulator == ASSAY_FORMAT_FP32 ? ASSAY_ARITH_F32 : ASSAY_ARITH_NARROW;
}
