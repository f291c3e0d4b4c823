// What was exchanged: inputs of a node; its outputs, such as the halves of a Split; the directions
// of a recurrent layer, and what its two biases were taken for.
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "diagnose/proposals.h"

// ---- inputs in another order -------------------------------------------------------------------

// Three or four inputs of one shape in an order that no single exchange gives.
static assay_status_t offer_input_orders(const assay_suspect_t* s, const char* cause,
                                         const assay_trial_t* t, bool* stop) {
  enum { FEW = ASSAY_REPAIR_EDITS + 1 };
  int64_t order[FEW];
  const int n = (int)s->n_in;
  if (n < 3 || n > FEW || strcmp(s->node->op_type, "Concat") != 0) return NULL;
  for (int i = 0; i < n; i++) {
    order[i] = i;
    if (!s->in[i] || !assay_tensor_alike(s->in[i], s->in[0]) || s->in[i]->type != s->in[0]->type)
      return NULL;
  }
  while (!*stop && assay_next_permutation(order, n)) {
    assay_repair_t r = {.node = s->node, .cause = cause};
    int64_t now[FEW];
    for (int i = 0; i < n; i++) now[i] = i;
    for (int i = 0; i < n; i++) {
      int from = i;
      while (now[from] != order[i]) from++;
      if (from == i) continue;
      now[from] = now[i], now[i] = order[i];
      r.edits[r.n_edits++] =
          (assay_repair_edit_t){.kind = ASSAY_EDIT_SWAP, .input = (size_t)i, .other = (size_t)from};
    }
    if (r.n_edits < 2) continue;
    int used = snprintf(r.text, sizeof r.text, "inputs in the order ");
    for (int i = 0; i < n; i++)
      used += snprintf(r.text + used, sizeof r.text - (size_t)used, "%s%lld", i ? "," : "",
                       (long long)order[i]);
    ASSAY_TRY(assay_offer(t, &r, stop));
  }
  return NULL;
}

assay_status_t assay_propose_swap(const assay_suspect_t* s, const char* cause,
                                  const assay_trial_t* t, bool* stop) {
  enum { MAX = 32 };  // inputs of a Concat, say
  for (size_t i = 0; i < s->n_in; i++) {
    for (size_t k = i + 1; k < s->n_in && k < MAX && !*stop; k++) {
      if (!s->in[i] || !s->in[k] || s->in[i]->type != s->in[k]->type) continue;
      if (s->in[i]->kind != ASSAY_KIND_TENSOR || s->in[k]->kind != ASSAY_KIND_TENSOR) continue;
      assay_repair_t r = assay_repair_of(s, cause, ASSAY_EDIT_SWAP);
      r.edits[0].input = i, r.edits[0].other = k;
      snprintf(r.text, sizeof r.text, "inputs '%.80s' and '%.80s' exchanged",
               s->node->inputs[i]->name, s->node->inputs[k]->name);
      ASSAY_TRY(assay_offer(t, &r, stop));
    }
  }
  return *stop ? NULL : offer_input_orders(s, cause, t, stop);
}

// ---- outputs in another order ------------------------------------------------------------------

static bool are_alike(const assay_suspect_t* s, size_t a, size_t b) {
  const assay_tensor_t *x = s->out[a], *y = s->out[b];
  return s->node->outputs[a] && s->node->outputs[b] && x && y && x->kind == ASSAY_KIND_TENSOR &&
         assay_tensor_alike(x, y) && x->type == y->type;
}

// All of a few outputs in an order that no single exchange gives: a quaternion whose real part
// stands first or last. Source: facebookresearch/fairmotion issue 90.
static assay_status_t offer_orders(const assay_suspect_t* s, const char* cause,
                                   const assay_trial_t* t, bool* stop) {
  enum { FEW = 4 };
  int64_t order[FEW];
  const int n = (int)s->n_out;
  if (n < 3 || n > FEW) return NULL;
  for (int i = 0; i < n; i++) order[i] = i;
  for (int i = 1; i < n; i++)
    if (!are_alike(s, 0, (size_t)i)) return NULL;
  while (!*stop && assay_next_permutation(order, n)) {
    assay_repair_t r = assay_repair_of(s, cause, ASSAY_EDIT_OUTPUTS);
    int moved = 0;
    for (int i = 0; i < n; i++) moved += order[i] != i;
    if (moved == 2) continue;
    r.edits[0].rank = n;
    memcpy(r.edits[0].numbers, order, sizeof order);
    int used = snprintf(r.text, sizeof r.text, "outputs in the order ");
    for (int i = 0; i < n; i++)
      used += snprintf(r.text + used, sizeof r.text - (size_t)used, "%s%lld", i ? "," : "",
                       (long long)order[i]);
    ASSAY_TRY(assay_offer(t, &r, stop));
  }
  return NULL;
}

assay_status_t assay_propose_outputs(const assay_suspect_t* s, const char* cause,
                                     const assay_trial_t* t, bool* stop) {
  for (size_t a = 0; a < s->n_out && !*stop; a++)
    for (size_t b = a + 1; b < s->n_out && !*stop; b++) {
      if (!are_alike(s, a, b)) continue;
      assay_repair_t r = assay_repair_of(s, cause, ASSAY_EDIT_OUTPUTS);
      r.edits[0].input = a;
      r.edits[0].other = b;
      snprintf(r.text, sizeof r.text, "outputs '%.100s' and '%.100s' exchanged",
               s->node->outputs[a]->name, s->node->outputs[b]->name);
      ASSAY_TRY(assay_offer(t, &r, stop));
    }
  return *stop ? NULL : offer_orders(s, cause, t, stop);
}

static assay_status_t exchange_halves(const assay_tensor_t* x, assay_tensor_t** out) {
  ASSAY_TRY(assay_tensor_copy(x, out));
  const size_t half = (size_t)(x->size / 2);
  memcpy(assay_f64(*out), assay_f64(x) + half, half * sizeof(double));
  memcpy(assay_f64(*out) + half, assay_f64(x), half * sizeof(double));
  return NULL;
}

// Weights of the two directions of a recurrent layer.
assay_status_t assay_propose_directions(const assay_suspect_t* s, const char* cause,
                                        const assay_trial_t* t, bool* stop) {
  static const char* const operators[] = {"LSTM", "GRU", "RNN"};
  assay_repair_t r = {.node = s->node, .cause = cause};
  bool is_recurrent = false;
  for (size_t i = 0; i < sizeof operators / sizeof *operators; i++)
    is_recurrent |= strcmp(s->node->op_type, operators[i]) == 0;
  if (!is_recurrent || *s->node->domain) return NULL;
  for (size_t i = 1; i <= 3; i++) {
    assay_tensor_t *x = NULL, *y = NULL;
    assay_status_t st = assay_suspect_constant(s, i, &x);
    if (!st && x && x->store == ASSAY_STORE_F64 && x->rank >= 2 && x->dims[0] == 2)
      st = exchange_halves(x, &y);
    assay_tensor_release(x);
    if (st) return assay_tensor_release(y), assay_repair_deinit(&r), st;
    if (!y) continue;
    r.edits[r.n_edits++] =
        (assay_repair_edit_t){.kind = ASSAY_EDIT_CONSTANT, .input = i, .tensor = y};
  }
  if (r.n_edits < 2) return assay_repair_deinit(&r), NULL;
  snprintf(r.text, sizeof r.text, "the weights of the two directions exchanged");
  return assay_offer(t, &r, stop);
}

// ---- biases of recurrent layers ----------------------------------------------------------------

// What the bias of the inputs and that of the state are to be made of.
static const struct {
  const char* text;
  double of_inputs[2], of_state[2];  // parts of the one and the other
} biases[] = {
    {"the bias of the inputs alone", {1, 0}, {0, 0}},
    {"the bias of the state alone", {0, 0}, {0, 1}},
    {"half of both biases", {0.5, 0}, {0, 0.5}},
    {"the two biases exchanged", {0, 1}, {1, 0}},
    {"the bias of the inputs twice", {1, 0}, {1, 0}},
    {"the difference of the two biases as that of the inputs", {1, -1}, {0, 1}},
};

// B holds both, one after the other, of each direction. Source: onnx/keras-onnx issue 98.
assay_status_t assay_propose_recurrent_bias(const assay_suspect_t* s, const char* cause,
                                            const assay_trial_t* t, bool* stop) {
  enum { B = 3 };
  static const char* const operators[] = {"LSTM", "GRU", "RNN"};
  assay_tensor_t* x = NULL;
  bool is_recurrent = false;
  for (size_t i = 0; i < sizeof operators / sizeof *operators; i++)
    is_recurrent |= strcmp(s->node->op_type, operators[i]) == 0;
  if (!is_recurrent || *s->node->domain) return NULL;
  ASSAY_TRY(assay_suspect_constant(s, B, &x));
  assay_status_t st = NULL;
  const bool fits = x && x->store == ASSAY_STORE_F64 && x->rank == 2 && x->dims[1] % 2 == 0;
  for (size_t k = 0; fits && k < sizeof biases / sizeof *biases && !st && !*stop; k++) {
    const int64_t half = x->dims[1] / 2;
    assay_tensor_t* y = NULL;
    st = assay_tensor_copy(x, &y);
    if (st) break;
    for (int64_t d = 0; d < x->dims[0]; d++)
      for (int64_t i = 0; i < half; i++) {
        const double* from = assay_f64(x) + d * 2 * half + i;
        const double a = from[0], b = from[half];
        double* to = assay_f64(y) + d * 2 * half + i;
        to[0] = biases[k].of_inputs[0] * a + biases[k].of_inputs[1] * b;
        to[half] = biases[k].of_state[0] * a + biases[k].of_state[1] * b;
      }
    assay_repair_t r = assay_repair_of(s, cause, ASSAY_EDIT_CONSTANT);
    r.edits[0].input = B;
    r.edits[0].tensor = y;
    snprintf(r.text, sizeof r.text, "%s", biases[k].text);
    st = assay_offer(t, &r, stop);
  }
  assay_tensor_release(x);
  return st;
}
