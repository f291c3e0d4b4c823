// The sizes that inputs of a plan are made up in.
#include "cli/verbs/bench/bench_sizes.h"

#include <string.h>

#include "base/alloc.h"
#include "onnx/sizes.h"

static const assay_input_shape_t* given_to(const cli_shapes_t* given, const char* input) {
  for (size_t i = 0; i < given->n; i++)
    if (strcmp(given->shapes[i].name, input) == 0) return &given->shapes[i];
  return NULL;
}

static bool is_within(const assay_profile_t* p, const assay_input_shape_t* s) {
  if (p->rank != s->rank) return false;
  for (int i = 0; i < s->rank; i++)
    if (s->dims[i] >= 0 && (s->dims[i] < p->min[i] || s->dims[i] > p->max[i])) return false;
  return true;
}

// Whether a profile takes all sizes that are given.
static bool takes(const assay_profile_t* all, size_t n, int profile, const cli_shapes_t* given) {
  for (size_t i = 0; i < given->n; i++) {
    const assay_profile_t* p = assay_profiles_find(all, n, given->shapes[i].name, profile);
    if (p && !p->values && !is_within(p, &given->shapes[i])) return false;
  }
  return true;
}

static int choose(const assay_profile_t* all, size_t n, const cli_shapes_t* given) {
  const int count = assay_profiles_count(all, n);
  for (int k = 0; k < count; k++)
    if (takes(all, n, k, given)) return k;
  return 0;
}

// What is given goes before the best of the profile; open: -1.
static assay_status_t add_shape(const assay_profile_t* best, const assay_input_shape_t* given,
                                cli_shapes_t* to) {
  assay_input_shape_t* s = &to->shapes[to->n];
  const char* from = given ? given->name : best->input;
  const int rank = given ? given->rank : best->rank;
  char* name = NULL;
  int64_t* dims = NULL;
  ASSAY_TRY(assay_new_array(strlen(from) + 1, 1, &name));
  *s = (assay_input_shape_t){name, rank, NULL};
  to->n++;
  ASSAY_TRY(assay_new_array((size_t)rank, sizeof *dims, &dims));
  strcpy(name, from);
  s->dims = dims;
  for (int i = 0; i < rank; i++) {
    dims[i] = given ? given->dims[i] : -1;
    if (dims[i] < 0 && best && best->rank == rank) dims[i] = best->opt[i];
  }
  return NULL;
}

static assay_status_t fill(const assay_engine_t* engine, cli_shapes_t* given, int* out_profile) {
  const assay_graph_t* g = assay_plan_layers(assay_engine_plan(engine))->model->graph;
  const assay_profile_t* all;
  const size_t n = assay_engine_profiles(engine, &all);
  const int profile = choose(all, n, given);
  cli_shapes_t filled = {0};
  assay_status_t st = assay_new_array(g->n_inputs, sizeof *filled.shapes, &filled.shapes);
  for (size_t i = 0; !st && i < g->n_inputs; i++) {
    const assay_profile_t* p = assay_profiles_find(all, n, g->inputs[i]->name, profile);
    const assay_input_shape_t* s = given_to(given, g->inputs[i]->name);
    if (p && p->values) p = NULL;
    if (p || s) st = add_shape(p, s, &filled);
  }
  if (st) return cli_shapes_free(&filled), st;
  cli_shapes_free(given);
  *given = filled;
  *out_profile = profile;
  return NULL;
}

static bool has_open_batch(const assay_graph_t* g) {
  for (size_t i = 0; i < g->n_inputs; i++) {
    const assay_valtype_t* t = g->inputs[i]->type;
    int64_t d;
    if (t && t->kind == ASSAY_KIND_TENSOR && t->has_shape && t->rank &&
        !assay_dim_value(t->dims[0], &d))
      return true;
  }
  return false;
}

assay_status_t bench_sizes_of_plan(const cli_engine_args_t* args, const assay_engine_t* engine,
                                   cli_shapes_t* out, int* out_profile) {
  const assay_model_t* m = assay_plan_layers(assay_engine_plan(engine))->model;
  cli_shapes_t given = {0};
  *out_profile = 0;
  if (!cli_shapes_given(&args->shape)) return NULL;
  if (args->shape.batch && !has_open_batch(m->graph))
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                       "'%s' is a plan: --batch was settled when it was built; give the model "
                       "instead, or build it with --profile",
                       args->model);
  ASSAY_TRY(cli_shapes_parse(&args->shape, &given));
  assay_status_t st = assay_input_shapes_check(given.n, given.shapes, m);
  if (!st) st = cli_shapes_settle(m, &given);
  if (!st) st = fill(engine, &given, out_profile);
  if (st) return cli_shapes_free(&given), st;
  *out = given;
  return NULL;
}
