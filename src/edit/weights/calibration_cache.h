// INT8 calibration caches of TensorRT: a line of the version and the algorithm, then "NAME: SCALE"
// a line, the scale being the 8 hexadecimal digits of a float's bits. The range is 127 times the
// scale.
#ifndef ASSAY_EDIT_WEIGHTS_CALIBRATION_CACHE_H_
#define ASSAY_EDIT_WEIGHTS_CALIBRATION_CACHE_H_

#include "base/alloc.h"
#include "edit/editor.h"

// Lines without ':' are skipped. Names lie in the arena. Errors: CORRUPT with the line.
assay_status_t assay_calibration_cache_parse(assay_arena_t* arena, const char* text, size_t n,
                                             assay_edit_scale_t** out,
                                             size_t* out_n) ASSAY_MUST_USE;

// The same of a file.
assay_status_t assay_calibration_cache_read(assay_arena_t* arena, const char* path,
                                            assay_edit_scale_t** out, size_t* out_n) ASSAY_MUST_USE;

// The scales with which a model's activations are quantized, each value once; names lie in the
// arena.
assay_status_t assay_calibration_cache_of_model(assay_arena_t* arena, const assay_model_t* m,
                                                assay_edit_scale_t** out,
                                                size_t* out_n) ASSAY_MUST_USE;

// Writes a cache. algorithm: as in its first line, "EntropyCalibration2".
assay_status_t assay_calibration_cache_write(const char* path, const char* algorithm,
                                             const assay_edit_scale_t* scales,
                                             size_t n) ASSAY_MUST_USE;

#endif  // ASSAY_EDIT_WEIGHTS_CALIBRATION_CACHE_H_
