// Gemm between Reshapes, as exporters write a product over the last dimension of a tensor of three
// and more dimensions: a MatMul of that tensor, so that what is done after it sees the tensor's
// own shape.
//
//   Reshape(Gemm(Reshape(x), W, b), s)  =  MatMul(Reshape(x, s'), W) + b
//
// where s and s' are the same but for the last dimension. The Reshape of x usually goes, too; it
// may be before what quantizes x, which it moves past (quantizer_moves.c).
#include <string.h>

#include "passes/edit.h"

enum { A, W, BIAS };

typedef struct site {
  assay_node_t *gemm, *view;
  assay_value_t *x, *weight, *bias;  // bias NULL: none
  int rank;                          // of the view's output
  int64_t target[ASSAY_MAX_RANK];    // s'
} site_t;

static bool is_reshape(const assay_node_t* n) {
  return assay_is(n, "Reshape") || assay_is(n, "Flatten") || assay_is(n, "Squeeze") ||
         assay_is(n, "Unsqueeze");
}

// Whether a value is what a Reshape makes, or that quantized.
static bool is_view(const assay_value_t* v) {
  const assay_node_t* n = v ? v->producer : NULL;
  while (n && (assay_is(n, "DequantizeLinear") || assay_is(n, "QuantizeLinear")))
    n = n->inputs[0] ? n->inputs[0]->producer : NULL;
  return n && is_reshape(n);
}

// One number for each column, or one for all; the same for all rows.
static bool is_row(const assay_value_t* v, int64_t columns) {
  const assay_tensor_t* t = assay_pass_constant(v);
  if (!t || t->rank > 2 || (t->size != columns && t->size != 1)) return false;
  return !t->rank || t->dims[t->rank - 1] == t->size;
}

static bool read_site(const assay_edit_t* e, assay_node_t* view, site_t* s) {
  assay_node_t* gemm = is_reshape(view) && view->inputs[0] ? view->inputs[0]->producer : NULL;
  if (!gemm || !assay_is(gemm, "Gemm") || gemm->graph != view->graph || gemm->n_inputs < 2 ||
      gemm->outputs[0]->is_output || assay_uses_of(&e->uses, gemm->outputs[0]) != 1)
    return false;
  assay_value_t *a = gemm->inputs[A], *w = gemm->inputs[W], *y = view->outputs[0];
  *s = (site_t){gemm, view, a, w, gemm->n_inputs > BIAS ? gemm->inputs[BIAS] : NULL, 0, {0}};
  if (!is_view(a) || assay_attr_i64(gemm, "transA", 0) || assay_attr_i64(gemm, "transB", 0) ||
      assay_attr_f64(gemm, "alpha", 1) != 1 || (s->bias && assay_attr_f64(gemm, "beta", 1) != 1) ||
      assay_attr_i64(gemm, "broadcast", 0))
    return false;
  const int64_t k = assay_dim_of(w, 0), n = assay_dim_of(w, 1);
  s->rank = assay_rank_of(y);
  if (k < 1 || n < 1 || s->rank < 3 || assay_dim_of(y, s->rank - 1) != n ||
      !assay_reshape_target(y, s->target) || (s->bias && !is_row(s->bias, n)))
    return false;
  s->target[s->rank - 1] = k;
  return true;
}

// The types of the Reshape's output and of the product.
static assay_status_t make_types(assay_edit_t* e, const site_t* s, const assay_valtype_t** in,
                                 const assay_valtype_t** out) {
  const assay_valtype_t* y = s->view->outputs[0]->type;
  const assay_dim_t* dims[ASSAY_MAX_RANK];
  memcpy(dims, y->dims, (size_t)s->rank * sizeof *dims);
  dims[s->rank - 1] = assay_dim_const(e->c->model->dims, s->target[s->rank - 1]);
  ASSAY_TRY(assay_valtype_tensor(e->c->model, y->elem, s->rank, dims, in));
  *out = y;
  return NULL;
}

static assay_status_t rewrite(assay_edit_t* e, const site_t* s) {
  const assay_node_t* nodes[] = {s->view, s->gemm};
  const assay_valtype_t *in = NULL, *out = NULL;
  assay_value_t *shape = NULL, *y = s->view->outputs[0];
  assay_node_t *reshape = NULL, *product = NULL;
  ASSAY_TRY(make_types(e, s, &in, &out));
  ASSAY_TRY(assay_pass_record(e->c, ASSAY_PASS_CHANGED, nodes, 2,
                              "a product over the last dimension: MatMul in the shape of '%s'",
                              y->name));
  ASSAY_TRY(assay_pass_absorb(e->c, s->gemm, s->view));
  assay_edit_kill(e, s->gemm);
  ASSAY_TRY(assay_edit_ints(e, s->view->graph, "shape", s->rank, s->target, &shape));
  assay_value_t* viewed[2] = {s->x, shape};
  ASSAY_TRY(assay_edit_insert(e, s->view, "Reshape", 2, viewed, s->x->name, in, &reshape));
  assay_value_t* factors[2] = {reshape->outputs[0], s->weight};
  if (!s->bias) return assay_edit_become(e, s->view, "MatMul", 2, factors);
  ASSAY_TRY(assay_edit_insert(e, s->view, "MatMul", 2, factors, s->gemm->outputs[0]->name, out,
                              &product));
  assay_value_t* terms[2] = {product->outputs[0], s->bias};
  return assay_edit_become(e, s->view, "Add", 2, terms);
}

static assay_status_t run(assay_pass_context_t* c) {
  assay_edit_t e = {0};
  // MatMul of more than two dimensions, Add with broadcast, Reshape with its shape as input.
  if (assay_model_opset(c->model, "") < 7) return NULL;
  ASSAY_TRY(assay_edit_begin(c, &e));
  assay_status_t st = NULL;
  for (size_t k = 0; !st && k < c->model->n_graphs; k++) {
    for (size_t i = c->model->graphs[k]->n_nodes; !st && i-- > 0;) {
      site_t s;
      if (read_site(&e, c->model->graphs[k]->nodes[i], &s)) st = rewrite(&e, &s);
    }
  }
  return assay_edit_end(&e, st);
}

const assay_pass_t assay_pass_gemm_of_views = {
    .name = "gemm_of_views",
    .summary = "Gemm between Reshapes becomes MatMul in the shape that they make",
    .until_fixpoint = true,
    .run = run,
};
