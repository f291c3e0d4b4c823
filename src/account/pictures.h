// What a person looks at: for every value that a layer gives, histograms of its elements and
// errors, and a small map of where in the tensor they are. Filled while an account runs, in memory
// of a fixed size a value.
#ifndef ASSAY_ACCOUNT_PICTURES_H_
#define ASSAY_ACCOUNT_PICTURES_H_

#include "account/account.h"

// Counts by powers of two: bin k holds magnitudes in [2^(LOW+k), 2^(LOW+k+1)); the ends take what
// lies beyond.
enum { ASSAY_PICTURE_LOW = -150, ASSAY_PICTURE_BINS = 279, ASSAY_PICTURE_SIDE = 64 };
typedef struct assay_octaves {
  int64_t zero;
  int64_t positive[ASSAY_PICTURE_BINS], negative[ASSAY_PICTURE_BINS];
} assay_octaves_t;
typedef struct assay_magnitudes {
  int64_t zero;
  int64_t at[ASSAY_PICTURE_BINS];
} assay_magnitudes_t;

// A map's cells are codes of 6 bits. Of errors: 0 none, else 1 .. 62 for the RMS of the cell, a
// quarter of an octave a step, 62 being `top`. Of values: 0 .. 62 from `bottom` to `top`, the mean
// of the cell. 63: something is not finite on one side only (errors), or in truth (values).
enum { ASSAY_MAP_UNFINITE = 63, ASSAY_MAP_TOP = 62, ASSAY_MAP_STEPS = 4 };
typedef struct assay_map_of {
  uint8_t* code;  // rows x columns of the picture
  double bottom, top;
  bool plain;  // every cell has the same code
} assay_map_of_t;

// Of one value. Histograms are over all runs, maps of the first.
typedef struct assay_picture {
  const assay_value_t* value;
  int64_t runs;
  int rank;
  int64_t dims[ASSAY_MAX_RANK];
  assay_octaves_t truth;
  assay_magnitudes_t own, total;  // finite errors
  int64_t engine_nan, engine_inf, truth_unfinite;
  double low, high;         // of truth's finite elements; low > high: there are none
  assay_error_sum_t error;  // engine minus truth
  // Over the last two dimensions, if both have at least 4 elements; the others are taken together.
  // Else rows are 0.
  int rows, columns;
  assay_map_of_t truth_map, own_map, total_map;
} assay_picture_t;

typedef struct assay_pictures {
  assay_picture_t** of_value;  // by value id; NULL entries: not seen
  size_t n, capacity;
  assay_status_t status;  // the first failure: the pictures are not whole
} assay_pictures_t;

void assay_pictures_deinit(assay_pictures_t* p);
// To be given to an account; fills *p.
assay_account_watch_t assay_pictures_watch(assay_pictures_t* p);
// What went wrong while they were filled; the caller's from here on.
assay_status_t assay_pictures_take_status(assay_pictures_t* p) ASSAY_MUST_USE;
const assay_picture_t* assay_pictures_get(const assay_pictures_t* p,
                                          const assay_value_t* v);  // NULL: none

#endif  // ASSAY_ACCOUNT_PICTURES_H_
