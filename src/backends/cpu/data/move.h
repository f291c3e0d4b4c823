// Moves on the host (exec/segment/reformat.h).
#ifndef ASSAY_BACKENDS_CPU_DATA_MOVE_H_
#define ASSAY_BACKENDS_CPU_DATA_MOVE_H_

#include "backends/cpu/tactic.h"
#include "exec/segment/reformat.h"

// Whether elements can be moved so: any type as it is, floats of 32 and 16 bits into each other.
bool cpu_move_is_possible(const assay_reformat_t* m);
size_t cpu_move_scratch(const assay_reformat_t* m);  // bytes that the move needs besides
void cpu_move_run(const assay_reformat_t* m, const void* from, void* to, void* scratch);

// Copies a packed tensor's elements into the other layout: rank 3 and more, elements of 1, 2, 4 or
// 8 bytes.
void cpu_reorder(const void* from, assay_layout_t from_layout, int rank, const int64_t* dims,
                 size_t elem, void* to);

#endif  // ASSAY_BACKENDS_CPU_DATA_MOVE_H_
