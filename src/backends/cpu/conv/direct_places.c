// Which places of the output direct convolutions make together.
#include <stdlib.h>

#include "backends/cpu/conv/direct_conv.h"
#include "base/alloc.h"

enum {
  SORTED = 1 << 16,  // places of a sample; more are made as they come
  FEW_ROWS = 6,      // take as long as fewer do
};

// ---- blocks -------------------------------------------------------------------------------------

void cpu_direct_rows(const direct_t* k, int64_t block, direct_rows_t* r) {
  const int64_t sample = block / k->blocks, i = block % k->blocks;
  const int64_t from = k->order ? k->first[i] : k->places * i / k->blocks;
  const int64_t to = k->order ? k->first[i + 1] : k->places * (i + 1) / k->blocks;
  r->from = sample * k->in_sample;
  r->n = (int)(to - from);
  for (int n = 0; n < r->n; n++) {
    r->place[n] = k->order ? k->order[from + n] : from + n;
    r->at[n] = (sample * k->places + r->place[n]) * k->made;
  }
}

int cpu_direct_taps(const direct_t* k, const direct_rows_t* rows, int32_t* taps,
                    int64_t (*at)[DIRECT_ROWS]) {
  const int64_t *outer[DIRECT_ROWS], *inner[DIRECT_ROWS];
  int found = 0;
  if (k->joined) {
    taps[0] = 0;
    for (int r = 0; r < rows->n; r++) at[0][r] = rows->place[r] * k->units;
    return 1;
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
        const bool inside = from != DIRECT_OUTSIDE && to != DIRECT_OUTSIDE;
        at[found][r] = inside ? from + to : DIRECT_OUTSIDE;
        meets |= inside;
      }
      if (meets) taps[found++] = (int32_t)tap;
    }
  return found;
}

assay_status_t cpu_direct_find_reach(direct_t* k) {
  if (k->joined) return NULL;
  ASSAY_TRY(assay_new_array((size_t)k->blocks, sizeof *k->reach, &k->reach));
  for (int64_t b = 0; b < k->blocks; b++) {
    direct_rows_t rows;
    int32_t taps[DIRECT_TAPS];
    int64_t at[DIRECT_TAPS][DIRECT_ROWS];
    cpu_direct_rows(k, b, &rows);
    direct_reach_t reach = {.first = INT64_MAX, .taps = cpu_direct_taps(k, &rows, taps, at)};
    for (int t = 0; t < reach.taps; t++)
      for (int r = 0; r < rows.n; r++) {
        if (at[t][r] == DIRECT_OUTSIDE) continue;
        if (at[t][r] < reach.first) reach.first = at[t][r];
        if (at[t][r] + k->units > reach.end) reach.end = at[t][r] + k->units;
      }
    if (!reach.end) reach.first = 0;
    k->reach[b] = reach;
  }
  return NULL;
}

// ---- order --------------------------------------------------------------------------------------

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

static uint64_t taps_of(const direct_axis_t* t, int64_t out) {
  uint64_t taps = 0;
  for (int64_t i = 0; i < t->kernel; i++)
    taps |= (uint64_t)(t->at[out * t->kernel + i] != DIRECT_OUTSIDE) << i;
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
static void cut_places(direct_t* k, const place_t* places, int64_t* min, uint8_t* rows) {
  for (int64_t i = 1; i <= k->places; i++) {
    uint64_t taps = 0;
    min[i] = INT64_MAX;
    for (int n = 1; n <= DIRECT_ROWS && n <= i; n++) {
      taps |= places[i - n].taps;
      const int64_t cost = min[i - n] + cost_of(n, taps);
      if (cost < min[i]) min[i] = cost, rows[i] = (uint8_t)n;
    }
  }
  k->blocks = 0;
  for (int64_t i = k->places; i > 0; i -= rows[i]) k->blocks++;
  int64_t block = k->blocks;
  k->first[block] = (int32_t)k->places;
  k->done[block] = min[k->places];
  for (int64_t i = k->places; i > 0;) {
    i -= rows[i];
    k->first[--block] = (int32_t)i;
    k->done[block] = min[i];
  }
  for (int64_t i = 0; i < k->places; i++) k->order[i] = places[i].at;
}

assay_status_t cpu_direct_order(direct_t* k) {
  const size_t n = (size_t)k->places;
  place_t* places = NULL;
  int64_t* min = NULL;
  uint8_t* rows = NULL;
  if (n > SORTED) return NULL;
  assay_status_t st = assay_new_array(n, sizeof *places, &places);
  if (!st) st = assay_new_array(n + 1, sizeof *min, &min);
  if (!st) st = assay_new_array(n + 1, sizeof *rows, &rows);
  if (!st) st = assay_new_array(n, sizeof *k->order, &k->order);
  if (!st) st = assay_new_array(n + 1, sizeof *k->first, &k->first);
  if (!st) st = assay_new_array(n + 1, sizeof *k->done, &k->done);
  if (!st) {
    sort_places(k, places);
    cut_places(k, places, min, rows);
  }
  assay_free(places);
  assay_free(min);
  assay_free(rows);
  return st;
}

int64_t cpu_direct_block_of(const direct_t* k, int64_t part, int64_t parts) {
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
