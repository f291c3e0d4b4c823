// Weights of products: the least squares solution of rows times weights.
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "diagnose/solve/solve.h"

enum { MAX_TERMS = 1024, MAX_SPATIAL = 6 };

// A product as rows: y[row][column] = sum over t of x(row, t) * w(t, column) in each group.
typedef struct product {
  int64_t rows, terms, columns, groups;
  double alpha;     // of Gemm
  bool transposed;  // of Gemm: weights lie as [columns][terms]
  bool left;        // of MatMul: weights times x
  bool conv;
  // Conv: sizes in the order of axes.
  int spatial;
  int64_t size[MAX_SPATIAL], kernel[MAX_SPATIAL], made[MAX_SPATIAL];
  int64_t stride[MAX_SPATIAL], dilation[MAX_SPATIAL], pad[MAX_SPATIAL];
  int64_t in_channels, out_channels, pixels, out_pixels;
} product_t;

// ---- what the node is ---------------------------------------------------------------------------

// Weights in front: each column of x is a row of terms, and p->pixels columns lie side by side.
static bool read_left(const assay_solve_t* s, product_t* p) {
  const assay_tensor_t *w = s->in[0], *x = s->in[1];
  if (!x || x->kind != ASSAY_KIND_TENSOR || x->store != ASSAY_STORE_F64 || w->rank != 2 ||
      x->rank < 2 || x->dims[x->rank - 2] != w->dims[1])
    return false;
  p->left = true;
  p->terms = w->dims[1];
  p->columns = w->dims[0];
  p->pixels = x->dims[x->rank - 1];
  p->rows = p->terms ? x->size / p->terms : 0;
  return p->pixels > 0;
}

static bool read_matmul(const assay_solve_t* s, product_t* p) {
  const assay_tensor_t *x = s->in[0], *w = s->in[1];
  if (s->input == 0) return read_left(s, p);
  if (s->input != 1 || w->rank != 2 || x->rank < 2 || x->dims[x->rank - 1] != w->dims[0])
    return false;
  p->terms = w->dims[0];
  p->columns = w->dims[1];
  p->rows = p->terms ? x->size / p->terms : 0;
  return true;
}

static bool read_gemm(const assay_solve_t* s, product_t* p) {
  const assay_tensor_t *x = s->in[0], *w = s->in[1];
  if (s->input != 1 || w->rank != 2 || x->rank != 2 || assay_attr_i64(s->node, "transA", 0))
    return false;
  p->transposed = assay_attr_i64(s->node, "transB", 0) != 0;
  p->terms = w->dims[p->transposed ? 1 : 0];
  p->columns = w->dims[p->transposed ? 0 : 1];
  p->rows = x->dims[0];
  p->alpha = assay_attr_f64(s->node, "alpha", 1);
  return x->dims[1] == p->terms && p->alpha != 0;
}

static void read_axis(const assay_node_t* n, const char* name, int spatial, int64_t otherwise,
                      int64_t* out) {
  size_t count = 0;
  const int64_t* at = assay_attr_ints(n, name, &count);
  for (int i = 0; i < spatial; i++) out[i] = (size_t)i < count ? at[i] : otherwise;
}

static bool read_conv(const assay_solve_t* s, product_t* p) {
  const assay_tensor_t *x = s->in[0], *w = s->in[1];
  const int rank = x->rank;
  const char* pads = assay_attr_str(s->node, "auto_pad", "NOTSET");
  if (s->input != 1 || rank < 3 || rank - 2 > MAX_SPATIAL || w->rank != rank ||
      s->want->rank != rank || strcmp(pads, "NOTSET") != 0)
    return false;
  p->conv = true;
  p->spatial = rank - 2;
  p->groups = assay_attr_i64(s->node, "group", 1);
  p->in_channels = x->dims[1];
  p->out_channels = w->dims[0];
  if (p->groups < 1 || p->out_channels % p->groups || w->dims[1] * p->groups != p->in_channels)
    return false;
  read_axis(s->node, "strides", p->spatial, 1, p->stride);
  read_axis(s->node, "dilations", p->spatial, 1, p->dilation);
  read_axis(s->node, "pads", p->spatial, 0, p->pad);
  p->terms = w->dims[1];
  p->columns = p->out_channels / p->groups;
  p->pixels = p->out_pixels = 1;
  for (int i = 0; i < p->spatial; i++) {
    p->size[i] = x->dims[2 + i];
    p->kernel[i] = w->dims[2 + i];
    p->made[i] = s->want->dims[2 + i];
    p->terms *= p->kernel[i];
    p->pixels *= p->size[i];
    p->out_pixels *= p->made[i];
  }
  p->rows = x->dims[0] * p->out_pixels;
  return true;
}

static bool read_product(const assay_solve_t* s, product_t* p) {
  const char* op = s->node->op_type;
  *p = (product_t){.groups = 1, .alpha = 1};
  if (*s->node->domain || s->output != 0 || s->node->n_inputs < 2 || !s->in[0] ||
      s->in[0]->kind != ASSAY_KIND_TENSOR || s->in[0]->store != ASSAY_STORE_F64)
    return false;
  const bool known = strcmp(op, "MatMul") == 0 ? read_matmul(s, p)
                     : strcmp(op, "Gemm") == 0 ? read_gemm(s, p)
                     : strcmp(op, "Conv") == 0 ? read_conv(s, p)
                                               : false;
  return known && p->terms > 0 && p->terms <= MAX_TERMS && p->rows > 0 &&
         s->want->size == p->rows * p->columns * p->groups;
}

// ---- rows ---------------------------------------------------------------------------------------

// The terms of a row, for a group.
static void fill_row(const assay_solve_t* s, const product_t* p, int64_t row, int64_t group,
                     double* out) {
  const double* x = assay_f64(s->in[p->left ? 1 : 0]);
  if (p->left) {
    const double* from = x + row / p->pixels * p->terms * p->pixels + row % p->pixels;
    for (int64_t i = 0; i < p->terms; i++) out[i] = from[i * p->pixels];
    return;
  }
  if (!p->conv) {
    memcpy(out, x + row * p->terms, (size_t)p->terms * sizeof *out);
    return;
  }
  int64_t at[MAX_SPATIAL], pixel = row % p->out_pixels;
  for (int i = p->spatial; i-- > 0; pixel /= p->made[i]) at[i] = pixel % p->made[i];
  const int64_t channels = p->in_channels / p->groups, taps = p->terms / channels;
  const double* image = x + (row / p->out_pixels * p->in_channels + group * channels) * p->pixels;
  for (int64_t k = 0; k < taps; k++) {
    int64_t rest = k, from = 0, step = 1;
    bool inside = true;
    for (int i = p->spatial; i-- > 0; rest /= p->kernel[i]) {
      const int64_t y = at[i] * p->stride[i] - p->pad[i] + rest % p->kernel[i] * p->dilation[i];
      inside = inside && y >= 0 && y < p->size[i];
      from += y * step;
      step *= p->size[i];
    }
    for (int64_t c = 0; c < channels; c++)
      out[c * taps + k] = inside ? image[c * p->pixels + from] : 0;
  }
}

static int64_t place_of(const product_t* p, int64_t row, int64_t group, int64_t column) {
  if (p->left) return (row / p->pixels * p->columns + column) * p->pixels + row % p->pixels;
  if (!p->conv) return row * p->columns + column;
  return (row / p->out_pixels * p->out_channels + group * p->columns + column) * p->out_pixels +
         row % p->out_pixels;
}

static int64_t weight_of(const product_t* p, int64_t group, int64_t term, int64_t column) {
  if (p->conv || p->left) return (group * p->columns + column) * p->terms + term;
  return p->transposed ? column * p->terms + term : term * p->columns + column;
}

// ---- normal equations ---------------------------------------------------------------------------

// a = X^T X (lower part), b = X^T R of a group: R is what the product lacks.
static assay_status_t gather(const assay_solve_t* s, const product_t* p, int64_t group, bool* held,
                             double* a, double* b) {
  enum { SPARE = 64 };
  const int64_t k = p->terms, n = p->columns;
  // More rows than this say little more.
  const int64_t step = p->rows > 8 * (k + SPARE) ? p->rows / (8 * (k + SPARE)) : 1;
  double* x = NULL;
  ASSAY_TRY(assay_new_array((size_t)k, sizeof *x, &x));
  memset(a, 0, (size_t)(k * k) * sizeof *a);
  memset(b, 0, (size_t)(k * n) * sizeof *b);
  for (int64_t row = 0; row < p->rows; row += step) {
    if (held && assay_solve_tests(row)) {
      for (int64_t c = 0; c < n; c++) held[place_of(p, row, group, c)] = true;
      continue;
    }
    fill_row(s, p, row, group, x);
    for (int64_t i = 0; i < k; i++) {
      if (x[i] == 0) continue;
      for (int64_t j = 0; j <= i; j++) a[i * k + j] += x[i] * x[j];
      for (int64_t c = 0; c < n; c++) {
        const int64_t at = place_of(p, row, group, c);
        b[i * n + c] += x[i] * (assay_f64(s->want)[at] - assay_f64(s->have)[at]) / p->alpha;
      }
    }
  }
  assay_free(x);
  return NULL;
}

// The ridge keeps directions that no row has where they are.
static bool solve(int64_t k, int64_t n, double* a, double* b) {
  static const double RIDGE = 1e-11;
  double trace = 0;
  for (int64_t i = 0; i < k; i++) trace += a[i * k + i];
  return trace > 0 && isfinite(trace) &&
         assay_solve_cholesky(k, n, RIDGE * trace / (double)k, a, b);
}

assay_status_t assay_solve_rows(const assay_solve_t* s, bool* held, assay_tensor_t** out) {
  product_t p;
  double *a = NULL, *b = NULL;
  *out = NULL;
  if (!read_product(s, &p)) return NULL;
  assay_tensor_t* made = NULL;
  assay_status_t st = assay_tensor_copy(s->in[s->input], &made);
  if (!st) st = assay_new_array((size_t)(p.terms * p.terms), sizeof *a, &a);
  if (!st) st = assay_new_array((size_t)(p.terms * p.columns), sizeof *b, &b);
  bool solved = true;
  for (int64_t g = 0; !st && solved && g < p.groups; g++) {
    st = gather(s, &p, g, held, a, b);
    solved = !st && solve(p.terms, p.columns, a, b);
    for (int64_t t = 0; solved && t < p.terms; t++)
      for (int64_t c = 0; c < p.columns; c++)
        assay_f64(made)[weight_of(&p, g, t, c)] += b[t * p.columns + c];
  }
  assay_free(a);
  assay_free(b);
  if (!st && solved) {
    *out = made;
    made = NULL;
  }
  assay_tensor_release(made);
  return st;
}
