// Updates in place that a tracer lost: what was to be put into a value is still made, and read by
// nobody.
#include <stdio.h>
#include <string.h>

#include "diagnose/causes/chains.h"
#include "diagnose/causes/surroundings.h"
#include "diagnose/proposals.h"

enum { MAX = 8 };  // values that nobody reads

typedef struct unread {
  const assay_value_t *indices[MAX], *updates[MAX];
  size_t n_indices, n_updates;
} unread_t;

static void take(const assay_suspect_t* s, const assay_value_t* v, unread_t* out) {
  const assay_node_t* const* readers = NULL;
  const assay_tensor_t* x = v ? assay_around_tensor(s->around, v) : NULL;
  if (!x || !x->rank || v->is_output || assay_around_readers(s->around, v, &readers)) return;
  if (!assay_around_may_read(s->around, s->node, v)) return;
  if (x->type == ASSAY_TYPE_INT64 && out->n_indices < MAX) out->indices[out->n_indices++] = v;
  if (assay_type_is_float(x->type) && out->n_updates < MAX) out->updates[out->n_updates++] = v;
}

static void find_unread(const assay_suspect_t* s, unread_t* out) {
  const assay_graph_t* g = s->model->graph;
  for (size_t i = 0; i < g->n_inputs; i++) take(s, g->inputs[i], out);
  for (size_t i = 0; i < g->n_nodes; i++) take(s, g->nodes[i]->outputs[0], out);
  for (size_t i = 0; i < g->n_initializers; i++) take(s, g->initializers[i], out);
}

// A node of the operator elsewhere, whose attributes count; NULL: there is none.
static const assay_node_t* find_like(const assay_suspect_t* s, const char* op) {
  const assay_graph_t* g = s->model->graph;
  for (size_t i = 0; i < g->n_nodes; i++)
    if (!*g->nodes[i]->domain && strcmp(g->nodes[i]->op_type, op) == 0) return g->nodes[i];
  return NULL;
}

// Whether the operator takes these shapes.
static bool fits(const assay_tensor_t* data, const assay_tensor_t* at,
                 const assay_tensor_t* updates, bool elements) {
  if (updates->type != data->type) return false;
  if (elements) return at->rank == data->rank && assay_tensor_same_shape(at, updates);
  const int64_t depth = at->dims[at->rank - 1];
  if (depth < 1 || depth > data->rank || updates->rank != at->rank - 1 + data->rank - depth)
    return false;
  for (int i = 0; i < at->rank - 1; i++)
    if (updates->dims[i] != at->dims[i]) return false;
  for (int64_t i = depth; i < data->rank; i++)
    if (updates->dims[at->rank - 1 + i - depth] != data->dims[i]) return false;
  return true;
}

// input: before it; n_in: after the node.
static assay_status_t offer(const assay_suspect_t* s, const char* cause, size_t input,
                            const char* op, const assay_value_t* at, const assay_value_t* updates,
                            const assay_trial_t* t, bool* stop) {
  const assay_node_t* like = find_like(s, op);
  const assay_chain_step_t steps[ASSAY_CHAIN_STEPS] = {
      {.op_type = op,
       .like = like,
       .other_inputs = true,
       .of = {ASSAY_START, ASSAY_VALUE(at), ASSAY_VALUE(updates)}}};
  assay_repair_t r = assay_repair_of(s, cause, ASSAY_EDIT_CHAIN);
  r.edits[0].at_input = input < s->n_in;
  r.edits[0].input = input < s->n_in ? input : 0;
  assay_chain_edit(&r.edits[0], steps, input < s->n_in ? s->in[input] : s->out[0]);
  snprintf(r.text, sizeof r.text, "%s of '%.70s' at '%.70s' %s it", op, updates->name, at->name,
           input < s->n_in ? "before" : "after");
  return assay_offer(t, &r, stop);
}

static assay_status_t offer_all(const assay_suspect_t* s, const char* cause, size_t input,
                                const assay_tensor_t* data, const unread_t* u,
                                const assay_trial_t* t, bool* stop) {
  static const char* const operators[] = {"ScatterND", "ScatterElements"};
  if (!data || data->kind != ASSAY_KIND_TENSOR || data->store != ASSAY_STORE_F64 || !data->rank)
    return NULL;
  for (size_t a = 0; a < u->n_indices; a++)
    for (size_t b = 0; b < u->n_updates; b++)
      for (size_t k = 0; k < 2 && !*stop; k++) {
        const assay_tensor_t* at = assay_around_tensor(s->around, u->indices[a]);
        const assay_tensor_t* updates = assay_around_tensor(s->around, u->updates[b]);
        if (!fits(data, at, updates, k == 1)) continue;
        ASSAY_TRY(offer(s, cause, input, operators[k], u->indices[a], u->updates[b], t, stop));
      }
  return NULL;
}

// Source: pytorch/pytorch issue 19948.
assay_status_t assay_propose_update(const assay_suspect_t* s, const char* cause,
                                    const assay_trial_t* t, bool* stop) {
  unread_t u = {0};
  if (!s->around || *s->node->domain) return NULL;
  find_unread(s, &u);
  if (!u.n_indices || !u.n_updates) return NULL;
  // Of what nodes make, after the node; of the model's inputs and constants, before it is read.
  if (s->n_out == 1) ASSAY_TRY(offer_all(s, cause, s->n_in, s->out[0], &u, t, stop));
  for (size_t i = 0; i < s->n_in && !*stop; i++)
    if (s->node->inputs[i] && !s->node->inputs[i]->producer)
      ASSAY_TRY(offer_all(s, cause, i, s->in[i], &u, t, stop));
  return NULL;
}
