// From a file to a graph that can be run: read, check, inline functions, infer.
#ifndef ASSAY_ONNX_LOAD_H_
#define ASSAY_ONNX_LOAD_H_

#include <assay/model.h>  // assay_input_shape_t

#include "ir/ir.h"

// Reads a model and makes it ready to be evaluated. Errors are those of reading, checking and
// inference: NOT_FOUND, CORRUPT, INVALID_ARGUMENT, UNSUPPORTED.
assay_status_t assay_onnx_load(const char* path, size_t n_shapes, const assay_input_shape_t* shapes,
                               assay_model_t** out) ASSAY_MUST_USE;
// The second half: a model that was read already. The result is a model of its own.
assay_status_t assay_onnx_prepare(assay_model_t* model, size_t n_shapes,
                                  const assay_input_shape_t* shapes,
                                  assay_model_t** out) ASSAY_MUST_USE;
// The same with operators that nobody knows: their outputs are what the file declares.
assay_status_t assay_onnx_prepare_known(assay_model_t* model, size_t n_shapes,
                                        const assay_input_shape_t* shapes,
                                        assay_model_t** out) ASSAY_MUST_USE;
// One of the two for whoever the model is handed to: it keeps the model as it was read (`source`),
// for edits, and the shapes (`shapes`), for certificates.
assay_status_t assay_onnx_open(assay_model_t* model, bool known, size_t n_shapes,
                               const assay_input_shape_t* shapes,
                               assay_model_t** out) ASSAY_MUST_USE;
// The first node of an operator that is not known; NULL: there is none.
const assay_node_t* assay_onnx_unknown(const assay_model_t* model);
// UNSUPPORTED if there is one: such a model cannot be run.
assay_status_t assay_onnx_want_known(const assay_model_t* model) ASSAY_MUST_USE;

// A model that is ready already, with other shapes of its inputs.
assay_status_t assay_onnx_reshape(const assay_model_t* model, size_t n_shapes,
                                  const assay_input_shape_t* shapes,
                                  assay_model_t** out) ASSAY_MUST_USE;
// The same, or the model itself, without open sizes: leading dimensions of inputs become the batch,
// others 1, but for inputs of `settled`, which take the shapes that are given there (-1 stays
// open), and for dimensions of the same names as theirs, which take those sizes (sizes.h).
assay_status_t assay_onnx_close_sizes(assay_model_t* model, int64_t batch, size_t n_settled,
                                      const assay_input_shape_t* settled,
                                      assay_model_t** out) ASSAY_MUST_USE;
// The other way: a model that is ready, with its batch open: the size of its first input
// along this axis, and of all inputs that have the same there. *out_batch is what it was; 0: it was
// open, *out is the model itself. Errors: as of inference, where something in the graph fits that
// batch only.
assay_status_t assay_onnx_open_batch(assay_model_t* model, int axis, int64_t* out_batch,
                                     assay_model_t** out) ASSAY_MUST_USE;

#endif  // ASSAY_ONNX_LOAD_H_
