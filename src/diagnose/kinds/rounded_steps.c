// Quantizers that a graph spells out: x / s, cut and moved by offsets, rounded, cut and moved back,
// times s. In any order, by tensor or by channel, with steps that are constants or taken at run.
// Sources: Jacob et al., Quantization and training of neural networks for efficient
// integer-arithmetic-only inference, 2018; Choi et al., PACT, 2018; Esser et al., Learned step size
// quantization, 2020.
#include "diagnose/kinds/rounded_steps.h"

#include <math.h>
#include <string.h>

// DEPTH: nodes between what rounds and a step. FACTORS: steps that are looked at on one side.
enum { DEPTH = 8, FACTORS = 4 };

static bool is_op(const assay_node_t* n, const char* op_type) {
  return n && !*n->domain && strcmp(n->op_type, op_type) == 0;
}

static bool is_float(const assay_value_t* v) {
  return v && v->type && v->type->kind == ASSAY_KIND_TENSOR && assay_type_is_float(v->type->elem);
}

// To whole numbers: also a Cast to integers, of what is float.
static bool rounds(const assay_node_t* n) {
  if (!n->n_inputs || !n->n_outputs || !is_float(n->inputs[0]) || !n->outputs[0]) return false;
  if (is_op(n, "Cast"))
    return n->outputs[0]->type && assay_type_is_integer(n->outputs[0]->type->elem);
  return is_op(n, "Round") || is_op(n, "Floor") || is_op(n, "Ceil");
}

// Cuts, offsets, and what moves elements or changes their type: all within steps.
static bool passes_on(const assay_node_t* n) {
  static const char* const names[] = {"Clip",    "Min",     "Max",       "Add",     "Sub",
                                      "Relu",    "Cast",    "Identity",  "Reshape", "Transpose",
                                      "Squeeze", "Flatten", "Unsqueeze", "Where",   "Round"};
  bool is = false;
  for (size_t k = 0; n && k < sizeof names / sizeof *names; k++) is |= is_op(n, names[k]);
  return is;
}

// A step on one side of what rounds.
typedef struct factor {
  const assay_value_t *by, *steps;  // steps: what is in steps, the other input or the output
  bool divides;
} factor_t;

typedef struct factors {
  factor_t at[FACTORS];
  size_t n;
} factors_t;

static void add_factor(factors_t* f, const assay_value_t* by, const assay_value_t* steps,
                       bool divides) {
  if (f->n < FACTORS && by) f->at[f->n++] = (factor_t){by, steps, divides};
}

static void look_back(const assay_value_t* v, int depth, factors_t* f) {
  const assay_node_t* n = v ? v->producer : NULL;
  if (is_op(n, "Div")) {
    add_factor(f, n->inputs[1], v, true);
  } else if (is_op(n, "Mul")) {
    add_factor(f, n->inputs[0], v, false);
    add_factor(f, n->inputs[1], v, false);
  } else if (depth && passes_on(n)) {
    for (size_t i = 0; i < n->n_inputs; i++) look_back(n->inputs[i], depth - 1, f);
  }
}

static void look_on(const assay_graph_t* g, const assay_value_t* v, int depth, factors_t* f) {
  for (size_t i = 0; i < g->n_nodes; i++) {
    const assay_node_t* n = g->nodes[i];
    for (size_t k = 0; k < n->n_inputs; k++) {
      if (n->inputs[k] != v) continue;
      if (is_op(n, "Mul"))
        add_factor(f, n->inputs[1 - k], v, false);
      else if (is_op(n, "Div") && k == 0)
        add_factor(f, n->inputs[1], v, true);
      else if (depth && passes_on(n) && n->outputs[0])
        look_on(g, n->outputs[0], depth - 1, f);
    }
  }
}

// Whether one is made as a number over the other.
static bool is_inverse(const assay_value_t* a, const assay_value_t* b) {
  const assay_node_t* n = a->producer;
  return (is_op(n, "Reciprocal") && n->inputs[0] == b) || (is_op(n, "Div") && n->inputs[1] == b);
}

// Constants that undo each other: the same where one divides and the other does not.
static bool undoes(const assay_tensor_t* a, const assay_tensor_t* b, bool same) {
  static const double NEAR = 1e-3;
  if (!a || !b || a->store != ASSAY_STORE_F64 || b->store != ASSAY_STORE_F64 || a->size < 1 ||
      a->size != b->size)
    return false;
  for (int64_t i = 0; i < a->size; i++) {
    const double x = assay_f64(a)[i], y = assay_f64(b)[i];
    // A step is larger than 0; 1 is no step.
    if (!(x > 0) || !(y > 0) || (a->size == 1 && x == 1)) return false;
    if (!(fabs((same ? x / y : x * y) - 1) <= NEAR)) return false;
  }
  return true;
}

static assay_status_t are_a_pair(assay_rounded_made_t* made, const factor_t* a, const factor_t* b,
                                 bool* out) {
  const bool same = a->divides != b->divides;
  assay_tensor_t *x = NULL, *y = NULL;
  *out = same ? a->by == b->by && !assay_rounded_is_made(made, a->by)
              : is_inverse(a->by, b->by) || is_inverse(b->by, a->by);
  if (*out || !assay_rounded_is_made(made, a->by) || !assay_rounded_is_made(made, b->by))
    return NULL;
  assay_status_t st = assay_rounded_made_get(made, a->by, &x);
  if (!st) st = assay_rounded_made_get(made, b->by, &y);
  *out = !st && undoes(x, y, same);
  assay_tensor_release(x);
  assay_tensor_release(y);
  return st;
}

static assay_status_t add_node(const assay_node_t* n, assay_rounded_made_t* made,
                               assay_rounded_steps_t* out) {
  const bool at_run = !assay_rounded_is_made(made, n->outputs[0]);
  factors_t back = {0}, on = {0};
  look_back(n->inputs[0], DEPTH, &back);
  if (back.n) look_on(n->graph, n->outputs[0], DEPTH, &on);
  for (size_t i = 0; i < back.n; i++)
    for (size_t k = 0; k < on.n; k++) {
      const assay_value_t* steps = on.at[k].steps;
      bool pair = false;
      if (!is_float(steps) || out->before[steps->id]) continue;
      ASSAY_TRY(are_a_pair(made, &back.at[i], &on.at[k], &pair));
      if (!pair) continue;
      out->before[steps->id] = back.at[i].steps;
      out->is[steps->id] = at_run;
      out->n_before++;
      out->n += at_run;
    }
  return NULL;
}

assay_status_t assay_rounded_steps_list(const assay_model_t* model, assay_rounded_made_t* made,
                                        assay_rounded_steps_t* out) {
  const size_t n_values = (size_t)model->n_values + 1;
  *out = (assay_rounded_steps_t){0};
  ASSAY_TRY(assay_new_array(n_values, sizeof *out->before, &out->before));
  ASSAY_TRY(assay_new_array(n_values, sizeof *out->is, &out->is));
  for (size_t g = 0; g < model->n_graphs; g++)
    for (size_t i = 0; i < model->graphs[g]->n_nodes; i++)
      if (rounds(model->graphs[g]->nodes[i]))
        ASSAY_TRY(add_node(model->graphs[g]->nodes[i], made, out));
  return NULL;
}
