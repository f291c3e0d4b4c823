// Reductions of floats with the quantizer behind them, in one launch: means of a squeeze-excite
// block, or in front of a classifier, whose launch takes longer than they do.
#include <string.h>

#include "backends/cuda/int8/quantizer.h"
#include "backends/cuda/rows/reduce.h"

static assay_status_t make_pair(const assay_layer_pair_t* pair, assay_kernel_t** out) {
  cuda_reduce_quantizer_t quantizer = {.hides = pair->hides};
  assay_str_t options = {0};
  if (strcmp(pair->kernels[0]->tactic->name, "reduce") != 0 ||
      !cuda_quantizer_follows(pair, &quantizer.args, &options))
    return assay_str_deinit(&options), NULL;
  quantizer.options = assay_str_get(&options);
  assay_status_t st = assay_str_status(&options);
  if (!st) st = cuda_reduce_make(pair->layers[0], &quantizer, out);
  if (!st && *out) cuda_quantizer_forms(pair, *out);
  assay_str_deinit(&options);
  return st;
}

const assay_tactic_t cuda_tactic_reduce_quantized = {
    .name = "reduce_quantized",
    .source = "assay",
    .make_pair = make_pair,
    .rounding = {.compute = ASSAY_FORMAT_FP32,
                 .accumulator = ASSAY_FORMAT_FP32,
                 .by_definition = true,
                 .function_ulps = 2},
};
