// With d a tile of the input, g a kernel, and matrices A, B, G of the algorithm F(m, 3), a tile of
// the output is A^T [sum over channels U o V] A with U = G g G^T, V = B^T d B, and the error of
// each of its elements at most
//   u |A^T| [sum over channels h |U| o |V| + t (|G| |g| |G^T|) o (|B^T| |d| |B|)] |A|
// where h counts the roundings of the channels' sum and the output's transform, t those of the
// operands' transforms, along all axes. These are Winograd convolutions of absolute values
// themselves; they run in fp32. The errors of the products' sums are independent of each other, so
// their squares add up in the probable limits.
// Sources: B. Barabasz, A. Anderson, K. M. Soodhalter, D. Gregg, Error analysis and improving the
// accuracy of Winograd convolution for deep neural networks, ACM TOMS 46 (2020), theorems 1 to 4;
// the matrices of A. Lavin, S. Gray, Fast algorithms for convolutional neural networks, CVPR 2016
// (points 0, 1, -1, and 2, -2).
#include "ops/conv/conv_winograd.h"

#include <cblas.h>
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cancel/cancel.h"
#include "ops/conv/winograd.h"
#include "ops/matmul/gemm.h"

enum {
  KERNEL = ASSAY_WINOGRAD_KERNEL,
  MAX_TILE = ASSAY_WINOGRAD_TILE,
  MAX_AXES = 3,
  MAX_POINTS = ASSAY_WINOGRAD_POINTS,
  TILES = 64
};

bool assay_conv_winograd_fits(const assay_rounding_t* r, const assay_conv_t* s) {
  bool fits = assay_winograd_of(r->algorithm) && s->w.rank >= 1 && s->w.rank <= MAX_AXES;
  for (int i = 0; fits && i < s->w.rank; i++) {
    const assay_window_axis_t* a = &s->w.axis[i];
    fits = a->kernel == KERNEL && a->stride == 1;
  }
  return fits;
}

// ---- transforms ---------------------------------------------------------------------------------

static int power(int x, int n) {
  int y = 1;
  while (n-- > 0) y *= x;
  return y;
}

// ---- the convolution of absolute values ---------------------------------------------------------

typedef struct work {
  const assay_rounding_t* r;
  const assay_conv_t* s;
  const assay_winograd_t* f;
  int points;  // in^rank: products of each tile
  int64_t grid[MAX_AXES], tiles;
  const double *x, *bias;
  double x_scale, scale;    // of the input; of the products
  const float* kernels[2];  // [points, m, cg]: |U|, and of absolute values
  assay_factor_t in, sum, out;
  double a_square[MAX_TILE][MAX_TILE];
  double *guaranteed, *probable;
} work_t;

static double largest(const double* x, int64_t n) {
  double max = 0;
  for (int64_t i = 0; i < n; i++) max = fabs(x[i]) > max ? fabs(x[i]) : max;
  return max;
}

static void place_of(const work_t* k, int64_t tile, int64_t* at) {
  for (int i = k->s->w.rank - 1; i >= 0; i--) {
    at[i] = assay_conv_winograd_tile(tile % k->grid[i], k->s->w.axis[i].dilation, k->f->out);
    tile /= k->grid[i];
  }
}

// The input of one tile of one channel: zeros outside.
static void gather(const work_t* k, const double* plane, const int64_t* at, double* to) {
  const assay_conv_t* s = k->s;
  for (int q = 0; q < k->points; q++) {
    int64_t index = 0;
    int rest = q, by = k->points;
    bool inside = true;
    for (int i = 0; i < s->w.rank; i++) {
      by /= k->f->in;
      const int64_t p = at[i] + rest / by * s->w.axis[i].dilation - s->w.axis[i].pads[0];
      rest %= by;
      inside = inside && p >= 0 && p < s->w.axis[i].in;
      index = inside ? index * s->w.axis[i].in + p : 0;
    }
    to[q] = inside ? plane[index] / k->x_scale : 0;
  }
}

// The absolute values of a transform [m, n] of n^rank numbers, and the transform of their absolute
// values, to places `step` apart.
static void transform_both(const work_t* k, int n, const double* matrix, int stride,
                           const double* from, int64_t step, float* values, float* absolute) {
  double x[MAX_POINTS], y[MAX_POINTS], sizes[MAX_TILE * MAX_TILE];
  const int rank = k->s->w.rank, count = power(n, rank);
  for (int i = 0; i < k->f->in * stride; i++) sizes[i] = fabs(matrix[i]);
  for (int i = 0; i < count; i++) {
    x[i] = from[i];
    y[i] = fabs(from[i]);
  }
  assay_winograd_transform(rank, k->f->in, n, matrix, stride, x);
  assay_winograd_transform(rank, k->f->in, n, sizes, stride, y);
  for (int q = 0; q < k->points; q++) {
    values[q * step] = (float)fabs(x[q]);
    absolute[q * step] = (float)y[q];
  }
}

// panels[points, cg, n]: the transformed inputs of n tiles.
static void transform_inputs(const work_t* k, int64_t sample, int64_t group, int64_t t0, int64_t n,
                             float* values, float* absolute) {
  const assay_conv_t* s = k->s;
  double d[MAX_POINTS];
  int64_t at[MAX_AXES];
  for (int64_t c = 0; c < s->cg; c++) {
    const double* plane = k->x + (sample * s->c + group * s->cg + c) * s->in_size;
    for (int64_t t = 0; t < n; t++) {
      place_of(k, t0 + t, at);
      gather(k, plane, at, d);
      transform_both(k, k->f->in, &k->f->b[0][0], MAX_TILE, d, s->cg * n, values + c * n + t,
                     absolute + c * n + t);
    }
  }
}

// One tile of the limits.
typedef struct tile {
  double guaranteed[MAX_POINTS], probable[MAX_POINTS], sums[MAX_POINTS];
} tile_t;

// Puts a tile of one output channel to its place.
static void put_tile(const work_t* k, const tile_t* t, int64_t channel, const int64_t* at,
                     int64_t plane) {
  const assay_conv_t* s = k->s;
  const int n = power(k->f->out, s->w.rank);
  const double tiny = (double)(s->cg * k->points + 4) * assay_bound_tiny(k->r, k->r->accumulator);
  const double range = assay_format_info(k->r->accumulator)->max;
  const double bias = k->bias ? fabs(k->bias[channel]) : 0;
  for (int q = 0; q < n; q++) {
    int64_t index = 0;
    int rest = q, by = n;
    bool inside = true;
    for (int i = 0; i < s->w.rank; i++) {
      by /= k->f->out;
      const int64_t p = at[i] + rest / by * s->w.axis[i].dilation;
      rest %= by;
      inside = inside && p < s->w.axis[i].out;
      index = inside ? index * s->w.axis[i].out + p : 0;
    }
    if (!inside) continue;
    const double g = t->guaranteed[q] * k->scale + k->sum.guaranteed * bias;
    const double p = t->probable[q] * k->scale + k->sum.probable * bias;
    const bool fits = 2 * t->sums[q] * k->scale + bias <= range;
    k->guaranteed[plane + index] += fits ? g + tiny : (double)INFINITY;
    k->probable[plane + index] += fits ? fmin(p, g) + tiny : (double)INFINITY;
  }
}

// products[points, mg, n], of values and of absolute ones, to the output's tiles.
static void transform_outputs(const work_t* k, int64_t sample, int64_t group, int64_t t0, int64_t n,
                              const float* values, const float* absolute) {
  const assay_conv_t* s = k->s;
  const int rank = s->w.rank, out = k->f->out, in = k->f->in;
  // What fp32 may have lost: its own rounding, and products below its range.
  const double slack = 1 + (double)(s->cg + 8) * 0x1p-23, lost = (double)s->cg * 0x1p-120;
  double sizes[MAX_TILE * MAX_TILE], last[MAX_POINTS];
  tile_t y;
  int64_t at[MAX_AXES];
  for (int i = 0; i < MAX_TILE * MAX_TILE; i++) sizes[i] = fabs((&k->f->a[0][0])[i]);
  for (int64_t m = 0; m < s->mg; m++) {
    const int64_t channel = group * s->mg + m;
    for (int64_t t = 0; t < n; t++) {
      for (int q = 0; q < k->points; q++) {
        const double v = (double)values[(q * s->mg + m) * n + t] * slack + lost;
        const double a = (double)absolute[(q * s->mg + m) * n + t] * slack + lost;
        const double p = k->sum.probable * v + k->in.probable * a;
        // Sums of what the operands' transforms have rounded round, too.
        const double both = k->in.guaranteed * (1 + k->sum.guaranteed + k->out.guaranteed);
        y.guaranteed[q] = (k->sum.guaranteed + k->out.guaranteed) * v + both * a;
        y.probable[q] = p * p;
        y.sums[q] = a;
        last[q] = v;
      }
      assay_winograd_transform(rank, out, in, sizes, MAX_TILE, y.guaranteed);
      assay_winograd_transform(rank, out, in, &k->a_square[0][0], MAX_TILE, y.probable);
      assay_winograd_transform(rank, out, in, sizes, MAX_TILE, y.sums);
      assay_winograd_transform(rank, out, in, sizes, MAX_TILE, last);
      for (int q = 0; q < power(out, rank); q++)
        y.probable[q] = sqrt(y.probable[q]) + k->out.probable * last[q];
      place_of(k, t0 + t, at);
      put_tile(k, &y, channel, at, (sample * s->m + channel) * s->out_size);
    }
  }
}

// Tiles [t0, t0 + n) of a sample and a group.
static assay_status_t run_tiles(const work_t* k, int64_t sample, int64_t group, int64_t t0,
                                int64_t n) {
  const assay_conv_t* s = k->s;
  float* scratch = NULL;
  const int64_t panel = k->points * s->cg * n, products = k->points * s->mg * n;
  ASSAY_TRY(assay_new_array((size_t)(2 * (panel + products)), sizeof *scratch, &scratch));
  float* out = scratch + 2 * panel;
  transform_inputs(k, sample, group, t0, n, scratch, scratch + panel);
  for (int which = 0; which < 2; which++) {
    for (int q = 0; q < k->points; q++) {
      const float* w = k->kernels[which] + (q * s->m + group * s->mg) * s->cg;
      cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)s->mg, (int)n, (int)s->cg, 1.0F,
                  w, (int)s->cg, scratch + which * panel + q * s->cg * n, (int)n, 0.0F,
                  out + which * products + q * s->mg * n, (int)n);
    }
  }
  transform_outputs(k, sample, group, t0, n, out, out + products);
  assay_free(scratch);
  return NULL;
}

static void transform_kernels(const work_t* k, const double* w, double scale, float* values,
                              float* absolute) {
  const assay_conv_t* s = k->s;
  const int size = power(KERNEL, s->w.rank);
  double g[MAX_POINTS];
  for (int64_t i = 0; i < s->m * s->cg; i++) {
    for (int j = 0; j < size; j++) g[j] = w[i * size + j] / scale;
    transform_both(k, KERNEL, &k->f->g[0][0], KERNEL, g, s->m * s->cg, values + i, absolute + i);
    // A transformed weight may be subnormal: it is rounded by no more than a normal one.
    for (int q = 0; q < k->points; q++)
      absolute[q * s->m * s->cg + i] += (float)fmin(0x1p-126 / scale, 1);
  }
}

assay_status_t assay_conv_winograd_limits(const assay_rounding_t* r, const assay_conv_t* s,
                                          const double* x, const double* w, const double* bias,
                                          double* guaranteed, double* probable) {
  work_t k = {.r = r,
              .s = s,
              .f = assay_winograd_of(r->algorithm),
              .x = x,
              .bias = bias,
              .guaranteed = guaranteed,
              .probable = probable,
              .tiles = 1};
  if (s->n == 0 || s->m == 0 || s->out_size == 0 || s->cg == 0) return NULL;
  if (s->mg > INT32_MAX || s->cg > INT32_MAX)
    return ASSAY_ERROR(ASSAY_UNSUPPORTED, "a convolution of %lld channels has no Winograd bound",
                       (long long)s->c);
  const int rank = s->w.rank;
  k.points = power(k.f->in, rank);
  for (int i = 0; i < rank; i++) {
    k.grid[i] = assay_conv_winograd_tiles(&s->w.axis[i], k.f->out);
    k.tiles *= k.grid[i];
  }
  // The transforms are single operations, the channels' sum and the bias the accumulator's.
  k.in = assay_bound_ops(r, rank * k.f->roundings_in);
  k.sum = assay_bound_sum(r, (double)s->cg + 1);
  k.out = assay_bound_ops(r, rank * k.f->roundings_out);
  for (int i = 0; i < MAX_TILE; i++)
    for (int j = 0; j < MAX_TILE; j++) k.a_square[i][j] = k.f->a[i][j] * k.f->a[i][j];
  const double x_max = largest(x, s->n * s->c * s->in_size);
  const double w_max = largest(w, s->m * s->cg * s->kernel_size);
  k.x_scale = x_max > 0 && isfinite(x_max) ? x_max : 1;
  const double w_scale = w_max > 0 && isfinite(w_max) ? w_max : 1;
  k.scale = k.x_scale * w_scale;
  float* kernels = NULL;
  const int64_t size = k.points * s->m * s->cg;
  ASSAY_TRY(assay_new_array((size_t)(2 * size), sizeof *kernels, &kernels));
  transform_kernels(&k, w, w_scale, kernels, kernels + size);
  k.kernels[0] = kernels;
  k.kernels[1] = kernels + size;
  assay_gemm_prepare();
  const int64_t blocks = (k.tiles + TILES - 1) / TILES;
  const assay_cancel_t* watched = assay_cancel_watched();
  assay_status_t st = NULL;
#pragma omp parallel for schedule(static) if (s->out_size * s->m * s->cg > 10000)
  for (int64_t i = 0; i < s->n * s->group * blocks; i++) {
    if (assay_cancel_wanted(watched)) continue;
    const int64_t t0 = i % blocks * TILES, group = i / blocks % s->group;
    const int64_t left = k.tiles - t0;
    assay_status_t mine =
        run_tiles(&k, i / blocks / s->group, group, t0, left < TILES ? left : TILES);
    if (mine) {
#pragma omp critical(assay_conv_winograd)
      st = assay_status_join(st, mine);
    }
  }
  assay_free(kernels);
  return st;
}
