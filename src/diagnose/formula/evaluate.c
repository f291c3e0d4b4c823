// Formulas in truth, on the values that an evaluator has.
#include "base/alloc.h"
#include "diagnose/formula/program.h"
#include "eval/evaluator.h"

typedef struct run {
  const assay_formula_t* f;
  assay_evaluator_t* m;
  const assay_node_t* like;
  assay_tensor_t* x;  // borrowed
  assay_tensor_t* stack[ASSAY_FORMULA_STACK];
  int n;
  bool rounds;
} run_t;

static assay_status_t push(run_t* s, assay_tensor_t* t) {
  if (!t) return ASSAY_ERROR(ASSAY_NOT_FOUND, "a formula's value is not known");
  if (s->n == ASSAY_FORMULA_STACK) return assay_formula_no_room(s->f->program);
  s->stack[s->n++] = assay_tensor_retain(t);
  return NULL;
}

static assay_status_t run_source(void* user) { return push(user, ((run_t*)user)->x); }

static assay_status_t run_value(void* user, const assay_value_t* v) {
  return push(user, v ? assay_evaluator_get(((run_t*)user)->m, v) : NULL);
}

static assay_status_t run_constant(void* user, assay_tensor_t* t) { return push(user, t); }

static assay_status_t run_duplicate(void* user) {
  run_t* s = user;
  return s->n ? push(s, s->stack[s->n - 1]) : assay_formula_no_room(s->f->program);
}

static assay_status_t run_none(void* user) {
  run_t* s = user;
  if (s->n == ASSAY_FORMULA_STACK) return assay_formula_no_room(s->f->program);
  s->stack[s->n++] = NULL;
  return NULL;
}

// Another formula, with a source of its own.
static assay_status_t run_made(void* user, const assay_formula_receiver_t* r,
                               const assay_formula_t* f) {
  run_t* s = user;
  const assay_formula_t* before = s->f;
  assay_tensor_t* x = s->x;
  s->f = f;
  s->x = f->terms.source ? assay_evaluator_get(s->m, f->terms.source) : x;
  assay_status_t st = assay_formula_run(f, r);
  s->f = before;
  s->x = x;
  return st;
}

static assay_status_t run_operator(run_t* s, assay_node_t* node, size_t n, size_t of) {
  assay_tensor_t** made = NULL;
  assay_tensor_t** in = &s->stack[(size_t)s->n - n];
  if (of >= node->n_outputs) return assay_formula_no_room(s->f->program);
  ASSAY_TRY(assay_new_array(node->n_outputs, sizeof *made, &made));
  assay_status_t st = assay_evaluator_node(s->m, node, n, in, node->n_outputs, made);
  for (size_t i = 0; i < n; i++) assay_tensor_release(in[i]);
  s->n -= (int)n;
  if (!st && s->rounds && assay_type_is_float(made[of]->type))
    st = assay_round_replace(&made[of], assay_type_format(made[of]->type));
  if (!st) st = push(s, made[of]);
  for (size_t i = 0; i < node->n_outputs; i++) assay_tensor_release(made[i]);
  assay_free(made);
  return st;
}

static assay_status_t run_node(void* user, const assay_formula_operator_t* op, size_t n) {
  run_t* s = user;
  const int64_t version = assay_model_opset(s->like->graph->model, op->domain);
  assay_node_t node = *s->like;
  assay_value_t* no_values[ASSAY_FORMULA_STACK] = {0};
  assay_attr_t copy[ASSAY_FORMULA_ATTRS];
  if (n > (size_t)s->n || op->n_attrs > ASSAY_FORMULA_ATTRS)
    return assay_formula_no_room(s->f->program);
  for (size_t i = 0; i < op->n_attrs; i++) copy[i] = op->attrs[i];
  node.domain = op->domain;
  node.op_type = op->op_type;
  node.inputs = no_values;
  node.n_inputs = n;
  node.n_outputs = op->n_outputs;
  node.attrs = copy;
  node.n_attrs = op->n_attrs;
  node.op = assay_op_find(op->domain, op->op_type, version);
  node.schema = assay_schema_find(op->domain, op->op_type, version, NULL);
  if (!node.op || !node.schema)
    return ASSAY_ERROR(ASSAY_NOT_FOUND, "there is no operator %s in version %lld", op->op_type,
                       (long long)version);
  return run_operator(s, &node, n, op->of);
}

assay_status_t assay_formula_evaluate(const assay_formula_t* f, assay_evaluator_t* m,
                                      const assay_node_t* like, assay_tensor_t* x,
                                      assay_tensor_t** out) {
  run_t s = {.f = f, .m = m, .like = like, .x = x, .rounds = f->rounds};
  const assay_formula_receiver_t r = {.user = &s,
                                      .type = x ? x->type : ASSAY_TYPE_FLOAT,
                                      .opset = assay_model_opset(like->graph->model, ""),
                                      .source = run_source,
                                      .value = run_value,
                                      .constant = run_constant,
                                      .duplicate = run_duplicate,
                                      .made = run_made,
                                      .none = run_none,
                                      .node = run_node};
  *out = NULL;
  assay_status_t st = assay_formula_run(f, &r);
  if (!st && s.n != 1) st = assay_formula_no_room(f->program);
  if (!st) *out = assay_tensor_retain(s.stack[0]);
  for (int i = 0; i < s.n; i++) assay_tensor_release(s.stack[i]);
  return st;
}
