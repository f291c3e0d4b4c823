// What several verbs take: input files.
#include "cli/inputs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/shown.h"
#include "data/tensor_files.h"

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
                                assay_tensor_reading_t* reading, assay_saved_t* out) {
  const assay_graph_t* g = m->graph;
  const assay_value_t* v;
  assay_tensor_request_t request = {NULL, g->inputs, g->n_inputs, false, reading};
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

static assay_status_t add_arrays(const assay_set_t* from, assay_set_t* to) {
  for (size_t i = 0; i < from->n; i++)
    ASSAY_TRY(assay_set_add(to, from->names[i], assay_tensor_retain(from->tensors[i])));
  return NULL;
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
    ASSAY_TRY(add_arrays(&from->runs[i], run));
  }
  if (again) return NULL;
  for (bool single = to->n <= 1; single && to->n < from->n;) {
    ASSAY_TRY(assay_saved_add_run(to, &run));
    if (to->n > 1) ASSAY_TRY(add_arrays(&to->runs[0], run));
  }
  if (from->n != to->n && from->n != 1)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "'%s' holds %zu iterations, the files before it %zu",
                       text, from->n, to->n);
  for (size_t i = 0; i < to->n; i++)
    ASSAY_TRY(add_arrays(&from->runs[from->n == 1 ? 0 : i], &to->runs[i]));
  return NULL;
}

static assay_status_t read_all(const opt_list_t* files, const assay_model_t* model,
                               assay_tensor_reading_t* reading, assay_saved_t* out) {
  assay_status_t st = NULL;
  for (size_t i = 0; !st && i < files->n; i++) {
    assay_saved_t one = {0};
    st = read_runs(files->items[i], model, reading, &one);
    if (!st) st = merge(files->items[i], &one, out);
    assay_saved_deinit(&one);
  }
  if (!st && reading) st = assay_tensor_files_retype(reading, out);
  if (st) assay_saved_deinit(out);
  return st;
}

assay_status_t cli_join_golden(assay_saved_t* runs, assay_set_t* out) {
  assay_set_t set = {0};
  assay_status_t st = assay_saved_join(runs, &set);
  if (assay_status_code(st) == ASSAY_INVALID_ARGUMENT) {
    assay_status_free(st);
    st = add_arrays(&runs->runs[0], &set);
  }
  if (st) return assay_set_deinit(&set), st;
  *out = set;
  return NULL;
}

assay_status_t cli_read_golden(const char* path, const assay_model_t* model,
                               assay_tensor_reading_t* reading, assay_saved_t* out_runs,
                               assay_set_t* out_set) {
  const assay_graph_t* g = model->graph;
  const assay_tensor_request_t request = {path, g->outputs, g->n_outputs, true, reading};
  assay_saved_t runs = {0};
  assay_set_t set = {0};
  ASSAY_TRY(assay_tensor_file_read(&request, &runs));
  assay_status_t st = reading ? assay_tensor_files_retype(reading, &runs) : NULL;
  if (st) return assay_saved_deinit(&runs), assay_status_note(st, "'%s'", path);
  st = cli_join_golden(&runs, &set);
  if (st) return assay_saved_deinit(&runs), assay_status_note(st, "'%s'", path);
  *out_runs = runs;
  *out_set = set;
  return NULL;
}

const char* cli_misspelt_text(const assay_set_t* set, const assay_graph_t* g, char* out,
                              size_t size) {
  *out = 0;
  for (size_t k = 0; k < set->n; k++) {
    assay_nearest_t near = {.wanted = set->names[k]};
    bool is_output = false;
    for (size_t i = 0; i < g->n_outputs; i++) {
      is_output |= strcmp(g->outputs[i]->name, set->names[k]) == 0;
      if (!assay_set_find(set, g->outputs[i]->name))
        assay_nearest_offer(&near, g->outputs[i]->name);
    }
    const char* best = is_output ? NULL : assay_nearest_best(&near);
    if (!best) continue;
    snprintf(out, size, "; did you mean '%.200s' by '%.200s'?", best, set->names[k]);
    break;
  }
  return out;
}

assay_status_t cli_golden_samples(const assay_saved_t* runs, const assay_set_t* set,
                                  const assay_graph_t* g, size_t n_inputs, assay_samples_t* out) {
  return runs->n > 1 && runs->n == n_inputs
             ? assay_samples_from_runs(runs, g->outputs, g->n_outputs, false, out)
             : assay_samples_from_set(set, g->outputs, g->n_outputs, false, out);
}

// Said before anything else: what a model makes of such numbers may be anything.
static void warn_of_unfinite(const assay_samples_t* s, const assay_graph_t* g) {
  assay_str_t text = {0};
  assay_samples_describe_unfinite(s, g->inputs, g->n_inputs, &text);
  if (text.len)
    assay_print(
        stderr,
        "assay: the inputs are not finite: %s; outputs that follow from them show no accuracy\n",
        assay_str_get(&text));
  assay_str_deinit(&text);
}

assay_status_t cli_samples_given(const opt_list_t* files, const assay_model_t* model,
                                 assay_tensor_reading_t* reading, bool required,
                                 assay_samples_t* out) {
  const assay_graph_t* g = model->graph;
  assay_saved_t runs = {0};
  if (!files->n) return NULL;
  assay_status_t st = read_all(files, model, reading, &runs);
  if (!st) st = assay_samples_from_runs(&runs, g->inputs, g->n_inputs, required, out);
  if (!st && out->notes.len) fputs(assay_str_get(&out->notes), stderr);
  if (!st) warn_of_unfinite(out, g);
  assay_saved_deinit(&runs);
  return st;
}

assay_status_t cli_samples(const opt_list_t* files, const assay_model_t* model,
                           assay_tensor_reading_t* reading, uint64_t seed, assay_samples_t* out) {
  const assay_graph_t* g = model->graph;
  bool any = false;
  if (files->n) return cli_samples_given(files, model, reading, true, out);
  for (size_t i = 0; i < g->n_inputs; i++) any |= !g->inputs[i]->constant;
  if (any)
    ASSAY_TRY(cli_shapes_tell_ones(
        model,
        "assay: no inputs given: random ones are used, which show no accuracy on real data "
        "(ranges, masks and indices differ)"));
  return assay_samples_generate(model, seed, out);
}
