// Values that grow in place: what a run makes is what it reads and more after that, in the same
// memory, which the caller has and which has room for a capacity.
//
// To append along a dimension that is not the outermost, elements lie *with room*: in memory that
// dimension has the size of the capacity. Kernels that can read and write so say it
// (assay_kernel_t.rooms); where one of those that use the value cannot, or a layer is emulated,
// elements lie as they always do, and what is made is made elsewhere.
#ifndef ASSAY_EXEC_APPEND_H_
#define ASSAY_EXEC_APPEND_H_

#include "ir/ir.h"

enum { ASSAY_APPEND_RANK = 8 };

typedef struct assay_append {
  const assay_value_t *in, *out;  // a graph input, and a graph output
  int axis;
  int64_t capacity;  // along it
  // Of the capacity; before each run: what `in` is, with room or without.
  void* memory;
  bool with_capacity;
  bool appended;  // by the last run: the memory has `out`, with room, of these dimensions
  int64_t dims[ASSAY_APPEND_RANK];
} assay_append_t;

// Moves the elements of a value of these sizes within the memory, so that they lie with room or
// without.
void assay_append_settle(assay_append_t* a, const int64_t* dims, bool with_capacity);
// A tensor of its own with these elements.
assay_status_t assay_append_read(const assay_append_t* a, const int64_t* dims,
                                 assay_tensor_t** out) ASSAY_MUST_USE;

#endif  // ASSAY_EXEC_APPEND_H_
