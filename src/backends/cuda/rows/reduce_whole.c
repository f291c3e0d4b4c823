// Reductions of whole numbers over any axes, and the places of the largest or smallest elements
// along an axis.
#include <string.h>

#include "backends/constants.h"
#include "backends/cuda/rows/reduced.h"
#include "base/alloc.h"

typedef struct kind {
  const char *op, *of, *join, *end;
} kind_t;

static const kind_t kinds[] = {
    {"ReduceMean", "itself", "whole_sum", "mean"},
    {"ReduceSum", "itself", "whole_sum", "itself"},
    {"ReduceProd", "itself", "whole_product", "itself"},
    {"ReduceMax", "itself", "whole_larger", "itself"},
    {"ReduceMin", "itself", "whole_smaller", "itself"},
    {"ReduceL1", "magnitude", "whole_sum", "itself"},
    {"ReduceSumSquare", "square", "whole_sum", "itself"},
};

typedef struct whole {
  assay_kernel_t base;
  cuda_kernel_t function;
  cuda_grid_t grid;
  int x;
  reduce_args_t args;
} whole_t;

static assay_status_t enqueue(assay_kernel_t* base, assay_queue_t* q, const assay_device_ptr_t* in,
                              const assay_device_ptr_t* out, assay_device_ptr_t scratch) {
  const whole_t* k = (const whole_t*)base;
  reduce_args_t a = k->args;
  (void)scratch;
  a.x = in[k->x];
  a.y = out[0];
  return cuda_queue_launch(q, k->function, &k->grid, &a);
}

static void destroy(assay_kernel_t* base) { assay_free(base); }

static bool is_unsigned(assay_type_t t) { return t == ASSAY_TYPE_UINT64; }

// Those of the largest or smallest elements; *out_ok false: not such a node.
static bool print_places(const assay_sized_layer_t* l, const assay_node_t* n,
                         const assay_operand_t* x, bool* reduced, assay_str_t* options) {
  const bool smallest = strcmp(n->op_type, "ArgMin") == 0;
  const int axis = assay_known_axis(assay_attr_i64(n, "axis", 0), x->rank);
  const char *name = cuda_type_name(x->type), *whole = cuda_whole_name(x->type);
  if ((!smallest && strcmp(n->op_type, "ArgMax") != 0) || axis < 0 || (!name && !whole) ||
      x->type == ASSAY_TYPE_BOOL || l->out[0].type != ASSAY_TYPE_INT64)
    return false;
  for (int i = 0; i < x->rank; i++) reduced[i] = i == axis;
  assay_str_printf(options, "-DARGUMENT -DSMALLEST=%d -DT=%s %s", smallest, name ? name : whole,
                   name ? "-DFLOATS " : "");
  if (assay_attr_i64(n, "select_last_index", 0)) assay_str_printf(options, "-DLAST ");
  return true;
}

static bool print_reduction(const assay_sized_layer_t* l, const assay_node_t* n,
                            const assay_operand_t* x, bool* reduced, assay_str_t* options) {
  size_t i = 0;
  while (i < sizeof kinds / sizeof *kinds && strcmp(kinds[i].op, n->op_type) != 0) i++;
  if (i == sizeof kinds / sizeof *kinds || !cuda_whole_name(x->type) || l->out[0].type != x->type ||
      !cuda_reduced_axes(l, n, x->rank, reduced))
    return false;
  assay_str_printf(options, "-DT=%s -DOF=%s -DJOIN=%s -DEND=%s ", cuda_whole_name(x->type),
                   kinds[i].of, kinds[i].join, kinds[i].end);
  return true;
}

static assay_status_t build(const assay_sized_layer_t* l, const assay_node_t* n,
                            const assay_operand_t* x, assay_str_t* options, whole_t* k, bool* ok) {
  bool reduced[ASSAY_KERNEL_RANK];
  cuda_reduced_t r;
  cuda_rows_t rows;
  const bool places = print_places(l, n, x, reduced, options);
  *ok = (places || print_reduction(l, n, x, reduced, options)) &&
        cuda_reduced_dims(l, x, reduced, &r) &&
        cuda_rows_make(cuda_own_of(l), r.dims, r.rank, 16, false, &rows);
  if (!*ok) return NULL;
  if (is_unsigned(x->type)) assay_str_printf(options, "-DUNSIGNED ");
  cuda_rows_print(&rows, options);
  ASSAY_TRY(assay_str_status(options));
  const cuda_source_t source = {.file = "reduce_whole.cu",
                                .kernel = places ? "reduce_places" : "reduce_whole",
                                .options = assay_str_get(options)};
  k->grid = rows.grid;
  k->x = r.x;
  k->args.g = rows.geometry;
  k->args.whole_count = r.terms;
  k->base.in[k->x] = (assay_storage_t){x->type, r.from};
  k->base.out[0] = (assay_storage_t){l->out[0].type, r.to};
  return cuda_function_get(cuda_own_of(l)->functions, &source, &k->function);
}

static assay_status_t make(const assay_sized_layer_t* l, assay_kernel_t** out) {
  const assay_node_t* n = l->layer->nodes[0];
  const assay_operand_t* x = n->n_inputs ? assay_sized_input(l, n->inputs[0]) : NULL;
  if (*n->domain || l->layer->n_nodes != 1 || l->n_out != 1 || !l->out[0].value || !x || !x->size ||
      x->rank > ASSAY_KERNEL_RANK)
    return NULL;
  whole_t* k = NULL;
  assay_str_t options = {0};
  bool ok = false;
  ASSAY_TRY(ASSAY_NEW(&k));
  k->base = (assay_kernel_t){.in_place = -1, .enqueue = enqueue, .destroy = destroy};
  assay_status_t st = build(l, n, x, &options, k, &ok);
  assay_str_deinit(&options);
  if (st || !ok) return destroy(&k->base), st;
  *out = &k->base;
  return NULL;
}

// Exact: nothing is rounded.
const assay_tactic_t cuda_tactic_reduce_whole = {
    .name = "reduce_whole",
    .source = "assay",
    .numerics = "exact",
    .make = make,
    .layouts = ASSAY_LAYOUT_FOLLOWS,
    .rounding = {.compute = ASSAY_FORMAT_FP32, .accumulator = ASSAY_FORMAT_FP32},
};
