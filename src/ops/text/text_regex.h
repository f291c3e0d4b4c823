// Regular expressions in the syntax of RE2, which is what ONNX's text operators are defined by.
//
// PCRE2 does the matching, with its automaton that tries all alternatives at once, so that no
// pattern takes exponential time. What PCRE2 knows and RE2 does not is refused, and what the two
// read differently (\s, \v, \z, $, {,n}) is rewritten.
#ifndef ASSAY_OPS_TEXT_TEXT_REGEX_H_
#define ASSAY_OPS_TEXT_TEXT_REGEX_H_

#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"

typedef struct assay_regex assay_regex_t;

// Errors: INVALID_ARGUMENT says what is wrong with the pattern and where.
assay_status_t assay_regex_create(const char* pattern, size_t len,
                                  assay_regex_t** out) ASSAY_MUST_USE;
void assay_regex_destroy(assay_regex_t* r);  // NULL is allowed

// Whether the whole text matches. Text that is not UTF-8 never does.
// Errors: UNSUPPORTED  the match takes more steps than are allowed
assay_status_t assay_regex_full_match(assay_regex_t* r, const char* text, size_t len,
                                      bool* out) ASSAY_MUST_USE;
// The leftmost, and there the longest, match from position `from` on. Text that is not UTF-8 has
// none.
assay_status_t assay_regex_search(assay_regex_t* r, const char* text, size_t len, size_t from,
                                  bool* out_found, size_t* out_start,
                                  size_t* out_end) ASSAY_MUST_USE;

#endif  // ASSAY_OPS_TEXT_TEXT_REGEX_H_
