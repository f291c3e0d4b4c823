// Declares every family's table; each family file includes it, so that its table has external
// linkage with a prototype in scope.
#ifndef ASSAY_OPS_FAMILIES_H_
#define ASSAY_OPS_FAMILIES_H_

#include "ops/op.h"

#define ASSAY_OP_FAMILY(name) extern const assay_op_t assay_ops_##name[];
#include "ops/families.inc"
#undef ASSAY_OP_FAMILY

#endif  // ASSAY_OPS_FAMILIES_H_
