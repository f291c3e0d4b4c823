// JSON files: jansson with our errors and limits, and numbers that JSON does not have.
#ifndef ASSAY_IO_JSON_H_
#define ASSAY_IO_JSON_H_

#include <dirent.h>
#include <jansson.h>
#include <stdbool.h>

#include "base/str.h"

// Parses a whole text (UTF-8; duplicate keys are refused). The caller owns the result
// (json_decref).
assay_status_t assay_json_parse(const void* data, size_t size, json_t** out) ASSAY_MUST_USE;
// The same with NULs in strings, for files that keep bytes in them (json_string_length).
assay_status_t assay_json_parse_bytes(const void* data, size_t size, json_t** out) ASSAY_MUST_USE;
// The same with the words that C++ and Python write for what JSON has no numbers for (nan, NaN,
// inf, Infinity, -inf ...): they become the strings that assay_json_get_number reads.
assay_status_t assay_json_parse_python(const void* data, size_t size, json_t** out) ASSAY_MUST_USE;
assay_status_t assay_json_read(const char* path, json_t** out) ASSAY_MUST_USE;
// Whether an entry of a folder is such a file, by its name: for scandir().
int assay_json_is_file(const struct dirent* entry);

// A number; non-finite ones are the strings "nan", "inf", "-inf". NULL: no memory.
json_t* assay_json_number(double x);
// Whether it is such a number, and which.
bool assay_json_get_number(const json_t* j, double* out);

// Text of any bytes: what is not UTF-8 becomes U+FFFD, a byte at a time. NULL: no memory.
json_t* assay_json_text(const char* text);
// The same of a text that was put together. NULL: no memory, then or now.
json_t* assay_json_str(const assay_str_t* text);
// Adds to a list or an object, which is returned: NULL, and all freed, if either is NULL or there
// is no memory. So a tree can be built without a check at every step; what is missing shows at its
// root.
json_t* assay_json_push(json_t* list, json_t* take_item);
json_t* assay_json_put(json_t* object, const char* key, json_t* take_item);

// Appends it as text, indented by `indent` spaces (0: one line), with a line break at its end.
// Numbers have as many digits as they need to be read back.
void assay_json_print(const json_t* j, int indent, assay_str_t* out);
// Prints it, indented by one space, into a text that is handed over (assay_free). The tree is
// freed, also on failure; NULL: there was no memory for it.
assay_status_t assay_json_take(json_t* take, char** out) ASSAY_MUST_USE;
// Appends a text of any bytes as a JSON string.
void assay_json_quote(const char* text, assay_str_t* out);
// Writes a JSON value to a file.
assay_status_t assay_json_write(const char* path, const json_t* j, int indent) ASSAY_MUST_USE;

#endif  // ASSAY_IO_JSON_H_
