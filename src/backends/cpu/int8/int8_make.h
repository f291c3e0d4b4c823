// How the int8 tactics that make sums in some way make their kernels, and how those round.
#ifndef ASSAY_BACKENDS_CPU_INT8_INT8_MAKE_H_
#define ASSAY_BACKENDS_CPU_INT8_INT8_MAKE_H_

#include "backends/cpu/int8/int8_kernel.h"

// Fills in a zeroed kernel; *out_ok: whether the layer is one for the tactic.
typedef assay_status_t int8_build_t(int8_kernel_t* k, int8_job_t* j, bool* out_ok);

// Reads a layer and builds the kernel of it, of so many bytes, which begin with an int8_kernel_t;
// *out stays NULL where the layer is none for the tactic. close: of what `build` has added, also
// where it has failed; NULL: nothing.
// wants: asked before the weights are read, which takes long; NULL: of any layer.
assay_status_t int8_make(const assay_sized_layer_t* l, size_t bytes,
                         bool (*wants)(const int8_job_t* j), int8_build_t* build,
                         void (*close)(int8_kernel_t* k), assay_kernel_t** out) ASSAY_MUST_USE;

// Sums are exact; what comes after them is rounded as ops/quant/int8.h says.
#define INT8_ROUNDING                                                                   \
  {                                                                                     \
    .compute = ASSAY_FORMAT_FP32, .accumulator = ASSAY_FORMAT_FP32, .documented = true, \
    .fma = true, .function_ulps = 1                                                     \
  }

#endif  // ASSAY_BACKENDS_CPU_INT8_INT8_MAKE_H_
