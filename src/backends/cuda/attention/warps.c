// Attention on tensor cores: which layers, with which options.
#include "backends/cuda/attention/warps.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { QUERIES = 16, THREADS = 32, MOST = 128, EXP2_CAPABILITY = 90 };
// Keys of a block: fewer where wide elements of wide heads would leave a multiprocessor room for
// one block only.
enum { KEYS = 64, FEWER_KEYS = 32, FEWER_FROM = 64 };

// Warps of a block: few where there are few queries, so that each multiprocessor has some.
static const struct {
  const char* name;
  int warps;
} shapes[] = {{"4", 4}, {"2", 2}, {"1", 1}};
enum { N_SHAPES = sizeof shapes / sizeof *shapes };

static bool is_all(const attention_layer_t* a, assay_type_t type) {
  return a->q.type == type && a->k.type == type && a->v.type == type && a->y.type == type;
}

static int up_to_16(int64_t n) { return (int)((n + 15) / 16 * 16); }

// What follows from a layer's sizes.
typedef struct form {
  int size, v_size, keys;
  int piece;  // elements of 16 bytes
  int bytes;  // of an element
  bool one_block;
} form_t;

static form_t form_of(const attention_layer_t* a) {
  form_t f = {.size = up_to_16(a->size), .v_size = up_to_16(a->v_size)};
  const bool wide = a->q.type == ASSAY_TYPE_FLOAT;
  f.bytes = wide ? 4 : 2;
  f.piece = 16 / f.bytes;
  f.keys = wide && f.size + f.v_size > FEWER_FROM ? FEWER_KEYS : KEYS;
  f.one_block = a->kv_len <= f.keys;
  return f;
}

// Two blocks of keys and values, in the second of which queries lie at first; or behind those that
// there are, where they stay.
static int shared_bytes(const form_t* f, bool stays, int warps) {
  const int keys = f->size + f->piece, stage = f->keys * (keys + f->v_size + f->piece);
  const int queries = QUERIES * warps * keys;
  if (stays) return f->bytes * ((f->one_block ? 1 : 2) * stage + queries);
  return f->bytes * (stage + (queries > stage ? queries : stage));
}

assay_status_t cuda_attention_warps_read(const assay_sized_layer_t* l, const attention_warps_t* w,
                                         attention_layer_t* out, bool* ok) {
  *ok = false;
  ASSAY_TRY(cuda_attention_read(l, out, ok));
  *ok = *ok && is_all(out, w->type) && out->size <= MOST && out->v_size <= MOST;
  return NULL;
}

// Microseconds: a block of keys takes a warp about as long as its copy, and more warps share that.
static double predict(const cuda_own_t* own, const attention_layer_t* a, double work, int warps) {
  const double blocks = (double)a->heads * ceil((double)a->q_len / (QUERIES * warps));
  const double waves = ceil(blocks / (8.0 / warps * own->properties.multiprocessors));
  return 2 + waves * (1 + ceil((double)a->kv_len / KEYS) * work * (0.5 + 1.0 / warps));
}

assay_status_t cuda_attention_warps_variants(const assay_sized_layer_t* l,
                                             const attention_warps_t* w, assay_variant_t* out,
                                             size_t* out_n) {
  attention_layer_t a;
  bool ok;
  *out_n = 0;
  ASSAY_TRY(cuda_attention_warps_read(l, w, &a, &ok));
  for (int i = 0; ok && i < N_SHAPES; i++) {
    assay_variant_t* v = &out[(*out_n)++];
    *v = (assay_variant_t){.numerics = w->numerics,
                           .predicted = predict(cuda_own_of(l), &a, w->work, shapes[i].warps)};
    snprintf(v->name, sizeof v->name, "%s", shapes[i].name);
  }
  return NULL;
}

static int find_warps(const char* name) {
  for (int i = 0; i < N_SHAPES; i++)
    if (strcmp(shapes[i].name, name) == 0) return shapes[i].warps;
  return 0;
}

// Weights of 16 bits by the multiprocessor's own powers of 2, where their bits are known
// (emu/like/exp2.h). exp2: whether it is such a GPU.
static void add_weights(const attention_layer_t* a, bool exp2, assay_str_t* to) {
  assay_str_printf(to, " -DEXP2=%d -DFOLDED=%d", exp2, exp2 && cuda_attention_folds(a));
}

static void add_options(const attention_layer_t* a, const attention_warps_t* w, const form_t* f,
                        int warps, assay_str_t* to) {
  const bool fast = cuda_attention_in_pieces(a, &a->q, a->size, f->piece) &&
                    cuda_attention_in_pieces(a, &a->k, a->size, f->piece) &&
                    cuda_attention_in_pieces(a, &a->v, a->v_size, f->piece);
  // A thread writes two columns of 16 bits, four of 32.
  const int columns = f->bytes == 4 ? 4 : 2;
  assay_str_printf(
      to,
      " -DT=%s -DSIZE=%d -DV_SIZE=%d -DWHOLE=%d -DFAST=%d -DY_FAST=%d -DKEYS=%d -DONE_BLOCK=%d"
      " -DWARPS=%d -DQ_STAYS=%d%s",
      cuda_type_name(a->q.type), f->size, f->v_size, f->size == a->size && f->v_size == a->v_size,
      fast, cuda_attention_in_pieces(a, &a->y, a->v_size, columns), f->keys, f->one_block, warps,
      w->stays, w->options);
}

assay_status_t cuda_attention_warps_make(const assay_sized_layer_t* l, const attention_warps_t* w,
                                         const assay_variant_t* v, assay_kernel_t** out) {
  attention_layer_t a;
  bool ok;
  assay_str_t options = {0};
  const int warps = find_warps(v->name);
  ASSAY_TRY(cuda_attention_warps_read(l, w, &a, &ok));
  if (!ok || !warps) return NULL;
  const form_t f = form_of(&a);
  const int shared = shared_bytes(&f, w->stays, warps);
  if (shared > cuda_own_of(l)->properties.shared_bytes) return NULL;
  cuda_attention_options(&a, &options);
  add_options(&a, w, &f, warps, &options);
  if (f.bytes == 2)
    add_weights(&a, cuda_own_of(l)->properties.capability == EXP2_CAPABILITY, &options);
  const cuda_source_t source = {.file = w->file,
                                .kernel = w->kernel,
                                .options = assay_str_get(&options),
                                .shared_bytes = shared};
  assay_status_t st = assay_str_status(&options);
  if (!st) st = cuda_attention_kernel(l, &a, &source, QUERIES * warps, THREADS * warps, out);
  assay_str_deinit(&options);
  return st;
}
