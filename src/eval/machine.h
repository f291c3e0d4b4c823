// Runs a graph node by node: the one evaluator behind truth, native mode and the emu backend.
//
// A machine has a slot for each value of the model. Running a node takes its inputs from the slots,
// calls the operator's eval and puts the outputs back; a slot is emptied behind its last reader.
// Hooks see each node before and after, may put other tensors in place of its inputs and outputs,
// and so make a machine round (emu), watch (taps) or follow another machine's choices (truth behind
// a flip).
#ifndef ASSAY_EVAL_MACHINE_H_
#define ASSAY_EVAL_MACHINE_H_

#include "ops/op.h"

typedef struct assay_machine assay_machine_t;

typedef struct assay_machine_hooks {
  // May set the arithmetic of one evaluation (arith, accumulator). NULL: as configured.
  void (*configure)(void* user, const assay_node_t* node, assay_eval_t* c);
  // Called with the inputs that the node is about to read, canonical or PACKED; in[i] may be
  // replaced (release the old one). NULL: nothing.
  assay_status_t (*before)(void* user, const assay_node_t* node, size_t n_in, assay_tensor_t** in);
  // Called with the outputs; out[i] may be replaced. NULL: nothing.
  assay_status_t (*after)(void* user, const assay_node_t* node, size_t n_in,
                          assay_tensor_t* const* in, size_t n_out, assay_tensor_t** out);
  void* user;
} assay_machine_hooks_t;

typedef struct assay_machine_config {
  assay_mode_t mode;
  assay_arith_t arith;
  assay_format_t accumulator;  // of NARROW
  // TRUTH: quantizers do not round (ops/quant/quant.h); outputs of integer types are rounded once,
  // at the end.
  bool unquantized;
  uint64_t seed;
  bool verify;    // outputs must have the inferred type and shape: INTERNAL otherwise (tests)
  bool keep_all;  // slots stay full until the next run or reset
  assay_machine_hooks_t hooks;
} assay_machine_config_t;

// The model must be resolved, inlined and inferred, and outlive the machine. In NATIVE mode the
// machine rounds outputs to their declared types itself, before the `after` hook.
assay_status_t assay_machine_create(const assay_model_t* model,
                                    const assay_machine_config_t* config,
                                    assay_machine_t** out) ASSAY_MUST_USE;
void assay_machine_destroy(assay_machine_t* m);  // NULL is allowed

// Puts a tensor into a value's slot (retained; widened when read). For inputs before a run.
void assay_machine_set(assay_machine_t* m, const assay_value_t* value, assay_tensor_t* t);
// What is in a value's slot, or its constant; borrowed; NULL if empty.
assay_tensor_t* assay_machine_get(const assay_machine_t* m, const assay_value_t* value);

// Runs a node of the top graph, and empties the slots that it was the last to read.
assay_status_t assay_machine_step(assay_machine_t* m, const assay_node_t* node) ASSAY_MUST_USE;
// As if the node had run: empties the slots that it was the last to read. For those who make its
// outputs themselves, after it.
void assay_machine_pass(assay_machine_t* m, const assay_node_t* node);
// Runs all nodes from the first. Inputs must have been set (NOT_FOUND names one that is not).
assay_status_t assay_machine_run(assay_machine_t* m) ASSAY_MUST_USE;
// Fails with NOT_FOUND if an input without default was not set; checks element types and ranks.
assay_status_t assay_machine_check_inputs(const assay_machine_t* m) ASSAY_MUST_USE;
// Empties all slots.
void assay_machine_reset(assay_machine_t* m);

// Evaluates one node on given inputs outside any run: no slots are read or written, but for what
// the node's subgraphs capture. out[] is filled with retained tensors. Random operators draw for
// the iteration that is set.
assay_status_t assay_machine_node(assay_machine_t* m, const assay_node_t* node, size_t n_in,
                                  assay_tensor_t* const* in, size_t n_out,
                                  assay_tensor_t** out) ASSAY_MUST_USE;

// From now on nodes fail with NO_MEMORY that would make an output of more elements; 0: none does.
void assay_machine_limit(assay_machine_t* m, int64_t most_elems);

// The iteration (assay_random_iteration) of the loops around the node that runs now; 0: no loop.
uint64_t assay_machine_iteration(const assay_machine_t* m);
void assay_machine_set_iteration(assay_machine_t* m, uint64_t iteration);

// Rounds the elements of a float tensor to a format; gives the tensor itself, retained, if nothing
// changes its bits or if it does not hold floats. Packed float32 elements stay packed.
assay_status_t assay_round_tensor(assay_tensor_t* t, assay_format_t format,
                                  assay_tensor_t** out) ASSAY_MUST_USE;
// Puts the rounded tensor, canonical, in the place of *t: in place where nobody else has it.
assay_status_t assay_round_replace(assay_tensor_t** t, assay_format_t format) ASSAY_MUST_USE;

#endif  // ASSAY_EVAL_MACHINE_H_
