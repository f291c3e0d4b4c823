// The kinds of edits: what a node gives with one, tried by itself, is what the model gives in which
// it was made.
#include "diagnose/repair.h"
#include "eval/evaluator.h"
#include "passes/graph_case.h"

typedef struct edit_row {
  assay_edit_kind_t kind;
  const char* node;          // the only one; x: the input; v: 0.25
  const char* w;             // a constant
  assay_repair_edit_t edit;  // what it needs, but for:
  const char* tensor;        // a constant
  const char* program;       // a formula
} edit_row_t;

static const edit_row_t rows[] = {
    {ASSAY_EDIT_ATTR, "Elu n x -> y | alpha=0.3",
     .edit = {.attr = {.name = "alpha", .type = ASSAY_ATTR_FLOAT, .n = 1, .u.f = 0.5F}}},
    {ASSAY_EDIT_ATTR, "Transpose n x -> y | perm=1,0",
     .edit = {.attr = {.name = "perm", .type = ASSAY_ATTR_INTS, .n = 2}, .numbers = {0, 1}}},
    {ASSAY_EDIT_ATTR, "RNN n w w w -> y | hidden_size=3 activations=HardSigmoid",
     .w = "w float[1,3,3]",
     .edit = {.attr = {.name = "activation_alpha", .type = ASSAY_ATTR_FLOATS, .n = 1},
              .floats = {0.5F}}},
    {ASSAY_EDIT_DROP, "Elu n x -> y | alpha=0.3", .edit = {.attr = {.name = "alpha"}}},
    {ASSAY_EDIT_SWAP, "Sub n x w -> y", .w = "w float[3,3]", .edit = {.other = 1}},
    {ASSAY_EDIT_CONSTANT, "Mul n x w -> y", .w = "w float[3,3]", .edit = {.input = 1},
     .tensor = "float[3,1] 1 2 3"},
    {ASSAY_EDIT_RESHAPE, "Mul n x w -> y", .w = "w float[3]",
     .edit = {.input = 1, .rank = 2, .dims = {3, 1}}},
    {ASSAY_EDIT_OPERATOR, "Sinh n x -> y", .edit = {.op_type = "Cosh"}},
    {ASSAY_EDIT_BYPASS, "Mul n x w -> y", .w = "w float[3,3]"},
    {ASSAY_EDIT_VALUE, "Constant n -> y | value_float=2", .tensor = "float[2] 3 4"},
    {ASSAY_EDIT_OUTPUTS, "Split n x -> y z | num_outputs=2", .edit = {.other = 1}},
    {ASSAY_EDIT_OUTPUTS, "Split n x -> y z u | axis=1, num_outputs=3",
     .edit = {.rank = 3, .numbers = {1, 2, 0}}},
    {ASSAY_EDIT_BEFORE, "Mul n x w -> y", .w = "w float[3,3]", .edit = {.input = 1},
     .program = "x 0.5 * Erf"},
    {ASSAY_EDIT_BEFORE, "Clip n x -> y", .edit = {.input = 1}, .program = "x 2 *"},
    {ASSAY_EDIT_AFTER, "Neg n x -> y", .program = "x Relu"},
    {ASSAY_EDIT_INPUT, "Clip n x -> y", .edit = {.input = 1}},
    {ASSAY_EDIT_CHAIN, "Neg n x -> y",
     .edit = {.n_chain = 1, .chain = {{.op_type = "Relu", .of = {{.kind = ASSAY_OPERAND_START}}}}}},
    {ASSAY_EDIT_CHAIN, "Sub n x w -> y", .w = "w float[3,3]",
     .edit = {.input = 1,
              .at_input = true,
              .n_chain = 2,
              .type = ASSAY_TYPE_FLOAT,
              .chain = {{.op_type = "Mul",
                         .of = {{.kind = ASSAY_OPERAND_START}, {.kind = ASSAY_OPERAND_INPUT}}},
                        {.op_type = "Add",
                         .of = {{.kind = ASSAY_OPERAND_STEP},
                                {.kind = ASSAY_OPERAND_NUMBER, .number = 3}}}}}},
};

static assay_repair_t repair_of(const edit_row_t* row, const assay_model_t* m) {
  assay_repair_t r = {.node = m->graph->nodes[0], .cause = "an edit", .n_edits = 1};
  assay_repair_edit_t* e = &r.edits[0];
  *e = row->edit;
  e->kind = row->kind;
  e->attr.doc = e->attr.ref = "";
  if (row->kind == ASSAY_EDIT_INPUT) e->value = assay_graph_find(m->graph, "v");
  if (row->tensor) e->tensor = op_case_tensor(row->tensor);
  if (row->program) {
    const bool added = row->kind == ASSAY_EDIT_BEFORE && e->input >= r.node->n_inputs;
    const assay_formula_terms_t terms = {.program = row->program,
                                         .source = added ? assay_graph_find(m->graph, "v") : NULL};
    op_case_ok(assay_formula_create(&terms, &e->formula));
  }
  return r;
}

static void same(const edit_row_t* row, assay_tensor_t* tried, assay_tensor_t* made) {
  assay_tensor_t *a = NULL, *b = NULL;
  op_case_ok(assay_tensor_widen(tried, &a));
  op_case_ok(assay_tensor_widen(made, &b));
  if (!op_case_same(a, b)) fail_msg("edit %d of '%s': tried and made differ", row->kind, row->node);
  assay_tensor_release(a);
  assay_tensor_release(b);
}

static void check_row(const edit_row_t* row) {
  const assay_evaluator_config_t truth = {.mode = ASSAY_MODE_TRUTH, .keep_all = true};
  const char* outputs = strstr(row->node, " z u")  ? "y z u"
                        : strstr(row->node, " z ") ? "y z"
                                                   : "y";
  const graph_case_t g = {"edit",
                          18,
                          {strstr(row->node, "Split") ? "x float[4,3]" : "x float[3,3]"},
                          {"v float[] 0.25", row->w},
                          {row->node},
                          outputs};
  assay_tensor_t *in[GRAPH_CASE_ROWS] = {NULL}, *given[4] = {NULL}, *out[4] = {NULL};
  assay_model_t *m = graph_case_model(&g, in), *edited = NULL;
  assay_evaluator_t *before = NULL, *after = NULL;
  const assay_node_t* n = m->graph->nodes[0];
  op_case_ok(assay_evaluator_create_run(m, &truth, in, &before));
  assay_repair_t r = repair_of(row, m);
  for (size_t i = 0; i < n->n_inputs; i++) given[i] = assay_evaluator_get(before, n->inputs[i]);
  op_case_ok(assay_repair_evaluate(before, &r, n->n_inputs, given, n->n_outputs, out));
  op_case_ok(assay_model_clone(m, &edited));
  op_case_ok(assay_repair_apply(&r, edited));
  for (size_t i = 0; i < edited->graph->n_outputs; i++) edited->graph->outputs[i]->declared = NULL;
  op_case_ok(assay_onnx_check(edited));
  op_case_ok(assay_infer_model(edited));
  op_case_ok(assay_evaluator_create_run(edited, &truth, in, &after));
  for (size_t i = 0; i < n->n_outputs; i++) {
    const assay_value_t* y = edited->graph->outputs[i];
    const bool moved = op_case_same(out[i], assay_evaluator_get(before, m->graph->outputs[i]));
    if (moved) fail_msg("edit %d of '%s' changes nothing", row->kind, row->node);
    same(row, out[i], assay_evaluator_get(after, y));
    assay_tensor_release(out[i]);
  }
  assay_repair_deinit(&r);
  assay_evaluator_destroy(before);
  assay_evaluator_destroy(after);
  assay_model_release(edited);
  assay_model_release(m);
  graph_case_release(in);
}

static void what_is_tried_is_made(void** state) {
  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) check_row(&rows[i]);
}

// Each row of edits/edit_kinds.inc is tried above, but for those that concern more than one node
// (test_repairs.c has them).
static void every_kind_is_tried(void** state) {
  (void)state;
  static const struct {
    assay_edit_kind_t kind;
    const char* name;
  } kinds[] = {
#define ASSAY_EDIT_KIND(NAME, name) {ASSAY_EDIT_##NAME, #NAME},
#include "diagnose/edits/edit_kinds.inc"
#undef ASSAY_EDIT_KIND
  };
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
    bool tried = kinds[i].kind == ASSAY_EDIT_EXCHANGE || kinds[i].kind == ASSAY_EDIT_CROSS;
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) tried |= rows[k].kind == kinds[i].kind;
    if (!tried) fail_msg("ASSAY_EDIT_%s has no row in this test", kinds[i].name);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(what_is_tried_is_made),
                                     cmocka_unit_test(every_kind_is_tried)};
  return cmocka_run_group_tests_name("edits", tests, NULL, NULL);
}
