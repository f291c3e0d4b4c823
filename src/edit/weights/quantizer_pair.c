// QuantizeLinear and DequantizeLinear, one after the other, before an input of a node.
#include "edit/weights/quantizer_pair.h"

static assay_status_t add_scales(assay_edit_t* x, assay_graph_t* g, const char* name,
                                 const assay_pair_scales_t* s, assay_value_t** out) {
  assay_tensor_t* t = NULL;
  ASSAY_TRY(assay_tensor_create(ASSAY_TYPE_FLOAT, s->rank, s->dims, &t));
  for (int64_t i = 0; i < t->size; i++) {
    const double scale = (double)(float)s->at[i];
    assay_f64(t)[i] = scale > 0 ? scale : (double)(float)1e-30;
  }
  return assay_edit_constant(x, g, name, t, out);
}

static assay_status_t add_zeros(assay_edit_t* x, assay_graph_t* g, const char* name,
                                assay_type_t type, const assay_pair_scales_t* s,
                                assay_value_t** out) {
  assay_tensor_t* t = NULL;
  ASSAY_TRY(assay_tensor_create_zero(type, s->rank, s->dims, &t));
  return assay_edit_constant(x, g, name, t, out);
}

static assay_status_t set_places(assay_edit_t* x, assay_node_t* n, const assay_pair_scales_t* s) {
  if (s->axis >= 0) ASSAY_TRY(assay_edit_attr_i(x, n, "axis", s->axis));
  return s->block ? assay_edit_attr_i(x, n, "block_size", s->block) : NULL;
}

assay_status_t assay_quantizer_pair_insert(assay_edit_t* x, assay_node_t* n, assay_value_t* v,
                                           assay_type_t type, const assay_pair_scales_t* scales,
                                           assay_value_t** out) {
  assay_node_t *q = NULL, *dq = NULL;
  assay_value_t *s = NULL, *z = NULL;
  const char *s_name = NULL, *z_name = NULL, *q_name = NULL, *dq_name = NULL;
  assay_arena_t* a = x->c->model->arena;
  const assay_valtype_t* coded = NULL;
  ASSAY_TRY(assay_arena_printf(a, &s_name, "%s_scale", v->name));
  ASSAY_TRY(assay_arena_printf(a, &z_name, "%s_zero_point", v->name));
  ASSAY_TRY(assay_arena_printf(a, &q_name, "%s_quantized", v->name));
  ASSAY_TRY(assay_arena_printf(a, &dq_name, "%s_dequantized", v->name));
  ASSAY_TRY(add_scales(x, n->graph, s_name, scales, &s));
  ASSAY_TRY(add_zeros(x, n->graph, z_name, type, scales, &z));
  if (v->type->has_shape)
    ASSAY_TRY(assay_valtype_tensor(x->c->model, type, v->type->rank, v->type->dims, &coded));
  else
    ASSAY_TRY(assay_valtype_unranked(x->c->model, type, &coded));
  assay_value_t* in[3] = {v, s, z};
  ASSAY_TRY(assay_edit_insert(x, n, "QuantizeLinear", 3, in, q_name, coded, &q));
  in[0] = q->outputs[0];
  ASSAY_TRY(assay_edit_insert(x, n, "DequantizeLinear", 3, in, dq_name, v->type, &dq));
  ASSAY_TRY(set_places(x, q, scales));
  ASSAY_TRY(set_places(x, dq, scales));
  *out = dq->outputs[0];
  return NULL;
}
