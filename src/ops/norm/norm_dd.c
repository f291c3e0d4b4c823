// Sources: the texts of ONNX BatchNormalization-14, InstanceNormalization-22,
// GroupNormalization-21, LayerNormalization-17, RMSNormalization-23, MeanVarianceNormalization-13,
// LpNormalization-22.
#include "ops/norm/norm_dd.h"

static assay_dd_t square(assay_dd_t x) { return assay_dd_times(x, x); }

static const assay_pair_t* mean_of_squares(assay_dd_eval_t* c, const assay_pair_t* x,
                                           const bool* axes) {
  return assay_dd_mean(c, assay_dd_map1(c, square, x), axes);
}

// sqrt(variance + epsilon).
static const assay_pair_t* deviation(assay_dd_eval_t* c, const assay_pair_t* variance,
                                     double otherwise) {
  const assay_pair_t* epsilon = assay_dd_attr(c, "epsilon", otherwise);
  return assay_dd_map1(c, assay_dd_root, assay_dd_sum2(c, variance, epsilon));
}

// factor * x + summand; NULL: there is none.
static const assay_pair_t* applied(assay_dd_eval_t* c, const assay_pair_t* x,
                                   const assay_pair_t* factor, const assay_pair_t* summand) {
  const assay_pair_t* y = assay_dd_mul(c, x, factor);
  return summand ? assay_dd_sum2(c, y, summand) : y;
}

void assay_batch_norm_dd(assay_dd_eval_t* c, bool training) {
  const assay_pair_t *x = assay_dd_in(c, 0), *given[5];
  const int rank = x->high->rank;
  const bool spatial = assay_attr_i64(c->node, "spatial", 1) != 0;
  bool axes[ASSAY_MAX_RANK];
  for (int i = 0; i < rank; i++) axes[i] = i == 0 || (spatial && i != 1);
  for (size_t i = 1; i < 5; i++) {
    given[i] = assay_dd_in(c, i);
    if (spatial) given[i] = assay_dd_along(c, given[i], rank, 1);
  }
  const assay_pair_t *mean = given[3], *variance = given[4];
  if (training) {
    mean = assay_dd_mean(c, x, axes);
    variance = mean_of_squares(c, assay_dd_sub(c, x, mean), axes);
  }
  const assay_pair_t* d = assay_dd_sub(c, x, mean);
  const assay_pair_t* n = assay_dd_div(c, d, deviation(c, variance, 1e-5));
  assay_dd_put(c, 0, applied(c, n, given[1], given[2]));
  const assay_pair_t* momentum = assay_dd_attr(c, "momentum", 0.9);
  const assay_pair_t* rest = assay_dd_sub(c, assay_dd_number(c, assay_dd(1)), momentum);
  for (size_t i = 1; i < c->n_out && i < 5; i++) {
    const assay_pair_t *before = given[i % 2 ? 3 : 4], *now = i % 2 ? mean : variance;
    const assay_pair_t* y =
        i > 2 || !training ? now : applied(c, before, momentum, assay_dd_mul(c, now, rest));
    const assay_tensor_t* like = c->in[3].high;
    assay_dd_put(c, i, assay_dd_reshape(c, y, like->rank, like->dims));
  }
}

void assay_group_norm_dd(assay_dd_eval_t* c, int64_t groups, int64_t per) {
  const assay_pair_t *x = assay_dd_in(c, 0), *scale = assay_dd_in(c, 1);
  const assay_tensor_t* t = x->high;
  const int64_t run = assay_dims_product(t->dims, 2, t->rank);
  const int64_t channels = t->dims[1], in_group = groups ? channels / groups : 0;
  const bool axes[4] = {false, false, true, true};
  const assay_pair_t* v = assay_dd_reshape(c, x, 4, (int64_t[]){t->dims[0], groups, in_group, run});
  const assay_pair_t* d = assay_dd_sub(c, v, assay_dd_mean(c, v, axes));
  const assay_pair_t* n = assay_dd_div(c, d, deviation(c, mean_of_squares(c, d, axes), 1e-5));
  // Channels by those that share a scale: [n, channels / per, per, run].
  n = assay_dd_reshape(c, n, 4, (int64_t[]){t->dims[0], per ? channels / per : 0, per, run});
  const assay_pair_t* y =
      applied(c, n, assay_dd_along(c, scale, 4, 1), assay_dd_along(c, assay_dd_in(c, 2), 4, 1));
  assay_dd_put(c, 0, assay_dd_reshape(c, y, t->rank, t->dims));
}

void assay_layer_norm_dd(assay_dd_eval_t* c, bool centered) {
  const assay_pair_t *x = assay_dd_in(c, 0), *mean = NULL;
  bool axes[ASSAY_MAX_RANK];
  if (!assay_dd_axes(c, "axis", -1, x->high->rank, axes)) return;
  if (centered) mean = assay_dd_mean(c, x, axes);
  const assay_pair_t* d = centered ? assay_dd_sub(c, x, mean) : x;
  const assay_pair_t* spread = deviation(c, mean_of_squares(c, d, axes), 1e-5);
  const assay_pair_t* n = assay_dd_div(c, d, spread);
  assay_dd_put(c, 0, applied(c, n, assay_dd_in(c, 1), assay_dd_in(c, 2)));
  const assay_pair_t* inverse = assay_dd_div(c, assay_dd_number(c, assay_dd(1)), spread);
  if (centered) assay_dd_put(c, 1, mean);
  assay_dd_put(c, centered ? 2 : 1, inverse);
}

void assay_mean_variance_norm_dd(assay_dd_eval_t* c, const bool* axes, double epsilon) {
  const assay_pair_t* x = assay_dd_in(c, 0);
  const assay_pair_t* d = assay_dd_sub(c, x, assay_dd_mean(c, x, axes));
  const assay_pair_t* spread = assay_dd_map1(c, assay_dd_root, mean_of_squares(c, d, axes));
  spread = assay_dd_sum2(c, spread, assay_dd_number(c, assay_dd(epsilon)));
  assay_dd_put(c, 0, assay_dd_div(c, d, spread));
}

// 0 where the norm is.
static assay_dd_t share(assay_dd_t x, assay_dd_t norm) {
  return norm.high == 0 ? assay_dd(0) : assay_dd_over(x, norm);
}

void assay_lp_norm_dd(assay_dd_eval_t* c) {
  const assay_pair_t* x = assay_dd_in(c, 0);
  bool axes[ASSAY_MAX_RANK];
  if (!assay_dd_axes(c, "axis", -1, 0, axes)) return;
  const bool ones = assay_attr_i64(c->node, "p", 2) == 1;
  const assay_pair_t* norm =
      assay_dd_total(c, assay_dd_map1(c, ones ? assay_dd_magnitude : square, x), axes);
  if (!ones) norm = assay_dd_map1(c, assay_dd_root, norm);
  assay_dd_put(c, 0, assay_dd_map2(c, share, x, norm));
}
