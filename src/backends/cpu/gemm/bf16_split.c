// MatMul, Gemm and Conv by products of bf16 parts on CPUs that multiply bf16 in tiles, where the
// setting of fp32 lets them serve a layer (docs/adr/0012-fp32-settings.md).
#include "backends/cpu/gemm/bf16_split.h"

#include <math.h>
#include <string.h>

#include "backends/cpu/conv/conv_operands.h"
#include "backends/cpu/gemm/gemm.h"
#include "backends/cpu/gemm/product.h"
#include "backends/cpu/range.h"
#include "backends/layers/judged.h"
#include "base/alloc.h"
#include "base/shown.h"
#include "ops/conv/conv.h"
#include "ops/matmul/split_products.h"

_Static_assert((int)ASSAY_SPLIT_UNIT == (int)CPU_BF16_SPLIT_UNIT,
               "the model counts the kernel's units");
_Static_assert((int)ASSAY_SPLIT_MIN_TERMS == (int)CPU_BF16_SPLIT_MIN_CHANNELS,
               "its bound counts on that many terms of a piece");

enum { X, W, BIAS };

static void destroy(assay_kernel_t* base) {
  cpu_bf16_split_t* k = (cpu_bf16_split_t*)base;
  cpu_program_destroy(k->program);
  assay_free(k->bias);
  assay_free(k->pieces);
  assay_free(k);
}

static int64_t panels(const cpu_bf16_split_t* k) {
  return (k->outputs + CPU_BF16_SPLIT_COLUMNS - 1) / CPU_BF16_SPLIT_COLUMNS;
}

// ---- weights ------------------------------------------------------------------------------------

typedef struct packing {
  const cpu_bf16_split_t* k;
  const assay_operand_t* w;
} packing_t;

// A unit of a column, from channel c of place q of the kernel on.
static void pack_unit(const cpu_bf16_split_t* k, const float* w, int64_t column, int64_t q,
                      int64_t c, uint16_t* panel) {
  enum { UNIT = CPU_BF16_SPLIT_UNIT };
  _Alignas(64) uint16_t parts[CPU_BF16_SPLIT_MAX_PARTS * UNIT];
  float x[UNIT] = {0};
  const int64_t n = k->channels - c < UNIT ? k->channels - c : UNIT;
  for (int64_t i = 0; i < n; i++)
    x[i] = w[column * k->column_step + (c + i) * k->channel_step + q * k->piece_step];
  cpu_bf16_split_row(k->parts, UNIT, x, k->range, parts);
  const int64_t first = q * k->units * UNIT + c;
  for (int p = 0; p < k->parts; p++)
    for (int64_t i = 0; i < UNIT; i++)
      panel[cpu_bf16_split_at(k->parts, p, first + i, column % CPU_BF16_SPLIT_COLUMNS)] =
          parts[p * UNIT + i];
}

static assay_status_t pack(void* user, void* to) {
  const packing_t* p = user;
  const cpu_bf16_split_t* k = p->k;
  const float* w = NULL;
  float* made = NULL;
  ASSAY_TRY(assay_operand_view(p->w, &w, &made));
  memset(to, 0, (size_t)(panels(k) * k->panel) * sizeof(uint16_t));
#pragma omp parallel for schedule(static)
  for (int64_t j = 0; j < panels(k); j++) {
    const int64_t end = (j + 1) * CPU_BF16_SPLIT_COLUMNS;
    for (int64_t q = 0; q < k->n_pieces; q++)
      for (int64_t c = 0; c < k->channels; c += CPU_BF16_SPLIT_UNIT)
        for (int64_t o = j * CPU_BF16_SPLIT_COLUMNS; o < end && o < k->outputs; o++)
          pack_unit(k, w, o, q, c, (uint16_t*)to + j * k->panel);
  }
  assay_free(made);
  return NULL;
}

static assay_status_t pack_weights(cpu_bf16_split_t* k, const assay_operand_t* w) {
  const packing_t p = {k, w};
  const void* packed = NULL;
  assay_str_t key = {0};
  k->panel = k->n_pieces * k->units * k->parts * CPU_BF16_SPLIT_UNIT * CPU_BF16_SPLIT_COLUMNS;
  assay_str_printf_raw(&key, "%s in %d parts of bf16, %lld places of %lld by %lld%s",
                       w->value->name, k->parts, (long long)k->n_pieces, (long long)k->channels,
                       (long long)k->outputs, k->column_step == 1 ? "" : ", turned");
  assay_status_t st = assay_weights_get_by(
      w->store, &key, (size_t)(panels(k) * k->panel) * sizeof(uint16_t), pack, &p, &packed);
  k->weights = packed;
  return st;
}

// ---- which layers -------------------------------------------------------------------------------

// What a layer multiplies; the sizes are in the kernel.
typedef struct reading {
  const assay_operand_t *x, *w, *bias;  // bias NULL: none
  assay_layout_t layout;
  int64_t rows;   // of the output for one sample
  int64_t taps;   // of these with places of the kernel: plain sums have no others
  bool filtered;  // Winograd's filtering takes it, too
} reading_t;

// Lines of one place, all of one image.
static void set_rows(cpu_bf16_split_t* k, int64_t rows) {
  k->samples = 1;
  k->y = (cpu_bf16_split_axis_t){
      .in = rows, .out = rows, .kernel = 1, .stride = 1, .dilation = 1, .step = 1};
  k->x = (cpu_bf16_split_axis_t){
      .in = 1, .out = 1, .kernel = 1, .stride = 1, .dilation = 1, .step = 1};
  k->source_width = 1;
  k->source_size = rows;
}

// Rows of a batch belong to no sample that could be told from another: of a matrix by itself each
// row may be a sample.
static bool read_product(const assay_sized_layer_t* l, cpu_bf16_split_t* k, reading_t* r) {
  cpu_product_t p = {0};
  if (!cpu_product_read(l, &p) || !p.weights->constant || p.weights->rank != 2 || p.x_swapped)
    return false;
  r->x = p.in;
  r->w = p.weights;
  r->bias = p.bias;
  r->layout = ASSAY_LAYOUT_PLAIN;
  r->rows = r->taps = r->x->rank > 2 ? p.x[0] / r->x->dims[0] : 1;
  k->channels = p.x[1];
  k->outputs = p.w[1];
  k->column_step = p.w_swapped ? k->channels : 1;
  k->channel_step = p.w_swapped ? 1 : k->outputs;
  set_rows(k, p.x[0]);
  return true;
}

static cpu_bf16_split_axis_t axis_of(const assay_window_axis_t* a) {
  return (cpu_bf16_split_axis_t){.in = a->in,
                                 .out = a->out,
                                 .kernel = a->kernel,
                                 .stride = a->stride,
                                 .dilation = a->dilation,
                                 .before = a->pads[0],
                                 .step = 1};
}

// Of a kernel of one place only the places are split that it meets.
static void skip_places(cpu_bf16_split_axis_t* a) {
  a->step = a->stride;
  a->stride = 1;
  a->in = a->out;
}

static void set_image(cpu_bf16_split_t* k, const assay_conv_t* s) {
  const assay_window_axis_t *y = &s->w.axis[0], *x = &s->w.axis[1];
  const bool one = s->kernel_size == 1 && !y->pads[0] && !y->pads[1] && !x->pads[0] && !x->pads[1];
  if (one && s->in_size == s->out_size) {
    set_rows(k, s->n * s->in_size);
    return;
  }
  k->samples = s->n;
  k->y = axis_of(y);
  k->x = axis_of(x);
  k->source_width = x->in;
  k->source_size = s->in_size;
  if (!one) return;
  skip_places(&k->y);
  skip_places(&k->x);
}

static assay_status_t read_conv(const assay_sized_layer_t* l, cpu_bf16_split_t* k, reading_t* r,
                                bool* ok) {
  const assay_node_t* n = l->layer->nodes[0];
  const bool has_bias = n->n_inputs > BIAS && n->inputs[BIAS];
  assay_conv_t s;
  r->x = assay_sized_input(l, n->inputs[X]);
  r->w = assay_sized_input(l, n->inputs[W]);
  r->bias = has_bias ? assay_sized_input(l, n->inputs[BIAS]) : NULL;
  *ok = r->x && r->w && r->w->constant && r->x->rank == 4 && r->x->size && l->out[0].value &&
        l->out[0].size && r->x->type == r->w->type && (!has_bias || (r->bias && r->bias->constant));
  if (!*ok) return NULL;
  const assay_tensor_t x = cpu_operand_head(r->x), w = cpu_operand_head(r->w);
  ASSAY_TRY(assay_conv_read(n, &x, &w, NULL, false, &s));
  *ok = s.group == 1 && (!has_bias || r->bias->size == s.m);
  r->filtered = s.kernel_size == 9;
  r->taps = 1;
  for (int i = 0; *ok && i < s.w.rank; i++) {
    const assay_window_axis_t* a = &s.w.axis[i];
    *ok = a->pads[0] >= 0 && a->pads[1] >= 0;
    r->filtered &= a->kernel == 3 && a->stride == 1;
    r->taps *= assay_window_taps(a);
  }
  r->layout = ASSAY_LAYOUT_CHANNELS_LAST;
  r->rows = s.out_size;
  k->channels = s.c;
  k->outputs = s.m;
  k->column_step = s.c * s.kernel_size;
  k->channel_step = s.kernel_size;
  k->piece_step = 1;
  set_image(k, &s);
  return NULL;
}

// Layers of fp32 that begin with a product of that kind.
static assay_status_t read_layer(const assay_sized_layer_t* l, cpu_bf16_split_t* k, reading_t* r,
                                 bool* ok) {
  const assay_node_t* n = l->layer->nodes[0];
  *ok = !*n->domain && l->layer->format == ASSAY_FORMAT_FP32 && l->n_out == 1;
  if (*ok && strcmp(n->op_type, "Conv") == 0)
    ASSAY_TRY(read_conv(l, k, r, ok));
  else
    *ok = *ok && read_product(l, k, r);
  *ok = *ok && r->x->type == ASSAY_TYPE_FLOAT && l->out[0].type == ASSAY_TYPE_FLOAT &&
        k->channels >= CPU_BF16_SPLIT_MIN_CHANNELS;
  k->n_pieces = k->y.kernel * k->x.kernel;
  k->units = (k->channels + CPU_BF16_SPLIT_UNIT - 1) / CPU_BF16_SPLIT_UNIT;
  return NULL;
}

// ---- accuracy gates ----------------------------------------------------------------------------

typedef struct judging {
  assay_algorithm_t algorithm;
  const cpu_bf16_split_t* k;
} judging_t;

// Sums in the order of the model's weights; the kernel's order does not change their account.
static assay_status_t judge(const void* user, const float* w, assay_sum_account_t* to) {
  const judging_t* j = user;
  const cpu_bf16_split_t* k = j->k;
  const assay_split_weights_t weights = {.w = w,
                                         .columns = k->outputs,
                                         .n = k->channels * k->n_pieces,
                                         .column_step = k->column_step,
                                         .step = k->column_step == 1 ? k->channel_step : 1};
  return assay_split_judge(j->algorithm, &weights, to);
}

static assay_status_t account_of(assay_algorithm_t algorithm, const cpu_bf16_split_t* k,
                                 const assay_operand_t* w, assay_sum_account_t* out) {
  const judging_t j = {algorithm, k};
  assay_str_t key = {0};
  assay_str_printf_raw(&key, "%s judged for %d parts%s", w->value->name, k->parts,
                       k->column_step == 1 ? "" : ", turned");
  return assay_judged(w, &key, judge, &j, out);
}

// The work of one sample in nanoseconds of one core, so that neither the batch nor the day decides;
// measured on a CPU of this kind: products of tiles' rows, columns and units as they are filled up;
// splitting; weights, which come from afar for each block; and putting sums to their places.
static double split_work(const cpu_bf16_split_t* k, const reading_t* r) {
  const double macs = k->parts == 2 ? 0.0046 : 0.0074, splitting = 0.35, byte = 0.03, put = 0.4;
  const double columns = (double)(panels(k) * CPU_BF16_SPLIT_COLUMNS);
  const double terms = (double)(k->n_pieces * k->units * CPU_BF16_SPLIT_UNIT);
  double rows = (double)r->rows, places = rows;
  if (k->n_pieces > 1 || k->y.stride > 1 || k->x.stride > 1) {
    const bool flat = k->y.stride == 1 && k->x.stride == 1;
    const int64_t run =
        (k->x.out + CPU_BF16_SPLIT_TILE - 1) / CPU_BF16_SPLIT_TILE * CPU_BF16_SPLIT_TILE;
    places = (double)(k->y.in * k->x.in);
    rows = (double)(k->y.out * (flat ? k->x.in + k->x.before : run));
  }
  rows = ceil(rows / CPU_BF16_SPLIT_TILE) * CPU_BF16_SPLIT_TILE;
  const double numbers = places * (double)(k->units * CPU_BF16_SPLIT_UNIT);
  const double blocks = fmax(1, numbers * 2 * k->parts / CPU_BF16_SPLIT_BLOCK_BYTES);
  return rows * columns * terms * macs + numbers * splitting +
         blocks * columns * terms * 2 * k->parts * byte + (double)(r->rows * k->outputs) * put;
}

static double plain_work(const cpu_bf16_split_t* k, const reading_t* r) {
  const double macs = 0.0135, byte = 0.03;
  const double columns = (double)((k->outputs + 15) / 16 * 16);
  return ((double)r->taps * macs + (double)k->n_pieces * 4 * byte) * columns * (double)k->channels;
}

// Faster than plain sums by so much that it stays so where other threads want the same memory, and
// faster than what Winograd's filtering makes of them in the same setting.
static bool pays(const cpu_bf16_split_t* k, const reading_t* r) {
  static const double max[2][2] = {{0.8, 0.65}, {0.72, 0.45}};  // by three or six, and filtered
  return cpu_bf16_split_mode() & CPU_BF16_SPLIT_ALWAYS ||
         split_work(k, r) < max[k->parts == 3][r->filtered] * plain_work(k, r);
}

// ---- building -----------------------------------------------------------------------------------

static assay_status_t build(cpu_bf16_split_t* k, const assay_sized_layer_t* l, const reading_t* r,
                            const assay_sum_account_t* account, bool* ok) {
  k->input = (int)(r->x - l->in);
  k->range = cpu_range_of(account);
  k->base.in[k->input] = (assay_storage_t){ASSAY_TYPE_FLOAT, r->layout};
  k->base.out[0] = (assay_storage_t){ASSAY_TYPE_FLOAT, r->layout};
  k->model = r->w->constant;
  ASSAY_TRY(cpu_program_behind(l, r->layout, &k->base, &k->program, ok));
  if (!*ok) return NULL;
  ASSAY_TRY(assay_operand_padded_floats(r->bias, panels(k) * CPU_BF16_SPLIT_COLUMNS, &k->bias));
  ASSAY_TRY(pack_weights(k, r->w));
  return cpu_bf16_split_plan(k);
}

// Inputs out of range are slow: what is in range has to be nearly all that there is.
static bool leaves_range(const assay_sum_account_t* a) {
  return a->min <= 0x1p-60 && a->max >= 0x1p60;
}

static assay_status_t ask(const assay_sized_layer_t* l, const char* name,
                          assay_algorithm_t algorithm, assay_fp32_t asks, cpu_bf16_split_t* k,
                          bool* ok) {
  reading_t r = {0};
  assay_sum_account_t account;
  ASSAY_TRY(read_layer(l, k, &r, ok));
  if (!*ok) return NULL;
  ASSAY_TRY(account_of(algorithm, k, r.w, &account));
  assay_accuracy_gate_t gate = assay_judged_gate(name, asks, &account);
  gate.fits = leaves_range(&account);
  gate.pays = pays(k, &r);
  assay_sized_note_accuracy_gate(l, &gate);
  *ok = assay_accuracy_gate_allows(&gate, l->layers->fp32);
  return *ok ? build(k, l, &r, &account, ok) : NULL;
}

static assay_status_t make(const assay_sized_layer_t* l, const char* name,
                           assay_algorithm_t algorithm, assay_fp32_t asks, assay_kernel_t** out) {
  cpu_bf16_split_t* k = NULL;
  bool ok = false;
  if (!assay_accuracy_gate_offers(l->layers->fp32, asks) ||
      !(cpu_bf16_split_has_tiles() || cpu_bf16_split_mode() & CPU_BF16_SPLIT_IMITATED))
    return NULL;
  ASSAY_TRY(ASSAY_NEW(&k));
  k->base = (assay_kernel_t){.in_place = -1, .run = cpu_bf16_split_run, .destroy = destroy};
  k->parts = assay_split_parts(algorithm);
  assay_status_t st = ask(l, name, algorithm, asks, k, &ok);
  if (st || !ok) return destroy(&k->base), st;
  *out = &k->base;
  return NULL;
}

// ---- rows ---------------------------------------------------------------------------------------

static assay_status_t make_3(const assay_sized_layer_t* l, assay_kernel_t** out) {
  return make(l, "split_3", ASSAY_ALGORITHM_SPLIT_3, ASSAY_FP32_BOUND, out);
}

static assay_status_t make_6(const assay_sized_layer_t* l, assay_kernel_t** out) {
  return make(l, "split_6", ASSAY_ALGORITHM_SPLIT_6, ASSAY_FP32_TIGHT, out);
}

const assay_tactic_t cpu_tactic_split_3 = {
    .name = "split_3",
    .source = "assay",
    .make = make_3,
    .rounding = {CPU_FLOAT_SUMS, .algorithm = ASSAY_ALGORITHM_SPLIT_3},
};

const assay_tactic_t cpu_tactic_split_6 = {
    .name = "split_6",
    .source = "assay",
    .make = make_6,
    .rounding = {CPU_FLOAT_SUMS, .algorithm = ASSAY_ALGORITHM_SPLIT_6},
};
