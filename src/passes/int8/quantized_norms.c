// The nodes of a layer normalization with quantizers between them become one layer
// (quantized_norm.h says why as they are).
//
// From the last quantizer backwards. A DequantizeLinear in front that others read, too, as
// residuals are, is repeated: inside the layer it costs nothing.
#include <string.h>

#include "base/alloc.h"
#include "passes/edit.h"
#include "passes/int8/quantized_norm.h"
#include "passes/int8/quantizers.h"

enum { MAX_NODES = ASSAY_QUANTIZED_NORM_NODES, MAX_STAGES = ASSAY_QUANTIZED_NORM_STAGES };

// ---- reading ------------------------------------------------------------------------------------

typedef struct walk {
  bool (*inside)(const assay_node_t* n, const void* user);  // whether a node may be of the layer
  const void* user;
  const assay_node_t* nodes[MAX_NODES];  // the last one first
  size_t n;
  const assay_node_t* dequantizer;
  assay_quantized_norm_t norm;
} walk_t;

// The node that makes a value, if it may be of the layer; it is noted.
static const assay_node_t* take(walk_t* w, const assay_value_t* v) {
  const assay_node_t* n = v && !v->constant ? v->producer : NULL;
  if (!n || n->n_outputs != 1 || n->outputs[0] != v || !w->inside(n, w->user)) return NULL;
  for (size_t i = 0; i < w->n; i++)
    if (w->nodes[i] == n) return n;
  if (w->n == MAX_NODES) return NULL;
  w->nodes[w->n++] = n;
  return n;
}

static const assay_node_t* take_op(walk_t* w, const assay_value_t* v, const char* op_type) {
  const assay_node_t* n = take(w, v);
  return n && assay_is(n, op_type) ? n : NULL;
}

// A constant, or what dequantizes one, which will be computed once.
static bool is_known(const assay_value_t* v) {
  if (!v || assay_pass_constant(v)) return v != NULL;
  const assay_node_t* n = v->producer;
  if (!n || v->is_output || strcmp(n->op_type, "DequantizeLinear") != 0) return false;
  for (size_t i = 0; i < n->n_inputs; i++)
    if (n->inputs[i] && !assay_pass_constant(n->inputs[i])) return false;
  return true;
}

static bool read_quantizer(const assay_node_t* n, assay_norm_step_t* out) {
  *out = (assay_norm_step_t){.is_there = true};
  if (!assay_int8_is_quantizer(n) || !assay_quantizer_numbers(n, &out->scale, &out->zero))
    return false;
  out->type = assay_elem_of(n->outputs[0]);
  return true;
}

// What is in front of a quantizer and a dequantizer; the value itself where there are none. NULL:
// they are none that a layer may have.
static const assay_value_t* before_step(walk_t* w, const assay_value_t* v, assay_norm_step_t* out) {
  const assay_node_t* n = v->producer;
  *out = (assay_norm_step_t){.is_there = false};
  if (!n || !assay_int8_is_dequantizer(n)) return v;
  float scale, zero;
  if (!take(w, v) || !assay_quantizer_numbers(n, &scale, &zero)) return NULL;
  const assay_node_t* q = take(w, n->inputs[0]);
  if (!q || !read_quantizer(q, out)) return NULL;
  out->back_scale = scale;
  out->back_zero = zero;
  return q->inputs[0];
}

// The other operand of a node of two, one of which is known; *known is that.
static const assay_value_t* apart(const assay_node_t* n, const assay_value_t** known) {
  if (n->n_inputs != 2) return NULL;
  for (int i = 1; i >= 0; i--)
    if (is_known(n->inputs[i]) && n->inputs[1 - i] && !is_known(n->inputs[1 - i])) {
      *known = n->inputs[i];
      return n->inputs[1 - i];
    }
  return NULL;
}

// From the last quantizer to the quotient.
static const assay_node_t* read_stages(walk_t* w, const assay_node_t* last) {
  assay_quantized_norm_t* norm = &w->norm;
  assay_norm_step_t step;
  if (!read_quantizer(last, &step)) return NULL;
  const assay_value_t* v = last->inputs[0];
  for (;;) {
    const assay_node_t* n = take(w, v);
    if (!n) return NULL;
    if (assay_is(n, "Div")) break;
    if (norm->n_stages == MAX_STAGES) return NULL;
    assay_norm_stage_t* s = &norm->stages[norm->n_stages++];
    *s = (assay_norm_stage_t){.step = step};
    if (assay_is(n, "Add")) {
      if (!(v = apart(n, &s->term))) return NULL;
      if (v->producer && assay_is(v->producer, "Mul") && !(n = take(w, v))) return NULL;
    }
    if (assay_is(n, "Mul") && !(v = apart(n, &s->factor))) return NULL;
    if (v == n->outputs[0] || (!s->factor && !s->term)) return NULL;
    if (!(v = before_step(w, v, &step)) || !step.is_there) return NULL;
  }
  norm->of_quotient = step;
  for (int i = 0; i < norm->n_stages / 2; i++) {
    const assay_norm_stage_t t = norm->stages[i];
    norm->stages[i] = norm->stages[norm->n_stages - 1 - i];
    norm->stages[norm->n_stages - 1 - i] = t;
  }
  return v->producer;
}

// The axes of a ReduceMean that keeps its dimensions.
static bool read_axes(const assay_node_t* n, int rank, bool* axes) {
  return assay_attr_i64(n, "keepdims", 1) && assay_reduced_axes(n, rank, axes);
}

// d * d or d ^ 2: d.
static const assay_value_t* squared(const assay_node_t* n) {
  double two = 0;
  if (n->n_inputs != 2) return NULL;
  if (assay_is(n, "Mul")) return n->inputs[0] == n->inputs[1] ? n->inputs[0] : NULL;
  return assay_is(n, "Pow") && assay_pass_number(n->inputs[1], &two) && two == 2 ? n->inputs[0]
                                                                                 : NULL;
}

// From the root to the variance's ReduceMean.
static const assay_node_t* read_root(walk_t* w, const assay_value_t* v) {
  assay_quantized_norm_t* norm = &w->norm;
  if (!(v = before_step(w, v, &norm->of_root))) return NULL;
  const assay_node_t* n = take_op(w, v, "Sqrt");
  if (!n || !(v = before_step(w, n->inputs[0], &norm->of_sum))) return NULL;
  n = take_op(w, v, "Add");
  if (!n || !(v = apart(n, &norm->epsilon))) return NULL;
  if (!(v = before_step(w, v, &norm->of_variance))) return NULL;
  if (!norm->of_variance.is_there && !norm->of_sum.is_there && !norm->of_root.is_there) return NULL;
  return take_op(w, v, "ReduceMean");
}

// d, whose squares' mean that is; the same d is divided.
static bool read_difference(walk_t* w, const assay_value_t* d, const assay_node_t* variance) {
  assay_quantized_norm_t* norm = &w->norm;
  bool other[ASSAY_MAX_RANK];
  const assay_node_t* square = take(w, variance->inputs[0]);
  if (!square || squared(square) != d) return false;
  const assay_node_t* n = take_op(w, d, "Sub");
  if (!n || n->n_inputs != 2) return false;
  const assay_node_t* mean = take_op(w, n->inputs[1], "ReduceMean");
  const assay_value_t* x = n->inputs[0];
  if (!mean || mean->inputs[0] != x || !x || !x->producer) return false;
  norm->rank = assay_rank_of(x);
  w->dequantizer = x->producer;
  if (norm->rank < 1 || norm->rank > (int)(sizeof norm->axes / sizeof *norm->axes) ||
      !read_axes(mean, norm->rank, norm->axes) || !read_axes(variance, norm->rank, other))
    return false;
  for (int i = 0; i < norm->rank; i++) norm->n_axes += norm->axes[i];
  return memcmp(other, norm->axes, (size_t)norm->rank * sizeof *other) == 0;
}

static bool read_input(walk_t* w) {
  assay_quantized_norm_t* norm = &w->norm;
  const assay_node_t* n = w->dequantizer;
  if (!assay_int8_is_dequantizer(n) || assay_pass_constant(n->inputs[0]) ||
      !assay_quantizer_numbers(n, &norm->x_scale, &norm->x_zero))
    return false;
  norm->x = n->inputs[0];
  norm->x_type = assay_elem_of(norm->x);
  return true;
}

// All but the dequantizer in front is noted.
static bool read_back(walk_t* w, const assay_node_t* last) {
  w->nodes[w->n++] = last;
  const assay_node_t* quotient = read_stages(w, last);
  if (!quotient || quotient->n_inputs != 2) return false;
  const assay_node_t* variance = read_root(w, quotient->inputs[1]);
  if (!variance || !read_difference(w, quotient->inputs[0], variance) || !read_input(w))
    return false;
  w->norm.y = last->outputs[0];
  return true;
}

// Normalized over channels of an image, or over the last dimensions: elements that lie together in
// one of the layouts.
static bool has_rows(const assay_quantized_norm_t* norm) {
  bool at_end = true;
  for (int i = 0; i < norm->rank; i++) at_end &= norm->axes[i] == (i >= norm->rank - norm->n_axes);
  return at_end || (norm->rank >= 3 && norm->n_axes == 1 && norm->axes[1]);
}

// ---- of a layer ---------------------------------------------------------------------------------

typedef struct members {
  const assay_node_t* const* nodes;
  size_t n;
} members_t;

static bool is_member(const assay_node_t* n, const void* user) {
  const members_t* m = user;
  for (size_t i = 0; i < m->n; i++)
    if (m->nodes[i] == n) return true;
  return false;
}

bool assay_quantized_norm_read(const assay_node_t* const* nodes, size_t n,
                               assay_quantized_norm_t* out) {
  const members_t m = {nodes, n};
  walk_t w = {.inside = is_member, .user = &m};
  if (n < 8 || n > MAX_NODES || !assay_int8_is_quantizer(nodes[n - 1]) ||
      !read_back(&w, nodes[n - 1]) || !is_member(w.dequantizer, &m) || w.n + 1 != n)
    return false;
  *out = w.norm;
  return true;
}

// ---- of the graph -------------------------------------------------------------------------------

typedef struct job {
  assay_pass_context_t* c;
  assay_uses_t uses;
} job_t;

static bool is_free(const assay_node_t* n, const void* user) {
  const job_t* j = user;
  return assay_pass_may_group(j->c, n) && !n->outputs[0]->is_output;
}

// Whether every value that the noted nodes make, but for the last one's, is read by them alone.
static bool is_closed(const job_t* j, const walk_t* w) {
  for (size_t i = 1; i < w->n; i++) {
    const assay_value_t* v = w->nodes[i]->outputs[0];
    int inside = 0;
    for (size_t k = 0; k < w->n; k++)
      for (size_t a = 0; a < w->nodes[k]->n_inputs; a++) inside += w->nodes[k]->inputs[a] == v;
    if (inside != assay_uses_of(&j->uses, v)) return false;
  }
  return true;
}

// A parameter is one number, or one for each element that is normalized.
static bool fits(const assay_quantized_norm_t* norm, const assay_value_t* v, bool only_one) {
  const int rank = assay_rank_of(v);
  if (!v) return true;
  if (rank < 0 || rank > norm->rank || assay_elem_of(v) != ASSAY_TYPE_FLOAT) return false;
  bool one = true, all = !only_one;
  for (int i = 0; i < norm->rank; i++) {
    const int k = i - (norm->rank - rank);
    const int64_t d = k < 0 ? 1 : assay_dim_of(v, k);
    one &= d == 1;
    all &= norm->axes[i] ? d == assay_dim_of(norm->x, i) : d == 1;
  }
  return one || all;
}

// Sums of squares of so many elements fit into int32.
static bool has_size(const assay_quantized_norm_t* norm) {
  int64_t size = 1;
  for (int i = 0; i < norm->rank; i++) {
    const int64_t d = norm->axes[i] ? assay_dim_of(norm->x, i) : 1;
    if (d < 1 || !assay_mul_i64(size, d, &size) || size > ASSAY_QUANTIZED_NORM_SIZE) return false;
  }
  return true;
}

static bool is_norm(const job_t* j, walk_t* w, const assay_node_t* last) {
  *w = (walk_t){.inside = is_free, .user = j};
  if (assay_pass_is_grouped(j->c, last) || last->graph != j->c->model->graph ||
      !assay_int8_is_quantizer(last) || !read_back(w, last) || !has_rows(&w->norm) ||
      !has_size(&w->norm) || !is_closed(j, w) || assay_pass_is_grouped(j->c, w->dequantizer) ||
      w->dequantizer->graph != last->graph || !assay_same_static_shape(w->norm.x, w->norm.y) ||
      !fits(&w->norm, w->norm.epsilon, true))
    return false;
  for (int i = 0; i < w->norm.n_stages; i++)
    if (!fits(&w->norm, w->norm.stages[i].factor, false) ||
        !fits(&w->norm, w->norm.stages[i].term, false))
      return false;
  return true;
}

// ---- what is made -------------------------------------------------------------------------------

static int place(const job_t* j, const assay_node_t* n) {
  return n->id < j->uses.n_nodes ? j->uses.position[n->id] : -1;
}

// In the graph's order; the dequantizer, which may be new, is the first one.
static void sort(const job_t* j, assay_node_t** nodes, size_t n) {
  for (size_t i = 1; i < n; i++)
    for (size_t k = i; k && place(j, nodes[k]) < place(j, nodes[k - 1]); k--) {
      assay_node_t* t = nodes[k];
      nodes[k] = nodes[k - 1];
      nodes[k - 1] = t;
    }
}

static assay_status_t group(job_t* j, const walk_t* w) {
  assay_node_t* all[MAX_NODES + 1];
  assay_quantized_norm_t read;
  const assay_value_t* x = w->dequantizer->outputs[0];
  assay_node_t* first = (assay_node_t*)(uintptr_t)w->dequantizer;
  if (w->n == MAX_NODES) return NULL;
  // It is read twice by the layer.
  if (x->is_output || assay_uses_of(&j->uses, x) != 2)
    ASSAY_TRY(assay_node_repeat_for(j->c, &j->uses, first, w->nodes, w->n, &first));
  all[0] = first;
  for (size_t i = 0; i < w->n; i++) all[i + 1] = (assay_node_t*)(uintptr_t)w->nodes[i];
  sort(j, all, w->n + 1);
  if (!assay_quantized_norm_read((const assay_node_t* const*)all, w->n + 1, &read)) return NULL;
  return assay_pass_group(j->c, all, w->n + 1, "a normalization with quantizers inside");
}

// From the end: the longest one is found first.
static assay_status_t run(assay_pass_context_t* c) {
  const assay_graph_t* g = c->model->graph;
  job_t j = {.c = c};
  ASSAY_TRY(assay_uses_create(c->model, &j.uses));
  assay_status_t st = NULL;
  for (size_t i = g->n_nodes; !st && i-- > 0;) {
    walk_t w;
    const size_t n = g->n_nodes;
    if (is_norm(&j, &w, g->nodes[i])) st = group(&j, &w);
    i += g->n_nodes - n;
  }
  assay_uses_deinit(&j.uses);
  return st;
}

const assay_pass_t assay_pass_quantized_norms = {
    .name = "quantized_norms",
    .summary = "the nodes of a normalization with quantizers between them become one layer",
    .run = run,
};
