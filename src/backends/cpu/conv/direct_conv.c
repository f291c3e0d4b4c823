// Which convolutions are direct ones (direct_conv.h), and how their kernels are made.
#include "backends/cpu/conv/direct_conv.h"

#include <string.h>

#include "backends/cpu/conv/conv_operands.h"
#include "backends/cpu/gemm/panels.h"
#include "backends/cpu/pointwise/convert.h"
#include "backends/cpu/pointwise/program_code.h"
#include "base/alloc.h"
#include "base/shown.h"
#include "ops/conv/conv.h"

enum {
  PARTS = 64,
  WAITING_FLOATS = 1 << 16,
  TABLE = 1 << 20,   // entries; more are for others
  FEW_CHANNELS = 4,  // as units: are for few_channels.c
  ALIGNMENT = 16,    // floats
};

static void destroy(assay_kernel_t* base) {
  direct_t* k = (direct_t*)base;
  cpu_program_destroy(k->program);
  assay_free(k->across.at);
  assay_free(k->along.at);
  assay_free(k->order);
  assay_free(k->first);
  assay_free(k->reach);
  assay_free(k->done);
  assay_free(k->bias);
  assay_free(k->zeros);
  assay_free(k);
}

// ---- weights -----------------------------------------------------------------------------------

static size_t packed_units(const direct_t* k) {
  return (size_t)(k->panels * DIRECT_PANEL * k->taps * k->units);
}

// From [made, channels, taps].
static assay_status_t pack_weights(direct_t* k, const assay_operand_t* weights) {
  _Static_assert((int)DIRECT_PANEL == (int)CPU_PANEL, "panels are as wide as those of products");
  const int64_t channels = (k->way->pairs ? 2 : 1) * k->units;
  const cpu_panels_t panels = {.n = k->made,
                               .n_step = channels * k->taps,
                               .places = k->taps,
                               .place_step = 1,
                               .k = channels,
                               .k_step = k->taps,
                               .pairs = k->way->pairs};
  assay_str_t key = {0};
  assay_str_printf_raw(&key, "%s as %s in panels of %d %s, %lld units under %lld taps",
                       weights->value->name, assay_type_name(weights->type), DIRECT_PANEL,
                       k->way->pairs ? "pairs" : "floats", (long long)k->units, (long long)k->taps);
  return cpu_panels_get(&panels, weights, &key, &k->weights);
}

// Infinity under the padding would give NaN: taps are left out where there is none.
static bool are_finite(const direct_t* k) {
  bool finite = true;
  const size_t n = packed_units(k);
  const uint32_t low = k->way->pairs ? 0x7f80 : UINT32_MAX;
  for (size_t i = 0; i < n; i++)
    finite &= (k->weights[i] & low) != low && (k->weights[i] & 0x7f800000) != 0x7f800000;
  return finite;
}

// ---- which layers ------------------------------------------------------------------------------

// Axes [first, end) of a window, of an input whose places are `step` units apart along the last of
// them. *out_ok: there are not too many places.
static assay_status_t make_table(const assay_window_t* w, int first, int end, int64_t step,
                                 direct_axis_t* t, bool* out_ok) {
  t->out = t->kernel = 1;
  int64_t size = 1;
  *out_ok = true;
  for (int i = first; *out_ok && i < end; i++) {
    t->out *= w->axis[i].out;
    t->kernel *= w->axis[i].kernel;
    *out_ok = assay_mul_i64(size, w->axis[i].out, &size) &&
              assay_mul_i64(size, w->axis[i].kernel, &size) && size <= TABLE;
  }
  if (!*out_ok) return NULL;
  ASSAY_TRY(assay_new_array((size_t)size, sizeof *t->at, &t->at));
  for (int64_t o = 0; o < t->out; o++)
    for (int64_t k = 0; k < t->kernel; k++) {
      int64_t at = 0, apart = step, window = o, tap = k;
      for (int i = end - 1; i >= first; i--) {
        const assay_window_axis_t* a = &w->axis[i];
        const int64_t x = window % a->out * a->stride + tap % a->kernel * a->dilation - a->pads[0];
        if (x < 0 || x >= a->in) at = DIRECT_OUTSIDE;
        if (at != DIRECT_OUTSIDE) at += x * apart;
        apart *= a->in;
        window /= a->out;
        tap /= a->kernel;
      }
      t->at[o * t->kernel + k] = at;
    }
  return NULL;
}

// Takes over what the convolution is; *out_ok: whether it is one for this tactic.
static assay_status_t use_conv(direct_t* k, const assay_conv_t* s, bool* out_ok) {
  const int last = s->w.rank - 1;
  k->samples = s->n;
  k->places = s->out_size;
  k->units = k->way->pairs ? s->c / 2 : s->c;
  k->in_sample = s->in_size * k->units;
  k->taps = s->kernel_size;
  k->made = s->m;
  k->panels = (s->m + DIRECT_PANEL - 1) / DIRECT_PANEL;
  k->joined = s->kernel_size == 1 && s->in_size == s->out_size;
  for (int i = 0; i <= last; i++)
    k->joined &= s->w.axis[i].stride == 1 && !s->w.axis[i].pads[0] && !s->w.axis[i].pads[1];
  *out_ok = s->group == 1 && (k->way->pairs ? s->c % 2 == 0 : s->c > FEW_CHANNELS) &&
            k->taps <= DIRECT_TAPS;
  if (!*out_ok) return NULL;
  if (k->joined) {
    k->places *= k->samples;
    k->in_sample *= k->samples;
    k->samples = 1;
  } else {
    ASSAY_TRY(make_table(&s->w, 0, last, k->units * s->w.axis[last].in, &k->across, out_ok));
    if (*out_ok) ASSAY_TRY(make_table(&s->w, last, last + 1, k->units, &k->along, out_ok));
  }
  k->blocks = (k->places + DIRECT_ROWS - 1) / DIRECT_ROWS;
  return NULL;
}

// Where not even one panel stays in the cache while another one comes in, some taps of it do.
static void cut_taps(direct_t* k, int64_t bytes) {
  const int64_t parts = (bytes + k->cached / 2 - 1) / (k->cached / 2);
  if (k->taps == 1) return;
  k->some_taps = parts < k->taps ? (k->taps + parts - 1) / parts : 1;
  k->waiting = WAITING_FLOATS / (DIRECT_ROWS * DIRECT_PANEL * k->panels);
  if (k->waiting < 1) k->waiting = 1;
}

static void cut(direct_t* k) {
  const int64_t bytes = DIRECT_PANEL * k->taps * k->units * 4;
  // Of the second cache: weights take two fifths, half as much where others are on their way; what
  // is read of the input meanwhile a third.
  k->cached = cpu_second_cache() / 5 * 2;
  const int64_t fit = (k->panels * bytes > k->cached ? k->cached / 2 : k->cached) / bytes;
  k->chunk = fit < 1 ? 1 : fit < k->panels ? fit : k->panels;
  const int64_t of_block = k->in_sample * 4 / k->blocks + 1;
  k->batch = bytes > k->cached ? k->samples * k->blocks : cpu_second_cache() / 3 / of_block + 1;
  // Scratch memory for no more parts than there is work for.
  const int64_t work = k->samples * k->blocks * k->panels * (k->taps * k->units / 200 + 1) / 2 + 1;
  k->max_parts = work < PARTS ? (int)work : PARTS;
  if (!k->way->pairs && bytes > k->cached) cut_taps(k, bytes);
  k->wide = k->widens ? cpu_direct_wide_capacity(k) : 0;
  const int64_t sums = k->some_taps ? k->waiting * k->panels : k->simple ? 1 : k->chunk;
  k->thread_scratch = k->wide + (size_t)(DIRECT_ROWS * DIRECT_PANEL * sums);
  k->base.scratch = ((size_t)k->max_parts * k->thread_scratch + ALIGNMENT) * sizeof(float);
}

// Whether the layer, after its sums, does no more than direct_finish_t.
static void find_finish(direct_t* k) {
  const cpu_program_t* p = k->program;
  k->add = -1;
  const assay_type_t type = k->base.out[0].type;
  if (!k->way->finish || (k->way->pairs && type != ASSAY_TYPE_BFLOAT16)) return;
  const int n = p->n_links;
  if (n < 1 || n > 2 || p->streams[p->first_stream].input != POINTWISE_RESULT) return;
  int i = 0;
  if (p->links[i].kind == CPU_LINK_ADD) {
    const int s = p->links[i++].stream;
    if (p->streams[s].constant || p->streams[s].input < 0 || p->streams[s].type != type ||
        p->walks[s].access != POINTWISE_WHOLE)
      return;
    k->add = p->streams[s].input;
  }
  if (i < n && (p->links[i].kind == CPU_LINK_RELU || p->links[i].kind == CPU_LINK_IDENTITY))
    k->relu = p->links[i++].kind == CPU_LINK_RELU;
  k->simple = i == n;
  // Each element is read where it is written then, and just before.
  if (k->simple) k->base.in_place = k->add;
}

static assay_status_t add_program(direct_t* k, const assay_sized_layer_t* l, bool* out_ok) {
  if (l->layer->n_nodes > 1)
    ASSAY_TRY(cpu_program_behind(l, ASSAY_LAYOUT_CHANNELS_LAST, &k->base, &k->program, out_ok));
  else
    ASSAY_TRY(cpu_program_make(l, 1, l->layer->nodes[0]->outputs[0], ASSAY_LAYOUT_CHANNELS_LAST,
                               &k->program));
  *out_ok = *out_ok && k->program;
  if (k->program) find_finish(k);
  return NULL;
}

// Rows of an image, under one tap.
static void describe_rows(direct_t* k, const assay_conv_t* s) {
  const size_t read = assay_kernel_float_bytes(k->type);
  const size_t elem = assay_kernel_float_bytes(k->base.out[0].type);
  if (!k->joined || s->w.rank != 2 || cpu_program_reads(k->program, k->input)) return;
  k->row = s->w.axis[1].out;
  k->base.by_rows = (assay_by_rows_t){.input = k->input,
                                      .samples = s->n,
                                      .rows = s->w.axis[0].out,
                                      .in_rows = s->w.axis[0].in,
                                      .row_bytes = (size_t)(k->row * k->made) * elem,
                                      .in_bytes = (size_t)(k->row * s->c) * read,
                                      .weights = packed_units(k) * sizeof *k->weights,
                                      .work = (double)(k->row * k->made) * (double)k->units,
                                      .scratch = (k->thread_scratch + ALIGNMENT) * sizeof(float),
                                      .run = cpu_direct_run_rows};
}

static assay_status_t build(direct_t* k, const assay_sized_layer_t* l, const cpu_conv_operands_t* o,
                            const assay_conv_t* s, bool* out_ok) {
  k->base.in[k->input] = (assay_storage_t){k->type, ASSAY_LAYOUT_CHANNELS_LAST};
  k->base.out[0] = (assay_storage_t){l->out[0].type, ASSAY_LAYOUT_CHANNELS_LAST};
  ASSAY_TRY(use_conv(k, s, out_ok));
  if (*out_ok) ASSAY_TRY(add_program(k, l, out_ok));
  if (!*out_ok) return NULL;
  ASSAY_TRY(assay_operand_padded_floats(o->bias, k->panels * DIRECT_PANEL, &k->bias));
  ASSAY_TRY(assay_new_array((size_t)k->units, sizeof *k->zeros, &k->zeros));
  ASSAY_TRY(pack_weights(k, o->weights));
  k->skips = !k->joined && k->taps > 1 && are_finite(k);
  if (k->skips) ASSAY_TRY(cpu_direct_order(k));
  if (k->widens) ASSAY_TRY(cpu_direct_find_reach(k));
  cut(k);
  describe_rows(k, s);
  return NULL;
}

static assay_status_t make(const assay_sized_layer_t* l, assay_kernel_t** out) {
  cpu_conv_operands_t o;
  assay_conv_t s;
  bool ok;
  if (!cpu_conv_operands(l, &o)) return NULL;
  const direct_way_t* way = cpu_direct_way(o.x->type);
  if (!way) return NULL;
  ASSAY_TRY(cpu_conv_read(l, &o, &s, &ok));
  if (!ok) return NULL;
  direct_t* k = NULL;
  ASSAY_TRY(ASSAY_NEW(&k));
  k->base = (assay_kernel_t){.in_place = -1, .run = cpu_direct_run, .destroy = destroy};
  k->way = way;
  k->type = o.x->type;
  k->widens = !way->pairs && k->type != ASSAY_TYPE_FLOAT;
  k->input = (int)(o.x - l->in);
  assay_status_t st = build(k, l, &o, &s, &ok);
  if (st || !ok) return destroy(&k->base), st;
  *out = &k->base;
  return NULL;
}

const assay_tactic_t cpu_tactic_direct_conv = {
    .name = "direct_conv",
    .source = "assay",
    .make = make,
    .rounding = {CPU_FLOAT_SUMS},
};
