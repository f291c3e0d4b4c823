// Products with constant matrices that the model stores in 4 or 8 bits with scales (MatMulNBits;
// DequantizeLinear in front of MatMul or Gemm), and what the layer does to each element after
// them. The codes stay codes in memory: few rows take as long as it takes to read them.
//
// Few rows are multiplied by weights that are made in registers; for more rows some weights of 64
// columns are made at a time, in the first cache. Every sum is one chain of multiply-adds along k
// either way (coded_kernel.h): whatever the rows, the columns and the number of threads are.
#include <math.h>
#include <string.h>

#include "backends/cpu/gemm/coded_kernel.h"
#include "backends/cpu/gemm/gemm.h"
#include "backends/cpu/pointwise/convert.h"
#include "backends/cpu/pointwise/program.h"
#include "backends/cpu/scratch.h"
#include "backends/cpu/threads.h"
#include "base/alloc.h"
#include "base/shown.h"
#include "ops/quant/coded_matrix.h"

enum {
  WIDE = CPU_CODED_PANEL,
  FEW = CPU_CODED_ROWS,  // rows that are multiplied by weights in registers
  ROWS = 240,            // of a tile; a multiple of what cpu_gemm_block takes at a time
  DEPTH = 128,           // rows of weights that are made at a time, for the first cache,
  MANY = 48,             // or, where there are more rows than this,
  FAR_DEPTH = 768,       // so many, for the second
  MAX_PARTS = 64,
  ALIGNMENT = 16  // floats
};

typedef struct weight_only {
  assay_kernel_t base;
  cpu_coded_t w;
  int input;
  int64_t m, n, panels, panel_bytes, chunks;  // chunks: of ROWS rows
  int max_parts;
  const uint8_t* codes;    // panels, in the store
  float* bias;             // [n, padded]; NULL: none
  cpu_program_t* program;  // NULL: none
} weight_only_t;

static int64_t panels_of(int64_t n) { return (n + WIDE - 1) / WIDE; }

// ---- running -----------------------------------------------------------------------------------

// Floats of scratch memory: a tile, weights.
static int64_t tile_rows(const weight_only_t* k) { return k->m < ROWS ? k->m : ROWS; }
static int64_t depth_for(int64_t m) { return m > MANY ? FAR_DEPTH : DEPTH; }
static int64_t thread_scratch(const weight_only_t* k) {
  return tile_rows(k) * WIDE + (k->m > FEW ? depth_for(k->m) * WIDE : 0);
}

// The first row of weights after those that are made together with row `l`: whole blocks, or parts
// of one.
static int64_t depth_end(const cpu_coded_t* w, int64_t l, int64_t depth) {
  const int64_t block_end = l - l % w->block + w->block;
  int64_t end = l + depth / w->block * w->block;
  if (w->block > depth) end = l + depth < block_end ? l + depth : block_end;
  return end < w->k ? end : w->k;
}

// Many rows: sums go on where the weights before have left them.
static void multiply_many(const cpu_coded_rows_t* r, float* weights) {
  const cpu_coded_t* w = r->w;
  for (int64_t l = 0, end; l < w->k; l = end) {
    end = depth_end(w, l, depth_for(r->m));
    cpu_coded_widen(w, r->panel, l, end, weights);
    const cpu_gemm_block_t block = {.m = r->m,
                                    .k = end - l,
                                    .a = r->a + l,
                                    .a_step = r->a_step,
                                    .panels = weights,
                                    .vectors = 4,
                                    .start = l ? r->c : r->bias,
                                    .start_step = l ? r->c_step : 0,
                                    .c = r->c,
                                    .c_step = r->c_step};
    cpu_gemm_block(&block);
  }
}

// Some rows of one panel's columns.
static void run_unit(const weight_only_t* k, const void* const* in, void* out, float* scratch,
                     int64_t unit) {
  const int64_t panel = unit % k->panels, column = panel * WIDE, row = unit / k->panels * ROWS;
  const int64_t n = k->n - column < WIDE ? k->n - column : WIDE;
  const assay_type_t type = k->base.out[0].type;
  const cpu_coded_rows_t r = {.w = &k->w,
                              .panel = k->codes + panel * k->panel_bytes,
                              .m = k->m - row < ROWS ? k->m - row : ROWS,
                              .a = (const float*)in[k->input] + row * k->w.k,
                              .a_step = k->w.k,
                              .bias = k->bias ? k->bias + column : NULL,
                              .c = scratch,
                              .c_step = WIDE};
  if (k->m <= FEW)
    cpu_coded_rows(&r);
  else
    multiply_many(&r, scratch + tile_rows(k) * WIDE);
  const cpu_program_part_t part = {.from = row * k->n + column,
                                   .n = n,
                                   .runs = r.m,
                                   .step = k->n,
                                   .result = scratch,
                                   .result_step = WIDE};
  if (k->program) {
    cpu_program_run_part(k->program, in, type, out, &part);
    return;
  }
  for (int64_t i = 0; i < r.m; i++)
    cpu_narrow(scratch + i * WIDE, n, type, part.from + i * k->n, out);
}

static assay_status_t run(assay_kernel_t* base, const void* const* in, void* const* out,
                          void* scratch) {
  const weight_only_t* k = (const weight_only_t*)base;
  const int64_t units = k->panels * k->chunks;
  int parts = cpu_threads((k->m + 2) * k->n * (k->w.k / 16 + 4));
  if (parts > k->max_parts) parts = k->max_parts;
  float* own = cpu_scratch(scratch);
#pragma omp parallel for schedule(static, 1) num_threads(parts) if (parts > 1)
  for (int p = 0; p < parts; p++)
    for (int64_t i = units * p / parts; i < units * (p + 1) / parts; i++)
      run_unit(k, in, out[0], own + p * thread_scratch(k), i);
  return NULL;
}

static void destroy(assay_kernel_t* base) {
  weight_only_t* k = (weight_only_t*)base;
  cpu_program_destroy(k->program);
  assay_free(k->bias);
  assay_free(k);
}

// ---- weights -----------------------------------------------------------------------------------

// What is read of the model's constants to pack them.
typedef struct source {
  const assay_coded_matrix_t* m;
  assay_tensor_t *codes, *zero_codes;  // packed
  float *scales, *zeros;               // zeros: as they are for packed codes; [blocks][n]
} source_t;

static void source_close(source_t* s) {
  assay_tensor_release(s->codes);
  assay_tensor_release(s->zero_codes);
  assay_free(s->scales);
  assay_free(s->zeros);
}

// By how much codes are less, or more, as they are packed.
static int shift_of(const assay_coded_matrix_t* m) {
  return m->bits == 8 ? (m->is_signed ? 0 : -128) : m->is_signed ? 8 : 0;
}

// Zero points of all blocks, shifted as codes are. *ok false: a shifted one is not a float32.
static assay_status_t read_zeros(const assay_sized_layer_t* l, source_t* s, bool* ok) {
  const assay_coded_matrix_t* m = s->m;
  const int shift = shift_of(m);
  float* given = NULL;
  assay_status_t st = assay_new_array((size_t)(m->blocks * m->n), sizeof *s->zeros, &s->zeros);
  if (!st && m->zeros && m->packed_zeros)
    st = assay_tensor_pack(m->zeros->constant, &s->zero_codes);
  if (!st && m->zeros && !m->packed_zeros)
    st = assay_operand_floats(assay_sized_input(l, m->zeros), &given);
  const uint8_t* bytes = s->zero_codes ? s->zero_codes->data : NULL;
  for (int64_t b = 0; !st && b < m->blocks; b++)
    for (int64_t j = 0; j < m->n; j++) {
      const int64_t at = b * m->zero_block_step + j * m->zero_n_step;
      const double zero = given   ? (double)given[at]
                          : bytes ? assay_coded_at(m, bytes, at)
                                  : m->no_zero;
      const float shifted = (float)(zero + shift);
      s->zeros[b * m->n + j] = shifted;
      *ok = *ok && (double)shifted == zero + shift;
    }
  assay_free(given);
  return st;
}

// How they are kept: one, bytes or floats.
static void find_zeros(const source_t* s, cpu_coded_t* w) {
  bool same = true, whole = true;
  for (int64_t i = 0; i < s->m->blocks * s->m->n; i++) {
    const float z = s->zeros[i];
    same &= z == s->zeros[0];
    whole &= z >= -128 && z <= 127 && z == nearbyintf(z);
  }
  w->zeros = same ? CPU_CODED_ONE_ZERO : whole ? CPU_CODED_BYTE_ZEROS : CPU_CODED_FLOAT_ZEROS;
  w->zero = same ? s->zeros[0] : 0;
}

static assay_status_t source_open(const assay_sized_layer_t* l, const assay_coded_matrix_t* m,
                                  source_t* s, bool* ok) {
  *s = (source_t){.m = m};
  assay_status_t st = assay_tensor_pack(m->codes->constant, &s->codes);
  if (!st) st = assay_operand_floats(assay_sized_input(l, m->scales), &s->scales);
  if (!st) st = read_zeros(l, s, ok);
  return st;
}

typedef struct packing {
  const source_t* s;
  const cpu_coded_t* w;
} packing_t;

// Scales and zeros of a block of one panel.
static void pack_head(const packing_t* p, int64_t b, int64_t column, int64_t n, uint8_t* to) {
  const assay_coded_matrix_t* m = p->s->m;
  float* scales = (float*)(void*)to;
  uint8_t* zeros = to + WIDE * sizeof(float);
  for (int64_t j = 0; j < n; j++) {
    const float zero = p->s->zeros[b * m->n + column + j];
    scales[j] = p->s->scales[b * m->scale_block_step + (column + j) * m->scale_n_step];
    if (p->w->zeros == CPU_CODED_BYTE_ZEROS) zeros[j] = (uint8_t)(int)zero;
    if (p->w->zeros == CPU_CODED_FLOAT_ZEROS) ((float*)(void*)zeros)[j] = zero;
  }
}

// Codes of `rows` rows from `row` on.
static void pack_codes(const packing_t* p, int64_t row, int64_t rows, int64_t column, int64_t n,
                       uint8_t* to) {
  const assay_coded_matrix_t* m = p->s->m;
  const uint8_t* from = p->s->codes->data;
  const int shift = shift_of(m);
  for (int64_t i = 0; i < rows; i++) {
    const int64_t at = (row + i) * m->k_step + column * m->n_step;
    for (int64_t j = 0; j < n; j++) {
      const unsigned code = (unsigned)(assay_coded_at(m, from, at + j * m->n_step) + shift) & 255;
      if (m->bits == 8)
        to[i * WIDE + j] = (uint8_t)code;
      else
        ((uint32_t*)(void*)to)[i / CPU_CODED_GROUP * WIDE + j] |= code << i % CPU_CODED_GROUP * 4;
    }
  }
}

static assay_status_t pack(void* user, void* to) {
  const packing_t* p = user;
  const assay_coded_matrix_t* m = p->s->m;
  uint8_t* at = to;
  memset(to, 0, (size_t)(panels_of(m->n) * cpu_coded_panel_bytes(p->w)));
  for (int64_t column = 0; column < m->n; column += WIDE)
    for (int64_t row = 0; row < m->k; row += m->block) {
      const int64_t n = m->n - column < WIDE ? m->n - column : WIDE;
      const int64_t rows = m->k - row < m->block ? m->k - row : m->block;
      pack_head(p, row / m->block, column, n, at);
      at += cpu_coded_head_bytes(p->w);
      pack_codes(p, row, rows, column, n, at);
      at += cpu_coded_code_bytes(p->w, rows);
    }
  assay_tensor_forget(p->s->codes);
  return NULL;
}

static assay_status_t pack_weights(const assay_sized_layer_t* l, const source_t* s,
                                   weight_only_t* k) {
  const assay_coded_matrix_t* m = s->m;
  const assay_operand_t* scales = assay_sized_input(l, m->scales);
  const packing_t p = {s, &k->w};
  const void* packed = NULL;
  assay_str_t key = {0};
  assay_str_printf_raw(&key,
                       "%s as codes in panels of %d, scaled by %s as %s, less %s, %lld by %lld%s",
                       m->codes->name, WIDE, m->scales->name, assay_type_name(scales->type),
                       m->zeros ? m->zeros->name : "the middle", (long long)m->k, (long long)m->n,
                       m->k_step == 1 ? ", turned" : "");
  assay_status_t st = assay_weights_get_by(scales->store, &key,
                                           (size_t)(k->panels * k->panel_bytes), pack, &p, &packed);
  k->codes = packed;
  return st;
}

// ---- which layers ------------------------------------------------------------------------------

static bool is_constant(const assay_sized_layer_t* l, const assay_value_t* v) {
  const assay_operand_t* o = assay_sized_input(l, v);
  return !v || (o && o->constant == v->constant);
}

// Sizes that do not fit together are for the emulated engine, which says so. *nodes: those that the
// product takes.
static bool read_layer(const assay_sized_layer_t* l, assay_coded_matrix_t* m, weight_only_t* k,
                       size_t* nodes) {
  *nodes = assay_coded_read(l->layer->nodes, l->layer->n_nodes, m);
  const assay_operand_t* x = *nodes ? assay_sized_input(l, m->x) : NULL;
  int64_t size;
  if (!x || !x->rank || !x->size || x->dims[x->rank - 1] != m->k || l->n_out != 1 ||
      !l->out[0].value || !assay_type_is_kernel_float(x->type) ||
      !assay_type_is_kernel_float(l->out[0].type) || !is_constant(l, m->codes) ||
      !is_constant(l, m->scales) || !is_constant(l, m->zeros) || !is_constant(l, m->bias))
    return false;
  k->input = (int)(x - l->in);
  k->w = (cpu_coded_t){.k = m->k, .block = m->block < m->k ? m->block : m->k, .bits = m->bits};
  k->m = x->size / m->k;
  k->n = m->n;
  return assay_mul_i64(k->m, k->n, &size) && size == l->out[0].size;
}

static bool find_sizes(weight_only_t* k) {
  int64_t bytes;
  k->panels = panels_of(k->n);
  k->panel_bytes = cpu_coded_panel_bytes(&k->w);
  k->chunks = (k->m + ROWS - 1) / ROWS;
  const int64_t units = k->panels * k->chunks;
  k->max_parts = units < MAX_PARTS ? (int)units : MAX_PARTS;
  k->base.scratch = (size_t)(k->max_parts * thread_scratch(k) + ALIGNMENT) * sizeof(float);
  return assay_mul_i64(k->panels, k->panel_bytes, &bytes);
}

static assay_status_t finish(const assay_sized_layer_t* l, const assay_coded_matrix_t* m,
                             size_t nodes, weight_only_t* k, bool* ok) {
  source_t s = {0};
  k->base.in[k->input] = (assay_storage_t){ASSAY_TYPE_FLOAT, ASSAY_LAYOUT_PLAIN};
  k->base.out[0] = (assay_storage_t){l->out[0].type, ASSAY_LAYOUT_PLAIN};
  ASSAY_TRY(cpu_program_from(l, nodes, ASSAY_LAYOUT_PLAIN, &k->base, &k->program, ok));
  if (!*ok) return NULL;
  const assay_operand_t* bias = m->bias ? assay_sized_input(l, m->bias) : NULL;
  assay_status_t st = source_open(l, m, &s, ok);
  if (!st && *ok) {
    find_zeros(&s, &k->w);
    *ok = find_sizes(k);
  }
  if (!st && *ok) st = assay_operand_padded_floats(bias, panels_of(k->n) * WIDE, &k->bias);
  if (!st && *ok) st = pack_weights(l, &s, k);
  source_close(&s);
  return st;
}

static assay_status_t make(const assay_sized_layer_t* l, assay_kernel_t** out) {
  weight_only_t* k = NULL;
  assay_coded_matrix_t m;
  size_t nodes;
  ASSAY_TRY(ASSAY_NEW(&k));
  k->base = (assay_kernel_t){.in_place = -1, .run = run, .destroy = destroy};
  bool ok = read_layer(l, &m, k, &nodes);
  assay_status_t st = ok ? finish(l, &m, nodes, k, &ok) : NULL;
  if (st || !ok) return destroy(&k->base), st;
  *out = &k->base;
  return NULL;
}

const assay_tactic_t cpu_tactic_weight_only = {
    .name = "weight_only",
    .source = "assay",
    .make = make,
    .rounding = {CPU_FLOAT_SUMS},
};
