// What proposals of all kinds are made with.
#include <stdio.h>

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

bool assay_next_permutation(int64_t* p, int n) {
  int i = n - 2;
  while (i >= 0 && p[i] >= p[i + 1]) i--;
  if (i < 0) return false;
  int j = n - 1;
  while (p[j] <= p[i]) j--;
  int64_t x = p[i];
  p[i] = p[j], p[j] = x;
  for (int a = i + 1, b = n - 1; a < b; a++, b--) x = p[a], p[a] = p[b], p[b] = x;
  return true;
}

assay_status_t assay_offer_constant(const assay_suspect_t* s, const char* cause, size_t input,
                                    assay_tensor_t* take, const char* text, const assay_trial_t* t,
                                    bool* stop) {
  assay_repair_t r = assay_repair_of(s, cause, ASSAY_EDIT_CONSTANT);
  r.edits[0].input = input;
  r.edits[0].tensor = take;
  snprintf(r.text, sizeof r.text, "%s", text);
  return assay_offer(t, &r, stop);
}
