// Engines that are not ours: a command that is run, or files that one has left.
#include "account/engine.h"

#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/process.h"
#include "base/shell.h"
#include "base/shown.h"
#include "io/npz.h"

struct assay_external_engine {
  const assay_model_t* model;
  assay_external_engine_command_t how;  // command NULL: files
  const assay_samples_t* inputs;
  const assay_name_map_t* names;
  assay_value_t** values;  // that every sample gives
  size_t n_values;
  bool* holds;            // by value id
  assay_samples_t* runs;  // each of one sample or more, of `values`; let go of once fetched
  size_t n_runs;
  assay_recorded_t recorded;
  assay_str_t notes;
};

// ---- what an engine gave, by value ------------------------------------------------------------

static bool is_held(const assay_value_t* v) { return v && v->producer && !v->constant; }

// The array of a value: under the name that the map gives it, its own, or that with '|' for '/'.
static assay_tensor_t* find_array(const assay_external_engine_t* e, const assay_set_t* set,
                                  const char* name) {
  assay_tensor_t* t = NULL;
  for (size_t i = 0; !t && i < e->names->n; i++)
    if (strcmp(e->names->to[i], name) == 0) t = assay_set_find(set, e->names->from[i]);
  if (!t) t = assay_set_find(set, name);
  if (t || !strchr(name, '/')) return t;
  for (size_t i = 0; i < set->n; i++) {
    const char *a = set->names[i], *b = name;
    while (*a && (*a == *b || (*a == '|' && *b == '/'))) a++, b++;
    if (!*a && !*b) return set->tensors[i];
  }
  return NULL;
}

static bool is_mapped(const assay_external_engine_t* e, const char* name) {
  for (size_t i = 0; i < e->names->n; i++)
    if (strcmp(e->names->from[i], name) == 0) return true;
  return false;
}

// The values of the top graph that nodes make and a set holds. Names that are none are told.
static assay_status_t find_values(assay_external_engine_t* e, const assay_set_t* set) {
  const assay_graph_t* g = e->model->graph;
  size_t n = 0, unknown = 0;
  const char* first = "";
  ASSAY_TRY(assay_name_map_check(e->names, set, e->model));
  for (size_t i = 0; i < g->n_nodes; i++) n += g->nodes[i]->n_outputs;
  ASSAY_TRY(assay_new_array(n, sizeof *e->values, &e->values));
  for (size_t i = 0; i < g->n_nodes; i++)
    for (size_t o = 0; o < g->nodes[i]->n_outputs; o++) {
      assay_value_t* v = g->nodes[i]->outputs[o];
      if (!is_held(v) || !find_array(e, set, v->name)) continue;
      e->values[e->n_values++] = v;
      e->holds[v->id] = true;
    }
  for (size_t i = 0; i < set->n; i++) {
    const assay_value_t* v = assay_graph_find(g, set->names[i]);
    if (v || strchr(set->names[i], '|') || is_mapped(e, set->names[i])) continue;
    if (!unknown++) first = set->names[i];
  }
  if (unknown)
    assay_str_printf(&e->notes, "note: %zu %s of the engine's '%s'%s %s of the model\n", unknown,
                     unknown == 1 ? "array" : "arrays", first, unknown == 1 ? "" : " and others",
                     unknown == 1 ? "is not a value" : "are not values");
  for (size_t i = 0; i < g->n_outputs; i++) {
    const assay_value_t* v = g->outputs[i];
    if (!is_held(v) || e->holds[v->id]) continue;
    if (v->type && v->type->kind != ASSAY_KIND_TENSOR)
      assay_str_printf(&e->notes, "note: output '%s' is not a tensor and is not checked\n",
                       v->name);
    else
      return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "the engine's outputs lack '%s'%s", v->name,
                         ASSAY_SET_NEAR_TEXT(set, v->name));
  }
  return assay_str_status(&e->notes);
}

// A set under the model's names, with each of the engine's values.
static assay_status_t named(const assay_external_engine_t* e, const assay_set_t* set,
                            assay_set_t* out) {
  for (size_t i = 0; i < e->n_values; i++) {
    assay_tensor_t* t = find_array(e, set, e->values[i]->name);
    if (!t)
      return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                         "the engine's outputs lack '%s', which those of the first sample have",
                         e->values[i]->name);
    ASSAY_TRY(assay_set_add(out, e->values[i]->name, assay_tensor_retain(t)));
  }
  return NULL;
}

// Samples of one set: types are converted, shapes must be those of the model.
static assay_status_t take_set(assay_external_engine_t* e, const assay_set_t* set,
                               assay_samples_t* out) {
  assay_set_t mine = {0};
  assay_status_t st = named(e, set, &mine);
  if (!st)
    st = assay_status_note(assay_samples_from_set(&mine, e->values, e->n_values, false, out),
                           "the engine's outputs");
  assay_set_deinit(&mine);
  return st;
}

static assay_status_t fetch(void* user, size_t k, assay_tensor_t** out);

static assay_status_t make(const assay_model_t* model, size_t n_runs, const assay_name_map_t* names,
                           assay_external_engine_t** out) {
  assay_external_engine_t* e = NULL;
  ASSAY_TRY(ASSAY_NEW(&e));
  e->model = model;
  e->names = names;
  assay_status_t st = assay_new_array((size_t)model->n_values, sizeof *e->holds, &e->holds);
  if (!st) st = assay_new_array(n_runs, sizeof *e->runs, &e->runs);
  if (st) return assay_external_engine_destroy(e), st;
  e->n_runs = n_runs;
  e->recorded = (assay_recorded_t){.holds = e->holds, .fetch = fetch, .user = e};
  *out = e;
  return NULL;
}

void assay_external_engine_destroy(assay_external_engine_t* e) {
  if (!e) return;
  for (size_t i = 0; i < e->n_runs; i++) assay_samples_deinit(&e->runs[i]);
  assay_free(e->runs);
  assay_free(e->values);
  assay_free(e->holds);
  assay_str_deinit(&e->notes);
  assay_free(e);
}

const assay_recorded_t* assay_external_engine_recorded(const assay_external_engine_t* e) {
  return &e->recorded;
}
const char* assay_external_engine_notes(const assay_external_engine_t* e) {
  return assay_str_get(&e->notes);
}

// ---- running a command ------------------------------------------------------------------------

// The command line with what stands for its placeholders.
static assay_status_t fill_in(const assay_external_engine_command_t* how, const char* inputs,
                              const char* outputs, assay_str_t* out) {
  const struct {
    const char *name, *value;
  } places[] = {{"{model}", how->model},
                {"{inputs}", inputs},
                {"{outputs}", outputs},
                {"{precision}", how->precision}};
  for (const char* c = how->command; *c;) {
    size_t k = 0, n = sizeof places / sizeof *places;
    while (k < n && strncmp(c, places[k].name, strlen(places[k].name)) != 0) k++;
    if (k == n) {
      assay_str_append_n(out, c++, 1);
      continue;
    }
    assay_shell_quote(out, places[k].value);
    c += strlen(places[k].name);
  }
  return assay_str_status(out);
}

static assay_status_t write_inputs(const assay_external_engine_t* e, size_t k, const char* path) {
  const assay_graph_t* g = e->model->graph;
  assay_tensor_t* const* at = assay_samples_get(e->inputs, k);
  assay_set_t set = {0};
  assay_status_t st = NULL;
  for (size_t i = 0; !st && i < g->n_inputs; i++) {
    if (!at[i]) continue;
    if (at[i]->kind != ASSAY_KIND_TENSOR)
      st = ASSAY_ERROR(ASSAY_UNSUPPORTED, "input '%s' is not a tensor: npz cannot hold it",
                       g->inputs[i]->name);
    if (!st) st = assay_set_add(&set, g->inputs[i]->name, assay_tensor_retain(at[i]));
  }
  if (!st) st = assay_npz_write(path, &set, false);
  assay_set_deinit(&set);
  return st;
}

static assay_status_t run_in(const assay_external_engine_t* e, size_t k, const char* inputs,
                             const char* outputs, assay_set_t* out) {
  assay_str_t command = {0};
  assay_status_t st = write_inputs(e, k, inputs);
  if (!st) st = fill_in(&e->how, inputs, outputs, &command);
  if (!st) st = assay_process_run(assay_str_get(&command), e->how.seconds);
  assay_str_deinit(&command);
  if (!st && access(outputs, F_OK))
    st = ASSAY_ERROR(ASSAY_DEVICE, "ended well, but wrote no {outputs}");
  // The arrays stay readable when the file is gone: they are mapped.
  return st ? st : assay_npz_read(outputs, out);
}

// Runs the command on a sample, in a folder that lives as long as that.
static assay_status_t run_sample(const assay_external_engine_t* e, size_t k, assay_set_t* out) {
  assay_str_t folder = {0}, inputs = {0}, outputs = {0};
  assay_status_t st = assay_folder_make_temporary(&folder);
  if (st) return assay_str_deinit(&folder), st;
  assay_str_printf_raw(&inputs, "%s/inputs.npz", assay_str_get(&folder));
  assay_str_printf_raw(&outputs, "%s/outputs.npz", assay_str_get(&folder));
  st = assay_str_status(&inputs);
  if (!st) st = assay_str_status(&outputs);
  if (!st) st = run_in(e, k, assay_str_get(&inputs), assay_str_get(&outputs), out);
  assay_folder_remove_temporary(assay_str_get(&folder));
  assay_str_deinit(&folder);
  assay_str_deinit(&inputs);
  assay_str_deinit(&outputs);
  return st;
}

// What a command gives is its fault: not that of the user's files.
static assay_status_t of_engine(assay_status_t st, size_t sample) {
  if (!st || assay_status_code(st) == ASSAY_NO_MEMORY) return st;
  assay_status_t mine =
      ASSAY_ERROR(ASSAY_DEVICE, "--exec, sample %zu: %s", sample, assay_status_message(st));
  assay_status_free(st);
  return mine;
}

static assay_status_t run_command(assay_external_engine_t* e, size_t k) {
  assay_set_t set = {0};
  assay_status_t st = run_sample(e, k, &set);
  if (!st && !e->values) st = find_values(e, &set);
  if (!st) st = take_set(e, &set, &e->runs[k]);
  if (!st && e->runs[k].n != 1)
    st = ASSAY_ERROR(ASSAY_DEVICE, "the engine's outputs are those of %zu samples", e->runs[k].n);
  assay_set_deinit(&set);
  return of_engine(st, k);
}

// ---- samples ----------------------------------------------------------------------------------

// A tensor for each value of sample k. A file may hold them in one run, or one a run.
static assay_status_t fetch(void* user, size_t k, assay_tensor_t** out) {
  assay_external_engine_t* e = user;
  const bool joined = !e->how.command && e->n_runs == 1;
  assay_samples_t* run = &e->runs[joined ? 0 : k];
  if (e->how.command && !run->at) ASSAY_TRY(run_command(e, k));
  assay_tensor_t* const* at = assay_samples_get(run, joined && run->n > 1 ? k : 0);
  for (size_t i = 0; i < e->n_values; i++) out[e->values[i]->id] = assay_tensor_retain(at[i]);
  // The first one's may be asked for again.
  if (e->how.command && k) assay_samples_deinit(run);
  return NULL;
}

assay_status_t assay_external_engine_run(const assay_model_t* model,
                                         const assay_external_engine_command_t* command,
                                         const assay_samples_t* inputs,
                                         const assay_name_map_t* names,
                                         assay_external_engine_t** out) {
  assay_external_engine_t* e = NULL;
  if (!strstr(command->command, "{outputs}") || !strstr(command->command, "{inputs}"))
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                       "the command needs {inputs} and {outputs}: the files that it is to read and "
                       "to write");
  ASSAY_TRY(make(model, inputs->n, names, &e));
  e->how = *command;
  e->inputs = inputs;
  assay_status_t st = run_command(e, 0);
  if (st) return assay_external_engine_destroy(e), st;
  *out = e;
  return NULL;
}

static assay_status_t take_file(assay_external_engine_t* e, const assay_saved_t* saved, size_t n) {
  ASSAY_TRY(find_values(e, &saved->runs[0]));
  for (size_t i = 0; i < saved->n; i++) {
    ASSAY_TRY(take_set(e, &saved->runs[i], &e->runs[i]));
    assay_str_append(&e->notes, assay_str_get(&e->runs[i].notes));
  }
  const size_t held = saved->n > 1 ? saved->n : e->runs[0].n;
  if (held != n || (saved->n > 1 && e->runs[0].n != 1))
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "it holds %zu samples, the inputs %zu", held, n);
  return assay_str_status(&e->notes);
}

assay_status_t assay_external_engine_read(const assay_model_t* model, const char* path,
                                          assay_tensor_reading_t* reading, size_t n,
                                          const assay_name_map_t* names,
                                          assay_external_engine_t** out) {
  assay_saved_t saved = {0};
  assay_external_engine_t* e = NULL;
  const assay_tensor_request_t request = {.path = path,
                                          .values = model->graph->outputs,
                                          .n_values = model->graph->n_outputs,
                                          .outputs = true,
                                          .reading = reading};
  ASSAY_TRY(assay_tensor_file_read(&request, &saved));
  assay_status_t st = reading ? assay_tensor_files_retype(reading, &saved) : NULL;
  if (!st) st = make(model, saved.n, names, &e);
  if (!st) st = take_file(e, &saved, n);
  assay_saved_deinit(&saved);
  if (st) return assay_external_engine_destroy(e), assay_status_note(st, "'%s'", path);
  *out = e;
  return NULL;
}
