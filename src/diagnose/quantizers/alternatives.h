// Other scales that a quantizer might have, from the model alone.
#ifndef ASSAY_DIAGNOSE_QUANTIZERS_ALTERNATIVES_H_
#define ASSAY_DIAGNOSE_QUANTIZERS_ALTERNATIVES_H_

#include "diagnose/quantizers/quantizers.h"

typedef struct assay_quantizer_alternative {
  assay_quantizer_change_t change;
  assay_quantizer_scales_t by;        // of a change of scales
  bool other_sign;                    // stored bytes are read the other way
  bool exact;                         // one of few that can be meant, no guess from samples
  assay_quantizer_pattern_t pattern;  // FITS: what the scales show by themselves
} assay_quantizer_alternative_t;

// Is called with each; may take `by` over and empty it.
typedef assay_status_t assay_quantizer_take_t(void* user, size_t site,
                                              assay_quantizer_alternative_t* a);

typedef struct assay_quantizer_taker {
  assay_quantizer_take_t* take;
  void* user;
} assay_quantizer_taker_t;

// What something else in the model speaks for: the integers themselves, a bias, a neighbour, what
// dequantizes it, or the values that reach it.
assay_status_t assay_quantizer_told(const assay_quantizers_t* q, size_t site,
                                    const assay_quantizer_taker_t* to) ASSAY_MUST_USE;
// What exporters are known to do to stored integers, without any sign of it. near: about how many
// times as large the scales should be; those within a tenth of it are tried.
assay_status_t assay_quantizer_known(const assay_quantizers_t* q, size_t site, double near,
                                     const assay_quantizer_taker_t* to) ASSAY_MUST_USE;
// Gives scales that were made to `to`, and frees what it leaves of them.
assay_status_t assay_quantizer_offer(const assay_quantizer_taker_t* to, size_t site,
                                     assay_quantizer_alternative_t* a) ASSAY_MUST_USE;
// The site that a value comes from; NULL: none.
const assay_quantizer_site_t* assay_quantizer_site_of(const assay_quantizers_t* q,
                                                      const assay_value_t* v);
// A copy of scales, each so many times as large, rounded to float32.
assay_status_t assay_quantizer_scaled(const assay_quantizer_scales_t* s, double times,
                                      const char* how,
                                      assay_quantizer_scales_t* out) ASSAY_MUST_USE;
// Says in `why` what stored scales show by themselves; false: nothing that is known here.
bool assay_quantizer_explain_told(assay_quantizer_site_t* s);

#endif  // ASSAY_DIAGNOSE_QUANTIZERS_ALTERNATIVES_H_
