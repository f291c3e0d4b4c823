// Layers as the kernels of a GPU compute them (backends/cuda): products, convolutions and
// attention, with what comes after them, and pointwise nodes. Others are the emulated engine's.
#ifndef ASSAY_BACKENDS_EMU_LIKE_LAYER_H_
#define ASSAY_BACKENDS_EMU_LIKE_LAYER_H_

#include "backends/emu/like/gpus.h"
#include "eval/evaluator.h"
#include "exec/segment/sizes.h"
#include "plan/layers.h"

typedef enum emu_way {
  EMU_WAY_OWN = 0,  // the emulated engine's
  EMU_WAY_PRODUCT,
  EMU_WAY_ATTENTION,
  EMU_WAY_POINTWISE,
} emu_way_t;

// What is kept over a run.
typedef struct emu_like {
  const emu_gpu_t* gpu;
  assay_sizes_t sizes;
  bool asked;       // sizes that no expression tells have been asked for
  emu_way_t* ways;  // by layer: how it was run last
} emu_like_t;

// Errors: UNSUPPORTED a layer is in a format whose sums on the GPU have no model.
assay_status_t emu_like_create(int gpu, const assay_layers_t* layers,
                               emu_like_t** out) ASSAY_MUST_USE;
void emu_like_destroy(emu_like_t* k);  // NULL is allowed
void emu_like_reset(emu_like_t* k);

// Makes the output of layer i, of values that are there; *out NULL: it is not one of these.
assay_status_t emu_like_run(emu_like_t* k, const assay_layers_t* layers, size_t i,
                            const assay_evaluator_t* values, assay_tensor_t** out) ASSAY_MUST_USE;

const char* emu_way_name(emu_way_t way);

#endif  // ASSAY_BACKENDS_EMU_LIKE_LAYER_H_
