// Rows of batches: making batches of single samples, and comparing one row of two runs.
#ifndef ASSAY_DEBUG_BATCH_ROWS_H_
#define ASSAY_DEBUG_BATCH_ROWS_H_

#include "data/samples.h"
#include "debug/batch_axis.h"

enum { ASSAY_BATCH_MAX = 4 };  // rows of the largest batch that is made

// Where a row came from.
enum {
  ASSAY_ROW_OTHER = ASSAY_BATCH_MAX,  // after the samples: another one, 16 times as large
  ASSAY_ROW_PADDING,                  // zeros
  ASSAY_ROW_KINDS,
};

// Samples of batch 1 of a model whose batch is open, one after the other; canonical.
typedef struct assay_rows {
  size_t n_inputs;
  size_t given;         // rows of the user's; the others are drawn
  int* axis;            // by input: along which it has one row a sample; -1: the same for all
  assay_tensor_t** at;  // [row * n_inputs + input]
} assay_rows_t;
void assay_rows_deinit(assay_rows_t* r);

// Takes the rows of the samples, and draws those that are missing, in the shape of the first.
// batch: as of assay_batch_axis_of. Errors: UNSUPPORTED no input has a batch, or one of it holds
// neither floats nor integers.
assay_status_t assay_rows_make(const assay_model_t* model, const assay_samples_t* samples,
                               const assay_batch_axis_t* axis, int64_t batch, uint64_t seed,
                               assay_rows_t* out) ASSAY_MUST_USE;

// A batch of these rows, by input (assay_rows_release_batch); single: inputs of which only the
// first row is taken (NULL: none).
assay_status_t assay_rows_stack(const assay_rows_t* r, const int* rows, int n, const bool* single,
                                assay_tensor_t*** out) ASSAY_MUST_USE;
void assay_rows_release_batch(assay_tensor_t** at, size_t n);

// How a value of a batch holds one sample's part.
typedef enum assay_row_fit {
  ASSAY_ROW_FITS = 0,  // along one axis, or as a whole
  ASSAY_ROW_UNSIZED,   // its size depends on the data: it cannot be compared
  ASSAY_ROW_MISFIT,    // its shape does not go with the batch
} assay_row_fit_t;

typedef struct assay_row_difference {
  assay_row_fit_t fit;
  int64_t outer, inner, stride,
      offset;            // of the part: element (o, i) is at o * stride + offset + i
  int64_t ref_stride;    // and in the reference at o * ref_stride + i
  int64_t n, differing;  // elements of the part; those whose bits differ
  double max, ref_max;   // largest finite difference, and value of the reference
  bool mismatched;       // finite on one side only, or integers that differ
} assay_row_difference_t;

// Row `place` of a value in a batch of n against row 0 of the same value in a batch of ref_n: 1, or
// n, where only values are compared whose size along `axis`, and no other, is n.
assay_row_difference_t assay_row_compare(const assay_tensor_t* got, int n, int place,
                                         const assay_tensor_t* ref, int ref_n, int axis);

#endif  // ASSAY_DEBUG_BATCH_ROWS_H_
