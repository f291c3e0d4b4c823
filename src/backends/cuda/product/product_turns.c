// Products on tensor cores by wgmma whose tiles the copy engine brings, by blocks that stay, and
// whose two groups of warps take tiles in turn (kernels/product/product_turns.cu).
#include <math.h>

#include "backends/cuda/product/bulk.h"

static const cuda_tile_t shapes[] = {{128, 64, 2, 1}, {128, 96, 2, 1}};
enum { N_SHAPES = sizeof shapes / sizeof *shapes };
enum { GROUPS = 2, GROUP = 256, WARP = 32, MIN_STAGES = 2, PLACE_BYTES = 1024 };

// Each group has sums of a tile in shared memory, behind stages and barriers.
static int sums_bytes(const cuda_tile_t* s) {
  return PLACE_BYTES + GROUPS * cuda_tile_sums_bytes(s);
}

static int find_stages(const cuda_own_t* own, const cuda_tile_t* s) {
  const int left = own->properties.shared_bytes - CUDA_BULK_OTHER_BYTES - sums_bytes(s);
  const int stages = left / cuda_bulk_step_bytes(s);
  return stages > CUDA_BULK_MAX_STAGES ? CUDA_BULK_MAX_STAGES : stages;
}

// Ends but the last one overlap with sums.
static double predict(const cuda_own_t* own, const cuda_product_t* p, const cuda_tile_t* s) {
  const double turns =
      ceil((double)cuda_tile_blocks(&p->args, s) / own->properties.multiprocessors);
  return 2.5 + cuda_bulk_gather_us(p) +
         turns * (double)cuda_bulk_steps(p) *
             cuda_bulk_step_us(own, s, CUDA_BULK_STEP_BYTES, cuda_tile_blocks(&p->args, s), 1);
}

static assay_status_t variants(const assay_sized_layer_t* l, assay_variant_t* out, size_t* out_n) {
  return cuda_bulk_variants(l, shapes, N_SHAPES, predict, out, out_n);
}

static assay_status_t make_variant(const assay_sized_layer_t* l, const assay_variant_t* v,
                                   assay_kernel_t** out) {
  const cuda_own_t* own = cuda_own_of(l);
  cuda_product_t p;
  cuda_bulk_t b;
  const cuda_tile_t* s;
  ASSAY_TRY(cuda_bulk_find(l, v, shapes, N_SHAPES, &p, &b, &s));
  const int stages = s ? find_stages(own, s) : 0;
  if (stages < MIN_STAGES) return NULL;
  const int64_t tiles = cuda_tile_blocks(&p.args, s), blocks = own->properties.multiprocessors;
  const cuda_bulk_kernel_t k = {
      .file = "product_turns.cu",
      .name = "product_turns",
      .blocks = tiles < blocks ? tiles : blocks,
      .stages = stages,
      .threads = GROUPS * GROUP + 2 * WARP,
      .shared_bytes = stages * cuda_bulk_step_bytes(s) + CUDA_BULK_OTHER_BYTES + sums_bytes(s)};
  ASSAY_TRY(cuda_bulk_get(l, &b, &p));
  return cuda_bulk_make(l, &p, &b, s, &k, out);
}

// The bits of product_mma.
const assay_tactic_t cuda_tactic_product_turns = {
    .name = "product_turns",
    .source = "assay",
    .variants = variants,
    .make_variant = make_variant,
    .rounding = CUDA_TENSOR_ROUNDING,
};
