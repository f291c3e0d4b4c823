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

enum {
  ASSAY_EDIT_NUMBERS = 16,
  ASSAY_EDIT_FUNCTIONS = 6,
  ASSAY_REPAIR_EDITS = 3,
  ASSAY_REPAIR_BESIDE = 3
};
enum { ASSAY_CHAIN_STEPS = 8, ASSAY_CHAIN_OPERANDS = 5 };

// What a new node reads.
typedef enum assay_chain_operand_kind {
  ASSAY_OPERAND_NONE = 0,
  ASSAY_OPERAND_START,  // what the chain begins with: the output as the node gives it, or the input
  ASSAY_OPERAND_STEP,   // what step `index` gave
  ASSAY_OPERAND_INPUT,  // the node's input `index`
  ASSAY_OPERAND_NUMBER,   // `number`, in the type of the chain's start
  ASSAY_OPERAND_VALUE,    // another value of the graph, made before the node
  ASSAY_OPERAND_TENSOR,   // the edit's tensor
  ASSAY_OPERAND_OMITTED,  // an input that is left out, where others come after it
} assay_chain_operand_kind_t;

typedef struct assay_chain_operand {
  assay_chain_operand_kind_t kind;
  size_t index;
  double number;
  const assay_value_t* value;
} assay_chain_operand_t;

// A new node: an operator of ONNX without attributes, or one like another node of the graph, with
// its attributes and, but for operand 0, its inputs.
typedef struct assay_chain_step {
  const char* op_type;
  const assay_node_t* like;  // NULL: without attributes
  size_t at;                 // of `like`: the input that operand 0 takes the place of
  bool other_inputs;         // of `like` it has the attributes only: its inputs are the operands
  assay_chain_operand_t of[ASSAY_CHAIN_OPERANDS];
} assay_chain_step_t;

typedef struct assay_repair_edit {
  assay_edit_kind_t kind;
  size_t input, other;
  assay_attr_t attr;  // name, type, and u.i, u.f or u.s (text that lives as long as
                      // the schema or the model); INTS: `numbers`; FLOATS: `floats`; STRINGS:
                      // `functions`
  int64_t numbers[ASSAY_EDIT_NUMBERS];
  float floats[ASSAY_EDIT_FUNCTIONS];
  assay_string_t functions[ASSAY_EDIT_FUNCTIONS];  // text that lives as long as the program
  assay_tensor_t* tensor;                          // retained by the repair
  const char* op_type;
  const assay_value_t *value, *other_value;
  int rank;
  int64_t dims[ASSAY_MAX_RANK];
  assay_formula_t* formula;  // retained by the repair
  bool at_input;             // of a chain: before input `input`, not after output 0
  assay_chain_step_t chain[ASSAY_CHAIN_STEPS];
  size_t n_chain;
  assay_type_t type;  // of the chain's numbers
} assay_repair_edit_t;

typedef struct assay_repair {
  const assay_node_t* node;
  const char* cause;  // a row's name: "epsilon", "axis", "transposed weight" ...
  assay_repair_edit_t edits[ASSAY_REPAIR_EDITS];
  size_t n_edits;
  // With a parameter to be fitted: what edit 0 sets. The value is put there by the search.
  bool fits;
  double value, start;
  // Nodes that the fault may as well be in: of a pattern that has another form, all are.
  const assay_node_t* beside[ASSAY_REPAIR_BESIDE];
  size_t n_beside;
  char text[240];  // what to do, for people: "alpha = 0.5 instead of 1"
} assay_repair_t;

void assay_repair_deinit(assay_repair_t* r);
assay_status_t assay_repair_copy(const assay_repair_t* r, assay_repair_t* out) ASSAY_MUST_USE;
// Puts the value of a fitted parameter into edit 0, and into the text. Errors: INVALID_ARGUMENT
assay_status_t assay_repair_set_value(assay_repair_t* r, double value) ASSAY_MUST_USE;

struct assay_surroundings;

// What the node is, for a proposal to look at.
typedef struct assay_suspect {
  const assay_model_t* model;
  const assay_node_t* node;
  size_t n_in, n_out;
  assay_tensor_t* const* in;  // truth, canonical; NULL: left out
  assay_tensor_t* const* out;
  struct assay_surroundings* around;  // NULL: only the node itself is known
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

// Whether a repair leaves the node as it is and changes what comes out of it.
bool assay_repair_only_follows(const assay_repair_t* r);
// The same of such a repair, where it is known what the node gives: `was`.
assay_status_t assay_repair_follow(struct assay_evaluator* m, const assay_repair_t* r, size_t n_in,
                                   assay_tensor_t* const* in, size_t n_out,
                                   assay_tensor_t* const* was, assay_tensor_t** out) ASSAY_MUST_USE;

// Makes the repair in a model: in the node of this label in its top graph. New constants and nodes
// get names of their own; nothing else changes. Errors: NOT_FOUND.
assay_status_t assay_repair_apply(const assay_repair_t* r, assay_model_t* model) ASSAY_MUST_USE;

#endif  // ASSAY_DIAGNOSE_REPAIR_H_
