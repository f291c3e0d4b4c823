// Resize and Upsample over up to three axes, in the layout in which the input lies.
//
// As the emulated engine does it: an axis after the other, the first one first; weights, products
// and sums in float32. The places and the weights of taps are made on the host, as float64 has
// them, and stay in the device's memory.
#include "ops/conv/resize.h"

#include <string.h>

#include "backends/cuda/kernels/resize_args.h"
#include "backends/cuda/tactic.h"
#include "base/alloc.h"
#include "base/hash.h"
#include "base/shown.h"
#include "base/str.h"
#include "exec/device/resident.h"

enum { THREADS = 256, MAX_INPUTS = 4 };

typedef struct resize {
  assay_kernel_t base;
  cuda_kernel_t function;
  cuda_grid_t grid;
  int x, n_axes;
  bool moves;  // elements as they are
  resize_args_t args;
} resize_t;

static assay_status_t enqueue(assay_kernel_t* base, assay_queue_t* q, const assay_device_ptr_t* in,
                              const assay_device_ptr_t* out, assay_device_ptr_t scratch) {
  const resize_t* k = (const resize_t*)base;
  resize_args_t a = k->args;
  (void)scratch;
  a.x = in[k->x];
  a.y = out[0];
  return cuda_queue_launch(q, k->function, &k->grid, &a);
}

static void destroy(assay_kernel_t* base) { assay_free(base); }

// ---- tables -------------------------------------------------------------------------------------

typedef struct bytes {
  const assay_device_driver_t* driver;
  const void* at;
  size_t n;
} bytes_t;

static assay_status_t fill(void* user, assay_queue_t* q, assay_device_ptr_t to) {
  const bytes_t* b = user;
  return b->driver->upload(q, b->at, to, b->n);
}

// A table lies on the device once, by what it is.
static assay_status_t bring(const assay_sized_layer_t* l, const void* at, size_t n,
                            address_t* out) {
  bytes_t b = {cuda_own_of(l)->device->driver, at, n};
  assay_str_t key = {0};
  assay_device_ptr_t there = 0;
  assay_str_printf_raw(&key, "taps %016llx%016llx %zu", (unsigned long long)assay_hash(at, n, 1),
                       (unsigned long long)assay_hash(at, n, 2), n);
  assay_status_t st = assay_str_status(&key);
  if (!st) st = assay_resident_get(l->resident, assay_str_get(&key), n, fill, &b, &there);
  assay_str_deinit(&key);
  *out = there;
  return st;
}

// The table in the types that kernels read; made: room for as many indices and weights.
static assay_status_t bring_table(const assay_sized_layer_t* l, const resize_table_t* table,
                                  size_t n, int32_t* index, float* weight, resize_taps_t* t) {
  for (size_t i = 0; i < n; i++) {
    index[i] = (int32_t)table->index[i];
    weight[i] = table->weight ? (float)table->weight[i] : 1;
  }
  t->taps = table->taps;
  ASSAY_TRY(bring(l, index, n * sizeof *index, &t->index));
  return table->weight ? bring(l, weight, n * sizeof *weight, &t->weight) : NULL;
}

static assay_status_t add_axis(const assay_sized_layer_t* l, const resize_options_t* o,
                               const resize_axis_t* axis, resize_dim_t dim, resize_t* k) {
  const assay_eval_t c = {.node = l->layer->nodes[0], .arith = ASSAY_ARITH_F32};
  resize_taps_t* t = &k->args.axis[k->n_axes++];
  resize_table_t table = {0};
  int32_t* index = NULL;
  float* weight = NULL;
  t->dim = dim;
  assay_status_t st = assay_resize_table_init(&c, o, axis, &table);
  const size_t n = (size_t)(axis->out * table.taps);
  if (!st) st = assay_new_array(n, sizeof *index, &index);
  if (!st) st = assay_new_array(n, sizeof *weight, &weight);
  if (!st) st = bring_table(l, &table, n, index, weight, t);
  assay_free(index);
  assay_free(weight);
  assay_resize_table_deinit(&table);
  return st;
}

// ---- making -------------------------------------------------------------------------------------

// The inputs' elements after the first, as far as they are known; canonical, to be released.
static assay_status_t parameters(const assay_sized_layer_t* l, const assay_node_t* n,
                                 assay_tensor_t** in, bool* out_known) {
  *out_known = true;
  for (size_t i = 1; i < n->n_inputs && i < MAX_INPUTS; i++) {
    if (!n->inputs[i]) continue;
    const assay_operand_t* o = assay_sized_input(l, n->inputs[i]);
    *out_known = *out_known && o && o->constant;
    if (!*out_known) return NULL;
    ASSAY_TRY(assay_tensor_widen((assay_tensor_t*)(uintptr_t)o->constant, &in[i]));
  }
  return NULL;
}

// The steps of dimension d in memory.
static void steps_of(const assay_operand_t* x, const assay_operand_t* y, bool last, int d,
                     resize_dim_t* out) {
  *out = (resize_dim_t){.size = y->dims[d], .step = 1, .from = 1};
  for (int i = 0; i < x->rank; i++) {
    // What lies within: dimensions after this one, but channels that lie last are within all.
    const bool within = last ? (d == 1 ? false : i == 1 || i > d) : i > d;
    if (!within) continue;
    out->step *= y->dims[i];
    out->from *= x->dims[i];
  }
}

static assay_status_t lay_out(const assay_sized_layer_t* l, const assay_operand_t* x, bool last,
                              const resize_options_t* o, const resize_axis_t* axes, resize_t* k,
                              bool* ok) {
  const assay_operand_t* y = &l->out[0];
  int n = 0;
  for (int i = 0; i < x->rank; i++) {
    *ok = *ok && axes[i].out == y->dims[i] && axes[i].in <= INT32_MAX;
    n += !assay_resize_is_identity(o, &axes[i]);
  }
  *ok = *ok && n <= RESIZE_AXES && o->coordinates != RESIZE_TF_CROP;
  for (int i = 0; *ok && i < x->rank; i++) {
    resize_dim_t dim;
    steps_of(x, y, last, i, &dim);
    if (!assay_resize_is_identity(o, &axes[i]))
      ASSAY_TRY(add_axis(l, o, &axes[i], dim, k));
    else if (dim.size > 1)
      k->args.kept[k->args.n_kept++] = dim;
  }
  k->args.size = y->size;
  return NULL;
}

static assay_status_t compile(const assay_sized_layer_t* l, const assay_operand_t* x, resize_t* k) {
  int64_t bits = 0;
  assay_str_t options = {0};
  cuda_type_bits(x->type, &bits);
  if (k->moves)
    assay_str_printf(&options, "-DBITS=%d -DAXES=%d", (int)bits, k->n_axes);
  else
    assay_str_printf(&options, "-DT=%s -DAXES=%d", cuda_type_name(x->type), k->n_axes);
  const cuda_source_t source = {.file = "resize.cu",
                                .kernel = k->moves ? "resize_nearest" : "resize_floats",
                                .options = assay_str_get(&options)};
  assay_status_t st = assay_str_status(&options);
  if (!st) st = cuda_function_get(cuda_own_of(l)->functions, &source, &k->function);
  assay_str_deinit(&options);
  k->grid = (cuda_grid_t){.blocks = cuda_blocks_for(cuda_own_of(l), k->args.size, THREADS),
                          .threads = THREADS,
                          .dependent = true};
  return st;
}

// Floats; where elements are taken as they are, all of whole bytes.
static assay_status_t build(const assay_sized_layer_t* l, const assay_node_t* n,
                            const assay_operand_t* x, bool last, resize_t* k, bool* ok) {
  assay_tensor_t* in[MAX_INPUTS] = {NULL};
  resize_options_t o;
  resize_axis_t axes[ASSAY_MAX_RANK];
  int64_t bits;
  assay_status_t st = parameters(l, n, in, ok);
  if (!st && *ok)
    st = assay_resize_read(n, x->rank, x->dims, (const assay_tensor_t* const*)in, MAX_INPUTS, &o,
                           axes);
  if (!st && *ok) {
    k->moves = o.mode == RESIZE_NEAREST;
    *ok = k->moves ? cuda_type_bits(x->type, &bits) : cuda_type_name(x->type) != NULL;
    st = lay_out(l, x, last, &o, axes, k, ok);
  }
  for (int i = 0; i < MAX_INPUTS; i++) assay_tensor_release(in[i]);
  return !st && *ok ? compile(l, x, k) : st;
}

static assay_status_t make(const assay_sized_layer_t* l, assay_kernel_t** out) {
  const assay_node_t* n = l->layer->nodes[0];
  const assay_operand_t* x = n->n_inputs ? assay_sized_input(l, n->inputs[0]) : NULL;
  if (*n->domain || (strcmp(n->op_type, "Resize") != 0 && strcmp(n->op_type, "Upsample") != 0) ||
      l->layer->n_nodes != 1 || !x || l->n_out != 1 || !l->out[0].value || !x->size ||
      !l->out[0].size || x->type != l->out[0].type || l->out[0].rank != x->rank || x->rank < 1 ||
      x->rank > RESIZE_RANK || !l->resident)
    return NULL;
  resize_t* k = NULL;
  bool ok = false;
  ASSAY_TRY(ASSAY_NEW(&k));
  const bool last = assay_operand_is_channels_last(x);
  const assay_layout_t layout = last ? ASSAY_LAYOUT_CHANNELS_LAST : ASSAY_LAYOUT_PLAIN;
  k->base = (assay_kernel_t){.in_place = -1, .enqueue = enqueue, .destroy = destroy};
  k->x = (int)(x - l->in);
  k->base.in[k->x] = k->base.out[0] = (assay_storage_t){x->type, layout};
  assay_status_t st = build(l, n, x, last, k, &ok);
  if (st || !ok) return destroy(&k->base), st;
  *out = &k->base;
  return NULL;
}

const assay_tactic_t cuda_tactic_resize = {
    .name = "resize",
    .source = "assay",
    .make = make,
    .layouts = ASSAY_LAYOUT_FOLLOWS,
    .rounding = {.compute = ASSAY_FORMAT_FP32, .accumulator = ASSAY_FORMAT_FP32},
};
