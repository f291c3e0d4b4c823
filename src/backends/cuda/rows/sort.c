// TopK: the first elements of lines, in order (kernels/rows/sort.cu).
#include <string.h>

#include "backends/constants.h"
#include "backends/cuda/rows/sorting.h"
#include "base/alloc.h"

typedef struct sort {
  assay_kernel_t base;
  cuda_sorting_t all;
  cuda_kernel_t keys, take;
  int x;
  bool whole;   // all keys are sorted
  size_t half;  // bytes of keys: they move from one half of the scratch memory to the other
  sort_args_t args;
} sort_t;

static int64_t chunks_of(int64_t n, int chunk) { return (n + chunk - 1) / chunk; }

// ---- a few of many ------------------------------------------------------------------------------

// The first of each chunk, and the first of these, until one chunk has them all.
static assay_status_t run_few(const sort_t* k, assay_queue_t* q, sort_args_t a,
                              assay_device_ptr_t scratch) {
  a.keys = a.n;
  for (int pass = 0;; pass++) {
    a.chunks = (int32_t)chunks_of(a.keys, k->all.chunk);
    const bool last = a.chunks == 1;
    a.taken = (int32_t)a.k;
    a.from = scratch + (pass % 2 ? 0 : k->half);
    a.to = last ? 0 : scratch + (pass % 2 ? k->half : 0);
    ASSAY_TRY(cuda_sorting_launch_blocks(&k->all, q, pass ? k->keys : k->all.elements,
                                         a.lines * a.chunks, &a));
    if (last) return NULL;
    a.keys = a.k * a.chunks;
  }
}

// ---- all ----------------------------------------------------------------------------------------

static assay_status_t run_whole(const sort_t* k, assay_queue_t* q, sort_args_t a,
                                assay_device_ptr_t scratch) {
  ASSAY_TRY(cuda_sorting_enqueue(&k->all, q, &a, scratch));
  a.from = scratch;
  a.keys = k->all.padded;
  return cuda_sorting_launch_each(&k->all, q, k->take, a.lines * a.k, &a);
}

static assay_status_t enqueue(assay_kernel_t* base, assay_queue_t* q, const assay_device_ptr_t* in,
                              const assay_device_ptr_t* out, assay_device_ptr_t scratch) {
  const sort_t* k = (const sort_t*)base;
  sort_args_t a = k->args;
  a.x = in[k->x];
  a.values = k->base.out[0].type ? out[0] : 0;
  a.indices = k->base.out[1].type ? out[1] : 0;
  return k->whole ? run_whole(k, q, a, scratch) : run_few(k, q, a, scratch);
}

static void destroy(assay_kernel_t* base) { assay_free(base); }

// ---- making -------------------------------------------------------------------------------------

static assay_status_t compile(const assay_sized_layer_t* l, const assay_operand_t* x, bool largest,
                              sort_t* k) {
  static const char* const names[] = {"sort_elements", "sort_keys", "sort_step", "sort_merge",
                                      "sort_take"};
  cuda_kernel_t* const functions[] = {&k->all.elements, &k->keys, &k->all.step, &k->all.merge,
                                      &k->take};
  const char* name = cuda_type_name(x->type);
  const char* to = cuda_type_name(l->out[0].value ? l->out[0].type : x->type);
  assay_str_t options = {0};
  if (name)
    assay_str_printf(&options, "-DFLOATS -DT=%s -DTO=%s", name, to);
  else
    assay_str_printf(
        &options, "-DT=%s%s%s", cuda_whole_name(x->type),
        x->type == ASSAY_TYPE_UINT32 || x->type == ASSAY_TYPE_UINT64 ? " -DUNSIGNED" : "",
        k->all.key_bytes > 8 ? " -DWIDE" : "");
  assay_str_printf(&options, " -DLARGEST=%d -DSIZE=%d", largest, k->all.chunk);
  assay_status_t st = assay_str_status(&options);
  for (size_t i = 0; !st && i < sizeof names / sizeof *names; i++) {
    const cuda_source_t source = {
        .file = "sort.cu", .kernel = names[i], .options = assay_str_get(&options)};
    st = cuda_function_get(cuda_own_of(l)->functions, &source, functions[i]);
  }
  assay_str_deinit(&options);
  return st;
}

// Sizes of chunks and of scratch memory; false: too many elements.
static bool plan(int bits, sort_t* k) {
  const sort_args_t* a = &k->args;
  int64_t keys = 0;
  cuda_sorting_plan(a->n, bits, &k->all);
  // Half of each chunk at most, taken, become fewer from launch to launch.
  k->whole = a->n > k->all.chunk && a->k > k->all.most / 2;
  if (k->whole)
    keys = k->all.padded;
  else if (a->n > k->all.chunk)
    keys = chunks_of(a->n, k->all.chunk) * a->k;
  int64_t blocks, all;
  if (!assay_mul_i64(a->lines, k->all.padded / k->all.chunk, &blocks) || blocks > INT32_MAX ||
      !assay_mul_i64(a->lines, keys, &all) || !assay_mul_i64(all, 2 * k->all.key_bytes, &all))
    return false;
  k->half = (size_t)all / 2;
  k->base.scratch = k->whole ? k->half : 2 * k->half;
  return true;
}

static bool is_for_us(const assay_sized_layer_t* l, const assay_operand_t* x) {
  const assay_operand_t* values = &l->out[0];
  if (l->n_out > 2 || (l->n_out > 1 && l->out[1].value && l->out[1].type != ASSAY_TYPE_INT64))
    return false;
  if (!values->value) return l->n_out > 1 && l->out[1].value;
  // Values that a layer passes on may be rounded to its format.
  return values->type == x->type || (cuda_type_name(values->type) && cuda_type_name(x->type));
}

static bool lay_out(const assay_sized_layer_t* l, const assay_node_t* n, const assay_operand_t* x,
                    sort_t* k) {
  const int axis = assay_known_axis(assay_attr_i64(n, "axis", -1), x->rank);
  const assay_operand_t* y = &l->out[l->out[0].value ? 0 : 1];
  if (axis < 0 || y->rank != x->rank || !y->size || x->dims[axis] > INT32_MAX / 2) return false;
  k->args.n = x->dims[axis];
  k->args.k = y->dims[axis];
  k->args.inner = assay_dims_product(x->dims, axis + 1, x->rank);
  k->args.lines = x->size / k->args.n;
  k->base.in[k->x] = (assay_storage_t){x->type, ASSAY_LAYOUT_PLAIN};
  for (size_t i = 0; i < l->n_out; i++)
    if (l->out[i].value) k->base.out[i] = (assay_storage_t){l->out[i].type, ASSAY_LAYOUT_PLAIN};
  return k->args.k <= k->args.n && plan(assay_type_bits(x->type), k);
}

static assay_status_t make(const assay_sized_layer_t* l, assay_kernel_t** out) {
  const assay_node_t* n = l->layer->nodes[0];
  const assay_operand_t* x = n->n_inputs ? assay_sized_input(l, n->inputs[0]) : NULL;
  if (*n->domain || strcmp(n->op_type, "TopK") != 0 || l->layer->n_nodes != 1 || !x || !x->size ||
      x->type == ASSAY_TYPE_BOOL || (!cuda_type_name(x->type) && !cuda_whole_name(x->type)) ||
      !l->n_out || !is_for_us(l, x))
    return NULL;
  sort_t* k = NULL;
  ASSAY_TRY(ASSAY_NEW(&k));
  k->base = (assay_kernel_t){.in_place = -1, .enqueue = enqueue, .destroy = destroy};
  k->all.own = cuda_own_of(l);
  k->x = (int)(x - l->in);
  if (!lay_out(l, n, x, k)) return destroy(&k->base), NULL;
  assay_status_t st = compile(l, x, assay_attr_i64(n, "largest", 1) != 0, k);
  if (st) return destroy(&k->base), st;
  *out = &k->base;
  return NULL;
}

// Nothing is rounded.
const assay_tactic_t cuda_tactic_sort = {
    .name = "sort",
    .source = "assay",
    .make = make,
    .rounding = {.compute = ASSAY_FORMAT_FP32, .accumulator = ASSAY_FORMAT_FP32},
};
