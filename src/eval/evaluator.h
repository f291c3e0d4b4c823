// Runs a graph node by node: the one evaluator behind truth, native mode and the emu backend.
//
// A machine has a slot for each value of the model. Running a node takes its inputs from the slots,
// calls the operator's eval and puts the outputs back; a slot is emptied after its last reader.
// Hooks see each node before and after, may put other tensors in place of its inputs and outputs,
// and so make a machine round (emu), watch (taps) or follow another machine's choices (truth after
// a flip).
#ifndef ASSAY_EVAL_EVALUATOR_H_
#define ASSAY_EVAL_EVALUATOR_H_

#include "ops/op.h"

typedef struct assay_evaluator assay_evaluator_t;

typedef struct assay_evaluator_hooks {
  // May set the arithmetic of one evaluation (arith, accumulator). NULL: as configured.
  void (*configure)(void* user, const assay_node_t* node, assay_eval_t* c);
  // Called with the inputs that the node is about to read, canonical or PACKED; in[i] may be
  // replaced (release the old one). NULL: nothing.
  assay_status_t (*before)(void* user, const assay_node_t* node, size_t n_in, assay_tensor_t** in);
  // Called with the outputs; out[i] may be replaced. NULL: nothing.
  assay_status_t (*after)(void* user, const assay_node_t* node, size_t n_in,
                          assay_tensor_t* const* in, size_t n_out, assay_tensor_t** out);
  void* user;
} assay_evaluator_hooks_t;

typedef struct assay_evaluator_config {
  assay_mode_t mode;
  assay_arith_t arith;
  assay_format_t accumulator;  // of NARROW
  // TRUTH: quantizers do not round (ops/quant/quant.h); outputs of integer types are rounded once,
  // at the end.
  bool unquantized;
  uint64_t seed;
  bool verify;    // outputs must have the inferred type and shape: INTERNAL otherwise (tests)
  bool keep_all;  // slots stay full until the next run or reset
  bool spill;     // what is kept may lie in a file (base/spill.h)
  assay_evaluator_hooks_t hooks;
} assay_evaluator_config_t;

// The model must be resolved, inlined and inferred, and outlive the machine. In NATIVE mode the
// machine rounds outputs to their declared types itself, before the `after` hook.
assay_status_t assay_evaluator_create(const assay_model_t* model,
                                      const assay_evaluator_config_t* config,
                                      assay_evaluator_t** out) ASSAY_MUST_USE;
void assay_evaluator_destroy(assay_evaluator_t* m);  // NULL is allowed

// Puts a tensor into a value's slot (retained; widened when read). For inputs before a run.
void assay_evaluator_set(assay_evaluator_t* m, const assay_value_t* value, assay_tensor_t* t);
// The same in canonical form: for what is read there, or by several nodes.
assay_status_t assay_evaluator_set_widened(assay_evaluator_t* m, const assay_value_t* value,
                                           assay_tensor_t* t) ASSAY_MUST_USE;
// Puts tensors into the slots of the graph's inputs, in their order (NULL: left out).
void assay_evaluator_set_inputs(assay_evaluator_t* m, assay_tensor_t* const* inputs);
assay_status_t assay_evaluator_set_inputs_widened(assay_evaluator_t* m,
                                                  assay_tensor_t* const* inputs) ASSAY_MUST_USE;
// What is in a value's slot, or its constant; borrowed; NULL if empty.
assay_tensor_t* assay_evaluator_get(const assay_evaluator_t* m, const assay_value_t* value);

// Runs a node of the top graph, and empties the slots that it was the last to read.
assay_status_t assay_evaluator_step(assay_evaluator_t* m, const assay_node_t* node) ASSAY_MUST_USE;
// As if the node had run: empties the slots that it was the last to read. For those who make its
// outputs themselves, after it.
void assay_evaluator_pass(assay_evaluator_t* m, const assay_node_t* node);
// Runs all nodes from the first. Inputs must have been set (NOT_FOUND names one that is not).
assay_status_t assay_evaluator_run(assay_evaluator_t* m) ASSAY_MUST_USE;
// The same on these inputs alone: what the slots held before is gone.
assay_status_t assay_evaluator_run_on(assay_evaluator_t* m,
                                      assay_tensor_t* const* inputs) ASSAY_MUST_USE;
// An evaluator that has run on these inputs; *out is the caller's also on failure, if it is not
// NULL.
assay_status_t assay_evaluator_create_run(const assay_model_t* model,
                                          const assay_evaluator_config_t* config,
                                          assay_tensor_t* const* inputs,
                                          assay_evaluator_t** out) ASSAY_MUST_USE;
// Fails with NOT_FOUND if an input without default was not set; checks element types and ranks.
assay_status_t assay_evaluator_check_inputs(const assay_evaluator_t* m) ASSAY_MUST_USE;
// Empties all slots.
void assay_evaluator_reset(assay_evaluator_t* m);

// Evaluates one node on given inputs outside any run: no slots are read or written, but for what
// the node's subgraphs capture. out[] is filled with retained tensors. Random operators draw for
// the iteration that is set.
assay_status_t assay_evaluator_node(assay_evaluator_t* m, const assay_node_t* node, size_t n_in,
                                    assay_tensor_t* const* in, size_t n_out,
                                    assay_tensor_t** out) ASSAY_MUST_USE;

// From now on nodes fail with NO_MEMORY that would make an output of more elements; 0: none does.
void assay_evaluator_limit(assay_evaluator_t* m, int64_t max_elems);

// The iteration (assay_random_iteration) of the loops around the node that runs now; 0: no loop.
uint64_t assay_evaluator_iteration(const assay_evaluator_t* m);
void assay_evaluator_set_iteration(assay_evaluator_t* m, uint64_t iteration);

// Rounds the elements of a float tensor to a format; gives the tensor itself, retained, if nothing
// changes its bits or if it does not hold floats. Packed float32 elements stay packed.
assay_status_t assay_round_tensor(assay_tensor_t* t, assay_format_t format,
                                  assay_tensor_t** out) ASSAY_MUST_USE;
// Puts the rounded tensor, canonical, in the place of *t: in place where nobody else has it.
assay_status_t assay_round_replace(assay_tensor_t** t, assay_format_t format) ASSAY_MUST_USE;

#endif  // ASSAY_EVAL_EVALUATOR_H_
