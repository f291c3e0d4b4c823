// Files of tensors, whatever their format: what --inputs and --golden take and --save-outputs
// writes.
#include "data/tensor_files.h"

#include <dirent.h>
#include <math.h>
#include <string.h>

#include "base/file.h"
#include "data/tensor_formats/tensor_format.h"

// ---- lists for messages -------------------------------------------------------------------------

assay_status_t assay_tensor_file_list(assay_str_t* out) {
  const size_t start = out->len;
  for (size_t i = 0; i < assay_tensor_format_count(); i++) {
    const char* name = assay_tensor_format_at(i)->listed;
    if (name) assay_str_printf(out, "%s%s", out->len > start ? ", " : "", name);
  }
  return assay_str_status(out);
}

// "input_0.pb, inputs.npz, Polygraphy's JSON ...": what folders are told by.
static void list_folders(bool outputs, assay_str_t* out) {
  for (size_t i = 0; i < assay_tensor_format_count(); i++) {
    const char* const* holds = assay_tensor_format_at(i)->folder;
    const char* name = outputs && holds[1] ? holds[1] : holds[0];
    if (name) assay_str_printf(out, "%s%s", out->len ? ", " : "", name);
  }
}

// "npz, npy or safetensors" of the formats of which a folder has a file a sample.
static void list_in_samples(assay_str_t* out) {
  for (size_t i = 0; i < assay_tensor_format_count(); i++) {
    const assay_tensor_format_t* t = assay_tensor_format_at(i);
    if (t->in_sample_folders) assay_str_printf(out, "%s%s", out->len ? ", " : "", t->listed);
  }
}

// ---- reading ------------------------------------------------------------------------------------

static assay_status_t unknown(const assay_tensor_file_t* f) {
  assay_str_t formats = {0}, samples = {0};
  if (f->mapping) {
    assay_status_free(assay_tensor_file_list(&formats));
  } else {
    list_folders(f->request->outputs, &formats);
    list_in_samples(&samples);
  }
  assay_status_t st = assay_str_status(&formats);
  if (!st) st = assay_str_status(&samples);
  if (!st && f->mapping)
    st =
        ASSAY_ERROR(ASSAY_UNSUPPORTED, "it is in no format that can be read; save it as one of: %s",
                    assay_str_get(&formats));
  else if (!st)
    st = ASSAY_ERROR(ASSAY_UNSUPPORTED, "the folder holds none of: %s, and no file a sample (%s)",
                     assay_str_get(&formats), assay_str_get(&samples));
  assay_str_deinit(&formats);
  assay_str_deinit(&samples);
  return st;
}

static assay_status_t read_file(const assay_tensor_file_t* f, assay_saved_t* out) {
  const assay_tensor_format_t* format = assay_tensor_format_of(f);
  if (!format) return unknown(f);
  ASSAY_TRY(format->read(f, out));
  if (out->results && !f->request->outputs)
    return ASSAY_ERROR(
        ASSAY_INVALID_ARGUMENT,
        "it holds the results of a run, not inputs; 'polygraphy data merge' (or 'data "
        "to-input') makes inputs of them");
  return NULL;
}

assay_status_t assay_tensor_file_read(const assay_tensor_request_t* request, assay_saved_t* out) {
  assay_tensor_file_t f = {.request = request};
  assay_saved_t saved = {0};
  DIR* folder = opendir(request->path);
  if (folder)
    closedir(folder);
  else
    ASSAY_TRY(assay_mapping_open(request->path, &f.mapping));
  if (f.mapping) {
    f.data = assay_mapping_data(f.mapping);
    f.size = assay_mapping_size(f.mapping);
  }
  assay_status_t st = read_file(&f, &saved);
  assay_mapping_release(f.mapping);
  // Readers that open the file themselves have named it.
  if (st && !strstr(assay_status_message(st), request->path))
    st = assay_status_note(st, "'%s'", request->path);
  if (st) return assay_saved_deinit(&saved), st;
  *out = saved;
  return NULL;
}

// ---- reading all runners ------------------------------------------------------------------------

// Polygraphy's JSON, whoever's results it holds. False: it is something else.
static assay_status_t read_runners(const char* path, bool folder, assay_run_results_t* out,
                                   bool* is) {
  assay_tensor_file_t f = {0};
  assay_mapping_t* m = NULL;
  if (folder) {
    *is = assay_saved_is_folder(path);
    return *is ? assay_run_results_read_folder(path, out) : NULL;
  }
  ASSAY_TRY(assay_mapping_open(path, &m));
  f.data = assay_mapping_data(m);
  f.size = assay_mapping_size(m);
  *is = assay_tensor_file_is_json(&f);
  assay_status_t st = *is ? assay_run_results_parse_json(f.data, f.size, out) : NULL;
  assay_mapping_release(m);
  return assay_status_note(st, "'%s'", path);
}

static assay_status_t as_runner(const assay_tensor_request_t* r, const assay_saved_t* saved,
                                assay_run_results_t* out) {
  const char* slash = strrchr(r->path, '/');
  assay_runner_results_t* runner = NULL;
  out->inputs = !r->outputs;
  ASSAY_TRY(assay_run_results_add(out,
                                  !r->outputs         ? ""
                                  : slash && slash[1] ? slash + 1
                                                      : r->path,
                                  &runner));
  for (size_t i = 0; i < saved->n; i++) {
    assay_set_t* run = NULL;
    ASSAY_TRY(assay_runner_results_add(runner, (double)NAN, &run));
    for (size_t k = 0; k < saved->runs[i].n; k++)
      ASSAY_TRY(assay_set_add(run, saved->runs[i].names[k],
                              assay_tensor_retain(saved->runs[i].tensors[k])));
  }
  return NULL;
}

assay_status_t assay_tensor_file_read_all(const assay_tensor_request_t* request,
                                          assay_run_results_t* out) {
  DIR* folder = opendir(request->path);
  assay_run_results_t r = {0};
  assay_saved_t saved = {0};
  bool is = false;
  assay_status_t st = read_runners(request->path, folder != NULL, &r, &is);
  if (folder) closedir(folder);
  // Outputs without a runner's name, as trtexec's JSON has them.
  const bool nameless = !st && is && request->outputs && r.inputs;
  if (!st && (!is || nameless)) {
    if (nameless) assay_run_results_deinit(&r);
    st = assay_tensor_file_read(request, &saved);
    if (!st) st = as_runner(request, &saved, &r);
  }
  assay_saved_deinit(&saved);
  if (st) return assay_run_results_deinit(&r), st;
  *out = r;
  return NULL;
}

// ---- writing ------------------------------------------------------------------------------------

static bool is_written_as(const assay_tensor_format_t* t, const char* path) {
  for (int e = 0; t->write && e < ASSAY_TENSOR_ENDINGS && t->endings[e]; e++)
    if (assay_ends_with(path, t->endings[e])) return true;
  return false;
}

// Names without any ending are npz.
static const assay_tensor_format_t* writer_of(const char* path) {
  const char* slash = strrchr(path, '/');
  const char* name = slash ? slash + 1 : path;
  if (*name && !strchr(name, '.')) path = ".npz";
  for (size_t i = 0; i < assay_tensor_format_count(); i++)
    if (is_written_as(assay_tensor_format_at(i), path)) return assay_tensor_format_at(i);
  return NULL;
}

assay_status_t assay_tensor_file_list_endings(assay_str_t* out) {
  const size_t start = out->len;
  for (size_t i = 0; i < assay_tensor_format_count(); i++) {
    const assay_tensor_format_t* t = assay_tensor_format_at(i);
    for (int e = 0; t->write && e < ASSAY_TENSOR_ENDINGS && t->endings[e]; e++)
      assay_str_printf(out, "%s%s", out->len > start ? ", " : "", t->endings[e]);
  }
  return assay_str_status(out);
}

assay_status_t assay_tensor_file_check_name(const char* path) {
  assay_str_t endings = {0};
  if (writer_of(path)) return NULL;
  assay_status_t st = assay_tensor_file_list_endings(&endings);
  if (!st)
    st = ASSAY_ERROR(
        ASSAY_INVALID_ARGUMENT,
        "'%s': the end of a name says the format; it is one of %s (a folder), or there is "
        "none: npz",
        path, assay_str_get(&endings));
  assay_str_deinit(&endings);
  return st;
}

assay_status_t assay_tensor_file_write(const char* path, assay_saved_t* s, const char* runner,
                                       assay_str_t* notes) {
  const assay_tensor_format_t* format = writer_of(path);
  ASSAY_TRY(assay_tensor_file_check_name(path));
  if (format->keeps_runs) return format->write(path, s, runner, notes);
  assay_saved_t one = {0};
  assay_set_t* run = NULL;
  one.compress = s->compress;
  one.about = s->about;
  s->about = (assay_str_t){0};
  assay_status_t st = assay_saved_add_run(&one, &run);
  if (!st && s->n) st = assay_saved_join(s, run);
  if (!st) st = format->write(path, &one, runner, notes);
  assay_saved_deinit(&one);
  return assay_status_note(st, "'%s'", path);
}
