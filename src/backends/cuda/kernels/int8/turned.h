// Bytes of four words, turned.
#ifndef ASSAY_BACKENDS_CUDA_KERNELS_INT8_TURNED_H_
#define ASSAY_BACKENDS_CUDA_KERNELS_INT8_TURNED_H_

#include "prelude.h"

// Byte i of word k becomes byte k of word i; between these lie `step` words.
DEVICE void turn_bytes(const uint32_t* from, uint32_t* to, int step) {
  const uint32_t lower[2] = {PICK_BYTES(from[0], from[1], 0x5140),
                             PICK_BYTES(from[2], from[3], 0x5140)};
  const uint32_t upper[2] = {PICK_BYTES(from[0], from[1], 0x7362),
                             PICK_BYTES(from[2], from[3], 0x7362)};
  to[0] = PICK_BYTES(lower[0], lower[1], 0x5410);
  to[step] = PICK_BYTES(lower[0], lower[1], 0x7632);
  to[2 * step] = PICK_BYTES(upper[0], upper[1], 0x5410);
  to[3 * step] = PICK_BYTES(upper[0], upper[1], 0x7632);
}

#endif  // ASSAY_BACKENDS_CUDA_KERNELS_INT8_TURNED_H_
