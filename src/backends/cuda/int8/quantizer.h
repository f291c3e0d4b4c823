// Quantizers alone (QuantizeLinear of floats with one scale) behind kernels that make the floats,
// in one launch with them.
#ifndef ASSAY_BACKENDS_CUDA_INT8_QUANTIZER_H_
#define ASSAY_BACKENDS_CUDA_INT8_QUANTIZER_H_

#include "backends/cuda/kernels/quantizer_args.h"
#include "backends/cuda/tactic.h"
#include "ops/quant/int8.h"

// Whether a layer is one, of float32; *out: what it does. x: its place among the inputs.
bool cuda_quantizer_read(const assay_sized_layer_t* l, assay_int8_t* out, int* x);

// The numbers of one, but for addresses; of what ends a layer, too.
void cuda_quantizer_numbers(const assay_int8_t* q, quantizer_args_t* out);

// Of a pair whose second layer quantizes what the first one makes, element by element: the numbers,
// but for addresses, and the options of kernels/int8/quantizer.h. False: it is none.
bool cuda_quantizer_follows(const assay_layer_pair_t* p, quantizer_args_t* args,
                            assay_str_t* options);
// The forms of a kernel for both: those that the kernels of such a pair have.
void cuda_quantizer_forms(const assay_layer_pair_t* p, assay_kernel_t* k);

#endif  // ASSAY_BACKENDS_CUDA_INT8_QUANTIZER_H_
