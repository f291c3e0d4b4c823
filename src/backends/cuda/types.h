// Types of elements as kernels name them.
#ifndef ASSAY_BACKENDS_CUDA_TYPES_H_
#define ASSAY_BACKENDS_CUDA_TYPES_H_

#include <stdbool.h>
#include <stdint.h>

#include "formats/format.h"

// "f32", "f16", "bf16" (kernels/elements.h); NULL: none of these.
const char* cuda_type_name(assay_type_t type);

// Bits of an element that is moved as it is: 8, 16, 32 or 64; false: other.
bool cuda_type_bits(assay_type_t type, int64_t* out);

#endif  // ASSAY_BACKENDS_CUDA_TYPES_H_
