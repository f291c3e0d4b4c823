// Forms that exporters are known to get wrong, as they write them: each with its source.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "diagnose/causes/chains.h"
#include "diagnose/causes/surroundings.h"
#include "diagnose/proposals.h"

// ---- forms of GELU -----------------------------------------------------------------------------

// In each, the node's output is put together from u, what the function reads, or from x.
// Source: D. Hendrycks and K. Gimpel, 2016: erf, tanh and 1.702 forms; that converters take one for
// another: apple/coremltools pull request 2863, apache/tvm issue 18750.
typedef struct form {
  const char *op, *text;
  double scale;  // u is x times this; 0: u is the tanh form's polynomial, and x is looked for
  assay_chain_step_t steps[ASSAY_CHAIN_STEPS];
} form_t;

static const form_t forms[] = {
    // tanh(2/sqrt(pi) u (1 + 0.08943 u^2)), u = x / sqrt(2)
    {"Erf",
     "the tanh form of GELU",
     0.70710678118654752,
     {{.op_type = "Mul", .of = {ASSAY_INPUT(0), ASSAY_INPUT(0)}},
      {.op_type = "Mul", .of = {ASSAY_STEP(0), ASSAY_NUMBER(0.08943)}},
      {.op_type = "Add", .of = {ASSAY_STEP(1), ASSAY_NUMBER(1)}},
      {.op_type = "Mul", .of = {ASSAY_INPUT(0), ASSAY_STEP(2)}},
      {.op_type = "Mul", .of = {ASSAY_STEP(3), ASSAY_NUMBER(1.1283791670955126)}},
      {.op_type = "Tanh", .of = {ASSAY_STEP(4)}}}},
    // 2 sigmoid(1.702 sqrt(2) u) - 1
    {"Erf",
     "the sigmoid form of GELU",
     0.70710678118654752,
     {{.op_type = "Mul", .of = {ASSAY_INPUT(0), ASSAY_NUMBER(2.4069914830328143)}},
      {.op_type = "Sigmoid", .of = {ASSAY_STEP(0)}},
      {.op_type = "Mul", .of = {ASSAY_STEP(1), ASSAY_NUMBER(2)}},
      {.op_type = "Add", .of = {ASSAY_STEP(2), ASSAY_NUMBER(-1)}}}},
    // (1 + erf(u / (1.702 sqrt(2)))) / 2, u = 1.702 x
    {"Sigmoid",
     "the erf form of GELU",
     1.702,
     {{.op_type = "Mul", .of = {ASSAY_INPUT(0), ASSAY_NUMBER(0.41545639880526902)}},
      {.op_type = "Erf", .of = {ASSAY_STEP(0)}},
      {.op_type = "Add", .of = {ASSAY_STEP(1), ASSAY_NUMBER(1)}},
      {.op_type = "Mul", .of = {ASSAY_STEP(2), ASSAY_NUMBER(0.5)}}}},
};

static assay_status_t offer_form(const assay_suspect_t* s, const char* cause, const char* text,
                                 const assay_chain_step_t* steps, const assay_trial_t* t,
                                 bool* stop) {
  assay_repair_t r = assay_repair_of(s, cause, ASSAY_EDIT_CHAIN);
  assay_chain_edit(&r.edits[0], steps, s->out[0]);
  snprintf(r.text, sizeof r.text, "%s in place of %s", text, s->node->op_type);
  return assay_offer(t, &r, stop);
}

// The value that the polynomial of the tanh form is of: what its cube and it are made from.
static const assay_value_t* argument_of(const assay_suspect_t* s) {
  enum { DEPTH = 6 };
  const assay_value_t* v = s->node->inputs[0];
  for (int i = 0; i < DEPTH && v && v->producer && !*v->producer->domain; i++) {
    const assay_node_t* n = v->producer;
    const assay_value_t* next = NULL;
    if (strcmp(n->op_type, "Pow") == 0) return n->inputs[0];
    const bool product = strcmp(n->op_type, "Mul") == 0, sum = strcmp(n->op_type, "Add") == 0;
    if ((!product && !sum) || n->n_inputs != 2) return NULL;
    if (n->inputs[0] == n->inputs[1]) return n->inputs[0];
    for (size_t k = 0; k < 2; k++)
      if (!assay_around_is_constant(n->inputs[k])) {
        // Of two, the one that is made last is the cube's side.
        const bool later =
            !next || (n->inputs[k]->producer &&
                      (!next->producer || s->around->order[n->inputs[k]->producer->id] >
                                              s->around->order[next->producer->id]));
        if (later) next = n->inputs[k];
      }
    v = next;
  }
  return NULL;
}

static assay_status_t propose_erf_for_tanh(const assay_suspect_t* s, const char* cause,
                                           const assay_trial_t* t, bool* stop) {
  const assay_value_t* x = argument_of(s);
  if (!x || !assay_around_tensor(s->around, x)) return NULL;
  const assay_chain_step_t steps[ASSAY_CHAIN_STEPS] = {
      {.op_type = "Mul", .of = {ASSAY_VALUE(x), ASSAY_NUMBER(0.70710678118654752)}},
      {.op_type = "Erf", .of = {ASSAY_STEP(0)}}};
  return offer_form(s, cause, "the erf form of GELU", steps, t, stop);
}

assay_status_t assay_propose_gelu(const assay_suspect_t* s, const char* cause,
                                  const assay_trial_t* t, bool* stop) {
  if (!s->around || *s->node->domain || s->n_in != 1) return NULL;
  for (size_t i = 0; i < sizeof forms / sizeof *forms && !*stop; i++)
    if (strcmp(forms[i].op, s->node->op_type) == 0)
      ASSAY_TRY(offer_form(s, cause, forms[i].text, forms[i].steps, t, stop));
  if (strcmp(s->node->op_type, "Tanh") == 0 && !*stop)
    return propose_erf_for_tanh(s, cause, t, stop);
  return NULL;
}

// ---- numbers within a function -----------------------------------------------------------------

// f(k x), or f(k x) / k, where f(x) stands. Sources: the beta of Softplus, pytorch/pytorch issue
// 64811; the sigmoid form of GELU, 1.702 (D. Hendrycks and K. Gimpel, 2016).
typedef struct within {
  const char* op;
  bool divided;
  double numbers[8];
} within_t;

static const within_t within[] = {
    {"Softplus", true, {2, 0.5, 3, 5, 10, 20, 4, 0.1}},
    {"Sigmoid", false, {1.702, 1 / 1.702, 2, 0.5, -1}},
    {"Tanh", false, {0.5, 2, 2. / 3}},
};

static assay_status_t offer_within(const assay_suspect_t* s, const char* cause, const within_t* w,
                                   double number, const assay_trial_t* t, bool* stop) {
  const assay_chain_step_t before[ASSAY_CHAIN_STEPS] = {
      {.op_type = "Mul", .of = {ASSAY_START, ASSAY_NUMBER(number)}}};
  const assay_chain_step_t after[ASSAY_CHAIN_STEPS] = {
      {.op_type = "Mul", .of = {ASSAY_START, ASSAY_NUMBER(1 / number)}}};
  assay_repair_t r = assay_repair_of(s, cause, ASSAY_EDIT_CHAIN);
  assay_chain_edit(&r.edits[0], before, s->in[0]);
  r.edits[0].at_input = true;
  if (w->divided) assay_chain_edit(&r.edits[r.n_edits++], after, s->out[0]);
  snprintf(r.text, sizeof r.text, "%s of %.7g times what it reads%s", w->op, number,
           w->divided ? ", divided by that" : "");
  return assay_offer(t, &r, stop);
}

assay_status_t assay_propose_within(const assay_suspect_t* s, const char* cause,
                                    const assay_trial_t* t, bool* stop) {
  if (*s->node->domain || s->n_in != 1) return NULL;
  for (size_t i = 0; i < sizeof within / sizeof *within; i++)
    for (size_t k = 0; k < 8 && within[i].numbers[k] != 0 && !*stop; k++)
      if (strcmp(within[i].op, s->node->op_type) == 0)
        ASSAY_TRY(offer_within(s, cause, &within[i], within[i].numbers[k], t, stop));
  return NULL;
}

// ---- variances ---------------------------------------------------------------------------------

// A mean over n that was over n - 1, and the other way: torch.var divides by n - 1.
// Source: pytorch/pytorch pull request 45678, vadimkantorov/convasr pull request 64.
assay_status_t assay_propose_unbiased(const assay_suspect_t* s, const char* cause,
                                      const assay_trial_t* t, bool* stop) {
  if (!s->around || strcmp(s->node->op_type, "ReduceMean") != 0 || !s->in[0] || !s->out[0])
    return NULL;
  const double n = (double)s->in[0]->size / (double)(s->out[0]->size > 0 ? s->out[0]->size : 1);
  const double factors[] = {n / (n - 1), (n - 1) / n};
  for (size_t i = 0; n > 1 && i < 2 && !*stop; i++) {
    const assay_chain_step_t steps[ASSAY_CHAIN_STEPS] = {
        {.op_type = "Mul", .of = {ASSAY_START, ASSAY_NUMBER(factors[i])}}};
    assay_repair_t r = assay_repair_of(s, cause, ASSAY_EDIT_CHAIN);
    assay_chain_edit(&r.edits[0], steps, s->out[0]);
    snprintf(r.text, sizeof r.text, "over %.0f %s: times %.7g", i ? n : n - 1,
             i ? "where it is over one less" : "elements, not all", factors[i]);
    ASSAY_TRY(assay_offer(t, &r, stop));
  }
  return NULL;
}

// ---- recurrent layers --------------------------------------------------------------------------

// The functions of a recurrent layer's gates. Sources: onnx/tensorflow-onnx pull request 2001 (hard
// sigmoid) and issue 2211 (dropped in both directions), onnx/keras-onnx pull request 554
// (softsign).
typedef struct functions {
  const char* what;
  const char *gate, *cell, *hidden;
} functions_t;

static const functions_t functions[] = {
    {"Sigmoid, Tanh, Tanh", "Sigmoid", "Tanh", "Tanh"},
    {"HardSigmoid, Tanh, Tanh", "HardSigmoid", "Tanh", "Tanh"},
    {"Sigmoid, Relu, Relu", "Sigmoid", "Relu", "Relu"},
    {"Sigmoid, Softsign, Softsign", "Sigmoid", "Softsign", "Softsign"},
    {"HardSigmoid, Softsign, Softsign", "HardSigmoid", "Softsign", "Softsign"},
    {"HardSigmoid, Relu, Relu", "HardSigmoid", "Relu", "Relu"},
    {"HardSigmoid, Softsign, Tanh", "HardSigmoid", "Softsign", "Tanh"},
    {"HardSigmoid, Tanh, Softsign", "HardSigmoid", "Tanh", "Softsign"},
    {"HardSigmoid, Relu, Tanh", "HardSigmoid", "Relu", "Tanh"},
    {"HardSigmoid, Tanh, Relu", "HardSigmoid", "Tanh", "Relu"},
    {"Sigmoid, Softsign, Tanh", "Sigmoid", "Softsign", "Tanh"},
    {"Sigmoid, Tanh, Softsign", "Sigmoid", "Tanh", "Softsign"},
    {"Sigmoid, Relu, Tanh", "Sigmoid", "Relu", "Tanh"},
    {"Sigmoid, Tanh, Relu", "Sigmoid", "Tanh", "Relu"},
    {"Sigmoid, Elu, Elu", "Sigmoid", "Elu", "Elu"},
    {"Tanh, Tanh, Tanh", "Tanh", "Tanh", "Tanh"},
};

static assay_status_t offer_functions(const assay_suspect_t* s, const char* cause,
                                      const functions_t* f, size_t each, size_t directions,
                                      const assay_trial_t* t, bool* stop) {
  assay_repair_t r = assay_repair_of(s, cause, ASSAY_EDIT_ATTR);
  const char* names[] = {f->gate, f->cell, f->hidden};
  for (size_t d = 0; d < directions; d++)
    for (size_t k = 0; k < each; k++) {
      const char* name = names[each == 1 ? 1 : k];
      r.edits[0].functions[d * each + k] = (assay_string_t){name, strlen(name)};
    }
  r.edits[0].attr = (assay_attr_t){.name = "activations",
                                   .type = ASSAY_ATTR_STRINGS,
                                   .n = each * directions,
                                   .doc = "",
                                   .ref = ""};
  snprintf(r.text, sizeof r.text, "activations of each direction: %s", f->what);
  return assay_offer(t, &r, stop);
}

assay_status_t assay_propose_functions(const assay_suspect_t* s, const char* cause,
                                       const assay_trial_t* t, bool* stop) {
  const char* op = s->node->op_type;
  const size_t each = strcmp(op, "LSTM") == 0  ? 3
                      : strcmp(op, "GRU") == 0 ? 2
                      : strcmp(op, "RNN") == 0 ? 1
                                               : 0;
  if (!each) return NULL;
  const size_t directions = assay_attr_is(s->node, "direction", "bidirectional") ? 2 : 1;
  for (size_t i = 0; i < sizeof functions / sizeof *functions && !*stop; i++) {
    if (each < 3 && strcmp(functions[i].cell, functions[i].hidden) != 0) continue;
    if (each < 2 && strcmp(functions[i].gate, "Sigmoid") != 0) continue;
    ASSAY_TRY(offer_functions(s, cause, &functions[i], each, directions, t, stop));
  }
  return NULL;
}

static bool has_function(const assay_node_t* n, const char* name) {
  size_t count = 0;
  const assay_string_t* list = assay_attr_strings(n, "activations", &count);
  for (size_t i = 0; list && i < count; i++)
    if (list[i].len == strlen(name) && strncmp(list[i].text, name, list[i].len) == 0) return true;
  return false;
}

// The alphas that are the default where no list says them: 0.2 of each HardSigmoid. Returns how
// many; 0: other functions have alphas as well.
static size_t fill_alphas(const assay_node_t* n, float* out) {
  static const char* const others[] = {"LeakyRelu",  "Elu",    "ThresholdedRelu",
                                       "ScaledTanh", "Affine", NULL};
  size_t count = 0, used = 0;
  const assay_string_t* list = assay_attr_strings(n, "activations", &count);
  for (const char* const* name = others; *name; name++)
    if (has_function(n, *name)) return 0;
  for (size_t i = 0; i < count && used < ASSAY_EDIT_FUNCTIONS; i++)
    if (list[i].len == 11 && strncmp(list[i].text, "HardSigmoid", 11) == 0) out[used++] = 0.2F;
  return used;
}

// One number of a list, wherever it is there: another usual one (value), or fitted.
static assay_status_t offer_in_list(const assay_suspect_t* s, const char* cause, const char* attr,
                                    const float* list, size_t n, size_t at, bool fits, double value,
                                    const assay_trial_t* t, bool* stop) {
  assay_repair_t r = assay_repair_of(s, cause, ASSAY_EDIT_ATTR);
  r.edits[0].attr =
      (assay_attr_t){.name = attr, .type = ASSAY_ATTR_FLOATS, .n = n, .doc = "", .ref = ""};
  memcpy(r.edits[0].floats, list, n * sizeof *list);
  r.start = r.value = (double)list[at];
  r.fits = fits;
  if ((float)value == list[at] && !fits) return NULL;
  ASSAY_TRY(assay_repair_set_value(&r, fits ? r.start : value));
  return assay_offer(t, &r, stop);
}

// What the functions of a recurrent layer's gates are told: the steepness of HardSigmoid is 0.2 in
// ONNX and older Keras and 1/6 in PyTorch and Keras 3, tensorflow/tensorflow issue 65381; slopes of
// LeakyRelu, Elu.
assay_status_t assay_propose_steepness(const assay_suspect_t* s, const char* cause,
                                       const assay_trial_t* t, bool* stop) {
  static const struct {
    const char *attr, *function;
    double numbers[4];
  } lists[] = {{"activation_alpha", "HardSigmoid", {1. / 6, 0.2, 0.25, 0.5}},
               {"activation_alpha", "LeakyRelu", {0.01, 0.1, 0.2, 0.3}},
               {"activation_alpha", "Elu", {1, 0.1, 0.5, 1.67326}},
               {"activation_beta", "HardSigmoid", {0.5, 0.25, 1, 0}}};
  for (size_t k = 0; k < sizeof lists / sizeof *lists && !*stop; k++) {
    float known[ASSAY_EDIT_FUNCTIONS] = {0};
    size_t n = 0;
    if (!has_function(s->node, lists[k].function)) continue;
    const float* list = assay_attr_floats(s->node, lists[k].attr, &n);
    if (n > ASSAY_EDIT_FUNCTIONS) continue;
    if (list && n) memcpy(known, list, n * sizeof *list);
    if (!n && k == 0) n = fill_alphas(s->node, known);
    for (size_t i = 0; i < n && !*stop; i++) {
      bool before = false;
      for (size_t j = 0; j < i; j++) before |= known[j] == known[i];
      for (size_t q = 0; q < 4 && !before && !*stop; q++)
        ASSAY_TRY(offer_in_list(s, cause, lists[k].attr, known, n, i, false, lists[k].numbers[q], t,
                                stop));
      if (!before && known[i] != 0 && !*stop)
        ASSAY_TRY(offer_in_list(s, cause, lists[k].attr, known, n, i, true, 0, t, stop));
    }
  }
  return NULL;
}

// ---- numbers that stand for something ----------------------------------------------------------

// Sources: HardSigmoid of 1/6 against ONNX's 0.2: PaddlePaddle/Paddle2ONNX issue 930; Keras'
// LeakyReLU of 0.3 and PyTorch's of 0.01 (their documentation); relu6 as Clip: pytorch/pytorch pull
// request 48423; epsilons of layers: PyTorch 1e-5, Keras 1e-3, TensorFlow's Bert 1e-12, T5 1e-6
// (the same); l2 normalization 1e-12.
typedef struct usual {
  const char *op, *attr;
  double numbers[8];
} usual_t;

static const usual_t attributes[] = {
    {"HardSigmoid", "alpha", {1. / 6, 0.2, 0.25, 0.5}},
    {"HardSigmoid", "beta", {0.5, 0.25, 1}},
    {"LeakyRelu", "alpha", {0.01, 0.1, 0.2, 0.3, 0.05, 0.02}},
    {"Elu", "alpha", {1, 0.1, 0.5, 1.67326}},
    {"ThresholdedRelu", "alpha", {1, 0.5, 0.1}},
    {"Clip", "max", {6, 1, 127, 255}},
    {"Clip", "min", {-1, -6, -3}},
    {"Gemm", "alpha", {1, 0.5, 2}},
};

// Thresholds of detectors: TensorFlow's and PyTorch's object detection, ultralytics/ultralytics
// (their defaults); that converters lose them: pytorch/pytorch pull request 134827.
static const struct {
  const char* op;
  size_t input;
  double numbers[10];
} operands[] = {
    {"NonMaxSuppression", 3, {0.5, 0.45, 0.6, 0.65, 0.7, 0.4, 0.3, 0.55, 0.75, 0.8}},
    {"NonMaxSuppression", 4, {0.25, 0.05, 0.001, 0.01, 0.1, 0.3, 0.5, 0.2, 0.4, 0.15}},
};

static const double epsilons[] = {1e-5, 1e-6, 1e-3, 1e-12, 1e-8, 1e-7, 1e-4, 1e-2, 1e-10, 0};
static const double bounds[] = {6, 1, 0, -1, 0.5, 20, 127, 255};

static assay_status_t offer_number(const assay_suspect_t* s, const char* cause, size_t input,
                                   double value, const assay_trial_t* t, bool* stop) {
  assay_tensor_t* y = NULL;
  const assay_tensor_t* x = s->in[input];
  if ((float)value == (float)assay_f64(x)[0]) return NULL;
  ASSAY_TRY(assay_tensor_create(x->type, x->rank, x->dims, &y));
  assay_f64(y)[0] = (double)(float)value;
  assay_repair_t r = assay_repair_of(s, cause, ASSAY_EDIT_CONSTANT);
  r.edits[0].input = input;
  r.edits[0].tensor = y;
  snprintf(r.text, sizeof r.text, "'%.100s' = %.7g instead of %.7g", s->node->inputs[input]->name,
           value, assay_f64(x)[0]);
  return assay_offer(t, &r, stop);
}

static assay_status_t offer_attribute(const assay_suspect_t* s, const char* cause, const char* name,
                                      double value, const assay_trial_t* t, bool* stop) {
  const assay_attr_spec_t* a = assay_schema_attr(s->node->schema, name);
  if (!a || a->type != ASSAY_ATTR_FLOAT) return NULL;
  assay_repair_t r = assay_repair_of(s, cause, ASSAY_EDIT_ATTR);
  r.edits[0].attr = (assay_attr_t){.name = a->name, .type = a->type, .n = 1, .doc = "", .ref = ""};
  r.start = assay_attr_f64(s->node, a->name, a->has_default ? a->f : 0);
  if ((float)value == (float)r.start) return NULL;
  ASSAY_TRY(assay_repair_set_value(&r, value));
  return assay_offer(t, &r, stop);
}

assay_status_t assay_propose_known_number(const assay_suspect_t* s, const char* cause,
                                          const assay_trial_t* t, bool* stop) {
  static const double SMALL = 0.02;  // what is added and is not more is an epsilon
  const char* op = s->node->op_type;
  for (size_t i = 0; s->node->schema && i < sizeof attributes / sizeof *attributes; i++) {
    if (strcmp(attributes[i].op, op) != 0) continue;
    for (size_t k = 0; k < 8 && attributes[i].numbers[k] != 0 && !*stop; k++)
      ASSAY_TRY(offer_attribute(s, cause, attributes[i].attr, attributes[i].numbers[k], t, stop));
  }
  const bool bounded = strcmp(op, "Clip") == 0 || strcmp(op, "Min") == 0 || strcmp(op, "Max") == 0;
  for (size_t i = 0; i < s->n_in && !*stop; i++) {
    const assay_tensor_t* x = s->in[i];
    if (!assay_around_is_constant(s->node->inputs[i]) || !x || x->kind != ASSAY_KIND_TENSOR ||
        x->store != ASSAY_STORE_F64 || x->size != 1)
      continue;
    const bool small = fabs(assay_f64(x)[0]) < SMALL && !bounded;
    if (small && (strcmp(op, "Add") == 0 || strcmp(op, "Pow") == 0))
      for (size_t k = 0; k < sizeof epsilons / sizeof *epsilons && !*stop; k++)
        ASSAY_TRY(offer_number(s, cause, i, epsilons[k], t, stop));
    for (size_t o = 0; o < sizeof operands / sizeof *operands; o++)
      for (size_t k = 0; k < 10 && operands[o].input == i && !*stop; k++)
        if (strcmp(op, operands[o].op) == 0)
          ASSAY_TRY(offer_number(s, cause, i, operands[o].numbers[k], t, stop));
    for (size_t k = 0; bounded && k < sizeof bounds / sizeof *bounds && !*stop; k++)
      ASSAY_TRY(offer_number(s, cause, i, bounds[k], t, stop));
  }
  return NULL;
}
