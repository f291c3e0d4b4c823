// What a look at a tensor's values tells first: how large they are, and whether all are numbers.
#include "formats/extremes.h"

#include "formats/sums.h"

enum { BLOCK = ASSAY_STATS_BLOCK, CHUNK = ASSAY_STATS_CHUNK };

// The largest pattern of a magnitude: that of infinity or more if something is not finite.
ASSAY_WIDE static uint64_t largest_of(const double* x, int64_t n) {
  int64_t max = 0;
#pragma omp simd reduction(max : max)
  for (int64_t i = 0; i < n; i++) {
    int64_t a = (int64_t)(assay_bits_of(x[i]) & ~ASSAY_SIGN);
    max = a > max ? a : max;
  }
  return (uint64_t)max;
}

static void add_slowly(assay_extremes_t* e, const double* x, int64_t n) {
  for (int64_t i = 0; i < n; i++) {
    if (isfinite(x[i]))
      e->largest = fmax(e->largest, fabs(x[i]));
    else if (x[i] != x[i])
      e->n_nan++;
    else
      e->n_inf++;
  }
}

static assay_extremes_t chunk_extremes(assay_type_t type, const void* data, int64_t first,
                                       int64_t n) {
  assay_extremes_t e = {0};
  double buffer[BLOCK];
  for (int64_t i = 0; i < n; i += BLOCK) {
    int64_t count = n - i < BLOCK ? n - i : BLOCK;
    const double* x = assay_block_read(type, data, first + i, count, buffer);
    uint64_t max = largest_of(x, count);
    if (max >= ASSAY_EXPONENT)
      add_slowly(&e, x, count);
    else
      e.largest = fmax(e.largest, assay_of_bits(max));
  }
  return e;
}

assay_extremes_t assay_extremes(assay_type_t type, const void* data, int64_t n) {
  double largest = 0;
  int64_t nan = 0, inf = 0;
#pragma omp parallel for schedule(static) reduction(max : largest) reduction(+ : nan, inf) \
    if (n > 2 * CHUNK)
  for (int64_t i = 0; i < n; i += CHUNK) {
    assay_extremes_t e = chunk_extremes(type, data, i, n - i < CHUNK ? n - i : CHUNK);
    largest = e.largest > largest ? e.largest : largest;
    nan += e.n_nan;
    inf += e.n_inf;
  }
  return (assay_extremes_t){largest, nan, inf};
}
