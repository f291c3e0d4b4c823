// Which layer runs in which format: the grammar of --layer-precision, on plain and on fused plans.
#include "passes/graph_case.h"
#include "plan/plan.h"

static const graph_case_t model_case = {
    "names",
    15,
    {"x float[1,3,6,6]"},
    {"w float[3,3,1,1]", "s float[3]", "o float[3]", "m float[3]", "v float[3] positive",
     "k float[] 2"},
    {"Conv /enc/conv:0 x w -> c", "BatchNormalization /enc/bn c s o m v -> d",
     "Relu /enc/act d -> e", "Mul a,b e k -> f", "Add [x]? f k -> g",
     "ReduceMean back\\slash g -> h", "Mul fold k k -> kk", "Sub star* h kk -> y"},
    "y"};

// Products of one input, which become one where nothing else is asked of them.
static const graph_case_t joint_case = {
    "joint",
    15,
    {"x float[5,4]"},
    {"a float[4,3]", "b float[4,3]", "c float[4,3]", "u float[3]", "v float[3]", "w float[3]",
     "h int64[3] 5 3 1"},
    {"MatMul mq x a -> q1", "Add aq q1 u -> q2", "Reshape rq q2 h -> q", "MatMul mk x b -> k1",
     "Add ak k1 v -> k2", "Reshape rk k2 h -> k3", "Transpose tk k3 -> k | perm=0,2,1",
     "MatMul s q k -> s1", "Softmax p s1 -> p1", "MatMul mv x c -> v1", "Add av v1 w -> v2",
     "Reshape rv v2 h -> v3", "MatMul o p1 v3 -> y"},
    "y"};

typedef struct precision_case {
  const char* rules;
  const char*
      formats;  // of the nodes in the model's order: 3 for fp32, h fp16, b bf16, t tf32, d fp64
  const char* error;  // part of the message; NULL: none
} precision_case_t;

static char letter(assay_format_t f) {
  return f == ASSAY_FORMAT_FP16   ? 'h'
         : f == ASSAY_FORMAT_BF16 ? 'b'
         : f == ASSAY_FORMAT_TF32 ? 't'
         : f == ASSAY_FORMAT_FP64 ? 'd'
                                  : '3';
}

static void check_row(const graph_case_t* of, const precision_case_t* row, bool fused) {
  assay_tensor_t* in[GRAPH_CASE_ROWS] = {NULL};
  assay_model_t* m = graph_case_model(of, in);
  assay_precision_t p = {.format = ASSAY_FORMAT_FP32};
  assay_plan_t* plan = NULL;
  assay_plan_options_t options = {.fused = fused};
  assay_status_t st = assay_precision_parse(&p, row->rules);
  if (!st) st = assay_plan_create(m, &p, &options, 0, &plan);
  if (row->error) {
    if (!st) fail_msg("'%s': succeeded; expected '%s'", row->rules, row->error);
    if (!strstr(assay_status_message(st), row->error))
      fail_msg("'%s': '%s', expected '%s'", row->rules, assay_status_message(st), row->error);
    assay_status_free(st);
  } else {
    op_case_ok(st);
    assay_format_t formats[16];
    char found[17] = "";
    assert_true(m->n_node_ids < 16);
    assay_plan_node_formats(plan, formats);
    for (size_t i = 0; i < m->graph->n_nodes; i++)
      found[i] = letter(formats[m->graph->nodes[i]->id]);
    if (strcmp(found, row->formats) != 0)
      fail_msg("'%s'%s: %s, expected %s", row->rules, fused ? " fused" : "", found, row->formats);
  }
  assay_plan_destroy(plan);
  assay_precision_deinit(&p);
  assay_model_release(m);
  graph_case_release(in);
}

static const precision_case_t grammar[] = {
    {"*:fp16", "hhhhhhhh", NULL},
    {"/enc/*:fp16", "hhh33333", NULL},
    {"*:fp16,/enc/bn:fp32", "h3hhhhhh", NULL},
    {"/enc/bn:fp32,*:fp16", "hhhhhhhh", NULL},  // later entries win
    {"/enc/conv:0:fp16", "h3333333", NULL},     // the last ':' parts
    {"/enc/conv\\:0:bf16", "b3333333", NULL},
    {"a\\,b:fp16", "333h3333", NULL},
    {"\\[x\\]\\?:tf32", "3333t333", NULL},
    {"[[]x]?:tf32", "3333t333", NULL},
    {"back\\\\slash:fp64", "33333d33", NULL},
    {"star\\*:fp16", "3333333h", NULL},
    {"?enc?act:fp16", "33h33333", NULL},
    {"c:fp16", "h3333333", NULL},  // names of outputs
    {"[fg]:bf16", "333bb333", NULL},
    {"/enc/none:fp16", NULL, "matches no node"},
    {"/enc/none:fp16,*:fp16", NULL, "/enc/none"},
    {"/enc/*", NULL, "not PATTERN:FORMAT"},
    {":fp16", NULL, "not PATTERN:FORMAT"},
    {"a,b:fp16", NULL, "'a' is not PATTERN:FORMAT"},
    {"/enc/*:fp17", NULL, "'fp17'"},
    {"/enc/*:int8", NULL, "not a floating-point format"},
    {"/enc/conv\\:0", NULL, "not PATTERN:FORMAT"},
    {"", NULL, "empty"},
};

static void grammar_rows(void** state) {
  (void)state;
  for (size_t i = 0; i < sizeof grammar / sizeof *grammar; i++)
    check_row(&model_case, &grammar[i], false);
}

// conv+bn+act is one layer, a,b with [x]? another; `fold` is computed at build.
static const precision_case_t fused[] = {
    {"*:fp16", "hhhhhh3h", NULL},
    {"/enc/bn:fp16", "hh333333",
     NULL},  // the node has become part of the convolution; its layer falls apart
    {"c:fp16", "hh333333", NULL},  // so has the value between them
    {"/enc/act:fp16", "33h33333", NULL},
    {"/enc/*:fp16", "hhh33333", NULL},
    {"fold:fp16", "33333333", NULL},  // met: there is nothing left of it
    {"/enc/none:fp16", NULL, "matches no node"},
};

static void fused_rows(void** state) {
  (void)state;
  for (size_t i = 0; i < sizeof fused / sizeof *fused; i++) check_row(&model_case, &fused[i], true);
}

static const precision_case_t joint[] = {
    {"*:fp16", "hhhhhhhhhhhhh", NULL},
    {"m[qkv]:fp16", "h33h33333h333", NULL},
    {"mk:fp16", "333h333333333", NULL},  // and not the others', which one product would be
    {"m[qv]:fp16,mk:bf16", "h33b33333h333", NULL},
    {"ak:fp16", "3333h33333333", NULL},
    {"rq:fp16", "33h3333333333", NULL},
};

static void joint_rows(void** state) {
  (void)state;
  for (size_t i = 0; i < sizeof joint / sizeof *joint; i++) check_row(&joint_case, &joint[i], true);
}

static void only_once(void** state) {
  (void)state;
  assay_precision_t p = {.format = ASSAY_FORMAT_FP32};
  op_case_ok(assay_precision_parse(&p, "a:fp16"));
  assay_status_t st = assay_precision_parse(&p, "b:fp16");
  assert_int_equal(assay_status_code(st), ASSAY_INVALID_ARGUMENT);
  assay_status_free(st);
  assay_precision_deinit(&p);
}

// What is printed for nodes matches just those nodes when it is read.
static void printed_rules_are_read_again(void** state) {
  (void)state;
  assay_tensor_t* in[GRAPH_CASE_ROWS] = {NULL};
  assay_model_t* m = graph_case_model(&model_case, in);
  for (size_t i = 0; i < m->graph->n_nodes; i++) {
    const assay_node_t* node = m->graph->nodes[i];
    assay_str_t text = {0};
    assay_precision_t p = {.format = ASSAY_FORMAT_FP32};
    assay_plan_t* plan = NULL;
    assay_format_t formats[16];
    assay_precision_print(&node, 1, ASSAY_FORMAT_FP16, &text);
    op_case_ok(assay_precision_parse(&p, assay_str_get(&text)));
    op_case_ok(assay_plan_create(m, &p, NULL, 0, &plan));
    assay_plan_node_formats(plan, formats);
    for (size_t k = 0; k < m->graph->n_nodes; k++)
      assert_int_equal(formats[m->graph->nodes[k]->id],
                       k == i ? ASSAY_FORMAT_FP16 : ASSAY_FORMAT_FP32);
    assay_plan_destroy(plan);
    assay_precision_deinit(&p);
    assay_str_deinit(&text);
  }
  assay_model_release(m);
  graph_case_release(in);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(grammar_rows),
      cmocka_unit_test(fused_rows),
      cmocka_unit_test(joint_rows),
      cmocka_unit_test(only_once),
      cmocka_unit_test(printed_rules_are_read_again),
  };
  return cmocka_run_group_tests_name("precision", tests, NULL, NULL);
}
