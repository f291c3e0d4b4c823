// Types of elements as kernels name them.
#include "backends/cuda/types.h"

const char* cuda_type_name(assay_type_t type) {
  switch (type) {
    case ASSAY_TYPE_FLOAT:
      return "f32";
    case ASSAY_TYPE_FLOAT16:
      return "f16";
    case ASSAY_TYPE_BFLOAT16:
      return "bf16";
    default:
      return NULL;
  }
}

bool cuda_type_bits(assay_type_t type, int64_t* out) {
  int64_t bytes = 0;
  if (!assay_type_packed_bytes(type, 8, &bytes)) return false;
  *out = bytes;  // of eight elements: bits of one
  return bytes == 8 || bytes == 16 || bytes == 32 || bytes == 64;
}
