// Winograd's minimal filtering F(m, 3): its matrices, and an error model of convolutions by it.
#include "ops/conv/winograd.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/functions.h"

enum {
  KERNEL = ASSAY_WINOGRAD_KERNEL,
  TILE = ASSAY_WINOGRAD_TILE,
  POINTS = ASSAY_WINOGRAD_POINTS,
  MAX_AXES = 3
};

// ---- the algorithms -----------------------------------------------------------------------------
// Source: A. Lavin and S. Gray, Fast algorithms for convolutional neural networks, CVPR 2016, with
// the points 0, 1, -1, and 2, -2.

// G: up to 3 terms, B^T: 2, A^T: 3; the factors are powers of 2.
static const assay_winograd_t f23 = {
    .out = 2,
    .in = 4,
    .g = {{1, 0, 0}, {0.5, 0.5, 0.5}, {0.5, -0.5, 0.5}, {0, 0, 1}},
    .b = {{1, 0, -1, 0}, {0, 1, 1, 0}, {0, -1, 1, 0}, {0, 1, 0, -1}},
    .a = {{1, 1, 1, 0}, {0, 1, -1, -1}},
    .roundings_in = 3 + 1,
    .roundings_out = 2,
    .in_sums = {{1, {{1, 0, -1, 0}}},
                {1, {{0, 1, 1, 0}}},
                {1, {{0, -1, 1, 0}}},
                {1, {{0, 1, 0, -1}}}},
    .out_sums = {{2, {{1, 1}, {1, 1, 1}}}, {2, {{0, 1, -1}, {0, 1, -1, -1}}}},
};

// G: 3 terms, whose factors are rounded, too; B^T: 4; A^T: 5.
static const assay_winograd_t f43 = {
    .out = 4,
    .in = 6,
    .g = {{1.0 / 4, 0, 0},
          {-1.0 / 6, -1.0 / 6, -1.0 / 6},
          {-1.0 / 6, 1.0 / 6, -1.0 / 6},
          {1.0 / 24, 1.0 / 12, 1.0 / 6},
          {1.0 / 24, -1.0 / 12, 1.0 / 6},
          {0, 0, 1}},
    .b = {{4, 0, -5, 0, 1, 0},
          {0, -4, -4, 1, 1, 0},
          {0, 4, -4, -1, 1, 0},
          {0, -2, -1, 2, 1, 0},
          {0, 2, -1, -2, 1, 0},
          {0, 4, 0, -5, 0, 1}},
    .a = {{1, 1, 1, 1, 1, 0}, {0, 1, -1, 2, -2, 0}, {0, 1, 1, 4, 4, 0}, {0, 1, -1, 8, -8, 1}},
    .roundings_in = 5 + 4,
    .roundings_out = 5,
    .in_sums = {{3, {{0, 0, -5}, {4, 0, -5}, {4, 0, -5, 0, 1}}},
                {3, {{0, 0, -4, 0, 1}, {0, -4, 0, 1}, {0, -4, -4, 1, 1}}},
                {3, {{0, 0, -4, 0, 1}, {0, -4, 0, 1}, {0, 4, -4, -1, 1}}},
                {3, {{0, 0, -1, 0, 1}, {0, -2, 0, 2}, {0, -2, -1, 2, 1}}},
                {3, {{0, 0, -1, 0, 1}, {0, -2, 0, 2}, {0, 2, -1, -2, 1}}},
                {3, {{0, 0, 0, -5}, {0, 4, 0, -5}, {0, 4, 0, -5, 0, 1}}}},
    .out_sums = {{4, {{0, 1, 1}, {0, 0, 0, 1, 1}, {1, 1, 1}, {1, 1, 1, 1, 1}}},
                 {3, {{0, 1, -1}, {0, 0, 0, 2, -2}, {0, 1, -1, 2, -2}}},
                 {3, {{0, 1, 1}, {0, 0, 0, 4, 4}, {0, 1, 1, 4, 4}}},
                 {4, {{0, 1, -1}, {0, 0, 0, 8, -8}, {0, 1, -1, 8, -8}, {0, 1, -1, 8, -8, 1}}}},
};

const assay_winograd_t* assay_winograd_of(assay_algorithm_t algorithm) {
  return algorithm == ASSAY_ALGORITHM_WINOGRAD_2_3   ? &f23
         : algorithm == ASSAY_ALGORITHM_WINOGRAD_4_3 ? &f43
                                                     : NULL;
}

// y = sum of row[j] x[j], of rows of `inner` numbers.
static void combine(int n, const double* row, int inner, const double* x, double* y) {
  for (int i = 0; i < inner; i++) y[i] = 0;
  for (int j = 0; j < n; j++)
    for (int i = 0; i < inner; i++) y[i] += row[j] * x[j * inner + i];
}

void assay_winograd_transform(int rank, int m, int n, const double* matrix, int stride, double* x) {
  assay_winograd_transform_lanes(rank, m, n, matrix, stride, 1, x);
}

void assay_winograd_transform_lanes(int rank, int m, int n, const double* matrix, int stride,
                                    int lanes, double* x) {
  double y[POINTS * ASSAY_WINOGRAD_LANES];
  int size[MAX_AXES];
  for (int i = 0; i < rank; i++) size[i] = n;
  for (int axis = 0; axis < rank; axis++) {
    int outer = 1, inner = lanes;
    for (int i = 0; i < axis; i++) outer *= size[i];
    for (int i = axis + 1; i < rank; i++) inner *= size[i];
    for (int o = 0; o < outer; o++)
      for (int k = 0; k < m; k++)
        combine(n, matrix + k * stride, inner, x + o * n * inner, y + (o * m + k) * inner);
    size[axis] = m;
    memcpy(x, y, (size_t)(outer * m * inner) * sizeof *x);
  }
}

static int power(int x, int n) {
  int y = 1;
  while (n-- > 0) y *= x;
  return y;
}

// ---- the error model ----------------------------------------------------------------------------
// Each rounding adds an error that is independent of all others, of mean zero and of a variance
// proportional to the mean square of what is rounded (N. J. Higham and T. Mary, SIAM J. Sci.
// Comput. 41 (2019); B. Barabasz et al., ACM TOMS 46 (2020)). Variances are in units of that of a
// number's relative rounding error, which is at most u^2 / 3.

// Inputs: their mean and variance.
typedef struct kind {
  double mean, variance;
} kind_t;

#define TWO_BY_PI 0.63661977236758134308
static const kind_t kinds[2] = {{0, 1}, {0.79788456080286535588, 1 - TWO_BY_PI}};

// Of transformed inputs: mean, variance, and that of their own errors.
typedef struct moments {
  double mean[POINTS], variance[POINTS], error[POINTS];
} moments_t;

typedef struct model {
  const assay_winograd_t* f;
  const assay_conv_t* s;
  const float* w;
  int rank, size, points, places;
  moments_t in[2];  // by kind
} model_t;

// What a channel of the output adds to the account.
typedef struct channel {
  double own[2], worst[2], plain[2];  // by kind
  double size;                        // sum|w|
  double sum;                         // the largest sum of transformed weights' magnitudes
} channel_t;

static double mean_of(const double* row, int n) {
  double sum = 0;
  for (int i = 0; i < n; i++) sum += row[i];
  return sum;
}

static double square_of(const double* row, int n) {
  double sum = 0;
  for (int i = 0; i < n; i++) sum += row[i] * row[i];
  return sum;
}

static void digits(int q, int base, int rank, int* out) {
  for (int i = rank - 1; i >= 0; i--, q /= base) out[i] = q % base;
}

// The transform goes along one axis after the other: an error after axis k passes the rest.
static void add_inputs(const model_t* m, kind_t kind, moments_t* out) {
  const assay_winograd_t* f = m->f;
  for (int q = 0; q < m->points; q++) {
    int at[MAX_AXES];
    double mean = kind.mean, variance = kind.variance, error = 0;
    digits(q, f->in, m->rank, at);
    for (int k = 0; k < m->rank; k++) {
      const assay_winograd_sums_t* sums = &f->in_sums[at[k]];
      double local = 0;
      for (int i = 0; i < sums->n; i++) {
        const double part = mean_of(sums->of[i], f->in) * mean;
        local += square_of(sums->of[i], f->in) * variance + part * part;
      }
      error = error * square_of(f->b[at[k]], f->in) + local;
      mean *= mean_of(f->b[at[k]], f->in);
      variance *= square_of(f->b[at[k]], f->in);
    }
    out->mean[q] = mean * mean;
    out->variance[q] = variance;
    out->error[q] = error + variance + mean * mean;
  }
}

// Of an output channel: sums over the channels of the input.
typedef struct sums {
  double u[POINTS], sum[POINTS], square[POINTS], size[POINTS], errors[2][POINTS];
} sums_t;

static void add_weights(const model_t* m, sums_t* t) {
  for (int q = 0; q < m->points; q++) {
    t->sum[q] += t->u[q];
    t->square[q] += t->u[q] * t->u[q];
    t->size[q] += fabs(t->u[q]);
  }
  for (int k = 0; k < 2; k++) {
    const moments_t* in = &m->in[k];
    // The product's way into the sum; then the transformed input's error, and the weight's.
    for (int q = 0; q < m->points; q++)
      t->errors[k][q] += in->variance[q] * t->square[q] + in->mean[q] * t->sum[q] * t->sum[q] +
                         t->u[q] * t->u[q] * in->error[q];
  }
}

// Along the axes of the output; products' sums are taken to be independent.
static void transform_errors(const model_t* m, double* squares, double* errors) {
  const assay_winograd_t* f = m->f;
  int size[MAX_AXES] = {f->in, f->in, f->in};
  for (int axis = 0; axis < m->rank; axis++) {
    double y[POINTS], e[POINTS];
    int outer = 1, inner = 1;
    for (int i = 0; i < axis; i++) outer *= size[i];
    for (int i = axis + 1; i < m->rank; i++) inner *= size[i];
    for (int at = 0; at < outer * f->out * inner; at++) {
      const int i = at % inner, k = at / inner % f->out, o = at / inner / f->out;
      const assay_winograd_sums_t* sums = &f->out_sums[k];
      y[at] = e[at] = 0;
      for (int j = 0; j < f->in; j++) {
        const int from = (o * f->in + j) * inner + i;
        y[at] += f->a[k][j] * f->a[k][j] * squares[from];
        e[at] += f->a[k][j] * f->a[k][j] * errors[from];
        for (int p = 0; p < sums->n; p++) e[at] += sums->of[p][j] * sums->of[p][j] * squares[from];
      }
    }
    size[axis] = f->out;
    memcpy(squares, y, (size_t)(outer * f->out * inner) * sizeof *y);
    memcpy(errors, e, (size_t)(outer * f->out * inner) * sizeof *e);
  }
}

// Plain sums: one chain of fused multiply-adds.
static void add_plain(const model_t* m, int64_t o, channel_t* out) {
  const int64_t n = m->s->cg * m->size;
  double sum = 0, square = 0;
  for (int64_t i = o * n; i < (o + 1) * n; i++) {
    const double w = (double)m->w[i];
    sum += w;
    square += w * w;
    out->size += fabs(w);
    for (int k = 0; k < 2; k++)
      out->plain[k] += kinds[k].variance * square + kinds[k].mean * kinds[k].mean * sum * sum;
  }
}

static void judge_channel(const model_t* m, int64_t o, channel_t* out) {
  sums_t t;
  memset(&t, 0, sizeof t);
  for (int64_t c = 0; c < m->s->cg; c += ASSAY_WINOGRAD_LANES) {
    const int64_t left = m->s->cg - c;
    const int lanes = left < ASSAY_WINOGRAD_LANES ? (int)left : ASSAY_WINOGRAD_LANES;
    const float* w = m->w + (o * m->s->cg + c) * m->size;
    double u[POINTS * ASSAY_WINOGRAD_LANES];
    for (int l = 0; l < lanes; l++)
      for (int i = 0; i < m->size; i++) u[i * lanes + l] = (double)w[l * m->size + i];
    assay_winograd_transform_lanes(m->rank, m->f->in, KERNEL, &m->f->g[0][0], KERNEL, lanes, u);
    for (int l = 0; l < lanes; l++) {
      for (int q = 0; q < m->points; q++) t.u[q] = u[q * lanes + l];
      add_weights(m, &t);
    }
  }
  for (int q = 0; q < m->points; q++)
    if (!(t.size[q] <= out->sum) && !isnan(out->sum)) out->sum = t.size[q];
  for (int k = 0; k < 2; k++) {
    double squares[POINTS];
    for (int q = 0; q < m->points; q++)
      squares[q] = m->in[k].variance[q] * t.square[q] + m->in[k].mean[q] * t.sum[q] * t.sum[q];
    transform_errors(m, squares, t.errors[k]);
    for (int q = 0; q < m->places; q++) {
      out->own[k] += t.errors[k][q] / m->places;
      out->worst[k] = fmax(out->worst[k], t.errors[k][q]);
    }
  }
  add_plain(m, o, out);
}

static double largest_row(const double* matrix, int rows, int columns, int stride) {
  double max = 0;
  for (int i = 0; i < rows; i++) {
    double sum = 0;
    for (int j = 0; j < columns; j++) sum += fabs(matrix[i * stride + j]);
    max = fmax(max, sum);
  }
  return max;
}

// Every number on the way is at most the inputs' largest times the factors of the transforms and of
// the channels' sums, and a little more with the rounding of each: twice is enough.
static void add_range(const model_t* m, double sum, assay_sum_account_t* out) {
  const assay_winograd_t* f = m->f;
  const double in = assay_pow(largest_row(&f->b[0][0], f->in, f->in, TILE), m->rank);
  const double back = assay_pow(largest_row(&f->a[0][0], f->out, f->in, TILE), m->rank);
  const double max = 0x1p127 / (in * fmax(sum, 1) * back);
  out->min = 0x1p-102;
  out->max = !isnan(sum) && max > 1 ? assay_exp2(floor(assay_log2(max))) : 0;
}

static void add_up(const model_t* m, const channel_t* channels, assay_sum_account_t* out) {
  const double terms = (double)(m->s->cg * m->size);
  double own[2] = {0}, plain[2] = {0}, sum = 0;
  *out = (assay_sum_account_t){0};
  for (int64_t o = 0; o < m->s->m; o++) {
    const channel_t* c = &channels[o];
    if (!(c->sum <= sum) && !isnan(sum)) sum = c->sum;
    for (int k = 0; k < 2; k++) {
      const double sigma = 6 * sqrt(c->worst[k] / 3), bound = terms * c->size * kinds[1].mean;
      own[k] += c->own[k];
      plain[k] += c->plain[k];
      if (sigma * out->bound >= out->six_sigma * bound) {
        out->six_sigma = sigma;
        out->bound = bound;
      }
    }
  }
  const int worse = own[1] * plain[0] > own[0] * plain[1];
  out->own = sqrt(own[worse] / (double)m->s->m / 3);
  out->plain = sqrt(plain[worse] / (double)m->s->m / 3);
  add_range(m, sum, out);
}

assay_status_t assay_winograd_judge(const assay_winograd_t* f, const assay_conv_t* s,
                                    const float* w, assay_sum_account_t* out) {
  model_t m = {.f = f, .s = s, .w = w, .rank = s->w.rank};
  channel_t* channels = NULL;
  ASSAY_TRY(assay_new_array((size_t)s->m, sizeof *channels, &channels));
  m.size = power(KERNEL, m.rank);
  m.points = power(f->in, m.rank);
  m.places = power(f->out, m.rank);
  for (int k = 0; k < 2; k++) add_inputs(&m, kinds[k], &m.in[k]);
#pragma omp parallel for schedule(static) if (s->m * s->cg > 1000)
  for (int64_t o = 0; o < s->m; o++) judge_channel(&m, o, &channels[o]);
  add_up(&m, channels, out);
  assay_free(channels);
  return NULL;
}
