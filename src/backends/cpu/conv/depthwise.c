// Depthwise convolutions (Conv with as many groups as channels) over one or two axes, channels
// last, and what the layer does to each of their elements.
//
// The output is made in tiles, some rows and columns of one sample, which threads share.
#include "backends/cpu/conv/depthwise.h"

#include <string.h>

#include "backends/cpu/conv/conv_operands.h"
#include "backends/cpu/pointwise/convert.h"
#include "backends/cpu/pointwise/program.h"
#include "backends/cpu/threads.h"
#include "base/alloc.h"
#include "base/shown.h"
#include "base/str.h"
#include "ops/conv/conv.h"

enum {
  CHANNELS = CPU_DEPTHWISE_CHANNELS,
  PARTS = 64,
  KERNEL_ROWS = 32,        // more are for others
  TILES = 4,               // of rows, for threads to share
  MIN_COLUMNS = 14,        // of a tile: rows are cut where their
  ROWS_BYTES = 32768,      // widened ones do not fit into the first cache
  TILE_BYTES = 96 * 1024,  // of sums that wait for what comes after
  LONG_ROW = 28,
  NEAR_BYTES = 256 * 1024  // of what a tile reads and makes where none waits
};

typedef struct depthwise {
  assay_kernel_t base;
  int input;
  assay_type_t type;
  assay_window_axis_t across, along;  // the axis across rows, and along a row
  int64_t samples, channels;
  int64_t row_tiles, column_tiles;  // of a sample
  bool direct;                      // sums are the output
  int max_parts;
  int64_t slots;                 // of widened rows: as many as a row of the output reads
  size_t rows, thread_scratch;   // floats of these; of all that a thread needs
  const float* weights;          // [channels / 32, kernel rows, kernel columns, 32], in the store
  float* bias;                   // [channels], and zeros up to a multiple of 32
  cpu_program_t* program;        // NULL: none
  cpu_depthwise_finish_t* near;  // rows are read as they lie; NULL: they are widened
  cpu_link_t link;               // for `near`
} depthwise_t;

// ---- running -----------------------------------------------------------------------------------

typedef struct job {
  const depthwise_t* k;
  const void* const* in;
  char* out;
  float *rows, *sums;
} job_t;

typedef struct tile {
  int64_t sample, row, rows, column, columns;
  bool alone;  // of rows around it nothing is known
} tile_t;

// Places of the input that n windows from `first` on cover: from *at on, which may lie in the
// padding.
static int64_t cover(const assay_window_axis_t* a, int64_t first, int64_t n, int64_t* at) {
  *at = first * a->stride - a->pads[0];
  return (n - 1) * a->stride + (a->kernel - 1) * a->dilation + 1;
}

static int64_t limited(int64_t x, int64_t low, int64_t high) {
  return x < low ? low : x > high ? high : x;
}

// Some channels of a tile, row by row. Of widened rows, `columns` from `column` of the input on,
// those in [first, end) lie inside it; the others are zeros, as are all of `zeros`.
typedef struct strip {
  const job_t* j;
  const tile_t* t;
  int64_t channel, columns, column, first, end;
  int channels;
  const float* zeros;
} strip_t;

// Widens a row of the input to its slot.
static void widen_row(const strip_t* s, int64_t row, float* to) {
  const depthwise_t* k = s->j->k;
  const int64_t elem = k->type == ASSAY_TYPE_FLOAT ? 4 : 2, step = k->channels * elem;
  const cpu_depthwise_fill_t f = {
      .type = k->type,
      .from = (const char*)s->j->in[k->input] +
              ((s->t->sample * k->across.in + row) * k->along.in + s->first) * step +
              s->channel * elem,
      .step = step,
      .n = s->end - s->first,
      .channels = s->channels};
  cpu_depthwise_fill(&f, to + (s->first - s->column) * CHANNELS);
}

// Each row of the input is widened once: it keeps its slot until no row reads it any more.
static void run_strip(const strip_t* s, const cpu_depthwise_t* of_row, int64_t out_row) {
  const depthwise_t* k = s->j->k;
  const float* rows[KERNEL_ROWS];
  int64_t widened = INT64_MIN;
  cpu_depthwise_t d = *of_row;
  d.rows = rows;
  for (int64_t r = 0; r < s->t->rows; r++) {
    int64_t at;
    const int64_t n = cover(&k->across, s->t->row + r, 1, &at);
    for (int64_t i = 0; i < k->across.kernel; i++) {
      const int64_t row = at + i * k->across.dilation;
      float* slot = s->j->rows + (row + k->across.pads[0]) % k->slots * s->columns * CHANNELS;
      const bool inside = row >= 0 && row < k->across.in && s->first < s->end;
      if (inside && (k->across.dilation > 1 || row > widened)) widen_row(s, row, slot);
      rows[i] = inside ? slot : s->zeros;
    }
    widened = at + n - 1;
    cpu_depthwise_run(&d);
    d.out += out_row;
  }
}

// What comes after the sums of a tile.
static void finish(const job_t* j, const tile_t* t, int64_t at) {
  const depthwise_t* k = j->k;
  const assay_type_t type = k->base.out[0].type;
  const int64_t n = t->columns * k->channels, step = k->along.out * k->channels;
  const cpu_program_part_t part = {
      .from = at, .n = n, .runs = t->rows, .step = step, .result = j->sums, .result_step = n};
  if (k->program) {
    cpu_program_run_part(k->program, j->in, type, j->out, &part);
    return;
  }
  for (int64_t r = 0; r < t->rows; r++) cpu_narrow(j->sums + r * n, n, type, at + r * step, j->out);
}

static const float zeros[CHANNELS];

// Rows of the input that are under the kernel in row `row` of the output, from a channel on.
static void find_rows(const depthwise_t* k, const char* in, int64_t row,
                      cpu_depthwise_row_t* rows) {
  const int64_t step = k->channels * (k->type == ASSAY_TYPE_FLOAT ? 4 : 2);
  int64_t at;
  cover(&k->across, row, 1, &at);
  for (int64_t i = 0; i < k->across.kernel; i++, at += k->across.dilation)
    rows[i] = at >= 0 && at < k->across.in
                  ? (cpu_depthwise_row_t){in + at * k->along.in * step, step}
                  : (cpu_depthwise_row_t){(const char*)zeros, 0};
}

// What is asked for while row `row` of the output is made: of the rows of the input that the next
// one reads first, and of that row itself, as much as the channels from c on are of all.
static void find_next(const depthwise_t* k, const char* in, const char* out, int64_t row, int64_t c,
                      cpu_depthwise_near_t* d) {
  const int64_t step = k->channels * (k->type == ASSAY_TYPE_FLOAT ? 4 : 2);
  const int64_t next = c + CHANNELS < k->channels ? c + CHANNELS : k->channels;
  const int64_t made = k->along.out * step;
  int64_t at;
  const int64_t first = limited(cover(&k->across, row, 1, &at) + at, 0, k->across.in);
  const int64_t end = limited(first + k->across.stride, first, k->across.in);
  const int64_t read = (end - first) * k->along.in * step;
  d->fetch = in + first * k->along.in * step + read * c / k->channels;
  d->fetch_bytes = read * next / k->channels - read * c / k->channels;
  d->fetch_out = out + (row + 1) * made + made * c / k->channels;
  d->fetch_out_bytes = row + 1 < k->across.out ? made * (next - c) / k->channels : 0;
}

// A tile whose rows are read as they lie.
static void run_near(const job_t* j, const tile_t* t) {
  const depthwise_t* k = j->k;
  const int64_t elem = k->type == ASSAY_TYPE_FLOAT ? 4 : 2, step = k->channels * elem;
  const int64_t places = k->across.kernel * k->along.kernel;
  cpu_depthwise_row_t rows[KERNEL_ROWS];
  cpu_depthwise_near_t d = {.kernel_rows = k->across.kernel,
                            .kernel = k->along.kernel,
                            .stride = k->along.stride,
                            .before = k->along.pads[0],
                            .rows = rows,
                            .places = k->along.in,
                            .columns = k->along.out,
                            .out_step = step,
                            .finish = k->near,
                            .param = {k->link.param[0], k->link.param[1]}};
  const char* in = (const char*)j->in[k->input] + t->sample * k->across.in * k->along.in * step;
  char* out = j->out + t->sample * k->across.out * k->along.out * step;
  // Of long rows each is made as a whole, so that memory is read in order; of short ones the same
  // channels of all rows, so that weights are read once.
  const bool long_rows = k->along.out >= LONG_ROW;
  const int64_t rows_at_once = long_rows ? 1 : t->rows;
  for (int64_t r = t->row; r < t->row + t->rows; r += rows_at_once)
    for (int64_t c = 0; c < k->channels; c += CHANNELS) {
      const int64_t n = k->channels - c < CHANNELS ? k->channels - c : CHANNELS;
      d.mask = UINT32_MAX >> (CHANNELS - n);
      d.weights = k->weights + c * places;
      d.bias = k->bias + c;
      for (int64_t i = r; i < r + rows_at_once; i++) {
        find_rows(k, in + c * elem, i, rows);
        if (long_rows && !t->alone) find_next(k, in, out, i, c, &d);
        d.out = out + i * k->along.out * step + c * elem;
        cpu_depthwise_near_run(k->type, &d);
      }
    }
}

static void run_tile(const job_t* j, const tile_t* t) {
  const depthwise_t* k = j->k;
  const int64_t places = k->across.kernel * k->along.kernel;
  const int64_t at =
      ((t->sample * k->across.out + t->row) * k->along.out + t->column) * k->channels;
  float* out = k->direct ? (float*)(void*)j->out + at : j->sums;
  const int64_t out_row = (k->direct ? k->along.out : t->columns) * k->channels;
  strip_t s = {.j = j, .t = t};
  s.columns = cover(&k->along, t->column, t->columns, &s.column);
  s.first = limited(s.column, 0, k->along.in);
  s.end = limited(s.column + s.columns, s.first, k->along.in);
  // The borders of all slots stay zeros while rows come and go; a row after them is all zeros.
  s.zeros = j->rows + k->slots * s.columns * CHANNELS;
  memset(j->rows + k->slots * s.columns * CHANNELS, 0,
         (size_t)(s.columns * CHANNELS) * sizeof(float));
  for (int64_t i = 0; s.first < s.end && i < k->slots; i++) {
    float* slot = j->rows + i * s.columns * CHANNELS;
    const int64_t before = s.first - s.column, behind = s.column + s.columns - s.end;
    memset(slot, 0, (size_t)(before * CHANNELS) * sizeof *slot);
    memset(slot + (s.columns - behind) * CHANNELS, 0, (size_t)(behind * CHANNELS) * sizeof *slot);
  }
  for (; s.channel < k->channels; s.channel += CHANNELS) {
    const int64_t left = k->channels - s.channel;
    s.channels = (int)(left < CHANNELS ? left : CHANNELS);
    const cpu_depthwise_t d = {.kernel_rows = k->across.kernel,
                               .kernel = k->along.kernel,
                               .stride = k->along.stride,
                               .dilation = k->along.dilation,
                               .weights = k->weights + s.channel * places,
                               .bias = k->bias + s.channel,
                               .columns = t->columns,
                               .out = out + s.channel,
                               .out_column = k->channels,
                               .channels = s.channels};
    run_strip(&s, &d, out_row);
  }
  if (!k->direct) finish(j, t, at);
}

// Part p of `parts`.
static void run_share(const depthwise_t* k, const void* const* in, void* out, void* scratch, int p,
                      int parts) {
  const int64_t of_sample = k->row_tiles * k->column_tiles, all = k->samples * of_sample;
  float* own = (float*)scratch + (size_t)p * k->thread_scratch;
  const job_t j = {k, in, out, own, own + k->rows};
  for (int64_t i = all * p / parts; i < all * (p + 1) / parts; i++) {
    const int64_t r = i % of_sample / k->column_tiles, c = i % k->column_tiles;
    tile_t t = {.sample = i / of_sample,
                .row = k->across.out * r / k->row_tiles,
                .column = k->along.out * c / k->column_tiles};
    t.rows = k->across.out * (r + 1) / k->row_tiles - t.row;
    t.columns = k->along.out * (c + 1) / k->column_tiles - t.column;
    (k->near ? run_near : run_tile)(&j, &t);
  }
}

static assay_status_t run(assay_kernel_t* base, const void* const* in, void* const* out,
                          void* scratch) {
  const depthwise_t* k = (const depthwise_t*)base;
  const int64_t work = k->samples * k->across.out * k->along.out * k->channels *
                       (k->across.kernel * k->along.kernel + 8);
  int parts = cpu_threads(work);
  if (parts > k->max_parts) parts = k->max_parts;
  if (parts == 1) {
    run_share(k, in, out[0], scratch, 0, 1);
    return NULL;
  }
#pragma omp parallel for schedule(static, 1) num_threads(parts)
  for (int p = 0; p < parts; p++) run_share(k, in, out[0], scratch, p, parts);
  return NULL;
}

static int64_t padded(int64_t channels) { return (channels + CHANNELS - 1) / CHANNELS * CHANNELS; }

// ---- by rows ------------------------------------------------------------------------------------

static void reads(const assay_kernel_t* base, int64_t row, int64_t end, int64_t* first,
                  int64_t* last) {
  const depthwise_t* k = (const depthwise_t*)base;
  int64_t at;
  const int64_t n = cover(&k->across, row, end - row, &at);
  *first = limited(at, 0, k->across.in);
  *last = limited(at + n, *first, k->across.in);
}

static void run_rows(const assay_kernel_t* base, const void* const* in, void* const* out,
                     void* scratch, int64_t sample, int64_t row, int64_t end) {
  const depthwise_t* k = (const depthwise_t*)base;
  const job_t j = {
      .k = k, .in = in, .out = out[0], .rows = scratch, .sums = (float*)scratch + k->rows};
  const int64_t max = k->near ? end - row : (k->across.out + k->row_tiles - 1) / k->row_tiles;
  for (; row < end; row += max)
    for (int64_t c = 0; c < k->column_tiles; c++) {
      tile_t t = {.sample = sample,
                  .row = row,
                  .rows = end - row < max ? end - row : max,
                  .column = k->along.out * c / k->column_tiles,
                  .alone = true};
      t.columns = k->along.out * (c + 1) / k->column_tiles - t.column;
      (k->near ? run_near : run_tile)(&j, &t);
    }
}

static void describe_rows(depthwise_t* k) {
  const size_t elem = assay_kernel_float_bytes(k->type);
  const size_t made = assay_kernel_float_bytes(k->base.out[0].type);
  if (k->program && cpu_program_reads(k->program, k->input)) return;
  k->base.by_rows = (assay_by_rows_t){
      .input = k->input,
      .samples = k->samples,
      .rows = k->across.out,
      .in_rows = k->across.in,
      .row_bytes = (size_t)(k->along.out * k->channels) * made,
      .in_bytes = (size_t)(k->along.in * k->channels) * elem,
      .weights = (size_t)(padded(k->channels) * k->across.kernel * k->along.kernel) * sizeof(float),
      .work = (double)(k->along.out * k->channels) * (double)(k->across.kernel * k->along.kernel),
      .scratch = k->thread_scratch * sizeof(float),
      .reads = reads,
      .run = run_rows};
}

static void destroy(assay_kernel_t* base) {
  depthwise_t* k = (depthwise_t*)base;
  cpu_program_destroy(k->program);
  assay_free(k->bias);
  assay_free(k);
}

// ---- weights -----------------------------------------------------------------------------------

typedef struct packing {
  const assay_operand_t* weights;  // [channels, 1, kernel...]
  int64_t channels, places;
  const depthwise_t* k;
} packing_t;

// Of a channel among those that lie together.
static int place_of(const depthwise_t* k, int64_t channel) {
  const int64_t first = channel / CHANNELS * CHANNELS, left = k->channels - first;
  const int among = left < CHANNELS ? (int)left : CHANNELS;
  return k->near ? cpu_depthwise_order(k->type, among, (int)(channel - first))
                 : (int)(channel - first);
}

static assay_status_t pack(void* user, void* to) {
  const packing_t* p = user;
  float *from = NULL, *out = to;
  ASSAY_TRY(assay_operand_floats(p->weights, &from));
  memset(to, 0, (size_t)(p->places * padded(p->channels)) * sizeof *out);
  for (int64_t c = 0; c < p->channels; c += CHANNELS)
    for (int64_t i = 0; i < p->places; i++, out += CHANNELS)
      for (int64_t v = c; v < c + CHANNELS && v < p->channels; v++)
        out[place_of(p->k, v)] = from[v * p->places + i];
  assay_free(from);
  return NULL;
}

static assay_status_t pack_weights(depthwise_t* k, const assay_operand_t* weights) {
  const packing_t p = {weights, k->channels, k->across.kernel * k->along.kernel, k};
  const void* packed = NULL;
  assay_str_t key = {0};
  assay_str_printf_raw(&key, "%s as %s, %lld places of %lld channels in blocks of %d%s",
                       weights->value->name, assay_type_name(weights->type), (long long)p.places,
                       (long long)p.channels, CHANNELS, k->near ? ", as they are loaded" : "");
  assay_status_t st = assay_weights_get_by(
      weights->store, &key, (size_t)(p.places * padded(p.channels)) * sizeof *k->weights, pack, &p,
      &packed);
  k->weights = packed;
  return st;
}

static assay_status_t add_bias(depthwise_t* k, const assay_operand_t* o) {
  float* given = NULL;
  if (o) ASSAY_TRY(assay_operand_floats(o, &given));
  assay_status_t st = assay_new_array((size_t)padded(k->channels), sizeof *k->bias, &k->bias);
  for (int64_t c = 0; !st && o && c < k->channels; c++)
    k->bias[c / CHANNELS * CHANNELS + place_of(k, c)] = given[c];
  assay_free(given);
  return st;
}

// ---- which layers ------------------------------------------------------------------------------

// Tiles are whole rows.
static void cut_near(depthwise_t* k) {
  const int64_t height = k->across.out, elem = k->type == ASSAY_TYPE_FLOAT ? 4 : 2;
  const int64_t row = (k->along.out + k->along.in * k->across.stride) * k->channels * elem;
  int64_t rows = (height + TILES - 1) / TILES;
  while (rows > 1 && rows * row > NEAR_BYTES) rows--;
  k->column_tiles = 1;
  k->row_tiles = (height + rows - 1) / rows;
  const int64_t parts = k->samples * k->row_tiles;
  k->max_parts = parts < PARTS ? (int)parts : PARTS;
}

// Whether sums of these types need no memory of their own.
static void find_near(depthwise_t* k) {
  const cpu_link_t* link = k->program ? cpu_program_only_link(k->program) : NULL;
  if (link) k->link = *link;
  if (!k->program) k->link = (cpu_link_t){.kind = CPU_LINK_IDENTITY};
  if ((k->program && !link) || k->type != k->base.out[0].type || k->along.dilation != 1 ||
      k->across.kernel > KERNEL_ROWS ||
      !cpu_depthwise_is_near(k->type, k->along.kernel, k->along.stride, k->along.out))
    return;
  k->near = cpu_depthwise_finish(k->type, k->link.kind);
}

static bool cut(depthwise_t* k) {
  if (k->near) return cut_near(k), true;
  const int64_t width = k->along.out, height = k->across.out;
  int64_t at, columns;
  k->slots = cover(&k->across, 0, 1, &at);
  // Far dilations and paddings would make rows of any size.
  if (k->across.kernel > KERNEL_ROWS || k->slots > ROWS_BYTES ||
      cover(&k->along, 0, 1, &at) > ROWS_BYTES || k->along.stride > ROWS_BYTES)
    return false;
  for (k->column_tiles = 1;; k->column_tiles++) {
    columns = (width + k->column_tiles - 1) / k->column_tiles;
    if (columns <= MIN_COLUMNS ||
        k->slots * cover(&k->along, 0, columns, &at) * CHANNELS * 4 <= ROWS_BYTES)
      break;
  }
  int64_t rows = (height + TILES - 1) / TILES;
  while (rows > 1 && !k->direct && rows * columns * k->channels * 4 > TILE_BYTES) rows--;
  k->row_tiles = (height + rows - 1) / rows;
  rows = (height + k->row_tiles - 1) / k->row_tiles;
  const int64_t parts = k->samples * k->row_tiles * k->column_tiles;
  k->max_parts = parts < PARTS ? (int)parts : PARTS;
  const int64_t floats = (k->slots + 1) * cover(&k->along, 0, columns, &at) * CHANNELS;
  if (floats > 64 * ROWS_BYTES) return false;
  k->rows = (size_t)floats;
  k->thread_scratch = k->rows + (k->direct ? 0 : (size_t)(rows * columns * k->channels));
  k->thread_scratch = (k->thread_scratch + CHANNELS - 1) / CHANNELS * CHANNELS;
  k->base.scratch = (size_t)k->max_parts * k->thread_scratch * sizeof(float);
  return true;
}

static void use_conv(depthwise_t* k, const assay_conv_t* s) {
  static const assay_window_axis_t one = {
      .kernel = 1, .stride = 1, .dilation = 1, .in = 1, .out = 1};
  k->samples = s->n;
  k->channels = s->c;
  k->across = s->w.rank > 1 ? s->w.axis[0] : one;
  k->along = s->w.axis[s->w.rank - 1];
}

// Of wide rows with a stride, short kernels read each element about once: to widen it apart does
// not pay.
static bool others_are_faster(const depthwise_t* k) {
#ifdef ASSAY_ONEDNN
  enum { WIDE = 56 };
  return k->along.stride > 1 && k->along.kernel <= 3 && k->along.out >= WIDE;
#else
  (void)k;
  return false;
#endif
}

static assay_status_t make(const assay_sized_layer_t* l, assay_kernel_t** out) {
  cpu_conv_operands_t o;
  assay_conv_t s;
  bool ok;
  if (!cpu_has_depthwise() || !cpu_conv_operands(l, &o) || o.x->rank > 4) return NULL;
  ASSAY_TRY(cpu_conv_read(l, &o, &s, &ok));
  if (!ok || s.group != s.c || s.m != s.c || s.cg != 1) return NULL;
  depthwise_t* k = NULL;
  ASSAY_TRY(ASSAY_NEW(&k));
  k->base = (assay_kernel_t){.in_place = -1, .run = run, .destroy = destroy};
  k->input = (int)(o.x - l->in);
  k->type = o.x->type;
  k->base.in[k->input] = (assay_storage_t){o.x->type, ASSAY_LAYOUT_CHANNELS_LAST};
  k->base.out[0] = (assay_storage_t){l->out[0].type, ASSAY_LAYOUT_CHANNELS_LAST};
  use_conv(k, &s);
  assay_status_t st = cpu_program_behind(l, ASSAY_LAYOUT_CHANNELS_LAST, &k->base, &k->program, &ok);
  k->direct = !k->program && l->out[0].type == ASSAY_TYPE_FLOAT;
  if (!st && ok) find_near(k);
  ok = ok && (k->near || !others_are_faster(k)) && cut(k);
  if (!st && ok) st = add_bias(k, o.bias);
  if (!st && ok) st = pack_weights(k, o.weights);
  if (st || !ok) return destroy(&k->base), st;
  describe_rows(k);
  *out = &k->base;
  return NULL;
}

const assay_tactic_t cpu_tactic_depthwise = {
    .name = "depthwise",
    .source = "assay",
    .make = make,
    .rounding = {.compute = ASSAY_FORMAT_FP32,
                 .accumulator = ASSAY_FORMAT_FP32,
                 .fma = true,
                 .by_definition = true,
                 .function_ulps = 4},
};
