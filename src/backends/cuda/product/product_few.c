// Products of few rows on tensor cores (kernels/product/product_few.cu): squeezed channels, a step
// of a decoder, the last layer of a classifier. Terms of a column lie side by side.
#include "backends/cuda/product/product.h"

enum { ROWS = 8, COLUMNS = 16, TERMS = 16, SPARE = 8, OTHER_BYTES = 2 << 10, THREADS = 128 };
static const cuda_tile_t shapes[] = {{ROWS, COLUMNS, 1, 1}};
enum { N_SHAPES = sizeof shapes / sizeof *shapes };

static int64_t steps_of(const product_args_t* a) { return (a->k + TERMS - 1) / TERMS; }

static int64_t shared_bytes(const product_args_t* a) {
  return (ROWS + COLUMNS) * (steps_of(a) * TERMS + SPARE) * 2;
}

// Copies of the weights, and a chain of products.
static double predict(const cuda_own_t* own, const cuda_product_t* p, const cuda_tile_t* t) {
  const double blocks = (double)cuda_tile_blocks(&p->args, t);
  return 1.2 + (double)steps_of(&p->args) * 0.025 * (1 + blocks / own->properties.multiprocessors);
}

static bool read_few(const assay_sized_layer_t* l, cuda_product_t* p) {
  const product_args_t* a = &p->args;
  cuda_product_join_places(p);
  return p->left == CUDA_LEFT_MATRIX && p->in != ASSAY_TYPE_FLOAT && a->m <= ROWS && a->w_k == 1 &&
         a->x_k == 1 && a->k <= INT32_MAX / 64 &&
         shared_bytes(a) <= cuda_own_of(l)->properties.shared_bytes - OTHER_BYTES;
}

static assay_status_t variants(const assay_sized_layer_t* l, assay_variant_t* out, size_t* out_n) {
  cuda_product_t p;
  bool ok = false;
  *out_n = 0;
  ASSAY_TRY(cuda_product_read(l, &p, &ok));
  if (ok && read_few(l, &p))
    cuda_tile_variants(l, &p, shapes, N_SHAPES, "tensor", predict, out, out_n);
  return NULL;
}

static assay_status_t make_variant(const assay_sized_layer_t* l, const assay_variant_t* v,
                                   assay_kernel_t** out) {
  cuda_product_t p;
  bool ok = false;
  assay_str_t options = {0};
  ASSAY_TRY(cuda_product_read(l, &p, &ok));
  const cuda_tile_t* s = ok && read_few(l, &p) ? cuda_tile_find(&p, shapes, N_SHAPES, v) : NULL;
  if (!s) return NULL;
  const int shared = (int)shared_bytes(&p.args);
  cuda_product_options(&p, &options);
  assay_str_printf(&options, " -DPIECE=%d -DW_CONSTANT=%d", cuda_product_piece(&p.args),
                   cuda_weights_are_constant(l, &p));
  // What a kernel may ask for is one number for all layers that share it.
  const cuda_source_t source = {
      .file = "product_few.cu",
      .kernel = "product_few",
      .options = assay_str_get(&options),
      .shared_bytes = cuda_own_of(l)->properties.shared_bytes - OTHER_BYTES};
  const cuda_grid_t grid = {.blocks = cuda_tile_blocks(&p.args, s),
                            .threads = THREADS,
                            .dependent = true,
                            .shared_bytes = shared};
  assay_status_t st = assay_str_status(&options);
  if (!st) st = cuda_product_kernel(l, &p, &source, &grid, out);
  assay_str_deinit(&options);
  return st;
}

// The bits of product_mma.
const assay_tactic_t cuda_tactic_product_few = {
    .name = "product_few",
    .source = "assay",
    .variants = variants,
    .make_variant = make_variant,
    .rounding = CUDA_TENSOR_ROUNDING,
};
