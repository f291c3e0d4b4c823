// Attention in the forms in which it is written out is one layer, and the layer tells what it is.
#include "passes/assemble/attention.h"
#include "passes/edit.h"
#include "passes/truth_case.h"

typedef struct attention_case {
  const char* reads;  // what assay_attention_read says; NULL: there is no group
  size_t n_nodes;     // of the layer
  graph_case_t graph;
} attention_case_t;

#define QKV \
  { "q float[2,4,3,8]", "k float[2,4,5,8]", "v float[2,4,5,6]" }
#define TURN "Transpose kt k -> kt | perm=0,1,3,2"

static const attention_case_t cases[] = {
    {"q q 0123, k k 0132, v v 0123, y y 0123, scale 1",
     4,
     {"plain",
      17,
      QKV,
      {NULL},
      {TURN, "MatMul m q kt -> s", "Softmax p s -> p", "MatMul o p v -> y"},
      "y"}},
    {"q x 0213, k z 0231, v w 0213, y y 0213, scale 0.125, + mask",
     9,
     {"as BERT has it",
      12,
      {"x float[2,3,4,8]", "z float[2,5,4,8]", "w float[2,5,4,6]"},
      {"eight float[] 8", "mask float[1,1,3,5]"},
      {"Transpose qt x -> q | perm=0,2,1,3", "Transpose kt z -> k | perm=0,2,3,1",
       "Transpose vt w -> v | perm=0,2,1,3", "MatMul m q k -> s", "Div d s eight -> sd",
       "Add a sd mask -> sm", "Softmax p sm -> p | axis=3", "MatMul o p v -> o",
       "Transpose yt o -> y | perm=0,2,1,3"},
      "y"}},
    {"q q 0123, k k 0132, v v 0123, y y 0123, scale 0.25, + mask",
     7,
     {"as torch.export has it: half the scale on either side",
      18,
      QKV,
      {"root float[] 0.5", "mask float[3,5]"},
      {"Mul qs q root -> q2", TURN, "Mul ks kt root -> k2", "MatMul m q2 k2 -> s",
       "Add a mask s -> sm", "Softmax p sm -> p", "MatMul o p v -> y"},
      "y"}},
    {"q q 0123, k k 0132, v v 0123, y y 0123, scale 1, keeps c or -10000",
     5,
     {"a causal mask by Where",
      18,
      QKV,
      {"low float[] -10000", "c bool[1,1,3,5] 1 0 0 0 1 1 1 0 0 1 1 1 1 0 1"},
      {TURN, "MatMul m q kt -> s", "Where w c s low -> sm", "Softmax p sm -> p",
       "MatMul o p v -> y"},
      "y"}},
    {"q q 012, k k 021, v v 012, y y 012, scale 0.5, + bias, + mask",
     9,
     {"two masks, one of a view, as Swin has it",
      17,
      {"q float[8,3,8]", "k float[8,3,8]", "v float[8,3,8]"},
      {"half float[] 0.5", "bias float[1,3,3]", "mask float[1,4,3,3]", "to int64[4] 2 4 3 3",
       "back int64[3] 8 3 3"},
      {"Mul qs half q -> q2", "Transpose kt k -> kt | perm=0,2,1", "MatMul m q2 kt -> s",
       "Add b s bias -> sb", "Reshape r1 sb to -> s4", "Add a s4 mask -> sm",
       "Reshape r2 sm back -> s3", "Softmax p s3 -> p", "MatMul o p v -> y"},
      "y"}},
    {"q q 0123, k kt 0123, v v 0123, y y 0123, scale 1",
     3,
     {"a Transpose that others read stays outside",
      17,
      QKV,
      {NULL},
      {TURN, "MatMul m q kt -> s", "Softmax p s -> p", "MatMul o p v -> y", "Neg n kt -> z"},
      "y z"}},
    {NULL,
     0,
     {"not: the scores are an output",
      17,
      QKV,
      {NULL},
      {TURN, "MatMul m q kt -> s", "Softmax p s -> p", "MatMul o p v -> y"},
      "y s"}},
    {NULL,
     0,
     {"not: the weights are read elsewhere",
      17,
      QKV,
      {NULL},
      {TURN, "MatMul m q kt -> s", "Softmax p s -> p", "MatMul o p v -> y", "Neg n p -> z"},
      "y z"}},
    {NULL,
     0,
     {"not: Softmax over the queries",
      17,
      QKV,
      {NULL},
      {TURN, "MatMul m q kt -> s", "Softmax p s -> p | axis=2", "MatMul o p v -> y"},
      "y"}},
    {NULL,
     0,
     {"not: Softmax over all that is behind the batch",
      12,
      QKV,
      {NULL},
      {TURN, "MatMul m q kt -> s", "Softmax p s -> p | axis=1", "MatMul o p v -> y"},
      "y"}},
    {"q x Reshape Transpose Split.0 Squeeze, k x Reshape Transpose Split.1 Squeeze Transpose, v x "
     "Reshape Transpose Split.2 Squeeze, y y 0213, scale 1",
     11,
     {"out of one product, as Swin has it",
      17,
      {"x float[6,9,48]"},
      {"five int64[5] 6 9 3 2 8", "zero int64[1] 0"},
      {"Reshape r x five -> r", "Transpose t r -> t | perm=2,0,3,1,4",
       "Split s t -> s0 s1 s2 | axis=0", "Squeeze q s0 zero -> q", "Squeeze k s1 zero -> k",
       "Squeeze v s2 zero -> v", "Transpose kt k -> kt | perm=0,1,3,2", "MatMul m q kt -> s",
       "Softmax p s -> p", "MatMul o p v -> o", "Transpose yt o -> y | perm=0,2,1,3"},
      "y"}},
    {"q q0 Reshape Transpose, k k0 Reshape Transpose, v v0 Reshape Transpose, y y 0213, scale 1",
     10,
     {"one part is read by others: Split stays outside",
      17,
      {"x float[2,7,48]"},
      {"h int64[4] 0 0 2 8"},
      {"Split s x -> q0 k0 v0 | axis=-1", "Relu e k0 -> z", "Reshape rq q0 h -> q1",
       "Reshape rk k0 h -> k1", "Reshape rv v0 h -> v1", "Transpose tq q1 -> q | perm=0,2,1,3",
       "Transpose tk k1 -> k | perm=0,2,3,1", "Transpose tv v1 -> v | perm=0,2,1,3",
       "MatMul m q k -> s", "Softmax p s -> p", "MatMul o p v -> o",
       "Transpose yt o -> y | perm=0,2,1,3"},
      "y z"}},
    {NULL,
     0,
     {"not: the weights are the second factor",
      17,
      {"q float[2,4,5,8]", "k float[2,4,5,8]", "v float[2,4,5,5]"},
      {NULL},
      {TURN, "MatMul m q kt -> s", "Softmax p s -> p", "MatMul o v p -> y"},
      "y"}},
    {NULL,
     0,
     {"not: the factor is one of the mask, too",
      17,
      QKV,
      {"half float[] 0.5", "mask float[1,1,3,5]"},
      {TURN, "MatMul m q kt -> s", "Add a s mask -> sm", "Mul f sm half -> sf", "Softmax p sf -> p",
       "MatMul o p v -> y"},
      "y"}},
    {NULL,
     0,
     {"not: the mask makes the scores larger",
      17,
      {"q float[1,1,3,8]", "k float[1,1,5,8]", "v float[1,1,5,6]"},
      {"mask float[2,1,3,5]"},
      {TURN, "MatMul m q kt -> s", "Add a s mask -> sm", "Softmax p sm -> p", "MatMul o p v -> y"},
      "y"}},
    {NULL,
     0,
     {"not: no first product",
      17,
      {"s float[2,4,3,5]", "v float[2,4,5,6]"},
      {NULL},
      {"Relu r s -> r", "Softmax p r -> p", "MatMul o p v -> y"},
      "y"}},
};
enum { N_CASES = sizeof cases / sizeof *cases };

static void describe_axes(char* text, const char* name, const assay_value_t* v, const int* axes,
                          int rank) {
  sprintf(text + strlen(text), "%s%s %s ", *text ? ", " : "", name, v->name);
  for (int i = 0; i < rank; i++) sprintf(text + strlen(text), "%d", axes[i]);
}

// Where the way is Transposes only, the axes of the value; else the nodes.
static void describe(char* text, const char* name, const assay_attention_operand_t* o, int rank) {
  int axes[ASSAY_ATTENTION_RANK], n = 0;
  for (int i = 0; i < rank; i++) axes[i] = i;
  for (; n < o->n_way && assay_is(o->way[n], "Transpose"); n++) {
    int to[ASSAY_ATTENTION_RANK];
    size_t count = 0;
    const int64_t* perm = assay_attr_ints(o->way[n], "perm", &count);
    for (int i = 0; i < rank; i++) to[i] = axes[perm ? (int)perm[i] : rank - 1 - i];
    memcpy(axes, to, sizeof axes);
  }
  if (n == o->n_way) {
    describe_axes(text, name, o->value, axes, rank);
    return;
  }
  sprintf(text + strlen(text), "%s%s %s", *text ? ", " : "", name, o->value->name);
  for (int i = 0; i < o->n_way; i++) {
    sprintf(text + strlen(text), " %s", o->way[i]->op_type);
    if (assay_is(o->way[i], "Split")) sprintf(text + strlen(text), ".%d", o->outputs[i]);
  }
}

static void read_layer(const assay_rewrite_t* r, char text[512], size_t* n) {
  const assay_node_t* nodes[ASSAY_ATTENTION_NODES + 2];
  assay_attention_nodes_t a;
  *n = 0;
  for (size_t i = 0; i < r->model->graph->n_nodes; i++) {
    const assay_node_t* node = r->model->graph->nodes[i];
    if (r->group_of_node[node->id] < 0) continue;
    assert_true(*n < ASSAY_ATTENTION_NODES);
    nodes[(*n)++] = node;
  }
  text[0] = 0;
  if (!*n) return;
  assert_true(assay_attention_read(nodes, *n, &a));
  assert_false(assay_attention_read(nodes + 1, *n - 1, &a) && *n < 4);
  assert_true(assay_attention_read(nodes, *n, &a));
  describe(text, "q", &a.q, a.rank);
  describe(text, "k", &a.k, a.rank);
  describe(text, "v", &a.v, a.rank);
  describe_axes(text, "y", a.y, a.y_axes, a.rank);
  sprintf(text + strlen(text), ", scale %g", a.scale);
  for (int i = 0; i < a.n_masks; i++) {
    const assay_attention_mask_t* m = &a.masks[i];
    if (m->kind == ASSAY_ATTENTION_ADDED)
      sprintf(text + strlen(text), ", + %s", m->value->name);
    else
      sprintf(text + strlen(text), ", %s %s or %g",
              m->kind == ASSAY_ATTENTION_KEEPS ? "keeps" : "drops", m->value->name, m->fill);
  }
}

// Inputs with a size of a name each, as decoders have caches and masks: what may fit is taken, as
// tactics know the sizes.
static const attention_case_t open_cases[] = {
    {"q q 0123, k k 0132, v v 0123, y y 0123, scale 1, keeps c or -10000, + m",
     6,
     {"a cache and two masks",
      18,
      {"q float[2,4,1,8]", "k float[2,4,5,8]", "v float[2,4,5,6]", "c bool[1,1,1,5]",
       "m float[2,1,1,5]"},
      {"low float[] -10000"},
      {TURN, "MatMul mm q kt -> s", "Where w c s low -> sc", "Add a sc m -> sm",
       "Softmax p sm -> p", "MatMul o p v -> y"},
      "y"}},
    {NULL,
     0,
     {"not: the mask has a dimension more",
      18,
      {"q float[4,1,8]", "k float[4,5,8]", "v float[4,5,6]", "m float[2,1,1,5]"},
      {NULL},
      {"Transpose kt k -> kt | perm=0,2,1", "MatMul mm q kt -> s", "Add a s m -> sm",
       "Softmax p sm -> p", "MatMul o p v -> y"},
      "y"}},
};
enum { N_OPEN_CASES = sizeof open_cases / sizeof *open_cases };

static bool has_form(const attention_case_t* row, bool open) {
  assay_tensor_t* in[GRAPH_CASE_ROWS] = {NULL};
  char text[512];
  size_t n = 0;
  assay_rewrite_t* r = NULL;
  assay_model_t* m = graph_case_model_of(&row->graph, open, in);
  op_case_ok(assay_passes_run(m, &(assay_pass_options_t){.only = "attention", .verify = true}, &r));
  read_layer(r, text, &n);
  const bool same = n == row->n_nodes && strcmp(text, row->reads ? row->reads : "") == 0;
  if (!same)
    print_error("%s: %zu nodes, '%s'\n  expected %zu, '%s'\n", row->graph.name, n, text,
                row->n_nodes, row->reads ? row->reads : "");
  assay_evaluator_t* before = truth_of(m, in);
  keeps_truth(row->graph.name, m, before, in, assay_pass_find("attention"));
  assay_evaluator_destroy(before);
  assay_rewrite_destroy(r);
  assay_model_release(m);
  graph_case_release(in);
  return same;
}

static void forms(void** state) {
  (void)state;
  bool all = true;
  for (size_t i = 0; i < N_CASES; i++) all &= has_form(&cases[i], false);
  assert_true(all);
}

static void open_forms(void** state) {
  (void)state;
  bool all = true;
  for (size_t i = 0; i < N_OPEN_CASES; i++) all &= has_form(&open_cases[i], true);
  assert_true(all);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(forms), cmocka_unit_test(open_forms)};
  return cmocka_run_group_tests_name("attention", tests, NULL, NULL);
}
