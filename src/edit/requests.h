// What edits can be asked for: a table of their options, and requests read by it.
#ifndef ASSAY_EDIT_REQUESTS_H_
#define ASSAY_EDIT_REQUESTS_H_

#include "base/alloc.h"
#include "edit/editor.h"

typedef enum assay_edit_field {
  ASSAY_EDIT_FIELD_WORDS,  // may be given again
  ASSAY_EDIT_FIELD_TEXT,
  ASSAY_EDIT_FIELD_WHOLE,  // a whole number
  ASSAY_EDIT_FIELD_REAL,
  ASSAY_EDIT_FIELD_FLAG,
  ASSAY_EDIT_FIELD_SCALES,  // a file of them
} assay_edit_field_t;

typedef struct assay_edit_option {
  const char* edits;  // names with ' ' around each: " cast quantize "
  const char* name;
  const char* value;  // what it is: "PATTERN"; "": a flag
  assay_edit_field_t field;
  size_t offset;  // in assay_edit_requests_t
  const char* help;
} assay_edit_option_t;

// Option k of an edit; NULL: after the last.
const assay_edit_option_t* assay_edit_option_at(const assay_editor_t* editor, size_t k);
// Reads requests; texts are borrowed, lists and scales lie in the arena. Errors: NOT_FOUND the edit
// has no such option; INVALID_ARGUMENT a value that is missing, given twice or no number; those of
// reading a file.
assay_status_t assay_edit_requests_read(const assay_editor_t* editor, size_t n,
                                        const assay_edit_request_t* requests, assay_arena_t* arena,
                                        assay_edit_requests_t* out) ASSAY_MUST_USE;

#endif  // ASSAY_EDIT_REQUESTS_H_
