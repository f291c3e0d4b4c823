// Comparisons, logic and bits of two broadcast tensors: Equal Less LessOrEqual Greater
// GreaterOrEqual And Or Xor BitwiseAnd BitwiseOr BitwiseXor BitShift.
#include <math.h>

#include "ops/bound.h"
#include "ops/content.h"
#include "ops/dd_array.h"
#include "ops/families.h"
#include "ops/math/pointwise.h"

// What a comparison is true for, of a < b, a == b and a > b. NaN: none of them.
typedef struct relation {
  bool less, equal, greater;
} relation_t;

typedef struct logic {
  const assay_tensor_t *a, *b;
  assay_tensor_t* z;
  relation_t relation;
  int bits;  // of BitShift's type
  bool to_the_left;
} logic_t;

// ---- comparisons -------------------------------------------------------------------------------

static void compare_span(const void* user, int64_t n, const int64_t* at, const int64_t* step) {
  const logic_t* p = user;
  relation_t r = p->relation;
  int64_t* z = assay_i64(p->z) + at[0];
  int64_t sa = step[1], sb = step[2];
  if (p->a->store == ASSAY_STORE_F64) {
    const double *x = assay_f64(p->a) + at[1], *y = assay_f64(p->b) + at[2];
    for (int64_t i = 0; i < n; i++) {
      double a = x[i * sa], b = y[i * sb];
      z[i] = (a < b && r.less) || (a == b && r.equal) || (a > b && r.greater);
    }
    return;
  }
  const int64_t *x = assay_i64(p->a) + at[1], *y = assay_i64(p->b) + at[2];
  // uint64 travels by its bits: shifting both by 2^63 gives its order to int64.
  uint64_t shift = p->a->type == ASSAY_TYPE_UINT64 ? UINT64_C(1) << 63 : 0;
  for (int64_t i = 0; i < n; i++) {
    int64_t a = assay_as_i64(assay_as_u64(x[i * sa]) ^ shift);
    int64_t b = assay_as_i64(assay_as_u64(y[i * sb]) ^ shift);
    z[i] = (a < b && r.less) || (a == b && r.equal) || (a > b && r.greater);
  }
}

static void equal_strings_span(const void* user, int64_t n, const int64_t* at,
                               const int64_t* step) {
  const logic_t* p = user;
  int64_t* z = assay_i64(p->z) + at[0];
  const assay_string_t *x = assay_strings(p->a) + at[1], *y = assay_strings(p->b) + at[2];
  for (int64_t i = 0; i < n; i++) {
    assay_string_t a = x[i * step[1]], b = y[i * step[2]];
    z[i] = a.len == b.len && (a.len == 0 || memcmp(a.text, b.text, a.len) == 0);
  }
}

// ---- logic and bits ----------------------------------------------------------------------------

__attribute__((always_inline)) static inline void span_bits(const logic_t* p, int64_t n,
                                                            const int64_t* at, const int64_t* step,
                                                            int64_t (*f)(int64_t, int64_t)) {
  int64_t* z = assay_i64(p->z) + at[0];
  const int64_t *a = assay_i64(p->a) + at[1], *b = assay_i64(p->b) + at[2];
  for (int64_t i = 0; i < n; i++) z[i] = f(a[i * step[1]], b[i * step[2]]);
}

// Canonical values are sign- or zero-extended, and so are these results of them.
static inline int64_t and_of(int64_t a, int64_t b) { return a & b; }
static inline int64_t or_of(int64_t a, int64_t b) { return a | b; }
static inline int64_t xor_of(int64_t a, int64_t b) { return a ^ b; }

static void and_span(const void* user, int64_t n, const int64_t* at, const int64_t* step) {
  span_bits(user, n, at, step, and_of);
}
static void or_span(const void* user, int64_t n, const int64_t* at, const int64_t* step) {
  span_bits(user, n, at, step, or_of);
}
static void xor_span(const void* user, int64_t n, const int64_t* at, const int64_t* step) {
  span_bits(user, n, at, step, xor_of);
}

// Source: ONNX BitShift-28: shifts that are negative or not smaller than the width leave what the
// sign alone gives. (-11 has unsigned types only and says nothing of such shifts.)
static void shift_span(const void* user, int64_t n, const int64_t* at, const int64_t* step) {
  const logic_t* p = user;
  int64_t* z = assay_i64(p->z) + at[0];
  const int64_t *x = assay_i64(p->a) + at[1], *y = assay_i64(p->b) + at[2];
  bool is_signed = assay_type_is_signed(p->a->type);
  for (int64_t i = 0; i < n; i++) {
    int64_t a = x[i * step[1]], by = y[i * step[2]];
    if (by < 0 || by >= p->bits)  // uint64 amounts from 2^63 on are negative here
      z[i] = is_signed && !p->to_the_left && a < 0 ? -1 : 0;
    else if (p->to_the_left)
      z[i] = assay_as_i64(assay_as_u64(a) << by);
    else
      z[i] = is_signed ? a >> by : assay_as_i64(assay_as_u64(a) >> by);
  }
  assay_wrap_n(p->z->type, z, n);
}

// ---- evaluation --------------------------------------------------------------------------------

static assay_status_t check_stores(const assay_eval_t* c, bool integers_only, bool strings_too) {
  const assay_tensor_t *a = c->in[0], *b = c->in[1];
  bool fits = a->store == b->store &&
              (a->store == ASSAY_STORE_I64 || (a->store == ASSAY_STORE_F64 && !integers_only) ||
               (a->store == ASSAY_STORE_STR && strings_too));
  if (fits) return NULL;
  return ASSAY_NODE_ERROR(
      c->node, ASSAY_INVALID_ARGUMENT, "inputs are %s and %s tensors; it takes two of one type%s",
      assay_type_name(a->type), assay_type_name(b->type), integers_only ? ", integer or bool" : "");
}

static assay_status_t run(assay_eval_t* c, assay_span_fn* f, logic_t p, assay_type_t out) {
  int rank;
  int64_t dims[ASSAY_MAX_RANK];
  ASSAY_TRY(assay_eval_broadcast(c, 2, c->in, &rank, dims));
  p.a = c->in[0];
  p.b = c->in[1];
  ASSAY_TRY(assay_eval_output(c, 0, out, rank, dims, &p.z));
  assay_nest_t nest;
  assay_nest_init(&nest, rank, dims);
  assay_nest_add_tensor(&nest, p.z);
  assay_nest_add_tensor(&nest, p.a);
  assay_nest_add_tensor(&nest, p.b);
  assay_nest_run(&nest, 1, f, &p);
  return NULL;
}

// Below opset 7: see pointwise.h.
static assay_status_t run_legacy(assay_eval_t* c, assay_span_fn* f, logic_t p) {
  int64_t strides[ASSAY_MAX_RANK];
  ASSAY_TRY(assay_eval_legacy_strides(c, c->in[0], c->in[1], strides));
  p.a = c->in[0];
  p.b = c->in[1];
  ASSAY_TRY(assay_eval_output(c, 0, ASSAY_TYPE_BOOL, p.a->rank, p.a->dims, &p.z));
  assay_nest_t nest;
  assay_nest_init(&nest, p.a->rank, p.a->dims);
  assay_nest_add_tensor(&nest, p.z);
  assay_nest_add_tensor(&nest, p.a);
  assay_nest_add(&nest, strides);
  assay_nest_run(&nest, 1, f, &p);
  return NULL;
}

static assay_status_t compare(assay_eval_t* c, relation_t r) {
  ASSAY_TRY(check_stores(c, false, false));
  return run(c, compare_span, (logic_t){.relation = r}, ASSAY_TYPE_BOOL);
}

static assay_status_t compare_legacy(assay_eval_t* c, relation_t r) {
  ASSAY_TRY(check_stores(c, false, false));
  return run_legacy(c, compare_span, (logic_t){.relation = r});
}

static assay_status_t equal_eval(assay_eval_t* c) {
  if (c->in[0]->store != ASSAY_STORE_STR) return compare(c, (relation_t){.equal = true});
  ASSAY_TRY(check_stores(c, false, true));
  return run(c, equal_strings_span, (logic_t){0}, ASSAY_TYPE_BOOL);
}
static assay_status_t less_eval(assay_eval_t* c) { return compare(c, (relation_t){.less = true}); }
static assay_status_t greater_eval(assay_eval_t* c) {
  return compare(c, (relation_t){.greater = true});
}
static assay_status_t less_or_equal_eval(assay_eval_t* c) {
  return compare(c, (relation_t){.less = true, .equal = true});
}
static assay_status_t greater_or_equal_eval(assay_eval_t* c) {
  return compare(c, (relation_t){.greater = true, .equal = true});
}
static assay_status_t equal_1_eval(assay_eval_t* c) {
  return compare_legacy(c, (relation_t){.equal = true});
}
static assay_status_t less_1_eval(assay_eval_t* c) {
  return compare_legacy(c, (relation_t){.less = true});
}
static assay_status_t greater_1_eval(assay_eval_t* c) {
  return compare_legacy(c, (relation_t){.greater = true});
}

static assay_status_t bits(assay_eval_t* c, assay_span_fn* f) {
  ASSAY_TRY(check_stores(c, true, false));
  return run(c, f, (logic_t){0}, c->in[0]->type);
}

static assay_status_t bits_legacy(assay_eval_t* c, assay_span_fn* f) {
  ASSAY_TRY(check_stores(c, true, false));
  return run_legacy(c, f, (logic_t){0});
}

static assay_status_t and_eval(assay_eval_t* c) { return bits(c, and_span); }
static assay_status_t or_eval(assay_eval_t* c) { return bits(c, or_span); }
static assay_status_t xor_eval(assay_eval_t* c) { return bits(c, xor_span); }
static assay_status_t and_1_eval(assay_eval_t* c) { return bits_legacy(c, and_span); }
static assay_status_t or_1_eval(assay_eval_t* c) { return bits_legacy(c, or_span); }
static assay_status_t xor_1_eval(assay_eval_t* c) { return bits_legacy(c, xor_span); }

static assay_status_t check_direction(const assay_node_t* node) {
  if (assay_attr_is(node, "direction", "LEFT") || assay_attr_is(node, "direction", "RIGHT"))
    return NULL;
  return ASSAY_NODE_ERROR(node, ASSAY_INVALID_ARGUMENT,
                          "attribute direction is '%s'; it must be 'LEFT' or 'RIGHT'",
                          assay_attr_str(node, "direction", ""));
}

static assay_status_t shift_eval(assay_eval_t* c) {
  ASSAY_TRY(check_direction(c->node));
  ASSAY_TRY(check_stores(c, true, false));
  logic_t p = {.bits = assay_type_bits(c->in[0]->type),
               .to_the_left = assay_attr_is(c->node, "direction", "LEFT")};
  return run(c, shift_span, p, c->in[0]->type);
}

// ---- inference ---------------------------------------------------------------------------------

static assay_status_t legacy_infer(assay_infer_t* c) {
  return assay_infer_legacy_broadcast(c, ASSAY_TYPE_BOOL);
}

static assay_status_t with_content(assay_infer_t* c, assay_content_fn2_t* f) {
  ASSAY_TRY(assay_infer_bool_broadcasts(c));
  return assay_content_binary(c, f);
}

static assay_status_t equal_infer(assay_infer_t* c) { return with_content(c, assay_content_equal); }
static assay_status_t less_infer(assay_infer_t* c) { return with_content(c, assay_content_less); }
static assay_status_t less_or_equal_infer(assay_infer_t* c) {
  return with_content(c, assay_content_less_equal);
}
static assay_status_t greater_infer(assay_infer_t* c) {
  return with_content(c, assay_content_greater);
}
static assay_status_t greater_or_equal_infer(assay_infer_t* c) {
  return with_content(c, assay_content_greater_equal);
}
static assay_status_t and_infer(assay_infer_t* c) { return with_content(c, assay_content_and); }
static assay_status_t or_infer(assay_infer_t* c) { return with_content(c, assay_content_or); }

static assay_status_t shift_infer(assay_infer_t* c) {
  ASSAY_TRY(check_direction(c->node));
  return assay_infer_broadcasts(c);
}

// ---- bounds -----------------------------------------------------------------------------------
// Comparisons and logic are monotone in each input, but for equality: what is unequal at all ends
// may be equal in between.

typedef struct equal {
  const assay_tensor_t *a, *b, *a_error, *b_error;  // errors NULL: 0
  const assay_tensor_t* y;
  double* limit;
} equal_t;

static void equal_span(const void* user, int64_t n, const int64_t* at, const int64_t* step) {
  const equal_t* p = user;
  for (int64_t i = 0; i < n; i++) {
    const int64_t ka = at[1] + i * step[1], kb = at[2] + i * step[2];
    const double e =
        (p->a_error ? assay_f64(p->a_error)[ka] : 0) + (p->b_error ? assay_f64(p->b_error)[kb] : 0);
    const double d = fabs(assay_elem_f64(p->a, ka) - assay_elem_f64(p->b, kb));
    p->limit[at[0] + i] = e > 0 && !(d > e);
  }
}

static assay_status_t equal_bound(assay_bound_t* c) {
  double* limits[2];
  if (assay_bound_inputs_exact(c) || c->in[0]->store > ASSAY_STORE_I64) return NULL;
  ASSAY_TRY(assay_bound_output(c, 0, &limits[0], &limits[1]));
  for (int k = 0; limits[0] && k < 2; k++) {
    equal_t p = {.a = c->in[0], .b = c->in[1], .y = c->out[0], .limit = limits[k]};
    p.a_error = k ? c->in_error[0].probable : c->in_error[0].guaranteed;
    p.b_error = k ? c->in_error[1].probable : c->in_error[1].guaranteed;
    assay_nest_t nest;
    assay_nest_init(&nest, p.y->rank, p.y->dims);
    assay_nest_add_tensor(&nest, p.y);
    assay_nest_add_tensor(&nest, p.a);
    assay_nest_add_tensor(&nest, p.b);
    assay_nest_run(&nest, 1, equal_span, &p);
  }
  return NULL;
}

// ---- in twice the precision ---------------------------------------------------------------------

// -1, 0 or 1; NaN where there is no order.
static assay_dd_t order(assay_dd_t x, assay_dd_t y) {
  if (assay_dd_less(x, y)) return assay_dd(-1);
  if (assay_dd_less(y, x)) return assay_dd(1);
  return assay_dd(x.high == y.high ? 0 : (double)NAN);
}

static void compare_dd(assay_dd_eval_t* c) {
  const assay_pair_t* in[] = {assay_dd_map2(c, order, assay_dd_in(c, 0), assay_dd_in(c, 1)),
                              assay_dd_number(c, assay_dd(0))};
  assay_dd_whole(c, in);
}

#define ROW(NAME, SINCE, DISCRETE, INFER, EVAL, BOUND, DD)                                         \
  {                                                                                                \
    .domain = "", .name = NAME, .since = SINCE, .flags = ASSAY_OP_POINTWISE, .discrete = DISCRETE, \
    .infer = INFER, .eval = EVAL, .cost = assay_pointwise_cost, .bound = BOUND, .dd = DD           \
  }

const assay_op_t assay_ops_logic[] = {
    // -1: attributes axis and broadcast.
    ROW("Equal", 1, 1, legacy_infer, equal_1_eval, NULL, NULL),
    ROW("Less", 1, 1, legacy_infer, less_1_eval, assay_bound_exact, NULL),
    ROW("Greater", 1, 1, legacy_infer, greater_1_eval, assay_bound_exact, NULL),
    ROW("And", 1, 0, legacy_infer, and_1_eval, assay_bound_exact, NULL),
    ROW("Or", 1, 0, legacy_infer, or_1_eval, assay_bound_exact, NULL),
    ROW("Xor", 1, 0, legacy_infer, xor_1_eval, assay_bound_exact, NULL),
    ROW("Equal", 7, 1, equal_infer, equal_eval, equal_bound, compare_dd),
    ROW("Less", 7, 1, less_infer, less_eval, assay_bound_exact, compare_dd),
    ROW("Greater", 7, 1, greater_infer, greater_eval, assay_bound_exact, compare_dd),
    ROW("LessOrEqual", 12, 1, less_or_equal_infer, less_or_equal_eval, assay_bound_exact,
        compare_dd),
    ROW("GreaterOrEqual", 12, 1, greater_or_equal_infer, greater_or_equal_eval, assay_bound_exact,
        compare_dd),
    ROW("And", 7, 0, and_infer, and_eval, assay_bound_exact, NULL),
    ROW("Or", 7, 0, or_infer, or_eval, assay_bound_exact, NULL),
    ROW("Xor", 7, 0, assay_infer_bool_broadcasts, xor_eval, assay_bound_exact, NULL),
    ROW("BitwiseAnd", 18, 0, assay_infer_broadcasts, and_eval, NULL, NULL),
    ROW("BitwiseOr", 18, 0, assay_infer_broadcasts, or_eval, NULL, NULL),
    ROW("BitwiseXor", 18, 0, assay_infer_broadcasts, xor_eval, NULL, NULL),
    ROW("BitShift", 11, 0, shift_infer, shift_eval, NULL, NULL),
    {0},
};
