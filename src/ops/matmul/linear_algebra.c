// Det, and com.microsoft's Inverse and CDist.
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/functions.h"
#include "base/random.h"
#include "ops/bound_number.h"
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

// ---- bounds -----------------------------------------------------------------------------------
//
// Elimination with pivoting in arithmetic of unit u gives the factors of A + E, where
// |E| <= gamma_n |L||U|. Source: N. J. Higham, Accuracy and Stability, 2002, theorem 9.3. Rounding
// may choose other pivots: their factors are taken to be at most twice as large.

// Room for one n x n matrix.
typedef struct factors {
  int64_t n;
  double *a, *lu;  // the factors; |L||U| by rows of A
  double *inverse, *moved;
  double *column, *squares;  // n
  int64_t* origin;           // row of A that row i of the factors came from
  bool odd;                  // an odd number of swaps
} factors_t;

static assay_status_t factors_init(int64_t n, factors_t* f) {
  *f = (factors_t){.n = n};
  ASSAY_TRY(assay_new_array((size_t)(n * n), sizeof *f->a, &f->a));
  ASSAY_TRY(assay_new_array((size_t)(n * n), sizeof *f->lu, &f->lu));
  ASSAY_TRY(assay_new_array((size_t)n, sizeof *f->column, &f->column));
  ASSAY_TRY(assay_new_array((size_t)(n * n), sizeof *f->inverse, &f->inverse));
  ASSAY_TRY(assay_new_array((size_t)(n * n), sizeof *f->moved, &f->moved));
  ASSAY_TRY(assay_new_array((size_t)n, sizeof *f->squares, &f->squares));
  return assay_new_array((size_t)n, sizeof *f->origin, &f->origin);
}

static void factors_deinit(factors_t* f) {
  assay_free(f->a);
  assay_free(f->lu);
  assay_free(f->inverse);
  assay_free(f->moved);
  assay_free(f->column);
  assay_free(f->squares);
  assay_free(f->origin);
}

static void swap_rows(factors_t* f, int64_t i, int64_t k) {
  const int64_t n = f->n, origin = f->origin[i];
  f->origin[i] = f->origin[k];
  f->origin[k] = origin;
  f->odd = !f->odd;
  for (int64_t j = 0; j < n; j++) {
    const double t = f->a[i * n + j];
    f->a[i * n + j] = f->a[k * n + j];
    f->a[k * n + j] = t;
  }
}

static void factorize(factors_t* f, const double* x) {
  const int64_t n = f->n;
  double* a = f->a;
  memcpy(a, x, (size_t)(n * n) * sizeof *a);
  for (int64_t i = 0; i < n; i++) f->origin[i] = i;
  f->odd = false;
  for (int64_t k = 0; k < n; k++) {
    int64_t best = k;
    for (int64_t i = k + 1; i < n; i++)
      if (fabs(a[i * n + k]) > fabs(a[best * n + k])) best = i;
    if (best != k) swap_rows(f, k, best);
    if (a[k * n + k] == 0) continue;
    for (int64_t i = k + 1; i < n; i++) {
      const double factor = a[i * n + k] /= a[k * n + k];
      for (int64_t j = k + 1; j < n; j++) a[i * n + j] -= factor * a[k * n + j];
    }
  }
  for (int64_t i = 0; i < n; i++) {
    for (int64_t j = 0; j < n; j++) {
      double s = 0;
      for (int64_t k = 0; k <= i && k <= j; k++)
        s += (k == i ? 1 : fabs(a[i * n + k])) * fabs(a[k * n + j]);
      f->lu[f->origin[i] * n + j] = 2 * s;
    }
  }
}

static double norm_of(const double* x, int64_t n, int64_t stride) {
  double s = 0;
  for (int64_t i = 0; i < n; i++) s = assay_hypot(s, x[i * stride]);
  return s;
}

// A determinant is linear in each row, and at most the product of its rows' lengths (Hadamard):
// |det(A + E) - det A| <= product of (|a_i| + |e_i|) - product of |a_i|. side: of columns instead.
static double det_moved(const factors_t* f, const double* x, double relative, double tiny,
                        bool side) {
  const int64_t n = f->n, step = side ? 1 : n, stride = side ? n : 1;
  double product = 1, raised = 1, change = 0;
  for (int64_t i = 0; i < n; i++) {
    const double length = norm_of(x + i * step, n, stride);
    const double e = relative * norm_of(f->lu + i * step, n, stride) + (double)n * tiny;
    change += assay_log1p(e / length);
    product *= length;
    raised *= length + e;
  }
  return product > 0 && change < 0.5 ? product * assay_expm1(change) : raised - product;
}

static double det_limit(const assay_arithmetic_t* r, const factors_t* f, const double* x,
                        double det, bool probable) {
  const double u = r->inner.u, n = (double)f->n, tiny = r->inner.tiny;
  const double relative = (probable ? fmin(n, 6 * sqrt(n)) : n) * u / (1 - n * u);
  const double moved =
      fmin(det_moved(f, x, relative, tiny, false), det_moved(f, x, relative, tiny, true));
  // The product of the pivots may leave the range on its way.
  double high = 1;
  for (int64_t i = 0; i < f->n; i++) high *= fmax(1, 2 * fabs(f->a[i * f->n + i]));
  const double e = moved + 2 * n * u * (fabs(det) + moved) + n * tiny * high;
  return high <= r->inner.max && n * u < 0.5 && e == e ? e : (double)INFINITY;
}

// The inverse from the factors; false if it is far from what is left to first order.
static bool invert(const factors_t* f, double u, double* x) {
  const int64_t n = f->n;
  double worst = 0;
  for (int64_t i = 0; i < n; i++)
    if (f->a[i * n + i] == 0) return false;
  for (int64_t j = 0; j < n; j++) {
    for (int64_t i = 0; i < n; i++) {
      double s = f->origin[i] == j;
      for (int64_t k = 0; k < i; k++) s -= f->a[i * n + k] * x[k * n + j];
      x[i * n + j] = s;
    }
    for (int64_t i = n - 1; i >= 0; i--) {
      for (int64_t k = i + 1; k < n; k++) x[i * n + j] -= f->a[i * n + k] * x[k * n + j];
      x[i * n + j] /= f->a[i * n + i];
    }
  }
  for (int64_t i = 0; i < n; i++)
    for (int64_t j = 0; j < n; j++) worst = fmax(worst, fabs(x[i * n + j]) * f->lu[j * n + i]);
  return (double)n * (double)n * u * worst < 0.05;
}

static double product_of_pivots(const factors_t* f) {
  double det = f->odd ? -1 : 1;
  for (int64_t i = 0; i < f->n; i++) det *= f->a[i * f->n + i];
  return det;
}

// Where the first order says little: what draws of E do to the determinant. The factors are
// overwritten.
static double det_drawn(const assay_arithmetic_t* r, factors_t* f, const double* x, double det) {
  enum { DRAWS = 16 };
  const int64_t n = f->n;
  const assay_random_t random = assay_random_make(1, "Det", 0);
  const double own = product_of_pivots(f);
  double square = 0;
  memcpy(f->inverse, f->lu, (size_t)(n * n) * sizeof *f->inverse);
  double* moved = f->moved;
  for (uint64_t d = 0; d < DRAWS; d++) {
    for (int64_t i = 0; i < n * n; i++) {
      const double e = (f->inverse[i] / 2 * r->inner.u + r->inner.tiny) * sqrt((double)n);
      moved[i] = x[i] + e * assay_random_normal(&random, d * (uint64_t)(n * n) + (uint64_t)i);
    }
    factorize(f, moved);
    const double by = product_of_pivots(f) - own;
    square += by * by / DRAWS;
  }
  return 12 * sqrt(square) + 6 * r->inner.u * sqrt(2 * (double)n) * fabs(det);
}

// To first order det moves by the cofactors, det A times the inverse, times E, whose elements are
// independent.
static double det_likely(const assay_arithmetic_t* r, factors_t* f, const double* x, double det) {
  const int64_t n = f->n;
  const double u = r->inner.u;
  if (det == 0 || !invert(f, u, f->inverse)) return det_drawn(r, f, x, det);
  double square = 0;
  for (int64_t i = 0; i < n; i++) {
    for (int64_t j = 0; j < n; j++) {
      const double e =
          f->inverse[j * n + i] * (f->lu[i * n + j] / 2 * u + (double)n * r->inner.tiny);
      square += e * e * (double)n;
    }
  }
  return 6 * fabs(det) * (sqrt(square) + u * sqrt(2 * (double)n)) * 1.2;
}

static assay_status_t det_bound(assay_bound_t* c) {
  ASSAY_TRY(assay_bound_want_exact(c, SIZE_MAX));
  const assay_arithmetic_t r = assay_arithmetic_of(c);
  const assay_tensor_t* x = c->in[0];
  const int64_t n = x->dims[x->rank - 1], count = c->out[0]->size;
  factors_t f;
  double *g, *p;
  ASSAY_TRY(assay_bound_output(c, 0, &g, &p));
  assay_status_t st = factors_init(n, &f);
  for (int64_t i = 0; !st && i < count; i++) {
    const double *a = assay_f64(x) + i * n * n, det = assay_f64(c->out[0])[i];
    factorize(&f, a);
    g[i] = det_limit(&r, &f, a, det, false);
    // What vanishes on the way to the product of the pivots is multiplied by those that follow.
    double high = (double)n * r.inner.tiny;
    for (int64_t k = 0; k < n; k++) high *= fmax(1, 2 * fabs(f.a[k * n + k]));
    p[i] = fmin(g[i], det_limit(&r, &f, a, det, true));
    p[i] = fmin(p[i], det_likely(&r, &f, a, det) + high);  // may overwrite the factors
  }
  factors_deinit(&f);
  return st;
}

// |X' - X| <= about 3 n u |X| |L||U| |X|, by whichever way an inverse comes from the factors, as
// long as that is small against X. Source: N. J. Higham, Accuracy and Stability, 2002, 14.3.
// Independent errors of |L||U| add up as squares.
static void inverse_limits(const assay_arithmetic_t* r, factors_t* f, const double* x, double* g,
                           double* p) {
  const int64_t n = f->n;
  const double u = r->inner.u, size = (double)n;
  double worst = 0, high = 0;
  for (int64_t j = 0; j < n; j++) {
    for (int64_t i = 0; i < n; i++) {
      f->column[i] = f->squares[i] = 0;
      for (int64_t k = 0; k < n; k++) {
        const double t = f->lu[i * n + k] * fabs(x[k * n + j]);
        f->column[i] += t;
        f->squares[i] += t * t;
      }
    }
    for (int64_t i = 0; i < n; i++) {
      double s = 0, square = 0;
      for (int64_t k = 0; k < n; k++) {
        s += fabs(x[i * n + k]) * (f->column[k] + size * r->inner.tiny);
        square += x[i * n + k] * x[i * n + k] * f->squares[k];
      }
      g[i * n + j] = s;
      p[i * n + j] = sqrt(square);
      high = fmax(high, fmax(s, fmax(f->column[i], f->lu[i * n + j])));
    }
  }
  // The norm of what multiplies X: |X||L||U|, from |X||L||U||X| against |X| where that is not 0.
  for (int64_t i = 0; i < n; i++) {
    double row = 0;
    for (int64_t j = 0; j < n; j++)
      for (int64_t k = 0; k < n; k++) row += fabs(x[i * n + k]) * f->lu[k * n + j];
    worst = fmax(worst, row);
  }
  const double second = 3 * size * u * worst;
  const bool near = second < 0.25 && high <= r->inner.max;
  for (int64_t i = 0; i < n * n; i++) {
    const double more = 1 / (1 - 2 * second);
    const double own = u * fabs(x[i]) + size * r->inner.tiny * (1 + fabs(x[i]));
    const double likely = 3 * sqrt(3 * size) * p[i];  // lu holds twice |L||U|
    p[i] = near ? fmin(3 * size * g[i], likely) * u * more + own : (double)INFINITY;
    g[i] = near ? 3 * size * u * g[i] * more + own : (double)INFINITY;
  }
}

static assay_status_t inverse_bound(assay_bound_t* c) {
  ASSAY_TRY(assay_bound_want_exact(c, SIZE_MAX));
  const assay_arithmetic_t r = assay_arithmetic_of(c);
  const assay_tensor_t* x = c->in[0];
  factors_t f;
  double *g, *p;
  ASSAY_TRY(assay_bound_output(c, 0, &g, &p));
  if (x->size == 0) return NULL;
  const int64_t n = x->dims[x->rank - 1];
  assay_status_t st = factors_init(n, &f);
  for (int64_t at = 0; !st && at < x->size; at += n * n) {
    factorize(&f, assay_f64(x) + at);
    inverse_limits(&r, &f, assay_f64(c->out[0]) + at, g + at, p + at);
  }
  factors_deinit(&f);
  return st;
}

typedef assay_number_t num_t;

typedef struct pair {
  const assay_bound_t* c;
  const assay_arithmetic_t* r;
  int64_t n, a, b;  // where the two points start
} pair_t;

static num_t of_a(const pair_t* p, int64_t i) { return assay_number_input(p->c, 0, p->a + i); }
static num_t of_b(const pair_t* p, int64_t i) { return assay_number_input(p->c, 1, p->b + i); }

// Engines may compute |a|^2 + |b|^2 - 2 a b, which cancels.
static num_t squared_numbers(const pair_t* p) {
  assay_number_sum_t s = {0}, expanded = {0};
  for (int64_t i = 0; i < p->n; i++) {
    const num_t a = of_a(p, i), b = of_b(p, i);
    assay_number_sum_add(&s, assay_number_square(p->r, assay_number_sub(p->r, a, b)));
    assay_number_sum_add_product(&expanded, a, a);
    assay_number_sum_add_product(&expanded, b, b);
    assay_number_sum_add_product(&expanded, a, assay_number_mul(p->r, b, assay_number_exact(-2)));
  }
  const num_t y = assay_number_sum_end(p->r, &s);
  if (p->c->rounding->documented || !p->c->rounding->by_definition) return y;
  const num_t z = assay_number_sum_end(p->r, &expanded);
  return (num_t){y.v, fmax(y.g, z.g), fmax(y.s2, z.s2)};
}

static num_t euclidean_numbers(const pair_t* p) {
  num_t s = squared_numbers(p);
  return assay_number_sqrt(p->r, s);
}

static num_t difference(const pair_t* p, int64_t i) {
  return assay_number_abs(assay_number_sub(p->r, of_a(p, i), of_b(p, i)));
}

static num_t cityblock_numbers(const pair_t* p) {
  assay_number_sum_t s = {0};
  for (int64_t i = 0; i < p->n; i++) assay_number_sum_add(&s, difference(p, i));
  return assay_number_sum_end(p->r, &s);
}

static num_t chebyshev_numbers(const pair_t* p) {
  num_t y = {0};
  for (int64_t i = 0; i < p->n; i++) {
    const num_t d = difference(p, i);
    y = (num_t){fmax(y.v, d.v), fmax(y.g, d.g), fmax(y.s2, d.s2)};
  }
  return y;
}

static num_t canberra_numbers(const pair_t* p) {
  assay_number_sum_t s = {0};
  for (int64_t i = 0; i < p->n; i++) {
    const num_t a = of_a(p, i), b = of_b(p, i);
    const num_t t = assay_number_add(p->r, assay_number_abs(a), assay_number_abs(b));
    if (t.v != 0 || t.g > p->r->inner.tiny * 2)
      assay_number_sum_add(&s, assay_number_div(p->r, difference(p, i), t));
  }
  return assay_number_sum_end(p->r, &s);
}

static num_t braycurtis_numbers(const pair_t* p) {
  assay_number_sum_t s = {0}, t = {0};
  for (int64_t i = 0; i < p->n; i++) {
    assay_number_sum_add(&s, difference(p, i));
    assay_number_sum_add(&t, assay_number_abs(assay_number_add(p->r, of_a(p, i), of_b(p, i))));
  }
  return assay_number_div(p->r, assay_number_sum_end(p->r, &s), assay_number_sum_end(p->r, &t));
}

static num_t cosine_numbers(const pair_t* p) {
  assay_number_sum_t dot = {0}, aa = {0}, bb = {0};
  for (int64_t i = 0; i < p->n; i++) {
    const num_t a = of_a(p, i), b = of_b(p, i);
    assay_number_sum_add_product(&dot, a, b);
    assay_number_sum_add_product(&aa, a, a);
    assay_number_sum_add_product(&bb, b, b);
  }
  const num_t lengths =
      assay_number_mul(p->r, assay_number_sqrt(p->r, assay_number_sum_end(p->r, &aa)),
                       assay_number_sqrt(p->r, assay_number_sum_end(p->r, &bb)));
  const num_t q = assay_number_div(p->r, assay_number_sum_end(p->r, &dot), lengths);
  return assay_number_sub(p->r, assay_number_exact(1), q);
}

// A count, divided once.
static num_t hamming_numbers(const pair_t* p) {
  int64_t s = 0;
  for (int64_t i = 0; i < p->n; i++) s += of_a(p, i).v != of_b(p, i).v;
  return assay_number_div(p->r, assay_number_exact((double)s), assay_number_exact((double)p->n));
}

static assay_status_t cdist_bound(assay_bound_t* c) {
  static num_t (*const numbers[])(const pair_t*) = {
      squared_numbers,  euclidean_numbers,  cityblock_numbers, chebyshev_numbers,
      canberra_numbers, braycurtis_numbers, cosine_numbers,    hamming_numbers};
  const char* name = assay_attr_str(c->node, "metric", "sqeuclidean");
  const assay_arithmetic_t r = assay_arithmetic_of(c);
  const int64_t n = c->in[0]->dims[1], columns = c->in[1]->dims[0];
  size_t metric = 0;
  while (strcmp(metrics[metric].name, name) != 0) metric++;  // evaluation has known it
  // Equal or not is a choice.
  if (numbers[metric] == hamming_numbers) ASSAY_TRY(assay_bound_want_exact(c, SIZE_MAX));
  double *g, *p;
  ASSAY_TRY(assay_bound_output(c, 0, &g, &p));
#pragma omp parallel for schedule(static) if ((double)c->out[0]->size * (double)n > 1e5)
  for (int64_t i = 0; i < c->out[0]->size; i++) {
    const pair_t at = {c, &r, n, i / columns * n, i % columns * n};
    assay_number_limits(&r, numbers[metric](&at), &g[i], &p[i]);
  }
  return NULL;
}

const assay_op_t assay_ops_linear_algebra[] = {
    {.domain = "",
     .name = "Det",
     .since = 11,
     .infer = det_infer,
     .eval = det_eval,
     .bound = det_bound,
     .cost = det_cost},
    {.domain = "com.microsoft",
     .name = "Inverse",
     .since = 1,
     .infer = inverse_infer,
     .eval = inverse_eval,
     .bound = inverse_bound,
     .cost = inverse_cost,
     .schema = "X:T -> Y:T | | T=float16 float double"},
    {.domain = "com.microsoft",
     .name = "CDist",
     .since = 1,
     .infer = cdist_infer,
     .eval = cdist_eval,
     .bound = cdist_bound,
     .cost = cdist_cost,
     .schema = "A:T, B:T -> C:T | metric:s=sqeuclidean | T=float double"},
    {0}};
