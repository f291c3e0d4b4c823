// Scales chosen from what reaches a quantizer: by its range, a percentile of it, or the range with
// the least squared error.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "diagnose/quantizers/quantizers.h"

// Channels are unlike if the largest of one is so many times that of another.
static const double UNLIKE = 30;

static int by_size(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

// Symmetric ones stay so: engines take no others for some operators.
static bool is_symmetric(const assay_quantizer_site_t* s) {
  for (int64_t i = 0; i < s->has.n; i++)
    if (s->has.zero[i] != 0) return false;
  return s->low < 0;
}

typedef struct range {
  double low, high;  // with 0 in it
} range_t;

static void scale_of(const assay_quantizer_site_t* s, range_t r, double* scale, double* zero) {
  if (is_symmetric(s)) {
    *scale = fmax(-r.low, r.high) / s->high;
    *zero = 0;
  } else {
    if (s->cuts) r.low = 0;
    *scale = (r.high - r.low) / (s->high - s->low);
    *zero = s->cuts || !(*scale > 0) ? s->low : rint(s->low - r.low / *scale);
    *zero = fmin(fmax(*zero, s->low), s->high);
  }
  if (!(*scale > 0)) *scale = s->has.scale[0] > 0 ? s->has.scale[0] : 1;
  *scale = (double)(float)*scale;
}

static double error_of(const assay_quantizer_site_t* s, double scale, double zero) {
  double sum = 0;
  for (size_t i = 0; i < s->n_drawn; i++) {
    const double x = s->cuts && s->drawn[i] < 0 ? 0 : s->drawn[i];
    const double q = fmin(fmax(rint(x / scale) + zero, s->low), s->high);
    const double d = (q - zero) * scale - x;
    sum += d * d;
  }
  return sum;
}

static void take_better(const assay_quantizer_site_t* s, range_t r, const char* how, double* best,
                        assay_quantizer_scales_t* out) {
  double scale = 1, zero = 0;
  scale_of(s, r, &scale, &zero);
  const double error = error_of(s, scale, zero);
  if (!(error < *best)) return;
  *best = error;
  out->scale[0] = scale;
  out->zero[0] = zero;
  out->how = how;
}

static double quantile(const double* sorted, size_t n, double part) {
  return n ? sorted[(size_t)(part * (double)(n - 1))] : 0;
}

// One scale for all. A range below the largest value has to be much the better for it: samples of
// others may reach it.
static assay_status_t choose_one(assay_quantizer_site_t* s) {
  static const double BETTER = 0.8;
  const range_t all = {fmin(s->min, 0), fmax(s->max, 0)};
  double best = (double)INFINITY;
  ASSAY_TRY(assay_quantizer_scales_create(-1, 1, &s->fits));
  take_better(s, all, "min-max", &best, &s->fits);
  best *= BETTER;
  double* sorted = NULL;
  ASSAY_TRY(assay_new_array(s->n_drawn, sizeof *sorted, &sorted));
  if (s->n_drawn) memcpy(sorted, s->drawn, s->n_drawn * sizeof *sorted);
  qsort(sorted, s->n_drawn, sizeof *sorted, by_size);
  const range_t most = {fmin(quantile(sorted, s->n_drawn, 0.0001), 0),
                        fmax(quantile(sorted, s->n_drawn, 0.9999), 0)};
  assay_free(sorted);
  take_better(s, most, "percentile 99.99", &best, &s->fits);
  for (int k = 19; k >= 4; k--) {
    const range_t part = {all.low * k / 20, all.high * k / 20};
    take_better(s, part, "least squares", &best, &s->fits);
  }
  return NULL;
}

int assay_quantizer_unlike_axis(const assay_quantizer_site_t* s, double* out_spread) {
  int axis = -1;
  *out_spread = 1;
  for (int k = 0; k < ASSAY_QUANTIZER_AXES; k++) {
    double low = (double)INFINITY, high = 0;
    for (int64_t i = 0; i < s->n_peaks[k]; i++) {
      if (s->peaks[k][i] > 0) low = fmin(low, s->peaks[k][i]);
      high = fmax(high, s->peaks[k][i]);
    }
    if (!(high / low > *out_spread)) continue;
    *out_spread = high / low;
    axis = k;
  }
  return axis;
}

static bool is_op(const assay_node_t* n, const char* op_type) {
  return strcmp(n->op_type, op_type) == 0;
}

// The axis along which a product lets a weight have scales of its own; -1: it does not, or what
// reads the value is no product.
static int weight_axis(const assay_node_t* n, const assay_value_t* v, int rank) {
  if (n->n_inputs < 2 || n->inputs[1] != v) return -1;
  if (is_op(n, "Conv")) return 0;
  if (is_op(n, "ConvTranspose")) return assay_attr_i64(n, "group", 1) == 1 ? 1 : -1;
  if (is_op(n, "Gemm")) return assay_attr_i64(n, "transB", 0) ? 0 : 1;
  return is_op(n, "MatMul") ? rank - 1 : -1;
}

// Which axis may have scales of its own; -1: none. Products take activations with one scale alone;
// what is only added, moved or given out may have several.
static int allowed_axis(const assay_quantizer_site_t* s) {
  const assay_graph_t* g = s->node->graph;
  const assay_value_t* v = s->dequantize->outputs[0];
  const int rank = s->value->type && s->value->type->has_shape ? s->value->type->rank : 0;
  double spread = 0;
  int axis = -1;
  if (assay_model_opset(g->model, "") < 13 || s->has.axis >= 0) return -1;
  for (size_t i = 0; s->weight && i < g->n_nodes; i++)
    for (size_t k = 0; k < g->nodes[i]->n_inputs; k++)
      if (g->nodes[i]->inputs[k] == v) axis = weight_axis(g->nodes[i], v, rank);
  if (s->weight) return axis;
  for (size_t i = 0; i < g->n_nodes; i++)
    for (size_t k = 0; k < g->nodes[i]->n_inputs; k++) {
      const assay_node_t* n = g->nodes[i];
      if (n->inputs[k] != v) continue;
      if (is_op(n, "Conv") || is_op(n, "ConvTranspose") || is_op(n, "Gemm") || is_op(n, "MatMul"))
        return -1;
    }
  axis = assay_quantizer_unlike_axis(s, &spread);
  return axis >= 0 ? s->axes[axis] : -1;
}

static assay_status_t choose_apart(assay_quantizer_site_t* s) {
  const int axis = allowed_axis(s);
  int at = -1;
  double low = (double)INFINITY, high = 0;
  for (int k = 0; k < ASSAY_QUANTIZER_AXES; k++)
    if (axis >= 0 && s->axes[k] == axis) at = k;
  for (int64_t i = 0; at >= 0 && i < s->n_peaks[at]; i++) {
    if (s->peaks[at][i] > 0) low = fmin(low, s->peaks[at][i]);
    high = fmax(high, s->peaks[at][i]);
  }
  if (at < 0 || !(high > UNLIKE * low)) return NULL;
  ASSAY_TRY(assay_quantizer_scales_create(axis, s->n_peaks[at], &s->apart));
  s->apart.how = "a scale for each channel";
  for (int64_t i = 0; i < s->apart.n; i++) {
    const double peak = s->peaks[at][i];
    const range_t r = {s->min < 0 ? -peak : 0, s->max > 0 ? peak : 0};
    scale_of(s, r, &s->apart.scale[i], &s->apart.zero[i]);
  }
  return NULL;
}

assay_status_t assay_quantizer_choose(assay_quantizer_site_t* s) {
  if (s->stored || !s->n_drawn || s->has.axis >= 0) return NULL;
  ASSAY_TRY(choose_one(s));
  return choose_apart(s);
}
