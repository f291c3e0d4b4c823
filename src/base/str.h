// Growing strings and a map from strings to numbers.
#ifndef ASSAY_BASE_STR_H_
#define ASSAY_BASE_STR_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

// A string that grows. Appending never returns an error; `failed` keeps it, so that a long text can
// be written without a check at every step and checked once at the end with assay_str_status().
typedef struct assay_str {
  char* text;  // NUL-terminated once something was appended; NULL before
  size_t len, capacity;
  bool failed;  // out of memory
} assay_str_t;

void assay_str_deinit(assay_str_t* s);
void assay_str_append(assay_str_t* s, const char* text);
void assay_str_append_n(assay_str_t* s, const char* text, size_t n);
void assay_str_printf(assay_str_t* s, const char* format, ...) ASSAY_PRINTF(2, 3);
const char* assay_str_get(const assay_str_t* s);  // "" if nothing was appended
assay_status_t assay_str_status(const assay_str_t* s) ASSAY_MUST_USE;
// Hands the text over, never NULL (assay_free), and leaves the string empty, also on failure.
assay_status_t assay_str_take(assay_str_t* s, char** out) ASSAY_MUST_USE;

// Shell wildcards: `*` matches any text ('/' too), `?` one character, `[a-z]` and `[!a-z]` one of
// a set, `\` escapes. Matches the whole of `text`.
bool assay_glob_match(const char* pattern, const char* text);
bool assay_ends_with(const char* text, const char* end);

// A hash map from strings to numbers. Keys are borrowed and must outlive the map.
typedef struct assay_map {
  struct assay_map_entry* entries;
  size_t capacity, len;
} assay_map_t;

void assay_map_deinit(assay_map_t* m);
// Sets the value of a key; *out_old (may be NULL) tells whether it was there already.
assay_status_t assay_map_put(assay_map_t* m, const char* key, uint64_t value,
                             bool* out_old) ASSAY_MUST_USE;
bool assay_map_get(const assay_map_t* m, const char* key, uint64_t* out);  // out may be NULL
void assay_map_remove(assay_map_t* m, const char* key);

#endif  // ASSAY_BASE_STR_H_
