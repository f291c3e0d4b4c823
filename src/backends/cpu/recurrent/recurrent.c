// LSTM, GRU and RNN with their default functions: which layers, and how weights are packed.
#include "backends/cpu/recurrent/recurrent.h"

#include <string.h>

#include "backends/cpu/gemm/panels.h"
#include "backends/cpu/pointwise/convert.h"
#include "base/alloc.h"

enum { X, W, R, B, LENGTHS, INITIAL_H, INITIAL_C, PEEPHOLES };

static void destroy(assay_kernel_t* base) {
  recurrent_t* k = (recurrent_t*)base;
  void* const all[] = {k->w, k->r, k->bias, k->reset, k->state_bias};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) assay_free(all[i]);
  assay_free(k);
}

static int gates_of(recurrent_cell_t cell) {
  return cell == RECURRENT_RNN ? 1 : cell == RECURRENT_GRU ? 3 : 4;
}

// ---- what is taken -----------------------------------------------------------------------------

static bool has_defaults(const assay_node_t* n, recurrent_cell_t cell, int directions) {
  static const char* const defaults[3][3] = {
      {"Tanh"}, {"Sigmoid", "Tanh"}, {"Sigmoid", "Tanh", "Tanh"}};
  size_t given = 0;
  const assay_string_t* names = assay_attr_strings(n, "activations", &given);
  const size_t each = (size_t)cell + 1;
  if (given && given != each * (size_t)directions) return false;
  for (size_t i = 0; i < given; i++) {
    const char* name = defaults[cell][i % each];
    if (names[i].len != strlen(name) || strncasecmp(names[i].text, name, names[i].len) != 0)
      return false;
  }
  return true;
}

static bool read_attributes(const assay_node_t* n, recurrent_t* k) {
  const char* direction = assay_node_attr(n, "direction")
                              ? assay_attr_str(n, "direction", "forward")
                              : "forward";  // the default of RNN-1 and GRU-1 is misspelt
  k->directions = strcmp(direction, "bidirectional") == 0 ? 2 : 1;
  k->reverse = strcmp(direction, "reverse") == 0;
  if (k->directions == 1 && !k->reverse && strcmp(direction, "forward") != 0) return false;
  k->batch_first = assay_attr_i64(n, "layout", 0) != 0;
  k->reset_first = k->cell == RECURRENT_GRU && !assay_attr_i64(n, "linear_before_reset", 0);
  return assay_attr_f64(n, "clip", 0) <= 0 && !assay_attr_i64(n, "input_forget", 0) &&
         (!n->schema || n->schema->since >= 7) && has_defaults(n, k->cell, k->directions);
}

static bool has_dims(const assay_operand_t* o, int rank, const int64_t* dims) {
  if (o->rank != rank) return false;
  for (int i = 0; i < rank; i++)
    if (o->dims[i] != dims[i]) return false;
  return true;
}

// Input i of the node in *out, NULL where it is left out; false: it cannot be read.
static bool operand(const assay_sized_layer_t* l, size_t i, int rank, const int64_t* dims,
                    bool constant, const assay_operand_t** out) {
  const assay_node_t* n = l->layer->nodes[0];
  *out = NULL;
  if (i >= n->n_inputs || !n->inputs[i]) return true;
  const assay_operand_t* o = assay_sized_input(l, n->inputs[i]);
  if (!o || !has_dims(o, rank, dims) || (constant && !o->constant)) return false;
  if (i == LENGTHS ? o->type != ASSAY_TYPE_INT32 : !assay_type_is_kernel_float(o->type))
    return false;
  *out = o;
  return true;
}

typedef struct operands {
  const assay_operand_t *x, *w, *r, *b, *lengths, *h, *c;
} operands_t;

static bool read_operands(const assay_sized_layer_t* l, recurrent_t* k, operands_t* o) {
  const assay_node_t* n = l->layer->nodes[0];
  o->x = assay_sized_input(l, n->inputs[X]);
  const assay_operand_t* r = n->n_inputs > R ? assay_sized_input(l, n->inputs[R]) : NULL;
  if (!o->x || !r || o->x->rank != 3 || r->rank != 3 || !assay_type_is_kernel_float(o->x->type))
    return false;
  k->length = o->x->dims[k->batch_first];
  k->batch = o->x->dims[!k->batch_first];
  k->inputs = o->x->dims[2];
  k->hidden = r->dims[2];
  if (!o->x->size || !k->hidden || assay_attr_i64(n, "hidden_size", k->hidden) != k->hidden)
    return false;
  const int64_t all = gates_of(k->cell) * k->hidden, d = k->directions;
  const int64_t wide[3] = {d, all, k->inputs}, square[3] = {d, all, k->hidden},
                bias[2] = {d, 2 * all}, batch[1] = {k->batch};
  const int64_t state[3] = {k->batch_first ? k->batch : d, k->batch_first ? d : k->batch,
                            k->hidden};
  return operand(l, W, 3, wide, true, &o->w) && operand(l, R, 3, square, true, &o->r) && o->w &&
         o->r && operand(l, B, 2, bias, true, &o->b) &&
         operand(l, LENGTHS, 1, batch, false, &o->lengths) &&
         operand(l, INITIAL_H, 3, state, false, &o->h) &&
         (k->cell != RECURRENT_LSTM || (operand(l, INITIAL_C, 3, state, false, &o->c) &&
                                        (n->n_inputs <= PEEPHOLES || !n->inputs[PEEPHOLES])));
}

// ---- packing -----------------------------------------------------------------------------------

// Gates [first, end) of a block lie in columns of its panels, `units` for each. from: [directions,
// gates * hidden, columns]; what is left over stays zeros.
static void pack(const recurrent_t* k, const float* from, int64_t columns, int64_t rows, int first,
                 int end, uint32_t* to) {
  const int gates = gates_of(k->cell), panels = first ? 1 : 2;
  for (int64_t d = 0; d < k->directions; d++)
    for (int g = first; g < end; g++)
      for (int64_t u = 0; u < k->hidden; u++) {
        const float* row = from + ((d * gates + g) * k->hidden + u) * columns;
        const int64_t column = (g - first) * k->units + u % k->units;
        const int64_t panel = (d * k->blocks + u / k->units) * panels + column / CPU_PANEL;
        uint32_t* at = to + panel * rows * CPU_PANEL + column % CPU_PANEL;
        for (int64_t i = 0; i < columns; i++) cpu_panel_put(at, i, row[i], k->bf16);
      }
}

static assay_status_t new_panels(const recurrent_t* k, int64_t rows, int panels, uint32_t** out) {
  return assay_new_array((size_t)(k->directions * k->blocks * rows * panels * CPU_PANEL),
                         sizeof **out, out);
}

// Both biases of a gate in one; but the hidden gate's of a GRU that resets after the product.
static assay_status_t pack_bias(recurrent_t* k, const assay_operand_t* o) {
  const int gates = gates_of(k->cell);
  const int64_t all = gates * k->hidden;
  float *b = NULL, *sums = NULL;
  ASSAY_TRY(
      assay_new_array((size_t)(k->directions * k->hidden), sizeof *k->state_bias, &k->state_bias));
  ASSAY_TRY(assay_new_array((size_t)(k->directions * k->blocks * RECURRENT_BLOCK), sizeof *k->bias,
                            &k->bias));
  if (!o) return NULL;
  assay_status_t st = assay_operand_floats(o, &b);
  if (!st) st = assay_new_array((size_t)(k->directions * all), sizeof *sums, &sums);
  for (int64_t i = 0; !st && i < k->directions * all; i++) {
    const int64_t d = i / all, j = i % all;
    const bool apart = k->cell == RECURRENT_GRU && !k->reset_first && j >= 2 * k->hidden;
    const float state = b[d * 2 * all + all + j];
    sums[i] = b[d * 2 * all + j] + (apart ? 0 : state);
    if (apart) k->state_bias[d * k->hidden + j - 2 * k->hidden] = state;
  }
  for (int64_t i = 0; !st && i < k->directions * all; i++) {
    const int64_t d = i / all, g = i % all / k->hidden, u = i % k->hidden;
    k->bias[(d * k->blocks + u / k->units) * RECURRENT_BLOCK + g * k->units + u % k->units] =
        sums[i];
  }
  assay_free(b);
  assay_free(sums);
  return st;
}

static assay_status_t pack_weights(recurrent_t* k, const operands_t* o) {
  const int gates = gates_of(k->cell);
  float *w = NULL, *r = NULL;
  assay_status_t st = assay_operand_floats(o->w, &w);
  if (!st) st = assay_operand_floats(o->r, &r);
  if (!st) st = new_panels(k, k->input_row, 2, &k->w);
  if (!st) st = new_panels(k, k->state_row, 2, &k->r);
  if (!st && k->reset_first) st = new_panels(k, k->state_row, 1, &k->reset);
  if (!st) pack(k, w, k->inputs, k->input_row, 0, gates, k->w);
  if (!st) pack(k, r, k->hidden, k->state_row, 0, k->reset_first ? 2 : gates, k->r);
  if (!st && k->reset_first) pack(k, r, k->hidden, k->state_row, 2, 3, k->reset);
  assay_free(w);
  assay_free(r);
  return st ? st : pack_bias(k, o->b);
}

// ---- which layers ------------------------------------------------------------------------------

static bool find_cell(const assay_node_t* n, recurrent_cell_t* out) {
  static const char* const names[] = {"RNN", "GRU", "LSTM"};
  for (int i = 0; !*n->domain && i < 3; i++)
    if (strcmp(n->op_type, names[i]) == 0) return *out = (recurrent_cell_t)i, true;
  return false;
}

static int index_of(const assay_sized_layer_t* l, const assay_operand_t* o) {
  return o ? (int)(o - l->in) : -1;
}

static void set_forms(const assay_sized_layer_t* l, recurrent_t* k, const operands_t* o) {
  k->x = index_of(l, o->x);
  k->lengths = index_of(l, o->lengths);
  k->initial_h = index_of(l, o->h);
  k->initial_c = index_of(l, o->c);
  const int read[] = {k->x, k->lengths, k->initial_h, k->initial_c};
  for (size_t i = 0; i < sizeof read / sizeof *read; i++)
    if (read[i] >= 0)
      k->base.in[read[i]] = (assay_storage_t){l->in[read[i]].type, ASSAY_LAYOUT_PLAIN};
  int* const made[] = {&k->y, &k->y_h, &k->y_c};
  for (size_t i = 0; i < 3; i++) {
    *made[i] = i < l->n_out && l->out[i].value ? (int)i : -1;
    if (*made[i] >= 0) k->base.out[i] = (assay_storage_t){l->out[i].type, ASSAY_LAYOUT_PLAIN};
  }
}

// Sizes of which all products fit: those of scratch memory are the largest.
static bool sizes_fit(const recurrent_t* k) {
  int64_t n;
  const int64_t max = INT64_C(1) << 40;
  return assay_mul_i64(k->length, k->batch, &n) && assay_mul_i64(n, k->directions, &n) &&
         assay_mul_i64(n, k->blocks * RECURRENT_BLOCK + k->inputs, &n) && n < max &&
         assay_mul_i64(k->hidden, k->hidden, &n) && n < max;
}

static bool outputs_fit(const assay_sized_layer_t* l, const recurrent_t* k) {
  const int64_t state = k->directions * k->batch * k->hidden;
  for (size_t i = 0; i < l->n_out; i++)
    if (l->out[i].value && (!assay_type_is_kernel_float(l->out[i].type) ||
                            l->out[i].size != (i ? state : state * k->length)))
      return false;
  return true;
}

static assay_status_t make(const assay_sized_layer_t* l, bool bf16, assay_kernel_t** out) {
  const assay_node_t* n = l->layer->nodes[0];
  recurrent_cell_t cell;
  operands_t o = {0};
  if (l->layer->n_nodes != 1 || n->n_inputs < 3 || !find_cell(n, &cell)) return NULL;
  recurrent_t* k = NULL;
  ASSAY_TRY(ASSAY_NEW(&k));
  k->base = (assay_kernel_t){.in_place = -1, .run = recurrent_run, .destroy = destroy};
  k->node = n;
  k->cell = cell;
  bool ok = read_attributes(n, k) && read_operands(l, k, &o);
  if (ok) {
    k->units = cell == RECURRENT_RNN ? RECURRENT_BLOCK : RECURRENT_BLOCK / 4;
    k->blocks = (k->hidden + k->units - 1) / k->units;
    // One of the two takes a layer: their results differ.
    k->bf16 = o.x->type == ASSAY_TYPE_BFLOAT16 && o.w->type == ASSAY_TYPE_BFLOAT16 &&
              o.r->type == ASSAY_TYPE_BFLOAT16 && cpu_gemm_has_bf16();
    k->input_row = k->bf16 ? (k->inputs + 1) / 2 : k->inputs;
    k->state_row = k->bf16 ? (k->hidden + 1) / 2 : k->hidden;
    ok = k->bf16 == bf16 && sizes_fit(k) && outputs_fit(l, k);
  }
  assay_status_t st = ok ? pack_weights(k, &o) : NULL;
  if (st || !ok) return destroy(&k->base), st;
  set_forms(l, k, &o);
  k->base.scratch = recurrent_scratch(k);
  *out = &k->base;
  return NULL;
}

static assay_status_t make_bf16(const assay_sized_layer_t* l, assay_kernel_t** out) {
  return make(l, true, out);
}

static assay_status_t make_any(const assay_sized_layer_t* l, assay_kernel_t** out) {
  return make(l, false, out);
}

// In float32 but for the states, which are rounded to bf16 for each step's product.
const assay_tactic_t cpu_tactic_recurrent_bf16 = {
    .name = "recurrent_bf16",
    .source = "assay",
    .make = make_bf16,
    .rounding = {CPU_FLOAT_SUMS, .operands = ASSAY_FORMAT_BF16},
};

const assay_tactic_t cpu_tactic_recurrent = {
    .name = "recurrent",
    .source = "assay",
    .make = make_any,
    .rounding = {.compute = ASSAY_FORMAT_FP32,
                 .accumulator = ASSAY_FORMAT_FP32,
                 .fma = true,
                 .by_definition = true,
                 .function_ulps = 4},
};
