// A part of a model as it stands, without a proof: between named values, or with a node put there.
#include "edit/part.h"

#include <string.h>

#include "edit/cut.h"
#include "edit/names.h"
#include "onnx/onnx.h"

static bool is_listed(assay_value_t* const* list, size_t n, const assay_value_t* v) {
  for (size_t i = 0; i < n; i++)
    if (list[i] == v) return true;
  return false;
}

// ---- a part -------------------------------------------------------------------------------------

// The values of the ends, each once, with the types that are given or looked up.
static assay_status_t find_ends(assay_model_t* m, const assay_part_end_t* ends, size_t n_ends,
                                const assay_model_t* types, bool inputs, bool untyped,
                                assay_value_t*** out, size_t* out_n) {
  assay_value_t** list = NULL;
  size_t n = 0;
  ASSAY_TRY(assay_arena_new(m->arena, n_ends, sizeof *list, &list));
  for (size_t i = 0; i < n_ends; i++) {
    assay_value_t* v = NULL;
    ASSAY_TRY(assay_names_value(m, ends[i].name, &v));
    if (inputs && v->constant)
      return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                         "'%s' is a constant, and cannot become an input; name a value that "
                         "depends on the inputs",
                         v->name);
    if (is_listed(list, n, v)) continue;
    const assay_value_t* typed = types ? assay_graph_find(types->graph, v->name) : NULL;
    const assay_valtype_t* known = typed ? typed->type : NULL;
    if (known && known->kind == ASSAY_KIND_TENSOR && !known->elem) known = NULL;
    const bool said = ends[i].type.elem || known || v->declared;
    if (said || (inputs && !untyped)) ASSAY_TRY(assay_types_declare(m, v, &ends[i].type, known));
    list[n++] = v;
  }
  *out = list;
  *out_n = n;
  return NULL;
}

static void set_outputs(assay_graph_t* g, assay_value_t** list, size_t n) {
  for (size_t i = 0; i < g->n_outputs; i++) g->outputs[i]->is_output = false;
  for (size_t i = 0; i < n; i++) list[i]->is_output = true;
  g->outputs = list;
  g->n_outputs = n;
}

// The inputs that were asked for, and after them those of the model that are needed all the same.
static assay_status_t set_inputs(assay_cut_t* c, assay_value_t* const* asked, size_t n_asked,
                                 assay_str_t* notes) {
  assay_graph_t* g = c->m->graph;
  assay_value_t** list = NULL;
  size_t n = 0;
  ASSAY_TRY(assay_arena_new(c->m->arena, n_asked + g->n_inputs, sizeof *list, &list));
  for (; n < n_asked; n++) {
    assay_value_t* v = list[n] = asked[n];
    if (v->producer) assay_node_set_output(v->producer, (size_t)v->output_index, NULL);
  }
  for (size_t i = 0; i < g->n_inputs; i++) {
    assay_value_t* v = g->inputs[i];
    v->is_input = false;
    if (!c->needed[v->id] || is_listed(list, n_asked, v)) continue;
    if (!v->constant)
      assay_str_printf(notes, "outputs depend on input '%s', too: it stays an input\n", v->name);
    list[n++] = v;
  }
  for (size_t i = 0; i < n; i++) {
    list[i]->is_input = true;
    c->needed[list[i]->id] = true;
  }
  g->inputs = list;
  g->n_inputs = n;
  return assay_str_status(notes);
}

static assay_status_t take(assay_model_t* m, const assay_part_t* part, const assay_model_t* types,
                           assay_str_t* notes) {
  assay_value_t **in = NULL, **out = NULL;
  size_t n_in = 0, n_out = 0;
  assay_cut_t c = {0};
  if (!part->keep_in)
    ASSAY_TRY(find_ends(m, part->in, part->n_in, types, true, part->untyped, &in, &n_in));
  if (!part->keep_out) {
    ASSAY_TRY(find_ends(m, part->out, part->n_out, types, false, true, &out, &n_out));
    if (!n_out) return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "name an output at least");
    set_outputs(m->graph, out, n_out);
  }
  if (part->keep_in) {
    // As constants that callers may replace, inputs stay whether they are needed or not.
    in = m->graph->inputs;
    n_in = m->graph->n_inputs;
  }
  ASSAY_TRY(assay_cut_init(m, &c));
  assay_status_t st = NULL;
  for (size_t i = 0; i < n_in; i++) c.from[in[i]->id] = true;
  for (size_t i = 0; !st && i < m->graph->n_outputs; i++)
    st = assay_cut_need(&c, m->graph->outputs[i]);
  if (!st) st = set_inputs(&c, in, n_in, notes);
  if (!st) st = assay_cut_drop(&c);
  assay_cut_deinit(&c);
  return st;
}

assay_status_t assay_part_take(const assay_model_t* m, const assay_part_t* part,
                               const assay_model_t* types, assay_str_t* notes,
                               assay_model_t** out) {
  assay_model_t* copy = NULL;
  ASSAY_TRY(assay_model_clone(m, &copy));
  assay_status_t st = take(copy, part, types, notes);
  if (st) return assay_model_release(copy), st;
  *out = copy;
  return NULL;
}

// ---- a node -------------------------------------------------------------------------------------

static void replace_reads(assay_model_t* m, const assay_value_t* v, assay_value_t* by) {
  for (size_t k = 0; k < m->n_graphs; k++) {
    assay_graph_t* g = m->graphs[k];
    for (size_t i = 0; i < g->n_nodes; i++)
      for (size_t j = 0; j < g->nodes[i]->n_inputs; j++)
        if (g->nodes[i]->inputs[j] == v) g->nodes[i]->inputs[j] = by;
    for (size_t i = 0; g != m->graph && i < g->n_outputs; i++)
      if (g->outputs[i] == v) g->outputs[i] = by;
  }
}

// The graph hands out the new value under the name that callers know; the old one gets another.
static assay_status_t swap_output(assay_model_t* m, assay_value_t* v, assay_value_t* made) {
  assay_graph_t* g = m->graph;
  const char* name = v->name;
  for (size_t i = 0; i < g->n_outputs; i++)
    if (g->outputs[i] == v) g->outputs[i] = made;
  v->is_output = false;
  made->is_output = true;
  v->name = made->name;
  made->name = name;
  ASSAY_TRY(assay_map_put(&g->values, made->name, (uint64_t)(uintptr_t)made, NULL));
  return assay_map_put(&g->values, v->name, (uint64_t)(uintptr_t)v, NULL);
}

// The value that the node makes: of that name, or a new one after it where the node reads it, too.
static assay_status_t find_output(assay_model_t* m, const assay_part_node_t* node, const char* name,
                                  assay_value_t** out) {
  assay_value_t *v = NULL, *made = NULL;
  const char* hint = NULL;
  ASSAY_TRY(assay_names_value(m, name, &v));
  bool read = false;
  for (size_t i = 0; i < node->n_inputs; i++) read |= strcmp(node->inputs[i], name) == 0;
  if (!read) {
    if (v->is_input || v->constant)
      return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "'%s' is %s: no node can make it", name,
                         v->is_input ? "an input of the model" : "a constant");
    if (v->producer) assay_node_set_output(v->producer, (size_t)v->output_index, NULL);
    return *out = v, NULL;
  }
  ASSAY_TRY(assay_arena_printf(m->arena, &hint, "%s_polygraphy_surgeon_insert_output", name));
  ASSAY_TRY(assay_graph_new_value(m->graph, hint, &made));
  replace_reads(m, v, made);
  if (v->is_output && !v->is_input) {
    ASSAY_TRY(assay_types_copy(m, v->declared, &made->declared));
    ASSAY_TRY(swap_output(m, v, made));
  } else if (v->is_output) {
    return ASSAY_ERROR(ASSAY_UNSUPPORTED, "'%s' is an input and an output of the model at once",
                       name);
  }
  return *out = made, NULL;
}

static assay_status_t insert(assay_model_t* m, const assay_part_node_t* request) {
  assay_node_t* n = NULL;
  assay_value_t** in = NULL;
  ASSAY_TRY(assay_arena_new(m->arena, request->n_inputs, sizeof *in, &in));
  for (size_t i = 0; i < request->n_inputs; i++)
    if (*request->inputs[i]) ASSAY_TRY(assay_names_value(m, request->inputs[i], &in[i]));
  ASSAY_TRY(assay_node_create(m->graph, "", request->op_type, request->name, request->n_inputs,
                              request->n_outputs, request->n_attrs, &n));
  for (size_t i = 0; i < request->n_outputs; i++) {
    assay_value_t* v = NULL;
    ASSAY_TRY(find_output(m, request, request->outputs[i], &v));
    assay_node_set_output(n, i, v);
  }
  for (size_t i = 0; i < request->n_inputs; i++) n->inputs[i] = in[i];
  for (size_t i = 0; i < request->n_attrs; i++) n->attrs[i] = request->attrs[i];
  size_t at = 0;
  for (size_t i = 0; i < m->graph->n_nodes; i++)
    for (size_t k = 0; k < request->n_inputs; k++)
      if (in[k] && in[k]->producer == m->graph->nodes[i]) at = i + 1;
  ASSAY_TRY(assay_graph_insert(m->graph, n, at));
  ASSAY_TRY(assay_onnx_sort(m));
  return assay_cut_clean(m);
}

assay_status_t assay_part_insert(const assay_model_t* m, const assay_part_node_t* node,
                                 assay_model_t** out) {
  assay_model_t* copy = NULL;
  ASSAY_TRY(assay_model_clone(m, &copy));
  assay_status_t st = insert(copy, node);
  if (st) return assay_model_release(copy), st;
  *out = copy;
  return NULL;
}
