// What the copy engine of a GPU has to know of a tensor that kernels get by tiles
// (kernels/prelude.h, bulk_tile and bulk_windows), from capability 9.0 on.
#ifndef ASSAY_BACKENDS_CUDA_MAPS_H_
#define ASSAY_BACKENDS_CUDA_MAPS_H_

#include "backends/cuda/kernels/types.h"
#include "exec/device.h"
#include "onnx/onnx.h"

// Tiles of a matrix of float32, fp16, bf16 or bytes: `width` elements of each of `height` rows,
// which are a line of 128 or 64 bytes that change places by the row (wgmma.h).
typedef struct cuda_tiles {
  assay_type_t type;
  int64_t columns, rows, row_step;  // of the matrix, in elements; steps are multiples of 16 bytes
  int width, height;                // 128 or 64 bytes; at most 256
  bool to_tf32;                     // float32 is rounded to tf32, to nearest, ties to even
} cuda_tiles_t;
// `at`: a multiple of 16 bytes. Errors: DEVICE, INVALID_ARGUMENT: numbers that the engine cannot
// take
assay_status_t cuda_map_tiles(assay_queue_t* q, const cuda_tiles_t* t, assay_device_ptr_t at,
                              tensor_map_t* out) ASSAY_MUST_USE;
bool cuda_tiles_fit(const cuda_tiles_t* t);

// Windows of a convolution with two axes: `line` channels, 128 or 64 bytes, of `places` windows one
// after the other.
typedef struct cuda_windows {
  assay_type_t type;
  int64_t channels, width, height, samples, place_step, sample_step;  // steps in elements
  // Of the axes across and down: where windows begin (-pads), how far behind the end of the image
  // the last one may begin, and strides.
  int first[2], last[2], strides[2];
  int places, line;
  bool to_tf32;  // as above
} cuda_windows_t;
assay_status_t cuda_map_windows(assay_queue_t* q, const cuda_windows_t* w, assay_device_ptr_t at,
                                tensor_map_t* out) ASSAY_MUST_USE;
bool cuda_windows_fit(const cuda_windows_t* w);

#endif  // ASSAY_BACKENDS_CUDA_MAPS_H_
