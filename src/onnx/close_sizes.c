// Models whose sizes are open, for runs in which they are not.
#include "onnx/sizes.h"

assay_status_t assay_onnx_close_sizes(assay_model_t* model, int64_t batch, size_t n_settled,
                                      const assay_input_shape_t* settled, assay_model_t** out) {
  const assay_open_sizes_t sizes = {
      .n_shapes = n_settled, .shapes = settled, .batch = batch, .close = true};
  assay_settled_t s = {0};
  ASSAY_TRY(assay_sizes_settle(model, &sizes, &s));
  assay_status_t st = NULL;
  if (s.n)
    st = assay_onnx_reshape(model, s.n, s.shapes, out);
  else
    *out = assay_model_retain(model);
  assay_settled_deinit(&s);
  return st;
}
