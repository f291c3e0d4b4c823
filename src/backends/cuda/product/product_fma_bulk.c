// Products in float32 by fused multiply-adds whose operands the copy engine brings
// (kernels/product/product_fma_bulk.cu): by one group of threads, and by groups that share out the
// chains of sums (product_split.c).
#include "backends/cuda/product/bulk.h"
#include "backends/cuda/product/fma.h"

static const cuda_tile_t whole[] = {
    {128, 128, 8, 8}, {128, 64, 8, 8}, {64, 128, 8, 8}, {64, 64, 8, 4}};
static const cuda_tile_t split[] = {{32, 32, 4, 8}, {64, 64, 8, 8}, {64, 32, 8, 4},
                                    {32, 64, 4, 8}, {16, 64, 4, 8}, {16, 32, 4, 4}};
enum { N_WHOLE = sizeof whole / sizeof *whole, N_SPLIT = sizeof split / sizeof *split };
enum { ASKING = 32 };  // threads

typedef struct way {
  const cuda_tile_t* tiles;
  int n, groups;
  cuda_tile_predict_t* predict;
} way_t;

static double predict_whole(const cuda_own_t* own, const cuda_product_t* p, const cuda_tile_t* t) {
  return cuda_fma_predict(own, p, t, 1, true);
}
static double predict_split(const cuda_own_t* own, const cuda_product_t* p, const cuda_tile_t* t) {
  return cuda_fma_predict(own, p, t, CUDA_FMA_SHARED, true);
}
static const way_t by_whole = {whole, N_WHOLE, 1, predict_whole};
static const way_t by_split = {split, N_SPLIT, CUDA_FMA_SHARED, predict_split};

static assay_status_t list(const assay_sized_layer_t* l, const way_t* way, assay_variant_t* out,
                           size_t* out_n) {
  cuda_product_t p;
  cuda_bulk_t b;
  cuda_fma_t f;
  bool ok = false;
  *out_n = 0;
  ASSAY_TRY(cuda_bulk_read_plain(l, &p, &b, &ok));
  for (int i = 0; ok && i < way->n; i++) {
    bool fits;
    cuda_fma_find(cuda_own_of(l), &p.args, &way->tiles[i], way->groups, &f, &fits);
    if (fits) cuda_tile_variants(l, &p, &way->tiles[i], 1, "fma", way->predict, out, out_n);
  }
  return NULL;
}

static assay_status_t make(const assay_sized_layer_t* l, const way_t* way, const assay_variant_t* v,
                           assay_kernel_t** out) {
  cuda_product_t p;
  cuda_bulk_t b;
  cuda_fma_t f;
  bool ok = false;
  assay_str_t options = {0};
  ASSAY_TRY(cuda_bulk_read_plain(l, &p, &b, &ok));
  const cuda_tile_t* t = ok ? cuda_tile_find(&p, way->tiles, way->n, v) : NULL;
  if (!t) return NULL;
  cuda_fma_find(cuda_own_of(l), &p.args, t, way->groups, &f, &ok);
  if (!ok) return NULL;
  cuda_fma_options(&p.args, &f, &options);
  const cuda_bulk_kernel_t k = {.file = "product_fma_bulk.cu",
                                .name = "product_fma_bulk",
                                .options = assay_str_get(&options),
                                .blocks = cuda_tile_blocks(&p.args, t),
                                .stages = f.stages,
                                .threads = f.threads + ASKING,
                                .shared_bytes = f.shared_bytes + CUDA_BULK_OTHER_BYTES};
  assay_status_t st = assay_str_status(&options);
  if (!st) st = cuda_bulk_get(l, &b, &p);
  if (!st) st = cuda_bulk_make(l, &p, &b, t, &k, out);
  assay_str_deinit(&options);
  return st;
}

static assay_status_t whole_variants(const assay_sized_layer_t* l, assay_variant_t* out,
                                     size_t* out_n) {
  return list(l, &by_whole, out, out_n);
}
static assay_status_t make_whole(const assay_sized_layer_t* l, const assay_variant_t* v,
                                 assay_kernel_t** out) {
  return make(l, &by_whole, v, out);
}
static assay_status_t split_variants(const assay_sized_layer_t* l, assay_variant_t* out,
                                     size_t* out_n) {
  return list(l, &by_split, out, out_n);
}
static assay_status_t make_split(const assay_sized_layer_t* l, const assay_variant_t* v,
                                 assay_kernel_t** out) {
  return make(l, &by_split, v, out);
}

// The bits of product_fma, both.
const assay_tactic_t cuda_tactic_product_fma_bulk = {
    .name = "product_fma_bulk",
    .source = "assay",
    .variants = whole_variants,
    .make_variant = make_whole,
    .rounding = CUDA_FMA_ROUNDING,
};
const assay_tactic_t cuda_tactic_product_split_bulk = {
    .name = "product_split_bulk",
    .source = "assay",
    .variants = split_variants,
    .make_variant = make_split,
    .rounding = CUDA_FMA_ROUNDING,
};
