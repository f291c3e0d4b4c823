// Normalizations with quantizers inside are one layer, and the layer tells what it is.
#include "base/alloc.h"
#include "passes/edit.h"
#include "passes/int8/quantized_norm.h"
#include "passes/read_case.h"

#define PASS "quantized_norms"

typedef struct norm_case {
  const char* reads;  // what assay_quantized_norm_read says of each layer; "": there is none
  graph_case_t graph;
} norm_case_t;

#define X \
  { "x float[2,8,3,5]" }
#define CONSTANTS                                                                               \
  {                                                                                             \
    "s float[] 0.02", "z uint8[] 120", "sv float[] 0.004", "zv uint8[] 0", "sn float[] 0.03",   \
        "zn int8[] -3", "two float[] 2", "three float[] 3", "eps float[] 1e-5",                 \
        "k float[1,8,1,1] positive", "t float[8,1,1]", "kq uint8[8,1,1] 9 8 7 6 5 4 3 2",       \
        "row float[5]", "zc uint8[8] 1 2 3 4 5 6 7 8", "sc float[8] positive", "one float[] 1", \
        "all float[1,8,3,5]", "es float[8,1,1] positive"                                        \
  }
#define FRONT "QuantizeLinear q0 x s z -> xq", "DequantizeLinear d0 xq s z -> xf"
#define CENTER(axes) "ReduceMean m xf -> m | axes=" axes, "Sub a xf m -> d"
#define MOMENTS(axes) CENTER(axes), "Pow p d two -> p", "ReduceMean v p -> v | axes=" axes
#define VARIANCE "QuantizeLinear q1 v sv zv -> vq", "DequantizeLinear d1 vq sv zv -> vf"
#define SUM \
  "Add e vf eps -> e", "QuantizeLinear q2 e sv zv -> eq", "DequantizeLinear d2 eq sv zv -> ef"
#define QUOTIENT "Sqrt r ef -> r", "Div n d r -> n"
#define MAX FRONT, MOMENTS("1"), VARIANCE, SUM, QUOTIENT
#define STEP "QuantizeLinear q3 n sn zn -> nq", "DequantizeLinear d3 nq sn zn -> nf"

static const norm_case_t cases[] = {
    {"axes 1, steps ve, 2 stages * +",
     {"as tools for static quantization leave it",
      13,
      X,
      CONSTANTS,
      {MAX, STEP, "Mul f nf k -> f", "QuantizeLinear q4 f sn zn -> fq",
       "DequantizeLinear d4 fq sn zn -> ff", "Add b ff t -> b", "QuantizeLinear q5 b sn zn -> y"},
      "y"}},
    {"axes 1, steps ve, 1 stages *+",
     {"scaled and shifted between two quantizers",
      13,
      X,
      CONSTANTS,
      {MAX, STEP, "Mul f k nf -> f", "Add b t f -> b", "QuantizeLinear q5 b sn zn -> y"},
      "y"}},
    {"axes 1, steps ve, 1 stages *",
     {"the scale is quantized itself",
      13,
      X,
      CONSTANTS,
      {MAX, STEP, "DequantizeLinear dk kq s z -> kf", "Mul f nf kf -> f",
       "QuantizeLinear q5 f sn zn -> y"},
      "y"}},
    {"axes 1, steps ve, 0 stages",
     {"the quotient alone", 13, X, CONSTANTS, {MAX, "QuantizeLinear q3 n sn zn -> y"}, "y"}},
    {"axes 1, steps e, 0 stages",
     {"only the sum is quantized",
      13,
      X,
      CONSTANTS,
      {FRONT, MOMENTS("1"), "Add e v eps -> e", "QuantizeLinear q2 e sv zv -> eq",
       "DequantizeLinear d2 eq sv zv -> ef", QUOTIENT, "QuantizeLinear q3 n sn zn -> y"},
      "y"}},
    {"axes 1, steps r, 0 stages",
     {"only the root is quantized, d is squared by Mul",
      13,
      X,
      CONSTANTS,
      {FRONT, CENTER("1"), "Mul p d d -> p", "ReduceMean v p -> v | axes=1", "Add e v eps -> e",
       "Sqrt r e -> r", "QuantizeLinear q2 r sv zv -> rq", "DequantizeLinear d2 rq sv zv -> rf",
       "Div n d rf -> n", "QuantizeLinear q3 n sn zn -> y"},
      "y"}},
    {"axes 23, steps ve, 1 stages *",
     {"over the last dimensions",
      13,
      X,
      CONSTANTS,
      {FRONT, MOMENTS("-1,2"), VARIANCE, SUM, QUOTIENT, STEP, "Mul f nf one -> f",
       "QuantizeLinear q5 f sn zn -> y"},
      "y"}},
    {"axes 1, steps ve, 0 stages",
     {"a residual reads what is normalized",
      13,
      X,
      CONSTANTS,
      {MAX, "QuantizeLinear q3 n sn zn -> y", "Relu w xf -> w"},
      "y w"}},
    {"axes 1, steps ve, 0 stages; axes 1, steps e, 0 stages",
     {"two of one input",
      13,
      X,
      CONSTANTS,
      {MAX, "QuantizeLinear q3 n sn zn -> y", "ReduceMean m2 xf -> m2 | axes=1",
       "Sub a2 xf m2 -> o", "Pow p2 o two -> p2", "ReduceMean v2 p2 -> v2 | axes=1",
       "Add e2 v2 eps -> e2", "QuantizeLinear q6 e2 sv zv -> e2q",
       "DequantizeLinear d6 e2q sv zv -> e2f", "Sqrt r2 e2f -> r2", "Div n2 o r2 -> n2",
       "QuantizeLinear q7 n2 sn zn -> w"},
      "y w"}},

    // ---- near misses
    {"",
     {"cubes",
      13,
      X,
      CONSTANTS,
      {FRONT, CENTER("1"), "Pow p d three -> p", "ReduceMean v p -> v | axes=1", VARIANCE, SUM,
       QUOTIENT, "QuantizeLinear q3 n sn zn -> y"},
      "y"}},
    {"",
     {"nothing quantizes on the way to the root",
      13,
      X,
      CONSTANTS,
      {FRONT, MOMENTS("1"), "Add e v eps -> e", "Sqrt r e -> r", "Div n d r -> n",
       "QuantizeLinear q3 n sn zn -> y"},
      "y"}},
    {"",
     {"mean and variance over other axes",
      13,
      X,
      CONSTANTS,
      {FRONT, CENTER("1"), "Pow p d two -> p", "ReduceMean v p -> v | axes=2", VARIANCE, SUM,
       QUOTIENT, "QuantizeLinear q3 n sn zn -> y"},
      "y"}},
    {"",
     {"elements that lie together in no layout",
      13,
      X,
      CONSTANTS,
      {FRONT, MOMENTS("2"), VARIANCE, SUM, QUOTIENT, "QuantizeLinear q3 n sn zn -> y"},
      "y"}},
    {"axes 1, steps ve, 0 stages",
     {"a scale for each place: it stays outside",
      13,
      X,
      CONSTANTS,
      {MAX, STEP, "Mul f nf row -> f", "QuantizeLinear q5 f sn zn -> y"},
      "y"}},
    {"",
     {"epsilon has elements",
      13,
      X,
      CONSTANTS,
      {FRONT, MOMENTS("1"), VARIANCE, "Add e vf es -> e", "QuantizeLinear q2 e sv zv -> eq",
       "DequantizeLinear d2 eq sv zv -> ef", QUOTIENT, "QuantizeLinear q3 n sn zn -> y"},
      "y"}},
    {"",
     {"the quotient is scaled before anything quantizes it",
      13,
      X,
      CONSTANTS,
      {MAX, "Mul f n k -> f", "QuantizeLinear q5 f sn zn -> y"},
      "y"}},
    {"",
     {"another difference is divided",
      13,
      X,
      CONSTANTS,
      {FRONT, MOMENTS("1"), VARIANCE, SUM, "Sub a2 xf all -> o", "Sqrt r ef -> r", "Div n o r -> n",
       "QuantizeLinear q3 n sn zn -> y"},
      "y"}},
    {"",
     {"the variance is an output",
      13,
      X,
      CONSTANTS,
      {MAX, "QuantizeLinear q3 n sn zn -> y"},
      "y v"}},
    {"",
     {"somebody else reads the difference",
      13,
      X,
      CONSTANTS,
      {MAX, "QuantizeLinear q3 n sn zn -> y", "Relu w d -> w"},
      "y w"}},
    {"",
     {"a scale for each channel of the input",
      13,
      X,
      CONSTANTS,
      {"QuantizeLinear q0 x sc zc -> xq | axis=1", "DequantizeLinear d0 xq sc zc -> xf | axis=1",
       MOMENTS("1"), VARIANCE, SUM, QUOTIENT, "QuantizeLinear q3 n sn zn -> y"},
      "y"}},
    {"",
     {"floats come in",
      13,
      {"xf float[2,8,3,5]"},
      CONSTANTS,
      {MOMENTS("1"), VARIANCE, SUM, QUOTIENT, "QuantizeLinear q3 n sn zn -> y"},
      "y"}},
};
enum { N_CASES = sizeof cases / sizeof *cases };

static void describe(const assay_quantized_norm_t* q, char* text) {
  text += sprintf(text, "axes ");
  for (int i = 0; i < q->rank; i++)
    if (q->axes[i]) text += sprintf(text, "%d", i);
  text += sprintf(text, ", steps %s%s%s", q->of_variance.is_there ? "v" : "",
                  q->of_sum.is_there ? "e" : "", q->of_root.is_there ? "r" : "");
  text += sprintf(text, ", %d stages", q->n_stages);
  for (int i = 0; i < q->n_stages; i++)
    text += sprintf(text, " %s%s", q->stages[i].factor ? "*" : "", q->stages[i].term ? "+" : "");
}

static void read_layers(const assay_rewrite_t* r, char text[READ_CASE_TEXT]) {
  text[0] = 0;
  for (int g = r->n_groups; g-- > 0;) {  // the last one of the graph was found first
    const assay_node_t* nodes[ASSAY_QUANTIZED_NORM_NODES];
    assay_quantized_norm_t q;
    size_t n = 0;
    for (size_t i = 0; i < r->model->graph->n_nodes; i++) {
      const assay_node_t* node = r->model->graph->nodes[i];
      if (r->group_of_node[node->id] != g) continue;
      assert_true(n < ASSAY_QUANTIZED_NORM_NODES);
      nodes[n++] = node;
    }
    assert_true(assay_quantized_norm_read(nodes, n, &q));
    assert_false(assay_quantized_norm_read(nodes + 1, n - 1, &q));
    assert_false(assay_quantized_norm_read(nodes, n - 1, &q));
    assert_true(assay_quantized_norm_read(nodes, n, &q));
    assert_true(q.x_scale == 0.02F && q.x_zero == 120 && q.x_type == ASSAY_TYPE_UINT8);
    assert_true(q.of_quotient.is_there && q.of_quotient.type == ASSAY_TYPE_INT8);
    assert_true(q.of_quotient.scale == 0.03F && q.of_quotient.zero == -3);
    if (*text) strcat(text, "; ");
    describe(&q, text + strlen(text));
  }
}

static void forms(void** state) {
  (void)state;
  bool same = true;
  for (size_t i = 0; i < N_CASES; i++)
    same &= reads_as(PASS, &cases[i].graph, cases[i].reads, read_layers);
  assert_true(same);
}

static void failing_allocations(void** state) {
  (void)state;
  for (size_t i = 0; i < N_CASES; i++) {
    assay_tensor_t* in[GRAPH_CASE_ROWS] = {NULL};
    assay_model_t* m = graph_case_model(&cases[i].graph, in);
    const assay_pass_options_t options = {.only = PASS};
    const int64_t live = assay_alloc_live();
    bool reached = true;
    for (uint64_t n = 1; reached; n++) {
      assay_rewrite_t* r = NULL;
      assay_alloc_fail_after(n, false);
      assay_status_t st = assay_passes_run(m, &options, &r);
      reached = assay_alloc_fail_after(0, false) >= n;
      if (st) assert_int_equal(assay_status_code(st), ASSAY_NO_MEMORY);
      assay_status_free(st);
      assay_rewrite_destroy(r);
      assert_int_equal(assay_alloc_live(), live);
    }
    assay_model_release(m);
    graph_case_release(in);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(forms),
      cmocka_unit_test(failing_allocations),
  };
  return cmocka_run_group_tests_name(PASS, tests, NULL, NULL);
}
