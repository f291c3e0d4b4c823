// Slices of one tensor along one axis that together are all of it, one after the other, become one
// Split.
#include <string.h>

#include "passes/edit.h"

enum { X, STARTS, ENDS, AXES, STEPS, MAX_PARTS = 64 };

typedef struct part {
  assay_node_t* node;
  int axis;
  int64_t from, to;  // of the axis, clamped
} part_t;

// A Slice along one axis, forwards, without gaps, of constant places.
static bool read_slice(assay_node_t* n, part_t* out) {
  int64_t starts[ASSAY_MAX_RANK], ends[ASSAY_MAX_RANK], axes[ASSAY_MAX_RANK], step = 1;
  if (!assay_is(n, "Slice") || n->n_inputs <= ENDS || !n->inputs[X] || !n->outputs[0]) return false;
  const int rank = assay_rank_of(n->inputs[X]);
  if (assay_ints_of(n->inputs[STARTS], ASSAY_MAX_RANK, starts) != 1 ||
      assay_ints_of(n->inputs[ENDS], ASSAY_MAX_RANK, ends) != 1)
    return false;
  axes[0] = 0;
  if (n->n_inputs > AXES && n->inputs[AXES] &&
      assay_ints_of(n->inputs[AXES], ASSAY_MAX_RANK, axes) != 1)
    return false;
  if (n->n_inputs > STEPS && n->inputs[STEPS] && assay_ints_of(n->inputs[STEPS], 1, &step) != 1)
    return false;
  if (axes[0] < 0) axes[0] += rank;
  if (step != 1 || axes[0] < 0 || axes[0] >= rank) return false;
  const int64_t size = assay_dim_of(n->inputs[X], (int)axes[0]);
  if (size < 0) return false;
  // Source: ONNX Slice 10 to 13: negative places count from the end, others are clamped.
  int64_t places[2] = {starts[0], ends[0]};
  for (int i = 0; i < 2; i++) {
    if (places[i] < 0) places[i] = places[i] < -size ? 0 : places[i] + size;
    if (places[i] > size) places[i] = size;
  }
  *out = (part_t){n, (int)axes[0], places[0], places[1]};
  return places[0] < places[1];
}

// All Slices of that value along that axis, in the order of their places; 0: they are not all of
// it.
static size_t find_parts(const assay_edit_t* e, const part_t* like, part_t* parts) {
  const assay_value_t* x = like->node->inputs[X];
  size_t n = 0;
  if (x->id >= e->uses.n_values) return 0;
  for (int i = e->uses.first[x->id]; i < e->uses.first[x->id + 1]; i++) {
    part_t p;
    assay_node_t* node = e->uses.readers[i];
    if (assay_edit_is_dead(e, node) || node->graph != like->node->graph || !read_slice(node, &p) ||
        node->inputs[X] != x || p.axis != like->axis)
      continue;
    if (n == MAX_PARTS) return 0;
    size_t at = n++;
    for (; at && parts[at - 1].from > p.from; at--) parts[at] = parts[at - 1];
    parts[at] = p;
  }
  if (n < 2 || parts[0].from || parts[n - 1].to != assay_dim_of(x, like->axis)) return 0;
  for (size_t i = 1; i < n; i++)
    if (parts[i].from != parts[i - 1].to) return 0;
  return n;
}

static assay_status_t rewrite(assay_edit_t* e, const part_t* parts, size_t n) {
  const assay_node_t* nodes[MAX_PARTS];
  int64_t sizes[MAX_PARTS];
  assay_node_t *first = parts[0].node, *split = NULL;
  assay_value_t* in[2] = {first->inputs[X], NULL};
  const bool by_input = assay_model_opset(e->c->model, "") >= 13;
  for (size_t i = 0; i < n; i++) {
    nodes[i] = parts[i].node;
    sizes[i] = parts[i].to - parts[i].from;
    if (e->uses.position[nodes[i]->id] < e->uses.position[first->id]) first = parts[i].node;
  }
  ASSAY_TRY(assay_pass_record(e->c, ASSAY_PASS_CHANGED, nodes, n,
                              "together they are all of '%s': one Split", in[X]->name));
  if (by_input) ASSAY_TRY(assay_edit_ints(e, first->graph, "split", (int64_t)n, sizes, &in[1]));
  ASSAY_TRY(assay_edit_insert_bare(e, first, "Split", by_input ? 2 : 1, in, n, &split));
  ASSAY_TRY(assay_edit_attr_i(e, split, "axis", parts[0].axis));
  if (!by_input) ASSAY_TRY(assay_edit_attr_ints(e, split, "split", n, sizes));
  for (size_t i = 0; i < n; i++) {
    if (parts[i].node != first) ASSAY_TRY(assay_pass_absorb(e->c, parts[i].node, split));
    assay_edit_kill(e, parts[i].node);
    assay_value_t* y = parts[i].node->outputs[0];
    assay_node_set_output(parts[i].node, 0, NULL);
    assay_node_set_output(split, i, y);
  }
  return NULL;
}

static assay_status_t run(assay_pass_context_t* c) {
  assay_edit_t e = {0};
  ASSAY_TRY(assay_edit_begin(c, &e));
  assay_status_t st = NULL;
  for (size_t k = 0; !st && k < c->model->n_graphs; k++) {
    for (size_t i = 0; !st && i < c->model->graphs[k]->n_nodes; i++) {
      part_t like, parts[MAX_PARTS];
      assay_node_t* n = c->model->graphs[k]->nodes[i];
      if (assay_edit_is_dead(&e, n) || !read_slice(n, &like)) continue;
      const size_t count = find_parts(&e, &like, parts);
      if (count) st = rewrite(&e, parts, count);
    }
  }
  return assay_edit_end(&e, st);
}

const assay_pass_t assay_pass_slices_to_split = {
    .name = "slices_to_split",
    .summary = "Slices that together are all of a tensor become one Split",
    .until_fixpoint = true,
    .run = run,
};
