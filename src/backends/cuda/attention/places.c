// The batch as few dimensions along which each operand and each mask has one distance. A mask may
// be broadcast to other dimensions than the batch has (that of windows to [images, windows, heads],
// where the batch is [images windows, heads]): both are cut until their dimensions are the same.
#include "backends/cuda/attention/places.h"

#include <string.h>

enum {
  MOST = 2 * ATTENTION_ARGS_RANK,
  SIDES = 4,
  LISTS = SIDES + ATTENTION_ARGS_MASKS,
  ROWS_BEYOND = 256  // that addresses are computed of, at most: a block of queries or keys, and one
};

// Dimensions of one operand, the innermost one first, none of 1.
typedef struct digits {
  int n;
  int64_t counts[MOST], strides[MOST];
} digits_t;

static digits_t digits_of(int rank, const int64_t* dims, const int64_t* strides) {
  digits_t d = {0};
  for (int i = rank - 1; i >= 0; i--) {
    if (dims[i] == 1) continue;
    d.counts[d.n] = dims[i];
    d.strides[d.n++] = strides[i];
  }
  return d;
}

// Cuts one of the dimensions, so that some of the innermost count to `below`; *out: how many.
static bool cut(digits_t* d, int64_t below, int* out) {
  int64_t all = 1;
  int i = 0;
  while (i < d->n && all * d->counts[i] <= below) all *= d->counts[i++];
  *out = i;
  if (all == below) return true;
  if (i == d->n || d->n == MOST || below % all || d->counts[i] % (below / all)) return false;
  const size_t moved = (size_t)(d->n - i) * sizeof *d->counts;
  memmove(d->counts + i + 1, d->counts + i, moved);
  memmove(d->strides + i + 1, d->strides + i, moved);
  d->n++;
  d->counts[i] = below / all;
  d->counts[i + 1] /= d->counts[i];
  d->strides[i + 1] *= d->counts[i];
  *out = i + 1;
  return true;
}

static bool follows(const digits_t* d, int i) {
  return d->strides[i + 1] == d->strides[i] * d->counts[i];
}

// The one distance along dimensions [from, to).
static bool one_stride(const digits_t* d, int from, int to, int64_t* out) {
  *out = from < to ? d->strides[from] : 0;
  for (int i = from; i + 1 < to; i++)
    if (!follows(d, i)) return false;
  return true;
}

// A mask's rows as heads, groups of queries and queries.
static bool split(const attention_mask_t* m, int64_t q_len, int64_t period, digits_t* heads,
                  attention_args_mask_t* out) {
  digits_t d = digits_of(m->rank, m->dims, m->strides);
  int own, of_head;
  if (!cut(&d, period, &own) || !cut(&d, q_len, &of_head) || !one_stride(&d, 0, own, &out->row) ||
      !one_stride(&d, own, of_head, &out->group))
    return false;
  *heads = (digits_t){.n = d.n - of_head};
  memcpy(heads->counts, d.counts + of_head, (size_t)heads->n * sizeof *d.counts);
  memcpy(heads->strides, d.strides + of_head, (size_t)heads->n * sizeof *d.strides);
  return true;
}

// Cuts all lists until they have the same counts.
static bool agree(digits_t* lists, int n) {
  for (int i = 0; i < n; i++) {
    int64_t below = 1;
    for (int d = 0; d < lists[i].n; d++) {
      int ignored;
      below *= lists[i].counts[d];
      for (int k = 0; k < n; k++)
        if (!cut(&lists[k], below, &ignored)) return false;
    }
  }
  return true;
}

// Neighbouring dimensions that are one in all lists.
static void join(digits_t* lists, int n) {
  for (int d = 0; d + 1 < lists[0].n;) {
    bool one = true;
    for (int i = 0; i < n; i++) one = one && follows(&lists[i], d);
    for (int i = 0; one && i < n; i++) {
      digits_t* l = &lists[i];
      const size_t moved = (size_t)(l->n - d - 2) * sizeof *l->counts;
      l->counts[d] *= l->counts[d + 1];
      memmove(l->counts + d + 1, l->counts + d + 2, moved);
      memmove(l->strides + d + 1, l->strides + d + 2, moved);
      l->n--;
    }
    d += !one;
  }
}

static bool find(const attention_layer_t* a, int64_t period, int n_masks, digits_t* lists,
                 attention_args_t* args) {
  const attention_view_t* const sides[SIDES] = {&a->q, &a->k, &a->v, &a->y};
  for (int i = 0; i < SIDES; i++) lists[i] = digits_of(a->n_batch, a->batch, sides[i]->batch);
  for (int i = 0; i < n_masks; i++)
    if (!split(&a->masks[i], a->q_len, period, &lists[SIDES + i], &args->masks[i])) return false;
  // What is one dimension already is cut wherever others are.
  for (int i = 0; i < SIDES + n_masks; i++) join(&lists[i], 1);
  if (!agree(lists, SIDES + n_masks)) return false;
  join(lists, SIDES + n_masks);
  return lists[0].n <= ATTENTION_ARGS_RANK;
}

// ---- arguments ----------------------------------------------------------------------------------

static void write(const digits_t* d, int64_t* strides) {
  for (int i = 0; i < d->n; i++) strides[i] = d->strides[d->n - 1 - i];
}

static void walk(const attention_mask_t* m, attention_args_mask_t* out) {
  out->rank = m->rank;
  memcpy(out->dims, m->dims, sizeof out->dims);
  memcpy(out->strides, m->strides, sizeof out->strides);
}

// Elements from the first one on, behind the last one that an address is computed of.
static int64_t extent(const attention_layer_t* a, const attention_view_t* v, int64_t rows,
                      int64_t columns) {
  int64_t all = v->at + (rows + ROWS_BEYOND) * v->row + columns * v->column;
  for (int i = 0; i < a->n_batch; i++) all += a->batch[i] * v->batch[i];
  return all;
}

static int64_t extent_of_mask(const attention_layer_t* a, const attention_mask_t* m) {
  int64_t all = a->kv_len + ROWS_BEYOND;
  for (int i = 0; i < m->rank; i++) all += m->dims[i] * m->strides[i];
  return all * (int64_t)sizeof(float);
}

static bool is_wide(const attention_layer_t* a) {
  bool wide = extent(a, &a->q, a->q_len, a->size) > INT32_MAX ||
              extent(a, &a->k, a->kv_len, a->size) > INT32_MAX ||
              extent(a, &a->v, a->kv_len, a->v_size) > INT32_MAX ||
              extent(a, &a->y, a->q_len, a->v_size) > INT32_MAX;
  for (int i = 0; i < a->n_masks; i++) wide |= extent_of_mask(a, &a->masks[i]) > INT32_MAX;
  return wide;
}

static bool is_paired(const attention_layer_t* a, const attention_mask_t* m) {
  int64_t all = a->kv_len;
  for (int i = 0; i < m->rank; i++) all |= m->dims[i] == 1 ? 0 : m->strides[i];
  return m->key == 1 && all % 2 == 0;
}

attention_places_t cuda_attention_places(const attention_layer_t* a, attention_args_t* args) {
  attention_places_t p = {.wide = is_wide(a)};
  digits_t lists[LISTS];
  int n_masks = a->n_masks;
  const int64_t own = a->period ? a->period : a->q_len;
  // What is no window may lie as if there were no period.
  int64_t period = a->windowed ? own : a->q_len;
  bool found = find(a, period, n_masks, lists, args);
  if (!found && period != own) found = find(a, period = own, n_masks, lists, args);
  if (!found) (void)find(a, period, n_masks = 0, lists, args);
  p.walked = !found;
  p.grouped = period != a->q_len;
  p.n_batch = lists[0].n;
  write(&lists[0], args->q.batch);
  write(&lists[1], args->k.batch);
  write(&lists[2], args->v.batch);
  write(&lists[3], args->y.batch);
  for (int i = 0; i < p.n_batch; i++)
    args->batch[i] = divisor_of((uint32_t)lists[0].counts[p.n_batch - 1 - i]);
  args->period = divisor_of((uint32_t)period);
  for (int i = 0; i < a->n_masks; i++) {
    const attention_mask_t* m = &a->masks[i];
    attention_args_mask_t* to = &args->masks[i];
    if (p.walked)
      walk(m, to);
    else
      write(&lists[SIDES + i], to->strides);
    p.along_keys |= (unsigned)(m->key != 0) << i;
    p.along_queries |= (unsigned)(p.walked || to->row || to->group) << i;
    p.paired |= (unsigned)is_paired(a, m) << i;
  }
  return p;
}
