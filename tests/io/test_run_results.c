// Results of several runners: written and read, joined, damaged.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// cmocka needs those above before it
#include <math.h>

#include <cmocka.h>

#include "base/file.h"
#include "io/run_results.h"

static void ok(assay_status_t st) {
  if (st) fail_msg("%s", assay_status_message(st));
}

// Two runners; the second has one iteration less.
static void make(assay_run_results_t* r) {
  static const double seconds[] = {0.25, (double)NAN};
  for (int runner = 0; runner < 2; runner++) {
    assay_runner_results_t* to = NULL;
    ok(assay_run_results_add(r, runner ? "second \"B\"" : "first", &to));
    for (int i = 0; i < 2 - runner; i++) {
      assay_set_t* set = NULL;
      assay_tensor_t* t = NULL;
      ok(assay_runner_results_add(to, seconds[i], &set));
      ok(assay_tensor_scalar_i64(ASSAY_TYPE_INT32, 10 * runner + i, &t));
      ok(assay_set_add(set, "y", t));
    }
  }
}

static int64_t number(const assay_run_results_t* r, size_t runner, size_t i) {
  assay_tensor_t* wide = NULL;
  ok(assay_tensor_widen(assay_set_find(&r->runners[runner].saved.runs[i], "y"), &wide));
  const int64_t x = assay_i64(wide)[0];
  assay_tensor_release(wide);
  return x;
}

static void check(const assay_run_results_t* r) {
  assert_int_equal(r->n, 2);
  assert_false(r->inputs);
  assert_string_equal(r->runners[1].name, "second \"B\"");
  assert_int_equal(r->runners[0].saved.n, 2);
  assert_int_equal(r->runners[1].saved.n, 1);
  assert_true(r->runners[0].seconds[0] == 0.25 && isnan(r->runners[0].seconds[1]));
  assert_int_equal(number(r, 0, 1), 1);
  assert_int_equal(number(r, 1, 0), 10);
}

static void read_file(const char* path, assay_run_results_t* out) {
  assay_mapping_t* m = NULL;
  ok(assay_mapping_open(path, &m));
  ok(assay_run_results_parse_json(assay_mapping_data(m), assay_mapping_size(m), out));
  assay_mapping_release(m);
}

static void a_file_keeps_all_runners(void** state) {
  (void)state;
  assay_run_results_t r = {0}, back = {0};
  make(&r);
  ok(assay_run_results_write("run_results.json", &r, NULL));
  read_file("run_results.json", &back);
  unlink("run_results.json");
  check(&back);
  assay_run_results_deinit(&r);
  assay_run_results_deinit(&back);
}

static void a_folder_has_a_file_an_iteration(void** state) {
  (void)state;
  assay_run_results_t r = {0}, back = {0};
  make(&r);
  unlink("run_results/0000000000.json");
  unlink("run_results/0000000001.json");
  ok(assay_run_results_write("run_results", &r, NULL));
  ok(assay_run_results_read_folder("run_results", &back));
  check(&back);
  // what is there stays
  assay_status_t st = assay_run_results_write("run_results", &r, NULL);
  assert_non_null(st);
  assert_non_null(strstr(assay_status_message(st), "not empty"));
  assay_status_free(st);
  assert_int_equal(unlink("run_results/0000000000.json"), 0);
  assert_int_equal(unlink("run_results/0000000001.json"), 0);
  st = assay_run_results_read_folder("run_results", &back);
  assert_int_equal(assay_status_code(st), ASSAY_NOT_FOUND);
  assay_status_free(st);
  rmdir("run_results");
  assay_run_results_deinit(&r);
  assay_run_results_deinit(&back);
}

static void iterations_are_joined_by_runner(void** state) {
  (void)state;
  assay_run_results_t r = {0}, all = {0}, inputs = {.inputs = true};
  assay_runner_results_t* to = NULL;
  make(&r);
  ok(assay_run_results_append(&all, &r));
  ok(assay_run_results_append(&all, &r));
  assert_int_equal(all.n, 2);
  assert_int_equal(all.runners[0].saved.n, 4);
  assert_int_equal(number(&all, 0, 3), 1);
  ok(assay_run_results_add(&inputs, "", &to));
  assay_status_t st = assay_run_results_append(&all, &inputs);
  assert_int_equal(assay_status_code(st), ASSAY_INVALID_ARGUMENT);
  assay_status_free(st);
  assay_run_results_deinit(&r);
  assay_run_results_deinit(&all);
  assay_run_results_deinit(&inputs);
}

#define ARRAY                                                                                     \
  "{\"array\": \"k05VTVBZAQB2AHsnZGVzY3InOiAnPGk4JywgJ2ZvcnRyYW5fb3JkZXInOiBGYWxzZSwgJ3NoYXBlJzo" \
  "gKCksIH0gICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgIAoH" \
  "AAAAAAAAAA==\", "
static const struct {
  const char *text, *error;  // NULL: it is read
} texts[] = {
    {"{\"lst\": [[\"r\", [{\"outputs\": {\"y\": {\"values\": " ARRAY
     "\"polygraphy_class\": \"ndarray\"}}}, \"runtime\": null}]]]}",
     NULL},
    // the older way to name classes
    {"{\"lst\": [[\"r\", [{\"outputs\": {\"y\": {\"values\": " ARRAY
     "\"__polygraphy_encoded_ndarray\": \"polygraphy_serialized_json_type\"}}}}]]], "
     "\"__polygraphy_encoded_RunResults\": \"polygraphy_serialized_json_type\"}",
     NULL},
    {"{\"lst\": [], \"polygraphy_class\": \"RunResults\"}", NULL},
    {"{\"lst\": 3, \"polygraphy_class\": \"RunResults\"}", "the list of runners is missing"},
    {"{\"lst\": [[3, []]]}", "a runner with its iterations is missing"},
    {"{\"lst\": [[\"r\", [{}]]]}", "arrays by name are missing"},
    {"{\"lst\": [[\"r\", [{\"outputs\": {\"y\": {\"array\": \"k05V\", \"polygraphy_class\": "
     "\"ndarray\"}}}]]]}",
     "array 'y'"},
    {"{\"lst\": [], \"polygraphy_class\": \"AccuracyResults\"}", "it holds AccuracyResults"},
    {"3", "JSON"},
    {"", "JSON"},
};

static void texts_are_checked(void** state) {
  (void)state;
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    assay_run_results_t r = {0};
    assay_status_t st = assay_run_results_parse_json(texts[i].text, strlen(texts[i].text), &r);
    if (!!st != !!texts[i].error || (st && !strstr(assay_status_message(st), texts[i].error)))
      fail_msg("row %zu: %s", i, st ? assay_status_message(st) : "read");
    if (!st && r.n) assert_int_equal(number(&r, 0, 0), 7);
    assay_status_free(st);
    assay_run_results_deinit(&r);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(a_file_keeps_all_runners),
                                     cmocka_unit_test(a_folder_has_a_file_an_iteration),
                                     cmocka_unit_test(iterations_are_joined_by_runner),
                                     cmocka_unit_test(texts_are_checked)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
