// Values and nodes by the names that users give.
#ifndef ASSAY_EDIT_NAMES_H_
#define ASSAY_EDIT_NAMES_H_

#include "ir/ir.h"

// The value of this name in the main graph. NOT_FOUND names the nearest ones, or the node in whose
// body it lies.
assay_status_t assay_names_value(const assay_model_t* m, const char* name,
                                 assay_value_t** out) ASSAY_MUST_USE;
// Fails with NOT_FOUND, and the nearest names, where a pattern matches the label of no node.
assay_status_t assay_names_node_pattern(const assay_model_t* m, const char* pattern) ASSAY_MUST_USE;
// Splits OLD=NEW at its last '='; INVALID_ARGUMENT without one, or with nothing before it. Texts
// live in the model's arena.
assay_status_t assay_names_pair(assay_model_t* m, const char* option, const char* text,
                                const char** out_old, const char** out_new) ASSAY_MUST_USE;

#endif  // ASSAY_EDIT_NAMES_H_
