// Activations and reductions whose shape hangs on an attribute.
#include <string.h>

#include "ranges/range.h"

static assay_status_t run_as(assay_range_node_t* c, const char* signs, bool turns, double turn) {
  const assay_range_row_t* const kept = c->row;
  assay_range_row_t row = *kept;
  row.signs = signs;
  row.turns = turns;
  row.turn = turn;
  c->row = &row;
  assay_status_t st = assay_range_monotone(c);
  c->row = kept;
  return st;
}

// x above alpha, which is negative, and 0 elsewhere.
static assay_status_t thresholded(assay_range_node_t* c, double alpha) {
  if (!assay_range_is_float(&c->in[0])) return NULL;
  c->out[0] = assay_range_retain(&c->in[0]);
  ASSAY_TRY(assay_range_own(c, 0));
  for (int64_t i = 0; i < c->out[0].lo->size; i++) {
    double *lo = &assay_f64(c->out[0].lo)[i], *hi = &assay_f64(c->out[0].hi)[i];
    if (*lo > alpha) continue;
    *lo = *hi > alpha ? alpha : 0;
    *hi = fmax(*hi, 0);
  }
  return NULL;
}

// With the usual sign of alpha they grow; else they turn at 0, or jump.
assay_status_t assay_range_piecewise(assay_range_node_t* c) {
  const bool jumps = !strcmp(c->node->op_type, "ThresholdedRelu");
  const double alpha = assay_attr_f64(c->node, "alpha", 1),
               gamma = assay_attr_f64(c->node, "gamma", 1);
  if (alpha >= 0 && gamma >= 0) return run_as(c, "+", false, 0);
  if (jumps) return thresholded(c, alpha);
  return gamma < 0 ? NULL : run_as(c, "+", true, 0);
}

// x sigmoid(alpha x) turns at -1.278464543 / alpha.
assay_status_t assay_range_swish(assay_range_node_t* c) {
  const bool quick = !strcmp(c->node->op_type, "QuickGelu");
  const double alpha = assay_attr_f64(c->node, "alpha", quick ? 1.702F : 1);
  return alpha >= 0.5 ? run_as(c, "+", true, -1.278464543 / alpha) : NULL;
}

// Straight on both sides of 0.
assay_status_t assay_range_prelu(assay_range_node_t* c) { return run_as(c, "**", true, 0); }

assay_status_t assay_range_unit_circle(assay_range_node_t* c) {
  if (!assay_range_is_float(&c->in[0])) return NULL;
  ASSAY_TRY(assay_range_fill_output(c, 0, -1, 1));
  return NULL;
}

// The squares are added up before the root is taken.
assay_status_t assay_range_squares(assay_range_node_t* c) {
  ASSAY_TRY(assay_range_monotone(c));
  if (!assay_range_is_float(&c->out[0])) return NULL;
  const double max = assay_range_magnitude(&c->out[0]);
  assay_range_accumulates_to(c, max * max);
  return NULL;
}

// max + log(sum of exp(x - max)): its rounding is relative to the largest |x|, too.
assay_status_t assay_range_log_sum(assay_range_node_t* c) {
  ASSAY_TRY(assay_range_monotone(c));
  if (!assay_range_is_float(&c->out[0]) || !assay_range_is_float(&c->in[0])) return NULL;
  const double n = (double)c->in[0].lo->size / fmax(1, (double)c->out[0].lo->size);
  const double e = (assay_range_magnitude(&c->in[0]) + n + 4) * 8 * c->u;
  if (!isfinite(e)) return NULL;
  ASSAY_TRY(assay_range_own(c, 0));
  for (int64_t i = 0; i < c->out[0].lo->size; i++) {
    assay_f64(c->out[0].lo)[i] -= e;
    assay_f64(c->out[0].hi)[i] += e;
  }
  return NULL;
}
