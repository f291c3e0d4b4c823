// Golden that went through text.
#include "diagnose/golden/printed.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

// LEAST: elements that there have to be; where chance deceives, the unit is as small as a float's
// own. FEWER: that many digits less have to be too few for a
// quarter of them.
enum { LOOKED_AT = 256, LEAST = 4, DIGITS_MIN = 5, DIGITS_MAX = 6, PLACES_MAX = 7, FEWER = 2 };

// 10^n of a small n, as it is written.
static double power_of_ten(int n) {
  char text[16];
  snprintf(text, sizeof text, "1e%d", n);
  return strtod(text, NULL);
}

static int decade_of(double x) {
  char text[32], *end = text;
  snprintf(text, sizeof text, "%.0e", x);
  while (*end && *end != 'e') end++;
  return *end ? atoi(end + 1) : 0;
}

// Whether reading what is printed gives x again, within a float's rounding.
static bool comes_back(double x, const char* format, int n) {
  char text[400];
  snprintf(text, sizeof text, format, n, x);
  return fabs(strtod(text, NULL) - x) <= 0x1p-24 * fabs(x);
}

static bool has_digits(double x, int digits) { return comes_back(x, "%.*e", digits - 1); }

static bool has_places(double x, int places) { return comes_back(x, "%.*f", places); }

// The smallest n of [from, to] for which all elements have that many digits or places, and many
// need them; 0: there is none.
static int fewest(const double* x, size_t n, int from, int to, bool (*has)(double, int)) {
  for (int k = from; k <= to; k++) {
    size_t i = 0, needed = 0;
    while (i < n && has(x[i], k)) needed += !has(x[i++], k - FEWER);
    if (i == n) return 4 * needed >= n ? k : 0;
  }
  return 0;
}

// Up to LOOKED_AT elements that are neither 0 nor infinite.
static size_t take_some(const assay_tensor_t* golden, double* out) {
  size_t n = 0;
  if (golden->kind != ASSAY_KIND_TENSOR || assay_type_store(golden->type) != ASSAY_STORE_F64)
    return 0;
  const int64_t step = (golden->size + LOOKED_AT - 1) / LOOKED_AT;
  for (int64_t i = 0; i < golden->size; i += step) {
    const double x = assay_tensor_element(golden, i);
    if (isfinite(x) && x != 0) out[n++] = x;
  }
  return n;
}

assay_printed_t assay_golden_printed_as(const assay_tensor_t* golden, const assay_printed_t* as) {
  double some[LOOKED_AT];
  const size_t n = take_some(golden, some);
  assay_printed_t p = *as;
  for (size_t i = 0; i < n; i++) {
    if (p.digits && !has_digits(some[i], p.digits)) p.digits = 0;
    if (p.places && !has_places(some[i], p.places)) p.places = 0;
  }
  return n ? p : (assay_printed_t){0, 0};
}

assay_printed_t assay_golden_printed(const assay_tensor_t* golden) {
  double some[LOOKED_AT];
  const size_t n = take_some(golden, some);
  if (n < LEAST) return (assay_printed_t){0, 0};
  return (assay_printed_t){fewest(some, n, DIGITS_MIN, DIGITS_MAX, has_digits),
                           fewest(some, n, DIGITS_MIN - 1, PLACES_MAX, has_places)};
}

double assay_printed_unit(const assay_printed_t* p, double x) {
  const bool known = isfinite(x) && x != 0;
  const double by_digit = p->digits && known ? power_of_ten(decade_of(x) - p->digits + 1) : 0;
  return p->places ? fmax(by_digit, power_of_ten(-p->places)) : by_digit;
}
