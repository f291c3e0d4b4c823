// Weights of convolutions that are values of the run, brought into the order of the kernels before
// each product; constants are brought into it once (constants.h).
#ifndef ASSAY_BACKENDS_CUDA_PRODUCT_PACKING_H_
#define ASSAY_BACKENDS_CUDA_PRODUCT_PACKING_H_

#include "backends/cuda/kernels/copy_args.h"
#include "backends/cuda/product/constants.h"

// The box of elements that is copied, without addresses.
copy_box_t cuda_packing_box(const cuda_taps_t* t);
assay_status_t cuda_packing_get(const cuda_own_t* own, assay_type_t type, const copy_box_t* box,
                                cuda_kernel_t* out) ASSAY_MUST_USE;
assay_status_t cuda_packing_enqueue(const cuda_own_t* own, cuda_kernel_t kernel,
                                    const copy_box_t* box, assay_queue_t* q,
                                    assay_device_ptr_t from, assay_device_ptr_t to) ASSAY_MUST_USE;

#endif  // ASSAY_BACKENDS_CUDA_PRODUCT_PACKING_H_
