// What was exchanged: outputs of a node, such as the halves of a Split; the directions of a
// recurrent layer.
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "diagnose/proposals.h"

static bool are_alike(const assay_suspect_t* s, size_t a, size_t b) {
  const assay_tensor_t *x = s->out[a], *y = s->out[b];
  return s->node->outputs[a] && s->node->outputs[b] && x && y && x->kind == ASSAY_KIND_TENSOR &&
         assay_tensor_alike(x, y) && x->type == y->type;
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
  return NULL;
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
