// Normalization over channels: BatchNormalization, InstanceNormalization, the group normalizations.
#include "ops/norm/norm.h"

#include <string.h>

#include "base/alloc.h"
#include "base/functions.h"
#include "ops/conv/conv.h"
#include "ops/families.h"
#include "ops/norm/norm_bound.h"
#include "ops/norm/norm_dd.h"

static void norm_cost(const assay_eval_t* c, assay_cost_t* out) {
  out->flops = 8 * (double)c->in[0]->size;  // two passes for the moments, one that applies them
}

// An input that must be a vector of n elements.
static assay_status_t want_vector(const assay_eval_t* c, size_t i, const char* name, int64_t n) {
  const assay_tensor_t* t = c->in[i];
  if (t->rank == 1 && t->dims[0] == n) return NULL;
  return ASSAY_NODE_ERROR(c->node, ASSAY_CORRUPT, "%s has shape %s, expected [%lld]", name,
                          ASSAY_DIMS_TEXT(t), (long long)n);
}

// The same in inference, where a known size must not differ from n.
static assay_status_t infer_vector(const assay_infer_t* c, size_t i, const char* name,
                                   const assay_dim_t* n) {
  if (!assay_infer_has(c, i)) return NULL;
  const assay_shape_t s = assay_infer_shape(c, i);
  if (!s.known || (s.rank == 1 && !assay_dim_differ(s.dims[0], n))) return NULL;
  return ASSAY_NODE_ERROR(c->node, ASSAY_CORRUPT, "%s has shape %s, expected [%s]", name,
                          ASSAY_VALTYPE_TEXT(assay_infer_type(c, i)),
                          assay_dim_text(n, (char[64]){0}, 64));
}

// ---- BatchNormalization ----------------------------------------------------------------------

// The channel axis; NULL where there is none: an input of rank 1 has one channel (version 9 on).
static const assay_dim_t* channel_dim(assay_infer_t* c, const assay_shape_t* x) {
  if (!x->known) return NULL;
  return x->rank > 1 ? x->dims[1] : assay_dim_const(c->dims, 1);
}

// Versions 1, 6 and 7: with spatial = 0 there is one mean for each place of a sample.
static bool is_spatial(const assay_node_t* node) { return assay_attr_i64(node, "spatial", 1) != 0; }

static size_t outputs_wanted(const assay_node_t* node) {
  size_t n = 0;
  for (size_t i = 0; i < node->n_outputs; i++) n += node->outputs[i] != NULL;
  return n;
}

// Training mode. Versions 7 and 9: more outputs than Y are asked for. Versions 1 and 6 also have a
// switch, is_test. Since 14 an attribute decides, and without it further outputs are an error.
static bool training_1(const assay_node_t* node) {
  return assay_attr_i64(node, "is_test", 0) == 0 && outputs_wanted(node) > 1;
}

static bool training_7(const assay_node_t* node) { return outputs_wanted(node) > 1; }

static bool training_14(const assay_node_t* node) {
  return assay_attr_i64(node, "training_mode", 0) != 0;
}

static assay_status_t batch_infer(assay_infer_t* c) {
  static const char* const names[] = {"", "scale", "B", "mean", "var"};
  const assay_shape_t x = assay_infer_shape(c, 0);
  ASSAY_TRY(assay_infer_want_rank(c, 0, 1, ASSAY_MAX_RANK));
  assay_shape_t stats = {.known = x.known, .rank = 1, .dims = {channel_dim(c, &x)}};
  if (!is_spatial(c->node)) {
    stats.rank = x.rank - 1;
    for (int i = 1; i < x.rank; i++) stats.dims[i - 1] = x.dims[i];
  } else {
    for (size_t i = 1; i < 5; i++) {
      ASSAY_TRY(infer_vector(c, i, names[i], stats.dims[0]));
      const assay_shape_t s = assay_infer_shape(c, i);
      if (!stats.known && s.known && s.rank == 1) stats = s;
    }
  }
  ASSAY_TRY(assay_infer_set(c, 0, ASSAY_TYPE_UNDEFINED, x.known ? &x : NULL));
  for (size_t i = 1; i < c->node->n_outputs; i++) {
    ASSAY_TRY(assay_infer_set(c, i, ASSAY_TYPE_UNDEFINED, stats.known ? &stats : NULL));
  }
  return NULL;
}

static assay_status_t batch14_infer(assay_infer_t* c) {
  if (!training_14(c->node) && outputs_wanted(c->node) > 1) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_CORRUPT,
                            "running_mean and running_var are outputs in training mode only");
  }
  return batch_infer(c);
}

// x is [n, groups, run]: one mean and variance for each group.
typedef struct batch {
  const assay_eval_t* c;
  int64_t n, groups, run;
  double epsilon, momentum;
  const double *x, *scale, *bias, *mean, *var;
  double* y;
} batch_t;

static assay_status_t batch_read(const assay_eval_t* c, batch_t* b) {
  const assay_tensor_t* x = c->in[0];
  static const char* const names[] = {"", "scale", "B", "mean", "var"};
  if (x->rank < 1) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_CORRUPT,
                            "the input is a scalar, expected rank 1 or more");
  }
  *b = (batch_t){.c = c,
                 .n = x->dims[0],
                 .groups = x->rank > 1 ? x->dims[1] : 1,
                 .epsilon = assay_attr_f64(c->node, "epsilon", 1e-5),
                 .momentum = assay_attr_f64(c->node, "momentum", 0.9),
                 .x = assay_f64(x),
                 .scale = assay_f64(c->in[1]),
                 .bias = assay_f64(c->in[2]),
                 .mean = assay_f64(c->in[3]),
                 .var = assay_f64(c->in[4])};
  if (is_spatial(c->node)) {
    for (size_t i = 1; i < 5; i++) ASSAY_TRY(want_vector(c, i, names[i], b->groups));
  } else {
    b->groups = x->size == 0 ? 0 : x->size / x->dims[0];
    for (size_t i = 1; i < 5; i++) {
      const assay_tensor_t* t = c->in[i];
      if (t->rank == x->rank - 1 &&
          memcmp(t->dims, x->dims + 1, (size_t)t->rank * sizeof *t->dims) == 0) {
        continue;
      }
      return ASSAY_NODE_ERROR(c->node, ASSAY_CORRUPT,
                              "%s has shape %s, expected that of one sample of %s", names[i],
                              ASSAY_DIMS_TEXT(t), ASSAY_DIMS_TEXT(x));
    }
  }
  b->run = x->size == 0 ? 0 : x->size / (b->n * b->groups);
  return NULL;
}

// y = (x - mean) / sqrt(var + epsilon) * scale + bias for one run of elements.
static inline void batch_apply(const assay_eval_t* c, bool exact, int64_t n, const double* x,
                               double mean, double inverse, double scale, double bias, double* y) {
  if (exact) {
    const double factor = inverse * scale;
    for (int64_t j = 0; j < n; j++) y[j] = (x[j] - mean) * factor + bias;
    return;
  }
  const double factor = assay_acc(c, inverse * scale);
  for (int64_t j = 0; j < n; j++) {
    y[j] = assay_acc(c, assay_acc(c, assay_acc(c, x[j] - mean) * factor) + bias);
  }
}

static void batch_test(const batch_t* b) {
  const bool exact = b->c->arith == ASSAY_ARITH_F64;
  if (b->run == 0) return;
#pragma omp parallel for schedule(static) if (b->n * b->groups * b->run > 100000)
  for (int64_t i = 0; i < b->n * b->groups; i++) {
    const int64_t g = i % b->groups;
    const double inverse = assay_norm_inverse(b->c, exact, b->var[g], b->epsilon);
    batch_apply(b->c, exact, b->run, b->x + i * b->run, b->mean[g], inverse, b->scale[g],
                b->bias[g], b->y + i * b->run);
  }
}

// Mean and variance of group g over all samples, in the order of samples.
static void batch_moments(const batch_t* b, int64_t g, double* out_mean, double* out_var) {
  const assay_eval_t* c = b->c;
  const bool exact = c->arith == ASSAY_ARITH_F64;
  const double count = (double)(b->n * b->run);
  const int64_t n = b->run > 0 ? b->n : 0;  // runs of no elements may be many
  double sum = 0, squares = 0;
  for (int64_t i = 0; i < n; i++) {
    const double* x = b->x + (i * b->groups + g) * b->run;
    sum = assay_norm_round(c, exact, sum + assay_norm_sum(c, exact, x, b->run));
  }
  const double mean = assay_norm_round(c, exact, sum / count);
  for (int64_t i = 0; i < n; i++) {
    const double* x = b->x + (i * b->groups + g) * b->run;
    const double part = assay_norm_square_sum(c, exact, x, b->run, mean);
    squares = assay_norm_round(c, exact, squares + part);
  }
  *out_mean = mean;
  *out_var = assay_norm_round(c, exact, squares / count);
}

static double running(const batch_t* b, double before, double now) {
  const assay_eval_t* c = b->c;
  return assay_acc(c, assay_acc(c, before * b->momentum) + assay_acc(c, now * (1 - b->momentum)));
}

// Training: normalizes by the batch's own statistics. Outputs 1 and 2 are the running ones,
// 3 and 4 (versions below 14) the batch's; NULL where not wanted.
static void batch_train(const batch_t* b, double* const* outs) {
  const bool exact = b->c->arith == ASSAY_ARITH_F64;
#pragma omp parallel for schedule(static) if (b->n * b->groups * b->run > 100000)
  for (int64_t g = 0; g < b->groups; g++) {
    double mean, var;
    batch_moments(b, g, &mean, &var);
    const double inverse = assay_norm_inverse(b->c, exact, var, b->epsilon);
    for (int64_t i = 0; b->run > 0 && i < b->n; i++) {
      const int64_t at = (i * b->groups + g) * b->run;
      batch_apply(b->c, exact, b->run, b->x + at, mean, inverse, b->scale[g], b->bias[g],
                  b->y + at);
    }
    if (outs[1]) outs[1][g] = running(b, b->mean[g], mean);
    if (outs[2]) outs[2][g] = running(b, b->var[g], var);
    if (outs[3]) outs[3][g] = mean;
    if (outs[4]) outs[4][g] = var;
  }
}

static assay_status_t batch_either(assay_eval_t* c, bool training) {
  batch_t b;
  ASSAY_TRY(batch_read(c, &b));
  assay_tensor_t* y;
  ASSAY_TRY(assay_eval_output(c, 0, c->in[0]->type, c->in[0]->rank, c->in[0]->dims, &y));
  b.y = assay_f64(y);
  double* outs[5] = {0};
  for (size_t i = 1; i < c->n_out && i < 5; i++) {
    if (!assay_eval_wants(c, i)) continue;
    const assay_tensor_t* like = c->in[3];
    assay_tensor_t* t;
    ASSAY_TRY(
        assay_eval_output(c, i, assay_eval_out_type(c, i, like->type), like->rank, like->dims, &t));
    outs[i] = assay_f64(t);
    // Out of training mode they are the statistics that were used.
    memcpy(outs[i], i % 2 == 1 ? b.mean : b.var, (size_t)t->size * sizeof(double));
  }
  if (training) {
    batch_train(&b, outs);
  } else {
    batch_test(&b);
  }
  return NULL;
}

static assay_status_t batch1_eval(assay_eval_t* c) { return batch_either(c, training_1(c->node)); }
static assay_status_t batch7_eval(assay_eval_t* c) { return batch_either(c, training_7(c->node)); }

static assay_status_t batch14_eval(assay_eval_t* c) {
  return batch_either(c, training_14(c->node));
}

// ---- instances and groups --------------------------------------------------------------------

// y = scale * (x - mean) / sqrt(var + epsilon) + bias, mean and variance over each group of
// channels of each sample. Source: ONNX GroupNormalization-21, InstanceNormalization-22.
typedef struct group {
  const assay_eval_t* c;
  int64_t n, channels, groups, run;  // run: elements of a channel
  double epsilon;
  bool silu;
  const double *x, *scale, *bias;
  int64_t per;  // channels that share an element of scale and bias
  double* y;
} group_t;

static inline void group_one(const group_t* p, bool exact, int64_t i) {
  const assay_eval_t* c = p->c;
  const int64_t channels = p->channels / p->groups, g = i % p->groups;
  const double* x = p->x + i * channels * p->run;
  double* y = p->y + i * channels * p->run;
  double mean, var;
  assay_norm_moments(c, exact, x, channels * p->run, &mean, &var);
  const double inverse = assay_norm_inverse(c, exact, var, p->epsilon);
  for (int64_t k = 0; k < channels; k++, x += p->run, y += p->run) {
    const int64_t at = (g * channels + k) / p->per;
    batch_apply(c, exact, p->run, x, mean, inverse, p->scale[at], p->bias[at], y);
    if (!p->silu) continue;
    for (int64_t j = 0; j < p->run; j++) {
      y[j] = assay_norm_round(c, exact, y[j] / (1 + assay_exp(-y[j])));
    }
  }
}

static void group_run(const group_t* p) {
  const bool exact = p->c->arith == ASSAY_ARITH_F64;
  if (p->run == 0 || p->channels == 0) return;
#pragma omp parallel for schedule(static) if (p->n * p->channels * p->run > 50000)
  for (int64_t i = 0; i < p->n * p->groups; i++) {
    if (exact) {
      group_one(p, true, i);
    } else {
      group_one(p, false, i);
    }
  }
}

static assay_status_t channels_check(const assay_node_t* node, const assay_tensor_t* x, int min) {
  if (x->rank >= min) return NULL;
  return ASSAY_NODE_ERROR(node, ASSAY_CORRUPT, "the input has shape %s, expected rank %d or more",
                          ASSAY_DIMS_TEXT(x), min);
}

// Groups of a node: positive and dividing the channels, unless those are not known (-1).
static assay_status_t groups_check(const assay_node_t* node, int64_t groups, int64_t channels) {
  if (groups >= 1 && (channels < 0 || channels % groups == 0)) return NULL;
  return ASSAY_NODE_ERROR(node, ASSAY_CORRUPT,
                          "%lld channels cannot be divided into %lld groups; check num_groups",
                          (long long)channels, (long long)groups);
}

static assay_status_t channels_eval(assay_eval_t* c, int64_t groups, int64_t per) {
  const assay_tensor_t* x = c->in[0];
  group_t p = {.c = c,
               .n = x->dims[0],
               .channels = x->dims[1],
               .groups = groups,
               .per = per,
               .epsilon = assay_attr_f64(c->node, "epsilon", 1e-5),
               .x = assay_f64(x),
               .scale = assay_f64(c->in[1]),
               .bias = assay_f64(c->in[2])};
  p.run = x->size == 0 ? 0 : x->size / (p.n * p.channels);
  ASSAY_TRY(want_vector(c, 1, "scale", p.channels / per));
  ASSAY_TRY(want_vector(c, 2, "bias", p.channels / per));
  assay_tensor_t* y;
  ASSAY_TRY(assay_eval_output(c, 0, x->type, x->rank, x->dims, &y));
  p.y = assay_f64(y);
  return group_run(&p), NULL;
}

static assay_status_t instance_eval(assay_eval_t* c) {
  ASSAY_TRY(channels_check(c->node, c->in[0], 2));
  const int64_t channels = c->in[0]->dims[1];
  return channels_eval(c, channels > 0 ? channels : 1, 1);
}

static assay_status_t group_either(assay_eval_t* c, bool scale_of_group) {
  ASSAY_TRY(channels_check(c->node, c->in[0], 2));
  const int64_t groups = assay_attr_i64(c->node, "num_groups", 0), channels = c->in[0]->dims[1];
  ASSAY_TRY(groups_check(c->node, groups, channels));
  const int64_t per = channels / groups;
  return channels_eval(c, groups, scale_of_group && per > 0 ? per : 1);
}

static assay_status_t group18_eval(assay_eval_t* c) { return group_either(c, true); }
static assay_status_t group21_eval(assay_eval_t* c) { return group_either(c, false); }

static assay_status_t instance_infer(assay_infer_t* c) {
  const assay_shape_t x = assay_infer_shape(c, 0);
  ASSAY_TRY(assay_infer_want_rank(c, 0, 2, ASSAY_MAX_RANK));
  ASSAY_TRY(infer_vector(c, 1, "scale", x.known ? x.dims[1] : NULL));
  ASSAY_TRY(infer_vector(c, 2, "B", x.known ? x.dims[1] : NULL));
  return assay_infer_same(c);
}

static assay_status_t group_infer(assay_infer_t* c, const char* groups_name, int channel_axis,
                                  bool scale_of_group) {
  const assay_shape_t x = assay_infer_shape(c, 0);
  ASSAY_TRY(assay_infer_want_rank(c, 0, 2, ASSAY_MAX_RANK));
  const int64_t groups = assay_attr_i64(c->node, groups_name, 0);
  const assay_dim_t* channels =
      !x.known ? NULL : x.dims[channel_axis < 0 ? x.rank + channel_axis : channel_axis];
  int64_t value;
  ASSAY_TRY(groups_check(c->node, groups, assay_dim_value(channels, &value) ? value : -1));
  const assay_dim_t* size = scale_of_group ? assay_dim_const(c->dims, groups) : channels;
  ASSAY_TRY(infer_vector(c, 1, "scale", size));
  ASSAY_TRY(infer_vector(c, 2, "bias", size));
  return assay_infer_same(c);
}

static assay_status_t group18_infer(assay_infer_t* c) {
  return group_infer(c, "num_groups", 1, true);
}

static assay_status_t group21_infer(assay_infer_t* c) {
  return group_infer(c, "num_groups", 1, false);
}

// ---- GroupNorm and SkipGroupNorm of com.microsoft ---------------------------------------------
// Source: ONNX Runtime's ContribOperators.md. Channels last unless channels_last = 0; activation 1
// is SiLU. SkipGroupNorm normalizes S = X + skip + bias.

static assay_status_t ms_group_infer(assay_infer_t* c) {
  const bool last = assay_attr_i64(c->node, "channels_last", 1) != 0;
  return group_infer(c, "groups", last ? -1 : 1, false);
}

static assay_status_t ms_skip_infer(assay_infer_t* c) {
  ASSAY_TRY(ms_group_infer(c));
  const assay_shape_t x = assay_infer_shape(c, 0);
  return assay_infer_set(c, 1, ASSAY_TYPE_UNDEFINED, x.known ? &x : NULL);
}

// Writes x to y [n, channels, run], channels first whatever they were.
static void channels_first(const assay_tensor_t* x, bool last, int64_t n, int64_t channels,
                           int64_t run, double* y) {
  if (last) {
    assay_conv_swap(n, run, channels, assay_f64(x), y);
  } else {
    memcpy(y, assay_f64(x), (size_t)x->size * sizeof *y);
  }
}

static void channels_back(const double* y, bool last, int64_t n, int64_t channels, int64_t run,
                          assay_tensor_t* out) {
  if (last) {
    assay_conv_swap(n, channels, run, y, assay_f64(out));
  } else {
    memcpy(assay_f64(out), y, (size_t)out->size * sizeof *y);
  }
}

// sum[n, channels, run] += skip (of the same shape, or one element a sample and channel) and bias.
static assay_status_t add_skip(const assay_eval_t* c, bool last, int64_t n, int64_t channels,
                               int64_t run, double* sum, double* scratch) {
  const assay_tensor_t *x = c->in[0], *skip = c->in[3];
  const bool has_bias = assay_eval_has(c, 4);
  if (has_bias) ASSAY_TRY(want_vector(c, 4, "bias", channels));
  const bool whole =
      skip->rank == x->rank && memcmp(skip->dims, x->dims, (size_t)x->rank * sizeof *x->dims) == 0;
  const bool per_channel = !whole && skip->size == n * channels && skip->rank >= 2 &&
                           skip->dims[0] == n &&
                           (skip->dims[1] == channels || skip->dims[skip->rank - 1] == channels);
  if (!whole && !per_channel) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_CORRUPT,
                            "skip has shape %s, expected %s or one element a sample and channel",
                            ASSAY_DIMS_TEXT(skip), ASSAY_DIMS_TEXT(x));
  }
  if (whole) channels_first(skip, last, n, channels, run, scratch);
  for (int64_t i = 0; run > 0 && i < n * channels; i++) {
    const double bias = has_bias ? assay_f64(c->in[4])[i % channels] : 0;
    for (int64_t j = 0; j < run; j++) {
      const double add = whole ? scratch[i * run + j] : assay_f64(skip)[i];
      double* s = &sum[i * run + j];
      *s = assay_acc(c, assay_acc(c, *s + add) + bias);
    }
  }
  return NULL;
}

static assay_status_t ms_group_run(assay_eval_t* c, bool has_skip, group_t* p, bool last, double* a,
                                   double* b) {
  const assay_tensor_t* x = c->in[0];
  assay_tensor_t *y, *s;
  ASSAY_TRY(assay_eval_output(c, 0, x->type, x->rank, x->dims, &y));
  channels_first(x, last, p->n, p->channels, p->run, a);
  if (has_skip) ASSAY_TRY(add_skip(c, last, p->n, p->channels, p->run, a, b));
  if (has_skip && assay_eval_wants(c, 1)) {
    ASSAY_TRY(assay_eval_output(c, 1, x->type, x->rank, x->dims, &s));
    channels_back(a, last, p->n, p->channels, p->run, s);
  }
  p->x = a;
  p->y = b;
  group_run(p);
  channels_back(b, last, p->n, p->channels, p->run, y);
  return NULL;
}

static assay_status_t ms_group_either(assay_eval_t* c, bool has_skip) {
  const assay_tensor_t* x = c->in[0];
  ASSAY_TRY(channels_check(c->node, x, 2));
  const bool last = assay_attr_i64(c->node, "channels_last", 1) != 0;
  const int64_t activation = assay_attr_i64(c->node, "activation", 0);
  group_t p = {.c = c,
               .n = x->dims[0],
               .channels = x->dims[last ? x->rank - 1 : 1],
               .groups = assay_attr_i64(c->node, "groups", 0),
               .per = 1,
               .silu = activation == 1,
               .epsilon = assay_attr_f64(c->node, "epsilon", 1e-5),
               .scale = assay_f64(c->in[1]),
               .bias = assay_f64(c->in[2])};
  if (activation != 0 && activation != 1) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_CORRUPT, "activation is %lld, expected 0 or 1 (SiLU)",
                            (long long)activation);
  }
  ASSAY_TRY(groups_check(c->node, p.groups, p.channels));
  ASSAY_TRY(want_vector(c, 1, "gamma", p.channels));
  ASSAY_TRY(want_vector(c, 2, "beta", p.channels));
  p.run = x->size == 0 ? 0 : x->size / (p.n * p.channels);
  double *a = NULL, *b = NULL;
  assay_status_t st = assay_new_array((size_t)x->size, sizeof *a, &a);
  if (!st) st = assay_new_array((size_t)x->size, sizeof *b, &b);
  if (!st) st = ms_group_run(c, has_skip, &p, last, a, b);
  assay_free(a);
  assay_free(b);
  return st;
}

static assay_status_t ms_group_eval(assay_eval_t* c) { return ms_group_either(c, false); }
static assay_status_t ms_skip_eval(assay_eval_t* c) { return ms_group_either(c, true); }

// ---- bounds -----------------------------------------------------------------------------------

typedef struct batch_limits {
  assay_bound_t* c;
  batch_t b;
  bool training;
  const double* e[2];
  double* of[5][2];  // by output; NULL: not wanted
} batch_limits_t;

// What is put out besides y: the running statistics as they become, or the batch's own.
static void bound_running(const batch_limits_t* l, bool probable, int64_t g,
                          const assay_norm_stats_t* s) {
  const batch_t* b = &l->b;
  const assay_inner_t in = assay_bound_inner(l->c->rounding);
  const double u = in.u;
  const double before[2] = {b->mean[g], b->var[g]}, now[2] = {s->mean, s->var};
  const double error[2] = {s->mean_error, s->var_error};
  for (int k = 0; k < 2; k++) {
    const double part = fabs(1 - b->momentum);
    if (l->of[1 + k][probable])
      l->of[1 + k][probable][g] = part * error[k] +
                                  4 * u *
                                      (fabs(before[k] * b->momentum) + part * fabs(now[k]) +
                                       part * error[k] + fabs(now[k]) * u) +
                                  3 * in.tiny;
    if (l->of[3 + k][probable]) l->of[3 + k][probable][g] = error[k];
  }
}

static void bound_batch_group(const batch_limits_t* l, bool probable, int64_t g) {
  const batch_t* b = &l->b;
  const double* e = l->e[probable];
  assay_norm_apply_t a = {.rounding = l->c->rounding,
                          .centered = true,
                          .n = b->run,
                          .scale = b->scale + g,
                          .bias = b->bias + g};
  if (l->training) {
    const assay_norm_group_t group = {.x = b->x + g * b->run,
                                      .e = e ? e + g * b->run : NULL,
                                      .runs = b->n,
                                      .run = b->run,
                                      .step = b->groups * b->run};
    a.stats = assay_norm_bound_stats(l->c->rounding, probable, true, &group, b->epsilon);
    bound_running(l, probable, g, &a.stats);
  } else {
    a.stats = assay_norm_bound_given(l->c->rounding, b->mean[g], b->var[g], b->epsilon);
  }
  for (int64_t i = 0; l->of[0][probable] && i < b->n; i++) {
    const int64_t at = (i * b->groups + g) * b->run;
    a.x = b->x + at;
    a.e = e ? e + at : NULL;
    a.limits = l->of[0][probable] + at;
    assay_norm_bound_apply(&a);
  }
}

static assay_status_t batch_bound_either(assay_bound_t* c, bool training) {
  ASSAY_TRY(assay_bound_want_exact(c, 0));
  const assay_eval_t reader = assay_bound_as_eval(c);
  batch_limits_t l = {
      .c = c, .training = training, .e = {assay_bound_in(c, 0, false), assay_bound_in(c, 0, true)}};
  ASSAY_TRY(batch_read(&reader, &l.b));
  // Out of training mode the other outputs are copies of the inputs.
  for (size_t i = 0; i < (training ? 5 : 1); i++)
    ASSAY_TRY(assay_bound_output(c, i, &l.of[i][0], &l.of[i][1]));
#pragma omp parallel for schedule(static) if (c->in[0]->size > 30000)
  for (int64_t g = 0; g < l.b.groups; g++) {
    bound_batch_group(&l, false, g);
    bound_batch_group(&l, true, g);
  }
  return NULL;
}

static assay_status_t batch1_bound(assay_bound_t* c) {
  return batch_bound_either(c, training_1(c->node));
}
static assay_status_t batch7_bound(assay_bound_t* c) {
  return batch_bound_either(c, training_7(c->node));
}
static assay_status_t batch14_bound(assay_bound_t* c) {
  return batch_bound_either(c, training_14(c->node));
}

// SiLU of y after a normalization: its slope is at most 1.1, its textbook formula has an error of
// some u |y|.
static void bound_silu(const assay_rounding_t* r, const double* y, int64_t n, double* limits) {
  const assay_inner_t in = assay_bound_inner(r);
  for (int64_t j = 0; j < n; j++)
    limits[j] = 1.1 * limits[j] + (2 * in.function + 4 * in.u) * (fabs(y[j]) + limits[j]) + in.tiny;
}

// Before the SiLU, y is known by its limits only: |y| <= |d| * inverse * |scale| + |bias|.
static void bound_group_one(const assay_rounding_t* r, const group_t* p, const double* error,
                            bool probable, int64_t i, double* limits) {
  const int64_t channels = p->channels / p->groups, g = i % p->groups;
  int64_t at = i * channels * p->run;
  const assay_norm_group_t group = {
      .x = p->x + at, .e = error ? error + at : NULL, .runs = 1, .run = channels * p->run};
  assay_norm_apply_t a = {.rounding = r, .centered = true, .n = p->run};
  a.stats = assay_norm_bound_stats(r, probable, true, &group, p->epsilon);
  for (int64_t k = 0; k < channels; k++, at += p->run) {
    const int64_t of = (g * channels + k) / p->per;
    a.x = p->x + at;
    a.e = error ? error + at : NULL;
    a.scale = p->scale + of;
    a.bias = p->bias + of;
    a.limits = limits + at;
    assay_norm_bound_apply(&a);
    if (!p->silu) continue;
    for (int64_t j = 0; j < p->run; j++) {
      const double y = (a.x[j] - a.stats.mean) * a.stats.inverse * *a.scale + *a.bias;
      bound_silu(r, &y, 1, &a.limits[j]);
    }
  }
}

static void bound_groups(const assay_rounding_t* r, const group_t* p, const double* const e[2],
                         double* const limits[2]) {
  if (p->run == 0 || p->channels == 0) return;
#pragma omp parallel for schedule(static) if (p->n * p->channels * p->run > 30000)
  for (int64_t i = 0; i < p->n * p->groups; i++) {
    bound_group_one(r, p, e[0], false, i, limits[0]);
    bound_group_one(r, p, e[1], true, i, limits[1]);
  }
}

static assay_status_t channels_bound(assay_bound_t* c, int64_t groups, int64_t per) {
  ASSAY_TRY(assay_bound_want_exact(c, 0));
  const assay_tensor_t* x = c->in[0];
  group_t p = {.n = x->dims[0],
               .channels = x->dims[1],
               .groups = groups,
               .per = per,
               .epsilon = assay_attr_f64(c->node, "epsilon", 1e-5),
               .x = assay_f64(x),
               .scale = assay_f64(c->in[1]),
               .bias = assay_f64(c->in[2])};
  p.run = x->size == 0 ? 0 : x->size / (p.n * p.channels);
  const double* e[2] = {assay_bound_in(c, 0, false), assay_bound_in(c, 0, true)};
  double* limits[2];
  ASSAY_TRY(assay_bound_output(c, 0, &limits[0], &limits[1]));
  if (limits[0]) bound_groups(c->rounding, &p, e, limits);
  return NULL;
}

static assay_status_t instance_bound(assay_bound_t* c) {
  const int64_t channels = c->in[0]->dims[1];
  return channels_bound(c, channels > 0 ? channels : 1, 1);
}

static assay_status_t group_bound(assay_bound_t* c, bool scale_of_group) {
  const int64_t groups = assay_attr_i64(c->node, "num_groups", 0);
  const int64_t per = c->in[0]->dims[1] / groups;
  return channels_bound(c, groups, scale_of_group && per > 0 ? per : 1);
}

// com.microsoft's, on planes with channels first. planes: the normalized sum, its error, a scratch
// plane, two of limits.
typedef struct ms_bound {
  group_t p;
  bool has_skip, last;
  double* planes[5];
} ms_bound_t;

// The sum in truth, and u times twice the sum of absolute values: any order of its two additions.
static assay_status_t ms_bound_sum(const assay_bound_t* c, const ms_bound_t* m) {
  const group_t* p = &m->p;
  const assay_eval_t reader = assay_bound_as_eval(c);
  channels_first(c->in[0], m->last, p->n, p->channels, p->run, m->planes[0]);
  if (!m->has_skip) return NULL;
  ASSAY_TRY(add_skip(&reader, m->last, p->n, p->channels, p->run, m->planes[0], m->planes[2]));
  assay_tensor_t* abs[5] = {0};
  assay_eval_t widest = reader;
  widest.in = abs;
  assay_status_t st = NULL;
  for (size_t i = 0; !st && i < c->n_in && i < 5; i++)
    if (c->in[i]) st = assay_tensor_abs(c->in[i], &abs[i]);
  if (!st) {
    channels_first(abs[0], m->last, p->n, p->channels, p->run, m->planes[1]);
    st = add_skip(&widest, m->last, p->n, p->channels, p->run, m->planes[1], m->planes[2]);
  }
  for (size_t i = 0; i < 5; i++) assay_tensor_release(abs[i]);
  const double u = assay_bound_inner(c->rounding).u;
  for (int64_t i = 0; !st && i < c->in[0]->size; i++) m->planes[1][i] *= 2 * u;
  return st;
}

static assay_status_t ms_bound_planes(assay_bound_t* c, ms_bound_t* m) {
  const group_t* p = &m->p;
  ASSAY_TRY(ms_bound_sum(c, m));
  m->p.x = m->planes[0];
  const double* e[2] = {m->has_skip ? m->planes[1] : NULL, m->has_skip ? m->planes[1] : NULL};
  bound_groups(c->rounding, p, e, (double* const[2]){m->planes[3], m->planes[4]});
  for (size_t i = 0; i < (m->has_skip ? 2 : 1); i++) {
    double *guaranteed, *probable;
    ASSAY_TRY(assay_bound_output(c, i, &guaranteed, &probable));
    if (!guaranteed) continue;
    channels_back(m->planes[i ? 1 : 3], m->last, p->n, p->channels, p->run,
                  c->out_error[i].guaranteed);
    channels_back(m->planes[i ? 1 : 4], m->last, p->n, p->channels, p->run,
                  c->out_error[i].probable);
  }
  return NULL;
}

static assay_status_t ms_bound_either(assay_bound_t* c, bool has_skip) {
  ASSAY_TRY(assay_bound_want_exact(c, SIZE_MAX));
  const assay_tensor_t* x = c->in[0];
  if (x->size == 0) return NULL;
  ms_bound_t m = {.has_skip = has_skip, .last = assay_attr_i64(c->node, "channels_last", 1) != 0};
  m.p = (group_t){.n = x->dims[0],
                  .channels = x->dims[m.last ? x->rank - 1 : 1],
                  .groups = assay_attr_i64(c->node, "groups", 0),
                  .per = 1,
                  .silu = assay_attr_i64(c->node, "activation", 0) == 1,
                  .epsilon = assay_attr_f64(c->node, "epsilon", 1e-5),
                  .scale = assay_f64(c->in[1]),
                  .bias = assay_f64(c->in[2])};
  m.p.run = x->size / (m.p.n * m.p.channels);
  assay_status_t st = NULL;
  for (int i = 0; !st && i < 5; i++)
    st = assay_new_array((size_t)x->size, sizeof(double), &m.planes[i]);
  if (!st) st = ms_bound_planes(c, &m);
  for (int i = 0; i < 5; i++) assay_free(m.planes[i]);
  return st;
}

static assay_status_t ms_group_bound(assay_bound_t* c) { return ms_bound_either(c, false); }
static assay_status_t ms_skip_bound(assay_bound_t* c) { return ms_bound_either(c, true); }

static assay_status_t group18_bound(assay_bound_t* c) { return group_bound(c, true); }
static assay_status_t group21_bound(assay_bound_t* c) { return group_bound(c, false); }

// ---- in twice the precision -------------------------------------------------------------------

static void batch1_dd(assay_dd_eval_t* c) { assay_batch_norm_dd(c, training_1(c->node)); }
static void batch7_dd(assay_dd_eval_t* c) { assay_batch_norm_dd(c, training_7(c->node)); }
static void batch14_dd(assay_dd_eval_t* c) { assay_batch_norm_dd(c, training_14(c->node)); }
static void instance_dd(assay_dd_eval_t* c) { assay_group_norm_dd(c, c->in[0].high->dims[1], 1); }
static void group_dd(assay_dd_eval_t* c, bool scale_of_group) {
  const int64_t groups = assay_attr_i64(c->node, "num_groups", 0);
  const int64_t per = c->in[0].high->dims[1] / groups;
  assay_group_norm_dd(c, groups, scale_of_group ? per : 1);
}
static void group18_dd(assay_dd_eval_t* c) { group_dd(c, true); }
static void group21_dd(assay_dd_eval_t* c) { group_dd(c, false); }

const assay_op_t assay_ops_norm[] = {
    {.name = "BatchNormalization",
     .domain = "",
     .since = 1,
     .infer = batch_infer,
     .eval = batch1_eval,
     .bound = batch1_bound,
     .dd = batch1_dd,
     .cost = norm_cost},
    {.name = "BatchNormalization",
     .domain = "",
     .since = 7,
     .infer = batch_infer,
     .eval = batch7_eval,
     .bound = batch7_bound,
     .dd = batch7_dd,
     .cost = norm_cost},
    {.name = "BatchNormalization",
     .domain = "",
     .since = 14,
     .infer = batch14_infer,
     .eval = batch14_eval,
     .bound = batch14_bound,
     .dd = batch14_dd,
     .cost = norm_cost},
    {.name = "InstanceNormalization",
     .domain = "",
     .since = 1,
     .infer = instance_infer,
     .eval = instance_eval,
     .bound = instance_bound,
     .dd = instance_dd,
     .cost = norm_cost},
    {.name = "GroupNormalization",
     .domain = "",
     .since = 18,
     .infer = group18_infer,
     .eval = group18_eval,
     .bound = group18_bound,
     .dd = group18_dd,
     .cost = norm_cost},
    {.name = "GroupNormalization",
     .domain = "",
     .since = 21,
     .infer = group21_infer,
     .eval = group21_eval,
     .bound = group21_bound,
     .dd = group21_dd,
     .cost = norm_cost},
    {.name = "GroupNorm",
     .domain = "com.microsoft",
     .since = 1,
     .schema = "X:T, gamma:M, beta:M -> Y:T | activation:i!, channels_last:i=1, epsilon:f=1e-5, "
               "groups:i! | T=float16 float; M=float16 float",
     .infer = ms_group_infer,
     .eval = ms_group_eval,
     .bound = ms_group_bound,
     .cost = norm_cost},
    {.name = "SkipGroupNorm",
     .domain = "com.microsoft",
     .since = 1,
     .schema = "X:T, gamma:M, beta:M, skip:T, bias?:T -> Y:T, S?:T | activation:i!, "
               "channels_last:i=1, epsilon:f=1e-5, groups:i! | T=float16 float; M=float16 float",
     .infer = ms_skip_infer,
     .eval = ms_skip_eval,
     .bound = ms_skip_bound,
     .cost = norm_cost},
    {0}};
