// The boxes of Slice and Pad.
#include <string.h>

#include "backends/constants.h"
#include "backends/layers/boxes_internal.h"
#include "backends/layers/slice.h"
#include "base/alloc.h"

enum { MAX_BOXES = 256 };

// ---- Slice ----------------------------------------------------------------------------------

assay_status_t boxes_of_slice(boxes_maker_t* k, bool* ok) {
  int64_t from[ASSAY_KERNEL_RANK];
  layer_slice_t slice;
  const int rank = k->x->rank;
  *ok = k->y->rank == rank && layer_slice_read(k->l, k->node, rank, k->x->dims, &slice);
  if (!*ok) return NULL;
  int64_t at = 0;
  for (int d = 0; d < rank; d++) {
    *ok &= slice.dims[d] == k->y->dims[d];
    at += slice.first[d] * k->x_strides[d];
    from[d] = slice.step[d] * k->x_strides[d];
  }
  box_t b = boxes_whole(k, rank, slice.dims, from, k->y_strides);
  b.from_at = at;
  return *ok ? boxes_add(k->m, b) : NULL;
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

static bool read_pads(const boxes_maker_t* k, int64_t* begin, int64_t* end, pad_mode_t* mode) {
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
static bool read_value(boxes_maker_t* k) {
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
    const double wide = (double)value;
    assay_pack(k->y->type, &wide, 1, &k->m->value, ASSAY_OVERFLOW_IEEE);
    return ok;
  }
  int64_t whole = 0;
  int count;
  if (assay_node_attr(n, "value") || !assay_known_ints(k->l, n, 2, 1, &whole, &count)) return false;
  memcpy(&k->m->value, &whole, k->m->elem);  // its low bytes, on a little-endian machine
  return !assay_type_is_float(k->y->type);
}

assay_status_t boxes_of_pad(boxes_maker_t* k, bool* ok) {
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
    box_t b = boxes_whole(k, rank, k->x->dims, k->x_strides, k->y_strides);
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
    ASSAY_TRY(boxes_add(k->m, b));
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
