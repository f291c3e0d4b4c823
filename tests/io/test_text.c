// Numbers as text.
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
#include "io/damage.h"
#include "io/text.h"

static void ok(assay_status_t st) {
  if (st) fprintf(stderr, "%s\n", assay_status_message(st));
  assert_null(st);
}

static assay_status_t parse(const char* text, assay_type_t type, int64_t n, assay_tensor_t** out) {
  return assay_text_parse((const uint8_t*)text, strlen(text), type, 1, &n, out);
}

static void what_is_text(void** state) {
  (void)state;
  static const struct {
    const char* text;
    bool is;
  } rows[] = {{"1 2,3\n", true},
              {"# any thing {} here\n-1.5e-3\tnan # too\n", true},
              {"0x1.8p3 Infinity -inf NaN", true},
              {"", false},
              {" \n", false},
              {"# nothing", false},
              {"hello", false},
              {"{\"a\": 1}", false},
              {"1 2\x01", false}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    if (assay_text_is((const uint8_t*)rows[i].text, strlen(rows[i].text)) != rows[i].is)
      fail_msg("'%s'", rows[i].text);
  assert_false(assay_text_is((const uint8_t*)"1\0002", 3));
}

static void numbers(void** state) {
  (void)state;
  assay_tensor_t* t = NULL;
  ok(parse("# h\n1.5, 0x1p-2\nnan -inf 0.1", ASSAY_TYPE_FLOAT, 5, &t));
  const double* x = assay_f64(t);
  assert_true(x[0] == 1.5 && x[1] == 0.25 && isnan(x[2]) && x[3] < -1e300 && x[4] == (double)0.1f);
  assay_tensor_release(t);
  ok(parse("1 -2 3.0e+00", ASSAY_TYPE_INT8, 3, &t));
  assert_true(assay_i64(t)[1] == -2 && assay_i64(t)[2] == 3);
  assay_tensor_release(t);
  ok(parse("18446744073709551615", ASSAY_TYPE_UINT64, 1, &t));
  assert_true((uint64_t)assay_i64(t)[0] == UINT64_MAX);
  assay_tensor_release(t);
}

static void refused(void** state) {
  (void)state;
  static const struct {
    const char* text;
    assay_type_t type;
    int64_t n;
    const char* says;
  } rows[] = {{"1 2", ASSAY_TYPE_FLOAT, 3, "holds 2 numbers"},
              {"1 2 3 4", ASSAY_TYPE_FLOAT, 3, "holds 4 numbers"},
              {"1 e", ASSAY_TYPE_FLOAT, 2, "number 2, 'e'"},
              {"1.5", ASSAY_TYPE_INT32, 1, "is not of type int32"},
              {"128", ASSAY_TYPE_INT8, 1, "is not of type int8"},
              {"2", ASSAY_TYPE_BOOL, 1, "is not of type bool"},
              {"-1", ASSAY_TYPE_UINT64, 1, "is not of type uint64"},
              {"9223372036854775808", ASSAY_TYPE_INT64, 1, "is not of type int64"},
              {"nan", ASSAY_TYPE_INT64, 1, "is not of type int64"},
              {"1", ASSAY_TYPE_STRING, 1, "real numbers"}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    assay_tensor_t* t = NULL;
    assay_status_t st = parse(rows[i].text, rows[i].type, rows[i].n, &t);
    if (!st || !strstr(assay_status_message(st), rows[i].says))
      fail_msg("%s: %s", rows[i].text, st ? assay_status_message(st) : "was read");
    assay_status_free(st);
  }
}

static void comes_back(void** state) {
  (void)state;
  char path[] = "/tmp/assay_text_XXXXXX";
  const int fd = mkstemp(path);
  assert_true(fd >= 0);
  close(fd);
  static const assay_type_t types[] = {ASSAY_TYPE_FLOAT, ASSAY_TYPE_DOUBLE, ASSAY_TYPE_FLOAT16,
                                       ASSAY_TYPE_INT64};
  for (size_t k = 0; k < sizeof types / sizeof *types; k++) {
    assay_tensor_t *t = NULL, *back = NULL;
    assay_mapping_t* m = NULL;
    ok(assay_tensor_create(types[k], 2, (int64_t[]){2, 3}, &t));
    for (int i = 0; i < 6; i++) {
      if (t->store == ASSAY_STORE_I64)
        assay_i64(t)[i] = INT64_MAX - i;
      else if (types[k] == ASSAY_TYPE_DOUBLE)
        assay_f64(t)[i] = i ? 1 / (3.0 * i) : -(double)INFINITY;
      else
        assay_f64(t)[i] =
            types[k] == ASSAY_TYPE_FLOAT ? (double)(1 / (3.0F + (float)i)) : i / 1024.0;
    }
    ok(assay_text_write(path, t));
    ok(assay_mapping_open(path, &m));
    assert_int_equal(assay_text_count(assay_mapping_data(m), assay_mapping_size(m)), 6);
    assert_non_null(memchr(assay_mapping_data(m), '\n', assay_mapping_size(m) - 1));  // two lines
    ok(assay_text_parse(assay_mapping_data(m), assay_mapping_size(m), types[k], 2, t->dims, &back));
    assert_memory_equal(t->data, back->data, 6 * 8);
    assay_mapping_release(m);
    assay_tensor_release(t);
    assay_tensor_release(back);
  }
  unlink(path);
}

static assay_status_t read_bytes(const uint8_t* data, size_t size) {
  assay_tensor_t* t = NULL;
  const int64_t n = assay_text_count(data, size);
  assay_status_t st = assay_text_parse(data, size, ASSAY_TYPE_FLOAT, 1, &n, &t);
  if (!st) assay_tensor_release(t);
  return st;
}

static void damaged(void** state) {
  (void)state;
  static const char text[] = "# two rows\n1.5 -2e3,inf\n0x1p3 nan 7\n";
  damage_all((const uint8_t*)text, sizeof text - 1, false, read_bytes);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(what_is_text), cmocka_unit_test(numbers), cmocka_unit_test(refused),
      cmocka_unit_test(comes_back),   cmocka_unit_test(damaged),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
