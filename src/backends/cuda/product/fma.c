// Products in float32 by fused multiply-adds: tiles, and how long they take.
#include "backends/cuda/product/fma.h"

#include <math.h>

enum { TERMS = 32, STEP_BYTES = 128, PIECE = 4, MIN_STAGES = 2, MAX_STAGES = 6, WARP = 32 };
// Shared memory of a block besides steps; threads of a multiprocessor that registers allow, of the
// larger parts and of the smaller ones (the kernel's TOGETHER_THREADS).
enum { OTHER_BYTES = 4 << 10, LARGE_PART = 16, LARGE_THREADS = 256, SMALL_THREADS = 384 };

static bool joins(const product_args_t* a) { return PRODUCT_CHAIN(a->k) != a->k; }

static int step_bytes(const cuda_tile_t* t, int groups) {
  return groups * (t->rows + t->columns) * STEP_BYTES;
}

// Blocks that a multiprocessor has at once, as far as registers go.
static int together(const cuda_tile_t* t, int threads) {
  const int most = t->down * t->across > LARGE_PART ? LARGE_THREADS : SMALL_THREADS;
  return threads < most ? most / threads : 1;
}

// As many stages as there is memory for, where a multiprocessor gets so many blocks.
void cuda_fma_find(const cuda_own_t* own, const product_args_t* a, const cuda_tile_t* tile,
                   int groups, cuda_fma_t* out, bool* ok) {
  const int threads = groups * (tile->rows / tile->down) * (tile->columns / tile->across);
  const int64_t each = (cuda_tile_blocks(a, tile) - 1) / own->properties.multiprocessors + 1;
  const int most = together(tile, threads), blocks = each < most ? (int)each : most;
  const int waiting = groups == 1 && joins(a) ? tile->rows * tile->columns * (int)sizeof(float) : 0;
  const int all = own->properties.shared_bytes / blocks - OTHER_BYTES;
  int stages = (all - waiting) / step_bytes(tile, groups);
  stages = stages < MIN_STAGES ? MIN_STAGES : stages > MAX_STAGES ? MAX_STAGES : stages;
  const int steps = stages * step_bytes(tile, groups) + waiting;
  const int sums = groups * cuda_tile_sums_bytes(tile);
  *out = (cuda_fma_t){.tile = tile,
                      .groups = groups,
                      .stages = stages,
                      .threads = threads,
                      .shared_bytes = steps > sums ? steps : sums};
  *ok =
      out->shared_bytes + OTHER_BYTES <= own->properties.shared_bytes && (groups == 1 || joins(a));
}

void cuda_fma_options(const product_args_t* a, const cuda_fma_t* f, assay_str_t* out) {
  assay_str_printf(out, "-DTM=%d -DTN=%d -DGROUPS=%d -DJOINS=%d", f->tile->down, f->tile->across,
                   f->groups, joins(a));
}

// ---- how long -----------------------------------------------------------------------------------

// Clocks of a step of a block that has a multiprocessor to itself, and of one beside others.
typedef struct step {
  double alone, beside;
} step_t;

// What a warp issues, an instruction a clock of its quarter of the multiprocessor: multiply-adds,
// reads of four terms, and copies with their addresses. Shared memory serves a read of 16 bytes in
// two clocks. A warp that has its quarter to itself waits for reads, and at the end of a step.
enum { OF_COPY = 4, OF_STEP = 60, READ_CLOCKS = 2, WAIT_CLOCKS = 250, QUARTERS = 4 };
static step_t step_of(const cuda_tile_t* t, int groups, int threads, bool bulk) {
  const double warps = (double)threads / WARP, outputs = t->down * t->across;
  const double reads = TERMS / 4.0 * (t->down + t->across);
  const double copies = bulk ? 0 : (double)step_bytes(t, groups) / 16 / threads;
  const double issued = TERMS * outputs + reads + OF_COPY * copies + OF_STEP;
  const double served = READ_CLOCKS * reads * warps;
  const step_t s = {fmax(issued * fmax(1, warps / QUARTERS), served) + WAIT_CLOCKS,
                    fmax(issued * warps / QUARTERS, served)};
  return s;
}

// A left side that threads read element by element takes several times as long.
enum { CLOCKS_OF_US = 1700 };
double cuda_fma_predict(const cuda_own_t* own, const cuda_product_t* p, const cuda_tile_t* t,
                        int groups, bool bulk) {
  const int threads = groups * (t->rows / t->down) * (t->columns / t->across);
  const double each = ceil((double)cuda_tile_blocks(&p->args, t) / own->properties.multiprocessors);
  const double at_once = fmin(each, together(t, threads));
  const double terms = groups > 1 ? (double)PRODUCT_CHAIN(p->args.k) : (double)p->args.k;
  const double slower = cuda_x_is_fast(&p->args, p->left, PIECE) ? 1 : CUDA_BY_ELEMENTS;
  const step_t s = step_of(t, groups, threads, bulk);
  const double clocks = fmax(each * s.beside, ceil(each / at_once) * s.alone);
  return 2 + 0.5 * ceil(each / at_once) + slower * ceil(terms / TERMS) * clocks / CLOCKS_OF_US;
}

static double predict_alone(const cuda_own_t* own, const cuda_product_t* p, const cuda_tile_t* t) {
  return cuda_fma_predict(own, p, t, 1, false);
}
static double predict_shared(const cuda_own_t* own, const cuda_product_t* p, const cuda_tile_t* t) {
  return cuda_fma_predict(own, p, t, CUDA_FMA_SHARED, false);
}

// ---- layers -------------------------------------------------------------------------------------

static assay_status_t read(const assay_sized_layer_t* l, cuda_product_t* p, bool* ok) {
  ASSAY_TRY(cuda_product_read(l, p, ok));
  *ok = *ok && p->in == ASSAY_TYPE_FLOAT && !p->tf32;
  return NULL;
}

assay_status_t cuda_fma_variants(const assay_sized_layer_t* l, const cuda_tile_t* tiles, int n,
                                 int groups, assay_variant_t* out, size_t* out_n) {
  cuda_product_t p;
  cuda_fma_t f;
  bool ok = false;
  *out_n = 0;
  ASSAY_TRY(read(l, &p, &ok));
  for (int i = 0; ok && i < n; i++) {
    bool fits;
    cuda_fma_find(cuda_own_of(l), &p.args, &tiles[i], groups, &f, &fits);
    if (!fits) continue;
    cuda_tile_variants(l, &p, &tiles[i], 1, "fma", groups > 1 ? predict_shared : predict_alone, out,
                       out_n);
  }
  return NULL;
}

assay_status_t cuda_fma_make(const assay_sized_layer_t* l, const assay_variant_t* v,
                             const cuda_tile_t* tiles, int n, int groups, assay_kernel_t** out) {
  cuda_product_t p;
  cuda_fma_t f;
  bool ok = false;
  assay_str_t options = {0};
  ASSAY_TRY(read(l, &p, &ok));
  const cuda_tile_t* t = ok ? cuda_tile_find(&p, tiles, n, v) : NULL;
  if (!t) return NULL;
  cuda_fma_find(cuda_own_of(l), &p.args, t, groups, &f, &ok);
  if (!ok) return NULL;
  assay_str_printf(&options,
                   "-DOUT=%s -DCONV=%d -DX_FAST=%d -DW_FAST=%d -DW_CONSTANT=%d -DBM=%d -DBN=%d "
                   "-DSTAGES=%d ",
                   cuda_type_name(p.out), (int)p.left, cuda_x_is_fast(&p.args, p.left, PIECE),
                   cuda_w_way(&p.args, PIECE), cuda_weights_are_constant(l, &p), t->rows,
                   t->columns, f.stages);
  cuda_fma_options(&p.args, &f, &options);
  const cuda_source_t source = {.file = "product_fma.cu",
                                .kernel = "product_fma",
                                .options = assay_str_get(&options),
                                .shared_bytes = f.shared_bytes};
  const cuda_grid_t grid = {.blocks = cuda_tile_blocks(&p.args, t),
                            .threads = f.threads,
                            .dependent = true,
                            .shared_bytes = f.shared_bytes};
  assay_status_t st = assay_str_status(&options);
  if (!st) st = cuda_product_kernel(l, &p, &source, &grid, out);
  assay_str_deinit(&options);
  return st;
}
