// Is the export to blame? Truth of a model against golden tensors of the network that it was made
// from.
//
// Where golden holds inner values, truth goes on from each of them, so that every fault shows by
// itself, in the nodes between two golden values. A difference is the export's if it is several
// times what rounding explains: golden's own, and one rounding of every stored constant. That is
// measured by a second run in fp32 arithmetic with every constant moved by one unit roundoff (Monte
// Carlo arithmetic; D. S. Parker, 1997): first order like a bound through the layers, and not
// hopeless after fifty of them.
//
// For each fault the table of causes (repair.h) is tried out, and what restores golden is kept.
#ifndef ASSAY_DIAGNOSE_EXPORT_H_
#define ASSAY_DIAGNOSE_EXPORT_H_

#include "account/golden/golden.h"
#include "diagnose/kinds/arithmetic.h"
#include "diagnose/kinds/rounded.h"
#include "diagnose/repair.h"

enum { ASSAY_REGION_NODES = 128, ASSAY_REGION_VALUES = 4 };

// A part of the graph that the fault is in, where no change of a single node explains it.
typedef struct assay_region {
  size_t n_nodes;  // of which the first ASSAY_REGION_NODES are listed; 0: there is no region
  const assay_node_t* nodes[ASSAY_REGION_NODES];
  // What goes in, but for constants, and what comes out: the first of them.
  const assay_value_t *from[ASSAY_REGION_VALUES], *to[ASSAY_REGION_VALUES];
  size_t n_from, n_to;
  size_t agreeing;     // outputs that agree with golden
  double probability;  // that a node at fault is among them
} assay_region_t;

typedef struct assay_fault {
  const assay_value_t* value;     // where golden is first missed
  const assay_node_t* node;       // most to blame: of the repair, else the value's producer
  assay_difference_t difference;  // of truth from golden
  double explained;               // RMS that rounding explains
  bool shape;                     // shapes or kinds do not fit
  bool has_repair, restored;  // restored: the repair brings golden back within what is explained
  assay_repair_t repair;
  double remains;  // RMS difference with the repair over that without
  // That the node, or one that it is beside, is at fault; 0: golden has inner values, which show
  // it, or nothing is known.
  double probability;
  // Of a node that is named for a constant that looks damaged: the constant, and what is odd.
  const assay_value_t* damaged;  // NULL: none is
  const char* damage;
  // Other nodes whose repair explains as much, best first.
  const assay_node_t* rivals[3];
  size_t n_rivals;
  assay_region_t region;  // of outputs only
} assay_fault_t;

typedef struct assay_export {
  assay_fault_t* faults;
  size_t n, capacity;
  size_t values_compared;
  bool outputs_only;  // golden held no inner values
  bool cut_short;     // the search ran out of time
  size_t trials;      // repairs that were tried out
} assay_export_t;

// Another sample, of outputs only: what restores golden has to restore it there, too.
typedef struct assay_other_sample {
  assay_tensor_t* const* in;  // in the order of the graph's inputs; borrowed
  assay_golden_t golden;
} assay_other_sample_t;

enum { ASSAY_OTHER_SAMPLES = 3 };

typedef struct assay_export_options {
  bool unquantized;
  uint64_t seed;
  double seconds;  // for the search; 0: 40
  bool no_search;
  assay_golden_arithmetic_t arithmetic;  // that golden was computed in; 0: float32
  assay_golden_arithmetic_probe_t*
      probe;  // measures how alike they are, and finds no faults; NULL: none
  const assay_rounded_weights_t*
      rounded;                  // weights that golden has as they were before; NULL: none
  uint64_t draw;                // which roundings the noisy run makes
  struct assay_undone* undone;  // asked instead (undone.h), and no faults are found; NULL: not
  const assay_other_sample_t* others;
  size_t n_others;
  void (*progress)(void* user, const char* what, double fraction);
  void* user;
} assay_export_options_t;

// inputs: one sample, in the order of the graph's inputs. Golden values may have fewer rows than
// the model's: then the inputs' first rows are what counts, and the caller cuts them.
assay_status_t assay_export_check(const assay_model_t* model, assay_tensor_t* const* inputs,
                                  const assay_golden_t* golden,
                                  const assay_export_options_t* options,
                                  assay_export_t* out) ASSAY_MUST_USE;
void assay_export_deinit(assay_export_t* e);
// Whether each fault has a repair that brings golden back; false: there is none.
bool assay_export_is_proved(const assay_export_t* e);

#endif  // ASSAY_DIAGNOSE_EXPORT_H_
