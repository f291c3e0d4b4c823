// Models built by hand: making, asking, copying, printing, verifying, and running out of memory.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

// cmocka needs the four above before it
#include <cmocka.h>

#include "ir/ir.h"

// ---- a model with everything ------------------------------------------------------------------

static assay_status_t add_tensor(assay_value_t* v, int64_t n, const int64_t* x) {
  assay_tensor_t* t = NULL;
  ASSAY_TRY(assay_tensor_vector_i64(ASSAY_TYPE_INT64, n, x, &t));
  return assay_graph_set_initializer(v, t);
}

static assay_status_t list(assay_model_t* m, size_t n, assay_value_t* const* values,
                           assay_value_t*** out) {
  ASSAY_TRY(assay_arena_new(m->arena, n, sizeof **out, out));
  memcpy(*out, values, n * sizeof *values);
  return NULL;
}

static assay_status_t set_inputs(assay_graph_t* g, size_t n, assay_value_t* const* values) {
  ASSAY_TRY(list(g->model, n, values, &g->inputs));
  g->n_inputs = n;
  for (size_t i = 0; i < n; i++) values[i]->is_input = true;
  return NULL;
}

static assay_status_t set_outputs(assay_graph_t* g, size_t n, assay_value_t* const* values) {
  ASSAY_TRY(list(g->model, n, values, &g->outputs));
  g->n_outputs = n;
  for (size_t i = 0; i < n; i++)
    if (values[i]->graph == g) values[i]->is_output = true;
  return NULL;
}

// A node at the end of g with one output.
static assay_status_t add_node(assay_graph_t* g, const char* op, const char* name, size_t n_inputs,
                               assay_value_t* const* inputs, size_t n_attrs, const char* output,
                               assay_node_t** out) {
  assay_value_t* v = NULL;
  ASSAY_TRY(assay_node_create(g, "ai.onnx", op, name, n_inputs, 1, n_attrs, out));
  if (n_inputs) memcpy((*out)->inputs, inputs, n_inputs * sizeof *inputs);
  ASSAY_TRY(assay_graph_add_value(g, output, &v));
  assay_node_set_output(*out, 0, v);
  return assay_graph_insert(g, *out, g->n_nodes);
}

// A branch of If: nodes of its own, and one that reads `captured` of the graph around.
static assay_status_t add_branch(assay_node_t* owner, const char* name, assay_value_t* captured,
                                 assay_attr_t* attr) {
  assay_graph_t* g = NULL;
  assay_node_t* n = NULL;
  ASSAY_TRY(assay_graph_create(owner->graph->model, owner->graph, &g));
  g->owner = owner;
  g->name = name;
  char output[32];
  snprintf(output, sizeof output, "%s_out", name);
  ASSAY_TRY(add_node(g, "Neg", "", 1, &captured, 0, output, &n));
  ASSAY_TRY(set_outputs(g, 1, n->outputs));
  attr->name = name;
  attr->type = ASSAY_ATTR_GRAPH;
  attr->n = 1;
  attr->u.g = g;
  return NULL;
}

static assay_status_t add_function(assay_model_t* m, assay_function_t** out) {
  assay_arena_t* a = m->arena;
  assay_function_t* f = NULL;
  assay_value_t* x = NULL;
  assay_node_t* n = NULL;
  ASSAY_TRY(assay_arena_new(a, 1, sizeof *f, &f));
  f->name = "twice";
  f->domain = "mine";
  f->overload = f->doc = "";
  ASSAY_TRY(assay_arena_new(a, 1, sizeof *f->inputs, &f->inputs));
  f->inputs[0] = "x";
  f->n_inputs = 1;
  ASSAY_TRY(assay_arena_new(a, 1, sizeof *f->outputs, &f->outputs));
  f->outputs[0] = "y";
  f->n_outputs = 1;
  ASSAY_TRY(assay_arena_new(a, 1, sizeof *f->attr_names, &f->attr_names));
  f->attr_names[0] = "factor";
  f->n_attr_names = 1;
  ASSAY_TRY(assay_arena_new(a, 1, sizeof *f->opsets, &f->opsets));
  f->opsets[0] = (assay_opset_t){"", 17};
  f->n_opsets = 1;
  ASSAY_TRY(assay_graph_create(m, NULL, &f->body));
  ASSAY_TRY(assay_graph_add_value(f->body, "x", &x));
  ASSAY_TRY(set_inputs(f->body, 1, &x));
  ASSAY_TRY(add_node(f->body, "Scale", "", 1, &x, 1, "y", &n));
  n->attrs[0] = (assay_attr_t){
      .name = "factor", .doc = "", .ref = "factor", .type = ASSAY_ATTR_FLOAT, .n = 1};
  ASSAY_TRY(set_outputs(f->body, 1, n->outputs));
  ASSAY_TRY(assay_arena_new(a, 1, sizeof *m->functions, &m->functions));
  m->functions[0] = f;
  m->n_functions = 1;
  *out = f;
  return NULL;
}

static const char mapped[] = "bytes that lie in a mapping";

static assay_status_t fill(assay_model_t* m) {
  assay_arena_t* a = m->arena;
  assay_graph_t* g = NULL;
  assay_function_t* f = NULL;
  m->ir_version = 8;
  ASSAY_TRY(assay_arena_new(a, 2, sizeof *m->opsets, &m->opsets));
  m->opsets[0] = (assay_opset_t){"ai.onnx", 17};
  m->opsets[1] = (assay_opset_t){"mine", 1};
  m->n_opsets = 2;
  ASSAY_TRY(assay_arena_new(a, 1, sizeof *m->props, &m->props));
  m->props[0] = (assay_prop_t){"key", "value"};
  m->n_props = 1;
  assay_mapping_t* map = NULL;
  ASSAY_TRY(assay_mapping_copy(mapped, sizeof mapped, &map));
  m->extra = (assay_bytes_t){assay_mapping_data(map), 5};
  ASSAY_TRY(assay_model_take_mapping(m, map));
  ASSAY_TRY(add_function(m, &f));

  ASSAY_TRY(assay_graph_create(m, NULL, &g));
  m->graph = g;
  g->name = "main";
  g->extra = (assay_bytes_t){(const uint8_t*)"xyz", 3};
  assay_value_t *x = NULL, *c = NULL, *shape = NULL;
  ASSAY_TRY(assay_graph_add_value(g, "x", &x));
  ASSAY_TRY(assay_graph_add_value(g, "c", &c));
  ASSAY_TRY(set_inputs(g, 2, (assay_value_t*[]){x, c}));
  const assay_dim_t* n = assay_dim_symbol(m->dims, "N");
  const assay_dim_t* dims[3] = {n, assay_dim_add_i(m->dims, assay_dim_mul_i(m->dims, n, 2), 1),
                                assay_dim_const(m->dims, 8)};
  ASSAY_TRY(assay_valtype_tensor(m, ASSAY_TYPE_FLOAT, 3, dims, &x->declared));
  x->type = x->declared;
  ASSAY_TRY(assay_valtype_tensor(m, ASSAY_TYPE_BOOL, 0, NULL, &c->declared));
  ASSAY_TRY(assay_graph_add_value(g, "shape", &shape));
  ASSAY_TRY(add_tensor(shape, 2, (int64_t[]){0, -1}));

  assay_node_t *reshape = NULL, *branch = NULL, *call = NULL, *clip = NULL;
  ASSAY_TRY(add_node(g, "Reshape", "flat", 2, (assay_value_t*[]){x, shape}, 0, "r", &reshape));
  assay_value_t* r = reshape->outputs[0];
  const assay_dim_t* flat[2] = {n, NULL};
  ASSAY_TRY(assay_valtype_tensor(m, ASSAY_TYPE_FLOAT, 2, flat, &r->type));
  assay_content_t* content = NULL;
  ASSAY_TRY(assay_arena_new(a, 1, sizeof *content, &content));
  ASSAY_TRY(assay_arena_new(a, 1, sizeof *content->elems, &content->elems));
  content->rank = 1;
  content->n = 1;
  content->elems[0] = n;
  r->content = content;

  ASSAY_TRY(add_node(g, "If", "", 1, &c, 2, "z", &branch));
  ASSAY_TRY(add_branch(branch, "then_branch", r, &branch->attrs[0]));
  ASSAY_TRY(add_branch(branch, "else_branch", x, &branch->attrs[1]));

  assay_value_t* z = branch->outputs[0];
  ASSAY_TRY(add_node(g, "twice", "flat", 1, &z, 6, "t", &call));
  call->domain = "mine";
  call->function = f;
  static const int64_t ints[2] = {1, -2};
  static const assay_string_t strings[2] = {{"a\n", 2}, {"\"b", 2}};
  call->attrs[0] = (assay_attr_t){
      .name = "factor", .doc = "", .ref = "", .type = ASSAY_ATTR_FLOAT, .n = 1, .u.f = 0.5F};
  call->attrs[1] = (assay_attr_t){
      .name = "ints", .doc = "", .ref = "", .type = ASSAY_ATTR_INTS, .n = 2, .u.ints = ints};
  call->attrs[2] = (assay_attr_t){.name = "strings",
                                  .doc = "",
                                  .ref = "",
                                  .type = ASSAY_ATTR_STRINGS,
                                  .n = 2,
                                  .u.strings = strings};
  call->attrs[3] = (assay_attr_t){
      .name = "s", .doc = "", .ref = "", .type = ASSAY_ATTR_STRING, .n = 1, .u.s = {"text", 4}};
  assay_tensor_t* t = NULL;
  ASSAY_TRY(assay_tensor_scalar_f64(ASSAY_TYPE_FLOAT, 1.5, &t));
  ASSAY_TRY(assay_model_take_tensor(m, t));
  call->attrs[4] = (assay_attr_t){
      .name = "t", .doc = "", .ref = "", .type = ASSAY_ATTR_TENSOR, .n = 1, .u.t = t};
  call->attrs[5] = (assay_attr_t){.name = "type",
                                  .doc = "",
                                  .ref = "",
                                  .type = ASSAY_ATTR_TYPE_PROTO,
                                  .n = 1,
                                  .u.type = x->type};
  ASSAY_TRY(
      add_node(g, "Clip", "", 3, (assay_value_t*[]){call->outputs[0], NULL, z}, 0, "y", &clip));
  return set_outputs(g, 1, clip->outputs);
}

static assay_status_t make_full(assay_model_t** out) {
  assay_model_t* m = NULL;
  ASSAY_TRY(assay_model_create(&m));
  assay_status_t st = fill(m);
  if (!st) st = assay_dims_status(m->dims);
  if (st) return assay_model_release(m), st;
  *out = m;
  return NULL;
}

static const char full_text[] =
    "model ir 8 opset ai.onnx 17, mine 1\n"
    "graph main\n"
    "  input x: float[N, 2*N + 1, 8]\n"
    "  input c: bool[]\n"
    "  initializer shape: int64[2] {0, -1}\n"
    "  flat: r = Reshape(x, shape)  # float[N, ?] {N}\n"
    "  If_1: z = If<then_branch=graph then_branch, else_branch=graph else_branch>(c)\n"
    "    graph then_branch\n"
    "      Neg_0: then_branch_out = Neg(r)\n"
    "      output then_branch_out: ?\n"
    "    graph else_branch\n"
    "      Neg_0: else_branch_out = Neg(x)\n"
    "      output else_branch_out: ?\n"
    "  flat_2: t = mine.twice<factor=0.5, ints=[1, -2], strings=[\"a\\x0a\", \"\\\"b\"], "
    "s=\"text\", t=float[] {1.5}, type=float[N, 2*N + 1, 8]>(z)\n"
    "  Clip_3: y = Clip(t, \"\", z)\n"
    "  output y: ?\n"
    "function mine.twice<factor>(x) -> y opset ai.onnx 17\n"
    "  graph \n"
    "    input x: ?\n"
    "    Scale_0: y = Scale<factor=@factor>(x)\n"
    "    output y: ?\n";

static assay_model_t* full(void) {
  assay_model_t* m = NULL;
  assert_null(make_full(&m));
  return m;
}

static void assert_text(const assay_model_t* m, const char* expected) {
  assay_str_t text = {0};
  assert_null(assay_model_print(m, &text));
  assert_string_equal(assay_str_get(&text), expected);
  assay_str_deinit(&text);
}

static void assert_error(assay_status_t st, assay_code_t code, const char* part) {
  if (assay_status_code(st) != code || !strstr(assay_status_message(st), part))
    fail_msg("found code %d '%s', expected code %d with '%s'", (int)assay_status_code(st),
             assay_status_message(st), (int)code, part);
  assay_status_free(st);
}

// ---- making and asking ------------------------------------------------------------------------

static void test_full(void** state) {
  (void)state;
  assay_model_t* m = full();
  assert_null(assay_model_verify(m));
  assert_text(m, full_text);
  assert_int_equal(assay_model_opset(m, ""), 17);
  assert_int_equal(assay_model_opset(m, "ai.onnx"), 17);
  assert_int_equal(assay_model_opset(m, "mine"), 1);
  assert_int_equal(assay_model_opset(m, "theirs"), 0);
  const assay_node_t* call = m->graph->nodes[2];
  assert_ptr_equal(assay_node_attr(call, "ints"), &call->attrs[1]);
  assert_null(assay_node_attr(call, "none"));
  const assay_graph_t* sub = m->graph->nodes[1]->attrs[0].u.g;
  assert_null(assay_graph_find(sub, "r"));
  assert_ptr_equal(assay_graph_find_visible(sub, "r"), m->graph->nodes[0]->outputs[0]);
  assert_null(assay_graph_find_visible(sub, "else_branch_out"));
  // Counted.
  assay_model_release(assay_model_retain(m));
  assert_null(assay_model_verify(m));
  assay_model_release(m);
  assay_model_release(NULL);
}

static void test_names(void** state) {
  (void)state;
  assay_model_t* m = full();
  assay_value_t* v = NULL;
  assert_error(assay_graph_add_value(m->graph, "x", &v), ASSAY_CORRUPT, "'x'");
  assert_error(assay_graph_add_value(m->graph, "", &v), ASSAY_CORRUPT, "no name");
  assert_null(v);
  assert_null(assay_graph_new_value(m->graph, "free", &v));
  assert_string_equal(v->name, "free");
  const char* hints[] = {"free", "x", "then_branch_out", ""};  // the third is a subgraph's
  for (size_t i = 0; i < sizeof hints / sizeof *hints; i++) {
    assert_null(assay_graph_new_value(m->graph, hints[i], &v));
    assert_string_not_equal(v->name, hints[i]);
    assert_memory_equal(v->name, hints[i], strlen(hints[i]));
    assert_ptr_equal(assay_graph_find(m->graph, v->name), v);
  }
  assay_model_release(m);
}

static void test_labels(void** state) {
  (void)state;
  assay_model_t* m = NULL;
  assay_graph_t* g = NULL;
  assert_null(assay_model_create(&m));
  assert_null(assay_graph_create(m, NULL, &g));
  static const struct {
    const char *op, *name, *label;
  } rows[] = {{"Relu", "", "Relu_0"},   {"Relu", "a", "a"},   {"Relu", "a", "a_2"},
              {"Relu", "a_2", "a_2_2"}, {"Relu", "a", "a_3"}, {"Add", "Add_6", "Add_6"},
              {"Add", "", "Add_6_2"}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    assay_node_t* n = NULL;
    assert_null(assay_node_create(g, "", rows[i].op, rows[i].name, 0, 0, 0, &n));
    assert_string_equal(n->label, rows[i].label);
    assert_string_equal(n->name, rows[i].name);
    assert_int_equal(n->index, i);
  }
  assay_model_release(m);
}

static void test_edit(void** state) {
  (void)state;
  assay_model_t* m = full();
  assay_graph_t* g = m->graph;
  // r is made by another node, in the place of the first.
  assay_node_t *old = g->nodes[0], *fresh = NULL;
  assay_value_t* r = old->outputs[0];
  assert_null(assay_node_create(g, "", "Flatten", "", 1, 1, 0, &fresh));
  fresh->inputs[0] = g->inputs[0];
  assert_null(assay_graph_insert(g, fresh, 0));
  assay_node_set_output(fresh, 0, r);
  assay_graph_remove(g, 1);
  assert_ptr_equal(r->producer, fresh);
  assert_int_equal(g->n_nodes, 4);
  assert_null(assay_model_verify(m));
  // A constant in the place of a node.
  assay_graph_remove(g, 0);
  assert_null(r->producer);
  assert_error(assay_model_verify(m), ASSAY_INTERNAL, "'r'");
  assert_null(add_tensor(r, 1, (int64_t[]){5}));
  assert_null(add_tensor(r, 1, (int64_t[]){6}));
  assert_int_equal(g->n_initializers, 2);
  assert_int_equal(assay_i64(assay_value_constant(r))[0], 6);
  assert_null(assay_model_verify(m));
  assay_graph_remove(g, 99);  // past the end: nothing
  // Many nodes, in front.
  for (int i = 0; i < 100; i++) {
    assay_node_t* n = NULL;
    assert_null(assay_node_create(g, "", "Nop", "", 0, 0, 0, &n));
    assert_null(assay_graph_insert(g, n, 0));
  }
  assert_int_equal(g->n_nodes, 103);
  assert_string_equal(g->nodes[0]->label, "Nop_104");
  assert_null(assay_model_verify(m));
  // Setting another output lets go of the old one.
  assay_node_set_output(g->nodes[102], 0, NULL);
  assert_null(assay_graph_find(g, "y")->producer);
  assay_model_release(m);
}

static void test_depth(void** state) {
  (void)state;
  assay_model_t* m = NULL;
  assert_null(assay_model_create(&m));
  assay_status_t st = NULL;
  assay_graph_t* g = NULL;
  int depth = 0;
  for (; !st && depth < 1000; depth++) st = assay_graph_create(m, g, &g);
  assert_true(depth < 1000);
  assert_error(st, ASSAY_UNSUPPORTED, "nested");
  const assay_valtype_t* t = NULL;
  st = assay_valtype_unranked(m, ASSAY_TYPE_FLOAT, &t);
  for (depth = 0; !st && depth < 1000; depth++)
    st = assay_valtype_of(m, ASSAY_KIND_SEQUENCE, ASSAY_TYPE_UNDEFINED, t, &t);
  assert_true(depth < 1000);
  assert_error(st, ASSAY_UNSUPPORTED, "nested");
  assay_model_release(m);
}

static void test_types(void** state) {
  (void)state;
  assay_model_t* m = NULL;
  assert_null(assay_model_create(&m));
  const assay_valtype_t *t = NULL, *u = NULL;
  const assay_dim_t* dims[3] = {assay_dim_symbol(m->dims, "N"), NULL, assay_dim_const(m->dims, 4)};
  assert_string_equal(ASSAY_VALTYPE_TEXT(NULL), "?");
  assert_null(assay_valtype_tensor(m, ASSAY_TYPE_FLOAT16, 3, dims, &t));
  assert_string_equal(ASSAY_VALTYPE_TEXT(t), "float16[N, ?, 4]");
  char small[9];
  assert_string_equal(assay_valtype_text(t, small, sizeof small), "float16[");
  assert_null(assay_valtype_unranked(m, ASSAY_TYPE_INT64, &u));
  assert_string_equal(ASSAY_VALTYPE_TEXT(u), "int64[...]");
  assert_null(assay_valtype_of(m, ASSAY_KIND_SEQUENCE, ASSAY_TYPE_UNDEFINED, t, &u));
  assert_null(assay_valtype_of(m, ASSAY_KIND_OPTIONAL, ASSAY_TYPE_UNDEFINED, u, &u));
  assert_string_equal(ASSAY_VALTYPE_TEXT(u), "optional(seq(float16[N, ?, 4]))");
  assert_null(assay_valtype_of(m, ASSAY_KIND_MAP, ASSAY_TYPE_STRING, t, &u));
  assert_string_equal(ASSAY_VALTYPE_TEXT(u), "map(string, float16[N, ?, 4])");
  assert_null(assay_valtype_tensor(m, ASSAY_TYPE_FLOAT, 0, NULL, &u));
  assert_string_equal(ASSAY_VALTYPE_TEXT(u), "float[]");
  assert_error(assay_valtype_tensor(m, ASSAY_TYPE_FLOAT, 33, NULL, &u), ASSAY_UNSUPPORTED, "33");
  assert_error(assay_valtype_tensor(m, ASSAY_TYPE_FLOAT, -1, NULL, &u), ASSAY_UNSUPPORTED, "-1");
  assay_model_release(m);
}

// ---- copies -----------------------------------------------------------------------------------

static void test_clone(void** state) {
  (void)state;
  assay_model_t *m = full(), *copy = NULL;
  int64_t tensor_refs = m->tensors[0]->refs;
  assert_null(assay_model_clone(m, &copy));
  assert_null(assay_model_verify(copy));
  assert_text(copy, full_text);
  assert_int_equal(copy->n_values, m->n_values);
  // Values keep their ids; tensors and mapped bytes are shared, nothing else is.
  const assay_value_t *x = assay_graph_find(m->graph, "r"), *y = assay_graph_find(copy->graph, "r");
  assert_ptr_not_equal(x, y);
  assert_int_equal(x->id, y->id);
  assert_ptr_not_equal(x->name, y->name);
  assert_ptr_equal(assay_graph_find(copy->graph, "shape")->constant,
                   assay_graph_find(m->graph, "shape")->constant);
  assert_ptr_equal(copy->extra.data, m->extra.data);
  assert_ptr_not_equal(copy->graph->extra.data, m->graph->extra.data);
  assert_memory_equal(copy->graph->extra.data, "xyz", 3);
  assert_ptr_equal(copy->graph->nodes[2]->function, copy->functions[0]);
  // What a branch captures is the copy's.
  const assay_graph_t* sub = copy->graph->nodes[1]->attrs[0].u.g;
  assert_ptr_equal(sub->outer, copy->graph);
  assert_ptr_equal(sub->owner, copy->graph->nodes[1]);
  assert_ptr_equal(sub->nodes[0]->inputs[0], y);
  // The copy lives on alone, and gives new names and ids.
  assay_value_t* v = NULL;
  int n = m->n_values;
  assert_null(assay_graph_new_value(copy->graph, "r", &v));
  assert_int_equal(v->id, n);
  assay_node_t* node = NULL;
  assert_null(assay_node_create(copy->graph, "", "Relu", "flat", 0, 0, 0, &node));
  assert_string_not_equal(node->label, "flat");
  assert_string_not_equal(node->label, "flat_2");
  assert_int_equal(node->index, 4);
  assay_model_release(m);
  assert_null(assay_model_verify(copy));
  assert_text(copy, full_text);
  assert_true(copy->tensors[0]->refs <= tensor_refs);
  assert_memory_equal(copy->extra.data, mapped, 5);
  assay_model_release(copy);
}

// Each line once, no more of them than there is place for, and copies have them.
static void test_warnings(void** state) {
  (void)state;
  assay_model_t *m = NULL, *copy = NULL;
  assert_null(assay_model_create(&m));
  for (int i = 0; i < 2 * ASSAY_MAX_WARNINGS; i++) {
    assert_null(assay_model_warn(m, "value %d", i / 2));
    assert_true(m->n_warnings == (size_t)i / 2 + 1);
  }
  assert_string_equal(m->warnings[ASSAY_MAX_WARNINGS - 2], "value 30");
  assert_string_equal(m->warnings[ASSAY_MAX_WARNINGS - 1], "and more like these");
  assert_null(assay_model_warn(m, "another"));
  assert_int_equal(m->n_warnings, ASSAY_MAX_WARNINGS);
  assert_null(assay_graph_create(m, NULL, &m->graph));
  assert_null(assay_model_clone(m, &copy));
  assert_int_equal(copy->n_warnings, ASSAY_MAX_WARNINGS);
  assert_string_equal(copy->warnings[1], "value 1");
  assay_model_release(copy);
  assay_model_release(m);
}

static void test_clone_bad(void** state) {
  (void)state;
  assay_model_t *m = full(), *copy = NULL;
  // A node of the top graph that reads a branch's value.
  m->graph->nodes[3]->inputs[0] = m->graph->nodes[1]->attrs[0].u.g->outputs[0];
  assert_null(assay_model_clone(m, &copy));  // is met before, with an id: a copy as bad as this
  assert_error(assay_model_verify(copy), ASSAY_INTERNAL, "cannot see");
  assay_model_release(copy);
  assay_model_release(m);
  m = full();
  m->graph->nodes[0]->inputs[0] = m->graph->nodes[1]->attrs[0].u.g->outputs[0];
  assert_error(assay_model_clone(m, &copy), ASSAY_INTERNAL, "outside its graph");
  assay_model_release(m);
}

// ---- what the verifier finds ------------------------------------------------------------------

static assay_graph_t* branch_of(assay_model_t* m, int i) {
  return m->graph->nodes[1]->attrs[i].u.g;
}

static void swap_nodes(assay_model_t* m) {
  assay_node_t** n = m->graph->nodes;
  assay_node_t* t = n[2];
  n[2] = n[3];
  n[3] = t;
}
static void late_capture(assay_model_t* m) {
  branch_of(m, 0)->nodes[0]->inputs[0] = assay_graph_find(m->graph, "t");
}
static void foreign_capture(assay_model_t* m) {
  branch_of(m, 1)->nodes[0]->inputs[0] = branch_of(m, 0)->outputs[0];
}
static void foreign_input(assay_model_t* m) {
  m->graph->nodes[3]->inputs[0] = branch_of(m, 0)->outputs[0];
}
static void function_input(assay_model_t* m) {
  m->graph->nodes[3]->inputs[0] = m->functions[0]->body->inputs[0];
}
static void no_producer(assay_model_t* m) { assay_graph_find(m->graph, "z")->producer = NULL; }
static void wrong_index(assay_model_t* m) { assay_graph_find(m->graph, "z")->output_index = 1; }
static void same_output(assay_model_t* m) {
  m->graph->nodes[2]->outputs[0] = m->graph->nodes[1]->outputs[0];
}
static void output_is_input(assay_model_t* m) {
  assay_node_set_output(m->graph->nodes[2], 0, m->graph->inputs[0]);
}
static void same_id(assay_model_t* m) {
  assay_graph_find(m->graph, "z")->id = assay_graph_find(m->graph, "x")->id;
}
static void id_too_large(assay_model_t* m) { assay_graph_find(m->graph, "z")->id = 1000; }
static void renamed(assay_model_t* m) { assay_graph_find(m->graph, "z")->name = "x"; }
static void wrong_owner(assay_model_t* m) { branch_of(m, 0)->owner = m->graph->nodes[0]; }
static void wrong_outer(assay_model_t* m) { branch_of(m, 0)->outer = NULL; }
static void shared_graph(assay_model_t* m) {
  m->graph->nodes[1]->attrs[1].u.g = m->graph->nodes[1]->attrs[0].u.g;
}
static void null_graph(assay_model_t* m) { m->graph->nodes[1]->attrs[1].u.g = NULL; }
static void own_graph(assay_model_t* m) { m->graph->nodes[1]->attrs[1].u.g = m->graph; }
static void no_graph(assay_model_t* m) { m->graph = NULL; }
static void null_node(assay_model_t* m) { m->graph->nodes[2] = NULL; }
static void same_node(assay_model_t* m) { m->graph->nodes[3] = m->graph->nodes[2]; }
static void same_label(assay_model_t* m) { m->graph->nodes[2]->label = "flat"; }
static void node_elsewhere(assay_model_t* m) { m->graph->nodes[2]->graph = branch_of(m, 0); }
static void no_function(assay_model_t* m) { m->n_functions = 0; }
static void foreign_tensor(assay_model_t* m) { m->tensors[0] = m->tensors[1]; }
static void foreign_attr_tensor(assay_model_t* m) { m->tensors[1] = m->tensors[0]; }
static void no_tensor(assay_model_t* m) { assay_graph_find(m->graph, "shape")->constant = NULL; }
static void unmarked_input(assay_model_t* m) { m->graph->inputs[1]->is_input = false; }
static void twice_input(assay_model_t* m) { m->graph->inputs[1] = m->graph->inputs[0]; }
static void unmarked_output(assay_model_t* m) { m->graph->outputs[0]->is_output = false; }
static void null_output(assay_model_t* m) { m->graph->outputs[0] = NULL; }
static void function_arity(assay_model_t* m) { m->functions[0]->n_outputs = 0; }
static void function_names(assay_model_t* m) { m->functions[0]->inputs[0] = "other"; }
static void bad_rank(assay_model_t* m) {
  ((assay_valtype_t*)(uintptr_t)m->graph->inputs[0]->declared)->rank = 1000;
}

static const struct {
  void (*damage)(assay_model_t* m);
  const char* part;
} damages[] = {
    {swap_nodes, "'Clip_3' in graph 'main' reads 't' before it is made"},
    {late_capture, "'Neg_0' in graph 'then_branch' reads 't' before it is made"},
    {foreign_capture, "cannot see"},
    {foreign_input, "cannot see"},
    {function_input, "cannot see"},
    {no_producer, "'(none)'"},
    {wrong_index, "output 1"},
    {same_output, "there already"},
    {output_is_input, "is made by a node"},
    {same_id, "same id"},
    {id_too_large, "id 1000"},
    {renamed, "under its name"},
    {wrong_owner, "belongs to node 'flat'"},
    {wrong_outer, "belongs to node"},
    {shared_graph, "there already"},
    {null_graph, "is NULL"},
    {own_graph, "belongs to node"},
    {no_graph, "no graph"},
    {null_node, "NULL"},
    {same_node, "two nodes have the label"},
    {same_label, "two nodes have the label 'flat'"},
    {node_elsewhere, "is not of the graph"},
    {no_function, "function"},
    {foreign_tensor, "not owned"},
    {foreign_attr_tensor, "not owned"},
    {no_tensor, "no tensor"},
    {unmarked_input, "not marked"},
    {twice_input, "twice"},
    {unmarked_output, "not marked"},
    {null_output, "NULL"},
    {function_arity, "0"},
    {function_names, "'other'"},
    {bad_rank, "rank 1000"},
};

static void test_verify(void** state) {
  (void)state;
  for (size_t i = 0; i < sizeof damages / sizeof *damages; i++) {
    assay_model_t* m = full();
    // What is needed to take the model down in spite of the damage.
    assay_tensor_t* tensors[2] = {m->tensors[0], m->tensors[1]};
    damages[i].damage(m);
    assert_error(assay_model_verify(m), ASSAY_INTERNAL, damages[i].part);
    memcpy(m->tensors, tensors, sizeof tensors);
    assay_model_release(m);
  }
}

// ---- running out of memory --------------------------------------------------------------------

static assay_status_t make_clone_print(void) {
  assay_model_t *m = NULL, *copy = NULL;
  assay_str_t text = {0};
  ASSAY_TRY(make_full(&m));
  assay_status_t st = assay_model_clone(m, &copy);
  if (!st) st = assay_model_verify(copy);
  if (!st) st = assay_model_print(copy, &text);
  assay_value_t* v = NULL;
  if (!st) st = assay_graph_new_value(m->graph, "x", &v);
  assay_str_deinit(&text);
  assay_model_release(copy);
  assay_model_release(m);
  return st;
}

static void test_no_memory(void** state) {
  (void)state;
  int64_t live = assay_alloc_live();
  for (int sticky = 0; sticky < 2; sticky++) {
    for (uint64_t nth = 1;; nth++) {
      (void)assay_alloc_fail_after(nth, sticky);
      assay_status_t st = make_clone_print();
      uint64_t made = assay_alloc_fail_after(0, false);
      assay_code_t code = assay_status_code(st);
      assay_status_free(st);
      assert_int_equal(assay_alloc_live(), live);
      if (made < nth) {
        assert_int_equal(code, ASSAY_OK);
        break;
      }
      assert_int_equal(code, ASSAY_NO_MEMORY);
      assert_true(nth < 10000);
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_full),      cmocka_unit_test(test_names),
      cmocka_unit_test(test_labels),    cmocka_unit_test(test_edit),
      cmocka_unit_test(test_depth),     cmocka_unit_test(test_types),
      cmocka_unit_test(test_clone),     cmocka_unit_test(test_warnings),
      cmocka_unit_test(test_clone_bad), cmocka_unit_test(test_verify),
      cmocka_unit_test(test_no_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
