// All elements of lines in order, as keys (kernels/rows/sort.cu): a bitonic network in several
// launches.
#ifndef ASSAY_BACKENDS_CUDA_ROWS_SORTING_H_
#define ASSAY_BACKENDS_CUDA_ROWS_SORTING_H_

#include "backends/cuda/kernels/sort_args.h"
#include "backends/cuda/tactic.h"

// Keys that a block sorts: 32 KB of them at most.
enum { CUDA_SORT_BYTES = 32 << 10, CUDA_SORT_LEAST = 64 };

typedef struct cuda_sorting {
  const cuda_own_t* own;
  cuda_kernel_t elements, step, merge;  // "sort_elements", ...
  int key_bytes;                        // 8; of elements of 64 bits 16
  int most;                             // keys of a chunk
  int chunk;                            // SIZE, which they are compiled for
  int64_t padded;                       // keys of a line: a power of two
} cuda_sorting_t;

// Chunks and keys for lines of n elements of so many bits.
void cuda_sorting_plan(int64_t n, int bits, cuda_sorting_t* s);
// Of a: x, lines, inner, n. keys: lines * padded keys, which are in order then.
assay_status_t cuda_sorting_enqueue(const cuda_sorting_t* s, assay_queue_t* q, const sort_args_t* a,
                                    assay_device_ptr_t keys) ASSAY_MUST_USE;

// A launch of a kernel of blocks of keys; of one with a thread an element.
assay_status_t cuda_sorting_launch_blocks(const cuda_sorting_t* s, assay_queue_t* q,
                                          cuda_kernel_t f, int64_t blocks,
                                          const sort_args_t* a) ASSAY_MUST_USE;
assay_status_t cuda_sorting_launch_each(const cuda_sorting_t* s, assay_queue_t* q, cuda_kernel_t f,
                                        int64_t n, const sort_args_t* a) ASSAY_MUST_USE;

#endif  // ASSAY_BACKENDS_CUDA_ROWS_SORTING_H_
