// Layers that move elements and change none: Transpose, Concat, Split, Slice, Pad, Expand, Tile,
// DepthToSpace and SpaceToDepth, each as boxes that are copied. Elements are bytes here; layouts
// are strides.
#include <string.h>

#include "backends/constants.h"
#include "backends/cpu/data/copies.h"
#include "backends/cpu/pointwise/convert.h"
#include "base/alloc.h"

enum { MAX_BOXES = 256 };

typedef struct moves {
  assay_kernel_t base;
  size_t elem;     // bytes
  uint64_t value;  // of one element, in its first bytes
  cpu_box_t* boxes;
  size_t n, cap;
  int64_t row;  // places of one, where it works by rows
} moves_t;

// What is known while a kernel is made.
typedef struct maker {
  const assay_sized_layer_t* l;
  const assay_node_t* node;
  const assay_operand_t *x, *y;  // the first input and output
  moves_t* m;
  assay_layout_t layout;  // of x, and of outputs of its rank
  int64_t x_strides[ASSAY_KERNEL_RANK], y_strides[ASSAY_KERNEL_RANK];
} maker_t;

static assay_status_t run(assay_kernel_t* k, const void* const* in, void* const* out,
                          void* scratch) {
  const moves_t* m = (const moves_t*)k;
  (void)scratch;
  // What is there already is not copied.
  const int there = k->extends && in[k->extends - 1] == out[0] ? k->extends - 1 : -2;
  for (size_t i = 0; i < m->n; i++)
    if (m->boxes[i].from != there) cpu_box_copy(&m->boxes[i], m->elem, in, &m->value, out);
  return NULL;
}

static void destroy(assay_kernel_t* k) {
  assay_free(((moves_t*)k)->boxes);
  assay_free(k);
}

// Boxes without elements are left out.
static assay_status_t add_box(moves_t* m, cpu_box_t box) {
  if (cpu_box_is_empty(&box)) return NULL;
  cpu_box_prepare(&box);
  ASSAY_TRY(assay_grow(&m->boxes, &m->cap, m->n + 1, sizeof *m->boxes));
  m->boxes[m->n++] = box;
  return NULL;
}

// The whole of x into the output, with these strides.
static cpu_box_t box_of(const maker_t* k, int rank, const int64_t* dims, const int64_t* from,
                        const int64_t* to) {
  cpu_box_t b = {.from = (int)(k->x - k->l->in), .rank = rank};
  for (int i = 0; i < rank; i++) {
    b.dims[i] = dims[i];
    b.from_strides[i] = from[i];
    b.to_strides[i] = to[i];
  }
  return b;
}

// Elements in this type can be moved to the output: as they are, or rounded as they are fetched.
static bool type_fits(assay_type_t from, assay_type_t to) {
  return from == to || (assay_type_is_kernel_float(from) && assay_type_is_kernel_float(to));
}

static bool same_dims(const assay_operand_t* a, const assay_operand_t* b, int except) {
  if (a->rank != b->rank) return false;
  for (int i = 0; i < a->rank; i++)
    if (i != except && a->dims[i] != b->dims[i]) return false;
  return true;
}

// The steps in memory of an operand, with its room.
static void operand_strides(const assay_operand_t* o, assay_layout_t layout, int64_t* strides) {
  int64_t dims[ASSAY_KERNEL_RANK];
  assay_operand_memory_dims(o, dims);
  cpu_layout_strides(o->rank, dims, layout, strides);
}

// ---- Transpose ------------------------------------------------------------------------------

// Where the elements lie one after the other on both sides nothing is moved.
static bool is_run(const cpu_box_t* box, int64_t size) {
  cpu_box_t b = *box;
  cpu_box_prepare(&b);
  return b.dims[b.rank - 1] == size && b.from_strides[b.rank - 1] == 1 &&
         b.to_strides[b.rank - 1] == 1;
}

static assay_status_t make_transpose(maker_t* k, bool* ok) {
  int64_t perm[ASSAY_KERNEL_RANK], from[ASSAY_KERNEL_RANK], to[ASSAY_KERNEL_RANK];
  int n;
  const int rank = k->x->rank;
  *ok = assay_known_list(k->l, k->node, "perm", SIZE_MAX, ASSAY_KERNEL_RANK, perm, &n) &&
        (n < 0 || n == rank) && k->y->rank == rank;
  for (int i = 0; *ok && i < rank; i++) {
    const int d = n < 0 ? rank - 1 - i : assay_known_axis(perm[i], rank);
    *ok = d >= 0 && k->x->dims[d] == k->y->dims[i];
    if (*ok) from[i] = k->x_strides[d];
  }
  if (!*ok) return NULL;
  assay_layout_t layout = ASSAY_LAYOUT_PLAIN;
  // What moves nothing in one size may do so in the next.
  for (int i = 0; i < 2 && k->x->size && !k->l->grows; i++, layout = ASSAY_LAYOUT_CHANNELS_LAST) {
    if (layout != ASSAY_LAYOUT_PLAIN && rank < 3) break;
    cpu_layout_strides(rank, k->y->dims, layout, to);
    const cpu_box_t box = box_of(k, rank, k->y->dims, from, to);
    if (!is_run(&box, k->x->size)) continue;
    k->m->base.out[0].layout = layout;
    k->m->base.in_place = box.from;
    k->m->base.run = NULL;
    return NULL;
  }
  k->m->base.out[0].layout = ASSAY_LAYOUT_PLAIN;
  cpu_layout_strides(rank, k->y->dims, ASSAY_LAYOUT_PLAIN, to);
  return add_box(k->m, box_of(k, rank, k->y->dims, from, to));
}

// ---- Concat and Split -----------------------------------------------------------------------

// Rows [row, end) of a sample (assay_by_rows_t); the inputs are read as a whole.
static void run_rows(const assay_kernel_t* k, const void* const* in, void* const* out,
                     void* scratch, int64_t sample, int64_t row, int64_t end) {
  const moves_t* m = (const moves_t*)k;
  const int64_t before = sample * k->by_rows.rows;
  (void)scratch;
  for (size_t i = 0; i < m->n; i++)
    cpu_box_copy_runs(&m->boxes[i], m->elem, in, &m->value, out, (before + row) * m->row,
                      (before + end) * m->row);
}

// Channels that are joined, channels last: each box has a run at each place.
static void describe_rows(maker_t* k, int axis) {
  const assay_operand_t* y = k->y;
  moves_t* m = k->m;
  if (k->layout != ASSAY_LAYOUT_CHANNELS_LAST || y->rank != 4 || axis != 1 || !y->size) return;
  const int64_t places = y->dims[0] * y->dims[2] * y->dims[3];
  for (size_t i = 0; i < m->n; i++)
    if (!cpu_box_is_runs(&m->boxes[i]) || m->boxes[i].dims[0] != places) return;
  m->row = y->dims[3];
  m->base.by_rows = (assay_by_rows_t){.samples = y->dims[0],
                                      .rows = y->dims[2],
                                      .row_bytes = (size_t)(m->row * y->dims[1]) * m->elem,
                                      .work = (double)(m->row * y->dims[1]) / 2,
                                      .run = run_rows};
}

static assay_status_t make_concat(maker_t* k, bool* ok) {
  // Concat-1 joins along axis 1 by default, later versions have no default.
  const int axis = assay_known_axis(assay_attr_i64(k->node, "axis", 1), k->x->rank);
  int64_t at = 0, strides[ASSAY_KERNEL_RANK];
  *ok = axis >= 0;
  for (size_t i = 0; *ok && i < k->node->n_inputs; i++) {
    const assay_operand_t* o = assay_sized_input(k->l, k->node->inputs[i]);
    *ok = o && type_fits(o->type, k->y->type) && same_dims(o, k->y, axis);
    if (!*ok) return NULL;
    const int index = (int)(o - k->l->in);
    k->m->base.in[index] = k->m->base.out[0];
    operand_strides(o, k->layout, strides);
    cpu_box_t b = box_of(k, o->rank, o->dims, strides, k->y_strides);
    b.from = index;
    if (!i && o->capacity.size && o->capacity.axis == axis && k->y->capacity.axis == axis &&
        o->capacity.size == k->y->capacity.size)
      k->m->base.extends = 1 + index;
    else if (index == k->m->base.extends - 1)
      k->m->base.extends = 0;  // it comes again
    b.to_at = at * k->y_strides[axis];
    at += o->dims[axis];
    ASSAY_TRY(add_box(k->m, b));
  }
  *ok = *ok && at == k->y->dims[axis];
  if (*ok) describe_rows(k, axis);
  return NULL;
}

static assay_status_t make_split(maker_t* k, bool* ok) {
  const int axis = assay_known_axis(assay_attr_i64(k->node, "axis", 0), k->x->rank);
  int64_t at = 0, strides[ASSAY_KERNEL_RANK];
  *ok = axis >= 0;
  for (size_t i = 0; *ok && i < k->l->n_out; i++) {
    const assay_operand_t* o = &k->l->out[i];
    *ok = o->value && o->type == k->y->type && same_dims(o, k->x, axis);
    if (!*ok) return NULL;
    k->m->base.out[i] = k->m->base.out[0];
    operand_strides(o, k->layout, strides);
    cpu_box_t b = box_of(k, o->rank, o->dims, k->x_strides, strides);
    b.to = (int)i;
    b.from_at = at * k->x_strides[axis];
    at += o->dims[axis];
    ASSAY_TRY(add_box(k->m, b));
  }
  *ok = *ok && at == k->x->dims[axis];
  return NULL;
}

// ---- Slice ----------------------------------------------------------------------------------

static int64_t clamped(int64_t i, int64_t size, int64_t low, int64_t high) {
  if (i < 0) i = i < -size ? -1 : i + size;
  return i < low ? low : i > high ? high : i;
}

// Source: ONNX Slice-13, which counts as numpy does.
static assay_status_t make_slice(maker_t* k, bool* ok) {
  enum { STARTS, ENDS, AXES, STEPS, N };
  int64_t list[N][ASSAY_KERNEL_RANK], from[ASSAY_KERNEL_RANK];
  int n[N];
  static const char* const names[] = {"starts", "ends", "axes", "steps"};
  const int rank = k->x->rank;
  cpu_box_t b;
  *ok = k->y->rank == rank;
  for (int i = 0; *ok && i < N; i++)
    *ok =
        assay_known_list(k->l, k->node, names[i], (size_t)i + 1, ASSAY_KERNEL_RANK, list[i], &n[i]);
  *ok = *ok && n[STARTS] >= 0 && n[ENDS] == n[STARTS] && (n[AXES] < 0 || n[AXES] == n[STARTS]) &&
        (n[STEPS] < 0 || n[STEPS] == n[STARTS]) && n[STARTS] <= rank;
  if (!*ok) return NULL;
  memcpy(from, k->x_strides, sizeof from);
  bool seen[ASSAY_KERNEL_RANK] = {false};
  int64_t at = 0, dims[ASSAY_KERNEL_RANK];
  memcpy(dims, k->x->dims, sizeof dims);
  for (int i = 0; i < n[STARTS]; i++) {
    const int d = assay_known_axis(n[AXES] < 0 ? i : list[AXES][i], rank);
    const int64_t step = n[STEPS] < 0 ? 1 : list[STEPS][i];
    *ok = d >= 0 && !seen[d] && step && step > -INT32_MAX && step < INT32_MAX;
    if (!*ok) return NULL;
    seen[d] = true;
    const int64_t size = k->x->dims[d], back = step < 0;
    const int64_t first = clamped(list[STARTS][i], size, 0, size - back);
    const int64_t end = clamped(list[ENDS][i], size, -back, size - back);
    const int64_t span = back ? first - end : end - first, stride = back ? -step : step;
    dims[d] = span > 0 ? (span + stride - 1) / stride : 0;
    at += first * k->x_strides[d];
    from[d] = dims[d] > 1 ? from[d] * step : 0;  // a step past the end cannot overflow
  }
  b = box_of(k, rank, dims, from, k->y_strides);
  b.from_at = at;
  for (int d = 0; d < rank; d++) *ok &= dims[d] == k->y->dims[d];
  return *ok ? add_box(k->m, b) : NULL;
}

// ---- Pad ------------------------------------------------------------------------------------

// Along one dimension the output is made of up to three parts: of the input, backwards or forwards,
// or standing still at one place, or of the value.
typedef struct part {
  int64_t to, n, from, step;
  bool value;
} part_t;

typedef enum pad_mode { CONSTANT, REFLECT, EDGE, WRAP } pad_mode_t;

static bool pad_parts(pad_mode_t mode, int64_t size, int64_t begin, int64_t end, part_t parts[3]) {
  const int64_t out = size + begin + end;
  const int64_t skip = begin < 0 ? -begin : 0, keep = size - skip - (end < 0 ? -end : 0);
  if (begin < -size || end < -size || out < 0 || keep < 0) return false;
  const int64_t low = begin < 0 ? 0 : begin, high = end < 0 ? 0 : end;
  parts[0] = (part_t){.n = low, .value = mode == CONSTANT};
  parts[1] = (part_t){.to = low, .n = keep, .from = skip, .step = 1};
  parts[2] = (part_t){.to = low + keep, .n = high, .value = mode == CONSTANT};
  if (mode == CONSTANT) return true;
  if ((low || high) && (!size || begin < 0 || end < 0)) return false;
  if (mode == EDGE) {
    parts[2].from = size - 1;
  } else if (mode == REFLECT) {
    parts[0].from = low;
    parts[2].from = size - 2;
    parts[0].step = parts[2].step = -1;
    return low < size && high < size;  // further on it is reflected again
  } else {
    parts[0].from = size - low;
    parts[0].step = parts[2].step = 1;
    return low <= size && high <= size;
  }
  return true;
}

static bool read_pads(const maker_t* k, int64_t* begin, int64_t* end, pad_mode_t* mode) {
  static const char* const modes[] = {"constant", "reflect", "edge", "wrap"};
  int64_t pads[2 * ASSAY_KERNEL_RANK], axes[ASSAY_KERNEL_RANK];
  int n, n_axes;
  const char* given = assay_attr_str(k->node, "mode", "constant");
  // Pad-1 named the attribute otherwise.
  const char* name = assay_node_attr(k->node, "paddings") ? "paddings" : "pads";
  int at = 0;
  while (at < 4 && strcmp(modes[at], given) != 0) at++;
  *mode = (pad_mode_t)at;
  if (at == 4 || !assay_known_list(k->l, k->node, name, 1, 2 * ASSAY_KERNEL_RANK, pads, &n) ||
      !assay_known_ints(k->l, k->node, 3, ASSAY_KERNEL_RANK, axes, &n_axes))
    return false;
  const int count = n_axes < 0 ? k->x->rank : n_axes;
  if (n != 2 * count) return false;
  bool seen[ASSAY_KERNEL_RANK] = {false};
  for (int i = 0; i < count; i++) {
    const int d = n_axes < 0 ? i : assay_known_axis(axes[i], k->x->rank);
    if (d < 0 || seen[d]) return false;
    seen[d] = true;
    begin[d] = pads[i];
    end[d] = pads[i + count];
  }
  return true;
}

// The element that Pad's constant mode fills in.
static bool read_value(maker_t* k) {
  const assay_node_t* n = k->node;
  const bool given = n->n_inputs > 2 && n->inputs[2];
  const assay_operand_t* o = given ? assay_sized_input(k->l, n->inputs[2]) : NULL;
  float value = (float)assay_attr_f64(n, "value", 0);
  if (given && (!o || !o->constant || o->size != 1)) return false;
  if (assay_type_is_kernel_float(k->y->type)) {
    float* x = NULL;
    if (given && !assay_type_is_kernel_float(o->type)) return false;
    assay_status_t st = given ? assay_operand_floats(o, &x) : NULL;
    const bool ok = !st;
    if (x) value = x[0];
    assay_free(x);
    assay_status_free(st);
    cpu_narrow(&value, 1, k->y->type, 0, &k->m->value);
    return ok;
  }
  int64_t whole = 0;
  int count;
  if (assay_node_attr(n, "value") || !assay_known_ints(k->l, n, 2, 1, &whole, &count)) return false;
  memcpy(&k->m->value, &whole, k->m->elem);  // its low bytes, on a little-endian machine
  return !assay_type_is_float(k->y->type);
}

static assay_status_t make_pad(maker_t* k, bool* ok) {
  int64_t begin[ASSAY_KERNEL_RANK] = {0}, end[ASSAY_KERNEL_RANK] = {0}, boxes = 1;
  part_t parts[ASSAY_KERNEL_RANK][3];
  pad_mode_t mode;
  const int rank = k->x->rank;
  *ok = k->y->rank == rank && read_pads(k, begin, end, &mode) && read_value(k);
  for (int d = 0; *ok && d < rank; d++) {
    *ok = pad_parts(mode, k->x->dims[d], begin[d], end[d], parts[d]) &&
          k->y->dims[d] == k->x->dims[d] + begin[d] + end[d];
    boxes *= begin[d] > 0 || end[d] > 0 ? 3 : 1;
  }
  *ok = *ok && boxes <= MAX_BOXES;
  if (!*ok) return NULL;
  int at[ASSAY_KERNEL_RANK] = {0};
  for (bool more = true; more;) {
    cpu_box_t b = box_of(k, rank, k->x->dims, k->x_strides, k->y_strides);
    for (int d = 0; d < rank; d++) {
      const part_t* p = &parts[d][at[d]];
      b.dims[d] = p->n;
      b.from_at += p->from * k->x_strides[d];
      b.from_strides[d] = p->step * k->x_strides[d];
      b.to_at += p->to * k->y_strides[d];
    }
    for (int d = 0; d < rank; d++)
      if (parts[d][at[d]].value) b.from = -1;
    if (b.from < 0) b.from_at = 0;
    ASSAY_TRY(add_box(k->m, b));
    int d = rank - 1;
    // Parts without elements make no boxes.
    for (; d >= 0; at[d--] = 0) {
      do at[d]++;
      while (at[d] < 3 && !parts[d][at[d]].n);
      if (at[d] < 3) break;
    }
    more = d >= 0;
  }
  return NULL;
}

// ---- Expand and Tile ------------------------------------------------------------------------

static assay_status_t make_expand(maker_t* k, bool* ok) {
  int64_t shape[ASSAY_KERNEL_RANK], from[ASSAY_KERNEL_RANK] = {0};
  int n;
  const int rank = k->y->rank, before = rank - k->x->rank;
  *ok = before >= 0 && assay_known_ints(k->l, k->node, 1, ASSAY_KERNEL_RANK, shape, &n) && n >= 0 &&
        n <= rank;
  for (int i = 0; *ok && i < rank; i++) {
    const int64_t x = i < before ? 1 : k->x->dims[i - before];
    const int64_t s = i < rank - n ? 1 : shape[i - (rank - n)];
    *ok = k->y->dims[i] == (x == 1 ? s : x) && (s == 1 || x == 1 || s == x);
    from[i] = x == 1 ? 0 : k->x_strides[i - before];
  }
  return *ok ? add_box(k->m, box_of(k, rank, k->y->dims, from, k->y_strides)) : NULL;
}

// Repeats and the input's own dimensions, one before the other.
static assay_status_t make_tile(maker_t* k, bool* ok) {
  int64_t repeats[ASSAY_KERNEL_RANK];
  int n;
  cpu_box_t b = {.from = (int)(k->x - k->l->in), .rank = 2 * k->x->rank};
  *ok = k->y->rank == k->x->rank &&
        assay_known_ints(k->l, k->node, 1, ASSAY_KERNEL_RANK, repeats, &n) && n == k->x->rank;
  for (int i = 0; *ok && i < k->x->rank; i++) {
    int64_t size;
    *ok =
        repeats[i] >= 0 && assay_mul_i64(repeats[i], k->x->dims[i], &size) && size == k->y->dims[i];
    b.dims[2 * i] = repeats[i];
    b.dims[2 * i + 1] = k->x->dims[i];
    b.from_strides[2 * i + 1] = k->x_strides[i];
    b.to_strides[2 * i] = k->x->dims[i] * k->y_strides[i];
    b.to_strides[2 * i + 1] = k->y_strides[i];
  }
  return *ok ? add_box(k->m, b) : NULL;
}

// ---- DepthToSpace and SpaceToDepth ----------------------------------------------------------

// Six dimensions: n, channels, rows, rows of a block, columns, columns of a block. `deep` has the
// blocks in its channels, `wide` in its places.
static assay_status_t make_blocks(maker_t* k, bool to_space, bool* ok) {
  enum { N, C, H, BH, W, BW, RANK };
  const int64_t b = assay_attr_i64(k->node, "blocksize", 0);
  const char* mode = assay_attr_str(k->node, "mode", "DCR");
  const bool crd = strcmp(mode, "CRD") == 0;
  const assay_operand_t *deep = to_space ? k->x : k->y, *wide = to_space ? k->y : k->x;
  const int64_t* ds = to_space ? k->x_strides : k->y_strides;
  const int64_t* ws = to_space ? k->y_strides : k->x_strides;
  *ok = k->x->rank == 4 && k->y->rank == 4 && b > 0 && b < INT16_MAX &&
        (crd || strcmp(mode, "DCR") == 0) && deep->dims[0] == wide->dims[0] &&
        deep->dims[1] == wide->dims[1] * b * b && wide->dims[2] == deep->dims[2] * b &&
        wide->dims[3] == deep->dims[3] * b;
  if (!*ok) return NULL;
  const int64_t channels = wide->dims[1], c = crd ? b * b : 1, block = crd ? 1 : channels;
  const int64_t dims[RANK] = {deep->dims[0], channels, deep->dims[2], b, deep->dims[3], b};
  const int64_t d[RANK] = {ds[0], c * ds[1], ds[2], block * b * ds[1], ds[3], block * ds[1]};
  const int64_t w[RANK] = {ws[0], ws[1], b * ws[2], ws[2], b * ws[3], ws[3]};
  return add_box(k->m, box_of(k, RANK, dims, to_space ? d : w, to_space ? w : d));
}

static assay_status_t make_depth_to_space(maker_t* k, bool* ok) { return make_blocks(k, true, ok); }
static assay_status_t make_space_to_depth(maker_t* k, bool* ok) {
  return make_blocks(k, false, ok);
}

// ---- which layers ------------------------------------------------------------------------------

static const struct {
  const char* op;
  assay_status_t (*make)(maker_t* k, bool* ok);
  bool close;  // its output has no room
} moves[] = {{"Transpose", make_transpose, true},
             {"Concat", make_concat, false},
             {"Split", make_split, false},
             {"Slice", make_slice, false},
             {"Pad", make_pad, false},
             {"Expand", make_expand, false},
             {"Tile", make_tile, true},
             {"DepthToSpace", make_depth_to_space, true},
             {"SpaceToDepth", make_space_to_depth, true}};

static bool is_movable(assay_type_t t) {
  const int bits = assay_type_bits(t);
  return t != ASSAY_TYPE_STRING && (bits == 8 || bits == 16 || bits == 32 || bits == 64);
}

// A zeroed kernel for a layer; *ok false: the layer is none.
static assay_status_t read(const assay_sized_layer_t* l, moves_t* m, bool* ok) {
  const assay_node_t* n = l->layer->nodes[0];
  const assay_operand_t* x = n->n_inputs ? assay_sized_input(l, n->inputs[0]) : NULL;
  size_t op = 0;
  while (op < sizeof moves / sizeof *moves && strcmp(moves[op].op, n->op_type) != 0) op++;
  if (op == sizeof moves / sizeof *moves || l->layer->n_nodes != 1 || *n->domain || !x ||
      !l->n_out || !l->out[0].value || !is_movable(l->out[0].type) ||
      !type_fits(x->type, l->out[0].type))
    return *ok = false, NULL;
  // Tile-1 repeats along one axis.
  if (strcmp(n->op_type, "Tile") == 0 && n->n_inputs != 2) return *ok = false, NULL;
  maker_t k = {.l = l, .node = n, .x = x, .y = &l->out[0], .m = m};
  k.layout = assay_operand_is_channels_last(x) && (x->rank == k.y->rank)
                 ? ASSAY_LAYOUT_CHANNELS_LAST
                 : ASSAY_LAYOUT_PLAIN;
  operand_strides(x, k.layout, k.x_strides);
  operand_strides(k.y, k.layout, k.y_strides);
  k.m->base = (assay_kernel_t){.in_place = -1, .run = run, .destroy = destroy};
  // Strides say where all elements are, but in a Tile and a Transpose, whose outputs lie close.
  k.m->base.rooms = k.layout == ASSAY_LAYOUT_PLAIN && !(k.y->capacity.size && moves[op].close);
  k.m->elem = (size_t)assay_type_bits(k.y->type) / 8;
  k.m->base.in[x - l->in] = k.m->base.out[0] = (assay_storage_t){k.y->type, k.layout};
  return moves[op].make(&k, ok);
}

static assay_status_t make(const assay_sized_layer_t* l, assay_kernel_t** out) {
  moves_t *m = NULL, made = {0};
  bool ok = false;
  assay_status_t st = read(l, &made, &ok);
  if (!st && ok) st = ASSAY_NEW(&m);
  if (st || !ok) return assay_free(made.boxes), st;
  *m = made;
  *out = &m->base;
  return NULL;
}

static assay_status_t resize(const assay_sized_layer_t* l, assay_kernel_t* base, bool* out_ok) {
  moves_t* m = (moves_t*)base;
  const assay_tactic_t* tactic = base->tactic;
  *m = (moves_t){.boxes = m->boxes, .cap = m->cap};
  assay_status_t st = read(l, m, out_ok);
  m->base.destroy = destroy;
  base->tactic = tactic;
  return st;
}

const assay_tactic_t cpu_tactic_data_movement = {
    .name = "data_movement",
    .source = "assay",
    .numerics = "data_movement",
    .make = make,
    .resize = resize,
    .layouts = ASSAY_LAYOUT_FOLLOWS,
    .rounding = {.compute = ASSAY_FORMAT_FP32,
                 .accumulator = ASSAY_FORMAT_FP32,
                 .function_ulps = 1},
};
