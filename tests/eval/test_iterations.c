// Random operators in loops draw other numbers in every iteration, and the same ones in truth,
// native mode, the emu backend and the account's local truth.
#include "account/account.h"
#include "base/random.h"
#include "passes/graph_case.h"

enum { TRIPS = 3, LENGTH = 5 };

static void set_graph(assay_node_t* n, const char* name, assay_graph_t* body) {
  assay_attr_t* a = &n->attrs[n->n_attrs++];
  *a = (assay_attr_t){
      .name = name, .doc = "", .ref = "", .type = ASSAY_ATTR_GRAPH, .n = 1, .u.g = body};
  body->owner = n;
}

static assay_graph_t* new_body(assay_model_t* m, assay_graph_t* outer, const char* name) {
  assay_graph_t* g = NULL;
  op_case_ok(assay_graph_create(m, outer, &g));
  g->name = name;
  g->inputs = op_case_list(m, 4);
  return g;
}

static void body_input(assay_graph_t* g, const char* name, assay_type_t type, int rank) {
  assay_value_t* v = NULL;
  const assay_dim_t* dims[1] = {NULL};
  op_case_ok(assay_graph_add_value(g, name, &v));
  op_case_ok(assay_valtype_tensor(g->model, type, rank, dims, &v->declared));
  v->is_input = true;
  g->inputs[g->n_inputs++] = v;
}

// A Loop whose body runs `node` ("RandomUniform r -> NAME_r | ..."), or, if inner, holds another
// such Loop. Its scan output is NAME.
static void add_loop(assay_graph_t* g, const char* name, const char* node, const char* made,
                     const char* inner) {
  char row[128], iteration[32], cond[32], same[32], outputs[64];
  snprintf(row, sizeof row, "Loop %s trips _ -> %s", name, name);
  assay_node_t* loop = graph_case_node(g, row, 17);
  snprintf(iteration, sizeof iteration, "%s_i", name);
  snprintf(cond, sizeof cond, "%s_c", name);
  snprintf(same, sizeof same, "%s_same", name);
  assay_graph_t* body = new_body(g->model, g, "body");
  body_input(body, iteration, ASSAY_TYPE_INT64, 0);
  body_input(body, cond, ASSAY_TYPE_BOOL, 0);
  snprintf(row, sizeof row, "Identity %s %s -> %s", same, cond, same);
  graph_case_node(body, row, 17);
  if (inner)
    add_loop(body, inner, node, made, NULL);
  else
    graph_case_node(body, node, 17);
  snprintf(outputs, sizeof outputs, "%s %s", same, inner ? inner : made);
  graph_case_outputs(body, outputs);
  set_graph(loop, "body", body);
}

static void add_scan(assay_graph_t* g) {
  assay_node_t* scan = graph_case_node(g, "Scan scan xs -> scanned | num_scan_inputs=1", 17);
  assay_graph_t* body = new_body(g->model, g, "body");
  body_input(body, "row", ASSAY_TYPE_FLOAT, 1);
  graph_case_node(body, "RandomNormalLike rs row -> drawn", 17);
  graph_case_outputs(body, "drawn");
  set_graph(scan, "body", body);
}

// An If is not a loop: it draws what its node would draw in any iteration of what is around it.
static void add_if(assay_graph_t* g) {
  assay_node_t* n = graph_case_node(g, "If if yes -> chosen", 17);
  static const char* const names[] = {"then_branch", "else_branch"};
  for (int i = 0; i < 2; i++) {
    assay_graph_t* body = new_body(g->model, g, names[i]);
    graph_case_node(
        body, i ? "RandomUniform branch_e -> e | shape=5" : "RandomUniform branch -> t | shape=5",
        17);
    graph_case_outputs(body, i ? "e" : "t");
    set_graph(n, names[i], body);
  }
}

enum { TOP, LOOPED, SEEDED, NESTED, SCANNED, CHOSEN, N_OUTPUTS };

static assay_model_t* make_model(assay_tensor_t** in) {
  static const graph_case_t row = {
      "loops", 17, {"xs float[3,5]"}, {"trips int64[] 3", "yes bool[] 1"}, {NULL}, ""};
  assay_model_t* m = graph_case_begin(&row, in);
  assay_graph_t* g = m->graph;
  graph_case_node(g, "RandomUniform top -> first | shape=5", 17);
  add_loop(g, "looped", "RandomUniform r -> drawn_r | shape=5", "drawn_r", NULL);
  add_loop(g, "seeded", "RandomUniform s -> drawn_s | shape=5 seed=4", "drawn_s", NULL);
  add_loop(g, "nested", "RandomNormal n -> drawn_n | shape=5", "drawn_n", "within");
  add_scan(g);
  add_if(g);
  graph_case_outputs(g, "first looped seeded nested scanned chosen");
  op_case_ok(assay_onnx_check(m));
  op_case_ok(assay_infer_model(m));
  return m;
}

static void run(assay_model_t* m, assay_tensor_t* const* in, assay_mode_t mode, uint64_t seed,
                assay_tensor_t** out) {
  assay_evaluator_t* evaluator = NULL;
  assay_evaluator_config_t config = {.mode = mode, .seed = seed, .verify = true};
  op_case_ok(assay_evaluator_create_run(m, &config, in, &evaluator));
  for (size_t i = 0; i < N_OUTPUTS; i++)
    out[i] = assay_tensor_retain(assay_evaluator_get(evaluator, m->graph->outputs[i]));
  assay_evaluator_destroy(evaluator);
}

static void release(assay_tensor_t** t) {
  for (size_t i = 0; i < N_OUTPUTS; i++) assay_tensor_release(t[i]);
}

// Rows of five: no two of them the same.
static void rows_differ(const assay_tensor_t* t, int64_t rows) {
  assert_int_equal(t->size, rows * LENGTH);
  for (int64_t i = 0; i < rows; i++)
    for (int64_t k = 0; k < i; k++)
      assert_memory_not_equal(assay_f64(t) + i * LENGTH, assay_f64(t) + k * LENGTH,
                              LENGTH * sizeof(double));
}

static bool same(const assay_tensor_t* a, const assay_tensor_t* b, bool to_fp32) {
  for (int64_t i = 0; i < a->size; i++) {
    double x = assay_f64(a)[i];
    if ((to_fp32 ? (double)(float)x : x) != assay_f64(b)[i]) return false;
  }
  return a->size == b->size;
}

static void iterations_differ(void** state) {
  (void)state;
  assay_tensor_t *in[GRAPH_CASE_ROWS] = {NULL}, *truth[N_OUTPUTS], *again[N_OUTPUTS],
                 *native[N_OUTPUTS];
  assay_model_t* m = make_model(in);
  run(m, in, ASSAY_MODE_TRUTH, 1, truth);
  run(m, in, ASSAY_MODE_TRUTH, 2, again);
  run(m, in, ASSAY_MODE_NATIVE, 1, native);
  rows_differ(truth[LOOPED], TRIPS);
  rows_differ(truth[SEEDED], TRIPS);
  rows_differ(truth[NESTED], TRIPS * TRIPS);
  rows_differ(truth[SCANNED], TRIPS);
  for (size_t i = 0; i < N_OUTPUTS; i++) {
    assert_true(same(truth[i], native[i], true));
    assert_int_equal(same(truth[i], again[i], false), i == SEEDED);  // a seed of its own
  }
  // Outside of loops, and in an If, the stream is the node's own.
  for (int k = 0; k < 2; k++) {
    assay_random_t r = assay_random_make(1, k ? "branch" : "top", 0);
    for (int64_t i = 0; i < LENGTH; i++)
      assert_true(assay_f64(truth[k ? CHOSEN : TOP])[i] == assay_random_uniform(&r, (uint64_t)i));
  }
  release(truth);
  release(again);
  release(native);
  assay_model_release(m);
  graph_case_release(in);
}

static void backends_draw_the_same(void** state) {
  (void)state;
  assay_tensor_t *in[GRAPH_CASE_ROWS] = {NULL}, *truth[N_OUTPUTS];
  assay_model_t* m = make_model(in);
  assay_plan_t* plan = NULL;
  assay_account_t* a = NULL;
  assay_precision_t p = {.format = ASSAY_FORMAT_FP32};
  run(m, in, ASSAY_MODE_TRUTH, 1, truth);
  op_case_ok(assay_plan_create(m, &p, &(assay_plan_options_t){0}, 1, &plan));
  op_case_ok(assay_account_create(plan, &assay_backend_emu, &(assay_account_options_t){0}, &a));
  op_case_ok(assay_account_run(a, in));
  for (size_t i = 0; i < N_OUTPUTS; i++)
    assert_true(same(truth[i], assay_account_engine_output(a, i), true));
  // The local truth of each node drew the same numbers: all that is left is one rounding.
  for (size_t i = 0; i < assay_account_layer_count(a); i++) {
    const assay_layer_account_t* l = assay_account_layer(a, i);
    if (l->judged.exact != l->judged.elements)
      fail_msg("%s: %lld of %lld elements", l->node->label, (long long)l->judged.exact,
               (long long)l->judged.elements);
  }
  assay_account_destroy(a);
  assay_plan_destroy(plan);
  release(truth);
  assay_model_release(m);
  graph_case_release(in);
}

// What a loop that never runs would have collected has the sizes that its states have.
static void no_iteration(void** state) {
  (void)state;
  static const graph_case_t row = {"empty", 17, {"n int64[] 0", "s float[3]"}, {NULL}, {NULL}, ""};
  assay_tensor_t* in[GRAPH_CASE_ROWS] = {NULL};
  assay_model_t* m = graph_case_begin(&row, in);
  assay_graph_t* g = m->graph;
  g->inputs[1]->declared = op_case_type(m, in[1], true);
  assay_node_t* loop = graph_case_node(g, "Loop loop n _ s -> last all", 17);
  assay_graph_t* body = new_body(m, g, "body");
  body_input(body, "i", ASSAY_TYPE_INT64, 0);
  body_input(body, "c", ASSAY_TYPE_BOOL, 0);
  assay_value_t* v = NULL;
  op_case_ok(assay_graph_add_value(body, "x", &v));
  v->is_input = true;
  body->inputs[body->n_inputs++] = v;
  graph_case_node(body, "Identity c1 c -> c1", 17);
  graph_case_node(body, "Neg x1 x -> x1", 17);
  graph_case_node(body, "Neg x2 x -> x2", 17);
  graph_case_outputs(body, "c1 x1 x2");
  set_graph(loop, "body", body);
  graph_case_outputs(g, "last all");
  op_case_ok(assay_onnx_check(m));
  op_case_ok(assay_infer_model(m));
  assay_evaluator_t* evaluator = NULL;
  const assay_evaluator_config_t config = {.verify = true};
  op_case_ok(assay_evaluator_create_run(m, &config, in, &evaluator));
  const assay_tensor_t* all = assay_evaluator_get(evaluator, g->outputs[1]);
  assert_int_equal(all->rank, 2);
  assert_int_equal(all->dims[0], 0);
  assert_int_equal(all->dims[1], 3);
  assay_evaluator_destroy(evaluator);
  assay_model_release(m);
  graph_case_release(in);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(iterations_differ),
                                     cmocka_unit_test(backends_draw_the_same),
                                     cmocka_unit_test(no_iteration)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
