// ai.onnx.ml operators on features: scaling, selecting, imputing, and the maps that its models give
// out. Categories are in ml_category.c, linear and support vector models in ml_linear.c.
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "ops/bound_number.h"
#include "ops/data/control.h"
#include "ops/families.h"
#include "ops/ml/ml_common.h"

enum { PARALLEL_ELEMS = 100000 };

// ---- ArrayFeatureExtractor ---------------------------------------------------------------------

// A vector counts as one row, and so becomes a matrix, as in every runtime.
static assay_status_t extract_infer(assay_infer_t* c) {
  assay_shape_t x = assay_infer_shape(c, 0), y = assay_infer_shape(c, 1), z = x;
  const assay_dim_t* n = y.known ? assay_shape_size(c->dims, &y, 0, y.rank) : NULL;
  ASSAY_TRY(assay_infer_want_rank(c, 0, 1, ASSAY_MAX_RANK));
  if (z.known && z.rank == 1) {
    z.rank = 2;
    z.dims[0] = assay_dim_const(c->dims, 1);
  }
  if (z.known) z.dims[z.rank - 1] = n;
  return assay_infer_set(c, 0, ASSAY_TYPE_UNDEFINED, &z);
}

// ai.onnx.ml ArrayFeatureExtractor-1.
static assay_status_t extract_eval(assay_eval_t* c) {
  const assay_tensor_t *x = c->in[0], *at = c->in[1];
  int64_t dims[ASSAY_MAX_RANK] = {1};
  assay_tensor_t* y = NULL;
  if (!x->rank) return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT, "input X is a scalar");
  int64_t n = x->dims[x->rank - 1], rows = assay_dims_product(x->dims, 0, x->rank - 1);
  for (int64_t k = 0; k < at->size; k++)
    if (assay_i64(at)[k] < 0 || assay_i64(at)[k] >= n)
      return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                              "index %lld is outside the last axis of X %s",
                              (long long)assay_i64(at)[k], ASSAY_DIMS_TEXT(x));
  int rank = x->rank == 1 ? 2 : x->rank;
  if (x->rank > 1) memcpy(dims, x->dims, (size_t)x->rank * sizeof *dims);
  dims[rank - 1] = at->size;
  ASSAY_TRY(assay_eval_output(c, 0, x->type, rank, dims, &y));
  for (int64_t r = 0; y->size > 0 && r < rows; r++)
    for (int64_t k = 0; k < at->size; k++)
      ASSAY_TRY(assay_copy_elems(x, r * n + assay_i64(at)[k], y, r * at->size + k, 1));
  return NULL;
}

// ---- Binarizer, Scaler, Imputer, Normalizer ----------------------------------------------------

// ai.onnx.ml Binarizer-1: NaN is not greater than anything.
static assay_status_t binarizer_eval(assay_eval_t* c) {
  const assay_tensor_t* x = c->in[0];
  double threshold = assay_attr_f64(c->node, "threshold", 0);
  assay_tensor_t* y = NULL;
  ASSAY_TRY(assay_eval_output(c, 0, x->type, x->rank, x->dims, &y));
#pragma omp parallel for schedule(static) if (x->size > PARALLEL_ELEMS)
  for (int64_t i = 0; i < x->size; i++) {
    if (x->store == ASSAY_STORE_F64)
      assay_f64(y)[i] = assay_f64(x)[i] > threshold;
    else
      assay_i64(y)[i] = (double)assay_i64(x)[i] > threshold;
  }
  return NULL;
}

static assay_status_t float_infer(assay_infer_t* c) {
  assay_shape_t s = assay_infer_shape(c, 0);
  return assay_infer_set(c, 0, ASSAY_TYPE_FLOAT, &s);
}

// Fails unless a list has one entry, or one for each of the F features of the last axis.
static assay_status_t per_feature(const assay_node_t* n, const char* name, size_t len,
                                  const assay_tensor_t* x) {
  int64_t features = x->rank ? x->dims[x->rank - 1] : 1;
  if (len == 1 || (int64_t)len == features) return NULL;
  return ASSAY_NODE_ERROR(
      n, ASSAY_INVALID_ARGUMENT,
      "attribute '%s' has %zu entries; 1, or the %lld of the input's last axis, "
      "are expected",
      name, len, (long long)features);
}

// ai.onnx.ml Scaler-1: (x - offset) * scale.
static assay_status_t scaler_eval(assay_eval_t* c) {
  const assay_tensor_t* x = c->in[0];
  size_t n_offset = 0, n_scale = 0;
  const float* offset = assay_attr_floats(c->node, "offset", &n_offset);
  const float* scale = assay_attr_floats(c->node, "scale", &n_scale);
  assay_tensor_t* y = NULL;
  ASSAY_TRY(per_feature(c->node, "offset", n_offset, x));
  ASSAY_TRY(per_feature(c->node, "scale", n_scale, x));
  ASSAY_TRY(assay_eval_output(c, 0, ASSAY_TYPE_FLOAT, x->rank, x->dims, &y));
  int64_t features = x->rank ? x->dims[x->rank - 1] : 1;
#pragma omp parallel for schedule(static) if (x->size > PARALLEL_ELEMS)
  for (int64_t i = 0; i < x->size; i++) {
    int64_t f = i % features;
    double o = (double)offset[n_offset == 1 ? 0 : f], s = (double)scale[n_scale == 1 ? 0 : f];
    assay_f64(y)[i] = assay_acc(c, assay_ml_number(x, i) - o) * s;
  }
  return NULL;
}

static void scaler_cost(const assay_eval_t* c, assay_cost_t* out) {
  out->flops = 2.0 * (double)c->in[0]->size;
}

static assay_status_t impute_floats(assay_eval_t* c, const assay_tensor_t* x, assay_tensor_t* y) {
  size_t n = 0;
  const float* values = assay_attr_floats(c->node, "imputed_value_floats", &n);
  double old = assay_attr_f64(c->node, "replaced_value_float", 0);
  ASSAY_TRY(per_feature(c->node, "imputed_value_floats", n, x));
  int64_t features = x->rank ? x->dims[x->rank - 1] : 1;
  // Which values are missing is a matter of the declared type, whatever truth carries.
  assay_format_t format = assay_type_format(x->type);
  for (int64_t i = 0; i < x->size; i++) {
    double v = assay_f64(x)[i];
    bool missing =
        isnan(old) ? isnan(v) : assay_format_round(format, v, ASSAY_OVERFLOW_IEEE) == old;
    assay_f64(y)[i] = missing ? (double)values[n == 1 ? 0 : i % features] : v;
  }
  return NULL;
}

static assay_status_t impute_ints(assay_eval_t* c, const assay_tensor_t* x, assay_tensor_t* y) {
  size_t n = 0;
  const int64_t* values = assay_attr_ints(c->node, "imputed_value_int64s", &n);
  int64_t old = assay_attr_i64(c->node, "replaced_value_int64", 0);
  ASSAY_TRY(per_feature(c->node, "imputed_value_int64s", n, x));
  int64_t features = x->rank ? x->dims[x->rank - 1] : 1;
  for (int64_t i = 0; i < x->size; i++) {
    int64_t v = assay_i64(x)[i];
    assay_i64(y)[i] = v == old ? assay_type_wrap(x->type, values[n == 1 ? 0 : i % features]) : v;
  }
  return NULL;
}

// ai.onnx.ml Imputer-1.
static assay_status_t imputer_eval(assay_eval_t* c) {
  const assay_tensor_t* x = c->in[0];
  assay_tensor_t* y = NULL;
  ASSAY_TRY(assay_eval_output(c, 0, x->type, x->rank, x->dims, &y));
  return x->store == ASSAY_STORE_F64 ? impute_floats(c, x, y) : impute_ints(c, x, y);
}

static assay_status_t read_norm(const assay_node_t* n, int* out) {
  const char* names[] = {"MAX", "L1", "L2"};
  for (*out = 0; *out < 3; ++*out)
    if (assay_attr_is(n, "norm", names[*out])) return NULL;
  return ASSAY_NODE_ERROR(n, ASSAY_CORRUPT, "norm is '%s'; MAX, L1 or L2 is expected",
                          assay_attr_str(n, "norm", ""));
}

static assay_status_t normalizer_infer(assay_infer_t* c) {
  int norm = 0;
  ASSAY_TRY(read_norm(c->node, &norm));
  ASSAY_TRY(assay_infer_want_rank(c, 0, 1, 2));
  return float_infer(c);
}

// ai.onnx.ml Normalizer-1: MAX divides by the largest value, L1 by the sum of magnitudes, L2 by the
// root of the sum of squares (the text's formula without the sign it loses); rows of divisor 0
// stay.
static assay_status_t normalizer_eval(assay_eval_t* c) {
  const assay_tensor_t* x = c->in[0];
  assay_tensor_t* y = NULL;
  int64_t rows = 0, n = 0;
  int norm = 0;
  ASSAY_TRY(read_norm(c->node, &norm));
  ASSAY_TRY(assay_ml_rows(c, x, &rows, &n));
  ASSAY_TRY(assay_eval_output(c, 0, ASSAY_TYPE_FLOAT, x->rank, x->dims, &y));
  if (!y->size) return NULL;
#pragma omp parallel for schedule(static) if (x->size > PARALLEL_ELEMS)
  for (int64_t r = 0; r < rows; r++) {
    double d = norm ? 0 : -INFINITY;
    for (int64_t i = 0; i < n; i++) {
      double v = assay_ml_number(x, r * n + i);
      if (norm == 0)
        d = v > d || isnan(v) ? v : d;
      else
        d = assay_acc(c, d + (norm == 1 ? fabs(v) : assay_acc(c, v * v)));
    }
    if (norm == 2) d = sqrt(d);
    for (int64_t i = 0; i < n; i++) {
      double v = assay_ml_number(x, r * n + i);
      assay_f64(y)[r * n + i] = d == 0 ? v : v / d;
    }
  }
  return NULL;
}

static void normalizer_cost(const assay_eval_t* c, assay_cost_t* out) {
  out->flops = 3.0 * (double)c->in[0]->size;
}

typedef assay_number_t num_t;

static num_t divisor_of(const assay_bound_t* c, const assay_arithmetic_t* a, int norm, int64_t at,
                        int64_t n) {
  assay_number_sum_t sum = {0};
  num_t max = {.v = -(double)INFINITY};
  for (int64_t i = 0; i < n; i++) {
    const num_t x = assay_number_input(c, 0, at + i);
    if (norm == 2) assay_number_sum_add_product(&sum, x, x);
    if (norm == 1) assay_number_sum_add(&sum, assay_number_abs(x));
    max.v = fmax(max.v, x.v);
    max.g = fmax(max.g, x.g);
    max.s2 = fmax(max.s2, x.s2);
  }
  if (norm == 0) return max;
  const num_t s = assay_number_sum_end(a, &sum);
  return norm == 2 ? assay_number_sqrt(a, s) : s;
}

static assay_status_t normalizer_bound(assay_bound_t* c) {
  const assay_eval_t e = assay_bound_as_eval(c);
  const assay_arithmetic_t a = assay_arithmetic_of(c);
  int64_t rows = 0, n = 0;
  int norm = 0;
  double *g, *p;
  ASSAY_TRY(read_norm(c->node, &norm));
  ASSAY_TRY(assay_ml_rows(&e, c->in[0], &rows, &n));
  ASSAY_TRY(assay_bound_output(c, 0, &g, &p));
  for (int64_t r = 0; r < rows; r++) {
    const num_t d = divisor_of(c, &a, norm, r * n, n);
    for (int64_t i = r * n; i < (r + 1) * n; i++) {
      const num_t x = assay_number_input(c, 0, i);
      // By a reciprocal: another rounding. A divisor that may be 0 has no limit.
      num_t y = d.v == 0 && d.g == 0 ? x : assay_number_div(&a, x, d);
      if (!c->rounding->documented) y = assay_number_round(&a, a.inner.u, y);
      assay_number_limits(&a, y, &g[i], &p[i]);
    }
  }
  return NULL;
}

static assay_status_t scaler_bound(assay_bound_t* c) {
  size_t n_offset = 0, n_scale = 0;
  const float* offset = assay_attr_floats(c->node, "offset", &n_offset);
  const float* scale = assay_attr_floats(c->node, "scale", &n_scale);
  const assay_arithmetic_t a = assay_arithmetic_of(c);
  const assay_tensor_t* x = c->in[0];
  const int64_t features = x->rank ? x->dims[x->rank - 1] : 1;
  double *g, *p;
  ASSAY_TRY(assay_bound_output(c, 0, &g, &p));
  for (int64_t i = 0; i < x->size; i++) {
    const num_t o = assay_number_exact((double)offset[n_offset == 1 ? 0 : i % features]);
    const num_t s = assay_number_exact((double)scale[n_scale == 1 ? 0 : i % features]);
    num_t v = assay_number_input(c, 0, i);
    // Integers become floats, and doubles too, in between or at the end.
    if (x->type != ASSAY_TYPE_FLOAT) v = assay_number_round(&a, a.inner.u, v);
    assay_number_limits(&a, assay_number_mul(&a, assay_number_sub(&a, v, o), s), &g[i], &p[i]);
  }
  return NULL;
}

// Numbers of other types become float32: one rounding.
static assay_status_t vectorizer_bound(assay_bound_t* c) {
  bool same = true;
  for (size_t i = 0; i < c->n_in; i++)
    same = same && c->in[i] && c->in[i]->type == ASSAY_TYPE_FLOAT;
  return assay_bound_roundings(c, same ? 0 : 1);
}

// ---- FeatureVectorizer --------------------------------------------------------------------------

// Width of input i in the output: inputdimensions cuts or pads with zeros.
static assay_status_t vector_lists(const assay_node_t* n, const int64_t** out) {
  size_t len = 0;
  const int64_t* widths = assay_attr_ints(n, "inputdimensions", &len);
  if (len && len != n->n_inputs)
    return ASSAY_NODE_ERROR(n, ASSAY_CORRUPT, "inputdimensions has %zu entries for %zu inputs", len,
                            n->n_inputs);
  for (size_t i = 0; i < len; i++)
    if (widths[i] < 0)
      return ASSAY_NODE_ERROR(n, ASSAY_CORRUPT, "inputdimensions[%zu] is %lld", i,
                              (long long)widths[i]);
  *out = len ? widths : NULL;
  return NULL;
}

static assay_status_t vectorizer_infer(assay_infer_t* c) {
  const int64_t* widths = NULL;
  assay_shape_t y = {.known = true, .rank = 2};
  ASSAY_TRY(vector_lists(c->node, &widths));
  y.dims[1] = assay_dim_const(c->dims, 0);
  for (size_t i = 0; i < c->node->n_inputs; i++) {
    assay_shape_t s = assay_infer_shape(c, i);
    ASSAY_TRY(assay_infer_want_rank(c, i, 1, 2));
    const assay_dim_t* width = s.known ? s.dims[s.rank - 1] : NULL;
    if (widths) width = assay_dim_const(c->dims, widths[i]);
    y.dims[1] = assay_dim_add(c->dims, y.dims[1], width);
    if (!y.dims[0] && s.known) y.dims[0] = s.rank == 2 ? s.dims[0] : assay_dim_const(c->dims, 1);
  }
  return assay_infer_set(c, 0, ASSAY_TYPE_FLOAT, &y);
}

// ai.onnx.ml FeatureVectorizer-1.
static assay_status_t vectorizer_eval(assay_eval_t* c) {
  const int64_t* widths = NULL;
  int64_t rows = -1, total = 0, at = 0;
  assay_tensor_t* y = NULL;
  ASSAY_TRY(vector_lists(c->node, &widths));
  for (size_t i = 0; i < c->n_in; i++) {
    int64_t r = 0, n = 0;
    if (!c->in[i])
      return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT, "input %zu is left out", i);
    ASSAY_TRY(assay_ml_rows(c, c->in[i], &r, &n));
    if (rows >= 0 && r != rows)
      return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                              "input %zu has %lld rows, those before it %lld", i, (long long)r,
                              (long long)rows);
    rows = r;
    if (!assay_add_i64(total, widths ? widths[i] : n, &total)) total = INT64_MAX;
  }
  ASSAY_TRY(
      assay_eval_output(c, 0, ASSAY_TYPE_FLOAT, 2, (int64_t[]){rows < 0 ? 0 : rows, total}, &y));
  for (size_t i = 0; i < c->n_in; i++) {
    int64_t n = c->in[i]->dims[c->in[i]->rank - 1], width = widths ? widths[i] : n;
    for (int64_t r = 0; r < rows; r++)
      for (int64_t k = 0; k < width; k++)
        assay_f64(y)[r * total + at + k] = k < n ? assay_ml_number(c->in[i], r * n + k) : 0;
    at += width;
  }
  return NULL;
}

// ---- maps: ZipMap, CastMap, DictVectorizer -----------------------------------------------------

static assay_status_t zip_infer(assay_infer_t* c) {
  assay_ml_labels_t keys;
  const assay_valtype_t *value = NULL, *map = NULL, *seq = NULL;
  ASSAY_TRY(assay_ml_labels(c->node, "classlabels_int64s", "classlabels_strings", &keys));
  ASSAY_TRY(assay_infer_want_rank(c, 0, 1, 2));
  ASSAY_TRY(assay_valtype_tensor(c->model, ASSAY_TYPE_FLOAT, 0, NULL, &value));
  ASSAY_TRY(assay_valtype_of(c->model, ASSAY_KIND_MAP, assay_ml_labels_type(&keys), value, &map));
  ASSAY_TRY(assay_valtype_of(c->model, ASSAY_KIND_SEQUENCE, ASSAY_TYPE_UNDEFINED, map, &seq));
  return assay_infer_set_type(c, 0, seq);
}

// ai.onnx.ml ZipMap-1: one map a row.
static assay_status_t zip_eval(assay_eval_t* c) {
  const assay_tensor_t* x = c->in[0];
  assay_ml_labels_t labels;
  assay_tensor_t *keys = NULL, **maps = NULL, *seq = NULL;
  int64_t rows = 0, n = 0;
  ASSAY_TRY(assay_ml_labels(c->node, "classlabels_int64s", "classlabels_strings", &labels));
  ASSAY_TRY(assay_ml_rows(c, x, &rows, &n));
  if (n != labels.n)
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                            "input has shape %s, but there are %lld keys", ASSAY_DIMS_TEXT(x),
                            (long long)labels.n);
  ASSAY_TRY(assay_tensor_create(assay_ml_labels_type(&labels), 1, &n, &keys));
  assay_status_t st = assay_new_array((size_t)rows, sizeof *maps, &maps);
  for (int64_t k = 0; !st && k < n; k++) st = assay_ml_set_label(keys, k, &labels, k);
  for (int64_t r = 0; !st && r < rows; r++) {
    assay_tensor_t* values = NULL;
    st = assay_tensor_create(ASSAY_TYPE_FLOAT, 1, &n, &values);
    if (!st) st = assay_copy_elems(x, r * n, values, 0, n);
    if (!st) st = assay_map_create(keys, values, &maps[r]);
    assay_tensor_release(values);
  }
  if (!st) st = assay_sequence_create(ASSAY_TYPE_FLOAT, rows, maps, &seq);
  if (!st) assay_eval_set(c, 0, seq);
  assay_tensor_release(seq);
  for (int64_t r = 0; maps && r < rows; r++) assay_tensor_release(maps[r]);
  assay_free(maps);
  assay_tensor_release(keys);
  return st;
}

// A map's keys and values, canonical; one reference to each goes to the caller.
static assay_status_t take_map(const assay_eval_t* c, assay_tensor_t** keys,
                               assay_tensor_t** values) {
  const assay_tensor_t* m = c->in[0];
  if (m->kind != ASSAY_KIND_MAP || m->n_items != 2 || m->items[0]->size != m->items[1]->size ||
      m->items[0]->kind != ASSAY_KIND_TENSOR || m->items[1]->kind != ASSAY_KIND_TENSOR)
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                            "input 0 is not a map of keys to scalars");
  *keys = assay_tensor_retain(m->items[0]);
  *values = assay_tensor_retain(m->items[1]);
  return NULL;
}

static assay_status_t cast_to(const assay_node_t* n, assay_type_t* out) {
  bool is_float = assay_attr_is(n, "cast_to", "TO_FLOAT");
  bool is_string = assay_attr_is(n, "cast_to", "TO_STRING");
  if (!is_float && !is_string && !assay_attr_is(n, "cast_to", "TO_INT64"))
    return ASSAY_NODE_ERROR(n, ASSAY_CORRUPT,
                            "cast_to is '%s'; TO_FLOAT, TO_STRING or TO_INT64 is expected",
                            assay_attr_str(n, "cast_to", ""));
  *out = is_float ? ASSAY_TYPE_FLOAT : is_string ? ASSAY_TYPE_STRING : ASSAY_TYPE_INT64;
  return NULL;
}

static assay_status_t cast_form(const assay_node_t* n, bool* out_sparse, int64_t* out_length) {
  *out_sparse = assay_attr_is(n, "map_form", "SPARSE");
  *out_length = assay_attr_i64(n, "max_map", 1);
  if (!*out_sparse && !assay_attr_is(n, "map_form", "DENSE"))
    return ASSAY_NODE_ERROR(n, ASSAY_CORRUPT, "map_form is '%s'; DENSE or SPARSE is expected",
                            assay_attr_str(n, "map_form", ""));
  if (*out_sparse && *out_length < 1)
    return ASSAY_NODE_ERROR(n, ASSAY_CORRUPT, "max_map is %lld; it must be positive",
                            (long long)*out_length);
  return NULL;
}

static assay_status_t cast_map_infer(assay_infer_t* c) {
  assay_type_t type = ASSAY_TYPE_UNDEFINED;
  bool sparse = false;
  int64_t length = 0;
  assay_shape_t y = {.known = true, .rank = 2};
  ASSAY_TRY(cast_to(c->node, &type));
  ASSAY_TRY(cast_form(c->node, &sparse, &length));
  y.dims[0] = assay_dim_const(c->dims, 1);
  if (sparse) y.dims[1] = assay_dim_const(c->dims, length);
  return assay_infer_set(c, 0, type, &y);
}

// A number from a text in the C locale; false if it is none.
static bool read_number(assay_string_t s, double* out) {
  static const char space[] = " \t\n\r\f\v";
  char text[128];
  if (!s.len || s.len >= sizeof text || memchr(s.text, 0, s.len)) return false;
  memcpy(text, s.text, s.len);
  text[s.len] = 0;
  locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
  if (!c) return false;
  char* end = NULL;
  *out = strtod_l(text, &end, c);
  freelocale(c);
  return end != text && end[strspn(end, space)] == 0;
}

// Element k of the map's values, converted to y's type, into element i of y.
static assay_status_t cast_value(assay_eval_t* c, const assay_tensor_t* values, int64_t k,
                                 assay_tensor_t* y, int64_t i) {
  double number = 0;
  if (values->store == ASSAY_STORE_STR) {
    assay_string_t s = assay_strings(values)[k];
    if (y->store == ASSAY_STORE_STR) return assay_tensor_set_string(y, i, s.text, s.len);
    if (!read_number(s, &number))
      return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT, "'%.*s' is not a number",
                              (int)(s.len > 64 ? 64 : s.len), s.text ? s.text : "");
  } else {
    number = assay_ml_number(values, k);
  }
  if (y->store == ASSAY_STORE_STR) {
    char text[64];
    snprintf(text, sizeof text, "%.9g", number);
    return assay_tensor_set_string(y, i, text, strlen(text));
  }
  if (y->store == ASSAY_STORE_F64)
    assay_f64(y)[i] = number;
  else
    assay_i64(y)[i] = assay_type_saturate(y->type, trunc(number));
  return NULL;
}

static int compare_keys(const void* a, const void* b, void* keys) {
  int64_t x = ((const int64_t*)keys)[*(const int64_t*)a],
          y = ((const int64_t*)keys)[*(const int64_t*)b];
  return x < y ? -1 : x > y;
}

static assay_status_t cast_map(assay_eval_t* c, const assay_tensor_t* keys,
                               const assay_tensor_t* values) {
  assay_type_t type = ASSAY_TYPE_UNDEFINED;
  bool sparse = false;
  int64_t length = 0, *order = NULL;
  assay_tensor_t* y = NULL;
  ASSAY_TRY(cast_to(c->node, &type));
  ASSAY_TRY(cast_form(c->node, &sparse, &length));
  if (keys->store != ASSAY_STORE_I64)
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT, "the map's keys are not int64");
  if (!sparse) length = keys->size;
  ASSAY_TRY(assay_eval_output(c, 0, type, 2, (int64_t[]){1, length}, &y));
  if (y->store != ASSAY_STORE_STR) memset(y->data, 0, (size_t)length * sizeof(double));
  ASSAY_TRY(assay_new_array((size_t)keys->size, sizeof *order, &order));
  for (int64_t k = 0; k < keys->size; k++) order[k] = k;
  qsort_r(order, (size_t)keys->size, sizeof *order, compare_keys, assay_i64(keys));
  assay_status_t st = NULL;
  for (int64_t k = 0; !st && k < keys->size; k++) {
    int64_t at = sparse ? assay_i64(keys)[order[k]] : k;
    if (at < 0 || at >= length)
      st = ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                            "key %lld is outside [0, %lld) of max_map", (long long)at,
                            (long long)length);
    else
      st = cast_value(c, values, order[k], y, at);
  }
  assay_free(order);
  return st;
}

// ai.onnx.ml CastMap-1.
static assay_status_t cast_map_eval(assay_eval_t* c) {
  assay_tensor_t *keys = NULL, *values = NULL;
  ASSAY_TRY(take_map(c, &keys, &values));
  assay_status_t st = cast_map(c, keys, values);
  assay_tensor_release(keys);
  assay_tensor_release(values);
  return st;
}

// Texts and doubles become float32.
static assay_status_t cast_map_bound(assay_bound_t* c) { return assay_bound_roundings(c, 1); }

static assay_status_t dict_infer(assay_infer_t* c) {
  assay_ml_labels_t vocabulary;
  assay_shape_t y = {.known = true, .rank = 1};
  const assay_valtype_t* t = assay_infer_type(c, 0);
  ASSAY_TRY(assay_ml_labels(c->node, "int64_vocabulary", "string_vocabulary", &vocabulary));
  y.dims[0] = assay_dim_const(c->dims, vocabulary.n);
  bool typed = t && t->kind == ASSAY_KIND_MAP && t->of;
  return assay_infer_set(c, 0, typed ? t->of->elem : ASSAY_TYPE_UNDEFINED, &y);
}

static bool same_string(assay_string_t a, assay_string_t b) {
  return a.len == b.len && (!a.len || memcmp(a.text, b.text, a.len) == 0);
}

static assay_status_t vectorize(assay_eval_t* c, const assay_tensor_t* keys,
                                const assay_tensor_t* values) {
  assay_ml_labels_t v;
  assay_tensor_t* y = NULL;
  ASSAY_TRY(assay_ml_labels(c->node, "int64_vocabulary", "string_vocabulary", &v));
  if ((keys->store == ASSAY_STORE_STR) != (v.strings != NULL))
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                            "the map's keys are %s, the vocabulary's are not",
                            assay_type_name(keys->type));
  ASSAY_TRY(assay_eval_output(c, 0, values->type, 1, &v.n, &y));
  if (y->store != ASSAY_STORE_STR)
    memset(y->data, 0, (size_t)v.n * assay_store_elem_bytes(y->store));
  for (int64_t k = 0; k < keys->size; k++) {
    int64_t at = 0;
    while (at < v.n && !(v.ints ? assay_i64(keys)[k] == v.ints[at]
                                : same_string(assay_strings(keys)[k], v.strings[at])))
      at++;
    if (at == v.n)
      return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                              "entry %lld of the map has a key that the vocabulary lacks",
                              (long long)k);
    ASSAY_TRY(assay_copy_elems(values, k, y, at, 1));
  }
  return NULL;
}

// ai.onnx.ml DictVectorizer-1.
static assay_status_t dict_eval(assay_eval_t* c) {
  assay_tensor_t *keys = NULL, *values = NULL;
  ASSAY_TRY(take_map(c, &keys, &values));
  assay_status_t st = vectorize(c, keys, values);
  assay_tensor_release(keys);
  assay_tensor_release(values);
  return st;
}

#define ML(operator) .domain = "ai.onnx.ml", .name = operator, .since = 1

const assay_op_t assay_ops_ml[] = {
    {ML("ArrayFeatureExtractor"), .flags = ASSAY_OP_MOVES, .infer = extract_infer,
     .eval = extract_eval},
    {ML("Binarizer"), .flags = ASSAY_OP_POINTWISE, .discrete = 1, .infer = assay_infer_same,
     .eval = binarizer_eval},
    {ML("Scaler"), .infer = float_infer, .eval = scaler_eval, .bound = scaler_bound,
     .cost = scaler_cost},
    {ML("Imputer"), .flags = ASSAY_OP_MOVES | ASSAY_OP_SELECTS, .infer = assay_infer_same,
     .eval = imputer_eval, .bound = assay_bound_exact},
    {ML("Normalizer"), .infer = normalizer_infer, .eval = normalizer_eval,
     .bound = normalizer_bound, .cost = normalizer_cost},
    {ML("FeatureVectorizer"), .infer = vectorizer_infer, .eval = vectorizer_eval,
     .bound = vectorizer_bound},
    {ML("ZipMap"), .flags = ASSAY_OP_MOVES, .infer = zip_infer, .eval = zip_eval},
    {ML("CastMap"), .infer = cast_map_infer, .eval = cast_map_eval, .bound = cast_map_bound},
    {ML("DictVectorizer"), .flags = ASSAY_OP_MOVES, .infer = dict_infer, .eval = dict_eval},
    {0}};
