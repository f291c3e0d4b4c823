// The runners of a run: the evaluator in two modes, and Assay's engine.
#include "frontends/polygraphy/runners.h"

#include <string.h>
#include <strings.h>
#include <time.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "cli/risks.h"
#include "data/samples.h"
#include "frontends/polygraphy/model.h"

void pg_runner_close(pg_runner_t* r) {
  assay_set_deinit(&r->seen);
  assay_executor_destroy(r->marked_executor);
  assay_engine_release(r->marked);
  assay_executor_destroy(r->executor);
  assay_engine_release(r->engine);
  assay_model_release(r->model);
  *r = (pg_runner_t){0};
}

// The model that an engine runs, retained.
static assay_model_t* model_of(const assay_engine_t* e) {
  const assay_model_t* m = assay_plan_layers(assay_engine_plan(e))->model;
  return assay_model_retain((assay_model_t*)(uintptr_t)m);
}

assay_status_t pg_runner_inputs(pg_job_t* j, assay_model_t** out_model) {
  const char* path = j->args->positional.n ? j->args->positional.items[0] : "";
  assay_model_t* raw = NULL;
  if (pg_is_engine(j, path)) {
    assay_engine_t* engine = NULL;
    ASSAY_TRY(pg_load_engine(j, path, &engine));
    *out_model = model_of(engine);
    assay_engine_release(engine);
    return NULL;
  }
  ASSAY_TRY(pg_load_unmarked(j, &raw));
  assay_status_t st = pg_prepare_model(j, raw, false, out_model);
  assay_model_release(raw);
  return st;
}

// ---- the evaluator ------------------------------------------------------------------------------

static assay_status_t open_evaluator(pg_job_t* j, pg_runner_t* r) {
  const bool truth = r->kind == PG_FLAG_truth;
  const assay_evaluator_config_t config = {.mode = truth ? ASSAY_MODE_TRUTH : ASSAY_MODE_NATIVE};
  assay_model_t* raw = NULL;
  if (pg_is_engine(j, j->args->positional.items[0]))
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "'%s' is a plan: %s needs the ONNX model",
                       j->args->positional.items[0], truth ? "--truth" : "--onnxrt");
  pg_log(PG_INFO, "%s | Assay reference evaluator, %s", r->name,
         truth ? "in float64" : "in the model's own types");
  ASSAY_TRY(pg_load_model(j, &raw));
  assay_status_t st = pg_prepare_model(j, raw, false, &r->model);
  assay_model_release(raw);
  return st ? st : assay_executor_evaluate(r->model, &config, &r->executor);
}

// ---- the engine ---------------------------------------------------------------------------------

static bool is_own(const assay_graph_t* g, const char* name) {
  for (size_t i = 0; i < g->n_outputs; i++)
    if (strcmp(g->outputs[i]->name, name) == 0) return true;
  return false;
}

// Keeps what layers hand on, of the values that are asked for.
static assay_status_t see_layer(void* user, const assay_layer_t* layer, const assay_node_t* node,
                                uint64_t iteration, size_t n_in, assay_tensor_t* const* in,
                                size_t n_out, assay_tensor_t* const* out) {
  pg_runner_t* r = user;
  (void)layer, (void)iteration, (void)n_in, (void)in;
  for (size_t o = 0; o < n_out && o < node->n_outputs; o++) {
    const assay_value_t* v = node->outputs[o];
    bool wanted = false;
    for (size_t i = 0; v && out[o] && i < r->n_names; i++)
      wanted |= strcmp(r->names[i], v->name) == 0;
    if (!wanted || node->graph->outer || assay_set_find(&r->seen, v->name)) continue;
    assay_tensor_t* copy = NULL;
    ASSAY_TRY(assay_tensor_copy(out[o], &copy));
    ASSAY_TRY(assay_set_add(&r->seen, v->name, copy));
  }
  return NULL;
}

static assay_status_t take_names(pg_job_t* j, pg_runner_t* r, const assay_graph_t* g) {
  r->n_names = g->n_outputs;
  ASSAY_TRY(assay_arena_new(j->arena, r->n_names, sizeof *r->names, &r->names));
  for (size_t i = 0; i < r->n_names; i++)
    ASSAY_TRY(assay_arena_strdup(j->arena, g->outputs[i]->name, &r->names[i]));
  return NULL;
}

// Whether a layer of the plan hands this value on.
static bool hands_on(const assay_engine_t* e, const char* name) {
  const assay_layers_t* l = assay_plan_layers(assay_engine_plan(e));
  for (size_t i = 0; i < l->n_layers; i++) {
    const assay_node_t* last = l->layers[i].nodes[l->layers[i].n_nodes - 1];
    for (size_t o = 0; o < last->n_outputs; o++)
      if (last->outputs[o] && strcmp(last->outputs[o]->name, name) == 0) return true;
  }
  return false;
}

// A second engine for values that lie within the layers of the first.
static assay_status_t open_marked(pg_job_t* j, pg_runner_t* r, assay_model_t* raw,
                                  const assay_saved_t* inputs) {
  size_t within = 0;
  pg_built_t built = {0};
  for (size_t i = 0; i < r->n_names; i++)
    within += !is_own(r->model->graph, r->names[i]) && !hands_on(r->engine, r->names[i]);
  if (!within) return NULL;
  pg_log(PG_INFO,
         "%zu of the outputs lie within layers of the engine: they come from a second one that has "
         "them as outputs, so that the first stays as it is",
         within);
  ASSAY_TRY(
      pg_build_engine(j, &(pg_build_t){.model = raw, .inputs = inputs, .aside = true}, &built));
  r->marked = assay_engine_retain(built.engine);
  pg_built_deinit(&built);
  return assay_executor_run_engine(r->marked, NULL, &r->marked_executor);
}

static assay_status_t build_engine(pg_job_t* j, const assay_saved_t* inputs, pg_runner_t* r) {
  const bool marked = pg_asks_outputs(j->args);
  assay_model_t *raw = NULL, *plain = NULL;
  pg_built_t built = {0};
  ASSAY_TRY(pg_load_unmarked(j, &raw));
  assay_status_t st = assay_model_clone(raw, &plain);
  if (!st && marked) st = pg_mark_engine(j, raw);
  if (!st) st = pg_build_engine(j, &(pg_build_t){.model = plain, .inputs = inputs}, &built);
  if (!st) r->engine = assay_engine_retain(built.engine);
  pg_built_deinit(&built);
  if (!st) r->model = model_of(r->engine);
  if (!st && marked) st = take_names(j, r, raw->graph);
  if (!st && marked) st = open_marked(j, r, raw, inputs);
  assay_model_release(plain);
  assay_model_release(raw);
  return st;
}

// Takes memory now, where that is asked for.
static assay_status_t reserve(const pg_job_t* j, pg_runner_t* r) {
  const char* when = pg_text(j->args, PG_FLAG_allocation_strategy);
  if (!when) return NULL;
  const int profile = strcasecmp(when, "static") == 0 ? -1 : r->profile < 0 ? 0 : r->profile;
  if (strcasecmp(when, "runtime") != 0)
    ASSAY_TRY(assay_engine_reserve(r->engine, r->executor, profile));
  assay_set_deinit(&r->seen);  // values of made-up inputs
  pg_log(PG_INFO, "%s | --allocation-strategy %s: %zu bytes are taken for values and scratch",
         r->name, when, assay_executor_planned_bytes(r->executor));
  return NULL;
}

static assay_status_t open_engine(pg_job_t* j, const assay_saved_t* inputs, pg_runner_t* r) {
  const char* path = j->args->positional.items[0];
  const char* save = pg_text(j->args, PG_FLAG_save_engine);
  r->tap = (assay_tap_t){see_layer, r};
  // trtexec's front end finds that there is such a profile.
  if (pg_given(j->args, PG_FLAG_optimization_profile))
    r->profile = (int)pg_int(j->args, PG_FLAG_optimization_profile);
  if (pg_is_engine(j, path)) {
    ASSAY_TRY(pg_load_engine(j, path, &r->engine));
    r->model = model_of(r->engine);
  } else {
    ASSAY_TRY(build_engine(j, inputs, r));
  }
  if (save) pg_log(PG_INFO, "Saving engine to %s", save);
  if (save) ASSAY_TRY(assay_engine_save(r->engine, save));
  ASSAY_TRY(assay_executor_run_engine(r->engine, r->n_names ? &r->tap : NULL, &r->executor));
  return reserve(j, r);
}

// ---- opening ------------------------------------------------------------------------------------

static assay_status_t make_name(pg_job_t* j, pg_flag_id_t kind, size_t number, const char** out) {
  const time_t seconds = time(NULL);
  struct tm parts;
  char stamp[32] = "";
  if (localtime_r(&seconds, &parts)) strftime(stamp, sizeof stamp, "%m/%d/%y-%H:%M:%S", &parts);
  return assay_arena_printf(j->arena, out, "%s-runner-N%zu-%s", pg_flags[kind].names + 2, number,
                            stamp);
}

assay_status_t pg_runner_open(pg_job_t* j, pg_flag_id_t kind, size_t number,
                              const assay_saved_t* inputs, pg_runner_t* out) {
  *out = (pg_runner_t){.kind = kind, .profile = -1};
  ASSAY_TRY(make_name(j, kind, number, &out->name));
  pg_log(PG_INFO, "%s  | Activating and starting inference", out->name);
  return kind == PG_FLAG_trt ? open_engine(j, inputs, out) : open_evaluator(j, out);
}

// ---- running ------------------------------------------------------------------------------------

// An input in the type that the runner takes, where --tensor-dtypes made it another one.
static assay_status_t typed_input(assay_value_t* v, assay_tensor_t* t, assay_tensor_t** out) {
  const assay_valtype_t* type = v->type ? v->type : v->declared;
  assay_samples_t samples = {0};
  assay_set_t set = {0};
  if (!type || type->kind != ASSAY_KIND_TENSOR || !type->elem || type->elem == t->type)
    return *out = assay_tensor_retain(t), NULL;
  assay_status_t st = assay_set_add(&set, v->name, assay_tensor_retain(t));
  if (!st) st = assay_samples_from_set(&set, &v, 1, true, &samples);
  if (!st) *out = assay_tensor_retain(assay_samples_get(&samples, 0)[0]);
  assay_samples_deinit(&samples);
  assay_set_deinit(&set);
  return st;
}

static assay_status_t set_input(assay_executor_t* e, assay_value_t* v, assay_tensor_t* t) {
  assay_tensor_t* typed = NULL;
  ASSAY_TRY(typed_input(v, t, &typed));
  assay_status_t st = assay_executor_set(e, v, typed);
  assay_tensor_release(typed);
  return st;
}

static assay_status_t run_executor(assay_executor_t* e, const assay_set_t* inputs) {
  const assay_graph_t* g = assay_executor_graph(e);
  assay_executor_reset(e);
  for (size_t i = 0; i < g->n_inputs; i++) {
    assay_tensor_t* t = assay_set_find(inputs, g->inputs[i]->name);
    if (t) ASSAY_TRY(set_input(e, g->inputs[i], t));
    if (!t && !g->inputs[i]->constant)
      return ASSAY_ERROR(ASSAY_NOT_FOUND, "input '%s' has no values", g->inputs[i]->name);
  }
  return assay_executor_run(e);
}

// A tensor that stays when the executor runs again; of truth in float64.
static assay_status_t keep(assay_tensor_t* t, bool truth, assay_tensor_t** out) {
  assay_tensor_t* wide = NULL;
  ASSAY_TRY(assay_tensor_widen(t, &wide));
  if (truth && wide->kind == ASSAY_KIND_TENSOR && wide->store == ASSAY_STORE_F64) {
    assay_status_t st = assay_tensor_retype(wide, ASSAY_TYPE_DOUBLE, out);
    assay_tensor_release(wide);
    return st;
  }
  *out = wide;
  return NULL;
}

static assay_tensor_t* find_output(assay_executor_t* e, const char* name) {
  const assay_graph_t* g = assay_executor_graph(e);
  for (size_t i = 0; i < g->n_outputs; i++)
    if (strcmp(g->outputs[i]->name, name) == 0) return assay_executor_get(e, g->outputs[i]);
  return NULL;
}

static assay_status_t collect(pg_runner_t* r, const char* name, assay_set_t* out) {
  assay_tensor_t* t = find_output(r->executor, name);
  if (!t) t = assay_set_find(&r->seen, name);
  if (!t && r->marked_executor) t = find_output(r->marked_executor, name);
  assay_tensor_t* kept = NULL;
  if (!t) {
    pg_log(PG_WARNING, "Output '%s' is not there any more in the engine: it is left out", name);
    return NULL;
  }
  ASSAY_TRY(keep(t, r->kind == PG_FLAG_truth, &kept));
  return assay_set_add(out, name, kept);
}

// Whether the inputs lie within the profile that was asked for.
static assay_status_t check_inputs(const pg_runner_t* r, const assay_set_t* inputs) {
  const assay_profile_t* list;
  const size_t n = r->engine && r->profile >= 0 ? assay_engine_profiles(r->engine, &list) : 0;
  for (size_t i = 0; i < n; i++) {
    const assay_profile_t* p = &list[i];
    const assay_tensor_t* t = assay_set_find(inputs, p->input);
    if (p->profile != r->profile || !t || assay_profile_takes(p, t)) continue;
    assay_str_t given = {0}, range = {0};
    assay_profile_print_given(p, t, &given);
    assay_profile_print(p, &range);
    assay_status_t st =
        ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "input '%s' is %s; profile %d was built for%s",
                    p->input, assay_str_get(&given), p->profile, assay_str_get(&range));
    assay_str_deinit(&given);
    assay_str_deinit(&range);
    return st;
  }
  return NULL;
}

static void warn(const char* line) { pg_log(PG_WARNING, "%s", line); }

// Of values that fused layers hide on these inputs, and their format could not hold. Once: the
// first inputs tell.
static assay_status_t report_risks(pg_runner_t* r, const assay_set_t* inputs) {
  const assay_graph_t* g = assay_executor_graph(r->executor);
  assay_tensor_t** all = NULL;
  assay_status_t st = NULL;
  if (!r->engine || r->reported_risks) return NULL;
  r->reported_risks = true;
  ASSAY_TRY(assay_new_array(g->n_inputs, sizeof *all, &all));
  for (size_t i = 0; !st && i < g->n_inputs; i++) {
    assay_tensor_t* t = assay_set_find(inputs, g->inputs[i]->name);
    if (t) st = typed_input(g->inputs[i], t, &all[i]);
  }
  if (!st) cli_warn_of_hidden(r->engine, all, warn);
  for (size_t i = 0; i < g->n_inputs; i++) assay_tensor_release(all[i]);
  assay_free(all);
  return st;
}

assay_status_t pg_runner_run(pg_runner_t* r, const assay_set_t* inputs, assay_set_t* out,
                             double* out_seconds) {
  assay_set_deinit(&r->seen);
  ASSAY_TRY(assay_status_note(check_inputs(r, inputs), "%s", r->name));
  const double start = assay_clock_seconds();
  ASSAY_TRY(assay_status_note(run_executor(r->executor, inputs), "%s", r->name));
  *out_seconds = assay_clock_seconds() - start;
  ASSAY_TRY(report_risks(r, inputs));
  if (r->marked_executor) ASSAY_TRY(run_executor(r->marked_executor, inputs));
  const assay_graph_t* g = assay_executor_graph(r->executor);
  for (size_t i = 0; i < r->n_names; i++) ASSAY_TRY(collect(r, r->names[i], out));
  for (size_t i = 0; !r->n_names && i < g->n_outputs; i++)
    ASSAY_TRY(collect(r, g->outputs[i]->name, out));
  return NULL;
}
