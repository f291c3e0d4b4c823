#include "ops/families.h"

const assay_op_t assay_ops_attention[] = {{0}};
