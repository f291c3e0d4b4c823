// The public face of what runs gave: include/assay/outputs.h.
#include <assay/outputs.h>
#include <string.h>

#include "base/alloc.h"
#include "data/tensor_files.h"
#include "io/safetensors.h"

struct assay_outputs {
  assay_saved_t runs;
  assay_set_t joined;
  assay_str_t notes, metadata;
};

assay_status_t assay_outputs_create(assay_outputs_t** out) { return ASSAY_NEW(out); }

void assay_outputs_destroy(assay_outputs_t* o) {
  if (!o) return;
  assay_saved_deinit(&o->runs);
  assay_set_deinit(&o->joined);
  assay_str_deinit(&o->notes);
  assay_str_deinit(&o->metadata);
  assay_free(o);
}

assay_status_t assay_outputs_begin_run(assay_outputs_t* o) {
  assay_set_t* run;
  return assay_saved_add_run(&o->runs, &run);
}

assay_status_t assay_outputs_add(assay_outputs_t* o, const char* name, assay_tensor_t* tensor) {
  if (!o->runs.n)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                       "outputs: '%s' is of no run; assay_outputs_begin_run() begins one", name);
  assay_set_t* run = &o->runs.runs[o->runs.n - 1];
  if (assay_set_find(run, name))
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "outputs: the run has '%s' already", name);
  return assay_set_add(run, name, assay_tensor_retain(tensor));
}

assay_status_t assay_outputs_set_metadata(assay_outputs_t* o, const char* json) {
  assay_str_t text = {0};
  if (json && *json) {
    ASSAY_TRY(assay_status_note(assay_safetensors_check_metadata(json), "metadata of outputs"));
    assay_str_append(&text, json);
  }
  assay_status_t st = assay_str_status(&text);
  if (st) return assay_str_deinit(&text), st;
  assay_str_deinit(&o->metadata);
  o->metadata = text;
  return NULL;
}

// The runs once more, of the same tensors: joining and writing empties what it is given.
static assay_status_t copy_runs(const assay_saved_t* from, assay_saved_t* out) {
  for (size_t r = 0; r < from->n; r++) {
    assay_set_t* run = NULL;
    ASSAY_TRY(assay_saved_add_run(out, &run));
    for (size_t i = 0; i < from->runs[r].n; i++)
      ASSAY_TRY(assay_set_add(run, from->runs[r].names[i],
                              assay_tensor_retain(from->runs[r].tensors[i])));
  }
  return NULL;
}

assay_status_t assay_outputs_join(assay_outputs_t* o) {
  assay_saved_t runs = {0};
  assay_set_t joined = {0};
  assay_status_t st = copy_runs(&o->runs, &runs);
  if (!st) st = assay_saved_join(&runs, &joined);
  assay_saved_deinit(&runs);
  if (st) return assay_set_deinit(&joined), st;
  assay_set_deinit(&o->joined);
  o->joined = joined;
  return NULL;
}

size_t assay_outputs_joined_count(const assay_outputs_t* o) { return o->joined.n; }

const char* assay_outputs_joined_name(const assay_outputs_t* o, size_t i) {
  return i < o->joined.n ? o->joined.names[i] : NULL;
}

assay_tensor_t* assay_outputs_joined_tensor(const assay_outputs_t* o, size_t i) {
  return i < o->joined.n ? o->joined.tensors[i] : NULL;
}

assay_status_t assay_outputs_check_path(const char* path) {
  return assay_tensor_file_check_name(path);
}

static assay_status_t save(assay_outputs_t* from, const char* path,
                           const assay_outputs_options_t* o) {
  assay_saved_t runs = {.compress = o->compress};
  assay_str_t* notes = &from->notes;
  ASSAY_TRY(assay_tensor_file_check_name(path));
  if (o->compress && !assay_ends_with(path, ".npz"))
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "outputs: only .npz is compressed; the path is '%s'",
                       path);
  assay_str_append(&runs.about, assay_str_get(&from->metadata));
  assay_status_t st = assay_str_status(&runs.about);
  if (!st) st = copy_runs(&from->runs, &runs);
  if (!st && o->raw_bits) st = assay_tensor_files_raw_bits(&runs);
  if (!st) st = assay_tensor_file_write(path, &runs, "assay", notes);
  assay_saved_deinit(&runs);
  return st ? st : assay_str_status(notes);
}

assay_status_t assay_outputs_save(assay_outputs_t* outputs, const char* path,
                                  const assay_outputs_options_t* options) {
  assay_outputs_options_t o = ASSAY_OUTPUTS_OPTIONS_INIT;
  if (options)  // an older caller's struct may be shorter
    memcpy(&o, options, options->struct_size < sizeof o ? options->struct_size : sizeof o);
  assay_str_deinit(&outputs->notes);
  return save(outputs, path, &o);
}

const char* assay_outputs_notes(const assay_outputs_t* o) { return assay_str_get(&o->notes); }
