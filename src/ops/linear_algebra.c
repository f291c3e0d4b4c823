// Det, and com.microsoft's Inverse and CDist.
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "ops/families.h"

// ---- elimination ------------------------------------------------------------------------------

// Gaussian elimination with partial pivoting of a [n, n], doing the same to the columns of b [n, m]
// (m may be 0). Returns the determinant: the product of the pivots in order, times the sign of the
// row exchanges. Source: Golub and Van Loan, Matrix Computations, 3.4.
static double eliminate(const assay_eval_t* c, int64_t n, double* a, int64_t m, double* b) {
  double det = 1;
  for (int64_t k = 0; k < n; k++) {
    int64_t best = k;
    for (int64_t i = k + 1; i < n; i++) {
      if (fabs(a[i * n + k]) > fabs(a[best * n + k])) best = i;
    }
    if (best != k) {
      det = -det;
      for (int64_t j = 0; j < n; j++) {
        const double t = a[k * n + j];
        a[k * n + j] = a[best * n + j];
        a[best * n + j] = t;
      }
      for (int64_t j = 0; j < m; j++) {
        const double t = b[k * m + j];
        b[k * m + j] = b[best * m + j];
        b[best * m + j] = t;
      }
    }
    const double pivot = a[k * n + k];
    det = assay_acc(c, det * pivot);
    if (pivot == 0) return 0;
    for (int64_t i = k + 1; i < n; i++) {
      const double factor = assay_acc(c, a[i * n + k] / pivot);
      if (factor == 0) continue;
      for (int64_t j = k; j < n; j++) {
        a[i * n + j] = assay_acc(c, a[i * n + j] - assay_acc(c, factor * a[k * n + j]));
      }
      for (int64_t j = 0; j < m; j++) {
        b[i * m + j] = assay_acc(c, b[i * m + j] - assay_acc(c, factor * b[k * m + j]));
      }
    }
  }
  return det;
}

static assay_status_t want_square(const assay_eval_t* c, const assay_tensor_t* x) {
  if (x->rank >= 2 && x->dims[x->rank - 1] == x->dims[x->rank - 2]) return NULL;
  return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                          "input has shape %s; expected square matrices", ASSAY_DIMS_TEXT(x));
}

static assay_status_t infer_square(assay_infer_t* c, assay_shape_t* out) {
  ASSAY_TRY(assay_infer_want_rank(c, 0, 2, ASSAY_MAX_RANK));
  *out = assay_infer_shape(c, 0);
  if (out->known && assay_dim_differ(out->dims[out->rank - 1], out->dims[out->rank - 2])) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                            "input is %s; expected square matrices",
                            ASSAY_VALTYPE_TEXT(assay_infer_type(c, 0)));
  }
  return NULL;
}

// ---- Det --------------------------------------------------------------------------------------

static assay_status_t det_infer(assay_infer_t* c) {
  assay_shape_t x;
  ASSAY_TRY(infer_square(c, &x));
  x.rank -= 2;
  return assay_infer_set(c, 0, ASSAY_TYPE_UNDEFINED, x.known ? &x : NULL);
}

// Source: ONNX Det 11, 22. The determinant of a matrix without elements is 1.
static assay_status_t det_eval(assay_eval_t* c) {
  const assay_tensor_t* x = c->in[0];
  ASSAY_TRY(want_square(c, x));
  assay_tensor_t *y = NULL, *work = NULL;
  ASSAY_TRY(assay_eval_output(c, 0, assay_eval_out_type(c, 0, x->type), x->rank - 2, x->dims, &y));
  ASSAY_TRY(assay_tensor_copy(x, &work));
  const int64_t n = x->dims[x->rank - 1], count = y->size;
#pragma omp parallel for schedule(static) if (count > 1 && (double)x->size * (double)n > 1e5)
  for (int64_t i = 0; i < count; i++) {
    assay_f64(y)[i] = eliminate(c, n, assay_f64(work) + i * n * n, 0, NULL);
  }
  assay_tensor_release(work);
  return NULL;
}

static void det_cost(const assay_eval_t* c, assay_cost_t* out) {
  const assay_tensor_t* x = c->in[0];
  if (x->rank >= 1) out->flops = 2.0 / 3 * (double)x->size * (double)x->dims[x->rank - 1];
}

// ---- Inverse ----------------------------------------------------------------------------------

static assay_status_t inverse_infer(assay_infer_t* c) {
  assay_shape_t x;
  ASSAY_TRY(infer_square(c, &x));
  return assay_infer_same(c);
}

// Back substitution of the eliminated system into b, which becomes the inverse.
static void substitute(const assay_eval_t* c, int64_t n, const double* a, double* b) {
  for (int64_t i = n - 1; i >= 0; i--) {
    for (int64_t j = 0; j < n; j++) {
      double s = b[i * n + j];
      for (int64_t l = i + 1; l < n; l++) {
        s = assay_acc(c, s - assay_acc(c, a[i * n + l] * b[l * n + j]));
      }
      b[i * n + j] = assay_acc(c, s / a[i * n + i]);
    }
  }
}

// Source: com.microsoft Inverse 1. A singular matrix has no inverse: an error.
static assay_status_t inverse_eval(assay_eval_t* c) {
  const assay_tensor_t* x = c->in[0];
  ASSAY_TRY(want_square(c, x));
  assay_tensor_t *y = NULL, *work = NULL;
  ASSAY_TRY(assay_eval_output(c, 0, assay_eval_out_type(c, 0, x->type), x->rank, x->dims, &y));
  if (x->size == 0) return NULL;
  ASSAY_TRY(assay_tensor_copy(x, &work));
  const int64_t n = x->dims[x->rank - 1], count = x->size / (n * n);
  memset(y->data, 0, (size_t)y->size * sizeof(double));
  int64_t singular = -1;
#pragma omp parallel for schedule(static) if (count > 1 && (double)x->size * (double)n > 1e5)
  for (int64_t i = 0; i < count; i++) {
    double *a = assay_f64(work) + i * n * n, *b = assay_f64(y) + i * n * n;
    for (int64_t j = 0; j < n; j++) b[j * n + j] = 1;
    if (eliminate(c, n, a, n, b) == 0 && a[n * n - 1] == 0) {
#pragma omp critical(assay_inverse)
      if (singular < 0 || i < singular) singular = i;
    } else {
      substitute(c, n, a, b);
    }
  }
  assay_tensor_release(work);
  if (singular < 0) return NULL;
  return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT, "matrix %lld of input %s is singular",
                          (long long)singular, ASSAY_DIMS_TEXT(x));
}

static void inverse_cost(const assay_eval_t* c, assay_cost_t* out) {
  const assay_tensor_t* x = c->in[0];
  if (x->rank >= 1) out->flops = 2.0 * (double)x->size * (double)x->dims[x->rank - 1];
}

// ---- CDist ------------------------------------------------------------------------------------

typedef double (*distance_t)(const assay_eval_t* c, int64_t n, const double* a, const double* b);

static double sqeuclidean(const assay_eval_t* c, int64_t n, const double* a, const double* b) {
  double s = 0;
  for (int64_t i = 0; i < n; i++) {
    const double d = assay_acc(c, a[i] - b[i]);
    s = assay_acc(c, s + assay_acc(c, d * d));
  }
  return s;
}

static double euclidean(const assay_eval_t* c, int64_t n, const double* a, const double* b) {
  return assay_acc(c, sqrt(sqeuclidean(c, n, a, b)));
}

static double cityblock(const assay_eval_t* c, int64_t n, const double* a, const double* b) {
  double s = 0;
  for (int64_t i = 0; i < n; i++) s = assay_acc(c, s + fabs(assay_acc(c, a[i] - b[i])));
  return s;
}

static double chebyshev(const assay_eval_t* c, int64_t n, const double* a, const double* b) {
  double s = 0;
  for (int64_t i = 0; i < n; i++) {
    const double d = fabs(assay_acc(c, a[i] - b[i]));
    if (d > s || isnan(d)) s = d;
  }
  return s;
}

static double canberra(const assay_eval_t* c, int64_t n, const double* a, const double* b) {
  double s = 0;
  for (int64_t i = 0; i < n; i++) {
    const double d = fabs(assay_acc(c, a[i] - b[i])), t = assay_acc(c, fabs(a[i]) + fabs(b[i]));
    if (t != 0) s = assay_acc(c, s + assay_acc(c, d / t));
  }
  return s;
}

static double braycurtis(const assay_eval_t* c, int64_t n, const double* a, const double* b) {
  double s = 0, t = 0;
  for (int64_t i = 0; i < n; i++) {
    s = assay_acc(c, s + fabs(assay_acc(c, a[i] - b[i])));
    t = assay_acc(c, t + fabs(assay_acc(c, a[i] + b[i])));
  }
  return assay_acc(c, s / t);
}

static double cosine(const assay_eval_t* c, int64_t n, const double* a, const double* b) {
  double dot = 0, aa = 0, bb = 0;
  for (int64_t i = 0; i < n; i++) {
    dot = assay_acc(c, dot + assay_acc(c, a[i] * b[i]));
    aa = assay_acc(c, aa + assay_acc(c, a[i] * a[i]));
    bb = assay_acc(c, bb + assay_acc(c, b[i] * b[i]));
  }
  const double lengths = assay_acc(c, assay_acc(c, sqrt(aa)) * assay_acc(c, sqrt(bb)));
  return assay_acc(c, 1 - assay_acc(c, dot / lengths));
}

static double hamming(const assay_eval_t* c, int64_t n, const double* a, const double* b) {
  int64_t s = 0;
  for (int64_t i = 0; i < n; i++) s += a[i] != b[i];
  return assay_acc(c, (double)s / (double)n);
}

static const struct {
  const char* name;
  distance_t function;
} metrics[] = {{"sqeuclidean", sqeuclidean}, {"euclidean", euclidean}, {"cityblock", cityblock},
               {"chebyshev", chebyshev},     {"canberra", canberra},   {"braycurtis", braycurtis},
               {"cosine", cosine},           {"hamming", hamming}};

static assay_status_t cdist_infer(assay_infer_t* c) {
  ASSAY_TRY(assay_infer_want_rank(c, 0, 2, 2));
  ASSAY_TRY(assay_infer_want_rank(c, 1, 2, 2));
  const assay_shape_t a = assay_infer_shape(c, 0), b = assay_infer_shape(c, 1);
  if (a.known && b.known && assay_dim_differ(a.dims[1], b.dims[1])) {
    return ASSAY_NODE_ERROR(
        c->node, ASSAY_INVALID_ARGUMENT, "A is %s, B is %s; expected points of the same dimension",
        ASSAY_VALTYPE_TEXT(assay_infer_type(c, 0)), ASSAY_VALTYPE_TEXT(assay_infer_type(c, 1)));
  }
  const assay_shape_t y = {
      .known = true, .rank = 2, .dims = {a.known ? a.dims[0] : NULL, b.known ? b.dims[0] : NULL}};
  return assay_infer_set(c, 0, ASSAY_TYPE_UNDEFINED, &y);
}

// Source: com.microsoft CDist 1, as scipy.spatial.distance.cdist.
static assay_status_t cdist_eval(assay_eval_t* c) {
  const assay_tensor_t *a = c->in[0], *b = c->in[1];
  const char* name = assay_attr_str(c->node, "metric", "sqeuclidean");
  distance_t distance = NULL;
  for (size_t i = 0; i < sizeof metrics / sizeof *metrics; i++) {
    if (strcmp(metrics[i].name, name) == 0) distance = metrics[i].function;
  }
  if (!distance) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_UNSUPPORTED,
                            "metric '%s'; known are sqeuclidean, euclidean, cityblock, chebyshev, "
                            "canberra, braycurtis, cosine, hamming",
                            name);
  }
  if (a->rank != 2 || b->rank != 2 || a->dims[1] != b->dims[1]) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                            "A has shape %s, B %s; expected points of the same dimension",
                            ASSAY_DIMS_TEXT(a), ASSAY_DIMS_TEXT(b));
  }
  const int64_t n = a->dims[1], dims[2] = {a->dims[0], b->dims[0]};
  assay_tensor_t* y = NULL;
  ASSAY_TRY(assay_eval_output(c, 0, assay_eval_out_type(c, 0, a->type), 2, dims, &y));
  const double work = (double)y->size * (double)n;
#pragma omp parallel for schedule(static) if (dims[0] > 1 && work > 1e5)
  for (int64_t i = 0; i < dims[0]; i++) {
    for (int64_t j = 0; j < dims[1]; j++) {
      assay_f64(y)[i * dims[1] + j] = distance(c, n, assay_f64(a) + i * n, assay_f64(b) + j * n);
    }
  }
  return NULL;
}

static void cdist_cost(const assay_eval_t* c, assay_cost_t* out) {
  const assay_tensor_t *a = c->in[0], *b = c->in[1];
  if (b->rank == 2) out->flops = 3.0 * (double)a->size * (double)b->dims[0];
}

const assay_op_t assay_ops_linear_algebra[] = {
    {.domain = "",
     .name = "Det",
     .since = 11,
     .infer = det_infer,
     .eval = det_eval,
     .cost = det_cost},
    {.domain = "com.microsoft",
     .name = "Inverse",
     .since = 1,
     .infer = inverse_infer,
     .eval = inverse_eval,
     .cost = inverse_cost,
     .schema = "X:T -> Y:T | | T=float16 float double"},
    {.domain = "com.microsoft",
     .name = "CDist",
     .since = 1,
     .infer = cdist_infer,
     .eval = cdist_eval,
     .cost = cdist_cost,
     .schema = "A:T, B:T -> C:T | metric:s=sqeuclidean | T=float double"},
    {0}};
