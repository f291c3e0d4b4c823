// What the files of account.h share.
#ifndef ASSAY_ACCOUNT_ACCOUNT_INTERNAL_H_
#define ASSAY_ACCOUNT_ACCOUNT_INTERNAL_H_

#include "account/account.h"
#include "account/local.h"
#include "eval/evaluator.h"
#include "formats/exact_sum.h"

// ---- records (account_records.c) ----------------------------------------------------------------

// What the engine did in one run of a node, kept until truth comes to the same run.
typedef struct assay_record {
  struct assay_record* next;
  uint64_t iteration;
  size_t n_in;
  assay_tensor_t** in;  // of all nodes of the layer; n_in 0: not kept
  size_t n_out;
  assay_tensor_t** engine;  // outputs as stored
  assay_tensor_t**
      local;  // truth of the node on the engine's inputs; the engine's own for control nodes
} assay_record_t;

// True inputs of a layer of several nodes while truth runs through it.
typedef struct assay_entering {
  size_t n;
  assay_tensor_t** in;
} assay_entering_t;

typedef struct assay_record_queue {
  assay_record_t *first, **last;
} assay_record_queue_t;

assay_status_t assay_record_create(size_t n_out, assay_tensor_t* const* engine,
                                   assay_record_t** out) ASSAY_MUST_USE;
// What entered the layer in this run, to see which of it an ill-conditioned layer amplifies.
assay_status_t assay_record_inputs(assay_record_t* r, uint64_t iteration, size_t n_in,
                                   assay_tensor_t* const* in) ASSAY_MUST_USE;
void assay_record_free(assay_record_t* r);
void assay_record_push(assay_record_queue_t* q, assay_record_t* r);
// NULL: there is none.
assay_record_t* assay_record_pop(assay_record_queue_t* q);

void assay_entering_deinit(assay_entering_t* e);

// ---- the account --------------------------------------------------------------------------------

// What stands behind a layer's account: its sums as they are before they are rounded, so that
// accounts of parts of the samples, joined, are the account of all of them to the bit; and what is
// of the run at hand only.
typedef struct assay_layer_sums {
  assay_error_exact_t own, inherited, total;
  assay_exact_sum_t ratio2, error2, limit2, truth2, error_truth, whole2;  // of `judged`
  assay_exact_sum_t gated_own2, gated_plain2, gated_bound2;
  double perturbation, condition;  // of the run at hand
} assay_layer_sums_t;

struct assay_account {
  const assay_layers_t* layers;
  const assay_backend_t* backend;
  void* engine;
  assay_account_options_t options;
  assay_evaluator_t* truth;
  assay_locals_t* locals;
  assay_evaluator_t* plain;  // truth that follows no flip; made when the first one is seen
  int64_t flipped;           // in this sample
  bool has_plain;            // `plain` has this sample's outputs
  assay_tap_t tap;
  assay_record_queue_t* queues;     // by node id
  assay_entering_t* entering;       // by the id of a layer's last node
  assay_layer_account_t* accounts;  // by node id
  assay_layer_sums_t* sums;         // by node id; NULL where nothing but truth runs
  const assay_node_t** order;       // nodes as they first ended
  size_t n_order, cap_order;
  double* value_error;           // by value id: RMS of engine's minus truth's over RMS of truth's
  double* value_max;             // by value id: largest magnitude when truth last read it
  assay_storage_loss_t* stored;  // by value id, where predicted
};

// The sums behind an account.
static inline assay_layer_sums_t* assay_account_sums(const assay_account_t* a,
                                                     const assay_layer_account_t* acc) {
  return &a->sums[acc - a->accounts];
}

// Adds the judgement of one run; makes the sums of a judgement those that stand behind it
// (account_records.c).
void assay_account_add_judgement(assay_layer_sums_t* sums, assay_judgement_t* to,
                                 const assay_judgement_t* run);
void assay_account_settle_judgement(const assay_layer_sums_t* sums, assay_judgement_t* j);
// Joins the account of a layer in samples that follow (account_part.c).
void assay_account_join_layer(assay_layer_account_t* acc, assay_layer_sums_t* sums,
                              const assay_layer_account_t* more,
                              const assay_layer_sums_t* more_sums);
// The verdicts, by what has been added.
void assay_account_judge_all(assay_account_t* a);

// A layer is ill-conditioned where an error leaves so many times larger, relative to the values,
// than it came in.
#define ASSAY_CONDITION_LIMIT 100

// ---- layers and their outputs (account_records.c) -----------------------------------------------

// A tensor of floats, as canonical ones; NULL: none.
bool assay_account_holds_floats(const assay_tensor_t* t);
// The largest magnitude; 0 of anything but floats.
double assay_account_largest(const assay_tensor_t* t);
// If, Loop and Scan, whose bodies are judged by themselves.
bool assay_account_is_control(const assay_node_t* node);
// Enters the layer in the order of layers as they first ended.
assay_status_t assay_account_note_first(assay_account_t* a, assay_layer_account_t* acc,
                                        const assay_layer_t* layer,
                                        const assay_node_t* node) ASSAY_MUST_USE;
// What a run costs: for layers of several nodes by their elements only.
assay_status_t assay_account_note_cost(const assay_layer_t* layer, const assay_node_t* node,
                                       size_t n_in, assay_tensor_t* const* in, size_t n_out,
                                       assay_tensor_t* const* out,
                                       assay_cost_t* cost) ASSAY_MUST_USE;

// ---- what happens as layers end -----------------------------------------------------------------

// In the engine's tap: own error (account_own.c).
assay_status_t assay_account_on_layer(void* user, const assay_layer_t* layer,
                                      const assay_node_t* node, uint64_t iteration, size_t n_in,
                                      assay_tensor_t* const* in, size_t n_out,
                                      assay_tensor_t* const* out) ASSAY_MUST_USE;

// In truth's hook, after the engine: inherited error and flips (account_inherited.c).
assay_status_t assay_account_after_truth(void* user, const assay_node_t* node, size_t n_in,
                                         assay_tensor_t* const* in, size_t n_out,
                                         assay_tensor_t** out) ASSAY_MUST_USE;
// In truth's hook, without an engine: what truth tells by itself.
assay_status_t assay_account_reference_only(void* user, const assay_node_t* node, size_t n_in,
                                            assay_tensor_t* const* in, size_t n_out,
                                            assay_tensor_t** out) ASSAY_MUST_USE;

#endif
