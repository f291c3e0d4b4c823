// FlexAttention of ai.onnx.preview.
#include <math.h>

#include "ops/attention/attention_core.h"
#include "ops/families.h"
#include "ops/matmul/gemm.h"
#include "ops/norm/softmax.h"

// The type that scores and probabilities have.
static assay_type_t softmax_type(const assay_node_t* node, assay_type_t input) {
  const int64_t given = assay_attr_i64(node, "softmax_precision", 0);
  if (given > 0 && given < ASSAY_TYPE_COUNT && assay_type_is_float((assay_type_t)given)) {
    return (assay_type_t)given;
  }
  return input == ASSAY_TYPE_DOUBLE ? ASSAY_TYPE_DOUBLE : ASSAY_TYPE_FLOAT;
}

// ---- inference --------------------------------------------------------------------------------

static assay_status_t infer_modifier(assay_infer_t* c, const char* attr,
                                     const assay_shape_t* scores) {
  assay_graph_t* graph = assay_attr_graph(c->node, attr);
  if (!graph) return NULL;
  if (graph->n_inputs != 1 || graph->n_outputs != 1) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                            "%s has %zu inputs and %zu outputs; expected one each", attr,
                            graph->n_inputs, graph->n_outputs);
  }
  const assay_valtype_t* type = NULL;
  const assay_type_t elem = softmax_type(c->node, assay_infer_elem(c, 0));
  if (scores->known) {
    ASSAY_TRY(assay_valtype_tensor(c->model, elem, 4, scores->dims, &type));
  } else {
    ASSAY_TRY(assay_valtype_unranked(c->model, elem, &type));
  }
  return c->infer_graph(c, graph, 1, &type);
}

static assay_status_t flex_infer(assay_infer_t* c) {
  for (size_t i = 0; i < 3; i++) ASSAY_TRY(assay_infer_want_rank(c, i, 4, 4));
  const assay_shape_t q = assay_infer_shape(c, 0), k = assay_infer_shape(c, 1);
  const assay_shape_t v = assay_infer_shape(c, 2);
  if ((q.known && k.known &&
       (assay_dim_differ(q.dims[0], k.dims[0]) || assay_dim_differ(q.dims[3], k.dims[3]))) ||
      (k.known && v.known &&
       (assay_dim_differ(k.dims[1], v.dims[1]) || assay_dim_differ(k.dims[2], v.dims[2])))) {
    return ASSAY_NODE_ERROR(
        c->node, ASSAY_INVALID_ARGUMENT,
        "Q %s, K %s and V %s do not fit: expected [B, Hq, L, E], [B, H, S, E] and "
        "[B, H, S, Ev]",
        ASSAY_VALTYPE_TEXT(assay_infer_type(c, 0)), ASSAY_VALTYPE_TEXT(assay_infer_type(c, 1)),
        ASSAY_VALTYPE_TEXT(assay_infer_type(c, 2)));
  }
  assay_shape_t scores = q, y = q;
  scores.known = q.known && k.known;
  scores.dims[3] = k.known ? k.dims[2] : NULL;
  y.dims[3] = v.known ? v.dims[3] : NULL;
  ASSAY_TRY(infer_modifier(c, "score_mod", &scores));
  ASSAY_TRY(infer_modifier(c, "prob_mod", &scores));
  return assay_infer_set(c, 0, assay_infer_elem(c, 0), q.known ? &y : NULL);
}

// ---- evaluation -------------------------------------------------------------------------------

// Replaces *t by what a modifier makes of it.
static assay_status_t modify(assay_eval_t* c, const char* attr, assay_tensor_t** t) {
  assay_graph_t* graph = assay_attr_graph(c->node, attr);
  if (!graph) return NULL;
  assay_tensor_t *made = NULL, *wide = NULL;
  ASSAY_TRY(c->run_graph(c, graph, 1, t, 1, &made));
  assay_status_t st = assay_tensor_widen(made, &wide);
  assay_tensor_release(made);
  if (st) return st;
  bool same =
      wide->kind == ASSAY_KIND_TENSOR && wide->store == ASSAY_STORE_F64 && wide->rank == (*t)->rank;
  for (int i = 0; same && i < wide->rank; i++) same = wide->dims[i] == (*t)->dims[i];
  if (!same) {
    st = ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                          "%s made %s of shape %s; expected floats of shape %s", attr,
                          assay_type_name(wide->type), ASSAY_DIMS_TEXT(wide), ASSAY_DIMS_TEXT(*t));
    assay_tensor_release(wide);
    return st;
  }
  assay_tensor_release(*t);
  *t = wide;
  return NULL;
}

static assay_matrix_t matrix(const assay_tensor_t* t, int64_t row_stride, int64_t col_stride) {
  return (assay_matrix_t){t->data, ASSAY_STORE_F64, t->type, 0, row_stride, col_stride};
}

// One product a head: a has q_heads matrices, b has kv_heads of them.
static assay_status_t multiply_heads(const assay_eval_t* c, int64_t batch, int64_t q_heads,
                                     int64_t kv_heads, int64_t m, int64_t n, int64_t k,
                                     const assay_matrix_t* a, const assay_matrix_t* b,
                                     double* out) {
  assay_tensor_t* offsets = NULL;
  const int64_t dims[2] = {2, batch * q_heads};
  ASSAY_TRY(assay_tensor_create(ASSAY_TYPE_INT64, 2, dims, &offsets));
  int64_t *at_a = assay_i64(offsets), *at_b = at_a + dims[1];
  for (int64_t t = 0; t < dims[1]; t++) {
    at_a[t] = t * m * k;
    at_b[t] = (t / q_heads * kv_heads + t % q_heads / (q_heads / kv_heads)) * n * k;
  }
  const assay_gemm_batch_t heads = {dims[1], at_a, at_b};
  assay_status_t st = assay_gemm_batched(c, m, n, k, a, b, &heads, out);
  assay_tensor_release(offsets);
  return st;
}

static void softmax_rows(const assay_eval_t* c, assay_tensor_t* t) {
  const int64_t n = t->dims[3], rows = n ? t->size / n : 0;
#pragma omp parallel for schedule(static) if (rows > 1 && t->size > 30000)
  for (int64_t r = 0; r < rows; r++) {
    assay_softmax_row(c, n, 1, assay_f64(t) + r * n, assay_f64(t) + r * n);
  }
}

// In native mode scores and probabilities have a type of their own.
static void round_scores(const assay_eval_t* c, assay_tensor_t* t) {
  if (c->mode != ASSAY_MODE_NATIVE) return;
  assay_format_round_n(assay_type_format(t->type), assay_f64(t), assay_f64(t), (size_t)t->size,
                       ASSAY_OVERFLOW_IEEE);
}

// Source: ai.onnx.preview FlexAttention 1. The modifiers see all scores at once, so they are all
// held.
static assay_status_t flex_eval(assay_eval_t* c) {
  const assay_tensor_t *q = c->in[0], *k = c->in[1], *v = c->in[2];
  if (q->rank != 4 || k->rank != 4 || v->rank != 4 || q->dims[0] != k->dims[0] ||
      k->dims[0] != v->dims[0] || q->dims[3] != k->dims[3] || k->dims[1] != v->dims[1] ||
      k->dims[2] != v->dims[2] ||
      (k->dims[1] > 0 ? q->dims[1] % k->dims[1] != 0 : q->dims[1] != 0)) {
    return ASSAY_NODE_ERROR(
        c->node, ASSAY_INVALID_ARGUMENT,
        "Q %s, K %s and V %s do not fit: expected [B, Hq, L, E], [B, H, S, E] and "
        "[B, H, S, Ev] with Hq a multiple of H",
        ASSAY_DIMS_TEXT(q), ASSAY_DIMS_TEXT(k), ASSAY_DIMS_TEXT(v));
  }
  const int64_t size = q->dims[3], kv_len = k->dims[2], v_size = v->dims[3];
  const int64_t score_dims[4] = {q->dims[0], q->dims[1], q->dims[2], kv_len};
  const int64_t dims[4] = {q->dims[0], q->dims[1], q->dims[2], v_size};
  assay_tensor_t *y = NULL, *t = NULL;
  ASSAY_TRY(assay_eval_output(c, 0, assay_eval_out_type(c, 0, q->type), 4, dims, &y));
  ASSAY_TRY(assay_tensor_create(softmax_type(c->node, q->type), 4, score_dims, &t));
  const double otherwise = size > 0 ? 1 / sqrt((double)size) : 1;
  const double scale =
      assay_attr_has(c->node, "scale") ? assay_attr_f64(c->node, "scale", 1) : otherwise;
  const assay_matrix_t left = matrix(q, size, 1), keys = matrix(k, 1, size);
  assay_status_t st = multiply_heads(c, q->dims[0], q->dims[1], k->dims[1], q->dims[2], kv_len,
                                     size, &left, &keys, assay_f64(t));
  for (int64_t i = 0; !st && i < t->size; i++) {
    assay_f64(t)[i] = assay_acc(c, assay_f64(t)[i] * scale);
  }
  if (!st) {
    round_scores(c, t);
    st = modify(c, "score_mod", &t);
  }
  if (!st) {
    softmax_rows(c, t);
    round_scores(c, t);
    st = modify(c, "prob_mod", &t);
  }
  const assay_matrix_t probs = matrix(t, kv_len, 1), values = matrix(v, v_size, 1);
  if (!st) {
    st = multiply_heads(c, q->dims[0], q->dims[1], k->dims[1], q->dims[2], v_size, kv_len, &probs,
                        &values, assay_f64(y));
  }
  assay_tensor_release(t);
  return st;
}

static void flex_cost(const assay_eval_t* c, assay_cost_t* out) {
  const assay_tensor_t *q = c->in[0], *k = c->in[1], *v = c->in[2];
  if (q->rank != 4 || k->rank != 4 || v->rank != 4) return;
  out->flops = (double)q->dims[0] * (double)q->dims[1] * (double)q->dims[2] * (double)k->dims[2] *
               (2.0 * (double)q->dims[3] + 2.0 * (double)v->dims[3] + 6.0);
}

const assay_op_t assay_ops_flex_attention[] = {{.domain = "ai.onnx.preview",
                                                .name = "FlexAttention",
                                                .since = 1,
                                                .flags = ASSAY_OP_CONTROL,
                                                .infer = flex_infer,
                                                .eval = flex_eval,
                                                .cost = flex_cost},
                                               {0}};
