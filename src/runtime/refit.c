// Refit: new weights in a plan, made anew by what the plan was made by, without choosing tactics.
//
// The plan's file holds the model that it was made of. Its constants are replaced, the passes run
// again, and what they make is held against what they make of the old constants: but for elements
// it has to be the same. Then what was measured for the old one holds for the new one, and a build
// of the new model from the same times gives the same plan.
//
// A stripped plan has no old constants: there are their digests, and a hash of what the passes have
// made of them (stripped.h).
#include <assay/engine.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cancel/cancel.h"
#include "exec/device/code.h"
#include "formats/format.h"
#include "ir/compare.h"
#include "onnx/load.h"
#include "ops/infer.h"
#include "runtime/engine_internal.h"
#include "runtime/narrowed.h"

// A constant of the source, and what takes its place.
typedef struct weight {
  assay_value_t* value;
  assay_tensor_t* tensor;  // borrowed; NULL: it stays
} weight_t;

typedef struct refit {
  const assay_engine_t* engine;
  assay_model_t* source;
  assay_plan_t* base;               // of the source; NULL: of a stripped plan
  const assay_missing_t** missing;  // of a stripped plan, by value id of the source; else NULL
  const char* path;  // of the model that new weights come from; NULL: they come by name
  weight_t* weights;
  size_t n_weights, cap_weights;
  size_t* changed;  // numbers of weights whose elements differ, or are missing
  size_t n_changed;
  size_t n_other;  // of them: that differ from those that the plan was built with
} refit_t;

static void deinit(refit_t* r) {
  assay_plan_destroy(r->base);
  assay_model_release(r->source);
  assay_free(r->weights);
  assay_free(r->changed);
  assay_free(r->missing);
}

// ---- the constants of the source --------------------------------------------------------------

static assay_status_t add_weight(refit_t* r, assay_value_t* v, assay_tensor_t* tensor) {
  ASSAY_TRY(assay_grow(&r->weights, &r->cap_weights, r->n_weights + 1, sizeof *r->weights));
  r->weights[r->n_weights++] = (weight_t){v, tensor};
  return NULL;
}

static assay_status_t list_weights(refit_t* r) {
  assay_value_t** list = NULL;
  size_t n = 0;
  ASSAY_TRY(assay_constants_list(r->source, &list, &n));
  assay_status_t st = NULL;
  for (size_t i = 0; !st && i < n; i++) st = add_weight(r, list[i], NULL);
  assay_free(list);
  return st;
}

static assay_status_t find_weight(refit_t* r, const char* name, weight_t** out) {
  weight_t* found = NULL;
  for (size_t i = 0; i < r->n_weights; i++) {
    weight_t* w = &r->weights[i];
    if (strcmp(w->value->name, name) != 0) continue;
    if (w->value->graph == r->source->graph) return *out = w, NULL;
    if (found)
      return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                         "'%s' names several weights, in graphs within the plan's model; refit "
                         "from a model",
                         name);
    found = w;
  }
  if (found) return *out = found, NULL;
  const assay_value_t* v = assay_graph_find(r->source->graph, name);
  return ASSAY_ERROR(ASSAY_NOT_FOUND, "the plan's model has no weight '%s'%s", name,
                     v ? "; a run computes the value of this name" : "");
}

static assay_status_t check_form(const assay_value_t* v, const assay_tensor_t* t) {
  const assay_tensor_t* was = v->constant;
  const bool same =
      was->kind == t->kind && was->type == t->type && was->rank == t->rank &&
      (!was->rank || memcmp(was->dims, t->dims, (size_t)was->rank * sizeof *was->dims) == 0);
  if (same) return NULL;
  return ASSAY_ERROR(
      ASSAY_INVALID_ARGUMENT,
      "weight '%s' is %s%s in the plan, and the new one is %s%s; build the plan again", v->name,
      assay_type_name(was->type), ASSAY_DIMS_TEXT(was), assay_type_name(t->type),
      ASSAY_DIMS_TEXT(t));
}

static assay_status_t take_named(refit_t* r, size_t n, const char* const* names,
                                 assay_tensor_t* const* tensors) {
  ASSAY_TRY(list_weights(r));
  for (size_t i = 0; i < n; i++) {
    weight_t* w = NULL;
    ASSAY_TRY(find_weight(r, names[i], &w));
    ASSAY_TRY(check_form(w->value, tensors[i]));
    if (w->tensor)
      return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "weight '%s' is given twice", names[i]);
    w->tensor = tensors[i];
  }
  return NULL;
}

// ---- weights of a model -------------------------------------------------------------------------

static assay_status_t take_constant(void* user, assay_value_t* a, const assay_value_t* b) {
  return add_weight(user, a, b->constant);
}

// The sizes of inputs that are known in the source: it may have been built for some, and the model
// leaves them open.
static assay_status_t in_shapes_of(const assay_model_t* source, const assay_model_t* weights,
                                   assay_model_t** out) {
  const assay_graph_t* g = source->graph;
  assay_input_shape_t* shapes = NULL;
  int64_t(*dims)[ASSAY_MAX_RANK] = NULL;
  size_t n = 0;
  ASSAY_TRY(assay_new_array(g->n_inputs, sizeof *shapes, &shapes));
  assay_status_t st = assay_new_array(g->n_inputs, sizeof *dims, &dims);
  for (size_t i = 0; !st && i < g->n_inputs; i++) {
    const assay_valtype_t* t = g->inputs[i]->type;
    const assay_value_t* there = assay_graph_find(weights->graph, g->inputs[i]->name);
    if (g->inputs[i]->constant || !there || !t || t->kind != ASSAY_KIND_TENSOR || !t->has_shape)
      continue;
    for (int d = 0; d < t->rank; d++)
      if (!assay_dim_value(t->dims[d], &dims[n][d])) dims[n][d] = -1;
    shapes[n] = (assay_input_shape_t){g->inputs[i]->name, t->rank, dims[n]};
    n++;
  }
  if (!st) st = assay_onnx_reshape(weights, n, shapes, out);
  if (assay_status_code(st) == ASSAY_INVALID_ARGUMENT)
    st = assay_status_note(st, "the model is not the plan's with other weights");
  assay_free(shapes);
  assay_free(dims);
  return st;
}

static assay_status_t take_model(refit_t* r, const assay_model_t* weights) {
  const assay_compare_t options = {.constant = take_constant, .user = r};
  assay_str_t difference = {0};
  assay_status_t st = assay_model_compare(r->source, weights, &options, &difference);
  if (!st && difference.len)
    st = ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                     "the model is not the plan's with other weights: %s; build a plan of it",
                     assay_str_get(&difference));
  assay_str_deinit(&difference);
  return st;
}

// Whether a weight is the one that the plan was built with.
static assay_status_t is_same(const refit_t* r, const weight_t* w, bool* out) {
  const assay_missing_t* missing = r->missing ? r->missing[w->value->id] : NULL;
  uint64_t digest;
  *out = true;
  if (!missing) return w->tensor ? assay_narrow_same(w->value->constant, w->tensor, out) : NULL;
  if (!w->tensor)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                       "weight '%s' is missing: the plan is stripped and needs all of its %zu "
                       "weights; give the model that it was built of",
                       w->value->name, r->engine->stripped->n);
  ASSAY_TRY(assay_stripped_digest(w->tensor, &digest));
  *out = digest == missing->digest;
  return NULL;
}

static assay_status_t find_changed(refit_t* r) {
  ASSAY_TRY(assay_new_array(r->n_weights, sizeof *r->changed, &r->changed));
  for (size_t i = 0; i < r->n_weights; i++) {
    const weight_t* w = &r->weights[i];
    bool same;
    ASSAY_TRY(is_same(r, w, &same));
    if (!same && r->missing && !r->engine->stripped->refittable)
      return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                         "weight '%s' is not the one that the plan was built with, and the plan "
                         "was stripped without --refittable: give the model that it was built of, "
                         "or build it again with --refittable (trtexec: --stripAllWeights)",
                         w->value->name);
    r->n_other += !same;
    if (!same || (r->missing && r->missing[w->value->id])) r->changed[r->n_changed++] = i;
  }
  return NULL;
}

// ---- plans --------------------------------------------------------------------------------------

// filled: it was missing, and what else is known of it stays.
static assay_status_t set_constant(assay_model_t* m, assay_value_t* v, assay_tensor_t* t,
                                   bool filled) {
  ASSAY_TRY(assay_model_take_tensor(m, assay_tensor_retain(t)));
  v->constant = t;
  if (!filled) v->tensor_extra = (assay_bytes_t){0};
  v->is_sparse_initializer = false;
  v->external_location = NULL;
  if (!v->producer) return NULL;
  v->producer->attrs[0] = (assay_attr_t){
      .name = "value", .doc = "", .ref = "", .type = ASSAY_ATTR_TENSOR, .n = 1, .u.t = t};
  return NULL;
}

// The values of a copy, by the ids that they have in common with the original.
static void index_values(const assay_model_t* m, assay_value_t** by_id) {
  for (size_t k = 0; k < m->n_graphs; k++) {
    const assay_graph_t* g = m->graphs[k];
    for (size_t i = 0; i < g->n_initializers; i++)
      by_id[g->initializers[i]->id] = g->initializers[i];
    for (size_t i = 0; i < g->n_nodes; i++)
      for (size_t o = 0; o < g->nodes[i]->n_outputs; o++)
        if (g->nodes[i]->outputs[o]) by_id[g->nodes[i]->outputs[o]->id] = g->nodes[i]->outputs[o];
  }
}

// The source with the first n weights that change.
static assay_status_t replace(const refit_t* r, size_t n, assay_model_t** out) {
  assay_model_t* m = NULL;
  assay_value_t** by_id = NULL;
  ASSAY_TRY(assay_model_clone(r->source, &m));
  assay_status_t st = assay_new_array((size_t)m->n_values, sizeof(assay_value_t*), &by_id);
  if (!st) index_values(m, by_id);
  for (size_t i = 0; !st && i < n; i++) {
    const weight_t* w = &r->weights[r->changed[i]];
    st = set_constant(m, by_id[w->value->id], w->tensor, r->missing && r->missing[w->value->id]);
  }
  if (!st) st = assay_narrow_widen(m);
  if (!st && r->path) st = assay_arena_strdup(m->arena, r->path, &m->path);
  if (!st) st = assay_infer_model(m);
  assay_free(by_id);
  if (st) return assay_model_release(m), st;
  *out = m;
  return NULL;
}

// Where two plans differ in anything but elements of constants; nothing is appended if they do not.
static assay_status_t compare_plans(const assay_plan_t* a, const assay_plan_t* b,
                                    assay_str_t* out) {
  const assay_compare_t options = {.types = true};
  assay_layer_cut_t *x = NULL, *y = NULL;
  size_t n = 0, m = 0;
  ASSAY_TRY(
      assay_model_compare(assay_plan_layers(a)->model, assay_plan_layers(b)->model, &options, out));
  if (out->len) return NULL;
  assay_status_t st = assay_plan_cuts(a, &x, &n);
  if (!st) st = assay_plan_cuts(b, &y, &m);
  bool same = !st && n == m;
  for (size_t i = 0; same && i < n; i++)
    same = x[i].n_nodes == y[i].n_nodes && x[i].format == y[i].format &&
           x[i].accumulator == y[i].accumulator;
  if (!st && !same) assay_str_append(out, "other nodes make a layer");
  assay_free(x);
  assay_free(y);
  return st ? st : assay_str_status(out);
}

// The same against a stripped plan, of which there is a hash; where that differs, something of what
// is there may tell.
static assay_status_t compare_form(const refit_t* r, const assay_plan_t* plan, assay_str_t* out) {
  const assay_plan_t* old = r->engine->plan;
  const assay_compare_t options = {0};
  uint64_t form;
  ASSAY_TRY(assay_stripped_form(plan, &form));
  if (form == r->engine->stripped->form) return NULL;
  ASSAY_TRY(assay_model_compare(assay_plan_layers(old)->model, assay_plan_layers(plan)->model,
                                &options, out));
  if (!out->len) assay_str_append(out, "other sizes or formats follow from them");
  return assay_str_status(out);
}

// A plan with the first n weights that change; *out NULL where it is another one, as told.
static assay_status_t plan_with(const refit_t* r, size_t n, assay_str_t* difference,
                                assay_plan_t** out) {
  assay_model_t* m = NULL;
  assay_plan_t* plan = NULL;
  *out = NULL;
  assay_status_t st = replace(r, n, &m);
  if (!st) st = assay_plan_create_by(m, assay_plan_recipe(r->engine->plan), &plan);
  assay_model_release(m);
  if (st && assay_status_code(st) != ASSAY_NO_MEMORY) {  // the new model is none
    assay_str_append(difference, assay_status_message(st));
    assay_status_free(st);
    return assay_str_status(difference);
  }
  if (!st && r->missing) st = compare_form(r, plan, difference);
  if (!st && !r->missing) st = compare_plans(r->base, plan, difference);
  if (st || difference->len) return assay_plan_destroy(plan), st;
  *out = plan;
  return NULL;
}

// The weight from which on the plan is another one: the plan of `low` weights is the same one, that
// of `high` is not.
static assay_status_t name_culprit(const refit_t* r, assay_str_t* why) {
  size_t low = 0, high = r->n_changed;
  while (high - low > 1) {
    const size_t middle = low + (high - low) / 2;
    assay_str_t difference = {0};
    assay_plan_t* plan = NULL;
    assay_status_t st = plan_with(r, middle, &difference, &plan);
    if (plan) low = middle;
    if (!plan) high = middle;
    if (!plan && !st) {
      assay_str_deinit(why);
      *why = difference;
    } else {
      assay_str_deinit(&difference);
    }
    assay_plan_destroy(plan);
    if (st) return st;
  }
  return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                     "weight '%s' is part of how the model was compiled, and its new values would "
                     "change the compiled graph (%s); build the plan again",
                     r->weights[r->changed[high - 1]].value->name, assay_str_get(why));
}

static assay_status_t make_plan(const refit_t* r, assay_plan_t** out) {
  assay_str_t why = {0};
  assay_plan_t* plan = NULL;
  assay_status_t st = plan_with(r, r->n_changed, &why, &plan);
  if (!st && !plan && r->missing && r->n_other)
    st = ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                     "with these weights the model compiles to another graph (%s); build the plan "
                     "again",
                     assay_str_get(&why));
  if (!st && !plan && !r->missing && r->n_changed) st = name_culprit(r, &why);
  // What it was built with makes another one: Assay did not write this plan.
  if (!st && !plan && r->missing)
    st =
        ASSAY_ERROR(ASSAY_CORRUPT,
                    "the plan file is damaged: its model compiles to another graph (%s); build the "
                    "plan again",
                    assay_str_get(&why));
  if (!st && !plan)
    st = ASSAY_ERROR(ASSAY_INTERNAL, "the plan cannot be made again: %s", assay_str_get(&why));
  assay_str_deinit(&why);
  if (st) return st;
  *out = plan;
  return NULL;
}

// ---- engines ------------------------------------------------------------------------------------

// Whether anything was made of the engine's weights yet; the first that is saved are times.
static assay_status_t has_packed(const assay_engine_t* e, bool* out) {
  const char* key = NULL;
  const void* data;
  size_t bytes;
  if (e->stripped) return *out = e->stripped->packed, NULL;
  if (e->backend->saved) ASSAY_TRY(e->backend->saved(e->shared, 1, &key, &data, &bytes));
  *out = key != NULL;
  return NULL;
}

// Compiled kernels go over as they are: where plans are refitted there may be no compiler.
static assay_status_t keep_code(const assay_engine_t* e) {
  const char* key = NULL;
  const void* data;
  size_t bytes;
  if (!e->backend->bind_on_device) return NULL;  // it has none
  for (size_t i = 0; e->backend->saved && (!i || key); i++) {
    ASSAY_TRY(e->backend->saved(e->shared, i, &key, &data, &bytes));
    if (key && assay_code_is(key)) ASSAY_TRY(assay_code_keep(key, data, bytes));
  }
  return NULL;
}

// An engine whose tactics are chosen by the old one's times.
static assay_status_t make_engine(const refit_t* r, assay_plan_t* take_plan, assay_engine_t** out) {
  const assay_backend_t* backend = assay_engine_backend(r->engine);
  const assay_profile_t* profiles;
  const size_t n = assay_engine_profiles(r->engine, &profiles);
  assay_str_t times = {0};
  assay_engine_t* e = NULL;
  bool measured, packed = false;
  assay_status_t st = has_packed(r->engine, &packed);
  if (!st) st = keep_code(r->engine);
  if (!st && backend->timings)
    st = backend->timings(assay_engine_shared(r->engine), &times, &measured);
  const assay_backend_options_t options = {.tactic_sources = assay_engine_tactic_sources(r->engine),
                                           .timings = times.len ? assay_str_get(&times) : NULL,
                                           .timings_bytes = times.len,
                                           .forced = assay_engine_forced_tactics(r->engine),
                                           .batch_variant = assay_engine_batch_variant(r->engine),
                                           .max_scratch = assay_engine_max_scratch(r->engine)};
  if (st)
    assay_plan_destroy(take_plan);
  else
    st = assay_engine_create(take_plan, backend, &options, &e);
  if (!st) st = assay_engine_set_profiles(e, profiles, n);
  if (!st) st = assay_engine_set_note(e, assay_engine_note(r->engine));
  if (!st) assay_engine_set_strip(e, assay_engine_strip(r->engine));
  if (!st) st = assay_status_note(assay_engine_try(e, packed), "trying the refitted plan out");
  assay_str_deinit(&times);
  if (st) return assay_engine_release(e), st;
  *out = e;
  return NULL;
}

// The plan of the source is made as the new one will be: sizes that only a run tells get their
// names in the order in which they are met.
static assay_status_t make_base(refit_t* r, const assay_plan_recipe_t* recipe) {
  assay_model_t* m = NULL;
  ASSAY_TRY(replace(r, 0, &m));
  assay_status_t st = assay_plan_create_by(m, recipe, &r->base);
  assay_model_release(m);
  return st;
}

static assay_status_t prepare(refit_t* r) {
  const assay_plan_recipe_t* recipe = assay_plan_recipe(assay_engine_plan(r->engine));
  if (!recipe)
    return ASSAY_ERROR(ASSAY_UNSUPPORTED,
                       "the plan does not know what it was made by; build it again");
  ASSAY_TRY(assay_engine_source(r->engine, &r->source));
  if (!r->engine->stripped) return make_base(r, recipe);
  return assay_stripped_find(r->engine->stripped, r->source, &r->missing);
}

assay_status_t assay_engine_refit_with(const assay_engine_t* e, const assay_model_t* weights,
                                       size_t n, const char* const* names,
                                       assay_tensor_t* const* tensors, assay_refit_t* out_refit,
                                       assay_engine_t** out) {
  refit_t r = {.engine = e, .path = weights ? weights->path : NULL};
  assay_model_t* shaped = NULL;
  assay_plan_t* plan = NULL;
  assay_status_t st = prepare(&r);
  if (!st && weights) st = in_shapes_of(r.source, weights, &shaped);
  if (!st) st = weights ? take_model(&r, shaped) : take_named(&r, n, names, tensors);
  if (!st) st = find_changed(&r);
  if (!st) st = make_plan(&r, &plan);
  if (!st) st = assay_cancel_check();
  if (!st) st = make_engine(&r, plan, out);
  if (!st && out_refit)
    *out_refit = (assay_refit_t){r.n_weights, r.n_other, e->stripped ? e->stripped->n : 0};
  assay_model_release(shaped);
  deinit(&r);
  return st;
}

assay_status_t assay_engine_refit(const assay_engine_t* e, const assay_model_t* weights,
                                  assay_engine_t** out) {
  if (!weights)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "there is no model to take weights from");
  return assay_engine_refit_with(e, weights, 0, NULL, NULL, NULL, out);
}

assay_status_t assay_engine_refit_tensors(const assay_engine_t* e, size_t n,
                                          const char* const* names, assay_tensor_t* const* tensors,
                                          assay_engine_t** out) {
  return assay_engine_refit_with(e, NULL, n, names, tensors, NULL, out);
}
