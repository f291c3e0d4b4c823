// Ranges of several nodes: what affine forms and facts make of them, bodies, hazards, and witnesses
// that are run again.
#include "ranges/range_case.h"
#include "ranges/witness.h"

typedef struct graph_row {
  graph_case_t graph;
  double lo, hi;          // of all inputs
  assay_format_t format;  // NONE: fp32
  double min, max;        // the range of the last output must lie in this, if least < most
  const char* hazard;     // the node of the first; NULL: there must be none
  assay_hazard_kind_t kind;
} graph_row_t;

#define GRAPH(text, ...) .graph = {.name = text, .opset = 21, .outputs = "y", __VA_ARGS__}
#define IN(...) .inputs = {__VA_ARGS__}
#define CONSTANTS(...) .constants = {__VA_ARGS__}
#define NODES(...) .nodes = {__VA_ARGS__}

// clang-format off
static const graph_row_t rows[] = {
    // Affine forms: what comes on two ways from one number.
    {GRAPH("x + 1 - x", IN("x float[8]"), CONSTANTS("k float[] 1"), NODES("Add a x k -> a", "Sub s a x -> y")),
     .lo = -1000, .hi = 1000, .min = 0.99, .max = 1.01},
    {GRAPH("the same in fp16", IN("x float[8]"), CONSTANTS("k float[] 1"), NODES("Add a x k -> a", "Sub s a x -> y")),
     .lo = -1000, .hi = 1000, .format = ASSAY_FORMAT_FP16, .min = -1, .max = 3},
    {GRAPH("x - mean(x)", IN("x float[1,4]"), CONSTANTS("a int64[1] 1"), NODES("ReduceMean m x a -> m", "Sub s x m -> y")),
     .lo = -1, .hi = 1, .min = -1.51, .max = 1.51},
    {GRAPH("x - x A, with A = 0.5", IN("x float[1,2]"), CONSTANTS("w float[2,2] 0.5 0 0 0.5", "v float[2,2] 3 0 0 3"),
           NODES("MatMul a x w -> a", "Sub b x a -> b", "MatMul c b v -> y")),
     .lo = -10, .hi = 10, .min = -15.01, .max = 15.01},
    {GRAPH("a rotation and back", IN("x float[1,2]"), CONSTANTS("w float[2,2] 0.6 0.8 -0.8 0.6", "v float[2,2] 0.6 -0.8 0.8 0.6"),
           NODES("MatMul a x w -> a", "MatMul b a v -> y")),
     .lo = -10, .hi = 10, .min = -10.01, .max = 10.01},
    {GRAPH("moved and taken back", IN("x float[2,3]"), CONSTANTS("s int64[1] -1", "k float[] 7"),
           NODES("Transpose t x -> t | perm=1,0", "Reshape r t s -> r", "Reshape q x s -> q", "Add a q k -> a", "Sub d a q -> y")),
     .lo = -9, .hi = 9, .min = 6.99, .max = 7.01},
    {GRAPH("running sums, taken apart", IN("x float[1,6]"), CONSTANTS("a int64[] 1", "s int64[1] 1", "e int64[1] 6", "z int64[1] 0", "f int64[1] 5", "d int64[1] 1"),
           NODES("CumSum c x a -> c", "Slice u c s e d -> u", "Slice v c z f d -> v", "Sub y u v -> y")),
     .lo = -9, .hi = 9, .min = -9.01, .max = 9.01},
    {GRAPH("a Relu between two lines", IN("x float[1,2]"), CONSTANTS("w float[2,2] 1 1 1 -1"), NODES("MatMul a x w -> a", "Relu r a -> r", "Sub y r a -> y")),
     .lo = -1, .hi = 1, .min = -1.01, .max = 2.01},
    {GRAPH("two inputs keep apart", IN("a float[4]", "b float[4]"), NODES("Add s a b -> s", "Sub y s a -> y")),
     .lo = -1, .hi = 1, .min = -3.01, .max = 3.01},
    {GRAPH("a product is a source of its own", IN("x float[4]"), NODES("Mul m x x -> m", "Sub y m x -> y")),
     .lo = 0, .hi = 2, .min = -2.01, .max = 4.01},
    {GRAPH("Gemm, with a factor below 0", IN("x float[1,3]"), CONSTANTS("w float[3,3]", "c float[3]"),
           NODES("Gemm g x w c -> g | alpha=-0.5 beta=2", "Gemm h g w c -> h | alpha=2 beta=-1 transB=1", "Sub y h x -> y")),
     .lo = -3, .hi = 3},
    {GRAPH("Conv and BatchNormalization", IN("x float[1,2,4]"),
           CONSTANTS("w float[3,2,3]", "b float[3]", "s float[3]", "o float[3]", "m float[3]", "v float[3] positive", "u float[2,3,1]"),
           NODES("Conv c x w b -> c | pads=1,1", "BatchNormalization n c s o m v -> n", "Conv d n u -> d", "Add e d x -> e", "AveragePool p e -> p | kernel_shape=2", "Neg y p -> y")),
     .lo = -30, .hi = 30},
    // Facts: normalizations by hand, softmax by hand, squares, x f(x).
    {GRAPH("RMS norm by hand", IN("x float[1,16]"), CONSTANTS("a int64[1] 1", "e float[] 0.001"),
           NODES("Mul s x x -> s", "ReduceMean v s a -> v", "Add w v e -> w", "Sqrt r w -> r", "Div d x r -> y")),
     .lo = -100, .hi = 100, .min = -4.1, .max = 4.1},
    {GRAPH("softmax by hand", IN("x float[1,5]"), CONSTANTS("a int64[1] 1"),
           NODES("ReduceMax m x a -> m", "Sub d x m -> d", "Exp e d -> e", "ReduceSum s e a -> s", "Div q e s -> y")),
     .lo = -90, .hi = 90, .min = -0.01, .max = 1.01},
    {GRAPH("a square", IN("x float[4]"), CONSTANTS("k float[] 0.5"), NODES("Mul s x x -> s", "Add a s k -> a", "Sqrt r a -> y")),
     .lo = -3, .hi = 3, .min = 0.7, .max = 3.1},
    {GRAPH("SiLU by hand", IN("x float[6]"), NODES("Sigmoid s x -> s", "Mul m x s -> y")), .lo = -50, .hi = 50, .min = -0.2785, .max = 50.01},
    {GRAPH("GELU by hand", IN("x float[6]"), CONSTANTS("r float[] 1.4142135", "one float[] 1", "half float[] 0.5"),
           NODES("Div d x r -> d", "Erf e d -> e", "Add a e one -> a", "Mul m x a -> m", "Mul h m half -> y")), .lo = -8, .hi = 8, .min = -0.2, .max = 8.01},
    {GRAPH("Mish by hand", IN("x float[6]"), NODES("Softplus s x -> s", "Tanh t s -> t", "Mul m x t -> y")), .lo = -9, .hi = 9, .min = -0.31, .max = 9.01},
    // Hazards.
    {GRAPH("past fp16", IN("x float[1,4]"), CONSTANTS("w float[4,1] 300 300 300 300"), NODES("MatMul m x w -> y")),
     .lo = -100, .hi = 100, .format = ASSAY_FORMAT_FP16, .hazard = "m", .kind = ASSAY_HAZARD_OVERFLOW},
    {GRAPH("a divisor", IN("x float[4]"), CONSTANTS("k float[] 0.5"), NODES("Sub s x k -> s", "Div d k s -> y")),
     .lo = 0, .hi = 1, .hazard = "d", .kind = ASSAY_HAZARD_DIVISION},
    {GRAPH("a logarithm", IN("x float[4]"), NODES("Log l x -> y")), .lo = -1, .hi = 1, .hazard = "l", .kind = ASSAY_HAZARD_DOMAIN},
    {GRAPH("a root", IN("x float[4]"), CONSTANTS("k float[] 0.25"), NODES("Sub s x k -> s", "Sqrt r s -> y")),
     .lo = 0, .hi = 1, .hazard = "r", .kind = ASSAY_HAZARD_DOMAIN},
    {GRAPH("a cast", IN("x float[4]"), NODES("Cast c x -> y | to=3")), .lo = -200, .hi = 100, .hazard = "c", .kind = ASSAY_HAZARD_CAST},
    {GRAPH("integers that wrap", IN("x int8[2] 0 0"), NODES("Add a x x -> y")), .lo = -90, .hi = 20, .hazard = "a", .kind = ASSAY_HAZARD_WRAP},
    {GRAPH("sums of 8-bit integers", IN("x uint8[1,4] 0 0 0 0"), CONSTANTS("w int8[4,1] -128 -128 -128 -128"),
           NODES("MatMulInteger m x w -> i", "Cast c i -> y | to=2")), .lo = 0, .hi = 255, .hazard = "c", .kind = ASSAY_HAZARD_CAST},
    {GRAPH("the mean of squares, which add up past fp16 in it", IN("x float[1,16]"), CONSTANTS("a int64[1] 1"),
           NODES("Mul s x x -> s", "ReduceSum v s a -> y")),
     .lo = -100, .hi = 100, .format = ASSAY_FORMAT_FP16, .hazard = "v", .kind = ASSAY_HAZARD_OVERFLOW},
    {GRAPH("an exponential in bf16", IN("x float[3]"), CONSTANTS("k float[] 3"), NODES("Mul m x k -> m", "Exp e m -> y")),
     .lo = -30, .hi = 30, .format = ASSAY_FORMAT_BF16, .hazard = "e", .kind = ASSAY_HAZARD_OVERFLOW},
    {GRAPH("past fp8", IN("x float[5]"), NODES("Add a x x -> a", "Add b a a -> y")),
     .lo = -120, .hi = 120, .format = ASSAY_FORMAT_FP8E4M3, .hazard = "b", .kind = ASSAY_HAZARD_OVERFLOW},
};
// clang-format on

enum { POINTS = 120 };

static assay_format_t format_of(const graph_row_t* row) {
  return row->format == ASSAY_FORMAT_NONE ? ASSAY_FORMAT_FP32 : row->format;
}

static void begin(range_case_t* c, const graph_row_t* row) {
  range_case_init(c, &row->graph, format_of(row));
  for (size_t i = 0; i < c->box.n; i++) {
    c->box.inputs[i].lo = row->lo;
    c->box.inputs[i].hi = row->hi;
  }
}

static int check_hazards(const graph_row_t* row, const assay_ranges_t* r) {
  const assay_hazard_t* h = r->n_hazards ? &r->hazards[0] : NULL;
  if (!row->hazard && !h) return 0;
  if (row->hazard && h && !strcmp(h->node->name, row->hazard) && h->kind == row->kind) return 0;
  print_error("%s: the first hazard is %s at '%s'\n", row->graph.name,
              h ? assay_hazard_name(h->kind) : "none", h ? h->node->name : "");
  return 1;
}

static void test_ranges_hold(void** state) {
  int faults = 0;
  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    const graph_row_t* row = &rows[i];
    range_case_t c;
    assay_ranges_t r = {0};
    uint64_t random = 23 + i;
    begin(&c, row);
    range_case_find(&c, &r);
    faults += check_hazards(row, &r);
    range_case_points(&c, &r, POINTS, format_of(row) == ASSAY_FORMAT_FP32, &random);
    const assay_value_t* y = c.model->graph->outputs[0];
    const assay_value_range_t* of = &r.values[y->id];
    if (row->min < row->max && !(of->known && of->lo >= row->min && of->hi <= row->max)) {
      print_error("%s: the range is [%.9g, %.9g]\n", row->graph.name, of->lo, of->hi);
      faults++;
    }
    faults += c.faults;
    assay_ranges_deinit(&r);
    range_case_deinit(&c);
  }
  assert_int_equal(faults, 0);
}

// ---- bodies -------------------------------------------------------------------------------------

typedef struct body_row {
  const char* name;
  const char *inputs[2], *nodes[2], *outputs;
} body_row_t;

static const struct {
  const char* node;
  const char* inputs[3];
  const char* constants[3];
  body_row_t bodies[2];
  double lo, hi, min, max;  // of inputs; within which the output's range lies
} body_rows[] = {
    {.node = "If n c -> y",
     .inputs = {"x float[3]", "c bool[] 1"},
     .constants = {"k float[] 100", "l float[] 5"},
     .lo = 0,
     .hi = 2,
     .bodies = {{.name = "then_branch", .nodes = {"Mul m x k -> t"}, .outputs = "t"},
                {.name = "else_branch", .nodes = {"Sub s x l -> e"}, .outputs = "e"}},
     .min = -5.001,
     .max = 200.01},
    {.node = "Loop n m t x -> y",
     .inputs = {"x float[3]"},
     .constants = {"m int64[] 5", "t bool[] 1", "k float[] -2"},
     .lo = -1,
     .hi = 3,
     .bodies = {{.name = "body",
                 .inputs = {"s float[3]"},
                 .nodes = {"Identity i c -> d", "Mul b s k -> u"},
                 .outputs = "d u"}},
     .min = -96.001,
     .max = 32.001},
    {.node = "Scan n z x -> e y | num_scan_inputs=1",
     .inputs = {"x float[4,2]"},
     .constants = {"z float[2] 1 1"},
     .lo = -1,
     .hi = 3,
     .bodies = {{.name = "body",
                 .inputs = {"s float[2]", "v float[2]"},
                 .nodes = {"Add b s v -> u", "Neg g u -> w"},
                 .outputs = "u w"}},
     .min = -13.001,
     .max = 3.001},
};

static void add_input(assay_graph_t* g, const char* text) {
  char name[64];
  uint64_t random = 3;
  assay_value_t* v = NULL;
  assay_tensor_t* t = graph_case_tensor(text, name, &random);
  op_case_ok(assay_graph_add_value(g, name, &v));
  v->is_input = true;
  v->declared = op_case_type(g->model, t, false);
  g->inputs[g->n_inputs++] = v;
  assay_tensor_release(t);
}

static void add_body(assay_node_t* owner, const body_row_t* row) {
  assay_graph_t* body = NULL;
  op_case_ok(assay_graph_create(owner->graph->model, owner->graph, &body));
  body->owner = owner;
  body->name = row->name;
  body->inputs = op_case_list(owner->graph->model, 4);
  if (!strcmp(owner->op_type, "Loop")) {
    add_input(body, "i int64[] 0");
    add_input(body, "c bool[] 1");
  }
  for (size_t i = 0; i < 2 && row->inputs[i]; i++) add_input(body, row->inputs[i]);
  for (size_t i = 0; i < 2 && row->nodes[i]; i++) graph_case_node(body, row->nodes[i], 21);
  graph_case_outputs(body, row->outputs);
  assay_attr_t* a = &owner->attrs[owner->n_attrs++];
  *a = (assay_attr_t){.name = row->name, .doc = "", .ref = "", .type = ASSAY_ATTR_GRAPH, .n = 1};
  a->u.g = body;
}

static void test_bodies(void** state) {
  (void)state;
  for (size_t i = 0; i < sizeof body_rows / sizeof *body_rows; i++) {
    graph_case_t row = {.name = body_rows[i].node, .opset = 21};
    range_case_t c;
    assay_ranges_t r = {0};
    uint64_t random = 9;
    for (size_t k = 0; k < 3; k++)
      row.inputs[k] = body_rows[i].inputs[k], row.constants[k] = body_rows[i].constants[k];
    assay_tensor_t* in[GRAPH_CASE_ROWS] = {NULL};
    assay_model_t* m = graph_case_begin(&row, in);
    assay_node_t* n = graph_case_node(m->graph, body_rows[i].node, 21);
    for (size_t k = 0; k < 2 && body_rows[i].bodies[k].name; k++)
      add_body(n, &body_rows[i].bodies[k]);
    graph_case_outputs(m->graph, "y");
    op_case_ok(assay_onnx_check(m));
    op_case_ok(assay_infer_model(m));
    range_case_take(&c, m, in, ASSAY_FORMAT_FP32);
    for (size_t k = 0; k < c.box.n; k++) {
      c.box.inputs[k].lo = c.box.inputs[k].is_float ? body_rows[i].lo : 0;
      c.box.inputs[k].hi = c.box.inputs[k].is_float ? body_rows[i].hi : 1;
    }
    range_case_find(&c, &r);
    const assay_value_range_t* y = &r.values[m->graph->outputs[0]->id];
    assert_int_equal(r.n_hazards, 0);
    if (!(y->known && y->lo >= body_rows[i].min && y->hi <= body_rows[i].max))
      fail_msg("%s: the range is [%.9g, %.9g]", body_rows[i].node, y->lo, y->hi);
    range_case_points(&c, &r, POINTS, true, &random);
    assert_int_equal(c.faults, 0);
    assay_ranges_deinit(&r);
    range_case_deinit(&c);
  }
}

// ---- the largest box ----------------------------------------------------------------------------

static const struct {
  graph_row_t row;
  double min, max;  // between which the radius lies
} radii[] = {
    {{GRAPH("a sum of four in fp16", IN("x float[1,4]"), CONSTANTS("w float[4,1] 1 1 1 1"),
            NODES("MatMul m x w -> y")),
      .lo = -1, .hi = 1, .format = ASSAY_FORMAT_FP16},
     15900,
     16384},
    {{GRAPH("an exponential in fp16", IN("x float[4]"), NODES("Exp e x -> y")), .lo = -1, .hi = 1,
      .format = ASSAY_FORMAT_FP16},
     10.8,
     11.1},
    {{GRAPH("never", IN("x float[4]"), NODES("Reciprocal r x -> y")), .lo = -1, .hi = 1}, 0, 0},
    {{GRAPH("always", IN("x float[4]"), NODES("Tanh t x -> y")), .lo = -1, .hi = 1}, 3e38, 3.5e38},
};

static void test_radius(void** state) {
  (void)state;
  for (size_t i = 0; i < sizeof radii / sizeof *radii; i++) {
    range_case_t c;
    assay_ranges_t r = {0};
    assay_radius_t found = {0};
    const assay_ranges_options_t options = {0};
    uint64_t random = 5;
    begin(&c, &radii[i].row);
    range_case_find(&c, &r);
    op_case_ok(assay_ranges_radius(c.plan, &c.box, !r.n_hazards, &options, &found));
    if (!(found.scale >= radii[i].min && found.scale <= radii[i].max))
      fail_msg("%s: safe for |x| <= %g", radii[i].row.graph.name, found.scale);
    assay_ranges_deinit(&r);
    if (found.scale > 0) {
      assay_box_scale(&c.box, found.scale, &c.box);
      range_case_find(&c, &r);
      assert_int_equal(r.n_hazards, 0);
      range_case_points(&c, &r, POINTS, false, &random);
      assert_int_equal(c.faults, 0);
      assay_ranges_deinit(&r);
    }
    range_case_deinit(&c);
  }
}

// ---- witnesses ----------------------------------------------------------------------------------

static bool is_real(const assay_hazard_t* h) { return h->kind != ASSAY_HAZARD_UNKNOWN; }

// Each hazard of the table has a witness in the box at the node that is told first; floats break
// when they are run again.
static void test_witnesses(void** state) {
  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    const graph_row_t* row = &rows[i];
    range_case_t c;
    assay_ranges_t r = {0};
    assay_witness_t w = {0};
    const assay_witness_options_t options = {.seconds = 20, .seed = 3};
    if (!row->hazard) continue;
    begin(&c, row);
    range_case_find(&c, &r);
    assert_true(r.n_hazards && is_real(&r.hazards[0]));
    op_case_ok(assay_witness_find(c.plan, &c.box, &r, &options, &w));
    if (!w.found) fail_msg("%s: no witness in %d runs", row->graph.name, w.runs);
    assert_string_equal(w.node->name, row->hazard);
    for (size_t k = 0; k < w.n; k++) {
      assay_tensor_t* wide = NULL;
      op_case_ok(assay_tensor_widen(w.inputs[k], &wide));
      for (int64_t e = 0; e < wide->size; e++) {
        const double x =
            wide->store == ASSAY_STORE_F64 ? assay_f64(wide)[e] : (double)assay_i64(wide)[e];
        assert_true(x >= row->lo && x <= row->hi);
      }
      assay_tensor_release(wide);
      assay_tensor_release(c.in[k]);
      c.in[k] = assay_tensor_retain(w.inputs[k]);
    }
    range_case_run(&c, c.engine, "engine");
    const bool of_integers = row->kind == ASSAY_HAZARD_CAST || row->kind == ASSAY_HAZARD_WRAP;
    if (!c.broken && !of_integers) fail_msg("%s: the witness breaks nothing", row->graph.name);
    assay_witness_deinit(&w);
    assay_ranges_deinit(&r);
    range_case_deinit(&c);
  }
}

// The sums of an int8 layer past int32: told, and broken by the witness.
static void test_witness_of_sums(void** state) {
  enum { TERMS = 70000 };
  (void)state;
  const graph_case_t row = {.name = "sums past int32",
                            .opset = 21,
                            .inputs = {"x uint8[1,70000] iota"},
                            .constants = {"w int8[70000,1] iota"},
                            .nodes = {"MatMulInteger m x w -> y"},
                            .outputs = "y"};
  range_case_t c;
  assay_ranges_t r = {0};
  assay_witness_t w = {0};
  const assay_witness_options_t options = {.seconds = 20, .seed = 3};
  range_case_init(&c, &row, ASSAY_FORMAT_FP32);
  assay_tensor_t* weights = assay_graph_find_visible(c.model->graph, "w")->constant;
  assert_int_equal(weights->store, ASSAY_STORE_I64);
  for (int64_t i = 0; i < TERMS; i++) assay_i64(weights)[i] = i % 5 ? -127 : 10;
  c.box.inputs[0].lo = 0;
  c.box.inputs[0].hi = 255;
  range_case_find(&c, &r);
  assert_int_equal(r.n_hazards, 0);
  assay_ranges_deinit(&r);
  for (int64_t i = 0; i < TERMS; i++) assay_i64(weights)[i] = i % 50 ? -127 : 10;
  range_case_find(&c, &r);
  assert_int_equal(r.n_hazards, 1);
  assert_int_equal(r.hazards[0].kind, ASSAY_HAZARD_ACCUMULATOR);
  op_case_ok(assay_witness_find(c.plan, &c.box, &r, &options, &w));
  assert_true(w.found);
  assay_tensor_t* x = NULL;
  op_case_ok(assay_tensor_widen(w.inputs[0], &x));
  int64_t sum = 0;
  for (int64_t i = 0; i < TERMS; i++) sum += assay_i64(x)[i] * (i % 50 ? -127 : 10);
  assert_true(sum < -INT64_C(2147483648) && (double)sum == w.figure);
  assay_tensor_release(x);
  assay_witness_deinit(&w);
  assay_ranges_deinit(&r);
  range_case_deinit(&c);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_ranges_hold),
                                     cmocka_unit_test(test_bodies), cmocka_unit_test(test_radius),
                                     cmocka_unit_test(test_witnesses),
                                     cmocka_unit_test(test_witness_of_sums)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
