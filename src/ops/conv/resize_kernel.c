// The kernels of Resize: a table of taps for each axis, then one pass an axis.
//
// Interpolation is separable, so each axis is done by itself, from the first to the last: an output
// element is the sum of weight * element over the taps, from the lowest to the highest. In the
// arithmetics F32 and NARROW weights, products and sums are rounded.
#include <math.h>
#include <string.h>

#include "ops/conv/resize.h"

void assay_resize_table_deinit(resize_table_t* t) {
  assay_free(t->index);
  assay_free(t->weight);
  assay_free(t->outside);
}

// The place in the input of output place j. Source: ONNX Resize-19; align_corners divides by the
// fractional width less one, as ONNX's own tests have it.
static double true_place(resize_coordinates_t mode, const resize_axis_t* a, int64_t j) {
  const double x = (double)j, last = (double)(a->in - 1);
  switch (mode) {
    case RESIZE_HALF_PIXEL:
      return (x + 0.5) / a->scale - 0.5;
    case RESIZE_HALF_PIXEL_SYMMETRIC: {
      const double adjustment = (double)a->out / a->width;
      return (double)a->in / 2 * (1 - adjustment) + (x + 0.5) / a->scale - 0.5;
    }
    case RESIZE_PYTORCH_HALF_PIXEL:
      return a->out > 1 ? (x + 0.5) / a->scale - 0.5 : 0;
    case RESIZE_ALIGN_CORNERS:
      return a->out > 1 ? x * last / (a->width - 1) : 0;
    case RESIZE_ASYMMETRIC:
      return x / a->scale;
    case RESIZE_TF_HALF_PIXEL_FOR_NN:
      return (x + 0.5) / a->scale;
    case RESIZE_TF_CROP:
      break;
  }
  if (a->out > 1) {
    return a->start * last + x * (a->end - a->start) * last / (double)(a->out - 1);
  }
  return 0.5 * (a->start + a->end) * last;
}

// The place as a bound asks for it. In another arithmetic it takes some four operations (scale and
// reciprocal included) on numbers as large as the place, or the axis where those cancel.
static double resize_place(resize_coordinates_t mode, const resize_axis_t* a, int64_t j) {
  const double x = true_place(mode, a, j);
  double size = fabs(x) + 1;
  if (a->off == 0) return x;
  if (mode == RESIZE_HALF_PIXEL_SYMMETRIC) size += (double)a->in;
  if (mode == RESIZE_TF_CROP) size += (fabs(a->start) + fabs(a->end)) * (double)a->in;
  return x + 4 * a->off * size;
}

// The integer nearest to a place, within the axis.
static int64_t clamp_index(double x, int64_t in) {
  if (!(x > 0)) return 0;  // NaN, too
  return x < (double)(in - 1) ? (int64_t)x : in - 1;
}

static int64_t nearest_index(resize_nearest_t mode, const resize_axis_t* a, double x) {
  switch (mode) {
    case RESIZE_ROUND_PREFER_FLOOR:
      return clamp_index(ceil(x - 0.5), a->in);
    case RESIZE_ROUND_PREFER_CEIL:
      return clamp_index(floor(x + 0.5), a->in);
    case RESIZE_FLOOR:
      return clamp_index(floor(x), a->in);
    case RESIZE_CEIL:
      return clamp_index(ceil(x), a->in);
    case RESIZE_SIMPLE:
      break;
  }
  return clamp_index(a->scale < 1 ? ceil(x) : floor(x), a->in);
}

// The resampling filter at distance x. Source: Keys, Cubic convolution interpolation for digital
// image processing, 1981, equation 4.
static double filter(const resize_options_t* o, double x) {
  const double a = o->cubic_a;
  x = fabs(x);
  if (o->mode == RESIZE_LINEAR) return x < 1 ? 1 - x : 0;
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

// The taps of one output place: from `first` on, weights normalized where they must be.
static void fill_taps(const resize_options_t* o, const resize_axis_t* a, double x, double stretch,
                      int64_t reach, int64_t taps, int64_t* index, double* weight) {
  // Far outside all taps are the edge; so far that the place itself can stand there.
  if (!(x > -4 * (double)taps)) x = -4 * (double)taps;
  const double limit = (double)a->in + 4 * (double)taps;
  if (x > limit) x = limit;
  double base = floor(x), sum = 0;
  if (base == x) base -= 1;  // a place on an element counts as the end of the interval before it
  for (int64_t i = 0; i < taps; i++) {
    const double at = base + (double)(i - reach + 1);
    weight[i] = filter(o, stretch * (at - x));
    if (o->exclude_outside && (at < 0 || at >= (double)a->in)) weight[i] = 0;
    sum += weight[i];
    index[i] = clamp_index(at, a->in);
  }
  if ((!o->exclude_outside && stretch == 1) || sum == 0) return;
  for (int64_t i = 0; i < taps; i++) weight[i] /= sum;
}

// Taps on each side of a place: 1 or 2, or more when an antialiasing filter is stretched.
static int64_t filter_reach(const resize_options_t* o, const resize_axis_t* a,
                            double* out_stretch) {
  const double support = o->mode == RESIZE_LINEAR ? 1 : 2;
  *out_stretch = o->antialias && a->scale < 1 ? a->scale : 1;
  const double reach = -floor(-support / *out_stretch);
  // The filter never covers more than twice the input, since the output has an element at least.
  const double max = 2 * (double)a->in + 4;
  return (int64_t)(reach < max ? reach : max);
}

assay_status_t assay_resize_table_init(const assay_eval_t* c, const resize_options_t* o,
                                       const resize_axis_t* a, resize_table_t* out) {
  *out = (resize_table_t){.taps = 1};
  double stretch = 1;
  int64_t reach = 0;
  if (o->mode != RESIZE_NEAREST) {
    reach = filter_reach(o, a, &stretch);
    out->taps = 2 * reach;
  }
  int64_t n;
  if (!assay_mul_i64(a->out, out->taps, &n)) return assay_status_no_memory();
  assay_status_t st = assay_new_array((size_t)n, sizeof *out->index, &out->index);
  if (!st && reach > 0) st = assay_new_array((size_t)n, sizeof *out->weight, &out->weight);
  if (!st && o->coordinates == RESIZE_TF_CROP) {
    st = assay_new_array((size_t)a->out, sizeof *out->outside, &out->outside);
  }
  if (st) return st;
  for (int64_t j = 0; j < a->out; j++) {
    const double x = resize_place(o->coordinates, a, j);
    if (out->outside) out->outside[j] = !(x >= 0 && x <= (double)(a->in - 1));
    if (reach == 0) {
      out->index[j] = nearest_index(o->nearest, a, x);
    } else {
      fill_taps(o, a, x, stretch, reach, out->taps, out->index + j * out->taps,
                out->weight + j * out->taps);
    }
  }
  for (int64_t i = 0; i < n && reach > 0; i++) {
    const double w = assay_acc(c, out->weight[i]);
    out->weight[i] = o->magnitude ? fabs(w) : w;
  }
  return NULL;
}

// Whether an axis stays as it is.
bool assay_resize_is_identity(const resize_options_t* o, const resize_axis_t* a) {
  return a->in == a->out && a->scale == 1 &&
         (o->coordinates != RESIZE_TF_CROP || (a->start == 0 && a->end == 1));
}

// ---- one pass --------------------------------------------------------------------------------

// y[out, inner] from x[in, inner]: rows j0 to j1.
static void pass_rows(const assay_eval_t* c, const resize_table_t* t, int64_t inner,
                      const double* x, int64_t j0, int64_t j1, double* y) {
  const bool exact = c->arith == ASSAY_ARITH_F64;
  for (int64_t j = j0; j < j1; j++) {
    const int64_t* index = t->index + j * t->taps;
    const double* weight = t->weight + j * t->taps;
    double* to = y + j * inner;
    memset(to, 0, (size_t)inner * sizeof *to);
    for (int64_t k = 0; k < t->taps; k++) {
      if (weight[k] == 0) continue;
      const double *from = x + index[k] * inner, w = weight[k];
      if (exact) {
        for (int64_t i = 0; i < inner; i++) to[i] += w * from[i];
      } else {
        for (int64_t i = 0; i < inner; i++) {
          to[i] = assay_acc(c, to[i] + assay_acc(c, w * from[i]));
        }
      }
    }
  }
}

// The same along the last axis (inner == 1) for one line.
static void pass_line(const assay_eval_t* c, const resize_table_t* t, const double* x, int64_t out,
                      double* y) {
  const bool exact = c->arith == ASSAY_ARITH_F64;
  const int64_t* index = t->index;
  const double* weight = t->weight;
  for (int64_t j = 0; j < out; j++, index += t->taps, weight += t->taps) {
    double sum = 0;
    for (int64_t k = 0; k < t->taps; k++) {
      if (weight[k] == 0) continue;
      sum = exact ? sum + weight[k] * x[index[k]]
                  : assay_acc(c, sum + assay_acc(c, weight[k] * x[index[k]]));
    }
    y[j] = sum;
  }
}

static void pass(const assay_eval_t* c, const resize_table_t* t, const resize_axis_t* a,
                 int64_t outer, int64_t inner, const double* x, double* y) {
  const double work = (double)outer * (double)a->out * (double)inner * (double)t->taps;
  // Rows of all blocks are shared out among the threads, some at a time.
  const int64_t some = inner == 1 ? a->out : 1 + 16384 / (inner * t->taps);
  const int64_t parts = (a->out + some - 1) / some;
#pragma omp parallel for schedule(static) if (work > 100000)
  for (int64_t i = 0; i < outer * parts; i++) {
    const int64_t o = i / parts, j0 = i % parts * some;
    const double* from = x + o * a->in * inner;
    double* to = y + o * a->out * inner;
    if (inner == 1) {
      pass_line(c, t, from, a->out, to);
    } else {
      pass_rows(c, t, inner, from, j0, j0 + some < a->out ? j0 + some : a->out, to);
    }
  }
}

// ---- floating point: linear and cubic --------------------------------------------------------

// Runs all passes on x (parts: 2 doubles an element for complex numbers); result in *out.
static assay_status_t interpolate(const assay_eval_t* c, const resize_options_t* o, int rank,
                                  const resize_axis_t* axes, const resize_table_t* tables,
                                  int64_t parts, const double* x, double* y) {
  double* now = NULL;  // between passes
  const double* from = x;
  int last = -1;
  for (int i = 0; i < rank; i++) last = assay_resize_is_identity(o, &axes[i]) ? last : i;
  assay_status_t st = NULL;
  int64_t outer = 1;
  for (int i = 0; i <= last && !st; i++) {
    int64_t inner = parts;
    for (int k = i + 1; k < rank; k++) inner *= axes[k].in;
    if (!assay_resize_is_identity(o, &axes[i])) {
      double* to = y;
      if (i < last) {
        int64_t n;
        st = assay_mul_i64(outer * axes[i].out, inner, &n)
                 ? assay_new_array((size_t)n, sizeof *to, &to)
                 : assay_status_no_memory();
        if (st) break;
      }
      pass(c, &tables[i], &axes[i], outer, inner, from, to);
      assay_free(now);
      now = i < last ? to : NULL;
      from = to;
    }
    outer *= axes[i].out;
  }
  if (!st && last < 0) {
    int64_t n = parts;
    for (int i = 0; i < rank; i++) n *= axes[i].in;
    memcpy(y, x, (size_t)n * sizeof *y);
  }
  assay_free(now);
  return st;
}

// ---- nearest ---------------------------------------------------------------------------------

// Copies elements of `size` bytes; for each row of the output the row of the input that it is.
static void gather(const resize_options_t* o, int rank, const resize_axis_t* axes,
                   const resize_table_t* tables, size_t size, const char* x, char* y) {
  const resize_axis_t* ax = &axes[rank - 1];
  const bool whole = assay_resize_is_identity(o, ax);
  const int64_t* index = tables[rank - 1].index;
  int64_t rows = 1;
  for (int i = 0; i < rank - 1; i++) rows *= axes[i].out;
#pragma omp parallel for schedule(static) if (rows * ax->out > 100000)
  for (int64_t r = 0; r < rows; r++) {
    int64_t from = 0, rest = r, stride = 1;
    for (int i = rank - 2; i >= 0; i--) {
      const int64_t at = rest % axes[i].out;
      rest /= axes[i].out;
      from += (assay_resize_is_identity(o, &axes[i]) ? at : tables[i].index[at]) * stride;
      stride *= axes[i].in;
    }
    const char* src = x + (size_t)(from * ax->in) * size;
    char* dst = y + (size_t)(r * ax->out) * size;
    if (whole) {
      memcpy(dst, src, (size_t)ax->out * size);
    } else if (size == sizeof(uint64_t)) {
      for (int64_t j = 0; j < ax->out; j++) memcpy(dst + 8 * j, src + 8 * index[j], 8);
    } else {
      for (int64_t j = 0; j < ax->out; j++) {
        memcpy(dst + (size_t)j * size, src + (size_t)index[j] * size, size);
      }
    }
  }
}

// ---- the outside of the region of interest ---------------------------------------------------

static void extrapolate(const resize_options_t* o, int rank, const resize_table_t* tables,
                        assay_tensor_t* y) {
  int64_t at[ASSAY_MAX_RANK] = {0};
  for (int64_t i = 0; i < y->size; i++) {
    bool outside = false;
    for (int d = 0; d < rank; d++)
      outside = outside || (tables[d].outside && tables[d].outside[at[d]]);
    if (outside && y->store == ASSAY_STORE_F64) {
      assay_f64(y)[i] = o->extrapolation;
    } else if (outside && y->store == ASSAY_STORE_I64) {
      assay_i64(y)[i] = y->type == ASSAY_TYPE_BOOL ? o->extrapolation != 0
                                                   : assay_type_saturate(y->type, o->extrapolation);
    } else if (outside && y->store == ASSAY_STORE_C128) {
      assay_c128(y)[2 * i] = o->extrapolation;
      assay_c128(y)[2 * i + 1] = 0;
    }
    for (int d = rank - 1; d >= 0; d--) {
      if (++at[d] < y->dims[d]) break;
      at[d] = 0;
    }
  }
}

// ---- all of it -------------------------------------------------------------------------------

// Integers are interpolated as doubles and rounded to nearest, as onnx.reference does it.
static assay_status_t interpolate_integers(const assay_eval_t* c, const resize_options_t* o,
                                           const resize_axis_t* axes, const resize_table_t* tables,
                                           const assay_tensor_t* x, assay_tensor_t* y) {
  double *from = NULL, *to = NULL;
  assay_status_t st = assay_new_array((size_t)x->size, sizeof *from, &from);
  if (!st) st = assay_new_array((size_t)y->size, sizeof *to, &to);
  if (!st) {
    const bool is_u64 = x->type == ASSAY_TYPE_UINT64;
    for (int64_t i = 0; i < x->size; i++) {
      from[i] = is_u64 ? (double)(uint64_t)assay_i64(x)[i] : (double)assay_i64(x)[i];
    }
    st = interpolate(c, o, x->rank, axes, tables, 1, from, to);
  }
  for (int64_t i = 0; !st && i < y->size; i++) {
    assay_i64(y)[i] =
        y->type == ASSAY_TYPE_BOOL ? to[i] >= 0.5 : assay_type_saturate(y->type, to[i]);
  }
  assay_free(from);
  assay_free(to);
  return st;
}

static assay_status_t resize_all(const assay_eval_t* c, const resize_options_t* o,
                                 const resize_axis_t* axes, const resize_table_t* tables,
                                 const assay_tensor_t* x, assay_tensor_t* y) {
  const int rank = x->rank;
  if (rank == 0 || o->mode == RESIZE_NEAREST) {
    const size_t size = assay_store_elem_bytes(x->store);
    if (rank == 0) {
      memcpy(y->data, x->data, size);
    } else if (x->store != ASSAY_STORE_STR) {
      gather(o, rank, axes, tables, size, x->data, y->data);
    } else {
      for (int64_t i = 0; i < y->size; i++) {
        int64_t from = 0, rest = i, stride = 1;
        for (int d = rank - 1; d >= 0; d--) {
          const int64_t at = rest % axes[d].out;
          rest /= axes[d].out;
          from += (assay_resize_is_identity(o, &axes[d]) ? at : tables[d].index[at]) * stride;
          stride *= axes[d].in;
        }
        const assay_string_t s = assay_strings(x)[from];
        ASSAY_TRY(assay_tensor_set_string(y, i, s.text, s.len));
      }
    }
    return NULL;
  }
  switch (x->store) {
    case ASSAY_STORE_F64:
      return interpolate(c, o, rank, axes, tables, 1, assay_f64(x), assay_f64(y));
    case ASSAY_STORE_C128:
      return interpolate(c, o, rank, axes, tables, 2, assay_c128(x), assay_c128(y));
    case ASSAY_STORE_I64:
      return interpolate_integers(c, o, axes, tables, x, y);
    default:
      return ASSAY_NODE_ERROR(c->node, ASSAY_UNSUPPORTED,
                              "strings cannot be interpolated; use mode nearest");
  }
}

assay_status_t assay_resize_run(const assay_eval_t* c, const resize_options_t* o,
                                const resize_axis_t* axes, const assay_tensor_t* x,
                                assay_tensor_t* y) {
  resize_table_t tables[ASSAY_MAX_RANK] = {0};
  assay_status_t st = NULL;
  for (int i = 0; i < x->rank && !st && y->size > 0; i++) {
    if (!assay_resize_is_identity(o, &axes[i]))
      st = assay_resize_table_init(c, o, &axes[i], &tables[i]);
  }
  if (!st && y->size > 0) st = resize_all(c, o, axes, tables, x, y);
  if (!st && o->coordinates == RESIZE_TF_CROP) extrapolate(o, x->rank, tables, y);
  for (int i = 0; i < x->rank; i++) assay_resize_table_deinit(&tables[i]);
  return st;
}

assay_status_t assay_resize_may_jump(const resize_options_t* o, const resize_axis_t* a, double u,
                                     bool* out) {
  const assay_eval_t exact = {.arith = ASSAY_ARITH_F64};
  resize_axis_t down = *a, up = *a;
  resize_table_t tables[2] = {0};
  *out = false;
  if (assay_resize_is_identity(o, a) || a->in == 0 || a->out == 0) return NULL;
  down.off = -u, up.off = u;
  assay_status_t st = assay_resize_table_init(&exact, o, &down, &tables[0]);
  if (!st) st = assay_resize_table_init(&exact, o, &up, &tables[1]);
  for (int64_t j = 0; !st && !*out && j < a->out; j++) {
    if (o->mode == RESIZE_NEAREST) *out |= tables[0].index[j] != tables[1].index[j];
    if (tables[0].outside) *out |= tables[0].outside[j] != tables[1].outside[j];
  }
  assay_resize_table_deinit(&tables[0]);
  assay_resize_table_deinit(&tables[1]);
  return st;
}

double assay_resize_taps(const resize_options_t* o, int rank, const resize_axis_t* axes) {
  double taps = 1, stretch;
  for (int i = 0; i < rank && o->mode != RESIZE_NEAREST; i++)
    if (!assay_resize_is_identity(o, &axes[i]))
      taps *= 2 * (double)filter_reach(o, &axes[i], &stretch);
  return taps;
}

// A place takes some four operations on numbers up to the size of the axis; the filter is no
// steeper than 1 (linear) or 2 + 2 |a| (cubic) and its polynomial's own rounding no more than 20 u
// (1 + |a|). Weights that are divided by their sum share it.
double assay_resize_misplaced(const resize_options_t* o, int rank, const resize_axis_t* axes,
                              double u) {
  double all = 0, others = 1, stretch;
  const bool cubic = o->mode == RESIZE_CUBIC;
  const double a = cubic ? 1 + fabs(o->cubic_a) : 0.5;
  for (int i = 0; i < rank; i++) {
    if (assay_resize_is_identity(o, &axes[i])) continue;
    const double taps = 2 * (double)filter_reach(o, &axes[i], &stretch) + 2;
    const double size = fmax((double)axes[i].in, fabs(axes[i].width)) + 2;
    all += taps * (4 * u * size * 2 * a + 20 * u * a) * stretch;
    others *= cubic ? 1 + 2 * a : 1;
  }
  return all * others * 2;
}

double assay_resize_flops(const resize_options_t* o, int rank, const resize_axis_t* axes) {
  if (o->mode == RESIZE_NEAREST) return 0;
  double flops = 0, stretch;
  for (int i = 0; i < rank; i++) {
    if (assay_resize_is_identity(o, &axes[i]) || axes[i].in == 0) continue;
    double n = 2 * 2 * (double)filter_reach(o, &axes[i], &stretch);
    for (int k = 0; k < rank; k++) n *= (double)(k <= i ? axes[k].out : axes[k].in);
    flops += n;
  }
  return flops;
}
