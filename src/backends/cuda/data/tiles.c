// How boxes are cut into tiles: their dimensions into equal pieces, so that no tile has a border.
#include "backends/cuda/data/tiles.h"

enum {
  THREADS = 256,
  MIN_WORDS = 1 << 14,    // of a box: less is copied as fast word by word
  MIN_TILE_WORDS = 1024,  // where there are few tiles
  RUN_BYTES = 32,         // a tile's along both tensors at least: what memory is read by
  VECTOR_BYTES = 16,
  BLOCKS = 5  // of a multiprocessor, as far as registers go
};

// Dimensions in the order of one side, the innermost first, without those of 1 and those along
// which a side does not go forward.
typedef struct side {
  int n, dims[BOX_RANK];
  const int64_t* strides;
} side_t;

// A box, and of how many words along each dimension its tiles are: divisors of the dimensions.
typedef struct cut {
  const box_t* box;
  side_t from, to;
  int64_t sizes[BOX_RANK];
} cut_t;

static side_t side_of(const box_t* b, const int64_t* strides) {
  side_t s = {.strides = strides};
  for (int d = 0; d < b->rank; d++) {
    if (b->dims[d] == 1 || b->from_strides[d] <= 0 || b->to_strides[d] <= 0) continue;
    int i = s.n++;
    for (; i && strides[s.dims[i - 1]] > strides[d]; i--) s.dims[i] = s.dims[i - 1];
    s.dims[i] = d;
  }
  return s;
}

// ---- sizes --------------------------------------------------------------------------------------

static int64_t words_of(const cut_t* c) { return assay_dims_product(c->sizes, 0, c->box->rank); }

// How many words of a tile lie one after the other on this side; *dims: along how many dimensions.
static int64_t run_of(const cut_t* c, const side_t* s, int* dims) {
  int64_t run = 1;
  *dims = 0;
  while (*dims < s->n && s->strides[s->dims[*dims]] == run) {
    const int d = s->dims[(*dims)++];
    run *= c->sizes[d];
    if (c->sizes[d] < c->box->dims[d]) break;
  }
  return run;
}

// The smallest divisor from `least` on, n itself where others are too many words.
static int64_t divisor_from(int64_t n, int64_t least) {
  for (int64_t d = least; d < n && d <= TILE_WORDS; d++)
    if (n % d == 0) return d;
  return n;
}

// Makes tiles longer until so many of their words lie one after the other on this side, if they
// can.
static void lengthen(cut_t* c, const side_t* s, int64_t want) {
  int64_t run = 1;
  for (int i = 0; i < s->n && run < want && s->strides[s->dims[i]] == run; i++) {
    const int d = s->dims[i];
    const int64_t least = (want + run - 1) / run;
    c->sizes[d] = divisor_from(c->box->dims[d], least > c->sizes[d] ? least : c->sizes[d]);
    run *= c->sizes[d];
    if (c->sizes[d] < c->box->dims[d]) return;
  }
}

// Makes tiles larger along any dimension, as long as they have no more words than `most`.
static void enlarge(cut_t* c, int64_t most) {
  for (int i = 0; i < c->to.n; i++) {
    const int d = c->to.dims[i];
    const int64_t rest = c->box->dims[d] / c->sizes[d];
    int64_t factor = most / words_of(c) < rest ? most / words_of(c) : rest;
    while (factor > 1 && rest % factor) factor--;
    if (factor > 1) c->sizes[d] *= factor;
  }
}

static bool runs_far(const cut_t* c, const side_t* s, int64_t elem) {
  int dims;
  return run_of(c, s, &dims) * elem >= RUN_BYTES;
}

// Runs that are as long on both sides as tiles of so many words allow.
static bool choose_sizes(cut_t* c, int64_t elem, int64_t most) {
  for (int d = 0; d < c->box->rank; d++) c->sizes[d] = 1;
  for (int64_t want = RUN_BYTES / elem; want <= most; want *= 2) {
    cut_t longer = *c;
    lengthen(&longer, &longer.from, want);
    lengthen(&longer, &longer.to, want);
    if (words_of(&longer) > (want * elem == RUN_BYTES ? TILE_WORDS : most)) break;
    *c = longer;
  }
  enlarge(c, most);
  return runs_far(c, &c->from, elem) && runs_far(c, &c->to, elem);
}

// ---- arguments ----------------------------------------------------------------------------------

// Whether all that a tile reads or writes on this side begins at a multiple of so many words.
static bool is_multiple(const cut_t* c, const side_t* s, int64_t at, int64_t words) {
  const box_t* b = c->box;
  int dims;
  if (run_of(c, s, &dims) % words || at % words) return false;
  for (int i = dims; i < s->n; i++)
    if (c->sizes[s->dims[i]] > 1 && s->strides[s->dims[i]] % words) return false;
  for (int d = 0; d < b->rank; d++)
    if (c->sizes[d] < b->dims[d] && s->strides[d] * c->sizes[d] % words) return false;
  return true;
}

// Words that a thread moves at once on this side.
static int vector_of(const cut_t* c, const side_t* s, int64_t at, int64_t elem) {
  int64_t words = VECTOR_BYTES / elem;
  while (words > 1 && !is_multiple(c, s, at, words)) words /= 2;
  return (int)words;
}

static int put_side(const cut_t* c, const side_t* s, tile_side_t* out) {
  int n = 0;
  for (int i = 0; i < s->n; i++) {
    const int d = s->dims[i];
    if (c->sizes[d] == 1) continue;
    out->dims[n] = (uint32_t)c->sizes[d];
    out->factors[n] = short_factor_of(out->dims[n]);
    out->strides[n++] = s->strides[d];
  }
  return n;
}

// The step in a tile, which lies as the output, along a dimension.
static int64_t step_in_tile(const cut_t* c, int dim) {
  int64_t step = 1;
  for (int i = 0; i < c->to.n && c->to.dims[i] != dim; i++) step *= c->sizes[c->to.dims[i]];
  return step;
}

static void put_places(const cut_t* c, tiles_args_t* a) {
  int n = 0;
  for (int i = 0; i < c->from.n; i++)
    if (c->sizes[c->from.dims[i]] > 1) a->places[n++] = (int32_t)step_in_tile(c, c->from.dims[i]);
}

static void put_outer(const cut_t* c, tiles_args_t* a) {
  const box_t* b = c->box;
  for (int d = b->rank - 1; d >= 0; d--) {
    if (c->sizes[d] == b->dims[d]) continue;
    a->outer[a->n_outer] = divisor_of((uint32_t)(b->dims[d] / c->sizes[d]));
    a->from_steps[a->n_outer] = b->from_strides[d] * c->sizes[d];
    a->to_steps[a->n_outer++] = b->to_strides[d] * c->sizes[d];
  }
}

// Whether both sides begin with the same dimension: words lie as well in the input's order.
static bool runs_together(const cut_t* c) {
  return !c->from.n || !c->to.n || c->from.dims[0] == c->to.dims[0] ||
         c->from.strides[c->from.dims[0]] != 1 || c->to.strides[c->to.dims[0]] != 1;
}

// Two tiles for each multiprocessor, if they do not become too small.
static int64_t largest_tile(const cuda_own_t* own, int64_t size) {
  const int64_t share = size / (2 * (int64_t)own->properties.multiprocessors);
  return share < MIN_TILE_WORDS ? MIN_TILE_WORDS : share < TILE_WORDS ? share : TILE_WORDS;
}

bool cuda_tiles_make(const cuda_own_t* own, const box_t* b, int64_t elem, cuda_tiles_t* out) {
  cut_t c = {.box = b};
  if (b->from < 0 || b->rank > TILE_DIMS) return false;
  const int64_t size = assay_dims_product(b->dims, 0, b->rank);
  c.from = side_of(b, b->from_strides);
  c.to = side_of(b, b->to_strides);
  if (size < MIN_WORDS || runs_together(&c) || !choose_sizes(&c, elem, largest_tile(own, size)) ||
      size / words_of(&c) > INT32_MAX)
    return false;
  *out = (cuda_tiles_t){.from_at = b->from_at * elem, .to_at = b->to_at * elem};
  out->from_words = vector_of(&c, &c.from, b->from_at, elem);
  out->to_words = vector_of(&c, &c.to, b->to_at, elem);
  out->rank = put_side(&c, &c.from, &out->args.in);
  put_side(&c, &c.to, &out->args.out);
  put_places(&c, &out->args);
  put_outer(&c, &out->args);
  out->args.words = (uint32_t)words_of(&c);
  out->args.tiles = (uint32_t)(size / words_of(&c));
  return true;
}

// ---- launches -----------------------------------------------------------------------------------

static int vectors_of_thread(const cuda_tiles_t* t, int words) {
  return ((int)t->args.words + words * THREADS - 1) / (words * THREADS);
}

assay_status_t cuda_tiles_load(const cuda_own_t* own, int64_t elem, cuda_tiles_t* t) {
  const int reads = vectors_of_thread(t, t->from_words), writes = vectors_of_thread(t, t->to_words);
  const bool full = (int64_t)t->args.words == (int64_t)reads * t->from_words * THREADS &&
                    (int64_t)t->args.words == (int64_t)writes * t->to_words * THREADS;
  assay_str_t options = {0};
  assay_str_printf(&options,
                   "-DBITS=%d -DRANK=%d -DFROM=%d -DTO=%d -DREADS=%d -DWRITES=%d -DFULL=%d",
                   (int)elem * 8, t->rank, t->from_words, t->to_words, reads, writes, full);
  const cuda_source_t source = {.file = "copy_tiles.cu",
                                .kernel = "copy_tiles",
                                .options = assay_str_get(&options),
                                .shared_bytes = TILE_WORDS * (int)elem};
  assay_status_t st = assay_str_status(&options);
  if (!st) st = cuda_function_get(own->functions, &source, &t->function);
  assay_str_deinit(&options);
  return st;
}

assay_status_t cuda_tiles_launch(const cuda_own_t* own, assay_queue_t* q, const cuda_tiles_t* t,
                                 int64_t elem, assay_device_ptr_t from, assay_device_ptr_t to) {
  enum { LINE = 128 };  // within which pieces change places
  tiles_args_t a = t->args;
  const int64_t most = (int64_t)BLOCKS * own->properties.multiprocessors;
  const int bytes = (int)a.words * (int)elem;
  const cuda_grid_t grid = {.blocks = a.tiles < most ? a.tiles : most,
                            .threads = THREADS,
                            .shared_bytes = (bytes + LINE - 1) / LINE * LINE,
                            .dependent = true};
  a.from = from + (address_t)t->from_at;
  a.to = to + (address_t)t->to_at;
  return cuda_queue_launch(q, t->function, &grid, &a);
}
