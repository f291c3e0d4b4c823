// Values declared float16 or bfloat16 become float32 values of nodes that have that format.
//
// A typed model then is what a float32 model with a precision is, and the same patterns, kernels
// and fused layers serve it. A number does not change: a layer rounds to its format what it reads
// and what it stores. What is left are Casts where a type has to be: at inputs and outputs of
// graphs, and beside nodes that stay as they are (bodies of control flow, operators that need the
// type, nodes of several types).
//
// A Cast to float16 becomes one to float32 in the format fp16, which stores what it did. Nodes in
// fp16 read past it: they round what they read.
#include "passes/float_types.h"

#include <string.h>

#include "base/alloc.h"
#include "passes/edit.h"

typedef struct job {
  assay_edit_t* e;
  assay_pass_context_t* c;
  int n_values;             // those that were there
  int n_nodes;              // the same
  const bool* of_sizes;     // by node id
  assay_format_t* formats;  // by node id; NONE: the node stays as it is
  assay_type_t* was;        // by value id: the declared type; UNDEFINED: none of the two
  bool* wide_value;         // by value id: it is float32 by now
  assay_value_t** wide;     // by value id: float32 with the same numbers; NULL: none yet
  assay_value_t** narrow;   // by value id: in the type it had; NULL: none yet
} job_t;

static bool is_narrow(assay_type_t t) {
  return t == ASSAY_TYPE_FLOAT16 || t == ASSAY_TYPE_BFLOAT16;
}

static bool is_short_float(assay_type_t t) { return is_narrow(t) || t == ASSAY_TYPE_FLOAT; }

bool assay_float_types_has_narrow(const assay_model_t* m) {
  for (size_t k = 0; k < m->n_graphs; k++) {
    const assay_graph_t* g = m->graphs[k];
    for (size_t i = 0; i < g->n_nodes; i++)
      for (size_t j = 0; j < g->nodes[i]->n_outputs; j++)
        if (g->nodes[i]->outputs[j] && is_narrow(assay_elem_of(g->nodes[i]->outputs[j])))
          return true;
  }
  return false;
}

// ---- which nodes --------------------------------------------------------------------------------

static bool allows(const assay_param_t* p, assay_type_t type) {
  return p && *p->type && p->types.tensor >> type & 1;
}

// Whether all elements of a constant are numbers of a type. They are, too, if there are none.
static assay_status_t fits(const assay_value_t* v, assay_type_t type, bool* out) {
  assay_tensor_t* wide = NULL;
  assay_tensor_t* t = assay_pass_constant(v);
  *out = false;
  if (!t) return NULL;
  ASSAY_TRY(assay_tensor_widen(t, &wide));
  const assay_format_t format = assay_type_format(type);
  *out = true;
  for (int64_t i = 0; *out && i < wide->size; i++) {
    const double x = assay_f64(wide)[i];
    *out = x != x || assay_format_round(format, x, ASSAY_OVERFLOW_IEEE) == x;
  }
  assay_tensor_release(wide);
  return NULL;
}

static bool has_other_kinds(const assay_node_t* n) {
  for (size_t i = 0; i < n->n_inputs; i++)
    if (n->inputs[i] && (!n->inputs[i]->type || n->inputs[i]->type->kind != ASSAY_KIND_TENSOR))
      return true;
  for (size_t i = 0; i < n->n_outputs; i++)
    if (n->outputs[i] && (!n->outputs[i]->type || n->outputs[i]->type->kind != ASSAY_KIND_TENSOR))
      return true;
  return false;
}

// The one 16-bit type among the inputs of a node that can read float32 in its place; UNDEFINED:
// there is none, or not only one.
static assay_status_t type_read(const assay_node_t* n, assay_type_t* out) {
  assay_type_t found = ASSAY_TYPE_UNDEFINED;
  *out = ASSAY_TYPE_UNDEFINED;
  for (size_t i = 0; i < n->n_inputs; i++) {
    const assay_type_t t = assay_elem_of(n->inputs[i]);
    if (!n->inputs[i] || !is_narrow(t)) continue;
    if ((found && t != found) || !allows(assay_schema_input(n->schema, i), ASSAY_TYPE_FLOAT))
      return NULL;
    found = t;
  }
  // A float32 input would be rounded to the format, unless that is so already, or is never done.
  for (size_t i = 0; found && i < n->n_inputs; i++) {
    bool same = false;
    if (assay_elem_of(n->inputs[i]) != ASSAY_TYPE_FLOAT) continue;
    if (!allows(assay_schema_input(n->schema, i), ASSAY_TYPE_FLOAT16)) continue;
    ASSAY_TRY(fits(n->inputs[i], found, &same));
    if (!same) return NULL;
  }
  *out = found;
  return NULL;
}

// Whether an output's type is that of an input, so that it becomes float32 with it.
static bool follows_input(const assay_node_t* n, size_t output, assay_type_t type) {
  const assay_param_t* out = assay_schema_output(n->schema, output);
  if (!allows(out, ASSAY_TYPE_FLOAT)) return false;
  for (size_t k = 0; k < n->n_inputs; k++) {
    const assay_param_t* in = assay_schema_input(n->schema, k);
    if (in && strcmp(in->type, out->type) == 0 && assay_elem_of(n->inputs[k]) == type) return true;
  }
  return false;
}

static bool outputs_follow(const assay_node_t* n, assay_type_t type) {
  for (size_t i = 0; i < n->n_outputs; i++) {
    const assay_type_t t = assay_elem_of(n->outputs[i]);
    if (n->outputs[i] && is_short_float(t) && (t != type || !follows_input(n, i, type)))
      return false;
  }
  return true;
}

static bool is_cast(const assay_node_t* n) { return assay_is(n, "Cast") && n->n_inputs == 1; }

// A Cast rounds to the format of what it is to make; one that makes something else has that of what
// it reads. Cast 1 to 5 names its type by text, and strings are not numbers.
static assay_format_t format_of_cast(const assay_node_t* n) {
  const assay_type_t from = assay_elem_of(n->inputs[0]), to = assay_elem_of(n->outputs[0]);
  if (n->schema->since < 6) return ASSAY_FORMAT_NONE;
  if (is_narrow(to)) {
    const bool number =
        is_short_float(from) || assay_type_is_integer(from) || from == ASSAY_TYPE_BOOL;
    return number ? assay_type_format(to) : ASSAY_FORMAT_NONE;
  }
  if (!is_narrow(from)) return ASSAY_FORMAT_NONE;
  if (to == ASSAY_TYPE_FLOAT) return ASSAY_FORMAT_FP32;
  const bool number = assay_type_is_integer(to) || to == ASSAY_TYPE_BOOL;
  return number ? assay_type_format(from) : ASSAY_FORMAT_NONE;
}

// Operators whose bits depend on a declared type stay: quantizers round quotients to that of the
// scale, others are told their output's by an attribute.
static bool may_change(const job_t* j, const assay_node_t* n) {
  if (!n->op || !n->schema || n->function || has_other_kinds(n)) return false;
  // What follows from sizes is computed in the types that it declares.
  for (size_t i = 0; j->of_sizes[n->id] && i < n->n_outputs; i++)
    if (n->outputs[i] && is_narrow(assay_elem_of(n->outputs[i]))) return false;
  if (is_cast(n)) return true;
  if (*n->domain && strcmp(n->domain, "com.microsoft") != 0) return false;
  return !(n->op->flags & (ASSAY_OP_CONTROL | ASSAY_OP_KEEPS_TYPE));
}

static assay_status_t choose_format(job_t* j, const assay_node_t* n) {
  assay_type_t type = ASSAY_TYPE_UNDEFINED;
  if (!may_change(j, n)) return NULL;
  if (is_cast(n)) return j->formats[n->id] = format_of_cast(n), NULL;
  ASSAY_TRY(type_read(n, &type));
  if (type && outputs_follow(n, type)) j->formats[n->id] = assay_type_format(type);
  return NULL;
}

// ---- values -------------------------------------------------------------------------------------

static assay_status_t typed_like(job_t* j, const assay_value_t* v, assay_type_t elem,
                                 const assay_valtype_t** out) {
  const assay_valtype_t* t = v->type;
  if (t->has_shape) return assay_valtype_tensor(j->c->model, elem, t->rank, t->dims, out);
  return assay_valtype_unranked(j->c->model, elem, out);
}

// A Cast of `from` to the type of `to`, after what makes `from`; it stands for what `like` does.
static assay_status_t insert_cast(job_t* j, assay_value_t* from, assay_value_t* to,
                                  assay_type_t type, const assay_node_t* like) {
  assay_graph_t* g = from->graph;
  const assay_node_t* at = from->producer ? from->producer : g->nodes[0];
  assay_node_t* n = NULL;
  ASSAY_TRY(assay_edit_insert_bare(j->e, at, "Cast", 1, &from, 1, &n));
  ASSAY_TRY(assay_edit_attr_i(j->e, n, "to", type));
  assay_node_set_output(n, 0, to);
  j->c->rewrite->origins[n->id] = assay_rewrite_origins(j->c->rewrite, like);
  for (size_t i = 0; from->producer && i + 1 < g->n_nodes; i++) {
    if (g->nodes[i] != n) continue;
    g->nodes[i] = g->nodes[i + 1];
    g->nodes[i + 1] = n;
    break;
  }
  return NULL;
}

static assay_status_t new_value(job_t* j, const assay_value_t* like, assay_type_t type,
                                assay_value_t** out) {
  const char* name = NULL;
  ASSAY_TRY(assay_arena_printf(j->c->model->arena, &name, "%s/%s", like->name,
                               assay_format_name(assay_type_format(type))));
  ASSAY_TRY(assay_graph_new_value(like->graph, name, out));
  return typed_like(j, like, type, &(*out)->type);
}

// What a node that changes makes. Outputs of graphs keep their types, and are cast to them.
static assay_status_t widen_output(job_t* j, assay_node_t* n, size_t i) {
  assay_value_t *v = n->outputs[i], *low = NULL;
  const assay_type_t type = j->was[v->id];
  if (!v->is_output) {
    ASSAY_TRY(typed_like(j, v, ASSAY_TYPE_FLOAT, &v->type));
    v->declared = v->type;
    j->wide_value[v->id] = true;
    j->wide[v->id] = v;
    return NULL;
  }
  ASSAY_TRY(new_value(j, v, ASSAY_TYPE_FLOAT, &low));
  assay_node_set_output(n, i, low);
  j->wide[v->id] = low;
  return insert_cast(j, low, v, type, n);
}

static assay_status_t widen_constant(job_t* j, assay_value_t* v, assay_value_t** out) {
  assay_tensor_t *wide = NULL, *typed = NULL, *packed = NULL;
  assay_status_t st = assay_tensor_widen(v->constant, &wide);
  if (!st) st = assay_tensor_retype(wide, ASSAY_TYPE_FLOAT, &typed);
  if (!st) st = assay_tensor_pack(typed, &packed);
  if (!st) st = new_value(j, v, ASSAY_TYPE_FLOAT, out);
  if (!st) st = assay_graph_set_initializer(*out, assay_tensor_retain(packed));
  assay_tensor_release(wide);
  assay_tensor_release(typed);
  assay_tensor_release(packed);
  return st;
}

// Float32 in place of a value that nothing that changes has made.
static assay_status_t widen_input(job_t* j, const assay_node_t* reader, assay_value_t* v,
                                  assay_value_t** out) {
  assay_value_t** wide = &j->wide[v->id];
  if (!*wide && assay_pass_constant(v)) ASSAY_TRY(widen_constant(j, v, wide));
  if (!*wide) {
    ASSAY_TRY(new_value(j, v, ASSAY_TYPE_FLOAT, wide));
    ASSAY_TRY(insert_cast(j, v, *wide, ASSAY_TYPE_FLOAT, reader));
  }
  *out = *wide;
  return NULL;
}

// The type that a value had, for a node that stays.
static assay_status_t narrow_input(job_t* j, assay_value_t* v, assay_value_t** out) {
  assay_value_t** narrow = &j->narrow[v->id];
  if (!*narrow) {
    ASSAY_TRY(new_value(j, v, j->was[v->id], narrow));
    ASSAY_TRY(insert_cast(j, v, *narrow, j->was[v->id], v->producer));
  }
  *out = *narrow;
  return NULL;
}

// ---- nodes --------------------------------------------------------------------------------------

static assay_format_t format_of(const job_t* j, const assay_node_t* n) {
  return n->id < j->n_nodes ? j->formats[n->id] : ASSAY_FORMAT_NONE;
}

static bool was_there(const job_t* j, const assay_value_t* v) {
  return v && v->id < j->n_values && j->was[v->id] != ASSAY_TYPE_UNDEFINED;
}

// Whether a node rounds what it reads to its format before it chooses by it. What only moves
// elements rounds after that, which is the same unless it looks at them.
static bool rounds_first(const assay_node_t* n) {
  if (is_cast(n)) return false;
  return !(n->op->flags & ASSAY_OP_MOVES) || !(n->op->flags & ASSAY_OP_SELECTS || n->op->discrete);
}

// What is cast to a node's own format: the node may read what the Cast does. *v: a value that is
// float32 by now.
static void read_past_cast(const job_t* j, const assay_node_t* n, assay_value_t** v) {
  const assay_node_t* cast = (*v)->producer;
  if (!cast || !is_cast(cast) || cast->id >= j->n_nodes || !rounds_first(n)) return;
  if (format_of(j, cast) != format_of(j, n) || !is_short_float(assay_elem_of(cast->inputs[0])))
    return;
  // It may have been float16 itself, and is float32 by now, or stays what it is.
  assay_value_t* from = cast->inputs[0];
  if (from->id < j->n_values && j->wide[from->id]) from = j->wide[from->id];
  if (assay_elem_of(from) == ASSAY_TYPE_FLOAT) *v = from;
}

static assay_status_t change_inputs(job_t* j, assay_node_t* n) {
  const bool changes = format_of(j, n) != ASSAY_FORMAT_NONE;
  for (size_t i = 0; i < n->n_inputs; i++) {
    assay_value_t* v = n->inputs[i];
    if (!was_there(j, v)) continue;
    if (changes) {
      ASSAY_TRY(widen_input(j, n, v, &v));
      read_past_cast(j, n, &v);
    } else if (j->wide_value[v->id]) {
      ASSAY_TRY(narrow_input(j, v, &v));
    }
    if (v != n->inputs[i]) ASSAY_TRY(assay_edit_set_input(j->e, n, i, v));
  }
  return NULL;
}

static assay_status_t change_outputs(job_t* j, assay_node_t* n) {
  const assay_node_t* changed = n;
  if (format_of(j, n) == ASSAY_FORMAT_NONE) return NULL;
  if (is_cast(n) && was_there(j, n->outputs[0]))
    ASSAY_TRY(assay_edit_set_i(j->e, n, "to", ASSAY_TYPE_FLOAT));
  for (size_t i = 0; i < n->n_outputs; i++)
    if (was_there(j, n->outputs[i])) ASSAY_TRY(widen_output(j, n, i));
  return assay_pass_record(j->c, ASSAY_PASS_CHANGED, &changed, 1,
                           "float32 values of a layer in %s, in place of that type",
                           assay_format_name(format_of(j, n)));
}

// For each node that was there, of all graphs.
static assay_status_t each_node(job_t* j, assay_status_t (*visit)(job_t* j, assay_node_t* n)) {
  const assay_model_t* m = j->c->model;
  for (size_t k = 0; k < m->n_graphs; k++) {
    const assay_graph_t* g = m->graphs[k];
    for (size_t i = 0; i < g->n_nodes; i++) {
      assay_node_t* n = g->nodes[i];
      const size_t before = g->n_nodes;
      if (n->id >= j->n_nodes) continue;
      ASSAY_TRY(visit(j, n));
      // Casts may have been put before it; those that come are none of ours.
      for (size_t added = g->n_nodes - before; added && g->nodes[i] != n; added--) i++;
    }
  }
  return NULL;
}

static assay_status_t choose(job_t* j, assay_node_t* n) { return choose_format(j, n); }

static void note_types(job_t* j) {
  const assay_model_t* m = j->c->model;
  for (size_t k = 0; k < m->n_graphs; k++) {
    const assay_graph_t* g = m->graphs[k];
    for (size_t i = 0; i < g->n_inputs; i++) {
      const assay_type_t t = assay_elem_of(g->inputs[i]);
      if (is_narrow(t)) j->was[g->inputs[i]->id] = t;
    }
    for (size_t i = 0; i < g->n_initializers; i++) {
      const assay_type_t t = assay_elem_of(g->initializers[i]);
      if (is_narrow(t)) j->was[g->initializers[i]->id] = t;
    }
    for (size_t i = 0; i < g->n_nodes; i++)
      for (size_t o = 0; o < g->nodes[i]->n_outputs; o++) {
        const assay_value_t* v = g->nodes[i]->outputs[o];
        if (v && is_narrow(assay_elem_of(v))) j->was[v->id] = assay_elem_of(v);
      }
  }
}

// A body may hand out a value of the graph around it.
static assay_status_t change_handed_out(job_t* j) {
  const assay_model_t* m = j->c->model;
  for (size_t k = 0; k < m->n_graphs; k++)
    for (size_t i = 0; i < m->graphs[k]->n_outputs; i++) {
      assay_value_t** v = &m->graphs[k]->outputs[i];
      if (was_there(j, *v) && j->wide_value[(*v)->id]) ASSAY_TRY(narrow_input(j, *v, v));
    }
  return NULL;
}

static assay_status_t change(job_t* j) {
  bool any = false;
  note_types(j);
  ASSAY_TRY(each_node(j, choose));
  for (int i = 0; i < j->n_nodes; i++) any |= j->formats[i] != ASSAY_FORMAT_NONE;
  if (!any) return NULL;
  ASSAY_TRY(each_node(j, change_outputs));
  ASSAY_TRY(each_node(j, change_inputs));
  ASSAY_TRY(change_handed_out(j));
  j->c->rewrite->formats = j->formats;
  j->c->rewrite->n_formats = (size_t)j->n_nodes;
  return NULL;
}

static assay_status_t run_on(job_t* j) {
  const size_t values = (size_t)j->n_values, nodes = (size_t)j->n_nodes;
  bool* of_sizes = NULL;
  // What layers ask for later lives as long as the rewrite does.
  ASSAY_TRY(assay_arena_new(j->c->rewrite->arena, nodes, sizeof *j->formats, &j->formats));
  assay_status_t st = assay_new_array(values, sizeof *j->was, &j->was);
  if (!st) st = assay_new_array(values, sizeof *j->wide_value, &j->wide_value);
  if (!st) st = assay_new_array(values, sizeof(assay_value_t*), &j->wide);
  if (!st) st = assay_new_array(values, sizeof(assay_value_t*), &j->narrow);
  if (!st) st = assay_new_array(nodes, sizeof *of_sizes, &of_sizes);
  if (!st) assay_mark_of_sizes(j->c->model, of_sizes);
  j->of_sizes = of_sizes;
  if (!st) st = change(j);
  assay_free(j->was);
  assay_free(j->wide_value);
  assay_free(j->wide);
  assay_free(j->narrow);
  assay_free(of_sizes);
  return st;
}

static assay_status_t run(assay_pass_context_t* c) {
  assay_edit_t e = {0};
  if (c->rewrite->within_opset || !assay_float_types_has_narrow(c->model)) return NULL;
  job_t j = {.e = &e, .c = c, .n_values = c->model->n_values, .n_nodes = c->model->n_node_ids};
  ASSAY_TRY(assay_edit_begin(c, &e));
  return assay_edit_end(&e, run_on(&j));
}

const assay_pass_t assay_pass_float_types = {
    .name = "float_types",
    .summary = "values declared float16 or bfloat16 become values of layers in that format",
    .run = run,
};

// ---- what it leaves behind ----------------------------------------------------------------------

static assay_format_t format_of_origin(const assay_rewrite_t* r, const assay_node_t* origin) {
  return (size_t)origin->id < r->n_formats ? r->formats[origin->id] : ASSAY_FORMAT_NONE;
}

// Whether a value holds numbers of a format only.
static bool is_stored_in(const assay_rewrite_t* r, const assay_value_t* v, assay_format_t format) {
  bool same = false;
  if (!v || assay_elem_of(v) != ASSAY_TYPE_FLOAT) return true;
  if (v->constant) {
    const assay_type_t type =
        format == ASSAY_FORMAT_BF16 ? ASSAY_TYPE_BFLOAT16 : ASSAY_TYPE_FLOAT16;
    assay_status_free(fits(v, type, &same));
    return same;
  }
  if (!v->producer) return false;
  const assay_origins_t o = assay_rewrite_origins(r, v->producer);
  return o.n && format_of_origin(r, o.nodes[0]) == format;
}

assay_format_t assay_rewrite_declared_format(const assay_rewrite_t* r, const assay_node_t* node) {
  const assay_origins_t o = assay_rewrite_origins(r, node);
  bool same = true;
  if (!r->n_formats || !o.n) return ASSAY_FORMAT_NONE;
  const assay_format_t first = format_of_origin(r, o.nodes[0]);
  for (size_t i = 1; i < o.n; i++) same &= format_of_origin(r, o.nodes[i]) == first;
  if (same) return first;
  bool stored = first != ASSAY_FORMAT_NONE;
  for (size_t i = 0; stored && i < node->n_inputs; i++)
    stored = is_stored_in(r, node->inputs[i], first);
  return stored ? first : ASSAY_FORMAT_FP32;
}

// What is asked of the nodes that a node stands for: of the last one of which anything is.
static assay_format_t asked_of(const assay_rewrite_t* r, const assay_node_t* n) {
  const assay_origins_t o = assay_rewrite_origins(r, n);
  assay_format_t found = ASSAY_FORMAT_NONE;
  for (size_t i = 0; r->asked && i < o.n; i++)
    if (r->asked[o.nodes[i]->id] != ASSAY_FORMAT_NONE) found = r->asked[o.nodes[i]->id];
  return found;
}

bool assay_pass_same_format(const assay_pass_context_t* c, const assay_node_t* a,
                            const assay_node_t* b) {
  const assay_rewrite_t* r = c->rewrite;
  return asked_of(r, a) == asked_of(r, b) &&
         assay_rewrite_declared_format(r, a) == assay_rewrite_declared_format(r, b);
}

bool assay_rewrite_rounds(const assay_rewrite_t* r, const assay_node_t* node) {
  if (!r->n_formats || !is_cast(node) || !node->outputs[0]) return false;
  if (assay_elem_of(node->outputs[0]) != ASSAY_TYPE_FLOAT) return false;
  const assay_format_t format = assay_rewrite_declared_format(r, node);
  if (format == ASSAY_FORMAT_NONE || format == ASSAY_FORMAT_FP32) return false;
  return !is_stored_in(r, node->inputs[0], format);
}
