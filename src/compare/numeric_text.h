// Statistics and histograms of arrays in the words that Polygraphy prints.
#ifndef ASSAY_COMPARE_NUMERIC_TEXT_H_
#define ASSAY_COMPARE_NUMERIC_TEXT_H_

#include "compare/numeric.h"
#include "io/numpy_text.h"

// "mean=0.2, std-dev=..., p99=0.27173" of an array. known: its statistics; NULL: they are made.
assay_status_t assay_put_stats(const assay_numeric_t* a, const assay_numeric_stats_t* known,
                               assay_str_t* out) ASSAY_MUST_USE;
// "---- Histogram ----" and a line a bin, over a range or (NULL) the array's own; nothing for bool,
// for no elements in the range, and where the range is not finite.
void assay_put_bins(const assay_numeric_t* a, const assay_numeric_range_t* range, assay_str_t* out);
// The elements.
void assay_put_values(const assay_numeric_t* a, const assay_numpy_style_t* style, assay_str_t* out);
// Appends a text of several lines, each indented by some spaces, without a line break at its end.
void assay_put_indented(const char* text, int spaces, assay_str_t* out);

#endif  // ASSAY_COMPARE_NUMERIC_TEXT_H_
