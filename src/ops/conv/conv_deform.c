// DeformConv, whose kernel samples the input at places of its own, and Col2Im.
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/functions.h"
#include "ops/bound.h"
#include "ops/conv/conv.h"
#include "ops/families.h"

// ---- DeformConv ------------------------------------------------------------------------------
// Source: ONNX DeformConv-22. Kernel position k of output position o samples the input at
// o * stride - pad + k * dilation + offset, multilinearly, zeros outside; times mask.

typedef struct deform {
  int64_t groups;        // offset groups
  const double* offset;  // [n, groups, kernel, axes, out]
  const double* mask;    // [n, groups, kernel, out] or NULL
} deform_t;

enum { X, W, OFFSET, BIAS, MASK };

static assay_status_t deform_groups(const assay_node_t* node, int64_t channels, int64_t* out) {
  *out = assay_attr_i64(node, "offset_group", 1);
  if (*out >= 1 && (channels < 0 || channels % *out == 0)) return NULL;
  return ASSAY_NODE_ERROR(node, ASSAY_CORRUPT,
                          "%lld channels cannot be divided into %lld groups; check offset_group",
                          (long long)channels, (long long)*out);
}

static assay_status_t deform_infer(assay_infer_t* c) {
  const assay_shape_t x = assay_infer_shape(c, X);
  int64_t channels = -1, groups;
  if (x.known && x.rank > 1 && !assay_dim_value(x.dims[1], &channels)) channels = -1;
  ASSAY_TRY(deform_groups(c->node, channels, &groups));
  if (x.known) ASSAY_TRY(assay_infer_want_rank(c, OFFSET, x.rank, x.rank));
  return assay_conv_infer(c, X, W, BIAS, false, ASSAY_TYPE_UNDEFINED);
}

// The multilinear interpolation of a plane at a point; 0 outside.
static double sample(const assay_window_t* w, const double* plane, const double* at) {
  int64_t base[ASSAY_MAX_RANK];
  double part[ASSAY_MAX_RANK], sum = 0;
  for (int i = 0; i < w->rank; i++) {
    // Also false for NaN; past these limits all corners are outside.
    if (!(at[i] > -1 && at[i] < (double)w->axis[i].in)) return 0;
    const double floor_at = floor(at[i]);
    base[i] = (int64_t)floor_at;
    part[i] = at[i] - floor_at;
  }
  for (uint32_t corner = 0; corner < UINT32_C(1) << w->rank; corner++) {
    double weight = 1;
    int64_t index = 0;
    bool inside = true;
    for (int i = 0; i < w->rank; i++) {
      const bool upper = corner >> i & 1;
      const int64_t p = base[i] + upper;
      inside = inside && p >= 0 && p < w->axis[i].in;
      weight *= upper ? part[i] : 1 - part[i];
      index = inside ? index * w->axis[i].in + p : 0;
    }
    if (inside && weight != 0) sum += weight * plane[index];
  }
  return sum;
}

// One row of the panel: channel `ch` of sample n, kernel position q.
static void deform_row(const assay_conv_panel_t* p, int64_t n, int64_t ch, int64_t q, int64_t t0,
                       int64_t t1, double* out) {
  const assay_conv_t* s = p->conv;
  const deform_t* d = p->user;
  const int rank = s->w.rank;
  const int64_t og = n * d->groups + ch / (s->c / d->groups);
  const double* offset = d->offset + (og * s->kernel_size + q) * rank * s->out_size;
  const double* mask = d->mask ? d->mask + (og * s->kernel_size + q) * s->out_size : NULL;
  const double* plane = p->x + (n * s->c + ch) * s->in_size;
  int64_t o[ASSAY_MAX_RANK], k[ASSAY_MAX_RANK], rest = t0;
  for (int i = rank - 1; i >= 0; i--) {
    o[i] = rest % s->w.axis[i].out;
    rest /= s->w.axis[i].out;
    k[i] = q % s->w.axis[i].kernel;
    q /= s->w.axis[i].kernel;
  }
  for (int64_t t = t0; t < t1; t++) {
    double at[ASSAY_MAX_RANK];
    for (int i = 0; i < rank; i++) {
      const assay_window_axis_t* a = &s->w.axis[i];
      at[i] = (double)(o[i] * a->stride + k[i] * a->dilation - a->pads[0]) +
              offset[i * s->out_size + t];
    }
    const double v = sample(&s->w, plane, at);
    *out++ = mask ? v * mask[t] : v;
    for (int i = rank - 1; i >= 0; i--) {
      if (++o[i] < s->w.axis[i].out) break;
      o[i] = 0;
    }
  }
}

static void deform_fill(const assay_conv_panel_t* p, int64_t n, int64_t g, int64_t k0, int64_t k1,
                        int64_t t0, int64_t t1, double* out) {
  const assay_conv_t* s = p->conv;
  for (int64_t k = k0; k < k1; k++, out += t1 - t0) {
    deform_row(p, n, g * s->cg + k / s->kernel_size, k % s->kernel_size, t0, t1, out);
  }
}

// Offsets or mask: [n, groups * kernel * parts, out...].
static assay_status_t deform_check(const assay_eval_t* c, size_t i, const char* name,
                                   const assay_conv_t* s, int64_t groups, int64_t parts) {
  const assay_tensor_t* t = c->in[i];
  int64_t want;
  bool fits = t->rank == s->w.rank + 2 && t->dims[0] == s->n &&
              assay_mul_i64(groups, s->kernel_size, &want) && assay_mul_i64(want, parts, &want) &&
              t->dims[1] == want;
  for (int d = 0; fits && d < s->w.rank; d++) fits = t->dims[2 + d] == s->w.axis[d].out;
  if (fits) return NULL;
  return ASSAY_NODE_ERROR(c->node, ASSAY_CORRUPT,
                          "%s has shape %s, expected batch %lld, %lld * %lld * %lld channels and "
                          "the output's spatial axes",
                          name, ASSAY_DIMS_TEXT(t), (long long)s->n, (long long)groups,
                          (long long)s->kernel_size, (long long)parts);
}

static assay_status_t deform_eval(assay_eval_t* c) {
  assay_conv_t s;
  deform_t d = {0};
  const assay_tensor_t* bias = assay_eval_has(c, BIAS) ? c->in[BIAS] : NULL;
  ASSAY_TRY(assay_conv_read(c->node, c->in[X], c->in[W], bias, false, &s));
  ASSAY_TRY(deform_groups(c->node, s.c, &d.groups));
  if (s.w.rank > 8) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_UNSUPPORTED, "%d spatial axes, at most 8 are possible",
                            s.w.rank);
  }
  ASSAY_TRY(deform_check(c, OFFSET, "offset", &s, d.groups, s.w.rank));
  d.offset = assay_f64(c->in[OFFSET]);
  if (assay_eval_has(c, MASK)) {
    ASSAY_TRY(deform_check(c, MASK, "mask", &s, d.groups, 1));
    d.mask = assay_f64(c->in[MASK]);
  }
  int64_t dims[ASSAY_MAX_RANK] = {s.n, s.m};
  for (int i = 0; i < s.w.rank; i++) dims[2 + i] = s.w.axis[i].out;
  assay_tensor_t* y;
  ASSAY_TRY(assay_eval_output(c, 0, c->in[X]->type, s.w.rank + 2, dims, &y));
  const assay_conv_panel_t panel = {
      .conv = &s, .x = assay_f64(c->in[X]), .fill = deform_fill, .user = &d};
  return assay_conv_product(c, &panel, assay_f64(c->in[W]), bias ? assay_f64(bias) : NULL,
                            assay_f64(y));
}

// ---- its limits

// An element of the panel is off by the interpolation's roundings, relative to the sum of absolute
// values, and by what the position's rounding does: no more than the largest difference of elements
// around it, times how far the position is off, along each axis. Interpolation is continuous, also
// where it leaves the input.
typedef struct deform_limits {
  deform_t d;
  double factor;  // of the product's sums
  double ops;     // of one element's interpolation and mask
  double u;
  bool probable;
} deform_limits_t;

// How far a position may be off. Probable: whole numbers that the format holds are exact, and the
// offset is added by one rounding; guaranteed: whatever way the three numbers are come by.
static double deform_moved(const deform_limits_t* l, double base, double offset) {
  const double at = fabs(base + offset);
  if (l->probable && l->u * fabs(base) < 1) return l->u * at;
  return 2 * l->u * (fabs(base) + at + fabs(offset));
}

// The sum of |plane| times the weights at a point, and the largest |plane| within two cells of it.
static double sample_abs(const assay_window_t* w, const double* plane, const double* at,
                         double* out_largest) {
  const int rank = w->rank;
  int64_t corners = 1;
  double sum = 0, largest = 0;
  for (int i = 0; i < rank; i++) {
    if (!(at[i] > -2 && at[i] < (double)w->axis[i].in + 1)) return *out_largest = 0;
    corners *= 4;
  }
  for (int64_t corner = 0; corner < corners; corner++) {
    double weight = 1;
    int64_t index = 0;
    bool inside = true;
    for (int i = 0; i < rank; i++) {
      const int64_t step = (corner >> (2 * i) & 3) - 1;
      const double base = floor(at[i]), part = at[i] - base;
      const int64_t p = (int64_t)base + step;
      weight *= step == 0 ? 1 - part : step == 1 ? part : 0;
      inside = inside && p >= 0 && p < w->axis[i].in;
      index = inside ? index * w->axis[i].in + p : 0;
    }
    if (!inside) continue;
    const double v = fabs(plane[index]);
    if (!(v <= largest)) largest = v;
    if (weight != 0) sum += weight * v;
  }
  *out_largest = largest;
  return sum;
}

static double deform_limit(const assay_conv_panel_t* p, int64_t n, int64_t ch, int64_t q,
                           int64_t t) {
  const assay_conv_t* s = p->conv;
  const deform_limits_t* l = p->user;
  const int rank = s->w.rank;
  const int64_t og = n * l->d.groups + ch / (s->c / l->d.groups);
  const double* offset = l->d.offset + (og * s->kernel_size + q) * rank * s->out_size;
  double at[ASSAY_MAX_RANK], moved = 0, largest;
  int64_t rest = t;
  for (int i = rank - 1; i >= 0; i--) {
    const assay_window_axis_t* a = &s->w.axis[i];
    const double base =
        (double)(rest % a->out * a->stride + q % a->kernel * a->dilation - a->pads[0]);
    rest /= a->out;
    q /= a->kernel;
    at[i] = base + offset[i * s->out_size + t];
    moved += deform_moved(l, base, offset[i * s->out_size + t]);
  }
  double v = sample_abs(&s->w, p->x + (n * s->c + ch) * s->in_size, at, &largest);
  double e = l->ops * v + 2 * largest * moved;
  if (!(moved < 1)) e = INFINITY;
  return l->factor * (v + e) + e;
}

static void deform_limits_fill(const assay_conv_panel_t* p, int64_t n, int64_t g, int64_t k0,
                               int64_t k1, int64_t t0, int64_t t1, double* out) {
  const assay_conv_t* s = p->conv;
  const deform_limits_t* l = p->user;
  for (int64_t k = k0; k < k1; k++) {
    const int64_t ch = g * s->cg + k / s->kernel_size, q = k % s->kernel_size;
    const int64_t og = n * l->d.groups + ch / (s->c / l->d.groups);
    const double* mask = l->d.mask ? l->d.mask + (og * s->kernel_size + q) * s->out_size : NULL;
    for (int64_t t = t0; t < t1; t++) {
      const double limit = deform_limit(p, n, ch, q, t);
      *out++ = mask ? limit * fabs(mask[t]) : limit;
    }
  }
}

static assay_status_t deform_bound(assay_bound_t* b) {
  if (!assay_bound_inputs_exact(b))
    return ASSAY_NODE_ERROR(b->node, ASSAY_UNSUPPORTED, "it has no bound after rounded inputs");
  const assay_rounding_t* r = b->rounding;
  const assay_eval_t c = {.node = b->node,
                          .n_in = b->n_in,
                          .n_out = b->n_out,
                          .in = (assay_tensor_t**)(uintptr_t)b->in};
  assay_conv_t s;
  deform_t d = {0};
  const assay_tensor_t* bias = assay_eval_has(&c, BIAS) ? b->in[BIAS] : NULL;
  ASSAY_TRY(assay_conv_read(b->node, b->in[X], b->in[W], bias, false, &s));
  ASSAY_TRY(deform_groups(b->node, s.c, &d.groups));
  d.offset = assay_f64(b->in[OFFSET]);
  if (assay_eval_has(&c, MASK)) d.mask = assay_f64(b->in[MASK]);
  double *limits[2], *bias_abs = NULL;
  assay_tensor_t* w = NULL;
  ASSAY_TRY(assay_bound_output(b, 0, &limits[0], &limits[1]));
  assay_status_t st = assay_tensor_abs(b->in[W], &w);
  if (!st) st = assay_new_array((size_t)s.m, sizeof *bias_abs, &bias_abs);
  const double terms = (double)s.cg * (double)s.kernel_size + 1;
  const assay_factor_t f = assay_bound_sum(r, terms);
  const double u = fmax(assay_bound_unit(r->compute), assay_bound_unit(r->accumulator));
  for (int kind = 0; !st && kind < 2; kind++) {
    const deform_limits_t l = {.d = d,
                               .factor = kind ? f.probable : f.guaranteed,
                               .u = u,
                               .probable = kind,
                               .ops = (2.0 * s.w.rank + assay_pow(2, s.w.rank) + 2) * u};
    const assay_conv_panel_t panel = {
        .conv = &s, .x = assay_f64(b->in[X]), .fill = deform_limits_fill, .user = &l};
    for (int64_t i = 0; bias && i < s.m; i++) bias_abs[i] = l.factor * fabs(assay_f64(bias)[i]);
    st = assay_conv_product(&c, &panel, assay_f64(w), bias_abs, limits[kind]);
    const double tiny = terms * 4 * assay_bound_tiny(r, r->accumulator);
    const double range = assay_format_info(r->accumulator)->max;
    for (int64_t i = 0; !st && i < b->out[0]->size; i++) {
      const bool fits = limits[0][i] / f.guaranteed <= range;
      limits[kind][i] = fits ? limits[kind][i] + tiny : (double)INFINITY;
    }
  }
  assay_tensor_release(w);
  assay_free(bias_abs);
  return st;
}

static void deform_cost(const assay_eval_t* c, assay_cost_t* out) {
  assay_conv_t s;
  assay_status_t st = assay_conv_read(c->node, c->in[X], c->in[W], NULL, false, &s);
  if (!st) {
    // The product, and interpolation over 2^axes corners for each element of the panel.
    out->flops = assay_conv_flops(&s, assay_eval_has(c, BIAS)) +
                 2 * assay_pow(2, s.w.rank) * (double)s.n * (double)s.c * (double)s.kernel_size *
                     (double)s.out_size;
  }
  assay_status_free(st);
}

// ---- Col2Im ----------------------------------------------------------------------------------
// Adds blocks, the columns of [n, channels * block, blocks], into an image. Source: ONNX Col2Im-18.

static assay_status_t col2im_infer(assay_infer_t* c) {
  const assay_shape_t x = assay_infer_shape(c, 0);
  ASSAY_TRY(assay_infer_want_rank(c, 0, 3, 3));
  assay_content_t image, block;
  const bool has_image = assay_infer_content(c, 1, &image);
  const bool has_block = assay_infer_content(c, 2, &block);
  const assay_shape_t image_shape = assay_infer_shape(c, 1);
  int64_t rank = -1;
  if (has_image) {
    rank = image.n;
  } else if (image_shape.known && image_shape.rank == 1 &&
             !assay_dim_value(image_shape.dims[0], &rank)) {
    rank = -1;
  }
  if (rank < 1 || rank + 2 > ASSAY_MAX_RANK) {
    return assay_infer_set(c, 0, ASSAY_TYPE_UNDEFINED, NULL);
  }
  assay_shape_t y = {.known = true, .rank = (int)rank + 2};
  if (x.known) y.dims[0] = x.dims[0];
  for (int i = 0; i < rank && has_image; i++) y.dims[2 + i] = image.elems[i];
  if (has_block && x.known) {
    const assay_dim_t* size = assay_dim_const(c->dims, 1);
    for (int64_t i = 0; i < block.n; i++) size = assay_dim_mul(c->dims, size, block.elems[i]);
    y.dims[1] = assay_dim_floordiv(c->dims, x.dims[1], size);
  }
  return assay_infer_set(c, 0, ASSAY_TYPE_UNDEFINED, &y);
}

// The window whose blocks the columns are, checked against the columns' shape.
static assay_status_t col2im_window(const assay_eval_t* c, assay_window_t* w, int64_t* out_block,
                                    int64_t* out_image) {
  const assay_tensor_t *x = c->in[0], *image = c->in[1], *block = c->in[2];
  int64_t sizes[ASSAY_MAX_RANK], blocks;
  if (x->rank != 3 || image->rank != 1 || block->rank != 1 || image->size != block->size ||
      image->size < 1 || image->size > ASSAY_MAX_RANK - 2) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_CORRUPT,
                            "input %s, image_shape %s and block_shape %s; expected rank 3 and two "
                            "vectors of as many elements",
                            ASSAY_DIMS_TEXT(x), ASSAY_DIMS_TEXT(image), ASSAY_DIMS_TEXT(block));
  }
  const int rank = (int)image->size;
  for (int i = 0; i < rank; i++) {
    if (assay_i64(block)[i] < 1 || assay_i64(image)[i] < 0) {
      return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                              "axis %d: a block of %lld in an image of %lld", i,
                              (long long)assay_i64(block)[i], (long long)assay_i64(image)[i]);
    }
  }
  ASSAY_TRY(assay_window_read(c->node, rank, assay_i64(block), w));
  ASSAY_TRY(assay_window_fit(c->node, w, assay_i64(image)));
  for (int i = 0; i < rank; i++) sizes[i] = w->axis[i].out;
  if (!assay_dims_size(rank, assay_i64(block), out_block) ||
      !assay_dims_size(rank, assay_i64(image), out_image) ||
      !assay_dims_size(rank, sizes, &blocks) || x->dims[2] != blocks ||
      x->dims[1] % *out_block != 0) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_CORRUPT,
                            "the input has shape %s, which does not hold the blocks that fit into "
                            "the image",
                            ASSAY_DIMS_TEXT(x));
  }
  return NULL;
}

// Where each element of the columns of a channel goes in its plane; -1: into the padding.
static void col2im_targets(const assay_window_t* w, int64_t block, int64_t blocks, int64_t* to) {
  for (int64_t q = 0; q < block; q++) {
    for (int64_t b = 0; b < blocks; b++) {
      int64_t k[ASSAY_MAX_RANK], o[ASSAY_MAX_RANK], rest_q = q, rest_b = b, at = 0;
      for (int i = w->rank - 1; i >= 0; i--) {
        k[i] = rest_q % w->axis[i].kernel;
        rest_q /= w->axis[i].kernel;
        o[i] = rest_b % w->axis[i].out;
        rest_b /= w->axis[i].out;
      }
      for (int i = 0; i < w->rank && at >= 0; i++) {
        const assay_window_axis_t* a = &w->axis[i];
        const int64_t p = o[i] * a->stride + k[i] * a->dilation - a->pads[0];
        at = p >= 0 && p < a->in ? at * a->in + p : -1;
      }
      to[q * blocks + b] = at;
    }
  }
}

static void col2im_plane(const assay_eval_t* c, int64_t n, const int64_t* to, int64_t from,
                         int64_t plane, const assay_tensor_t* x, assay_tensor_t* y) {
  for (int64_t i = 0; i < n; i++) {
    if (to[i] < 0) continue;
    const int64_t a = plane + to[i], b = from + i;
    if (x->store == ASSAY_STORE_F64) {
      assay_f64(y)[a] = assay_acc(c, assay_f64(y)[a] + assay_f64(x)[b]);
    } else if (x->store == ASSAY_STORE_C128) {
      for (int part = 0; part < 2; part++) {
        double* sum = &assay_c128(y)[2 * a + part];
        *sum = assay_acc(c, *sum + assay_c128(x)[2 * b + part]);
      }
    } else if (x->type == ASSAY_TYPE_BOOL) {
      assay_i64(y)[a] |= assay_i64(x)[b];
    } else {
      const uint64_t sum = (uint64_t)assay_i64(y)[a] + (uint64_t)assay_i64(x)[b];
      assay_i64(y)[a] = assay_type_wrap(x->type, (int64_t)sum);
    }
  }
}

static assay_status_t col2im_eval(assay_eval_t* c) {
  const assay_tensor_t* x = c->in[0];
  assay_window_t w;
  int64_t block, image;
  if (x->store == ASSAY_STORE_STR) {
    return ASSAY_NODE_ERROR(c->node, ASSAY_UNSUPPORTED, "strings cannot be added");
  }
  ASSAY_TRY(col2im_window(c, &w, &block, &image));
  int64_t dims[ASSAY_MAX_RANK] = {x->dims[0], x->dims[1] / block};
  for (int i = 0; i < w.rank; i++) dims[2 + i] = w.axis[i].in;
  assay_tensor_t* y;
  ASSAY_TRY(assay_eval_output(c, 0, x->type, w.rank + 2, dims, &y));
  memset(y->data, 0, (size_t)y->size * assay_store_elem_bytes(y->store));
  if (x->size == 0 || y->size == 0) return NULL;
  const int64_t n = block * x->dims[2];
  int64_t* to = NULL;
  ASSAY_TRY(assay_new_array((size_t)n, sizeof *to, &to));
  col2im_targets(&w, block, x->dims[2], to);
#pragma omp parallel for schedule(static) if (x->size > 100000)
  for (int64_t i = 0; i < dims[0] * dims[1]; i++) col2im_plane(c, n, to, i * n, i * image, x, y);
  assay_free(to);
  return NULL;
}

static assay_status_t col2im_bound(assay_bound_t* c) {
  const assay_eval_t e = {.node = c->node,
                          .n_in = c->n_in,
                          .n_out = c->n_out,
                          .in = (assay_tensor_t**)(uintptr_t)c->in};
  assay_window_t w;
  int64_t block, image;
  double terms = 1;
  ASSAY_TRY(col2im_window(&e, &w, &block, &image));
  for (int i = 0; i < w.rank; i++) terms *= (double)assay_window_overlap(&w.axis[i]);
  const assay_products_t p = {.factors = {0}, .n_factors = 1, .terms = terms};
  return assay_bound_products(c, &p);
}

const assay_op_t assay_ops_conv_deform[] = {{.name = "DeformConv",
                                             .domain = "",
                                             .since = 19,
                                             .flags = ASSAY_OP_CONTRACTS,
                                             .factors = 0x3,
                                             .infer = deform_infer,
                                             .eval = deform_eval,
                                             .bound = deform_bound,
                                             .cost = deform_cost},
                                            {.name = "Col2Im",
                                             .domain = "",
                                             .since = 18,
                                             .infer = col2im_infer,
                                             .eval = col2im_eval,
                                             .bound = col2im_bound},
                                            {0}};
