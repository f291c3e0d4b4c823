// Several files as the runs of one model: which array is of which input, which file of which
// sample.
#include "data/sample_files.h"

#include <string.h>
#include <unistd.h>

#include "base/nearest.h"

// ---- arrays -------------------------------------------------------------------------------------

// The value that NAME of NAME=FILE is; NULL: it is a plain path. A file of that whole name comes
// first.
static assay_status_t split_name(const char* text, const assay_model_t* m,
                                 const assay_value_t** out, const char** out_path) {
  const char* equals = strchr(text, '=');
  char name[1024];
  *out = NULL;
  *out_path = text;
  if (!equals || access(text, F_OK) == 0) return NULL;
  if ((size_t)(equals - text) >= sizeof name)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "'%s': the name is too long", text);
  memcpy(name, text, (size_t)(equals - text));
  name[equals - text] = 0;
  *out = assay_graph_find(m->graph, name);
  *out_path = equals + 1;
  if (*out) return NULL;
  return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "'%s': the model has no such input%s", text,
                     ASSAY_VALUES_NEAR_TEXT(m->graph->inputs, m->graph->n_inputs, name));
}

// Of a file whose arrays have names of their own: the one that is called so, or the only one.
static assay_status_t take_named(const char* text, const char* name, assay_set_t* run) {
  assay_tensor_t* t = assay_set_find(run, name);
  if (!t && run->n == 1) t = run->tensors[0];
  if (!t)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                       "'%s': the file has %zu arrays, and none named '%s'%s", text, run->n, name,
                       ASSAY_SET_NEAR_TEXT(run, name));
  assay_set_t one = {0};
  ASSAY_TRY(assay_set_add(&one, name, assay_tensor_retain(t)));
  assay_set_deinit(run);
  *run = one;
  return NULL;
}

static assay_status_t read_runs(const char* text, const assay_model_t* m,
                                const assay_sample_files_t* files, assay_saved_t* out) {
  const assay_graph_t* g = m->graph;
  const assay_value_t* v = NULL;
  assay_tensor_reading_t* const reading = files->reading;
  assay_tensor_request_t request = {text, g->inputs, g->n_inputs, false, reading};
  if (files->outputs)
    request = (assay_tensor_request_t){text, g->outputs, g->n_outputs, true, reading};
  else
    ASSAY_TRY(split_name(text, m, &v, &request.path));
  assay_value_t* const value = (assay_value_t*)(uintptr_t)v;
  if (v) {
    request.values = &value;
    request.n_values = 1;
  }
  ASSAY_TRY(assay_tensor_file_read(&request, out));
  assay_status_t st = NULL;
  for (size_t i = 0; !st && v && i < out->n; i++) st = take_named(text, v->name, &out->runs[i]);
  if (reading && !reading->about.len) {
    const assay_str_t none = reading->about;
    reading->about = out->about;
    out->about = none;
  }
  if (st) assay_saved_deinit(out);
  return st;
}

// Whether a run has arrays of all these names already, or of none.
static assay_status_t find_names(const char* text, const assay_set_t* names, const assay_set_t* run,
                                 bool* out_all) {
  const char *has = NULL, *lacks = NULL;
  for (size_t i = 0; i < names->n; i++)
    *(assay_set_find(run, names->names[i]) ? &has : &lacks) = names->names[i];
  *out_all = has != NULL;
  if (!has || !lacks) return NULL;
  return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                     "'%s' has another array '%s', as the files before it have, and '%s', as they "
                     "have not: a file is one more sample, or more inputs of the same",
                     text, has, lacks);
}

// Adds the arrays of one file's runs to those of the files before. What has one run goes with every
// run of the others. A file of the same arrays again is of more samples.
static assay_status_t merge(const char* text, const assay_saved_t* from, assay_saved_t* to) {
  assay_set_t* run = NULL;
  bool again = false;
  if (to->n && from->n) ASSAY_TRY(find_names(text, &from->runs[0], &to->runs[0], &again));
  for (size_t i = 0; again && i < from->n; i++) {
    ASSAY_TRY(assay_saved_add_run(to, &run));
    ASSAY_TRY(assay_set_add_all(run, &from->runs[i]));
  }
  if (again) return NULL;
  for (bool single = to->n <= 1; single && to->n < from->n;) {
    ASSAY_TRY(assay_saved_add_run(to, &run));
    if (to->n > 1) ASSAY_TRY(assay_set_add_all(run, &to->runs[0]));
  }
  if (from->n != to->n && from->n != 1)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "'%s' holds %zu iterations, the files before it %zu",
                       text, from->n, to->n);
  for (size_t i = 0; i < to->n; i++)
    ASSAY_TRY(assay_set_add_all(&to->runs[i], &from->runs[from->n == 1 ? 0 : i]));
  return NULL;
}

assay_status_t assay_sample_files_read(const assay_sample_files_t* files,
                                       const assay_model_t* model, assay_saved_t* out) {
  assay_saved_t all = {0};
  assay_status_t st = NULL;
  for (size_t i = 0; !st && i < files->n; i++) {
    assay_saved_t one = {0};
    st = read_runs(files->names[i], model, files, &one);
    if (!st) st = merge(files->names[i], &one, &all);
    assay_saved_deinit(&one);
  }
  if (!st && files->reading) st = assay_tensor_files_retype(files->reading, &all);
  if (st) return assay_saved_deinit(&all), st;
  *out = all;
  return NULL;
}
