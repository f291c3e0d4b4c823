// ONNX's own: a TensorProto (or a sequence, a map) in a file, and folders of test data.

#include "base/alloc.h"
#include "data/tensor_formats/tensor_format.h"
#include "onnx/onnx.h"
#include "onnx/test_data.h"

// Which message it is only the value's type tells, so the name has to say that it is one.
static bool is_message(const assay_tensor_file_t* f) {
  return f->mapping && assay_ends_with(f->request->path, ".pb");
}

static assay_status_t read_message(const assay_tensor_file_t* f, assay_saved_t* out) {
  const assay_value_t* v;
  assay_tensor_t* t = NULL;
  ASSAY_TRY(assay_tensor_file_value(f->request, &v));
  ASSAY_TRY(assay_onnx_read_value(f->request->path, v ? v->declared : NULL, &t));
  return assay_tensor_file_add(f, v, t, out);
}

static assay_status_t write_message(const char* path, const assay_saved_t* s, const char* runner,
                                    assay_str_t* notes) {
  assay_tensor_t* t = NULL;
  (void)runner, (void)notes;
  ASSAY_TRY(assay_tensor_file_single(s, "a TensorProto", &t));
  return assay_onnx_write_value(path, t, s->runs[0].names[0]);
}

static bool is_test_data(const assay_tensor_file_t* f) {
  return !f->mapping &&
         assay_onnx_is_test_data(f->request->path, assay_tensor_file_stem(f->request));
}

static assay_status_t read_test_data(const assay_tensor_file_t* f, assay_saved_t* out) {
  const assay_tensor_request_t* r = f->request;
  assay_tensor_t** at = NULL;
  assay_set_t* run = NULL;
  if (!r->n_values)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                       "a folder of test data can be read with its model only");
  ASSAY_TRY(assay_saved_add_run(out, &run));
  ASSAY_TRY(assay_new_array(r->n_values, sizeof *at, &at));
  assay_status_t st =
      assay_onnx_read_test_data(r->path, assay_tensor_file_stem(r), r->values, r->n_values, at);
  for (size_t i = 0; i < r->n_values; i++) {
    if (!st && at[i]) st = assay_set_add(run, r->values[i]->name, assay_tensor_retain(at[i]));
    assay_tensor_release(at[i]);
  }
  assay_free(at);
  return st;
}

static assay_status_t write_test_data(const char* path, const assay_saved_t* s, const char* runner,
                                      assay_str_t* notes) {
  const assay_set_t* run = &s->runs[0];
  (void)notes;
  return assay_onnx_write_test_data(path, runner ? "output" : "input", run->n, run->tensors,
                                    (const char* const*)run->names);
}

const assay_tensor_format_t assay_tensor_format_message = {.name = "TensorProto",
                                                           .listed = ".pb",
                                                           .endings = {".pb"},
                                                           .is = is_message,
                                                           .read = read_message,
                                                           .write = write_message};

const assay_tensor_format_t assay_tensor_format_test_data = {
    .name = "ONNX test data",
    .listed = "test data",
    .folder = {"input_0.pb", "output_0.pb"},
    .endings = {"/"},
    .is = is_test_data,
    .read = read_test_data,
    .write = write_test_data};
