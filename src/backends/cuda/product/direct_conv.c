// Convolutions of few channels a group, directly (kernels/direct_conv.cu).
#include "backends/cuda/product/product.h"

enum { THREADS = 256, FEW = 8 };  // columns or channels of a group that a tile would waste

static assay_status_t make(const assay_sized_layer_t* l, assay_kernel_t** out) {
  cuda_product_t p;
  bool ok = false;
  assay_str_t options = {0};
  ASSAY_TRY(cuda_product_read_direct(l, &p, &ok));
  if (!ok || p.args.matrices == 1 || p.args.n > FEW || p.args.channels > FEW) return NULL;
  cuda_product_options(&p, &options);
  assay_str_printf(&options, " -DOPERAND=%s", p.tf32 ? "tf32" : cuda_type_name(p.in));
  const cuda_source_t source = {
      .file = "direct_conv.cu", .kernel = "direct_conv", .options = assay_str_get(&options)};
  const cuda_grid_t grid = {.blocks = cuda_blocks_for(l->own, l->out[0].size, THREADS),
                            .threads = THREADS};
  assay_status_t st = assay_str_status(&options);
  if (!st) st = cuda_product_kernel(l, &p, &source, &grid, out);
  assay_str_deinit(&options);
  return st;
}

const assay_tactic_t cuda_tactic_direct_conv = {
    .name = "direct_conv",
    .source = "assay",
    .make = make,
    .rounding = {.compute = ASSAY_FORMAT_FP32,
                 .accumulator = ASSAY_FORMAT_FP32,
                 .fma = true,
                 .by_definition = true,
                 .function_ulps = 4},
};
