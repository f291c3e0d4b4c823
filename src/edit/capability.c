// Which nodes of a model this build cannot run, and why.
#include "edit/capability.h"

#include <string.h>

#include "base/alloc.h"
#include "edit/cut.h"
#include "edit/one_node.h"
#include "onnx/load.h"

// ---- why not ------------------------------------------------------------------------------------

static const assay_valtype_t* type_of(const assay_capability_t* c, const assay_value_t* v) {
  const assay_value_t* known = c->typed ? assay_graph_find(c->typed->graph, v->name) : v;
  const assay_valtype_t* t = known ? (known->type ? known->type : known->declared) : NULL;
  return t && (t->kind != ASSAY_KIND_TENSOR || t->elem) ? t : NULL;
}

static assay_status_t inspect(assay_capability_t* c, assay_one_node_t* one, const assay_node_t* n,
                              const char** out) {
  assay_value_t* const* inputs;
  const assay_valtype_t** types = NULL;
  assay_model_t* single = NULL;
  size_t n_in;
  ASSAY_TRY(assay_one_node_inputs(one, n, &inputs, &n_in));
  ASSAY_TRY(assay_new_array(n_in, sizeof(assay_valtype_t*), &types));
  // What stands after a node that cannot be run has inputs of which nothing is known.
  bool typed = true;
  for (size_t i = 0; i < n_in; i++) typed &= (types[i] = type_of(c, inputs[i])) != NULL;
  assay_status_t st =
      typed ? assay_one_node_prepare(one, n, types, &single) : assay_one_node_check(one, n);
  assay_free(types);
  assay_model_release(single);
  if (!st || assay_status_code(st) == ASSAY_NO_MEMORY) return st;
  c->n_unsupported++;
  assay_status_t reported = assay_arena_strdup(c->arena, assay_one_node_reason(st), out);
  assay_status_free(st);
  return reported;
}

assay_status_t assay_capability_find(assay_model_t* m, assay_capability_t* out) {
  assay_capability_t c = {.n = m->graph->n_nodes};
  assay_one_node_t* one = NULL;
  ASSAY_TRY(assay_arena_create(&c.arena));
  assay_status_t st = assay_onnx_prepare_known(m, 0, NULL, &c.typed);
  // Nodes are then judged by what the file declares.
  if (st && assay_status_code(st) != ASSAY_NO_MEMORY) {
    assay_status_free(st);
    st = NULL;
  }
  if (!st) st = assay_arena_new(c.arena, c.n, sizeof *c.reasons, &c.reasons);
  if (!st) st = assay_one_node_create(m, &one);
  for (size_t i = 0; !st && i < c.n; i++) st = inspect(&c, one, m->graph->nodes[i], &c.reasons[i]);
  assay_one_node_destroy(one);
  if (st) return assay_capability_deinit(&c), st;
  *out = c;
  return NULL;
}

void assay_capability_deinit(assay_capability_t* c) {
  assay_model_release(c->typed);
  assay_arena_destroy(c->arena);
  *c = (assay_capability_t){0};
}

// ---- parts --------------------------------------------------------------------------------------

typedef struct range {
  const assay_model_t* m;
  size_t from, to;
  bool *inside, *outside;  // by value id: nodes of the range, or others, read it
} range_t;

static bool is_in(const range_t* r, size_t i) { return i >= r->from && i < r->to; }

// Marks what the nodes read, bodies and all.
static assay_status_t mark_reads(range_t* r) {
  assay_cut_t ours = {0}, others = {0};
  assay_status_t st = assay_cut_init((assay_model_t*)(uintptr_t)r->m, &ours);
  if (!st) st = assay_cut_init((assay_model_t*)(uintptr_t)r->m, &others);
  for (size_t i = 0; !st && i < r->m->graph->n_nodes; i++)
    st = assay_cut_need_inputs(is_in(r, i) ? &ours : &others, r->m->graph->nodes[i]);
  if (!st && r->m->n_values) {
    memcpy(r->inside, ours.needed, (size_t)r->m->n_values * sizeof *r->inside);
    memcpy(r->outside, others.needed, (size_t)r->m->n_values * sizeof *r->outside);
  }
  assay_cut_deinit(&ours);
  assay_cut_deinit(&others);
  return st;
}

// What the range makes and hands on; what it reads and does not make.
static assay_status_t list_ends(const range_t* r, assay_arena_t* arena, assay_part_t* part) {
  const assay_graph_t* g = r->m->graph;
  assay_part_end_t *in = NULL, *out = NULL;
  size_t n = g->n_inputs;
  for (size_t i = 0; i < g->n_nodes; i++) n += g->nodes[i]->n_outputs;
  ASSAY_TRY(assay_arena_new(arena, n, sizeof *in, &in));
  ASSAY_TRY(assay_arena_new(arena, n, sizeof *out, &out));
  for (size_t i = 0; i < g->n_inputs; i++)
    if (r->inside[g->inputs[i]->id] && !g->inputs[i]->constant)
      in[part->n_in++].name = g->inputs[i]->name;
  for (size_t i = 0; i < g->n_nodes; i++)
    for (size_t k = 0; k < g->nodes[i]->n_outputs; k++) {
      const assay_value_t* v = g->nodes[i]->outputs[k];
      if (!v) continue;
      if (!is_in(r, i) && r->inside[v->id] && !v->constant) in[part->n_in++].name = v->name;
      if (is_in(r, i) && (v->is_output || r->outside[v->id] || !r->inside[v->id]))
        out[part->n_out++].name = v->name;
    }
  part->in = in;
  part->out = out;
  return NULL;
}

assay_status_t assay_capability_cut(const assay_capability_t* c, const assay_model_t* m,
                                    size_t from, size_t to, assay_model_t** out) {
  range_t r = {.m = m, .from = from, .to = to};
  assay_part_t part = {.untyped = true};
  assay_arena_t* arena = NULL;
  assay_str_t notes = {0};
  const size_t n = (size_t)m->n_values;
  assay_status_t st = assay_arena_create(&arena);
  if (!st) st = assay_arena_new(arena, n, sizeof *r.inside, &r.inside);
  if (!st) st = assay_arena_new(arena, n, sizeof *r.outside, &r.outside);
  if (!st) st = mark_reads(&r);
  if (!st) st = list_ends(&r, arena, &part);
  if (!st) st = assay_part_take(m, &part, c->typed, &notes, out);
  assay_str_deinit(&notes);
  assay_arena_destroy(arena);
  return st;
}
