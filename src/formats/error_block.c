// Each pass has a plain variant that compilers turn into vectors of any width, and a grouped one
// for CPUs with vectors of 64 bytes and lookups inside of them. The latter takes whole groups of
// elements; what is left goes through the first.
#include "formats/error_block.h"

#include <float.h>

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#include <immintrin.h>
#pragma GCC diagnostic ignored "-Wpsabi"  // vectors are passed between inlined functions only
#define ASSAY_GROUPS __attribute__((target("arch=x86-64-v4")))
static bool has_groups(void) { return __builtin_cpu_supports("x86-64-v4"); }

typedef double f64_8_t __attribute__((vector_size(64)));
typedef uint64_t u64_8_t __attribute__((vector_size(64)));
typedef int64_t i64_8_t __attribute__((vector_size(64)));
typedef int32_t i32_16_t __attribute__((vector_size(64)));
typedef uint32_t u32_16_t __attribute__((vector_size(64)));
typedef float f32_8_t __attribute__((vector_size(32)));
typedef float f32_16_t __attribute__((vector_size(64)));
typedef uint16_t u16_16_t __attribute__((vector_size(32)));
typedef uint16_t u16_32_t __attribute__((vector_size(64)));
typedef uint8_t u8_16_t __attribute__((vector_size(16)));
typedef uint8_t u8_8_t __attribute__((vector_size(8)));
typedef f64_8_t f64_8_loose_t __attribute__((aligned(8), may_alias));
typedef i32_16_t i32_16_loose_t __attribute__((aligned(8), may_alias));
#define LOAD_F64(from) (*(const f64_8_loose_t*)(const void*)(from))
#define LOAD_I32(from) (*(const i32_16_loose_t*)(const void*)(from))
// Upper and lower halves of 16 patterns.
#define HIGHS(from)                                       \
  __builtin_shuffle(LOAD_I32(from), LOAD_I32((from) + 8), \
                    (i32_16_t){1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31})
#define LOWS(from)                                        \
  __builtin_shuffle(LOAD_I32(from), LOAD_I32((from) + 8), \
                    (i32_16_t){0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30})
#define MAX_I64(a, b) ((i64_8_t)_mm512_max_epi64((__m512i)(a), (__m512i)(b)))
#define MAX_U32(a, b) ((u32_16_t)_mm512_max_epu32((__m512i)(a), (__m512i)(b)))
#define MIN_U32(a, b) ((u32_16_t)_mm512_min_epu32((__m512i)(a), (__m512i)(b)))
// Where the mask (all ones or zeros) is set, a; else b.
#define SELECT(mask, a, b) (((mask) & (a)) | (~(mask) & (b)))
#endif

// ---- errors, maxima, sums -----------------------------------------------------------------------

typedef struct maxima {
  int64_t a, b, e, zero_e;  // patterns of the largest magnitudes; zero_e: of errors of zeros
  int64_t zero_errors, zero_references;
} maxima_t;

// Of positive numbers the larger has the larger pattern; those of infinity and NaN are the largest.
static bool note_maxima(assay_error_block_t* k, const maxima_t* m) {
  if (m->a >= (int64_t)ASSAY_EXPONENT || m->b >= (int64_t)ASSAY_EXPONENT) return false;
  k->max[0] = assay_of_bits((uint64_t)m->a);
  k->max[1] = assay_of_bits((uint64_t)m->b);
  k->max_error = assay_of_bits((uint64_t)m->e);
  k->max_zero_error = assay_of_bits((uint64_t)m->zero_e);
  k->zero_errors = m->zero_errors;
  k->zero_references = m->zero_references;
  return true;
}

ASSAY_WIDE static maxima_t scan_plain(const assay_error_block_t* k) {
  const double *a = k->a, *b = k->b;
  double* error = k->error;
  int64_t max_a = 0, max_b = 0, max_e = 0, max_z = 0, zero_e = 0, zero_b = 0;
#pragma omp simd reduction(max : max_a, max_b, max_e, max_z) reduction(+ : zero_e, zero_b)
  for (int64_t i = 0; i < k->n; i++) {
    double d = fabs(a[i] - b[i]);
    d = d > DBL_MAX ? DBL_MAX : d;
    error[i] = d;
    int64_t ea = (int64_t)(assay_bits_of(a[i]) & ~ASSAY_SIGN);
    int64_t eb = (int64_t)(assay_bits_of(b[i]) & ~ASSAY_SIGN), ee = (int64_t)assay_bits_of(d);
    int64_t ez = eb ? 0 : ee;
    max_a = ea > max_a ? ea : max_a;
    max_b = eb > max_b ? eb : max_b;
    max_e = ee > max_e ? ee : max_e;
    max_z = ez > max_z ? ez : max_z;
    zero_e += ee == 0;
    zero_b += eb == 0;
  }
  return (maxima_t){max_a, max_b, max_e, max_z, zero_e, zero_b};
}

ASSAY_WIDE static void sum_plain(const assay_error_block_t* k, double out[5]) {
  const double *a = k->a, *b = k->b;
  assay_lanes_t e = {0}, ee = {0}, aa = {0}, bb = {0}, ab = {0};
  int64_t whole = k->n / 8 * 8;
  double rest[2][8] = {{0}};
  for (int64_t i = whole; i < k->n; i++) {
    rest[0][i - whole] = a[i];
    rest[1][i - whole] = b[i];
  }
  for (int64_t i = 0; i <= whole; i += 8) {
    // The next block, if the tensor lies there: memory works while this one is counted.
    assay_prefetch(a + i);
    assay_prefetch(b + i);
    assay_lanes_t x = ASSAY_LANES_LOAD(i < whole ? a + i : rest[0]);
    assay_lanes_t y = ASSAY_LANES_LOAD(i < whole ? b + i : rest[1]);
    assay_lanes_t d = x - y;
    e += d;
    ee += d * d;
    aa += x * x;
    bb += y * y;
    ab += x * y;
  }
  double v[8];
  memcpy(v, &e, sizeof v), out[0] = assay_lanes_sum(v);
  memcpy(v, &ee, sizeof v), out[1] = assay_lanes_sum(v);
  memcpy(v, &aa, sizeof v), out[2] = assay_lanes_sum(v);
  memcpy(v, &bb, sizeof v), out[3] = assay_lanes_sum(v);
  memcpy(v, &ab, sizeof v), out[4] = assay_lanes_sum(v);
}

#ifdef ASSAY_GROUPS
ASSAY_GROUPS static inline int64_t largest_of(i64_8_t v) {
  int64_t max = 0;
  for (int i = 0; i < 8; i++) max = v[i] > max ? v[i] : max;
  return max;
}

// Both in one pass; of whole groups of 8.
ASSAY_GROUPS static maxima_t scan_and_sum(const assay_error_block_t* k, double out[5]) {
  const double *a = k->a, *b = k->b;
  i64_8_t max_a = {0}, max_b = {0}, max_e = {0}, max_z = {0}, zero_e = {0}, zero_b = {0};
  f64_8_t sum[5] = {{0}};
  for (int64_t i = 0; i < k->n; i += 8) {
    // The next block, if the tensor lies there: memory works while this one is counted.
    assay_prefetch(a + i);

    f64_8_t x = LOAD_F64(a + i), y = LOAD_F64(b + i), d = x - y;
    sum[0] += d;
    sum[1] += d * d;
    sum[2] += x * x;
    sum[3] += y * y;
    sum[4] += x * y;
    i64_8_t ea = (i64_8_t)x & INT64_MAX, eb = (i64_8_t)y & INT64_MAX, ee = (i64_8_t)d & INT64_MAX;
    ee = (i64_8_t)_mm512_min_epi64((__m512i)ee, (__m512i)((f64_8_t){0} + DBL_MAX));
    memcpy(k->error + i, &ee, sizeof ee);
    i64_8_t is_zero = eb == 0, ez = ee & is_zero;
    zero_e += ee == 0;
    zero_b += is_zero;
    max_a = MAX_I64(ea, max_a);
    max_b = MAX_I64(eb, max_b);
    max_e = MAX_I64(ee, max_e);
    max_z = MAX_I64(ez, max_z);
  }
  maxima_t m = {largest_of(max_a), largest_of(max_b), largest_of(max_e), largest_of(max_z), 0, 0};
  for (int i = 0; i < 8; i++) {
    m.zero_errors -= zero_e[i];
    m.zero_references -= zero_b[i];
  }
  for (int i = 0; i < 5; i++) {
    double v[8];
    memcpy(v, &sum[i], sizeof v);
    out[i] = assay_lanes_sum(v);
  }
  return m;
}
#endif

bool assay_error_block_scan(assay_error_block_t* k, double sums[5]) {
#ifdef ASSAY_GROUPS
  if (k->n % 8 == 0 && has_groups()) {
    maxima_t m = scan_and_sum(k, sums);
    return note_maxima(k, &m);
  }
#endif
  maxima_t m = scan_plain(k);
  sum_plain(k, sums);
  return note_maxima(k, &m);
}

// ---- slots --------------------------------------------------------------------------------------

enum { OCTAVE_SHIFT = 6, OCTAVE_MASK = ASSAY_WINDOW_OCTAVES - 1 };

// Elements from `first` on. Slots come from the upper halves of the patterns.
ASSAY_WIDE static void slots_from(const assay_error_block_t* k, assay_error_slots_t* s,
                                  int32_t first) {
  const double *a = k->a, *b = k->b, *e = k->error;
  uint16_t *slot_a = s->a, *slot_b = s->b, *slot_e = s->e;
  const int32_t base = s->base, base_e = s->base_e;
  const int32_t n = (int32_t)k->n;
  int32_t low_e = 0, low_b = 0;
#pragma omp simd reduction(+ : low_e, low_b)
  for (int32_t i = first; i < n; i++) {
    uint32_t high_a = (uint32_t)(assay_bits_of(a[i]) >> 32);
    uint32_t high_b = (uint32_t)(assay_bits_of(b[i]) >> 32);
    uint32_t high_e = (uint32_t)(assay_bits_of(e[i]) >> 32);
    int32_t ka = (int32_t)((high_a & INT32_MAX) >> 14) - base;
    int32_t kb = (int32_t)((high_b & INT32_MAX) >> 14) - base;
    int32_t ke = (int32_t)(high_e >> 14) - base_e;
    ka = ka >= ASSAY_HISTOGRAM_BINS ? ka : 0;
    kb = kb >= ASSAY_HISTOGRAM_BINS ? kb : 0;
    ke = ke >= ASSAY_HISTOGRAM_BINS ? ke : 0;
    low_b += kb == 0;
    low_e += ke == 0;
    uint32_t sa = (uint32_t)ka | high_a >> 31 << ASSAY_WINDOW_BITS;
    uint32_t sb = (uint32_t)kb | high_b >> 31 << ASSAY_WINDOW_BITS;
    slot_a[i] = (uint16_t)sa;
    slot_b[i] = (uint16_t)sb;
    slot_e[i] = (uint16_t)ke;
  }
  for (int32_t i = first; i < n; i++) {
    uint32_t large = slot_e[i] >= s->limit[slot_b[i] >> OCTAVE_SHIFT & OCTAVE_MASK];
    uint32_t moved = slot_a[i] != slot_b[i];
    s->large[i / 32] = (i % 32 ? s->large[i / 32] : 0) | large << i % 32;
    s->moved[i / 32] = (i % 32 ? s->moved[i / 32] : 0) | moved << i % 32;
  }
  s->below_e += low_e;
  s->below_b += low_b;
}

#ifdef ASSAY_GROUPS
// Slots of magnitudes; 0 below the window.
ASSAY_GROUPS static inline i32_16_t slots_of(i32_16_t high, int32_t base) {
  i32_16_t slot = (high & INT32_MAX) >> 14;
  slot -= base;
  return slot & (slot >= ASSAY_HISTOGRAM_BINS);
}

ASSAY_GROUPS static inline u16_16_t signed_slots(i32_16_t slot, i32_16_t high) {
  return __builtin_convertvector(slot | (high >> 31 & 1 << ASSAY_WINDOW_BITS), u16_16_t);
}

ASSAY_GROUPS static inline u16_32_t join(u16_16_t x, u16_16_t y) {
  return __builtin_shufflevector(x, y, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17,
                                 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31);
}

// 32 elements at a time; returns how many were done.
ASSAY_GROUPS static int32_t slots_grouped(const assay_error_block_t* k, assay_error_slots_t* s) {
  const int32_t base = s->base, base_e = s->base_e, whole = (int32_t)k->n / 32 * 32;
  i32_16_t low_e = {0}, low_b = {0};
  u16_32_t limit;
  memcpy(&limit, s->limit, sizeof limit);
  for (int32_t i = 0; i < whole; i += 32) {
    u16_16_t half_a[2], half_b[2], half_e[2];
    for (int j = 0; j < 32; j += 8) assay_prefetch(k->b + i + j);
    for (int h = 0; h < 2; h++) {
      const int32_t at = i + 16 * h;
      i32_16_t a = HIGHS(k->a + at), b = HIGHS(k->b + at), e = HIGHS(k->error + at);
      i32_16_t slot_b = slots_of(b, base), slot_e = slots_of(e, base_e);
      low_b += slot_b == 0;
      low_e += slot_e == 0;
      half_a[h] = signed_slots(slots_of(a, base), a);
      half_b[h] = signed_slots(slot_b, b);
      half_e[h] = __builtin_convertvector(slot_e, u16_16_t);
    }
    u16_32_t a = join(half_a[0], half_a[1]), b = join(half_b[0], half_b[1]);
    u16_32_t e = join(half_e[0], half_e[1]);
    u16_32_t limits = __builtin_shuffle(limit, b >> OCTAVE_SHIFT);
    s->large[i / 32] = _mm512_cmpge_epu16_mask((__m512i)e, (__m512i)limits);
    s->moved[i / 32] = _mm512_cmpneq_epi16_mask((__m512i)a, (__m512i)b);
    memcpy(s->a + i, &a, sizeof a);
    memcpy(s->b + i, &b, sizeof b);
    memcpy(s->e + i, &e, sizeof e);
  }
  for (int i = 0; i < 16; i++) {
    s->below_e -= low_e[i];
    s->below_b -= low_b[i];
  }
  return whole;
}
#endif

void assay_error_block_slots(const assay_error_block_t* k, assay_error_slots_t* s) {
  int32_t done = 0;
  s->below_e = -k->zero_errors;
  s->below_b = -k->zero_references;
#ifdef ASSAY_GROUPS
  if (has_groups()) done = slots_grouped(k, s);
#endif
  if (done < k->n) slots_from(k, s, done);
}

// ---- ulps ---------------------------------------------------------------------------------------

typedef uint8_t bytes_t __attribute__((vector_size(64)));

// Distances fall into few slots: each is counted by comparing all, 64 at a time.
ASSAY_WIDE static void count_slots(const uint8_t* slots, int64_t n, unsigned last, uint64_t* out) {
  for (unsigned slot = 0; slot <= last; slot++) {
    bytes_t all = {0}, one, wanted = all + (uint8_t)slot;
    for (int64_t i = 0; i < n; i += 64) {  // at most 16 times: lanes do not overflow
      memcpy(&one, slots + i, sizeof one);
      all -= (bytes_t)(one == wanted);
    }
    uint8_t lanes[64];
    memcpy(lanes, &all, sizeof lanes);
    uint64_t sum = 0;
    for (int i = 0; i < 64; i++) sum += lanes[i];
    out[slot] += sum;
  }
}

ASSAY_WIDE static int64_t ulps_from(const assay_codec_t* codec, const double* a, const double* b,
                                    int64_t n, uint64_t* slots) {
  const assay_codec_t c = *codec;
  int64_t max = 0;
#pragma omp simd reduction(max : max)
  for (int64_t i = 0; i < n; i++) {
    int64_t x = (int64_t)assay_codec_ordinal(&c, a[i]), y = (int64_t)assay_codec_ordinal(&c, b[i]);
    x = assay_bits_of(a[i]) & ASSAY_SIGN ? -x : x;
    y = assay_bits_of(b[i]) & ASSAY_SIGN ? -y : y;
    int64_t d = x > y ? x - y : y - x;
    max = d > max ? d : max;
    // The exponent of 2d - 1 as float64, which is made by putting it below 2^52.
    double v = assay_of_bits(assay_bits_of(0x1p52) + (uint64_t)(2 * d - 1)) - 0x1p52;
    uint64_t slot = (assay_bits_of(v) >> 52) - 1022;
    slots[i] = d ? slot : 0;
  }
  return max;
}

#ifdef ASSAY_GROUPS
// A magnitude's ordinal with the number's sign, as assay_codec_ordinal().
ASSAY_GROUPS static inline i64_8_t ordinals(const assay_codec_t* c, f64_8_t x) {
  const i64_8_t top = (i64_8_t){0} + (int64_t)(c->max_ordinal + 1);
  u64_8_t bits = (u64_8_t)x, a = bits & INT64_MAX;
  i64_8_t k = (i64_8_t)(((a + c->half + (a >> c->shift & c->odd)) >> c->shift) - c->offset);
  i64_8_t sub = (i64_8_t)((f64_8_t)a + c->sub_magic) - (int64_t)assay_bits_of(c->sub_magic);
  i64_8_t mask = (i64_8_t)a < (int64_t)assay_bits_of(c->min_normal);
  k = SELECT(mask, sub, k);
  mask = k > top, k = SELECT(mask, top, k);
  mask = (i64_8_t)bits >> 63;
  return (k ^ mask) - mask;
}

// Of 8 elements at a time.
ASSAY_GROUPS static int64_t ulps_grouped(const assay_codec_t* codec, const double* a,
                                         const double* b, int64_t n, uint8_t* slots) {
  const assay_codec_t c = *codec;
  i64_8_t max = {0};
  for (int64_t i = 0; i < n; i += 8) {
    i64_8_t d = ordinals(&c, LOAD_F64(a + i)) - ordinals(&c, LOAD_F64(b + i)), mask = d >> 63;
    d = (d ^ mask) - mask;
    max = MAX_I64(d, max);
    const f64_8_t one = (f64_8_t){0} + 0x1p52;
    f64_8_t v = (f64_8_t)((i64_8_t)one + (2 * d - 1)) - 0x1p52;
    u8_8_t to = __builtin_convertvector((((i64_8_t)v >> 52) - 1022) & (d != 0), u8_8_t);
    memcpy(slots + i, &to, sizeof to);
  }
  return largest_of(max);
}

// The same in lanes of 32 bits: 16 elements at a time, for the formats and distances that real
// tensors have. Formats of at most 11 bits are rounded from the upper halves of the patterns; where
// something was cut off, the last bit says so. `min`: smallest magnitude less one (0: the
// largest).
ASSAY_GROUPS static inline i32_16_t short_ordinals(const assay_codec_t* c, const double* x,
                                                   u32_16_t* min) {
  const int shift = c->shift - 32;
  i32_16_t high = HIGHS(x), low = LOWS(x);
  u32_16_t a = (u32_16_t)((high & INT32_MAX) | ((low != 0) & 1)), less = a - 1;
  *min = MIN_U32(less, *min);
  i32_16_t k = (i32_16_t)((a + ((1u << (shift - 1)) - 1) + (a >> shift & 1)) >> shift);
  k -= (int32_t)c->offset;
  k = (i32_16_t)_mm512_max_epi32((__m512i)k, (__m512i){0});  // zero
  high >>= 31;
  return (k ^ high) - high;
}

ASSAY_GROUPS static inline i32_16_t fp32_ordinals(const double* x) {
  f32_8_t low = __builtin_convertvector(LOAD_F64(x), f32_8_t);
  f32_8_t high = __builtin_convertvector(LOAD_F64(x + 8), f32_8_t);
  i32_16_t bits = (i32_16_t)__builtin_shufflevector(low, high, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11,
                                                    12, 13, 14, 15);
  i32_16_t sign = bits >> 31;
  return ((bits & INT32_MAX) ^ sign) - sign;
}

// -1: not for these numbers.
ASSAY_GROUPS static int64_t ulps_short(const assay_codec_t* codec, const assay_error_block_t* k,
                                       int64_t n, uint8_t* slots) {
  enum { LIMIT = 1 << 22 };
  const assay_codec_t c = *codec;
  const bool fp32 = c.shift == 29;
  if (!fp32 && (c.shift < 42 || k->max[0] > c.max || k->max[1] > c.max)) return -1;
  u32_16_t max = {0}, min = ~max, min_b = ~max;
  for (int64_t i = 0; i < n; i += 16) {
    i32_16_t x, y;
    if (fp32) {
      x = fp32_ordinals(k->a + i), y = fp32_ordinals(k->b + i);
    } else {
      x = short_ordinals(&c, k->a + i, &min), y = short_ordinals(&c, k->b + i, &min_b);
    }
    u32_16_t d = (u32_16_t)(_mm512_max_epi32((__m512i)x, (__m512i)y)) -
                 (u32_16_t)(_mm512_min_epi32((__m512i)x, (__m512i)y));
    max = MAX_U32(d, max);
    // The exponent of 2d - 1 as float32, in the same way. Of d = 0 it is that of -1/2: slot 0.
    const f32_16_t one = (f32_16_t){0} + 0x1p23f;
    u32_16_t v = (u32_16_t)((f32_16_t)((u32_16_t)one + (2 * d - 1)) - 0x1p23f);
    u8_16_t to = __builtin_convertvector((v >> 23) - 126, u8_16_t) & 0x7f;
    memcpy(slots + i, &to, sizeof to);
  }
  uint32_t maximum = 0, small = UINT32_MAX;
  min = MIN_U32(min, min_b);
  for (int i = 0; i < 16; i++) {
    maximum = max[i] > maximum ? max[i] : maximum;
    small = min[i] < small ? min[i] : small;
  }
  const bool subnormal = small < (uint32_t)(assay_bits_of(c.min_normal) >> 32) - 1;
  return maximum >= LIMIT || (!fp32 && subnormal) ? -1 : (int64_t)maximum;
}

// As many elements as come in groups; returns how many.
static int64_t ulps_of_groups(const assay_codec_t* codec, const assay_error_block_t* k,
                              uint8_t* slots, uint64_t* max) {
  int64_t n = k->n / 16 * 16;
  if (!has_groups()) return 0;
  int64_t maximum = ulps_short(codec, k, n, slots);
  if (maximum < 0) maximum = ulps_grouped(codec, k->a, k->b, n, slots);
  *max = (uint64_t)maximum;
  return n;
}
#endif

uint64_t assay_error_block_ulps(const assay_error_block_t* k, const assay_codec_t* codec,
                                uint64_t* counts) {
  _Alignas(64) uint8_t slots[ASSAY_STATS_BLOCK + 64];
  uint64_t wide[ASSAY_STATS_BLOCK], max = 0;
  int64_t done = 0;
#ifdef ASSAY_GROUPS
  done = ulps_of_groups(codec, k, slots, &max);
#endif
  if (done < k->n) {
    uint64_t rest = (uint64_t)ulps_from(codec, k->a + done, k->b + done, k->n - done, wide);
    if (rest > max) max = rest;
    for (int64_t i = done; i < k->n; i++) slots[i] = (uint8_t)wide[i - done];
  }
  memset(slots + k->n, 0xff, 64);
  count_slots(slots, k->n, max ? 64 - (unsigned)__builtin_clzll(2 * max - 1) : 0, counts);
  return max;
}
