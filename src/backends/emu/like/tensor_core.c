// Sums of products as a GPU makes them.
#include "backends/emu/like/tensor_core.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/target.h"

enum { NOTHING = -10000, FLOAT_BITS = 23, FLOAT_LEAST = -126, HALF_STEP = 8, MAX_TERMS = 16 };

static uint32_t bits_of(float x) {
  uint32_t b;
  memcpy(&b, &x, sizeof b);
  return b;
}

emu_arithmetic_t emu_arithmetic(const emu_gpu_t* gpu, assay_format_t format) {
  const bool tf32 = format == ASSAY_FORMAT_TF32, bf16 = format == ASSAY_FORMAT_BF16;
  emu_arithmetic_t a = {.fma = format == ASSAY_FORMAT_FP32, .tf32 = tf32, .terms = 1};
  if (a.fma) return a;
  a.terms = tf32 ? gpu->terms / 2 : gpu->terms;
  a.fraction = gpu->fraction;
  a.bits = bf16 ? 7 : 10;
  a.least = format == ASSAY_FORMAT_FP16 ? -14 : FLOAT_LEAST;
  a.up = a.fraction - 2 * a.bits;
  return a;
}

// ---- numbers ------------------------------------------------------------------------------------

// x = mantissa * 2^(exponent - FLOAT_BITS); finite.
static void take_apart(float x, int32_t* mantissa, int32_t* exponent) {
  const uint32_t b = bits_of(x);
  const int32_t e = (int32_t)(b >> FLOAT_BITS & 0xff), m = (int32_t)(b & 0x7fffff);
  *mantissa = e ? m | 1 << FLOAT_BITS : m;
  *exponent = e ? e - 127 : FLOAT_LEAST;
  if (!*mantissa) *exponent = NOTHING;
  if (b >> 31) *mantissa = -*mantissa;
}

// The same of a number in the operands' format: exponent - a->bits.
static void take_operand_apart(const emu_arithmetic_t* a, float x, int32_t* mantissa,
                               int32_t* exponent) {
  int32_t m;
  take_apart(x, &m, exponent);
  if (!m) {
    *mantissa = 0;
    return;
  }
  const int below = *exponent < a->least ? a->least - *exponent : 0;  // subnormal there
  const int32_t size = (m < 0 ? -m : m) >> (FLOAT_BITS - a->bits + below);
  *exponent += below;
  *mantissa = m < 0 ? -size : size;
}

void emu_rows_deinit(emu_rows_t* r) {
  assay_free(r->mantissa);
  assay_free(r->exponent);
  assay_free(r->value);
  assay_free(r->finite);
  *r = (emu_rows_t){0};
}

assay_status_t emu_rows_create(const emu_arithmetic_t* a, int64_t n, int64_t k, emu_rows_t* out) {
  const int64_t whole = k <= INT64_MAX - a->terms ? (k + a->terms - 1) / a->terms * a->terms : -1;
  int64_t size;
  *out = (emu_rows_t){.n = n, .k = k, .step = whole};
  if (whole < 0 || !assay_mul_i64(n, whole, &size)) return assay_status_no_memory();
  assay_status_t st = assay_new_array((size_t)size, sizeof(float), &out->value);
  if (!st) st = assay_new_array((size_t)n, sizeof(bool), &out->finite);
  if (!st && !a->fma) st = assay_new_array((size_t)size, sizeof(int32_t), &out->mantissa);
  if (!st && !a->fma) st = assay_new_array((size_t)size, sizeof(int32_t), &out->exponent);
  if (st) emu_rows_deinit(out);
  return st;
}

void emu_rows_set(const emu_arithmetic_t* a, emu_rows_t* r, int64_t i, const float* x) {
  float* value = r->value + i * r->step;
  bool finite = true;
  for (int64_t k = 0; k < r->step; k++) {
    const double given = k < r->k ? (double)x[k] : 0;
    value[k] = (float)(a->tf32 ? assay_format_round(ASSAY_FORMAT_TF32, given, ASSAY_OVERFLOW_IEEE)
                               : given);
    finite &= isfinite(value[k]);
  }
  r->finite[i] = finite;
  if (a->fma) return;
  for (int64_t k = 0; k < r->step; k++) {
    const int64_t at = i * r->step + k;
    r->mantissa[at] = 0;
    r->exponent[at] = NOTHING;
    if (isfinite(value[k])) take_operand_apart(a, value[k], &r->mantissa[at], &r->exponent[at]);
  }
}

// ---- a step -------------------------------------------------------------------------------------

// sum * 2^(top - fraction), cut towards zero to a float32.
static inline float cut(int64_t sum, int top, int fraction) {
  const int64_t a = sum < 0 ? -sum : sum;
  if (!a) return 0;
  const int bits = 64 - __builtin_clzll((unsigned long long)a);
  const int least = FLOAT_LEAST - FLOAT_BITS - (top - fraction);  // places below subnormal numbers
  int places = bits > FLOAT_BITS + 1 ? bits - FLOAT_BITS - 1 : 0;
  if (places < least) places = least;
  if (places > 62) return 0;
  const double r = ldexp((double)(a >> places << places), top - fraction);
  return (float)(sum < 0 ? -r : r);
}

typedef struct factors {
  const int32_t *x, *x_exponent, *w, *w_exponent;
} factors_t;

// The sum of n terms' products and c, all of them finite. A product has at most 22 bits, which come
// to 27 here, so that eight fit into 32 bits.
static inline __attribute__((always_inline)) float step(const factors_t* f, int n,
                                                        const emu_arithmetic_t* a, float c) {
  int32_t m, e, top, exponent[MAX_TERMS];
  take_apart(c, &m, &e);
  top = e;
  for (int i = 0; i < n; i++) {
    exponent[i] = f->x_exponent[i] + f->w_exponent[i];
    top = exponent[i] > top ? exponent[i] : top;
  }
  if (top <= NOTHING / 2) return 0;
  const int below = top - e < 62 ? top - e : 62;
  const int64_t size = (int64_t)(m < 0 ? -m : m) << (a->fraction - FLOAT_BITS) >> below;
  int64_t sum = m < 0 ? -size : size;
  for (int from = 0; from < n; from += HALF_STEP) {
    int32_t part = 0;
    const int end = from + HALF_STEP < n ? from + HALF_STEP : n;
    for (int i = from; i < end; i++) {
      const int32_t product = f->x[i] * f->w[i], away = top - exponent[i];
      const int32_t cut_off =
          (product < 0 ? -product : product) << a->up >> (away < 31 ? away : 31);
      part += product < 0 ? -cut_off : cut_off;
    }
    sum += part;
  }
  return cut(sum, top, a->fraction);
}

// With infinities and NaN among them: what their sum is.
static float special_step(const float* x, const float* w, int n, float c) {
  double s = (double)c;
  for (int i = 0; i < n; i++) s += (double)x[i] * (double)w[i];
  return (float)s;
}

static bool step_is_finite(const float* x, const float* w, int n, float c) {
  bool finite = isfinite(c);
  for (int i = 0; i < n; i++) finite &= isfinite(x[i]) && isfinite(w[i]);
  return finite;
}

static float careful_chain(const emu_arithmetic_t* a, const emu_rows_t* x, int64_t i,
                           const emu_rows_t* w, int64_t j, float c) {
  for (int64_t k = 0; k < x->step; k += a->terms) {
    const int64_t p = i * x->step + k, q = j * w->step + k;
    const factors_t f = {x->mantissa + p, x->exponent + p, w->mantissa + q, w->exponent + q};
    c = step_is_finite(x->value + p, w->value + q, a->terms, c)
            ? step(&f, a->terms, a, c)
            : special_step(x->value + p, w->value + q, a->terms, c);
  }
  return c;
}

// Of finite numbers. The sum may overflow on the way: then it is begun again, with care.
static inline __attribute__((always_inline)) void finite_row(const emu_arithmetic_t* a, int terms,
                                                             const emu_rows_t* x, int64_t i,
                                                             const emu_rows_t* w, float* y) {
  for (int64_t j = 0; j < w->n; j++) {
    float c = y[j];
    for (int64_t k = 0; isfinite(c) && k < x->step; k += terms) {
      const int64_t p = i * x->step + k, q = j * w->step + k;
      const factors_t f = {x->mantissa + p, x->exponent + p, w->mantissa + q, w->exponent + q};
      c = step(&f, terms, a, c);
    }
    y[j] = isfinite(c) && w->finite[j] ? c : careful_chain(a, x, i, w, j, y[j]);
  }
}

ASSAY_CLONES("arch=x86-64-v4", "arch=x86-64-v3", "default")
static void tensor_row(const emu_arithmetic_t* a, const emu_rows_t* x, int64_t i,
                       const emu_rows_t* w, float* y) {
  if (a->terms == 16)
    finite_row(a, 16, x, i, w, y);
  else if (a->terms == 8)
    finite_row(a, 8, x, i, w, y);
  else
    finite_row(a, 4, x, i, w, y);
}

// Terms of a chain of multiply-adds, of sums of k of them: four chains, but for the last one of
// whole steps, whose sums are added up in ascending order; one where there are few.
enum { FMA_STEP = 32, FMA_CHAINS = 4, FMA_ONE_CHAIN = 256 };
static int64_t chain_of(int64_t k) {
  const int64_t of_all = FMA_STEP * FMA_CHAINS;
  return k < FMA_ONE_CHAIN ? k : (k + of_all - 1) / of_all * FMA_STEP;
}

ASSAY_CLONES("arch=x86-64-v4", "arch=x86-64-v3", "default")
static void fma_row(const emu_arithmetic_t* a, const emu_rows_t* x, int64_t i, const emu_rows_t* w,
                    float* y) {
  const int64_t chain = a->split ? chain_of(x->k) : x->k;
  for (int64_t j = 0; j < w->n; j++) {
    const float *u = x->value + i * x->step, *v = w->value + j * w->step;
    float sum = y[j];
    for (int64_t first = 0; first < x->k; first += chain) {
      const int64_t end = x->k - first < chain ? x->k : first + chain;
      float s = first ? 0 : sum;
      for (int64_t k = first; k < end; k++) s = fmaf(u[k], v[k], s);
      sum = first ? sum + s : s;
    }
    y[j] = sum;
  }
}

void emu_rows_multiply(const emu_arithmetic_t* a, const emu_rows_t* x, int64_t i,
                       const emu_rows_t* w, float* y) {
  if (a->fma) {
    fma_row(a, x, i, w, y);
    return;
  }
  if (x->finite[i]) {
    tensor_row(a, x, i, w, y);
    return;
  }
  for (int64_t j = 0; j < w->n; j++) y[j] = careful_chain(a, x, i, w, j, y[j]);
}
