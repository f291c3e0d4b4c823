// Conv and its relatives in floating point: FusedConv, NhwcConv, CausalConvWithState.
#include "ops/conv/conv.h"

#include <math.h>
#include <string.h>

#include "base/functions.h"
#include "ops/conv/conv_winograd.h"
#include "ops/dd_array.h"
#include "ops/families.h"
#include "ops/math/activation_name.h"
#include "ops/running_bound.h"

// ---- Conv ------------------------------------------------------------------------------------

static assay_status_t conv_infer(assay_infer_t* c) {
  return assay_conv_infer(c, 0, 1, 2, false, ASSAY_TYPE_UNDEFINED);
}

static assay_status_t nhwc_infer(assay_infer_t* c) {
  return assay_conv_infer(c, 0, 1, 2, true, ASSAY_TYPE_UNDEFINED);
}

// x, w and bias in canonical form; NULL where there is none.
typedef struct operands {
  assay_tensor_t *x, *w, *bias;
} operands_t;

static void operands_release(operands_t* o) {
  assay_tensor_release(o->x);
  assay_tensor_release(o->w);
  assay_tensor_release(o->bias);
}

static assay_status_t operands_widen(const assay_eval_t* c, operands_t* out) {
  assay_status_t st = assay_tensor_widen(c->in[0], &out->x);
  if (!st) st = assay_tensor_widen(c->in[1], &out->w);
  if (!st && assay_eval_has(c, 2)) st = assay_tensor_widen(c->in[2], &out->bias);
  return st;
}

// ---- limits -------------------------------------------------------------------------------------

typedef struct conv_limits {
  const assay_eval_t* c;
  const assay_conv_t* s;
  const assay_tensor_t *x, *w, *bias;
  bool probable;
  double factor, tiny, range;
} conv_limits_t;

// |t| + more * its limits; limits alone where `alone`. NULL where there are none.
static assay_status_t widened(const conv_limits_t* j, const assay_tensor_t* t, bool alone,
                              assay_tensor_t** out) {
  *out = NULL;
  if (!t) return NULL;
  const assay_span_t s = assay_running_bound_of(j->c, assay_f64(t));
  const double* e = j->probable ? s.probable : s.guaranteed;
  if (alone && !e) return NULL;
  ASSAY_TRY(assay_tensor_create(ASSAY_TYPE_DOUBLE, t->rank, t->dims, out));
  for (int64_t i = 0; i < t->size; i++)
    assay_f64(*out)[i] = (alone ? 0 : fabs(assay_f64(t)[i])) + (e ? e[i] : 0);
  return NULL;
}

// to += factor * conv(x, w) + factor * bias.
static assay_status_t add_conv(const conv_limits_t* j, const assay_tensor_t* x,
                               const assay_tensor_t* w, const assay_tensor_t* bias, double factor,
                               bool rounds, double* to, int64_t size) {
  double* y = NULL;
  ASSAY_TRY(assay_new_array((size_t)size, sizeof *y, &y));
  assay_status_t st =
      assay_conv_run(j->c, j->s, assay_f64(x), assay_f64(w), bias ? assay_f64(bias) : NULL, y);
  for (int64_t i = 0; !st && i < size; i++) {
    if (!rounds)
      to[i] += factor * y[i];
    else
      to[i] += y[i] * (1 + factor) <= j->range ? factor * y[i] + j->tiny : (double)INFINITY;
  }
  assay_free(y);
  return st;
}

static assay_status_t add_limits(const conv_limits_t* j, double* to, int64_t size) {
  assay_tensor_t *x = NULL, *w = NULL, *b = NULL, *ex = NULL, *ew = NULL, *eb = NULL;
  assay_status_t st = widened(j, j->x, false, &x);
  if (!st) st = widened(j, j->w, false, &w);
  if (!st) st = widened(j, j->bias, false, &b);
  if (!st) st = widened(j, j->x, true, &ex);
  if (!st) st = widened(j, j->w, true, &ew);
  if (!st) st = widened(j, j->bias, true, &eb);
  if (!st) st = add_conv(j, x, w, b, j->factor, true, to, size);
  if (!st && ex) st = add_conv(j, ex, w, NULL, 1, false, to, size);
  if (!st && ew) st = add_conv(j, x, ew, NULL, 1, false, to, size);
  for (int64_t i = 0; !st && eb && i < size; i++)
    to[i] += assay_f64(eb)[i / j->s->out_size % j->s->m];
  assay_tensor_t* all[] = {x, w, b, ex, ew, eb};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) assay_tensor_release(all[i]);
  return st;
}

// ---- evaluation ---------------------------------------------------------------------------------

static void output_dims(const assay_conv_t* s, bool channels_last, int64_t* dims) {
  int64_t* out = dims;
  *out++ = s->n;
  if (!channels_last) *out++ = s->m;
  for (int i = 0; i < s->w.rank; i++) *out++ = s->w.axis[i].out;
  if (channels_last) *out = s->m;
}

// y from channels-last x, by way of copies with the channels first.
static assay_status_t run_channels_last(const assay_eval_t* c, const assay_conv_t* s,
                                        const operands_t* o, double* y) {
  double *x1 = NULL, *y1 = NULL;
  assay_status_t st = assay_new_array((size_t)o->x->size, sizeof *x1, &x1);
  if (!st) st = assay_new_array((size_t)(s->n * s->m * s->out_size), sizeof *y1, &y1);
  if (!st) {
    assay_conv_swap(s->n, s->in_size, s->c, assay_f64(o->x), x1);
    st = assay_conv_run(c, s, x1, assay_f64(o->w), o->bias ? assay_f64(o->bias) : NULL, y1);
  }
  if (!st) assay_conv_swap(s->n, s->m, s->out_size, y1, y);
  assay_free(x1);
  assay_free(y1);
  return st;
}

// The limits of y [n, m, out...]: what the algorithm rounds, and what came in by x, w and the bias.
static assay_status_t limit(const assay_eval_t* c, const assay_conv_t* s, const operands_t* o,
                            double* y) {
  const assay_rounding_t* r = assay_running_bound_rounding(c);
  const assay_span_t to = assay_running_bound_of(c, y);
  const int64_t size = s->n * s->m * s->out_size;
  const double terms = (double)s->cg * (double)s->kernel_size + 1;
  if (size == 0) return NULL;
  for (int kind = 0; kind < 2; kind++) {
    const assay_factor_t f = assay_bound_sum(r, terms);
    const conv_limits_t job = {.c = c,
                               .s = s,
                               .x = o->x,
                               .w = o->w,
                               .bias = o->bias,
                               .factor = kind ? f.probable : f.guaranteed,
                               .probable = kind,
                               .tiny = terms * assay_bound_tiny(r, r->accumulator),
                               .range = assay_format_info(r->accumulator)->max};
    ASSAY_TRY(add_limits(&job, kind ? to.probable : to.guaranteed, size));
  }
  if (!assay_conv_winograd_fits(r, s)) return NULL;
  return assay_conv_winograd_limits(r, s, assay_f64(o->x), assay_f64(o->w),
                                    o->bias ? assay_f64(o->bias) : NULL, to.guaranteed,
                                    to.probable);
}

static assay_status_t run(assay_eval_t* c, bool channels_last, const operands_t* o,
                          assay_tensor_t** out) {
  assay_conv_t s;
  ASSAY_TRY(assay_conv_read(c->node, o->x, o->w, o->bias, channels_last, &s));
  int64_t dims[ASSAY_MAX_RANK];
  output_dims(&s, channels_last, dims);
  assay_tensor_t* y;
  ASSAY_TRY(assay_eval_output(c, 0, o->x->type, s.w.rank + 2, dims, &y));
  *out = y;
  if (channels_last) return run_channels_last(c, &s, o, assay_f64(y));
  ASSAY_TRY(assay_conv_run(c, &s, assay_f64(o->x), assay_f64(o->w),
                           o->bias ? assay_f64(o->bias) : NULL, assay_f64(y)));
  return c->running ? limit(c, &s, o, assay_f64(y)) : NULL;
}

static assay_status_t eval_either(assay_eval_t* c, bool channels_last) {
  operands_t o = {0};
  assay_tensor_t* y;
  assay_status_t st = operands_widen(c, &o);
  if (!st) st = run(c, channels_last, &o, &y);
  operands_release(&o);
  return st;
}

static assay_status_t conv_eval(assay_eval_t* c) { return eval_either(c, false); }
static assay_status_t nhwc_eval(assay_eval_t* c) { return eval_either(c, true); }

static void conv_cost(const assay_eval_t* c, assay_cost_t* out) {
  assay_conv_cost(c, 0, 1, 2, false, out);
}

static void nhwc_cost(const assay_eval_t* c, assay_cost_t* out) {
  assay_conv_cost(c, 0, 1, 2, true, out);
}

// ---- FusedConv -------------------------------------------------------------------------------
// y = activation(conv(x, w) + bias + z). Source: ONNX Runtime's ContribOperators.md.

typedef double (*activation_t)(double x, const double* params);

static double act_relu(double x, const double* p) { return (void)p, x < 0 ? 0 : x; }
static double act_tanh(double x, const double* p) { return (void)p, assay_tanh(x); }
static double act_leaky(double x, const double* p) { return x < 0 ? p[0] * x : x; }
static double act_clip(double x, const double* p) { return x < p[0] ? p[0] : x > p[1] ? p[1] : x; }

static double act_sigmoid(double x, const double* p) {
  (void)p;
  const double e = assay_exp(-fabs(x));  // does not overflow, loses nothing in either tail
  return x < 0 ? e / (1 + e) : 1 / (1 + e);
}

static double act_hard_sigmoid(double x, const double* p) {
  const double y = p[0] * x + p[1];
  return y < 0 ? 0 : y > 1 ? 1 : y;
}

static const struct activation {
  const char* name;
  activation_t f;
  size_t n_params;
} activations[] = {{"Relu", act_relu, 0},       {"Tanh", act_tanh, 0},
                   {"Sigmoid", act_sigmoid, 0}, {"LeakyRelu", act_leaky, 1},
                   {"Clip", act_clip, 2},       {"HardSigmoid", act_hard_sigmoid, 2}};

// The activation that a node asks for; *out NULL: none.
static assay_status_t find_activation(const assay_node_t* node, const struct activation** out,
                                      double* params) {
  const char* name = assay_attr_str(node, "activation", "");
  *out = NULL;
  if (name[0] == 0) return NULL;
  for (size_t i = 0; i < sizeof activations / sizeof *activations; i++) {
    if (strcmp(name, activations[i].name) == 0) *out = &activations[i];
  }
  if (!*out) {
    return ASSAY_NODE_ERROR(node, ASSAY_UNSUPPORTED,
                            "activation is '%s', expected Relu, Tanh, Sigmoid, LeakyRelu, Clip or "
                            "HardSigmoid",
                            name);
  }
  size_t n = 0;
  const float* values = assay_attr_floats(node, "activation_params", &n);
  if (n != (*out)->n_params) {
    return ASSAY_NODE_ERROR(node, ASSAY_CORRUPT, "activation_params has %zu values, %s expects %zu",
                            n, name, (*out)->n_params);
  }
  for (size_t i = 0; i < n; i++) params[i] = (double)values[i];
  return NULL;
}

static assay_status_t fused_infer(assay_infer_t* c) {
  const struct activation* act;
  double params[2];
  ASSAY_TRY(find_activation(c->node, &act, params));
  return conv_infer(c);
}

// Limits of the sum with z and of the activation. Clip is the identity between its ends; the
// others' slopes are known by name.
static void limit_fused(const assay_eval_t* c, const assay_tensor_t* z,
                        const struct activation* act, const double* params, assay_tensor_t* y) {
  const assay_steps_t steps = assay_rounding_steps(assay_running_bound_rounding(c));
  const assay_span_t to = assay_running_bound_of(c, assay_f64(y));
  const assay_span_t from =
      z ? assay_running_bound_of(c, assay_f64(z)) : (assay_span_t){NULL, NULL};
  assay_activation_t f = {.function = NULL};
  if (act) assay_activation_find(act->name, strlen(act->name), &f);
#pragma omp parallel for schedule(static) if (y->size > 20000)
  for (int64_t i = 0; i < y->size; i++) {
    assay_near_t a = assay_near_at(assay_f64(y), to, i);
    if (z) a = assay_near_add(&steps, a, assay_near_at(assay_f64(z), from, i));
    if (act) {
      const double slope = f.slope ? f.slope(a.x, a.g, params[0], params[1]) : 1;
      const double floor = 2 * fmax(1, fabs(params[0]));
      a = assay_near_function(&steps, act->f(a.x, params), a, slope, floor);
      // Alpha x + beta rounds relative to its terms.
      const double terms = strcmp(act->name, "HardSigmoid") == 0
                               ? 2 * steps.u * slope * fabs(a.x) + 2 * steps.u * fabs(params[1])
                               : 0;
      a.g += terms, a.p += terms;
    }
    assay_near_put(a, assay_f64(y), to, i);
  }
}

// The sum with z and the activation, over y.
static assay_status_t finish_fused(assay_eval_t* c, assay_tensor_t* z, assay_tensor_t* y) {
  const struct activation* act;
  double params[2] = {0};
  ASSAY_TRY(find_activation(c->node, &act, params));
  double* out = assay_f64(y);
  const int64_t n = y->size;
  if (z) {
    if (z->rank != y->rank || memcmp(z->dims, y->dims, (size_t)y->rank * sizeof *y->dims) != 0) {
      return ASSAY_NODE_ERROR(c->node, ASSAY_CORRUPT, "input Z has shape %s, expected %s",
                              ASSAY_DIMS_TEXT(z), ASSAY_DIMS_TEXT(y));
    }
  }
  if (c->running) {
    limit_fused(c, z, act, params, y);
    return NULL;
  }
  if (z) {
    const double* add = assay_f64(z);
#pragma omp parallel for schedule(static) if (n > 100000)
    for (int64_t i = 0; i < n; i++) out[i] = assay_acc(c, out[i] + add[i]);
  }
  if (!act) return NULL;
#pragma omp parallel for schedule(static) if (n > 20000)
  for (int64_t i = 0; i < n; i++) out[i] = assay_acc(c, act->f(out[i], params));
  return NULL;
}

static assay_status_t fused_eval(assay_eval_t* c) {
  operands_t o = {0};
  assay_tensor_t *y, *z = NULL;
  assay_status_t st = operands_widen(c, &o);
  if (!st && assay_eval_has(c, 3)) st = assay_tensor_widen(c->in[3], &z);
  if (!st) st = run(c, false, &o, &y);
  if (!st) st = finish_fused(c, z, y);
  assay_tensor_release(z);
  operands_release(&o);
  return st;
}

static assay_status_t fused_bound(assay_bound_t* c) { return assay_bound_running(c, fused_eval); }

static void fused_cost(const assay_eval_t* c, assay_cost_t* out) {
  conv_cost(c, out);
  if (c->out[0]) out->flops += 2 * (double)c->out[0]->size;
}

// ---- CausalConvWithState ---------------------------------------------------------------------
// A depthwise convolution over [past_state, input], and the end of that sequence as the next
// state. Source: ONNX CausalConvWithState-27.

static assay_status_t causal_infer(assay_infer_t* c) {
  const assay_shape_t x = assay_infer_shape(c, 0), w = assay_infer_shape(c, 1);
  ASSAY_TRY(assay_infer_want_rank(c, 0, 3, 3));
  ASSAY_TRY(assay_infer_want_rank(c, 1, 3, 3));
  assay_shape_t y = {.known = true, .rank = 3}, state = y;
  if (x.known) {
    for (int i = 0; i < 3; i++) y.dims[i] = x.dims[i];
  }
  if (w.known) {
    int64_t v;
    if ((assay_dim_value(w.dims[1], &v) && v != 1) || assay_dim_differ(w.dims[0], y.dims[1])) {
      return ASSAY_NODE_ERROR(c->node, ASSAY_CORRUPT,
                              "the weights have shape [%s, %s, ...], expected [%s, 1, k]",
                              assay_dim_text(w.dims[0], (char[64]){0}, 64),
                              assay_dim_text(w.dims[1], (char[64]){0}, 64),
                              assay_dim_text(y.dims[1], (char[64]){0}, 64));
    }
    if (!y.dims[1]) y.dims[1] = w.dims[0];
    if (w.dims[2]) state.dims[2] = assay_dim_add_i(c->dims, w.dims[2], -1);
  }
  state.dims[0] = y.dims[0];
  state.dims[1] = y.dims[1];
  ASSAY_TRY(assay_infer_set(c, 0, ASSAY_TYPE_UNDEFINED, &y));
  return assay_infer_set(c, 1, ASSAY_TYPE_UNDEFINED, &state);
}

static assay_status_t causal_check(const assay_eval_t* c, const operands_t* o, bool* out_silu) {
  const assay_tensor_t *x = o->x, *w = o->w;
  const assay_tensor_t* past = assay_eval_has(c, 3) ? c->in[3] : NULL;
  if (x->rank != 3 || w->rank != 3 || w->dims[0] != x->dims[1] || w->dims[1] != 1 ||
      w->dims[2] < 1) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_CORRUPT,
                            "the input has shape %s and the weights %s; expected [batch, "
                            "channels, length] and [channels, 1, k]",
                            ASSAY_DIMS_TEXT(x), ASSAY_DIMS_TEXT(w));
  }
  if (past && (past->rank != 3 || past->dims[0] != x->dims[0] || past->dims[1] != x->dims[1] ||
               past->dims[2] != w->dims[2] - 1)) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_CORRUPT,
                            "past_state has shape %s, expected [%lld, %lld, %lld]",
                            ASSAY_DIMS_TEXT(past), (long long)x->dims[0], (long long)x->dims[1],
                            (long long)(w->dims[2] - 1));
  }
  const char* act = assay_attr_str(c->node, "activation", "none");
  *out_silu = strcmp(act, "silu") == 0 || strcmp(act, "swish") == 0;
  if (!*out_silu && strcmp(act, "none") != 0) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_CORRUPT,
                            "activation is '%s', expected silu, swish or none", act);
  }
  return NULL;
}

// [past, input] along the last axis; zeros without a past.
static assay_status_t causal_sequence(const assay_eval_t* c, const operands_t* o,
                                      const assay_tensor_t* past, assay_tensor_t** out) {
  const int64_t length = o->x->dims[2], before = o->w->dims[2] - 1;
  const int64_t dims[3] = {o->x->dims[0], o->x->dims[1], length + before};
  ASSAY_TRY(assay_tensor_create_zero(o->x->type, 3, dims, out));
  if (c->running) ASSAY_TRY(assay_running_bound_cover(c, *out));
  double* to = assay_f64(*out);
  for (int64_t i = 0; i < dims[0] * dims[1]; i++, to += dims[2]) {
    if (past) memcpy(to, assay_f64(past) + i * before, (size_t)before * sizeof *to);
    memcpy(to + before, assay_f64(o->x) + i * length, (size_t)length * sizeof *to);
    if (!c->running) continue;
    if (past) assay_running_bound_copy(c, assay_f64(past) + i * before, to, before);
    assay_running_bound_copy(c, assay_f64(o->x) + i * length, to + before, length);
  }
  return NULL;
}

// x sigmoid(x), whose slope is at most 1.0999.
static void limit_silu(const assay_eval_t* c, assay_tensor_t* y) {
  const assay_steps_t steps = assay_rounding_steps(assay_running_bound_rounding(c));
  const assay_span_t to = assay_running_bound_of(c, assay_f64(y));
  for (int64_t i = 0; i < y->size; i++) {
    const assay_near_t a = assay_near_at(assay_f64(y), to, i);
    const double v = a.x * act_sigmoid(a.x, NULL);
    const assay_near_t silu = assay_near_function(&steps, v, a, 1.1, 2 * fabs(a.x));
    assay_near_put(assay_near_round(&steps, silu, 2), assay_f64(y), to, i);
  }
}

static assay_status_t causal_run(assay_eval_t* c, const operands_t* o, assay_tensor_t* all,
                                 bool silu) {
  const operands_t whole = {.x = all, .w = o->w, .bias = o->bias};
  const int64_t length = o->x->dims[2], channels = o->x->dims[1], k = o->w->dims[2];
  if (o->bias && (o->bias->rank != 1 || o->bias->dims[0] != channels)) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_CORRUPT, "the bias has shape %s, expected [%lld]",
                            ASSAY_DIMS_TEXT(o->bias), (long long)channels);
  }
  assay_tensor_t *y, *state;
  ASSAY_TRY(assay_eval_output(c, 0, o->x->type, 3, o->x->dims, &y));
  const assay_conv_t s = {
      .n = o->x->dims[0],
      .c = channels,
      .m = channels,
      .group = channels,
      .cg = 1,
      .mg = 1,
      .kernel_size = k,
      .in_size = all->dims[2],
      .out_size = length,
      .w = {
          .rank = 1,
          .axis = {{.kernel = k, .stride = 1, .dilation = 1, .in = all->dims[2], .out = length}}}};
  ASSAY_TRY(assay_conv_run(c, &s, assay_f64(all), assay_f64(o->w),
                           o->bias ? assay_f64(o->bias) : NULL, assay_f64(y)));
  double* out = assay_f64(y);
  if (c->running) {
    ASSAY_TRY(limit(c, &s, &whole, out));
    if (silu) limit_silu(c, y);
  } else if (silu) {
    for (int64_t i = 0; i < y->size; i++) {
      out[i] = assay_acc(c, out[i] * assay_acc(c, act_sigmoid(out[i], NULL)));
    }
  }
  if (!assay_eval_wants(c, 1)) return NULL;
  ASSAY_TRY(
      assay_eval_output(c, 1, o->x->type, 3, (int64_t[]){o->x->dims[0], channels, k - 1}, &state));
  for (int64_t i = 0; i < s.n * channels; i++) {
    double* to = assay_f64(state) + i * (k - 1);
    const double* from = assay_f64(all) + (i + 1) * all->dims[2] - (k - 1);
    memcpy(to, from, (size_t)(k - 1) * sizeof(double));
    if (c->running) assay_running_bound_copy(c, from, to, k - 1);
  }
  return NULL;
}

static assay_status_t causal_eval(assay_eval_t* c) {
  operands_t o = {.x = assay_tensor_retain(c->in[0]),
                  .w = assay_tensor_retain(c->in[1]),
                  .bias = assay_eval_has(c, 2) ? assay_tensor_retain(c->in[2]) : NULL};
  assay_tensor_t* all = NULL;
  bool silu;
  assay_status_t st = causal_check(c, &o, &silu);
  if (!st) st = causal_sequence(c, &o, assay_eval_has(c, 3) ? c->in[3] : NULL, &all);
  if (!st) st = causal_run(c, &o, all, silu);
  assay_tensor_release(all);
  operands_release(&o);
  return st;
}

// Source: com.microsoft CausalConvWithState 1, which is ai.onnx's and more.
static bool causal_is_plain(const assay_node_t* n) {
  return assay_attr_i64(n, "ndim", 1) == 1 && assay_attr_i64(n, "dilation", 1) == 1 &&
         assay_attr_i64(n, "channels_last", 0) == 0 && assay_attr_i64(n, "state_window", 0) == 0;
}

static assay_status_t causal_ms_infer(assay_infer_t* c) {
  if (causal_is_plain(c->node)) return causal_infer(c);
  const assay_shape_t x = assay_infer_shape(c, 0);
  ASSAY_TRY(assay_infer_set(c, 0, ASSAY_TYPE_UNDEFINED, &x));
  return assay_infer_set(c, 1, ASSAY_TYPE_UNDEFINED, NULL);
}

static assay_status_t causal_ms_eval(assay_eval_t* c) {
  if (causal_is_plain(c->node)) return causal_eval(c);
  return ASSAY_NODE_ERROR(
      c->node, ASSAY_UNSUPPORTED,
      "ndim %lld, dilation %lld, channels_last %lld, state_window %lld: only 1, "
      "1, 0 and 0 are evaluated",
      (long long)assay_attr_i64(c->node, "ndim", 1),
      (long long)assay_attr_i64(c->node, "dilation", 1),
      (long long)assay_attr_i64(c->node, "channels_last", 0),
      (long long)assay_attr_i64(c->node, "state_window", 0));
}

static assay_status_t causal_bound(assay_bound_t* c) { return assay_bound_running(c, causal_eval); }

static void causal_cost(const assay_eval_t* c, assay_cost_t* out) {
  if (c->in[1]->rank == 3) out->flops = 2 * (double)c->in[0]->size * (double)c->in[1]->dims[2];
}

// Makes limits of what is summed directly, and of what came in.
static assay_status_t direct_bound(assay_bound_t* c) {
  const assay_tensor_t* w = c->in[1];
  const assay_products_t p = {.factors = {0, 1},
                              .n_factors = 2,
                              .terms = (double)assay_dims_product(w->dims, 1, w->rank) + 1};
  return assay_bound_products(c, &p);
}

// Whether an engine may have computed some tiles directly: where inputs are past what the algorithm
// keeps (ops/conv/winograd.h), by the largest that its transforms can make of them.
static bool may_be_direct(const assay_conv_t* s, const assay_tensor_t* x, const assay_tensor_t* w) {
  double largest = 1;
  for (int64_t i = 0; i < w->size; i++) largest = fmax(largest, fabs(assay_f64(w)[i]));
  const double maximum = 0x1p100 / ((double)s->cg * largest);
  for (int64_t i = 0; i < x->size; i++) {
    const double size = fabs(assay_f64(x)[i]);
    if (!(size < maximum) || (size < 0x1p-102 && size > 0)) return true;
  }
  return false;
}

// By Winograd's algorithm. What came in is the same as for direct sums, whose own rounding is small
// beside this one's; without it they are not needed. The operands are taken without their limits,
// which are far smaller.
static assay_status_t winograd_bound(assay_bound_t* c, const assay_conv_t* s) {
  double *g, *p;
  if (assay_bound_inputs_exact(c) && !may_be_direct(s, c->in[0], c->in[1])) {
    ASSAY_TRY(assay_bound_output(c, 0, &g, &p));
    memset(g, 0, (size_t)c->out[0]->size * sizeof *g);
    memset(p, 0, (size_t)c->out[0]->size * sizeof *p);
  } else {
    ASSAY_TRY(direct_bound(c));
    g = assay_f64(c->out_error[0].guaranteed);
    p = assay_f64(c->out_error[0].probable);
  }
  const assay_tensor_t* bias = c->n_in > 2 ? c->in[2] : NULL;
  return assay_conv_winograd_limits(c->rounding, s, assay_f64(c->in[0]), assay_f64(c->in[1]),
                                    bias ? assay_f64(bias) : NULL, g, p);
}

// A term for each kernel position of each channel in the group, and the bias.
static assay_status_t conv_bound(assay_bound_t* c) {
  const assay_tensor_t* bias = c->n_in > 2 ? c->in[2] : NULL;
  assay_conv_t s;
  if (c->rounding->algorithm == ASSAY_ALGORITHM_DIRECT) return direct_bound(c);
  ASSAY_TRY(assay_conv_read(c->node, c->in[0], c->in[1], bias, false, &s));
  return assay_conv_winograd_fits(c->rounding, &s) ? winograd_bound(c, &s) : direct_bound(c);
}

static void conv_dd(assay_dd_eval_t* c) { assay_dd_products(c, 2, (const size_t[]){0, 1}); }

const assay_op_t assay_ops_conv[] = {
    {.name = "Conv",
     .domain = "",
     .since = 1,
     .flags = ASSAY_OP_PACKED | ASSAY_OP_CONTRACTS,
     .factors = 0x3,
     .infer = conv_infer,
     .eval = conv_eval,
     .bound = conv_bound,
     .dd = conv_dd,
     .cost = conv_cost},
    {.name = "CausalConvWithState",
     .domain = "com.microsoft",
     .since = 1,
     .infer = causal_ms_infer,
     .eval = causal_ms_eval,
     .bound = causal_bound,
     .cost = causal_cost,
     .schema = "input:T, weight:T, bias?:T, past_state?:T -> output:T, present_state:T "
               "| activation:s=none, ndim:i=1, dilation:i=1, channels_last:i=0, state_window:i=0 "
               "| T=float float16 bfloat16"},
    {.name = "CausalConvWithState",
     .domain = "",
     .since = 27,
     .infer = causal_infer,
     .eval = causal_eval,
     .bound = causal_bound,
     .cost = causal_cost},
    {.name = "FusedConv",
     .domain = "com.microsoft",
     .since = 1,
     .flags = ASSAY_OP_PACKED,
     .schema = "X:T, W:T, B?:T, Z?:T -> Y:T | activation:s, activation_params:fs, "
               "auto_pad:s=NOTSET, dilations:is, group:i=1, kernel_shape:is, pads:is, strides:is "
               "| T=float16 float double",
     .infer = fused_infer,
     .eval = fused_eval,
     .bound = fused_bound,
     .cost = fused_cost},
    {.name = "NhwcConv",
     .domain = "com.microsoft",
     .since = 1,
     .flags = ASSAY_OP_PACKED,
     .schema = "X:T, W:T, B?:T -> Y:T | auto_pad:s=NOTSET, dilations:is, group:i=1, "
               "kernel_shape:is, pads:is, strides:is | T=float16 float double",
     .infer = nhwc_infer,
     .eval = nhwc_eval,
     .bound = direct_bound,
     .cost = nhwc_cost},
    {0}};
