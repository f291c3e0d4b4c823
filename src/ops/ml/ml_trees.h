// Ensembles of decision trees: one form for all operators that have them.
#ifndef ASSAY_OPS_ML_ML_TREES_H_
#define ASSAY_OPS_ML_ML_TREES_H_

#include "ops/op.h"

// How a node compares feature and threshold; numbers as in TreeEnsemble-5.
typedef enum assay_tree_mode {
  ASSAY_TREE_LEQ = 0,
  ASSAY_TREE_LT,
  ASSAY_TREE_GTE,
  ASSAY_TREE_GT,
  ASSAY_TREE_EQ,
  ASSAY_TREE_NEQ,
  ASSAY_TREE_MEMBER,
  ASSAY_TREE_LEAF,
} assay_tree_mode_t;

typedef struct assay_tree_node {
  assay_tree_mode_t mode;
  bool missing_true;  // NaN goes to the true branch
  int64_t feature;
  double value;
  int64_t yes, no;   // nodes
  int64_t first, n;  // LEAF: its votes; MEMBER: its members
} assay_tree_node_t;

typedef struct assay_tree_vote {
  int64_t target;
  double weight;
} assay_tree_vote_t;

typedef struct assay_trees {
  assay_tree_node_t* nodes;
  int64_t n_nodes;
  int64_t* roots;
  int64_t n_trees;
  assay_tree_vote_t* votes;
  int64_t n_votes;
  double* members;
  int64_t max_feature;  // the largest that a node asks for; -1: none
} assay_trees_t;

void assay_trees_deinit(assay_trees_t* t);
// Checks that children are nodes, that no path from a root comes back to where it was, that targets
// are below n_targets and features not negative; sets max_feature.
assay_status_t assay_trees_check(const assay_node_t* node, assay_trees_t* t,
                                 int64_t n_targets) ASSAY_MUST_USE;
// The leaf that a row of features falls into.
const assay_tree_node_t* assay_trees_leaf(const assay_trees_t* t, int64_t tree,
                                          const assay_tensor_t* x, int64_t at);

// Reads the attributes of TreeEnsembleClassifier and -Regressor; votes: "class" or "target".
assay_status_t assay_trees_read(const assay_node_t* n, const char* votes,
                                assay_trees_t* out) ASSAY_MUST_USE;
// Reads those of TreeEnsemble-5.
assay_status_t assay_trees_read5(const assay_node_t* n, assay_trees_t* out) ASSAY_MUST_USE;

#endif  // ASSAY_OPS_ML_ML_TREES_H_
