// Boxes that are copied by tiles in shared memory (kernels/data/copy_tiles.cu), as the tensors run
// along other dimensions.
#ifndef ASSAY_BACKENDS_CUDA_DATA_TILES_H_
#define ASSAY_BACKENDS_CUDA_DATA_TILES_H_

#include "backends/cuda/kernels/tiles_args.h"
#include "backends/cuda/tactic.h"
#include "backends/layers/box.h"

// How a box is cut, and the kernel that copies it.
typedef struct cuda_tiles {
  tiles_args_t args;               // without addresses
  int64_t from_at, to_at;          // bytes
  int rank, from_words, to_words;  // as RANK, FROM and TO
  cuda_kernel_t function;
} cuda_tiles_t;

// Of a prepared box; false: another way is as good, or none of its dimensions can be cut so that
// tiles run far enough along both tensors.
bool cuda_tiles_make(const cuda_own_t* own, const box_t* b, int64_t elem, cuda_tiles_t* out);
assay_status_t cuda_tiles_load(const cuda_own_t* own, int64_t elem, cuda_tiles_t* t) ASSAY_MUST_USE;
assay_status_t cuda_tiles_launch(const cuda_own_t* own, assay_queue_t* q, const cuda_tiles_t* t,
                                 int64_t elem, assay_device_ptr_t from,
                                 assay_device_ptr_t to) ASSAY_MUST_USE;

#endif  // ASSAY_BACKENDS_CUDA_DATA_TILES_H_
