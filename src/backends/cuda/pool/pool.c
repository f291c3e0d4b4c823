// AveragePool, MaxPool and LpPool, in the layout in which the input lies.
//
// Sums run over the window's elements in row-major order, in float32. A maximum is NaN where its
// window has one.
#include <string.h>

#include "backends/cuda/kernels/pool_args.h"
#include "backends/cuda/tactic.h"
#include "base/alloc.h"
#include "base/str.h"
#include "ops/conv/window.h"

enum { THREADS = 256 };

typedef struct pool {
  assay_kernel_t base;
  cuda_kernel_t function;
  cuda_grid_t grid;
  int x;
  pool_args_t args;
} pool_t;

static assay_status_t enqueue(assay_kernel_t* base, assay_queue_t* q, const assay_device_ptr_t* in,
                              const assay_device_ptr_t* out, assay_device_ptr_t scratch) {
  const pool_t* k = (const pool_t*)base;
  pool_args_t a = k->args;
  (void)scratch;
  a.x = in[k->x];
  a.y = out[0];
  a.indices = k->base.out[1].type ? out[1] : 0;
  return cuda_queue_launch(q, k->function, &k->grid, &a);
}

static void destroy(assay_kernel_t* base) { assay_free(base); }

// ---- which layers -------------------------------------------------------------------------------

// What is done with a window's elements (kernels/pool/pool.cu); NULL: another operator.
static const char* kind_of(const assay_node_t* n) {
  if (*n->domain) return NULL;
  if (strcmp(n->op_type, "MaxPool") == 0) return "MAXIMUM";
  if (strcmp(n->op_type, "AveragePool") == 0) return "AVERAGE";
  if (strcmp(n->op_type, "LpPool") != 0) return NULL;
  // An integer since version 2, a float before.
  const bool is_float = n->schema && n->schema->since < 2;
  const double p = is_float ? assay_attr_f64(n, "p", 2) : (double)assay_attr_i64(n, "p", 2);
  if (p <= 1 && p >= 1) return "MAGNITUDES";
  return p <= 2 && p >= 2 ? "SQUARES" : NULL;
}

// Floats are rounded to the layer's format; bytes are exact as floats.
static bool fits(const assay_sized_layer_t* l, const assay_operand_t* x, const char* kind) {
  const assay_type_t to = l->out[0].type;
  const bool bytes = x->type == ASSAY_TYPE_INT8 || x->type == ASSAY_TYPE_UINT8;
  if (l->n_out > 2 || (l->n_out > 1 && l->out[1].value && l->out[1].type != ASSAY_TYPE_INT64))
    return false;
  if (bytes) return to == x->type && strcmp(kind, "MAXIMUM") == 0;
  return cuda_type_name(x->type) && cuda_type_name(to);
}

static assay_status_t read_window(const assay_node_t* n, const assay_operand_t* x, int64_t size,
                                  pool_args_t* a, bool* ok) {
  assay_window_t w = {.rank = x->rank - 2};
  int64_t made;
  ASSAY_TRY(assay_window_read(n, w.rank, NULL, &w));
  ASSAY_TRY(assay_window_fit(n, &w, x->dims + 2));
  for (int i = 0; i < w.rank; i++) {
    const assay_window_axis_t* from = &w.axis[i];
    a->axis[i] = (pool_axis_t){from->in,     from->out,      from->kernel,
                               from->stride, from->dilation, {from->pads[0], from->pads[1]}};
  }
  a->size = size;
  a->channels = x->dims[1];
  a->in_places = assay_window_in_size(&w);
  a->out_places = assay_window_out_size(&w);
  a->counts_padding = assay_attr_i64(n, "count_include_pad", 0) != 0;
  a->column_major = assay_attr_i64(n, "storage_order", 0) != 0;
  // Sizes that do not fit together are for the emulated engine, which says so.
  *ok = assay_mul_i64(x->dims[0] * x->dims[1], a->out_places, &made) && made == size;
  return NULL;
}

// Whether 31 bits count all elements, and positions of windows, also those outside of the input.
static bool is_short(const pool_args_t* a, const assay_operand_t* x) {
  const int64_t most = INT32_MAX / 4;
  bool yes = x->size < most && a->size < most;
  for (int i = 0; i < x->rank - 2; i++) {
    const pool_axis_t* d = &a->axis[i];
    yes = yes && d->in < most && d->pads[0] < most && d->pads[1] < most && d->kernel < most &&
          d->stride < most && d->dilation < most && d->out < most / d->stride &&
          d->kernel < most / d->dilation;
  }
  return yes;
}

// Channels that a thread takes at once: 16 bytes of the larger type, 8 of bytes, where all lie so
// and nobody asks for places.
static int vector_of(const pool_t* k, assay_type_t from, assay_type_t to) {
  const int n = from == ASSAY_TYPE_FLOAT || to == ASSAY_TYPE_FLOAT ? 4 : 8;
  return k->args.channels_last && k->args.channels % n == 0 && !k->base.out[1].type ? n : 1;
}

static assay_status_t compile(const assay_sized_layer_t* l, const assay_operand_t* x,
                              const char* kind, pool_t* k) {
  const char *name = cuda_type_name(x->type), *to = cuda_type_name(l->out[0].type);
  const int vector = vector_of(k, x->type, l->out[0].type);
  assay_str_t options = {0};
  assay_str_printf(&options, "-DKIND=%s -DRANK=%d -DVEC=%d -DPLACE=%s -DT=%s -DTO=%s%s", kind,
                   x->rank - 2, vector, is_short(&k->args, x) ? "int32_t" : "int64_t",
                   name ? name : cuda_whole_name(x->type), name ? to : cuda_whole_name(x->type),
                   name ? "" : " -DWHOLE");
  const cuda_source_t source = {
      .file = "pool.cu", .kernel = "pool", .options = assay_str_get(&options)};
  assay_status_t st = assay_str_status(&options);
  if (!st) st = cuda_function_get(cuda_own_of(l)->functions, &source, &k->function);
  assay_str_deinit(&options);
  k->grid = (cuda_grid_t){.blocks = cuda_blocks_for(cuda_own_of(l), k->args.size / vector, THREADS),
                          .threads = THREADS,
                          .dependent = true};
  return st;
}

static assay_status_t make(const assay_sized_layer_t* l, assay_kernel_t** out) {
  const assay_node_t* n = l->layer->nodes[0];
  const assay_operand_t* x = n->n_inputs ? assay_sized_input(l, n->inputs[0]) : NULL;
  const char* kind = kind_of(n);
  if (!kind || l->layer->n_nodes != 1 || l->n_out < 1 || !l->out[0].value || !x || x->rank < 3 ||
      x->rank > 2 + POOL_RANK || !x->size || !l->out[0].size || !fits(l, x, kind))
    return NULL;
  pool_t* k = NULL;
  bool ok = false;
  ASSAY_TRY(ASSAY_NEW(&k));
  const bool last = assay_operand_is_channels_last(x);
  const assay_layout_t layout = last ? ASSAY_LAYOUT_CHANNELS_LAST : ASSAY_LAYOUT_PLAIN;
  k->base = (assay_kernel_t){.in_place = -1, .enqueue = enqueue, .destroy = destroy};
  k->x = (int)(x - l->in);
  k->args.channels_last = last;
  k->base.in[k->x] = (assay_storage_t){x->type, layout};
  k->base.out[0] = (assay_storage_t){l->out[0].type, layout};
  if (l->n_out > 1 && l->out[1].value) k->base.out[1] = (assay_storage_t){ASSAY_TYPE_INT64, layout};
  assay_status_t st = read_window(n, x, l->out[0].size, &k->args, &ok);
  if (!st && ok) st = compile(l, x, kind, k);
  if (st || !ok) return destroy(&k->base), st;
  *out = &k->base;
  return NULL;
}

const assay_tactic_t cuda_tactic_pool = {
    .name = "pool",
    .source = "assay",
    .make = make,
    .layouts = ASSAY_LAYOUT_FOLLOWS,
    .rounding = {.compute = ASSAY_FORMAT_FP32,
                 .accumulator = ASSAY_FORMAT_FP32,
                 .function_ulps = 2},
};
