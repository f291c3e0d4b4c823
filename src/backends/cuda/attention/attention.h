// Layers of attention: what the tactics of them have in common.
#ifndef ASSAY_BACKENDS_CUDA_ATTENTION_ATTENTION_H_
#define ASSAY_BACKENDS_CUDA_ATTENTION_ATTENTION_H_

#include "backends/cuda/kernels/attention_args.h"
#include "backends/cuda/tactic.h"
#include "backends/layers/attention.h"

// *ok: whether a layer is attention of sizes that kernels count in 32 bits.
assay_status_t cuda_attention_read(const assay_sized_layer_t* l, attention_layer_t* out,
                                   bool* ok) ASSAY_MUST_USE;

// Where a constant mask shows each query the keys near it and adds -infinity to all others, it
// becomes a window. Errors: NO_MEMORY, of the model's external data
assay_status_t cuda_attention_find_window(const assay_sized_layer_t* l,
                                          attention_layer_t* a) ASSAY_MUST_USE;

// Whether `size` columns lie side by side in pieces, each at a multiple of so many elements.
bool cuda_attention_in_pieces(const attention_layer_t* a, const attention_view_t* v, int64_t size,
                              int64_t piece);

// Whether scores are nothing but products times a power of 2, which may as well be part of another
// factor: no bit depends on it.
bool cuda_attention_folds(const attention_layer_t* a);

// Options of what comes after the scores, which all kernels have.
void cuda_attention_options(const attention_layer_t* a, assay_str_t* out);

// A kernel of a layer: `queries` of a head are a block of so many threads.
assay_status_t cuda_attention_kernel(const assay_sized_layer_t* l, const attention_layer_t* a,
                                     const cuda_source_t* source, int queries, int threads,
                                     assay_kernel_t** out) ASSAY_MUST_USE;

#endif  // ASSAY_BACKENDS_CUDA_ATTENTION_ATTENTION_H_
