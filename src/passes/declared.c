// The model as it was declared, for the passes that decide where values are rounded.
#include "passes/declared.h"

#include <string.h>

#include "ops/infer.h"
#include "ops/op.h"

// ---- sizes given and taken away -----------------------------------------------------------------

// A dimension of an input in the declared model, and as it is now.
typedef struct pair {
  const assay_dim_t *open, *now;
} pair_t;

static pair_t pair_of(const assay_value_t* v, int i) {
  const assay_valtype_t *open = v->open ? v->open : v->declared, *now = v->declared;
  return (pair_t){open->dims[i], now->dims[i]};
}

static bool has_dims(const assay_value_t* v) {
  const assay_valtype_t *open = v->open ? v->open : v->declared, *now = v->declared;
  return open && now && open->kind == ASSAY_KIND_TENSOR && now->kind == ASSAY_KIND_TENSOR &&
         open->has_shape && now->has_shape && open->rank == now->rank;
}

// Whether a name of the declared model is anything else than `now` in some input.
static bool is_named_otherwise(const assay_model_t* m, const char* name, const assay_dim_t* now) {
  for (size_t i = 0; i < m->graph->n_inputs; i++) {
    const assay_value_t* v = m->graph->inputs[i];
    for (int d = 0; has_dims(v) && d < v->declared->rank; d++) {
      const pair_t p = pair_of(v, d);
      const char* other = p.open ? assay_dim_name(p.open) : NULL;
      if (other && strcmp(other, name) == 0 && !assay_dim_same(p.now, now)) return true;
    }
  }
  return false;
}

bool assay_declared_is_open(const assay_model_t* m) {
  bool open = false;
  for (size_t i = 0; i < m->graph->n_inputs; i++) {
    const assay_value_t* v = m->graph->inputs[i];
    if (!v->open) continue;
    if (!has_dims(v)) return false;
    for (int d = 0; d < v->declared->rank; d++) {
      const pair_t p = pair_of(v, d);
      const char* name = p.open ? assay_dim_name(p.open) : NULL;
      open |= !assay_dim_same(p.open, p.now);
      if (name && is_named_otherwise(m, name, p.now)) return false;
    }
  }
  return open;
}

assay_status_t assay_declared_open(assay_model_t* clone) {
  for (size_t i = 0; i < clone->graph->n_inputs; i++) {
    assay_value_t* v = clone->graph->inputs[i];
    if (v->open) v->declared = v->open;
  }
  return assay_infer_model(clone);
}

// A type of another model.
static assay_status_t copy_type(assay_model_t* m, const assay_valtype_t* t,
                                const assay_valtype_t** out) {
  const assay_dim_t* dims[ASSAY_MAX_RANK];
  for (int i = 0; i < t->rank; i++) dims[i] = assay_dim_copy(m->dims, t->dims[i]);
  return assay_valtype_tensor(m, t->elem, t->rank, dims, out);
}

assay_status_t assay_declared_close(assay_model_t* clone, const assay_model_t* m) {
  for (size_t i = 0; i < clone->graph->n_inputs; i++) {
    const assay_value_t* from = m->graph->inputs[i];
    if (from->open) ASSAY_TRY(copy_type(clone, from->declared, &clone->graph->inputs[i]->declared));
  }
  return assay_infer_model(clone);
}

// The type of an input with the sizes that are known; *out NULL: one is not.
static assay_status_t sized_type(assay_model_t* m, const assay_value_t* v,
                                 const assay_sizes_known_t* known, const assay_valtype_t** out) {
  const assay_valtype_t* t = v->type;
  const assay_dim_t* dims[ASSAY_MAX_RANK];
  *out = NULL;
  if (!t || t->kind != ASSAY_KIND_TENSOR || !t->has_shape) return NULL;
  for (int i = 0; i < t->rank; i++) {
    int64_t size;
    if (!t->dims[i] || !known->of(known->user, t->dims[i], &size)) return NULL;
    dims[i] = assay_dim_const(m->dims, size);
  }
  return assay_valtype_tensor(m, t->elem, t->rank, dims, out);
}

assay_status_t assay_declared_set(assay_model_t* clone, const assay_sizes_known_t* known,
                                  bool* out_all) {
  const assay_graph_t* g = clone->graph;
  const assay_valtype_t** types = NULL;
  ASSAY_TRY(assay_arena_new(clone->arena, g->n_inputs, sizeof *types, &types));
  *out_all = true;
  for (size_t i = 0; i < g->n_inputs; i++) {
    ASSAY_TRY(sized_type(clone, g->inputs[i], known, &types[i]));
    *out_all &= types[i] != NULL;
  }
  if (!*out_all) return NULL;
  for (size_t i = 0; i < g->n_inputs; i++) g->inputs[i]->declared = types[i];
  return assay_infer_model(clone);
}

// ---- what follows from sizes --------------------------------------------------------------------

static bool is_constant(const assay_value_t* v) { return v->constant && !v->is_input; }

void assay_mark_of_sizes(const assay_model_t* m, bool* marks) {
  const uint32_t never = ASSAY_OP_RANDOM | ASSAY_OP_CONTROL | ASSAY_OP_QUANTIZES;
  const assay_graph_t* g = m->graph;
  for (size_t i = 0; i < g->n_nodes; i++) {
    const assay_node_t* n = g->nodes[i];
    bool any = false, all = true;
    if (!n->op || n->op->flags & never) continue;
    for (size_t k = 0; k < n->n_inputs; k++) {
      const assay_value_t* v = n->inputs[k];
      if (!v || is_constant(v)) continue;
      const bool marked = v->producer && v->graph == g && marks[v->producer->id];
      any |= marked;
      all &= marked;
    }
    const bool source =
        !*n->domain && (strcmp(n->op_type, "Shape") == 0 || strcmp(n->op_type, "Size") == 0);
    marks[n->id] = source || (any && all);
  }
}
