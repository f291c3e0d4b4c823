// What LinearAttention's evaluation and its rounding bound share.
#ifndef ASSAY_OPS_ATTENTION_LINEAR_ATTENTION_H_
#define ASSAY_OPS_ATTENTION_LINEAR_ATTENTION_H_

#include "ops/op.h"

typedef struct assay_linear_attention {
  int64_t batch, length, q_heads, kv_heads, d_k, d_v;
  bool gated, delta;
  double scale;
  const double *q, *k, *v;
  const double *decay, *beta;  // NULL: none
  int64_t decay_width, beta_width;
  double *y, *state;
} assay_linear_attention_t;

// The limits of y and of the state, where c->running is set; the state holds the one before.
assay_status_t assay_linear_attention_limits(const assay_eval_t *c,
                                             const assay_linear_attention_t *l) ASSAY_MUST_USE;

#endif  // ASSAY_OPS_ATTENTION_LINEAR_ATTENTION_H_
