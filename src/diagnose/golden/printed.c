// Golden that was stored with fewer digits than it was computed with.
#include "diagnose/golden/printed.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/functions.h"

// Eight digits are as many as a float has; fewer than four tell nothing of a network.
// FEWER: that many digits less have to be too few for an element that counts.
enum {
  LOOKED_AT = 128,
  DIGITS_MIN = 4,
  DIGITS_MAX = 7,
  PLACES_MIN = 3,
  PLACES_MAX = 8,
  FEWER = 2,
  BITS_FEWER = 3,
  WAYS = 3
};

// Of a float, relative: its own rounding; that of what comes near it.
static const double STORED = 0x1p-24, COMPUTED = 0x1p-22;
static const double SMALLEST_NORMAL = 0x1p-126;

// 10^n, rounded once or twice.
static double power_of_ten(int n) {
  static const double powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9, 1e10,
                                  1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20};
  static const int count = sizeof powers / sizeof *powers;
  if (n >= 0 && n < count) return powers[n];
  if (n < 0 && n > -count) return 1 / powers[-n];
  char text[16];
  snprintf(text, sizeof text, "1e%d", n);
  return strtod(text, NULL);
}

// The largest n for which 10^n is at most |x|, which is neither 0 nor infinite.
static int decade_of(double x) {
  int two = 0;
  const double size = fabs(x);
  frexp(size, &two);
  int n = (int)floor((two - 1) * 0.30102999566398120);  // log10(2); x is 2^(two-1) at least
  if (size >= power_of_ten(n + 1)) n++;
  return n;
}

// A number as it comes out of `digits` significant digits, `places` behind the point, or a format.
static double stored_as(const assay_printed_t* p, double x) {
  char text[400];
  if (p->format != ASSAY_FORMAT_NONE) return assay_format_round(p->format, x, ASSAY_OVERFLOW_IEEE);
  if (p->digits)
    snprintf(text, sizeof text, "%.*e", p->digits - 1, x);
  else
    snprintf(text, sizeof text, "%.*f", p->places, x);
  return strtod(text, NULL);
}

// Floats below the smallest normal one are off by up to half the smallest of all, whatever they
// are.
static bool comes_back(const assay_printed_t* p, double x, double within) {
  static const double HALF_SMALLEST = 0x1p-150;
  return fabs(stored_as(p, x) - x) <= fmax(within * fabs(x), HALF_SMALLEST);
}

// The unit of the last digit by one way of storing.
static double unit_of(const assay_printed_t* p, double x) {
  if (p->places) return power_of_ten(-p->places);
  if (!isfinite(x) || x == 0) return 0;
  if (p->digits) return power_of_ten(decade_of(x) - p->digits + 1);
  if (p->format == ASSAY_FORMAT_NONE) return 0;
  const assay_format_info_t* info = assay_format_info(p->format);
  int two = 0;
  frexp(x, &two);
  return fmax(ldexp(2 * info->unit_roundoff, two - 1), info->min_subnormal);
}

// The ways of storing that arrays fit, one by one.
static assay_printed_t way(const assay_printed_t* p, size_t i) {
  return (assay_printed_t){i == 0 ? p->digits : 0, i == 1 ? p->places : 0,
                           i == 2 ? p->format : ASSAY_FORMAT_NONE};
}

double assay_printed_unit(const assay_printed_t* p, double x) {
  double largest = 0;
  for (size_t i = 0; i < WAYS; i++) {
    const assay_printed_t one = way(p, i);
    largest = fmax(largest, unit_of(&one, x));
  }
  return largest;
}

bool assay_printed_is_past(const assay_printed_t* p, double x, double golden) {
  return p->format != ASSAY_FORMAT_NONE && isfinite(x) && isinf(golden) &&
         assay_format_round(p->format, x, ASSAY_OVERFLOW_IEEE) == golden;
}

// Whether an element needs most of the digits.
static bool needs_them(const assay_printed_t* p, double x) {
  if (p->format == ASSAY_FORMAT_NONE) {
    const assay_printed_t fewer = {p->digits ? p->digits - FEWER : 0,
                                   p->places ? p->places - FEWER : 0, ASSAY_FORMAT_NONE};
    return !comes_back(&fewer, x, STORED);
  }
  int two = 0;
  const double bits = ldexp(0.5, -BITS_FEWER) / assay_format_info(p->format)->unit_roundoff;
  const double whole = frexp(x, &two) * 2 * bits;
  return whole != floor(whole);
}

// -log2 of the chance that floats of these sizes come back by themselves; negative: one does not.
// any: whether those count as well that need few digits.
static double evidence_of(const assay_printed_t* p, const double* x, size_t n, double within,
                          bool any) {
  double sum = 0;
  for (size_t i = 0; i < n; i++) {
    if (!comes_back(p, x[i], p->format == ASSAY_FORMAT_NONE ? within : within - STORED)) return -1;
    if (fabs(x[i]) < SMALLEST_NORMAL) continue;
    const double chance = 2 * within * fabs(x[i]) / unit_of(p, x[i]);
    if (chance < 1 && (any || needs_them(p, x[i]))) sum -= assay_log2(chance);
  }
  return sum;
}

// Up to LOOKED_AT elements that are neither 0 nor infinite, from all columns and rows.
static size_t take_some(const assay_tensor_t* golden, double* out) {
  size_t n = 0;
  if (golden->kind != ASSAY_KIND_TENSOR || assay_type_store(golden->type) != ASSAY_STORE_F64)
    return 0;
  const int64_t count = golden->size < LOOKED_AT ? golden->size : LOOKED_AT;
  for (int64_t i = 0; i < count; i++) {
    // Parts of equal size, of each an element by chance.
    const int64_t from = i * (golden->size / count), part = golden->size / count;
    const uint64_t chance = ((uint64_t)i + 1) * 0x9e3779b97f4a7c15U >> 33;
    const double x = assay_tensor_element(golden, from + (int64_t)(chance % (uint64_t)part));
    if (isfinite(x) && x != 0) out[n++] = x;
  }
  return n;
}

static double evidence_of_all(const assay_printed_t* p, const assay_tensor_t* const* golden,
                              size_t n) {
  double some[LOOKED_AT], sum = 0;
  for (size_t i = 0; i < n; i++) {
    const size_t taken = take_some(golden[i], some);
    const double evidence = evidence_of(p, some, taken, STORED, false);
    if (evidence < 0) return evidence;
    sum += evidence;
  }
  return sum;
}

// Takes one way over if it is likelier than the one known before.
static void try_it(assay_printed_t p, const assay_tensor_t* const* golden, size_t n,
                   assay_printed_t* best, double* most) {
  const double evidence = evidence_of_all(&p, golden, n);
  if (!(evidence > *most)) return;
  *most = evidence;
  *best = p;
}

assay_printed_t assay_golden_printed(const assay_tensor_t* const* golden, size_t n,
                                     double evidence) {
  const assay_printed_t none = {0, 0, ASSAY_FORMAT_NONE};
  assay_printed_t digits = none, places = none, format = none;
  double most[WAYS] = {evidence, evidence, evidence};
  for (int k = DIGITS_MIN; k <= DIGITS_MAX; k++)
    try_it((assay_printed_t){k, 0, ASSAY_FORMAT_NONE}, golden, n, &digits, &most[0]);
  for (int k = PLACES_MIN; k <= PLACES_MAX; k++)
    try_it((assay_printed_t){0, k, ASSAY_FORMAT_NONE}, golden, n, &places, &most[1]);
  try_it((assay_printed_t){0, 0, ASSAY_FORMAT_FP16}, golden, n, &format, &most[2]);
  try_it((assay_printed_t){0, 0, ASSAY_FORMAT_BF16}, golden, n, &format, &most[2]);
  return (assay_printed_t){digits.digits, places.places, format.format};
}

assay_printed_t assay_golden_printed_as(const assay_tensor_t* golden, const assay_printed_t* as) {
  double some[LOOKED_AT];
  const size_t n = take_some(golden, some);
  bool fits[WAYS];
  for (size_t i = 0; i < WAYS; i++) {
    const assay_printed_t one = way(as, i);
    fits[i] = evidence_of(&one, some, n, STORED, false) >= 0;
  }
  return (assay_printed_t){fits[0] ? as->digits : 0, fits[1] ? as->places : 0,
                           fits[2] ? as->format : ASSAY_FORMAT_NONE};
}

static bool all_come_back(const assay_printed_t* p, const assay_tensor_t* t) {
  for (int64_t i = 0; i < t->size; i++) {
    const double x = assay_f64(t)[i];
    if (isfinite(x) && !comes_back(p, x, COMPUTED)) return false;
  }
  return true;
}

// Whether numbers have as few digits by one way of storing: some of them, and then all, since a
// quantizer's largest steps may need more.
static bool is_natural(const assay_printed_t* p, const double* some, size_t n,
                       const assay_tensor_t* t) {
  static const double SURE = 10;
  if (p->format != ASSAY_FORMAT_NONE)
    return evidence_of(p, some, n, COMPUTED, true) > SURE && all_come_back(p, t);
  // Of many digits small numbers have some by chance; the fewest that they need tell the most.
  for (int k = 1; k <= (p->digits ? p->digits : p->places); k++) {
    const assay_printed_t fewer = {p->digits ? k : 0, p->digits ? 0 : k, ASSAY_FORMAT_NONE};
    if (evidence_of(&fewer, some, n, COMPUTED, true) > SURE && all_come_back(&fewer, t))
      return true;
  }
  return false;
}

bool assay_printed_is_natural(const assay_printed_t* p, const assay_tensor_t* t) {
  double some[LOOKED_AT];
  const size_t n = take_some(t, some);
  bool all = true;
  for (size_t i = 0; i < WAYS; i++) {
    const assay_printed_t one = way(p, i);
    all = all && (!assay_is_printed(&one) || is_natural(&one, some, n, t));
  }
  return all;
}
