// Sets of nodes of a graph, by their places in it, and how to make them smaller while a test holds.
#include "edit/reduce/reduce_sets.h"

#include <string.h>

#include "base/alloc.h"

static bool counts(const assay_node_t* n) { return strcmp(n->op_type, "Constant") != 0; }

size_t assay_set_count(const assay_graph_t* g, const bool* nodes) {
  size_t n = 0;
  for (size_t i = 0; i < g->n_nodes; i++) n += nodes[i] && counts(g->nodes[i]);
  return n;
}

size_t assay_set_count_all(const assay_graph_t* g) {
  size_t n = 0;
  for (size_t i = 0; i < g->n_nodes; i++) n += counts(g->nodes[i]);
  return n;
}

// Whether one of `n` reads what another makes.
static bool reads(const assay_node_t* n, const assay_node_t* from) {
  for (size_t i = 0; i < n->n_inputs; i++)
    if (n->inputs[i] && n->inputs[i]->producer == from) return true;
  return false;
}

void assay_set_widen(const assay_graph_t* g, const bool* nodes, bool made, bool* more) {
  for (size_t i = 0; i < g->n_nodes; i++) {
    for (size_t k = 0; nodes[i] && k < g->n_nodes; k++) {
      const bool next = made ? reads(g->nodes[i], g->nodes[k]) : reads(g->nodes[k], g->nodes[i]);
      if (next && counts(g->nodes[k])) more[k] = true;
    }
  }
}

// ---- bisection ----------------------------------------------------------------------------------

static void fill(const assay_graph_t* g, size_t first, size_t end, bool* nodes) {
  for (size_t i = 0; i < g->n_nodes; i++) nodes[i] = i >= first && i < end && counts(g->nodes[i]);
}

// Moves one end of [first, end) towards the other.
static assay_status_t move_end(const assay_graph_t* g, const assay_set_test_t* test, bool last,
                               size_t* first, size_t* end, bool* nodes) {
  // What was seen to fail, and what is too short to.
  size_t fails = last ? *end : *first, holds = last ? *first : *end;
  while ((fails > holds ? fails - holds : holds - fails) > 1) {
    const size_t middle = (holds + fails) / 2;
    bool yes = false, late = false;
    fill(g, last ? *first : middle, last ? middle : *end, nodes);
    ASSAY_TRY(test->fails(test->user, nodes, &yes, &late));
    if (late) break;
    *(yes ? &fails : &holds) = middle;
  }
  *(last ? end : first) = fails;
  return NULL;
}

assay_status_t assay_set_bisect(const assay_graph_t* g, const assay_set_test_t* test, bool* nodes) {
  size_t first = 0, end = g->n_nodes;
  ASSAY_TRY(move_end(g, test, true, &first, &end, nodes));
  ASSAY_TRY(move_end(g, test, false, &first, &end, nodes));
  fill(g, first, end, nodes);
  return NULL;
}

// ---- ddmin --------------------------------------------------------------------------------------

typedef struct minimizing {
  const assay_graph_t* g;
  const assay_set_test_t* test;
  bool *nodes, *fewer;
  size_t* members;  // places of the set's nodes
  size_t n;
} minimizing_t;

static void list(minimizing_t* m) {
  m->n = 0;
  for (size_t i = 0; i < m->g->n_nodes; i++) {
    m->nodes[i] &= counts(m->g->nodes[i]);
    if (m->nodes[i]) m->members[m->n++] = i;
  }
}

// One round with the set in `parts` parts: each is left out once.
static assay_status_t leave_out(minimizing_t* m, size_t parts, bool* out_fewer, bool* out_late) {
  *out_fewer = false;
  for (size_t p = 0; p < parts && !*out_fewer && !*out_late; p++) {
    memcpy(m->fewer, m->nodes, m->g->n_nodes * sizeof *m->fewer);
    for (size_t i = m->n * p / parts; i < m->n * (p + 1) / parts; i++)
      m->fewer[m->members[i]] = false;
    ASSAY_TRY(m->test->fails(m->test->user, m->fewer, out_fewer, out_late));
  }
  if (*out_fewer) memcpy(m->nodes, m->fewer, m->g->n_nodes * sizeof *m->fewer);
  return NULL;
}

// Of a small set: the first node that fails by itself.
static assay_status_t pick_one(minimizing_t* m, bool* out_late) {
  enum { SMALL = 16 };
  bool yes = false;
  for (size_t i = 0; m->n > 2 && m->n <= SMALL && i < m->n && !*out_late; i++) {
    memset(m->fewer, 0, m->g->n_nodes * sizeof *m->fewer);
    m->fewer[m->members[i]] = true;
    ASSAY_TRY(m->test->fails(m->test->user, m->fewer, &yes, out_late));
    if (!yes) continue;
    memcpy(m->nodes, m->fewer, m->g->n_nodes * sizeof *m->fewer);
    break;
  }
  return NULL;
}

static assay_status_t minimize(minimizing_t* m, bool* out_minimal) {
  size_t parts = 2;
  bool fewer = false, late = false;
  list(m);
  ASSAY_TRY(pick_one(m, &late));
  if (late) return *out_minimal = false, NULL;
  for (list(m); m->n > 1; list(m)) {
    if (parts > m->n) parts = m->n;
    ASSAY_TRY(leave_out(m, parts, &fewer, &late));
    if (late) return *out_minimal = false, NULL;
    if (!fewer && parts == m->n) break;
    if (fewer)
      parts = parts > 2 ? parts - 1 : 2;
    else
      parts *= 2;
  }
  *out_minimal = true;
  return NULL;
}

assay_status_t assay_set_minimize(const assay_graph_t* g, const assay_set_test_t* test, bool* nodes,
                                  bool* out_minimal) {
  minimizing_t m = {.g = g, .test = test, .nodes = nodes};
  assay_status_t st = assay_new_array(g->n_nodes, sizeof *m.fewer, &m.fewer);
  if (!st) st = assay_new_array(g->n_nodes, sizeof *m.members, &m.members);
  if (!st) st = minimize(&m, out_minimal);
  assay_free(m.fewer);
  assay_free(m.members);
  return st;
}
