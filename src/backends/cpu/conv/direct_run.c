// Runs direct convolutions.
#include "backends/cpu/conv/direct_conv.h"
#include "backends/cpu/scratch.h"
#include "backends/cpu/threads.h"

enum {
  // That weights are brought near ahead, where they come for the first time; where rows are few and
  // do not take long.
  AHEAD_BYTES = 8192,
  FAR_AHEAD_BYTES = 32768,
  FEW_ROWS = 6,
};

typedef struct job {
  const direct_t* k;
  const void* const* in;
  void* out;
  float *sums, *wide, *waiting;
} job_t;

// Blocks whose input lies here, and some panels, or some taps of one panel. What comes next is
// brought near meanwhile.
typedef struct share {
  direct_piece_t piece;
  int64_t panel, end, first_panel;
  int64_t tap, last_tap;
  const char *next, *next_end;
  bool cold;  // nothing has been brought near
  // Places of the output that are cut into the piece's blocks as they come; 0: as the kernel says.
  int64_t place, places;
} share_t;

// The places of a block.
static void find_rows(const direct_t* k, const share_t* s, int64_t block, direct_rows_t* r) {
  if (!s->places) {
    cpu_direct_rows(k, block, r);
    return;
  }
  const int64_t blocks = s->piece.last;
  const int64_t first = s->place + s->places * block / blocks;
  r->from = 0;
  r->n = (int)(s->place + s->places * (block + 1) / blocks - first);
  for (int n = 0; n < r->n; n++) {
    r->place[n] = first + n;
    r->at[n] = r->place[n] * k->made;
  }
}

// Where the channels of a block's places lie under each tap; *gathered goes on.
static void find_taps(const job_t* j, const share_t* s, const direct_rows_t* rows, int32_t* taps,
                      const uint32_t** at, int64_t* gathered, direct_block_t* b) {
  const direct_t* k = j->k;
  const direct_piece_t* p = &s->piece;
  const uint32_t* x = k->wide ? (const uint32_t*)(const void*)j->wide : j->in[k->input];
  const int64_t from = rows->from - p->from;
  int64_t places[DIRECT_TAPS][DIRECT_ROWS];
  if (k->joined) {
    taps[0] = 0;
    for (int r = 0; r < rows->n; r++) at[r] = x + (from + rows->place[r] * k->units);
    b->n_taps = 1;
    return;
  }
  const int n = cpu_direct_taps(k, rows, taps, places);
  int begin = 0, end = n;
  while (begin < n && taps[begin] < s->tap) begin++;
  while (end > begin && taps[end - 1] >= s->last_tap) end--;
  b->taps = taps + begin;
  b->n_taps = end - begin;
  for (int t = begin; t < end; t++, at += DIRECT_ROWS)
    for (int r = 0; r < rows->n; r++, *gathered += k->units) {
      const int64_t place = places[t][r];
      at[r] = place == DIRECT_OUTSIDE ? k->zeros : x + (p->gathered ? *gathered : from + place);
    }
}

// What programs do to the sums of columns [first, first + columns), by places that lie side by
// side; sums of one place lie `step` after those of the one before.
static void finish_rows(const job_t* j, const direct_rows_t* rows, const float* sums, int64_t first,
                        int64_t columns, int64_t step) {
  const direct_t* k = j->k;
  for (int r = 0, end; r < rows->n; r = end) {
    for (end = r + 1; end < rows->n && rows->place[end] == rows->place[end - 1] + 1;) end++;
    const cpu_program_part_t part = {.from = rows->at[r] + first,
                                     .n = k->made - first < columns ? k->made - first : columns,
                                     .runs = end - r,
                                     .step = k->made,
                                     .result = sums + r * step,
                                     .result_step = step};
    cpu_program_run_part(k->program, j->in, k->base.out[0].type, j->out, &part);
  }
}

// What is done to the sums of a panel where direct_finish_t does it.
static direct_finish_t finish_of(const job_t* j, const direct_rows_t* rows, int64_t column,
                                 const float* sums) {
  const direct_t* k = j->k;
  const int64_t left = k->made - column, element = k->base.out[0].type == ASSAY_TYPE_FLOAT ? 4 : 2;
  return (direct_finish_t){.rows = rows->n,
                           .columns = left < DIRECT_PANEL ? left : DIRECT_PANEL,
                           .sums = sums,
                           .type = k->base.out[0].type,
                           .add = k->add < 0 ? NULL : (const char*)j->in[k->add] + column * element,
                           .relu = k->relu,
                           .out = (char*)j->out + column * element,
                           .at = rows->at};
}

// Sums of a panel; if they are `whole`, with what direct_finish_t does after them.
static void multiply(const job_t* j, direct_block_t* b, const direct_rows_t* rows, int64_t panel,
                     float* sums, int64_t step, bool whole) {
  const direct_t* k = j->k;
  const int64_t column = panel * DIRECT_PANEL;
  b->element = k->base.out[0].type == ASSAY_TYPE_FLOAT ? 4 : 2;
  b->panel = k->weights + panel * k->taps * k->units * DIRECT_PANEL;
  b->vectors = k->made - column > DIRECT_LANES ? 2 : 1;
  b->write_ahead = (const char*)j->out + column * b->element;
  if (k->add >= 0 && j->in[k->add] != j->out)
    b->read_ahead = (const char*)j->in[k->add] + column * b->element;
  b->sums = sums;
  b->step = step;
  const direct_finish_t finish = finish_of(j, rows, column, sums);
  const bool simple = k->simple && whole;
  const bool at_once = simple && k->way->finishes && k->base.out[0].type == ASSAY_TYPE_FLOAT;
  b->finish = at_once ? &finish : NULL;
  k->way->block(b);
  if (simple && !at_once) k->way->finish(&finish);
}

// Some places under all taps. Sums of all panels lie without gaps, so that programs take places
// that lie side by side as one: from the last panel to the first, rows in order, so that what a
// row's last panel writes after it is written over.
static void run_block(const job_t* j, const share_t* s, direct_block_t* b,
                      const direct_rows_t* rows) {
  const direct_t* k = j->k;
  const int64_t columns = (s->end - s->panel) * DIRECT_PANEL;
  const bool all = s->end - s->panel == k->panels && !k->simple;
  const int64_t step = k->simple ? DIRECT_PANEL : all ? k->made : columns;
  for (int64_t i = s->panel; i < s->end; i++) {
    const int64_t p = all ? s->panel + s->end - 1 - i : i;
    float* sums = k->simple ? j->sums : j->sums + (p - s->panel) * DIRECT_PANEL;
    b->start = k->bias ? k->bias + p * DIRECT_PANEL : NULL;
    multiply(j, b, rows, p, sums, step, true);
  }
  if (!k->simple) finish_rows(j, rows, j->sums, s->panel * DIRECT_PANEL, columns, step);
}

// Some places and one panel under some taps: sums wait for the others.
static void run_some_taps(const job_t* j, const share_t* s, direct_block_t* b,
                          const direct_rows_t* rows, int64_t block) {
  const direct_t* k = j->k;
  const int64_t column = s->panel * DIRECT_PANEL;
  float* sums = j->waiting + ((block - s->piece.first) * k->panels + s->panel - s->first_panel) *
                                 DIRECT_ROWS * DIRECT_PANEL;
  b->start = s->tap ? sums : k->bias ? k->bias + column : NULL;
  b->start_step = s->tap ? DIRECT_PANEL : 0;
  const bool whole = s->last_tap == k->taps;
  multiply(j, b, rows, s->panel, sums, DIRECT_PANEL, whole);
  if (whole && !k->simple) finish_rows(j, rows, sums, column, DIRECT_PANEL, DIRECT_PANEL);
}

// Panels, or taps, whose weights stay in the cache. The next ones come there meanwhile.
static void run_chunk(const job_t* j, const share_t* s) {
  const direct_t* k = j->k;
  const direct_piece_t* piece = &s->piece;
  const char* fetch = s->next;
  int32_t taps[DIRECT_TAPS];
  const uint32_t* at[DIRECT_TAPS * DIRECT_ROWS];
  int64_t gathered = 0;
  direct_rows_t two[2];
  find_rows(k, s, piece->first, &two[0]);
  for (int64_t i = piece->first; i < piece->last; i++) {
    const direct_rows_t* rows = &two[(i - piece->first) % 2];
    direct_rows_t* next = &two[(i - piece->first + 1) % 2];
    direct_block_t b = {.rows = rows->n, .taps = taps, .at = at, .units = k->units};
    find_taps(j, s, rows, taps, at, &gathered, &b);
    if (i + 1 < piece->last) {
      find_rows(k, s, i + 1, next);
      b.ahead = next->at;
      b.rows_ahead = next->n;
    }
    const bool cold = s->cold && i == piece->first;
    if (cold)
      b.fetch = (const char*)(k->weights + s->panel * k->taps * k->units * DIRECT_PANEL) +
                (rows->n < FEW_ROWS ? FAR_AHEAD_BYTES : AHEAD_BYTES);
    else if (fetch < s->next_end)
      b.fetch = fetch;
    b.fetch_every = cold ? 1 : piece->last - piece->first;
    if (k->some_taps)
      run_some_taps(j, s, &b, rows, i);
    else
      run_block(j, s, &b, rows);
    if (!cold && fetch < s->next_end) fetch = b.fetch;
  }
}

static const char* weights_at(const direct_t* k, int64_t panel, int64_t tap) {
  return (const char*)(k->weights + (panel * k->taps + tap) * k->units * DIRECT_PANEL);
}

// All of a piece: panels go by, as they are fetched ahead.
static void run_panels(const job_t* j, share_t* s, int64_t panel, int64_t end, bool last) {
  const direct_t* k = j->k;
  const int64_t bytes = k->taps * k->units * DIRECT_PANEL * (int64_t)sizeof(uint32_t);
  if (k->wide) cpu_direct_widen(k, j->in[k->input], &s->piece, 0, k->taps, j->wide);
  s->tap = 0;
  s->last_tap = k->taps;
  for (s->panel = panel; s->panel < end; s->panel = s->end) {
    s->end = end - s->panel < k->chunk ? end : s->panel + k->chunk;
    // After the last panels come the first ones again, where they are not the same.
    const bool again = s->end == end && !last && s->panel > panel;
    const int64_t next = again ? panel : s->end;
    // Not where they would push out those of these panels.
    const bool fits = (s->end - s->panel) * bytes <= k->cached;
    s->next = weights_at(k, next, 0);
    s->next_end = fits ? weights_at(k, end - next < k->chunk ? end : next + k->chunk, 0) : s->next;
    run_chunk(j, s);
    s->cold = false;
  }
}

// The same where taps go by, and within those panels.
static void run_taps(const job_t* j, share_t* s, int64_t panel, int64_t end, bool last) {
  const direct_t* k = j->k;
  for (s->tap = 0; s->tap < k->taps; s->tap = s->last_tap) {
    s->last_tap = k->taps - s->tap < k->some_taps ? k->taps : s->tap + k->some_taps;
    if (k->wide) cpu_direct_widen(k, j->in[k->input], &s->piece, s->tap, s->last_tap, j->wide);
    for (s->panel = panel; s->panel < end; s->panel = s->end) {
      s->end = s->panel + 1;
      const bool turns = s->end == end, over = turns && s->last_tap == k->taps;
      const int64_t next = turns ? panel : s->end;
      const int64_t tap = over ? 0 : turns ? s->last_tap : s->tap;
      const int64_t some = k->taps - tap < k->some_taps ? k->taps - tap : k->some_taps;
      s->next = weights_at(k, next, tap);
      s->next_end = over && last ? s->next : weights_at(k, next, tap + some);
      run_chunk(j, s);
      s->cold = false;
    }
  }
}

// Some blocks of places and some panels: panels go by while what is read of so many places stays in
// the cache.
static void run_share(const job_t* j, int64_t block, int64_t last, int64_t panel, int64_t end) {
  const direct_t* k = j->k;
  const int64_t all = last - block, batch = k->some_taps ? k->waiting : k->batch;
  const int64_t batches = k->some_taps || end - panel > k->chunk ? (all + batch - 1) / batch : 1;
  share_t s = {.piece = {.last = block}, .first_panel = panel, .cold = true};
  for (int64_t i = 1; s.piece.last < last; i++) {
    if (k->wide)
      s.piece = cpu_direct_piece(k, s.piece.last, last);
    else
      s.piece = (direct_piece_t){.first = s.piece.last, .last = block + all * i / batches};
    (k->some_taps ? run_taps : run_panels)(j, &s, panel, end, s.piece.last == last);
  }
}

void cpu_direct_run_rows(const assay_kernel_t* base, const void* const* in, void* const* out,
                         void* scratch, int64_t sample, int64_t row, int64_t end) {
  const direct_t* k = (const direct_t*)base;
  float* mine = cpu_scratch(scratch);
  const job_t j = {.k = k, .in = in, .out = out[0], .wide = mine, .sums = mine + k->wide};
  const int64_t first = (sample * k->base.by_rows.rows + row) * k->row;
  const int64_t places = (end - row) * k->row;
  // As many places as can be widened at once.
  const int64_t fit = k->wide ? (int64_t)k->wide / k->units / DIRECT_ROWS * DIRECT_ROWS : places;
  for (int64_t i = 0, n; i < places; i += n) {
    n = places - i < fit ? places - i : fit;
    share_t s = {.piece = {.last = (n + DIRECT_ROWS - 1) / DIRECT_ROWS,
                           .from = k->wide ? (first + i) * k->units : 0,
                           .units = n * k->units},
                 .place = first + i,
                 .places = n};
    run_panels(&j, &s, 0, k->panels, i + n == places);
  }
}

// Into how many parts panels are cut, the rest by places: so that threads together read least.
static int panel_parts(const direct_t* k, int parts) {
  const double weights = (double)(k->panels * DIRECT_PANEL) * (double)(k->taps * k->units);
  const double read = (double)k->samples * (double)k->in_sample;
  const double made = (double)k->samples * (double)k->places * (double)k->made;
  int best = 1;
  double min = -1;
  for (int n = 1; n <= parts; n++) {
    if (parts % n || (n > 1 && k->panels < 2 * n)) continue;
    const int rest = parts / n;
    const int64_t blocks = k->samples * k->blocks;
    // The largest share of what there is to do.
    const double work = (double)((k->panels + n - 1) / n) * (double)((blocks + rest - 1) / rest) *
                        parts / (double)(k->panels * blocks);
    // Who takes places finds them, and leaves them, in the own cache: other layers do so, too.
    const double apart = (n - 1) * made / parts / n;
    const double bytes = work * (weights / n + read / rest + apart);
    if (min < 0 || bytes < min) min = bytes, best = n;
  }
  return best;
}

assay_status_t cpu_direct_run(assay_kernel_t* base, const void* const* in, void* const* out,
                              void* scratch) {
  const direct_t* k = (const direct_t*)base;
  const int64_t weights = k->panels * DIRECT_PANEL * k->taps * k->units;
  const int64_t sums = k->samples * k->places * k->made / DIRECT_LANES;
  const int64_t work = sums * (k->taps * k->units + DIRECT_LANES);
  // For few places weights take longer to come than to be multiplied.
  int parts = cpu_threads(work > weights ? work : weights);
  if (parts > k->max_parts) parts = k->max_parts;
  float* own = cpu_scratch(scratch);
  const int across = panel_parts(k, parts), down = parts / across;
#pragma omp parallel for schedule(static, 1) num_threads(parts) if (parts > 1)
  for (int p = 0; p < parts; p++) {
    float* mine = own + (size_t)p * k->thread_scratch;
    const job_t j = {.k = k,
                     .in = in,
                     .out = out[0],
                     .wide = mine,
                     .sums = mine + k->wide,
                     .waiting = mine + k->wide};
    const int64_t a = p % across, d = p / across;
    run_share(&j, cpu_direct_block_of(k, d, down), cpu_direct_block_of(k, d + 1, down),
              k->panels * a / across, k->panels * (a + 1) / across);
  }
  return NULL;
}
