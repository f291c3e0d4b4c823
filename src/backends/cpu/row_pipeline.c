// Runs row pipelines (exec/segment/row_pipeline.h) on the CPU: threads share the rows of the last
// output.
#include "backends/cpu/row_pipeline.h"

#include <string.h>

#include "backends/cpu/tactic.h"
#include "backends/cpu/threads.h"

enum { ALIGNMENT = 64, PARTS = 64 };

typedef struct range {
  int64_t first, end;
} range_t;

static size_t aligned(size_t bytes) { return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT; }

static range_t reads(const assay_kernel_t* k, range_t rows) {
  range_t r = rows;
  if (rows.end <= rows.first) return (range_t){0, 0};
  if (k->by_rows.reads) k->by_rows.reads(k, rows.first, rows.end, &r.first, &r.end);
  return r;
}

// ---- how they run -------------------------------------------------------------------------------

// The most rows that each kernel hands on for `rows` rows of the last one.
static void find_capacity(assay_kernel_t* const* kernels, int n, int64_t rows, int64_t* capacity) {
  const int64_t all = kernels[n - 1]->by_rows.rows;
  for (int i = 0; i < n; i++) capacity[i] = 0;
  for (int64_t row = 0; row < all; row++) {
    range_t r = {row, row + rows < all ? row + rows : all};
    for (int i = n - 1; i > 0; i--) {
      r = reads(kernels[i], r);
      if (r.end - r.first > capacity[i - 1]) capacity[i - 1] = r.end - r.first;
    }
  }
}

static size_t window_bytes(assay_kernel_t* const* kernels, int n, const int64_t* capacity) {
  size_t bytes = 0;
  for (int i = 0; i + 1 < n; i++)
    bytes += aligned((size_t)capacity[i] * kernels[i]->by_rows.row_bytes);
  return bytes;
}

// Bytes of slower memory that a thread is spared by handing rows on in the cache, less weights that
// it reads again for each piece, and those that could be had while it makes rows at its borders
// that others make, too.
static double gain(assay_kernel_t* const* kernels, const assay_pipeline_t* t, int64_t parts) {
  enum { START = 32768 };          // bytes in the time in which threads wait for one another
  const double work_a_byte = 1.5;  // multiply-adds
  const double stays = 0.5 * (double)cpu_second_cache();
  const assay_by_rows_t* last = &kernels[t->n - 1]->by_rows;
  const int64_t rows = (last->samples * last->rows + parts - 1) / parts;
  const double calls = rows > t->rows ? (double)rows / (double)t->rows : 1;
  int64_t capacity[ASSAY_PIPELINE_KERNELS];
  find_capacity(kernels, t->n, rows < last->rows ? rows : last->rows, capacity);
  double gained = 0, weights = 0, twice = 0;
  for (int i = 0; i < t->n; i++) {
    const assay_by_rows_t* k = &kernels[i]->by_rows;
    weights += (double)k->weights;
    if (i + 1 == t->n) break;
    const double share = (double)(k->samples * k->rows) / (double)parts;
    const double bytes = share * (double)k->row_bytes;
    gained += START + 2 * bytes * (bytes < stays ? bytes / stays : 1);
    if (rows < last->rows && (double)capacity[i] > share)
      twice += ((double)capacity[i] - share) * k->work;
  }
  return gained - (calls - 1) * weights - twice / work_a_byte;
}

// As many rows at once as the cache takes beside what they are made of; false: not even one.
static bool find_rows(assay_kernel_t* const* kernels, assay_pipeline_t* t) {
  const size_t limit = (size_t)cpu_second_cache() / 5 * 2;
  int64_t low = 0, high = kernels[t->n - 1]->by_rows.rows;
  while (low < high) {
    int64_t capacity[ASSAY_PIPELINE_KERNELS];
    const int64_t rows = high - (high - low) / 2;
    find_capacity(kernels, t->n, rows, capacity);
    if (window_bytes(kernels, t->n, capacity) > limit) {
      high = rows - 1;
      continue;
    }
    low = t->rows = rows;
    memcpy(t->capacity, capacity, sizeof capacity);
  }
  return low > 0;
}

// In vectors, as cpu_threads counts it.
static int64_t work_of(assay_kernel_t* const* kernels, int n) {
  double work = 0;
  for (int i = 0; i < n; i++) {
    const assay_by_rows_t* k = &kernels[i]->by_rows;
    work += (double)(k->samples * k->rows) * (k->work + (double)k->row_bytes) / 16;
  }
  return work < 1e15 ? (int64_t)work : INT64_MAX / 2;
}

bool cpu_pipeline_couple(assay_kernel_t* const* kernels, assay_pipeline_t* t) {
  const assay_by_rows_t* last = &kernels[t->n - 1]->by_rows;
  if (last->samples < 1 || last->rows < 2) return false;
  const int64_t all = last->samples * last->rows, threads = omp_get_max_threads();
  int64_t parts = threads < PARTS ? threads : PARTS;
  if (parts > all) parts = all;
  t->work = work_of(kernels, t->n);
  if (!find_rows(kernels, t) || gain(kernels, t, parts) <= 0) return false;
  size_t at = 0, scratch = 0;
  for (int i = 0; i < t->n; i++) {
    const assay_by_rows_t* k = &kernels[i]->by_rows;
    t->window[i] = at;
    at += aligned((size_t)t->capacity[i] * k->row_bytes);
    if (k->scratch > scratch) scratch = k->scratch;
  }
  t->max_parts = (int)parts;
  t->scratch = at;
  t->thread_bytes = aligned(at + scratch);
  return true;
}

// ---- running ------------------------------------------------------------------------------------

typedef struct journey {
  const assay_pipeline_t* t;
  assay_kernel_t* const* kernels;
  const cpu_operands_t* operands;
  char* memory;                           // of the thread
  range_t there[ASSAY_PIPELINE_KERNELS];  // rows that lie in each window, of
  int64_t sample;
} journey_t;

// Where row 0 of sample 0 would lie, were all rows there as some of them are.
static void* as_a_whole(char* rows, const assay_by_rows_t* k, int64_t sample, int64_t row) {
  const int64_t before = (sample * k->rows + row) * (int64_t)k->row_bytes;
  return (void*)((uintptr_t)rows - (uintptr_t)before);  // NOLINT: never read there
}

// Sees to it that a window begins with row r.first: what is still needed moves up. Gives the rows
// that are to be made.
static range_t make_way(journey_t* j, int i, range_t r) {
  const size_t bytes = j->kernels[i]->by_rows.row_bytes;
  char* window = j->memory + j->t->window[i];
  range_t* there = &j->there[i];
  const bool goes_on = r.first >= there->first && r.first < there->end;
  if (!goes_on) {
    *there = r;
    return r;
  }
  if (r.first > there->first)
    memmove(window, window + (size_t)(r.first - there->first) * bytes,
            (size_t)(there->end - r.first) * bytes);
  const range_t missing = {there->end, r.end > there->end ? r.end : there->end};
  *there = (range_t){r.first, missing.end};
  return missing;
}

// Some rows of the last output, and before them what they are made of.
static void run_rows(journey_t* j, int64_t sample, range_t rows) {
  const int n = j->t->n;
  range_t todo[ASSAY_PIPELINE_KERNELS];
  if (sample != j->sample) memset(j->there, 0, sizeof j->there);
  j->sample = sample;
  todo[n - 1] = rows;
  for (int i = n - 1; i > 0; i--) {
    const range_t r = reads(j->kernels[i], todo[i]);
    todo[i - 1] = r.end > r.first ? make_way(j, i - 1, r) : (range_t){0, 0};
  }
  for (int i = 0; i < n; i++) {
    const assay_by_rows_t* k = &j->kernels[i]->by_rows;
    cpu_operands_t o = j->operands[i];
    if (todo[i].end <= todo[i].first) continue;
    if (i > 0)
      o.in[k->input] = as_a_whole(j->memory + j->t->window[i - 1], &j->kernels[i - 1]->by_rows,
                                  sample, j->there[i - 1].first);
    if (i + 1 < n) o.out[0] = as_a_whole(j->memory + j->t->window[i], k, sample, j->there[i].first);
    k->run(j->kernels[i], o.in, o.out, j->memory + j->t->scratch, sample, todo[i].first,
           todo[i].end);
  }
}

// Rows [first, end) of all samples'.
static void run_part(journey_t* j, int64_t first, int64_t end) {
  const int64_t rows = j->kernels[j->t->n - 1]->by_rows.rows;
  for (int64_t at = first, n; at < end; at += n) {
    const int64_t sample = at / rows, row = at % rows;
    const int64_t left = end - at < rows - row ? end - at : rows - row;
    // As many at a time as in the others, about.
    const int64_t pieces = (left + j->t->rows - 1) / j->t->rows;
    n = (left + pieces - 1) / pieces;
    run_rows(j, sample, (range_t){row, row + n});
  }
}

void cpu_pipeline_run(const assay_pipeline_t* t, assay_kernel_t* const* kernels,
                      const cpu_operands_t* operands, void* memory) {
  const assay_by_rows_t* last = &kernels[t->n - 1]->by_rows;
  const int64_t all = last->samples * last->rows;
  int parts = cpu_threads(t->work);
  if (parts > t->max_parts) parts = t->max_parts;
#pragma omp parallel for schedule(static, 1) num_threads(parts) if (parts > 1)
  for (int p = 0; p < parts; p++) {
    journey_t j = {.t = t,
                   .kernels = kernels,
                   .operands = operands,
                   .memory = (char*)memory + (size_t)p * t->thread_bytes,
                   .sample = -1};
    run_part(&j, all * p / parts, all * (p + 1) / parts);
  }
}
