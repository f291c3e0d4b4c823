// safetensors: what is written comes back; what breaks a rule of the format is refused; no damage
// crashes the reader.
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
#include "base/file.h"
#include "formats/format.h"
#include "io/damage.h"
#include "io/safetensors.h"

static char path[] = "/tmp/assay_safetensors_XXXXXX";

static int make_file(void** state) {
  (void)state;
  const int fd = mkstemp(path);
  return fd < 0 ? -1 : close(fd);
}

static int remove_file(void** state) {
  (void)state;
  return unlink(path);
}

static void ok(assay_status_t st) {
  if (st) fprintf(stderr, "%s\n", assay_status_message(st));
  assert_null(st);
}

static assay_tensor_t* ones(assay_type_t type, int rank, const int64_t* dims) {
  assay_tensor_t* t = NULL;
  ok(assay_tensor_create_zero(type, rank, dims, &t));
  for (int64_t i = 0; i < t->size; i++) {
    if (t->store == ASSAY_STORE_F64) assay_f64(t)[i] = (double)(1 << i % 3);
    if (t->store == ASSAY_STORE_I64) assay_i64(t)[i] = i % 2;
    if (t->store == ASSAY_STORE_C128) assay_c128(t)[2 * i + 1] = -1;
  }
  return t;
}

static void every_type_comes_back(void** state) {
  (void)state;
  static const assay_type_t types[] = {
      ASSAY_TYPE_UINT8,     ASSAY_TYPE_FLOAT,        ASSAY_TYPE_BFLOAT16,   ASSAY_TYPE_INT64,
      ASSAY_TYPE_BOOL,      ASSAY_TYPE_FLOAT8E4M3FN, ASSAY_TYPE_FLOAT8E5M2, ASSAY_TYPE_DOUBLE,
      ASSAY_TYPE_INT8,      ASSAY_TYPE_FLOAT16,      ASSAY_TYPE_INT16,      ASSAY_TYPE_INT32,
      ASSAY_TYPE_UINT16,    ASSAY_TYPE_UINT32,       ASSAY_TYPE_UINT64,     ASSAY_TYPE_COMPLEX64,
      ASSAY_TYPE_FLOAT8E8M0};
  static const int64_t shapes[][3] = {{0}, {5}, {2, 3}, {2, 0, 3}};
  assay_set_t set = {0}, back = {0};
  assay_str_t metadata = {0};
  for (size_t i = 0; i < sizeof types / sizeof *types; i++)
    for (int rank = 0; rank < 4; rank++) {
      char name[64];
      snprintf(name, sizeof name, "%s/%d \"q\"", assay_type_name(types[i]), rank);
      ok(assay_set_add(&set, name, ones(types[i], rank, shapes[rank])));
    }
  ok(assay_safetensors_write(path, &set, "{\"format\": \"pt\"}"));
  ok(assay_safetensors_read(path, &back, &metadata));
  assert_string_equal(assay_str_get(&metadata), "{\"format\": \"pt\"}\n");
  assert_int_equal(back.n, set.n);
  for (size_t i = 0; i < set.n; i++) {
    assay_tensor_t *a = set.tensors[i], *b = back.tensors[i], *wide = NULL;
    assert_string_equal(set.names[i], back.names[i]);
    assert_int_equal(a->type, b->type);
    assert_int_equal(a->rank, b->rank);
    for (int d = 0; d < a->rank; d++) assert_int_equal(a->dims[d], b->dims[d]);
    ok(assay_tensor_widen(b, &wide));
    if (a->size)
      assert_memory_equal(a->data, wide->data, (size_t)a->size * assay_store_elem_bytes(a->store));
    assert_int_equal(
        (uintptr_t)b->data %
            (unsigned)(assay_type_bits(b->type) / 8 % 9 ? assay_type_bits(b->type) / 8 : 8),
        0);
    assay_tensor_release(wide);
  }
  assay_set_deinit(&set);
  assay_set_deinit(&back);
  assay_str_deinit(&metadata);
  assert_int_equal(assay_alloc_live(), 0);
}

static void types_it_lacks(void** state) {
  (void)state;
  assay_set_t set = {0}, back = {0};
  ok(assay_set_add(&set, "a", ones(ASSAY_TYPE_INT4, 1, (int64_t[]){3})));
  ok(assay_set_add(&set, "b", ones(ASSAY_TYPE_FLOAT4E2M1, 1, (int64_t[]){3})));
  ok(assay_safetensors_write(path, &set, NULL));
  ok(assay_safetensors_read(path, &back, NULL));
  assert_int_equal(assay_set_find(&back, "a")->type, ASSAY_TYPE_INT8);
  assert_int_equal(assay_set_find(&back, "b")->type, ASSAY_TYPE_FLOAT);
  assay_set_deinit(&back);
  ok(assay_set_add(&set, "s", ones(ASSAY_TYPE_STRING, 1, (int64_t[]){1})));
  assay_status_t st = assay_safetensors_write(path, &set, NULL);
  assert_int_equal(assay_status_code(st), ASSAY_UNSUPPORTED);
  assert_non_null(strstr(assay_status_message(st), "array 's'"));
  assay_status_free(st);
  assay_set_deinit(&set);
}

// A file of this header, with `data` zero bytes behind it.
static assay_status_t parse(const char* header, size_t data, assay_set_t* out) {
  uint8_t file[1024] = {0};
  const uint64_t n = strlen(header);
  memcpy(file, &n, 8);
  memcpy(file + 8, header, n);
  return assay_safetensors_parse(file, 8 + n + data, out, NULL);
}

#define A(begin, end) \
  "\"a\": {\"dtype\": \"F32\", \"shape\": [2], \"data_offsets\": [" #begin ", " #end "]}"
#define B(begin, end) \
  "\"b\": {\"dtype\": \"U8\", \"shape\": [4], \"data_offsets\": [" #begin ", " #end "]}"

static void rules_of_the_format(void** state) {
  (void)state;
  static const struct {
    const char* header;
    size_t data;
    const char* says;  // NULL: it is read
  } rows[] = {
      {"{" A(0, 8) ", " B(8, 12) "}", 12, NULL},
      {"{" B(8, 12) ", " A(0, 8) "}   ", 12, NULL},
      {"{}", 0, NULL},
      {"{\"__metadata__\": {\"a\": \"b\"}}", 0, NULL},
      {"{" A(0, 8) "}", 7, "ends at byte 8"},
      {"{" A(0, 8) "}", 9, "take 8 bytes of data, and there are 9"},
      {"{" A(0, 8) ", " B(7, 11) "}", 12, "within the one that ends at 8"},
      {"{" A(0, 8) ", " B(4, 8) "}", 8, "within the one"},
      {"{" A(0, 8) ", " B(9, 13) "}", 13, "after a gap from 8"},
      {"{" A(1, 9) "}", 9, "after a gap from 0"},
      {"{" A(8, 0) "}", 8, "not [begin, end]"},
      {"{" A(0, 4) "}", 4, "does not take the 4 bytes"},
      {"{" A(-8, 0) "}", 8, "not [begin, end]"},
      {"{" A(0, 8.0) "}", 8, "not [begin, end]"},
      {"{" A(0, 8) ", " A(0, 8) "}", 8, "duplicate"},
      {"{\"a\": {\"dtype\": \"F32\", \"shape\": [4611686018427387904, 4], \"data_offsets\": [0, "
       "0]}}",
       0, "does not take"},
      {"{\"a\": {\"dtype\": \"F32\", \"shape\": [-1], \"data_offsets\": [0, 4]}}", 4,
       "is not a size"},
      {"{\"a\": {\"dtype\": \"Q32\", \"shape\": [1], \"data_offsets\": [0, 4]}}", 4, "'Q32'"},
      {"{\"a\": {\"dtype\": \"F32\", \"data_offsets\": [0, 4]}}", 4, "no shape"},
      {"{\"a\": 3}", 0, "no dtype"},
      {"{\"__metadata__\": {\"a\": 1}}", 0, "is not a string"},
      {"{\"__metadata__\": 1}", 0, "is not an object"},
      {" {}", 0, "does not begin with '{'"},
      {"{", 0, "header"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    assay_set_t set = {0};
    assay_status_t st = parse(rows[i].header, rows[i].data, &set);
    if (!st != !rows[i].says || (st && !strstr(assay_status_message(st), rows[i].says)))
      fail_msg("%s: %s", rows[i].header, st ? assay_status_message(st) : "was read");
    assay_status_free(st);
    assay_set_deinit(&set);
  }
  const uint8_t large[16] = {0, 0, 0, 0, 1, 0, 0, 0, '{', '}'};
  assay_set_t set = {0};
  assay_status_t st = assay_safetensors_parse(large, sizeof large, &set, NULL);
  assert_non_null(strstr(assay_status_message(st), "at most 100 MB"));
  assay_status_free(st);
}

static assay_status_t read_bytes(const uint8_t* data, size_t size) {
  assay_set_t set = {0};
  assay_status_t st = assay_safetensors_parse(data, size, &set, NULL);
  assay_set_deinit(&set);
  return st;
}

static void damaged(void** state) {
  (void)state;
  static const char header[] = "{" A(0, 8) ", " B(8, 12) ", \"__metadata__\": {\"k\": \"v\"}}";
  uint8_t file[256] = {sizeof header - 1};
  memcpy(file + 8, header, sizeof header - 1);
  damage_all(file, 8 + sizeof header - 1 + 12, true, read_bytes);
}

static void without_memory(void** state) {
  (void)state;
  for (uint64_t n = 1;; n++) {
    assay_set_t set = {0}, back = {0};
    ok(assay_set_add(&set, "x", ones(ASSAY_TYPE_INT32, 1, (int64_t[]){100})));
    ok(assay_set_add(&set, "h", ones(ASSAY_TYPE_BFLOAT16, 1, (int64_t[]){3})));
    assay_alloc_fail_after(n, false);
    assay_status_t st = assay_safetensors_write(path, &set, "{\"a\": \"b\"}");
    if (!st) st = assay_safetensors_read(path, &back, NULL);
    const uint64_t made = assay_alloc_fail_after(0, false);
    if (st) assert_int_equal(assay_status_code(st), ASSAY_NO_MEMORY);
    assay_status_free(st);
    assay_set_deinit(&set);
    assay_set_deinit(&back);
    assert_int_equal(assay_alloc_live(), 0);
    if (made < n) break;
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_type_comes_back), cmocka_unit_test(types_it_lacks),
      cmocka_unit_test(rules_of_the_format),   cmocka_unit_test(damaged),
      cmocka_unit_test(without_memory),
  };
  return cmocka_run_group_tests(tests, make_file, remove_file);
}
