// Normalizations without parameters: LRN, LpNormalization, MeanVarianceNormalization.
#include <string.h>

#include "base/functions.h"
#include "ops/conv/power_bound.h"
#include "ops/families.h"
#include "ops/norm/norm.h"
#include "ops/norm/norm_bound.h"
#include "ops/norm/norm_dd.h"

static void local_cost(const assay_eval_t* c, assay_cost_t* out) {
  out->flops = 6 * (double)c->in[0]->size;
}

// ---- LRN -------------------------------------------------------------------------------------
// y = x / (bias + alpha / size * sum of squares over the neighbouring channels) ^ beta.
// Source: ONNX LRN-13.

static assay_status_t lrn_infer(assay_infer_t* c) {
  const int64_t size = assay_attr_i64(c->node, "size", 0);
  if (size < 1) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_CORRUPT, "size is %lld, expected at least 1",
                            (long long)size);
  }
  ASSAY_TRY(assay_infer_want_rank(c, 0, 2, ASSAY_MAX_RANK));
  return assay_infer_same(c);
}

typedef struct lrn {
  const assay_eval_t* c;
  int64_t n, channels, run, before, behind;
  double alpha, beta, bias;
  const double* x;
  double* y;
} lrn_t;

static void lrn_plane(const lrn_t* p, int64_t sample, int64_t channel) {
  const assay_eval_t* c = p->c;
  const double* x = p->x + sample * p->channels * p->run;
  double* y = p->y + (sample * p->channels + channel) * p->run;
  const int64_t first = channel > p->before ? channel - p->before : 0;
  const int64_t last =
      p->behind < p->channels - 1 - channel ? channel + p->behind : p->channels - 1;
  memset(y, 0, (size_t)p->run * sizeof *y);
  for (int64_t k = first; k <= last; k++) {
    const double* v = x + k * p->run;
    if (c->arith == ASSAY_ARITH_F64) {
      for (int64_t j = 0; j < p->run; j++) y[j] += v[j] * v[j];
    } else {
      for (int64_t j = 0; j < p->run; j++) {
        y[j] = assay_acc(c, y[j] + assay_acc(c, v[j] * v[j]));
      }
    }
  }
  const double* v = x + channel * p->run;
  for (int64_t j = 0; j < p->run; j++) {
    const double base = assay_acc(c, p->bias + assay_acc(c, p->alpha * y[j]));
    // beta is 0.75 in almost every network.
    const double power = p->beta == 0.75 ? sqrt(base) * sqrt(sqrt(base)) : assay_pow(base, p->beta);
    y[j] = assay_acc(c, v[j] / assay_acc(c, power));
  }
}

static void lrn_read(const assay_eval_t* c, lrn_t* out) {
  const assay_tensor_t* x = c->in[0];
  const int64_t size = assay_attr_i64(c->node, "size", 0);
  *out = (lrn_t){.c = c,
                 .n = x->dims[0],
                 .channels = x->dims[1],
                 .before = (size - 1) / 2,
                 .behind = size - 1 - (size - 1) / 2,
                 .alpha = assay_attr_f64(c->node, "alpha", 1e-4) / (double)size,
                 .beta = assay_attr_f64(c->node, "beta", 0.75),
                 .bias = assay_attr_f64(c->node, "bias", 1),
                 .x = assay_f64(x)};
}

static assay_status_t lrn_eval(assay_eval_t* c) {
  const assay_tensor_t* x = c->in[0];
  const int64_t size = assay_attr_i64(c->node, "size", 0);
  if (x->rank < 2 || size < 1) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_CORRUPT,
                            "the input has shape %s and size is %lld; expected a channel axis and "
                            "at least 1",
                            ASSAY_DIMS_TEXT(x), (long long)size);
  }
  lrn_t p;
  lrn_read(c, &p);
  assay_tensor_t* y;
  ASSAY_TRY(assay_eval_output(c, 0, x->type, x->rank, x->dims, &y));
  if (y->size == 0) return NULL;
  p.run = x->size / (p.n * p.channels);
  p.y = assay_f64(y);
#pragma omp parallel for schedule(static) if (x->size > 20000)
  for (int64_t i = 0; i < p.n * p.channels; i++) lrn_plane(&p, i / p.channels, i % p.channels);
  return NULL;
}

static void lrn_cost(const assay_eval_t* c, assay_cost_t* out) {
  const int64_t size = assay_attr_i64(c->node, "size", 1);
  out->flops = (2 * (double)size + 4) * (double)c->in[0]->size;
}

// ---- LpNormalization -------------------------------------------------------------------------
// y = x / norm of x along the axis, 0 where the norm is 0. Source: ONNX LpNormalization-22.

static assay_status_t lp_read(const assay_node_t* node, int64_t* out_p) {
  *out_p = assay_attr_i64(node, "p", 2);
  if (*out_p == 1 || *out_p == 2) return NULL;
  return ASSAY_NODE_ERROR(node, ASSAY_CORRUPT, "p is %lld, expected 1 or 2", (long long)*out_p);
}

static assay_status_t lp_infer(assay_infer_t* c) {
  int64_t p;
  int axis;
  ASSAY_TRY(lp_read(c->node, &p));
  const assay_shape_t x = assay_infer_shape(c, 0);
  if (x.known) {
    ASSAY_TRY(assay_infer_axis(c, "axis", assay_attr_i64(c->node, "axis", -1), x.rank, &axis));
  }
  return assay_infer_same(c);
}

// One block [n, inner] along the axis; sums run along the axis in its order. norm: inner elements.
static void lp_block(const assay_eval_t* c, int64_t p, int64_t n, int64_t inner, const double* x,
                     double* norm, double* y) {
  memset(norm, 0, (size_t)inner * sizeof *norm);
  for (int64_t i = 0; i < n; i++) {
    for (int64_t j = 0; j < inner; j++) {
      const double v = x[i * inner + j];
      norm[j] = assay_acc(c, norm[j] + assay_acc(c, p == 1 ? fabs(v) : v * v));
    }
  }
  for (int64_t j = 0; j < inner && p == 2; j++) norm[j] = assay_acc(c, sqrt(norm[j]));
  for (int64_t i = 0; i < n; i++) {
    for (int64_t j = 0; j < inner; j++) {
      y[i * inner + j] = norm[j] == 0 ? 0 : assay_acc(c, x[i * inner + j] / norm[j]);
    }
  }
}

static assay_status_t lp_eval(assay_eval_t* c) {
  const assay_tensor_t* x = c->in[0];
  int64_t p;
  int axis;
  ASSAY_TRY(lp_read(c->node, &p));
  ASSAY_TRY(assay_eval_axis(c, "axis", assay_attr_i64(c->node, "axis", -1), x->rank, &axis));
  assay_tensor_t* y;
  ASSAY_TRY(assay_eval_output(c, 0, x->type, x->rank, x->dims, &y));
  if (y->size == 0) return NULL;
  const int64_t outer = assay_dims_product(x->dims, 0, axis);
  const int64_t inner = assay_dims_product(x->dims, axis + 1, x->rank);
  const int64_t n = x->dims[axis];
  double* norm = NULL;
  ASSAY_TRY(assay_new_array((size_t)(outer * inner), sizeof *norm, &norm));
#pragma omp parallel for schedule(static) if (x->size > 100000)
  for (int64_t o = 0; o < outer; o++) {
    lp_block(c, p, n, inner, assay_f64(x) + o * n * inner, norm + o * inner,
             assay_f64(y) + o * n * inner);
  }
  assay_free(norm);
  return NULL;
}

// ---- MeanVarianceNormalization ---------------------------------------------------------------
// y = (x - mean) / (standard deviation + 1e-9) over the given axes; the 1e-9 is in the operator's
// function body. Source: ONNX MeanVarianceNormalization-13.

static const double mvn_epsilon = 1e-9;

// Which axes are averaged over. The default is [0, 2, 3]; a list may be empty (none).
static assay_status_t mvn_axes(const assay_node_t* node, int rank, bool* over) {
  static const int64_t standard[] = {0, 2, 3};
  size_t n = 0;
  const int64_t* axes = assay_attr_ints(node, "axes", &n);
  if (!axes && !assay_attr_has(node, "axes")) axes = standard, n = 3;
  for (int i = 0; i < rank; i++) over[i] = false;
  for (size_t i = 0; i < n; i++) {
    if (axes[i] < -rank || axes[i] >= rank) {
      return ASSAY_NODE_ERROR(node, ASSAY_CORRUPT, "axes holds %lld, expected -%d to %d",
                              (long long)axes[i], rank, rank - 1);
    }
    over[axes[i] < 0 ? axes[i] + rank : axes[i]] = true;
  }
  return NULL;
}

static assay_status_t mvn_infer(assay_infer_t* c) {
  bool over[ASSAY_MAX_RANK];
  const assay_shape_t x = assay_infer_shape(c, 0);
  if (x.known) ASSAY_TRY(mvn_axes(c->node, x.rank, over));
  return assay_infer_same(c);
}

// Calls for runs along the last axis: element j of a run belongs to statistic g + j * step.
typedef struct mvn {
  const assay_eval_t* c;
  const assay_tensor_t* x;
  int64_t strides[ASSAY_MAX_RANK];  // of the statistics; 0 where averaged over
  double *mean, *spread;            // sums first, then mean and standard deviation
  double* y;
} mvn_t;

// The statistic that run r starts with.
static int64_t mvn_start(const mvn_t* p, int64_t r) {
  int64_t g = 0;
  for (int i = p->x->rank - 2; i >= 0; i--) {
    g += r % p->x->dims[i] * p->strides[i];
    r /= p->x->dims[i];
  }
  return g;
}

enum { MVN_SUM, MVN_SQUARES, MVN_APPLY };

static void mvn_pass(const mvn_t* p, int pass) {
  const assay_eval_t* c = p->c;
  const assay_tensor_t* x = p->x;
  const int64_t size = x->rank > 0 ? x->dims[x->rank - 1] : 1;
  const int64_t step = x->rank > 0 ? p->strides[x->rank - 1] : 0;
  for (int64_t r = 0; r < x->size / size; r++) {
    const double* v = assay_f64(x) + r * size;
    const int64_t start = mvn_start(p, r);
    double *mean = p->mean + start, *spread = p->spread + start;
    for (int64_t j = 0; j < size; j++) {
      if (pass == MVN_SUM) {
        mean[j * step] = assay_acc(c, mean[j * step] + v[j]);
        continue;
      }
      const double d = assay_acc(c, v[j] - mean[j * step]);
      if (pass == MVN_SQUARES) {
        spread[j * step] = assay_acc(c, spread[j * step] + assay_acc(c, d * d));
      } else {
        p->y[r * size + j] = assay_acc(c, d / spread[j * step]);
      }
    }
  }
}

static assay_status_t mvn_eval(assay_eval_t* c) {
  const assay_tensor_t* x = c->in[0];
  bool over[ASSAY_MAX_RANK];
  ASSAY_TRY(mvn_axes(c->node, x->rank, over));
  assay_tensor_t* y;
  ASSAY_TRY(assay_eval_output(c, 0, x->type, x->rank, x->dims, &y));
  if (y->size == 0) return NULL;
  mvn_t p = {.c = c, .x = x, .y = assay_f64(y)};
  int64_t groups = 1;
  for (int i = x->rank - 1; i >= 0; i--) {
    p.strides[i] = over[i] ? 0 : groups;
    if (!over[i]) groups *= x->dims[i];
  }
  ASSAY_TRY(assay_new_array((size_t)groups, 2 * sizeof *p.mean, &p.mean));
  p.spread = p.mean + groups;
  const double n = (double)(x->size / groups);
  mvn_pass(&p, MVN_SUM);
  for (int64_t g = 0; g < groups; g++) p.mean[g] = assay_acc(c, p.mean[g] / n);
  mvn_pass(&p, MVN_SQUARES);
  for (int64_t g = 0; g < groups; g++) {
    const double deviation = assay_acc(c, sqrt(assay_acc(c, p.spread[g] / n)));
    p.spread[g] = assay_acc(c, deviation + mvn_epsilon);
  }
  mvn_pass(&p, MVN_APPLY);
  assay_free(p.mean);
  return NULL;
}

// ---- bounds -----------------------------------------------------------------------------------

// x / base^beta: the base, a sum of squares and a constant, is off by a relative t, its power by
// (1 - t)^-beta.
static void lrn_bound_plane(const lrn_t* p, const assay_rounding_t* r, bool probable,
                            const double* error, int64_t i, double* limits) {
  const assay_inner_t in = assay_bound_inner(r);
  const int64_t channel = i % p->channels, sample = i / p->channels * p->channels * p->run;
  const int64_t first = channel > p->before ? channel - p->before : 0;
  const int64_t last =
      p->behind < p->channels - 1 - channel ? channel + p->behind : p->channels - 1;
  const double terms = (double)(last - first + 1), alpha = fabs(p->alpha);
  const double sum = assay_factor_of(assay_bound_sum(r, terms), probable);
  for (int64_t j = 0; j < p->run; j++) {
    double squares = 0, moved = 0;
    for (int64_t k = first; k <= last; k++) {
      const double x = fabs(p->x[sample + k * p->run + j]);
      const double e = error ? error[sample + k * p->run + j] : 0;
      squares += x * x;
      moved += (2 * x + e) * e;
    }
    const int64_t at = sample + channel * p->run + j;
    const double base = fabs(p->bias + p->alpha * squares), e = error ? error[at] : 0;
    const double size = fabs(p->bias) + alpha * (squares + moved);
    const double off = alpha * (moved + (1 + sum) * (squares + moved) * 3 * in.u +
                                sum * (squares + moved) + terms * in.tiny) +
                       2 * in.u * size + in.tiny;
    const double t = off / base;
    double power = t < 1 ? assay_expm1(-fabs(p->beta) * assay_log1p(-t)) : (double)INFINITY;
    if ((squares + moved) * (1 + sum) > in.max) power = (double)INFINITY;
    power = (1 + power) * (1 + in.function) * (1 + 4 * in.u) - 1;
    const double root = assay_pow(base, p->beta);
    const double limit = fabs(p->x[at]) / root * power + e / root * (1 + power) + 2 * in.tiny;
    limits[at] = limit == limit ? limit : (double)INFINITY;
  }
}

static assay_status_t lrn_bound(assay_bound_t* c) {
  const assay_tensor_t* x = c->in[0];
  double* limits[2];
  ASSAY_TRY(assay_bound_output(c, 0, &limits[0], &limits[1]));
  if (!limits[0] || x->size == 0) return NULL;
  const assay_eval_t reader = assay_bound_as_eval(c);
  lrn_t p;
  lrn_read(&reader, &p);
  p.run = x->size / (p.n * p.channels);
#pragma omp parallel for schedule(static) if (x->size > 20000)
  for (int64_t i = 0; i < p.n * p.channels; i++)
    for (int k = 0; k < 2; k++)
      lrn_bound_plane(&p, c->rounding, k, assay_bound_in(c, 0, k), i, limits[k]);
  return NULL;
}

// x / norm; a norm of 0 makes 0.
static void lp_bound_line(const assay_rounding_t* r, const assay_power_norm_t* norm, bool probable,
                          int64_t inner, const double* x, const double* error, double* limits) {
  const assay_inner_t in = assay_bound_inner(r);
  const int64_t n = (int64_t)norm->terms;
  double sum = 0, sum_error = 0;
  for (int64_t i = 0; i < n; i++) {
    const double v = fabs(x[i * inner]), e = error ? error[i * inner] : 0;
    sum += norm->p == 1 ? v : v * v;
    sum_error += norm->p == 1 ? e : e * e;
  }
  const double size = norm->p == 1 ? sum : sqrt(sum);
  const double in_size = norm->p == 1 ? sum_error : sqrt(sum_error);
  const double off = in_size + assay_bound_norm_of(r, norm, size + in_size, probable);
  const double t = off / size;
  const double relative = t < 1 ? (1 + 2 * in.u) / (1 - t) - 1 : (double)INFINITY;
  for (int64_t i = 0; i < n; i++) {
    const double e = error ? error[i * inner] : 0;
    double limit = fabs(x[i * inner]) / size * relative + e / size * (1 + relative) + in.tiny;
    if (size == 0) limit = in_size > 0 ? (double)INFINITY : 0;
    limits[i * inner] = limit == limit ? limit : (double)INFINITY;
  }
}

static assay_status_t lp_bound(assay_bound_t* c) {
  const assay_tensor_t* x = c->in[0];
  const assay_eval_t reader = assay_bound_as_eval(c);
  double* limits[2];
  int64_t p;
  int axis;
  ASSAY_TRY(lp_read(c->node, &p));
  ASSAY_TRY(assay_eval_axis(&reader, "axis", assay_attr_i64(c->node, "axis", -1), x->rank, &axis));
  ASSAY_TRY(assay_bound_output(c, 0, &limits[0], &limits[1]));
  if (!limits[0] || x->size == 0) return NULL;
  const assay_power_norm_t norm = {.p = (double)p, .terms = (double)x->dims[axis]};
  const int64_t inner = assay_dims_product(x->dims, axis + 1, x->rank);
  const int64_t lines = x->size / x->dims[axis];
#pragma omp parallel for schedule(static) if (x->size > 100000)
  for (int64_t i = 0; i < lines; i++) {
    const int64_t at = i / inner * x->dims[axis] * inner + i % inner;
    for (int k = 0; k < 2; k++) {
      const double* error = assay_bound_in(c, 0, k);
      lp_bound_line(c->rounding, &norm, k, inner, assay_f64(x) + at, error ? error + at : NULL,
                    limits[k] + at);
    }
  }
  return NULL;
}

// The elements of each group of a mean, one group after the other.
typedef struct mvn_groups {
  int64_t groups, size;
  int64_t* place;   // of the elements of the groups in the tensor
  int64_t* filled;  // elements that each group has so far
  double *x, *e;    // e: limits of one kind; NULL: none
} mvn_groups_t;

static void mvn_fill(const assay_tensor_t* x, const bool* over, mvn_groups_t* g) {
  int64_t strides[ASSAY_MAX_RANK], step = 1, at[ASSAY_MAX_RANK] = {0}, group = 0;
  for (int i = x->rank - 1; i >= 0; i--) {
    strides[i] = over[i] ? 0 : step;
    if (!over[i]) step *= x->dims[i];
  }
  for (int64_t i = 0; i < x->size; i++) {
    const int64_t to = group * g->size + g->filled[group]++;
    g->x[to] = assay_f64(x)[i];
    g->place[to] = i;
    for (int d = x->rank - 1; d >= 0; d--) {
      group += strides[d];
      if (++at[d] < x->dims[d]) break;
      group -= strides[d] * at[d];
      at[d] = 0;
    }
  }
}

// (x - mean) / (sqrt(var) + 1e-9). Where the variance may vanish the quotient is bounded by itself
// only: no element is farther from the mean than sqrt(n) deviations (as long as squares do not
// vanish).
static void mvn_bound_group(const assay_rounding_t* r, const mvn_groups_t* g, bool probable,
                            int64_t i, double* limits) {
  const assay_inner_t in = assay_bound_inner(r);
  const double n = (double)g->size;
  const assay_norm_group_t group = {
      .x = g->x + i * g->size, .e = g->e ? g->e + i * g->size : NULL, .runs = 1, .run = g->size};
  const assay_norm_stats_t s = assay_norm_bound_stats(r, probable, true, &group, 0);
  const double root = sqrt(s.var), spread = root + mvn_epsilon;
  double off = fmax(sqrt(s.var + s.var_error) - root, root - sqrt(fmax(0, s.var - s.var_error)));
  off += 3 * in.u * (spread + off) + in.tiny;
  const double t = off / spread;
  const double relative = t < 1 ? (1 + 2 * in.u) / (1 - t) - 1 : (double)INFINITY;
  const bool capped = r->documented && !g->e && sqrt(in.tiny) < mvn_epsilon;
  for (int64_t j = 0; j < g->size; j++) {
    const double d = fabs(group.x[j] - s.mean), y = d / spread;
    const double of_d = s.mean_error + (group.e ? group.e[j] : 0);
    double limit = y * relative + (of_d + in.u * (d + of_d)) / spread * (1 + relative) + in.tiny;
    if (capped && isfinite(of_d)) limit = fmin(limit, y + 1.5 * sqrt(n));
    limits[g->place[i * g->size + j]] = limit == limit ? limit : (double)INFINITY;
  }
}

static void mvn_bound_all(const assay_bound_t* c, mvn_groups_t* g, double* const limits[2]) {
  for (int k = 0; k < 2; k++) {
    const double* error = assay_bound_in(c, 0, k);
    for (int64_t i = 0; error && i < c->in[0]->size; i++) g->e[i] = error[g->place[i]];
#pragma omp parallel for schedule(static) if (c->in[0]->size > 100000)
    for (int64_t i = 0; i < g->groups; i++) mvn_bound_group(c->rounding, g, k, i, limits[k]);
  }
}

static assay_status_t mvn_bound(assay_bound_t* c) {
  const assay_tensor_t* x = c->in[0];
  bool over[ASSAY_MAX_RANK];
  double* limits[2];
  ASSAY_TRY(mvn_axes(c->node, x->rank, over));
  ASSAY_TRY(assay_bound_output(c, 0, &limits[0], &limits[1]));
  if (!limits[0] || x->size == 0) return NULL;
  mvn_groups_t g = {.groups = 1};
  for (int i = 0; i < x->rank; i++) g.groups *= over[i] ? 1 : x->dims[i];
  g.size = x->size / g.groups;
  assay_status_t st = assay_new_array((size_t)x->size, sizeof *g.place, &g.place);
  if (!st) st = assay_new_array((size_t)g.groups, sizeof *g.filled, &g.filled);
  if (!st) st = assay_new_array((size_t)x->size, sizeof *g.x, &g.x);
  if (!st && assay_bound_is_limited(c, 0)) st = assay_new_array((size_t)x->size, sizeof *g.e, &g.e);
  if (!st) {
    mvn_fill(x, over, &g);
    mvn_bound_all(c, &g, limits);
  }
  assay_free(g.place);
  assay_free(g.filled);
  assay_free(g.x);
  assay_free(g.e);
  return st;
}

static void mvn_dd(assay_dd_eval_t* c) {
  bool over[ASSAY_MAX_RANK];
  c->status = mvn_axes(c->node, c->in[0].high->rank, over);
  if (!c->status) assay_mean_variance_norm_dd(c, over, mvn_epsilon);
}

const assay_op_t assay_ops_norm_local[] = {{.name = "LRN",
                                            .domain = "",
                                            .since = 1,
                                            .infer = lrn_infer,
                                            .eval = lrn_eval,
                                            .bound = lrn_bound,
                                            .cost = lrn_cost},
                                           {.name = "LpNormalization",
                                            .domain = "",
                                            .since = 1,
                                            .infer = lp_infer,
                                            .eval = lp_eval,
                                            .bound = lp_bound,
                                            .dd = assay_lp_norm_dd,
                                            .cost = local_cost},
                                           {.name = "MeanVarianceNormalization",
                                            .domain = "",
                                            .since = 9,
                                            .infer = mvn_infer,
                                            .eval = mvn_eval,
                                            .bound = mvn_bound,
                                            .dd = mvn_dd,
                                            .cost = local_cost},
                                           {0}};
