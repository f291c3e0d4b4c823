// What tools save of their runs: named tensors, one set a run (an iteration, a sample).
#ifndef ASSAY_IO_SAVED_H_
#define ASSAY_IO_SAVED_H_

#include "base/str.h"
#include "io/set.h"

// Starts as {0}. Fields are read freely.
typedef struct assay_saved {
  assay_set_t* runs;
  size_t n, cap;
  bool results;       // the file says that it holds what a run gave, not what it was given
  bool compress;      // how it is to be written, where the format can
  assay_str_t about;  // what safetensors has as "__metadata__", a JSON text; "": nothing
} assay_saved_t;

void assay_saved_deinit(assay_saved_t* s);

// A new, empty run at the end.
assay_status_t assay_saved_add_run(assay_saved_t* s, assay_set_t** out) ASSAY_MUST_USE;
// All runs as one set, which is moved or copied out of `s`: where there are several, each array is
// theirs one after the other, along the first dimension. Errors: INVALID_ARGUMENT arrays of one
// name that differ in type or in another dimension.
assay_status_t assay_saved_join(assay_saved_t* s, assay_set_t* out) ASSAY_MUST_USE;

// The types that arrays of plain JSON are to have: UNDEFINED where a name says nothing.
typedef struct assay_saved_types {
  assay_type_t (*of)(const void* user, const char* name);
  const void* user;
} assay_saved_types_t;

// JSON of Polygraphy (polygraphy.h) or trtexec (trtexec.h), or plain arrays (json_arrays.h, types
// may be NULL), told apart by content; bare nan and inf are read, too. Errors: CORRUPT not what it
// should be; UNSUPPORTED types that cannot be read.
assay_status_t assay_saved_parse_json(const void* data, size_t size,
                                      const assay_saved_types_t* types,
                                      assay_saved_t* out) ASSAY_MUST_USE;
// A folder of such files, in the order of their names: runs one after the other.
assay_status_t assay_saved_read_folder(const char* path, const assay_saved_types_t* types,
                                       assay_saved_t* out) ASSAY_MUST_USE;
// Whether a folder holds such files.
bool assay_saved_is_folder(const char* path);

#endif  // ASSAY_IO_SAVED_H_
