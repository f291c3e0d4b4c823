// Products on tensor cores by wgmma whose tiles the copy engine brings
// (kernels/product/product_bulk.cu): a block a tile.
#include <math.h>

#include "backends/cuda/product/bulk.h"

// Groups of four warps have 64 rows each.
static const cuda_tile_t shapes[] = {
    {64, 32, 1, 1},  {64, 64, 1, 1},   {64, 96, 1, 1},   {64, 128, 1, 1},  {128, 64, 2, 1},
    {128, 96, 2, 1}, {128, 128, 2, 1}, {128, 160, 2, 1}, {128, 192, 2, 1}, {128, 256, 2, 1}};
enum { N_SHAPES = sizeof shapes / sizeof *shapes };

static double predict(const cuda_own_t* own, const cuda_product_t* p, const cuda_tile_t* s) {
  const double waves =
      ceil((double)cuda_tile_blocks(&p->args, s) / own->properties.multiprocessors);
  return 1.3 + cuda_bulk_gather_us(p) +
         waves *
             (1 + (double)cuda_bulk_steps(p) * cuda_bulk_step_us(own, s, CUDA_BULK_STEP_BYTES,
                                                                 cuda_tile_blocks(&p->args, s), 1));
}

static assay_status_t variants(const assay_sized_layer_t* l, assay_variant_t* out, size_t* out_n) {
  return cuda_bulk_variants(l, shapes, N_SHAPES, predict, out, out_n);
}

static assay_status_t make_variant(const assay_sized_layer_t* l, const assay_variant_t* v,
                                   assay_kernel_t** out) {
  cuda_product_t p;
  cuda_bulk_t b;
  const cuda_tile_t* s;
  ASSAY_TRY(cuda_bulk_find(l, v, shapes, N_SHAPES, &p, &b, &s));
  if (!s) return NULL;
  const int bytes = cuda_bulk_step_bytes(s);
  const cuda_own_t* own = cuda_own_of(l);
  const int stages =
      cuda_bulk_block_stages(own, s, cuda_bulk_is_alone(own, &p, s), cuda_bulk_steps(&p), bytes);
  const cuda_bulk_kernel_t k = {.file = "product_bulk.cu",
                                .name = "product_bulk",
                                .blocks = cuda_tile_blocks(&p.args, s),
                                .stages = stages,
                                .threads = cuda_bulk_block_threads(s),
                                .shared_bytes = cuda_bulk_block_bytes(stages, bytes)};
  if (k.shared_bytes > cuda_own_of(l)->properties.shared_bytes) return NULL;
  ASSAY_TRY(cuda_bulk_get(l, &b, &p));
  return cuda_bulk_make(l, &p, &b, s, &k, out);
}

// The bits of product_mma.
const assay_tactic_t cuda_tactic_product_bulk = {
    .name = "product_bulk",
    .source = "assay",
    .variants = variants,
    .make_variant = make_variant,
    .rounding = CUDA_TENSOR_ROUNDING,
};
