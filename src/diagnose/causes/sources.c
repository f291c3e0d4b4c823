// A value that is read in another's place: a skip from the wrong tensor, two parts of a split
// exchanged, an optional input that was dropped.
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "diagnose/causes/surroundings.h"
#include "diagnose/proposals.h"

static bool reads(const assay_node_t* n, const assay_value_t* v) {
  for (size_t i = 0; i < n->n_inputs; i++)
    if (n->inputs[i] == v) return true;
  return false;
}

static bool is_data(const assay_value_t* v) { return v && !assay_around_is_constant(v); }

static bool is_expensive(const assay_node_t* n) {
  static const char* const names[] = {"Conv", "ConvTranspose", "MatMul", "Gemm", "LSTM",
                                      "GRU",  "RNN",           "Einsum", "Loop", "Scan"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (strcmp(n->op_type, names[i]) == 0) return true;
  return false;
}

// ---- another value -----------------------------------------------------------------------------

static assay_status_t offer_input(const assay_suspect_t* s, const char* cause, size_t input,
                                  const assay_value_t* v, const assay_trial_t* t, bool* stop) {
  assay_repair_t r = assay_repair_of(s, cause, ASSAY_EDIT_INPUT);
  r.edits[0].input = input;
  r.edits[0].value = v;
  if (input < s->node->n_inputs && s->node->inputs[input])
    snprintf(r.text, sizeof r.text, "reads '%.90s' instead of '%.90s'", v->name,
             s->node->inputs[input]->name);
  else
    snprintf(r.text, sizeof r.text, "input %zu is '%.120s', which is left out", input, v->name);
  return assay_offer(t, &r, stop);
}

// What several nodes read: the stream that residuals are added to, and what blocks begin with.
static bool is_stream(const assay_suspect_t* s, const assay_value_t* v) {
  const assay_node_t* const* readers = NULL;
  return assay_around_readers(s->around, v, &readers) > 1;
}

// Values of the same type and shape, the nearest before and after the node in the file first;
// farther away those alone that several nodes read.
static assay_status_t offer_sources(const assay_suspect_t* s, const char* cause, size_t input,
                                    size_t max, const assay_trial_t* t, bool* stop) {
  const assay_graph_t* g = s->model->graph;
  const size_t here = s->around->order[s->node->id];
  const assay_tensor_t* now = s->in[input];
  const size_t near = 3 * max / 4;
  size_t offered = 0;
  for (size_t d = 1; d < g->n_nodes && offered < max && !*stop; d++) {
    for (int side = 0; side < 2 && !*stop; side++) {
      if (side ? here + d >= g->n_nodes : d > here) continue;
      const assay_node_t* n = g->nodes[side ? here + d : here - d];
      for (size_t k = 0; k < n->n_outputs && offered < max && !*stop; k++) {
        const assay_value_t* v = n->outputs[k];
        const assay_tensor_t* x = is_data(v) ? assay_around_tensor(s->around, v) : NULL;
        if (!x || x->type != now->type || !assay_tensor_same_shape(x, now)) continue;
        if (reads(s->node, v) || !assay_around_may_read(s->around, s->node, v)) continue;
        if (offered >= near && !is_stream(s, v)) continue;
        offered++;
        ASSAY_TRY(offer_input(s, cause, input, v, t, stop));
      }
    }
  }
  for (size_t i = 0; i < g->n_inputs && offered < max && !*stop; i++) {
    const assay_value_t* v = g->inputs[i];
    const assay_tensor_t* x = is_data(v) ? assay_around_tensor(s->around, v) : NULL;
    if (!x || x->type != now->type || !assay_tensor_same_shape(x, now) || reads(s->node, v))
      continue;
    offered++;
    ASSAY_TRY(offer_input(s, cause, input, v, t, stop));
  }
  return NULL;
}

// Source: a skip that an inplace activation has changed, iduta/iresnet pull request 2.
assay_status_t assay_propose_source(const assay_suspect_t* s, const char* cause,
                                    const assay_trial_t* t, bool* stop) {
  enum { MANY = 24, FEW = 6 };
  if (!s->around) return NULL;
  for (size_t i = 0; i < s->n_in && !*stop; i++)
    if (s->in[i] && s->in[i]->kind == ASSAY_KIND_TENSOR && s->in[i]->size > 1 &&
        is_data(s->node->inputs[i]))
      ASSAY_TRY(offer_sources(s, cause, i, is_expensive(s->node) ? FEW : MANY, t, stop));
  return NULL;
}

// ---- two values exchanged ----------------------------------------------------------------------

enum { NEAR = 12 };  // nodes between two that are exchanged

// The earliest node that reads a value; n_nodes: none.
static size_t first_reader(const assay_surroundings_t* a, const assay_value_t* v) {
  const assay_node_t* const* readers = NULL;
  const size_t n = assay_around_readers(a, v, &readers);
  size_t first = a->model->graph->n_nodes;
  for (size_t i = 0; i < n; i++)
    if (a->order[readers[i]->id] < first) first = a->order[readers[i]->id];
  return first;
}

static assay_status_t offer_crossed(const assay_suspect_t* s, const char* cause,
                                    const assay_value_t* a, const assay_value_t* b,
                                    const assay_trial_t* t, bool* stop) {
  const assay_tensor_t *x = a ? assay_around_tensor(s->around, a) : NULL,
                       *y = b ? assay_around_tensor(s->around, b) : NULL;
  if (!x || !y || a->is_output || b->is_output || x->type != y->type ||
      !assay_tensor_same_shape(x, y))
    return NULL;
  const size_t last = s->around->order[b->producer->id];
  if (first_reader(s->around, a) <= last || first_reader(s->around, b) <= last) return NULL;
  assay_repair_t r = assay_repair_of(s, cause, ASSAY_EDIT_CROSS);
  r.edits[0].value = a;
  r.edits[0].other_value = b;
  snprintf(r.text, sizeof r.text, "'%.90s' and '%.90s' exchanged", a->name, b->name);
  return assay_offer(t, &r, stop);
}

// Two inputs of the model in each other's place, wherever they are read. Source: liebharc/homr
// issue 99.
static assay_status_t offer_inputs_crossed(const assay_suspect_t* s, const char* cause,
                                           const assay_value_t* a, const assay_trial_t* t,
                                           bool* stop) {
  const assay_graph_t* g = s->model->graph;
  const assay_tensor_t* x = a ? assay_around_tensor(s->around, a) : NULL;
  if (!x || a->producer || a->constant || a->graph != g) return NULL;
  for (size_t i = 0; i < g->n_inputs && !*stop; i++) {
    const assay_value_t* b = g->inputs[i];
    const assay_tensor_t* y = b != a && !b->constant ? assay_around_tensor(s->around, b) : NULL;
    if (!y || x->type != y->type || !assay_tensor_same_shape(x, y)) continue;
    assay_repair_t r = assay_repair_of(s, cause, ASSAY_EDIT_EXCHANGE);
    r.edits[0].value = a;
    r.edits[0].other_value = b;
    snprintf(r.text, sizeof r.text, "the model's inputs '%.90s' and '%.90s' exchanged", a->name,
             b->name);
    ASSAY_TRY(assay_offer(t, &r, stop));
  }
  return NULL;
}

// Heads of one shape, each under the other's name. Source: CaoWGG/TensorRT-CenterNet issue 38.
static assay_status_t offer_crossed_with_others(const assay_suspect_t* s, const char* cause,
                                                const assay_trial_t* t, bool* stop) {
  enum { MANY = 16, FAR = 48 };
  const assay_graph_t* g = s->model->graph;
  const assay_node_t* n = s->node;
  const size_t here = s->around->order[n->id];
  size_t offered = 0;
  if (n->n_outputs != 1 || !is_data(n->outputs[0])) return NULL;
  const assay_tensor_t* x = assay_around_tensor(s->around, n->outputs[0]);
  const size_t first = first_reader(s->around, n->outputs[0]);
  for (size_t i = here + 1; x && i < first && i <= here + FAR && offered < MANY && !*stop; i++) {
    const assay_node_t* other = i < g->n_nodes ? g->nodes[i] : NULL;
    const assay_value_t* v = other && other->n_outputs == 1 ? other->outputs[0] : NULL;
    if (!is_data(v) || (strcmp(other->op_type, n->op_type) == 0 && i <= here + NEAR &&
                        n->n_inputs && other->n_inputs && n->inputs[0] == other->inputs[0]))
      continue;
    offered++;
    ASSAY_TRY(offer_crossed(s, cause, n->outputs[0], v, t, stop));
  }
  return NULL;
}

// Outputs of one node, and of two of one operator near each other that read the same: halves of a
// gated unit, queries and keys.
assay_status_t assay_propose_crossed(const assay_suspect_t* s, const char* cause,
                                     const assay_trial_t* t, bool* stop) {
  if (!s->around) return NULL;
  const assay_graph_t* g = s->model->graph;
  const assay_node_t* n = s->node;
  for (size_t i = 0; i < n->n_outputs; i++)
    for (size_t k = i + 1; k < n->n_outputs && !*stop; k++)
      ASSAY_TRY(offer_crossed(s, cause, n->outputs[i], n->outputs[k], t, stop));
  for (size_t i = 0; i < n->n_inputs && !*stop; i++)
    ASSAY_TRY(offer_inputs_crossed(s, cause, n->inputs[i], t, stop));
  const size_t here = s->around->order[n->id];
  for (size_t i = here + 1; i < g->n_nodes && i <= here + NEAR && !*stop; i++) {
    const assay_node_t* other = g->nodes[i];
    if (strcmp(other->op_type, n->op_type) != 0 || !n->n_inputs || !other->n_inputs) continue;
    if (!is_data(n->inputs[0]) || n->inputs[0] != other->inputs[0]) continue;
    ASSAY_TRY(offer_crossed(s, cause, n->outputs[0], other->outputs[0], t, stop));
  }
  return *stop ? NULL : offer_crossed_with_others(s, cause, t, stop);
}

// ---- optional inputs that were dropped ---------------------------------------------------------

static bool takes(const assay_param_t* p, const assay_tensor_t* x) {
  const assay_valtype_t type = {.kind = ASSAY_KIND_TENSOR, .elem = x->type};
  return assay_typeset_has(&p->types, &type);
}

// Whether a node of the same operator reads the value as this input.
static bool is_read_so(const assay_suspect_t* s, size_t input, const assay_value_t* v) {
  const assay_node_t* const* readers = NULL;
  const size_t n = assay_around_readers(s->around, v, &readers);
  for (size_t i = 0; i < n; i++)
    if (strcmp(readers[i]->op_type, s->node->op_type) == 0 && input < readers[i]->n_inputs &&
        readers[i]->inputs[input] == v)
      return true;
  return false;
}

// Inputs of the model, what nobody reads, and what others of the operator read there.
static assay_status_t offer_dropped(const assay_suspect_t* s, const char* cause, size_t input,
                                    const assay_trial_t* t, bool* stop) {
  const assay_param_t* p = assay_schema_input(s->node->schema, input);
  const assay_graph_t* g = s->model->graph;
  const size_t all = g->n_inputs + g->n_initializers + g->n_nodes;
  for (size_t i = 0; p && i < all && !*stop; i++) {
    const assay_node_t* const* readers = NULL;
    const assay_value_t* v = NULL;
    if (i < g->n_inputs)
      v = g->inputs[i];
    else if (i < g->n_inputs + g->n_initializers)
      v = g->initializers[i - g->n_inputs];
    else
      v = g->nodes[i - g->n_inputs - g->n_initializers]->outputs[0];
    const assay_tensor_t* x = v ? assay_around_tensor(s->around, v) : NULL;
    if (!x || v->is_output || reads(s->node, v) || !takes(p, x)) continue;
    // Floats that others read are data, not a parameter of this node.
    const bool unread = !assay_around_readers(s->around, v, &readers);
    if (!unread && (i >= g->n_inputs || assay_type_is_float(x->type)) && !is_read_so(s, input, v))
      continue;
    if (!assay_around_may_read(s->around, s->node, v)) continue;
    ASSAY_TRY(offer_input(s, cause, input, v, t, stop));
  }
  return NULL;
}

// The two states that an LSTM begins with: one without the other restores nothing.
static assay_status_t offer_states(const assay_suspect_t* s, const char* cause,
                                   const assay_trial_t* t, bool* stop) {
  enum { HIDDEN = 5, CELL = 6, MAX = 8 };
  const assay_value_t* states[MAX];
  const assay_graph_t* g = s->model->graph;
  const assay_tensor_t* y = s->n_out ? s->out[0] : NULL;
  size_t n = 0;
  if (strcmp(s->node->op_type, "LSTM") != 0 || s->node->n_inputs > HIDDEN || !y) return NULL;
  for (size_t i = 0; i < g->n_inputs + g->n_nodes && n < MAX; i++) {
    const assay_node_t* const* readers = NULL;
    const assay_value_t* v = i < g->n_inputs ? g->inputs[i] : g->nodes[i - g->n_inputs]->outputs[0];
    const assay_tensor_t* x = v ? assay_around_tensor(s->around, v) : NULL;
    if (!x || x->rank != 3 || x->type != s->in[0]->type || v->is_output) continue;
    if (assay_around_readers(s->around, v, &readers) || y->rank != 4) continue;
    if (x->dims[0] != y->dims[1] || x->dims[1] != y->dims[2] || x->dims[2] != y->dims[3]) continue;
    if (assay_around_may_read(s->around, s->node, v)) states[n++] = v;
  }
  for (size_t i = 0; i < n; i++)
    for (size_t k = 0; k < n && !*stop; k++) {
      if (i == k) continue;
      assay_repair_t r = assay_repair_of(s, cause, ASSAY_EDIT_INPUT);
      r.n_edits = 2;
      r.edits[1].kind = ASSAY_EDIT_INPUT;
      r.edits[0].input = HIDDEN, r.edits[0].value = states[i];
      r.edits[1].input = CELL, r.edits[1].value = states[k];
      snprintf(r.text, sizeof r.text, "begins with '%.90s' and '%.90s', which are left out",
               states[i]->name, states[k]->name);
      ASSAY_TRY(assay_offer(t, &r, stop));
    }
  return NULL;
}

// Source: lengths of LSTM and GRU that torch.onnx leaves out, pytorch/pytorch issue 48460; a bias.
assay_status_t assay_propose_dropped(const assay_suspect_t* s, const char* cause,
                                     const assay_trial_t* t, bool* stop) {
  const assay_schema_t* schema = s->node->schema;
  if (!s->around || !schema) return NULL;
  for (int i = schema->min_inputs; i < schema->max_inputs && i < schema->n_inputs && !*stop; i++) {
    if ((size_t)i < s->node->n_inputs && s->node->inputs[i]) continue;
    ASSAY_TRY(offer_dropped(s, cause, (size_t)i, t, stop));
  }
  if (!*stop) return offer_states(s, cause, t, stop);
  return NULL;
}
