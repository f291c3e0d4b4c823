// Layers of pointwise nodes with the quantizer behind them, in one launch: residual sums and what
// scales them are quantized where they are made, and stored as floats only for whoever else reads
// them.
#include <string.h>

#include "backends/cuda/int8/quantizer.h"
#include "backends/cuda/pointwise/chain.h"
#include "base/alloc.h"

typedef struct chain_quantized {
  assay_kernel_t base;
  cuda_chain_t chain;
  quantizer_args_t quantizer;
  bool hides;
} chain_quantized_t;

static assay_status_t enqueue(assay_kernel_t* base, assay_queue_t* q, const assay_device_ptr_t* in,
                              const assay_device_ptr_t* out, assay_device_ptr_t scratch) {
  const chain_quantized_t* k = (const chain_quantized_t*)base;
  quantizer_args_t quantizer = k->quantizer;
  (void)scratch;
  quantizer.y = out[1];
  return cuda_chain_launch(&k->chain, q, in, k->hides ? 0 : out[0], &quantizer);
}

static void destroy(assay_kernel_t* base) {
  cuda_chain_close(&((chain_quantized_t*)base)->chain);
  assay_free(base);
}

static assay_status_t build(const assay_layer_pair_t* pair, chain_quantized_t* k, bool* ok) {
  assay_str_t options = {0};
  ASSAY_TRY(cuda_chain_open(pair->layers[0], &k->chain, ok));
  *ok = *ok && !cuda_program_code(k->chain.program)->integers &&
        cuda_quantizer_follows(pair, &k->quantizer, &options);
  assay_status_t st = assay_str_status(&options);
  if (!st && *ok) {
    cuda_quantizer_forms(pair, &k->base);
    st = cuda_chain_load(&k->chain, assay_str_get(&options));
  }
  assay_str_deinit(&options);
  return st;
}

static assay_status_t make_pair(const assay_layer_pair_t* pair, assay_kernel_t** out) {
  chain_quantized_t* k = NULL;
  bool ok;
  if (strcmp(pair->kernels[0]->tactic->name, "chain") != 0) return NULL;
  ASSAY_TRY(ASSAY_NEW(&k));
  k->hides = pair->hides;
  k->base = (assay_kernel_t){
      .in_place = pair->kernels[0]->in_place, .enqueue = enqueue, .destroy = destroy};
  assay_status_t st = build(pair, k, &ok);
  if (st || !ok) return destroy(&k->base), st;
  *out = &k->base;
  return NULL;
}

const assay_tactic_t cuda_tactic_chain_quantized = {
    .name = "chain_quantized",
    .source = "assay",
    .make_pair = make_pair,
    .rounding = {.compute = ASSAY_FORMAT_FP32,
                 .accumulator = ASSAY_FORMAT_FP32,
                 .fma = true,
                 .function_ulps = 1},
};
