// Faulty nodes of a model: each is checked and run by itself, on what its inputs were computed to
// be.
#include "edit/lint.h"

#include <string.h>

#include "edit/cut.h"
#include "edit/one_node.h"
#include "ops/schema.h"

#define CHECKER "onnx_checker"
#define OURS "assay"

assay_status_t assay_lint_init(assay_lint_t* out) {
  *out = (assay_lint_t){0};
  return assay_arena_create(&out->arena);
}

void assay_lint_deinit(assay_lint_t* l) {
  assay_arena_destroy(l->arena);
  assay_free(l->entries);
  assay_free(l->passing);
  assay_free(l->failing);
  *l = (assay_lint_t){0};
}

// ---- findings -----------------------------------------------------------------------------------

static assay_status_t add(assay_lint_t* l, assay_lint_level_t level, const char* source,
                          const assay_node_t* node, const char* message) {
  assay_lint_entry_t e = {.level = level, .source = source};
  ASSAY_TRY(assay_grow(&l->entries, &l->cap_entries, l->n_entries + 1, sizeof *l->entries));
  ASSAY_TRY(assay_arena_strdup(l->arena, message, &e.message));
  if (node) {
    ASSAY_TRY(assay_arena_strdup(l->arena, node->name, &e.node));
    ASSAY_TRY(assay_arena_strdup(l->arena, node->op_type, &e.op_type));
  }
  l->entries[l->n_entries++] = e;
  l->failed |= level == ASSAY_LINT_EXCEPTION;
  return NULL;
}

assay_status_t assay_lint_add(assay_lint_t* l, assay_lint_level_t level, const char* source,
                              const char* message) {
  return add(l, level, source, NULL, message);
}

static bool is_named(const char* const* list, size_t n, const char* name) {
  for (size_t i = 0; i < n; i++)
    if (strcmp(list[i], name) == 0) return true;
  return false;
}

static assay_status_t passes(assay_lint_t* l, const assay_node_t* n) {
  if (is_named(l->failing, l->n_failing, n->name)) return NULL;
  return assay_arena_strdup(l->arena, n->name, &l->passing[l->n_passing++]);
}

static assay_status_t fails(assay_lint_t* l, const char* source, const assay_node_t* n,
                            const char* message) {
  ASSAY_TRY(add(l, ASSAY_LINT_EXCEPTION, source, n, message));
  if (is_named(l->failing, l->n_failing, n->name)) return NULL;
  return assay_arena_strdup(l->arena, n->name, &l->failing[l->n_failing++]);
}

// ---- the whole model ----------------------------------------------------------------------------

assay_status_t assay_lint_name_nodes(assay_model_t* m) {
  assay_graph_t* g = m->graph;
  assay_map_t taken = {0};
  assay_status_t st = NULL;
  for (size_t i = 0; !st && i < g->n_nodes; i++)
    if (*g->nodes[i]->name) st = assay_map_put(&taken, g->nodes[i]->name, i, NULL);
  for (size_t i = 0; !st && i < g->n_nodes; i++) {
    assay_node_t* n = g->nodes[i];
    if (*n->name) continue;
    st = assay_arena_printf(m->arena, &n->name, "polygraphy_unnamed_node_%zu", i);
    for (int k = 0; !st && assay_map_get(&taken, n->name, NULL); k++)
      st = assay_arena_printf(m->arena, &n->name, "polygraphy_unnamed_node_%zu_%d", i, k);
    if (!st) st = assay_map_put(&taken, n->name, i, NULL);
  }
  assay_map_deinit(&taken);
  return st;
}

static assay_status_t check_names(assay_lint_t* l, const assay_model_t* m) {
  assay_map_t first = {0};
  assay_status_t st = NULL;
  for (size_t i = 0; !st && i < m->graph->n_nodes; i++) {
    const assay_node_t* n = m->graph->nodes[i];
    const char* message = NULL;
    uint64_t at;
    if (!assay_map_get(&first, n->name, &at)) {
      st = assay_map_put(&first, n->name, i, NULL);
      continue;
    }
    st = assay_arena_printf(l->arena, &message, "Duplicate node name: '%s', of nodes %llu and %zu.",
                            n->name, (unsigned long long)at, i);
    if (!st) st = fails(l, CHECKER, n, message);
  }
  assay_map_deinit(&first);
  return st;
}

// A value that a node reads before any node has made it, as the file has them.
static bool is_early(const assay_graph_t* g, const assay_node_t* n, const assay_value_t* v) {
  if (!v || v->graph != g || v->is_input) return false;
  return v->producer ? v->producer->index >= n->index : !v->constant;
}

static assay_status_t check_order(assay_lint_t* l, const assay_graph_t* g) {
  for (size_t i = 0; i < g->n_nodes; i++) {
    const assay_node_t* n = g->nodes[i];
    for (size_t k = 0; k < n->n_inputs; k++) {
      const char* message = NULL;
      if (!is_early(g, n, n->inputs[k])) continue;
      ASSAY_TRY(assay_arena_printf(
          l->arena, &message,
          "Nodes in a graph must be topologically sorted, however input '%s' of node: name: %s "
          "OpType: %s is not output of any previous nodes.",
          n->inputs[k]->name, n->name, n->op_type));
      // One is enough: those after it follow from it.
      return assay_lint_add(l, ASSAY_LINT_EXCEPTION, CHECKER, message);
    }
  }
  return NULL;
}

static assay_status_t check_model(assay_lint_t* l, const assay_model_t* m) {
  const assay_graph_t* g = m->graph;
  if (m->ir_version < 1)
    ASSAY_TRY(assay_lint_add(l, ASSAY_LINT_EXCEPTION, CHECKER,
                             "The model does not have an ir_version set properly."));
  if (!m->n_opsets)
    ASSAY_TRY(assay_lint_add(l, ASSAY_LINT_EXCEPTION, CHECKER,
                             "model with IR version >= 3 must specify opset_import for ONNX"));
  if (!*g->name)
    ASSAY_TRY(assay_lint_add(l, ASSAY_LINT_EXCEPTION, CHECKER,
                             "Field 'name' of 'graph' is required to be non-empty."));
  for (size_t i = 0; i < g->n_outputs; i++) {
    const assay_value_t* v = g->outputs[i];
    const char* message = NULL;
    if (v->producer || v->is_input || v->constant) continue;
    ASSAY_TRY(
        assay_arena_printf(l->arena, &message, "Graph output '%s' is made by no node.", v->name));
    ASSAY_TRY(assay_lint_add(l, ASSAY_LINT_EXCEPTION, CHECKER, message));
  }
  return check_order(l, g);
}

// ---- node by node -------------------------------------------------------------------------------

typedef struct linter {
  const assay_model_t* m;
  assay_lint_t* l;
  assay_one_node_t* one;
  assay_tensor_t** at;  // by value id: what was computed; NULL: nothing was
  int* reads;           // by value id: how often it is still to be read
} linter_t;

// In the words that users of ONNX Runtime know.
static assay_status_t print_fault(const linter_t* x, const assay_node_t* n, assay_status_t st,
                                  const char** out) {
  const int64_t version = assay_model_opset(x->m, n->domain);
  bool known = false;
  const bool there = assay_schema_find(n->domain, n->op_type, version, &known) || n->function;
  if (!there && !known && version > 0 && assay_schema_newest(n->domain))
    return assay_arena_printf(x->l->arena, out,
                              "No Op registered for %s with domain_version of %lld", n->op_type,
                              (long long)version);
  return assay_arena_strdup(x->l->arena, assay_one_node_reason(st), out);
}

// An operator of a domain that nobody here knows may be a fault or not.
static bool is_custom(const assay_node_t* n) {
  return !n->function && !assay_schema_newest(n->domain);
}

static assay_status_t type_of_value(assay_model_t* scratch, const assay_tensor_t* t,
                                    const assay_valtype_t** out) {
  const assay_dim_t* dims[ASSAY_MAX_RANK];
  const assay_valtype_t* of = NULL;
  if (t->kind == ASSAY_KIND_OPTIONAL && t->n_items) {
    ASSAY_TRY(type_of_value(scratch, t->items[0], &of));
    return assay_valtype_of(scratch, t->kind, ASSAY_TYPE_UNDEFINED, of, out);
  }
  if (t->kind != ASSAY_KIND_TENSOR) {
    const bool map = t->kind == ASSAY_KIND_MAP;  // of keys and values
    ASSAY_TRY(assay_valtype_unranked(scratch, map ? t->items[1]->type : t->type, &of));
    return assay_valtype_of(scratch, t->kind, map ? t->items[0]->type : ASSAY_TYPE_UNDEFINED, of,
                            out);
  }
  for (int i = 0; i < t->rank; i++) dims[i] = assay_dim_const(scratch->dims, t->dims[i]);
  ASSAY_TRY(assay_dims_status(scratch->dims));
  return assay_valtype_tensor(scratch, t->type, t->rank, dims, out);
}

static void keep(linter_t* x, const assay_model_t* one, assay_tensor_t** out) {
  for (size_t i = 0; i < one->graph->n_outputs; i++) {
    const int id = one->graph->outputs[i]->id;
    if (x->reads[id])
      x->at[id] = out[i];
    else
      assay_tensor_release(out[i]);
  }
}

// A node that fails is in the report then.
static assay_status_t run_node(linter_t* x, const assay_node_t* n, assay_value_t* const* inputs,
                               size_t n_in, assay_model_t* scratch) {
  const assay_valtype_t** types = NULL;
  assay_tensor_t **in = NULL, **out = NULL;
  assay_model_t* one = NULL;
  ASSAY_TRY(assay_arena_new(scratch->arena, n_in, sizeof *types, &types));
  ASSAY_TRY(assay_arena_new(scratch->arena, n_in, sizeof *in, &in));
  ASSAY_TRY(assay_arena_new(scratch->arena, n->n_outputs, sizeof *out, &out));
  for (size_t i = 0; i < n_in; i++) {
    in[i] = x->at[inputs[i]->id];
    ASSAY_TRY(type_of_value(scratch, in[i], &types[i]));
  }
  assay_status_t st = assay_one_node_prepare(x->one, n, types, &one);
  if (!st) st = assay_one_node_run(one, in, out);
  if (!st) {
    keep(x, one, out);
    assay_model_release(one);
    return passes(x->l, n);
  }
  assay_model_release(one);
  if (assay_status_code(st) == ASSAY_NO_MEMORY) return st;
  const char* message = NULL;
  assay_status_t reported = print_fault(x, n, st, &message);
  assay_status_free(st);
  if (reported) return reported;
  if (!is_custom(n)) return fails(x->l, OURS, n, message);
  ASSAY_TRY(add(x->l, ASSAY_LINT_WARNING, OURS, n, message));
  return passes(x->l, n);
}

static assay_status_t lint_node(linter_t* x, const assay_node_t* n) {
  assay_value_t* const* inputs;
  size_t n_in;
  bool there = true;
  assay_model_t* scratch = NULL;
  ASSAY_TRY(assay_one_node_inputs(x->one, n, &inputs, &n_in));
  for (size_t i = 0; i < n_in; i++) there &= x->at[inputs[i]->id] != NULL;
  assay_status_t st = there ? assay_model_create(&scratch) : NULL;
  if (!st && there) st = run_node(x, n, inputs, n_in, scratch);
  assay_model_release(scratch);
  if (st) return st;
  for (size_t i = 0; i < n_in; i++) {
    const int id = inputs[i]->id;
    if (--x->reads[id] > 0) continue;
    assay_tensor_release(x->at[id]);
    x->at[id] = NULL;
  }
  return NULL;
}

static assay_status_t count_reads(linter_t* x) {
  for (size_t i = 0; i < x->m->graph->n_nodes; i++) {
    assay_value_t* const* inputs;
    size_t n;
    ASSAY_TRY(assay_one_node_inputs(x->one, x->m->graph->nodes[i], &inputs, &n));
    for (size_t k = 0; k < n; k++) x->reads[inputs[k]->id]++;
  }
  return NULL;
}

static assay_status_t lint_nodes(linter_t* x, assay_tensor_t* const* inputs) {
  const assay_graph_t* g = x->m->graph;
  ASSAY_TRY(count_reads(x));
  for (size_t i = 0; i < g->n_inputs; i++)
    if (inputs[i] && x->reads[g->inputs[i]->id])
      x->at[g->inputs[i]->id] = assay_tensor_retain(inputs[i]);
  assay_status_t st = NULL;
  for (size_t i = 0; !st && i < g->n_nodes; i++) st = lint_node(x, g->nodes[i]);
  return st;
}

// ---- what nobody needs --------------------------------------------------------------------------

static assay_status_t report_unused(assay_lint_t* l, const assay_model_t* m) {
  assay_cut_t c = {0};
  assay_model_t* copy = NULL;
  ASSAY_TRY(assay_model_clone(m, &copy));
  assay_status_t st = assay_cut_init(copy, &c);
  const assay_graph_t* g = copy->graph;
  for (size_t i = 0; !st && i < g->n_outputs; i++) st = assay_cut_need(&c, g->outputs[i]);
  for (size_t i = 0; !st && i < g->n_inputs; i++) {
    const char* message = NULL;
    if (c.needed[g->inputs[i]->id] || g->inputs[i]->constant) continue;
    st = assay_arena_printf(l->arena, &message,
                            "Input: '%s' does not affect outputs, can be removed.",
                            g->inputs[i]->name);
    if (!st) st = assay_lint_add(l, ASSAY_LINT_WARNING, OURS, message);
  }
  for (size_t i = 0; !st && i < g->n_nodes; i++)
    if (!c.kept[g->nodes[i]->id])
      st =
          add(l, ASSAY_LINT_WARNING, OURS, g->nodes[i], "Does not affect outputs, can be removed.");
  assay_cut_deinit(&c);
  assay_model_release(copy);
  return st;
}

assay_status_t assay_lint_check(const assay_model_t* model, assay_lint_t* l) {
  const size_t n_nodes = model->graph->n_nodes;
  ASSAY_TRY(assay_new_array(n_nodes, sizeof *l->passing, &l->passing));
  // A name that several nodes have may fail for each of them.
  ASSAY_TRY(assay_new_array(2 * n_nodes, sizeof *l->failing, &l->failing));
  ASSAY_TRY(check_names(l, model));
  return check_model(l, model);
}

assay_status_t assay_lint_run(const assay_model_t* model, assay_tensor_t* const* inputs,
                              assay_lint_t* l) {
  linter_t x = {.m = model, .l = l};
  const size_t n = (size_t)model->n_values;
  assay_status_t st = assay_new_array(n, sizeof *x.at, &x.at);
  if (!st) st = assay_new_array(n, sizeof *x.reads, &x.reads);
  if (!st) st = assay_one_node_create(model, &x.one);
  if (!st) st = lint_nodes(&x, inputs);
  if (!st) st = report_unused(l, model);
  for (size_t i = 0; x.at && i < n; i++) assay_tensor_release(x.at[i]);
  assay_free(x.at);
  assay_free(x.reads);
  assay_one_node_destroy(x.one);
  return st;
}
