// Products with constant matrices of integer codes (kernels/coded.cu).
#include <math.h>

#include "backends/cuda/coded/weights.h"
#include "backends/cuda/product/product.h"
#include "base/alloc.h"

// The first one is what is built where nothing is timed.
static const cuda_tile_t shapes[] = {{64, 64, 4, 4}, {16, 64, 4, 2}, {4, 32, 4, 1}};
enum { N_SHAPES = sizeof shapes / sizeof *shapes };

typedef struct weight_only {
  assay_kernel_t base;
  int x;
  coded_args_t args;
  cuda_program_t* program;  // NULL: nothing comes after it
  cuda_kernel_t kernel;
  cuda_grid_t grid;
} weight_only_t;

// A layer as it was read.
typedef struct coded {
  cuda_product_t p;
  assay_coded_matrix_t m;
  size_t nodes;  // of the product
} coded_t;

// ---- reading ------------------------------------------------------------------------------------

static bool is_constant(const assay_sized_layer_t* l, const assay_value_t* v) {
  const assay_operand_t* o = assay_sized_input(l, v);
  return !v || (o && o->constant && o->constant == v->constant);
}

// Sizes that do not fit together are for the emulated engine, which says so.
static bool read(const assay_sized_layer_t* l, coded_t* c) {
  assay_coded_matrix_t* m = &c->m;
  product_args_t* a = &c->p.args;
  int64_t size;
  *c = (coded_t){0};
  c->nodes = assay_coded_read(l->layer->nodes, l->layer->n_nodes, m);
  const assay_operand_t* x = c->nodes ? assay_sized_input(l, m->x) : NULL;
  if (!x || !x->rank || !x->size || x->dims[x->rank - 1] != m->k || l->n_out != 1 ||
      !l->out[0].value || !cuda_type_name(x->type) || !cuda_type_name(l->out[0].type) ||
      !is_constant(l, m->codes) || !is_constant(l, m->scales) || !is_constant(l, m->zeros) ||
      !is_constant(l, m->bias))
    return false;
  c->p.x = (int)(x - l->in);
  c->p.w = -1;
  c->p.in = x->type;
  c->p.out = l->out[0].type;
  *a = (product_args_t){.m = x->size / m->k, .n = m->n, .k = m->k, .matrices = 1, .y_row = m->n};
  return assay_mul_i64(a->m, a->n, &size) && size == l->out[0].size;
}

static assay_status_t program(const assay_sized_layer_t* l, const coded_t* c, cuda_program_t** out,
                              bool* ok) {
  const pointwise_options_t options = {.first = c->nodes,
                                       .result = l->layer->nodes[c->nodes - 1]->outputs[0],
                                       .columns = c->p.args.n};
  *out = NULL;
  *ok = true;
  if (l->layer->n_nodes == c->nodes) return NULL;
  ASSAY_TRY(cuda_program_make(l, &options, out));
  *ok = *out != NULL;
  return NULL;
}

// ---- variants -----------------------------------------------------------------------------------

// Waves of blocks over the multiprocessors: multiply-adds, and a weight that is made of its code.
static double predict(const cuda_own_t* own, const cuda_product_t* p, const cuda_tile_t* s) {
  const double blocks = (double)cuda_tile_blocks(&p->args, s);
  const double waves = ceil(blocks / own->properties.multiprocessors);
  const double step = s->rows * s->columns / 128.0 + s->columns / 8.0;
  return 2 + waves * (0.5 + (double)p->args.k * step / 1700);
}

static assay_status_t variants(const assay_sized_layer_t* l, assay_variant_t* out, size_t* out_n) {
  coded_t c;
  cuda_program_t* made = NULL;
  bool ok = false;
  *out_n = 0;
  if (!read(l, &c)) return NULL;
  ASSAY_TRY(program(l, &c, &made, &ok));
  cuda_program_destroy(made);
  if (ok) cuda_tile_variants(l, &c.p, shapes, N_SHAPES, "fma", predict, out, out_n);
  return NULL;
}

static assay_status_t enqueue(assay_kernel_t* base, assay_queue_t* q, const assay_device_ptr_t* in,
                              const assay_device_ptr_t* out, assay_device_ptr_t scratch) {
  const weight_only_t* k = (const weight_only_t*)base;
  coded_args_t args = k->args;
  (void)scratch;
  args.product.x = in[k->x];
  args.product.y = out[0];
  if (k->program) cuda_program_fill(k->program, in, &args.product.program);
  return cuda_queue_launch(q, k->kernel, &k->grid, &args);
}

static void destroy(assay_kernel_t* k) {
  cuda_program_destroy(((weight_only_t*)k)->program);
  assay_free(k);
}

static assay_status_t load(const assay_sized_layer_t* l, const coded_t* c, const cuda_tile_t* s,
                           weight_only_t* k) {
  assay_str_t options = {0};
  cuda_product_options(&c->p, &options);
  assay_str_printf(&options, " -DBITS=%d -DSIGNED=%d -DBM=%d -DBN=%d -DTM=%d -DTN=%d -DEPILOGUE=%d",
                   c->m.bits, c->m.is_signed, s->rows, s->columns, s->down, s->across,
                   k->program != NULL);
  const cuda_source_t source = {.file = "coded.cu",
                                .kernel = "coded",
                                .options = assay_str_get(&options),
                                .program = k->program ? cuda_program_text(k->program) : NULL};
  assay_status_t st = assay_str_status(&options);
  if (!st) st = cuda_function_get(cuda_own_of(l)->functions, &source, &k->kernel);
  assay_str_deinit(&options);
  return st;
}

static assay_status_t build(const assay_sized_layer_t* l, const coded_t* c, const cuda_tile_t* s,
                            weight_only_t* k, bool* ok) {
  k->x = c->p.x;
  k->args.product = c->p.args;
  k->grid = (cuda_grid_t){.blocks = cuda_tile_blocks(&c->p.args, s),
                          .threads = s->rows / s->down * (s->columns / s->across)};
  k->base.in[k->x] = (assay_storage_t){c->p.in, ASSAY_LAYOUT_PLAIN};
  k->base.out[0] = (assay_storage_t){c->p.out, ASSAY_LAYOUT_PLAIN};
  ASSAY_TRY(program(l, c, &k->program, ok));
  *ok = *ok && (!k->program || cuda_program_forms(k->program, &k->base));
  if (!*ok) return NULL;
  ASSAY_TRY(cuda_coded_bring(l, &c->m, &k->args, ok));
  return *ok ? load(l, c, s, k) : NULL;
}

static assay_status_t make_variant(const assay_sized_layer_t* l, const assay_variant_t* v,
                                   assay_kernel_t** out) {
  weight_only_t* k = NULL;
  coded_t c;
  bool ok = false;
  const cuda_tile_t* s = read(l, &c) ? cuda_tile_find(&c.p, shapes, N_SHAPES, v) : NULL;
  if (!s) return NULL;
  ASSAY_TRY(ASSAY_NEW(&k));
  k->base = (assay_kernel_t){.in_place = -1, .enqueue = enqueue, .destroy = destroy};
  assay_status_t st = build(l, &c, s, k, &ok);
  if (st || !ok) return destroy(&k->base), st;
  *out = &k->base;
  return NULL;
}

const assay_tactic_t cuda_tactic_weight_only = {
    .name = "weight_only",
    .source = "assay",
    .variants = variants,
    .make_variant = make_variant,
    .rounding = {.compute = ASSAY_FORMAT_FP32,
                 .accumulator = ASSAY_FORMAT_FP32,
                 .fma = true,
                 .by_definition = true,
                 .function_ulps = 4},
};
