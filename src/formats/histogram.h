// Logarithmic histograms of float64 values: 64 bins an octave and sign, over the whole range, in
// memory for the octaves that occur.
#ifndef ASSAY_FORMATS_HISTOGRAM_H_
#define ASSAY_FORMATS_HISTOGRAM_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// A bin holds what shares sign, exponent and the first 6 bits of the mantissa with it: its width is
// at most 1/64 of its lower end. (Magnitudes below 2^-1022 have bins of 2^-1028, the first with
// zero.)
enum { ASSAY_HISTOGRAM_BINS = 64, ASSAY_HISTOGRAM_OCTAVES = 4096 };

// An octave of one sign. Of reference values it also has the worst errors of its elements.
typedef struct assay_octave {
  uint64_t count[ASSAY_HISTOGRAM_BINS];
  double max_error, max_relative;
  int64_t max_relative_at;  // the first element that has it; -1 if none
} assay_octave_t;

typedef struct assay_histogram {
  uint16_t index[ASSAY_HISTOGRAM_OCTAVES];  // by sign and exponent: place in octaves; 0: none
  assay_octave_t* octaves;                  // [0] is not used
  size_t len, capacity;
  bool failed;  // out of memory: counts are missing
} assay_histogram_t;

void assay_histogram_deinit(assay_histogram_t* h);
// The octave of a place in `index`, made if need be; NULL without memory.
assay_octave_t* assay_histogram_octave(assay_histogram_t* h, unsigned octave);
// Adds the counts of `from`; where both have the same worst relative error, the first place stays.
// Places in `from` are shifted by `offset`.
void assay_histogram_merge(assay_histogram_t* h, const assay_histogram_t* from, int64_t offset);
uint64_t assay_histogram_total(const assay_histogram_t* h);

// Goes through the bins that are not empty in ascending order of value. *cursor starts at 0; false
// at the end. lo and hi are the bin's ends: its values are in [lo, hi) above zero, (lo, hi] below;
// the last ends are infinite.
bool assay_histogram_next(const assay_histogram_t* h, uint32_t* cursor, double* lo, double* hi,
                          uint64_t* count);

// The value of the element of the given rank (0 is the smallest), to 1/128 of itself; the exact
// smallest and largest values, if known, are not exceeded. 0 for an empty histogram.
double assay_histogram_rank(const assay_histogram_t* h, uint64_t rank, double min, double max);

// Kullback-Leibler divergence sum p log(p/q) of two histograms in nats, where q is p plus the
// counts in `change` (which wrap below zero). 1/2 is added to each count in all bins that either
// has (Krichevsky and Trofimov, 1981), so that it is finite. 0 if there are no counts.
double assay_histogram_kl(const assay_histogram_t* p, const assay_histogram_t* change);

// Counts one value more (or, with ~0, less).
void assay_histogram_count(assay_histogram_t* h, double x, uint64_t more);

// A window of 31 octaves in which counting is one addition: element by element there is no looking
// up. Slots are of magnitudes, in the second half of count those of negative values. Slot 0 stands
// for what lies below the window (zero always does), which is not counted here.
//
// Neighbours in a tensor are often equal, and an addition to a place has to wait for the one before
// it: elements take turns in the lanes, which hold 16 bits.
enum { ASSAY_WINDOW_SLOTS = 2048, ASSAY_WINDOW_BITS = 11, ASSAY_WINDOW_LANES = 4 };
typedef struct assay_bin_window {
  assay_histogram_t* histogram;
  int32_t base;  // bin that slot 0 would be: bin b has slot b - base, if that is 64 or more
  bool is_open;
  bool difference;  // the upper half of the lanes is taken off
  int32_t in_lane;  // the most that a lane may hold by now
  uint16_t count[2 * ASSAY_WINDOW_SLOTS * ASSAY_WINDOW_LANES];
} assay_bin_window_t;

// Makes room for magnitudes up to max; true if the window moved. Its counts went to the histogram
// then.
bool assay_histogram_fit(assay_bin_window_t* w, double max);
// Moves it to a base of one's own choice.
void assay_window_open(assay_bin_window_t* w, int32_t base);
void assay_window_flush(assay_bin_window_t* w);
// Counts elements by their slots, at most 2^16 at a time. The slots' array has room for
// ASSAY_WINDOW_LANES - 1 more.
void assay_window_count(assay_bin_window_t* w, uint16_t* slots, int64_t n);

#endif  // ASSAY_FORMATS_HISTOGRAM_H_
