// The range of an input's shapes that an engine is built for, and the one it is built best for.
#ifndef ASSAY_RUNTIME_PROFILE_H_
#define ASSAY_RUNTIME_PROFILE_H_

#include "ir/ir.h"

enum { ASSAY_PROFILE_MAX_RANK = 8 };

typedef struct assay_profile {
  const char* input;
  int rank;
  // 1 <= min[i] <= opt[i] <= max[i]
  int64_t min[ASSAY_PROFILE_MAX_RANK], opt[ASSAY_PROFILE_MAX_RANK], max[ASSAY_PROFILE_MAX_RANK];
} assay_profile_t;

// "1x3x224x224:4x3x224x224:8x3x224x224" (min, opt, max) or one shape for all three. `input` is
// borrowed. Errors: INVALID_ARGUMENT.
assay_status_t assay_profile_parse(const char* input, const char* text,
                                   assay_profile_t* out) ASSAY_MUST_USE;
// INVALID_ARGUMENT unless the shape is within the range.
assay_status_t assay_profile_check(const assay_profile_t* p, int rank,
                                   const int64_t* dims) ASSAY_MUST_USE;

#endif  // ASSAY_RUNTIME_PROFILE_H_
