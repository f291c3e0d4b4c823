// What passes share: the record of what they did, constants that they make, readers, groups.
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "passes/pass.h"

const char* assay_pass_action_name(assay_pass_action_t a) {
  static const char* const names[] = {"removed", "changed", "grouped"};
  return names[a];
}

// ---- the record --------------------------------------------------------------------------------

assay_origins_t assay_rewrite_origins(const assay_rewrite_t* r, const assay_node_t* node) {
  return (size_t)node->id < r->n_origins ? r->origins[node->id] : (assay_origins_t){0};
}

assay_status_t assay_pass_record(assay_pass_context_t* c, assay_pass_action_t action,
                                 const assay_node_t* const* nodes, size_t n, const char* why, ...) {
  assay_rewrite_t* r = c->rewrite;
  char text[512];
  va_list args;
  va_start(args, why);
  vsnprintf(text, sizeof text, why, args);
  va_end(args);
  size_t total = 0;
  for (size_t i = 0; i < n; i++) total += assay_rewrite_origins(r, nodes[i]).n;
  const assay_node_t** all = NULL;
  assay_pass_entry_t e = {.pass = c->name, .action = action, .n_nodes = total};
  ASSAY_TRY(assay_arena_new(r->arena, total, sizeof *all, &all));
  size_t k = 0;
  for (size_t i = 0; i < n; i++) {
    assay_origins_t o = assay_rewrite_origins(r, nodes[i]);
    for (size_t j = 0; j < o.n; j++) all[k++] = o.nodes[j];
  }
  e.nodes = all;
  ASSAY_TRY(assay_arena_strdup(r->arena, text, &e.why));
  ASSAY_TRY(assay_grow(&r->log, &r->cap_log, r->n_log + 1, sizeof *r->log));
  r->log[r->n_log++] = e;
  if (action != ASSAY_PASS_GROUPED) c->changed = true;
  return NULL;
}

assay_status_t assay_pass_absorb(assay_pass_context_t* c, const assay_node_t* node,
                                 const assay_node_t* by) {
  assay_rewrite_t* r = c->rewrite;
  assay_origins_t a = assay_rewrite_origins(r, by), b = assay_rewrite_origins(r, node);
  const assay_node_t** all = NULL;
  ASSAY_TRY(assay_arena_new(r->arena, a.n + b.n, sizeof *all, &all));
  for (size_t i = 0; i < a.n; i++) all[i] = a.nodes[i];
  for (size_t i = 0; i < b.n; i++) all[a.n + i] = b.nodes[i];
  r->origins[by->id] = (assay_origins_t){all, a.n + b.n};
  return NULL;
}

void assay_rewrite_destroy(assay_rewrite_t* r) {
  if (!r) return;
  assay_free(r->log);
  assay_free(r->made);
  assay_free(r->int8_of_group);
  assay_arena_destroy(r->arena);
  assay_model_release(r->model);
  assay_model_release(r->original);
  assay_free(r);
}

// ---- constants ---------------------------------------------------------------------------------

assay_tensor_t* assay_pass_constant(const assay_value_t* v) {
  if (!v || !v->constant || v->is_input || v->constant->kind != ASSAY_KIND_TENSOR) return NULL;
  return v->constant;
}

bool assay_pass_number(const assay_value_t* v, double* out) {
  const assay_tensor_t* t = assay_pass_constant(v);
  if (!t || t->size != 1) return false;
  if (!assay_type_is_float(t->type) && !assay_type_is_integer(t->type) &&
      t->type != ASSAY_TYPE_BOOL)
    return false;
  *out = assay_tensor_element(t, 0);
  return true;
}

bool assay_pass_round(assay_tensor_t* t) {
  size_t n = (size_t)t->size;
  if (t->store != ASSAY_STORE_F64 && t->store != ASSAY_STORE_C128) return true;
  if (t->store == ASSAY_STORE_C128) n *= 2;
  assay_format_t format = assay_type_format(t->type);
  if (t->type == ASSAY_TYPE_DOUBLE || t->type == ASSAY_TYPE_COMPLEX128) return true;
  if (t->type == ASSAY_TYPE_COMPLEX64) format = ASSAY_FORMAT_FP32;
  bool exact_only = format != ASSAY_FORMAT_FP32;
  double* x = assay_f64(t);
  for (size_t i = 0; i < n; i++) {
    double y = assay_format_round(format, x[i], ASSAY_OVERFLOW_IEEE);
    if (y == x[i] || (y != y && x[i] != x[i])) continue;
    if (exact_only || !isfinite(y) || y == 0) return false;
  }
  assay_format_round_n(format, x, x, n, ASSAY_OVERFLOW_IEEE);
  return true;
}

static assay_status_t set_type(assay_model_t* m, assay_value_t* v, const assay_tensor_t* t) {
  const assay_dim_t* dims[ASSAY_MAX_RANK];
  for (int i = 0; i < t->rank; i++) dims[i] = assay_dim_const(m->dims, t->dims[i]);
  return assay_valtype_tensor(m, t->type, t->rank, dims, &v->type);
}

assay_status_t assay_pass_set_constant(assay_pass_context_t* c, assay_value_t* value,
                                       assay_tensor_t* take_tensor) {
  assay_rewrite_t* r = c->rewrite;
  assay_tensor_t* kept = take_tensor;
  assay_status_t st = NULL;
  if (take_tensor->store != ASSAY_STORE_STR && take_tensor->store != ASSAY_STORE_PACKED) {
    st = assay_tensor_pack(take_tensor, &kept);
    assay_tensor_release(take_tensor);
  }
  if (st) return st;
  st = set_type(c->model, value, kept);
  if (!st) st = assay_grow(&r->made, &r->cap_made, r->n_made + 1, sizeof *r->made);
  if (st) return assay_tensor_release(kept), st;
  ASSAY_TRY(assay_graph_set_initializer(value, kept));
  r->made[r->n_made++] = (assay_made_constant_t){value, c->name};
  c->changed = true;
  return NULL;
}

assay_status_t assay_pass_set_outputs(assay_pass_context_t* c, assay_node_t* node,
                                      assay_tensor_t* const* tensors, const char* why) {
  const assay_node_t* removed = node;
  ASSAY_TRY(assay_pass_record(c, ASSAY_PASS_REMOVED, &removed, 1, "%s", why));
  for (size_t i = 0; i < node->n_outputs; i++) {
    assay_value_t* v = node->outputs[i];
    if (!v) continue;
    assay_node_set_output(node, i, NULL);
    ASSAY_TRY(assay_pass_set_constant(c, v, assay_tensor_retain(tensors[i])));
  }
  return NULL;
}

// ---- nodes -------------------------------------------------------------------------------------

// A body that no node holds any more: nothing in it counts as a reader or a layer.
static void empty_graph(assay_model_t* m, assay_graph_t* g) {
  g->n_nodes = g->n_initializers = g->n_outputs = g->n_inputs = 0;
  for (size_t i = 0; i < m->n_graphs; i++)
    if (m->graphs[i]->outer == g) empty_graph(m, m->graphs[i]);
}

// Nodes get ids beyond those of the original model.
static assay_status_t reserve(assay_rewrite_t* r, size_t n) {
  assay_origins_t* origins = NULL;
  int* group_of_node = NULL;
  if (n <= r->n_origins) return NULL;
  n += n / 2;
  ASSAY_TRY(assay_arena_new(r->arena, n, sizeof *origins, &origins));
  ASSAY_TRY(assay_arena_new(r->arena, n, sizeof *group_of_node, &group_of_node));
  memcpy(origins, r->origins, r->n_origins * sizeof *origins);
  memcpy(group_of_node, r->group_of_node, r->n_origins * sizeof *group_of_node);
  for (size_t i = r->n_origins; i < n; i++) group_of_node[i] = -1;
  r->origins = origins;
  r->group_of_node = group_of_node;
  r->n_origins = n;
  return NULL;
}

assay_status_t assay_pass_insert(assay_pass_context_t* c, assay_node_t* node,
                                 const assay_node_t* like, size_t at) {
  ASSAY_TRY(reserve(c->rewrite, (size_t)node->id + 1));
  c->rewrite->origins[node->id] = assay_rewrite_origins(c->rewrite, like);
  node->op = like->op;
  node->schema = like->schema;
  c->changed = true;
  return assay_graph_insert(node->graph, node, at);
}

void assay_pass_remove(assay_pass_context_t* c, const bool* dead, size_t n) {
  assay_model_t* m = c->model;
  for (size_t k = 0; k < m->n_graphs; k++) {
    const assay_node_t* owner = m->graphs[k]->owner;
    if (owner && (size_t)owner->id < n && dead[owner->id]) empty_graph(m, m->graphs[k]);
  }
  for (size_t k = 0; k < m->n_graphs; k++) {
    assay_graph_t* g = m->graphs[k];
    size_t kept = 0;
    for (size_t i = 0; i < g->n_nodes; i++) {
      assay_node_t* node = g->nodes[i];
      if ((size_t)node->id >= n || !dead[node->id]) {
        g->nodes[kept++] = node;
        continue;
      }
      for (size_t o = 0; o < node->n_outputs; o++) assay_node_set_output(node, o, NULL);
    }
    c->changed |= kept < g->n_nodes;
    g->n_nodes = kept;
  }
}

// ---- readers -----------------------------------------------------------------------------------

void assay_uses_sort(const assay_uses_t* u, assay_node_t** nodes, size_t n) {
  for (size_t i = 1; i < n; i++)
    for (size_t k = i; k && u->position[nodes[k]->id] < u->position[nodes[k - 1]->id]; k--) {
      assay_node_t* t = nodes[k];
      nodes[k] = nodes[k - 1];
      nodes[k - 1] = t;
    }
}

void assay_uses_deinit(assay_uses_t* u) {
  assay_free(u->n_reads);
  assay_free(u->first);
  assay_free(u->readers);
  assay_free(u->position);
  *u = (assay_uses_t){0};
}

// Calls the readers' places: first only counted (by value, at first[id + 1]), then filled in.
static void walk_reads(const assay_model_t* m, assay_uses_t* u, bool fill) {
  for (size_t k = 0; k < m->n_graphs; k++) {
    const assay_graph_t* g = m->graphs[k];
    for (size_t i = 0; i < g->n_nodes; i++) {
      assay_node_t* n = g->nodes[i];
      u->position[n->id] = (int)i;
      for (size_t j = 0; j < n->n_inputs; j++) {
        if (!n->inputs[j]) continue;
        int id = n->inputs[j]->id;
        if (fill)
          u->readers[u->first[id] + u->n_reads[id]] = n;
        else
          u->first[id + 1]++;
        u->n_reads[id] += fill;
      }
    }
  }
}

assay_status_t assay_uses_create(const assay_model_t* m, assay_uses_t* out) {
  assay_uses_t u = {.n_values = m->n_values, .n_nodes = m->n_node_ids};
  size_t n = (size_t)m->n_values;
  assay_status_t st = assay_new_array(n, sizeof *u.n_reads, &u.n_reads);
  if (!st) st = assay_new_array(n + 1, sizeof *u.first, &u.first);
  if (!st) st = assay_new_array((size_t)m->n_node_ids, sizeof *u.position, &u.position);
  if (!st) walk_reads(m, &u, false);
  for (size_t i = 0; !st && i < n; i++) u.first[i + 1] += u.first[i];
  if (!st) st = assay_new_array((size_t)u.first[n], sizeof(assay_node_t*), &u.readers);
  if (st) return assay_uses_deinit(&u), st;
  walk_reads(m, &u, true);
  for (size_t k = 0; k < m->n_graphs; k++)
    for (size_t i = 0; i < m->graphs[k]->n_outputs; i++) u.n_reads[m->graphs[k]->outputs[i]->id]++;
  *out = u;
  return NULL;
}

int assay_uses_of(const assay_uses_t* u, const assay_value_t* v) {
  return v->id < u->n_values ? u->n_reads[v->id] : INT_MAX;
}
bool assay_uses_once(const assay_uses_t* u, const assay_value_t* v) {
  return !v->is_output && assay_uses_of(u, v) == 1;
}

static void count_reads(assay_uses_t* u, const assay_node_t* node, int by) {
  for (size_t i = 0; i < node->n_inputs; i++)
    if (node->inputs[i] && node->inputs[i]->id < u->n_values) u->n_reads[node->inputs[i]->id] += by;
}
void assay_uses_forget(assay_uses_t* u, const assay_node_t* node) { count_reads(u, node, -1); }
void assay_uses_add(assay_uses_t* u, const assay_node_t* node) { count_reads(u, node, 1); }

// ---- groups ------------------------------------------------------------------------------------

assay_status_t assay_pass_group_int8(assay_pass_context_t* c, assay_node_t* const* nodes, size_t n,
                                     const assay_int8_t* int8, const char* why) {
  ASSAY_TRY(assay_pass_group(c, nodes, n, why));
  c->rewrite->int8_of_group[c->rewrite->n_groups - 1] = int8;
  return NULL;
}

bool assay_rewrite_is_of_sizes(const assay_rewrite_t* r, const assay_node_t* node) {
  return r->of_sizes && (size_t)node->id < r->n_of_sizes && r->of_sizes[node->id];
}

bool assay_pass_is_grouped(const assay_pass_context_t* c, const assay_node_t* node) {
  return c->rewrite->group_of_node[node->id] >= 0;
}
bool assay_pass_may_group(const assay_pass_context_t* c, const assay_node_t* node) {
  return node->graph == c->model->graph && node->op && !assay_pass_is_grouped(c, node);
}

assay_status_t assay_pass_group(assay_pass_context_t* c, assay_node_t* const* nodes, size_t n,
                                const char* why) {
  assay_rewrite_t* r = c->rewrite;
  ASSAY_TRY(assay_grow(&r->int8_of_group, &r->cap_int8, (size_t)r->n_groups + 1,
                       sizeof *r->int8_of_group));
  r->int8_of_group[r->n_groups] = NULL;
  for (size_t i = 0; i < n; i++) r->group_of_node[nodes[i]->id] = r->n_groups;
  r->n_groups++;
  return assay_pass_record(c, ASSAY_PASS_GROUPED, (const assay_node_t* const*)nodes, n, "%s", why);
}

bool assay_pass_is_fusible(const assay_node_t* node) {
  const uint32_t never =
      ASSAY_OP_RANDOM | ASSAY_OP_CONTROL | ASSAY_OP_QUANTIZES | ASSAY_OP_KEEPS_TYPE;
  if (!node->op || !(node->op->flags & ASSAY_OP_POINTWISE) || node->op->flags & never ||
      node->op->discrete || !node->n_outputs || !node->outputs[0])
    return false;
  for (size_t i = 1; i < node->n_outputs; i++)
    if (node->outputs[i]) return false;
  const assay_valtype_t* t = node->outputs[0]->type;
  return t && t->kind == ASSAY_KIND_TENSOR && assay_type_is_float(t->elem);
}

bool assay_same_static_shape(const assay_value_t* a, const assay_value_t* b) {
  const assay_valtype_t *s = a->type, *t = b->type;
  if (!s || !t || s->kind != ASSAY_KIND_TENSOR || t->kind != ASSAY_KIND_TENSOR || !s->has_shape ||
      !t->has_shape || s->rank != t->rank)
    return false;
  for (int i = 0; i < s->rank; i++)
    if (!assay_dim_same(s->dims[i], t->dims[i])) return false;
  return true;
}
