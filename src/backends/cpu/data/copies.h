// Boxes of elements copied between tensors with any strides: what layers that move elements are
// made of.
#ifndef ASSAY_BACKENDS_CPU_DATA_COPIES_H_
#define ASSAY_BACKENDS_CPU_DATA_COPIES_H_

#include "backends/cpu/tactic.h"

enum { CPU_COPY_RANK = 2 * ASSAY_KERNEL_RANK };

// For all i of dims: element to_at + sum(i * to_strides) of the output becomes element
// from_at + sum(i * from_strides) of the input. Strides of `from` may be negative or 0.
typedef struct cpu_box {
  int from;  // input of the layer; -1: a value
  int to;    // output
  int rank;
  int64_t dims[CPU_COPY_RANK], from_strides[CPU_COPY_RANK], to_strides[CPU_COPY_RANK];
  int64_t from_at, to_at;
} cpu_box_t;

// Brings a box into the order in which it is copied; once, before it is run. Boxes without elements
// may be left out, and so may those of which cpu_box_is_empty is true.
void cpu_box_prepare(cpu_box_t* box);
bool cpu_box_is_empty(const cpu_box_t* box);
// elem: bytes of an element: 1, 2, 4 or 8; value: what boxes without an input are filled with.
void cpu_box_copy(const cpu_box_t* box, size_t elem, const void* const* in, const void* value,
                  void* const* out);
// The same of runs [first, end) alone, on the caller's thread: those of dims[0], of a prepared box
// of two dimensions whose elements lie side by side along the second one on both sides.
bool cpu_box_is_runs(const cpu_box_t* box);
void cpu_box_copy_runs(const cpu_box_t* box, size_t elem, const void* const* in, const void* value,
                       void* const* out, int64_t first, int64_t end);

// The steps in memory by dimension, of a tensor in a layout.
void cpu_layout_strides(int rank, const int64_t* dims, assay_layout_t layout, int64_t* strides);

#endif  // ASSAY_BACKENDS_CPU_DATA_COPIES_H_
