// How results of the public API hand over their reports: include/assay/report.h.
#include "report/report_public.h"

#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "io/json.h"

assay_status_t assay_report_collect(void* user, const char* data, size_t size) {
  char** out = user;
  assay_str_t text = {0};
  assay_str_append_n(&text, data, size);
  return assay_str_take(&text, out);
}

assay_status_t assay_report_to_file(void* user, const char* data, size_t size) {
  const char* const* path = user;
  return assay_file_write(*path, data, size);
}

void assay_report_options_read(const void* options, size_t struct_size, void* full,
                               size_t full_size) {
  if (options) memcpy(full, options, struct_size < full_size ? struct_size : full_size);
}

assay_status_t assay_report_want_kind(assay_report_kind_t kind, const char* what) {
  if ((unsigned)kind > ASSAY_REPORT_PAGE)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                       "report kind %d does not exist; use one of assay_report_kind_t", (int)kind);
  if (!what || kind != ASSAY_REPORT_PAGE) return NULL;
  return ASSAY_ERROR(ASSAY_UNSUPPORTED,
                     "%s have no page; ask for ASSAY_REPORT_TEXT or ASSAY_REPORT_JSON", what);
}

assay_status_t assay_report_print(assay_status_t made, json_t* take_json, assay_str_t* out) {
  if (made) return json_decref(take_json), made;
  assay_json_print(take_json, 1, out);
  json_decref(take_json);
  return assay_str_status(out);
}

assay_status_t assay_report_deliver(assay_status_t made, assay_str_t* take_text,
                                    assay_report_fn_t* write, void* user) {
  assay_status_t st = made ? made : assay_str_status(take_text);
  if (!st) st = write(user, assay_str_get(take_text), take_text->len);
  assay_str_deinit(take_text);
  return st;
}
