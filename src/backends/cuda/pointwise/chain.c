// Layers of pointwise nodes: one program over their elements.
#include "backends/cuda/pointwise/chain.h"

#include "base/alloc.h"

enum { THREADS = 256 };

typedef cuda_chain_t chain_t;

assay_status_t cuda_chain_launch(const chain_t* k, assay_queue_t* q, const assay_device_ptr_t* in,
                                 assay_device_ptr_t out, const quantizer_args_t* quantizer) {
  const int64_t pieces = k->size / cuda_program_vector(k->program) + 1;
  const cuda_grid_t grid = {
      .blocks = cuda_blocks_for(k->own, pieces, THREADS), .threads = THREADS, .dependent = true};
  chain_args_t args = {.out = out, .size = k->size};
  if (!k->size) return NULL;
  if (quantizer) args.quantizer = *quantizer;
  cuda_program_fill(k->program, in, &args.program);
  return cuda_queue_launch(q, k->function, &grid, &args);
}

static assay_status_t enqueue(assay_kernel_t* base, assay_queue_t* q, const assay_device_ptr_t* in,
                              const assay_device_ptr_t* out, assay_device_ptr_t scratch) {
  (void)scratch;
  return cuda_chain_launch((const chain_t*)base, q, in, out[0], NULL);
}

void cuda_chain_close(chain_t* k) { cuda_program_destroy(k->program); }

static void destroy(assay_kernel_t* k) {
  cuda_chain_close((chain_t*)k);
  assay_free(k);
}

// On floats, else on integers.
static assay_status_t compile(const assay_sized_layer_t* l, assay_layout_t layout,
                              cuda_program_t** out) {
  pointwise_options_t o = {.layout = layout, .quantizers = true};
  ASSAY_TRY(cuda_program_make(l, &o, out));
  if (*out) return NULL;
  o.integers = true;
  return cuda_program_make(l, &o, out);
}

assay_status_t cuda_chain_load(chain_t* k, const char* options) {
  const cuda_source_t source = {.file = "chain.cu",
                                .kernel = "chain",
                                .options = options,
                                .program = cuda_program_text(k->program)};
  return k->size ? cuda_function_get(k->own->functions, &source, &k->function) : NULL;
}

assay_status_t cuda_chain_open(const assay_sized_layer_t* l, chain_t* k, bool* ok) {
  assay_layout_t layout = pointwise_layout(l);
  *k = (chain_t){.base = {.in_place = -1, .enqueue = enqueue, .destroy = destroy},
                 .own = cuda_own_of(l)};
  *ok = l->n_out && l->out[0].value;
  if (!*ok) return NULL;
  ASSAY_TRY(compile(l, layout, &k->program));
  if (!k->program && layout != ASSAY_LAYOUT_PLAIN)
    ASSAY_TRY(compile(l, layout = ASSAY_LAYOUT_PLAIN, &k->program));
  *ok = k->program;
  if (!*ok) return NULL;
  k->size = l->out[0].size;
  k->base.out[0] = (assay_storage_t){l->out[0].type, layout};
  k->base.in_place = pointwise_in_place(cuda_program_code(k->program), l->out[0].type);
  *ok = cuda_program_forms(k->program, &k->base);
  return NULL;
}

static assay_status_t make(const assay_sized_layer_t* l, assay_kernel_t** out) {
  chain_t* k = NULL;
  bool ok;
  ASSAY_TRY(ASSAY_NEW(&k));
  assay_status_t st = cuda_chain_open(l, k, &ok);
  if (!st && ok) st = cuda_chain_load(k, "");
  if (st || !ok) return destroy(&k->base), st;
  *out = &k->base;
  return NULL;
}

// The program is compiled for the new sizes; kernels of one text are shared.
static assay_status_t resize(const assay_sized_layer_t* l, assay_kernel_t* k, bool* out_ok) {
  assay_kernel_t* made = NULL;
  ASSAY_TRY(make(l, &made));
  *out_ok = made;
  if (!made) return NULL;
  chain_t *to = (chain_t*)k, *from = (chain_t*)made;
  const chain_t old = *to;
  *to = *from;
  to->base.tactic = old.base.tactic;
  from->program = old.program;
  destroy(made);
  return NULL;
}

const assay_tactic_t cuda_tactic_chain = {
    .name = "chain",
    .source = "assay",
    .make = make,
    .resize = resize,
    .layouts = ASSAY_LAYOUT_FOLLOWS,
    .rounding = {.compute = ASSAY_FORMAT_FP32,
                 .accumulator = ASSAY_FORMAT_FP32,
                 .fma = true,
                 .function_ulps = 1},
};
