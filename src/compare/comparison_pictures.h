// Pictures of errors as PNG files: where in a tensor they are, and how they grow with what is
// compared.
#ifndef ASSAY_COMPARE_COMPARISON_PICTURES_H_
#define ASSAY_COMPARE_COMPARISON_PICTURES_H_

#include "compare/comparison_internal.h"

// Maps of a difference over its last two dimensions, one beside the other for the dimensions before
// them: FOLDER/<what>_error_<output>.png. The folder is made.
assay_status_t assay_draw_heatmap(const assay_compare_job_t* j, const assay_numeric_t* difference,
                                  const char* what, const char* folder, int depth) ASSAY_MUST_USE;
// Absolute and relative error against the magnitude of the second output, both axes logarithmic:
// FOLDER/error_metrics_<output>.png.
assay_status_t assay_draw_errors(const assay_compare_job_t* j, const assay_numeric_t* absolute,
                                 const assay_numeric_t* relative, const char* folder,
                                 int depth) ASSAY_MUST_USE;

#endif  // ASSAY_COMPARE_COMPARISON_PICTURES_H_
