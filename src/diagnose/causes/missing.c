// Nodes that were lost: what stands there in twins, activations, residuals, values that nobody
// reads.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "diagnose/causes/chains.h"
#include "diagnose/causes/surroundings.h"
#include "diagnose/proposals.h"

static bool is_float(const assay_tensor_t* t) {
  return t && t->kind == ASSAY_KIND_TENSOR && t->store == ASSAY_STORE_F64;
}

static bool is_one_of(const char* op, const char* const* names) {
  for (; *names; names++)
    if (strcmp(op, *names) == 0) return true;
  return false;
}

// After these a network puts activations, residuals and masks.
static const char* const ends[] = {"Conv",
                                   "ConvTranspose",
                                   "Gemm",
                                   "MatMul",
                                   "Add",
                                   "Sub",
                                   "Mul",
                                   "Div",
                                   "Sum",
                                   "Concat",
                                   "BatchNormalization",
                                   "InstanceNormalization",
                                   "LayerNormalization",
                                   "GroupNormalization",
                                   "Einsum",
                                   "ReduceMean",
                                   "GlobalAveragePool",
                                   "Transpose",
                                   "Reshape",
                                   "Identity",
                                   "Dropout",
                                   NULL};

// After these it puts residuals, but no second activation.
static const char* const activated[] = {
    "Relu", "Elu",       "LeakyRelu", "PRelu",       "Sigmoid", "Tanh", "Softplus", "Gelu",
    "Clip", "HardSwish", "Softsign",  "HardSigmoid", "Mish",    "Selu", NULL};

static bool makes_floats(const assay_suspect_t* s) {
  return s->around && s->n_out && s->node->outputs[0] && is_float(s->out[0]) && !*s->node->domain;
}

static bool may_be_followed(const assay_suspect_t* s) {
  return makes_floats(s) && is_one_of(s->node->op_type, ends);
}

static bool may_have_residual(const assay_suspect_t* s) {
  return may_be_followed(s) || (makes_floats(s) && is_one_of(s->node->op_type, activated));
}

// ---- activations -------------------------------------------------------------------------------

static const assay_chain_t activations[] = {
    {"Relu", {{.op_type = "Relu", .of = {ASSAY_START}}}},
    {"x * sigmoid(x)",
     {{.op_type = "Sigmoid", .of = {ASSAY_START}},
      {.op_type = "Mul", .of = {ASSAY_START, ASSAY_STEP(0)}}}},
    {"GELU",
     {{.op_type = "Mul", .of = {ASSAY_START, ASSAY_NUMBER(0.70710678118654752)}},
      {.op_type = "Erf", .of = {ASSAY_STEP(0)}},
      {.op_type = "Add", .of = {ASSAY_STEP(1), ASSAY_NUMBER(1)}},
      {.op_type = "Mul", .of = {ASSAY_START, ASSAY_STEP(2)}},
      {.op_type = "Mul", .of = {ASSAY_STEP(3), ASSAY_NUMBER(0.5)}}}},
    // 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))
    {"GELU (tanh)",
     {{.op_type = "Mul", .of = {ASSAY_START, ASSAY_START}},
      {.op_type = "Mul", .of = {ASSAY_STEP(0), ASSAY_NUMBER(0.035677408136300125)}},
      {.op_type = "Add", .of = {ASSAY_STEP(1), ASSAY_NUMBER(0.79788456080286536)}},
      {.op_type = "Mul", .of = {ASSAY_START, ASSAY_STEP(2)}},
      {.op_type = "Tanh", .of = {ASSAY_STEP(3)}},
      {.op_type = "Add", .of = {ASSAY_STEP(4), ASSAY_NUMBER(1)}},
      {.op_type = "Mul", .of = {ASSAY_START, ASSAY_STEP(5)}},
      {.op_type = "Mul", .of = {ASSAY_STEP(6), ASSAY_NUMBER(0.5)}}}},
    {"Sigmoid", {{.op_type = "Sigmoid", .of = {ASSAY_START}}}},
    {"Tanh", {{.op_type = "Tanh", .of = {ASSAY_START}}}},
    {"relu6",
     {{.op_type = "Relu", .of = {ASSAY_START}},
      {.op_type = "Min", .of = {ASSAY_STEP(0), ASSAY_NUMBER(6)}}}},
    {"hard swish",
     {{.op_type = "Add", .of = {ASSAY_START, ASSAY_NUMBER(3)}},
      {.op_type = "Relu", .of = {ASSAY_STEP(0)}},
      {.op_type = "Min", .of = {ASSAY_STEP(1), ASSAY_NUMBER(6)}},
      {.op_type = "Mul", .of = {ASSAY_START, ASSAY_STEP(2)}},
      {.op_type = "Mul", .of = {ASSAY_STEP(3), ASSAY_NUMBER(1. / 6)}}}},
    {"hard sigmoid",
     {{.op_type = "Add", .of = {ASSAY_START, ASSAY_NUMBER(3)}},
      {.op_type = "Relu", .of = {ASSAY_STEP(0)}},
      {.op_type = "Min", .of = {ASSAY_STEP(1), ASSAY_NUMBER(6)}},
      {.op_type = "Mul", .of = {ASSAY_STEP(2), ASSAY_NUMBER(1. / 6)}}}},
    {"LeakyRelu of 0.01", {{.op_type = "LeakyRelu", .of = {ASSAY_START}}}},
    {"LeakyRelu of 0.1",
     {{.op_type = "Mul", .of = {ASSAY_START, ASSAY_NUMBER(0.1)}},
      {.op_type = "Max", .of = {ASSAY_START, ASSAY_STEP(0)}}}},
    {"LeakyRelu of 0.2",
     {{.op_type = "Mul", .of = {ASSAY_START, ASSAY_NUMBER(0.2)}},
      {.op_type = "Max", .of = {ASSAY_START, ASSAY_STEP(0)}}}},
    {"Elu", {{.op_type = "Elu", .of = {ASSAY_START}}}},
    {"Softplus", {{.op_type = "Softplus", .of = {ASSAY_START}}}},
    {"Mish",
     {{.op_type = "Softplus", .of = {ASSAY_START}},
      {.op_type = "Tanh", .of = {ASSAY_STEP(0)}},
      {.op_type = "Mul", .of = {ASSAY_START, ASSAY_STEP(1)}}}},
};

// Only for what the model gives.
static const assay_chain_t last[] = {
    {"Softmax", {{.op_type = "Softmax", .of = {ASSAY_START}}}},
    {"LogSoftmax", {{.op_type = "LogSoftmax", .of = {ASSAY_START}}}},
    {"Exp", {{.op_type = "Exp", .of = {ASSAY_START}}}},
};

static assay_status_t offer_chain(const assay_suspect_t* s, const char* cause,
                                  const assay_chain_t* c, const assay_trial_t* t, bool* stop) {
  assay_repair_t r = assay_repair_of(s, cause, ASSAY_EDIT_CHAIN);
  assay_chain_edit(&r.edits[0], c->steps, s->out[0]);
  snprintf(r.text, sizeof r.text, "%s after it", c->what);
  return assay_offer(t, &r, stop);
}

// Before one of several nodes that read a value: the others read it as it is.
static assay_status_t offer_chain_before(const assay_suspect_t* s, const char* cause, size_t input,
                                         const assay_chain_t* c, const assay_trial_t* t,
                                         bool* stop) {
  assay_repair_t r = assay_repair_of(s, cause, ASSAY_EDIT_CHAIN);
  r.edits[0].at_input = true;
  r.edits[0].input = input;
  assay_chain_edit(&r.edits[0], c->steps, s->in[input]);
  snprintf(r.text, sizeof r.text, "%s before input %zu '%.120s'", c->what, input,
           s->node->inputs[input]->name);
  return assay_offer(t, &r, stop);
}

static bool is_shared_data(const assay_suspect_t* s, size_t i) {
  const assay_node_t* const* readers = NULL;
  const assay_value_t* v = s->node->inputs[i];
  if (!v || assay_around_is_constant(v) || !is_float(s->in[i])) return false;
  return !v->producer || assay_around_readers(s->around, v, &readers) > 1;
}

assay_status_t assay_propose_activation(const assay_suspect_t* s, const char* cause,
                                        const assay_trial_t* t, bool* stop) {
  const size_t all = sizeof activations / sizeof *activations;
  if (may_be_followed(s))
    for (size_t i = 0; i < all && !*stop; i++)
      ASSAY_TRY(offer_chain(s, cause, &activations[i], t, stop));
  const bool is_last = may_be_followed(s) && s->node->outputs[0]->is_output;
  for (size_t i = 0; is_last && i < sizeof last / sizeof *last && !*stop; i++)
    ASSAY_TRY(offer_chain(s, cause, &last[i], t, stop));
  static const char* const readers[] = {"Conv", "Gemm",          "MatMul", "Add",
                                        "Mul",  "ConvTranspose", NULL};
  if (!s->around || *s->node->domain || !is_one_of(s->node->op_type, readers)) return NULL;
  for (size_t k = 0; k < s->n_in; k++)
    for (size_t i = 0; is_shared_data(s, k) && i < all && !*stop; i++)
      ASSAY_TRY(offer_chain_before(s, cause, k, &activations[i], t, stop));
  return NULL;
}

// ---- signs -------------------------------------------------------------------------------------

// Whether a value is a mask: zeros and ones, both.
static bool is_mask(const assay_tensor_t* x) {
  bool any[2] = {false, false};
  for (int64_t i = 0; i < x->size; i++) {
    if (assay_f64(x)[i] != 0 && assay_f64(x)[i] != 1) return false;
    any[assay_f64(x)[i] != 0] = true;
  }
  return any[0] && any[1];
}

// A sign that was lost after a node, or before one of the parts that a Concat puts together, as in
// a rotation by halves; a mask that was to be inverted. Sources: microsoft/onnxruntime issue 17253,
// microsoft/onnxscript issue 580.
assay_status_t assay_propose_sign(const assay_suspect_t* s, const char* cause,
                                  const assay_trial_t* t, bool* stop) {
  enum { PARTS = 4 };
  static const assay_chain_t sign = {"Neg", {{.op_type = "Neg", .of = {ASSAY_START}}}};
  static const char* const none[] = {"Neg", "Softmax", "LogSoftmax", "Constant", NULL};
  if (!makes_floats(s) || is_one_of(s->node->op_type, none)) return NULL;
  static const assay_chain_t complement = {
      "1 - x", {{.op_type = "Sub", .of = {ASSAY_NUMBER(1), ASSAY_START}}}};
  ASSAY_TRY(offer_chain(s, cause, &sign, t, stop));
  if (is_mask(s->out[0]) && !*stop) ASSAY_TRY(offer_chain(s, cause, &complement, t, stop));
  const bool joins = strcmp(s->node->op_type, "Concat") == 0 && s->n_in <= PARTS;
  for (size_t i = 0; joins && i < s->n_in && !*stop; i++)
    if (is_float(s->in[i])) ASSAY_TRY(offer_chain_before(s, cause, i, &sign, t, stop));
  return NULL;
}

// ---- what twins have ---------------------------------------------------------------------------

// A node that reads one value and keeps its shape: such can be put in anywhere.
static bool is_inserted(const assay_surroundings_t* a, const assay_node_t* n, size_t* out_at) {
  enum { SMALL = 4 };
  *out_at = assay_around_data_input(n);
  if (*out_at >= n->n_inputs || n->n_outputs < 1 || !n->outputs[0] || n->n_inputs > 4) return false;
  const assay_tensor_t *x = assay_around_tensor(a, n->inputs[*out_at]),
                       *y = assay_around_tensor(a, n->outputs[0]);
  if (!x || !y || !assay_tensor_same_shape(x, y) || x->type != y->type) return false;
  for (size_t i = 0; i < n->n_inputs; i++) {
    const assay_tensor_t* c = i == *out_at ? NULL : assay_around_tensor(a, n->inputs[i]);
    if (i != *out_at && n->inputs[i] && (!c || c->size > SMALL)) return false;
  }
  static const char* const none[] = {"Identity", "Cast", "Reshape", "Transpose", "Dropout", NULL};
  return strcmp(n->op_type, "Transpose") == 0 || !is_one_of(n->op_type, none);
}

static bool same_inputs(const assay_surroundings_t* a, const assay_node_t* x, const assay_node_t* y,
                        size_t at) {
  if (x->n_inputs != y->n_inputs) return false;
  for (size_t i = 0; i < x->n_inputs; i++) {
    if (i == at || (!x->inputs[i] && !y->inputs[i])) continue;
    const assay_tensor_t *p = assay_around_tensor(a, x->inputs[i]),
                         *q = assay_around_tensor(a, y->inputs[i]);
    if (p == q) continue;
    if (!p || !q || p->store != q->store || p->store > ASSAY_STORE_I64 ||
        !assay_tensor_same_shape(p, q))
      return false;
    const size_t bytes = (size_t)p->size * assay_store_elem_bytes(p->store);
    if (memcmp(p->data, q->data, bytes) != 0) return false;
  }
  return true;
}

static assay_status_t offer_like(const assay_suspect_t* s, const char* cause,
                                 const assay_node_t* like, size_t at, const assay_trial_t* t,
                                 bool* stop) {
  const assay_chain_step_t steps[ASSAY_CHAIN_STEPS] = {
      {.like = like, .at = at, .of = {ASSAY_START}}};
  assay_repair_t r = assay_repair_of(s, cause, ASSAY_EDIT_CHAIN);
  assay_chain_edit(&r.edits[0], steps, s->out[0]);
  snprintf(r.text, sizeof r.text, "%s after it, as '%.150s' after '%.40s'", like->op_type,
           like->label, like->inputs[at]->producer->label);
  return assay_offer(t, &r, stop);
}

// What follows nodes of the same operator elsewhere.
assay_status_t assay_propose_missing_twin(const assay_suspect_t* s, const char* cause,
                                          const assay_trial_t* t, bool* stop) {
  enum { MAX = 12 };
  const assay_node_t* seen[MAX];
  size_t n = 0;
  if (!may_be_followed(s)) return NULL;
  const assay_graph_t* g = s->model->graph;
  for (size_t i = 0; i < g->n_nodes && n < MAX && !*stop; i++) {
    const assay_node_t* q = g->nodes[i];
    size_t at;
    if (!is_inserted(s->around, q, &at)) continue;
    const assay_node_t* before = q->inputs[at]->producer;
    if (!before || before == s->node || strcmp(before->op_type, s->node->op_type) != 0) continue;
    const assay_tensor_t* x = assay_around_tensor(s->around, q->inputs[at]);
    if (x->rank != s->out[0]->rank) continue;
    bool known = false;
    for (size_t k = 0; k < n && !known; k++)
      known = strcmp(seen[k]->op_type, q->op_type) == 0 && assay_around_same_attrs(seen[k], q) &&
              same_inputs(s->around, seen[k], q, at);
    if (known) continue;
    seen[n++] = q;
    ASSAY_TRY(offer_like(s, cause, q, at, t, stop));
  }
  return NULL;
}

// ---- residuals ---------------------------------------------------------------------------------

static bool same_dims(const assay_tensor_t* a, const assay_tensor_t* b) {
  return assay_tensor_same_shape(a, b) && a->type == b->type;
}

static bool reads(const assay_node_t* n, const assay_value_t* v) {
  for (size_t i = 0; i < n->n_inputs; i++)
    if (n->inputs[i] == v) return true;
  return false;
}

static assay_status_t offer_with(const assay_suspect_t* s, const char* cause, const char* op,
                                 const assay_value_t* v, const assay_trial_t* t, bool* stop) {
  const assay_chain_step_t steps[ASSAY_CHAIN_STEPS] = {
      {.op_type = op, .of = {ASSAY_START, ASSAY_VALUE(v)}}};
  assay_repair_t r = assay_repair_of(s, cause, ASSAY_EDIT_CHAIN);
  assay_chain_edit(&r.edits[0], steps, s->out[0]);
  snprintf(r.text, sizeof r.text, "%s with '%.150s' after it", op, v->name);
  return assay_offer(t, &r, stop);
}

// An earlier value of the same shape, added.
assay_status_t assay_propose_residual(const assay_suspect_t* s, const char* cause,
                                      const assay_trial_t* t, bool* stop) {
  enum { MAX = 24 };
  if (!may_have_residual(s)) return NULL;
  const assay_graph_t* g = s->model->graph;
  size_t offered = 0;
  for (size_t i = s->around->order[s->node->id]; i-- > 0 && offered < MAX && !*stop;) {
    const assay_value_t* v = g->nodes[i]->n_outputs ? g->nodes[i]->outputs[0] : NULL;
    const assay_tensor_t* x = v ? assay_around_tensor(s->around, v) : NULL;
    if (!x || assay_around_is_constant(v) || !same_dims(x, s->out[0])) continue;
    if (reads(s->node, v) && strcmp(s->node->op_type, "Add") == 0) continue;
    offered++;
    ASSAY_TRY(offer_with(s, cause, "Add", v, t, stop));
  }
  for (size_t i = 0; i < g->n_inputs && !*stop; i++) {
    const assay_tensor_t* x = assay_around_tensor(s->around, g->inputs[i]);
    if (x && !g->inputs[i]->constant && same_dims(x, s->out[0]))
      ASSAY_TRY(offer_with(s, cause, "Add", g->inputs[i], t, stop));
  }
  return NULL;
}

// ---- values that nobody reads ------------------------------------------------------------------

// Whether x can be laid under y without making it larger.
static bool lies_under(const assay_tensor_t* x, const assay_tensor_t* y) {
  if (x->rank > y->rank || x->type != y->type) return false;
  for (int i = 0; i < x->rank; i++)
    if (x->dims[i] != 1 && x->dims[i] != y->dims[i + y->rank - x->rank]) return false;
  return true;
}

// Whether a value that nobody reads is made from what a node gives, by nodes that others read, too:
// no branch that was cut off, and what is put in after the node would change it.
static assay_status_t is_entangled(const assay_suspect_t* s, const assay_value_t* v, bool* out) {
  const assay_graph_t* g = s->model->graph;
  bool* makes = NULL;
  *out = false;
  if (assay_around_may_read(s->around, s->node, v)) return NULL;
  ASSAY_TRY(assay_new_array((size_t)s->model->n_node_ids, sizeof *makes, &makes));
  makes[v->producer->id] = true;
  for (size_t i = g->n_nodes; i-- > s->around->order[s->node->id] + 1 && !*out;) {
    const assay_node_t* n = g->nodes[i];
    if (!makes[n->id]) continue;
    for (size_t k = 0; k < n->n_outputs; k++) {
      const assay_node_t* const* readers = NULL;
      const size_t count =
          n->outputs[k] ? assay_around_readers(s->around, n->outputs[k], &readers) : 0;
      for (size_t q = 0; q < count; q++) *out |= !makes[readers[q]->id];
    }
    for (size_t k = 0; k < n->n_inputs; k++) {
      const assay_node_t* by = n->inputs[k] ? n->inputs[k]->producer : NULL;
      if (by && by != s->node && s->around->after[by->id]) makes[by->id] = true;
    }
  }
  assay_free(makes);
  return NULL;
}

// A constant, an input of the model, or what a node makes for nobody: added, or multiplied by.
assay_status_t assay_propose_unread(const assay_suspect_t* s, const char* cause,
                                    const assay_trial_t* t, bool* stop) {
  static const char* const operators[] = {"Add", "Mul", "Sub"};
  static const char* const also[] = {"Max", "Min", "Mean", NULL};
  if (!may_have_residual(s) && !(makes_floats(s) && is_one_of(s->node->op_type, also))) return NULL;
  const assay_graph_t* g = s->model->graph;
  const size_t all = g->n_initializers + g->n_inputs + g->n_nodes;
  for (size_t i = 0; i < all && !*stop; i++) {
    const assay_value_t* v = NULL;
    const assay_node_t* const* readers = NULL;
    if (i < g->n_initializers)
      v = g->initializers[i];
    else if (i < g->n_initializers + g->n_inputs)
      v = g->inputs[i - g->n_initializers];
    else
      v = g->nodes[i - g->n_initializers - g->n_inputs]->outputs[0];
    if (!v || v->is_output || assay_around_readers(s->around, v, &readers)) continue;
    const assay_tensor_t* x = assay_around_tensor(s->around, v);
    if (!x || !assay_type_is_float(x->type) || !lies_under(x, s->out[0])) continue;
    // It may be made from what the node gives: a branch that was cut off.
    bool is_no_branch = false;
    if (v->producer == s->node) continue;
    ASSAY_TRY(is_entangled(s, v, &is_no_branch));
    if (is_no_branch) continue;
    for (size_t k = 0; k < sizeof operators / sizeof *operators && !*stop; k++)
      ASSAY_TRY(offer_with(s, cause, operators[k], v, t, stop));
    // One of several that the node joins, and now does not. Source: MegEngine/mgeconvert pull
    // request 104.
    static const char* const joins[] = {"Max", "Min", NULL};
    if (is_one_of(s->node->op_type, joins) && !*stop)
      ASSAY_TRY(offer_with(s, cause, s->node->op_type, v, t, stop));
  }
  return NULL;
}

// ---- masks and scales of attention -------------------------------------------------------------

static bool is_before_softmax(const assay_suspect_t* s) {
  const assay_node_t* const* readers = NULL;
  const assay_value_t* v = s->node->outputs[0];
  for (int hops = 0; v && hops < 3; hops++) {
    const size_t n = assay_around_readers(s->around, v, &readers);
    if (n != 1) return false;
    if (strcmp(readers[0]->op_type, "Softmax") == 0) return true;
    v = readers[0]->outputs[0];
  }
  return false;
}

// The mask that other heads' scores are added to, and the scale by the root of the depth.
// Source: A. Vaswani et al., 2017, 3.2.1; what torch.onnx writes for it: pytorch/pytorch pull
// request 99658.
assay_status_t assay_propose_attention(const assay_suspect_t* s, const char* cause,
                                       const assay_trial_t* t, bool* stop) {
  enum { MAX = 8 };
  const assay_value_t* seen[MAX];
  size_t n = 0;
  if (!may_be_followed(s) || !is_before_softmax(s)) return NULL;
  const assay_graph_t* g = s->model->graph;
  for (size_t i = 0; i < g->n_nodes && n < MAX && !*stop; i++) {
    const assay_node_t* add = g->nodes[i];
    if (strcmp(add->op_type, "Add") != 0) continue;
    for (size_t k = 0; k < add->n_inputs && n < MAX && !*stop; k++) {
      const assay_value_t* v = add->inputs[k];
      const assay_tensor_t* x = v ? assay_around_tensor(s->around, v) : NULL;
      bool known = !x || x->rank < 2 || x->size < 4 || !assay_type_is_float(x->type) ||
                   !lies_under(x, s->out[0]) || reads(s->node, v) ||
                   !assay_around_may_read(s->around, s->node, v);
      for (size_t j = 0; j < n; j++) known |= seen[j] == v;
      if (known) continue;
      seen[n++] = v;
      ASSAY_TRY(offer_with(s, cause, "Add", v, t, stop));
    }
  }
  if (strcmp(s->node->op_type, "MatMul") != 0 || !is_float(s->in[0]) || !s->in[0]->rank)
    return NULL;
  const double depth = (double)s->in[0]->dims[s->in[0]->rank - 1];
  const double factors[] = {1 / sqrt(depth), sqrt(depth), 1 / depth};
  for (size_t k = 0; k < sizeof factors / sizeof *factors && !*stop; k++) {
    const assay_chain_step_t steps[ASSAY_CHAIN_STEPS] = {
        {.op_type = "Mul", .of = {ASSAY_START, ASSAY_NUMBER(factors[k])}}};
    assay_repair_t r = assay_repair_of(s, cause, ASSAY_EDIT_CHAIN);
    assay_chain_edit(&r.edits[0], steps, s->out[0]);
    snprintf(r.text, sizeof r.text, "scores times %.7g, of a depth of %.0f", factors[k], depth);
    ASSAY_TRY(assay_offer(t, &r, stop));
  }
  return NULL;
}
