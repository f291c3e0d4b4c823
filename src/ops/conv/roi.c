// Pooling over regions of interest: RoiAlign, MaxRoiPool, CropAndResize.
#include <math.h>
#include <string.h>

#include "base/larger.h"
#include "ops/bound_number.h"
#include "ops/content.h"
#include "ops/families.h"

// ---- what they share -------------------------------------------------------------------------

static assay_status_t roi_infer(assay_infer_t* c, const assay_dim_t* height,
                                const assay_dim_t* width) {
  ASSAY_TRY(assay_infer_want_rank(c, 0, 4, 4));
  ASSAY_TRY(assay_infer_want_rank(c, 1, 2, 2));
  assay_shape_t x = assay_infer_shape(c, 0), rois = assay_infer_shape(c, 1);
  assay_shape_t out = {.known = true, .rank = 4};
  if (rois.known) out.dims[0] = rois.dims[0];
  if (x.known) out.dims[1] = x.dims[1];
  out.dims[2] = height;
  out.dims[3] = width;
  return assay_infer_set(c, 0, assay_infer_elem(c, 0), &out);
}

// columns: of rois. Input 2, where there is one, has the index of each roi's image.
static assay_status_t roi_shapes(const assay_eval_t* c, int64_t columns) {
  const assay_tensor_t *x = c->in[0], *rois = c->in[1];
  if (x->rank != 4 || rois->rank != 2 || rois->dims[1] != columns) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                            "X is %s and rois %s, expected [N,C,H,W] and [rois, %lld]",
                            ASSAY_DIMS_TEXT(x), ASSAY_DIMS_TEXT(rois), (long long)columns);
  }
  if (columns == 4 && (c->in[2]->rank != 1 || c->in[2]->dims[0] != rois->dims[0])) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                            "batch_indices have shape %s, rois %s; expected one index a roi",
                            ASSAY_DIMS_TEXT(c->in[2]), ASSAY_DIMS_TEXT(rois));
  }
  for (int64_t i = 0; columns == 4 && i < rois->dims[0]; i++) {
    int64_t b = assay_i64(c->in[2])[i];
    if (b >= 0 && b < x->dims[0]) continue;
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                            "batch_indices has %lld at %lld, X has %lld images", (long long)b,
                            (long long)i, (long long)x->dims[0]);
  }
  return NULL;
}

static assay_status_t pooled_size(const assay_node_t* node, const char* what, int64_t size) {
  if (size > 0) return NULL;
  return ASSAY_NODE_ERROR(node, ASSAY_INVALID_ARGUMENT, "%s is %lld, expected 1 or more", what,
                          (long long)size);
}

// ---- RoiAlign --------------------------------------------------------------------------------

typedef struct align {
  int64_t height, width;  // of the output
  int64_t sampling;       // points a bin and axis; 0: by the roi's size
  bool max, half_pixel;
  double scale;
} align_t;

// A point along one axis: between elements low and high, with their weights. Both are 0 outside.
typedef struct point {
  int64_t low, high;
  double weight_low, weight_high;
} point_t;

static assay_status_t align_attrs(const assay_node_t* node, bool has_mode, align_t* out) {
  const char* mode = assay_attr_str(node, "mode", "avg");
  const char* transform = has_mode
                              ? assay_attr_str(node, "coordinate_transformation_mode", "half_pixel")
                              : "output_half_pixel";
  *out = (align_t){.height = assay_attr_i64(node, "output_height", 1),
                   .width = assay_attr_i64(node, "output_width", 1),
                   .sampling = assay_attr_i64(node, "sampling_ratio", 0),
                   .max = strcmp(mode, "max") == 0,
                   .half_pixel = strcmp(transform, "half_pixel") == 0,
                   .scale = assay_attr_f64(node, "spatial_scale", 1)};
  if (!out->max && strcmp(mode, "avg") != 0) {
    return ASSAY_NODE_ERROR(node, ASSAY_INVALID_ARGUMENT,
                            "attribute mode is '%s', expected avg or max", mode);
  }
  if (!out->half_pixel && strcmp(transform, "output_half_pixel") != 0) {
    return ASSAY_NODE_ERROR(node, ASSAY_INVALID_ARGUMENT,
                            "attribute coordinate_transformation_mode is '%s', expected half_pixel "
                            "or output_half_pixel",
                            transform);
  }
  if (out->sampling < 0) {
    return ASSAY_NODE_ERROR(node, ASSAY_INVALID_ARGUMENT,
                            "attribute sampling_ratio is %lld, expected 0 or more",
                            (long long)out->sampling);
  }
  ASSAY_TRY(pooled_size(node, "attribute output_height", out->height));
  return pooled_size(node, "attribute output_width", out->width);
}

static assay_status_t align_infer_as(assay_infer_t* c, bool has_mode) {
  align_t a;
  ASSAY_TRY(align_attrs(c->node, has_mode, &a));
  return roi_infer(c, assay_dim_const(c->dims, a.height), assay_dim_const(c->dims, a.width));
}

static assay_status_t align10_infer(assay_infer_t* c) { return align_infer_as(c, false); }
static assay_status_t align16_infer(assay_infer_t* c) { return align_infer_as(c, true); }

static point_t align_point(double at, int64_t size) {
  if (!(at >= -1 && at <= (double)size)) return (point_t){0};
  if (at < 0) at = 0;
  int64_t low = (int64_t)at;
  if (low >= size - 1) return (point_t){size - 1, size - 1, 1, 0};
  double part = at - (double)low;
  return (point_t){low, low + 1, 1 - part, part};
}

// The roi along one axis: where it starts, its length, and its sampling points a bin.
typedef struct span {
  double start, length;
  int64_t grid;
} span_t;

static span_t align_span(const align_t* a, double from, double to, int64_t bins) {
  double offset = a->half_pixel ? 0.5 : 0;
  span_t s = {.start = from * a->scale - offset};
  s.length = to * a->scale - offset - s.start;
  if (!a->half_pixel && !(s.length >= 1)) s.length = isnan(s.length) ? s.length : 1;
  double grid = a->sampling > 0 ? (double)a->sampling : ceil(s.length / (double)bins);
  s.grid = grid > 0 && grid < 1e9 ? (int64_t)grid : grid > 0 ? INT64_MAX : 0;
  return s;
}

static void align_points(const span_t* s, int64_t bins, int64_t size, point_t* out) {
  double bin = s->length / (double)bins;
  for (int64_t b = 0; b < bins; b++) {
    for (int64_t i = 0; i < s->grid; i++) {
      double at = s->start + (double)b * bin + ((double)i + 0.5) * bin / (double)s->grid;
      *out++ = align_point(at, size);
    }
  }
}

// One bin of one channel. Average of bilinear samples; `max` is the largest of the four weighted
// neighbours of all samples, which is what ONNX's cases and its reference have (the text says only
// 'max'). Sums: the four neighbours of a sample, then the samples in row-major order.
static double align_bin(const assay_eval_t* c, const align_t* a, const double* x, int64_t width,
                        const point_t* y, int64_t n_y, const point_t* z, int64_t n_z) {
  double sum = 0;
  for (int64_t i = 0; i < n_y; i++) {
    const double* low = x + y[i].low * width;
    const double* high = x + y[i].high * width;
    for (int64_t j = 0; j < n_z; j++) {
      double v1 = y[i].weight_low * z[j].weight_low * low[z[j].low];
      double v2 = y[i].weight_low * z[j].weight_high * low[z[j].high];
      double v3 = y[i].weight_high * z[j].weight_low * high[z[j].low];
      double v4 = y[i].weight_high * z[j].weight_high * high[z[j].high];
      if (a->max) {
        double maximum = assay_larger(assay_larger(v1, v2), assay_larger(v3, v4));
        sum = (i == 0 && j == 0) || maximum > sum ? maximum : sum;
      } else {
        double sample = assay_acc(c, assay_acc(c, assay_acc(c, v1 + v2) + v3) + v4);
        sum = assay_acc(c, sum + sample);
      }
    }
  }
  int64_t n = n_y * n_z;
  return a->max ? sum : sum / (double)(n > 0 ? n : 1);
}

static void align_roi(const assay_eval_t* c, const align_t* a, int64_t roi, const span_t* sy,
                      const span_t* sx, point_t* points, double* out) {
  const assay_tensor_t* x = c->in[0];
  int64_t channels = x->dims[1], height = x->dims[2], width = x->dims[3];
  point_t* py = points;
  point_t* px = points + a->height * sy->grid;
  align_points(sy, a->height, height, py);
  align_points(sx, a->width, width, px);
  const double* image = assay_f64(x) + assay_i64(c->in[2])[roi] * channels * height * width;
  for (int64_t ch = 0; ch < channels; ch++) {
    for (int64_t h = 0; h < a->height; h++) {
      for (int64_t w = 0; w < a->width; w++) {
        *out++ = align_bin(c, a, image + ch * height * width, width, py + h * sy->grid, sy->grid,
                           px + w * sx->grid, sx->grid);
      }
    }
  }
}

// Sampling points of all bins along the axes; false: more samples than a roi of an image asks for,
// which would take minutes (2^31 are some seconds).
static bool count_points(const align_t* a, const span_t* sy, const span_t* sx, int64_t channels,
                         int64_t* n_y, int64_t* n_x) {
  int64_t samples, work;
  return assay_mul_i64(a->height, sy->grid, n_y) && assay_mul_i64(a->width, sx->grid, n_x) &&
         assay_mul_i64(*n_y, *n_x, &samples) && assay_mul_i64(samples, channels, &work) &&
         work <= (int64_t)1 << 31 && *n_y < (int64_t)1 << 30 && *n_x < (int64_t)1 << 30;
}

// A roi whose corners are not numbers gives NaN.
static assay_status_t align_one(const assay_eval_t* c, const align_t* a, int64_t roi,
                                assay_tensor_t* out) {
  const double* r = assay_f64(c->in[1]) + 4 * roi;
  int64_t per_roi = out->size / out->dims[0];
  double* to = assay_f64(out) + roi * per_roi;
  span_t sx = align_span(a, r[0], r[2], a->width), sy = align_span(a, r[1], r[3], a->height);
  bool finite =
      isfinite(sx.start) && isfinite(sy.start) && isfinite(sx.length) && isfinite(sy.length);
  if (!finite || c->in[0]->dims[2] == 0 || c->in[0]->dims[3] == 0) {
    for (int64_t i = 0; i < per_roi; i++) to[i] = finite ? 0 : NAN;
    return NULL;
  }
  int64_t n_y, n_x;
  const bool sane = count_points(a, &sy, &sx, out->dims[1], &n_y, &n_x);
  if (!sane) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_UNSUPPORTED,
                            "roi %lld [%g, %g, %g, %g] asks for too many sampling points",
                            (long long)roi, r[0], r[1], r[2], r[3]);
  }
  point_t* points = NULL;
  ASSAY_TRY(assay_new_array((size_t)(n_y + n_x), sizeof *points, &points));
  align_roi(c, a, roi, &sy, &sx, points, to);
  assay_free(points);
  return NULL;
}

// Source: ONNX RoiAlign-10, -16 (coordinate_transformation_mode); He et al., Mask R-CNN, 2017.
static assay_status_t align_eval_as(assay_eval_t* c, bool has_mode) {
  align_t a;
  ASSAY_TRY(align_attrs(c->node, has_mode, &a));
  ASSAY_TRY(roi_shapes(c, 4));
  int64_t rois = c->in[1]->dims[0];
  int64_t dims[4] = {rois, c->in[0]->dims[1], a.height, a.width};
  assay_tensor_t* out;
  ASSAY_TRY(assay_eval_output(c, 0, c->in[0]->type, 4, dims, &out));
  if (out->size == 0) return NULL;
  assay_status_t first = NULL;
#pragma omp parallel for schedule(static) if (rois > 1 && out->size > 10000)
  for (int64_t r = 0; r < rois; r++) {
    assay_status_t st = align_one(c, &a, r, out);
    if (!st) continue;
#pragma omp critical(assay_roi_align)
    first = assay_status_join(first, st);
  }
  return first;
}

static assay_status_t align10_eval(assay_eval_t* c) { return align_eval_as(c, false); }
static assay_status_t align16_eval(assay_eval_t* c) { return align_eval_as(c, true); }

// ---- RoiAlign: bounds
//
// A sampling point is made of a roi's corners by some ten operations; what that does to its sample
// is seen at the corners of where it may be: the sample is linear in both coordinates, with kinks.

// The documented order has coordinates in float64; an eighth is left for those that come near it.
static double coordinates_likely(const assay_bound_t* c) {
  return c->rounding->documented ? 0.125 : 1;
}

typedef struct align_bound {
  const assay_bound_t* c;
  const align_t* a;
  assay_inner_t inner;
  double u;       // of coordinates
  double likely;  // part of their error: coordinates_likely()
} align_bound_t;

static bool fits(const align_bound_t* b, double x) {
  return assay_format_round(b->c->rounding->compute, x, ASSAY_OVERFLOW_IEEE) == x;
}

// Whether every engine takes as many sampling points a bin: the count is given, or the roi's length
// in bins is computed without rounding, or is not near a whole number.
static bool grid_is_certain(const align_bound_t* b, double from, double to, int64_t bins,
                            double error) {
  const align_t* a = b->a;
  if (a->sampling > 0 || b->c->rounding->documented) return true;
  const double offset = a->half_pixel ? 0.5 : 0, low = from * a->scale, high = to * a->scale;
  const double length = high - low, per_bin = length / (double)bins;
  const bool exact = fits(b, low) && fits(b, high) && fits(b, low - offset) &&
                     fits(b, high - offset) && fits(b, length) && fits(b, per_bin);
  return exact || ceil(per_bin - error) == ceil(per_bin + error);
}

// The points of both axes along one axis, moved by their error.
typedef struct point_set {
  point_t *exact, *low, *high;
} point_set_t;

static double sample_at(const align_t* a, const double* x, int64_t width, const point_t* y,
                        const point_t* z, double* size) {
  const double v[4] = {y->weight_low * z->weight_low * x[y->low * width + z->low],
                       y->weight_low * z->weight_high * x[y->low * width + z->high],
                       y->weight_high * z->weight_low * x[y->high * width + z->low],
                       y->weight_high * z->weight_high * x[y->high * width + z->high]};
  *size = fabs(v[0]) + fabs(v[1]) + fabs(v[2]) + fabs(v[3]);
  return a->max ? assay_larger(assay_larger(v[0], v[1]), assay_larger(v[2], v[3]))
                : v[0] + v[1] + v[2] + v[3];
}

// One bin. Sets *g and *p.
static void align_bin_limits(const align_bound_t* b, const double* x, int64_t width,
                             const point_set_t* y, int64_t n_y, const point_set_t* z, int64_t n_z,
                             double* g, double* p) {
  double moved = 0, total = 0, worst = 0, maximum = 0;
  for (int64_t i = 0; i < n_y; i++) {
    for (int64_t j = 0; j < n_z; j++) {
      double size = 0, unused = 0, far = 0;
      const double v = sample_at(b->a, x, width, y->exact + i, z->exact + j, &size);
      for (int corner = 0; corner < 4; corner++) {
        const point_t* py = (corner & 1 ? y->high : y->low) + i;
        const point_t* pz = (corner & 2 ? z->high : z->low) + j;
        far = fmax(far, fabs(sample_at(b->a, x, width, py, pz, &unused) - v));
      }
      moved += far;
      total += size;
      worst = fmax(worst, far);
      maximum = fmax(maximum, size);
    }
  }
  const double n = n_y * n_z > 0 ? (double)(n_y * n_z) : 1, u = b->inner.u;
  if (b->a->max) {
    *g = 2 * worst + 4 * u * maximum + 4 * b->inner.tiny;
    *p = b->likely * worst + 4 * u * maximum + 4 * b->inner.tiny;
    return;
  }
  const assay_factor_t f = assay_bound_sum(b->c->rounding, 4 * n);
  const double tiny = 5 * b->inner.tiny;
  *g = 2 * moved / n + ((f.guaranteed + 4 * u) * total) / n + tiny;
  *p = b->likely * moved / n + ((f.probable + 4 * u) * total) / n + tiny;
  if (!(2 * total <= b->inner.max)) *g = *p = (double)INFINITY;
}

static void move_points(const span_t* s, double by, int64_t bins, int64_t size, point_t* out) {
  span_t moved = *s;
  moved.start += by;
  align_points(&moved, bins, size, out);
}

static assay_status_t align_roi_bound(const align_bound_t* b, int64_t roi, double* g, double* p) {
  const assay_tensor_t* x = b->c->in[0];
  const align_t* a = b->a;
  const double* r = assay_f64(b->c->in[1]) + 4 * roi;
  const int64_t channels = x->dims[1], height = x->dims[2], width = x->dims[3];
  const int64_t bins[2] = {a->height, a->width}, size[2] = {height, width};
  const int64_t per_roi = channels * a->height * a->width;
  bool certain = height > 0 && width > 0;
  span_t s[2];
  double error[2];
  for (int k = 0; k < 2; k++) {
    const double from = r[1 - k], to = r[3 - k];
    s[k] = align_span(a, from, to, bins[k]);
    error[k] = 8 * b->u * (fabs(from * a->scale) + fabs(to * a->scale) + 1);
    certain = certain && isfinite(s[k].start) && isfinite(s[k].length) &&
              grid_is_certain(b, from, to, bins[k], error[k]);
  }
  int64_t n[2] = {0};
  if (!certain || !count_points(a, &s[0], &s[1], channels, &n[0], &n[1])) {
    for (int64_t i = 0; i < per_roi; i++) g[i] = p[i] = (double)INFINITY;
    return NULL;
  }
  point_t* points = NULL;
  ASSAY_TRY(assay_new_array((size_t)(3 * (n[0] + n[1])), sizeof *points, &points));
  point_set_t set[2];
  for (int k = 0; k < 2; k++) {
    point_t* at = points + (k ? 3 * n[0] : 0);
    set[k] = (point_set_t){at, at + n[k], at + 2 * n[k]};
    align_points(&s[k], bins[k], size[k], set[k].exact);
    move_points(&s[k], -error[k], bins[k], size[k], set[k].low);
    move_points(&s[k], error[k], bins[k], size[k], set[k].high);
  }
  const double* image = assay_f64(x) + assay_i64(b->c->in[2])[roi] * channels * height * width;
  for (int64_t i = 0; i < per_roi; i++) {
    const int64_t ch = i / (bins[0] * bins[1]), h = i / bins[1] % bins[0], w = i % bins[1];
    const int64_t oy = h * s[0].grid, oz = w * s[1].grid;
    const point_set_t y = {set[0].exact + oy, set[0].low + oy, set[0].high + oy};
    const point_set_t z = {set[1].exact + oz, set[1].low + oz, set[1].high + oz};
    align_bin_limits(b, image + ch * height * width, width, &y, s[0].grid, &z, s[1].grid, &g[i],
                     &p[i]);
  }
  assay_free(points);
  return NULL;
}

static assay_status_t align_bound_as(assay_bound_t* c, bool has_mode) {
  align_t a;
  ASSAY_TRY(assay_bound_want_exact(c, SIZE_MAX));
  ASSAY_TRY(align_attrs(c->node, has_mode, &a));
  const align_bound_t b = {.c = c,
                           .a = &a,
                           .inner = assay_bound_inner(c->rounding),
                           .u = assay_bound_unit(c->rounding->compute),
                           .likely = coordinates_likely(c)};
  double *g, *p;
  ASSAY_TRY(assay_bound_output(c, 0, &g, &p));
  const int64_t rois = c->out[0]->dims[0], per_roi = rois ? c->out[0]->size / rois : 0;
  for (int64_t r = 0; per_roi && r < rois; r++)
    ASSAY_TRY(align_roi_bound(&b, r, g + r * per_roi, p + r * per_roi));
  return NULL;
}

static assay_status_t align10_bound(assay_bound_t* c) { return align_bound_as(c, false); }
static assay_status_t align16_bound(assay_bound_t* c) { return align_bound_as(c, true); }

// Four products and sums a sample; without sampling_ratio bins of two elements are assumed.
static void align_cost(const assay_eval_t* c, assay_cost_t* out) {
  double n = (double)assay_attr_i64(c->node, "sampling_ratio", 0);
  if (n <= 0) n = 2;
  out->flops = c->out[0] ? 12 * n * n * (double)c->out[0]->size : 0;
}

// ---- MaxRoiPool ------------------------------------------------------------------------------

static assay_status_t pool_attrs(const assay_node_t* node, int64_t* out_h, int64_t* out_w) {
  size_t n;
  const int64_t* shape = assay_attr_ints(node, "pooled_shape", &n);
  if (n != 2) {
    return ASSAY_NODE_ERROR(node, ASSAY_INVALID_ARGUMENT,
                            "attribute pooled_shape has %zu entries, expected 2", n);
  }
  *out_h = shape[0];
  *out_w = shape[1];
  ASSAY_TRY(pooled_size(node, "the height in pooled_shape", shape[0]));
  return pooled_size(node, "the width in pooled_shape", shape[1]);
}

static assay_status_t pool_infer(assay_infer_t* c) {
  int64_t h, w;
  ASSAY_TRY(pool_attrs(c->node, &h, &w));
  return roi_infer(c, assay_dim_const(c->dims, h), assay_dim_const(c->dims, w));
}

static double clamp(double x, double low, double high) {
  return x < low ? low : x > high ? high : x;
}

// Bin i of a roi along one axis of `size` elements: [from, to), cut to the image.
static void pool_range(double start, double end, int64_t i, int64_t bins, int64_t size,
                       int64_t* out_from, int64_t* out_to) {
  double length = fmax(end - start + 1, 1), bin = length / (double)bins;
  *out_from = (int64_t)clamp(floor((double)i * bin) + start, 0, (double)size);
  *out_to = (int64_t)clamp(ceil((double)(i + 1) * bin) + start, 0, (double)size);
}

static double pool_max(const double* x, int64_t width, int64_t h0, int64_t h1, int64_t w0,
                       int64_t w1) {
  if (h0 >= h1 || w0 >= w1) return 0;
  double maximum = -INFINITY;
  for (int64_t h = h0; h < h1; h++) {
    for (int64_t w = w0; w < w1; w++) {
      double v = x[h * width + w];
      if (v > maximum || isnan(v)) maximum = v;
      if (isnan(maximum)) return maximum;
    }
  }
  return maximum;
}

// Source: ONNX MaxRoiPool-1; Girshick, Fast R-CNN, 2015 (and its Caffe layer): corners are rounded
// to elements, both belong to the roi, and bins overlap where they share an element. Empty bins
// give 0.
static assay_status_t pool_eval(assay_eval_t* c) {
  int64_t ph, pw;
  ASSAY_TRY(pool_attrs(c->node, &ph, &pw));
  ASSAY_TRY(roi_shapes(c, 5));
  const assay_tensor_t *x = c->in[0], *rois = c->in[1];
  double scale = assay_attr_f64(c->node, "spatial_scale", 1);
  int64_t channels = x->dims[1], height = x->dims[2], width = x->dims[3], n = rois->dims[0];
  for (int64_t r = 0; r < n; r++) {
    const double* roi = assay_f64(rois) + 5 * r;
    bool fits = roi[0] >= 0 && roi[0] < (double)x->dims[0];
    for (int i = 1; i < 5; i++) fits = fits && fabs(roi[i] * scale) < 1e15;
    if (fits) continue;
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                            "roi %lld is [%g, %g, %g, %g, %g]; X has %lld images", (long long)r,
                            roi[0], roi[1], roi[2], roi[3], roi[4], (long long)x->dims[0]);
  }
  int64_t dims[4] = {n, channels, ph, pw};
  assay_tensor_t* out;
  ASSAY_TRY(assay_eval_output(c, 0, x->type, 4, dims, &out));
  if (out->size == 0) return NULL;
#pragma omp parallel for schedule(static) if (out->size > 10000)
  for (int64_t k = 0; k < n * channels; k++) {
    const double* roi = assay_f64(rois) + 5 * (k / channels);
    const double* image =
        assay_f64(x) + ((int64_t)roi[0] * channels + k % channels) * height * width;
    double* to = assay_f64(out) + k * ph * pw;
    for (int64_t i = 0; i < ph * pw; i++) {
      int64_t h0, h1, w0, w1;
      pool_range(round(roi[2] * scale), round(roi[4] * scale), i / pw, ph, height, &h0, &h1);
      pool_range(round(roi[1] * scale), round(roi[3] * scale), i % pw, pw, width, &w0, &w1);
      to[i] = pool_max(image, width, h0, h1, w0, w1);
    }
  }
  return NULL;
}

// Nothing is rounded but the borders of bins. Where one lies near a whole number, engines may take
// a row or column more or less: the largest of the widest and of the narrowest bin are the ends.
static assay_status_t pool_bound(assay_bound_t* c) {
  ASSAY_TRY(assay_bound_want_exact(c, SIZE_MAX));
  if (c->rounding->documented) return NULL;  // borders are made in float64
  const assay_tensor_t *x = c->in[0], *rois = c->in[1], *y = c->out[0];
  const double scale = assay_attr_f64(c->node, "spatial_scale", 1);
  const double u = assay_bound_unit(c->rounding->compute);
  double *g, *p;
  ASSAY_TRY(assay_bound_output(c, 0, &g, &p));
  const int64_t height = x->dims[2], width = x->dims[3], ph = y->dims[2], pw = y->dims[3];
  for (int64_t i = 0; i < y->size; i++) {
    const int64_t k = i / (ph * pw), h = i / pw % ph, w = i % pw, channels = x->dims[1];
    const double* roi = assay_f64(rois) + 5 * (k / channels);
    const double* image =
        assay_f64(x) + ((int64_t)roi[0] * channels + k % channels) * height * width;
    double far = 0;
    // Corners a rounding earlier or later, and borders moved by their own error on top.
    for (int side = -1; side <= 1; side += 2) {
      int64_t at[4];
      const double start[2] = {roi[2] * scale, roi[1] * scale};
      const double end[2] = {roi[4] * scale, roi[3] * scale};
      for (int d = 0; d < 2; d++) {
        const double size = fabs(start[d]) + fabs(end[d]) + 1, e = side * 4 * u * size;
        const double low = round(start[d] - e), high = round(end[d] + e);
        const int64_t bins = d ? pw : ph, bin_at = d ? w : h, maximum = d ? width : height;
        const double bin = fmax(high - low + 1, 1) / (double)bins;
        at[2 * d] = (int64_t)clamp(floor((double)bin_at * bin - e) + low, 0, (double)maximum);
        at[2 * d + 1] =
            (int64_t)clamp(ceil((double)(bin_at + 1) * bin + e) + low, 0, (double)maximum);
      }
      far = fmax(far, fabs(pool_max(image, width, at[0], at[1], at[2], at[3]) - assay_f64(y)[i]));
    }
    g[i] = p[i] = far == far ? far : (double)INFINITY;
  }
  return NULL;
}

// ---- CropAndResize ---------------------------------------------------------------------------

static assay_status_t crop_infer(assay_infer_t* c) {
  assay_content_list_t size;
  bool known = assay_content_read(c, 3, &size) && size.n == 2;
  return roi_infer(c, known ? size.elems[0] : NULL, known ? size.elems[1] : NULL);
}

// Where output index i of n lies between two ends of an axis of `size` elements.
static double crop_at(double from, double to, int64_t i, int64_t n, int64_t size) {
  double last = (double)(size - 1);
  if (n == 1) return 0.5 * (from + to) * last;
  if (i == n - 1) return to * last;
  return from * last + (double)i * ((to - from) * last / (double)(n - 1));
}

static double crop_value(const assay_eval_t* c, const double* x, int64_t width, double y, double z,
                         bool nearest) {
  if (nearest) return x[(int64_t)round(y) * width + (int64_t)round(z)];
  int64_t top = (int64_t)floor(y), bottom = (int64_t)ceil(y);
  int64_t left = (int64_t)floor(z), right = (int64_t)ceil(z);
  double dy = y - (double)top, dz = z - (double)left;
  double tl = x[top * width + left], tr = x[top * width + right];
  double bl = x[bottom * width + left], br = x[bottom * width + right];
  double upper = assay_acc(c, tl + assay_acc(c, (tr - tl) * dz));
  double lower = assay_acc(c, bl + assay_acc(c, (br - bl) * dz));
  return assay_acc(c, upper + assay_acc(c, (lower - upper) * dy));
}

// Source: com.microsoft CropAndResize-1, after tf.image.crop_and_resize: rois are [y1, x1, y2, x2]
// as parts of the image's height and width less one; outside it the value is extrapolation_value.
static assay_status_t crop_eval(assay_eval_t* c) {
  ASSAY_TRY(roi_shapes(c, 4));
  const assay_tensor_t *x = c->in[0], *rois = c->in[1], *size = c->in[3];
  const char* mode = assay_attr_str(c->node, "mode", "bilinear");
  bool nearest = strcmp(mode, "nearest") == 0;
  if (!nearest && strcmp(mode, "bilinear") != 0) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                            "attribute mode is '%s', expected bilinear or nearest", mode);
  }
  if (size->size != 2) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                            "input 'crop_size' has shape %s, expected [2]", ASSAY_DIMS_TEXT(size));
  }
  int64_t h = assay_i64(size)[0], w = assay_i64(size)[1];
  ASSAY_TRY(pooled_size(c->node, "the height in crop_size", h));
  ASSAY_TRY(pooled_size(c->node, "the width in crop_size", w));
  double outside = assay_attr_f64(c->node, "extrapolation_value", 0);
  int64_t channels = x->dims[1], height = x->dims[2], width = x->dims[3], n = rois->dims[0];
  int64_t dims[4] = {n, channels, h, w};
  assay_tensor_t* out;
  ASSAY_TRY(assay_eval_output(c, 0, x->type, 4, dims, &out));
  if (out->size == 0) return NULL;
#pragma omp parallel for schedule(static) if (out->size > 10000)
  for (int64_t k = 0; k < n * channels; k++) {
    const double* roi = assay_f64(rois) + 4 * (k / channels);
    const double* image =
        assay_f64(x) +
        (assay_i64(c->in[2])[k / channels] * channels + k % channels) * height * width;
    double* to = assay_f64(out) + k * h * w;
    for (int64_t i = 0; i < h * w; i++) {
      double y = crop_at(roi[0], roi[2], i / w, h, height);
      double z = crop_at(roi[1], roi[3], i % w, w, width);
      bool inside = y >= 0 && y <= (double)(height - 1) && z >= 0 && z <= (double)(width - 1);
      to[i] = inside ? crop_value(c, image, width, y, z, nearest) : outside;
    }
  }
  return NULL;
}

typedef struct crop_bound {
  const assay_eval_t* e;  // in float64
  const double* image;
  int64_t height, width;
  double outside;
  bool nearest;
} crop_bound_t;

static double crop_sample(const crop_bound_t* b, double y, double z) {
  const bool inside =
      y >= 0 && y <= (double)(b->height - 1) && z >= 0 && z <= (double)(b->width - 1);
  return inside ? crop_value(b->e, b->image, b->width, y, z, b->nearest) : b->outside;
}

// The largest of the elements that a sample is made of.
static double crop_largest(const crop_bound_t* b, double y, double z) {
  double maximum = 0;
  for (int k = 0; k < 4; k++) {
    const double h = clamp(k & 1 ? ceil(y) : floor(y), 0, (double)(b->height - 1));
    const double w = clamp(k & 2 ? ceil(z) : floor(z), 0, (double)(b->width - 1));
    maximum = fmax(maximum, fabs(b->image[(int64_t)h * b->width + (int64_t)w]));
  }
  return maximum;
}

// As RoiAlign's samples: coordinates by four operations, then three interpolations of a difference,
// a product and a sum.
static assay_status_t crop_bound(assay_bound_t* c) {
  ASSAY_TRY(assay_bound_want_exact(c, SIZE_MAX));
  const assay_tensor_t *x = c->in[0], *y = c->out[0];
  const assay_inner_t inner = assay_bound_inner(c->rounding);
  const assay_eval_t e = assay_bound_as_eval(c);
  const double u = assay_bound_unit(c->rounding->compute);
  double *g, *p;
  ASSAY_TRY(assay_bound_output(c, 0, &g, &p));
  const int64_t h = y->dims[2], w = y->dims[3], channels = x->dims[1];
  crop_bound_t b = {.e = &e,
                    .height = x->dims[2],
                    .width = x->dims[3],
                    .outside = assay_attr_f64(c->node, "extrapolation_value", 0),
                    .nearest = assay_attr_is(c->node, "mode", "nearest")};
  for (int64_t i = 0; i < y->size; i++) {
    const int64_t k = i / (h * w), n = assay_i64(c->in[2])[k / channels];
    const double* roi = assay_f64(c->in[1]) + 4 * (k / channels);
    b.image = assay_f64(x) + (n * channels + k % channels) * b.height * b.width;
    const double v = crop_at(roi[0], roi[2], i / w % h, h, b.height);
    const double z = crop_at(roi[1], roi[3], i % w, w, b.width);
    const double ev = 4 * u * (fabs(roi[0]) + fabs(roi[2])) * (double)b.height;
    const double ez = 4 * u * (fabs(roi[1]) + fabs(roi[3])) * (double)b.width;
    double far = 0;
    for (int corner = 0; corner < 4; corner++) {
      const double at = crop_sample(&b, v + (corner & 1 ? ev : -ev), z + (corner & 2 ? ez : -ez));
      far = fmax(far, fabs(at - assay_f64(y)[i]));
    }
    const bool copies = b.nearest || b.width == 0 || b.height == 0 || !isfinite(v) || !isfinite(z);
    const double maximum = copies ? 0 : crop_largest(&b, v, z);
    g[i] = 2 * far + 8 * inner.u * maximum * (1 + 8 * inner.u) + 4 * inner.tiny;
    p[i] = coordinates_likely(c) * far + 6 * inner.u * maximum + 4 * inner.tiny;
    if (!(4 * maximum <= inner.max)) g[i] = p[i] = (double)INFINITY;
    if (copies) g[i] = p[i] = far;
  }
  return NULL;
}

static void crop_cost(const assay_eval_t* c, assay_cost_t* out) {
  out->flops = c->out[0] ? 9 * (double)c->out[0]->size : 0;
}

const assay_op_t assay_ops_roi[] = {
    {.domain = "",
     .name = "RoiAlign",
     .since = 10,
     .infer = align10_infer,
     .eval = align10_eval,
     .bound = align10_bound,
     .cost = align_cost},
    {.domain = "",
     .name = "RoiAlign",
     .since = 16,
     .infer = align16_infer,
     .eval = align16_eval,
     .bound = align16_bound,
     .cost = align_cost},
    {.domain = "",
     .name = "MaxRoiPool",
     .since = 1,
     .infer = pool_infer,
     .eval = pool_eval,
     .bound = pool_bound},
    {.domain = "com.microsoft",
     .name = "CropAndResize",
     .since = 1,
     .schema = "X:T, rois:T, batch_indices:M, crop_size:M -> Y:T | mode:s=bilinear, "
               "extrapolation_value:f=0 | T=float16 float double; M=int32",
     .infer = crop_infer,
     .eval = crop_eval,
     .bound = crop_bound,
     .cost = crop_cost},
    {0}};
