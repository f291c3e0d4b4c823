// A model in mixed precision: the same graph with 16-bit values where the caller wants them, and
// explicit Casts.
#include "passes/mixed.h"

#include <string.h>

#include "base/alloc.h"
#include "formats/format.h"
#include "ops/op.h"

typedef struct mixer {
  assay_model_t* model;  // the copy being changed
  const assay_format_t* format_of;
  int n_old_values;       // values from here on are ours
  assay_type_t* stored;   // by old value id: FLOAT, or the 16-bit type it has now;
                          // UNDEFINED: was never float32
  assay_value_t** twins;  // by old value id: the same value in another type; NULL: none yet
} mixer_t;

static assay_type_t type_of_format(assay_format_t f) {
  return f == ASSAY_FORMAT_FP16   ? ASSAY_TYPE_FLOAT16
         : f == ASSAY_FORMAT_BF16 ? ASSAY_TYPE_BFLOAT16
                                  : ASSAY_TYPE_FLOAT;
}

static bool is_float32(const assay_value_t* v) {
  return v && v->type && v->type->kind == ASSAY_KIND_TENSOR && v->type->elem == ASSAY_TYPE_FLOAT;
}

// Whether the model as it was had float32 here, whatever it is by now.
static bool was_float32(const mixer_t* x, const assay_value_t* v) {
  return v && v->id < x->n_old_values && x->stored[v->id] != ASSAY_TYPE_UNDEFINED;
}

static bool allows(const assay_param_t* p, assay_type_t type) {
  return p && *p->type && p->types.tensor >> type & 1;
}

// ---- values in another type ---------------------------------------------------------------------

static assay_status_t retype(assay_model_t* m, assay_value_t* v, const assay_valtype_t* like,
                             assay_type_t elem) {
  const assay_valtype_t* t = NULL;
  if (like && like->has_shape)
    ASSAY_TRY(assay_valtype_tensor(m, elem, like->rank, like->dims, &t));
  else
    ASSAY_TRY(assay_valtype_unranked(m, elem, &t));
  v->type = v->declared = t;
  return NULL;
}

static const char* suffix(assay_type_t t) {
  return t == ASSAY_TYPE_FLOAT16 ? "fp16" : t == ASSAY_TYPE_BFLOAT16 ? "bf16" : "fp32";
}

static assay_status_t new_value(mixer_t* x, assay_graph_t* g, const assay_value_t* like,
                                assay_type_t type, assay_value_t** out) {
  const char* name = NULL;
  ASSAY_TRY(assay_arena_printf(x->model->arena, &name, "%s_%s", like->name, suffix(type)));
  ASSAY_TRY(assay_graph_new_value(g, name, out));
  return retype(x->model, *out, like->type, type);
}

// A Cast of `from` to `to` (of type `type`), put into the graph at position `at`.
static assay_status_t insert_cast(mixer_t* x, assay_graph_t* g, size_t at, assay_value_t* from,
                                  assay_value_t* to, assay_type_t type) {
  assay_node_t* n = NULL;
  const char* name = NULL;
  ASSAY_TRY(assay_arena_printf(x->model->arena, &name, "%s_cast", to->name));
  ASSAY_TRY(assay_node_create(g, "", "Cast", name, 1, 1, 1, &n));
  n->inputs[0] = from;
  n->attrs[0].name = "to";
  n->attrs[0].n = 1;
  if (assay_model_opset(x->model, "") < 6) {  // Cast-1 takes the type's name
    static const char* const names[] = {"FLOAT", "FLOAT16"};
    const char* text = names[type == ASSAY_TYPE_FLOAT16];
    n->attrs[0].type = ASSAY_ATTR_STRING;
    n->attrs[0].u.s = (assay_string_t){text, strlen(text)};
  } else {
    n->attrs[0].type = ASSAY_ATTR_INT;
    n->attrs[0].u.i = type;
  }
  assay_node_set_output(n, 0, to);
  return assay_graph_insert(g, n, at);
}

// The constant rounded to a type, as an initializer of its own graph.
static assay_status_t constant_twin(mixer_t* x, const assay_value_t* v, assay_type_t type,
                                    assay_value_t** out) {
  assay_tensor_t *wide = NULL, *typed = NULL, *packed = NULL;
  assay_status_t st = assay_tensor_widen(v->constant, &wide);
  if (!st) st = assay_tensor_retype(wide, type, &typed);
  if (!st) st = assay_tensor_pack(typed, &packed);
  if (!st) st = new_value(x, v->graph, v, type, out);
  if (!st) st = assay_graph_set_initializer(*out, assay_tensor_retain(packed));
  assay_tensor_release(wide);
  assay_tensor_release(typed);
  assay_tensor_release(packed);
  return st;
}

static bool visible_from(const assay_graph_t* g, const assay_graph_t* where) {
  for (; g; g = g->outer)
    if (g == where) return true;
  return false;
}

// The value in the type wanted: itself, its twin, or a new one. *at moves on if a Cast was put
// before it.
static assay_status_t in_type(mixer_t* x, assay_graph_t* g, assay_value_t* v, assay_type_t type,
                              size_t* at, assay_value_t** out) {
  if (v->id >= x->n_old_values || x->stored[v->id] == type) return *out = v, NULL;
  assay_value_t* twin = x->twins[v->id];
  if (twin && twin->type->elem == type && visible_from(g, twin->graph)) return *out = twin, NULL;
  if (v->constant && type != ASSAY_TYPE_FLOAT) {
    ASSAY_TRY(constant_twin(x, v, type, &twin));
  } else {
    ASSAY_TRY(new_value(x, g, v, type, &twin));
    ASSAY_TRY(insert_cast(x, g, (*at)++, v, twin, type));
  }
  x->twins[v->id] = twin;
  *out = twin;
  return NULL;
}

// ---- nodes --------------------------------------------------------------------------------------

// Cast 1 to 5 names its type by text.
static bool is_cast(const assay_node_t* n) {
  return strcmp(n->op_type, "Cast") == 0 && !*n->domain && n->n_inputs == 1 && n->schema &&
         n->schema->since >= 6;
}

static bool is_number(const assay_value_t* v) {
  return v && v->type && v->type->kind == ASSAY_KIND_TENSOR &&
         (assay_type_is_float(v->type->elem) || assay_type_is_integer(v->type->elem) ||
          v->type->elem == ASSAY_TYPE_BOOL);
}

// Whether input i of a node in a 16-bit format is handed over in it.
static bool input_follows(const mixer_t* x, const assay_node_t* n, size_t i, assay_type_t type) {
  return was_float32(x, n->inputs[i]) && allows(assay_schema_input(n->schema, i), type);
}

// Whether output i becomes 16-bit: its type is that of an input which does. A Cast to float32 in a
// 16-bit format rounds to that.
static bool output_follows(const mixer_t* x, const assay_node_t* n, size_t i, assay_type_t type) {
  const assay_param_t* out = assay_schema_output(n->schema, i);
  if (!was_float32(x, n->outputs[i]) || !allows(out, type)) return false;
  if (is_cast(n)) return true;
  for (size_t k = 0; k < n->n_inputs; k++) {
    const assay_param_t* in = assay_schema_input(n->schema, k);
    if (in && strcmp(in->type, out->type) == 0 && input_follows(x, n, k, type)) return true;
  }
  return false;
}

// The 16-bit type that a node can take part in; FLOAT otherwise. Control flow and sequences hand
// values on between graphs and stay as they are; so does what says its output's type in an
// attribute, but for Casts of numbers.
static assay_type_t node_type(const mixer_t* x, const assay_node_t* n) {
  assay_type_t type = type_of_format(x->format_of[n->id]);
  if (type == ASSAY_TYPE_FLOAT || !n->schema || !n->op) return ASSAY_TYPE_FLOAT;
  if (is_cast(n))
    return is_number(n->inputs[0]) && is_number(n->outputs[0]) ? type : ASSAY_TYPE_FLOAT;
  if (n->op->flags & (ASSAY_OP_CONTROL | ASSAY_OP_KEEPS_TYPE)) return ASSAY_TYPE_FLOAT;
  bool any = false;
  for (size_t i = 0; i < n->n_inputs; i++) {
    if (n->inputs[i] && n->inputs[i]->type && n->inputs[i]->type->kind != ASSAY_KIND_TENSOR)
      return ASSAY_TYPE_FLOAT;
    any |= input_follows(x, n, i, type);
  }
  // What is put into a sequence stays, as what takes it out does.
  for (size_t i = 0; i < n->n_outputs; i++)
    if (n->outputs[i] && n->outputs[i]->type && n->outputs[i]->type->kind != ASSAY_KIND_TENSOR)
      return ASSAY_TYPE_FLOAT;
  return any ? type : ASSAY_TYPE_FLOAT;
}

static assay_status_t mix_graph(mixer_t* x, assay_graph_t* g);

static assay_status_t mix_bodies(mixer_t* x, assay_node_t* n) {
  for (size_t a = 0; a < n->n_attrs; a++) {
    if (n->attrs[a].type == ASSAY_ATTR_GRAPH) ASSAY_TRY(mix_graph(x, n->attrs[a].u.g));
    if (n->attrs[a].type == ASSAY_ATTR_GRAPHS)
      for (size_t k = 0; k < n->attrs[a].n; k++) ASSAY_TRY(mix_graph(x, n->attrs[a].u.graphs[k]));
  }
  return NULL;
}

// Makes a Cast of the copy one to another type.
static void cast_to(assay_node_t* n, assay_type_t type) {
  for (size_t i = 0; i < n->n_attrs; i++)
    if (strcmp(n->attrs[i].name, "to") == 0) n->attrs[i].u.i = type;
}

// Changes the node at *at; *at ends on the last node that belongs to it.
static assay_status_t mix_node(mixer_t* x, assay_graph_t* g, size_t* at) {
  assay_node_t* n = g->nodes[*at];
  assay_type_t type = node_type(x, n);
  bool follows[64] = {0};
  for (size_t i = 0; i < n->n_outputs && i < 64; i++)
    follows[i] = type != ASSAY_TYPE_FLOAT && output_follows(x, n, i, type);
  for (size_t i = 0; i < n->n_inputs; i++) {
    if (!was_float32(x, n->inputs[i])) continue;
    const assay_param_t* p = n->schema ? assay_schema_input(n->schema, i) : NULL;
    bool lower = type != ASSAY_TYPE_FLOAT && allows(p, type);
    ASSAY_TRY(in_type(x, g, n->inputs[i], lower ? type : ASSAY_TYPE_FLOAT, at, &n->inputs[i]));
  }
  ASSAY_TRY(mix_bodies(x, n));
  for (size_t i = 0; i < n->n_outputs && i < 64; i++) {
    if (!follows[i]) continue;
    assay_value_t* v = n->outputs[i];
    if (is_cast(n)) cast_to(n, type);
    if (!v->is_output) {
      ASSAY_TRY(retype(x->model, v, v->type, type));
      x->stored[v->id] = type;
      continue;
    }
    assay_value_t* low = NULL;
    ASSAY_TRY(new_value(x, g, v, type, &low));
    assay_node_set_output(n, i, low);
    ASSAY_TRY(insert_cast(x, g, ++*at, low, v, ASSAY_TYPE_FLOAT));
    x->twins[v->id] = low;
  }
  return NULL;
}

static assay_status_t mix_graph(mixer_t* x, assay_graph_t* g) {
  for (size_t at = 0; at < g->n_nodes; at++) ASSAY_TRY(mix_node(x, g, &at));
  // A body may hand out a value of the graph around it, which is 16-bit by now.
  for (size_t i = 0; i < g->n_outputs; i++) {
    size_t end = g->n_nodes;
    assay_value_t* v = g->outputs[i];
    if (was_float32(x, v)) ASSAY_TRY(in_type(x, g, v, ASSAY_TYPE_FLOAT, &end, &g->outputs[i]));
  }
  return NULL;
}

// ---- Casts that change nothing -----------------------------------------------------------------

typedef struct cleaner {
  assay_model_t* model;
  assay_value_t** to;  // by value id: what is read in its place; NULL: itself
  bool* handed_out;    // by value id: some graph hands it out
} cleaner_t;

static assay_value_t* read_as(const cleaner_t* c, assay_value_t* v) {
  while (v && c->to[v->id]) v = c->to[v->id];
  return v;
}

static bool is_same_float(const assay_value_t* a, const assay_value_t* b) {
  return a && b && a->type && b->type && a->type->kind == ASSAY_KIND_TENSOR &&
         b->type->kind == ASSAY_KIND_TENSOR && a->type->elem == b->type->elem &&
         assay_type_is_float(a->type->elem);
}

// Whether a Cast from a type to the same one can go, and what is read by another name then. What
// makes the value that a graph hands out makes it by that name.
static bool can_go(cleaner_t* c, const assay_node_t* n) {
  assay_value_t* out = n->outputs[0];
  assay_value_t* in = read_as(c, n->inputs[0]);
  if (!is_same_float(in, out)) return false;
  if (!c->handed_out[out->id]) return c->to[out->id] = in, true;
  assay_node_t* maker = in->producer;
  if (!maker || in->graph != out->graph || c->handed_out[in->id]) return false;
  assay_node_set_output(maker, (size_t)in->output_index, out);
  return c->to[in->id] = out, true;
}

static void clean(cleaner_t* c) {
  const assay_model_t* m = c->model;
  for (size_t k = 0; k < m->n_graphs; k++)
    for (size_t i = 0; i < m->graphs[k]->n_outputs; i++)
      c->handed_out[m->graphs[k]->outputs[i]->id] = true;
  for (size_t k = 0; k < m->n_graphs; k++) {
    assay_graph_t* g = m->graphs[k];
    for (size_t i = 0; i < g->n_nodes;) {
      if (is_cast(g->nodes[i]) && can_go(c, g->nodes[i]))
        assay_graph_remove(g, i);
      else
        i++;
    }
  }
  for (size_t k = 0; k < m->n_graphs; k++)
    for (size_t i = 0; i < m->graphs[k]->n_nodes; i++)
      for (size_t j = 0; j < m->graphs[k]->nodes[i]->n_inputs; j++)
        m->graphs[k]->nodes[i]->inputs[j] = read_as(c, m->graphs[k]->nodes[i]->inputs[j]);
}

static assay_status_t drop_idle_casts(assay_model_t* m) {
  cleaner_t c = {.model = m};
  assay_status_t st = assay_new_array((size_t)m->n_values, sizeof(assay_value_t*), &c.to);
  if (!st) st = assay_new_array((size_t)m->n_values, sizeof *c.handed_out, &c.handed_out);
  if (!st) clean(&c);
  assay_free(c.to);
  assay_free(c.handed_out);
  return st;
}

// ---- what nobody reads any more ----------------------------------------------------------------

static void count_reads(const assay_model_t* m, int* reads) {
  for (size_t k = 0; k < m->n_graphs; k++) {
    const assay_graph_t* g = m->graphs[k];
    for (size_t i = 0; i < g->n_nodes; i++)
      for (size_t j = 0; j < g->nodes[i]->n_inputs; j++)
        if (g->nodes[i]->inputs[j]) reads[g->nodes[i]->inputs[j]->id]++;
    for (size_t i = 0; i < g->n_outputs; i++) reads[g->outputs[i]->id]++;
  }
}

static assay_status_t sweep(assay_model_t* m) {
  int* reads = NULL;
  ASSAY_TRY(assay_new_array((size_t)m->n_values, sizeof *reads, &reads));
  count_reads(m, reads);
  for (size_t k = 0; k < m->n_graphs; k++) {
    assay_graph_t* g = m->graphs[k];
    size_t kept = 0;
    for (size_t i = 0; i < g->n_initializers; i++) {
      assay_value_t* v = g->initializers[i];
      if (reads[v->id] || v->is_input) g->initializers[kept++] = v;
    }
    g->n_initializers = kept;
    for (size_t i = g->n_nodes; i-- > 0;) {
      const assay_node_t* n = g->nodes[i];
      if (strcmp(n->op_type, "Constant") == 0 && n->n_outputs && n->outputs[0] &&
          !reads[n->outputs[0]->id])
        assay_graph_remove(g, i);
    }
  }
  assay_free(reads);
  return NULL;
}

assay_status_t assay_mixed_create(const assay_model_t* model, const assay_format_t* format_of,
                                  assay_model_t** out) {
  mixer_t x = {.format_of = format_of, .n_old_values = model->n_values};
  for (int i = 0; i < model->n_node_ids; i++)
    if (format_of[i] == ASSAY_FORMAT_BF16 && assay_model_opset(model, "") < 13)
      return ASSAY_ERROR(ASSAY_UNSUPPORTED,
                         "bfloat16 needs operator set 13 or newer; the model imports %lld",
                         (long long)assay_model_opset(model, ""));
  assay_status_t st = assay_model_clone(model, &x.model);
  if (!st) st = assay_new_array((size_t)model->n_values, sizeof *x.stored, &x.stored);
  if (!st) st = assay_new_array((size_t)model->n_values, sizeof *x.twins, &x.twins);
  for (size_t k = 0; !st && k < x.model->n_graphs; k++) {
    const assay_graph_t* g = x.model->graphs[k];
    for (size_t i = 0; i < g->n_inputs; i++)
      if (is_float32(g->inputs[i])) x.stored[g->inputs[i]->id] = ASSAY_TYPE_FLOAT;
    for (size_t i = 0; i < g->n_initializers; i++)
      if (is_float32(g->initializers[i])) x.stored[g->initializers[i]->id] = ASSAY_TYPE_FLOAT;
    for (size_t i = 0; i < g->n_nodes; i++)
      for (size_t j = 0; j < g->nodes[i]->n_outputs; j++)
        if (is_float32(g->nodes[i]->outputs[j]))
          x.stored[g->nodes[i]->outputs[j]->id] = ASSAY_TYPE_FLOAT;
  }
  if (!st) st = mix_graph(&x, x.model->graph);
  if (!st) st = drop_idle_casts(x.model);
  if (!st) st = sweep(x.model);
  assay_free(x.stored);
  assay_free(x.twins);
  if (st) return assay_model_release(x.model), st;
  *out = x.model;
  return NULL;
}
