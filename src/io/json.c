#include "io/json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"

assay_status_t assay_json_parse(const void* data, size_t size, json_t** out) {
  json_error_t error;
  json_t* j = json_loadb(data ? data : "", size, JSON_REJECT_DUPLICATES, &error);
  if (!j && json_error_code(&error) == json_error_out_of_memory) return assay_status_no_memory();
  if (!j)
    return ASSAY_ERROR(ASSAY_CORRUPT, "JSON: line %d, column %d: %s", error.line, error.column,
                       error.text);
  *out = j;
  return NULL;
}

assay_status_t assay_json_read(const char* path, json_t** out) {
  assay_mapping_t* m = NULL;
  ASSAY_TRY(assay_mapping_open(path, &m));
  assay_status_t st = assay_json_parse(assay_mapping_data(m), assay_mapping_size(m), out);
  assay_mapping_release(m);
  return assay_status_note(st, "'%s'", path);
}

json_t* assay_json_number(double x) {
  if (isnan(x)) return json_string("nan");
  if (isinf(x)) return json_string(x > 0 ? "inf" : "-inf");
  return json_real(x);
}

bool assay_json_get_number(const json_t* j, double* out) {
  if (json_is_number(j)) return *out = json_number_value(j), true;
  const char* s = json_string_value(j);
  if (!s) return false;
  if (strcmp(s, "nan") == 0) return *out = (double)NAN, true;
  if (strcmp(s, "inf") == 0) return *out = (double)INFINITY, true;
  if (strcmp(s, "-inf") == 0) return *out = -(double)INFINITY, true;
  return false;
}

assay_status_t assay_json_write(const char* path, const json_t* j, int indent) {
  char* text = json_dumps(j, JSON_ENCODE_ANY | JSON_REAL_PRECISION(17) |
                                 (indent > 0 ? JSON_INDENT((size_t)indent) : 0));
  if (!text) return assay_status_no_memory();
  assay_writer_t* w = NULL;
  assay_status_t st = assay_writer_open(path, &w);
  if (!st) st = assay_writer_write(w, text, strlen(text));
  if (!st) st = assay_writer_write(w, "\n", 1);
  if (!st) {
    st = assay_writer_commit(w);
    w = NULL;
  }
  assay_writer_abandon(w);
  free(text);
  return st;
}
