// MatMul and Gemm of any two operands by our own kernels: the right side is packed while the layer
// runs, some columns at a time. For layers whose weights are not constant, where oneDNN would add
// up in an order that depends on the rows and on the number of threads.
//
// Every sum is one chain of multiply-adds along k, whatever the rows, the columns and the number of
// threads are.
#include <string.h>

#include "backends/cpu/gemm/gemm.h"
#include "backends/cpu/gemm/product.h"
#include "backends/cpu/pointwise/convert.h"
#include "backends/cpu/pointwise/program.h"
#include "backends/cpu/scratch.h"
#include "backends/cpu/threads.h"
#include "base/alloc.h"

enum {
  WIDE = 2 * CPU_PANEL,  // columns that are packed at a time
  ROWS = 48,             // of a tile
  CHUNK = 8 * ROWS,      // rows that make it worth packing the columns again
  MAX_PARTS = 64,
  ALIGNMENT = 16,  // floats
};

typedef struct packed_product {
  assay_kernel_t base;
  cpu_product_t p;  // its operands are gone when the kernel runs
  int left, right;  // inputs
  int64_t x_memory[ASSAY_KERNEL_RANK], w_memory[ASSAY_KERNEL_RANK];  // dimensions in memory
  int64_t batch, m, k, n, chunks, columns;                           // columns: groups of WIDE
  int max_parts;
  float* bias;             // [n, padded]; NULL: none
  cpu_program_t* program;  // NULL: none
} packed_product_t;

static int64_t aligned(int64_t n) { return (n + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT; }

// Floats of scratch memory: packed columns, a tile, rows of a left side that lies the other way.
static int64_t tile_at(const packed_product_t* k) { return aligned(k->k * WIDE); }
static int64_t rows_at(const packed_product_t* k) { return tile_at(k) + ROWS * WIDE; }
static int64_t thread_scratch(const packed_product_t* k) {
  return rows_at(k) + (k->p.x_swapped ? aligned(ROWS * k->k) : 0);
}

// ---- running -----------------------------------------------------------------------------------

// Where an operand's matrix for one matrix of the output begins.
static int64_t matrix_at(const cpu_product_t* p, const int64_t* dims, const int64_t* memory,
                         int64_t batch) {
  int64_t at = 0, step = memory[p->rank - 1] * memory[p->rank - 2];
  for (int d = p->rank - 3; d >= 0; d--) {
    if (dims[d] != 1) at += batch % p->y[d] * step;
    batch /= p->y[d];
    step *= memory[d];
  }
  return at;
}

typedef struct job {
  const packed_product_t* k;
  const void* const* in;
  void* out;
  float* scratch;
} job_t;

// Rows of the left side as they have to lie, and how far apart.
static const float* left_rows(const job_t* j, const float* x, int64_t row, int64_t rows,
                              int64_t* out_step) {
  const packed_product_t* k = j->k;
  *out_step = k->k;
  if (!k->p.x_swapped) return x + row * k->k;
  float* to = j->scratch + rows_at(k);
  for (int64_t l = 0; l < k->k; l++)
    for (int64_t i = 0; i < rows; i++) to[i * k->k + l] = x[l * k->m + row + i];
  return to;
}

static void run_tile(const job_t* j, const float* a, int64_t a_step, int64_t rows, int64_t column,
                     int64_t from) {
  const packed_product_t* k = j->k;
  const assay_type_t type = k->base.out[0].type;
  const int64_t n = k->n - column < WIDE ? k->n - column : WIDE;
  const float* panels = j->scratch;
  float* tile = j->scratch + tile_at(k);
  for (int64_t i = 0; k->bias && i < rows; i++)
    memcpy(tile + i * WIDE, k->bias + column, (size_t)cpu_panel_padded(n) * sizeof *tile);
  (n <= CPU_PANEL ? cpu_gemm_panel : cpu_gemm_panels)(rows, k->k, a, a_step, panels, tile, WIDE,
                                                      k->bias);
  const cpu_program_part_t part = {
      .from = from, .n = n, .runs = rows, .step = k->n, .result = tile, .result_step = WIDE};
  if (k->program) {
    cpu_program_run_part(k->program, j->in, type, j->out, &part);
    return;
  }
  for (int64_t i = 0; i < rows; i++) cpu_narrow(tile + i * WIDE, n, type, from + i * k->n, j->out);
}

// Some rows and some columns of one matrix of the output.
static void run_unit(const job_t* j, int64_t unit) {
  const packed_product_t* k = j->k;
  const int64_t column = unit % k->columns * WIDE, chunk = unit / k->columns % k->chunks;
  const int64_t batch = unit / k->columns / k->chunks;
  const int64_t end = (chunk + 1) * CHUNK < k->m ? (chunk + 1) * CHUNK : k->m;
  const float* x = (const float*)j->in[k->left] + matrix_at(&k->p, k->p.x, k->x_memory, batch);
  const float* w = (const float*)j->in[k->right] + matrix_at(&k->p, k->p.w, k->w_memory, batch);
  const int64_t row_step = k->p.w_swapped ? 1 : k->n, column_step = k->p.w_swapped ? k->k : 1;
  cpu_gemm_pack(w + column * column_step, row_step, column_step, k->k,
                k->n - column < WIDE ? k->n - column : WIDE, j->scratch);
  for (int64_t row = chunk * CHUNK; row < end; row += ROWS) {
    const int64_t rows = end - row < ROWS ? end - row : ROWS;
    int64_t step;
    const float* a = left_rows(j, x, row, rows, &step);
    run_tile(j, a, step, rows, column, (batch * k->m + row) * k->n + column);
  }
}

static assay_status_t run(assay_kernel_t* base, const void* const* in, void* const* out,
                          void* scratch) {
  const packed_product_t* k = (const packed_product_t*)base;
  const int64_t units = k->batch * k->chunks * k->columns;
  int parts = cpu_threads(k->batch * k->m * k->n * (k->k / 16 + 4));
  if (parts > k->max_parts) parts = k->max_parts;
  float* own = cpu_scratch(scratch);
#pragma omp parallel for schedule(static, 1) num_threads(parts) if (parts > 1)
  for (int p = 0; p < parts; p++) {
    const job_t j = {k, in, out[0], own + p * thread_scratch(k)};
    for (int64_t i = units * p / parts; i < units * (p + 1) / parts; i++) run_unit(&j, i);
  }
  return NULL;
}

static void destroy(assay_kernel_t* base) {
  packed_product_t* k = (packed_product_t*)base;
  cpu_program_destroy(k->program);
  assay_free(k->bias);
  assay_free(k);
}

// ---- which layers ------------------------------------------------------------------------------

// False: there is no room for the scratch memory.
static bool find_sizes(packed_product_t* k) {
  const cpu_product_t* p = &k->p;
  k->m = p->y[p->rank - 2];
  k->n = p->y[p->rank - 1];
  k->k = p->x[p->rank - 1];
  k->batch = assay_dims_product(p->y, 0, p->rank - 2);
  k->chunks = (k->m + CHUNK - 1) / CHUNK;
  k->columns = (k->n + WIDE - 1) / WIDE;
  const int64_t units = k->batch * k->chunks * k->columns;
  k->max_parts = units < MAX_PARTS ? (int)units : MAX_PARTS;
  int64_t floats;
  if (!assay_mul_i64(thread_scratch(k), k->max_parts, &floats)) return false;
  k->base.scratch = ((size_t)floats + ALIGNMENT) * sizeof(float);
  return true;
}

// The dimensions that an operand has in memory, as the product sees them; false: its room is none
// that kernels step over, between matrices or rows.
static bool find_memory(const cpu_product_t* p, const assay_operand_t* o, const int64_t* dims,
                        bool swapped, int64_t* memory) {
  memcpy(memory, dims, sizeof(int64_t) * (size_t)p->rank);
  if (!o->capacity.size) return true;
  const int axis = o->capacity.axis + p->rank - o->rank;
  if (swapped || p->rank < o->rank || axis == p->rank - 1) return false;
  memory[axis] = o->capacity.size;
  return true;
}

static assay_status_t read(const assay_sized_layer_t* l, packed_product_t* k, bool* out_ok) {
  const assay_storage_t form = {ASSAY_TYPE_FLOAT, ASSAY_LAYOUT_PLAIN};
  k->base = (assay_kernel_t){.in_place = -1, .run = run, .destroy = destroy};
  bool ok = cpu_product_read(l, &k->p) && find_sizes(k);
  if (ok) {
    k->base.rooms = find_memory(&k->p, k->p.in, k->p.x, k->p.x_swapped, k->x_memory) &&
                    find_memory(&k->p, k->p.weights, k->p.w, k->p.w_swapped, k->w_memory) &&
                    !l->out[0].capacity.size;
    k->left = (int)(k->p.in - l->in);
    k->right = (int)(k->p.weights - l->in);
    k->base.in[k->left] = k->base.in[k->right] = form;
    k->base.out[0] = (assay_storage_t){l->out[0].type, ASSAY_LAYOUT_PLAIN};
  }
  assay_status_t st =
      ok ? cpu_program_behind(l, ASSAY_LAYOUT_PLAIN, &k->base, &k->program, &ok) : NULL;
  for (int i = 0; k->program && i < (int)l->n_in; i++)
    k->base.rooms &= !l->in[i].capacity.size || !cpu_program_reads(k->program, i);
  if (!st && ok) st = assay_operand_padded_floats(k->p.bias, cpu_panel_padded(k->n), &k->bias);
  *out_ok = ok;
  return st;
}

static assay_status_t make(const assay_sized_layer_t* l, assay_kernel_t** out) {
  packed_product_t* k = NULL;
  bool ok = false;
  ASSAY_TRY(ASSAY_NEW(&k));
  assay_status_t st = read(l, k, &ok);
  if (st || !ok) return destroy(&k->base), st;
  *out = &k->base;
  return NULL;
}

static assay_status_t resize(const assay_sized_layer_t* l, assay_kernel_t* base, bool* out_ok) {
  packed_product_t* k = (packed_product_t*)base;
  const assay_tactic_t* tactic = base->tactic;
  cpu_program_destroy(k->program);
  assay_free(k->bias);
  *k = (packed_product_t){0};
  assay_status_t st = read(l, k, out_ok);
  base->tactic = tactic;
  return st;
}

const assay_tactic_t cpu_tactic_gemm_activations = {
    .name = "gemm_activations",
    .source = "assay",
    .make = make,
    .resize = resize,
    .rounding = {CPU_FLOAT_SUMS},
};
