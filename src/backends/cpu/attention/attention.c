// Which layers of attention are taken.
#include "backends/cpu/attention/attention.h"

#include "base/alloc.h"

static void destroy(assay_kernel_t* k) { assay_free(k); }

// Whether Q, K and V of a layer are all bf16, as its inner values may be.
static bool is_bf16(const assay_sized_layer_t* l, const attention_t* k) {
  return l->layer->format == ASSAY_FORMAT_BF16 && k->q.type == ASSAY_TYPE_BFLOAT16 &&
         k->k.type == ASSAY_TYPE_BFLOAT16 && k->v.type == ASSAY_TYPE_BFLOAT16;
}

static assay_status_t make(const assay_sized_layer_t* l, bool bf16, assay_kernel_t** out) {
  attention_t* k = NULL;
  const attention_kind_t* kind = bf16 ? attention_bf16() : attention_fp32();
  if (!kind || !l->n_out || !l->out[0].value || !l->out[0].size) return NULL;
  ASSAY_TRY(ASSAY_NEW(&k));
  k->base = (assay_kernel_t){.in_place = -1, .run = attention_run, .destroy = destroy};
  k->kind = kind;
  bool ok = false;
  assay_status_t st = NULL;
  if (l->layer->n_nodes == 1)
    ok = attention_read_operator(l, k);
  else
    st = attention_read_nodes(l, k, &ok);
  // One of the two takes a layer: their results differ.
  ok = ok && bf16 == (is_bf16(l, k) && attention_bf16());
  if (st || !ok || !attention_sizes(k)) return destroy(&k->base), st;
  *out = &k->base;
  return NULL;
}

static assay_status_t make_bf16(const assay_sized_layer_t* l, assay_kernel_t** out) {
  return make(l, true, out);
}

static assay_status_t make_any(const assay_sized_layer_t* l, assay_kernel_t** out) {
  return make(l, false, out);
}

// In float32 but for the weights, which are rounded to bf16 before the second product; their
// exponentials are within 2^-14.
const assay_tactic_t cpu_tactic_attention_bf16 = {
    .name = "attention_bf16",
    .source = "assay",
    .make = make_bf16,
    .rounding = {.compute = ASSAY_FORMAT_FP32,
                 .accumulator = ASSAY_FORMAT_FP32,
                 .operands = ASSAY_FORMAT_BF16,
                 .weight_error = 0x1p-14,
                 .fma = true,
                 .by_definition = true,
                 .flushes = true,
                 .function_ulps = 4},
};

const assay_tactic_t cpu_tactic_attention = {
    .name = "attention",
    .source = "assay",
    .make = make_any,
    .rounding = {.compute = ASSAY_FORMAT_FP32,
                 .accumulator = ASSAY_FORMAT_FP32,
                 .fma = true,
                 .by_definition = true,
                 .flushes = true,
                 .function_ulps = 4},
};
