// Building engines: include/assay/engine.h.
#include <assay/engine.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cancel/cancel.h"
#include "base/random.h"
#include "exec/targets.h"
#include "formats/format.h"
#include "onnx/load.h"
#include "runtime/engine_internal.h"
#include "runtime/executor.h"

// ---- shapes -------------------------------------------------------------------------------------

static const assay_valtype_t* type_of(const assay_value_t* v) {
  return v->type ? v->type : v->declared;
}

static bool is_open(const assay_value_t* v) {
  const assay_valtype_t* t = type_of(v);
  int64_t size;
  if (v->constant || !t || t->kind != ASSAY_KIND_TENSOR) return false;
  if (!t->has_shape) return true;
  for (int d = 0; d < t->rank; d++)
    if (!assay_dim_value(t->dims[d], &size)) return true;
  return false;
}

static assay_status_t check_range(const assay_engine_shape_t* s) {
  bool ok = s->min && s->max && s->rank <= ASSAY_PROFILE_MAX_RANK;
  for (int d = 0; ok && d < s->rank; d++)
    ok = s->min[d] >= 1 && s->min[d] <= s->dims[d] && s->dims[d] <= s->max[d];
  return ok ? NULL
            : ASSAY_ERROR(
                  ASSAY_INVALID_ARGUMENT,
                  "the range of input '%s': give min and max, of %d dimensions at most, with "
                  "1 <= min <= dims <= max",
                  s->input, ASSAY_PROFILE_MAX_RANK);
}

static assay_status_t check_shapes(const assay_engine_options_t* o) {
  if (o->batch < 0)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "a batch of %lld: give 1 or more, or 0 for none",
                       (long long)o->batch);
  for (size_t i = 0; i < o->n_shapes; i++) {
    const assay_engine_shape_t* s = &o->shapes[i];
    if (!s->input || s->rank < 0 || s->rank > ASSAY_MAX_RANK || (s->rank && !s->dims))
      return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                         "shape %zu has no name, no dimensions, or %d of them; there may be %d", i,
                         s->rank, ASSAY_MAX_RANK);
    if (s->min || s->max) ASSAY_TRY(check_range(s));
  }
  return NULL;
}

// Which profile a range belongs to: an input that is named again belongs to the next one.
static int number_of(const assay_engine_options_t* o, size_t i) {
  int n = 0;
  for (size_t k = 0; k < i; k++)
    n +=
        o->shapes[k].min && o->shapes[i].min && strcmp(o->shapes[k].input, o->shapes[i].input) == 0;
  return n;
}

// The size of a dimension in every profile; -1: it differs, or is open in one.
static int64_t common_size(const assay_engine_options_t* o, const assay_engine_shape_t* s, int d) {
  for (size_t i = 0; s->min && i < o->n_shapes; i++) {
    const assay_engine_shape_t* x = &o->shapes[i];
    if (!x->min || strcmp(x->input, s->input) != 0) continue;
    if (d >= x->rank || x->min[d] != x->max[d] || x->min[d] != s->dims[d]) return -1;
  }
  return s->dims[d];
}

// The model in the shapes that are asked for, ranges left open; with a batch, other open sizes are
// that. It may be the same model, retained.
static assay_status_t shape_model(assay_model_t* model, const assay_engine_options_t* o,
                                  assay_model_t** out) {
  assay_input_shape_t *shapes = NULL, *ranges = NULL;
  int64_t(*dims)[ASSAY_MAX_RANK] = NULL;
  assay_model_t* m = NULL;
  size_t n = 0, n_ranges = 0;
  ASSAY_TRY(check_shapes(o));
  assay_status_t st = assay_new_array(o->n_shapes, sizeof *shapes, &shapes);
  if (!st) st = assay_new_array(o->n_shapes, sizeof *ranges, &ranges);
  if (!st) st = assay_new_array(o->n_shapes, sizeof *dims, &dims);
  for (size_t i = 0; !st && i < o->n_shapes; i++) {
    const assay_engine_shape_t* s = &o->shapes[i];
    if (number_of(o, i)) continue;
    for (int d = 0; d < s->rank; d++) dims[n][d] = common_size(o, s, d);
    shapes[n] = (assay_input_shape_t){s->input, s->rank, dims[n]};
    if (s->min) ranges[n_ranges++] = shapes[n];
    n++;
  }
  if (!st && n)
    st = assay_onnx_reshape(model, n, shapes, &m);
  else if (!st)
    m = assay_model_retain(model);
  if (!st && o->batch)
    st = assay_onnx_close_sizes(m, o->batch, n_ranges, ranges, out);
  else if (!st)
    *out = assay_model_retain(m);
  assay_model_release(m);
  assay_free(shapes);
  assay_free(ranges);
  assay_free(dims);
  return st;
}

static assay_status_t set_profiles(assay_engine_t* e, const assay_engine_options_t* o) {
  assay_profile_t* p = NULL;
  size_t n = 0;
  ASSAY_TRY(assay_new_array(o->n_shapes, sizeof *p, &p));
  for (size_t i = 0; i < o->n_shapes; i++) {
    const assay_engine_shape_t* s = &o->shapes[i];
    if (!s->min) continue;
    p[n] = (assay_profile_t){.input = s->input, .profile = number_of(o, i), .rank = s->rank};
    for (int d = 0; d < s->rank; d++) {
      p[n].min[d] = s->min[d];
      p[n].opt[d] = s->dims[d];
      p[n].max[d] = s->max[d];
    }
    n++;
  }
  assay_status_t st = assay_engine_set_profiles(e, p, n);
  assay_free(p);
  return st;
}

// ---- trials -------------------------------------------------------------------------------------

// A tensor to try an input with: normal floats; integers of 0, which are indices into anything.
// sizes: of open dimensions; NULL: 1.
static assay_status_t make_up(const assay_value_t* v, const int64_t* sizes, uint64_t seed,
                              assay_tensor_t** out) {
  const assay_valtype_t* t = type_of(v);
  int64_t dims[ASSAY_MAX_RANK] = {0};
  if (!t || t->kind != ASSAY_KIND_TENSOR || !t->has_shape || !t->elem ||
      t->elem == ASSAY_TYPE_STRING)
    return ASSAY_ERROR(ASSAY_UNSUPPORTED, "cannot make up values for input '%s' (%s)", v->name,
                       ASSAY_VALTYPE_TEXT(t));
  for (int i = 0; i < t->rank; i++)
    if (!assay_dim_value(t->dims[i], &dims[i])) dims[i] = sizes ? sizes[i] : 1;
  ASSAY_TRY(assay_status_note(assay_tensor_create_zero(t->elem, t->rank, dims, out), "input '%s'",
                              v->name));
  const assay_random_t r = assay_random_make(seed, v->name, 0);
  if (!assay_type_is_float(t->elem)) return NULL;
  for (int64_t i = 0; i < (*out)->size; i++)
    assay_f64(*out)[i] = assay_format_round(
        assay_type_format(t->elem), assay_random_normal(&r, (uint64_t)i), ASSAY_OVERFLOW_SATURATE);
  return NULL;
}

static bool can_make_up(const assay_graph_t* g) {
  for (size_t i = 0; i < g->n_inputs; i++) {
    const assay_valtype_t* t = type_of(g->inputs[i]);
    if (!g->inputs[i]->constant && (!t || t->kind != ASSAY_KIND_TENSOR || !t->has_shape ||
                                    !t->elem || t->elem == ASSAY_TYPE_STRING))
      return false;
  }
  return true;
}

typedef enum size_choice { SIZE_SMALLEST, SIZE_LARGEST, SIZE_BEST } size_choice_t;

// Of an input in a profile, as that says; p NULL: nothing.
static assay_status_t make_up_in(const assay_profile_t* p, const assay_value_t* v,
                                 size_choice_t which, uint64_t seed, assay_tensor_t** out) {
  if (!p) return make_up(v, NULL, seed, out);
  const int64_t* n = which == SIZE_SMALLEST ? p->min : which == SIZE_LARGEST ? p->max : p->opt;
  return p->values ? assay_profile_values(p, v, n, out) : make_up(v, n, seed, out);
}

static assay_status_t run_made_up(const assay_engine_t* engine, assay_executor_t* e, int profile,
                                  size_choice_t which, uint64_t seed) {
  const assay_graph_t* g = assay_executor_graph(e);
  const assay_profile_t* all;
  const size_t n = assay_engine_profiles(engine, &all);
  assay_executor_reset(e);
  for (size_t i = 0; i < g->n_inputs; i++) {
    assay_tensor_t* t = NULL;
    if (g->inputs[i]->constant) continue;
    ASSAY_TRY(make_up_in(assay_profiles_find(all, n, g->inputs[i]->name, profile), g->inputs[i],
                         which, seed, &t));
    assay_status_t st = assay_executor_set(e, g->inputs[i], t);
    assay_tensor_release(t);
    if (st) return st;
  }
  return assay_executor_run(e);
}

// Whether a run failed by the values of its inputs: a shape of zeros, a threshold below 0. Where
// they are made up, that is not a fault of the engine's.
static bool by_values(assay_status_t st) {
  const assay_code_t code = assay_status_code(st);
  return code == ASSAY_INVALID_ARGUMENT || code == ASSAY_CORRUPT;
}

static assay_status_t try_out(void* user, assay_engine_t* engine) {
  const assay_engine_options_t* o = user;
  assay_executor_t* e = NULL;
  ASSAY_TRY(assay_executor_run_engine(engine, NULL, &e));
  const assay_profile_t* p;
  const size_t n = assay_engine_profiles(engine, &p);
  assay_status_t st = NULL;
  // The best shapes of the first profile come last.
  for (int k = assay_profiles_count(p, n) - 1; !st && k >= 0; k--) {
    st = run_made_up(engine, e, k, SIZE_SMALLEST, o->seed);
    if (!st) st = run_made_up(engine, e, k, SIZE_LARGEST, o->seed);
    if (!st && k) st = run_made_up(engine, e, k, SIZE_BEST, o->seed);
  }
  if (!st) st = run_made_up(engine, e, 0, SIZE_BEST, o->seed);
  if (!st && o->strict) st = assay_engine_check_strict(engine, e);
  assay_executor_destroy(e);
  return st;
}

// Whether each open input has a range.
static bool all_known(const assay_engine_t* e) {
  const assay_graph_t* g = assay_plan_layers(assay_engine_plan(e))->model->graph;
  const assay_profile_t* p;
  const size_t n = assay_engine_profiles(e, &p);
  for (size_t i = 0; i < g->n_inputs; i++)
    if (is_open(g->inputs[i]) && !assay_profiles_find(p, n, g->inputs[i]->name, 0)) return false;
  return true;
}

assay_status_t assay_engine_try(assay_engine_t* e, bool open_as_one) {
  const assay_layers_t* l = assay_plan_layers(assay_engine_plan(e));
  assay_engine_options_t o = ASSAY_ENGINE_OPTIONS_INIT;
  o.seed = l->seed;
  const bool worth = can_make_up(l->model->graph) && (open_as_one || all_known(e));
  return worth ? try_out(&o, e) : NULL;
}

assay_status_t assay_engine_reserve(const assay_engine_t* e, assay_executor_t* executor,
                                    int profile) {
  const assay_layers_t* l = assay_plan_layers(e->plan);
  const assay_profile_t* p;
  const size_t n = assay_engine_profiles(e, &p);
  const int given = assay_profiles_count(p, n), count = given ? given : 1;
  assay_status_t st = NULL;
  if (profile >= count)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "there is no profile %d: the engine has %d", profile,
                       count);
  if (!can_make_up(l->model->graph) || !all_known(e)) return NULL;
  for (int k = 0; !st && k < count; k++)
    if (profile < 0 || k == profile) st = run_made_up(e, executor, k, SIZE_LARGEST, l->seed);
  assay_executor_reset(executor);
  // The inputs are made up: what fails by their values is not a fault of the engine's.
  if (assay_status_code(st) == ASSAY_NO_MEMORY || assay_status_code(st) == ASSAY_DEVICE) return st;
  assay_status_free(st);
  return NULL;
}

// ---- building -----------------------------------------------------------------------------------

static assay_status_t make_plan(assay_model_t* model, const assay_engine_options_t* o,
                                assay_plan_t** out) {
  assay_precision_t precision;
  assay_plan_options_t options = {.fp32 = o->fp32};
  ASSAY_TRY(assay_plan_options_settle(&options, o->fusion, true));
  ASSAY_TRY(
      assay_precision_open(model, o->precision, o->accumulator, o->layer_precision, &precision));
  assay_status_t st = assay_plan_create(model, &precision, &options, o->seed, out);
  assay_precision_deinit(&precision);
  return st;
}

static assay_status_t build(assay_model_t* model, assay_engine_options_t* o,
                            const assay_backend_t* backend, const assay_backend_options_t* options,
                            assay_engine_t** out) {
  assay_model_t* shaped = NULL;
  assay_plan_t* plan = NULL;
  assay_engine_t* e = NULL;
  ASSAY_TRY(shape_model(model, o, &shaped));
  const assay_graph_t* g = shaped->graph;
  const bool asked = o->strict || options->measure;
  assay_status_t st = make_plan(shaped, o, &plan);
  if (!st) st = assay_engine_create(plan, backend, options, &e);
  if (!st) st = set_profiles(e, o);
  if (!st) assay_engine_set_strip(e, (assay_strip_t){o->strip_weights, o->refittable});
  bool worth = !st && (asked || (can_make_up(g) && all_known(e)));
  if (worth) st = assay_status_note(try_out(o, e), "trying the engine out");
  if (st && worth && !asked && by_values(st)) assay_status_free(st), st = NULL, worth = false;
  if (!st && worth) st = assay_engine_settle(e, options, o->timing_cache, try_out, o);
  if (!st) st = assay_cancel_check();
  assay_model_release(shaped);
  if (st) return assay_engine_release(e), st;
  *out = e;
  return NULL;
}

assay_status_t assay_engine_build(assay_model_t* model, const assay_engine_options_t* options,
                                  assay_engine_t** out) {
  assay_engine_options_t o = ASSAY_ENGINE_OPTIONS_INIT;
  if (options)  // an older caller's struct may be shorter
    memcpy(&o, options, options->struct_size < sizeof o ? options->struct_size : sizeof o);
  const assay_backend_t* backend;
  assay_mapping_t* cache = NULL;
  ASSAY_TRY(assay_onnx_want_known(model));
  ASSAY_TRY(assay_target_find(o.target, ASSAY_TARGET_BUILD, &backend));
  ASSAY_TRY(assay_timing_cache_read(o.timing_cache, &cache));
  const assay_backend_options_t with = {
      .tactic_sources = o.tactic_sources,
      .timings = cache ? (const char*)assay_mapping_data(cache) : NULL,
      .timings_bytes = cache ? assay_mapping_size(cache) : 0,
      .measure = o.measure || o.timing_cache,
      .batch_variant = o.batch_variant};
  assay_status_t st = build(model, &o, backend, &with, out);
  assay_mapping_release(cache);
  return st;
}

// ---- inputs and outputs -------------------------------------------------------------------------

static const assay_graph_t* graph_of(const assay_engine_t* e) {
  return assay_plan_layers(assay_engine_plan(e))->model->graph;
}

size_t assay_engine_input_count(const assay_engine_t* e) {
  const assay_graph_t* g = graph_of(e);
  size_t n = 0;
  for (size_t k = 0; k < g->n_inputs; k++) n += !g->inputs[k]->constant;
  return n;
}

const assay_io_t* assay_engine_input(const assay_engine_t* e, size_t i) {
  const assay_graph_t* g = graph_of(e);
  for (size_t k = 0; k < g->n_inputs; k++)
    if (!g->inputs[k]->constant && i-- == 0) return g->inputs[k];
  return NULL;
}

size_t assay_engine_profile_count(const assay_engine_t* e) {
  const assay_profile_t* p;
  const size_t n = assay_engine_profiles(e, &p);
  return (size_t)assay_profiles_count(p, n);
}

assay_status_t assay_engine_profile_range(const assay_engine_t* e, size_t profile, size_t i,
                                          assay_engine_range_t* out) {
  const assay_io_t* io = assay_engine_input(e, i);
  const assay_profile_t* all;
  const size_t n = assay_engine_profiles(e, &all), count = assay_engine_profile_count(e);
  if (!io || profile >= count)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                       "there is no profile %zu of input %zu: the engine has %zu profiles and %zu "
                       "inputs",
                       profile, i, count, assay_engine_input_count(e));
  if (out->struct_size < sizeof *out)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "a range takes %zu bytes, not %zu", sizeof *out,
                       out->struct_size);
  const assay_profile_t* p = assay_profiles_find(all, n, io->name, (int)profile);
  if (!p) return ASSAY_ERROR(ASSAY_NOT_FOUND, "the profiles say nothing of input '%s'", io->name);
  const size_t bytes = (size_t)p->rank * sizeof *p->min;
  out->values = p->values;
  out->rank = p->rank;
  memcpy(out->min, p->min, bytes);
  memcpy(out->best, p->opt, bytes);
  memcpy(out->max, p->max, bytes);
  return NULL;
}

size_t assay_engine_output_count(const assay_engine_t* e) { return graph_of(e)->n_outputs; }

const assay_io_t* assay_engine_output(const assay_engine_t* e, size_t i) {
  return i < graph_of(e)->n_outputs ? graph_of(e)->outputs[i] : NULL;
}

static assay_status_t find(const assay_engine_t* e, const char* what, const char* name,
                           const assay_io_t* at(const assay_engine_t*, size_t), size_t* out) {
  const assay_io_t* io;
  for (size_t i = 0; (io = at(e, i)); i++)
    if (strcmp(io->name, name) == 0) return *out = i, NULL;
  return ASSAY_ERROR(ASSAY_NOT_FOUND, "the engine has no %s '%s'; the first one is '%s'", what,
                     name, at(e, 0) ? at(e, 0)->name : "");
}

assay_status_t assay_engine_find_input(const assay_engine_t* e, const char* name, size_t* out) {
  return find(e, "input", name, assay_engine_input, out);
}

assay_status_t assay_engine_find_output(const assay_engine_t* e, const char* name, size_t* out) {
  return find(e, "output", name, assay_engine_output, out);
}

const char* assay_io_name(const assay_io_t* io) { return io->name; }

assay_kind_t assay_io_kind(const assay_io_t* io) {
  return type_of(io) ? type_of(io)->kind : ASSAY_KIND_TENSOR;
}

assay_type_t assay_io_elem(const assay_io_t* io) {
  const assay_valtype_t* t = type_of(io);
  return t && t->kind == ASSAY_KIND_TENSOR ? t->elem : ASSAY_TYPE_UNDEFINED;
}

int assay_io_rank(const assay_io_t* io) {
  const assay_valtype_t* t = type_of(io);
  return t && t->kind == ASSAY_KIND_TENSOR && t->has_shape ? t->rank : -1;
}

int64_t assay_io_dim(const assay_io_t* io, int d) {
  int64_t size;
  if (d < 0 || d >= assay_io_rank(io) || !assay_dim_value(type_of(io)->dims[d], &size)) return -1;
  return size;
}

const char* assay_io_dim_name(const assay_io_t* io, int d) {
  return d >= 0 && d < assay_io_rank(io) ? assay_dim_name(type_of(io)->dims[d]) : NULL;
}

const char* assay_io_type(const assay_io_t* io, char* out_text, size_t capacity) {
  return assay_valtype_text(type_of(io), out_text, capacity);
}
