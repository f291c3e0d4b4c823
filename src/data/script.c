// The user's own judge of outputs: a command that reads them and says yes or no.
#include "data/script.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/process.h"
#include "base/shell.h"
#include "base/shown.h"
#include "io/npz.h"

bool assay_script_is_command(const char* text) { return strstr(text, "{outputs}") != NULL; }

// ---- arrays of all samples ----------------------------------------------------------------------

// Whether tensors can stand after each other along their first dimension.
static bool fit(const assay_tensor_t* a, const assay_tensor_t* b) {
  if (a->kind != ASSAY_KIND_TENSOR || b->kind != a->kind || a->type != b->type ||
      a->rank != b->rank || a->store == ASSAY_STORE_STR || a->store != b->store)
    return false;
  for (int i = 1; i < a->rank; i++)
    if (a->dims[i] != b->dims[i]) return false;
  return true;
}

static assay_status_t joined(size_t n, assay_tensor_t* const* at, assay_tensor_t** out) {
  int64_t dims[ASSAY_MAX_RANK] = {0};
  const int rank = at[0]->rank ? at[0]->rank : 1;
  memcpy(dims, at[0]->dims, (size_t)at[0]->rank * sizeof *dims);
  dims[0] = 0;
  for (size_t k = 0; k < n; k++) dims[0] += at[k]->rank ? at[k]->dims[0] : 1;
  ASSAY_TRY(assay_tensor_create(at[0]->type, rank, dims, out));
  char* to = (*out)->data;
  for (size_t k = 0; k < n; k++) {
    const size_t bytes = (size_t)at[k]->size * assay_store_elem_bytes(at[k]->store);
    if (bytes) memcpy(to, at[k]->data, bytes);
    to += bytes;
  }
  return NULL;
}

// Canonical tensors of one value, NULL where a sample has none.
static assay_status_t add_widened(assay_set_t* set, const char* name, size_t n,
                                  assay_tensor_t* const* at) {
  bool alike = true;
  for (size_t k = 1; k < n; k++) alike &= fit(at[0], at[k]);
  if (n == 1) return assay_set_add(set, name, assay_tensor_retain(at[0]));
  if (alike) {
    assay_tensor_t* all = NULL;
    ASSAY_TRY(joined(n, at, &all));
    return assay_set_add(set, name, all);
  }
  for (size_t k = 0; k < n; k++) {
    assay_str_t one = {0};
    assay_str_printf_raw(&one, "%s.%zu", name, k);
    assay_status_t st = assay_str_status(&one);
    if (!st) st = assay_set_add(set, assay_str_get(&one), assay_tensor_retain(at[k]));
    assay_str_deinit(&one);
    if (st) return st;
  }
  return NULL;
}

// The value number v of each sample, of arrays with n_values a sample. npz holds tensors only.
static assay_status_t add_value(assay_set_t* set, const char* name, size_t n, size_t n_values,
                                size_t v, assay_tensor_t* const* at) {
  assay_tensor_t** wide = NULL;
  ASSAY_TRY(assay_new_array(n, sizeof *wide, &wide));
  assay_status_t st = NULL;
  bool all = true;
  for (size_t k = 0; !st && k < n; k++) {
    assay_tensor_t* t = at[k * n_values + v];
    all &= t && t->kind == ASSAY_KIND_TENSOR;
    if (all) st = assay_tensor_widen(t, &wide[k]);
  }
  if (!st && all && n) st = add_widened(set, name, n, wide);
  for (size_t k = 0; k < n; k++) assay_tensor_release(wide[k]);
  assay_free(wide);
  return st;
}

static assay_status_t write_values(const char* path, assay_value_t* const* values, size_t n_values,
                                   size_t n, assay_tensor_t* const* at) {
  assay_set_t set = {0};
  assay_status_t st = NULL;
  for (size_t v = 0; !st && v < n_values; v++)
    st = add_value(&set, values[v]->name, n, n_values, v, at);
  if (!st) st = assay_npz_write(path, &set, false);
  assay_set_deinit(&set);
  return st;
}

// ---- files and the command ----------------------------------------------------------------------

enum { OUTPUTS, TRUTH, GOLDEN, INPUTS, FILES };
static const char* const places[FILES] = {"{outputs}", "{truth}", "{golden}", "{inputs}"};

static assay_status_t write_file(const assay_script_data_t* d, int which, const char* path) {
  const assay_graph_t* g = d->model->graph;
  switch (which) {
    case OUTPUTS:
      return write_values(path, g->outputs, g->n_outputs, d->inputs->n, d->engine);
    case TRUTH:
      return write_values(path, g->outputs, g->n_outputs, d->inputs->n, d->truth);
    case GOLDEN:
      if (d->golden && d->golden->n)
        return write_values(path, g->outputs, g->n_outputs, d->golden->n, d->golden->at);
      return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "{golden} needs --golden");
    default:
      return write_values(path, g->inputs, g->n_inputs, d->inputs->n, d->inputs->at);
  }
}

static assay_status_t fill_in(const char* command, assay_str_t* paths, assay_str_t* out) {
  for (const char* c = command; *c;) {
    int k = 0;
    while (k < FILES && strncmp(c, places[k], strlen(places[k])) != 0) k++;
    if (k == FILES) {
      assay_str_append_n(out, c++, 1);
      continue;
    }
    assay_shell_quote(out, assay_str_get(&paths[k]));
    c += strlen(places[k]);
  }
  return assay_str_status(out);
}

static assay_status_t ask_in(const char* folder, const char* command, double seconds,
                             const assay_script_data_t* data, assay_str_t* paths, bool* out_yes,
                             assay_str_t* why) {
  assay_str_t line = {0}, said = {0};
  assay_status_t st = NULL;
  int code = 0;
  for (int k = 0; !st && k < FILES; k++) {
    if (!strstr(command, places[k])) continue;
    assay_str_printf_raw(&paths[k], "%s/%.*s.npz", folder, (int)strlen(places[k]) - 2,
                         places[k] + 1);
    st = assay_str_status(&paths[k]);
    if (!st) st = write_file(data, k, assay_str_get(&paths[k]));
  }
  if (!st) st = fill_in(command, paths, &line);
  if (!st) st = assay_process_ask(assay_str_get(&line), seconds, 1, &code, &said);
  if (!st) {
    *out_yes = code == 0;
    if (code && why)
      assay_str_printf(why, "%s'%s' says no%s%s", why->len ? "; " : "", command,
                       said.len ? ": " : "", assay_str_get(&said));
  }
  assay_str_deinit(&line);
  assay_str_deinit(&said);
  return st;
}

assay_status_t assay_script_ask(const char* command, double seconds,
                                const assay_script_data_t* data, bool* out_yes, assay_str_t* why) {
  assay_str_t folder = {0}, paths[FILES] = {{0}};
  assay_status_t st = assay_folder_make_temporary(&folder);
  if (st) return assay_str_deinit(&folder), st;
  st = ask_in(assay_str_get(&folder), command, seconds, data, paths, out_yes, why);
  for (int k = 0; k < FILES; k++) assay_str_deinit(&paths[k]);
  assay_folder_remove_temporary(assay_str_get(&folder));
  assay_str_deinit(&folder);
  return assay_status_note(st, "--require '%s'", command);
}
