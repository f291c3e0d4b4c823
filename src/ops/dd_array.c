// Arrays of numbers of twice the precision of double, with NumPy's broadcasting: what operators'
// definitions are written in, where truth must be finer than float64.
#include "ops/dd_array.h"

#include <string.h>

#include "base/alloc.h"
#include "ops/math/pointwise.h"

void assay_pair_deinit(assay_pair_t* p) {
  assay_tensor_release(p->high);
  assay_tensor_release(p->low);
  *p = (assay_pair_t){0};
}

static bool is_float(const assay_tensor_t* t) {
  return t && t->kind == ASSAY_KIND_TENSOR && t->store == ASSAY_STORE_F64;
}

// ---- what is kept until the node is done -------------------------------------------------------

static void fail(assay_dd_eval_t* c, assay_status_t st) {
  if (c->status)
    assay_status_free(st);
  else
    c->status = st;
}

static assay_pair_t* keep(assay_dd_eval_t* c) {
  assay_pair_t* p = NULL;
  if (c->status) return NULL;
  assay_status_t st = ASSAY_NEW(&p);
  if (!st) st = assay_grow(&c->made, &c->scratch_made, c->n_made + 1, sizeof *c->made);
  if (st) return assay_free(p), fail(c, st), NULL;
  c->made[c->n_made++] = p;
  return p;
}

static void forget_all(assay_dd_eval_t* c) {
  for (size_t i = 0; i < c->n_made; i++) {
    assay_pair_deinit(c->made[i]);
    assay_free(c->made[i]);
  }
  assay_free(c->made);
  c->made = NULL;
  c->n_made = c->scratch_made = 0;
}

// An array with both parts, elements not set.
static const assay_pair_t* make(assay_dd_eval_t* c, int rank, const int64_t* dims) {
  assay_pair_t* p = keep(c);
  if (!p) return NULL;
  assay_status_t st = assay_tensor_create(ASSAY_TYPE_DOUBLE, rank, dims, &p->high);
  if (!st) st = assay_tensor_create(ASSAY_TYPE_DOUBLE, rank, dims, &p->low);
  if (st) fail(c, st);
  return st ? NULL : p;
}

bool assay_dd_has(const assay_dd_eval_t* c, size_t i) { return i < c->n_in && c->in[i].high; }

const assay_pair_t* assay_dd_in(const assay_dd_eval_t* c, size_t i) {
  return assay_dd_has(c, i) ? &c->in[i] : NULL;
}

const assay_pair_t* assay_dd_number(assay_dd_eval_t* c, assay_dd_t x) {
  const assay_pair_t* p = make(c, 0, NULL);
  if (!p) return NULL;
  *assay_f64(p->high) = x.high;
  *assay_f64(p->low) = x.low;
  return p;
}

const assay_pair_t* assay_dd_attr(assay_dd_eval_t* c, const char* name, double otherwise) {
  return assay_dd_number(c, assay_dd(assay_attr_f64(c->node, name, otherwise)));
}

void assay_dd_put(assay_dd_eval_t* c, size_t i, const assay_pair_t* x) {
  if (!x || c->status || i >= c->n_out || !c->node->outputs[i]) return;
  const assay_valtype_t* type = c->node->outputs[i]->type;
  const bool known = type && type->kind == ASSAY_KIND_TENSOR && assay_type_is_float(type->elem);
  const assay_type_t elem = known ? type->elem : c->in[0].high->type;
  assay_pair_t made = {0};
  assay_status_t st = assay_tensor_retype(x->high, elem, &made.high);
  if (!st && x->low) st = assay_tensor_retype(x->low, elem, &made.low);
  if (st) {
    assay_pair_deinit(&made);
    fail(c, st);
    return;
  }
  assay_pair_deinit(&c->out[i]);
  c->out[i] = made;
}

void assay_dd_unsupported(assay_dd_eval_t* c, const char* what) {
  if (!c->status)
    fail(c, ASSAY_NODE_ERROR(c->node, ASSAY_UNSUPPORTED, "%s in twice the precision of float64",
                             what));
}

const assay_pair_t* assay_dd_reshape(assay_dd_eval_t* c, const assay_pair_t* x, int rank,
                                     const int64_t* dims) {
  assay_pair_t* p = x ? keep(c) : NULL;
  if (!p) return NULL;
  assay_status_t st = assay_tensor_view(x->high, rank, dims, &p->high);
  if (!st && x->low) st = assay_tensor_view(x->low, rank, dims, &p->low);
  if (st) fail(c, st);
  return st ? NULL : p;
}

const assay_pair_t* assay_dd_along(assay_dd_eval_t* c, const assay_pair_t* x, int rank, int axis) {
  int64_t dims[ASSAY_MAX_RANK];
  if (!x) return NULL;
  for (int i = 0; i < rank; i++) dims[i] = i == axis ? x->high->size : 1;
  return assay_dd_reshape(c, x, rank, dims);
}

bool assay_dd_axes(assay_dd_eval_t* c, const char* name, int64_t otherwise, int end, bool* axes) {
  const int rank = c->in[0].high->rank;
  int64_t axis = assay_attr_i64(c->node, name, otherwise);
  if (axis < 0) axis += rank;
  if (axis < 0 || axis > rank) return assay_dd_unsupported(c, "this axis is not known"), false;
  for (int i = 0; i < rank; i++) axes[i] = i == axis || (i > axis && i < end);
  return true;
}

// ---- element by element ------------------------------------------------------------------------

typedef struct map {
  const assay_pair_t *x[3], *y;
  assay_dd_fn1_t* f1;  // one of these
  assay_dd_fn2_t* f2;
  assay_dd_fn3_t* f3;
} map_t;

static inline assay_dd_t element(const assay_pair_t* p, int64_t i) {
  if (p->high->store == ASSAY_STORE_F64)
    return (assay_dd_t){assay_f64(p->high)[i], p->low ? assay_f64(p->low)[i] : 0};
  const double x = assay_elem_f64(p->high, i);
  const bool exact = fabs(x) <= 0x1p53 || p->high->type == ASSAY_TYPE_UINT64 || fabs(x) >= 0x1p63;
  return (assay_dd_t){x, exact ? 0 : (double)(assay_i64(p->high)[i] - (int64_t)x)};
}

static inline void set(const assay_pair_t* p, int64_t i, assay_dd_t x) {
  assay_f64(p->high)[i] = x.high;
  assay_f64(p->low)[i] = x.low;
}

static void map_span(const void* user, int64_t n, const int64_t* at, const int64_t* step) {
  const map_t* m = user;
  for (int64_t i = 0; i < n; i++) {
    assay_dd_t x[3];
    for (int k = 0; k < 3 && m->x[k]; k++) x[k] = element(m->x[k], at[k + 1] + i * step[k + 1]);
    set(m->y, at[0] + i * step[0],
        m->f1   ? m->f1(x[0])
        : m->f2 ? m->f2(x[0], x[1])
                : m->f3(x[0], x[1], x[2]));
  }
}

static bool fit(const assay_tensor_t* t, int rank, int64_t* dims) {
  for (int i = 0; i < t->rank; i++) {
    int64_t* d = &dims[rank - t->rank + i];
    if (t->dims[i] == 1 || t->dims[i] == *d) continue;
    if (*d != 1) return false;
    *d = t->dims[i];
  }
  return true;
}

static const assay_pair_t* map(assay_dd_eval_t* c, int n, map_t m) {
  int rank = 0;
  int64_t dims[ASSAY_MAX_RANK];
  for (int k = 0; k < n; k++) {
    if (!m.x[k] || c->status) return NULL;
    if (m.x[k]->high->kind != ASSAY_KIND_TENSOR || m.x[k]->high->store > ASSAY_STORE_I64)
      return assay_dd_unsupported(c, "only real numbers are known"), NULL;
    if (m.x[k]->high->rank > rank) rank = m.x[k]->high->rank;
  }
  for (int i = 0; i < rank; i++) dims[i] = 1;
  for (int k = 0; k < n; k++)
    if (!fit(m.x[k]->high, rank, dims))
      return assay_dd_unsupported(c, "shapes do not broadcast"), NULL;
  m.y = make(c, rank, dims);
  if (!m.y) return NULL;
  assay_nest_t nest;
  assay_nest_init(&nest, rank, dims);
  assay_nest_add_tensor(&nest, m.y->high);
  for (int k = 0; k < n; k++) assay_nest_add_tensor(&nest, m.x[k]->high);
  assay_nest_run(&nest, 20, map_span, &m);
  return m.y;
}

const assay_pair_t* assay_dd_map1(assay_dd_eval_t* c, assay_dd_fn1_t* f, const assay_pair_t* x) {
  return map(c, 1, (map_t){.x = {x}, .f1 = f});
}
const assay_pair_t* assay_dd_map2(assay_dd_eval_t* c, assay_dd_fn2_t* f, const assay_pair_t* x,
                                  const assay_pair_t* y) {
  return map(c, 2, (map_t){.x = {x, y}, .f2 = f});
}
const assay_pair_t* assay_dd_map3(assay_dd_eval_t* c, assay_dd_fn3_t* f, const assay_pair_t* x,
                                  const assay_pair_t* y, const assay_pair_t* z) {
  return map(c, 3, (map_t){.x = {x, y, z}, .f3 = f});
}

// ---- along axes --------------------------------------------------------------------------------

static void fold_span(const void* user, int64_t n, const int64_t* at, const int64_t* step) {
  const map_t* m = user;
  for (int64_t i = 0; i < n; i++) {
    const int64_t to = at[0] + i * step[0];
    set(m->y, to, m->f2(element(m->y, to), element(m->x[0], at[1] + i * step[1])));
  }
}

const assay_pair_t* assay_dd_fold(assay_dd_eval_t* c, assay_dd_fn2_t* f, double start,
                                  const assay_pair_t* x, const bool* axes) {
  int64_t dims[ASSAY_MAX_RANK];
  if (!x || c->status) return NULL;
  const assay_tensor_t* t = x->high;
  for (int i = 0; i < t->rank; i++) dims[i] = axes[i] ? 1 : t->dims[i];
  const map_t m = {.x = {x}, .y = make(c, t->rank, dims), .f2 = f};
  if (!m.y) return NULL;
  for (int64_t i = 0; i < m.y->high->size; i++) set(m.y, i, assay_dd(start));
  assay_nest_t nest;
  assay_nest_init(&nest, t->rank, t->dims);
  assay_nest_add_tensor(&nest, m.y->high);
  assay_nest_add_tensor(&nest, t);
  assay_nest_run(&nest, 0, fold_span, &m);  // in one thread: elements of y are met again
  return m.y;
}

const assay_pair_t* assay_dd_total(assay_dd_eval_t* c, const assay_pair_t* x, const bool* axes) {
  return assay_dd_fold(c, assay_dd_plus, 0, x, axes);
}

const assay_pair_t* assay_dd_mean(assay_dd_eval_t* c, const assay_pair_t* x, const bool* axes) {
  double n = 1;
  for (int i = 0; x && i < x->high->rank; i++) n *= axes[i] ? (double)x->high->dims[i] : 1;
  const assay_pair_t* sum = assay_dd_total(c, x, axes);
  return assay_dd_div(c, sum, assay_dd_number(c, assay_dd(n)));
}

assay_dd_t assay_dd_max(assay_dd_t x, assay_dd_t y) {
  if (x.high != x.high) return x;
  return assay_dd_less(x, y) || y.high != y.high ? y : x;
}
assay_dd_t assay_dd_min(assay_dd_t x, assay_dd_t y) {
  if (x.high != x.high) return x;
  return assay_dd_less(y, x) || y.high != y.high ? y : x;
}

// ---- by the node's own kernel ------------------------------------------------------------------

typedef struct operands {
  assay_tensor_t **in, **out, **low;
} operands_t;

static void operands_empty(const assay_dd_eval_t* c, operands_t* o) {
  for (size_t i = 0; o->in && i < c->n_in; i++) {
    assay_tensor_release(o->in[i]);
    o->in[i] = NULL;
  }
  for (size_t i = 0; i < c->n_out; i++) {
    if (o->out) assay_tensor_release(o->out[i]), o->out[i] = NULL;
    if (o->low) assay_tensor_release(o->low[i]), o->low[i] = NULL;
  }
}

static assay_status_t operands_make(const assay_dd_eval_t* c, operands_t* o) {
  ASSAY_TRY(assay_new_array(c->n_in, sizeof *o->in, &o->in));
  ASSAY_TRY(assay_new_array(c->n_out, sizeof *o->out, &o->out));
  return assay_new_array(c->n_out, sizeof *o->low, &o->low);
}

static void operands_deinit(const assay_dd_eval_t* c, operands_t* o) {
  operands_empty(c, o);
  assay_free(o->in);
  assay_free(o->out);
  assay_free(o->low);
}

static assay_status_t zeros_like(const assay_tensor_t* t, assay_tensor_t** out) {
  return assay_tensor_create_zero(t->type, t->rank, t->dims, out);
}

// The low part of input i as a tensor of its own.
static assay_status_t low_part(const assay_pair_t* p, assay_tensor_t** out) {
  return p->low ? assay_tensor_retype(p->low, p->high->type, out) : zeros_like(p->high, out);
}

// The high parts, evaluated.
static assay_status_t evaluate_high(assay_dd_eval_t* c, operands_t* o, bool twice) {
  for (size_t i = 0; i < c->n_in; i++) o->in[i] = assay_tensor_retain(c->in[i].high);
  ASSAY_TRY(c->evaluate(c, o->in, o->out, twice ? o->low : NULL));
  for (size_t i = 0; i < c->n_out; i++) {
    c->out[i] = (assay_pair_t){o->out[i], o->low[i]};
    o->out[i] = o->low[i] = NULL;
  }
  return NULL;
}

static void add_to(const assay_pair_t* y, const assay_tensor_t* x) {
  for (int64_t i = 0; i < x->size; i++)
    set(y, i, assay_dd_plus(element(y, i), assay_dd(assay_f64(x)[i])));
}

// What the low part of input j adds: in float64, since it is 2^-53 of the whole.
static assay_status_t add_low(assay_dd_eval_t* c, operands_t* o, size_t n_factors,
                              const size_t* factors, size_t j) {
  bool is_factor[2] = {false};  // j; then each other input
  for (size_t k = 0; k < n_factors; k++) is_factor[0] |= factors[k] == j;
  for (size_t i = 0; i < c->n_in; i++) {
    const assay_pair_t* p = &c->in[i];
    is_factor[1] = false;
    for (size_t k = 0; k < n_factors; k++) is_factor[1] |= factors[k] == i;
    if (i == j)
      ASSAY_TRY(low_part(p, &o->in[i]));
    else if (is_float(p->high) && !(is_factor[0] && is_factor[1]))
      ASSAY_TRY(zeros_like(p->high, &o->in[i]));
    else
      o->in[i] = assay_tensor_retain(p->high);
  }
  ASSAY_TRY(c->evaluate(c, o->in, o->out, NULL));
  for (size_t i = 0; i < c->n_out; i++)
    if (is_float(o->out[i]) && c->out[i].low) add_to(&c->out[i], o->out[i]);
  return NULL;
}

void assay_dd_products(assay_dd_eval_t* c, size_t n_factors, const size_t* factors) {
  operands_t o = {0};
  assay_status_t st = c->status ? NULL : operands_make(c, &o);
  if (!st && o.in) st = evaluate_high(c, &o, true);
  for (size_t j = 0; !st && o.in && j < c->n_in; j++) {
    if (!c->in[j].low) continue;
    operands_empty(c, &o);
    st = add_low(c, &o, n_factors, factors, j);
  }
  operands_deinit(c, &o);
  if (st) fail(c, st);
}

void assay_dd_whole(assay_dd_eval_t* c, const assay_pair_t* const* in) {
  operands_t o = {0};
  assay_status_t st = c->status ? NULL : operands_make(c, &o);
  for (size_t i = 0; !st && o.in && i < c->n_in; i++) {
    if (!c->in[i].high || !in[i]) continue;
    st = is_float(c->in[i].high) ? assay_tensor_retype(in[i]->high, c->in[i].high->type, &o.in[i])
                                 : (o.in[i] = assay_tensor_retain(in[i]->high), NULL);
  }
  if (!st && o.in) st = c->evaluate(c, o.in, o.out, NULL);
  for (size_t i = 0; !st && o.in && i < c->n_out; i++) {
    c->out[i].high = o.out[i];
    o.out[i] = NULL;
  }
  operands_deinit(c, &o);
  if (st) fail(c, st);
}

// Both parts by themselves.
static assay_status_t moved(assay_dd_eval_t* c, bool low) {
  operands_t o = {0};
  assay_status_t st = operands_make(c, &o);
  if (!st) st = evaluate_high(c, &o, false);
  operands_empty(c, &o);
  for (size_t i = 0; !st && low && i < c->n_in; i++) {
    if (is_float(c->in[i].high))
      st = low_part(&c->in[i], &o.in[i]);
    else
      o.in[i] = assay_tensor_retain(c->in[i].high);
  }
  if (!st && low) st = c->evaluate(c, o.in, o.out, NULL);
  for (size_t i = 0; !st && low && i < c->n_out; i++)
    if (is_float(o.out[i])) c->out[i].low = assay_tensor_retain(o.out[i]);
  operands_deinit(c, &o);
  return st;
}

static assay_status_t by_kind(assay_dd_eval_t* c) {
  const assay_op_t* op = c->node->op;
  bool low = false, floats_in = false, computed = false;
  for (size_t i = 0; i < c->n_in; i++) {
    low |= c->in[i].low != NULL;
    floats_in |= is_float(c->in[i].high);
  }
  for (size_t i = 0; i < c->n_out; i++) {
    const assay_value_t* v = c->node->outputs[i];
    const bool whole = v && v->type && v->type->elem && !assay_type_is_float(v->type->elem);
    computed |= v && !whole && !(op->discrete >> i & 1);
  }
  const bool moves = op->flags & ASSAY_OP_MOVES;
  // What a bound function is needed for chooses among elements, as does what has discrete outputs.
  if (low && moves && !op->bound && !op->discrete && !*op->domain) return moved(c, true);
  if (!low && (moves || !floats_in || !computed)) return moved(c, false);
  return ASSAY_NODE_ERROR(c->node, ASSAY_UNSUPPORTED,
                          "it is not known in twice the precision of float64");
}

assay_status_t assay_dd_node(assay_dd_eval_t* c) {
  const assay_op_t* op = c->node->op;
  bool floats = false;
  if (!op || op->flags & (ASSAY_OP_CONTROL | ASSAY_OP_RANDOM | ASSAY_OP_QUANTIZES))
    return ASSAY_NODE_ERROR(c->node, ASSAY_UNSUPPORTED,
                            "it is not known in twice the precision of float64");
  for (size_t i = 0; i < c->n_in; i++) floats |= is_float(c->in[i].high);
  if (op->dd && floats)
    op->dd(c);
  else
    c->status = by_kind(c);
  forget_all(c);
  assay_status_t st = c->status;
  c->status = NULL;
  for (size_t i = 0; st && i < c->n_out; i++) assay_pair_deinit(&c->out[i]);
  return st;
}
