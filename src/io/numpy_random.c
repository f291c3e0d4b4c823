// Sources: Matsumoto, Nishimura, 'Mersenne Twister: A 623-Dimensionally Equidistributed Uniform
// Pseudo-Random Number Generator', ACM TOMACS 8(1), 1998; NumPy 2.1, numpy/random/src/mt19937/
// mt19937.c and src/distributions/distributions.c (random_bounded_*_fill, masked), mtrand.pyx.
#include "io/numpy_random.h"

#include <inttypes.h>
#include <math.h>

#include "formats/format.h"

enum { N = 624, M = 397 };

// ---- the generator ----------------------------------------------------------------------------

void assay_numpy_random_seed(assay_numpy_random_t* r, uint32_t seed) {
  for (uint32_t i = 0; i < N; i++) {
    r->key[i] = seed;
    seed = 1812433253u * (seed ^ seed >> 30) + i + 1;
  }
  r->at = N;
}

// The next 624 words.
static void refill(assay_numpy_random_t* r) {
  for (int i = 0; i < N; i++) {
    const uint32_t y = (r->key[i] & 0x80000000u) | (r->key[(i + 1) % N] & 0x7fffffffu);
    r->key[i] = r->key[(i + M) % N] ^ y >> 1 ^ (y & 1 ? 0x9908b0dfu : 0);
  }
  r->at = 0;
}

uint32_t assay_numpy_random_u32(assay_numpy_random_t* r) {
  if (r->at == N) refill(r);
  uint32_t y = r->key[r->at++];
  y ^= y >> 11;
  y ^= y << 7 & 0x9d2c5680u;
  y ^= y << 15 & 0xefc60000u;
  return y ^ y >> 18;
}

double assay_numpy_random_sample(assay_numpy_random_t* r) {
  const uint32_t a = assay_numpy_random_u32(r) >> 5, b = assay_numpy_random_u32(r) >> 6;
  return (a * 67108864.0 + b) / 9007199254740992.0;
}

static uint64_t next_u64(assay_numpy_random_t* r) {
  const uint64_t high = assay_numpy_random_u32(r);
  return high << 32 | assay_numpy_random_u32(r);
}

// ---- bounded integers ---------------------------------------------------------------------------

// Words of 32 bits served in pieces of the type's width, lowest first; one array's own.
typedef struct pieces {
  assay_numpy_random_t* random;
  int bits;  // 1, 8, 16, 32
  int left;  // pieces left in the word
  uint32_t word;
} pieces_t;

static uint32_t next_piece(pieces_t* p) {
  if (!p->left) {
    p->word = assay_numpy_random_u32(p->random);
    p->left = 32 / p->bits;
  } else {
    p->word >>= p->bits;
  }
  p->left--;
  return p->bits == 32 ? p->word : p->word & ((UINT32_C(1) << p->bits) - 1);
}

// The smallest 2^k - 1 that is not below x.
static uint64_t mask_of(uint64_t x) {
  for (int shift = 1; shift < 64; shift *= 2) x |= x >> shift;
  return x;
}

// Of a number from 0 to span, by drawing until one is not above it. int64 and uint64 draw words of
// 32 bits as long as the span fits.
static uint64_t draw(pieces_t* p, uint64_t span, uint64_t mask) {
  uint64_t x;
  if (!span) return 0;
  do x = span > UINT32_MAX ? next_u64(p->random) & mask : next_piece(p) & mask;
  while (x > span);
  return x;
}

// ---- tensors ------------------------------------------------------------------------------------

static bool holds(assay_type_t type, int64_t x) {
  return type == ASSAY_TYPE_UINT64 ? x >= 0 : assay_type_wrap(type, x) == x;
}

static assay_status_t check_range(assay_type_t type, const assay_numpy_range_t* range) {
  const bool floats = assay_type_is_float(type);
  if (!floats && assay_type_store(type) != ASSAY_STORE_I64)
    return ASSAY_ERROR(ASSAY_UNSUPPORTED, "random values of %s cannot be made",
                       assay_type_name(type));
  if (floats && !(isfinite(range->min) && isfinite(range->max)))
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "random values have a finite range, not [%g, %g]",
                       range->min, range->max);
  if (!floats && (range->int_min > range->int_max || !holds(type, range->int_min) ||
                  !holds(type, range->int_max)))
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "[%" PRId64 ", %" PRId64 "] is not a range of %s",
                       range->int_min, range->int_max, assay_type_name(type));
  return NULL;
}

// Bits of a piece for a type: integers of fewer than 8 bits lie in NumPy's bytes.
static int piece_bits(assay_type_t type) {
  const int bits = assay_type_bits(type);
  if (type == ASSAY_TYPE_BOOL) return 1;
  return bits < 8 ? 8 : bits > 32 ? 32 : bits;
}

assay_status_t assay_numpy_random_tensor(assay_numpy_random_t* r, assay_type_t type, int rank,
                                         const int64_t* dims, const assay_numpy_range_t* range,
                                         assay_tensor_t** out) {
  assay_tensor_t* t = NULL;
  ASSAY_TRY(check_range(type, range));
  ASSAY_TRY(assay_tensor_create(type, rank, dims, &t));
  if (t->store == ASSAY_STORE_F64) {
    for (int64_t i = 0; i < t->size; i++)
      assay_f64(t)[i] =
          assay_format_round(assay_type_format(type),
                             assay_numpy_random_sample(r) * (range->max - range->min) + range->min,
                             ASSAY_OVERFLOW_IEEE);
  } else {
    pieces_t pieces = {.random = r, .bits = piece_bits(type)};
    const uint64_t span = (uint64_t)range->int_max - (uint64_t)range->int_min, mask = mask_of(span);
    for (int64_t i = 0; i < t->size; i++)
      assay_i64(t)[i] = (int64_t)((uint64_t)range->int_min + draw(&pieces, span, mask));
  }
  *out = t;
  return NULL;
}
