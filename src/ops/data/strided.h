// The engine under everything that moves elements: copies a box of elements between two tensors
// with any strides.
#ifndef ASSAY_OPS_DATA_STRIDED_H_
#define ASSAY_OPS_DATA_STRIDED_H_

#include "ops/op.h"

// Boxes may have more dims than tensors: Tile views its output as repeats x dims.
enum { ASSAY_STRIDED_MAX = 2 * ASSAY_MAX_RANK + 2 };

// For all indices i of dims: element to_offset + sum(i * to_strides) of `to` becomes element
// from_offset + sum(i * from_strides) of `from`. Offsets and strides in elements; strides may be
// negative, those of `from` 0 (repeats). The caller has made sure that all lies inside the tensors
// and that no element of `to` is written twice; `to` and `from` share no bytes.
//   to, from  canonical, of the same store (strings are copied)
// Threads: OpenMP where the box is large.
// Errors: NO_MEMORY (strings only).
assay_status_t assay_copy_strided(int rank, const int64_t* dims, const assay_tensor_t* from,
                                  int64_t from_offset, const int64_t* from_strides,
                                  assay_tensor_t* to, int64_t to_offset,
                                  const int64_t* to_strides) ASSAY_MUST_USE;

// n elements in a row.
assay_status_t assay_copy_run(const assay_tensor_t* from, int64_t from_offset, assay_tensor_t* to,
                              int64_t to_offset, int64_t n) ASSAY_MUST_USE;
// Element (i0, i1, ...) of `to`, which has the shape `dims`, becomes element
// tables[0][i0] + tables[1][i1] + ... of `from`: for pads, and for any operator whose source index
// is a function of one axis at a time. The caller has made sure that all lies inside `from`.
// Threads: OpenMP over rows where there are many elements.
assay_status_t assay_copy_mapped(int rank, const int64_t* dims, const int64_t* const* tables,
                                 const assay_tensor_t* from, assay_tensor_t* to) ASSAY_MUST_USE;
// All elements of `to` become element `i` of `from`; or zero, false, "".
assay_status_t assay_fill_from(assay_tensor_t* to, const assay_tensor_t* from,
                               int64_t i) ASSAY_MUST_USE;
assay_status_t assay_fill_zero(assay_tensor_t* to) ASSAY_MUST_USE;

// The strides of a contiguous tensor.
void assay_row_major(int rank, const int64_t* dims, int64_t* strides);

// Indices that count up in row-major order, with an offset that follows: where a loop needs the
// offset of each element of a box. rank at most ASSAY_MAX_RANK.
typedef struct assay_odometer {
  int rank;
  const int64_t* dims;
  const int64_t* strides;
  int64_t index[ASSAY_MAX_RANK];
  int64_t offset;
} assay_odometer_t;

static inline void assay_odometer_init(assay_odometer_t* o, int rank, const int64_t* dims,
                                       const int64_t* strides) {
  o->rank = rank;
  o->dims = dims;
  o->strides = strides;
  o->offset = 0;
  for (int i = 0; i < rank; i++) o->index[i] = 0;
}

static inline void assay_odometer_next(assay_odometer_t* o) {
  for (int i = o->rank - 1; i >= 0; i--) {
    o->offset += o->strides[i];
    if (++o->index[i] < o->dims[i]) return;
    o->offset -= o->strides[i] * o->dims[i];
    o->index[i] = 0;
  }
}

#endif  // ASSAY_OPS_DATA_STRIDED_H_
