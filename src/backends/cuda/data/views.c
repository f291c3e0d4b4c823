// Layers that only give an input another shape: nothing is moved.
#include "backends/layers/views.h"

#include "backends/cuda/tactic.h"
#include "base/alloc.h"

static void destroy(assay_kernel_t* k) { assay_free(k); }

static assay_status_t make(const assay_sized_layer_t* l, assay_kernel_t** out) {
  assay_kernel_t *k = NULL, read_kernel = {.destroy = destroy};
  if (!layer_view_read(l, &read_kernel)) return NULL;
  ASSAY_TRY(ASSAY_NEW(&k));
  *k = read_kernel;
  *out = k;
  return NULL;
}

static assay_status_t resize(const assay_sized_layer_t* l, assay_kernel_t* k, bool* out_ok) {
  *out_ok = layer_view_read(l, k);
  return NULL;
}

const assay_tactic_t cuda_tactic_views = {
    .name = "views",
    .source = "assay",
    .numerics = "data_movement",
    .make = make,
    .resize = resize,
    .layouts = ASSAY_LAYOUT_FOLLOWS,
    .rounding = {.compute = ASSAY_FORMAT_FP32,
                 .accumulator = ASSAY_FORMAT_FP32,
                 .function_ulps = 1},
};
