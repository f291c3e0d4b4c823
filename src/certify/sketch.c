// Sketches: a tensor of any size as a few numbers that another tensor does not have.
#include "certify/sketch.h"

#include <math.h>
#include <string.h>

#include "base/target.h"

// Bits for the signs of element i: the finalizer of SplitMix64 on a counter.
// Source: G. Steele, D. Lea, C. Flood, Fast splittable pseudorandom number generators, OOPSLA 2014.
static inline uint64_t bits_of(uint64_t i) {
  uint64_t z = (i + 1) * 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

static inline double with_sign(double x, uint64_t bits) {
  uint64_t b;
  memcpy(&b, &x, sizeof b);
  b ^= bits & 0x8000000000000000u;
  memcpy(&x, &b, sizeof b);
  return x;
}

// One block of elements, all finite.
ASSAY_CLONES("arch=x86-64-v4", "arch=x86-64-v3", "default")
static void add_block(const double* x, int64_t first, int64_t n, assay_sketch_t* out) {
  double sum[ASSAY_SKETCH_SUMS] = {0}, norm2 = 0;
  for (int64_t i = 0; i < n; i++) {
    const uint64_t bits = bits_of((uint64_t)(first + i));
    for (int j = 0; j < ASSAY_SKETCH_SUMS; j++) sum[j] += with_sign(x[i], bits << (7 * j));
    norm2 += x[i] * x[i];
  }
  for (int j = 0; j < ASSAY_SKETCH_SUMS; j++) out->sum[j] += sum[j];
  out->norm2 += norm2;
}

// Elements of a tensor as float64, with 0 for those that are not finite, which are counted.
static int64_t take(const assay_tensor_t* t, int64_t first, int64_t n, double* out) {
  int64_t unfinite = 0;
  for (int64_t i = 0; i < n; i++) {
    const double x =
        t->store == ASSAY_STORE_I64 ? (double)assay_i64(t)[first + i] : assay_f64(t)[first + i];
    const bool finite = isfinite(x) != 0;
    out[i] = finite ? x : 0;
    unfinite += !finite;
  }
  return unfinite;
}

bool assay_sketch_of(const assay_tensor_t* t, assay_sketch_t* out) {
  enum { BLOCK = 1024 };
  double x[BLOCK];
  *out = (assay_sketch_t){0};
  if (!t || t->kind != ASSAY_KIND_TENSOR) return false;
  if (t->store != ASSAY_STORE_F64 && t->store != ASSAY_STORE_I64) return false;
  out->size = t->size;
  for (int64_t i = 0; i < t->size; i += BLOCK) {
    const int64_t n = t->size - i < BLOCK ? t->size - i : BLOCK;
    out->unfinite += take(t, i, n, x);
    add_block(x, i, n, out);
  }
  return true;
}

double assay_sketch_distance(const assay_sketch_t* a, const assay_sketch_t* b) {
  double sum = 0;
  for (int j = 0; j < ASSAY_SKETCH_SUMS; j++) {
    const double d = a->sum[j] - b->sum[j];
    sum += d * d / ASSAY_SKETCH_SUMS;
  }
  return sqrt(sum);
}

enum { CODE_OF_ONE = 110, CODE_OF_INFINITY = 255 };

uint8_t assay_size_code(double x) {
  if (!(x > 0)) return 0;
  if (!isfinite(x)) return CODE_OF_INFINITY;
  int e;
  const double f = frexp(x, &e);  // x = f * 2^e, f in [1/2, 1)
  if (f == 0.5) e--;
  const int code = CODE_OF_ONE + e;
  return (uint8_t)(code < 1 ? 1 : code > CODE_OF_INFINITY ? CODE_OF_INFINITY : code);
}

double assay_size_decode(uint8_t code) {
  if (code == CODE_OF_INFINITY) return (double)INFINITY;
  return code ? ldexp(1, code - CODE_OF_ONE) : 0;
}
