// The nodes of attention become one layer (attention.h says why as they are).
//
// From the second product backwards: Softmax over the last dimension; sums with masks, Where by
// masks, and Reshapes between those that leave the last dimension; factors; the first product; and
// on each way into the products and after the second one a Transpose, on the ways in factors, too,
// and what takes Q, K and V out of one product: Split, Squeeze, Reshape.
// The forms of TorchScript, torch.export (the root of the scale on Q and on K) and TensorFlow are
// all of these.
#include "passes/assemble/attention.h"

#include <string.h>

#include "passes/edit.h"

typedef struct walk {
  bool (*inside)(const assay_node_t* n, void* user);  // whether a node may be of the layer
  void* user;
  assay_node_t* nodes[ASSAY_ATTENTION_NODES];
  size_t n;
  assay_attention_nodes_t a;
} walk_t;

// The node that makes a value, if it may be of the layer.
static assay_node_t* maker_of(const walk_t* w, const assay_value_t* v) {
  assay_node_t* n = v && !v->constant ? v->producer : NULL;
  return n && !*n->domain && n->op && w->inside(n, w->user) ? n : NULL;
}

// Notes a node as one of the layer's; one of several outputs is reached several times.
static bool note(walk_t* w, assay_node_t* n) {
  for (size_t i = 0; i < w->n; i++)
    if (w->nodes[i] == n) return true;
  if (w->n == ASSAY_ATTENTION_NODES) return false;
  w->nodes[w->n++] = n;
  return true;
}

// A node with this output alone; it is noted.
static assay_node_t* take(walk_t* w, const assay_value_t* v) {
  assay_node_t* n = maker_of(w, v);
  if (!n || n->outputs[0] != v) return NULL;
  for (size_t i = 1; i < n->n_outputs; i++)
    if (n->outputs[i]) return NULL;
  return note(w, n) ? n : NULL;
}

static bool reads_two(const assay_node_t* n) {
  return n->n_inputs == 2 && n->inputs[0] && n->inputs[1] && !assay_attr_i64(n, "broadcast", 0);
}

// x * number, number * x, x / number: x and the factor.
static const assay_value_t* scaled(const assay_node_t* n, double* factor,
                                   assay_attention_factor_t* out) {
  double x;
  const bool divides = assay_is(n, "Div");
  if ((!divides && !assay_is(n, "Mul")) || !reads_two(n)) return NULL;
  for (int i = 1; i >= 0; i--) {
    const assay_value_t *by = n->inputs[i], *other = n->inputs[1 - i];
    if ((i == 0 && divides) || !assay_pass_number(by, &x)) continue;
    if (assay_rank_of(other) < by->constant->rank || (divides && x == 0)) continue;
    *factor = divides ? 1 / x : x;
    *out = (assay_attention_factor_t){by, divides};
    return other;
  }
  return NULL;
}

static bool add_factor(walk_t* w, double x, assay_attention_factor_t factor) {
  if (w->a.n_factors == ASSAY_ATTENTION_FACTORS) return false;
  w->a.factors[w->a.n_factors++] = factor;
  w->a.scale *= x;
  return true;
}

// ---- ways in and out ----------------------------------------------------------------------------

static bool read_perm(const assay_node_t* n, int rank, int* axes) {
  size_t count = 0;
  const int64_t* perm = assay_attr_ints(n, "perm", &count);
  if (perm && count != (size_t)rank) return false;
  for (int i = 0; i < rank; i++) axes[i] = perm ? (int)perm[i] : rank - 1 - i;
  return true;
}

// Whether sizes along the way follow from the node and its input's: lists are attributes or
// constants.
static bool has_list(const assay_node_t* n, size_t i) {
  return i >= n->n_inputs || !n->inputs[i] || assay_pass_constant(n->inputs[i]);
}

// [..., a * b] as [..., a, b].
static bool splits_last(const assay_node_t* n) {
  const assay_value_t *x = n->inputs[0], *y = n->outputs[0];
  const int rank = assay_rank_of(x);
  if (rank < 1 || assay_rank_of(y) != rank + 1) return false;
  for (int i = 0; i + 1 < rank; i++)
    if (!assay_dim_same(x->type->dims[i], y->type->dims[i])) return false;
  return true;
}

// Whether a node on the way gives a view of what it reads; *last: of a value that lies as it was
// made, only.
static bool is_view(const assay_node_t* n, bool* last) {
  *last = false;
  if (!n->n_inputs || !n->inputs[0] || assay_rank_of(n->inputs[0]) < 1 ||
      assay_rank_of(n->inputs[0]) > ASSAY_ATTENTION_RANK)
    return false;
  if (assay_is(n, "Transpose")) return true;
  if (assay_is(n, "Squeeze") || assay_is(n, "Unsqueeze") || assay_is(n, "Split"))
    return has_list(n, 1);
  if (!assay_is(n, "Reshape")) return false;
  *last = !splits_last(n);
  return true;
}

static int output_of(const assay_node_t* n, const assay_value_t* v) {
  size_t i = 0;
  while (n->outputs[i] != v) i++;
  return (int)i;
}

// An operand of a product: factors and views.
static bool read_operand(walk_t* w, const assay_value_t* v, bool factors,
                         assay_attention_operand_t* out) {
  if (assay_rank_of(v) != w->a.rank) return false;
  for (bool last = false; !last;) {
    assay_node_t* n = maker_of(w, v);
    double x;
    assay_attention_factor_t factor;
    const assay_value_t* inner = n && factors ? scaled(n, &x, &factor) : NULL;
    if (inner) {
      if (!add_factor(w, x, factor) || !note(w, n)) return false;
    } else if (n && out->n_way < ASSAY_ATTENTION_WAY && is_view(n, &last) && note(w, n)) {
      out->way[out->n_way] = n;
      out->outputs[out->n_way++] = output_of(n, v);
      inner = n->inputs[0];
    } else {
      break;
    }
    v = inner;
  }
  for (int i = 0; i < out->n_way / 2; i++) {
    const int k = out->n_way - 1 - i, t = out->outputs[i];
    const assay_node_t* node = out->way[i];
    out->way[i] = out->way[k];
    out->way[k] = node;
    out->outputs[i] = out->outputs[k];
    out->outputs[k] = t;
  }
  out->value = v;
  return v != NULL;
}

static bool read_first(walk_t* w, const assay_node_t* product) {
  return reads_two(product) && assay_rank_of(product->outputs[0]) == w->a.rank &&
         read_operand(w, product->inputs[0], true, &w->a.q) &&
         read_operand(w, product->inputs[1], true, &w->a.k);
}

// ---- scores -------------------------------------------------------------------------------------

static bool read_scores(walk_t* w, const assay_value_t* v, bool below_factor);

static bool add_mask(walk_t* w, assay_attention_mask_t mask) {
  if (w->a.n_masks == ASSAY_ATTENTION_MASKS || !mask.value) return false;
  w->a.masks[w->a.n_masks++] = mask;
  return true;
}

// Whether a mask does not make the scores larger, as far as is known: decoders give the lengths of
// caches and of their masks names of their own. A tactic knows the sizes and takes no mask that
// does.
static bool may_be_as_large(const assay_value_t* scores, const assay_value_t* masked) {
  const int rank = assay_rank_of(scores);
  if (rank < 0 || rank != assay_rank_of(masked)) return false;
  for (int i = 0; i < rank; i++)
    if (assay_dim_differ(scores->type->dims[i], masked->type->dims[i])) return false;
  return true;
}

// One of two ways on; what was noted on the other one is forgotten.
static bool read_masked(walk_t* w, const assay_value_t* scores, assay_attention_mask_t mask) {
  const walk_t before = *w;
  if (may_be_as_large(scores, mask.scores) && add_mask(w, mask) && read_scores(w, scores, false))
    return true;
  *w = before;
  return false;
}

static bool read_where(walk_t* w, const assay_node_t* n) {
  double fill;
  if (n->n_inputs != 3) return false;
  for (int keeps = 0; keeps < 2; keeps++) {
    const assay_value_t *scores = n->inputs[keeps ? 1 : 2], *other = n->inputs[keeps ? 2 : 1];
    const assay_attention_mask_kind_t kind = keeps ? ASSAY_ATTENTION_KEEPS : ASSAY_ATTENTION_DROPS;
    if (!assay_pass_number(other, &fill)) continue;
    if (read_masked(w, scores,
                    (assay_attention_mask_t){kind, n->inputs[0], fill, other, n->outputs[0]}))
      return true;
  }
  return false;
}

// A view of the scores with the same last dimension.
static bool keeps_rows(const assay_node_t* n) {
  const assay_value_t *x = n->inputs[0], *y = n->outputs[0];
  const int r = assay_rank_of(x), s = assay_rank_of(y);
  return r > 0 && s > 0 && assay_dim_same(x->type->dims[r - 1], y->type->dims[s - 1]);
}

// From the Softmax's input back to the first product.
static bool read_scores(walk_t* w, const assay_value_t* v, bool below_factor) {
  double x;
  const assay_node_t* n = take(w, v);
  if (!n) return false;
  if (assay_is(n, "MatMul")) return read_first(w, n);
  if (assay_is(n, "Reshape") && n->inputs[0])
    return keeps_rows(n) && read_scores(w, n->inputs[0], below_factor);
  assay_attention_factor_t factor;
  const assay_value_t* inner = scaled(n, &x, &factor);
  if (inner) return add_factor(w, x, factor) && read_scores(w, inner, true);
  if (below_factor) return false;  // a factor of the mask, too
  if (assay_is(n, "Where")) return read_where(w, n);
  if (!assay_is(n, "Add") || !reads_two(n)) return false;
  for (int i = 0; i < 2; i++)
    if (read_masked(w, n->inputs[i],
                    (assay_attention_mask_t){ASSAY_ATTENTION_ADDED, n->inputs[1 - i], 0, NULL,
                                             n->outputs[0]}))
      return true;
  return false;
}

// Softmax over the last dimension alone. Before opset 13 it is over all from the axis on.
static bool is_softmax(const assay_node_t* n) {
  if (!assay_is(n, "Softmax") || !n->schema) return false;
  const int rank = assay_rank_of(n->outputs[0]);
  const int64_t axis = assay_attr_i64(n, "axis", n->schema->since < 13 ? 1 : -1);
  return rank > 0 && (axis == -1 || axis == rank - 1);
}

// From the second product back. The nodes are noted last first, with gaps.
static bool read_back(walk_t* w, const assay_node_t* product) {
  if (!assay_is(product, "MatMul") || !reads_two(product)) return false;
  w->a.rank = assay_rank_of(product->outputs[0]);
  w->a.scale = 1;
  if (w->a.rank < 2 || w->a.rank > ASSAY_ATTENTION_RANK) return false;
  const assay_node_t* soft = take(w, product->inputs[0]);
  if (!soft || !is_softmax(soft) || assay_rank_of(soft->outputs[0]) != w->a.rank) return false;
  if (!read_scores(w, soft->inputs[0], false)) return false;
  for (int i = 0; i < w->a.n_masks / 2; i++) {
    const assay_attention_mask_t t = w->a.masks[i];
    w->a.masks[i] = w->a.masks[w->a.n_masks - 1 - i];
    w->a.masks[w->a.n_masks - 1 - i] = t;
  }
  w->a.y = product->outputs[0];
  for (int i = 0; i < ASSAY_ATTENTION_RANK; i++) w->a.y_axes[i] = i;
  return read_operand(w, product->inputs[1], false, &w->a.v);
}

// The Transpose of the result: axis i of the product is where the value has it.
static bool read_turn(const assay_node_t* n, assay_attention_nodes_t* a) {
  int perm[ASSAY_ATTENTION_RANK];
  if (!assay_is(n, "Transpose") || !read_perm(n, a->rank, perm)) return false;
  for (int i = 0; i < a->rank; i++) a->y_axes[perm[i]] = i;
  a->y = n->outputs[0];
  return true;
}

// ---- of a layer ---------------------------------------------------------------------------------

typedef struct members {
  const assay_node_t* const* nodes;
  size_t n;
} members_t;

static bool is_member(const assay_node_t* n, void* user) {
  const members_t* m = user;
  for (size_t i = 0; i < m->n; i++)
    if (m->nodes[i] == n) return true;
  return false;
}

bool assay_attention_read(const assay_node_t* const* nodes, size_t n,
                          assay_attention_nodes_t* out) {
  members_t m = {nodes, n};
  walk_t w = {.inside = is_member, .user = &m};
  if (n < 3) return false;
  const assay_node_t *last = nodes[n - 1], *turn = NULL;
  if (assay_is(last, "Transpose") && last->inputs[0]) {
    turn = last;
    last = last->inputs[0]->producer;
    if (!last || !is_member(last, &m)) return false;
  }
  if (!read_back(&w, last) || w.n + 1 + (turn != NULL) != n || (turn && !read_turn(turn, &w.a)))
    return false;
  *out = w.a;
  return true;
}

// ---- of the graph -------------------------------------------------------------------------------

typedef struct finder {
  const assay_pass_context_t* c;
  const assay_uses_t* uses;
  bool single;  // nodes of one output only
} finder_t;

// Each output read once, in the same graph: it can be hidden.
static bool can_hide(const assay_node_t* n, void* user) {
  const finder_t* f = user;
  if (n->graph != f->c->model->graph || assay_pass_is_grouped(f->c, n) ||
      (n->n_outputs > 1 && f->single))
    return false;
  for (size_t i = 0; i < n->n_outputs; i++) {
    const assay_value_t* v = n->outputs[i];
    if (v &&
        (v->is_output || assay_uses_of(f->uses, v) != 1 || !assay_type_is_float(assay_elem_of(v))))
      return false;
  }
  return true;
}

// Whether the layer reads all that its nodes make.
static bool is_whole(const finder_t* f, const walk_t* w, const assay_node_t* product) {
  for (size_t i = 0; i < w->n; i++)
    for (size_t o = 0; o < w->nodes[i]->n_outputs; o++) {
      const assay_value_t* v = w->nodes[i]->outputs[o];
      if (!v) continue;
      const assay_node_t* reader = f->uses->readers[f->uses->first[v->id]];
      bool inside = reader == product;
      for (size_t k = 0; !inside && k < w->n; k++) inside = w->nodes[k] == reader;
      if (!inside) return false;
    }
  return true;
}

static void sort(const assay_uses_t* uses, assay_node_t** nodes, size_t n) {
  for (size_t i = 1; i < n; i++)
    for (size_t k = i; k && uses->position[nodes[k]->id] < uses->position[nodes[k - 1]->id]; k--) {
      assay_node_t* t = nodes[k];
      nodes[k] = nodes[k - 1];
      nodes[k - 1] = t;
    }
}

static assay_status_t group(assay_pass_context_t* c, const assay_uses_t* uses,
                            assay_node_t* product) {
  finder_t f = {.c = c, .uses = uses};
  walk_t w = {.inside = can_hide, .user = &f};
  assay_node_t* all[ASSAY_ATTENTION_NODES + 2];
  assay_attention_nodes_t read;
  if (assay_pass_is_grouped(c, product)) return NULL;
  if (!read_back(&w, product) || !is_whole(&f, &w, product)) {
    f.single = true;
    w = (walk_t){.inside = can_hide, .user = &f};
    if (!read_back(&w, product)) return NULL;
  }
  size_t n = w.n;
  memcpy(all, w.nodes, n * sizeof *all);
  all[n++] = product;
  // A Transpose after it, if nobody else reads the product.
  const assay_value_t* y = product->outputs[0];
  if (can_hide(product, &f)) {
    assay_node_t* turn =
        uses->first[y->id] < uses->first[y->id + 1] ? uses->readers[uses->first[y->id]] : NULL;
    if (turn && turn->graph == product->graph && read_turn(turn, &w.a)) all[n++] = turn;
  }
  sort(uses, all, n);
  if (!assay_attention_read((const assay_node_t* const*)all, n, &read)) return NULL;
  return assay_pass_group(c, all, n, "attention");
}

static assay_status_t run(assay_pass_context_t* c) {
  assay_graph_t* g = c->model->graph;
  assay_uses_t uses = {0};
  ASSAY_TRY(assay_uses_create(c->model, &uses));
  assay_status_t st = NULL;
  for (size_t i = 0; !st && i < g->n_nodes; i++)
    if (assay_is(g->nodes[i], "MatMul")) st = group(c, &uses, g->nodes[i]);
  assay_uses_deinit(&uses);
  return st;
}

const assay_pass_t assay_pass_attention = {
    .name = "attention",
    .summary = "the nodes of attention become one layer",
    .run = run,
};
