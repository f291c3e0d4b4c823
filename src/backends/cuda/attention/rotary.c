// RotaryEmbedding of ONNX and of com.microsoft (kernels/attention/rotary.cu).
#include <string.h>

#include "backends/cuda/kernels/rotary_args.h"
#include "backends/cuda/tactic.h"
#include "backends/cuda/watch.h"
#include "base/alloc.h"
#include "ops/op.h"

enum { THREADS = 256 };

typedef enum positions { IN_ORDER = 0, OF_EACH, OF_FIRST } positions_t;

typedef struct rotary {
  assay_kernel_t base;
  const cuda_own_t* own;
  const assay_node_t* node;
  int x, cosines, sines, ids;  // inputs; ids -1: none
  positions_t positions;
  bool known;  // the positions, which are in the caches
  rotary_args_t args;
  cuda_kernel_t function;
  cuda_watch_t watch;
} rotary_t;

static int64_t n_ids(const rotary_t* k) {
  return k->positions == OF_EACH ? k->args.batch * k->args.length : 1;
}

static assay_status_t check(const rotary_t* k, const int64_t* ids) {
  const rotary_args_t* a = &k->args;
  const int64_t more = k->positions == OF_FIRST ? a->length - 1 : 0;
  for (int64_t i = 0; i < n_ids(k); i++)
    if (ids[i] < 0 || ids[i] >= a->positions - more)
      return ASSAY_NODE_ERROR(k->node, ASSAY_INVALID_ARGUMENT,
                              "position %lld is %lld; the caches have positions [0, %lld)",
                              (long long)i, (long long)(ids[i] < 0 ? ids[i] : ids[i] + more),
                              (long long)a->positions);
  return NULL;
}

static assay_status_t look(const void* user, const void* ids) { return check(user, ids); }

static assay_status_t enqueue(assay_kernel_t* base, assay_queue_t* q, const assay_device_ptr_t* in,
                              const assay_device_ptr_t* out, assay_device_ptr_t scratch) {
  rotary_t* k = (rotary_t*)base;
  rotary_args_t args = k->args;
  const bool looks = k->positions != IN_ORDER && !k->known;
  const cuda_grid_t grid = {
      .blocks = cuda_blocks_for(k->own, args.n, THREADS), .threads = THREADS, .dependent = !looks};
  (void)scratch;
  args.x = in[k->x];
  args.y = out[0];
  args.cosines = in[k->cosines];
  args.sines = in[k->sines];
  if (k->ids >= 0) args.ids = in[k->ids];
  if (looks)
    ASSAY_TRY(cuda_watch_enqueue(&k->watch, q, args.ids, (size_t)n_ids(k) * sizeof(int64_t)));
  return cuda_queue_launch(q, k->function, &grid, &args);
}

static void destroy(assay_kernel_t* base) {
  cuda_watch_deinit(&((rotary_t*)base)->watch);
  assay_free(base);
}

// ---- reading ------------------------------------------------------------------------------------

// [batch, heads, length, size], or [batch, length, heads size]; size 0: not known by the number of
// heads.
static bool read_heads(const assay_operand_t* x, int64_t heads, int64_t size, rotary_args_t* a) {
  const int64_t* d = x->dims;
  if (x->rank == 4) {
    *a = (rotary_args_t){.batch = d[0], .heads = d[1], .length = d[2], .size = d[3]};
    a->batch_step = d[1] * d[2] * d[3];
    a->head_step = d[2] * d[3];
    a->row_step = d[3];
    return true;
  }
  if (x->rank != 3) return false;
  if (heads > 0) size = d[2] % heads ? 0 : d[2] / heads;
  if (size <= 0 || d[2] % size) return false;
  *a = (rotary_args_t){.batch = d[0], .heads = d[2] / size, .length = d[1], .size = size};
  a->batch_step = d[1] * d[2];
  a->head_step = size;
  a->row_step = d[2];
  return true;
}

// Caches [positions, half], or without positions [batch, length, half].
static bool read_caches(const assay_sized_layer_t* l, rotary_t* k) {
  const assay_operand_t *c = &l->in[k->cosines], *s = &l->in[k->sines];
  rotary_args_t* a = &k->args;
  const int rank = k->positions == IN_ORDER ? 3 : 2;
  if (c->rank != rank || s->rank != rank || c->type != s->type || !cuda_type_name(c->type) ||
      memcmp(c->dims, s->dims, (size_t)rank * sizeof *c->dims) != 0 || c->dims[rank - 1] != a->half)
    return false;
  a->positions = c->dims[0];
  return rank == 2 || (c->dims[0] == a->batch && c->dims[1] == a->length);
}

static bool read_positions(const assay_sized_layer_t* l, bool of_microsoft, rotary_t* k) {
  const assay_operand_t* o = &l->in[k->ids];
  const rotary_args_t* a = &k->args;
  k->positions = of_microsoft && o->rank == 1 ? OF_FIRST : OF_EACH;
  if (o->type != ASSAY_TYPE_INT64) return false;
  return k->positions == OF_FIRST
             ? o->dims[0] == 1
             : o->rank == 2 && o->dims[0] == a->batch && o->dims[1] == a->length;
}

static int input_of(const assay_sized_layer_t* l, const assay_node_t* n, size_t i) {
  return i < n->n_inputs && n->inputs[i] ? assay_sized_input_index(l, n->inputs[i]) : -1;
}

// What does not fit together is for the emulated engine, which says so.
static bool read(const assay_sized_layer_t* l, rotary_t* k) {
  const assay_node_t* n = k->node;
  const bool ms = strcmp(n->domain, "com.microsoft") == 0;
  const bool has_ids = ms || (n->n_inputs > 3 && n->inputs[3]);
  k->x = input_of(l, n, 0);
  k->cosines = input_of(l, n, ms ? 2 : 1);
  k->sines = input_of(l, n, ms ? 3 : 2);
  k->ids = has_ids ? input_of(l, n, ms ? 1 : 3) : -1;
  if (k->x < 0 || k->cosines < 0 || k->sines < 0 || (has_ids && k->ids < 0)) return false;
  const assay_operand_t *x = &l->in[k->x], *c = &l->in[k->cosines];
  if (!cuda_type_name(x->type) || !cuda_type_name(l->out[0].type) || !c->rank) return false;
  const int64_t cached = c->dims[c->rank - 1];
  if (!read_heads(x, assay_attr_i64(n, "num_heads", 0), ms ? 2 * cached : 0, &k->args))
    return false;
  const int64_t rotated = assay_attr_i64(n, "rotary_embedding_dim", 0);
  k->args.half = ms && !rotated ? cached : (rotated ? rotated : k->args.size) / 2;
  if (rotated < 0 || rotated % 2 || (!ms && !rotated && k->args.size % 2) || k->args.half < 1 ||
      2 * k->args.half > k->args.size)
    return false;
  if (has_ids && !read_positions(l, ms, k)) return false;
  k->args.n = k->args.batch * k->args.length * k->args.heads * (k->args.size - k->args.half);
  return read_caches(l, k);
}

// Constants are looked at once; where one of them is out of the caches, the run says so.
static assay_status_t check_constants(const assay_operand_t* o, rotary_t* k) {
  assay_tensor_t* wide = NULL;
  if (!o->constant) return NULL;
  ASSAY_TRY(assay_tensor_widen((assay_tensor_t*)(uintptr_t)o->constant, &wide));
  assay_status_t st = wide->store == ASSAY_STORE_I64 ? check(k, assay_i64(wide)) : NULL;
  k->known = !st && wide->store == ASSAY_STORE_I64;
  assay_status_free(st);
  assay_tensor_release(wide);
  return NULL;
}

// ---- entry --------------------------------------------------------------------------------------

static assay_status_t load(const assay_sized_layer_t* l, rotary_t* k) {
  assay_str_t options = {0};
  assay_str_printf(&options, "-DT=%s -DC=%s -DTO=%s -DINTERLEAVED=%d -DPOSITIONS=%d",
                   cuda_type_name(l->in[k->x].type), cuda_type_name(l->in[k->cosines].type),
                   cuda_type_name(l->out[0].type), assay_attr_i64(k->node, "interleaved", 0) != 0,
                   (int)k->positions);
  const cuda_source_t source = {
      .file = "rotary.cu", .kernel = "rotary", .options = assay_str_get(&options)};
  assay_status_t st = assay_str_status(&options);
  if (!st) st = cuda_function_get(k->own->functions, &source, &k->function);
  assay_str_deinit(&options);
  return st;
}

static assay_status_t make(const assay_sized_layer_t* l, assay_kernel_t** out) {
  const assay_node_t* n = l->layer->nodes[0];
  rotary_t* k = NULL;
  if (strcmp(n->op_type, "RotaryEmbedding") != 0 || l->layer->n_nodes != 1 || l->n_out != 1 ||
      !l->out[0].value || !l->out[0].size ||
      (*n->domain && strcmp(n->domain, "com.microsoft") != 0))
    return NULL;
  ASSAY_TRY(ASSAY_NEW(&k));
  k->base = (assay_kernel_t){.in_place = -1, .enqueue = enqueue, .destroy = destroy};
  k->own = cuda_own_of(l);
  k->node = n;
  k->watch = (cuda_watch_t){.look = look, .user = k};
  if (!read(l, k)) return destroy(&k->base), NULL;
  for (size_t i = 0; i < l->n_in; i++)
    k->base.in[i] = (assay_storage_t){l->in[i].type, ASSAY_LAYOUT_PLAIN};
  k->base.out[0] = (assay_storage_t){l->out[0].type, ASSAY_LAYOUT_PLAIN};
  assay_status_t st = k->ids >= 0 ? check_constants(&l->in[k->ids], k) : NULL;
  if (!st) st = load(l, k);
  if (st) return destroy(&k->base), st;
  *out = &k->base;
  return NULL;
}

// Two products and their sum.
const assay_tactic_t cuda_tactic_rotary = {
    .name = "rotary",
    .source = "assay",
    .make = make,
    .rounding = {.compute = ASSAY_FORMAT_FP32,
                 .accumulator = ASSAY_FORMAT_FP32,
                 .function_ulps = 1},
};
