// Repairs: changes of one node that might undo what an exporter did wrong, and trying them out.
//
// A repair is a small list of edits of a single node: an attribute, the order of its inputs, a
// constant that it reads, the operator itself, nodes that are missing before or after it. Proposals
// come from a table (proposals.inc), one row a kind of cause; each is tried by evaluating truth
// from the node on.
#ifndef ASSAY_DIAGNOSE_REPAIR_H_
#define ASSAY_DIAGNOSE_REPAIR_H_

#include "diagnose/formula.h"
#include "ops/op.h"

// What an edit does: a row of edits/edit_kinds.inc.
typedef enum assay_edit_kind {
#define ASSAY_EDIT_KIND(NAME, name) ASSAY_EDIT_##NAME,
#include "diagnose/edits/edit_kinds.inc"
#undef ASSAY_EDIT_KIND
} assay_edit_kind_t;

enum { ASSAY_EDIT_NUMBERS = 16, ASSAY_REPAIR_EDITS = 3 };

typedef struct assay_repair_edit {
  assay_edit_kind_t kind;
  size_t input, other;
  assay_attr_t attr;  // name, type, and u.i, u.f or u.s (text that lives as long as
                      // the schema or the model); INTS: `numbers`
  int64_t numbers[ASSAY_EDIT_NUMBERS];
  assay_tensor_t* tensor;  // retained by the repair
  const char* op_type;
  const assay_value_t *value, *other_value;
  int rank;
  int64_t dims[ASSAY_MAX_RANK];
  assay_formula_t* formula;  // retained by the repair
} assay_repair_edit_t;

typedef struct assay_repair {
  const assay_node_t* node;
  const char* cause;  // a row's name: "epsilon", "axis", "transposed weight" ...
  assay_repair_edit_t edits[ASSAY_REPAIR_EDITS];
  size_t n_edits;
  // With a parameter to be fitted: what edit 0 sets. The value is put there by the search.
  bool fits;
  double value, start;
  char text[240];  // what to do, for people: "alpha = 0.5 instead of 1"
} assay_repair_t;

void assay_repair_deinit(assay_repair_t* r);
assay_status_t assay_repair_copy(const assay_repair_t* r, assay_repair_t* out) ASSAY_MUST_USE;
// Puts the value of a fitted parameter into edit 0, and into the text. Errors: INVALID_ARGUMENT
assay_status_t assay_repair_set_value(assay_repair_t* r, double value) ASSAY_MUST_USE;

// What the node is, for a proposal to look at.
typedef struct assay_suspect {
  const assay_model_t* model;
  const assay_node_t* node;
  size_t n_in, n_out;
  assay_tensor_t* const* in;  // truth, canonical; NULL: left out
  assay_tensor_t* const* out;
} assay_suspect_t;

// Receives proposals; takes nothing over. *stop ends them.
typedef struct assay_trial {
  assay_status_t (*offer)(void* user, const assay_repair_t* repair, bool* stop);
  void* user;
} assay_trial_t;

// A row of the table of causes.
typedef struct assay_proposal {
  const char* cause;
  int stage;  // 1: usual slips of exporters, 2: constants, 3: another structure
  assay_status_t (*propose)(const assay_suspect_t* s, const char* cause, const assay_trial_t* t,
                            bool* stop);
} assay_proposal_t;

size_t assay_proposal_count(void);
const assay_proposal_t* assay_proposal_get(size_t i);

// Evaluates the node as it would be with the repair (EXCHANGE is no matter of one node: its inputs
// are taken as they are given), on these inputs, in truth. out[] is filled with retained tensors.
// Errors of evaluation mean that the repair does not fit.
struct assay_evaluator;
assay_status_t assay_repair_evaluate(struct assay_evaluator* m, const assay_repair_t* r,
                                     size_t n_in, assay_tensor_t* const* in, size_t n_out,
                                     assay_tensor_t** out) ASSAY_MUST_USE;

// Makes the repair in a model: in the node of this label in its top graph. New constants and nodes
// get names of their own; nothing else changes. Errors: NOT_FOUND.
assay_status_t assay_repair_apply(const assay_repair_t* r, assay_model_t* model) ASSAY_MUST_USE;

#endif  // ASSAY_DIAGNOSE_REPAIR_H_
