// The quantizers that TensorRT's exporters write (ModelOpt, Transformer Engine, Edge-LLM), in
// domain "trt" or in none: QuantizeLinear and DequantizeLinear of one type, and two that find the
// scales of blocks while running. Attention operators of that domain belong to the attention
// families.
//
// Some exporters declare float8 tensors as uint8, which then hold the bits: read and written so.
// Source: onnx-tensorrt 10 (importers of these names), TensorRT documentation of IQuantizeLayer and
// IDynamicQuantizeLayer, ModelOpt's compute_e8m0 for the rounding of MX scales.
#include <math.h>

#include "base/alloc.h"
#include "ops/families.h"
#include "ops/math/pointwise.h"
#include "ops/quant/quant_bound.h"

// What an operator of this file does.
typedef struct trt_kind {
  assay_type_t type;         // of the quantized tensor; UNDEFINED: as its inputs say
  assay_type_t scale_bits;   // what a uint8 scale holds the bits of; UNDEFINED: a number
  int64_t axis, block_size;  // defaults
} trt_kind_t;

static const trt_kind_t FP8 = {ASSAY_TYPE_FLOAT8E4M3FN, ASSAY_TYPE_UNDEFINED, 1, 0};
static const trt_kind_t INT4 = {ASSAY_TYPE_INT4, ASSAY_TYPE_UNDEFINED, 1, 0};
static const trt_kind_t MXFP8 = {ASSAY_TYPE_FLOAT8E4M3FN, ASSAY_TYPE_FLOAT8E8M0, -1, 32};
static const trt_kind_t PLAIN = {ASSAY_TYPE_UNDEFINED, ASSAY_TYPE_UNDEFINED, 1, 0};

static bool is_bits(assay_type_t type) {
  return type == ASSAY_TYPE_UINT8 || type == ASSAY_TYPE_INT8;
}

static assay_status_t find_scales(const assay_eval_t* c, const trt_kind_t* kind,
                                  const assay_tensor_t* x, const assay_tensor_t* scale,
                                  const assay_tensor_t* zero, assay_scales_t* out) {
  return assay_scales_find(c, x, scale, zero, assay_attr_i64(c->node, "axis", kind->axis),
                           assay_attr_i64(c->node, "block_size", kind->block_size), out);
}

// The type that a quantizer's elements have before they become bits: real numbers (quant.h) in
// place of bits or integers are float32.
static assay_type_t made_type(const assay_eval_t* c, assay_type_t type) {
  const assay_valtype_t* t = assay_eval_wants(c, 0) ? c->node->outputs[0]->type : NULL;
  bool bits = t && t->kind == ASSAY_KIND_TENSOR && is_bits(t->elem);
  return c->unquantized && (bits || !assay_type_is_float(type)) ? ASSAY_TYPE_FLOAT : type;
}

// A tensor of 8-bit floats, read from a tensor of their bits if it is one. Retained or new.
static assay_status_t from_bits(assay_tensor_t* t, assay_type_t type, assay_tensor_t** out) {
  if (!type || assay_type_is_integer(type) || t->store != ASSAY_STORE_I64 || !is_bits(t->type)) {
    *out = assay_tensor_retain(t);
    return NULL;
  }
  assay_tensor_t* r = NULL;
  ASSAY_TRY(assay_tensor_create(type, t->rank, t->dims, &r));
  double values[256];
  for (uint64_t i = 0; i < 256; i++) values[i] = assay_format_decode(assay_type_format(type), i);
  for (int64_t i = 0; i < t->size; i++)
    assay_f64(r)[i] = values[assay_as_u64(assay_i64(t)[i]) & 255];
  *out = r;
  return NULL;
}

// Makes output i of a tensor of 8-bit floats: its bits where the graph declares an integer type.
static assay_status_t set_output(assay_eval_t* c, size_t i, assay_tensor_t* t) {
  if (!assay_eval_wants(c, i)) return NULL;
  assay_type_t declared = assay_eval_out_type(c, i, t->type);
  if (t->store != ASSAY_STORE_F64 || !is_bits(declared) || assay_type_bits(t->type) > 8) {
    assay_eval_set(c, i, t);
    return NULL;
  }
  assay_tensor_t* bits;
  assay_format_t format = assay_type_format(t->type);
  ASSAY_TRY(assay_eval_output(c, i, declared, t->rank, t->dims, &bits));
  for (int64_t k = 0; k < t->size; k++)
    assay_i64(bits)[k] =
        (int64_t)assay_format_encode(format, assay_f64(t)[k], ASSAY_OVERFLOW_SATURATE);
  assay_wrap_n(declared, assay_i64(bits), t->size);
  return NULL;
}

static assay_status_t want_float(const assay_eval_t* c, size_t i) {
  if (c->in[i]->store == ASSAY_STORE_F64) return NULL;
  return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                          "input %zu is %s; it must be a float type", i,
                          assay_type_name(c->in[i]->type));
}

static assay_format_t quotient(const assay_eval_t* c, const assay_tensor_t* scale) {
  bool exact = c->mode == ASSAY_MODE_TRUTH || assay_type_bits(scale->type) <= 8;
  return exact ? ASSAY_FORMAT_FP64 : assay_type_format(scale->type);
}

// ---- quantizers with given scales -----------------------------------------------------------

static assay_status_t quantize(assay_eval_t* c, const trt_kind_t* kind) {
  assay_tensor_t *x = c->in[0], *zero = assay_eval_has(c, 2) ? c->in[2] : NULL;
  assay_tensor_t *scale = NULL, *y = NULL;
  assay_scales_t where;
  ASSAY_TRY(want_float(c, 0));
  ASSAY_TRY(find_scales(c, kind, x, c->in[1], zero, &where));
  assay_type_t type = kind->type ? kind->type : zero ? zero->type : ASSAY_TYPE_INT8;
  assay_status_t st = from_bits(c->in[1], kind->scale_bits, &scale);
  if (!st) st = assay_tensor_create(made_type(c, type), x->rank, x->dims, &y);
  if (!st) {
    // A zero point is there for its type; where it is of the bits of floats, it is zero.
    const assay_tensor_t* shift =
        zero && is_bits(zero->type) && assay_type_is_float(type) ? NULL : zero;
    assay_quantizer_t q = assay_quantizer(c, type, quotient(c, scale), true);
    assay_quantize_tensor(&q, &where, x, scale, shift, y);
    st = set_output(c, 0, y);
  }
  if (!st && assay_eval_wants(c, 1)) assay_eval_set(c, 1, c->in[1]);  // the scale that was given
  assay_tensor_release(scale);
  assay_tensor_release(y);
  return st;
}

// What a dequantizer makes if the file does not say: the scale's type, else float.
static assay_type_t real_type(assay_type_t scale) {
  return assay_type_is_float(scale) && assay_type_bits(scale) >= 16 ? scale : ASSAY_TYPE_FLOAT;
}

static assay_status_t dequantize(assay_eval_t* c, const trt_kind_t* kind) {
  assay_tensor_t *x = NULL, *scale = NULL, *zero = NULL, *y = NULL;
  assay_scales_t where;
  for (size_t i = 0; i < c->n_in; i++)
    if (c->in[i] && c->in[i]->store > ASSAY_STORE_I64) return want_float(c, i);
  ASSAY_TRY(
      find_scales(c, kind, c->in[0], c->in[1], assay_eval_has(c, 2) ? c->in[2] : NULL, &where));
  assay_type_t type = assay_eval_out_type(c, 0, real_type(c->in[1]->type));
  assay_status_t st = from_bits(c->in[0], kind->type, &x);
  if (!st) st = from_bits(c->in[1], kind->scale_bits, &scale);
  if (!st && assay_eval_has(c, 2)) st = from_bits(c->in[2], kind->type, &zero);
  if (!st) st = assay_eval_output(c, 0, type, x->rank, x->dims, &y);
  if (!st) assay_dequantize_tensor(&where, x, scale, zero, y);
  assay_tensor_release(x);
  assay_tensor_release(scale);
  assay_tensor_release(zero);
  return st;
}

static assay_status_t fp8_quantize_eval(assay_eval_t* c) { return quantize(c, &FP8); }
static assay_status_t fp8_dequantize_eval(assay_eval_t* c) { return dequantize(c, &FP8); }
static assay_status_t int4_quantize_eval(assay_eval_t* c) { return quantize(c, &INT4); }
static assay_status_t int4_dequantize_eval(assay_eval_t* c) { return dequantize(c, &INT4); }
static assay_status_t mxfp8_dequantize_eval(assay_eval_t* c) { return dequantize(c, &MXFP8); }
static assay_status_t plain_quantize_eval(assay_eval_t* c) { return quantize(c, &PLAIN); }
static assay_status_t plain_dequantize_eval(assay_eval_t* c) { return dequantize(c, &PLAIN); }

// ---- quantizers that find scales ------------------------------------------------------------

// The largest magnitude of each block of an axis; scale has the shape of the blocks.
static void block_maxima(const assay_tensor_t* x, int axis, int64_t block, assay_tensor_t* scale) {
  int64_t outer = assay_dims_product(x->dims, 0, axis), d = x->dims[axis];
  int64_t inner = assay_dims_product(x->dims, axis + 1, x->rank), blocks = scale->dims[axis];
  bool parallel = x->size > 100000;
  if (!scale->size) return;
#pragma omp parallel for schedule(static) if (parallel)
  for (int64_t o = 0; o < outer; o++) {
    double* s = assay_f64(scale) + o * blocks * inner;
    for (int64_t i = 0; i < blocks * inner; i++) s[i] = 0;
    for (int64_t i = 0; i < d; i++) {
      const double* row = assay_f64(x) + (o * d + i) * inner;
      double* m = s + i / block * inner;
      for (int64_t k = 0; k < inner; k++) {
        double v = fabs(row[k]);
        if (v > m[k]) m[k] = v;
      }
    }
  }
}

// The scales of blocks: as stored, and times the global one, as elements are divided by them.
typedef struct dynamic_scales {
  double global;
  int axis;
  int64_t block;
  double* exact;  // before they are rounded
  assay_tensor_t *scale, *full;
} dynamic_scales_t;

static void dynamic_scales_deinit(dynamic_scales_t* d) {
  assay_free(d->exact);
  assay_tensor_release(d->scale);
  assay_tensor_release(d->full);
}

static double rounded_scale(assay_type_t type, double s) {
  return type == ASSAY_TYPE_FLOAT8E8M0
             ? assay_format_round_e8m0(s, ASSAY_E8M0_UP, ASSAY_OVERFLOW_SATURATE)
             : assay_format_round(assay_type_format(type), s, ASSAY_OVERFLOW_SATURATE);
}

// Finds them; d->global is set. *d is to be deinitialized also on failure.
static assay_status_t dynamic_scales(const assay_eval_t* c, assay_type_t type,
                                     assay_type_t scale_type, int64_t default_block,
                                     dynamic_scales_t* d) {
  const assay_tensor_t* x = c->in[0];
  int64_t dims[ASSAY_MAX_RANK];
  ASSAY_TRY(want_float(c, 0));
  ASSAY_TRY(
      assay_eval_axis(c, "attribute axis", assay_attr_i64(c->node, "axis", -1), x->rank, &d->axis));
  const int64_t block = d->block = assay_attr_i64(c->node, "block_size", default_block);
  if (block <= 0)
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                            "attribute block_size is %lld; it must be positive", (long long)block);
  for (int i = 0; i < x->rank; i++) dims[i] = x->dims[i];
  dims[d->axis] = dims[d->axis] / block + (dims[d->axis] % block != 0);
  ASSAY_TRY(assay_tensor_create(scale_type, x->rank, dims, &d->scale));
  ASSAY_TRY(assay_tensor_create(ASSAY_TYPE_DOUBLE, x->rank, dims, &d->full));
  ASSAY_TRY(assay_new_array((size_t)d->scale->size, sizeof *d->exact, &d->exact));
  block_maxima(x, d->axis, block, d->scale);
  const double largest = assay_format_info(assay_type_format(type))->max;
  for (int64_t i = 0; i < d->scale->size; i++) {
    d->exact[i] = assay_f64(d->scale)[i] / largest / d->global;
    const double s = rounded_scale(scale_type, d->exact[i]);
    assay_f64(d->scale)[i] = s;
    // A block whose scale is 0 is all zeros, or too small to be anything else.
    assay_f64(d->full)[i] = s != 0 ? s * d->global : c->unquantized ? 0 : (double)INFINITY;
  }
  return NULL;
}

static assay_status_t dynamic_outputs(assay_eval_t* c, assay_type_t type,
                                      const dynamic_scales_t* d) {
  assay_tensor_t *x = c->in[0], *y = NULL;
  ASSAY_TRY(set_output(c, 1, d->scale));
  ASSAY_TRY(assay_tensor_create(made_type(c, type), x->rank, x->dims, &y));
  const assay_quantizer_t q = assay_quantizer(c, type, ASSAY_FORMAT_FP64, true);
  const assay_scales_t where = {d->full->size == 1 ? -1 : d->axis, d->block};
  assay_quantize_tensor(&q, &where, x, d->full, NULL, y);
  assay_status_t st = set_output(c, 0, y);
  assay_tensor_release(y);
  return st;
}

// y = x in blocks of float type `type`, with a scale for each block; output 0 and output 1.
//   global   FP4: the second scale, by which the blocks' are divided before they become
//   float8e4m3fn MXFP8    scales are the next powers of two, float8e8m0
static assay_status_t dynamic_quantize(assay_eval_t* c, assay_type_t type, assay_type_t scale_type,
                                       double global, int64_t default_block) {
  dynamic_scales_t d = {.global = global};
  assay_status_t st = dynamic_scales(c, type, scale_type, default_block, &d);
  if (!st) st = dynamic_outputs(c, type, &d);
  dynamic_scales_deinit(&d);
  return st;
}

static assay_type_t fp4_scale_type(const assay_node_t* node) {
  int64_t type = assay_attr_i64(node, "scale_type", ASSAY_TYPE_FLOAT8E4M3FN);
  bool fits = type > 0 && type < ASSAY_TYPE_COUNT && assay_type_is_float((assay_type_t)type);
  return fits ? (assay_type_t)type : ASSAY_TYPE_FLOAT8E4M3FN;
}

static assay_status_t fp4_dynamic_eval(assay_eval_t* c) {
  double global = 1;
  if (assay_eval_has(c, 1)) {
    if (c->in[1]->size != 1 || c->in[1]->store != ASSAY_STORE_F64)
      return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                              "scale is %s%s; it must be one floating point number",
                              assay_type_name(c->in[1]->type), ASSAY_DIMS_TEXT(c->in[1]));
    global = assay_f64(c->in[1])[0];
  }
  return dynamic_quantize(c, ASSAY_TYPE_FLOAT4E2M1, fp4_scale_type(c->node), global, 16);
}

static assay_status_t mxfp8_dynamic_eval(assay_eval_t* c) {
  return dynamic_quantize(c, ASSAY_TYPE_FLOAT8E4M3FN, ASSAY_TYPE_FLOAT8E8M0, 1, 32);
}

// Two outputs: scales are found. One: they are given.
static assay_status_t mxfp8_quantize_eval(assay_eval_t* c) {
  return assay_eval_has(c, 1) ? quantize(c, &MXFP8) : mxfp8_dynamic_eval(c);
}

// ---- inference ------------------------------------------------------------------------------

// The type of an output of 8-bit floats: an integer type where the file declares one for the bits.
static assay_type_t declared_bits(const assay_infer_t* c, size_t output, assay_type_t type) {
  const assay_value_t* v = assay_infer_wants(c, output) ? c->node->outputs[output] : NULL;
  const assay_valtype_t* t = v ? v->declared : NULL;
  bool bits = t && t->kind == ASSAY_KIND_TENSOR && is_bits(t->elem) && assay_type_is_float(type);
  return bits ? t->elem : type;
}

static assay_status_t quantize_infer(assay_infer_t* c, const trt_kind_t* kind) {
  assay_shape_t shape = assay_infer_shape(c, 0);
  assay_type_t type = kind->type;
  if (!type) type = assay_infer_has(c, 2) ? assay_infer_elem(c, 2) : ASSAY_TYPE_INT8;
  ASSAY_TRY(assay_scales_check(c, 0, 1, assay_attr_i64(c->node, "axis", kind->axis),
                               assay_attr_i64(c->node, "block_size", kind->block_size)));
  return assay_infer_set(c, 0, declared_bits(c, 0, type), &shape);
}

static assay_status_t fp8_quantize_infer(assay_infer_t* c) { return quantize_infer(c, &FP8); }
static assay_status_t int4_quantize_infer(assay_infer_t* c) { return quantize_infer(c, &INT4); }
static assay_status_t plain_quantize_infer(assay_infer_t* c) { return quantize_infer(c, &PLAIN); }

// The type: as the file declares, else the scale's, else float.
static assay_status_t dequantize_infer(assay_infer_t* c) {
  assay_shape_t shape = assay_infer_shape(c, 0);
  const assay_valtype_t* t = assay_infer_wants(c, 0) ? c->node->outputs[0]->declared : NULL;
  assay_type_t declared = t && t->kind == ASSAY_KIND_TENSOR ? t->elem : ASSAY_TYPE_UNDEFINED;
  assay_type_t scale = assay_infer_elem(c, 1), type = ASSAY_TYPE_UNDEFINED;
  if (assay_type_is_float(declared))
    type = declared;
  else if (scale)
    type = real_type(scale);
  return assay_infer_set(c, 0, type, &shape);
}

static assay_status_t dynamic_infer(assay_infer_t* c, assay_type_t type, assay_type_t scale_type,
                                    int64_t default_block) {
  assay_shape_t shape = assay_infer_shape(c, 0), blocks = shape;
  int64_t block = assay_attr_i64(c->node, "block_size", default_block);
  if (shape.known) {
    int axis;
    ASSAY_TRY(assay_infer_axis(c, "attribute axis", assay_attr_i64(c->node, "axis", -1), shape.rank,
                               &axis));
    blocks.dims[axis] =
        block > 0 ? assay_dim_ceildiv(c->dims, shape.dims[axis], assay_dim_const(c->dims, block))
                  : NULL;
  }
  ASSAY_TRY(assay_infer_set(c, 0, declared_bits(c, 0, type), &shape));
  return assay_infer_set(c, 1, declared_bits(c, 1, scale_type), &blocks);
}

static assay_status_t fp4_dynamic_infer(assay_infer_t* c) {
  return dynamic_infer(c, ASSAY_TYPE_FLOAT4E2M1, fp4_scale_type(c->node), 16);
}

static assay_status_t mxfp8_dynamic_infer(assay_infer_t* c) {
  return dynamic_infer(c, ASSAY_TYPE_FLOAT8E4M3FN, ASSAY_TYPE_FLOAT8E8M0, 32);
}

static assay_status_t mxfp8_quantize_infer(assay_infer_t* c) {
  if (!assay_infer_has(c, 1)) return mxfp8_dynamic_infer(c);
  assay_shape_t scale = assay_infer_shape(c, 1);
  ASSAY_TRY(quantize_infer(c, &MXFP8));
  return assay_infer_set(c, 1, assay_infer_elem(c, 1), &scale);
}

static void quantize_cost(const assay_eval_t* c, assay_cost_t* out) {
  assay_pointwise_cost(c, out);
  out->flops *= 2;
}

// ---- bounds -----------------------------------------------------------------------------------

// The steps between two values of an output: of the bits where it holds those of floats.
static double steps_between(const assay_tensor_t* y, assay_type_t type, double a, double b) {
  if (y->store == ASSAY_STORE_F64 || !assay_type_is_float(type)) return fabs(a - b);
  const assay_format_t f = assay_type_format(type);
  const int64_t from = (int64_t)assay_format_encode(f, a, ASSAY_OVERFLOW_SATURATE);
  const int64_t to = (int64_t)assay_format_encode(f, b, ASSAY_OVERFLOW_SATURATE);
  return fabs((double)(assay_type_wrap(y->type, from) - assay_type_wrap(y->type, to)));
}

typedef struct trt_bound {
  assay_quant_steps_t steps;
  assay_type_t type;
  const assay_tensor_t *x, *scale, *shift, *y;
  const double* scale_error;  // NULL: exact
  double* limits[2];
  double relative, tiny;  // of a dequantized number
  bool documented;
} trt_bound_t;

// Truth is made here again, since the output may hold bits.
static void quantize_limits(const void* user, int64_t n, int64_t x, int64_t x_step, int64_t s,
                            int64_t s_step) {
  const trt_bound_t* b = user;
  const assay_quantizer_t* q = &b->steps.quantizer;
  for (int64_t i = 0; i < n; i++, x += x_step, s += s_step) {
    const assay_quant_near_t scale = {assay_elem_f64(b->scale, s),
                                      b->scale_error ? b->scale_error[s] : 0};
    const assay_quant_near_t zero = {b->shift ? assay_elem_f64(b->shift, s) : 0, 0};
    const double v = assay_elem_f64(b->x, x);
    const double y = assay_quantize(q, v, scale.value, zero.value);
    const double e = assay_steps_limit(&b->steps, (assay_quant_near_t){v, 0}, scale, zero, y);
    double steps = e;
    if (e > 0 && isfinite(e))
      steps = fmax(steps_between(b->y, b->type, y, y + e), steps_between(b->y, b->type, y, y - e));
    b->limits[0][x] = b->limits[1][x] = steps;
  }
}

static assay_status_t quantize_bound(assay_bound_t* c, const trt_kind_t* kind) {
  ASSAY_TRY(assay_bound_want_exact(c, SIZE_MAX));
  if (!assay_bound_is_quantized(c, 0)) return NULL;
  const assay_eval_t reader = assay_bound_as_eval(c);
  const assay_tensor_t* zero = assay_eval_has(&reader, 2) ? c->in[2] : NULL;
  trt_bound_t b = {.x = c->in[0], .y = c->out[0]};
  b.type = kind->type ? kind->type : zero ? zero->type : ASSAY_TYPE_INT8;
  b.shift = zero && is_bits(zero->type) && assay_type_is_float(b.type) ? NULL : zero;
  assay_scales_t where;
  assay_tensor_t* scale = NULL;
  ASSAY_TRY(find_scales(&reader, kind, b.x, c->in[1], zero, &where));
  ASSAY_TRY(assay_bound_output(c, 0, &b.limits[0], &b.limits[1]));
  ASSAY_TRY(from_bits(c->in[1], kind->scale_bits, &scale));
  b.scale = scale;
  const bool exact = assay_type_bits(scale->type) <= 8;
  b.steps = assay_steps_of(c->rounding, b.type, true,
                           exact ? ASSAY_FORMAT_NONE : assay_type_format(scale->type));
  assay_scales_run(&where, b.x, quantize_limits, &b);
  assay_tensor_release(scale);
  return NULL;
}

static void dequantize_limits(const void* user, int64_t n, int64_t x, int64_t x_step, int64_t s,
                              int64_t s_step) {
  const trt_bound_t* b = user;
  for (int64_t i = 0; i < n; i++, x += x_step, s += s_step) {
    const double scale = fabs(assay_elem_f64(b->scale, s));
    const double zero = b->shift ? fabs(assay_elem_f64(b->shift, s)) * scale : 0;
    const double size = fabs(assay_f64(b->y)[x]) + (b->documented ? 0 : 2 * zero);
    b->limits[0][x] = b->limits[1][x] = b->relative * size + b->tiny;
  }
}

static assay_status_t dequantize_bound(assay_bound_t* c, const trt_kind_t* kind) {
  ASSAY_TRY(assay_bound_want_exact(c, SIZE_MAX));
  const assay_eval_t reader = assay_bound_as_eval(c);
  trt_bound_t b = {.y = c->out[0],
                   .documented = c->rounding->documented,
                   .relative = assay_bound_ops(c->rounding, 2).guaranteed,
                   .tiny = assay_bound_tiny(c->rounding, c->rounding->compute)};
  assay_tensor_t *scale = NULL, *zero = NULL;
  assay_scales_t where;
  ASSAY_TRY(find_scales(&reader, kind, c->in[0], c->in[1],
                        assay_eval_has(&reader, 2) ? c->in[2] : NULL, &where));
  ASSAY_TRY(assay_bound_output(c, 0, &b.limits[0], &b.limits[1]));
  assay_status_t st = from_bits(c->in[1], kind->scale_bits, &scale);
  if (!st && assay_eval_has(&reader, 2)) st = from_bits(c->in[2], kind->type, &zero);
  b.scale = scale, b.shift = zero;
  if (!st && b.limits[0]) assay_scales_run(&where, c->in[0], dequantize_limits, &b);
  assay_tensor_release(scale);
  assay_tensor_release(zero);
  return st;
}

// A block's scale is rounded to few bits: within some u of a tie it may be either neighbour, and
// then the block's elements follow it.
static void scale_limits(const assay_bound_t* c, const dynamic_scales_t* d, double u,
                         double* full_error, double* const limits[2]) {
  for (int64_t i = 0; i < d->scale->size; i++) {
    const double exact = d->exact[i], now = assay_f64(d->scale)[i];
    const double low = rounded_scale(d->scale->type, exact * (1 - 4 * u));
    const double high = rounded_scale(d->scale->type, exact * (1 + 4 * u));
    const double e = fmax(fabs(high - now), fabs(low - now));
    full_error[i] = e * d->global * (1 + 2 * u) + 2 * u * now * d->global;
    if (now == 0 && e > 0)
      full_error[i] = (double)INFINITY;  // elements that were divided by nothing
    if (!limits[0]) continue;
    limits[0][i] = limits[1][i] = fmax(steps_between(c->out[1], d->scale->type, now, high),
                                       steps_between(c->out[1], d->scale->type, now, low));
  }
}

static assay_status_t dynamic_limits(assay_bound_t* c, assay_type_t type, dynamic_scales_t* d) {
  trt_bound_t b = {.x = c->in[0], .y = c->out[0], .type = type, .scale = d->full};
  double *error = NULL, *limits[2];
  b.steps = assay_steps_of(c->rounding, type, true, ASSAY_FORMAT_NONE);
  ASSAY_TRY(assay_bound_output(c, 1, &limits[0], &limits[1]));
  ASSAY_TRY(assay_new_array((size_t)d->full->size, sizeof *error, &error));
  scale_limits(c, d, b.steps.u, error, limits);
  b.scale_error = error;
  assay_status_t st = NULL;
  if (assay_bound_is_quantized(c, 0)) {
    st = assay_bound_output(c, 0, &b.limits[0], &b.limits[1]);
    const assay_scales_t where = {d->full->size == 1 ? -1 : d->axis, d->block};
    if (!st) assay_scales_run(&where, b.x, quantize_limits, &b);
  }
  assay_free(error);
  return st;
}

static assay_status_t dynamic_bound(assay_bound_t* c, assay_type_t type, assay_type_t scale_type,
                                    double global, int64_t default_block) {
  ASSAY_TRY(assay_bound_want_exact(c, SIZE_MAX));
  const assay_eval_t reader = assay_bound_as_eval(c);
  dynamic_scales_t d = {.global = global};
  assay_status_t st = dynamic_scales(&reader, type, scale_type, default_block, &d);
  if (!st) st = dynamic_limits(c, type, &d);
  dynamic_scales_deinit(&d);
  return st;
}

static assay_status_t fp8_quantize_bound(assay_bound_t* c) { return quantize_bound(c, &FP8); }
static assay_status_t fp8_dequantize_bound(assay_bound_t* c) { return dequantize_bound(c, &FP8); }
static assay_status_t int4_quantize_bound(assay_bound_t* c) { return quantize_bound(c, &INT4); }
static assay_status_t int4_dequantize_bound(assay_bound_t* c) { return dequantize_bound(c, &INT4); }
static assay_status_t mxfp8_dequantize_bound(assay_bound_t* c) {
  return dequantize_bound(c, &MXFP8);
}
static assay_status_t plain_quantize_bound(assay_bound_t* c) { return quantize_bound(c, &PLAIN); }
static assay_status_t plain_dequantize_bound(assay_bound_t* c) {
  return dequantize_bound(c, &PLAIN);
}
static assay_status_t mxfp8_dynamic_bound(assay_bound_t* c) {
  return dynamic_bound(c, ASSAY_TYPE_FLOAT8E4M3FN, ASSAY_TYPE_FLOAT8E8M0, 1, 32);
}
static assay_status_t fp4_dynamic_bound(assay_bound_t* c) {
  const double global = c->n_in > 1 && c->in[1] ? assay_f64(c->in[1])[0] : 1;
  return dynamic_bound(c, ASSAY_TYPE_FLOAT4E2M1, fp4_scale_type(c->node), global, 16);
}
static assay_status_t mxfp8_quantize_bound(assay_bound_t* c) {
  return c->n_in > 1 && c->in[1] ? quantize_bound(c, &MXFP8) : mxfp8_dynamic_bound(c);
}

// Attributes that exporters write beside these are for their own passes.
#define ATTRS "axis:i, block_size:i, output_dtype:i, saturate:i"
#define REAL "float float16 bfloat16 double"
#define SMALL "float8e4m3fn float8e5m2 float4e2m1 int4 uint4 int8 uint8 float8e8m0"

static const char quantize_schema[] =
    "x:T, scale:S, zero_point?:Z -> y:Z | " ATTRS " | T=" REAL "; S=" REAL " " SMALL "; Z=" SMALL;
static const char dequantize_schema[] =
    "x:Z, scale:S, zero_point?:Z -> y:T | " ATTRS " | T=" REAL "; S=" REAL " " SMALL "; Z=" SMALL;
static const char mxfp8_quantize_schema[] =
    "x:T, scale?:S -> y:Z, y_scale?:S | " ATTRS " | T=" REAL "; S=float8e8m0 uint8; Z=" SMALL;
static const char dynamic_schema[] =
    "x:T, scale?:U -> y:Z, y_scale:S | axis:i, block_size:i, scale_type:i, output_dtype:i | T=" REAL
    "; U=" REAL "; S=" SMALL "; Z=" SMALL;

#define Q(DOMAIN, NAME, SCHEMA, INFER, EVAL)                                                       \
  {                                                                                                \
    .domain = DOMAIN, .name = NAME, .since = 1, .schema = SCHEMA, .infer = INFER,                  \
    .eval = EVAL##_eval, .bound = EVAL##_bound, .flags = ASSAY_OP_QUANTIZES | ASSAY_OP_KEEPS_TYPE, \
    .discrete = 1, .cost = quantize_cost                                                           \
  }
#define DQ(DOMAIN, NAME, EVAL)                                               \
  {                                                                          \
    .domain = DOMAIN, .name = NAME, .since = 1, .schema = dequantize_schema, \
    .infer = dequantize_infer, .eval = EVAL##_eval, .bound = EVAL##_bound,   \
    .flags = ASSAY_OP_QUANTIZES, .cost = quantize_cost                       \
  }
#define OF_DOMAIN(D)                                                                        \
  Q(D, "TRT_FP8QuantizeLinear", quantize_schema, fp8_quantize_infer, fp8_quantize),         \
      DQ(D, "TRT_FP8DequantizeLinear", fp8_dequantize),                                     \
      Q(D, "TRT_INT4QuantizeLinear", quantize_schema, int4_quantize_infer, int4_quantize),  \
      DQ(D, "TRT_INT4DequantizeLinear", int4_dequantize),                                   \
      Q(D, "TRT_MXFP8QuantizeLinear", mxfp8_quantize_schema, mxfp8_quantize_infer,          \
        mxfp8_quantize),                                                                    \
      DQ(D, "TRT_MXFP8DequantizeLinear", mxfp8_dequantize),                                 \
      Q(D, "TRT_MXFP8DynamicQuantize", dynamic_schema, mxfp8_dynamic_infer, mxfp8_dynamic), \
      Q(D, "TRT_FP4DynamicQuantize", dynamic_schema, fp4_dynamic_infer, fp4_dynamic)

const assay_op_t assay_ops_trt[] = {
    OF_DOMAIN("trt"),
    OF_DOMAIN(""),
    Q("trt", "QuantizeLinear", quantize_schema, plain_quantize_infer, plain_quantize),
    DQ("trt", "DequantizeLinear", plain_dequantize),
    {0},
};
