// Products on 8-bit integers, an element a thread (kernels/int8/int8_direct.cu).
#include "backends/cuda/int8/product.h"

enum { THREADS = 256 };

static assay_status_t make_of(const assay_sized_layer_t* l, cuda_int8_t* p, assay_kernel_t** out) {
  const int8_job_t* j = &p->job;
  int8_product_args_t args = {.product = p->p.args, .zero_x = j->zero_x};
  assay_str_t options = {0};
  if (j->weights)
    ASSAY_TRY(cuda_int8_bring_terms(p, &args));
  else
    args.zero_w = j->zero_w;
  assay_str_printf(&options, "-DW_TYPE=%s", j->weights ? "int16_t" : cuda_whole_name(j->w_type));
  const cuda_source_t source = {
      .file = "int8_direct.cu", .kernel = "int8_direct", .options = assay_str_get(&options)};
  const cuda_grid_t grid = {.blocks = cuda_blocks_for(l->own, l->out[0].size, THREADS),
                            .threads = THREADS};
  assay_status_t st = assay_str_status(&options);
  if (!st) st = cuda_int8_kernel(l, p, &args, &source, &grid, out);
  assay_str_deinit(&options);
  return st;
}

static assay_status_t make(const assay_sized_layer_t* l, assay_kernel_t** out) {
  cuda_int8_t p;
  bool ok = false;
  ASSAY_TRY(cuda_int8_open(l, &p, &ok));
  if (!ok) return NULL;
  assay_status_t st = make_of(l, &p, out);
  cuda_int8_close(&p);
  return st;
}

const assay_tactic_t cuda_tactic_int8_direct = {
    .name = "int8_direct",
    .source = "assay",
    .numerics = "integers",
    .make = make,
    .rounding = CUDA_INT8_ROUNDING,
};
