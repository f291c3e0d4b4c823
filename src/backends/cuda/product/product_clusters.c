// Products on tensor cores by wgmma whose tiles the copy engine brings, by clusters of two blocks
// that share the weights (kernels/product/product_clusters.cu).
#include <math.h>

#include "backends/cuda/product/bulk.h"

static const cuda_tile_t shapes[] = {
    {128, 128, 2, 1}, {128, 160, 2, 1}, {128, 192, 2, 1}, {128, 256, 2, 1}};
enum { N_SHAPES = sizeof shapes / sizeof *shapes };
// Two blocks should find room in a multiprocessor, but for those of wider tiles than this one,
// whose sums leave registers for one alone: then it may have all of the shared memory.
enum { SHARING = 2, GROUP = 128, WARP = 32, COLUMNS_OF_TWO = 128, SHARED_BY_TWO = 112 << 10 };

// The clusters take the rows by so many.
static int64_t count_clusters(const cuda_product_t* p, const cuda_tile_t* s) {
  const cuda_tile_t both = {SHARING * s->rows, s->columns, 1, 1};
  return cuda_tile_blocks(&p->args, &both);
}

// No fewer than sums need room for, which lie there in the end.
static int find_stages(const cuda_own_t* own, const cuda_product_t* p, const cuda_tile_t* s) {
  const bool alone = s->columns > COLUMNS_OF_TWO ||
                     SHARING * count_clusters(p, s) <= own->properties.multiprocessors;
  const int all = alone ? own->properties.shared_bytes : SHARED_BY_TWO;
  const int needed =
      (cuda_tile_sums_bytes(s) + cuda_bulk_step_bytes(s) - 1) / cuda_bulk_step_bytes(s);
  int stages = (all - CUDA_BULK_OTHER_BYTES) / cuda_bulk_step_bytes(s);
  if (stages > CUDA_BULK_MAX_STAGES) stages = CUDA_BULK_MAX_STAGES;
  if (stages > cuda_bulk_steps(p)) stages = (int)cuda_bulk_steps(p);
  return stages < needed ? needed : stages;
}

// A cluster begins where two multiprocessors of a group of them have room, and both blocks wait for
// each other.
static double predict(const cuda_own_t* own, const cuda_product_t* p, const cuda_tile_t* s) {
  const double waves =
      ceil((double)(SHARING * count_clusters(p, s)) / own->properties.multiprocessors);
  return 1.8 + cuda_bulk_gather_us(p) +
         waves * (1.2 + (double)cuda_bulk_steps(p) *
                            cuda_bulk_step_us(own, s, CUDA_BULK_STEP_BYTES,
                                              SHARING * count_clusters(p, s), SHARING));
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
  const int stages = find_stages(cuda_own_of(l), &p, s);
  const cuda_bulk_kernel_t k = {
      .file = "product_clusters.cu",
      .name = "product_clusters",
      .blocks = SHARING * count_clusters(&p, s),
      .stages = stages,
      .threads = GROUP * s->down + 2 * WARP,
      .shared_bytes = stages * cuda_bulk_step_bytes(s) + CUDA_BULK_OTHER_BYTES,
      .cluster = SHARING};
  if (k.shared_bytes > cuda_own_of(l)->properties.shared_bytes) return NULL;
  ASSAY_TRY(cuda_bulk_get(l, &b, &p));
  return cuda_bulk_make(l, &p, &b, s, &k, out);
}

// The bits of product_mma.
const assay_tactic_t cuda_tactic_product_clusters = {
    .name = "product_clusters",
    .source = "assay",
    .variants = variants,
    .make_variant = make_variant,
    .rounding = CUDA_TENSOR_ROUNDING,
};
