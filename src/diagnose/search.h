// The repair search: which change of which node brings golden back?
#ifndef ASSAY_DIAGNOSE_SEARCH_H_
#define ASSAY_DIAGNOSE_SEARCH_H_

#include "diagnose/export.h"
#include "diagnose/golden/search_watch.h"
#include "eval/evaluator.h"

// One value that golden knows, and truth of it as the model has it.
typedef struct assay_search_target {
  const assay_value_t* value;
  assay_tensor_t *golden, *truth;  // borrowed; truth NULL: the node could not be run
  double explained_rms, explained_max;
} assay_search_target_t;

enum {
  ASSAY_SEARCH_DEPTH = 3,   // faults of different kinds that are found at once
  ASSAY_SEARCH_FAULTS = 48  // nodes that are repaired together
};

typedef struct assay_search {
  const assay_model_t* model;
  assay_evaluator_t* evaluator;  // full slots: truth of every value, golden where it is known
  const assay_node_t* const*
      nodes;  // those that may be at fault, and all that the targets need, in order
  size_t n_nodes;
  const assay_search_target_t* targets;
  size_t n_targets;
  // Where golden holds inner values: the nodes that were found at fault. Constants are exchanged
  // between two of them only. NULL: not known.
  const bool* faulty;  // by node id
  double deadline;     // of assay_clock_seconds
  bool several;        // where no repair restores golden by itself, look for two or three that do
  // Repairs that are taken as made: their nodes are evaluated with them.
  const assay_repair_t* adopted[ASSAY_SEARCH_FAULTS];
  size_t n_adopted;
  // The same of other samples, which repairs are verified on; none where repairs are adopted.
  struct assay_search* others;
  size_t n_others;
  // Of golden outputs alone: what other samples are made of. NULL: not known.
  const assay_export_options_t* options;
  uint64_t draw;                // which random signs forecasts are made with
  assay_search_watch_t* watch;  // NULL: nobody watches
  bool cut_short;
  size_t trials;  // repairs whose effect was followed to the targets
} assay_search_t;

// The repair of a node that is taken as made; NULL: there is none.
const assay_repair_t* assay_search_adopted(const assay_search_t* s, const assay_node_t* n);

// Fills in node, repair, what remains, and rivals of as many faults (ASSAY_SEARCH_FAULTS at most)
// as have to be mended together; *out_n 0: nothing helps.
assay_status_t assay_search_run(assay_search_t* s, assay_fault_t* faults,
                                size_t* out_n) ASSAY_MUST_USE;

#endif  // ASSAY_DIAGNOSE_SEARCH_H_
