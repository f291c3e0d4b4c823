// What a plan file may say of a model's nodes and layers: what no build writes is refused before
// anything runs, whatever the file's checksum.
#include "onnx/onnx.h"
#include "passes/graph_case.h"
#include "plan/plan.h"

// The product p is read twice.
static const graph_case_t network = {
    "network",
    17,
    {"x float[2,8]"},
    {"w float[8,8]", "b float[8]"},
    {"MatMul product x w -> p", "Add sum p b -> s", "Relu act s -> r", "Mul twice r p -> m",
     "Flatten flat m -> y"},
    "y"};
enum { N_NODES = 5 };
static const assay_onnx_version_t versions[N_NODES] = {
    {"MatMul", 13}, {"Add", 14}, {"Relu", 14}, {"Mul", 14}, {"Flatten", 13}};

static assay_model_t* model(assay_tensor_t** in) { return graph_case_model(&network, in); }

static void refused(assay_status_t st, const char* part) {
  if (!st) fail_msg("'%s' is taken", part);
  if (!strstr(assay_status_message(st), part)) fail_msg("%s", assay_status_message(st));
  assert_int_not_equal(assay_status_code(st), ASSAY_INTERNAL);
  assay_status_free(st);
}

// ---- nodes and their versions -------------------------------------------------------------------

static void versions_are_those_of_the_nodes(void** state) {
  (void)state;
  assay_tensor_t* in[GRAPH_CASE_ROWS] = {NULL};
  assay_onnx_version_t other[N_NODES + 1];
  assay_model_t* m = model(in);
  op_case_ok(assay_onnx_check_versions(m, versions, N_NODES));
  for (size_t i = 0; i < m->graph->n_nodes; i++) assert_non_null(m->graph->nodes[i]->op);
  refused(assay_onnx_check_versions(m, versions, N_NODES - 1), "other nodes");
  refused(assay_onnx_check_versions(m, NULL, 0), "other nodes");
  memcpy(other, versions, sizeof versions);
  other[N_NODES] = versions[0];
  refused(assay_onnx_check_versions(m, other, N_NODES + 1), "other nodes");
  other[2].op_type = "Sigmoid";
  refused(assay_onnx_check_versions(m, other, N_NODES), "other nodes");
  other[2] = (assay_onnx_version_t){"Relu", 0};
  refused(assay_onnx_check_versions(m, other, N_NODES), "act");
  other[2] = (assay_onnx_version_t){"Relu", INT64_MAX};
  refused(assay_onnx_check_versions(m, other, N_NODES), "act");
  assay_model_release(m);
  graph_case_release(in);
}

// Every node in turn without its inputs, and without its outputs.
static void nodes_have_what_their_operators_take(void** state) {
  (void)state;
  for (size_t i = 0; i < N_NODES; i++)
    for (int outputs = 0; outputs < 2; outputs++) {
      assay_tensor_t* in[GRAPH_CASE_ROWS] = {NULL};
      assay_model_t* m = model(in);
      assay_node_t* n = m->graph->nodes[i];
      *(outputs ? &n->n_outputs : &n->n_inputs) = 0;
      refused(assay_onnx_check_versions(m, versions, N_NODES), n->label);
      assay_model_release(m);
      graph_case_release(in);
    }
}

// ---- layers -------------------------------------------------------------------------------------

static assay_status_t restore(assay_model_t* m, const size_t* nodes, size_t n) {
  assay_layer_cut_t cuts[N_NODES + 1];
  assay_plan_t* plan = NULL;
  for (size_t i = 0; i < n; i++)
    cuts[i] = (assay_layer_cut_t){nodes[i], ASSAY_FORMAT_FP32, ASSAY_FORMAT_FP32, "as declared"};
  assay_status_t st = assay_plan_restore(m, cuts, n, 1, &plan);
  assay_plan_destroy(st ? NULL : plan);
  return st;
}

static void layers_hide_what_they_alone_read(void** state) {
  (void)state;
  static const struct {
    size_t nodes[N_NODES + 1], n;
    bool fits;
  } rows[] = {
      {{1, 1, 1, 1, 1}, 5, true}, {{1, 2, 1, 1}, 4, true},  {{1, 3, 1}, 3, true},
      {{1, 4}, 2, true},          {{4, 1}, 2, true},        {{5}, 1, true},
      {{2, 1, 1, 1}, 4, false},  // the product is read behind the second layer, too
      {{3, 1, 1}, 3, false},      {{1, 1, 1, 1}, 4, false}, {{1, 1, 1, 1, 2}, 5, false},
      {{0, 5}, 2, false},         {{5, 1}, 2, false},       {{SIZE_MAX, 6}, 2, false},
  };
  assay_tensor_t* in[GRAPH_CASE_ROWS] = {NULL};
  assay_model_t* m = model(in);
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    assay_status_t st = restore(m, rows[i].nodes, rows[i].n);
    if (!st != rows[i].fits) fail_msg("row %zu: %s", i, st ? assay_status_message(st) : "taken");
    if (st) assert_int_equal(assay_status_code(st), ASSAY_CORRUPT);
    assay_status_free(st);
  }
  assay_model_release(m);
  graph_case_release(in);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(versions_are_those_of_the_nodes),
                                     cmocka_unit_test(nodes_have_what_their_operators_take),
                                     cmocka_unit_test(layers_hide_what_they_alone_read)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
