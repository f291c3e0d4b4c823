// Softmax and normalizations with the quantizer behind them, in one launch: the row's results are
// quantized where they are, and stored as floats only for whoever else reads them.
#include <string.h>

#include "backends/cuda/int8/quantizer.h"
#include "backends/cuda/rows/rows.h"
#include "base/alloc.h"

typedef struct rows_quantized {
  assay_kernel_t base;
  cuda_rows_kernel_t rows;
  bool hides;
} rows_quantized_t;

static assay_status_t enqueue(assay_kernel_t* base, assay_queue_t* q, const assay_device_ptr_t* in,
                              const assay_device_ptr_t* out, assay_device_ptr_t scratch) {
  const rows_quantized_t* k = (const rows_quantized_t*)base;
  rows_args_t args;
  (void)scratch;
  cuda_rows_kernel_fill(&k->rows, in, out, &args);
  if (k->hides) args.y = 0;
  args.quantizer.y = out[1];
  return cuda_queue_launch(q, k->rows.function, &k->rows.rows.grid, &args);
}

static void destroy(assay_kernel_t* base) {
  cuda_rows_kernel_close(&((rows_quantized_t*)base)->rows);
  assay_free(base);
}

static assay_status_t build(const assay_layer_pair_t* pair, rows_quantized_t* k, bool* ok) {
  const assay_sized_layer_t* l = pair->layers[0];
  ASSAY_TRY(cuda_rows_kernel_open(l, &k->rows, ok));
  *ok = *ok && cuda_quantizer_follows(pair, &k->rows.args.quantizer, &k->rows.options);
  if (!*ok) return NULL;
  assay_str_append(&k->rows.options, " ");
  cuda_quantizer_forms(pair, &k->base);
  return cuda_rows_kernel_compile(l, &k->rows);
}

static assay_status_t make_pair(const assay_layer_pair_t* pair, assay_kernel_t** out) {
  rows_quantized_t* k = NULL;
  bool ok;
  if (strcmp(pair->kernels[0]->tactic->name, "rows") != 0) return NULL;
  ASSAY_TRY(ASSAY_NEW(&k));
  k->hides = pair->hides;
  k->base = (assay_kernel_t){
      .in_place = pair->kernels[0]->in_place, .enqueue = enqueue, .destroy = destroy};
  assay_status_t st = build(pair, k, &ok);
  if (st || !ok) return destroy(&k->base), st;
  *out = &k->base;
  return NULL;
}

const assay_tactic_t cuda_tactic_rows_quantized = {
    .name = "rows_quantized",
    .source = "assay",
    .make_pair = make_pair,
    .rounding = {.compute = ASSAY_FORMAT_FP32,
                 .accumulator = ASSAY_FORMAT_FP32,
                 .by_definition = true,
                 .function_ulps = 4},
};
