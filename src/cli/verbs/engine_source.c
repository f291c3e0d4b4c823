// From a model or a plan file, and options, to an engine: what build, bench and run share.
#include "cli/verbs/engine_source.h"

#include <string.h>

#include "base/alloc.h"
#include "cli/plan_options.h"
#include "exec/targets.h"
#include "formats/format.h"

typedef struct profiles {
  assay_profile_t* at;
  char** names;  // of the first n_names; others' live in the model
  size_t n, n_names;
} profiles_t;

static void profiles_deinit(profiles_t* p) {
  for (size_t i = 0; i < p->n_names; i++) assay_free(p->names[i]);
  assay_free(p->names);
  assay_free(p->at);
}

// An input that is named again belongs to the next profile.
static int profile_of(const profiles_t* p, const char* name) {
  int n = 0;
  for (size_t i = 0; i < p->n; i++) n += strcmp(p->names[i], name) == 0;
  return n;
}

static assay_status_t parse_profiles(const opt_list_t* texts, profiles_t* out) {
  ASSAY_TRY(assay_new_array(texts->n, sizeof *out->at, &out->at));
  ASSAY_TRY(assay_new_array(texts->n, sizeof *out->names, &out->names));
  for (; out->n < texts->n; out->n++) {
    const char* text = texts->items[out->n];
    const char* equals = strchr(text, '=');
    if (!equals || equals == text)
      return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "'%s' is not a profile: say NAME=MIN:OPT:MAX",
                         text);
    char* name = assay_malloc((size_t)(equals - text) + 1);
    if (!name) return assay_status_no_memory();
    memcpy(name, text, (size_t)(equals - text));
    name[equals - text] = 0;
    const int profile = profile_of(out, name);
    out->names[out->n] = name;
    assay_status_t st = assay_profile_parse(name, equals + 1, &out->at[out->n]);
    out->n_names++;
    if (st) return out->n++, st;
    out->at[out->n].profile = profile;
  }
  return NULL;
}

// The range of a dimension of this name in a profile, from an input that says something of it.
static bool range_of(const profiles_t* p, int profile, const assay_graph_t* g, const char* name,
                     const assay_profile_t** out, int* out_dim) {
  for (size_t i = 0; i < p->n; i++) {
    const assay_value_t* v = assay_graph_find(g, p->at[i].input);
    const assay_valtype_t* t = v ? v->type ? v->type : v->declared : NULL;
    if (p->at[i].profile != profile || p->at[i].values || !t || t->rank != p->at[i].rank) continue;
    for (int d = 0; name && d < t->rank; d++) {
      const char* own = assay_dim_name(t->dims[d]);
      if (!own || strcmp(own, name) != 0) continue;
      *out = &p->at[i];
      *out_dim = d;
      return true;
    }
  }
  return false;
}

// What a profile says of an input by the dimensions that it shares with others. False: it has open
// sizes of its own, or too many.
static bool follow(const profiles_t* p, int profile, const assay_graph_t* g, const assay_value_t* v,
                   assay_profile_t* out) {
  const assay_valtype_t* t = v->type ? v->type : v->declared;
  bool open = false;
  if (v->constant || !t || t->kind != ASSAY_KIND_TENSOR || !t->has_shape) return false;
  if (t->rank > ASSAY_PROFILE_MAX_RANK) return false;
  *out = (assay_profile_t){.input = v->name, .profile = profile, .rank = t->rank};
  for (int d = 0; d < t->rank; d++) {
    const assay_profile_t* from;
    int at;
    int64_t fixed;
    if (t->dims[d] && assay_dim_value(t->dims[d], &fixed)) {
      out->min[d] = out->opt[d] = out->max[d] = fixed;
      continue;
    }
    if (!t->dims[d] || !range_of(p, profile, g, assay_dim_name(t->dims[d]), &from, &at))
      return false;
    open = true;
    out->min[d] = from->min[at];
    out->opt[d] = from->opt[at];
    out->max[d] = from->max[at];
  }
  return open;
}

// Inputs that no profile names, with dimensions that one does, get profiles, too: the sizes agree.
static assay_status_t add_followers(const assay_graph_t* g, profiles_t* p) {
  const size_t n = p->n;
  const int count = assay_profiles_count(p->at, n);
  assay_profile_t* all = NULL;
  if (!n) return NULL;
  ASSAY_TRY(assay_new_array(n + (size_t)count * g->n_inputs, sizeof *all, &all));
  memcpy(all, p->at, n * sizeof *all);
  size_t n_all = n;
  for (size_t i = 0; i < g->n_inputs; i++)
    for (int k = 0; k < count; k++)
      if (!assay_profiles_find(p->at, n, g->inputs[i]->name, k))
        n_all += follow(p, k, g, g->inputs[i], &all[n_all]);
  assay_free(p->at);
  p->at = all;
  p->n = n_all;
  return NULL;
}

// The model in the shapes that are given.
static assay_status_t load_open(const cli_engine_args_t* a, cli_shapes_t* given,
                                assay_model_t** out) {
  if (!a->loaded) return cli_shapes_load(a->model, false, given, out);
  ASSAY_TRY(cli_shapes_settle(a->loaded, given));
  if (given->n) return assay_onnx_reshape(a->loaded, given->n, given->shapes, out);
  return *out = assay_model_retain(a->loaded), NULL;
}

// Loads the model, with sizes that are open closed; what profiles leave open stays.
static assay_status_t load(const cli_engine_args_t* a, cli_shapes_t* given, profiles_t* profiles,
                           assay_model_t** out) {
  assay_model_t* open = NULL;
  assay_input_shape_t* shapes = NULL;
  int64_t(*dims)[ASSAY_MAX_RANK] = NULL;
  ASSAY_TRY(load_open(a, given, &open));
  assay_status_t st = add_followers(open->graph, profiles);
  if (!st) st = assay_new_array(profiles->n, sizeof *shapes, &shapes);
  if (!st) st = assay_new_array(profiles->n, sizeof *dims, &dims);
  size_t n = 0;
  for (size_t i = 0; !st && i < profiles->n; i++) {
    if (profiles->at[i].profile) continue;
    const char* name = profiles->at[i].input;
    assay_profiles_shape(profiles->at, profiles->n, name, assay_graph_find(open->graph, name),
                         dims[n], &shapes[n]);
    n++;
  }
  if (!st) st = cli_shapes_close(open, n, shapes, out);
  // Names of profiles are to live as long as the model does that they are of.
  for (size_t i = profiles->n_names; !st && i < profiles->n; i++)
    profiles->at[i].input = assay_graph_find((*out)->graph, profiles->at[i].input)->name;
  assay_model_release(open);
  assay_free(shapes);
  assay_free(dims);
  return st;
}

static assay_status_t make_plan(const cli_engine_args_t* a, assay_model_t* model,
                                const assay_backend_t** out_backend, assay_plan_t** out) {
  assay_precision_t precision = {.format = ASSAY_FORMAT_FP32};
  if (a->precision && strcmp(a->precision, "int8") == 0)
    ASSAY_TRY(assay_model_want_quantizers(model));
  else if (a->precision)
    precision.format = assay_format_parse(a->precision);
  if (!assay_format_info(precision.format)->is_float)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "unknown precision '%s'", a->precision);
  ASSAY_TRY(assay_target_find(a->target, ASSAY_TARGET_BUILD, out_backend));
  assay_status_t st = NULL;
  if (a->layer_precision) st = assay_precision_parse(&precision, a->layer_precision);
  assay_plan_options_t options = cli_plan_options(!a->unfused, &a->no_pass);
  if (!st) st = cli_parse_fp32(a->fp32, &options.fp32);
  if (!st) st = assay_plan_create(model, &precision, &options, (uint64_t)a->seed, out);
  assay_precision_deinit(&precision);
  return st;
}

static assay_status_t refuse_options(const cli_engine_args_t* a) {
  const char* given = a->precision         ? "--precision"
                      : a->layer_precision ? "--layer-precision"
                      : a->fp32            ? "--fp32"
                      : a->tactic_sources  ? "--tactic-sources"
                      : a->batch_variant   ? "--no-batch-invariant"
                      : a->max_scratch     ? "--max-scratch"
                      : a->unfused         ? "--unfused"
                      : a->no_pass.n       ? "--no-pass"
                                           : NULL;
  if (!given) return NULL;
  return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                     "'%s' is a plan: %s was settled when it was built; give the model instead",
                     a->model, given);
}

static assay_status_t open_model(const cli_engine_args_t* a, cli_shapes_t* shapes,
                                 profiles_t* profiles, const assay_backend_options_t* options,
                                 assay_engine_t** out, int* exit_code) {
  assay_backend_options_t o = options ? *options : (assay_backend_options_t){0};
  o.tactic_sources = a->tactic_sources;
  o.batch_variant = a->batch_variant;
  o.max_scratch = (uint64_t)a->max_scratch;
  assay_model_t* model = NULL;
  assay_plan_t* plan = NULL;
  const assay_backend_t* backend = NULL;
  *exit_code = ASSAY_EXIT_INPUT;
  ASSAY_TRY(load(a, shapes, profiles, &model));
  *exit_code = ASSAY_EXIT_USAGE;
  assay_status_t st = make_plan(a, model, &backend, &plan);
  if (!st) st = assay_engine_create(plan, backend, &o, out);
  assay_model_release(model);
  if (st) return st;
  st = assay_engine_set_profiles(*out, profiles->at, profiles->n);
  if (st) assay_engine_release(*out);
  return st;
}

assay_status_t cli_engine_open(const cli_engine_args_t* a, const assay_backend_options_t* options,
                               assay_engine_t** out, int* exit_code) {
  cli_shapes_t shapes = {0};
  profiles_t profiles = {0};
  *exit_code = ASSAY_EXIT_USAGE;
  if (!a->loaded && assay_engine_is_plan_file(a->model)) {
    ASSAY_TRY(refuse_options(a));
    *exit_code = ASSAY_EXIT_INPUT;
    return assay_engine_load_on(a->model, a->target, out);
  }
  ASSAY_TRY(cli_shapes_parse(&a->shape, &shapes));
  assay_status_t st = parse_profiles(&a->profiles, &profiles);
  if (!st) st = open_model(a, &shapes, &profiles, options, out, exit_code);
  profiles_deinit(&profiles);
  cli_shapes_free(&shapes);
  return st;
}

// The smallest (-1), the largest (1), the best (0) of a range.
static const int64_t* numbers_of(const assay_profile_t* p, int which) {
  return which < 0 ? p->min : which ? p->max : p->opt;
}

// The shapes of a profile; what inputs hold is put_values' business.
static assay_status_t profile_shapes(const assay_engine_t* engine, int profile, int which,
                                     assay_input_shape_t** out, size_t* out_n) {
  const assay_profile_t* p;
  const size_t n = assay_engine_profiles(engine, &p);
  *out_n = 0;
  ASSAY_TRY(assay_new_array(n, sizeof **out, out));
  for (size_t i = 0; i < n; i++)
    if (p[i].profile == profile && !p[i].values)
      (*out)[(*out_n)++] = (assay_input_shape_t){p[i].input, p[i].rank, numbers_of(&p[i], which)};
  return NULL;
}

// Inputs that hold shapes get the values of the profile.
static assay_status_t put_values(const assay_engine_t* engine, int profile, int which,
                                 assay_samples_t* samples) {
  const assay_graph_t* g = assay_plan_layers(assay_engine_plan(engine))->model->graph;
  const assay_profile_t* all;
  const size_t n = assay_engine_profiles(engine, &all);
  for (size_t i = 0; i < g->n_inputs; i++) {
    const assay_profile_t* p = assay_profiles_find(all, n, g->inputs[i]->name, profile);
    if (!p || !p->values) continue;
    assay_tensor_t** at = &samples->at[i];
    assay_tensor_t* made = NULL;
    ASSAY_TRY(assay_profile_values(p, g->inputs[i], numbers_of(p, which), &made));
    assay_tensor_release(*at);
    *at = made;
  }
  return NULL;
}

static assay_status_t profile_samples(const assay_engine_t* engine, int profile, int which,
                                      uint64_t seed, assay_samples_t* out) {
  const assay_model_t* m = assay_plan_layers(assay_engine_plan(engine))->model;
  assay_input_shape_t* shapes = NULL;
  size_t n;
  ASSAY_TRY(profile_shapes(engine, profile, which, &shapes, &n));
  assay_status_t st = assay_samples_generate_shaped(m, n, shapes, seed, out);
  if (!st && (st = put_values(engine, profile, which, out))) assay_samples_deinit(out);
  assay_free(shapes);
  return st;
}

assay_status_t cli_engine_samples(const assay_engine_t* engine, const cli_shapes_t* shapes,
                                  int profile, uint64_t seed, assay_samples_t* out) {
  const assay_model_t* m = assay_plan_layers(assay_engine_plan(engine))->model;
  if (!shapes->n) return profile_samples(engine, profile, 0, seed, out);
  ASSAY_TRY(assay_samples_generate_shaped(m, shapes->n, shapes->shapes, seed, out));
  assay_status_t st = put_values(engine, profile, 0, out);
  if (st) assay_samples_deinit(out);
  return st;
}

// An input of integers may choose what runs (a rate, a mode); one drawn at random chooses anything.
static assay_status_t note_what_chooses(const assay_engine_t* engine, assay_status_t st) {
  const assay_graph_t* g = assay_plan_layers(assay_engine_plan(engine))->model->graph;
  const bool by_value = st && assay_status_code(st) == ASSAY_INVALID_ARGUMENT;
  for (size_t i = 0; by_value && i < g->n_inputs; i++) {
    const assay_valtype_t* t = g->inputs[i]->type;
    if (t && t->kind == ASSAY_KIND_TENSOR && t->has_shape && t->rank < 2 &&
        (t->elem == ASSAY_TYPE_INT64 || t->elem == ASSAY_TYPE_INT32))
      return assay_status_note(st,
                               "tried on inputs drawn at random ('%s' can be given: --profile "
                               "'%s=[V]:[V]:[V]', V being a value of it)",
                               g->inputs[i]->name, g->inputs[i]->name);
  }
  return st;
}

static assay_status_t try_shape(const assay_engine_t* engine, int profile, int which, uint64_t seed,
                                assay_executor_t* e) {
  assay_samples_t samples = {0};
  ASSAY_TRY(profile_samples(engine, profile, which, seed, &samples));
  assay_executor_reset(e);
  assay_status_t st = assay_executor_set_inputs(e, assay_samples_get(&samples, 0));
  if (!st) st = note_what_chooses(engine, assay_executor_run(e));
  assay_samples_deinit(&samples);
  return st;
}

assay_status_t cli_engine_try(assay_engine_t* engine, uint64_t seed, assay_executor_t** out) {
  const assay_profile_t* p;
  assay_executor_t* e = NULL;
  ASSAY_TRY(assay_executor_run_engine(engine, NULL, &e));
  assay_status_t st = NULL;
  const size_t n = assay_engine_profiles(engine, &p);
  const int count = assay_profiles_count(p, n);
  // The first profile comes last: what is told of a build is told of its best shapes.
  for (int k = count - 1; !st && k >= 0; k--) {
    st = assay_status_note(try_shape(engine, k, -1, seed, e), "in the smallest shapes");
    if (!st) st = assay_status_note(try_shape(engine, k, 1, seed, e), "in the largest shapes");
    if (!st && k) st = try_shape(engine, k, 0, seed, e);
    if (st && count > 1) st = assay_status_note(st, "profile %d", k);
  }
  if (!st) st = try_shape(engine, 0, 0, seed, e);
  if (st) return assay_executor_destroy(e), st;
  *out = e;
  return NULL;
}

// ---- building -----------------------------------------------------------------------------------

typedef struct trial {
  const cli_build_t* build;
  uint64_t seed;
} trial_t;

static assay_status_t try_out(void* p, assay_engine_t* engine) {
  const trial_t* t = p;
  assay_executor_t* e = NULL;
  ASSAY_TRY(cli_engine_try(engine, t->seed, &e));
  assay_status_t st = t->build->tried ? t->build->tried(t->build->user, engine, e) : NULL;
  assay_executor_destroy(e);
  return st;
}

assay_status_t cli_engine_build(const cli_engine_args_t* a, const cli_build_t* b,
                                assay_engine_t** out, int* exit_code) {
  trial_t trial = {b, (uint64_t)a->seed};
  assay_mapping_t* cache = NULL;
  assay_engine_t* engine = NULL;
  *exit_code = ASSAY_EXIT_INPUT;
  ASSAY_TRY(assay_timing_cache_read(b->timing_cache, &cache));
  assay_backend_options_t options = {.tactic_sources = a->tactic_sources,
                                     .timings = b->timings,
                                     .timings_bytes = b->timings ? strlen(b->timings) : 0,
                                     .measure = !b->unmeasured,
                                     .batch_variant = a->batch_variant,
                                     .max_tactics = b->max_tactics,
                                     .forced = b->forced,
                                     .timing_runs = b->timing_runs,
                                     .max_scratch = (uint64_t)a->max_scratch};
  if (cache) {
    options.timings = (const char*)assay_mapping_data(cache);
    options.timings_bytes = assay_mapping_size(cache);
  }
  assay_status_t st = cli_engine_open(a, &options, &engine, exit_code);
  assay_mapping_release(cache);
  if (st) return st;
  assay_engine_set_strip(engine, (assay_strip_t){a->strip_weights, a->refittable});
  *exit_code = ASSAY_EXIT_FAILED;
  st = try_out(&trial, engine);
  if (!st) st = assay_engine_settle(engine, &options, b->timing_cache, try_out, &trial);
  if (st) return assay_engine_release(engine), st;
  *out = engine;
  return NULL;
}
