// Layers of attention (backends/layers/attention.h), block of keys by block of keys, as our GPU
// kernels compute them.
#ifndef ASSAY_BACKENDS_EMU_LIKE_ATTENTION_H_
#define ASSAY_BACKENDS_EMU_LIKE_ATTENTION_H_

#include "backends/emu/like/operands.h"
#include "backends/emu/like/tensor_core.h"

// Of weights by powers of 2: half a step's share of a weight, 2^-14 ln(2), and 2 ulp.
#define EMU_EXP2_WEIGHT_ERROR 0x1.6ap-15

// y: room for the output's elements. *ok false: the layer is none of these.
assay_status_t emu_attention_run(emu_operands_t* o, const emu_gpu_t* gpu, float* y,
                                 bool* ok) ASSAY_MUST_USE;

#endif  // ASSAY_BACKENDS_EMU_LIKE_ATTENTION_H_
