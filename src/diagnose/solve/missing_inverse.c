// What an input must have been, where the node can be read backwards: a product with a weight that
// has as many columns as rows or more, an operator of two values or of one, a part of Concat,
// moves. What has to be there is known then, and all kinds are asked for it: columns in another
// order, an activation, numbers, another value.
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/functions.h"
#include "diagnose/solve/missing.h"
#include "diagnose/solve/solve.h"

enum { MAX_TERMS = 512 };

static bool is_op(const assay_node_t* n, const char* op_type) {
  return !*n->domain && strcmp(n->op_type, op_type) == 0;
}

static bool is_float(const assay_tensor_t* t) {
  return t && t->kind == ASSAY_KIND_TENSOR && t->store == ASSAY_STORE_F64 && t->size > 0;
}

// ---- products ----------------------------------------------------------------------------------

// y[row][column] = sum over t of x[row][t] w[t][column], and what does not hang on x.
typedef struct product {
  int64_t rows, terms, columns;
  int64_t term_step, column_step;  // of the weight
  int64_t pixels;                  // that lie side by side, of a convolution of 1 x 1; 1: none
  double factor;
} product_t;

static bool read_product(const assay_missing_search_t* s, const assay_tensor_t* want,
                         product_t* p) {
  const assay_tensor_t *x = s->in[0], *w = s->n_in > 1 ? s->in[1] : NULL;
  if (!is_float(w) || w->rank < 2 || x->rank < 2) return false;
  *p = (product_t){.terms = w->dims[0], .columns = w->dims[1], .pixels = 1, .factor = 1};
  p->term_step = p->columns;
  p->column_step = 1;
  const bool turned =
      is_op(s->node, "Conv") || (is_op(s->node, "Gemm") && assay_attr_i64(s->node, "transB", 0));
  if (turned)
    *p = (product_t){.terms = w->dims[1],
                     .columns = w->dims[0],
                     .term_step = 1,
                     .column_step = w->dims[1],
                     .pixels = 1,
                     .factor = 1};
  if (is_op(s->node, "Gemm")) p->factor = assay_attr_f64(s->node, "alpha", 1);
  if (is_op(s->node, "Gemm") && assay_attr_i64(s->node, "transA", 0)) return false;
  if (is_op(s->node, "Conv")) {
    for (int i = 2; i < x->rank; i++) p->pixels *= x->dims[i];
    if (w->size != p->terms * p->columns || want->rank != x->rank || x->dims[1] != p->terms ||
        want->size != x->dims[0] * p->columns * p->pixels)
      return false;
  } else if (w->rank != 2 || x->dims[x->rank - 1] != p->terms ||
             !(is_op(s->node, "MatMul") || is_op(s->node, "Gemm"))) {
    return false;
  }
  p->rows = x->size / p->terms;
  return p->terms <= MAX_TERMS && p->terms <= p->columns && p->factor != 0 &&
         want->size == p->rows * p->columns;
}

static int64_t place_of(const product_t* p, int64_t row, int64_t i, int64_t n) {
  return (row / p->pixels * n + i) * p->pixels + row % p->pixels;
}

// The node's output where the input is 0.
static assay_status_t of_zero(assay_missing_search_t* s, size_t input, const assay_tensor_t* want,
                              assay_tensor_t** out) {
  assay_tensor_t* zero = NULL;
  const assay_tensor_t* x = s->in[input];
  ASSAY_TRY(assay_tensor_create_zero(x->type, x->rank, x->dims, &zero));
  const assay_solve_t solve = {.m = s->m,
                               .node = s->node,
                               .input = input,
                               .in = s->in,
                               .want = (assay_tensor_t*)want,
                               .output = s->output};
  assay_status_t st = assay_solve_evaluate(&solve, zero, out);
  assay_tensor_release(zero);
  return st;
}

// x w = y by least squares: w w^T x^T = w y^T. *out false: there is no such x.
static assay_status_t divide(const product_t* p, const double* w, const double* y, double* x,
                             bool* out) {
  const int64_t n = p->terms, m = p->columns;
  double *a = NULL, *b = NULL, trace = 0, left = 0, size = 0;
  assay_status_t st = assay_new_array((size_t)(n * n), sizeof *a, &a);
  if (!st) st = assay_new_array((size_t)(n * p->rows), sizeof *b, &b);
  for (int64_t i = 0; !st && i < n; i++) {
    const double* u = w + i * p->term_step;
    for (int64_t j = 0; j <= i; j++)
      for (int64_t c = 0; c < m; c++)
        a[i * n + j] += u[c * p->column_step] * w[j * p->term_step + c * p->column_step];
    trace += a[i * n + i];
    for (int64_t r = 0; r < p->rows; r++)
      for (int64_t c = 0; c < m; c++)
        b[i * p->rows + r] += u[c * p->column_step] * y[place_of(p, r, c, m)];
  }
  *out = !st && trace > 0 && assay_solve_cholesky(n, p->rows, 1e-15 * trace / (double)n, a, b);
  for (int64_t r = 0; *out && r < p->rows; r++)
    for (int64_t c = 0; c < m; c++) {
      double sum = -y[place_of(p, r, c, m)];
      size += sum * sum;
      for (int64_t i = 0; i < n; i++)
        sum += b[i * p->rows + r] * w[i * p->term_step + c * p->column_step];
      left += sum * sum;
    }
  *out = *out && left <= 1e-9 * size;
  for (int64_t i = 0; *out && i < n; i++)
    for (int64_t r = 0; r < p->rows; r++) x[place_of(p, r, i, n)] = b[i * p->rows + r];
  assay_free(a);
  assay_free(b);
  return st;
}

static assay_status_t of_product(assay_missing_search_t* s, size_t input,
                                 const assay_tensor_t* want, assay_tensor_t* x, bool* out) {
  product_t p;
  assay_tensor_t* zero = NULL;
  *out = false;
  if (input != 0 || !read_product(s, want, &p)) return NULL;
  ASSAY_TRY(of_zero(s, input, want, &zero));
  if (!zero) return NULL;
  for (int64_t i = 0; i < want->size; i++)
    assay_f64(zero)[i] = (assay_f64(want)[i] - assay_f64(zero)[i]) / p.factor;
  assay_status_t st = divide(&p, assay_f64(s->in[1]), assay_f64(zero), assay_f64(x), out);
  assay_tensor_release(zero);
  return st;
}

// ---- element by element ------------------------------------------------------------------------

static double element_for(const assay_tensor_t* t, const assay_tensor_t* to, int64_t at) {
  int64_t index = 0, step = 1;
  for (int i = 1; i <= t->rank; i++) {
    const int64_t d = to->dims[to->rank - i];
    if (t->dims[t->rank - i] != 1) index += at % d * step;
    step *= t->dims[t->rank - i];
    at /= d;
  }
  return assay_f64(t)[index];
}

// Whether the other of two inputs is as large as what is made of both, or is repeated.
static bool fits_into(const assay_tensor_t* t, const assay_tensor_t* to) {
  if (!is_float(t) || t->rank > to->rank) return false;
  for (int i = 1; i <= t->rank; i++)
    if (t->dims[t->rank - i] != 1 && t->dims[t->rank - i] != to->dims[to->rank - i]) return false;
  return true;
}

static double of_pair(const char* op, bool first, double y, double other) {
  if (strcmp(op, "Add") == 0) return y - other;
  if (strcmp(op, "Sub") == 0) return first ? y + other : other - y;
  if (strcmp(op, "Mul") == 0) return y / other;
  return first ? y * other : other / y;
}

static double of_function(const char* op, double y, double alpha) {
  if (strcmp(op, "Sigmoid") == 0) return assay_log(y / (1 - y));
  if (strcmp(op, "Tanh") == 0) return assay_atanh(y);
  if (strcmp(op, "Exp") == 0) return assay_log(y);
  if (strcmp(op, "Sqrt") == 0) return y * y;
  if (strcmp(op, "Reciprocal") == 0) return 1 / y;
  return y < 0 ? y / alpha : y;
}

static bool is_one_of(const assay_node_t* n, const char* const* ops, size_t count) {
  for (size_t i = 0; i < count; i++)
    if (is_op(n, ops[i])) return true;
  return false;
}

static bool of_elements(const assay_missing_search_t* s, size_t input, const assay_tensor_t* want,
                        assay_tensor_t* x) {
  static const char* const PAIRS[] = {"Add", "Sub", "Mul", "Div"};
  static const char* const ONES[] = {"Sigmoid", "Tanh", "Exp", "Sqrt", "Reciprocal", "LeakyRelu"};
  const bool pair = s->n_in == 2 && is_one_of(s->node, PAIRS, sizeof PAIRS / sizeof *PAIRS);
  const bool one = s->n_in == 1 && is_one_of(s->node, ONES, sizeof ONES / sizeof *ONES);
  const double alpha = assay_attr_f64(s->node, "alpha", 0.01);
  if (!(pair || one) || !assay_tensor_same_shape(x, want) || input >= s->n_in) return false;
  const assay_tensor_t* other = pair ? s->in[1 - input] : NULL;
  if (pair && (!fits_into(other, want) || s->node->inputs[0] == s->node->inputs[1])) return false;
  for (int64_t i = 0; i < want->size; i++) {
    const double y = assay_f64(want)[i];
    const double v = pair ? of_pair(s->node->op_type, input == 0, y, element_for(other, want, i))
                          : of_function(s->node->op_type, y, alpha);
    if (!isfinite(v)) return false;
    assay_f64(x)[i] = v;
  }
  return true;
}

// ---- a part of Concat --------------------------------------------------------------------------

static bool of_concat(const assay_missing_search_t* s, size_t input, const assay_tensor_t* want,
                      assay_tensor_t* x) {
  int64_t axis = assay_attr_i64(s->node, "axis", 0), from = 0;
  if (axis < 0) axis += x->rank;
  if (!is_op(s->node, "Concat") || want->rank != x->rank || axis < 0 || axis >= x->rank)
    return false;
  for (size_t i = 0; i < input; i++) {
    if (!s->in[i] || s->in[i]->rank != x->rank) return false;
    from += s->in[i]->dims[axis];
  }
  for (int i = 0; i < x->rank; i++)
    if (i != axis && x->dims[i] != want->dims[i]) return false;
  if (from + x->dims[axis] > want->dims[axis]) return false;
  const int64_t inner = assay_dims_product(x->dims, (int)axis + 1, x->rank);
  const int64_t part = x->dims[axis] * inner, whole = want->dims[axis] * inner;
  for (int64_t o = 0; part && o < x->size / part; o++)
    memcpy(assay_f64(x) + o * part, assay_f64(want) + o * whole + from * inner,
           (size_t)part * sizeof(double));
  return true;
}

// ---- elements that stand elsewhere
// ---------------------------------------------------------------

// What only moves elements, and loses none, tells by numbers in their place where each went.
static assay_status_t of_moves(assay_missing_search_t* s, size_t input, const assay_tensor_t* want,
                               assay_tensor_t* x, bool* out) {
  static const char* const MOVES[] = {"Transpose", "Reshape",      "Flatten",      "Squeeze",
                                      "Unsqueeze", "DepthToSpace", "SpaceToDepth", "Gather",
                                      "Slice",     "Identity"};
  *out = false;
  if (input != 0 || !is_one_of(s->node, MOVES, sizeof MOVES / sizeof *MOVES) ||
      x->size != want->size)
    return NULL;
  assay_tensor_t* places = NULL;
  bool* seen = NULL;
  const assay_solve_t solve = {.m = s->m,
                               .node = s->node,
                               .input = input,
                               .in = s->in,
                               .want = (assay_tensor_t*)want,
                               .output = s->output};
  for (int64_t i = 0; i < x->size; i++) assay_f64(x)[i] = (double)i;
  ASSAY_TRY(assay_solve_evaluate(&solve, x, &places));
  assay_status_t st = places ? assay_new_array((size_t)x->size, sizeof *seen, &seen) : NULL;
  *out = !st && is_float(places) && assay_tensor_same_shape(places, want);
  for (int64_t i = 0; *out && i < want->size; i++) {
    const double at = assay_f64(places)[i];
    *out = at >= 0 && at < (double)x->size && !seen[(int64_t)at];
    if (!*out) break;
    seen[(int64_t)at] = true;
    assay_f64(x)[(int64_t)at] = assay_f64(want)[i];
  }
  assay_free(seen);
  assay_tensor_release(places);
  return st;
}

// ---- all of them -------------------------------------------------------------------------------

assay_status_t assay_missing_inverse(assay_missing_search_t* s, size_t input,
                                     const assay_tensor_t* want, assay_tensor_t** out) {
  bool known = false;
  assay_tensor_t* x = NULL;
  *out = NULL;
  if (input >= s->n_in || !is_float(s->in[input]) || want->store != ASSAY_STORE_F64 ||
      *s->node->domain || s->output != 0)
    return NULL;
  const assay_tensor_t* is = s->in[input];
  ASSAY_TRY(assay_tensor_create_zero(is->type, is->rank, is->dims, &x));
  assay_status_t st = of_product(s, input, want, x, &known);
  if (!st && !known) st = of_moves(s, input, want, x, &known);
  if (!st && !known) known = of_elements(s, input, want, x) || of_concat(s, input, want, x);
  if (!st && known) {
    const assay_difference_t d = assay_difference(is, x);
    known = d.comparable && d.rms > 1e-5 * d.ref_rms;  // this input is right as it is
  }
  if (st || !known) return assay_tensor_release(x), st;
  *out = x;
  return NULL;
}
