// Reading nodes as an int8 layer: see int8.h.
#include "ops/quant/int8.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "ops/math/pointwise.h"
#include "ops/quant/quant.h"

// ---- single nodes ------------------------------------------------------------------------------

static assay_type_t type_of(const assay_value_t* v) {
  return v && v->type && v->type->kind == ASSAY_KIND_TENSOR ? v->type->elem : ASSAY_TYPE_UNDEFINED;
}

static bool is_8bit(assay_type_t t) { return t == ASSAY_TYPE_INT8 || t == ASSAY_TYPE_UINT8; }

static bool is_op(const assay_node_t* n, const char* op) {
  return !*n->domain && strcmp(n->op_type, op) == 0;
}

static bool is_either(const assay_node_t* n, const char* op) {
  return (!*n->domain || strcmp(n->domain, "com.microsoft") == 0) && strcmp(n->op_type, op) == 0;
}

// The elements of a constant that no caller can replace; NULL otherwise.
static assay_tensor_t* constant_of(const assay_value_t* v) {
  if (!v || !v->constant || v->is_input || v->constant->kind != ASSAY_KIND_TENSOR) return NULL;
  return v->constant;
}

static const assay_value_t* input(const assay_node_t* n, size_t i) {
  return i < n->n_inputs ? n->inputs[i] : NULL;
}

bool assay_int8_is_quantizer(const assay_node_t* n) {
  const int64_t precision = assay_attr_i64(n, "precision", 0);
  return is_either(n, "QuantizeLinear") && n->op && n->n_outputs == 1 && n->outputs[0] &&
         is_8bit(type_of(n->outputs[0])) && type_of(input(n, 0)) == ASSAY_TYPE_FLOAT &&
         constant_of(input(n, 1)) && type_of(input(n, 1)) == ASSAY_TYPE_FLOAT &&
         (!input(n, 2) || constant_of(input(n, 2))) && assay_attr_i64(n, "block_size", 0) == 0 &&
         (precision == 0 || precision == ASSAY_TYPE_FLOAT);
}

// Of int32, too: biases.
static bool is_dequantizer(const assay_node_t* n) {
  return is_either(n, "DequantizeLinear") && n->op && n->n_outputs == 1 && n->outputs[0] &&
         type_of(n->outputs[0]) == ASSAY_TYPE_FLOAT && constant_of(input(n, 1)) &&
         type_of(input(n, 1)) == ASSAY_TYPE_FLOAT && (!input(n, 2) || constant_of(input(n, 2))) &&
         assay_attr_i64(n, "block_size", 0) == 0;
}

bool assay_int8_is_dequantizer(const assay_node_t* n) {
  return is_dequantizer(n) && is_8bit(type_of(input(n, 0)));
}

bool assay_int8_is_anchor(const assay_node_t* n) {
  static const char* const names[] = {"Conv", "ConvTranspose", "MatMul", "Gemm"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (is_op(n, names[i]))
      return n->op && n->n_outputs == 1 && type_of(n->outputs[0]) == ASSAY_TYPE_FLOAT;
  return false;
}

bool assay_int8_knows(const assay_node_t* n) {
  double p[2];
  bool binary;
  return assay_int8_function(n, p, &binary) >= 0 && type_of(n->outputs[0]) == ASSAY_TYPE_FLOAT;
}

bool assay_int8_takes_real(const assay_value_t* v, const assay_value_t* y) {
  const assay_valtype_t *s = v->type, *t = y->type;
  if (v->constant || type_of(v) != ASSAY_TYPE_FLOAT || !s->has_shape || !t || !t->has_shape ||
      s->rank != t->rank)
    return false;
  bool whole = true, by_channel = s->rank >= 3;
  for (int i = 0; i < s->rank; i++) {
    int64_t n = 0;
    const bool same = assay_dim_same(s->dims[i], t->dims[i]);
    const bool one = assay_dim_value(s->dims[i], &n) && n == 1;
    whole &= same;
    by_channel &= i < 2 ? same : one;
  }
  return whole || by_channel;
}

bool assay_int8_is_norm(const assay_node_t* n) {
  if (!is_op(n, "BatchNormalization") || !n->op || n->op->since < 7 || n->n_inputs != 5 ||
      !n->outputs[0])
    return false;
  for (size_t i = 1; i < n->n_outputs; i++)
    if (n->outputs[i]) return false;
  return assay_attr_i64(n, "spatial", 1) != 0 && assay_attr_i64(n, "training_mode", 0) == 0;
}

// ---- a layer while it is read ------------------------------------------------------------------

// Parameters of the affine part in float64, by channel.
typedef struct reader {
  assay_arena_t* arena;
  const assay_node_t* const* nodes;
  size_t n;
  assay_int8_t* q;
  double *factor, *shift;                       // as many as max(channels, 1)
  const assay_value_t* made[ASSAY_INT8_STEPS];  // by step
  assay_tensor_t* weights;                      // quantized here
  assay_status_t status;
} reader_t;

static bool in_layer(const reader_t* r, const assay_node_t* n) {
  for (size_t i = 0; n && i < r->n; i++)
    if (r->nodes[i] == n) return true;
  return false;
}

static const assay_node_t* maker(const reader_t* r, const assay_value_t* v) {
  return v && in_layer(r, v->producer) ? v->producer : NULL;
}

static size_t reads(const reader_t* r, const assay_value_t* v) {
  size_t n = 0;
  for (size_t i = 0; i < r->n; i++)
    for (size_t k = 0; k < r->nodes[i]->n_inputs; k++) n += r->nodes[i]->inputs[k] == v;
  return n;
}

static int64_t slots(const assay_int8_t* q) { return q->channels > 0 ? q->channels : 1; }

static bool is_affine(const assay_int8_t* q, const assay_node_t* n) {
  for (size_t i = 0; i < q->n_affine; i++)
    if (q->affine[i] == n) return true;
  return false;
}

static bool note_affine(reader_t* r, const assay_node_t* n) {
  if (is_affine(r->q, n)) return true;
  if (r->q->n_affine == ASSAY_INT8_AFFINE) return false;
  r->q->affine[r->q->n_affine++] = n;
  return true;
}

// A constant's elements as doubles; *out is released by the caller. False: none.
static bool numbers(reader_t* r, const assay_value_t* v, assay_tensor_t** out) {
  assay_tensor_t* t = constant_of(v);
  *out = NULL;
  if (!t || r->status || t->store == ASSAY_STORE_STR) return false;
  r->status = assay_tensor_widen(t, out);
  if (r->status) return false;
  if ((*out)->store <= ASSAY_STORE_I64) return true;
  assay_tensor_release(*out);
  *out = NULL;
  return false;
}

static bool is_scale(double s) { return s >= 0x1p-126 && s <= 0x1p127; }

// The scales and zero points of a quantizer's or dequantizer's node, from input `at` on. The scales
// of 32-bit integers may be anything positive.
static bool read_scales(reader_t* r, const assay_node_t* n, size_t at, size_t zero_at,
                        assay_int8_operand_t* o) {
  assay_tensor_t *scale = NULL, *zero = NULL;
  float* scales = NULL;
  int32_t* zeros = NULL;
  bool ok = numbers(r, input(n, at), &scale) && scale->rank <= 1 && scale->size > 0 &&
            scale->store == ASSAY_STORE_F64;
  if (ok && input(n, zero_at)) {
    ok = numbers(r, input(n, zero_at), &zero) && zero->store == ASSAY_STORE_I64 &&
         zero->rank <= 1 && (zero->size == 1 || zero->size == scale->size);
  }
  o->n_scales = ok ? scale->size : 0;
  o->n_zeros = ok && zero ? zero->size : 1;
  if (ok) {
    r->status = assay_arena_new(r->arena, (size_t)o->n_scales, sizeof *scales, &scales);
    if (!r->status)
      r->status = assay_arena_new(r->arena, (size_t)o->n_zeros, sizeof *zeros, &zeros);
    ok = !r->status;
  }
  for (int64_t i = 0; ok && i < o->n_scales; i++) {
    scales[i] = (float)assay_f64(scale)[i];
    ok = is_scale((double)scales[i]);
  }
  for (int64_t i = 0; ok && zero && i < o->n_zeros; i++) zeros[i] = (int32_t)assay_i64(zero)[i];
  assay_tensor_release(scale);
  assay_tensor_release(zero);
  o->scales = scales;
  o->zeros = zeros;
  return ok;
}

static bool is_single(const assay_int8_operand_t* o) { return o->n_scales == 1 && o->n_zeros == 1; }

// Weights that the layer quantizes itself, in float64 as truth does.
static bool quantize_weights(reader_t* r, const assay_node_t* n, assay_int8_operand_t* o) {
  assay_int8_operand_t by = {0};
  assay_tensor_t *x = NULL, *scale = NULL, *zero = NULL, *y = NULL;
  assay_scales_t where;
  const assay_eval_t c = {.node = n, .mode = ASSAY_MODE_TRUTH};
  bool ok = read_scales(r, n, 1, 2, &by) && numbers(r, input(n, 0), &x) &&
            x->store == ASSAY_STORE_F64 && numbers(r, input(n, 1), &scale) &&
            (!input(n, 2) || numbers(r, input(n, 2), &zero));
  for (int64_t i = 0; ok && i < x->size; i++) ok = isfinite(assay_f64(x)[i]);
  if (ok) {
    assay_status_t misfit =
        assay_scales_find(&c, x, scale, zero, assay_attr_i64(n, "axis", 1), 0, &where);
    ok = !misfit;
    assay_status_free(misfit);
  }
  if (ok) r->status = assay_tensor_create(type_of(n->outputs[0]), x->rank, x->dims, &y);
  if (ok && !r->status) {
    const assay_quantizer_t q = assay_quantizer(&c, y->type, ASSAY_FORMAT_FP64, true);
    assay_quantize_tensor(&q, &where, x, scale, zero, y);
    r->status = assay_tensor_pack(y, &r->weights);
    o->constant = r->weights;
    o->value = NULL;
  }
  assay_tensor_release(x);
  assay_tensor_release(scale);
  assay_tensor_release(zero);
  assay_tensor_release(y);
  return ok && !r->status;
}

// The same of constants that the layer dequantizes.
static bool real_numbers(reader_t* r, const assay_value_t* v, assay_tensor_t** out) {
  const assay_node_t* n = maker(r, v);
  assay_int8_operand_t by = {0};
  assay_tensor_t* q = NULL;
  *out = NULL;
  if (!n) return numbers(r, v, out);
  bool ok = is_dequantizer(n) && read_scales(r, n, 1, 2, &by) && numbers(r, n->inputs[0], &q) &&
            q->store == ASSAY_STORE_I64 && (by.n_scales == 1 || by.n_scales == q->size) &&
            q->rank == 1 && note_affine(r, n);
  if (ok) r->status = assay_tensor_create(ASSAY_TYPE_FLOAT, q->rank, q->dims, out);
  ok = ok && !r->status;
  for (int64_t i = 0; ok && i < q->size; i++)
    assay_f64(*out)[i] =
        (double)(assay_i64(q)[i] - by.zeros[i % by.n_zeros]) * (double)by.scales[i % by.n_scales];
  assay_tensor_release(q);
  return ok;
}

// An operand that a DequantizeLinear of the layer makes.
static bool read_operand(reader_t* r, const assay_value_t* v, assay_int8_operand_t* o) {
  const assay_node_t* n = maker(r, v);
  if (!n || !assay_int8_is_dequantizer(n) || !read_scales(r, n, 1, 2, o)) return false;
  o->value = n->inputs[0];
  o->type = type_of(o->value);
  o->constant = constant_of(o->value);
  return note_affine(r, n);
}

static int add_source(reader_t* r, assay_int8_source_t s) {
  assay_int8_t* q = r->q;
  if (q->n_sources == ASSAY_INT8_SOURCES) return -1;
  q->sources[q->n_sources] = s;
  return (int)q->n_sources++;
}

// ---- contractions ------------------------------------------------------------------------------

// Along which dimension of its weights an anchor's output channels lie.
static int weight_axis(const assay_node_t* n, int rank) {
  if (is_op(n, "Conv") || is_either(n, "QLinearConv")) return 0;
  if (is_op(n, "ConvTranspose")) return 1;
  if (is_op(n, "Gemm") && assay_attr_i64(n, "transB", 0)) return 0;
  return rank - 1;
}

// Scales by channel fit the dimension that they are meant for.
static bool scales_fit(const reader_t* r, const assay_int8_operand_t* o, int64_t axis, int rank,
                       int64_t channels) {
  const int want = weight_axis(r->q->anchor, rank);
  const bool many = o->n_scales > 1 || o->n_zeros > 1;
  if (!many) return true;
  return (axis < 0 ? axis + rank : axis) == want && o->n_scales == channels &&
         (o->n_zeros == 1 || o->n_zeros == channels);
}

// Weights: a constant, quantized or to be quantized here, or a second activation.
static bool read_weights(reader_t* r, const assay_value_t* v) {
  assay_int8_operand_t* w = &r->q->w;
  if (!read_operand(r, v, w)) return false;
  const assay_node_t* dequantizer = v->producer;
  const assay_node_t* quantizer = maker(r, w->value);
  if (quantizer && !(assay_int8_is_quantizer(quantizer) && note_affine(r, quantizer) &&
                     quantize_weights(r, quantizer, w)))
    return false;
  const assay_node_t* a = r->q->anchor;
  if (!w->constant) return (is_op(a, "MatMul") || is_op(a, "Gemm")) && is_single(w);
  const assay_tensor_t* t = w->constant;
  if (t->rank < 2 || !t->size) return false;
  w->axis = weight_axis(a, t->rank);
  const int64_t along = t->dims[w->axis];
  const int64_t groups = is_op(a, "ConvTranspose") ? assay_attr_i64(a, "group", 1) : 1;
  if (groups < 1 || !assay_mul_i64(along, groups, &r->q->channels)) return false;
  return scales_fit(r, w, assay_attr_i64(dequantizer, "axis", 1), t->rank, along);
}

static bool start_affine(reader_t* r) {
  assay_int8_t* q = r->q;
  const assay_valtype_t* t = q->anchor->outputs[0]->type;
  if (!t || !t->has_shape || t->rank < 2) return false;
  const bool product = is_op(q->anchor, "MatMul") || is_op(q->anchor, "Gemm") ||
                       is_either(q->anchor, "QLinearMatMul");
  q->channel_axis = product ? t->rank - 1 : 1;
  const size_t n = (size_t)slots(q);
  r->status = assay_arena_new(r->arena, n, sizeof *r->factor, &r->factor);
  if (!r->status) r->status = assay_arena_new(r->arena, n, sizeof *r->shift, &r->shift);
  if (r->status) return false;
  for (int64_t i = 0; i < slots(q); i++)
    r->factor[i] = (double)q->x.scales[0] * (double)q->w.scales[i % q->w.n_scales];
  q->result = q->anchor->outputs[0];
  return true;
}

// Adds numbers by channel, or one for all, to the shift.
static bool add_shift(reader_t* r, const double* x, int64_t n) {
  if (n != 1 && n != r->q->channels) return false;
  for (int64_t i = 0; i < slots(r->q); i++) {
    if (!isfinite(x[i % n])) return false;
    r->shift[i] = x[i % n];
  }
  return true;
}

// The values of a bias: float constants, or integers that the layer dequantizes.
static bool read_bias(reader_t* r, const assay_value_t* v) {
  assay_tensor_t* x = NULL;
  assay_int8_operand_t by = {0};
  const assay_node_t* n = maker(r, v);
  bool ok = true;
  if (!n) {
    ok = numbers(r, v, &x) && x->type == ASSAY_TYPE_FLOAT;
  } else {
    ok = is_dequantizer(n) && read_scales(r, n, 1, 2, &by) && numbers(r, n->inputs[0], &x) &&
         x->store == ASSAY_STORE_I64 && note_affine(r, n) &&
         (by.n_scales == 1 || by.n_scales == x->size);
  }
  double* values = NULL;
  if (ok) r->status = assay_new_array((size_t)x->size, sizeof *values, &values);
  for (int64_t i = 0; ok && !r->status && i < x->size; i++)
    values[i] = !n ? assay_f64(x)[i]
                   : (double)(float)((double)(assay_i64(x)[i] - by.zeros[i % by.n_zeros]) *
                                     (double)by.scales[i % by.n_scales]);
  // A row: of Gemm also with a dimension of 1 in front.
  const bool row = ok && x->size > 0 && (x->size == 1 || x->dims[x->rank - 1] == x->size);
  ok = ok && row && !r->status && add_shift(r, values, x->size);
  assay_free(values);
  assay_tensor_release(x);
  return ok;
}

static bool read_anchor(reader_t* r, const assay_node_t* n) {
  assay_int8_t* q = r->q;
  if (q->anchor || n->n_inputs < 2) return false;
  q->anchor = n;
  const bool gemm = is_op(n, "Gemm");
  if (gemm && (assay_attr_f64(n, "alpha", 1) != 1 || assay_attr_f64(n, "beta", 1) != 1))
    return false;
  if (!read_operand(r, input(n, 0), &q->x) || !is_single(&q->x) || maker(r, q->x.value) ||
      !read_weights(r, input(n, 1)) || !start_affine(r) || !note_affine(r, n))
    return false;
  if (input(n, 2) && !read_bias(r, input(n, 2))) return false;
  return add_source(r, (assay_int8_source_t){.kind = ASSAY_INT8_RESULT}) >= 0;
}

static bool has_result(const assay_int8_t* q) { return q->anchor || q->scales_x; }

// A constant that lies along the channels of the output, or a single number.
static bool is_by_channel(const reader_t* r, const assay_tensor_t* t) {
  const assay_int8_t* q = r->q;
  if (!has_result(q) || q->channels <= 0 || t->size != q->channels) return false;
  const int rank = q->result->type->rank;
  const int at = q->channel_axis - (rank - t->rank);
  return t->rank <= rank && at >= 0 && t->dims[at] == t->size;
}

// A bias after MatMul.
static bool read_bias_node(reader_t* r, const assay_node_t* n) {
  assay_int8_t* q = r->q;
  assay_tensor_t* t = NULL;
  const int other = n->inputs[0] == q->result ? 1 : 0;
  for (int64_t i = 0; i < slots(q); i++)
    if (r->shift[i] != 0) return false;
  const bool fits = numbers(r, n->inputs[other], &t) && t->type == ASSAY_TYPE_FLOAT &&
                    is_by_channel(r, t) && q->n_affine < ASSAY_INT8_AFFINE &&
                    add_shift(r, assay_f64(t), t->size) && note_affine(r, n);
  assay_tensor_release(t);
  if (fits) q->result = n->outputs[0];
  return fits;
}

// Whether a node multiplies by constants, of which there is one a channel.
static bool is_channel_scale(const reader_t* r, const assay_node_t* n) {
  const assay_value_t* v = n->n_inputs == 2 ? n->inputs[n->inputs[0] == r->q->result] : NULL;
  const assay_tensor_t* t = v ? constant_of(v) : NULL;
  return is_op(n, "Mul") && t && t->size > 1 && t->type == ASSAY_TYPE_FLOAT && is_by_channel(r, t);
}

// As what BatchNormalization multiplies by.
static bool read_channel_scale(reader_t* r, const assay_node_t* n) {
  assay_int8_t* q = r->q;
  assay_tensor_t* t = NULL;
  bool ok = numbers(r, n->inputs[n->inputs[0] == q->result], &t) && t->store == ASSAY_STORE_F64 &&
            note_affine(r, n);
  for (int64_t i = 0; ok && i < q->channels; i++) {
    const double k = assay_f64(t)[i];
    r->factor[i] *= k;
    r->shift[i] *= k;
    ok = isfinite(r->factor[i]) && isfinite(r->shift[i]);
  }
  assay_tensor_release(t);
  if (ok) q->result = n->outputs[0];
  return ok;
}

// f scale / sqrt(var + epsilon) + (B - mean ...). Sources: ONNX BatchNormalization 7, 9, 14, 15.
static bool read_norm(reader_t* r, const assay_node_t* n) {
  enum { SCALE, B, MEAN, VAR, PARAMS };
  assay_int8_t* q = r->q;
  assay_tensor_t* p[PARAMS] = {NULL};
  bool ok = q->channel_axis == 1 && q->channels > 0 && n->inputs[0] == q->result;
  for (size_t i = 0; ok && i < PARAMS; i++)
    ok = real_numbers(r, n->inputs[i + 1], &p[i]) && p[i]->store == ASSAY_STORE_F64 &&
         p[i]->size == q->channels;
  ok = ok && note_affine(r, n);
  const double epsilon = assay_attr_f64(n, "epsilon", 1e-5);
  for (int64_t i = 0; ok && i < q->channels; i++) {
    const double k = assay_f64(p[SCALE])[i] / sqrt(assay_f64(p[VAR])[i] + epsilon);
    r->factor[i] *= k;
    r->shift[i] = (r->shift[i] - assay_f64(p[MEAN])[i]) * k + assay_f64(p[B])[i];
    ok = isfinite(k) && isfinite(r->shift[i]);
  }
  for (size_t i = 0; i < PARAMS; i++) assay_tensor_release(p[i]);
  if (ok) q->result = n->outputs[0];
  return ok;
}

// As far as is known.
static bool has_shape_of(const assay_value_t* a, const assay_value_t* b) {
  const assay_valtype_t *s = a->type, *t = b->type;
  if (!s || !t || !s->has_shape || !t->has_shape || s->rank != t->rank) return false;
  for (int i = 0; i < s->rank; i++)
    if (!assay_dim_same(s->dims[i], t->dims[i])) return false;
  return true;
}

// A normalization of a quantized tensor, which nothing else reads through this dequantizer.
static bool start_norm(reader_t* r, const assay_node_t* n) {
  assay_int8_t* q = r->q;
  const assay_value_t* x = n->inputs[0];
  const assay_valtype_t* t = n->outputs[0]->type;
  if (has_result(q) || !t || !t->has_shape || t->rank < 2 || reads(r, x) != 1 ||
      !assay_dim_value(t->dims[1], &q->channels) || q->channels < 1 ||
      !has_shape_of(n->outputs[0], r->nodes[r->n - 1]->outputs[0]) || !read_operand(r, x, &q->x) ||
      !is_single(&q->x) || maker(r, q->x.value) || q->x.constant)
    return false;
  const size_t slots = (size_t)q->channels;
  q->scales_x = true;
  q->channel_axis = 1;
  q->result = x;
  r->status = assay_arena_new(r->arena, slots, sizeof *r->factor, &r->factor);
  if (!r->status) r->status = assay_arena_new(r->arena, slots, sizeof *r->shift, &r->shift);
  for (size_t i = 0; !r->status && i < slots; i++) r->factor[i] = (double)q->x.scales[0];
  return !r->status && read_norm(r, n) &&
         add_source(r, (assay_int8_source_t){.kind = ASSAY_INT8_RESULT}) >= 0;
}

// Whether a node goes on with the affine part: it alone reads the result so far.
static bool extends_affine(const reader_t* r, const assay_node_t* n) {
  const assay_int8_t* q = r->q;
  if (!q->anchor || q->n_steps || q->n_sources != 1 || reads(r, q->result) != 1) return false;
  if (assay_int8_is_norm(n)) return n->inputs[0] == q->result;
  if (is_channel_scale(r, n)) return true;
  return is_op(n, "Add") && n->n_inputs == 2 && is_affine(q, q->result->producer) &&
         q->result == q->anchor->outputs[0] && !is_op(q->anchor, "Gemm") &&
         (constant_of(n->inputs[0]) || constant_of(n->inputs[1]));
}

// ---- the pointwise part ------------------------------------------------------------------------

// The float32 that each byte of a quantized tensor stands for.
static bool make_table(reader_t* r, const assay_int8_operand_t* o, const float** out) {
  float* table = NULL;
  r->status = assay_arena_new(r->arena, 256, sizeof *table, &table);
  if (r->status) return false;
  for (int i = 0; i < 256; i++) {
    const int value = o->type == ASSAY_TYPE_INT8 && i > 127 ? i - 256 : i;
    table[i] = (float)((double)(value - o->zeros[0]) * (double)o->scales[0]);
  }
  *out = table;
  return true;
}

static int operand_source(reader_t* r, const assay_node_t* n) {
  assay_int8_operand_t o = {.value = n->inputs[0], .type = type_of(n->inputs[0])};
  assay_int8_source_t s = {
      .kind = ASSAY_INT8_OPERAND, .value = n->inputs[0], .real = n->outputs[0]};
  if (!assay_int8_is_dequantizer(n) || maker(r, n->inputs[0]) || !read_scales(r, n, 1, 2, &o) ||
      !is_single(&o) || !make_table(r, &o, &s.table))
    return -1;
  s.type = o.type;
  s.zero = (float)o.zeros[0];
  s.scale = o.scales[0];
  return add_source(r, s);
}

static int constant_source(reader_t* r, const assay_value_t* v) {
  assay_tensor_t* t = NULL;
  assay_int8_source_t s = {.kind = ASSAY_INT8_SCALAR, .real = v};
  bool ok = numbers(r, v, &t) && t->type == ASSAY_TYPE_FLOAT && t->size > 0;
  const assay_valtype_t* y = r->nodes[r->n - 1]->outputs[0]->type;
  if (ok && t->size == 1) {
    s.scalar = assay_f64(t)[0];
    ok = y && y->has_shape && t->rank <= y->rank;
  } else if (ok && is_by_channel(r, t)) {
    float* x = NULL;
    r->status = assay_arena_new(r->arena, (size_t)t->size, sizeof *x, &x);
    for (int64_t i = 0; !r->status && i < t->size; i++) x[i] = (float)assay_f64(t)[i];
    s.kind = ASSAY_INT8_CHANNEL;
    s.channel = x;
  } else {
    ok = false;
  }
  assay_tensor_release(t);
  return ok && !r->status ? add_source(r, s) : -1;
}

// A float32 value that the layer reads as it is.
static int real_source(reader_t* r, const assay_value_t* v) {
  if (!assay_int8_takes_real(v, r->nodes[r->n - 1]->outputs[0])) return -1;
  return add_source(r, (assay_int8_source_t){.kind = ASSAY_INT8_REAL, .value = v, .real = v});
}

// Registers of steps are numbered after all sources that there may be until the layer is whole.
static int value_register(reader_t* r, const assay_value_t* v) {
  const assay_int8_t* q = r->q;
  if (!v) return -1;
  for (size_t i = 0; i < q->n_steps; i++)
    if (r->made[i] == v) return ASSAY_INT8_SOURCES + (int)i;
  for (size_t i = 0; i < q->n_sources; i++)
    if ((q->sources[i].kind == ASSAY_INT8_RESULT ? q->result : q->sources[i].real) == v)
      return (int)i;
  const assay_node_t* n = maker(r, v);
  if (n) return operand_source(r, n);
  return constant_of(v) ? constant_source(r, v) : real_source(r, v);
}

static bool emit(reader_t* r, assay_int8_step_t s, const assay_value_t* made) {
  assay_int8_t* q = r->q;
  if (q->n_steps == ASSAY_INT8_STEPS || s.function < 0) return false;
  r->made[q->n_steps] = made;
  q->steps[q->n_steps++] = s;
  return true;
}

static const assay_int8_step_t* step_of(const assay_int8_t* q, int reg, const char* function) {
  if (reg < ASSAY_INT8_SOURCES) return NULL;
  const assay_int8_step_t* s = &q->steps[reg - ASSAY_INT8_SOURCES];
  return s->function == assay_int8_function_named(function) ? s : NULL;
}

// x sigmoid(x) and x tanh(softplus(x)) are functions of their own: fewer operations.
static assay_int8_step_t combined(const assay_int8_t* q, assay_int8_step_t s) {
  if (s.function != assay_int8_function_named("Mul")) return s;
  for (int k = 0; k < 2; k++) {
    const int x = k ? s.b : s.a, other = k ? s.a : s.b;
    const assay_int8_step_t* f = step_of(q, other, "Sigmoid");
    if (f && f->a == x)
      return (assay_int8_step_t){.function = assay_int8_function_named("silu"), .a = x, .b = -1};
    f = step_of(q, other, "Tanh");
    f = f ? step_of(q, f->a, "Softplus") : NULL;
    if (f && f->a == x)
      return (assay_int8_step_t){.function = assay_int8_function_named("Mish"), .a = x, .b = -1};
  }
  return s;
}

static bool read_pointwise(reader_t* r, const assay_node_t* n) {
  assay_int8_step_t s = {.b = -1};
  bool binary = false;
  s.function = assay_int8_function(n, s.p, &binary);
  if (s.function < 0 || type_of(n->outputs[0]) != ASSAY_TYPE_FLOAT) return false;
  s.a = value_register(r, n->inputs[0]);
  if (s.a < 0) return false;
  if (binary) {
    s.b = value_register(r, n->inputs[1]);
    if (s.b < 0) return false;
  }
  return emit(r, combined(r->q, s), n->outputs[0]);
}

// ---- the whole ---------------------------------------------------------------------------------

// Steps whose results nobody needs are taken out, and registers get their numbers.
static void settle_steps(reader_t* r, int last) {
  assay_int8_t* q = r->q;
  bool used[ASSAY_INT8_STEPS] = {false};
  int number[ASSAY_INT8_SOURCES + ASSAY_INT8_STEPS];
  size_t kept = 0;
  if (last >= ASSAY_INT8_SOURCES) used[last - ASSAY_INT8_SOURCES] = true;
  for (size_t i = q->n_steps; i-- > 0;) {
    if (!used[i]) continue;
    if (q->steps[i].a >= ASSAY_INT8_SOURCES) used[q->steps[i].a - ASSAY_INT8_SOURCES] = true;
    if (q->steps[i].b >= ASSAY_INT8_SOURCES) used[q->steps[i].b - ASSAY_INT8_SOURCES] = true;
  }
  for (size_t i = 0; i < q->n_sources; i++) number[i] = (int)i;
  for (size_t i = 0; i < q->n_steps; i++) {
    if (!used[i]) continue;
    assay_int8_step_t s = q->steps[i];
    s.a = number[s.a];
    if (s.b >= 0) s.b = number[s.b];
    number[ASSAY_INT8_SOURCES + i] = (int)(q->n_sources + kept);
    q->steps[kept++] = s;
  }
  q->n_steps = kept;
}

// One operation on two floats, rounded to float64 and then to float32, is the float32 operation
// (int8.h). False: it is none of those that are wanted.
static bool simple_operation(const assay_int8_t* q, const assay_int8_step_t* s,
                             assay_int8_operation_t* out) {
  if (s->b < 0 || (s->a == 0) == (s->b == 0)) return false;
  if ((s->a ? s->a : s->b) >= (int)q->n_sources) return false;
  if (s->function == assay_int8_function_named("Add"))
    *out = ASSAY_INT8_ADD;
  else if (s->function == assay_int8_function_named("Sub"))
    *out = s->a == 0 ? ASSAY_INT8_SUB : ASSAY_INT8_SUB_FROM;
  else if (s->function == assay_int8_function_named("Mul"))
    *out = ASSAY_INT8_MUL;
  else
    return false;
  return true;
}

// Whether float32 arithmetic on source 0 gives the steps' bits: one operation, and limits.
static void find_simple(assay_int8_t* q) {
  const int relu = assay_int8_function_named("Relu"), clip = assay_int8_function_named("Clip");
  int at = 0;
  q->other = -1;
  q->low = -INFINITY;
  q->high = INFINITY;
  q->simple = q->sources[0].kind == ASSAY_INT8_RESULT || q->sources[0].kind == ASSAY_INT8_OPERAND ||
              q->sources[0].kind == ASSAY_INT8_REAL;
  for (size_t i = 0; q->simple && i < q->n_steps; i++) {
    const assay_int8_step_t* s = &q->steps[i];
    if (i == 0 && simple_operation(q, s, &q->operation)) {
      q->other = s->a ? s->a : s->b;
    } else if (s->a == at && (s->function == relu || s->function == clip)) {
      const float low = s->function == relu ? 0 : (float)s->p[0];
      const float high = s->function == relu ? INFINITY : (float)s->p[1];
      // Limits of limits: those that were, within the new ones.
      const float a = q->low < low ? low : q->low, b = q->high < low ? low : q->high;
      q->low = a > high ? high : a;
      q->high = b > high ? high : b;
    } else {
      q->simple = false;
    }
    at = (int)(q->n_sources + i);
  }
}

// Factor and shift as float32.
static bool settle_affine(reader_t* r) {
  assay_int8_t* q = r->q;
  float *factor = NULL, *shift = NULL;
  q->n_factor = slots(q);
  r->status = assay_arena_new(r->arena, (size_t)q->n_factor, sizeof *factor, &factor);
  if (!r->status) r->status = assay_arena_new(r->arena, (size_t)q->n_factor, sizeof *shift, &shift);
  if (r->status) return false;
  for (int64_t i = 0; i < q->n_factor; i++) {
    factor[i] = (float)r->factor[i];
    shift[i] = (float)r->shift[i];
    const double size = fabs((double)factor[i]);
    // A normalization may be by 0.
    if (!(size == 0 || is_scale(size)) || (size == 0 && r->factor[i] != 0) ||
        !isfinite((double)shift[i]))
      return false;
  }
  q->factor = factor;
  q->shift = shift;
  return true;
}

static bool read_output(reader_t* r, const assay_node_t* n) {
  assay_int8_operand_t o = {0};
  assay_int8_t* q = r->q;
  if (!read_scales(r, n, 1, 2, &o) || !is_single(&o)) return false;
  q->quantizes = true;
  q->type = type_of(n->outputs[0]);
  q->scale = o.scales[0];
  q->zero = (float)o.zeros[0];
  return true;
}

static bool read_node(reader_t* r, size_t i) {
  const assay_node_t* n = r->nodes[i];
  if (is_dequantizer(n)) return true;  // looked at where it is read
  if (assay_int8_is_quantizer(n))
    return i + 1 == r->n ? read_output(r, n) : constant_of(n->inputs[0]) != NULL;
  if (assay_int8_is_anchor(n)) return read_anchor(r, n);
  if (assay_int8_is_norm(n))
    return r->q->anchor ? extends_affine(r, n) && read_norm(r, n) : start_norm(r, n);
  if (extends_affine(r, n) &&
      (is_channel_scale(r, n) ? read_channel_scale(r, n) : read_bias_node(r, n)))
    return true;
  return !r->status && read_pointwise(r, n);
}

// Float32 values are read by layers that have integers besides, and by one operation, which rounds
// as the operator does.
static bool fits_reals(const assay_int8_t* q) {
  bool reals = false, integers = q->quantizes || has_result(q);
  for (size_t i = 0; i < q->n_sources; i++) {
    const bool real = q->sources[i].kind == ASSAY_INT8_REAL;
    if (real && i && (int)i != q->other) return false;
    reals |= real;
    integers |= q->sources[i].kind == ASSAY_INT8_OPERAND;
  }
  return !reals || (integers && q->simple);
}

static bool read_all(reader_t* r) {
  assay_int8_t* q = r->q;
  const assay_node_t* last = r->nodes[r->n - 1];
  q->type = ASSAY_TYPE_FLOAT;
  for (size_t i = 0; i < r->n; i++)
    if (!read_node(r, i) || r->status) return false;
  if (!has_result(q) && !q->quantizes && !q->n_steps) return false;
  const int y = value_register(r, q->quantizes ? last->inputs[0] : last->outputs[0]);
  if (y < 0 || (has_result(q) && !settle_affine(r))) return false;
  if (y < ASSAY_INT8_SOURCES && (y || q->n_steps)) return false;
  settle_steps(r, y);
  find_simple(q);
  return fits_reals(q);
}

// ---- QLinearConv and QLinearMatMul -------------------------------------------------------------

// Their bias is integers of the sum's own scale.
static bool read_integer_bias(reader_t* r, const assay_value_t* v) {
  assay_tensor_t* t = NULL;
  int64_t* bias = NULL;
  bool ok = numbers(r, v, &t) && t->store == ASSAY_STORE_I64 && t->size == r->q->channels;
  if (ok) r->status = assay_arena_new(r->arena, (size_t)t->size, sizeof *bias, &bias);
  ok = ok && !r->status;
  for (int64_t i = 0; ok && i < t->size; i++) bias[i] = assay_i64(t)[i];
  assay_tensor_release(t);
  r->q->bias = bias;
  return ok;
}

static bool is_linear(const assay_node_t* n) {
  return is_either(n, "QLinearConv") || is_op(n, "QLinearMatMul");
}

static bool read_linear(reader_t* r) {
  enum { X, X_SCALE, X_ZERO, W, W_SCALE, W_ZERO, Y_SCALE, Y_ZERO, BIAS };
  const assay_node_t* n = r->nodes[0];
  assay_int8_t* q = r->q;
  assay_int8_operand_t y = {0};
  if (n->n_inputs < BIAS || !n->outputs[0] || assay_attr_i64(n, "channels_last", 0)) return false;
  q->anchor = n;
  q->x = (assay_int8_operand_t){.value = n->inputs[X], .type = type_of(n->inputs[X])};
  q->w = (assay_int8_operand_t){
      .value = n->inputs[W], .type = type_of(n->inputs[W]), .constant = constant_of(n->inputs[W])};
  for (size_t i = 0; i < BIAS; i++)
    if (i != X && i != W && !constant_of(n->inputs[i])) return false;
  const bool conv = is_either(n, "QLinearConv");
  const assay_tensor_t* w = q->w.constant;
  if (!is_8bit(q->x.type) || !is_8bit(q->w.type) || !is_8bit(type_of(n->outputs[0])) ||
      (conv && !w) || (w && (w->rank < 2 || !w->size)) ||
      !read_scales(r, n, X_SCALE, X_ZERO, &q->x) || !is_single(&q->x) ||
      !read_scales(r, n, W_SCALE, W_ZERO, &q->w) || !read_scales(r, n, Y_SCALE, Y_ZERO, &y) ||
      !is_single(&y))
    return false;
  if (w) q->w.axis = weight_axis(n, w->rank);
  if (w) q->channels = w->dims[q->w.axis];
  if (!is_single(&q->w) &&
      (!w || !scales_fit(r, &q->w, weight_axis(n, w->rank), w->rank, q->channels)))
    return false;
  if (!start_affine(r) || !note_affine(r, n)) return false;
  if (conv && input(n, BIAS) && !read_integer_bias(r, input(n, BIAS))) return false;
  q->quantizes = true;
  q->type = type_of(n->outputs[0]);
  q->scale = y.scales[0];
  q->zero = (float)y.zeros[0];
  add_source(r, (assay_int8_source_t){.kind = ASSAY_INT8_RESULT});
  find_simple(q);
  return settle_affine(r);
}

assay_status_t assay_int8_read(assay_arena_t* arena, const assay_node_t* const* nodes, size_t n,
                               assay_int8_t** out, assay_tensor_t** out_weights) {
  reader_t r = {.arena = arena, .nodes = nodes, .n = n};
  *out = NULL;
  *out_weights = NULL;
  if (!n || nodes[n - 1]->n_outputs != 1 || !nodes[n - 1]->outputs[0]) return NULL;
  ASSAY_TRY(assay_arena_new(arena, 1, sizeof *r.q, &r.q));
  const bool ok = n == 1 && is_linear(nodes[0]) ? read_linear(&r) : read_all(&r);
  if (ok && !r.status) {
    *out = r.q;
    *out_weights = r.weights;
    return NULL;
  }
  assay_tensor_release(r.weights);
  return r.status;
}

// ---- limits ------------------------------------------------------------------------------------

bool assay_int8_in_affine(const assay_int8_t* q, const assay_node_t* node) {
  return is_affine(q, node);
}

// How far truth may be off: it sums n products of real numbers in float64, of which terms that
// cancel as integers leave something. Each is at most 255 * 255 steps of the factor (Higham 2002,
// section 3.1: n u sum|a||b| for any order).
static double truth_limit(const assay_int8_t* q, int64_t c) {
  const double max = 0x1p16, factor = fabs((double)q->factor[q->n_factor > 1 ? c : 0]);
  const double channels = q->channels > 0 ? (double)q->channels : 1;
  const double n = q->scales_x ? 1 : q->w.constant ? (double)q->w.constant->size / channels : max;
  return (n + 2) * 0x1p-53 * n * 255 * 255 * factor;
}

// fl32(sum), the factor and their product are rounded once each; the shift once; the sum of both
// once. p: what the shift is added to.
double assay_int8_limit(const assay_int8_t* q, double t, int64_t c) {
  const double u = 0x1p-24, s = fabs((double)q->shift[q->n_factor > 1 ? c : 0]);
  const double p = fabs(t - (double)q->shift[q->n_factor > 1 ? c : 0]) + u * s;
  return (1 + 0x1p-18) * u * (3 * p + s + fabs(t)) + truth_limit(q, c) + 0x1p-147;
}
