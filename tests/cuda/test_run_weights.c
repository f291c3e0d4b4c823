// Convolutions whose weights are values of the run, on the CUDA platform without a GPU: the bits of
// the same ones with constant weights, in every format, by the same tactics.
#include "layer_case.h"

typedef struct weights_row {
  const char *x, *w, *b, *op, *attributes;  // b NULL: no bias
  const char* behind;                       // a node that makes y of h; NULL: there is none
} weights_row_t;

static const weights_row_t rows[] = {
    {"x float[2,16,5,6]", "w float[8,16,1,1]", "b float[8]", "Conv", "", NULL},
    {"x float[1,8,7,9]", "w float[8,8,3,3]", "b float[8]", "Conv", "pads=1,0,1,2", "Relu r h -> y"},
    {"x float[1,3,11,13]", "w float[8,3,5,5]", NULL, "Conv", "pads=2,2,2,2 strides=2,3", NULL},
    {"x float[1,32,6,5]", "w float[8,16,3,3]", "b float[8]", "Conv", "group=2",
     "HardSwish r h -> y"},
    {"x float[2,8,6,5]", "w float[8,2,3,3]", "b float[8]", "Conv", "group=4 pads=1,1,1,1", NULL},
    {"x float[2,8,6,5]", "w float[8,1,3,3]", "b float[8]", "Conv", "group=8 pads=1,1,1,1",
     "Relu r h -> y"},
    {"x float[1,4,6,5]", "w float[8,1,3,3]", NULL, "Conv", "group=4", NULL},
    {"x float[2,16,20]", "w float[8,16,5]", "b float[8]", "Conv", "strides=3 pads=2,1", NULL},
    {"x float[1,4,3,4,5]", "w float[8,4,2,3,3]", "b float[8]", "Conv", "pads=0,1,1,1,1,0", NULL},
    {"x float[2,8,5,4]", "w float[8,6,4,4]", "b float[6]", "ConvTranspose",
     "strides=2,2 pads=1,1,1,1", "Relu r h -> y"},
    {"x float[1,6,4,5]", "w float[6,4,3,3]", NULL, "ConvTranspose",
     "group=3 strides=3,2 output_padding=1,1", NULL},
    {"x float[1,8,5,4]", "w float[8,1,4,4]", "b float[8]", "ConvTranspose", "group=8 strides=2,2",
     NULL},
    {"x float[2,4,9]", "w float[4,8,3]", "b float[8]", "ConvTranspose", "strides=2", NULL},
};

static void fill(const weights_row_t* r, bool constant, char node[160], graph_case_t* g) {
  snprintf(node, 160, "%s c x w%s -> %s%s%s", r->op, r->b ? " b" : "", r->behind ? "h" : "y",
           *r->attributes ? " | " : "", r->attributes);
  *g = (graph_case_t){
      .name = node, .opset = 17, .inputs = {r->x}, .nodes = {node, r->behind}, .outputs = "y"};
  const char** to = constant ? g->constants : &g->inputs[1];
  to[0] = r->w;
  to[1] = r->b;
}

static assay_tensor_t* constant_of(const assay_model_t* m, const char* name) {
  const assay_value_t* v = assay_graph_find_visible(m->graph, name);
  assert_non_null(v);
  assert_non_null(v->constant);
  return v->constant;
}

static void check(const weights_row_t* r, int format) {
  char nodes[2][160];
  graph_case_t known, of_run;
  assay_tensor_t *in[GRAPH_CASE_ROWS] = {NULL}, *given[GRAPH_CASE_ROWS] = {NULL};
  tactic_run_t want, got;
  fill(r, true, nodes[0], &known);
  fill(r, false, nodes[1], &of_run);
  assay_model_t *a = graph_case_model(&known, in), *b = graph_case_model(&of_run, given);
  assay_tensor_t* wide[2] = {NULL};
  op_case_ok(assay_tensor_widen(constant_of(a, "w"), &wide[0]));
  if (r->b) op_case_ok(assay_tensor_widen(constant_of(a, "b"), &wide[1]));
  assay_tensor_t* same[GRAPH_CASE_ROWS] = {in[0], wide[0], wide[1]};
  tactic_case_run(a, "cuda", layer_formats[format].format, in, &want);
  tactic_case_run(b, "cuda", layer_formats[format].format, same, &got);
  if (strcmp(want.tactic, got.tactic) != 0)
    fail_msg("%s, %s: by %s, not by %s", nodes[0], layer_formats[format].name, got.tactic,
             want.tactic);
  layer_case_same(nodes[0], layer_formats[format].name, want.out[0], got.out[0]);
  tactic_case_release(&want);
  tactic_case_release(&got);
  for (int i = 0; i < 2; i++)
    if (wide[i]) assay_tensor_release(wide[i]);
  graph_case_release(in);
  graph_case_release(given);
  assay_model_release(a);
  assay_model_release(b);
}

static void bits_are_those_of_constants(void** state) {
  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    for (int f = 0; f < LAYER_FORMATS; f++) check(&rows[i], f);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(bits_are_those_of_constants)};
  layer_case_platform();
  return cmocka_run_group_tests(tests, NULL, NULL);
}
