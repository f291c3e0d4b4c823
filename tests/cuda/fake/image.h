// What the compiler without a GPU gives as a "cubin": this, and a shared object.
#ifndef TESTS_CUDA_FAKE_IMAGE_H_
#define TESTS_CUDA_FAKE_IMAGE_H_

#include <stdint.h>

#define FAKE_MAGIC "FAKEGPU1"

typedef struct fake_image {
  char magic[8];
  uint64_t bytes, hash;  // of the shared object
  int32_t capability;    // 10 * major + minor
  int32_t is_special;    // "sm_90a": of this one alone
} fake_image_t;

#endif  // TESTS_CUDA_FAKE_IMAGE_H_
