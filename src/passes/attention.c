// The nodes of attention become one layer (attention.h says why as they are).
//
// From the second product backwards: Softmax over the last dimension; sums with masks, Where by
// masks, and Reshapes between those that leave the last dimension; factors; the first product; and
// on each way into the products and behind the second one a Transpose, on the ways in factors, too.
// The forms of TorchScript, torch.export (the root of the scale on Q and on K) and TensorFlow are
// all of these.
#include "passes/attention.h"

#include <string.h>

#include "passes/edit.h"

typedef struct walk {
  bool (*inside)(const assay_node_t* n, void* user);  // whether a node may be of the layer
  void* user;
  assay_node_t* nodes[ASSAY_ATTENTION_NODES];
  size_t n;
  assay_attention_t a;
} walk_t;

// The node that makes a value, if it is of the layer; it is noted.
static assay_node_t* take(walk_t* w, const assay_value_t* v) {
  assay_node_t* n = v && !v->constant ? v->producer : NULL;
  if (!n || *n->domain || !n->op || n->outputs[0] != v || w->n == ASSAY_ATTENTION_NODES ||
      !w->inside(n, w->user))
    return NULL;
  for (size_t i = 1; i < n->n_outputs; i++)
    if (n->outputs[i]) return NULL;
  w->nodes[w->n++] = n;
  return n;
}

static void put_back(walk_t* w) { w->n--; }

static bool reads_two(const assay_node_t* n) {
  return n->n_inputs == 2 && n->inputs[0] && n->inputs[1] && !assay_attr_i64(n, "broadcast", 0);
}

// x * number, number * x, x / number: x and the factor.
static const assay_value_t* scaled(const assay_node_t* n, double* factor) {
  double x;
  const bool divides = assay_is(n, "Div");
  if ((!divides && !assay_is(n, "Mul")) || !reads_two(n)) return NULL;
  for (int i = 1; i >= 0; i--) {
    const assay_value_t *by = n->inputs[i], *other = n->inputs[1 - i];
    if ((i == 0 && divides) || !assay_pass_number(by, &x)) continue;
    if (assay_rank_of(other) < by->constant->rank || (divides && x == 0)) continue;
    *factor = divides ? 1 / x : x;
    return other;
  }
  return NULL;
}

// ---- ways in and out ----------------------------------------------------------------------------

static bool read_perm(const assay_node_t* n, int rank, int* axes) {
  size_t count = 0;
  const int64_t* perm = assay_attr_ints(n, "perm", &count);
  if (perm && count != (size_t)rank) return false;
  for (int i = 0; i < rank; i++) axes[i] = perm ? (int)perm[i] : rank - 1 - i;
  return true;
}

// An operand of a product: factors and one Transpose behind it.
static bool read_operand(walk_t* w, const assay_value_t* v, bool factors,
                         assay_attention_operand_t* out) {
  bool turned = false;
  for (int i = 0; i < ASSAY_ATTENTION_RANK; i++) out->axes[i] = i;
  for (;;) {
    const assay_node_t* n = take(w, v);
    double x;
    if (!n) break;
    const assay_value_t* inner = factors ? scaled(n, &x) : NULL;
    if (inner) {
      w->a.scale *= x;
    } else if (!turned && assay_is(n, "Transpose") && n->inputs[0] &&
               read_perm(n, w->a.rank, out->axes)) {
      inner = n->inputs[0];
      turned = true;
    } else {
      put_back(w);
      break;
    }
    v = inner;
  }
  out->value = v;
  return assay_rank_of(v) == w->a.rank;
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

// One of two ways on; what was noted on the other one is forgotten.
static bool read_masked(walk_t* w, const assay_value_t* scores, assay_attention_mask_t mask) {
  const walk_t before = *w;
  const int rank = assay_rank_of(mask.scores);
  // The mask does not make the scores larger.
  if (rank >= 0 && rank == assay_rank_of(scores) && assay_same_static_shape(scores, mask.scores) &&
      add_mask(w, mask) && read_scores(w, scores, false))
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
    if (read_masked(w, scores, (assay_attention_mask_t){kind, n->inputs[0], fill, n->outputs[0]}))
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
  const assay_value_t* inner = scaled(n, &x);
  if (inner) {
    w->a.scale *= x;
    return read_scores(w, inner, true);
  }
  if (below_factor) return false;  // a factor of the mask, too
  if (assay_is(n, "Where")) return read_where(w, n);
  if (!assay_is(n, "Add") || !reads_two(n)) return false;
  for (int i = 0; i < 2; i++)
    if (read_masked(
            w, n->inputs[i],
            (assay_attention_mask_t){ASSAY_ATTENTION_ADDED, n->inputs[1 - i], 0, n->outputs[0]}))
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
  w->a.y.value = product->outputs[0];
  for (int i = 0; i < ASSAY_ATTENTION_RANK; i++) w->a.y.axes[i] = i;
  return read_operand(w, product->inputs[1], false, &w->a.v);
}

// The Transpose of the result: axis i of the product is where the value has it.
static bool read_turn(const assay_node_t* n, assay_attention_t* a) {
  int perm[ASSAY_ATTENTION_RANK];
  if (!assay_is(n, "Transpose") || !read_perm(n, a->rank, perm)) return false;
  for (int i = 0; i < a->rank; i++) a->y.axes[perm[i]] = i;
  a->y.value = n->outputs[0];
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

bool assay_attention_read(const assay_node_t* const* nodes, size_t n, assay_attention_t* out) {
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
} finder_t;

// Read once, in the same graph: it can be hidden.
static bool can_hide(const assay_node_t* n, void* user) {
  const finder_t* f = user;
  const assay_value_t* v = n->outputs[0];
  return n->graph == f->c->model->graph && !assay_pass_is_grouped(f->c, n) && !v->is_output &&
         assay_uses_of(f->uses, v) == 1 && assay_type_is_float(assay_elem_of(v));
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
  finder_t f = {c, uses};
  walk_t w = {.inside = can_hide, .user = &f};
  assay_node_t* all[ASSAY_ATTENTION_NODES + 2];
  assay_attention_t read;
  if (assay_pass_is_grouped(c, product) || !read_back(&w, product)) return NULL;
  size_t n = w.n;
  memcpy(all, w.nodes, n * sizeof *all);
  all[n++] = product;
  // A Transpose behind it, if nobody else reads the product.
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
    .asked = true,
    .run = run,
};
