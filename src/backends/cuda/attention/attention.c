// Kernels of attention.
#include "backends/cuda/attention/attention.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "backends/cuda/attention/places.h"
#include "base/alloc.h"

_Static_assert((int)ATTENTION_ARGS_RANK == (int)ASSAY_ATTENTION_RANK, "as many dimensions");
_Static_assert((int)ATTENTION_ARGS_MASKS == (int)ASSAY_ATTENTION_MASKS, "as many masks");

enum { MIN_QUERIES = 16 };       // of a block
enum { MAX_FOLDED = 64 };        // powers of 2 on either side of 1 that a folded scale may be
enum { NEAR_BYTES = 24 << 20 };  // half of an H200's second-level cache
static const double LOG2_E = 1.4426950408889634;
// Powers of 2 that weights may be before they refer to another score: as many times as large are
// sums of values, which must not pass float32's range for that.
static const double GROWTH = 8;

typedef struct attention_kernel {
  assay_kernel_t base;
  attention_args_t args;  // without addresses
  int q, k, v, masks[ATTENTION_ARGS_MASKS], n_masks;
  cuda_kernel_t kernel;
  cuda_grid_t grid;
} attention_kernel_t;

static assay_status_t enqueue(assay_kernel_t* base, assay_queue_t* q, const assay_device_ptr_t* in,
                              const assay_device_ptr_t* out, assay_device_ptr_t scratch) {
  const attention_kernel_t* k = (const attention_kernel_t*)base;
  attention_args_t args = k->args;
  (void)scratch;
  args.q.at = in[k->q];
  args.k.at = in[k->k];
  args.v.at = in[k->v];
  args.y.at = out[0];
  for (int i = 0; i < k->n_masks; i++) args.masks[i].at = in[k->masks[i]];
  return cuda_queue_launch(q, k->kernel, &k->grid, &args);
}

static void destroy(assay_kernel_t* k) { assay_free(k); }

assay_status_t cuda_attention_read(const assay_sized_layer_t* l, attention_layer_t* out, bool* ok) {
  ASSAY_TRY(attention_read(l, out, ok));
  *ok = *ok && out->q_len <= INT32_MAX / 2 && out->kv_len <= INT32_MAX / 2 &&
        out->size <= INT32_MAX / 2 && out->v_size <= INT32_MAX / 2 &&
        out->heads <= INT32_MAX / (out->q_len / MIN_QUERIES + 1);
  for (int i = 0; *ok && i < out->n_masks; i++)
    *ok = out->masks[i].key == 0 || out->masks[i].key == 1;
  return *ok ? cuda_attention_find_window(l, out) : NULL;
}

static int64_t all_distances(const attention_layer_t* a, const attention_view_t* v) {
  int64_t all = v->at | v->row;
  for (int i = 0; i < a->n_batch; i++) all |= v->batch[i];
  return all;
}

bool cuda_attention_in_pieces(const attention_layer_t* a, const attention_view_t* v, int64_t size,
                              int64_t piece) {
  return v->column == 1 && (all_distances(a, v) | size) % piece == 0;
}

// As kernels count kinds (kernels/attention/attention.h).
static unsigned kinds(const attention_layer_t* a) {
  unsigned all = 0;
  for (int i = 0; i < a->n_masks; i++) {
    const assay_attention_mask_kind_t kind = a->masks[i].kind;
    all |= (kind == ASSAY_ATTENTION_ADDED ? 0u : kind == ASSAY_ATTENTION_KEEPS ? 1u : 2u) << 4 * i;
  }
  return all;
}

void cuda_attention_options(const attention_layer_t* a, assay_str_t* out) {
  attention_args_t ignored = {0};
  const attention_places_t p = cuda_attention_places(a, &ignored);
  assay_str_printf(out,
                   "-DBATCH=%d -DINDEX=%s -DCAP=%d -DWINDOWED=%d -DGROUPED=%d -DMASKS=%d "
                   "-DKINDS=0x%x -DALONG_KEYS=%u -DALONG_QUERIES=%u -DPAIRED=%u -DWALKED=%d",
                   p.n_batch, p.wide ? "int64_t" : "int32_t", a->cap > 0, a->windowed, p.grouped,
                   a->n_masks, kinds(a), p.along_keys, p.along_queries, p.paired, p.walked);
}

static attention_side_t side(const attention_view_t* v) {
  return (attention_side_t){.start = v->at, .row = v->row, .column = v->column};
}

bool cuda_attention_folds(const attention_layer_t* a) {
  int power;
  return a->n_masks == 0 && !(a->cap > 0) && frexpf(a->scale, &power) == 0.5F &&
         abs(power) <= MAX_FOLDED;
}

// Whether later queries see more keys, as causal ones do, and the keys and values of all heads stay
// near (in the second-level cache) while blocks of all of them run.
static bool sees_before(const attention_layer_t* a) {
  const double bytes = (double)assay_kernel_float_bytes(a->k.type) * (double)a->heads *
                       (double)a->kv_len * (double)(a->size + a->v_size);
  return a->windowed && a->left >= a->kv_len && a->right < a->kv_len && bytes <= NEAR_BYTES;
}

// queries: of a block.
static attention_args_t arguments(const attention_layer_t* a, int queries) {
  attention_args_t to = {.q = side(&a->q),
                         .k = side(&a->k),
                         .v = side(&a->v),
                         .y = side(&a->y),
                         .tiles = divisor_of((uint32_t)((a->q_len + queries - 1) / queries)),
                         .heads = divisor_of(a->heads > 0 ? (uint32_t)a->heads : 1),
                         .q_len = (int32_t)a->q_len,
                         .kv_len = (int32_t)a->kv_len,
                         .size = (int32_t)a->size,
                         .v_size = (int32_t)a->v_size,
                         .scale = a->scale,
                         .cap = a->cap,
                         .left = (int32_t)a->left,
                         .right = (int32_t)a->right,
                         .zero_unseen = a->zero_unseen,
                         .last_first = sees_before(a)};
  const double scale = cuda_attention_folds(a) ? (double)a->scale : 1;
  to.exponent = (float)(LOG2_E * scale);
  to.growth = a->v.type == ASSAY_TYPE_FLOAT16 ? (float)(GROWTH / LOG2_E / scale) : 0;
  (void)cuda_attention_places(a, &to);
  for (int i = 0; i < a->n_masks; i++) to.masks[i].fill = a->masks[i].fill;
  // Reaches without end, that nothing overflows with.
  if (to.left > INT32_MAX / 2) to.left = INT32_MAX / 2;
  if (to.right > INT32_MAX / 2) to.right = INT32_MAX / 2;
  return to;
}

assay_status_t cuda_attention_kernel(const assay_sized_layer_t* l, const attention_layer_t* a,
                                     const cuda_source_t* source, int queries, int threads,
                                     assay_kernel_t** out) {
  attention_kernel_t* k = NULL;
  ASSAY_TRY(ASSAY_NEW(&k));
  k->base =
      (assay_kernel_t){.in_place = -1, .rooms = a->rooms, .enqueue = enqueue, .destroy = destroy};
  memcpy(k->base.in, a->in, sizeof k->base.in);
  k->base.out[0] = a->out;
  k->args = arguments(a, queries);
  k->q = a->q.index;
  k->k = a->k.index;
  k->v = a->v.index;
  k->n_masks = a->n_masks;
  for (int i = 0; i < a->n_masks; i++) k->masks[i] = a->masks[i].index;
  k->grid = (cuda_grid_t){.blocks = a->heads * ((a->q_len + queries - 1) / queries),
                          .threads = threads,
                          .dependent = true,
                          .shared_bytes = source->shared_bytes};
  assay_status_t st = cuda_function_get(cuda_own_of(l)->functions, source, &k->kernel);
  if (st) return destroy(&k->base), st;
  *out = &k->base;
  return NULL;
}
