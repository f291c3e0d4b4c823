// Float products of com.microsoft with something fused to them.
#include <math.h>
#include <string.h>

#include "base/functions.h"
#include "ops/bound_parts.h"
#include "ops/families.h"
#include "ops/math/activation_name.h"
#include "ops/matmul/matmul.h"

static assay_matmul_form_t form_of(const assay_node_t* n, const char* swap,
                                   const char* rows_first) {
  return (assay_matmul_form_t){.swap = assay_attr_i64(n, swap, 0) != 0,
                               .rows_first = assay_attr_i64(n, rows_first, 0) != 0};
}

// ---- activations ------------------------------------------------------------------------------

// The activation attribute of a fused product; *out_has is false if it has none.
static assay_status_t read_activation(const assay_node_t* n, assay_activation_t* out,
                                      bool* out_has) {
  const char* name = assay_attr_str(n, "activation", "");
  *out_has = *name != 0;
  if (!*out_has) return NULL;
  if (!assay_activation_find(name, strlen(name), out)) {
    return ASSAY_NODE_ERROR(n, ASSAY_UNSUPPORTED, "activation '%s'", name);
  }
  out->alpha = assay_attr_f64(n, "activation_alpha", out->alpha);
  out->beta = assay_attr_f64(n, "activation_beta", out->beta);
  return NULL;
}

static void apply_activation(const assay_eval_t* c, const assay_activation_t* a,
                             assay_tensor_t* y) {
  for (int64_t i = 0; i < y->size; i++) {
    assay_f64(y)[i] = assay_activate(c, a, assay_f64(y)[i]);
  }
}

// ---- FusedMatMul, TransposeMatMul, FusedMatMulActivation --------------------------------------

static assay_status_t fused_infer(assay_infer_t* c) {
  assay_shape_t y;
  ASSAY_TRY(assay_matmul_shape(c, 0, form_of(c->node, "transA", "transBatchA"), 1,
                               form_of(c->node, "transB", "transBatchB"), &y));
  return assay_infer_set(c, 0, assay_infer_elem(c, 1), y.known ? &y : NULL);
}

// alpha * A' B' into output 0.
static assay_status_t fused_product(assay_eval_t* c, assay_tensor_t** out) {
  assay_matmul_t p;
  ASSAY_TRY(assay_matmul_init(c, c->in[0], form_of(c->node, "transA", "transBatchA"), c->in[1],
                              form_of(c->node, "transB", "transBatchB"), &p));
  assay_tensor_t* y = NULL;
  const double alpha = assay_attr_f64(c->node, "alpha", 1);
  assay_status_t st =
      assay_eval_output(c, 0, assay_eval_out_type(c, 0, c->in[1]->type), p.rank, p.dims, &y);
  if (!st) st = assay_matmul_f64(c, &p, assay_f64(y));
  for (int64_t i = 0; !st && alpha != 1 && i < y->size; i++) {
    assay_f64(y)[i] = assay_acc(c, alpha * assay_f64(y)[i]);
  }
  assay_matmul_deinit(&p);
  *out = y;
  return st;
}

// Source: com.microsoft FusedMatMul 1.
static assay_status_t fused_eval(assay_eval_t* c) {
  assay_tensor_t* y = NULL;
  return fused_product(c, &y);
}

// Source: com.microsoft FusedMatMulActivation 1; Softmax is along activation_axis.
static assay_status_t fused_activation_eval(assay_eval_t* c) {
  assay_tensor_t* y = NULL;
  assay_activation_t a;
  bool has = false;
  ASSAY_TRY(read_activation(c->node, &a, &has));
  ASSAY_TRY(fused_product(c, &y));
  if (has) apply_activation(c, &a, y);
  return NULL;
}

static void fused_cost(const assay_eval_t* c, assay_cost_t* out) {
  assay_matmul_cost(c, 0, form_of(c->node, "transA", "transBatchA"), 1,
                    form_of(c->node, "transB", "transBatchB"), out);
}

// ---- SparseToDenseMatMul ----------------------------------------------------------------------

// Sparse tensors are held dense. Source: com.microsoft SparseToDenseMatMul 1.
static assay_status_t sparse_eval(assay_eval_t* c) {
  if (c->in[1]->store == ASSAY_STORE_F64) return fused_eval(c);
  assay_matmul_t p;
  ASSAY_TRY(assay_matmul_init(c, c->in[0], form_of(c->node, "transA", ""), c->in[1],
                              form_of(c->node, "transB", ""), &p));
  assay_tensor_t* y = NULL;
  const double alpha = assay_attr_f64(c->node, "alpha", 1);
  const assay_type_t type = c->in[1]->type;
  assay_status_t st = assay_eval_output(c, 0, type, p.rank, p.dims, &y);
  if (!st) assay_matmul_i64(&p, assay_i64(y));
  for (int64_t i = 0; !st && i < y->size; i++) {
    int64_t* v = &assay_i64(y)[i];
    *v = assay_type_wrap(type, *v);
    if (alpha == 1) continue;
    const double x = type == ASSAY_TYPE_UINT64 ? (double)(uint64_t)*v : (double)*v;
    *v = assay_type_saturate(type, trunc(alpha * x));
  }
  assay_matmul_deinit(&p);
  return st;
}

// ---- FusedGemm, GemmFloat8 --------------------------------------------------------------------

static assay_status_t gemm_shape(assay_infer_t* c, assay_type_t type) {
  ASSAY_TRY(assay_infer_want_rank(c, 0, 2, 2));
  ASSAY_TRY(assay_infer_want_rank(c, 1, 2, 2));
  assay_shape_t y;
  ASSAY_TRY(assay_matmul_shape(c, 0, form_of(c->node, "transA", ""), 1,
                               form_of(c->node, "transB", ""), &y));
  return assay_infer_set(c, 0, type, y.known ? &y : NULL);
}

static assay_status_t gemm_infer(assay_infer_t* c) { return gemm_shape(c, assay_infer_elem(c, 0)); }

// y = factor * A' B' + beta * C.
static assay_status_t gemm_product(assay_eval_t* c, assay_type_t type, double factor, double beta,
                                   assay_tensor_t** out) {
  if (c->in[0]->rank != 2 || c->in[1]->rank != 2) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                            "A and B have shapes %s and %s; expected two dimensions each",
                            ASSAY_DIMS_TEXT(c->in[0]), ASSAY_DIMS_TEXT(c->in[1]));
  }
  assay_matmul_t p;
  ASSAY_TRY(assay_matmul_init(c, c->in[0], form_of(c->node, "transA", ""), c->in[1],
                              form_of(c->node, "transB", ""), &p));
  const assay_tensor_t* z = assay_eval_has(c, 2) ? c->in[2] : NULL;
  assay_tensor_t* y = NULL;
  assay_status_t st = NULL;
  int64_t strides[2] = {0, 0};
  bool fits = !z || z->rank <= 2;
  for (int i = 0; fits && z && i < z->rank; i++) {
    fits = z->dims[i] == 1 || z->dims[i] == p.dims[2 - z->rank + i];
  }
  if (!fits) {
    st = ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                          "C has shape %s; expected one that broadcasts to [%lld, %lld]",
                          ASSAY_DIMS_TEXT(z), (long long)p.m, (long long)p.n);
  }
  if (!st) st = assay_eval_output(c, 0, type, 2, p.dims, &y);
  if (!st) st = assay_matmul_f64(c, &p, assay_f64(y));
  if (!st && z) assay_broadcast_strides(z, 2, p.dims, strides);
  for (int64_t i = 0; !st && i < y->size; i++) {
    double v = assay_f64(y)[i];
    if (factor != 1) v = assay_acc(c, factor * v);
    if (z) {
      const int64_t at = i / p.n * strides[0] + i % p.n * strides[1];
      v = assay_acc(c, v + assay_acc(c, beta * assay_f64(z)[at]));
    }
    assay_f64(y)[i] = v;
  }
  assay_matmul_deinit(&p);
  *out = y;
  return st;
}

// Source: com.microsoft FusedGemm 1.
static assay_status_t fused_gemm_eval(assay_eval_t* c) {
  assay_activation_t a;
  bool has = false;
  assay_tensor_t* y = NULL;
  ASSAY_TRY(read_activation(c->node, &a, &has));
  ASSAY_TRY(gemm_product(c, assay_eval_out_type(c, 0, c->in[0]->type),
                         assay_attr_f64(c->node, "alpha", 1), assay_attr_f64(c->node, "beta", 1),
                         &y));
  if (has) apply_activation(c, &a, y);
  return NULL;
}

static assay_type_t float8_type(const assay_node_t* n) {
  const int64_t t = assay_attr_i64(n, "dtype", ASSAY_TYPE_FLOAT);
  const bool known = t > 0 && t < ASSAY_TYPE_COUNT && assay_type_is_float((assay_type_t)t);
  return known ? (assay_type_t)t : ASSAY_TYPE_UNDEFINED;
}

static assay_status_t float8_infer(assay_infer_t* c) {
  const assay_type_t type = float8_type(c->node);
  if (type == ASSAY_TYPE_UNDEFINED) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT, "dtype is %lld; expected a float type",
                            (long long)assay_attr_i64(c->node, "dtype", 1));
  }
  return gemm_shape(c, type);
}

static double gelu(double x, double alpha, double beta) {
  (void)alpha, (void)beta;
  return 0.5 * x * assay_erfc(-x * 0.70710678118654752440);
}

// alpha and the scales of A and B; the activation, if there is one.
static assay_status_t float8_read(const assay_eval_t* c, double* factor, double* y_scale,
                                  assay_activation_t* a) {
  *factor = assay_attr_f64(c->node, "alpha", 1), *y_scale = 1;
  for (size_t i = 3; i < 6; i++) {
    if (!assay_eval_has(c, i)) continue;
    if (c->in[i]->size != 1) {
      return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                              "scale %zu has shape %s; expected one number", i,
                              ASSAY_DIMS_TEXT(c->in[i]));
    }
    *(i == 5 ? y_scale : factor) *= assay_f64(c->in[i])[0];
  }
  *a = (assay_activation_t){.function = NULL};
  const char* name = assay_attr_str(c->node, "activation", "NONE");
  if (strcmp(name, "RELU") == 0) {
    assay_activation_find("Relu", 4, a);
  } else if (strcmp(name, "GELU") == 0) {
    a->function = gelu;
  } else if (*name && strcmp(name, "NONE") != 0) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                            "activation is '%s'; expected RELU, GELU or NONE", name);
  }
  return NULL;
}

// y = scaleY * activation(alpha * scaleA * scaleB * A' B' + beta * C).
// Source: com.microsoft GemmFloat8 1, with the scales of cublasLtMatmul, on which it is built.
static assay_status_t float8_eval(assay_eval_t* c) {
  double factor, y_scale;
  assay_activation_t a;
  ASSAY_TRY(float8_read(c, &factor, &y_scale, &a));
  assay_tensor_t* y = NULL;
  ASSAY_TRY(gemm_product(c, float8_type(c->node), factor, assay_attr_f64(c->node, "beta", 0), &y));
  if (a.function) apply_activation(c, &a, y);
  for (int64_t i = 0; y_scale != 1 && i < y->size; i++) {
    assay_f64(y)[i] = assay_acc(c, assay_f64(y)[i] * y_scale);
  }
  return NULL;
}

static void gemm_cost(const assay_eval_t* c, assay_cost_t* out) {
  assay_matmul_cost(c, 0, form_of(c->node, "transA", ""), 1, form_of(c->node, "transB", ""), out);
}

// ---- bounds -----------------------------------------------------------------------------------

static assay_status_t inner_size(const assay_bound_t* c, double* out) {
  const assay_eval_t reader = assay_bound_as_eval(c);
  assay_matmul_t p;
  ASSAY_TRY(assay_matmul_init(&reader, c->in[0], form_of(c->node, "transA", "transBatchA"),
                              c->in[1], form_of(c->node, "transB", "transBatchB"), &p));
  *out = (double)p.k;
  assay_matmul_deinit(&p);
  return NULL;
}

static assay_status_t fused_bound(assay_bound_t* c) {
  const double alpha = fabs(assay_attr_f64(c->node, "alpha", 1));
  double k;
  if (!assay_bound_is_float(c, 0)) return NULL;
  ASSAY_TRY(inner_size(c, &k));
  const assay_products_t p = {
      .factors = {0, 1}, .n_factors = 2, .terms = k + (alpha != 1), .scale = alpha};
  return assay_bound_products(c, &p);
}

// A product, its activation and a scale at the end.
typedef struct activated {
  const assay_activation_t* a;  // NULL: none
  bool turns;                   // it has a minimum, where its slope is less than 1.13
  double extra;                 // roundings of a term besides those of its sum
  double factor;                // what the sum is multiplied by
  double y_scale;
  assay_status_t (*product)(assay_eval_t* c);    // without activation
  assay_status_t (*magnitude)(assay_eval_t* c);  // of |inputs| and |attributes|
} activated_t;

// Activations grow with their argument, so its limits show at both ends. Their own rounding: a
// library function and some operations, and by textbook formulas some u of their parameters.
static double activated_limit(const assay_bound_t* c, const activated_t* p, double v, double e) {
  const assay_inner_t in = assay_bound_inner(c->rounding);
  double y = v, moved = e;
  if (p->a) {
    const double alpha = p->a->alpha, beta = p->a->beta;
    y = p->a->function(v, alpha, beta);
    moved = fmax(fabs(p->a->function(v + e, alpha, beta) - y),
                 fabs(p->a->function(v - e, alpha, beta) - y));
    if (p->turns) moved = fmax(moved, 1.13 * e);
    moved += (2 * in.function + 4 * in.u) * (fabs(y) + moved) + in.tiny;
    if (!c->rounding->documented)
      moved += 4 * in.u * (1 + fabs(v) + e + fabs(alpha) + fabs(beta));
    else if (p->a->has_beta)
      moved += 2 * in.u * (fabs(beta) + fabs(alpha * v));
  }
  if (p->y_scale == 1) return moved;
  return (moved + in.u * (fabs(y) + moved)) * fabs(p->y_scale) + in.tiny;
}

static assay_status_t activated_bound(assay_bound_t* c, const activated_t* p) {
  double* limits[2];
  ASSAY_TRY(assay_bound_want_exact(c, SIZE_MAX));
  ASSAY_TRY(assay_bound_output(c, 0, &limits[0], &limits[1]));
  if (!limits[0] || !assay_bound_is_float(c, 0)) return NULL;
  double terms;
  ASSAY_TRY(inner_size(c, &terms));
  terms += p->extra;
  const assay_bound_run_t plain = {.eval = p->product};
  const assay_bound_run_t widest = {.eval = p->magnitude, .magnitudes = true};
  assay_tensor_t *v = NULL, *size = NULL;
  assay_status_t st = assay_bound_evaluate(c, &plain, &v);
  if (!st) st = assay_bound_evaluate(c, &widest, &size);
  const assay_inner_t in = assay_bound_inner(c->rounding);
  const assay_factor_t sum = assay_bound_sum(c->rounding, terms);
  // The sum itself must be in range, before it is scaled.
  const double max = in.max * fmin(1, fabs(p->factor));
  // What its terms lose below the normal numbers is scaled with it.
  const double lost = terms * in.tiny * fmax(1, fabs(p->factor));
  for (int k = 0; !st && k < 2; k++) {
    const double factor = assay_factor_of(sum, k);
    for (int64_t i = 0; i < v->size; i++) {
      const double m = fabs(assay_f64(size)[i]);
      const assay_factor_t rounded = assay_bound_sum_of(c->rounding, terms, m, assay_f64(v)[i]);
      const double e = assay_factor_of(rounded, k) + lost;
      const double limit = activated_limit(c, p, assay_f64(v)[i], e);
      limits[k][i] = m * (1 + factor) > max || limit != limit ? (double)INFINITY : limit;
    }
  }
  assay_tensor_release(v);
  assay_tensor_release(size);
  return st;
}

static assay_status_t fused_activation_bound(assay_bound_t* c) {
  assay_activation_t a;
  bool has = false;
  ASSAY_TRY(read_activation(c->node, &a, &has));
  const activated_t p = {.a = has ? &a : NULL,
                         .extra = 1,
                         .factor = assay_attr_f64(c->node, "alpha", 1),
                         .y_scale = 1,
                         .product = fused_eval,
                         .magnitude = fused_eval};
  return activated_bound(c, &p);
}

static assay_status_t gemm_of(assay_eval_t* c, bool magnitude) {
  double alpha = assay_attr_f64(c->node, "alpha", 1), beta = assay_attr_f64(c->node, "beta", 1);
  assay_tensor_t* y = NULL;
  if (magnitude) alpha = fabs(alpha), beta = fabs(beta);
  return gemm_product(c, assay_eval_out_type(c, 0, c->in[0]->type), alpha, beta, &y);
}

static assay_status_t gemm_plain(assay_eval_t* c) { return gemm_of(c, false); }
static assay_status_t gemm_magnitude(assay_eval_t* c) { return gemm_of(c, true); }

static assay_status_t fused_gemm_bound(assay_bound_t* c) {
  assay_activation_t a;
  bool has = false;
  ASSAY_TRY(read_activation(c->node, &a, &has));
  const activated_t p = {.a = has ? &a : NULL,
                         .extra = 4,
                         .factor = assay_attr_f64(c->node, "alpha", 1),
                         .y_scale = 1,
                         .product = gemm_plain,
                         .magnitude = gemm_magnitude};
  return activated_bound(c, &p);
}

static assay_status_t float8_of(assay_eval_t* c, bool magnitude) {
  double factor, y_scale, beta = assay_attr_f64(c->node, "beta", 0);
  assay_activation_t a;
  assay_tensor_t* y = NULL;
  ASSAY_TRY(float8_read(c, &factor, &y_scale, &a));
  if (magnitude) factor = fabs(factor), beta = fabs(beta);
  return gemm_product(c, float8_type(c->node), factor, beta, &y);
}

static assay_status_t float8_plain(assay_eval_t* c) { return float8_of(c, false); }
static assay_status_t float8_magnitude(assay_eval_t* c) { return float8_of(c, true); }

static assay_status_t float8_bound(assay_bound_t* c) {
  const assay_eval_t reader = assay_bound_as_eval(c);
  double factor, y_scale;
  assay_activation_t a;
  ASSAY_TRY(float8_read(&reader, &factor, &y_scale, &a));
  const activated_t p = {.a = a.function ? &a : NULL,
                         .turns = a.function == gelu,
                         .extra = 6,
                         .factor = factor,
                         .y_scale = y_scale,
                         .product = float8_plain,
                         .magnitude = float8_magnitude};
  return activated_bound(c, &p);
}

#define MS .domain = "com.microsoft", .since = 1
#define MATMUL_ATTRS "alpha:f=1, transA:i=0, transB:i=0"
#define BATCH_ATTRS MATMUL_ATTRS ", transBatchA:i=0, transBatchB:i=0"
#define ACTIVATION_ATTRS "activation_alpha:f, activation_beta:f, activation_gamma:f"

const assay_op_t assay_ops_matmul_fused[] = {
    {MS, .name = "FusedMatMul", .flags = ASSAY_OP_PACKED, .infer = fused_infer, .eval = fused_eval,
     .bound = fused_bound, .cost = fused_cost,
     .schema = "A:T, B:T -> Y:T | " BATCH_ATTRS " | T=FLOAT"},
    {MS, .name = "TransposeMatMul", .flags = ASSAY_OP_PACKED, .infer = fused_infer,
     .eval = fused_eval, .bound = fused_bound, .cost = fused_cost,
     .schema = "A:T, B:T -> Y:T | " MATMUL_ATTRS " | T=FLOAT"},
    {MS, .name = "FusedMatMulActivation", .flags = ASSAY_OP_PACKED, .infer = fused_infer,
     .eval = fused_activation_eval, .bound = fused_activation_bound, .cost = fused_cost,
     .schema = "A:T, B:T -> Y:T | " BATCH_ATTRS
               ", activation:s!, activation_axis:i, " ACTIVATION_ATTRS " | T=FLOAT"},
    {MS, .name = "SparseToDenseMatMul", .infer = fused_infer, .eval = sparse_eval,
     .bound = fused_bound, .cost = fused_cost,
     .schema = "A:T, B:T -> Y:T | " MATMUL_ATTRS " | T=float double int64 int32 uint64 uint32"},
    {MS, .name = "FusedGemm", .infer = gemm_infer, .eval = fused_gemm_eval,
     .bound = fused_gemm_bound, .cost = gemm_cost,
     .schema = "A:T, B:T, C?:T -> Y:T | " MATMUL_ATTRS ", beta:f=1, activation:s, " ACTIVATION_ATTRS
               " | T=float16 float double"},
    {MS, .name = "GemmFloat8", .infer = float8_infer, .eval = float8_eval, .bound = float8_bound,
     .cost = gemm_cost,
     .schema = "A:TA, B:TB, C?:TC, scaleA?:TS, scaleB?:TS, scaleY?:TS -> Y:TR | " MATMUL_ATTRS
               ", beta:f=0, activation:s, dtype:i=1 | "
               "TA=float8e4m3fn float8e5m2 float16 bfloat16 float; "
               "TB=float8e4m3fn float8e5m2 float16 bfloat16 float; TC=float16 bfloat16 float; "
               "TR=float8e4m3fn float8e5m2 float16 bfloat16 float; TS=float"},
    {0}};
