// Parts of one tensor that are joined in another order, as rolls of windows (Swin), shuffles of
// channels and patches of Slices (Focus) are written: one layer, which moves every element once.
//
// It grows from its last Concat upwards, over Concats, Slices and Splits that it alone reads.
#include "passes/edit.h"
#include "passes/parts.h"

enum { MAX_NODES = 16 };

typedef struct joined {
  const assay_uses_t* uses;
  assay_node_t* nodes[MAX_NODES];  // the last one of the layer first
  size_t n;
} joined_t;

bool assay_takes_parts(const assay_node_t* n) {
  enum { X, STEPS = 4, AXES = 16 };
  int64_t steps[AXES];
  if (!assay_is(n, "Split") && !assay_is(n, "Slice")) return false;
  const assay_type_t elem = n->n_inputs ? assay_elem_of(n->inputs[X]) : ASSAY_TYPE_UNDEFINED;
  if (elem != ASSAY_TYPE_FLOAT && elem != ASSAY_TYPE_FLOAT16 && elem != ASSAY_TYPE_BFLOAT16)
    return false;
  for (size_t i = 1; i < n->n_inputs; i++)
    if (n->inputs[i] && !assay_pass_constant(n->inputs[i])) return false;
  if (n->n_inputs <= STEPS || !n->inputs[STEPS]) return true;
  const int count = assay_ints_of(n->inputs[STEPS], AXES, steps);
  for (int i = 0; i < count; i++)
    if (steps[i] < 1) return false;
  return count >= 0;
}

static bool contains(const joined_t* j, const assay_node_t* n) {
  for (size_t i = 0; i < j->n; i++)
    if (j->nodes[i] == n) return true;
  return false;
}

static bool reads_all_of(const joined_t* j, const assay_node_t* n) {
  for (size_t o = 0; o < n->n_outputs; o++) {
    const assay_value_t* v = n->outputs[o];
    int inside = 0;
    if (!v) continue;
    for (size_t i = 0; i < j->n; i++)
      for (size_t k = 0; k < j->nodes[i]->n_inputs; k++) inside += j->nodes[i]->inputs[k] == v;
    if (v->is_output || inside != j->uses->n_reads[v->id]) return false;
  }
  return true;
}

static bool may_join(const assay_pass_context_t* c, const joined_t* j, const assay_node_t* n) {
  return n && n->graph == j->nodes[0]->graph && !contains(j, n) && assay_pass_may_group(c, n) &&
         (assay_is(n, "Concat") || assay_takes_parts(n)) && reads_all_of(j, n);
}

// Adds one node that may join; false if there is none.
static bool grow(const assay_pass_context_t* c, joined_t* j) {
  for (size_t i = 0; i < j->n && j->n < MAX_NODES; i++) {
    const size_t data = assay_is(j->nodes[i], "Concat") ? j->nodes[i]->n_inputs : 1;
    for (size_t k = 0; k < data; k++) {
      const assay_value_t* v = j->nodes[i]->inputs[k];
      if (!v || !may_join(c, j, v->producer)) continue;
      j->nodes[j->n++] = v->producer;
      return true;
    }
  }
  return false;
}

// Whether all elements come from one tensor: caches that are joined with something new are another
// thing (exec/append.h).
static bool is_of_one(const joined_t* j) {
  const assay_value_t* x = NULL;
  for (size_t i = 0; i < j->n; i++) {
    const size_t data = assay_is(j->nodes[i], "Concat") ? j->nodes[i]->n_inputs : 1;
    for (size_t k = 0; k < data; k++) {
      const assay_value_t* v = j->nodes[i]->inputs[k];
      if (v && v->producer && contains(j, v->producer)) continue;
      if (!v || (x && x != v)) return false;
      x = v;
    }
  }
  return x && !assay_pass_constant(x);
}

static assay_status_t run(assay_pass_context_t* c) {
  assay_graph_t* g = c->model->graph;
  assay_uses_t uses = {0};
  ASSAY_TRY(assay_uses_create(c->model, &uses));
  assay_status_t st = NULL;
  for (size_t i = g->n_nodes; !st && i-- > 0;) {
    joined_t j = {.uses = &uses, .nodes = {g->nodes[i]}, .n = 1};
    if (!assay_is(g->nodes[i], "Concat") || !assay_pass_may_group(c, g->nodes[i])) continue;
    while (grow(c, &j)) continue;
    if (j.n < 2 || !is_of_one(&j)) continue;
    assay_uses_sort(&uses, j.nodes, j.n);
    st = assay_pass_group(c, j.nodes, j.n, "parts of one tensor, joined");
  }
  assay_uses_deinit(&uses);
  return st;
}

const assay_pass_t assay_pass_joined_parts = {
    .name = "joined_parts",
    .summary = "parts of one tensor that are joined again are moved at once",
    .run = run,
};
