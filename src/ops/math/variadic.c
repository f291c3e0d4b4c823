// Functions of any number of tensors, and selections: Max Min Sum Mean Clip Where.
//
// Variadic ones go from the first input to the last: y = x0, then y = f(y, x1), f(y, x2) ...; that
// is the order of Sum and Mean, whose running sum is rounded as the accumulator is.
#include <math.h>

#include "ops/bound.h"
#include "ops/content.h"
#include "ops/dd_array.h"
#include "ops/families.h"
#include "ops/math/pointwise.h"
#include "ops/quant/limits.h"

typedef struct fold {
  const assay_eval_t* c;
  const assay_tensor_t* x;
  assay_tensor_t* y;
  double divisor;  // of Mean
} fold_t;

// Doubles and integers have one size, so that they can be moved alike.
enum { NUMBER_BYTES = 8 };

// ---- runs: operand 0 is y, 1 is the next input --------------------------------------------

static void copy_span(const void* user, int64_t n, const int64_t* at, const int64_t* step) {
  const fold_t* p = user;
  const char* x = (const char*)p->x->data + at[1] * NUMBER_BYTES;
  char* y = (char*)p->y->data + at[0] * NUMBER_BYTES;
  for (int64_t i = 0; i < n; i++)
    memcpy(y + i * NUMBER_BYTES, x + i * step[1] * NUMBER_BYTES, NUMBER_BYTES);
}

static void sum_span(const void* user, int64_t n, const int64_t* at, const int64_t* step) {
  const fold_t* p = user;
  const double* x = assay_f64(p->x) + at[1];
  double* y = assay_f64(p->y) + at[0];
  if (p->c->arith == ASSAY_ARITH_F64) {
    for (int64_t i = 0; i < n; i++) y[i] += x[i * step[1]];
  } else {
    for (int64_t i = 0; i < n; i++) y[i] = assay_acc(p->c, y[i] + x[i * step[1]]);
  }
}

// NaN in any input gives NaN, as in numpy's maximum and minimum.
static void max_span(const void* user, int64_t n, const int64_t* at, const int64_t* step) {
  const fold_t* p = user;
  const double* x = assay_f64(p->x) + at[1];
  double* y = assay_f64(p->y) + at[0];
  for (int64_t i = 0; i < n; i++) {
    double v = x[i * step[1]];
    y[i] = v > y[i] || v != v ? v : y[i];
  }
}

static void min_span(const void* user, int64_t n, const int64_t* at, const int64_t* step) {
  const fold_t* p = user;
  const double* x = assay_f64(p->x) + at[1];
  double* y = assay_f64(p->y) + at[0];
  for (int64_t i = 0; i < n; i++) {
    double v = x[i * step[1]];
    y[i] = v < y[i] || v != v ? v : y[i];
  }
}

// What gives uint64, which travels by its bits, the order of int64.
static uint64_t order_shift(assay_type_t type) {
  return type == ASSAY_TYPE_UINT64 ? UINT64_C(1) << 63 : 0;
}

static bool int_less(int64_t a, int64_t b, uint64_t shift) {
  return assay_as_i64(assay_as_u64(a) ^ shift) < assay_as_i64(assay_as_u64(b) ^ shift);
}

static void max_int_span(const void* user, int64_t n, const int64_t* at, const int64_t* step) {
  const fold_t* p = user;
  const int64_t* x = assay_i64(p->x) + at[1];
  int64_t* y = assay_i64(p->y) + at[0];
  uint64_t shift = order_shift(p->y->type);
  for (int64_t i = 0; i < n; i++)
    y[i] = int_less(y[i], x[i * step[1]], shift) ? x[i * step[1]] : y[i];
}

static void min_int_span(const void* user, int64_t n, const int64_t* at, const int64_t* step) {
  const fold_t* p = user;
  const int64_t* x = assay_i64(p->x) + at[1];
  int64_t* y = assay_i64(p->y) + at[0];
  uint64_t shift = order_shift(p->y->type);
  for (int64_t i = 0; i < n; i++)
    y[i] = int_less(x[i * step[1]], y[i], shift) ? x[i * step[1]] : y[i];
}

// ---- variadic operators ------------------------------------------------------------------------

static void over_input(fold_t* p, const assay_tensor_t* x, assay_span_fn* f) {
  p->x = x;
  assay_nest_t nest;
  assay_nest_init(&nest, p->y->rank, p->y->dims);
  assay_nest_add_tensor(&nest, p->y);
  assay_nest_add_tensor(&nest, x);
  assay_nest_run(&nest, 1, f, p);
}

static assay_status_t check_inputs(const assay_eval_t* c, bool integers_too) {
  if (c->n_in == 0)
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT, "it needs at least one input");
  for (size_t i = 0; i < c->n_in; i++) {
    const assay_tensor_t* t = c->in[i];
    if (!t) return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT, "input %zu is left out", i);
    bool number = t->store == ASSAY_STORE_F64 || (integers_too && t->store == ASSAY_STORE_I64);
    if (!number || t->store != c->in[0]->store)
      return ASSAY_NODE_ERROR(
          c->node, ASSAY_INVALID_ARGUMENT,
          "input %zu is a %s tensor, input 0 is %s; it takes numbers of one type", i,
          assay_type_name(t->type), assay_type_name(c->in[0]->type));
  }
  return NULL;
}

static assay_status_t run(assay_eval_t* c, fold_t* p, assay_span_fn* f64, assay_span_fn* i64) {
  int rank;
  int64_t dims[ASSAY_MAX_RANK];
  ASSAY_TRY(check_inputs(c, i64 != NULL));
  ASSAY_TRY(assay_eval_broadcast(c, c->n_in, c->in, &rank, dims));
  p->c = c;
  ASSAY_TRY(assay_eval_output(c, 0, c->in[0]->type, rank, dims, &p->y));
  over_input(p, c->in[0], copy_span);
  assay_span_fn* f = p->y->store == ASSAY_STORE_F64 ? f64 : i64;
  for (size_t i = 1; i < c->n_in; i++) over_input(p, c->in[i], f);
  return NULL;
}

static assay_status_t max_eval(assay_eval_t* c) {
  ASSAY_TRY(assay_quant_free_limits(c));
  return run(c, &(fold_t){0}, max_span, max_int_span);
}

static assay_status_t min_eval(assay_eval_t* c) {
  ASSAY_TRY(assay_quant_free_limits(c));
  return run(c, &(fold_t){0}, min_span, min_int_span);
}

static assay_status_t sum_eval(assay_eval_t* c) { return run(c, &(fold_t){0}, sum_span, NULL); }

static void divide_chunk(const void* user, int64_t first, int64_t n) {
  const fold_t* p = user;
  double* y = assay_f64(p->y) + first;
  for (int64_t i = 0; i < n; i++) y[i] /= p->divisor;
}

static assay_status_t mean_eval(assay_eval_t* c) {
  fold_t p = {.divisor = (double)c->n_in};
  ASSAY_TRY(run(c, &p, sum_span, NULL));
  assay_chunks_run(p.y->size, 1, divide_chunk, &p);
  return NULL;
}

// Below opset 8 all inputs have one shape.
static assay_status_t check_same_shapes(const assay_eval_t* c) {
  for (size_t i = 1; i < c->n_in; i++) {
    const assay_tensor_t *a = c->in[0], *b = c->in[i];
    if (a && b &&
        (a->rank != b->rank || memcmp(a->dims, b->dims, (size_t)a->rank * sizeof *a->dims) != 0))
      return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                              "input %zu has shape %s, input 0 has %s; before opset 8 they must be "
                              "the same",
                              i, ASSAY_DIMS_TEXT(b), ASSAY_DIMS_TEXT(a));
  }
  return NULL;
}

static assay_status_t max_1_eval(assay_eval_t* c) {
  ASSAY_TRY(check_same_shapes(c));
  return max_eval(c);
}
static assay_status_t min_1_eval(assay_eval_t* c) {
  ASSAY_TRY(check_same_shapes(c));
  return min_eval(c);
}
static assay_status_t sum_1_eval(assay_eval_t* c) {
  ASSAY_TRY(check_same_shapes(c));
  return sum_eval(c);
}
static assay_status_t mean_1_eval(assay_eval_t* c) {
  ASSAY_TRY(check_same_shapes(c));
  return mean_eval(c);
}

// ---- Clip
// ----------------------------------------------------------------------------------------- A bound
// that is not given does not bound: -inf and inf stay themselves (ONNX names the type's lowest and
// largest value as defaults; its function body, Clip-13, leaves infinities alone). min above max:
// everything becomes max. Source: ONNX Clip-13: Min(max, Max(input, min)).

typedef struct clip {
  const assay_tensor_t* x;
  assay_tensor_t* y;
  double lo, hi;
  int64_t lo_int, hi_int;
} clip_t;

static void clip_chunk(const void* user, int64_t first, int64_t n) {
  const clip_t* p = user;
  const double* x = assay_f64(p->x) + first;
  double *y = assay_f64(p->y) + first, lo = p->lo, hi = p->hi;
  for (int64_t i = 0; i < n; i++) {
    double v = x[i] < lo ? lo : x[i];
    y[i] = v > hi ? hi : v;
  }
}

static void clip_int_chunk(const void* user, int64_t first, int64_t n) {
  const clip_t* p = user;
  const int64_t* x = assay_i64(p->x) + first;
  int64_t* y = assay_i64(p->y) + first;
  uint64_t shift = order_shift(p->y->type);
  for (int64_t i = 0; i < n; i++) {
    int64_t v = int_less(x[i], p->lo_int, shift) ? p->lo_int : x[i];
    y[i] = int_less(p->hi_int, v, shift) ? p->hi_int : v;
  }
}

static assay_status_t run_clip(assay_eval_t* c, clip_t p) {
  p.x = c->in[0];
  if (p.x->store > ASSAY_STORE_I64)
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT, "it does not take %s tensors",
                            assay_type_name(p.x->type));
  ASSAY_TRY(assay_eval_output(c, 0, p.x->type, p.x->rank, p.x->dims, &p.y));
  // A bound that is NaN makes everything NaN, as Max and Min do.
  if (isnan(p.lo) || isnan(p.hi)) {
    for (int64_t i = 0; i < p.y->size && p.y->store == ASSAY_STORE_F64; i++)
      assay_f64(p.y)[i] = (double)NAN;
    if (p.y->store == ASSAY_STORE_F64) return NULL;
  }
  bool is_float = p.x->store == ASSAY_STORE_F64;
  assay_chunks_run(p.x->size, 1, is_float ? clip_chunk : clip_int_chunk, &p);
  return NULL;
}

static assay_status_t clip_1_eval(assay_eval_t* c) {
  clip_t p = {.lo = -(double)INFINITY, .hi = (double)INFINITY};
  if (assay_attr_has(c->node, "min")) p.lo = assay_attr_f64(c->node, "min", 0);
  if (assay_attr_has(c->node, "max")) p.hi = assay_attr_f64(c->node, "max", 0);
  return run_clip(c, p);
}

static assay_status_t clip_eval(assay_eval_t* c) {
  ASSAY_TRY(assay_quant_free_limits(c));
  const assay_tensor_t* x = c->in[0];
  assay_type_t type = x->type;
  clip_t p = {.lo = -(double)INFINITY, .hi = (double)INFINITY};
  if (x->store == ASSAY_STORE_I64) {
    p.lo_int = assay_type_saturate(type, -(double)INFINITY);
    p.hi_int = assay_type_saturate(type, (double)INFINITY);
  }
  for (size_t i = 1; i <= 2; i++) {
    if (!assay_eval_has(c, i)) continue;
    const assay_tensor_t* b = c->in[i];
    if (b->size != 1 || b->store != x->store)
      return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                              "%s is %s%s; it must be a scalar of the input's type, %s",
                              i == 1 ? "min" : "max", assay_type_name(b->type), ASSAY_DIMS_TEXT(b),
                              assay_type_name(type));
    if (x->store == ASSAY_STORE_F64)
      *(i == 1 ? &p.lo : &p.hi) = assay_f64(b)[0];
    else if (x->store == ASSAY_STORE_I64)
      *(i == 1 ? &p.lo_int : &p.hi_int) = assay_i64(b)[0];
  }
  return run_clip(c, p);
}

// Bounds are scalars; tensors of one element and any rank are read, too.
static assay_status_t clip_infer(assay_infer_t* c) {
  for (size_t i = 1; i <= 2; i++) {
    assay_shape_t s = assay_infer_shape(c, i);
    for (int k = 0; s.known && k < s.rank; k++) {
      int64_t d;
      if (assay_dim_value(s.dims[k], &d) && d != 1)
        return ASSAY_NODE_ERROR(c->node, ASSAY_CORRUPT, "%s is %s; it must be a scalar",
                                i == 1 ? "min" : "max", ASSAY_VALTYPE_TEXT(assay_infer_type(c, i)));
    }
  }
  return assay_infer_same(c);
}

// ---- Where -------------------------------------------------------------------------------------

typedef struct where {
  const assay_tensor_t *condition, *x, *y;
  assay_tensor_t* z;
} where_t;

static void where_span(const void* user, int64_t n, const int64_t* at, const int64_t* step) {
  const where_t* p = user;
  const int64_t* condition = assay_i64(p->condition) + at[1];
  const char* x = (const char*)p->x->data + at[2] * NUMBER_BYTES;
  const char* y = (const char*)p->y->data + at[3] * NUMBER_BYTES;
  char* z = (char*)p->z->data + at[0] * NUMBER_BYTES;
  for (int64_t i = 0; i < n; i++) {
    const char* from =
        condition[i * step[1]] ? x + i * step[2] * NUMBER_BYTES : y + i * step[3] * NUMBER_BYTES;
    memcpy(z + i * NUMBER_BYTES, from, NUMBER_BYTES);
  }
}

static void where_complex_span(const void* user, int64_t n, const int64_t* at,
                               const int64_t* step) {
  const where_t* p = user;
  for (int64_t i = 0; i < n; i++) {
    bool first = assay_i64(p->condition)[at[1] + i * step[1]] != 0;
    int64_t from = first ? at[2] + i * step[2] : at[3] + i * step[3];
    memcpy(assay_c128(p->z) + 2 * (at[0] + i), assay_c128(first ? p->x : p->y) + 2 * from,
           2 * sizeof(double));
  }
}

// Strings are copied one by one, and copying can fail: no threads, and the status is kept.
typedef struct where_strings {
  where_t where;
  assay_status_t* status;
} where_strings_t;

static void where_strings_span(const void* user, int64_t n, const int64_t* at,
                               const int64_t* step) {
  const where_strings_t* s = user;
  const where_t* p = &s->where;
  for (int64_t i = 0; i < n && !*s->status; i++) {
    bool first = assay_i64(p->condition)[at[1] + i * step[1]] != 0;
    int64_t from = first ? at[2] + i * step[2] : at[3] + i * step[3];
    assay_string_t text = assay_strings(first ? p->x : p->y)[from];
    *s->status = assay_tensor_set_string(p->z, at[0] + i, text.text, text.len);
  }
}

static assay_status_t where_eval(assay_eval_t* c) {
  where_t p = {.condition = c->in[0], .x = c->in[1], .y = c->in[2]};
  if (p.condition->store != ASSAY_STORE_I64 || p.x->store != p.y->store)
    return ASSAY_NODE_ERROR(
        c->node, ASSAY_INVALID_ARGUMENT,
        "condition is %s, X is %s and Y is %s; it takes bool and two of one type",
        assay_type_name(p.condition->type), assay_type_name(p.x->type), assay_type_name(p.y->type));
  int rank;
  int64_t dims[ASSAY_MAX_RANK];
  ASSAY_TRY(assay_eval_broadcast(c, 3, c->in, &rank, dims));
  ASSAY_TRY(assay_eval_output(c, 0, p.x->type, rank, dims, &p.z));
  assay_nest_t nest;
  assay_nest_init(&nest, rank, dims);
  assay_nest_add_tensor(&nest, p.z);
  assay_nest_add_tensor(&nest, p.condition);
  assay_nest_add_tensor(&nest, p.x);
  assay_nest_add_tensor(&nest, p.y);
  if (p.x->store == ASSAY_STORE_STR) {
    assay_status_t st = NULL;
    assay_nest_run(&nest, 0, where_strings_span, &(where_strings_t){p, &st});
    return st;
  }
  assay_nest_run(&nest, 1, p.x->store == ASSAY_STORE_C128 ? where_complex_span : where_span, &p);
  return NULL;
}

static assay_status_t where_infer(assay_infer_t* c) {
  ASSAY_TRY(assay_infer_broadcasts(c));
  return assay_content_where(c);
}

// ---- inference ---------------------------------------------------------------------------------

static assay_status_t max_infer(assay_infer_t* c) {
  ASSAY_TRY(assay_infer_broadcasts(c));
  return assay_content_variadic(c, assay_dim_max);
}

static assay_status_t min_infer(assay_infer_t* c) {
  ASSAY_TRY(assay_infer_broadcasts(c));
  return assay_content_variadic(c, assay_dim_min);
}

// Below opset 8: one shape for all.
static assay_status_t same_shape_infer(assay_infer_t* c) {
  assay_shape_t s = assay_infer_shape(c, 0);
  for (size_t i = 1; i < c->node->n_inputs; i++) {
    assay_shape_t t = assay_infer_shape(c, i);
    if (!t.known) continue;
    bool differ = s.known && s.rank != t.rank;
    for (int k = 0; s.known && !differ && k < s.rank; k++) {
      differ = assay_dim_differ(s.dims[k], t.dims[k]);
      if (!s.dims[k]) s.dims[k] = t.dims[k];
    }
    if (differ)
      return ASSAY_NODE_ERROR(
          c->node, ASSAY_CORRUPT,
          "input %zu is %s and input 0 is %s; before opset 8 shapes must be the "
          "same",
          i, ASSAY_VALTYPE_TEXT(assay_infer_type(c, i)),
          ASSAY_VALTYPE_TEXT(assay_infer_type(c, 0)));
    if (!s.known) s = t;
  }
  return assay_infer_set(c, 0, ASSAY_TYPE_UNDEFINED, &s);
}

static void variadic_cost(const assay_eval_t* c, assay_cost_t* out) {
  assay_pointwise_cost(c, out);
  out->flops *= c->n_in > 1 ? (double)(c->n_in - 1) : 0;
}

// n terms are added one to the other; the mean has one more rounding.
static assay_status_t sum_bound(assay_bound_t* c) {
  size_t addends = 0;
  for (size_t i = 0; i < c->n_in; i++) addends += c->in[i] != NULL;
  const assay_products_t p = {.terms = addends > 1 ? (double)(addends - 1) : 0};
  return assay_bound_products(c, &p);
}

static assay_status_t mean_bound(assay_bound_t* c) {
  size_t addends = 0;
  for (size_t i = 0; i < c->n_in; i++) addends += c->in[i] != NULL;
  const assay_products_t p = {.terms = (double)addends};
  return assay_bound_products(c, &p);
}

// ---- in twice the precision ---------------------------------------------------------------------

static const assay_pair_t* folded(assay_dd_eval_t* c, assay_dd_fn2_t* f) {
  const assay_pair_t* y = assay_dd_in(c, 0);
  for (size_t i = 1; i < c->n_in; i++) y = assay_dd_map2(c, f, y, assay_dd_in(c, i));
  return y;
}

static void max_dd(assay_dd_eval_t* c) { assay_dd_put(c, 0, folded(c, assay_dd_max)); }
static void min_dd(assay_dd_eval_t* c) { assay_dd_put(c, 0, folded(c, assay_dd_min)); }
static void sum_dd(assay_dd_eval_t* c) { assay_dd_put(c, 0, folded(c, assay_dd_plus)); }
static void mean_dd(assay_dd_eval_t* c) {
  const assay_pair_t* n = assay_dd_number(c, assay_dd((double)c->n_in));
  assay_dd_put(c, 0, assay_dd_div(c, folded(c, assay_dd_plus), n));
}

static void clip_1_dd(assay_dd_eval_t* c) {
  const double inf = (double)INFINITY;
  const assay_pair_t* y = assay_dd_in(c, 0);
  y = assay_dd_map2(c, assay_dd_max, y, assay_dd_attr(c, "min", -inf));
  assay_dd_put(c, 0, assay_dd_map2(c, assay_dd_min, y, assay_dd_attr(c, "max", inf)));
}

static void clip_dd(assay_dd_eval_t* c) {
  const assay_pair_t* y = assay_dd_in(c, 0);
  for (size_t i = 1; i <= 2; i++)
    if (assay_dd_has(c, i))
      y = assay_dd_map2(c, i == 1 ? assay_dd_max : assay_dd_min, y,
                        assay_dd_reshape(c, assay_dd_in(c, i), 0, NULL));
  assay_dd_put(c, 0, y);
}

static assay_dd_t chosen(assay_dd_t condition, assay_dd_t x, assay_dd_t y) {
  return condition.high != 0 ? x : y;
}

static void where_dd(assay_dd_eval_t* c) {
  assay_dd_put(c, 0,
               assay_dd_map3(c, chosen, assay_dd_in(c, 0), assay_dd_in(c, 1), assay_dd_in(c, 2)));
}

#define ROW(NAME, SINCE, FLAGS, INFER, EVAL, COST, BOUND, DD)                          \
  {                                                                                    \
    .domain = "", .name = NAME, .since = SINCE, .flags = ASSAY_OP_POINTWISE | (FLAGS), \
    .infer = INFER, .eval = EVAL, .cost = COST, .bound = BOUND, .dd = DD               \
  }

const assay_op_t assay_ops_variadic[] = {
    ROW("Max", 1, ASSAY_OP_MOVES | ASSAY_OP_SELECTS, same_shape_infer, max_1_eval, variadic_cost,
        assay_bound_exact, max_dd),
    ROW("Min", 1, ASSAY_OP_MOVES | ASSAY_OP_SELECTS, same_shape_infer, min_1_eval, variadic_cost,
        assay_bound_exact, min_dd),
    ROW("Sum", 1, 0, same_shape_infer, sum_1_eval, variadic_cost, sum_bound, sum_dd),
    ROW("Mean", 1, 0, same_shape_infer, mean_1_eval, variadic_cost, mean_bound, mean_dd),
    ROW("Max", 8, ASSAY_OP_MOVES | ASSAY_OP_SELECTS, max_infer, max_eval, variadic_cost,
        assay_bound_exact, max_dd),
    ROW("Min", 8, ASSAY_OP_MOVES | ASSAY_OP_SELECTS, min_infer, min_eval, variadic_cost,
        assay_bound_exact, min_dd),
    ROW("Sum", 8, 0, assay_infer_broadcasts, sum_eval, variadic_cost, sum_bound, sum_dd),
    ROW("Mean", 8, 0, assay_infer_broadcasts, mean_eval, variadic_cost, mean_bound, mean_dd),
    ROW("Clip", 1, ASSAY_OP_MOVES | ASSAY_OP_SELECTS, assay_infer_same, clip_1_eval,
        assay_pointwise_cost, assay_bound_exact, clip_1_dd),
    ROW("Clip", 11, ASSAY_OP_MOVES | ASSAY_OP_SELECTS, clip_infer, clip_eval, assay_pointwise_cost,
        assay_bound_exact, clip_dd),
    ROW("Where", 9, ASSAY_OP_MOVES, where_infer, where_eval, assay_pointwise_cost,
        assay_bound_exact, where_dd),
    {0},
};
