// A GPU of NVIDIA's as a device.
#ifndef ASSAY_BACKENDS_CUDA_DRIVER_H_
#define ASSAY_BACKENDS_CUDA_DRIVER_H_

#include "backends/cuda/api.h"
#include "exec/device.h"

extern const assay_device_driver_t assay_device_driver_cuda;

#endif  // ASSAY_BACKENDS_CUDA_DRIVER_H_
