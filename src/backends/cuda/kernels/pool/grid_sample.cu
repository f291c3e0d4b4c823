// GridSample: a place of the grid a thread, for some channels. Places and weights are made in
// float64, a choice between neighbours is then no matter of rounding; sums of products are in
// float32, each rounded, over the taps in the order of the input, those of weight 0 left out.
//
// Options: AXES, TAPS an axis (1: the nearest, 2: linear, 4: cubic), ALIGN 1: the corners' centers
// are the ends; PAD_ZEROS, PAD_BORDER or PAD_REFLECTION; G, T, TO: types of the grid, the input and
// the output. Source: ONNX GridSample-22; ops/conv/sample.c has the cases at the borders.
#include "elements.h"
#include "grid_sample_args.h"

DEVICE double floor_of(double x) {
  const double t = TRUNC64(x);
  return t > x ? t - 1 : t;
}
DEVICE bool is_finite64(double x) { return x - x == 0; }

// x reflected at the two borders until it lies between them; an infinite one is the lower border.
DEVICE double reflect(double x, double low, double high) {
  const double range = high - low, around = 2 * range;
  if (x >= low && x <= high) return x;
  if (!(range > 0) || !is_finite64(x)) return low;
  const double past = x < low ? low - x : x - high;
  double away = FMA64(-TRUNC64(past / around), around, past);
  if (away < 0) away += around;
  if (away >= around) away -= around;
  const double inward = away <= range ? away : around - away;
  return x < low ? low + inward : high - inward;
}

// The place in the input of a coordinate of the grid.
DEVICE double place_of(double g, double n) {
  double x = ALIGN ? (g + 1) / 2 * (n - 1) : ((g + 1) * n - 1) / 2;
  if (TAPS == 1) x = ROUND_EVEN64(x);
  const double low = ALIGN ? 0 : -0.5, high = n - 1 - low;
#if defined(PAD_BORDER)
  if (TAPS != 4 && (x < low || x > high)) x = x < 0 ? 0 : n - 1;
#elif defined(PAD_REFLECTION)
  if (x < low || x > high) x = reflect(x, low, high);
#endif
  (void)low, (void)high;
  return x;
}

// The element at index i of an axis; -1: a zero.
DEVICE int64_t element_at(double i, int64_t size) {
  const double last = (double)(size - 1);
#if defined(PAD_ZEROS)
  return i >= 0 && i <= last ? (int64_t)i : -1;
#else
#if defined(PAD_REFLECTION)
  i = ALIGN ? reflect(i, 0, last) : TRUNC64(reflect(i, -0.5, last + 0.5));
#endif
  if (!(i > 0)) return 0;
  return i < last ? (int64_t)i : size - 1;
#endif
}

// Source: Keys, Cubic convolution interpolation, 1981, with a = -0.75.
DEVICE void weights_of(double r, double* w) {
#if TAPS == 1
  (void)r;
  w[0] = 1;
#elif TAPS == 2
  w[0] = 1 - r;
  w[1] = r;
#else
  const double a = -0.75, p = r + 1, q = 1 - r, s = 2 - r;
  w[0] = ((a * p - 5 * a) * p + 8 * a) * p - 4 * a;
  w[1] = ((a + 2) * r - (a + 3)) * r * r + 1;
  w[2] = ((a + 2) * q - (a + 3)) * q * q + 1;
  w[3] = ((a * s - 5 * a) * s + 8 * a) * s - 4 * a;
#endif
}

#if AXES == 1
#define ALL_TAPS TAPS
#elif AXES == 2
#define ALL_TAPS (TAPS * TAPS)
#else
#define ALL_TAPS (TAPS * TAPS * TAPS)
#endif

// The elements that an output is made of (-1: a zero), and how much of each. Coordinates are listed
// from the innermost axis outwards.
DEVICE void find_taps(const grid_sample_args_t* a, int64_t at, int64_t* offset, float* weight) {
  double w[AXES][TAPS];
  int64_t index[AXES][TAPS];
  UNROLL
  for (int d = 0; d < AXES; d++) {
    const double g = (double)LOAD(G)(GLOBAL(const ELEMENT(G), a->grid), at * AXES + AXES - 1 - d);
    const double x = place_of(g, (double)a->sizes[d]), from = floor_of(x);
    const double base = TAPS == 1 ? x : from - (TAPS == 4);
    weights_of(is_finite64(x) ? x - from : x != x ? x : 0, w[d]);
    UNROLL
    for (int k = 0; k < TAPS; k++) index[d][k] = element_at(base + k, a->sizes[d]);
  }
  UNROLL
  for (int i = 0; i < ALL_TAPS; i++) {
    int64_t place = 0;
    double product = 1;
    int step = ALL_TAPS;
    UNROLL
    for (int d = 0; d < AXES; d++) {
      step /= TAPS;
      const int64_t k = index[d][i / step % TAPS];
      place = place < 0 || k < 0 ? -1 : place * a->sizes[d] + k;
      product = product * w[d][i / step % TAPS];
    }
    offset[i] = place;
    weight[i] = (float)product;
  }
}

DEVICE float value_at(const ELEMENT(T) * plane, const int64_t* offset, const float* weight) {
  if (TAPS == 1) return offset[0] < 0 ? 0 : LOAD(T)(plane, offset[0]);
  float sum = 0;
  UNROLL
  for (int i = 0; i < ALL_TAPS; i++) {
    const float v = offset[i] < 0 ? 0 : LOAD(T)(plane, offset[i]);
    if (weight[i] != 0) sum = sum + weight[i] * v;
  }
  return sum;
}

KERNEL(grid_sample, grid_sample_args_t, 128) {
  const int64_t n = a.batch * a.groups * a.places;
  WAIT_FOR_INPUTS();
  for (int64_t i = BLOCK * THREADS + THREAD; i < n; i += BLOCKS * THREADS) {
    const int64_t place = i % a.places, group = i / a.places % a.groups,
                  b = i / a.places / a.groups;
    int64_t offset[ALL_TAPS];
    float weight[ALL_TAPS];
    find_taps(&a, b * a.places + place, offset, weight);
    for (int64_t c = group * SAMPLE_CHANNELS; c < a.channels && c < (group + 1) * SAMPLE_CHANNELS;
         c++) {
      const int64_t plane = b * a.channels + c;
      const ELEMENT(T)* x = GLOBAL(const ELEMENT(T), a.x) + plane * a.in_size;
      STORE(TO)(GLOBAL(ELEMENT(TO), a.y), plane * a.places + place, value_at(x, offset, weight));
    }
  }
}
