// The Reduce* operators.
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/functions.h"
#include "ops/bound_parts.h"
#include "ops/conv/power_bound.h"
#include "ops/dd_array.h"
#include "ops/families.h"

#define ALWAYS_INLINE static inline __attribute__((always_inline))

typedef enum kind {
  KIND_SUM,
  KIND_MEAN,
  KIND_PROD,
  KIND_MAX,
  KIND_MIN,
  KIND_L1,
  KIND_L2,
  KIND_SUM_SQUARE,
  KIND_LOG_SUM,
  KIND_LOG_SUM_EXP,
} kind_t;

// ---- which axes -------------------------------------------------------------------------------

// Marks axes; an error if one is out of range or named twice.
static assay_status_t mark_axes(const assay_eval_t* c, int64_t n, const int64_t* axes, int rank,
                                bool* reduced) {
  for (int64_t i = 0; i < n; i++) {
    int axis = 0;
    ASSAY_TRY(assay_eval_axis(c, "axes", axes[i], rank, &axis));
    if (reduced[axis]) {
      return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT, "axes names axis %d twice", axis);
    }
    reduced[axis] = true;
  }
  return NULL;
}

// No axes: all of them, unless noop_with_empty_axes says none.
static assay_status_t eval_axes(const assay_eval_t* c, bool as_input, bool* reduced) {
  const int rank = c->in[0]->rank;
  int64_t n = 0;
  const int64_t* axes = NULL;
  bool none = false;
  if (as_input) {
    none = assay_attr_i64(c->node, "noop_with_empty_axes", 0) != 0;
    if (assay_eval_has(c, 1)) {
      n = c->in[1]->size;
      axes = assay_i64(c->in[1]);
    }
  } else {
    size_t n_attr = 0;
    axes = assay_attr_ints(c->node, "axes", &n_attr);
    n = (int64_t)n_attr;
  }
  for (int i = 0; i < rank; i++) reduced[i] = n == 0 && !none;
  return mark_axes(c, n, axes, rank, reduced);
}

// ---- walking ----------------------------------------------------------------------------------

// The input as neighbouring dims merged into groups that are kept or reduced.
typedef struct groups {
  int n_kept, n_reduced;
  int64_t kept[ASSAY_MAX_RANK], kept_stride[ASSAY_MAX_RANK];
  int64_t reduced[ASSAY_MAX_RANK], reduced_stride[ASSAY_MAX_RANK];
  int64_t n_out, n_terms;  // elements kept, elements in each sum
  bool inner_kept;         // the last group is kept
} groups_t;

static groups_t group_dims(const assay_tensor_t* x, const bool* reduced) {
  groups_t g = {.n_out = 1, .n_terms = 1};
  int64_t stride[ASSAY_MAX_RANK];
  int64_t step = 1;
  for (int i = x->rank - 1; i >= 0; i--) {
    stride[i] = step;
    step *= x->dims[i];
  }
  int last = -1;
  for (int i = 0; i < x->rank; i++) {
    const int64_t d = x->dims[i];
    *(reduced[i] ? &g.n_terms : &g.n_out) *= d;
    if (d == 1) continue;
    int* n = reduced[i] ? &g.n_reduced : &g.n_kept;
    int64_t* dims = reduced[i] ? g.reduced : g.kept;
    int64_t* strides = reduced[i] ? g.reduced_stride : g.kept_stride;
    if (last == (int)reduced[i]) {
      dims[*n - 1] *= d;
    } else {
      dims[(*n)++] = d;
    }
    strides[*n - 1] = stride[i];
    last = (int)reduced[i];
  }
  g.inner_kept = last == 0;
  return g;
}

// The offset of element `index` of a row-major walk over n groups.
static int64_t offset_of(int n, const int64_t* dims, const int64_t* strides, int64_t index) {
  int64_t offset = 0;
  for (int i = n - 1; i >= 0; i--) {
    offset += index % dims[i] * strides[i];
    index /= dims[i];
  }
  return offset;
}

// ---- floats -----------------------------------------------------------------------------------

// One step of a fold. SUM stands for MEAN and LOG_SUM, SUM_SQUARE for L2.
ALWAYS_INLINE double fold(kind_t kind, double s, double x, double shift) {
  switch (kind) {
    case KIND_PROD:
      return s * x;
    case KIND_MAX:
      return x > s || isnan(x) ? x : s;
    case KIND_MIN:
      return x < s || isnan(x) ? x : s;
    case KIND_L1:
      return s + fabs(x);
    case KIND_SUM_SQUARE:
      return s + x * x;
    case KIND_LOG_SUM_EXP:
      return s + assay_exp(x - shift);
    default:
      return s + x;
  }
}

// The same in an emulated accumulator.
static double fold_rounded(const assay_eval_t* c, kind_t kind, double s, double x, double shift) {
  if (kind == KIND_MAX || kind == KIND_MIN)
    return fold(kind, s, x, shift);  // a choice: no rounding
  if (kind == KIND_SUM_SQUARE) return assay_acc(c, s + assay_acc(c, x * x));
  if (kind == KIND_LOG_SUM_EXP) {
    return assay_acc(c, s + assay_acc(c, assay_exp(assay_acc(c, x - shift))));
  }
  if (kind == KIND_MAX || kind == KIND_MIN) return fold(kind, s, x, shift);  // one of the elements
  return assay_acc(c, fold(kind, s, x, shift));
}

static double fold_start(kind_t kind) {
  switch (kind) {
    case KIND_PROD:
      return 1;
    case KIND_MAX:
      return -INFINITY;
    case KIND_MIN:
      return INFINITY;
    default:
      return 0;
  }
}

// Folds a run of neighbours: in F64 as eight interleaved chains, joined at the end, which is both
// faster and closer than one chain.
ALWAYS_INLINE double run_of(kind_t kind, double s, int64_t n, const double* x, double shift) {
  enum { LANES = 8 };
  int64_t i = 0;
  if (n >= LANES && kind != KIND_LOG_SUM_EXP) {
    double lanes[LANES];
    for (int t = 0; t < LANES; t++) lanes[t] = fold_start(kind);
    for (; i + LANES <= n; i += LANES) {
      for (int t = 0; t < LANES; t++) lanes[t] = fold(kind, lanes[t], x[i + t], shift);
    }
    const kind_t join = kind == KIND_L1 || kind == KIND_SUM_SQUARE ? KIND_SUM : kind;
    for (int w = LANES / 2; w > 0; w /= 2) {
      for (int t = 0; t < w; t++) lanes[t] = fold(join, lanes[t], lanes[t + w], 0);
    }
    s = fold(join, s, lanes[0], 0);
  }
  for (; i < n; i++) s = fold(kind, s, x[i], shift);
  return s;
}

ALWAYS_INLINE void block_of(kind_t kind, int64_t n, const double* x, const double* shift,
                            double* s) {
  for (int64_t j = 0; j < n; j++) s[j] = fold(kind, s[j], x[j], shift[j]);
}

// Constant kinds let the compiler make a loop for each.
#define FOR_EACH_KIND(DO)   \
  switch (kind) {           \
    case KIND_PROD:         \
      DO(KIND_PROD);        \
      break;                \
    case KIND_MAX:          \
      DO(KIND_MAX);         \
      break;                \
    case KIND_MIN:          \
      DO(KIND_MIN);         \
      break;                \
    case KIND_L1:           \
      DO(KIND_L1);          \
      break;                \
    case KIND_SUM_SQUARE:   \
      DO(KIND_SUM_SQUARE);  \
      break;                \
    case KIND_LOG_SUM_EXP:  \
      DO(KIND_LOG_SUM_EXP); \
      break;                \
    default:                \
      DO(KIND_SUM);         \
      break;                \
  }

static double fold_run(const assay_eval_t* c, kind_t kind, double s, int64_t n, const double* x,
                       double shift) {
  if (c->arith != ASSAY_ARITH_F64) {
    for (int64_t i = 0; i < n; i++) s = fold_rounded(c, kind, s, x[i], shift);
    return s;
  }
#define DO(K) s = run_of(K, s, n, x, shift)
  FOR_EACH_KIND(DO)
#undef DO
  return s;
}

static void fold_block(const assay_eval_t* c, kind_t kind, int64_t n, const double* x,
                       const double* shift, double* s) {
  if (c->arith != ASSAY_ARITH_F64) {
    for (int64_t j = 0; j < n; j++) s[j] = fold_rounded(c, kind, s[j], x[j], shift[j]);
    return;
  }
#define DO(K) block_of(K, n, x, shift, s)
  FOR_EACH_KIND(DO)
#undef DO
}

// Outputs are made in blocks of neighbours; each block walks its terms in row-major order.
enum { BLOCK = 128 };

// One pass over the terms of the outputs [at, at + n), whose first term is x[0].
static void fold_terms(const assay_eval_t* c, const groups_t* g, kind_t kind, int64_t n,
                       const double* x, const double* shift, double* s) {
  const int runs = g->inner_kept || g->n_reduced == 0 ? g->n_reduced : g->n_reduced - 1;
  const int64_t length = runs < g->n_reduced ? g->reduced[runs] : 1;
  int64_t index[ASSAY_MAX_RANK] = {0};
  int64_t offset = 0;
  for (int64_t i = 0; i < n; i++) s[i] = fold_start(kind);
  for (;;) {
    if (g->inner_kept) {
      fold_block(c, kind, n, x + offset, shift, s);
    } else {
      s[0] = fold_run(c, kind, s[0], length, x + offset, shift[0]);
    }
    int i = runs - 1;
    for (; i >= 0; i--) {
      offset += g->reduced_stride[i];
      if (++index[i] < g->reduced[i]) break;
      offset -= g->reduced_stride[i] * index[i];
      index[i] = 0;
    }
    if (i < 0) return;
  }
}

static double finish(const assay_eval_t* c, kind_t kind, int64_t n_terms, double shift, double s) {
  switch (kind) {
    case KIND_MEAN:
      return assay_acc(c, s / (double)n_terms);
    case KIND_L2:
      return assay_acc(c, sqrt(s));
    case KIND_LOG_SUM:
      return assay_acc(c, assay_log(s));
    case KIND_LOG_SUM_EXP:
      return assay_acc(c, assay_acc(c, assay_log(s)) + shift);
    default:
      return s;
  }
}

static void reduce_floats(const assay_eval_t* c, const groups_t* g, kind_t kind, const double* x,
                          double* y) {
  kind_t step = kind;
  if (kind == KIND_MEAN || kind == KIND_LOG_SUM) step = KIND_SUM;
  if (kind == KIND_L2) step = KIND_SUM_SQUARE;
  const int64_t row = g->inner_kept ? g->kept[g->n_kept - 1] : 1;
  const int64_t row_blocks = (row + BLOCK - 1) / BLOCK;
  const int64_t blocks = g->n_out / row * row_blocks;
  const double work = (double)g->n_out * (double)g->n_terms;
#pragma omp parallel for schedule(static) if (blocks > 1 && work > 1e5)
  for (int64_t b = 0; b < blocks; b++) {
    const int64_t at = b / row_blocks * row + b % row_blocks * BLOCK;
    const int64_t left = row - b % row_blocks * BLOCK, n = left < BLOCK ? left : BLOCK;
    double s[BLOCK], shift[BLOCK] = {0};
    if (g->n_terms == 0) {
      for (int64_t i = 0; i < n; i++) s[i] = fold_start(step);
    } else {
      const double* from = x + offset_of(g->n_kept, g->kept, g->kept_stride, at);
      if (kind == KIND_LOG_SUM_EXP) {  // exp must not overflow: shifted by the largest term
        fold_terms(c, g, KIND_MAX, n, from, shift, s);
        for (int64_t i = 0; i < n; i++) shift[i] = isfinite(s[i]) ? s[i] : 0;
      }
      fold_terms(c, g, step, n, from, shift, s);
    }
    for (int64_t i = 0; i < n; i++) y[at + i] = finish(c, kind, g->n_terms, shift[i], s[i]);
  }
}

// ---- integers ---------------------------------------------------------------------------------

// Sums and products wrap; L2, logarithms and the like are made in double and truncated.
typedef struct integer_sum {
  uint64_t i;
  double f;
} integer_sum_t;

static void fold_integer(kind_t kind, bool is_unsigned, int64_t x, double shift, integer_sum_t* s) {
  const double v = is_unsigned ? (double)(uint64_t)x : (double)x;
  switch (kind) {
    case KIND_PROD:
      s->i *= (uint64_t)x;
      break;
    case KIND_L1:
      s->i += !is_unsigned && x < 0 ? 0 - (uint64_t)x : (uint64_t)x;
      break;
    case KIND_SUM_SQUARE:
      s->i += (uint64_t)x * (uint64_t)x;
      break;
    case KIND_L2:
      s->f += v * v;
      break;
    case KIND_LOG_SUM:
      s->f += v;
      break;
    case KIND_LOG_SUM_EXP:
      s->f += assay_exp(v - shift);
      break;
    case KIND_MAX:
      if (is_unsigned ? (uint64_t)x > s->i : x > (int64_t)s->i) s->i = (uint64_t)x;
      break;
    case KIND_MIN:
      if (is_unsigned ? (uint64_t)x < s->i : x < (int64_t)s->i) s->i = (uint64_t)x;
      break;
    default:
      s->i += (uint64_t)x;
      break;
  }
}

static int64_t finish_integer(kind_t kind, assay_type_t type, int64_t n_terms, double shift,
                              integer_sum_t s) {
  switch (kind) {
    case KIND_MEAN:  // of no elements: undefined; 0 here
      if (n_terms == 0) return 0;
      if (type == ASSAY_TYPE_UINT64) return (int64_t)(s.i / (uint64_t)n_terms);
      return assay_type_wrap(type, (int64_t)s.i / n_terms);
    case KIND_L2:
      return assay_type_saturate(type, trunc(sqrt(s.f)));
    case KIND_LOG_SUM:
      return assay_type_saturate(type, trunc(assay_log(s.f)));
    case KIND_LOG_SUM_EXP:
      return assay_type_saturate(type, trunc(assay_log(s.f) + shift));
    default:
      return assay_type_wrap(type, (int64_t)s.i);
  }
}

static void reduce_integers(const groups_t* g, kind_t kind, assay_type_t type, const int64_t* x,
                            int64_t* y) {
  const bool is_unsigned = type == ASSAY_TYPE_UINT64;
  integer_sum_t start = {0};
  if (kind == KIND_PROD) start.i = 1;
  if (kind == KIND_MAX && type != ASSAY_TYPE_BOOL) {
    start.i = (uint64_t)assay_type_saturate(type, -INFINITY);
  }
  if (kind == KIND_MIN) {
    start.i = type == ASSAY_TYPE_BOOL ? 1 : (uint64_t)assay_type_saturate(type, INFINITY);
  }
  const double work = (double)g->n_out * (double)g->n_terms;
#pragma omp parallel for schedule(static) if (g->n_out > 1 && work > 1e5)
  for (int64_t o = 0; o < g->n_out; o++) {
    integer_sum_t s = start;
    double shift = 0;
    const int64_t* from = g->n_terms ? x + offset_of(g->n_kept, g->kept, g->kept_stride, o) : x;
    for (int pass = kind == KIND_LOG_SUM_EXP ? 0 : 1; pass < 2; pass++) {
      double max = -INFINITY;
      for (int64_t t = 0; t < g->n_terms; t++) {
        const int64_t v = from[offset_of(g->n_reduced, g->reduced, g->reduced_stride, t)];
        if (pass == 0) {
          max = fmax(max, is_unsigned ? (double)(uint64_t)v : (double)v);
        } else {
          fold_integer(kind, is_unsigned, v, shift, &s);
        }
      }
      if (pass == 0 && g->n_terms > 0) shift = max;
    }
    y[o] = finish_integer(kind, type, g->n_terms, shift, s);
  }
}

// ---- the Reduce operators ---------------------------------------------------------------------

// Source: ONNX Reduce* 1 to 28. `as_input`: axes are an input (ReduceSum from 13, others from 18).
static assay_status_t reduce_eval(assay_eval_t* c, kind_t kind, bool as_input) {
  const assay_tensor_t* x = c->in[0];
  bool reduced[ASSAY_MAX_RANK];
  ASSAY_TRY(eval_axes(c, as_input, reduced));
  const bool keep = assay_attr_i64(c->node, "keepdims", 1) != 0;
  int rank = 0;
  int64_t dims[ASSAY_MAX_RANK];
  for (int i = 0; i < x->rank; i++) {
    if (!reduced[i]) dims[rank++] = x->dims[i];
    if (reduced[i] && keep) dims[rank++] = 1;
  }
  assay_tensor_t* y = NULL;
  ASSAY_TRY(assay_eval_output(c, 0, assay_eval_out_type(c, 0, x->type), rank, dims, &y));
  if (y->size == 0) return NULL;
  const groups_t g = group_dims(x, reduced);
  if (x->store == ASSAY_STORE_F64) {
    reduce_floats(c, &g, kind, assay_f64(x), assay_f64(y));
  } else {
    reduce_integers(&g, kind, y->type, assay_i64(x), assay_i64(y));
  }
  return NULL;
}

// Hands on what is known of a small integer tensor that is reduced as a whole: the number of
// elements of a shape, for example.
static assay_status_t infer_content(assay_infer_t* c, kind_t kind, int rank) {
  assay_content_t x;
  if (kind != KIND_SUM && kind != KIND_PROD && kind != KIND_MAX && kind != KIND_MIN) return NULL;
  if (assay_type_is_float(assay_infer_elem(c, 0)) || !assay_infer_content(c, 0, &x) || x.n == 0) {
    return NULL;
  }
  const assay_dim_t* y = x.elems[0];
  for (int64_t i = 1; i < x.n; i++) {
    if (kind == KIND_SUM) y = assay_dim_add(c->dims, y, x.elems[i]);
    if (kind == KIND_PROD) y = assay_dim_mul(c->dims, y, x.elems[i]);
    if (kind == KIND_MAX) y = assay_dim_max(c->dims, y, x.elems[i]);
    if (kind == KIND_MIN) y = assay_dim_min(c->dims, y, x.elems[i]);
  }
  return assay_infer_set_content(c, 0, rank, 1, &y);
}

// The axes before running: false in *out_known if they cannot be known.
static assay_status_t infer_axes(const assay_infer_t* c, bool as_input, int rank, bool* reduced,
                                 bool* out_known) {
  bool none = false;
  int64_t n = 0, axes[2 * ASSAY_MAX_RANK];
  *out_known = true;
  if (as_input) {
    none = assay_attr_i64(c->node, "noop_with_empty_axes", 0) != 0;
    assay_content_t content = {0};
    if (assay_infer_has(c, 1)) {
      *out_known = assay_infer_content(c, 1, &content);
      n = *out_known ? content.n : 0;
    }
    for (int64_t i = 0; i < n && i < 2 * ASSAY_MAX_RANK; i++) {
      if (!assay_dim_value(content.elems[i], &axes[i])) *out_known = false;
    }
  } else {
    size_t n_attr = 0;
    const int64_t* given = assay_attr_ints(c->node, "axes", &n_attr);
    n = (int64_t)n_attr;
    for (int64_t i = 0; i < n && i < 2 * ASSAY_MAX_RANK; i++) axes[i] = given[i];
  }
  if (!*out_known) return NULL;
  if (n > rank) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                            "axes has %lld elements; expected at most the input's rank, %d",
                            (long long)n, rank);
  }
  for (int i = 0; i < rank; i++) reduced[i] = n == 0 && !none;
  for (int64_t i = 0; i < n; i++) {
    int axis = 0;
    ASSAY_TRY(assay_infer_axis(c, "axes", axes[i], rank, &axis));
    if (reduced[axis]) {
      return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT, "axes names axis %d twice", axis);
    }
    reduced[axis] = true;
  }
  return NULL;
}

static assay_status_t reduce_infer(assay_infer_t* c, kind_t kind, bool as_input) {
  const assay_shape_t x = assay_infer_shape(c, 0);
  if (!x.known) return assay_infer_set(c, 0, ASSAY_TYPE_UNDEFINED, NULL);
  const bool keep = assay_attr_i64(c->node, "keepdims", 1) != 0;
  bool reduced[ASSAY_MAX_RANK] = {false}, known = false;
  ASSAY_TRY(infer_axes(c, as_input, x.rank, reduced, &known));
  assay_shape_t y = {.known = true};
  if (!known) {  // how many axes may still be known
    const assay_shape_t axes = assay_infer_shape(c, 1);
    int64_t n = 0;
    const bool counted = axes.known && axes.rank == 1 && assay_dim_value(axes.dims[0], &n);
    y.known = keep || (counted && n > 0 && n <= x.rank);
    y.rank = keep || !y.known ? x.rank : x.rank - (int)n;
    return assay_infer_set(c, 0, ASSAY_TYPE_UNDEFINED, y.known ? &y : NULL);
  }
  bool all = true;
  for (int i = 0; i < x.rank; i++) {
    all = all && reduced[i];
    if (!reduced[i]) y.dims[y.rank++] = x.dims[i];
    if (reduced[i] && keep) y.dims[y.rank++] = assay_dim_const(c->dims, 1);
  }
  ASSAY_TRY(assay_infer_set(c, 0, ASSAY_TYPE_UNDEFINED, &y));
  return all && y.rank <= 1 ? infer_content(c, kind, y.rank) : NULL;
}

static void reduce_cost(const assay_eval_t* c, assay_cost_t* out) {
  if (assay_eval_has(c, 0)) out->flops = (double)c->in[0]->size;
}

// The functions of each kind, for rows: name_infer_1 and _eval_1 with axes as attribute.
#define REDUCE(name, kind)                                                                        \
  static assay_status_t name##_infer_1(assay_infer_t* c) { return reduce_infer(c, kind, false); } \
  static assay_status_t name##_infer(assay_infer_t* c) { return reduce_infer(c, kind, true); }    \
  static assay_status_t name##_eval_1(assay_eval_t* c) { return reduce_eval(c, kind, false); }    \
  static assay_status_t name##_eval(assay_eval_t* c) { return reduce_eval(c, kind, true); }
REDUCE(sum, KIND_SUM)
REDUCE(mean, KIND_MEAN)
REDUCE(prod, KIND_PROD)
REDUCE(max, KIND_MAX)
REDUCE(min, KIND_MIN)
REDUCE(l1, KIND_L1)
REDUCE(l2, KIND_L2)
REDUCE(sum_square, KIND_SUM_SQUARE)
REDUCE(log_sum, KIND_LOG_SUM)
REDUCE(log_sum_exp, KIND_LOG_SUM_EXP)

// ---- bounds -----------------------------------------------------------------------------------
// Floats only: reductions of integers are exact.

static double bound_terms(const assay_bound_t* c) {
  return c->out[0]->size ? (double)c->in[0]->size / (double)c->out[0]->size : 0;
}

static assay_status_t bound_of_sum(assay_bound_t* c, bool is_mean) {
  const double n = bound_terms(c);
  const assay_products_t p = {.factors = {0},
                              .n_factors = 1,
                              .terms = n,
                              .ends = is_mean ? 2 : 0,
                              .plain = true,
                              .scale = is_mean && n > 0 ? 1 / n : 0};
  return assay_bound_is_float(c, 0) ? assay_bound_products(c, &p) : NULL;
}

static assay_status_t sum_bound(assay_bound_t* c) { return bound_of_sum(c, false); }
static assay_status_t mean_bound(assay_bound_t* c) { return bound_of_sum(c, true); }
static assay_status_t max_bound(assay_bound_t* c) {
  return assay_bound_is_float(c, 0) ? assay_bound_exact(c) : NULL;
}
static assay_status_t min_bound(assay_bound_t* c) { return max_bound(c); }

static assay_status_t l1_bound(assay_bound_t* c) {
  const assay_power_norm_t norm = {.p = 1, .terms = bound_terms(c)};
  return assay_bound_power_norm(c, &norm);
}

static assay_status_t l2_bound(assay_bound_t* c) {
  const assay_power_norm_t norm = {.p = 2, .terms = bound_terms(c)};
  return assay_bound_power_norm(c, &norm);
}

static assay_status_t sum_square_bound(assay_bound_t* c) {
  const assay_power_norm_t norm = {.p = 2, .terms = bound_terms(c), .no_root = true};
  return assay_bound_power_norm(c, &norm);
}

typedef struct fold_bound {
  const assay_rounding_t* r;
  assay_inner_t inner;
  double terms;
} fold_bound_t;

static assay_status_t prod_bound(assay_bound_t* c) {
  return assay_bound_product(c, bound_terms(c));
}

// log(S), where S is off by a multiple of sum |x|. magnitude: log of that.
static double local_log_sum(const void* user, double y, double in, double magnitude,
                            bool probable) {
  const fold_bound_t* f = user;
  const double sum = assay_factor_of(assay_bound_sum(f->r, f->terms), probable);
  const double off =
      sum * assay_exp(magnitude - (y - in)) + f->terms * f->inner.tiny * assay_exp(in - y);
  if (!(off < 1)) return (double)INFINITY;
  const double e = -assay_log1p(-off);
  return e + f->inner.function * (fabs(y) + in + e) + f->inner.tiny;
}

static assay_status_t log_sum_bound(assay_bound_t* c) {
  if (!assay_bound_is_float(c, 0)) return NULL;
  ASSAY_TRY(assay_bound_exact(c));  // what came in: the logarithm grows with every term
  const fold_bound_t f = {c->rounding, assay_bound_inner(c->rounding), bound_terms(c)};
  return assay_bound_add_instead(c, ASSAY_INSTEAD_WIDEST, local_log_sum, &f);
}

// y = max + log(sum of exp(x - max)), or without the maximum where that is not documented. The
// differences' own rounding counts with the weights of softmax, where their mean is at most log n
// (the entropy of n weights, less log of the sum); so is log of the sum.
// Source: P. Blanchard, D. J. Higham and N. J. Higham, Accurately computing the log-sum-exp and
// softmax functions, IMA J. Numer. Anal. 41 (2021).
static double local_log_sum_exp(const void* user, double y, double in, double magnitude,
                                bool probable) {
  const fold_bound_t* f = user;
  (void)magnitude;
  const double u = f->inner.u, function = f->inner.function, size = fabs(y) + in;
  const double maximum = assay_log(fmax(f->terms, 1)) + 2 * in;
  double off = assay_factor_of(assay_bound_sum(f->r, f->terms), probable);
  off = (1 + off) * (1 + function) - 1 + f->terms * f->inner.tiny;
  // Weighted with e^(u d) for what is beyond first order: d is small wherever weights are not.
  off += (f->r->documented ? 2 : 4) * u * maximum;
  if (f->r->by_definition && !f->r->documented) off += 3 * u * (size + 2 * maximum);
  if (!(off < 1)) return (double)INFINITY;
  double e = -assay_log1p(-off) + (function + u) * maximum;
  if (!f->r->documented) e += (function + 2 * u) * (size + maximum);
  return e + u * (size + e) + f->inner.tiny;
}

static assay_status_t log_sum_exp_bound(assay_bound_t* c) {
  if (!assay_bound_is_float(c, 0)) return NULL;
  ASSAY_TRY(assay_bound_exact(c));
  const fold_bound_t f = {c->rounding, assay_bound_inner(c->rounding), bound_terms(c)};
  return assay_bound_add_local(c, local_log_sum_exp, &f, NULL);
}

// ---- in twice the precision -------------------------------------------------------------------

static assay_dd_t square(assay_dd_t x) { return assay_dd_times(x, x); }

static const assay_pair_t* reduced_dd(assay_dd_eval_t* c, kind_t kind, const bool* axes) {
  const assay_pair_t *x = assay_dd_in(c, 0), *max;
  switch (kind) {
    case KIND_SUM:
      return assay_dd_total(c, x, axes);
    case KIND_MEAN:
      return assay_dd_mean(c, x, axes);
    case KIND_PROD:
      return assay_dd_fold(c, assay_dd_times, 1, x, axes);
    case KIND_MAX:
      return assay_dd_fold(c, assay_dd_max, -(double)INFINITY, x, axes);
    case KIND_MIN:
      return assay_dd_fold(c, assay_dd_min, (double)INFINITY, x, axes);
    case KIND_L1:
      return assay_dd_total(c, assay_dd_map1(c, assay_dd_magnitude, x), axes);
    case KIND_SUM_SQUARE:
      return assay_dd_total(c, assay_dd_map1(c, square, x), axes);
    case KIND_L2:
      return assay_dd_map1(c, assay_dd_root, reduced_dd(c, KIND_SUM_SQUARE, axes));
    case KIND_LOG_SUM:
      return assay_dd_map1(c, assay_dd_log, reduced_dd(c, KIND_SUM, axes));
    default:  // KIND_LOG_SUM_EXP
      max = reduced_dd(c, KIND_MAX, axes);
      x = assay_dd_map1(c, assay_dd_exp, assay_dd_sub(c, x, max));
      x = assay_dd_map1(c, assay_dd_log, assay_dd_total(c, x, axes));
      return assay_dd_sum2(c, x, max);
  }
}

static void reduce_dd(assay_dd_eval_t* c, kind_t kind, bool as_input) {
  bool axes[ASSAY_MAX_RANK] = {false};
  assay_tensor_t* in[2] = {c->in[0].high, assay_dd_has(c, 1) ? c->in[1].high : NULL};
  const assay_eval_t reader = {.node = c->node, .n_in = 2, .in = in};
  c->status = eval_axes(&reader, as_input, axes);
  if (c->status) return;
  const assay_pair_t* y = reduced_dd(c, kind, axes);
  int64_t dims[ASSAY_MAX_RANK];
  int rank = 0;
  for (int i = 0; i < in[0]->rank; i++)
    if (!axes[i]) dims[rank++] = in[0]->dims[i];
  const bool keep = assay_attr_i64(c->node, "keepdims", 1) != 0;
  assay_dd_put(c, 0, keep ? y : assay_dd_reshape(c, y, rank, dims));
}

#define DD(name, kind)                                                       \
  static void name##_dd_1(assay_dd_eval_t* c) { reduce_dd(c, kind, false); } \
  static void name##_dd(assay_dd_eval_t* c) { reduce_dd(c, kind, true); }
DD(sum, KIND_SUM)
DD(mean, KIND_MEAN)
DD(prod, KIND_PROD)
DD(max, KIND_MAX)
DD(min, KIND_MIN)
DD(l1, KIND_L1)
DD(l2, KIND_L2)
DD(sum_square, KIND_SUM_SQUARE)
DD(log_sum, KIND_LOG_SUM)
DD(log_sum_exp, KIND_LOG_SUM_EXP)

#define ROWS(op, version, function)                                                              \
  {.domain = "",                                                                                 \
   .name = op,                                                                                   \
   .since = 1,                                                                                   \
   .infer = function##_infer_1,                                                                  \
   .eval = function##_eval_1,                                                                    \
   .bound = function##_bound,                                                                    \
   .dd = function##_dd_1,                                                                        \
   .cost = reduce_cost},                                                                         \
  {                                                                                              \
    .domain = "", .name = op, .since = version, .infer = function##_infer,                       \
    .eval = function##_eval, .bound = function##_bound, .cost = reduce_cost, .dd = function##_dd \
  }

const assay_op_t assay_ops_reduce[] = {ROWS("ReduceSum", 13, sum),
                                       ROWS("ReduceMean", 18, mean),
                                       ROWS("ReduceProd", 18, prod),
                                       ROWS("ReduceMax", 18, max),
                                       ROWS("ReduceMin", 18, min),
                                       ROWS("ReduceL1", 18, l1),
                                       ROWS("ReduceL2", 18, l2),
                                       ROWS("ReduceSumSquare", 18, sum_square),
                                       ROWS("ReduceLogSum", 18, log_sum),
                                       ROWS("ReduceLogSumExp", 18, log_sum_exp),
                                       {0}};
