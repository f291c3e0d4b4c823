// Normalizations of rows of bytes with quantizers inside (passes/int8/quantized_norm.h): bytes in,
// bytes out, without floats in memory.
//
// A row's sum and sum of squares are exact integers, and so are n^2 times its variance: its number
// is rounded once. The first quantizer after it makes a byte of it, on which all that follows up
// to the quotient depends: one factor and one unit for each of 256. A quotient in steps is then
//   (x - zero) * factor - mean * unit
// with one rounding each, which is nearer to truth than the nodes one by one. What follows the
// quotient is a function from bytes to bytes for each channel: one fused operation, where that
// gives the definition's bytes for all of 256; else the channel is computed by the definition.
#ifndef ASSAY_BACKENDS_CPU_INT8_INT8_NORM_H_
#define ASSAY_BACKENDS_CPU_INT8_INT8_NORM_H_

#include "base/status.h"
#include "passes/int8/quantized_norm.h"

enum { INT8_NORM_ROWS = 16 };  // are looked at together

// From a byte less a zero point to the next one less its own.
typedef struct int8_norm_stage {
  float *factor, *shift;  // of `size` channels, and up to a multiple of 16
  float low, high;
  // The definition: numbers that are multiplied and added, NULL: none; one for all, or `size`.
  float *times, *plus;
  int64_t n_times, n_plus;
  assay_norm_step_t before, step;
} int8_norm_stage_t;

typedef struct int8_norm {
  int64_t size;  // elements of a row
  assay_type_t x_type;
  float x_scale, x_zero;
  double mean_scale, variance_scale;  // of exact integers
  float epsilon;
  assay_norm_step_t of_variance, of_sum, of_root, of_quotient;
  // By the byte of the first of those three.
  float root[256], factor[256];
  double unit[256];
  bool odd[256];  // no positive number to divide by: rows are computed by the definition
  float low, high;
  int8_norm_stage_t stages[ASSAY_QUANTIZED_NORM_STAGES];
  int n_stages;
  int64_t* odd_channels;
  int64_t n_odd_channels;
} int8_norm_t;

// What rows of `size` elements need. The numbers of stages' operands and epsilon are copied:
// factors and terms are of one element or of `size`, NULL where a stage has none.
typedef struct int8_norm_numbers {
  float epsilon;
  const float *factor[ASSAY_QUANTIZED_NORM_STAGES], *term[ASSAY_QUANTIZED_NORM_STAGES];
  int64_t n_factor[ASSAY_QUANTIZED_NORM_STAGES], n_term[ASSAY_QUANTIZED_NORM_STAGES];
} int8_norm_numbers_t;
assay_status_t int8_norm_init(int8_norm_t* k, const assay_quantized_norm_t* q, int64_t size,
                              const int8_norm_numbers_t* numbers) ASSAY_MUST_USE;
void int8_norm_deinit(int8_norm_t* k);

// Rows one after the other. The same bits on every CPU.
void int8_norm_rows(const int8_norm_t* k, const uint8_t* x, int64_t rows, uint8_t* y);
// The same in plain C.
void int8_norm_rows_plain(const int8_norm_t* k, const uint8_t* x, int64_t rows, uint8_t* y);

// ---- between the files of it --------------------------------------------------------------------

// What an exact sum and sum of squares of a row's bytes, as unsigned ones, make of it.
typedef struct int8_norm_row {
  float factor, shift;  // of quotients in steps
  float mean, root;
  bool odd;
} int8_norm_row_t;
int8_norm_row_t int8_norm_row_of(const int8_norm_t* k, int64_t sum, int64_t squares);
// Element c of a row, by the definition from `from` on: 0 the quotient, 1 what is after it.
uint8_t int8_norm_exactly(const int8_norm_t* k, const int8_norm_row_t* r, uint8_t x, int64_t c,
                          int from);
// Whether a fused operation has the bytes `want` of all 256 before the stage.
bool int8_norm_gives(const int8_norm_stage_t* s, float factor, float shift,
                     const uint8_t want[256]);
bool int8_norm_has_wide(void);
bool int8_norm_gives_wide(const int8_norm_stage_t* s, float factor, float shift,
                          const uint8_t want[256]);
void int8_norm_rows_wide(const int8_norm_t* k, const uint8_t* x, int64_t rows, uint8_t* y);

#endif  // ASSAY_BACKENDS_CPU_INT8_INT8_NORM_H_
