// Products of small matrices in float32, for kernels that make them inside (recurrent layers,
// attention).
//
// Each element is one chain of fused multiply-adds in the order of k, whatever the number of rows,
// the vector width or the place of the element: results depend on nothing else.
#ifndef ASSAY_BACKENDS_CPU_GEMM_GEMM_H_
#define ASSAY_BACKENDS_CPU_GEMM_GEMM_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CPU_PANEL = 32 };  // columns of the right side that lie together

// So many columns filled up to whole panels.
static inline int64_t cpu_panel_padded(int64_t n) {
  return (n + CPU_PANEL - 1) / CPU_PANEL * CPU_PANEL;
}

// Packs a right side of k rows and n columns: panels of CPU_PANEL columns, the last one filled up
// with zeros; row after row within a panel. Element (i, j) is b[i * row_step + j * column_step].
void cpu_gemm_pack(const float* b, int64_t row_step, int64_t column_step, int64_t k, int64_t n,
                   float* packed);

// c[i, j] = a[i] . b[j], plus what c holds if `adds`, for m rows and one panel, or two that lie one
// after the other; rows of c have that many elements at least. Each sum is a chain of
// multiply-adds from the first term to the last, whatever m is.
void cpu_gemm_panel(int64_t m, int64_t k, const float* a, int64_t a_step, const float* panel,
                    float* c, int64_t c_step, bool adds);
void cpu_gemm_panels(int64_t m, int64_t k, const float* a, int64_t a_step, const float* panels,
                     float* c, int64_t c_step, bool adds);

// c[i, j] = a[i, j] * b[j] + c[i, j] for m rows of n elements.
void cpu_gemm_rows(int64_t m, int64_t n, const float* a, int64_t a_step, const float* b, float* c,
                   int64_t c_step);

// Products that begin with `start`: rows of it lie start_step apart (0: one row for all); NULL:
// with zeros. A row of a is one piece of k units, floats or pairs of bf16, or several, which lie at
// `pieces` after its beginning. `vectors` of 16 columns are made, of one panel (1, 2) or of two
// (3, 4).
//
// While it runs, panels that are wanted next may be fetched from memory: at `ahead` and a panel
// after it, so many bytes of each. Of few rows, panels `stream`: they come from memory as they are
// multiplied, each line fetched a little before that.
typedef struct cpu_gemm_block {
  int64_t m, k;
  const void* a;
  int64_t a_step;  // in units, as pieces
  int64_t n_pieces;
  const int64_t* pieces;  // NULL: one, at 0
  const void* panels;     // of k * n_pieces rows,
  int64_t panel_rows;     // or, 0 if not, so many, of which these are some
  int vectors;
  const float* start;
  int64_t start_step;
  float* c;
  int64_t c_step;
  const void* ahead;  // NULL: none
  int64_t ahead_bytes;
  bool streams;
} cpu_gemm_block_t;

// One piece by panels that begin at `from`.
static inline cpu_gemm_block_t cpu_gemm_block_of(int vectors, int64_t m, int64_t k, const void* a,
                                                 int64_t a_step, const void* from, float* c,
                                                 int64_t c_step, bool adds) {
  return (cpu_gemm_block_t){.m = m,
                            .k = k,
                            .a = a,
                            .a_step = a_step,
                            .panels = from,
                            .vectors = vectors,
                            .start = adds ? c : NULL,
                            .start_step = c_step,
                            .c = c,
                            .c_step = c_step};
}

enum { CPU_GEMM_K_BLOCK = 16 };  // rows of panels, after each of which lines are fetched
// Panels stream for so many rows, and are fetched so many rows of a panel ahead: what memory takes
// for a line, at what it gives one core (measured: 4 to 32 are alike, without it takes a quarter
// longer).
enum { CPU_GEMM_STREAM_ROWS = 8, CPU_GEMM_STREAM_AHEAD = 12 };

// What the rows [row, row + rows) of a block fetch.
typedef struct cpu_gemm_ahead {
  const char* at;
  int64_t lines;  // with each block of k
} cpu_gemm_ahead_t;

static inline cpu_gemm_ahead_t cpu_gemm_ahead(const cpu_gemm_block_t* b, int64_t row, int rows) {
  enum { LINE = 64 };
  if (!b->ahead) return (cpu_gemm_ahead_t){NULL, 0};
  const int64_t from = b->ahead_bytes * row / b->m / LINE,
                to = b->ahead_bytes * (row + rows) / b->m;
  const int64_t k_blocks = (b->k + CPU_GEMM_K_BLOCK - 1) / CPU_GEMM_K_BLOCK;
  return (cpu_gemm_ahead_t){(const char*)b->ahead + from * LINE,
                            (to / LINE - from + k_blocks - 1) / k_blocks};
}

void cpu_gemm_block(const cpu_gemm_block_t* b);
// Whether these kernels are as fast as any on this CPU (machine.c).
bool cpu_gemm_suits(bool bf16);

// Panels with bf16 elements of a and b, two in a unit of 4 bytes: rows of a and panels hold
// `pairs` of neighbours along the sum. VDPBF16PS adds both products of a pair to a float32 sum, and
// takes subnormals as 0. Where the CPU has it (gemm_bf16.c).
bool cpu_gemm_has_bf16(void);
void cpu_gemm_panel_bf16(int64_t m, int64_t pairs, const uint32_t* a, int64_t a_step,
                         const uint32_t* panel, float* c, int64_t c_step, bool adds);
void cpu_gemm_panels_bf16(int64_t m, int64_t pairs, const uint32_t* a, int64_t a_step,
                          const uint32_t* panels, float* c, int64_t c_step, bool adds);
void cpu_gemm_block_bf16(const cpu_gemm_block_t* b);

#endif  // ASSAY_BACKENDS_CPU_GEMM_GEMM_H_
