// Products of fp32 on tensor cores by wgmma, of constant weights, both sides in two parts of tf32
// (kernels/product/product_parts.cu), where an accuracy gate lets it.
#include <math.h>

#include "backends/cuda/product/bulk.h"
#include "backends/layers/judged.h"
#include "base/shown.h"
#include "ops/matmul/tf32_products.h"

// Groups of four warps have 64 rows each.
static const cuda_tile_t shapes[] = {{64, 32, 1, 1},  {64, 64, 1, 1},  {64, 96, 1, 1},
                                     {64, 128, 1, 1}, {128, 64, 2, 1}, {128, 96, 2, 1},
                                     {128, 128, 2, 1}};
enum { N_SHAPES = sizeof shapes / sizeof *shapes };
enum { PARTS = 2, COLUMNS_OF_TWO = 96 };

static int step_bytes(const cuda_tile_t* s) {
  return (s->rows + PARTS * s->columns) * CUDA_BULK_STEP_BYTES;
}

// A block is alone, too, where its sums leave registers for no other one.
static int find_stages(const cuda_own_t* own, const cuda_product_t* p, const cuda_tile_t* s) {
  const bool alone = s->columns > COLUMNS_OF_TWO || cuda_bulk_is_alone(own, p, s);
  return cuda_bulk_block_stages(own, s, alone, cuda_bulk_steps(p), step_bytes(s));
}

// As cuda_bulk_step_us. A step has twelve products of 8 terms; where a thread takes the left side,
// and adds sums up, others multiply.
static double step_us(const cuda_own_t* own, const cuda_product_t* p, const cuda_tile_t* s) {
  enum { PRODUCTS = 12, TAKING = 200 };
  const double all = own->properties.multiprocessors;
  const double blocks = (double)cuda_tile_blocks(&p->args, s);
  const double bytes = fmin(64, 31 * fmax(1, all / blocks));
  const double clocks = PRODUCTS * (s->rows / 64) * (s->columns / 2.0 + 16);
  const double alone = s->rows > 64 ? 0 : TAKING;
  return fmax(clocks + alone, step_bytes(s) / bytes) / 1700;
}

static double predict(const cuda_own_t* own, const cuda_product_t* p, const cuda_tile_t* s) {
  const double waves =
      ceil((double)cuda_tile_blocks(&p->args, s) / own->properties.multiprocessors);
  return 1.3 + cuda_bulk_gather_us(p) +
         waves * (1 + (double)cuda_bulk_steps(p) * step_us(own, p, s));
}

// ---- the gate -----------------------------------------------------------------------------------

static assay_status_t judge(const void* user, const float* w, assay_sum_account_t* to) {
  const cuda_parts_t* p = user;
  const bool taps = p->tap_step != 0;
  const assay_split_weights_t weights = {.w = w,
                                         .columns = p->columns,
                                         .n = p->taps * p->channels,
                                         .column_step = p->column_step,
                                         .step = taps ? 1 : p->channel_step};
  return assay_tf32_judge(&weights, to);
}

// Rows of a sample. A matrix of two dimensions has a sample in each row.
static int64_t rows_of_sample(const assay_sized_layer_t* l, const cuda_product_t* p) {
  const assay_operand_t* x = &l->in[p->x];
  return x->rank > 2 ? p->args.m / (x->dims[0] > 0 ? x->dims[0] : 1) : 1;
}

// Few rows, columns or terms are done sooner by multiply-adds; the batch decides nothing.
static bool pays(const assay_sized_layer_t* l, const cuda_product_t* p) {
  return rows_of_sample(l, p) >= 16 && p->args.n >= 16 && p->args.k >= 16;
}

static assay_status_t ask(const assay_sized_layer_t* l, const cuda_product_t* p,
                          const cuda_bulk_t* b, bool* ok) {
  assay_sum_account_t account;
  assay_str_t key = {0};
  assay_str_printf_raw(&key, "%s judged for parts of tf32%s", b->split->value->name,
                       b->parts.column_step == 1 ? ", turned" : "");
  ASSAY_TRY(assay_judged(b->split, &key, judge, &b->parts, &account));
  assay_accuracy_gate_t gate = assay_judged_gate("product_3xtf32", ASSAY_FP32_TIGHT, &account);
  gate.fits = account.max > 0;
  gate.pays = pays(l, p);
  assay_sized_note_accuracy_gate(l, &gate);
  *ok = assay_accuracy_gate_allows(&gate, l->layers->fp32);
  return NULL;
}

// ---- the tactics --------------------------------------------------------------------------------

static assay_status_t read(const assay_sized_layer_t* l, cuda_product_t* p, cuda_bulk_t* b,
                           bool* ok) {
  *ok = assay_accuracy_gate_offers(l->layers->fp32, ASSAY_FP32_TIGHT);
  if (*ok) ASSAY_TRY(cuda_bulk_read_parts(l, p, b, ok));
  return *ok ? ask(l, p, b, ok) : NULL;
}

static assay_status_t variants(const assay_sized_layer_t* l, assay_variant_t* out, size_t* out_n) {
  cuda_product_t p;
  cuda_bulk_t b;
  bool ok = false;
  *out_n = 0;
  ASSAY_TRY(read(l, &p, &b, &ok));
  if (ok) cuda_tile_variants(l, &p, shapes, N_SHAPES, "3xtf32", predict, out, out_n);
  return NULL;
}

static assay_status_t make_variant(const assay_sized_layer_t* l, const assay_variant_t* v,
                                   assay_kernel_t** out) {
  cuda_product_t p;
  cuda_bulk_t b;
  bool ok = false;
  ASSAY_TRY(read(l, &p, &b, &ok));
  const cuda_tile_t* s = ok ? cuda_tile_find(&p, shapes, N_SHAPES, v) : NULL;
  if (!s) return NULL;
  const int stages = find_stages(cuda_own_of(l), &p, s);
  const cuda_bulk_kernel_t k = {.file = "product_parts.cu",
                                .name = "product_parts",
                                .blocks = cuda_tile_blocks(&p.args, s),
                                .stages = stages,
                                .threads = cuda_bulk_block_threads(s),
                                .shared_bytes = cuda_bulk_block_bytes(stages, step_bytes(s))};
  if (k.shared_bytes > cuda_own_of(l)->properties.shared_bytes) return NULL;
  ASSAY_TRY(cuda_bulk_get(l, &b, &p));
  return cuda_bulk_make(l, &p, &b, s, &k, out);
}

const assay_tactic_t cuda_tactic_product_3xtf32 = {
    .name = "product_3xtf32",
    .source = "assay",
    .variants = variants,
    .make_variant = make_variant,
    .rounding = CUDA_PARTS_ROUNDING,
};
