// Products with a matrix of 4- or 8-bit codes, packed in panels of 64 columns: a panel is read
// once, from its first byte to its last.
//
// A panel is one block of rows of the matrix after the other: 64 scales, 64 zero points (where
// there are any), and the codes. Of 8 bits: row by row, 64 bytes each. Of 4 bits: 8 rows at a time,
// 64 words, word j with the rows' codes of column j from its low bits up.
//
// A weight is w = (code - zero) * scale, each operation rounded to float32; a sum is one chain of
// multiply-adds along k from the first term to the last, as in gemm.h, whatever the number of rows
// is.
#ifndef ASSAY_BACKENDS_CPU_GEMM_CODED_KERNEL_H_
#define ASSAY_BACKENDS_CPU_GEMM_CODED_KERNEL_H_

#include <stdbool.h>
#include <stdint.h>

enum { CPU_CODED_PANEL = 64, CPU_CODED_GROUP = 8, CPU_CODED_ROWS = 4 };

typedef enum cpu_coded_zeros {
  CPU_CODED_ONE_ZERO = 0,  // the same for all
  CPU_CODED_BYTE_ZEROS,    // int8
  CPU_CODED_FLOAT_ZEROS,
} cpu_coded_zeros_t;

// Codes as they are packed: of 8 bits from -128 on, of 4 bits from 0 on.
typedef struct cpu_coded {
  int64_t k, block;  // block: at most k; a multiple of 8 where there are several
  int bits;
  cpu_coded_zeros_t zeros;
  float zero;  // ONE_ZERO
} cpu_coded_t;

// Bytes of a panel's scales and zeros of one block; of so many rows of codes; of a panel.
static inline int64_t cpu_coded_head_bytes(const cpu_coded_t* w) {
  return CPU_CODED_PANEL * (w->zeros == CPU_CODED_ONE_ZERO     ? 4
                            : w->zeros == CPU_CODED_BYTE_ZEROS ? 5
                                                               : 8);
}
static inline int64_t cpu_coded_code_bytes(const cpu_coded_t* w, int64_t rows) {
  const int64_t groups = (rows + CPU_CODED_GROUP - 1) / CPU_CODED_GROUP;
  return CPU_CODED_PANEL * (w->bits == 8 ? rows : groups * (CPU_CODED_GROUP / 2));
}
static inline int64_t cpu_coded_panel_bytes(const cpu_coded_t* w) {
  const int64_t whole = (w->k - 1) / w->block, left = w->k - whole * w->block;
  return whole * (cpu_coded_head_bytes(w) + cpu_coded_code_bytes(w, w->block)) +
         cpu_coded_head_bytes(w) + cpu_coded_code_bytes(w, left);
}

// c[i, j] = bias[j] + a[i] . w[j] for m rows and the columns of one panel.
typedef struct cpu_coded_rows {
  const cpu_coded_t* w;
  const uint8_t* panel;
  int64_t m;
  const float* a;
  int64_t a_step;
  const float* bias;  // NULL: zeros
  float* c;
  int64_t c_step;
} cpu_coded_rows_t;

// For few rows: weights are made in registers, for CPU_CODED_ROWS rows at a time.
void cpu_coded_rows(const cpu_coded_rows_t* r);
// Rows [from, end) of a panel as float32, as cpu_gemm_block takes them: 2 panels of CPU_PANEL
// columns, one after the other. `from` is the first row of a block or a multiple of
// CPU_CODED_GROUP rows after it, and so is `end`, or it is k.
void cpu_coded_widen(const cpu_coded_t* w, const uint8_t* panel, int64_t from, int64_t end,
                     float* to);

// The two versions of them: for any CPU, whose products are rounded where it has no multiply-adds,
// and for AVX-512, and whether the CPU has that (coded_avx512.c).
void cpu_coded_rows_plain(const cpu_coded_rows_t* r);
void cpu_coded_widen_plain(const cpu_coded_t* w, const uint8_t* panel, int64_t from, int64_t end,
                           float* to);
bool cpu_coded_has_avx512(void);
void cpu_coded_rows_avx512(const cpu_coded_rows_t* r);
void cpu_coded_widen_avx512(const cpu_coded_t* w, const uint8_t* panel, int64_t from, int64_t end,
                            float* to);

#endif  // ASSAY_BACKENDS_CPU_GEMM_CODED_KERNEL_H_
