// Sources: the texts of ONNX BatchNormalization-14, InstanceNormalization-22,
// GroupNormalization-21, LayerNormalization-17, RMSNormalization-23, MeanVarianceNormalization-13,
// LpNormalization-22.
#include "ops/norm/norm_twice.h"

static assay_twice_t square(assay_twice_t x) { return assay_twice_times(x, x); }

static const assay_pair_t* mean_of_squares(assay_twice_eval_t* c, const assay_pair_t* x,
                                           const bool* axes) {
  return assay_twice_mean(c, assay_twice_map1(c, square, x), axes);
}

// sqrt(variance + epsilon).
static const assay_pair_t* deviation(assay_twice_eval_t* c, const assay_pair_t* variance,
                                     double otherwise) {
  const assay_pair_t* epsilon = assay_twice_attr(c, "epsilon", otherwise);
  return assay_twice_map1(c, assay_twice_root, assay_twice_sum2(c, variance, epsilon));
}

// factor * x + summand; NULL: there is none.
static const assay_pair_t* applied(assay_twice_eval_t* c, const assay_pair_t* x,
                                   const assay_pair_t* factor, const assay_pair_t* summand) {
  const assay_pair_t* y = assay_twice_mul(c, x, factor);
  return summand ? assay_twice_sum2(c, y, summand) : y;
}

void assay_batch_norm_twice(assay_twice_eval_t* c, bool training) {
  const assay_pair_t *x = assay_twice_in(c, 0), *given[5];
  const int rank = x->high->rank;
  const bool spatial = assay_attr_i64(c->node, "spatial", 1) != 0;
  bool axes[ASSAY_MAX_RANK];
  for (int i = 0; i < rank; i++) axes[i] = i == 0 || (spatial && i != 1);
  for (size_t i = 1; i < 5; i++) {
    given[i] = assay_twice_in(c, i);
    if (spatial) given[i] = assay_twice_along(c, given[i], rank, 1);
  }
  const assay_pair_t *mean = given[3], *variance = given[4];
  if (training) {
    mean = assay_twice_mean(c, x, axes);
    variance = mean_of_squares(c, assay_twice_sub(c, x, mean), axes);
  }
  const assay_pair_t* d = assay_twice_sub(c, x, mean);
  const assay_pair_t* n = assay_twice_div(c, d, deviation(c, variance, 1e-5));
  assay_twice_put(c, 0, applied(c, n, given[1], given[2]));
  const assay_pair_t* momentum = assay_twice_attr(c, "momentum", 0.9);
  const assay_pair_t* rest = assay_twice_sub(c, assay_twice_number(c, assay_twice(1)), momentum);
  for (size_t i = 1; i < c->n_out && i < 5; i++) {
    const assay_pair_t *before = given[i % 2 ? 3 : 4], *now = i % 2 ? mean : variance;
    const assay_pair_t* y =
        i > 2 || !training ? now : applied(c, before, momentum, assay_twice_mul(c, now, rest));
    const assay_tensor_t* like = c->in[3].high;
    assay_twice_put(c, i, assay_twice_reshape(c, y, like->rank, like->dims));
  }
}

void assay_group_norm_twice(assay_twice_eval_t* c, int64_t groups, int64_t per) {
  const assay_pair_t *x = assay_twice_in(c, 0), *scale = assay_twice_in(c, 1);
  const assay_tensor_t* t = x->high;
  const int64_t run = assay_dims_product(t->dims, 2, t->rank);
  const int64_t channels = t->dims[1], in_group = groups ? channels / groups : 0;
  const bool axes[4] = {false, false, true, true};
  const assay_pair_t* v =
      assay_twice_reshape(c, x, 4, (int64_t[]){t->dims[0], groups, in_group, run});
  const assay_pair_t* d = assay_twice_sub(c, v, assay_twice_mean(c, v, axes));
  const assay_pair_t* n = assay_twice_div(c, d, deviation(c, mean_of_squares(c, d, axes), 1e-5));
  // Channels by those that share a scale: [n, channels / per, per, run].
  n = assay_twice_reshape(c, n, 4, (int64_t[]){t->dims[0], per ? channels / per : 0, per, run});
  const assay_pair_t* y = applied(c, n, assay_twice_along(c, scale, 4, 1),
                                  assay_twice_along(c, assay_twice_in(c, 2), 4, 1));
  assay_twice_put(c, 0, assay_twice_reshape(c, y, t->rank, t->dims));
}

void assay_layer_norm_twice(assay_twice_eval_t* c, bool centered) {
  const assay_pair_t *x = assay_twice_in(c, 0), *mean = NULL;
  bool axes[ASSAY_MAX_RANK];
  if (!assay_twice_axes(c, "axis", -1, x->high->rank, axes)) return;
  if (centered) mean = assay_twice_mean(c, x, axes);
  const assay_pair_t* d = centered ? assay_twice_sub(c, x, mean) : x;
  const assay_pair_t* spread = deviation(c, mean_of_squares(c, d, axes), 1e-5);
  const assay_pair_t* n = assay_twice_div(c, d, spread);
  assay_twice_put(c, 0, applied(c, n, assay_twice_in(c, 1), assay_twice_in(c, 2)));
  const assay_pair_t* inverse = assay_twice_div(c, assay_twice_number(c, assay_twice(1)), spread);
  if (centered) assay_twice_put(c, 1, mean);
  assay_twice_put(c, centered ? 2 : 1, inverse);
}

void assay_mean_variance_norm_twice(assay_twice_eval_t* c, const bool* axes, double epsilon) {
  const assay_pair_t* x = assay_twice_in(c, 0);
  const assay_pair_t* d = assay_twice_sub(c, x, assay_twice_mean(c, x, axes));
  const assay_pair_t* spread = assay_twice_map1(c, assay_twice_root, mean_of_squares(c, d, axes));
  spread = assay_twice_sum2(c, spread, assay_twice_number(c, assay_twice(epsilon)));
  assay_twice_put(c, 0, assay_twice_div(c, d, spread));
}

// 0 where the norm is.
static assay_twice_t share(assay_twice_t x, assay_twice_t norm) {
  return norm.high == 0 ? assay_twice(0) : assay_twice_over(x, norm);
}

void assay_lp_norm_twice(assay_twice_eval_t* c) {
  const assay_pair_t* x = assay_twice_in(c, 0);
  bool axes[ASSAY_MAX_RANK];
  if (!assay_twice_axes(c, "axis", -1, 0, axes)) return;
  const bool ones = assay_attr_i64(c->node, "p", 2) == 1;
  const assay_pair_t* norm =
      assay_twice_total(c, assay_twice_map1(c, ones ? assay_twice_magnitude : square, x), axes);
  if (!ones) norm = assay_twice_map1(c, assay_twice_root, norm);
  assay_twice_put(c, 0, assay_twice_map2(c, share, x, norm));
}
