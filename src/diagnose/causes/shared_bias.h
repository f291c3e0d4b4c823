// A bias of integers that layers of unlike scales read: right for one of them only.
#ifndef ASSAY_DIAGNOSE_CAUSES_SHARED_BIAS_H_
#define ASSAY_DIAGNOSE_CAUSES_SHARED_BIAS_H_

#include "diagnose/repair.h"

struct assay_surroundings;

// The layers that read the bias of a node, if it is stored as integers and there are several; else
// 0.
size_t assay_shared_bias_layers(const struct assay_surroundings* around, const assay_node_t* node,
                                const assay_node_t* const** out);
// The repair of a node whose bias is in the units of another layer that reads it, the owner:
// integers of its own. *out_made false: these are the same, or not known.
assay_status_t assay_shared_bias_repair(const assay_node_t* node, const assay_node_t* owner,
                                        const char* cause, assay_repair_t* out,
                                        bool* out_made) ASSAY_MUST_USE;

#endif  // ASSAY_DIAGNOSE_CAUSES_SHARED_BIAS_H_
