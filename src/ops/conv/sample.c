// GridSample, which reads its input at places that another input lists, and AffineGrid, which makes
// such places.
#include <math.h>
#include <string.h>

#include "base/functions.h"
#include "ops/bound_number.h"
#include "ops/families.h"
#include "ops/op.h"

// ---- options ---------------------------------------------------------------------------------

enum { NEAREST, LINEAR, CUBIC };
enum { ZEROS, BORDER, REFLECTION };

// Spatial axes, so that the taps of one place (4 ^ axes) fit on the stack.
enum { MAX_AXES = 5, MAX_TAPS = 1024 };

typedef struct options {
  int mode, padding;
  bool align_corners;
} options_t;

// Version 16 (and com.microsoft) calls the modes bilinear and bicubic and knows two axes; from 20
// on they are linear and cubic.
static bool is_old(const assay_node_t* node) { return node->op->since < 20; }

static assay_status_t read_options(const assay_node_t* node, options_t* out) {
  static const char* const old_modes[] = {"nearest", "bilinear", "bicubic"};
  static const char* const new_modes[] = {"nearest", "linear", "cubic"};
  static const char* const paddings[] = {"zeros", "border", "reflection"};
  const char* const* modes = is_old(node) ? old_modes : new_modes;
  const char* mode = assay_attr_str(node, "mode", modes[LINEAR]);
  const char* padding = assay_attr_str(node, "padding_mode", "zeros");
  *out = (options_t){
      .mode = -1, .padding = -1, .align_corners = assay_attr_i64(node, "align_corners", 0) != 0};
  for (int i = 0; i < 3; i++) {
    if (strcmp(mode, modes[i]) == 0) out->mode = i;
    if (strcmp(padding, paddings[i]) == 0) out->padding = i;
  }
  if (out->mode < 0) {
    return ASSAY_NODE_ERROR(node, ASSAY_CORRUPT, "mode is '%s', expected %s, %s or %s", mode,
                            modes[0], modes[1], modes[2]);
  }
  if (out->padding < 0) {
    return ASSAY_NODE_ERROR(node, ASSAY_CORRUPT,
                            "padding_mode is '%s', expected zeros, border or reflection", padding);
  }
  return NULL;
}

// ---- GridSample: inference -------------------------------------------------------------------

static assay_status_t sample_infer(assay_infer_t* c) {
  options_t o;
  ASSAY_TRY(read_options(c->node, &o));
  const assay_shape_t x = assay_infer_shape(c, 0), grid = assay_infer_shape(c, 1);
  const int min = is_old(c->node) ? 4 : 3, max = is_old(c->node) ? 4 : MAX_AXES + 2;
  ASSAY_TRY(assay_infer_want_rank(c, 0, min, max));
  ASSAY_TRY(assay_infer_want_rank(c, 1, min, max));
  if (!x.known && !grid.known) return assay_infer_set(c, 0, ASSAY_TYPE_UNDEFINED, NULL);
  const int rank = x.known ? x.rank : grid.rank;
  int64_t last;
  if (x.known && grid.known && (x.rank != grid.rank || assay_dim_differ(x.dims[0], grid.dims[0]))) {
    return ASSAY_NODE_ERROR(
        c->node, ASSAY_CORRUPT, "X is %s and grid %s; expected equal ranks and batches",
        ASSAY_VALTYPE_TEXT(assay_infer_type(c, 0)), ASSAY_VALTYPE_TEXT(assay_infer_type(c, 1)));
  }
  if (grid.known && assay_dim_value(grid.dims[rank - 1], &last) && last != rank - 2) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_CORRUPT,
                            "the last axis of grid has size %lld, expected %d", (long long)last,
                            rank - 2);
  }
  assay_shape_t y = {.known = true, .rank = rank};
  y.dims[0] = x.known && x.dims[0] ? x.dims[0] : grid.known ? grid.dims[0] : NULL;
  y.dims[1] = x.known ? x.dims[1] : NULL;
  for (int i = 2; i < rank && grid.known; i++) y.dims[i] = grid.dims[i - 1];
  return assay_infer_set(c, 0, ASSAY_TYPE_UNDEFINED, &y);
}

// ---- GridSample: places ----------------------------------------------------------------------

// The elements that an output is made of, and how much of each.
typedef struct taps {
  int n;
  int64_t offset[MAX_TAPS];
  double weight[MAX_TAPS];
} taps_t;

// x reflected at the two borders until it lies between them. Source: ONNX GridSample-22,
// padding_mode. With borders at one point, or an infinite x, the lower border.
static double reflect(double x, double low, double high) {
  const double range = high - low;
  if (x >= low && x <= high) return x;
  if (!(range > 0) || !isfinite(x)) return low;
  const double away = fmod(x < low ? low - x : x - high, 2 * range);
  const double inward = away <= range ? away : 2 * range - away;
  return x < low ? low + inward : high - inward;
}

// The element at index i of an axis, after padding; -1: there is none (a zero).
static int64_t pixel(const options_t* o, double i, int64_t size) {
  const double last = (double)(size - 1);
  if (o->padding == REFLECTION) {
    i = o->align_corners ? reflect(i, 0, last) : trunc(reflect(i, -0.5, last + 0.5));
  }
  if (o->padding == ZEROS) return i >= 0 && i <= last ? (int64_t)i : -1;
  if (!(i > 0)) return 0;
  return i < last ? (int64_t)i : size - 1;
}

// The place in the input of a coordinate from the grid. Cubic interpolation of a padded input is
// what PyTorch and ONNX Runtime do: only the elements are padded, the place stays where it is.
static double place(const options_t* o, double g, int64_t size) {
  const double n = (double)size;
  double x = o->align_corners ? (g + 1) / 2 * (n - 1) : ((g + 1) * n - 1) / 2;
  if (o->mode == NEAREST) x = rint(x);
  const double low = o->align_corners ? 0 : -0.5, high = n - 1 - low;
  if (o->padding == BORDER && o->mode != CUBIC && (x < low || x > high)) x = x < 0 ? 0 : n - 1;
  if (o->padding == REFLECTION && (x < low || x > high)) x = reflect(x, low, high);
  return x;
}

// The weights of the 1, 2 or 4 elements around a place that lies `r` after the first or second
// one. Source: Keys, Cubic convolution interpolation, 1981, with a = -0.75, as GridSample says.
static void axis_weights(int mode, double r, double* w) {
  const double a = -0.75;
  if (mode == NEAREST) {
    w[0] = 1;
  } else if (mode == LINEAR) {
    w[0] = 1 - r;
    w[1] = r;
  } else {
    const double p = r + 1, q = 1 - r, s = 2 - r;
    w[0] = ((a * p - 5 * a) * p + 8 * a) * p - 4 * a;
    w[1] = ((a + 2) * r - (a + 3)) * r * r + 1;
    w[2] = ((a + 2) * q - (a + 3)) * q * q + 1;
    w[3] = ((a * s - 5 * a) * s + 8 * a) * s - 4 * a;
  }
}

// Multiplies the taps so far by those of one axis.
static void add_axis(const options_t* o, double x, int64_t size, taps_t* t) {
  static const int counts[] = {1, 2, 4};
  const int n = counts[o->mode];
  double w[4];
  int64_t index[4];
  const double base = o->mode == NEAREST ? x : floor(x) - (o->mode == CUBIC);
  axis_weights(o->mode, isfinite(x) ? x - floor(x) : isnan(x) ? x : 0, w);
  for (int k = 0; k < n; k++) index[k] = pixel(o, base + k, size);
  // From the back, so that the products can be written in place.
  for (int i = t->n - 1; i >= 0; i--) {
    const int64_t offset = t->offset[i];
    const double weight = t->weight[i];
    for (int k = 0; k < n; k++) {
      t->offset[i * n + k] = offset < 0 || index[k] < 0 ? -1 : offset * size + index[k];
      t->weight[i * n + k] = weight * w[k];
    }
  }
  t->n *= n;
}

// The taps of one place: coordinates are listed from the innermost axis outwards.
static void find_taps(const options_t* o, const double* grid, int axes, const int64_t* dims,
                      taps_t* t) {
  t->n = 1;
  t->offset[0] = 0;
  t->weight[0] = 1;
  for (int i = 0; i < axes; i++) {
    add_axis(o, place(o, grid[axes - 1 - i], dims[i]), dims[i], t);
  }
}

// ---- GridSample: elements --------------------------------------------------------------------

// Sum of weight * element over the taps, in the order of the input's elements. parts: doubles an
// element, of which number `part` is taken. A NaN in the grid gives NaN, through the weights.
static double weigh(const assay_eval_t* c, const taps_t* t, const double* plane, int parts,
                    int part) {
  double sum = 0;
  for (int k = 0; k < t->n; k++) {
    if (t->weight[k] == 0) continue;
    const double v = t->offset[k] < 0 ? 0 : plane[t->offset[k] * parts + part];
    sum = assay_acc(c, sum + assay_acc(c, t->weight[k] * v));
  }
  return sum;
}

// "For integer input types, intermediate values are computed as floating point and cast to integer
// at the end."
static int64_t weigh_integer(const assay_eval_t* c, const taps_t* t, assay_type_t type,
                             const int64_t* plane) {
  double sum = 0;
  for (int k = 0; k < t->n; k++) {
    if (t->weight[k] == 0 || t->offset[k] < 0) continue;
    const int64_t v = plane[t->offset[k]];
    sum += t->weight[k] * (type == ASSAY_TYPE_UINT64 ? (double)(uint64_t)v : (double)v);
  }
  sum = assay_acc(c, sum);
  return type == ASSAY_TYPE_BOOL ? sum != 0 : assay_type_saturate(type, trunc(sum));
}

static assay_status_t put(const assay_eval_t* c, const taps_t* t, int mode, const assay_tensor_t* x,
                          int64_t plane, assay_tensor_t* y, int64_t to) {
  switch (x->store) {
    case ASSAY_STORE_F64:
      assay_f64(y)[to] = mode == NEAREST
                             ? (t->offset[0] < 0 ? 0 : assay_f64(x)[plane + t->offset[0]])
                             : weigh(c, t, assay_f64(x) + plane, 1, 0);
      return NULL;
    case ASSAY_STORE_I64:
      assay_i64(y)[to] = mode == NEAREST
                             ? (t->offset[0] < 0 ? 0 : assay_i64(x)[plane + t->offset[0]])
                             : weigh_integer(c, t, x->type, assay_i64(x) + plane);
      return NULL;
    case ASSAY_STORE_C128:
      for (int part = 0; part < 2; part++) {
        assay_c128(y)[2 * to + part] = weigh(c, t, assay_c128(x) + 2 * plane, 2, part);
      }
      return NULL;
    default:
      break;
  }
  if (t->offset[0] < 0) return assay_tensor_set_string(y, to, "", 0);
  const assay_string_t s = assay_strings(x)[plane + t->offset[0]];
  return assay_tensor_set_string(y, to, s.text, s.len);
}

static assay_status_t check_shapes(const assay_eval_t* c, const assay_tensor_t* x,
                                   const assay_tensor_t* grid, const options_t* o) {
  const int axes = x->rank - 2;
  if (grid->rank != x->rank || axes < 1 || axes > MAX_AXES || (is_old(c->node) && axes != 2) ||
      grid->dims[0] != x->dims[0] || grid->dims[x->rank - 1] != axes) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_CORRUPT,
                            "X has shape %s and grid %s; expected [N, C, D1, ..., Dr] and [N, "
                            "outputs, r], r %s",
                            ASSAY_DIMS_TEXT(x), ASSAY_DIMS_TEXT(grid),
                            is_old(c->node) ? "2" : "1 to 5");
  }
  if (x->store == ASSAY_STORE_STR && o->mode != NEAREST) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_UNSUPPORTED,
                            "strings cannot be interpolated; use mode nearest");
  }
  for (int i = 2; i < x->rank; i++) {
    if (x->dims[i] == 0 && grid->size > 0 && x->dims[1] > 0) {
      return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                              "X has shape %s: there is nothing to sample", ASSAY_DIMS_TEXT(x));
    }
  }
  return NULL;
}

static assay_status_t sample_eval(assay_eval_t* c) {
  const assay_tensor_t *x = c->in[0], *grid = c->in[1];
  options_t o;
  ASSAY_TRY(read_options(c->node, &o));
  ASSAY_TRY(check_shapes(c, x, grid, &o));
  const int axes = x->rank - 2;
  int64_t dims[ASSAY_MAX_RANK] = {x->dims[0], x->dims[1]};
  for (int i = 0; i < axes; i++) dims[2 + i] = grid->dims[1 + i];
  assay_tensor_t* y;
  ASSAY_TRY(assay_eval_output(c, 0, x->type, x->rank, dims, &y));
  if (y->size == 0) return NULL;
  const int64_t channels = dims[1], in_size = x->size / (dims[0] * channels);
  const int64_t out_size = y->size / (dims[0] * channels);
  assay_status_t first = NULL;
  // Strings are copied into memory that the tensor owns, by one thread.
#pragma omp parallel for schedule(static) if (y->size > 10000 && x->store != ASSAY_STORE_STR)
  for (int64_t i = 0; i < dims[0] * out_size; i++) {
    const int64_t n = i / out_size, at = i % out_size;
    taps_t t;
    find_taps(&o, assay_f64(grid) + i * axes, axes, x->dims + 2, &t);
    for (int64_t k = n * channels; k < (n + 1) * channels; k++) {
      assay_status_t st = put(c, &t, o.mode, x, k * in_size, y, k * out_size + at);
      if (!st) continue;
#pragma omp critical(assay_sample_status)
      first = assay_status_join(first, st);
    }
  }
  return first;
}

static void sample_cost(const assay_eval_t* c, assay_cost_t* out) {
  options_t o;
  assay_status_t st = read_options(c->node, &o);
  if (!st && o.mode != NEAREST && c->in[0]->rank > 2 && c->in[1]->rank > 2) {
    const int axes = c->in[0]->rank - 2;
    const double places = (double)c->in[1]->size / axes;
    const double channels = (double)c->in[0]->dims[1];
    out->flops = 2 * assay_pow(o.mode == LINEAR ? 2 : 4, axes) * places * (channels + 1);
  }
  assay_status_free(st);
}

// ---- GridSample: bounds ----------------------------------------------------------------------
//
// A place is made of a coordinate by a few operations; what its error does is seen at the corners
// of where it may be: interpolation is linear in each coordinate, with kinks, or nearly so, and a
// choice of the nearest element may come out differently. Weights and sum are rounded on top.

typedef struct sample_bound {
  const assay_bound_t* c;
  options_t o;
  assay_inner_t inner;
  assay_factor_t sum;
  double u;  // of coordinates: single operations
  // Of what they do: the documented order has coordinates in float64; an eighth is left for those
  // that come near it.
  double likely;
  int axes;
  double *g, *p;
} sample_bound_t;

// How far a coordinate from the grid may be off, in its own unit: 4 operations on numbers no larger
// than the place, or than the size; as many again where it is reflected.
static double grid_error(const sample_bound_t* b, double x, double e, int64_t size) {
  const double n = (double)size, spans = fabs(x + 1) * n;
  const double reflected = b->o.padding == REFLECTION ? 4 * (spans + n) : 0;
  return e + b->u * (2 * spans + 2 + reflected) * 2 / fmax(n - 1, 1);
}

static double sample_value(const sample_bound_t* b, const taps_t* t, int64_t plane) {
  const assay_tensor_t* x = b->c->in[0];
  if (b->o.mode == NEAREST) return t->offset[0] < 0 ? 0 : assay_f64(x)[plane + t->offset[0]];
  double sum = 0;
  for (int k = 0; k < t->n; k++)
    if (t->offset[k] >= 0 && t->weight[k] != 0)
      sum += t->weight[k] * assay_f64(x)[plane + t->offset[k]];
  return sum;
}

// What rounding weights and sums does at one place; cubic weights come from polynomials whose terms
// are up to 24 times as large as they are.
static void add_own(const sample_bound_t* b, const taps_t* t, int64_t plane, int64_t at) {
  const double* e[2] = {assay_bound_in(b->c, 0, false), assay_bound_in(b->c, 0, true)};
  double size = 0, all = 0, came[2] = {0};
  for (int k = 0; k < t->n; k++) {
    if (t->offset[k] < 0) continue;
    const int64_t from = plane + t->offset[k];
    const double v = fabs(assay_f64(b->c->in[0])[from]), w = fabs(t->weight[k]);
    size += w * v;
    all += v;
    for (int probable = 0; probable < 2; probable++)
      if (e[probable]) came[probable] += w * e[probable][from];
  }
  const double rough = b->o.mode == CUBIC ? 24 * b->u * b->axes * all : 0;
  const double ops = (2 * b->axes + 1) * b->inner.u, tiny = (double)t->n * b->inner.tiny;
  const bool moves = b->o.mode == NEAREST, past = !(2 * size <= b->inner.max);
  b->g[at] = 2 * b->g[at] + came[0] + (moves ? 0 : (b->sum.guaranteed + ops) * size + rough + tiny);
  b->p[at] = b->likely * b->p[at] + came[1] +
             (moves ? 0 : (b->sum.probable + ops) * size + rough / 4 + tiny);
  if (past && !moves) b->g[at] = b->p[at] = (double)INFINITY;
}

// Output place `at` of image n, all channels. room: coordinates, as many as axes.
static void bound_place(const sample_bound_t* b, int64_t n, int64_t at, int64_t out_size) {
  const assay_tensor_t *x = b->c->in[0], *y = b->c->out[0];
  const int64_t channels = x->dims[1], in_size = x->size / (x->dims[0] * channels);
  const int64_t place_at = n * out_size + at, first = place_at * b->axes;
  const double* grid = assay_f64(b->c->in[1]) + first;
  taps_t t;
  for (int64_t k = n * channels; k < (n + 1) * channels; k++)
    b->g[k * out_size + at] = b->p[k * out_size + at] = 0;
  for (int probable = 0; probable < 2; probable++) {
    const double* e = assay_bound_in(b->c, 1, probable);
    double* to = probable ? b->p : b->g;
    for (unsigned corner = 0; corner < 1U << b->axes; corner++) {
      double moved[MAX_AXES];
      for (int i = 0; i < b->axes; i++) {
        const double off = grid_error(b, grid[i], e ? e[first + i] : 0, x->dims[x->rank - 1 - i]);
        moved[i] = grid[i] + (corner >> i & 1 ? off : -off);
      }
      find_taps(&b->o, moved, b->axes, x->dims + 2, &t);
      for (int64_t k = n * channels; k < (n + 1) * channels; k++) {
        const int64_t out = k * out_size + at;
        const double d = fabs(sample_value(b, &t, k * in_size) - assay_f64(y)[out]);
        to[out] = d <= to[out] ? to[out] : d == d ? d : (double)INFINITY;
      }
    }
  }
  find_taps(&b->o, grid, b->axes, x->dims + 2, &t);
  for (int64_t k = n * channels; k < (n + 1) * channels; k++)
    add_own(b, &t, k * in_size, k * out_size + at);
}

// Integers are cut off after the sum: any of them may come out one away, or as far as an other
// choice of elements is; strings are only moved.
static assay_status_t sample_integers_bound(assay_bound_t* c, const options_t* o) {
  if (o->mode == NEAREST || c->out[0]->store != ASSAY_STORE_I64)
    return assay_bound_want_exact(c, SIZE_MAX);
  return ASSAY_NODE_ERROR(c->node, ASSAY_UNSUPPORTED,
                          "there is no rounding bound for interpolated integers");
}

static assay_status_t sample_bound(assay_bound_t* c) {
  const assay_tensor_t *x = c->in[0], *y = c->out[0];
  sample_bound_t b = {.c = c,
                      .inner = assay_bound_inner(c->rounding),
                      .u = assay_bound_unit(c->rounding->compute),
                      .likely = c->rounding->documented && assay_bound_inputs_exact(c) ? 0.125 : 1,
                      .axes = x->rank - 2};
  ASSAY_TRY(read_options(c->node, &b.o));
  if (!assay_bound_is_float(c, 0)) return sample_integers_bound(c, &b.o);
  ASSAY_TRY(assay_bound_output(c, 0, &b.g, &b.p));
  if (y->size == 0) return NULL;
  b.sum = assay_bound_sum(c->rounding, assay_pow(b.o.mode == CUBIC ? 4 : 2, b.axes));
  const int64_t out_size = y->size / (y->dims[0] * y->dims[1]);
#pragma omp parallel for schedule(static) if (y->size > 10000)
  for (int64_t i = 0; i < y->dims[0] * out_size; i++)
    bound_place(&b, i / out_size, i % out_size, out_size);
  return NULL;
}

// ---- AffineGrid ------------------------------------------------------------------------------
// grid[n, ...place, :] = theta[n] * (place, 1), places from -1 to 1, innermost axis first.
// Source: ONNX AffineGrid-20.

static assay_status_t affine_infer(assay_infer_t* c) {
  const assay_shape_t theta = assay_infer_shape(c, 0);
  ASSAY_TRY(assay_infer_want_rank(c, 0, 3, 3));
  assay_content_t size;
  const bool has_size = assay_infer_content(c, 1, &size);
  const assay_shape_t vector = assay_infer_shape(c, 1);
  int64_t axes = -1, n;
  if (theta.known && assay_dim_value(theta.dims[1], &n)) axes = n;
  if (axes < 0 && vector.known && vector.rank == 1 && assay_dim_value(vector.dims[0], &n)) {
    axes = n - 2;
  }
  if (axes < 0) return assay_infer_set(c, 0, ASSAY_TYPE_UNDEFINED, NULL);
  if ((axes != 2 && axes != 3) || (has_size && size.n != axes + 2)) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_CORRUPT,
                            "theta is %s and size %s; expected [N, 2, 3] and 4 or [N, 3, 4] and 5",
                            ASSAY_VALTYPE_TEXT(assay_infer_type(c, 0)),
                            ASSAY_VALTYPE_TEXT(assay_infer_type(c, 1)));
  }
  assay_shape_t y = {.known = true, .rank = (int)axes + 2};
  y.dims[0] = theta.known && theta.dims[0] ? theta.dims[0] : has_size ? size.elems[0] : NULL;
  for (int i = 0; i < axes && has_size; i++) y.dims[1 + i] = size.elems[2 + i];
  y.dims[axes + 1] = assay_dim_const(c->dims, axes);
  return assay_infer_set(c, 0, ASSAY_TYPE_UNDEFINED, &y);
}

// Place i of n from -1 to 1. One place that is both corners is in the middle, as in PyTorch.
static double affine_place(bool align_corners, int64_t i, int64_t n) {
  if (!align_corners) return (2 * (double)i + 1) / (double)n - 1;
  return n > 1 ? 2 * (double)i / (double)(n - 1) - 1 : 0;
}

static assay_status_t affine_check(const assay_eval_t* c) {
  const assay_tensor_t *theta = c->in[0], *size = c->in[1];
  const int64_t axes = theta->rank == 3 ? theta->dims[1] : -1;
  if ((axes != 2 && axes != 3) || theta->dims[2] != axes + 1 || size->rank != 1 ||
      size->dims[0] != axes + 2 || assay_i64(size)[0] != theta->dims[0]) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_CORRUPT,
                            "theta has shape %s and size %s, size[0] is %lld; expected [N, 2, 3] "
                            "and [4] or [N, 3, 4] and [5], and N",
                            ASSAY_DIMS_TEXT(theta), ASSAY_DIMS_TEXT(size),
                            size->size > 0 ? (long long)assay_i64(size)[0] : -1LL);
  }
  for (int i = 1; i < size->dims[0]; i++) {
    if (assay_i64(size)[i] < 0) {
      return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT, "size holds %lld",
                              (long long)assay_i64(size)[i]);
    }
  }
  return NULL;
}

static assay_status_t affine_eval(assay_eval_t* c) {
  ASSAY_TRY(affine_check(c));
  const assay_tensor_t* theta = c->in[0];
  const bool align = assay_attr_i64(c->node, "align_corners", 0) != 0;
  const int axes = (int)theta->dims[1];
  int64_t dims[5] = {theta->dims[0]};
  for (int i = 0; i < axes; i++) dims[1 + i] = assay_i64(c->in[1])[2 + i];
  dims[axes + 1] = axes;
  assay_tensor_t* y;
  ASSAY_TRY(assay_eval_output(c, 0, theta->type, axes + 2, dims, &y));
  if (y->size == 0) return NULL;
  const int64_t places = y->size / axes / dims[0];
#pragma omp parallel for schedule(static) if (y->size > 20000)
  for (int64_t i = 0; i < dims[0] * places; i++) {
    double at[3];
    int64_t rest = i % places;
    for (int k = 0; k < axes; k++) {  // x, y, z: from the innermost axis
      at[k] = assay_acc(c, affine_place(align, rest % dims[axes - k], dims[axes - k]));
      rest /= dims[axes - k];
    }
    const double* m = assay_f64(theta) + i / places * axes * (axes + 1);
    for (int r = 0; r < axes; r++, m += axes + 1) {
      double sum = 0;
      for (int k = 0; k < axes; k++) sum = assay_acc(c, sum + assay_acc(c, m[k] * at[k]));
      assay_f64(y)[i * axes + r] = assay_acc(c, sum + m[axes]);
    }
  }
  return NULL;
}

// Places are off by two roundings of numbers up to 2, or, added up step by step, by as many as
// there are places.
static assay_status_t affine_bound(assay_bound_t* c) {
  const assay_arithmetic_t a = assay_arithmetic_of(c);
  const assay_tensor_t *theta = c->in[0], *y = c->out[0];
  const bool align = assay_attr_i64(c->node, "align_corners", 0) != 0;
  const int axes = (int)theta->dims[1];
  double *g, *p;
  ASSAY_TRY(assay_bound_output(c, 0, &g, &p));
  if (y->size == 0) return NULL;
  const int64_t places = y->size / axes / y->dims[0];
  for (int64_t i = 0; i < y->dims[0] * places; i++) {
    assay_number_t at[3];
    int64_t rest = i % places;
    for (int k = 0; k < axes; k++) {
      const int64_t n = y->dims[axes - k];
      const double steps = c->rounding->documented ? 4 : 4 + (double)n;
      at[k] = assay_number_exact(affine_place(align, rest % n, n));
      at[k].g = steps * a.inner.u;
      at[k].s2 = steps * a.inner.u * a.inner.u / 4;
      rest /= n;
    }
    const int64_t m = i / places * axes * (axes + 1);
    for (int r = 0; r < axes; r++) {
      assay_number_sum_t s = {0};
      for (int k = 0; k <= axes; k++)
        assay_number_sum_add_product(&s, assay_number_input(c, 0, m + r * (axes + 1) + k),
                                     k < axes ? at[k] : assay_number_exact(1));
      assay_number_limits(&a, assay_number_sum_end(&a, &s), &g[i * axes + r], &p[i * axes + r]);
    }
  }
  return NULL;
}

static void affine_cost(const assay_eval_t* c, assay_cost_t* out) {
  if (c->out[0] && c->in[0]->rank == 3) {
    out->flops = 2 * (double)c->out[0]->size * (double)c->in[0]->dims[2];
  }
}

const assay_op_t assay_ops_sample[] = {
    {.name = "GridSample",
     .domain = "",
     .since = 16,
     .infer = sample_infer,
     .eval = sample_eval,
     .bound = sample_bound,
     .cost = sample_cost},
    {.name = "GridSample",
     .domain = "",
     .since = 20,
     .infer = sample_infer,
     .eval = sample_eval,
     .bound = sample_bound,
     .cost = sample_cost},
    {.name = "AffineGrid",
     .domain = "",
     .since = 20,
     .infer = affine_infer,
     .eval = affine_eval,
     .bound = affine_bound,
     .cost = affine_cost},
    {.name = "GridSample",
     .domain = "com.microsoft",
     .since = 1,
     .schema = "X:T1, Grid:T2 -> Y:T1 | align_corners:i=0, mode:s=bilinear, padding_mode:s=zeros "
               "| T1=ALL; T2=float16 float double",
     .infer = sample_infer,
     .eval = sample_eval,
     .bound = sample_bound,
     .cost = sample_cost},
    {0}};
