// The audits together: ranges with their witness, broadcasts, constants, operators.
#ifndef ASSAY_RANGES_AUDIT_H_
#define ASSAY_RANGES_AUDIT_H_

#include <assay/audit.h>

#include "ranges/broadcasts.h"
#include "ranges/constants.h"
#include "ranges/ranges.h"
#include "ranges/support.h"
#include "ranges/witness.h"

typedef struct assay_audit_job {
  const assay_precision_t* precision;
  const char* const* boxes;  // as assay_box_create reads them
  size_t n_boxes;
  const assay_samples_t* samples;  // whose range is the box; NULL: none
  bool no_radius, no_witness;
  double seconds;  // of the search for a witness
  uint64_t seed;
  void (*progress)(void* user, const char* what, double fraction);
  void* user;
} assay_audit_job_t;

struct assay_audit {
  assay_plan_t* plan;
  assay_box_t box;
  assay_ranges_t ranges;
  bool has_radius;
  assay_radius_t radius;
  assay_witness_t witness;
  bool searched;  // for a witness
  assay_broadcasts_t broadcasts;
  assay_odd_constants_t constants;
  assay_support_t support;
  // Of those that the public API makes (audit_public.c); else the caller's.
  assay_model_t *open, *model;
  assay_format_t precision;  // as it was asked for
  assay_str_t ones;          // sizes that became 1
  bool batch_used;           // a batch was given, and an input took it
  assay_str_t saved;         // the file of the witness
};

// open: the model as declared (its broadcasts and baked sizes are told). model: the same with its
// sizes closed. Both outlive the audit.
assay_status_t assay_audit_find(assay_model_t* open, assay_model_t* model,
                                const assay_audit_job_t* job, assay_audit_t* out) ASSAY_MUST_USE;
void assay_audit_deinit(assay_audit_t* a);

#endif  // ASSAY_RANGES_AUDIT_H_
