// Runs pointwise programs: tile by tile, each instruction over a whole tile.
//
// A tile is some whole rows of the output, or a piece of one; it is one piece of memory in any
// case. Streams that lie like the output are read where they are.
#include <stdbool.h>
#include <string.h>

#include "backends/cpu/pointwise/convert.h"
#include "backends/cpu/pointwise/program_code.h"
#include "backends/cpu/threads.h"
#include "base/target.h"

// A piece of work: what is given with a run, and this thread's tiles.
typedef struct run {
  const cpu_program_t* p;
  const void* const* in;
  const float* result;
  int64_t result_from;  // the output element whose result comes first there
  assay_type_t type;
  char* out;
  float* slots;                          // PROGRAM_SLOTS tiles
  const float* stream[CPU_MAX_STREAMS];  // where each stream of the current tile lies
} run_t;

static float* slot_of(const run_t* r, int slot) {
  return r->slots + (ptrdiff_t)slot * PROGRAM_TILE;
}

static const void* data_of(const run_t* r, size_t s) {
  const cpu_stream_t* stream = &r->p->streams[s];
  if (stream->constant) return stream->constant + stream->offset;
  if (stream->input == POINTWISE_RESULT) return r->result;
  const ptrdiff_t bytes = assay_type_bits(stream->type) / 8;
  return (const char*)r->in[stream->input] + bytes * stream->offset;
}

static void fill(float* to, int64_t n, float value) {
#pragma omp simd
  for (int64_t i = 0; i < n; i++) to[i] = value;
}

static float element(const void* x, assay_type_t type, int64_t at) {
  float y;
  cpu_widen(x, type, at, 1, &y);
  return y;
}

static void row_of(const void* x, assay_type_t type, int64_t at, int64_t step, int64_t n,
                   float* to) {
  if (step == 1) {
    cpu_widen(x, type, at, n, to);
  } else if (step == 0) {
    fill(to, n, element(x, type, at));
  } else if (type == ASSAY_TYPE_FLOAT) {
    for (int64_t i = 0; i < n; i++) to[i] = ((const float*)x)[at + i * step];
  } else {
    for (int64_t i = 0; i < n; i++) to[i] = element(x, type, at + i * step);
  }
}

// Where row `row` begins in a stream.
static int64_t row_start(const cpu_program_t* p, size_t s, int64_t row) {
  const program_walk_t* w = &p->walks[s];
  int64_t at = 0;
  if (w->access == POINTWISE_MOVED) return moved_row(&p->streams[s].table, row) * p->columns;
  for (int d = p->rank - 2; d >= 0; d--) {
    at += row % p->dims[d] * w->strides[d];
    row /= p->dims[d];
  }
  return at;
}

// Rows [row, row + rows) and columns [column, column + n) of a strided stream.
static void load_strided(const run_t* r, size_t s, int64_t row, int64_t rows, int64_t column,
                         int64_t n, float* to) {
  const cpu_program_t* p = r->p;
  const program_walk_t* w = &p->walks[s];
  const int64_t step = w->strides[p->rank - 1];
  const int last = p->rank - 2;  // rows along this dimension lie at one distance
  int64_t left = 0, at = 0;
  for (int64_t i = 0; i < rows; i++) {
    if (left == 0) {
      at = row_start(p, s, row + i) + column * step;
      left = p->dims[last] - (row + i) % p->dims[last];
    }
    row_of(data_of(r, s), p->streams[s].type, at, step, n, to + i * n);
    at += w->strides[last];
    left--;
  }
}

// The same of a stream whose rows are moved.
static void load_moved(const run_t* r, size_t s, int64_t row, int64_t rows, int64_t column,
                       int64_t n, float* to) {
  for (int64_t i = 0; i < rows; i++)
    cpu_widen(data_of(r, s), r->p->streams[s].type, row_start(r->p, s, row + i) + column, n,
              to + i * n);
}

// All rows alike: made once, before the first tile.
static void load_periodic(const run_t* r, size_t s, float* to) {
  const cpu_program_t* p = r->p;
  const int64_t n = p->tile_columns;
  row_of(data_of(r, s), p->streams[s].type, 0, p->walks[s].strides[p->rank - 1], n, to);
  for (int64_t i = 1; i < p->tile_rows; i++) memcpy(to + i * n, to, (size_t)n * sizeof *to);
}

static bool is_made_once(const cpu_program_t* p, size_t s) {
  const program_walk_t* w = &p->walks[s];
  return w->access == POINTWISE_PERIODIC && w->slot >= 0 &&
         (p->tile_columns == p->columns || w->strides[p->rank - 1] == 0);
}

// Whole streams in a tile from output element `at` on, others by row and column.
static void load(run_t* r, int64_t row, int64_t rows, int64_t column, int64_t n) {
  const cpu_program_t* p = r->p;
  const int64_t at = row * p->columns + column;
  for (size_t s = 0; s < p->n_streams; s++) {
    const program_walk_t* w = &p->walks[s];
    const int64_t step = w->strides[p->rank - 1];
    if (is_made_once(p, s)) {
      r->stream[s] = slot_of(r, w->slot) + (p->tile_columns == p->columns ? column : 0);
      continue;
    }
    if (w->slot < 0) {
      const int64_t start = p->streams[s].input == POINTWISE_RESULT ? at - r->result_from
                            : w->access == POINTWISE_WHOLE          ? at
                            : w->access == POINTWISE_PERIODIC       ? column
                                                                    : row_start(p, s, row) + column;
      r->stream[s] = (const float*)data_of(r, s) + start;
      continue;
    }
    float* to = slot_of(r, w->slot);
    r->stream[s] = to;
    if (w->access == POINTWISE_WHOLE)
      cpu_widen(data_of(r, s), p->streams[s].type, at, rows * n, to);
    else if (w->access == POINTWISE_PERIODIC)
      row_of(data_of(r, s), p->streams[s].type, column * step, step, n, to);
    else if (w->access == POINTWISE_MOVED)
      load_moved(r, s, row, rows, column, n, to);
    else
      load_strided(r, s, row, rows, column, n, to);
  }
}

static const float* operand(const run_t* r, program_place_t place) {
  if (place.slot) return slot_of(r, place.index);
  return place.index < 0 ? NULL : r->stream[place.index];
}

static void run_tile(run_t* r, int64_t row, int64_t rows, int64_t column, int64_t n) {
  const cpu_program_t* p = r->p;
  const int64_t at = row * p->columns + column;
  load(r, row, rows, column, n);
  for (size_t i = 0; i < p->n_code; i++) {
    const program_instruction_t* c = &p->code[i];
    const bool last = i + 1 == p->n_code && r->type == ASSAY_TYPE_FLOAT;
    float* y = last ? (float*)(void*)r->out + at : slot_of(r, c->slot);
    c->function(operand(r, c->operand[0]), operand(r, c->operand[1]), operand(r, c->operand[2]),
                c->param, rows * n, y);
  }
  if (r->type != ASSAY_TYPE_FLOAT)
    cpu_narrow(slot_of(r, p->out_slot), rows * n, r->type, at, r->out);
}

static void make_periodic(run_t* r) {
  for (size_t s = 0; s < r->p->n_streams; s++)
    if (is_made_once(r->p, s)) load_periodic(r, s, slot_of(r, r->p->walks[s].slot));
}

// Tiles [from, to) in the order of the output.
static void run_tiles(run_t* r, int64_t from, int64_t to) {
  const cpu_program_t* p = r->p;
  const int64_t in_row = (p->columns + p->tile_columns - 1) / p->tile_columns;
  make_periodic(r);
  for (int64_t i = from; i < to; i++) {
    const int64_t row = i / in_row * p->tile_rows, column = i % in_row * p->tile_columns;
    const int64_t rows = p->rows - row < p->tile_rows ? p->rows - row : p->tile_rows;
    const int64_t left = p->columns - column;
    run_tile(r, row, rows, column, left < p->tile_columns ? left : p->tile_columns);
  }
}

// ---- chains ------------------------------------------------------------------------------------

// The step from row `row` of a moved stream to the next of `rows`.
static int64_t moved_step(const cpu_program_t* p, size_t s, int64_t row, int64_t rows) {
  return rows > 1 ? row_start(p, s, row + 1) - row_start(p, s, row) : 0;
}

// So many rows from `row` on, at most, follow each other at one distance in every moved stream.
static int64_t rows_alike(const cpu_program_t* p, int64_t row, int64_t most) {
  for (size_t s = 0; s < p->n_streams; s++) {
    if (p->walks[s].access != POINTWISE_MOVED) continue;
    const int64_t step = moved_step(p, s, row, most);
    int64_t n = most > 1 ? 2 : 1;
    while (n < most && row_start(p, s, row + n) - row_start(p, s, row + n - 1) == step) n++;
    most = n;
  }
  return most;
}

// Whole rows, or a piece of one.
static void run_links(const run_t* r, int64_t row, int64_t rows, int64_t column, int64_t n) {
  const cpu_program_t* p = r->p;
  const int last = p->rank - 2;
  const int64_t at = row * p->columns + column;
  const size_t bytes = r->type == ASSAY_TYPE_FLOAT ? 4 : 2;
  cpu_chain_stream_t streams[CPU_MAX_STREAMS];
  for (size_t s = 0; s < p->n_streams; s++) {
    const program_walk_t* w = &p->walks[s];
    const bool whole = w->access == POINTWISE_WHOLE, moved = w->access == POINTWISE_MOVED;
    const int step = (int)w->strides[p->rank - 1];
    int64_t start = whole ? at : row_start(p, s, row) + column * step;
    if (p->streams[s].input == POINTWISE_RESULT) start -= r->result_from;
    const size_t size = p->streams[s].type == ASSAY_TYPE_FLOAT ? 4 : 2;
    streams[s] = (cpu_chain_stream_t){.data = (const char*)data_of(r, s) + (ptrdiff_t)size * start,
                                      .type = p->streams[s].type,
                                      .row_step = whole       ? p->columns
                                                  : moved     ? moved_step(p, s, row, rows)
                                                  : last >= 0 ? w->strides[last]
                                                              : 0,
                                      .step = whole ? 1 : step};
  }
  const cpu_chain_run_t run = {.links = p->links,
                               .n_links = p->n_links,
                               .streams = streams,
                               .first = p->first_stream,
                               .rows = rows,
                               .columns = n,
                               .type = r->type,
                               .out = r->out + (ptrdiff_t)bytes * at,
                               .out_step = n};
  cpu_chain_run(&run);
}

// A part as one chain of rows, where every stream lies like the output, or has the same elements
// for each of the part's runs; false: it does not.
static bool run_at_once(const run_t* r, const cpu_program_part_t* part) {
  const cpu_program_t* p = r->p;
  const int64_t column = part->from % p->columns;
  const bool aligned = part->step % p->columns == 0 && column + part->n <= p->columns;
  cpu_chain_stream_t streams[CPU_MAX_STREAMS];
  if (!p->n_links) return false;
  for (size_t s = 0; s < p->n_streams; s++) {
    const program_walk_t* w = &p->walks[s];
    const assay_type_t type = p->streams[s].type;
    const size_t size = type == ASSAY_TYPE_FLOAT ? 4 : 2;
    const bool result = p->streams[s].input == POINTWISE_RESULT;
    const bool whole = w->access == POINTWISE_WHOLE;
    if (!whole && !(aligned && w->access == POINTWISE_PERIODIC)) return false;
    const int step = whole ? 1 : (int)w->strides[p->rank - 1];
    const int64_t start = result ? 0 : whole ? part->from : column * step;
    streams[s] = (cpu_chain_stream_t){.data = (const char*)data_of(r, s) + (ptrdiff_t)size * start,
                                      .type = type,
                                      .row_step = result  ? part->result_step
                                                  : whole ? part->step
                                                          : 0,
                                      .step = step};
  }
  const size_t bytes = r->type == ASSAY_TYPE_FLOAT ? 4 : 2;
  const cpu_chain_run_t run = {.links = p->links,
                               .n_links = p->n_links,
                               .streams = streams,
                               .first = p->first_stream,
                               .rows = part->runs,
                               .columns = part->n,
                               .type = r->type,
                               .out = r->out + (ptrdiff_t)bytes * part->from,
                               .out_step = part->step};
  cpu_chain_run(&run);
  return true;
}

// Whole rows, several as one longer row: what is the same in every row is laid out as often, and
// blocks of a chain do not end with each row. Gives how many rows it has run.
static int64_t run_joined(const run_t* r, int64_t row, int64_t rows) {
  enum { JOINED = 1024, LAID_OUT = 2 };
  const cpu_program_t* p = r->p;
  const int64_t n = p->columns, each = JOINED / n, at = row * n;
  // As far as rows along the last dimension but one go: there they may be others.
  const int64_t below = p->rank > 1 ? p->dims[p->rank - 2] : 1, left = below - row % below;
  if (rows > left) rows = left;
  float memory[LAID_OUT][JOINED];
  cpu_chain_stream_t streams[CPU_MAX_STREAMS];
  int used = 0;
  if (each < 2 || rows < 2 * each) return 0;
  for (size_t s = 0; s < p->n_streams; s++) {
    const program_walk_t* w = &p->walks[s];
    const assay_type_t type = p->streams[s].type;
    const size_t size = type == ASSAY_TYPE_FLOAT ? 4 : 2;
    const bool result = p->streams[s].input == POINTWISE_RESULT;
    streams[s] = (cpu_chain_stream_t){.data = data_of(r, s), .type = type};
    if (w->access == POINTWISE_MOVED) return 0;
    if (w->access == POINTWISE_WHOLE) {
      const int64_t start = result ? at - r->result_from : at;
      streams[s].data = (const char*)streams[s].data + (ptrdiff_t)size * start;
      streams[s].row_step = each * n;
      streams[s].step = 1;
    } else if (result || (p->rank > 1 && w->strides[p->rank - 2])) {
      return 0;
    } else if (!w->strides[p->rank - 1]) {
      if (w->access == POINTWISE_STRIDED) return 0;
    } else {
      if (used == LAID_OUT) return 0;
      float* to = memory[used++];
      cpu_widen(streams[s].data, type, row_start(p, s, row), n, to);
      for (int64_t i = 1; i < each; i++) memcpy(to + i * n, to, (size_t)n * sizeof *to);
      streams[s] = (cpu_chain_stream_t){.data = to, .type = ASSAY_TYPE_FLOAT, .step = 1};
    }
  }
  if (!used) return 0;
  const ptrdiff_t bytes = r->type == ASSAY_TYPE_FLOAT ? 4 : 2;
  const cpu_chain_run_t run = {.links = p->links,
                               .n_links = p->n_links,
                               .streams = streams,
                               .first = p->first_stream,
                               .rows = rows / each,
                               .columns = each * n,
                               .type = r->type,
                               .out = r->out + bytes * at,
                               .out_step = each * n};
  cpu_chain_run(&run);
  return rows / each * each;
}

static void run_chain(const run_t* r, int64_t from, int64_t to) {
  const cpu_program_t* p = r->p;
  while (from < to) {
    const int64_t row = from / p->columns, column = from % p->columns;
    int64_t rows = 1, n = p->columns - column;
    if (n > to - from) n = to - from;
    // Rows along the last dimension but one lie at one distance in every stream.
    if (n == p->columns && p->rank > 1) {
      const int64_t size = p->dims[p->rank - 2];
      const int64_t left = (to - from) / n, joined = run_joined(r, row, left);
      from += joined * n;
      if (joined) continue;
      rows = rows_alike(p, row, size - row % size < left ? size - row % size : left);
    }
    run_links(r, row, rows, column, n);
    from += rows * n;
  }
}

// The element at which a tile begins.
static int64_t tile_start(const cpu_program_t* p, int64_t tile) {
  const int64_t in_row = (p->columns + p->tile_columns - 1) / p->tile_columns;
  const int64_t row = tile / in_row * p->tile_rows, column = tile % in_row * p->tile_columns;
  return row < p->rows ? row * p->columns + column : p->rows * p->columns;
}

static void run_part(const run_t* shared, int64_t from, int64_t to) {
  if (shared->p->n_links) {
    run_chain(shared, tile_start(shared->p, from), tile_start(shared->p, to));
    return;
  }
  _Alignas(64) float slots[PROGRAM_SLOTS * PROGRAM_TILE];
  run_t r = *shared;
  r.slots = slots;
  run_tiles(&r, from, to);
}

// ---- parts -------------------------------------------------------------------------------------

// Elements [from, to) of the output.
static void run_range(run_t* r, int64_t from, int64_t to) {
  const cpu_program_t* p = r->p;
  if (p->n_links) {
    run_chain(r, from, to);
    return;
  }
  while (from < to) {
    const int64_t row = from / p->columns, column = from % p->columns;
    int64_t rows = 1, n = p->columns - column;
    if (n > to - from) n = to - from;
    if (n > p->tile_columns) n = p->tile_columns;
    if (n == p->columns) rows = (to - from) / n < p->tile_rows ? (to - from) / n : p->tile_rows;
    run_tile(r, row, rows, column, n);
    from += rows * n;
  }
}

void cpu_program_run_part(const cpu_program_t* p, const void* const* in, assay_type_t type,
                          void* out, const cpu_program_part_t* part) {
  _Alignas(64) float slots[PROGRAM_SLOTS * PROGRAM_TILE];
  run_t r = {.p = p, .in = in, .type = type, .out = out, .slots = slots};
  cpu_program_part_t q = *part;
  r.result = q.result;
  if (q.n == q.step && q.n == q.result_step) {
    q.n *= q.runs;
    q.runs = 1;
  }
  if (run_at_once(&r, &q) || run_at_once(&r, part)) return;
  if (!p->n_links) make_periodic(&r);
  for (int64_t i = 0; i < q.runs; i++) {
    r.result = q.result ? q.result + i * q.result_step : NULL;
    r.result_from = q.from + i * q.step;
    run_range(&r, r.result_from, r.result_from + q.n);
  }
}

void cpu_program_run(const cpu_program_t* p, const void* const* in, const float* result,
                     assay_type_t type, void* out) {
  const run_t r = {.p = p, .in = in, .result = result, .type = type, .out = out};
  if (!p->rows || !p->columns) return;
  const int64_t in_row = (p->columns + p->tile_columns - 1) / p->tile_columns;
  const int64_t tiles = (p->rows + p->tile_rows - 1) / p->tile_rows * in_row;
  const int parts = cpu_threads(p->rows * p->columns * (p->cost + (int64_t)p->n_streams));
  if (parts == 1) {
    run_part(&r, 0, tiles);
    return;
  }
#pragma omp parallel for schedule(static, 1) num_threads(parts)
  for (int i = 0; i < parts; i++) run_part(&r, tiles * i / parts, tiles * (i + 1) / parts);
}
