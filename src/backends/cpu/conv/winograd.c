// Conv by Winograd's minimal filtering, where the setting of fp32 lets it serve a layer
// (docs/adr/0012-fp32-settings.md).
#include "backends/cpu/conv/winograd.h"

#include <string.h>

#include "backends/cpu/conv/conv_operands.h"
#include "backends/cpu/conv/direct_kernel.h"
#include "backends/cpu/pointwise/chain.h"
#include "backends/cpu/range.h"
#include "backends/layers/judged.h"
#include "base/alloc.h"
#include "base/shown.h"
#include "ops/conv/conv_winograd.h"
#include "ops/conv/winograd.h"

enum { X, W, BIAS };

static void destroy(assay_kernel_t* base) {
  cpu_winograd_t* k = (cpu_winograd_t*)base;
  cpu_program_destroy(k->program);
  assay_free(k->bias);
  assay_free(k->zeros);
  assay_free(k);
}

// ---- weights ------------------------------------------------------------------------------------

typedef struct packing {
  const cpu_winograd_t* k;
  const assay_winograd_t* f;
  const assay_operand_t* w;
} packing_t;

enum { LANES = ASSAY_WINOGRAD_LANES };
_Static_assert(CPU_PANEL % LANES == 0, "lanes lie in one panel");

// The kernels of one channel of the input and so many of the output's.
static void pack_lanes(const packing_t* p, const float* w, int lanes, float* to) {
  const cpu_winograd_t* k = p->k;
  const int64_t step = cpu_panel_padded(k->outputs) * k->channels;
  double u[ASSAY_WINOGRAD_TILE * ASSAY_WINOGRAD_TILE * LANES];
  for (int l = 0; l < lanes; l++)
    for (int i = 0; i < 9; i++) u[i * lanes + l] = (double)w[l * k->channels * 9 + i];
  assay_winograd_transform_lanes(2, k->in, 3, &p->f->g[0][0], ASSAY_WINOGRAD_KERNEL, lanes, u);
  for (int q = 0; q < k->points; q++)
    for (int l = 0; l < lanes; l++) to[q * step + l] = (float)u[q * lanes + l];
}

// Transformed in float64, and rounded once.
static assay_status_t pack(void* user, void* to) {
  const packing_t* p = user;
  const cpu_winograd_t* k = p->k;
  const int64_t all = cpu_panel_padded(k->outputs);
  float *out = to, *made = NULL;
  const float* weights = NULL;
  ASSAY_TRY(assay_operand_view(p->w, &weights, &made));
  if (all > k->outputs) memset(out, 0, (size_t)(k->points * all * k->channels) * sizeof *out);
#pragma omp parallel for schedule(static)
  for (int64_t o = 0; o < k->outputs; o += LANES)
    for (int64_t c = 0; c < k->channels; c++)
      pack_lanes(p, weights + (o * k->channels + c) * 9,
                 k->outputs - o < LANES ? (int)(k->outputs - o) : LANES,
                 out + o / CPU_PANEL * CPU_PANEL * k->channels + c * CPU_PANEL + o % CPU_PANEL);
  assay_free(made);
  return NULL;
}

static assay_status_t pack_weights(cpu_winograd_t* k, const assay_winograd_t* f,
                                   const assay_operand_t* w) {
  const packing_t p = {k, f, w};
  const void* packed = NULL;
  assay_str_t key = {0};
  assay_str_printf_raw(&key, "%s as %s for F(%d,3) in panels of %d, %lld by %lld", w->value->name,
                       assay_type_name(w->type), k->out, CPU_PANEL, (long long)k->channels,
                       (long long)k->outputs);
  assay_status_t st = assay_weights_get_by(
      w->store, &key,
      (size_t)(k->points * cpu_panel_padded(k->outputs) * k->channels) * sizeof(float), pack, &p,
      &packed);
  k->weights = packed;
  return st;
}

// ---- accuracy gates ----------------------------------------------------------------------------

typedef struct judging {
  const assay_winograd_t* f;
  const assay_conv_t* s;
} judging_t;

static assay_status_t judge(const void* user, const float* w, assay_sum_account_t* to) {
  const judging_t* j = user;
  return assay_winograd_judge(j->f, j->s, w, to);
}

static assay_status_t account_of(const assay_winograd_t* f, const assay_conv_t* s,
                                 const assay_operand_t* w, assay_sum_account_t* out) {
  const judging_t j = {f, s};
  assay_str_t key = {0};
  assay_str_printf_raw(&key, "%s as %s judged for F(%d,3)", w->value->name,
                       assay_type_name(w->type), f->out);
  return assay_judged(w, &key, judge, &j, out);
}

// The work of one sample, so that neither the batch nor the day decides, in units of vector
// instructions: products; transforms, which load, add and store; and weights, which come from
// memory.
static double work_of(const assay_winograd_t* f, const assay_conv_t* s) {
  enum { WEIGHT = 24 };
  const assay_window_axis_t *y = &s->w.axis[0], *x = &s->w.axis[1];
  const double points = f ? f->in * f->in : 9;
  const double in = (double)((s->cg + 15) / 16), out = (double)((s->m + 31) / 32 * 2);
  const double weights = WEIGHT * points * (double)s->cg * out;
  // Plain convolutions make no other products than those of the taps.
  if (!f) return (double)(assay_window_taps(y) * assay_window_taps(x) * s->cg) * out + weights;
  const double tiles =
      (double)(assay_conv_winograd_tiles(y, f->out) * assay_conv_winograd_tiles(x, f->out));
  const double products = points * tiles * (double)s->cg * out;
  return products + 4 * points * tiles * (in + out) + weights;
}

// By this model: faster than plain convolutions, and than the other algorithm.
static bool pays(const assay_winograd_t* f, const assay_conv_t* s) {
  const double work = work_of(f, s);
  const bool larger = f == assay_winograd_of(ASSAY_ALGORITHM_WINOGRAD_4_3);
  return s->cg >= 16 && s->m >= 16 && 1.1 * work < work_of(NULL, s) &&
         (!larger || work < work_of(assay_winograd_of(ASSAY_ALGORITHM_WINOGRAD_2_3), s));
}

// ---- which layers -------------------------------------------------------------------------------

typedef struct reading {
  assay_conv_t s;
  cpu_conv_operands_t o;
} reading_t;

// Layers that begin with a convolution of that kind and have sums of float32: not where pairs of
// bf16 are multiplied, twice as many at a time.
static assay_status_t read_layer(const assay_sized_layer_t* l, reading_t* r, bool* out_ok) {
  *out_ok = false;
  if (!cpu_conv_operands(l, &r->o) || r->o.x->rank != 4 ||
      !assay_type_is_kernel_float(r->o.x->type) || r->o.weights->type != r->o.x->type ||
      !assay_type_is_kernel_float(l->out[0].type))
    return NULL;
  const direct_way_t* way = cpu_direct_way(r->o.x->type);
  if (way && way->pairs) return NULL;
  ASSAY_TRY(cpu_conv_read(l, &r->o, &r->s, out_ok));
  const assay_rounding_t rounding = {.algorithm = ASSAY_ALGORITHM_WINOGRAD_2_3};
  *out_ok = *out_ok && r->s.group == 1 && assay_conv_winograd_fits(&rounding, &r->s);
  return NULL;
}

static void set_sizes(cpu_winograd_t* k, const reading_t* r) {
  const assay_window_axis_t *y = &r->s.w.axis[0], *x = &r->s.w.axis[1];
  k->samples = r->s.n;
  k->channels = r->s.c;
  k->outputs = r->s.m;
  k->height = y->in;
  k->width = x->in;
  k->out_height = y->out;
  k->out_width = x->out;
  k->top = y->pads[0];
  k->left = x->pads[0];
  k->apart[0] = y->dilation;
  k->apart[1] = x->dilation;
  k->tiles_high = assay_conv_winograd_tiles(y, k->out);
  k->tiles_wide = assay_conv_winograd_tiles(x, k->out);
  k->tiles = k->samples * k->tiles_high * k->tiles_wide;
}

static assay_status_t build(cpu_winograd_t* k, const assay_sized_layer_t* l, const reading_t* r,
                            const assay_winograd_t* f, const assay_sum_account_t* account,
                            bool* out_ok) {
  k->input = (int)(r->o.x - l->in);
  k->type = r->o.x->type;
  k->out = f->out;
  k->in = f->in;
  k->points = f->in * f->in;
  k->transform_in = f->out == 2 ? cpu_winograd_in_2 : cpu_winograd_in_4;
  k->transform_out = f->out == 2 ? cpu_winograd_out_2 : cpu_winograd_out_4;
  k->range = cpu_range_of(account);
  k->base.in[k->input] = (assay_storage_t){k->type, ASSAY_LAYOUT_CHANNELS_LAST};
  k->base.out[0] = (assay_storage_t){l->out[0].type, ASSAY_LAYOUT_CHANNELS_LAST};
  k->model = r->o.weights->constant;
  k->narrow = cpu_winograd_level() == CPU_WINOGRAD_NARROW;
  set_sizes(k, r);
  ASSAY_TRY(cpu_program_behind(l, ASSAY_LAYOUT_CHANNELS_LAST, &k->base, &k->program, out_ok));
  if (!*out_ok) return NULL;
  const cpu_link_t* only = k->program ? cpu_program_only_link(k->program) : NULL;
  k->relu = only && only->kind == CPU_LINK_RELU;
  ASSAY_TRY(assay_operand_padded_floats(r->o.bias, cpu_panel_padded(k->outputs), &k->bias));
  ASSAY_TRY(assay_new_array((size_t)k->channels, sizeof *k->zeros, &k->zeros));
  ASSAY_TRY(pack_weights(k, f, r->o.weights));
  cpu_winograd_plan(k);
  return NULL;
}

static assay_status_t make(const assay_sized_layer_t* l, const char* name,
                           assay_algorithm_t algorithm, assay_fp32_t asks, assay_kernel_t** out) {
  const assay_winograd_t* f = assay_winograd_of(algorithm);
  assay_sum_account_t account;
  reading_t r = {0};
  bool ok = false;
  if (!assay_accuracy_gate_offers(l->layers->fp32, asks) || !cpu_winograd_level()) return NULL;
  ASSAY_TRY(read_layer(l, &r, &ok));
  if (!ok) return NULL;
  ASSAY_TRY(account_of(f, &r.s, r.o.weights, &account));
  assay_accuracy_gate_t gate = assay_judged_gate(name, asks, &account);
  gate.fits = account.max > account.min;
  gate.pays = pays(f, &r.s);
  assay_sized_note_accuracy_gate(l, &gate);
  if (!assay_accuracy_gate_allows(&gate, l->layers->fp32)) return NULL;
  cpu_winograd_t* k = NULL;
  ASSAY_TRY(ASSAY_NEW(&k));
  k->base = (assay_kernel_t){.in_place = -1, .run = cpu_winograd_run, .destroy = destroy};
  assay_status_t st = build(k, l, &r, f, &account, &ok);
  if (st || !ok) return destroy(&k->base), st;
  *out = &k->base;
  return NULL;
}

// ---- rows ---------------------------------------------------------------------------------------

static assay_status_t make_2_3(const assay_sized_layer_t* l, assay_kernel_t** out) {
  return make(l, "winograd_2_3", ASSAY_ALGORITHM_WINOGRAD_2_3, ASSAY_FP32_TIGHT, out);
}

static assay_status_t make_4_3(const assay_sized_layer_t* l, assay_kernel_t** out) {
  return make(l, "winograd_4_3", ASSAY_ALGORITHM_WINOGRAD_4_3, ASSAY_FP32_BOUND, out);
}

const assay_tactic_t cpu_tactic_winograd_4_3 = {
    .name = "winograd_4_3",
    .source = "assay",
    .make = make_4_3,
    .rounding = {CPU_FLOAT_SUMS, .algorithm = ASSAY_ALGORITHM_WINOGRAD_4_3},
};

const assay_tactic_t cpu_tactic_winograd_2_3 = {
    .name = "winograd_2_3",
    .source = "assay",
    .make = make_2_3,
    .rounding = {CPU_FLOAT_SUMS, .algorithm = ASSAY_ALGORITHM_WINOGRAD_2_3},
};
