// Einsum.
#include <ctype.h>
#include <string.h>

#include "base/alloc.h"
#include "ops/bound_parts.h"
#include "ops/families.h"
#include "ops/matmul/matmul.h"

// Letters are labels 0 to 51; the dims that an ellipsis stands for are labels after them, aligned
// at the right, so that equal labels broadcast.
enum { LETTERS = 52, LABELS = LETTERS + ASSAY_MAX_RANK };

// ---- the equation -----------------------------------------------------------------------------

static int letter_label(char letter) {
  if (letter >= 'A' && letter <= 'Z') return letter - 'A';
  if (letter >= 'a' && letter <= 'z') return letter - 'a' + 26;
  return -1;
}

static int ellipsis_label(int n, int i) { return LABELS - n + i; }

static assay_status_t bad_equation(const assay_node_t* node, const char* why) {
  return ASSAY_NODE_ERROR(node, ASSAY_INVALID_ARGUMENT, "equation '%s': %s",
                          assay_attr_str(node, "equation", ""), why);
}

// Reads one term up to ',' or '-' or the end. rank: of its operand, or -1 for the output, whose
// ellipsis stands for `ellipsis` dims. Labels go to out[0..*out_n).
static assay_status_t read_term(const assay_node_t* node, const char** p, int rank, int ellipsis,
                                int* out, int* out_n) {
  int letters = 0, n = 0;
  bool dots = false;
  for (const char* q = *p; *q && *q != ',' && *q != '-'; q++)
    letters += isalpha((unsigned char)*q) != 0;
  for (; **p && **p != ',' && **p != '-'; ++*p) {
    if (**p == ' ') continue;
    if (strncmp(*p, "...", 3) == 0 && !dots) {
      const int hidden = rank < 0 ? ellipsis : rank - letters;
      if (hidden < 0 || n + hidden > LABELS)
        return bad_equation(node, "a term has too many labels");
      for (int i = 0; i < hidden; i++) out[n++] = ellipsis_label(hidden, i);
      dots = true;
      *p += 2;
      continue;
    }
    const int label = letter_label(**p);
    if (label < 0) return bad_equation(node, "expected letters, one '...' a term, ',' and '->'");
    if (n >= LABELS) return bad_equation(node, "a term has too many labels");
    out[n++] = label;
  }
  if (rank >= 0 && n != rank) {
    return ASSAY_NODE_ERROR(node, ASSAY_INVALID_ARGUMENT,
                            "equation '%s' has a term of %d labels for an input of rank %d",
                            assay_attr_str(node, "equation", ""), n, rank);
  }
  *out_n = n;
  return NULL;
}

typedef struct term_labels {
  int n;
  int labels[LABELS];
} term_labels_t;

// The output of an equation without '->': the ellipsis, then the letters that occur once, in order.
static void implicit_output(const int* count, int ellipsis, term_labels_t* out) {
  out->n = 0;
  for (int i = 0; i < ellipsis; i++) out->labels[out->n++] = ellipsis_label(ellipsis, i);
  for (int l = 0; l < LETTERS; l++) {
    if (count[l] == 1) out->labels[out->n++] = l;
  }
}

// Reads the equation for inputs of these ranks. terms has room for n_in.
static assay_status_t read_equation(const assay_node_t* node, size_t n_in, const int* ranks,
                                    term_labels_t* terms, term_labels_t* out) {
  const char* p = assay_attr_str(node, "equation", "");
  int count[LABELS] = {0}, ellipsis = 0;
  for (size_t i = 0; i < n_in; i++) {
    if (i > 0 && *p++ != ',') return bad_equation(node, "fewer terms than inputs");
    ASSAY_TRY(read_term(node, &p, ranks[i], 0, terms[i].labels, &terms[i].n));
    int hidden = 0;
    for (int k = 0; k < terms[i].n; k++) {
      count[terms[i].labels[k]]++;
      hidden += terms[i].labels[k] >= LETTERS;
    }
    if (hidden > ellipsis) ellipsis = hidden;
  }
  if (*p == ',') return bad_equation(node, "more terms than inputs");
  if (*p == 0) {
    implicit_output(count, ellipsis, out);
  } else {
    if (strncmp(p, "->", 2) != 0) return bad_equation(node, "expected '->'");
    p += 2;
    ASSAY_TRY(read_term(node, &p, -1, ellipsis, out->labels, &out->n));
    if (*p) return bad_equation(node, "text after the output");
    int seen[LABELS] = {0};
    for (int k = 0; k < out->n; k++) {
      const int l = out->labels[k];
      if (count[l] == 0 || seen[l]++) {
        return bad_equation(node, "an output label is repeated or in no input");
      }
    }
  }
  if (out->n > ASSAY_MAX_RANK) return bad_equation(node, "the output has too many dimensions");
  return NULL;
}

// ---- inference --------------------------------------------------------------------------------

static assay_status_t einsum_infer(assay_infer_t* c) {
  const size_t n = c->node->n_inputs;
  int* ranks = NULL;
  term_labels_t* terms = NULL;
  ASSAY_TRY(assay_arena_new(c->model->arena, n, sizeof *ranks, &ranks));
  ASSAY_TRY(assay_arena_new(c->model->arena, n, sizeof *terms, &terms));
  for (size_t i = 0; i < n; i++) {
    const assay_shape_t x = assay_infer_shape(c, i);
    if (!x.known) return assay_infer_set(c, 0, ASSAY_TYPE_UNDEFINED, NULL);
    ranks[i] = x.rank;
  }
  term_labels_t out;
  ASSAY_TRY(read_equation(c->node, n, ranks, terms, &out));
  const assay_dim_t* dims[LABELS] = {NULL};
  bool set[LABELS] = {false};
  for (size_t i = 0; i < n; i++) {
    const assay_shape_t x = assay_infer_shape(c, i);
    for (int k = 0; k < x.rank; k++) {
      const int l = terms[i].labels[k];
      int64_t old = 0, now = 0;
      const bool old_known = set[l] && assay_dim_value(dims[l], &old);
      const bool now_known = assay_dim_value(x.dims[k], &now);
      if (old_known && now_known && old != now && old != 1 && now != 1) {
        return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                                "equation '%s': input %zu has %lld along dimension %d, an earlier "
                                "one %lld; expected the same",
                                assay_attr_str(c->node, "equation", ""), i, (long long)now, k,
                                (long long)old);
      }
      // A number other than 1 decides; two dims that may each be 1 leave it open.
      if (!set[l] || (old_known && old == 1) || (now_known && now != 1)) {
        dims[l] = x.dims[k];
      } else if (!(now_known && now == 1) && !(old_known && old != 1) &&
                 !assay_dim_same(dims[l], x.dims[k])) {
        dims[l] = NULL;
      }
      set[l] = true;
    }
  }
  assay_shape_t y = {.known = true, .rank = out.n};
  for (int k = 0; k < out.n; k++) y.dims[k] = dims[out.labels[k]];
  return assay_infer_set(c, 0, ASSAY_TYPE_UNDEFINED, &y);
}

// ---- terms ------------------------------------------------------------------------------------

// A tensor read by labels, each at most once: element = sum of index[label] * stride[label].
typedef struct term {
  bool has[LABELS];
  int64_t stride[LABELS];
  const void* data;       // doubles or int64_t
  assay_tensor_t* owner;  // of intermediate results; NULL: an input's
} term_t;

typedef struct einsum {
  const assay_eval_t* c;
  bool is_float;
  int64_t size[LABELS];  // of each label, after broadcasting
} einsum_t;

// An input as a term: repeated labels walk the diagonal; dims of 1 that are broadcast vanish.
static assay_status_t make_term(einsum_t* e, const assay_tensor_t* x, const term_labels_t* labels,
                                term_t* out) {
  term_t t = {.data = x->data};
  int64_t stride = 1;
  for (int k = x->rank - 1; k >= 0; k--) {
    const int l = labels->labels[k];
    if (x->dims[k] == e->size[l]) {
      t.has[l] = true;
      t.stride[l] += stride;
    } else if (x->dims[k] != 1) {
      return ASSAY_NODE_ERROR(e->c->node, ASSAY_INVALID_ARGUMENT,
                              "equation '%s': an input %s has %lld along dimension %d; expected "
                              "%lld",
                              assay_attr_str(e->c->node, "equation", ""), ASSAY_DIMS_TEXT(x),
                              (long long)x->dims[k], k, (long long)e->size[l]);
    }
    stride *= x->dims[k];
  }
  *out = t;
  return NULL;
}

typedef struct walk {
  int n;
  int64_t size[LABELS], stride[LABELS], index[LABELS];
  int64_t offset;
} walk_t;

static void walk_add(walk_t* w, int64_t size, int64_t stride) {
  if (size == 1) return;
  w->size[w->n] = size;
  w->stride[w->n] = stride;
  w->index[w->n++] = 0;
}

// The next element in row-major order; false, and back at the start, after the last.
static bool walk_next(walk_t* w) {
  for (int i = w->n - 1; i >= 0; i--) {
    w->offset += w->stride[i];
    if (++w->index[i] < w->size[i]) return true;
    w->offset -= w->stride[i] * w->index[i];
    w->index[i] = 0;
  }
  return false;
}

// Writes the term's elements in the order of `labels`, summed over its other labels (in the order
// of label numbers). Labels that it lacks repeat.
static void collect(const einsum_t* e, const term_t* t, int n, const int* labels, void* out) {
  bool kept[LABELS] = {false};
  walk_t outer = {0}, inner = {0};
  int64_t n_out = 1, n_in = 1;
  for (int k = 0; k < n; k++) {
    kept[labels[k]] = true;
    walk_add(&outer, e->size[labels[k]], t->has[labels[k]] ? t->stride[labels[k]] : 0);
    n_out *= e->size[labels[k]];
  }
  for (int l = 0; l < LABELS; l++) {
    if (!t->has[l] || kept[l]) continue;
    walk_add(&inner, e->size[l], t->stride[l]);
    n_in *= e->size[l];
  }
  for (int64_t o = 0; o < n_out; o++) {
    if (e->is_float) {
      const double* from = (const double*)t->data + outer.offset;
      double s = n_in > 0 ? from[0] : 0;
      for (int64_t i = 1; i < n_in; i++) {
        walk_next(&inner);
        s = assay_acc(e->c, s + from[inner.offset]);
      }
      ((double*)out)[o] = s;
    } else {
      const int64_t* from = (const int64_t*)t->data + outer.offset;
      uint64_t s = n_in > 0 ? (uint64_t)from[0] : 0;
      for (int64_t i = 1; i < n_in; i++) {
        walk_next(&inner);
        s += (uint64_t)from[inner.offset];
      }
      ((int64_t*)out)[o] = (int64_t)s;
    }
    if (n_in > 1) walk_next(&inner);  // back to the start
    walk_next(&outer);
  }
}

// ---- contraction of two terms -----------------------------------------------------------------

// Labels by what a product does with them.
typedef struct split {
  int n[4];
  int labels[4][LABELS];
  int64_t size[4];
} split_t;

enum { BATCH, ROWS, COLS, SUMMED };

static bool split_labels(const einsum_t* e, const term_t* a, const term_t* b, const bool* keep,
                         split_t* out) {
  split_t s = {.size = {1, 1, 1, 1}};
  for (int l = 0; l < LABELS; l++) {
    if (!a->has[l] && !b->has[l]) continue;
    int kind = SUMMED;
    if (a->has[l] && b->has[l]) {
      kind = keep[l] ? BATCH : SUMMED;
    } else if (keep[l]) {
      kind = a->has[l] ? ROWS : COLS;
    } else {
      continue;  // of one term alone and not kept: summed while that term is collected
    }
    s.labels[kind][s.n[kind]++] = l;
    if (!assay_mul_i64(s.size[kind], e->size[l], &s.size[kind])) return false;
  }
  *out = s;
  return true;
}

// The term as a contiguous tensor whose labels are those of two kinds after the batch's.
static assay_status_t collect_matrix(const einsum_t* e, const term_t* t, const split_t* s,
                                     int first, int second, assay_tensor_t** out) {
  int n = 0, labels[LABELS];
  for (int k = 0; k < s->n[BATCH]; k++) labels[n++] = s->labels[BATCH][k];
  for (int k = 0; k < s->n[first]; k++) labels[n++] = s->labels[first][k];
  for (int k = 0; k < s->n[second]; k++) labels[n++] = s->labels[second][k];
  const int64_t dims[3] = {s->size[BATCH], s->size[first], s->size[second]};
  assay_tensor_t* x = NULL;
  ASSAY_TRY(assay_tensor_create(e->is_float ? ASSAY_TYPE_DOUBLE : ASSAY_TYPE_INT64, 3, dims, &x));
  collect(e, t, n, labels, x->data);
  *out = x;
  return NULL;
}

static assay_status_t multiply(const einsum_t* e, const split_t* s, const assay_tensor_t* a,
                               const assay_tensor_t* b, assay_tensor_t** out) {
  const int64_t dims[3] = {s->size[BATCH], s->size[ROWS], s->size[COLS]};
  const assay_matmul_form_t plain = {0};
  assay_tensor_t* y = NULL;
  assay_matmul_t p;
  ASSAY_TRY(assay_tensor_create(a->type, 3, dims, &y));
  assay_status_t st = assay_matmul_init(e->c, a, plain, b, plain, &p);
  if (!st) {
    if (e->is_float) {
      st = assay_matmul_f64(e->c, &p, assay_f64(y));
    } else {
      assay_matmul_i64(&p, assay_i64(y));
    }
    assay_matmul_deinit(&p);
  }
  if (st) return assay_tensor_release(y), st;
  *out = y;
  return NULL;
}

// The product of two terms, summed over the labels that `keep` does not ask for.
static assay_status_t contract(const einsum_t* e, const term_t* a, const term_t* b,
                               const bool* keep, term_t* out) {
  split_t s;
  if (!split_labels(e, a, b, keep, &s)) {
    return ASSAY_NODE_ERROR(e->c->node, ASSAY_INVALID_ARGUMENT,
                            "equation '%s': a product of two inputs is too large",
                            assay_attr_str(e->c->node, "equation", ""));
  }
  assay_tensor_t *x = NULL, *y = NULL, *z = NULL;
  assay_status_t st = collect_matrix(e, a, &s, ROWS, SUMMED, &x);
  if (!st) st = collect_matrix(e, b, &s, SUMMED, COLS, &y);
  if (!st) st = multiply(e, &s, x, y, &z);
  assay_tensor_release(x);
  assay_tensor_release(y);
  if (st) return st;
  term_t t = {.data = z->data, .owner = z};
  int64_t stride = 1;
  static const int order[3] = {COLS, ROWS, BATCH};
  for (int g = 0; g < 3; g++) {
    for (int k = s.n[order[g]] - 1; k >= 0; k--) {
      const int l = s.labels[order[g]][k];
      t.has[l] = true;
      t.stride[l] = stride;
      stride *= e->size[l];
    }
  }
  *out = t;
  return NULL;
}

// ---- evaluation -------------------------------------------------------------------------------

// Contracts the terms from left to right and puts the result in the output's order.
static assay_status_t run(const einsum_t* e, size_t n, const term_t* terms,
                          const term_labels_t* out, assay_tensor_t* y) {
  term_t left = terms[0];
  assay_status_t st = NULL;
  for (size_t i = 1; !st && i < n; i++) {
    bool keep[LABELS] = {false};
    for (int k = 0; k < out->n; k++) keep[out->labels[k]] = true;
    for (size_t j = i + 1; j < n; j++) {
      for (int l = 0; l < LABELS; l++) keep[l] = keep[l] || terms[j].has[l];
    }
    term_t next = {0};
    st = contract(e, &left, &terms[i], keep, &next);
    assay_tensor_release(left.owner);
    left = next;
  }
  if (!st) collect(e, &left, out->n, out->labels, y->data);
  assay_tensor_release(left.owner);
  return st;
}

// The size of every label; 1 gives way.
static void find_sizes(const assay_eval_t* c, const term_labels_t* labels, int64_t* size) {
  for (int l = 0; l < LABELS; l++) size[l] = 1;
  for (size_t i = 0; i < c->n_in; i++) {
    for (int k = 0; k < c->in[i]->rank; k++) {
      int64_t* s = &size[labels[i].labels[k]];
      if (*s == 1) *s = c->in[i]->dims[k];
    }
  }
}

// Source: ONNX Einsum 12, 28.
static assay_status_t einsum_eval(assay_eval_t* c) {
  term_labels_t *labels = NULL, out;
  term_t* terms = NULL;
  int* ranks = NULL;
  assay_tensor_t* y = NULL;
  einsum_t e = {.c = c, .is_float = c->in[0]->store == ASSAY_STORE_F64};
  assay_status_t st = assay_new_array(c->n_in, sizeof *labels, &labels);
  if (!st) st = assay_new_array(c->n_in, sizeof *terms, &terms);
  if (!st) st = assay_new_array(c->n_in, sizeof *ranks, &ranks);
  for (size_t i = 0; !st && i < c->n_in; i++) ranks[i] = c->in[i]->rank;
  if (!st) st = read_equation(c->node, c->n_in, ranks, labels, &out);
  if (!st) find_sizes(c, labels, e.size);
  for (size_t i = 0; !st && i < c->n_in; i++) st = make_term(&e, c->in[i], &labels[i], &terms[i]);
  int64_t dims[ASSAY_MAX_RANK];
  for (int k = 0; !st && k < out.n; k++) dims[k] = e.size[out.labels[k]];
  const assay_type_t type = assay_eval_out_type(c, 0, c->in[0]->type);
  if (!st) st = assay_eval_output(c, 0, type, out.n, dims, &y);
  if (!st && y->size > 0) st = run(&e, c->n_in, terms, &out, y);
  if (!st && !e.is_float) {
    for (int64_t i = 0; i < y->size; i++) assay_i64(y)[i] = assay_type_wrap(type, assay_i64(y)[i]);
  }
  assay_free(labels);
  assay_free(terms);
  assay_free(ranks);
  return st;
}

// As of the whole sum written out; a contraction in steps takes fewer.
static void einsum_cost(const assay_eval_t* c, assay_cost_t* out) {
  term_labels_t labels[4], y;
  int ranks[4];
  if (c->n_in > 4) return;
  for (size_t i = 0; i < c->n_in; i++) ranks[i] = c->in[i]->rank;
  assay_status_t st = read_equation(c->node, c->n_in, ranks, labels, &y);
  if (st) {
    assay_status_free(st);
    return;
  }
  int64_t size[LABELS];
  find_sizes(c, labels, size);
  double terms = 1;
  for (int l = 0; l < LABELS; l++) terms *= (double)size[l];
  out->flops = terms * (double)(c->n_in > 1 ? 2 * (c->n_in - 1) : 1);
}

// As one sum of products over all labels that the output lacks: steps round no more often.
static assay_status_t bound_products_of(assay_bound_t* c, const term_labels_t* labels,
                                        const term_labels_t* out) {
  const assay_eval_t reader = assay_bound_as_eval(c);
  bool kept[LABELS] = {false};
  int64_t size[LABELS];
  find_sizes(&reader, labels, size);
  for (int k = 0; k < out->n; k++) kept[out->labels[k]] = true;
  assay_products_t p = {.n_factors = c->n_in, .terms = 1, .extra = (double)c->n_in - 1};
  for (size_t i = 0; i < c->n_in; i++) p.factors[i] = i;
  for (int l = 0; l < LABELS; l++)
    if (!kept[l]) p.terms *= (double)size[l];
  return assay_bound_products(c, &p);
}

static assay_status_t einsum_bound(assay_bound_t* c) {
  term_labels_t labels[4], out;
  int ranks[4];
  if (!assay_bound_is_float(c, 0)) return NULL;
  if (c->n_in > 4)
    return ASSAY_NODE_ERROR(c->node, ASSAY_UNSUPPORTED,
                            "there is no rounding bound for %zu operands; 4 are the most", c->n_in);
  for (size_t i = 0; i < c->n_in; i++) ranks[i] = c->in[i]->rank;
  ASSAY_TRY(read_equation(c->node, c->n_in, ranks, labels, &out));
  return bound_products_of(c, labels, &out);
}

const assay_op_t assay_ops_einsum[] = {{.domain = "",
                                        .name = "Einsum",
                                        .since = 12,
                                        .flags = ASSAY_OP_CONTRACTS,
                                        .infer = einsum_infer,
                                        .eval = einsum_eval,
                                        .bound = einsum_bound,
                                        .cost = einsum_cost},
                                       {0}};
