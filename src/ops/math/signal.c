// DFT and STFT of ONNX; Rfft, Irfft, ComplexMul, ComplexMulConj of com.microsoft.
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/functions.h"
#include "ops/bound_number.h"
#include "ops/families.h"
#include "ops/math/fft.h"

// ---- transforms of many rows ------------------------------------------------------------------

// How rows are read and written. Elements of a row are `inner` apart (in numbers of `parts` parts).
typedef struct transform {
  int64_t outer, inner;
  int64_t n;                // length of the transform
  int64_t n_in, n_out;      // elements along the axis
  int in_parts, out_parts;  // 1 real, 2 complex
  bool inverse, mirrors;    // mirrors: the input is one half of a conjugate symmetric spectrum
} transform_t;

// Row (o, i) into x[n]: cut or padded with zeros, or completed by symmetry.
static void read_row(const transform_t* t, const double* from, int64_t o, int64_t i, double* x) {
  const int64_t half = t->mirrors ? t->n / 2 + 1 : t->n;
  const int64_t given = t->n_in < half ? t->n_in : half;
  memset(x, 0, (size_t)(2 * t->n) * sizeof *x);
  for (int64_t j = 0; j < given; j++) {
    const double* v = from + ((o * t->n_in + j) * t->inner + i) * t->in_parts;
    x[2 * j] = v[0];
    if (t->in_parts == 2) x[2 * j + 1] = v[1];
  }
  if (!t->mirrors) return;
  x[1] = 0;  // the constant part and the highest frequency of a real signal are real
  if (t->n % 2 == 0) x[t->n + 1] = 0;
  for (int64_t j = 1; j < half && t->n - j >= half; j++) {
    x[2 * (t->n - j)] = x[2 * j];
    x[2 * (t->n - j) + 1] = -x[2 * j + 1];
  }
}

static void write_row(const assay_eval_t* c, const transform_t* t, const double* y, int64_t o,
                      int64_t i, double* to) {
  for (int64_t k = 0; k < t->n_out; k++) {
    double* v = to + ((o * t->n_out + k) * t->inner + i) * t->out_parts;
    for (int p = 0; p < t->out_parts; p++) {
      v[p] = t->inverse ? assay_acc(c, y[2 * k + p] / (double)t->n) : y[2 * k + p];
    }
  }
}

static assay_status_t run_rows(const assay_eval_t* c, const transform_t* t, const double* from,
                               double* to) {
  assay_fft_t* f = NULL;
  ASSAY_TRY(assay_fft_create(c, t->n, t->inverse, &f));
  const int64_t rows = t->outer * t->inner;
  const size_t scratch = (size_t)(4 * t->n + assay_fft_scratch(f));
  bool failed = false;
#pragma omp parallel if (rows > 1 && (double)rows * (double)t->n > 1e4)
  {
    double* x = assay_malloc(scratch * sizeof *x);
    if (!x) {
#pragma omp atomic write
      failed = true;
    }
#pragma omp for schedule(static)
    for (int64_t r = 0; r < rows; r++) {
      if (!x) continue;
      double *y = x + 2 * t->n, *work = y + 2 * t->n;
      read_row(t, from, r / t->inner, r % t->inner, x);
      assay_fft_run(f, x, y, work);
      write_row(c, t, y, r / t->inner, r % t->inner, to);
    }
    assay_free(x);
  }
  assay_fft_destroy(f);
  return failed ? assay_status_no_memory() : NULL;
}

// ---- DFT --------------------------------------------------------------------------------------

// A scalar input, if it is there.
static assay_status_t read_scalar(const assay_eval_t* c, const char* name, size_t input,
                                  int64_t* out) {
  if (!assay_eval_has(c, input)) return NULL;
  const assay_tensor_t* t = c->in[input];
  if (t->size != 1) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT, "%s has shape %s; expected one number",
                            name, ASSAY_DIMS_TEXT(t));
  }
  *out = assay_i64(t)[0];
  return NULL;
}

static assay_status_t bad_axis(const assay_node_t* node, int axis) {
  return ASSAY_NODE_ERROR(node, ASSAY_INVALID_ARGUMENT,
                          "axis is %d, the dimension of real and imaginary parts; expected one "
                          "before it",
                          axis);
}

// Whether a DFT's last dimension, of `parts`, fits its attributes.
static assay_status_t check_parts(const assay_node_t* node, int64_t parts, bool forward_half) {
  if ((parts == 1 || parts == 2) && !(parts == 2 && forward_half)) return NULL;
  return ASSAY_NODE_ERROR(node, ASSAY_INVALID_ARGUMENT,
                          "the last dimension is %lld; expected 1 for real numbers%s",
                          (long long)parts, forward_half ? " (onesided)" : ", 2 for complex ones");
}

static assay_status_t dft_infer_with(assay_infer_t* c, int64_t axis, bool axis_known) {
  ASSAY_TRY(assay_infer_want_rank(c, 0, 2, ASSAY_MAX_RANK));
  const bool inverse = assay_attr_i64(c->node, "inverse", 0) != 0;
  const bool half = assay_attr_i64(c->node, "onesided", 0) != 0;
  assay_shape_t y = assay_infer_shape(c, 0);
  int64_t parts = 0;
  if (!y.known) return assay_infer_set(c, 0, ASSAY_TYPE_UNDEFINED, NULL);
  if (assay_dim_value(y.dims[y.rank - 1], &parts)) {
    ASSAY_TRY(check_parts(c->node, parts, half && !inverse));
  }
  y.dims[y.rank - 1] = assay_dim_const(c->dims, half && inverse ? 1 : 2);
  if (!axis_known) {
    for (int i = 0; i + 1 < y.rank; i++) y.dims[i] = NULL;
    return assay_infer_set(c, 0, ASSAY_TYPE_UNDEFINED, &y);
  }
  int at = 0;
  ASSAY_TRY(assay_infer_axis(c, "axis", axis, y.rank, &at));
  if (at == y.rank - 1) return bad_axis(c->node, at);
  assay_content_t given;
  const assay_dim_t* n = y.dims[at];
  if (assay_infer_has(c, 1)) {
    n = assay_infer_content(c, 1, &given) && given.n == 1 ? given.elems[0] : NULL;
  } else if (half && inverse) {
    n = assay_dim_mul_i(c->dims, assay_dim_add_i(c->dims, n, -1), 2);
  }
  if (half && !inverse) {
    n = assay_dim_floordiv(c->dims, n, assay_dim_const(c->dims, 2));
    n = assay_dim_add_i(c->dims, n, 1);
  }
  y.dims[at] = n;
  return assay_infer_set(c, 0, ASSAY_TYPE_UNDEFINED, &y);
}

static assay_status_t dft_infer_17(assay_infer_t* c) {
  return dft_infer_with(c, assay_attr_i64(c->node, "axis", 1), true);
}

static assay_status_t dft_infer(assay_infer_t* c) {
  assay_content_t axis;
  int64_t value = -2;
  bool known = true;
  if (assay_infer_has(c, 2)) {
    known =
        assay_infer_content(c, 2, &axis) && axis.n == 1 && assay_dim_value(axis.elems[0], &value);
  }
  return dft_infer_with(c, value, known);
}

// Source: ONNX DFT 17 (axis is an attribute), 20 (an input).
static assay_status_t dft_read(const assay_eval_t* c, int64_t axis, transform_t* out, int* out_at) {
  const assay_tensor_t* x = c->in[0];
  const bool half = assay_attr_i64(c->node, "onesided", 0) != 0;
  transform_t t = {.inverse = assay_attr_i64(c->node, "inverse", 0) != 0};
  int at = 0;
  if (x->rank < 2) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                            "input has shape %s; expected a signal and a last dimension of 1 or 2",
                            ASSAY_DIMS_TEXT(x));
  }
  ASSAY_TRY(assay_eval_axis(c, "axis", axis, x->rank, &at));
  if (at == x->rank - 1) return bad_axis(c->node, at);
  ASSAY_TRY(check_parts(c->node, x->dims[x->rank - 1], half && !t.inverse));
  t.mirrors = half && t.inverse;
  t.in_parts = (int)x->dims[x->rank - 1];
  t.out_parts = t.mirrors ? 1 : 2;
  t.outer = assay_dims_product(x->dims, 0, at);
  t.inner = assay_dims_product(x->dims, at + 1, x->rank - 1);
  t.n_in = x->dims[at];
  t.n = t.mirrors ? 2 * (t.n_in - 1) : t.n_in;
  ASSAY_TRY(read_scalar(c, "dft_length", 1, &t.n));
  if (t.n < 1) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                            "the transform of input %s along axis %d has length %lld; expected at "
                            "least 1",
                            ASSAY_DIMS_TEXT(x), at, (long long)t.n);
  }
  t.n_out = half && !t.inverse ? t.n / 2 + 1 : t.n;
  *out = t;
  *out_at = at;
  return NULL;
}

static assay_status_t dft_eval_with(assay_eval_t* c, int64_t axis) {
  const assay_tensor_t* x = c->in[0];
  transform_t t;
  int at = 0;
  ASSAY_TRY(dft_read(c, axis, &t, &at));
  int64_t dims[ASSAY_MAX_RANK];
  memcpy(dims, x->dims, (size_t)x->rank * sizeof *dims);
  dims[at] = t.n_out;
  dims[x->rank - 1] = t.out_parts;
  assay_tensor_t* y = NULL;
  ASSAY_TRY(assay_eval_output(c, 0, assay_eval_out_type(c, 0, x->type), x->rank, dims, &y));
  return y->size > 0 ? run_rows(c, &t, assay_f64(x), assay_f64(y)) : NULL;
}

static assay_status_t dft_eval_17(assay_eval_t* c) {
  return dft_eval_with(c, assay_attr_i64(c->node, "axis", 1));
}

static assay_status_t dft_eval(assay_eval_t* c) {
  int64_t axis = -2;
  ASSAY_TRY(read_scalar(c, "axis", 2, &axis));
  return dft_eval_with(c, axis);
}

// ---- bounds of transforms ----------------------------------------------------------------------

// What one row's rounding can do to its outputs.
typedef struct row_bound {
  assay_inner_t inner;
  bool chirp;
  double guaranteed;    // times the sum of |x|
  double product;       // by independent errors: of a product, relative
  double spread;        // of all stages: times the largest |y| and the length of x
  double probable_sum;  // or times the sum of |x|; 0: not
} row_bound_t;

// A product of complex numbers in three operations a part has an error of 2 sqrt(2) u |a||b|, and
// a root of unity is rounded. Every input meets as many products and sums as the transform has
// stages (N. J. Higham, Accuracy and Stability, 2002, 24.1, element by element), and all factors
// have length 1. A convolution with a chirp passes three transforms, and what is between them is up
// to 2n - 1 times as large.
static row_bound_t row_bound_of(const assay_bound_t* c, int64_t n) {
  const assay_rounding_t* r = c->rounding;
  row_bound_t b = {.inner = assay_bound_inner(r)};
  const double u = b.inner.u, size = (double)n;
  const double root = b.inner.function + (r->documented ? 0 : 8 * u), product = 3 * u + root;
  // Engines of which nothing is known may give up factors earlier, or not have stages at all.
  const assay_fft_path_t path = assay_fft_path(n, r->documented ? ASSAY_FFT_LARGEST_FACTOR : 13);
  const double stages = path.products * product + path.sums * u;
  b.chirp = path.chirp > 0;
  b.guaranteed = b.chirp ? (2 * size - 1) * (3 * stages + 4 * product) : stages;
  b.guaranteed *= 1 + b.guaranteed;
  // Of 2 to 3 roundings a part, each of a part of the product.
  b.product = root - u;
  b.spread = sqrt(3 * (path.products + 2) * b.product * b.product + 3 * path.sums * u * u);
  if (r->documented) return b;
  b.guaranteed = fmax(b.guaranteed, (2 * size + 2) * u + root);
  b.probable_sum = fmin(b.guaranteed, 6 * sqrt(2 * size + 2) * u + root);
  return b;
}

typedef struct rows_bound {
  const transform_t* t;
  row_bound_t b;
  const double *from, *y;
  double extra;  // roundings of the input, relative
  double *g, *p;
} rows_bound_t;

// Squares of the outputs' lengths, not scaled: all n of them.
static double read_powers(const rows_bound_t* r, int64_t o, int64_t i, double* power) {
  const transform_t* t = r->t;
  const double scale = t->inverse ? (double)t->n : 1;
  double largest = 0;
  for (int64_t k = 0; k < t->n; k++) {
    // The other half of a real signal's spectrum.
    const int64_t at = k < t->n_out ? k : t->n - k;
    const double* y = r->y + ((o * t->n_out + at) * t->inner + i) * t->out_parts;
    const double length = scale * (t->out_parts == 2 ? assay_hypot(y[0], y[1]) : fabs(y[0]));
    power[k] = length * length;
    largest = fmax(largest, length);
  }
  return largest;
}

// Independent errors of a stage add up to u times the length of the numbers that an output is made
// of there: the values of n / s sub-transforms of size s, at one frequency. By Parseval's theorem
// the sum of their squares is the mean of the squares of the n / s outputs that are s apart.
static void add_stage(const double* power, int64_t n, int64_t s, double square, double* variance) {
  for (int64_t k = 0; k < s; k++) {
    double sum = 0;
    for (int64_t m = k; m < n; m += s) sum += power[m];
    sum *= square * (double)s / (double)n;
    for (int64_t m = k; m < n; m += s) variance[m] += sum;
  }
}

static void find_variances(const rows_bound_t* r, const double* power, double* variance) {
  const int64_t n = r->t->n;
  const double u = r->b.inner.u, product = r->b.product * r->b.product;
  int64_t s = n;
  memset(variance, 0, (size_t)n * sizeof *variance);
  for (int64_t p = 2; p <= ASSAY_FFT_LARGEST_FACTOR; p++) {
    for (; s % p == 0; s /= p) {
      add_stage(power, n, s, (double)(p - 1) * u * u, variance);
      add_stage(power, n, s / p, (p == 2 ? 1 : 2) * product + (double)(p - 1) * u * u, variance);
    }
  }
}

// room: 4 n.
static void bound_row(const rows_bound_t* r, int64_t o, int64_t i, double* scratch) {
  const transform_t* t = r->t;
  double sum = 0, square = 0, *x = scratch, *power = x + 2 * t->n, *variance = power + t->n;
  read_row(t, r->from, o, i, x);
  for (int64_t j = 0; j < t->n; j++) {
    sum += fabs(x[2 * j]) + fabs(x[2 * j + 1]);
    square += x[2 * j] * x[2 * j] + x[2 * j + 1] * x[2 * j + 1];
  }
  const double scale = t->inverse ? 1 / (double)t->n : 1, length = sqrt(square);
  const double tiny = r->b.inner.tiny * (double)t->n * 8;
  const double g = (r->b.guaranteed + r->extra) * sum + tiny;
  const double largest = read_powers(r, o, i, power);
  const bool past = !((1 + r->b.guaranteed) * sum * 2 <= r->b.inner.max);
  if (!r->b.chirp) find_variances(r, power, variance);
  for (int64_t k = 0; k < t->n_out; k++) {
    double p = r->b.chirp ? r->b.spread * (largest + 2 * length) : sqrt(variance[k]);
    p = 6 * (p + r->extra * length) + tiny;
    if (r->b.probable_sum > 0) p = fmax(p, (r->b.probable_sum + r->extra) * sum + tiny);
    for (int part = 0; part < t->out_parts; part++) {
      const int64_t at = ((o * t->n_out + k) * t->inner + i) * t->out_parts + part;
      const double own = (fabs(r->y[at]) + g * scale) * r->b.inner.u + r->b.inner.tiny;
      r->g[at] = past ? (double)INFINITY : g * scale + (t->inverse ? own : 0);
      r->p[at] = past ? (double)INFINITY : fmin(g, p) * scale + (t->inverse ? own : 0);
    }
  }
}

static assay_status_t bound_rows(assay_bound_t* c, const transform_t* t, const double* from,
                                 double extra) {
  rows_bound_t r = {.t = t, .b = row_bound_of(c, t->n), .from = from, .extra = extra};
  double* x = NULL;
  ASSAY_TRY(assay_bound_output(c, 0, &r.g, &r.p));
  r.y = assay_f64(c->out[0]);
  ASSAY_TRY(assay_new_array((size_t)(4 * t->n), sizeof *x, &x));
  for (int64_t k = 0; k < t->outer * t->inner; k++) bound_row(&r, k / t->inner, k % t->inner, x);
  assay_free(x);
  return NULL;
}

static assay_status_t dft_bound_with(assay_bound_t* c, int64_t axis) {
  const assay_eval_t e = assay_bound_as_eval(c);
  transform_t t;
  int at = 0;
  ASSAY_TRY(assay_bound_want_exact(c, SIZE_MAX));
  ASSAY_TRY(dft_read(&e, axis, &t, &at));
  return c->out[0]->size > 0 ? bound_rows(c, &t, assay_f64(c->in[0]), 0) : NULL;
}

static assay_status_t dft_bound_17(assay_bound_t* c) {
  return dft_bound_with(c, assay_attr_i64(c->node, "axis", 1));
}

static assay_status_t dft_bound(assay_bound_t* c) {
  const assay_eval_t e = assay_bound_as_eval(c);
  int64_t axis = -2;
  ASSAY_TRY(read_scalar(&e, "axis", 2, &axis));
  return dft_bound_with(c, axis);
}

// ---- STFT -------------------------------------------------------------------------------------

// A scalar input as an expression; NULL if it is not known.
static const assay_dim_t* infer_scalar(const assay_infer_t* c, size_t input) {
  assay_content_t x;
  return assay_infer_content(c, input, &x) && x.n == 1 ? x.elems[0] : NULL;
}

static assay_status_t stft_infer(assay_infer_t* c) {
  ASSAY_TRY(assay_infer_want_rank(c, 0, 3, 3));
  if (assay_infer_has(c, 2)) ASSAY_TRY(assay_infer_want_rank(c, 2, 1, 1));
  const assay_shape_t x = assay_infer_shape(c, 0);
  const bool half = assay_attr_i64(c->node, "onesided", 1) != 0;
  assay_shape_t y = {.known = true, .rank = 4};
  const assay_dim_t *length = x.known ? x.dims[1] : NULL, *step = infer_scalar(c, 1), *n = length;
  if (assay_infer_has(c, 2)) {
    const assay_shape_t window = assay_infer_shape(c, 2);
    n = window.known ? window.dims[0] : NULL;
  }
  if (assay_infer_has(c, 3)) n = infer_scalar(c, 3) ? infer_scalar(c, 3) : n;
  if (assay_infer_has(c, 3) && !assay_infer_has(c, 2)) n = infer_scalar(c, 3);
  y.dims[0] = x.known ? x.dims[0] : NULL;
  y.dims[1] = assay_dim_add_i(
      c->dims, assay_dim_floordiv(c->dims, assay_dim_sub(c->dims, length, n), step), 1);
  y.dims[2] = n;
  if (half) {
    y.dims[2] =
        assay_dim_add_i(c->dims, assay_dim_floordiv(c->dims, n, assay_dim_const(c->dims, 2)), 1);
  }
  y.dims[3] = assay_dim_const(c->dims, 2);
  return assay_infer_set(c, 0, ASSAY_TYPE_UNDEFINED, &y);
}

// The frames of the signal times the window, as rows [batch * frames, n, parts].
static void cut_frames(const assay_eval_t* c, const assay_tensor_t* x, int64_t frames, int64_t step,
                       int64_t n, const double* window, double* to) {
  const int64_t length = x->dims[1], parts = x->dims[2];
  for (int64_t r = 0; r < x->dims[0] * frames; r++) {
    const double* from = assay_f64(x) + (r / frames * length + r % frames * step) * parts;
    for (int64_t j = 0; j < n * parts; j++, to++) {
      *to = window ? assay_acc(c, from[j] * window[j / parts]) : from[j];
    }
  }
}

static assay_status_t stft_read(const assay_eval_t* c, transform_t* t, int64_t* out_frames,
                                int64_t* out_step) {
  const assay_tensor_t* x = c->in[0];
  const assay_tensor_t* window = assay_eval_has(c, 2) ? c->in[2] : NULL;
  const bool half = assay_attr_i64(c->node, "onesided", 1) != 0;
  if (x->rank != 3 || (window && window->rank != 1)) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                            "signal has shape %s; expected [batch, length, 1 or 2] and a window of "
                            "one dimension",
                            ASSAY_DIMS_TEXT(x));
  }
  ASSAY_TRY(check_parts(c->node, x->dims[2], half));
  int64_t step = 0, n = window ? window->dims[0] : x->dims[1];
  ASSAY_TRY(read_scalar(c, "frame_step", 1, &step));
  ASSAY_TRY(read_scalar(c, "frame_length", 3, &n));
  if (step < 1 || n < 1 || n > x->dims[1] || (window && window->dims[0] != n)) {
    return ASSAY_NODE_ERROR(
        c->node, ASSAY_INVALID_ARGUMENT,
        "frame_step is %lld, frame_length %lld, window %s for signal %s; expected "
        "a positive step and frames as long as the window that fit the signal",
        (long long)step, (long long)n, window ? ASSAY_DIMS_TEXT(window) : "not given",
        ASSAY_DIMS_TEXT(x));
  }
  const int64_t frames = (x->dims[1] - n) / step + 1, bins = half ? n / 2 + 1 : n;
  *out_frames = frames;
  *out_step = step;
  *t = (transform_t){.outer = x->dims[0] * frames,
                     .inner = 1,
                     .n = n,
                     .n_in = n,
                     .n_out = bins,
                     .in_parts = (int)x->dims[2],
                     .out_parts = 2};
  return NULL;
}

// The frames, cut out; NULL if there is nothing in them.
static assay_status_t stft_cut(const assay_eval_t* c, const transform_t* t, int64_t frames,
                               int64_t step, assay_tensor_t** out) {
  const assay_tensor_t* x = c->in[0];
  const double* window = assay_eval_has(c, 2) ? assay_f64(c->in[2]) : NULL;
  const int64_t dims[4] = {x->dims[0], frames, t->n, x->dims[2]};
  ASSAY_TRY(assay_tensor_create(ASSAY_TYPE_DOUBLE, 4, dims, out));
  cut_frames(c, x, frames, step, t->n, window, assay_f64(*out));
  return NULL;
}

// Source: ONNX STFT 17.
static assay_status_t stft_eval(assay_eval_t* c) {
  const assay_tensor_t* x = c->in[0];
  transform_t t;
  int64_t frames = 0, step = 0;
  ASSAY_TRY(stft_read(c, &t, &frames, &step));
  const int64_t dims[4] = {x->dims[0], frames, t.n_out, 2};
  assay_tensor_t *y = NULL, *cut = NULL;
  ASSAY_TRY(assay_eval_output(c, 0, assay_eval_out_type(c, 0, x->type), 4, dims, &y));
  if (y->size == 0) return NULL;
  ASSAY_TRY(stft_cut(c, &t, frames, step, &cut));
  assay_status_t st = run_rows(c, &t, assay_f64(cut), assay_f64(y));
  assay_tensor_release(cut);
  return st;
}

static assay_status_t stft_bound(assay_bound_t* c) {
  const assay_eval_t e = assay_bound_as_eval(c);
  transform_t t;
  int64_t frames = 0, step = 0;
  assay_tensor_t* cut = NULL;
  ASSAY_TRY(assay_bound_want_exact(c, SIZE_MAX));
  ASSAY_TRY(stft_read(&e, &t, &frames, &step));
  if (c->out[0]->size == 0) return NULL;
  ASSAY_TRY(stft_cut(&e, &t, frames, step, &cut));
  // A window's product is rounded once.
  const double u = assay_eval_has(&e, 2) ? assay_bound_inner(c->rounding).u : 0;
  assay_status_t st = bound_rows(c, &t, assay_f64(cut), u);
  assay_tensor_release(cut);
  return st;
}

// 5 n log2 n for each transform. Source: Van Loan, Computational Frameworks for the FFT, 1.4.
static void transform_cost(const assay_eval_t* c, assay_cost_t* out) {
  const assay_tensor_t* y = c->n_out > 0 ? c->out[0] : NULL;
  if (!y) return;
  double n = 1, log2_n = 0;
  for (int i = 0; i + 1 < y->rank; i++) {
    if ((double)y->dims[i] > n) n = (double)y->dims[i];
  }
  while (n > 1) {
    n /= 2;
    log2_n++;
  }
  out->flops = 2.5 * (double)y->size * log2_n;
}

// ---- com.microsoft ----------------------------------------------------------------------------

// Only transforms along the last signal dimension, one-sided and not normalized, are defined.
static assay_status_t check_ms(const assay_node_t* n) {
  if (assay_attr_i64(n, "signal_ndim", 1) == 1 && assay_attr_i64(n, "onesided", 1) == 1 &&
      assay_attr_i64(n, "normalized", 0) == 0) {
    return NULL;
  }
  return ASSAY_NODE_ERROR(n, ASSAY_UNSUPPORTED,
                          "signal_ndim, onesided and normalized must be 1, 1 and 0");
}

static assay_status_t rfft_infer(assay_infer_t* c) {
  ASSAY_TRY(check_ms(c->node));
  ASSAY_TRY(assay_infer_want_rank(c, 0, 1, ASSAY_MAX_RANK - 1));
  assay_shape_t y = assay_infer_shape(c, 0);
  if (y.known) {
    const assay_dim_t* n = y.dims[y.rank - 1];
    n = assay_dim_floordiv(c->dims, n, assay_dim_const(c->dims, 2));
    y.dims[y.rank - 1] = assay_dim_add_i(c->dims, n, 1);
    y.dims[y.rank++] = assay_dim_const(c->dims, 2);
  }
  return assay_infer_set(c, 0, ASSAY_TYPE_UNDEFINED, y.known ? &y : NULL);
}

static assay_status_t irfft_infer(assay_infer_t* c) {
  ASSAY_TRY(check_ms(c->node));
  ASSAY_TRY(assay_infer_want_rank(c, 0, 2, ASSAY_MAX_RANK));
  assay_shape_t y = assay_infer_shape(c, 0);
  if (y.known) {
    y.rank--;
    y.dims[y.rank - 1] =
        assay_dim_mul_i(c->dims, assay_dim_add_i(c->dims, y.dims[y.rank - 1], -1), 2);
  }
  return assay_infer_set(c, 0, ASSAY_TYPE_UNDEFINED, y.known ? &y : NULL);
}

// Source: com.microsoft Rfft 1 (not scaled) and Irfft 1 (scaled by 1/n, so that it undoes Rfft).
static assay_status_t ms_fft_read(const assay_eval_t* c, bool inverse, transform_t* out) {
  const assay_tensor_t* x = c->in[0];
  ASSAY_TRY(check_ms(c->node));
  const int signal = inverse ? x->rank - 2 : x->rank - 1;
  if (signal < 0 || (!inverse && x->rank == ASSAY_MAX_RANK) ||
      (inverse && x->dims[x->rank - 1] != 2)) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                            "input has shape %s; expected [..., n%s]", ASSAY_DIMS_TEXT(x),
                            inverse ? ", 2" : "");
  }
  transform_t t = {.inner = 1,
                   .inverse = inverse,
                   .mirrors = inverse,
                   .n_in = x->dims[signal],
                   .in_parts = inverse ? 2 : 1,
                   .out_parts = inverse ? 1 : 2};
  t.n = inverse ? 2 * (t.n_in - 1) : t.n_in;
  t.n_out = inverse ? t.n : t.n / 2 + 1;
  t.outer = assay_dims_product(x->dims, 0, signal);
  if (t.n < 1) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                            "input has shape %s; the transform would have length %lld",
                            ASSAY_DIMS_TEXT(x), (long long)t.n);
  }
  *out = t;
  return NULL;
}

static assay_status_t ms_fft_bound(assay_bound_t* c, bool inverse) {
  const assay_eval_t e = assay_bound_as_eval(c);
  transform_t t;
  ASSAY_TRY(assay_bound_want_exact(c, SIZE_MAX));
  ASSAY_TRY(ms_fft_read(&e, inverse, &t));
  return c->out[0]->size > 0 ? bound_rows(c, &t, assay_f64(c->in[0]), 0) : NULL;
}

static assay_status_t rfft_bound(assay_bound_t* c) { return ms_fft_bound(c, false); }
static assay_status_t irfft_bound(assay_bound_t* c) { return ms_fft_bound(c, true); }

static assay_status_t ms_fft_eval(assay_eval_t* c, bool inverse) {
  const assay_tensor_t* x = c->in[0];
  transform_t t;
  ASSAY_TRY(ms_fft_read(c, inverse, &t));
  const int signal = inverse ? x->rank - 2 : x->rank - 1;
  int64_t dims[ASSAY_MAX_RANK];
  memcpy(dims, x->dims, (size_t)x->rank * sizeof *dims);
  dims[signal] = t.n_out;
  if (!inverse) dims[x->rank] = 2;
  assay_tensor_t* y = NULL;
  ASSAY_TRY(assay_eval_output(c, 0, assay_eval_out_type(c, 0, x->type),
                              inverse ? x->rank - 1 : x->rank + 1, dims, &y));
  return y->size > 0 ? run_rows(c, &t, assay_f64(x), assay_f64(y)) : NULL;
}

static assay_status_t rfft_eval(assay_eval_t* c) { return ms_fft_eval(c, false); }
static assay_status_t irfft_eval(assay_eval_t* c) { return ms_fft_eval(c, true); }

// Products of pairs along the last dimension. Source: com.microsoft ComplexMul 1 and ComplexMulConj
// 1 (the second factor conjugated).
static assay_status_t complex_mul(assay_eval_t* c, double sign) {
  const assay_tensor_t *a = c->in[0], *b = c->in[1];
  int rank = 0;
  int64_t dims[ASSAY_MAX_RANK], sa[ASSAY_MAX_RANK], sb[ASSAY_MAX_RANK];
  if (a->rank < 1 || b->rank < 1 || a->dims[a->rank - 1] != 2 || b->dims[b->rank - 1] != 2) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                            "inputs have shapes %s and %s; expected a last dimension of 2",
                            ASSAY_DIMS_TEXT(a), ASSAY_DIMS_TEXT(b));
  }
  ASSAY_TRY(assay_eval_broadcast(c, 2, c->in, &rank, dims));
  assay_tensor_t* y = NULL;
  ASSAY_TRY(assay_eval_output(c, 0, assay_eval_out_type(c, 0, a->type), rank, dims, &y));
  assay_broadcast_strides(a, rank, dims, sa);
  assay_broadcast_strides(b, rank, dims, sb);
  for (int64_t i = 0; i < y->size; i += 2) {
    int64_t at_a = 0, at_b = 0, rest = i;
    for (int d = rank - 1; d >= 0; d--) {
      at_a += rest % dims[d] * sa[d];
      at_b += rest % dims[d] * sb[d];
      rest /= dims[d];
    }
    const double *u = assay_f64(a) + at_a, *v = assay_f64(b) + at_b;
    const double im = sign * v[1];
    assay_f64(y)[i] = assay_acc(c, assay_acc(c, u[0] * v[0]) - assay_acc(c, u[1] * im));
    assay_f64(y)[i + 1] = assay_acc(c, assay_acc(c, u[0] * im) + assay_acc(c, u[1] * v[0]));
  }
  return NULL;
}

static assay_status_t complex_mul_eval(assay_eval_t* c) { return complex_mul(c, 1); }
static assay_status_t complex_mul_conj_eval(assay_eval_t* c) { return complex_mul(c, -1); }

// Two products a part.
static assay_status_t complex_mul_bound(assay_bound_t* c) {
  const assay_eval_t e = assay_bound_as_eval(c);
  const assay_arithmetic_t r = assay_arithmetic_of(c);
  int rank = 0;
  int64_t dims[ASSAY_MAX_RANK], sa[ASSAY_MAX_RANK], sb[ASSAY_MAX_RANK];
  double *g, *p;
  ASSAY_TRY(assay_eval_broadcast(&e, 2, e.in, &rank, dims));
  ASSAY_TRY(assay_bound_output(c, 0, &g, &p));
  assay_broadcast_strides(c->in[0], rank, dims, sa);
  assay_broadcast_strides(c->in[1], rank, dims, sb);
  for (int64_t i = 0; i < c->out[0]->size; i += 2) {
    int64_t at_a = 0, at_b = 0, rest = i;
    for (int d = rank - 1; d >= 0; d--) {
      at_a += rest % dims[d] * sa[d];
      at_b += rest % dims[d] * sb[d];
      rest /= dims[d];
    }
    assay_number_t u[2], v[2];
    for (int k = 0; k < 2; k++) {
      u[k] = assay_number_input(c, 0, at_a + k);
      v[k] = assay_number_input(c, 1, at_b + k);
    }
    for (int part = 0; part < 2; part++) {
      // Limits do not know signs: those of both operators are the same.
      assay_number_sum_t s = {0};
      assay_number_sum_add_product(&s, u[0], v[part]);
      assay_number_sum_add_product(&s, u[1], v[1 - part]);
      assay_number_limits(&r, assay_number_sum_end(&r, &s), &g[i + part], &p[i + part]);
    }
  }
  return NULL;
}

static void complex_mul_cost(const assay_eval_t* c, assay_cost_t* out) {
  if (c->n_out > 0 && c->out[0]) out->flops = 3.0 * (double)c->out[0]->size;
}

#define MS .domain = "com.microsoft", .since = 1
#define FFT_ATTRS "normalized:i=0, onesided:i=1, signal_ndim:i"

const assay_op_t assay_ops_signal[] = {
    {.domain = "",
     .name = "DFT",
     .since = 17,
     .infer = dft_infer_17,
     .eval = dft_eval_17,
     .bound = dft_bound_17,
     .cost = transform_cost},
    {.domain = "",
     .name = "DFT",
     .since = 20,
     .infer = dft_infer,
     .eval = dft_eval,
     .bound = dft_bound,
     .cost = transform_cost},
    {.domain = "",
     .name = "STFT",
     .since = 17,
     .infer = stft_infer,
     .eval = stft_eval,
     .bound = stft_bound,
     .cost = transform_cost},
    {MS, .name = "Rfft", .infer = rfft_infer, .eval = rfft_eval, .bound = rfft_bound,
     .cost = transform_cost, .schema = "X:T -> Y:T | " FFT_ATTRS "=1 | T=float double float16"},
    {MS, .name = "Irfft", .infer = irfft_infer, .eval = irfft_eval, .bound = irfft_bound,
     .cost = transform_cost, .schema = "X:T -> Y:T | " FFT_ATTRS "! | T=float double float16"},
    {MS, .name = "ComplexMul", .infer = assay_infer_broadcasts, .eval = complex_mul_eval,
     .bound = complex_mul_bound, .cost = complex_mul_cost,
     .schema = "A:T, B:T -> C:T | | T=float double float16"},
    {MS, .name = "ComplexMulConj", .infer = assay_infer_broadcasts, .eval = complex_mul_conj_eval,
     .bound = complex_mul_bound, .cost = complex_mul_cost,
     .schema = "A:T, B:T -> C:T | | T=float double float16"},
    {0}};
