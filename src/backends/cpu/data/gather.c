// Gather: rows of a table by their numbers.
#include "backends/layers/gather.h"

#include <string.h>

#include "backends/cpu/tactic.h"
#include "backends/cpu/threads.h"
#include "base/alloc.h"

typedef struct gather {
  assay_kernel_t base;
  layer_gather_t layer;
} gather_t;

static void copy(const layer_gather_t* k, const char* x, const void* indices, int64_t first,
                 int64_t end, char* y) {
  for (int64_t i = first; i < end; i++) {
    const int64_t from = i / k->n * k->size + layer_gather_index(k, indices, i % k->n);
    memcpy(y + (size_t)i * k->slice, x + (size_t)from * k->slice, k->slice);
  }
}

static assay_status_t run(assay_kernel_t* base, const void* const* in, void* const* out,
                          void* scratch) {
  const layer_gather_t* k = &((const gather_t*)base)->layer;
  const void* indices = in[k->indices];
  const int64_t rows = k->outer * k->n;
  (void)scratch;
  ASSAY_TRY(layer_gather_check(k, indices));
  const int parts = cpu_threads(rows * (int64_t)(k->slice / 4 + 4));
#pragma omp parallel for schedule(static, 1) num_threads(parts) if (parts > 1)
  for (int i = 0; i < parts; i++)
    copy(k, in[k->data], indices, rows * i / parts, rows * (i + 1) / parts, out[0]);
  return NULL;
}

static void destroy(assay_kernel_t* k) { assay_free(k); }

// False: the layer is none.
static bool read(const assay_sized_layer_t* l, gather_t* k) {
  return layer_gather_read(l, &k->base, &k->layer);
}

static assay_status_t make(const assay_sized_layer_t* l, assay_kernel_t** out) {
  gather_t *k = NULL, made = {.base = {.in_place = -1, .run = run, .destroy = destroy}};
  if (!read(l, &made)) return NULL;
  ASSAY_TRY(ASSAY_NEW(&k));
  *k = made;
  *out = &k->base;
  return NULL;
}

static assay_status_t resize(const assay_sized_layer_t* l, assay_kernel_t* k, bool* out_ok) {
  *out_ok = read(l, (gather_t*)k);
  return NULL;
}

const assay_tactic_t cpu_tactic_gather = {
    .name = "gather",
    .source = "assay",
    .numerics = "data_movement",
    .make = make,
    .resize = resize,
    .rounding = {.compute = ASSAY_FORMAT_FP32,
                 .accumulator = ASSAY_FORMAT_FP32,
                 .function_ulps = 1},
};
