// com.microsoft operators that fit nowhere else: Unique, DynamicTimeWarping, RemovePadding,
// RestorePadding.
// Source: ContribOperators.md of ONNX Runtime.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "ops/data/control.h"
#include "ops/families.h"

// ---- Unique ------------------------------------------------------------------------------------

static int compare_doubles(double x, double y) {
  return x < y ? -1 : x > y;  // NaN equals everything: split_nan tells it apart
}

// Order of two elements of a tensor; 0: equal.
static int compare_elems(const assay_tensor_t* t, int64_t i, int64_t k) {
  const assay_string_t* s;
  size_t n;
  int order;
  switch (t->store) {
    case ASSAY_STORE_STR:
      s = assay_strings(t);
      n = s[i].len < s[k].len ? s[i].len : s[k].len;
      order = n ? memcmp(s[i].text, s[k].text, n) : 0;
      return order ? order : s[i].len < s[k].len ? -1 : s[i].len > s[k].len;
    case ASSAY_STORE_F64:
      return compare_doubles(assay_f64(t)[i], assay_f64(t)[k]);
    case ASSAY_STORE_C128:
      order = compare_doubles(assay_c128(t)[2 * i], assay_c128(t)[2 * k]);
      return order ? order : compare_doubles(assay_c128(t)[2 * i + 1], assay_c128(t)[2 * k + 1]);
    default:  // uint64 by its bits: any order serves
      return assay_i64(t)[i] < assay_i64(t)[k] ? -1 : assay_i64(t)[i] > assay_i64(t)[k];
  }
}

static bool has_nan(const assay_tensor_t* t, int64_t i) {
  if (t->store == ASSAY_STORE_F64) return isnan(assay_f64(t)[i]);
  if (t->store == ASSAY_STORE_C128)
    return isnan(assay_c128(t)[2 * i]) || isnan(assay_c128(t)[2 * i + 1]);
  return false;
}

// NaN stands after everything; each NaN is a value of its own.
static int compare_order(const void* a, const void* b, void* user) {
  const assay_tensor_t* t = user;
  int64_t i = *(const int64_t*)a, k = *(const int64_t*)b;
  int nan = (int)has_nan(t, i) - (int)has_nan(t, k);
  int order = nan ? nan : has_nan(t, i) ? 0 : compare_elems(t, i, k);
  return order ? order : i < k ? -1 : i > k;
}

static assay_status_t unique_infer(assay_infer_t* c) {
  assay_shape_t in = assay_infer_shape(c, 0), y = {.known = true, .rank = 1};
  ASSAY_TRY(assay_infer_want_rank(c, 0, 1, 1));
  y.dims[0] = assay_dim_fresh(c->dims, "unique");
  ASSAY_TRY(assay_infer_set(c, 0, ASSAY_TYPE_UNDEFINED, &y));
  ASSAY_TRY(assay_infer_set(c, 1, ASSAY_TYPE_INT64, &in));
  return assay_infer_set(c, 2, ASSAY_TYPE_INT64, &y);
}

// first[i]: the position where the value of element i occurs first.
static void first_places(const assay_tensor_t* x, int64_t* order, int64_t* first) {
  for (int64_t i = 0; i < x->size; i++) order[i] = i;
  qsort_r(order, (size_t)x->size, sizeof *order, compare_order, (void*)(uintptr_t)x);
  for (int64_t k = 0; k < x->size; k++) {
    bool same = k && !has_nan(x, order[k]) && !has_nan(x, order[k - 1]) &&
                compare_elems(x, order[k - 1], order[k]) == 0;
    first[order[k]] = same ? first[order[k - 1]] : order[k];
  }
}

static assay_status_t unique_fill(assay_eval_t* c, const int64_t* first, int64_t* number) {
  assay_tensor_t *x = c->in[0], *y = NULL, *idx = NULL, *counts = NULL;
  int64_t n = 0;
  for (int64_t i = 0; i < x->size; i++)
    if (first[i] == i) number[i] = n++;
  if (assay_eval_wants(c, 0)) ASSAY_TRY(assay_eval_output(c, 0, x->type, 1, &n, &y));
  if (assay_eval_wants(c, 1))
    ASSAY_TRY(assay_eval_output(c, 1, ASSAY_TYPE_INT64, 1, &x->size, &idx));
  if (assay_eval_wants(c, 2)) ASSAY_TRY(assay_eval_output(c, 2, ASSAY_TYPE_INT64, 1, &n, &counts));
  for (int64_t k = 0; counts && k < n; k++) assay_i64(counts)[k] = 0;
  for (int64_t i = 0; i < x->size; i++) {
    int64_t at = number[first[i]];
    if (y && first[i] == i) ASSAY_TRY(assay_copy_elems(x, i, y, at, 1));
    if (idx) assay_i64(idx)[i] = at;
    if (counts) assay_i64(counts)[at]++;
  }
  return NULL;
}

static assay_status_t unique_eval(assay_eval_t* c) {
  const assay_tensor_t* x = c->in[0];
  int64_t *order = NULL, *first = NULL;
  if (x->rank != 1)
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                            "input has shape %s; rank 1 is expected", ASSAY_DIMS_TEXT(x));
  assay_status_t st = assay_new_array((size_t)x->size, sizeof *order, &order);
  if (!st) st = assay_new_array((size_t)x->size, sizeof *first, &first);
  if (!st) {
    first_places(x, order, first);
    st = unique_fill(c, first, order);
  }
  assay_free(order);
  assay_free(first);
  return st;
}

// ---- DynamicTimeWarping ------------------------------------------------------------------------

static assay_status_t warp_infer(assay_infer_t* c) {
  assay_shape_t in = assay_infer_shape(c, 0), y = {.known = true, .rank = 2};
  ASSAY_TRY(assay_infer_want_rank(c, 0, 2, 3));
  if (in.known && in.rank == 3 && assay_dim_differ(in.dims[0], assay_dim_const(c->dims, 1)))
    return ASSAY_NODE_ERROR(c->node, ASSAY_CORRUPT, "input is %s; [M, N] or [1, M, N] is expected",
                            ASSAY_VALTYPE_TEXT(assay_infer_type(c, 0)));
  y.dims[0] = assay_dim_const(c->dims, 2);
  y.dims[1] = assay_dim_fresh(c->dims, "path");
  return assay_infer_set(c, 0, ASSAY_TYPE_INT32, &y);
}

// Where a cheapest path to a point comes from: the diagonal or the row before it if cheaper than
// both others, else the column before it.
enum { FROM_DIAGONAL, FROM_ROW, FROM_COLUMN };

// cost: two rows of n + 1 sums; from: where each point is reached from.
static void warp_costs(const double* x, int64_t m, int64_t n, double* cost, char* from) {
  for (int64_t j = 0; j <= n; j++) cost[j] = j ? INFINITY : 0;
  for (int64_t i = 0; i < m; i++) {
    double *before = cost + (i % 2) * (n + 1), *now = cost + (1 - i % 2) * (n + 1);
    now[0] = INFINITY;
    for (int64_t j = 0; j < n; j++) {
      double d = before[j], r = before[j + 1], c = now[j];
      int how = d < r && d < c ? FROM_DIAGONAL : r < d && r < c ? FROM_ROW : FROM_COLUMN;
      // Costs that are infinite or NaN must not lead out of the matrix.
      if (!i && j) how = FROM_COLUMN;
      if (i && !j) how = FROM_ROW;
      from[i * n + j] = (char)how;
      now[j + 1] = x[i * n + j] + (how == FROM_DIAGONAL ? d : how == FROM_ROW ? r : c);
    }
  }
}

static assay_status_t warp_path(assay_eval_t* c, int64_t m, int64_t n, const char* from) {
  assay_tensor_t* y = NULL;
  int64_t length = 0;
  for (int pass = 0; pass < 2; pass++) {
    int64_t i = m - 1, j = n - 1, at = length - 1;
    if (pass) ASSAY_TRY(assay_eval_output(c, 0, ASSAY_TYPE_INT32, 2, (int64_t[]){2, length}, &y));
    for (;; at--) {
      if (pass) {
        assay_i64(y)[at] = i;
        assay_i64(y)[length + at] = j;
      } else {
        length++;
      }
      if (!i && !j) break;
      int how = from[i * n + j];
      i -= how != FROM_COLUMN;
      j -= how != FROM_ROW;
    }
  }
  return NULL;
}

static assay_status_t warp_eval(assay_eval_t* c) {
  const assay_tensor_t* x = c->in[0];
  double* cost = NULL;
  char* from = NULL;
  bool fits = x->rank == 2 || (x->rank == 3 && x->dims[0] == 1);
  int64_t m = fits ? x->dims[x->rank - 2] : 0, n = fits ? x->dims[x->rank - 1] : 0;
  if (m < 1 || n < 1)
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                            "input has shape %s; [M, N] or [1, M, N], not empty, is expected",
                            ASSAY_DIMS_TEXT(x));
  assay_status_t st = assay_new_array(2 * ((size_t)n + 1), sizeof *cost, &cost);
  if (!st) st = assay_new_array((size_t)x->size, sizeof *from, &from);
  if (!st) {
    warp_costs(assay_f64(x), m, n, cost, from);
    from[0] = FROM_DIAGONAL;
    st = warp_path(c, m, n, from);
  }
  assay_free(cost);
  assay_free(from);
  return st;
}

static void warp_cost(const assay_eval_t* c, assay_cost_t* out) {
  out->flops = 3.0 * (double)c->in[0]->size;
}

// ---- RemovePadding, RestorePadding -------------------------------------------------------------

static assay_status_t remove_infer(assay_infer_t* c) {
  assay_shape_t x = assay_infer_shape(c, 0), y = {.known = true, .rank = 2};
  assay_shape_t offsets = {.known = true, .rank = 2}, sums = {.known = true, .rank = 1}, max = sums;
  ASSAY_TRY(assay_infer_want_rank(c, 0, 3, 3));
  ASSAY_TRY(assay_infer_want_rank(c, 1, 1, 1));
  y.dims[0] = assay_dim_fresh(c->dims, "tokens");
  max.dims[0] = assay_dim_const(c->dims, 1);
  if (x.known) {
    y.dims[1] = x.dims[2];
    offsets.dims[0] = x.dims[0];
    offsets.dims[1] = x.dims[1];
    sums.dims[0] = assay_dim_add_i(c->dims, x.dims[0], 1);
  }
  ASSAY_TRY(assay_infer_set(c, 0, ASSAY_TYPE_UNDEFINED, &y));
  ASSAY_TRY(assay_infer_set(c, 1, ASSAY_TYPE_INT32, &offsets));
  ASSAY_TRY(assay_infer_set(c, 2, ASSAY_TYPE_INT32, &sums));
  return assay_infer_set(c, 3, ASSAY_TYPE_INT32, &max);
}

// Offsets of the tokens, then those of the padding.
static void list_offsets(const int64_t* counts, int64_t batch, int64_t length, int64_t* offsets) {
  int64_t at = 0;
  for (int pass = 0; pass < 2; pass++)
    for (int64_t b = 0; b < batch; b++)
      for (int64_t s = pass ? counts[b] : 0; s < (pass ? length : counts[b]); s++)
        offsets[at++] = b * length + s;
}

static assay_status_t remove_eval(assay_eval_t* c) {
  const assay_tensor_t *x = c->in[0], *counts = c->in[1];
  assay_tensor_t *y = NULL, *t = NULL;
  int64_t total = 0, maximum = 0, *offsets = NULL;
  if (x->rank != 3 || counts->rank != 1 || counts->dims[0] != x->dims[0])
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                            "inputs have shapes %s and %s; [batch, length, size] and [batch] are "
                            "expected",
                            ASSAY_DIMS_TEXT(x), ASSAY_DIMS_TEXT(counts));
  int64_t batch = x->dims[0], length = x->dims[1], size = x->dims[2];
  for (int64_t b = 0; b < batch; b++) {
    int64_t n = assay_i64(counts)[b];
    if (n < 0 || n > length)
      return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                              "sequence_token_count[%lld] is %lld; it must be in [0, %lld]",
                              (long long)b, (long long)n, (long long)length);
    total += n;
    if (n > maximum) maximum = n;
  }
  ASSAY_TRY(assay_eval_output(c, 0, x->type, 2, (int64_t[]){total, size}, &y));
  ASSAY_TRY(assay_new_array((size_t)batch * (size_t)length, sizeof *offsets, &offsets));
  list_offsets(assay_i64(counts), batch, length, offsets);
  assay_status_t st = NULL;
  for (int64_t i = 0; !st && i < total; i++)
    st = assay_copy_elems(x, offsets[i] * size, y, i * size, size);
  if (!st && assay_eval_wants(c, 1)) {
    st = assay_eval_output(c, 1, ASSAY_TYPE_INT32, 2, (int64_t[]){batch, length}, &t);
    if (!st && t->size) memcpy(t->data, offsets, (size_t)t->size * sizeof *offsets);
  }
  assay_free(offsets);
  if (!st && assay_eval_wants(c, 2)) {
    st = assay_eval_output(c, 2, ASSAY_TYPE_INT32, 1, (int64_t[]){batch + 1}, &t);
    if (!st) assay_i64(t)[0] = 0;
    for (int64_t b = 0; !st && b < batch; b++)
      assay_i64(t)[b + 1] = assay_i64(t)[b] + assay_i64(counts)[b];
  }
  if (!st && assay_eval_wants(c, 3)) {
    st = assay_eval_output(c, 3, ASSAY_TYPE_INT32, 1, (int64_t[]){1}, &t);
    if (!st) assay_i64(t)[0] = maximum;
  }
  return st;
}

static assay_status_t restore_infer(assay_infer_t* c) {
  assay_shape_t x = assay_infer_shape(c, 0), o = assay_infer_shape(c, 1);
  assay_shape_t y = {.known = true, .rank = 3};
  ASSAY_TRY(assay_infer_want_rank(c, 0, 2, 2));
  ASSAY_TRY(assay_infer_want_rank(c, 1, 2, 2));
  for (int i = 0; o.known && i < 2; i++) y.dims[i] = o.dims[i];
  if (x.known) y.dims[2] = x.dims[1];
  return assay_infer_set(c, 0, ASSAY_TYPE_UNDEFINED, &y);
}

static assay_status_t restore_eval(assay_eval_t* c) {
  const assay_tensor_t *x = c->in[0], *o = c->in[1];
  assay_tensor_t* y = NULL;
  if (x->rank != 2 || o->rank != 2 || x->dims[0] > o->size)
    return ASSAY_NODE_ERROR(
        c->node, ASSAY_INVALID_ARGUMENT,
        "inputs have shapes %s and %s; [tokens, size] and [batch, length], with at "
        "least as many places as tokens, are expected",
        ASSAY_DIMS_TEXT(x), ASSAY_DIMS_TEXT(o));
  int64_t size = x->dims[1];
  for (int64_t i = 0; i < x->dims[0]; i++)
    if (assay_i64(o)[i] < 0 || assay_i64(o)[i] >= o->size)
      return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT, "token_offset %lld is %lld of %lld",
                              (long long)i, (long long)assay_i64(o)[i], (long long)o->size);
  ASSAY_TRY(assay_eval_output(c, 0, x->type, 3, (int64_t[]){o->dims[0], o->dims[1], size}, &y));
  memset(y->data, 0, (size_t)y->size * sizeof(double));
  for (int64_t i = 0; i < x->dims[0]; i++)
    ASSAY_TRY(assay_copy_elems(x, i * size, y, assay_i64(o)[i] * size, size));
  return NULL;
}

#define MS(operator) .domain = "com.microsoft", .name = operator, .since = 1

const assay_op_t assay_ops_ms_misc[] = {
    {MS("Unique"), .flags = ASSAY_OP_MOVES | ASSAY_OP_SELECTS, .discrete = 7,
     .schema = "x:T -> y:T, idx?:I, counts?:I | | T=INT float16 float double string bool complex64 "
               "complex128; I=int64",
     .infer = unique_infer, .eval = unique_eval},
    {MS("DynamicTimeWarping"), .discrete = 1, .schema = "input:F -> output:I | | F=float; I=int32",
     .infer = warp_infer, .eval = warp_eval, .cost = warp_cost},
    {MS("RemovePadding"), .flags = ASSAY_OP_MOVES,
     .schema = "input:T, sequence_token_count:M -> output:T, token_offset:M, cumulated_seq_len:M, "
               "max_seq_len:M | | T=float float16; M=int32",
     .infer = remove_infer, .eval = remove_eval},
    {MS("RestorePadding"), .flags = ASSAY_OP_MOVES,
     .schema = "input:T, token_offset:M -> output:T | | T=float float16; M=int32",
     .infer = restore_infer, .eval = restore_eval},
    {0}};
