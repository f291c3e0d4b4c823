// The quantizers of a model, and what reaches each of them.
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "diagnose/quantizers/quantizers.h"
#include "diagnose/quantizers/write_out.h"
#include "onnx/load.h"
#include "ops/quant/book.h"
#include "ops/quant/limits.h"
#include "ops/quant/quant.h"

enum { DRAWN = 1 << 14, MAX_CHANNELS = 1 << 16 };

void assay_quantizer_scales_deinit(assay_quantizer_scales_t* s) {
  assay_free(s->scale);
  assay_free(s->zero);
  *s = (assay_quantizer_scales_t){0};
}

assay_status_t assay_quantizer_scales_create(int axis, int64_t n, assay_quantizer_scales_t* out) {
  assay_quantizer_scales_t s = {.axis = axis, .n = n};
  ASSAY_TRY(assay_new_array((size_t)n, sizeof *s.scale, &s.scale));
  assay_status_t st = assay_new_array((size_t)n, sizeof *s.zero, &s.zero);
  if (st) return assay_free(s.scale), st;
  *out = s;
  return NULL;
}

int64_t assay_quantizer_scale_at(const assay_quantizer_scales_t* s, const assay_tensor_t* t,
                                 int64_t i) {
  if (s->axis < 0 || s->axis >= t->rank) return 0;
  return i / assay_dims_product(t->dims, s->axis + 1, t->rank) % s->n;
}

// ---- which -------------------------------------------------------------------------------------

static bool is_op(const assay_node_t* n, const char* op_type) {
  return n && strcmp(n->op_type, op_type) == 0;
}

static assay_tensor_t* constant_of(const assay_value_t* v) {
  if (!v) return NULL;
  if (v->constant || !is_op(v->producer, "Constant")) return v->constant;
  const assay_attr_t* a = assay_node_attr(v->producer, "value");
  return a && a->type == ASSAY_ATTR_TENSOR ? a->u.t : NULL;
}

bool assay_quantizer_is_read_by(const assay_node_t* quantizer, const assay_node_t* n) {
  const assay_value_t* v = is_op(n, "DequantizeLinear") && n->n_inputs ? n->inputs[0] : NULL;
  if (!v) return false;
  return v == quantizer->outputs[0] ||
         (v->producer && assay_quant_limited(v->producer) == quantizer);
}

static const assay_node_t* first_dequantizer(const assay_node_t* n) {
  const assay_graph_t* g = n->graph;
  for (size_t i = 0; i < g->n_nodes; i++)
    if (assay_quantizer_is_read_by(n, g->nodes[i])) return g->nodes[i];
  return NULL;
}

// Reads the scales of a node; false: not of a form that is looked at.
static assay_status_t read_scales(const assay_quantizer_site_t* s, const assay_node_t* n,
                                  assay_quantizer_scales_t* out, bool* out_known) {
  assay_tensor_t* scale = constant_of(n->inputs[1]);
  assay_tensor_t* zero = n->n_inputs > 2 && n->inputs[2] ? constant_of(n->inputs[2]) : NULL;
  assay_tensor_t *ws = NULL, *wz = NULL;
  int64_t axis = assay_attr_i64(n, "axis", 1);
  const int rank = s->value->type && s->value->type->has_shape ? s->value->type->rank : 0;
  *out_known = false;
  if (axis < 0) axis += rank;
  if (rank == 1) axis = 0;
  if (!scale || (n->n_inputs > 2 && n->inputs[2] && !zero) ||
      assay_attr_i64(n, "block_size", 0) != 0)
    return NULL;
  ASSAY_TRY(assay_tensor_widen(scale, &ws));
  assay_status_t st = zero ? assay_tensor_widen(zero, &wz) : NULL;
  const bool fits = !st && ws->store == ASSAY_STORE_F64 && ws->size &&
                    (!wz || (wz->store == ASSAY_STORE_I64 && wz->size == ws->size)) &&
                    (ws->size == 1 || (ws->rank == 1 && axis < rank));
  if (fits) st = assay_quantizer_scales_create(ws->size == 1 ? -1 : (int)axis, ws->size, out);
  for (int64_t i = 0; fits && !st && i < ws->size; i++) {
    out->scale[i] = assay_f64(ws)[i];
    out->zero[i] = wz ? (double)assay_i64(wz)[i] : 0;
    if (!(out->scale[i] > 0)) out->scale[i] = 0;
  }
  assay_tensor_release(ws);
  assay_tensor_release(wz);
  *out_known = fits && !st;
  return st;
}

static bool is_integer_of(assay_type_t type, int bits) {
  return type && assay_type_is_integer(type) && assay_type_bits(type) <= bits;
}

// Whether another node dequantizes the same integers by a scale of its own: then it is not the
// scales that are wrong but that the integers are shared (causes/shared_bias.c).
static bool is_shared(const assay_node_t* n) {
  const assay_graph_t* g = n->graph;
  for (size_t i = 0; i < g->n_nodes; i++)
    if (g->nodes[i] != n && is_op(g->nodes[i], "DequantizeLinear") &&
        g->nodes[i]->inputs[0] == n->inputs[0] && g->nodes[i]->inputs[1] != n->inputs[1])
      return true;
  return false;
}

// What node n quantizes, if it does; type NONE: it does not.
static assay_quantizer_site_t site_of(const assay_node_t* n, bool by_golden) {
  assay_quantizer_site_t s = {.node = n, .axes = {-1, -1}};
  if (*n->domain || n->n_inputs < 2 || !n->inputs[0] || !n->inputs[1] || !n->outputs[0]) return s;
  const assay_valtype_t* t = NULL;
  if (is_op(n, "QuantizeLinear")) {
    t = n->outputs[0]->type;
    s.value = n->inputs[0];
    s.weight = constant_of(s.value) != NULL;
    s.dequantize = first_dequantizer(n);
  } else if (is_op(n, "DequantizeLinear") && constant_of(n->inputs[0])) {
    t = n->inputs[0]->type;
    s.value = n->inputs[0];
    s.weight = s.stored = true;
    s.dequantize = n;
  }
  if (!t || t->kind != ASSAY_KIND_TENSOR || !s.dequantize) return s;
  // Biases are of 32 bits, and cost nothing.
  s.bias = s.stored && t->elem == ASSAY_TYPE_INT32;
  if ((by_golden && s.bias && !is_shared(n)) || is_integer_of(t->elem, s.stored ? 8 : 16))
    s.type = t->elem;
  return s;
}

// The scales of what dequantizes it, if they are others.
static assay_status_t read_pair(assay_quantizer_site_t* s) {
  assay_quantizer_scales_t reads = {0};
  bool known = false;
  if (s->stored || s->has.n != 1) return NULL;
  ASSAY_TRY(read_scales(s, s->dequantize, &reads, &known));
  if (known && reads.n == 1 && reads.scale[0] > 0 &&
      (fabs(reads.scale[0] / s->has.scale[0] - 1) > 1e-6 || reads.zero[0] != s->has.zero[0]))
    s->reads = reads;
  else
    assay_quantizer_scales_deinit(&reads);
  return NULL;
}

static void site_deinit(assay_quantizer_site_t* s) {
  assay_quantizer_scales_deinit(&s->has);
  assay_quantizer_scales_deinit(&s->reads);
  assay_quantizer_scales_deinit(&s->fits);
  assay_quantizer_scales_deinit(&s->apart);
  for (int k = 0; k < ASSAY_QUANTIZER_AXES; k++) assay_free(s->peaks[k]);
  assay_free(s->drawn);
}

static assay_status_t add_site(assay_quantizers_t* q, assay_quantizer_site_t* s) {
  s->min = (double)INFINITY;
  s->max = -(double)INFINITY;
  assay_status_t st = assay_grow(&q->at, &q->capacity, q->n + 1, sizeof *q->at);
  if (st) return site_deinit(s), st;
  q->at[q->n++] = *s;
  return NULL;
}

// A book's numbers are steps that need not be alike: its scale is what they are apart on average.
static assay_status_t add_book(assay_quantizers_t* q, const assay_node_t* n) {
  assay_quantizer_site_t s = {.node = n,
                              .dequantize = n,
                              .value = n->outputs[0],
                              .weight = true,
                              .stored = true,
                              .book = true,
                              .type = ASSAY_TYPE_UINT8,
                              .axes = {-1, -1}};
  ASSAY_TRY(assay_quantizer_scales_create(-1, 1, &s.has));
  s.high = (double)(assay_book_size(n, &s.has.scale[0]) - 1);
  return add_site(q, &s);
}

// Limits of fewer bits before what dequantizes it are the ends of its range.
static void narrow(assay_quantizer_site_t* s) {
  const assay_value_t* v = s->stored ? NULL : s->dequantize->inputs[0];
  assay_quant_limits_t l;
  while (v && v->producer && v->producer != s->node && assay_quant_limits_of(v->producer, &l)) {
    s->low = fmax(s->low, l.low);
    s->high = fmin(s->high, l.high);
    s->cuts |= isfinite(l.low) && !l.low_saturates && l.low == s->has.zero[0];
    v = assay_quant_limited_value(v->producer);
  }
}

assay_status_t assay_quantizers_find(const assay_model_t* model, bool by_golden,
                                     assay_quantizers_t* out) {
  const assay_graph_t* g = model->graph;
  for (size_t i = 0; i < g->n_nodes; i++) {
    assay_quantizer_site_t s = site_of(g->nodes[i], by_golden);
    bool known = false;
    if (!by_golden && assay_is_book(g->nodes[i])) ASSAY_TRY(add_book(out, g->nodes[i]));
    if (!s.type) continue;
    ASSAY_TRY(read_scales(&s, s.node, &s.has, &known));
    if (!known) continue;
    assay_status_t st = read_pair(&s);
    if (st) return site_deinit(&s), st;
    s.low = (double)assay_type_saturate(s.type, -(double)INFINITY);
    s.high = (double)assay_type_saturate(s.type, (double)INFINITY);
    s.cuts = !s.stored && assay_quant_cuts_at_zero(s.node);
    narrow(&s);
    ASSAY_TRY(add_site(out, &s));
  }
  return NULL;
}

void assay_quantizers_deinit(assay_quantizers_t* q) {
  for (size_t i = 0; i < q->n; i++) site_deinit(&q->at[i]);
  assay_free(q->at);
  assay_free(q->outputs);
  assay_free(q->change);
  assay_outputs_free(q->fixed, q->n_outputs);
  assay_model_release(q->written_out);
  *q = (assay_quantizers_t){0};
}

assay_status_t assay_quantizers_view(assay_quantizers_t* q, const assay_model_t* model,
                                     const assay_model_t** out) {
  assay_model_t* copy = NULL;
  *out = model;
  if (!assay_has_qlinear(model)) return NULL;
  if (!q->written_out) {
    ASSAY_TRY(assay_model_clone(model, &copy));
    assay_status_t st = assay_qlinear_write_out(copy);
    if (!st) st = assay_onnx_prepare(copy, 0, NULL, &q->written_out);
    assay_model_release(copy);
    if (st) return st;
  }
  *out = q->written_out;
  return NULL;
}

// ---- what reaches them -------------------------------------------------------------------------

// The axes that channels may lie along: those of a weight's outputs, else 1 and the last one.
static assay_status_t begin_axes(assay_quantizer_site_t* s, const assay_tensor_t* t) {
  const int last = t->rank - 1;
  int axes[ASSAY_QUANTIZER_AXES] = {t->rank > 1 ? 1 : -1, last > 1 ? last : -1};
  if (s->weight && t->rank > 1) axes[0] = 0, axes[1] = 1;
  if (s->has.axis >= 0) axes[0] = s->has.axis, axes[1] = -1;
  for (int k = 0; k < ASSAY_QUANTIZER_AXES; k++) {
    const int64_t n = axes[k] >= 0 ? t->dims[axes[k]] : 0;
    if (n < 2 || n > MAX_CHANNELS || s->peaks[k]) continue;
    ASSAY_TRY(assay_new_array((size_t)n, sizeof *s->peaks[k], &s->peaks[k]));
    s->axes[k] = axes[k];
    s->n_peaks[k] = n;
  }
  return NULL;
}

static void add_peaks(assay_quantizer_site_t* s, const assay_tensor_t* t, int k) {
  if (s->axes[k] < 0 || s->axes[k] >= t->rank || t->dims[s->axes[k]] != s->n_peaks[k]) return;
  const int64_t inner = assay_dims_product(t->dims, s->axes[k] + 1, t->rank);
  for (int64_t i = 0; i < t->size; i++) {
    double* peak = &s->peaks[k][i / inner % s->n_peaks[k]];
    const double x = fabs(assay_f64(t)[i]);
    if (x > *peak && isfinite(x)) *peak = x;
  }
}

static void add_ranges(assay_quantizer_site_t* s, const assay_tensor_t* t) {
  for (int64_t i = 0; i < t->size; i++) {
    const double x = assay_f64(t)[i];
    if (!isfinite(x)) continue;
    const int64_t at = assay_quantizer_scale_at(&s->has, t, i);
    const double q = s->has.scale[at] > 0 ? rint(x / s->has.scale[at]) + s->has.zero[at] : 0;
    s->elements++;
    // What a cut at 0 takes away is meant.
    s->outside += q > s->high || (q < s->low && !(s->cuts && x < 0));
    s->min = fmin(s->min, x);
    s->max = fmax(s->max, x);
  }
}

static assay_status_t draw(assay_quantizer_site_t* s, const assay_tensor_t* t, size_t samples) {
  const int64_t want = (int64_t)(DRAWN / (samples ? samples : 1)) + 1;
  const int64_t step = t->size > want ? t->size / want | 1 : 1;
  if (!s->drawn) ASSAY_TRY(assay_new_array(2 * DRAWN, sizeof *s->drawn, &s->drawn));
  for (int64_t i = 0; i < t->size && s->n_drawn < 2 * DRAWN; i += step)
    if (isfinite(assay_f64(t)[i])) s->drawn[s->n_drawn++] = assay_f64(t)[i];
  return NULL;
}

assay_status_t assay_quantizer_integers(const assay_quantizer_site_t* s, assay_tensor_t** out) {
  return assay_tensor_widen(constant_of(s->value), out);
}

double assay_quantizer_other_sign(double q) { return q < 0 ? q + 256 : q > 127 ? q - 256 : q; }

// Stored integers as the numbers that they stand for.
static assay_status_t read_stored(const assay_quantizer_site_t* s, assay_tensor_t** out) {
  assay_tensor_t *wide = NULL, *t = NULL;
  ASSAY_TRY(assay_quantizer_integers(s, &wide));
  assay_status_t st = assay_tensor_create(ASSAY_TYPE_FLOAT, wide->rank, wide->dims, &t);
  for (int64_t i = 0; !st && i < wide->size; i++) {
    const int64_t at = assay_quantizer_scale_at(&s->has, wide, i);
    assay_f64(t)[i] = ((double)assay_i64(wide)[i] - s->has.zero[at]) * s->has.scale[at];
  }
  assay_tensor_release(wide);
  if (!st) *out = t;
  return st;
}

static assay_status_t observe(assay_quantizer_site_t* s, const assay_evaluator_t* truth,
                              size_t samples) {
  assay_tensor_t *t = NULL, *found = s->stored ? NULL : assay_evaluator_get(truth, s->value);
  if (s->book || (s->weight && s->elements)) return NULL;  // the same in every sample
  if (s->stored)
    ASSAY_TRY(read_stored(s, &t));
  else if (found && found->kind == ASSAY_KIND_TENSOR)
    ASSAY_TRY(assay_tensor_widen(found, &t));
  assay_status_t st = NULL;
  if (t && t->store == ASSAY_STORE_F64) {
    st = begin_axes(s, t);
    for (int k = 0; !st && k < ASSAY_QUANTIZER_AXES; k++) add_peaks(s, t, k);
    if (!st) st = draw(s, t, s->weight ? 1 : samples);
    if (!st) add_ranges(s, t);
  }
  assay_tensor_release(t);
  return st;
}

assay_status_t assay_quantizers_observe(assay_quantizers_t* q, const assay_evaluator_t* truth,
                                        size_t samples) {
  for (size_t i = 0; i < q->n; i++) ASSAY_TRY(observe(&q->at[i], truth, samples));
  return NULL;
}
