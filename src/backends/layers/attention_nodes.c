// Attention written out in nodes (passes/assemble/attention.h): where its operands lie.
#include <string.h>

#include "backends/constants.h"
#include "backends/layers/attention.h"
#include "base/alloc.h"

// ---- operands ----------------------------------------------------------------------------------

// A view of a value while nodes on its way change it.
typedef struct view {
  int rank;
  int64_t dims[ASSAY_KERNEL_RANK], strides[ASSAY_KERNEL_RANK], at;
} view_t;

static void lie_plain(view_t* v) {
  int64_t step = 1;
  for (int i = v->rank - 1; i >= 0; i--) {
    v->strides[i] = step;
    step *= v->dims[i];
  }
}

static bool transpose(const assay_node_t* n, view_t* v) {
  size_t count = 0;
  const int64_t* perm = assay_attr_ints(n, "perm", &count);
  const view_t from = *v;
  if (perm && count != (size_t)v->rank) return false;
  for (int i = 0; i < v->rank; i++) {
    const int d = perm ? assay_known_axis(perm[i], v->rank) : v->rank - 1 - i;
    if (d < 0) return false;
    v->dims[i] = from.dims[d];
    v->strides[i] = from.strides[d];
  }
  return true;
}

static bool squeeze(const assay_sized_layer_t* l, const assay_node_t* n, view_t* v) {
  int64_t axes[ASSAY_KERNEL_RANK];
  int count, rank = 0;
  bool gone[ASSAY_KERNEL_RANK] = {false};
  if (!assay_known_list(l, n, "axes", 1, ASSAY_KERNEL_RANK, axes, &count)) return false;
  for (int i = 0; i < count; i++) {
    const int d = assay_known_axis(axes[i], v->rank);
    if (d < 0 || v->dims[d] != 1) return false;
    gone[d] = true;
  }
  for (int i = 0; i < v->rank; i++) {
    if (count < 0 ? v->dims[i] == 1 : gone[i]) continue;
    v->dims[rank] = v->dims[i];
    v->strides[rank++] = v->strides[i];
  }
  v->rank = rank;
  return true;
}

static bool unsqueeze(const assay_sized_layer_t* l, const assay_node_t* n, view_t* v) {
  int64_t axes[ASSAY_KERNEL_RANK];
  int count, at = 0;
  bool made[ASSAY_KERNEL_RANK] = {false};
  if (!assay_known_list(l, n, "axes", 1, ASSAY_KERNEL_RANK, axes, &count) || count < 0 ||
      v->rank + count > ASSAY_KERNEL_RANK)
    return false;
  const view_t from = *v;
  v->rank += count;
  for (int i = 0; i < count; i++) {
    const int d = assay_known_axis(axes[i], v->rank);
    if (d < 0 || made[d]) return false;
    made[d] = true;
  }
  for (int i = 0; i < v->rank; i++) {
    v->dims[i] = made[i] ? 1 : from.dims[at];
    v->strides[i] = made[i] ? 0 : from.strides[at];
    at += !made[i];
  }
  return true;
}

// Source: ONNX Split 1 to 18: sizes, or equal parts of which only the last one may be smaller.
static bool split(const assay_sized_layer_t* l, const assay_node_t* n, int output, view_t* v) {
  enum { MAX_PARTS = 64 };
  int64_t sizes[MAX_PARTS], at = 0;
  int count;
  const int axis = assay_known_axis(assay_attr_i64(n, "axis", 0), v->rank);
  if (axis < 0 || n->n_outputs > MAX_PARTS ||
      !assay_known_list(l, n, "split", 1, MAX_PARTS, sizes, &count))
    return false;
  const int64_t parts = (int64_t)n->n_outputs, all = v->dims[axis];
  if (count >= 0 && count != parts) return false;
  for (int64_t i = 0; count < 0 && i < parts; i++) {
    const int64_t size = (all + parts - 1) / parts, left = all - i * size;
    sizes[i] = left < 0 ? 0 : left < size ? left : size;
  }
  for (int i = 0; i < output; i++) at += sizes[i];
  if (sizes[output] < 1 || at < 0 || at + sizes[output] > all) return false;
  v->at += at * v->strides[axis];
  v->dims[axis] = sizes[output];
  return true;
}

// Of a value as it was made, or of a last dimension into two.
static bool reshape(const assay_sized_layer_t* l, const assay_node_t* n, bool plain, view_t* v) {
  view_t to = {.at = v->at};
  int64_t size = 1, known = 1;
  int open = -1;
  const bool zero_is_size = assay_attr_i64(n, "allowzero", 0) != 0;
  for (int i = 0; i < v->rank; i++) size *= v->dims[i];
  if (!assay_known_list(l, n, "shape", 1, ASSAY_KERNEL_RANK, to.dims, &to.rank) || to.rank < 0)
    return false;
  for (int i = 0; i < to.rank; i++) {
    if (to.dims[i] == 0 && !zero_is_size) to.dims[i] = i < v->rank ? v->dims[i] : 0;
    if (to.dims[i] == -1 && open < 0) {
      open = i;
    } else if (to.dims[i] < 1 || !assay_mul_i64(known, to.dims[i], &known)) {
      return false;
    }
  }
  if (open >= 0) {
    if (size % known) return false;
    to.dims[open] = size / known;
    known = size;
  }
  if (known != size) return false;
  lie_plain(&to);
  if (!plain) {
    const int last = v->rank - 1;
    if (to.rank != v->rank + 1 || memcmp(to.dims, v->dims, (size_t)last * sizeof *to.dims) != 0)
      return false;
    memcpy(to.strides, v->strides, (size_t)last * sizeof *to.strides);
    to.strides[last] = v->strides[last] * to.dims[last + 1];
    to.strides[last + 1] = v->strides[last];
  }
  *v = to;
  return true;
}

// plain: the value lies as its dimensions say.
static bool walk(const assay_sized_layer_t* l, const assay_attention_operand_t* o, bool plain,
                 view_t* v) {
  for (int i = 0; i < o->n_way; i++) {
    const assay_node_t* n = o->way[i];
    if (!(strcmp(n->op_type, "Transpose") == 0   ? transpose(n, v)
          : strcmp(n->op_type, "Squeeze") == 0   ? squeeze(l, n, v)
          : strcmp(n->op_type, "Unsqueeze") == 0 ? unsqueeze(l, n, v)
          : strcmp(n->op_type, "Split") == 0     ? split(l, n, o->outputs[i], v)
                                                 : reshape(l, n, plain && i == 0, v)))
      return false;
  }
  return true;
}

static bool read_view(const assay_sized_layer_t* l, attention_layer_t* k,
                      const assay_attention_operand_t* from, int rank, view_t* v,
                      attention_view_t* out) {
  const assay_operand_t* o = assay_sized_input(l, from->value);
  if (!o || !assay_type_is_kernel_float(o->type) || !o->size) return false;
  *v = (view_t){.rank = o->rank};
  assay_operand_memory_dims(o, v->dims);
  lie_plain(v);
  memcpy(v->dims, o->dims, sizeof v->dims);
  if (!walk(l, from, !o->capacity.size, v) || v->rank != rank) return false;
  *out = (attention_view_t){.index = (int)(o - l->in),
                            .type = o->type,
                            .at = v->at,
                            .row = v->strides[rank - 2],
                            .column = v->strides[rank - 1]};
  k->in[out->index] = (assay_storage_t){o->type, ASSAY_LAYOUT_PLAIN};
  return true;
}

// Distances along the batch, in which a dimension of 1 stands still.
static bool spread(const attention_layer_t* k, const view_t* v, attention_view_t* out) {
  for (int i = 0; i < k->n_batch; i++) {
    if (v->dims[i] != 1 && v->dims[i] != k->batch[i]) return false;
    out->batch[i] = v->dims[i] == 1 ? 0 : v->strides[i];
  }
  return true;
}

static bool read_output(const assay_sized_layer_t* l, const assay_attention_nodes_t* a,
                        attention_layer_t* k) {
  const assay_operand_t* y = &l->out[0];
  view_t plain = {.rank = y->rank}, v = {.rank = a->rank};
  if (y->rank != a->rank || !assay_type_is_kernel_float(y->type)) return false;
  memcpy(plain.dims, y->dims, sizeof plain.dims);
  lie_plain(&plain);
  for (int i = 0; i < a->rank; i++) {
    v.dims[i] = plain.dims[a->y_axes[i]];
    v.strides[i] = plain.strides[a->y_axes[i]];
  }
  for (int i = 0; i < k->n_batch; i++)
    if (v.dims[i] != k->batch[i]) return false;
  k->y = (attention_view_t){
      .type = y->type, .row = v.strides[a->rank - 2], .column = v.strides[a->rank - 1]};
  k->out = (assay_storage_t){y->type, ASSAY_LAYOUT_PLAIN};
  return v.dims[a->rank - 2] == k->q_len && v.dims[a->rank - 1] == k->v_size &&
         spread(k, &v, &k->y);
}

static bool read_operands(const assay_sized_layer_t* l, const assay_attention_nodes_t* a,
                          attention_layer_t* k) {
  view_t q, keys, v;
  const int rank = a->rank;
  if (!read_view(l, k, &a->q, rank, &q, &k->q) || !read_view(l, k, &a->k, rank, &keys, &k->k) ||
      !read_view(l, k, &a->v, rank, &v, &k->v))
    return false;
  // The first product reads keys the other way round.
  const int64_t t = k->k.row;
  k->k.row = k->k.column;
  k->k.column = t;
  k->q_len = q.dims[rank - 2];
  k->size = q.dims[rank - 1];
  k->kv_len = keys.dims[rank - 1];
  k->v_size = v.dims[rank - 1];
  k->n_batch = rank - 2;
  k->heads = 1;
  for (int i = 0; i < k->n_batch; i++) {
    k->batch[i] = q.dims[i] > keys.dims[i] ? q.dims[i] : keys.dims[i];
    // Scores are made before values are read: a batch of values only is none of theirs.
    if (v.dims[i] > k->batch[i] || !assay_mul_i64(k->heads, k->batch[i], &k->heads)) return false;
  }
  return keys.dims[rank - 2] == k->size && v.dims[rank - 2] == k->kv_len && spread(k, &q, &k->q) &&
         spread(k, &keys, &k->k) && spread(k, &v, &k->v) && read_output(l, a, k);
}

// ---- masks -------------------------------------------------------------------------------------

// The dimensions of the hidden value that a mask makes: the scores' own, or what a Reshape before
// it has made of them.
static bool scores_dims(const assay_sized_layer_t* l, const attention_layer_t* k,
                        const assay_value_t* v, view_t* out) {
  const assay_node_t* n = v->producer;
  while (n && strcmp(n->op_type, "MatMul") != 0 && strcmp(n->op_type, "Reshape") != 0) {
    // The operand that is hidden in the layer is the one that leads back.
    const assay_node_t* back = NULL;
    for (size_t i = 0; i < n->n_inputs && !back; i++)
      if (n->inputs[i] && l->layers->hidden_value[n->inputs[i]->id]) back = n->inputs[i]->producer;
    n = back;
  }
  if (!n) return false;
  *out = (view_t){.rank = k->n_batch + 2};
  memcpy(out->dims, k->batch, (size_t)k->n_batch * sizeof *out->dims);
  out->dims[k->n_batch] = k->q_len;
  out->dims[k->n_batch + 1] = k->kv_len;
  if (strcmp(n->op_type, "MatMul") == 0) return true;
  view_t before;
  if (!n->inputs[0] || !scores_dims(l, k, n->inputs[0], &before) || !reshape(l, n, true, &before))
    return false;
  *out = before;
  return out->rank >= 1 && out->dims[out->rank - 1] == k->kv_len;
}

static bool read_mask(const assay_sized_layer_t* l, attention_layer_t* k,
                      const assay_attention_mask_t* m, attention_mask_t* out) {
  const assay_operand_t* o = assay_sized_input(l, m->value);
  view_t scores, mask = {0};
  if (!o || !scores_dims(l, k, m->scores, &scores) || o->rank > scores.rank) return false;
  const bool adds = m->kind == ASSAY_ATTENTION_ADDED;
  if (adds ? !assay_type_is_kernel_float(o->type) : o->type != ASSAY_TYPE_BOOL) return false;
  *out = (attention_mask_t){.index = (int)(o - l->in),
                            .kind = m->kind,
                            .type = adds ? ASSAY_TYPE_FLOAT : ASSAY_TYPE_BOOL,
                            .rank = scores.rank - 1};
  mask.rank = o->rank;
  memcpy(mask.dims, o->dims, sizeof mask.dims);
  lie_plain(&mask);
  memcpy(out->dims, scores.dims, sizeof out->dims);
  for (int i = 0; i < scores.rank; i++) {
    const int from = i - (scores.rank - mask.rank);
    const bool still = from < 0 || mask.dims[from] == 1;
    if (!still && mask.dims[from] != scores.dims[i]) return false;
    const int64_t stride = still ? 0 : mask.strides[from];
    if (i == out->rank)
      out->key = stride;
    else
      out->strides[i] = stride;
  }
  // One input in one form.
  const assay_type_t read = k->in[out->index].type;
  k->in[out->index] = (assay_storage_t){out->type, ASSAY_LAYOUT_PLAIN};
  return !read || read == out->type;
}

// ---- numbers -----------------------------------------------------------------------------------

// A constant of one element as the layer takes it.
static assay_status_t number(const assay_sized_layer_t* l, const assay_value_t* v, float* out,
                             bool* ok) {
  const assay_operand_t* o = assay_sized_input(l, v);
  float* x = NULL;
  *ok = *ok && o && o->constant && o->size == 1 && assay_type_is_kernel_float(o->type);
  if (!*ok) return NULL;
  ASSAY_TRY(assay_operand_floats(o, &x));
  *out = x[0];
  assay_free(x);
  return NULL;
}

static assay_status_t read_numbers(const assay_sized_layer_t* l, const assay_attention_nodes_t* a,
                                   attention_layer_t* k, bool* ok) {
  double scale = 1;
  for (int i = 0; i < a->n_factors; i++) {
    float x = 1;
    ASSAY_TRY(number(l, a->factors[i].value, &x, ok));
    scale *= a->factors[i].divides ? 1 / (double)x : (double)x;
  }
  k->scale = (float)scale;
  for (int i = 0; i < a->n_masks; i++)
    if (a->masks[i].fill_value) ASSAY_TRY(number(l, a->masks[i].fill_value, &k->masks[i].fill, ok));
  return NULL;
}

assay_status_t attention_read_nodes(const assay_sized_layer_t* l, attention_layer_t* k, bool* ok) {
  assay_attention_nodes_t a;
  *ok = l->layer->n_nodes >= 3 && l->n_out == 1 &&
        assay_attention_read(l->layer->nodes, l->layer->n_nodes, &a) && read_operands(l, &a, k);
  for (int i = 0; *ok && i < a.n_masks; i++) *ok = read_mask(l, k, &a.masks[i], &k->masks[i]);
  if (!*ok) return NULL;
  // Q, K and V may lie with room; masks and the result do not.
  k->rooms = !l->out[0].capacity.size;
  for (int i = 0; i < a.n_masks; i++) k->rooms &= !l->in[k->masks[i].index].capacity.size;
  k->n_masks = a.n_masks;
  return read_numbers(l, &a, k, ok);
}
