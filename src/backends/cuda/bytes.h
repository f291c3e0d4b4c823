// Bytes that a tactic has made of a layer's constants, in the device's memory.
#ifndef ASSAY_BACKENDS_CUDA_BYTES_H_
#define ASSAY_BACKENDS_CUDA_BYTES_H_

#include "backends/cuda/tactic.h"

// Where they lie: shared with all that have made the same. what: what they are, of the layer.
assay_status_t cuda_bytes_bring(const assay_sized_layer_t* l, const char* what, const void* from,
                                size_t n, assay_device_ptr_t* out) ASSAY_MUST_USE;
// By what they are: layers whose bytes are the same have them once.
assay_status_t cuda_bytes_share(const assay_sized_layer_t* l, const char* what, const void* from,
                                size_t n, assay_device_ptr_t* out) ASSAY_MUST_USE;

#endif  // ASSAY_BACKENDS_CUDA_BYTES_H_
