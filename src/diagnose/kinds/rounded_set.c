// Whether the numbers of a set are few, or multiples of a step.
#include <math.h>
#include <stdlib.h>

#include "diagnose/kinds/rounded_numbers.h"

// How many numbers a book holds at most, and how often each is used at least; steps of a grid at
// most: 16 bits.
enum { MAX_FEW = 256, USES = 4, MAX_LEVELS = 65536 };

// Numbers are alike to the rounding of a product of float32, and lie so near to a step, in steps.
static const double ALIKE = 0x1p-22, NEAR = 0.03;

// Bits of evidence: of a number that is there already, and of one that lies on a step (a chance of
// 2 NEAR). The first few of a grid make its step, and say nothing.
static const double BITS_ALIKE = 20, BITS_NEAR = 4;
enum { FREE = 3 };

static int by_size(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

// Each number once, at the front, with how often it is there.
static void take_unlike(double* x, int64_t n, assay_rounded_set_t* s) {
  enum { COUNTED = 16 };
  for (int64_t i = 0, first = 0; i < n; i++) {
    const bool last =
        i + 1 == n || x[i + 1] - x[first] > ALIKE * fmax(fabs(x[i + 1]), fabs(x[first]));
    const int64_t uses = i + 1 - first;
    if (!last) continue;
    x[s->n++] = x[first];
    first = i + 1;
    // A number that is everywhere says no more than one that is there a few times; 0 says nothing.
    if (x[s->n - 1] == 0) continue;
    s->used += uses;
    s->unlike++;
    s->repeated += uses > 1;
    s->evidence += BITS_ALIKE * (double)(uses < COUNTED ? uses - 1 : COUNTED);
  }
}

// The step of numbers that all lie on one, by the smallest gap over `part`; 0: they do not.
static double step_of(const double* x, int64_t n, double smallest, int part) {
  const double noise = ALIKE * fmax(fabs(x[0]), fabs(x[n - 1]));
  double step = smallest / part, kk = 0, kv = 0;
  // Small gaps first make the step exact enough for larger ones.
  for (double within = 4 * smallest; kk < 1 || within < 64 * smallest; within *= 4) {
    kk = kv = 0;
    for (int64_t i = 1; i < n; i++) {
      const double gap = x[i] - x[i - 1], k = rint(gap / step);
      if (gap > within) continue;
      kk += k * k;
      kv += k * gap;
    }
    if (!(kk > 0)) return 0;
    step = kv / kk;
  }
  if (!(step > 0) || (x[n - 1] - x[0]) / step > MAX_LEVELS - 0.5) return 0;
  for (int64_t i = 1; i < n; i++) {
    const double far = x[i] - x[0], k = rint(far / step);
    if (fabs(far - k * step) > NEAR * step + noise) return 0;
    kk += k * k;
    kv += k * far;
    step = kv / kk;
  }
  return step;
}

static double grid_of(const double* x, int64_t n) {
  enum { PARTS = 8 };
  double smallest = (double)INFINITY;
  for (int64_t i = 1; i < n; i++) smallest = fmin(smallest, x[i] - x[i - 1]);
  for (int part = 1; n > 1 && part <= PARTS; part++) {
    const double step = step_of(x, n, smallest, part);
    if (step > 0) return step;
  }
  return 0;
}

// Whether most steps are there between two numbers, where most elements lie: at the ends of a grid
// many are not.
static bool is_even(const double* x, int64_t n, double low, double high, double step) {
  static const double MOST = 0.9;
  int64_t there = 0;
  for (int64_t i = 0; i < n; i++) there += x[i] >= low && x[i] <= high;
  return step > 0 && (double)there >= MOST * ((high - low) / step + 1);
}

assay_rounded_set_t assay_rounded_set_of(double* numbers, int64_t n) {
  assay_rounded_set_t s = {.way = ASSAY_ROUNDED_NOT};
  if (n < 1) return s;
  qsort(numbers, (size_t)n, sizeof *numbers, by_size);
  const double low = numbers[n / 8], high = numbers[n - 1 - n / 8];
  take_unlike(numbers, n, &s);
  s.low = numbers[0];
  s.few = s.n <= MAX_FEW && s.used >= USES * s.unlike && 2 * s.repeated >= s.unlike;
  s.step = grid_of(numbers, s.n);
  s.evidence += BITS_NEAR * fmax(0, (double)(s.n - FREE));
  assay_rounded_scaled_bits(&s, numbers);
  // A palette whose numbers happen to lie on some fine grid is one still.
  const bool even = is_even(numbers, s.n, low, high, s.step);
  if (s.few)
    s.way = even ? ASSAY_ROUNDED_GRID : ASSAY_ROUNDED_FEW;
  else if (s.step > 0)
    s.way = ASSAY_ROUNDED_GRID;
  return s;
}

double assay_rounded_set_reach(const assay_rounded_set_t* s, const double* numbers, double x) {
  if (s->way == ASSAY_ROUNDED_GRID) return 0.5 * s->step;
  int64_t low = 0, high = s->n - 1;
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    if (numbers[middle] < x - ALIKE * fabs(x))
      low = middle + 1;
    else
      high = middle;
  }
  const double down = low ? numbers[low] - numbers[low - 1] : 0;
  const double up = low + 1 < s->n ? numbers[low + 1] - numbers[low] : 0;
  return 0.5 * (down > 0 && up > 0 ? 0.5 * (down + up) : down + up);
}
