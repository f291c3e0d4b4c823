// A recurrent layer, for RNN, GRU, LSTM and their quantized variants.
#ifndef ASSAY_OPS_RECURRENT_RECURRENT_H_
#define ASSAY_OPS_RECURRENT_RECURRENT_H_

#include "ops/math/activation_name.h"
#include "ops/matmul/gemm.h"

typedef enum assay_cell {
  ASSAY_CELL_RNN,   // one gate
  ASSAY_CELL_GRU,   // gates z r h
  ASSAY_CELL_LSTM,  // gates i o f c
} assay_cell_t;

typedef struct assay_recurrent {
  assay_cell_t cell;
  int directions;
  bool reverse;      // of a single direction; the second of two is always reversed
  bool batch_first;  // layout 1
  int64_t gates, length, batch, inputs, hidden;
  const double* x;                      // [length, batch, inputs], or [batch, length, inputs]
  assay_matrix_t w, r;                  // [inputs or hidden, gates * hidden] of the first direction
  int64_t w_step, r_step;               // elements to the second
  const double* bias;                   // [directions, 2 * gates * hidden]; NULL: zeros
  const int64_t* lengths;               // [batch], each 0 to length; NULL: all full
  const double *initial_h, *initial_c;  // as the states below; NULL: zeros
  const double* peepholes;              // [directions, 3 * hidden]; NULL: zeros
  assay_activation_t activations[6];    // three of each direction
  bool clips;
  double clip;
  bool couples_forget;       // LSTM: f = 1 - i
  bool linear_before_reset;  // GRU
  // Called on the whole input and on each state before it is multiplied (dynamic quantization):
  // makes y of n elements of x. NULL: they are multiplied as they are.
  void (*prepare)(const assay_eval_t* c, int64_t n, const double* x, double* y);
  double* y;          // [length, directions, batch, hidden], or [batch, length, directions,
                      // hidden]; zeroed; NULL: not wanted
  double *y_h, *y_c;  // [directions, batch, hidden], or [batch, directions, hidden]; or NULL
} assay_recurrent_t;

// Source: the equations of ONNX RNN, GRU, LSTM. Each product is one chain of sums (the input's
// terms, then the state's), then come peepholes, the W bias and the R bias, each rounded
// (assay_acc).
assay_status_t assay_recurrent_run(const assay_eval_t* c,
                                   const assay_recurrent_t* n) ASSAY_MUST_USE;

// The limits of the outputs, where c->running is set, in place of themselves (recurrent_bound.c).
assay_status_t assay_recurrent_limits(const assay_eval_t* c,
                                      const assay_recurrent_t* n) ASSAY_MUST_USE;

// Steps of batch element b, and the time that step s is about: a reversed sequence starts at its
// own end.
static inline int64_t assay_recurrent_length(const assay_recurrent_t* n, int64_t b) {
  return n->lengths ? n->lengths[b] : n->length;
}
static inline int64_t assay_recurrent_time(const assay_recurrent_t* n, int direction, int64_t s,
                                           int64_t b) {
  return n->reverse || direction == 1 ? assay_recurrent_length(n, b) - 1 - s : s;
}
// The most steps that any batch element has.
int64_t assay_recurrent_steps(const assay_recurrent_t* n);
// Where, in units of rows, the input's row is, the output's, and the states'.
static inline int64_t assay_recurrent_x_row(const assay_recurrent_t* n, int64_t t, int64_t b) {
  return n->batch_first ? b * n->length + t : t * n->batch + b;
}
static inline int64_t assay_recurrent_y_row(const assay_recurrent_t* n, int d, int64_t t,
                                            int64_t b) {
  return n->batch_first ? (b * n->length + t) * n->directions + d
                        : (t * n->directions + d) * n->batch + b;
}
static inline int64_t assay_recurrent_state_row(const assay_recurrent_t* n, int d, int64_t b) {
  return n->batch_first ? b * n->directions + d : d * n->batch + b;
}

// What the three operators and their relatives read alike. w_axis is the axis of W and R that the
// gates are on: 1 for [directions, gates, inputs], 2 for [directions, inputs, gates].
typedef struct assay_recurrent_inputs {
  const assay_tensor_t *x, *w, *r, *bias, *lengths, *initial_h, *initial_c, *peepholes;
} assay_recurrent_inputs_t;
assay_status_t assay_recurrent_read(const assay_eval_t* c, assay_cell_t cell, int w_axis,
                                    const assay_recurrent_inputs_t* in,
                                    assay_recurrent_t* out) ASSAY_MUST_USE;
// Makes the outputs Y, Y_h and Y_c that are wanted, and points *n at them.
assay_status_t assay_recurrent_outputs(assay_eval_t* c, assay_type_t type,
                                       assay_recurrent_t* n) ASSAY_MUST_USE;
assay_status_t assay_recurrent_infer(assay_infer_t* c, assay_cell_t cell,
                                     int w_axis) ASSAY_MUST_USE;

#endif  // ASSAY_OPS_RECURRENT_RECURRENT_H_
