// Products on tensor cores by wgmma whose tiles the copy engine brings, by blocks that stay, and
// whose two groups of warps take tiles in turn (kernels/product/product_turns.cu).
#include <math.h>
#include <stdio.h>

#include "backends/cuda/product/bulk.h"

// What a block or, of 256 rows, a cluster of two makes at a time.
enum { ROWS = 128, N_ALONE = 3 };
static const cuda_tile_t shapes[] = {{ROWS, 64, 2, 1},     {ROWS, 96, 2, 1},
                                     {ROWS, 128, 2, 1},    {2 * ROWS, 64, 4, 1},
                                     {2 * ROWS, 96, 4, 1}, {2 * ROWS, 128, 4, 1}};
enum { N_SHAPES = sizeof shapes / sizeof *shapes };
enum { GROUPS = 2, GROUP = 256, ASKING = 128, MIN_STAGES = 2, PLACE_BYTES = 1024 };

static int sharing_of(const cuda_tile_t* s) { return s->rows / ROWS; }
static const cuda_tile_t* tile_of_block(const cuda_tile_t* s) {
  return sharing_of(s) > 1 ? s - N_ALONE : s;
}

// Each group has sums of so many columns in shared memory, behind stages and barriers, and behind
// them a list of those that are left open.
static int ends_at_once(const cuda_tile_t* s) {
  return s->columns > 96 ? s->columns / 2 : s->columns;
}
static int sums_bytes(const cuda_tile_t* s) {
  const cuda_tile_t part = {ROWS, ends_at_once(s), 1, 1};
  return PLACE_BYTES + GROUPS * (cuda_tile_sums_bytes(&part) + PRODUCT_OPEN_BYTES);
}

static int find_stages(const cuda_own_t* own, const cuda_tile_t* s) {
  const int left = own->properties.shared_bytes - CUDA_BULK_OTHER_BYTES - sums_bytes(s);
  const int stages = left / cuda_bulk_step_bytes(tile_of_block(s));
  return stages > CUDA_BULK_MAX_STAGES ? CUDA_BULK_MAX_STAGES : stages;
}

// As many as stay: blocks that share come and go together.
static int64_t count_blocks(const cuda_own_t* own, const cuda_product_t* p, const cuda_tile_t* s) {
  const int sharing = sharing_of(s);
  const int64_t tiles = cuda_tile_blocks(&p->args, s);
  const int64_t most = own->properties.multiprocessors / sharing;
  return sharing * (tiles < most ? tiles : most);
}

// Ends but the last one overlap with sums.
static double predict(const cuda_own_t* own, const cuda_product_t* p, const cuda_tile_t* s) {
  const int64_t blocks = count_blocks(own, p, s);
  const double turns =
      ceil((double)(sharing_of(s) * cuda_tile_blocks(&p->args, s)) / (double)blocks);
  return 2.5 + cuda_bulk_gather_us(p) +
         turns * (double)cuda_bulk_steps(p) *
             cuda_bulk_step_us(own, tile_of_block(s), CUDA_BULK_STEP_BYTES, blocks, sharing_of(s));
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
  const cuda_tile_t* block = tile_of_block(s);
  const int sharing = sharing_of(s);
  char options[64];
  (void)snprintf(options, sizeof options, "-DSHARING=%d -DFINISH_COLUMNS=%d", sharing,
                 ends_at_once(s));
  const cuda_bulk_kernel_t k = {
      .file = "product_turns.cu",
      .name = "product_turns",
      .options = options,
      .blocks = count_blocks(own, &p, s),
      .stages = stages,
      .threads = GROUPS * GROUP + ASKING,
      .shared_bytes = stages * cuda_bulk_step_bytes(block) + CUDA_BULK_OTHER_BYTES + sums_bytes(s),
      .cluster = sharing > 1 ? sharing : 0};
  ASSAY_TRY(cuda_bulk_get(l, &b, &p));
  return cuda_bulk_make(l, &p, &b, block, &k, out);
}

// The bits of product_mma.
const assay_tactic_t cuda_tactic_product_turns = {
    .name = "product_turns",
    .source = "assay",
    .variants = variants,
    .make_variant = make_variant,
    .rounding = CUDA_TENSOR_ROUNDING,
};
