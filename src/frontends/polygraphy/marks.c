// Which values are outputs: --onnx-outputs, --trt-outputs and their kin.
#include <string.h>

#include "edit/names.h"
#include "frontends/polygraphy/inspect/layer_types.h"
#include "frontends/polygraphy/model.h"
#include "onnx/load.h"
#include "onnx/onnx.h"

bool pg_marks_all(const pg_words_t* names) {
  return (names->n == 2 && strcmp(names->items[0], "mark") == 0 &&
          strcmp(names->items[1], "all") == 0) ||
         (names->n == 1 && strcmp(names->items[0], "*") == 0);
}

typedef struct marking {
  assay_model_t* m;
  assay_model_t* ready;  // with types; NULL: they are not known
  assay_value_t** list;  // what becomes the outputs
  size_t n;
} marking_t;

static bool is_listed(const marking_t* k, const assay_value_t* v) {
  for (size_t i = 0; i < k->n; i++)
    if (k->list[i] == v) return true;
  return false;
}

static void add(marking_t* k, assay_value_t* v) {
  if (!is_listed(k, v)) k->list[k->n++] = v;
}

// Sequences and the like between nodes are not outputs that a run could compare.
static bool is_tensor(const marking_t* k, const assay_value_t* v) {
  const assay_value_t* known = k->ready ? assay_graph_find(k->ready->graph, v->name) : v;
  const assay_valtype_t* t = known ? (known->type ? known->type : known->declared) : NULL;
  return !t || t->kind == ASSAY_KIND_TENSOR;
}

static bool is_made(const assay_node_t* n) { return strcmp(n->op_type, "Constant") != 0; }

// Calls `f` for what nodes of the main graph make.
static size_t mark_fitting(marking_t* k, const char* pattern) {
  const assay_graph_t* g = k->m->graph;
  size_t found = 0;
  for (size_t i = 0; i < g->n_nodes; i++)
    for (size_t o = 0; is_made(g->nodes[i]) && o < g->nodes[i]->n_outputs; o++) {
      assay_value_t* v = g->nodes[i]->outputs[o];
      if (!v || !pg_fits(pattern, v->name) || (!v->is_output && !is_tensor(k, v))) continue;
      add(k, v);
      found++;
    }
  return found;
}

static assay_status_t not_found(const marking_t* k, const char* flag, const char* name) {
  assay_str_t all = {0};
  enum { MAX = 40 };
  const assay_graph_t* g = k->m->graph;
  size_t n = 0;
  for (size_t i = 0; i < g->n_nodes; i++)
    for (size_t o = 0; o < g->nodes[i]->n_outputs; o++)
      if (g->nodes[i]->outputs[o] && n++ < MAX)
        assay_str_printf(&all, "%s'%s'", n > 1 ? ", " : "", g->nodes[i]->outputs[o]->name);
  if (n > MAX) assay_str_printf(&all, " and %zu more", n - MAX);
  assay_value_t* v = NULL;
  assay_status_t near = assay_names_value(k->m, name, &v);
  assay_status_t st =
      ASSAY_ERROR(ASSAY_NOT_FOUND,
                  "The following outputs were not found in the model: {'%s'} (%s): %s. Note: all "
                  "values are: {%s}",
                  name, flag, near ? assay_status_message(near) : "it is not a value of a node",
                  assay_str_get(&all));
  assay_status_free(near);
  assay_str_deinit(&all);
  return st;
}

static assay_status_t mark_names(marking_t* k, const pg_marks_t* marks) {
  if (pg_marks_all(marks->names)) return mark_fitting(k, "*"), NULL;
  for (size_t i = 0; i < marks->names->n; i++) {
    const char* name = marks->names->items[i];
    assay_value_t* v = assay_graph_find(k->m->graph, name);
    if (v && !v->constant)
      add(k, v);
    else if (!mark_fitting(k, name))
      return not_found(k, marks->flag, name);
  }
  return NULL;
}

static bool is_op(const assay_node_t* n, const char* type) { return strcmp(n->op_type, type) == 0; }

static void mark_types(marking_t* k, const pg_marks_t* marks) {
  const assay_graph_t* g = k->m->graph;
  for (size_t i = 0; i < g->n_nodes; i++)
    for (size_t t = 0; t < marks->by_type->n; t++) {
      const assay_node_t* n = g->nodes[i];
      if (!(marks->is_of ? marks->is_of : is_op)(n, marks->by_type->items[t])) continue;
      for (size_t o = 0; o < n->n_outputs; o++)
        if (n->outputs[o] && is_tensor(k, n->outputs[o])) add(k, n->outputs[o]);
    }
}

// Whether a name or pattern is of any value that a run has.
static bool is_known(const assay_graph_t* g, const char* name) {
  const assay_value_t* v = assay_graph_find(g, name);
  if (v && !v->constant) return true;
  for (size_t i = 0; i < g->n_nodes; i++)
    for (size_t o = 0; o < g->nodes[i]->n_outputs; o++)
      if (g->nodes[i]->outputs[o] && pg_fits(name, g->nodes[i]->outputs[o]->name)) return true;
  return false;
}

static assay_status_t check_excluded(const marking_t* k, const pg_marks_t* marks) {
  for (size_t e = 0; e < marks->exclude->n; e++)
    if (!is_known(k->m->graph, marks->exclude->items[e]))
      return not_found(k, marks->flag, marks->exclude->items[e]);
  return NULL;
}

static void drop_excluded(marking_t* k, const pg_words_t* exclude) {
  size_t kept = 0;
  for (size_t i = 0; i < k->n; i++) {
    bool drop = false;
    for (size_t e = 0; e < exclude->n; e++) drop |= pg_fits(exclude->items[e], k->list[i]->name);
    if (!drop) k->list[kept++] = k->list[i];
  }
  k->n = kept;
}

// ---- types --------------------------------------------------------------------------------------

// A type that inference knows of another model, as one of this.
static assay_status_t copy_type(assay_model_t* m, const assay_valtype_t* t,
                                const assay_valtype_t** out) {
  const assay_dim_t* dims[ASSAY_MAX_RANK];
  if (t->kind != ASSAY_KIND_TENSOR || !t->elem) return NULL;
  if (!t->has_shape || t->rank > ASSAY_MAX_RANK) return assay_valtype_unranked(m, t->elem, out);
  for (int d = 0; d < t->rank; d++)
    dims[d] = t->dims[d] ? assay_dim_copy(m->dims, t->dims[d]) : NULL;
  ASSAY_TRY(assay_dims_status(m->dims));
  return assay_valtype_tensor(m, t->elem, t->rank, dims, out);
}

static assay_status_t give_type(marking_t* k, assay_value_t* v) {
  if (v->declared || !k->ready) return NULL;
  const assay_value_t* known = assay_graph_find(k->ready->graph, v->name);
  return known && known->type ? copy_type(k->m, known->type, &v->declared) : NULL;
}

static assay_status_t set_outputs(marking_t* k, const char* flag) {
  assay_graph_t* g = k->m->graph;
  if (!k->n)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "%s: no output is left; the model had '%s'%s", flag,
                       g->n_outputs ? g->outputs[0]->name : "",
                       g->n_outputs > 1 ? " and others" : "");
  for (size_t i = 0; i < g->n_outputs; i++) g->outputs[i]->is_output = false;
  for (size_t i = 0; i < k->n; i++) {
    k->list[i]->is_output = true;
    ASSAY_TRY(give_type(k, k->list[i]));
  }
  g->outputs = k->list;
  g->n_outputs = k->n;
  return NULL;
}

// The model as it would be run, for its types; what cannot be run keeps those that it declares.
static assay_status_t infer(marking_t* k) {
  assay_model_t* copy = NULL;
  ASSAY_TRY(assay_model_clone(k->m, &copy));
  assay_status_t st = assay_onnx_prepare(copy, 0, NULL, &k->ready);
  assay_model_release(copy);
  if (!st || assay_status_code(st) == ASSAY_NO_MEMORY) return st;
  pg_log(PG_VERBOSE, "Shapes are not inferred: %s", assay_status_message(st));
  assay_status_free(st);
  return NULL;
}

assay_status_t pg_mark_outputs(assay_model_t* m, const pg_marks_t* marks) {
  static const pg_words_t none = {0};
  pg_marks_t wanted = *marks;
  if (!wanted.names) wanted.names = &none;
  if (!wanted.exclude) wanted.exclude = &none;
  if (!wanted.by_type) wanted.by_type = &none;
  marking_t k = {.m = m};
  size_t capacity = m->graph->n_outputs + wanted.names->n;
  if (!wanted.names->n && !wanted.exclude->n && !wanted.by_type->n) return NULL;
  for (size_t i = 0; i < m->graph->n_nodes; i++) capacity += m->graph->nodes[i]->n_outputs;
  ASSAY_TRY(assay_arena_new(m->arena, capacity, sizeof *k.list, &k.list));
  ASSAY_TRY(infer(&k));
  assay_status_t st = NULL;
  mark_types(&k, &wanted);
  if (wanted.by_type->n && !k.n)
    pg_log(PG_WARNING, "%s-by-type: no node is of these types: the outputs stay", wanted.flag);
  if (wanted.names->n) st = mark_names(&k, &wanted);
  if (!st) st = check_excluded(&k, &wanted);
  // What is named or found stands in the place of the model's own.
  if (!k.n || wanted.keep_own)
    for (size_t i = 0; i < m->graph->n_outputs; i++) add(&k, m->graph->outputs[i]);
  drop_excluded(&k, wanted.exclude);
  if (!st) st = set_outputs(&k, wanted.flag);
  assay_model_release(k.ready);
  return st;
}

// ---- of engines ---------------------------------------------------------------------------------

bool pg_asks_outputs(const pg_args_t* a) {
  return pg_given(a, PG_FLAG_trt_outputs) || pg_given(a, PG_FLAG_trt_exclude_outputs) ||
         pg_given(a, PG_FLAG_trt_outputs_by_type) || pg_given(a, PG_FLAG_mark_debug) ||
         pg_given(a, PG_FLAG_mark_unfused_tensors_as_debug_tensors);
}

// Debug tensors come in front of the other outputs: those of --trt-outputs, or the model's own.
assay_status_t pg_mark_engine(pg_job_t* j, assay_model_t* m) {
  static const char* all[] = {"*"};
  static const pg_words_t every = {all, 1}, none = {0};
  const pg_args_t* a = j->args;
  const bool unfused = pg_given(a, PG_FLAG_mark_unfused_tensors_as_debug_tensors);
  const pg_words_t* debug = unfused ? &every : pg_words(a, PG_FLAG_mark_debug);
  pg_marks_t marks = {.names = pg_words(a, PG_FLAG_trt_outputs),
                      .exclude = &none,
                      .by_type = pg_words(a, PG_FLAG_trt_outputs_by_type),
                      .flag = "--trt-outputs",
                      .is_of = pg_is_layer_type};
  ASSAY_TRY(pg_mark_outputs(m, &marks));
  marks = (pg_marks_t){.names = debug, .exclude = &none, .flag = "--mark-debug", .keep_own = true};
  if (debug->n) ASSAY_TRY(pg_mark_outputs(m, &marks));
  marks = (pg_marks_t){.exclude = pg_words(a, PG_FLAG_trt_exclude_outputs),
                       .flag = "--trt-exclude-outputs"};
  return pg_mark_outputs(m, &marks);
}
