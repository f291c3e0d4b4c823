// QuantizeLinear DequantizeLinear DynamicQuantizeLinear, and com.microsoft's first two.
//
// In native mode (and in plans) the quotient x / scale is rounded to the type that the operator
// names for it; in truth it is exact to float64, and so may fall on the other side of a tie.
#include <math.h>

#include "ops/families.h"
#include "ops/math/pointwise.h"
#include "ops/quant/quant_bound.h"

// ---- QuantizeLinear ----------------------------------------------------------------------------

static bool is_quantized_type(assay_type_t type) {
  return assay_type_is_integer(type) || (assay_type_is_float(type) && assay_type_bits(type) <= 8);
}

// The type of the output: output_dtype, else the zero point's, else uint8.
// Source: ONNX QuantizeLinear-21, output_dtype.
static assay_status_t quantized_type(const assay_node_t* node, assay_type_t zero_type,
                                     assay_type_t* out) {
  int64_t asked = assay_attr_i64(node, "output_dtype", 0);
  assay_type_t type = asked > 0 && asked < ASSAY_TYPE_COUNT ? (assay_type_t)asked
                      : zero_type                           ? zero_type
                                                            : ASSAY_TYPE_UINT8;
  if ((asked != 0 && (int64_t)type != asked) || (asked != 0 && zero_type && zero_type != type))
    return ASSAY_NODE_ERROR(
        node, ASSAY_INVALID_ARGUMENT,
        "attribute output_dtype is %lld (%s), the zero point is %s; they must be "
        "the same type",
        (long long)asked, assay_type_name(type), assay_type_name(zero_type));
  const assay_param_t* p = node->schema ? assay_schema_output(node->schema, 0) : NULL;
  if (!is_quantized_type(type) || (p && p->types.tensor && !(p->types.tensor >> type & 1)))
    return ASSAY_NODE_ERROR(node, ASSAY_INVALID_ARGUMENT, "it cannot quantize to %s",
                            assay_type_name(type));
  *out = type;
  return NULL;
}

// What the division is rounded to. Source: ONNX QuantizeLinear-23, precision; integers divide
// exactly, and a float8e8m0 scale is a power of two.
static assay_format_t asked_quotient(const assay_node_t* node, assay_type_t scale) {
  int64_t precision = assay_attr_i64(node, "precision", 0);
  assay_type_t type =
      precision > 0 && precision < ASSAY_TYPE_COUNT ? (assay_type_t)precision : scale;
  bool rounds = assay_type_is_float(type) && type != ASSAY_TYPE_FLOAT8E8M0;
  return rounds ? assay_type_format(type) : ASSAY_FORMAT_FP64;
}

static assay_format_t quotient_format(const assay_eval_t* c) {
  if (c->mode == ASSAY_MODE_TRUTH) return ASSAY_FORMAT_FP64;
  return asked_quotient(c->node, c->in[1]->type);
}

static assay_status_t want_numbers(const assay_eval_t* c) {
  for (size_t i = 0; i < c->n_in; i++)
    if (c->in[i] && c->in[i]->store > ASSAY_STORE_I64)
      return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT, "input %zu is %s; it takes numbers",
                              i, assay_type_name(c->in[i]->type));
  return NULL;
}

static assay_status_t quantize_eval(assay_eval_t* c) {
  assay_tensor_t *x = c->in[0], *scale = c->in[1], *zero = assay_eval_has(c, 2) ? c->in[2] : NULL,
                 *y;
  assay_type_t type;
  assay_scales_t where;
  ASSAY_TRY(want_numbers(c));
  ASSAY_TRY(quantized_type(c->node, zero ? zero->type : ASSAY_TYPE_UNDEFINED, &type));
  ASSAY_TRY(assay_scales_find(c, x, scale, zero, assay_attr_i64(c->node, "axis", 1),
                              assay_attr_i64(c->node, "block_size", 0), &where));
  assay_quantizer_t q =
      assay_quantizer(c, type, quotient_format(c), assay_attr_i64(c->node, "saturate", 1) != 0);
  ASSAY_TRY(assay_eval_output(c, 0, assay_quant_type(c, type), x->rank, x->dims, &y));
  assay_quantize_tensor(&q, &where, x, scale, zero, y);
  return NULL;
}

static assay_status_t quantize_infer(assay_infer_t* c) {
  assay_type_t type = ASSAY_TYPE_UNDEFINED, zero = assay_infer_elem(c, 2);
  // A zero point of unknown type decides about the output's type, too.
  bool known = zero || !assay_infer_has(c, 2) || assay_attr_i64(c->node, "output_dtype", 0);
  if (known) ASSAY_TRY(quantized_type(c->node, zero, &type));
  ASSAY_TRY(assay_scales_check(c, 0, 1, assay_attr_i64(c->node, "axis", 1),
                               assay_attr_i64(c->node, "block_size", 0)));
  assay_shape_t shape = assay_infer_shape(c, 0);
  return assay_infer_set(c, 0, type, &shape);
}

// ---- DequantizeLinear --------------------------------------------------------------------------

// The type of the output: output_dtype, else the scale's.
static assay_status_t real_type(const assay_node_t* node, assay_type_t scale, assay_type_t* out) {
  int64_t asked = assay_attr_i64(node, "output_dtype", 0);
  assay_type_t type = asked > 0 && asked < ASSAY_TYPE_COUNT ? (assay_type_t)asked : scale;
  bool fits = assay_type_is_float(type) && assay_type_bits(type) >= 16;
  if (!fits || (asked != 0 && (int64_t)type != asked))
    return ASSAY_NODE_ERROR(
        node, ASSAY_INVALID_ARGUMENT,
        "scale is %s and attribute output_dtype %lld: the output must be float, "
        "float16 or bfloat16",
        assay_type_name(scale), (long long)asked);
  *out = type;
  return NULL;
}

static assay_status_t dequantize_eval(assay_eval_t* c) {
  assay_tensor_t *x = c->in[0], *scale = c->in[1], *zero = assay_eval_has(c, 2) ? c->in[2] : NULL,
                 *y;
  assay_type_t type;
  assay_scales_t where;
  ASSAY_TRY(want_numbers(c));
  ASSAY_TRY(real_type(c->node, scale->type, &type));
  ASSAY_TRY(assay_scales_find(c, x, scale, zero, assay_attr_i64(c->node, "axis", 1),
                              assay_attr_i64(c->node, "block_size", 0), &where));
  ASSAY_TRY(assay_eval_output(c, 0, type, x->rank, x->dims, &y));
  assay_dequantize_tensor(&where, x, scale, zero, y);
  return NULL;
}

static assay_status_t dequantize_infer(assay_infer_t* c) {
  assay_type_t type = ASSAY_TYPE_UNDEFINED, scale = assay_infer_elem(c, 1);
  if (scale || assay_attr_i64(c->node, "output_dtype", 0))
    ASSAY_TRY(real_type(c->node, scale, &type));
  ASSAY_TRY(assay_scales_check(c, 0, 1, assay_attr_i64(c->node, "axis", 1),
                               assay_attr_i64(c->node, "block_size", 0)));
  assay_shape_t shape = assay_infer_shape(c, 0);
  return assay_infer_set(c, 0, type, &shape);
}

// ---- DynamicQuantizeLinear
// ------------------------------------------------------------------------------ Source: ONNX
// DynamicQuantizeLinear-11. Every step is rounded to fp32 in all modes but truth, since the scale
// is itself an output that the rest is computed with. All zeros: the scale is 1, as in onnxruntime
// (ONNX does not say).

static assay_status_t dynamic_outputs(assay_eval_t* c, double scale, double zero) {
  if (assay_eval_wants(c, 1)) {
    ASSAY_TRY(assay_eval_output(c, 1, ASSAY_TYPE_FLOAT, 0, NULL, &c->out[1]));
    assay_f64(c->out[1])[0] = scale;
  }
  if (assay_eval_wants(c, 2)) {
    ASSAY_TRY(assay_eval_output(c, 2, ASSAY_TYPE_UINT8, 0, NULL, &c->out[2]));
    assay_i64(c->out[2])[0] = (int64_t)zero;
  }
  return NULL;
}

static assay_status_t dynamic_eval(assay_eval_t* c) {
  assay_tensor_t *x = c->in[0], *y;
  if (x->store != ASSAY_STORE_F64)
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT, "x is %s; it must be float",
                            assay_type_name(x->type));
  bool fp32 = c->mode != ASSAY_MODE_TRUTH;
  double min = 0, max = 0;
  for (int64_t i = 0; i < x->size; i++) {
    double v = assay_f64(x)[i];
    if (v < min) min = v;
    if (v > max) max = v;
  }
  double range = max == min ? 255 : assay_qround(fp32, max - min);
  double scale = assay_qround(fp32, range / 255);
  double zero = assay_qround(fp32, -assay_qround(fp32, min / scale));
  zero = nearbyint(fmin(fmax(zero, 0), 255));
  if (zero != zero) zero = 0;  // infinite elements
  assay_tensor_t* parts[2] = {0};
  assay_status_t st = assay_tensor_scalar_f64(ASSAY_TYPE_FLOAT, scale, &parts[0]);
  if (!st) st = assay_tensor_scalar_i64(ASSAY_TYPE_UINT8, (int64_t)zero, &parts[1]);
  if (!st)
    st = assay_eval_output(c, 0, assay_quant_type(c, ASSAY_TYPE_UINT8), x->rank, x->dims, &y);
  if (!st) {
    assay_quantizer_t q =
        assay_quantizer(c, ASSAY_TYPE_UINT8, fp32 ? ASSAY_FORMAT_FP32 : ASSAY_FORMAT_FP64, true);
    assay_quantize_tensor(&q, &(assay_scales_t){.axis = -1}, x, parts[0], parts[1], y);
    st = dynamic_outputs(c, scale, zero);
  }
  assay_tensor_release(parts[0]);
  assay_tensor_release(parts[1]);
  return st;
}

static assay_status_t dynamic_infer(assay_infer_t* c) {
  assay_shape_t shape = assay_infer_shape(c, 0), scalar = {.known = true};
  ASSAY_TRY(assay_infer_set(c, 0, ASSAY_TYPE_UINT8, &shape));
  ASSAY_TRY(assay_infer_set(c, 1, ASSAY_TYPE_FLOAT, &scalar));
  return assay_infer_set(c, 2, ASSAY_TYPE_UINT8, &scalar);
}

static void quantize_cost(const assay_eval_t* c, assay_cost_t* out) {
  assay_pointwise_cost(c, out);
  out->flops *= 2;
}

// ---- bounds -----------------------------------------------------------------------------------

typedef struct bound_job {
  const assay_rounding_t* rounding;
  const assay_quant_steps_t* steps;
  const assay_tensor_t *x, *scale, *zero, *y;
  const double* x_error[2];
  double* limits[2];
  double relative, tiny;  // of a dequantized number
} bound_job_t;

static void quantize_limits(const void* user, int64_t n, int64_t x, int64_t x_step, int64_t s,
                            int64_t s_step) {
  const bound_job_t* j = user;
  for (int64_t i = 0; i < n; i++, x += x_step, s += s_step) {
    const assay_quant_near_t scale = {assay_elem_f64(j->scale, s), 0};
    const assay_quant_near_t zero = {j->zero ? assay_elem_f64(j->zero, s) : 0, 0};
    for (int k = 0; k < 2; k++) {
      const assay_quant_near_t from = {assay_elem_f64(j->x, x),
                                       j->x_error[k] ? j->x_error[k][x] : 0};
      j->limits[k][x] = assay_steps_limit(j->steps, from, scale, zero, assay_elem_f64(j->y, x));
    }
  }
}

// Makes limits for output 0 and calls f for its elements with their scales.
static assay_status_t bound_scaled(assay_bound_t* c, const assay_quant_steps_t* steps,
                                   assay_scales_fn* f) {
  const assay_eval_t reader = assay_bound_as_eval(c);
  const assay_tensor_t* zero = assay_eval_has(&reader, 2) ? c->in[2] : NULL;
  assay_scales_t where;
  ASSAY_TRY(assay_bound_want_exact(c, 0));
  ASSAY_TRY(assay_scales_find(&reader, c->in[0], c->in[1], zero, assay_attr_i64(c->node, "axis", 1),
                              assay_attr_i64(c->node, "block_size", 0), &where));
  bound_job_t job = {.rounding = c->rounding,
                     .steps = steps,
                     .x = c->in[0],
                     .scale = c->in[1],
                     .zero = zero,
                     .y = c->out[0],
                     .x_error = {assay_bound_in(c, 0, false), assay_bound_in(c, 0, true)},
                     .tiny = assay_bound_tiny(c->rounding, c->rounding->compute)};
  // 32 bits are rounded to floats first.
  const bool wide = assay_type_bits(c->in[0]->type) > 16;
  job.relative = assay_bound_ops(c->rounding, wide ? 2 : 1).guaranteed;
  ASSAY_TRY(assay_bound_output(c, 0, &job.limits[0], &job.limits[1]));
  assay_scales_run(&where, c->in[0], f, &job);
  return NULL;
}

static assay_status_t quantize_bound(assay_bound_t* c) {
  if (!assay_bound_is_quantized(c, 0))
    return ASSAY_NODE_ERROR(c->node, ASSAY_UNSUPPORTED,
                            "what quantization does is not rounding where truth does not quantize");
  const bool saturate = assay_attr_i64(c->node, "saturate", 1) != 0;
  const assay_quant_steps_t steps = assay_steps_of(c->rounding, c->out[0]->type, saturate,
                                                   asked_quotient(c->node, c->in[1]->type));
  return bound_scaled(c, &steps, quantize_limits);
}

// (x - zero) * scale, or x * scale - zero * scale where the order is not documented. What came in
// counts in steps.
static void dequantize_limits(const void* user, int64_t n, int64_t x, int64_t x_step, int64_t s,
                              int64_t s_step) {
  const bound_job_t* j = user;
  for (int64_t i = 0; i < n; i++, x += x_step, s += s_step) {
    const double scale = fabs(assay_elem_f64(j->scale, s));
    const double zero = j->zero ? fabs(assay_elem_f64(j->zero, s)) * scale : 0;
    double size = fabs(assay_f64(j->y)[x]);
    if (!j->rounding->documented) size += 2 * (zero + size);
    for (int k = 0; k < 2; k++) {
      const double in = j->x_error[k] ? j->x_error[k][x] * scale : 0;
      j->limits[k][x] = in + j->relative * (size + in) + j->tiny;
    }
  }
}

static assay_status_t dequantize_bound(assay_bound_t* c) {
  return bound_scaled(c, NULL, dequantize_limits);
}

// Scale: a difference, a division (or a product). Zero point and elements: divided by that scale.
static assay_status_t dynamic_bound(assay_bound_t* c) {
  ASSAY_TRY(assay_bound_want_exact(c, SIZE_MAX));
  if (!assay_bound_is_quantized(c, 0) || c->n_out < 3) return NULL;
  const assay_tensor_t* x = c->in[0];
  double min = 0, max = 0;
  for (int64_t i = 0; i < x->size; i++) {
    min = assay_f64(x)[i] < min ? assay_f64(x)[i] : min;
    max = assay_f64(x)[i] > max ? assay_f64(x)[i] : max;
  }
  const assay_quant_steps_t steps =
      assay_steps_of(c->rounding, ASSAY_TYPE_UINT8, true, ASSAY_FORMAT_FP32);
  const double size = max == min ? 1 : (max - min) / 255;
  const double tiny = assay_bound_tiny(c->rounding, c->rounding->compute);
  const assay_quant_near_t scale = {size, max == min ? 0 : 4 * steps.u * size + tiny};
  const double zero = nearbyint(fmin(fmax(-min / size, 0), 255));
  const assay_quant_near_t zero_point = {
      zero, assay_steps_limit(&steps, (assay_quant_near_t){-min, 0}, scale,
                              (assay_quant_near_t){0, 0}, zero)};
  double* limits[3][2];
  for (size_t i = 0; i < 3; i++) {
    ASSAY_TRY(assay_bound_output(c, i, &limits[i][0], &limits[i][1]));
    for (int k = 0; k < 2 && i > 0 && limits[i][k]; k++)
      *limits[i][k] = i == 1 ? scale.error : zero_point.error;
  }
  for (int64_t i = 0; i < x->size; i++)
    limits[0][0][i] = limits[0][1][i] =
        assay_steps_limit(&steps, (assay_quant_near_t){assay_f64(x)[i], 0}, scale, zero_point,
                          (double)assay_i64(c->out[0])[i]);
  return NULL;
}

enum { QUANTIZES = ASSAY_OP_POINTWISE | ASSAY_OP_QUANTIZES };

// Later versions add types and attributes (axis in 13, saturate in 19, block_size and output_dtype
// in 21, precision in 23) whose defaults are what earlier ones do.
const assay_op_t assay_ops_quantize[] = {
    {.domain = "",
     .name = "QuantizeLinear",
     .since = 10,
     .flags = QUANTIZES | ASSAY_OP_KEEPS_TYPE,
     .discrete = 1,
     .infer = quantize_infer,
     .eval = quantize_eval,
     .bound = quantize_bound,
     .cost = quantize_cost},
    {.domain = "",
     .name = "DequantizeLinear",
     .since = 10,
     .flags = QUANTIZES,
     .infer = dequantize_infer,
     .eval = dequantize_eval,
     .bound = dequantize_bound,
     .cost = quantize_cost},
    {.domain = "",
     .name = "DynamicQuantizeLinear",
     .since = 11,
     .flags = ASSAY_OP_QUANTIZES | ASSAY_OP_KEEPS_TYPE,
     .discrete = 1 | 4,
     .infer = dynamic_infer,
     .eval = dynamic_eval,
     .bound = dynamic_bound,
     .cost = quantize_cost},
    {.domain = "com.microsoft",
     .name = "QuantizeLinear",
     .since = 1,
     .flags = QUANTIZES | ASSAY_OP_KEEPS_TYPE,
     .discrete = 1,
     .schema = "x:T1, y_scale:T1, y_zero_point?:T2 -> y:T2 | axis:i | "
               "T1=float16 float; T2=int8 uint8 int16 uint16 int4 uint4",
     .infer = quantize_infer,
     .eval = quantize_eval,
     .bound = quantize_bound,
     .cost = quantize_cost},
    {.domain = "com.microsoft",
     .name = "DequantizeLinear",
     .since = 1,
     .flags = QUANTIZES,
     .schema = "x:T1, x_scale:T2, x_zero_point?:T1 -> y:T2 | axis:i | "
               "T1=int8 uint8 int16 uint16 int32 int4 uint4; T2=float16 float",
     .infer = dequantize_infer,
     .eval = dequantize_eval,
     .bound = dequantize_bound,
     .cost = quantize_cost},
    {0},
};
