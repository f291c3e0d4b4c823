// Which inputs hold shapes: integers that nothing but sizes of other values depend on.
#include <string.h>

#include "base/alloc.h"
#include "cli/trtexec/job.h"

// What an input of an operator is to the sizes of what it makes.
typedef struct role {
  const char* op;
  unsigned sizes;   // bit i: input i is read for sizes
  unsigned passed;  // bit i: input i becomes part of the outputs, which have to be sizes themselves
} role_t;

static const role_t roles[] = {
    {"Reshape", 2, 1},    {"Expand", 2, 1},        {"ConstantOfShape", 1, 0},
    {"Tile", 2, 0},       {"Slice", 30, 1},        {"Resize", 8, 0},
    {"Range", 7, 0},      {"Unsqueeze", 2, 1},     {"Squeeze", 2, 1},
    {"Pad", 10, 0},       {"TopK", 2, 0},          {"Split", 2, 1},
    {"OneHot", 2, 0},     {"CenterCropPad", 2, 0}, {"AffineGrid", 2, 0},
    {"Col2Im", 6, 0},     {"MaxUnpool", 4, 0},     {"Shape", 1, 0},
    {"Size", 1, 0},       {"Identity", 0, 1},      {"Cast", 0, 1},
    {"Concat", 0, ~0u},   {"Gather", 0, 1},        {"Add", 0, 3},
    {"Sub", 0, 3},        {"Mul", 0, 3},           {"Div", 0, 3},
    {"Mod", 0, 3},        {"Min", 0, ~0u},         {"Max", 0, ~0u},
    {"Neg", 0, 1},        {"Abs", 0, 1},           {"Floor", 0, 1},
    {"Ceil", 0, 1},       {"Flatten", 0, 1},       {"Transpose", 0, 1},
    {"ReduceProd", 0, 1}, {"ReduceSum", 0, 1},     {"ReduceMax", 0, 1},
    {"ReduceMin", 0, 1},  {"Where", 0, 6},
};

static const role_t* role_of(const assay_node_t* n) {
  for (size_t i = 0; !*n->domain && i < sizeof roles / sizeof *roles; i++)
    if (strcmp(roles[i].op, n->op_type) == 0) return &roles[i];
  return NULL;
}

// Follows what is made of the input. False: something else than sizes depends on it.
static bool follow(const assay_graph_t* g, const assay_node_t* n, bool* holds, bool* any) {
  const role_t* r = role_of(n);
  for (size_t i = 0; i < n->n_inputs; i++) {
    if (!n->inputs[i] || !holds[n->inputs[i]->id]) continue;
    const unsigned bit = i < 32 ? 1u << i : 0;
    if (!r || n->graph != g) return false;
    if (r->sizes & bit) {
      *any = true;
      continue;
    }
    if (!(r->passed & bit)) return false;
    for (size_t k = 0; k < n->n_outputs; k++)
      if (n->outputs[k]) holds[n->outputs[k]->id] = true;
  }
  return true;
}

static bool holds_only_sizes(const assay_model_t* m, const assay_value_t* input, bool* holds) {
  bool any = false;
  holds[input->id] = true;
  for (size_t i = 0; i < m->graph->n_nodes; i++)
    if (!follow(m->graph, m->graph->nodes[i], holds, &any)) return false;
  for (size_t k = 0; k < m->n_graphs; k++) {
    const assay_graph_t* g = m->graphs[k];
    for (size_t i = 0; g != m->graph && i < g->n_nodes; i++)
      if (!follow(m->graph, g->nodes[i], holds, &any)) return false;
    for (size_t i = 0; i < g->n_outputs; i++)
      if (g->outputs[i] && holds[g->outputs[i]->id]) return false;
  }
  return any;
}

assay_status_t trt_shape_input(const assay_model_t* m, const assay_value_t* v, int64_t* out_n) {
  const assay_valtype_t* t = v->type ? v->type : v->declared;
  bool* holds = NULL;
  int64_t n = 1;
  *out_n = 0;
  if (v->constant || !t || t->kind != ASSAY_KIND_TENSOR || !t->has_shape || t->rank > 1 ||
      (t->elem != ASSAY_TYPE_INT32 && t->elem != ASSAY_TYPE_INT64) ||
      (t->rank && !assay_dim_value(t->dims[0], &n)) || n < 1 || n > ASSAY_PROFILE_MAX_RANK)
    return NULL;
  ASSAY_TRY(assay_new_array((size_t)m->n_values, sizeof *holds, &holds));
  if (holds_only_sizes(m, v, holds)) *out_n = n;
  assay_free(holds);
  return NULL;
}
