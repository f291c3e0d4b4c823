// Numbers and arrays as NumPy and Python print them: str(array), repr(number).
#ifndef ASSAY_IO_NUMPY_TEXT_H_
#define ASSAY_IO_NUMPY_TEXT_H_

#include <assay/types.h>

#include "base/str.h"

// np.set_printoptions. Starts as ASSAY_NUMPY_STYLE.
typedef struct assay_numpy_style {
  int64_t edge_items;  // of long dimensions that many from each end
  int64_t line_width;  // characters
  int64_t threshold;   // arrays of more elements than that are shortened
} assay_numpy_style_t;
#define ASSAY_NUMPY_STYLE \
  ((assay_numpy_style_t){.edge_items = 3, .line_width = 75, .threshold = 1000})

// Elements of an array: of floats in `f`, of others in `i` (uint64 by its bits). Types of float
// that NumPy lacks have as many digits as float32.
typedef struct assay_numpy_array {
  assay_type_t type;
  int rank;
  const int64_t* dims;
  int64_t n;
  const double* f;
  const int64_t* i;
} assay_numpy_array_t;

// Appends the array, several lines with no line break at the end. Failure shows in `out`.
void assay_numpy_print(const assay_numpy_array_t* a, const assay_numpy_style_t* style,
                       assay_str_t* out);
// Appends a number of a type with as few digits as tell it from its neighbours: "0.1", "1e-05",
// "1.0". As DOUBLE it is Python's float.
void assay_numpy_print_float(assay_type_t type, double x, assay_str_t* out);
// Appends a number with so many digits at most, as Python's "%.5g" does: NaN has no sign.
void assay_numpy_print_g(double x, int digits, assay_str_t* out);
// "float32": a type's name there; ONNX's where it has none.
const char* assay_numpy_type_name(assay_type_t type);
// A shape: "(2, 3)", "(5,)", "()".
void assay_numpy_print_shape(int rank, const int64_t* dims, assay_str_t* out);

#endif  // ASSAY_IO_NUMPY_TEXT_H_
