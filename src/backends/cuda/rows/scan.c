// Running sums and products along an axis, in the layout in which the input lies.
//
// One term is joined after the other, as the operator's definition says: the same bits whatever the
// rest of the tensor is.
#include <string.h>

#include "backends/constants.h"
#include "backends/cuda/kernels/scan_args.h"
#include "backends/cuda/rows/geometry.h"
#include "base/alloc.h"

enum { THREADS = 128, WARP = 32 };

typedef struct scan {
  assay_kernel_t base;
  cuda_kernel_t function;
  cuda_grid_t grid;
  int x;
  scan_args_t args;
} scan_t;

static assay_status_t enqueue(assay_kernel_t* base, assay_queue_t* q, const assay_device_ptr_t* in,
                              const assay_device_ptr_t* out, assay_device_ptr_t scratch) {
  const scan_t* k = (const scan_t*)base;
  scan_args_t a = k->args;
  (void)scratch;
  a.x = in[k->x];
  a.y = out[0];
  return cuda_queue_launch(q, k->function, &k->grid, &a);
}

static void destroy(assay_kernel_t* base) { assay_free(base); }

// Lines along axis `d` in memory.
static void lay_out(const assay_sized_layer_t* l, const assay_node_t* n, const assay_operand_t* x,
                    assay_layout_t layout, int d, scan_t* k) {
  int order[ASSAY_KERNEL_RANK];
  scan_args_t* a = &k->args;
  cuda_memory_order(x->rank, layout, order);
  a->inner = 1;
  for (int i = x->rank - 1; order[i] != d; i--) a->inner *= x->dims[order[i]];
  a->n = x->dims[d];
  a->lines = x->size / a->n;
  a->exclusive = assay_attr_i64(n, "exclusive", 0) != 0;
  a->reverse = assay_attr_i64(n, "reverse", 0) != 0;
  const int64_t threads = a->inner == 1 ? a->lines * WARP : a->lines;
  k->grid = (cuda_grid_t){.blocks = cuda_blocks_for(cuda_own_of(l), threads, THREADS),
                          .threads = THREADS,
                          .dependent = true};
}

static assay_status_t compile(const assay_sized_layer_t* l, const assay_operand_t* x, bool product,
                              scan_t* k) {
  const char* name = cuda_type_name(x->type);
  assay_str_t options = {0};
  assay_str_printf(&options, "%s-DT=%s", product ? "-DPRODUCT " : "",
                   name ? name : cuda_whole_name(x->type));
  if (name) assay_str_printf(&options, " -DFLOATS -DY=%s", cuda_type_name(l->out[0].type));
  const cuda_source_t source = {.file = "scan.cu",
                                .kernel = k->args.inner == 1 ? "scan_lines" : "scan_columns",
                                .options = assay_str_get(&options)};
  assay_status_t st = assay_str_status(&options);
  if (!st) st = cuda_function_get(cuda_own_of(l)->functions, &source, &k->function);
  assay_str_deinit(&options);
  return st;
}

// Floats may be stored in another type, where a layer of fp32 reads what one of fp16 has made.
static bool types_fit(assay_type_t x, assay_type_t y) {
  if (cuda_type_name(x)) return cuda_type_name(y) != NULL;
  return x == y && x != ASSAY_TYPE_BOOL && cuda_whole_name(x);
}

static assay_status_t make(const assay_sized_layer_t* l, assay_kernel_t** out) {
  const assay_node_t* n = l->layer->nodes[0];
  const assay_operand_t* x = n->n_inputs ? assay_sized_input(l, n->inputs[0]) : NULL;
  const bool product = strcmp(n->op_type, "CumProd") == 0;
  int64_t axis;
  int n_axes;
  if (*n->domain || (!product && strcmp(n->op_type, "CumSum") != 0) || l->layer->n_nodes != 1 ||
      !x || !x->size || x->rank > ASSAY_KERNEL_RANK || l->n_out != 1 || !l->out[0].value ||
      !types_fit(x->type, l->out[0].type) || !assay_known_ints(l, n, 1, 1, &axis, &n_axes) ||
      n_axes != 1)
    return NULL;
  const int d = assay_known_axis(axis, x->rank);
  if (d < 0) return NULL;
  const assay_layout_t layout =
      assay_operand_is_channels_last(x) ? ASSAY_LAYOUT_CHANNELS_LAST : ASSAY_LAYOUT_PLAIN;
  scan_t* k = NULL;
  ASSAY_TRY(ASSAY_NEW(&k));
  k->base = (assay_kernel_t){.in_place = -1, .enqueue = enqueue, .destroy = destroy};
  k->x = (int)(x - l->in);
  k->base.in[k->x] = (assay_storage_t){x->type, layout};
  k->base.out[0] = (assay_storage_t){l->out[0].type, layout};
  lay_out(l, n, x, layout, d, k);
  assay_status_t st = compile(l, x, product, k);
  if (st) return destroy(&k->base), st;
  *out = &k->base;
  return NULL;
}

const assay_tactic_t cuda_tactic_scan = {
    .name = "scan",
    .source = "assay",
    .make = make,
    .layouts = ASSAY_LAYOUT_FOLLOWS,
    .rounding = {.compute = ASSAY_FORMAT_FP32, .accumulator = ASSAY_FORMAT_FP32},
};
