// Which part of the graph a fault is in, where no repair of a single node brings golden back.
#include "diagnose/outputs/region.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"

// By position of the search's nodes.
typedef struct part {
  const assay_search_t* s;
  bool *above, *below, *in, *value;  // the last by value id
} part_t;

static void part_deinit(part_t* p) {
  assay_free(p->above);
  assay_free(p->below);
  assay_free(p->in);
  assay_free(p->value);
}

static assay_status_t part_init(const assay_search_t* s, part_t* p) {
  *p = (part_t){.s = s};
  assay_status_t st = assay_new_array(s->n_nodes, sizeof *p->above, &p->above);
  if (!st) st = assay_new_array(s->n_nodes, sizeof *p->below, &p->below);
  if (!st) st = assay_new_array(s->n_nodes, sizeof *p->in, &p->in);
  if (!st) st = assay_new_array((size_t)s->model->n_values, sizeof *p->value, &p->value);
  if (st) part_deinit(p);
  return st;
}

// ---- which nodes reach which -------------------------------------------------------------------

static void clear_values(part_t* p) {
  memset(p->value, 0, (size_t)p->s->model->n_values * sizeof *p->value);
}

static void mark(part_t* p, assay_value_t* const* values, size_t n) {
  for (size_t k = 0; k < n; k++)
    if (values[k]) p->value[values[k]->id] = true;
}

static bool is_marked(const part_t* p, assay_value_t* const* values, size_t n) {
  for (size_t k = 0; k < n; k++)
    if (values[k] && p->value[values[k]->id]) return true;
  return false;
}

// Marks in `out` the nodes of `from`, and those that the marked values are made by.
static void spread_up(part_t* p, const bool* from, bool* out) {
  for (size_t i = p->s->n_nodes; i-- > 0;) {
    const assay_node_t* n = p->s->nodes[i];
    out[i] = (from && from[i]) || is_marked(p, n->outputs, n->n_outputs);
    if (out[i]) mark(p, n->inputs, n->n_inputs);
  }
}

static void spread_down(part_t* p, const bool* from, bool* out) {
  clear_values(p);
  for (size_t i = 0; i < p->s->n_nodes; i++) {
    const assay_node_t* n = p->s->nodes[i];
    out[i] = from[i] || is_marked(p, n->inputs, n->n_inputs);
    if (out[i]) mark(p, n->outputs, n->n_outputs);
  }
}

// ---- outputs that agree ------------------------------------------------------------------------

static bool agrees(const assay_search_target_t* t) {
  const assay_difference_t d = assay_difference(t->truth, t->golden);
  return d.comparable && !d.mismatched && d.rms <= t->explained_rms && d.max <= t->explained_max;
}

// Marks in p->in the nodes that all differing outputs are made by, and of those the ones that no
// agreeing output is made by, if there are any. *out_agreeing: how many outputs agree.
static void find_possible(part_t* p, size_t* out_agreeing) {
  const assay_search_t* s = p->s;
  size_t left = 0;
  *out_agreeing = 0;
  for (size_t i = 0; i < s->n_nodes; i++) p->in[i] = true;
  for (size_t k = 0; k < s->n_targets; k++) {
    if (agrees(&s->targets[k])) {
      ++*out_agreeing;
      continue;
    }
    clear_values(p);
    p->value[s->targets[k].value->id] = true;
    spread_up(p, NULL, p->above);
    for (size_t i = 0; i < s->n_nodes; i++) p->in[i] = p->in[i] && p->above[i];
  }
  clear_values(p);
  for (size_t k = 0; k < s->n_targets; k++)
    if (agrees(&s->targets[k])) p->value[s->targets[k].value->id] = true;
  spread_up(p, NULL, p->above);
  for (size_t i = 0; i < s->n_nodes; i++) left += p->in[i] && !p->above[i];
  for (size_t i = 0; left && i < s->n_nodes; i++) p->in[i] = p->in[i] && !p->above[i];
}

assay_status_t assay_search_possible(const assay_search_t* s, bool* out) {
  part_t p;
  size_t agreeing = 0;
  ASSAY_TRY(part_init(s, &p));
  find_possible(&p, &agreeing);
  memcpy(out, p.in, s->n_nodes * sizeof *out);
  part_deinit(&p);
  return NULL;
}

// ---- the region --------------------------------------------------------------------------------

// Of the possible nodes those whose merit is near the largest; all if none has any.
static void keep_best(part_t* p, const double* merit) {
  static const double NEAR = 0.4, LEAST = 0.02;
  double most = 0;
  for (size_t i = 0; i < p->s->n_nodes; i++)
    if (p->in[i]) most = fmax(most, merit[i]);
  for (size_t i = 0; most > LEAST && i < p->s->n_nodes; i++)
    p->in[i] = p->in[i] && merit[i] >= NEAR * most;
}

static void close_paths(part_t* p) {
  clear_values(p);
  spread_up(p, p->in, p->above);
  spread_down(p, p->in, p->below);
  for (size_t i = 0; i < p->s->n_nodes; i++) p->in[i] = p->above[i] && p->below[i];
}

static void add_value(const assay_value_t* v, const assay_value_t** list, size_t* n) {
  bool known = *n == ASSAY_REGION_VALUES;
  for (size_t i = 0; i < *n; i++) known |= list[i] == v;
  if (!known) list[(*n)++] = v;
}

// Values that go in, but for constants, and those that come out.
static void find_ends(part_t* p, assay_region_t* out) {
  clear_values(p);
  for (size_t i = 0; i < p->s->n_nodes; i++)
    if (p->in[i]) mark(p, p->s->nodes[i]->outputs, p->s->nodes[i]->n_outputs);
  for (size_t i = 0; i < p->s->n_nodes; i++) {
    const assay_node_t* n = p->s->nodes[i];
    for (size_t k = 0; k < n->n_inputs; k++) {
      const assay_value_t* v = n->inputs[k];
      if (!v || v->constant) continue;
      if (p->in[i] && !p->value[v->id]) add_value(v, out->from, &out->n_from);
      if (!p->in[i] && p->value[v->id]) add_value(v, out->to, &out->n_to);
    }
    for (size_t k = 0; p->in[i] && k < n->n_outputs; k++)
      if (n->outputs[k] && n->outputs[k]->is_output) add_value(n->outputs[k], out->to, &out->n_to);
  }
}

assay_status_t assay_search_region(const assay_trials_t* t, assay_region_t* out) {
  part_t p;
  *out = (assay_region_t){0};
  ASSAY_TRY(part_init(t->s, &p));
  find_possible(&p, &out->agreeing);
  keep_best(&p, t->merit);
  close_paths(&p);
  for (size_t i = 0; i < t->s->n_nodes; i++) {
    if (!p.in[i]) continue;
    if (out->n_nodes < ASSAY_REGION_NODES) out->nodes[out->n_nodes] = t->s->nodes[i];
    out->n_nodes++;
  }
  find_ends(&p, out);
  part_deinit(&p);
  return NULL;
}
