// Attention of 16-bit floats by wgmma, of which sm_90 alone has it
// (kernels/attention/attention_wgmma.cu): the bits of attention_mma.c.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "backends/cuda/attention/places.h"
#include "backends/cuda/attention/warps.h"

enum { CAPABILITY = 90, PIECE = 8, BYTES = 2 };
enum { KEYS = 64, QUERIES = 64, THREADS = 128 };  // of a group
enum { LINE = 64, COLUMNS = 32 };                 // terms of a line; columns are multiples of
enum { MIN_QUERIES = 32 };                        // fewer leave most of a group with nothing to do
enum { ALIGNED = 1024 };

// Groups of a block; how many of them a multiprocessor has registers for.
typedef struct shape {
  const char* name;
  int groups, resident;
  bool together;  // as the kernel says it
} shape_t;
static const shape_t shapes[] = {{"64", 1, 4, true}, {"128", 2, 4, true}, {"64x5", 1, 5, false}};
enum { N_SHAPES = sizeof shapes / sizeof *shapes };

// What follows from a layer.
typedef struct form {
  int size, v_size;
  bool whole, one_block;
  int read_masks;  // those that are not copied into shared memory: of each thread's own queries
} form_t;

static int up_to(int64_t n, int step) { return (int)((n + step - 1) / step * step); }

// As the kernel has it (IS_COPIED).
static int count_read_masks(const attention_layer_t* a) {
  attention_args_t ignored = {0};
  const attention_places_t p = cuda_attention_places(a, &ignored);
  int n = 0;
  for (int i = 0; i < a->n_masks; i++)
    n += a->masks[i].kind != ASSAY_ATTENTION_ADDED ||
         !(p.along_keys & ~p.along_queries & p.paired & 1u << i);
  return n;
}

static form_t form_of(const attention_layer_t* a) {
  form_t f = {.size = up_to(a->size, 16),
              .v_size = up_to(a->v_size, COLUMNS),
              .one_block = a->kv_len <= KEYS,
              .read_masks = count_read_masks(a)};
  f.whole = f.size == a->size && f.v_size == a->v_size;
  return f;
}

// Groups of a multiprocessor: masks of one's own queries and wide heads take registers.
static int resident_groups(const attention_layer_t* a, const form_t* f, const shape_t* s) {
  if (a->cap > 0 || (f->read_masks && f->v_size > 64)) return 2;
  if (f->read_masks || f->size + f->v_size > 128) return s->groups == 1 ? 3 : 2;
  return s->resident;
}

static int shared_bytes(const attention_layer_t* a, const form_t* f, const shape_t* s) {
  const int blocks = f->one_block ? 1 : 2, row = up_to(f->size, LINE);
  return BYTES * (s->groups * QUERIES * row + blocks * KEYS * (row + f->v_size)) +
         blocks * a->n_masks * KEYS * (int)sizeof(float) + ALIGNED;
}

// A shape of fewer registers is for layers that do with them.
static bool fits(const attention_layer_t* a, const form_t* f, const shape_t* s) {
  return a->q_len > (s->groups - 1) * QUERIES &&
         (s->together || resident_groups(a, f, s) == s->resident);
}

// *ok: whether a layer is one for it, `type` of all operands.
static assay_status_t read(const assay_sized_layer_t* l, assay_type_t type, attention_layer_t* out,
                           bool* ok) {
  const attention_warps_t w = {.type = type};
  *ok = false;
  if (cuda_own_of(l)->properties.capability != CAPABILITY) return NULL;
  ASSAY_TRY(cuda_attention_warps_read(l, &w, out, ok));
  *ok = *ok && out->q_len > MIN_QUERIES &&
        cuda_attention_in_pieces(out, &out->q, out->size, PIECE) &&
        cuda_attention_in_pieces(out, &out->k, out->size, PIECE) &&
        cuda_attention_in_pieces(out, &out->v, out->v_size, PIECE) && count_read_masks(out) <= 1;
  return NULL;
}

// Microseconds: groups of a multiprocessor take turns at a block of keys, 0.2 each by what they
// issue, and one alone waits for its own chain, 0.6.
static double predict(const cuda_own_t* own, const attention_layer_t* a, const shape_t* s) {
  const form_t f = form_of(a);
  const int resident = resident_groups(a, &f, s) / s->groups;
  const double blocks = (double)a->heads * ceil((double)a->q_len / (QUERIES * s->groups));
  const double each = ceil(blocks / own->properties.multiprocessors);  // of a multiprocessor
  const double step = fmax(0.6, 0.2 * fmin(each, resident) * s->groups);
  const double wide = fmax(f.size + f.v_size, 64) / 128.0;
  return 2 + ceil(each / resident) * (1 + ceil((double)a->kv_len / KEYS) * step * wide);
}

static assay_status_t variants(const assay_sized_layer_t* l, assay_type_t type,
                               assay_variant_t* out, size_t* out_n) {
  attention_layer_t a;
  bool ok;
  *out_n = 0;
  ASSAY_TRY(read(l, type, &a, &ok));
  if (!ok) return NULL;
  const form_t f = form_of(&a);
  for (int i = 0; i < N_SHAPES; i++) {
    if (!fits(&a, &f, &shapes[i])) continue;
    assay_variant_t* v = &out[(*out_n)++];
    *v = (assay_variant_t){.numerics = "tensor",
                           .predicted = predict(cuda_own_of(l), &a, &shapes[i])};
    snprintf(v->name, sizeof v->name, "%s", shapes[i].name);
  }
  return NULL;
}

static const shape_t* find_shape(const char* name) {
  for (int i = 0; i < N_SHAPES; i++)
    if (strcmp(shapes[i].name, name) == 0) return &shapes[i];
  return NULL;
}

static assay_status_t make(const assay_sized_layer_t* l, assay_type_t type, const char* name,
                           assay_kernel_t** out) {
  attention_layer_t a;
  bool ok;
  assay_str_t options = {0};
  const shape_t* s = find_shape(name);
  ASSAY_TRY(read(l, type, &a, &ok));
  if (!ok || !s) return NULL;
  const form_t f = form_of(&a);
  const int shared = shared_bytes(&a, &f, s);
  if (!fits(&a, &f, s) || shared > cuda_own_of(l)->properties.shared_bytes) return NULL;
  cuda_attention_options(&a, &options);
  assay_str_printf(&options,
                   " -DT=%s -DSIZE=%d -DV_SIZE=%d -DWHOLE=%d -DY_FAST=%d -DKEYS=%d -DONE_BLOCK=%d"
                   " -DEXP2=1 -DFOLDED=%d -DGROUPS=%d -DBLOCKS_OF=%d -DTOGETHER=%d",
                   cuda_type_name(type), f.size, f.v_size, f.whole,
                   cuda_attention_in_pieces(&a, &a.y, a.v_size, 2), KEYS, f.one_block,
                   cuda_attention_folds(&a), s->groups, resident_groups(&a, &f, s) / s->groups,
                   s->together);
  const cuda_source_t source = {.file = "attention_wgmma.cu",
                                .kernel = "attention_wgmma",
                                .options = assay_str_get(&options),
                                .shared_bytes = shared};
  assay_status_t st = assay_str_status(&options);
  if (!st)
    st = cuda_attention_kernel(l, &a, &source, QUERIES * s->groups, THREADS * s->groups, out);
  assay_str_deinit(&options);
  return st;
}

static assay_status_t variants_f16(const assay_sized_layer_t* l, assay_variant_t* out, size_t* n) {
  return variants(l, ASSAY_TYPE_FLOAT16, out, n);
}

static assay_status_t variants_bf16(const assay_sized_layer_t* l, assay_variant_t* out, size_t* n) {
  return variants(l, ASSAY_TYPE_BFLOAT16, out, n);
}

static assay_status_t make_f16(const assay_sized_layer_t* l, const assay_variant_t* v,
                               assay_kernel_t** out) {
  return make(l, ASSAY_TYPE_FLOAT16, v->name, out);
}

static assay_status_t make_bf16(const assay_sized_layer_t* l, const assay_variant_t* v,
                                assay_kernel_t** out) {
  return make(l, ASSAY_TYPE_BFLOAT16, v->name, out);
}

const assay_tactic_t cuda_tactic_attention_wgmma_f16 = {
    .name = "attention_wgmma_f16",
    .source = "assay",
    .variants = variants_f16,
    .make_variant = make_f16,
    .rounding =
        CUDA_ATTENTION_TENSOR_ROUNDING(ASSAY_FORMAT_FP16, CUDA_ATTENTION_EXP2_WEIGHT_ERROR)};
const assay_tactic_t cuda_tactic_attention_wgmma_bf16 = {
    .name = "attention_wgmma_bf16",
    .source = "assay",
    .variants = variants_bf16,
    .make_variant = make_bf16,
    .rounding =
        CUDA_ATTENTION_TENSOR_ROUNDING(ASSAY_FORMAT_BF16, CUDA_ATTENTION_EXP2_WEIGHT_ERROR)};
