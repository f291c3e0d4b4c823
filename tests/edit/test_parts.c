// Parts of models, single nodes of them, constants, sparse and stripped weights: without a file.
#include "edit/capability.h"
#include "edit/cut.h"
#include "edit/fold_constants.h"
#include "edit/lint.h"
#include "edit/one_node.h"
#include "edit/unbounded.h"
#include "edit/weights/strip.h"
#include "onnx/load.h"
#include "onnx/onnx.h"
#include "passes/graph_case.h"

#define CHAIN                                                                                     \
  {                                                                                               \
    "chain", 17, {"x float[2,4]"}, {"c float[4]", "d float[4]"},                                  \
        {"Relu r x -> a", "Add p c d -> k", "Mul m a k -> b", "Neg n b -> y", "Abs idle a -> z"}, \
        "y"                                                                                       \
  }

// Operators of the main graph, in order.
static const char* ops_of(const assay_model_t* m) {
  static char text[256];
  text[0] = 0;
  for (size_t i = 0; i < m->graph->n_nodes; i++) {
    strcat(text, i ? " " : "");
    strcat(text, m->graph->nodes[i]->op_type);
  }
  return text;
}

// What a reader of the written model makes of it.
static assay_model_t* reread(const assay_model_t* m) {
  uint8_t* bytes = NULL;
  size_t size = 0;
  assay_model_t *read = NULL, *ready = NULL;
  op_case_ok(assay_onnx_write_bytes(m, &bytes, &size));
  op_case_ok(assay_onnx_read_bytes(bytes, size, NULL, &read));
  op_case_ok(assay_onnx_prepare(read, 0, NULL, &ready));
  assay_free(bytes);
  assay_model_release(read);
  return ready;
}

static void refuse(assay_status_t st, assay_code_t code, const char* part) {
  assert_non_null(st);
  assert_int_equal(assay_status_code(st), code);
  if (!strstr(assay_status_message(st), part)) fail_msg("%s", assay_status_message(st));
  assay_status_free(st);
}

// ---- parts --------------------------------------------------------------------------------------

static void test_part(void** state) {
  (void)state;
  const graph_case_t row = CHAIN;
  assay_tensor_t* in[GRAPH_CASE_ROWS] = {0};
  assay_model_t *m = graph_case_model(&row, in), *out = NULL;
  const assay_part_end_t from = {.name = "a"}, to = {.name = "b"},
                         typed = {.name = "a",
                                  .type = {ASSAY_TYPE_FLOAT, true, 2, (const char*[]){"N", "4"}}};
  assay_str_t notes = {0};
  assay_part_t part = {.in = &from, .n_in = 1, .out = &to, .n_out = 1};
  op_case_ok(assay_part_take(m, &part, m, &notes, &out));
  assert_string_equal(ops_of(out), "Add Mul");
  assert_int_equal(notes.len, 0);
  assay_model_t* again = reread(out);
  assert_string_equal(ASSAY_VALTYPE_TEXT(again->graph->inputs[0]->declared), "float[2, 4]");
  assay_model_release(again);
  assay_model_release(out);

  part.in = &typed;
  op_case_ok(assay_part_take(m, &part, m, &notes, &out));
  assert_string_equal(ASSAY_VALTYPE_TEXT(out->graph->inputs[0]->declared), "float[N, 4]");
  assay_model_release(out);

  // Inputs that are needed all the same stay, and are told.
  part = (assay_part_t){
      .in = &to, .n_in = 1, .out = (assay_part_end_t[]){{.name = "y"}, {.name = "z"}}, .n_out = 2};
  op_case_ok(assay_part_take(m, &part, m, &notes, &out));
  assert_string_equal(ops_of(out), "Relu Neg Abs");
  assert_string_equal(assay_str_get(&notes),
                      "outputs depend on input 'x', too: it stays an input\n");
  assay_model_release(out);

  part = (assay_part_t){.in = (assay_part_end_t[]){{.name = "c"}}, .n_in = 1, .keep_out = true};
  refuse(assay_part_take(m, &part, m, &notes, &out), ASSAY_INVALID_ARGUMENT, "'c' is a constant");
  assay_str_deinit(&notes);
  op_case_ok(assay_model_clone(m, &out));
  op_case_ok(assay_cut_clean(out));
  assert_string_equal(ops_of(out), "Relu Add Mul Neg");
  assay_model_release(out);
  assay_model_release(m);
  graph_case_release(in);
}

static void test_insert(void** state) {
  (void)state;
  static const struct {
    const char *op, *in, *out, *after;
    assay_code_t code;
    const char* why;
  } rows[] = {
      {"Exp", "a", "b", "Relu Exp Neg", ASSAY_OK, NULL},
      {"Exp", "b", "b", "Relu Add Mul Exp Neg", ASSAY_OK, NULL},
      {"Exp", "y", "y", "Relu Add Mul Neg Exp", ASSAY_OK, NULL},
      {"Exp", "x", "x", "Exp Relu Add Mul Neg", ASSAY_OK, NULL},
      {"Exp", "y", "a", NULL, ASSAY_CORRUPT, "is cyclic"},
      {"Exp", "a", "x", NULL, ASSAY_INVALID_ARGUMENT, "'x' is an input of the model"},
      {"Exp", "aa", "b", NULL, ASSAY_NOT_FOUND, "'aa'"},
  };
  const graph_case_t row = CHAIN;
  assay_tensor_t* in[GRAPH_CASE_ROWS] = {0};
  assay_model_t* m = graph_case_model(&row, in);
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    const assay_part_node_t node = {.op_type = rows[i].op,
                                    .name = "new",
                                    .inputs = &rows[i].in,
                                    .outputs = &rows[i].out,
                                    .n_inputs = 1,
                                    .n_outputs = 1};
    assay_model_t* out = NULL;
    assay_status_t st = assay_part_insert(m, &node, &out);
    if (rows[i].code) {
      refuse(st, rows[i].code, rows[i].why);
      continue;
    }
    op_case_ok(st);
    assert_string_equal(ops_of(out), rows[i].after);
    op_case_ok(assay_model_verify(out));
    assay_model_t* again = reread(out);
    assert_string_equal(again->graph->outputs[0]->name, "y");
    assay_model_release(again);
    assay_model_release(out);
  }
  assay_model_release(m);
  graph_case_release(in);
}

// ---- constants ----------------------------------------------------------------------------------

static void test_fold(void** state) {
  (void)state;
  static const struct {
    assay_fold_requests_t requests;
    const char* after;
  } rows[] = {
      {{0}, "Relu Mul Neg"},
      {{.has_threshold = true, .max_bytes = 16}, "Relu Mul Neg"},
      {{.has_threshold = true, .max_bytes = 15}, "Relu Add Mul Neg"},
  };
  const graph_case_t row = CHAIN;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    assay_tensor_t* in[GRAPH_CASE_ROWS] = {0};
    assay_model_t *m = graph_case_model(&row, in), *out = NULL;
    op_case_ok(assay_fold_constants(m, &rows[i].requests, &out));
    assert_string_equal(ops_of(out), rows[i].after);
    assert_int_equal(assay_model_count_nodes(m), 5);
    assay_model_release(out);
    assay_model_release(m);
    graph_case_release(in);
  }
}

// ---- nodes --------------------------------------------------------------------------------------

static void test_one_node(void** state) {
  (void)state;
  const graph_case_t row = CHAIN;
  assay_tensor_t* in[GRAPH_CASE_ROWS] = {0};
  assay_model_t *m = graph_case_model(&row, in), *one = NULL;
  assay_one_node_t* o = NULL;
  assay_value_t* const* reads;
  size_t n;
  op_case_ok(assay_one_node_create(m, &o));
  // Of any node, in any order.
  for (int k = 3; k >= 0; k--) {
    op_case_ok(assay_one_node_inputs(o, m->graph->nodes[k], &reads, &n));
    assert_int_equal(n, k == 1 ? 0 : k == 2 ? 2 : 1);
    const assay_valtype_t* types[2] = {n > 0 ? reads[0]->type : NULL,
                                       n > 1 ? reads[1]->type : NULL};
    op_case_ok(assay_one_node_check(o, m->graph->nodes[k]));
    op_case_ok(assay_one_node_prepare(o, m->graph->nodes[k], types, &one));
    assert_int_equal(one->graph->n_nodes, 1);
    assert_int_equal(one->graph->n_inputs, n);
    assay_model_release(one);
  }
  op_case_ok(assay_one_node_inputs(o, m->graph->nodes[3], &reads, &n));
  op_case_ok(assay_one_node_prepare(o, m->graph->nodes[3], &reads[0]->type, &one));
  assay_tensor_t *x = NULL, *y = NULL;
  op_case_ok(assay_tensor_create(ASSAY_TYPE_FLOAT, 2, (int64_t[]){2, 4}, &x));
  for (int i = 0; i < 8; i++) assay_f64(x)[i] = i;
  op_case_ok(assay_one_node_run(one, &x, &y));
  for (int i = 0; i < 8; i++) assert_true(assay_f64(y)[i] == -i);
  assay_tensor_release(x);
  assay_tensor_release(y);
  assay_model_release(one);
  assay_one_node_destroy(o);
  assay_model_release(m);
  graph_case_release(in);
}

static void test_capability(void** state) {
  (void)state;
  const graph_case_t row = CHAIN;
  assay_tensor_t* in[GRAPH_CASE_ROWS] = {0};
  assay_model_t *m = graph_case_model(&row, in), *part = NULL;
  assay_capability_t c = {0};
  op_case_ok(assay_capability_find(m, &c));
  assert_int_equal(c.n_unsupported, 0);
  assay_capability_deinit(&c);
  m->graph->nodes[2]->op_type = "Mull";
  m->graph->nodes[2]->op = NULL;
  m->graph->nodes[2]->schema = NULL;
  op_case_ok(assay_capability_find(m, &c));
  assert_int_equal(c.n_unsupported, 1);
  assert_non_null(strstr(c.reasons[2], "unknown operator"));
  op_case_ok(assay_capability_cut(&c, m, 0, 2, &part));
  assert_string_equal(ops_of(part), "Relu Add");
  assert_int_equal(part->graph->n_outputs, 2);
  assay_model_release(part);
  op_case_ok(assay_capability_cut(&c, m, 3, 5, &part));
  assert_string_equal(ops_of(part), "Neg Abs");
  assert_int_equal(part->graph->n_inputs, 2);
  assay_model_release(part);
  assay_capability_deinit(&c);
  assay_model_release(m);
  graph_case_release(in);
}

// ---- weights ------------------------------------------------------------------------------------

static void test_sparse(void** state) {
  (void)state;
  const graph_case_t row = {"weights",
                            17,
                            {"x float[2,4]"},
                            {"w float[4,3] 1 -2 3 0 5 -6 -4 1 2 8 0 1", "v float[3,6]"},
                            {"MatMul m x w -> a", "MatMul k a v -> y"},
                            "y"};
  const double after[12] = {0, -2, 3, 0, 5, -6, -4, 0, 0, 8, 0, 0};
  assay_tensor_t* in[GRAPH_CASE_ROWS] = {0};
  assay_model_t* m = graph_case_model(&row, in);
  assay_sparse_weight_t* list = NULL;
  assay_tensor_t* wide = NULL;
  size_t n = 0;
  bool sparse = true, found[1] = {false};
  op_case_ok(assay_sparsity_find(m, &list, &n));
  assert_int_equal(n, 2);
  assert_true(list[0].fits && list[0].axis == 0 && !list[1].fits);
  op_case_ok(assay_sparsity_check(&list[0], &sparse));
  assert_false(sparse);
  op_case_ok(assay_sparsity_prune(&list[0]));
  op_case_ok(assay_sparsity_check(&list[0], &sparse));
  assert_true(sparse);
  op_case_ok(assay_tensor_widen(list[0].value->constant, &wide));
  for (int i = 0; i < 12; i++) assert_true(assay_f64(wide)[i] == after[i]);
  assay_tensor_release(wide);

  op_case_ok(assay_strip_weights(m, (const char*[]){"v"}, 1, found, &n));
  assert_int_equal(n, 1);
  assert_true(found[0] && list[0].value->is_stripped);
  assert_string_equal(list[0].value->tensor_doc, "TRT_WEIGHTLESS/SPARSE_2_4");
  uint8_t* bytes = NULL;
  size_t size = 0;
  assay_model_t* read = NULL;
  op_case_ok(assay_onnx_write_bytes(m, &bytes, &size));
  refuse(assay_onnx_read_bytes(bytes, size, NULL, &read), ASSAY_UNSUPPORTED,
         "initializer 'w': its data were stripped");
  assay_free(bytes);
  op_case_ok(assay_strip_fill(m, 1, &n));
  assert_int_equal(n, 1);
  op_case_ok(assay_sparsity_check(&list[0], &sparse));
  assert_true(sparse);
  assay_model_release(reread(m));
  assay_model_release(m);
  graph_case_release(in);
}

// ---- without memory -----------------------------------------------------------------------------

static assay_status_t do_all(assay_model_t* m, assay_tensor_t* const* in) {
  assay_capability_t c = {0};
  assay_lint_t lint = {0};
  assay_model_t* out = NULL;
  assay_str_t notes = {0};
  const assay_part_t part = {
      .in = (assay_part_end_t[]){{.name = "a"}}, .n_in = 1, .keep_out = true};
  assay_status_t st = assay_capability_find(m, &c);
  assay_capability_deinit(&c);
  if (!st) st = assay_part_take(m, &part, m, &notes, &out);
  assay_str_deinit(&notes);
  assay_model_release(out);
  out = NULL;
  if (!st) st = assay_fold_constants(m, &(assay_fold_requests_t){0}, &out);
  assay_model_release(out);
  if (!st) st = assay_lint_init(&lint);
  if (!st) st = assay_lint_check(m, &lint);
  if (!st) st = assay_lint_run(m, in, &lint);
  assay_lint_deinit(&lint);
  return st;
}

// Every allocation fails once: each time that is said, and nothing is left behind.
static void test_no_memory(void** state) {
  (void)state;
  const graph_case_t row = CHAIN;
  assay_tensor_t* in[GRAPH_CASE_ROWS] = {0};
  assay_model_t* m = graph_case_model(&row, in);
  op_case_ok(do_all(m, in));
  const int64_t live = assay_alloc_live();
  bool done = false;
  for (uint64_t nth = 1; !done; nth++) {
    assay_alloc_fail_after(nth, false);
    assay_status_t st = do_all(m, in);
    done = assay_alloc_fail_after(0, false) < nth;
    // Some do without what they could not have.
    if (st) assert_int_equal(assay_status_code(st), ASSAY_NO_MEMORY);
    assay_status_free(st);
    assert_int_equal(assay_alloc_live(), live);
  }
  assay_model_release(m);
  graph_case_release(in);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_part),       cmocka_unit_test(test_insert),
      cmocka_unit_test(test_fold),       cmocka_unit_test(test_one_node),
      cmocka_unit_test(test_capability), cmocka_unit_test(test_sparse),
      cmocka_unit_test(test_no_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
