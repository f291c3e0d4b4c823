// A search for quantizers with wrong scales, and what it measures; for suspect.c, suspect_run.c and
// refine.c.
#ifndef ASSAY_DIAGNOSE_QUANTIZERS_SUSPECT_H_
#define ASSAY_DIAGNOSE_QUANTIZERS_SUSPECT_H_

#include "diagnose/quantizers/alternatives.h"
#include "diagnose/quantizers/states.h"

typedef struct assay_quantizer_suspect {
  assay_quantizers_t* q;
  const assay_model_t* model;
  const assay_quantizers_options_t* options;
  assay_states_t* states;
  assay_quantizer_state_t* at;
  double deadline;
  double before, now;  // what golden is off by as the model is, and with the changes so far
  // The nearest of the alternatives that were tried in this round.
  size_t best_site;
  assay_quantizer_alternative_t best;
  double best_off;
} assay_quantizer_suspect_t;

typedef struct assay_suspect_measured {
  double off;            // the largest part of an output's energy that golden is off by
  double off_base;       // that the base is off by
  double moved, toward;  // from the base, by energy; along what golden is off by
  double wrong;          // energy of that
} assay_suspect_measured_t;

// What golden is off by with the states that there are; the outputs, in place of those that are
// there, if they are asked for.
assay_status_t assay_suspect_measure(assay_quantizer_suspect_t* u, assay_suspect_measured_t* out,
                                     assay_output_check_t** out_outputs) ASSAY_MUST_USE;
assay_quantizer_state_t assay_suspect_state(assay_quantizer_change_t change);
// Puts an alternative's scales in the place of those that fit, and these in the alternative.
void assay_suspect_exchange(assay_quantizer_site_t* s, assay_quantizer_alternative_t* a);
// What golden is off by with an alternative of a site.
assay_status_t assay_suspect_run_with(assay_quantizer_suspect_t* u, size_t site,
                                      assay_quantizer_alternative_t* a,
                                      assay_suspect_measured_t* out) ASSAY_MUST_USE;
bool assay_suspect_is_late(const assay_quantizer_suspect_t* u);
// Moves the range of the best guess as long as golden comes nearer.
assay_status_t assay_suspect_refine(assay_quantizer_suspect_t* u) ASSAY_MUST_USE;
// Moves the scales of a site's channels, one after the other, as long as golden comes nearer. only:
// of those that it is true of; NULL: of all. finest: the factor at which it ends.
assay_status_t assay_suspect_fit_channels(assay_quantizer_suspect_t* u, size_t site,
                                          assay_quantizer_alternative_t* a, const bool* only,
                                          double finest, double* off) ASSAY_MUST_USE;

// Moves the zero points of stored weights to where golden is nearest (middles.c).
assay_status_t assay_suspect_fit_zeros(assay_quantizer_suspect_t* u, size_t site,
                                       assay_quantizer_alternative_t* a,
                                       double* off) ASSAY_MUST_USE;

// Which site's change points where golden of a network that quantizes is: q->blamed, where no
// change mends it.
assay_status_t assay_suspect_attribute(assay_quantizer_suspect_t* u) ASSAY_MUST_USE;

#endif  // ASSAY_DIAGNOSE_QUANTIZERS_SUSPECT_H_
