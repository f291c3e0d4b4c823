#include "ops/families.h"

const assay_op_t assay_ops_loss[] = {{0}};
