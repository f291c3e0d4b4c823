// Strided copies: see strided.h.
//
// A box is brought to its simplest form first: dims of 1 are dropped, dims are put in the order of
// the output, and neighbours that step as one are merged, so that most operators end in memcpy or
// in the copy of a plain 2-D transpose, which is done in tiles.
#include "ops/data/strided.h"

#include <omp.h>
#include <string.h>

// Canonical elements are words of 8 bytes; complex ones are two, and get a dim of their own.
typedef uint64_t __attribute__((may_alias)) word_t;

enum {
  TILE = 16,      // of a transpose: 16 x 16 words use 16 lines on either side
  RUN = 1 << 14,  // words of the innermost dim that one item copies
  PARALLEL_WORDS = 1 << 17,
};

typedef struct box {
  int rank;
  int64_t dims[ASSAY_STRIDED_MAX + 1];
  int64_t from[ASSAY_STRIDED_MAX + 1];
  int64_t to[ASSAY_STRIDED_MAX + 1];
} box_t;

static int64_t magnitude(int64_t x) { return x < 0 ? -x : x; }

static void box_simplify(box_t* b) {
  int n = 0;
  for (int i = 0; i < b->rank; i++) {  // insertion sort by falling output stride; stable
    if (b->dims[i] == 1) continue;
    int64_t d = b->dims[i], f = b->from[i], t = b->to[i];
    int at = n++;
    for (; at > 0 && magnitude(b->to[at - 1]) < magnitude(t); at--) {
      b->dims[at] = b->dims[at - 1], b->from[at] = b->from[at - 1], b->to[at] = b->to[at - 1];
    }
    b->dims[at] = d, b->from[at] = f, b->to[at] = t;
  }
  int last = -1;
  for (int i = 0; i < n; i++) {
    if (last >= 0 && b->from[last] == b->from[i] * b->dims[i] &&
        b->to[last] == b->to[i] * b->dims[i]) {
      b->dims[last] *= b->dims[i];
      b->from[last] = b->from[i], b->to[last] = b->to[i];
    } else {
      last++;
      b->dims[last] = b->dims[i], b->from[last] = b->from[i], b->to[last] = b->to[i];
    }
  }
  b->rank = last + 1;
}

// ---- the inner loops -------------------------------------------------------------------------

static void copy_row(int64_t n, const word_t* from, int64_t from_step, word_t* to,
                     int64_t to_step) {
  if (to_step == 1 && from_step == 1) {
    memcpy(to, from, (size_t)n * sizeof *to);
  } else if (to_step == 1 && from_step == 0) {
    word_t x = *from;
    for (int64_t i = 0; i < n; i++) to[i] = x;
  } else {
    for (int64_t i = 0; i < n; i++) to[i * to_step] = from[i * from_step];
  }
}

// rows x cols where the input runs along the rows' dim and the output along the cols'.
static void copy_tile(int64_t rows, int64_t cols, const word_t* from, int64_t from_row,
                      int64_t from_col, word_t* to, int64_t to_row, int64_t to_col) {
  for (int64_t j0 = 0; j0 < cols; j0 += TILE) {
    int64_t j1 = j0 + TILE < cols ? j0 + TILE : cols;
    for (int64_t i = 0; i < rows; i++) {
      for (int64_t j = j0; j < j1; j++) {
        to[i * to_row + j * to_col] = from[i * from_row + j * from_col];
      }
    }
  }
}

// ---- dividing the work -----------------------------------------------------------------------

// Items of work: all outer indices x tiles of dim `row` (transposes only) x runs of dim `col`.
typedef struct work {
  box_t outer;
  int64_t rows, from_row, to_row;
  int64_t cols, from_col, to_col;
  int64_t row_tiles, col_runs, items;
} work_t;

static void work_plan(const box_t* b, work_t* w) {
  int col = b->rank - 1, row = -1;
  w->cols = b->dims[col], w->from_col = b->from[col], w->to_col = b->to[col];
  w->rows = 1, w->from_row = 0, w->to_row = 0;
  // A transpose: another dim is nearer to the input's order than the output's innermost one.
  for (int i = 0; i < col && w->from_col != 0; i++) {
    if (b->from[i] == 0 || magnitude(b->from[i]) >= magnitude(w->from_col)) continue;
    if (row < 0 || magnitude(b->from[i]) < magnitude(b->from[row])) row = i;
  }
  if (row >= 0) w->rows = b->dims[row], w->from_row = b->from[row], w->to_row = b->to[row];
  w->outer.rank = 0;
  w->items = 1;
  for (int i = 0; i < col; i++) {
    if (i == row) continue;
    int k = w->outer.rank++;
    w->outer.dims[k] = b->dims[i], w->outer.from[k] = b->from[i], w->outer.to[k] = b->to[i];
    w->items *= b->dims[i];
  }
  w->row_tiles = (w->rows + TILE - 1) / TILE;
  w->col_runs = (w->cols + RUN - 1) / RUN;
  w->items *= w->row_tiles * w->col_runs;
}

static void work_item(const work_t* w, int64_t row_tile, int64_t col_run, const word_t* from,
                      word_t* to) {
  int64_t i0 = row_tile * TILE, j0 = col_run * RUN;
  int64_t rows = w->rows - i0 < TILE ? w->rows - i0 : TILE;
  int64_t cols = w->cols - j0 < RUN ? w->cols - j0 : RUN;
  from += i0 * w->from_row + j0 * w->from_col;
  to += i0 * w->to_row + j0 * w->to_col;
  if (w->rows == 1) {
    copy_row(cols, from, w->from_col, to, w->to_col);
  } else {
    copy_tile(rows, cols, from, w->from_row, w->from_col, to, w->to_row, w->to_col);
  }
}

// Items [first, last): finds the first one's place by division and then counts.
static void work_range(const work_t* w, int64_t first, int64_t last, const word_t* from,
                       word_t* to) {
  if (first >= last) return;
  int64_t rest = first;
  int64_t col_run = rest % w->col_runs;
  rest /= w->col_runs;
  int64_t row_tile = rest % w->row_tiles;
  rest /= w->row_tiles;
  int64_t index[ASSAY_STRIDED_MAX + 1];
  for (int i = w->outer.rank - 1; i >= 0; i--) {
    index[i] = rest % w->outer.dims[i];
    rest /= w->outer.dims[i];
    from += index[i] * w->outer.from[i];
    to += index[i] * w->outer.to[i];
  }
  for (int64_t item = first; item < last; item++) {
    work_item(w, row_tile, col_run, from, to);
    if (++col_run < w->col_runs) continue;
    col_run = 0;
    if (++row_tile < w->row_tiles) continue;
    row_tile = 0;
    for (int i = w->outer.rank - 1; i >= 0; i--) {
      from += w->outer.from[i];
      to += w->outer.to[i];
      if (++index[i] < w->outer.dims[i]) break;
      from -= w->outer.from[i] * w->outer.dims[i];
      to -= w->outer.to[i] * w->outer.dims[i];
      index[i] = 0;
    }
  }
}

static void copy_words(box_t* b, const word_t* from, word_t* to) {
  int64_t words = 1;
  for (int i = 0; i < b->rank; i++) words *= b->dims[i];
  if (words == 0) return;
  box_simplify(b);
  if (b->rank == 0) {
    *to = *from;
    return;
  }
  work_t w;
  work_plan(b, &w);
  if (words < PARALLEL_WORDS || w.items == 1 || omp_in_parallel()) {
    work_range(&w, 0, w.items, from, to);
    return;
  }
#pragma omp parallel
  {
    int64_t n = omp_get_num_threads(), id = omp_get_thread_num();
    int64_t share = w.items / n, more = w.items % n;
    int64_t first = id * share + (id < more ? id : more);
    work_range(&w, first, first + share + (id < more), from, to);
  }
}

static assay_status_t copy_strings(const box_t* b, const assay_tensor_t* from, int64_t from_offset,
                                   assay_tensor_t* to, int64_t to_offset) {
  int64_t index[ASSAY_STRIDED_MAX + 1] = {0};
  int64_t n = 1;
  for (int i = 0; i < b->rank; i++) n *= b->dims[i];
  for (int64_t k = 0; k < n; k++) {
    assay_string_t s = assay_strings(from)[from_offset];
    ASSAY_TRY(assay_tensor_set_string(to, to_offset, s.text, s.len));
    for (int i = b->rank - 1; i >= 0; i--) {
      from_offset += b->from[i];
      to_offset += b->to[i];
      if (++index[i] < b->dims[i]) break;
      from_offset -= b->from[i] * b->dims[i];
      to_offset -= b->to[i] * b->dims[i];
      index[i] = 0;
    }
  }
  return NULL;
}

// ---- interface -------------------------------------------------------------------------------

assay_status_t assay_copy_strided(int rank, const int64_t* dims, const assay_tensor_t* from,
                                  int64_t from_offset, const int64_t* from_strides,
                                  assay_tensor_t* to, int64_t to_offset,
                                  const int64_t* to_strides) {
  if (from->store != to->store || from->store == ASSAY_STORE_PACKED || rank > ASSAY_STRIDED_MAX) {
    return ASSAY_ERROR(ASSAY_INTERNAL, "strided copy between stores %d and %d, rank %d",
                       (int)from->store, (int)to->store, rank);
  }
  int64_t words = from->store == ASSAY_STORE_C128 ? 2 : 1;
  box_t b = {.rank = rank};
  for (int i = 0; i < rank; i++) {
    if (dims[i] == 0) return NULL;
    b.dims[i] = dims[i];
    b.from[i] = from_strides[i] * words;
    b.to[i] = to_strides[i] * words;
  }
  if (from->store == ASSAY_STORE_STR) return copy_strings(&b, from, from_offset, to, to_offset);
  if (words == 2) {
    b.dims[b.rank] = 2;
    b.from[b.rank] = b.to[b.rank] = 1;
    b.rank++;
  }
  copy_words(&b, (const word_t*)from->data + from_offset * words,
             (word_t*)to->data + to_offset * words);
  return NULL;
}

assay_status_t assay_copy_run(const assay_tensor_t* from, int64_t from_offset, assay_tensor_t* to,
                              int64_t to_offset, int64_t n) {
  int64_t one = 1;
  return assay_copy_strided(1, &n, from, from_offset, &one, to, to_offset, &one);
}

// Where row `row` starts in `from`, all dims but the last.
static int64_t mapped_row(int rank, const int64_t* dims, const int64_t* const* tables,
                          int64_t row) {
  int64_t offset = 0;
  for (int i = rank - 2; i >= 0; i--) {
    offset += tables[i][row % dims[i]];
    row /= dims[i];
  }
  return offset;
}

assay_status_t assay_copy_mapped(int rank, const int64_t* dims, const int64_t* const* tables,
                                 const assay_tensor_t* from, assay_tensor_t* to) {
  if (rank == 0) return assay_copy_run(from, 0, to, 0, 1);
  if (to->size == 0) return NULL;
  int64_t cols = dims[rank - 1], rows = to->size / cols;
  const int64_t* last = tables[rank - 1];
  if (from->store == ASSAY_STORE_STR) {
    for (int64_t k = 0; k < to->size; k++) {
      int64_t at = mapped_row(rank, dims, tables, k / cols) + last[k % cols];
      assay_string_t s = assay_strings(from)[at];
      ASSAY_TRY(assay_tensor_set_string(to, k, s.text, s.len));
    }
    return NULL;
  }
  int64_t words = from->store == ASSAY_STORE_C128 ? 2 : 1;
#pragma omp parallel for schedule(static) if (to->size > PARALLEL_WORDS)
  for (int64_t r = 0; r < rows; r++) {
    const word_t* in = (const word_t*)from->data + words * mapped_row(rank, dims, tables, r);
    word_t* out = (word_t*)to->data + words * r * cols;
    for (int64_t k = 0; words == 1 && k < cols; k++) out[k] = in[last[k]];
    for (int64_t k = 0; words == 2 && k < cols; k++) {
      out[2 * k] = in[2 * last[k]];
      out[2 * k + 1] = in[2 * last[k] + 1];
    }
  }
  return NULL;
}

assay_status_t assay_fill_from(assay_tensor_t* to, const assay_tensor_t* from, int64_t i) {
  int64_t zero = 0, one = 1;
  return assay_copy_strided(1, &to->size, from, i, &zero, to, 0, &one);
}

assay_status_t assay_fill_zero(assay_tensor_t* to) {
  if (to->store == ASSAY_STORE_STR) {
    for (int64_t i = 0; i < to->size; i++) ASSAY_TRY(assay_tensor_set_string(to, i, "", 0));
    return NULL;
  }
  memset(to->data, 0, (size_t)to->size * assay_store_elem_bytes(to->store));
  return NULL;
}

void assay_row_major(int rank, const int64_t* dims, int64_t* strides) {
  uint64_t step = 1;  // wraps without harm where an empty tensor has huge dims
  for (int i = rank - 1; i >= 0; i--) {
    strides[i] = (int64_t)step;
    step *= (uint64_t)dims[i];
  }
}
