// Constants whose rows, columns or channels stand in another order: reversed, in blocks that have
// changed places, in blocks of blocks that were counted the other way round.
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "diagnose/proposals.h"

enum { MANY = 1 << 24, FEW = 1 << 21 };  // elements; larger constants are left alone

static bool is_float(const assay_tensor_t* t) {
  return t && t->kind == ASSAY_KIND_TENSOR && t->store == ASSAY_STORE_F64;
}

// An order of a dimension: element i is what stood at source(order, i).
typedef struct order {
  // [outer, inner, rest] counted as [inner, outer, rest]; in blocks: each block of so many.
  int64_t outer, inner, rest;
  bool in_blocks;
  int places[4];  // BLOCKS: equal blocks, in this order
  int n_places;
  int64_t size;
} order_t;

static int64_t source(const order_t* o, int64_t i) {
  if (o->n_places) {
    const int64_t block = o->size / o->n_places;
    return o->places[i / block] * block + i % block;
  }
  const int64_t all = o->outer * o->inner * o->rest, first = i / all * all;
  const int64_t at = (i - first) / o->rest;
  return first + ((at % o->outer) * o->inner + at / o->outer) * o->rest + i % o->rest;
}

// ---- offers ------------------------------------------------------------------------------------

static assay_status_t reordered(const assay_tensor_t* x, int axis, const order_t* o,
                                assay_tensor_t** out) {
  const int64_t inner = assay_dims_product(x->dims, axis + 1, x->rank), d = x->dims[axis];
  ASSAY_TRY(assay_tensor_create(x->type, x->rank, x->dims, out));
  for (int64_t k = 0; k < x->size / inner; k++)
    memcpy(assay_f64(*out) + k * inner, assay_f64(x) + ((k / d) * d + source(o, k % d)) * inner,
           (size_t)inner * sizeof(double));
  return NULL;
}

static assay_status_t add_edit(assay_repair_t* r, size_t input, const assay_tensor_t* x, int axis,
                               const order_t* o) {
  assay_tensor_t* y = NULL;
  ASSAY_TRY(reordered(x, axis, o, &y));
  r->edits[r->n_edits++] =
      (assay_repair_edit_t){.kind = ASSAY_EDIT_CONSTANT, .input = input, .tensor = y};
  return NULL;
}

static void describe(const order_t* o, const char* name, int axis, bool with_bias,
                     assay_repair_t* r) {
  const char* both = with_bias ? " and the bias" : "";
  if (o->in_blocks)
    snprintf(r->text, sizeof r->text,
             "'%.100s'%s with each %lld counted as %lld times %lld along axis %d, not %lld times "
             "%lld",
             name, both, (long long)(o->outer * o->inner), (long long)o->inner, (long long)o->outer,
             axis, (long long)o->outer, (long long)o->inner);
  else if (!o->n_places)
    snprintf(r->text, sizeof r->text,
             "'%.100s'%s counted as %lld times %lld along axis %d, not %lld times %lld", name, both,
             (long long)o->inner, (long long)o->outer, axis, (long long)o->outer,
             (long long)o->inner);
  else if (o->n_places == 2)
    snprintf(r->text, sizeof r->text, "'%.100s'%s with its halves exchanged along axis %d", name,
             both, axis);
  else
    snprintf(r->text, sizeof r->text,
             "'%.100s'%s with its thirds in the order %d,%d,%d along axis %d", name, both,
             o->places[0], o->places[1], o->places[2], axis);
}

// What an offer is made for: a constant, and the bias that goes with it, if it has one.
typedef struct weight {
  const assay_suspect_t* s;
  const char* cause;
  const assay_trial_t* t;
  bool* stop;
  size_t input;
  const assay_tensor_t *x, *bias;
  int out_axis;  // the axis that the bias lies along; -1: none does
} weight_t;

static assay_status_t offer_order(const weight_t* w, int axis, const order_t* o, bool with_bias) {
  assay_repair_t r = {.node = w->s->node, .cause = w->cause};
  assay_status_t st = add_edit(&r, w->input, w->x, axis, o);
  if (!st && with_bias) st = add_edit(&r, 2, w->bias, 0, o);
  if (st) return assay_repair_deinit(&r), st;
  describe(o, w->s->node->inputs[w->input]->name, axis, with_bias, &r);
  return assay_offer(w->t, &r, w->stop);
}

static assay_status_t offer(const weight_t* w, int axis, const order_t* o) {
  if (*w->stop) return NULL;
  ASSAY_TRY(offer_order(w, axis, o, false));
  return w->bias && axis == w->out_axis && !*w->stop ? offer_order(w, axis, o, true) : NULL;
}

// ---- orders ------------------------------------------------------------------------------------

static assay_status_t offer_blocks(const weight_t* w, int axis) {
  static const int thirds[][3] = {{0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
  order_t o = {.size = w->x->dims[axis]};
  if (o.size % 2 == 0) {
    o.n_places = 2;
    o.places[0] = 1, o.places[1] = 0;
    ASSAY_TRY(offer(w, axis, &o));
  }
  for (size_t k = 0; o.size % 3 == 0 && k < sizeof thirds / sizeof *thirds; k++) {
    o.n_places = 3;
    memcpy(o.places, thirds[k], sizeof thirds[k]);
    ASSAY_TRY(offer(w, axis, &o));
  }
  return NULL;
}

// Pairs and triples (queries, keys and values; gates; real and imaginary parts) beside each other
// or apart, whole or in blocks; and every other way of counting without blocks.
static assay_status_t offer_counts(const weight_t* w, int axis) {
  enum { MAX = 64 };  // blocks
  const int64_t d = w->x->dims[axis];
  for (int64_t outer = 2; outer <= d / 2; outer++) {
    if (d % outer) continue;
    for (int64_t inner = 2; inner <= d / outer; inner++) {
      const int64_t rest = d / outer / inner;
      if (d / outer % inner || (outer > MAX && inner > MAX)) continue;
      if (rest > 1 && outer > 3 && inner > 3) continue;
      if (rest == 1 && (outer == 2 || inner == 2)) continue;  // as pairs in one block
      const order_t o = {.outer = outer, .inner = inner, .rest = rest, .size = d};
      ASSAY_TRY(offer(w, axis, &o));
    }
  }
  return NULL;
}

// Pairs beside each other or halves, in each block or in all: what heads turn by rotary embeddings.
static assay_status_t offer_pairs(const weight_t* w, int axis) {
  enum { LEAST = 4 };  // elements of a block
  const int64_t d = w->x->dims[axis];
  for (int64_t block = LEAST; block <= d; block += 2) {
    if (d % block) continue;
    order_t o = {.outer = 2, .inner = block / 2, .rest = 1, .in_blocks = true, .size = d};
    ASSAY_TRY(offer(w, axis, &o));
    o.outer = block / 2, o.inner = 2;
    if (block > LEAST) ASSAY_TRY(offer(w, axis, &o));
  }
  return NULL;
}

static int bias_axis(const assay_node_t* n) {
  if (strcmp(n->op_type, "Conv") == 0) return 0;
  if (strcmp(n->op_type, "ConvTranspose") == 0) return 1;
  if (strcmp(n->op_type, "Gemm") == 0) return assay_attr_i64(n, "transB", 0) ? 0 : 1;
  return -1;
}

// How many axes of a constant may be in another order: kernels' places may not, which stand behind
// the first two that are no 1.
static int ordered_axes(const assay_node_t* n, const assay_tensor_t* x) {
  int axes = 0;
  if (n->op && n->op->flags & ASSAY_OP_POINTWISE) return x->rank;
  for (int seen = 0; axes < x->rank && seen < 2; axes++) seen += x->dims[axes] > 1;
  return axes;
}

// Sources: channels of TensorFlow's depthwise kernels, onnx/onnx-tensorflow issue 306; queries,
// keys and values by head or one after the other, vllm-project/vllm pull request 53114; rotary
// embeddings by pairs or halves, huggingface/transformers convert_llama_weights_to_hf.py.
assay_status_t assay_propose_blocks(const assay_suspect_t* s, const char* cause,
                                    const assay_trial_t* t, bool* stop) {
  static const char* const ops[] = {"Conv", "ConvTranspose",      "Gemm",   "MatMul", "Add",
                                    "Mul",  "BatchNormalization", "Gather", "PRelu"};
  bool is_one = false;
  for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
    is_one |= strcmp(s->node->op_type, ops[i]) == 0;
  for (size_t i = 0; is_one && i < s->n_in && !*stop; i++) {
    assay_tensor_t *x = NULL, *bias = NULL;
    const int out_axis = i == 1 ? bias_axis(s->node) : -1;
    ASSAY_TRY(assay_suspect_constant(s, i, &x));
    assay_status_t st = out_axis >= 0 ? assay_suspect_constant(s, 2, &bias) : NULL;
    const bool fits = is_float(x) && x->rank > out_axis && is_float(bias) && bias->rank == 1 &&
                      out_axis >= 0 && bias->size == x->dims[out_axis];
    const weight_t w = {s, cause, t, stop, i, x, fits ? bias : NULL, out_axis};
    const int axes = is_float(x) && x->size <= FEW ? ordered_axes(s->node, x) : 0;
    for (int axis = 0; !st && axis < axes; axis++) {
      if (x->dims[axis] < 4) continue;
      st = offer_blocks(&w, axis);
      if (!st) st = offer_counts(&w, axis);
      if (!st) st = offer_pairs(&w, axis);
    }
    assay_tensor_release(x);
    assay_tensor_release(bias);
    if (st) return st;
  }
  return NULL;
}

// ---- reversed ----------------------------------------------------------------------------------

// Element i of a tensor that is reversed along the axes [first, end).
static int64_t mirrored(const assay_tensor_t* x, int first, int end, int64_t i) {
  int64_t from = 0, step = 1;
  for (int k = x->rank - 1; k >= 0; k--) {
    const int64_t at = i % x->dims[k];
    from += (k >= first && k < end ? x->dims[k] - 1 - at : at) * step;
    i /= x->dims[k];
    step *= x->dims[k];
  }
  return from;
}

static assay_status_t offer_reversed(const assay_suspect_t* s, const char* cause, size_t input,
                                     const assay_tensor_t* x, int first, int end,
                                     const assay_trial_t* t, bool* stop) {
  assay_tensor_t* y = NULL;
  const char* name = s->node->inputs[input]->name;
  ASSAY_TRY(assay_tensor_create(x->type, x->rank, x->dims, &y));
  for (int64_t i = 0; i < x->size; i++) assay_f64(y)[i] = assay_f64(x)[mirrored(x, first, end, i)];
  assay_repair_t r = assay_repair_of(s, cause, ASSAY_EDIT_CONSTANT);
  r.edits[0].input = input;
  r.edits[0].tensor = y;
  if (end - first == 1)
    snprintf(r.text, sizeof r.text, "'%.100s' reversed along axis %d", name, first);
  else
    snprintf(r.text, sizeof r.text, "'%.100s' reversed along axes %d to %d", name, first, end - 1);
  return assay_offer(t, &r, stop);
}

// Reversed along an axis, or along all of a kernel's: mirrored kernels, channels in BGR order.
// Source: PINTO0309/onnx2tf issue 56.
assay_status_t assay_propose_reversed(const assay_suspect_t* s, const char* cause,
                                      const assay_trial_t* t, bool* stop) {
  enum { KERNEL = 2 };  // the first axis of a kernel's places
  for (size_t i = 0; i < s->n_in && !*stop; i++) {
    assay_tensor_t* x = NULL;
    ASSAY_TRY(assay_suspect_constant(s, i, &x));
    assay_status_t st = NULL;
    const bool is_fit = is_float(x) && x->size <= MANY;
    for (int a = 0; is_fit && a < x->rank && !st && !*stop; a++)
      if (x->dims[a] > 1) st = offer_reversed(s, cause, i, x, a, a + 1, t, stop);
    if (is_fit && x->rank > KERNEL + 1 && x->dims[KERNEL] * x->dims[KERNEL + 1] > 1 && !st &&
        !*stop)
      st = offer_reversed(s, cause, i, x, KERNEL, x->rank, t, stop);
    assay_tensor_release(x);
    if (st) return st;
  }
  return NULL;
}
