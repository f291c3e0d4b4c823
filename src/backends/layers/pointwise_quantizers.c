// QuantizeLinear, DequantizeLinear, and casts to floats of 8 bits as instructions. What they are:
// ops/quant/quantize.c; the bits are those of its functions.
#include <math.h>
#include <string.h>

#include "backends/layers/pointwise_internal.h"
#include "ops/math/pointwise.h"

static int emit(pointwise_compiler_t* c, int f, int n, const int* operands, const float* param) {
  return pointwise_emit(c, f, n, operands, param, 4);
}
static int one(pointwise_compiler_t* c, int f, int a, const float* param) {
  return emit(c, f, 1, &a, param);
}
static int two(pointwise_compiler_t* c, int f, int a, int b, const float* param) {
  return emit(c, f, 2, (const int[]){a, b}, param);
}

int pointwise_to_float8(pointwise_compiler_t* c, const assay_node_t* n, int value,
                        assay_type_t type) {
  const assay_format_info_t* info = assay_format_info(assay_type_format(type));
  const bool saturates = assay_attr_i64(n, "saturate", 1) != 0;
  const float past = info->has_infinity ? INFINITY : NAN, most = (float)info->max;
  const int f = type == ASSAY_TYPE_FLOAT8E4M3FN     ? POINTWISE_TO_E4M3
                : type == ASSAY_TYPE_FLOAT8E5M2     ? POINTWISE_TO_E5M2
                : type == ASSAY_TYPE_FLOAT8E4M3FNUZ ? POINTWISE_TO_E4M3_UNSIGNED_ZERO
                                                    : POINTWISE_TO_E5M2_UNSIGNED_ZERO;
  return one(c, f, value, (const float[]){most, saturates ? most : past});
}

// ---- scales and zero points ---------------------------------------------------------------------

static assay_type_t type_of(const assay_node_t* n, size_t input) {
  const assay_value_t* v = input < n->n_inputs ? n->inputs[input] : NULL;
  return v && v->type ? v->type->elem : ASSAY_TYPE_UNDEFINED;
}

// The stream of scales or of zero points: one, one for each index of the axis, or one for each
// block of indices.
static int parameter(pointwise_compiler_t* c, const assay_node_t* n, size_t input) {
  const assay_operand_t* o = assay_sized_input(c->l, n->inputs[input]);
  const int rank = c->l->out[0].rank;
  if (!o) return -1;
  if (o->size == 1)
    return o->rank <= rank ? pointwise_value(c, n->inputs[input], true)
                           : pointwise_axis_stream(c, n->inputs[input], -1, 0);
  int64_t axis = assay_attr_i64(n, "axis", 1);
  const int64_t block = assay_attr_i64(n, "block_size", 0);
  if (rank == 1) axis = 0;
  if (axis < 0) axis += rank;
  if (axis < 0 || axis >= rank || block < 0) return -1;
  return pointwise_axis_stream(c, n->inputs[input], (int)axis, block);
}

static bool all_zeros(const assay_operand_t* o) {
  assay_tensor_t* wide = NULL;
  if (!o || !o->constant || o->constant->kind != ASSAY_KIND_TENSOR) return false;
  assay_status_t st = assay_tensor_widen((assay_tensor_t*)o->constant, &wide);
  if (st) return assay_status_free(st), false;
  bool zeros = wide->store <= ASSAY_STORE_I64;
  for (int64_t i = 0; zeros && i < wide->size; i++) zeros = assay_elem_f64(wide, i) == 0;
  assay_tensor_release(wide);
  return zeros;
}

// Whether there is a zero point other than 0.
static bool has_zero(const pointwise_compiler_t* c, const assay_node_t* n) {
  return n->n_inputs > 2 && n->inputs[2] && !all_zeros(assay_sized_input(c->l, n->inputs[2]));
}

// ---- QuantizeLinear -----------------------------------------------------------------------------

// x and the scale are rounded to a format, and so is the quotient: of two numbers of 11 bits a
// float32 of 24, rounded again, is what one rounding gives.
// Source: ONNX QuantizeLinear-23, precision.
static int quotient(pointwise_compiler_t* c, const assay_node_t* n, int x, int scale) {
  const int64_t asked = assay_attr_i64(n, "precision", 0);
  const assay_type_t type = asked ? (assay_type_t)asked : type_of(n, 1);
  const int narrow = type == ASSAY_TYPE_FLOAT16 ? POINTWISE_TO_FLOAT16 : POINTWISE_TO_BFLOAT16;
  const assay_type_t of_x = type_of(n, 0), of_scale = type_of(n, 1);
  if (!assay_type_is_kernel_float(type) || !assay_type_is_kernel_float(of_scale)) return -1;
  if (type == ASSAY_TYPE_FLOAT) return two(c, POINTWISE_QUOTIENT, x, scale, NULL);
  if (of_x != type) x = assay_type_is_kernel_float(of_x) ? one(c, narrow, x, NULL) : -1;
  if (of_scale != type) scale = one(c, narrow, scale, NULL);
  return one(c, narrow, two(c, POINTWISE_QUOTIENT, x, scale, NULL), NULL);
}

int pointwise_quantize(pointwise_compiler_t* c, const assay_node_t* n) {
  const assay_type_t to = n->outputs[0]->type->elem, from = type_of(n, 0);
  const bool zero = has_zero(c, n);
  if (n->n_inputs < 2 || !(assay_type_is_kernel_float(from) || from == ASSAY_TYPE_INT32)) return -1;
  int at = quotient(c, n, pointwise_value(c, n->inputs[0], true), parameter(c, n, 1));
  if (pointwise_is_float8(to)) {
    // A sum with 0 leaves no -0.
    at = zero ? two(c, POINTWISE_ODD_SUM, at, parameter(c, n, 2), NULL)
              : two(c, POINTWISE_ADD, at, pointwise_number_stream(c, 0), NULL);
    return pointwise_to_float8(c, n, at, to);
  }
  if (!pointwise_is_whole(to)) return -1;
  const assay_format_info_t* info = assay_format_info(assay_type_format(to));
  const float limits[] = {info->is_signed ? -(float)info->max - 1 : 0, (float)info->max};
  return two(c, POINTWISE_TO_WHOLE, at, zero ? parameter(c, n, 2) : pointwise_number_stream(c, 0),
             limits);
}

// ---- DequantizeLinear ---------------------------------------------------------------------------

// (x - zero) scale. Of whole numbers of 16 bits, and without a zero point, the difference is exact
// in float32; and so is what a narrower output is rounded from, where 9 bits are multiplied by 11.
int pointwise_dequantize(pointwise_compiler_t* c, const assay_node_t* n) {
  const assay_type_t from = type_of(n, 0), of_scale = type_of(n, 1);
  const bool last = c->l->out[0].value == n->outputs[0];
  const bool narrow = last && c->l->out[0].type != ASSAY_TYPE_FLOAT;
  const bool eight = assay_type_bits(from) == 8, zero = has_zero(c, n);
  if (n->n_inputs < 2 || !(pointwise_is_float8(from) || pointwise_is_whole(from))) return -1;
  if (!assay_type_is_kernel_float(of_scale)) return -1;
  const bool exact = !narrow || (eight && of_scale != ASSAY_TYPE_FLOAT);
  const int x = pointwise_value(c, n->inputs[0], true), scale = parameter(c, n, 1);
  const int offset = zero ? parameter(c, n, 2) : -1;
  if (exact && (!zero || pointwise_is_whole(from)))
    return two(c, POINTWISE_MUL, zero ? two(c, POINTWISE_SUB, x, offset, NULL) : x, scale, NULL);
  const int operands[] = {x, zero ? offset : pointwise_number_stream(c, 0), scale};
  return emit(c, narrow ? POINTWISE_ODD_DEQUANTIZED : POINTWISE_DEQUANTIZED, 3, operands, NULL);
}
