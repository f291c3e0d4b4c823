// ConvTranspose by our own kernels, channels last: tiles of some lines of the output, some places
// on them and some channels, and what the layer does to each element while the tile is in the
// cache.
//
// Nothing is scattered: kernel position k adds x[i] w[k] to every `stride`-th place of a line, so
// that a product of matrices whose result has rows so far apart does all that k does there. Every
// sum is one chain of multiply-adds: the bias, then kernel positions in row-major order, then
// channels. Where there are few channels, all kernel positions are columns of one product for each
// line of the input, and each of its sums is added to the place's, line after line. How tiles are
// cut changes no bit.
#include "ops/conv/conv_transpose.h"

#include <string.h>

#include "backends/cpu/conv/conv_operands.h"
#include "backends/cpu/gemm/panels.h"
#include "backends/cpu/pointwise/convert.h"
#include "backends/cpu/pointwise/program.h"
#include "backends/cpu/scratch.h"
#include "backends/cpu/threads.h"
#include "base/alloc.h"
#include "base/shown.h"

enum {
  WIDE = 2 * CPU_PANEL,
  PLACES = 256,             // of a tile
  TILE_BYTES = 256 * 1024,  // of its sums
  JOINED_BYTES = 64 * 1024,
};

typedef enum way {
  WAY_BY_TAP = 0,  // a product for each kernel position
  WAY_JOINED,      // one product for all kernel positions
  WAY_DEPTHWISE,   // groups of one channel
} way_t;

typedef struct up {
  assay_kernel_t base;
  int input;
  way_t way;
  bool bf16, direct;  // direct: sums are made in the output itself
  assay_conv_transpose_t t;
  assay_type_t type;        // that x is read in
  int64_t units;            // of 4 bytes, of a group's channels at one place
  int64_t taps, rows;       // kernel positions along the last axis; of all other axes
  int64_t columns;          // of one product: channels, or those of all positions
  int64_t lines, in_lines;  // of a sample, along the last axis
  // Of a tile.
  int64_t tile_lines, tile_places, tile_columns;
  const uint32_t* weights;  // in the store
  float* bias;              // [group, padded]; zeros where there is none
  cpu_program_t* program;   // NULL: none
  size_t tile_floats, product_floats;
  int threads;
} up_t;

static int64_t parts_of(int64_t n, int64_t size) { return (n + size - 1) / size; }
static int64_t min(int64_t a, int64_t b) { return a < b ? a : b; }

static const assay_window_axis_t* last_axis(const up_t* k) { return &k->t.w.axis[k->t.w.rank - 1]; }

// Groups of one channel go side by side, as one.
static int64_t groups_of(const up_t* k) { return k->way == WAY_DEPTHWISE ? 1 : k->t.group; }
static int64_t channels_of(const up_t* k) { return k->way == WAY_DEPTHWISE ? k->t.m : k->t.mg; }

// ---- where things meet -------------------------------------------------------------------------

static int64_t in_line(const up_t* k, int64_t line, int64_t row) {
  return assay_conv_transpose_in_line(&k->t, line, row);
}

static void in_range(const up_t* k, int64_t tap, int64_t from, int64_t to, int64_t* first,
                     int64_t* end, int64_t* at) {
  assay_conv_transpose_range(last_axis(k), tap, from, to, first, end, at);
}

// ---- a tile ------------------------------------------------------------------------------------

typedef struct job {
  const up_t* k;
  const void* const* in;
  void* out;
  float *tile, *product;
  int64_t sample, group, line, lines, place, places, column, columns;
  float* to;
  int64_t step, line_step;  // of `to`: from place to place, from line to line
} job_t;

static const uint32_t* input_at(const job_t* j, int64_t line, int64_t i) {
  const up_t* k = j->k;
  const int64_t place = (j->sample * k->in_lines + line) * last_axis(k)->out + i;
  return (const uint32_t*)j->in[k->input] + (place * k->t.group + j->group) * k->units;
}

static void multiply(const up_t* k, int64_t m, const uint32_t* a, const uint32_t* panels, float* c,
                     int64_t c_step, bool pair, bool adds) {
  const int64_t a_step = k->units * k->t.group;
  if (k->bf16)
    (pair ? cpu_gemm_panels_bf16 : cpu_gemm_panel_bf16)(m, k->units, a, a_step, panels, c, c_step,
                                                        adds);
  else
    (pair ? cpu_gemm_panels : cpu_gemm_panel)(m, k->units, (const float*)(const void*)a, a_step,
                                              (const float*)(const void*)panels, c, c_step, adds);
}

// Where a panel begins, in units.
static int64_t panel_place(const job_t* j, int64_t part, int64_t column) {
  const up_t* k = j->k;
  const int64_t parts = k->way == WAY_JOINED ? 1 : k->rows * k->taps;
  return ((j->group * parts + part) * cpu_panel_padded(k->columns) + column) * k->units;
}

static const uint32_t* panels_at(const job_t* j, int64_t part, int64_t column) {
  return j->k->weights + panel_place(j, part, column);
}

// Weights of two panels stay in the first cache while lines go by.
static void add_by_tap(const job_t* j) {
  const up_t* k = j->k;
  for (int64_t c = 0; c < j->columns; c += WIDE)
    for (int64_t row = 0; row < k->rows; row++)
      for (int64_t tap = 0; tap < k->taps; tap++) {
        int64_t first, end, at;
        in_range(k, tap, j->place, j->place + j->places, &first, &end, &at);
        if (first == end) continue;
        const uint32_t* panels = panels_at(j, row * k->taps + tap, j->column + c);
        for (int64_t l = 0; l < j->lines; l++) {
          const int64_t from = in_line(k, j->line + l, row);
          if (from < 0) continue;
          float* to = j->to + l * j->line_step + (at - j->place) * j->step + c;
          multiply(k, end - first, input_at(j, from, first), panels, to,
                   last_axis(k)->stride * j->step, j->columns - c > CPU_PANEL, true);
        }
      }
}

__attribute__((always_inline)) static inline void add_columns(int64_t n, int64_t m, const float* p,
                                                              int64_t p_step, float* to,
                                                              int64_t step) {
  for (int64_t i = 0; i < n; i++, p += p_step, to += step)
    for (int64_t c = 0; c < m; c++) to[c] += p[c];
}

// Sums of m channels for n places.
static void add_places(int64_t n, int64_t m, const float* p, int64_t p_step, float* to,
                       int64_t step) {
  if (m == 1)
    add_columns(n, 1, p, p_step, to, step);
  else if (m == 3)
    add_columns(n, 3, p, p_step, to, step);
  else
    add_columns(n, m, p, p_step, to, step);
}

// Elements of a line of the input that any tap adds to the tile's places.
static bool joined_range(const job_t* j, int64_t* out_first, int64_t* out_end) {
  *out_first = INT64_MAX;
  *out_end = 0;
  for (int64_t tap = 0; tap < j->k->taps; tap++) {
    int64_t first, end, at;
    in_range(j->k, tap, j->place, j->place + j->places, &first, &end, &at);
    if (first < end && first < *out_first) *out_first = first;
    if (first < end && end > *out_end) *out_end = end;
  }
  return *out_first < *out_end;
}

// The lines of the input between which all lie that are added to the tile's.
static void joined_lines(const job_t* j, int64_t* out_min, int64_t* out_max) {
  *out_min = INT64_MAX;
  *out_max = -1;
  for (int64_t l = 0; l < j->lines; l++)
    for (int64_t row = 0; row < j->k->rows; row++) {
      const int64_t from = in_line(j->k, j->line + l, row);
      if (from >= 0 && from < *out_min) *out_min = from;
      if (from > *out_max) *out_max = from;
    }
}

// What a line of the input adds to one of the tile, by one row of the kernel.
static void add_row(const job_t* j, int64_t row, int64_t from, int64_t line) {
  const up_t* k = j->k;
  const int64_t width = cpu_panel_padded(k->columns), m = k->t.mg;
  for (int64_t tap = 0; tap < k->taps; tap++) {
    int64_t first, end, at;
    in_range(k, tap, j->place, j->place + j->places, &first, &end, &at);
    if (first < end)
      add_places(end - first, m, j->product + (first - from) * width + (row * k->taps + tap) * m,
                 width, j->to + line * j->line_step + (at - j->place) * j->step,
                 last_axis(k)->stride * j->step);
  }
}

static void add_joined(const job_t* j) {
  const up_t* k = j->k;
  const int64_t width = cpu_panel_padded(k->columns);
  int64_t first, end, min_line, max_line;
  joined_lines(j, &min_line, &max_line);
  if (!joined_range(j, &first, &end)) return;
  for (int64_t from = min_line; from <= max_line; from++) {
    bool made = false;
    for (int64_t row = 0; row < k->rows; row++) {
      const int64_t line = assay_conv_transpose_out_line(&k->t, from, row) - j->line;
      if (line < 0 || line >= j->lines) continue;
      for (int64_t c = 0; !made && c < width; c += WIDE)
        multiply(k, end - first, input_at(j, from, first), panels_at(j, 0, c), j->product + c,
                 width, width - c > CPU_PANEL, false);
      made = true;
      add_row(j, row, first, line);
    }
  }
}

static void add_depthwise(const job_t* j) {
  const up_t* k = j->k;
  for (int64_t l = 0; l < j->lines; l++)
    for (int64_t row = 0; row < k->rows; row++) {
      const int64_t from = in_line(k, j->line + l, row);
      for (int64_t tap = 0; from >= 0 && tap < k->taps; tap++) {
        int64_t first, end, at;
        in_range(k, tap, j->place, j->place + j->places, &first, &end, &at);
        const float* w =
            (const float*)(const void*)k->weights + (row * k->taps + tap) * k->t.m + j->column;
        const float* x = (const float*)j->in[k->input] + j->column +
                         ((j->sample * k->in_lines + from) * last_axis(k)->out + first) * k->t.m;
        float* to = j->to + l * j->line_step + (at - j->place) * j->step;
        cpu_gemm_rows(end - first, j->columns, x, k->t.m, w, to, last_axis(k)->stride * j->step);
      }
    }
}

// The bias everywhere; places that lie side by side are filled by doubling.
static void start_sums(const job_t* j) {
  const up_t* k = j->k;
  const float* bias = k->bias + j->group * cpu_panel_padded(channels_of(k)) + j->column;
  const int64_t n = k->direct ? j->columns : j->step;
  for (int64_t l = 0; l < j->lines; l++) {
    float* to = j->to + l * j->line_step;
    for (int64_t i = 0; i < j->places;) {
      const int64_t some = n < j->step || !i ? 1 : min(i, j->places - i);
      memcpy(to + i * j->step, n < j->step || !i ? bias : to,
             (size_t)((some - 1) * j->step + n) * sizeof *bias);
      i += some;
    }
  }
}

static void run_tile(job_t* j) {
  const up_t* k = j->k;
  const assay_window_axis_t* a = last_axis(k);
  const int64_t from = ((j->sample * k->lines + j->line) * a->in + j->place) * k->t.m +
                       j->group * k->t.mg + j->column;
  j->step = k->direct ? k->t.m : k->way == WAY_JOINED ? k->t.mg : cpu_panel_padded(j->columns);
  j->line_step = k->direct ? a->in * k->t.m : j->places * j->step;
  j->to = k->direct ? (float*)j->out + from : j->tile;
  start_sums(j);
  if (k->way == WAY_BY_TAP) add_by_tap(j);
  if (k->way == WAY_JOINED) add_joined(j);
  if (k->way == WAY_DEPTHWISE) add_depthwise(j);
  const bool together = j->step == k->t.m && j->columns == k->t.m;
  for (int64_t l = 0; k->program && l < j->lines; l++) {
    const cpu_program_part_t part = {.from = from + l * a->in * k->t.m,
                                     .n = together ? j->places * k->t.m : j->columns,
                                     .runs = together ? 1 : j->places,
                                     .step = k->t.m,
                                     .result = j->to + l * j->line_step,
                                     .result_step = j->step};
    cpu_program_run_part(k->program, j->in, k->base.out[0].type, j->out, &part);
  }
}

// ---- all of them -------------------------------------------------------------------------------

static int64_t n_tiles(const up_t* k) {
  return k->t.n * groups_of(k) * parts_of(k->lines, k->tile_lines) *
         parts_of(last_axis(k)->in, k->tile_places) * parts_of(channels_of(k), k->tile_columns);
}

// Tile i: samples are the outermost, then columns, so that weights stay while lines go by.
static void find_tile(const up_t* k, int64_t i, job_t* j) {
  const int64_t by_place = parts_of(last_axis(k)->in, k->tile_places);
  const int64_t by_line = parts_of(k->lines, k->tile_lines);
  const int64_t by_column = parts_of(channels_of(k), k->tile_columns);
  j->place = i % by_place * k->tile_places;
  j->places = min(k->tile_places, last_axis(k)->in - j->place);
  i /= by_place;
  j->line = i % by_line * k->tile_lines;
  j->lines = min(k->tile_lines, k->lines - j->line);
  i /= by_line;
  j->column = i % by_column * k->tile_columns;
  j->columns = min(k->tile_columns, channels_of(k) - j->column);
  i /= by_column;
  j->group = i % groups_of(k);
  j->sample = i / groups_of(k);
}

static int64_t work_of(const up_t* k) {
  return k->t.n * k->t.in_size * k->t.c * (k->t.mg * k->t.kernel_size / 16 + 4);
}

static assay_status_t run(assay_kernel_t* base, const void* const* in, void* const* out,
                          void* scratch) {
  const up_t* k = (const up_t*)base;
  const int64_t tiles = n_tiles(k);
  float* own_scratch = cpu_scratch(scratch);
  int threads = (int)min(cpu_threads(work_of(k)), min(tiles, k->threads));
#pragma omp parallel for schedule(dynamic, 1) num_threads(threads) if (threads > 1)
  for (int64_t i = 0; i < tiles; i++) {
    job_t j = {.k = k, .in = in, .out = out[0]};
    j.tile = own_scratch + (size_t)omp_get_thread_num() * (k->tile_floats + k->product_floats);
    j.product = j.tile + k->tile_floats;
    find_tile(k, i, &j);
    run_tile(&j);
  }
  return NULL;
}

static void destroy(assay_kernel_t* base) {
  up_t* k = (up_t*)base;
  cpu_program_destroy(k->program);
  assay_free(k->bias);
  assay_free(k);
}

// ---- weights -----------------------------------------------------------------------------------

typedef struct packing {
  const up_t* k;
  const assay_operand_t* weights;
} packing_t;

static size_t packed_units(const up_t* k) {
  if (k->way == WAY_DEPTHWISE) return (size_t)(k->t.kernel_size * k->t.m);
  const int64_t parts = k->way == WAY_JOINED ? 1 : k->rows * k->taps;
  return (size_t)(k->t.group * parts * cpu_panel_padded(k->columns) * k->units);
}

// From [c, mg, rows, taps].
static assay_status_t pack(void* user, void* to) {
  const packing_t* p = user;
  const up_t* k = p->k;
  const assay_conv_transpose_t* t = &k->t;
  float* from = NULL;
  uint32_t* out = to;
  ASSAY_TRY(assay_operand_floats(p->weights, &from));
  memset(out, 0, packed_units(k) * sizeof *out);
  const job_t whole = {.k = k};
  const int64_t all = t->c * t->mg * t->kernel_size;
  for (int64_t i = 0; i < all; i++) {
    const int64_t tap = i % k->taps, row = i / k->taps % k->rows;
    const int64_t m = i / t->kernel_size % t->mg, c = i / t->kernel_size / t->mg;
    if (k->way == WAY_DEPTHWISE) {
      out[(row * k->taps + tap) * t->m + c] = cpu_bits(from[i]);
      continue;
    }
    job_t j = whole;
    j.group = c / t->cg;
    const int64_t position = row * k->taps + tap;
    const int64_t column = k->way == WAY_JOINED ? position * t->mg + m : m;
    const int64_t panel =
        panel_place(&j, k->way == WAY_JOINED ? 0 : position, column / CPU_PANEL * CPU_PANEL);
    cpu_panel_put(out + panel + column % CPU_PANEL, c % t->cg, from[i], k->bf16);
  }
  assay_free(from);
  return NULL;
}

static assay_status_t pack_weights(up_t* k, const assay_operand_t* weights) {
  const packing_t p = {k, weights};
  const void* packed = NULL;
  assay_str_t key = {0};
  assay_str_printf_raw(&key, "%s as %s for conv_transpose, way %d, %s, %lld groups of %lld by %lld",
                       weights->value->name, assay_type_name(weights->type), (int)k->way,
                       k->bf16 ? "pairs" : "floats", (long long)k->t.group, (long long)k->t.cg,
                       (long long)k->t.mg);
  for (int i = 0; i < k->t.w.rank; i++)
    assay_str_printf_raw(&key, "x%lld", (long long)k->t.w.axis[i].kernel);
  assay_status_t st = assay_weights_get_by(weights->store, &key,
                                           packed_units(k) * sizeof *k->weights, pack, &p, &packed);
  k->weights = packed;
  return st;
}

static assay_status_t add_bias(up_t* k, const assay_operand_t* o) {
  float* given = NULL;
  const int64_t own = channels_of(k);
  const size_t n = (size_t)(groups_of(k) * cpu_panel_padded(own));
  if (o) ASSAY_TRY(assay_operand_floats(o, &given));
  assay_status_t st = assay_new_array(n, sizeof *k->bias, &k->bias);
  for (int64_t i = 0; !st && given && i < k->t.m; i++)
    k->bias[i / own * cpu_panel_padded(own) + i % own] = given[i];
  assay_free(given);
  return st;
}

// ---- making ------------------------------------------------------------------------------------

typedef struct operands {
  const assay_operand_t *x, *w, *bias;
} operands_t;

static bool find_operands(const assay_sized_layer_t* l, operands_t* o) {
  const assay_node_t* n = l->layer->nodes[0];
  if (*n->domain || strcmp(n->op_type, "ConvTranspose") != 0 || !n->op || l->n_out != 1 ||
      !l->out[0].value || !l->out[0].size || !assay_type_is_kernel_float(l->out[0].type))
    return false;
  const bool has_bias = n->n_inputs > 2 && n->inputs[2];
  *o = (operands_t){.x = assay_sized_input(l, n->inputs[0]),
                    .w = assay_sized_input(l, n->inputs[1])};
  if (has_bias) o->bias = assay_sized_input(l, n->inputs[2]);
  return o->x && o->w && o->w->constant && o->x->rank >= 3 && o->x->size && o->w->size &&
         assay_type_is_kernel_float(o->x->type) && o->x->type == o->w->type &&
         (!has_bias || (o->bias && o->bias->constant));
}

static assay_status_t read_node(const assay_sized_layer_t* l, const operands_t* o,
                                assay_conv_transpose_t* t, bool* out_fits) {
  const assay_node_t* n = l->layer->nodes[0];
  const assay_operand_t* y = &l->out[0];
  const assay_tensor_t x = cpu_operand_head(o->x), w = cpu_operand_head(o->w);
  ASSAY_TRY(assay_conv_transpose_read(n, &x, &w, NULL, n->op->since, t));
  // What does not fit together is for the emulated engine, which says so.
  *out_fits = y->rank == x.rank && y->dims[0] == t->n && y->dims[1] == t->m &&
              y->size == t->n * t->m * t->out_size && (!o->bias || o->bias->size == t->m);
  for (int i = 0; i < t->w.rank; i++) *out_fits &= y->dims[2 + i] == t->w.axis[i].in;
  return NULL;
}

static void find_way(up_t* k) {
  const assay_conv_transpose_t* t = &k->t;
  k->taps = last_axis(k)->kernel;
  k->rows = t->kernel_size / k->taps;
  k->lines = t->out_size / last_axis(k)->in;
  k->in_lines = t->in_size / last_axis(k)->out;
  if (t->cg == 1 && t->mg == 1)
    k->way = WAY_DEPTHWISE;
  else if (cpu_panel_padded(t->kernel_size * t->mg) * 2 <= t->kernel_size * cpu_panel_padded(t->mg))
    k->way = WAY_JOINED;
  k->columns = k->way == WAY_JOINED ? t->kernel_size * t->mg : t->mg;
  k->bf16 = k->bf16 && k->way != WAY_DEPTHWISE && t->cg % 2 == 0 && cpu_gemm_has_bf16();
  k->type = k->bf16 ? ASSAY_TYPE_BFLOAT16 : ASSAY_TYPE_FLOAT;
  k->units = k->bf16 ? t->cg / 2 : t->cg;
}

// Tiles of some places, as long as their sums stay in the cache; smaller ones where threads would
// go without.
static void find_tiles(up_t* k) {
  const assay_window_axis_t* a = last_axis(k);
  k->threads = omp_get_max_threads();
  k->tile_places = a->in <= PLACES ? a->in : parts_of(PLACES / 2, a->stride) * a->stride;
  // A joined product is made again for each tile that it reaches into: these are large.
  const int64_t places =
      k->way == WAY_JOINED ? JOINED_BYTES / (int64_t)sizeof(float) / k->t.mg : PLACES;
  k->tile_lines = min(k->lines, parts_of(places, k->tile_places));
  k->tile_columns = TILE_BYTES / (int64_t)sizeof(float) / (k->tile_places * k->tile_lines);
  k->tile_columns = k->tile_columns / WIDE * WIDE;
  if (k->tile_columns < WIDE) k->tile_columns = WIDE;
  if (k->tile_columns > channels_of(k) || k->way == WAY_JOINED) k->tile_columns = channels_of(k);
  while (n_tiles(k) < 2 * k->threads && k->tile_columns > WIDE && k->way != WAY_JOINED)
    k->tile_columns = parts_of(k->tile_columns, 2 * WIDE) * WIDE;
  while (n_tiles(k) < 2 * k->threads && k->tile_lines > 1) k->tile_lines = (k->tile_lines + 1) / 2;
  k->tile_floats = (size_t)(k->tile_places * k->tile_lines * cpu_panel_padded(k->tile_columns));
  if (k->direct) k->tile_floats = 0;
  // Places of a line that one tile reads: a few more than it makes, apart from the stride.
  const int64_t reach = (a->kernel - 1) * a->dilation + 1;
  const int64_t read = min(a->out, parts_of(k->tile_places + reach, a->stride) + 1);
  if (k->way == WAY_JOINED) k->product_floats = (size_t)(read * cpu_panel_padded(k->columns));
  k->base.scratch =
      ((size_t)k->threads * (k->tile_floats + k->product_floats) + 16) * sizeof(float);
}

// What is done afterwards; *out_ok tells whether programs know it.
static assay_status_t add_program(up_t* k, const assay_sized_layer_t* l, bool* out_ok) {
  *out_ok = true;
  k->direct = l->layer->n_nodes == 1 && l->out[0].type == ASSAY_TYPE_FLOAT &&
              (k->way == WAY_DEPTHWISE || (k->way == WAY_BY_TAP && k->t.mg % CPU_PANEL == 0));
  if (k->direct) return NULL;
  ASSAY_TRY(cpu_program_make(l, 1, l->layer->nodes[0]->outputs[0], ASSAY_LAYOUT_CHANNELS_LAST,
                             &k->program));
  *out_ok = k->program;
  for (size_t i = 0; k->program && i < cpu_program_n_streams(k->program); i++) {
    const cpu_stream_t* s = cpu_program_stream(k->program, i);
    // One input in one form.
    if (s->constant || s->input < 0) continue;
    if (k->base.in[s->input].type) *out_ok = false;
    k->base.in[s->input] = (assay_storage_t){s->type, s->layout};
  }
  return NULL;
}

static assay_status_t build(up_t* k, const assay_sized_layer_t* l, const operands_t* o,
                            bool* out_ok) {
  ASSAY_TRY(read_node(l, o, &k->t, out_ok));
  if (!*out_ok) return NULL;
  k->input = (int)(o->x - l->in);
  k->bf16 = o->x->type == ASSAY_TYPE_BFLOAT16;
  find_way(k);
  k->base.in[k->input] = (assay_storage_t){k->type, ASSAY_LAYOUT_CHANNELS_LAST};
  k->base.out[0] = (assay_storage_t){l->out[0].type, ASSAY_LAYOUT_CHANNELS_LAST};
  ASSAY_TRY(add_program(k, l, out_ok));
  if (!*out_ok) return NULL;
  find_tiles(k);
  ASSAY_TRY(add_bias(k, o->bias));
  return pack_weights(k, o->w);
}

static assay_status_t make(const assay_sized_layer_t* l, assay_kernel_t** out) {
  operands_t o;
  up_t* k = NULL;
  bool ok = false;
  if (!find_operands(l, &o)) return NULL;
  ASSAY_TRY(ASSAY_NEW(&k));
  k->base = (assay_kernel_t){.in_place = -1, .run = run, .destroy = destroy};
  assay_status_t st = build(k, l, &o, &ok);
  if (st || !ok) return destroy(&k->base), st;
  *out = &k->base;
  return NULL;
}

const assay_tactic_t cpu_tactic_conv_transpose = {
    .name = "conv_transpose",
    .source = "assay",
    .make = make,
    .rounding = {CPU_FLOAT_SUMS},
};
