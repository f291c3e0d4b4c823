// Numbers of a site (sketch.h), fitted to golden of several samples: Gauss-Newton, step by step.
#ifndef ASSAY_DIAGNOSE_OUTPUTS_SITE_FIT_H_
#define ASSAY_DIAGNOSE_OUTPUTS_SITE_FIT_H_

#include "diagnose/outputs/sketch.h"
#include "diagnose/search_predict.h"
#include "diagnose/search_trial.h"

enum { ASSAY_SITE_SAMPLES = 4 };  // that equations are taken from

// The output times factors plus summands, or a constant plus summands, as fitted so far, and what
// that leaves of the samples that it is fitted to: 1 is nothing gained.
typedef struct assay_site_fit {
  double factor[ASSAY_SITE_CHANNELS], summand[ASSAY_SITE_NUMBERS];
  double left;
} assay_site_fit_t;

void assay_site_fit_begin(const assay_site_t* site, assay_site_fit_t* fit);

// The other samples that equations are of: the last one takes no part, so that a fit has to hold
// where nothing was fitted.
size_t assay_site_fitted_others(const assay_search_t* s);

// Steps from a fit as long as each leaves less than the part `enough` of what was left. What helps
// is tried in `t`. a: room for the equations.
assay_status_t assay_site_fit_go_on(assay_trials_t* t, const assay_site_sketch_t* all,
                                    assay_site_t* site, double* a, double enough,
                                    assay_site_fit_t* fit) ASSAY_MUST_USE;

// Of a site of one number: tries usual sizes of it, of which the first step may know nothing, and
// goes on from the best, if it leaves less than the fit does.
assay_status_t assay_site_fit_scan(assay_trials_t* t, double end, assay_site_t* site,
                                   assay_site_fit_t* fit) ASSAY_MUST_USE;

// The searches of the samples that are fitted to with a repair made, as far as it fits. next: room
// for ASSAY_SITE_SAMPLES.
assay_status_t assay_site_adopt(assay_trials_t* t, const assay_repair_t* r, assay_search_t* next,
                                size_t* out_n) ASSAY_MUST_USE;
void assay_site_drop(assay_trials_t* t, assay_search_t* next, size_t n);

// The repair that a fit is.
assay_status_t assay_site_repair(const assay_search_t* s, const assay_site_t* site,
                                 const assay_site_fit_t* fit, assay_repair_t* out) ASSAY_MUST_USE;

#endif  // ASSAY_DIAGNOSE_OUTPUTS_SITE_FIT_H_
