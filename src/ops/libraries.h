// The libraries behind the operators.
#ifndef ASSAY_OPS_LIBRARIES_H_
#define ASSAY_OPS_LIBRARIES_H_

#include "base/str.h"

// Names and versions, as loaded, with ", " between: "OpenBLAS 0.3.21 ..., PCRE2 10.42 ...".
void assay_ops_describe_libraries(assay_str_t* out);
// The name of the CPU that OpenBLAS's kernels are for, in its own words: "Haswell".
const char* assay_ops_blas_kernels(void);

#endif  // ASSAY_OPS_LIBRARIES_H_
