// Where heads, queries and masks lie, in few dimensions that kernels count in 32 bits.
#ifndef ASSAY_BACKENDS_CUDA_ATTENTION_PLACES_H_
#define ASSAY_BACKENDS_CUDA_ATTENTION_PLACES_H_

#include "backends/cuda/kernels/attention_args.h"
#include "backends/layers/attention.h"

// What kernels are compiled for (kernels/attention/attention.h): of masks, a bit for each.
typedef struct attention_places {
  int n_batch;
  bool wide, grouped, walked;
  unsigned along_keys, along_queries, paired;
} attention_places_t;

// Writes all of the arguments that says where something lies, and no addresses.
attention_places_t cuda_attention_places(const attention_layer_t* a, attention_args_t* args);

#endif  // ASSAY_BACKENDS_CUDA_ATTENTION_PLACES_H_
