// Numbers as files of arrays keep them: packed, in types that those files have.
#ifndef ASSAY_IO_STORED_H_
#define ASSAY_IO_STORED_H_

#include "tensor/tensor.h"

// The type that NumPy keeps a type as: float types of its kinds, integers of whole bytes.
assay_type_t assay_file_elem_type(assay_type_t type);

// A tensor on its way into a file.
typedef struct assay_stored {
  assay_tensor_t* tensor;  // packed; in the type that is kept
  int64_t bytes;
} assay_stored_t;

// Errors: UNSUPPORTED no tensor of numbers.
//   small_floats  bfloat16 and float8 stay as they are: the file has them
assay_status_t assay_stored_make(assay_tensor_t* t, bool small_floats,
                                 assay_stored_t* out) ASSAY_MUST_USE;
void assay_stored_deinit(assay_stored_t* s);

#endif  // ASSAY_IO_STORED_H_
