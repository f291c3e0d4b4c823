// Bodies: both branches of an If, the iterations of a Loop or Scan one after the other.
#include <string.h>

#include "base/alloc.h"
#include "ranges/range.h"

static void release_ranges(assay_range_t* r, size_t n) {
  for (size_t i = 0; r && i < n; i++) assay_range_release(&r[i]);
}

static assay_status_t branch(assay_range_node_t* c, const char* name, assay_range_t* out) {
  assay_graph_t* g = assay_attr_graph(c->node, name);
  return g ? assay_ranger_graph(c->ranger, g, 0, NULL, c->n_out, out) : NULL;
}

assay_status_t assay_range_if(assay_range_node_t* c) {
  assay_range_t *a = NULL, *b = NULL;
  const assay_range_t* when = &c->in[0];
  const bool sure =
      assay_range_exact(when) && when->lo->store == ASSAY_STORE_I64 && when->lo->size == 1;
  if (sure) return branch(c, assay_i64(when->lo)[0] ? "then_branch" : "else_branch", c->out);
  assay_status_t st = assay_new_array(c->n_out, sizeof *a, &a);
  if (!st) st = assay_new_array(c->n_out, sizeof *b, &b);
  if (!st) st = branch(c, "then_branch", a);
  if (!st) st = branch(c, "else_branch", b);
  for (size_t i = 0; !st && i < c->n_out; i++) st = assay_range_hull(&a[i], &b[i], &c->out[i]);
  release_ranges(a, c->n_out);
  release_ranges(b, c->n_out);
  assay_free(a);
  assay_free(b);
  return st;
}

// ---- loops --------------------------------------------------------------------------------------

enum { MAX_ROUNDS = 1024 };

// What an iteration collects: pieces of a scan output, by iteration.
typedef struct pieces {
  assay_range_t* at;
  size_t n, capacity;
} pieces_t;

static assay_status_t keep(pieces_t* p, assay_range_t* take) {
  ASSAY_TRY(assay_grow(&p->at, &p->capacity, p->n + 1, sizeof *p->at));
  p->at[p->n++] = *take;
  *take = (assay_range_t){0};
  return NULL;
}

// One tensor with a new first dimension.
static assay_status_t stack(const pieces_t* p, bool upper, assay_tensor_t** out) {
  const assay_tensor_t* first = p->at[0].lo;
  int64_t dims[ASSAY_MAX_RANK];
  if (first->rank + 1 > ASSAY_MAX_RANK) return NULL;
  dims[0] = (int64_t)p->n;
  for (int i = 0; i < first->rank; i++) dims[i + 1] = first->dims[i];
  ASSAY_TRY(assay_tensor_create(first->type, first->rank + 1, dims, out));
  const size_t bytes = (size_t)first->size * assay_store_elem_bytes(first->store);
  for (size_t i = 0; i < p->n; i++)
    memcpy((char*)(*out)->data + i * bytes, (upper ? p->at[i].hi : p->at[i].lo)->data, bytes);
  return NULL;
}

static assay_status_t join(const pieces_t* p, assay_range_t* out) {
  assay_tensor_t *lo = NULL, *hi = NULL;
  for (size_t i = 0; i < p->n; i++)
    if (!p->at[i].lo || p->at[i].lo->kind != ASSAY_KIND_TENSOR ||
        p->at[i].lo->size != p->at[0].lo->size ||
        (p->at[i].lo->store != ASSAY_STORE_F64 && p->at[i].lo->store != ASSAY_STORE_I64))
      return NULL;
  if (!p->n) return NULL;
  ASSAY_TRY(stack(p, false, &lo));
  assay_status_t st = stack(p, true, &hi);
  if (st) return assay_tensor_release(lo), st;
  if (lo && hi) assay_range_set(out, lo, hi);
  return NULL;
}

typedef struct loop {
  assay_range_node_t* c;
  assay_graph_t* body;
  size_t n_states, n_scans, first_out;
  assay_range_t *in, *made;  // of the body
  pieces_t* pieces;          // by scan output
} loop_t;

static void loop_deinit(loop_t* l) {
  release_ranges(l->in, l->body->n_inputs);
  release_ranges(l->made, l->body->n_outputs);
  for (size_t i = 0; l->pieces && i < l->n_scans; i++) {
    release_ranges(l->pieces[i].at, l->pieces[i].n);
    assay_free(l->pieces[i].at);
  }
  assay_free(l->in);
  assay_free(l->made);
  assay_free(l->pieces);
}

static assay_status_t loop_init(loop_t* l) {
  ASSAY_TRY(assay_new_array(l->body->n_inputs, sizeof *l->in, &l->in));
  ASSAY_TRY(assay_new_array(l->body->n_outputs, sizeof *l->made, &l->made));
  return assay_new_array(l->n_scans, sizeof *l->pieces, &l->pieces);
}

// One iteration: states go round from input first_in on.
static assay_status_t iterate(loop_t* l, size_t first_in) {
  ASSAY_TRY(assay_ranger_graph(l->c->ranger, l->body, l->body->n_inputs, l->in, l->body->n_outputs,
                               l->made));
  for (size_t i = 0; i < l->n_states; i++) {
    assay_range_release(&l->in[first_in + i]);
    l->in[first_in + i] = l->made[l->first_out + i];
    l->made[l->first_out + i] = (assay_range_t){0};
  }
  for (size_t i = 0; i < l->n_scans; i++)
    ASSAY_TRY(keep(&l->pieces[i], &l->made[l->first_out + l->n_states + i]));
  return NULL;
}

// 1, 0, or -1: not known.
static int truth_of(const assay_range_t* r) {
  const bool exact = assay_range_exact(r) && r->lo->store == ASSAY_STORE_I64 && r->lo->size == 1;
  return exact ? assay_i64(r->lo)[0] != 0 : -1;
}

static assay_status_t hand_out(loop_t* l, size_t first_in) {
  assay_range_node_t* c = l->c;
  for (size_t i = 0; i < c->n_out; i++) {
    if (!c->node->outputs[i]) continue;
    if (i < l->n_states)
      c->out[i] = assay_range_retain(&l->in[first_in + i]);
    else
      ASSAY_TRY(join(&l->pieces[i - l->n_states], &c->out[i]));
  }
  return NULL;
}

// The states after any number of rounds that may be the last.
static assay_status_t hull_states(loop_t* l, assay_range_t* states) {
  for (size_t i = 0; i < l->n_states; i++) {
    assay_range_t joined = {0};
    ASSAY_TRY(assay_range_hull(&states[i], &l->in[2 + i], &joined));
    assay_range_release(&states[i]);
    states[i] = joined;
  }
  return NULL;
}

static assay_status_t run_loop(loop_t* l) {
  assay_range_node_t* c = l->c;
  const bool counts = assay_range_has(c, 0), asks = assay_range_has(c, 1);
  const bool known =
      counts && assay_range_exact(&c->in[0]) && c->in[0].lo->store == ASSAY_STORE_I64;
  const int64_t trips =
      known && c->in[0].lo->size == 1 ? assay_i64(c->in[0].lo)[0] : MAX_ROUNDS + 1;
  int go = asks ? truth_of(&c->in[1]) : 1;
  assay_range_t* ends =
      NULL;  // hull of the states after rounds that may be the last; NULL: there was none
  assay_status_t st = NULL;
  for (size_t i = 0; i < l->n_states; i++) l->in[2 + i] = assay_range_retain(&c->in[2 + i]);
  if (trips > MAX_ROUNDS && !asks) return NULL;
  int64_t k = 0;
  for (; !st && k < trips && go != 0 && k <= MAX_ROUNDS; k++) {
    if (go < 0) {
      if (ends) {
        st = hull_states(l, ends);
      } else {
        st = assay_new_array(l->n_states, sizeof *ends, &ends);
        for (size_t i = 0; !st && i < l->n_states; i++) ends[i] = assay_range_retain(&l->in[2 + i]);
      }
    }
    assay_tensor_t *number = NULL, *yes = NULL;
    if (!st) st = assay_tensor_scalar_i64(ASSAY_TYPE_INT64, k, &number);
    if (!st) assay_range_set(&l->in[0], number, assay_tensor_retain(number));
    if (!st) st = assay_tensor_scalar_i64(ASSAY_TYPE_BOOL, 1, &yes);
    if (!st) assay_range_set(&l->in[1], yes, assay_tensor_retain(yes));
    if (!st) st = iterate(l, 2);
    if (!st) go = truth_of(&l->made[0]);
  }
  const bool over = k <= MAX_ROUNDS;
  if (!st && over && !ends) st = hand_out(l, 2);
  if (!st && over && ends) {  // scan outputs have then no shape that is known
    st = hull_states(l, ends);
    for (size_t i = 0; !st && i < l->n_states && i < c->n_out; i++)
      c->out[i] = assay_range_retain(&ends[i]);
  }
  if (ends) release_ranges(ends, l->n_states);
  assay_free(ends);
  return st;
}

assay_status_t assay_range_loop(assay_range_node_t* c) {
  loop_t l = {.c = c, .body = assay_attr_graph(c->node, "body"), .first_out = 1};
  if (!l.body || c->n_in < 2) return NULL;
  l.n_states = c->n_in - 2;
  if (l.body->n_inputs != c->n_in || l.body->n_outputs < 1 + l.n_states) return NULL;
  l.n_scans = l.body->n_outputs - 1 - l.n_states;
  assay_status_t st = loop_init(&l);
  if (!st) st = run_loop(&l);
  loop_deinit(&l);
  return st;
}

// ---- Scan ---------------------------------------------------------------------------------------

// Slice k along the first dimension.
static assay_status_t slice(const assay_tensor_t* t, int64_t k, assay_tensor_t** out) {
  ASSAY_TRY(assay_tensor_create(t->type, t->rank - 1, t->dims + 1, out));
  const size_t bytes = (size_t)(*out)->size * assay_store_elem_bytes(t->store);
  memcpy((*out)->data, (const char*)t->data + (size_t)k * bytes, bytes);
  return NULL;
}

static bool has_attr_but_zeros(const assay_node_t* node, const char* name) {
  size_t n;
  const int64_t* at = assay_attr_ints(node, name, &n);
  for (size_t i = 0; i < n; i++)
    if (at[i]) return true;
  return false;
}

static bool can_slice(const assay_range_t* r, int64_t n) {
  return r->lo && r->lo->kind == ASSAY_KIND_TENSOR && r->lo->rank > 0 && r->lo->dims[0] == n &&
         (r->lo->store == ASSAY_STORE_F64 || r->lo->store == ASSAY_STORE_I64);
}

static assay_status_t run_scan(loop_t* l, size_t n_scanned) {
  assay_range_node_t* c = l->c;
  const assay_range_t* first = &c->in[l->n_states];
  const int64_t n = first->lo && first->lo->kind == ASSAY_KIND_TENSOR && first->lo->rank
                        ? first->lo->dims[0]
                        : -1;
  if (n < 0 || n > MAX_ROUNDS) return NULL;
  for (size_t i = 0; i < n_scanned; i++)
    if (!can_slice(&c->in[l->n_states + i], n)) return NULL;
  for (size_t i = 0; i < l->n_states; i++) l->in[i] = assay_range_retain(&c->in[i]);
  assay_status_t st = NULL;
  for (int64_t k = 0; !st && k < n; k++) {
    for (size_t i = 0; !st && i < n_scanned; i++) {
      assay_tensor_t *lo = NULL, *hi = NULL;
      st = slice(c->in[l->n_states + i].lo, k, &lo);
      if (!st) st = slice(c->in[l->n_states + i].hi, k, &hi);
      if (!st)
        assay_range_set(&l->in[l->n_states + i], lo, hi);
      else
        assay_tensor_release(lo);
    }
    if (!st) st = iterate(l, 0);
  }
  return st ? st : hand_out(l, 0);
}

// From version 9 on, along the first dimension and forwards; other ways are not known.
assay_status_t assay_range_scan(assay_range_node_t* c) {
  const int64_t n_scanned = assay_attr_i64(c->node, "num_scan_inputs", 0);
  loop_t l = {.c = c, .body = assay_attr_graph(c->node, "body")};
  const char* const attrs[] = {"scan_input_axes", "scan_output_axes", "scan_input_directions",
                               "scan_output_directions"};
  if (!l.body || n_scanned <= 0 || (size_t)n_scanned > c->n_in ||
      (c->node->op && c->node->op->since < 9))
    return NULL;
  for (size_t i = 0; i < 4; i++)
    if (has_attr_but_zeros(c->node, attrs[i])) return NULL;
  l.n_states = c->n_in - (size_t)n_scanned;
  if (l.body->n_inputs != c->n_in || l.body->n_outputs < l.n_states) return NULL;
  l.n_scans = l.body->n_outputs - l.n_states;
  assay_status_t st = loop_init(&l);
  if (!st) st = run_scan(&l, (size_t)n_scanned);
  loop_deinit(&l);
  return st;
}
