// com.microsoft's operators on 8-bit tensors: QLinearAdd QLinearMul QLinearSigmoid QLinearLeakyRelu
// QLinearWhere QLinearConcat QLinearSoftmax QLinearReduceMean. (The poolings are in ms_qpool.c.)
//
// Each dequantizes its inputs, computes, and quantizes. In truth in float64; otherwise every
// intermediate result is rounded to fp32, as onnxruntime's kernels compute.
// Source: schemas of onnxruntime 1.31 (com.microsoft, version 1).
#include <math.h>

#include "base/functions.h"
#include "ops/families.h"
#include "ops/math/activation.h"
#include "ops/math/pointwise.h"
#include "ops/quant/quant_bound.h"

// ---- two operands ------------------------------------------------------------------------------

typedef struct qbinary {
  assay_qreal_t a, b;
  assay_qwriter_t z;
  const int64_t* condition;  // of Where: operand 3
  double (*f)(double a, double b);
} qbinary_t;

static double add(double a, double b) { return a + b; }
static double mul(double a, double b) { return a * b; }

static void binary_span(const void* user, int64_t n, const int64_t* at, const int64_t* step) {
  const qbinary_t* p = user;
  bool fp32 = p->z.to_fp32;
  for (int64_t i = 0; i < n; i++) {
    double a = assay_qreal_get(&p->a, at[1] + i * step[1]);
    double b = assay_qreal_get(&p->b, at[2] + i * step[2]);
    double z = p->f ? assay_qround(fp32, p->f(a, b)) : p->condition[at[3] + i * step[3]] ? a : b;
    assay_qwriter_set(&p->z, at[0] + i, z);
  }
}

// The type of the output where it is quantized: that of the zero point, else of the first operand.
static assay_type_t out_type(const assay_eval_t* c, size_t operand) {
  return assay_eval_out_type(c, 0, c->in[operand]->type);
}

static assay_status_t run_binary(assay_eval_t* c, double (*f)(double, double)) {
  qbinary_t p = {.f = f};
  int rank;
  int64_t dims[ASSAY_MAX_RANK];
  assay_tensor_t* operands[2];
  ASSAY_TRY(assay_qreal_init(c, 0, 1, 2, &p.a));
  ASSAY_TRY(assay_qreal_init(c, 3, 4, 5, &p.b));
  operands[0] = c->in[0];
  operands[1] = c->in[3];
  ASSAY_TRY(assay_eval_broadcast(c, 2, operands, &rank, dims));
  ASSAY_TRY(assay_qwriter_init(c, 6, 7, out_type(c, 0), rank, dims, &p.z));
  assay_nest_t nest;
  assay_nest_init(&nest, rank, dims);
  assay_nest_add_tensor(&nest, p.z.t);
  assay_nest_add_tensor(&nest, p.a.t);
  assay_nest_add_tensor(&nest, p.b.t);
  assay_nest_run(&nest, 10, binary_span, &p);
  return NULL;
}

static assay_status_t qadd_eval(assay_eval_t* c) { return run_binary(c, add); }
static assay_status_t qmul_eval(assay_eval_t* c) { return run_binary(c, mul); }

static assay_status_t qwhere_eval(assay_eval_t* c) {
  qbinary_t p = {0};
  int rank;
  int64_t dims[ASSAY_MAX_RANK];
  assay_tensor_t* operands[3] = {c->in[0], NULL, NULL};
  ASSAY_TRY(assay_qreal_init(c, 1, 2, 3, &p.a));
  ASSAY_TRY(assay_qreal_init(c, 4, 5, 6, &p.b));
  if (c->in[0]->store != ASSAY_STORE_I64)
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT, "condition is %s; it must be bool",
                            assay_type_name(c->in[0]->type));
  operands[1] = c->in[1];
  operands[2] = c->in[4];
  p.condition = assay_i64(c->in[0]);
  ASSAY_TRY(assay_eval_broadcast(c, 3, operands, &rank, dims));
  ASSAY_TRY(assay_qwriter_init(c, 7, 8, out_type(c, 1), rank, dims, &p.z));
  assay_nest_t nest;
  assay_nest_init(&nest, rank, dims);
  assay_nest_add_tensor(&nest, p.z.t);
  assay_nest_add_tensor(&nest, p.a.t);
  assay_nest_add_tensor(&nest, p.b.t);
  assay_nest_add_tensor(&nest, c->in[0]);
  assay_nest_run(&nest, 10, binary_span, &p);
  return NULL;
}

static assay_status_t broadcast_infer(assay_infer_t* c, const size_t* operands, size_t n) {
  assay_shape_t s = assay_infer_shape(c, operands[0]);
  for (size_t i = 1; i < n; i++) {
    assay_shape_t t = assay_infer_shape(c, operands[i]);
    ASSAY_TRY(assay_infer_broadcast(c, &s, &t, &s));
  }
  return assay_infer_set(c, 0, ASSAY_TYPE_UNDEFINED, &s);
}

static assay_status_t qbinary_infer(assay_infer_t* c) {
  return broadcast_infer(c, (const size_t[]){0, 3}, 2);
}

static assay_status_t qwhere_infer(assay_infer_t* c) {
  return broadcast_infer(c, (const size_t[]){0, 1, 4}, 3);
}

// ---- one operand -------------------------------------------------------------------------------

typedef struct qunary {
  assay_qreal_t x;
  assay_qwriter_t y;
  double (*f)(double x, double alpha);
  double alpha;
} qunary_t;

static double sigmoid(double x, double alpha) {
  (void)alpha;
  return assay_sigmoid(x);
}

static double leaky_relu(double x, double alpha) { return x < 0 ? alpha * x : x; }

static void unary_chunk(const void* user, int64_t first, int64_t n) {
  const qunary_t* p = user;
  for (int64_t i = first; i < first + n; i++) {
    double y = p->f(assay_qreal_get(&p->x, i), p->alpha);
    assay_qwriter_set(&p->y, i, assay_qround(p->y.to_fp32, y));
  }
}

static assay_status_t run_unary(assay_eval_t* c, double (*f)(double, double), double alpha) {
  qunary_t p = {.f = f, .alpha = alpha};
  ASSAY_TRY(assay_qreal_init(c, 0, 1, 2, &p.x));
  ASSAY_TRY(assay_qwriter_init(c, 3, 4, out_type(c, 0), p.x.t->rank, p.x.t->dims, &p.y));
  assay_chunks_run(p.x.t->size, 30, unary_chunk, &p);
  return NULL;
}

static assay_status_t qsigmoid_eval(assay_eval_t* c) { return run_unary(c, sigmoid, 0); }
static assay_status_t qleaky_relu_eval(assay_eval_t* c) {
  return run_unary(c, leaky_relu, assay_attr_f64(c->node, "alpha", 0.01));
}

// ---- QLinearConcat -----------------------------------------------------------------------------

// Inputs: the output's scale and zero point, then tensor, scale, zero point of each operand.

static assay_status_t check_triples(const assay_node_t* node) {
  if (node->n_inputs >= 5 && (node->n_inputs - 2) % 3 == 0) return NULL;
  return ASSAY_NODE_ERROR(node, ASSAY_INVALID_ARGUMENT,
                          "it has %zu inputs; it takes 2, and 3 for each tensor to join",
                          node->n_inputs);
}

static assay_status_t qconcat_eval(assay_eval_t* c) {
  ASSAY_TRY(check_triples(c->node));
  const assay_tensor_t* first = c->in[2];
  int axis;
  int64_t dims[ASSAY_MAX_RANK];
  if (!first) return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT, "input 2 is left out");
  ASSAY_TRY(
      assay_eval_axis(c, "attribute axis", assay_attr_i64(c->node, "axis", 0), first->rank, &axis));
  for (int i = 0; i < first->rank; i++) dims[i] = first->dims[i];
  for (size_t k = 5; k < c->n_in; k += 3) {
    const assay_tensor_t* t = c->in[k];
    bool fits = t && t->rank == first->rank;
    for (int i = 0; fits && i < t->rank; i++) fits = i == axis || t->dims[i] == dims[i];
    if (!fits || !assay_add_i64(dims[axis], t->dims[axis], &dims[axis]))
      return ASSAY_NODE_ERROR(
          c->node, ASSAY_INVALID_ARGUMENT,
          "input %zu has shape %s, input 2 has %s; they must be the same but for "
          "axis %d",
          k, t ? ASSAY_DIMS_TEXT(t) : "none", ASSAY_DIMS_TEXT(first), axis);
  }
  assay_qwriter_t y;
  assay_type_t type = assay_eval_has(c, 1) ? c->in[1]->type : first->type;
  ASSAY_TRY(assay_qwriter_init(c, 0, 1, assay_eval_out_type(c, 0, type), first->rank, dims, &y));
  int64_t outer = assay_dims_product(dims, 0, axis);
  int64_t row = assay_dims_product(dims, axis, first->rank), at = 0;
  for (size_t k = 2; k < c->n_in; k += 3) {
    assay_qreal_t x;
    ASSAY_TRY(assay_qreal_init(c, k, k + 1, k + 2, &x));
    int64_t width = assay_dims_product(x.t->dims, axis, first->rank);
    for (int64_t o = 0; width && o < outer; o++)
      for (int64_t i = 0; i < width; i++)
        assay_qwriter_set(&y, o * row + at + i, assay_qreal_get(&x, o * width + i));
    at += width;
  }
  return NULL;
}

static assay_status_t qconcat_infer(assay_infer_t* c) {
  ASSAY_TRY(check_triples(c->node));
  assay_shape_t s = assay_infer_shape(c, 2);
  int axis = 0;
  if (s.known)
    ASSAY_TRY(
        assay_infer_axis(c, "attribute axis", assay_attr_i64(c->node, "axis", 0), s.rank, &axis));
  for (size_t k = 5; s.known && k < c->node->n_inputs; k += 3) {
    assay_shape_t t = assay_infer_shape(c, k);
    bool differ = t.known && t.rank != s.rank;
    for (int i = 0; t.known && !differ && i < s.rank; i++) {
      if (i == axis) continue;
      differ = assay_dim_differ(s.dims[i], t.dims[i]);
      if (!s.dims[i]) s.dims[i] = t.dims[i];
    }
    if (differ)
      return ASSAY_NODE_ERROR(
          c->node, ASSAY_CORRUPT,
          "input %zu is %s, input 2 is %s; they must be the same but for axis %d", k,
          ASSAY_VALTYPE_TEXT(assay_infer_type(c, k)), ASSAY_VALTYPE_TEXT(assay_infer_type(c, 2)),
          axis);
    s.dims[axis] = t.known ? assay_dim_add(c->dims, s.dims[axis], t.dims[axis]) : NULL;
  }
  return assay_infer_set(c, 0, ASSAY_TYPE_UNDEFINED, &s);
}

// ---- QLinearSoftmax ----------------------------------------------------------------------------

// Below opset 13 the dimensions from the axis on are one. Source: ONNX Softmax-11 and -13.
static assay_status_t qsoftmax_eval(assay_eval_t* c) {
  assay_qreal_t x;
  assay_qwriter_t y;
  ASSAY_TRY(assay_qreal_init(c, 0, 1, 2, &x));
  const assay_tensor_t* t = x.t;
  bool old = assay_attr_i64(c->node, "opset", 13) < 13;
  int64_t attr = assay_attr_i64(c->node, "axis", -1), outer = 1, n = t->size, inner = 1;
  int axis = 0;
  if (old && attr == t->rank)
    axis = t->rank;  // rows of one element
  else if (t->rank > 0)
    ASSAY_TRY(assay_eval_axis(c, "attribute axis", attr, t->rank, &axis));
  if (t->rank > 0) {
    outer = assay_dims_product(t->dims, 0, axis);
    n = assay_dims_product(t->dims, axis, old ? t->rank : axis + 1);
    if (!old) inner = assay_dims_product(t->dims, axis + 1, t->rank);
  }
  ASSAY_TRY(assay_qwriter_init(c, 3, 4, out_type(c, 0), t->rank, t->dims, &y));
  for (int64_t r = 0; r < outer * inner && n > 0; r++) {
    int64_t first = r / inner * n * inner + r % inner;
    double max = assay_qreal_get(&x, first), sum = 0;
    for (int64_t i = 1; i < n; i++) max = fmax(max, assay_qreal_get(&x, first + i * inner));
    for (int64_t i = 0; i < n; i++)
      sum = assay_acc(
          c,
          sum + assay_qround(y.to_fp32, assay_exp(assay_qreal_get(&x, first + i * inner) - max)));
    for (int64_t i = 0; i < n; i++) {
      double e = assay_qround(y.to_fp32, assay_exp(assay_qreal_get(&x, first + i * inner) - max));
      assay_qwriter_set(&y, first + i * inner, assay_qround(y.to_fp32, e / sum));
    }
  }
  return NULL;
}

// ---- QLinearReduceMean -------------------------------------------------------------------------

// Marks the axes to reduce: those of the attribute; all if it is not set or empty.
static assay_status_t reduced_axes(const assay_node_t* node, int rank, bool* reduced) {
  size_t n;
  const int64_t* axes = assay_attr_ints(node, "axes", &n);
  for (int i = 0; i < rank; i++) reduced[i] = n == 0;
  for (size_t i = 0; i < n; i++) {
    if (axes[i] < -rank || axes[i] >= rank)
      return ASSAY_NODE_ERROR(node, ASSAY_INVALID_ARGUMENT,
                              "attribute axes has %lld; it must be in [%d, %d]", (long long)axes[i],
                              -rank, rank - 1);
    reduced[axes[i] < 0 ? axes[i] + rank : axes[i]] = true;
  }
  return NULL;
}

static assay_status_t qreduce_mean_eval(assay_eval_t* c) {
  assay_qreal_t x;
  assay_qwriter_t y;
  bool reduced[ASSAY_MAX_RANK], keep = assay_attr_i64(c->node, "keepdims", 1) != 0;
  ASSAY_TRY(assay_qreal_init(c, 0, 1, 2, &x));
  const assay_tensor_t* t = x.t;
  ASSAY_TRY(reduced_axes(c->node, t->rank, reduced));
  // The output's dims, and where its elements begin in x: kept axes, then reduced ones, by strides.
  int64_t dims[ASSAY_MAX_RANK], owned[ASSAY_MAX_RANK], kept_strides[ASSAY_MAX_RANK];
  int64_t cut[ASSAY_MAX_RANK], cut_strides[ASSAY_MAX_RANK], stride = 1, count = 1;
  int rank = 0, n_kept = 0, n_cut = 0;
  for (int i = 0; i < t->rank; i++)
    if (!reduced[i] || keep) dims[rank++] = reduced[i] ? 1 : t->dims[i];
  for (int i = t->rank - 1; i >= 0; i--) {  // innermost first
    if (reduced[i]) {
      cut[n_cut] = t->dims[i];
      cut_strides[n_cut++] = stride;
      count *= t->dims[i];
    } else {
      owned[n_kept] = t->dims[i];
      kept_strides[n_kept++] = stride;
    }
    stride *= t->dims[i];
  }
  ASSAY_TRY(assay_qwriter_init(c, 3, 4, out_type(c, 0), rank, dims, &y));
  for (int64_t o = 0; o < y.t->size; o++) {
    int64_t first = 0, rest = o;
    for (int i = 0; i < n_kept; i++) {
      first += rest % owned[i] * kept_strides[i];
      rest /= owned[i];
    }
    double sum = 0;
    for (int64_t k = 0; k < count; k++) {
      int64_t at = first;
      rest = k;
      for (int i = 0; i < n_cut; i++) {
        at += rest % cut[i] * cut_strides[i];
        rest /= cut[i];
      }
      sum = assay_acc(c, sum + assay_qreal_get(&x, at));
    }
    assay_qwriter_set(&y, o, assay_qround(y.to_fp32, sum / (double)count));
  }
  return NULL;
}

static assay_status_t qreduce_mean_infer(assay_infer_t* c) {
  assay_shape_t x = assay_infer_shape(c, 0), y = {.known = x.known};
  bool reduced[ASSAY_MAX_RANK], keep = assay_attr_i64(c->node, "keepdims", 1) != 0;
  if (x.known) ASSAY_TRY(reduced_axes(c->node, x.rank, reduced));
  for (int i = 0; i < x.rank; i++)
    if (!reduced[i] || keep)
      y.dims[y.rank++] = reduced[i] ? assay_dim_const(c->dims, 1) : x.dims[i];
  return assay_infer_set(c, 0, ASSAY_TYPE_UNDEFINED, &y);
}

// ---- bounds -----------------------------------------------------------------------------------
// Errors of the real number before it is quantized, for all elements alike: some roundings of the
// largest numbers that the operator meets.

static assay_factor_t error_of(double e) { return (assay_factor_t){e, e}; }

static assay_status_t qadd_bound(assay_bound_t* c) {
  const double size = assay_quant_largest(c, 0, 1, 2) + assay_quant_largest(c, 3, 4, 5);
  return assay_steps_of_eval(c, qadd_eval, 6, 7,
                             error_of(4 * assay_bound_inner(c->rounding).u * size));
}

static assay_status_t qmul_bound(assay_bound_t* c) {
  const double size = assay_quant_largest(c, 0, 1, 2) * assay_quant_largest(c, 3, 4, 5);
  return assay_steps_of_eval(c, qmul_eval, 6, 7,
                             error_of(6 * assay_bound_inner(c->rounding).u * size));
}

static assay_status_t qwhere_bound(assay_bound_t* c) {
  const double size = fmax(assay_quant_largest(c, 1, 2, 3), assay_quant_largest(c, 4, 5, 6));
  return assay_steps_of_eval(c, qwhere_eval, 7, 8,
                             error_of(2 * assay_bound_inner(c->rounding).u * size));
}

// Its slope is 1/4 at most.
static assay_status_t qsigmoid_bound(assay_bound_t* c) {
  const assay_inner_t in = assay_bound_inner(c->rounding);
  const double e = in.u * assay_quant_largest(c, 0, 1, 2) + 2 * in.function + 4 * in.u;
  return assay_steps_of_eval(c, qsigmoid_eval, 3, 4, error_of(e));
}

static assay_status_t qleaky_relu_bound(assay_bound_t* c) {
  const double slope = fmax(1, fabs(assay_attr_f64(c->node, "alpha", 0.01)));
  const double size = slope * assay_quant_largest(c, 0, 1, 2);
  return assay_steps_of_eval(c, qleaky_relu_eval, 3, 4,
                             error_of(4 * assay_bound_inner(c->rounding).u * size));
}

static assay_status_t qconcat_bound(assay_bound_t* c) {
  double size = 0;
  for (size_t k = 2; k < c->n_in; k += 3)
    size = fmax(size, assay_quant_largest(c, k, k + 1, k + 2));
  return assay_steps_of_eval(c, qconcat_eval, 0, 1,
                             error_of(2 * assay_bound_inner(c->rounding).u * size));
}

// Results are at most 1; exponents are known to within some u of the largest number, and rows are
// no longer than the tensor.
static assay_status_t qsoftmax_bound(assay_bound_t* c) {
  const assay_inner_t in = assay_bound_inner(c->rounding);
  const assay_factor_t sum = assay_bound_sum(c->rounding, (double)c->in[0]->size);
  const double own =
      2 * assay_expm1(8 * in.u * assay_quant_largest(c, 0, 1, 2)) + 3 * in.function + 6 * in.u;
  return assay_steps_of_eval(c, qsoftmax_eval, 3, 4,
                             (assay_factor_t){own + sum.guaranteed, own + sum.probable});
}

static assay_status_t qreduce_mean_bound(assay_bound_t* c) {
  const double terms = c->out[0]->size ? (double)(c->in[0]->size / c->out[0]->size) : 0;
  return assay_steps_of_eval(c, qreduce_mean_eval, 3, 4,
                             assay_quant_mean_error(c, terms, assay_quant_largest(c, 0, 1, 2)));
}

#define ROW(NAME, POINTWISE, INFER, EVAL, SCHEMA)                                   \
  {                                                                                 \
    .domain = "com.microsoft", .name = NAME, .since = 1,                            \
    .flags = ASSAY_OP_QUANTIZES | ASSAY_OP_KEEPS_TYPE | (POINTWISE), .discrete = 1, \
    .schema = SCHEMA, .infer = INFER, .eval = EVAL##_eval, .bound = EVAL##_bound,   \
    .cost = assay_pointwise_cost                                                    \
  }

static const char qbinary_schema[] =
    "A:T, A_scale:float, A_zero_point?:T, B:T, B_scale:float, B_zero_point?:T, C_scale:float, "
    "C_zero_point?:T -> C:T | | T=uint8 int8";

const assay_op_t assay_ops_ms_quant[] = {
    ROW("QLinearAdd", ASSAY_OP_POINTWISE, qbinary_infer, qadd, qbinary_schema),
    ROW("QLinearMul", ASSAY_OP_POINTWISE, qbinary_infer, qmul, qbinary_schema),
    ROW("QLinearSigmoid", ASSAY_OP_POINTWISE, assay_infer_same, qsigmoid,
        "X:T, X_scale:float, X_zero_point?:T, Y_scale:float, Y_zero_point?:T -> Y:T | | T=uint8 "
        "int8"),
    ROW("QLinearLeakyRelu", ASSAY_OP_POINTWISE, assay_infer_same, qleaky_relu,
        "X:T, X_scale:float, X_zero_point?:T, Y_scale:float, Y_zero_point?:T -> Y:T | alpha:f=0.01 "
        "| "
        "T=uint8 int8"),
    ROW("QLinearWhere", ASSAY_OP_POINTWISE, qwhere_infer, qwhere,
        "condition:bool, X:T, x_scale:float, x_zero_point:T, Y:T, y_scale:float, y_zero_point:T, "
        "z_scale:float, z_zero_point:T -> Z:T | | T=uint8 int8"),
    ROW("QLinearConcat", 0, qconcat_infer, qconcat,
        "Y_scale:float, Y_zero_point:T8, inputs*:ALL -> Y:T8 | axis:i! | T8=uint8 int8"),
    ROW("QLinearSoftmax", 0, assay_infer_same, qsoftmax,
        "X:T, X_scale:float, x_zero_point?:T, y_scale:float, y_zero_point:T -> Y:T | "
        "axis:i=-1, opset:i! | T=uint8 int8"),
    ROW("QLinearReduceMean", 0, qreduce_mean_infer, qreduce_mean,
        "data:T, data_scale:float, data_zero_point?:T, reduced_scale:float, reduced_zero_point?:T "
        "-> "
        "reduced:T | axes:is!, keepdims:i! | T=uint8 int8"),
    {0},
};
