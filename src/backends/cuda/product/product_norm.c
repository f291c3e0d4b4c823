// A product and the normalization of its rows in one launch (kernels/product/product_norm.cu): a
// cluster of blocks makes whole rows, stores them, and normalizes what it stored.
#include <math.h>
#include <string.h>

#include "backends/cuda/product/bulk.h"
#include "backends/cuda/rows/norm.h"

extern const assay_tactic_t cuda_tactic_product_norm;

static const cuda_tile_t shapes[] = {
    {64, 32, 1, 1},   {64, 64, 1, 1},   {64, 96, 1, 1},   {64, 128, 1, 1}, {64, 192, 1, 1},
    {64, 256, 1, 1},  {128, 32, 2, 1},  {128, 64, 2, 1},  {128, 96, 2, 1}, {128, 128, 2, 1},
    {128, 160, 2, 1}, {128, 192, 2, 1}, {128, 256, 2, 1}, {192, 96, 3, 1}, {192, 128, 3, 1}};
enum { N_SHAPES = sizeof shapes / sizeof *shapes };
// Blocks of a cluster that every GPU of sm_90 has room for; rows that are brought at once, at
// least.
enum { MAX_CLUSTER = 8, PORTION = 8, WARP = 32 };

// ---- which tile ---------------------------------------------------------------------------------

static int cluster_of(const cuda_product_t* p, const cuda_tile_t* s) {
  return (int)((p->args.n + s->columns - 1) / s->columns);
}

// Blocks that have the same rows ask for a part each, of whole patterns of eight lines.
static int sharing_of(const cuda_product_t* p, const cuda_bulk_t* b, const cuda_tile_t* s) {
  const int cluster = cluster_of(p, s);
  return !b->windows && s->rows % (PORTION * cluster) == 0 ? cluster : 1;
}

// Microseconds of a step, as cuda_bulk_step_us, which knows of no left side that is shared.
static double step_us(const cuda_own_t* own, const cuda_tile_t* s, int64_t blocks, int sharing) {
  const double all = own->properties.multiprocessors;
  const double bytes = fmin(64, 31 * fmax(1, all / (double)blocks));
  const double clocks = 4 * (s->rows / 64) * (s->columns / 2.0 + 16);
  const double copies = ((double)s->rows / sharing + s->columns) * CUDA_BULK_STEP_BYTES / bytes;
  return fmax(fmax(clocks, copies) / 1700, 0.06);
}

// What comes behind sums: the cluster waits for each other, and each warp has some rows.
static double rows_us(const cuda_product_t* p, const cuda_tile_t* s) {
  const double warps = (double)cluster_of(p, s) * cuda_bulk_block_threads(s) / WARP;
  return 1 + 0.6 * ceil(s->rows / warps);
}

// As TOGETHER_BLOCKS of kernels/product/product_block.h.
static int together(const cuda_tile_t* s) {
  return s->columns > 128 || s->rows > 128 ? 1 : s->rows > 64 ? 2 : 3;
}

// Blocks that are in a multiprocessor together take as long for their steps as one after the other,
// and wait for other memory and for each other at the same time.
static double predict(const cuda_own_t* own, const cuda_product_t* p, const cuda_bulk_t* b,
                      const cuda_tile_t* s) {
  const int64_t blocks = cuda_tile_blocks(&p->args, s);
  const double each = (double)blocks / own->properties.multiprocessors;
  const double step = step_us(own, s, blocks, sharing_of(p, b, s));
  return ceil(each) * (double)cuda_bulk_steps(p) * step +
         ceil(each / together(s)) * (1 + rows_us(p, s));
}

// Whether a cluster of tiles covers the rows; one alone is no wider than it must be.
static bool covers(const cuda_product_t* p, const cuda_tile_t* s) {
  enum { OVER = 64 };
  const int cluster = cluster_of(p, s);
  return cluster <= MAX_CLUSTER && (cluster > 1 || s->columns - p->args.n < OVER) &&
         cuda_tile_blocks(&p->args, s) <= INT32_MAX;
}

// NULL: rows are too long for all of them.
static const cuda_tile_t* choose(const cuda_own_t* own, const cuda_product_t* p,
                                 const cuda_bulk_t* b) {
  const cuda_tile_t* best = NULL;
  for (int i = 0; i < N_SHAPES; i++) {
    const cuda_tile_t* s = &shapes[i];
    if (!covers(p, s)) continue;
    if (!best || predict(own, p, b, s) < predict(own, p, b, best)) best = s;
  }
  return best;
}

// ---- the kernel ---------------------------------------------------------------------------------

static void take_norm(const cuda_norm_t* n, int first, cuda_product_t* p) {
  p->normalized = true;
  p->norm_scale = first + n->scale;
  p->norm_bias = n->bias < 0 ? -1 : first + n->bias;
  p->args.norm = n->args;
}

static assay_status_t make_product(const assay_sized_layer_t* l, cuda_product_t* p,
                                   const cuda_bulk_t* b, const cuda_tile_t* s, const char* options,
                                   assay_kernel_t** out) {
  const cuda_own_t* own = cuda_own_of(l);
  const int bytes = cuda_bulk_step_bytes(s), cluster = cluster_of(p, s);
  const bool alone = cuda_bulk_is_alone(own, p, s);
  const int stages = cuda_bulk_block_stages(own, s, alone, cuda_bulk_steps(p), bytes);
  const cuda_bulk_kernel_t k = {.file = "product_norm.cu",
                                .name = "product_norm",
                                .options = options,
                                .blocks = cuda_tile_blocks(&p->args, s),
                                .stages = stages,
                                .threads = cuda_bulk_block_threads(s),
                                .shared_bytes = cuda_bulk_block_bytes(stages, bytes),
                                .cluster = cluster > 1 ? cluster : 0};
  if (k.shared_bytes > own->properties.shared_bytes) return NULL;
  ASSAY_TRY(cuda_bulk_get(l, b, p));
  return cuda_bulk_make(l, p, b, s, &k, out);
}

// Whether it is the normalization of the product's rows, as they are stored: nothing is moved in
// between, so that it finds them one after the other, whatever their shape is called.
static bool is_of_rows(const cuda_norm_t* n, const cuda_product_t* p) {
  return p->args.y_row == p->args.n && n->terms == p->args.n && n->rows == p->args.m &&
         n->in[n->x].type == p->out;
}

static assay_status_t make(const assay_layer_pair_t* pair, const cuda_norm_t* norm,
                           assay_kernel_t** out) {
  const assay_sized_layer_t* l = pair->layers[0];
  cuda_product_t p;
  cuda_bulk_t b;
  assay_str_t options = {0};
  bool ok = false;
  ASSAY_TRY(cuda_bulk_read(l, &p, &b, &ok));
  if (!ok || p.in == ASSAY_TYPE_FLOAT || !is_of_rows(norm, &p) || cuda_bulk_is_down_first(&p))
    return NULL;
  const cuda_tile_t* s = choose(cuda_own_of(l), &p, &b);
  if (!s) return NULL;
  p.x_sharing = sharing_of(&p, &b, s);
  take_norm(norm, (int)l->n_in, &p);
  assay_str_printf(&options, "-DCLUSTER=%d -DX_SHARING=%d ", cluster_of(&p, s), p.x_sharing);
  cuda_norm_print(pair->layers[1], norm, &options);
  assay_status_t st = assay_str_status(&options);
  if (!st) st = make_product(l, &p, &b, s, assay_str_get(&options), out);
  assay_str_deinit(&options);
  return st;
}

// ---- entry --------------------------------------------------------------------------------------

// Whether the first layer's bits are those of sums in tensor cores' order.
static bool has_bits(const assay_kernel_t* k) {
  return k->numerics && strcmp(k->numerics, cuda_tactic_product_norm.numerics) == 0;
}

// Of a kernel that was made for the first layer.
static void add_forms(const assay_layer_pair_t* pair, const cuda_norm_t* norm, assay_kernel_t* k) {
  const int first = (int)pair->layers[0]->n_in;
  for (int i = 0; i < (int)pair->layers[1]->n_in; i++)
    if (i != norm->x) k->in[first + i] = norm->in[i];
  k->out[1] = norm->out;
  if (norm->over) k->in_place = first + norm->x;
}

static assay_status_t make_pair(const assay_layer_pair_t* pair, assay_kernel_t** out) {
  cuda_norm_t norm;
  bool ok;
  if (strcmp(pair->kernels[1]->tactic->name, "rows") != 0 || !has_bits(pair->kernels[0]))
    return NULL;
  ASSAY_TRY(cuda_norm_read(pair->layers[1], &norm, &ok));
  if (!ok || norm.x != pair->input) return NULL;
  ASSAY_TRY(make(pair, &norm, out));
  if (*out) add_forms(pair, &norm, *out);
  return NULL;
}

const assay_tactic_t cuda_tactic_product_norm = {
    .name = "product_norm",
    .source = "assay",
    .numerics = "tensor",
    .make_pair = make_pair,
    .pairs_views = true,
    .rounding = CUDA_TENSOR_ROUNDING,
};
