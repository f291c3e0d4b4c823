// Resize and Upsample: attributes, sizes, inference.
#include "ops/conv/resize.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "ops/bound_parts.h"
#include "ops/families.h"
#include "ops/math/pointwise.h"

// What the versions differ in; `since` is that of the operator's row.
typedef struct version {
  int since;
  size_t roi, scales, sizes;  // inputs; SIZE_MAX: there is none
} version_t;

static const version_t versions[] = {
    {1, SIZE_MAX, SIZE_MAX, SIZE_MAX},  // Upsample: attributes height_scale, width_scale
    {7, SIZE_MAX, SIZE_MAX, SIZE_MAX},  // Upsample: attribute scales
    {9, SIZE_MAX, 1, SIZE_MAX},         // Upsample
    {10, SIZE_MAX, 1, SIZE_MAX},        // Resize from here on
    {11, 1, 2, 3},
    {13, 1, 2, 3},  // without tf_half_pixel_for_nn
    {18, 1, 2, 3},  // axes, antialias, keep_aspect_ratio_policy
    {19, 1, 2, 3},  // half_pixel_symmetric
};

static const version_t* version_of(const assay_node_t* node) {
  const version_t* v = versions;
  while (v->since != node->op->since) v++;  // every row below has a line above
  return v;
}

// ---- attributes ------------------------------------------------------------------------------

typedef struct word {
  const char* text;
  int value;
  int since, until;  // versions that know it; until 0: all later ones
} word_t;

static const word_t modes[] = {{"nearest", RESIZE_NEAREST, 1, 0},
                               {"linear", RESIZE_LINEAR, 7, 0},
                               {"bilinear", RESIZE_LINEAR, 1, 10},
                               {"cubic", RESIZE_CUBIC, 11, 0},
                               {NULL, 0, 0, 0}};

static const word_t coordinates[] = {{"half_pixel", RESIZE_HALF_PIXEL, 11, 0},
                                     {"half_pixel_symmetric", RESIZE_HALF_PIXEL_SYMMETRIC, 19, 0},
                                     {"pytorch_half_pixel", RESIZE_PYTORCH_HALF_PIXEL, 11, 0},
                                     {"align_corners", RESIZE_ALIGN_CORNERS, 11, 0},
                                     {"asymmetric", RESIZE_ASYMMETRIC, 11, 0},
                                     {"tf_half_pixel_for_nn", RESIZE_TF_HALF_PIXEL_FOR_NN, 11, 12},
                                     {"tf_crop_and_resize", RESIZE_TF_CROP, 11, 0},
                                     {NULL, 0, 0, 0}};

static const word_t nearest_modes[] = {{"round_prefer_floor", RESIZE_ROUND_PREFER_FLOOR, 11, 0},
                                       {"round_prefer_ceil", RESIZE_ROUND_PREFER_CEIL, 11, 0},
                                       {"floor", RESIZE_FLOOR, 11, 0},
                                       {"ceil", RESIZE_CEIL, 11, 0},
                                       {NULL, 0, 0, 0}};

enum { STRETCH, NOT_LARGER, NOT_SMALLER };

static const word_t policies[] = {{"stretch", STRETCH, 18, 0},
                                  {"not_larger", NOT_LARGER, 18, 0},
                                  {"not_smaller", NOT_SMALLER, 18, 0},
                                  {NULL, 0, 0, 0}};

static assay_status_t read_word(const assay_node_t* node, const char* name, const char* otherwise,
                                const word_t* words, int since, int* out) {
  const char* text = assay_attr_str(node, name, otherwise);
  for (const word_t* w = words; w->text; w++) {
    if (since >= w->since && (w->until == 0 || since <= w->until) && strcmp(text, w->text) == 0) {
      return *out = w->value, NULL;
    }
  }
  return ASSAY_NODE_ERROR(node, ASSAY_CORRUPT, "%s is '%s', which this version does not know", name,
                          text);
}

static assay_status_t read_options(const assay_node_t* node, const version_t* v,
                                   resize_options_t* out) {
  int mode, place = RESIZE_ASYMMETRIC, nearest = RESIZE_SIMPLE;
  ASSAY_TRY(read_word(node, "mode", "nearest", modes, v->since, &mode));
  if (v->since >= 11) {
    ASSAY_TRY(read_word(node, "coordinate_transformation_mode", "half_pixel", coordinates, v->since,
                        &place));
    ASSAY_TRY(
        read_word(node, "nearest_mode", "round_prefer_floor", nearest_modes, v->since, &nearest));
  }
  *out = (resize_options_t){.mode = (resize_mode_t)mode,
                            .coordinates = (resize_coordinates_t)place,
                            .nearest = (resize_nearest_t)nearest,
                            .cubic_a = assay_attr_f64(node, "cubic_coeff_a", -0.75),
                            .exclude_outside = assay_attr_i64(node, "exclude_outside", 0) != 0,
                            .antialias = assay_attr_i64(node, "antialias", 0) != 0,
                            .extrapolation = assay_attr_f64(node, "extrapolation_value", 0)};
  return NULL;
}

// The axes that scales, sizes and roi speak of, in their order; all without the attribute.
static assay_status_t read_axes(const assay_node_t* node, int rank, int* out_n, int* out) {
  size_t n = 0;
  const int64_t* axes = assay_attr_ints(node, "axes", &n);
  bool seen[ASSAY_MAX_RANK] = {false};
  if (!axes) {
    for (int i = 0; i < rank; i++) out[i] = i;
    return *out_n = rank, NULL;
  }
  if (n > (size_t)rank) {
    return ASSAY_NODE_ERROR(node, ASSAY_CORRUPT, "axes has %zu values, the input %d axes", n, rank);
  }
  for (size_t i = 0; i < n; i++) {
    const int64_t a = axes[i] < 0 ? axes[i] + rank : axes[i];
    if (a < 0 || a >= rank || seen[a]) {
      return ASSAY_NODE_ERROR(node, ASSAY_CORRUPT,
                              "axes holds %lld, expected each of -%d to %d at most once",
                              (long long)axes[i], rank, rank - 1);
    }
    seen[a] = true;
    out[i] = (int)a;
  }
  return *out_n = (int)n, NULL;
}

// ---- sizes -----------------------------------------------------------------------------------

// floor(in * factor); false where that is not a size.
static bool scaled_size(int64_t in, double factor, int64_t* out) {
  const double size = floor((double)in * factor);
  if (!(size >= 0 && size < 0x1p62)) return false;
  *out = (int64_t)size;
  return true;
}

// The factors of an Upsample that has them as attributes. n: how many there must be.
static assay_status_t attribute_scales(const assay_node_t* node, const version_t* v, int rank,
                                       double* out) {
  if (v->since == 1) {
    if (rank != 4) {
      return ASSAY_NODE_ERROR(node, ASSAY_CORRUPT, "the input has rank %d, expected 4", rank);
    }
    out[0] = out[1] = 1;
    out[2] = assay_attr_f64(node, "height_scale", 1);
    out[3] = assay_attr_f64(node, "width_scale", 1);
  } else {
    size_t n = 0;
    const float* scales = assay_attr_floats(node, "scales", &n);
    if (n != (size_t)rank) {
      return ASSAY_NODE_ERROR(node, ASSAY_CORRUPT, "scales has %zu values, the input %d axes", n,
                              rank);
    }
    for (int i = 0; i < rank; i++) out[i] = (double)scales[i];
  }
  return NULL;
}

static assay_status_t check_scale(const assay_node_t* node, double scale) {
  if (scale > 0 && isfinite(scale)) return NULL;
  return ASSAY_NODE_ERROR(node, ASSAY_INVALID_ARGUMENT, "scales holds %g, expected more than 0",
                          scale);
}

static const assay_tensor_t* given(const assay_tensor_t* const* in, size_t n_in, size_t i) {
  return i < n_in && in[i] && in[i]->size > 0 ? in[i] : NULL;
}

// An input that must have `n` elements for each of the axes.
static assay_status_t check_count(const assay_node_t* node, const char* name,
                                  const assay_tensor_t* t, int64_t n) {
  if (t->size == n && t->rank <= 1) return NULL;
  return ASSAY_NODE_ERROR(node, ASSAY_CORRUPT, "%s has shape %s, expected [%lld]", name,
                          ASSAY_DIMS_TEXT(t), (long long)n);
}

// Sizes as asked for; with a policy the one scale that keeps the aspect ratio.
static assay_status_t fit_sizes(const assay_node_t* node, int policy, int n, const int* which,
                                const int64_t* sizes, resize_axis_t* axes) {
  double common = policy == NOT_LARGER ? INFINITY : 0;
  for (int i = 0; i < n; i++) {
    resize_axis_t* a = &axes[which[i]];
    if (sizes[i] < 0) {
      return ASSAY_NODE_ERROR(node, ASSAY_INVALID_ARGUMENT, "sizes holds %lld",
                              (long long)sizes[i]);
    }
    a->out = sizes[i];
    a->scale = a->in == 0 ? 1 : (double)a->out / (double)a->in;
    if (policy == NOT_LARGER ? a->scale < common : a->scale > common) common = a->scale;
  }
  for (int i = 0; i < n && policy != STRETCH; i++) {
    resize_axis_t* a = &axes[which[i]];
    a->scale = common;
    if (!scaled_size(1, floor(common * (double)a->in + 0.5), &a->out)) {
      return ASSAY_NODE_ERROR(node, ASSAY_INVALID_ARGUMENT, "axis %d becomes too large", which[i]);
    }
  }
  return NULL;
}

// Sizes from factors: floor(in * scale), or of the region's part of it.
static assay_status_t fit_scales(const assay_node_t* node, const resize_options_t* o, int n,
                                 const int* which, const double* scales, resize_axis_t* axes) {
  for (int i = 0; i < n; i++) {
    resize_axis_t* a = &axes[which[i]];
    ASSAY_TRY(check_scale(node, scales[i]));
    a->scale = scales[i];
    const double region = o->coordinates == RESIZE_TF_CROP ? a->end - a->start : 1;
    if (!scaled_size(a->in, region * a->scale, &a->out)) {
      return ASSAY_NODE_ERROR(node, ASSAY_INVALID_ARGUMENT,
                              "axis %d of size %lld cannot be scaled by %g", which[i],
                              (long long)a->in, region * a->scale);
    }
  }
  return NULL;
}

// roi: [start1, ..., startN, end1, ..., endN].
static assay_status_t read_roi(const assay_node_t* node, const assay_tensor_t* roi, int n,
                               const int* which, resize_axis_t* axes) {
  if (!roi) {
    return ASSAY_NODE_ERROR(node, ASSAY_CORRUPT, "tf_crop_and_resize needs the input roi");
  }
  ASSAY_TRY(check_count(node, "roi", roi, 2 * n));
  for (int i = 0; i < n; i++) {
    axes[which[i]].start = assay_f64(roi)[i];
    axes[which[i]].end = assay_f64(roi)[n + i];
    if (!isfinite(axes[which[i]].start) || !isfinite(axes[which[i]].end)) {
      return ASSAY_NODE_ERROR(node, ASSAY_INVALID_ARGUMENT, "roi holds a value that is not finite");
    }
  }
  return NULL;
}

// Everything about the axes, from the inputs' elements. dims: the input's sizes.
static assay_status_t read_plan(const assay_node_t* node, const version_t* v, int rank,
                                const int64_t* dims, const assay_tensor_t* const* in, size_t n_in,
                                resize_options_t* o, resize_axis_t* axes) {
  int n, which[ASSAY_MAX_RANK], policy = STRETCH;
  double factors[ASSAY_MAX_RANK];
  ASSAY_TRY(read_options(node, v, o));
  ASSAY_TRY(read_axes(node, rank, &n, which));
  for (int i = 0; i < rank; i++) {
    axes[i] = (resize_axis_t){.in = dims[i], .out = dims[i], .scale = 1, .start = 0, .end = 1};
  }
  if (o->coordinates == RESIZE_TF_CROP) {
    ASSAY_TRY(read_roi(node, given(in, n_in, v->roi), n, which, axes));
  }
  const assay_tensor_t *scales = given(in, n_in, v->scales), *sizes = given(in, n_in, v->sizes);
  if (v->scales == SIZE_MAX) {
    ASSAY_TRY(attribute_scales(node, v, rank, factors));
    ASSAY_TRY(fit_scales(node, o, rank, which, factors, axes));
  } else if (scales && !sizes) {
    ASSAY_TRY(check_count(node, "scales", scales, n));
    ASSAY_TRY(fit_scales(node, o, n, which, assay_f64(scales), axes));
  } else if (sizes && !scales) {
    ASSAY_TRY(check_count(node, "sizes", sizes, n));
    if (v->since >= 18) {
      ASSAY_TRY(
          read_word(node, "keep_aspect_ratio_policy", "stretch", policies, v->since, &policy));
    }
    ASSAY_TRY(fit_sizes(node, policy, n, which, assay_i64(sizes), axes));
  } else if (scales || n > 0) {  // of no axes nothing needs to be said
    return ASSAY_NODE_ERROR(node, ASSAY_CORRUPT, "%s are given, expected one of scales and sizes",
                            scales ? "both scales and sizes" : "neither scales nor sizes");
  }
  for (int i = 0; i < rank; i++) {
    axes[i].width = axes[i].scale * (double)axes[i].in;
    if (axes[i].in == 0 && axes[i].out > 0) {
      return ASSAY_NODE_ERROR(node, ASSAY_INVALID_ARGUMENT,
                              "axis %d is empty and cannot be resized to %lld", i,
                              (long long)axes[i].out);
    }
  }
  return NULL;
}

assay_status_t assay_resize_read(const assay_node_t* node, int rank, const int64_t* dims,
                                 const assay_tensor_t* const* in, size_t n_in, resize_options_t* o,
                                 resize_axis_t* axes) {
  return read_plan(node, version_of(node), rank, dims, in, n_in, o, axes);
}

// ---- inference -------------------------------------------------------------------------------

// floor(in * factor) for a dim: exact where the factor is a fraction with a small power of two
// below.
static const assay_dim_t* scaled_dim(assay_dims_t* dims, const assay_dim_t* in, double factor) {
  int64_t size, value;
  if (assay_dim_value(in, &value)) {
    return scaled_size(value, factor, &size) ? assay_dim_const(dims, size) : NULL;
  }
  for (int64_t below = 1; below <= 4096; below *= 2) {
    const double above = factor * (double)below;
    if (above != floor(above) || above > 1e6) continue;
    return assay_dim_floordiv(dims, assay_dim_mul_i(dims, in, (int64_t)above),
                              assay_dim_const(dims, below));
  }
  return NULL;
}

// All sizes and elements known: as evaluation will do it. False: not all are.
static bool infer_exactly(assay_infer_t* c, const version_t* v, const assay_shape_t* x,
                          assay_status_t* out_status, assay_shape_t* y) {
  int64_t dims[ASSAY_MAX_RANK];
  const assay_tensor_t* in[4] = {NULL};
  for (int i = 0; i < x->rank; i++) {
    if (!assay_dim_value(x->dims[i], &dims[i])) return false;
  }
  resize_options_t o;
  resize_axis_t axes[ASSAY_MAX_RANK];
  *out_status = read_options(c->node, v, &o);
  if (*out_status) return true;
  for (size_t i = 1; i < 4; i++) {
    if (!assay_infer_has(c, i)) continue;
    if (i == v->roi && o.coordinates != RESIZE_TF_CROP) continue;
    in[i] = assay_infer_constant(c, i);
    if (!in[i]) return false;
  }
  *out_status = read_plan(c->node, v, x->rank, dims, in, 4, &o, axes);
  for (int i = 0; i < x->rank && !*out_status; i++) {
    y->dims[i] = assay_dim_const(c->dims, axes[i].out);
  }
  return true;
}

// Sizes by name: what scales or sizes say about the axes that they speak of.
static assay_status_t infer_by_name(assay_infer_t* c, const version_t* v, const assay_shape_t* x,
                                    assay_shape_t* y) {
  int n, which[ASSAY_MAX_RANK], policy = STRETCH;
  double factors[ASSAY_MAX_RANK];
  resize_options_t o;
  ASSAY_TRY(read_options(c->node, v, &o));
  ASSAY_TRY(read_axes(c->node, x->rank, &n, which));
  if (v->since >= 18) {
    ASSAY_TRY(
        read_word(c->node, "keep_aspect_ratio_policy", "stretch", policies, v->since, &policy));
  }
  for (int i = 0; i < n; i++) y->dims[which[i]] = NULL;
  const bool has_scales = v->scales != SIZE_MAX && assay_infer_has(c, v->scales);
  const bool has_sizes = v->sizes != SIZE_MAX && assay_infer_has(c, v->sizes);
  const assay_tensor_t* scales = has_scales ? assay_infer_constant(c, v->scales) : NULL;
  if (v->scales == SIZE_MAX) {
    ASSAY_TRY(attribute_scales(c->node, v, x->rank, factors));
    for (int i = 0; i < n; i++) {
      ASSAY_TRY(check_scale(c->node, factors[i]));
      y->dims[i] = scaled_dim(c->dims, x->dims[i], factors[i]);
    }
  } else if (scales && scales->size > 0) {
    ASSAY_TRY(check_count(c->node, "scales", scales, n));
    for (int i = 0; i < n && o.coordinates != RESIZE_TF_CROP; i++) {
      ASSAY_TRY(check_scale(c->node, assay_f64(scales)[i]));
      y->dims[which[i]] = scaled_dim(c->dims, x->dims[which[i]], assay_f64(scales)[i]);
    }
  } else if (has_sizes && (!has_scales || scales)) {
    assay_content_t sizes;
    if (!assay_infer_content(c, v->sizes, &sizes) || sizes.n == 0) return NULL;
    if (sizes.n != n) {
      return ASSAY_NODE_ERROR(c->node, ASSAY_CORRUPT, "sizes has %lld values, expected %d",
                              (long long)sizes.n, n);
    }
    for (int i = 0; i < n && policy == STRETCH; i++) y->dims[which[i]] = sizes.elems[i];
  }
  return NULL;
}

static assay_status_t resize_infer(assay_infer_t* c) {
  const version_t* v = version_of(c->node);
  const assay_shape_t x = assay_infer_shape(c, 0);
  if (!x.known) return assay_infer_set(c, 0, ASSAY_TYPE_UNDEFINED, NULL);
  assay_shape_t y = x;
  assay_status_t st = NULL;
  if (!infer_exactly(c, v, &x, &st, &y)) st = infer_by_name(c, v, &x, &y);
  return st ? st : assay_infer_set(c, 0, ASSAY_TYPE_UNDEFINED, &y);
}

// ---- evaluation ------------------------------------------------------------------------------

static assay_status_t plan_of(const assay_eval_t* c, resize_options_t* o, resize_axis_t* axes) {
  const assay_tensor_t* x = c->in[0];
  return read_plan(c->node, version_of(c->node), x->rank, x->dims,
                   (const assay_tensor_t* const*)c->in, c->n_in, o, axes);
}

static assay_status_t resize_eval(assay_eval_t* c) {
  const assay_tensor_t* x = c->in[0];
  resize_options_t o;
  resize_axis_t axes[ASSAY_MAX_RANK];
  int64_t dims[ASSAY_MAX_RANK];
  assay_tensor_t* y;
  ASSAY_TRY(plan_of(c, &o, axes));
  for (int i = 0; i < x->rank; i++) dims[i] = axes[i].out;
  ASSAY_TRY(assay_eval_output(c, 0, x->type, x->rank, dims, &y));
  return assay_resize_run(c, &o, axes, x, y);
}

static void resize_cost(const assay_eval_t* c, assay_cost_t* out) {
  resize_options_t o;
  resize_axis_t axes[ASSAY_MAX_RANK];
  assay_status_t st = plan_of(c, &o, axes);
  if (!st) out->flops = assay_resize_flops(&o, c->in[0]->rank, axes);
  assay_status_free(st);
}

// ---- bounds -----------------------------------------------------------------------------------

typedef struct resize_bound {
  assay_bound_t* c;
  resize_options_t o;
  resize_axis_t axes[ASSAY_MAX_RANK];
} resize_bound_t;

// The operator along these axes on other elements, or on the input's as doubles (NULL); with the
// magnitudes of its weights where asked for.
static assay_status_t resize_along(const resize_bound_t* b, const resize_axis_t* axes,
                                   const double* elements, bool magnitude, assay_tensor_t** out) {
  const assay_tensor_t *x = b->c->in[0], *y = b->c->out[0];
  const assay_eval_t reader = assay_bound_as_eval(b->c);
  resize_options_t o = b->o;
  assay_tensor_t *from = NULL, *to = NULL;
  ASSAY_TRY(assay_tensor_create(ASSAY_TYPE_DOUBLE, x->rank, x->dims, &from));
  assay_status_t st = assay_tensor_create(ASSAY_TYPE_DOUBLE, y->rank, y->dims, &to);
  for (int64_t i = 0; !st && i < x->size; i++) {
    const double v = elements ? elements[i] : assay_elem_f64(x, i);
    assay_f64(from)[i] = magnitude ? fabs(v) : v;
  }
  o.magnitude = magnitude;
  if (magnitude) o.extrapolation = 0;
  if (!st) st = assay_resize_run(&reader, &o, axes, from, to);
  assay_tensor_release(from);
  if (st) return assay_tensor_release(to), st;
  *out = to;
  return NULL;
}

static assay_status_t resize_other(const resize_bound_t* b, const double* elements, bool magnitude,
                                   assay_tensor_t** out) {
  return resize_along(b, b->axes, elements, magnitude, out);
}

static double largest(const assay_tensor_t* x) {
  double max = 0;
  for (int64_t i = 0; i < x->size; i++) max = fmax(max, fabs(assay_elem_f64(x, i)));
  return max;
}

// Sums over the taps of all axes at once or one after the other, of weights that are computed.
static double resize_factor(const resize_bound_t* b, bool probable) {
  const int rank = b->c->in[0]->rank;
  const double taps = assay_resize_taps(&b->o, rank, b->axes);
  const assay_rounding_t* r = b->c->rounding;
  return assay_factor_of(assay_bound_sum(r, taps + 4 * rank), probable) +
         assay_bound_inner(r).u * 4 * rank;
}

// How far weights are off where places are computed with rounding depends on the neighbourhood:
// told from the largest element.
static void resize_local(const resize_bound_t* b, const assay_tensor_t* magnitude, bool probable,
                         double* limits) {
  const assay_rounding_t* r = b->c->rounding;
  const assay_inner_t in = assay_bound_inner(r);
  const int rank = b->c->in[0]->rank;
  const double factor = resize_factor(b, probable);
  double floor = assay_resize_taps(&b->o, rank, b->axes) * in.tiny;
  if (!r->documented)
    floor += largest(b->c->in[0]) * assay_resize_misplaced(&b->o, rank, b->axes, in.u);
  for (int64_t i = 0; i < magnitude->size; i++) {
    const double size = assay_f64(magnitude)[i];
    limits[i] += (1 + factor) * size > in.max ? (double)INFINITY : factor * size + floor;
  }
}

// What came in, by the magnitudes of the weights (or by where elements come from).
static assay_status_t resize_incoming(const resize_bound_t* b, bool probable, double* limits) {
  const double* error = assay_bound_in(b->c, 0, probable);
  assay_tensor_t* moved = NULL;
  if (!error) return NULL;
  ASSAY_TRY(resize_other(b, error, true, &moved));
  const double grown = b->o.mode == RESIZE_NEAREST ? 1 : 1 + resize_factor(b, probable);
  for (int64_t i = 0; i < moved->size; i++) limits[i] += grown * assay_f64(moved)[i];
  assay_tensor_release(moved);
  return NULL;
}

// Integers are interpolated as floats and rounded: limits in steps.
static assay_status_t resize_steps(const resize_bound_t* b, double* limits) {
  const assay_tensor_t* y = b->c->out[0];
  assay_tensor_t* real = NULL;
  ASSAY_TRY(resize_other(b, NULL, false, &real));
  for (int64_t i = 0; i < y->size; i++) {
    const double v = assay_f64(real)[i], e = limits[i];
    const double high = (double)assay_type_saturate(y->type, v + e);
    const double low = (double)assay_type_saturate(y->type, v - e);
    const double now = (double)assay_i64(y)[i];
    limits[i] =
        y->type == ASSAY_TYPE_BOOL ? fabs(v - 0.5) <= e : fmax(fabs(high - now), fabs(low - now));
  }
  assay_tensor_release(real);
  return NULL;
}

// Where the axes' places lie moved: raises the limits to how far the elements there, and what came
// in with them, are from the output.
static assay_status_t raise_to(const resize_bound_t* b, const resize_axis_t* axes,
                               double* const limits[2]) {
  const assay_tensor_t* y = b->c->out[0];
  assay_tensor_t* there = NULL;
  ASSAY_TRY(resize_along(b, axes, NULL, false, &there));
  assay_status_t st = NULL;
  for (int k = 0; !st && k < 2; k++) {
    const double* error = assay_bound_in(b->c, 0, k);
    assay_tensor_t* came = NULL;
    if (error) st = resize_along(b, axes, error, true, &came);
    for (int64_t i = 0; !st && i < y->size; i++) {
      double d = fabs(assay_f64(there)[i] - assay_elem_f64(y, i));
      if (assay_f64(there)[i] == assay_elem_f64(y, i)) d = 0;  // infinities
      d += came ? assay_f64(came)[i] : 0;
      if (!(d <= limits[k][i])) limits[k][i] = d == d ? d : (double)INFINITY;
    }
    assay_tensor_release(came);
  }
  assay_tensor_release(there);
  return st;
}

// Which element is taken (mode nearest), and whether a place lies outside the image (crops), is a
// choice by a number that engines compute in their own arithmetic; the documented order has it in
// float64. Near a tie either neighbour is right: limits reach to both, along each axis that has
// ties.
static assay_status_t resize_jumps(const resize_bound_t* b, double* const limits[2]) {
  const assay_rounding_t* r = b->c->rounding;
  const int rank = b->c->in[0]->rank;
  const double u = assay_bound_unit(r->compute);
  int jumping[ASSAY_MAX_RANK];
  unsigned n = 0;
  if (r->documented || (b->o.mode != RESIZE_NEAREST && b->o.coordinates != RESIZE_TF_CROP))
    return NULL;
  for (int i = 0; i < rank; i++) {
    bool jumps;
    ASSAY_TRY(assay_resize_may_jump(&b->o, &b->axes[i], u, &jumps));
    if (jumps) jumping[n++] = i;
  }
  for (unsigned corner = 0; n > 0 && corner < 1U << n; corner++) {
    resize_axis_t axes[ASSAY_MAX_RANK];
    memcpy(axes, b->axes, (size_t)rank * sizeof *axes);
    for (unsigned k = 0; k < n; k++) axes[jumping[k]].off = corner >> k & 1 ? u : -u;
    ASSAY_TRY(raise_to(b, axes, limits));
  }
  return NULL;
}

static assay_status_t resize_bound(assay_bound_t* c) {
  ASSAY_TRY(assay_bound_want_exact(c, 0));
  const assay_eval_t reader = assay_bound_as_eval(c);
  resize_bound_t b = {.c = c};
  double* limits[2];
  ASSAY_TRY(plan_of(&reader, &b.o, b.axes));
  const bool copies = b.o.mode == RESIZE_NEAREST;
  if (copies && !assay_bound_is_limited(c, 0) && c->rounding->documented) return NULL;
  ASSAY_TRY(assay_bound_begin(c, 0, &limits[0], &limits[1]));
  if (!limits[0] || c->out[0]->size == 0) return NULL;
  assay_tensor_t* magnitude = NULL;
  if (!copies) ASSAY_TRY(resize_other(&b, NULL, true, &magnitude));
  assay_status_t st = NULL;
  for (int k = 0; !st && k < 2; k++) {
    if (magnitude) resize_local(&b, magnitude, k, limits[k]);
    st = resize_incoming(&b, k, limits[k]);
  }
  if (!st) st = resize_jumps(&b, limits);
  for (int k = 0; !st && k < 2 && !copies && c->out[0]->store == ASSAY_STORE_I64; k++)
    st = resize_steps(&b, limits[k]);
  assay_tensor_release(magnitude);
  return st;
}

const assay_op_t assay_ops_resize[] = {{.name = "Upsample",
                                        .domain = "",
                                        .since = 1,
                                        .infer = resize_infer,
                                        .eval = resize_eval,
                                        .bound = resize_bound,
                                        .cost = resize_cost},
                                       {.name = "Upsample",
                                        .domain = "",
                                        .since = 7,
                                        .infer = resize_infer,
                                        .eval = resize_eval,
                                        .bound = resize_bound,
                                        .cost = resize_cost},
                                       {.name = "Upsample",
                                        .domain = "",
                                        .since = 9,
                                        .infer = resize_infer,
                                        .eval = resize_eval,
                                        .bound = resize_bound,
                                        .cost = resize_cost},
                                       {.name = "Resize",
                                        .domain = "",
                                        .since = 10,
                                        .infer = resize_infer,
                                        .eval = resize_eval,
                                        .bound = resize_bound,
                                        .cost = resize_cost},
                                       {.name = "Resize",
                                        .domain = "",
                                        .since = 11,
                                        .infer = resize_infer,
                                        .eval = resize_eval,
                                        .bound = resize_bound,
                                        .cost = resize_cost},
                                       {.name = "Resize",
                                        .domain = "",
                                        .since = 13,
                                        .infer = resize_infer,
                                        .eval = resize_eval,
                                        .bound = resize_bound,
                                        .cost = resize_cost},
                                       {.name = "Resize",
                                        .domain = "",
                                        .since = 18,
                                        .infer = resize_infer,
                                        .eval = resize_eval,
                                        .bound = resize_bound,
                                        .cost = resize_cost},
                                       {.name = "Resize",
                                        .domain = "",
                                        .since = 19,
                                        .infer = resize_infer,
                                        .eval = resize_eval,
                                        .bound = resize_bound,
                                        .cost = resize_cost},
                                       {0}};
