// Attention in float32: layers of fp32, and all that others do not take. Several queries a thread
// (kernels/attention/attention_fma.cu), and of heads that are too wide for that, one query by
// several threads (kernels/attention/attention_wide.cu).
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "backends/cuda/attention/attention.h"

enum { KEYS = 64, THREADS = 128, ACROSS = 16, PIECE = 4 };
// What a thread has room for: sums in registers.
enum { MAX_SUMS = 64 };

// Queries of a block and of a thread: few where there are few heads. The bits are the same.
typedef struct shape {
  const char* name;
  int queries, rows;
} shape_t;
static const shape_t shapes[] = {{"64", 64, 8}, {"32", 32, 4}, {"16", 16, 2}};
enum { N_SHAPES = sizeof shapes / sizeof *shapes };

// Queries, keys and values are rounded to tf32, weights not.
static const assay_rounding_t tf32_rounding = {.compute = ASSAY_FORMAT_FP32,
                                               .accumulator = ASSAY_FORMAT_FP32,
                                               .fma = true,
                                               .by_definition = true,
                                               .flushes = true,
                                               .function_ulps = 4,
                                               .operands = ASSAY_FORMAT_TF32};

static bool is_tf32(const assay_sized_layer_t* l) { return l->layer->format == ASSAY_FORMAT_TF32; }

// ---- of several queries a thread ----------------------------------------------------------------

// Columns of queries and keys; those of values that a thread has side by side, and so many pieces
// of them.
typedef struct form {
  int64_t size;
  int width;
  int64_t parts;
} form_t;

static form_t form_of(const attention_layer_t* a) {
  form_t f = {.size = (a->size + PIECE - 1) / PIECE * PIECE,
              .width = a->v_size <= ACROSS       ? 1
                       : a->v_size <= 2 * ACROSS ? 2
                                                 : 4};
  f.parts = (a->v_size + f.width * ACROSS - 1) / (f.width * ACROSS);
  return f;
}

// Queries and keys, values, weights.
static int64_t shared_bytes(const form_t* f, const shape_t* s) {
  const int64_t step = (f->size / PIECE | 1) * PIECE, v_step = ACROSS * f->width * f->parts;
  return 4 * ((s->queries + KEYS) * step + KEYS * v_step + s->queries * (KEYS + PIECE));
}

static bool fits(const cuda_own_t* own, const form_t* f, const shape_t* s) {
  return s->rows * f->width * f->parts <= MAX_SUMS &&
         shared_bytes(f, s) <= own->properties.shared_bytes;
}

// Microseconds: blocks of a multiprocessor share its multiply-adds, and one alone leaves it waiting
// for half of the time where it has few queries.
static double predict(const cuda_own_t* own, const attention_layer_t* a, const shape_t* s) {
  const double blocks = (double)a->heads * ceil((double)a->q_len / s->queries);
  const double steps = ceil((double)a->kv_len / KEYS) * (double)(a->size + a->v_size) / 128;
  const double all = ceil(blocks / own->properties.multiprocessors) * (0.25 + 0.38 * s->rows);
  return 2 + steps * fmax(all, 0.7 + 0.42 * s->rows);
}

static bool is_copied(const attention_layer_t* a, const attention_view_t* v, int64_t size) {
  return v->type == ASSAY_TYPE_FLOAT && cuda_attention_in_pieces(a, v, size, PIECE);
}

static void add_form(const assay_sized_layer_t* l, const attention_layer_t* a, const form_t* f,
                     const shape_t* s, assay_str_t* to) {
  const bool fast = !is_tf32(l) && is_copied(a, &a->q, a->size) && is_copied(a, &a->k, a->size) &&
                    is_copied(a, &a->v, a->v_size);
  assay_str_printf(to, " -DSIZE=%d -DWIDTH=%d -DPARTS=%d -DROWS=%d -DFAST=%d -DY_FAST=%d",
                   (int)f->size, f->width, (int)f->parts, s->rows, fast,
                   cuda_attention_in_pieces(a, &a->y, a->v_size, f->width));
}

// ---- of wide heads ------------------------------------------------------------------------------

enum { WIDE_QUERIES = 16, FEW_KEYS = 16 };
#define WIDE "wide"

static int64_t wide_shared_bytes(const attention_layer_t* a, int keys) {
  const int64_t wide = a->size > a->v_size ? a->size : a->v_size;
  return 4 * (WIDE_QUERIES * (a->size + a->v_size + keys) + keys * (wide + 1));
}

static int wide_keys(const cuda_own_t* own, const attention_layer_t* a) {
  return wide_shared_bytes(a, KEYS) <= own->properties.shared_bytes ? KEYS : FEW_KEYS;
}

static bool wide_fits(const cuda_own_t* own, const attention_layer_t* a) {
  return wide_shared_bytes(a, wide_keys(own, a)) <= own->properties.shared_bytes;
}

// ---- entry --------------------------------------------------------------------------------------

static assay_status_t variants(const assay_sized_layer_t* l, assay_variant_t* out, size_t* n) {
  const cuda_own_t* own = cuda_own_of(l);
  attention_layer_t a;
  bool ok = false;
  *n = 0;
  ASSAY_TRY(cuda_attention_read(l, &a, &ok));
  if (!ok) return NULL;
  const form_t f = form_of(&a);
  for (int i = 0; i < N_SHAPES; i++) {
    if (!fits(own, &f, &shapes[i])) continue;
    assay_variant_t* v = &out[(*n)++];
    *v = (assay_variant_t){.numerics = "fma", .predicted = predict(own, &a, &shapes[i])};
    snprintf(v->name, sizeof v->name, "%s", shapes[i].name);
  }
  if (!*n && wide_fits(own, &a))
    out[(*n)++] = (assay_variant_t){.name = WIDE, .numerics = WIDE, .predicted = (double)NAN};
  return NULL;
}

static const shape_t* find_shape(const char* name) {
  for (int i = 0; i < N_SHAPES; i++)
    if (strcmp(shapes[i].name, name) == 0) return &shapes[i];
  return NULL;
}

// shape NULL: of wide heads.
static assay_status_t make_of(const assay_sized_layer_t* l, const attention_layer_t* a,
                              const shape_t* shape, assay_kernel_t** out) {
  const cuda_own_t* own = cuda_own_of(l);
  const form_t f = form_of(a);
  const int keys = wide_keys(own, a);
  assay_str_t options = {0};
  cuda_attention_options(a, &options);
  assay_str_printf(&options, " -DQ=%s -DK=%s -DV=%s -DY=%s -DTF32=%d", cuda_type_name(a->q.type),
                   cuda_type_name(a->k.type), cuda_type_name(a->v.type), cuda_type_name(a->y.type),
                   is_tf32(l));
  if (shape)
    add_form(l, a, &f, shape, &options);
  else
    assay_str_printf(&options, " -DKEYS=%d", keys);
  const cuda_source_t source = {
      .file = shape ? "attention_fma.cu" : "attention_wide.cu",
      .kernel = shape ? "attention_fma" : "attention_wide",
      .options = assay_str_get(&options),
      .shared_bytes = (int)(shape ? shared_bytes(&f, shape) : wide_shared_bytes(a, keys))};
  assay_status_t st = assay_str_status(&options);
  if (!st)
    st = cuda_attention_kernel(l, a, &source, shape ? shape->queries : WIDE_QUERIES, THREADS, out);
  if (!st && is_tf32(l)) (*out)->rounding = &tf32_rounding;
  assay_str_deinit(&options);
  return st;
}

static assay_status_t make_variant(const assay_sized_layer_t* l, const assay_variant_t* v,
                                   assay_kernel_t** out) {
  const cuda_own_t* own = cuda_own_of(l);
  const shape_t* shape = find_shape(v->name);
  attention_layer_t a;
  bool ok = false;
  if (!shape && strcmp(v->name, WIDE) != 0) return NULL;
  ASSAY_TRY(cuda_attention_read(l, &a, &ok));
  const form_t f = form_of(&a);
  if (!ok || (shape ? !fits(own, &f, shape) : !wide_fits(own, &a))) return NULL;
  return make_of(l, &a, shape, out);
}

const assay_tactic_t cuda_tactic_attention_fma = {
    .name = "attention_fma",
    .source = "assay",
    .variants = variants,
    .make_variant = make_variant,
    .rounding = {.compute = ASSAY_FORMAT_FP32,
                 .accumulator = ASSAY_FORMAT_FP32,
                 .fma = true,
                 .by_definition = true,
                 .flushes = true,
                 .function_ulps = 4},
};
