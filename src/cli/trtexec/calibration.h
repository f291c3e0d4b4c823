// INT8 calibration caches of TensorRT: a line of the version and the algorithm, then "NAME: SCALE"
// a line, the scale being the 8 hexadecimal digits of a float's bits. The range is 127 times the
// scale.
#ifndef ASSAY_CLI_TRTEXEC_CALIBRATION_H_
#define ASSAY_CLI_TRTEXEC_CALIBRATION_H_

#include "base/alloc.h"

typedef struct trt_scale {
  const char* name;  // may hold ':' and spaces
  float scale;
} trt_scale_t;

// Lines without ':' are skipped. Names lie in the arena. Errors: CORRUPT with the line.
assay_status_t trt_calibration_parse(assay_arena_t* arena, const char* text, size_t n,
                                     trt_scale_t** out, size_t* out_n) ASSAY_MUST_USE;

#endif  // ASSAY_CLI_TRTEXEC_CALIBRATION_H_
