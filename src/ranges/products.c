// Sums of products: middle and half width, each by the operator itself.
//
// With a = A + [-r, r], b = B + [-s, s] elementwise: a b lies in A B + [-1, 1] (|A| s + r (|B| +
// s)), where products are the operator's. What the engine's order of sums and rounding adds: n u
// sum|a||b| (ops/bound.h). Source: S. M. Rump, Fast and parallel interval arithmetic, BIT 39
// (1999), midpoint-radius products.
#include "ranges/products.h"

#include <string.h>

#include "base/alloc.h"

static const double INF = (double)INFINITY;

typedef struct product {
  assay_range_node_t* c;
  const assay_range_product_t* p;
  assay_tensor_t **in, **out;
  const assay_node_t* plain;      // the node
  const assay_node_t* magnitude;  // with the magnitudes of its factors alpha and beta
} product_t;

static assay_status_t part(const product_t* q, size_t i, assay_range_part_t which) {
  assay_range_part_t w = which;
  assay_tensor_t* t = NULL;
  if (i >= q->p->n_in || !q->p->in[i].lo) return NULL;
  ASSAY_TRY(assay_range_take(&q->p->in[i], w, &t));
  q->in[i] = t;
  return NULL;
}

// |middle|, in place.
static void absolute(assay_tensor_t* t) {
  for (int64_t i = 0; t && i < t->size; i++) assay_f64(t)[i] = fabs(assay_f64(t)[i]);
}

static assay_status_t evaluate(product_t* q, const assay_node_t* node, assay_tensor_t** out) {
  const assay_range_product_t* p = q->p;
  for (size_t i = 0; i < p->n_in; i++)
    if (!q->in[i] && i != p->a && i != p->b && i != p->added && p->in[i].lo)
      q->in[i] = assay_tensor_retain(p->in[i].lo);
  assay_status_t st = assay_range_evaluate_as(q->c, node, p->n_in, q->in, 1, q->out);
  assay_range_release_all(p->n_in, q->in);
  if (st) return st;
  // What is made must be written to: a product of its own.
  *out = q->out[0];
  q->out[0] = NULL;
  return NULL;
}

static assay_status_t middle(product_t* q, assay_tensor_t** out) {
  assay_status_t st = part(q, q->p->a, ASSAY_RANGE_MIDDLE);
  if (!st) st = part(q, q->p->b, ASSAY_RANGE_MIDDLE);
  if (!st) st = part(q, q->p->added, ASSAY_RANGE_MIDDLE);
  return st ? st : evaluate(q, q->plain, out);
}

static assay_status_t magnitude(product_t* q, assay_tensor_t** out) {
  assay_status_t st = part(q, q->p->a, ASSAY_RANGE_LARGEST);
  if (!st) st = part(q, q->p->b, ASSAY_RANGE_LARGEST);
  if (!st) st = part(q, q->p->added, ASSAY_RANGE_LARGEST);
  return st ? st : evaluate(q, q->magnitude, out);
}

static void add_to(assay_tensor_t* to, const assay_tensor_t* t) {
  for (int64_t i = 0; i < to->size; i++) assay_f64(to)[i] += assay_f64(t)[i];
}

// Half the width: of a with all of b, and of b with the middle of a.
static assay_status_t width(product_t* q, assay_tensor_t** out) {
  const assay_range_product_t* p = q->p;
  assay_tensor_t *first = NULL, *second = NULL;
  assay_status_t st = part(q, p->a, ASSAY_RANGE_HALF_WIDTH);
  if (!st) st = part(q, p->b, ASSAY_RANGE_LARGEST);
  if (!st) st = part(q, p->added, ASSAY_RANGE_HALF_WIDTH);
  if (!st) st = evaluate(q, q->magnitude, &first);
  if (!st && !assay_range_exact(&p->in[p->b])) {
    st = part(q, p->a, ASSAY_RANGE_MIDDLE);
    if (!st) absolute(q->in[p->a]);
    if (!st) st = part(q, p->b, ASSAY_RANGE_HALF_WIDTH);
    if (!st) st = evaluate(q, q->magnitude, &second);
    if (!st) add_to(first, second);
  }
  assay_tensor_release(second);
  if (st) return assay_tensor_release(first), st;
  *out = first;
  return NULL;
}

static assay_status_t own(assay_tensor_t** t) {
  assay_tensor_t* copy = NULL;
  if (assay_tensor_is_sole(*t)) return NULL;
  ASSAY_TRY(assay_tensor_copy(*t, &copy));
  assay_tensor_release(*t);
  *t = copy;
  return NULL;
}

static assay_status_t make(product_t* q, assay_range_t* out, assay_tensor_t** out_magnitude) {
  assay_tensor_t *y = NULL, *r = NULL, *m = NULL;
  assay_status_t st = middle(q, &y);
  if (!st) st = width(q, &r);
  if (!st) st = magnitude(q, &m);
  if (!st) st = own(&y);
  if (!st) st = own(&r);
  for (int64_t i = 0; !st && i < y->size; i++) {
    const double at = assay_f64(y)[i], by = assay_f64(r)[i];
    assay_f64(y)[i] = at - by;
    assay_f64(r)[i] = at + by;
  }
  if (st) {
    assay_tensor_release(y);
    assay_tensor_release(r);
    assay_tensor_release(m);
    return st;
  }
  *out = (assay_range_t){y, r};
  *out_magnitude = m;
  return NULL;
}

// ---- factors ------------------------------------------------------------------------------------

enum { MAX_ATTRS = 32 };

// The node with |alpha| and |beta|.
static bool with_magnitudes(const assay_node_t* node, assay_node_t* out, assay_attr_t* attrs) {
  if (node->n_attrs > MAX_ATTRS) return false;
  *out = *node;
  for (size_t k = 0; k < node->n_attrs; k++) {
    attrs[k] = node->attrs[k];
    const bool factor = !strcmp(attrs[k].name, "alpha") || !strcmp(attrs[k].name, "beta");
    if (factor && attrs[k].type == ASSAY_ATTR_FLOAT) attrs[k].u.f = fabsf(attrs[k].u.f);
  }
  out->attrs = attrs;
  return true;
}

assay_status_t assay_range_product(assay_range_node_t* c, const assay_range_product_t* p,
                                   assay_range_t* out, assay_tensor_t** out_magnitude) {
  assay_attr_t attrs[MAX_ATTRS];
  assay_node_t magnitudes;
  *out = (assay_range_t){0};
  *out_magnitude = NULL;
  for (size_t i = 0; i < p->n_in; i++)
    if (i == p->a || i == p->b || i == p->added) {
      if (i != p->added && !p->in[i].lo) return NULL;
      if (p->in[i].lo && !(assay_range_magnitude(&p->in[i]) < INF)) {
        assay_range_hazard(c, ASSAY_HAZARD_INVALID, 0, -1, INF, -INF, 0);
        return NULL;
      }
    } else if (p->in[i].lo && !assay_range_exact(&p->in[i])) {
      return NULL;
    }
  assay_node_t plain = *p->node;
  product_t q = {.c = c, .p = p, .plain = &plain, .magnitude = &magnitudes};
  if (!with_magnitudes(p->node, &magnitudes, attrs)) return NULL;
  // Of integers the sums are real numbers: an output without a type is of that of the inputs.
  assay_value_t untyped = {0}, *outputs[1] = {&untyped};
  const assay_valtype_t* t = p->node->outputs[0] ? p->node->outputs[0]->type : NULL;
  if (t && assay_type_is_integer(t->elem)) {
    plain.outputs = magnitudes.outputs = outputs;
    plain.n_outputs = magnitudes.n_outputs = 1;
  }
  assay_status_t st = assay_new_array(p->n_in, sizeof *q.in, &q.in);
  if (!st) st = assay_new_array(1, sizeof *q.out, &q.out);
  if (!st) st = make(&q, out, out_magnitude);
  if (q.in) assay_range_release_all(p->n_in, q.in);
  assay_free(q.in);
  assay_free(q.out);
  return st;
}

// ---- the operators ------------------------------------------------------------------------------

static double size_over(const assay_tensor_t* t, int dim) {
  return dim < t->rank && t->dims[dim] ? (double)t->size / (double)t->dims[dim] : (double)t->size;
}

static double terms_of(const assay_range_node_t* c, const char* op) {
  const assay_tensor_t *a = c->in[0].lo, *b = c->in[1].lo;
  if (!strcmp(op, "Conv")) return size_over(b, 0) + 1;
  if (!strcmp(op, "ConvTranspose")) return size_over(b, 1) + 1;
  if (!strcmp(op, "Gemm"))
    return (double)a->dims[assay_attr_i64(c->node, "transA", 0) ? 0 : a->rank - 1] + 1;
  return a->rank ? (double)a->dims[a->rank - 1] : 1;
}

// Integers go through doubles: they must fit them, and their type.
static assay_status_t to_integers(assay_range_node_t* c, assay_range_t* r) {
  const assay_valtype_t* t = c->node->outputs[0]->type;
  const assay_type_t type = t && t->elem ? t->elem : ASSAY_TYPE_INT64;
  const assay_format_info_t* f = assay_format_info(assay_type_format(type));
  const double min = f->is_signed ? -f->max - 1 : 0;
  for (int64_t i = 0; i < r->lo->size; i++) {
    const double lo = assay_f64(r->lo)[i], hi = assay_f64(r->hi)[i];
    if (lo >= min && hi <= f->max) continue;
    assay_range_hazard(c, ASSAY_HAZARD_WRAP, 0, i, hi > f->max ? hi : lo, hi > f->max ? lo : hi,
                       f->max);
    return assay_range_whole(c, 0);
  }
  assay_tensor_t *lo = NULL, *hi = NULL;
  ASSAY_TRY(assay_tensor_create(type, r->lo->rank, r->lo->dims, &lo));
  assay_status_t st = assay_tensor_create(type, r->lo->rank, r->lo->dims, &hi);
  if (st) return assay_tensor_release(lo), st;
  for (int64_t i = 0; i < lo->size; i++) {
    assay_i64(lo)[i] = (int64_t)floor(assay_f64(r->lo)[i]);
    assay_i64(hi)[i] = (int64_t)ceil(assay_f64(r->hi)[i]);
  }
  assay_range_set(&c->out[0], lo, hi);
  return NULL;
}

static assay_status_t finish(assay_range_node_t* c, assay_range_t* r, const assay_tensor_t* m,
                             double terms, bool integers) {
  assay_range_t y = *r;
  if (!y.lo) return NULL;
  if (integers) {
    assay_status_t st = to_integers(c, &y);
    assay_range_release(&y);
    return st;
  }
  c->out[0] = y;
  *r = (assay_range_t){0};
  assay_range_accumulates(c, m);
  return assay_range_widen(c, 0, 2, terms + 2, m);
}

assay_status_t assay_range_products(assay_range_node_t* c) {
  if (c->n_in < 2 || !c->in[0].lo || !c->in[1].lo) return NULL;
  const bool integers = c->in[0].lo->store == ASSAY_STORE_I64;
  const assay_range_product_t p = {
      .node = c->node, .in = c->in, .n_in = c->n_in, .a = 0, .b = 1, .added = 2};
  assay_range_t r = {0};
  assay_tensor_t* m = NULL;
  ASSAY_TRY(assay_range_product(c, &p, &r, &m));
  assay_status_t st = r.lo ? finish(c, &r, m, terms_of(c, c->node->op_type), integers) : NULL;
  assay_tensor_release(m);
  return st;
}

// As many terms as numbers of the operands meet in one of the result, at most.
assay_status_t assay_range_einsum(assay_range_node_t* c) {
  if (c->n_in != 2 || !c->in[0].lo || !c->in[1].lo || c->in[0].lo->store != ASSAY_STORE_F64)
    return NULL;
  const assay_range_product_t p = {
      .node = c->node, .in = c->in, .n_in = 2, .a = 0, .b = 1, .added = SIZE_MAX};
  assay_range_t r = {0};
  assay_tensor_t* m = NULL;
  ASSAY_TRY(assay_range_product(c, &p, &r, &m));
  assay_status_t st = NULL;
  if (r.lo) {
    const double terms =
        (double)c->in[0].lo->size * (double)c->in[1].lo->size / fmax(1, (double)r.lo->size);
    st = finish(c, &r, m, terms, false);
  }
  assay_tensor_release(m);
  return st;
}
