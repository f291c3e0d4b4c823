// Biases by relative position of com.microsoft: RelativePositionBias, GatedRelativePositionBias.
#include <math.h>
#include <string.h>

#include "base/functions.h"
#include "ops/families.h"
#include "ops/math/activation.h"
#include "ops/running_bound.h"

// ---- RelativePositionBias ---------------------------------------------------------------------

enum { TABLE, QUERY_LENGTH, KEY_LENGTH };

// T5's buckets: one a distance while it is small, then logarithmic up to max_distance. The quotient
// of logarithms is computed and cut as T5 does, in fp32.
// Source: Raffel et al. 2020 (arXiv 1910.10683), 2.1; transformers' T5Attention.
static int64_t bucket_of(int64_t distance, int64_t buckets, bool both, int64_t max_distance) {
  int64_t first = 0;
  if (both) {
    buckets /= 2;
    if (distance > 0) first = buckets;
    distance = distance < 0 ? -distance : distance;
  } else {
    distance = distance < 0 ? -distance : 0;  // keys after the query are at distance 0
  }
  const int64_t exact = buckets / 2;
  if (distance < exact) return first + distance;
  int64_t at = buckets - 1;
  if (exact > 0 && max_distance > exact) {
    const float share = (float)assay_log((double)((float)distance / (float)exact)) /
                        (float)assay_log((double)((float)max_distance / (float)exact)) *
                        (float)(buckets - exact);
    if (share < (float)(buckets - 1 - exact)) at = exact + (int64_t)share;
  }
  return first + at;
}

static assay_status_t read_length(const assay_eval_t* c, size_t input, int64_t* out) {
  const assay_tensor_t* t = c->in[input];
  if (t->size != 1 || assay_i64(t)[0] < 0) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                            "input %zu has shape %s and starts with %lld; expected one length",
                            input, ASSAY_DIMS_TEXT(t),
                            t->size > 0 ? (long long)assay_i64(t)[0] : 0LL);
  }
  *out = assay_i64(t)[0];
  return NULL;
}

// Source: com.microsoft RelativePositionBias 1; the table is [buckets, heads] in the order of
// columns, that is, each head's buckets are neighbours.
static assay_status_t relative_eval(assay_eval_t* c) {
  const assay_tensor_t* table = c->in[TABLE];
  int64_t rows, keys;
  ASSAY_TRY(read_length(c, QUERY_LENGTH, &rows));
  ASSAY_TRY(read_length(c, KEY_LENGTH, &keys));
  const int64_t max_distance = assay_attr_i64(c->node, "max_distance", 0);
  const bool both = assay_attr_i64(c->node, "is_bidirectional", 0) != 0;
  if (table->rank != 2 || table->dims[0] < (both ? 2 : 1) || rows != keys || max_distance < 1) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                            "bias_table has shape %s, lengths are %lld and %lld, max_distance is "
                            "%lld; expected [buckets, heads], equal lengths and 1 or more",
                            ASSAY_DIMS_TEXT(table), (long long)rows, (long long)keys,
                            (long long)max_distance);
  }
  const int64_t buckets = table->dims[0], heads = table->dims[1];
  const int64_t dims[4] = {1, heads, rows, keys};
  assay_tensor_t* y = NULL;
  ASSAY_TRY(assay_eval_output(c, 0, assay_eval_out_type(c, 0, table->type), 4, dims, &y));
  double* to = assay_f64(y);
  for (int64_t h = 0; h < heads; h++) {
    for (int64_t i = 0; i < rows; i++) {
      for (int64_t j = 0; j < keys; j++) {
        *to++ = assay_f64(table)[h * buckets + bucket_of(j - i, buckets, both, max_distance)];
      }
    }
  }
  return NULL;
}

static assay_status_t relative_infer(assay_infer_t* c) {
  ASSAY_TRY(assay_infer_want_rank(c, TABLE, 2, 2));
  const assay_shape_t table = assay_infer_shape(c, TABLE);
  assay_shape_t y = {.known = true, .rank = 4, .dims = {assay_dim_const(c->dims, 1)}};
  assay_content_t length;
  if (table.known) y.dims[1] = table.dims[1];
  for (size_t i = 0; i < 2; i++) {
    if (assay_infer_content(c, QUERY_LENGTH + i, &length) && length.n == 1) {
      y.dims[2 + i] = length.elems[0];
    }
  }
  return assay_infer_set(c, 0, ASSAY_TYPE_UNDEFINED, &y);
}

// ---- GatedRelativePositionBias ----------------------------------------------------------------

enum { G_QUERY, G_QUERY_BIAS, G_REL, G_WEIGHT, G_BIAS, G_ECO, G_OFFSET };

typedef struct gated {
  int64_t batch, length, heads, size, wide;
  const double* token;  // rows of the query, [.., heads * size]
} gated_t;

static assay_status_t read_gated(const assay_eval_t* c, gated_t* g) {
  const assay_tensor_t *q = c->in[G_QUERY], *b = c->in[G_QUERY_BIAS], *rel = c->in[G_REL];
  const assay_tensor_t *w = c->in[G_WEIGHT], *wb = c->in[G_BIAS], *eco = c->in[G_ECO];
  g->heads = assay_attr_i64(c->node, "num_heads", 0);
  if (assay_eval_has(c, G_OFFSET) || q->rank != 3) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_UNSUPPORTED,
                            "packed tokens (token_offset) are not evaluated");
  }
  bool fits = g->heads > 0 && q->dims[2] % g->heads == 0 && w->rank == 2;
  if (fits) {
    g->batch = q->dims[0], g->length = q->dims[1], g->size = q->dims[2] / g->heads;
    g->wide = w->dims[1];
    g->token = assay_f64(q);
    fits = b->rank == 1 && b->dims[0] == q->dims[2] && w->dims[0] == g->size && g->wide > 0 &&
           g->wide % 2 == 0 && wb->rank == 1 && wb->dims[0] == g->wide && rel->rank == 4 &&
           rel->dims[0] == 1 && rel->dims[1] == g->heads && rel->dims[2] == g->length &&
           rel->dims[3] == g->length && eco->size == g->heads;
  }
  if (fits) return NULL;
  return ASSAY_NODE_ERROR(
      c->node, ASSAY_INVALID_ARGUMENT,
      "query_layer has shape %s, query_bias %s, rel_pos %s, weight %s, bias %s, "
      "eco_a %s with %lld heads; expected [batch, length, heads * size], [heads "
      "* size], [1, heads, length, length], [size, D], [D], [1, heads, 1, 1]",
      ASSAY_DIMS_TEXT(q), ASSAY_DIMS_TEXT(b), ASSAY_DIMS_TEXT(rel), ASSAY_DIMS_TEXT(w),
      ASSAY_DIMS_TEXT(wb), ASSAY_DIMS_TEXT(eco), (long long)g->heads);
}

// The gate of one token and head: u (r eco - 1) + 2, where u and r are the sigmoids of the sums of
// the two halves of x W + bias.
static double gate_of(const assay_eval_t* c, const gated_t* g, int64_t row, int64_t h) {
  const double* x = g->token + (row * g->heads + h) * g->size;
  const double *b = assay_f64(c->in[G_QUERY_BIAS]) + h * g->size, *w = assay_f64(c->in[G_WEIGHT]);
  double sums[2] = {0, 0};
  for (int64_t d = 0; d < g->wide; d++) {
    double v = 0;
    for (int64_t i = 0; i < g->size; i++) {
      v = assay_acc(c, v + assay_acc(c, assay_acc(c, x[i] + b[i]) * w[i * g->wide + d]));
    }
    v = assay_acc(c, v + assay_f64(c->in[G_BIAS])[d]);
    double* sum = &sums[d >= g->wide / 2];
    *sum = assay_acc(c, *sum + v);
  }
  const double u = assay_acc(c, assay_sigmoid(sums[0])), r = assay_acc(c, assay_sigmoid(sums[1]));
  const double inner = assay_acc(c, assay_acc(c, r * assay_f64(c->in[G_ECO])[h]) - 1);
  return assay_acc(c, assay_acc(c, u * inner) + 2);
}

// The gate with limits: two sums over all columns of its half, of absolute terms.
static assay_near_t limit_gate(const assay_eval_t* c, const gated_t* g, int64_t row, int64_t h) {
  const assay_rounding_t* r = assay_running_bound_rounding(c);
  const assay_steps_t steps = assay_rounding_steps(r);
  const assay_factor_t f = assay_bound_sum(r, (double)g->size + (double)g->wide / 2 + 3);
  const double range = assay_format_info(r->accumulator)->max;
  const double* x = g->token + (row * g->heads + h) * g->size;
  const double *b = assay_f64(c->in[G_QUERY_BIAS]) + h * g->size, *w = assay_f64(c->in[G_WEIGHT]);
  double sums[2] = {0, 0}, sizes[2] = {0, 0};
  assay_near_t gates[2];
  for (int64_t d = 0; d < g->wide; d++) {
    const int half = d >= g->wide / 2;
    for (int64_t i = 0; i < g->size; i++) {
      const double term = (x[i] + b[i]) * w[i * g->wide + d];
      sums[half] += term;
      sizes[half] += fabs(term);
    }
    sums[half] += assay_f64(c->in[G_BIAS])[d];
    sizes[half] += fabs(assay_f64(c->in[G_BIAS])[d]);
  }
  const double tiny = (double)(g->size + 1) * (double)g->wide * steps.tiny;
  for (int k = 0; k < 2; k++) {
    const bool fits = sizes[k] * (1 + f.guaranteed) <= range;
    const assay_near_t sum = {sums[k], fits ? f.guaranteed * sizes[k] + tiny : (double)INFINITY,
                              fits ? f.probable * sizes[k] + tiny : (double)INFINITY};
    gates[k] = assay_near_function(&steps, assay_sigmoid(sum.x), sum, 0.25, 2);
    gates[k].g = fmin(gates[k].g, 1), gates[k].p = fmin(gates[k].p, 1);
  }
  const assay_near_t eco = assay_near_exact(assay_f64(c->in[G_ECO])[h]);
  const assay_near_t inner =
      assay_near_add(&steps, assay_near_mul(&steps, gates[1], eco), assay_near_exact(-1));
  return assay_near_add(&steps, assay_near_mul(&steps, gates[0], inner), assay_near_exact(2));
}

// Source: com.microsoft GatedRelativePositionBias 1.
static assay_status_t gated_eval(assay_eval_t* c) {
  gated_t g = {0};
  ASSAY_TRY(read_gated(c, &g));
  const int64_t n = g.length, dims[4] = {g.batch, g.heads, n, n};
  assay_tensor_t* y = NULL;
  ASSAY_TRY(assay_eval_output(c, 0, assay_eval_out_type(c, 0, c->in[0]->type), 4, dims, &y));
  const int64_t jobs = g.batch * g.heads * n;
#pragma omp parallel for schedule(static) if (jobs > 1 && y->size + jobs * g.size > 10000)
  for (int64_t i = 0; i < jobs; i++) {
    const int64_t b = i / (g.heads * n), h = i / n % g.heads, row = i % n;
    const double* rel = assay_f64(c->in[G_REL]) + (h * n + row) * n;
    if (c->running) {
      const assay_near_t near_gate = limit_gate(c, &g, b * n + row, h);
      const assay_steps_t steps = assay_rounding_steps(assay_running_bound_rounding(c));
      const assay_span_t to = assay_running_bound_of(c, assay_f64(y) + i * n);
      for (int64_t j = 0; j < n; j++)
        assay_near_put(assay_near_mul(&steps, near_gate, assay_near_exact(rel[j])),
                       assay_f64(y) + i * n, to, j);
      continue;
    }
    const double gate = gate_of(c, &g, b * n + row, h);
    for (int64_t j = 0; j < n; j++) assay_f64(y)[i * n + j] = assay_acc(c, gate * rel[j]);
  }
  return NULL;
}

static assay_status_t gated_infer(assay_infer_t* c) {
  ASSAY_TRY(assay_infer_want_rank(c, G_QUERY, 2, 3));
  ASSAY_TRY(assay_infer_want_rank(c, G_REL, 4, 4));
  const assay_shape_t q = assay_infer_shape(c, G_QUERY), rel = assay_infer_shape(c, G_REL);
  assay_shape_t y = {.known = true, .rank = 4};
  if (q.known && q.rank == 3) y.dims[0] = q.dims[0];
  for (int i = 1; rel.known && i < 4; i++) y.dims[i] = rel.dims[i];
  return assay_infer_set(c, 0, ASSAY_TYPE_UNDEFINED, &y);
}

static assay_status_t gated_bound(assay_bound_t* b) {
  return assay_bound_running_exact(b, gated_eval);
}

static void gated_cost(const assay_eval_t* c, assay_cost_t* out) {
  gated_t g = {0};
  assay_status_t st = read_gated(c, &g);
  const double rows = (double)g.batch * (double)g.heads * (double)g.length;
  if (!st) out->flops = rows * (2.0 * (double)g.size * (double)g.wide + (double)g.length);
  assay_status_free(st);
}

const assay_op_t assay_ops_ms_bias[] = {
    {.domain = "com.microsoft",
     .name = "RelativePositionBias",
     .since = 1,
     .flags = ASSAY_OP_MOVES,
     .infer = relative_infer,
     .eval = relative_eval,
     .schema = "bias_table:T, query_length:U, key_length:U -> output:T "
               "| is_bidirectional:i=0, max_distance:i! | T=float float16; U=int64"},
    {.domain = "com.microsoft",
     .name = "GatedRelativePositionBias",
     .since = 1,
     .flags = ASSAY_OP_CONTRACTS,
     .infer = gated_infer,
     .eval = gated_eval,
     .bound = gated_bound,
     .cost = gated_cost,
     .schema = "query_layer:T, query_bias:T, rel_pos:T, weight:T, bias:T, eco_a:T, "
               "token_offset?:M -> output:T | num_heads:i! | T=float float16; M=int32"},
    {0}};
