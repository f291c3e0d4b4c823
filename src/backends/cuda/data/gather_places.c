// GatherElements and GatherND (kernels/data/gather_places.cu).
#include <string.h>

#include "backends/cuda/data/places.h"
#include "base/alloc.h"

enum { THREADS = 256, WORD_BYTES = 16 };

typedef struct gather_places {
  assay_kernel_t base;
  const cuda_own_t* own;
  cuda_places_t places;
  int64_t word, bytes;  // of what is moved at once; of a slice
  cuda_kernel_t function;
} gather_places_t;

static assay_status_t enqueue(assay_kernel_t* base, assay_queue_t* q, const assay_device_ptr_t* in,
                              const assay_device_ptr_t* out, assay_device_ptr_t scratch) {
  gather_places_t* k = (gather_places_t*)base;
  gather_places_args_t a = {.places = k->places.args,
                            .data = in[k->places.data],
                            .out = out[0],
                            .slice = k->bytes / k->word};
  a.places.indices = in[k->places.indices];
  (void)scratch;
  ASSAY_TRY(cuda_places_watch(&k->places, q, in));
  const cuda_grid_t grid = {.blocks = cuda_blocks_for(k->own, a.places.n * a.slice, THREADS),
                            .threads = THREADS,
                            .dependent = true};
  return cuda_queue_launch(q, k->function, &grid, &a);
}

static void destroy(assay_kernel_t* base) {
  cuda_watch_deinit(&((gather_places_t*)base)->places.watch);
  assay_free(base);
}

static assay_status_t load(gather_places_t* k) {
  assay_str_t options = {0};
  for (k->word = WORD_BYTES; k->bytes % k->word;) k->word /= 2;
  assay_str_printf(&options, "-DBITS=%d -DINDEX=%s", (int)k->word * 8,
                   cuda_places_index(&k->places));
  const cuda_source_t source = {
      .file = "gather_places.cu", .kernel = "gather_places", .options = assay_str_get(&options)};
  assay_status_t st = assay_str_status(&options);
  if (!st) st = cuda_function_get(k->own->functions, &source, &k->function);
  assay_str_deinit(&options);
  return st;
}

static bool read(const assay_sized_layer_t* l, gather_places_t* k) {
  const assay_node_t* n = l->layer->nodes[0];
  const bool elements = strcmp(n->op_type, "GatherElements") == 0 && !*n->domain;
  int64_t bits;
  if (l->layer->n_nodes != 1 || (!elements && strcmp(n->op_type, "GatherND") != 0)) return false;
  if (elements ? !cuda_places_of_elements(l, &k->places)
               : !cuda_places_of_tuples(l, assay_attr_i64(n, "batch_dims", 0), &k->places))
    return false;
  const assay_type_t from = l->in[k->places.data].type, to = l->out[0].type;
  if ((from != to && !(cuda_type_name(from) && cuda_type_name(to))) || !cuda_type_bits(to, &bits) ||
      l->out[0].size != k->places.args.n * k->places.slice)
    return false;
  k->bytes = k->places.slice * bits / 8;
  // Data of another type is rounded when it is fetched; a constant only once.
  k->base.in[k->places.data] = k->base.out[0] = (assay_storage_t){to, ASSAY_LAYOUT_PLAIN};
  k->base.in[k->places.indices] = (assay_storage_t){k->places.index_type, ASSAY_LAYOUT_PLAIN};
  return true;
}

static assay_status_t make(const assay_sized_layer_t* l, assay_kernel_t** out) {
  gather_places_t* k = NULL;
  ASSAY_TRY(ASSAY_NEW(&k));
  k->base = (assay_kernel_t){.in_place = -1, .enqueue = enqueue, .destroy = destroy};
  k->own = cuda_own_of(l);
  const bool ok = read(l, k);
  assay_status_t st = ok ? load(k) : NULL;
  if (st || !ok) return destroy(&k->base), st;
  *out = &k->base;
  return NULL;
}

const assay_tactic_t cuda_tactic_gather_places = {
    .name = "gather_places",
    .source = "assay",
    .numerics = "data_movement",
    .make = make,
    .rounding = {.compute = ASSAY_FORMAT_FP32,
                 .accumulator = ASSAY_FORMAT_FP32,
                 .function_ulps = 1},
};
