// What other tools save of their runs: named tensors, one set a run.
//
//   npz            one set; samples are told apart later, by their shapes
//   Polygraphy     RunResults (--save-outputs) and lists of inputs (--save-inputs), as JSON: a set
//                  an iteration; of several runners the first one's
//   trtexec        --exportOutput, JSON with bare nan and inf: one set; numbers have no type there:
//                  whole ones become int64, others double
//
// Told apart by content.
#ifndef ASSAY_IO_SAVED_H_
#define ASSAY_IO_SAVED_H_

#include "io/set.h"

// Starts as {0}. Fields are read freely.
typedef struct assay_saved {
  assay_set_t* runs;
  size_t n, cap;
} assay_saved_t;

void assay_saved_deinit(assay_saved_t* s);

// Errors: NOT_FOUND no such file; CORRUPT not what it should be; UNSUPPORTED arrays that are kept
// as PyTorch tensors, or in the form of old versions.
assay_status_t assay_saved_read(const char* path, assay_saved_t* out) ASSAY_MUST_USE;
// The same as one set: where there are several runs, each array is theirs one behind the other, along
// the first dimension.
assay_status_t assay_saved_read_joined(const char* path, assay_set_t* out) ASSAY_MUST_USE;
// The JSON forms, from memory.
assay_status_t assay_saved_parse_json(const void* data, size_t size,
                                      assay_saved_t* out) ASSAY_MUST_USE;

#endif  // ASSAY_IO_SAVED_H_
