// A bias of integers that layers of unlike scales read.
//
// Integers of a bias are in units of the scales of a layer's input and its weight. Where layers
// share a bias of the float network, and quantizers keep one tensor for it, its integers can be
// right for one of them only.
// Source: ONNX Runtime's quantizer, which writes one int32 tensor for each bias of the float model
// (onnxruntime/python/tools/quantization, quantize_bias_static).
#include "diagnose/causes/shared_bias.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "diagnose/causes/surroundings.h"
#include "diagnose/proposals.h"

enum { SCALES = 2 };

// Where an operator has its bias, and the scales whose product is the bias' unit.
typedef struct biased {
  const char *domain, *op;
  size_t bias, scales[SCALES];
} biased_t;

static const biased_t rows[] = {
    {"", "QLinearConv", 8, {1, 4}},
    {"com.microsoft", "QGemm", 6, {1, 4}},
};

static const biased_t* row_of(const assay_node_t* n) {
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    const biased_t* r = &rows[i];
    if (!strcmp(n->domain, r->domain) && !strcmp(n->op_type, r->op) && n->n_inputs > r->bias)
      return r;
  }
  return NULL;
}

// Units of a layer's bias by channel; n 0: not known.
typedef struct units {
  double* at;
  int64_t n;
} units_t;

static double unit(const units_t* u, int64_t i) { return u->at[u->n == 1 ? 0 : i]; }

static assay_status_t multiply(units_t* u, const assay_tensor_t* scale) {
  const int64_t n = u->n > scale->size ? u->n : scale->size;
  const bool fits = scale->store == ASSAY_STORE_F64 && (scale->size == 1 || scale->size == n) &&
                    (u->n == 1 || u->n == n);
  double* at = NULL;
  if (fits) ASSAY_TRY(assay_new_array((size_t)n, sizeof *at, &at));
  for (int64_t i = 0; fits && i < n; i++)
    at[i] = unit(u, i) * assay_f64(scale)[scale->size == 1 ? 0 : i];
  assay_free(u->at);
  *u = (units_t){at, fits ? n : 0};
  return NULL;
}

static assay_status_t units_of(const assay_node_t* n, const biased_t* row, units_t* out) {
  *out = (units_t){0};
  ASSAY_TRY(assay_new_array(1, sizeof *out->at, &out->at));
  out->at[0] = 1;
  out->n = 1;
  for (size_t i = 0; out->n && i < SCALES; i++) {
    const assay_value_t* v = n->inputs[row->scales[i]];
    assay_tensor_t* wide = NULL;
    if (!v || !v->constant) {
      out->n = 0;
      continue;
    }
    ASSAY_TRY(assay_tensor_widen(v->constant, &wide));
    const assay_status_t st = multiply(out, wide);
    assay_tensor_release(wide);
    if (st) return st;
  }
  return NULL;
}

// The bias of a layer; NULL: it has none that is stored as integers.
static const assay_value_t* bias_of(const assay_node_t* n) {
  const biased_t* row = row_of(n);
  const assay_value_t* v = row ? n->inputs[row->bias] : NULL;
  return v && v->constant && v->constant->kind == ASSAY_KIND_TENSOR &&
                 v->constant->type == ASSAY_TYPE_INT32
             ? v
             : NULL;
}

// The integers in a layer's own units of what they are in other units; false: the units are the
// same.
static assay_status_t convert(const assay_tensor_t* bias, const units_t* own, const units_t* its,
                              assay_tensor_t** out, bool* out_differs) {
  static const double DIFFERS = 1e-4;
  *out_differs = false;
  ASSAY_TRY(assay_tensor_create(ASSAY_TYPE_INT32, bias->rank, bias->dims, out));
  for (int64_t i = 0; i < bias->size; i++) {
    const double times = unit(its, i) / unit(own, i);
    *out_differs |= fabs(times - 1) > DIFFERS;
    assay_i64(*out)[i] =
        assay_type_saturate(ASSAY_TYPE_INT32, rint((double)assay_i64(bias)[i] * times));
  }
  return NULL;
}

static assay_status_t repair(const assay_node_t* node, const assay_node_t* owner, const char* cause,
                             const units_t* own, const units_t* its, assay_repair_t* out,
                             bool* out_made) {
  const assay_value_t* v = bias_of(node);
  assay_tensor_t* bias = NULL;
  bool differs = false;
  *out = (assay_repair_t){.node = node, .cause = cause, .n_edits = 1};
  out->edits[0] = (assay_repair_edit_t){.kind = ASSAY_EDIT_CONSTANT, .input = row_of(node)->bias};
  ASSAY_TRY(assay_tensor_widen(v->constant, &bias));
  const bool fit = (own->n == 1 || own->n == bias->size) && (its->n == 1 || its->n == bias->size);
  assay_status_t st = fit ? convert(bias, own, its, &out->edits[0].tensor, &differs) : NULL;
  assay_tensor_release(bias);
  *out_made = !st && differs;
  if (!*out_made) return assay_repair_deinit(out), st;
  snprintf(out->text, sizeof out->text,
           "integers of its own: the bias '%.50s' is in units of '%.50s' (%.4g), and is read in "
           "units of %.4g, %.3g times as large",
           v->name, owner->label, unit(its, 0), unit(own, 0), unit(own, 0) / unit(its, 0));
  return NULL;
}

assay_status_t assay_shared_bias_repair(const assay_node_t* node, const assay_node_t* owner,
                                        const char* cause, assay_repair_t* out, bool* out_made) {
  units_t own = {0}, its = {0};
  *out_made = false;
  if (node == owner || !bias_of(node) || bias_of(owner) != bias_of(node)) return NULL;
  assay_status_t st = units_of(node, row_of(node), &own);
  if (!st && own.n) st = units_of(owner, row_of(owner), &its);
  if (!st && own.n && its.n) st = repair(node, owner, cause, &own, &its, out, out_made);
  assay_free(own.at);
  assay_free(its.at);
  return st;
}

size_t assay_shared_bias_layers(const struct assay_surroundings* around, const assay_node_t* node,
                                const assay_node_t* const** out) {
  const assay_value_t* v = bias_of(node);
  const size_t n = v ? assay_around_readers(around, v, out) : 0;
  return n > 1 ? n : 0;
}

assay_status_t assay_propose_shared_bias(const assay_suspect_t* s, const char* cause,
                                         const assay_trial_t* t, bool* stop) {
  const assay_node_t* const* readers = NULL;
  const size_t n = s->around ? assay_shared_bias_layers(s->around, s->node, &readers) : 0;
  for (size_t i = 0; i < n && !*stop; i++) {
    assay_repair_t r;
    bool made = false;
    ASSAY_TRY(assay_shared_bias_repair(s->node, readers[i], cause, &r, &made));
    if (made) ASSAY_TRY(assay_offer(t, &r, stop));
  }
  return NULL;
}
