// Layers that values past a format's range do no harm to: Clip(x, 0, 6), Sigmoid, Min, 1/x ...
#ifndef ASSAY_ACCOUNT_ABSORB_H_
#define ASSAY_ACCOUNT_ABSORB_H_

#include "account/local.h"

// Whether the layer gives the same when what passes its format's range comes in as infinities.
// Inputs are true ones, those of all nodes as a tap has them; `out` is truth of them. True only
// where an input passes the range.
assay_status_t assay_absorbs(assay_locals_t* locals, const assay_layer_t* layer,
                             const assay_node_t* node, size_t n_in, assay_tensor_t* const* in,
                             size_t n_out, assay_tensor_t* const* out,
                             bool* out_absorbs) ASSAY_MUST_USE;

#endif  // ASSAY_ACCOUNT_ABSORB_H_
