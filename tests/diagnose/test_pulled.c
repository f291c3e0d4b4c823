// What golden's outputs tell of inner values that lie before nodes which lose nothing: a node that
// is missing there, one in each of two parts that are joined, and that what cannot be read
// backwards is left alone.
#include "base/clock.h"
#include "diagnose/outputs/likelihood.h"
#include "diagnose/outputs/others.h"
#include "diagnose/outputs/pulled.h"
#include "diagnose/search_case.h"
#include "onnx/onnx.h"

typedef struct row {
  graph_case_t right, wrong;
  const char* nodes[4];  // those that are repaired; none: nothing is found
} row_t;

static const row_t rows[] = {
    // Numbers of each channel that stood before what undoes a normalization.
    {{"numbers before the end",
      17,
      {"x float[6,5]", "h float[8,6]", "g float[8,6]"},
      {"w float[5,8]", "k float[8] 0.5 1.5 2 -1 0.25 3 0.75 -2"},
      {"MatMul m x w -> a", "Mul l a k -> b", "Transpose t b -> c | perm=1,0", "Sub s c g -> d",
       "Add o d h -> y"},
      "y"},
     {"wrong",
      17,
      {"x float[6,5]", "h float[8,6]", "g float[8,6]"},
      {"w float[5,8]", "k float[8] 0.5 1.5 2 -1 0.25 3 0.75 -2"},
      {"MatMul m x w -> a", "Transpose t a -> c | perm=1,0", "Sub s c g -> d", "Add o d h -> y"},
      "y"},
     {"s"}},
    // A part towards a neighbour, of each of two coordinates.
    {{"two parts",
      17,
      {"x float[9,4]", "z float[9,4]"},
      {"w float[4,4]", "v float[4,4]", "q float[] 0.25", "s float[] 4"},
      {"MatMul m x w -> a", "MatMul n z v -> b", "Sign e z -> c", "Mul f c q -> d", "Sign g x -> h",
       "Mul i h q -> k", "Add j a d -> l", "Add o b k -> p", "Exp r1 l -> l2", "Exp r2 p -> p2",
       "Concat r l2 p2 -> t | axis=1", "Mul u t s -> y"},
      "y"},
     {"wrong",
      17,
      {"x float[9,4]", "z float[9,4]"},
      {"w float[4,4]", "v float[4,4]", "q float[] 0.25", "s float[] 4"},
      {"MatMul m x w -> a", "MatMul n z v -> b", "Sign e z -> c", "Mul f c q -> d", "Sign g x -> h",
       "Mul i h q -> k", "Exp r1 a -> l2", "Exp r2 b -> p2", "Concat r l2 p2 -> t | axis=1",
       "Mul u t s -> y"},
      "y"},
     {"r"}},
    // A product with fewer columns than rows loses what was there.
    {{"what is lost",
      17,
      {"x float[9,9]"},
      {"w float[9,9]", "u float[9,9]", "v float[9,2]"},
      {"MatMul m x u -> a", "Tanh t a -> b", "MatMul n b v -> y"},
      "y"},
     {"wrong",
      17,
      {"x float[9,9]"},
      {"w float[9,9]", "u float[9,9]", "v float[9,2]"},
      {"MatMul m x w -> a", "Tanh t a -> b", "MatMul n b v -> y"},
      "y"},
     {NULL}},
};

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
  if (!d.comparable || d.rms > 1e-5 * (1 + d.ref_rms))
    fail_msg("%s: the repaired model is off by %g of %g", row->right.name, d.rms, d.ref_rms);
  assay_evaluator_destroy(e);
  assay_model_release(prepared);
  assay_model_release(m);
  graph_case_release(in);
}

// Another sample: other inputs, and golden of them.
typedef struct sample {
  assay_tensor_t* in[GRAPH_CASE_ROWS];
  assay_model_t* right;
  assay_evaluator_t* golden;
  assay_golden_tensor_t known;
  assay_other_sample_t other;
  assay_export_options_t options;
  assay_others_t others;
} sample_t;

static void sample_init(const row_t* row, search_case_t* c, sample_t* s) {
  *s = (sample_t){0};
  s->right = graph_case_model(&row->right, s->in);
  for (size_t k = 0; k < s->right->graph->n_inputs; k++)
    for (int64_t i = 0; i < s->in[k]->size; i++)
      assay_f64(s->in[k])[i] = (double)(float)(0.3 - 0.9 * assay_f64(s->in[k])[i]);
  s->golden = search_case_truth(s->right, s->in);
  s->known = (assay_golden_tensor_t){
      .value = c->targets[0].value,
      .tensor = assay_evaluator_get(s->golden, s->right->graph->outputs[0])};
  s->other = (assay_other_sample_t){.in = s->in, .golden = {.at = &s->known, .n = 1}};
  s->options = (assay_export_options_t){.others = &s->other, .n_others = 1};
  c->search.options = &s->options;
  op_case_ok(assay_others_init(&s->options, &c->search, &s->others));
  assert_int_equal(c->search.n_others, 1);
}

static void sample_deinit(sample_t* s) {
  assay_others_deinit(&s->others);
  assay_evaluator_destroy(s->golden);
  assay_model_release(s->right);
  graph_case_release(s->in);
}

static void check_row(const row_t* row) {
  static assay_fault_t faults[ASSAY_SEARCH_FAULTS];
  search_case_t c;
  assay_trials_t trials;
  size_t n = 0, want = 0;
  bool any = false;
  while (want < 4 && row->nodes[want]) want++;
  search_case_init(&row->wrong, &row->right, &c);
  c.targets[0].explained_rms = 1e-6;
  c.targets[0].explained_max = 1e-5;
  sample_t sample;
  sample_init(row, &c, &sample);
  op_case_ok(assay_trials_init(&c.search, &trials));
  op_case_ok(assay_search_pulled(&trials, assay_clock_seconds() + 20, faults, &n));
  if (!n && trials.found) op_case_ok(assay_search_report(&trials, &faults[0], &any));
  if (any) n = 1;
  if (n != want)
    fail_msg("%s: %zu nodes are repaired, not %zu: %s", row->right.name, n, want,
             n ? faults[0].repair.text : "");
  for (size_t k = 0; k < n; k++)
    if (strcmp(faults[k].repair.node->label, row->nodes[k]) != 0)
      fail_msg("%s: %s is repaired: %s", row->right.name, faults[k].repair.node->label,
               faults[k].repair.text);
  if (n) repairs_hold(row, &c, faults, n);
  for (size_t k = 0; k < n; k++) assay_repair_deinit(&faults[k].repair);
  assay_trials_deinit(&trials);
  sample_deinit(&sample);
  search_case_deinit(&c);
}

static void outputs_are_read_backwards(void** state) {
  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) check_row(&rows[i]);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(outputs_are_read_backwards)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
