// A format of files of tensors: a file of this folder and a row of tensor_formats.inc.
#ifndef ASSAY_DATA_TENSOR_FORMATS_TENSOR_FORMAT_H_
#define ASSAY_DATA_TENSOR_FORMATS_TENSOR_FORMAT_H_

#include "base/file.h"
#include "data/tensor_files.h"

// A file that is being read: its bytes, or that it is a folder.
typedef struct assay_tensor_file {
  const assay_tensor_request_t* request;
  assay_mapping_t* mapping;  // NULL: a folder
  const uint8_t* data;
  size_t size;
} assay_tensor_file_t;

enum { ASSAY_TENSOR_ENDINGS = 4 };

// NULL functions: cannot be told or read; is not written.
typedef struct assay_tensor_format {
  const char* name;
  const char* listed;     // by help and messages, among what can be read: "npz"; NULL: it is not
  const char* folder[2];  // what a folder of it holds, of inputs and of outputs; NULL: as of inputs
  const char* endings[ASSAY_TENSOR_ENDINGS];  // of names that it is written under
  bool keeps_runs;                            // several runs in one file
  bool in_sample_folders;  // a folder whose first file is one has a file a sample
  bool (*is)(const assay_tensor_file_t* f);
  assay_status_t (*read)(const assay_tensor_file_t* f, assay_saved_t* out);  // out is empty
  // s has one run unless keeps_runs. runner, notes: as of assay_tensor_file_write.
  assay_status_t (*write)(const char* path, const assay_saved_t* s, const char* runner,
                          assay_str_t* notes);
} assay_tensor_format_t;

// ---- for formats -------------------------------------------------------------------------------

// "input" or "output": what the file is to hold.
const char* assay_tensor_file_stem(const assay_tensor_request_t* r);
// The only value that needs an array, for arrays without a name. Without a model there is none, and
// that is fine: *out NULL. Errors: INVALID_ARGUMENT there are several, or none.
assay_status_t assay_tensor_file_value(const assay_tensor_request_t* r,
                                       const assay_value_t** out) ASSAY_MUST_USE;
// Adds a run of one array, named after the value or (without one) the file.
assay_status_t assay_tensor_file_add(const assay_tensor_file_t* f, const assay_value_t* v,
                                     assay_tensor_t* take_tensor,
                                     assay_saved_t* out) ASSAY_MUST_USE;
// The one array that a file for one array is to hold. Errors: INVALID_ARGUMENT there are more.
assay_status_t assay_tensor_file_single(const assay_saved_t* s, const char* format,
                                        assay_tensor_t** out) ASSAY_MUST_USE;
// The type of a value's elements, and the shape that n of them have as its array; one open
// dimension follows from n. Errors: INVALID_ARGUMENT n does not fit, or more is open.
assay_type_t assay_tensor_file_elem(const assay_value_t* v);
assay_status_t assay_tensor_file_settle(const assay_value_t* v, int64_t n,
                                        int64_t* dims) ASSAY_MUST_USE;
// Whether bytes begin as JSON does.
bool assay_tensor_file_is_json(const assay_tensor_file_t* f);

// ---- the table ---------------------------------------------------------------------------------

size_t assay_tensor_format_count(void);
const assay_tensor_format_t* assay_tensor_format_at(size_t i);
// The first whose `is` holds; NULL: none.
const assay_tensor_format_t* assay_tensor_format_of(const assay_tensor_file_t* f);

#endif  // ASSAY_DATA_TENSOR_FORMATS_TENSOR_FORMAT_H_
