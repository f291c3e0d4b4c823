// Which boxes layers are made of: elements are bytes here, layouts are strides.
#include <string.h>

#include "backends/constants.h"
#include "backends/layers/boxes_internal.h"

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
  box_layout_strides(o->rank, dims, layout, strides);
}

// ---- Transpose ------------------------------------------------------------------------------

// Where the elements lie one after the other on both sides nothing is moved.
static bool is_run(const box_t* box, int64_t size) {
  box_t b = *box;
  box_prepare(&b);
  return b.dims[b.rank - 1] == size && b.from_strides[b.rank - 1] == 1 &&
         b.to_strides[b.rank - 1] == 1;
}

static assay_status_t make_transpose(boxes_maker_t* k, bool* ok) {
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
    box_layout_strides(rank, k->y->dims, layout, to);
    const box_t box = boxes_whole(k, rank, k->y->dims, from, to);
    if (!is_run(&box, k->x->size)) continue;
    k->kernel->out[0].layout = layout;
    k->kernel->in_place = box.from;
    k->m->view = true;
    return NULL;
  }
  k->kernel->out[0].layout = ASSAY_LAYOUT_PLAIN;
  box_layout_strides(rank, k->y->dims, ASSAY_LAYOUT_PLAIN, to);
  return boxes_add(k->m, boxes_whole(k, rank, k->y->dims, from, to));
}

// ---- Concat and Split -----------------------------------------------------------------------

static assay_status_t make_concat(boxes_maker_t* k, bool* ok) {
  // Concat-1 joins along axis 1 by default, later versions have no default.
  const int axis = assay_known_axis(assay_attr_i64(k->node, "axis", 1), k->x->rank);
  int64_t at = 0, strides[ASSAY_KERNEL_RANK];
  *ok = axis >= 0;
  for (size_t i = 0; *ok && i < k->node->n_inputs; i++) {
    const assay_operand_t* o = assay_sized_input(k->l, k->node->inputs[i]);
    *ok = o && type_fits(o->type, k->y->type) && same_dims(o, k->y, axis);
    if (!*ok) return NULL;
    const int index = (int)(o - k->l->in);
    k->kernel->in[index] = k->kernel->out[0];
    operand_strides(o, k->layout, strides);
    box_t b = boxes_whole(k, o->rank, o->dims, strides, k->y_strides);
    b.from = index;
    if (!i && o->capacity.size && o->capacity.axis == axis && k->y->capacity.axis == axis &&
        o->capacity.size == k->y->capacity.size)
      k->kernel->extends = 1 + index;
    else if (index == k->kernel->extends - 1)
      k->kernel->extends = 0;  // it comes again
    b.to_at = at * k->y_strides[axis];
    at += o->dims[axis];
    ASSAY_TRY(boxes_add(k->m, b));
  }
  *ok = *ok && at == k->y->dims[axis];
  k->m->joined_axis = axis;
  return NULL;
}

static assay_status_t make_split(boxes_maker_t* k, bool* ok) {
  const int axis = assay_known_axis(assay_attr_i64(k->node, "axis", 0), k->x->rank);
  int64_t at = 0, strides[ASSAY_KERNEL_RANK];
  *ok = axis >= 0;
  for (size_t i = 0; *ok && i < k->l->n_out; i++) {
    const assay_operand_t* o = &k->l->out[i];
    *ok = o->value && o->type == k->y->type && same_dims(o, k->x, axis);
    if (!*ok) return NULL;
    k->kernel->out[i] = k->kernel->out[0];
    operand_strides(o, k->layout, strides);
    box_t b = boxes_whole(k, o->rank, o->dims, k->x_strides, strides);
    b.to = (int)i;
    b.from_at = at * k->x_strides[axis];
    at += o->dims[axis];
    ASSAY_TRY(boxes_add(k->m, b));
  }
  *ok = *ok && at == k->x->dims[axis];
  return NULL;
}

// ---- Expand and Tile ------------------------------------------------------------------------

static assay_status_t make_expand(boxes_maker_t* k, bool* ok) {
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
  return *ok ? boxes_add(k->m, boxes_whole(k, rank, k->y->dims, from, k->y_strides)) : NULL;
}

// Repeats and the input's own dimensions, one before the other.
static assay_status_t make_tile(boxes_maker_t* k, bool* ok) {
  int64_t repeats[ASSAY_KERNEL_RANK];
  int n;
  box_t b = {.from = (int)(k->x - k->l->in), .rank = 2 * k->x->rank};
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
  return *ok ? boxes_add(k->m, b) : NULL;
}

// ---- DepthToSpace and SpaceToDepth ----------------------------------------------------------

// Six dimensions: n, channels, rows, rows of a block, columns, columns of a block. `deep` has the
// blocks in its channels, `wide` in its places.
static assay_status_t make_blocks(boxes_maker_t* k, bool to_space, bool* ok) {
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
  return boxes_add(k->m, boxes_whole(k, RANK, dims, to_space ? d : w, to_space ? w : d));
}

static assay_status_t make_depth_to_space(boxes_maker_t* k, bool* ok) {
  return make_blocks(k, true, ok);
}
static assay_status_t make_space_to_depth(boxes_maker_t* k, bool* ok) {
  return make_blocks(k, false, ok);
}

// ---- which layers ------------------------------------------------------------------------------

static const struct {
  const char* op;
  assay_status_t (*make)(boxes_maker_t* k, bool* ok);
  bool close;  // its output has no room
} moves[] = {{"Transpose", make_transpose, true},
             {"Concat", make_concat, false},
             {"Split", make_split, false},
             {"Slice", boxes_of_slice, false},
             {"Pad", boxes_of_pad, false},
             {"Expand", make_expand, false},
             {"Tile", make_tile, true},
             {"DepthToSpace", make_depth_to_space, true},
             {"SpaceToDepth", make_space_to_depth, true}};

static bool is_movable(assay_type_t t) {
  const int bits = assay_type_bits(t);
  return t != ASSAY_TYPE_STRING && (bits == 8 || bits == 16 || bits == 32 || bits == 64);
}

assay_status_t layer_boxes_read(const assay_sized_layer_t* l, assay_kernel_t* kernel,
                                layer_boxes_t* m, bool* ok) {
  const assay_node_t* n = l->layer->nodes[0];
  const assay_operand_t* x = n->n_inputs ? assay_sized_input(l, n->inputs[0]) : NULL;
  size_t op = 0;
  *m = (layer_boxes_t){.boxes = m->boxes, .cap = m->cap, .joined_axis = -1};
  while (op < sizeof moves / sizeof *moves && strcmp(moves[op].op, n->op_type) != 0) op++;
  if (op == sizeof moves / sizeof *moves || *n->domain || !x || !l->n_out || !l->out[0].value ||
      !is_movable(l->out[0].type) || !type_fits(x->type, l->out[0].type))
    return *ok = false, NULL;
  // Tile-1 repeats along one axis.
  if (strcmp(n->op_type, "Tile") == 0 && n->n_inputs != 2) return *ok = false, NULL;
  boxes_maker_t k = {.l = l, .node = n, .x = x, .y = &l->out[0], .m = m, .kernel = kernel};
  k.layout = assay_operand_is_channels_last(x) && (x->rank == k.y->rank)
                 ? ASSAY_LAYOUT_CHANNELS_LAST
                 : ASSAY_LAYOUT_PLAIN;
  operand_strides(x, k.layout, k.x_strides);
  operand_strides(k.y, k.layout, k.y_strides);
  *kernel = (assay_kernel_t){.in_place = -1};
  // Strides say where all elements are, but in a Tile and a Transpose, whose outputs lie close.
  kernel->rooms = k.layout == ASSAY_LAYOUT_PLAIN && !(k.y->capacity.size && moves[op].close);
  m->elem = (size_t)assay_type_bits(k.y->type) / 8;
  kernel->in[x - l->in] = kernel->out[0] = (assay_storage_t){k.y->type, k.layout};
  return l->layer->n_nodes > 1 ? boxes_of_joined(&k, ok) : moves[op].make(&k, ok);
}
