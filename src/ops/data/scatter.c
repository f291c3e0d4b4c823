// Scatter, ScatterElements, ScatterND, TensorScatter: copies with some elements replaced.
//
// Updates are applied in row-major order, on one thread: where indices repeat, the last one wins,
// and sums have this order (what ONNX leaves open).
#include <math.h>
#include <string.h>

#include "base/functions.h"
#include "ops/bound_number.h"
#include "ops/content.h"
#include "ops/data/index.h"
#include "ops/data/strided.h"
#include "ops/families.h"

typedef enum reduction { REDUCE_NONE, REDUCE_ADD, REDUCE_MUL, REDUCE_MAX, REDUCE_MIN } reduction_t;

static assay_status_t reduction_of(const assay_node_t* node, reduction_t* out) {
  static const char* const names[] = {"none", "add", "mul", "max", "min"};
  const char* name = assay_attr_str(node, "reduction", "none");
  for (int i = 0; i < 5; i++) {
    if (strcmp(name, names[i]) == 0) return *out = (reduction_t)i, NULL;
  }
  return ASSAY_NODE_ERROR(node, ASSAY_INVALID_ARGUMENT,
                          "attribute reduction is '%s', expected none, add, mul, max or min", name);
}

// ---- reductions ------------------------------------------------------------------------------

// NaN wins over numbers, as in numpy.maximum.
static double reduce_f64(const assay_eval_t* c, reduction_t r, double a, double b) {
  switch (r) {
    case REDUCE_ADD:
      return assay_acc(c, a + b);
    case REDUCE_MUL:
      return assay_acc(c, a * b);
    case REDUCE_MAX:
      return isnan(a) || a > b ? a : b;
    case REDUCE_MIN:
      return isnan(a) || a < b ? a : b;
    default:
      return b;
  }
}

static int64_t reduce_i64(assay_type_t type, reduction_t r, int64_t a, int64_t b) {
  bool less = type == ASSAY_TYPE_UINT64 ? (uint64_t)a < (uint64_t)b : a < b;
  switch (r) {
    case REDUCE_ADD:
      return assay_type_wrap(type, (int64_t)((uint64_t)a + (uint64_t)b));
    case REDUCE_MUL:
      return assay_type_wrap(type, (int64_t)((uint64_t)a * (uint64_t)b));
    case REDUCE_MAX:
      return less ? b : a;
    case REDUCE_MIN:
      return less ? a : b;
    default:
      return b;
  }
}

// n elements of `from` into `to`. The reduction has been checked against the type.
static assay_status_t apply_run(const assay_eval_t* c, reduction_t r, const assay_tensor_t* from,
                                int64_t from_offset, assay_tensor_t* to, int64_t to_offset,
                                int64_t n) {
  if (r == REDUCE_NONE) return assay_copy_run(from, from_offset, to, to_offset, n);
  for (int64_t i = 0; i < n; i++) {
    if (to->store == ASSAY_STORE_F64) {
      double* x = assay_f64(to) + to_offset + i;
      *x = reduce_f64(c, r, *x, assay_f64(from)[from_offset + i]);
    } else if (to->store == ASSAY_STORE_I64) {
      int64_t* x = assay_i64(to) + to_offset + i;
      *x = reduce_i64(to->type, r, *x, assay_i64(from)[from_offset + i]);
    } else {
      double* x = assay_c128(to) + 2 * (to_offset + i);
      const double* y = assay_c128(from) + 2 * (from_offset + i);
      double re = r == REDUCE_ADD ? x[0] + y[0] : x[0] * y[0] - x[1] * y[1];
      double im = r == REDUCE_ADD ? x[1] + y[1] : x[0] * y[1] + x[1] * y[0];
      x[0] = assay_acc(c, re);
      x[1] = assay_acc(c, im);
    }
  }
  return NULL;
}

static assay_status_t reduction_fits(const assay_eval_t* c, reduction_t r,
                                     const assay_tensor_t* data, const assay_tensor_t* updates) {
  if (data->store != updates->store) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT, "updates are %s, data is %s",
                            assay_type_name(updates->type), assay_type_name(data->type));
  }
  bool fits = r == REDUCE_NONE || (data->store != ASSAY_STORE_STR &&
                                   (data->store != ASSAY_STORE_C128 || r <= REDUCE_MUL));
  if (fits) return NULL;
  return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT, "reduction '%s' is not defined for %s",
                          assay_attr_str(c->node, "reduction", "none"),
                          assay_type_name(data->type));
}

static assay_status_t scatter_output(assay_eval_t* c, assay_tensor_t** out) {
  const assay_tensor_t* data = c->in[0];
  ASSAY_TRY(assay_eval_output(c, 0, data->type, data->rank, data->dims, out));
  return assay_copy_run(data, 0, *out, 0, data->size);
}

// ---- Scatter, ScatterElements ----------------------------------------------------------------

static assay_status_t scatter_elements_infer(assay_infer_t* c) {
  reduction_t reduction;
  ASSAY_TRY(reduction_of(c->node, &reduction));
  assay_shape_t data = assay_infer_shape(c, 0), indices = assay_infer_shape(c, 1);
  assay_shape_t updates = assay_infer_shape(c, 2);
  ASSAY_TRY(assay_infer_want_rank(c, 0, 1, ASSAY_MAX_RANK));
  if (data.known) {
    int axis;
    ASSAY_TRY(assay_infer_axis(c, "attribute axis", assay_attr_i64(c->node, "axis", 0), data.rank,
                               &axis));
    ASSAY_TRY(assay_infer_want_rank(c, 1, data.rank, data.rank));
    ASSAY_TRY(assay_infer_want_rank(c, 2, data.rank, data.rank));
  }
  for (int d = 0; indices.known && updates.known && d < indices.rank && d < updates.rank; d++) {
    if (!assay_dim_differ(indices.dims[d], updates.dims[d])) continue;
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                            "dim %d is %s in indices and %s in updates", d,
                            assay_dim_text(indices.dims[d], (char[64]){0}, 64),
                            assay_dim_text(updates.dims[d], (char[64]){0}, 64));
  }
  return assay_infer_same(c);
}

static bool same_dims(const assay_tensor_t* a, const assay_tensor_t* b) {
  return a->rank == b->rank &&
         (a->rank == 0 || memcmp(a->dims, b->dims, (size_t)a->rank * sizeof *a->dims) == 0);
}

// Source: ONNX Scatter-9, ScatterElements-11, -16 (add, mul), -18 (max, min).
static assay_status_t scatter_elements_eval(assay_eval_t* c) {
  const assay_tensor_t *data = c->in[0], *indices = c->in[1], *updates = c->in[2];
  reduction_t reduction;
  ASSAY_TRY(reduction_of(c->node, &reduction));
  ASSAY_TRY(reduction_fits(c, reduction, data, updates));
  int axis;
  ASSAY_TRY(
      assay_eval_axis(c, "attribute axis", assay_attr_i64(c->node, "axis", 0), data->rank, &axis));
  if (!same_dims(indices, updates)) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                            "indices have shape %s, updates %s; expected the same",
                            ASSAY_DIMS_TEXT(indices), ASSAY_DIMS_TEXT(updates));
  }
  int64_t* offsets;
  ASSAY_TRY(assay_index_elements(c, data, indices, axis, &offsets));
  assay_tensor_t* out;
  assay_status_t st = scatter_output(c, &out);
  for (int64_t i = 0; !st && i < indices->size; i++) {
    st = apply_run(c, reduction, updates, i, out, offsets[i], 1);
  }
  assay_free(offsets);
  return st;
}

// ---- ScatterND -------------------------------------------------------------------------------

static assay_status_t scatter_nd_shape(const assay_node_t* node, int dim, const char* found,
                                       const char* expected) {
  return ASSAY_NODE_ERROR(
      node, ASSAY_INVALID_ARGUMENT,
      "dim %d of updates is %s, expected %s (indices without the last dim, then "
      "the data's dims that no index names)",
      dim, found, expected);
}

static assay_status_t scatter_nd_infer(assay_infer_t* c) {
  reduction_t reduction;
  ASSAY_TRY(reduction_of(c->node, &reduction));
  ASSAY_TRY(assay_infer_want_rank(c, 0, 1, ASSAY_MAX_RANK));
  ASSAY_TRY(assay_infer_want_rank(c, 1, 1, ASSAY_MAX_RANK));
  assay_shape_t data = assay_infer_shape(c, 0), indices = assay_infer_shape(c, 1);
  assay_shape_t updates = assay_infer_shape(c, 2);
  int64_t k;
  if (data.known && indices.known && assay_dim_value(indices.dims[indices.rank - 1], &k)) {
    if (k > data.rank) {
      return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                              "the last dim of indices is %lld, data has rank %d", (long long)k,
                              data.rank);
    }
    int q = indices.rank - 1, rank = q + data.rank - (int)k;
    ASSAY_TRY(assay_infer_want_rank(c, 2, rank, rank));
    for (int d = 0; updates.known && d < rank; d++) {
      const assay_dim_t* expected = d < q ? indices.dims[d] : data.dims[d - q + (int)k];
      if (!assay_dim_differ(updates.dims[d], expected)) continue;
      return scatter_nd_shape(c->node, d, assay_dim_text(updates.dims[d], (char[64]){0}, 64),
                              assay_dim_text(expected, (char[64]){0}, 64));
    }
  }
  return assay_infer_same(c);
}

// Source: ONNX ScatterND-11, -16 (add, mul), -18 (max, min).
static assay_status_t scatter_nd_eval(assay_eval_t* c) {
  const assay_tensor_t *data = c->in[0], *indices = c->in[1], *updates = c->in[2];
  reduction_t reduction;
  ASSAY_TRY(reduction_of(c->node, &reduction));
  ASSAY_TRY(reduction_fits(c, reduction, data, updates));
  int64_t n, slice, *offsets;
  ASSAY_TRY(assay_index_tuples(c, data, indices, 0, &n, &slice, &offsets));
  int q = indices->rank - 1, k = (int)indices->dims[q], rank = q + data->rank - k;
  assay_status_t st = NULL;
  if (updates->rank != rank) {
    st = ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT, "updates have rank %d, expected %d",
                          updates->rank, rank);
  }
  for (int d = 0; !st && d < rank; d++) {
    int64_t expected = d < q ? indices->dims[d] : data->dims[d - q + k];
    if (updates->dims[d] == expected) continue;
    st = scatter_nd_shape(c->node, d, ASSAY_DIMS_TEXT(updates),
                          assay_dims_text(1, &expected, (char[64]){0}, 64));
  }
  assay_tensor_t* out;
  if (!st) st = scatter_output(c, &out);
  for (int64_t i = 0; !st && i < n; i++) {
    st = apply_run(c, reduction, updates, i * slice, out, offsets[i], slice);
  }
  assay_free(offsets);
  return st;
}

// ---- bounds -----------------------------------------------------------------------------------

// The operator on other floats: data and updates of magnitudes (or their limits), or of constants.
typedef enum scatter_on { ON_ABS, ON_RAISED, ON_LIMITS, ON_LIMITS_PROBABLE, ON_ONES } scatter_on_t;

static double substitute(const assay_bound_t* c, scatter_on_t on, size_t input, int64_t i) {
  const double x = fabs(assay_f64(c->in[input])[i]);
  const double* e = assay_bound_in(c, input, on == ON_LIMITS_PROBABLE);
  switch (on) {
    case ON_ABS:
      return x + (e ? e[i] : 0);
    case ON_RAISED:
      return fmax(x, 1);
    case ON_ONES:
      return input == 0 ? 1 : 2;
    default:
      return e ? e[i] : 0;
  }
}

static assay_status_t scatter_on(assay_bound_t* c, scatter_on_t on, assay_tensor_t** out) {
  assay_tensor_t* in[3] = {NULL, assay_tensor_retain(c->in[1]), NULL};
  assay_status_t st = NULL;
  for (size_t k = 0; !st && k < 3; k += 2) {
    st = assay_tensor_copy(c->in[k], &in[k]);
    for (int64_t i = 0; !st && i < in[k]->size; i++) assay_f64(in[k])[i] = substitute(c, on, k, i);
  }
  if (!st) st = c->evaluate(c, false, in, out);
  for (size_t k = 0; k < 3; k++) assay_tensor_release(in[k]);
  return st;
}

// Sums of an element and its updates, in any order. How many there are is counted by adding twos
// to ones. What came in adds up alike.
static assay_status_t scatter_sum_bound(assay_bound_t* c) {
  const assay_inner_t inner = assay_bound_inner(c->rounding);
  assay_tensor_t *size = NULL, *terms = NULL, *came[2] = {NULL};
  double* limits[2];
  assay_status_t st = assay_bound_output(c, 0, &limits[0], &limits[1]);
  if (!st) st = scatter_on(c, ON_ABS, &size);
  if (!st) st = scatter_on(c, ON_ONES, &terms);
  if (!st) st = scatter_on(c, ON_LIMITS, &came[0]);
  if (!st) st = scatter_on(c, ON_LIMITS_PROBABLE, &came[1]);
  for (int64_t i = 0; !st && i < size->size; i++) {
    const double n = (assay_f64(terms)[i] + 1) / 2, s = assay_f64(size)[i];  // 1 + 2 an update
    // An element without updates is copied.
    const assay_factor_t f = n > 1 ? assay_bound_sum(c->rounding, n - 1) : (assay_factor_t){0, 0};
    const bool past = (1 + f.guaranteed) * s > inner.max;
    for (int probable = 0; probable < 2; probable++)
      limits[probable][i] = past ? (double)INFINITY
                                 : assay_factor_of(f, probable) * s + (n - 1) * inner.tiny +
                                       assay_f64(came[probable])[i];
  }
  assay_tensor_release(size);
  assay_tensor_release(terms);
  assay_tensor_release(came[0]);
  assay_tensor_release(came[1]);
  return st;
}

// Products: one rounding an update; a partial product past the range ends all limits, one below it
// is multiplied by the factors above 1.
static assay_status_t scatter_product_bound(assay_bound_t* c) {
  ASSAY_TRY(assay_bound_want_exact(c, SIZE_MAX));
  const assay_inner_t inner = assay_bound_inner(c->rounding);
  assay_tensor_t *raised = NULL, *twos = NULL;
  double* limits[2];
  assay_status_t st = assay_bound_output(c, 0, &limits[0], &limits[1]);
  if (!st) st = scatter_on(c, ON_RAISED, &raised);
  if (!st) st = scatter_on(c, ON_ONES, &twos);
  for (int64_t i = 0; !st && i < raised->size; i++) {
    const double n = assay_log2(assay_f64(twos)[i]), y = fabs(assay_f64(c->out[0])[i]);
    const double all = assay_expm1(n * assay_log1p(inner.u)), maximum = assay_f64(raised)[i];
    const double lost = n * inner.tiny * maximum * (1 + all);
    const bool past = n > 0 && !(maximum * (1 + all) <= inner.max);
    limits[0][i] = past ? (double)INFINITY : all * y + lost;
    limits[1][i] =
        fmin(limits[0][i], assay_expm1(6 * sqrt(n) * inner.u + n * inner.u * inner.u) * y + lost);
  }
  assay_tensor_release(raised);
  assay_tensor_release(twos);
  return st;
}

// Elements that are only moved, and the larger or smaller of two, are not rounded.
static assay_status_t scatter_bound(assay_bound_t* c) {
  reduction_t reduction;
  ASSAY_TRY(reduction_of(c->node, &reduction));
  if (!assay_bound_is_float(c, 0)) return NULL;
  if (reduction == REDUCE_ADD) return scatter_sum_bound(c);
  return reduction == REDUCE_MUL ? scatter_product_bound(c) : assay_bound_exact(c);
}

// ---- TensorScatter ---------------------------------------------------------------------------

static assay_status_t cache_attrs(const assay_node_t* node, bool* out_circular) {
  const char* mode = assay_attr_str(node, "mode", "linear");
  *out_circular = strcmp(mode, "circular") == 0;
  if (*out_circular || strcmp(mode, "linear") == 0) return NULL;
  return ASSAY_NODE_ERROR(node, ASSAY_INVALID_ARGUMENT,
                          "attribute mode is '%s', expected linear or circular", mode);
}

static assay_status_t cache_axis(const assay_node_t* node, int axis) {
  if (axis != 0) return NULL;
  return ASSAY_NODE_ERROR(node, ASSAY_INVALID_ARGUMENT,
                          "attribute axis names the batch dim, expected another");
}

static assay_status_t cache_infer(assay_infer_t* c) {
  bool circular;
  ASSAY_TRY(cache_attrs(c->node, &circular));
  ASSAY_TRY(assay_infer_want_rank(c, 0, 2, ASSAY_MAX_RANK));
  if (assay_infer_has(c, 2)) ASSAY_TRY(assay_infer_want_rank(c, 2, 1, 1));
  assay_shape_t cache = assay_infer_shape(c, 0), update = assay_infer_shape(c, 1);
  if (cache.known) {
    int axis;
    ASSAY_TRY(assay_infer_axis(c, "attribute axis", assay_attr_i64(c->node, "axis", -2), cache.rank,
                               &axis));
    ASSAY_TRY(cache_axis(c->node, axis));
    ASSAY_TRY(assay_infer_want_rank(c, 1, cache.rank, cache.rank));
    for (int d = 0; update.known && d < cache.rank; d++) {
      if (d == axis || !assay_dim_differ(cache.dims[d], update.dims[d])) continue;
      return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                              "dim %d is %s in past_cache and %s in update", d,
                              assay_dim_text(cache.dims[d], (char[64]){0}, 64),
                              assay_dim_text(update.dims[d], (char[64]){0}, 64));
    }
  }
  return assay_infer_same(c);
}

static assay_status_t cache_check(const assay_eval_t* c, int axis) {
  const assay_tensor_t *cache = c->in[0], *update = c->in[1];
  bool fits = cache->rank == update->rank && cache->store == update->store;
  for (int d = 0; fits && d < cache->rank; d++) {
    fits = d == axis ? update->dims[d] <= cache->dims[d] : update->dims[d] == cache->dims[d];
  }
  if (!fits) {
    return ASSAY_NODE_ERROR(
        c->node, ASSAY_INVALID_ARGUMENT,
        "update %s does not fit past_cache %s: equal but for axis %d, which may "
        "be shorter",
        ASSAY_DIMS_TEXT(update), ASSAY_DIMS_TEXT(cache), axis);
  }
  ASSAY_TRY(assay_eval_want_rank(c, 2, 1, 1));
  if (assay_eval_has(c, 2) && c->in[2]->size != cache->dims[0]) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                            "write_indices has %lld entries, the batch %lld",
                            (long long)c->in[2]->size, (long long)cache->dims[0]);
  }
  return NULL;
}

// Source: ONNX TensorScatter-24.
static assay_status_t cache_eval(assay_eval_t* c) {
  const assay_tensor_t *cache = c->in[0], *update = c->in[1];
  bool circular;
  int axis;
  ASSAY_TRY(cache_attrs(c->node, &circular));
  ASSAY_TRY(assay_eval_axis(c, "attribute axis", assay_attr_i64(c->node, "axis", -2), cache->rank,
                            &axis));
  ASSAY_TRY(cache_axis(c->node, axis));
  ASSAY_TRY(cache_check(c, axis));
  assay_tensor_t* out;
  ASSAY_TRY(scatter_output(c, &out));
  if (update->size == 0) return NULL;
  int64_t capacity = cache->dims[axis], n = update->dims[axis];
  int64_t inner = assay_dims_product(cache->dims, axis + 1, cache->rank);
  int64_t per_sample = assay_dims_product(cache->dims, 1, axis);
  for (int64_t b = 0; b < cache->dims[0]; b++) {
    int64_t at = assay_eval_has(c, 2) ? assay_i64(c->in[2])[b] : 0;
    if (at < 0 || (!circular && at > capacity - n)) {
      return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                              "write_indices has %lld at %lld; %lld entries must fit into %lld",
                              (long long)at, (long long)b, (long long)n, (long long)capacity);
    }
    at %= capacity;
    int64_t first = n < capacity - at ? n : capacity - at;  // the rest starts again at 0
    for (int64_t i = b * per_sample; i < (b + 1) * per_sample; i++) {
      int64_t to = i * capacity * inner, from = i * n * inner;
      ASSAY_TRY(assay_copy_run(update, from, out, to + at * inner, first * inner));
      ASSAY_TRY(assay_copy_run(update, from + first * inner, out, to, (n - first) * inner));
    }
  }
  return NULL;
}

const assay_op_t assay_ops_scatter[] = {{.domain = "",
                                         .name = "Scatter",
                                         .since = 9,
                                         .flags = ASSAY_OP_MOVES,
                                         .infer = scatter_elements_infer,
                                         .eval = scatter_elements_eval},
                                        {.domain = "",
                                         .name = "ScatterElements",
                                         .since = 11,
                                         .flags = ASSAY_OP_MOVES,
                                         .infer = scatter_elements_infer,
                                         .eval = scatter_elements_eval},
                                        // With a reduction elements are computed, not only moved.
                                        {.domain = "",
                                         .name = "ScatterElements",
                                         .since = 16,
                                         .infer = scatter_elements_infer,
                                         .eval = scatter_elements_eval,
                                         .bound = scatter_bound},
                                        {.domain = "",
                                         .name = "ScatterND",
                                         .since = 11,
                                         .flags = ASSAY_OP_MOVES,
                                         .infer = scatter_nd_infer,
                                         .eval = scatter_nd_eval},
                                        {.domain = "",
                                         .name = "ScatterND",
                                         .since = 16,
                                         .infer = scatter_nd_infer,
                                         .eval = scatter_nd_eval,
                                         .bound = scatter_bound},
                                        {.domain = "",
                                         .name = "TensorScatter",
                                         .since = 24,
                                         .flags = ASSAY_OP_MOVES,
                                         .infer = cache_infer,
                                         .eval = cache_eval},
                                        {0}};
