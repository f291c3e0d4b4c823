// RotaryEmbedding of com.microsoft.
#include <string.h>

#include "ops/families.h"
#include "ops/microsoft/ms_heads.h"
#include "ops/running_bound.h"

enum { X, POSITIONS, COSINES, SINES };

static assay_status_t rotary_infer(assay_infer_t* c) {
  ASSAY_TRY(assay_infer_want_rank(c, X, 3, 4));
  ASSAY_TRY(assay_infer_want_rank(c, POSITIONS, 1, 2));
  ASSAY_TRY(assay_infer_want_rank(c, COSINES, 2, 2));
  ASSAY_TRY(assay_infer_want_rank(c, SINES, 2, 2));
  return assay_infer_same(c);
}

// The tensor as heads: [batch, heads, length, size], or [batch, length, heads * size] where the
// size comes from num_heads, else from the caches.
static assay_status_t read_heads(const assay_eval_t* c, const assay_tensor_t* x,
                                 assay_ms_operand_t* out) {
  const assay_tensor_t* cosines = c->in[COSINES];
  const int64_t heads = assay_attr_i64(c->node, "num_heads", 0);
  if (x->rank == 4) {
    *out = assay_operand_whole(x);
    return NULL;
  }
  int64_t size = 0;
  if (x->rank == 3 && heads > 0) {
    size = x->dims[2] % heads == 0 ? x->dims[2] / heads : 0;
  } else if (x->rank == 3 && heads == 0 && cosines->rank == 2) {
    size = 2 * cosines->dims[1];
  }
  if (size <= 0 || x->dims[2] % size != 0) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                            "input has shape %s, num_heads is %lld, cos_cache has shape %s; "
                            "expected [batch, heads, length, size] or [batch, length, heads * "
                            "size]",
                            ASSAY_DIMS_TEXT(x), (long long)heads, ASSAY_DIMS_TEXT(cosines));
  }
  *out = assay_operand_slice(x, 0, x->dims[2] / size, size, size);
  return NULL;
}

// position_ids: one of each token, or that of the first one.
static assay_status_t read_positions(const assay_eval_t* c, const assay_ms_operand_t* x,
                                     assay_tensor_t** out) {
  const assay_tensor_t* ids = c->in[POSITIONS];
  const bool first = ids->rank == 1 && ids->dims[0] == 1;
  if (!first && (ids->rank != 2 || ids->dims[0] != x->batch || ids->dims[1] != x->rows)) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                            "position_ids has shape %s; expected [1] or [%lld, %lld]",
                            ASSAY_DIMS_TEXT(ids), (long long)x->batch, (long long)x->rows);
  }
  const int64_t dims[2] = {x->batch, x->rows};
  assay_tensor_t* t = NULL;
  ASSAY_TRY(assay_tensor_create(ASSAY_TYPE_INT64, 2, dims, &t));
  for (int64_t i = 0; i < t->size; i++) {
    // Positions past every cache are refused when they are used.
    const int64_t p = assay_i64(ids)[first ? 0 : i];
    assay_i64(t)[i] = !first ? p : p < 0 || p > INT32_MAX ? -1 : p + i % x->rows;
  }
  *out = t;
  return NULL;
}

// Source: com.microsoft RotaryEmbedding 1. `scale` has no say: onnxruntime's kernels do not use it.
static assay_status_t rotary_eval(assay_eval_t* c) {
  const assay_tensor_t* x = c->in[X];
  assay_ms_operand_t heads;
  ASSAY_TRY(read_heads(c, x, &heads));
  ASSAY_TRY(assay_rotary_check(c, c->in[COSINES], c->in[SINES], heads.channels));
  const int64_t rotated = assay_attr_i64(c->node, "rotary_embedding_dim", 0);
  if (rotated != 0 && rotated != 2 * c->in[COSINES]->dims[1]) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                            "rotary_embedding_dim is %lld, the caches have %lld columns; expected "
                            "half as many",
                            (long long)rotated, (long long)c->in[COSINES]->dims[1]);
  }
  assay_tensor_t *y = NULL, *positions = NULL;
  ASSAY_TRY(assay_eval_output(c, 0, assay_eval_out_type(c, 0, x->type), x->rank, x->dims, &y));
  memcpy(assay_f64(y), assay_f64(x), (size_t)x->size * sizeof(double));
  if (c->running) assay_running_bound_copy(c, assay_f64(x), assay_f64(y), x->size);
  heads.at.data = assay_f64(y);
  ASSAY_TRY(read_positions(c, &heads, &positions));
  assay_status_t st = assay_operand_rotate(c, c->in[COSINES], c->in[SINES], assay_i64(positions),
                                           assay_attr_i64(c->node, "interleaved", 0) != 0, &heads);
  assay_tensor_release(positions);
  return st;
}

static assay_status_t rotary_bound(assay_bound_t* b) { return assay_bound_running(b, rotary_eval); }

static void rotary_cost(const assay_eval_t* c, assay_cost_t* out) {
  out->flops = 3.0 * (double)c->in[X]->size;
}

const assay_op_t assay_ops_ms_rotary[] = {
    {.domain = "com.microsoft",
     .name = "RotaryEmbedding",
     .since = 1,
     .infer = rotary_infer,
     .eval = rotary_eval,
     .bound = rotary_bound,
     .cost = rotary_cost,
     .schema = "input:T, position_ids:M, cos_cache:T, sin_cache:T -> output:T | scale:f=1, "
               "interleaved:i=0, num_heads:i=0, rotary_embedding_dim:i=0, is_packed_batching:i=0 "
               "| T=float float16 bfloat16; M=int64"},
    {0}};
