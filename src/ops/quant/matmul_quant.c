// Products of quantized matrices: MatMulInteger and QLinearMatMul of ONNX, and com.microsoft's.
#include <math.h>

#include "ops/families.h"
#include "ops/math/pointwise.h"
#include "ops/matmul/matmul.h"
#include "ops/quant/dynamic_quantize.h"
#include "ops/quant/quant.h"
#include "ops/quant/quant_bound.h"

// ---- exact products ---------------------------------------------------------------------------

// Elements of 8 bits (9 after the zero point): sums of their products are exact in double as long
// as there are fewer than 2^35 of them, so integers go through the same fast products as floats do.

// The elements less their zero point, as doubles. The zero point is one number, or along the rows
// of a first operand (or columns of a second) a vector, or a tensor that broadcasts.
static assay_status_t subtract_zero(const assay_eval_t* c, const char* name,
                                    const assay_tensor_t* x, const assay_tensor_t* zero,
                                    bool by_row, assay_tensor_t** out) {
  int64_t strides[ASSAY_MAX_RANK] = {0};
  if (zero && zero->size != 1) {
    bool fits = zero->rank <= x->rank;
    if (zero->rank == 1 && by_row && x->rank >= 2) {
      fits = zero->dims[0] == x->dims[x->rank - 2];
      strides[x->rank - 2] = 1;
    } else {
      for (int i = 0; fits && i < zero->rank; i++) {
        const int64_t d = zero->dims[i];
        fits = d == 1 || d == x->dims[x->rank - zero->rank + i];
      }
      if (fits) assay_broadcast_strides(zero, x->rank, x->dims, strides);
    }
    if (!fits) {
      return ASSAY_NODE_ERROR(
          c->node, ASSAY_INVALID_ARGUMENT,
          "zero point of %s has shape %s; expected one number, one for each %s, "
          "or a shape that broadcasts to %s",
          name, ASSAY_DIMS_TEXT(zero), by_row ? "row" : "column", ASSAY_DIMS_TEXT(x));
    }
  }
  assay_tensor_t* y = NULL;
  ASSAY_TRY(assay_tensor_create(ASSAY_TYPE_DOUBLE, x->rank, x->dims, &y));
  int64_t index[ASSAY_MAX_RANK] = {0};
  int64_t from = 0;
  for (int64_t i = 0; i < x->size; i++) {
    assay_f64(y)[i] = assay_elem_f64(x, i) - (zero ? assay_elem_f64(zero, from) : 0);
    for (int d = x->rank - 1; d >= 0; d--) {
      from += strides[d];
      if (++index[d] < x->dims[d]) break;
      from -= strides[d] * index[d];
      index[d] = 0;
    }
  }
  *out = y;
  return NULL;
}

typedef struct operand {
  const char* name;
  const assay_tensor_t *x, *zero;  // zero: NULL for 0
  assay_matmul_form_t form;
} operand_t;

// The product of (a - zero) and (b - zero) as exact doubles, of the output's shape.
static assay_status_t multiply(const assay_eval_t* c, const operand_t* a, const operand_t* b,
                               assay_tensor_t** out) {
  assay_eval_t exact = *c;
  exact.arith = ASSAY_ARITH_F64;
  assay_tensor_t *x = NULL, *y = NULL, *z = NULL;
  assay_matmul_t p = {0};
  assay_status_t st = subtract_zero(c, a->name, a->x, a->zero, true, &x);
  if (!st) st = subtract_zero(c, b->name, b->x, b->zero, false, &y);
  if (!st) st = assay_matmul_init(c, x, a->form, y, b->form, &p);
  if (!st) st = assay_tensor_create(ASSAY_TYPE_DOUBLE, p.rank, p.dims, &z);
  if (!st) st = assay_matmul_f64(&exact, &p, assay_f64(z));
  assay_matmul_deinit(&p);
  assay_tensor_release(x);
  assay_tensor_release(y);
  if (st) return assay_tensor_release(z), st;
  *out = z;
  return NULL;
}

static const assay_tensor_t* optional(const assay_eval_t* c, size_t i) {
  return assay_eval_has(c, i) ? c->in[i] : NULL;
}

// ---- MatMulInteger ----------------------------------------------------------------------------

static const assay_matmul_form_t plain = {0};

static assay_status_t integer_infer(assay_infer_t* c) {
  assay_shape_t y;
  ASSAY_TRY(assay_matmul_shape(c, 0, plain, 1, plain, &y));
  return assay_infer_set(c, 0, ASSAY_TYPE_INT32, y.known ? &y : NULL);
}

static bool either_real(const assay_eval_t* c) {
  return c->in[0]->store == ASSAY_STORE_F64 || c->in[1]->store == ASSAY_STORE_F64;
}

// Products of real numbers (quant.h) are neither whole nor wrapped.
static assay_status_t real_product(assay_eval_t* c, const operand_t* a, const operand_t* b) {
  assay_tensor_t *z = NULL, *y = NULL;
  ASSAY_TRY(multiply(c, a, b, &z));
  assay_status_t st = assay_tensor_retype(z, ASSAY_TYPE_FLOAT, &y);
  if (!st) assay_eval_set(c, 0, y);
  assay_tensor_release(y);
  assay_tensor_release(z);
  return st;
}

// Source: ONNX MatMulInteger 10. The sum is the int32 that it is modulo 2^32.
static assay_status_t integer_eval(assay_eval_t* c) {
  const operand_t a = {"A", c->in[0], optional(c, 2), plain};
  const operand_t b = {"B", c->in[1], optional(c, 3), plain};
  assay_tensor_t *z = NULL, *y = NULL;
  if (either_real(c)) return real_product(c, &a, &b);
  ASSAY_TRY(multiply(c, &a, &b, &z));
  assay_status_t st = assay_eval_output(c, 0, ASSAY_TYPE_INT32, z->rank, z->dims, &y);
  for (int64_t i = 0; !st && i < z->size; i++) {
    assay_i64(y)[i] = assay_type_wrap(ASSAY_TYPE_INT32, (int64_t)assay_f64(z)[i]);
  }
  assay_tensor_release(z);
  return st;
}

// Both unsigned gives uint32; otherwise int32.
static assay_type_t product16_type(assay_type_t a, assay_type_t b) {
  return a == ASSAY_TYPE_UINT16 && b == ASSAY_TYPE_UINT16 ? ASSAY_TYPE_UINT32 : ASSAY_TYPE_INT32;
}

// Source: com.microsoft MatMulInteger16 1. Products of 16 bits are summed as integers.
static assay_status_t integer16_eval(assay_eval_t* c) {
  assay_matmul_t p;
  if (either_real(c))
    return real_product(c, &(operand_t){"A", c->in[0], NULL, plain},
                        &(operand_t){"B", c->in[1], NULL, plain});
  ASSAY_TRY(assay_matmul_init(c, c->in[0], plain, c->in[1], plain, &p));
  assay_tensor_t* y = NULL;
  const assay_type_t type = product16_type(c->in[0]->type, c->in[1]->type);
  assay_status_t st = assay_eval_output(c, 0, type, p.rank, p.dims, &y);
  if (!st) {
    assay_matmul_i64(&p, assay_i64(y));
    for (int64_t i = 0; i < y->size; i++) {
      assay_i64(y)[i] = assay_type_wrap(type, assay_i64(y)[i]);
    }
  }
  assay_matmul_deinit(&p);
  return st;
}

static assay_status_t integer16_infer(assay_infer_t* c) {
  assay_shape_t y;
  ASSAY_TRY(assay_matmul_shape(c, 0, plain, 1, plain, &y));
  const assay_type_t a = assay_infer_elem(c, 0), b = assay_infer_elem(c, 1);
  return assay_infer_set(c, 0, a && b ? product16_type(a, b) : ASSAY_TYPE_UNDEFINED,
                         y.known ? &y : NULL);
}

static void product_cost(const assay_eval_t* c, assay_cost_t* out) {
  assay_matmul_cost(c, 0, plain, 1, plain, out);
}

// ---- scales -----------------------------------------------------------------------------------

// A scale of an operand as it meets the output: one number, one for each row (of a) or column (of
// b), or a tensor that broadcasts.
typedef struct scale {
  const double* data;
  int rank;
  int64_t strides[ASSAY_MAX_RANK];
} scale_t;

static assay_status_t read_scale(const assay_eval_t* c, const char* name, const assay_tensor_t* t,
                                 bool by_row, int rank, const int64_t* dims, scale_t* out) {
  scale_t s = {.data = assay_f64(t), .rank = rank};
  if (t->size != 1) {
    bool fits = t->rank <= rank && rank >= 1;
    if (t->rank == 1 && by_row) {
      fits = rank >= 2 && t->dims[0] == dims[rank - 2];
      if (fits) s.strides[rank - 2] = 1;
    } else {
      for (int i = 0; fits && i < t->rank; i++) {
        fits = t->dims[i] == 1 || t->dims[i] == dims[rank - t->rank + i];
      }
      if (fits) assay_broadcast_strides(t, rank, dims, s.strides);
    }
    if (!fits) {
      return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                              "%s has shape %s; expected one number, or one for each %s", name,
                              ASSAY_DIMS_TEXT(t), by_row ? "row" : "column");
    }
  }
  *out = s;
  return NULL;
}

static double scale_at(const scale_t* s, const int64_t* index) {
  int64_t at = 0;
  for (int d = 0; d < s->rank; d++) at += s->strides[d] * index[d];
  return s->data[at];
}

static void next_index(const assay_tensor_t* t, int64_t* index) {
  for (int d = t->rank - 1; d >= 0; d--) {
    if (++index[d] < t->dims[d]) return;
    index[d] = 0;
  }
}

// ---- QLinearMatMul ----------------------------------------------------------------------------

enum { QA, QA_SCALE, QA_ZERO, QB, QB_SCALE, QB_ZERO, QY_SCALE, QY_ZERO };

static assay_status_t qlinear_infer(assay_infer_t* c) {
  assay_shape_t y;
  ASSAY_TRY(assay_matmul_shape(c, QA, plain, QB, plain, &y));
  return assay_infer_set(c, 0, assay_infer_elem(c, QY_ZERO), y.known ? &y : NULL);
}

// Rounds v, in units of the scale, to the nearest, ties to even, then moves by the zero point and
// saturates, as QuantizeLinear.
static void store_quantized(const assay_quantizer_t* q, assay_tensor_t* y, int64_t i, double v,
                            const assay_tensor_t* zero, int64_t zero_at) {
  const double z = zero ? assay_elem_f64(zero, zero_at) : 0;
  if (q->real) {
    assay_f64(y)[i] = assay_quantize(q, v, 1, z);
  } else if (y->store == ASSAY_STORE_F64) {
    assay_f64(y)[i] = assay_format_round(assay_type_format(y->type), v, ASSAY_OVERFLOW_SATURATE);
  } else {
    assay_i64(y)[i] = assay_type_saturate(y->type, rint(v) + z);
  }
}

// Source: ONNX QLinearMatMul 10, 21 (float8): y = quantize(dequantize(a) x dequantize(b)).
static assay_status_t qlinear_eval(assay_eval_t* c) {
  const operand_t a = {"a", c->in[QA], c->in[QA_ZERO], plain};
  const operand_t b = {"b", c->in[QB], c->in[QB_ZERO], plain};
  const assay_tensor_t* zero = c->in[QY_ZERO];
  assay_tensor_t *z = NULL, *y = NULL;
  scale_t sa = {0}, sb = {0}, sy = {0}, zy = {0};
  ASSAY_TRY(multiply(c, &a, &b, &z));
  assay_status_t st = read_scale(c, "a_scale", c->in[QA_SCALE], true, z->rank, z->dims, &sa);
  if (!st) st = read_scale(c, "b_scale", c->in[QB_SCALE], false, z->rank, z->dims, &sb);
  if (!st) st = read_scale(c, "y_scale", c->in[QY_SCALE], true, z->rank, z->dims, &sy);
  if (!st) st = read_scale(c, "y_zero_point", zero, true, z->rank, z->dims, &zy);
  const assay_quantizer_t q = assay_quantizer(c, zero->type, ASSAY_FORMAT_FP64, true);
  if (!st) st = assay_eval_output(c, 0, assay_quant_type(c, zero->type), z->rank, z->dims, &y);
  int64_t index[ASSAY_MAX_RANK] = {0};
  for (int64_t i = 0; !st && i < z->size; i++, next_index(z, index)) {
    const double factor = assay_acc(c, scale_at(&sa, index) * scale_at(&sb, index));
    // Each step rounded, in the order of ops/quant/int8.h.
    const double sum = assay_acc(c, assay_acc(c, assay_f64(z)[i]) * factor);
    const double v = assay_acc(c, sum / scale_at(&sy, index));
    int64_t zero_at = 0;
    for (int d = 0; d < zy.rank; d++) zero_at += zy.strides[d] * index[d];
    store_quantized(&q, y, i, v, zero, zero_at);
  }
  assay_tensor_release(z);
  return st;
}

static void qlinear_cost(const assay_eval_t* c, assay_cost_t* out) {
  assay_matmul_cost(c, QA, plain, QB, plain, out);
}

// ---- com.microsoft: float results -------------------------------------------------------------

// y = z * scale(s) + bias, bias along the last dim.
static assay_status_t scale_to_float(assay_eval_t* c, const assay_tensor_t* z, const scale_t* sa,
                                     const scale_t* sb, const assay_tensor_t* bias,
                                     assay_type_t type) {
  const int64_t columns = z->rank > 0 ? z->dims[z->rank - 1] : 1;
  if (bias && bias->size != columns) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                            "bias has shape %s; expected one number for each of %lld columns",
                            ASSAY_DIMS_TEXT(bias), (long long)columns);
  }
  assay_tensor_t* y = NULL;
  ASSAY_TRY(assay_eval_output(c, 0, assay_eval_out_type(c, 0, type), z->rank, z->dims, &y));
  int64_t index[ASSAY_MAX_RANK] = {0};
  for (int64_t i = 0; i < z->size; i++, next_index(z, index)) {
    const double scale = (sa ? scale_at(sa, index) : 1) * scale_at(sb, index);
    double v = assay_acc(c, assay_f64(z)[i] * assay_acc(c, scale));
    if (bias) v = assay_acc(c, v + assay_f64(bias)[i % columns]);
    assay_f64(y)[i] = v;
  }
  return NULL;
}

static assay_status_t to_float_infer(assay_infer_t* c) {
  assay_shape_t y;
  ASSAY_TRY(assay_matmul_shape(c, 0, plain, 1, plain, &y));
  return assay_infer_set(c, 0, assay_infer_elem(c, 2), y.known ? &y : NULL);
}

// Source: com.microsoft MatMulIntegerToFloat 1.
static assay_status_t to_float_eval(assay_eval_t* c) {
  const operand_t a = {"A", c->in[0], optional(c, 4), plain};
  const operand_t b = {"B", c->in[1], optional(c, 5), plain};
  assay_tensor_t* z = NULL;
  scale_t sa = {0}, sb = {0};
  ASSAY_TRY(multiply(c, &a, &b, &z));
  assay_status_t st = read_scale(c, "a_scale", c->in[2], true, z->rank, z->dims, &sa);
  if (!st) st = read_scale(c, "b_scale", c->in[3], false, z->rank, z->dims, &sb);
  if (!st) st = scale_to_float(c, z, &sa, &sb, optional(c, 6), c->in[2]->type);
  assay_tensor_release(z);
  return st;
}

// Source: com.microsoft DynamicQuantizeMatMul 1.
static assay_status_t dynamic_eval(assay_eval_t* c) {
  assay_tensor_t *x = NULL, *z = NULL;
  scale_t sb = {0};
  ASSAY_TRY(assay_tensor_create(ASSAY_TYPE_DOUBLE, c->in[0]->rank, c->in[0]->dims, &x));
  assay_dynamic_quantize(c, x->size, assay_f64(c->in[0]), assay_f64(x));
  const operand_t a = {"A", x, NULL, plain}, b = {"B", c->in[1], optional(c, 3), plain};
  assay_status_t st = multiply(c, &a, &b, &z);
  if (!st) st = read_scale(c, "b_scale", c->in[2], false, z->rank, z->dims, &sb);
  if (!st) st = scale_to_float(c, z, NULL, &sb, optional(c, 4), c->in[0]->type);
  assay_tensor_release(x);
  assay_tensor_release(z);
  return st;
}

static assay_status_t dynamic_infer(assay_infer_t* c) {
  assay_shape_t y;
  ASSAY_TRY(assay_matmul_shape(c, 0, plain, 1, plain, &y));
  return assay_infer_set(c, 0, assay_infer_elem(c, 0), y.known ? &y : NULL);
}

// ---- QGemm ------------------------------------------------------------------------------------

enum { GA, GA_SCALE, GA_ZERO, GB, GB_SCALE, GB_ZERO, GC, GY_SCALE, GY_ZERO };

static assay_matmul_form_t form_of(const assay_node_t* n, const char* name) {
  return (assay_matmul_form_t){.swap = assay_attr_i64(n, name, 0) != 0};
}

static assay_status_t qgemm_infer(assay_infer_t* c) {
  ASSAY_TRY(assay_infer_want_rank(c, GA, 2, 2));
  ASSAY_TRY(assay_infer_want_rank(c, GB, 2, 2));
  assay_shape_t y;
  ASSAY_TRY(
      assay_matmul_shape(c, GA, form_of(c->node, "transA"), GB, form_of(c->node, "transB"), &y));
  const assay_type_t type =
      assay_infer_has(c, GY_ZERO) ? assay_infer_elem(c, GY_ZERO) : ASSAY_TYPE_FLOAT;
  return assay_infer_set(c, 0, type, y.known ? &y : NULL);
}

// C, in units of the product, added to it.
static assay_status_t add_integer_bias(const assay_eval_t* c, const assay_tensor_t* bias,
                                       assay_tensor_t* z) {
  if (!bias) return NULL;
  bool fits = bias->rank <= 2;
  for (int i = 0; fits && i < bias->rank; i++) {
    fits = bias->dims[i] == 1 || bias->dims[i] == z->dims[2 - bias->rank + i];
  }
  if (!fits) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                            "C has shape %s; expected one that broadcasts to %s",
                            ASSAY_DIMS_TEXT(bias), ASSAY_DIMS_TEXT(z));
  }
  int64_t strides[2];
  assay_broadcast_strides(bias, 2, z->dims, strides);
  for (int64_t i = 0; i < z->size; i++) {
    const int64_t at = i / z->dims[1] * strides[0] + i % z->dims[1] * strides[1];
    assay_f64(z)[i] += assay_elem_f64(bias, at);
  }
  return NULL;
}

// (A - zero) (B - zero) + C, and the scales.
static assay_status_t qgemm_product(const assay_eval_t* c, assay_tensor_t** out, scale_t* sa,
                                    scale_t* sb) {
  // Zero points of B go with output columns: the rows of a transposed B.
  const assay_matmul_form_t form_b = form_of(c->node, "transB");
  const assay_tensor_t* zero_b = c->in[GB_ZERO];
  assay_tensor_t *column = NULL, *z = NULL;
  assay_status_t st = NULL;
  if (form_b.swap && zero_b->rank == 1 && zero_b->size > 1) {
    const int64_t dims[2] = {zero_b->size, 1};
    st = assay_tensor_view(c->in[GB_ZERO], 2, dims, &column);
    zero_b = column;
  }
  const operand_t a = {"A", c->in[GA], c->in[GA_ZERO], form_of(c->node, "transA")};
  const operand_t b = {"B", c->in[GB], zero_b, form_b};
  if (!st) st = multiply(c, &a, &b, &z);
  if (!st) st = add_integer_bias(c, optional(c, GC), z);
  if (!st) st = read_scale(c, "a_scale", c->in[GA_SCALE], true, 2, z->dims, sa);
  if (!st) st = read_scale(c, "b_scale", c->in[GB_SCALE], false, 2, z->dims, sb);
  assay_tensor_release(column);
  if (st) return assay_tensor_release(z), st;
  *out = z;
  return NULL;
}

// Source: com.microsoft QGemm 1: alpha * a_scale * b_scale * ((A - zero) (B - zero) + C), quantized
// if there is a y_scale.
static assay_status_t qgemm_eval(assay_eval_t* c) {
  if (c->in[GA]->rank != 2 || c->in[GB]->rank != 2) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                            "A and B have shapes %s and %s; expected two dimensions each",
                            ASSAY_DIMS_TEXT(c->in[GA]), ASSAY_DIMS_TEXT(c->in[GB]));
  }
  assay_tensor_t *z = NULL, *y = NULL;
  scale_t sa = {0}, sb = {0};
  assay_status_t st = qgemm_product(c, &z, &sa, &sb);
  const assay_tensor_t *y_scale = optional(c, GY_SCALE), *y_zero = optional(c, GY_ZERO);
  if (!st && ((y_scale && y_scale->size != 1) || (y_zero && y_zero->size != 1))) {
    st = ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                          "y_scale and y_zero_point must be one number each");
  }
  const assay_type_t type = assay_eval_out_type(c, 0, y_zero ? y_zero->type : ASSAY_TYPE_FLOAT);
  const assay_quantizer_t q = assay_quantizer(c, type, ASSAY_FORMAT_FP64, true);
  if (!st) st = assay_eval_output(c, 0, assay_quant_type(c, type), 2, z->dims, &y);
  const double alpha = assay_attr_f64(c->node, "alpha", 1);
  int64_t index[ASSAY_MAX_RANK] = {0};
  for (int64_t i = 0; !st && i < z->size; i++, next_index(z, index)) {
    double v = assay_f64(z)[i] * alpha * scale_at(&sa, index) * scale_at(&sb, index);
    if (y_scale) v /= assay_f64(y_scale)[0];
    if (assay_type_is_float(type)) {
      assay_f64(y)[i] = assay_acc(c, v);
    } else {
      store_quantized(&q, y, i, v, y_zero, 0);
    }
  }
  assay_tensor_release(z);
  return st;
}

static void qgemm_cost(const assay_eval_t* c, assay_cost_t* out) {
  assay_matmul_cost(c, GA, form_of(c->node, "transA"), GB, form_of(c->node, "transB"), out);
}

// ---- bounds -----------------------------------------------------------------------------------
// Sums of integers are exact; what follows is not: the sum as a float, its scales in any order, the
// bias or the division.

// z * scales: by the elements of z. error: of z itself; NULL: none.
typedef struct product_bound {
  assay_bound_t* c;
  const assay_tensor_t *z, *error;
  const scale_t *sa, *sb;  // sa NULL: 1
  double factor;           // a number besides
} product_bound_t;

static assay_quant_near_t real_of(const product_bound_t* b, const int64_t* index, int64_t i) {
  const assay_inner_t in = assay_bound_inner(b->c->rounding);
  const double sa = b->sa ? scale_at(b->sa, index) : 1, sb = scale_at(b->sb, index);
  const double z = assay_f64(b->z)[i], scale = b->factor * sa * sb, real = z * scale;
  const double moved = b->error ? assay_f64(b->error)[i] * fabs(scale) : 0;
  // Products of scales may vanish.
  const double lost =
      in.tiny * (1 + fabs(z)) * (1 + fabs(sa)) * (1 + fabs(sb)) * (1 + fabs(b->factor));
  // Multiplied in whatever order, nothing passes the range on the way.
  const double largest =
      (1 + fabs(z)) * fmax(1, fabs(sa)) * fmax(1, fabs(sb)) * fmax(1, fabs(b->factor));
  if (!(largest <= in.max)) return (assay_quant_near_t){real, (double)INFINITY};
  return (assay_quant_near_t){real, moved + 5 * in.u * (fabs(real) + moved) + lost};
}

// Float results, with a bias along the last dim.
static assay_status_t bound_to_float(const product_bound_t* b, const assay_tensor_t* bias) {
  const assay_inner_t in = assay_bound_inner(b->c->rounding);
  double* limits[2];
  ASSAY_TRY(assay_bound_output(b->c, 0, &limits[0], &limits[1]));
  if (!limits[0]) return NULL;
  const int64_t columns = b->z->rank > 0 ? b->z->dims[b->z->rank - 1] : 1;
  int64_t index[ASSAY_MAX_RANK] = {0};
  for (int64_t i = 0; i < b->z->size; i++, next_index(b->z, index)) {
    const assay_quant_near_t real = real_of(b, index, i);
    const double y = real.value + (bias ? assay_f64(bias)[i % columns] : 0);
    const double e = real.error + (bias ? in.u * (fabs(y) + real.error) : 0) + 2 * in.tiny;
    limits[0][i] = limits[1][i] = e == e && fabs(y) <= in.max ? e : (double)INFINITY;
  }
  return NULL;
}

// Quantized results; sy and zy as they meet the output (sy NULL: 1).
static assay_status_t bound_to_steps(const product_bound_t* b, const scale_t* sy,
                                     const assay_tensor_t* zero, const scale_t* zy) {
  const assay_tensor_t* y = b->c->out[0];
  assay_quant_steps_t steps = assay_steps_of(b->c->rounding, y->type, true, ASSAY_FORMAT_FP32);
  steps.u = fmax(steps.u, assay_bound_inner(b->c->rounding).u);
  double* limits[2];
  ASSAY_TRY(assay_bound_output(b->c, 0, &limits[0], &limits[1]));
  int64_t index[ASSAY_MAX_RANK] = {0};
  for (int64_t i = 0; i < b->z->size; i++, next_index(b->z, index)) {
    int64_t zero_at = 0;
    for (int d = 0; zy && d < zy->rank; d++) zero_at += zy->strides[d] * index[d];
    const assay_quant_near_t scale = {sy ? scale_at(sy, index) : 1, 0};
    const bool shifts = zero && zero->store == ASSAY_STORE_I64;
    const assay_quant_near_t z = {shifts ? (double)assay_i64(zero)[zero_at] : 0, 0};
    limits[0][i] = limits[1][i] =
        assay_steps_limit(&steps, real_of(b, index, i), scale, z, assay_elem_f64(y, i));
  }
  return NULL;
}

static assay_status_t abs_of(const assay_tensor_t* t, assay_tensor_t** out) {
  ASSAY_TRY(assay_tensor_create(ASSAY_TYPE_DOUBLE, t->rank, t->dims, out));
  for (int64_t i = 0; i < t->size; i++) assay_f64(*out)[i] = fabs(assay_f64(t)[i]);
  return NULL;
}

// Sums of 8-bit floats: factor * sum |a| |b|.
static assay_status_t float_sums(const assay_bound_t* c, const operand_t* a, const operand_t* b,
                                 assay_tensor_t** out) {
  *out = NULL;
  if (a->x->store != ASSAY_STORE_F64 || b->x->store != ASSAY_STORE_F64) return NULL;
  const assay_eval_t reader = assay_bound_as_eval(c);
  assay_tensor_t *x[2] = {NULL}, *abs[2] = {NULL}, *z = NULL;
  assay_status_t st = subtract_zero(&reader, a->name, a->x, a->zero, true, &x[0]);
  if (!st) st = subtract_zero(&reader, b->name, b->x, b->zero, false, &x[1]);
  for (int i = 0; !st && i < 2; i++) st = abs_of(x[i], &abs[i]);
  if (!st) {
    const operand_t p = {a->name, abs[0], NULL, a->form}, q = {b->name, abs[1], NULL, b->form};
    st = multiply(&reader, &p, &q, &z);
  }
  const int64_t terms = a->x->rank > 0 ? a->x->dims[a->x->rank - 1] : 1;
  const double factor =
      assay_bound_sum(c->rounding, (double)terms).guaranteed + 2 * assay_bound_inner(c->rounding).u;
  for (int64_t i = 0; !st && i < z->size; i++) assay_f64(z)[i] *= factor;
  for (int i = 0; i < 2; i++) {
    assay_tensor_release(x[i]);
    assay_tensor_release(abs[i]);
  }
  *out = z;
  return st;
}

static assay_status_t qlinear_bound(assay_bound_t* c) {
  ASSAY_TRY(assay_bound_want_exact(c, SIZE_MAX));
  if (!assay_bound_is_quantized(c, 0)) return NULL;
  const assay_eval_t reader = assay_bound_as_eval(c);
  const operand_t a = {"a", c->in[QA], c->in[QA_ZERO], plain};
  const operand_t b = {"b", c->in[QB], c->in[QB_ZERO], plain};
  const assay_tensor_t* zero = c->in[QY_ZERO];
  assay_tensor_t *z = NULL, *error = NULL;
  scale_t sa = {0}, sb = {0}, sy = {0}, zy = {0};
  ASSAY_TRY(multiply(&reader, &a, &b, &z));
  assay_status_t st = float_sums(c, &a, &b, &error);
  if (!st) st = read_scale(&reader, "a_scale", c->in[QA_SCALE], true, z->rank, z->dims, &sa);
  if (!st) st = read_scale(&reader, "b_scale", c->in[QB_SCALE], false, z->rank, z->dims, &sb);
  if (!st) st = read_scale(&reader, "y_scale", c->in[QY_SCALE], true, z->rank, z->dims, &sy);
  if (!st) st = read_scale(&reader, "y_zero_point", zero, true, z->rank, z->dims, &zy);
  const product_bound_t p = {.c = c, .z = z, .error = error, .sa = &sa, .sb = &sb, .factor = 1};
  if (!st) st = bound_to_steps(&p, &sy, zero, &zy);
  assay_tensor_release(z);
  assay_tensor_release(error);
  return st;
}

static assay_status_t to_float_bound(assay_bound_t* c) {
  ASSAY_TRY(assay_bound_want_exact(c, SIZE_MAX));
  const assay_eval_t reader = assay_bound_as_eval(c);
  const operand_t a = {"A", c->in[0], optional(&reader, 4), plain};
  const operand_t b = {"B", c->in[1], optional(&reader, 5), plain};
  assay_tensor_t* z = NULL;
  scale_t sa = {0}, sb = {0};
  ASSAY_TRY(multiply(&reader, &a, &b, &z));
  assay_status_t st = read_scale(&reader, "a_scale", c->in[2], true, z->rank, z->dims, &sa);
  if (!st) st = read_scale(&reader, "b_scale", c->in[3], false, z->rank, z->dims, &sb);
  const product_bound_t p = {.c = c, .z = z, .sa = &sa, .sb = &sb, .factor = 1};
  if (!st) st = bound_to_float(&p, optional(&reader, 6));
  assay_tensor_release(z);
  return st;
}

// What quantizing A may do, times |B - zero|.
static assay_status_t dynamic_error(const assay_bound_t* c, const operand_t* b,
                                    assay_tensor_t** out) {
  const assay_eval_t reader = assay_bound_as_eval(c);
  assay_tensor_t *error = NULL, *x = NULL, *abs = NULL;
  assay_status_t st =
      assay_tensor_create(ASSAY_TYPE_DOUBLE, c->in[0]->rank, c->in[0]->dims, &error);
  if (!st) {
    assay_dynamic_quantize_bound(c->rounding, error->size, assay_f64(c->in[0]), NULL,
                                 assay_f64(error));
    st = subtract_zero(&reader, b->name, b->x, b->zero, false, &x);
  }
  if (!st) st = abs_of(x, &abs);
  if (!st) {
    const operand_t p = {"A", error, NULL, plain}, q = {"B", abs, NULL, plain};
    st = multiply(&reader, &p, &q, out);
  }
  assay_tensor_release(error);
  assay_tensor_release(x);
  assay_tensor_release(abs);
  return st;
}

static assay_status_t dynamic_bound(assay_bound_t* c) {
  ASSAY_TRY(assay_bound_want_exact(c, SIZE_MAX));
  const assay_eval_t reader = assay_bound_as_eval(c);
  assay_tensor_t *x = NULL, *z = NULL, *error = NULL;
  scale_t sb = {0};
  ASSAY_TRY(assay_tensor_create(ASSAY_TYPE_DOUBLE, c->in[0]->rank, c->in[0]->dims, &x));
  assay_dynamic_quantize(&reader, x->size, assay_f64(c->in[0]), assay_f64(x));
  const operand_t a = {"A", x, NULL, plain}, b = {"B", c->in[1], optional(&reader, 3), plain};
  assay_status_t st = multiply(&reader, &a, &b, &z);
  if (!st) st = dynamic_error(c, &b, &error);
  if (!st) st = read_scale(&reader, "b_scale", c->in[2], false, z->rank, z->dims, &sb);
  const product_bound_t p = {.c = c, .z = z, .error = error, .sb = &sb, .factor = 1};
  if (!st) st = bound_to_float(&p, optional(&reader, 4));
  assay_tensor_release(x);
  assay_tensor_release(z);
  assay_tensor_release(error);
  return st;
}

static assay_status_t qgemm_bound(assay_bound_t* c) {
  ASSAY_TRY(assay_bound_want_exact(c, SIZE_MAX));
  const assay_eval_t reader = assay_bound_as_eval(c);
  assay_tensor_t* z = NULL;
  scale_t sa = {0}, sb = {0}, sy = {0};
  ASSAY_TRY(qgemm_product(&reader, &z, &sa, &sb));
  const assay_tensor_t* y_scale = optional(&reader, GY_SCALE);
  assay_status_t st = NULL;
  if (y_scale) st = read_scale(&reader, "y_scale", y_scale, true, 2, z->dims, &sy);
  const product_bound_t p = {
      .c = c, .z = z, .sa = &sa, .sb = &sb, .factor = assay_attr_f64(c->node, "alpha", 1)};
  if (!st) {
    st = assay_bound_is_quantized(c, 0)
             ? bound_to_steps(&p, y_scale ? &sy : NULL, optional(&reader, GY_ZERO), NULL)
             : bound_to_float(&p, NULL);
  }
  assay_tensor_release(z);
  return st;
}

const assay_op_t assay_ops_matmul_quant[] = {
    {.domain = "",
     .name = "MatMulInteger",
     .since = 10,
     .flags = ASSAY_OP_QUANTIZES,
     .infer = integer_infer,
     .eval = integer_eval,
     .cost = product_cost},
    {.domain = "",
     .name = "QLinearMatMul",
     .since = 10,
     .flags = ASSAY_OP_QUANTIZES | ASSAY_OP_KEEPS_TYPE,
     .discrete = 1,
     .infer = qlinear_infer,
     .eval = qlinear_eval,
     .bound = qlinear_bound,
     .cost = qlinear_cost},
    {.domain = "com.microsoft",
     .name = "MatMulInteger16",
     .since = 1,
     .flags = ASSAY_OP_QUANTIZES,
     .infer = integer16_infer,
     .eval = integer16_eval,
     .cost = product_cost,
     .schema = "A:T1, B:T2 -> Y:T3 | | T1=int16 uint16; T2=int16 uint16; T3=int32 uint32"},
    {.domain = "com.microsoft",
     .name = "MatMulIntegerToFloat",
     .since = 1,
     .flags = ASSAY_OP_QUANTIZES,
     .infer = to_float_infer,
     .eval = to_float_eval,
     .bound = to_float_bound,
     .cost = product_cost,
     .schema = "A:T1, B:T2, a_scale:T3, b_scale:T3, a_zero_point?:T1, b_zero_point?:T2, bias?:T3 "
               "-> Y:T3 | | T1=int8 uint8; T2=int8 uint8; T3=float float16"},
    {.domain = "com.microsoft",
     .name = "DynamicQuantizeMatMul",
     .since = 1,
     .flags = ASSAY_OP_QUANTIZES,
     .infer = dynamic_infer,
     .eval = dynamic_eval,
     .bound = dynamic_bound,
     .cost = product_cost,
     .schema = "A:T1, B:T2, b_scale:T1, b_zero_point?:T2, bias?:T1 -> Y:T1 | | "
               "T1=float; T2=int8 uint8"},
    {.domain = "com.microsoft",
     .name = "QGemm",
     .since = 1,
     .flags = ASSAY_OP_QUANTIZES | ASSAY_OP_KEEPS_TYPE,
     .infer = qgemm_infer,
     .eval = qgemm_eval,
     .bound = qgemm_bound,
     .cost = qgemm_cost,
     .schema = "A:TA, a_scale:T, a_zero_point:TA, B:TB, b_scale:T, b_zero_point:TB, C?:TC, "
               "y_scale?:T, y_zero_point?:TYZ -> Y:TY | transA:i=0, transB:i=0, alpha:f=1 | "
               "T=float; TA=uint8 int8; TB=uint8 int8; TC=int32; TYZ=uint8 int8; "
               "TY=float uint8 int8"},
    {0}};
