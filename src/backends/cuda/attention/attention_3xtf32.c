// Attention of fp32 on tensor cores by two parts of tf32 of each number
// (kernels/attention/attention_tf32.cu), where an accuracy gate lets it serve a layer
// (docs/adr/0012-fp32-settings.md).
#include "backends/cuda/attention/warps.h"
#include "backends/layers/judged.h"
#include "ops/matmul/tf32_products.h"

static const attention_warps_t of_parts = {
    "attention_tf32.cu", "attention_tf32", ASSAY_TYPE_FLOAT, "3xtf32", 4, true, " -DPARTS=2"};

enum { MOST = 128, COLUMNS = 32 };

// Neither side of a product is known here: what the model is asked are columns of numbers that have
// all their bits, of either sign and, every other column, of one.
static void make_columns(float* w, int64_t n) {
  uint32_t bits = 1;
  for (int64_t i = 0; i < COLUMNS * n; i++) {
    bits = bits * 1664525u + 1013904223u;
    const float x = 0.5F + (float)(bits >> 8) * 0x1p-24F;
    w[i] = bits >> 7 & 1 && i / n % 2 ? -x : x;
  }
}

// Of scores, which are sums over the head; sums over keys are longer, or no worse.
static assay_status_t judge(int64_t size, assay_sum_account_t* out) {
  float w[COLUMNS * MOST];
  make_columns(w, size);
  const assay_split_weights_t columns = {
      .w = w, .columns = COLUMNS, .n = size, .column_step = size, .step = 1};
  return assay_tf32_judge(&columns, out);
}

static assay_status_t ask(const assay_sized_layer_t* l, bool* ok) {
  attention_layer_t a;
  assay_sum_account_t account;
  *ok = l->layer->format != ASSAY_FORMAT_TF32 &&
        assay_accuracy_gate_offers(l->layers->fp32, ASSAY_FP32_TIGHT);
  if (*ok) ASSAY_TRY(cuda_attention_warps_read(l, &of_parts, &a, ok));
  if (!*ok) return NULL;
  ASSAY_TRY(judge(a.size, &account));
  assay_accuracy_gate_t gate = assay_judged_gate("attention_3xtf32", ASSAY_FP32_TIGHT, &account);
  gate.fits = gate.pays = true;
  assay_sized_note_accuracy_gate(l, &gate);
  *ok = assay_accuracy_gate_allows(&gate, l->layers->fp32);
  return NULL;
}

static assay_status_t variants(const assay_sized_layer_t* l, assay_variant_t* out, size_t* n) {
  bool ok = false;
  *n = 0;
  ASSAY_TRY(ask(l, &ok));
  return ok ? cuda_attention_warps_variants(l, &of_parts, out, n) : NULL;
}

static assay_status_t make(const assay_sized_layer_t* l, const assay_variant_t* v,
                           assay_kernel_t** out) {
  bool ok = false;
  ASSAY_TRY(ask(l, &ok));
  return ok ? cuda_attention_warps_make(l, &of_parts, v, out) : NULL;
}

const assay_tactic_t cuda_tactic_attention_3xtf32 = {
    .name = "attention_3xtf32",
    .source = "assay",
    .variants = variants,
    .make_variant = make,
    .rounding = CUDA_PARTS_ROUNDING,
};
