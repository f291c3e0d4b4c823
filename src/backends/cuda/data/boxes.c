// Layers that move elements and change none (backends/layers/boxes.h): boxes that lie side by side
// are copied by one launch, transposed matrices and what is copied by tiles by one each.
#include "backends/layers/boxes.h"

#include <string.h>

#include "backends/cuda/data/tiles.h"
#include "backends/cuda/kernels/copy_args.h"
#include "base/alloc.h"

enum { THREADS = 256, SIDE = 32, MIN_SIDE = 16, WORD_BYTES = 16 };

typedef struct boxes {
  assay_kernel_t base;
  const cuda_own_t* own;
  layer_boxes_t boxes;
  int64_t word;         // bytes of what boxes are copied by; matrices by elements
  cuda_tiles_t* tiles;  // of each box, of those that are copied by tiles; owned
  cuda_kernel_t copy, transpose;
  int rank;       // of all boxes that these copy
  bool is_short;  // 32 bits count the words of each
} boxes_t;

static void destroy(assay_kernel_t* k) {
  assay_free(((boxes_t*)k)->boxes.boxes);
  assay_free(((boxes_t*)k)->tiles);
  assay_free(k);
}

static bool is_by_tiles(const boxes_t* k, size_t box) { return k->tiles[box].rank > 0; }

// A matrix that is large enough to be worth its way through shared memory.
static bool is_matrix(const boxes_t* k, size_t box) {
  const box_t* b = &k->boxes.boxes[box];
  return !is_by_tiles(k, box) && b->from >= 0 && box_is_matrix(b) &&
         b->dims[b->rank - 1] >= MIN_SIDE && b->dims[b->rank - 2] >= MIN_SIDE;
}

static int64_t size_of(const box_t* b) { return assay_dims_product(b->dims, 0, b->rank); }

// ---- words --------------------------------------------------------------------------------------

// Whether a box can be copied by words of so many bytes.
static bool fits_words(const box_t* b, int64_t elem, int64_t word) {
  const int last = b->rank - 1;
  if (b->to_strides[last] != 1 || (b->from >= 0 && b->from_strides[last] != 1)) return false;
  if (b->dims[last] * elem % word || b->from_at * elem % word || b->to_at * elem % word)
    return false;
  for (int d = 0; d < last; d++)
    if (b->from_strides[d] * elem % word || b->to_strides[d] * elem % word) return false;
  return true;
}

static int64_t choose_word(const boxes_t* k) {
  const layer_boxes_t* m = &k->boxes;
  const int64_t elem = (int64_t)m->elem;
  for (int64_t word = WORD_BYTES; word > elem; word /= 2) {
    bool fits = true;
    for (size_t i = 0; fits && i < m->n; i++)
      fits = is_by_tiles(k, i) || is_matrix(k, i) || fits_words(&m->boxes[i], elem, word);
    if (fits) return word;
  }
  return elem;
}

static copy_box_t box_in_words(const boxes_t* k, const box_t* b, int64_t word,
                               const assay_device_ptr_t* in, const assay_device_ptr_t* out) {
  const int64_t elem = (int64_t)k->boxes.elem, factor = word / elem;
  const int before = k->rank - b->rank;
  copy_box_t c = {.size = size_of(b) / factor};
  c.to = out[b->to] + (address_t)(b->to_at * elem);
  if (b->from >= 0) c.from = in[b->from] + (address_t)(b->from_at * elem);
  for (int i = 0; i < before; i++) c.dims[i] = 1;
  for (int d = 0; d < b->rank; d++) {
    const bool last = d == b->rank - 1;
    c.dims[before + d] = last ? b->dims[d] / factor : b->dims[d];
    c.from_strides[before + d] = last ? b->from_strides[d] : b->from_strides[d] / factor;
    c.to_strides[before + d] = last ? b->to_strides[d] : b->to_strides[d] / factor;
  }
  for (int i = 0; k->is_short && i < k->rank; i++) c.divisors[i] = divisor_of((uint32_t)c.dims[i]);
  return c;
}

// ---- launches -----------------------------------------------------------------------------------

static assay_status_t copy_matrix(const boxes_t* k, assay_queue_t* q, const box_t* b,
                                  const assay_device_ptr_t* in, const assay_device_ptr_t* out) {
  const int64_t m = b->dims[b->rank - 2], n = b->dims[b->rank - 1];
  matrix_args_t a = {.box = box_in_words(k, b, (int64_t)k->boxes.elem, in, out)};
  a.row_tiles = (m + SIDE - 1) / SIDE;
  a.column_tiles = (n + SIDE - 1) / SIDE;
  if (k->is_short) {
    a.by_rows = divisor_of((uint32_t)a.row_tiles);
    a.by_columns = divisor_of((uint32_t)a.column_tiles);
  }
  a.tiles = a.row_tiles * a.column_tiles * assay_dims_product(b->dims, 0, b->rank - 2);
  const cuda_grid_t grid = {.blocks = cuda_blocks_for(k->own, a.tiles * THREADS, THREADS),
                            .threads = THREADS,
                            .dependent = true};
  return cuda_queue_launch(q, k->transpose, &grid, &a);
}

static void put_value(const boxes_t* k, copy_args_t* a) {
  for (size_t i = 0; i < sizeof a->value; i += k->boxes.elem)
    memcpy((char*)a->value + i, &k->boxes.value, k->boxes.elem);
}

static assay_status_t enqueue(assay_kernel_t* base, assay_queue_t* q, const assay_device_ptr_t* in,
                              const assay_device_ptr_t* out, assay_device_ptr_t scratch) {
  const boxes_t* k = (const boxes_t*)base;
  // What is there already is not copied.
  const int there = base->extends && in[base->extends - 1] == out[0] ? base->extends - 1 : -2;
  copy_args_t a = {.n = 0};
  cuda_grid_t grid = {.threads = THREADS, .dependent = true};
  (void)scratch;
  put_value(k, &a);
  for (size_t i = 0; i < k->boxes.n; i++) {
    const box_t* b = &k->boxes.boxes[i];
    if (b->from == there) continue;
    if (is_by_tiles(k, i)) {
      ASSAY_TRY(cuda_tiles_launch(k->own, q, &k->tiles[i], (int64_t)k->boxes.elem, in[b->from],
                                  out[b->to]));
      continue;
    }
    if (is_matrix(k, i)) {
      ASSAY_TRY(copy_matrix(k, q, b, in, out));
      continue;
    }
    copy_box_t c = box_in_words(k, b, k->word, in, out);
    c.first_block = grid.blocks;
    grid.blocks += cuda_blocks_for(k->own, c.size, THREADS);
    a.boxes[a.n++] = c;
    if (a.n < COPY_BOXES) continue;
    ASSAY_TRY(cuda_queue_launch(q, k->copy, &grid, &a));
    a.n = grid.blocks = 0;
  }
  return a.n ? cuda_queue_launch(q, k->copy, &grid, &a) : NULL;
}

// ---- entry --------------------------------------------------------------------------------------

static assay_status_t load(const boxes_t* k, const char* kernel, int64_t word, cuda_kernel_t* out) {
  assay_str_t options = {0};
  assay_str_printf(&options, "-DBITS=%d -DRANK=%d -DLONG=%d", (int)word * 8, k->rank, !k->is_short);
  const cuda_source_t source = {
      .file = "copy.cu", .kernel = kernel, .options = assay_str_get(&options)};
  assay_status_t st = assay_str_status(&options);
  if (!st) st = cuda_function_get(k->own->functions, &source, out);
  assay_str_deinit(&options);
  return st;
}

// The kernels that the boxes need.
static assay_status_t load_all(boxes_t* k) {
  const int64_t elem = (int64_t)k->boxes.elem;
  bool matrices = false, others = false;
  k->is_short = true;
  k->rank = 0;
  assay_free(k->tiles);
  k->tiles = NULL;
  if (k->boxes.n) ASSAY_TRY(assay_new_array(k->boxes.n, sizeof *k->tiles, &k->tiles));
  for (size_t i = 0; i < k->boxes.n; i++) {
    const box_t* b = &k->boxes.boxes[i];
    if (cuda_tiles_make(k->own, b, elem, &k->tiles[i])) {
      ASSAY_TRY(cuda_tiles_load(k->own, elem, &k->tiles[i]));
      continue;
    }
    k->is_short &= size_of(b) <= INT32_MAX;
    if (k->rank < b->rank) k->rank = b->rank;
    matrices |= is_matrix(k, i);
    others |= !is_matrix(k, i);
  }
  k->word = choose_word(k);
  if (others) ASSAY_TRY(load(k, "copy_boxes", k->word, &k->copy));
  if (matrices) ASSAY_TRY(load(k, "copy_matrix", elem, &k->transpose));
  return NULL;
}

static assay_status_t read(const assay_sized_layer_t* l, boxes_t* k, bool* ok) {
  ASSAY_TRY(layer_boxes_read(l, &k->base, &k->boxes, ok));
  for (size_t i = 0; i < k->boxes.n; i++) *ok &= k->boxes.boxes[i].rank <= COPY_DIMS;
  k->base.enqueue = k->boxes.view ? NULL : enqueue;
  k->base.destroy = destroy;
  k->own = cuda_own_of(l);
  return *ok ? load_all(k) : NULL;
}

static assay_status_t make(const assay_sized_layer_t* l, assay_kernel_t** out) {
  boxes_t *k = NULL, made = {.boxes = {0}};
  bool ok = false;
  assay_status_t st = read(l, &made, &ok);
  if (!st && ok) st = ASSAY_NEW(&k);
  if (st || !ok) return assay_free(made.boxes.boxes), assay_free(made.tiles), st;
  *k = made;
  *out = &k->base;
  return NULL;
}

static assay_status_t resize(const assay_sized_layer_t* l, assay_kernel_t* base, bool* out_ok) {
  const assay_tactic_t* tactic = base->tactic;
  assay_status_t st = read(l, (boxes_t*)base, out_ok);
  base->tactic = tactic;
  return st;
}

const assay_tactic_t cuda_tactic_boxes = {
    .name = "boxes",
    .source = "assay",
    .numerics = "data_movement",
    .make = make,
    .resize = resize,
    .layouts = ASSAY_LAYOUT_FOLLOWS,
    .rounding = {.compute = ASSAY_FORMAT_FP32,
                 .accumulator = ASSAY_FORMAT_FP32,
                 .function_ulps = 1},
};
