// Layers of pointwise nodes: one program over their elements.
#include "backends/cuda/pointwise/program.h"
#include "base/alloc.h"

enum { THREADS = 256 };

typedef struct chain {
  assay_kernel_t base;
  const cuda_own_t* own;
  cuda_program_t* program;
  cuda_kernel_t function;
  int64_t size;
} chain_t;

static assay_status_t enqueue(assay_kernel_t* base, assay_queue_t* q, const assay_device_ptr_t* in,
                              const assay_device_ptr_t* out, assay_device_ptr_t scratch) {
  const chain_t* k = (const chain_t*)base;
  const int64_t pieces = k->size / cuda_program_vector(k->program) + 1;
  const cuda_grid_t grid = {
      .blocks = cuda_blocks_for(k->own, pieces, THREADS), .threads = THREADS, .dependent = true};
  chain_args_t args = {.out = out[0], .size = k->size};
  (void)scratch;
  if (!k->size) return NULL;
  cuda_program_fill(k->program, in, &args.program);
  return cuda_queue_launch(q, k->function, &grid, &args);
}

static void destroy(assay_kernel_t* k) {
  cuda_program_destroy(((chain_t*)k)->program);
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

static assay_status_t load(const cuda_own_t* own, chain_t* k) {
  const cuda_source_t source = {.file = "chain.cu",
                                .kernel = "chain",
                                .options = "",
                                .program = cuda_program_text(k->program)};
  return k->size ? cuda_function_get(own->functions, &source, &k->function) : NULL;
}

static assay_status_t make(const assay_sized_layer_t* l, assay_kernel_t** out) {
  cuda_program_t* program = NULL;
  if (l->n_out < 1 || !l->out[0].value) return NULL;
  assay_layout_t layout = pointwise_layout(l);
  ASSAY_TRY(compile(l, layout, &program));
  if (!program && layout != ASSAY_LAYOUT_PLAIN)
    ASSAY_TRY(compile(l, layout = ASSAY_LAYOUT_PLAIN, &program));
  if (!program) return NULL;
  chain_t* k = NULL;
  assay_status_t st = ASSAY_NEW(&k);
  if (st) return cuda_program_destroy(program), st;
  *k = (chain_t){.base = {.in_place = -1, .enqueue = enqueue, .destroy = destroy},
                 .own = cuda_own_of(l),
                 .program = program,
                 .size = l->out[0].size};
  k->base.out[0] = (assay_storage_t){l->out[0].type, layout};
  k->base.in_place = pointwise_in_place(cuda_program_code(program), l->out[0].type);
  st = load(cuda_own_of(l), k);
  if (st || !cuda_program_forms(program, &k->base)) return destroy(&k->base), st;
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
