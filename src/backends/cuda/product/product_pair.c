// Two products of few rows in one launch (kernels/product/product_pair.cu), as those of a
// squeeze-excite block: what the first one makes, with what comes after it, is small, and each of
// them alone takes little longer than a launch.
#include <string.h>

#include "backends/cuda/kernels/product_pair_args.h"
#include "backends/cuda/product/product.h"
#include "base/alloc.h"

enum { ROWS = 8, COLUMNS = 64, SIDE = 16, SPARE = 8, THREADS = 512, OTHER_BYTES = 4 << 10 };
// Of the first product, of which each block brings all weights: on an H200 672 x 28 took 4.3 us
// where two launches took 6.7, 1152 x 48 5.2 and 5.2, and 480 x 120 7.0 and 4.2.
enum { MAX_COLUMNS = 256, MAX_WEIGHTS = 36 << 10, MIN_TERMS = 64 };
// Of the driver, for arguments of a kernel.
_Static_assert(sizeof(product_pair_args_t) <= 4096, "arguments of a kernel");

// How the weights of the first product come: in so many parts, of so many terms.
typedef struct parts {
  int terms, n;
} parts_t;

typedef struct pair_kernel {
  assay_kernel_t base;
  cuda_product_t products[2];
  cuda_program_t* programs[2];
  parts_t parts;
  int first_in;  // inputs of the first layer
  cuda_kernel_t kernel;
  cuda_grid_t grid;
} pair_kernel_t;

static int64_t up_to(int64_t n, int64_t multiple) {
  return (n + multiple - 1) / multiple * multiple;
}

// As find_places of the kernel.
static int64_t shared_bytes(const product_args_t* first, const parts_t* parts) {
  const int64_t columns = up_to(first->n, SIDE);
  const int64_t elements = columns * parts->n * (parts->terms + SPARE) +
                           ROWS * (up_to(first->k, SIDE) + SPARE) +
                           (COLUMNS + ROWS) * (columns + SPARE);
  return 2 * elements + 4 * (ROWS * (columns + SPARE) + first->n);
}

// So many that the first is multiplied while others arrive. False: they find no room.
static bool find_parts(const product_args_t* first, int64_t limit, parts_t* out) {
  const int n = first->k > PRODUCT_PAIR_PARTS * MIN_TERMS ? PRODUCT_PAIR_PARTS : 1;
  *out = (parts_t){(int)up_to((first->k + n - 1) / n, 2 * SIDE), n};
  return shared_bytes(first, out) <= limit;
}

// ---- launches -----------------------------------------------------------------------------------

static void fill(const pair_kernel_t* k, int i, const assay_device_ptr_t* in,
                 product_args_t* args) {
  const cuda_product_t* p = &k->products[i];
  *args = p->args;
  args->x = in[p->x];
  if (p->w >= 0) args->w = in[p->w];
  cuda_program_fill(k->programs[i], in, &args->program);
}

static assay_status_t enqueue(assay_kernel_t* base, assay_queue_t* q, const assay_device_ptr_t* in,
                              const assay_device_ptr_t* out, assay_device_ptr_t scratch) {
  const pair_kernel_t* k = (const pair_kernel_t*)base;
  product_pair_args_t args;
  (void)scratch;
  fill(k, 0, in, &args.first);
  fill(k, 1, in + k->first_in, &args.second);
  args.part = k->parts.terms;
  args.parts = k->parts.n;
  args.first.y = out[0];
  args.second.y = out[1];
  return cuda_queue_launch(q, k->kernel, &k->grid, &args);
}

static void destroy(assay_kernel_t* base) {
  pair_kernel_t* k = (pair_kernel_t*)base;
  for (int i = 0; i < 2; i++) cuda_program_destroy(k->programs[i]);
  assay_free(k);
}

// ---- making -------------------------------------------------------------------------------------

// Products whose bits are those of tensor cores, of few rows, and weights whose terms lie side by
// side; something comes after it.
static assay_status_t read_one(const assay_sized_layer_t* l, const assay_kernel_t* k,
                               cuda_product_t* p, bool* ok) {
  const product_args_t* a = &p->args;
  *ok = l->layer->n_nodes > 1 && k->numerics && strcmp(k->numerics, "tensor") == 0;
  if (*ok) ASSAY_TRY(cuda_product_read(l, p, ok));
  if (!*ok) return NULL;
  cuda_product_join_places(p);
  *ok = p->left == CUDA_LEFT_MATRIX && p->in != ASSAY_TYPE_FLOAT && p->in == p->out &&
        !p->packing.size && cuda_weights_are_constant(l, p) && a->matrices == 1 && a->m <= ROWS &&
        a->k <= INT32_MAX / 64 && a->n <= INT32_MAX / 64 && a->x_k == 1 && a->w_k == 1 &&
        a->y_row == a->n;
  return NULL;
}

// Whether the second one multiplies the rows that the first one makes.
static bool follow(const assay_layer_pair_t* pair, const cuda_product_t* p) {
  const product_args_t *first = &p[0].args, *second = &p[1].args;
  const assay_sized_layer_t* l = pair->layers[1];
  return l->in[p[1].x].value == pair->layers[0]->out[0].value && p[0].out == p[1].in &&
         p[0].layout == p[1].layout && first->m == second->m && first->n == second->k &&
         second->x_row == first->y_row;
}

static int64_t limit_of(const assay_layer_pair_t* pair) {
  return cuda_own_of(pair->layers[0])->properties.shared_bytes - OTHER_BYTES;
}

static assay_status_t read_pair(const assay_layer_pair_t* pair, pair_kernel_t* k, bool* ok) {
  cuda_product_t* p = k->products;
  *ok = true;
  for (int i = 0; *ok && i < 2; i++)
    ASSAY_TRY(read_one(pair->layers[i], pair->kernels[i], &p[i], ok));
  *ok = *ok && follow(pair, p) && p[0].args.n <= MAX_COLUMNS &&
        p[0].args.n * p[0].args.k <= MAX_WEIGHTS &&
        find_parts(&p[0].args, limit_of(pair), &k->parts);
  return NULL;
}

// The forms of one layer's operands, for a kernel of that layer alone.
static bool find_forms(const pair_kernel_t* k, int i, assay_kernel_t* out) {
  const cuda_product_t* p = &k->products[i];
  *out = (assay_kernel_t){.in_place = -1};
  out->in[p->x] = (assay_storage_t){p->in, p->layout};
  if (p->w >= 0) out->in[p->w] = (assay_storage_t){p->in, ASSAY_LAYOUT_PLAIN};
  out->out[0] = (assay_storage_t){p->out, p->layout};
  return cuda_program_forms(k->programs[i], out);
}

// What the first one makes stays UNDEFINED among what the second one reads: only products read it.
static bool set_forms(const assay_layer_pair_t* pair, pair_kernel_t* k) {
  assay_kernel_t one;
  const size_t n[2] = {pair->layers[0]->n_in, pair->layers[1]->n_in};
  k->first_in = (int)n[0];
  for (int i = 0; i < 2; i++) {
    if (!find_forms(k, i, &one)) return false;
    if (i) one.in[k->products[i].x].type = ASSAY_TYPE_UNDEFINED;
    memcpy(k->base.in + (i ? n[0] : 0), one.in, n[i] * sizeof *one.in);
    k->base.out[i] = one.out[0];
  }
  return true;
}

static assay_status_t load(const assay_sized_layer_t* l, pair_kernel_t* k, bool* ok) {
  const product_args_t *first = &k->products[0].args, *second = &k->products[1].args;
  const cuda_own_t* own = cuda_own_of(l);
  const char* type = cuda_type_name(k->products[0].in);
  assay_str_t options = {0}, program = {0};
  *ok = cuda_program_text_with(k->programs[1], k->programs[0], &program);
  assay_str_printf(&options,
                   "-DIN=%s -DOUT=%s -DCONV=0 -DEPILOGUE=1 -DFIRST_PIECE=%d -DSECOND_PIECE=%d",
                   type, type, cuda_product_piece(first), cuda_product_piece(second));
  // What a kernel may ask for is one number for all layers that share it.
  const cuda_source_t source = {.file = "product_pair.cu",
                                .kernel = "product_pair",
                                .options = assay_str_get(&options),
                                .program = assay_str_get(&program),
                                .shared_bytes = own->properties.shared_bytes - OTHER_BYTES};
  k->grid = (cuda_grid_t){.blocks = (second->n + COLUMNS - 1) / COLUMNS,
                          .threads = THREADS,
                          .dependent = true,
                          .shared_bytes = (int)shared_bytes(first, &k->parts)};
  assay_status_t st = assay_status_join(assay_str_status(&options), assay_str_status(&program));
  if (!st && *ok) st = cuda_function_get(own->functions, &source, &k->kernel);
  assay_str_deinit(&options);
  assay_str_deinit(&program);
  return st;
}

static assay_status_t build(const assay_layer_pair_t* pair, pair_kernel_t* k, bool* ok) {
  for (int i = 0; *ok && i < 2; i++) {
    ASSAY_TRY(cuda_product_program(pair->layers[i], &k->products[i], &k->programs[i], ok));
    *ok = *ok && k->programs[i];
  }
  *ok = *ok && set_forms(pair, k);
  for (int i = 0; *ok && i < 2; i++)
    ASSAY_TRY(cuda_product_bring(pair->layers[i], &k->products[i]));
  return *ok ? load(pair->layers[0], k, ok) : NULL;
}

static assay_status_t make_pair(const assay_layer_pair_t* pair, assay_kernel_t** out) {
  pair_kernel_t* k = NULL;
  bool ok;
  ASSAY_TRY(ASSAY_NEW(&k));
  k->base = (assay_kernel_t){.in_place = -1, .enqueue = enqueue, .destroy = destroy};
  assay_status_t st = read_pair(pair, k, &ok);
  if (!st && ok) st = build(pair, k, &ok);
  if (st || !ok) return destroy(&k->base), st;
  *out = &k->base;
  return NULL;
}

const assay_tactic_t cuda_tactic_product_pair = {
    .name = "product_pair",
    .source = "assay",
    .numerics = "tensor",
    .make_pair = make_pair,
    .rounding = CUDA_TENSOR_ROUNDING,
};
