// What nodes cost, from the types of their values: nothing is run.
#ifndef ASSAY_OPS_COST_H_
#define ASSAY_OPS_COST_H_

#include "ops/op.h"

// The size that a name stands for; false: not known.
typedef bool assay_size_of_t(void* user, const char* name, int64_t* out);

// The cost of one node by its row's formula. *known becomes false, and the cost 0, where a type is
// missing that the formula needs, or a size that only running tells; bodies of If, Loop and Scan
// are nodes of their own. NO_MEMORY.
assay_status_t assay_cost_of_node(const assay_node_t* node, assay_size_of_t* size_of, void* user,
                                  bool* known, assay_cost_t* out);

#endif  // ASSAY_OPS_COST_H_
