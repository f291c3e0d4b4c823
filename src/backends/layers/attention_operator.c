// Attention as one operator: where its operands lie.
//
// Source: ONNX Attention 23 and later, without caches (passes/attention_caches.c); com.microsoft
// MultiHeadAttention of three separate inputs.
#include <math.h>
#include <string.h>

#include "backends/layers/attention.h"

// An operand [batch, heads, rows, channels], or [batch, rows, heads * channels].
static bool read_heads(const assay_operand_t* o, int index, int64_t heads, attention_view_t* at,
                       int64_t dims[4]) {
  if (!o || !assay_type_is_kernel_float(o->type) || (o->rank != 3 && o->rank != 4)) return false;
  const bool packed = o->rank == 3;
  if (packed && (heads <= 0 || o->dims[2] % heads)) return false;
  dims[0] = o->dims[0];
  dims[1] = packed ? heads : o->dims[1];
  dims[2] = packed ? o->dims[1] : o->dims[2];
  dims[3] = packed ? o->dims[2] / heads : o->dims[3];
  int64_t lies[ASSAY_KERNEL_RANK];  // with room, maybe
  assay_operand_memory_dims(o, lies);
  const int64_t row = lies[o->rank - 1], matrix = lies[o->rank - 2] * row;
  *at = (attention_view_t){.index = index,
                           .type = o->type,
                           .batch = {packed ? matrix : lies[1] * matrix, packed ? dims[3] : matrix},
                           .row = row,
                           .column = 1};
  return true;
}

// Heads of queries and of results, of which `group` neighbours share keys, as heads of keys and
// members of the group. Where their rows lie as one matrix, the group's queries are rows of one
// head, so that keys are packed once.
static void share_keys(attention_layer_t* k, int64_t group) {
  attention_view_t* const heads[] = {&k->q, &k->y};
  const bool single = k->q_len == 1;
  bool one = true;
  k->batch[1] /= group;
  k->batch[2] = group;
  k->n_batch = 3;
  for (int i = 0; i < 2; i++) {
    attention_view_t* v = heads[i];
    v->batch[2] = v->batch[1];
    v->batch[1] *= group;
    one = one && (single || v->batch[2] == k->q_len * v->row);
  }
  if (!one) return;
  for (int i = 0; single && i < 2; i++) heads[i]->row = heads[i]->batch[2];
  k->q_len *= group;
  k->heads /= group;
  k->n_batch = 2;
}

// The mask that is added, or that says which keys are seen: [batch, heads, queries, keys] or what
// is broadcast to that.
static bool read_mask(const assay_sized_layer_t* l, const assay_value_t* v, const int64_t to[4],
                      attention_layer_t* k) {
  const assay_operand_t* o = assay_sized_input(l, v);
  if (!o || o->rank > 4 || (!assay_type_is_kernel_float(o->type) && o->type != ASSAY_TYPE_BOOL))
    return false;
  const bool adds = o->type != ASSAY_TYPE_BOOL;
  attention_mask_t m = {.index = (int)(o - l->in),
                        .kind = adds ? ASSAY_ATTENTION_ADDED : ASSAY_ATTENTION_KEEPS,
                        .type = adds ? ASSAY_TYPE_FLOAT : ASSAY_TYPE_BOOL,
                        .fill = -INFINITY,
                        .rank = 3};
  int64_t strides[4], step = 1;
  for (int d = 3; d >= 0; d--) {
    const int from = d - (4 - o->rank);
    const int64_t size = from < 0 ? 1 : o->dims[from];
    if (size != 1 && size != to[d]) return false;
    strides[d] = size == 1 ? 0 : step;
    step *= size;
  }
  memcpy(m.dims, to, 3 * sizeof *m.dims);
  memcpy(m.strides, strides, 3 * sizeof *m.strides);
  m.key = strides[3];
  if (k->in[m.index].type) return false;  // one input in one form
  k->in[m.index] = (assay_storage_t){m.type, ASSAY_LAYOUT_PLAIN};
  k->masks[k->n_masks++] = m;
  return true;
}

static bool left_out(const assay_sized_layer_t* l, const assay_node_t* n, size_t first) {
  for (size_t i = first; i < n->n_inputs; i++)
    if (n->inputs[i]) return false;
  for (size_t i = 1; i < l->n_out; i++)
    if (l->out[i].value) return false;
  return true;
}

// Numbers of a node's attributes.
static bool read_attributes(const assay_node_t* n, bool onnx, attention_layer_t* k) {
  const double otherwise = 1 / sqrt((double)k->size);
  const double scale = assay_attr_f64(n, "scale", onnx ? otherwise : 0);
  const int64_t left = onnx ? assay_attr_i64(n, "left_window_size", -1) : -1;
  int64_t right = onnx ? assay_attr_i64(n, "right_window_size", -1) : -1;
  const bool causal = assay_attr_i64(n, onnx ? "is_causal" : "unidirectional", 0) != 0;
  const int64_t precision = assay_attr_i64(n, "softmax_precision", ASSAY_TYPE_FLOAT);
  k->scale = (float)(!onnx && scale == 0 ? otherwise : scale);
  k->cap = onnx ? (float)fmax(assay_attr_f64(n, "softcap", 0), 0) : 0;
  if (causal) right = 0;
  k->windowed = left >= 0 || right >= 0;
  k->left = left < 0 ? INT32_MAX : left;
  k->right = right < 0 ? INT32_MAX : right;
  k->zero_unseen = true;
  return left >= -1 && right >= -1 && left <= INT32_MAX && right <= INT32_MAX &&
         (!precision || precision == ASSAY_TYPE_FLOAT) && (onnx || !causal);
}

static bool read_operands(const assay_sized_layer_t* l, const assay_node_t* n, bool onnx,
                          attention_layer_t* k, int64_t* out_group) {
  int64_t q[4], kd[4], v[4], y[4];
  const assay_operand_t *o[3], *out = &l->out[0];
  for (size_t i = 0; i < 3; i++) {
    o[i] = assay_sized_input(l, n->inputs[i]);
    if (!o[i] || (!onnx && o[i]->rank != 3)) return false;
    k->in[o[i] - l->in] = (assay_storage_t){o[i]->type, ASSAY_LAYOUT_PLAIN};
  }
  const int64_t qh = assay_attr_i64(n, onnx ? "q_num_heads" : "num_heads", 0);
  const int64_t kvh = onnx ? assay_attr_i64(n, "kv_num_heads", 0) : qh;
  if (out->rank != o[0]->rank || !read_heads(o[0], (int)(o[0] - l->in), qh, &k->q, q) ||
      !read_heads(o[1], (int)(o[1] - l->in), kvh, &k->k, kd) ||
      !read_heads(o[2], (int)(o[2] - l->in), kvh, &k->v, v) || !read_heads(out, 0, q[1], &k->y, y))
    return false;
  k->out = (assay_storage_t){out->type, ASSAY_LAYOUT_PLAIN};
  k->n_batch = 2;
  memcpy(k->batch, q, 2 * sizeof *q);
  k->q_len = k->period = q[2];
  k->kv_len = kd[2];
  k->size = q[3];
  k->v_size = v[3];
  *out_group = kd[1] ? q[1] / kd[1] : 0;
  return k->kv_len && k->size && *out_group && q[1] % kd[1] == 0 && kd[0] == q[0] && v[0] == q[0] &&
         v[1] == kd[1] && v[2] == kd[2] && kd[3] == q[3] && y[0] == q[0] && y[1] == q[1] &&
         y[2] == q[2] && y[3] == v[3] && assay_mul_i64(q[0], q[1], &k->heads);
}

bool attention_read_operator(const assay_sized_layer_t* l, attention_layer_t* k) {
  const assay_node_t* n = l->layer->nodes[0];
  const bool onnx = !*n->domain && strcmp(n->op_type, "Attention") == 0;
  const bool ms =
      strcmp(n->domain, "com.microsoft") == 0 && strcmp(n->op_type, "MultiHeadAttention") == 0;
  int64_t group;
  if ((!onnx && !ms) || n->n_inputs < 3 || !left_out(l, n, onnx ? 4 : 3) ||
      !read_operands(l, n, onnx, k, &group) || !read_attributes(n, onnx, k))
    return false;
  const int64_t scores[4] = {k->batch[0], k->batch[1], k->q_len, k->kv_len};
  if (onnx && n->n_inputs > 3 && n->inputs[3] && !read_mask(l, n->inputs[3], scores, k))
    return false;
  if (group > 1) share_keys(k, group);
  // Q, K and V may lie with room; the mask and the result do not.
  k->rooms = !l->out[0].capacity.size;
  for (int i = 0; i < k->n_masks; i++) k->rooms &= !l->in[k->masks[i].index].capacity.size;
  return true;
}
