// EyeLike, windows and mel weights: tensors made from a few numbers.
#include <math.h>

#include "base/functions.h"
#include "ops/bound_number.h"
#include "ops/content.h"
#include "ops/families.h"

static const double pi = 3.14159265358979323846;

// The attribute output_datatype as a type that numbers can be stored in.
static assay_status_t output_type(const assay_node_t* node, assay_type_t* out) {
  int64_t type = assay_attr_i64(node, "output_datatype", ASSAY_TYPE_FLOAT);
  bool number =
      type > 0 && type < ASSAY_TYPE_COUNT &&
      (assay_type_is_float((assay_type_t)type) || assay_type_is_integer((assay_type_t)type));
  if (!number) {
    return ASSAY_NODE_ERROR(node, ASSAY_INVALID_ARGUMENT,
                            "attribute output_datatype is %lld, expected a type of numbers",
                            (long long)type);
  }
  *out = (assay_type_t)type;
  return NULL;
}

// Element i, cast to the tensor's type; x is within the range of every type.
static void set_number(assay_tensor_t* t, int64_t i, double x) {
  if (t->store == ASSAY_STORE_F64) {
    assay_f64(t)[i] = x;
  } else {
    assay_i64(t)[i] = assay_type_wrap(t->type, (int64_t)x);
  }
}

static assay_status_t scalar_input(const assay_eval_t* c, size_t i, const char* name) {
  if (c->in[i]->size == 1) return NULL;
  return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                          "input '%s' has shape %s, expected a scalar", name,
                          ASSAY_DIMS_TEXT(c->in[i]));
}

// ---- EyeLike ---------------------------------------------------------------------------------

// The attribute dtype, else the input's type; only types of numbers and bool can hold a 1.
static assay_status_t eye_type(const assay_node_t* node, assay_type_t input, assay_type_t* out) {
  int64_t type = assay_attr_i64(node, "dtype", input);
  *out = (assay_type_t)(type >= 0 && type < ASSAY_TYPE_COUNT ? type : ASSAY_TYPE_STRING);
  if (*out != ASSAY_TYPE_STRING && !assay_type_is_complex(*out)) return NULL;
  return ASSAY_NODE_ERROR(node, ASSAY_INVALID_ARGUMENT,
                          "attribute dtype is %lld, expected a type of numbers or bool",
                          (long long)type);
}

static assay_status_t eye_infer(assay_infer_t* c) {
  assay_type_t type;
  ASSAY_TRY(assay_infer_want_rank(c, 0, 2, 2));
  ASSAY_TRY(eye_type(c->node, assay_infer_elem(c, 0), &type));
  assay_shape_t out = assay_infer_shape(c, 0);
  if (!out.known) out = (assay_shape_t){.known = true, .rank = 2};
  return assay_infer_set(c, 0, type, &out);
}

// Source: ONNX EyeLike-9: ones at (i, i + k).
static assay_status_t eye_eval(assay_eval_t* c) {
  const assay_tensor_t* in = c->in[0];
  assay_type_t type;
  ASSAY_TRY(eye_type(c->node, in->type, &type));
  if (in->rank != 2) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT, "input has shape %s, expected rank 2",
                            ASSAY_DIMS_TEXT(in));
  }
  assay_tensor_t* out;
  ASSAY_TRY(assay_eval_output(c, 0, type, 2, in->dims, &out));
  for (int64_t i = 0; i < out->size; i++) set_number(out, i, 0);
  int64_t rows = in->dims[0], cols = in->dims[1], k = assay_attr_i64(c->node, "k", 0);
  if (k <= -rows || k >= cols) return NULL;
  for (int64_t i = k < 0 ? -k : 0; i < rows && i + k < cols; i++)
    set_number(out, i * cols + i + k, 1);
  return NULL;
}

// ---- windows ---------------------------------------------------------------------------------

static assay_status_t window_infer(assay_infer_t* c) {
  assay_type_t type;
  ASSAY_TRY(output_type(c->node, &type));
  assay_shape_t out = {.known = true, .rank = 1};
  assay_content_list_t size;
  if (assay_content_read(c, 0, &size) && size.n == 1) out.dims[0] = size.elems[0];
  if (assay_dim_negative(out.dims[0])) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                            "input 'size' is negative, expected 0 or more");
  }
  return assay_infer_set(c, 0, type, &out);
}

// a0 - a1 cos(2 pi n / m) + a2 cos(4 pi n / m), m the size, or one less for a symmetric window.
// Source: ONNX HannWindow-17, HammingWindow-17, BlackmanWindow-17. A symmetric window of one point
// is 1 (scipy.signal; the formula divides by 0).
static assay_status_t window(assay_eval_t* c, double a0, double a1, double a2) {
  assay_type_t type;
  ASSAY_TRY(output_type(c->node, &type));
  ASSAY_TRY(scalar_input(c, 0, "size"));
  int64_t n = assay_i64(c->in[0])[0];
  if (n < 0) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                            "input 'size' is %lld, expected 0 or more", (long long)n);
  }
  bool periodic = assay_attr_i64(c->node, "periodic", 1) != 0;
  double m = (double)(periodic ? n : n - 1);
  assay_tensor_t* out;
  ASSAY_TRY(assay_eval_output(c, 0, type, 1, &n, &out));
  for (int64_t i = 0; i < n; i++) {
    double t = m > 0 ? 2 * pi * (double)i / m : pi;
    set_number(out, i, a2 * assay_cos(2 * t) - a1 * assay_cos(t) + a0);
  }
  return NULL;
}

static assay_status_t hann_eval(assay_eval_t* c) { return window(c, 0.5, 0.5, 0); }
static assay_status_t hamming_eval(assay_eval_t* c) {
  return window(c, 25.0 / 46, 1 - 25.0 / 46, 0);
}
static assay_status_t blackman_eval(assay_eval_t* c) { return window(c, 0.42, 0.5, 0.08); }

// The angle 2 pi i / m is made by three operations and half as many constants, the cosine by a
// library; the terms are of the order of 1 and cancel at the ends, so the limits are absolute.
// hann: also sin^2(pi i / m). The documented order has it all in float64.
static assay_status_t window_bound(assay_bound_t* c, double a0, double a1, double a2) {
  if (!assay_bound_is_float(c, 0)) return NULL;
  const assay_inner_t inner = assay_bound_inner(c->rounding);
  double *g, *p;
  ASSAY_TRY(assay_bound_output(c, 0, &g, &p));
  const int64_t n = c->out[0]->size;
  const bool periodic = assay_attr_i64(c->node, "periodic", 1) != 0;
  const double m = (double)(periodic ? n : n - 1);
  for (int64_t i = 0; i < n; i++) {
    if (c->rounding->documented) {
      g[i] = p[i] = inner.u * fabs(assay_f64(c->out[0])[i]) + inner.tiny;
      continue;
    }
    const double t = m > 0 ? 2 * pi * (double)i / m : pi;
    // What the angle's error of 4 u does to the terms, then their own roundings.
    const double slope = fabs(a1 * assay_sin(t)) + fabs(4 * a2 * assay_sin(2 * t));
    const double turn = 4 * inner.u * t;
    const double own = a1 * (inner.function + inner.u) + a2 * (inner.function + 2 * inner.u);
    const double e = slope * turn + 2 * turn * turn + own + 3 * inner.u * (a0 + a1 + a2);
    g[i] = e + 4 * inner.tiny;
    p[i] = fmin(g[i], 6 * (0.3 * slope * turn + inner.u * sqrt(a0 * a0 + 2 * a1 * a1)) +
                          turn * turn + (inner.function - inner.u) * (a1 + a2) + 4 * inner.tiny);
  }
  return NULL;
}

static assay_status_t hann_bound(assay_bound_t* c) { return window_bound(c, 0.5, 0.5, 0); }
static assay_status_t hamming_bound(assay_bound_t* c) {
  return window_bound(c, 25.0 / 46, 1 - 25.0 / 46, 0);
}
static assay_status_t blackman_bound(assay_bound_t* c) { return window_bound(c, 0.42, 0.5, 0.08); }

// ---- MelWeightMatrix -------------------------------------------------------------------------

enum { MEL_BINS, MEL_DFT, MEL_RATE, MEL_LOWER, MEL_UPPER, MEL_INPUTS };

static assay_status_t mel_infer(assay_infer_t* c) {
  assay_type_t type;
  ASSAY_TRY(output_type(c->node, &type));
  assay_shape_t out = {.known = true, .rank = 2};
  assay_content_list_t bins, dft;
  if (assay_content_read(c, MEL_DFT, &dft) && dft.n == 1) {
    const assay_dim_t* half =
        assay_dim_floordiv(c->dims, dft.elems[0], assay_dim_const(c->dims, 2));
    out.dims[0] = assay_dim_add_i(c->dims, half, 1);
  }
  if (assay_content_read(c, MEL_BINS, &bins) && bins.n == 1) out.dims[1] = bins.elems[0];
  if (assay_dim_negative(out.dims[0]) || assay_dim_negative(out.dims[1])) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                            "inputs 'num_mel_bins' and 'dft_length' must not be negative");
  }
  return assay_infer_set(c, 0, type, &out);
}

static double mel_of(double hertz) { return 2595 * assay_log1p(hertz / 700) / assay_log(10); }

// The spectrogram bin at edge i of the triangles. Source: onnx.reference MelWeightMatrix-17, which
// the operator's cases follow: the range is divided into bins + 2 steps.
static double mel_bin(int64_t i, int64_t bins, int64_t dft, int64_t rate, double low, double high) {
  double step = (high - low) / (double)(bins + 2);
  double mel = (double)i * step + low;
  double hertz = 700 * assay_expm1(mel / 2595 * assay_log(10));
  return ((double)dft + 1) * hertz / (double)rate;
}

static double mel_edge(int64_t i, int64_t bins, int64_t dft, int64_t rate, double low,
                       double high) {
  return floor(mel_bin(i, bins, dft, rate, low, high));
}

// One triangle: up from `lower` to `center`, down to `higher`, in bins of the spectrogram. Bins
// past the last one are above the Nyquist frequency and do not exist.
static void mel_triangle(assay_tensor_t* out, int64_t column, int64_t lower, int64_t center,
                         int64_t higher) {
  int64_t rows = out->dims[0], columns = out->dims[1];
  for (int64_t j = lower < 0 ? 0 : lower; j <= center && j < rows; j++) {
    double rise = center == lower ? 1 : (double)(j - lower) / (double)(center - lower);
    set_number(out, j * columns + column, rise);
  }
  for (int64_t j = center < 0 ? 0 : center; j < higher && j < rows; j++) {
    double fall = (double)(higher - j) / (double)(higher - center);
    set_number(out, j * columns + column, fall);
  }
}

// The weights are quotients of small integers, rounded once; the integers come from rounding down
// edges, which an engine may make a little larger or smaller: near a whole number there is no limit
// on the columns whose triangle hangs on it.
static assay_status_t mel_bound(assay_bound_t* c) {
  if (!assay_bound_is_float(c, 0)) return NULL;
  ASSAY_TRY(assay_bound_want_exact(c, SIZE_MAX));
  const assay_inner_t inner = assay_bound_inner(c->rounding);
  const assay_tensor_t* y = c->out[0];
  double* limits[2];
  ASSAY_TRY(assay_bound_output(c, 0, &limits[0], &limits[1]));
  if (y->size == 0) return NULL;
  const int64_t bins = y->dims[1], dft = assay_i64(c->in[MEL_DFT])[0];
  const int64_t rate = assay_i64(c->in[MEL_RATE])[0];
  const double low = mel_of(assay_f64(c->in[MEL_LOWER])[0]);
  const double high = mel_of(assay_f64(c->in[MEL_UPPER])[0]);
  for (int64_t i = 0; i < bins; i++) {
    bool certain = true;
    for (int k = 0; k < 3; k++) {
      // The mel scale's exponent multiplies a relative error by at most itself, here below 16.
      const double edge = mel_bin(i + k, bins, dft, rate, low, high);
      const double e = 32 * (inner.u + inner.function) * (fabs(edge) + (double)dft);
      const bool exact = c->rounding->documented;  // in float64, whatever the format
      certain = certain && (exact || floor(edge - e) == floor(edge + e));
    }
    for (int64_t j = 0; j < y->dims[0]; j++) {
      const int64_t at = j * bins + i;
      const double e = 2 * inner.u * fabs(assay_f64(y)[at]) + inner.tiny;
      limits[0][at] = limits[1][at] = certain ? e : (double)INFINITY;
    }
  }
  return NULL;
}

static assay_status_t mel_eval(assay_eval_t* c) {
  static const char* const names[MEL_INPUTS] = {"num_mel_bins", "dft_length", "sample_rate",
                                                "lower_edge_hertz", "upper_edge_hertz"};
  assay_type_t type;
  ASSAY_TRY(output_type(c->node, &type));
  for (size_t i = 0; i < MEL_INPUTS; i++) ASSAY_TRY(scalar_input(c, i, names[i]));
  int64_t bins = assay_i64(c->in[MEL_BINS])[0], dft = assay_i64(c->in[MEL_DFT])[0];
  int64_t rate = assay_i64(c->in[MEL_RATE])[0];
  double low = assay_f64(c->in[MEL_LOWER])[0], high = assay_f64(c->in[MEL_UPPER])[0];
  if (bins < 0 || dft < 0 || rate <= 0 || !(low >= 0 && low <= high && high < 1e9)) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                            "num_mel_bins %lld, dft_length %lld, sample_rate %lld, edges %g to %g "
                            "Hz; expected 0 or more, 0 or more, 1 or more, and 0 <= lower <= upper",
                            (long long)bins, (long long)dft, (long long)rate, low, high);
  }
  int64_t dims[2] = {dft / 2 + 1, bins};
  assay_tensor_t* out;
  ASSAY_TRY(assay_eval_output(c, 0, type, 2, dims, &out));
  for (int64_t i = 0; i < out->size; i++) set_number(out, i, 0);
  if (out->size == 0) return NULL;
  for (int64_t i = 0; i < bins; i++) {
    int64_t edge[3];
    for (int k = 0; k < 3; k++) {
      double e = mel_edge(i + k, bins, dft, rate, mel_of(low), mel_of(high));
      edge[k] = e < 1e15 ? (int64_t)e : (int64_t)1000000000000000;
    }
    mel_triangle(out, i, edge[0], edge[1], edge[2]);
  }
  return NULL;
}

const assay_op_t assay_ops_generate[] = {{.domain = "",
                                          .name = "EyeLike",
                                          .since = 9,
                                          .infer = eye_infer,
                                          .eval = eye_eval,
                                          .bound = assay_bound_exact},
                                         {.domain = "",
                                          .name = "HannWindow",
                                          .since = 17,
                                          .infer = window_infer,
                                          .eval = hann_eval,
                                          .bound = hann_bound},
                                         {.domain = "",
                                          .name = "HammingWindow",
                                          .since = 17,
                                          .infer = window_infer,
                                          .eval = hamming_eval,
                                          .bound = hamming_bound},
                                         {.domain = "",
                                          .name = "BlackmanWindow",
                                          .since = 17,
                                          .infer = window_infer,
                                          .eval = blackman_eval,
                                          .bound = blackman_bound},
                                         {.domain = "",
                                          .name = "MelWeightMatrix",
                                          .since = 17,
                                          .infer = mel_infer,
                                          .eval = mel_eval,
                                          .bound = mel_bound},
                                         {0}};
