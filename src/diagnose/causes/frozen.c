// Constants that stand where a value was computed: what a tracer saw of its one sample. The inputs
// and constants that the value was made from are often still there, read by nobody or by nodes
// near.
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "diagnose/causes/chains.h"
#include "diagnose/causes/surroundings.h"
#include "diagnose/proposals.h"

enum { DATA = 8, CONSTANTS = 8, NEAR = 8 };

// What the value may have been made from.
typedef struct sources {
  const assay_value_t *data[DATA], *constants[CONSTANTS];
  size_t n_data, n_constants;
} sources_t;

static void add(const assay_value_t* v, const assay_value_t** list, size_t max, size_t* n) {
  bool known = *n == max;
  for (size_t i = 0; i < *n; i++) known |= list[i] == v;
  if (!known) list[(*n)++] = v;
}

static void add_source(const assay_suspect_t* s, const assay_value_t* v, sources_t* out) {
  const assay_tensor_t* x = v ? assay_around_tensor(s->around, v) : NULL;
  if (!x || v->is_output || v->graph != s->model->graph) return;
  if (assay_around_is_constant(v))
    add(v, out->constants, CONSTANTS, &out->n_constants);
  else if (assay_around_may_read(s->around, s->node, v))
    add(v, out->data, DATA, &out->n_data);
}

static bool is_unread(const assay_suspect_t* s, const assay_value_t* v) {
  const assay_node_t* const* readers = NULL;
  return v && !assay_around_readers(s->around, v, &readers);
}

// What nobody reads, then what nodes near the constant read.
static void find_sources(const assay_suspect_t* s, sources_t* out) {
  const assay_graph_t* g = s->model->graph;
  for (size_t i = 0; i < g->n_inputs; i++)
    if (is_unread(s, g->inputs[i])) add_source(s, g->inputs[i], out);
  for (size_t i = 0; i < g->n_nodes; i++)
    if (is_unread(s, g->nodes[i]->outputs[0])) add_source(s, g->nodes[i]->outputs[0], out);
  for (size_t i = 0; i < g->n_initializers; i++)
    if (is_unread(s, g->initializers[i])) add_source(s, g->initializers[i], out);
  const size_t here = s->around->order[s->node->id];
  for (size_t d = 1; d <= NEAR; d++)
    for (int side = 0; side < 2; side++) {
      if (side ? here + d >= g->n_nodes : d > here) continue;
      const assay_node_t* n = g->nodes[side ? here + d : here - d];
      for (size_t k = 0; k < n->n_inputs; k++) add_source(s, n->inputs[k], out);
    }
}

static assay_status_t offer(const assay_suspect_t* s, const char* cause, size_t input,
                            const assay_chain_step_t* step, const assay_value_t* a,
                            const assay_value_t* b, const assay_trial_t* t, bool* stop) {
  const assay_chain_step_t steps[ASSAY_CHAIN_STEPS] = {*step};
  assay_repair_t r = assay_repair_of(s, cause, ASSAY_EDIT_CHAIN);
  r.edits[0].at_input = true;
  r.edits[0].input = input;
  assay_chain_edit(&r.edits[0], steps, s->in[input]);
  snprintf(r.text, sizeof r.text, "%s of '%.80s' and '%.80s' in place of '%.50s'", step->op_type,
           a->name, b->name, s->node->inputs[input]->name);
  return assay_offer(t, &r, stop);
}

static bool lies_under(const assay_tensor_t* x, const assay_tensor_t* y) {
  if (x->rank > y->rank || x->type != y->type) return false;
  for (int i = 0; i < x->rank; i++)
    if (x->dims[i] != 1 && x->dims[i] != y->dims[i + y->rank - x->rank]) return false;
  return true;
}

// Whether rows of the table, one for each index, have the shape of y.
static bool looks_up(const assay_tensor_t* table, const assay_tensor_t* at,
                     const assay_tensor_t* y) {
  if (table->type != y->type || at->store != ASSAY_STORE_I64 || table->rank < 1) return false;
  if (at->rank + table->rank - 1 != y->rank) return false;
  for (int i = 0; i < at->rank; i++)
    if (at->dims[i] != y->dims[i]) return false;
  for (int i = 1; i < table->rank; i++)
    if (table->dims[i] != y->dims[at->rank + i - 1]) return false;
  return true;
}

static assay_status_t offer_pair(const assay_suspect_t* s, const char* cause, size_t input,
                                 const assay_value_t* u, const assay_value_t* c,
                                 const assay_trial_t* t, bool* stop) {
  static const char* const operators[] = {"Mul", "Sub", "Add", "Div"};
  assay_tensor_t *x = NULL, *wide = NULL;
  const assay_tensor_t* y = s->in[input];
  ASSAY_TRY(assay_tensor_widen(assay_around_tensor(s->around, u), &x));
  assay_status_t st = assay_tensor_widen(assay_around_tensor(s->around, c), &wide);
  const bool fits = !st && y->store == ASSAY_STORE_F64 && x->type == y->type &&
                    assay_tensor_same_shape(x, y) && lies_under(wide, y);
  const bool indexes = !st && looks_up(wide, x, y);
  assay_tensor_release(x);
  assay_tensor_release(wide);
  for (size_t k = 0; fits && k < sizeof operators / sizeof *operators && !st && !*stop; k++) {
    const assay_chain_step_t step = {.op_type = operators[k],
                                     .of = {ASSAY_VALUE(u), ASSAY_VALUE(c)}};
    st = offer(s, cause, input, &step, u, c, t, stop);
  }
  if (!indexes || st || *stop) return st;
  const assay_chain_step_t step = {.op_type = "Gather", .of = {ASSAY_VALUE(c), ASSAY_VALUE(u)}};
  return offer(s, cause, input, &step, c, u, t, stop);
}

// A value as it is, in place of the constant.
static assay_status_t offer_value(const assay_suspect_t* s, const char* cause, size_t input,
                                  const assay_value_t* u, const assay_trial_t* t, bool* stop) {
  const assay_tensor_t *x = assay_around_tensor(s->around, u), *y = s->in[input];
  if (x->type != y->type || !assay_tensor_same_shape(x, y)) return NULL;
  assay_repair_t r = assay_repair_of(s, cause, ASSAY_EDIT_INPUT);
  r.edits[0].input = input;
  r.edits[0].value = u;
  snprintf(r.text, sizeof r.text, "reads '%.90s' instead of the constant '%.90s'", u->name,
           s->node->inputs[input]->name);
  return assay_offer(t, &r, stop);
}

static assay_status_t offer_all(const assay_suspect_t* s, const char* cause, size_t input,
                                const sources_t* from, const assay_trial_t* t, bool* stop) {
  for (size_t a = 0; a < from->n_data && !*stop; a++) {
    ASSAY_TRY(offer_value(s, cause, input, from->data[a], t, stop));
    for (size_t b = 0; b < from->n_constants && !*stop; b++)
      if (from->constants[b] != s->node->inputs[input])
        ASSAY_TRY(offer_pair(s, cause, input, from->data[a], from->constants[b], t, stop));
  }
  return NULL;
}

// Weights of these are constants in every model.
static bool is_weight(const assay_node_t* n, size_t input) {
  static const char* const names[] = {"Conv",
                                      "ConvTranspose",
                                      "MatMul",
                                      "Gemm",
                                      "LSTM",
                                      "GRU",
                                      "RNN",
                                      "BatchNormalization",
                                      "InstanceNormalization",
                                      "LayerNormalization",
                                      "GroupNormalization",
                                      "PRelu"};
  for (size_t i = 0; input > 0 && i < sizeof names / sizeof *names; i++)
    if (strcmp(n->op_type, names[i]) == 0) return true;
  return strcmp(n->op_type, "Gather") == 0 && input == 0;
}

// Source: pytorch/pytorch issue 33443.
assay_status_t assay_propose_frozen(const assay_suspect_t* s, const char* cause,
                                    const assay_trial_t* t, bool* stop) {
  enum { SMALL = 4 };  // elements: fewer are parameters
  sources_t from = {0};
  bool is_known = false;
  for (size_t i = 0; s->around && i < s->n_in && !*stop; i++) {
    const assay_tensor_t* x = s->in[i];
    if (!x || x->kind != ASSAY_KIND_TENSOR || x->store > ASSAY_STORE_I64 || x->size < SMALL ||
        !x->rank || !assay_around_is_constant(s->node->inputs[i]) || is_weight(s->node, i))
      continue;
    if (!is_known) find_sources(s, &from);
    is_known = true;
    ASSAY_TRY(offer_all(s, cause, i, &from, t, stop));
  }
  return NULL;
}
