// Two nodes that were taken for one: they read the same and differ in their constants, which then
// nobody reads.
#include <stdio.h>
#include <string.h>

#include "diagnose/causes/surroundings.h"
#include "diagnose/proposals.h"

enum { MANY = 32 };  // constants that nobody reads

typedef struct unread {
  const assay_value_t* at[MANY];
  bool taken[MANY];
  size_t n;
} unread_t;

static void list_unread(const assay_suspect_t* s, unread_t* u) {
  const assay_graph_t* g = s->model->graph;
  u->n = 0;
  for (size_t i = 0; i < g->n_initializers + g->n_nodes && u->n < MANY; i++) {
    const assay_node_t* const* readers = NULL;
    const assay_value_t* v = NULL;
    if (i < g->n_initializers)
      v = g->initializers[i];
    else if (g->nodes[i - g->n_initializers]->n_outputs)
      v = g->nodes[i - g->n_initializers]->outputs[0];
    if (!v || v->is_output || !assay_around_is_constant(v)) continue;
    if (!assay_around_readers(s->around, v, &readers) && assay_around_tensor(s->around, v))
      u->at[u->n++] = v;
  }
}

// The next one of this type and shape that is not taken yet; `rank`: of as many dimensions.
static const assay_value_t* take(const assay_suspect_t* s, unread_t* u, const assay_value_t* like,
                                 bool rank) {
  const assay_tensor_t* x = assay_around_tensor(s->around, like);
  for (size_t i = 0; x && i < u->n; i++) {
    const assay_tensor_t* y = assay_around_tensor(s->around, u->at[i]);
    if (u->taken[i] || !y || y->type != x->type) continue;
    if (rank ? x->rank != y->rank : !assay_tensor_same_shape(x, y)) continue;
    u->taken[i] = true;
    return u->at[i];
  }
  return NULL;
}

// A node of the operator and attributes of `like`, of what `made` reads, with constants that nobody
// reads. Of those that there are none for, its own.
static assay_status_t offer_like(const assay_suspect_t* s, const char* cause, size_t input,
                                 const assay_node_t* like, unread_t* u, const assay_trial_t* t,
                                 bool* stop) {
  const assay_node_t* made = s->node->inputs[input]->producer;
  assay_repair_t r = assay_repair_of(s, cause, ASSAY_EDIT_CHAIN);
  assay_repair_edit_t* e = &r.edits[0];
  size_t replaced = 0;
  memset(u->taken, 0, sizeof u->taken);
  e->at_input = true;
  e->input = input;
  e->n_chain = 1;
  e->type = s->in[input]->type;
  e->chain[0] = (assay_chain_step_t){.like = like, .other_inputs = true};
  size_t n = like->n_inputs;
  while (n > 1 && !like->inputs[n - 1]) n--;  // those at the end may be left out
  for (size_t i = 0; i < n; i++) {
    const assay_value_t* v = i ? like->inputs[i] : made->inputs[0];
    const assay_value_t* other =
        v && assay_around_is_constant(v) ? take(s, u, v, like != made) : NULL;
    // Another node's own constants are no part of this one.
    if (!v || (!other && i && like != made)) return NULL;
    replaced += other != NULL;
    e->chain[0].of[i] =
        (assay_chain_operand_t){.kind = ASSAY_OPERAND_VALUE, .value = other ? other : v};
  }
  if (!replaced) return NULL;
  r.beside[r.n_beside++] = made;
  snprintf(r.text, sizeof r.text,
           "'%.60s' is taken for another: %.30s of '%.60s' with constants that nobody reads",
           s->node->inputs[input]->name, like->op_type, made->inputs[0]->name);
  return assay_offer(t, &r, stop);
}

// Nodes of other attributes, one of each.
static size_t list_like(const assay_suspect_t* s, const assay_node_t* made, size_t max,
                        const assay_node_t** out) {
  const assay_graph_t* g = s->model->graph;
  size_t n = 0;
  out[n++] = made;
  for (size_t k = 0; k < g->n_nodes && n < max; k++) {
    const assay_node_t* like = g->nodes[k];
    bool known = like == s->node || strcmp(like->op_type, made->op_type) != 0 ||
                 like->n_inputs < 2 || like->n_outputs != 1;
    for (size_t i = 0; i < n && !known; i++)
      known = assay_around_same_attrs(like, out[i]) && like->n_inputs == out[i]->n_inputs;
    if (!known) out[n++] = like;
  }
  return n;
}

// Source: onnx/optimizer issue 254, common subexpressions of which constants were not compared.
assay_status_t assay_propose_merged(const assay_suspect_t* s, const char* cause,
                                    const assay_trial_t* t, bool* stop) {
  enum { LIKE = 6 };
  unread_t u;
  if (!s->around) return NULL;
  list_unread(s, &u);
  for (size_t i = 0; u.n && i < s->n_in && !*stop; i++) {
    const assay_node_t* made = s->node->inputs[i] ? s->node->inputs[i]->producer : NULL;
    const assay_node_t* like[LIKE];
    if (!made || !s->in[i] || s->in[i]->kind != ASSAY_KIND_TENSOR || made->n_outputs != 1 ||
        made->n_inputs < 2 || !made->inputs[0] || assay_around_is_constant(s->node->inputs[i]))
      continue;
    const size_t n = list_like(s, made, LIKE, like);
    for (size_t k = 0; k < n && !*stop; k++)
      if (like[k]->n_inputs <= ASSAY_CHAIN_OPERANDS)
        ASSAY_TRY(offer_like(s, cause, i, like[k], &u, t, stop));
  }
  return NULL;
}
