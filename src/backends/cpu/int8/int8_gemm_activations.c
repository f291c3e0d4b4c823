// Int8 products of two tensors that come in (attention) by AVX512-VNNI: the right side is put into
// panels first, in signed bytes, and its columns are summed up; then rows go over the panels.
//   sum (x - zx)(w - zw) = sum x w - zx sum w - zw sum x + k zx zw
// in 32 bits, modulo 2^32: the whole fits. A sum begins with what follows from its column; what
// follows from its row is added before the layer goes on.
#include <omp.h>
#include <string.h>

#include "backends/cpu/int8/int8_block.h"
#include "backends/cpu/int8/int8_conv_geometry.h"
#include "backends/cpu/int8/int8_make.h"
#include "backends/cpu/scratch.h"
#include "backends/cpu/threads.h"
#include "base/alloc.h"
#include "base/target.h"

#define CLONES ASSAY_CLONES("arch=x86-64-v4", "arch=x86-64-v3", "default")

enum { ROWS = 48, PARTS = 64, ALIGNMENT = 64 };

typedef struct pairs {
  int8_kernel_t base;
  int8_product_t p;
  int x_input, w_input;
  bool copies;                      // rows of x, to whole units, or to turn signed bytes
  uint8_t x_turn, w_turn;           // 128: bytes are turned to the other kind
  int32_t zero_x, zero_w;           // of what they are then
  int64_t k4, n16, matrices, rows;  // rows of one of them
  int max_parts;
  size_t packed_bytes, starts_bytes, part_scratch;
} pairs_t;

static size_t aligned(size_t bytes) { return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT; }

static int64_t min(int64_t a, int64_t b) { return a < b ? a : b; }

// ---- panels ------------------------------------------------------------------------------------

// One unit of n columns, from four rows.
CLONES static void interleave(const uint8_t* restrict a, const uint8_t* restrict b,
                              const uint8_t* restrict c, const uint8_t* restrict d, int64_t n,
                              uint8_t turn, uint8_t* restrict to) {
  for (int64_t i = 0; i < n; i++) {
    to[4 * i] = a[i] ^ turn;
    to[4 * i + 1] = b[i] ^ turn;
    to[4 * i + 2] = c[i] ^ turn;
    to[4 * i + 3] = d[i] ^ turn;
  }
}

// Sums of the columns of a unit.
CLONES static void add_unit(const int8_t* restrict unit, int64_t n, int32_t* restrict sums) {
  for (int64_t i = 0; i < n; i++)
    sums[i] += unit[4 * i] + unit[4 * i + 1] + unit[4 * i + 2] + unit[4 * i + 3];
}

// Bytes of column c of the unit from row i on, where rows or columns end; 0 after the end.
static void fill_slowly(const pairs_t* k, const uint8_t* w, int64_t i, int64_t c, int64_t n,
                        uint8_t* to) {
  for (int64_t j = 0; j < n; j++)
    for (int64_t r = 0; r < 4; r++) {
      const bool inside = i + r < k->p.k && c + j < k->p.n;
      const int64_t at = k->p.swapped ? (c + j) * k->p.k + i + r : (i + r) * k->p.n + c + j;
      to[4 * j + r] = inside ? w[at] ^ k->w_turn : 0;
    }
}

// Columns [c, c + INT8_PANEL) of a matrix, and what sums of them begin with.
static void pack_panel(const pairs_t* k, const uint8_t* w, int64_t c, int8_t* packed,
                       int32_t* start) {
  const int64_t width = min(INT8_PANEL, k->n16 - c);
  uint8_t* to = (uint8_t*)packed + c * k->k4;
  memset(start + c, 0, (size_t)width * sizeof *start);
  for (int64_t i = 0; i < k->k4; i += 4, to += 4 * width) {
    if (k->p.swapped || i + 4 > k->p.k || c + width > k->p.n) {
      fill_slowly(k, w, i, c, width, to);
    } else {
      const uint8_t* row = w + i * k->p.n + c;
      interleave(row, row + k->p.n, row + 2 * k->p.n, row + 3 * k->p.n, width, k->w_turn, to);
    }
    add_unit((const int8_t*)to, width, start + c);
  }
  const uint32_t both = (uint32_t)k->zero_x * (uint32_t)k->zero_w * (uint32_t)k->p.k;
  for (int64_t i = c; i < c + width; i++) {
    const uint32_t s = both - (uint32_t)k->zero_x * (uint32_t)start[i];
    memcpy(&start[i], &s, sizeof s);
  }
}

// ---- rows --------------------------------------------------------------------------------------

CLONES static int32_t row_sum(const uint8_t* x, int64_t n) {
  uint32_t sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < n; i++) sum += x[i];
  return (int32_t)sum;
}

CLONES static void add_to_row(int32_t* restrict y, int64_t n, uint32_t x) {
#pragma omp simd
  for (int64_t i = 0; i < n; i++) y[i] = (int32_t)((uint32_t)y[i] + x);
}

static void copy_rows(const pairs_t* k, const uint8_t* x, int64_t rows, uint8_t* to) {
  for (int64_t r = 0; r < rows; r++, x += k->p.k, to += k->k4) {
    for (int64_t i = 0; i < k->p.k; i++) to[i] = x[i] ^ k->x_turn;
    memset(to + k->p.k, 0, (size_t)(k->k4 - k->p.k));
  }
}

// Rows [row, row + rows) of matrix b.
static void run_tile(const pairs_t* k, const void* const* in, const int8_t* packed,
                     const int32_t* start, int64_t b, int64_t row, int64_t rows, char* scratch,
                     void* out) {
  static const int64_t at_once = 0;
  const uint8_t* x = (const uint8_t*)in[k->x_input] + (b * k->rows + row) * k->p.k;
  uint8_t* copy = (uint8_t*)scratch;
  int32_t* sums = (int32_t*)(void*)(scratch + aligned((size_t)(ROWS * k->k4)));
  if (k->copies) {
    copy_rows(k, x, rows, copy);
    x = copy;
  }
  for (int64_t c = (k->p.n - 1) / INT8_PANEL * INT8_PANEL; c >= 0; c -= INT8_PANEL) {
    const int8_block_t block = {.rows = rows,
                                .units = k->k4 / 4,
                                .a = x,
                                .a_step = k->k4,
                                .n_pieces = 1,
                                .pieces = &at_once,
                                .panel = packed + b * k->n16 * k->k4 + c * k->k4,
                                .vectors = (int)(min(INT8_PANEL, k->n16 - c) / INT8_LANES),
                                .start = start + b * k->n16 + c,
                                .c = sums + c,
                                .c_step = k->p.n};
    int8_block_run(&block);
  }
  for (int64_t r = 0; k->zero_w && r < rows; r++) {
    const int32_t sum = row_sum(x + r * k->k4, k->p.k);
    add_to_row(sums + r * k->p.n, k->p.n, 0U - (uint32_t)k->zero_w * (uint32_t)sum);
  }
  const int8_part_t part = {.sums = sums,
                            .from = (b * k->rows + row) * k->p.n,
                            .n = k->p.n,
                            .runs = rows,
                            .step = k->p.n};
  int8_kernel_finish_part(&k->base, in, &part, out);
}

static assay_status_t run(assay_kernel_t* base, const void* const* in, void* const* out,
                          void* scratch) {
  const pairs_t* k = (const pairs_t*)base;
  char* own_scratch = cpu_scratch(scratch);
  int8_t* packed = (int8_t*)own_scratch;
  int32_t* start = (int32_t*)(void*)(own_scratch + k->packed_bytes);
  char* own = own_scratch + k->packed_bytes + k->starts_bytes;
  const uint8_t* w = in[k->w_input];
  const int64_t panels = (k->n16 + INT8_PANEL - 1) / INT8_PANEL, all = k->matrices * panels;
  const int64_t tiles = (k->rows + ROWS - 1) / ROWS, jobs = k->matrices * tiles;
  int parts = cpu_threads(k->base.size * (k->k4 / 64 + 2));
  if (parts > k->max_parts) parts = k->max_parts;
#pragma omp parallel for schedule(static) num_threads(parts)
  for (int64_t i = 0; i < all; i++) {
    const int64_t b = i / panels;
    pack_panel(k, w + b * k->p.n * k->p.k, i % panels * INT8_PANEL, packed + b * k->n16 * k->k4,
               start + b * k->n16);
  }
#pragma omp parallel for schedule(static) num_threads(parts)
  for (int64_t i = 0; i < jobs; i++) {
    const int64_t b = i / tiles, row = i % tiles * ROWS;
    run_tile(k, in, packed, start, b, row, min(ROWS, k->rows - row),
             own + (size_t)omp_get_thread_num() * k->part_scratch, out[0]);
  }
  return NULL;
}

// ---- making ------------------------------------------------------------------------------------

static bool wants(const int8_job_t* j) {
  return j->w && !j->w->constant && j->zero_input < 0 && int8_is_product(j->anchor);
}

static assay_status_t build(int8_kernel_t* base, int8_job_t* j, bool* out_ok) {
  pairs_t* k = (pairs_t*)base;
  *out_ok =
      !j->weights && int8_product_read(j, &k->p) && k->p.k <= INT32_MAX / (4 * 255 * 255) && j->q;
  if (!*out_ok) return NULL;
  const int8_product_t* p = &k->p;
  k->x_turn = j->x_type == ASSAY_TYPE_INT8 ? 128 : 0;
  k->w_turn = j->w_type == ASSAY_TYPE_UINT8 ? 128 : 0;
  k->zero_x = j->zero_x + k->x_turn;
  k->zero_w = j->zero_w - k->w_turn;
  k->k4 = (p->k + 3) / 4 * 4;
  k->n16 = (p->n + INT8_LANES - 1) / INT8_LANES * INT8_LANES;
  k->copies = k->x_turn || k->k4 != p->k;
  k->matrices = p->shared ? 1 : p->batch;
  k->rows = p->shared ? p->batch * p->m : p->m;
  k->x_input = (int)(j->x - j->l->in);
  k->w_input = (int)(j->w - j->l->in);
  ASSAY_TRY(int8_kernel_init(&k->base, j, ASSAY_LAYOUT_PLAIN, out_ok));
  // One input in one form.
  *out_ok = *out_ok && k->base.m == p->n && !k->base.base.in[k->w_input].type;
  if (!*out_ok) return NULL;
  k->base.base.in[k->w_input] = (assay_storage_t){j->w_type, ASSAY_LAYOUT_PLAIN};
  k->base.base.run = run;
  k->packed_bytes = aligned((size_t)(k->matrices * k->n16 * k->k4));
  k->starts_bytes = aligned((size_t)(k->matrices * k->n16) * sizeof(int32_t));
  k->part_scratch = aligned((size_t)(ROWS * k->k4)) +
                    aligned((size_t)(ROWS * p->n + INT8_LANES) * sizeof(int32_t));
  const int64_t parts = k->matrices * ((k->rows + ROWS - 1) / ROWS);
  k->max_parts = parts < PARTS ? (int)parts : PARTS;
  k->base.base.scratch =
      ALIGNMENT + k->packed_bytes + k->starts_bytes + (size_t)k->max_parts * k->part_scratch;
  return NULL;
}

static assay_status_t make(const assay_sized_layer_t* l, assay_kernel_t** out) {
  return int8_has_vnni() ? int8_make(l, sizeof(pairs_t), wants, build, NULL, out) : NULL;
}

const assay_tactic_t cpu_tactic_int8_gemm_activations = {
    .name = "int8_gemm_activations",
    .source = "assay",
    .numerics = "integers",
    .make = make,
    .rounding = INT8_ROUNDING,
};
