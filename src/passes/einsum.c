// Einsum of two tensors that is a product of matrices, with what puts their dimensions into its
// order:
//
//   bhid,bhjd->bhij  =  MatMul(a, Transpose(b))
//
// Letters are those of the batch (in both tensors and the output), of rows (in the first one and
// the output), of columns (in the second one and the output), and summed ones (in both). A letter
// that is in one tensor alone is summed over before, which is no product. Source: ONNX Einsum-12.
#include <string.h>

#include "passes/edit.h"

enum { BATCH, ROWS, COLUMNS, SUMMED, ROLES };

typedef struct letters {
  int n;
  char at[ASSAY_MAX_RANK];
} letters_t;

typedef struct site {
  assay_node_t* node;
  letters_t in[2], out;
  letters_t of[ROLES];  // in the order of the output; summed ones in that of the first tensor
} site_t;

static int place_of(const letters_t* l, char c) {
  for (int i = 0; i < l->n; i++)
    if (l->at[i] == c) return i;
  return -1;
}

static bool add(letters_t* l, char c) {
  if (l->n == ASSAY_MAX_RANK) return false;
  l->at[l->n++] = c;
  return true;
}

static void append(letters_t* to, const letters_t* more) {
  for (int i = 0; i < more->n && to->n < ASSAY_MAX_RANK; i++) to->at[to->n++] = more->at[i];
}

// ---- reading ------------------------------------------------------------------------------------

// A term up to one of `ends`; false: it has something else than letters, or one of them twice.
static bool read_term(const char** p, const char* ends, letters_t* out) {
  for (; **p && !strchr(ends, **p); ++*p) {
    if (**p == ' ') continue;
    const bool letter = (**p >= 'a' && **p <= 'z') || (**p >= 'A' && **p <= 'Z');
    if (!letter || place_of(out, **p) >= 0 || !add(out, **p)) return false;
  }
  return true;
}

// Without an output: the letters that occur once, by the alphabet, capitals first.
static bool implied_output(site_t* s) {
  for (int i = 'A'; i <= 'z'; i++) {
    const char c = (char)i;
    if ((place_of(&s->in[0], c) >= 0) != (place_of(&s->in[1], c) >= 0) && !add(&s->out, c))
      return false;
  }
  return true;
}

static bool read_equation(site_t* s) {
  const char* p = assay_attr_str(s->node, "equation", "");
  if (!read_term(&p, ",-", &s->in[0]) || *p++ != ',' || !read_term(&p, ",-", &s->in[1]))
    return false;
  if (!*p) return implied_output(s);
  return p[0] == '-' && p[1] == '>' && (p += 2) && read_term(&p, "", &s->out);
}

static bool is_dim_of_both(const site_t* s, char c) {
  const assay_valtype_t *a = s->node->inputs[0]->type, *b = s->node->inputs[1]->type;
  return assay_dim_same(a->dims[place_of(&s->in[0], c)], b->dims[place_of(&s->in[1], c)]);
}

static bool find_roles(site_t* s) {
  for (int i = 0; i < s->out.n; i++) {
    const char c = s->out.at[i];
    const bool a = place_of(&s->in[0], c) >= 0, b = place_of(&s->in[1], c) >= 0;
    if ((!a && !b) || (a && b && !is_dim_of_both(s, c))) return false;
    add(&s->of[a && b ? BATCH : a ? ROWS : COLUMNS], c);
  }
  for (int k = 0; k < 2; k++)
    for (int i = 0; i < s->in[k].n; i++) {
      const char c = s->in[k].at[i];
      if (place_of(&s->out, c) >= 0 || place_of(&s->of[SUMMED], c) >= 0) continue;
      if (place_of(&s->in[!k], c) < 0 || !is_dim_of_both(s, c)) return false;
      add(&s->of[SUMMED], c);
    }
  return s->of[BATCH].n + 2 <= ASSAY_MAX_RANK;
}

static const assay_dim_t* dim_of(const site_t* s, char c) {
  const int k = place_of(&s->in[0], c) < 0, at = place_of(&s->in[k], c);
  return s->node->inputs[k]->type->dims[at];
}

static int64_t number_of(const site_t* s, char c) {
  const int k = place_of(&s->in[0], c) < 0, at = place_of(&s->in[k], c);
  return assay_dim_of(s->node->inputs[k], at);
}

// Where dimensions are joined, all but those of the batch have to be numbers.
static bool can_join(const site_t* s) {
  const bool plain = s->of[ROWS].n == 1 && s->of[COLUMNS].n == 1 && s->of[SUMMED].n == 1;
  int64_t product = 1;
  for (int r = ROWS; !plain && r < ROLES; r++)
    for (int i = 0; i < s->of[r].n; i++) {
      const int64_t n = number_of(s, s->of[r].at[i]);
      if (n < 1 || !assay_mul_i64(product, n, &product)) return false;
    }
  return true;
}

static bool read_site(assay_node_t* n, site_t* s) {
  *s = (site_t){.node = n};
  if (!assay_is(n, "Einsum") || n->n_inputs != 2 || !n->outputs[0] || !read_equation(s))
    return false;
  for (int k = 0; k < 2; k++)
    if (!n->inputs[k] || !assay_type_is_float(assay_elem_of(n->inputs[k])) ||
        assay_rank_of(n->inputs[k]) != s->in[k].n)
      return false;
  if (assay_rank_of(n->outputs[0]) != s->out.n || !find_roles(s)) return false;
  // Products of single elements, as of "ij,ij->ij", would be as many matrices.
  const bool single = !s->of[SUMMED].n && (!s->of[ROWS].n || !s->of[COLUMNS].n);
  return !single && can_join(s);
}

// ---- writing ------------------------------------------------------------------------------------

// The letters' dimensions; those of a role that has not one letter are one dimension.
static assay_status_t type_of(assay_edit_t* e, const site_t* s, const letters_t* first, int a,
                              int b, const assay_valtype_t** out) {
  const assay_dim_t* dims[ASSAY_MAX_RANK];
  const int roles[2] = {a, b};
  int rank = 0;
  for (int i = 0; i < first->n; i++) dims[rank++] = dim_of(s, first->at[i]);
  for (int k = 0; k < 2 && a >= 0; k++) {
    const letters_t* l = &s->of[roles[k]];
    int64_t product = 1;
    for (int i = 0; l->n != 1 && i < l->n; i++) product *= number_of(s, l->at[i]);
    dims[rank++] = l->n == 1 ? dim_of(s, l->at[0]) : assay_dim_const(e->c->model->dims, product);
  }
  return assay_valtype_tensor(e->c->model, assay_elem_of(s->node->inputs[0]), rank, dims, out);
}

// A Reshape's target: open dimensions, all of the batch, stay what they are.
static assay_status_t target_of(assay_edit_t* e, const site_t* s, const assay_valtype_t* t,
                                assay_value_t** out) {
  int64_t target[ASSAY_MAX_RANK];
  for (int i = 0; i < t->rank; i++) {
    const assay_value_t of = {.type = t};
    const int64_t n = assay_dim_of(&of, i);
    target[i] = n < 0 ? 0 : n;
  }
  return assay_edit_ints(e, s->node->graph, "shape", t->rank, target, out);
}

static bool is_in_order(const letters_t* from, const letters_t* to, int64_t* perm) {
  bool same = true;
  for (int i = 0; i < to->n; i++) {
    perm[i] = place_of(from, to->at[i]);
    same &= perm[i] == i;
  }
  return same;
}

// An input as matrices: the batch, then these two roles.
static assay_status_t matrices_of(assay_edit_t* e, const site_t* s, int k, int a, int b,
                                  assay_value_t** out) {
  letters_t order = s->of[BATCH];
  int64_t perm[ASSAY_MAX_RANK];
  const assay_valtype_t* type = NULL;
  assay_node_t* made = NULL;
  append(&order, &s->of[a]);
  append(&order, &s->of[b]);
  *out = s->node->inputs[k];
  const char* name = (*out)->name;
  if (!is_in_order(&s->in[k], &order, perm)) {
    ASSAY_TRY(type_of(e, s, &order, -1, -1, &type));
    ASSAY_TRY(assay_edit_insert(e, s->node, "Transpose", 1, out, name, type, &made));
    ASSAY_TRY(assay_edit_attr_ints(e, made, "perm", (size_t)order.n, perm));
    *out = made->outputs[0];
  }
  if (s->of[a].n == 1 && s->of[b].n == 1) return NULL;
  assay_value_t* in[2] = {*out, NULL};
  ASSAY_TRY(type_of(e, s, &s->of[BATCH], a, b, &type));
  ASSAY_TRY(target_of(e, s, type, &in[1]));
  ASSAY_TRY(assay_edit_insert(e, s->node, "Reshape", 2, in, name, type, &made));
  *out = made->outputs[0];
  return NULL;
}

// The product's dimensions as the output has them.
static assay_status_t write_output(assay_edit_t* e, const site_t* s, assay_value_t** factors) {
  letters_t order = s->of[BATCH];
  int64_t perm[ASSAY_MAX_RANK];
  const assay_valtype_t* type = NULL;
  const char* name = s->node->outputs[0]->name;
  assay_node_t* made = NULL;
  append(&order, &s->of[ROWS]);
  append(&order, &s->of[COLUMNS]);
  const bool moves = !is_in_order(&order, &s->out, perm);
  const bool views = s->of[ROWS].n != 1 || s->of[COLUMNS].n != 1;
  if (!moves && !views) return assay_edit_become(e, s->node, "MatMul", 2, factors);
  ASSAY_TRY(type_of(e, s, &s->of[BATCH], ROWS, COLUMNS, &type));
  ASSAY_TRY(assay_edit_insert(e, s->node, "MatMul", 2, factors, name, type, &made));
  assay_value_t* in[2] = {made->outputs[0], NULL};
  if (views) {
    ASSAY_TRY(type_of(e, s, &order, -1, -1, &type));
    ASSAY_TRY(target_of(e, s, type, &in[1]));
    if (!moves) return assay_edit_become(e, s->node, "Reshape", 2, in);
    ASSAY_TRY(assay_edit_insert(e, s->node, "Reshape", 2, in, name, type, &made));
    in[0] = made->outputs[0];
  }
  ASSAY_TRY(assay_edit_become(e, s->node, "Transpose", 1, in));
  return assay_edit_attr_ints(e, s->node, "perm", (size_t)s->out.n, perm);
}

static assay_status_t visit(assay_edit_t* e, assay_node_t* n) {
  site_t s;
  assay_value_t* factors[2];
  for (size_t i = 0; i < n->n_inputs; i++)
    if (n->inputs[i]) n->inputs[i] = assay_edit_value(e, n->inputs[i]);
  if (!read_site(n, &s)) return NULL;
  const assay_node_t* changed = n;
  ASSAY_TRY(assay_pass_record(e->c, ASSAY_PASS_CHANGED, &changed, 1,
                              "'%s' is a product of matrices: MatMul",
                              assay_attr_str(n, "equation", "")));
  ASSAY_TRY(matrices_of(e, &s, 0, ROWS, SUMMED, &factors[0]));
  ASSAY_TRY(matrices_of(e, &s, 1, SUMMED, COLUMNS, &factors[1]));
  return write_output(e, &s, factors);
}

static assay_status_t run(assay_pass_context_t* c) { return assay_edit_each(c, visit); }

const assay_pass_t assay_pass_einsum = {
    .name = "einsum",
    .summary = "Einsum that is a product of matrices becomes MatMul, with Transposes",
    .run = run,
};
