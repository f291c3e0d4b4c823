// Exact sums of products of 8-bit integers by AVX512-VNNI, for kernels that make them tile by tile.
// Four neighbours along the sum are a unit of 4 bytes: VPDPBUSD adds their products to a 32-bit
// sum, modulo 2^32. Nothing saturates, and no order changes a bit.
#ifndef ASSAY_BACKENDS_CPU_INT8_INT8_BLOCK_H_
#define ASSAY_BACKENDS_CPU_INT8_INT8_BLOCK_H_

#include <stdbool.h>
#include <stdint.h>

#include "ops/quant/int8_quick.h"

enum { INT8_LANES = 16, INT8_PANEL = 64 };  // columns of a vector, and of a panel

bool int8_has_vnni(void);

// Rows of unsigned bytes by a panel of signed ones: rows of units, with 16 * vectors columns each.
// A row of a is n_pieces pieces of `units` units, which lie at `pieces` bytes after its beginning.
// Row i of c begins with row i of `start`, whose rows lie start_step apart (0: one row for all).
typedef struct int8_block {
  int64_t rows, units;
  const uint8_t* a;
  int64_t a_step;  // bytes
  int64_t n_pieces;
  const int64_t* pieces;
  const int8_t* panel;
  int vectors;  // 1 to 4
  const int32_t* start;
  int64_t start_step;
  int32_t* c;
  int64_t c_step;
  // Bytes in place of sums: `width` of each row, by the shorter way of the epilogue from its first
  // column on; row i begins at out + i * out_step. Rows that are not sure are handed over.
  const int8_quick_t* quick;  // NULL: sums
  int64_t width;
  uint8_t* out;
  int64_t out_step;
  void (*unsure)(const void* user, uint8_t* row, const int32_t* sums, int64_t width);
  const void* user;
} int8_block_t;
void int8_block_run(const int8_block_t* b);

// [k][n] (turned: [n][k]) of constants in int8's range to panels, the last one with as many vectors
// as it needs; k and n are filled up with zeros.
int64_t int8_panels_bytes(int64_t k, int64_t n);
void int8_panels_pack(const int16_t* w, int64_t row_step, int64_t column_step, int64_t k, int64_t n,
                      int8_t* to);

// ---- depthwise ---------------------------------------------------------------------------------

// Columns of 16 channels, so that unit p has bytes p to p + 3 of each channel: n units, out of
// columns [first, first + inside) of a row, which lie `step` bytes apart; what lies outside is
// `padding`. flip: bytes are signed, and 128 is added; `padding` has it already. channels: of 16,
// those that are there.
typedef struct int8_line {
  const uint8_t* from;
  int64_t step, before, inside, n;  // columns of padding in front; columns that are there
  int channels;
  uint8_t padding;
  bool flip;
} int8_line_t;
void int8_line_units(const int8_line_t* l, uint32_t* to);

// out[column][0..16) = start + sum over rows and quads of units[row][column * stride + 4 * quad].
typedef struct int8_depthwise_row {
  int64_t n_rows, quads, stride, columns;
  const uint32_t* const* rows;
  const int8_t* weights;  // [row][quad][16][4]
  const int32_t* start;
  int32_t* out;
  int64_t out_step;
} int8_depthwise_row_t;
void int8_depthwise_run(const int8_depthwise_row_t* d);

#endif  // ASSAY_BACKENDS_CPU_INT8_INT8_BLOCK_H_
