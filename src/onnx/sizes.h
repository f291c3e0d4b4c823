// What is said of the open sizes of a model's inputs, put together: shapes, named dimensions, a
// batch.
#ifndef ASSAY_ONNX_SIZES_H_
#define ASSAY_ONNX_SIZES_H_

#include "base/str.h"
#include "onnx/load.h"

typedef struct assay_open_sizes {
  // Of inputs; -1 says nothing of a dimension, or with `close` keeps it open. What they say goes
  // before the batch.
  size_t n_shapes;
  const assay_input_shape_t* shapes;
  size_t n_dims;
  const assay_dim_size_t* dims;
  int64_t batch;  // the leading dimension of every input that leaves it open; 0: nothing is said
  bool close;     // what nothing is said of becomes 1; else it stays open
} assay_open_sizes_t;

// The shapes that come of it: of each input that something is said of, or that shares a dimension
// with one, as assay_onnx_prepare takes them.
typedef struct assay_settled {
  size_t n;
  assay_input_shape_t* shapes;
  int64_t (*dims)[ASSAY_MAX_RANK];
  assay_str_t ones;       // what became 1 because nothing is said of it: "'N', dimension 2 of 'x'"
  bool batch_is_nowhere;  // no input has a leading dimension that the batch is the size of
} assay_settled_t;

// INVALID_ARGUMENT a shape without a name or dimensions, or with more than a tensor may have;
// model: or with a name that no input has (NULL: not asked).
assay_status_t assay_input_shapes_check(size_t n, const assay_input_shape_t* shapes,
                                        const assay_model_t* model) ASSAY_MUST_USE;

// Dimensions of one name have one size in all inputs. Names borrow those of `sizes` and of the
// model. Errors: INVALID_ARGUMENT two inputs, or an input and a named dimension, disagree; a named
// dimension that no input has. Shapes of inputs that there are not, or that do not fit, are handed
// on without `close`: whoever takes them says so.
assay_status_t assay_sizes_settle(const assay_model_t* model, const assay_open_sizes_t* sizes,
                                  assay_settled_t* out) ASSAY_MUST_USE;
void assay_settled_deinit(assay_settled_t* s);

#endif  // ASSAY_ONNX_SIZES_H_
