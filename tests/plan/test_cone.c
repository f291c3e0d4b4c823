// Layers of engines that are not ours: which nodes they take in, from the values that a record
// holds.
#include "passes/graph_case.h"
#include "plan/cone.h"

static const graph_case_t chains = {
    "chains",
    17,
    {"x float[2,2]"},
    {"w float[2,2]"},
    {"Relu a x -> p", "Exp b p -> q", "Neg c q -> r", "MatMul d q w -> s", "Add e r s -> t",
     "Abs dead q -> u", "Sqrt f t -> y", "Split split p -> l m | axis=0;num_outputs=2",
     "Add g l m -> z"},
    "y z"};

static const struct {
  const char *holds, *layers;  // values; nodes of each layer
} rows[] = {
    {"y z", "a b c d e f, a split g"},
    {"p q r s t u y z l m", "a, b, c, d, e, dead, f, split, g"},
    {"q y z", "a b, c d e f, a split g"},
    {"p y z", "a, b c d e f, split g"},
    // Held: s. c is needed by t only; b by both.
    {"s y z", "a b d, a b c e f, a split g"},
    // One output of a node is held, and another is not: its reader computes the node again.
    {"p l y z", "a, b c d e f, split, split g"},
    {"u y z", "a b dead, a b c d e f, a split g"},
};

static void mark(const assay_model_t* m, const char* names, bool* holds) {
  char text[128];
  snprintf(text, sizeof text, "%s", names);
  for (char* name = strtok(text, " "); name; name = strtok(NULL, " "))
    holds[assay_graph_find(m->graph, name)->id] = true;
}

static void layers_of_dumps(void** state) {
  (void)state;
  for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
    assay_tensor_t* in[GRAPH_CASE_ROWS] = {0};
    assay_model_t* m = graph_case_model(&chains, in);
    assay_arena_t* arena = NULL;
    assay_cone_t* cones = NULL;
    size_t n = 0;
    bool* holds = calloc((size_t)m->n_values, sizeof *holds);
    op_case_ok(assay_arena_create(&arena));
    mark(m, rows[k].holds, holds);
    op_case_ok(assay_cones_create(m, holds, arena, &cones, &n));
    char got[512] = "";
    for (size_t i = 0; i < n; i++)
      for (size_t j = 0; j < cones[i].n_nodes; j++) {
        strcat(got, j ? " " : i ? ", " : "");
        strcat(got, cones[i].nodes[j]->name);
      }
    assert_string_equal(got, rows[k].layers);
    free(holds);
    assay_arena_destroy(arena);
    assay_model_release(m);
    graph_case_release(in);
  }
}

static void outputs_must_be_held(void** state) {
  (void)state;
  assay_tensor_t* in[GRAPH_CASE_ROWS] = {0};
  assay_model_t* m = graph_case_model(&chains, in);
  assay_arena_t* arena = NULL;
  assay_cone_t* cones = NULL;
  size_t n = 0;
  bool* holds = calloc((size_t)m->n_values, sizeof *holds);
  op_case_ok(assay_arena_create(&arena));
  mark(m, "y", holds);
  assay_status_t st = assay_cones_create(m, holds, arena, &cones, &n);
  assert_non_null(st);
  assert_non_null(strstr(assay_status_message(st), "lack the output 'z'"));
  assay_status_free(st);
  free(holds);
  assay_arena_destroy(arena);
  assay_model_release(m);
  graph_case_release(in);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(layers_of_dumps),
                                     cmocka_unit_test(outputs_must_be_held)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
