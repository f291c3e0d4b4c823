// Normalizations in twice the precision of float64 (ops/dd_array.h).
#ifndef ASSAY_OPS_NORM_NORM_DD_H_
#define ASSAY_OPS_NORM_NORM_DD_H_

#include "ops/dd_array.h"

// BatchNormalization by given statistics, or by the batch's own.
void assay_batch_norm_dd(assay_dd_eval_t* c, bool training);
// Input 0 is [n, channels, ...]: groups of channels, `per` of which share a scale and a bias.
void assay_group_norm_dd(assay_dd_eval_t* c, int64_t groups, int64_t per);
// Over the axes from attribute `axis` on. centered: LayerNormalization, else RMSNormalization.
void assay_layer_norm_dd(assay_dd_eval_t* c, bool centered);
void assay_mean_variance_norm_dd(assay_dd_eval_t* c, const bool* axes, double epsilon);
void assay_lp_norm_dd(assay_dd_eval_t* c);  // LpNormalization

#endif  // ASSAY_OPS_NORM_NORM_DD_H_
