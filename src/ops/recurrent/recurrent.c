// RNN, GRU, LSTM, and com.microsoft's DynamicQuantizeLSTM.
#include "ops/recurrent/recurrent.h"

#include "ops/families.h"
#include "ops/quant/dynamic_quantize.h"
#include "ops/running_bound.h"

// ---- RNN, GRU, LSTM ---------------------------------------------------------------------------

enum { X, W, R, BIAS, LENGTHS, INITIAL_H, INITIAL_C, PEEPHOLES, N_INPUTS };

// Source: ONNX RNN 1, 7, 14 (layout), 22; GRU 1, 3 (linear_before_reset), 7, 14, 22; LSTM 1, 7, 14,
// 22. The weights are read as they are stored; the rest is small and widened.
static assay_status_t eval_cell(assay_eval_t* c, assay_cell_t cell) {
  assay_tensor_t* wide[N_INPUTS] = {NULL};
  assay_status_t st = NULL;
  for (size_t i = 0; !st && i < N_INPUTS; i++) {
    if (!assay_eval_has(c, i)) continue;
    if (i == W || i == R) {
      wide[i] = assay_tensor_retain(c->in[i]);
    } else {
      st = assay_tensor_widen(c->in[i], &wide[i]);
    }
  }
  const assay_recurrent_inputs_t in = {wide[X],         wide[W],        wide[R],
                                       wide[BIAS],      wide[LENGTHS],  wide[INITIAL_H],
                                       wide[INITIAL_C], wide[PEEPHOLES]};
  assay_recurrent_t n;
  if (!st) st = assay_recurrent_read(c, cell, 1, &in, &n);
  if (!st) st = assay_recurrent_outputs(c, c->in[X]->type, &n);
  if (!st) st = assay_recurrent_run(c, &n);
  for (size_t i = 0; i < N_INPUTS; i++) assay_tensor_release(wide[i]);
  return st;
}

static assay_status_t rnn_infer(assay_infer_t* c) {
  return assay_recurrent_infer(c, ASSAY_CELL_RNN, 1);
}
static assay_status_t gru_infer(assay_infer_t* c) {
  return assay_recurrent_infer(c, ASSAY_CELL_GRU, 1);
}
static assay_status_t lstm_infer(assay_infer_t* c) {
  return assay_recurrent_infer(c, ASSAY_CELL_LSTM, 1);
}
static assay_status_t rnn_eval(assay_eval_t* c) { return eval_cell(c, ASSAY_CELL_RNN); }
static assay_status_t gru_eval(assay_eval_t* c) { return eval_cell(c, ASSAY_CELL_GRU); }
static assay_status_t lstm_eval(assay_eval_t* c) { return eval_cell(c, ASSAY_CELL_LSTM); }

// Limits may come in by the sequence and the initial states.
static assay_status_t bound_cell(assay_bound_t* c, assay_status_t (*eval)(assay_eval_t* c)) {
  static const size_t fixed[] = {W, R, BIAS, PEEPHOLES};
  for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++) {
    if (fixed[i] < c->n_in && c->in_error && c->in_error[fixed[i]].guaranteed)
      return ASSAY_NODE_ERROR(c->node, ASSAY_UNSUPPORTED, "it has no bound with rounded weights");
  }
  return assay_bound_running(c, eval);
}

static assay_status_t rnn_bound(assay_bound_t* c) { return bound_cell(c, rnn_eval); }
static assay_status_t gru_bound(assay_bound_t* c) { return bound_cell(c, gru_eval); }
static assay_status_t lstm_bound(assay_bound_t* c) { return bound_cell(c, lstm_eval); }

// Every weight is used once a token.
static void recurrent_cost(const assay_eval_t* c, assay_cost_t* out) {
  const assay_tensor_t* x = c->in[X];
  if (x->rank != 3) return;
  const double tokens = (double)x->dims[0] * (double)x->dims[1];
  out->flops = 2 * tokens * ((double)c->in[W]->size + (double)c->in[R]->size);
}

// ---- DynamicQuantizeLSTM ----------------------------------------------------------------------

enum { W_SCALE = 8, W_ZERO, R_SCALE, R_ZERO };

// The weights [directions, rows, columns] as numbers: (q - zero) * scale, by direction or by
// column.
static assay_status_t dequantize(const assay_eval_t* c, const char* name, size_t weight,
                                 size_t scale_input, size_t zero_input, assay_tensor_t** out) {
  const assay_tensor_t *q = c->in[weight], *scale = c->in[scale_input], *zero = c->in[zero_input];
  const int64_t groups = q->rank == 3 ? q->dims[0] * q->dims[2] : 0;
  if (q->rank != 3 || zero->size != scale->size ||
      (scale->size != q->dims[0] && scale->size != groups)) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                            "%s has shape %s, its scale %s and zero point %s; expected one of each "
                            "for each direction, or for each column",
                            name, ASSAY_DIMS_TEXT(q), ASSAY_DIMS_TEXT(scale),
                            ASSAY_DIMS_TEXT(zero));
  }
  assay_tensor_t* t = NULL;
  ASSAY_TRY(assay_tensor_create(ASSAY_TYPE_DOUBLE, 3, q->dims, &t));
  const bool by_column = scale->size == groups && groups != q->dims[0];
  for (int64_t i = 0; i < q->size; i++) {
    const int64_t d = i / (q->dims[1] * q->dims[2]);
    const int64_t g = by_column ? d * q->dims[2] + i % q->dims[2] : d;
    assay_f64(t)[i] = (double)(assay_i64(q)[i] - assay_i64(zero)[g]) * assay_f64(scale)[g];
  }
  *out = t;
  return NULL;
}

// Source: com.microsoft DynamicQuantizeLSTM 1; as onnxruntime does it, the whole input is quantized
// at once, and the whole state at each step.
static assay_status_t dynamic_lstm_eval(assay_eval_t* c) {
  assay_tensor_t *w = NULL, *r = NULL;
  assay_status_t st = dequantize(c, "W", W, W_SCALE, W_ZERO, &w);
  if (!st) st = dequantize(c, "R", R, R_SCALE, R_ZERO, &r);
  const assay_recurrent_inputs_t in = {
      .x = c->in[X],
      .w = w,
      .r = r,
      .bias = assay_eval_has(c, BIAS) ? c->in[BIAS] : NULL,
      .lengths = assay_eval_has(c, LENGTHS) ? c->in[LENGTHS] : NULL,
      .initial_h = assay_eval_has(c, INITIAL_H) ? c->in[INITIAL_H] : NULL,
      .initial_c = assay_eval_has(c, INITIAL_C) ? c->in[INITIAL_C] : NULL,
      .peepholes = assay_eval_has(c, PEEPHOLES) ? c->in[PEEPHOLES] : NULL};
  assay_recurrent_t n;
  if (!st) st = assay_recurrent_read(c, ASSAY_CELL_LSTM, 2, &in, &n);
  if (!st) st = assay_recurrent_outputs(c, c->in[X]->type, &n);
  if (!st) {
    n.prepare = assay_dynamic_quantize;
    st = assay_recurrent_run(c, &n);
  }
  assay_tensor_release(w);
  assay_tensor_release(r);
  return st;
}

// Where the weights themselves are uncertain there is none.
static assay_status_t dynamic_lstm_bound(assay_bound_t* c) {
  if (c->in[W]->store != ASSAY_STORE_I64 || c->in[R]->store != ASSAY_STORE_I64)
    return ASSAY_NODE_ERROR(c->node, ASSAY_UNSUPPORTED, "it has no bound for unquantized numbers");
  return assay_bound_running_exact(c, dynamic_lstm_eval);
}

static assay_status_t dynamic_lstm_infer(assay_infer_t* c) {
  return assay_recurrent_infer(c, ASSAY_CELL_LSTM, 2);
}

const assay_op_t assay_ops_recurrent[] = {
    {.domain = "",
     .name = "RNN",
     .since = 1,
     .flags = ASSAY_OP_PACKED | ASSAY_OP_CONTRACTS,
     .factors = 0x27,
     .infer = rnn_infer,
     .eval = rnn_eval,
     .bound = rnn_bound,
     .cost = recurrent_cost},
    {.domain = "",
     .name = "GRU",
     .since = 1,
     .flags = ASSAY_OP_PACKED | ASSAY_OP_CONTRACTS,
     .factors = 0x27,
     .infer = gru_infer,
     .eval = gru_eval,
     .bound = gru_bound,
     .cost = recurrent_cost},
    {.domain = "",
     .name = "LSTM",
     .since = 1,
     .flags = ASSAY_OP_PACKED | ASSAY_OP_CONTRACTS,
     .factors = 0x27,
     .infer = lstm_infer,
     .eval = lstm_eval,
     .bound = lstm_bound,
     .cost = recurrent_cost},
    {.domain = "com.microsoft",
     .name = "DynamicQuantizeLSTM",
     .since = 1,
     .flags = ASSAY_OP_QUANTIZES,
     .infer = dynamic_lstm_infer,
     .eval = dynamic_lstm_eval,
     .bound = dynamic_lstm_bound,
     .cost = recurrent_cost,
     .schema = "X:T, W:T2, R:T2, B?:T, sequence_lens?:T1, initial_h?:T, initial_c?:T, P?:T, "
               "W_scale:T, W_zero_point:T2, R_scale:T, R_zero_point:T2 -> Y?:T, Y_h?:T, Y_c?:T | "
               "activations:ss, activation_alpha:fs, activation_beta:fs, clip:f, "
               "direction:s=forward, hidden_size:i, input_forget:i=0 | "
               "T=float; T1=int32; T2=uint8 int8"},
    {0}};
