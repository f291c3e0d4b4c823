// Convolutions of quantized numbers: ConvInteger, QLinearConv (ai.onnx and com.microsoft).
//
// The sums are exact: differences to the zero points are at most 255, so that more than 10^11
// products fit into a double without rounding, in any order.
#include <math.h>
#include <string.h>

#include "ops/conv/conv.h"
#include "ops/families.h"
#include "ops/math/pointwise.h"
#include "ops/quant/quant.h"
#include "ops/quant/quant_bound.h"

// A zero point or scale: one element for all, or one for each of n output channels.
static assay_status_t want_param(const assay_eval_t* c, size_t i, const char* name, int64_t n) {
  if (!assay_eval_has(c, i)) return NULL;
  const assay_tensor_t* t = c->in[i];
  if (t->size == 1 || (n > 0 && t->rank == 1 && t->dims[0] == n)) return NULL;
  return ASSAY_NODE_ERROR(c->node, ASSAY_CORRUPT, "%s has shape %s, expected one element%s", name,
                          ASSAY_DIMS_TEXT(t), n > 0 ? " or one for each output channel" : "");
}

static double param_at(const assay_tensor_t* t, int64_t i, double otherwise) {
  if (!t) return otherwise;
  const int64_t at = t->size == 1 ? 0 : i;
  return t->store == ASSAY_STORE_F64 ? assay_f64(t)[at] : (double)assay_i64(t)[at];
}

static const assay_tensor_t* input_or_null(const assay_eval_t* c, size_t i) {
  return assay_eval_has(c, i) ? c->in[i] : NULL;
}

// Where the inputs of a quantized convolution stand; SIZE_MAX: there is no such input.
typedef struct places {
  size_t x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero, bias;
} places_t;

static const places_t integer_places = {0, SIZE_MAX, 2,        1,       SIZE_MAX,
                                        3, SIZE_MAX, SIZE_MAX, SIZE_MAX};
static const places_t linear_places = {0, 1, 2, 3, 4, 5, 6, 7, 8};

typedef struct quant {
  assay_eval_t* c;
  const places_t* at;
  bool channels_last;
  assay_conv_t s;
  double *x, *w, *y;  // channels first; zero points subtracted
} quant_t;

static assay_status_t quant_read(quant_t* q) {
  const places_t* at = q->at;
  ASSAY_TRY(assay_conv_read(q->c->node, q->c->in[at->x], q->c->in[at->w],
                            input_or_null(q->c, at->bias), q->channels_last, &q->s));
  ASSAY_TRY(want_param(q->c, at->x_zero, "x_zero_point", 0));
  ASSAY_TRY(want_param(q->c, at->w_zero, "w_zero_point", q->s.m));
  ASSAY_TRY(want_param(q->c, at->x_scale, "x_scale", 0));
  ASSAY_TRY(want_param(q->c, at->w_scale, "w_scale", q->s.m));
  ASSAY_TRY(want_param(q->c, at->y_scale, "y_scale", 0));
  return want_param(q->c, at->y_zero, "y_zero_point", 0);
}

// t - zero point for each output channel's part, or all of it (parts 1).
static void subtract(const assay_tensor_t* t, int64_t parts, const assay_tensor_t* zero,
                     double* out) {
  const int64_t size = parts == 0 ? 0 : t->size / parts;
  for (int64_t p = 0; size > 0 && p < parts; p++) {
    const double z = param_at(zero, p, 0);
    for (int64_t i = p * size; i < (p + 1) * size; i++) out[i] = assay_elem_f64(t, i) - z;
  }
}

// The sums, into q->y.
static assay_status_t quant_sums(quant_t* q) {
  const assay_eval_t* c = q->c;
  const places_t* at = q->at;
  const assay_conv_t* s = &q->s;
  const assay_tensor_t *x = c->in[at->x], *w = c->in[at->w];
  double* scratch = NULL;
  assay_status_t st = assay_new_array((size_t)x->size, sizeof *q->x, &q->x);
  if (!st) st = assay_new_array((size_t)w->size, sizeof *q->w, &q->w);
  if (!st) st = assay_new_array((size_t)(s->n * s->m * s->out_size), sizeof *q->y, &q->y);
  if (!st && q->channels_last) st = assay_new_array((size_t)x->size, sizeof *scratch, &scratch);
  if (!st) {
    subtract(x, 1, input_or_null(c, at->x_zero), scratch ? scratch : q->x);
    if (scratch) assay_conv_swap(s->n, s->in_size, s->c, scratch, q->x);
    subtract(w, s->m, input_or_null(c, at->w_zero), q->w);
    assay_eval_t exact = *c;
    exact.arith = ASSAY_ARITH_F64;
    st = assay_conv_run(&exact, s, q->x, q->w, NULL, q->y);
  }
  assay_free(scratch);
  return st;
}

static void quant_free(quant_t* q) {
  assay_free(q->x);
  assay_free(q->w);
  assay_free(q->y);
}

static assay_status_t quant_output(quant_t* q, assay_type_t type, assay_tensor_t** out) {
  const assay_conv_t* s = &q->s;
  int64_t dims[ASSAY_MAX_RANK];
  int n = 0;
  dims[n++] = s->n;
  if (!q->channels_last) dims[n++] = s->m;
  for (int i = 0; i < s->w.rank; i++) dims[n++] = s->w.axis[i].out;
  if (q->channels_last) dims[n++] = s->m;
  return assay_eval_output(q->c, 0, type, n, dims, out);
}

// ---- ConvInteger -----------------------------------------------------------------------------

static assay_status_t integer_infer(assay_infer_t* c) {
  return assay_conv_infer(c, 0, 1, SIZE_MAX, false, ASSAY_TYPE_INT32);
}

static assay_status_t integer_run(quant_t* q) {
  assay_tensor_t* y;
  ASSAY_TRY(quant_read(q));
  ASSAY_TRY(quant_sums(q));
  const bool real =
      q->c->in[q->at->x]->store == ASSAY_STORE_F64 || q->c->in[q->at->w]->store == ASSAY_STORE_F64;
  ASSAY_TRY(quant_output(q, real ? ASSAY_TYPE_FLOAT : ASSAY_TYPE_INT32, &y));
  if (real) {
    if (y->size) memcpy(y->data, q->y, (size_t)y->size * sizeof *q->y);
    return NULL;
  }
  // "The accumulation may overflow if and only if in 32 bits."
  for (int64_t i = 0; i < y->size; i++) {
    assay_i64(y)[i] = assay_type_wrap(ASSAY_TYPE_INT32, (int64_t)q->y[i]);
  }
  return NULL;
}

static assay_status_t integer_eval(assay_eval_t* c) {
  quant_t q = {.c = c, .at = &integer_places};
  assay_status_t st = integer_run(&q);
  quant_free(&q);
  return st;
}

static void integer_cost(const assay_eval_t* c, assay_cost_t* out) {
  assay_conv_cost(c, 0, 1, SIZE_MAX, false, out);
}

// ---- QLinearConv -----------------------------------------------------------------------------

static bool channels_last(const assay_node_t* node) {
  return assay_attr_i64(node, "channels_last", 0) != 0;
}

static assay_status_t linear_infer(assay_infer_t* c) {
  return assay_conv_infer(c, 0, 3, 8, channels_last(c->node), ASSAY_TYPE_UNDEFINED);
}

// sat(rne((sum + bias) * x_scale * w_scale / y_scale) + y_zero_point). Source: ONNX
// QLinearConv-10, QuantizeLinear. In fp32 arithmetic each of these steps is rounded to float, in
// the order of ops/quant/int8.h; in float64 the three scales are one factor.
static void requantize(const quant_t* q, assay_type_t type, int64_t channel, const double* sums,
                       int64_t stride, int64_t* out) {
  const assay_eval_t* c = q->c;
  const places_t* at = q->at;
  const double xs = param_at(c->in[at->x_scale], 0, 1);
  const double ws = param_at(c->in[at->w_scale], channel, 1);
  const double ys = param_at(c->in[at->y_scale], 0, 1);
  const bool wide = c->arith == ASSAY_ARITH_F64;
  const double factor = wide ? xs * ws / ys : assay_acc(c, xs * ws);
  const double zero = param_at(input_or_null(c, at->y_zero), 0, 0);
  const double bias = assay_eval_has(c, at->bias) ? param_at(c->in[at->bias], channel, 0) : 0;
  for (int64_t i = 0; i < q->s.out_size; i++) {
    double real = assay_acc(c, assay_acc(c, sums[i] + bias) * factor);
    if (!wide) real = assay_acc(c, real / ys);
    out[i * stride] = assay_type_saturate(type, rint(real) + zero);
  }
}

// Planes that have elements: empty ones may be more than can be counted.
static int64_t planes_of(const assay_conv_t* s) { return s->out_size > 0 ? s->n * s->m : 0; }

// Truth without quantization: the sums scaled, not rounded.
static assay_status_t linear_unquantized(quant_t* q, assay_type_t type) {
  const assay_eval_t* c = q->c;
  const assay_conv_t* s = &q->s;
  const assay_tensor_t* bias = input_or_null(c, q->at->bias);
  const assay_quantizer_t to = assay_quantizer(c, type, ASSAY_FORMAT_FP64, true);
  const double ys = param_at(c->in[q->at->y_scale], 0, 1);
  const double zero = param_at(input_or_null(c, q->at->y_zero), 0, 0);
  for (int64_t i = 0; i < planes_of(s); i++) {
    const double add = param_at(bias, i % s->m, 0);
    const double scale =
        param_at(c->in[q->at->x_scale], 0, 1) * param_at(c->in[q->at->w_scale], i % s->m, 1);
    for (int64_t j = 0; j < s->out_size; j++) {
      double* v = &q->y[i * s->out_size + j];
      *v = assay_quantize(&to, (*v + add) * scale, ys, zero);
    }
  }
  assay_tensor_t* y;
  ASSAY_TRY(quant_output(q, ASSAY_TYPE_FLOAT, &y));
  if (q->channels_last) {
    assay_conv_swap(s->n, s->m, s->out_size, q->y, assay_f64(y));
  } else {
    for (int64_t i = 0; i < y->size; i++) assay_f64(y)[i] = q->y[i];
  }
  return NULL;
}

static assay_status_t linear_run(quant_t* q) {
  const assay_eval_t* c = q->c;
  const assay_conv_t* s = &q->s;
  ASSAY_TRY(quant_read(q));
  ASSAY_TRY(quant_sums(q));
  const assay_type_t otherwise =
      assay_eval_has(c, q->at->y_zero) ? c->in[q->at->y_zero]->type : c->in[q->at->x]->type;
  const assay_type_t type = assay_eval_out_type(c, 0, otherwise);
  if (c->unquantized) return linear_unquantized(q, type);
  assay_tensor_t* y;
  ASSAY_TRY(quant_output(q, type, &y));
  const int64_t planes = planes_of(s);
#pragma omp parallel for schedule(static) if (y->size > 50000)
  for (int64_t i = 0; i < planes; i++) {
    const int64_t n = i / s->m, m = i % s->m;
    int64_t* out = assay_i64(y) + (q->channels_last ? n * s->m * s->out_size + m : i * s->out_size);
    requantize(q, type, m, q->y + i * s->out_size, q->channels_last ? s->m : 1, out);
  }
  return NULL;
}

static assay_status_t linear_eval(assay_eval_t* c) {
  quant_t q = {.c = c, .at = &linear_places, .channels_last = channels_last(c->node)};
  assay_status_t st = linear_run(&q);
  quant_free(&q);
  return st;
}

static void linear_cost(const assay_eval_t* c, assay_cost_t* out) {
  assay_conv_cost(c, 0, 3, 8, channels_last(c->node), out);
}

// ---- bounds -----------------------------------------------------------------------------------
// Sums are exact. Between them and the choice: the sum as a float, bias, the product of scales, the
// division, in any order.

static void linear_bound_channel(const quant_t* q, const assay_quant_steps_t* steps,
                                 const assay_inner_t* in, int64_t i, double* const limits[2]) {
  const assay_eval_t* c = q->c;
  const places_t* at = q->at;
  const int64_t n = i / q->s.m, m = i % q->s.m, size = q->s.out_size;
  const double scale = param_at(c->in[at->x_scale], 0, 1) * param_at(c->in[at->w_scale], m, 1);
  const double bias = assay_eval_has(c, at->bias) ? param_at(c->in[at->bias], m, 0) : 0;
  const assay_quant_near_t y_scale = {param_at(c->in[at->y_scale], 0, 1), 0};
  const assay_quant_near_t zero = {param_at(input_or_null(c, at->y_zero), 0, 0), 0};
  for (int64_t j = 0; j < size; j++) {
    const double sum = q->y[i * size + j], real = (sum + bias) * scale;
    const double parts = fabs(sum) + fabs(bias);
    double error = steps->u * ((steps->documented ? 0 : 2 * parts * fabs(scale)) + 4 * fabs(real));
    error += in->tiny * (1 + parts) * (1 + fabs(y_scale.value));  // products of scales may vanish
    const int64_t to = q->channels_last ? (n * size + j) * q->s.m + m : i * size + j;
    const double y = (double)assay_i64(c->out[0])[to];
    const double limit =
        assay_steps_limit(steps, (assay_quant_near_t){real, error}, y_scale, zero, y);
    limits[0][to] = limits[1][to] = parts > in->max ? (double)INFINITY : limit;
  }
}

static assay_status_t linear_bound_run(quant_t* q, assay_bound_t* c) {
  double* limits[2];
  ASSAY_TRY(quant_read(q));
  ASSAY_TRY(quant_sums(q));
  ASSAY_TRY(assay_bound_output(c, 0, &limits[0], &limits[1]));
  assay_quant_steps_t steps = assay_steps_of(c->rounding, c->out[0]->type, true, ASSAY_FORMAT_FP32);
  const assay_inner_t in = assay_bound_inner(c->rounding);
  steps.u = fmax(steps.u, in.u);
  const int64_t planes = planes_of(&q->s);
#pragma omp parallel for schedule(static) if (c->out[0]->size > 20000)
  for (int64_t i = 0; i < planes; i++) linear_bound_channel(q, &steps, &in, i, limits);
  return NULL;
}

static assay_status_t linear_bound(assay_bound_t* c) {
  ASSAY_TRY(assay_bound_want_exact(c, SIZE_MAX));
  if (!assay_bound_is_quantized(c, 0)) return NULL;
  assay_eval_t reader = assay_bound_as_eval(c);
  assay_tensor_t* out[1] = {c->out[0]};
  reader.out = out;
  reader.n_out = 1;
  quant_t q = {.c = &reader, .at = &linear_places, .channels_last = channels_last(c->node)};
  assay_status_t st = linear_bound_run(&q, c);
  quant_free(&q);
  return st;
}

const assay_op_t assay_ops_conv_quant[] = {
    {.name = "ConvInteger",
     .domain = "",
     .since = 10,
     .flags = ASSAY_OP_QUANTIZES | ASSAY_OP_KEEPS_TYPE,
     .infer = integer_infer,
     .eval = integer_eval,
     .cost = integer_cost},
    {.name = "QLinearConv",
     .domain = "",
     .since = 10,
     .flags = ASSAY_OP_QUANTIZES | ASSAY_OP_KEEPS_TYPE,
     .discrete = 1u << 0,
     .infer = linear_infer,
     .eval = linear_eval,
     .bound = linear_bound,
     .cost = linear_cost},
    {.name = "QLinearConv",
     .domain = "com.microsoft",
     .since = 1,
     .flags = ASSAY_OP_QUANTIZES | ASSAY_OP_KEEPS_TYPE,
     .discrete = 1u << 0,
     .schema = "x:T1, x_scale:ts, x_zero_point:T1, w:T2, w_scale:ts, w_zero_point:T2, "
               "y_scale:ts, y_zero_point:T3, B?:T4 -> y:T3 | auto_pad:s=NOTSET, "
               "channels_last:i=0, dilations:is, group:i=1, kernel_shape:is, pads:is, strides:is "
               "| T1=int8 uint8; T2=int8 uint8; T3=int8 uint8; T4=int32; ts=float",
     .infer = linear_infer,
     .eval = linear_eval,
     .bound = linear_bound,
     .cost = linear_cost},
    {0}};
