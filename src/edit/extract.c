// A part of a model as a model of its own: from some values to others.
//
// Nodes are kept that the outputs depend on, up to the inputs of the cut, which get the types that
// inference knows. Inputs of the model that are reached all the same stay inputs.
#include <string.h>

#include "base/alloc.h"
#include "edit/cut.h"
#include "edit/editor.h"
#include "edit/names.h"

typedef struct cut {
  assay_editing_t* e;
  assay_model_t* m;
  assay_cut_t parts;
} cut_t;

// ---- the ends of the cut ------------------------------------------------------------------------

static bool is_listed(assay_value_t* const* list, size_t n, const assay_value_t* v) {
  for (size_t i = 0; i < n; i++)
    if (list[i] == v) return true;
  return false;
}

// A value that a constant or a Constant node gives: nothing to be cut.
static bool is_constant(const assay_value_t* v) { return v->constant && !v->is_input; }

static assay_status_t read_values(const cut_t* c, const char* option, const assay_words_t* names,
                                  assay_value_t** list, size_t* n) {
  for (size_t i = 0; i < names->n; i++) {
    assay_value_t* v = NULL;
    ASSAY_TRY(assay_status_note(assay_names_value(c->m, names->items[i], &v), "%s", option));
    if (is_constant(v))
      return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                         "%s: '%s' is a constant; name a value that depends on the inputs", option,
                         v->name);
    if (!is_listed(list, *n, v)) list[(*n)++] = v;
  }
  return NULL;
}

// What the wanted nodes read from outside and what is read of them outside: the smallest cut.
static assay_status_t cut_around(const cut_t* c, assay_value_t** in, size_t* n_in,
                                 assay_value_t** out, size_t* n_out) {
  const assay_graph_t* g = c->m->graph;
  bool* inside = NULL;
  assay_status_t st = assay_new_array((size_t)c->m->n_node_ids, sizeof *inside, &inside);
  for (size_t i = 0; !st && i < g->n_nodes; i++)
    inside[g->nodes[i]->id] = assay_editing_wants(c->e, g->nodes[i]);
  // The values that wanted nodes need, bodies and all, and those that others do.
  assay_cut_t ours = {0}, others = {0};
  if (!st) st = assay_cut_init(c->m, &ours);
  if (!st) st = assay_cut_init(c->m, &others);
  for (size_t i = 0; !st && i < g->n_nodes; i++)
    st = assay_cut_need_inputs(inside[g->nodes[i]->id] ? &ours : &others, g->nodes[i]);
  for (size_t i = 0; !st && i < g->n_nodes; i++)
    for (size_t k = 0; inside[g->nodes[i]->id] && k < g->nodes[i]->n_outputs; k++) {
      assay_value_t* v = g->nodes[i]->outputs[k];
      if (!v || is_constant(v)) continue;
      if (v->is_output || others.needed[v->id] || !ours.needed[v->id]) out[(*n_out)++] = v;
    }
  for (size_t i = 0; !st && i < g->n_inputs; i++)
    if (ours.needed[g->inputs[i]->id] && !g->inputs[i]->constant) in[(*n_in)++] = g->inputs[i];
  for (size_t i = 0; !st && i < g->n_nodes; i++)
    for (size_t k = 0; !inside[g->nodes[i]->id] && k < g->nodes[i]->n_outputs; k++) {
      assay_value_t* v = g->nodes[i]->outputs[k];
      if (v && ours.needed[v->id] && !is_constant(v)) in[(*n_in)++] = v;
    }
  assay_cut_deinit(&ours);
  assay_cut_deinit(&others);
  assay_free(inside);
  return st;
}

static assay_status_t find_ends(const cut_t* c, assay_value_t** in, size_t* n_in,
                                assay_value_t** out, size_t* n_out) {
  const assay_edit_requests_t* w = c->e->requests;
  const assay_graph_t* g = c->m->graph;
  if (w->nodes.n && (w->from.n || w->to.n))
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                       "--nodes and --from, --to say the same in two ways; use one");
  if (w->nodes.n) {
    ASSAY_TRY(cut_around(c, in, n_in, out, n_out));
    if (*n_out) return NULL;
    return ASSAY_ERROR(
        ASSAY_INVALID_ARGUMENT,
        "--nodes matches only nodes in bodies, or such as make constants; name the node "
        "of the main graph that holds them");
  }
  if (!w->from.n && !w->to.n)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                       "say where to cut: --from VALUE, --to VALUE, or --nodes PATTERN");
  ASSAY_TRY(read_values(c, "--from", &w->from, in, n_in));
  ASSAY_TRY(read_values(c, "--to", &w->to, out, n_out));
  for (size_t i = 0; !w->from.n && i < g->n_inputs; i++)
    if (!g->inputs[i]->constant) in[(*n_in)++] = g->inputs[i];
  for (size_t i = 0; !w->to.n && i < g->n_outputs; i++)
    if (!is_listed(out, *n_out, g->outputs[i])) out[(*n_out)++] = g->outputs[i];
  for (size_t i = 0; i < *n_out; i++)
    if (w->from.n && is_listed(in, *n_in, out[i]))
      return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "'%s' is both an input and an output of the cut",
                         out[i]->name);
  return NULL;
}

// ---- the cut ------------------------------------------------------------------------------------

// An input of the cut becomes one of the model: it needs a type.
static assay_status_t make_input(assay_value_t* v) {
  const assay_valtype_t* t = v->type ? v->type : v->declared;
  if (!t || (t->kind == ASSAY_KIND_TENSOR && !t->elem))
    return ASSAY_ERROR(ASSAY_UNSUPPORTED,
                       "the type of value '%s' is not known, and an input needs one; cut elsewhere",
                       v->name);
  if (v->producer) assay_node_set_output(v->producer, (size_t)v->output_index, NULL);
  v->is_input = true;
  v->declared = t;
  return NULL;
}

static assay_status_t set_inputs(cut_t* c, assay_value_t** in, size_t n_in) {
  assay_graph_t* g = c->m->graph;
  assay_value_t** list = NULL;
  size_t n = 0;
  ASSAY_TRY(assay_arena_new(c->m->arena, g->n_inputs + n_in, sizeof *list, &list));
  for (size_t i = 0; i < n_in; i++) {
    if (!c->parts.needed[in[i]->id]) {
      if (c->e->requests->from.n)
        assay_str_printf(&c->e->notes, "no output depends on '%s': left out\n", in[i]->name);
      continue;
    }
    list[n++] = in[i];
  }
  for (size_t i = 0; i < g->n_inputs; i++) {
    assay_value_t* v = g->inputs[i];
    if (!c->parts.needed[v->id] || is_listed(list, n, v)) continue;
    if (!v->constant && c->e->requests->from.n)
      assay_str_printf(&c->e->notes, "outputs depend on input '%s', too: it stays an input\n",
                       v->name);
    list[n++] = v;
  }
  for (size_t i = 0; i < g->n_inputs; i++) g->inputs[i]->is_input = false;
  for (size_t i = 0; i < n; i++) ASSAY_TRY(make_input(list[i]));
  g->inputs = list;
  g->n_inputs = n;
  return NULL;
}

static assay_status_t set_outputs(cut_t* c, assay_value_t** out, size_t n_out) {
  assay_graph_t* g = c->m->graph;
  assay_value_t** list = NULL;
  ASSAY_TRY(assay_arena_new(c->m->arena, n_out, sizeof *list, &list));
  for (size_t i = 0; i < g->n_outputs; i++) g->outputs[i]->is_output = false;
  for (size_t i = 0; i < n_out; i++) {
    list[i] = out[i];
    out[i]->is_output = true;
    if (!out[i]->declared) out[i]->declared = out[i]->type;
  }
  g->outputs = list;
  g->n_outputs = n_out;
  return NULL;
}

static assay_status_t cut(cut_t* c, assay_value_t** in, assay_value_t** out) {
  size_t n_in = 0, n_out = 0;
  ASSAY_TRY(find_ends(c, in, &n_in, out, &n_out));
  for (size_t i = 0; i < n_in; i++) c->parts.from[in[i]->id] = true;
  for (size_t i = 0; i < n_out; i++) ASSAY_TRY(assay_cut_need(&c->parts, out[i]));
  size_t n = 0;
  for (size_t i = 0; i < c->m->graph->n_nodes; i++) n += c->parts.kept[c->m->graph->nodes[i]->id];
  ASSAY_TRY(set_inputs(c, in, n_in));
  ASSAY_TRY(set_outputs(c, out, n_out));
  ASSAY_TRY(assay_cut_drop(&c->parts));
  assay_editing_did(c->e, "nodes kept", n);
  return NULL;
}

static assay_status_t run(assay_editing_t* e) {
  cut_t c = {.e = e};
  assay_value_t **in = NULL, **out = NULL;
  ASSAY_TRY(assay_model_clone(e->model, &e->out));
  c.m = e->out;
  const size_t n = (size_t)c.m->n_values;
  assay_status_t st = assay_cut_init(c.m, &c.parts);
  if (!st) st = assay_new_array(n, sizeof *in, &in);
  if (!st) st = assay_new_array(n, sizeof *out, &out);
  if (!st) st = cut(&c, in, out);
  assay_free(in);
  assay_free(out);
  assay_cut_deinit(&c.parts);
  return st;
}

const assay_editor_t assay_editor_extract = {
    .name = "extract",
    .summary = "a part of a model as a model of its own: from some values to others",
    .promise = ASSAY_PROMISE_SAME,
    .keeps_functions = true,
    .run = run,
};
