// Which recurrent layers run on a GPU: those whose weights are products' operands, in any of
// ONNX's forms.
#include <math.h>
#include <string.h>

#include "backends/cuda/recurrent/recurrent.h"

enum { X, W, R, B, LENGTHS, INITIAL_H, INITIAL_C, PEEPHOLES };

static bool find_cell(const assay_node_t* n, cuda_recurrent_t* k) {
  static const struct {
    const char* name;
    int gates;
  } cells[] = {{"RNN", 1}, {"GRU", 3}, {"LSTM", 4}};
  for (int i = 0; !*n->domain && i < 3; i++)
    if (strcmp(n->op_type, cells[i].name) == 0)
      return k->cell = (cuda_cell_t)i, k->gates = cells[i].gates, true;
  return false;
}

static bool read_attributes(const assay_node_t* n, cuda_recurrent_t* k) {
  recurrent_args_t* a = &k->args;
  const char* direction = assay_node_attr(n, "direction")
                              ? assay_attr_str(n, "direction", "forward")
                              : "forward";  // the default of RNN-1 and GRU-1 is misspelt
  a->directions = strcmp(direction, "bidirectional") == 0 ? 2 : 1;
  a->reverse = strcmp(direction, "reverse") == 0;
  if (a->directions == 1 && !a->reverse && strcmp(direction, "forward") != 0) return false;
  a->batch_first = assay_attr_i64(n, "layout", 0) != 0;
  k->reset_first = k->cell == CUDA_CELL_GRU && !assay_attr_i64(n, "linear_before_reset", 0);
  k->couples = k->cell == CUDA_CELL_LSTM && assay_attr_i64(n, "input_forget", 0) != 0;
  const double clip = assay_attr_f64(n, "clip", 0);
  a->clip = clip > 0 ? (float)clip : INFINITY;
  return (!n->schema || n->schema->since >= 7) && cuda_recurrent_read_functions(n, k);
}

// Input i of the node with these dimensions into *out, -1 where it is left out.
static bool operand(const assay_sized_layer_t* l, size_t i, int rank, const int64_t* dims,
                    int* out) {
  const assay_node_t* n = l->layer->nodes[0];
  *out = -1;
  if (i >= n->n_inputs || !n->inputs[i]) return true;
  const assay_operand_t* o = assay_sized_input(l, n->inputs[i]);
  if (!o || o->rank != rank) return false;
  for (int d = 0; d < rank; d++)
    if (o->dims[d] != dims[d]) return false;
  *out = (int)(o - l->in);
  return i == LENGTHS ? o->type == ASSAY_TYPE_INT32 : assay_type_is_kernel_float(o->type);
}

static bool read_sizes(const assay_sized_layer_t* l, cuda_recurrent_t* k) {
  const assay_node_t* n = l->layer->nodes[0];
  recurrent_args_t* a = &k->args;
  const assay_operand_t *x = assay_sized_input(l, n->inputs[X]),
                        *r = n->inputs[R] ? assay_sized_input(l, n->inputs[R]) : NULL;
  if (!x || !r || x->rank != 3 || r->rank != 3 || !x->size || !r->size) return false;
  a->length = x->dims[a->batch_first];
  a->batch = x->dims[!a->batch_first];
  a->hidden = r->dims[2];
  k->inputs = x->dims[2];
  return assay_attr_i64(n, "hidden_size", a->hidden) == a->hidden && a->length <= INT32_MAX;
}

static bool read_operands(const assay_sized_layer_t* l, cuda_recurrent_t* k) {
  const recurrent_args_t* a = &k->args;
  const bool lstm = k->cell == CUDA_CELL_LSTM;
  const int64_t d = a->directions, all = k->gates * a->hidden;
  const int64_t wide[3] = {d, all, k->inputs}, square[3] = {d, all, a->hidden},
                bias[2] = {d, 2 * all}, peepholes[2] = {d, 3 * a->hidden},
                x[3] = {a->batch_first ? a->batch : a->length,
                        a->batch_first ? a->length : a->batch, k->inputs},
                state[3] = {a->batch_first ? a->batch : d, a->batch_first ? d : a->batch,
                            a->hidden};
  k->initial_c = k->peepholes = -1;
  return operand(l, X, 3, x, &k->x) && operand(l, W, 3, wide, &k->w) &&
         operand(l, R, 3, square, &k->r) && operand(l, B, 2, bias, &k->bias) &&
         operand(l, LENGTHS, 1, &a->batch, &k->lengths) &&
         operand(l, INITIAL_H, 3, state, &k->initial_h) &&
         (!lstm || (operand(l, INITIAL_C, 3, state, &k->initial_c) &&
                    operand(l, PEEPHOLES, 2, peepholes, &k->peepholes))) &&
         k->w >= 0 && k->r >= 0;
}

// Sizes of scratch memory, and numbers of blocks, fit.
static bool sizes_fit(const cuda_recurrent_t* k) {
  const recurrent_args_t* a = &k->args;
  const int64_t max = INT64_C(1) << 40;
  int64_t n;
  return a->hidden <= INT32_MAX / 16 && assay_mul_i64(a->length, a->batch, &n) &&
         assay_mul_i64(n, a->directions, &n) && assay_mul_i64(n, k->gates * a->hidden, &n) &&
         n < max && assay_mul_i64(a->batch, a->directions, &n) && assay_mul_i64(n, a->hidden, &n) &&
         n < INT32_MAX;
}

static bool read_outputs(const assay_sized_layer_t* l, cuda_recurrent_t* k) {
  const recurrent_args_t* a = &k->args;
  const int64_t state = a->directions * a->batch * a->hidden;
  int* const made[] = {&k->y, &k->y_h, &k->y_c};
  for (size_t i = 0; i < sizeof made / sizeof *made; i++) {
    *made[i] = i < l->n_out && l->out[i].value ? (int)i : -1;
    if (*made[i] >= 0 && (!assay_type_is_kernel_float(l->out[i].type) ||
                          l->out[i].size != (i ? state : state * a->length)))
      return false;
  }
  return l->n_out <= sizeof made / sizeof *made && (k->y_c < 0 || k->cell == CUDA_CELL_LSTM);
}

// What is multiplied has one type, what is added is float32: that is exact.
static void set_forms(const assay_sized_layer_t* l, cuda_recurrent_t* k) {
  const assay_type_t type = l->in[k->x].type;
  const bool same = l->in[k->w].type == type && l->in[k->r].type == type;
  k->type = same ? type : ASSAY_TYPE_FLOAT;
  const int multiplied[] = {k->x, k->w, k->r},
            added[] = {k->bias, k->initial_h, k->initial_c, k->peepholes};
  for (size_t i = 0; i < sizeof multiplied / sizeof *multiplied; i++)
    k->base.in[multiplied[i]] = (assay_storage_t){k->type, ASSAY_LAYOUT_PLAIN};
  for (size_t i = 0; i < sizeof added / sizeof *added; i++)
    if (added[i] >= 0)
      k->base.in[added[i]] = (assay_storage_t){ASSAY_TYPE_FLOAT, ASSAY_LAYOUT_PLAIN};
  if (k->lengths >= 0)
    k->base.in[k->lengths] = (assay_storage_t){ASSAY_TYPE_INT32, ASSAY_LAYOUT_PLAIN};
  for (size_t i = 0; i < l->n_out; i++)
    if (l->out[i].value) k->base.out[i] = (assay_storage_t){l->out[i].type, ASSAY_LAYOUT_PLAIN};
}

// An operand that is read in two forms.
static bool clashes(const cuda_recurrent_t* k) {
  const int multiplied[] = {k->x, k->w, k->r},
            added[] = {k->bias, k->initial_h, k->initial_c, k->peepholes};
  for (size_t i = 0; i < sizeof multiplied / sizeof *multiplied; i++)
    for (size_t j = 0; j < sizeof added / sizeof *added; j++)
      if (multiplied[i] == added[j]) return true;
  return false;
}

bool cuda_recurrent_read(const assay_sized_layer_t* l, cuda_recurrent_t* k) {
  const assay_node_t* n = l->layer->nodes[0];
  if (l->layer->n_nodes != 1 || n->n_inputs < 3 || !n->inputs[X] || !find_cell(n, k) ||
      !read_attributes(n, k) || !read_sizes(l, k) || !read_operands(l, k) || !sizes_fit(k) ||
      !read_outputs(l, k) || clashes(k))
    return false;
  k->node = n;
  k->tf32 = l->layer->format == ASSAY_FORMAT_TF32;
  set_forms(l, k);
  return true;
}
