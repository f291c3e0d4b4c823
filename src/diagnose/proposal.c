// What proposals of all kinds are made with.
#include "diagnose/causes/surroundings.h"
#include "diagnose/proposals.h"

assay_status_t assay_offer(const assay_trial_t* t, assay_repair_t* r, bool* stop) {
  assay_status_t st = t->offer(t->user, r, stop);
  assay_repair_deinit(r);
  return st;
}

assay_repair_t assay_repair_of(const assay_suspect_t* s, const char* cause,
                               assay_edit_kind_t kind) {
  assay_repair_t r = {.node = s->node, .cause = cause, .n_edits = 1};
  r.edits[0].kind = kind;
  return r;
}

assay_status_t assay_suspect_constant(const assay_suspect_t* s, size_t i, assay_tensor_t** out) {
  const assay_value_t* v = i < s->node->n_inputs ? s->node->inputs[i] : NULL;
  *out = NULL;
  if (!assay_around_is_constant(v)) return NULL;
  // What a Constant node gives is in the truth of the input.
  assay_tensor_t* x = v->constant ? v->constant : i < s->n_in ? s->in[i] : NULL;
  if (!x || x->kind != ASSAY_KIND_TENSOR) return NULL;
  return assay_tensor_widen(x, out);
}

const char* assay_suspect_input_name(const assay_suspect_t* s, size_t i) {
  const assay_param_t* p = s->node->schema ? assay_schema_input(s->node->schema, i) : NULL;
  return p ? p->name : "";
}
