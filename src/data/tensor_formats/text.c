// Numbers as text, in the type and shape of the value that they are for.

#include "io/text.h"

#include "data/tensor_formats/tensor_format.h"

static bool is_text(const assay_tensor_file_t* f) {
  return f->mapping && assay_text_is(f->data, f->size);
}

static assay_status_t read_text(const assay_tensor_file_t* f, assay_saved_t* out) {
  const assay_value_t* v;
  assay_tensor_t* t = NULL;
  int64_t dims[ASSAY_MAX_RANK] = {assay_text_count(f->data, f->size)};
  ASSAY_TRY(assay_tensor_file_value(f->request, &v));
  if (v) ASSAY_TRY(assay_tensor_file_settle(v, dims[0], dims));
  const int rank = v ? (v->type ? v->type : v->declared)->rank : 1;
  ASSAY_TRY(assay_text_parse(f->data, f->size, v ? assay_tensor_file_elem(v) : ASSAY_TYPE_DOUBLE,
                             rank, dims, &t));
  return assay_tensor_file_add(f, v, t, out);
}

static assay_status_t write_text(const char* path, const assay_saved_t* s, const char* runner,
                                 assay_str_t* notes) {
  assay_tensor_t* t = NULL;
  (void)runner, (void)notes;
  ASSAY_TRY(assay_tensor_file_single(s, "a text file", &t));
  return assay_text_write(path, t);
}

const assay_tensor_format_t assay_tensor_format_text = {.name = "text",
                                                        .listed = "text",
                                                        .endings = {".txt"},
                                                        .is = is_text,
                                                        .read = read_text,
                                                        .write = write_text};
