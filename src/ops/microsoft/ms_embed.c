// QEmbedLayerNormalization of com.microsoft, and operators that are known by name only.
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "ops/families.h"
#include "ops/norm/norm.h"
#include "ops/norm/norm_bound.h"
#include "ops/running_bound.h"

enum {
  IDS,
  SEGMENT_IDS,
  WORDS,
  POSITIONS,
  SEGMENTS,
  GAMMA,
  BETA,
  MASK,
  WORD_SCALE,
  POSITION_SCALE,
  SEGMENT_SCALE,
  GAMMA_SCALE,
  BETA_SCALE,
  WORD_ZERO,
  POSITION_ZERO,
  SEGMENT_ZERO,
  GAMMA_ZERO,
  BETA_ZERO
};

// A quantized table [rows, size], or a vector: one scale and one zero point.
typedef struct table {
  const assay_tensor_t* t;
  double scale;
  int64_t zero;
} table_t;

static assay_status_t read_table(const assay_eval_t* c, size_t at, size_t scale, size_t zero,
                                 int rank, int64_t size, table_t* out) {
  const assay_tensor_t *t = c->in[at], *s = c->in[scale];
  const assay_tensor_t* z = assay_eval_has(c, zero) ? c->in[zero] : NULL;
  if (t->rank != rank || t->dims[rank - 1] != size || !s || s->size != 1 ||
      t->store != ASSAY_STORE_I64 || (z && (z->size != 1 || z->store != ASSAY_STORE_I64))) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                            "input %zu is %s with shape %s, its scale has shape %s; expected 8-bit "
                            "integers with %lld columns, one scale and one zero point",
                            at, assay_type_name(t->type), ASSAY_DIMS_TEXT(t),
                            s ? ASSAY_DIMS_TEXT(s) : "none", (long long)size);
  }
  *out = (table_t){t, assay_f64(s)[0], z ? assay_i64(z)[0] : 0};
  return NULL;
}

static double dequantize(const assay_eval_t* c, const table_t* t, int64_t at) {
  return assay_acc(c, (double)(assay_i64(t->t)[at] - t->zero) * t->scale);
}

typedef struct embed {
  int64_t rows, length, size;
  table_t words, positions, segments, gamma, beta;  // segments.t NULL: none
} embed_t;

static assay_status_t read_embed(const assay_eval_t* c, embed_t* e) {
  const assay_tensor_t *ids = c->in[IDS], *words = c->in[WORDS];
  const assay_tensor_t* segment_ids = assay_eval_has(c, SEGMENT_IDS) ? c->in[SEGMENT_IDS] : NULL;
  const assay_tensor_t* mask = assay_eval_has(c, MASK) ? c->in[MASK] : NULL;
  const bool segments = assay_eval_has(c, SEGMENTS) && assay_eval_has(c, SEGMENT_SCALE);
  bool fits = ids->rank == 2 && words->rank == 2 && !segment_ids == !segments;
  for (int i = 0; fits && i < 2; i++) {
    fits = (!segment_ids || (segment_ids->rank == 2 && segment_ids->dims[i] == ids->dims[i])) &&
           (!mask || (mask->rank == 2 && mask->dims[i] == ids->dims[i]));
  }
  if (!fits) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                            "input_ids has shape %s, segment_ids %s, mask %s; expected [batch, "
                            "length] each, and all or none of the segment inputs",
                            ASSAY_DIMS_TEXT(ids),
                            segment_ids ? ASSAY_DIMS_TEXT(segment_ids) : "none",
                            mask ? ASSAY_DIMS_TEXT(mask) : "none");
  }
  e->rows = ids->size, e->length = ids->dims[1], e->size = words->dims[1];
  const int64_t n = e->size;
  ASSAY_TRY(read_table(c, WORDS, WORD_SCALE, WORD_ZERO, 2, n, &e->words));
  ASSAY_TRY(read_table(c, POSITIONS, POSITION_SCALE, POSITION_ZERO, 2, n, &e->positions));
  ASSAY_TRY(read_table(c, GAMMA, GAMMA_SCALE, GAMMA_ZERO, 1, n, &e->gamma));
  ASSAY_TRY(read_table(c, BETA, BETA_SCALE, BETA_ZERO, 1, n, &e->beta));
  if (!segments) return NULL;
  return read_table(c, SEGMENTS, SEGMENT_SCALE, SEGMENT_ZERO, 2, n, &e->segments);
}

static assay_status_t add_row(const assay_eval_t* c, const char* what, const table_t* t,
                              int64_t row, int64_t size, double* sum) {
  if (row < 0 || row >= t->t->dims[0]) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                            "%s is %lld; expected one of [0, %lld)", what, (long long)row,
                            (long long)t->t->dims[0]);
  }
  if (c->running && size > 0) {
    const assay_steps_t steps = assay_rounding_steps(assay_running_bound_rounding(c));
    const assay_span_t to = assay_running_bound_of(c, sum);
    for (int64_t j = 0; j < size; j++) {
      const double x = dequantize(c, t, row * size + j);
      const assay_near_t more = assay_near_round(&steps, assay_near_exact(x), 1);
      assay_near_put(assay_near_add(&steps, assay_near_at(sum, to, j), more), sum, to, j);
    }
    return NULL;
  }
  for (int64_t j = 0; j < size; j++) {
    sum[j] = assay_acc(c, sum[j] + dequantize(c, t, row * size + j));
  }
  return NULL;
}

static void normalize(const assay_eval_t* c, const embed_t* e, double epsilon, double* y) {
  const bool exact = c->arith == ASSAY_ARITH_F64;
  double mean, variance;
  assay_norm_moments(c, exact, y, e->size, &mean, &variance);
  const double inverse = assay_norm_inverse(c, exact, variance, epsilon);
  for (int64_t j = 0; j < e->size; j++) {
    const double x = assay_acc(c, assay_acc(c, y[j] - mean) * inverse);
    y[j] = assay_acc(c, assay_acc(c, x * dequantize(c, &e->gamma, j)) + dequantize(c, &e->beta, j));
  }
}

// The limits of a row's layer norm in place of those of the row: as norm_bound.h has them, and
// gamma and beta are rounded once.
static assay_status_t limit_row(const assay_eval_t* c, const embed_t* e, double epsilon,
                                const double* y) {
  const assay_rounding_t* r = assay_running_bound_rounding(c);
  const double u = assay_rounding_steps(r).u;
  const assay_span_t to = assay_running_bound_of(c, y);
  const int64_t n = e->size;
  double* scratch = NULL;
  ASSAY_TRY(assay_new_array(3 * (size_t)n, sizeof *scratch, &scratch));
  double *gamma = scratch, *beta = gamma + n, *made = beta + n;
  for (int64_t j = 0; j < n; j++) {
    gamma[j] = dequantize(c, &e->gamma, j);
    beta[j] = dequantize(c, &e->beta, j);
  }
  for (int kind = 0; kind < 2; kind++) {
    double* limits = kind ? to.probable : to.guaranteed;
    const assay_norm_group_t group = {.x = y, .e = limits, .runs = 1, .run = n, .step = n};
    const assay_norm_stats_t stats = assay_norm_bound_stats(r, kind, true, &group, epsilon);
    const assay_norm_apply_t apply = {.rounding = r,
                                      .stats = stats,
                                      .centered = true,
                                      .n = n,
                                      .x = y,
                                      .e = limits,
                                      .scale = gamma,
                                      .bias = beta,
                                      .scale_step = 1,
                                      .bias_step = 1,
                                      .limits = made};
    assay_norm_bound_apply(&apply);
    const double inverse = stats.inverse * (1 + stats.inverse_error);
    for (int64_t j = 0; j < n; j++) {
      const double d = fabs(y[j] - stats.mean) + limits[j] + stats.mean_error;
      limits[j] = made[j] + 2 * u * (d * inverse * fabs(gamma[j]) + fabs(beta[j]));
    }
  }
  assay_free(scratch);
  return NULL;
}

// The number of ones in each row of the mask; 0 without one.
static assay_status_t count_mask(assay_eval_t* c, const embed_t* e) {
  if (!assay_eval_wants(c, 1)) return NULL;
  assay_tensor_t* out = NULL;
  ASSAY_TRY(assay_eval_output(c, 1, ASSAY_TYPE_INT32, 1, c->in[IDS]->dims, &out));
  for (int64_t b = 0; b < out->size; b++) {
    int64_t n = 0;
    for (int64_t i = 0; assay_eval_has(c, MASK) && i < e->length; i++) {
      n += assay_i64(c->in[MASK])[b * e->length + i] == 1;
    }
    assay_i64(out)[b] = assay_type_wrap(ASSAY_TYPE_INT32, n);
  }
  return NULL;
}

// Source: com.microsoft QEmbedLayerNormalization 1: the layer norm of (word + position) + segment,
// all dequantized.
static assay_status_t embed_eval(assay_eval_t* c) {
  embed_t e = {0};
  ASSAY_TRY(read_embed(c, &e));
  const int64_t dims[3] = {c->in[IDS]->dims[0], e.length, e.size};
  const double epsilon = assay_attr_f64(c->node, "epsilon", 1e-12);
  assay_tensor_t* y = NULL;
  ASSAY_TRY(assay_eval_output(c, 0, ASSAY_TYPE_FLOAT, 3, dims, &y));
  ASSAY_TRY(count_mask(c, &e));
  memset(assay_f64(y), 0, (size_t)y->size * sizeof(double));
  for (int64_t i = 0; i < e.rows; i++) {
    double* row = assay_f64(y) + i * e.size;
    ASSAY_TRY(add_row(c, "a word id", &e.words, assay_i64(c->in[IDS])[i], e.size, row));
    ASSAY_TRY(add_row(c, "a position", &e.positions, i % e.length, e.size, row));
    if (e.segments.t) {
      const int64_t id = assay_i64(c->in[SEGMENT_IDS])[i];
      ASSAY_TRY(add_row(c, "a segment id", &e.segments, id, e.size, row));
    }
    if (c->running && e.size > 0) {
      ASSAY_TRY(limit_row(c, &e, epsilon, row));
    } else if (e.size > 0) {
      normalize(c, &e, epsilon, row);
    }
  }
  return NULL;
}

static assay_status_t embed_infer(assay_infer_t* c) {
  ASSAY_TRY(assay_infer_want_rank(c, IDS, 2, 2));
  ASSAY_TRY(assay_infer_want_rank(c, WORDS, 2, 2));
  const assay_shape_t ids = assay_infer_shape(c, IDS), words = assay_infer_shape(c, WORDS);
  assay_shape_t y = {.known = true, .rank = 3}, mask = {.known = true, .rank = 1};
  for (int i = 0; ids.known && i < 2; i++) y.dims[i] = ids.dims[i];
  if (words.known) y.dims[2] = words.dims[1];
  mask.dims[0] = y.dims[0];
  ASSAY_TRY(assay_infer_set(c, 0, ASSAY_TYPE_FLOAT, &y));
  return assay_infer_set(c, 1, ASSAY_TYPE_INT32, &mask);
}

static assay_status_t embed_bound(assay_bound_t* b) {
  return assay_bound_running_exact(b, embed_eval);
}

static void embed_cost(const assay_eval_t* c, assay_cost_t* out) {
  if (c->in[WORDS]->rank != 2) return;
  const double n = (double)c->in[IDS]->size * (double)c->in[WORDS]->dims[1];
  out->flops = 16 * n;
  out->bytes = 7 * n;  // rows of the tables, not the tables
}

// ---- known by name ----------------------------------------------------------------------------

static assay_status_t conv_infer(assay_infer_t* c) {
  return assay_infer_set(c, 0, ASSAY_TYPE_UNDEFINED, NULL);
}

static assay_status_t ordered_infer(assay_infer_t* c) {
  const assay_shape_t a = assay_infer_shape(c, 0);
  assay_shape_t y = {.known = a.known && a.rank == 3, .rank = 3};
  for (int i = 0; y.known && i < 2; i++) y.dims[i] = a.dims[i];
  return assay_infer_set(c, 0, ASSAY_TYPE_UNDEFINED, y.known ? &y : NULL);
}

// The last two rows have no eval: their texts leave open what the kernels do (the layout of
// cublasLt's matrix orders, which bias is scaled; the order of pads among padding rules).
const assay_op_t assay_ops_ms_embed[] = {
    {.domain = "com.microsoft",
     .name = "QEmbedLayerNormalization",
     .since = 1,
     .infer = embed_infer,
     .eval = embed_eval,
     .bound = embed_bound,
     .cost = embed_cost,
     .schema = "input_ids:T1, segment_ids?:T1, word_embedding_quant:T2, "
               "position_embedding_quant:T2, segment_embedding?:T2, gamma_quant:T2, beta_quant:T2, "
               "mask?:T1, word_embedding_scale:T, position_embedding_scale:T, "
               "segment_embedding_scale?:T, gamma_scale:T, beta_scale:T, "
               "word_embedding_zero_point:T2, position_embedding_zero_point:T2, "
               "segment_embedding_zero_point?:T2, gamma_zero_point:T2, beta_zero_point:T2 "
               "-> layernorm_out:T, mask_index_out:T1 | epsilon:f=1e-12 "
               "| T1=int32; T2=int8 uint8; T=float"},
    {.domain = "com.microsoft",
     .name = "ConvTransposeWithDynamicPads",
     .since = 1,
     .infer = conv_infer,
     .schema = "X:T, W:T, Pads?:int64, B?:T -> Y:T | kernel_shape:is, output_padding:is, "
               "dilations:is, strides:is, auto_pad:s=NOTSET, group:i=1 | T=float16 float double"},
    {.domain = "com.microsoft",
     .name = "QOrderedMatMul",
     .since = 1,
     .infer = ordered_infer,
     .schema = "A:Q, scale_A:S, B:Q, scale_B:S, scale_Y:S, bias?:S, C?:Q, scale_C?:S -> Y:Q "
               "| order_A:i!, order_B:i!, order_Y:i! | Q=int8; S=float"},
    {0}};
