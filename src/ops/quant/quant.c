// Linear quantization: q = round(x / scale) + zero, x = (q - zero) * scale.
#include "ops/quant/quant.h"

#include <math.h>
#include <string.h>

#include "ops/math/pointwise.h"

// ---- truth 'unquantized' -----------------------------------------------------------------------

bool assay_quant_is_real(const assay_value_t* v, const assay_tensor_t* t) {
  return v && v->type && v->type->kind == ASSAY_KIND_TENSOR && v->type->elem &&
         assay_type_store(v->type->elem) == ASSAY_STORE_I64 && t && t->kind == ASSAY_KIND_TENSOR &&
         t->store == ASSAY_STORE_F64;
}

assay_status_t assay_quant_settle(const assay_tensor_t* t, assay_type_t type,
                                  assay_tensor_t** out) {
  assay_tensor_t* y = NULL;
  ASSAY_TRY(assay_tensor_create(type, t->rank, t->dims, &y));
  for (int64_t i = 0; i < t->size; i++) {
    const double x = rint(assay_f64(t)[i]);
    assay_i64(y)[i] = type == ASSAY_TYPE_BOOL ? x != 0 : assay_type_saturate(type, x);
  }
  *out = y;
  return NULL;
}

bool assay_quant_cuts_at_zero(const assay_node_t* node) {
  const assay_value_t* v = node->n_inputs > 2 ? node->inputs[2] : NULL;
  const assay_tensor_t* zero = v ? v->constant : NULL;
  assay_tensor_t* wide = NULL;
  if (!v) {  // uint8 from 0 on, or what the attribute says
    for (size_t i = 0; i < node->n_attrs; i++)
      if (strcmp(node->attrs[i].name, "output_dtype") == 0) return false;
    return true;
  }
  if (!zero || zero->kind != ASSAY_KIND_TENSOR || !assay_type_is_integer(zero->type)) return false;
  assay_status_t st = assay_tensor_widen((assay_tensor_t*)zero, &wide);
  if (st) return assay_status_free(st), false;
  const int64_t min = assay_type_saturate(zero->type, -(double)INFINITY);
  bool cuts = true;
  for (int64_t i = 0; i < wide->size; i++) cuts &= assay_i64(wide)[i] == min;
  assay_tensor_release(wide);
  return cuts;
}

assay_type_t assay_quant_type(const assay_eval_t* c, assay_type_t type) {
  return c->unquantized && !assay_type_is_float(type) ? ASSAY_TYPE_FLOAT : type;
}

// ---- one value ---------------------------------------------------------------------------------

assay_quantizer_t assay_quantizer(const assay_eval_t* c, assay_type_t type, assay_format_t quotient,
                                  bool saturate) {
  assay_quantizer_t q = {.type = type, .quotient = quotient, .real = c->unquantized};
  if (assay_type_is_float(type)) {
    bool has_nan = assay_format_info(assay_type_format(type))->has_nan;
    q.overflow = saturate || !has_nan ? ASSAY_OVERFLOW_SATURATE : ASSAY_OVERFLOW_IEEE;
  } else {
    q.min = (double)assay_type_saturate(type, -(double)INFINITY);
    q.max = (double)assay_type_saturate(type, (double)INFINITY);
  }
  return q;
}

static double rounded(assay_format_t format, double x) {
  if (format == ASSAY_FORMAT_FP64) return x;
  if (format == ASSAY_FORMAT_FP32) return (double)(float)x;
  return assay_format_round(format, x, ASSAY_OVERFLOW_IEEE);
}

// Rounds v, ties to even, and moves it into the range of an integer type. The constant puts the
// last bit that is kept at the ones, so that adding it rounds; no range of a quantized type comes
// near the limit.
static inline double to_integer(const assay_quantizer_t* q, double v, double zero) {
  enum { LIMIT = 1 << 30 };
  v = v < -LIMIT ? -LIMIT : v > LIMIT ? LIMIT : v;
  v = (v + 0x1.8p52) - 0x1.8p52 + zero;
  return v < q->min ? q->min : v > q->max ? q->max : v;
}

double assay_quant_real_zero(double scale, double zero) {
  static const double COARSE = 1e6;
  return fabs(scale) > COARSE ? 0 : zero;
}

// Without rounding, and without saturation but for what stands for a Relu. A scale of 0 says that
// all numbers were 0.
static double unrounded(const assay_quantizer_t* q, double x, double scale, double zero) {
  if (scale == 0) return zero;
  const double from = assay_quant_real_zero(scale, zero), v = x / scale + from;
  return !assay_type_is_float(q->type) && zero == q->min && v < from ? from : v;
}

double assay_quantize(const assay_quantizer_t* q, double x, double scale, double zero) {
  if (q->real) return unrounded(q, x, scale, zero);
  assay_format_t f = q->quotient;
  double v = rounded(f, rounded(f, x) / rounded(f, scale));
  if (assay_type_is_float(q->type))
    return assay_format_round(assay_type_format(q->type), v + zero, q->overflow);
  if (v != v) return fmin(fmax(0, q->min), q->max);
  return to_integer(q, v, zero);
}

// ---- where scales lie --------------------------------------------------------------------------

// Axis 1 is the attribute's default and means nothing for vectors: they have one axis.
static int64_t axis_for(int64_t axis, int rank) { return rank == 1 ? 0 : axis; }

assay_status_t assay_scales_find(const assay_eval_t* c, const assay_tensor_t* x,
                                 const assay_tensor_t* scale, const assay_tensor_t* zero,
                                 int64_t axis, int64_t block_size, assay_scales_t* out) {
  if (scale->store > ASSAY_STORE_I64 || (zero && zero->store > ASSAY_STORE_I64))
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT, "scale is %s; it must be a number",
                            assay_type_name(scale->type));
  if (zero && zero->size != scale->size)
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                            "scale has shape %s and zero point %s; they must be the same",
                            ASSAY_DIMS_TEXT(scale), ASSAY_DIMS_TEXT(zero));
  if (block_size < 0)
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                            "attribute block_size is %lld; it must not be negative",
                            (long long)block_size);
  *out = (assay_scales_t){.axis = -1};
  if (scale->size == 1) return NULL;
  ASSAY_TRY(assay_eval_axis(c, "attribute axis", axis_for(axis, x->rank), x->rank, &out->axis));
  int64_t d = x->dims[out->axis];
  out->block_size = block_size;
  bool fits = block_size > 0 ? scale->rank == x->rank : scale->rank == 1 && scale->dims[0] == d;
  for (int i = 0; fits && block_size > 0 && i < x->rank; i++) {
    int64_t want = i == out->axis ? d / block_size + (d % block_size != 0) : x->dims[i];
    fits = scale->dims[i] == want;
  }
  if (fits) return NULL;
  return ASSAY_NODE_ERROR(
      c->node, ASSAY_INVALID_ARGUMENT,
      "scale has shape %s for an input of shape %s; with axis %d and block_size "
      "%lld it must %s",
      ASSAY_DIMS_TEXT(scale), ASSAY_DIMS_TEXT(x), out->axis, (long long)block_size,
      block_size ? "have the input's shape, with that axis divided by block_size "
                   "(rounded up)"
                 : "be a scalar or have one element for each index of the axis");
}

assay_status_t assay_scales_check(const assay_infer_t* c, size_t x, size_t scale, int64_t axis,
                                  int64_t block_size) {
  assay_shape_t sx = assay_infer_shape(c, x), ss = assay_infer_shape(c, scale);
  if (!sx.known || !ss.known || ss.rank == 0) return NULL;
  bool single = true;
  for (int i = 0; i < ss.rank; i++) {
    int64_t d;
    if (!assay_dim_value(ss.dims[i], &d)) return NULL;  // perhaps one element: known when running
    single = single && d == 1;
  }
  if (single) return NULL;
  int k;
  ASSAY_TRY(assay_infer_axis(c, "attribute axis", axis_for(axis, sx.rank), sx.rank, &k));
  bool differ = block_size > 0 ? ss.rank != sx.rank
                               : ss.rank != 1 || assay_dim_differ(ss.dims[0], sx.dims[k]);
  for (int i = 0; !differ && block_size > 0 && i < sx.rank; i++) {
    const assay_dim_t* want = sx.dims[i];
    if (i == k && want)
      want = assay_dim_ceildiv(c->dims, want, assay_dim_const(c->dims, block_size));
    differ = assay_dim_differ(ss.dims[i], want);
  }
  if (!differ) return NULL;
  return ASSAY_NODE_ERROR(c->node, ASSAY_CORRUPT,
                          "scale is %s and the input %s: with axis %d and block_size %lld they do "
                          "not fit",
                          ASSAY_VALTYPE_TEXT(assay_infer_type(c, scale)),
                          ASSAY_VALTYPE_TEXT(assay_infer_type(c, x)), k, (long long)block_size);
}

// ---- whole tensors -----------------------------------------------------------------------------

typedef struct scaled {
  const assay_quantizer_t* q;
  const assay_tensor_t *x, *scale, *zero;
  assay_tensor_t* y;
} scaled_t;

// One scale for the run, and a quotient in fp64 or fp32: what real networks have.
static void quantize_row(const assay_quantizer_t* q, const double* x, double scale, double zero,
                         int64_t* y, int64_t n) {
  bool fp32 = q->quotient == ASSAY_FORMAT_FP32;
  double of_nan = fmin(fmax(0, q->min), q->max);
  if (fp32) scale = (double)(float)scale;
  for (int64_t i = 0; i < n; i++) {
    double v = fp32 ? (double)(float)((double)(float)x[i] / scale) : x[i] / scale;
    y[i] = (int64_t)(v == v ? to_integer(q, v, zero) : of_nan);
  }
}

static void quantize_span(const void* user, int64_t n, int64_t x, int64_t x_step, int64_t s,
                          int64_t s_step) {
  const scaled_t* p = user;
  const assay_quantizer_t* q = p->q;
  bool to_float = p->y->store == ASSAY_STORE_F64;
  if (!to_float && p->x->store == ASSAY_STORE_F64 && x_step == 1 && s_step == 0 &&
      (q->quotient == ASSAY_FORMAT_FP64 || q->quotient == ASSAY_FORMAT_FP32)) {
    quantize_row(q, assay_f64(p->x) + x, assay_elem_f64(p->scale, s),
                 p->zero ? assay_elem_f64(p->zero, s) : 0, assay_i64(p->y) + x, n);
    return;
  }
  for (int64_t i = 0; i < n; i++, x += x_step, s += s_step) {
    double zero = p->zero ? assay_elem_f64(p->zero, s) : 0;
    double v = assay_quantize(q, assay_elem_f64(p->x, x), assay_elem_f64(p->scale, s), zero);
    if (to_float)
      assay_f64(p->y)[x] = v;
    else
      assay_i64(p->y)[x] = (int64_t)v;
  }
}

static void dequantize_span(const void* user, int64_t n, int64_t x, int64_t x_step, int64_t s,
                            int64_t s_step) {
  const scaled_t* p = user;
  double* y = assay_f64(p->y);
  if (p->x->store == ASSAY_STORE_I64 && p->x->type != ASSAY_TYPE_UINT64 && x_step == 1 &&
      s_step == 0) {
    double zero = p->zero ? assay_elem_f64(p->zero, s) : 0, scale = assay_elem_f64(p->scale, s);
    const int64_t* from = assay_i64(p->x) + x;
    for (int64_t i = 0; i < n; i++) y[x + i] = ((double)from[i] - zero) * scale;
    return;
  }
  const bool real = p->x->store == ASSAY_STORE_F64;
  for (int64_t i = 0; i < n; i++, x += x_step, s += s_step) {
    const double scale = assay_elem_f64(p->scale, s);
    double zero = p->zero ? assay_elem_f64(p->zero, s) : 0;
    if (real) zero = assay_quant_real_zero(scale, zero);
    y[x] = (assay_elem_f64(p->x, x) - zero) * scale;
  }
}

// A part of the tensors, which starts at these places of x and of the scales.
typedef struct part {
  assay_scales_fn* f;
  const void* user;
  int64_t x_first, s_first;
} part_t;

// Operand 0 is the place in x, 1 that in the scales.
static void part_span(const void* user, int64_t n, const int64_t* at, const int64_t* step) {
  const part_t* p = user;
  p->f(p->user, n, p->x_first + at[0], step[0], p->s_first + at[1], step[1]);
}

// Runs over a part of x: [outer, count, width, inner], where `count` groups of `width` indices of
// the axis share a scale.
static void run_part(const part_t* p, int64_t outer, int64_t count, int64_t width, int64_t inner,
                     int64_t x_stride, int64_t s_stride, bool blocks) {
  assay_nest_t nest;
  int64_t dims[4] = {outer, count, width, inner};
  int64_t xs[4] = {x_stride, width * inner, inner, 1};
  int64_t ss[4] = {s_stride, blocks ? inner : 1, 0, blocks ? 1 : 0};
  assay_nest_init(&nest, 4, dims);
  assay_nest_add(&nest, xs);
  assay_nest_add(&nest, ss);
  assay_nest_run(&nest, 4, part_span, p);
}

void assay_scales_run(const assay_scales_t* where, const assay_tensor_t* x, assay_scales_fn* f,
                      const void* user) {
  part_t p = {.f = f, .user = user};
  if (where->axis < 0) {
    run_part(&p, 1, 1, x->size, 1, 0, 0, false);
    return;
  }
  int64_t outer = assay_dims_product(x->dims, 0, where->axis), d = x->dims[where->axis];
  int64_t inner = assay_dims_product(x->dims, where->axis + 1, x->rank);
  if (!where->block_size) {
    run_part(&p, outer, d, 1, inner, d * inner, 0, false);
    return;
  }
  // Full blocks, then the rest of the axis, which has a scale of its own.
  int64_t block = where->block_size, full = d / block, rest = d % block;
  int64_t s_stride = (full + (rest != 0)) * inner;
  run_part(&p, outer, full, block, inner, d * inner, s_stride, true);
  p.x_first = full * block * inner;
  p.s_first = full * inner;
  if (rest) run_part(&p, outer, 1, rest, inner, d * inner, s_stride, true);
}

void assay_quantize_tensor(const assay_quantizer_t* q, const assay_scales_t* where,
                           const assay_tensor_t* x, const assay_tensor_t* scale,
                           const assay_tensor_t* zero, assay_tensor_t* y) {
  const scaled_t p = {.q = q, .x = x, .scale = scale, .zero = zero, .y = y};
  assay_scales_run(where, x, quantize_span, &p);
}

void assay_dequantize_tensor(const assay_scales_t* where, const assay_tensor_t* x,
                             const assay_tensor_t* scale, const assay_tensor_t* zero,
                             assay_tensor_t* y) {
  const scaled_t p = {.x = x, .scale = scale, .zero = zero, .y = y};
  assay_scales_run(where, x, dequantize_span, &p);
}

// ---- operands with one scale -------------------------------------------------------------------

// The scale and zero point of inputs; one element each.
static assay_status_t read_scale(const assay_eval_t* c, size_t scale, size_t zero,
                                 double* out_scale, double* out_zero) {
  *out_scale = 1;
  *out_zero = 0;
  for (int k = 0; k < 2; k++) {
    size_t i = k ? zero : scale;
    if (!assay_eval_has(c, i)) continue;
    const assay_tensor_t* t = c->in[i];
    if (t->size != 1 || t->store > ASSAY_STORE_I64)
      return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                              "input %zu, a %s, has shape %s; one number is expected", i,
                              k ? "zero point" : "scale", ASSAY_DIMS_TEXT(t));
    *(k ? out_zero : out_scale) = assay_elem_f64(t, 0);
  }
  return NULL;
}

assay_status_t assay_qreal_init(const assay_eval_t* c, size_t tensor, size_t scale, size_t zero,
                                assay_qreal_t* out) {
  if (!assay_eval_has(c, tensor) || c->in[tensor]->store > ASSAY_STORE_I64)
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                            "input %zu is missing or not a tensor of numbers", tensor);
  assay_qreal_t q = {.t = c->in[tensor], .to_fp32 = c->mode != ASSAY_MODE_TRUTH};
  ASSAY_TRY(read_scale(c, scale, zero, &q.scale, &q.zero));
  *out = q;
  return NULL;
}

double assay_qreal_get(const assay_qreal_t* q, int64_t i) {
  return assay_qround(q->to_fp32, (assay_elem_f64(q->t, i) - q->zero) * q->scale);
}

assay_status_t assay_qwriter_init(assay_eval_t* c, size_t scale, size_t zero, assay_type_t type,
                                  int rank, const int64_t* dims, assay_qwriter_t* out) {
  assay_qwriter_t w = {.to_fp32 = c->mode != ASSAY_MODE_TRUTH};
  assay_format_t quotient = w.to_fp32 ? ASSAY_FORMAT_FP32 : ASSAY_FORMAT_FP64;
  w.quantizer = assay_quantizer(c, type, quotient, true);
  ASSAY_TRY(read_scale(c, scale, zero, &w.scale, &w.zero));
  ASSAY_TRY(assay_eval_output(c, 0, assay_quant_type(c, type), rank, dims, &w.t));
  *out = w;
  return NULL;
}

void assay_qwriter_set(const assay_qwriter_t* w, int64_t i, double x) {
  double v = assay_quantize(&w->quantizer, x, w->scale, w->zero);
  if (w->t->store == ASSAY_STORE_F64)
    assay_f64(w->t)[i] = v;
  else
    assay_i64(w->t)[i] = (int64_t)v;
}
