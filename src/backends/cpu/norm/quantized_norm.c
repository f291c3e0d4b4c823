// Normalizations with quantizers inside, on bytes (int8_norm.h): over channels of images that lie
// last, or over the last dimensions.
#include <string.h>

#include "backends/cpu/int8/int8_make.h"
#include "backends/cpu/int8/int8_norm.h"
#include "backends/cpu/tactic.h"
#include "backends/cpu/threads.h"
#include "base/alloc.h"

typedef struct norm {
  assay_kernel_t base;
  int input;
  int64_t rows, part;  // rows that one thread takes at once
  int8_norm_t k;
} norm_t;

static assay_status_t run(assay_kernel_t* base, const void* const* in, void* const* out,
                          void* scratch) {
  const norm_t* n = (const norm_t*)base;
  const uint8_t* x = in[n->input];
  uint8_t* y = out[0];
  (void)scratch;
  const int64_t parts = (n->rows + n->part - 1) / n->part;
#pragma omp parallel for schedule(static) num_threads(cpu_threads(2 * n->rows * n->k.size))
  for (int64_t i = 0; i < parts; i++) {
    const int64_t at = i * n->part, rows = n->rows - at < n->part ? n->rows - at : n->part;
    int8_norm_rows(&n->k, x + at * n->k.size, rows, y + at * n->k.size);
  }
  return NULL;
}

static void destroy(assay_kernel_t* base) {
  norm_t* n = (norm_t*)base;
  int8_norm_deinit(&n->k);
  assay_free(n);
}

// ---- operands -----------------------------------------------------------------------------------

typedef struct numbers {
  int8_norm_numbers_t of;
  float* made[2 * ASSAY_QUANTIZED_NORM_STAGES + 1];
  int n_made;
} numbers_t;

static void release(numbers_t* n) {
  for (int i = 0; i < n->n_made; i++) assay_free(n->made[i]);
}

// A constant of one element or of `size`, which lie as the normalized ones do.
static assay_status_t floats_of(const assay_sized_layer_t* l, const assay_value_t* v, int64_t size,
                                numbers_t* n, const float** out, int64_t* out_n, bool* ok) {
  const assay_operand_t* o = v ? assay_sized_input(l, v) : NULL;
  if (!v) return NULL;
  *ok &= o && o->constant && o->type == ASSAY_TYPE_FLOAT && (o->size == 1 || o->size == size);
  if (!*ok) return NULL;
  float* made = NULL;
  ASSAY_TRY(assay_operand_floats(o, &made));
  n->made[n->n_made++] = made;
  *out = made;
  *out_n = o->size;
  return NULL;
}

static assay_status_t read_numbers(const assay_sized_layer_t* l, const assay_quantized_norm_t* q,
                                   int64_t size, numbers_t* n, bool* ok) {
  const float* epsilon = NULL;
  int64_t one = 0;
  ASSAY_TRY(floats_of(l, q->epsilon, 1, n, &epsilon, &one, ok));
  for (int i = 0; *ok && i < q->n_stages; i++) {
    ASSAY_TRY(floats_of(l, q->stages[i].factor, size, n, &n->of.factor[i], &n->of.n_factor[i], ok));
    if (*ok)
      ASSAY_TRY(floats_of(l, q->stages[i].term, size, n, &n->of.term[i], &n->of.n_term[i], ok));
  }
  n->of.epsilon = epsilon ? *epsilon : 0;
  return NULL;
}

// ---- making -------------------------------------------------------------------------------------

// Elements of a row, and the layout in which they lie together; 0: there is none.
static int64_t row_of(const assay_quantized_norm_t* q, const assay_operand_t* x,
                      assay_layout_t* layout) {
  int64_t size = 1;
  bool at_end = true;
  for (int i = 0; i < q->rank; i++) {
    at_end &= q->axes[i] == (i >= q->rank - q->n_axes);
    if (q->axes[i]) size *= x->dims[i];
  }
  *layout = at_end ? ASSAY_LAYOUT_PLAIN : ASSAY_LAYOUT_CHANNELS_LAST;
  const bool channels = q->rank >= 3 && q->n_axes == 1 && q->axes[1];
  return at_end || channels ? size : 0;
}

static assay_status_t make_of(const assay_sized_layer_t* l, const assay_quantized_norm_t* q,
                              const assay_operand_t* x, assay_kernel_t** out) {
  enum { BYTES = 16384 };  // a part is about as large, and its rows are looked at 16 at a time
  numbers_t numbers = {.n_made = 0};
  norm_t* k = NULL;
  assay_layout_t layout;
  const int64_t size = row_of(q, x, &layout);
  bool ok = size > 0 && size <= ASSAY_QUANTIZED_NORM_SIZE;
  assay_status_t st = ok ? read_numbers(l, q, size, &numbers, &ok) : NULL;
  if (!st && ok) st = ASSAY_NEW(&k);
  if (!st && ok) st = int8_norm_init(&k->k, q, size, &numbers.of);
  release(&numbers);
  if (st) assay_free(k);
  if (st || !ok) return st;
  k->base = (assay_kernel_t){.in_place = -1, .run = run, .destroy = destroy};
  k->input = (int)(x - l->in);
  k->rows = x->size / size;
  k->part = (BYTES / size / INT8_NORM_ROWS + 1) * INT8_NORM_ROWS;
  k->base.in[k->input] = (assay_storage_t){x->type, layout};
  k->base.out[0] = (assay_storage_t){l->out[0].type, layout};
  *out = &k->base;
  return NULL;
}

static assay_status_t make(const assay_sized_layer_t* l, assay_kernel_t** out) {
  assay_quantized_norm_t q;
  if (l->n_out != 1 || !l->out[0].value || l->layer->format != ASSAY_FORMAT_FP32 ||
      l->layer->n_nodes < 2 || !assay_quantized_norm_read(l->layer->nodes, l->layer->n_nodes, &q))
    return NULL;
  const assay_operand_t* x = assay_sized_input(l, q.x);
  if (!x || !x->size || x->rank != q.rank || x->size != l->out[0].size) return NULL;
  return make_of(l, &q, x, out);
}

const assay_tactic_t cpu_tactic_quantized_norm = {
    .name = "quantized_norm",
    .source = "assay",
    .make = make,
    .rounding = {.compute = ASSAY_FORMAT_FP32,
                 .accumulator = ASSAY_FORMAT_FP32,
                 .fma = true,
                 .function_ulps = 1},
};
