// Mixtures of experts of com.microsoft: MoE and QMoE (weights quantized to integers).
// Source: schemas of onnxruntime 1.31 (com.microsoft, version 1).
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "ops/families.h"
#include "ops/math/activation.h"
#include "ops/matmul/gemm.h"
#include "ops/norm/softmax.h"
#include "ops/running_bound.h"

enum { INPUT, ROUTER };

// Where the inputs of the three layers stand. 99: the operator has none.
typedef struct form {
  size_t weights[3], biases[3], scales[3], zeros[3], router_weights;
} form_t;

static const form_t moe_form = {{2, 4, 6}, {3, 5, 7}, {99, 99, 99}, {99, 99, 99}, 99};
static const form_t qmoe_form = {{2, 5, 8}, {4, 7, 10}, {3, 6, 9}, {11, 12, 13}, 14};

// A layer of every expert: n outputs of k inputs, stored [experts, n, k].
typedef struct layer {
  int64_t n, k;
  int64_t bits, block, row_bytes, blocks;  // bits 0: float weights
  const assay_tensor_t *w, *bias, *scale, *zero;
  double* dense;  // room for the weights of one expert, where they are quantized
} layer_t;

typedef enum activation { RELU, GELU, SILU, SWIGLU, IDENTITY } activation_t;

typedef struct moe {
  const assay_eval_t* c;
  int64_t tokens, hidden, inter, experts, top, fusion;
  activation_t activation;
  double alpha, beta, limit;
  layer_t fc[3];    // the third one has no weights where there is none
  int64_t* chosen;  // [tokens, top] experts
  double* weights;  // [tokens, top]
  double* unsure;   // with limits: [tokens, top] of the weights; INFINITY: the choice is not sure
} moe_t;

// ---- attributes and shapes --------------------------------------------------------------------

static const assay_tensor_t* input(const assay_eval_t* c, size_t i) {
  return assay_eval_has(c, i) ? c->in[i] : NULL;
}

static assay_status_t read_attributes(const assay_node_t* n, moe_t* m) {
  static const char* const names[] = {"relu", "gelu", "silu", "swiglu", "identity"};
  const char* name = assay_attr_str(n, "activation_type", "relu");
  size_t i = 0;
  while (i < 5 && strcmp(name, names[i]) != 0) i++;
  m->fusion = assay_attr_i64(n, "swiglu_fusion", 0);
  m->top = assay_attr_i64(n, "k", 1);
  if (i == 5 || m->fusion < 0 || m->fusion > 2) {
    return ASSAY_NODE_ERROR(n, ASSAY_INVALID_ARGUMENT,
                            "activation_type is '%s', swiglu_fusion %lld; expected relu, gelu, "
                            "silu, swiglu or identity, and 0, 1 or 2",
                            name, (long long)m->fusion);
  }
  m->activation = (activation_t)i;
  m->alpha = assay_attr_f64(n, "activation_alpha", 1);
  m->beta = assay_attr_f64(n, "activation_beta", 0);
  m->limit = assay_attr_has(n, "swiglu_limit") ? assay_attr_f64(n, "swiglu_limit", 0) : INFINITY;
  if (assay_attr_i64(n, "use_sparse_mixer", 0) != 0) {
    return ASSAY_NODE_ERROR(n, ASSAY_UNSUPPORTED, "use_sparse_mixer is not evaluated");
  }
  return NULL;
}

static assay_status_t layer_error(const assay_eval_t* c, const layer_t* l, const moe_t* m) {
  return ASSAY_NODE_ERROR(
      c->node, ASSAY_INVALID_ARGUMENT,
      "weights have shape %s, bias %s, scales %s, zero points %s; expected a layer of %lld outputs "
      "and %lld inputs for %lld experts, [experts, outputs, inputs]",
      l->w ? ASSAY_DIMS_TEXT(l->w) : "none", l->bias ? ASSAY_DIMS_TEXT(l->bias) : "none",
      l->scale ? ASSAY_DIMS_TEXT(l->scale) : "none", l->zero ? ASSAY_DIMS_TEXT(l->zero) : "none",
      (long long)l->n, (long long)l->k, (long long)m->experts);
}

static bool has_shape(const assay_tensor_t* t, int64_t a, int64_t b, int64_t d) {
  if (t->rank == 2 && d == 1) return t->dims[0] == a && t->dims[1] == b;
  return t->rank == 3 && t->dims[0] == a && t->dims[1] == b && t->dims[2] == d;
}

// Scales and zero points of integer weights: one a row, or one a block of a row.
static bool quantized_fits(const moe_t* m, layer_t* l) {
  const int64_t e = m->experts;
  l->row_bytes = l->k * l->bits / 8;
  l->blocks = l->block > 0 ? l->k / l->block : 1;
  if (l->k * l->bits % 8 != 0 || (l->block > 0 && l->k % l->block != 0)) return false;
  if (l->w->store != ASSAY_STORE_I64 || !has_shape(l->w, e, l->n, l->row_bytes)) return false;
  if (!l->scale || !has_shape(l->scale, e, l->n, l->blocks)) return false;
  if (!l->zero) return true;
  if (l->zero->store != ASSAY_STORE_I64) return false;
  if (l->block > 0) return has_shape(l->zero, e, l->n, (l->blocks * l->bits + 7) / 8);
  return has_shape(l->zero, e, (l->n * l->bits + 7) / 8, 1);
}

static assay_status_t read_layer(const assay_eval_t* c, const form_t* f, int i, moe_t* m) {
  static const char* const bits[] = {"fc1_expert_weight_bits", "fc2_expert_weight_bits",
                                     "fc3_expert_weight_bits"};
  layer_t* l = &m->fc[i];
  l->w = input(c, f->weights[i]);
  l->bias = input(c, f->biases[i]);
  l->scale = input(c, f->scales[i]);
  l->zero = input(c, f->zeros[i]);
  if (!l->w) return NULL;
  bool fits = !l->bias || has_shape(l->bias, m->experts, l->n, 1);
  if (f == &moe_form) {
    fits = fits && has_shape(l->w, m->experts, l->n, l->k) && l->w->rank == 3;
    return fits ? NULL : layer_error(c, l, m);
  }
  l->bits = assay_attr_i64(c->node, "expert_weight_bits", 4);
  if (assay_attr_has(c->node, bits[i])) l->bits = assay_attr_i64(c->node, bits[i], 4);
  l->block = assay_attr_i64(c->node, "block_size", 0);
  if ((l->bits != 2 && l->bits != 4 && l->bits != 8) || l->block < 0) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                            "weights have %lld bits, block_size is %lld; expected 2, 4 or 8 bits",
                            (long long)l->bits, (long long)l->block);
  }
  if (!fits || !quantized_fits(m, l)) return layer_error(c, l, m);
  return assay_new_array((size_t)(l->n * l->k), sizeof *l->dense, &l->dense);
}

static assay_status_t read_moe(const assay_eval_t* c, const form_t* f, moe_t* m) {
  const assay_tensor_t *x = c->in[INPUT], *router = c->in[ROUTER];
  const assay_tensor_t* own = input(c, f->router_weights);
  const assay_tensor_t* w2 = c->in[f->weights[1]];
  ASSAY_TRY(read_attributes(c->node, m));
  if (f == &qmoe_form && (!assay_attr_is(c->node, "quant_type", "int") ||
                          assay_attr_i64(c->node, "weights_prepacked", -1) == 1)) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_UNSUPPORTED,
                            "quant_type '%s' with weights_prepacked %lld is not evaluated; only "
                            "'int' with raw weights is",
                            assay_attr_str(c->node, "quant_type", "int"),
                            (long long)assay_attr_i64(c->node, "weights_prepacked", -1));
  }
  m->hidden = x->rank > 0 ? x->dims[x->rank - 1] : 0;
  m->tokens = m->hidden > 0 ? x->size / m->hidden : 0;
  m->experts = router->rank == 2 ? router->dims[1] : 0;
  if ((x->rank != 2 && x->rank != 3) || router->rank != 2 || router->dims[0] != m->tokens ||
      m->top < 1 || m->top > m->experts || w2->rank != 3 ||
      (own && !has_shape(own, m->tokens, m->experts, 1))) {
    return ASSAY_NODE_ERROR(
        c->node, ASSAY_INVALID_ARGUMENT,
        "input has shape %s, router_probs %s, k is %lld; expected [..., hidden] "
        "and [tokens, experts] with at least k experts",
        ASSAY_DIMS_TEXT(x), ASSAY_DIMS_TEXT(router), (long long)m->top);
  }
  int64_t inter_bits = 8;
  if (f == &qmoe_form) {
    inter_bits = assay_attr_i64(c->node, "expert_weight_bits", 4);
    inter_bits = assay_attr_i64(c->node, "fc2_expert_weight_bits", inter_bits);
    if (inter_bits <= 0 || w2->dims[2] > INT64_MAX / 8) inter_bits = 8;
  }
  m->inter = f == &qmoe_form ? w2->dims[2] * 8 / inter_bits : w2->dims[2];
  const bool fused = m->activation == SWIGLU && m->fusion != 0;
  const bool third = input(c, f->weights[2]) != NULL;
  if ((m->activation == SWIGLU && !fused && !third) || (fused && third)) {
    return ASSAY_NODE_ERROR(
        c->node, ASSAY_INVALID_ARGUMENT,
        "swiglu_fusion is %lld %s fc3_experts_weights; swiglu needs both halves "
        "in fc1, or the second one in fc3",
        (long long)m->fusion, third ? "with" : "without");
  }
  m->fc[0].n = fused ? 2 * m->inter : m->inter, m->fc[0].k = m->hidden;
  m->fc[1].n = m->hidden, m->fc[1].k = m->inter;
  m->fc[2].n = m->inter, m->fc[2].k = m->hidden;
  for (int i = 0; i < 3; i++) ASSAY_TRY(read_layer(c, f, i, m));
  return NULL;
}

// ---- routing ----------------------------------------------------------------------------------

// The relative error of softmax (as in attention_bound.c): differences, exponentials, sum,
// quotient.
static double softmax_limit(const moe_t* m, const double* logits) {
  const assay_rounding_t* r = assay_running_bound_rounding(m->c);
  const assay_steps_t steps = assay_rounding_steps(r);
  double low = INFINITY, high = -INFINITY;
  for (int64_t j = 0; j < m->experts; j++) {
    low = fmin(low, logits[j]);
    high = fmax(high, logits[j]);
  }
  const double away = fmin(high - low, 800) + fmax(fabs(high), fabs(low));
  return 2 * (steps.function + 2 * steps.u * away) +
         assay_bound_sum(r, (double)m->experts).guaranteed + 3 * steps.u;
}

// Limits of a token's weights. Where an expert that is not chosen may come out above one that is,
// there are none; experts of the same logit are told apart by their order.
static void limit_weights(const moe_t* m, const double* logits, const double* p,
                          const int64_t* chosen, const double* weights, bool own, bool normalize,
                          double* limits) {
  const assay_steps_t steps = assay_rounding_steps(assay_running_bound_rounding(m->c));
  const double e = softmax_limit(m, logits);
  bool sure = true;
  for (int64_t i = 0; i < m->top; i++) {
    for (int64_t j = 0; j < m->experts; j++) {
      bool taken = false;
      for (int64_t t = 0; t < m->top; t++) taken = taken || chosen[t] == j;
      const bool beats = p[chosen[i]] * (1 - e) > p[j] * (1 + e) + 2 * steps.tiny;
      sure = sure && (taken || beats || logits[j] == logits[chosen[i]]);
    }
  }
  const double each = own ? 0 : e;
  // Of the sum as the weights', of the quotient two roundings.
  const double all = normalize ? 2 * each + (double)(m->top + 2) * steps.u : each;
  for (int64_t i = 0; i < m->top; i++)
    limits[i] = sure ? all * (1 + 2 * all) * fabs(weights[i]) + steps.tiny : (double)INFINITY;
  if (normalize && own) {
    // Weights of both signs may cancel in their sum.
    double size = 0;
    for (int64_t i = 0; i < m->top; i++) size += fabs(weights[i]);
    for (int64_t i = 0; i < m->top; i++) limits[i] *= fmax(size, 1);
  }
}

// The k largest of a token's probabilities; of equal ones the first.
static void choose(const double* p, int64_t n, int64_t k, int64_t* out) {
  for (int64_t i = 0; i < k; i++) {
    int64_t best = -1;
    for (int64_t j = 0; j < n; j++) {
      bool taken = false;
      for (int64_t t = 0; t < i; t++) taken = taken || out[t] == j;
      if (!taken && (best < 0 || p[j] > p[best])) best = j;
    }
    out[i] = best;
  }
}

static assay_status_t route(const form_t* f, moe_t* m) {
  const assay_eval_t* c = m->c;
  const assay_tensor_t* own = input(c, f->router_weights);
  const bool normalize = assay_attr_i64(c->node, "normalize_routing_weights", 0) != 0;
  double* p = NULL;
  ASSAY_TRY(assay_new_array((size_t)m->experts, sizeof *p, &p));
  for (int64_t t = 0; t < m->tokens; t++) {
    int64_t* chosen = m->chosen + t * m->top;
    double *weights = m->weights + t * m->top, sum = 0;
    assay_softmax_row(c, m->experts, 1, assay_f64(c->in[ROUTER]) + t * m->experts, p);
    choose(p, m->experts, m->top, chosen);
    for (int64_t i = 0; i < m->top; i++) {
      weights[i] = own ? assay_f64(own)[t * m->experts + chosen[i]] : p[chosen[i]];
      sum = assay_acc(c, sum + weights[i]);
    }
    for (int64_t i = 0; normalize && i < m->top; i++) {
      weights[i] = assay_acc(c, weights[i] / sum);
    }
    if (c->running) {
      limit_weights(m, assay_f64(c->in[ROUTER]) + t * m->experts, p, chosen, weights, own != NULL,
                    normalize, m->unsure + t * m->top);
    }
  }
  assay_free(p);
  return NULL;
}

// ---- one expert -------------------------------------------------------------------------------

static double code_at(const assay_tensor_t* t, int64_t row, int64_t row_bytes, int64_t bits,
                      int64_t i) {
  const int64_t v = assay_i64(t)[row * row_bytes + i * bits / 8];
  return (double)((v >> (i * bits % 8)) & ((1 << bits) - 1));
}

static void dequantize(const moe_t* m, const layer_t* l, int64_t e) {
  const int64_t zero_row = l->block > 0 ? (l->blocks * l->bits + 7) / 8 : (l->n * l->bits + 7) / 8;
#pragma omp parallel for schedule(static) if (l->n * l->k > 20000)
  for (int64_t j = 0; j < l->n; j++) {
    const int64_t row = e * l->n + j;
    for (int64_t i = 0; i < l->k; i++) {
      const int64_t b = l->block > 0 ? i / l->block : 0;
      double zero = (double)(1 << (l->bits - 1));
      if (l->zero) {
        zero = l->block > 0 ? code_at(l->zero, row, zero_row, l->bits, b)
                            : code_at(l->zero, e, zero_row, l->bits, j);
      }
      const double w = code_at(l->w, row, l->row_bytes, l->bits, i) - zero;
      l->dense[j * l->k + i] = assay_acc(m->c, w * assay_f64(l->scale)[row * l->blocks + b]);
    }
  }
}

// Whether a weight of output j may pass the range when it is dequantized, whatever it is multiplied
// with.
static bool may_overflow(const layer_t* l, int64_t j, const assay_steps_t* steps) {
  for (int64_t i = 0; l->dense && i < l->k; i++)
    if (!(fabs(l->dense[j * l->k + i]) * (1 + steps->u) <= steps->range)) return true;
  return false;
}

// The limits of a layer's outputs, and its bias. Quantized weights are rounded once more. What came
// in was rounded in sums of their own, so that its errors are independent.
static assay_status_t limit_layer(const moe_t* m, const layer_t* l, int64_t e, int64_t rows,
                                  const assay_matrix_t* a, const assay_matrix_t* b, double* y) {
  const assay_eval_t* c = m->c;
  const assay_steps_t steps = assay_rounding_steps(assay_running_bound_rounding(c));
  const assay_span_t to = assay_running_bound_of(c, y);
  if (rows * l->n == 0) return NULL;
  memset(to.guaranteed, 0, (size_t)(rows * l->n) * sizeof *to.guaranteed);
  memset(to.probable, 0, (size_t)(rows * l->n) * sizeof *to.probable);
  ASSAY_TRY(assay_running_bound_gemm(c, rows, l->n, l->k, a, b, y, l->n, l->dense ? 1 : 0, true));
  for (int64_t j = 0; j < l->n; j++) {
    if (!may_overflow(l, j, &steps)) continue;
    for (int64_t i = j; i < rows * l->n; i += l->n)
      to.guaranteed[i] = to.probable[i] = (double)INFINITY;
  }
  for (int64_t i = 0; l->bias && i < rows * l->n; i++) {
    const assay_near_t bias = assay_near_exact(assay_f64(l->bias)[e * l->n + i % l->n]);
    assay_near_put(assay_near_add(&steps, assay_near_at(y, to, i), bias), y, to, i);
  }
  return NULL;
}

// y[rows, n] = x[rows, k] times the expert's weights, plus its bias.
static assay_status_t run_layer(const moe_t* m, const layer_t* l, int64_t e, int64_t rows,
                                const double* x, double* y) {
  if (l->dense) dequantize(m, l, e);
  const double* w = l->dense ? l->dense : assay_f64(l->w) + e * l->n * l->k;
  const assay_matrix_t a = {x, ASSAY_STORE_F64, ASSAY_TYPE_DOUBLE, 0, l->k, 1};
  const assay_matrix_t b = {w, ASSAY_STORE_F64, ASSAY_TYPE_DOUBLE, 0, 1, l->k};
  ASSAY_TRY(assay_gemm(m->c, rows, l->n, l->k, &a, &b, y, l->n, false));
  if (m->c->running) return limit_layer(m, l, e, rows, &a, &b, y);
  for (int64_t i = 0; l->bias && i < rows * l->n; i++) {
    y[i] = assay_acc(m->c, y[i] + assay_f64(l->bias)[e * l->n + i % l->n]);
  }
  return NULL;
}

// swiglu = G sigmoid(alpha G) (L + beta), with G and L cut at the limit.
static double swiglu(const moe_t* m, double g, double l) {
  if (g > m->limit) g = m->limit;
  if (l > m->limit) l = m->limit;
  if (l < -m->limit) l = -m->limit;
  const double gate = assay_acc(m->c, assay_swish(g, m->alpha));
  return assay_acc(m->c, gate * assay_acc(m->c, l + m->beta));
}

static double activate(const moe_t* m, double x) {
  switch (m->activation) {
    case RELU:
      return x > 0 || isnan(x) ? x : 0;
    case GELU:
      return assay_acc(m->c, assay_gelu(x));
    case SILU:
      return assay_acc(m->c, assay_swish(x, 1));
    default:
      return x;
  }
}

// The same with limits. The slopes of Gelu and of Swish (with any alpha) are at most 1.13.
static assay_near_t limit_swiglu(const moe_t* m, const assay_steps_t* s, assay_near_t g,
                                 assay_near_t l) {
  g.x = g.x > m->limit ? m->limit : g.x;
  l.x = l.x > m->limit ? m->limit : l.x < -m->limit ? -m->limit : l.x;
  const assay_near_t gate =
      assay_near_function(s, assay_swish(g.x, m->alpha), g, 1.13, 4 * fabs(g.x));
  return assay_near_mul(s, gate, assay_near_add(s, l, assay_near_exact(m->beta)));
}

static assay_near_t limit_activate(const moe_t* m, const assay_steps_t* s, assay_near_t x) {
  if (m->activation == RELU) {
    x.x = x.x < 0 ? 0 : x.x;
    return x;
  }
  if (m->activation == GELU) return assay_near_function(s, assay_gelu(x.x), x, 1.13, 4 * fabs(x.x));
  if (m->activation == SILU)
    return assay_near_function(s, assay_swish(x.x, 1), x, 1.13, 4 * fabs(x.x));
  return x;
}

static void limit_activations(const moe_t* m, int64_t rows, const double* h, const double* other,
                              double* y) {
  const assay_eval_t* c = m->c;
  const assay_steps_t steps = assay_rounding_steps(assay_running_bound_rounding(c));
  const assay_span_t none = {NULL, NULL}, sh = assay_running_bound_of(c, h),
                     to = assay_running_bound_of(c, y);
  const assay_span_t so = other ? assay_running_bound_of(c, other) : none;
  const int64_t n = m->inter, wide = m->fc[0].n;
  for (int64_t k = 0; k < rows * n; k++) {
    const int64_t first = k / n * wide, i = k % n;
    const assay_near_t up = other ? assay_near_at(other, so, k) : assay_near_exact(0);
    assay_near_t a;
    if (m->activation != SWIGLU) {
      a = limit_activate(m, &steps, assay_near_at(h, sh, first + i));
      if (other) a = assay_near_mul(&steps, a, up);
    } else if (other) {
      a = limit_swiglu(m, &steps, assay_near_at(h, sh, first + i), up);
    } else {
      const int64_t g = m->fusion == 1 ? 2 * i : i, l = m->fusion == 1 ? 2 * i + 1 : i + n;
      a = limit_swiglu(m, &steps, assay_near_at(h, sh, first + g), assay_near_at(h, sh, first + l));
    }
    assay_near_put(a, y, to, k);
  }
}

// The activations [rows, inter] of the first layer's outputs h; `other` is the third layer's, NULL
// without one. y may be h.
static void activations(const moe_t* m, int64_t rows, const double* h, const double* other,
                        double* y) {
  const int64_t n = m->inter, wide = m->fc[0].n;
  for (int64_t r = 0; r < rows; r++, h += wide, y += n) {
    for (int64_t i = 0; i < n; i++) {
      const double up = other ? other[r * n + i] : 0;
      if (m->activation != SWIGLU) {
        y[i] = activate(m, h[i]);
        if (other) y[i] = assay_acc(m->c, y[i] * up);
      } else if (other) {
        y[i] = swiglu(m, h[i], up);
      } else {
        y[i] = m->fusion == 1 ? swiglu(m, h[2 * i], h[2 * i + 1]) : swiglu(m, h[i], h[i + n]);
      }
    }
  }
}

// Rooms of an expert's work, for all tokens at once.
typedef struct rooms {
  double *x, *h, *other, *act, *out;
} scratches_t;

// to += weight * from, with limits.
static void limit_output(const moe_t* m, int64_t choice, const double* from, double* to) {
  const assay_eval_t* c = m->c;
  const assay_steps_t steps = assay_rounding_steps(assay_running_bound_rounding(c));
  const assay_span_t sf = assay_running_bound_of(c, from), st = assay_running_bound_of(c, to);
  const assay_near_t w = {m->weights[choice], m->unsure[choice], m->unsure[choice]};
  for (int64_t j = 0; j < m->hidden; j++) {
    const assay_near_t more = assay_near_mul(&steps, w, assay_near_at(from, sf, j));
    assay_near_put(assay_near_add(&steps, assay_near_at(to, st, j), more), to, st, j);
  }
}

// Adds what expert e makes of the tokens that chose it.
static assay_status_t run_expert(const moe_t* m, int64_t e, const scratches_t* scratch, double* y) {
  const assay_eval_t* c = m->c;
  const int64_t n = m->hidden;
  int64_t rows = 0;
  for (int64_t i = 0; i < m->tokens * m->top; i++) {
    if (m->chosen[i] != e) continue;
    memcpy(scratch->x + rows++ * n, assay_f64(c->in[INPUT]) + i / m->top * n,
           (size_t)n * sizeof(double));
  }
  if (rows == 0) return NULL;
  ASSAY_TRY(run_layer(m, &m->fc[0], e, rows, scratch->x, scratch->h));
  if (m->fc[2].w) ASSAY_TRY(run_layer(m, &m->fc[2], e, rows, scratch->x, scratch->other));
  const double* other = m->fc[2].w ? scratch->other : NULL;
  if (c->running) {
    limit_activations(m, rows, scratch->h, other, scratch->act);
  } else {
    activations(m, rows, scratch->h, other, scratch->act);
  }
  ASSAY_TRY(run_layer(m, &m->fc[1], e, rows, scratch->act, scratch->out));
  const double* from = scratch->out;
  for (int64_t i = 0; i < m->tokens * m->top; i++) {
    if (m->chosen[i] != e) continue;
    double* to = y + i / m->top * n;
    if (c->running) {
      limit_output(m, i, from, to);
      from += n;
      continue;
    }
    for (int64_t j = 0; j < n; j++) {
      to[j] = assay_acc(c, to[j] + assay_acc(c, m->weights[i] * from[j]));
    }
    from += n;
  }
  return NULL;
}

// Experts one after another, so that each token's sum goes in their order.
static assay_status_t run_experts(moe_t* m, double* y) {
  const int64_t n = m->tokens, wide = m->fc[0].n;
  int64_t per = 2 * m->hidden + 2 * m->inter + wide, total = 0;
  assay_tensor_t* all = NULL;
  if (!assay_mul_i64(per, n, &total)) {
    return ASSAY_NODE_ERROR(m->c->node, ASSAY_NO_MEMORY, "the hidden layers are too large");
  }
  ASSAY_TRY(assay_tensor_create(ASSAY_TYPE_DOUBLE, 1, &total, &all));
  assay_status_t st = m->c->running ? assay_running_bound_cover(m->c, all) : NULL;
  scratches_t scratch = {.x = assay_f64(all)};
  scratch.out = scratch.x + n * m->hidden;
  scratch.other = scratch.out + n * m->hidden;
  scratch.act = scratch.other + n * m->inter;
  scratch.h = scratch.act + n * m->inter;
  for (int64_t e = 0; !st && e < m->experts; e++) st = run_expert(m, e, &scratch, y);
  assay_tensor_release(all);
  return st;
}

// ---- the operators ----------------------------------------------------------------------------

static assay_status_t moe_eval_with(assay_eval_t* c, const form_t* f) {
  moe_t m = {.c = c};
  assay_tensor_t* y = NULL;
  const assay_tensor_t* x = c->in[INPUT];
  assay_status_t st = read_moe(c, f, &m);
  if (!st) {
    st = assay_eval_output(c, 0, assay_eval_out_type(c, 0, x->type), x->rank, x->dims, &y);
  }
  if (!st) st = assay_new_array((size_t)(m.tokens * m.top), sizeof *m.chosen, &m.chosen);
  if (!st) st = assay_new_array((size_t)(m.tokens * m.top), sizeof *m.weights, &m.weights);
  if (!st && c->running)
    st = assay_new_array((size_t)(m.tokens * m.top), sizeof *m.unsure, &m.unsure);
  if (!st) memset(assay_f64(y), 0, (size_t)y->size * sizeof(double));
  if (!st) st = route(f, &m);
  if (!st) st = run_experts(&m, assay_f64(y));
  assay_free(m.chosen);
  assay_free(m.weights);
  assay_free(m.unsure);
  for (int i = 0; i < 3; i++) assay_free(m.fc[i].dense);
  return st;
}

// Source: com.microsoft MoE 1; router_probs are logits, as onnxruntime's kernels take them.
static assay_status_t moe_eval(assay_eval_t* c) { return moe_eval_with(c, &moe_form); }
// Source: com.microsoft QMoE 1, quant_type 'int'.
static assay_status_t qmoe_eval(assay_eval_t* c) { return moe_eval_with(c, &qmoe_form); }

static assay_status_t moe_infer(assay_infer_t* c) {
  moe_t m = {0};
  ASSAY_TRY(read_attributes(c->node, &m));
  ASSAY_TRY(assay_infer_want_rank(c, INPUT, 2, 3));
  ASSAY_TRY(assay_infer_want_rank(c, ROUTER, 2, 2));
  return assay_infer_same(c);
}

// Two or three layers for each choice of a token.
static void moe_cost_with(const assay_eval_t* c, const form_t* f, double per_elem,
                          assay_cost_t* out) {
  const assay_tensor_t* r = c->in[ROUTER];
  double weights = 0;
  if (r->rank != 2 || r->dims[1] == 0) return;
  for (int i = 0; i < 3; i++) {
    const assay_tensor_t* w = input(c, f->weights[i]);
    if (w) weights += (double)w->size * per_elem;
  }
  out->flops = 2.0 * (double)r->dims[0] * (double)assay_attr_i64(c->node, "k", 1) * weights /
               (double)r->dims[1];
}
static void moe_cost(const assay_eval_t* c, assay_cost_t* out) {
  moe_cost_with(c, &moe_form, 1, out);
}
static void qmoe_cost(const assay_eval_t* c, assay_cost_t* out) {
  const int64_t bits = assay_attr_i64(c->node, "expert_weight_bits", 4);
  moe_cost_with(c, &qmoe_form, bits > 0 ? 8.0 / (double)bits : 1, out);
}

static assay_status_t moe_bound(assay_bound_t* b) { return assay_bound_running_exact(b, moe_eval); }
static assay_status_t qmoe_bound(assay_bound_t* b) {
  return assay_bound_running_exact(b, qmoe_eval);
}

#define MS(NAME, KIND)                                                              \
  .domain = "com.microsoft", .name = NAME, .since = 1, .flags = ASSAY_OP_CONTRACTS, \
  .infer = moe_infer, .eval = KIND##_eval, .bound = KIND##_bound, .cost = KIND##_cost

const assay_op_t assay_ops_ms_moe[] = {
    {MS("MoE", moe),
     .schema = "input:T, router_probs:T, fc1_experts_weights:T, fc1_experts_bias?:T, "
               "fc2_experts_weights:T, fc2_experts_bias?:T, fc3_experts_weights?:T, "
               "fc3_experts_bias?:T -> output:T | activation_type:s=relu, activation_alpha:f=1, "
               "activation_beta:f=0, swiglu_fusion:i=0, swiglu_limit:f, k:i=1, "
               "normalize_routing_weights:i=0, use_sparse_mixer:i=0 "
               "| T=float float16 bfloat16"},
    {MS("QMoE", qmoe),
     .schema = "input:T, router_probs:T, fc1_experts_weights:T1, fc1_scales?:T2, "
               "fc1_experts_bias?:T, fc2_experts_weights:T1, fc2_scales?:T2, fc2_experts_bias?:T, "
               "fc3_experts_weights?:T1, fc3_scales?:T2, fc3_experts_bias?:T, "
               "fc1_zero_points?:T1, fc2_zero_points?:T1, fc3_zero_points?:T1, router_weights?:T, "
               "fc1_global_scale?:T4, fc2_global_scale?:T4, fc1_act_scale?:T4, fc2_act_scale?:T4, "
               "fc1_act_block_scale?:T2, fc2_act_block_scale?:T2 -> output:T "
               "| activation_type:s=relu, activation_alpha:f=1, activation_beta:f=0, "
               "swiglu_fusion:i=0, swiglu_limit:f, k:i=1, normalize_routing_weights:i=0, "
               "use_sparse_mixer:i=0, expert_weight_bits:i=4, fc1_expert_weight_bits:i, "
               "fc2_expert_weight_bits:i, fc3_expert_weight_bits:i, block_size:i=0, "
               "quant_type:s=int, accuracy_level:i=0, weights_prepacked:i=-1 "
               "| T=float float16 bfloat16; T1=uint8 float8e4m3fn; "
               "T2=float float16 bfloat16 float8e8m0 float8e4m3fn; T4=float"},
    {0}};
