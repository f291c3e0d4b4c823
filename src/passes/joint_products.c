// Products of one input with several constant matrices, which make Q, K and V of it, become one
// product with all of their columns, and a Split. Their biases are added at once, too. Layers of
// attention read what the Split gives where it lies; other layers would have to copy it, so that
// their products stay.
//
// Nothing is rounded: every column is what it was.
#include <string.h>

#include "base/alloc.h"
#include "passes/edit.h"
#include "passes/float_types.h"

enum { X, W, MAX_TERMS = 8, MAX_ELEMS = 1 << 26 };

typedef struct term {
  assay_node_t *product, *add;  // add NULL: no bias
  assay_tensor_t *weight, *bias;
  int64_t columns;
} term_t;

typedef struct site {
  term_t terms[MAX_TERMS];
  size_t n;
  int64_t rows, columns;
  bool biased;
} site_t;

static assay_node_t* only_reader(const assay_edit_t* e, const assay_value_t* v) {
  if (v->is_output || v->id >= e->uses.n_values || e->uses.n_reads[v->id] != 1) return NULL;
  assay_node_t* n = e->uses.readers[e->uses.first[v->id]];
  return assay_edit_is_dead(e, n) ? NULL : n;
}

// The Add of one number for each column, if it is all that reads the product.
static void read_bias(const assay_edit_t* e, term_t* t) {
  const assay_value_t* y = t->product->outputs[0];
  assay_node_t* add = only_reader(e, y);
  if (!add || !assay_is(add, "Add") || add->n_inputs != 2 || add->graph != t->product->graph)
    return;
  assay_tensor_t* b = assay_pass_constant(add->inputs[add->inputs[0] == y ? 1 : 0]);
  if (!b || b->rank < 1 || b->rank > assay_rank_of(y) || b->size != t->columns ||
      b->dims[b->rank - 1] != t->columns || b->type != t->weight->type)
    return;
  t->add = add;
  t->bias = b;
}

// [..., heads * size] as [..., heads, size].
static bool takes_heads_apart(const assay_node_t* n) {
  const assay_value_t *x = n->inputs[0], *y = n->outputs[0];
  const int rank = assay_rank_of(x);
  if (!assay_is(n, "Reshape") || rank < 1 || assay_rank_of(y) != rank + 1) return false;
  for (int i = 0; i + 1 < rank; i++)
    if (!assay_dim_same(x->type->dims[i], y->type->dims[i])) return false;
  return true;
}

static bool is_scale(const assay_node_t* n, const assay_value_t* v) {
  if ((!assay_is(n, "Mul") && !assay_is(n, "Div")) || n->n_inputs != 2) return false;
  const assay_tensor_t* k = assay_pass_constant(n->inputs[n->inputs[0] == v ? 1 : 0]);
  return k && k->size == 1;
}

// Whether a value is an operand of attention: taken apart by heads, scaled and transposed, and
// multiplied with another value that is no constant.
static bool is_by_heads(const assay_edit_t* e, const assay_value_t* v) {
  bool apart = false;
  for (;;) {
    const assay_node_t* n = only_reader(e, v);
    if (!n || n->n_outputs != 1) return false;
    if (apart && assay_is(n, "MatMul"))
      return !assay_pass_constant(n->inputs[n->inputs[0] == v ? 1 : 0]);
    const bool heads = !apart && takes_heads_apart(n);
    if (!heads && !is_scale(n, v) && !(apart && assay_is(n, "Transpose"))) return false;
    apart |= heads;
    v = n->outputs[0];
  }
}

static const assay_value_t* result_of(const term_t* t) {
  return t->add ? t->add->outputs[0] : t->product->outputs[0];
}

static bool read_term(const assay_edit_t* e, assay_node_t* n, const assay_value_t* x, term_t* t) {
  assay_tensor_t* w = assay_is(n, "MatMul") && n->n_inputs == 2 && n->inputs[X] == x
                          ? assay_pass_constant(n->inputs[W])
                          : NULL;
  if (!w || w->rank != 2 || w->size < 1 || assay_edit_is_dead(e, n) ||
      assay_uses_of(&e->uses, n->inputs[W]) != 1 ||
      (w->type != ASSAY_TYPE_FLOAT && w->type != ASSAY_TYPE_DOUBLE))
    return false;
  *t = (term_t){.product = n, .weight = w, .columns = w->dims[1]};
  read_bias(e, t);
  return is_by_heads(e, result_of(t));
}

// Whether two terms can be columns of one product.
static bool fits(const assay_edit_t* e, const term_t* a, const term_t* b) {
  return a->weight->dims[0] == b->weight->dims[0] && a->weight->type == b->weight->type &&
         !a->add == !b->add && assay_pass_same_format(e->c, a->product, b->product) &&
         (!a->add || assay_pass_same_format(e->c, a->add, b->add));
}

static void add_term(site_t* s, const term_t* t) {
  s->terms[s->n++] = *t;
  s->columns += t->columns;
}

// A product and those of its input that fit it.
static bool read_site(const assay_edit_t* e, assay_node_t* first, site_t* s) {
  term_t t;
  const assay_value_t* x = first->n_inputs ? first->inputs[X] : NULL;
  if (!x || x->id >= e->uses.n_values || assay_rank_of(x) < 2 || !read_term(e, first, x, &t))
    return false;
  *s = (site_t){.rows = t.weight->dims[0], .biased = t.add != NULL};
  add_term(s, &t);
  for (int i = e->uses.first[x->id]; i < e->uses.first[x->id + 1] && s->n < MAX_TERMS; i++) {
    assay_node_t* n = e->uses.readers[i];
    if (n != first && n->graph == first->graph && read_term(e, n, x, &t) &&
        fits(e, &s->terms[0], &t))
      add_term(s, &t);
  }
  int64_t size;
  return s->n >= 2 && assay_mul_i64(s->rows, s->columns, &size) && size <= MAX_ELEMS;
}

// Rows of all of them side by side: matrices, or biases as one row.
static assay_status_t side_by_side(const site_t* s, bool biases, assay_tensor_t** out) {
  const int64_t dims[2] = {s->rows, s->columns}, rows = biases ? 1 : s->rows;
  int64_t at = 0;
  ASSAY_TRY(
      assay_tensor_create(s->terms[0].weight->type, biases ? 1 : 2, biases ? dims + 1 : dims, out));
  assay_status_t st = NULL;
  for (size_t i = 0; !st && i < s->n; i++) {
    const term_t* t = &s->terms[i];
    assay_tensor_t* wide = NULL;
    st = assay_tensor_widen(biases ? t->bias : t->weight, &wide);
    for (int64_t r = 0; !st && r < rows; r++)
      memcpy(assay_f64(*out) + r * s->columns + at, assay_f64(wide) + r * t->columns,
             (size_t)t->columns * sizeof(double));
    at += t->columns;
    assay_tensor_release(wide);
  }
  if (st) assay_tensor_release(*out), *out = NULL;
  return st;
}

static assay_status_t constant(assay_edit_t* e, const site_t* s, bool biases, assay_value_t** out) {
  assay_tensor_t* t = NULL;
  ASSAY_TRY(side_by_side(s, biases, &t));
  return assay_edit_constant(e, s->terms[0].product->graph, biases ? "joint_bias" : "joint_weight",
                             t, out);
}

static assay_status_t record(assay_edit_t* e, const site_t* s) {
  const assay_node_t* nodes[2 * MAX_TERMS];
  size_t n = 0;
  for (size_t i = 0; i < s->n; i++) {
    nodes[n++] = s->terms[i].product;
    if (s->biased) nodes[n++] = s->terms[i].add;
  }
  return assay_pass_record(e->c, ASSAY_PASS_CHANGED, nodes, n,
                           "products of '%s': one product, and a Split",
                           s->terms[0].product->inputs[X]->name);
}

// A node that was made stands for what this one does, and for nothing else.
static void stand_for(assay_edit_t* e, const assay_node_t* made, const assay_node_t* like) {
  e->c->rewrite->origins[made->id] = assay_rewrite_origins(e->c->rewrite, like);
}

// The product stands for the products and is called as the first one, the sum for the sums and as
// the last one.
static assay_status_t name_product(assay_edit_t* e, const site_t* s, assay_node_t* product) {
  product->label = s->terms[0].product->label;
  for (size_t i = 1; i < s->n; i++)
    ASSAY_TRY(assay_pass_absorb(e->c, s->terms[i].product, product));
  return NULL;
}

static assay_status_t name_sum(assay_edit_t* e, const site_t* s, assay_node_t* sum) {
  sum->label = s->terms[s->n - 1].add->label;
  stand_for(e, sum, s->terms[0].add);
  for (size_t i = 1; i < s->n; i++) ASSAY_TRY(assay_pass_absorb(e->c, s->terms[i].add, sum));
  return NULL;
}

// The type of the joint product.
static assay_status_t joint_type(assay_edit_t* e, const site_t* s, const assay_valtype_t** out) {
  const assay_valtype_t* y = s->terms[0].product->outputs[0]->type;
  const assay_dim_t* dims[ASSAY_MAX_RANK];
  memcpy(dims, y->dims, (size_t)y->rank * sizeof *dims);
  dims[y->rank - 1] = assay_dim_const(e->c->model->dims, s->columns);
  return assay_valtype_tensor(e->c->model, y->elem, y->rank, dims, out);
}

static assay_status_t split(assay_edit_t* e, const site_t* s, assay_value_t* y) {
  assay_node_t *n = NULL, *first = s->terms[0].product;
  assay_value_t* in[2] = {y, NULL};
  int64_t sizes[MAX_TERMS];
  const bool by_input = assay_model_opset(e->c->model, "") >= 13;
  for (size_t i = 0; i < s->n; i++) sizes[i] = s->terms[i].columns;
  if (by_input) ASSAY_TRY(assay_edit_ints(e, first->graph, "split", (int64_t)s->n, sizes, &in[1]));
  ASSAY_TRY(assay_edit_insert_bare(e, first, "Split", by_input ? 2 : 1, in, s->n, &n));
  // It goes with what reads it, in whose format it hands on what was made.
  stand_for(e, n, only_reader(e, result_of(&s->terms[0])));
  ASSAY_TRY(assay_edit_attr_i(e, n, "axis", assay_rank_of(y) - 1));
  if (!by_input) ASSAY_TRY(assay_edit_attr_ints(e, n, "split", s->n, sizes));
  for (size_t i = 0; i < s->n; i++) {
    assay_node_t* last = s->biased ? s->terms[i].add : s->terms[i].product;
    assay_value_t* out = last->outputs[0];
    assay_edit_kill(e, s->terms[i].product);
    if (s->biased) assay_edit_kill(e, last);
    assay_node_set_output(last, 0, NULL);
    assay_node_set_output(n, i, out);
  }
  return NULL;
}

static assay_status_t rewrite(assay_edit_t* e, const site_t* s) {
  assay_node_t *first = s->terms[0].product, *product = NULL, *sum = NULL;
  assay_value_t* in[2] = {first->inputs[X], NULL};
  const assay_valtype_t* type = NULL;
  ASSAY_TRY(joint_type(e, s, &type));
  ASSAY_TRY(constant(e, s, false, &in[1]));
  ASSAY_TRY(record(e, s));
  ASSAY_TRY(assay_edit_insert(e, first, "MatMul", 2, in, "joint_product", type, &product));
  ASSAY_TRY(name_product(e, s, product));
  if (!s->biased) return split(e, s, product->outputs[0]);
  in[0] = product->outputs[0];
  ASSAY_TRY(constant(e, s, true, &in[1]));
  ASSAY_TRY(assay_edit_insert(e, first, "Add", 2, in, "joint_sum", type, &sum));
  ASSAY_TRY(name_sum(e, s, sum));
  return split(e, s, sum->outputs[0]);
}

static assay_status_t run(assay_pass_context_t* c) {
  assay_edit_t e = {0};
  if (assay_model_opset(c->model, "") < 7) return NULL;  // Add broadcasts by an attribute
  ASSAY_TRY(assay_edit_begin(c, &e));
  assay_status_t st = NULL;
  for (size_t k = 0; !st && k < c->model->n_graphs; k++) {
    for (size_t i = 0; !st && i < c->model->graphs[k]->n_nodes; i++) {
      site_t s;
      assay_node_t* n = c->model->graphs[k]->nodes[i];
      if (!assay_edit_is_dead(&e, n) && read_site(&e, n, &s)) st = rewrite(&e, &s);
    }
  }
  return assay_edit_end(&e, st);
}

const assay_pass_t assay_pass_joint_products = {
    .name = "joint_products",
    .summary = "products that make Q, K and V of one input become one product and a Split",
    .until_fixpoint = true,
    .run = run,
};
