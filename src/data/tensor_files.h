// Files of tensors, whatever their format: what --inputs and --golden take and --save-outputs
// writes.
//
// The formats are the rows of tensor_formats/tensor_formats.inc. Read files are told apart by their
// content; the format of a file that is written follows from the end of its name.
#ifndef ASSAY_DATA_TENSOR_FILES_H_
#define ASSAY_DATA_TENSOR_FILES_H_

#include "base/str.h"
#include "data/images.h"
#include "io/run_results.h"
#include "ir/ir.h"

// How files are read, beyond what they say; zeros: as they are.
typedef struct assay_tensor_reading {
  assay_image_request_t images;  // of inputs; outputs that are images are read as they are
  // "NAME:bf16": the bits of an array of unsigned integers are those of this type; float32 is
  // rounded to it (assay_tensor_files_retype).
  const char* const* dtypes;
  size_t n_dtypes;
  bool* met;          // by dtype: whether a file had such an array; NULL: nobody asks
  assay_str_t notes;  // lines of what was done
  size_t n_images;    // that were read
  assay_str_t about;  // of inputs: the "__metadata__" of the first safetensors file that has one
} assay_tensor_reading_t;

// What is read, and for what.
typedef struct assay_tensor_request {
  const char* path;
  // The model's inputs or outputs, in order: arrays without a name are for the only one of them
  // (one with an initializer does not count); raw bytes and text get its type and shape; folders of
  // test data go by position. None: an array without a name gets the file's.
  assay_value_t* const* values;
  size_t n_values;
  bool outputs;                     // they are outputs
  assay_tensor_reading_t* reading;  // NULL: as files are
} assay_tensor_request_t;

// Errors: NOT_FOUND no such file; CORRUPT not what it should be; UNSUPPORTED no format, or types
// that cannot be read; INVALID_ARGUMENT which value an array is for is not clear.
assay_status_t assay_tensor_file_read(const assay_tensor_request_t* request,
                                      assay_saved_t* out) ASSAY_MUST_USE;

// The same with all runners of a file of results. Other files are one runner's: of its file's name,
// where they are asked for as outputs, else inputs.
assay_status_t assay_tensor_file_read_all(const assay_tensor_request_t* request,
                                          assay_run_results_t* out) ASSAY_MUST_USE;
// INVALID_ARGUMENT a text is not NAME:TYPE with a type that there is.
assay_status_t assay_tensor_dtype_check(const char* request) ASSAY_MUST_USE;
// Gives arrays of runs the types of reading->dtypes, and says in reading->met which were there.
// Errors: INVALID_ARGUMENT no such type, or one of other bits.
assay_status_t assay_tensor_files_retype(const assay_tensor_reading_t* reading,
                                         assay_saved_t* runs) ASSAY_MUST_USE;
// Arrays of types that NumPy lacks become the unsigned integers of their bits.
assay_status_t assay_tensor_files_raw_bits(assay_saved_t* runs) ASSAY_MUST_USE;

// The runs in the format that the name's end stands for (assay_tensor_file_endings). Formats that
// hold one run get all joined (assay_saved_join), which empties s.
//   runner  what results are the results of, for formats that say; NULL: they are inputs
//   notes   lines for the user: types that the format lacks; may be NULL
assay_status_t assay_tensor_file_write(const char* path, assay_saved_t* s, const char* runner,
                                       assay_str_t* notes) ASSAY_MUST_USE;
// INVALID_ARGUMENT if no format is known by the name's end; the message lists those there are.
assay_status_t assay_tensor_file_check_name(const char* path) ASSAY_MUST_USE;

// For help and messages: "npz, npy, .pb ...", what can be read, and ".npz, .npy ...", the ends of
// names that can be written. Appended.
assay_status_t assay_tensor_file_list(assay_str_t* out) ASSAY_MUST_USE;
assay_status_t assay_tensor_file_list_endings(assay_str_t* out) ASSAY_MUST_USE;

#endif  // ASSAY_DATA_TENSOR_FILES_H_
