// Models of one node from random cases (op_random.h), and the rows of operators that have such
// cases.
#ifndef ASSAY_TESTS_OPS_OP_MODEL_H_
#define ASSAY_TESTS_OPS_OP_MODEL_H_

#include "ops/op_hints.h"
#include "ops/op_random.h"
#include "passes/graph_case.h"

// What is known of the inputs before they are there.
typedef enum way { UNKNOWN, UNRANKED, STATIC, SYMBOLIC, CONTENT, CONSTANT, MIXED, WAYS } way_t;

// ---- models ------------------------------------------------------------------------------------

static inline void body_value(assay_graph_t* g, const char* name) {
  assay_value_t* v = NULL;
  op_case_ok(assay_graph_add_value(g, name, &v));
  v->is_input = true;
  g->inputs[g->n_inputs++] = v;
}

static inline void add_body(const random_case_t* c, assay_node_t* node, const char* attr,
                            const char* const* inputs, const char* const* rows,
                            const char* outputs) {
  assay_graph_t* g = NULL;
  op_case_ok(assay_graph_create(node->graph->model, node->graph, &g));
  g->name = attr;
  g->owner = node;
  g->inputs = op_case_list(g->model, 4);
  for (; *inputs; inputs++) body_value(g, *inputs);
  for (; *rows; rows++) graph_case_node(g, *rows, c->schema->since);
  graph_case_outputs(g, outputs);
  node->attrs[node->n_attrs++] = (assay_attr_t){
      .name = attr, .doc = "", .ref = "", .type = ASSAY_ATTR_GRAPH, .n = 1, .u.g = g};
}

static inline void add_bodies(const random_case_t* c, assay_node_t* node, const char* kind) {
#define LIST(...) ((const char* const[]){__VA_ARGS__, NULL})
  const char* const* none = (const char* const[]){NULL};
  if (strcmp(kind, "if") == 0) {
    add_body(c, node, "then_branch", none, LIST("Identity a x0 -> a", "Shape b x0 -> b"), "a b");
    add_body(c, node, "else_branch", none,
             LIST("Not d x0 -> d", "Constant e -> e | value=int64[2]:7:8"), "d e");
  } else if (strcmp(kind, "loop") == 0) {
    size_t last = c->n_in - 1;
    bool grows = c->in[last]->rank > 0 && c->number['z' - 'a'] % 2 == 1;
    add_body(
        c, node, "body", LIST("i", "c", "s"),
        LIST("Identity keep c -> c1",
             grows ? "Concat next s s -> s1 | axis=0" : "Identity next s -> s1",
             "Identity count i -> i1", grows ? "Identity again i -> s2" : "Identity again s -> s2"),
        "c1 s1 i1 s2");
  } else if (strcmp(kind, "scan") == 0) {
    add_body(c, node, "body", LIST("s", "x"),
             LIST("Identity keep s -> s1", "Identity take x -> x1"), "s1 x1");
  } else {
    add_body(c, node, "body", c->n_in > 1 ? LIST("a", "b") : LIST("a"),
             LIST(c->n_in > 1 ? "Add sum a b -> y" : "Neg minus a -> y"), "y");
  }
#undef LIST
}

// How an input is given: a constant, or with this much known.
static inline way_t way_of_input(const random_case_t* c, way_t way, size_t i, uint64_t seed) {
  static const way_t some[] = {UNRANKED, STATIC,   SYMBOLIC, CONTENT,
                               CONSTANT, CONSTANT, SYMBOLIC, STATIC};
  if (c->in[i]->kind != ASSAY_KIND_TENSOR && way >= SYMBOLIC) way = STATIC;
  if (way != MIXED) return way;
  return some[(seed >> 3 * (i % 20)) & 7];
}

// A name for a size: its own, or one that all of this size share.
static inline const assay_dim_t* name_of_size(assay_model_t* m, size_t input, int dim, int64_t size,
                                              bool shared) {
  char name[64];
  if (shared)
    snprintf(name, sizeof name, "x0s%lld", (long long)size);
  else
    snprintf(name, sizeof name, "x%zud%ds%lld", input, dim, (long long)size);
  return assay_dim_symbol(m->dims, name);
}

// Integers as expressions of names, or as numbers, or not known.
static inline void set_content(assay_model_t* m, assay_value_t* v, const assay_tensor_t* t,
                               size_t input, uint64_t seed) {
  if (t->store != ASSAY_STORE_I64 || t->rank > 1 || t->size > 16 ||
      (t->type != ASSAY_TYPE_INT64 && t->type != ASSAY_TYPE_INT32))
    return;
  assay_content_t* content = NULL;
  op_case_ok(assay_arena_new(m->arena, 1, sizeof *content, &content));
  op_case_ok(assay_arena_new(m->arena, (size_t)t->size, sizeof *content->elems, &content->elems));
  content->rank = t->rank;
  content->n = t->size;
  for (int64_t i = 0; i < t->size; i++) {
    int64_t x = assay_i64(t)[i];
    const assay_dim_t** e = &content->elems[i];
    switch (seed >> (5 * input + (size_t)i) % 50 & 3) {
      case 0:
        *e = assay_dim_const(m->dims, x);
        break;
      case 1:  // names are sizes; where 0 means something else, it is known
        *e = x == 0  ? NULL
             : x < 0 ? assay_dim_sub(m->dims, assay_dim_const(m->dims, 0),
                                     name_of_size(m, input, 9, -x, false))
                     : name_of_size(m, input, 9, x, seed % 3 == 0);
        break;
      case 2:  // of either sign as far as one can see
        *e = x < -3 ? NULL : assay_dim_add_i(m->dims, name_of_size(m, input, 8, x + 3, false), -3);
        break;
      default:
        *e = NULL;
    }
  }
  v->content = content;
}

static inline const assay_valtype_t* declared(assay_model_t* m, const assay_tensor_t* t,
                                              size_t input, way_t way, uint64_t seed) {
  const assay_valtype_t *type = NULL, *of = NULL;
  const assay_dim_t* dims[ASSAY_MAX_RANK];
  if (t->kind != ASSAY_KIND_TENSOR) {
    // Items of one shape; their rank is told where one is there.
    if (t->n_items)
      of = declared(m, t->items[0], input, way, seed);
    else
      op_case_ok(assay_valtype_unranked(m, t->type, &of));
    op_case_ok(assay_valtype_of(m, t->kind, ASSAY_TYPE_UNDEFINED, of, &type));
    return type;
  }
  if (way <= UNRANKED) {
    op_case_ok(assay_valtype_unranked(m, t->type, &type));
    return type;
  }
  for (int i = 0; i < t->rank; i++) {
    uint64_t some = seed >> (7 * input + (size_t)i) % 50;
    dims[i] = way >= SYMBOLIC && some % 8 ? name_of_size(m, input, i, t->dims[i], seed % 3 == 0)
                                          : assay_dim_const(m->dims, t->dims[i]);
  }
  op_case_ok(assay_valtype_tensor(m, t->type, t->rank, dims, &type));
  return type;
}

static inline assay_model_t* make_model(const random_case_t* c, const op_hint_t* hint, way_t way,
                                        uint64_t seed, assay_value_t** values) {
  assay_model_t* m = NULL;
  assay_node_t* n = NULL;
  const char* domain = c->schema->domain;
  op_case_ok(assay_model_create(&m));
  m->ir_version = 10;
  m->opsets = assay_arena_alloc(m->arena, 2, sizeof *m->opsets);
  assert_non_null(m->opsets);
  m->opsets[0] = (assay_opset_t){domain, c->schema->since};
  m->opsets[1] = (assay_opset_t){"", 21};
  m->n_opsets = *domain ? 2 : 1;
  op_case_ok(assay_graph_create(m, NULL, &m->graph));
  m->graph->name = "case";
  op_case_ok(assay_node_create(m->graph, domain, c->schema->name, "node", c->n_in, c->n_out,
                               RANDOM_ATTRS + 2, &n));
  for (size_t i = 0; i < c->n_attrs; i++)
    op_case_attr(m, c->schema, c->attr_name[i], c->attr_value[i], &n->attrs[i]);
  n->n_attrs = c->n_attrs;
  m->graph->inputs = op_case_list(m, c->n_in);
  m->graph->outputs = op_case_list(m, c->n_out);
  for (size_t i = 0; i < c->n_in; i++) {
    char name[32];
    snprintf(name, sizeof name, "x%zu", i);
    values[i] = NULL;
    if (!c->in[i]) continue;
    op_case_ok(assay_graph_add_value(m->graph, name, &n->inputs[i]));
    way_t input_way = way_of_input(c, way, i, seed);
    if (input_way == CONSTANT) {
      op_case_ok(assay_graph_set_initializer(n->inputs[i], assay_tensor_retain(c->in[i])));
      continue;
    }
    values[i] = n->inputs[i];
    values[i]->is_input = true;
    values[i]->declared = declared(m, c->in[i], i, input_way, seed);
    if (input_way == CONTENT) set_content(m, values[i], c->in[i], i, seed);
    m->graph->inputs[m->graph->n_inputs++] = values[i];
  }
  for (size_t i = 0; i < c->n_out; i++) {
    char name[32];
    assay_value_t* v = NULL;
    if (!c->wanted[i]) continue;
    snprintf(name, sizeof name, "y%zu", i);
    op_case_ok(assay_graph_add_value(m->graph, name, &v));
    assay_node_set_output(n, i, v);
    v->is_output = true;
    m->graph->outputs[m->graph->n_outputs++] = v;
  }
  op_case_ok(assay_graph_insert(m->graph, n, 0));
  if (hint && hint->body) add_bodies(c, n, hint->body);
  return m;
}

// ---- rows --------------------------------------------------------------------------------------

static inline const char* full_name(const assay_schema_t* s, char* buffer, size_t capacity) {
  snprintf(buffer, capacity, "%s%s%s", s->domain, *s->domain ? "." : "", s->name);
  return buffer;
}

static inline bool listed(const not_driven_t* list, size_t n, const char* name) {
  for (size_t i = 0; i < n; i++)
    if (list[i].op && strcmp(list[i].op, name) == 0) return true;
  return false;
}
#define LISTED(list, name) listed(list, sizeof(list) / sizeof *(list), name)

static inline uint64_t hash(uint64_t h, const char* text) {
  for (; *text; text++) h = (h ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
  return h;
}

// The lines of op_hints.h for a version of an operator: how many.
enum { OP_ROW_HINTS = 32 };
static inline size_t op_row_hints(const assay_schema_t* s, const char* name,
                                  const op_hint_t* out[OP_ROW_HINTS]) {
  size_t n = 0;
  for (size_t i = 0; i < sizeof op_hints / sizeof *op_hints; i++) {
    const op_hint_t* h = &op_hints[i];
    if (strcmp(h->op, name) != 0 || (h->to && (s->since < h->from || s->since > h->to))) continue;
    assert_true(n < OP_ROW_HINTS);
    out[n++] = h;
  }
  return n;
}

// Every schema version that a row evaluates.
static inline void op_rows_each(void (*visit)(const assay_schema_t* s)) {
  for (size_t i = 0; i < assay_schema_count(); i++) {
    const assay_schema_t* s = assay_schema_at(i);
    const assay_op_t* op = assay_op_find(s->domain, s->name, s->since);
    if (op && op->eval && !op->schema && !s->deprecated) visit(s);
  }
  for (size_t f = 0; f < assay_op_family_count(); f++)
    for (const assay_op_t* op = assay_op_family(f); op->name; op++)
      if (op->eval && op->schema) visit(assay_schema_find(op->domain, op->name, op->since, NULL));
}

#endif  // ASSAY_TESTS_OPS_OP_MODEL_H_
