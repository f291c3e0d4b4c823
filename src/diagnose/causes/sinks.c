// Softmax with one more score, of nothing: what attention pays to no token.
//
// With a score z beside the scores x, exp(x_j) / (sum exp(x) + exp(z)) is p_j / (1 + exp(z - m) P):
// p the softmax without it, m the largest of x, P the largest of p, which is 1 / sum exp(x - m).
#include <stdio.h>
#include <string.h>

#include "diagnose/causes/surroundings.h"
#include "diagnose/proposals.h"

static bool is_op(const assay_node_t* n, const char* op) {
  return n && !*n->domain && strcmp(n->op_type, op) == 0;
}

static bool is_float(const assay_tensor_t* t) {
  return t && t->kind == ASSAY_KIND_TENSOR && t->store == ASSAY_STORE_F64;
}

static int axis_of(const assay_node_t* n, int rank) {
  const int64_t axis = assay_attr_i64(n, "axis", -1);
  return (int)(axis < 0 ? axis + rank : axis);
}

// Whether a value is a score for each place, or for each head: it lies under the scores and is 1
// along the softmax' axis.
static bool is_score(const assay_tensor_t* z, const assay_tensor_t* x, int axis) {
  if (!is_float(z) || z->type != x->type || z->rank > x->rank) return false;
  for (int k = 0; k < z->rank; k++) {
    const int at = k + x->rank - z->rank;
    if (z->dims[k] != 1 && (at == axis || z->dims[k] != x->dims[at])) return false;
  }
  return z->rank == x->rank || z->size == 1;
}

static assay_status_t offer(const assay_suspect_t* s, const char* cause, int axis,
                            const assay_value_t* z, const char* score, const assay_trial_t* t,
                            bool* stop) {
  char program[ASSAY_FORMULA_TEXT];
  size_t used = assay_formula_append(program, 0, "x v highest", NULL, 0);
  used = assay_formula_append(program, used, score, NULL, 0);
  used = assay_formula_append(program, used, "- Neg Exp x highest * 1 + /", NULL, 0);
  const assay_formula_terms_t terms = {
      .program = program, .value = s->node->inputs[0], .value2 = z, .axes = {axis}, .n_axes = 1};
  assay_repair_t r = assay_repair_of(s, cause, ASSAY_EDIT_AFTER);
  if (used >= ASSAY_FORMULA_TEXT) return NULL;
  if (z)
    snprintf(r.text, sizeof r.text, "with one more score, of nothing: '%.120s'", z->name);
  else
    snprintf(r.text, sizeof r.text, "with one more score, of nothing: 0");
  ASSAY_TRY(assay_formula_create(&terms, &r.edits[0].formula));
  return assay_offer(t, &r, stop);
}

// A score of each head that stands as a vector.
static assay_status_t offer_vector(const assay_suspect_t* s, const char* cause, int axis,
                                   const assay_value_t* z, const assay_trial_t* t, bool* stop) {
  const assay_tensor_t *x = s->in[0], *y = assay_around_tensor(s->around, z);
  char score[ASSAY_FORMULA_TEXT];
  int64_t dims[ASSAY_MAX_RANK];
  if (!is_float(y) || y->rank != 1 || y->size < 2 || x->rank < 3 || axis == 1) return NULL;
  if (y->size != x->dims[1] || y->type != x->type) return NULL;
  for (int k = 0; k < x->rank; k++) dims[k] = k == 1 ? y->size : 1;
  size_t used = assay_formula_append(score, 0, "u", NULL, 0);
  used = assay_formula_append(score, used, "reshape", dims, x->rank);
  return used < ASSAY_FORMULA_TEXT ? offer(s, cause, axis, z, score, t, stop) : NULL;
}

static const assay_value_t* value_at(const assay_graph_t* g, size_t i) {
  if (i < g->n_inputs) return g->inputs[i];
  i -= g->n_inputs;
  if (i < g->n_initializers) return g->initializers[i];
  const assay_node_t* n = g->nodes[i - g->n_initializers];
  return n->n_outputs ? n->outputs[0] : NULL;
}

// What another softmax has as one more score: it is put beside the others, or nobody reads it.
static bool may_be_score(const assay_suspect_t* s, const assay_value_t* v) {
  const assay_node_t* const* readers = NULL;
  const size_t n = assay_around_readers(s->around, v, &readers);
  for (size_t i = 0; i < n; i++)
    if (is_op(readers[i], "Concat")) return true;
  return n == 0;
}

// Sources: vllm-project/vllm issue 52156 (sinks of gpt-oss); add_zero_attn of torch.nn.
assay_status_t assay_propose_sink(const assay_suspect_t* s, const char* cause,
                                  const assay_trial_t* t, bool* stop) {
  enum { FEW = 8 };
  if (!s->around || !is_op(s->node, "Softmax") || !s->n_in || !is_float(s->in[0])) return NULL;
  const int axis = axis_of(s->node, s->in[0]->rank);
  const assay_graph_t* g = s->model->graph;
  const size_t all = g->n_inputs + g->n_initializers + g->n_nodes;
  size_t offered = 0;
  if (axis < 1 || axis >= s->in[0]->rank || s->in[0]->rank < 3) return NULL;
  for (size_t i = 0; i < all && offered < FEW && !*stop; i++) {
    const assay_value_t* v = value_at(g, i);
    if (!v || v->is_output || !may_be_score(s, v)) continue;
    if (!assay_around_may_read(s->around, s->node, v)) continue;
    if (is_score(assay_around_tensor(s->around, v), s->in[0], axis)) {
      offered++;
      ASSAY_TRY(offer(s, cause, axis, v, "u", t, stop));
    } else {
      ASSAY_TRY(offer_vector(s, cause, axis, v, t, stop));
    }
  }
  return *stop ? NULL : offer(s, cause, axis, NULL, "0", t, stop);
}
