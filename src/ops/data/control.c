// If, Loop and SequenceMap, and what they share with Scan.
//
// A body is run by the machine (c->run_graph), which binds what the body reads from the graphs
// around it; here only the formal inputs are passed, by position. Body nodes are layers of their
// own, so these operators add no error and no cost.
#include "ops/data/control.h"

#include <string.h>

#include "base/alloc.h"
#include "ops/families.h"
#include "ops/join.h"

enum {
  // A loop that goes round more often is taken for one that never ends: even an empty body would
  // need seconds for so many rounds.
  MAX_TRIPS = 1 << 24,
  // Bodies nested deeper are inferred without the shapes of their states, once: settling takes
  // several rounds at each level, and levels multiply.
  MAX_SETTLED_DEPTH = 4,
};

// ---- bodies ---------------------------------------------------------------------------------

assay_status_t assay_body_check(const assay_node_t* node, assay_body_t* body) {
  const assay_graph_t* g = body->graph;
  if (!g) return ASSAY_NODE_ERROR(node, ASSAY_CORRUPT, "attribute 'body' is missing");
  if (g->n_inputs != body->n_inputs)
    return ASSAY_NODE_ERROR(node, ASSAY_CORRUPT,
                            "its body '%s' has %zu inputs; the node's inputs ask for %zu", g->name,
                            g->n_inputs, body->n_inputs);
  size_t first_scan = body->first_out + body->n_states;
  if (g->n_outputs < first_scan)
    return ASSAY_NODE_ERROR(node, ASSAY_CORRUPT,
                            "its body '%s' has %zu outputs; %zu state variables need %zu at least",
                            g->name, g->n_outputs, body->n_states, first_scan);
  body->n_scans = g->n_outputs - first_scan;
  if (node->n_outputs > body->n_states + body->n_scans)
    return ASSAY_NODE_ERROR(node, ASSAY_CORRUPT,
                            "it has %zu outputs, but its body '%s' makes %zu states and %zu scan "
                            "outputs",
                            node->n_outputs, g->name, body->n_states, body->n_scans);
  return NULL;
}

// Whether one is the optional of the other: a body may take optional(T) and give T.
static bool optional_of(const assay_valtype_t* a, const assay_valtype_t* b) {
  return a->kind == ASSAY_KIND_OPTIONAL && b->kind != ASSAY_KIND_OPTIONAL &&
         assay_valtype_agree(a->of, b);
}

assay_status_t assay_body_settle(assay_infer_t* c, const assay_body_t* body,
                                 const assay_valtype_t** types) {
  assay_graph_t* g = body->graph;
  int depth = 0;
  for (const assay_graph_t* o = c->graph->outer; o; o = o->outer) depth++;
  int shaped_rounds = depth < MAX_SETTLED_DEPTH ? 2 : 0;
  const assay_valtype_t** states = types + body->first_in;
  for (size_t i = 0; !shaped_rounds && i < body->n_states; i++)
    ASSAY_TRY(assay_valtype_strip(c->model, states[i], &states[i]));
  // Each round a state keeps its type or loses some of it, and from the third on all of its
  // shape: this ends.
  for (int round = 0;; round++) {
    bool changed = false;
    ASSAY_TRY(c->infer_graph(c, g, body->n_inputs, types));
    for (size_t i = 0; i < body->n_states; i++) {
      const assay_valtype_t* out = g->outputs[body->first_out + i]->type;
      const assay_valtype_t* joined = NULL;
      if (!states[i] || !out || optional_of(states[i], out) || optional_of(out, states[i]))
        continue;
      if (!assay_valtype_agree(states[i], out))
        return ASSAY_NODE_ERROR(c->node, ASSAY_CORRUPT,
                                "state variable %zu comes in as %s, but its body '%s' makes it %s",
                                i, ASSAY_VALTYPE_TEXT(states[i]), g->name, ASSAY_VALTYPE_TEXT(out));
      ASSAY_TRY(assay_valtype_join(c->model, states[i], out, &joined));
      if (assay_valtype_same(joined, states[i])) continue;
      if (round >= shaped_rounds) ASSAY_TRY(assay_valtype_strip(c->model, joined, &joined));
      changed |= !assay_valtype_same(joined, states[i]);
      states[i] = joined;
    }
    if (!changed) return NULL;
  }
}

const assay_valtype_t* assay_body_state_type(const assay_body_t* body,
                                             const assay_valtype_t* const* types, size_t i) {
  const assay_valtype_t* in = types[body->first_in + i];
  const assay_valtype_t* out = body->graph->outputs[body->first_out + i]->type;
  if (!in) return NULL;
  if (out && optional_of(in, out)) return out;
  if (out && optional_of(out, in)) return out;
  return in;
}

assay_status_t assay_body_final_state(assay_eval_t* c, size_t i, assay_tensor_t* t) {
  if (!assay_eval_wants(c, i)) return NULL;
  const assay_valtype_t* want = c->node->outputs[i]->type;
  bool boxed = t->kind == ASSAY_KIND_OPTIONAL;
  if (!want || boxed == (want->kind == ASSAY_KIND_OPTIONAL)) {
    assay_eval_set(c, i, t);
  } else if (boxed) {
    if (!t->n_items)
      return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                              "output %zu is %s, but the state that it takes is an empty optional",
                              i, ASSAY_VALTYPE_TEXT(want));
    assay_eval_set(c, i, t->items[0]);
  } else {
    assay_tensor_t* box = NULL;
    ASSAY_TRY(assay_optional_create(t->type, t, &box));
    assay_eval_set(c, i, box);
    assay_tensor_release(box);
  }
  return NULL;
}

// The size that a name has in the node's inputs.
static bool size_of_name(void* user, const char* name, int64_t* out) {
  const assay_eval_t* c = user;
  for (size_t i = 0; i < c->n_in; i++) {
    const assay_valtype_t* t = c->node->inputs[i] ? c->node->inputs[i]->type : NULL;
    if (!t || t->kind != ASSAY_KIND_TENSOR || !t->has_shape || !c->in[i] ||
        c->in[i]->kind != ASSAY_KIND_TENSOR || c->in[i]->rank != t->rank)
      continue;
    for (int d = 0; d < t->rank; d++) {
      const char* other = assay_dim_name(t->dims[d]);
      if (other && strcmp(other, name) == 0) return *out = c->in[i]->dims[d], true;
    }
  }
  return false;
}

int assay_body_empty_shape(const assay_eval_t* c, const assay_value_t* output, int64_t* dims) {
  const assay_valtype_t* t = output->type;
  if (!t || t->kind != ASSAY_KIND_TENSOR || !t->has_shape) return 0;
  for (int i = 0; i < t->rank; i++) {
    bool known =
        t->dims[i] && assay_dim_eval(t->dims[i], size_of_name, (void*)(uintptr_t)c, &dims[i]);
    if (!known || dims[i] < 0) dims[i] = 0;
  }
  return t->rank;
}

assay_status_t assay_copy_elems(const assay_tensor_t* from, int64_t from_at, assay_tensor_t* to,
                                int64_t to_at, int64_t n) {
  if (from->store == ASSAY_STORE_STR) {
    const assay_string_t* s = assay_strings(from) + from_at;
    for (int64_t i = 0; i < n; i++)
      ASSAY_TRY(assay_tensor_set_string(to, to_at + i, s[i].text, s[i].len));
  } else if (n) {
    size_t elem = assay_store_elem_bytes(from->store);
    memcpy((char*)to->data + (size_t)to_at * elem, (const char*)from->data + (size_t)from_at * elem,
           (size_t)n * elem);
  }
  return NULL;
}

// Reads a condition: one bool, of whatever rank.
static assay_status_t read_bool(const assay_eval_t* c, const char* what, const assay_tensor_t* t,
                                bool* out) {
  if (!t || t->kind != ASSAY_KIND_TENSOR || t->store != ASSAY_STORE_I64 || t->size != 1)
    return ASSAY_NODE_ERROR(
        c->node, ASSAY_INVALID_ARGUMENT,
        "%s must be a bool tensor with a single element, and it is %s%s", what,
        t && t->kind == ASSAY_KIND_TENSOR ? assay_type_name(t->type) : "no tensor",
        t && t->kind == ASSAY_KIND_TENSOR ? ASSAY_DIMS_TEXT(t) : "");
  *out = assay_i64(t)[0] != 0;
  return NULL;
}

// ---- If -------------------------------------------------------------------------------------

static assay_status_t if_branch(const assay_node_t* node, const char* name, assay_graph_t** out) {
  assay_graph_t* g = assay_attr_graph(node, name);
  if (!g) return ASSAY_NODE_ERROR(node, ASSAY_CORRUPT, "attribute '%s' is missing", name);
  if (g->n_inputs)
    return ASSAY_NODE_ERROR(node, ASSAY_CORRUPT,
                            "%s '%s' has %zu inputs; branches take theirs from the graphs around",
                            name, g->name, g->n_inputs);
  if (g->n_outputs < node->n_outputs)
    return ASSAY_NODE_ERROR(node, ASSAY_CORRUPT, "%s '%s' has %zu outputs, the node has %zu", name,
                            g->name, g->n_outputs, node->n_outputs);
  *out = g;
  return NULL;
}

// The branch that a constant condition takes decides the outputs alone; the other one may then be
// wrong (a guard against it is what the condition is for), so what is wrong with it is not said.
static assay_status_t if_infer(assay_infer_t* c) {
  const assay_tensor_t* cond = assay_infer_constant(c, 0);
  bool known = cond && cond->store == ASSAY_STORE_I64 && cond->size == 1;
  assay_graph_t* branches[2];
  const assay_shape_t s = assay_infer_shape(c, 0);
  int64_t n = 1;
  for (int i = 0; s.known && i < s.rank; i++)
    if (assay_dim_value(s.dims[i], &n) && n != 1)
      return ASSAY_NODE_ERROR(c->node, ASSAY_CORRUPT,
                              "input 0 cond '%s' is %s; a single element is expected",
                              c->node->inputs[0]->name, ASSAY_VALTYPE_TEXT(assay_infer_type(c, 0)));
  ASSAY_TRY(if_branch(c->node, "else_branch", &branches[0]));
  ASSAY_TRY(if_branch(c->node, "then_branch", &branches[1]));
  size_t taken = known && assay_i64(cond)[0];
  for (size_t b = 0; b < 2; b++) {
    assay_status_t st = c->infer_graph(c, branches[b], 0, NULL);
    if (st && (!known || b == taken || assay_status_code(st) == ASSAY_NO_MEMORY)) return st;
    assay_status_free(st);
  }
  for (size_t i = 0; i < c->node->n_outputs; i++) {
    const assay_valtype_t* t[2] = {branches[0]->outputs[i]->type, branches[1]->outputs[i]->type};
    const assay_valtype_t* joined = t[taken];
    if (!known) {
      if (!assay_valtype_agree(t[0], t[1]))
        return ASSAY_NODE_ERROR(c->node, ASSAY_CORRUPT,
                                "output %zu is %s from then_branch and %s from else_branch; they "
                                "must be of one type",
                                i, ASSAY_VALTYPE_TEXT(t[1]), ASSAY_VALTYPE_TEXT(t[0]));
      // A branch of unknown type has the other's, but for the shape.
      if (t[0] && t[1])
        ASSAY_TRY(assay_valtype_join(c->model, t[0], t[1], &joined));
      else
        ASSAY_TRY(assay_valtype_strip(c->model, t[0] ? t[0] : t[1], &joined));
    }
    if (joined) ASSAY_TRY(assay_infer_set_type(c, i, joined));
    const assay_content_t* content = known ? branches[taken]->outputs[i]->content : NULL;
    if (content)
      ASSAY_TRY(assay_infer_set_content(c, i, content->rank, content->n, content->elems));
  }
  return NULL;
}

// ai.onnx If-1 and later.
static assay_status_t if_eval(assay_eval_t* c) {
  bool cond = false;
  assay_graph_t* g = NULL;
  ASSAY_TRY(read_bool(c, "cond", c->in[0], &cond));
  ASSAY_TRY(if_branch(c->node, cond ? "then_branch" : "else_branch", &g));
  return c->run_graph(c, g, 0, NULL, c->n_out, c->out);
}

// ---- Loop -----------------------------------------------------------------------------------

static assay_body_t loop_body(const assay_node_t* node) {
  size_t states = node->n_inputs > 2 ? node->n_inputs - 2 : 0;
  return (assay_body_t){.graph = assay_attr_graph(node, "body"),
                        .n_inputs = 2 + states,
                        .first_in = 2,
                        .first_out = 1,
                        .n_states = states};
}

static assay_status_t check_loop(const assay_node_t* node, assay_body_t* body) {
  *body = loop_body(node);
  if ((node->n_inputs < 1 || !node->inputs[0]) && (node->n_inputs < 2 || !node->inputs[1]))
    return ASSAY_NODE_ERROR(node, ASSAY_INVALID_ARGUMENT,
                            "neither a trip count M nor a condition is given: by its definition "
                            "this loop never ends");
  return assay_body_check(node, body);
}

// Whether a value of the body is true whenever the condition was: the condition handed on, or a
// constant.
static bool stays_true(const assay_graph_t* body, const assay_value_t* v) {
  while (v->producer && strcmp(v->producer->op_type, "Identity") == 0 &&
         v->producer->n_inputs == 1 && v->producer->inputs[0] && v->graph == body)
    v = v->producer->inputs[0];
  if (v == body->inputs[1]) return true;
  const assay_tensor_t* t = assay_value_constant(v);
  if (!t && v->producer && strcmp(v->producer->op_type, "Constant") == 0)
    t = assay_attr_tensor(v->producer, "value");
  if (!t || t->kind != ASSAY_KIND_TENSOR || t->type != ASSAY_TYPE_BOOL || t->size != 1)
    return false;
  return t->store == ASSAY_STORE_I64 ? assay_i64(t)[0] != 0
                                     : t->store == ASSAY_STORE_PACKED && *(const char*)t->data;
}

// How often the body runs: M where nothing ends the loop earlier, else a number of its own.
static const assay_dim_t* loop_trips(assay_infer_t* c, const assay_graph_t* body) {
  bool has_cond = assay_infer_has(c, 1);
  const assay_tensor_t* cond = assay_infer_constant(c, 1);
  bool first = cond && cond->store == ASSAY_STORE_I64 && cond->size == 1 && assay_i64(cond)[0];
  assay_content_t m;
  if (cond && cond->store == ASSAY_STORE_I64 && cond->size == 1 && !first)
    return assay_dim_const(c->dims, 0);
  if (assay_infer_content(c, 0, &m) && m.n == 1 && m.elems[0]) {
    const assay_dim_t* zero = assay_dim_const(c->dims, 0);
    int64_t value;
    bool none = assay_dim_value(m.elems[0], &value) && value <= 0;
    if (none) return zero;
    if (!has_cond || (first && stays_true(body, body->outputs[0])))
      return assay_dim_max(c->dims, m.elems[0], zero);
  }
  return assay_dim_fresh(c->dims, "trips");
}

// The iteration number and the condition are scalars unless the body declares them with rank 1.
static int declared_rank(const assay_value_t* v) {
  const assay_valtype_t* t = v->declared;
  return t && t->kind == ASSAY_KIND_TENSOR && t->has_shape && t->rank == 1 ? 1 : 0;
}

// A scan output: one more dimension, of known or unknown length, at `axis` of the result.
static assay_status_t set_scan_output(assay_infer_t* c, size_t output, const assay_value_t* made,
                                      const assay_dim_t* length) {
  const assay_valtype_t* t = made->type;
  assay_shape_t shape = {0};
  if (t && t->kind != ASSAY_KIND_TENSOR)
    return ASSAY_NODE_ERROR(c->node, ASSAY_CORRUPT,
                            "scan output '%s' of its body is %s; only tensors can be collected",
                            made->name, ASSAY_VALTYPE_TEXT(t));
  if (t && t->has_shape && t->rank < ASSAY_MAX_RANK) {
    shape.known = true;
    shape.rank = t->rank + 1;
    shape.dims[0] = length;
    if (t->rank) memcpy(shape.dims + 1, t->dims, (size_t)t->rank * sizeof *t->dims);
  }
  if (!t) return NULL;
  return assay_infer_set(c, output, t->elem, &shape);
}

static assay_status_t loop_infer(assay_infer_t* c) {
  assay_body_t body;
  ASSAY_TRY(check_loop(c->node, &body));
  assay_graph_t* g = body.graph;
  const assay_valtype_t** types = NULL;
  ASSAY_TRY(assay_new_array(body.n_inputs, sizeof *types, &types));
  const assay_dim_t* one = assay_dim_const(c->dims, 1);
  assay_status_t st = assay_valtype_tensor(c->model, ASSAY_TYPE_INT64, declared_rank(g->inputs[0]),
                                           &one, &types[0]);
  if (!st)
    st = assay_valtype_tensor(c->model, ASSAY_TYPE_BOOL, declared_rank(g->inputs[1]), &one,
                              &types[1]);
  for (size_t i = 0; i < body.n_states; i++) types[2 + i] = assay_infer_type(c, 2 + i);
  if (!st) st = assay_body_settle(c, &body, types);
  for (size_t i = 0; !st && i < body.n_states; i++) {
    const assay_valtype_t* t = assay_body_state_type(&body, types, i);
    if (t) st = assay_infer_set_type(c, i, t);
  }
  const assay_dim_t* trips = st || !body.n_scans ? NULL : loop_trips(c, g);
  for (size_t i = body.n_states; !st && i < c->node->n_outputs; i++)
    st = set_scan_output(c, i, g->outputs[1 + i], trips);
  assay_free(types);
  return st;
}

// A scan output of unknown length: a tensor [capacity, ...] with the first n rows filled.
typedef struct rows {
  assay_tensor_t* t;
  int64_t n;
} rows_t;

static assay_status_t rows_resize(rows_t* r, int64_t capacity) {
  int64_t dims[ASSAY_MAX_RANK];
  assay_tensor_t* grown = NULL;
  memcpy(dims, r->t->dims, (size_t)r->t->rank * sizeof *dims);
  dims[0] = capacity;
  ASSAY_TRY(assay_tensor_create(r->t->type, r->t->rank, dims, &grown));
  int64_t used = r->n * assay_dims_product(dims, 1, r->t->rank);
  size_t elem = assay_store_elem_bytes(r->t->store);
  if (used) memcpy(grown->data, r->t->data, (size_t)used * elem);
  // Strings change hands.
  if (used && r->t->store == ASSAY_STORE_STR) memset(r->t->data, 0, (size_t)used * elem);
  assay_tensor_release(r->t);
  r->t = grown;
  return NULL;
}

// Appends what one iteration made. expected: how many rows there will be, if that is known, else 0.
static assay_status_t rows_append(assay_eval_t* c, rows_t* r, const assay_tensor_t* item, size_t i,
                                  int64_t expected) {
  if (item->kind != ASSAY_KIND_TENSOR)
    return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                            "scan output %zu is not a tensor in iteration %lld", i,
                            (long long)r->n);
  if (!r->t) {
    int64_t dims[ASSAY_MAX_RANK];
    if (item->rank == ASSAY_MAX_RANK)
      return ASSAY_NODE_ERROR(c->node, ASSAY_UNSUPPORTED,
                              "scan output %zu would have rank %d; %d is the most", i,
                              item->rank + 1, ASSAY_MAX_RANK);
    dims[0] = expected ? expected : 4;
    if (item->rank) memcpy(dims + 1, item->dims, (size_t)item->rank * sizeof *dims);
    ASSAY_TRY(assay_status_note(assay_tensor_create(item->type, item->rank + 1, dims, &r->t),
                                "node '%s' (%s): scan output %zu", c->node->label, c->node->op_type,
                                i));
  }
  bool same = item->type == r->t->type && item->rank + 1 == r->t->rank;
  for (int k = 0; same && k < item->rank; k++) same = item->dims[k] == r->t->dims[k + 1];
  if (!same)
    return ASSAY_NODE_ERROR(
        c->node, ASSAY_INVALID_ARGUMENT,
        "scan output %zu is %s%s in iteration %lld and was %s%s before; it must "
        "not change",
        i, assay_type_name(item->type), ASSAY_DIMS_TEXT(item), (long long)r->n,
        assay_type_name(r->t->type),
        assay_dims_text(r->t->rank - 1, r->t->dims + 1, (char[512]){0}, 512));
  if (r->n == r->t->dims[0])
    ASSAY_TRY(assay_status_note(rows_resize(r, 2 * r->n),
                                "node '%s' (%s): scan output %zu after %lld iterations",
                                c->node->label, c->node->op_type, i, (long long)r->n));
  ASSAY_TRY(assay_copy_elems(item, 0, r->t, r->n * item->size, item->size));
  r->n++;
  return NULL;
}

// One running loop. state[]: condition and state variables, as the body's outputs order them.
typedef struct loop {
  assay_body_t body;
  assay_tensor_t** in;  // of the body
  assay_tensor_t** out;
  rows_t* rows;
  int64_t expected;  // iterations for sure; 0: not known
} loop_t;

// A scalar as the body declares it: rank 0 or [1].
static assay_status_t loop_scalar(const assay_value_t* formal, assay_type_t type, int64_t x,
                                  assay_tensor_t** out) {
  return declared_rank(formal) ? assay_tensor_vector_i64(type, 1, &x, out)
                               : assay_tensor_scalar_i64(type, x, out);
}

static assay_status_t loop_iterate(assay_eval_t* c, loop_t* l, int64_t iteration, bool* cond) {
  const assay_graph_t* g = l->body.graph;
  size_t n = l->body.n_states;
  ASSAY_TRY(loop_scalar(g->inputs[0], ASSAY_TYPE_INT64, iteration, &l->in[0]));
  assay_status_t st = loop_scalar(g->inputs[1], ASSAY_TYPE_BOOL, *cond, &l->in[1]);
  c->round = (uint64_t)iteration + 1;
  if (!st) st = c->run_graph(c, l->body.graph, l->body.n_inputs, l->in, g->n_outputs, l->out);
  for (size_t i = 0; i < 2; i++) {
    assay_tensor_release(l->in[i]);
    l->in[i] = NULL;
  }
  if (!st) st = read_bool(c, "the condition that the body makes", l->out[0], cond);
  for (size_t i = 0; !st && i < l->body.n_scans; i++)
    st = rows_append(c, &l->rows[i], l->out[1 + n + i], n + i, l->expected);
  for (size_t i = 0; i < n; i++) {
    assay_tensor_release(l->in[2 + i]);
    l->in[2 + i] = l->out[1 + i];
    l->out[1 + i] = NULL;
  }
  for (size_t i = 0; i < g->n_outputs; i++) {
    assay_tensor_release(l->out[i]);
    l->out[i] = NULL;
  }
  return st;
}

static assay_status_t loop_outputs(assay_eval_t* c, loop_t* l) {
  size_t n = l->body.n_states;
  for (size_t i = 0; i < n; i++) ASSAY_TRY(assay_body_final_state(c, i, l->in[2 + i]));
  for (size_t i = 0; i < l->body.n_scans; i++) {
    rows_t* r = &l->rows[i];
    if (!assay_eval_wants(c, n + i)) continue;
    if (!r->t) {  // no iteration
      int64_t dims[ASSAY_MAX_RANK + 1] = {0};
      const assay_value_t* made = l->body.graph->outputs[1 + n + i];
      int rank = 1 + assay_body_empty_shape(c, made, dims + 1);
      const assay_valtype_t* t = made->type;
      assay_type_t type = t && t->kind == ASSAY_KIND_TENSOR && t->elem ? t->elem : ASSAY_TYPE_FLOAT;
      ASSAY_TRY(assay_eval_output(c, n + i, assay_eval_out_type(c, n + i, type), rank, dims,
                                  &(assay_tensor_t*){0}));
      continue;
    }
    if (r->n != r->t->dims[0]) ASSAY_TRY(rows_resize(r, r->n));
    assay_eval_set(c, n + i, r->t);
  }
  return NULL;
}

static assay_status_t loop_rounds(assay_eval_t* c, loop_t* l) {
  bool has_m = assay_eval_has(c, 0), has_cond = assay_eval_has(c, 1), cond = true;
  int64_t m = INT64_MAX;
  if (has_m) {
    if (c->in[0]->kind != ASSAY_KIND_TENSOR || c->in[0]->size != 1 ||
        c->in[0]->store != ASSAY_STORE_I64)
      return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                              "trip count M has shape %s; a scalar is expected",
                              ASSAY_DIMS_TEXT(c->in[0]));
    m = assay_i64(c->in[0])[0];
  }
  if (has_cond) ASSAY_TRY(read_bool(c, "cond", c->in[1], &cond));
  if (!has_cond && m > MAX_TRIPS)
    return ASSAY_NODE_ERROR(c->node, ASSAY_UNSUPPORTED,
                            "trip count is %lld and no condition ends the loop earlier; %d "
                            "iterations are the most",
                            (long long)m, MAX_TRIPS);
  l->expected = !has_cond && m > 0 ? m : 0;
  for (int64_t i = 0; i < m && (cond || !has_cond); i++) {
    if (i == MAX_TRIPS)
      return ASSAY_NODE_ERROR(c->node, ASSAY_UNSUPPORTED,
                              "its condition is still true after %d iterations: the loop seems "
                              "never to end",
                              MAX_TRIPS);
    ASSAY_TRY(loop_iterate(c, l, i, &cond));
  }
  return loop_outputs(c, l);
}

// ai.onnx Loop-1 and later.
static assay_status_t loop_eval(assay_eval_t* c) {
  loop_t l = {0};
  ASSAY_TRY(check_loop(c->node, &l.body));
  for (size_t i = 2; i < c->n_in; i++)
    if (!c->in[i])
      return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                              "state variable %zu has no initial value", i - 2);
  assay_status_t st = assay_new_array(l.body.n_inputs, sizeof *l.in, &l.in);
  if (!st) st = assay_new_array(l.body.graph->n_outputs, sizeof *l.out, &l.out);
  if (!st) st = assay_new_array(l.body.n_scans, sizeof *l.rows, &l.rows);
  for (size_t i = 0; !st && i < l.body.n_states; i++)
    l.in[2 + i] = assay_tensor_retain(c->in[2 + i]);
  if (!st) st = loop_rounds(c, &l);
  for (size_t i = 0; l.in && i < l.body.n_inputs; i++) assay_tensor_release(l.in[i]);
  for (size_t i = 0; l.rows && i < l.body.n_scans; i++) assay_tensor_release(l.rows[i].t);
  assay_free(l.in);
  assay_free(l.out);
  assay_free(l.rows);
  return st;
}

// ---- SequenceMap ----------------------------------------------------------------------------

static assay_status_t map_body(const assay_node_t* node, assay_graph_t** out) {
  assay_graph_t* g = assay_attr_graph(node, "body");
  if (!g) return ASSAY_NODE_ERROR(node, ASSAY_CORRUPT, "attribute 'body' is missing");
  if (g->n_inputs != node->n_inputs || g->n_outputs < node->n_outputs)
    return ASSAY_NODE_ERROR(node, ASSAY_CORRUPT,
                            "its body '%s' has %zu inputs and %zu outputs, the node has %zu and "
                            "%zu; they must match",
                            g->name, g->n_inputs, g->n_outputs, node->n_inputs, node->n_outputs);
  *out = g;
  return NULL;
}

static assay_status_t sequence_map_infer(assay_infer_t* c) {
  assay_graph_t* g = NULL;
  const assay_valtype_t** types = NULL;
  ASSAY_TRY(map_body(c->node, &g));
  ASSAY_TRY(assay_new_array(g->n_inputs, sizeof *types, &types));
  for (size_t i = 0; i < g->n_inputs; i++) {
    types[i] = assay_infer_type(c, i);
    if (types[i] && types[i]->kind == ASSAY_KIND_SEQUENCE) types[i] = types[i]->of;
  }
  assay_status_t st = c->infer_graph(c, g, g->n_inputs, types);
  assay_free(types);
  for (size_t i = 0; !st && i < c->node->n_outputs; i++) {
    const assay_valtype_t *of = g->outputs[i]->type, *t = NULL;
    if (of && of->kind != ASSAY_KIND_TENSOR)
      st = ASSAY_NODE_ERROR(c->node, ASSAY_CORRUPT,
                            "output %zu of its body is %s; a tensor is expected", i,
                            ASSAY_VALTYPE_TEXT(of));
    if (!st) st = assay_valtype_of(c->model, ASSAY_KIND_SEQUENCE, ASSAY_TYPE_UNDEFINED, of, &t);
    if (!st) st = assay_infer_set_type(c, i, t);
  }
  return st;
}

// The results of a SequenceMap: item k of output i is number i * n + k.
static assay_status_t map_items(assay_eval_t* c, assay_graph_t* g, int64_t n, assay_tensor_t** in,
                                assay_tensor_t** out, assay_tensor_t** made) {
  for (int64_t k = 0; k < n; k++) {
    for (size_t i = 0; i < c->n_in; i++)
      in[i] = c->in[i]->kind == ASSAY_KIND_SEQUENCE ? c->in[i]->items[k] : c->in[i];
    c->round = (uint64_t)k + 1;
    ASSAY_TRY(c->run_graph(c, g, c->n_in, in, c->n_out, out));
    for (size_t i = 0; i < c->n_out; i++) {
      made[(int64_t)i * n + k] = out[i];
      out[i] = NULL;
    }
  }
  for (size_t i = 0; i < c->n_out; i++) {
    const assay_valtype_t* of = g->outputs[i]->type;
    assay_type_t type = n ? made[(int64_t)i * n]->type : of ? of->elem : ASSAY_TYPE_UNDEFINED;
    assay_tensor_t* seq = NULL;
    if (!assay_eval_wants(c, i)) continue;
    ASSAY_TRY(assay_sequence_create(type, n, made + (int64_t)i * n, &seq));
    assay_eval_set(c, i, seq);
    assay_tensor_release(seq);
  }
  return NULL;
}

// ai.onnx SequenceMap-17.
static assay_status_t sequence_map_eval(assay_eval_t* c) {
  assay_graph_t* g = NULL;
  assay_tensor_t **in = NULL, **out = NULL, **made = NULL;
  int64_t n = c->in[0]->n_items, total = 0;
  ASSAY_TRY(map_body(c->node, &g));
  for (size_t i = 0; i < c->n_in; i++) {
    if (!c->in[i])
      return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT, "input %zu is left out", i);
    if (i == 0 ? c->in[i]->kind != ASSAY_KIND_SEQUENCE
               : c->in[i]->kind == ASSAY_KIND_SEQUENCE && c->in[i]->n_items != n)
      return ASSAY_NODE_ERROR(c->node, ASSAY_INVALID_ARGUMENT,
                              "input %zu has %lld items; a sequence of %lld is expected", i,
                              (long long)c->in[i]->n_items, (long long)n);
  }
  if (!assay_mul_i64(n, (int64_t)c->n_out, &total)) return assay_status_no_memory();
  assay_status_t st = assay_new_array(c->n_in, sizeof *in, &in);
  if (!st) st = assay_new_array(c->n_out, sizeof *out, &out);
  if (!st) st = assay_new_array((size_t)total, sizeof *made, &made);
  if (!st) st = map_items(c, g, n, in, out, made);
  for (int64_t i = 0; made && i < total; i++) assay_tensor_release(made[i]);
  assay_free(in);
  assay_free(out);
  assay_free(made);
  return st;
}

// ---- the counts of all of them ------------------------------------------------------------------

static assay_status_t if_check(const assay_node_t* node) {
  assay_graph_t *then = NULL, *other = NULL;
  ASSAY_TRY(if_branch(node, "then_branch", &then));
  ASSAY_TRY(if_branch(node, "else_branch", &other));
  if (then->n_outputs == other->n_outputs) return NULL;
  return ASSAY_NODE_ERROR(node, ASSAY_CORRUPT,
                          "then_branch '%s' has %zu outputs, else_branch '%s' has %zu; both must "
                          "have as many as the node, %zu",
                          then->name, then->n_outputs, other->name, other->n_outputs,
                          node->n_outputs);
}

static assay_status_t loop_check(const assay_node_t* node) {
  assay_body_t body = loop_body(node);
  return assay_body_check(node, &body);
}

static assay_status_t map_check(const assay_node_t* node) {
  assay_graph_t* body = NULL;
  return map_body(node, &body);
}

assay_status_t assay_control_check(const assay_node_t* node) {
  static const struct {
    const char* name;
    assay_status_t (*check)(const assay_node_t*);
  } rows[] = {{"If", if_check},
              {"Loop", loop_check},
              {"Scan", assay_scan_check},
              {"SequenceMap", map_check}};
  if (*node->domain) return NULL;
  for (size_t i = 0; i < node->n_attrs; i++)
    if (*node->attrs[i].ref) return NULL;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    if (strcmp(rows[i].name, node->op_type) == 0) return rows[i].check(node);
  return NULL;
}

const assay_op_t assay_ops_control[] = {{.domain = "",
                                         .name = "If",
                                         .since = 1,
                                         .flags = ASSAY_OP_CONTROL,
                                         .infer = if_infer,
                                         .eval = if_eval},
                                        {.domain = "",
                                         .name = "Loop",
                                         .since = 1,
                                         .flags = ASSAY_OP_CONTROL,
                                         .infer = loop_infer,
                                         .eval = loop_eval},
                                        {.domain = "",
                                         .name = "SequenceMap",
                                         .since = 17,
                                         .flags = ASSAY_OP_CONTROL,
                                         .infer = sequence_map_infer,
                                         .eval = sequence_map_eval},
                                        {0}};
