// The error function and its complement.
#include <math.h>

#include "base/functions.h"
#include "base/functions_quick.h"

#define ASSAY_TABLE_ERF
#include "base/functions_tables.inc"

static inline double ended(assay_dd_t x) { return x.high + x.low; }

// ---- first evaluation ---------------------------------------------------------------------------

// A row's polynomial at h from its centre. The slope has 26 bits and so has the head of h, which is
// cut off by `cutoff`: their product is exact. What is left out is below 2^-70 of the value.
static inline assay_dd_t polynomial(const double* row, double h, double cutoff) {
  const double head = (h + cutoff) - cutoff;
  double p = row[14];
  for (int i = 13; i >= 4; i--) p = p * h + row[i];
  const assay_dd_t s = ordered_sum(row[0], row[2] * head);
  const double change = (row[2] * (h - head) + row[3] * h) + h * h * p;
  return ordered_sum(s.high, s.low + (row[1] + change));
}

static const double over_sixteen = 0x1.8p21, over_two = 0x1.8p24;  // h up to 1/32; up to 1/4

// 0 <= x < 1.
static quick_t quick_erf(double x) {
  const int i = (int)(x * 16 + 0.5);
  const assay_dd_t g = polynomial(erf_table[i], x - i / 16.0, over_sixteen);
  const assay_dd_t y = quick_product(assay_dd(x), g);
  return (quick_t){y.high, y.low, y.high * 0x1p-61, 0};
}

// e^(-x^2) (e^(x^2) erfc(x)) for 1/2 <= x < 28.
static quick_t quick_erfc(double x) {
  assay_dd_t r;
  if (x < 8) {
    const int i = (int)(x * 16 + 0.5);
    r = polynomial(erfc_table[i - 8], x - i / 16.0, over_sixteen);
  } else {
    const int i = (int)(x * 2 + 0.5);
    r = polynomial(erfc_table[i == 16 ? 120 : 121 + i - 17], x - i / 2.0, over_two);
  }
  const assay_dd_t square = exact_product(x, x);
  const quick_t e = assay_quick_exp(-square.high, -square.low);
  const assay_dd_t y = quick_product((assay_dd_t){e.high, e.low}, r);
  return (quick_t){y.high, y.low, y.high * 0x1p-61, e.exponent};
}

// whole - q.
static quick_t rest_of(double whole, quick_t q) {
  const double scale = power_of_2(q.exponent < -300 ? -300 : q.exponent);
  const assay_dd_t s = exact_sum(whole, -q.high * scale);
  const assay_dd_t y = ordered_sum(s.high, s.low - q.low * scale);
  return (quick_t){y.high, y.low, q.error * scale + 0x1p-104, 0};
}

// ---- the functions ------------------------------------------------------------------------------

double assay_erf(double x) {
  static const assay_dd_t two_over_root_pi = {0x1.20dd750429b6dp+0, 0x1.1ae3a914fed80p-56};
  const double a = fabs(x);
  if (x != x || x == 0) return x;
  double y;
  if (a < 0x1p-500) {
    const assay_dd_t p = assay_dd_times(two_over_root_pi, assay_dd(a * 0x1p600));
    y = assay_dd_rounded(p, -600);
  } else if (a >= 6) {
    y = 1;
  } else if (!decided(a < 1 ? quick_erf(a) : rest_of(1, quick_erfc(a)), &y)) {
    y = ended(assay_dd_erf(assay_dd(a)));
  }
  return x < 0 ? -y : y;
}

double assay_erfc(double x) {
  if (x != x) return x;
  if (x < -6) return 2;
  if (x > 27.3) return 0;
  if (fabs(x) < 0x1p-60) return 1;
  double y;
  if (x < 0.5) {
    quick_t q = x <= -1 ? quick_erfc(-x) : quick_erf(fabs(x));
    if (x > -1 && x < 0) q.high = -q.high, q.low = -q.low;
    return decided(rest_of(x <= -1 ? 2 : 1, q), &y) ? y : ended(assay_dd_erfc(assay_dd(x)));
  }
  if (decided_scaled(quick_erfc(x), &y)) return y;
  int exponent;
  const assay_dd_t e = assay_dd_erfc_parts(assay_dd(x), &exponent);
  return assay_dd_rounded(e, exponent);
}
