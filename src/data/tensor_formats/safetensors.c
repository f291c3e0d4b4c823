// Hugging Face's file of named tensors.

#include "io/safetensors.h"

#include "data/tensor_formats/tensor_format.h"

static bool is_safetensors(const assay_tensor_file_t* f) {
  return assay_safetensors_is(f->data, f->size);
}

static assay_status_t read_safetensors(const assay_tensor_file_t* f, assay_saved_t* out) {
  assay_set_t* run = NULL;
  ASSAY_TRY(assay_saved_add_run(out, &run));
  return assay_safetensors_read(f->request->path, run, &out->about);
}

static assay_status_t write_safetensors(const char* path, const assay_saved_t* s,
                                        const char* runner, assay_str_t* notes) {
  (void)runner, (void)notes;
  return assay_safetensors_write(path, &s->runs[0], assay_str_get(&s->about));
}

const assay_tensor_format_t assay_tensor_format_safetensors = {.name = "safetensors",
                                                               .listed = "safetensors",
                                                               .endings = {".safetensors"},
                                                               .in_sample_folders = true,
                                                               .is = is_safetensors,
                                                               .read = read_safetensors,
                                                               .write = write_safetensors};
