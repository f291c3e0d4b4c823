// Several files as the runs of one model: what --inputs takes, one or more times.
#ifndef ASSAY_DATA_SAMPLE_FILES_H_
#define ASSAY_DATA_SAMPLE_FILES_H_

#include "data/tensor_files.h"
#include "io/saved.h"
#include "ir/ir.h"

typedef struct assay_sample_files {
  const char* const* names;  // FILE or, of inputs, NAME=FILE
  size_t n;
  bool outputs;                     // they are of the model's outputs
  assay_tensor_reading_t* reading;  // NULL: as files are
} assay_sample_files_t;

// What the files hold, run by run. Files with other arrays complete the runs before them; files
// with the same arrays are more runs. Errors: NOT_FOUND no such file; CORRUPT not what it should
// be; UNSUPPORTED no format; INVALID_ARGUMENT files that do not go together, or an unknown NAME.
assay_status_t assay_sample_files_read(const assay_sample_files_t* files,
                                       const assay_model_t* model,
                                       assay_saved_t* out) ASSAY_MUST_USE;

#endif  // ASSAY_DATA_SAMPLE_FILES_H_
