// Convolutions by oneDNN in tiles: some rows of one sample, some of the channels.
#ifdef ASSAY_ONEDNN
#include "backends/cpu/conv/onednn_tiles.h"

#include <omp.h>
#include <string.h>

#include "backends/cpu/threads.h"
#include "base/alloc.h"

enum {
  MAX_PIECES = 8,
  MAX_PARTS = 32,
  ALIGNMENT = 64,
  TILE_BYTES = 512 * 1024,       // of what a tile reads, and of what it makes
  WEIGHT_BYTES = 768 * 1024,     // of a part of the channels
  TILE_FLOPS = 2 * 1000 * 1000,  // worth handing to another thread
  TILES = 16,                    // of a sample, for threads to share, where that is worth it
  TILE_PLACES = 48,              // so few places of the output, and products lose speed
};

// Tiles of one height, with as much padding, run the same primitive.
typedef struct piece {
  int64_t rows_in, rows_out, before, behind;
  dnnl_primitive_t primitive;
  dnnl_memory_t weights[MAX_PARTS];
} piece_t;

// Memory objects of a piece, for one thread at a time.
typedef struct hands {
  dnnl_memory_t src, dst, scratchpad;
} hands_t;

typedef struct tile {
  int piece;
  int64_t row_in, row_out;
} tile_t;

typedef struct tiles {
  assay_kernel_t base;
  int src_input;
  cpu_program_t* program;  // NULL: none
  // Elements: of a row along the first spatial axis, and of a sample.
  int64_t samples, in_row, out_row, in_sample, out_sample, row_places, channels, flops;
  size_t in_bytes, dst_bytes;  // of an element
  bool apart;                  // the primitive does not write to the output itself
  piece_t pieces[MAX_PIECES];
  int n_pieces, n_parts, n_threads;
  tile_t* tiles;
  int64_t n_tiles, rows;
  float* bias_data;
  dnnl_memory_t bias[MAX_PARTS];
  hands_t* hands;  // [n_threads][MAX_PIECES]
  size_t scratchpad, thread_scratch;
} tiles_t;

static size_t aligned(size_t bytes) { return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT; }

static void free_memory(dnnl_memory_t m) {
  if (m) dnnl_memory_destroy(m);
}

static void destroy(assay_kernel_t* base) {
  tiles_t* k = (tiles_t*)base;
  for (int i = 0; i < k->n_pieces; i++) {
    if (k->pieces[i].primitive) dnnl_primitive_destroy(k->pieces[i].primitive);
    for (int p = 0; p < MAX_PARTS; p++) free_memory(k->pieces[i].weights[p]);
  }
  for (int p = 0; p < MAX_PARTS; p++) free_memory(k->bias[p]);
  for (int i = 0; k->hands && i < k->n_threads * MAX_PIECES; i++) {
    free_memory(k->hands[i].src);
    free_memory(k->hands[i].dst);
    free_memory(k->hands[i].scratchpad);
  }
  cpu_program_destroy(k->program);
  assay_free(k->hands);
  assay_free(k->tiles);
  assay_free(k->bias_data);
  assay_free(k);
}

// ---- running -----------------------------------------------------------------------------------

typedef struct job {
  tiles_t* k;
  const void* const* in;
  char *out, *scratch;
} job_t;

static assay_status_t run_tile(const job_t* j, int thread, int64_t sample, const tile_t* t,
                               int part) {
  tiles_t* k = j->k;
  const piece_t* piece = &k->pieces[t->piece];
  const hands_t* h = &k->hands[thread * MAX_PIECES + t->piece];
  char* scratch = j->scratch + (size_t)thread * k->thread_scratch;
  const int64_t own = k->channels / k->n_parts, places = piece->rows_out * k->row_places;
  const int64_t from = sample * k->out_sample + t->row_out * k->out_row + part * own;
  const char* src = (const char*)j->in[k->src_input] +
                    (size_t)(sample * k->in_sample + t->row_in * k->in_row) * k->in_bytes;
  char* dst = k->apart ? scratch + k->scratchpad : j->out + (size_t)from * k->dst_bytes;
  const dnnl_exec_arg_t args[] = {{DNNL_ARG_SRC, h->src},
                                  {DNNL_ARG_DST, h->dst},
                                  {DNNL_ARG_SCRATCHPAD, h->scratchpad},
                                  {DNNL_ARG_WEIGHTS, piece->weights[part]},
                                  {DNNL_ARG_BIAS, k->bias[part]}};
  dnnl_memory_set_data_handle(h->src, (void*)(uintptr_t)src);
  dnnl_memory_set_data_handle(h->dst, dst);
  dnnl_memory_set_data_handle(h->scratchpad, scratch);
  ASSAY_TRY(dnn_execute(piece->primitive, k->bias[part] ? 5 : 4, args, "running a tile"));
  if (!k->program) return NULL;
  const cpu_program_part_t made = {.from = from,
                                   .n = own,
                                   .runs = places,
                                   .step = k->channels,
                                   .result = (const float*)(void*)dst,
                                   .result_step = k->apart ? own : k->channels};
  cpu_program_run_part(k->program, j->in, k->base.out[0].type, j->out, &made);
  return NULL;
}

// The tiles that are left, one after the other; parts come last, so that weights stay in the cache.
static assay_status_t run_share(const job_t* j, int thread, int64_t* next) {
  const tiles_t* k = j->k;
  const int64_t of_part = k->samples * k->n_tiles, all = of_part * k->n_parts;
  for (;;) {
    int64_t i;
#pragma omp atomic capture
    i = (*next)++;
    if (i >= all) return NULL;
    const int64_t at = i % of_part;
    ASSAY_TRY(run_tile(j, thread, at / k->n_tiles, &k->tiles[at % k->n_tiles], (int)(i / of_part)));
  }
}

static assay_status_t run(assay_kernel_t* base, const void* const* in, void* const* out,
                          void* scratch) {
  tiles_t* k = (tiles_t*)base;
  const job_t j = {k, in, out[0], (char*)aligned((uintptr_t)scratch)};
  const int64_t tiles = k->samples * k->n_tiles * k->n_parts;
  const int before = omp_get_max_threads();
  int threads = cpu_threads(k->flops / 10);
  int64_t next = 0;
  assay_status_t st = NULL;
  if (threads > tiles) threads = (int)tiles;
  if (threads > k->n_threads) threads = k->n_threads;
  if (threads == 1) {
    // Primitives are made for one thread.
    omp_set_num_threads(1);
    st = run_share(&j, 0, &next);
    omp_set_num_threads(before);
    return st;
  }
#pragma omp parallel num_threads(threads)
  {
    assay_status_t mine = run_share(&j, omp_get_thread_num(), &next);
#pragma omp critical
    if (st)
      assay_status_free(mine);
    else
      st = mine;
  }
  return st;
}

// ---- how a sample is cut -----------------------------------------------------------------------

// Channels are parted where not all weights stay in the cache beside a tile, and in two where a
// sample has too few places for two tiles, but work for them.
static int parts_of(const dnn_conv_t* c, size_t bytes, int64_t flops_of_sample) {
  const int64_t all = c->s.m * c->s.cg * c->s.kernel_size * (int64_t)bytes;
  int best = 1;
  if (c->s.group > 1) return 1;
  for (int n = 2; n <= MAX_PARTS && all / best > WEIGHT_BYTES; n++)
    if (c->s.m % n == 0 && c->s.m / n % 32 == 0 && c->s.m / n >= 64) best = n;
  if (best == 1 && c->s.out_size < 2 * TILE_PLACES && flops_of_sample >= 2 * TILE_FLOPS &&
      c->s.m % 32 == 0 && c->s.m >= 64)
    return 2;
  return best;
}

// Rows of the output that a tile makes.
static int64_t rows_of(const tiles_t* k, const dnn_conv_t* c) {
  const assay_window_axis_t* a = &c->s.w.axis[0];
  const int64_t made = k->out_row / k->n_parts * (int64_t)sizeof(float);
  const int64_t read = k->in_row * a->stride * (int64_t)k->in_bytes;
  const int64_t larger = made > read ? made : read;
  const int64_t flops = k->flops / k->samples / k->n_parts;
  int64_t n = TILES / k->n_parts < flops / TILE_FLOPS ? TILES / k->n_parts : flops / TILE_FLOPS;
  if (n < 1) n = 1;
  int64_t rows = (a->out + n - 1) / n;
  if (rows * k->row_places < TILE_PLACES) rows = (TILE_PLACES + k->row_places - 1) / k->row_places;
  if (rows * larger > TILE_BYTES) rows = TILE_BYTES / larger;
  if (rows < 1) rows = 1;
  if (rows >= a->out) return a->out;
  n = (a->out + rows - 1) / rows;
  return (a->out + n - 1) / n;
}

static int find_piece(tiles_t* k, const piece_t* p) {
  for (int i = 0; i < k->n_pieces; i++)
    if (k->pieces[i].rows_in == p->rows_in && k->pieces[i].rows_out == p->rows_out &&
        k->pieces[i].before == p->before && k->pieces[i].behind == p->behind)
      return i;
  if (k->n_pieces == MAX_PIECES) return -1;
  k->pieces[k->n_pieces] = *p;
  return k->n_pieces++;
}

// Cuts the first spatial axis into tiles of so many rows; false: they are not alike enough, or one
// lies in the padding.
static bool cut(tiles_t* k, const assay_window_axis_t* a, int64_t rows) {
  k->n_pieces = 0;
  k->n_tiles = (a->out + rows - 1) / rows;
  k->rows = rows;
  for (int64_t t = 0; t < k->n_tiles; t++) {
    const int64_t first = t * rows, end = first + rows < a->out ? first + rows : a->out;
    int64_t from = first * a->stride - a->pads[0];
    int64_t to = (end - 1) * a->stride + (a->kernel - 1) * a->dilation + 1 - a->pads[0];
    piece_t p = {.rows_out = end - first};
    p.before = from < 0 ? -from : 0;
    p.behind = to > a->in ? to - a->in : 0;
    if (from < 0) from = 0;
    if (to > a->in) to = a->in;
    p.rows_in = to - from;
    if (p.rows_in < 1) return false;
    k->tiles[t] = (tile_t){find_piece(k, &p), from, first};
    if (k->tiles[t].piece < 0) return false;
  }
  return true;
}

// One tile a sample, padded as the convolution is.
static void cut_nothing(tiles_t* k, const assay_window_axis_t* a, const dnn_window_t* w) {
  k->pieces[0] = (piece_t){
      .rows_in = a->in, .rows_out = a->out, .before = w->before[0], .behind = w->behind[0]};
  k->n_pieces = 1;
  k->n_tiles = 1;
  k->rows = a->out;
  k->tiles[0] = (tile_t){0};
}

// ---- making ------------------------------------------------------------------------------------

// The weights' dimensions: with groups, those come first.
static int weight_dims(const assay_conv_t* s, int64_t channels, int64_t* dims) {
  int n = 0;
  if (s->group > 1) dims[n++] = s->group;
  dims[n++] = channels / s->group;
  dims[n++] = s->cg;
  for (int i = 0; i < s->w.rank; i++) dims[n++] = s->w.axis[i].kernel;
  return n;
}

// oneDNN's older kernel on tiles lays the window of few channels out as one row of terms. What is
// left of its last tile it takes from beyond the window, and multiplies it by zero: NaN and
// infinities of other places would come in.
static bool reads_beyond(const_dnnl_primitive_desc_t d, const assay_conv_t* s) {
  static const char kernel[] = "jit:avx512_core_amx";
  enum { TILE_TERMS = 32 };
  const char* name = NULL;
  return s->cg < TILE_TERMS && s->kernel_size > 1 &&
         dnnl_primitive_desc_query(d, dnnl_query_impl_info_str, 0, &name) == dnnl_success &&
         strncmp(name, kernel, sizeof kernel - 1) == 0;
}

// The first implementation that reads nothing else than the window; *d NULL: there is none.
static assay_status_t pass_over(dnnl_primitive_desc_t* d, const assay_conv_t* s) {
  while (*d && reads_beyond(*d, s)) {
    const dnnl_status_t status = dnnl_primitive_desc_next_impl(*d);
    if (status == dnnl_success) continue;
    dnnl_primitive_desc_destroy(*d);
    *d = NULL;
    if (status != dnnl_last_impl_reached) return dnn_check(status, "describing a convolution");
  }
  return NULL;
}

typedef struct making {
  const assay_sized_layer_t* l;
  const dnn_conv_t* c;
  assay_type_t type, dst_type;
  dnnl_primitive_desc_t descriptor;
  dnnl_memory_desc_t plain;  // of a part's weights as they lie in the model
} making_t;

static assay_status_t describe(const tiles_t* k, making_t* m, const piece_t* p) {
  enum { SRC, WEIGHTS, ROW, DST, N };
  const dnn_conv_t* c = m->c;
  dnnl_memory_desc_t md[N] = {NULL};
  dnnl_primitive_attr_t attr = NULL;
  dnnl_engine_t engine;
  dnnl_dims_t x = {0}, y = {0}, wdims = {0};
  dnn_window_t w;
  const int rank = c->x->rank;
  int64_t own = k->channels / k->n_parts;
  const int wrank = weight_dims(&c->s, own, wdims);
  dnn_window(&c->s.w, &w);
  w.before[0] = p->before;
  w.behind[0] = p->behind;
  for (int i = 0; i < rank; i++) {
    x[i] = c->x->dims[i];
    y[i] = m->l->out[0].dims[i];
  }
  x[0] = y[0] = 1;
  y[1] = own;
  x[2] = p->rows_in;
  y[2] = p->rows_out;
  assay_status_t st = dnn_engine(&engine);
  if (!st) st = dnn_attr(&attr);
  if (!st) st = dnn_md(rank, x, m->type, ASSAY_LAYOUT_CHANNELS_LAST, &md[SRC]);
  if (!st) st = dnn_md_any(wrank, wdims, m->type, &md[WEIGHTS]);
  if (!st) st = dnn_md(wrank, wdims, ASSAY_TYPE_FLOAT, ASSAY_LAYOUT_PLAIN, &m->plain);
  if (!st && c->bias) st = dnn_md(1, &own, ASSAY_TYPE_FLOAT, ASSAY_LAYOUT_PLAIN, &md[ROW]);
  if (!st) st = dnn_md(rank, y, m->dst_type, ASSAY_LAYOUT_CHANNELS_LAST, &md[DST]);
  if (!st)
    st = dnn_described(
        dnnl_convolution_forward_primitive_desc_create(
            &m->descriptor, engine, dnnl_forward_inference, dnnl_convolution_direct, md[SRC],
            md[WEIGHTS], md[ROW], md[DST], w.strides, w.dilations, w.before, w.behind, attr),
        "describing a convolution", &m->descriptor);
  if (!st) st = pass_over(&m->descriptor, &c->s);
  dnn_free(N, md, attr);
  return st;
}

static assay_status_t memory(const_dnnl_primitive_desc_t d, dnnl_query_t what, int index,
                             void* data, dnnl_memory_t* out) {
  dnnl_engine_t engine;
  ASSAY_TRY(dnn_engine(&engine));
  return dnn_check(
      dnnl_memory_create(out, dnnl_primitive_desc_query_md(d, what, index), engine, data),
      "making memory");
}

static assay_status_t make_piece(tiles_t* k, const making_t* m, int piece) {
  piece_t* p = &k->pieces[piece];
  const int64_t own = k->channels / k->n_parts;
  const int64_t weights = own * m->c->s.cg * m->c->s.kernel_size;
  ASSAY_TRY(dnn_check(dnnl_primitive_create(&p->primitive, m->descriptor), "a primitive"));
  for (int i = 0; i < k->n_parts; i++) {
    ASSAY_TRY(dnn_packed_weights(m->descriptor, m->plain, m->c->w, i * weights, &p->weights[i]));
    if (m->c->bias && !k->bias[i])
      ASSAY_TRY(
          memory(m->descriptor, dnnl_query_weights_md, 1, k->bias_data + i * own, &k->bias[i]));
  }
  for (int t = 0; t < k->n_threads; t++) {
    hands_t* h = &k->hands[t * MAX_PIECES + piece];
    ASSAY_TRY(memory(m->descriptor, dnnl_query_src_md, 0, DNNL_MEMORY_NONE, &h->src));
    ASSAY_TRY(memory(m->descriptor, dnnl_query_dst_md, 0, DNNL_MEMORY_NONE, &h->dst));
    ASSAY_TRY(memory(m->descriptor, dnnl_query_scratchpad_md, 0, DNNL_MEMORY_NONE, &h->scratchpad));
  }
  const size_t bytes = aligned(dnnl_memory_desc_get_size(
      dnnl_primitive_desc_query_md(m->descriptor, dnnl_query_scratchpad_md, 0)));
  if (bytes > k->scratchpad) k->scratchpad = bytes;
  return NULL;
}

static assay_status_t make_pieces(tiles_t* k, making_t* m, bool* out_ok) {
  *out_ok = true;
  for (int i = 0; *out_ok && i < k->n_pieces; i++) {
    assay_status_t st = describe(k, m, &k->pieces[i]);
    *out_ok = m->descriptor;
    if (!st && m->descriptor) st = make_piece(k, m, i);
    if (m->descriptor) dnnl_primitive_desc_destroy(m->descriptor);
    dnn_free(1, &m->plain, NULL);
    m->descriptor = NULL;
    m->plain = NULL;
    if (st) return st;
  }
  const size_t tile = k->apart ? (size_t)(k->rows * (k->out_row / k->n_parts)) * sizeof(float) : 0;
  k->thread_scratch = k->scratchpad + aligned(tile);
  k->base.scratch = ALIGNMENT + (size_t)k->n_threads * k->thread_scratch;
  return NULL;
}

// What is done after the convolution, which computes in `type`; *out_ok tells whether programs
// know it.
static assay_status_t add_program(tiles_t* k, const assay_sized_layer_t* l, assay_type_t type,
                                  bool* out_ok) {
  *out_ok = true;
  if (l->layer->n_nodes == 1 && l->out[0].type == type && k->n_parts == 1) return NULL;
  ASSAY_TRY(cpu_program_make(l, 1, l->layer->nodes[0]->outputs[0], ASSAY_LAYOUT_CHANNELS_LAST,
                             &k->program));
  *out_ok = k->program;
  for (size_t i = 0; k->program && i < cpu_program_n_streams(k->program); i++) {
    const cpu_stream_t* s = cpu_program_stream(k->program, i);
    // One input in one form: what the primitive reads is not read as a stream, too.
    if (s->constant || s->input < 0) continue;
    if (k->base.in[s->input].type) *out_ok = false;
    k->base.in[s->input] = (assay_storage_t){s->type, s->layout};
  }
  return NULL;
}

static assay_status_t build(tiles_t* k, const assay_sized_layer_t* l, const dnn_conv_t* c,
                            assay_type_t type, bool* out_ok) {
  making_t m = {.l = l, .c = c, .type = type};
  const assay_window_axis_t* a = &c->s.w.axis[0];
  dnn_window_t w;
  dnn_window(&c->s.w, &w);
  k->base.in[k->src_input] = (assay_storage_t){type, ASSAY_LAYOUT_CHANNELS_LAST};
  k->base.out[0] = (assay_storage_t){l->out[0].type, ASSAY_LAYOUT_CHANNELS_LAST};
  k->in_bytes = type == ASSAY_TYPE_FLOAT ? 4 : 2;
  k->n_parts = parts_of(c, k->in_bytes, k->flops / k->samples);
  ASSAY_TRY(add_program(k, l, type, out_ok));
  if (!*out_ok) return NULL;
  m.dst_type = k->program ? ASSAY_TYPE_FLOAT : l->out[0].type;
  // oneDNN is fast only where places lie side by side.
  k->apart = k->n_parts > 1 || m.dst_type != l->out[0].type;
  k->dst_bytes = m.dst_type == ASSAY_TYPE_FLOAT ? 4 : 2;
  ASSAY_TRY(assay_new_array((size_t)a->out, sizeof *k->tiles, &k->tiles));
  if (!cut(k, a, rows_of(k, c))) cut_nothing(k, a, &w);
  ASSAY_TRY(assay_new_array((size_t)k->n_threads * MAX_PIECES, sizeof *k->hands, &k->hands));
  if (c->bias) ASSAY_TRY(assay_operand_floats(c->bias, &k->bias_data));
  // How oneDNN blocks its loops must not depend on our threads: each runs primitives by itself.
  const int threads = omp_get_max_threads();
  omp_set_num_threads(1);
  assay_status_t st = make_pieces(k, &m, out_ok);
  omp_set_num_threads(threads);
  return st;
}

assay_status_t dnn_tiles_make(const assay_sized_layer_t* l, const dnn_conv_t* c, assay_type_t type,
                              assay_kernel_t** out) {
  tiles_t* k = NULL;
  bool ok = false;
  ASSAY_TRY(ASSAY_NEW(&k));
  k->base = (assay_kernel_t){.in_place = -1, .run = run, .destroy = destroy};
  k->src_input = (int)(c->x - l->in);
  k->samples = c->s.n;
  k->channels = c->s.m;
  k->in_sample = c->s.in_size * c->s.c;
  k->out_sample = c->s.out_size * c->s.m;
  k->in_row = k->in_sample / c->s.w.axis[0].in;
  k->out_row = k->out_sample / c->s.w.axis[0].out;
  k->row_places = c->s.out_size / c->s.w.axis[0].out;
  k->flops = (int64_t)assay_conv_flops(&c->s, false);
  k->n_threads = omp_get_max_threads();
  assay_status_t st = build(k, l, c, type, &ok);
  if (st || !ok) return destroy(&k->base), st;
  *out = &k->base;
  return NULL;
}
#endif
