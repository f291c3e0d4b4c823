// A folder of samples: test_data_set_0, test_data_set_1, ... as ONNX's models have them, or a file
// of arrays each, in the order of their names.
#ifndef ASSAY_DATA_TENSOR_FOLDER_H_
#define ASSAY_DATA_TENSOR_FOLDER_H_

#include "data/tensor_files.h"

// Whether the request's path is one: a folder is in it that is called test_data_set_..., or its
// first file is npz, npy or safetensors.
bool assay_tensor_folder_is(const assay_tensor_request_t* request);

// Adds the runs of all. Errors: as assay_tensor_file_read.
assay_status_t assay_tensor_folder_read(const assay_tensor_request_t* request,
                                        assay_saved_t* out) ASSAY_MUST_USE;

#endif  // ASSAY_DATA_TENSOR_FOLDER_H_
