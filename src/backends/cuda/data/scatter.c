// ScatterElements and ScatterND: updates in their order, the last of several for the same place
// wins (kernels/data/scatter.cu), or all of them one after the other
// (kernels/data/scatter_reduce.cu).
#include <string.h>

#include "backends/cuda/data/places.h"
#include "backends/cuda/rows/sorting.h"
#include "base/alloc.h"

enum { THREADS = 256, WORD_BYTES = 16, ALIGN = 256 };

typedef struct scatter {
  assay_kernel_t base;
  const cuda_own_t* own;
  cuda_places_t places;
  int updates;                         // input of the layer
  const char* reduction;               // as kernels name it; NULL: none
  int64_t slice;                       // words, of a reduction elements
  cuda_kernel_t first, second, third;  // in the order of their launches
  cuda_sorting_t sorting;              // of a reduction
  size_t keys;                         // where they begin in scratch memory
} scatter_t;

static assay_status_t launch(const scatter_t* k, assay_queue_t* q, cuda_kernel_t f, int64_t n,
                             const scatter_args_t* a) {
  const cuda_grid_t grid = {
      .blocks = cuda_blocks_for(k->own, n, THREADS), .threads = THREADS, .dependent = true};
  return cuda_queue_launch(q, f, &grid, a);
}

static assay_status_t enqueue(assay_kernel_t* base, assay_queue_t* q, const assay_device_ptr_t* in,
                              const assay_device_ptr_t* out, assay_device_ptr_t scratch) {
  scatter_t* k = (scatter_t*)base;
  scatter_args_t a = {.places = k->places.args,
                      .data = in[k->places.data],
                      .updates = in[k->updates],
                      .out = out[0],
                      .owners = scratch,
                      .keys = scratch + k->keys,
                      .slice = k->slice};
  const int64_t words = a.places.count * a.slice;
  a.places.indices = in[k->places.indices];
  ASSAY_TRY(cuda_places_watch(&k->places, q, in));
  if (!k->reduction) {
    ASSAY_TRY(launch(k, q, k->first, a.places.count, &a));
    ASSAY_TRY(launch(k, q, k->second, a.places.n, &a));
    return launch(k, q, k->third, words, &a);
  }
  const sort_args_t order = {.x = scratch, .lines = 1, .inner = 1, .n = a.places.n};
  ASSAY_TRY(launch(k, q, k->first, a.places.n, &a));
  ASSAY_TRY(cuda_sorting_enqueue(&k->sorting, q, &order, a.keys));
  ASSAY_TRY(launch(k, q, k->second, words, &a));
  return launch(k, q, k->third, a.places.n * a.slice, &a);
}

static void destroy(assay_kernel_t* base) {
  cuda_watch_deinit(&((scatter_t*)base)->places.watch);
  assay_free(base);
}

// ---- kernels ------------------------------------------------------------------------------------

static assay_status_t get(const scatter_t* k, const char* file, const char* kernel,
                          const char* options, cuda_kernel_t* out) {
  const cuda_source_t source = {.file = file, .kernel = kernel, .options = options};
  return cuda_function_get(k->own->functions, &source, out);
}

static assay_status_t load_three(scatter_t* k, const char* file, const char* const* names,
                                 assay_str_t* options) {
  cuda_kernel_t* const to[] = {&k->first, &k->second, &k->third};
  assay_status_t st = assay_str_status(options);
  for (int i = 0; !st && i < 3; i++) st = get(k, file, names[i], assay_str_get(options), to[i]);
  assay_str_deinit(options);
  return st;
}

static assay_status_t load_moves(scatter_t* k, int64_t bits) {
  static const char* const names[] = {"scatter_clear", "scatter_claim", "scatter_put"};
  const int64_t bytes = k->places.slice * bits / 8;
  int64_t word = WORD_BYTES;
  assay_str_t options = {0};
  while (bytes % word) word /= 2;
  k->slice = bytes / word;
  k->base.scratch = (size_t)k->places.args.count * sizeof(uint32_t);
  assay_str_printf(&options, "-DBITS=%d -DINDEX=%s", (int)word * 8, cuda_places_index(&k->places));
  return load_three(k, "scatter.cu", names, &options);
}

static assay_status_t load_sorting(scatter_t* k) {
  static const char* const names[] = {"sort_elements", "sort_step", "sort_merge"};
  cuda_sorting_t* s = &k->sorting;
  cuda_kernel_t* const to[] = {&s->elements, &s->step, &s->merge};
  assay_str_t options = {0};
  s->own = k->own;
  cuda_sorting_plan(k->places.args.n, 32, s);
  assay_str_printf(&options, "-DT=uint32_t -DUNSIGNED -DLARGEST=0 -DSIZE=%d", s->chunk);
  assay_status_t st = assay_str_status(&options);
  for (int i = 0; !st && i < 3; i++)
    st = get(k, "sort.cu", names[i], assay_str_get(&options), to[i]);
  assay_str_deinit(&options);
  return st;
}

static assay_status_t load_reduction(scatter_t* k, assay_type_t type) {
  static const char* const names[] = {"scatter_places", "scatter_copy", "scatter_reduce"};
  const char* name = cuda_type_name(type);
  assay_str_t options = {0};
  ASSAY_TRY(load_sorting(k));
  k->slice = k->places.slice;
  k->keys = ((size_t)k->places.args.n * sizeof(uint32_t) + ALIGN - 1) / ALIGN * ALIGN;
  k->base.scratch = k->keys + (size_t)k->sorting.padded * sizeof(uint64_t);
  assay_str_printf(&options, "-DREDUCE_%s %s-DT=%s -DINDEX=%s", k->reduction,
                   name ? "-DFLOATS " : "", name ? name : cuda_whole_name(type),
                   cuda_places_index(&k->places));
  return load_three(k, "scatter_reduce.cu", names, &options);
}

// ---- reading ------------------------------------------------------------------------------------

static bool find_reduction(const assay_node_t* n, const char** out) {
  static const char* const names[][2] = {
      {"none", NULL}, {"add", "ADD"}, {"mul", "MUL"}, {"max", "MAX"}, {"min", "MIN"}};
  const char* given = assay_attr_str(n, "reduction", "none");
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (strcmp(given, names[i][0]) == 0) return *out = names[i][1], true;
  return false;
}

static bool types_fit(const assay_sized_layer_t* l, const scatter_t* k) {
  const assay_type_t data = l->in[k->places.data].type, updates = l->in[k->updates].type,
                     to = l->out[0].type;
  if (k->reduction)
    return data == to && updates == to && to != ASSAY_TYPE_BOOL &&
           (cuda_type_name(to) || cuda_whole_name(to));
  const bool floats = cuda_type_name(data) && cuda_type_name(updates) && cuda_type_name(to);
  return (data == to && updates == to) || floats;
}

static bool read(const assay_sized_layer_t* l, scatter_t* k) {
  const assay_node_t* n = l->layer->nodes[0];
  const bool elements =
      strcmp(n->op_type, "ScatterElements") == 0 || strcmp(n->op_type, "Scatter") == 0;
  if (*n->domain || l->layer->n_nodes != 1 || n->n_inputs != 3 ||
      (!elements && strcmp(n->op_type, "ScatterND") != 0) || !find_reduction(n, &k->reduction))
    return false;
  if (elements ? !cuda_places_of_elements(l, &k->places) : !cuda_places_of_tuples(l, 0, &k->places))
    return false;
  const assay_operand_t* u = assay_sized_input(l, n->inputs[2]);
  const places_t* a = &k->places.args;
  k->updates = u ? (int)(u - l->in) : -1;
  if (!u || k->updates == k->places.indices || u->size != a->n * k->places.slice ||
      l->out[0].size != l->in[k->places.data].size || a->n >= INT32_MAX || a->count >= INT32_MAX)
    return false;
  const assay_storage_t form = {l->out[0].type, ASSAY_LAYOUT_PLAIN};
  k->base.in[k->places.data] = k->base.in[k->updates] = k->base.out[0] = form;
  k->base.in[k->places.indices] = (assay_storage_t){k->places.index_type, ASSAY_LAYOUT_PLAIN};
  return types_fit(l, k);
}

static assay_status_t make(const assay_sized_layer_t* l, assay_kernel_t** out) {
  scatter_t* k = NULL;
  int64_t bits = 0;
  ASSAY_TRY(ASSAY_NEW(&k));
  k->base = (assay_kernel_t){.in_place = -1, .enqueue = enqueue, .destroy = destroy};
  k->own = cuda_own_of(l);
  const bool ok = read(l, k) && cuda_type_bits(l->out[0].type, &bits);
  assay_status_t st = NULL;
  if (ok) st = k->reduction ? load_reduction(k, l->out[0].type) : load_moves(k, bits);
  if (st || !ok) return destroy(&k->base), st;
  *out = &k->base;
  return NULL;
}

// Updates are joined in float32, one after the other.
const assay_tactic_t cuda_tactic_scatter = {
    .name = "scatter",
    .source = "assay",
    .make = make,
    .rounding = {.compute = ASSAY_FORMAT_FP32, .accumulator = ASSAY_FORMAT_FP32},
};
