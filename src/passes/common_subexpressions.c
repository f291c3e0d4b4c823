// Of nodes that compute the same from the same inputs one is kept. Constants that are equal count
// as the same; nothing random does.
#include <string.h>

#include "base/alloc.h"
#include "passes/edit.h"
#include "passes/float_types.h"

enum { SMALL_BYTES = 4096 };  // of constants that are compared by their elements

// ---- a table of what there is, by hash ----------------------------------------------------------

typedef struct entry {
  uint64_t hash;
  assay_node_t* node;  // NULL: a constant
  assay_value_t* value;
} entry_t;

typedef struct table {
  entry_t* entries;
  size_t capacity;  // a power of 2
} table_t;

static uint64_t mix(uint64_t h, uint64_t x) {
  h = (h ^ x) * UINT64_C(0x9E3779B97F4A7C15);
  return h ^ (h >> 29);
}

static uint64_t mix_bytes(uint64_t h, const void* data, size_t n) {
  const unsigned char* p = data;
  for (size_t i = 0; i < n; i++) h = mix(h, p[i]);
  return h;
}

// ---- constants ----------------------------------------------------------------------------------

// How many bytes the elements of a tensor of numbers take.
static bool bytes_of(const assay_tensor_t* t, size_t* out) {
  int64_t n = t->size;
  const bool packed = t->store == ASSAY_STORE_PACKED || t->store == ASSAY_STORE_NARROW;
  if (t->kind != ASSAY_KIND_TENSOR || t->store == ASSAY_STORE_STR) return false;
  if (packed ? !assay_type_packed_bytes(assay_tensor_lies_as(t), t->size, &n)
             : !assay_mul_i64(n, 16, &n))
    return false;
  *out = packed || t->store == ASSAY_STORE_C128 ? (size_t)n : (size_t)n / 2;
  return true;
}

static bool same_tensor(const assay_tensor_t* a, const assay_tensor_t* b) {
  size_t n, m;
  if (a == b) return true;
  if (a->type != b->type || a->store != b->store || a->narrow != b->narrow || a->rank != b->rank ||
      !bytes_of(a, &n) || !bytes_of(b, &m) || n != m || n > SMALL_BYTES)
    return false;
  if (a->rank && memcmp(a->dims, b->dims, (size_t)a->rank * sizeof *a->dims) != 0) return false;
  return memcmp(a->data, b->data, n) == 0;
}

static uint64_t hash_tensor(const assay_tensor_t* t) {
  size_t n;
  uint64_t h = mix(1, (uint64_t)t->type);
  for (int i = 0; i < t->rank; i++) h = mix(h, (uint64_t)t->dims[i]);
  if (bytes_of(t, &n) && n <= SMALL_BYTES) return mix_bytes(h, t->data, n);
  return mix(h, (uint64_t)(uintptr_t)t);
}

// ---- nodes --------------------------------------------------------------------------------------

static bool same_attr(const assay_attr_t* a, const assay_attr_t* b) {
  if (a->type != b->type || a->n != b->n || strcmp(a->ref, b->ref) != 0) return false;
  switch (a->type) {
    case ASSAY_ATTR_FLOAT:
      return memcmp(&a->u.f, &b->u.f, sizeof a->u.f) == 0;
    case ASSAY_ATTR_INT:
      return a->u.i == b->u.i;
    case ASSAY_ATTR_STRING:
      return a->u.s.len == b->u.s.len && memcmp(a->u.s.text, b->u.s.text, a->u.s.len) == 0;
    case ASSAY_ATTR_TENSOR:
      return same_tensor(a->u.t, b->u.t);
    case ASSAY_ATTR_FLOATS:
      return !a->n || memcmp(a->u.floats, b->u.floats, a->n * sizeof *a->u.floats) == 0;
    case ASSAY_ATTR_INTS:
      return !a->n || memcmp(a->u.ints, b->u.ints, a->n * sizeof *a->u.ints) == 0;
    default:
      return false;
  }
}

static bool can_share(const assay_node_t* n) {
  const uint32_t never = ASSAY_OP_RANDOM | ASSAY_OP_CONTROL;
  return n->op && n->n_outputs && !(n->op->flags & never) && !n->function;
}

static bool same_node(const assay_node_t* a, const assay_node_t* b) {
  if (a->op != b->op || a->schema != b->schema || a->graph != b->graph ||
      a->n_inputs != b->n_inputs || a->n_outputs != b->n_outputs || a->n_attrs != b->n_attrs)
    return false;
  for (size_t i = 0; i < a->n_inputs; i++)
    if (a->inputs[i] != b->inputs[i]) return false;
  // What the first one does not make cannot be read of it.
  for (size_t i = 0; i < a->n_outputs; i++)
    if (b->outputs[i] && !a->outputs[i]) return false;
  for (size_t i = 0; i < a->n_attrs; i++) {
    const assay_attr_t* other = assay_node_attr(b, a->attrs[i].name);
    if (!other || !same_attr(&a->attrs[i], other)) return false;
  }
  return true;
}

static uint64_t hash_node(const assay_node_t* n) {
  uint64_t h = mix((uint64_t)(uintptr_t)n->op, n->n_attrs);
  for (size_t i = 0; i < n->n_inputs; i++)
    h = mix(h, n->inputs[i] ? (uint64_t)n->inputs[i]->id + 1 : 0);
  return h;
}

// ---- the pass -----------------------------------------------------------------------------------

// The entry that is the same, or an empty one.
static entry_t* find(const table_t* t, uint64_t hash, const assay_node_t* n,
                     const assay_value_t* v) {
  for (size_t i = hash & (t->capacity - 1);; i = (i + 1) & (t->capacity - 1)) {
    entry_t* e = &t->entries[i];
    if (!e->value && !e->node) return e;
    if (e->hash != hash || !e->node != !n) continue;
    if (n ? same_node(e->node, n)
          : e->value->graph == v->graph && same_tensor(e->value->constant, v->constant))
      return e;
  }
}

static void share_constants(assay_edit_t* e, const table_t* t, const assay_graph_t* g) {
  for (size_t i = 0; i < g->n_initializers; i++) {
    assay_value_t* v = g->initializers[i];
    if (!assay_pass_constant(v) || v->is_output) continue;
    const uint64_t hash = hash_tensor(v->constant);
    entry_t* found = find(t, hash, NULL, v);
    if (!found->value)
      *found = (entry_t){hash, NULL, v};
    else if (assay_edit_can_redirect(e, v, found->value))
      e->to[v->id] = found->value;  // no change by itself: the nodes that read it count
  }
}

static assay_status_t share_node(assay_edit_t* e, const table_t* t, assay_node_t* n) {
  for (size_t i = 0; i < n->n_inputs; i++)
    if (n->inputs[i]) n->inputs[i] = assay_edit_value(e, n->inputs[i]);
  if (!can_share(n)) return NULL;
  const assay_format_t format = assay_rewrite_declared_format(e->c->rewrite, n);
  const uint64_t hash = mix(hash_node(n), (uint64_t)format);
  entry_t* found = find(t, hash, n, NULL);
  if (!found->node) {
    *found = (entry_t){hash, n, NULL};
    return NULL;
  }
  if (assay_rewrite_declared_format(e->c->rewrite, found->node) != format) return NULL;
  for (size_t i = 0; i < n->n_outputs; i++)
    if (n->outputs[i] && !assay_edit_can_redirect(e, n->outputs[i], found->node->outputs[i]))
      return NULL;
  const assay_node_t* node = n;
  ASSAY_TRY(assay_pass_record(e->c, ASSAY_PASS_REMOVED, &node, 1, "'%s' computes the same",
                              found->node->label));
  ASSAY_TRY(assay_pass_absorb(e->c, n, found->node));
  assay_edit_kill(e, n);
  for (size_t i = 0; i < n->n_outputs; i++)
    if (n->outputs[i]) assay_edit_redirect(e, n->outputs[i], found->node->outputs[i]);
  return NULL;
}

static assay_status_t run(assay_pass_context_t* c) {
  const assay_model_t* m = c->model;
  assay_edit_t e = {0};
  table_t t = {NULL, 64};
  size_t n = 0;
  for (size_t k = 0; k < m->n_graphs; k++)
    n += m->graphs[k]->n_nodes + m->graphs[k]->n_initializers;
  while (t.capacity < 2 * n) t.capacity *= 2;
  ASSAY_TRY(assay_new_array(t.capacity, sizeof *t.entries, &t.entries));
  assay_status_t st = assay_edit_begin(c, &e);
  if (st) return assay_free(t.entries), st;
  for (size_t k = 0; k < m->n_graphs; k++) share_constants(&e, &t, m->graphs[k]);
  for (size_t k = 0; !st && k < m->n_graphs; k++)
    for (size_t i = 0; !st && i < m->graphs[k]->n_nodes; i++)
      st = share_node(&e, &t, m->graphs[k]->nodes[i]);
  assay_free(t.entries);
  return assay_edit_end(&e, st);
}

const assay_pass_t assay_pass_common_subexpressions = {
    .name = "common_subexpressions",
    .summary = "of nodes that compute the same one is kept",
    .until_fixpoint = true,
    .run = run,
};
