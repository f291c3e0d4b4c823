// Rules of operators that work on groups of elements: softmax, normalizations, reductions.
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/functions.h"
#include "eval/gradients/vjp.h"

// ---- softmax ------------------------------------------------------------------------------------

// y = softmax(x): dL/dx = y (g - sum of g y); y = log softmax(x): dL/dx = g - exp(y) sum of g.
static void softmax_group(bool log, int64_t n, int64_t stride, const double* y, const double* g,
                          double* to) {
  double sum = 0;
  for (int64_t i = 0; i < n; i++) sum += g[i * stride] * (log ? 1 : y[i * stride]);
  for (int64_t i = 0; i < n; i++)
    to[i * stride] += log ? g[i * stride] - assay_exp(y[i * stride]) * sum
                          : y[i * stride] * (g[i * stride] - sum);
}

static bool read_axis(const assay_vjp_t* c, int64_t otherwise, int* out) {
  const int rank = c->in[0]->rank;
  int64_t axis = assay_attr_i64(c->node, "axis", otherwise);
  if (axis < 0) axis += rank;
  *out = (int)axis;
  return axis >= 0 && axis <= rank;
}

// Source: ONNX Softmax-13; before that all dims from `axis` on are one group.
assay_status_t assay_vjp_softmax(const assay_vjp_t* c, bool* out_known) {
  const assay_tensor_t* y = c->out[0];
  const bool old = c->node->op->since < 13, log = strcmp(c->node->op_type, "LogSoftmax") == 0;
  int axis;
  *out_known = false;
  if (!read_axis(c, old ? 1 : -1, &axis) || (!old && axis == y->rank)) return NULL;
  const int64_t n = old ? assay_dims_product(y->dims, axis, y->rank) : y->dims[axis];
  const int64_t stride = old ? 1 : assay_dims_product(y->dims, axis + 1, y->rank);
  for (int64_t p = 0; p < c->probes; p++)
    for (int64_t o = 0; n > 0 && stride > 0 && o < y->size / n; o++) {
      const int64_t at = o / stride * n * stride + o % stride, probe = p * y->size + at;
      softmax_group(log, n, stride, assay_f64(y) + at, c->out_g[0] + probe, c->in_g[0] + probe);
    }
  *out_known = true;
  return NULL;
}

// ---- normalizations -----------------------------------------------------------------------------

// xh = (x - mean) / s with s = sqrt(variance + epsilon), or xh = x / s with the mean square:
//   dL/dx = (h - mean(h) - xh mean(h xh)) / s, the middle term only where the mean was taken off,
// with h = g times the scale.
typedef struct normalized {
  bool centred;
  double epsilon;
  int64_t n;
  double *xh, *h;  // n of each
} normalized_t;

static double normalize(const normalized_t* z, const double* x) {
  double mean = 0, square = 0;
  for (int64_t i = 0; z->centred && i < z->n; i++) mean += x[i] / (double)z->n;
  for (int64_t i = 0; i < z->n; i++) square += (x[i] - mean) * (x[i] - mean) / (double)z->n;
  const double s = sqrt(square + z->epsilon);
  for (int64_t i = 0; i < z->n; i++) z->xh[i] = (x[i] - mean) / s;
  return s;
}

static void add_normalized(const normalized_t* z, double s, double* to) {
  double mean = 0, product = 0;
  for (int64_t i = 0; i < z->n; i++) {
    mean += z->centred ? z->h[i] / (double)z->n : 0;
    product += z->h[i] * z->xh[i] / (double)z->n;
  }
  for (int64_t i = 0; i < z->n; i++) to[i] += (z->h[i] - mean - z->xh[i] * product) / s;
}

// The scale of element i of group `group`.
typedef double scale_fn(const assay_vjp_t* c, int64_t group, int64_t i, int64_t n);

static assay_status_t run_normalized(const assay_vjp_t* c, normalized_t* z, scale_fn* scale) {
  const assay_tensor_t* x = c->in[0];
  double* scratch = NULL;
  if (z->n == 0) return NULL;
  ASSAY_TRY(assay_new_array(2 * (size_t)z->n, sizeof *scratch, &scratch));
  z->xh = scratch;
  z->h = scratch + z->n;
  for (int64_t group = 0; group < x->size / z->n; group++) {
    const double s = normalize(z, assay_f64(x) + group * z->n);
    for (int64_t p = 0; p < c->probes; p++) {
      const int64_t at = p * x->size + group * z->n;
      for (int64_t i = 0; i < z->n; i++) z->h[i] = c->out_g[0][at + i] * scale(c, group, i, z->n);
      add_normalized(z, s, c->in_g[0] + at);
    }
  }
  assay_free(scratch);
  return NULL;
}

static bool only_output_0(const assay_vjp_t* c) {
  for (size_t o = 1; o < c->n_out; o++)
    if (c->out_g[o]) return false;
  return c->out_g[0];
}

static double layer_scale(const assay_vjp_t* c, int64_t group, int64_t i, int64_t n) {
  (void)group;
  const assay_tensor_t* s = c->n_in > 1 ? c->in[1] : NULL;
  return !s ? 1 : assay_f64(s)[s->size == n ? i : 0];
}

// Source: ONNX LayerNormalization-17, RMSNormalization-23.
assay_status_t assay_vjp_layer_norm(const assay_vjp_t* c, bool* out_known) {
  const assay_tensor_t *x = c->in[0], *s = c->n_in > 1 ? c->in[1] : NULL;
  int axis;
  *out_known = false;
  if (!only_output_0(c) || assay_vjp_wants_from(c, 1) || !read_axis(c, -1, &axis)) return NULL;
  normalized_t z = {.centred = strcmp(c->node->op_type, "LayerNormalization") == 0,
                    .epsilon = assay_attr_f64(c->node, "epsilon", 1e-5),
                    .n = assay_dims_product(x->dims, axis, x->rank)};
  if (s && s->size != z.n && s->size != 1) return NULL;
  *out_known = true;
  return run_normalized(c, &z, layer_scale);
}

static int64_t groups_of(const assay_vjp_t* c) {
  return strcmp(c->node->op_type, "InstanceNormalization") == 0
             ? c->in[0]->dims[1]
             : assay_attr_i64(c->node, "num_groups", 1);
}

static double channel_scale(const assay_vjp_t* c, int64_t group, int64_t i, int64_t n) {
  const assay_tensor_t *x = c->in[0], *s = c->in[1];
  const int64_t groups = groups_of(c), channels = x->dims[1] / groups;
  return assay_f64(s)[group % groups * channels + i / (n / channels)];
}

// Source: ONNX InstanceNormalization-6, GroupNormalization-21.
assay_status_t assay_vjp_channel_norm(const assay_vjp_t* c, bool* out_known) {
  const assay_tensor_t* x = c->in[0];
  *out_known = false;
  if (x->rank < 2 || assay_vjp_wants_from(c, 1)) return NULL;
  const int64_t groups = groups_of(c);
  if (groups < 1 || x->dims[1] % groups != 0 || x->size == 0) return NULL;
  if (c->in[1]->size != x->dims[1]) return NULL;  // GroupNormalization-18 had one a group
  normalized_t z = {.centred = true,
                    .epsilon = assay_attr_f64(c->node, "epsilon", 1e-5),
                    .n = x->size / (x->dims[0] * groups)};
  *out_known = true;
  return run_normalized(c, &z, channel_scale);
}

// ---- reductions ---------------------------------------------------------------------------------

// dy/dx of a reduction, from an element and the result; n elements are reduced to one.
typedef double slope_fn(double x, double y, double n);
static double sum_slope(double x, double y, double n) { return (void)x, (void)y, (void)n, 1; }
static double mean_slope(double x, double y, double n) { return (void)x, (void)y, 1 / n; }
static double extreme_slope(double x, double y, double n) { return (void)n, x == y ? 1 : 0; }
static double l1_slope(double x, double y, double n) {
  return (void)y, (void)n, x > 0 ? 1 : x < 0 ? -1 : 0;
}
static double l2_slope(double x, double y, double n) { return (void)n, y > 0 ? x / y : 0; }
static double square_slope(double x, double y, double n) { return (void)y, (void)n, 2 * x; }
static double log_sum_slope(double x, double y, double n) {
  return (void)x, (void)n, assay_exp(-y);
}
static double log_exp_slope(double x, double y, double n) { return (void)n, assay_exp(x - y); }

// Source: ONNX Reduce*-18.
static const struct {
  const char* op;
  slope_fn* slope;
} reductions[] = {{"ReduceSum", sum_slope},
                  {"ReduceMean", mean_slope},
                  {"ReduceMax", extreme_slope},
                  {"ReduceMin", extreme_slope},
                  {"ReduceL1", l1_slope},
                  {"ReduceL2", l2_slope},
                  {"ReduceSumSquare", square_slope},
                  {"ReduceLogSum", log_sum_slope},
                  {"ReduceLogSumExp", log_exp_slope}};

// Which axes are reduced; false where that cannot be told.
static bool reduced_axes(const assay_vjp_t* c, bool* reduced) {
  const int rank = c->in[0]->rank;
  const assay_tensor_t* given = c->n_in > 1 ? c->in[1] : NULL;
  size_t n = 0;
  const int64_t* axes = assay_attr_ints(c->node, "axes", &n);
  if (given) axes = assay_i64(given), n = (size_t)given->size;
  if (n == 0 && assay_attr_i64(c->node, "noop_with_empty_axes", 0)) return false;
  for (int i = 0; i < rank; i++) reduced[i] = n == 0;
  for (size_t i = 0; i < n; i++) {
    const int64_t axis = axes[i] < 0 ? axes[i] + rank : axes[i];
    if (axis < 0 || axis >= rank) return false;
    reduced[axis] = true;
  }
  return true;
}

static void add_reduced(const assay_vjp_t* c, const bool* reduced, slope_fn* slope) {
  const assay_tensor_t *x = c->in[0], *y = c->out[0];
  int64_t strides[ASSAY_MAX_RANK], at[ASSAY_MAX_RANK] = {0}, step = 1, to = 0;
  for (int i = x->rank - 1; i >= 0; i--) {
    strides[i] = reduced[i] ? 0 : step;
    if (!reduced[i]) step *= x->dims[i];
  }
  const double n = y->size ? (double)x->size / (double)y->size : 0;
  for (int64_t i = 0; i < x->size; i++) {
    const double d = slope(assay_f64(x)[i], assay_f64(y)[to], n);
    for (int64_t p = 0; isfinite(d) && p < c->probes; p++)
      c->in_g[0][p * x->size + i] += d * c->out_g[0][p * y->size + to];
    for (int k = x->rank - 1; k >= 0; k--) {
      to += strides[k];
      if (++at[k] < x->dims[k]) break;
      to -= strides[k] * x->dims[k];
      at[k] = 0;
    }
  }
}

assay_status_t assay_vjp_reduce(const assay_vjp_t* c, bool* out_known) {
  bool reduced[ASSAY_MAX_RANK];
  *out_known = false;
  if (c->in[0]->store != ASSAY_STORE_F64 || !reduced_axes(c, reduced)) return NULL;
  for (size_t i = 0; i < sizeof reductions / sizeof *reductions; i++) {
    if (strcmp(reductions[i].op, c->node->op_type) != 0) continue;
    add_reduced(c, reduced, reductions[i].slope);
    *out_known = true;
  }
  return NULL;
}
