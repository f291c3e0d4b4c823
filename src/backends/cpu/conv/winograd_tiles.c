// Winograd's minimal filtering, F(m x m, 3 x 3): the transforms of one tile, for all channels.
#include "backends/cpu/conv/winograd_tiles.h"

#include <string.h>

#include "base/target.h"

#define CLONES ASSAY_CLONES("arch=x86-64-v4", "arch=x86-64-v3", "default")

enum { LANES = 16, MAX = 6 };

// A vector of 16; compilers make of it as many registers as the CPU needs.
typedef float lanes_t __attribute__((vector_size(64), aligned(4), may_alias));
typedef uint32_t bits_t __attribute__((vector_size(64), aligned(4), may_alias));

// Loops have to disappear for tiles to be registers.
#ifdef __clang__
#define UNROLL _Pragma("unroll")
#else
#define UNROLL _Pragma("GCC unroll 16")
#endif
#define INLINE __attribute__((always_inline)) static inline

// ---- along one axis -----------------------------------------------------------------------------

// B^T: y[i * step] for i < m + 2.
INLINE void in_axis(int m, const lanes_t* x, lanes_t* y, int step) {
  if (m == 2) {
    const lanes_t d0 = x[0], d1 = x[step], d2 = x[2 * step], d3 = x[3 * step];
    y[0] = d0 - d2;
    y[step] = d1 + d2;
    y[2 * step] = d2 - d1;
    y[3 * step] = d1 - d3;
    return;
  }
  const lanes_t d0 = x[0], d1 = x[step], d2 = x[2 * step], d3 = x[3 * step], d4 = x[4 * step],
                d5 = x[5 * step];
  const lanes_t even = d4 - 4 * d2, odd = d3 - 4 * d1, far = d4 - d2, twice = 2 * (d3 - d1);
  y[0] = (4 * d0 - 5 * d2) + d4;
  y[step] = even + odd;
  y[2 * step] = even - odd;
  y[3 * step] = far + twice;
  y[4 * step] = far - twice;
  y[5 * step] = (4 * d1 - 5 * d3) + d5;
}

// A^T: y[i * to] for i < m.
INLINE void out_axis(int m, const lanes_t* x, int from, lanes_t* y, int to) {
  if (m == 2) {
    y[0] = x[0] + x[from] + x[2 * from];
    y[to] = x[from] - x[2 * from] - x[3 * from];
    return;
  }
  const lanes_t sum = x[from] + x[2 * from], difference = x[from] - x[2 * from];
  const lanes_t far = x[3 * from] + x[4 * from], apart = x[3 * from] - x[4 * from];
  y[0] = (x[0] + sum) + far;
  y[to] = difference + 2 * apart;
  y[2 * to] = sum + 4 * far;
  y[3 * to] = (difference + 8 * apart) + x[5 * from];
}

// ---- tiles --------------------------------------------------------------------------------------

// Sets the sign bits of *bad where |x| is neither 0 nor in range. Of |x| - 1, whose wrapping takes
// 0 out of the way, halves are compared: so they stay positive.
INLINE void check(const lanes_t* x, cpu_range_t r, bits_t* bad) {
  const bits_t twice = *(const bits_t*)(const void*)x << 1, size = twice >> 1;
  *bad |= (((twice - 2) >> 1) + (0u - (r.min - 1))) & 0x80000000u;
  *bad |= size + (0x80000000u - r.max);
}

INLINE bool is_bad(const bits_t* bad) {
  uint32_t any = 0;
  for (int i = 0; i < LANES; i++) any |= (*bad)[i];
  return any >> 31;
}

INLINE void transform_in(int m, const float* const* from, int64_t c, cpu_range_t r, bits_t* bad,
                         float* to, int64_t step) {
  const int n = m + 2;
  lanes_t d[MAX * MAX];
  UNROLL for (int i = 0; i < n * n; i++) {
    d[i] = *(const lanes_t*)(const void*)(from[i] + c);
    check(&d[i], r, bad);
  }
  UNROLL for (int j = 0; j < n; j++) in_axis(m, d + j, d + j, n);
  UNROLL for (int i = 0; i < n; i++) {
    in_axis(m, d + i * n, d + i * n, 1);
    UNROLL for (int j = 0; j < n; j++) * (lanes_t*)(void*)(to + (i * n + j) * step + c) =
        d[i * n + j];
  }
}

// The last channels, by way of whole vectors of zeros.
INLINE void transform_in_last(int m, const float* const* from, int64_t c, int64_t left,
                              cpu_range_t r, bits_t* bad, float* to, int64_t step) {
  float scratch[2][MAX * MAX * LANES] = {{0}};
  const float* places[MAX * MAX];
  const int n = (m + 2) * (m + 2);
  for (int i = 0; i < n; i++) {
    memcpy(scratch[0] + i * LANES, from[i] + c, (size_t)left * sizeof(float));
    places[i] = scratch[0] + i * LANES;
  }
  transform_in(m, places, 0, r, bad, scratch[1], LANES);
  for (int i = 0; i < n; i++)
    memcpy(to + i * step + c, scratch[1] + i * LANES, (size_t)left * sizeof(float));
}

INLINE bool in_tile(int m, int64_t channels, const float* const* from, cpu_range_t r, float* to,
                    int64_t step) {
  bits_t bad = {0};
  int64_t c = 0;
  for (; c + LANES <= channels; c += LANES) transform_in(m, from, c, r, &bad, to, step);
  if (c < channels) transform_in_last(m, from, c, channels - c, r, &bad, to, step);
  return !is_bad(&bad);
}

INLINE void limit(lanes_t* x) {
  const bits_t below = (bits_t)(*x < 0);
  *x = (lanes_t)((bits_t)*x & ~below);
}

INLINE void transform_out(int m, const float* from, int64_t step, const float* bias, bool relu,
                          float* const* to, int64_t c) {
  const int n = m + 2;
  lanes_t d[MAX * MAX], y[MAX * MAX];
  const lanes_t add = bias ? *(const lanes_t*)(const void*)(bias + c) : (lanes_t){0};
  UNROLL for (int j = 0; j < n; j++) {
    UNROLL for (int i = 0; i < n; i++) d[i] =
        *(const lanes_t*)(const void*)(from + (i * n + j) * step + c);
    out_axis(m, d, 1, y + j, n);
  }
  UNROLL for (int i = 0; i < m; i++) {
    out_axis(m, y + i * n, 1, d, 1);
    UNROLL for (int j = 0; j < m; j++) if (to[i * m + j]) {
      if (bias) d[j] += add;
      if (relu) limit(&d[j]);
      *(lanes_t*)(void*)(to[i * m + j] + c) = d[j];
    }
  }
}

INLINE void out_tile(int m, int64_t channels, const float* from, int64_t step, const float* bias,
                     bool relu, float* const* to) {
  int64_t c = 0;
  for (; c + LANES <= channels; c += LANES) transform_out(m, from, step, bias, relu, to, c);
  if (c == channels) return;
  float last[MAX * MAX * LANES], row[LANES] = {0};
  float* places[MAX * MAX];
  const size_t bytes = (size_t)(channels - c) * sizeof(float);
  for (int i = 0; i < m * m; i++) places[i] = last + i * LANES;
  if (bias) memcpy(row, bias + c, bytes);
  // Products lie in whole panels: there is something after the last channel.
  transform_out(m, from + c, step, bias ? row : NULL, relu, places, 0);
  for (int i = 0; i < m * m; i++)
    if (to[i]) memcpy(to[i] + c, places[i], bytes);
}

CLONES bool cpu_winograd_in_2(int64_t channels, const float* const* from, cpu_range_t r, float* to,
                              int64_t step) {
  return in_tile(2, channels, from, r, to, step);
}
CLONES bool cpu_winograd_in_4(int64_t channels, const float* const* from, cpu_range_t r, float* to,
                              int64_t step) {
  return in_tile(4, channels, from, r, to, step);
}
CLONES void cpu_winograd_out_2(int64_t channels, const float* from, int64_t step, const float* bias,
                               bool relu, float* const* to) {
  if (relu)
    out_tile(2, channels, from, step, bias, true, to);
  else
    out_tile(2, channels, from, step, bias, false, to);
}
CLONES void cpu_winograd_out_4(int64_t channels, const float* from, int64_t step, const float* bias,
                               bool relu, float* const* to) {
  if (relu)
    out_tile(4, channels, from, step, bias, true, to);
  else
    out_tile(4, channels, from, step, bias, false, to);
}
