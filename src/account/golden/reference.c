// Pairs the inputs and outputs of two models, and evaluates the second one on the first one's
// inputs.
#include "account/golden/reference.h"

#include <string.h>

#include "base/alloc.h"
#include "eval/evaluator.h"
#include "onnx/load.h"

typedef struct reference {
  const assay_model_t* model;  // whose inputs there are
  assay_model_t* other;
  size_t* input_of;   // by input of the other: the model's; NONE: its initializer stands in
  size_t* output_of;  // by output of the model: the other's; NONE: it has none
  assay_str_t* notes;
} reference_t;

static const size_t NONE = (size_t)-1;

// ---- pairs --------------------------------------------------------------------------------------

typedef struct values {
  assay_value_t* const* at;
  size_t n;
} values_t;

static size_t index_of(const values_t* values, const char* name) {
  for (size_t i = 0; i < values->n; i++)
    if (strcmp(values->at[i]->name, name) == 0) return i;
  return NONE;
}

// Whether a value has no namesake on the other side. Inputs with an initializer need none.
static bool is_left(const assay_value_t* v, const values_t* others) {
  return !v->constant && index_of(others, v->name) == NONE;
}

static size_t next_left(const values_t* of, const values_t* others, size_t from) {
  while (from < of->n && !is_left(of->at[from], others)) from++;
  return from < of->n ? from : NONE;
}

// For each value of `to` one of `from`: its namesake, else by position among those without.
// *out_left are values of either side that are over then; NULL: none.
static assay_status_t make_pairs(const reference_t* r, const char* what, const values_t* to,
                                 const values_t* from, size_t** out, const assay_value_t** left_to,
                                 const assay_value_t** left_from) {
  ASSAY_TRY(assay_new_array(to->n, sizeof **out, out));
  size_t k = next_left(from, to, 0);
  for (size_t i = 0; i < to->n; i++) {
    (*out)[i] = index_of(from, to->at[i]->name);
    if (!is_left(to->at[i], from)) continue;
    (*out)[i] = k;
    if (k == NONE) {
      if (!*left_to) *left_to = to->at[i];
      continue;
    }
    assay_str_printf(r->notes, "note: %s '%s' is taken for '%s', by position\n", what,
                     from->at[k]->name, to->at[i]->name);
    k = next_left(from, to, k + 1);
  }
  *left_from = k == NONE ? NULL : from->at[k];
  return NULL;
}

static assay_status_t pair_inputs(reference_t* r) {
  const assay_graph_t *g = r->model->graph, *h = r->other->graph;
  const values_t mine = {g->inputs, g->n_inputs}, theirs = {h->inputs, h->n_inputs};
  const assay_value_t *lacks = NULL, *over = NULL;
  ASSAY_TRY(make_pairs(r, "input", &theirs, &mine, &r->input_of, &lacks, &over));
  if (lacks)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                       "it takes input '%s' (%s), which the model that is checked does not have; "
                       "both have to take the same inputs",
                       lacks->name,
                       ASSAY_VALTYPE_TEXT(lacks->type ? lacks->type : lacks->declared));
  if (over)
    assay_str_printf(r->notes, "note: the reference does not take input '%s'\n", over->name);
  return NULL;
}

static assay_status_t pair_outputs(reference_t* r) {
  const assay_graph_t *g = r->model->graph, *h = r->other->graph;
  const values_t mine = {g->outputs, g->n_outputs}, theirs = {h->outputs, h->n_outputs};
  const assay_value_t *lacks = NULL, *over = NULL;
  ASSAY_TRY(make_pairs(r, "output", &mine, &theirs, &r->output_of, &lacks, &over));
  if (lacks)
    assay_str_printf(r->notes, "note: the reference has no output for '%s'\n", lacks->name);
  if (over)
    assay_str_printf(r->notes, "note: output '%s' of the reference is not used\n", over->name);
  return NULL;
}

// ---- running ------------------------------------------------------------------------------------

// One sample of the model's inputs as the other declares them.
static assay_status_t convert_inputs(const reference_t* r, assay_tensor_t* const* at,
                                     assay_samples_t* out) {
  const assay_graph_t* h = r->other->graph;
  assay_set_t set = {0};
  assay_status_t st = NULL;
  for (size_t i = 0; !st && i < h->n_inputs; i++)
    if (r->input_of[i] != NONE && at[r->input_of[i]])
      st = assay_set_add(&set, h->inputs[i]->name, assay_tensor_retain(at[r->input_of[i]]));
  if (!st) st = assay_samples_from_set(&set, h->inputs, h->n_inputs, true, out);
  assay_set_deinit(&set);
  if (!st && out->n != 1) {
    const size_t n = out->n;
    assay_samples_deinit(out);
    st = ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                     "it takes smaller batches than the model that is checked: the inputs of one "
                     "run are %zu of its own; give inputs of its batch",
                     n);
  }
  return st;
}

static assay_status_t add_value(const assay_evaluator_t* m, const assay_value_t* v,
                                const char* name, assay_set_t* out) {
  assay_tensor_t* t = assay_evaluator_get(m, v);
  return t ? assay_set_add(out, name, assay_tensor_retain(t)) : NULL;
}

static bool same_kind(const assay_value_t* a, const assay_value_t* b) {
  if (!a->producer || !b->producer || b->is_output || !a->type || !b->type) return false;
  return a->type->elem == b->type->elem &&
         strcmp(a->producer->op_type, b->producer->op_type) == 0 &&
         strcmp(a->producer->domain, b->producer->domain) == 0;
}

// Values that only share a name, as those that exporters number, would accuse the wrong node.
static assay_status_t add_inner(const reference_t* r, const assay_evaluator_t* m,
                                assay_set_t* out) {
  const assay_graph_t* h = r->other->graph;
  for (size_t i = 0; i < h->n_nodes; i++)
    for (size_t k = 0; k < h->nodes[i]->n_outputs; k++) {
      const assay_value_t* v = h->nodes[i]->outputs[k];
      const assay_value_t* mine =
          v && !v->is_output ? assay_graph_find(r->model->graph, v->name) : NULL;
      if (!mine || !same_kind(v, mine)) continue;
      const assay_tensor_t* t = assay_evaluator_get(m, v);
      bool fits =
          t && t->kind == ASSAY_KIND_TENSOR && mine->type->has_shape && mine->type->rank == t->rank;
      for (int d = 0; fits && d < t->rank; d++) {
        int64_t size;
        fits = !assay_dim_value(mine->type->dims[d], &size) || size == t->dims[d];
      }
      if (fits) ASSAY_TRY(add_value(m, v, v->name, out));
    }
  return NULL;
}

static assay_status_t run_sample(const reference_t* r, assay_evaluator_t* m,
                                 assay_tensor_t* const* at, bool inner, assay_set_t* out) {
  const assay_graph_t *g = r->model->graph, *h = r->other->graph;
  assay_samples_t inputs = {0};
  ASSAY_TRY(convert_inputs(r, at, &inputs));
  assay_status_t st = assay_evaluator_run_on(m, assay_samples_get(&inputs, 0));
  for (size_t i = 0; !st && i < g->n_outputs; i++)
    if (r->output_of[i] != NONE)
      st = add_value(m, h->outputs[r->output_of[i]], g->outputs[i]->name, out);
  if (!st && inner) st = add_inner(r, m, out);
  assay_samples_deinit(&inputs);
  return st;
}

static assay_status_t run_all(const reference_t* r, const assay_samples_t* inputs, uint64_t seed,
                              assay_saved_t* out) {
  const bool inner = inputs->n == 1;
  const assay_evaluator_config_t config = {
      .mode = ASSAY_MODE_TRUTH, .seed = seed, .keep_all = inner};
  assay_evaluator_t* m = NULL;
  ASSAY_TRY(assay_evaluator_create(r->other, &config, &m));
  assay_status_t st = NULL;
  for (size_t i = 0; !st && i < inputs->n; i++) {
    assay_set_t* run = NULL;
    st = assay_saved_add_run(out, &run);
    if (!st) st = run_sample(r, m, assay_samples_get(inputs, i), inner, run);
    if (st && inputs->n > 1) st = assay_status_note(st, "sample %zu", i);
  }
  assay_evaluator_destroy(m);
  return st;
}

assay_status_t assay_reference_run(const char* path, const assay_model_t* model,
                                   const assay_samples_t* inputs, uint64_t seed, assay_str_t* notes,
                                   assay_saved_t* out) {
  reference_t r = {.model = model, .notes = notes};
  assay_saved_t runs = {0};
  ASSAY_TRY(assay_onnx_load(path, 0, NULL, &r.other));
  assay_status_t st = pair_inputs(&r);
  if (!st) st = pair_outputs(&r);
  if (!st) st = run_all(&r, inputs, seed, &runs);
  if (!st) st = assay_str_status(notes);
  assay_free(r.input_of);
  assay_free(r.output_of);
  assay_model_release(r.other);
  if (st) return assay_saved_deinit(&runs), assay_status_note(st, "the reference '%s'", path);
  *out = runs;
  return NULL;
}
