// polygraphy debug reduce: the smallest model that still fails a check. Its end is cut first, then
// its beginning.
//
// A bisection cuts all that passes a place, so that a fault stays in every part that holds it; one
// by one (--mode linear) every node's outputs are tried alone, as Polygraphy does.
#include <string.h>

#include "base/alloc.h"
#include "base/shown.h"
#include "edit/editor.h"
#include "edit/types.h"
#include "frontends/polygraphy/data/feed.h"
#include "frontends/polygraphy/debug/debug_cut.h"
#include "frontends/polygraphy/debug/debug_loop.h"
#include "frontends/polygraphy/debug/debug_search.h"
#include "io/numpy_text.h"
#include "onnx/load.h"
#include "onnx/onnx.h"

typedef struct work work_t;

// One search: over places, of which the n-th try is for `at`.
typedef struct phase {
  work_t* work;
  pg_cuts_t cuts;
  pg_search_t search;
  bool of_inputs, alone;  // alone: single outputs (linear)
} phase_t;

struct work {
  pg_job_t* job;
  pg_debug_t debug;
  bool linear;
  assay_model_t *tried, *bad, *good;  // the last part; the smallest that fails; one that passes
  size_t n_bad, n_good;               // nodes
};

static size_t size_of(const assay_model_t* m) {
  size_t n = 0;
  for (size_t i = 0; i < m->graph->n_nodes; i++)
    n += strcmp(m->graph->nodes[i]->op_type, "Constant") != 0;
  return n;
}

// ---- a part -------------------------------------------------------------------------------------

static void report_values(const char* what, assay_value_t* const* values, size_t n) {
  assay_str_t text = {0};
  for (size_t i = 0; i < n; i++) {
    if (values[i]->constant && values[i]->is_input) continue;
    const assay_valtype_t* t = values[i]->declared ? values[i]->declared : values[i]->type;
    assay_str_printf(&text, "%sVariable (%s): (shape=", text.len ? ", " : "", values[i]->name);
    assay_str_append(&text, t && t->has_shape ? "[" : "None");
    for (int d = 0; t && t->has_shape && d < t->rank; d++) {
      const assay_dim_t* dim = t->dims ? t->dims[d] : NULL;
      int64_t size;
      if (d) assay_str_append(&text, ", ");
      if (assay_dim_value(dim, &size))
        assay_str_printf(&text, "%lld", (long long)size);
      else
        assay_str_printf(&text, "'%s'", dim ? assay_dim_text(dim, (char[256]){0}, 256) : "?");
    }
    assay_str_printf(&text, "%s, dtype=%s)", t && t->has_shape ? "]" : "",
                     assay_numpy_type_name(t ? t->elem : ASSAY_TYPE_UNDEFINED));
  }
  pg_log(PG_INFO, "Marking model %s: [%s]", what, assay_str_get(&text));
  assay_str_deinit(&text);
}

static void report_ends(const phase_t* p, const assay_model_t* m) {
  if (p->of_inputs)
    report_values("inputs", m->graph->inputs, m->graph->n_inputs);
  else
    report_values("outputs", m->graph->outputs, m->graph->n_outputs);
}

// The part of a place. Places of inputs are counted from the end, so that smaller is smaller.
static assay_status_t cut(const phase_t* p, size_t at, assay_model_t** out) {
  pg_values_t in, ends;
  assay_arena_t* arena = NULL;
  ASSAY_TRY(assay_arena_create(&arena));
  assay_status_t st;
  if (p->of_inputs)
    st = pg_cuts_inputs(arena, &p->cuts, p->cuts.n - 1 - at, &in, &ends);
  else if (p->alone)
    st = pg_cuts_own_outputs(arena, &p->cuts, at, &ends);
  else
    st = pg_cuts_outputs(arena, &p->cuts, at, &ends);
  if (!st) st = pg_cuts_part(&p->cuts, p->of_inputs ? &in : NULL, &ends, out);
  assay_arena_destroy(arena);
  return st;
}

static assay_status_t write(const work_t* w, const assay_model_t* m) {
  const assay_onnx_write_options_t options = {.external = ASSAY_ONNX_EXTERNAL_NONE};
  pg_log(PG_INFO, "Saving ONNX model to: %s", w->debug.artifact);
  return assay_onnx_write(m, w->debug.artifact, &options);
}

// ---- searching ----------------------------------------------------------------------------------

static assay_status_t make(void* user, pg_iteration_t* i) {
  phase_t* p = user;
  work_t* w = p->work;
  assay_model_release(w->tried);
  w->tried = NULL;
  ASSAY_TRY(cut(p, p->search.at, &w->tried));
  i->n_nodes = (int64_t)size_of(w->tried);
  report_ends(p, w->tried);
  return write(w, w->tried);
}

static void keep(assay_model_t** slot, assay_model_t* m) {
  assay_model_retain(m);
  assay_model_release(*slot);
  *slot = m;
}

static size_t distance(size_t a, size_t b) { return a > b ? a - b : b - a; }

// The smallest that fails, and of those that pass the one that is nearest to it in size.
static void sort(work_t* w, bool success) {
  const size_t n = size_of(w->tried);
  if (success && (!w->good || distance(n, w->n_bad) <= distance(w->n_good, w->n_bad))) {
    keep(&w->good, w->tried);
    w->n_good = n;
  } else if (!success && n <= w->n_bad) {
    keep(&w->bad, w->tried);
    w->n_bad = n;
  }
}

static assay_status_t advance(void* user, const pg_iteration_t* i, bool* out_stop) {
  phase_t* p = user;
  work_t* w = p->work;
  // A result of a replay was not made.
  if (!w->tried) ASSAY_TRY(cut(p, p->search.at, &w->tried));
  sort(w, i->success);
  assay_model_release(w->tried);
  w->tried = NULL;
  pg_search_record(&p->search, !i->success);
  *out_stop = p->search.done;
  return NULL;
}

// Finds the places of the smallest model that is known to fail.
static assay_status_t find_places(work_t* w, pg_cuts_t* out) {
  assay_model_t* ready = NULL;
  ASSAY_TRY(assay_onnx_prepare_known(w->bad, 0, NULL, &ready));
  assay_status_t st = pg_cuts_find(w->job->arena, ready, out);
  assay_model_release(ready);
  return st;
}

// Whether the part of the last place is what is known to fail: not if other outputs go with it.
static assay_status_t is_known(const phase_t* p, bool* out) {
  pg_values_t own;
  *out = p->of_inputs || !p->alone;
  if (*out) return NULL;
  ASSAY_TRY(pg_cuts_own_outputs(p->work->job->arena, &p->cuts, p->cuts.n - 1, &own));
  *out = own.n == p->cuts.model->graph->n_outputs;
  return NULL;
}

static assay_status_t search(work_t* w, bool of_inputs) {
  const char* what = of_inputs ? "inputs" : "outputs";
  phase_t p = {.work = w, .of_inputs = of_inputs, .alone = w->linear};
  bool known;
  ASSAY_TRY(find_places(w, &p.cuts));
  if (!p.cuts.n) return pg_cuts_release(&p.cuts), NULL;
  assay_status_t st = is_known(&p, &known);
  if (st) return pg_cuts_release(&p.cuts), st;
  p.search = pg_search_begin(w->linear ? PG_SEARCH_DOWN : PG_SEARCH_BISECT, p.cuts.n - 1, known);
  const pg_loop_t loop = {.suffix = what,
                          .about = pg_search_max_tries(&p.search),
                          .make = make,
                          .advance = advance,
                          .strict = true,
                          .user = &p};
  pg_log(PG_START, "Reducing model %s", what);
  if (!p.search.done) st = pg_debug_loop(&w->debug, &loop);
  if (!st) {
    pg_log(PG_FINISH, "Finished reducing model %s", what);
    report_ends(&p, w->bad);
  }
  pg_cuts_release(&p.cuts);
  return st;
}

// ---- the whole model ----------------------------------------------------------------------------

static assay_status_t make_whole(void* user, pg_iteration_t* i) {
  work_t* w = user;
  i->n_nodes = (int64_t)size_of(w->bad);
  return write(w, w->bad);
}

static assay_status_t advance_whole(void* user, const pg_iteration_t* i, bool* out_stop) {
  work_t* w = user;
  *out_stop = true;
  if (!i->success) return NULL;
  pg_log(PG_ERROR, "The check passes on the whole model: there is nothing to reduce");
  w->job->failed = true;
  return NULL;
}

// A replay has no such iteration, as Polygraphy's has none: it was made of a model that failed.
static assay_status_t check_whole(work_t* w) {
  const pg_loop_t loop = {.suffix = "whole",
                          .unrecorded = true,
                          .about = 1,
                          .make = make_whole,
                          .advance = advance_whole,
                          .strict = true,
                          .user = w};
  if (json_object_size(w->debug.replay.loaded)) return NULL;
  pg_log(PG_START, "Checking that the whole model fails");
  return pg_debug_loop(&w->debug, &loop);
}

// ---- the subcommand -----------------------------------------------------------------------------

// --model-input-shapes, as the edit `set` has them: "x=1x3x4x4".
static assay_status_t shape_requests(pg_job_t* j, assay_words_t* out) {
  const pg_words_t* words = pg_words(j->args, PG_FLAG_model_input_shapes);
  const char** items;
  ASSAY_TRY(assay_arena_new(j->arena, words->n, sizeof *items, &items));
  for (size_t i = 0; i < words->n; i++) {
    const char* names[ASSAY_MAX_RANK] = {NULL};
    int64_t dims[ASSAY_MAX_RANK];
    int rank;
    pg_pair_t pair;
    assay_str_t text = {0};
    ASSAY_TRY(pg_pair_split(j->arena, words->items[i], &pair));
    ASSAY_TRY(pg_shape(j->arena, "--model-input-shapes", pair.value, &rank, dims, names));
    assay_str_printf(&text, "%s=", pair.name);
    for (int d = 0; d < rank; d++) {
      if (d) assay_str_append(&text, "x");
      if (names[d])
        assay_str_shown(&text, names[d]);
      else
        assay_str_printf(&text, "%lld", (long long)dims[d]);
    }
    assay_status_t st = assay_str_status(&text);
    if (!st) st = assay_arena_strdup(j->arena, assay_str_get(&text), &items[i]);
    assay_str_deinit(&text);
    ASSAY_TRY(st);
  }
  *out = (assay_words_t){items, words->n};
  return NULL;
}

static assay_status_t report_shapes(const assay_model_t* m) {
  const assay_graph_t* g = m->graph;
  assay_str_t text = {0};
  for (size_t i = 0; i < g->n_inputs; i++) {
    if (g->inputs[i]->constant) continue;
    assay_str_append(&text, text.len ? ",\n " : "{");
    pg_put_tensor_info(&text, g->inputs[i]);
  }
  assay_status_t st = assay_str_status(&text);
  if (!st) pg_log(PG_INFO, "Overriding input shapes to:\n" ASSAY_LINES "}", assay_str_get(&text));
  assay_str_deinit(&text);
  return st;
}

static assay_status_t set_shapes(pg_job_t* j, assay_model_t** m) {
  const assay_editor_options_t options = {.no_proof = true, .force = true};
  assay_edit_requests_t requests = {0};
  assay_edit_result_t r = {0};
  if (!pg_given(j->args, PG_FLAG_model_input_shapes)) return NULL;
  ASSAY_TRY(shape_requests(j, &requests.shapes));
  ASSAY_TRY(assay_status_note(assay_editor_run(&assay_editor_set, *m, &requests, &options, &r),
                              "--model-input-shapes"));
  keep(m, r.model);
  assay_edit_result_deinit(&r);
  return report_shapes(*m);
}

// A value that becomes an input needs a shape: by a run, where inference is not to give it.
static assay_status_t measure(pg_job_t* j, assay_model_t* m) {
  assay_saved_t feed = {0};
  assay_tensor_t** inputs = NULL;
  size_t added;
  if (!pg_given(j->args, PG_FLAG_force_fallback_shape_inference) &&
      !pg_given(j->args, PG_FLAG_no_shape_inference))
    return NULL;
  pg_log(PG_INFO,
         "Running the model to learn its shapes. This will cause dynamic dimensions to become "
         "static.");
  ASSAY_TRY(pg_feed_first(j, m->graph, &feed, &inputs));
  assay_status_t st = assay_types_measure(m, inputs);
  if (!st) st = assay_types_list(m, &added);
  assay_free(inputs);
  assay_saved_deinit(&feed);
  return assay_status_note(st, "running the model to learn its shapes");
}

static assay_status_t load(pg_job_t* j, assay_model_t** out) {
  assay_model_t *raw = NULL, *ready = NULL;
  ASSAY_TRY(pg_load_model(j, &raw));
  assay_status_t st = set_shapes(j, &raw);
  if (!st) st = pg_prepare_model(j, raw, true, &ready);
  if (!st) st = measure(j, ready);
  assay_model_release(raw);
  if (st) return assay_model_release(ready), st;
  *out = ready;
  return NULL;
}

static assay_status_t hand_over(const work_t* w) {
  pg_job_t* j = w->job;
  const char* good = pg_text(j->args, PG_FLAG_min_good);
  ASSAY_TRY(pg_report_model("Minimum Bad Model:", w->bad));
  ASSAY_TRY(pg_save_model(j, w->bad, pg_text(j->args, PG_FLAG_output)));
  if (!w->linear && w->n_bad > 1)
    pg_log(PG_WARNING,
           "It looks like this model could potentially be reduced further.\n"
           "You may want to reduce %s again using --mode=linear.",
           pg_text(j->args, PG_FLAG_output));
  if (!good) return NULL;
  if (!w->good) {
    pg_log(PG_WARNING, "Could not find a minimum good model: no part that was tried passed");
    return NULL;
  }
  ASSAY_TRY(pg_report_model("Minimum Good Model:", w->good));
  return pg_save_model(j, w->good, good);
}

static assay_status_t reduce(work_t* w) {
  const pg_args_t* a = w->job->args;
  const bool inputs = !pg_given(a, PG_FLAG_no_reduce_inputs),
             outputs = !pg_given(a, PG_FLAG_no_reduce_outputs);
  ASSAY_TRY(load(w->job, &w->bad));
  w->n_bad = size_of(w->bad);
  ASSAY_TRY(check_whole(w));
  if (w->job->failed) return NULL;
  if (outputs) ASSAY_TRY(search(w, false));
  if (inputs) ASSAY_TRY(search(w, true));
  return hand_over(w);
}

assay_status_t pg_run_debug_reduce(pg_job_t* j) {
  work_t w = {.job = j, .linear = pg_is(j->args, PG_FLAG_mode, "linear")};
  ASSAY_TRY(pg_debug_open(j, "polygraphy_debug.onnx", &w.debug));
  assay_status_t st = reduce(&w);
  assay_model_release(w.tried);
  assay_model_release(w.bad);
  assay_model_release(w.good);
  pg_debug_close(&w.debug);
  return st;
}
