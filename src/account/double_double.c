// Truth of a layer in twice the precision of float64, for layers whose own format is float64: its
// nodes one after the other by their rows' definitions (ops/dd_array.h), rounded once at the
// end.
#include "account/double_double.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "ops/dd_array.h"

// What the nodes have made so far.
typedef struct made {
  const assay_value_t** values;
  assay_pair_t* pairs;
  size_t n;
} made_t;

static const assay_pair_t* find(const made_t* m, const assay_value_t* v) {
  for (size_t i = 0; v && i < m->n; i++)
    if (m->values[i] == v) return &m->pairs[i];
  return NULL;
}

static assay_status_t evaluate(assay_dd_eval_t* c, assay_tensor_t* const* in, assay_tensor_t** out,
                               assay_tensor_t** low) {
  const assay_double_double_t* f = c->driver;
  return f->evaluate(f->user, c->node, in, out, low);
}

static assay_status_t run_node(const assay_double_double_t* f, const made_t* m,
                               const assay_node_t* node, assay_tensor_t* const* entered,
                               assay_pair_t* out) {
  assay_pair_t* in = NULL;
  assay_status_t st = assay_new_array(node->n_inputs, sizeof *in, &in);
  for (size_t i = 0; !st && i < node->n_inputs; i++) {
    const assay_pair_t* hidden = entered[i] ? NULL : find(m, node->inputs[i]);
    if (entered[i]) st = assay_tensor_widen(entered[i], &in[i].high);
    if (!hidden) continue;
    in[i].high = assay_tensor_retain(hidden->high);
    in[i].low = assay_tensor_retain(hidden->low);
  }
  assay_dd_eval_t c = {.node = node,
                       .n_in = node->n_inputs,
                       .n_out = node->n_outputs,
                       .in = in,
                       .out = out,
                       .evaluate = evaluate,
                       .driver = (void*)f};
  if (!st) st = assay_dd_node(&c);
  for (size_t i = 0; in && i < node->n_inputs; i++) assay_pair_deinit(&in[i]);
  assay_free(in);
  return st;
}

// Takes the rounded result in the place of *t, but for elements that are not finite: there float64
// and the dd arithmetic may leave their ranges at different places.
static assay_status_t replace(const assay_pair_t* dd, assay_tensor_t** t) {
  const assay_tensor_t *a = dd->high, *b = *t;
  if (!a || !b || a->kind != ASSAY_KIND_TENSOR || b->kind != ASSAY_KIND_TENSOR) return NULL;
  if (a->store != ASSAY_STORE_F64 || b->store != a->store || a->rank != b->rank) return NULL;
  if (memcmp(a->dims, b->dims, (size_t)a->rank * sizeof *a->dims) != 0) return NULL;
  assay_tensor_t* y = NULL;
  ASSAY_TRY(assay_tensor_copy(b, &y));
  for (int64_t i = 0; i < y->size; i++) {
    const double x = assay_f64(a)[i];
    if (isfinite(x) && isfinite(assay_f64(y)[i])) assay_f64(y)[i] = x;
  }
  assay_tensor_release(*t);
  *t = y;
  return NULL;
}

assay_status_t assay_double_double_run(const assay_double_double_t* f, assay_tensor_t* const* in,
                                       assay_tensor_t** out) {
  size_t capacity = 0;
  for (size_t k = 0; k < f->n_nodes; k++) capacity += f->nodes[k]->n_outputs;
  made_t m = {0};
  assay_status_t st = assay_new_array(capacity, sizeof *m.values, &m.values);
  if (!st) st = assay_new_array(capacity, sizeof *m.pairs, &m.pairs);
  for (size_t k = 0; !st && k < f->n_nodes; k++) {
    const assay_node_t* node = f->nodes[k];
    st = run_node(f, &m, node, in, &m.pairs[m.n]);
    for (size_t i = 0; !st && i < node->n_outputs; i++) m.values[m.n++] = node->outputs[i];
    in += node->n_inputs;
  }
  const assay_node_t* last = f->nodes[f->n_nodes - 1];
  for (size_t i = 0; !st && i < last->n_outputs; i++)
    st = replace(&m.pairs[m.n - last->n_outputs + i], &out[i]);
  for (size_t i = 0; m.pairs && i < capacity; i++) assay_pair_deinit(&m.pairs[i]);
  assay_free(m.values);
  assay_free(m.pairs);
  return st;
}
