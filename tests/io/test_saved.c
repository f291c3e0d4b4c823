// What other tools save of their runs: Polygraphy's and trtexec's JSON, and what is neither.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

// cmocka needs these before it
#include <cmocka.h>
#include <math.h>

#include "base/alloc.h"
#include "io/base64.h"
#include "io/saved.h"

static void ok(assay_status_t st) {
  if (st) fprintf(stderr, "%s\n", assay_status_message(st));
  assert_null(st);
}

static assay_status_t parse(const char* text, assay_saved_t* out) {
  return assay_saved_parse_json(text, strlen(text), out);
}

static void base64(void** state) {
  (void)state;
  // Source: RFC 4648, section 10; then without padding and with line breaks.
  static const char* const rows[][2] = {{"", ""},
                                        {"Zg==", "f"},
                                        {"Zm8=", "fo"},
                                        {"Zm9v", "foo"},
                                        {"Zm9vYg==", "foob"},
                                        {"Zm9vYmE=", "fooba"},
                                        {"Zm9vYmFy", "foobar"},
                                        {"Zm9vYg", "foob"},
                                        {"Zm9v\nYmFy\n", "foobar"}};
  static const char* const bad[] = {"Z", "Zm9vY", "Zm9*", "Zg==Zg==", "Z===!"};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    uint8_t* bytes = NULL;
    size_t n = 99;
    ok(assay_base64_decode(rows[i][0], strlen(rows[i][0]), &bytes, &n));
    assert_int_equal(n, strlen(rows[i][1]));
    assert_memory_equal(bytes, rows[i][1], n);
    assay_free(bytes);
  }
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    uint8_t* bytes = NULL;
    size_t n = 0;
    assay_status_t st = assay_base64_decode(bad[i], strlen(bad[i]), &bytes, &n);
    assert_non_null(st);
    assert_int_equal(assay_status_code(st), ASSAY_CORRUPT);
    assay_status_free(st);
  }
}

// npy of float32 [1.5, -2], as Polygraphy keeps it.
#define TWO                                                                                    \
  "k05VTVBZAQB2AHsnZGVzY3InOiAnPGY0JywgJ2ZvcnRyYW5fb3JkZXInOiBGYWxzZSwgJ3NoYXBlJzogKDIsKSwgfS" \
  "AgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgIAoAAMA/AAAA" \
  "wA=="
#define ARRAY "{\"array\": \"" TWO "\", \"polygraphy_class\": \"ndarray\"}"
#define LAZY "{\"values\": " ARRAY ", \"polygraphy_class\": \"LazyArray\"}"

static void assert_two(const assay_saved_t* s, size_t run) {
  assay_tensor_t *t = assay_set_find(&s->runs[run], "y"), *wide = NULL;
  assert_non_null(t);
  ok(assay_tensor_widen(t, &wide));
  assert_int_equal(wide->type, ASSAY_TYPE_FLOAT);
  assert_int_equal(wide->size, 2);
  assert_true(assay_f64(wide)[0] == 1.5 && assay_f64(wide)[1] == -2);
  assay_tensor_release(wide);
}

static void polygraphy(void** state) {
  (void)state;
  static const struct {
    const char* text;
    size_t n;
  } rows[] = {{"{\"lst\": [[\"a\", [{\"outputs\": {\"y\": " LAZY "}}, {\"outputs\": {\"y\": " LAZY
               "}}]], [\"b\", []]], \"polygraphy_class\": \"RunResults\"}",
               2},
              {"[{\"y\": " ARRAY "}, {\"y\": " ARRAY "}, {\"y\": " ARRAY "}]", 3},
              {"{\"y\": " ARRAY "}", 1}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    assay_saved_t s = {0};
    ok(parse(rows[i].text, &s));
    assert_int_equal(s.n, rows[i].n);
    for (size_t k = 0; k < s.n; k++) assert_two(&s, k);
    assay_saved_deinit(&s);
  }
}

static void trtexec(void** state) {
  (void)state;
  assay_saved_t s = {0};
  ok(
      parse("[\n  { \"name\" : \"inf\\\"nan\"\n  , \"dimensions\" : \"2x3\"\n  , \"values\" : [ "
            "0.5, nan, "
            "-nan, inf, -inf, 1e30 ]\n  }\n, { \"name\" : \"k\", \"dimensions\" : \"2\", "
            "\"values\" : [ 3, -4 ] }\n"
            ", { \"name\" : \"s\", \"dimensions\" : \"\", \"values\" : [ Infinity ] }\n]\n",
            &s));
  assert_int_equal(s.n, 1);
  const assay_tensor_t* t = assay_set_find(&s.runs[0], "inf\"nan");
  assert_non_null(t);
  assert_int_equal(t->rank, 2);
  const double* x = assay_f64(t);
  assert_true(x[0] == 0.5 && isnan(x[1]) && isnan(x[2]) && x[3] > 1e308 && x[4] < -1e308 &&
              x[5] == 1e30);
  t = assay_set_find(&s.runs[0], "k");
  assert_int_equal(t->type, ASSAY_TYPE_INT64);
  assert_int_equal(assay_i64(t)[1], -4);
  t = assay_set_find(&s.runs[0], "s");
  assert_int_equal(t->rank, 0);
  assay_saved_deinit(&s);
}

static void others_are_refused(void** state) {
  (void)state;
  static const struct {
    const char* text;
    assay_code_t code;
    const char* says;
  } rows[] = {
      {"", ASSAY_CORRUPT, "JSON: line"},
      {"[]", ASSAY_CORRUPT, "neither Polygraphy's nor trtexec's"},
      {"[1, 2]", ASSAY_CORRUPT, "neither Polygraphy's nor trtexec's"},
      {"{\"lst\": []}", ASSAY_CORRUPT, "no iteration"},
      {"{\"lst\": 3}", ASSAY_CORRUPT, "no iteration"},
      {"{\"lst\": [[\"a\", [{}]]]}", ASSAY_CORRUPT, "iteration 0"},
      {"{\"y\": 3}", ASSAY_CORRUPT, "array 'y'"},
      {"{\"y\": {\"array\": \"AAAA\", \"polygraphy_class\": \"ndarray\"}}", ASSAY_CORRUPT,
       "array 'y'"},
      {"{\"y\": {\"tensor\": \"AAAA\", \"polygraphy_class\": \"Tensor\"}}", ASSAY_UNSUPPORTED,
       "PyTorch tensor"},
      {"{\"__polygraphy_encoded_RunResults\": \"x\"}", ASSAY_UNSUPPORTED, "old Polygraphy"},
      {"[{\"name\": \"y\", \"dimensions\": \"2\"}]", ASSAY_CORRUPT, "output 0 lacks"},
      {"[{\"name\": \"y\", \"dimensions\": \"2x\", \"values\": [1]}]", ASSAY_CORRUPT,
       "not its dimensions' number"},
      {"[{\"name\": \"y\", \"dimensions\": \"-1\", \"values\": [1]}]", ASSAY_CORRUPT,
       "output 0 lacks"},
      {"[{\"name\": \"y\", \"dimensions\": \"9223372036854775807x9\", \"values\": [1]}]",
       ASSAY_CORRUPT, "number"},
      {"[{\"name\": \"y\", \"dimensions\": \"1\", \"values\": [true]}]", ASSAY_CORRUPT,
       "value 0 is no number"},
      {"[{\"name\": \"y\", \"dimensions\": \"1\", \"values\": [1]}, {\"name\": \"y\", "
       "\"dimensions\": \"1\", "
       "\"values\": [1]}]",
       ASSAY_INVALID_ARGUMENT, "two tensors are named 'y'"},
      {"[nan", ASSAY_CORRUPT, "JSON: line"},
      {"[nano]", ASSAY_CORRUPT, "JSON: line"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    assay_saved_t s = {0};
    assay_status_t st = parse(rows[i].text, &s);
    if (!st) fprintf(stderr, "%s was read\n", rows[i].text);
    assert_non_null(st);
    if (!strstr(assay_status_message(st), rows[i].says))
      fprintf(stderr, "%s: %s\n", rows[i].text, assay_status_message(st));
    assert_non_null(strstr(assay_status_message(st), rows[i].says));
    assert_int_equal(assay_status_code(st), rows[i].code);
    assert_int_equal(s.n, 0);
    assay_status_free(st);
  }
}

static void without_memory(void** state) {
  (void)state;
  const char* text = "{\"lst\": [[\"a\", [{\"outputs\": {\"y\": " LAZY
                     "}}]]], \"polygraphy_class\": \"RunResults\"}";
  for (uint64_t n = 1;; n++) {
    assay_saved_t s = {0};
    const int64_t live = assay_alloc_live();
    assay_alloc_fail_after(n, true);
    assay_status_t st = parse(text, &s);
    const bool enough = assay_alloc_fail_after(0, false) < n;
    if (!st) assay_saved_deinit(&s);
    assay_status_free(st);
    assert_int_equal(assay_alloc_live(), live);
    if (enough) break;
    assert_non_null(st);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(base64), cmocka_unit_test(polygraphy), cmocka_unit_test(trtexec),
      cmocka_unit_test(others_are_refused), cmocka_unit_test(without_memory)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
