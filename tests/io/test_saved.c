// What other tools save of their runs: Polygraphy's and trtexec's JSON, and what is neither.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// cmocka needs these before it
#include <math.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/file.h"
#include "io/base64.h"
#include "io/damage.h"
#include "io/polygraphy.h"
#include "io/saved.h"
#include "io/trtexec.h"

static void ok(assay_status_t st) {
  if (st) fprintf(stderr, "%s\n", assay_status_message(st));
  assert_null(st);
}

static assay_status_t parse(const char* text, assay_saved_t* out) {
  return assay_saved_parse_json(text, strlen(text), NULL, out);
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

static void base64_both_ways(void** state) {
  (void)state;
  uint8_t bytes[10000];
  for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (uint8_t)(i * i >> 3);
  for (size_t n = 0; n < sizeof bytes; n += n < 70 ? 1 : 997) {
    assay_str_t text = {0};
    uint8_t* back = NULL;
    size_t back_n = 0;
    assay_base64_encode(bytes, n, &text);
    assert_int_equal(text.len, (n + 2) / 3 * 4);
    ok(assay_base64_decode(assay_str_get(&text), text.len, &back, &back_n));
    assert_int_equal(back_n, n);
    assert_memory_equal(back, bytes, n);
    assay_str_deinit(&text);
    assay_free(back);
  }
}

// npy of float32 [1.5, -2], as Polygraphy keeps it.
#define TWO                                                                                    \
  "k05VTVBZAQB2AHsnZGVzY3InOiAnPGY0JywgJ2ZvcnRyYW5fb3JkZXInOiBGYWxzZSwgJ3NoYXBlJzogKDIsKSwgfS" \
  "AgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgIAoAAMA/AAAA" \
  "wA=="
#define ARRAY "{\"array\": \"" TWO "\", \"polygraphy_class\": \"ndarray\"}"
#define LAZY "{\"values\": " ARRAY ", \"polygraphy_class\": \"LazyArray\"}"

#define OLD(c) "\"__polygraphy_encoded_" c "\": \"polygraphy_serialized_json_type\""
// The same bytes as Latin-1 text.
#define LATIN                                                    \
  "\xc2\x93NUMPY\\u0001\\u0000v\\u0000"                          \
  "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }"    \
  "                                                            " \
  "\\n\\u0000\\u0000\\u00c0?\\u0000\\u0000\\u0000\\u00c0"

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
              {"{\"y\": " ARRAY "}", 1},
              // What older versions wrote.
              {"{\"lst\": [[\"a\", [{\"outputs\": {\"y\": {\"values\": {\"array\": \"" TWO
               "\", " OLD("ndarray") "}, " OLD("LazyNumpyArray") "}}, " OLD(
                   "IterationResult") "}]]], " OLD("RunResults") "}",
               1},
              {"[{\"y\": {\"array\": \"" LATIN "\", " OLD("ndarray") "}}]", 1}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    assay_saved_t s = {0};
    ok(parse(rows[i].text, &s));
    assert_int_equal(s.n, rows[i].n);
    for (size_t k = 0; k < s.n; k++) assert_two(&s, k);
    assay_saved_deinit(&s);
  }
}

static char folder[] = "/tmp/assay_saved_XXXXXX";

static const char* path_of(const char* name) {
  static char path[256];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  return path;
}

static int make_folder(void** state) {
  (void)state;
  return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void** state) {
  (void)state;
  static const char* const names[] = {"a.json", "runs/0000000000.json", "runs/0000000001.json",
                                      "runs/x.txt"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) unlink(path_of(names[i]));
  rmdir(path_of("runs"));
  return rmdir(folder);
}

static assay_status_t read_file(const char* path, assay_saved_t* out) {
  assay_mapping_t* m = NULL;
  ASSAY_TRY(assay_mapping_open(path, &m));
  assay_status_t st =
      assay_saved_parse_json(assay_mapping_data(m), assay_mapping_size(m), NULL, out);
  assay_mapping_release(m);
  return st;
}

// Two runs of arrays of every length up to some, so that base64 is cut at every place.
static void make_runs(assay_saved_t* out) {
  for (int run = 0; run < 2; run++) {
    assay_set_t* set = NULL;
    ok(assay_saved_add_run(out, &set));
    for (int64_t n = 0; n < 40; n++) {
      char name[16];
      assay_tensor_t* t = NULL;
      snprintf(name, sizeof name, "\"%d\"", (int)n);
      ok(assay_tensor_create(n == 7 ? ASSAY_TYPE_BFLOAT16 : ASSAY_TYPE_UINT8, 1, &n, &t));
      for (int64_t i = 0; i < n; i++) {
        if (n == 7)
          assay_f64(t)[i] = (double)(i + run);
        else
          assay_i64(t)[i] = i + run;
      }
      ok(assay_set_add(set, name, t));
    }
  }
}

static void assert_runs(const assay_saved_t* s, const assay_saved_t* like) {
  assert_int_equal(s->n, like->n);
  for (size_t k = 0; k < s->n; k++) {
    assert_int_equal(s->runs[k].n, like->runs[k].n);
    for (size_t i = 0; i < s->runs[k].n; i++) {
      assay_tensor_t* wide = NULL;
      const assay_tensor_t* t = like->runs[k].tensors[i];
      ok(assay_tensor_widen(s->runs[k].tensors[i], &wide));
      assert_string_equal(s->runs[k].names[i], like->runs[k].names[i]);
      assert_int_equal(wide->type, i == 7 ? ASSAY_TYPE_FLOAT : t->type);
      assert_int_equal(wide->size, t->size);
      if (t->size) assert_memory_equal(wide->data, t->data, (size_t)t->size * 8);
      assay_tensor_release(wide);
    }
  }
}

static void polygraphy_comes_back(void** state) {
  (void)state;
  assay_saved_t runs = {0}, back = {0};
  make_runs(&runs);
  for (int form = 0; form < 4; form++) {
    assay_str_t notes = {0};
    const char* runner = form % 2 ? "assay \"r\"" : NULL;
    if (form < 2) {
      ok(assay_polygraphy_write(path_of("a.json"), &runs, runner, &notes));
      ok(read_file(path_of("a.json"), &back));
    } else {
      ok(assay_polygraphy_write_folder(path_of("runs"), &runs, runner, &notes));
      assert_true(assay_saved_is_folder(path_of("runs")));
      ok(assay_saved_read_folder(path_of("runs"), NULL, &back));
      assay_status_t st = assay_polygraphy_write_folder(path_of("runs"), &runs, runner, NULL);
      assert_int_equal(assay_status_code(st), ASSAY_INVALID_ARGUMENT);
      assay_status_free(st);
      unlink(path_of("runs/0000000000.json"));
      unlink(path_of("runs/0000000001.json"));
    }
    assert_string_equal(assay_str_get(&notes),
                        "note: array '\"7\"' holds bfloat16 and is written as float32\n");
    assert_int_equal(back.results, runner != NULL);
    assert_runs(&back, &runs);
    assay_saved_deinit(&back);
    assay_str_deinit(&notes);
  }
  assay_saved_deinit(&runs);
}

static void trtexec_comes_back(void** state) {
  (void)state;
  assay_set_t set = {0};
  assay_saved_t back = {0};
  assay_tensor_t* t = NULL;
  ok(assay_tensor_create(ASSAY_TYPE_DOUBLE, 2, (int64_t[]){2, 2}, &t));
  const double x[] = {0.1, (double)NAN, -(double)INFINITY, 1e-310};
  memcpy(t->data, x, sizeof x);
  ok(assay_set_add(&set, "a\"b", t));
  ok(assay_tensor_scalar_i64(ASSAY_TYPE_INT64, INT64_MIN, &t));
  ok(assay_set_add(&set, "k", t));
  ok(assay_trtexec_write(path_of("a.json"), &set));
  ok(read_file(path_of("a.json"), &back));
  assert_int_equal(back.n, 1);
  const assay_tensor_t* a = assay_set_find(&back.runs[0], "a\"b");
  assert_int_equal(a->rank, 2);
  for (int i = 0; i < 4; i++)
    assert_true(assay_f64(a)[i] == x[i] || (isnan(assay_f64(a)[i]) && isnan(x[i])));
  assert_true(assay_i64(assay_set_find(&back.runs[0], "k"))[0] == INT64_MIN);
  assay_saved_deinit(&back);
  assay_set_deinit(&set);
}

static assay_status_t read_bytes(const uint8_t* data, size_t size) {
  assay_saved_t s = {0};
  assay_status_t st = assay_saved_parse_json(data, size, NULL, &s);
  if (!st) assay_saved_deinit(&s);
  return st;
}

static void damaged(void** state) {
  (void)state;
  static const char* const texts[] = {
      "{\"lst\": [[\"a\", [{\"outputs\": {\"y\": " LAZY
      "}}]]], \"polygraphy_class\": \"RunResults\"}",
      "[{\"y\": {\"array\": \"" LATIN "\", " OLD("ndarray") "}}]",
      "[{\"name\": \"y\", \"dimensions\": \"2x1\", \"values\": [1.5, nan]}]"};
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
    damage_all((const uint8_t*)texts[i], strlen(texts[i]), true, read_bytes);
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
      {"{\"y\": null}", ASSAY_CORRUPT, "array 'y'"},
      {"{\"y\": {\"array\": \"AAAA\", \"polygraphy_class\": \"ndarray\"}}", ASSAY_CORRUPT,
       "array 'y'"},
      {"{\"y\": {\"tensor\": \"AAAA\", \"polygraphy_class\": \"Tensor\"}}", ASSAY_CORRUPT,
       "no zip archive"},
      {"{\"lst\": [], \"__polygraphy_encoded_RunResults\": \"x\"}", ASSAY_CORRUPT, "no iteration"},
      {"{\"y\": {\"array\": \"\\u0093NUMPY\\u0100\", \"polygraphy_class\": \"ndarray\"}}",
       ASSAY_CORRUPT, "is not a byte"},
      {"[{\"name\": \"y\", \"dimensions\": \"2\"}]", ASSAY_CORRUPT, "output 0 lacks"},
      {"[{\"name\": \"y\", \"dimensions\": \"2x\", \"values\": [1]}]", ASSAY_CORRUPT,
       "not its dimensions' number"},
      {"[{\"name\": \"y\", \"dimensions\": \"-1\", \"values\": [1]}]", ASSAY_CORRUPT,
       "output 0 lacks"},
      {"[{\"name\": \"y\", \"dimensions\": \"9223372036854775807x9\", \"values\": [1]}]",
       ASSAY_CORRUPT, "number"},
      {"[{\"name\": \"y\", \"dimensions\": \"1\", \"values\": [true]}]", ASSAY_CORRUPT,
       "value 0 is not a number"},
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
  const struct CMUnitTest tests[] = {cmocka_unit_test(base64),
                                     cmocka_unit_test(base64_both_ways),
                                     cmocka_unit_test(polygraphy),
                                     cmocka_unit_test(polygraphy_comes_back),
                                     cmocka_unit_test(trtexec),
                                     cmocka_unit_test(trtexec_comes_back),
                                     cmocka_unit_test(others_are_refused),
                                     cmocka_unit_test(damaged),
                                     cmocka_unit_test(without_memory)};
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
