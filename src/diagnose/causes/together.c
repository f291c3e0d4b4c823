// Inputs that go together: both states of a recurrent layer, a scale and its offset. Where one
// comes from another layer the others do, and each alone restores nothing.
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "diagnose/causes/surroundings.h"
#include "diagnose/proposals.h"

// Pairs of inputs that belong together, and single ones that do nothing where they are zeros.
static const struct {
  const char* op;
  size_t inputs[2];
} pairs[] = {
    {"LSTM", {5, 6}},
    {"LayerNormalization", {1, 2}},
    {"InstanceNormalization", {1, 2}},
    {"GroupNormalization", {1, 2}},
    {"BatchNormalization", {1, 2}},
    {"BatchNormalization", {3, 4}},
    {"Conv", {1, 2}},
    {"ConvTranspose", {1, 2}},
    {"Gemm", {1, 2}},
};

static const struct {
  const char* op;
  size_t first, last;
} neutral[] = {{"LSTM", 5, 7}, {"GRU", 5, 5},           {"RNN", 5, 5},
               {"LSTM", 3, 3}, {"GRU", 3, 3},           {"RNN", 3, 3},
               {"Conv", 2, 2}, {"ConvTranspose", 2, 2}, {"Gemm", 2, 2}};

static bool is_op(const assay_node_t* n, const char* op) {
  return !*n->domain && strcmp(n->op_type, op) == 0;
}

static bool fits(const assay_suspect_t* s, size_t input, const assay_value_t* v) {
  const assay_tensor_t *now = s->in[input], *x = assay_around_tensor(s->around, v);
  return x && v != s->node->inputs[input] && x->type == now->type &&
         assay_tensor_same_shape(x, now) && assay_around_may_read(s->around, s->node, v);
}

static assay_status_t offer(const assay_suspect_t* s, const char* cause, const size_t* inputs,
                            const assay_value_t* a, const assay_value_t* b, const assay_trial_t* t,
                            bool* stop) {
  if (*stop || a == b || !fits(s, inputs[0], a) || !fits(s, inputs[1], b)) return NULL;
  assay_repair_t r = assay_repair_of(s, cause, ASSAY_EDIT_INPUT);
  r.n_edits = 2;
  r.edits[1].kind = ASSAY_EDIT_INPUT;
  r.edits[0].input = inputs[0], r.edits[0].value = a;
  r.edits[1].input = inputs[1], r.edits[1].value = b;
  snprintf(r.text, sizeof r.text, "reads '%.50s' and '%.50s' instead of '%.50s' and '%.50s'",
           a->name, b->name, s->node->inputs[inputs[0]]->name, s->node->inputs[inputs[1]]->name);
  return assay_offer(t, &r, stop);
}

// ---- where both may come from ------------------------------------------------------------------

// What another node of the operator reads there.
static assay_status_t offer_of_others(const assay_suspect_t* s, const char* cause,
                                      const size_t* inputs, const assay_trial_t* t, bool* stop) {
  const assay_graph_t* g = s->model->graph;
  for (size_t i = 0; i < g->n_nodes && !*stop; i++) {
    const assay_node_t* n = g->nodes[i];
    if (n == s->node || strcmp(n->op_type, s->node->op_type) != 0) continue;
    if (n->n_inputs <= inputs[1] || !n->inputs[inputs[0]] || !n->inputs[inputs[1]]) continue;
    ASSAY_TRY(offer(s, cause, inputs, n->inputs[inputs[0]], n->inputs[inputs[1]], t, stop));
  }
  return NULL;
}

// Two outputs of a node: states that a layer before ends with.
static assay_status_t offer_of_node(const assay_suspect_t* s, const char* cause,
                                    const size_t* inputs, const assay_trial_t* t, bool* stop) {
  const assay_graph_t* g = s->model->graph;
  for (size_t i = 0; i < g->n_nodes && !*stop; i++) {
    const assay_node_t* n = g->nodes[i];
    for (size_t a = 0; a < n->n_outputs; a++)
      for (size_t b = 0; b < n->n_outputs && !*stop; b++)
        if (a != b && n->outputs[a] && n->outputs[b])
          ASSAY_TRY(offer(s, cause, inputs, n->outputs[a], n->outputs[b], t, stop));
  }
  return NULL;
}

// The model's inputs, its constants, and what nodes give, in this order.
static const assay_value_t* value_at(const assay_graph_t* g, size_t i) {
  if (i < g->n_inputs) return g->inputs[i];
  i -= g->n_inputs;
  if (i < g->n_initializers) return g->initializers[i];
  const assay_node_t* n = g->nodes[i - g->n_initializers];
  return n->n_outputs ? n->outputs[0] : NULL;
}

// Whether two values are made alike: both given, or by nodes of one operator that read as many.
static bool made_alike(const assay_value_t* a, const assay_value_t* b) {
  const assay_node_t *m = a->producer, *n = b->producer;
  if (!m || !n) return !m && !n && !a->constant == !b->constant;
  return strcmp(m->op_type, n->op_type) == 0 && m->n_inputs == n->n_inputs;
}

// Values that nobody reads, and those that are made as what is read now: of these the nearest ones
// together.
static assay_status_t offer_values(const assay_suspect_t* s, const char* cause,
                                   const size_t* inputs, const assay_trial_t* t, bool* stop) {
  enum { MANY = 32, NEAR = 8 };
  const assay_graph_t* g = s->model->graph;
  const size_t all = g->n_inputs + g->n_initializers + g->n_nodes;
  const assay_value_t* found[MANY];
  bool unread[MANY];
  size_t n = 0;
  for (size_t i = 0; i < all && n < MANY; i++) {
    const assay_node_t* const* readers = NULL;
    const assay_value_t* v = value_at(g, i);
    if (!v || v->is_output || (!fits(s, inputs[0], v) && !fits(s, inputs[1], v))) continue;
    unread[n] = !assay_around_readers(s->around, v, &readers);
    if (unread[n] || made_alike(v, s->node->inputs[inputs[0]]) ||
        made_alike(v, s->node->inputs[inputs[1]]))
      found[n++] = v;
  }
  for (size_t i = 0; i < n; i++)
    for (size_t k = 0; k < n && !*stop; k++)
      if (i != k && ((unread[i] && unread[k]) || (i > k ? i - k : k - i) <= NEAR))
        ASSAY_TRY(offer(s, cause, inputs, found[i], found[k], t, stop));
  return NULL;
}

// Source: states of every layer from the first, onnx/tensorflow-onnx issue 1264.
assay_status_t assay_propose_together(const assay_suspect_t* s, const char* cause,
                                      const assay_trial_t* t, bool* stop) {
  if (!s->around) return NULL;
  for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
    const size_t* inputs = pairs[i].inputs;
    if (!is_op(s->node, pairs[i].op) || s->n_in <= inputs[1]) continue;
    if (!s->in[inputs[0]] || !s->in[inputs[1]]) continue;
    ASSAY_TRY(offer_of_others(s, cause, inputs, t, stop));
    ASSAY_TRY(offer_of_node(s, cause, inputs, t, stop));
    ASSAY_TRY(offer_values(s, cause, inputs, t, stop));
  }
  return NULL;
}

// ---- nothing -----------------------------------------------------------------------------------

// Zeros instead: states or a bias that the network does not have. One edit an input.
assay_status_t assay_propose_neutral(const assay_suspect_t* s, const char* cause,
                                     const assay_trial_t* t, bool* stop) {
  for (size_t i = 0; i < sizeof neutral / sizeof *neutral && !*stop; i++) {
    if (!is_op(s->node, neutral[i].op)) continue;
    assay_repair_t r = {.node = s->node, .cause = cause};
    assay_status_t st = NULL;
    for (size_t k = neutral[i].first; k <= neutral[i].last && k < s->n_in && !st; k++) {
      const assay_tensor_t* x = s->in[k];
      assay_tensor_t* y = NULL;
      if (!x || x->kind != ASSAY_KIND_TENSOR || x->store != ASSAY_STORE_F64) continue;
      st = assay_tensor_create(x->type, x->rank, x->dims, &y);
      if (st) break;
      for (int64_t at = 0; at < y->size; at++) assay_f64(y)[at] = 0;
      r.edits[r.n_edits++] =
          (assay_repair_edit_t){.kind = ASSAY_EDIT_CONSTANT, .input = k, .tensor = y};
    }
    if (st || !r.n_edits) {
      assay_repair_deinit(&r);
      if (st) return st;
      continue;
    }
    snprintf(r.text, sizeof r.text, "%s from zeros",
             neutral[i].first == neutral[i].last ? "the input begins" : "the layer begins");
    if (neutral[i].first < 5)
      snprintf(r.text, sizeof r.text, "without the bias '%.120s'",
               s->node->inputs[neutral[i].first]->name);
    ASSAY_TRY(assay_offer(t, &r, stop));
  }
  return NULL;
}
