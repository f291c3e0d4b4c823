// Layers of the emulated engine that are computed on integers (ops/quant/int8.h).
#include "backends/emu/int8.h"

#include "base/alloc.h"
#include "ops/math/pointwise.h"

// A quantized tensor's integers less their zero points, as floats: sums of their products are exact
// in float64 (differences are at most 255, so that 10^11 products fit), in any order.
static assay_status_t centered(const assay_int8_operand_t* o, const assay_tensor_t* t,
                               assay_tensor_t** out) {
  assay_tensor_t *wide = NULL, *x = NULL;
  ASSAY_TRY(assay_tensor_widen((assay_tensor_t*)(uintptr_t)t, &wide));
  assay_status_t st = assay_tensor_create(ASSAY_TYPE_FLOAT, t->rank, t->dims, &x);
  if (!st) {
    const int64_t inner = o->n_zeros > 1 ? assay_dims_product(t->dims, o->axis + 1, t->rank) : 1;
#pragma omp parallel for schedule(static) if (t->size > 200000)
    for (int64_t i = 0; i < t->size; i++)
      assay_f64(x)[i] = (double)(assay_i64(wide)[i] - o->zeros[i / inner % o->n_zeros]);
    *out = x;
  }
  assay_tensor_release(wide);
  return st;
}

static assay_status_t value_of(const assay_node_t* node, const assay_evaluator_t* m,
                               const assay_value_t* v, assay_tensor_t** out) {
  *out = assay_evaluator_get(m, v);
  if (*out) return NULL;
  return ASSAY_NODE_ERROR(node, ASSAY_NOT_FOUND, "input '%s' has no value", v->name);
}

// Where there is no contraction: x less its zero point.
static assay_status_t only_center(const assay_layer_t* layer, const assay_evaluator_t* values,
                                  assay_tensor_t** out) {
  const assay_int8_t* q = layer->int8;
  assay_tensor_t* x = NULL;
  ASSAY_TRY(value_of(layer->nodes[0], values, q->x.value, &x));
  ASSAY_TRY(centered(&q->x, x, out));
  if (q->channel_axis < (*out)->rank && (*out)->dims[q->channel_axis] == q->channels) return NULL;
  return ASSAY_NODE_ERROR(layer->nodes[0], ASSAY_INVALID_ARGUMENT,
                          "'%s' has shape %s, expected %lld channels", q->x.value->name,
                          ASSAY_DIMS_TEXT(x), (long long)q->channels);
}

// The anchor in float64 on integers, without its bias.
static assay_status_t sum_up(const assay_layer_t* layer, assay_evaluator_t* sums,
                             const assay_evaluator_t* values, assay_tensor_t** out) {
  const assay_int8_t* q = layer->int8;
  const assay_node_t* n = q->anchor;
  assay_tensor_t *x = NULL, *w = (assay_tensor_t*)(uintptr_t)q->w.constant;
  ASSAY_TRY(value_of(n, values, q->x.value, &x));
  if (!w) ASSAY_TRY(value_of(n, values, q->w.value, &w));
  assay_tensor_t** in = NULL;
  ASSAY_TRY(assay_new_array(n->n_inputs, sizeof *in, &in));
  assay_status_t st = centered(&q->x, x, &in[0]);
  if (!st) st = centered(&q->w, w, &in[1]);
  if (!st) st = assay_evaluator_node(sums, n, n->n_inputs, in, 1, out);
  assay_tensor_release(in[0]);
  assay_tensor_release(in[1]);
  assay_free(in);
  return st;
}

// ---- the epilogue ------------------------------------------------------------------------------

typedef struct job {
  const assay_int8_t* q;
  const assay_tensor_t* sums;
  assay_tensor_t* y;
  int64_t inner;  // elements of one channel that lie together
  const assay_tensor_t* operand[ASSAY_INT8_SOURCES];
  int64_t strides[ASSAY_INT8_SOURCES][ASSAY_MAX_RANK];
} job_t;

typedef struct buffers {
  float sums[ASSAY_INT8_TILE], factor[ASSAY_INT8_TILE], shift[ASSAY_INT8_TILE];
  uint8_t operand[ASSAY_INT8_SOURCES][ASSAY_INT8_TILE];
  float channel[ASSAY_INT8_SOURCES][ASSAY_INT8_TILE];
  float out[ASSAY_INT8_TILE];  // or bytes
} buffers_t;

// Element i of the output reads this one of an operand that is broadcast to it.
static int64_t place(const assay_tensor_t* y, const int64_t* strides, int64_t i) {
  int64_t at = 0;
  for (int d = y->rank; d-- > 0; i /= y->dims[d]) at += i % y->dims[d] * strides[d];
  return at;
}

static void fill(const job_t* j, int64_t first, int64_t n, buffers_t* b, assay_int8_tile_t* t) {
  const assay_int8_t* q = j->q;
  for (int64_t i = 0; i < n && j->sums; i++) {
    const int64_t c = q->n_factor > 1 ? (first + i) / j->inner % q->n_factor : 0;
    const double bias = q->bias ? (double)q->bias[c] : 0;
    b->sums[i] = (float)(assay_f64(j->sums)[first + i] + bias);
    b->factor[i] = q->factor[c];
    b->shift[i] = q->shift[c];
  }
  for (size_t k = 0; k < q->n_sources; k++) {
    const assay_int8_source_t* s = &q->sources[k];
    t->operand[k] = b->operand[k];
    t->channel[k] = b->channel[k];
    for (int64_t i = 0; i < n && s->kind == ASSAY_INT8_OPERAND; i++) {
      const int64_t at = place(j->y, j->strides[k], first + i);
      b->operand[k][i] = (uint8_t)(assay_i64(j->operand[k])[at] & 255);
    }
    for (int64_t i = 0; i < n && s->kind == ASSAY_INT8_CHANNEL; i++)
      b->channel[k][i] = s->channel[(first + i) / j->inner % q->channels];
    for (int64_t i = 0; i < n && s->kind == ASSAY_INT8_REAL; i++)
      b->channel[k][i] = (float)assay_f64(j->operand[k])[place(j->y, j->strides[k], first + i)];
  }
}

static void run_chunk(const void* user, int64_t first, int64_t n) {
  const job_t* j = user;
  buffers_t b;
  assay_int8_tile_t t = {.sums = b.sums, .factor = b.factor, .shift = b.shift};
  for (int64_t end = first + n; first < end; first += ASSAY_INT8_TILE) {
    n = end - first < ASSAY_INT8_TILE ? end - first : ASSAY_INT8_TILE;
    fill(j, first, n, &b, &t);
    assay_int8_epilogue(j->q, &t, n, b.out);
    for (int64_t i = 0; i < n; i++) {
      if (j->q->type == ASSAY_TYPE_FLOAT)
        assay_f64(j->y)[first + i] = (double)b.out[i];
      else if (j->q->type == ASSAY_TYPE_INT8)
        assay_i64(j->y)[first + i] = ((const int8_t*)b.out)[i];
      else
        assay_i64(j->y)[first + i] = ((const uint8_t*)b.out)[i];
    }
  }
}

// Grows a shape to what it and a tensor broadcast to; false if they do not.
static bool broadcast(const assay_tensor_t* t, int* rank, int64_t* dims) {
  while (*rank < t->rank) {
    for (int i = (*rank)++; i > 0; i--) dims[i] = dims[i - 1];
    dims[0] = 1;
  }
  for (int i = 0; i < t->rank; i++) {
    int64_t* d = &dims[*rank - t->rank + i];
    if (*d == 1) *d = t->dims[i];
    if (*d != t->dims[i] && t->dims[i] != 1) return false;
  }
  return true;
}

static assay_status_t find_operands(const assay_layer_t* layer, const assay_evaluator_t* values,
                                    job_t* j, assay_tensor_t** held, int* rank, int64_t* dims) {
  const assay_node_t* last = layer->nodes[layer->n_nodes - 1];
  for (size_t k = 0; k < j->q->n_sources; k++) {
    assay_tensor_t* t = NULL;
    if (!assay_int8_reads_value(&j->q->sources[k])) continue;
    ASSAY_TRY(value_of(last, values, j->q->sources[k].value, &t));
    ASSAY_TRY(assay_tensor_widen(t, &held[k]));
    j->operand[k] = held[k];
    if (!broadcast(held[k], rank, dims))
      return ASSAY_NODE_ERROR(last, ASSAY_INVALID_ARGUMENT,
                              "'%s' has shape %s, which does not broadcast with the layer's others",
                              j->q->sources[k].value->name, ASSAY_DIMS_TEXT(held[k]));
  }
  return NULL;
}

assay_status_t emu_int8_run(const assay_layer_t* layer, assay_evaluator_t* sums,
                            const assay_evaluator_t* values, assay_tensor_t** out) {
  const assay_int8_t* q = layer->int8;
  assay_tensor_t *z = NULL, *held[ASSAY_INT8_SOURCES] = {NULL};
  int64_t dims[ASSAY_MAX_RANK] = {0};
  int rank = 0;
  job_t j = {.q = q, .inner = 1};
  assay_status_t st = q->anchor     ? sum_up(layer, sums, values, &z)
                      : q->scales_x ? only_center(layer, values, &z)
                                    : NULL;
  if (!st && z) {
    rank = z->rank;
    for (int i = 0; i < rank; i++) dims[i] = z->dims[i];
    j.inner = assay_dims_product(dims, q->channel_axis + 1, rank);
  }
  if (!st) st = find_operands(layer, values, &j, held, &rank, dims);
  if (!st) st = assay_tensor_create(q->type, rank, dims, &j.y);
  if (!st && z && j.y->size != z->size)
    st = ASSAY_NODE_ERROR(layer->nodes[layer->n_nodes - 1], ASSAY_INVALID_ARGUMENT,
                          "its output has shape %s, what is added to it makes %s",
                          ASSAY_DIMS_TEXT(z), ASSAY_DIMS_TEXT(j.y));
  if (!st) {
    j.sums = z;
    for (size_t k = 0; k < q->n_sources; k++)
      if (held[k]) assay_broadcast_strides(held[k], rank, dims, j.strides[k]);
    assay_chunks_run(j.y->size, 50, run_chunk, &j);
  }
  for (size_t k = 0; k < q->n_sources; k++) assay_tensor_release(held[k]);
  assay_tensor_release(z);
  if (st) return assay_tensor_release(j.y), st;
  *out = j.y;
  return NULL;
}
