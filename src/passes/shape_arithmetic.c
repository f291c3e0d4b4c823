// Integer values whose elements inference knows become constants: Shape of a static shape, and the
// Gather, Concat, Mul, ... after it. What made them is gone where nobody else reads it.
#include "base/alloc.h"
#include "passes/pass.h"

// The content as a tensor if all of it is numbers; *out stays NULL otherwise.
static assay_status_t numbers_of(const assay_value_t* v, assay_tensor_t** out) {
  const assay_content_t* content = v->content;
  const assay_valtype_t* t = v->type;
  if (!content || !t || t->kind != ASSAY_KIND_TENSOR || content->rank > 1) return NULL;
  if (t->elem != ASSAY_TYPE_INT64 && t->elem != ASSAY_TYPE_INT32) return NULL;
  for (int64_t i = 0; i < content->n; i++) {
    int64_t x;
    if (!assay_dim_value(content->elems[i], &x)) return NULL;
    if (t->elem == ASSAY_TYPE_INT32 && (x < INT32_MIN || x > INT32_MAX)) return NULL;
  }
  ASSAY_TRY(assay_tensor_create(t->elem, content->rank, &content->n, out));
  for (int64_t i = 0; i < content->n; i++)
    (void)assay_dim_value(content->elems[i], &assay_i64(*out)[i]);
  return NULL;
}

static assay_status_t fold_node(assay_pass_context_t* c, assay_node_t* n, bool* dead) {
  if (!n->op || n->op->flags & (ASSAY_OP_RANDOM | ASSAY_OP_CONTROL)) return NULL;
  if (n->n_outputs != 1 || !n->outputs[0] || n->outputs[0]->is_output) return NULL;
  assay_tensor_t* t = NULL;
  ASSAY_TRY(numbers_of(n->outputs[0], &t));
  if (!t) return NULL;
  assay_value_t* v = n->outputs[0];
  const assay_node_t* node = n;
  assay_status_t st =
      assay_pass_record(c, ASSAY_PASS_REMOVED, &node, 1, "'%s' is known before running: %s%s",
                        v->name, assay_type_name(t->type), ASSAY_DIMS_TEXT(t));
  if (st) return assay_tensor_release(t), st;
  assay_node_set_output(n, 0, NULL);
  dead[n->id] = true;
  return assay_pass_set_constant(c, v, t);
}

static assay_status_t run(assay_pass_context_t* c) {
  bool* dead = NULL;
  ASSAY_TRY(assay_new_array((size_t)c->model->n_node_ids, sizeof *dead, &dead));
  assay_status_t st = NULL;
  for (size_t k = 0; !st && k < c->model->n_graphs; k++) {
    assay_graph_t* g = c->model->graphs[k];
    // What a body of Loop or Scan computes may change from run to run: its contents hold for all of
    // them, or are not known.
    for (size_t i = 0; !st && i < g->n_nodes; i++) st = fold_node(c, g->nodes[i], dead);
  }
  if (!st) assay_pass_remove(c, dead, (size_t)c->model->n_node_ids);
  assay_free(dead);
  return st;
}

const assay_pass_t assay_pass_shape_arithmetic = {
    .name = "shape_arithmetic",
    .until_fixpoint = true,
    .after_shapes = true,
    .summary = "computed shapes that are known before running become constants",
    .run = run,
};
