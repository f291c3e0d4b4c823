// Rows in memory, and how threads share them out.
#include "backends/cuda/rows/geometry.h"

enum {
  WARP = 32,
  MAX_TERMS = 1 << 30,
  MAX_BLOCKS = INT32_MAX,
  FEW = 8,  // terms of a thread where that takes no more than SPAN threads
  SPAN = 512,
  FLOATS = 32,        // that a thread keeps at most
  VECTORS = 8,        // in so many pieces
  LARGE_FLOATS = 16,  // where a block has LARGE_SPAN threads, which share the registers
  LARGE_SPAN = 1024
};

void cuda_memory_order(int rank, assay_layout_t layout, int* order) {
  const bool last = layout == ASSAY_LAYOUT_CHANNELS_LAST && rank >= 3;
  int n = 0;
  for (int i = 0; i < rank; i++)
    if (!last || i != 1) order[n++] = i;
  if (last) order[n] = 1;
}

// ---- where rows lie -----------------------------------------------------------------------------

// One more dimension inside of those before it; it goes on with the last one where that can be.
static void add_row_dim(rows_geometry_t* g, int64_t size, int64_t from, int64_t to) {
  const int last = g->n_row - 1;
  if (last >= 0 && g->row_from[last] == size * from && g->row_to[last] == size * to) {
    g->row[last] *= size;
    g->row_from[last] = from;
    g->row_to[last] = to;
    return;
  }
  g->row[g->n_row] = size;
  g->row_from[g->n_row] = from;
  g->row_to[g->n_row++] = to;
}

static void add_term_dim(rows_geometry_t* g, int* n, int64_t size, int64_t from) {
  if (*n && g->term_from[*n - 1] == size * from) {
    g->term[*n - 1] *= size;
    g->term_from[*n - 1] = from;
    return;
  }
  g->term[*n] = size;
  g->term_from[(*n)++] = from;
}

// *across: the innermost dimension that is longer than 1 is one of rows.
static bool lay_out(const cuda_row_dim_t* dims, int n, cuda_rows_t* r, bool* across) {
  rows_geometry_t* g = &r->geometry;
  int64_t step = 1, terms = 1;
  *across = true;
  for (int i = 0; i < n; i++) step *= dims[i].size;
  g->rows = 1;
  for (int i = 0; i < n; i++) {
    step /= dims[i].size;
    if (dims[i].size == 1) continue;
    *across = !dims[i].is_term;
    if (dims[i].is_term) {
      add_term_dim(g, &r->dims, dims[i].size, step);
      terms *= dims[i].size;
    } else {
      add_row_dim(g, dims[i].size, step, dims[i].to);
      g->rows *= dims[i].size;
    }
  }
  if (!r->dims) {
    r->dims = 1;
    g->term[0] = 1;
  }
  g->terms = terms <= MAX_TERMS ? (int32_t)terms : 0;
  return g->terms > 0;
}

// ---- how threads share them out -----------------------------------------------------------------

// As many elements as have 16 bytes, if the innermost dimension has a multiple of that; the steps
// of all others are multiples of its size.
static int vector_of(const rows_geometry_t* g, int dims, int bytes) {
  int n = 16 / bytes;
  while (g->term[dims - 1] % n) n /= 2;
  return n;
}

static int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Vectors that each of so many threads keeps; 0: too many to be kept.
static int kept(int64_t vectors, int threads, int vector) {
  const int64_t n = ceil_div(vectors, threads);
  const int most = threads == LARGE_SPAN ? LARGE_FLOATS : FLOATS;
  return n <= VECTORS && n * vector <= most ? (int)n : 0;
}

// Threads of a row: a part of a warp, where rows are short, or whole warps; each has few terms, as
// what one thread does takes longer than joining what several have.
static int span_of(int64_t vectors, int vector) {
  const int each = vector < FEW ? FEW / vector : 1;
  const int64_t threads = ceil_div(vectors, each);
  int span = 1;
  if (threads > WARP) {
    span = threads < SPAN ? (int)ceil_div(threads, WARP) * WARP : SPAN;
    return kept(vectors, span, vector) ? span : LARGE_SPAN;
  }
  while (span < threads) span *= 2;
  return span;
}

static void share_along(const cuda_own_t* own, bool keeps, cuda_rows_t* r) {
  const int64_t vectors = r->geometry.terms / r->vector;
  r->span = span_of(vectors, r->vector);
  r->keep = keeps ? kept(vectors, r->span, r->vector) : 0;
  // Rows of a warp or less share blocks where there are enough of them.
  const int rows = r->span < WARP ? WARP / r->span : 1;
  const bool many = r->geometry.rows > 4 * (int64_t)rows * own->properties.multiprocessors;
  const int together = r->span <= WARP && many ? 4 * rows : rows;
  r->grid.threads = r->span * together;
  r->grid.blocks = ceil_div(r->geometry.rows, together);
}

static void share_across(bool keeps, cuda_rows_t* r) {
  const int terms = r->geometry.terms;
  r->across = terms <= 8 ? 1 : terms <= 32 ? 4 : terms <= (keeps ? 512 : 128) ? 8 : 16;
  if (terms > 256 && !keeps) r->across = 32;
  r->span = WARP;
  r->vector = 1;
  r->keep = keeps ? kept(terms, r->across, 1) : 0;
  r->grid.threads = WARP * r->across;
  r->grid.blocks = ceil_div(r->geometry.rows, WARP);
}

bool cuda_rows_make(const cuda_own_t* own, const cuda_row_dim_t* dims, int n, int bytes, bool keeps,
                    cuda_rows_t* out) {
  bool across;
  *out = (cuda_rows_t){.grid = {.dependent = true}};
  if (n > ROWS_RANK || !lay_out(dims, n, out, &across)) return false;
  if (across) {
    share_across(keeps, out);
  } else {
    out->vector = vector_of(&out->geometry, out->dims, bytes);
    share_along(own, keeps, out);
  }
  return out->grid.blocks <= MAX_BLOCKS;
}

void cuda_rows_print(const cuda_rows_t* r, assay_str_t* out) {
  assay_str_printf(out, "-DACROSS=%d -DSPAN=%d -DKEEP=%d -DVEC=%d -DDIMS=%d", r->across, r->span,
                   r->keep, r->vector, r->dims);
}
