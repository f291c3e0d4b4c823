// Attention of 16-bit floats on tensor cores (kernels/attention_mma.cu).
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "backends/cuda/attention/attention.h"

enum { QUERIES = 16, THREADS = 32, KEYS = 64, STAGES = 2, MOST = 128, SPARE = 8, PIECE = 8 };

// Warps of a block: few where there are few queries, so that each multiprocessor has some.
static const struct {
  const char* name;
  int warps;
} shapes[] = {{"4", 4}, {"2", 2}, {"1", 1}};
enum { N_SHAPES = sizeof shapes / sizeof *shapes };

static bool is_all(const attention_layer_t* a, assay_type_t type) {
  return a->q.type == type && a->k.type == type && a->v.type == type && a->y.type == type;
}

// Whether rows lie in pieces of 16 bytes.
static bool is_fast(const attention_layer_t* a, const attention_view_t* v, int64_t size) {
  int64_t all = v->at | v->row | size;
  for (int i = 0; i < a->n_batch; i++) all |= v->batch[i];
  return v->column == 1 && all % PIECE == 0;
}

// Whether two columns of the result from an even one on lie at a multiple of 4 bytes.
static bool is_paired(const attention_layer_t* a) {
  int64_t all = a->y.at | a->y.row | a->v_size;
  for (int i = 0; i < a->n_batch; i++) all |= a->y.batch[i];
  return a->y.column == 1 && all % 2 == 0;
}

static int up_to_16(int64_t n) { return (int)((n + 15) / 16 * 16); }

static assay_status_t read(const assay_sized_layer_t* l, assay_type_t type, attention_layer_t* a,
                           bool* ok) {
  *ok = false;
  ASSAY_TRY(cuda_attention_read(l, a, ok));
  *ok = *ok && is_all(a, type) && a->size <= MOST && a->v_size <= MOST;
  return NULL;
}

// Microseconds: a block of keys takes a warp about as long as its copy, and more warps share that.
static double predict(const cuda_own_t* own, const attention_layer_t* a, int warps) {
  const double blocks = (double)a->heads * ceil((double)a->q_len / (QUERIES * warps));
  const double waves = ceil(blocks / (8.0 / warps * own->properties.multiprocessors));
  return 2 + waves * (1 + ceil((double)a->kv_len / KEYS) * (0.5 + 1.0 / warps));
}

static assay_status_t variants(const assay_sized_layer_t* l, assay_type_t type,
                               assay_variant_t* out, size_t* out_n) {
  attention_layer_t a;
  bool ok;
  *out_n = 0;
  ASSAY_TRY(read(l, type, &a, &ok));
  for (int i = 0; ok && i < N_SHAPES; i++) {
    assay_variant_t* v = &out[(*out_n)++];
    *v = (assay_variant_t){.numerics = "tensor",
                           .predicted = predict(cuda_own_of(l), &a, shapes[i].warps)};
    snprintf(v->name, sizeof v->name, "%s", shapes[i].name);
  }
  return NULL;
}

static int find_warps(const char* name) {
  for (int i = 0; i < N_SHAPES; i++)
    if (strcmp(shapes[i].name, name) == 0) return shapes[i].warps;
  return 0;
}

static assay_status_t make(const assay_sized_layer_t* l, assay_type_t type,
                           const assay_variant_t* variant, assay_kernel_t** out) {
  attention_layer_t a;
  bool ok;
  assay_str_t options = {0};
  const int warps = find_warps(variant->name);
  ASSAY_TRY(read(l, type, &a, &ok));
  if (!ok || !warps) return NULL;
  const int size = up_to_16(a.size), v_size = up_to_16(a.v_size);
  const int shared = STAGES * 2 * KEYS * (size + v_size + 2 * SPARE);
  const bool fast =
      is_fast(&a, &a.q, a.size) && is_fast(&a, &a.k, a.size) && is_fast(&a, &a.v, a.v_size);
  cuda_attention_options(&a, &options);
  assay_str_printf(
      &options,
      " -DT=%s -DSIZE=%d -DV_SIZE=%d -DWHOLE=%d -DFAST=%d -DY_PAIRED=%d -DONE_BLOCK=%d -DWARPS=%d",
      cuda_type_name(type), size, v_size, size == a.size && v_size == a.v_size, fast, is_paired(&a),
      a.kv_len <= KEYS, warps);
  const cuda_source_t source = {.file = "attention_mma.cu",
                                .kernel = "attention_mma",
                                .options = assay_str_get(&options),
                                .shared_bytes = shared};
  assay_status_t st = assay_str_status(&options);
  if (!st) st = cuda_attention_kernel(l, &a, &source, QUERIES * warps, THREADS * warps, out);
  assay_str_deinit(&options);
  return st;
}

static assay_status_t variants_f16(const assay_sized_layer_t* l, assay_variant_t* out, size_t* n) {
  return variants(l, ASSAY_TYPE_FLOAT16, out, n);
}

static assay_status_t variants_bf16(const assay_sized_layer_t* l, assay_variant_t* out, size_t* n) {
  return variants(l, ASSAY_TYPE_BFLOAT16, out, n);
}

static assay_status_t make_f16(const assay_sized_layer_t* l, const assay_variant_t* v,
                               assay_kernel_t** out) {
  return make(l, ASSAY_TYPE_FLOAT16, v, out);
}

static assay_status_t make_bf16(const assay_sized_layer_t* l, const assay_variant_t* v,
                                assay_kernel_t** out) {
  return make(l, ASSAY_TYPE_BFLOAT16, v, out);
}

// Weights are rounded to the layer's type; for sums see product_mma.c.
#define TENSOR_ROUNDING(format)                                                                   \
  {                                                                                               \
    .compute = ASSAY_FORMAT_FP32, .accumulator = ASSAY_FORMAT_FP32, .truncates = true,            \
    .fma = true, .by_definition = true, .flushes = true, .function_ulps = 4, .operands = (format) \
  }

const assay_tactic_t cuda_tactic_attention_f16 = {.name = "attention_f16",
                                                  .source = "assay",
                                                  .variants = variants_f16,
                                                  .make_variant = make_f16,
                                                  .rounding = TENSOR_ROUNDING(ASSAY_FORMAT_FP16)};
const assay_tactic_t cuda_tactic_attention_bf16 = {.name = "attention_bf16",
                                                   .source = "assay",
                                                   .variants = variants_bf16,
                                                   .make_variant = make_bf16,
                                                   .rounding = TENSOR_ROUNDING(ASSAY_FORMAT_BF16)};
