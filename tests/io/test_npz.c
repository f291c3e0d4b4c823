// npy and npz: what is written comes back; what no file of that kind holds is refused.
// tests/io/against_numpy.py compares with NumPy itself.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// cmocka needs these before it
#include <cmocka.h>

#include "base/alloc.h"
#include "formats/format.h"
#include "io/json.h"
#include "io/npy.h"
#include "io/npz.h"

static char folder[] = "/tmp/assay_npz_XXXXXX";

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
  static const char* const names[] = {"a.npz", "b.npz", "a.npy", "a.json"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) unlink(path_of(names[i]));
  return rmdir(folder);
}

static void ok(assay_status_t st) {
  if (st) fprintf(stderr, "%s\n", assay_status_message(st));
  assert_null(st);
}

static void refused(assay_status_t st, const char* text) {
  assert_non_null(st);
  if (!strstr(assay_status_message(st), text))
    fprintf(stderr, "'%s' is not in: %s\n", text, assay_status_message(st));
  assert_non_null(strstr(assay_status_message(st), text));
  assay_status_free(st);
}

// A tensor of a type whose elements count up from 0 (strings: "s0", "s1", ...).
static assay_tensor_t* counting(assay_type_t type, int rank, const int64_t* dims) {
  assay_tensor_t* t = NULL;
  ok(assay_tensor_create(type, rank, dims, &t));
  for (int64_t i = 0; i < t->size; i++) {
    char text[32];
    snprintf(text, sizeof text, "s\xc3\xa9%d", (int)i);
    switch (t->store) {
      case ASSAY_STORE_F64:
        assay_f64(t)[i] = (double)(i % 2 + 1);  // every float type has 1 and 2
        break;
      case ASSAY_STORE_I64:
        assay_i64(t)[i] = i % 2;
        break;
      case ASSAY_STORE_C128:
        assay_c128(t)[2 * i] = (double)i;
        assay_c128(t)[2 * i + 1] = -1;
        break;
      default:
        ok(assay_tensor_set_string(t, i, text, strlen(text)));
    }
  }
  return t;
}

static void assert_same_elements(assay_tensor_t* a, assay_tensor_t* b) {
  assay_tensor_t *x = NULL, *y = NULL;
  ok(assay_tensor_widen(a, &x));
  ok(assay_tensor_widen(b, &y));
  assert_int_equal(x->rank, y->rank);
  for (int i = 0; i < x->rank; i++) assert_int_equal(x->dims[i], y->dims[i]);
  assert_int_equal(x->store, y->store);
  for (int64_t i = 0; i < x->size; i++) {
    if (x->store == ASSAY_STORE_STR) {
      assert_int_equal(assay_strings(x)[i].len, assay_strings(y)[i].len);
      assert_memory_equal(assay_strings(x)[i].text, assay_strings(y)[i].text,
                          assay_strings(x)[i].len);
    } else {
      size_t n = assay_store_elem_bytes(x->store);
      assert_memory_equal((char*)x->data + (size_t)i * n, (char*)y->data + (size_t)i * n, n);
    }
  }
  assay_tensor_release(x);
  assay_tensor_release(y);
}

static void every_type_comes_back(void** state) {
  (void)state;
  static const int64_t dims[][3] = {{0, 0, 0}, {5, 0, 0}, {2, 3, 0}, {2, 0, 3}, {2, 3, 2}};
  static const int ranks[] = {0, 1, 2, 3, 3};
  for (int compress = 0; compress < 2; compress++) {
    assay_set_t set = {0}, back = {0};
    for (int type = 1; type < ASSAY_TYPE_COUNT; type++) {
      for (size_t i = 0; i < sizeof ranks / sizeof *ranks; i++) {
        char name[64];
        snprintf(name, sizeof name, "%s/%zu", assay_type_name((assay_type_t)type), i);
        ok(assay_set_add(&set, name, counting((assay_type_t)type, ranks[i], dims[i])));
      }
    }
    ok(assay_npz_write(path_of("a.npz"), &set, compress));
    ok(assay_npz_read(path_of("a.npz"), &back));
    assert_int_equal(set.n, back.n);
    for (size_t i = 0; i < set.n; i++) {
      assert_string_equal(set.names[i], back.names[i]);
      assert_same_elements(set.tensors[i], back.tensors[i]);
    }
    assay_set_deinit(&set);
    assay_set_deinit(&back);
  }
  assert_int_equal(assay_alloc_live(), 0);
}

static void one_array(void** state) {
  (void)state;
  assay_tensor_t *t = counting(ASSAY_TYPE_FLOAT, 2, (int64_t[]){3, 4}), *back = NULL;
  ok(assay_npy_write(path_of("a.npy"), t));
  ok(assay_npy_read(path_of("a.npy"), &back));
  assert_same_elements(t, back);
  assert_int_equal(back->store, ASSAY_STORE_PACKED);
  assay_tensor_release(t);
  assay_tensor_release(back);
  refused(assay_npy_read(path_of("none.npy"), &back), "No such file");
}

static assay_status_t parse_npy(const char* descr, const char* shape, assay_tensor_t** out) {
  char file[256];
  int n = snprintf(file + 10, sizeof file - 10,
                   "{'descr': '%s', 'fortran_order': False, 'shape': %s, }\n", descr, shape);
  memcpy(file, "\x93NUMPY\x01\x00", 8);
  file[8] = (char)n;
  file[9] = 0;
  return assay_npy_parse((const uint8_t*)file, 10 + (size_t)n, NULL, NULL, out);
}

// Strings of no width take no bytes, however many there are.
static void strings_without_width(void** state) {
  (void)state;
  assay_tensor_t* t = NULL;
  ok(parse_npy("<U0", "(2, 3)", &t));
  assert_int_equal(t->size, 6);
  assert_int_equal(assay_strings(t)[5].len, 0);
  assay_tensor_release(t);
  t = NULL;
  refused(parse_npy("<U0", "(8, 298, 298, 21, 3)", &t), "44757216 elements of '<U0'");
  refused(parse_npy("|S0", "(4611686018427387904,)", &t), "which has no width");
  assert_null(t);
}

static void names_are_unique(void** state) {
  (void)state;
  assay_set_t set = {0};
  ok(assay_set_add(&set, "a", counting(ASSAY_TYPE_FLOAT, 0, NULL)));
  refused(assay_set_add(&set, "a", counting(ASSAY_TYPE_FLOAT, 0, NULL)), "'a'");
  assert_non_null(assay_set_find(&set, "a"));
  assert_null(assay_set_find(&set, "b"));
  assay_set_deinit(&set);
}

// Every allocation fails once, on the way out and in.
static void without_memory(void** state) {
  (void)state;
  for (int compress = 0; compress < 2; compress++) {
    for (uint64_t n = 1;; n++) {
      assay_set_t set = {0}, back = {0};
      ok(assay_set_add(&set, "x", counting(ASSAY_TYPE_INT32, 1, (int64_t[]){100})));
      ok(assay_set_add(&set, "s", counting(ASSAY_TYPE_STRING, 1, (int64_t[]){3})));
      assay_alloc_fail_after(n, false);
      assay_status_t st = assay_npz_write(path_of("b.npz"), &set, compress);
      if (!st) st = assay_npz_read(path_of("b.npz"), &back);
      uint64_t made = assay_alloc_fail_after(0, false);
      if (st) assert_int_equal(assay_status_code(st), ASSAY_NO_MEMORY);
      assay_status_free(st);
      assay_set_deinit(&set);
      assay_set_deinit(&back);
      assert_int_equal(assay_alloc_live(), 0);
      if (made < n) break;
    }
  }
}

static assay_status_t parse(const char* text, json_t** out) {
  return assay_json_parse(text, strlen(text), out);
}

static void json(void** state) {
  (void)state;
  json_t* j = NULL;
  double x;
  refused(parse("{\"a\": 1, \"a\": 2}", &j), "JSON: line 1");
  refused(parse("[1", &j), "JSON: line 1");
  ok(parse("[1, 2.5, \"nan\", \"-inf\", \"x\"]", &j));
  assert_true(assay_json_get_number(json_array_get(j, 0), &x) && x == 1);
  assert_true(assay_json_get_number(json_array_get(j, 2), &x) && x != x);
  assert_true(assay_json_get_number(json_array_get(j, 3), &x) && x < 0);
  assert_false(assay_json_get_number(json_array_get(j, 4), &x));
  ok(assay_json_write(path_of("a.json"), j, 2));
  json_decref(j);
  ok(assay_json_read(path_of("a.json"), &j));
  assert_int_equal(json_array_size(j), 5);
  json_decref(j);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_type_comes_back), cmocka_unit_test(one_array),
      cmocka_unit_test(strings_without_width), cmocka_unit_test(names_are_unique),
      cmocka_unit_test(without_memory),        cmocka_unit_test(json),
  };
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
