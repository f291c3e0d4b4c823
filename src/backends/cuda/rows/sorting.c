// All elements of lines in order.
#include "backends/cuda/rows/sorting.h"

enum { THREADS = 256, BLOCK_THREADS = 512 };

void cuda_sorting_plan(int64_t n, int bits, cuda_sorting_t* s) {
  s->key_bytes = bits > 32 ? 16 : 8;
  s->most = CUDA_SORT_BYTES / s->key_bytes;
  s->chunk = CUDA_SORT_LEAST;
  while (s->chunk < s->most && s->chunk < n) s->chunk *= 2;
  s->padded = s->chunk;
  while (s->padded < n) s->padded *= 2;
}

assay_status_t cuda_sorting_launch_blocks(const cuda_sorting_t* s, assay_queue_t* q,
                                          cuda_kernel_t f, int64_t blocks, const sort_args_t* a) {
  const int threads = s->chunk / 2 < BLOCK_THREADS ? s->chunk / 2 : BLOCK_THREADS;
  const cuda_grid_t grid = {.blocks = blocks, .threads = threads, .dependent = true};
  return cuda_queue_launch(q, f, &grid, a);
}

assay_status_t cuda_sorting_launch_each(const cuda_sorting_t* s, assay_queue_t* q, cuda_kernel_t f,
                                        int64_t n, const sort_args_t* a) {
  const cuda_grid_t grid = {
      .blocks = cuda_blocks_for(s->own, n, THREADS), .threads = THREADS, .dependent = true};
  return cuda_queue_launch(q, f, &grid, a);
}

// Chunks sorted up and down in turn are what the larger steps of the network begin with.
assay_status_t cuda_sorting_enqueue(const cuda_sorting_t* s, assay_queue_t* q,
                                    const sort_args_t* in, assay_device_ptr_t keys) {
  sort_args_t a = *in;
  const int64_t pairs = a.lines * (s->padded / 2), blocks = a.lines * (s->padded / s->chunk);
  a.from = a.to = keys;
  a.keys = s->padded;
  a.chunks = (int32_t)(s->padded / s->chunk);
  a.taken = s->chunk;
  a.alternate = 1;
  ASSAY_TRY(cuda_sorting_launch_blocks(s, q, s->elements, blocks, &a));
  for (a.size = 2 * s->chunk; a.size <= a.keys; a.size *= 2) {
    for (a.stride = a.size / 2; a.stride >= s->chunk; a.stride /= 2)
      ASSAY_TRY(cuda_sorting_launch_each(s, q, s->step, pairs, &a));
    ASSAY_TRY(cuda_sorting_launch_blocks(s, q, s->merge, blocks, &a));
  }
  return NULL;
}
