// Trying one repair after another within a search: evaluating, scoring, fitting, keeping the best.
#ifndef ASSAY_DIAGNOSE_SEARCH_TRIAL_H_
#define ASSAY_DIAGNOSE_SEARCH_TRIAL_H_

#include "diagnose/search.h"

// A repair that was tried, and what it left.
typedef struct assay_tried_repair {
  assay_repair_t repair;
  double remains;  // of the difference
  double left;     // over golden's size
  bool restored;
  int rank;  // its row in the table: earlier ones are likelier causes
} assay_tried_repair_t;

// A repair that mends a part: another fault may hide the rest.
typedef struct assay_partial {
  assay_repair_t repair;
  double remains;
  double merit;  // what counts: fitted parameters can take a part of anything
} assay_partial_t;

enum { ASSAY_TRIAL_MAX_REPAIRS = 4, ASSAY_TRIAL_PARTIALS = 24 };

typedef struct assay_trials {
  assay_search_t* s;
  struct assay_trials* others;  // by other sample
  bool* dirty;                  // by value id: changed by the repair being tried
  assay_tensor_t** old;         // by value id: what its slot held
  size_t* last;                 // by value id: the position after which no node reads it
  const assay_value_t** touched;
  size_t n_touched, cap_touched;
  assay_tensor_t** got;  // by target: with the repair
  double before;         // the score without repair
  bool shapes_fit;       // truth has golden's shapes
  double remains;        // of the difference, with the repair that was tried last; NAN: not known
  double arrived;   // how far the last repair moved the targets, over their RMS; NAN: not known
  int rank;         // row of the repair being tried
  size_t position;  // of the suspect among the nodes
  assay_tried_repair_t best[ASSAY_TRIAL_MAX_REPAIRS];
  size_t n_best;
  assay_partial_t partials[ASSAY_TRIAL_PARTIALS];  // best first
  size_t n_partials;
  double* merit;   // by position: the largest part of the difference that a change of it took away
  bool anywhere;   // of what is tried there is so much that a part taken away says nothing
  bool fitted;     // what is tried has numbers that were fitted to all samples but the last
  bool found;      // something restored golden
  bool plausible;  // something did, but leaves what can be seen: it may only hide the fault
} assay_trials_t;

assay_status_t assay_trials_init(assay_search_t* s, assay_trials_t* t) ASSAY_MUST_USE;
void assay_trials_deinit(assay_trials_t* t);

// Tries a repair, or fits its parameter, and keeps it if it helps.
assay_status_t assay_trials_try(assay_trials_t* t, const assay_repair_t* r) ASSAY_MUST_USE;

// What a repair leaves of the difference in this sample and the first n others together, without
// keeping it. *out NAN: not known. The repair is of the node at t->position.
assay_status_t assay_trials_leave(assay_trials_t* t, const assay_repair_t* r, size_t n,
                                  double* out) ASSAY_MUST_USE;

// Notes that a change of the node at a position leaves so much of the difference; `share` of it
// counts, since a change of many numbers can take a part of anything.
void assay_trials_note(assay_trials_t* t, size_t position, double remains, double share);

// Makes a repair until it is dropped. *out: the targets, with truth as it is then (borrowed from
// t), to be freed; NULL if the repair does not fit.
assay_status_t assay_trials_adopt(assay_trials_t* t, const assay_repair_t* r,
                                  assay_search_target_t** out) ASSAY_MUST_USE;
void assay_trials_drop(assay_trials_t* t);

// Fills t->got with what the targets are with all repairs that the search has adopted. *out_fits
// false: they cannot be evaluated.
assay_status_t assay_trials_evaluate_adopted(assay_trials_t* t, bool* out_restored,
                                             bool* out_fits) ASSAY_MUST_USE;

#endif  // ASSAY_DIAGNOSE_SEARCH_TRIAL_H_
