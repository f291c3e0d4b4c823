// Private to src/formats: what the vectors do for error statistics, block by block.
//
// Every step is exact or a single IEEE operation in one order, so all variants give the same bits.
#ifndef ASSAY_FORMATS_ERROR_BLOCK_H_
#define ASSAY_FORMATS_ERROR_BLOCK_H_

#include "formats/codec.h"
#include "formats/histogram.h"
#include "formats/sums.h"

typedef struct assay_error_block {
  const double *a, *b;    // engine, reference
  int64_t n, first;       // first: place of the first element in the tensor
  const uint16_t* place;  // of the elements within the block; NULL: all are there
  double* error;
  double max_error, max[2];
  int64_t zero_errors, zero_references;
  double max_zero_error;  // largest error of a reference that is 0
} assay_error_block_t;

// Errors, maxima, and sums of e, e^2, a^2, b^2 and a*b; false if something is not finite (and then
// they mean nothing). Sums may overflow.
bool assay_error_block_scan(assay_error_block_t* k, double sums[5]);

// Slots of a block in the windows of errors and references (the engine's values, too).
enum { ASSAY_WINDOW_OCTAVES = ASSAY_WINDOW_SLOTS / ASSAY_HISTOGRAM_BINS };
enum { ASSAY_STATS_WORDS = ASSAY_STATS_BLOCK / 32 };
typedef struct assay_error_slots {
  int32_t base_e, base;  // of the two windows
  // By octave of the reference: errors from this slot on may be the worst.
  uint16_t limit[ASSAY_WINDOW_OCTAVES];
  uint16_t e[ASSAY_STATS_BLOCK + ASSAY_WINDOW_LANES], a[ASSAY_STATS_BLOCK];
  uint16_t b[ASSAY_STATS_BLOCK + ASSAY_WINDOW_LANES];
  // Bits by element. moved: the engine's value is in another bin than the reference's; large:
  // limit.
  uint32_t moved[ASSAY_STATS_WORDS], large[ASSAY_STATS_WORDS];
  int64_t below_e, below_b;  // errors and references other than zero that lie below the windows
} assay_error_slots_t;
void assay_error_block_slots(const assay_error_block_t* k, assay_error_slots_t* s);

// Distances in steps of an IEEE-like format: adds their counts by slot (stats.h, ASSAY_ULP_SLOTS)
// and returns the largest. They are below 2^33.
uint64_t assay_error_block_ulps(const assay_error_block_t* k, const assay_codec_t* codec,
                                uint64_t* counts);

#endif  // ASSAY_FORMATS_ERROR_BLOCK_H_
