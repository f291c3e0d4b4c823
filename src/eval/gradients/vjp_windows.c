// Rules of pooling and resampling.
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "eval/gradients/vjp.h"
#include "ops/conv/window.h"

// ---- whole planes -------------------------------------------------------------------------------

// Source: ONNX GlobalAveragePool-22, GlobalMaxPool-22.
assay_status_t assay_vjp_global_pool(const assay_vjp_t* c, bool* out_known) {
  const assay_tensor_t *x = c->in[0], *y = c->out[0];
  const bool average = strcmp(c->node->op_type, "GlobalAveragePool") == 0;
  *out_known = true;
  if (x->size == 0) return NULL;
  const int64_t n = x->size / y->size;
  for (int64_t plane = 0; plane < y->size; plane++)
    for (int64_t i = plane * n; i < (plane + 1) * n; i++) {
      const double d = average ? 1 / (double)n : assay_f64(x)[i] == assay_f64(y)[plane] ? 1 : 0;
      for (int64_t p = 0; p < c->probes; p++)
        c->in_g[0][p * x->size + i] += d * c->out_g[0][p * y->size + plane];
    }
  return NULL;
}

// ---- windows ------------------------------------------------------------------------------------

// The elements of a plane that window `o` of the output plane covers; returns how many.
static int64_t window_elements(const assay_window_t* w, int64_t o, int64_t* to) {
  int64_t n = 1, step = 1;
  to[0] = 0;
  for (int i = w->rank - 1; i >= 0; i--) {
    const assay_window_axis_t* a = &w->axis[i];
    int64_t first, end;
    assay_window_positions(a, o % a->out, &first, &end);
    const int64_t start = o % a->out * a->stride - a->pads[0],
                  count = end > first ? end - first : 0;
    for (int64_t k = count - 1; k >= 0; k--)
      for (int64_t j = 0; j < n; j++)
        to[k * n + j] = to[j] + (start + (first + k) * a->dilation) * step;
    n *= count;
    step *= a->in;
    o /= a->out;
  }
  return n;
}

// Average: the part that one element has of each mean is told by the operator itself, run on ones:
// elements inside over elements that count. Maximum: all of it goes to the first largest element.
static void add_window(const assay_vjp_t* c, const assay_tensor_t* ones, int64_t plane_in,
                       int64_t o_at, const int64_t* at, int64_t n) {
  const assay_tensor_t *x = c->in[0], *y = c->out[0];
  const double* plane = assay_f64(x) + plane_in;
  int64_t max = 0;
  for (int64_t j = 1; j < n; j++)
    if (plane[at[j]] > plane[at[max]]) max = j;
  const double part = ones && n ? assay_f64(ones)[o_at] / (double)n : 0;
  for (int64_t p = 0; p < c->probes; p++) {
    double* to = c->in_g[0] + p * x->size + plane_in;
    const double g = c->out_g[0][p * y->size + o_at];
    for (int64_t j = 0; ones && j < n; j++) to[at[j]] += part * g;
    if (!ones && n) to[at[max]] += g;
  }
}

static assay_status_t run_ones(const assay_vjp_t* c, assay_tensor_t** out) {
  const assay_tensor_t* x = c->in[0];
  assay_tensor_t* ones = NULL;
  ASSAY_TRY(assay_tensor_create(x->type, x->rank, x->dims, &ones));
  for (int64_t i = 0; i < ones->size; i++) assay_f64(ones)[i] = 1;
  assay_status_t st = assay_vjp_evaluate(c, NULL, 0, NULL, 1, &ones, 1, out);
  assay_tensor_release(ones);
  return st;
}

// Source: ONNX AveragePool-22, MaxPool-22.
assay_status_t assay_vjp_pool(const assay_vjp_t* c, bool* out_known) {
  const assay_tensor_t *x = c->in[0], *y = c->out[0];
  assay_window_t w;
  int64_t max = 1, *at = NULL;
  assay_tensor_t* ones = NULL;
  *out_known = false;
  if (c->n_in != 1 || x->store != ASSAY_STORE_F64 || x->size == 0 || y->size == 0) return NULL;
  ASSAY_TRY(assay_window_read(c->node, x->rank - 2, NULL, &w));
  ASSAY_TRY(assay_window_fit(c->node, &w, x->dims + 2));
  for (int i = 0; i < w.rank; i++)
    max *= w.axis[i].kernel < w.axis[i].in ? w.axis[i].kernel : w.axis[i].in;
  ASSAY_TRY(assay_new_array((size_t)max, sizeof *at, &at));
  assay_status_t st = NULL;
  if (strcmp(c->node->op_type, "AveragePool") == 0) st = run_ones(c, &ones);
  const int64_t in_size = assay_window_in_size(&w), out_size = assay_window_out_size(&w);
  for (int64_t o = 0; !st && o < out_size; o++) {
    const int64_t n = window_elements(&w, o, at);
    for (int64_t plane = 0; plane < x->dims[0] * x->dims[1]; plane++)
      add_window(c, ones, plane * in_size, plane * out_size + o, at, n);
  }
  assay_tensor_release(ones);
  assay_free(at);
  *out_known = !st;
  return st;
}

// ---- resampling ---------------------------------------------------------------------------------

// Resize works axis by axis, each with a matrix [in, out] of its own. They are read off the
// operator itself, run on unit vectors along the axis with all other axes of size 1 (but for axis
// 0, which counts the vectors; of axis 0 the vectors are counted along axis 1).
static assay_status_t unit_vectors(const assay_tensor_t* x, int axis, int counter,
                                   assay_tensor_t** out) {
  const int64_t n = x->dims[axis];
  int64_t dims[ASSAY_MAX_RANK], strides[2] = {1, 1};
  for (int i = 0; i < x->rank; i++) dims[i] = i == axis || i == counter ? n : 1;
  strides[counter < axis ? 0 : 1] = n;
  ASSAY_TRY(assay_tensor_create_zero(x->type, x->rank, dims, out));
  for (int64_t k = 0; k < n; k++) assay_f64(*out)[k * (strides[0] + strides[1])] = 1;
  return NULL;
}

// Scales or sizes of the single axis: those of others leave them as they are.
static assay_status_t single_axis(const assay_vjp_t* c, size_t input, int axis, int counter,
                                  assay_tensor_t** out) {
  assay_tensor_t* t = c->in[input];
  size_t n_axes = 0;
  const int64_t* axes = assay_attr_ints(c->node, "axes", &n_axes);
  ASSAY_TRY(assay_tensor_copy(t, out));
  for (int64_t i = 0; i < t->size; i++) {
    int64_t of = axes ? axes[i] : i;
    if (of < 0) of += c->in[0]->rank;
    if (of == axis) continue;
    if (t->store == ASSAY_STORE_F64)
      assay_f64(*out)[i] = 1;
    else
      assay_i64(*out)[i] = of == counter ? c->in[0]->dims[axis] : 1;
  }
  return NULL;
}

// to[out elements] of one axis: *out_matrix is [in, out], row by row, as the operator gives it.
static assay_status_t axis_matrix(const assay_vjp_t* c, int axis, assay_tensor_t** out_matrix) {
  const assay_tensor_t* x = c->in[0];
  const int counter = axis == 0 ? 1 : 0;
  assay_tensor_t* in[4] = {NULL};
  assay_status_t st = unit_vectors(x, axis, counter, &in[0]);
  for (size_t i = 1; !st && i < c->n_in; i++) {
    const bool factors = c->in[i] && c->in[i]->rank == 1 && c->in[i]->size > 0 &&
                         (i >= 2 || strcmp(c->node->op_type, "Upsample") == 0 || c->n_in == 2);
    if (factors)
      st = single_axis(c, i, axis, counter, &in[i]);
    else
      in[i] = c->in[i] ? assay_tensor_retain(c->in[i]) : NULL;
  }
  assay_tensor_t* y = NULL;
  if (!st) st = assay_vjp_evaluate(c, NULL, 0, NULL, c->n_in, in, 1, &y);
  for (size_t i = 0; i < 4; i++) assay_tensor_release(in[i]);
  if (!st && y->size == x->dims[axis] * c->out[0]->dims[axis]) {
    *out_matrix = y;
    return NULL;
  }
  assay_tensor_release(y);
  return st;
}

// to = from with the axis taken back through the matrix. The vectors are counted along the rows of
// the matrix, but for axis 0.
static void contract(const assay_tensor_t* matrix, bool turned, int64_t outer, int64_t n_in,
                     int64_t n_out, int64_t inner, const double* from, double* to) {
  memset(to, 0, (size_t)(outer * n_in * inner) * sizeof *to);
  for (int64_t o = 0; o < outer; o++)
    for (int64_t i = 0; i < n_in; i++)
      for (int64_t k = 0; k < n_out; k++) {
        const double m = assay_f64(matrix)[turned ? k * n_in + i : i * n_out + k];
        if (m == 0) continue;
        for (int64_t j = 0; j < inner; j++)
          to[(o * n_in + i) * inner + j] += m * from[(o * n_out + k) * inner + j];
      }
}

static bool is_plain(const assay_vjp_t* c) {
  const assay_node_t* n = c->node;
  if (c->n_in > 4 || c->in[0]->rank < 2 || c->in[0]->store != ASSAY_STORE_F64) return false;
  if (assay_attr_is(n, "coordinate_transformation_mode", "tf_crop_and_resize")) return false;
  if (assay_attr_has(n, "scales")) return false;  // of Upsample-7
  return !assay_attr_has(n, "keep_aspect_ratio_policy") ||
         assay_attr_is(n, "keep_aspect_ratio_policy", "stretch");
}

// Source: ONNX Resize-19, Upsample-9: separable and linear in x, in all modes.
assay_status_t assay_vjp_resize(const assay_vjp_t* c, bool* out_known) {
  const assay_tensor_t *x = c->in[0], *y = c->out[0];
  assay_tensor_t* matrices[ASSAY_MAX_RANK] = {NULL};
  int64_t max = x->size > y->size ? x->size : y->size, size = 1;
  double *a = NULL, *b = NULL;
  *out_known = false;
  if (!is_plain(c) || x->size == 0 || y->size == 0 || assay_vjp_wants_from(c, 1)) return NULL;
  assay_status_t st = NULL;
  bool known = true;
  for (int i = 0; !st && known && i < x->rank; i++) {
    size = 1;  // on the way: axes up to i are x's already
    for (int k = 0; k < x->rank; k++) size *= k <= i ? x->dims[k] : y->dims[k];
    if (size > max) max = size;
    if (x->dims[i] == y->dims[i]) continue;  // where only a rounding of 1 is left: see below
    st = axis_matrix(c, i, &matrices[i]);
    known = !st && matrices[i];
  }
  if (!st) st = assay_new_array((size_t)max, sizeof *a, &a);
  if (!st) st = assay_new_array((size_t)max, sizeof *b, &b);
  for (int64_t p = 0; !st && known && p < c->probes; p++) {
    memcpy(a, c->out_g[0] + p * y->size, (size_t)y->size * sizeof *a);
    for (int i = 0; i < x->rank; i++) {
      if (!matrices[i]) continue;
      const int64_t outer = assay_dims_product(x->dims, 0, i);
      const int64_t inner = assay_dims_product(y->dims, i + 1, y->rank);
      contract(matrices[i], i == 0, outer, x->dims[i], y->dims[i], inner, a, b);
      double* swap = a;
      a = b, b = swap;
    }
    for (int64_t i = 0; i < x->size; i++) c->in_g[0][p * x->size + i] += a[i];
  }
  *out_known = !st && known;
  for (int i = 0; i < x->rank; i++) assay_tensor_release(matrices[i]);
  assay_free(a);
  assay_free(b);
  return st;
}
