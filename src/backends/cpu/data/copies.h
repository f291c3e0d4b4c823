// Boxes of elements (backends/layers/box.h) copied on the host.
#ifndef ASSAY_BACKENDS_CPU_DATA_COPIES_H_
#define ASSAY_BACKENDS_CPU_DATA_COPIES_H_

#include "backends/cpu/tactic.h"
#include "backends/layers/box.h"

// elem: bytes of an element: 1, 2, 4 or 8; value: what boxes without an input are filled with.
void cpu_box_copy(const box_t* box, size_t elem, const void* const* in, const void* value,
                  void* const* out);
// The same of runs [first, end) alone, on the caller's thread: those of dims[0], of a prepared box
// of two dimensions whose elements lie side by side along the second one on both sides.
bool cpu_box_is_runs(const box_t* box);
void cpu_box_copy_runs(const box_t* box, size_t elem, const void* const* in, const void* value,
                       void* const* out, int64_t first, int64_t end);

#endif  // ASSAY_BACKENDS_CPU_DATA_COPIES_H_
