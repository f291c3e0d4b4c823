// RotaryEmbedding.
#include <string.h>

#include "ops/attention/attention_core.h"
#include "ops/families.h"
#include "ops/running_bound.h"

static assay_status_t rotary_infer(assay_infer_t* c) {
  ASSAY_TRY(assay_infer_want_rank(c, 0, 3, 4));
  ASSAY_TRY(assay_infer_want_rank(c, 1, 2, 3));
  ASSAY_TRY(assay_infer_want_rank(c, 2, 2, 3));
  if (assay_infer_has(c, 3)) ASSAY_TRY(assay_infer_want_rank(c, 3, 2, 2));
  return assay_infer_same(c);
}

// The input as [batch, heads, length, size], by strides.
typedef struct tokens {
  int64_t batch, heads, length, size;
  int64_t batch_stride, head_stride, row_stride;
} tokens_t;

static assay_status_t read_tokens(const assay_eval_t* c, tokens_t* out) {
  const assay_tensor_t* x = c->in[0];
  const int64_t heads = assay_attr_i64(c->node, "num_heads", 0);
  tokens_t t = {0};
  if (x->rank == 4) {
    t = (tokens_t){x->dims[0],
                   x->dims[1],
                   x->dims[2],
                   x->dims[3],
                   x->dims[1] * x->dims[2] * x->dims[3],
                   x->dims[2] * x->dims[3],
                   x->dims[3]};
  } else if (x->rank == 3 && heads > 0 && x->dims[2] % heads == 0) {
    t = (tokens_t){
        x->dims[0],         heads,     x->dims[1], x->dims[2] / heads, x->dims[1] * x->dims[2],
        x->dims[2] / heads, x->dims[2]};
  } else {
    return ASSAY_NODE_ERROR(
        c->node, ASSAY_INVALID_ARGUMENT,
        "input has shape %s, num_heads is %lld; expected [batch, heads, length, "
        "size], or [batch, length, heads * size] and the number of heads",
        ASSAY_DIMS_TEXT(x), (long long)heads);
  }
  *out = t;
  return NULL;
}

// Checks the caches: [positions, half] with position_ids, else [batch, length, half].
static assay_status_t check_caches(const assay_eval_t* c, const tokens_t* t, int64_t half) {
  const assay_tensor_t *cosines = c->in[1], *sines = c->in[2];
  const assay_tensor_t* ids = assay_eval_has(c, 3) ? c->in[3] : NULL;
  const int rank = ids ? 2 : 3;
  bool fits = cosines->rank == rank && sines->rank == rank && cosines->dims[rank - 1] == half &&
              sines->dims[rank - 1] == half && sines->dims[0] == cosines->dims[0];
  if (!ids) {
    fits = fits && cosines->dims[0] == t->batch && cosines->dims[1] == t->length &&
           sines->dims[1] == t->length;
  }
  if (!fits) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                            "caches have shapes %s and %s for input %s; expected %s with %lld "
                            "channels",
                            ASSAY_DIMS_TEXT(cosines), ASSAY_DIMS_TEXT(sines),
                            ASSAY_DIMS_TEXT(c->in[0]),
                            ids ? "[positions, n]" : "[batch, length, n]", (long long)half);
  }
  if (!ids) return NULL;
  if (ids->rank != 2 || ids->dims[0] != t->batch || ids->dims[1] != t->length) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                            "position_ids has shape %s; expected [%lld, %lld]",
                            ASSAY_DIMS_TEXT(ids), (long long)t->batch, (long long)t->length);
  }
  for (int64_t i = 0; i < ids->size; i++) {
    const int64_t p = assay_i64(ids)[i];
    if (p < 0 || p >= cosines->dims[0]) {
      return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                              "position %lld is %lld; the caches have positions [0, %lld)",
                              (long long)i, (long long)p, (long long)cosines->dims[0]);
    }
  }
  return NULL;
}

// Source: ONNX RotaryEmbedding 23.
static assay_status_t rotary_eval(assay_eval_t* c) {
  const assay_tensor_t* x = c->in[0];
  tokens_t t;
  ASSAY_TRY(read_tokens(c, &t));
  int64_t rotated = assay_attr_i64(c->node, "rotary_embedding_dim", 0);
  if (rotated == 0) rotated = t.size;
  if (rotated < 0 || rotated > t.size || rotated % 2 != 0) {
    return ASSAY_NODE_ERROR(
        c->node, ASSAY_INVALID_ARGUMENT,
        "%lld channels of heads of size %lld are to be rotated; expected an even "
        "number, at most the size",
        (long long)rotated, (long long)t.size);
  }
  const int64_t half = rotated / 2;
  ASSAY_TRY(check_caches(c, &t, half));
  const bool interleaved = assay_attr_i64(c->node, "interleaved", 0) != 0;
  const int64_t* ids = assay_eval_has(c, 3) ? assay_i64(c->in[3]) : NULL;
  assay_tensor_t* y = NULL;
  ASSAY_TRY(assay_eval_output(c, 0, assay_eval_out_type(c, 0, x->type), x->rank, x->dims, &y));
  const int64_t n = x->size > 0 ? t.batch * t.length : 0;
#pragma omp parallel for schedule(static) if (n > 1 && x->size > 100000)
  for (int64_t i = 0; i < n; i++) {
    const int64_t cache = (ids ? ids[i] : i) * half;
    for (int64_t h = 0; h < t.heads; h++) {
      const int64_t at =
          i / t.length * t.batch_stride + h * t.head_stride + i % t.length * t.row_stride;
      const double* from = assay_f64(x) + at;
      double* to = assay_f64(y) + at;
      assay_rotate(c, half, interleaved, assay_f64(c->in[1]) + cache, assay_f64(c->in[2]) + cache,
                   from, to);
      memcpy(to + rotated, from + rotated, (size_t)(t.size - rotated) * sizeof *to);
      if (c->running) assay_running_bound_copy(c, from + rotated, to + rotated, t.size - rotated);
    }
  }
  return NULL;
}

static assay_status_t rotary_bound(assay_bound_t* c) { return assay_bound_running(c, rotary_eval); }

static void rotary_cost(const assay_eval_t* c, assay_cost_t* out) {
  if (assay_eval_has(c, 0)) out->flops = 3.0 * (double)c->in[0]->size;
}

const assay_op_t assay_ops_rotary[] = {{.domain = "",
                                        .name = "RotaryEmbedding",
                                        .since = 23,
                                        .infer = rotary_infer,
                                        .eval = rotary_eval,
                                        .bound = rotary_bound,
                                        .cost = rotary_cost},
                                       {0}};
