// Which layers of attention are taken.
#include "backends/cpu/attention/attention.h"

#include <string.h>

#include "base/alloc.h"

extern const assay_tactic_t cpu_tactic_attention_bf16;

static void destroy(assay_kernel_t* k) { assay_free(k); }

// Whether Q, K and V of a layer are all bf16, as its inner values may be.
static bool is_bf16(const assay_sized_layer_t* l, const attention_t* k) {
  return l->layer->format == ASSAY_FORMAT_BF16 && k->layer.q.type == ASSAY_TYPE_BFLOAT16 &&
         k->layer.k.type == ASSAY_TYPE_BFLOAT16 && k->layer.v.type == ASSAY_TYPE_BFLOAT16;
}

static assay_status_t read(const assay_sized_layer_t* l, bool bf16, attention_t* k, bool* out_ok) {
  const attention_kind_t* kind = bf16 ? attention_bf16() : attention_fp32();
  *k = (attention_t){.base = {.in_place = -1, .run = attention_run, .destroy = destroy},
                     .kind = kind};
  *out_ok = kind != NULL;
  if (!kind) return NULL;
  ASSAY_TRY(attention_read(l, &k->layer, out_ok));
  memcpy(k->base.in, k->layer.in, sizeof k->base.in);
  k->base.out[0] = k->layer.out;
  k->base.rooms = k->layer.rooms;
  // One of the two takes a layer: their results differ.
  *out_ok = *out_ok && bf16 == (is_bf16(l, k) && attention_bf16()) && attention_sizes(k);
  return NULL;
}

static assay_status_t make(const assay_sized_layer_t* l, bool bf16, assay_kernel_t** out) {
  attention_t *k = NULL, made;
  bool ok = false;
  ASSAY_TRY(read(l, bf16, &made, &ok));
  if (!ok) return NULL;
  ASSAY_TRY(ASSAY_NEW(&k));
  *k = made;
  *out = &k->base;
  return NULL;
}

static assay_status_t resize(const assay_sized_layer_t* l, assay_kernel_t* base, bool* out_ok) {
  attention_t* k = (attention_t*)base;
  const assay_tactic_t* tactic = base->tactic;
  ASSAY_TRY(read(l, tactic == &cpu_tactic_attention_bf16, k, out_ok));
  base->tactic = tactic;
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
    .resize = resize,
    .rounding = {CPU_FLOAT_SUMS, .operands = ASSAY_FORMAT_BF16, .weight_error = 0x1p-14},
};

const assay_tactic_t cpu_tactic_attention = {
    .name = "attention",
    .source = "assay",
    .make = make_any,
    .resize = resize,
    .rounding = {CPU_FLOAT_SUMS},
};
