// Small models for tests of passes and plans, from text.
//
// Tensors: "x float[1,3,6,6]" with random elements in [-1, 1], "v float[4] positive" in [0.5, 1.5],
// or with elements, "c float[] 3" (see op_case.h). Nodes: "Conv name x w -> y | pads=1,1,1,1"; `_`
// is an input left out; operators of Microsoft's domain begin with "com.microsoft.".
#ifndef ASSAY_TESTS_PASSES_GRAPH_CASE_H_
#define ASSAY_TESTS_PASSES_GRAPH_CASE_H_

#include "ops/op_case.h"

#define GRAPH_CASE_MS "com.microsoft"

enum { GRAPH_CASE_ROWS = 28 };

typedef struct graph_case {
  const char* name;
  int opset;  // 0: 17
  const char* inputs[GRAPH_CASE_ROWS];
  const char* constants[GRAPH_CASE_ROWS];
  const char* nodes[GRAPH_CASE_ROWS];
  const char* outputs;  // names
} graph_case_t;

// Numbers that are the same in every run.
static inline double graph_case_random(uint64_t* state) {
  *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return (double)(float)((double)(*state >> 40) / (double)(1 << 23) - 1);
}

// Splits "name type[...] rest" and makes the tensor.
static inline assay_tensor_t* graph_case_tensor(const char* row, char name[64], uint64_t* state) {
  char type[160];
  assert_int_equal(sscanf(row, "%63s", name), 1);
  const char* rest = row + strlen(name);
  rest += strspn(rest, " ");
  const char* end = strchr(rest, ']');
  assert_non_null(end);
  bool positive = strcmp(end + 1, " positive") == 0;
  if (end[1] && !positive) {  // numbers of the type, as a file would hold them
    assay_tensor_t* given = op_case_tensor(rest);
    if (given->store == ASSAY_STORE_F64)
      assay_format_round_n(assay_type_format(given->type), assay_f64(given), assay_f64(given),
                           (size_t)given->size, ASSAY_OVERFLOW_IEEE);
    return given;
  }
  snprintf(type, sizeof type, "%.*s iota", (int)(end + 1 - rest), rest);
  assay_tensor_t* t = op_case_tensor(type);
  for (int64_t i = 0; t->store == ASSAY_STORE_F64 && i < t->size; i++) {
    double x = graph_case_random(state);
    assay_f64(t)[i] = positive ? (double)(float)(1 + x / 2) : x;
  }
  if (t->store == ASSAY_STORE_F64 && t->type != ASSAY_TYPE_FLOAT)  // numbers of the type
    assay_format_round_n(assay_type_format(t->type), assay_f64(t), assay_f64(t), (size_t)t->size,
                         ASSAY_OVERFLOW_IEEE);
  return t;
}

static inline assay_value_t* graph_case_value(assay_graph_t* g, const char* name) {
  assay_value_t* v = assay_graph_find_visible(g, name);
  if (!v) op_case_ok(assay_graph_add_value(g, name, &v));
  return v;
}

// Adds one node to a graph; an If's bodies can be put into its attributes afterwards.
static inline assay_node_t* graph_case_node(assay_graph_t* g, const char* row, int opset) {
  char op[64], name[64], word[64];
  const char *names[2][16], *p = row;
  static char texts[32][64];
  size_t n[2] = {0}, side = 0, used_texts = 0;
  int used = 0;
  assert_int_equal(sscanf(p, "%63s %63s%n", op, name, &used), 2);
  for (p += used; sscanf(p, " %63s%n", word, &used) == 1 && strcmp(word, "|") != 0; p += used) {
    if (strcmp(word, "->") == 0) {
      side = 1;
      continue;
    }
    assert_true(n[side] < 16 && used_texts < 32);
    strcpy(texts[used_texts], word);
    names[side][n[side]++] = texts[used_texts++];
  }
  const char* attrs = strchr(row, '|');
  assay_node_t* node = NULL;
  const size_t ms = strlen(GRAPH_CASE_MS);
  const bool is_ms = strncmp(op, GRAPH_CASE_MS ".", ms + 1) == 0;
  op_case_ok(assay_node_create(g, is_ms ? GRAPH_CASE_MS : "", is_ms ? op + ms + 1 : op, name, n[0],
                               n[1], 8, &node));
  op_case_attrs(g->model, node, attrs ? attrs + 2 : "", is_ms ? 1 : opset);
  for (size_t i = 0; i < n[0]; i++)
    if (strcmp(names[0][i], "_") != 0) node->inputs[i] = graph_case_value(g, names[0][i]);
  for (size_t i = 0; i < n[1]; i++)
    if (strcmp(names[1][i], "_") != 0) {
      assay_value_t* v = NULL;
      op_case_ok(assay_graph_add_value(g, names[1][i], &v));
      assay_node_set_output(node, i, v);
    }
  op_case_ok(assay_graph_insert(g, node, g->n_nodes));
  return node;
}

static inline void graph_case_outputs(assay_graph_t* g, const char* names) {
  char name[64];
  int used;
  g->outputs = op_case_list(g->model, 8);
  for (; sscanf(names, " %63s%n", name, &used) == 1; names += used) {
    assay_value_t* v = assay_graph_find_visible(g, name);
    assert_non_null(v);
    if (v->graph == g) v->is_output = true;
    g->outputs[g->n_outputs++] = v;
  }
}

// The model up to its nodes; in[] gets the inputs' tensors.
static inline assay_model_t* graph_case_begin(const graph_case_t* row, assay_tensor_t** in) {
  assay_model_t* m = NULL;
  uint64_t state = 7;
  op_case_ok(assay_model_create(&m));
  m->ir_version = 10;
  m->opsets = assay_arena_alloc(m->arena, 2, sizeof *m->opsets);
  assert_non_null(m->opsets);
  m->opsets[0] = (assay_opset_t){"", row->opset ? row->opset : 17};
  m->opsets[1] = (assay_opset_t){GRAPH_CASE_MS, 1};
  m->n_opsets = 1;
  for (size_t i = 0; row->nodes[i] && m->n_opsets == 1; i++)
    m->n_opsets += strncmp(row->nodes[i], GRAPH_CASE_MS ".", strlen(GRAPH_CASE_MS) + 1) == 0;
  op_case_ok(assay_graph_create(m, NULL, &m->graph));
  assay_graph_t* g = m->graph;
  g->name = row->name;
  g->inputs = op_case_list(m, GRAPH_CASE_ROWS);
  for (size_t i = 0; i < GRAPH_CASE_ROWS && row->inputs[i]; i++) {
    char name[64];
    assay_value_t* v = NULL;
    in[i] = graph_case_tensor(row->inputs[i], name, &state);
    op_case_ok(assay_graph_add_value(g, name, &v));
    v->is_input = true;
    v->declared = op_case_type(m, in[i], false);
    g->inputs[g->n_inputs++] = v;
  }
  for (size_t i = 0; i < GRAPH_CASE_ROWS && row->constants[i]; i++) {
    char name[64];
    assay_value_t* v = NULL;
    assay_tensor_t* t = graph_case_tensor(row->constants[i], name, &state);
    op_case_ok(assay_graph_add_value(g, name, &v));
    op_case_ok(assay_graph_set_initializer(v, t));
  }
  return m;
}

// open: sizes of inputs are symbols.
static inline assay_model_t* graph_case_model_of(const graph_case_t* row, bool open,
                                                 assay_tensor_t** in) {
  assay_model_t* m = graph_case_begin(row, in);
  for (size_t i = 0; open && i < m->graph->n_inputs; i++)
    m->graph->inputs[i]->declared = op_case_type(m, in[i], true);
  for (size_t i = 0; i < GRAPH_CASE_ROWS && row->nodes[i]; i++)
    graph_case_node(m->graph, row->nodes[i], (int)m->opsets[0].version);
  graph_case_outputs(m->graph, row->outputs);
  op_case_ok(assay_onnx_check(m));
  op_case_ok(assay_infer_model(m));
  return m;
}

static inline assay_model_t* graph_case_model(const graph_case_t* row, assay_tensor_t** in) {
  return graph_case_model_of(row, false, in);
}

static inline void graph_case_release(assay_tensor_t** in) {
  for (size_t i = 0; i < GRAPH_CASE_ROWS; i++) assay_tensor_release(in[i]);
}

#endif  // ASSAY_TESTS_PASSES_GRAPH_CASE_H_
