// LinearAttention: attention as a recurrence over a state of [keys, values].
#include "ops/attention/linear_attention.h"

#include <math.h>
#include <string.h>

#include "base/functions.h"
#include "ops/families.h"
#include "ops/running_bound.h"

enum { QUERY, KEY, VALUE, PAST, DECAY, BETA };

// ---- inference --------------------------------------------------------------------------------

static assay_status_t linear_infer(assay_infer_t* c) {
  for (size_t i = 0; i < 3; i++) ASSAY_TRY(assay_infer_want_rank(c, i, 3, 3));
  if (assay_infer_has(c, PAST)) ASSAY_TRY(assay_infer_want_rank(c, PAST, 4, 4));
  if (assay_infer_has(c, DECAY)) ASSAY_TRY(assay_infer_want_rank(c, DECAY, 3, 3));
  if (assay_infer_has(c, BETA)) ASSAY_TRY(assay_infer_want_rank(c, BETA, 3, 3));
  const int64_t q_heads = assay_attr_i64(c->node, "q_num_heads", 0);
  const int64_t kv_heads = assay_attr_i64(c->node, "kv_num_heads", 0);
  if (q_heads <= 0 || kv_heads <= 0 || q_heads % kv_heads != 0) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                            "q_num_heads is %lld, kv_num_heads %lld; expected a positive multiple",
                            (long long)q_heads, (long long)kv_heads);
  }
  const assay_shape_t q = assay_infer_shape(c, QUERY), v = assay_infer_shape(c, VALUE);
  const assay_dim_t* n = assay_dim_const(c->dims, kv_heads);
  const assay_dim_t* d_v = v.known ? assay_dim_floordiv(c->dims, v.dims[2], n) : NULL;
  assay_shape_t y = q, state = {.known = q.known, .rank = 4};
  if (q.known) {
    y.dims[2] = assay_dim_mul_i(c->dims, d_v, q_heads);
    state.dims[0] = q.dims[0];
    state.dims[1] = n;
    state.dims[2] = assay_dim_floordiv(c->dims, q.dims[2], assay_dim_const(c->dims, q_heads));
    state.dims[3] = d_v;
  }
  ASSAY_TRY(assay_infer_set(c, 0, assay_infer_elem(c, QUERY), &y));
  const assay_type_t type = assay_infer_elem(c, assay_infer_has(c, PAST) ? PAST : QUERY);
  return assay_infer_set(c, 1, type, &state);
}

// ---- evaluation -------------------------------------------------------------------------------

// [B, T, heads * n] with the B and T of the query; n into *out_n.
static assay_status_t check_packed(const assay_eval_t* c, const char* name, size_t input,
                                   int64_t heads, int64_t* out_n) {
  const assay_tensor_t *t = c->in[input], *q = c->in[QUERY];
  if (t->rank != 3 || q->rank != 3 || t->dims[0] != q->dims[0] || t->dims[1] != q->dims[1] ||
      t->dims[2] % heads != 0) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                            "%s has shape %s beside query %s; expected [batch, length, n * %lld "
                            "heads]",
                            name, ASSAY_DIMS_TEXT(t), ASSAY_DIMS_TEXT(q), (long long)heads);
  }
  *out_n = t->dims[2] / heads;
  return NULL;
}

// The decay and beta inputs, which the rule needs or forbids.
static assay_status_t check_gates(const assay_eval_t* c, assay_linear_attention_t* l) {
  const char* rule = assay_attr_str(c->node, "update_rule", "gated_delta");
  l->gated = strcmp(rule, "gated") == 0 || strcmp(rule, "gated_delta") == 0;
  l->delta = strcmp(rule, "delta") == 0 || strcmp(rule, "gated_delta") == 0;
  if (!l->gated && !l->delta && strcmp(rule, "linear") != 0) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                            "update_rule is '%s'; expected linear, gated, delta or gated_delta",
                            rule);
  }
  if (l->gated != assay_eval_has(c, DECAY) || l->delta != assay_eval_has(c, BETA)) {
    return ASSAY_NODE_ERROR(
        c->node, ASSAY_INVALID_ARGUMENT, "update_rule '%s' %s decay and %s beta; found %s and %s",
        rule, l->gated ? "needs" : "forbids", l->delta ? "needs" : "forbids",
        assay_eval_has(c, DECAY) ? "it" : "none", assay_eval_has(c, BETA) ? "it" : "none");
  }
  if (l->gated) {
    ASSAY_TRY(check_packed(c, "decay", DECAY, l->kv_heads, &l->decay_width));
    if (l->decay_width != 1 && l->decay_width != l->d_k) {
      return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                              "decay has shape %s; expected one number a head or one a key channel",
                              ASSAY_DIMS_TEXT(c->in[DECAY]));
    }
    l->decay = assay_f64(c->in[DECAY]);
  }
  if (l->delta) {
    ASSAY_TRY(check_packed(c, "beta", BETA, 1, &l->beta_width));
    if (l->beta_width != 1 && l->beta_width != l->kv_heads) {
      return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                              "beta has shape %s; expected one number a head, or one",
                              ASSAY_DIMS_TEXT(c->in[BETA]));
    }
    l->beta = assay_f64(c->in[BETA]);
  }
  return NULL;
}

// One step of one head's state s [d_k, d_v]; `write` has room for d_v numbers. Sums run over the
// key channels in order.
static void step(const assay_eval_t* c, const assay_linear_attention_t* l, int64_t b, int64_t h,
                 int64_t t, double* s, double* write) {
  const int64_t at = b * l->length + t, d_v = l->d_v;
  const double* k = l->k + (at * l->kv_heads + h) * l->d_k;
  const double* v = l->v + (at * l->kv_heads + h) * d_v;
  if (l->gated) {
    const double* g = l->decay + (at * l->kv_heads + h) * l->decay_width;
    for (int64_t i = 0; i < l->d_k; i++) {
      const double keep = assay_acc(c, assay_exp(g[l->decay_width == 1 ? 0 : i]));
      for (int64_t j = 0; j < d_v; j++) s[i * d_v + j] = assay_acc(c, s[i * d_v + j] * keep);
    }
  }
  memcpy(write, v, (size_t)d_v * sizeof *write);
  if (l->delta) {
    const double beta = l->beta[at * l->beta_width + (l->beta_width == 1 ? 0 : h)];
    for (int64_t j = 0; j < d_v; j++) {
      double stored = 0;
      for (int64_t i = 0; i < l->d_k; i++) {
        stored = assay_acc(c, stored + assay_acc(c, s[i * d_v + j] * k[i]));
      }
      write[j] = assay_acc(c, beta * assay_acc(c, v[j] - stored));
    }
  }
  for (int64_t i = 0; i < l->d_k; i++) {
    for (int64_t j = 0; j < d_v; j++) {
      s[i * d_v + j] = assay_acc(c, s[i * d_v + j] + assay_acc(c, k[i] * write[j]));
    }
  }
  const int64_t group = l->q_heads / l->kv_heads;
  for (int64_t h_q = h * group; h_q < (h + 1) * group; h_q++) {
    const double* q = l->q + (at * l->q_heads + h_q) * l->d_k;
    double* y = l->y + (at * l->q_heads + h_q) * d_v;
    memset(y, 0, (size_t)d_v * sizeof *y);
    for (int64_t i = 0; i < l->d_k; i++) {
      for (int64_t j = 0; j < d_v; j++) {
        y[j] = assay_acc(c, y[j] + assay_acc(c, q[i] * s[i * d_v + j]));
      }
    }
    for (int64_t j = 0; j < d_v; j++) y[j] = assay_acc(c, l->scale * y[j]);
  }
}

// Source: ONNX LinearAttention 27, run token by token. Heads are independent.
static assay_status_t linear_eval(assay_eval_t* c) {
  assay_linear_attention_t l = {.q_heads = assay_attr_i64(c->node, "q_num_heads", 0),
                                .kv_heads = assay_attr_i64(c->node, "kv_num_heads", 0)};
  if (l.q_heads <= 0 || l.kv_heads <= 0 || l.q_heads % l.kv_heads != 0) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                            "q_num_heads is %lld, kv_num_heads %lld; expected a positive multiple",
                            (long long)l.q_heads, (long long)l.kv_heads);
  }
  int64_t d_key = 0;
  ASSAY_TRY(check_packed(c, "query", QUERY, l.q_heads, &l.d_k));
  ASSAY_TRY(check_packed(c, "key", KEY, l.kv_heads, &d_key));
  ASSAY_TRY(check_packed(c, "value", VALUE, l.kv_heads, &l.d_v));
  if (d_key != l.d_k) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                            "query has heads of %lld channels, key of %lld; expected the same",
                            (long long)l.d_k, (long long)d_key);
  }
  l.batch = c->in[QUERY]->dims[0], l.length = c->in[QUERY]->dims[1];
  ASSAY_TRY(check_gates(c, &l));
  l.scale = assay_attr_f64(c->node, "scale", 0);
  if (l.scale == 0) l.scale = 1 / sqrt((double)l.d_k);
  l.q = assay_f64(c->in[QUERY]), l.k = assay_f64(c->in[KEY]), l.v = assay_f64(c->in[VALUE]);
  const assay_type_t type = c->in[QUERY]->type;
  const int64_t dims[3] = {l.batch, l.length, l.q_heads * l.d_v};
  const int64_t state_dims[4] = {l.batch, l.kv_heads, l.d_k, l.d_v};
  const int64_t heads = l.batch * l.kv_heads, write_dims[2] = {heads, l.d_v};
  const assay_tensor_t* past = assay_eval_has(c, PAST) ? c->in[PAST] : NULL;
  bool fits = !past || past->rank == 4;
  for (int i = 0; fits && past && i < 4; i++) fits = past->dims[i] == state_dims[i];
  if (!fits) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                            "past_state has shape %s; expected [%lld, %lld, %lld, %lld]",
                            ASSAY_DIMS_TEXT(past), (long long)l.batch, (long long)l.kv_heads,
                            (long long)l.d_k, (long long)l.d_v);
  }
  assay_tensor_t *y = NULL, *state = NULL, *write = NULL;
  ASSAY_TRY(assay_eval_output(c, 0, assay_eval_out_type(c, 0, type), 3, dims, &y));
  const assay_type_t state_type = assay_eval_out_type(c, 1, past ? past->type : type);
  ASSAY_TRY(assay_tensor_create_zero(state_type, 4, state_dims, &state));
  assay_status_t st = assay_tensor_create(ASSAY_TYPE_DOUBLE, 2, write_dims, &write);
  if (st) return assay_tensor_release(state), st;
  if (past) memcpy(state->data, past->data, (size_t)past->size * sizeof(double));
  l.y = assay_f64(y), l.state = assay_f64(state);
  if (c->running) {
    st = assay_running_bound_cover(c, state);
    if (!st && y->size > 0) st = assay_linear_attention_limits(c, &l);
    if (!st && assay_eval_wants(c, 1)) assay_eval_set(c, 1, state);
    assay_tensor_release(state);
    assay_tensor_release(write);
    return st;
  }
  const double work = (double)state->size * (double)l.length;
  const int64_t jobs = y->size > 0 ? heads : 0;
#pragma omp parallel for schedule(static) if (jobs > 1 && work > 3e4)
  for (int64_t i = 0; i < jobs; i++) {
    for (int64_t t = 0; t < l.length; t++) {
      step(c, &l, i / l.kv_heads, i % l.kv_heads, t, l.state + i * l.d_k * l.d_v,
           assay_f64(write) + i * l.d_v);
    }
  }
  if (assay_eval_wants(c, 1)) assay_eval_set(c, 1, state);
  assay_tensor_release(state);
  assay_tensor_release(write);
  return NULL;
}

static void linear_cost(const assay_eval_t* c, assay_cost_t* out) {
  const int64_t heads = assay_attr_i64(c->node, "q_num_heads", 0);
  if (heads <= 0 || c->in[QUERY]->rank != 3 || c->in[VALUE]->rank != 3) return;
  out->flops = 8.0 * (double)c->in[QUERY]->size / (double)heads * (double)c->in[VALUE]->dims[2];
}

// Source: com.microsoft LinearAttention 1, which is ai.onnx's and more: a window of states, and
// more key heads than query heads (refused where heads are read).
static assay_status_t linear_ms_eval(assay_eval_t* c) {
  if (assay_attr_i64(c->node, "state_window", 0) != 0) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_UNSUPPORTED,
                            "state_window (states of several tokens) is not evaluated");
  }
  return linear_eval(c);
}

static assay_status_t linear_ms_infer(assay_infer_t* c) {
  if (assay_attr_i64(c->node, "state_window", 0) == 0) return linear_infer(c);
  ASSAY_TRY(assay_infer_set(c, 0, assay_infer_elem(c, QUERY), NULL));
  return assay_infer_set(c, 1, assay_infer_elem(c, assay_infer_has(c, PAST) ? PAST : QUERY), NULL);
}

static assay_status_t linear_bound(assay_bound_t* b) {
  return assay_bound_running_exact(b, linear_eval);
}

const assay_op_t assay_ops_linear_attention[] = {
    {.domain = "",
     .name = "LinearAttention",
     .since = 27,
     .infer = linear_infer,
     .eval = linear_eval,
     .bound = linear_bound,
     .cost = linear_cost},
    {.domain = "com.microsoft",
     .name = "LinearAttention",
     .since = 1,
     .infer = linear_ms_infer,
     .eval = linear_ms_eval,
     .bound = linear_bound,
     .cost = linear_cost,
     .schema = "query:T, key:T, value:T, past_state?:S, "
               "decay?:T, beta?:T -> output:T, "
               "present_state:S | q_num_heads:i!, "
               "kv_num_heads:i!, scale:f=0, chunk_size:i=64, "
               "state_window:i=0, "
               "update_rule:s=gated_delta "
               "| T=float float16 bfloat16; "
               "S=float float16 bfloat16"},
    {0}};
