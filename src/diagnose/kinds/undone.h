// Inner values that differ from golden's though every output agrees: what an exporter folded, a
// factor that went into the weights of one layer and out of those of another.
#ifndef ASSAY_DIAGNOSE_KINDS_UNDONE_H_
#define ASSAY_DIAGNOSE_KINDS_UNDONE_H_

#include "account/golden/golden.h"
#include "data/samples.h"

typedef struct assay_undone_value {
  const assay_value_t* value;
  const assay_node_t* node;
  double walked;        // RMS that it differed by where all before it was golden's
  double tt, tg, gg;    // sums over elements of truth and golden
  double rms, ref_rms;  // of the difference, of golden; the largest of the samples
  bool differs;         // in truth of the whole model, too: not only where golden stood before it
  bool shown;           // golden's value in its place moves outputs: layers after it undo it
} assay_undone_value_t;

typedef struct assay_undone {
  assay_undone_value_t* at;
  size_t n;
  bool failed;  // the faults stand: an output shows one, or does not tell
} assay_undone_t;

void assay_undone_deinit(assay_undone_t* u);

// The factor that truth is golden times; 0: there is none.
double assay_undone_factor(const assay_undone_value_t* u);

// One sample: whether layers after each value undo how it differs. Where golden's value in its
// place brings outputs nearer to golden, or outputs cannot tell, u->failed.
assay_status_t assay_undone_add(assay_undone_t* u, const assay_model_t* model,
                                assay_tensor_t* const* inputs, const assay_golden_t* golden,
                                uint64_t seed) ASSAY_MUST_USE;

#endif  // ASSAY_DIAGNOSE_KINDS_UNDONE_H_
