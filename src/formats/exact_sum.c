// Sums of doubles without rounding.
#include "formats/exact_sum.h"

#include <math.h>
#include <string.h>

enum { MANTISSA = 52, EXPONENTS = 0x7ff };

// ---- one sum ------------------------------------------------------------------------------------

// Adds low and high from a limb on, and what is carried over.
static void add_at(uint64_t* limbs, int at, uint64_t low, uint64_t high) {
  bool carry = __builtin_add_overflow(limbs[at], low, &limbs[at]);
  if (++at == ASSAY_EXACT_LIMBS) return;
  const bool over = __builtin_add_overflow(high, (uint64_t)carry, &high);
  carry = __builtin_add_overflow(limbs[at], high, &limbs[at]) | over;
  while (carry && ++at < ASSAY_EXACT_LIMBS)
    carry = __builtin_add_overflow(limbs[at], (uint64_t)1, &limbs[at]);
}

static void subtract_at(uint64_t* limbs, int at, uint64_t low, uint64_t high) {
  bool borrow = __builtin_sub_overflow(limbs[at], low, &limbs[at]);
  if (++at == ASSAY_EXACT_LIMBS) return;
  const bool over = __builtin_add_overflow(high, (uint64_t)borrow, &high);
  borrow = __builtin_sub_overflow(limbs[at], high, &limbs[at]) | over;
  while (borrow && ++at < ASSAY_EXACT_LIMBS)
    borrow = __builtin_sub_overflow(limbs[at], (uint64_t)1, &limbs[at]);
}

// Infinities of both signs, or a NaN, are one NaN, whatever order they come in.
static void add_unfinite(assay_exact_sum_t* s, double term) {
  s->unfinite += term;
  if (isnan(s->unfinite)) s->unfinite = (double)NAN;
}

void assay_exact_add(assay_exact_sum_t* s, double term) {
  uint64_t bits;
  memcpy(&bits, &term, sizeof bits);
  const int e = (int)(bits >> MANTISSA) & EXPONENTS;
  if (e == EXPONENTS) {
    add_unfinite(s, term);
    return;
  }
  uint64_t m = bits & ((UINT64_C(1) << MANTISSA) - 1);
  if (e) m |= UINT64_C(1) << MANTISSA;
  if (!m) return;
  const int shift = e ? e - 1 : 0, within = shift % 64;
  const uint64_t low = m << within, high = within ? m >> (64 - within) : 0;
  if (bits >> 63)
    subtract_at(s->limbs, shift / 64, low, high);
  else
    add_at(s->limbs, shift / 64, low, high);
}

void assay_exact_join(assay_exact_sum_t* s, const assay_exact_sum_t* more) {
  bool carry = false;
  for (int i = 0; i < ASSAY_EXACT_LIMBS; i++) {
    uint64_t x;
    const bool over = __builtin_add_overflow(more->limbs[i], (uint64_t)carry, &x);
    carry = __builtin_add_overflow(s->limbs[i], x, &s->limbs[i]) | over;
  }
  if (more->unfinite != 0) add_unfinite(s, more->unfinite);
}

// The magnitude; whether the sum is negative.
static bool magnitude(const assay_exact_sum_t* s, uint64_t* out) {
  const bool negative = s->limbs[ASSAY_EXACT_LIMBS - 1] >> 63;
  bool carry = negative;
  for (int i = 0; i < ASSAY_EXACT_LIMBS; i++) {
    out[i] = negative ? ~s->limbs[i] : s->limbs[i];
    if (carry) carry = __builtin_add_overflow(out[i], (uint64_t)1, &out[i]);
  }
  return negative;
}

// 64 bits from a position on.
static uint64_t bits_at(const uint64_t* limbs, int position) {
  const int at = position / 64, within = position % 64;
  const uint64_t high = within && at + 1 < ASSAY_EXACT_LIMBS ? limbs[at + 1] << (64 - within) : 0;
  return limbs[at] >> within | high;
}

// Whether the bit before a position rounds up what begins there: more than half, or half and odd.
static bool rounds_up(const uint64_t* limbs, int position, bool odd) {
  const int half = position - 1;
  if (!(limbs[half / 64] >> half % 64 & 1)) return false;
  if (odd || limbs[half / 64] & ((UINT64_C(1) << half % 64) - 1)) return true;
  for (int i = 0; i < half / 64; i++)
    if (limbs[i]) return true;
  return false;
}

double assay_exact_get(const assay_exact_sum_t* s) {
  uint64_t limbs[ASSAY_EXACT_LIMBS], bits;
  int top = ASSAY_EXACT_LIMBS - 1;
  double x;
  if (s->unfinite != 0) return s->unfinite;
  const bool negative = magnitude(s, limbs);
  while (top > 0 && !limbs[top]) top--;
  if (!limbs[top]) return 0;
  const int shift = 64 * top + 63 - __builtin_clzll(limbs[top]) - MANTISSA;
  if (shift <= 0) {  // a multiple of the smallest double: its own bits
    bits = limbs[0];
  } else {
    const uint64_t m = bits_at(limbs, shift) & ((UINT64_C(2) << MANTISSA) - 1);
    // The leading bit adds one to the exponent, as a carry out of the mantissa does.
    bits = ((uint64_t)shift << MANTISSA) + m + rounds_up(limbs, shift, m & 1);
    if (bits > (uint64_t)EXPONENTS << MANTISSA) bits = (uint64_t)EXPONENTS << MANTISSA;
  }
  memcpy(&x, &bits, sizeof x);
  return negative ? -x : x;
}

void assay_exact_add_to(assay_exact_sum_t* s, double* rounded, double term) {
  assay_exact_add(s, term);
  *rounded = assay_exact_get(s);
}

void assay_exact_join_to(assay_exact_sum_t* s, double* rounded, const assay_exact_sum_t* more) {
  assay_exact_join(s, more);
  *rounded = assay_exact_get(s);
}

// Limbs that go on the sign, and zeros at the low end, are left out: most are.
void assay_exact_pack(assay_packing_t* p, assay_exact_sum_t* s) {
  const uint64_t fill = s->limbs[ASSAY_EXACT_LIMBS - 1] >> 63 ? UINT64_MAX : 0;
  uint64_t first = 0, end = ASSAY_EXACT_LIMBS;
  uint8_t head[3];
  while (end && s->limbs[end - 1] == fill) end--;
  while (first < end && !s->limbs[first]) first++;
  head[0] = (uint8_t)first;
  head[1] = (uint8_t)end;
  head[2] = (uint8_t)((fill ? 1 : 0) | (s->unfinite != 0 ? 2 : 0));
  assay_pack_bytes(p, head, sizeof head);
  if (head[1] > ASSAY_EXACT_LIMBS || head[0] > head[1] || head[2] > 3) {
    p->failed = true;
    return;
  }
  for (int i = 0; i < ASSAY_EXACT_LIMBS; i++) {
    if (i >= head[0] && i < head[1])
      assay_pack_u64(p, &s->limbs[i]);
    else if (assay_packing_reads(p))
      s->limbs[i] = i >= head[1] && head[2] & 1 ? UINT64_MAX : 0;
  }
  if (head[2] & 2)
    assay_pack_f64(p, &s->unfinite);
  else
    s->unfinite = 0;
}

// ---- those of errors ----------------------------------------------------------------------------

static void settle(const assay_error_exact_t* x, assay_error_sum_t* s) {
  s->sum_err = assay_exact_get(&x->err);
  s->sum_err2 = assay_exact_get(&x->err2);
  s->sum_ref2 = assay_exact_get(&x->ref2);
  s->sum_got2 = assay_exact_get(&x->got2);
  s->sum_dot = assay_exact_get(&x->dot);
}

void assay_error_exact_add(assay_error_exact_t* x, assay_error_sum_t* s,
                           const assay_error_sum_t* more) {
  assay_error_sum_join(s, more);
  assay_exact_add(&x->err, more->sum_err);
  assay_exact_add(&x->err2, more->sum_err2);
  assay_exact_add(&x->ref2, more->sum_ref2);
  assay_exact_add(&x->got2, more->sum_got2);
  assay_exact_add(&x->dot, more->sum_dot);
  settle(x, s);
}

void assay_error_exact_join(assay_error_exact_t* x, assay_error_sum_t* s,
                            const assay_error_exact_t* more_exact, const assay_error_sum_t* more) {
  assay_error_sum_join(s, more);
  assay_exact_join(&x->err, &more_exact->err);
  assay_exact_join(&x->err2, &more_exact->err2);
  assay_exact_join(&x->ref2, &more_exact->ref2);
  assay_exact_join(&x->got2, &more_exact->got2);
  assay_exact_join(&x->dot, &more_exact->dot);
  settle(x, s);
}

void assay_error_exact_pairs(assay_error_exact_t* x, assay_error_sum_t* s, const double* got,
                             const double* ref, size_t n) {
  assay_error_sum_t run = ASSAY_ERROR_SUM_INIT;
  assay_error_sum_add(&run, got, ref, n);
  assay_error_exact_add(x, s, &run);
}

void assay_error_exact_pack(assay_packing_t* p, assay_error_exact_t* x, assay_error_sum_t* s) {
  int64_t* const counts[] = {&s->n,       &s->finite,  &s->nan,        &s->inf,
                             &s->ref_nan, &s->ref_inf, &s->mismatched, &s->near_zero};
  double* const largest[] = {&s->max_abs, &s->max_rel, &s->ref_max, &s->got_max};
  for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) assay_pack_tally(p, counts[i]);
  assay_pack_place(p, &s->worst);
  for (size_t i = 0; i < sizeof largest / sizeof *largest; i++) assay_pack_f64(p, largest[i]);
  assay_exact_pack(p, &x->err);
  assay_exact_pack(p, &x->err2);
  assay_exact_pack(p, &x->ref2);
  assay_exact_pack(p, &x->got2);
  assay_exact_pack(p, &x->dot);
  settle(x, s);
}
