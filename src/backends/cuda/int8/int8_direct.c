// Convolutions on 8-bit integers, an element a thread (kernels/int8/int8_direct.cu): those that
// tiles of tensor cores are not for. Others would take a hundred times as long, and to time that as
// well.
#include "backends/cuda/int8/product.h"

enum { THREADS = 256 };

// Weights of convolutions are constants.
static assay_status_t make_of(const assay_sized_layer_t* l, cuda_int8_t* p, assay_kernel_t** out) {
  int8_product_args_t args = {.product = p->p.args, .zero_x = p->job.zero_x};
  const cuda_source_t source = {.file = "int8_direct.cu", .kernel = "int8_direct", .options = ""};
  const cuda_grid_t grid = {.blocks = cuda_blocks_for(l->own, l->out[0].size, THREADS),
                            .threads = THREADS,
                            .dependent = true};
  ASSAY_TRY(cuda_int8_bring_terms(p, &args));
  return cuda_int8_kernel(l, p, &args, NULL, &source, &grid, out);
}

assay_status_t cuda_int8_make_direct(const assay_sized_layer_t* l, const assay_variant_t* v,
                                     const assay_int8_t* joined, assay_kernel_t** out) {
  cuda_int8_t p;
  bool ok = false;
  (void)v;
  ASSAY_TRY(cuda_int8_open(l, &p, &ok));
  if (!ok) return NULL;
  p.joined = joined;
  assay_status_t st = cuda_int8_has_tiles(&p) ? NULL : make_of(l, &p, out);
  cuda_int8_close(&p);
  return st;
}

static assay_status_t make(const assay_sized_layer_t* l, assay_kernel_t** out) {
  return cuda_int8_make_direct(l, NULL, NULL, out);
}

const assay_tactic_t cuda_tactic_int8_direct = {
    .name = "int8_direct",
    .source = "assay",
    .numerics = "integers",
    .make = make,
    .rounding = CUDA_INT8_ROUNDING,
};
