// One slip in several nodes: those that belong together are repaired at once, and no others.
#include "base/clock.h"
#include "diagnose/outputs/alike.h"
#include "diagnose/search_case.h"
#include "onnx/onnx.h"

typedef struct row {
  graph_case_t right, wrong;
  const char* nodes[4];  // those to be repaired, or one of them with the same effect
} row_t;

#define ATTENTION(q, k)                                                                       \
  {                                                                                           \
    "MatMul mq x wq -> q0", "MatMul mk x wk -> k0", "MatMul mv x wv -> v", q, k,              \
        "Mul cq q1 a -> q", "Mul ck k1 b -> k2", "Transpose t k2 -> k | perm=1,0",            \
        "MatMul s q k -> c", "Softmax p c -> d", "MatMul o d v -> e", "MatMul out e wo -> y", \
        NULL,                                                                                 \
  }

// Each four columns are two pairs; right: two halves.
#define TURNED(name, from, to)                                     \
  "Reshape r" name " " from " h -> " from "r",                     \
      "Transpose t" name " " from "r -> " from "t | perm=0,1,3,2", \
      "Reshape b" name " " from "t z -> " to

#define HEADS(n, size)                                                                    \
  {                                                                                       \
    "wq float[8,8]", "wk float[8,8]", "wv float[8,8]", "hq int64[4] 0 0 " n " " size,     \
        "hk int64[4] 0 0 " n " " size, "hv int64[4] 0 0 " n " " size, "z int64[3] 0 0 8", \
        "wo float[8,6]", NULL,                                                            \
  }
#define ATTENTION_OF_HEADS                                                                     \
  {                                                                                            \
    "MatMul mq x wq -> q0", "MatMul mk x wk -> k0", "MatMul mv x wv -> v0",                    \
        "Reshape rq q0 hq -> q1", "Reshape rk k0 hk -> k1", "Reshape rv v0 hv -> v1",          \
        "Transpose tq q1 -> q | perm=0,2,1,3", "Transpose tk k1 -> k | perm=0,2,3,1",          \
        "Transpose tv v1 -> v | perm=0,2,1,3", "MatMul s q k -> c", "Softmax p c -> d",        \
        "MatMul o d v -> e", "Transpose back e -> f | perm=0,2,1,3", "Reshape merge f z -> g", \
        "MatMul out g wo -> y", NULL,                                                          \
  }

static const row_t rows[] = {
    {{"queries and keys",
      17,
      {"x float[7,6]"},
      {"wq float[6,8]", "wk float[6,8]", "wv float[6,5]", "a float[8]", "b float[8]",
       "wo float[5,6]", "h int64[4] 0 2 2 2", "z int64[2] 0 8"},
      {"MatMul mq x wq -> q0", "MatMul mk x wk -> k0", "MatMul mv x wv -> v",
       TURNED("q", "q0", "q1"), TURNED("k", "k0", "k1"), "Mul cq q1 a -> q", "Mul ck k1 b -> k2",
       "Transpose t k2 -> k | perm=1,0", "MatMul s q k -> c", "Softmax p c -> d",
       "MatMul o d v -> e", "MatMul out e wo -> y"},
      "y"},
     {"wrong",
      17,
      {"x float[7,6]"},
      {"wq float[6,8]", "wk float[6,8]", "wv float[6,5]", "a float[8]", "b float[8]",
       "wo float[5,6]", "h int64[4] 0 2 2 2", "z int64[2] 0 8"},
      ATTENTION("Identity iq q0 -> q1", "Identity ik k0 -> k1"),
      "y"},
     {"mq", "mk"}},
    {{"numbers of heads", 17, {"x float[1,5,8]"}, HEADS("2", "4"), ATTENTION_OF_HEADS, "y"},
     {"wrong", 17, {"x float[1,5,8]"}, HEADS("4", "2"), ATTENTION_OF_HEADS, "y"},
     {"rq", "rk", "rv"}},
    {{"classes",
      17,
      {"x float[7,6]"},
      {"w float[6,5]", "u float[5,4]", "b float[4]", "s int64[1] 3", "e int64[1] 9", "z int64[1] 0",
       "one int64[1] 1"},
      {"MatMul m x w -> a", "Tanh t a -> c", "MatMul n c u -> d", "Add p d b -> f",
       "Slice last f s e one -> g", "Slice first f z s one -> h", "Concat j g h -> i | axis=1",
       "Softmax q i -> y"},
      "y"},
     {"wrong",
      17,
      {"x float[7,6]"},
      {"w float[6,5]", "u float[5,4]", "b float[4]", "s int64[1] 3", "e int64[1] 9", "z int64[1] 0",
       "one int64[1] 1"},
      {"MatMul m x w -> a", "Tanh t a -> c", "MatMul n c u -> d", "Add p d b -> f",
       "Softmax q f -> y"},
      "y"},
     {"n", "p"}},
    {{"axes",
      17,
      {"x float[2,4,4]"},
      {"w float[4,4]", "u float[4,4]", "v float[4,3]"},
      {"MatMul m x w -> a", "Softmax p a -> b | axis=1", "MatMul n b u -> c",
       "Softmax q c -> d | axis=1", "MatMul o d v -> y"},
      "y"},
     {"wrong",
      17,
      {"x float[2,4,4]"},
      {"w float[4,4]", "u float[4,4]", "v float[4,3]"},
      {"MatMul m x w -> a", "Softmax p a -> b", "MatMul n b u -> c", "Softmax q c -> d",
       "MatMul o d v -> y"},
      "y"},
     {"p", "q"}},
};

static bool is_wanted(const row_t* row, const char* node) {
  for (int i = 0; i < 4 && row->nodes[i]; i++)
    if (strcmp(row->nodes[i], node) == 0) return true;
  return false;
}

// All repairs, made in the model as it was read, give golden.
static void repairs_hold(const row_t* row, const search_case_t* c, const assay_fault_t* faults,
                         size_t n) {
  assay_tensor_t* in[GRAPH_CASE_ROWS] = {NULL};
  assay_model_t* m = graph_case_model(&row->wrong, in);
  for (size_t k = 0; k < n; k++) op_case_ok(assay_repair_apply(&faults[k].repair, m));
  op_case_ok(assay_model_verify(m));
  assay_model_t* prepared = NULL;
  op_case_ok(assay_onnx_prepare(m, 0, NULL, &prepared));
  assay_evaluator_t* e = search_case_truth(prepared, in);
  const assay_tensor_t* y = assay_evaluator_get(e, m->graph->outputs[0]);
  const assay_difference_t d = assay_difference(y, c->targets[0].golden);
  if (!d.comparable || d.rms > 1e-6 * (1 + d.ref_rms))
    fail_msg("%s: the repaired model is off by %g of %g", row->right.name, d.rms, d.ref_rms);
  assay_evaluator_destroy(e);
  assay_model_release(prepared);
  assay_model_release(m);
  graph_case_release(in);
}

static void slips_in_several_nodes_are_found(void** state) {
  (void)state;
  static assay_fault_t faults[ASSAY_SEARCH_FAULTS];
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    const row_t* row = &rows[i];
    search_case_t c;
    size_t n = 0, want = 0;
    while (want < 4 && row->nodes[want]) want++;
    search_case_init(&row->wrong, &row->right, &c);
    c.targets[0].explained_rms = 1e-6;
    c.targets[0].explained_max = 1e-5;
    c.search.deadline = assay_clock_seconds() + 20;
    c.search.several = true;
    op_case_ok(assay_search_run(&c.search, faults, &n));
    if (!n || !faults[0].restored)
      fail_msg("%s: nothing restores golden, best is '%s' of %s", row->right.name,
               n ? faults[0].repair.text : "", n ? faults[0].node->label : "no node");
    for (size_t k = 0; k < n; k++)
      if (!is_wanted(row, faults[k].node->label))
        fail_msg("%s: %s is repaired: %s", row->right.name, faults[k].node->label,
                 faults[k].repair.text);
    if (n > want) fail_msg("%s: %zu nodes are repaired, not %zu at most", row->right.name, n, want);
    repairs_hold(row, &c, faults, n);
    for (size_t k = 0; k < n; k++) assay_repair_deinit(&faults[k].repair);
    search_case_deinit(&c);
  }
}

// Names and, of what comes out, axes do not make a slip another one; operators and inner axes do.
static void keys_tell_slips(void** state) {
  (void)state;
  search_case_t c;
  search_case_init(&rows[2].wrong, &rows[2].wrong, &c);
  const assay_node_t* nodes[2] = {NULL, NULL};  // n and p
  for (size_t i = 0; i < c.search.n_nodes; i++)
    for (int k = 0; k < 2; k++)
      if (strcmp(c.search.nodes[i]->label, k ? "p" : "n") == 0) nodes[k] = c.search.nodes[i];
  assay_repair_t a = {.node = nodes[0], .n_edits = 1, .text = "'u' moved by +1 along axis 1"};
  assay_repair_t b = {.node = nodes[1], .n_edits = 1, .text = "'b' moved by +1 along axis 0"};
  a.edits[0] = (assay_repair_edit_t){
      .kind = ASSAY_EDIT_CONSTANT, .input = 1, .tensor = nodes[0]->inputs[1]->constant};
  b.edits[0] = (assay_repair_edit_t){
      .kind = ASSAY_EDIT_CONSTANT, .input = 1, .tensor = nodes[1]->inputs[1]->constant};
  assert_true(assay_alike_key(&a, 3) != 0);
  assert_true(assay_alike_key(&a, 3) == assay_alike_key(&b, 3));
  assert_true(assay_alike_key(&a, 3) != assay_alike_key(&a, 4));
  snprintf(b.text, sizeof b.text, "'b' moved by -1 along axis 0");
  assert_true(assay_alike_key(&a, 3) != assay_alike_key(&b, 3));
  snprintf(a.text, sizeof a.text, "'u' moved by -1 along axis 0");
  assert_true(assay_alike_key(&a, 3) != assay_alike_key(&b, 3));
  a.fits = true;
  assert_true(assay_alike_key(&a, 3) == 0);
  search_case_deinit(&c);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(slips_in_several_nodes_are_found),
                                     cmocka_unit_test(keys_tell_slips)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
