// A product and what is done to the halves of its columns, in one launch (halves.h): what the
// product makes, twice as large as the output, is neither written nor read.
#include <string.h>

#include "backends/cuda/product/halves.h"
#include "base/alloc.h"

extern const assay_tactic_t cuda_tactic_chain, cuda_tactic_direct_conv, cuda_tactic_product_bulk,
    cuda_tactic_product_clusters, cuda_tactic_product_fma, cuda_tactic_product_mma,
    cuda_tactic_product_turns, cuda_tactic_product_wgmma;

// The tactics whose kernels end with halves, those first whose kernels may stand for others of the
// same bits.
static const struct {
  const assay_tactic_t* tactic;
  const char* numerics;
} ways[] = {{&cuda_tactic_product_bulk, "tensor"}, {&cuda_tactic_product_mma, "tensor"},
            {&cuda_tactic_direct_conv, "direct"},  {&cuda_tactic_product_fma, "fma"},
            {&cuda_tactic_product_turns, NULL},    {&cuda_tactic_product_clusters, NULL},
            {&cuda_tactic_product_wgmma, NULL}};
enum { N_WAYS = sizeof ways / sizeof *ways };

typedef struct gate {
  assay_kernel_t base;
  assay_kernel_t* of;  // of both layers as one
} gate_t;

static assay_status_t enqueue(assay_kernel_t* base, assay_queue_t* q, const assay_device_ptr_t* in,
                              const assay_device_ptr_t* out, assay_device_ptr_t scratch) {
  const gate_t* k = (const gate_t*)base;
  return k->of->enqueue(k->of, q, in, out + 1, scratch);
}

static void destroy(assay_kernel_t* base) {
  gate_t* k = (gate_t*)base;
  if (k->of) k->of->destroy(k->of);
  assay_free(k);
}

// ---- which kernel -------------------------------------------------------------------------------

// The variant that runs the product alone: what it is called begins behind its tactic's name.
static assay_status_t make_same(const assay_sized_layer_t* l, const assay_kernel_t* alone,
                                assay_kernel_t** out) {
  const size_t behind = strlen(alone->tactic->name) + 1;
  assay_variant_t v = {.numerics = alone->numerics};
  if (strlen(alone->name) <= behind) return NULL;
  strncpy(v.name, alone->name + behind, sizeof v.name - 1);
  return alone->tactic->make_variant(l, &v, out);
}

// The one of a tactic that is predicted to be fastest.
static assay_status_t make_fastest(const assay_sized_layer_t* l, const assay_tactic_t* tactic,
                                   assay_kernel_t** out) {
  assay_variant_t all[ASSAY_MAX_VARIANTS];
  size_t n = 0, best = 0;
  ASSAY_TRY(tactic->variants(l, all, &n));
  for (size_t i = 1; i < n; i++)
    if (all[i].predicted < all[best].predicted) best = i;
  return n ? tactic->make_variant(l, &all[best], out) : NULL;
}

// A piece of a row that a thread makes of either half is another one than it makes of a whole.
static assay_status_t make_joint(const assay_sized_layer_t* l, const assay_kernel_t* alone,
                                 assay_kernel_t** out) {
  for (int i = 0; !*out && i < N_WAYS; i++)
    if (ways[i].tactic == alone->tactic && alone->tactic != &cuda_tactic_direct_conv)
      ASSAY_TRY(make_same(l, alone, out));
  for (int i = 0; !*out && i < N_WAYS; i++)
    if (ways[i].numerics && alone->numerics && strcmp(ways[i].numerics, alone->numerics) == 0)
      ASSAY_TRY(make_fastest(l, ways[i].tactic, out));
  return NULL;
}

// ---- entry --------------------------------------------------------------------------------------

static assay_status_t make_pair(const assay_layer_pair_t* pair, assay_kernel_t** out) {
  cuda_joint_layer_t joint;
  gate_t* k = NULL;
  if (!pair->hides || pair->kernels[1]->tactic != &cuda_tactic_chain ||
      !assay_type_is_kernel_float(pair->layers[1]->out[0].type))
    return NULL;
  ASSAY_TRY(ASSAY_NEW(&k));
  k->base = (assay_kernel_t){.in_place = -1, .enqueue = enqueue, .destroy = destroy};
  assay_status_t st = cuda_halves_join(pair, &joint);
  if (!st) st = make_joint(&joint.sized, pair->kernels[0], &k->of);
  assay_free(joint.nodes);
  if (st || !k->of) return destroy(&k->base), st;
  memcpy(k->base.in, k->of->in, sizeof k->base.in);
  k->base.out[0] = pair->kernels[0]->out[0];
  k->base.out[1] = k->of->out[0];
  k->base.scratch = k->of->scratch;
  *out = &k->base;
  return NULL;
}

const assay_tactic_t cuda_tactic_gate = {
    .name = "gate",
    .source = "assay",
    .make_pair = make_pair,
    .rounding = CUDA_TENSOR_ROUNDING,
};
