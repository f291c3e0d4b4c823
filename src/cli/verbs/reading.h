// Options that say how files of inputs are read: types that NumPy lacks, images.
#ifndef ASSAY_CLI_VERBS_READING_H_
#define ASSAY_CLI_VERBS_READING_H_

#include "cli/input_options.h"
#include "data/tensor_files.h"

// What a verb reads all its files by, from the options. A verb that takes these options reads
// between begin and end; deinit where it gives up before.
// Errors: INVALID_ARGUMENT an option's text makes no sense.
assay_status_t cli_reading_begin(const cli_reading_args_t* a,
                                 assay_tensor_reading_t* out) ASSAY_MUST_USE;
// Prints notes to stderr. read: what became of reading, which is returned; where that went well,
// NOT_FOUND a --dtype is of no array, and it is told that options for images met none.
assay_status_t cli_reading_end(const cli_reading_args_t* a, assay_tensor_reading_t* reading,
                               assay_status_t read) ASSAY_MUST_USE;
void cli_reading_deinit(assay_tensor_reading_t* reading);

#endif  // ASSAY_CLI_VERBS_READING_H_
