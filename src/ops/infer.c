// Type and shape inference over a whole model.
#include "ops/infer.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"

enum {
  FOLD_ELEMS = 4096,        // larger tensors are not evaluated during inference
  CONSTANT_ELEMS = 1 << 16  // larger constants are not looked into
};

// State of one inference: constants found on the way, by value id.
typedef struct driver {
  assay_model_t* model;
  assay_tensor_t** folded;  // canonical; NULL: none
  size_t n_folded;
  assay_status_t failed;  // a constant could not be read: what is inferred would depend on memory
  int branches;           // of If, one inside the other, that the node being inferred stands in
} driver_t;

static assay_status_t infer_nodes(driver_t* d, assay_graph_t* g);

// ---- reading inputs -------------------------------------------------------------------------

static assay_value_t* input_of(const assay_infer_t* c, size_t i) {
  return i < c->node->n_inputs ? c->node->inputs[i] : NULL;
}

bool assay_infer_has(const assay_infer_t* c, size_t i) { return input_of(c, i) != NULL; }

bool assay_infer_wants(const assay_infer_t* c, size_t i) {
  return i < c->node->n_outputs && c->node->outputs[i] != NULL;
}

const assay_valtype_t* assay_infer_type(const assay_infer_t* c, size_t i) {
  const assay_value_t* v = input_of(c, i);
  return v ? v->type : NULL;
}

assay_type_t assay_infer_elem(const assay_infer_t* c, size_t i) {
  const assay_valtype_t* t = assay_infer_type(c, i);
  return t && t->kind == ASSAY_KIND_TENSOR ? t->elem : ASSAY_TYPE_UNDEFINED;
}

assay_shape_t assay_infer_shape(const assay_infer_t* c, size_t i) {
  const assay_valtype_t* t = assay_infer_type(c, i);
  assay_shape_t s = {0};
  if (!t || t->kind != ASSAY_KIND_TENSOR || !t->has_shape) return s;
  s.known = true;
  s.rank = t->rank;
  if (s.rank) memcpy(s.dims, t->dims, (size_t)s.rank * sizeof *s.dims);
  return s;
}

const assay_tensor_t* assay_infer_constant(const assay_infer_t* c, size_t i) {
  driver_t* d = c->driver;
  const assay_value_t* v = input_of(c, i);
  if (!v) return NULL;
  if ((size_t)v->id >= d->n_folded) return NULL;
  // An input's constant is only what it is without the caller's.
  if (!d->folded[v->id] && v->constant && !v->is_input && v->constant->kind == ASSAY_KIND_TENSOR &&
      v->constant->size <= CONSTANT_ELEMS) {
    assay_tensor_t* wide = NULL;
    assay_status_t st = assay_tensor_widen(v->constant, &wide);
    if (assay_status_code(st) == ASSAY_NO_MEMORY)
      d->failed = assay_status_join(d->failed, st);
    else
      assay_status_free(st);
    d->folded[v->id] = wide;
  }
  return d->folded[v->id];
}

bool assay_infer_content(const assay_infer_t* c, size_t i, assay_content_t* out) {
  const assay_value_t* v = input_of(c, i);
  if (!v) return false;
  const assay_tensor_t* t = assay_infer_constant(c, i);
  if (!t || t->rank > 1 || (t->store != ASSAY_STORE_I64 && t->store != ASSAY_STORE_F64)) {
    if (!v->content) return false;
    *out = *v->content;
    return true;
  }
  assay_content_t r = {.rank = t->rank, .n = t->size};
  r.elems = assay_arena_alloc(c->model->arena, (size_t)t->size, sizeof *r.elems);
  if (!r.elems) {
    driver_t* d = c->driver;
    d->failed = assay_status_join(d->failed, assay_status_no_memory());
    return false;
  }
  for (int64_t k = 0; k < t->size; k++) {
    if (t->store == ASSAY_STORE_I64) {
      r.elems[k] = assay_dim_const(c->dims, assay_i64(t)[k]);
    } else {
      double x = assay_f64(t)[k];
      if (!(x >= -0x1p53 && x <= 0x1p53) || (double)(int64_t)x != x) return false;
      r.elems[k] = assay_dim_const(c->dims, (int64_t)x);
    }
  }
  *out = r;
  return true;
}

assay_status_t assay_infer_want_rank(const assay_infer_t* c, size_t i, int min, int max) {
  const assay_valtype_t* t = assay_infer_type(c, i);
  if (!t || t->kind != ASSAY_KIND_TENSOR || !t->has_shape || (t->rank >= min && t->rank <= max))
    return NULL;
  const assay_param_t* p = c->node->schema ? assay_schema_input(c->node->schema, i) : NULL;
  char wanted[48];
  if (min == max)
    snprintf(wanted, sizeof wanted, "rank %d", min);
  else if (max >= ASSAY_MAX_RANK)
    snprintf(wanted, sizeof wanted, "rank %d or more", min);
  else
    snprintf(wanted, sizeof wanted, "rank %d to %d", min, max);
  return ASSAY_NODE_ERROR(c->node, ASSAY_CORRUPT, "input %zu%s%s '%s' is %s; %s is expected", i,
                          p ? " " : "", p ? p->name : "", c->node->inputs[i]->name,
                          ASSAY_VALTYPE_TEXT(t), wanted);
}

// ---- setting outputs ------------------------------------------------------------------------

// The more exact of an inferred and a declared dimension.
static const assay_dim_t* better_dim(const assay_dim_t* inferred, const assay_dim_t* declared) {
  int64_t value;
  if (!inferred) return declared;
  if (assay_dim_value(declared, &value) && !assay_dim_value(inferred, &value)) return declared;
  return inferred;
}

static bool fixed_differently(const assay_dim_t* a, const assay_dim_t* b) {
  int64_t x, y;
  return assay_dim_value(a, &x) && assay_dim_value(b, &y) && x != y;
}

static assay_status_t warn_of_shape(assay_model_t* m, const assay_value_t* v,
                                    const assay_valtype_t* inferred,
                                    const assay_valtype_t* declared) {
  return assay_model_warn(m, "output '%s' is declared as %s, but node '%s' makes it %s", v->name,
                          ASSAY_VALTYPE_TEXT(declared), v->producer->label,
                          ASSAY_VALTYPE_TEXT(inferred));
}

// Joins what is inferred with what the file declares; error where their types contradict. Shapes
// that a file lists are hints that exporters and editing tools leave wrong: what is inferred wins,
// with a warning where it is an output's.
static assay_status_t merge_types(assay_model_t* m, const assay_value_t* v,
                                  const assay_valtype_t* inferred, const assay_valtype_t* declared,
                                  const assay_valtype_t** out) {
  *out = inferred;
  if (!declared || inferred == declared) return NULL;
  if (!inferred) return *out = declared, NULL;
  bool same = inferred->kind == declared->kind;
  if (same && inferred->kind == ASSAY_KIND_TENSOR) {
    same = !declared->elem || !inferred->elem || inferred->elem == declared->elem;
    if (same && inferred->has_shape && declared->has_shape) {
      bool shapes_agree = inferred->rank == declared->rank;
      for (int i = 0; shapes_agree && i < inferred->rank; i++)
        shapes_agree = !fixed_differently(inferred->dims[i], declared->dims[i]);
      if (!shapes_agree && v->producer)
        return v->is_output ? warn_of_shape(m, v, inferred, declared) : NULL;
      same = shapes_agree;
    }
  }
  if (!same)
    return ASSAY_ERROR(ASSAY_CORRUPT, "value '%s' is declared as %s, but %s '%s' makes it %s",
                       v->name, ASSAY_VALTYPE_TEXT(declared),
                       v->producer ? "node" : "its initializer",
                       v->producer ? v->producer->label : v->name, ASSAY_VALTYPE_TEXT(inferred));
  if (inferred->kind != ASSAY_KIND_TENSOR) {
    if (!inferred->of || (inferred->of->kind == ASSAY_KIND_TENSOR && !inferred->of->elem))
      *out = declared;
    return NULL;
  }
  assay_type_t elem = inferred->elem ? inferred->elem : declared->elem;
  if (!inferred->has_shape && !declared->has_shape) return assay_valtype_unranked(m, elem, out);
  const assay_valtype_t* shaped = inferred->has_shape ? inferred : declared;
  const assay_dim_t* dims[ASSAY_MAX_RANK];
  for (int i = 0; i < shaped->rank && i < ASSAY_MAX_RANK; i++)
    dims[i] = inferred->has_shape && declared->has_shape
                  ? better_dim(inferred->dims[i], declared->dims[i])
                  : shaped->dims[i];
  return assay_valtype_tensor(m, elem, shaped->rank, dims, out);
}

assay_status_t assay_infer_set_type(assay_infer_t* c, size_t i, const assay_valtype_t* type) {
  if (!assay_infer_wants(c, i)) return NULL;
  assay_value_t* v = c->node->outputs[i];
  return merge_types(c->model, v, type, v->declared, &v->type);
}

// The type that the schema's type variable of output i is bound to by an input; NULL if none.
static const assay_valtype_t* bound_type(const assay_infer_t* c, size_t i) {
  const assay_schema_t* s = c->node->schema;
  const assay_param_t* out = s ? assay_schema_output(s, i) : NULL;
  if (!out || !*out->type || (out->is_variadic && !out->is_homogeneous)) return NULL;
  for (size_t k = 0; k < c->node->n_inputs; k++) {
    const assay_param_t* in = assay_schema_input(s, k);
    const assay_valtype_t* t = assay_infer_type(c, k);
    if (in && t && strcmp(in->type, out->type) == 0 && (!in->is_variadic || in->is_homogeneous))
      return t;
  }
  return NULL;
}

// The only type of a set with one tensor type; UNDEFINED otherwise.
static assay_type_t only_type(const assay_typeset_t* set) {
  if (set->seq || set->optional || set->optional_seq || set->map || set->seq_map) return 0;
  for (int t = 1; t < ASSAY_TYPE_COUNT; t++)
    if (set->tensor == UINT32_C(1) << t) return (assay_type_t)t;
  return ASSAY_TYPE_UNDEFINED;
}

// Whether output i can be nothing but a tensor: Identity of what is not known may be a sequence.
static bool only_tensors(const assay_infer_t* c, size_t i) {
  const assay_param_t* p = c->node->schema ? assay_schema_output(c->node->schema, i) : NULL;
  const assay_typeset_t* t = p ? &p->types : NULL;
  return !t || !(t->seq || t->optional || t->optional_seq || t->map || t->seq_map);
}

assay_status_t assay_infer_set(assay_infer_t* c, size_t i, assay_type_t elem,
                               const assay_shape_t* shape) {
  if (!assay_infer_wants(c, i)) return NULL;
  if (!elem) {
    const assay_valtype_t* t = bound_type(c, i);
    const assay_param_t* p = c->node->schema ? assay_schema_output(c->node->schema, i) : NULL;
    if (t && t->kind == ASSAY_KIND_TENSOR)
      elem = t->elem;
    else if (p)
      elem = only_type(&p->types);
  }
  const assay_valtype_t* type = NULL;
  if (shape && shape->known)
    ASSAY_TRY(assay_valtype_tensor(c->model, elem, shape->rank, shape->dims, &type));
  else if (elem || only_tensors(c, i))
    ASSAY_TRY(assay_valtype_unranked(c->model, elem, &type));
  return assay_infer_set_type(c, i, type);
}

assay_status_t assay_infer_set_content(assay_infer_t* c, size_t i, int rank, int64_t n,
                                       const assay_dim_t* const* elems) {
  if (!assay_infer_wants(c, i) || n < 0 || n > FOLD_ELEMS) return NULL;
  assay_content_t* content = NULL;
  ASSAY_TRY(assay_arena_new(c->model->arena, 1, sizeof *content, &content));
  ASSAY_TRY(assay_arena_new(c->model->arena, (size_t)n, sizeof *content->elems, &content->elems));
  content->rank = rank;
  content->n = n;
  if (n) memcpy(content->elems, elems, (size_t)n * sizeof *elems);
  c->node->outputs[i]->content = content;
  return NULL;
}

// ---- broadcasting ---------------------------------------------------------------------------

static void shape_text(const assay_shape_t* s, char* buffer, size_t capacity) {
  size_t used = 0;
  buffer[0] = 0;
  for (int i = 0; i < s->rank && used < capacity; i++) {
    char dim[96];
    int n = snprintf(buffer + used, capacity - used, "%s%s", i ? ", " : "",
                     assay_dim_text(s->dims[i], dim, sizeof dim));
    if (n > 0) used += (size_t)n;
  }
}

// One dimension of a broadcast; false if the two contradict. Unknown against a size above 1 is
// that size: anything else would be an error when running.
static bool broadcast_dim(assay_dims_t* p, const assay_dim_t* a, const assay_dim_t* b,
                          const assay_dim_t** out) {
  int64_t x = 0, y = 0;
  bool ka = assay_dim_value(a, &x), kb = assay_dim_value(b, &y);
  *out = NULL;
  if (assay_dim_same(a, b)) {
    *out = a;
  } else if (ka && x == 1) {
    *out = b;
  } else if (kb && y == 1) {
    *out = a;
  } else if (ka && kb) {
    return false;
  } else if (ka) {
    *out = a;
  } else if (kb) {
    *out = b;
  } else {
    *out = assay_dim_broadcast(p, a, b);
  }
  return true;
}

assay_status_t assay_infer_broadcast(const assay_infer_t* c, const assay_shape_t* a,
                                     const assay_shape_t* b, assay_shape_t* out) {
  assay_shape_t r = {0};
  if (a->known && b->known) {
    r.known = true;
    r.rank = a->rank > b->rank ? a->rank : b->rank;
    for (int i = 0; i < r.rank; i++) {
      int ia = i - (r.rank - a->rank), ib = i - (r.rank - b->rank);
      if (ia < 0) {
        r.dims[i] = b->dims[ib];
      } else if (ib < 0) {
        r.dims[i] = a->dims[ia];
      } else if (!broadcast_dim(c->dims, a->dims[ia], b->dims[ib], &r.dims[i])) {
        char ta[256], tb[256];
        shape_text(a, ta, sizeof ta);
        shape_text(b, tb, sizeof tb);
        return ASSAY_NODE_ERROR(c->node, ASSAY_CORRUPT,
                                "shapes [%s] and [%s] do not broadcast: dimensions counted from "
                                "the last must be equal or 1",
                                ta, tb);
      }
    }
  }
  *out = r;
  return NULL;
}

const assay_dim_t* assay_shape_size(assay_dims_t* p, const assay_shape_t* s, int from, int to) {
  const assay_dim_t* size = assay_dim_const(p, 1);
  for (int i = from; i < to; i++) size = assay_dim_mul(p, size, s->dims[i]);
  return size;
}

// ---- ready-made functions -------------------------------------------------------------------

assay_status_t assay_infer_same(assay_infer_t* c) {
  assay_shape_t s = assay_infer_shape(c, 0);
  for (size_t i = 0; i < c->node->n_outputs; i++) ASSAY_TRY(assay_infer_set(c, i, 0, &s));
  return NULL;
}

static assay_status_t broadcasts(assay_infer_t* c, assay_type_t elem) {
  assay_shape_t s = assay_infer_shape(c, 0);
  for (size_t i = 1; i < c->node->n_inputs; i++) {
    if (!assay_infer_has(c, i)) continue;
    assay_shape_t t = assay_infer_shape(c, i);
    ASSAY_TRY(assay_infer_broadcast(c, &s, &t, &s));
  }
  return assay_infer_set(c, 0, elem, &s);
}

assay_status_t assay_infer_broadcasts(assay_infer_t* c) {
  return broadcasts(c, ASSAY_TYPE_UNDEFINED);
}

assay_status_t assay_infer_bool_broadcasts(assay_infer_t* c) {
  return broadcasts(c, ASSAY_TYPE_BOOL);
}

// Operators without a function: types by the schema's variables, shapes unknown.
static assay_status_t infer_types_only(assay_infer_t* c) {
  for (size_t i = 0; i < c->node->n_outputs; i++) {
    const assay_valtype_t* t = bound_type(c, i);
    if (t && t->kind != ASSAY_KIND_TENSOR)
      ASSAY_TRY(assay_infer_set_type(c, i, t));
    else
      ASSAY_TRY(assay_infer_set(c, i, ASSAY_TYPE_UNDEFINED, NULL));
  }
  return NULL;
}

// ---- checks against the schema --------------------------------------------------------------

// Whether two types that stand for one variable agree, as far as they are known.
static bool types_agree(const assay_valtype_t* a, const assay_valtype_t* b) {
  if (!a || !b) return true;
  if (a->kind != b->kind) return false;
  if (a->kind == ASSAY_KIND_TENSOR) return !a->elem || !b->elem || a->elem == b->elem;
  return types_agree(a->of, b->of);
}

static assay_status_t check_inputs(const assay_infer_t* c) {
  const assay_node_t* n = c->node;
  const assay_schema_t* s = n->schema;
  if (!s) return NULL;
  for (size_t i = 0; i < n->n_inputs; i++) {
    const assay_param_t* p = assay_schema_input(s, i);
    const assay_valtype_t* t = assay_infer_type(c, i);
    // The checker sees a function's body; a call may leave out what the body needs. Nor has an
    // operator a meaning for one of a variable number of inputs that is not there, though
    // onnx.checker lets it pass.
    if (p && !n->inputs[i] && !p->is_optional)
      return ASSAY_NODE_ERROR(n, ASSAY_CORRUPT, "input %zu (%s) is left out, and is not optional",
                              i, p->name);
    if (!p || !t || (t->kind == ASSAY_KIND_TENSOR && !t->elem)) continue;
    if (!assay_typeset_has(&p->types, t))
      return ASSAY_NODE_ERROR(n, ASSAY_CORRUPT, "input %zu %s '%s' is %s; %s-%d takes %s", i,
                              p->name, n->inputs[i]->name, ASSAY_VALTYPE_TEXT(t), n->op_type,
                              s->since, assay_typeset_text(&p->types, (char[512]){0}, 512));
    if (!*p->type || (p->is_variadic && !p->is_homogeneous)) continue;
    for (size_t k = 0; k < i; k++) {
      const assay_param_t* q = assay_schema_input(s, k);
      const assay_valtype_t* u = assay_infer_type(c, k);
      if (!q || strcmp(q->type, p->type) != 0 || types_agree(t, u)) continue;
      return ASSAY_NODE_ERROR(
          n, ASSAY_CORRUPT,
          "input %zu %s '%s' is %s and input %zu %s '%s' is %s; they must be of "
          "one type",
          k, q->name, n->inputs[k]->name, ASSAY_VALTYPE_TEXT(u), i, p->name, n->inputs[i]->name,
          ASSAY_VALTYPE_TEXT(t));
    }
  }
  return NULL;
}

// ---- constants ------------------------------------------------------------------------------

// Rounds floats to their declared type, in memory of their own: a Cast or Reshape shares its
// input's.
static assay_status_t round_folded(assay_tensor_t** t) {
  assay_tensor_t* r = NULL;
  if ((*t)->store != ASSAY_STORE_F64) return NULL;
  ASSAY_TRY(assay_tensor_create((*t)->type, (*t)->rank, (*t)->dims, &r));
  assay_format_round_n(assay_type_format((*t)->type), assay_f64(*t), assay_f64(r), (size_t)r->size,
                       ASSAY_OVERFLOW_IEEE);
  assay_tensor_release(*t);
  *t = r;
  return NULL;
}

// Evaluates a node whose inputs are all small constants, so that what follows knows its outputs.
static assay_status_t fold(driver_t* d, assay_infer_t* c) {
  const assay_node_t* n = c->node;
  if (!n->op || !n->op->eval || !n->n_inputs || n->op->flags & (ASSAY_OP_RANDOM | ASSAY_OP_CONTROL))
    return NULL;
  assay_tensor_t* in[16];
  assay_tensor_t* out[16] = {0};
  if (n->n_inputs > 16 || n->n_outputs > 16) return NULL;
  for (size_t i = 0; i < n->n_inputs; i++) {
    in[i] = (assay_tensor_t*)(uintptr_t)assay_infer_constant(c, i);
    if (n->inputs[i] && (!in[i] || in[i]->size > FOLD_ELEMS)) return NULL;
  }
  for (size_t i = 0; i < n->n_outputs; i++) {
    const assay_valtype_t* t = n->outputs[i] ? n->outputs[i]->type : NULL;
    if (!n->outputs[i]) continue;
    if (!t || t->kind != ASSAY_KIND_TENSOR || !t->has_shape) return NULL;
    int64_t size = 1, dim;
    for (int k = 0; k < t->rank; k++)
      if (!assay_dim_value(t->dims[k], &dim) || !assay_mul_i64(size, dim, &size) ||
          size > FOLD_ELEMS)
        return NULL;
  }
  assay_eval_t e = {.node = n,
                    .mode = ASSAY_MODE_NATIVE,
                    .n_in = n->n_inputs,
                    .in = in,
                    .n_out = n->n_outputs,
                    .out = out};
  assay_status_t st = n->op->eval(&e);
  for (size_t i = 0; i < n->n_outputs; i++) {
    const assay_value_t* v = n->outputs[i];
    if (!st && v && out[i] && (size_t)v->id < d->n_folded && out[i]->kind == ASSAY_KIND_TENSOR) {
      st = round_folded(&out[i]);
      if (st) {
        assay_tensor_release(out[i]);
        continue;
      }
      assay_tensor_release(d->folded[v->id]);
      d->folded[v->id] = out[i];
    } else {
      assay_tensor_release(out[i]);
    }
  }
  // A node that fails on constants fails whenever it runs: say so now.
  return st;
}

// ---- graphs ---------------------------------------------------------------------------------

static assay_status_t infer_subgraph(assay_infer_t* c, assay_graph_t* graph, size_t n_inputs,
                                     const assay_valtype_t* const* input_types) {
  for (size_t i = 0; i < graph->n_inputs; i++) {
    assay_value_t* v = graph->inputs[i];
    const assay_valtype_t* given = i < n_inputs ? input_types[i] : NULL;
    ASSAY_TRY(assay_status_note(merge_types(c->model, v, given, v->declared, &v->type),
                                "node '%s' (%s)", c->node->label, c->node->op_type));
    v->content = NULL;
  }
  driver_t* d = c->driver;
  const int is_branch = !strcmp(c->node->op_type, "If");
  d->branches += is_branch;
  assay_status_t st = infer_nodes(d, graph);
  d->branches -= is_branch;
  return st;
}

static assay_status_t type_of_tensor(assay_model_t* m, const assay_tensor_t* t,
                                     const assay_valtype_t** out) {
  const assay_dim_t* dims[ASSAY_MAX_RANK];
  for (int i = 0; i < t->rank; i++) dims[i] = assay_dim_const(m->dims, t->dims[i]);
  return assay_valtype_tensor(m, t->type, t->rank, dims, out);
}

// Dimensions that the file leaves open get names, so that equal ones can be seen to be equal.
static assay_status_t type_input(assay_model_t* m, assay_value_t* v) {
  v->type = v->declared;
  const assay_valtype_t* t = v->declared;
  if (!t || t->kind != ASSAY_KIND_TENSOR || !t->has_shape) return NULL;
  bool open = false;
  const assay_dim_t* dims[ASSAY_MAX_RANK];
  for (int i = 0; i < t->rank; i++) {
    char hint[64];
    snprintf(hint, sizeof hint, "%.40s_d%d", v->name, i);
    dims[i] = t->dims[i] ? t->dims[i] : assay_dim_fresh(m->dims, hint);
    open |= !t->dims[i];
  }
  return open ? assay_valtype_tensor(m, t->elem, t->rank, dims, &v->type) : NULL;
}

// A shape that is known and cannot be: nothing needs to run to see that.
static assay_status_t check_size(const assay_node_t* n, const assay_value_t* v) {
  const assay_valtype_t* t = v->type;
  int64_t size = 1, bytes;
  if (!t || t->kind != ASSAY_KIND_TENSOR || !t->has_shape) return NULL;
  int64_t dims[ASSAY_MAX_RANK];
  for (int i = 0; i < t->rank; i++)
    if (!assay_dim_value(t->dims[i], &dims[i])) return NULL;
  bool no_numbers = !t->elem || t->elem == ASSAY_TYPE_STRING;
  if (assay_dims_size(t->rank, dims, &size) &&
      (no_numbers || assay_type_packed_bytes(t->elem, size, &bytes)))
    return NULL;
  return ASSAY_NODE_ERROR(n, ASSAY_INVALID_ARGUMENT,
                          "output '%s' is %s: more elements than any machine holds", v->name,
                          ASSAY_VALTYPE_TEXT(t));
}

// Of an operator that nobody knows: its outputs are as declared, and so are its bodies' inputs.
static assay_status_t infer_bodies(assay_infer_t* c) {
  for (size_t a = 0; a < c->node->n_attrs; a++) {
    const assay_attr_t* attr = &c->node->attrs[a];
    if (attr->type == ASSAY_ATTR_GRAPH) ASSAY_TRY(infer_subgraph(c, attr->u.g, 0, NULL));
    for (size_t k = 0; attr->type == ASSAY_ATTR_GRAPHS && k < attr->n; k++)
      ASSAY_TRY(infer_subgraph(c, attr->u.graphs[k], 0, NULL));
  }
  return NULL;
}

// A body is inferred again for other input types: what was found before does not count.
static void forget_outputs(driver_t* d, const assay_node_t* n) {
  for (size_t i = 0; i < n->n_outputs; i++) {
    assay_value_t* v = n->outputs[i];
    if (!v) continue;
    v->type = NULL;
    v->content = NULL;
    if ((size_t)v->id >= d->n_folded) continue;
    assay_tensor_release(d->folded[v->id]);
    d->folded[v->id] = NULL;
  }
}

static void take_declared(const assay_node_t* n) {
  for (size_t i = 0; i < n->n_outputs; i++)
    if (n->outputs[i] && !n->outputs[i]->type) n->outputs[i]->type = n->outputs[i]->declared;
}

static assay_status_t infer_outputs(driver_t* d, assay_infer_t* c) {
  const assay_node_t* n = c->node;
  if (n->schema || n->op)
    ASSAY_TRY(n->op && n->op->infer ? n->op->infer(c) : infer_types_only(c));
  else
    ASSAY_TRY(infer_bodies(c));
  assay_status_t failed = d->failed;
  d->failed = NULL;
  if (failed) return failed;
  take_declared(n);
  for (size_t i = 0; i < n->n_outputs; i++)
    if (n->outputs[i]) ASSAY_TRY(check_size(n, n->outputs[i]));
  ASSAY_TRY(fold(d, c));
  return assay_dims_status(d->model->dims);
}

// A model may have branches for inputs of other sizes than those it is given (8 and 16 kHz, say),
// which cannot run at these: they are not taken then. So what is wrong with shapes there is a
// warning, and sizes stay open; whoever takes the branch gets the error.
static assay_status_t leave_open(driver_t* d, assay_infer_t* c, assay_status_t why) {
  const assay_code_t code = assay_status_code(why);
  if (!d->branches || (code != ASSAY_INVALID_ARGUMENT && code != ASSAY_CORRUPT)) return why;
  assay_status_t st = assay_model_warn(d->model, "%s; a branch that fails if it is taken",
                                       assay_status_message(why));
  assay_status_free(why);
  forget_outputs(d, c->node);
  if (!st) st = infer_types_only(c);
  if (!st) take_declared(c->node);
  return st;
}

static assay_status_t infer_node(driver_t* d, assay_graph_t* g, assay_node_t* n) {
  assay_infer_t c = {.model = d->model,
                     .graph = g,
                     .node = n,
                     .dims = d->model->dims,
                     .infer_graph = infer_subgraph,
                     .driver = d};
  ASSAY_TRY(check_inputs(&c));
  forget_outputs(d, n);
  assay_status_t st = infer_outputs(d, &c);
  return st ? leave_open(d, &c, st) : NULL;
}

static assay_status_t infer_nodes(driver_t* d, assay_graph_t* g) {
  for (size_t i = 0; i < g->n_initializers; i++) {
    assay_value_t* v = g->initializers[i];
    if (!v->constant || v->constant->kind != ASSAY_KIND_TENSOR) continue;
    ASSAY_TRY(type_of_tensor(d->model, v->constant, &v->type));
    const assay_valtype_t* merged;
    ASSAY_TRY(merge_types(d->model, v, v->type, v->declared, &merged));
  }
  for (size_t i = 0; i < g->n_nodes; i++) ASSAY_TRY(infer_node(d, g, g->nodes[i]));
  return NULL;
}

static assay_status_t driver_init(assay_model_t* model, size_t n_values, driver_t* d) {
  *d = (driver_t){.model = model, .n_folded = n_values};
  return assay_new_array(n_values, sizeof(assay_tensor_t*), &d->folded);
}

// What came of it: `st`, and constants that could not be read.
static assay_status_t driver_end(driver_t* d, assay_status_t st) {
  for (size_t i = 0; i < d->n_folded; i++) assay_tensor_release(d->folded[i]);
  assay_free(d->folded);
  return assay_status_join(st, d->failed);
}

assay_status_t assay_infer_model(assay_model_t* model) {
  driver_t d;
  ASSAY_TRY(driver_init(model, (size_t)model->n_values, &d));
  assay_status_t st = NULL;
  for (size_t i = 0; !st && i < model->graph->n_inputs; i++)
    st = type_input(model, model->graph->inputs[i]);
  if (!st) st = infer_nodes(&d, model->graph);
  return driver_end(&d, st);
}

assay_status_t assay_infer_node(assay_model_t* model, size_t n_values, assay_node_t* node) {
  driver_t d;
  ASSAY_TRY(driver_init(model, n_values, &d));
  return driver_end(&d, infer_node(&d, node->graph, node));
}
