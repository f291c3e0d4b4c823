// Discrete Fourier transforms of any length.
#include "ops/math/fft.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/functions.h"

// Lengths whose prime factors are small go through Cooley and Tukey's algorithm with a plain
// transform for each factor; others become a convolution of a length that is a power of two
// (Bluestein 1970).
enum { LARGEST_FACTOR = ASSAY_FFT_LARGEST_FACTOR, MAX_FACTORS = 64 };

typedef struct cplx {
  double re, im;
} cplx_t;

struct assay_fft {
  const assay_eval_t* c;
  int64_t n;
  int n_factors;
  int64_t factors[MAX_FACTORS];
  cplx_t* roots;  // exp(-+ 2 pi i j / n)
  // Bluestein's: NULL and 0 otherwise.
  assay_fft_t *forward, *backward;  // of length m
  int64_t m;
  cplx_t* chirp;   // exp(-+ pi i j^2 / n)
  cplx_t* filter;  // transform of the conjugate chirp, repeated, over m
};

// ---- arithmetic -------------------------------------------------------------------------------

static cplx_t mul(const assay_eval_t* c, cplx_t a, cplx_t b) {
  return (cplx_t){assay_acc(c, assay_acc(c, a.re * b.re) - assay_acc(c, a.im * b.im)),
                  assay_acc(c, assay_acc(c, a.re * b.im) + assay_acc(c, a.im * b.re))};
}

static cplx_t add(const assay_eval_t* c, cplx_t a, cplx_t b) {
  return (cplx_t){assay_acc(c, a.re + b.re), assay_acc(c, a.im + b.im)};
}

// exp(sign * 2 pi i j / n) for 0 <= j < n. The angle is brought into the first eighth of the circle
// with integers, so that exact values come out exact and all are within an ulp.
static cplx_t root(const assay_eval_t* c, int64_t j, int64_t n, double sign) {
  const double half_pi = 1.57079632679489661923;
  const int64_t quarter = 4 * j / n, rest = 4 * j - quarter * n;
  const bool far = 2 * rest > n;
  const double angle = half_pi * (double)(far ? n - rest : rest) / (double)n;
  const double u = far ? assay_sin(angle) : assay_cos(angle),
               v = far ? assay_cos(angle) : assay_sin(angle);
  const cplx_t turned[4] = {{u, v}, {-v, u}, {-u, -v}, {v, -u}};
  return (cplx_t){assay_acc(c, turned[quarter].re), assay_acc(c, sign * turned[quarter].im)};
}

// ---- Cooley and Tukey -------------------------------------------------------------------------

// y[0..n) = transform of x[0], x[stride], ... where n is the product of the factors from `level`
// on.
static void transform(const assay_fft_t* f, int level, int64_t n, const cplx_t* x, int64_t stride,
                      cplx_t* y) {
  if (n == 1) {
    y[0] = x[0];
    return;
  }
  const assay_eval_t* c = f->c;
  const int64_t p = f->factors[level], m = n / p, step = f->n / n;
  for (int64_t q = 0; q < p; q++) transform(f, level + 1, m, x + q * stride, stride * p, y + q * m);
  for (int64_t k = 0; k < m; k++) {
    cplx_t t[LARGEST_FACTOR];
    t[0] = y[k];
    for (int64_t q = 1; q < p; q++) t[q] = mul(c, y[q * m + k], f->roots[q * k * step]);
    if (p == 2) {
      y[k] = add(c, t[0], t[1]);
      y[k + m] = add(c, t[0], (cplx_t){-t[1].re, -t[1].im});
      continue;
    }
    for (int64_t r = 0; r < p; r++) {
      cplx_t s = t[0];
      for (int64_t q = 1; q < p; q++) s = add(c, s, mul(c, t[q], f->roots[q * r % p * (f->n / p)]));
      y[k + r * m] = s;
    }
  }
}

// Splits n into prime factors, small ones first; false if one is too large.
static bool factorize(int64_t n, assay_fft_t* f) {
  f->n_factors = 0;
  for (int64_t p = 2; p <= LARGEST_FACTOR; p++) {
    for (; n % p == 0; n /= p) f->factors[f->n_factors++] = p;
  }
  return n == 1;
}

// ---- Bluestein --------------------------------------------------------------------------------

// j k = (j^2 + k^2 - (k - j)^2) / 2 makes the transform a convolution with a chirp.
static assay_status_t make_chirp(assay_fft_t* f, double sign) {
  f->m = 1;
  while (f->m < 2 * f->n - 1) f->m *= 2;
  const size_t n = (size_t)f->n, m = (size_t)f->m;
  cplx_t* wave = NULL;
  assay_status_t st = assay_new_array(n, sizeof *f->chirp, &f->chirp);
  if (!st) st = assay_new_array(m, sizeof *f->filter, &f->filter);
  if (!st) st = assay_new_array(m, sizeof *wave, &wave);
  if (!st) st = assay_fft_create(f->c, f->m, false, &f->forward);
  if (!st) st = assay_fft_create(f->c, f->m, true, &f->backward);
  for (int64_t j = 0; !st && j < f->n; j++) {
    f->chirp[j] =
        root(f->c, (int64_t)((uint64_t)j * (uint64_t)j % (2 * (uint64_t)f->n)), 2 * f->n, sign);
    wave[j] = (cplx_t){f->chirp[j].re, -f->chirp[j].im};
    if (j > 0) wave[f->m - j] = wave[j];
  }
  if (!st) transform(f->forward, 0, f->m, wave, 1, f->filter);
  assay_free(wave);
  return st;
}

static void run_chirp(const assay_fft_t* f, const cplx_t* x, cplx_t* y, cplx_t* scratch) {
  cplx_t *a = scratch, *b = scratch + f->m;
  for (int64_t j = 0; j < f->n; j++) a[j] = mul(f->c, x[j], f->chirp[j]);
  memset(a + f->n, 0, (size_t)(f->m - f->n) * sizeof *a);
  transform(f->forward, 0, f->m, a, 1, b);
  for (int64_t j = 0; j < f->m; j++) b[j] = mul(f->c, b[j], f->filter[j]);
  transform(f->backward, 0, f->m, b, 1, a);
  const double scale = 1 / (double)f->m;  // a power of two: exact
  for (int64_t k = 0; k < f->n; k++) {
    y[k] = mul(f->c, (cplx_t){a[k].re * scale, a[k].im * scale}, f->chirp[k]);
  }
}

assay_fft_path_t assay_fft_path(int64_t n, int64_t largest_factor) {
  assay_fft_path_t path = {0};
  int64_t rest = n;
  for (int64_t p = 2; p <= largest_factor; p++) {
    for (; rest % p == 0; rest /= p) {
      path.products += p == 2 ? 1 : 2;
      path.sums += (double)(p - 1);
    }
  }
  if (rest == 1) return path;
  int64_t m = 1;
  while (m < 2 * n - 1) m *= 2;
  path = assay_fft_path(m, 2);
  path.chirp = m;
  return path;
}

// ---- interface --------------------------------------------------------------------------------

assay_status_t assay_fft_create(const assay_eval_t* c, int64_t n, bool inverse, assay_fft_t** out) {
  assay_fft_t* f = NULL;
  ASSAY_TRY(ASSAY_NEW(&f));
  f->c = c;
  f->n = n;
  const double sign = inverse ? 1 : -1;
  assay_status_t st = NULL;
  if (factorize(n, f)) {
    st = assay_new_array((size_t)n, sizeof *f->roots, &f->roots);
    for (int64_t j = 0; !st && j < n; j++) f->roots[j] = root(c, j, n, sign);
  } else {
    st = make_chirp(f, sign);
  }
  if (st) return assay_fft_destroy(f), st;
  *out = f;
  return NULL;
}

void assay_fft_destroy(assay_fft_t* f) {
  if (!f) return;
  assay_fft_destroy(f->forward);
  assay_fft_destroy(f->backward);
  assay_free(f->roots);
  assay_free(f->chirp);
  assay_free(f->filter);
  assay_free(f);
}

int64_t assay_fft_scratch(const assay_fft_t* f) { return 4 * f->m; }

void assay_fft_run(const assay_fft_t* f, const double* x, double* y, double* scratch) {
  if (f->chirp) {
    run_chirp(f, (const cplx_t*)x, (cplx_t*)y, (cplx_t*)scratch);
  } else {
    transform(f, 0, f->n, (const cplx_t*)x, 1, (cplx_t*)y);
  }
}
