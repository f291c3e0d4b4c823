// Inputs and outputs of graphs, as `assay inspect` shows them.
#ifndef ASSAY_CLI_VERBS_INSPECT_INSPECT_VALUES_H_
#define ASSAY_CLI_VERBS_INSPECT_INSPECT_VALUES_H_

#include "io/json.h"
#include "ir/ir.h"

// {"name", "type", "elem", "shape"}: sizes are numbers, or names where they are open. NULL: no
// memory.
json_t* cli_value_json(const assay_value_t* v);
json_t* cli_values_json(assay_value_t* const* values, size_t n);  // a list of them
// "input      'x' float[N,3,8,8]", a line each.
void cli_values_print(const char* what, assay_value_t* const* values, size_t n);

#endif  // ASSAY_CLI_VERBS_INSPECT_INSPECT_VALUES_H_
