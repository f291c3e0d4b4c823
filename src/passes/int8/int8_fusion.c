// Nodes between DequantizeLinear and QuantizeLinear become layers that are computed on integers:
// convolutions and matrix products with bias, BatchNormalization, activation and additions of other
// tensors; pointwise nodes of quantized tensors; one operation of float32 tensors before a
// quantizer; requantizations. What such a layer computes, to the last bit, is said in
// ops/quant/int8.h.
//
// A DequantizeLinear that several nodes read is repeated for each of them first: inside an int8
// layer it costs nothing. Repetitions that end in no layer are taken back.
#include <string.h>

#include "base/alloc.h"
#include "passes/int8/quantizers.h"

enum { MAX_NODES = 24 };

// ---- repeated dequantizers ---------------------------------------------------------------------

typedef struct repeat {
  assay_node_t *node, *of, *reader;
} repeat_t;

typedef struct job {
  assay_pass_context_t* c;
  assay_uses_t uses;
  repeat_t* repeats;
  size_t n_repeats, cap_repeats;
} job_t;

static bool is_dequantizer(const assay_node_t* n) {
  return strcmp(n->op_type, "DequantizeLinear") == 0 && n->op && n->n_inputs >= 2 &&
         n->n_outputs == 1 && n->outputs[0] && n->graph == n->graph->model->graph;
}

static bool wants_own(const job_t* j, const assay_node_t* reader) {
  return !assay_pass_is_grouped(j->c, reader) &&
         (assay_int8_is_norm(reader) || assay_int8_is_anchor(reader) || assay_int8_knows(reader) ||
          assay_int8_is_quantizer(reader));
}

// A node that does the same for one reader alone; the reader is changed.
static assay_status_t repeat_for(job_t* j, assay_node_t* n, assay_node_t* reader, size_t at) {
  const assay_value_t* from = n->outputs[0];
  assay_node_t* copy = NULL;
  ASSAY_TRY(assay_grow(&j->repeats, &j->cap_repeats, j->n_repeats + 1, sizeof *j->repeats));
  ASSAY_TRY(assay_node_repeat(j->c, n, at, &copy));
  for (size_t i = 0; i < reader->n_inputs; i++)
    if (reader->inputs[i] == from) reader->inputs[i] = copy->outputs[0];
  j->repeats[j->n_repeats++] = (repeat_t){copy, n, reader};
  return NULL;
}

// Readers of a value that are nodes of its own graph, each once.
static assay_status_t repeat_node(job_t* j, assay_node_t* n, size_t at) {
  const assay_uses_t* u = &j->uses;
  const int id = n->outputs[0]->id, first = u->first[id], end = u->first[id + 1];
  bool keeps = n->outputs[0]->is_output;  // somebody else reads the original
  for (int i = first; i < end; i++)
    keeps |= u->readers[i]->graph != n->graph || !wants_own(j, u->readers[i]);
  for (int i = first; i < end; i++) {
    assay_node_t* reader = u->readers[i];
    bool again = false;
    for (int k = first; k < i; k++) again |= u->readers[k] == reader;
    if (again || reader->graph != n->graph || !wants_own(j, reader)) continue;
    if (keeps) ASSAY_TRY(repeat_for(j, n, reader, at + 1));
    keeps = true;
  }
  return NULL;
}

static assay_status_t repeat_all(job_t* j) {
  const assay_graph_t* g = j->c->model->graph;
  ASSAY_TRY(assay_uses_create(j->c->model, &j->uses));
  assay_status_t st = NULL;
  for (size_t i = g->n_nodes; !st && i-- > 0;)
    if (is_dequantizer(g->nodes[i]) && !assay_pass_is_grouped(j->c, g->nodes[i]) &&
        j->uses.n_reads[g->nodes[i]->outputs[0]->id] > 1)
      st = repeat_node(j, g->nodes[i], i);
  assay_uses_deinit(&j->uses);
  return st;
}

static bool is_read(const assay_graph_t* g, const assay_value_t* v) {
  if (v->is_output) return true;
  for (size_t i = 0; i < g->n_nodes; i++)
    for (size_t k = 0; k < g->nodes[i]->n_inputs; k++)
      if (g->nodes[i]->inputs[k] == v) return true;
  return false;
}

// What ended in no layer goes back to reading one node.
static assay_status_t take_back(job_t* j) {
  const assay_graph_t* g = j->c->model->graph;
  bool* dead = NULL;
  if (!j->n_repeats) return NULL;
  const size_t n = (size_t)j->c->model->n_node_ids;
  ASSAY_TRY(assay_new_array(n, sizeof *dead, &dead));
  for (size_t i = 0; i < j->n_repeats; i++) {
    repeat_t* r = &j->repeats[i];
    if (assay_pass_is_grouped(j->c, r->node)) continue;
    const assay_node_t* one = assay_pass_is_grouped(j->c, r->of) ? NULL : r->of;
    for (size_t k = 0; !one && k < i; k++)
      if (j->repeats[k].of == r->of && !assay_pass_is_grouped(j->c, j->repeats[k].node) &&
          !dead[j->repeats[k].node->id])
        one = j->repeats[k].node;
    if (!one) continue;
    for (size_t k = 0; k < r->reader->n_inputs; k++)
      if (r->reader->inputs[k] == r->node->outputs[0]) r->reader->inputs[k] = one->outputs[0];
    dead[r->node->id] = true;
  }
  assay_pass_remove(j->c, dead, n);
  memset(dead, 0, n * sizeof *dead);
  for (size_t i = 0; i < j->n_repeats; i++) {
    const assay_node_t* of = j->repeats[i].of;
    if (of->outputs[0] && !assay_pass_is_grouped(j->c, of) && !is_read(g, of->outputs[0]))
      dead[of->id] = true;
  }
  assay_pass_remove(j->c, dead, n);
  assay_free(dead);
  return NULL;
}

// ---- regions -----------------------------------------------------------------------------------

typedef struct region {
  job_t* j;
  assay_node_t* nodes[MAX_NODES];
  size_t n;
} region_t;

static bool contains(const region_t* r, const assay_node_t* n) {
  for (size_t i = 0; i < r->n; i++)
    if (r->nodes[i] == n) return true;
  return false;
}

static int n_reads(const region_t* r, const assay_value_t* v) { return r->j->uses.n_reads[v->id]; }

static int reads_inside(const region_t* r, const assay_value_t* v) {
  int n = 0;
  for (size_t i = 0; i < r->n; i++)
    for (size_t k = 0; k < r->nodes[i]->n_inputs; k++) n += r->nodes[i]->inputs[k] == v;
  return n;
}

// Whether only `last`'s output is read outside.
static bool is_closed(const region_t* r, const assay_node_t* last) {
  for (size_t i = 0; i < r->n; i++) {
    const assay_value_t* v = r->nodes[i]->outputs[0];
    if (r->nodes[i] != last && reads_inside(r, v) != n_reads(r, v)) return false;
  }
  return true;
}

static bool is_free(const region_t* r, const assay_node_t* n) {
  return n && n->graph == r->j->c->model->graph && !assay_pass_is_grouped(r->j->c, n) &&
         n->n_outputs == 1 && n->outputs[0];
}

static bool push(region_t* r, assay_node_t* n) {
  if (contains(r, n)) return true;
  if (r->n == MAX_NODES) return false;
  r->nodes[r->n++] = n;
  return true;
}

// The dequantizer after a value, if a layer can have it for itself; what quantizes a constant in
// front of it comes along.
static bool take_dequantizer(region_t* r, const assay_value_t* v) {
  assay_node_t* n = v ? v->producer : NULL;
  if (!is_free(r, n) || !is_dequantizer(n) || n->outputs[0]->is_output) return false;
  assay_node_t* q = n->inputs[0]->producer;
  const bool folds = is_free(r, q) && assay_int8_is_quantizer(q) && !q->outputs[0]->is_output &&
                     assay_pass_constant(q->inputs[0]) && n_reads(r, q->outputs[0]) == 1;
  return push(r, n) && (!folds || push(r, q));
}

static assay_status_t group(region_t* r, size_t n, const char* why, bool* out_done) {
  const assay_uses_t* u = &r->j->uses;
  assay_node_t* nodes[MAX_NODES];
  assay_int8_t* int8 = NULL;
  assay_tensor_t* weights = NULL;
  for (size_t i = 0; i < n; i++) {
    size_t k = i;
    for (; k && u->position[nodes[k - 1]->id] > u->position[r->nodes[i]->id]; k--)
      nodes[k] = nodes[k - 1];
    nodes[k] = r->nodes[i];
  }
  ASSAY_TRY(assay_int8_read(r->j->c->rewrite->arena, (const assay_node_t* const*)nodes, n, &int8,
                            &weights));
  if (weights) ASSAY_TRY(assay_model_take_tensor(r->j->c->model, weights));
  *out_done = int8 != NULL;
  return int8 ? assay_pass_group_int8(r->j->c, nodes, n, int8, why) : NULL;
}

// ---- contractions ------------------------------------------------------------------------------

// The first node in graph order that reads the region and is not in it; NULL if none.
static assay_node_t* next_reader(const region_t* r) {
  const assay_uses_t* u = &r->j->uses;
  assay_node_t* next = NULL;
  for (size_t i = 0; i < r->n; i++) {
    const int id = r->nodes[i]->outputs[0]->id;
    for (int k = u->first[id]; k < u->first[id + 1]; k++) {
      assay_node_t* n = u->readers[k];
      if (n->graph != r->nodes[0]->graph || contains(r, n)) continue;
      if (!next || u->position[n->id] < u->position[next->id]) next = n;
    }
  }
  return next;
}

// A pointwise node joins with the dequantizers that it reads besides. Other values stay what they
// are: the layer's output alone is read outside, so that none of them depends on what it hides.
static bool join(region_t* r, assay_node_t* n, const assay_value_t* shape) {
  const size_t before = r->n;
  const bool norm = strcmp(n->op_type, "BatchNormalization") == 0 && !*n->domain;
  if (!is_free(r, n) || !(norm || assay_int8_knows(n)) ||
      !assay_same_static_shape(n->outputs[0], shape))
    return false;
  for (size_t i = 0; i < n->n_inputs; i++) {
    const assay_value_t* v = n->inputs[i];
    if (!v || assay_pass_constant(v) || (v->producer && contains(r, v->producer))) continue;
    if (take_dequantizer(r, v) || assay_int8_takes_real(v, shape)) continue;
    r->n = before;
    return false;
  }
  if (push(r, n)) return true;
  r->n = before;
  return false;
}

static assay_status_t fuse_anchor(job_t* j, assay_node_t* anchor) {
  region_t r = {.j = j, .nodes = {anchor}, .n = 1};
  size_t closed[MAX_NODES], n_closed = 0;
  if (!is_free(&r, anchor) || anchor->n_inputs < 2) return NULL;
  for (size_t i = 0; i < anchor->n_inputs; i++) {
    const assay_value_t* v = anchor->inputs[i];
    if (v && !take_dequantizer(&r, v) && (i < 2 || !assay_pass_constant(v))) return NULL;
  }
  if (!is_closed(&r, anchor)) return NULL;
  closed[n_closed++] = r.n;
  assay_node_t* last = anchor;
  while (r.n < MAX_NODES) {
    assay_node_t* n = next_reader(&r);
    const bool ends = n && is_free(&r, n) && assay_int8_is_quantizer(n);
    if (!n || !(ends ? push(&r, n) : join(&r, n, anchor->outputs[0]))) break;
    last = n;
    if (is_closed(&r, last)) closed[n_closed++] = r.n;
    if (ends) break;
  }
  bool done = false;
  assay_status_t st = NULL;
  while (!st && !done && n_closed--)
    st = group(&r, closed[n_closed], "a contraction on integers and what is done to its sums",
               &done);
  return st;
}

// ---- pointwise nodes ---------------------------------------------------------------------------

static bool computes(const assay_node_t* n) { return assay_int8_knows(n) || assay_int8_is_norm(n); }

// From a quantizer, or a pointwise node whose readers take floats, upwards as far as quantized
// tensors and constants: all of it, or nothing.
static assay_status_t fuse_pointwise(job_t* j, assay_node_t* last) {
  region_t r = {.j = j, .nodes = {last}, .n = 1};
  bool done = false;
  for (size_t i = 0; i < r.n; i++) {
    assay_node_t* n = r.nodes[i];
    if (is_dequantizer(n)) continue;
    const size_t end = assay_int8_is_quantizer(n) ? 1 : n->n_inputs;
    for (size_t k = 0; k < end; k++) {
      const assay_value_t* v = n->inputs[k];
      if (!v || assay_pass_constant(v) || (v->producer && contains(&r, v->producer))) continue;
      if (take_dequantizer(&r, v)) continue;
      if (!is_free(&r, v->producer) || !computes(v->producer) || v->is_output ||
          !push(&r, v->producer))
        return NULL;
    }
  }
  if (r.n < 2 || !is_closed(&r, last)) return NULL;
  return group(&r, r.n, "pointwise nodes of quantized tensors", &done);
}

// Whether a layer may read a value as a float32 one, and no other fusion wants what reads it: it is
// the output of a layer that is whole, or of none that takes pointwise nodes.
static bool is_made(const region_t* r, const assay_value_t* v, const assay_value_t* y) {
  const assay_node_t* n = v->producer;
  return assay_int8_takes_real(v, y) && (!n || assay_pass_is_grouped(r->j->c, n) ||
                                         !(assay_int8_is_anchor(n) || assay_pass_is_fusible(n)));
}

// The node before `n`, which nothing else reads.
static assay_node_t* only_maker(const region_t* r, const assay_value_t* v) {
  assay_node_t* n = v ? v->producer : NULL;
  const bool own =
      is_free(r, n) && n->op && assay_int8_knows(n) && !v->is_output && n_reads(r, v) == 1;
  return own ? n : NULL;
}

// A quantizer with one operation of two tensors before it, and functions of one in between: what is
// not quantized there is read as float32.
static assay_status_t fuse_reals(job_t* j, assay_node_t* last) {
  region_t r = {.j = j, .nodes = {last}, .n = 1};
  const assay_value_t* y = last->outputs[0];
  double p[2];
  bool binary = false, done = false;
  for (assay_node_t* n = last; !binary;) {
    n = only_maker(&r, n->inputs[0]);
    if (!n || assay_int8_function(n, p, &binary) < 0 || !push(&r, n)) return NULL;
    for (size_t k = 0; binary && k < n->n_inputs; k++) {
      const assay_value_t* v = n->inputs[k];
      if (!v || !(assay_pass_constant(v) || take_dequantizer(&r, v) || is_made(&r, v, y)))
        return NULL;
    }
  }
  if (!is_closed(&r, last)) return NULL;
  return group(&r, r.n, "an operation on tensors and its quantizer", &done);
}

static assay_status_t fuse_all(job_t* j) {
  const assay_graph_t* g = j->c->model->graph;
  ASSAY_TRY(assay_uses_create(j->c->model, &j->uses));
  assay_status_t st = NULL;
  for (size_t i = 0; !st && i < g->n_nodes; i++)
    if (assay_int8_is_anchor(g->nodes[i])) st = fuse_anchor(j, g->nodes[i]);
  for (size_t i = 0; !st && i < g->n_nodes; i++)
    if (assay_int8_is_quantizer(g->nodes[i]) && !assay_pass_is_grouped(j->c, g->nodes[i]))
      st = fuse_pointwise(j, g->nodes[i]);
  for (size_t i = 0; !st && i < g->n_nodes; i++)
    if (assay_int8_is_quantizer(g->nodes[i]) && !assay_pass_is_grouped(j->c, g->nodes[i]))
      st = fuse_reals(j, g->nodes[i]);
  for (size_t i = g->n_nodes; !st && i-- > 0;)
    if (!assay_pass_is_grouped(j->c, g->nodes[i]) && computes(g->nodes[i]))
      st = fuse_pointwise(j, g->nodes[i]);
  assay_uses_deinit(&j->uses);
  return st;
}

static assay_status_t run(assay_pass_context_t* c) {
  job_t j = {.c = c};
  assay_status_t st = repeat_all(&j);
  if (!st) st = fuse_all(&j);
  if (!st) st = take_back(&j);
  assay_free(j.repeats);
  return st;
}

const assay_pass_t assay_pass_int8_fusion = {
    .name = "int8_fusion",
    .summary = "nodes between quantizers become layers on integers",
    .run = run,
};
