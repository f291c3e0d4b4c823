// The public face of golden: include/assay/golden.h.
#include <assay/golden.h>
#include <stdio.h>
#include <string.h>

#include "account/golden/golden.h"
#include "account/golden/golden_axes.h"
#include "account/golden/reference.h"
#include "base/alloc.h"
#include "base/nearest.h"
#include "data/sample_files.h"

// Where golden is from.
typedef struct assay_golden_origin {
  assay_model_t* model;     // retained
  assay_set_t set;          // arrays by name, outputs and inner values
  assay_saved_t runs;       // those of each sample, where shapes differ; n 0: they do not
  assay_samples_t outputs;  // n 0: none
  bool gave_outputs;        // by a file of outputs
  bool lost_axes[2];        // no array of inner values, of outputs has an axis of one
  assay_name_map_t map;
  bool has_map;
  char* from;  // what the user gave, for messages
  bool* dtype_used;
  size_t n_dtypes;
} origin_t;

void assay_golden_origin_destroy(struct assay_golden_origin* o) {
  if (!o) return;
  assay_model_release(o->model);
  assay_set_deinit(&o->set);
  assay_saved_deinit(&o->runs);
  assay_samples_deinit(&o->outputs);
  assay_name_map_deinit(&o->map);
  assay_free(o->from);
  assay_free(o->dtype_used);
  assay_free(o);
}

void assay_golden_destroy(assay_golden_t* g) {
  if (!g) return;
  assay_golden_deinit(g);
  assay_free(g);
}

// ---- making -------------------------------------------------------------------------------------

static assay_golden_options_t options_of(const assay_golden_options_t* given) {
  assay_golden_options_t o = ASSAY_GOLDEN_OPTIONS_INIT;
  if (given)  // an older caller's struct may be shorter
    memcpy(&o, given, given->struct_size < sizeof o ? given->struct_size : sizeof o);
  return o;
}

static assay_status_t create(assay_model_t* model, const char* from,
                             const assay_golden_options_t* options, assay_golden_t** out) {
  const size_t length = strlen(from) + 1;
  assay_golden_t* g = NULL;
  ASSAY_TRY(ASSAY_NEW(&g));
  assay_status_t st = ASSAY_NEW(&g->origin);
  if (st) return assay_golden_destroy(g), st;
  origin_t* o = g->origin;
  o->model = assay_model_retain(model);
  st = assay_new_array(length, 1, &o->from);
  if (!st) memcpy(o->from, from, length);
  if (!st && options->name_map) st = assay_name_map_read(options->name_map, &o->map);
  if (st) return assay_golden_destroy(g), st;
  o->has_map = options->name_map != NULL;
  *out = g;
  return NULL;
}

// Which arrays may lack axes of one.
static void note_lost(const origin_t* o, assay_golden_t* g) {
  for (size_t i = 0; i < g->n; i++)
    g->at[i].lost_axes = g->at[i].value && o->lost_axes[g->at[i].value->is_output];
}

// Which array is which value, anew, by names.
static assay_status_t match(assay_golden_t* g) {
  origin_t* o = g->origin;
  g->origin = NULL;
  assay_golden_deinit(g);
  g->origin = o;
  ASSAY_TRY(assay_golden_match(&o->set, o->model, o->has_map ? &o->map : NULL, g));
  note_lost(o, g);
  return NULL;
}

// All runs as one set; of samples whose shapes differ (apart) and runs that do not join, the first
// one's arrays.
static assay_status_t join(assay_saved_t* runs, bool apart, assay_set_t* out) {
  assay_set_t set = {0};
  if (!runs->n) return ASSAY_ERROR(ASSAY_NOT_FOUND, "it holds no arrays");
  assay_status_t st =
      apart ? assay_set_add_all(&set, &runs->runs[0]) : assay_saved_join(runs, &set);
  if (assay_status_code(st) == ASSAY_INVALID_ARGUMENT) {
    assay_status_free(st);
    st = assay_set_add_all(&set, &runs->runs[0]);
  }
  if (st) return assay_set_deinit(&set), st;
  *out = set;
  return NULL;
}

// Outputs of another shape than the model gives may be what is wrong with the model: they are held
// against truth as they are.
static assay_status_t cut(assay_golden_t* g, const assay_saved_t* runs, size_t n_samples) {
  origin_t* o = g->origin;
  const assay_graph_t* graph = o->model->graph;
  assay_samples_t s = {0};
  assay_status_t st =
      runs->n > 1 && runs->n == n_samples
          ? assay_samples_from_runs(runs, graph->outputs, graph->n_outputs, false, &s)
          : assay_samples_from_set(&o->set, graph->outputs, graph->n_outputs, false, &s);
  if (assay_status_code(st) == ASSAY_INVALID_ARGUMENT) {
    assay_str_printf(&g->notes, "note: golden %s; it is held against truth as it is\n",
                     assay_status_message(st));
    assay_status_free(st);
    return assay_str_status(&g->notes);
  }
  if (st) return st;
  bool any = false;
  for (size_t i = 0; i < graph->n_outputs; i++) any |= s.n && assay_samples_get(&s, 0)[i];
  if (!any) return assay_samples_deinit(&s), NULL;  // the contents may still tell which it is
  if (s.n != n_samples && s.n != 1) {
    st = ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "'%s' holds %zu samples, the inputs %zu", o->from, s.n,
                     n_samples);
    return assay_samples_deinit(&s), st;
  }
  o->outputs = s;
  return NULL;
}

static assay_status_t put_axes_in(assay_golden_t* g, assay_saved_t* runs, bool outputs,
                                  assay_str_t* notes) {
  origin_t* o = g->origin;
  return assay_golden_put_axes_in(runs, o->model, o->has_map ? &o->map : NULL, assay_golden_value,
                                  notes, &o->lost_axes[outputs]);
}

// Whether an array is of a value whose rank the model leaves open: nobody knows then which axis of
// all samples' arrays counts them.
static bool any_rank_is_open(const origin_t* o, const assay_set_t* arrays) {
  for (size_t i = 0; i < arrays->n; i++) {
    const assay_value_t* v =
        assay_golden_value(o->model, o->has_map ? &o->map : NULL, arrays->names[i]);
    const assay_valtype_t* type = v && v->type ? v->type : v ? v->declared : NULL;
    if (v && (!type || !type->has_shape)) return true;
  }
  return false;
}

// Takes the runs over. A sample's array is cut from that of all, unless their shapes differ or are
// not known.
static assay_status_t fill(assay_golden_t* g, assay_saved_t* runs, size_t n_samples) {
  origin_t* o = g->origin;
  assay_str_t notes = g->notes;
  g->notes = (assay_str_t){0};
  assay_saved_t cuts = {0};  // join may move the arrays of a single run
  assay_status_t st = put_axes_in(g, runs, true, &notes);
  for (size_t i = 0; !st && i < runs->n; i++) {
    assay_set_t* run = NULL;
    st = assay_saved_add_run(&cuts, &run);
    if (!st) st = assay_set_add_all(run, &runs->runs[i]);
  }
  const bool apart = n_samples > 1 && cuts.n == n_samples &&
                     (assay_golden_runs_differ(&cuts) || any_rank_is_open(o, &cuts.runs[0]));
  if (!st) st = assay_status_note(join(runs, apart, &o->set), "'%s'", o->from);
  if (!st) st = match(g);
  if (!st) assay_str_append(&g->notes, assay_str_get(&notes));
  if (!st) st = cut(g, &cuts, n_samples);
  assay_str_deinit(&notes);
  if (apart)
    o->runs = cuts;
  else
    assay_saved_deinit(&cuts);
  o->gave_outputs = true;
  return st ? st : assay_str_status(&g->notes);
}

static assay_status_t note_dtypes(origin_t* o, const assay_tensor_reading_t* r) {
  if (!r->n_dtypes) return NULL;
  if (!o->dtype_used) {
    ASSAY_TRY(assay_new_array(r->n_dtypes, sizeof *o->dtype_used, &o->dtype_used));
    o->n_dtypes = r->n_dtypes;
  }
  for (size_t i = 0; i < r->n_dtypes && i < o->n_dtypes; i++) o->dtype_used[i] |= r->met[i];
  return NULL;
}

static assay_status_t read(assay_golden_t* g, size_t n_files, const char* const* files,
                           const assay_golden_options_t* options, assay_saved_t* out) {
  assay_tensor_reading_t reading;
  assay_saved_t runs = {0};
  ASSAY_TRY(assay_samples_reading(options->reading, &reading));
  const assay_sample_files_t of = {files, n_files, true, &reading};
  assay_status_t st = assay_sample_files_read(&of, g->origin->model, &runs);
  if (!st) st = note_dtypes(g->origin, &reading);
  if (!st && reading.notes.len) assay_str_append(&g->notes, assay_str_get(&reading.notes));
  assay_samples_reading_deinit(&reading);
  if (st) return assay_saved_deinit(&runs), st;
  *out = runs;
  return NULL;
}

assay_status_t assay_golden_load(assay_model_t* model, const char* file, size_t n_samples,
                                 const assay_golden_options_t* options, assay_golden_t** out) {
  return assay_golden_load_files(model, 1, &file, n_samples, options, out);
}

assay_status_t assay_golden_load_files(assay_model_t* model, size_t n_files,
                                       const char* const* files, size_t n_samples,
                                       const assay_golden_options_t* options,
                                       assay_golden_t** out) {
  const assay_golden_options_t o = options_of(options);
  assay_golden_t* g = NULL;
  assay_saved_t runs = {0};
  if (!n_files) return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "no files to load golden from");
  ASSAY_TRY(create(model, files[0], &o, &g));
  assay_status_t st = read(g, n_files, files, &o, &runs);
  if (!st) st = fill(g, &runs, n_samples);
  assay_saved_deinit(&runs);
  if (st) return assay_golden_destroy(g), st;
  *out = g;
  return NULL;
}

assay_status_t assay_golden_create(assay_model_t* model, size_t n_runs, size_t n_names,
                                   const char* const* names, assay_tensor_t* const* tensors,
                                   size_t n_samples, const assay_golden_options_t* options,
                                   assay_golden_t** out) {
  const assay_golden_options_t o = options_of(options);
  assay_golden_t* g = NULL;
  assay_saved_t runs = {0};
  assay_tensor_reading_t reading;
  size_t total;
  if (!n_runs || !n_names || __builtin_mul_overflow(n_runs, n_names, &total))
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "golden of %zu runs of %zu arrays", n_runs, n_names);
  ASSAY_TRY(create(model, "golden", &o, &g));
  assay_status_t st = assay_samples_reading(o.reading, &reading);
  if (st) return assay_golden_destroy(g), st;
  for (size_t r = 0; !st && r < n_runs; r++) {
    assay_set_t* run = NULL;
    st = assay_saved_add_run(&runs, &run);
    for (size_t k = 0; !st && k < n_names; k++)
      st = tensors[r * n_names + k]
               ? assay_set_add(run, names[k], assay_tensor_retain(tensors[r * n_names + k]))
               : ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "golden: run %zu has no tensor for '%s'", r,
                             names[k]);
  }
  if (!st) st = assay_tensor_files_retype(&reading, &runs);
  if (!st) st = note_dtypes(g->origin, &reading);
  if (!st) st = fill(g, &runs, n_samples);
  assay_samples_reading_deinit(&reading);
  assay_saved_deinit(&runs);
  if (st) return assay_golden_destroy(g), st;
  *out = g;
  return NULL;
}

assay_status_t assay_golden_run(assay_model_t* model, const char* reference,
                                const assay_samples_t* inputs, uint64_t seed,
                                const assay_golden_options_t* options, assay_golden_t** out) {
  const assay_golden_options_t o = options_of(options);
  assay_golden_t* g = NULL;
  assay_saved_t runs = {0};
  ASSAY_TRY(assay_samples_fit(inputs, model, false));
  ASSAY_TRY(create(model, reference, &o, &g));
  assay_status_t st = assay_reference_run(reference, model, inputs, seed, &g->notes, &runs);
  if (!st) st = fill(g, &runs, inputs->n);
  assay_saved_deinit(&runs);
  if (st) return assay_golden_destroy(g), st;
  *out = g;
  return NULL;
}

static assay_status_t add(assay_golden_t* g, const char* file, const assay_golden_options_t* o) {
  assay_saved_t runs = {0};
  assay_set_t inner = {0}, *set = &g->origin->set;
  ASSAY_TRY(read(g, 1, &file, o, &runs));
  assay_status_t st = put_axes_in(g, &runs, false, &g->notes);
  if (!st) st = assay_status_note(join(&runs, false, &inner), "'%s'", file);
  for (size_t i = 0; !st && i < inner.n; i++)
    if (!assay_set_find(set, inner.names[i]))
      st = assay_set_add(set, inner.names[i], assay_tensor_retain(inner.tensors[i]));
  assay_set_deinit(&inner);
  assay_saved_deinit(&runs);
  if (st) return st;
  assay_str_t notes = g->notes;
  g->notes = (assay_str_t){0};
  st = match(g);
  assay_str_append(&g->notes, assay_str_get(&notes));
  assay_str_deinit(&notes);
  return st ? st : assay_str_status(&g->notes);
}

assay_status_t assay_golden_add_intermediates(assay_model_t* model, const char* file,
                                              const assay_golden_options_t* options,
                                              assay_golden_t** golden) {
  const assay_golden_options_t o = options_of(options);
  assay_golden_t* made = NULL;
  if (*golden && (*golden)->origin->model != model)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "golden is of another model than this");
  if (!*golden) ASSAY_TRY(create(model, file, &o, &made));
  assay_status_t st = add(made ? made : *golden, file, &o);
  if (st) return assay_golden_destroy(made), st;
  if (made) *golden = made;
  return NULL;
}

// ---- asking -------------------------------------------------------------------------------------

size_t assay_golden_count(const assay_golden_t* g) { return g->origin->outputs.n; }
const char* assay_golden_notes(const assay_golden_t* g) { return assay_str_get(&g->notes); }

bool assay_golden_dtype_used(const assay_golden_t* g, size_t i) {
  return i < g->origin->n_dtypes && g->origin->dtype_used[i];
}

const assay_samples_t* assay_golden_samples(const assay_golden_t* g) {
  const assay_golden_t* whole = g->matched_from ? g->matched_from : g;
  return whole->origin ? &whole->origin->outputs : NULL;
}
const assay_saved_t* assay_golden_runs(const assay_golden_t* g) {
  const assay_golden_t* whole = g->matched_from ? g->matched_from : g;
  return whole->origin && whole->origin->runs.n ? &whole->origin->runs : NULL;
}
const assay_set_t* assay_golden_arrays(const assay_golden_t* g) { return &g->origin->set; }
const assay_model_t* assay_golden_model(const assay_golden_t* g) { return g->origin->model; }

assay_status_t assay_golden_rematch(const assay_golden_t* g, const assay_model_t* model,
                                    assay_golden_t* out) {
  const origin_t* o = g->origin;
  assay_golden_t made = {0};
  assay_status_t st = assay_golden_match(&o->set, model, o->has_map ? &o->map : NULL, &made);
  if (st) return assay_golden_deinit(&made), st;
  note_lost(o, &made);
  // In a repaired model what was found by its contents has the same name.
  for (size_t i = 0; i < g->n && i < made.n; i++) {
    if (g->at[i].match != ASSAY_GOLDEN_BY_CONTENT || !g->at[i].value) continue;
    made.at[i].value = assay_graph_find(model->graph, g->at[i].value->name);
    made.at[i].match = g->at[i].match;
  }
  made.matched_from = g;
  *out = made;
  return NULL;
}

const char* assay_golden_misspelt(const assay_set_t* set, const assay_graph_t* g, char* out,
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

assay_status_t assay_golden_settle(assay_golden_t* g) {
  origin_t* o = g->origin;
  const assay_graph_t* graph = o->model->graph;
  char text[512];
  bool any = false;
  for (size_t i = 0; i < g->n; i++)
    any |= g->at[i].value && (!o->gave_outputs || g->at[i].value->is_output);
  if (!any)
    return ASSAY_ERROR(
        ASSAY_INVALID_ARGUMENT,
        "'%s' has no array with the name of %s (such as '%s'), and none with the elements of "
        "one%s; --name-map tells which is which",
        o->from, o->gave_outputs ? "an output" : "a value",
        graph->n_outputs ? graph->outputs[0]->name : "",
        assay_golden_misspelt(&o->set, graph, text, 512));
  return o->outputs.n ? NULL : assay_golden_outputs(g, graph, &o->outputs);
}

assay_status_t assay_golden_want_outputs(assay_golden_t* g, const assay_model_t* model) {
  const origin_t* o = g->origin;
  const assay_graph_t* graph = o->model->graph;
  char text[512];
  if (o->model != model)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "golden is of another model than this");
  assay_golden_misspelt(&o->set, graph, text, sizeof text);
  if (!o->outputs.n)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                       "'%s' has no array with the name of an output (such as '%s')%s", o->from,
                       graph->n_outputs ? graph->outputs[0]->name : "", text);
  if (*text) assay_str_printf(&g->notes, "note: an output has no golden%s\n", text);
  return assay_str_status(&g->notes);
}
