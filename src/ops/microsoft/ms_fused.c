// com.microsoft's activations with what is fused to them: Gelu FastGelu BiasGelu QuickGelu
// BiasSplitGelu BiasAdd GemmFastGelu, and GemmaRotaryEmbedding.
// Source: schemas of onnxruntime 1.31 (com.microsoft, version 1).
#include <math.h>

#include "base/functions.h"
#include "ops/families.h"
#include "ops/math/activation.h"
#include "ops/math/pointwise.h"
#include "ops/matmul/matmul.h"
#include "ops/running_bound.h"

// ---- an activation of x + bias ----------------------------------------------------------------

typedef struct fused {
  const assay_eval_t* c;
  const double *x, *bias, *skip;  // bias and skip: NULL if there is none
  double* y;
  double alpha;
  double (*f)(double x, double alpha);  // NULL: the sum itself
} fused_t;

static double gelu(double x, double alpha) {
  (void)alpha;
  return assay_gelu(x);
}
// 0.797885 and 0.035677 are sqrt(2/pi) and 0.044715 sqrt(2/pi), rounded for the text.
static double gelu_tanh(double x, double alpha) {
  (void)alpha;
  return assay_gelu_tanh(x);
}

// The largest slope of Gelu, of its approximation by tanh and of Swish for any alpha.
static const double STEEPEST = 1.13;

// The same with limits. Engines that compute by definition round relative to x, where the result is
// far smaller.
static void limit_span(const fused_t* p, int64_t n, const int64_t* at, const int64_t* step) {
  const assay_steps_t steps = assay_rounding_steps(assay_running_bound_rounding(p->c));
  const assay_span_t none = {NULL, NULL}, to = assay_running_bound_of(p->c, p->y);
  const assay_span_t sx = assay_running_bound_of(p->c, p->x);
  const assay_span_t sb = p->bias ? assay_running_bound_of(p->c, p->bias) : none;
  const assay_span_t ss = p->skip ? assay_running_bound_of(p->c, p->skip) : none;
  for (int64_t i = 0; i < n; i++) {
    assay_near_t v = assay_near_at(p->x, sx, at[1] + i * step[1]);
    if (p->bias) {
      v = assay_near_add(&steps, v, assay_near_at(p->bias, sb, at[2] + i * step[2]));
    }
    if (p->skip) {
      v = assay_near_add(&steps, v, assay_near_at(p->skip, ss, at[3] + i * step[3]));
    }
    if (p->f) {
      v = assay_near_function(&steps, p->f(v.x, p->alpha), v, STEEPEST, 4 * fabs(v.x));
    }
    assay_near_put(v, p->y, to, at[0] + i);
  }
}

// Operands: 0 the result, 1 x, 2 the bias, 3 the skip.
static void fused_span(const void* user, int64_t n, const int64_t* at, const int64_t* step) {
  const fused_t* p = user;
  if (p->c->running) {
    limit_span(p, n, at, step);
    return;
  }
  for (int64_t i = 0; i < n; i++) {
    double v = p->x[at[1] + i * step[1]];
    if (p->bias) v = assay_acc(p->c, v + p->bias[at[2] + i * step[2]]);
    if (p->skip) v = assay_acc(p->c, v + p->skip[at[3] + i * step[3]]);
    p->y[at[0] + i] = p->f ? assay_acc(p->c, p->f(v, p->alpha)) : v;
  }
}

// The bias is one number for each index of the last dimension, or one for all.
static assay_status_t check_bias(const assay_eval_t* c, const assay_tensor_t* bias, int rank,
                                 const int64_t* dims) {
  const int64_t last = rank > 0 ? dims[rank - 1] : 1;
  if (rank > 0 && bias->rank == 1 && (bias->dims[0] == last || bias->dims[0] == 1)) return NULL;
  char text[512];
  return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                          "bias has shape %s beside %s; expected [%lld], the last dimension",
                          ASSAY_DIMS_TEXT(bias), assay_dims_text(rank, dims, text, sizeof text),
                          (long long)last);
}

static assay_status_t run_fused(assay_eval_t* c, size_t bias, double (*f)(double, double),
                                double alpha) {
  const assay_tensor_t* x = c->in[0];
  const assay_tensor_t* b = assay_eval_has(c, bias) ? c->in[bias] : NULL;
  if (b) ASSAY_TRY(check_bias(c, b, x->rank, x->dims));
  assay_tensor_t* y = NULL;
  ASSAY_TRY(assay_eval_output(c, 0, assay_eval_out_type(c, 0, x->type), x->rank, x->dims, &y));
  const fused_t p = {.c = c,
                     .x = assay_f64(x),
                     .bias = b ? assay_f64(b) : NULL,
                     .y = assay_f64(y),
                     .alpha = alpha,
                     .f = f};
  assay_nest_t nest;
  assay_nest_init(&nest, x->rank, x->dims);
  assay_nest_add_tensor(&nest, y);
  assay_nest_add_tensor(&nest, x);
  if (b) assay_nest_add_tensor(&nest, b);
  assay_nest_run(&nest, 20, fused_span, &p);
  return NULL;
}

enum { NO_BIAS = 99 };

static assay_status_t gelu_eval(assay_eval_t* c) { return run_fused(c, NO_BIAS, gelu, 0); }
static assay_status_t fast_gelu_eval(assay_eval_t* c) { return run_fused(c, 1, gelu_tanh, 0); }
static assay_status_t bias_gelu_eval(assay_eval_t* c) { return run_fused(c, 1, gelu, 0); }
static assay_status_t quick_gelu_eval(assay_eval_t* c) {
  return run_fused(c, NO_BIAS, assay_swish, assay_attr_f64(c->node, "alpha", 1.702));
}

static assay_status_t bias_add_eval(assay_eval_t* c) {
  const assay_tensor_t *x = c->in[0], *skip = c->in[2];
  ASSAY_TRY(check_bias(c, c->in[1], x->rank, x->dims));
  if (skip->rank != x->rank ||
      memcmp(skip->dims, x->dims, (size_t)x->rank * sizeof *x->dims) != 0) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                            "skip has shape %s; expected that of X, %s", ASSAY_DIMS_TEXT(skip),
                            ASSAY_DIMS_TEXT(x));
  }
  assay_tensor_t* y = NULL;
  ASSAY_TRY(assay_eval_output(c, 0, assay_eval_out_type(c, 0, x->type), x->rank, x->dims, &y));
  const fused_t p = {.c = c,
                     .x = assay_f64(x),
                     .bias = assay_f64(c->in[1]),
                     .skip = assay_f64(skip),
                     .y = assay_f64(y)};
  assay_nest_t nest;
  assay_nest_init(&nest, x->rank, x->dims);
  assay_nest_add_tensor(&nest, y);
  assay_nest_add_tensor(&nest, x);
  assay_nest_add_tensor(&nest, c->in[1]);
  assay_nest_add_tensor(&nest, skip);
  assay_nest_run(&nest, 2, fused_span, &p);
  return NULL;
}

// Fails where the bias is known not to fit the last dimension of x.
static assay_status_t bias_check(const assay_infer_t* c, const assay_shape_t* x, size_t bias) {
  if (!assay_infer_has(c, bias)) return NULL;
  ASSAY_TRY(assay_infer_want_rank(c, bias, 1, 1));
  const assay_shape_t b = assay_infer_shape(c, bias);
  int64_t n = 0;
  if (!x->known || !b.known || x->rank == 0) return NULL;
  if (assay_dim_value(b.dims[0], &n) && n == 1) return NULL;
  if (!assay_dim_differ(b.dims[0], x->dims[x->rank - 1])) return NULL;
  char tb[128], tx[128];
  return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                          "bias has %s elements, the last dimension is %s; expected the same",
                          assay_dim_text(b.dims[0], tb, sizeof tb),
                          assay_dim_text(x->dims[x->rank - 1], tx, sizeof tx));
}

static assay_status_t biased_infer(assay_infer_t* c) {
  const assay_shape_t x = assay_infer_shape(c, 0);
  ASSAY_TRY(bias_check(c, &x, 1));
  return assay_infer_same(c);
}

// ---- BiasSplitGelu ----------------------------------------------------------------------------

static void limit_split(const assay_eval_t* c, int64_t half, int64_t j, const double* x,
                        const double* bias, double* y) {
  const assay_steps_t steps = assay_rounding_steps(assay_running_bound_rounding(c));
  const assay_span_t sx = assay_running_bound_of(c, x), sb = assay_running_bound_of(c, bias);
  const assay_near_t left =
      assay_near_add(&steps, assay_near_at(x, sx, j), assay_near_at(bias, sb, j));
  const assay_near_t right =
      assay_near_add(&steps, assay_near_at(x, sx, j + half), assay_near_at(bias, sb, j + half));
  const assay_near_t gelu =
      assay_near_function(&steps, assay_gelu(right.x), right, STEEPEST, 4 * fabs(right.x));
  assay_near_put(assay_near_mul(&steps, left, gelu), y, assay_running_bound_of(c, y), j);
}

// Source: com.microsoft BiasSplitGelu 1: left * gelu(right) of the halves of x + bias.
static assay_status_t split_gelu_eval(assay_eval_t* c) {
  const assay_tensor_t *x = c->in[0], *b = c->in[1];
  if (x->rank < 1 || x->dims[x->rank - 1] % 2 != 0 || b->rank != 1 ||
      b->dims[0] != x->dims[x->rank - 1]) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                            "X has shape %s, bias %s; expected [N, S, D] with an even D, and [D]",
                            ASSAY_DIMS_TEXT(x), ASSAY_DIMS_TEXT(b));
  }
  int64_t dims[ASSAY_MAX_RANK];
  memcpy(dims, x->dims, sizeof dims);
  const int64_t half = dims[x->rank - 1] /= 2;
  assay_tensor_t* y = NULL;
  ASSAY_TRY(assay_eval_output(c, 0, assay_eval_out_type(c, 0, x->type), x->rank, dims, &y));
  const int64_t rows = half > 0 ? y->size / half : 0;
#pragma omp parallel for schedule(static) if (rows > 1 && y->size > 5000)
  for (int64_t i = 0; i < rows; i++) {
    const double *from = assay_f64(x) + i * 2 * half, *bias = assay_f64(b);
    double* to = assay_f64(y) + i * half;
    for (int64_t j = 0; j < half; j++) {
      if (c->running) {
        limit_split(c, half, j, from, bias, to);
        continue;
      }
      const double left = assay_acc(c, from[j] + bias[j]);
      const double right = assay_acc(c, from[j + half] + bias[j + half]);
      to[j] = assay_acc(c, left * assay_acc(c, assay_gelu(right)));
    }
  }
  return NULL;
}

static assay_status_t split_gelu_infer(assay_infer_t* c) {
  assay_shape_t x = assay_infer_shape(c, 0);
  if (x.known && x.rank == 0) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT, "X is a scalar; expected [N, S, D]");
  }
  ASSAY_TRY(bias_check(c, &x, 1));
  if (x.known) {
    x.dims[x.rank - 1] =
        assay_dim_floordiv(c->dims, x.dims[x.rank - 1], assay_dim_const(c->dims, 2));
  }
  return assay_infer_set(c, 0, ASSAY_TYPE_UNDEFINED, &x);
}

// ---- GemmFastGelu -----------------------------------------------------------------------------

// The limits of X W: of sums of |x| |w|.
static assay_status_t limit_product(assay_eval_t* c, const assay_matmul_t* made,
                                    const assay_tensor_t* y) {
  const assay_rounding_t* r = assay_running_bound_rounding(c);
  const assay_factor_t f = assay_bound_sum(r, (double)made->k);
  const double tiny = (double)made->k * assay_bound_tiny(r, r->accumulator);
  const double range = assay_format_info(r->accumulator)->max;
  const assay_matmul_form_t plain = {0};
  assay_tensor_t *x = NULL, *w = NULL, *sum = NULL;
  assay_status_t st = assay_tensor_abs(c->in[0], &x);
  if (!st) st = assay_tensor_abs(c->in[1], &w);
  if (!st) st = assay_tensor_create(ASSAY_TYPE_DOUBLE, y->rank, y->dims, &sum);
  if (!st) {
    assay_matmul_t p;
    st = assay_matmul_init(c, x, plain, w, plain, &p);
    if (!st) st = assay_matmul_f64(c, &p, assay_f64(sum));
    if (!st) assay_matmul_deinit(&p);
  }
  const assay_span_t to = assay_running_bound_of(c, assay_f64(y));
  for (int64_t i = 0; !st && i < y->size; i++) {
    const double v = assay_f64(sum)[i];
    const bool fits = v * (1 + f.guaranteed) <= range;
    to.guaranteed[i] = fits ? f.guaranteed * v + tiny : (double)INFINITY;
    to.probable[i] = fits ? f.probable * v + tiny : (double)INFINITY;
  }
  assay_tensor_release(x);
  assay_tensor_release(w);
  assay_tensor_release(sum);
  return st;
}

// Source: com.microsoft GemmFastGelu 1: FastGelu(X W, bias).
static assay_status_t gemm_gelu_eval(assay_eval_t* c) {
  const assay_tensor_t* b = assay_eval_has(c, 2) ? c->in[2] : NULL;
  const assay_matmul_form_t plain = {0};
  assay_matmul_t p;
  assay_tensor_t* y = NULL;
  ASSAY_TRY(assay_matmul_init(c, c->in[0], plain, c->in[1], plain, &p));
  assay_status_t st = NULL;
  if (b) st = check_bias(c, b, p.rank, p.dims);
  if (!st) {
    st = assay_eval_output(c, 0, assay_eval_out_type(c, 0, c->in[0]->type), p.rank, p.dims, &y);
  }
  if (!st) st = assay_matmul_f64(c, &p, assay_f64(y));
  if (!st && c->running) st = limit_product(c, &p, y);
  assay_matmul_deinit(&p);
  if (st) return st;
  const fused_t f = {.c = c,
                     .x = assay_f64(y),
                     .bias = b ? assay_f64(b) : NULL,
                     .y = assay_f64(y),
                     .f = gelu_tanh};
  assay_nest_t nest;
  assay_nest_init(&nest, y->rank, y->dims);
  assay_nest_add_tensor(&nest, y);
  assay_nest_add_tensor(&nest, y);
  if (b) assay_nest_add_tensor(&nest, b);
  assay_nest_run(&nest, 20, fused_span, &f);
  return NULL;
}

static assay_status_t gemm_gelu_infer(assay_infer_t* c) {
  const assay_matmul_form_t plain = {0};
  assay_shape_t y = {0};
  ASSAY_TRY(assay_matmul_shape(c, 0, plain, 1, plain, &y));
  ASSAY_TRY(bias_check(c, &y, 2));
  return assay_infer_set(c, 0, ASSAY_TYPE_UNDEFINED, &y);
}

static void gemm_gelu_cost(const assay_eval_t* c, assay_cost_t* out) {
  const assay_matmul_form_t plain = {0};
  assay_matmul_cost(c, 0, plain, 1, plain, out);
}

// ---- GemmaRotaryEmbedding ---------------------------------------------------------------------

// The products are in half precision: sine and cosine are cast to it in all modes but truth.
static double gemma_cast(const assay_eval_t* c, double x) {
  return c->mode == ASSAY_MODE_TRUTH
             ? x
             : assay_format_round(assay_type_format(ASSAY_TYPE_FLOAT16), x, ASSAY_OVERFLOW_IEEE);
}

// Cosine and sine with the cast's rounding.
static assay_near_t limit_cast(const assay_steps_t* steps, double y, assay_near_t angle) {
  const assay_format_info_t* half = assay_format_info(ASSAY_FORMAT_FP16);
  assay_near_t a = assay_near_function(steps, y, angle, 1, 0);
  const double g = half->unit_roundoff * (fabs(y) + a.g) + half->min_subnormal;
  a.g += g, a.p += g;
  return a;
}

static void limit_gemma(const assay_eval_t* c, const double* e, const double* x, const double* r,
                        double* y) {
  const assay_steps_t steps = assay_rounding_steps(assay_running_bound_rounding(c));
  const assay_near_t angle = assay_near_at(e, assay_running_bound_of(c, e), 0);
  const assay_near_t cosine = limit_cast(&steps, assay_cos(e[0]), angle);
  const assay_near_t sine = limit_cast(&steps, assay_sin(e[0]), angle);
  const assay_near_t a =
      assay_near_mul(&steps, assay_near_at(x, assay_running_bound_of(c, x), 0), cosine);
  const assay_near_t b =
      assay_near_mul(&steps, assay_near_at(r, assay_running_bound_of(c, r), 0), sine);
  assay_near_put(assay_near_add(&steps, a, b), y, assay_running_bound_of(c, y), 0);
}

// Source: com.microsoft GemmaRotaryEmbedding 1: q cos(emb) + q_rot sin(emb), the same for k; emb
// is repeated for each head.
static assay_status_t gemma_eval(assay_eval_t* c) {
  const assay_tensor_t* emb = c->in[0];
  for (size_t i = 1; i < 5; i++) {
    const assay_tensor_t* t = c->in[i];
    if (emb->rank == 3 && t->rank == 4 && t->dims[0] == emb->dims[0] &&
        t->dims[2] == emb->dims[1] && t->dims[3] == emb->dims[2] &&
        t->dims[1] == c->in[i < 3 ? 1 : 3]->dims[1]) {
      continue;
    }
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                            "input %zu has shape %s, emb %s; expected [batch, heads, length, size] "
                            "and [batch, length, size]",
                            i, ASSAY_DIMS_TEXT(t), ASSAY_DIMS_TEXT(emb));
  }
  const int64_t plane = emb->dims[1] * emb->dims[2];
  for (size_t o = 0; o < 2; o++) {
    const assay_tensor_t *x = c->in[1 + 2 * o], *r = c->in[2 + 2 * o];
    assay_tensor_t* y = NULL;
    ASSAY_TRY(assay_eval_output(c, o, x->type, 4, x->dims, &y));
    const int64_t heads = x->dims[1], jobs = y->size > 0 ? x->dims[0] * heads : 0;
#pragma omp parallel for schedule(static) if (jobs > 1 && y->size > 5000)
    for (int64_t i = 0; i < jobs; i++) {
      const double* e = assay_f64(emb) + i / heads * plane;
      for (int64_t j = 0, at = i * plane; j < plane; j++, at++) {
        if (c->running) {
          limit_gemma(c, e + j, assay_f64(x) + at, assay_f64(r) + at, assay_f64(y) + at);
          continue;
        }
        const double a = assay_acc(c, assay_f64(x)[at] * gemma_cast(c, assay_cos(e[j])));
        const double b = assay_acc(c, assay_f64(r)[at] * gemma_cast(c, assay_sin(e[j])));
        assay_f64(y)[at] = assay_acc(c, a + b);
      }
    }
  }
  return NULL;
}

static assay_status_t gemma_infer(assay_infer_t* c) {
  ASSAY_TRY(assay_infer_want_rank(c, 0, 3, 3));
  for (size_t i = 1; i < 5; i++) ASSAY_TRY(assay_infer_want_rank(c, i, 4, 4));
  const assay_shape_t q = assay_infer_shape(c, 1), k = assay_infer_shape(c, 3);
  ASSAY_TRY(assay_infer_set(c, 0, ASSAY_TYPE_UNDEFINED, &q));
  return assay_infer_set(c, 1, ASSAY_TYPE_UNDEFINED, &k);
}

// ---- table ------------------------------------------------------------------------------------

#define BOUND(KIND, HOW) \
  static assay_status_t KIND##_bound(assay_bound_t* b) { return HOW(b, KIND##_eval); }

BOUND(gelu, assay_bound_running)
BOUND(fast_gelu, assay_bound_running)
BOUND(bias_gelu, assay_bound_running)
BOUND(quick_gelu, assay_bound_running)
BOUND(bias_add, assay_bound_running)
BOUND(split_gelu, assay_bound_running)
BOUND(gemm_gelu, assay_bound_running_exact)
BOUND(gemma, assay_bound_running)

#define MS(NAME, INFER, KIND)                                                               \
  .domain = "com.microsoft", .name = NAME, .since = 1, .infer = INFER, .eval = KIND##_eval, \
  .bound = KIND##_bound

const assay_op_t assay_ops_ms_fused[] = {
    {MS("Gelu", assay_infer_same, gelu), .flags = ASSAY_OP_POINTWISE, .cost = assay_pointwise_cost,
     .schema = "X:T -> Y:T | | T=FLOAT"},
    {MS("FastGelu", biased_infer, fast_gelu), .flags = ASSAY_OP_POINTWISE,
     .cost = assay_pointwise_cost, .schema = "X:T, bias?:T -> Y:T | | T=FLOAT"},
    {MS("BiasGelu", biased_infer, bias_gelu), .flags = ASSAY_OP_POINTWISE,
     .cost = assay_pointwise_cost, .schema = "A:T, B:T -> C:T | | T=FLOAT"},
    {MS("QuickGelu", assay_infer_same, quick_gelu), .flags = ASSAY_OP_POINTWISE,
     .cost = assay_pointwise_cost, .schema = "X:T -> Y:T | alpha:f=1.702 | T=FLOAT"},
    {MS("BiasAdd", biased_infer, bias_add), .flags = ASSAY_OP_POINTWISE,
     .cost = assay_pointwise_cost, .schema = "X:T, bias:T, skip:T -> Y:T | | T=float16 float"},
    {MS("BiasSplitGelu", split_gelu_infer, split_gelu), .cost = assay_pointwise_cost,
     .schema = "X:T, bias:T -> Y:T | | T=float16 float"},
    {MS("GemmFastGelu", gemm_gelu_infer, gemm_gelu), .flags = ASSAY_OP_CONTRACTS,
     .cost = gemm_gelu_cost, .schema = "X:T, W:T, bias?:T -> Y:T | | T=float float16 bfloat16"},
    {MS("GemmaRotaryEmbedding", gemma_infer, gemma), .cost = assay_pointwise_cost,
     .schema = "emb:U, q:T, q_rot:T, k:T, k_rot:T -> output1:T, output2:T | | T=float16; U=float"},
    {0},
};
