// Attention of 16-bit floats on tensor cores (kernels/attention_mma.cu).
#include "backends/cuda/attention/attention.h"

enum { QUERIES = 64, THREADS = 128, KEYS = 64, MOST = 128, SPARE = 8, PIECE = 8 };

static bool is_all(const attention_layer_t* a, assay_type_t type) {
  return a->q.type == type && a->k.type == type && a->v.type == type && a->y.type == type;
}

// Whether rows lie in pieces of 16 bytes.
static bool is_fast(const attention_layer_t* a, const attention_view_t* v, int64_t size) {
  int64_t all = v->at | v->row | size;
  for (int i = 0; i < a->n_batch; i++) all |= v->batch[i];
  return v->column == 1 && all % PIECE == 0;
}

static int up_to_16(int64_t n) { return (int)((n + 15) / 16 * 16); }

static assay_status_t make(const assay_sized_layer_t* l, assay_type_t type, assay_kernel_t** out) {
  attention_layer_t a;
  bool ok = false;
  assay_str_t options = {0};
  ASSAY_TRY(cuda_attention_read(l, &a, &ok));
  if (!ok || !is_all(&a, type) || a.size > MOST || a.v_size > MOST) return NULL;
  const int size = up_to_16(a.size), v_size = up_to_16(a.v_size);
  const int shared = 2 * KEYS * (size + v_size + 2 * SPARE);
  const bool fast =
      is_fast(&a, &a.q, a.size) && is_fast(&a, &a.k, a.size) && is_fast(&a, &a.v, a.v_size);
  cuda_attention_options(&a, &options);
  assay_str_printf(&options, " -DT=%s -DSIZE=%d -DV_SIZE=%d -DFAST=%d", cuda_type_name(type), size,
                   v_size, fast);
  const cuda_source_t source = {.file = "attention_mma.cu",
                                .kernel = "attention_mma",
                                .options = assay_str_get(&options),
                                .shared_bytes = shared};
  assay_status_t st = assay_str_status(&options);
  if (!st) st = cuda_attention_kernel(l, &a, &source, QUERIES, THREADS, out);
  assay_str_deinit(&options);
  return st;
}

static assay_status_t make_f16(const assay_sized_layer_t* l, assay_kernel_t** out) {
  return make(l, ASSAY_TYPE_FLOAT16, out);
}

static assay_status_t make_bf16(const assay_sized_layer_t* l, assay_kernel_t** out) {
  return make(l, ASSAY_TYPE_BFLOAT16, out);
}

// Weights are rounded to the layer's type; for sums see product_mma.c.
#define TENSOR_ROUNDING(format)                                                                   \
  {                                                                                               \
    .compute = ASSAY_FORMAT_FP32, .accumulator = ASSAY_FORMAT_FP32, .truncates = true,            \
    .fma = true, .by_definition = true, .flushes = true, .function_ulps = 4, .operands = (format) \
  }

const assay_tactic_t cuda_tactic_attention_f16 = {.name = "attention_f16",
                                                  .source = "assay",
                                                  .make = make_f16,
                                                  .rounding = TENSOR_ROUNDING(ASSAY_FORMAT_FP16)};
const assay_tactic_t cuda_tactic_attention_bf16 = {.name = "attention_bf16",
                                                   .source = "assay",
                                                   .make = make_bf16,
                                                   .rounding = TENSOR_ROUNDING(ASSAY_FORMAT_BF16)};
