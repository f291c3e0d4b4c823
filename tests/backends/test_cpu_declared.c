// Operands that come with a run decide what sizes a layer makes; what the file declares is believed
// only where the operator says the same. The CPU backend refuses what the emulated engine refuses,
// in the same words, and makes the same sizes and bits otherwise, run after run.
#include "backends/tactic_case.h"

enum { DECLARED = 3, SETS = 6 };

typedef struct declared_case {
  graph_case_t graph;
  const char*
      declared[DECLARED];  // values within the graph, and outputs, as the file says they are
  const char* sets[SETS];  // what the last input is in each run
  bool is_default;         // the file has the last input's elements, for runs without it
} declared_case_t;

#define CASE(name, x, s, node, says, ...) \
  { {name, 18, {x, s}, {0}, {node, "Relu r y -> z"}, "z"}, {says}, {__VA_ARGS__}, false }

static const declared_case_t cases[] = {
    CASE("Squeeze", "x float[2,1,3,1]", "a int64[1] 1", "Squeeze n x a -> y", "y float[2,3,1]",
         "int64[1] 1", "int64[1] -3", "int64[1] 3", "int64[1] 2", "int64[1] 5"),
    CASE("Squeeze of no 1", "x float[2,3,2]", "a int64[1] 1", "Squeeze n x a -> y", "y float[6,2]",
         "int64[1] 1", "int64[1] -2", "int64[1] -5", "int64[0]"),
    CASE("Unsqueeze", "x float[2,3]", "a int64[2] 0 2", "Unsqueeze n x a -> y", "y float[1,2,1,3]",
         "int64[2] 0 2", "int64[2] -4 -2", "int64[2] 0 1", "int64[2] 1 1", "int64[2] 0 4"),
    CASE("Reshape", "x float[2,3,2]", "s int64[2] 6 2", "Reshape n x s -> y", "y float[6,2]",
         "int64[2] 6 2", "int64[2] 0 -1", "int64[2] -1 2", "int64[2] 5 2", "int64[2] 4 3",
         "int64[2] -1 -1"),
    CASE("Reshape with zeros", "x float[2,3,2]", "s int64[2] 6 2",
         "Reshape n x s -> y | allowzero=1", "y float[6,2]", "int64[2] 6 2", "int64[2] 0 2",
         "int64[2] 0 -1"),
    CASE("Expand", "x float[1,3]", "s int64[2] 2 3", "Expand n x s -> y", "y float[2,3]",
         "int64[2] 2 3", "int64[2] 1 1", "int64[2] 4 3", "int64[2] 2 2"),
    CASE("Slice", "x float[6]", "e int64[1] 4", "Slice n x s e -> y", "y float[4]", "int64[1] 4",
         "int64[1] -2", "int64[1] 99", "int64[1] 0"),
    CASE("Tile", "x float[2,3]", "r int64[2] 1 2", "Tile n x r -> y", "y float[2,6]",
         "int64[2] 1 2", "int64[2] 2 1", "int64[2] 0 1", "int64[2] 1 -1"),
    CASE("Pad", "x float[2,3]", "p int64[4] 0 1 0 0", "Pad n x p -> y", "y float[2,4]",
         "int64[4] 0 1 0 0", "int64[4] 1 0 0 1", "int64[4] 0 -1 0 0", "int64[4] -3 0 0 0"),
    CASE("Resize", "x float[1,1,2,2]", "s int64[4] 1 1 4 4", "Resize n x _ _ s -> y | mode=nearest",
         "y float[1,1,4,4]", "int64[4] 1 1 4 4", "int64[4] 1 1 3 5", "int64[4] 1 1 0 4"),
    CASE("Resize by scales", "x float[1,1,2,2]", "s float[4] 1 1 2 2",
         "Resize n x _ s -> y | mode=linear", "y float[1,1,4,4]", "float[4] 1 1 2 2",
         "float[4] 1 1 1.5 3", "float[4] 1 1 0 1"),
    CASE("TopK", "x float[2,5]", "k int64[1] 2", "TopK n x k -> y i", "y float[2,2]", "int64[1] 2",
         "int64[1] 4", "int64[1] 6", "int64[1] 0"),
    CASE("Split", "x float[5,2]", "s int64[2] 2 3", "Split n x s -> y b", "y float[2,2]",
         "int64[2] 2 3", "int64[2] 4 1", "int64[2] 2 2", "int64[2] -1 6"),
    CASE("ReduceSum", "x float[2,3]", "a int64[1] 1", "ReduceSum n x a -> y | keepdims=0",
         "y float[2]", "int64[1] 1", "int64[1] 0", "int64[1] -2", "int64[1] 2"),
    CASE("ReduceMean", "x float[2,3]", "a int64[1] 1", "ReduceMean n x a -> y", "y float[2,1]",
         "int64[1] 1", "int64[1] 0", "int64[1] 3"),
    CASE("CenterCropPad", "x float[4,6]", "s int64[2] 4 4", "CenterCropPad n x s -> y",
         "y float[4,4]", "int64[2] 4 4", "int64[2] 6 2"),
    CASE("ConstantOfShape", "x float[2]", "s int64[2] 2 3", "ConstantOfShape n s -> y",
         "y float[2,3]", "int64[2] 2 3", "int64[2] 3 2", "int64[2] 3 -2"),
    CASE("Range", "f float[] 0", "n float[] 4", "Range n f n one -> y", "y float[4]", "float[] 4",
         "float[] 6", "float[] -1"),
    CASE("OneHot", "x int64[3] 0 1 2", "d int64[] 4", "OneHot n x d v -> y", "y float[3,4]",
         "int64[] 4", "int64[] 3", "int64[] 1"),
    CASE("Gather by what is given", "x float[4,3]", "i int64[2] 0 3", "Gather n x i -> y",
         "y float[2,3]", "int64[2] 0 3", "int64[2] -1 1", "int64[2] 0 4"),
    // What follows from a size that was declared, and is not.
    {{"Shape of it",
      18,
      {"x float[2,3,2]", "w float[3,4]", "s int64[2] 6 2"},
      {0},
      {"Reshape n x s -> y", "Shape q y -> q", "Reshape m w q -> v", "Relu r v -> z"},
      "z"},
     {"y float[6,2]"},
     {"int64[2] 6 2", "int64[2] 4 3", "int64[2] 5 2"},
     false},
    {{"other layers",
      18,
      {"x float[2,3,2]", "s int64[2] 6 2"},
      {"w float[2,3]"},
      {"Relu a x -> b", "Reshape n b s -> y", "MatMul m y w -> v", "Softmax f v -> z"},
      "z"},
     {"y float[6,2]", "v float[6,3]", "z float[6,3]"},
     {"int64[2] 6 2", "int64[2] 3 4", "int64[2] -1 2"},
     false},
    // A default is only what the input is without the caller's.
    {{"a default",
      18,
      {"x float[2,3,2]", "s int64[2] 6 2"},
      {0},
      {"Reshape n x s -> y", "Relu r y -> z"},
      "z"},
     {0},
     {"int64[2] 6 2", "int64[2] 4 3", "int64[2] 5 2", "int64[2] -1 2"},
     true},
    {{"computed from a default",
      18,
      {"x float[2,3,2]", "s int64[2] 6 2"},
      {"one int64[1] 1"},
      {"Mul p s one -> t", "Reshape n x t -> y", "Relu r y -> z"},
      "z"},
     {0},
     {"int64[2] 6 2", "int64[2] 4 3", "int64[2] 5 2"},
     true},
};

// Constants that some of the nodes name.
static void add_constants(assay_graph_t* g) {
  static const char* const rows[] = {"one float[] 1", "v float[2] 0 1"};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    char name[64];
    uint64_t state = 7;
    assay_value_t* v = NULL;
    assay_tensor_t* t = graph_case_tensor(rows[i], name, &state);
    if (assay_graph_find(g, name)) {
      assay_tensor_release(t);
      continue;
    }
    op_case_ok(assay_graph_add_value(g, name, &v));
    op_case_ok(assay_graph_set_initializer(v, t));
  }
}

// open: dimensions of inputs are names, one for each size.
static assay_model_t* make_model(const declared_case_t* c, bool open, assay_tensor_t** in,
                                 size_t* out_last) {
  assay_model_t* m = graph_case_begin(&c->graph, in);
  assay_graph_t* g = m->graph;
  uint64_t state = 7;
  char name[64];
  *out_last = g->n_inputs - 1;
  for (size_t i = 0; open && i < *out_last; i++)
    g->inputs[i]->declared = op_case_type(m, in[i], true);
  if (c->is_default)
    op_case_ok(
        assay_graph_set_initializer(g->inputs[*out_last], assay_tensor_retain(in[*out_last])));
  if (strncmp(c->graph.name, "Slice", 5) == 0) {
    assay_value_t* v = NULL;
    op_case_ok(assay_graph_add_value(g, "s", &v));
    op_case_ok(assay_graph_set_initializer(v, op_case_tensor("int64[1] 0")));
  }
  if (strncmp(c->graph.name, "Range", 5) == 0 || strncmp(c->graph.name, "OneHot", 6) == 0)
    add_constants(g);
  for (size_t i = 0; c->graph.nodes[i]; i++) graph_case_node(g, c->graph.nodes[i], c->graph.opset);
  graph_case_outputs(g, c->graph.outputs);
  for (size_t i = 0; i < DECLARED && c->declared[i]; i++) {
    assay_tensor_t* t = graph_case_tensor(c->declared[i], name, &state);
    assay_value_t* v = assay_graph_find(g, name);
    assert_non_null(v);
    v->declared = op_case_type(m, t, false);
    v->in_value_info = !v->is_output;
    assay_tensor_release(t);
  }
  op_case_ok(assay_onnx_check(m));
  op_case_ok(assay_infer_model(m));
  return m;
}

static assay_executor_t* open_executor(assay_model_t* m, const char* backend, assay_format_t format,
                                       assay_plan_t** out_plan) {
  const assay_precision_t precision = {.format = format};
  const assay_plan_options_t options = {.fused = true};
  assay_executor_t* e = NULL;
  op_case_ok(assay_plan_create(m, &precision, &options, 1, out_plan));
  op_case_ok(assay_executor_run_plan(*out_plan, assay_backend_find(backend), NULL, &e));
  return e;
}

static assay_status_t run_with(assay_executor_t* e, assay_tensor_t* const* in,
                               const assay_tensor_t* last, size_t at) {
  const assay_graph_t* g = assay_executor_graph(e);
  assay_executor_reset(e);
  for (size_t i = 0; i < g->n_inputs; i++)
    op_case_ok(
        assay_executor_set(e, g->inputs[i], i == at ? (assay_tensor_t*)(uintptr_t)last : in[i]));
  return assay_executor_run(e);
}

static void check_run(const declared_case_t* c, const char* set, assay_executor_t* emu,
                      assay_executor_t* cpu, assay_tensor_t* const* in, size_t at) {
  assay_tensor_t* last = op_case_tensor(set);
  assay_status_t a = run_with(emu, in, last, at), b = run_with(cpu, in, last, at);
  if (!a != !b)
    fail_msg("%s, %s: only %s refuses: %s", c->graph.name, set, a ? "emu" : "cpu",
             assay_status_message(a ? a : b));
  if (a && strcmp(assay_status_message(a), assay_status_message(b)) != 0)
    fail_msg("%s, %s: '%s', not '%s'", c->graph.name, set, assay_status_message(b),
             assay_status_message(a));
  for (size_t i = 0; !a && i < assay_executor_graph(emu)->n_outputs; i++)
    tactic_case_compare(c->graph.name, set,
                        assay_executor_get(emu, assay_executor_graph(emu)->outputs[i]),
                        assay_executor_get(cpu, assay_executor_graph(cpu)->outputs[i]), 1e-5);
  assay_status_free(a);
  assay_status_free(b);
  assay_tensor_release(last);
}

// All runs by one executor, there and back, so that what was prepared for one meets the others.
static void check_case(const declared_case_t* c, bool open, assay_format_t format) {
  assay_tensor_t* in[GRAPH_CASE_ROWS] = {NULL};
  size_t at = 0, n = 0;
  assay_plan_t *emu_plan = NULL, *cpu_plan = NULL;
  assay_model_t* m = make_model(c, open, in, &at);
  assay_executor_t* emu = open_executor(m, "emu", format, &emu_plan);
  assay_executor_t* cpu = open_executor(m, "cpu", format, &cpu_plan);
  while (n < SETS && c->sets[n]) n++;
  for (size_t i = 0; i < n; i++) check_run(c, c->sets[i], emu, cpu, in, at);
  for (size_t i = n; i-- > 0;) check_run(c, c->sets[i], emu, cpu, in, at);
  assay_executor_destroy(emu);
  assay_executor_destroy(cpu);
  assay_plan_destroy(emu_plan);
  assay_plan_destroy(cpu_plan);
  graph_case_release(in);
  assay_model_release(m);
}

static void operands_decide(void** state) {
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    for (int open = 0; open < 2; open++) {
      check_case(&cases[i], open, ASSAY_FORMAT_FP32);
      check_case(&cases[i], open, ASSAY_FORMAT_BF16);
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(operands_decide)};
  return cmocka_run_group_tests_name("declared sizes", tests, NULL, NULL);
}
