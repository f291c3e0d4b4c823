// What frameworks keep otherwise than ONNX in the gates of recurrent layers: the order of
// peepholes, and a number that the cell adds to a gate by itself.
#include <stdio.h>
#include <string.h>

#include "diagnose/proposals.h"

static assay_status_t float_constant(const assay_suspect_t* s, size_t input, int64_t blocks,
                                     assay_tensor_t** out) {
  ASSAY_TRY(assay_suspect_constant(s, input, out));
  const assay_tensor_t* x = *out;
  if (x && x->kind == ASSAY_KIND_TENSOR && x->store == ASSAY_STORE_F64 && x->rank == 2 &&
      x->dims[1] >= blocks && x->dims[1] % blocks == 0)
    return NULL;
  assay_tensor_release(*out);
  *out = NULL;
  return NULL;
}

// ---- peepholes ----------------------------------------------------------------------------------

// Sources: ONNX LSTM-14 (i o f); input, forget and output in TensorFlow, opencv/opencv issue 29931.
assay_status_t assay_propose_peepholes(const assay_suspect_t* s, const char* cause,
                                       const assay_trial_t* t, bool* stop) {
  enum { P = 7, GATES = 3 };
  static const int orders[][GATES] = {{0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
  static const char names[] = "iof";
  assay_tensor_t* x = NULL;
  assay_status_t st = NULL;
  if (*s->node->domain || strcmp(s->node->op_type, "LSTM") != 0 || s->n_in <= P) return NULL;
  ASSAY_TRY(float_constant(s, P, GATES, &x));
  for (size_t k = 0; x && k < sizeof orders / sizeof *orders && !st && !*stop; k++) {
    const int64_t h = x->dims[1] / GATES;
    assay_tensor_t* y = NULL;
    char text[60];
    st = assay_tensor_copy(x, &y);
    if (st) break;
    for (int64_t d = 0; d < x->dims[0]; d++)
      for (int g = 0; g < GATES; g++)
        memcpy(assay_f64(y) + (d * GATES + g) * h, assay_f64(x) + (d * GATES + orders[k][g]) * h,
               (size_t)h * sizeof(double));
    snprintf(text, sizeof text, "peepholes of %c,%c,%c as those of i,o,f", names[orders[k][0]],
             names[orders[k][1]], names[orders[k][2]]);
    st = assay_offer_constant(s, cause, P, y, text, t, stop);
  }
  assay_tensor_release(x);
  return st;
}

// ---- a number that the cell adds ---------------------------------------------------------------

// Sources: forget_bias of TensorFlow's BasicLSTMCell, malmaud/TensorFlow.jl issue 310;
// unit_forget_bias of Keras.
assay_status_t assay_propose_gate_bias(const assay_suspect_t* s, const char* cause,
                                       const assay_trial_t* t, bool* stop) {
  enum { B = 3 };
  static const struct { const char *op, *gates; } rows[] = {{"LSTM", "iofc"}, {"GRU", "zrh"}};
  const char* gates = NULL;
  assay_tensor_t* x = NULL;
  assay_status_t st = NULL;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    if (strcmp(s->node->op_type, rows[i].op) == 0) gates = rows[i].gates;
  if (!gates || *s->node->domain || s->n_in <= B) return NULL;
  const int64_t n = (int64_t)strlen(gates);
  ASSAY_TRY(float_constant(s, B, 2 * n, &x));
  for (int64_t g = 0; x && g < 2 * n && !st && !*stop; g++) {
    const int64_t h = x->dims[1] / (2 * n);
    assay_tensor_t* y = NULL;
    char text[60];
    st = assay_tensor_copy(x, &y);
    if (st) break;
    for (int64_t d = 0; d < x->dims[0]; d++)
      for (int64_t i = 0; i < h; i++)
        assay_f64(y)[d * x->dims[1] + g / 2 * h + i] += g % 2 ? -1 : 1;
    snprintf(text, sizeof text, "the bias of gate %c %s 1", gates[g / 2], g % 2 ? "less" : "plus");
    st = assay_offer_constant(s, cause, B, y, text, t, stop);
  }
  assay_tensor_release(x);
  return st;
}
