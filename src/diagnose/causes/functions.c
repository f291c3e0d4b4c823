// Functions that were lost, or taken for another: of single numbers, of an axis, times what they
// read; a value that was rounded on its way; a matrix that lacks its diagonal.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "diagnose/causes/programs.h"
#include "diagnose/proposals.h"

static bool is_float(const assay_tensor_t* t) {
  return t && t->kind == ASSAY_KIND_TENSOR && t->store == ASSAY_STORE_F64 && t->size > 0;
}

static bool is_op(const assay_node_t* n, const char* op) {
  return n && !*n->domain && strcmp(n->op_type, op) == 0;
}

static bool is_one_of(const assay_node_t* n, const char* const* names) {
  for (; *names; names++)
    if (is_op(n, *names)) return true;
  return false;
}

static bool makes_floats(const assay_suspect_t* s) {
  return s->around && !*s->node->domain && s->n_out && s->node->outputs[0] && is_float(s->out[0]) &&
         !is_op(s->node, "Constant");
}

// ---- of single numbers -------------------------------------------------------------------------

typedef struct range {
  double low, high;
} range_t;

static range_t range_of(const assay_tensor_t* x) {
  range_t r = {HUGE_VAL, -HUGE_VAL};
  for (int64_t i = 0; i < x->size; i++) {
    r.low = fmin(r.low, assay_f64(x)[i]);
    r.high = fmax(r.high, assay_f64(x)[i]);
  }
  return r;
}

// Each is offered where it is defined for all numbers there, and would change them.
static const struct {
  const char *program, *text;
  double low, high;  // defined between
} functions[] = {
    {"x Sqrt", "the square root", 0, HUGE_VAL},
    {"x dup *", "the square", -HUGE_VAL, HUGE_VAL},
    {"x Exp", "Exp", -60, 60},
    {"x 1 + Log", "log(1 + x)", -0.999, HUGE_VAL},
    {"x Log", "Log", 1e-30, HUGE_VAL},
    {"x Abs", "Abs", -HUGE_VAL, HUGE_VAL},
    {"x Reciprocal", "Reciprocal", 1e-12, HUGE_VAL},
    {"x Floor", "Floor", -HUGE_VAL, HUGE_VAL},
    {"x Round", "Round", -HUGE_VAL, HUGE_VAL},
    {"1 x -", "1 - x", -1e-6, 1.000001},
};

// What stands between layers, not what only hands on.
static bool may_be_followed(const assay_suspect_t* s) {
  static const char* const ends[] = {"Conv",
                                     "ConvTranspose",
                                     "Gemm",
                                     "MatMul",
                                     "Add",
                                     "Sub",
                                     "Mul",
                                     "Div",
                                     "Sum",
                                     "ReduceMean",
                                     "ReduceSum",
                                     "ReduceMax",
                                     "ReduceL2",
                                     "Max",
                                     "Einsum",
                                     "Pow",
                                     "Sigmoid",
                                     "Softplus",
                                     "Relu",
                                     "Clip",
                                     "Sqrt",
                                     "ReduceSumSquare",
                                     "BatchNormalization",
                                     "LSTM",
                                     "GRU",
                                     "Exp",
                                     NULL};
  return is_one_of(s->node, ends);
}

assay_status_t assay_propose_function(const assay_suspect_t* s, const char* cause,
                                      const assay_trial_t* t, bool* stop) {
  if (!makes_floats(s) || !may_be_followed(s)) return NULL;
  const range_t r = range_of(s->out[0]);
  for (size_t i = 0; i < sizeof functions / sizeof *functions && !*stop; i++) {
    char text[80];
    if (r.low < functions[i].low || r.high > functions[i].high) continue;
    const assay_formula_terms_t terms = {.program = functions[i].program};
    snprintf(text, sizeof text, "%s after it", functions[i].text);
    ASSAY_TRY(assay_offer_program(s, cause, s->n_in, &terms, text, t, stop));
  }
  return NULL;
}

// ---- of an axis --------------------------------------------------------------------------------

static assay_status_t offer_softmax(const assay_suspect_t* s, const char* cause,
                                    const assay_value_t* from, int axis, const assay_trial_t* t,
                                    bool* stop) {
  const assay_formula_terms_t terms = {
      .program = "x softmax", .source = from, .axes = {axis}, .n_axes = 1};
  char text[120];
  snprintf(text, sizeof text, "Softmax along axis %d %s", axis,
           from ? "in place of it" : "after it");
  return assay_offer_program(s, cause, s->n_in, &terms, text, t, stop);
}

// Scores that exclude each other, and those that do not; weights that are summed with. Sources:
// onnx/sklearn-onnx issue 339, open-mmlab/mmaction2 issue 552.
assay_status_t assay_propose_softmax(const assay_suspect_t* s, const char* cause,
                                     const assay_trial_t* t, bool* stop) {
  static const char* const none[] = {"Softmax", "LogSoftmax", "Relu", "Exp", "Hardmax", NULL};
  static const char* const bounded[] = {"Sigmoid", "HardSigmoid", "Exp", "Tanh", NULL};
  const assay_node_t* const* readers = NULL;
  if (!makes_floats(s)) return NULL;
  const assay_tensor_t* y = s->out[0];
  const bool instead = is_one_of(s->node, bounded);
  for (int axis = y->rank - 1; axis >= 1 && instead && !*stop; axis--)
    if (y->dims[axis] > 1) ASSAY_TRY(offer_softmax(s, cause, s->node->inputs[0], axis, t, stop));
  if ((is_op(s->node, "Softmax") || is_op(s->node, "LogSoftmax")) && !*stop) {
    const assay_formula_terms_t terms = {.program = "x Sigmoid", .source = s->node->inputs[0]};
    ASSAY_TRY(assay_offer_program(s, cause, s->n_in, &terms, "Sigmoid in place of it", t, stop));
  }
  const size_t n = assay_around_readers(s->around, s->node->outputs[0], &readers);
  for (size_t i = 0; i < n; i++)
    if (is_one_of(readers[i], none)) return NULL;
  if (instead || is_one_of(s->node, none) || s->node->outputs[0]->is_output) return NULL;
  for (int axis = y->rank - 1; axis >= 1 && axis >= y->rank - 3 && !*stop; axis--)
    if (y->dims[axis] > 1) ASSAY_TRY(offer_softmax(s, cause, NULL, axis, t, stop));
  return NULL;
}

// ---- times what it reads -----------------------------------------------------------------------

// A gate without what it is to gate: x sigmoid(x), x relu6(x + 3), x tanh(softplus(x)). Source:
// huggingface/diffusers issue 1518.
assay_status_t assay_propose_product(const assay_suspect_t* s, const char* cause,
                                     const assay_trial_t* t, bool* stop) {
  static const char* const gates[] = {"Sigmoid",  "HardSigmoid", "Tanh",    "Relu", "Clip",
                                      "Softplus", "Erf",         "Softmax", "Exp",  "Elu",
                                      "Div",      "Mul",         "Add",     "Min",  NULL};
  enum { HOPS = 4 };
  if (!makes_floats(s) || !is_one_of(s->node, gates)) return NULL;
  const assay_node_t* n = s->node;
  for (int hops = 0; n && hops < HOPS && !*stop && is_one_of(n, gates); hops++) {
    const size_t at = assay_around_data_input(n);
    if (at >= n->n_inputs) return NULL;
    const assay_value_t* v = n->inputs[at];
    const assay_tensor_t* x = assay_around_tensor(s->around, v);
    if (!x || !assay_tensor_same_shape(x, s->out[0]) || x->type != s->out[0]->type) return NULL;
    const assay_formula_terms_t terms = {.program = "x v *", .value = v};
    char text[200];
    snprintf(text, sizeof text, "times '%.150s' after it", v->name);
    ASSAY_TRY(assay_offer_program(s, cause, s->n_in, &terms, text, t, stop));
    n = v->producer;
  }
  return NULL;
}

// ---- one of two --------------------------------------------------------------------------------

// Of two values one by a sign or by its size, not the larger: slopes that are below 0 or above 1,
// parts of two sides. Source: alibaba/heterogeneity-aware-lowering-and-optimization issue 163.
assay_status_t assay_propose_choice(const assay_suspect_t* s, const char* cause,
                                    const assay_trial_t* t, bool* stop) {
  static const char* const ops[] = {"Max", "Min", NULL};
  static const struct {
    const char *program, *text;
  } choices[] = {
      {"x 0 > x v where", "the first of what it reads where that is above 0, else the second"},
      {"v 0 > v x where", "the second of what it reads where that is above 0, else the first"},
      {"x 0 > v x where", "the second of what it reads where the first is above 0, else that"},
      {"v 0 > x v where", "the first of what it reads where the second is above 0, else that"},
      {"x Abs v Abs > x v where", "what is farther from 0 of what it reads"},
      {"x Abs v Abs > v x where", "what is nearer to 0 of what it reads"},
  };
  if (!makes_floats(s) || !is_one_of(s->node, ops) || s->n_in != 2) return NULL;
  if (!s->node->inputs[0] || !s->node->inputs[1] || !is_float(s->in[0]) || !is_float(s->in[1]))
    return NULL;
  if (s->in[0]->size == 1 || s->in[1]->size == 1) return NULL;
  for (size_t i = 0; i < sizeof choices / sizeof *choices && !*stop; i++) {
    const assay_formula_terms_t terms = {
        .program = choices[i].program, .source = s->node->inputs[0], .value = s->node->inputs[1]};
    ASSAY_TRY(assay_offer_program(s, cause, s->n_in, &terms, choices[i].text, t, stop));
  }
  return NULL;
}

// ---- rounded on the way ------------------------------------------------------------------------

// A Cast to integers, or to a narrower float, and one back: the second reads what the first does.
// Source: roboflow/supervision issue 2515.
assay_status_t assay_propose_unrounded(const assay_suspect_t* s, const char* cause,
                                       const assay_trial_t* t, bool* stop) {
  if (!makes_floats(s) || !is_op(s->node, "Cast")) return NULL;
  const assay_node_t* first = s->node->inputs[0]->producer;
  const assay_tensor_t* x =
      is_op(first, "Cast") ? assay_around_tensor(s->around, first->inputs[0]) : NULL;
  if (!x || x->type != s->out[0]->type) return NULL;
  assay_repair_t r = assay_repair_of(s, cause, ASSAY_EDIT_INPUT);
  r.edits[0].value = first->inputs[0];
  r.beside[r.n_beside++] = first;
  snprintf(r.text, sizeof r.text, "'%.150s' without the Cast of '%.40s'", first->inputs[0]->name,
           first->label);
  return assay_offer(t, &r, stop);
}

// ---- a diagonal --------------------------------------------------------------------------------

// Whether each matrix of the last two dimensions has the same number on its diagonal.
static bool has_diagonal(const assay_tensor_t* x, double number) {
  const int64_t n = x->dims[x->rank - 1];
  for (int64_t m = 0; m < x->size / (n * n); m++)
    for (int64_t i = 0; i < n; i++)
      if (assay_f64(x)[(m * n + i) * n + i] != number) return false;
  return true;
}

static assay_status_t offer_identity(const assay_suspect_t* s, const char* cause, size_t input,
                                     const assay_tensor_t* x, bool lacks, const assay_trial_t* t,
                                     bool* stop) {
  const int64_t n = x->dims[x->rank - 1], dims[] = {n, n};
  const assay_value_t* v = input < s->n_in ? s->node->inputs[input] : s->node->outputs[0];
  assay_tensor_t* eye = NULL;
  char text[200];
  ASSAY_TRY(assay_tensor_create(x->type, 2, dims, &eye));
  for (int64_t i = 0; i < n; i++) assay_f64(eye)[i * n + i] = 1;
  const assay_formula_terms_t terms = {.program = lacks ? "x c +" : "x c -", .c = eye};
  snprintf(text, sizeof text, "'%.150s' %s the identity", v->name, lacks ? "plus" : "less");
  assay_status_t st = assay_offer_program(s, cause, input, &terms, text, t, stop);
  assay_tensor_release(eye);
  return st;
}

// Who is whose neighbour: nobody their own, or everybody. Source: pyg-team/pytorch_geometric issue
// 6251; a residual as part of a matrix.
assay_status_t assay_propose_diagonal(const assay_suspect_t* s, const char* cause,
                                      const assay_trial_t* t, bool* stop) {
  enum { LARGEST = 1024 };
  if (!s->around) return NULL;
  for (size_t i = 0; i <= s->n_in && !*stop; i++) {
    const bool before = i < s->n_in;
    const assay_tensor_t* x = before ? s->in[i] : s->n_out ? s->out[0] : NULL;
    const assay_value_t* v = before ? s->node->inputs[i] : s->n_out ? s->node->outputs[0] : NULL;
    // What a node makes is mended after it, a constant or an input of the model before its reader.
    if (!v || !is_float(x) || x->rank < 2 || (before && v->producer)) continue;
    const int64_t n = x->dims[x->rank - 1];
    if (n < 3 || n > LARGEST || x->dims[x->rank - 2] != n) continue;
    const bool given = before && !assay_around_is_constant(v) && range_of(x).low >= 0;
    if (given || has_diagonal(x, 0)) ASSAY_TRY(offer_identity(s, cause, i, x, true, t, stop));
    if (!*stop && has_diagonal(x, 1)) ASSAY_TRY(offer_identity(s, cause, i, x, false, t, stop));
  }
  return NULL;
}
