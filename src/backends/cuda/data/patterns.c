// OneHot, Trilu and EyeLike (kernels/data/one_hot.cu, triangle.cu): what few numbers
// make of sizes.
#include <string.h>

#include "backends/constants.h"
#include "backends/cuda/kernels/patterns_args.h"
#include "backends/cuda/tactic.h"
#include "base/alloc.h"

enum { THREADS = 256 };

typedef struct pattern {
  assay_kernel_t base;
  int in[3];  // inputs of the layer by input of the node; -1: not read
  cuda_kernel_t function;
  cuda_grid_t grid;
  union {
    one_hot_args_t one_hot;
    triangle_args_t triangle;
  } args;
} pattern_t;

static void destroy(assay_kernel_t* base) { assay_free(base); }

static assay_device_ptr_t given(const pattern_t* k, const assay_device_ptr_t* in, int i) {
  return k->in[i] < 0 ? 0 : in[k->in[i]];
}

static assay_status_t enqueue_one_hot(assay_kernel_t* base, assay_queue_t* q,
                                      const assay_device_ptr_t* in, const assay_device_ptr_t* out,
                                      assay_device_ptr_t scratch) {
  const pattern_t* k = (const pattern_t*)base;
  one_hot_args_t a = k->args.one_hot;
  (void)scratch;
  a.indices = given(k, in, 0);
  a.values = given(k, in, 2);
  a.y = out[0];
  return cuda_queue_launch(q, k->function, &k->grid, &a);
}

static assay_status_t enqueue_triangle(assay_kernel_t* base, assay_queue_t* q,
                                       const assay_device_ptr_t* in, const assay_device_ptr_t* out,
                                       assay_device_ptr_t scratch) {
  const pattern_t* k = (const pattern_t*)base;
  triangle_args_t a = k->args.triangle;
  (void)scratch;
  a.x = given(k, in, 0);
  a.k = given(k, in, 1);
  a.y = out[0];
  return cuda_queue_launch(q, k->function, &k->grid, &a);
}

// ---- reading ------------------------------------------------------------------------------------

// Input i of the node is read in this type. NULL: it is left out, or read in another one already.
static const assay_operand_t* take(const assay_sized_layer_t* l, pattern_t* k, size_t i,
                                   assay_type_t type) {
  const assay_node_t* n = l->layer->nodes[0];
  const assay_operand_t* o =
      i < n->n_inputs && n->inputs[i] ? assay_sized_input(l, n->inputs[i]) : NULL;
  if (!o) return NULL;
  assay_storage_t* form = &k->base.in[o - l->in];
  if (form->type && form->type != type) return NULL;
  k->in[i] = (int)(o - l->in);
  *form = (assay_storage_t){type, ASSAY_LAYOUT_PLAIN};
  return o;
}

static bool is_given(const assay_node_t* n, size_t i) { return i < n->n_inputs && n->inputs[i]; }

// The kernel, with options that begin with these; they are freed.
static assay_status_t load(const assay_sized_layer_t* l, const char* file, const char* kernel,
                           assay_str_t* options, pattern_t* k) {
  const cuda_source_t source = {.file = file, .kernel = kernel, .options = assay_str_get(options)};
  assay_status_t st = assay_str_status(options);
  if (!st) st = cuda_function_get(cuda_own_of(l)->functions, &source, &k->function);
  assay_str_deinit(options);
  return st;
}

static assay_status_t read_one_hot(const assay_sized_layer_t* l, pattern_t* k, bool* ok) {
  const assay_node_t* n = l->layer->nodes[0];
  const assay_operand_t *y = &l->out[0],
                        *x = is_given(n, 0) ? assay_sized_input(l, n->inputs[0]) : NULL;
  const assay_operand_t* values = take(l, k, 2, y->type);
  int64_t bits;
  if (!x || !values || values->size != 2 || x->type == ASSAY_TYPE_UINT64 ||
      !take(l, k, 0, x->type) || (!cuda_type_name(x->type) && !cuda_whole_name(x->type)) ||
      !cuda_type_bits(y->type, &bits) ||
      (values->type != y->type && !(cuda_type_name(values->type) && cuda_type_name(y->type))))
    return NULL;
  const int axis = assay_known_axis(assay_attr_i64(n, "axis", -1), x->rank + 1);
  if (axis < 0 || y->rank != x->rank + 1 || y->size != x->size * y->dims[axis]) return NULL;
  k->args.one_hot = (one_hot_args_t){.size = y->size,
                                     .depth = y->dims[axis],
                                     .inner = assay_dims_product(x->dims, axis, x->rank),
                                     .from_end = !n->schema || n->schema->since >= 11};
  k->base.enqueue = enqueue_one_hot;
  *ok = true;
  const char* name = cuda_type_name(x->type);
  assay_str_t options = {0};
  assay_str_printf(&options, "-DBITS=%d %s-DINDEX=%s", (int)bits, name ? "-DFLOATS " : "",
                   name ? name : cuda_whole_name(x->type));
  return load(l, "one_hot.cu", "one_hot", &options, k);
}

static assay_status_t read_triangle(const assay_sized_layer_t* l, pattern_t* k, bool* ok) {
  const assay_node_t* n = l->layer->nodes[0];
  const assay_operand_t *y = &l->out[0], *x = take(l, k, 0, y->type);
  int64_t bits;
  if (!x || x->rank < 2 || x->size != y->size || !cuda_type_bits(y->type, &bits) ||
      (x->type != y->type && !(cuda_type_name(x->type) && cuda_type_name(y->type))))
    return NULL;
  if (is_given(n, 1)) {
    const assay_operand_t* d = take(l, k, 1, ASSAY_TYPE_INT64);
    if (!d || d->type != ASSAY_TYPE_INT64 || d->size != 1) return NULL;
  }
  k->args.triangle = (triangle_args_t){.size = y->size,
                                       .rows = x->dims[x->rank - 2],
                                       .columns = x->dims[x->rank - 1],
                                       .upper = assay_attr_i64(n, "upper", 1) != 0};
  k->base.enqueue = enqueue_triangle;
  *ok = true;
  assay_str_t options = {0};
  assay_str_printf(&options, "-DBITS=%d -DONE=0ull", (int)bits);
  return load(l, "triangle.cu", "triangle", &options, k);
}

static uint64_t one_of(assay_type_t type) {
  if (type == ASSAY_TYPE_FLOAT) return 0x3f800000;
  if (type == ASSAY_TYPE_FLOAT16) return 0x3c00;
  return type == ASSAY_TYPE_BFLOAT16 ? 0x3f80 : 1;
}

static assay_status_t read_diagonal(const assay_sized_layer_t* l, pattern_t* k, bool* ok) {
  const assay_node_t* n = l->layer->nodes[0];
  const assay_operand_t* y = &l->out[0];
  int64_t bits;
  if (y->rank != 2 || !cuda_type_bits(y->type, &bits) ||
      (!cuda_type_name(y->type) && !cuda_whole_name(y->type)))
    return NULL;
  k->args.triangle = (triangle_args_t){.size = y->size,
                                       .rows = y->dims[0],
                                       .columns = y->dims[1],
                                       .diagonal = assay_attr_i64(n, "k", 0)};
  // Numbers that no element is on stay that far off.
  if (k->args.triangle.diagonal < -y->dims[0] || k->args.triangle.diagonal > y->dims[1])
    k->args.triangle.diagonal = y->dims[1];
  k->base.enqueue = enqueue_triangle;
  *ok = true;
  assay_str_t options = {0};
  assay_str_printf(&options, "-DBITS=%d -DONE=0x%llxull", (int)bits,
                   (unsigned long long)one_of(y->type));
  return load(l, "triangle.cu", "diagonal", &options, k);
}

// ---- entry --------------------------------------------------------------------------------------

static const struct {
  const char *domain, *name;
  assay_status_t (*read)(const assay_sized_layer_t* l, pattern_t* k, bool* ok);
} operators[] = {{"", "OneHot", read_one_hot},
                 {"", "Trilu", read_triangle},
                 {"com.microsoft", "Trilu", read_triangle},
                 {"", "EyeLike", read_diagonal}};

static assay_status_t read(const assay_sized_layer_t* l, pattern_t* k, bool* ok) {
  const assay_node_t* n = l->layer->nodes[0];
  if (l->layer->n_nodes != 1 || l->n_out != 1 || !l->out[0].value || !l->out[0].size) return NULL;
  for (size_t i = 0; i < sizeof operators / sizeof *operators; i++)
    if (strcmp(n->domain, operators[i].domain) == 0 && strcmp(n->op_type, operators[i].name) == 0)
      return operators[i].read(l, k, ok);
  return NULL;
}

static assay_status_t make(const assay_sized_layer_t* l, assay_kernel_t** out) {
  pattern_t* k = NULL;
  bool ok = false;
  ASSAY_TRY(ASSAY_NEW(&k));
  k->base = (assay_kernel_t){.in_place = -1, .destroy = destroy};
  for (size_t i = 0; i < sizeof k->in / sizeof *k->in; i++) k->in[i] = -1;
  assay_status_t st = read(l, k, &ok);
  if (st || !ok) return destroy(&k->base), st;
  k->base.out[0] = (assay_storage_t){l->out[0].type, ASSAY_LAYOUT_PLAIN};
  k->grid = (cuda_grid_t){.blocks = cuda_blocks_for(cuda_own_of(l), l->out[0].size, THREADS),
                          .threads = THREADS,
                          .dependent = true};
  *out = &k->base;
  return NULL;
}

const assay_tactic_t cuda_tactic_patterns = {
    .name = "patterns",
    .source = "assay",
    .make = make,
    .rounding = {.compute = ASSAY_FORMAT_FP32, .accumulator = ASSAY_FORMAT_FP32},
};
