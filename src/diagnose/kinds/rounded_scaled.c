// Numbers of few significant bits times a scale, as of FP8 that was made float again: whatever the
// scale is, numbers divided by one of them are fractions of small whole numbers and powers of two.
#include <math.h>

#include "diagnose/kinds/rounded_numbers.h"

// The most bits that are looked for, and how near to whole numbers of them: float32 has rounded
// the number and the one that it is divided by. Sources: OCP 8-bit Floating Point Specification
// (E4M3: four bits with the hidden one, E5M2: three), OCP Microscaling Formats (FP6, FP4).
enum { MAX_BITS = 8 };
static const double NEAR = 0x1p-22;

// A number in units, as a whole number of exactly so many bits; 0: it is none. *out_exponent: it is
// that times two to this power.
static double whole_of(double x, double unit, int bits, int* out_exponent) {
  const double fraction = frexp(fabs(x) / unit, out_exponent), k = ldexp(fraction, bits);
  const double whole = rint(k);
  *out_exponent -= bits;
  return fabs(k - whole) <= NEAR * k ? whole : 0;
}

static double last_bit(double whole) {
  double bit = 1;
  while (fmod(whole, 2 * bit) == 0) bit *= 2;
  return bit;
}

// Whether all numbers are whole numbers of so many bits; the last bit of all.
static bool fits(const double* x, int64_t n, double unit, int bits, double* out_last) {
  *out_last = (double)INFINITY;
  for (int64_t i = 0; i < n; i++) {
    int exponent;
    if (x[i] == 0) continue;
    const double whole = whole_of(x[i], unit, bits, &exponent);
    if (whole == 0) return false;
    *out_last = fmin(*out_last, unit * ldexp(last_bit(whole), exponent));
  }
  return true;
}

void assay_rounded_scaled_bits(assay_rounded_set_t* s, const double* numbers) {
  double largest = 0;
  int64_t others = -1;  // besides the one that makes the scale
  for (int64_t i = 0; i < s->n; i++) {
    largest = fmax(largest, fabs(numbers[i]));
    others += numbers[i] != 0;
  }
  s->bits = 0;
  s->largest = largest;
  if (!(largest > 0) || others < 1) return;
  for (int bits = 1; bits <= MAX_BITS; bits++)
    for (double k = ldexp(1, bits - 1); k < ldexp(1, bits); k++) {
      s->unit = largest / k;
      if (!fits(numbers, s->n, s->unit, bits, &s->last)) continue;
      s->bits = bits;
      return;
    }
}

// A number is so near to one of 2^bits by a chance of 2 NEAR 2^bits; one makes the scale, in 2^bits
// ways.
double assay_rounded_scaled_evidence(const assay_rounded_set_t* s, int bits) {
  enum { BITS_NEAR = 21 };
  const double others = (double)s->n - 2;  // but for 0 and the one that makes the scale
  return s->bits ? fmax(0, others * (BITS_NEAR - bits) - bits) : 0;
}

double assay_rounded_scaled_reach(const assay_rounded_set_t* s, int bits, double x) {
  int exponent;
  if (x == 0 || !(s->unit > 0)) return 0;
  frexp(fabs(x) / s->unit * (1 + NEAR), &exponent);
  return s->unit * ldexp(1, exponent - bits - 1);
}
