// Gather: rows of a table by their numbers. Numbers that are not known before the run are fetched
// and looked at on the host as well, in the queue's order: where one is out of the table, the run
// fails as on the CPU.
#include "backends/layers/gather.h"

#include "backends/cuda/kernels/gather_args.h"
#include "backends/cuda/tactic.h"
#include "backends/cuda/watch.h"
#include "base/alloc.h"

enum { THREADS = 256, WORD_BYTES = 16 };

typedef struct gather {
  assay_kernel_t base;
  const cuda_own_t* own;
  layer_gather_t layer;
  bool known;  // the indices, which are there
  int64_t word;
  cuda_kernel_t function;
  cuda_watch_t watch;
} gather_t;

static int64_t words_of(const gather_t* k) {
  return k->layer.outer * k->layer.n * (int64_t)k->layer.slice / k->word;
}

static assay_status_t look(const void* user, const void* indices) {
  return layer_gather_check(&((const gather_t*)user)->layer, indices);
}

static assay_status_t enqueue(assay_kernel_t* base, assay_queue_t* q, const assay_device_ptr_t* in,
                              const assay_device_ptr_t* out, assay_device_ptr_t scratch) {
  gather_t* k = (gather_t*)base;
  const layer_gather_t* g = &k->layer;
  const int64_t words = words_of(k);
  const gather_args_t args = {.data = in[g->data],
                              .indices = in[g->indices],
                              .out = out[0],
                              .words = words,
                              .n = g->n,
                              .size = g->size,
                              .slice = (int64_t)g->slice / k->word};
  const cuda_grid_t grid = {
      .blocks = cuda_blocks_for(k->own, words, THREADS), .threads = THREADS, .dependent = k->known};
  (void)scratch;
  if (!k->known && g->n) {
    const size_t bytes = (size_t)g->n * (g->index_type == ASSAY_TYPE_INT32 ? 4 : 8);
    ASSAY_TRY(cuda_watch_enqueue(&k->watch, q, in[g->indices], bytes));
  }
  return words ? cuda_queue_launch(q, k->function, &grid, &args) : NULL;
}

static void destroy(assay_kernel_t* base) {
  gather_t* k = (gather_t*)base;
  cuda_watch_deinit(&k->watch);
  assay_free(k);
}

// ---- entry --------------------------------------------------------------------------------------

static assay_status_t load(gather_t* k) {
  const layer_gather_t* g = &k->layer;
  assay_str_t options = {0};
  for (k->word = WORD_BYTES; (int64_t)g->slice % k->word;) k->word /= 2;
  assay_str_printf(&options, "-DBITS=%d -DINDEX=%s", (int)k->word * 8,
                   g->index_type == ASSAY_TYPE_INT32 ? "int32_t" : "int64_t");
  const cuda_source_t source = {
      .file = "gather.cu", .kernel = "gather", .options = assay_str_get(&options)};
  assay_status_t st = assay_str_status(&options);
  if (!st && words_of(k)) st = cuda_function_get(k->own->functions, &source, &k->function);
  assay_str_deinit(&options);
  return st;
}

// Constants are looked at once; where one of them is out of the table, the run says so.
static bool are_there(const assay_operand_t* o, const layer_gather_t* g) {
  assay_tensor_t* wide = NULL;
  if (!o->constant) return false;
  assay_status_t st = assay_tensor_widen((assay_tensor_t*)(uintptr_t)o->constant, &wide);
  bool ok = !st && wide->store == ASSAY_STORE_I64;
  for (int64_t i = 0; ok && i < g->n; i++)
    ok = assay_i64(wide)[i] >= -g->size && assay_i64(wide)[i] < g->size;
  assay_tensor_release(wide);
  assay_status_free(st);
  return ok;
}

static assay_status_t read(const assay_sized_layer_t* l, gather_t* k, bool* ok) {
  *ok = layer_gather_read(l, &k->base, &k->layer);
  if (!*ok) return NULL;
  k->own = cuda_own_of(l);
  k->known = are_there(&l->in[k->layer.indices], &k->layer);
  return load(k);
}

static assay_status_t make(const assay_sized_layer_t* l, assay_kernel_t** out) {
  gather_t* k = NULL;
  bool ok = false;
  ASSAY_TRY(ASSAY_NEW(&k));
  k->base = (assay_kernel_t){.in_place = -1, .enqueue = enqueue, .destroy = destroy};
  k->watch = (cuda_watch_t){.look = look, .user = k};
  assay_status_t st = read(l, k, &ok);
  if (st || !ok) return destroy(&k->base), st;
  *out = &k->base;
  return NULL;
}

static assay_status_t resize(const assay_sized_layer_t* l, assay_kernel_t* k, bool* out_ok) {
  return read(l, (gather_t*)k, out_ok);
}

const assay_tactic_t cuda_tactic_gather = {
    .name = "gather",
    .source = "assay",
    .numerics = "data_movement",
    .make = make,
    .resize = resize,
    .rounding = {.compute = ASSAY_FORMAT_FP32,
                 .accumulator = ASSAY_FORMAT_FP32,
                 .function_ulps = 1},
};
