// Convolutions in bf16 by our own kernels, channels last: products whose rows are places of the
// output, read where they lie in the input, tap by tap; what the layer does to its sums is done
// while they are in the first cache.
//
// Every sum is one chain of multiply-adds, whatever the threads are. A tap that lies in the padding
// for all places that are made at once is left out. Places are made together with those that have
// the same taps in the padding; which those are follows from the sizes of a sample.
#include <stdlib.h>
#include <string.h>

#include "backends/cpu/conv_operands.h"
#include "backends/cpu/convert.h"
#include "backends/cpu/direct_kernel.h"
#include "backends/cpu/gemm.h"
#include "backends/cpu/program_code.h"
#include "backends/cpu/threads.h"
#include "base/alloc.h"
#include "ops/conv.h"

enum {
  TAPS = 64,  // more are for others
  PARTS = 64,
  TABLE = 1 << 20,        // entries; more are for others
  SORTED = 1 << 16,       // places of a sample; more are made as they come
  FEW_ROWS = 6,           // take as long as fewer do
  AHEAD_BYTES = 8192,     // that weights are brought near ahead, where they come for the first time
  ALIGNMENT = 16,         // floats
  OUTSIDE = -1,
};

// Where, in units, a window's taps lie along some axes: [out][kernel], OUTSIDE in the padding.
typedef struct axis_table {
  int64_t out, kernel;
  int64_t* at;
} axis_table_t;

typedef struct direct {
  assay_kernel_t base;
  int input;
  // Without padding, strides and other taps, all samples are one.
  bool bf16;
  bool joined, skips;
  axis_table_t across, along;       // all spatial axes but the last one; the last one
  int64_t samples, places, blocks;  // blocks of places of a sample
  int32_t* order;                   // of a sample's places; NULL: as they come
  int32_t* first;                   // [blocks + 1], of `order`
  int64_t* done;                    // [blocks + 1]: what there was to do before
  int64_t in_sample, units, taps, made;
  // Panels of channels of the output; how many stay in the cache, while so many blocks go by.
  int64_t panels, chunk, batch;
  int64_t cached;  // bytes of weights that stay in the second cache
  int most_parts;
  size_t thread_scratch;    // floats
  const uint32_t* weights;  // in panels, in the store
  float* bias;              // [made, padded]; NULL: none
  uint32_t* zeros;          // of one place
  cpu_program_t* program;   // NULL: none
  bool simple, relu;        // what direct_finish_t does is all that the layer does
  int add;                  // the input that it adds; -1: none
} direct_t;

// ---- running -----------------------------------------------------------------------------------

typedef struct job {
  const direct_t* k;
  const void* const* in;
  void* out;
  float* sums;
} job_t;

// The places of a block, and where their elements begin in the output.
typedef struct rows {
  const uint32_t* x;  // of the sample
  int n;
  int64_t place[DIRECT_ROWS], at[DIRECT_ROWS];
} rows_t;

static void find_rows(const job_t* j, int64_t block, rows_t* r) {
  const direct_t* k = j->k;
  const int64_t sample = block / k->blocks, i = block % k->blocks;
  const int64_t from = k->order ? k->first[i] : k->places * i / k->blocks;
  const int64_t to = k->order ? k->first[i + 1] : k->places * (i + 1) / k->blocks;
  r->x = (const uint32_t*)j->in[k->input] + sample * k->in_sample;
  r->n = (int)(to - from);
  for (int n = 0; n < r->n; n++) {
    r->place[n] = k->order ? k->order[from + n] : from + n;
    r->at[n] = (sample * k->places + r->place[n]) * k->made;
  }
}

// Where the channels of a block's places lie under each tap.
static void find_taps(const direct_t* k, const rows_t* rows, direct_block_t* b, int32_t* taps,
                      const uint32_t** at) {
  const int64_t *outer[DIRECT_ROWS], *inner[DIRECT_ROWS];
  b->n_taps = 0;
  if (k->joined) {
    taps[b->n_taps++] = 0;
    for (int r = 0; r < rows->n; r++) at[r] = rows->x + rows->place[r] * k->units;
    return;
  }
  for (int r = 0; r < rows->n; r++) {
    outer[r] = k->across.at + rows->place[r] / k->along.out * k->across.kernel;
    inner[r] = k->along.at + rows->place[r] % k->along.out * k->along.kernel;
  }
  for (int64_t p = 0, tap = 0; p < k->across.kernel; p++)
    for (int64_t q = 0; q < k->along.kernel; q++, tap++) {
      bool meets = !k->skips;
      for (int r = 0; r < rows->n; r++) {
        const int64_t from = outer[r][p], to = inner[r][q];
        const bool inside = from != OUTSIDE && to != OUTSIDE;
        at[r] = inside ? rows->x + from + to : k->zeros;
        meets |= inside;
      }
      if (!meets) continue;
      taps[b->n_taps++] = (int32_t)tap;
      at += DIRECT_ROWS;
    }
}

// What programs do to the sums of columns [first, first + columns), by places that lie side by
// side.
static void finish_rows(const job_t* j, const rows_t* rows, int64_t first, int64_t columns) {
  const direct_t* k = j->k;
  for (int r = 0, end; r < rows->n; r = end) {
    for (end = r + 1; end < rows->n && rows->place[end] == rows->place[end - 1] + 1;) end++;
    const cpu_program_part_t part = {.from = rows->at[r] + first,
                                     .n = k->made - first < columns ? k->made - first : columns,
                                     .runs = end - r,
                                     .step = k->made,
                                     .result = j->sums + r * columns,
                                     .result_step = columns};
    cpu_program_run_part(k->program, j->in, k->base.out[0].type, j->out, &part);
  }
}

// Panels [panel, end) of some places.
static void run_block(const job_t* j, direct_block_t* b, const rows_t* rows, int64_t panel,
                      int64_t end) {
  const direct_t* k = j->k;
  const int64_t columns = (end - panel) * DIRECT_PANEL;
  const int64_t panel_units = k->taps * k->units * DIRECT_PANEL;
  b->element = k->base.out[0].type == ASSAY_TYPE_FLOAT ? 4 : 2;
  b->step = k->simple ? DIRECT_PANEL : columns;
  b->sums = j->sums;
  for (int64_t p = panel; p < end; p++) {
    const int64_t column = p * DIRECT_PANEL, left = k->made - column;
    b->panel = k->weights + p * panel_units;
    b->start = k->bias ? k->bias + column : NULL;
    b->vectors = left > DIRECT_LANES ? 2 : 1;
    b->write_ahead = (const char*)j->out + column * b->element;
    if (k->add >= 0 && j->in[k->add] != j->out)
      b->read_ahead = (const char*)j->in[k->add] + column * b->element;
    const direct_finish_t finish = {
        .rows = b->rows,
        .columns = left < DIRECT_PANEL ? left : DIRECT_PANEL,
        .sums = j->sums,
        .add = k->add < 0 ? NULL : (const char*)j->in[k->add] + column * b->element,
        .relu = k->relu,
        .out = (char*)j->out + column * b->element,
        .at = rows->at};
    if (!k->bf16) {
      b->finish = k->simple ? &finish : NULL;
      cpu_direct_block_f32(b);
    } else {
      cpu_direct_block(b);
      if (k->simple) cpu_direct_finish(&finish);
    }
    if (!k->simple) b->sums += DIRECT_PANEL;
  }
  if (!k->simple) finish_rows(j, rows, panel * DIRECT_PANEL, columns);
}

// Blocks [block, last) and panels [panel, end), whose weights stay in the cache. Those of the next
// panels come there meanwhile.
static void run_chunk(const job_t* j, int64_t block, int64_t last, int64_t panel, int64_t end,
                      int64_t next_panel, int64_t next_end, bool cold) {
  const direct_t* k = j->k;
  const int64_t panel_units = k->taps * k->units * DIRECT_PANEL;
  // Not where they would push out those of these panels.
  const bool large = (end - panel) * panel_units * 4 > k->cached;
  if (large) next_end = next_panel;
  const char* limit = (const char*)(k->weights + next_end * panel_units);
  int32_t taps[TAPS];
  const uint32_t* at[TAPS * DIRECT_ROWS];
  const char* fetch = (const char*)(k->weights + next_panel * panel_units);
  rows_t both[2];
  find_rows(j, block, &both[0]);
  for (int64_t i = block; i < last; i++) {
    const rows_t* rows = &both[(i - block) % 2];
    rows_t* next = &both[(i - block + 1) % 2];
    direct_block_t b = {.rows = rows->n, .taps = taps, .at = at, .units = k->units};
    find_taps(k, rows, &b, taps, at);
    if (i + 1 < last) {
      find_rows(j, i + 1, next);
      b.ahead = next->at;
      b.rows_ahead = next->n;
    }
    if ((cold || large) && i == block) {
      b.fetch = (const char*)(k->weights + panel * panel_units) +
                (rows->n < FEW_ROWS ? 4 * AHEAD_BYTES : AHEAD_BYTES);
      b.fetch_every = 1;
      run_block(j, &b, rows, panel, end);
      continue;
    }
    if (fetch < limit) b.fetch = fetch;
    b.fetch_every = last - block;
    run_block(j, &b, rows, panel, end);
    if (fetch < limit) fetch = b.fetch;
  }
}

// Some blocks of places and some panels: panels go by while what is read of so many places stays in
// the cache, as panels are fetched ahead.
static void run_share(const job_t* j, int64_t block, int64_t last, int64_t panel, int64_t end) {
  const direct_t* k = j->k;
  const int64_t chunk = k->chunk, all = last - block;
  const int64_t batches = end - panel > chunk ? (all + k->batch - 1) / k->batch : all > 0;
  for (int64_t i = 0; i < batches; i++)
    for (int64_t p = panel; p < end; p += chunk) {
      const int64_t to = end - p < chunk ? end : p + chunk;
      // Behind the last panels come the first ones again.
      const int64_t next = to < end || i + 1 == batches ? to : panel;
      run_chunk(j, block + all * i / batches, block + all * (i + 1) / batches, p, to, next,
                end - next < chunk ? end : next + chunk, i == 0 && p == panel);
    }
}

// Into how many parts panels are cut, the rest by places: so that threads together read least.
static int panel_parts(const direct_t* k, int parts) {
  const double weights = (double)(k->panels * DIRECT_PANEL) * (double)(k->taps * k->units);
  const double read = (double)k->samples * (double)k->in_sample;
  int best = 1;
  double least = -1;
  for (int n = 1; n <= parts; n++) {
    if (parts % n || (n > 1 && k->panels < 2 * n)) continue;
    const int rest = parts / n;
    const int64_t blocks = k->samples * k->blocks;
    // The largest share of what there is to do.
    const double work = (double)((k->panels + n - 1) / n) * (double)((blocks + rest - 1) / rest) *
                        parts / (double)(k->panels * blocks);
    const double bytes = work * (weights / n + read / rest);
    if (least < 0 || bytes < least) least = bytes, best = n;
  }
  return best;
}

// The block with which share `part` of `parts` begins.
static int64_t block_of(const direct_t* k, int64_t part, int64_t parts) {
  if (!k->order || part == parts) return k->samples * k->blocks * part / parts;
  const int64_t of_sample = k->done[k->blocks], at = k->samples * of_sample / parts * part;
  int64_t low = 0, high = k->blocks;
  while (low < high) {
    const int64_t middle = (low + high) / 2;
    if (k->done[middle] < at % of_sample)
      low = middle + 1;
    else
      high = middle;
  }
  return at / of_sample * k->blocks + low;
}

static assay_status_t run(assay_kernel_t* base, const void* const* in, void* const* out,
                          void* scratch) {
  const direct_t* k = (const direct_t*)base;
  const int64_t weights = k->panels * DIRECT_PANEL * k->taps * k->units;
  const int64_t sums = k->samples * k->places * k->made / DIRECT_LANES;
  const int64_t work = sums * (k->taps * k->units + DIRECT_LANES);
  // Of few places, weights take longer to come than to be multiplied.
  int parts = cpu_threads(work > weights ? work : weights);
  if (parts > k->most_parts) parts = k->most_parts;
  float* own = (float*)(((uintptr_t)scratch + 63) / 64 * 64);
  const int across = panel_parts(k, parts), down = parts / across;
#pragma omp parallel for schedule(static, 1) num_threads(parts) if (parts > 1)
  for (int p = 0; p < parts; p++) {
    const job_t j = {k, in, out[0], own + (size_t)p * k->thread_scratch};
    const int64_t a = p % across, d = p / across;
    run_share(&j, block_of(k, d, down), block_of(k, d + 1, down), k->panels * a / across,
              k->panels * (a + 1) / across);
  }
  return NULL;
}

static void destroy(assay_kernel_t* base) {
  direct_t* k = (direct_t*)base;
  cpu_program_destroy(k->program);
  assay_free(k->across.at);
  assay_free(k->along.at);
  assay_free(k->order);
  assay_free(k->first);
  assay_free(k->done);
  assay_free(k->bias);
  assay_free(k->zeros);
  assay_free(k);
}

// ---- weights -----------------------------------------------------------------------------------

typedef struct packing {
  const direct_t* k;
  const assay_operand_t* weights;  // [made, channels, taps]
} packing_t;

static size_t packed_units(const direct_t* k) {
  return (size_t)(k->panels * DIRECT_PANEL * k->taps * k->units);
}

static assay_status_t pack(void* user, void* to) {
  const packing_t* p = user;
  const direct_t* k = p->k;
  const int64_t channels = k->bf16 ? 2 * k->units : k->units;
  float* from = NULL;
  ASSAY_TRY(assay_operand_floats(p->weights, &from));
  uint16_t* out = to;
  float* outf = to;
  memset(out, 0, packed_units(k) * sizeof(uint32_t));
  for (int64_t m = 0; m < k->made; m++)
    for (int64_t c = 0; c < channels; c++)
      for (int64_t t = 0; t < k->taps; t++) {
        if (!k->bf16) {
          const int64_t row = (m / DIRECT_PANEL * k->taps + t) * k->units + c;
          outf[row * DIRECT_PANEL + m % DIRECT_PANEL] = from[(m * channels + c) * k->taps + t];
          continue;
        }
        const int64_t row = (m / DIRECT_PANEL * k->taps + t) * k->units + c / 2;
        out[(row * DIRECT_PANEL + m % DIRECT_PANEL) * 2 + c % 2] =
            cpu_to_bf16(from[(m * channels + c) * k->taps + t]);
      }
  assay_free(from);
  return NULL;
}

static assay_status_t pack_weights(direct_t* k, const assay_operand_t* weights) {
  const packing_t p = {k, weights};
  const void* packed = NULL;
  assay_str_t key = {0};
  assay_str_printf(&key, "%s%s in panels of %d, %lld channels under %lld taps", weights->value->name, k->bf16?"":" f32",
                   DIRECT_PANEL, (long long)(2 * k->units), (long long)k->taps);
  assay_status_t st = assay_str_status(&key);
  if (!st)
    st = assay_weights_get(weights->store, assay_str_get(&key), packed_units(k) * sizeof(uint32_t),
                           pack, (void*)(uintptr_t)&p, &packed);
  k->weights = packed;
  assay_str_deinit(&key);
  return st;
}

// Infinity under the padding would give NaN: taps are left out where there is none.
static bool are_finite(const direct_t* k) {
  bool finite = true;
  const size_t n = packed_units(k);
  for (size_t i = 0; i < n; i++)
    finite &= !k->bf16 ? (k->weights[i] & 0x7f800000) != 0x7f800000 : (k->weights[i] & 0x7f80) != 0x7f80 && (k->weights[i] & 0x7f800000) != 0x7f800000;
  return finite;
}

// ---- which places together ----------------------------------------------------------------------

typedef struct place {
  uint64_t across, along, taps;  // which ones meet the input
  int32_t at;
} place_t;

static int by_taps(const void* a, const void* b) {
  const place_t *x = a, *y = b;
  if (x->across != y->across) return x->across < y->across ? -1 : 1;
  if (x->along != y->along) return x->along < y->along ? -1 : 1;
  return x->at < y->at ? -1 : 1;
}

static uint64_t taps_of(const axis_table_t* t, int64_t out) {
  uint64_t taps = 0;
  for (int64_t i = 0; i < t->kernel; i++)
    taps |= (uint64_t)(t->at[out * t->kernel + i] != OUTSIDE) << i;
  return taps;
}

static void sort_places(const direct_t* k, place_t* places) {
  for (int64_t i = 0; i < k->places; i++) {
    place_t* p = &places[i];
    p->at = (int32_t)i;
    p->across = taps_of(&k->across, i / k->along.out);
    p->along = taps_of(&k->along, i % k->along.out);
    p->taps = 0;
    for (int64_t t = 0; t < k->across.kernel; t++)
      if (p->across >> t & 1) p->taps |= p->along << t * k->along.kernel;
  }
  qsort(places, (size_t)k->places, sizeof *places, by_taps);
}

// What a block costs: its taps for each of its rows, and something besides.
static int64_t cost_of(int rows, uint64_t taps) {
  return (2 * (rows > FEW_ROWS ? rows : FEW_ROWS) + 1) * (__builtin_popcountll(taps) + 1);
}

// Cuts places into blocks that cost least together: least[i] is what the first i cost, of which the
// last rows[i] are one block.
static void cut_places(direct_t* k, const place_t* places, int64_t* least, uint8_t* rows) {
  for (int64_t i = 1; i <= k->places; i++) {
    uint64_t taps = 0;
    least[i] = INT64_MAX;
    for (int n = 1; n <= DIRECT_ROWS && n <= i; n++) {
      taps |= places[i - n].taps;
      const int64_t cost = least[i - n] + cost_of(n, taps);
      if (cost < least[i]) least[i] = cost, rows[i] = (uint8_t)n;
    }
  }
  k->blocks = 0;
  for (int64_t i = k->places; i > 0; i -= rows[i]) k->blocks++;
  int64_t block = k->blocks;
  k->first[block] = (int32_t)k->places;
  k->done[block] = least[k->places];
  for (int64_t i = k->places; i > 0;) {
    i -= rows[i];
    k->first[--block] = (int32_t)i;
    k->done[block] = least[i];
  }
  for (int64_t i = 0; i < k->places; i++) k->order[i] = places[i].at;
}

static assay_status_t find_order(direct_t* k) {
  const size_t n = (size_t)k->places;
  place_t* places = NULL;
  int64_t* least = NULL;
  uint8_t* rows = NULL;
  if (n > SORTED) return NULL;
  assay_status_t st = assay_new_array(n, sizeof *places, &places);
  if (!st) st = assay_new_array(n + 1, sizeof *least, &least);
  if (!st) st = assay_new_array(n + 1, sizeof *rows, &rows);
  if (!st) st = assay_new_array(n, sizeof *k->order, &k->order);
  if (!st) st = assay_new_array(n + 1, sizeof *k->first, &k->first);
  if (!st) st = assay_new_array(n + 1, sizeof *k->done, &k->done);
  if (!st) {
    sort_places(k, places);
    cut_places(k, places, least, rows);
  }
  assay_free(places);
  assay_free(least);
  assay_free(rows);
  return st;
}

// ---- which layers ------------------------------------------------------------------------------

// Axes [first, end) of a window, of an input whose places are `step` units apart along the last of
// them. *out_ok: there are not too many places.
static assay_status_t make_table(const assay_window_t* w, int first, int end, int64_t step,
                                 axis_table_t* t, bool* out_ok) {
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
        if (x < 0 || x >= a->in) at = OUTSIDE;
        if (at != OUTSIDE) at += x * apart;
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
  k->units = k->bf16 ? s->c / 2 : s->c;
  k->in_sample = s->in_size * k->units;
  k->taps = s->kernel_size;
  k->made = s->m;
  k->panels = (s->m + DIRECT_PANEL - 1) / DIRECT_PANEL;
  k->joined = s->kernel_size == 1 && s->in_size == s->out_size;
  for (int i = 0; i <= last; i++)
    k->joined &= s->w.axis[i].stride == 1 && !s->w.axis[i].pads[0] && !s->w.axis[i].pads[1];
  *out_ok = s->group == 1 && (k->bf16 ? s->c % 2 == 0 : s->c > 4) && k->taps <= TAPS;
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

static void cut(direct_t* k) {
  const int64_t bytes = DIRECT_PANEL * k->taps * k->units * 4;
  const int64_t near = cpu_second_cache();
  k->cached = near / 5 * 2;
  const int64_t fit = (k->panels * bytes > k->cached ? near / 5 : k->cached) / bytes;
  k->chunk = fit < 1 ? 1 : fit < k->panels ? fit : k->panels;
  const int64_t of_block = k->in_sample * 4 / k->blocks + 1;
  k->batch = bytes > k->cached ? k->samples * k->blocks : near / 3 / of_block + 1;
  // Scratch memory for no more parts than there is work for.
  const int64_t work = k->samples * k->blocks * k->panels * (k->taps * k->units / 200 + 1) / 2 + 1;
  k->most_parts = work < PARTS ? (int)work : PARTS;
  k->thread_scratch = (size_t)(DIRECT_ROWS * DIRECT_PANEL * (k->simple ? 1 : k->chunk));
  k->base.scratch = ((size_t)k->most_parts * k->thread_scratch + ALIGNMENT) * sizeof(float);
}

// Whether the layer, behind its sums, does no more than direct_finish_t.
static void find_finish(direct_t* k) {
  const cpu_program_t* p = k->program;
  k->add = -1;
  if (k->base.out[0].type != (k->bf16 ? ASSAY_TYPE_BFLOAT16 : ASSAY_TYPE_FLOAT)) return;
  const int n = p->n_links;
  if (n < 1 || n > 2 || p->streams[p->first_stream].input != PROGRAM_RESULT) return;
  int i = 0;
  if (p->links[i].kind == CPU_LINK_ADD) {
    const int s = p->links[i++].stream;
    if (p->streams[s].constant || p->streams[s].input < 0 ||
        p->streams[s].type != k->base.out[0].type || p->walks[s].access != PROGRAM_WHOLE)
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

static assay_status_t build(direct_t* k, const assay_sized_layer_t* l, const cpu_conv_operands_t* o,
                            const assay_conv_t* s, bool* out_ok) {
  k->bf16 = o->x->type == ASSAY_TYPE_BFLOAT16;
  k->base.in[k->input] = (assay_form_t){o->x->type, ASSAY_LAYOUT_CHANNELS_LAST};
  k->base.out[0] = (assay_form_t){l->out[0].type, ASSAY_LAYOUT_CHANNELS_LAST};
  ASSAY_TRY(use_conv(k, s, out_ok));
  if (*out_ok) ASSAY_TRY(add_program(k, l, out_ok));
  if (!*out_ok) return NULL;
  ASSAY_TRY(assay_operand_padded_floats(o->bias, k->panels * DIRECT_PANEL, &k->bias));
  ASSAY_TRY(assay_new_array((size_t)k->units, sizeof *k->zeros, &k->zeros));
  ASSAY_TRY(pack_weights(k, o->weights));
  k->skips = !k->joined && k->taps > 1 && are_finite(k);
  if (k->skips) ASSAY_TRY(find_order(k));
  cut(k);
  return NULL;
}

static assay_status_t make(const assay_sized_layer_t* l, assay_kernel_t** out) {
  cpu_conv_operands_t o;
  assay_conv_t s;
  bool ok;
  if (!cpu_conv_operands(l, &o) || o.x->type == ASSAY_TYPE_FLOAT16 ||
      !cpu_gemm_suits(o.x->type == ASSAY_TYPE_BFLOAT16))
    return NULL;
  ASSAY_TRY(cpu_conv_read(l, &o, &s, &ok));
  if (!ok) return NULL;
  direct_t* k = NULL;
  ASSAY_TRY(ASSAY_NEW(&k));
  k->base = (assay_kernel_t){.in_place = -1, .run = run, .destroy = destroy};
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
    .rounding = {.compute = ASSAY_FORMAT_FP32,
                 .accumulator = ASSAY_FORMAT_FP32,
                 .fma = true,
                 .by_definition = true,
                 .flushes = true,
                 .function_ulps = 4},
};
