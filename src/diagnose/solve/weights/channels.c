// Weights whose channels are each off by a factor, and the bias: a BatchNormalization folded with
// another epsilon, weights normalized along the wrong dimension. Each channel of the output has two
// unknown numbers, however many weights there are.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "diagnose/solve/missing.h"

// Where a node has its channels.
typedef struct layer {
  int out_axis;     // of the output
  int weight_axis;  // of input 1
  bool has_bias;    // input 2
} layer_t;

static bool is_op(const assay_node_t* n, const char* op_type) {
  return !*n->domain && strcmp(n->op_type, op_type) == 0;
}

static int64_t attr_i(const assay_node_t* n, const char* name) {
  for (size_t i = 0; i < n->n_attrs; i++)
    if (strcmp(n->attrs[i].name, name) == 0 && n->attrs[i].type == ASSAY_ATTR_INT)
      return n->attrs[i].u.i;
  return 0;
}

static bool layer_of(const assay_missing_search_t* s, const assay_tensor_t* want, layer_t* out) {
  const assay_node_t* n = s->node;
  if (s->n_in < 2 || !s->in[1] || !n->inputs[1]->constant || s->in[1]->store != ASSAY_STORE_F64 ||
      s->in[1]->rank < 2 || want->rank < 2)
    return false;
  *out = (layer_t){.out_axis = 1, .has_bias = s->n_in > 2 && s->in[2] && n->inputs[2]->constant};
  if (is_op(n, "Conv")) return true;
  if (is_op(n, "Gemm")) return out->weight_axis = attr_i(n, "transB") ? 0 : 1, true;
  if (!is_op(n, "MatMul")) return false;
  out->out_axis = want->rank - 1;
  out->weight_axis = s->in[1]->rank - 1;
  return s->in[1]->rank == 2;
}

typedef struct channel {
  double n, x, g, xx, xg, factor, offset;
} channel_t;

// The factor and the offset of each channel, by least squares.
static assay_status_t fit_channels(const assay_tensor_t* x, const assay_tensor_t* want, int axis,
                                   bool offsets, channel_t** out) {
  const int64_t n = want->dims[axis];
  int64_t inner = 1;
  for (int i = axis + 1; i < want->rank; i++) inner *= want->dims[i];
  ASSAY_TRY(assay_new_array((size_t)n, sizeof **out, out));
  for (int64_t i = 0; i < want->size; i++) {
    channel_t* c = &(*out)[i / inner % n];
    const double u = assay_f64(x)[i], g = assay_f64(want)[i];
    c->n++;
    c->x += u;
    c->g += g;
    c->xx += u * u;
    c->xg += u * g;
  }
  for (int64_t i = 0; i < n; i++) {
    channel_t* c = &(*out)[i];
    const double var = c->xx - c->x * c->x / c->n;
    if (offsets)
      c->factor = var > 1e-12 * c->xx ? (c->xg - c->x * c->g / c->n) / var : 1;
    else
      c->factor = c->xx > 0 ? c->xg / c->xx : 1;
    c->offset = offsets ? (c->g - c->factor * c->x) / c->n : 0;
  }
  return NULL;
}

static assay_status_t scaled_weights(const assay_tensor_t* w, int axis, const channel_t* c,
                                     assay_tensor_t** out) {
  int64_t inner = 1;
  for (int i = axis + 1; i < w->rank; i++) inner *= w->dims[i];
  ASSAY_TRY(assay_tensor_copy(w, out));
  for (int64_t i = 0; i < w->size; i++) assay_f64(*out)[i] *= c[i / inner % w->dims[axis]].factor;
  return NULL;
}

static void describe(const assay_missing_search_t* s, const channel_t* c, int64_t n, bool bias,
                     char* out, size_t size) {
  double low = INFINITY, high = -INFINITY;
  long long changed = 0;
  for (int64_t i = 0; i < n; i++) {
    low = fmin(low, c[i].factor);
    high = fmax(high, c[i].factor);
    changed += fabs(c[i].factor - 1) > 1e-5 || c[i].offset != 0;
  }
  snprintf(out, size, "%lld of %lld channels of '%.80s' times %.6g to %.6g%s", changed,
           (long long)n, s->node->inputs[1]->name, low, high, bias ? ", and another bias" : "");
}

static assay_status_t try_channels(assay_missing_search_t* s, const assay_missing_place_t* p,
                                   const layer_t* l) {
  const int64_t n = p->want->dims[l->out_axis];
  channel_t* c = NULL;
  assay_repair_t r = {.node = s->node, .cause = "scaled channels", .n_edits = 1};
  ASSAY_TRY(fit_channels(p->x, p->want, l->out_axis, l->has_bias, &c));
  r.edits[0] = (assay_repair_edit_t){.kind = ASSAY_EDIT_CONSTANT, .input = 1};
  assay_status_t st = scaled_weights(s->in[1], l->weight_axis, c, &r.edits[0].tensor);
  if (!st && l->has_bias) {
    r.edits[r.n_edits++] = (assay_repair_edit_t){.kind = ASSAY_EDIT_CONSTANT, .input = 2};
    st = assay_tensor_copy(s->in[2], &r.edits[1].tensor);
    for (int64_t i = 0; !st && i < n; i++)
      assay_f64(r.edits[1].tensor)[i] = assay_f64(s->in[2])[i] * c[i].factor + c[i].offset;
  }
  describe(s, c, n, l->has_bias, r.text, sizeof r.text);
  assay_free(c);
  if (!st) st = assay_missing_offer(s, &r);
  assay_repair_deinit(&r);
  return st;
}

assay_status_t assay_missing_channels(assay_missing_search_t* s, const assay_missing_place_t* p) {
  enum { MIN_EQUATIONS = 4 };  // of each channel
  layer_t l;
  if (!p->want || p->source || p->kind != ASSAY_EDIT_AFTER || !assay_tensor_alike(p->x, p->want) ||
      p->want->store != ASSAY_STORE_F64 || !layer_of(s, p->want, &l))
    return NULL;
  const int64_t n = p->want->dims[l.out_axis];
  if (n != s->in[1]->dims[l.weight_axis] || (l.has_bias && s->in[2]->size != n) ||
      p->want->size < MIN_EQUATIONS * n)
    return NULL;
  return try_channels(s, p, &l);
}
