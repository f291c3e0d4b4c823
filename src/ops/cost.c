// What nodes cost, from the types of their values: nothing is run.
#include "ops/cost.h"

#include "base/alloc.h"

enum { SMALL = 4096 };

typedef struct sizes {
  assay_size_of_t* of;
  void* user;
} sizes_t;

// Formulas look into scales, sizes and the like, in their canonical form; never into weights.
static assay_status_t readable(assay_tensor_t* t, assay_tensor_t** out) {
  if (t->kind == ASSAY_KIND_TENSOR && t->size <= SMALL) return assay_tensor_widen(t, out);
  *out = assay_tensor_retain(t);
  return NULL;
}

assay_status_t assay_cost_of_tensors(const assay_node_t* node, size_t n_in,
                                     assay_tensor_t* const* in, size_t n_out,
                                     assay_tensor_t* const* out, assay_cost_t* cost) {
  *cost = (assay_cost_t){0};
  if (!node->op || !node->op->cost) return NULL;
  assay_tensor_t** t = NULL;
  ASSAY_TRY(assay_new_array(n_in, sizeof *t, &t));
  assay_status_t st = NULL;
  for (size_t i = 0; !st && i < n_in; i++)
    if (in[i]) st = readable(in[i], &t[i]);
  if (!st) {
    const assay_eval_t c = {.node = node,
                            .n_in = n_in,
                            .n_out = n_out,
                            .in = t,
                            .out = (assay_tensor_t**)(uintptr_t)out};
    node->op->cost(&c, cost);
  }
  for (size_t i = 0; i < n_in; i++) assay_tensor_release(t[i]);
  assay_free(t);
  return st;
}

// A tensor of the value's shape; its elements are the constant's, or zeros that nobody touches.
// NULL where the value is left out, no tensor, or of a shape that is not known.
static assay_status_t stand_in(const assay_value_t* v, const sizes_t* sizes, assay_tensor_t** out) {
  int64_t dims[ASSAY_MAX_RANK];
  if (!v) return NULL;
  if (v->constant) return readable(v->constant, out);
  const assay_valtype_t* t = v->type;
  if (!t || t->kind != ASSAY_KIND_TENSOR || !t->has_shape || !t->elem) return NULL;
  for (int i = 0; i < t->rank; i++)
    if (!t->dims[i] || !assay_dim_eval(t->dims[i], sizes->of, sizes->user, &dims[i]) || dims[i] < 0)
      return NULL;
  return assay_tensor_create_zero(t->elem, t->rank, dims, out);
}

static assay_status_t stand_ins(assay_value_t* const* values, size_t n, const sizes_t* sizes,
                                bool* known, assay_tensor_t** out) {
  for (size_t i = 0; i < n; i++) {
    ASSAY_TRY(stand_in(values[i], sizes, &out[i]));
    *known &= !values[i] || out[i];
  }
  return NULL;
}

assay_status_t assay_cost_of_node(const assay_node_t* node, assay_size_of_t* size_of, void* user,
                                  bool* known, assay_cost_t* out) {
  *out = (assay_cost_t){0};
  *known = true;
  if (!node->op || !node->op->cost) return NULL;
  const size_t n = node->n_inputs + node->n_outputs;
  const sizes_t sizes = {size_of, user};
  assay_tensor_t** t = NULL;
  ASSAY_TRY(assay_new_array(n, sizeof *t, &t));
  assay_status_t st = stand_ins(node->inputs, node->n_inputs, &sizes, known, t);
  if (!st) st = stand_ins(node->outputs, node->n_outputs, &sizes, known, t + node->n_inputs);
  if (!st && *known)
    st = assay_cost_of_tensors(node, node->n_inputs, t, node->n_outputs, t + node->n_inputs, out);
  for (size_t i = 0; i < n; i++) assay_tensor_release(t[i]);
  assay_free(t);
  return st;
}
