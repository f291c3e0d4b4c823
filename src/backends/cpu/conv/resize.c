// Resize and Upsample of one or two spatial axes, in the layout in which the input lies.
//
// As the emulated engine does it: an axis after the other, the first one first; weights, products
// and sums in float32. A row of the input stands still while rows of the output are made of it.
#include "ops/conv/resize.h"

#include <string.h>

#include "backends/cpu/pointwise/convert.h"
#include "backends/cpu/tactic.h"
#include "backends/cpu/threads.h"
#include "base/alloc.h"
#include "base/target.h"

#define CLONES ASSAY_CLONES("arch=x86-64-v4", "arch=x86-64-v3", "default")

// One axis: output place j is made of taps [j * n, j * n + n).
typedef struct taps {
  int64_t in, out, n;
  int64_t* index;
  float* weight;
} taps_t;

// The input is [outer, in of rows, in of places, inner].
typedef struct resize {
  assay_kernel_t base;
  int input;
  int64_t outer, inner;
  taps_t rows, places;
} resize_t;

static void destroy(assay_kernel_t* base) {
  resize_t* k = (resize_t*)base;
  assay_free(k->rows.index);
  assay_free(k->rows.weight);
  assay_free(k->places.index);
  assay_free(k->places.weight);
  assay_free(k);
}

// ---- running -----------------------------------------------------------------------------------

CLONES
static void add_scaled(const float* x, float w, int64_t n, float* y) {
#pragma omp simd
  for (int64_t i = 0; i < n; i++) y[i] = y[i] + w * x[i];
}

// to = the sum of weight * row over the taps, from 0 on.
static void weighted(const taps_t* t, int64_t j, const float* x, int64_t step, int64_t n,
                     float* to) {
  memset(to, 0, (size_t)n * sizeof *to);
  for (int64_t k = j * t->n; k < (j + 1) * t->n; k++)
    if (t->weight[k] != 0) add_scaled(x + t->index[k] * step, t->weight[k], n, to);
}

// One row of the input's places, as output row j of the first axis has it.
static void make_row(const resize_t* k, const void* x, int64_t outer, int64_t j, float* wide,
                     float* row) {
  const taps_t* t = &k->rows;
  const int64_t n = k->places.in * k->inner;
  const assay_type_t type = k->base.in[k->input].type;
  const float one = 1;
  memset(row, 0, (size_t)n * sizeof *row);
  for (int64_t i = j * t->n; i < (j + 1) * t->n; i++) {
    const int64_t at = (outer * t->in + t->index[i]) * n;
    if (t->weight[i] == 0) continue;
    if (memcmp(&t->weight[i], &one, sizeof one) == 0 && t->n == 1) {
      cpu_widen(x, type, at, n, row);
      continue;
    }
    cpu_widen(x, type, at, n, wide);
    add_scaled(wide, t->weight[i], n, row);
  }
}

// Along the last axis in memory there is one element a place.
static void make_places(const resize_t* k, const float* row, float* to) {
  const taps_t* t = &k->places;
  if (k->inner > 1) {
    for (int64_t j = 0; j < t->out; j++) weighted(t, j, row, k->inner, k->inner, to + j * k->inner);
    return;
  }
  for (int64_t j = 0; j < t->out; j++) {
    float sum = 0;
    for (int64_t i = j * t->n; i < (j + 1) * t->n; i++)
      if (t->weight[i] != 0) sum = sum + t->weight[i] * row[t->index[i]];
    to[j] = sum;
  }
}

static int64_t buffers(const resize_t* k) { return (2 * k->places.in + k->places.out) * k->inner; }

static void run_rows(const resize_t* k, const void* x, int64_t from, int64_t to, float* buffer,
                     void* y) {
  const int64_t in = k->places.in * k->inner, out = k->places.out * k->inner;
  float *row = buffer + in, *made = row + in;
  for (int64_t r = from; r < to; r++) {
    make_row(k, x, r / k->rows.out, r % k->rows.out, buffer, row);
    make_places(k, row, made);
    cpu_narrow(made, out, k->base.out[0].type, r * out, y);
  }
}

enum { PARTS = 64 };

static assay_status_t run(assay_kernel_t* base, const void* const* in, void* const* out,
                          void* scratch) {
  const resize_t* k = (const resize_t*)base;
  const int64_t rows = k->outer * k->rows.out;
  int parts = cpu_threads(rows * k->places.out * k->inner * 4);
  if (parts > PARTS) parts = PARTS;
  if (parts > rows) parts = (int)rows;
#pragma omp parallel for schedule(static, 1) num_threads(parts) if (parts > 1)
  for (int i = 0; i < parts; i++)
    run_rows(k, in[k->input], rows * i / parts, rows * (i + 1) / parts,
             (float*)scratch + i * buffers(k), out[0]);
  return NULL;
}

// ---- making ------------------------------------------------------------------------------------

static assay_status_t identity_taps(int64_t size, taps_t* t) {
  *t = (taps_t){.in = size, .out = size, .n = 1};
  ASSAY_TRY(assay_new_array((size_t)size, sizeof *t->index, &t->index));
  ASSAY_TRY(assay_new_array((size_t)size, sizeof *t->weight, &t->weight));
  for (int64_t i = 0; i < size; i++) {
    t->index[i] = i;
    t->weight[i] = 1;
  }
  return NULL;
}

static assay_status_t axis_taps(const assay_node_t* n, const resize_options_t* o,
                                const resize_axis_t* a, taps_t* t) {
  const assay_eval_t c = {.node = n, .arith = ASSAY_ARITH_F32};
  resize_table_t table = {0};
  if (assay_resize_is_identity(o, a)) return identity_taps(a->in, t);
  assay_status_t st = assay_resize_table_init(&c, o, a, &table);
  *t = (taps_t){.in = a->in, .out = a->out, .n = table.taps};
  const size_t size = (size_t)(a->out * table.taps);
  if (!st) st = assay_new_array(size, sizeof *t->weight, &t->weight);
  if (!st) {
    t->index = table.index;
    table.index = NULL;
    for (size_t i = 0; i < size; i++) t->weight[i] = table.weight ? (float)table.weight[i] : 1;
  }
  assay_resize_table_deinit(&table);
  return st;
}

// The inputs' elements after the first, as far as they are known; canonical, to be released.
static assay_status_t parameters(const assay_sized_layer_t* l, const assay_node_t* n,
                                 assay_tensor_t** in, bool* out_known) {
  *out_known = true;
  for (size_t i = 1; i < n->n_inputs && i < 4; i++) {
    if (!n->inputs[i]) continue;
    const assay_operand_t* o = assay_sized_input(l, n->inputs[i]);
    *out_known &= o && o->constant;
    if (!*out_known) return NULL;
    ASSAY_TRY(assay_tensor_widen((assay_tensor_t*)(uintptr_t)o->constant, &in[i]));
  }
  return NULL;
}

static bool is_for_us(const assay_operand_t* x, const resize_options_t* o,
                      const resize_axis_t* axes) {
  if (x->rank > 4 || o->coordinates == RESIZE_TF_CROP) return false;
  return assay_resize_is_identity(o, &axes[0]) && assay_resize_is_identity(o, &axes[1]);
}

static assay_status_t build(resize_t* k, const assay_sized_layer_t* l, const assay_operand_t* x,
                            bool* out_ok) {
  const assay_node_t* n = l->layer->nodes[0];
  assay_tensor_t* in[4] = {NULL};
  resize_options_t o;
  resize_axis_t axes[ASSAY_MAX_RANK];
  assay_status_t st = parameters(l, n, in, out_ok);
  if (!st && *out_ok)
    st = assay_resize_read(n, x->rank, x->dims, (const assay_tensor_t* const*)in, 4, &o, axes);
  if (!st && *out_ok) *out_ok = is_for_us(x, &o, axes);
  for (int i = 0; i < x->rank && !st && *out_ok; i++) *out_ok = axes[i].out == l->out[0].dims[i];
  if (!st && *out_ok)
    st = x->rank == 4 ? axis_taps(n, &o, &axes[2], &k->rows) : identity_taps(1, &k->rows);
  if (!st && *out_ok) st = axis_taps(n, &o, &axes[x->rank - 1], &k->places);
  for (int i = 0; i < 4; i++) assay_tensor_release(in[i]);
  return st;
}

static assay_status_t make(const assay_sized_layer_t* l, assay_kernel_t** out) {
  const assay_node_t* n = l->layer->nodes[0];
  const assay_operand_t* x = n->n_inputs ? assay_sized_input(l, n->inputs[0]) : NULL;
  if (*n->domain || (strcmp(n->op_type, "Resize") != 0 && strcmp(n->op_type, "Upsample") != 0) ||
      l->layer->n_nodes != 1 || !x || l->n_out != 1 || !l->out[0].value || x->rank < 3 ||
      !x->size || !l->out[0].size || !assay_type_is_kernel_float(x->type) ||
      x->type != l->out[0].type || l->out[0].rank != x->rank)
    return NULL;
  resize_t* k = NULL;
  bool ok = false;
  ASSAY_TRY(ASSAY_NEW(&k));
  const assay_layout_t layout =
      assay_operand_is_channels_last(x) ? ASSAY_LAYOUT_CHANNELS_LAST : ASSAY_LAYOUT_PLAIN;
  k->base = (assay_kernel_t){.in_place = -1, .run = run, .destroy = destroy};
  k->input = (int)(x - l->in);
  k->base.in[k->input] = k->base.out[0] = (assay_storage_t){x->type, layout};
  k->outer = layout == ASSAY_LAYOUT_PLAIN ? x->dims[0] * x->dims[1] : x->dims[0];
  k->inner = layout == ASSAY_LAYOUT_PLAIN ? 1 : x->dims[1];
  assay_status_t st = build(k, l, x, &ok);
  if (st || !ok) return destroy(&k->base), st;
  k->base.scratch = (size_t)PARTS * (size_t)buffers(k) * sizeof(float);
  *out = &k->base;
  return NULL;
}

const assay_tactic_t cpu_tactic_resize = {
    .name = "resize",
    .source = "assay",
    .make = make,
    .layouts = ASSAY_LAYOUT_FOLLOWS,
    .rounding = {.compute = ASSAY_FORMAT_FP32, .accumulator = ASSAY_FORMAT_FP32},
};
