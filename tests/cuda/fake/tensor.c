// Products of tensor cores, to the bit: what an H200 gave for all finite ones of 49,152 outputs of
// each format, and chains of 48 steps. A step takes all of its products and the accumulator: exact
// products are aligned to the largest exponent among them (of a product: the sum of its factors'),
// cut towards zero at 25 bits behind the point, summed exactly, and the sum is cut to 24 bits.
// See also Khattak and Mikaitis, "Accurate Models of NVIDIA Tensor Cores", arXiv 2512.07004.
#include <math.h>
#include <string.h>

#include "internal.h"

enum { FRACTION = 25, M = 16, N = 8, MAX_K = 16, NONE = -10000 };

// value = mantissa * 2^(exponent - bits of the format's fraction)
typedef struct number {
  int32_t mantissa, exponent;  // of 0: NONE
  double value;
  bool is_finite;
} number_t;

typedef struct format {
  int exponent_bits, fraction_bits;
} format_t;

static number_t decode(uint32_t bits, format_t f) {
  const int32_t bias = (1 << (f.exponent_bits - 1)) - 1, top = (1 << f.exponent_bits) - 1;
  const int32_t fraction = (int32_t)(bits & ((1U << f.fraction_bits) - 1));
  const int32_t exponent = (int32_t)(bits >> f.fraction_bits) & top;
  const bool negative = bits >> (f.fraction_bits + f.exponent_bits) & 1;
  number_t n = {.is_finite = exponent != top};
  n.mantissa = exponent ? fraction | 1 << f.fraction_bits : fraction;
  n.exponent = n.mantissa ? (exponent ? exponent : 1) - bias : NONE;
  n.value = n.is_finite ? ldexp(n.mantissa, n.exponent - f.fraction_bits)
            : fraction  ? (double)NAN
                        : (double)INFINITY;
  if (negative) n.mantissa = -n.mantissa, n.value = -n.value;
  return n;
}

static int64_t aligned(int64_t mantissa, int shift) {
  if (shift >= 0) return mantissa * ((int64_t)1 << shift);
  if (shift <= -63) return 0;
  return mantissa < 0 ? -(-mantissa >> -shift) : mantissa >> -shift;
}

static float cut(int64_t sum, int top) {
  uint64_t a = (uint64_t)(sum < 0 ? -sum : sum);
  if (!a) return 0;
  const int bits = 64 - __builtin_clzll(a);
  int cut = bits > 24 ? bits - 24 : 0;
  if (cut < -149 - (top - FRACTION)) cut = -149 - (top - FRACTION);  // subnormal results
  if (cut > 63) return 0;
  a = a >> cut << cut;
  const double r = ldexp((double)a, top - FRACTION);
  return (float)(sum < 0 ? -r : r);
}

static float special(const number_t* a, const number_t* b, int k, float c) {
  double s = (double)c;
  for (int i = 0; i < k; i++) s += a[i].value * b[i].value;
  const uint32_t bits = 0x7fffffff;
  float nan;
  memcpy(&nan, &bits, sizeof nan);
  return isnan(s) ? nan : (float)s;
}

// One output; `fraction`: bits behind the point of a product.
static float step(const number_t* a, const number_t* b, int k, int fraction, float c) {
  static const format_t fp32 = {8, 23};
  uint32_t bits;
  memcpy(&bits, &c, sizeof bits);
  const number_t d = decode(bits, fp32);
  int top = d.exponent;
  bool finite = d.is_finite;
  for (int i = 0; i < k; i++) {
    const int e = a[i].exponent + b[i].exponent;
    if (e > top) top = e;
    finite &= a[i].is_finite && b[i].is_finite;
  }
  if (!finite) return special(a, b, k, c);
  if (top <= NONE / 2) return 0;
  int64_t sum = aligned(d.mantissa, FRACTION - 23 + d.exponent - top);
  for (int i = 0; i < k; i++)
    sum += aligned((int64_t)a[i].mantissa * b[i].mantissa,
                   FRACTION - fraction + a[i].exponent + b[i].exponent - top);
  return cut(sum, top);
}

// ---- fragments: "Matrix Fragments for mma", PTX ISA ---------------------------------------------

static uint32_t* words(fiber_t* warp, int lane, unsigned slot) {
  return (uint32_t*)(void*)warp[lane].slots[slot];
}

// Element (row, k) of A in a register of so many elements (2 of 16 bits, 1 of 32, 4 of 8).
static uint32_t element_a(fiber_t* warp, unsigned slot, int row, int k, int each) {
  const int lane = row % 8 * 4 + k / each % 4, reg = row / 8 + 2 * (k / (4 * each));
  const uint32_t x = words(warp, lane, slot)[4 + reg];
  return each == 1 ? x : x >> 32 / each * (k % each);
}

static uint32_t element_b(fiber_t* warp, unsigned slot, int column, int k, int each) {
  const uint32_t x = words(warp, column * 4 + k / each % 4, slot)[8 + k / (4 * each)];
  return each == 1 ? x : x >> 32 / each * (k % each);
}

static uint32_t* element_d(fiber_t* warp, unsigned slot, int row, int column) {
  return &words(warp, row % 8 * 4 + column / 2, slot)[2 * (row / 8) + column % 2];
}

static void multiply_floats(fiber_t* warp, unsigned slot, format_t f, int k, int each) {
  number_t a[M][MAX_K], b[N][MAX_K];
  const int low = each == 1 ? 13 : 0;  // tf32: bits that are not looked at
  for (int i = 0; i < k; i++) {
    for (int r = 0; r < M; r++) a[r][i] = decode(element_a(warp, slot, r, i, each) >> low, f);
    for (int c = 0; c < N; c++) b[c][i] = decode(element_b(warp, slot, c, i, each) >> low, f);
  }
  for (int r = 0; r < M; r++)
    for (int c = 0; c < N; c++) {
      float d;
      uint32_t* at = element_d(warp, slot, r, c);
      memcpy(&d, at, sizeof d);
      d = step(a[r], b[c], k, 2 * f.fraction_bits, d);
      memcpy(at, &d, sizeof d);
    }
}

static int32_t integer(uint32_t x, bool is_unsigned) {
  return is_unsigned ? (int32_t)(uint8_t)x : (int32_t)(int8_t)x;
}

static void multiply_integers(fiber_t* warp, unsigned slot, bool a_unsigned, bool b_unsigned) {
  enum { K = 32 };
  int32_t a[M][K], b[N][K];
  for (int i = 0; i < K; i++) {
    for (int r = 0; r < M; r++) a[r][i] = integer(element_a(warp, slot, r, i, 4), a_unsigned);
    for (int c = 0; c < N; c++) b[c][i] = integer(element_b(warp, slot, c, i, 4), b_unsigned);
  }
  for (int r = 0; r < M; r++)
    for (int c = 0; c < N; c++) {
      int32_t s = 0;
      for (int i = 0; i < K; i++) s += a[r][i] * b[c][i];
      *element_d(warp, slot, r, c) += (uint32_t)s;
    }
}

float tensor_sum(fake_warp_op_t op, const uint16_t* x, const uint16_t* w, int n, float d) {
  static const format_t fp16 = {5, 10}, bf16 = {8, 7};
  const format_t f = op == FAKE_WGMMA_F16 ? fp16 : bf16;
  number_t a[MAX_K], b[MAX_K];
  for (int i = 0; i < n; i++) {
    a[i] = decode(x[i], f);
    b[i] = decode(w[i], f);
  }
  return step(a, b, n, 2 * f.fraction_bits, d);
}

float tensor_sum_tf32(const uint32_t* x, const uint32_t* w, int n, float d) {
  static const format_t tf32 = {8, 10};
  number_t a[MAX_K], b[MAX_K];
  for (int i = 0; i < n; i++) {
    a[i] = decode(x[i] >> 13, tf32);
    b[i] = decode(w[i] >> 13, tf32);
  }
  return step(a, b, n, 2 * tf32.fraction_bits, d);
}

uint32_t tensor_integer_sum(fake_warp_op_t op, const uint8_t* x, const uint8_t* w, int n,
                            uint32_t d) {
  const bool x_unsigned = op == FAKE_WGMMA_U8S8 || op == FAKE_WGMMA_U8;
  const bool w_unsigned = op == FAKE_WGMMA_S8U8 || op == FAKE_WGMMA_U8;
  for (int i = 0; i < n; i++)
    d += (uint32_t)(integer(x[i], x_unsigned) * integer(w[i], w_unsigned));
  return d;
}

void warp_mma(fiber_t* warp, unsigned slot, fake_warp_op_t op) {
  static const format_t fp16 = {5, 10}, bf16 = {8, 7}, tf32 = {8, 10};
  if (op == FAKE_MMA_F16)
    multiply_floats(warp, slot, fp16, 16, 2);
  else if (op == FAKE_MMA_BF16)
    multiply_floats(warp, slot, bf16, 16, 2);
  else if (op == FAKE_MMA_TF32)
    multiply_floats(warp, slot, tf32, 8, 1);
  else
    multiply_integers(warp, slot, op == FAKE_MMA_U8S8 || op == FAKE_MMA_U8,
                      op == FAKE_MMA_S8U8 || op == FAKE_MMA_U8);
}
