// A normalization of rows and what gives these rows other places after it become one layer, which
// writes each row where it goes: windows are cut so (Swin).
//
// A layer grows from the normalization downwards, over nodes that move whole rows, each value being
// read once, and ends where one value is all that leaves it.
#include "base/alloc.h"
#include "passes/edit.h"
#include "passes/row_moves.h"

enum { X };

typedef struct region {
  const assay_uses_t* uses;
  const bool* of_sizes;
  assay_node_t* nodes[1 + ASSAY_ROW_MOVES];
  size_t n;
  int64_t terms, columns;  // of a normalized row, and what stays side by side
} region_t;

static bool contains(const region_t* r, const assay_node_t* n) {
  for (size_t i = 0; i < r->n; i++)
    if (r->nodes[i] == n) return true;
  return false;
}

// The elements of a row that a node normalizes by itself, with its only output; 0: it is none.
static int64_t normalized_terms(const assay_node_t* n) {
  static const char* const names[] = {"LayerNormalization", "RMSNormalization",
                                      "SimplifiedLayerNormalization"};
  bool known = false;
  int64_t terms = 1, axis = assay_attr_i64(n, "axis", -1);
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) known |= assay_is(n, names[i]);
  if (!known || !n->n_inputs || !n->inputs[X] || !n->n_outputs || !n->outputs[0]) return 0;
  for (size_t i = 1; i < n->n_outputs; i++)
    if (n->outputs[i]) return 0;
  const int rank = assay_rank_of(n->inputs[X]);
  if (axis < 0) axis += rank;
  if (rank < 0 || axis < 0) return 0;
  for (int d = (int)axis; d < rank; d++) {
    const int64_t size = assay_dim_of(n->inputs[X], d);
    if (size < 1 || !assay_mul_i64(terms, size, &terms)) return 0;
  }
  return terms;
}

// The first node in graph order that reads the region and is not in it; NULL if none.
static assay_node_t* next_reader(const region_t* r) {
  assay_node_t* next = NULL;
  for (size_t i = 0; i < r->n; i++)
    for (size_t o = 0; o < r->nodes[i]->n_outputs; o++) {
      const int id = r->nodes[i]->outputs[o]->id;
      for (int k = r->uses->first[id]; k < r->uses->first[id + 1]; k++) {
        assay_node_t* n = r->uses->readers[k];
        if (n->graph != r->nodes[0]->graph || contains(r, n)) continue;
        if (!next || r->uses->position[n->id] < r->uses->position[next->id]) next = n;
      }
    }
  return next;
}

// A Slice leaves rows out, or takes them twice.
static bool join(const assay_pass_context_t* c, region_t* r, assay_node_t* n) {
  int64_t columns;
  if (n->graph != r->nodes[0]->graph || !assay_pass_may_group(c, n) || assay_is(n, "Slice") ||
      !assay_moves_rows(n, r->of_sizes, &columns))
    return false;
  for (size_t k = 0; k < assay_moved_inputs(n); k++)
    if (!contains(r, n->inputs[k]->producer) || !assay_uses_once(r->uses, n->inputs[k]))
      return false;
  for (size_t o = 0; o < n->n_outputs; o++)
    if (!n->outputs[o]) return false;
  columns = assay_common_columns(r->columns, columns);
  if (columns % r->terms || (columns && columns < ASSAY_ROW_COLUMNS)) return false;
  r->columns = columns;
  r->nodes[r->n++] = n;
  return true;
}

// Whether the last node's output is all that leaves the region.
static bool is_closed(const region_t* r) {
  if (r->nodes[r->n - 1]->n_outputs != 1) return false;
  for (size_t i = 0; i + 1 < r->n; i++)
    for (size_t o = 0; o < r->nodes[i]->n_outputs; o++) {
      const assay_value_t* v = r->nodes[i]->outputs[o];
      if (v->is_output) return false;
      for (int k = r->uses->first[v->id]; k < r->uses->first[v->id + 1]; k++)
        if (!contains(r, r->uses->readers[k])) return false;
    }
  return true;
}

static assay_status_t fuse(assay_pass_context_t* c, const assay_uses_t* uses, const bool* of_sizes,
                           assay_node_t* norm) {
  region_t r = {.uses = uses, .of_sizes = of_sizes, .nodes = {norm}, .n = 1};
  size_t closed = 1;
  r.terms = normalized_terms(norm);
  if (!r.terms || !assay_pass_may_group(c, norm)) return NULL;
  while (r.n < sizeof r.nodes / sizeof *r.nodes) {
    assay_node_t* n = next_reader(&r);
    if (!n || !join(c, &r, n)) break;
    if (r.columns && is_closed(&r)) closed = r.n;
  }
  if (closed < 2) return NULL;
  return assay_pass_group(c, r.nodes, closed, "normalized rows, written where they go");
}

static assay_status_t run(assay_pass_context_t* c) {
  assay_graph_t* g = c->model->graph;
  assay_uses_t uses = {0};
  ASSAY_TRY(assay_uses_create(c->model, &uses));
  bool* of_sizes = NULL;
  assay_status_t st = assay_row_moves_sizes(c, &of_sizes);
  for (size_t i = 0; !st && i < g->n_nodes; i++) st = fuse(c, &uses, of_sizes, g->nodes[i]);
  assay_uses_deinit(&uses);
  assay_free(of_sizes);
  return st;
}

const assay_pass_t assay_pass_moved_rows = {
    .name = "moved_rows",
    .summary = "normalizations write rows where Transposes and rolls after them move them",
    .run = run,
};
