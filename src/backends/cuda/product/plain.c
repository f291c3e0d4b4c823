// Products that a tactic needs on its way.
#include "backends/cuda/product/plain.h"

#include "backends/cuda/product/fma.h"

// A tile has no influence on bits: few rows get the one that wastes least.
static cuda_tile_t tile_of(bool fma, int64_t m) {
  if (fma) return m > 32 ? (cuda_tile_t){64, 64, 8, 4} : (cuda_tile_t){16, 64, 4, 4};
  return m > 32 ? (cuda_tile_t){64, 64, 2, 2} : (cuda_tile_t){16, 64, 1, 4};
}

enum { STEP_BYTES = 128, STAGES = 4 };  // of product_mma.cu

static assay_status_t get_fma(const cuda_own_t* own, const cuda_tile_t* t, cuda_plain_product_t* p,
                              bool* ok) {
  const int fast = p->args.k % 4 == 0;
  cuda_fma_t f;
  assay_str_t options = {0};
  cuda_fma_find(own, &p->args, t, 1, &f, ok);
  if (!*ok) return NULL;
  assay_str_printf(&options,
                   "-DOUT=f32 -DCONV=0 -DBM=%d -DBN=%d -DX_FAST=%d -DW_FAST=%d -DSTAGES=%d "
                   "-DW_CONSTANT=0 -DEPILOGUE=0 ",
                   t->rows, t->columns, fast, fast, f.stages);
  cuda_fma_options(&p->args, &f, &options);
  p->grid.threads = f.threads;
  p->grid.shared_bytes = f.shared_bytes;
  const cuda_source_t source = {.file = "product_fma.cu",
                                .kernel = "product_fma",
                                .options = assay_str_get(&options),
                                .shared_bytes = p->grid.shared_bytes};
  assay_status_t st = assay_str_status(&options);
  if (!st) st = cuda_function_get(own->functions, &source, &p->kernel);
  assay_str_deinit(&options);
  return st;
}

static assay_status_t get_mma(const cuda_own_t* own, assay_type_t type, const cuda_tile_t* t,
                              cuda_plain_product_t* p) {
  const bool wide = type == ASSAY_TYPE_FLOAT;
  const int fast =
      p->args.k % (wide ? 4 : 8) == 0;  // pieces of 16 bytes along k lie at multiples of 16 bytes
  assay_str_t options = {0};
  assay_str_printf(&options,
                   "-DIN=%s -DOUT=f32 -DCONV=0 -DIN_IS_F32=%d -DBM=%d -DBN=%d -DWM=%d -DWN=%d "
                   "-DX_FAST=%d -DW_FAST=%d -DSTAGES=%d -DW_CONSTANT=0 -DEPILOGUE=0",
                   cuda_type_name(type), wide, t->rows, t->columns, t->down, t->across, fast, fast,
                   STAGES);
  p->grid.threads = 32 * t->down * t->across;
  p->grid.shared_bytes = STAGES * (t->rows + t->columns) * STEP_BYTES;
  const cuda_source_t source = {.file = "product_mma.cu",
                                .kernel = "product_mma",
                                .options = assay_str_get(&options),
                                .shared_bytes = p->grid.shared_bytes};
  assay_status_t st = assay_str_status(&options);
  if (!st) st = cuda_function_get(own->functions, &source, &p->kernel);
  assay_str_deinit(&options);
  return st;
}

assay_status_t cuda_plain_product_get(const cuda_own_t* own, assay_type_t type, bool tf32,
                                      int64_t m, int64_t n, int64_t k, cuda_plain_product_t* out,
                                      bool* ok) {
  const bool fma = type == ASSAY_TYPE_FLOAT && !tf32;
  const cuda_tile_t t = tile_of(fma, m);
  *out = (cuda_plain_product_t){.args = {.m = m,
                                         .n = n,
                                         .k = k,
                                         .matrices = 1,
                                         .x_row = k,
                                         .x_k = 1,
                                         .w_k = 1,
                                         .w_column = k,
                                         .y_row = n}};
  out->grid.blocks = cuda_tile_blocks(&out->args, &t);
  *ok = out->grid.blocks <= INT32_MAX;
  if (!*ok) return NULL;
  return fma ? get_fma(own, &t, out, ok) : get_mma(own, type, &t, out);
}

assay_status_t cuda_plain_product_enqueue(const cuda_plain_product_t* p, assay_queue_t* q,
                                          assay_device_ptr_t x, assay_device_ptr_t w,
                                          assay_device_ptr_t y) {
  product_args_t args = p->args;
  args.x = x;
  args.w = w;
  args.y = y;
  return cuda_queue_launch(q, p->kernel, &p->grid, &args);
}
