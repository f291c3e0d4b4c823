// Operators on quantized numbers as what they stand for.
#include "diagnose/quantizers/write_out.h"

#include <string.h>

#include "base/alloc.h"
#include "formats/format.h"
#include "onnx/onnx.h"
#include "ops/op.h"

enum { NONE = -1, OPERANDS = 2, AXIS_SINCE = 13 };

// An operator: which one it is on real numbers; where tensors with a scale and a zero point after
// them begin; its bias; the scale of what comes out, with a zero point after it; an input that is
// taken as it is.
typedef struct row {
  const char *domain, *op, *real;
  int operands[OPERANDS], bias, result, plain;
  bool any;  // operands go on to the last input
} row_t;

static const char ONNX[] = "", MS[] = "com.microsoft";

// Source: ONNX QLinearConv-10, QLinearMatMul-21; ONNX Runtime, ContribOperators.md.
static const row_t rows[] = {
    {ONNX, "QLinearConv", "Conv", {0, 3}, 8, 6, NONE, false},
    {MS, "QLinearConv", "Conv", {0, 3}, 8, 6, NONE, false},
    {ONNX, "QLinearMatMul", "MatMul", {0, 3}, NONE, 6, NONE, false},
    {MS, "QLinearMatMul", "MatMul", {0, 3}, NONE, 6, NONE, false},
    {MS, "QGemm", "Gemm", {0, 3}, 6, 7, NONE, false},
    {MS, "QLinearAdd", "Add", {0, 3}, NONE, 6, NONE, false},
    {MS, "QLinearMul", "Mul", {0, 3}, NONE, 6, NONE, false},
    {MS, "QLinearSigmoid", "Sigmoid", {0, NONE}, NONE, 3, NONE, false},
    {MS, "QLinearLeakyRelu", "LeakyRelu", {0, NONE}, NONE, 3, NONE, false},
    {MS, "QLinearSoftmax", "Softmax", {0, NONE}, NONE, 3, NONE, false},
    {MS, "QLinearAveragePool", "AveragePool", {0, NONE}, NONE, 3, NONE, false},
    {MS, "QLinearGlobalAveragePool", "GlobalAveragePool", {0, NONE}, NONE, 3, NONE, false},
    {MS, "QLinearWhere", "Where", {1, 4}, NONE, 7, 0, false},
    {MS, "QLinearConcat", "Concat", {2, NONE}, NONE, 0, NONE, true},
};

static const row_t* row_of(const assay_node_t* n) {
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    if (!strcmp(n->op_type, rows[i].op) && !strcmp(n->domain, rows[i].domain)) return &rows[i];
  return NULL;
}

bool assay_has_qlinear(const assay_model_t* model) {
  for (size_t i = 0; i < model->graph->n_nodes; i++)
    if (row_of(model->graph->nodes[i])) return true;
  return false;
}

// ---- which can be written out ------------------------------------------------------------------

static assay_value_t* input(const assay_node_t* n, int i) {
  return i >= 0 && (size_t)i < n->n_inputs ? n->inputs[i] : NULL;
}

static assay_tensor_t* constant(const assay_node_t* n, int i) {
  const assay_value_t* v = input(n, i);
  const assay_node_t* p = v ? v->producer : NULL;
  if (!p || *p->domain || strcmp(p->op_type, "Constant") != 0) return assay_value_constant(v);
  const assay_attr_t* a = assay_node_attr(p, "value");
  return a && a->type == ASSAY_ATTR_TENSOR ? a->u.t : NULL;
}

static bool is_known(const assay_node_t* n, int scale, int64_t opset) {
  const assay_tensor_t *s = constant(n, scale), *z = constant(n, scale + 1);
  // Without a zero point QuantizeLinear makes bytes without a sign, whatever the operator makes.
  return s && z && s->size >= 1 && (s->size == 1 || opset >= AXIS_SINCE);
}

static int n_operands(const assay_node_t* n, const row_t* r) {
  if (r->any) return (int)(n->n_inputs - (size_t)r->operands[0]) / 3;
  return r->operands[1] == NONE ? 1 : 2;
}

static int operand(const row_t* r, int i) {
  return r->any ? r->operands[0] + 3 * i : r->operands[i];
}

static bool can_be_written_out(const assay_node_t* n, const row_t* r) {
  const int64_t opset = assay_model_opset(n->graph->model, "");
  bool known = n->n_outputs && n->outputs[0] && is_known(n, r->result, opset);
  for (int i = 0; i < n_operands(n, r); i++)
    known = known && input(n, operand(r, i)) && is_known(n, operand(r, i) + 1, opset);
  // A bias of integers is in units of both operands.
  if (known && input(n, r->bias))
    known = constant(n, r->bias) && constant(n, r->operands[0] + 1)->size == 1;
  return known && !assay_attr_i64(n, "channels_last", 0) &&
         !(assay_attr_f64(n, "alpha", 1) != 1 && !strcmp(r->real, "Gemm")) &&
         (strcmp(r->real, "Softmax") != 0 ||
          (opset >= AXIS_SINCE && assay_attr_i64(n, "opset", 0) >= AXIS_SINCE));
}

// ---- writing ------------------------------------------------------------------------------------

typedef struct writer {
  assay_graph_t* graph;
  assay_node_t* of;
  const row_t* row;
  size_t at;  // where the next node goes
} writer_t;

static assay_status_t new_node(writer_t* w, const char* op, const char* name, size_t n_in,
                               size_t n_attrs, assay_node_t** out) {
  const char* text = NULL;
  assay_value_t* y = NULL;
  ASSAY_TRY(assay_arena_printf(w->graph->model->arena, &text, "%s_%s", w->of->label, name));
  ASSAY_TRY(assay_graph_new_value(w->graph, text, &y));
  ASSAY_TRY(assay_node_create(w->graph, "", op, text, n_in, 1, n_attrs, out));
  assay_node_set_output(*out, 0, y);
  return assay_graph_insert(w->graph, *out, w->at++);
}

static void set_axis(assay_node_t* n, int64_t axis) {
  n->attrs[0] = (assay_attr_t){
      .name = "axis", .doc = "", .ref = "", .type = ASSAY_ATTR_INT, .n = 1, .u.i = axis};
}

// The axis that the scales of an operand lie along: outputs of a convolution, columns of a matrix.
static int64_t axis_of(const writer_t* w, int i) {
  const assay_tensor_t* t = constant(w->of, operand(w->row, i));
  const bool first = !strcmp(w->row->real, "Conv") ||
                     (!strcmp(w->row->real, "Gemm") && assay_attr_i64(w->of, "transB", 0));
  return first ? 0 : t && t->rank ? t->rank - 1 : 1;
}

static assay_status_t write_operand(writer_t* w, int i, assay_value_t** out) {
  const int at = operand(w->row, i);
  const bool several = constant(w->of, at + 1)->size > 1;
  assay_node_t* n = NULL;
  ASSAY_TRY(new_node(w, "DequantizeLinear", i == 0 ? "a" : i == 1 ? "b" : "c", 3, several, &n));
  for (int k = 0; k < 3; k++) n->inputs[k] = w->of->inputs[at + k];
  if (several) set_axis(n, axis_of(w, i));
  *out = n->outputs[0];
  return NULL;
}

// The scales of a bias: of the first operand times those of the second.
static assay_status_t bias_scale(writer_t* w, assay_value_t** out, size_t* out_n) {
  assay_tensor_t *a = NULL, *b = NULL, *y = NULL, *packed = NULL;
  const char* name = NULL;
  ASSAY_TRY(assay_tensor_widen(constant(w->of, w->row->operands[0] + 1), &a));
  assay_status_t st = assay_tensor_widen(constant(w->of, w->row->operands[1] + 1), &b);
  if (!st) st = assay_tensor_create(ASSAY_TYPE_FLOAT, b->size > 1, &b->size, &y);
  for (int64_t i = 0; !st && i < b->size; i++)
    assay_f64(y)[i] = (double)(float)(assay_f64(a)[0] * assay_f64(b)[i]);
  if (!st) *out_n = (size_t)b->size;
  if (!st) st = assay_tensor_pack(y, &packed);
  assay_tensor_release(a);
  assay_tensor_release(b);
  assay_tensor_release(y);
  if (!st) st = assay_arena_printf(w->graph->model->arena, &name, "%s_bias_scale", w->of->label);
  if (!st) st = assay_graph_new_value(w->graph, name, out);
  if (st) return assay_tensor_release(packed), st;
  return assay_graph_set_initializer(*out, packed);
}

static assay_status_t write_bias(writer_t* w, assay_value_t** out) {
  assay_value_t* scale = NULL;
  assay_node_t* n = NULL;
  size_t several = 0;
  ASSAY_TRY(bias_scale(w, &scale, &several));
  ASSAY_TRY(new_node(w, "DequantizeLinear", "bias", 2, several > 1, &n));
  n->inputs[0] = w->of->inputs[w->row->bias];
  n->inputs[1] = scale;
  if (several > 1) set_axis(n, 0);
  *out = n->outputs[0];
  return NULL;
}

static bool is_of_real(const writer_t* w, const assay_attr_t* a) {
  const bool softmax = !strcmp(w->row->real, "Softmax");
  return strcmp(a->name, "channels_last") != 0 && !(softmax && !strcmp(a->name, "opset"));
}

// The operator on real numbers, in the place of the one on quantized ones.
static assay_status_t write_real(writer_t* w, assay_value_t** out) {
  const int n = n_operands(w->of, w->row);
  const bool plain = w->row->plain != NONE, bias = input(w->of, w->row->bias) != NULL;
  assay_node_t* real = NULL;
  assay_value_t** in = NULL;
  size_t at = 0, kept = 0;
  ASSAY_TRY(assay_new_array((size_t)n + 2, sizeof(assay_value_t*), &in));
  assay_status_t st = NULL;
  if (plain) in[at++] = w->of->inputs[w->row->plain];
  for (int i = 0; !st && i < n; i++) st = write_operand(w, i, &in[at++]);
  if (!st && bias) st = write_bias(w, &in[at++]);
  for (size_t i = 0; i < w->of->n_attrs; i++) kept += is_of_real(w, &w->of->attrs[i]);
  if (!st) st = new_node(w, w->row->real, "real", at, kept, &real);
  for (size_t i = 0; !st && i < at; i++) real->inputs[i] = in[i];
  for (size_t i = 0, k = 0; !st && i < w->of->n_attrs; i++)
    if (is_of_real(w, &w->of->attrs[i])) real->attrs[k++] = w->of->attrs[i];
  assay_free(in);
  if (!st) *out = real->outputs[0];
  return st;
}

// The node itself becomes what quantizes: so it keeps its name, and its place among labels.
static assay_status_t write_node(assay_graph_t* g, size_t at, size_t* out_next) {
  assay_node_t* n = g->nodes[at];
  writer_t w = {.graph = g, .of = n, .row = row_of(n), .at = at};
  assay_value_t* real = NULL;
  ASSAY_TRY(write_real(&w, &real));
  assay_value_t* const by[] = {real, n->inputs[w.row->result], n->inputs[w.row->result + 1]};
  for (int k = 0; k < 3; k++) n->inputs[k] = by[k];
  n->domain = "";
  n->op_type = "QuantizeLinear";
  n->n_inputs = 3;
  n->n_attrs = 0;
  n->op = NULL;
  n->schema = NULL;
  *out_next = w.at + 1;
  return NULL;
}

assay_status_t assay_qlinear_write_out(assay_model_t* model) {
  assay_graph_t* g = model->graph;
  for (size_t i = 0; i < g->n_nodes;) {
    const row_t* r = row_of(g->nodes[i]);
    if (!r || !can_be_written_out(g->nodes[i], r)) {
      i++;
      continue;
    }
    ASSAY_TRY(write_node(g, i, &i));
  }
  return assay_onnx_sort(model);
}
