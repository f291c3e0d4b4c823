// Plain JSON arrays: {"x": [[1, 2], [3, 4]], "n": 3}, or a list of such objects, a sample each.
//
// Numbers may be NaN, Infinity and -Infinity, bare as Python writes them or as strings.
#ifndef ASSAY_IO_JSON_ARRAYS_H_
#define ASSAY_IO_JSON_ARRAYS_H_

#include "io/json.h"
#include "io/saved.h"

// Whether it is that, and nothing that another tool's JSON could be.
bool assay_json_arrays_is(const json_t* root);
// types NULL, or UNDEFINED for a name: strings, bool, int64 where all numbers are whole, else
// double. Errors: CORRUPT a ragged array, or elements that are not of the type, with their place.
assay_status_t assay_json_arrays_read(const json_t* root, const assay_saved_types_t* types,
                                      assay_saved_t* out) ASSAY_MUST_USE;

#endif  // ASSAY_IO_JSON_ARRAYS_H_
