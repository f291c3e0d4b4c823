// --minShapes, --optShapes, --maxShapes and --shapes: which input has which sizes.
#include <string.h>

#include "base/shown.h"
#include "frontends/trtexec/job.h"
#include "frontends/trtexec/log.h"
#include "frontends/trtexec/specs.h"

enum { MIN, OPT, MAX, RUN, N_LISTS };
static const char* const flag_names[N_LISTS] = {"--minShapes", "--optShapes", "--maxShapes",
                                                "--shapes"};

// What a flag says: a list of items; text NULL: it was not given.
typedef struct list {
  const char* text;
  trt_item_t* items;
  size_t n;
} list_t;

// The lists of one profile, and that of the run.
static assay_status_t read_lists(const trt_job_t* j, int64_t profile, list_t* lists) {
  const trt_options_t* o = j->options;
  const trt_profile_text_t* p = NULL;
  for (size_t i = 0; i < o->n_profiles; i++)
    if (o->profiles[i].index == profile) p = &o->profiles[i];
  lists[MIN].text = p ? p->min : NULL;
  lists[OPT].text = p ? p->opt : NULL;
  lists[MAX].text = p ? p->max : NULL;
  lists[RUN].text = trt_text(o, TRT_FLAG_shapes);
  for (int k = 0; k < N_LISTS; k++)
    if (lists[k].text)
      ASSAY_TRY(
          trt_items_parse(j->arena, flag_names[k], lists[k].text, &lists[k].items, &lists[k].n));
  return NULL;
}

// An exact name before a wildcard; of several the last.
static const trt_item_t* find(const list_t* l, const char* input) {
  const trt_item_t* found = NULL;
  for (size_t i = 0; i < l->n; i++)
    if (trt_has_wildcard(l->items[i].name) && trt_name_matches(l->items[i].name, input))
      found = &l->items[i];
  for (size_t i = 0; i < l->n; i++)
    if (strcmp(l->items[i].name, input) == 0) found = &l->items[i];
  return found;
}

static const assay_valtype_t* type_of(const assay_value_t* v) {
  return v->type ? v->type : v->declared;
}

// Whether a dimension is fixed, and to what.
static bool fixed(const assay_value_t* v, int d, int64_t* out) {
  const assay_valtype_t* t = type_of(v);
  return t && t->has_shape && d < t->rank && assay_dim_value(t->dims[d], out);
}

static bool is_static(const assay_value_t* v) {
  const assay_valtype_t* t = type_of(v);
  int64_t size;
  if (!t || t->kind != ASSAY_KIND_TENSOR) return true;
  for (int d = 0; t->has_shape && d < t->rank; d++)
    if (!fixed(v, d, &size)) return false;
  return t->has_shape;
}

static assay_status_t check_names(const list_t* l, const char* flag, const assay_graph_t* g) {
  for (size_t i = 0; i < l->n; i++) {
    bool known = false;
    ASSAY_TRY(trt_name_check(flag, l->items[i].name));
    for (size_t k = 0; k < g->n_inputs; k++)
      known |= !g->inputs[k]->constant && trt_name_matches(l->items[i].name, g->inputs[k]->name);
    if (!known)
      return ASSAY_ERROR(ASSAY_NOT_FOUND,
                         "%s: the model has no input '%s'; the first one is '%s'%s", flag,
                         l->items[i].name, g->n_inputs ? g->inputs[0]->name : "",
                         ASSAY_VALUES_NEAR_TEXT(g->inputs, g->n_inputs, l->items[i].name));
  }
  return NULL;
}

// The values of an input that holds a shape of n elements.
static assay_status_t read_values(const char* flag, const trt_item_t* item, const assay_value_t* v,
                                  int64_t n, int* rank, int64_t* values) {
  ASSAY_TRY(trt_dims_parse(flag, item, rank, values));
  if (*rank != n)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                       "%s: input '%s' holds a shape of %lld numbers, and what is given are its "
                       "values; '%s' has %d",
                       flag, v->name, (long long)n, item->value, *rank);
  return NULL;
}

// A shape for an input, which has to fit what the model says of it.
static assay_status_t read_shape(const char* flag, const trt_item_t* item, const assay_value_t* v,
                                 int* rank, int64_t* dims) {
  const assay_valtype_t* t = type_of(v);
  int64_t size;
  ASSAY_TRY(trt_dims_parse(flag, item, rank, dims));
  if (t && t->has_shape && t->rank != *rank)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "%s: input '%s' is %s; '%s' has %d dimensions", flag,
                       v->name, ASSAY_VALTYPE_TEXT(t), item->value, *rank);
  for (int d = 0; d < *rank; d++)
    if (fixed(v, d, &size) && size != dims[d])
      return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                         "%s: input '%s' is %s: dimension %d is fixed to %lld and cannot be %lld",
                         flag, v->name, ASSAY_VALTYPE_TEXT(t), d, (long long)size,
                         (long long)dims[d]);
  return NULL;
}

// ---- the profile of a build ---------------------------------------------------------------------

// Where one of min, opt, max takes its shape from, best first.
static const int stand_ins[3][2] = {[MIN] = {OPT, MAX}, [OPT] = {MAX, MIN}, [MAX] = {OPT, MIN}};

// The items of min, opt and max of an input, with the missing ones filled in; all NULL: it has
// none.
static assay_status_t fill(const list_t* lists, const char* input, const trt_item_t** at) {
  const bool all = lists[MIN].text && lists[OPT].text && lists[MAX].text;
  const trt_item_t* given[3];
  for (int k = 0; k < 3; k++) given[k] = at[k] = find(&lists[k], input);
  if (!given[MIN] && !given[OPT] && !given[MAX]) {
    at[MIN] = at[OPT] = at[MAX] = find(&lists[RUN], input);
    return NULL;
  }
  for (int k = 0; k < 3; k++) {
    if (given[k]) continue;
    if (all)
      return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                         "%s has no shape of input '%s', which the others have", flag_names[k],
                         input);
    const int from = given[stand_ins[k][0]] ? stand_ins[k][0] : stand_ins[k][1];
    at[k] = given[from];
    trt_warn("%s has no shape of input '%s': that of %s is taken", flag_names[k], input,
             flag_names[from]);
  }
  return NULL;
}

static void print_dims(assay_str_t* out, int rank, const int64_t* dims) {
  for (int d = 0; d < rank; d++) assay_str_printf(out, d ? "x%lld" : "%lld", (long long)dims[d]);
  if (!rank) assay_str_append(out, "scalar");
}

// As profile.h reads it: "1x3" of sizes, "[1,3]" of values.
static void print_range(assay_str_t* out, bool values, int rank, const int64_t* numbers) {
  if (!values) {
    print_dims(out, rank, numbers);
    return;
  }
  for (int d = 0; d < rank; d++)
    assay_str_printf(out, d ? ",%lld" : "[%lld", (long long)numbers[d]);
  assay_str_append(out, "]");
}

static assay_status_t add_profile(trt_job_t* j, const char* input, bool values, int rank,
                                  int64_t (*dims)[ASSAY_MAX_RANK]) {
  opt_list_t* list = &j->native.profiles;
  const char* kept = NULL;
  assay_str_t text = {0};
  assay_str_printf_raw(&text, "%s=", input);
  for (int k = 0; k < 3; k++) {
    if (k) assay_str_append(&text, ":");
    print_range(&text, values, rank, dims[k]);
  }
  assay_status_t st = assay_str_status(&text);
  if (!st) st = assay_arena_strdup(j->arena, assay_str_get(&text), &kept);
  if (!st) st = opt_list_add(list, kept);
  assay_str_deinit(&text);
  return st;
}

static assay_status_t check_order(const char* input, int rank, int64_t (*dims)[ASSAY_MAX_RANK]) {
  for (int k = 0; k + 1 < 3; k++)
    for (int d = 0; d < rank; d++)
      if (dims[k][d] > dims[k + 1][d])
        return ASSAY_ERROR(
            ASSAY_INVALID_ARGUMENT,
            "input '%s', dimension %d: %s has %lld, which is more than the %lld of %s", input, d,
            flag_names[k], (long long)dims[k][d], (long long)dims[k + 1][d], flag_names[k + 1]);
  return NULL;
}

// In trtexec's words; rank -1: not even the rank is known.
static assay_status_t warn_of_silent(const assay_value_t* v, bool values, int rank,
                                     const int64_t* dims) {
  assay_str_t text = {0};
  if (rank >= 0)
    print_range(&text, values, rank, dims);
  else
    assay_str_append(&text, "1 in every dimension");
  assay_status_t st = assay_str_status(&text);
  if (!st && values)
    trt_warn(
        "Values missing for input: %s, which holds a shape, and no shapes were provided. "
        "Automatically setting to: %s",
        v->name, assay_str_get(&text));
  else if (!st)
    trt_warn(
        "Dynamic dimensions required for input: %s, but no shapes were provided. Automatically "
        "overriding shape to: %s",
        v->name, assay_str_get(&text));
  assay_str_deinit(&text);
  return st;
}

// An input without any range: its open dimensions, or the values of its shape, are 1. A plan with
// one profile needs none for that where sizes are meant; several have the same inputs.
static assay_status_t resolve_silent(trt_job_t* j, const assay_value_t* v, int64_t n_values) {
  const assay_valtype_t* t = type_of(v);
  const bool several = j->options->n_profiles > 1;
  int64_t dims[3][ASSAY_MAX_RANK];
  int rank = n_values ? (int)n_values : t->has_shape ? t->rank : -1;
  if (!n_values && several && (rank < 0 || rank > ASSAY_PROFILE_MAX_RANK))
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                       "input '%s' needs a shape in each of several profiles", v->name);
  for (int k = 0; k < 3; k++)
    for (int d = 0; d < rank; d++)
      if (n_values || !fixed(v, d, &dims[k][d])) dims[k][d] = 1;
  ASSAY_TRY(warn_of_silent(v, n_values > 0, rank, dims[OPT]));
  if (!n_values && !several) return NULL;
  return add_profile(j, v->name, n_values > 0, rank, dims);
}

// The range of one dynamic input; n_values: of those of its shape, where it holds one.
static assay_status_t resolve_input(trt_job_t* j, const list_t* lists, const assay_value_t* v,
                                    int64_t n_values) {
  const trt_item_t* at[3];
  int64_t dims[3][ASSAY_MAX_RANK];
  int rank = 0;
  ASSAY_TRY(fill(lists, v->name, at));
  if (!at[OPT]) return resolve_silent(j, v, n_values);
  for (int k = 0; k < 3; k++) {
    int other;
    ASSAY_TRY(n_values ? read_values(flag_names[k], at[k], v, n_values, &other, dims[k])
                       : read_shape(flag_names[k], at[k], v, &other, dims[k]));
    if (k && other != rank)
      return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "input '%s': %s has %d dimensions, %s has %d",
                         v->name, flag_names[k - 1], rank, flag_names[k], other);
    rank = other;
  }
  ASSAY_TRY(check_order(v->name, rank, dims));
  return add_profile(j, v->name, n_values > 0, rank, dims);
}

// How many values each input has that holds a shape; whether any input takes a shape or values.
static assay_status_t find_shape_inputs(const trt_job_t* j, int64_t** out_n, bool* out_dynamic) {
  const assay_graph_t* g = j->model->graph;
  ASSAY_TRY(assay_arena_new(j->arena, g->n_inputs, sizeof **out_n, out_n));
  *out_dynamic = false;
  for (size_t i = 0; i < g->n_inputs; i++) {
    ASSAY_TRY(trt_shape_input(j->model, g->inputs[i], &(*out_n)[i]));
    *out_dynamic |= !g->inputs[i]->constant && ((*out_n)[i] || !is_static(g->inputs[i]));
  }
  return NULL;
}

static assay_status_t resolve_profile(trt_job_t* j, int64_t profile) {
  const assay_graph_t* g = j->model->graph;
  list_t lists[N_LISTS] = {0};
  int64_t* n_values = NULL;
  bool any = false, dynamic;
  ASSAY_TRY(read_lists(j, profile, lists));
  ASSAY_TRY(find_shape_inputs(j, &n_values, &dynamic));
  for (int k = 0; k < N_LISTS; k++) {
    ASSAY_TRY(check_names(&lists[k], flag_names[k], g));
    any |= lists[k].text != NULL;
  }
  if (any && !dynamic)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                       "static model does not take explicit shapes, since the shapes of its inputs "
                       "are fixed in the model: leave them out, or export it with a dynamic batch");
  for (size_t i = 0; i < g->n_inputs; i++) {
    const assay_value_t* v = g->inputs[i];
    if (v->constant) continue;
    if (n_values[i] || !is_static(v)) {
      ASSAY_TRY(resolve_input(j, lists, v, n_values[i]));
      continue;
    }
    for (int k = 0; k < N_LISTS; k++) {
      const trt_item_t* item = find(&lists[k], v->name);
      int64_t dims[ASSAY_MAX_RANK];
      int rank;
      if (item) ASSAY_TRY(read_shape(flag_names[k], item, v, &rank, dims));
    }
  }
  return NULL;
}

assay_status_t trt_resolve_profile(trt_job_t* j) {
  const size_t n = j->options->n_profiles;
  for (size_t k = 0; k < (n ? n : 1); k++) {
    assay_status_t st = resolve_profile(j, (int64_t)k);
    if (st) return n > 1 ? assay_status_note(st, "profile %zu", k) : st;
  }
  return NULL;
}

// ---- calibration --------------------------------------------------------------------------------

// The three flags, smallest first.
static const trt_flag_id_t calib_flags[3] = {TRT_FLAG_minShapesCalib, TRT_FLAG_optShapesCalib,
                                             TRT_FLAG_maxShapesCalib};

// Of an input that all three name: none of the sizes is less than in the one before.
static assay_status_t check_calib(const assay_value_t* v, const trt_item_t* const* at) {
  int64_t dims[3][ASSAY_MAX_RANK];
  int rank = 0;
  for (int k = 0; k < 3 && at[k]; k++) {
    const char* flag = trt_flags[calib_flags[k]].name;
    ASSAY_TRY(read_shape(flag, at[k], v, &rank, dims[k]));
    for (int d = 0; k && d < rank; d++)
      if (dims[k][d] < dims[k - 1][d])
        return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                           "%s: input '%s', dimension %d: %lld is less than the %lld of %s", flag,
                           v->name, d, (long long)dims[k][d], (long long)dims[k - 1][d],
                           trt_flags[calib_flags[k - 1]].name);
  }
  return NULL;
}

static assay_status_t read_calib(const trt_job_t* j, list_t* lists, bool* out_given) {
  const trt_options_t* o = j->options;
  *out_given = false;
  for (int k = 0; k < 3; k++) {
    lists[k].text = trt_text(o, calib_flags[k]);
    if (!lists[k].text) continue;
    *out_given = true;
    ASSAY_TRY(trt_items_parse(j->arena, trt_flags[calib_flags[k]].name, lists[k].text,
                              &lists[k].items, &lists[k].n));
    ASSAY_TRY(check_names(&lists[k], trt_flags[calib_flags[k]].name, j->model->graph));
  }
  return NULL;
}

// What a profile says of an input, the best shapes first; NULL: nothing.
static const trt_item_t* best_of(const list_t* lists, const char* input) {
  static const int order[] = {OPT, MAX, MIN, RUN};
  const trt_item_t* item = NULL;
  for (int k = 0; !item && k < 4; k++) item = find(&lists[order[k]], input);
  return item;
}

assay_status_t trt_calibration_shapes(const trt_job_t* j, assay_input_shape_t** out,
                                      size_t* out_n) {
  const assay_graph_t* g = j->model->graph;
  list_t calib[3] = {{0}}, lists[N_LISTS] = {{0}};
  bool given;
  *out_n = 0;
  ASSAY_TRY(read_calib(j, calib, &given));
  ASSAY_TRY(read_lists(j, (int64_t)trt_number(j->options, TRT_FLAG_calibProfile), lists));
  ASSAY_TRY(assay_arena_new(j->arena, g->n_inputs, sizeof **out, out));
  for (size_t i = 0; i < g->n_inputs; i++) {
    const assay_value_t* v = g->inputs[i];
    const trt_item_t* at[3] = {NULL};
    int64_t n_values = 0, *dims = NULL;
    ASSAY_TRY(trt_shape_input(j->model, v, &n_values));
    if (v->constant || n_values || is_static(v)) continue;
    for (int k = 0; given && k < 3; k++) at[k] = find(&calib[k], v->name);
    if (at[MIN] && at[MAX]) ASSAY_TRY(check_calib(v, at));
    const trt_item_t* item = given ? at[OPT] : best_of(lists, v->name);
    if (!item) continue;
    assay_input_shape_t* s = &(*out)[*out_n];
    ASSAY_TRY(assay_arena_new(j->arena, ASSAY_MAX_RANK, sizeof *dims, &dims));
    ASSAY_TRY(read_shape(given ? "--optShapesCalib" : "--optShapes", item, v, &s->rank, dims));
    s->name = v->name;
    s->dims = dims;
    ++*out_n;
  }
  return NULL;
}

// ---- the shapes of a run ------------------------------------------------------------------------

// What the profile in use says of an input; NULL: nothing.
static const assay_profile_t* profile_of(const trt_job_t* j, const char* input) {
  const assay_profile_t* p;
  const size_t n = assay_engine_profiles(j->engine, &p);
  return assay_profiles_find(p, n, input, (int)trt_number(j->options, TRT_FLAG_useProfile));
}

// --useProfile against the profiles that there are.
static assay_status_t check_use(const trt_job_t* j) {
  const trt_options_t* o = j->options;
  const assay_profile_t* p;
  const size_t n = assay_engine_profiles(j->engine, &p);
  const int count = assay_profiles_count(p, n) ? assay_profiles_count(p, n) : 1;
  if (trt_number(o, TRT_FLAG_useProfile) >= count)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "--useProfile=%s: the highest profile is number %d",
                       trt_text(o, TRT_FLAG_useProfile), count - 1);
  if (count > 1 && !trt_given(o, TRT_FLAG_useProfile) && !trt_given(o, TRT_FLAG_skipInference))
    trt_warn("The plan has %d profiles, and --useProfile is not given: number 0 is used", count);
  return NULL;
}

static assay_status_t read_run_list(const trt_job_t* j, list_t* out) {
  list_t lists[N_LISTS] = {0};
  ASSAY_TRY(read_lists(j, 0, lists));
  *out = lists[RUN];
  return NULL;
}

assay_status_t trt_check_run_shapes(const trt_job_t* j) {
  const assay_graph_t* g = assay_plan_layers(assay_engine_plan(j->engine))->model->graph;
  list_t list;
  if (!j->model && j->options->n_profiles)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                       "--minShapes, --optShapes and --maxShapes are for a build: '%s' has its "
                       "shapes; give --shapes",
                       trt_text(j->options, TRT_FLAG_loadEngine));
  ASSAY_TRY(check_use(j));
  ASSAY_TRY(read_run_list(j, &list));
  return check_names(&list, "--shapes", g);
}

// The values of an input that holds a shape, by its profile.
static assay_status_t run_values(const assay_profile_t* p, const trt_item_t* item,
                                 const assay_io_t* io, int64_t* out) {
  int rank = p->rank;
  bool ok = true;
  if (!item) {
    memcpy(out, p->opt, (size_t)rank * sizeof *out);
    return NULL;
  }
  ASSAY_TRY(read_values("--shapes", item, io, p->rank, &rank, out));
  for (int d = 0; d < rank; d++) ok &= out[d] >= p->min[d] && out[d] <= p->max[d];
  if (ok) return NULL;
  assay_str_t range = {0};
  assay_profile_print(p, &range);
  assay_status_t st =
      ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "--shapes: input '%s' is %s; profile %d was built for%s",
                  assay_io_name(io), item->value, p->profile, assay_str_get(&range));
  assay_str_deinit(&range);
  return st;
}

assay_status_t trt_run_shape(const trt_job_t* j, size_t i, bool* out_values, int* out_rank,
                             int64_t* out_dims) {
  const assay_io_t* io = assay_engine_input(j->engine, i);
  const char* name = assay_io_name(io);
  const assay_profile_t* p = profile_of(j, name);
  list_t list;
  ASSAY_TRY(read_run_list(j, &list));
  const trt_item_t* item = find(&list, name);
  *out_values = p && p->values;
  if (*out_values) return *out_rank = p->rank, run_values(p, item, io, out_dims);
  if (item) {
    ASSAY_TRY(read_shape("--shapes", item, io, out_rank, out_dims));
    return p ? assay_status_note(assay_profile_check(p, *out_rank, out_dims), "--shapes") : NULL;
  }
  *out_rank = assay_io_rank(io);
  if (*out_rank < 0)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "input '%s' has no rank in the model: give --shapes",
                       name);
  for (int d = 0; d < *out_rank; d++) {
    const int64_t size = assay_io_dim(io, d);
    out_dims[d] = p ? p->opt[d] : size < 0 ? 1 : size;
  }
  return NULL;
}

void trt_dump_optimization_profile(const trt_job_t* j) {
  const assay_profile_t* p;
  const size_t n = assay_engine_profiles(j->engine, &p);
  for (size_t i = 0; i < n; i++) {
    assay_str_t text[3] = {{0}};
    print_dims(&text[0], p[i].rank, p[i].min);
    print_dims(&text[1], p[i].rank, p[i].opt);
    print_dims(&text[2], p[i].rank, p[i].max);
    trt_info("Model input %s (profile %d): min=%s, opt=%s, max=%s", p[i].input, p[i].profile,
             assay_str_get(&text[0]), assay_str_get(&text[1]), assay_str_get(&text[2]));
    for (int k = 0; k < 3; k++) assay_str_deinit(&text[k]);
  }
  if (!n) trt_info("The inputs of this plan have fixed shapes: there is no optimization profile");
}
