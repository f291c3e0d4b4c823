// Products of matrices, and 1x1 convolutions, by cuBLASLt. Nobody promises its order of sums, so
// that it competes only where it gave the bits of our kernels (assay_tactic_t.verify). It ends with
// a bias and Relu at most; what else follows a large product is a launch of ours, which reads its
// sums as float32.
#include "backends/cuda/cublaslt.h"

#include <string.h>

#include "backends/cuda/product/constants.h"
#include "backends/cuda/product/product.h"
#include "base/alloc.h"

// A layer that it may take.
typedef struct form {
  cuda_product_t p;
  cublaslt_product_t product;
  const assay_operand_t* bias;  // a constant, packed; NULL: none
  int added;                    // the input that is added to each row; -1: none
  bool finished;                // by a launch of ours
} form_t;

enum { THREADS = 256, MIN_ROWS = 256, PIECE = 8, ALIGNMENT = 256 };

typedef struct library_kernel {
  assay_kernel_t base;
  cublaslt_call_t* call;
  int x, w, added;            // inputs of the layer; -1: none
  assay_device_ptr_t packed;  // weights, where w is -1
  assay_device_ptr_t bias;
  // What follows, where the library does not do it; program NULL: it does.
  const cuda_own_t* own;
  cuda_program_t* program;
  cuda_kernel_t finish;
  product_args_t args;
  size_t sums_at;  // in scratch memory
} library_kernel_t;

// ---- reading ------------------------------------------------------------------------------------

// The one step by which matrices follow each other; false: there is none.
static bool find_step(const product_args_t* a, const int64_t* steps, int64_t* out) {
  int64_t behind = -1, n = 1;  // the step, and how many follow each other by it so far
  for (int i = a->n_dims - 1; i >= 0; i--) {
    if (a->dims[i] == 1) continue;
    if (behind < 0) behind = steps[i];
    if (steps[i] != behind * n) return false;
    n *= a->dims[i];
  }
  *out = behind < 0 ? 0 : behind;
  return true;
}

static bool read_matrices(const product_args_t* a, cublaslt_product_t* to) {
  const bool fits = a->matrices <= INT32_MAX && a->y_row >= a->n &&
                    (a->x_k == 1 || a->x_row == 1) && (a->w_column == 1 || a->w_k == 1);
  to->m = a->m;
  to->n = a->n;
  to->k = a->k;
  to->matrices = a->matrices;
  to->x_turned = a->x_k != 1;
  to->x_row = to->x_turned ? a->x_k : a->x_row;
  to->w_turned = a->w_column != 1;
  to->w_row = to->w_turned ? a->w_column : a->w_k;
  to->y_row = a->y_row;
  return fits && find_step(a, a->x_step, &to->x_step) && find_step(a, a->w_step, &to->w_step) &&
         find_step(a, a->y_step, &to->y_step);
}

// The input that an Add puts on each row of what is before it; -1: it is none such.
static int find_added(const assay_sized_layer_t* l, const assay_node_t* n,
                      const assay_value_t* before, const cuda_product_t* p) {
  if (*n->domain || strcmp(n->op_type, "Add") != 0 || n->n_inputs != 2) return -1;
  if (n->inputs[0] != before && n->inputs[1] != before) return -1;
  const int i = assay_sized_input_index(l, n->inputs[n->inputs[0] == before]);
  const assay_operand_t* o = i < 0 ? NULL : &l->in[i];
  if (!o || i == p->x || i == p->w || o->type != p->out || !o->rank || o->size != p->args.n ||
      o->dims[o->rank - 1] != p->args.n || o->layout != ASSAY_LAYOUT_PLAIN)
    return -1;
  return i;
}

// What follows the product; false: more than a bias and Relu.
static bool read_end(const assay_sized_layer_t* l, form_t* f) {
  f->added = -1;
  if (f->p.ends) return false;
  f->bias = f->p.bias;
  for (size_t i = (size_t)f->p.done; i < l->layer->n_nodes; i++) {
    const assay_node_t *n = l->layer->nodes[i], *before = l->layer->nodes[i - 1];
    const bool plain =
        f->p.left == CUDA_LEFT_MATRIX && !f->bias && f->added < 0 && !f->product.relu;
    const int added = plain ? find_added(l, n, before->outputs[0], &f->p) : -1;
    if (added >= 0)
      f->added = added;
    else if (!*n->domain && strcmp(n->op_type, "Relu") == 0 && n->inputs[0] == before->outputs[0])
      f->product.relu = true;
    else
      return false;
  }
  f->product.bias = f->bias || f->added >= 0;
  return true;
}

// What follows is done with sums in memory: where there are many rows a library's product gains
// more than that costs.
static bool is_finished(form_t* f) {
  const product_args_t* a = &f->p.args;
  f->bias = NULL;
  f->added = -1;
  f->product.bias = f->product.relu = false;
  f->finished = true;
  return a->matrices == 1 && a->m >= MIN_ROWS && a->n % PIECE == 0 && a->y_row == a->n &&
         a->m * a->n <= INT32_MAX && f->p.in != ASSAY_TYPE_FLOAT;
}

static assay_status_t read(const assay_sized_layer_t* l, form_t* f, bool* ok) {
  memset(f, 0, sizeof *f);
  ASSAY_TRY(cuda_product_read(l, &f->p, ok));
  if (!*ok) return NULL;
  product_args_t a = f->p.args;
  if (f->p.through) f->p.out = f->p.through;
  *ok = !f->p.packing.size && (read_end(l, f) || is_finished(f));
  if (*ok && f->p.left) {
    *ok = f->p.left == CUDA_LEFT_CONV && a.matrices == 1 && cuda_is_one_to_one(&a);
    a.x_row = a.x_place;
    a.x_k = 1;
    a.n_dims = 0;
  }
  *ok = *ok && read_matrices(&a, &f->product);
  f->product.tf32 = f->p.tf32;
  f->product.in = f->p.in;
  f->product.out = f->finished ? ASSAY_TYPE_FLOAT : f->p.out;
  return NULL;
}

// ---- tactic -------------------------------------------------------------------------------------

// Microseconds, fitted to what its likeliest algorithms took on an H200 of 132 multiprocessors: 17
// shapes from 1 to 8192 rows, fp16.
static double predict(const cuda_own_t* own, const form_t* f, size_t rank) {
  const cublaslt_product_t* p = &f->product;
  // Sums are written, read, and become elements.
  const double finish = f->finished ? 2 + 4e-6 * (double)p->m * (double)p->n : 0;
  const double share = own->properties.multiprocessors / 132.0;
  const double rate = p->in != ASSAY_TYPE_FLOAT ? 375e6 : p->tf32 ? 190e6 : 25e6;
  const double work = (double)p->m * (double)p->n * (double)p->k * (double)p->matrices;
  return finish + (2 + 0.001 * (double)p->k + work / (rate * share)) * (1 + 0.01 * (double)rank);
}

// Of multiply-adds the library makes one chain a sum.
static const char* numerics_of(const cuda_product_t* p) {
  if (p->in != ASSAY_TYPE_FLOAT || p->tf32) return "tensor";
  return PRODUCT_CHAIN(p->args.k) == p->args.k ? "fma" : NULL;
}

// Those without splits first, in the library's order.
static assay_status_t variants(const assay_sized_layer_t* l, assay_variant_t* out, size_t* out_n) {
  const cublaslt_way_t* ways = NULL;
  form_t f;
  size_t n = 0;
  bool ok = false;
  *out_n = 0;
  ASSAY_TRY(read(l, &f, &ok));
  if (ok) ASSAY_TRY(cublaslt_ways(cuda_own_of(l)->cublaslt, &f.product, &ways, &n));
  const char* numerics = numerics_of(&f.p);
  for (int splits = 0; splits < 2; splits++)
    for (size_t i = 0; i < n; i++) {
      if (ways[i].splits != splits) continue;
      assay_variant_t* v = &out[*out_n];
      *v = (assay_variant_t){.numerics = splits ? NULL : numerics,
                             .predicted = predict(cuda_own_of(l), &f, (*out_n)++)};
      memcpy(v->name, ways[i].name, sizeof v->name);
    }
  return NULL;
}

static assay_status_t finish(const library_kernel_t* k, assay_queue_t* q,
                             const assay_device_ptr_t* in, const assay_device_ptr_t* out,
                             assay_device_ptr_t sums) {
  product_args_t args = k->args;
  const cuda_grid_t grid = {.blocks = cuda_blocks_for(k->own, args.m * args.n / PIECE, THREADS),
                            .threads = THREADS,
                            .dependent = true};
  args.x = sums;
  args.y = out[0];
  cuda_program_fill(k->program, in, &args.program);
  return cuda_queue_launch(q, k->finish, &grid, &args);
}

static assay_status_t enqueue(assay_kernel_t* base, assay_queue_t* q, const assay_device_ptr_t* in,
                              const assay_device_ptr_t* out, assay_device_ptr_t scratch) {
  const library_kernel_t* k = (const library_kernel_t*)base;
  const cublaslt_operands_t at = {.x = in[k->x],
                                  .w = k->w < 0 ? k->packed : in[k->w],
                                  .y = k->program ? scratch + k->sums_at : out[0],
                                  .bias = k->added < 0 ? k->bias : in[k->added],
                                  .scratch = scratch};
  ASSAY_TRY(cublaslt_enqueue(k->call, q, &at));
  return k->program ? finish(k, q, in, out, at.y) : NULL;
}

static void destroy(assay_kernel_t* base) {
  library_kernel_t* k = (library_kernel_t*)base;
  cublaslt_call_destroy(k->call);
  cuda_program_destroy(k->program);
  assay_free(k);
}

static const assay_rounding_t fma_rounding = {.compute = ASSAY_FORMAT_FP32,
                                              .accumulator = ASSAY_FORMAT_FP32,
                                              .fma = true,
                                              .by_definition = true,
                                              .function_ulps = 4};

// The launch that follows; *ok false: no program does it.
static assay_status_t make_finish(const assay_sized_layer_t* l, const form_t* f,
                                  library_kernel_t* k, bool* ok) {
  *ok = true;
  if (!f->finished) return NULL;
  ASSAY_TRY(cuda_product_program(l, &f->p, &k->program, ok));
  *ok = *ok && k->program && cuda_program_forms(k->program, &k->base);
  if (!*ok) return NULL;
  k->own = cuda_own_of(l);
  k->args = f->p.args;
  k->sums_at = (k->base.scratch + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
  k->base.scratch = k->sums_at + (size_t)(k->args.m * k->args.n) * sizeof(float);
  assay_str_t options = {0};
  cuda_product_options(&f->p, &options);
  assay_str_append(&options, " -DEPILOGUE=1");
  const cuda_source_t source = {.file = "finish_sums.cu",
                                .kernel = "finish_sums",
                                .options = assay_str_get(&options),
                                .program = cuda_program_text(k->program)};
  assay_status_t st = assay_str_status(&options);
  if (!st) st = cuda_function_get(k->own->functions, &source, &k->finish);
  assay_str_deinit(&options);
  return st;
}

static assay_status_t make(const assay_sized_layer_t* l, form_t* f, const cublaslt_way_t* way,
                           assay_kernel_t** out) {
  library_kernel_t* k = NULL;
  assay_device_ptr_t bias = 0;
  ASSAY_TRY(cuda_product_bring(l, &f->p));
  if (f->bias) ASSAY_TRY(cuda_typed_bias_get(l, f->bias, f->p.args.n, f->p.out, &bias));
  ASSAY_TRY(ASSAY_NEW(&k));
  *k = (library_kernel_t){
      .x = f->p.x, .w = f->p.w, .added = f->added, .packed = f->p.args.w, .bias = bias};
  k->base = (assay_kernel_t){
      .in_place = -1, .scratch = way->scratch, .enqueue = enqueue, .destroy = destroy};
  if (f->p.in == ASSAY_TYPE_FLOAT && !f->p.tf32) k->base.rounding = &fma_rounding;
  k->base.in[k->x] = (assay_storage_t){f->p.in, f->p.layout};
  if (k->w >= 0) k->base.in[k->w] = (assay_storage_t){f->p.in, ASSAY_LAYOUT_PLAIN};
  if (k->added >= 0) k->base.in[k->added] = (assay_storage_t){f->p.out, ASSAY_LAYOUT_PLAIN};
  k->base.out[0] = (assay_storage_t){f->p.out, f->p.layout};
  bool ok = true;
  assay_status_t st = make_finish(l, f, k, &ok);
  if (!st && ok) st = cublaslt_call_create(cuda_own_of(l)->cublaslt, &f->product, way, &k->call);
  if (st || !ok) return destroy(&k->base), st;
  *out = &k->base;
  return NULL;
}

static assay_status_t make_variant(const assay_sized_layer_t* l, const assay_variant_t* v,
                                   assay_kernel_t** out) {
  const cublaslt_way_t* ways = NULL;
  form_t f;
  size_t n = 0;
  bool ok = false;
  ASSAY_TRY(read(l, &f, &ok));
  if (ok) ASSAY_TRY(cublaslt_ways(cuda_own_of(l)->cublaslt, &f.product, &ways, &n));
  for (size_t i = 0; i < n; i++)
    if (strcmp(ways[i].name, v->name) == 0) return make(l, &f, &ways[i], out);
  return NULL;
}

// On an H200, kernels of ours that bring their weights while the one before them ends gained 1 us a
// launch in a captured chain (products of 128 rows 0.7 to 1.1). Behind a library's, which says
// nothing before its end, they cannot.
#define LOST_BEHIND 1.0

// As product_mma; its kernels of float32 say otherwise.
const assay_tactic_t cuda_tactic_cublaslt = {
    .name = "cublaslt",
    .source = "cublaslt",
    .variants = variants,
    .make_variant = make_variant,
    .verify = true,
    .loses = LOST_BEHIND,
    .rounding = {.compute = ASSAY_FORMAT_FP32,
                 .accumulator = ASSAY_FORMAT_FP32,
                 .truncates = true,
                 .fma = true,
                 .by_definition = true,
                 .function_ulps = 4},
};
