// Formulas as nodes of a graph.
#include <string.h>

#include "diagnose/formula/program.h"

typedef struct insertion {
  const assay_formula_t* f;
  assay_graph_t* g;
  assay_value_t* x;
  const char* hint;  // of names
  size_t at;
  assay_node_t* last;
  size_t of;  // the output of `last` that holds the result
  assay_value_t* stack[ASSAY_FORMULA_STACK];
  int n;
} insertion_t;

static assay_status_t put_value(insertion_t* s, assay_value_t* v) {
  if (s->n == ASSAY_FORMULA_STACK) return assay_formula_no_room(s->f->program);
  s->stack[s->n++] = v;
  return NULL;
}

// The value of this name in the model as it was read.
static assay_status_t put_named(insertion_t* s, const assay_value_t* v) {
  assay_value_t* found = v ? assay_graph_find(s->g, v->name) : NULL;
  if (!found) return ASSAY_ERROR(ASSAY_NOT_FOUND, "the model has no value '%s'", v ? v->name : "");
  return put_value(s, found);
}

static assay_status_t insert_source(void* user) {
  insertion_t* s = user;
  return s->f->terms.source ? put_named(s, s->f->terms.source) : put_value(s, s->x);
}

static assay_status_t insert_value(void* user, const assay_value_t* v) {
  return put_named(user, v);
}

static assay_status_t insert_constant(void* user, assay_tensor_t* t) {
  insertion_t* s = user;
  assay_tensor_t* packed = NULL;
  assay_value_t* v = NULL;
  ASSAY_TRY(assay_graph_new_value(s->g, s->hint, &v));
  ASSAY_TRY(assay_tensor_pack(t, &packed));
  ASSAY_TRY(assay_graph_set_initializer(v, packed));
  return put_value(s, v);
}

static assay_status_t insert_duplicate(void* user) {
  insertion_t* s = user;
  return s->n ? put_value(s, s->stack[s->n - 1]) : assay_formula_no_room(s->f->program);
}

static assay_status_t copy_attr(assay_arena_t* arena, const assay_attr_t* from, assay_attr_t* to) {
  *to = *from;
  if (from->type != ASSAY_ATTR_INTS) return NULL;
  int64_t* numbers = NULL;
  ASSAY_TRY(assay_arena_new(arena, from->n, sizeof *numbers, &numbers));
  memcpy(numbers, from->u.ints, from->n * sizeof *numbers);
  to->u.ints = numbers;
  return NULL;
}

static assay_status_t insert_none(void* user) { return put_value(user, NULL); }

static assay_status_t insert_made(void* user, const assay_formula_receiver_t* r,
                                  const assay_formula_t* f) {
  insertion_t* s = user;
  const assay_formula_t* before = s->f;
  s->f = f;
  assay_status_t st = assay_formula_run(f, r);
  s->f = before;
  return st;
}

static assay_status_t insert_node(void* user, const assay_formula_operator_t* op, size_t n) {
  insertion_t* s = user;
  assay_value_t* to = NULL;
  assay_node_t* node = NULL;
  const char *type = NULL, *domain = NULL;
  if (n > (size_t)s->n) return assay_formula_no_room(s->f->program);
  ASSAY_TRY(assay_arena_printf(s->g->model->arena, &type, "%s", op->op_type));
  ASSAY_TRY(assay_arena_printf(s->g->model->arena, &domain, "%s", op->domain));
  ASSAY_TRY(assay_graph_new_value(s->g, s->hint, &to));
  ASSAY_TRY(assay_node_create(s->g, domain, type, to->name, n, op->of + 1, op->n_attrs, &node));
  s->n -= (int)n;
  for (size_t i = 0; i < n; i++) node->inputs[i] = s->stack[(size_t)s->n + i];
  for (size_t i = 0; i < op->n_attrs; i++)
    ASSAY_TRY(copy_attr(s->g->model->arena, &op->attrs[i], &node->attrs[i]));
  assay_node_set_output(node, op->of, to);
  ASSAY_TRY(assay_graph_insert(s->g, node, s->at++));
  s->last = node;
  s->of = op->of;
  return put_value(s, to);
}

assay_status_t assay_formula_insert(const assay_formula_t* f, assay_graph_t* g, assay_type_t type,
                                    assay_value_t* in, assay_value_t* result, size_t* at,
                                    assay_value_t** out) {
  insertion_t s = {.f = f, .g = g, .x = in, .at = *at};
  const assay_formula_receiver_t r = {.user = &s,
                                      .type = type,
                                      .opset = assay_model_opset(g->model, ""),
                                      .source = insert_source,
                                      .value = insert_value,
                                      .constant = insert_constant,
                                      .duplicate = insert_duplicate,
                                      .made = insert_made,
                                      .none = insert_none,
                                      .node = insert_node};
  ASSAY_TRY(assay_arena_printf(g->model->arena, &s.hint, "%s_repaired", in->name));
  ASSAY_TRY(assay_formula_run(f, &r));
  if (s.n != 1) return assay_formula_no_room(f->program);
  // A formula of one value makes none of its own.
  if (result && !s.last) ASSAY_TRY(assay_formula_put_node(&r, "Identity", 1, NULL, 0));
  if (result) assay_node_set_output(s.last, s.of, result);
  *out = result ? result : s.stack[0];
  *at = s.at;
  return NULL;
}
