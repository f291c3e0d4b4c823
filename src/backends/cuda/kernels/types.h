// Types that kernels and the host's code have in common: arguments of kernels are made of them.
#ifndef ASSAY_BACKENDS_CUDA_KERNELS_TYPES_H_
#define ASSAY_BACKENDS_CUDA_KERNELS_TYPES_H_

#ifdef __CUDACC_RTC__  // which has no headers
typedef signed char int8_t;
typedef unsigned char uint8_t;
typedef short int16_t;
typedef unsigned short uint16_t;
typedef int int32_t;
typedef unsigned uint32_t;
typedef long long int64_t;
typedef unsigned long long uint64_t;
#else
#include <stdbool.h>
#include <stdint.h>
#endif

// An address in the device's memory: kernels make a pointer of it by GLOBAL (prelude.h).
typedef uint64_t address_t;

// What the copy engine knows of a tensor (CUtensorMap): the driver fills it in (cuda/maps.h).
typedef struct __attribute__((aligned(64))) tensor_map {
  uint64_t words[16];
} tensor_map_t;

#endif  // ASSAY_BACKENDS_CUDA_KERNELS_TYPES_H_
