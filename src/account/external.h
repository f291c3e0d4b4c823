// Judging layers of engines that are not ours, of which not everything is known.
#ifndef ASSAY_ACCOUNT_EXTERNAL_H_
#define ASSAY_ACCOUNT_EXTERNAL_H_

#include "account/account.h"
#include "account/local.h"

// What a layer was given and gave, and what is known of it.
typedef struct assay_external_run {
  const assay_layer_t* layer;
  const assay_node_t* node;  // the one that it ends in
  size_t n_in;
  assay_tensor_t* const* in;
  assay_tensor_t* const* engine;  // by output
  const assay_local_t* local;
  const assay_rounding_t* rounding;
  const assay_special_t* special;  // what explains NaN and infinities; NULL: nothing is known
} assay_external_run_t;

// What an engine gave must have the shape that the layer gives. Errors: DEVICE.
assay_status_t assay_external_check(const assay_node_t* node, size_t n,
                                    assay_tensor_t* const* engine,
                                    assay_tensor_t* const* truth) ASSAY_MUST_USE;

// In a narrow format the engine may have run the layer wider, where it is free to choose; and it
// may have read values wider than it has shown them (ONNX Runtime drops pairs of Casts between
// nodes that it runs in fp32). *judged, made of local->converted, is replaced by the judgement that
// explains more. *out_final: reruns, which know nothing of this, are not to be asked.
assay_status_t assay_external_judge(assay_locals_t* l, const assay_external_run_t* r,
                                    assay_judgement_t* judged, bool* out_final) ASSAY_MUST_USE;

// Whether limits say too little of the layer: it has none, or it is made of several nodes, whose
// limits grow from one to the next faster than errors do. Not where it makes choices by floats.
bool assay_external_is_vague(const assay_external_run_t* r);
// For such layers: the size of the engine's error against that of reruns. An engine of which little
// is known may make several times as much of it, or some roundings of everything. *out_asked:
// reruns were needed; *out_by: how many times larger it is than what they show, where that is too
// much; 0 else.
assay_status_t assay_external_compare(assay_locals_t* l, const assay_external_run_t* r,
                                      bool* out_asked, double* out_by) ASSAY_MUST_USE;

// Whether a layer whose error passes its limits is off by no more than a few units of its full
// scale: less accurate than IEEE arithmetic, as approximations are, and by nothing larger.
bool assay_external_is_near(const assay_layer_account_t* layer);
// The largest error in units of the full scale: |error| / (u * scale), u the unit roundoff of what
// the layer's floats are stored in.
double assay_external_units(const assay_layer_account_t* layer);
// Makes every 'less accurate' layer a 'defect': where outputs are not what they have to be, and
// nothing else explains it, their errors do matter.
void assay_external_blame_near(assay_account_t* a);

#endif  // ASSAY_ACCOUNT_EXTERNAL_H_
