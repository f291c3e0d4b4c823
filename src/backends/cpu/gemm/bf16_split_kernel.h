// Products of float32 matrices by bf16 multiply-adds in tiles (AMX): each number is the sum of two
// or three bf16 numbers, x = h + m (+ l), of 8 bits each, and of the products of their parts the
// largest three (m h, h h, h m) or six (l h, m h, m m, h m, h h, h l) are added up.
//
// A unit of k is 32 terms: TDPBF16PS makes one chain of fused multiply-adds of the 16 even ones and
// one of the odd ones, adds the two, and adds that to the sum. Units come one after the other, in
// each the products in the order above. So a sum depends on nothing but its own row and column.
// Subnormal numbers are taken as 0, and become 0, on the way.
#ifndef ASSAY_BACKENDS_CPU_GEMM_BF16_SPLIT_KERNEL_H_
#define ASSAY_BACKENDS_CPU_GEMM_BF16_SPLIT_KERNEL_H_

#include <stdbool.h>
#include <stdint.h>

#include "backends/cpu/range.h"

enum {
  CPU_BF16_SPLIT_UNIT = 32,     // terms; as bf16 they are a cache line
  CPU_BF16_SPLIT_TILE = 16,     // rows, or columns
  CPU_BF16_SPLIT_ROWS = 32,     // of a block
  CPU_BF16_SPLIT_COLUMNS = 32,  // of a panel
  CPU_BF16_SPLIT_MAX_PARTS = 3
};

// Splits a row of n numbers into units of `parts` lines each, h, m, l, with zeros after the n-th;
// `to` is a cache line's. Returns whether all are in range. On CPUs with tiles, or imitating them.
bool cpu_bf16_split_row(int parts, int64_t n, const float* x, cpu_range_t range, uint16_t* to);

// Where element (k, j) of a matrix on the right lies in a panel: 32 columns, unit by unit, in each
// [parts][two tiles of columns][16 pairs of k][16 columns][2].
static inline int64_t cpu_bf16_split_at(int parts, int part, int64_t k, int64_t j) {
  const int64_t tile = (k / CPU_BF16_SPLIT_UNIT * parts + part) * 2 + j / CPU_BF16_SPLIT_TILE;
  return (tile * CPU_BF16_SPLIT_TILE + k % CPU_BF16_SPLIT_UNIT / 2) * CPU_BF16_SPLIT_UNIT +
         j % CPU_BF16_SPLIT_TILE * 2 + k % 2;
}

// Rows of the left side lie `step` bytes apart, each made by cpu_bf16_split_row; a row of the
// product is made of such rows that begin at several places (those of a convolution's kernel).
typedef struct cpu_bf16_split_block {
  int parts;
  int64_t rows;  // at most CPU_BF16_SPLIT_ROWS; up to a multiple of 16 they may be read
  const char* a;
  int64_t step;
  int64_t n_pieces;
  const int64_t* pieces;  // in bytes after a
  int64_t units;          // of a piece
  const uint16_t* panel;  // of n_pieces * units units
  float* c;        // the product, CPU_BF16_SPLIT_COLUMNS wide; a multiple of 16 rows is written
  int64_t c_step;  // floats from one row of it to the next
} cpu_bf16_split_block_t;

// The kernels need their tiles' shapes to be set, in each thread, and put back.
typedef struct cpu_bf16_split_state {
  _Alignas(64) unsigned char saved[64];
} cpu_bf16_split_state_t;
void cpu_bf16_split_begin(cpu_bf16_split_state_t* s);
void cpu_bf16_split_end(const cpu_bf16_split_state_t* s);
void cpu_bf16_split_multiply(const cpu_bf16_split_block_t* b);

// Whether the CPU has such tiles and the system lets us use them.
bool cpu_bf16_split_has_tiles(void);
// For tests, before any plan is made: the same arithmetic without tiles, to the last bit and
// slowly, on any CPU; and for all layers that it may serve, whether it pays there or not.
enum { CPU_BF16_SPLIT_IMITATED = 1, CPU_BF16_SPLIT_ALWAYS = 2 };
void cpu_bf16_split_set_mode(int mode);  // of these; 0 from the beginning
int cpu_bf16_split_mode(void);

#endif  // ASSAY_BACKENDS_CPU_GEMM_BF16_SPLIT_KERNEL_H_
