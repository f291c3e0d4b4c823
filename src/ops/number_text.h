// Numbers as text, as Cast between strings and numbers needs them: independent of the locale.
#ifndef ASSAY_OPS_NUMBER_TEXT_H_
#define ASSAY_OPS_NUMBER_TEXT_H_

#include "ops/op.h"

// The fewest digits that give x again in the type: "0.1", "100000.0", "1e-05" (positional from 1e-4
// to below 1e16, as numpy prints), "INF", "-INF", "NaN" (ONNX Cast). x must be a value of the type.
enum { ASSAY_NUMBER_TEXT = 48 };
void assay_number_print(assay_type_t type, double x, char buffer[ASSAY_NUMBER_TEXT]);

// Plain and scientific decimal numbers, "inf", "infinity" and "nan" in any case, a sign before;
// white space around. False: the text is not a number.
bool assay_number_parse(assay_string_t text, double* out);
// The same for whole numbers without exponent that fit into int64 or uint64 (then by its bits).
bool assay_integer_parse(assay_string_t text, int64_t* out);

#endif  // ASSAY_OPS_NUMBER_TEXT_H_
