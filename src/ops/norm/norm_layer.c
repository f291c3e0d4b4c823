// Normalization over the last axes: LayerNormalization, RMSNormalization and their fused forms.
#include <string.h>

#include "ops/families.h"
#include "ops/norm/norm.h"
#include "ops/norm/norm_bound.h"
#include "ops/norm/norm_dd.h"

static void layer_cost(const assay_eval_t* c, assay_cost_t* out) {
  out->flops = 8 * (double)c->in[0]->size;
}

// A scale or bias that is broadcast to the input: element i of the input meets data[i % period].
typedef struct param {
  const double* data;  // NULL: there is none
  double* owned;       // a broadcast copy, if one was needed
  int64_t period;      // 1, the size of the normalized axes, or the input's size
} param_t;

// Writes t, broadcast to the shape of x, to out.
static void expand(const assay_tensor_t* t, const assay_tensor_t* x, double* out) {
  int64_t strides[ASSAY_MAX_RANK], at[ASSAY_MAX_RANK] = {0}, from = 0;
  assay_broadcast_strides(t, x->rank, x->dims, strides);
  for (int64_t i = 0; i < x->size; i++) {
    out[i] = assay_f64(t)[from];
    for (int d = x->rank - 1; d >= 0; d--) {
      from += strides[d];
      if (++at[d] < x->dims[d]) break;
      at[d] = 0;
      from -= strides[d] * x->dims[d];
    }
  }
}

static assay_status_t param_read(const assay_eval_t* c, const assay_tensor_t* t, const char* name,
                                 const assay_tensor_t* x, int axis, param_t* out) {
  *out = (param_t){.data = assay_f64(t), .period = 1};
  bool fits = t->rank <= x->rank;
  for (int i = 1; fits && i <= t->rank; i++) {
    const int64_t d = t->dims[t->rank - i];
    fits = d == 1 || d == x->dims[x->rank - i];
  }
  if (!fits) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_CORRUPT,
                            "%s has shape %s, which does not broadcast to the input's %s", name,
                            ASSAY_DIMS_TEXT(t), ASSAY_DIMS_TEXT(x));
  }
  if (t->size == 1 || x->size == 0) return NULL;
  const int64_t inner = assay_dims_product(x->dims, axis, x->rank);
  out->period = t->size;
  if (t->size == x->size) return NULL;
  // Only trailing axes, all of them whole: a period.
  bool trailing = t->size == inner;
  for (int i = 1; trailing && i <= x->rank - axis && i <= t->rank; i++) {
    trailing = t->dims[t->rank - i] == x->dims[x->rank - i];
  }
  if (trailing) return NULL;
  ASSAY_TRY(assay_new_array((size_t)x->size, sizeof *out->owned, &out->owned));
  expand(t, x, out->owned);
  out->data = out->owned;
  out->period = x->size;
  return NULL;
}

// The elements for the row that starts at element `first`, and their step: 0 for a scalar.
static inline const double* param_row(const param_t* p, int64_t first, int64_t* out_step) {
  *out_step = p->period == 1 ? 0 : 1;
  return p->period == 1 ? p->data : p->data + first % p->period;
}

// One normalization: rows of `size` elements.
//   centered  LayerNormalization: y = (x - mean) / sqrt(var + epsilon) * scale + bias
//             else RMSNormalization: y = x / sqrt(mean of squares + epsilon) * scale (+ bias)
typedef struct layer {
  const assay_eval_t* c;
  bool centered;
  int64_t rows, size;
  double epsilon;
  const double* x;
  param_t scale, bias;
  double *y, *mean, *inverse;  // the latter two: one a row, or NULL
} layer_t;

static inline void layer_row(const layer_t* p, bool exact, int64_t r) {
  const assay_eval_t* c = p->c;
  const double* x = p->x + r * p->size;
  double* y = p->y + r * p->size;
  double mean = 0, var;
  if (p->centered) {
    assay_norm_moments(c, exact, x, p->size, &mean, &var);
  } else {
    var = assay_norm_round(c, exact,
                           assay_norm_square_sum(c, exact, x, p->size, 0) / (double)p->size);
  }
  const double inverse = assay_norm_inverse(c, exact, var, p->epsilon);
  if (p->mean) p->mean[r] = mean;
  if (p->inverse) p->inverse[r] = inverse;
  int64_t step;
  const double* scale = param_row(&p->scale, r * p->size, &step);
  for (int64_t j = 0; j < p->size; j++) {
    const double d = assay_norm_round(c, exact, x[j] - mean);
    const double n = assay_norm_round(c, exact, d * inverse);
    y[j] = assay_norm_round(c, exact, n * scale[j * step]);
  }
  if (!p->bias.data) return;
  const double* bias = param_row(&p->bias, r * p->size, &step);
  for (int64_t j = 0; j < p->size; j++) {
    y[j] = assay_norm_round(c, exact, y[j] + bias[j * step]);
  }
}

static void layer_run(const layer_t* p) {
  const bool exact = p->c->arith == ASSAY_ARITH_F64;
#pragma omp parallel for schedule(static) if (p->rows * p->size > 50000)
  for (int64_t r = 0; r < p->rows; r++) {
    if (exact) {
      layer_row(p, true, r);
    } else {
      layer_row(p, false, r);
    }
  }
}

// ---- LayerNormalization, RMSNormalization ----------------------------------------------------

// The type that stage one is said to run in; it types the statistics.
static assay_type_t stash_type(const assay_node_t* node) {
  const int64_t t = assay_attr_i64(node, "stash_type", ASSAY_TYPE_FLOAT);
  return t > 0 && t < ASSAY_TYPE_COUNT && assay_type_is_float((assay_type_t)t)
             ? (assay_type_t)t
             : ASSAY_TYPE_UNDEFINED;
}

static assay_status_t broadcast_check(const assay_infer_t* c, size_t i, const char* name,
                                      const assay_shape_t* x) {
  if (!assay_infer_has(c, i)) return NULL;
  const assay_shape_t s = assay_infer_shape(c, i);
  if (!s.known || !x->known) return NULL;
  bool fits = s.rank <= x->rank;
  for (int k = 1; fits && k <= s.rank; k++) {
    const assay_dim_t* d = s.dims[s.rank - k];
    int64_t v;
    fits = (assay_dim_value(d, &v) && v == 1) || !assay_dim_differ(d, x->dims[x->rank - k]);
  }
  if (fits) return NULL;
  return ASSAY_NODE_ERROR(
      c->node, ASSAY_CORRUPT, "%s has type %s, which does not broadcast to the input's %s", name,
      ASSAY_VALTYPE_TEXT(assay_infer_type(c, i)), ASSAY_VALTYPE_TEXT(assay_infer_type(c, 0)));
}

// Y, and the statistics [d0, ..., d(axis - 1), 1, ..., 1] as the outputs after it.
static assay_status_t layer_infer(assay_infer_t* c) {
  const assay_shape_t x = assay_infer_shape(c, 0);
  const assay_type_t stash = stash_type(c->node);
  if (stash == ASSAY_TYPE_UNDEFINED) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_CORRUPT, "stash_type is %lld, expected a float type",
                            (long long)assay_attr_i64(c->node, "stash_type", 1));
  }
  ASSAY_TRY(broadcast_check(c, 1, "scale", &x));
  ASSAY_TRY(broadcast_check(c, 2, "B", &x));
  ASSAY_TRY(assay_infer_set(c, 0, ASSAY_TYPE_UNDEFINED, x.known ? &x : NULL));
  assay_shape_t stats = x;
  if (x.known) {
    int axis;
    ASSAY_TRY(assay_infer_axis(c, "axis", assay_attr_i64(c->node, "axis", -1), x.rank, &axis));
    for (int i = axis; i < x.rank; i++) stats.dims[i] = assay_dim_const(c->dims, 1);
  }
  for (size_t i = 1; i < c->node->n_outputs; i++) {
    ASSAY_TRY(assay_infer_set(c, i, stash, x.known ? &stats : NULL));
  }
  return NULL;
}

// Output i with one element a row; *out NULL if it is not wanted.
static assay_status_t stats_output(assay_eval_t* c, size_t i, const assay_tensor_t* x, int axis,
                                   assay_type_t type, double** out) {
  *out = NULL;
  if (!assay_eval_wants(c, i)) return NULL;
  int64_t dims[ASSAY_MAX_RANK];
  for (int d = 0; d < x->rank; d++) dims[d] = d < axis ? x->dims[d] : 1;
  assay_tensor_t* t;
  ASSAY_TRY(assay_eval_output(c, i, assay_eval_out_type(c, i, type), x->rank, dims, &t));
  *out = assay_f64(t);
  return NULL;
}

// mean_output 0: no such output.
static assay_status_t layer_either(assay_eval_t* c, bool centered, size_t mean_output,
                                   size_t inverse_output) {
  const assay_tensor_t* x = c->in[0];
  int axis;
  ASSAY_TRY(assay_eval_axis(c, "axis", assay_attr_i64(c->node, "axis", -1), x->rank, &axis));
  layer_t p = {.c = c,
               .centered = centered,
               .epsilon = assay_attr_f64(c->node, "epsilon", 1e-5),
               .x = assay_f64(x)};
  p.size = assay_dims_product(x->dims, axis, x->rank);
  p.rows = assay_dims_product(x->dims, 0, axis);
  assay_tensor_t* y;
  const assay_type_t y_type = c->in[1]->type;  // where X and scale may differ, Y is as scale
  ASSAY_TRY(assay_eval_output(c, 0, assay_eval_out_type(c, 0, y_type), x->rank, x->dims, &y));
  p.y = assay_f64(y);
  if (mean_output > 0) {
    ASSAY_TRY(stats_output(c, mean_output, x, axis, stash_type(c->node), &p.mean));
  }
  ASSAY_TRY(stats_output(c, inverse_output, x, axis, stash_type(c->node), &p.inverse));
  assay_status_t st = param_read(c, c->in[1], "scale", x, axis, &p.scale);
  if (!st && assay_eval_has(c, 2)) st = param_read(c, c->in[2], "B", x, axis, &p.bias);
  // Rows of no elements may be more than can be counted.
  if (!st && (y->size > 0 || p.mean || p.inverse)) layer_run(&p);
  assay_free(p.scale.owned);
  assay_free(p.bias.owned);
  return st;
}

static assay_status_t layer_eval(assay_eval_t* c) { return layer_either(c, true, 1, 2); }
static assay_status_t rms_eval(assay_eval_t* c) { return layer_either(c, false, 0, 1); }

// ---- SkipLayerNormalization, SkipSimplifiedLayerNormalization ---------------------------------
// s = input + skip (+ bias), normalized over the last axis. Source: ONNX Runtime's
// ContribOperators.md. Outputs: the result, mean, 1 / standard deviation, s.

static assay_status_t skip_infer(assay_infer_t* c) {
  const assay_shape_t x = assay_infer_shape(c, 0);
  ASSAY_TRY(assay_infer_want_rank(c, 0, 2, 3));
  ASSAY_TRY(broadcast_check(c, 1, "skip", &x));
  for (size_t i = 2; i < c->node->n_inputs; i++) {
    ASSAY_TRY(broadcast_check(c, i, "a parameter", &x));
  }
  const assay_shape_t* shape = x.known ? &x : NULL;
  assay_shape_t stats = x;
  if (x.known) stats.dims[x.rank - 1] = assay_dim_const(c->dims, 1);
  ASSAY_TRY(assay_infer_set(c, 0, ASSAY_TYPE_UNDEFINED, shape));
  ASSAY_TRY(assay_infer_set(c, 1, ASSAY_TYPE_FLOAT, x.known ? &stats : NULL));
  ASSAY_TRY(assay_infer_set(c, 2, ASSAY_TYPE_FLOAT, x.known ? &stats : NULL));
  return assay_infer_set(c, 3, ASSAY_TYPE_UNDEFINED, shape);
}

// sum[i] = round(round(x + skip) + bias).
static void add_rows(const assay_eval_t* c, const assay_tensor_t* x, const param_t* skip,
                     const param_t* bias, double* sum) {
  const int64_t size = x->dims[x->rank - 1];
  const bool exact = c->arith == ASSAY_ARITH_F64;
#pragma omp parallel for schedule(static) if (x->size > 100000)
  for (int64_t r = 0; r < (size == 0 ? 0 : x->size / size); r++) {
    const double* from = assay_f64(x) + r * size;
    int64_t step;
    const double* add = param_row(skip, r * size, &step);
    for (int64_t j = 0; j < size; j++) {
      sum[r * size + j] = assay_norm_round(c, exact, from[j] + add[j * step]);
    }
    if (!bias->data) continue;
    add = param_row(bias, r * size, &step);
    for (int64_t j = 0; j < size; j++) {
      sum[r * size + j] = assay_norm_round(c, exact, sum[r * size + j] + add[j * step]);
    }
  }
}

// An input of one element for each place of the last axis.
static assay_status_t hidden_vector(const assay_eval_t* c, size_t i, const char* name, int64_t n) {
  if (!assay_eval_has(c, i)) return NULL;
  const assay_tensor_t* t = c->in[i];
  if (t->rank == 1 && t->dims[0] == n) return NULL;
  return ASSAY_NODE_ERROR(c->node, ASSAY_CORRUPT, "%s has shape %s, expected [%lld]", name,
                          ASSAY_DIMS_TEXT(t), (long long)n);
}

static assay_status_t skip_either(assay_eval_t* c, bool centered) {
  const assay_tensor_t* x = c->in[0];
  const size_t bias_input = centered ? 4 : 3;
  ASSAY_TRY(assay_eval_want_rank(c, 0, 2, 3));
  const int axis = x->rank - 1;
  const int64_t size = x->dims[axis];
  ASSAY_TRY(hidden_vector(c, 2, "gamma", size));
  if (centered) ASSAY_TRY(hidden_vector(c, 3, "beta", size));
  ASSAY_TRY(hidden_vector(c, bias_input, "bias", size));
  layer_t p = {.c = c,
               .centered = centered,
               .size = size,
               .rows = assay_dims_product(x->dims, 0, axis),
               .epsilon = assay_attr_f64(c->node, "epsilon", 1e-12)};
  assay_tensor_t *y, *s;
  ASSAY_TRY(assay_eval_output(c, 0, x->type, x->rank, x->dims, &y));
  ASSAY_TRY(stats_output(c, 1, x, axis, ASSAY_TYPE_FLOAT, &p.mean));
  ASSAY_TRY(stats_output(c, 2, x, axis, ASSAY_TYPE_FLOAT, &p.inverse));
  double* sum = NULL;
  if (assay_eval_wants(c, 3)) {
    ASSAY_TRY(assay_eval_output(c, 3, x->type, x->rank, x->dims, &s));
    sum = assay_f64(s);
  } else {
    sum = assay_f64(y);  // in place: a row is read before it is written
  }
  p.x = sum;
  p.y = assay_f64(y);
  param_t skip = {0}, bias = {0};
  assay_status_t st = param_read(c, c->in[1], "skip", x, axis, &skip);
  if (!st && assay_eval_has(c, bias_input)) {
    st = param_read(c, c->in[bias_input], "bias", x, axis, &bias);
  }
  if (!st) st = param_read(c, c->in[2], "gamma", x, axis, &p.scale);
  if (!st && centered && assay_eval_has(c, 3)) {
    st = param_read(c, c->in[3], "beta", x, axis, &p.bias);
  }
  if (!st) {
    add_rows(c, x, &skip, &bias, sum);
    layer_run(&p);
  }
  assay_free(skip.owned);
  assay_free(bias.owned);
  assay_free(p.scale.owned);
  assay_free(p.bias.owned);
  return st;
}

static assay_status_t skip_eval(assay_eval_t* c) { return skip_either(c, true); }
static assay_status_t skip_simplified_eval(assay_eval_t* c) { return skip_either(c, false); }

// ---- EmbedLayerNormalization -----------------------------------------------------------------
// LayerNormalization of word + position + segment embeddings. Source: ONNX Runtime's
// ContribOperators.md and contrib_ops/cpu/bert/embed_layer_norm.cc (the sum's order; mask_index
// counts the ones of each sample's mask).
enum { IDS, SEGMENT_IDS, WORDS, POSITIONS, SEGMENTS, GAMMA, BETA, MASK, POSITION_IDS };

static assay_status_t embed_infer(assay_infer_t* c) {
  const assay_shape_t ids = assay_infer_shape(c, IDS), words = assay_infer_shape(c, WORDS);
  ASSAY_TRY(assay_infer_want_rank(c, IDS, 2, 2));
  ASSAY_TRY(assay_infer_want_rank(c, WORDS, 2, 2));
  ASSAY_TRY(assay_infer_want_rank(c, POSITIONS, 2, 2));
  assay_shape_t y = {.known = true, .rank = 3}, mask = {.known = true, .rank = 1};
  if (ids.known) {
    y.dims[0] = mask.dims[0] = ids.dims[0];
    y.dims[1] = ids.dims[1];
  }
  if (words.known) y.dims[2] = words.dims[1];
  const assay_type_t type = assay_infer_elem(c, WORDS);
  ASSAY_TRY(assay_infer_set(c, 0, type, &y));
  ASSAY_TRY(assay_infer_set(c, 1, ASSAY_TYPE_INT32, &mask));
  return assay_infer_set(c, 2, type, &y);
}

// Row `index` of an embedding table; an error if there is none.
static assay_status_t embedding_row(const assay_eval_t* c, const char* name,
                                    const assay_tensor_t* table, int64_t index,
                                    const double** out) {
  if (index < 0 || index >= table->dims[0]) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                            "%s %lld is out of range: the table has %lld rows", name,
                            (long long)index, (long long)table->dims[0]);
  }
  *out = assay_f64(table) + index * table->dims[1];
  return NULL;
}

static assay_status_t embed_check(const assay_eval_t* c) {
  const assay_tensor_t *ids = c->in[IDS], *words = c->in[WORDS];
  static const char* const names[] = {
      "input_ids", "segment_ids", "word_embedding", "position_embedding", "segment_embedding",
      "gamma",     "beta",        "mask",           "position_ids"};
  if (ids->rank != 2 || words->rank != 2) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_CORRUPT,
                            "input_ids has shape %s and word_embedding %s, expected ranks 2 and 2",
                            ASSAY_DIMS_TEXT(ids), ASSAY_DIMS_TEXT(words));
  }
  for (size_t i = 0; i < 9; i++) {
    if (!assay_eval_has(c, i)) continue;
    const assay_tensor_t* t = c->in[i];
    bool fits = true;
    if (i == SEGMENT_IDS || i == MASK) {
      fits = t->rank == 2 && t->dims[0] == ids->dims[0] && t->dims[1] == ids->dims[1];
    } else if (i == POSITION_IDS) {
      fits = t->rank == 2 && (t->dims[0] == ids->dims[0] || t->dims[0] == 1) &&
             t->dims[1] == ids->dims[1];
    } else if (i == POSITIONS || i == SEGMENTS) {
      fits = t->rank == 2 && t->dims[1] == words->dims[1];
    } else if (i == GAMMA || i == BETA) {
      fits = t->rank == 1 && t->dims[0] == words->dims[1];
    }
    if (fits) continue;
    return ASSAY_NODE_ERROR(c->node, ASSAY_CORRUPT,
                            "%s has shape %s, which does not go with input_ids %s and "
                            "word_embedding %s",
                            names[i], ASSAY_DIMS_TEXT(t), ASSAY_DIMS_TEXT(ids),
                            ASSAY_DIMS_TEXT(words));
  }
  if (assay_eval_has(c, SEGMENT_IDS) && !assay_eval_has(c, SEGMENTS)) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_CORRUPT, "segment_ids without segment_embedding");
  }
  return NULL;
}

// (word + position) + segment.
static assay_status_t embed_sum(const assay_eval_t* c, double* sum) {
  const assay_tensor_t* ids = c->in[IDS];
  const int64_t length = ids->dims[1], hidden = c->in[WORDS]->dims[1];
  for (int64_t i = 0; i < ids->size; i++, sum += hidden) {
    int64_t position = i % length;
    if (assay_eval_has(c, POSITION_IDS)) {
      const assay_tensor_t* p = c->in[POSITION_IDS];
      position = assay_i64(p)[p->dims[0] == 1 ? i % length : i];
    }
    const double *word = NULL, *pos = NULL, *segment = NULL;
    ASSAY_TRY(embedding_row(c, "word id", c->in[WORDS], assay_i64(ids)[i], &word));
    ASSAY_TRY(embedding_row(c, "position", c->in[POSITIONS], position, &pos));
    for (int64_t j = 0; j < hidden; j++) sum[j] = assay_acc(c, word[j] + pos[j]);
    if (!assay_eval_has(c, SEGMENT_IDS)) continue;
    ASSAY_TRY(embedding_row(c, "segment id", c->in[SEGMENTS], assay_i64(c->in[SEGMENT_IDS])[i],
                            &segment));
    for (int64_t j = 0; j < hidden; j++) sum[j] = assay_acc(c, sum[j] + segment[j]);
  }
  return NULL;
}

static assay_status_t embed_mask(assay_eval_t* c) {
  if (!assay_eval_wants(c, 1)) return NULL;
  const assay_tensor_t* ids = c->in[IDS];
  assay_tensor_t* out;
  ASSAY_TRY(assay_eval_output(c, 1, ASSAY_TYPE_INT32, 1, ids->dims, &out));
  for (int64_t b = 0; b < ids->dims[0]; b++) {
    int64_t n = 0;
    for (int64_t i = 0; assay_eval_has(c, MASK) && i < ids->dims[1]; i++) {
      n += assay_i64(c->in[MASK])[b * ids->dims[1] + i] == 1;
    }
    assay_i64(out)[b] = assay_type_wrap(ASSAY_TYPE_INT32, n);
  }
  return NULL;
}

static assay_status_t embed_eval(assay_eval_t* c) {
  ASSAY_TRY(embed_check(c));
  const assay_tensor_t *ids = c->in[IDS], *words = c->in[WORDS];
  const int64_t dims[3] = {ids->dims[0], ids->dims[1], words->dims[1]};
  assay_tensor_t *y, *s;
  ASSAY_TRY(assay_eval_output(c, 0, words->type, 3, dims, &y));
  double* sum = assay_f64(y);
  if (assay_eval_wants(c, 2)) {
    ASSAY_TRY(assay_eval_output(c, 2, words->type, 3, dims, &s));
    sum = assay_f64(s);
  }
  ASSAY_TRY(embed_mask(c));
  ASSAY_TRY(embed_sum(c, sum));
  const layer_t p = {.c = c,
                     .centered = true,
                     .rows = ids->size,
                     .size = words->dims[1],
                     .epsilon = assay_attr_f64(c->node, "epsilon", 1e-12),
                     .x = sum,
                     .scale = {.data = assay_f64(c->in[GAMMA]), .period = c->in[GAMMA]->size},
                     .bias = {.data = assay_f64(c->in[BETA]), .period = c->in[BETA]->size},
                     .y = assay_f64(y)};
  if (y->size > 0) layer_run(&p);
  return NULL;
}

static void embed_cost(const assay_eval_t* c, assay_cost_t* out) {
  if (c->in[WORDS]->rank != 2) return;
  const double n = (double)c->in[IDS]->size * (double)c->in[WORDS]->dims[1];
  out->flops = 10 * n;
  out->bytes = 4 * 4 * n;  // rows of the tables, not the tables
}

// ---- bounds -----------------------------------------------------------------------------------

// What the bounds of all these operators are made from: rows of `x`, whose elements lie within `e`
// of the engine's own.
typedef struct layer_bound {
  assay_bound_t* c;
  layer_t layer;  // shape, epsilon, scale and bias
  const double* e[2];
  double *y[2], *mean[2], *inverse[2];  // limits; NULL where not wanted
} layer_bound_t;

static void bound_row(const layer_bound_t* b, bool probable, int64_t r) {
  const layer_t* p = &b->layer;
  const int64_t at = r * p->size;
  const double* e = b->e[probable] ? b->e[probable] + at : NULL;
  const assay_norm_group_t group = {.x = p->x + at, .e = e, .runs = 1, .run = p->size};
  assay_norm_apply_t a = {
      .rounding = b->c->rounding, .centered = p->centered, .n = p->size, .x = p->x + at, .e = e};
  a.stats = assay_norm_bound_stats(b->c->rounding, probable, p->centered, &group, p->epsilon);
  a.scale = param_row(&p->scale, at, &a.scale_step);
  if (p->bias.data) a.bias = param_row(&p->bias, at, &a.bias_step);
  if (b->y[probable]) {
    a.limits = b->y[probable] + at;
    assay_norm_bound_apply(&a);
  }
  if (b->mean[probable]) b->mean[probable][r] = a.stats.mean_error;
  if (b->inverse[probable]) {
    const double error = a.stats.inverse * a.stats.inverse_error;
    b->inverse[probable][r] = error == error ? error : (double)INFINITY;
  }
}

// mean_output 0: there is none.
static assay_status_t bound_rows(layer_bound_t* b, size_t mean_output, size_t inverse_output) {
  assay_bound_t* c = b->c;
  ASSAY_TRY(assay_bound_output(c, 0, &b->y[0], &b->y[1]));
  if (mean_output > 0) ASSAY_TRY(assay_bound_output(c, mean_output, &b->mean[0], &b->mean[1]));
  ASSAY_TRY(assay_bound_output(c, inverse_output, &b->inverse[0], &b->inverse[1]));
#pragma omp parallel for schedule(static) if (b->layer.rows * b->layer.size > 30000)
  for (int64_t r = 0; r < b->layer.rows; r++) {
    bound_row(b, false, r);
    bound_row(b, true, r);
  }
  return NULL;
}

static assay_status_t layer_bound_either(assay_bound_t* c, bool centered, size_t mean_output,
                                         size_t inverse_output) {
  ASSAY_TRY(assay_bound_want_exact(c, 0));
  const assay_tensor_t* x = c->in[0];
  const assay_eval_t reader = assay_bound_as_eval(c);
  int axis;
  ASSAY_TRY(assay_eval_axis(&reader, "axis", assay_attr_i64(c->node, "axis", -1), x->rank, &axis));
  layer_bound_t b = {.c = c,
                     .layer = {.centered = centered,
                               .epsilon = assay_attr_f64(c->node, "epsilon", 1e-5),
                               .x = assay_f64(x),
                               .size = assay_dims_product(x->dims, axis, x->rank),
                               .rows = assay_dims_product(x->dims, 0, axis)},
                     .e = {assay_bound_in(c, 0, false), assay_bound_in(c, 0, true)}};
  param_t *scale = &b.layer.scale, *bias = &b.layer.bias;
  assay_status_t st = param_read(&reader, c->in[1], "scale", x, axis, scale);
  if (!st && assay_eval_has(&reader, 2)) st = param_read(&reader, c->in[2], "B", x, axis, bias);
  if (!st) st = bound_rows(&b, mean_output, inverse_output);
  assay_free(scale->owned);
  assay_free(bias->owned);
  return st;
}

static assay_status_t layer_bound(assay_bound_t* c) { return layer_bound_either(c, true, 1, 2); }
static assay_status_t rms_bound(assay_bound_t* c) { return layer_bound_either(c, false, 0, 1); }

// The sum that is normalized in truth, and what rounding it may do, in any order of two additions.
static void bound_sum_rows(const assay_bound_t* c, const param_t* skip, const param_t* bias,
                           double* sum, double* error) {
  const assay_tensor_t* x = c->in[0];
  const int64_t size = x->dims[x->rank - 1];
  const double u = assay_bound_inner(c->rounding).u;
  for (int64_t r = 0; r < (size == 0 ? 0 : x->size / size); r++) {
    int64_t skip_step = 0, bias_step = 0;
    const double* add = param_row(skip, r * size, &skip_step);
    const double* more = bias->data ? param_row(bias, r * size, &bias_step) : NULL;
    for (int64_t j = 0; j < size; j++) {
      const int64_t i = r * size + j;
      const double a = assay_f64(x)[i], b = add[j * skip_step], m = more ? more[j * bias_step] : 0;
      sum[i] = a + b + m;
      error[i] = u * (more ? 2 * (fabs(a) + fabs(b) + fabs(m)) : fabs(sum[i]));
    }
  }
}

// Limits of the sum as an output.
static assay_status_t bound_sum_output(assay_bound_t* c, size_t i, const double* error) {
  double *g, *p;
  ASSAY_TRY(assay_bound_output(c, i, &g, &p));
  if (!g) return NULL;
  memcpy(g, error, (size_t)c->out[i]->size * sizeof *g);
  memcpy(p, error, (size_t)c->out[i]->size * sizeof *p);
  return NULL;
}

static assay_status_t skip_bound_read(layer_bound_t* b, param_t* skip, param_t* bias) {
  assay_bound_t* c = b->c;
  const assay_tensor_t* x = c->in[0];
  const assay_eval_t reader = assay_bound_as_eval(c);
  const bool centered = b->layer.centered;
  const size_t bias_input = centered ? 4 : 3;
  const int axis = x->rank - 1;
  ASSAY_TRY(param_read(&reader, c->in[1], "skip", x, axis, skip));
  if (assay_eval_has(&reader, bias_input))
    ASSAY_TRY(param_read(&reader, c->in[bias_input], "bias", x, axis, bias));
  ASSAY_TRY(param_read(&reader, c->in[2], "gamma", x, axis, &b->layer.scale));
  if (centered && assay_eval_has(&reader, 3))
    ASSAY_TRY(param_read(&reader, c->in[3], "beta", x, axis, &b->layer.bias));
  return NULL;
}

static assay_status_t skip_bound_either(assay_bound_t* c, bool centered) {
  ASSAY_TRY(assay_bound_want_exact(c, SIZE_MAX));
  const assay_tensor_t* x = c->in[0];
  layer_bound_t b = {.c = c,
                     .layer = {.centered = centered,
                               .size = x->dims[x->rank - 1],
                               .rows = assay_dims_product(x->dims, 0, x->rank - 1),
                               .epsilon = assay_attr_f64(c->node, "epsilon", 1e-12)}};
  param_t skip = {0}, bias = {0};
  double *sum = NULL, *error = NULL;
  assay_status_t st = skip_bound_read(&b, &skip, &bias);
  if (!st) st = assay_new_array((size_t)x->size, sizeof *sum, &sum);
  if (!st) st = assay_new_array((size_t)x->size, sizeof *error, &error);
  if (!st) {
    bound_sum_rows(c, &skip, &bias, sum, error);
    b.layer.x = sum;
    b.e[0] = b.e[1] = error;
    st = bound_rows(&b, 1, 2);
  }
  if (!st) st = bound_sum_output(c, 3, error);
  assay_free(sum);
  assay_free(error);
  assay_free(skip.owned);
  assay_free(bias.owned);
  assay_free(b.layer.scale.owned);
  assay_free(b.layer.bias.owned);
  return st;
}

static assay_status_t skip_bound(assay_bound_t* c) { return skip_bound_either(c, true); }
static assay_status_t skip_simplified_bound(assay_bound_t* c) {
  return skip_bound_either(c, false);
}

// Word, position and segment in any order of two additions: truth of the sum is made again, and
// again from absolute values.
static assay_status_t embed_bound_with(assay_bound_t* c, double* sum, double* error) {
  const assay_eval_t reader = assay_bound_as_eval(c);
  assay_tensor_t* abs[9] = {0};
  assay_eval_t widest = reader;
  widest.in = abs;
  assay_status_t st = embed_sum(&reader, sum);
  for (size_t i = 0; !st && i < c->n_in && i < 9; i++)
    if (c->in[i]) st = assay_tensor_abs(c->in[i], &abs[i]);
  if (!st) st = embed_sum(&widest, error);
  for (size_t i = 0; i < 9; i++) assay_tensor_release(abs[i]);
  if (st) return st;
  const double u = assay_bound_inner(c->rounding).u;
  for (int64_t i = 0; i < c->out[0]->size; i++) error[i] *= 2 * u;
  layer_bound_t b = {
      .c = c,
      .layer = {.centered = true,
                .rows = c->in[IDS]->size,
                .size = c->in[WORDS]->dims[1],
                .epsilon = assay_attr_f64(c->node, "epsilon", 1e-12),
                .x = sum,
                .scale = {.data = assay_f64(c->in[GAMMA]), .period = c->in[GAMMA]->size},
                .bias = {.data = assay_f64(c->in[BETA]), .period = c->in[BETA]->size}},
      .e = {error, error}};
  ASSAY_TRY(bound_rows(&b, 0, SIZE_MAX));  // it puts out no statistics
  return c->n_out > 2 ? bound_sum_output(c, 2, error) : NULL;
}

static assay_status_t embed_bound(assay_bound_t* c) {
  ASSAY_TRY(assay_bound_want_exact(c, SIZE_MAX));
  if (c->out[0]->size == 0) return NULL;
  double *sum = NULL, *error = NULL;
  assay_status_t st = assay_new_array((size_t)c->out[0]->size, sizeof *sum, &sum);
  if (!st) st = assay_new_array((size_t)c->out[0]->size, sizeof *error, &error);
  if (!st) st = embed_bound_with(c, sum, error);
  assay_free(sum);
  assay_free(error);
  return st;
}

static void layer_dd(assay_dd_eval_t* c) { assay_layer_norm_dd(c, true); }
static void rms_dd(assay_dd_eval_t* c) { assay_layer_norm_dd(c, false); }

const assay_op_t assay_ops_norm_layer[] = {
    // Before it was ai.onnx's, ONNX Runtime and PyTorch wrote it there, with the same meaning.
    {.name = "LayerNormalization",
     .domain = "",
     .since = 1,
     .schema = "X:T, Scale:V, B?:V -> Y:V, Mean?:U, InvStdDev?:U | axis:i=-1, epsilon:f=1e-5, "
               "stash_type:i=1 | T=FLOAT; V=FLOAT; U=float bfloat16 double",
     .infer = layer_infer,
     .eval = layer_eval,
     .bound = layer_bound,
     .dd = layer_dd,
     .cost = layer_cost},
    {.name = "LayerNormalization",
     .domain = "",
     .since = 17,
     .infer = layer_infer,
     .eval = layer_eval,
     .bound = layer_bound,
     .dd = layer_dd,
     .cost = layer_cost},
    {.name = "RMSNormalization",
     .domain = "",
     .since = 23,
     .infer = layer_infer,
     .eval = rms_eval,
     .bound = rms_bound,
     .dd = rms_dd,
     .cost = layer_cost},
    {.name = "SimplifiedLayerNormalization",
     .domain = "",
     .since = 1,
     .schema = "X:T, scale:V -> Y:V, inv_std_var?:U | axis:i=-1, epsilon:f=1e-5, stash_type:i=1 "
               "| T=FLOAT; V=FLOAT; U=FLOAT",
     .infer = layer_infer,
     .eval = rms_eval,
     .bound = rms_bound,
     .dd = rms_dd,
     .cost = layer_cost},
    {.name = "SkipLayerNormalization",
     .domain = "com.microsoft",
     .since = 1,
     .schema = "input:T, skip:T, gamma:T, beta?:T, bias?:T -> output:T, mean?:U, inv_std_var?:U, "
               "input_skip_bias_sum?:T | epsilon:f=1e-12 | T=float float16 bfloat16; U=float",
     .infer = skip_infer,
     .eval = skip_eval,
     .bound = skip_bound,
     .cost = layer_cost},
    {.name = "SkipSimplifiedLayerNormalization",
     .domain = "com.microsoft",
     .since = 1,
     .schema = "input:T, skip:T, gamma:T, bias?:T -> output:T, mean?:U, inv_std_var?:U, "
               "input_skip_bias_sum?:T | epsilon:f=1e-12 | T=float float16 bfloat16; U=float",
     .infer = skip_infer,
     .eval = skip_simplified_eval,
     .bound = skip_simplified_bound,
     .cost = layer_cost},
    {.name = "EmbedLayerNormalization",
     .domain = "com.microsoft",
     .since = 1,
     .schema = "input_ids:T1, segment_ids?:T1, word_embedding:T, position_embedding:T, "
               "segment_embedding?:T, gamma:T, beta:T, mask?:T1, position_ids?:T1 -> output:T, "
               "mask_index?:T1, embedding_sum?:T | epsilon:f=1e-12, mask_index_type:i=0 "
               "| T1=int32; T=float float16",
     .infer = embed_infer,
     .eval = embed_eval,
     .bound = embed_bound,
     .cost = embed_cost},
    {0}};
