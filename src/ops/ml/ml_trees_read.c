// Reading tree ensembles out of attributes that may hold anything.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "ops/ml/ml_common.h"
#include "ops/ml/ml_trees.h"

void assay_trees_deinit(assay_trees_t* t) {
  assay_free(t->nodes);
  assay_free(t->roots);
  assay_free(t->votes);
  assay_free(t->members);
  *t = (assay_trees_t){0};
}

// ---- checks ------------------------------------------------------------------------------------

// Walks all paths from a root without recursion. state: 0 not seen, 1 on the path, 2 done.
static bool has_cycle(const assay_trees_t* t, int64_t root, char* state, int64_t* stack) {
  int64_t depth = 0;
  stack[depth++] = root;
  while (depth) {
    int64_t at = stack[depth - 1];
    const assay_tree_node_t* n = &t->nodes[at];
    if (state[at] == 0) {
      state[at] = 1;
      if (n->mode == ASSAY_TREE_LEAF) {
        state[at] = 2;
        depth--;
      } else if (state[n->yes] == 1) {
        return true;
      } else if (state[n->yes] == 0) {
        stack[depth++] = n->yes;
      }
      continue;
    }
    // The true branch is done; now the false one.
    if (state[at] == 1 && state[n->no] == 0) {
      stack[depth++] = n->no;
    } else if (state[at] == 1 && state[n->no] == 1) {
      return true;
    } else {
      state[at] = 2;
      depth--;
    }
  }
  return false;
}

assay_status_t assay_trees_check(const assay_node_t* node, assay_trees_t* t, int64_t n_targets) {
  t->max_feature = -1;
  for (int64_t i = 0; i < t->n_nodes; i++) {
    const assay_tree_node_t* n = &t->nodes[i];
    if (n->mode == ASSAY_TREE_LEAF) continue;
    if (n->yes < 0 || n->yes >= t->n_nodes || n->no < 0 || n->no >= t->n_nodes)
      return ASSAY_NODE_ERROR(node, ASSAY_CORRUPT,
                              "node %lld of the trees has a child that is not there", (long long)i);
    if (n->feature < 0)
      return ASSAY_NODE_ERROR(node, ASSAY_CORRUPT, "node %lld of the trees asks for feature %lld",
                              (long long)i, (long long)n->feature);
    if (n->feature > t->max_feature) t->max_feature = n->feature;
  }
  for (int64_t i = 0; i < t->n_votes; i++)
    if (t->votes[i].target < 0 || t->votes[i].target >= n_targets)
      return ASSAY_NODE_ERROR(node, ASSAY_CORRUPT, "weight %lld is for target %lld; there are %lld",
                              (long long)i, (long long)t->votes[i].target, (long long)n_targets);
  char* state = NULL;
  int64_t* stack = NULL;
  assay_status_t st = assay_new_array((size_t)t->n_nodes, sizeof *state, &state);
  if (!st) st = assay_new_array((size_t)t->n_nodes + 1, sizeof *stack, &stack);
  for (int64_t i = 0; !st && i < t->n_trees; i++) {
    if (t->roots[i] < 0 || t->roots[i] >= t->n_nodes)
      st = ASSAY_NODE_ERROR(node, ASSAY_CORRUPT, "tree %lld has root %lld; there are %lld nodes",
                            (long long)i, (long long)t->roots[i], (long long)t->n_nodes);
    else if (state[t->roots[i]] == 0 && has_cycle(t, t->roots[i], state, stack))
      st = ASSAY_NODE_ERROR(node, ASSAY_CORRUPT,
                            "tree %lld is not a tree: a path comes back to a node on it",
                            (long long)i);
  }
  assay_free(state);
  assay_free(stack);
  return st;
}

// ---- lists -------------------------------------------------------------------------------------

static assay_status_t int_list(const assay_node_t* n, const char* name, int64_t want, bool needed,
                               const int64_t** out) {
  size_t len = 0;
  const int64_t* list = assay_attr_ints(n, name, &len);
  *out = len ? list : NULL;
  if ((int64_t)len == want || (!len && !needed)) return NULL;
  return ASSAY_NODE_ERROR(n, ASSAY_CORRUPT, "attribute '%s' has %zu entries; %lld are expected",
                          name, len, (long long)want);
}

// A list of numbers: a list of floats, or a tensor attribute.
typedef struct numbers {
  const float* floats;
  assay_tensor_t* t;  // canonical, owned
  int64_t n;
} numbers_t;

static assay_status_t read_numbers(const assay_node_t* n, const char* floats, const char* tensor,
                                   numbers_t* out) {
  size_t len = 0;
  const float* list = floats ? assay_attr_floats(n, floats, &len) : NULL;
  assay_tensor_t* t = assay_attr_tensor(n, tensor);
  *out = (numbers_t){0};
  if (len && t)
    return ASSAY_NODE_ERROR(n, ASSAY_CORRUPT, "'%s' and '%s' are both given", floats, tensor);
  if (t) {
    ASSAY_TRY(assay_tensor_widen(t, &out->t));
    out->n = out->t->size;
    if (out->t->store == ASSAY_STORE_F64 || out->t->store == ASSAY_STORE_I64) return NULL;
    assay_tensor_release(out->t);
    *out = (numbers_t){0};
    return ASSAY_NODE_ERROR(n, ASSAY_CORRUPT, "'%s' does not hold numbers", tensor);
  }
  out->floats = list;
  out->n = (int64_t)len;
  return NULL;
}

static double number_at(const numbers_t* x, int64_t i) {
  return x->t ? assay_ml_number(x->t, i) : (double)x->floats[i];
}

// ---- TreeEnsembleClassifier, TreeEnsembleRegressor ---------------------------------------------

// A node's name in the attributes, and its position.
typedef struct id {
  int64_t tree, node, index;
} node_id_t;

static int compare_ids(const void* a, const void* b) {
  const node_id_t *x = a, *y = b;
  if (x->tree != y->tree) return x->tree < y->tree ? -1 : 1;
  return x->node < y->node ? -1 : x->node > y->node;
}

static int64_t find_id(const node_id_t* ids, int64_t n, int64_t tree, int64_t node) {
  node_id_t key = {tree, node, 0};
  const node_id_t* found = n ? bsearch(&key, ids, (size_t)n, sizeof key, compare_ids) : NULL;
  return found ? found->index : -1;
}

static assay_status_t mode_of(const assay_node_t* n, assay_string_t s, assay_tree_mode_t* out) {
  static const char* const names[] = {"BRANCH_LEQ", "BRANCH_LT",  "BRANCH_GTE",    "BRANCH_GT",
                                      "BRANCH_EQ",  "BRANCH_NEQ", "BRANCH_MEMBER", "LEAF"};
  for (int i = 0; i < 8; i++) {
    if (s.len != strlen(names[i]) || memcmp(s.text, names[i], s.len) != 0) continue;
    if (i == ASSAY_TREE_MEMBER) break;  // of TreeEnsemble-5 only
    *out = (assay_tree_mode_t)i;
    return NULL;
  }
  return ASSAY_NODE_ERROR(n, ASSAY_CORRUPT, "nodes_modes holds '%.*s'",
                          (int)(s.len > 40 ? 40 : s.len), s.text);
}

static assay_status_t read_nodes(const assay_node_t* n, assay_trees_t* t, node_id_t* ids) {
  const int64_t *trees, *nodes, *features, *yes, *no, *missing;
  size_t n_modes = 0;
  numbers_t values = {0};
  int64_t count = t->n_nodes;
  const assay_string_t* modes = assay_attr_strings(n, "nodes_modes", &n_modes);
  ASSAY_TRY(int_list(n, "nodes_treeids", count, true, &trees));
  ASSAY_TRY(int_list(n, "nodes_nodeids", count, true, &nodes));
  ASSAY_TRY(int_list(n, "nodes_featureids", count, true, &features));
  ASSAY_TRY(int_list(n, "nodes_truenodeids", count, true, &yes));
  ASSAY_TRY(int_list(n, "nodes_falsenodeids", count, true, &no));
  ASSAY_TRY(int_list(n, "nodes_missing_value_tracks_true", count, false, &missing));
  ASSAY_TRY(read_numbers(n, "nodes_values", "nodes_values_as_tensor", &values));
  assay_status_t st = NULL;
  if ((int64_t)n_modes != count || values.n != count)
    st = ASSAY_NODE_ERROR(n, ASSAY_CORRUPT,
                          "there are %lld nodes, %zu nodes_modes and %lld nodes_values",
                          (long long)count, n_modes, (long long)values.n);
  for (int64_t i = 0; !st && i < count; i++) ids[i] = (node_id_t){trees[i], nodes[i], i};
  if (!st) qsort(ids, (size_t)count, sizeof *ids, compare_ids);
  for (int64_t i = 1; !st && i < count; i++)
    if (compare_ids(&ids[i - 1], &ids[i]) == 0)
      st = ASSAY_NODE_ERROR(n, ASSAY_CORRUPT, "node %lld of tree %lld is there twice",
                            (long long)ids[i].node, (long long)ids[i].tree);
  for (int64_t i = 0; !st && i < count; i++) {
    assay_tree_node_t* to = &t->nodes[i];
    st = mode_of(n, modes[i], &to->mode);
    to->feature = features[i];
    to->value = number_at(&values, i);
    to->missing_true = missing && missing[i];
    if (!st && to->mode != ASSAY_TREE_LEAF) {
      to->yes = find_id(ids, count, trees[i], yes[i]);
      to->no = find_id(ids, count, trees[i], no[i]);
    }
  }
  // A tree starts with the first of its nodes, in the order of the attributes.
  for (int64_t i = 0; !st && i < count;) {
    int64_t first = ids[i].index, tree = ids[i].tree;
    for (; i < count && ids[i].tree == tree; i++)
      if (ids[i].index < first) first = ids[i].index;
    t->roots[t->n_trees++] = first;
  }
  assay_tensor_release(values.t);
  return st;
}

static assay_status_t vote_list(const assay_node_t* n, const char* votes, const char* what,
                                int64_t count, const int64_t** out) {
  char name[48];
  snprintf(name, sizeof name, "%s_%s", votes, what);
  return int_list(n, name, count, true, out);
}

// Sorts the votes by leaf (counting sort, in their order), so that each leaf has a slice of them.
static assay_status_t read_votes(const assay_node_t* n, const char* votes, const node_id_t* ids,
                                 assay_trees_t* t) {
  char weights[48], tensor[48];
  const int64_t *trees, *nodes, *targets;
  numbers_t w = {0};
  snprintf(weights, sizeof weights, "%s_weights", votes);
  snprintf(tensor, sizeof tensor, "%s_weights_as_tensor", votes);
  ASSAY_TRY(read_numbers(n, weights, tensor, &w));
  int64_t* where = NULL;
  assay_status_t st = vote_list(n, votes, "treeids", w.n, &trees);
  if (!st) st = vote_list(n, votes, "nodeids", w.n, &nodes);
  if (!st) st = vote_list(n, votes, "ids", w.n, &targets);
  if (!st) st = assay_new_array((size_t)w.n, sizeof *where, &where);
  if (!st) st = assay_new_array((size_t)w.n, sizeof *t->votes, &t->votes);
  for (int64_t i = 0; !st && i < w.n; i++) {
    where[i] = find_id(ids, t->n_nodes, trees[i], nodes[i]);
    if (where[i] < 0)
      st = ASSAY_NODE_ERROR(n, ASSAY_CORRUPT,
                            "%s %lld is for node %lld of tree %lld, which is not there", weights,
                            (long long)i, (long long)nodes[i], (long long)trees[i]);
    else
      t->nodes[where[i]].n++;
  }
  int64_t first = 0;
  for (int64_t i = 0; !st && i < t->n_nodes; i++) {
    t->nodes[i].first = first;
    first += t->nodes[i].n;
    t->nodes[i].n = 0;
  }
  for (int64_t i = 0; !st && i < w.n; i++) {
    assay_tree_node_t* leaf = &t->nodes[where[i]];
    t->votes[leaf->first + leaf->n++] = (assay_tree_vote_t){targets[i], number_at(&w, i)};
  }
  if (!st) t->n_votes = w.n;
  assay_free(where);
  assay_tensor_release(w.t);
  return st;
}

assay_status_t assay_trees_read(const assay_node_t* n, const char* votes, assay_trees_t* out) {
  assay_trees_t t = {0};
  size_t count = 0;
  node_id_t* ids = NULL;
  assay_attr_ints(n, "nodes_treeids", &count);
  t.n_nodes = (int64_t)count;
  assay_status_t st = assay_new_array(count, sizeof *t.nodes, &t.nodes);
  if (!st) st = assay_new_array(count, sizeof *t.roots, &t.roots);
  if (!st) st = assay_new_array(count, sizeof *ids, &ids);
  if (!st) st = read_nodes(n, &t, ids);
  if (!st) st = read_votes(n, votes, ids, &t);
  assay_free(ids);
  if (st) return assay_trees_deinit(&t), st;
  *out = t;
  return NULL;
}

// ---- TreeEnsemble-5 ----------------------------------------------------------------------------

// The sets of membership_values, each ended by NaN (the last one maybe by the end), in the order of
// the nodes that test for membership.
static assay_status_t read_members(const assay_node_t* n, assay_trees_t* t, int64_t inner) {
  numbers_t m = {0};
  ASSAY_TRY(read_numbers(n, NULL, "membership_values", &m));
  assay_status_t st = assay_new_array((size_t)m.n, sizeof *t->members, &t->members);
  int64_t at = 0;
  for (int64_t i = 0; !st && i < inner; i++) {
    assay_tree_node_t* node = &t->nodes[i];
    if (node->mode != ASSAY_TREE_MEMBER) continue;
    if (at >= m.n)
      st = ASSAY_NODE_ERROR(n, ASSAY_CORRUPT, "membership_values has no set for node %lld",
                            (long long)i);
    node->first = at;
    for (; at < m.n && !isnan(number_at(&m, at)); at++) t->members[at] = number_at(&m, at);
    node->n = at - node->first;
    at++;
  }
  if (!st && at < m.n)
    st = ASSAY_NODE_ERROR(n, ASSAY_CORRUPT,
                          "membership_values has more sets than nodes that use them");
  assay_tensor_release(m.t);
  return st;
}

typedef struct lists5 {
  const int64_t *features, *yes, *no, *yes_leaf, *no_leaf, *missing, *targets, *roots;
  numbers_t modes, splits, weights;
  int64_t inner, leaves;
} lists5_t;

static assay_status_t read_lists5(const assay_node_t* n, lists5_t* l) {
  size_t inner = 0, leaves = 0;
  assay_attr_ints(n, "nodes_featureids", &inner);
  assay_attr_ints(n, "leaf_targetids", &leaves);
  l->inner = (int64_t)inner;
  l->leaves = (int64_t)leaves;
  ASSAY_TRY(int_list(n, "nodes_featureids", l->inner, true, &l->features));
  ASSAY_TRY(int_list(n, "nodes_truenodeids", l->inner, true, &l->yes));
  ASSAY_TRY(int_list(n, "nodes_falsenodeids", l->inner, true, &l->no));
  ASSAY_TRY(int_list(n, "nodes_trueleafs", l->inner, true, &l->yes_leaf));
  ASSAY_TRY(int_list(n, "nodes_falseleafs", l->inner, true, &l->no_leaf));
  ASSAY_TRY(int_list(n, "nodes_missing_value_tracks_true", l->inner, false, &l->missing));
  ASSAY_TRY(int_list(n, "leaf_targetids", l->leaves, true, &l->targets));
  ASSAY_TRY(read_numbers(n, NULL, "nodes_modes", &l->modes));
  ASSAY_TRY(read_numbers(n, NULL, "nodes_splits", &l->splits));
  ASSAY_TRY(read_numbers(n, NULL, "leaf_weights", &l->weights));
  if (l->modes.n != l->inner || l->splits.n != l->inner || l->weights.n != l->leaves)
    return ASSAY_NODE_ERROR(
        n, ASSAY_CORRUPT,
        "%lld nodes have %lld modes and %lld splits, %lld leaves have %lld weights",
        (long long)l->inner, (long long)l->modes.n, (long long)l->splits.n, (long long)l->leaves,
        (long long)l->weights.n);
  return NULL;
}

// A child: nodes stand first, leaves after them. -1 if it is neither.
static int64_t child5(const lists5_t* l, int64_t id, int64_t is_leaf) {
  if (!is_leaf) return id >= 0 && id < l->inner ? id : -1;
  return id >= 0 && id < l->leaves ? l->inner + id : -1;
}

static assay_status_t fill5(const assay_node_t* n, const lists5_t* l, assay_trees_t* t) {
  t->n_nodes = l->inner + l->leaves;
  ASSAY_TRY(assay_new_array((size_t)t->n_nodes, sizeof *t->nodes, &t->nodes));
  ASSAY_TRY(assay_new_array((size_t)l->leaves, sizeof *t->votes, &t->votes));
  for (int64_t i = 0; i < l->inner; i++) {
    double mode = number_at(&l->modes, i);
    if (!(mode >= 0 && mode <= ASSAY_TREE_MEMBER))
      return ASSAY_NODE_ERROR(n, ASSAY_CORRUPT, "nodes_modes[%lld] is %g; 0 to 6 is expected",
                              (long long)i, mode);
    t->nodes[i] = (assay_tree_node_t){.mode = (assay_tree_mode_t)mode,
                                      .missing_true = l->missing && l->missing[i],
                                      .feature = l->features[i],
                                      .value = number_at(&l->splits, i),
                                      .yes = child5(l, l->yes[i], l->yes_leaf[i]),
                                      .no = child5(l, l->no[i], l->no_leaf[i])};
  }
  for (int64_t i = 0; i < l->leaves; i++) {
    t->nodes[l->inner + i] = (assay_tree_node_t){.mode = ASSAY_TREE_LEAF, .first = i, .n = 1};
    t->votes[i] = (assay_tree_vote_t){l->targets[i], number_at(&l->weights, i)};
  }
  t->n_votes = l->leaves;
  return read_members(n, t, l->inner);
}

assay_status_t assay_trees_read5(const assay_node_t* n, assay_trees_t* out) {
  assay_trees_t t = {0};
  lists5_t l = {0};
  size_t n_roots = 0;
  const int64_t* roots = assay_attr_ints(n, "tree_roots", &n_roots);
  assay_status_t st = read_lists5(n, &l);
  if (!st) st = fill5(n, &l, &t);
  if (!st) st = assay_new_array(n_roots, sizeof *t.roots, &t.roots);
  for (size_t i = 0; !st && i < n_roots; i++) {
    if (roots[i] < 0 || roots[i] >= l.inner)
      st = ASSAY_NODE_ERROR(n, ASSAY_CORRUPT, "tree_roots[%zu] is %lld; there are %lld nodes", i,
                            (long long)roots[i], (long long)l.inner);
    t.roots[i] = roots[i];
  }
  t.n_trees = (int64_t)n_roots;
  assay_tensor_release(l.modes.t);
  assay_tensor_release(l.splits.t);
  assay_tensor_release(l.weights.t);
  if (st) return assay_trees_deinit(&t), st;
  *out = t;
  return NULL;
}
