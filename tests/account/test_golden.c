// Golden tensors: which value each of them is, and how tensors differ.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "account/golden/golden.h"
#include "check/check.h"
#include "passes/graph_case.h"

static const graph_case_t network = {
    "network",
    17,
    {"x float[2,3]"},
    {"k float[] 2"},
    {"Mul mul x k -> /a/mul_output", "Relu relu /a/mul_output -> y"},
    "y"};

// ---- names --------------------------------------------------------------------------------------

static void add(assay_set_t* set, const char* name) {
  op_case_ok(assay_set_add(set, name, op_case_tensor("float[2,3] iota")));
}

static void arrays_find_their_values(void** state) {
  (void)state;
  assay_tensor_t* in[GRAPH_CASE_ROWS] = {NULL};
  assay_model_t* m = graph_case_model(&network, in);
  char* from[] = {(char*)"block0.relu"};
  char* to[] = {(char*)"y"};
  const assay_name_map_t map = {from, to, 1};
  assay_set_t set = {0};
  assay_golden_t g = {0};
  add(&set, "block0.relu");
  add(&set, "|a|mul_output");
  add(&set, "nothing");
  op_case_ok(assay_golden_match(&set, m, &map, &g));
  assert_int_equal(g.n, 3);
  assert_string_equal(g.at[0].value->name, "y");
  assert_int_equal(g.at[0].match, ASSAY_GOLDEN_BY_MAP);
  assert_string_equal(g.at[1].value->name, "/a/mul_output");
  assert_int_equal(g.at[1].match, ASSAY_GOLDEN_BY_NAME);
  assert_null(g.at[2].value);
  assert_ptr_equal(assay_golden_of(&g, g.at[1].value), &g.at[1]);
  assay_golden_deinit(&g);
  to[0] = (char*)"gone";
  assay_status_t st = assay_golden_match(&set, m, &map, &g);
  assert_int_equal(assay_status_code(st), ASSAY_NOT_FOUND);
  assert_non_null(strstr(assay_status_message(st), "gone"));
  assay_status_free(st);
  assay_golden_deinit(&g);
  assay_set_deinit(&set);
  assay_model_release(m);
  graph_case_release(in);
}

static void write_file(const char* path, const char* text) {
  FILE* f = fopen(path, "w");
  assert_non_null(f);
  fputs(text, f);
  fclose(f);
}

static void maps_are_read(void** state) {
  (void)state;
  char path[] = "/tmp/assay_map_XXXXXX";
  const int file = mkstemp(path);
  assert_true(file >= 0);
  close(file);
  assay_name_map_t map = {0};
  write_file(path, "{\"theirs\": \"ours\", \"conv.out\": \"/conv/out\"}");
  op_case_ok(assay_name_map_read(path, &map));
  assert_int_equal(map.n, 2);
  assert_string_equal(map.from[1], "conv.out");
  assert_string_equal(map.to[1], "/conv/out");
  assay_name_map_deinit(&map);
  static const char* const wrong[] = {"[1]", "{\"a\": 1}", "{", ""};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    write_file(path, wrong[i]);
    assay_status_t st = assay_name_map_read(path, &map);
    assert_int_equal(assay_status_code(st), ASSAY_CORRUPT);
    assay_status_free(st);
    assert_int_equal(map.n, 0);
  }
  remove(path);
}

// ---- differences --------------------------------------------------------------------------------

typedef struct difference_row {
  const char *got, *ref;
  bool comparable;
  double rms, max;
  int mismatched;
} difference_row_t;

static const difference_row_t differences[] = {
    {"float[2] 1 2", "float[2] 1 2", true, 0, 0, 0},
    {"float[2] 1 2", "double[2] 1 5", true, 2.1213203435596424, 3, 0},
    {"float[3,1] 1 2 9", "float[2,1] 1 2", true, 0, 0, 0},
    {"float[2,1] 1 2", "float[3,1] 1 2 9", false, 0, 0, 0},
    {"float[2] 1 2", "float[1,2] 1 2", false, 0, 0, 0},
    {"float[2] 1 2", "int64[2] 1 2", false, 0, 0, 0},
    {"int64[3] 1 2 3", "int64[3] 1 5 4", true, 0, 0, 2},
    {"bool[2] 1 0", "bool[2] 1 1", true, 0, 0, 1},
    {"float[3] nan inf 1", "float[3] nan inf 1", true, 0, 0, 0},
    {"float[3] nan inf 1", "float[3] 1 -inf 1", true, 0, 0, 2},
    {"float[0]", "float[0]", true, 0, 0, 0},
    {"float[] 3", "float[] 1", true, 2, 2, 0},
};

static void tensors_differ(void** state) {
  (void)state;
  for (size_t i = 0; i < sizeof differences / sizeof *differences; i++) {
    const difference_row_t* r = &differences[i];
    assay_tensor_t *got = op_case_tensor(r->got), *ref = op_case_tensor(r->ref);
    const assay_difference_t d = assay_difference(got, ref);
    if (d.comparable != r->comparable || fabs(d.rms - r->rms) > 1e-12 || d.max != r->max ||
        d.mismatched != r->mismatched)
      fail_msg("'%s' and '%s': %d, %g, %g, %d", r->got, r->ref, d.comparable, d.rms, d.max,
               (int)d.mismatched);
    assay_tensor_release(got);
    assay_tensor_release(ref);
  }
  assay_tensor_t* t = op_case_tensor("float[1] 1");
  assert_false(assay_difference(NULL, t).comparable);
  assert_false(assay_difference(t, NULL).comparable);
  assay_tensor_release(t);
}

// ---- quantized constants ------------------------------------------------------------------------

static const int weights[16] = {90, -20, 33, 7, -50, 60, 11, -3, 8, 100, -70, 2, 5, -9, 40, 80};
static const graph_case_t quantized = {
    "quantized",
    17,
    {"x float[6,4]"},
    {"w int8[4,4] 90 -20 33 7 -50 60 11 -3 8 100 -70 2 5 -9 40 80", "s float[] 0.02", "z int8[] 0"},
    {"DequantizeLinear d w s z -> wf", "MatMul mm x wf -> y"},
    "y"};

// What the network gave whose weights were rounded to those steps: they were up to 0.4 steps away.
// `turned`: it had them in the other order.
static assay_tensor_t* before_quantizing(const assay_tensor_t* x, bool turned) {
  const int64_t dims[] = {6, 4};
  assay_tensor_t* y = NULL;
  op_case_ok(assay_tensor_create(ASSAY_TYPE_FLOAT, 2, dims, &y));
  for (int64_t i = 0; i < 6; i++)
    for (int64_t j = 0; j < 4; j++) {
      double sum = 0;
      for (int64_t k = 0; k < 4; k++) {
        const int64_t at = turned ? j * 4 + k : k * 4 + j;
        const double step = (double)weights[at] + 0.4 * sin(1 + 3 * (double)at);
        sum += assay_f64(x)[i * 4 + k] * step * (double)0.02f;
      }
      assay_f64(y)[i * 4 + j] = (double)(float)sum;
    }
  return y;
}

static void steps_of_constants_are_no_fault(void** state) {
  (void)state;
  for (int turned = 0; turned < 2; turned++) {
    assay_tensor_t* in[GRAPH_CASE_ROWS] = {NULL};
    assay_model_t* m = graph_case_model(&quantized, in);
    assay_tensor_t* want[] = {before_quantizing(in[0], turned)};
    const assay_samples_t inputs = {.n = 1, .n_values = 1, .at = in};
    const assay_samples_t outputs = {.n = 1, .n_values = 1, .at = want};
    assay_set_t set = {0};
    assay_golden_t golden = {0};
    op_case_ok(assay_set_add(&set, "y", assay_tensor_retain(want[0])));
    op_case_ok(assay_golden_match(&set, m, NULL, &golden));
    assay_check_setting_t o = {.precision = {.format = ASSAY_FORMAT_FP32},
                               .precision_name = "fp32",
                               .backend = &assay_backend_emu,
                               .golden = &golden};
    assay_check_t* c = NULL;
    op_case_ok(assay_check_model(m, &o, &inputs, &outputs, &c));
    assert_int_equal(c->blame, turned ? ASSAY_BLAME_EXPORT : ASSAY_BLAME_NONE);
    assert_int_equal(c->faithful, !turned);
    assay_check_destroy(c);
    assay_golden_deinit(&golden);
    assay_set_deinit(&set);
    assay_tensor_release(want[0]);
    assay_model_release(m);
    graph_case_release(in);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(arrays_find_their_values),
      cmocka_unit_test(maps_are_read),
      cmocka_unit_test(tensors_differ),
      cmocka_unit_test(steps_of_constants_are_no_fault),
  };
  return cmocka_run_group_tests_name("golden", tests, NULL, NULL);
}
