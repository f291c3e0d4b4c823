// The layers of a plan as an ONNX model, to be looked at: --convert-to onnx-like-trt-network.
#ifndef ASSAY_FRONTENDS_POLYGRAPHY_INSPECT_NETWORK_H_
#define ASSAY_FRONTENDS_POLYGRAPHY_INSPECT_NETWORK_H_

#include "frontends/polygraphy/build.h"

// A node of domain "assay" for each layer, named as it: its operators are the type, its inputs the
// values that it reads from outside, constants apart; attributes say its format, its kernel and
// the model's nodes that it is made of. What bodies of If and Loop read from around them is not
// among the inputs. No runtime can run that.
assay_status_t pg_network(const pg_built_t* built, assay_model_t** out) ASSAY_MUST_USE;

#endif  // ASSAY_FRONTENDS_POLYGRAPHY_INSPECT_NETWORK_H_
