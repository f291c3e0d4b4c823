// Products on tensor cores by wgmma whose tiles the copy engine brings
// (kernels/product/product_bulk.cu): a block a tile.
#include <math.h>

#include "backends/cuda/product/bulk.h"
#include "backends/cuda/product/scale.h"

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

// The left side is another layer's operand, and multiplied by a second one. Memory that numbers
// take, of each group of 64 rows those of all samples that it may have rows of; false: such a left
// side is not brought by rows, or has numbers of too many samples.
static bool take_scale(const cuda_scale_t* scale, const cuda_bulk_t* b, const cuda_tile_t* s,
                       cuda_product_t* p, int* bytes) {
  enum { ROWS = 64, MAX_BYTES = 32 << 10 };
  const int64_t samples = (ROWS - 1 + scale->rows - 1) / scale->rows + 1;
  const int64_t step = samples * p->args.k;
  if (b->windows || p->gather.args.rows || p->half_type || scale->rows > INT32_MAX ||
      step > MAX_BYTES)
    return false;
  p->x = scale->x;
  p->scaled = true;
  p->scale = scale->numbers;
  p->args.scale_rows = (int32_t)scale->rows;
  p->args.scale_step = (int32_t)step;
  *bytes = (int)step * 2 * (s->rows / ROWS);
  return *bytes <= MAX_BYTES;
}

static int find_stages(const cuda_own_t* own, const cuda_tile_t* s, const cuda_product_t* p,
                       int numbers) {
  const bool alone = cuda_bulk_is_alone(own, p, s);
  const int bytes = cuda_bulk_step_bytes(s);
  const int stages = cuda_bulk_block_stages(own, s, alone, cuda_bulk_steps(p), bytes);
  return cuda_bulk_stages_beside(own, s, alone, stages, bytes, numbers);
}

// scale: NULL: the left side is what it is.
static assay_status_t make(const assay_sized_layer_t* l, const assay_variant_t* v,
                           const cuda_scale_t* scale, assay_kernel_t** out) {
  cuda_product_t p;
  cuda_bulk_t b;
  const cuda_tile_t* s;
  int numbers = 0;
  ASSAY_TRY(cuda_bulk_find(l, v, shapes, N_SHAPES, &p, &b, &s));
  if (!s || (scale && !take_scale(scale, &b, s, &p, &numbers))) return NULL;
  const int bytes = cuda_bulk_step_bytes(s);
  const cuda_own_t* own = cuda_own_of(l);
  const int stages = find_stages(own, s, &p, numbers);
  const cuda_bulk_kernel_t k = {.file = "product_bulk.cu",
                                .name = "product_bulk",
                                .blocks = cuda_tile_blocks(&p.args, s),
                                .stages = stages,
                                .threads = cuda_bulk_block_threads(s),
                                .shared_bytes = cuda_bulk_block_bytes(stages, bytes) + numbers};
  if (k.shared_bytes > cuda_own_of(l)->properties.shared_bytes) return NULL;
  ASSAY_TRY(cuda_bulk_get(l, &b, &p));
  return cuda_bulk_make(l, &p, &b, s, &k, out);
}

static assay_status_t make_variant(const assay_sized_layer_t* l, const assay_variant_t* v,
                                   assay_kernel_t** out) {
  return make(l, v, NULL, out);
}

assay_status_t cuda_product_bulk_scaled(const assay_sized_layer_t* l, const assay_variant_t* v,
                                        const cuda_scale_t* scale, assay_kernel_t** out) {
  return make(l, v, scale, out);
}

// The bits of product_mma.
const assay_tactic_t cuda_tactic_product_bulk = {
    .name = "product_bulk",
    .source = "assay",
    .variants = variants,
    .make_variant = make_variant,
    .rounding = CUDA_TENSOR_ROUNDING,
};
