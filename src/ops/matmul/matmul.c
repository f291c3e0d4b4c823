// MatMul and Gemm of ONNX.
#include "ops/matmul/matmul.h"

#include <math.h>

#include "ops/bound.h"
#include "ops/dd_array.h"
#include "ops/families.h"

static const assay_matmul_form_t plain = {0};

// ---- MatMul -----------------------------------------------------------------------------------

static assay_status_t matmul_infer(assay_infer_t* c) {
  assay_shape_t y;
  ASSAY_TRY(assay_matmul_shape(c, 0, plain, 1, plain, &y));
  return assay_infer_set(c, 0, ASSAY_TYPE_UNDEFINED, y.known ? &y : NULL);
}

// Source: ONNX MatMul 1, 9, 13 (numpy.matmul). Sums as assay_gemm says; integers wrap.
static assay_status_t matmul_eval(assay_eval_t* c) {
  assay_matmul_t p;
  ASSAY_TRY(assay_matmul_init(c, c->in[0], plain, c->in[1], plain, &p));
  assay_tensor_t* y = NULL;
  const assay_type_t type = assay_eval_out_type(c, 0, c->in[0]->type);
  assay_status_t st = assay_eval_output(c, 0, type, p.rank, p.dims, &y);
  if (!st && assay_type_is_float(c->in[0]->type)) {
    st = assay_matmul_f64(c, &p, assay_f64(y));
  } else if (!st) {
    int64_t* out = assay_i64(y);
    assay_matmul_i64(&p, out);
    for (int64_t i = 0; i < y->size; i++) out[i] = assay_type_wrap(type, out[i]);
  }
  assay_matmul_deinit(&p);
  return st;
}

static void matmul_cost(const assay_eval_t* c, assay_cost_t* out) {
  assay_matmul_cost(c, 0, plain, 1, plain, out);
}

// ---- Gemm -------------------------------------------------------------------------------------

static assay_matmul_form_t gemm_form(const assay_node_t* n, const char* name) {
  return (assay_matmul_form_t){.swap = assay_attr_i64(n, name, 0) != 0};
}

// C may be broadcast to the output [M, N], but not the other way round; through opset 6 only where
// `broadcast` is set.
static assay_status_t gemm_infer_with(assay_infer_t* c, bool may_broadcast) {
  ASSAY_TRY(assay_infer_want_rank(c, 0, 2, 2));
  ASSAY_TRY(assay_infer_want_rank(c, 1, 2, 2));
  assay_shape_t y;
  ASSAY_TRY(
      assay_matmul_shape(c, 0, gemm_form(c->node, "transA"), 1, gemm_form(c->node, "transB"), &y));
  const assay_shape_t z = assay_infer_has(c, 2) ? assay_infer_shape(c, 2) : (assay_shape_t){0};
  for (int i = 0; y.known && z.known && i < z.rank; i++) {
    const int at = 2 - z.rank + i;
    int64_t d = 0;
    const bool one = assay_dim_value(z.dims[i], &d) && d == 1 && may_broadcast;
    if (at < 0 || (!one && assay_dim_differ(z.dims[i], y.dims[at])) ||
        (!may_broadcast && z.rank != 2)) {
      return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                              "C is %s, which does not broadcast to the product of A %s and B %s",
                              ASSAY_VALTYPE_TEXT(assay_infer_type(c, 2)),
                              ASSAY_VALTYPE_TEXT(assay_infer_type(c, 0)),
                              ASSAY_VALTYPE_TEXT(assay_infer_type(c, 1)));
    }
  }
  return assay_infer_set(c, 0, ASSAY_TYPE_UNDEFINED, y.known ? &y : NULL);
}

static assay_status_t gemm_infer(assay_infer_t* c) { return gemm_infer_with(c, true); }

static assay_status_t gemm_infer_1(assay_infer_t* c) {
  return gemm_infer_with(c, assay_attr_i64(c->node, "broadcast", 0) != 0);
}

// An integer product or sum scaled by a float attribute: exact for whole factors, else rounded to
// double and truncated, as a cast does.
static int64_t scale_integer(assay_type_t type, double factor, int64_t x) {
  if (factor == 1) return x;
  if (factor == trunc(factor) && fabs(factor) < 0x1p63) {
    return (int64_t)((uint64_t)x * (uint64_t)(int64_t)factor);
  }
  const double v = type == ASSAY_TYPE_UINT64 ? (double)(uint64_t)x : (double)x;
  return assay_type_saturate(type, trunc(factor * v));
}

// y = alpha * y + beta * z, each product and the sum rounded once.
static void gemm_finish(const assay_eval_t* c, double alpha, double beta, const assay_tensor_t* z,
                        assay_tensor_t* y) {
  int64_t strides[ASSAY_MAX_RANK] = {0};
  if (z) assay_broadcast_strides(z, 2, y->dims, strides);
  for (int64_t i = 0; i < y->dims[0]; i++) {
    for (int64_t j = 0; j < y->dims[1]; j++) {
      const int64_t at = i * y->dims[1] + j, from = i * strides[0] + j * strides[1];
      if (y->store == ASSAY_STORE_F64) {
        double* v = assay_f64(y) + at;
        if (alpha != 1) *v = assay_acc(c, alpha * *v);
        if (z) *v = assay_acc(c, *v + assay_acc(c, beta * assay_f64(z)[from]));
      } else {
        int64_t* v = assay_i64(y) + at;
        uint64_t s = (uint64_t)scale_integer(y->type, alpha, *v);
        if (z) s += (uint64_t)scale_integer(y->type, beta, assay_i64(z)[from]);
        *v = assay_type_wrap(y->type, (int64_t)s);
      }
    }
  }
}

// The same in double-double.
static void gemm_finish_dd(const assay_eval_t* c, double alpha, double beta,
                           const assay_tensor_t* z, assay_tensor_t* y) {
  int64_t strides[ASSAY_MAX_RANK] = {0};
  if (z) assay_broadcast_strides(z, 2, y->dims, strides);
  for (int64_t i = 0; i < y->dims[0]; i++) {
    for (int64_t j = 0; j < y->dims[1]; j++) {
      double *high = &assay_f64(y)[i * y->dims[1] + j],
             *low = &assay_f64(c->low[0])[i * y->dims[1] + j];
      const double add = z ? assay_f64(z)[i * strides[0] + j * strides[1]] : 0;
      assay_dd_t v = assay_dd_times((assay_dd_t){*high, *low}, assay_dd(alpha));
      if (z) v = assay_dd_plus(v, assay_dd_times(assay_dd(beta), assay_dd(add)));
      *high = v.high;
      *low = v.low;
    }
  }
}

// Source: ONNX Gemm 1, 6, 7, 9, 11, 13: Y = alpha * A' * B' + beta * C.
static assay_status_t gemm_eval_with(assay_eval_t* c, bool may_broadcast) {
  if (c->in[0]->rank != 2 || c->in[1]->rank != 2) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                            "A and B have shapes %s and %s; expected two dimensions each",
                            ASSAY_DIMS_TEXT(c->in[0]), ASSAY_DIMS_TEXT(c->in[1]));
  }
  assay_matmul_t p;
  ASSAY_TRY(assay_matmul_init(c, c->in[0], gemm_form(c->node, "transA"), c->in[1],
                              gemm_form(c->node, "transB"), &p));
  assay_tensor_t *y = NULL, *z = NULL;
  assay_status_t st = NULL;
  if (assay_eval_has(c, 2)) {
    const assay_tensor_t* given = c->in[2];
    bool fits = given->rank <= 2 && (may_broadcast || given->rank == 2);
    for (int i = 0; fits && i < given->rank; i++) {
      const int64_t d = given->dims[i];
      fits = d == p.dims[2 - given->rank + i] || (d == 1 && may_broadcast);
    }
    if (!fits) {
      st = ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                            "C has shape %s; expected one that broadcasts to [%lld, %lld]",
                            ASSAY_DIMS_TEXT(given), (long long)p.m, (long long)p.n);
    }
    if (!st) st = assay_tensor_widen(c->in[2], &z);
  }
  const assay_type_t type = assay_eval_out_type(c, 0, c->in[0]->type);
  if (!st) st = assay_eval_output(c, 0, type, 2, p.dims, &y);
  if (!st && y->store == ASSAY_STORE_F64) {
    st = assay_matmul_f64(c, &p, assay_f64(y));
  } else if (!st) {
    assay_matmul_i64(&p, assay_i64(y));
  }
  if (!st) {
    const bool twice = c->arith == ASSAY_ARITH_DOUBLE_DOUBLE && y->store == ASSAY_STORE_F64;
    (twice ? gemm_finish_dd : gemm_finish)(c, assay_attr_f64(c->node, "alpha", 1),
                                           assay_attr_f64(c->node, "beta", 1), z, y);
  }
  assay_tensor_release(z);
  assay_matmul_deinit(&p);
  return st;
}

static assay_status_t gemm_eval(assay_eval_t* c) { return gemm_eval_with(c, true); }

static assay_status_t gemm_eval_1(assay_eval_t* c) {
  return gemm_eval_with(c, assay_attr_i64(c->node, "broadcast", 0) != 0);
}

static void gemm_cost(const assay_eval_t* c, assay_cost_t* out) {
  assay_matmul_cost(c, 0, gemm_form(c->node, "transA"), 1, gemm_form(c->node, "transB"), out);
  if (assay_eval_has(c, 2) && c->n_out > 0 && c->out[0])
    out->flops += 2.0 * (double)c->out[0]->size;
}

// ---- bounds -----------------------------------------------------------------------------------

static assay_status_t matmul_bound(assay_bound_t* c) {
  const assay_tensor_t* a = c->in[0];
  const assay_products_t p = {
      .factors = {0, 1}, .n_factors = 2, .terms = a->rank ? (double)a->dims[a->rank - 1] : 1};
  return assay_bound_products(c, &p);
}

// alpha, beta and the addition of C are three more roundings on a term's way.
static assay_status_t gemm_bound(assay_bound_t* c) {
  const double alpha = assay_attr_f64(c->node, "alpha", 1),
               beta = assay_attr_f64(c->node, "beta", 1);
  const int inner = assay_attr_i64(c->node, "transA", 0) ? 0 : 1;
  const bool added = c->n_in > 2 && c->in[2];
  const assay_products_t p = {.factors = {0, 1},
                              .n_factors = 2,
                              .scale = fabs(alpha),
                              .opposed = alpha * beta < 0,
                              .terms = (double)c->in[0]->dims[inner] + (alpha != 1) + 2 * added};
  return assay_bound_products(c, &p);
}

static void products_dd(assay_dd_eval_t* c) { assay_dd_products(c, 2, (const size_t[]){0, 1}); }

const assay_op_t assay_ops_matmul[] = {{.domain = "",
                                        .name = "MatMul",
                                        .since = 1,
                                        .flags = ASSAY_OP_PACKED | ASSAY_OP_CONTRACTS,
                                        .infer = matmul_infer,
                                        .eval = matmul_eval,
                                        .bound = matmul_bound,
                                        .dd = products_dd,
                                        .cost = matmul_cost},
                                       {.domain = "",
                                        .name = "Gemm",
                                        .since = 1,
                                        .flags = ASSAY_OP_PACKED | ASSAY_OP_CONTRACTS,
                                        .factors = 0x3,
                                        .infer = gemm_infer_1,
                                        .eval = gemm_eval_1,
                                        .bound = gemm_bound,
                                        .dd = products_dd,
                                        .cost = gemm_cost},
                                       {.domain = "",
                                        .name = "Gemm",
                                        .since = 7,
                                        .flags = ASSAY_OP_PACKED | ASSAY_OP_CONTRACTS,
                                        .factors = 0x3,
                                        .infer = gemm_infer,
                                        .eval = gemm_eval,
                                        .bound = gemm_bound,
                                        .dd = products_dd,
                                        .cost = gemm_cost},
                                       {0}};
