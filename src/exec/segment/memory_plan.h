// Where blocks of memory, each needed for some steps only, lie in one arena.
#ifndef ASSAY_EXEC_SEGMENT_MEMORY_PLAN_H_
#define ASSAY_EXEC_SEGMENT_MEMORY_PLAN_H_

#include <stddef.h>

#include "base/status.h"

enum { ASSAY_BLOCK_ALIGNMENT = 64 };  // on the host: a cache line, and the widest vector

typedef struct assay_block {
  size_t bytes;
  int first, last;  // steps, both inclusive: what is in it before and after them is not needed
  size_t offset;    // set
} assay_block_t;

// Sets the offsets, multiples of the alignment (a power of two), so that blocks needed at one step
// do not overlap; *out_bytes: the arena's size.
// The largest blocks come first, each at the lowest offset with room (greedy by size: Pisarchyk and
// Lee, Efficient Memory Management for Deep Neural Net Inference, 2020). Errors: NO_MEMORY.
assay_status_t assay_memory_plan(assay_block_t* blocks, size_t n, size_t alignment,
                                 size_t* out_bytes) ASSAY_MUST_USE;

#endif  // ASSAY_EXEC_SEGMENT_MEMORY_PLAN_H_
