// Attention in float32 (kernels/attention/attention_fma.cu): layers of fp32, and all that others do
// not take.
#include "backends/cuda/attention/attention.h"

enum { QUERIES = 16, THREADS = 128, KEYS = 64, FEW_KEYS = 16 };

static int64_t shared_bytes(const attention_layer_t* a, int keys) {
  const int64_t wide = a->size > a->v_size ? a->size : a->v_size;
  return 4 * (QUERIES * (a->size + a->v_size + keys) + keys * (wide + 1));
}

// Queries, keys and values are rounded to tf32, weights not.
static const assay_rounding_t tf32_rounding = {.compute = ASSAY_FORMAT_FP32,
                                               .accumulator = ASSAY_FORMAT_FP32,
                                               .fma = true,
                                               .by_definition = true,
                                               .flushes = true,
                                               .function_ulps = 4,
                                               .operands = ASSAY_FORMAT_TF32};

static assay_status_t make(const assay_sized_layer_t* l, assay_kernel_t** out) {
  const cuda_own_t* own = cuda_own_of(l);
  attention_layer_t a;
  bool ok = false;
  assay_str_t options = {0};
  ASSAY_TRY(cuda_attention_read(l, &a, &ok));
  if (!ok) return NULL;
  const bool tf32 = l->layer->format == ASSAY_FORMAT_TF32;
  const int keys = shared_bytes(&a, KEYS) <= own->properties.shared_bytes ? KEYS : FEW_KEYS;
  const int64_t shared = shared_bytes(&a, keys);
  if (shared > own->properties.shared_bytes) return NULL;
  cuda_attention_options(&a, &options);
  assay_str_printf(&options, " -DQ=%s -DK=%s -DV=%s -DY=%s -DKEYS=%d -DTF32=%d",
                   cuda_type_name(a.q.type), cuda_type_name(a.k.type), cuda_type_name(a.v.type),
                   cuda_type_name(a.y.type), keys, tf32);
  const cuda_source_t source = {.file = "attention_fma.cu",
                                .kernel = "attention_fma",
                                .options = assay_str_get(&options),
                                .shared_bytes = (int)shared};
  assay_status_t st = assay_str_status(&options);
  if (!st) st = cuda_attention_kernel(l, &a, &source, QUERIES, THREADS, out);
  if (!st && tf32) (*out)->rounding = &tf32_rounding;
  assay_str_deinit(&options);
  return st;
}

const assay_tactic_t cuda_tactic_attention_fma = {
    .name = "attention_fma",
    .source = "assay",
    .make = make,
    .rounding = {.compute = ASSAY_FORMAT_FP32,
                 .accumulator = ASSAY_FORMAT_FP32,
                 .fma = true,
                 .by_definition = true,
                 .flushes = true,
                 .function_ulps = 4},
};
