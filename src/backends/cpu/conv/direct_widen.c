// How direct convolutions widen what they read of 16-bit inputs.
#include "backends/cpu/conv/direct_conv.h"

enum { LINE = 16 };  // floats

// Taps of a block that are widened at once, where they are gathered.
static int64_t taps_at_once(const direct_t* k, int64_t taps) {
  return k->some_taps && k->some_taps < taps ? k->some_taps : taps;
}

size_t cpu_direct_wide_capacity(const direct_t* k) {
  const int64_t one = DIRECT_ROWS * taps_at_once(k, k->taps) * k->units;
  // More where weights come again for each piece.
  const int64_t max = cpu_second_cache() / (k->chunk < k->panels ? 20 : 64);
  return (size_t)((one > max ? one : max) + LINE - 1) / LINE * LINE;
}

static int64_t places_of(const direct_t* k, int64_t block) {
  const int64_t i = block % k->blocks;
  return k->order ? k->first[i + 1] - k->first[i]
                  : k->places * (i + 1) / k->blocks - k->places * i / k->blocks;
}

// Of all samples, not of the block's.
static direct_reach_t reach_of(const direct_t* k, int64_t block) {
  if (k->joined) {
    const int64_t first = k->places * block / k->blocks * k->units;
    return (direct_reach_t){first, first + places_of(k, block) * k->units, 1};
  }
  direct_reach_t r = k->reach[block % k->blocks];
  const int64_t sample = block / k->blocks * k->in_sample;
  r.first += sample;
  r.end += sample;
  return r;
}

// As many blocks as one range of the input serves: one that lies apart is left to the next piece.
// Gives whether that is less than to gather what they read.
static bool find_range(const direct_t* k, int64_t last, direct_piece_t* p) {
  int64_t first = 0, end = 0, gathered = 0;
  for (p->last = p->first; p->last < last; p->last++) {
    const direct_reach_t r = reach_of(k, p->last);
    const bool begins = p->last == p->first;
    const int64_t own = places_of(k, p->last) * r.taps * k->units;
    const int64_t from = begins || r.first < first ? r.first : first;
    const int64_t to = begins || r.end > end ? r.end : end;
    if (to - from > (int64_t)k->wide || (!begins && to - from - (end - first) > own)) break;
    first = from;
    end = to;
    gathered += own;
  }
  p->from = first;
  p->units = end - first;
  return p->last > p->first && p->units <= gathered;
}

direct_piece_t cpu_direct_piece(const direct_t* k, int64_t block, int64_t last) {
  direct_piece_t p = {.first = block};
  if (k->some_taps && last - block > k->waiting) last = block + k->waiting;
  if (find_range(k, last, &p)) return p;
  p.gathered = true;
  int64_t used = 0;
  for (p.last = block; p.last < last; p.last++) {
    const direct_reach_t r = reach_of(k, p.last);
    used += places_of(k, p.last) * taps_at_once(k, r.taps) * k->units;
    if (p.last > block && used > (int64_t)k->wide) break;
  }
  return p;
}

static void widen(const direct_t* k, const void* in, int64_t from, int64_t n, float* to) {
  k->way->widen(k->type, (const uint16_t*)in + from, n, to);
}

static void gather(const direct_t* k, const void* in, const direct_piece_t* p, int64_t tap,
                   int64_t end, float* wide) {
  for (int64_t i = p->first; i < p->last; i++) {
    direct_rows_t rows;
    int32_t taps[DIRECT_TAPS];
    int64_t at[DIRECT_TAPS][DIRECT_ROWS];
    cpu_direct_rows(k, i, &rows);
    const int n = cpu_direct_taps(k, &rows, taps, at);
    for (int t = 0; t < n; t++)
      for (int r = 0; taps[t] >= tap && taps[t] < end && r < rows.n; r++, wide += k->units)
        if (at[t][r] != DIRECT_OUTSIDE) widen(k, in, rows.from + at[t][r], k->units, wide);
  }
}

void cpu_direct_widen(const direct_t* k, const void* in, const direct_piece_t* p, int64_t tap,
                      int64_t end, float* wide) {
  if (p->gathered)
    gather(k, in, p, tap, end, wide);
  else if (!tap)
    widen(k, in, p->from, p->units, wide);
}
