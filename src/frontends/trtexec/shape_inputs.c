// Which inputs hold shapes: integers that nothing but sizes of other values depend on. Which nodes
// compute shapes: of what they make nothing but sizes is made.
#include <string.h>

#include "base/alloc.h"
#include "frontends/trtexec/job.h"

// What an input of an operator is to the sizes of what it makes.
typedef struct role {
  const char* op;
  unsigned sizes;   // bit i: input i is read for sizes
  unsigned passed;  // bit i: input i becomes part of the outputs, which have to be sizes themselves
} role_t;

static const role_t roles[] = {
    {"Reshape", 2, 1},    {"Expand", 2, 1},        {"ConstantOfShape", 1, 0},
    {"Tile", 2, 0},       {"Slice", 30, 1},        {"Resize", 12, 0},
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

// ---- nodes --------------------------------------------------------------------------------------

// Whether all that a node makes is known to be read for sizes only.
static bool makes_sizes(const assay_node_t* n, const bool* sizes) {
  bool any = false;
  for (size_t i = 0; i < n->n_outputs; i++) {
    if (!n->outputs[i]) continue;
    any = true;
    if (!sizes[n->outputs[i]->id]) return false;
  }
  return any;
}

// Takes back that values are sizes which a node reads for something else. True: some were.
static bool take_back(const assay_node_t* n, bool* sizes) {
  const role_t* r = role_of(n);
  const bool passes = makes_sizes(n, sizes);
  bool any = false;
  for (size_t i = 0; i < n->n_inputs; i++) {
    const assay_value_t* v = n->inputs[i];
    const unsigned bit = i < 32 ? 1u << i : 0;
    const bool size = r && (r->sizes & bit || (r->passed & bit && passes));
    if (!v || size || !sizes[v->id]) continue;
    sizes[v->id] = false;
    any = true;
  }
  return any;
}

assay_status_t trt_shape_nodes(assay_arena_t* arena, const assay_model_t* m, bool** out) {
  bool *sizes = NULL, *nodes = NULL, again = true;
  ASSAY_TRY(assay_arena_new(arena, (size_t)m->n_values, sizeof *sizes, &sizes));
  ASSAY_TRY(assay_arena_new(arena, (size_t)m->n_node_ids, sizeof *nodes, &nodes));
  // What is read at all; then, as long as something changes, less what is read for something else.
  for (size_t g = 0; g < m->n_graphs; g++)
    for (size_t i = 0; i < m->graphs[g]->n_nodes; i++) {
      const assay_node_t* n = m->graphs[g]->nodes[i];
      for (size_t k = 0; k < n->n_inputs; k++)
        if (n->inputs[k]) sizes[n->inputs[k]->id] = true;
    }
  for (size_t g = 0; g < m->n_graphs; g++)
    for (size_t i = 0; i < m->graphs[g]->n_outputs; i++)
      if (m->graphs[g]->outputs[i]) sizes[m->graphs[g]->outputs[i]->id] = false;
  while (again) {
    again = false;
    for (size_t g = 0; g < m->n_graphs; g++)  // from the last node on, since these are in order
      for (size_t i = m->graphs[g]->n_nodes; i-- > 0;)
        again |= take_back(m->graphs[g]->nodes[i], sizes);
  }
  for (size_t g = 0; g < m->n_graphs; g++)
    for (size_t i = 0; i < m->graphs[g]->n_nodes; i++) {
      const assay_node_t* n = m->graphs[g]->nodes[i];
      nodes[n->id] = makes_sizes(n, sizes);
    }
  *out = nodes;
  return NULL;
}
