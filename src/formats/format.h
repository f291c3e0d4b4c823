// Number formats: what a bit pattern means, and rounding to it.
//
// Every value of every format of 32 bits or fewer (and of the integer formats up to 53 bits) is a
// float64, so values travel as float64 and a format is the set that they are rounded to.
#ifndef ASSAY_FORMATS_FORMAT_H_
#define ASSAY_FORMATS_FORMAT_H_

#include <assay/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

// What happens to a finite value (or an infinity) past the largest finite one of a float format.
typedef enum assay_overflow {
  ASSAY_OVERFLOW_IEEE = 0,  // to infinity after rounding; NaN where the format has no infinity
  ASSAY_OVERFLOW_SATURATE,  // to the largest finite value, infinities too (ONNX's saturate=1)
} assay_overflow_t;

// A row of the table of formats.
typedef struct assay_format_info {
  const char* name;   // "fp16"
  assay_type_t type;  // the ONNX element type stored in it; UNDEFINED for tf32
  int bits;           // of one element as packed in ONNX's raw_data
  bool is_float, is_signed;
  int precision;         // significant bits, the hidden one included (p); floats only
  int min_exponent;      // of the smallest normal number: 2^min_exponent
  double max;            // largest finite value; of 64-bit integers, the power of two after it
  double min_normal;     // smallest positive normal
  double min_subnormal;  // smallest positive
  double unit_roundoff;  // u = 2^-p; 0 for integers
  bool has_infinity, has_nan;
} assay_format_info_t;

const assay_format_info_t* assay_format_info(assay_format_t format);

// The format that a type's elements are in; NONE for strings. Complex types give their parts'.
assay_format_t assay_type_format(assay_type_t type);
// The type of ONNX's name in lower case ("float16", "int64" ...); UNDEFINED if there is none.
assay_type_t assay_type_parse(const char* name);

// What kind of number a type holds; assay_type_is_float() (types.h): fp64 down to fp4, not complex.
bool assay_type_is_integer(assay_type_t type);  // signed and unsigned; not bool
bool assay_type_is_signed(assay_type_t type);
bool assay_type_is_complex(assay_type_t type);
int assay_type_bits(assay_type_t type);  // of one element as packed; 0 for strings
// Bytes that n elements take in ONNX's raw_data (elements of 2, 4 and 6 bits share bytes). Checked:
// false on overflow and for strings.
bool assay_type_packed_bytes(assay_type_t type, int64_t n, int64_t* out_bytes);

// Rounds to the nearest value of a format, ties to even; once, from float64. NaN stays NaN with its
// sign (where the format has none: -0, and +0 for a negative NaN, as onnx.reference has it; 0 in
// integers); tiny results are rounded to subnormals, never flushed. Integers saturate.
// Source: IEEE 754-2019, 4.3.1; ONNX 'Float stored in 8 bits', 'Float stored in 4 bits'.
double assay_format_round(assay_format_t format, double x, assay_overflow_t overflow);
// The same over n values; y may be x. Vectorized, and threaded where n is large.
void assay_format_round_n(assay_format_t format, const double* x, double* y, size_t n,
                          assay_overflow_t overflow);

// Rounds to one of the two neighbours in a float format: up with the probability of x's distance
// from the lower one, where `random` in [0, 1) is the draw. Values of the format and what lies past
// its range are rounded as by assay_format_round. Source: M. Croci and others, Stochastic rounding:
// implementation, error analysis and applications, R. Soc. Open Sci. 9 (2022).
double assay_format_round_stochastic(assay_format_t format, double x, double random);

// float8e8m0 as ONNX's Cast rounds to it: to the power of two above, below, or nearest (ties up).
// NEAREST is what the other functions do. What is then not in 2^-127 .. 2^127, zero and infinity
// included, becomes the end of the range (saturate) or NaN (ieee); negative numbers become NaN.
// Source: ONNX Cast 24 to 28, round_mode and the table of special values; where onnx.reference
// differs from that text (infinity saturated, small values not saturated), the text holds.
typedef enum assay_e8m0_mode {
  ASSAY_E8M0_NEAREST = 0,
  ASSAY_E8M0_UP,  // Cast's default
  ASSAY_E8M0_DOWN,
} assay_e8m0_mode_t;
double assay_format_round_e8m0(double x, assay_e8m0_mode_t mode, assay_overflow_t overflow);

// The bit pattern of the nearest value, and the value of a bit pattern. tf32 has fp32's patterns.
// fp64 and fp32 keep NaN's payload, the others have one quiet NaN (with sign, if they have one).
uint64_t assay_format_encode(assay_format_t format, double x, assay_overflow_t overflow);
double assay_format_decode(assay_format_t format, uint64_t bits);

// Wraps an integer to the width of an integer type, as a C cast does (two's complement). uint64
// values travel as the int64 with the same bits. BOOL gives 0 or 1.
int64_t assay_type_wrap(assay_type_t type, int64_t x);
// The nearest integer of the type, saturating; ties to even. NaN gives 0. BOOL gives x != 0.
int64_t assay_type_saturate(assay_type_t type, double x);

// The neighbour of x in the format towards +infinity (direction > 0) or -infinity: the first value
// on that side; at the end of a format without infinity, the end. x need not be in the format.
double assay_format_next(assay_format_t format, double x, int direction);
// The distance between consecutive values at x's magnitude (the one above |x|); past the end, that
// at the end.
double assay_format_ulp(assay_format_t format, double x);
// How many steps of the format lie between two of its values (+0 and -0 are one value; all that is
// past the end is one step after it); -1 if one of them is NaN and the other is not.
int64_t assay_format_ulp_distance(assay_format_t format, double a, double b);

// Packed elements, as in ONNX's raw_data (little endian, any alignment; of 2, 4 and 6 bits: a
// stream of bits, lowest first), to canonical values and back. Floats: double; integers and bool:
// int64_t; complex: 2 doubles. `first` may be any element; packing starts at a byte and zeroes the
// bits left over at the end. Integers are cut to their width, not saturated.
void assay_unpack(assay_type_t type, const void* packed, int64_t first, int64_t n, void* canonical);
void assay_pack(assay_type_t type, const void* canonical, int64_t n, void* packed,
                assay_overflow_t overflow);

#endif  // ASSAY_FORMATS_FORMAT_H_
