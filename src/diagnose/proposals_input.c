// Proposals that change the constants that a node reads, or which operator it is.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "diagnose/proposals.h"

static bool is_float(const assay_tensor_t* t) {
  return t && t->kind == ASSAY_KIND_TENSOR && t->store == ASSAY_STORE_F64;
}

static bool same_dims(const assay_tensor_t* a, const assay_tensor_t* b) {
  return a->rank == b->rank && !memcmp(a->dims, b->dims, (size_t)a->rank * sizeof *a->dims);
}

static const char* value_name(const assay_suspect_t* s, size_t i) {
  return s->node->inputs[i] ? s->node->inputs[i]->name : "";
}

// A repair that puts a tensor (taken over) in place of input i.
static assay_repair_t constant_repair(const assay_suspect_t* s, const char* cause, size_t i,
                                      assay_tensor_t* take) {
  assay_repair_t r = assay_repair_of(s, cause, ASSAY_EDIT_CONSTANT);
  r.edits[0].input = i;
  r.edits[0].tensor = take;
  return r;
}

// ---- numbers in constants ----------------------------------------------------------------------

typedef struct constant_offer {
  const assay_suspect_t* s;
  const char* cause;
  const assay_trial_t* t;
  size_t input;
  const assay_tensor_t* now;
} constant_offer_t;

static assay_status_t emit_constant(void* user, const assay_numbers_t* x, bool* stop) {
  const constant_offer_t* o = user;
  assay_tensor_t* y = NULL;
  ASSAY_TRY(assay_tensor_vector_i64(o->now->type, (int64_t)x->n, x->at, &y));
  if (o->now->rank == 0) {
    assay_tensor_t* scalar = NULL;
    assay_status_t st = assay_tensor_view(y, 0, NULL, &scalar);
    assay_tensor_release(y);
    if (st) return st;
    y = scalar;
  }
  assay_repair_t r = constant_repair(o->s, o->cause, o->input, y);
  size_t used = (size_t)snprintf(r.text, sizeof r.text, "%s = [", x->name);
  for (size_t i = 0; i < x->n && used + 32 < sizeof r.text; i++)
    used += (size_t)snprintf(r.text + used, sizeof r.text - used, "%s%lld", i ? "," : "",
                             (long long)x->at[i]);
  snprintf(r.text + used, sizeof r.text - used, "]");
  return assay_offer(o->t, &r, stop);
}

assay_status_t assay_propose_constant_numbers(const assay_suspect_t* s, const char* cause,
                                              const assay_trial_t* t, bool* stop) {
  for (size_t i = 0; i < s->n_in && !*stop; i++) {
    assay_tensor_t* c = NULL;
    ASSAY_TRY(assay_suspect_constant(s, i, &c));
    assay_status_t st = NULL;
    if (c && c->store == ASSAY_STORE_I64 && c->rank <= 1 && c->size <= ASSAY_EDIT_NUMBERS) {
      assay_numbers_t x = {.name = assay_suspect_input_name(s, i),
                           .n = (size_t)c->size,
                           .rank = s->in[0] ? s->in[0]->rank : 0};
      if (c->size) memcpy(x.at, c->data, (size_t)c->size * sizeof *x.at);
      constant_offer_t o = {s, cause, t, i, c};
      st = assay_vary_numbers(&x, emit_constant, &o, stop);
    }
    assay_tensor_release(c);
    if (st) return st;
  }
  return NULL;
}

// ---- broadcasts --------------------------------------------------------------------------------

// An operand of one long dimension laid along another axis of the output.
assay_status_t assay_propose_broadcast(const assay_suspect_t* s, const char* cause,
                                       const assay_trial_t* t, bool* stop) {
  const bool pointwise = s->node->op && s->node->op->flags & ASSAY_OP_POINTWISE;
  if (!pointwise || s->n_in < 2 || !s->out[0] || s->out[0]->kind != ASSAY_KIND_TENSOR) return NULL;
  const assay_tensor_t* y = s->out[0];
  for (size_t i = 0; i < s->n_in; i++) {
    const assay_tensor_t* x = s->in[i];
    if (!is_float(x) || x->size < 2 || x->size == y->size) continue;
    int long_dims = 0, at = 0;
    for (int k = 0; k < x->rank; k++)
      if (x->dims[k] != 1) long_dims++, at = k + y->rank - x->rank;
    if (long_dims != 1) continue;
    for (int axis = 0; axis < y->rank && !*stop; axis++) {
      if (axis == at || (y->dims[axis] != x->size && y->dims[axis] != 1)) continue;
      assay_repair_t r = assay_repair_of(s, cause, ASSAY_EDIT_RESHAPE);
      r.edits[0].input = i;
      r.edits[0].rank = y->rank;
      for (int k = 0; k < y->rank; k++) r.edits[0].dims[k] = k == axis ? x->size : 1;
      snprintf(r.text, sizeof r.text, "'%.100s' of shape %.60s broadcast along axis %d, not %d",
               value_name(s, i), ASSAY_DIMS_TEXT(x), axis, at);
      ASSAY_TRY(assay_offer(t, &r, stop));
    }
  }
  return NULL;
}

// ---- weights -----------------------------------------------------------------------------------

enum { MANY = 1 << 24 };  // elements; larger constants are left alone

// y = x with its dims in the order `perm`, under the dims of x.
static void permute(const assay_tensor_t* x, const int* perm, assay_tensor_t* y) {
  int64_t stride[ASSAY_MAX_RANK], at[ASSAY_MAX_RANK] = {0}, step = 1, from = 0;
  for (int i = x->rank - 1; i >= 0; i--) stride[i] = step, step *= x->dims[i];
  for (int64_t i = 0; i < x->size; i++) {
    assay_f64(y)[i] = assay_f64(x)[from];
    for (int k = x->rank - 1; k >= 0; k--) {
      from += stride[perm[k]];
      if (++at[k] < x->dims[k]) break;
      from -= at[k] * stride[perm[k]];
      at[k] = 0;
    }
  }
}

// Two dims of the same size exchanged.
static assay_status_t offer_transposed(const assay_suspect_t* s, const char* cause, size_t input,
                                       const assay_tensor_t* x, int a, int b,
                                       const assay_trial_t* t, bool* stop) {
  int perm[ASSAY_MAX_RANK];
  for (int i = 0; i < x->rank; i++) perm[i] = i;
  perm[a] = b, perm[b] = a;
  assay_tensor_t* y = NULL;
  ASSAY_TRY(assay_tensor_create(x->type, x->rank, x->dims, &y));
  permute(x, perm, y);
  assay_repair_t r = constant_repair(s, cause, input, y);
  snprintf(r.text, sizeof r.text, "'%.100s' with dims %d and %d exchanged", value_name(s, input), a,
           b);
  return assay_offer(t, &r, stop);
}

assay_status_t assay_propose_transposed(const assay_suspect_t* s, const char* cause,
                                        const assay_trial_t* t, bool* stop) {
  for (size_t i = 0; i < s->n_in && !*stop; i++) {
    assay_tensor_t* x = NULL;
    ASSAY_TRY(assay_suspect_constant(s, i, &x));
    assay_status_t st = NULL;
    if (is_float(x) && x->size <= MANY)
      for (int a = 0; a < x->rank; a++)
        for (int b = a + 1; b < x->rank && !st && !*stop; b++)
          if (x->dims[a] == x->dims[b] && x->dims[a] > 1)
            st = offer_transposed(s, cause, i, x, a, b, t, stop);
    assay_tensor_release(x);
    if (st) return st;
  }
  return NULL;
}

assay_status_t assay_propose_scaled(const assay_suspect_t* s, const char* cause,
                                    const assay_trial_t* t, bool* stop) {
  for (size_t i = 0; i < s->n_in && !*stop; i++) {
    assay_tensor_t* x = NULL;
    ASSAY_TRY(assay_suspect_constant(s, i, &x));
    if (!is_float(x) || x->size > MANY || x->size == 0) {
      assay_tensor_release(x);
      continue;
    }
    assay_repair_t r = constant_repair(s, cause, i, x);
    r.fits = true;
    r.start = r.value = 1;
    ASSAY_TRY(assay_offer(t, &r, stop));
  }
  return NULL;
}

// A single number that was mistaken: by a factor, a sign, a power, or for another usual one.
assay_status_t assay_propose_usual_number(const assay_suspect_t* s, const char* cause,
                                          const assay_trial_t* t, bool* stop) {
  for (size_t i = 0; i < s->n_in && !*stop; i++) {
    assay_tensor_t* x = NULL;
    ASSAY_TRY(assay_suspect_constant(s, i, &x));
    const double now = is_float(x) && x->size == 1 ? assay_f64(x)[0] : 0;
    const double others[] = {2 * now,  now / 2,  -now,      1 / now,   now * now, sqrt(fabs(now)),
                             10 * now, now / 10, 1e3 * now, now / 1e3, 1,         2,
                             0.5,      3};
    assay_status_t st = NULL;
    for (size_t k = 0; now != 0 && k < sizeof others / sizeof *others && !st && !*stop; k++) {
      const double value = (double)(float)others[k];
      assay_tensor_t* y = NULL;
      if (!isfinite(value) || value == (double)(float)now || value == 0) continue;
      st = assay_tensor_create(x->type, x->rank, x->dims, &y);
      if (st) break;
      assay_f64(y)[0] = value;
      assay_repair_t r = constant_repair(s, cause, i, y);
      snprintf(r.text, sizeof r.text, "'%.100s' = %.7g instead of %.7g", value_name(s, i), value,
               now);
      st = assay_offer(t, &r, stop);
    }
    assay_tensor_release(x);
    if (st) return st;
  }
  return NULL;
}

// Calls f for each other initializer of the same type and shape as a constant input.
typedef assay_status_t constant_fn(const assay_suspect_t* s, const char* cause, size_t input,
                                   const assay_value_t* other, const assay_trial_t* t, bool* stop);

static assay_status_t for_each_like(const assay_suspect_t* s, const char* cause, constant_fn* f,
                                    const assay_trial_t* t, bool* stop) {
  enum { MAX = 40 };
  const assay_graph_t* g = s->model->graph;
  for (size_t i = 0; i < s->n_in && !*stop; i++) {
    const assay_value_t* now = s->node->inputs[i];
    if (!now || !now->constant || !is_float(s->in[i])) continue;
    int offered = 0;
    for (size_t k = 0; k < g->n_initializers && offered < MAX && !*stop; k++) {
      const assay_value_t* v = g->initializers[k];
      if (v == now || !v->constant || v->constant->kind != ASSAY_KIND_TENSOR ||
          v->constant->type != now->constant->type || !same_dims(v->constant, now->constant))
        continue;
      ASSAY_TRY(f(s, cause, i, v, t, stop));
      offered++;
    }
  }
  return NULL;
}

static assay_status_t offer_exchange(const assay_suspect_t* s, const char* cause, size_t input,
                                     const assay_value_t* other, const assay_trial_t* t,
                                     bool* stop) {
  const assay_value_t* now = s->node->inputs[input];
  assay_repair_t r = assay_repair_of(s, cause, ASSAY_EDIT_EXCHANGE);
  if (now->graph != s->model->graph) return NULL;
  r.edits[0].value = now;
  r.edits[0].other_value = other;
  snprintf(r.text, sizeof r.text, "constants '%.90s' and '%.90s' exchanged", now->name,
           other->name);
  return assay_offer(t, &r, stop);
}

assay_status_t assay_propose_exchange(const assay_suspect_t* s, const char* cause,
                                      const assay_trial_t* t, bool* stop) {
  return for_each_like(s, cause, offer_exchange, t, stop);
}

static assay_status_t offer_other(const assay_suspect_t* s, const char* cause, size_t input,
                                  const assay_value_t* other, const assay_trial_t* t, bool* stop) {
  assay_tensor_t* wide = NULL;
  ASSAY_TRY(assay_tensor_widen(other->constant, &wide));
  assay_repair_t r = constant_repair(s, cause, input, wide);
  snprintf(r.text, sizeof r.text, "'%.100s' in place of '%.100s'", other->name,
           value_name(s, input));
  return assay_offer(t, &r, stop);
}

// A stale one, or one that two nodes share by mistake.
assay_status_t assay_propose_other_constant(const assay_suspect_t* s, const char* cause,
                                            const assay_trial_t* t, bool* stop) {
  return for_each_like(s, cause, offer_other, t, stop);
}

// ---- gates of recurrent layers -----------------------------------------------------------------

// Blocks along axis 1 in another order; B holds two sets of them.
static assay_status_t reorder_gates(const assay_tensor_t* x, int gates, const int* order, int sets,
                                    assay_tensor_t** out) {
  ASSAY_TRY(assay_tensor_create(x->type, x->rank, x->dims, out));
  const int64_t inner = assay_dims_product(x->dims, 2, x->rank);
  const int64_t block = x->dims[1] / (gates * sets) * inner;
  for (int64_t d = 0; d < x->dims[0]; d++)
    for (int k = 0; k < sets; k++)
      for (int g = 0; g < gates; g++) {
        const int64_t base = (d * sets + k) * gates;
        memcpy(assay_f64(*out) + (base + g) * block, assay_f64(x) + (base + order[g]) * block,
               (size_t)block * sizeof(double));
      }
  return NULL;
}

static assay_status_t offer_gates(const assay_suspect_t* s, const char* cause, int gates,
                                  const int* order, const assay_trial_t* t, bool* stop) {
  assay_repair_t r = {.node = s->node, .cause = cause};
  for (size_t i = 1; i <= 3; i++) {
    assay_tensor_t *x = NULL, *y = NULL;
    assay_status_t st = assay_suspect_constant(s, i, &x);
    const int sets = i == 3 ? 2 : 1;
    if (!st && is_float(x) && x->rank >= 2 && x->dims[1] % (gates * sets) == 0)
      st = reorder_gates(x, gates, order, sets, &y);
    assay_tensor_release(x);
    if (st) return assay_repair_deinit(&r), st;
    if (!y) continue;
    assay_repair_edit_t* e = &r.edits[r.n_edits++];
    *e = (assay_repair_edit_t){.kind = ASSAY_EDIT_CONSTANT, .input = i, .tensor = y};
  }
  snprintf(r.text, sizeof r.text, "gates in the order %d,%d,%d", order[0], order[1], order[2]);
  if (gates == 4)
    snprintf(r.text, sizeof r.text, "gates in the order %d,%d,%d,%d", order[0], order[1], order[2],
             order[3]);
  return assay_offer(t, &r, stop);
}

// Source: ONNX LSTM (iofc) and GRU (zrh) against the orders of PyTorch and Keras.
assay_status_t assay_propose_gates(const assay_suspect_t* s, const char* cause,
                                   const assay_trial_t* t, bool* stop) {
  const int gates = strcmp(s->node->op_type, "LSTM") == 0  ? 4
                    : strcmp(s->node->op_type, "GRU") == 0 ? 3
                                                           : 0;
  if (!gates) return NULL;
  const int all = gates == 4 ? 256 : 27;
  for (int code = 0; code < all && !*stop; code++) {
    int order[4] = {0}, rest = code;
    unsigned seen = 0;
    bool same = true;
    for (int g = 0; g < gates; g++) {
      order[g] = rest % gates;
      rest /= gates;
      seen |= 1U << order[g];
      same = same && order[g] == g;
    }
    if (seen != (1U << gates) - 1 || same) continue;
    ASSAY_TRY(offer_gates(s, cause, gates, order, t, stop));
  }
  return NULL;
}

// ---- another operator --------------------------------------------------------------------------

// A function that was left out: an Identity stands where it was.
static const char* const functions[] = {"Relu",    "Sigmoid",   "Tanh",      "Sqrt",        "Abs",
                                        "Erf",     "Softplus",  "HardSwish", "Reciprocal",  "Exp",
                                        "Elu",     "LeakyRelu", "Neg",       "Gelu",        "Mish",
                                        "Softmax", "Floor",     "Swish",     "HardSigmoid", "Log"};

static const char* const alike[][6] = {
    {"Add", "Sub", "Mul", "Div"},
    {"Max", "Min"},
    {"Relu", "Identity", "Elu", "Selu", "Softplus", "Abs"},
    {"Sigmoid", "Tanh", "HardSigmoid", "Softsign"},
    {"Elu", "Celu", "Selu", "Relu", "LeakyRelu"},
    {"LeakyRelu", "Relu", "Elu"},
    {"Swish", "HardSwish", "Mish", "Gelu"},
    {"HardSwish", "Swish", "Mish", "Relu"},
    {"Floor", "Ceil", "Round"},
    {"Softmax", "LogSoftmax"},
    {"ReduceMean", "ReduceSum", "ReduceMax", "ReduceL2", "ReduceMin"},
    {"AveragePool", "MaxPool"},
    {"GlobalAveragePool", "GlobalMaxPool"},
    {"Greater", "GreaterOrEqual", "Less", "LessOrEqual"},
    {"And", "Or", "Xor"},
    {"Sin", "Cos"},
    {"Erf", "Tanh"},
    {"Exp", "Log"},
    {"Sqrt", "Reciprocal", "Identity"},
};

static assay_status_t offer_operator(const assay_suspect_t* s, const char* cause, const char* op,
                                     const assay_trial_t* t, bool* stop) {
  assay_repair_t r = assay_repair_of(s, cause, ASSAY_EDIT_OPERATOR);
  r.edits[0].op_type = op;
  snprintf(r.text, sizeof r.text, "%s in place of %s", op, s->node->op_type);
  return assay_offer(t, &r, stop);
}

assay_status_t assay_propose_operator(const assay_suspect_t* s, const char* cause,
                                      const assay_trial_t* t, bool* stop) {
  const char* now = s->node->op_type;
  if (*s->node->domain) return NULL;
  const bool identity = strcmp(now, "Identity") == 0;
  for (size_t k = 0; identity && k < sizeof functions / sizeof *functions && !*stop; k++)
    ASSAY_TRY(offer_operator(s, cause, functions[k], t, stop));
  for (size_t row = 0; row < sizeof alike / sizeof *alike; row++) {
    bool in_row = false;
    for (int k = 0; k < 6 && alike[row][k]; k++) in_row |= strcmp(alike[row][k], now) == 0;
    for (int k = 0; in_row && k < 6 && alike[row][k] && !*stop; k++) {
      if (strcmp(alike[row][k], now) != 0)
        ASSAY_TRY(offer_operator(s, cause, alike[row][k], t, stop));
    }
  }
  return NULL;
}

// A bound that is, or is not, counted in. Source: positions of causal masks.
assay_status_t assay_propose_comparison(const assay_suspect_t* s, const char* cause,
                                        const assay_trial_t* t, bool* stop) {
  static const char* const pairs[][2] = {{"Less", "LessOrEqual"}, {"Greater", "GreaterOrEqual"}};
  for (size_t i = 0; i < 2 && !*s->node->domain; i++)
    for (size_t k = 0; k < 2 && !*stop; k++)
      if (strcmp(s->node->op_type, pairs[i][k]) == 0)
        ASSAY_TRY(offer_operator(s, cause, pairs[i][1 - k], t, stop));
  return NULL;
}

// A Squeeze without axes takes every dimension of 1, also those that are 1 by chance.
assay_status_t assay_propose_squeeze(const assay_suspect_t* s, const char* cause,
                                     const assay_trial_t* t, bool* stop) {
  if (strcmp(s->node->op_type, "Squeeze") != 0 || s->n_in == 0 || !s->in[0]) return NULL;
  assay_repair_t r = assay_repair_of(s, cause, ASSAY_EDIT_BYPASS);
  snprintf(r.text, sizeof r.text, "left out: '%.100s' keeps its shape %.80s", value_name(s, 0),
           ASSAY_DIMS_TEXT(s->in[0]));
  return assay_offer(t, &r, stop);
}

assay_status_t assay_propose_bypass(const assay_suspect_t* s, const char* cause,
                                    const assay_trial_t* t, bool* stop) {
  if (s->n_out != 1 || !s->out[0] || s->out[0]->kind != ASSAY_KIND_TENSOR) return NULL;
  for (size_t i = 0; i < s->n_in && !*stop; i++) {
    const assay_tensor_t* x = s->in[i];
    if (!x || x->kind != ASSAY_KIND_TENSOR || x->type != s->out[0]->type) continue;
    // Squeeze and the like may be superfluous, too: as many elements are enough.
    if (x->size != s->out[0]->size) continue;
    assay_repair_t r = assay_repair_of(s, cause, ASSAY_EDIT_BYPASS);
    r.edits[0].input = i;
    snprintf(r.text, sizeof r.text, "left out: '%.100s' is handed on as it is", value_name(s, i));
    ASSAY_TRY(assay_offer(t, &r, stop));
  }
  return NULL;
}
