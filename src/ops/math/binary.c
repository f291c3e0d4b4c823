// Arithmetic of two broadcast tensors: Add Sub Mul Div Pow Mod PRelu.
//
// Each function is written once, for one element, and inlined into the loop of its run of elements,
// which has no division by the shape in it. Integers: sums and products wrap (two's complement),
// quotients truncate; x/0 and x mod 0, which ONNX leaves open, are 0; INT_MIN / -1 wraps to
// INT_MIN.
#include <math.h>

#include "base/functions.h"
#include "ops/bound.h"
#include "ops/content.h"
#include "ops/dd_array.h"
#include "ops/families.h"
#include "ops/math/pointwise.h"

typedef struct binary {
  const assay_tensor_t *a, *b;
  assay_tensor_t* z;
  assay_span_fn* f64;
  assay_span_fn* i64;
} binary_t;

// ---- loops of a run: operand 0 is the result, 1 is a, 2 is b -----------------------------------

__attribute__((always_inline)) static inline void span_f64(const binary_t* p, int64_t n,
                                                           const int64_t* at, const int64_t* step,
                                                           double (*f)(double, double)) {
  double* z = assay_f64(p->z) + at[0];
  const double *a = assay_f64(p->a) + at[1], *b = assay_f64(p->b) + at[2];
  if (step[1] == 1 && step[2] == 1) {
#pragma omp simd
    for (int64_t i = 0; i < n; i++) z[i] = f(a[i], b[i]);
  } else if (step[1] == 1 && step[2] == 0) {
    double b0 = *b;
#pragma omp simd
    for (int64_t i = 0; i < n; i++) z[i] = f(a[i], b0);
  } else if (step[1] == 0 && step[2] == 1) {
    double a0 = *a;
#pragma omp simd
    for (int64_t i = 0; i < n; i++) z[i] = f(a0, b[i]);
  } else {
    for (int64_t i = 0; i < n; i++) z[i] = f(a[i * step[1]], b[i * step[2]]);
  }
}

// For functions that are calls.
static void span_call(const binary_t* p, int64_t n, const int64_t* at, const int64_t* step,
                      double (*f)(double, double)) {
  double* z = assay_f64(p->z) + at[0];
  const double *a = assay_f64(p->a) + at[1], *b = assay_f64(p->b) + at[2];
  for (int64_t i = 0; i < n; i++) z[i] = f(a[i * step[1]], b[i * step[2]]);
}

__attribute__((always_inline)) static inline void span_i64(const binary_t* p, int64_t n,
                                                           const int64_t* at, const int64_t* step,
                                                           int64_t (*f)(int64_t, int64_t)) {
  int64_t* z = assay_i64(p->z) + at[0];
  const int64_t *a = assay_i64(p->a) + at[1], *b = assay_i64(p->b) + at[2];
  for (int64_t i = 0; i < n; i++) z[i] = f(a[i * step[1]], b[i * step[2]]);
  assay_wrap_n(p->z->type, z, n);
}

// ---- the functions -----------------------------------------------------------------------------

static inline double add(double a, double b) { return a + b; }
static inline double sub(double a, double b) { return a - b; }
static inline double mul(double a, double b) { return a * b; }
static inline double quotient(double a, double b) { return a / b; }
static inline double prelu(double x, double slope) { return x < 0 ? slope * x : x; }

// Source: ONNX Mod-28, fmod=0: a - floor(a/b)*b with the sign of b, and its special cases.
static double floor_mod(double a, double b) {
  double r = fmod(a, b);
  if (r == 0) return copysign(0, b);
  return (r < 0) != (b < 0) ? r + b : r;
}

// Squares, the most frequent powers, are one product: faster, and rounded correctly.
static double power(double x, double e) { return e == 2 ? x * x : assay_pow(x, e); }

static inline int64_t add_int(int64_t a, int64_t b) {
  return assay_as_i64(assay_as_u64(a) + assay_as_u64(b));
}
static inline int64_t sub_int(int64_t a, int64_t b) {
  return assay_as_i64(assay_as_u64(a) - assay_as_u64(b));
}
static inline int64_t mul_int(int64_t a, int64_t b) {
  return assay_as_i64(assay_as_u64(a) * assay_as_u64(b));
}
static inline int64_t div_int(int64_t a, int64_t b) {
  if (b == 0) return 0;
  return b == -1 ? assay_as_i64(-assay_as_u64(a)) : a / b;
}
static inline int64_t div_uint(int64_t a, int64_t b) {
  return b == 0 ? 0 : assay_as_i64(assay_as_u64(a) / assay_as_u64(b));
}
static inline int64_t rem_int(int64_t a, int64_t b) { return b == 0 || b == -1 ? 0 : a % b; }
static inline int64_t mod_int(int64_t a, int64_t b) {
  int64_t r = rem_int(a, b);
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}
static inline int64_t mod_uint(int64_t a, int64_t b) {
  return b == 0 ? 0 : assay_as_i64(assay_as_u64(a) % assay_as_u64(b));
}
static inline int64_t prelu_int(int64_t x, int64_t slope) { return x < 0 ? mul_int(slope, x) : x; }
static inline int64_t prelu_uint(int64_t x, int64_t slope) {
  (void)slope;
  return x;
}

// Each with its loop.
#define SPAN(KIND, F)                                                                         \
  static void F##_span(const void* user, int64_t n, const int64_t* at, const int64_t* step) { \
    span_##KIND(user, n, at, step, F);                                                        \
  }
SPAN(f64, add)
SPAN(f64, sub)
SPAN(f64, mul)
SPAN(f64, quotient)
SPAN(f64, prelu)
SPAN(call, floor_mod)
SPAN(call, fmod)
SPAN(call, power)
SPAN(i64, add_int)
SPAN(i64, sub_int)
SPAN(i64, mul_int)
SPAN(i64, div_int)
SPAN(i64, div_uint)
SPAN(i64, rem_int)
SPAN(i64, mod_int)
SPAN(i64, mod_uint)
SPAN(i64, prelu_int)
SPAN(i64, prelu_uint)
#undef SPAN

// ---- evaluation --------------------------------------------------------------------------------

static assay_status_t want_same_numbers(const assay_eval_t* c) {
  const assay_tensor_t *a = c->in[0], *b = c->in[1];
  if (a->store > ASSAY_STORE_I64 || a->store != b->store)
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                            "inputs are %s and %s tensors; it takes two of one number type",
                            assay_type_name(a->type), assay_type_name(b->type));
  return NULL;
}

// Runs over a and b under the rules of broadcasting since opset 7.
static assay_status_t run(assay_eval_t* c, binary_t p) {
  int rank;
  int64_t dims[ASSAY_MAX_RANK];
  ASSAY_TRY(want_same_numbers(c));
  ASSAY_TRY(assay_eval_broadcast(c, 2, c->in, &rank, dims));
  p.a = c->in[0];
  p.b = c->in[1];
  ASSAY_TRY(assay_eval_output(c, 0, p.a->type, rank, dims, &p.z));
  assay_nest_t nest;
  assay_nest_init(&nest, rank, dims);
  assay_nest_add_tensor(&nest, p.z);
  assay_nest_add_tensor(&nest, p.a);
  assay_nest_add_tensor(&nest, p.b);
  assay_nest_run(&nest, 1, p.a->store == ASSAY_STORE_F64 ? p.f64 : p.i64, &p);
  return NULL;
}

// The same with b lying within a by these strides.
static assay_status_t run_within(assay_eval_t* c, binary_t p, const int64_t* b_strides) {
  p.a = c->in[0];
  p.b = c->in[1];
  ASSAY_TRY(assay_eval_output(c, 0, p.a->type, p.a->rank, p.a->dims, &p.z));
  assay_nest_t nest;
  assay_nest_init(&nest, p.a->rank, p.a->dims);
  assay_nest_add_tensor(&nest, p.z);
  assay_nest_add_tensor(&nest, p.a);
  assay_nest_add(&nest, b_strides);
  assay_nest_run(&nest, 1, p.a->store == ASSAY_STORE_F64 ? p.f64 : p.i64, &p);
  return NULL;
}

// Below opset 7: see pointwise.h.
static assay_status_t run_legacy(assay_eval_t* c, binary_t p) {
  int64_t strides[ASSAY_MAX_RANK];
  ASSAY_TRY(want_same_numbers(c));
  ASSAY_TRY(assay_eval_legacy_strides(c, c->in[0], c->in[1], strides));
  return run_within(c, p, strides);
}

static bool is_unsigned(const assay_eval_t* c) { return c->in[0]->type == ASSAY_TYPE_UINT64; }

static binary_t add_fns(void) { return (binary_t){.f64 = add_span, .i64 = add_int_span}; }
static binary_t sub_fns(void) { return (binary_t){.f64 = sub_span, .i64 = sub_int_span}; }
static binary_t mul_fns(void) { return (binary_t){.f64 = mul_span, .i64 = mul_int_span}; }
static binary_t div_fns(const assay_eval_t* c) {
  return (binary_t){.f64 = quotient_span, .i64 = is_unsigned(c) ? div_uint_span : div_int_span};
}

static assay_status_t add_eval(assay_eval_t* c) { return run(c, add_fns()); }
static assay_status_t sub_eval(assay_eval_t* c) { return run(c, sub_fns()); }
static assay_status_t mul_eval(assay_eval_t* c) { return run(c, mul_fns()); }
static assay_status_t div_eval(assay_eval_t* c) { return run(c, div_fns(c)); }
static assay_status_t add_1_eval(assay_eval_t* c) { return run_legacy(c, add_fns()); }
static assay_status_t sub_1_eval(assay_eval_t* c) { return run_legacy(c, sub_fns()); }
static assay_status_t mul_1_eval(assay_eval_t* c) { return run_legacy(c, mul_fns()); }
static assay_status_t div_1_eval(assay_eval_t* c) { return run_legacy(c, div_fns(c)); }

// Below 28 floats go with fmod=1 only; integers have both meanings in all versions (as in ORT).
static assay_status_t check_mod_10(const assay_node_t* node, bool is_float) {
  if (!is_float || assay_attr_i64(node, "fmod", 0) == 1) return NULL;
  return ASSAY_NODE_ERROR(node, ASSAY_INVALID_ARGUMENT,
                          "attribute fmod must be 1 for tensors of floats before opset 28");
}

static assay_status_t mod_eval(assay_eval_t* c) {
  bool truncates = assay_attr_i64(c->node, "fmod", 0) != 0;
  binary_t p = {.f64 = truncates ? fmod_span : floor_mod_span,
                .i64 = is_unsigned(c) ? mod_uint_span
                       : truncates    ? rem_int_span
                                      : mod_int_span};
  return run(c, p);
}

static assay_status_t mod_10_eval(assay_eval_t* c) {
  ASSAY_TRY(check_mod_10(c->node, c->in[0]->store == ASSAY_STORE_F64));
  return mod_eval(c);
}

// ---- PRelu -------------------------------------------------------------------------------------

static binary_t prelu_fns(const assay_eval_t* c) {
  bool is_signed = assay_type_is_signed(c->in[0]->type);
  return (binary_t){.f64 = prelu_span, .i64 = is_signed ? prelu_int_span : prelu_uint_span};
}

static assay_status_t slope_error(const assay_eval_t* c, const char* wanted) {
  return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT, "slope has shape %s, X has shape %s; %s",
                          ASSAY_DIMS_TEXT(c->in[1]), ASSAY_DIMS_TEXT(c->in[0]), wanted);
}

static assay_status_t prelu_eval(assay_eval_t* c) {
  const assay_tensor_t *x = c->in[0], *slope = c->in[1];
  int64_t strides[ASSAY_MAX_RANK];
  ASSAY_TRY(want_same_numbers(c));
  bool fits = slope->rank <= x->rank;
  for (int i = 0; fits && i < slope->rank; i++)
    fits = slope->dims[i] == 1 || slope->dims[i] == x->dims[x->rank - slope->rank + i];
  if (!fits) return slope_error(c, "it must broadcast to X");
  assay_broadcast_strides(slope, x->rank, x->dims, strides);
  return run_within(c, prelu_fns(c), strides);
}

// Source: ONNX PRelu-1 and -6: one slope, or one for each channel (dimension 1).
static assay_status_t prelu_1_eval(assay_eval_t* c) {
  const assay_tensor_t *x = c->in[0], *slope = c->in[1];
  int64_t strides[ASSAY_MAX_RANK] = {0};
  ASSAY_TRY(want_same_numbers(c));
  int channel = x->rank > 1 ? 1 : 0;
  if (slope->size != 1) {
    if (x->rank == 0 || slope->size != x->dims[channel])
      return slope_error(c, "it must have one element, or one for each channel");
    strides[channel] = 1;
  }
  return run_within(c, prelu_fns(c), strides);
}

static assay_status_t prelu_infer(assay_infer_t* c) {
  assay_shape_t x = assay_infer_shape(c, 0), slope = assay_infer_shape(c, 1);
  bool fits = !x.known || !slope.known || slope.rank <= x.rank;
  for (int i = 0; fits && x.known && slope.known && i < slope.rank; i++) {
    int64_t d;
    bool one = assay_dim_value(slope.dims[i], &d) && d == 1;
    fits = one || !assay_dim_differ(slope.dims[i], x.dims[x.rank - slope.rank + i]);
  }
  if (!fits)
    return ASSAY_NODE_ERROR(
        c->node, ASSAY_CORRUPT, "slope is %s, which does not broadcast to X, %s",
        ASSAY_VALTYPE_TEXT(assay_infer_type(c, 1)), ASSAY_VALTYPE_TEXT(assay_infer_type(c, 0)));
  return assay_infer_set(c, 0, ASSAY_TYPE_UNDEFINED, &x);
}

// ---- Pow
// ------------------------------------------------------------------------------------------ The
// base decides the type of the result; the exponent may be of any number type since opset 12.

// x^e in integers, wrapping. A negative exponent gives the truncated quotient 1 / x^|e|: 0 but for
// the bases 1 and -1 (and 0, which would be infinite: 0 as for the division by 0).
static int64_t pow_int(int64_t x, int64_t e) {
  if (e < 0) return x == 1 ? 1 : x == -1 ? (e % 2 ? -1 : 1) : 0;
  uint64_t base = assay_as_u64(x), r = 1;
  for (; e; e >>= 1, base *= base)
    if (e & 1) r *= base;
  return assay_as_i64(r);
}

static int64_t pow_uint_exponent(int64_t x, int64_t e) {
  uint64_t base = assay_as_u64(x), r = 1;
  for (uint64_t k = assay_as_u64(e); k; k >>= 1, base *= base)
    if (k & 1) r *= base;
  return assay_as_i64(r);
}

static void pow_mixed_span(const void* user, int64_t n, const int64_t* at, const int64_t* step) {
  const binary_t* p = user;
  assay_type_t type = p->a->type, e_type = p->b->type;
  if (p->a->store == ASSAY_STORE_F64) {  // an integer exponent
    for (int64_t i = 0; i < n; i++) {
      double x = assay_f64(p->a)[at[1] + i * step[1]];
      assay_f64(p->z)[at[0] + i] =
          power(x, assay_i64_to_f64(e_type, assay_i64(p->b)[at[2] + i * step[2]]));
    }
    return;
  }
  int64_t* z = assay_i64(p->z) + at[0];
  for (int64_t i = 0; i < n; i++) {
    int64_t x = assay_i64(p->a)[at[1] + i * step[1]], k = at[2] + i * step[2];
    if (p->b->store == ASSAY_STORE_F64)
      z[i] = assay_f64_to_int(type, assay_pow(assay_i64_to_f64(type, x), assay_f64(p->b)[k]));
    else if (e_type == ASSAY_TYPE_UINT64)
      z[i] = pow_uint_exponent(x, assay_i64(p->b)[k]);
    else
      z[i] = pow_int(x, assay_i64(p->b)[k]);
  }
  assay_wrap_n(type, z, n);
}

static assay_status_t pow_eval(assay_eval_t* c) {
  binary_t p = {.a = c->in[0], .b = c->in[1]};
  if (p.a->store == ASSAY_STORE_F64 && p.b->store == ASSAY_STORE_F64)
    return run(c, (binary_t){.f64 = power_span});
  if (p.a->store > ASSAY_STORE_I64 || p.b->store > ASSAY_STORE_I64)
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                            "inputs are %s and %s tensors; it takes numbers",
                            assay_type_name(p.a->type), assay_type_name(p.b->type));
  int rank;
  int64_t dims[ASSAY_MAX_RANK];
  ASSAY_TRY(assay_eval_broadcast(c, 2, c->in, &rank, dims));
  ASSAY_TRY(assay_eval_output(c, 0, p.a->type, rank, dims, &p.z));
  assay_nest_t nest;
  assay_nest_init(&nest, rank, dims);
  assay_nest_add_tensor(&nest, p.z);
  assay_nest_add_tensor(&nest, p.a);
  assay_nest_add_tensor(&nest, p.b);
  assay_nest_run(&nest, 30, pow_mixed_span, &p);
  return NULL;
}

static assay_status_t pow_1_eval(assay_eval_t* c) {
  return run_legacy(c, (binary_t){.f64 = power_span});
}

// ---- inference ---------------------------------------------------------------------------------

static assay_status_t legacy_infer(assay_infer_t* c) {
  return assay_infer_legacy_broadcast(c, ASSAY_TYPE_UNDEFINED);
}

static assay_status_t add_infer(assay_infer_t* c) {
  ASSAY_TRY(assay_infer_broadcasts(c));
  return assay_content_binary(c, assay_dim_add);
}

static assay_status_t sub_infer(assay_infer_t* c) {
  ASSAY_TRY(assay_infer_broadcasts(c));
  return assay_content_binary(c, assay_dim_sub);
}

static assay_status_t mul_infer(assay_infer_t* c) {
  ASSAY_TRY(assay_infer_broadcasts(c));
  return assay_content_binary(c, assay_dim_mul);
}

static assay_status_t div_infer(assay_infer_t* c) {
  ASSAY_TRY(assay_infer_broadcasts(c));
  if (assay_type_is_float(assay_infer_elem(c, 0))) return NULL;
  return assay_content_binary(c, assay_content_div);
}

static assay_status_t mod_infer(assay_infer_t* c) {
  ASSAY_TRY(assay_infer_broadcasts(c));
  if (assay_attr_i64(c->node, "fmod", 0) || assay_type_is_float(assay_infer_elem(c, 0)))
    return NULL;
  return assay_content_binary(c, assay_content_mod);
}

static assay_status_t mod_10_infer(assay_infer_t* c) {
  ASSAY_TRY(check_mod_10(c->node, assay_type_is_float(assay_infer_elem(c, 0))));
  return mod_infer(c);
}

// ---- bounds -----------------------------------------------------------------------------------

static bool is_limited(const assay_bound_t* c, size_t i) {
  return c->in_error && c->in_error[i].guaranteed;
}

// Where the divisor may be 0 the quotient may be anything.
static void beyond_zero(const assay_tensor_t* b, const assay_tensor_t* e, const int64_t* strides,
                        const assay_tensor_t* y, assay_tensor_t* limit) {
  int64_t at[ASSAY_MAX_RANK] = {0}, from = 0;
  for (int64_t i = 0; i < y->size; i++) {
    if (fabs(assay_f64(b)[from]) <= assay_f64(e)[from]) assay_f64(limit)[i] = (double)INFINITY;
    for (int k = y->rank - 1; k >= 0; k--) {
      from += strides[k];
      if (++at[k] < y->dims[k]) break;
      from -= at[k] * strides[k];
      at[k] = 0;
    }
  }
}

static assay_status_t div_bound(assay_bound_t* c) {
  if (c->out[0]->store != ASSAY_STORE_F64) return NULL;
  ASSAY_TRY(assay_bound_one_rounding(c));
  if (!is_limited(c, 1)) return NULL;
  int64_t strides[ASSAY_MAX_RANK];
  assay_broadcast_strides(c->in[1], c->out[0]->rank, c->out[0]->dims, strides);
  beyond_zero(c->in[1], c->in_error[1].guaranteed, strides, c->out[0], c->out_error[0].guaranteed);
  beyond_zero(c->in[1], c->in_error[1].guaranteed, strides, c->out[0], c->out_error[0].probable);
  return NULL;
}

// fmod is exact; the remainder of the divisor's sign takes one addition more. Neither can be told
// where the dividend is not exact: they jump.
static assay_status_t mod_bound(assay_bound_t* c) {
  if (assay_bound_inputs_exact(c)) return assay_bound_one_rounding(c);
  return ASSAY_NODE_ERROR(c->node, ASSAY_UNSUPPORTED,
                          "a remainder of inexact numbers has no bound");
}

// ---- in twice the precision ---------------------------------------------------------------------

static void map(assay_dd_eval_t* c, assay_dd_fn2_t* f) {
  assay_dd_put(c, 0, assay_dd_map2(c, f, assay_dd_in(c, 0), assay_dd_in(c, 1)));
}

static assay_dd_t dd_prelu(assay_dd_t x, assay_dd_t slope) {
  return x.high < 0 ? assay_dd_times(slope, x) : x;
}

static void add_dd(assay_dd_eval_t* c) { map(c, assay_dd_plus); }
static void sub_dd(assay_dd_eval_t* c) { map(c, assay_dd_minus); }
static void mul_dd(assay_dd_eval_t* c) { map(c, assay_dd_times); }
static void div_dd(assay_dd_eval_t* c) { map(c, assay_dd_over); }
static void prelu_dd(assay_dd_eval_t* c) { map(c, dd_prelu); }
static void pow_dd(assay_dd_eval_t* c) {
  if (c->in[0].high->store != ASSAY_STORE_F64)
    assay_dd_unsupported(c, "powers of integers are not known");
  map(c, assay_dd_pow);
}

#define ROW(NAME, SINCE, INFER, EVAL, BOUND, DD)                                             \
  {                                                                                          \
    .domain = "", .name = NAME, .since = SINCE, .flags = ASSAY_OP_POINTWISE, .infer = INFER, \
    .eval = EVAL, .cost = assay_pointwise_cost, .bound = BOUND, .dd = DD                     \
  }

const assay_op_t assay_ops_binary[] = {
    // -1 and -6: attributes axis and broadcast.
    ROW("Add", 1, legacy_infer, add_1_eval, assay_bound_one_rounding, NULL),
    ROW("Sub", 1, legacy_infer, sub_1_eval, assay_bound_one_rounding, NULL),
    ROW("Mul", 1, legacy_infer, mul_1_eval, assay_bound_one_rounding, NULL),
    ROW("Div", 1, legacy_infer, div_1_eval, div_bound, NULL),
    ROW("Pow", 1, legacy_infer, pow_1_eval, assay_bound_one_function, NULL),
    ROW("Add", 7, add_infer, add_eval, assay_bound_one_rounding, add_dd),
    ROW("Sub", 7, sub_infer, sub_eval, assay_bound_one_rounding, sub_dd),
    ROW("Mul", 7, mul_infer, mul_eval, assay_bound_one_rounding, mul_dd),
    ROW("Div", 7, div_infer, div_eval, div_bound, div_dd),
    ROW("Pow", 7, assay_infer_broadcasts, pow_eval, assay_bound_one_function, pow_dd),
    ROW("Mod", 10, mod_10_infer, mod_10_eval, mod_bound, NULL),
    ROW("Mod", 28, mod_infer, mod_eval, mod_bound, NULL),
    ROW("PRelu", 1, assay_infer_same, prelu_1_eval, assay_bound_one_rounding, NULL),
    ROW("PRelu", 7, prelu_infer, prelu_eval, assay_bound_one_rounding, prelu_dd),
    {0},
};
