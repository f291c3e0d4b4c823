// PyTorch tensors: files of the real torch.save (torch_files/README.md) are read, damaged ones and
// others are not. against_tools.py puts more files together.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

// cmocka needs these before it
#include <cmocka.h>

#include "base/alloc.h"
#include "base/file.h"
#include "io/damage.h"
#include "io/saved.h"
#include "io/torch.h"

// A bfloat16 tensor [2, 3] of strides `strides`, by protocol 2.
#define PICKLE(strides)                                                     \
  "\x80\x02"                                                                \
  "ctorch._utils\n_rebuild_tensor_v2\nq\x00((X\x07\x00\x00\x00storageq\x01" \
  "ctorch\nBFloat16Storage\nq\x02X\x01\x00\x00\x00"                         \
  "0q\x03X\x03\x00\x00\x00"                                                 \
  "cpuq\x04K\x20tq\x05Q"                                                    \
  "K\x01K\x02K\x03\x86q\x06" strides                                        \
  "\x86q\x07\x89"                                                           \
  "ccollections\nOrderedDict\nq\x08)Rq\ttq\nRq\x0b."
static const char good[] = PICKLE("K\x03K\x01");

static assay_status_t read_bytes(const uint8_t* data, size_t size) {
  assay_tensor_t* t = NULL;
  assay_status_t st = assay_torch_unpickle(data, size, &t);
  if (!st) assay_tensor_release(t);
  return st;
}

static void one_tensor(void** state) {
  (void)state;
  assay_tensor_t* t = NULL;
  assert_null(assay_torch_unpickle((const uint8_t*)good, sizeof good - 1, &t));
  assert_int_equal(t->type, ASSAY_TYPE_BFLOAT16);
  assert_int_equal(t->rank, 2);
  assert_int_equal(t->dims[1], 3);
  assay_tensor_release(t);
}

static void others(void** state) {
  (void)state;
#define ROW(text, says) \
  { text, sizeof text - 1, says }
  static const struct {
    const char* text;
    size_t n;
    const char* says;
  } rows[] = {
      ROW("\x80\x02"
          "cposix\nsystem\nX\x04\x00\x00\x00"
          "true\x85R.",
          "'posix.system'"),
      ROW("\x80\x02"
          "cos\nsystem\n.",
          "'os.system'"),
      ROW("\x80\x02"
          "ccollections\nOrderedDict\n)R.",
          "more than one plain tensor"),
      ROW("\x80\x02"
          "ctorch._utils\n_rebuild_parameter\n\x88\x85R.",
          "more than one plain tensor"),
      ROW("\x80\x02}.", "more than one plain tensor"),
      ROW("\x80\x04"
          "K\x01.",
          "more than one plain tensor"),
      ROW("\x80\x02)R.", "damaged"),
      ROW("\x80\x02"
          "Q",
          "damaged"),
      ROW("\x80\x02u.", "damaged"),
      ROW("\x80\x02}s.", "damaged"),
      ROW("\x80\x02K\x01(u.", "more than one plain tensor"),
      ROW("\x80\x02}K\x01"
          "b.",
          "more than one plain tensor"),
      ROW("\x80\x02K\x01q\x07.", "more than one plain tensor"),
      ROW("\x80\x02"
          "h\x05.",
          "damaged"),
      ROW(PICKLE("M\x00\x10K\x01"), "past the end"),
      ROW(PICKLE("J\xff\xff\xff\xffK\x01"), "damaged"),
      ROW("", "more than one plain tensor"),
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    assay_status_t st = read_bytes((const uint8_t*)rows[i].text, rows[i].n);
    if (!st || !strstr(assay_status_message(st), rows[i].says))
      fail_msg("row %zu: %s", i, st ? assay_status_message(st) : "was read");
    assay_status_free(st);
  }
}

// ---- real files ---------------------------------------------------------------------------------

enum { MAX = 9 };
typedef struct sample {
  const char* file;
  const char* says;  // the error; NULL: it is read
  assay_type_t type;
  int rank;
  int64_t dims[4];
  double values[MAX];
} sample_t;

static const sample_t samples[] = {
    {"float32", NULL, ASSAY_TYPE_FLOAT, 2, {2, 3}, {1.5, -2, 3.25, 0, 4, -0.5}},
    {"float16", NULL, ASSAY_TYPE_FLOAT16, 2, {2, 2}, {1.5, -2, 65504, 0}},
    {"bfloat16", NULL, ASSAY_TYPE_BFLOAT16, 2, {1, 3}, {1.5, -2, 3}},
    {"float8", NULL, ASSAY_TYPE_FLOAT8E4M3FN, 1, {3}, {0.5, -2, 448}},
    {"int64", NULL, ASSAY_TYPE_INT64, 1, {3}, {1, -2, 1099511627776}},
    {"uint8", NULL, ASSAY_TYPE_UINT8, 2, {1, 2}, {1, 255}},
    {"bool", NULL, ASSAY_TYPE_BOOL, 1, {3}, {1, 0, 1}},
    {"scalar", NULL, ASSAY_TYPE_BFLOAT16, 0, {0}, {2.5}},
    {"empty", NULL, ASSAY_TYPE_BFLOAT16, 2, {0, 3}, {0}},
    {"transposed", NULL, ASSAY_TYPE_BFLOAT16, 2, {3, 2}, {0, 3, 1, 4, 2, 5}},
    {"view", NULL, ASSAY_TYPE_BFLOAT16, 2, {2, 3}, {7, 9, 11, 13, 15, 17}},
    {"channels_last", NULL, ASSAY_TYPE_FLOAT16, 4, {1, 2, 2, 2}, {0, 1, 2, 3, 4, 5, 6, 7}},
    {"parameter", NULL, ASSAY_TYPE_BFLOAT16, 2, {1, 2}, {1, 2}},
    {"wants_gradient", NULL, ASSAY_TYPE_FLOAT, 1, {2}, {1, 2}},
    {.file = "expanded", .says = "an expanded one; save a copy"},
    {.file = "complex", .says = "'torch.ComplexFloatStorage'"},
    {.file = "dictionary", .says = "more than one plain tensor"},
    {.file = "checkpoint", .says = "more than one plain tensor"},
};

static assay_mapping_t* map_sample(const char* name) {
  char path[64];
  assay_mapping_t* m = NULL;
  snprintf(path, sizeof path, "io/torch_files/%s", name);
  assay_status_t st = assay_mapping_open(path, &m);
  if (st) fail_msg("%s", assay_status_message(st));
  return m;
}

static void hold_against(const sample_t* s, assay_tensor_t* t) {
  assay_tensor_t* wide = NULL;
  if (t->type != s->type || t->rank != s->rank ||
      memcmp(t->dims, s->dims, (size_t)s->rank * sizeof *s->dims) != 0)
    fail_msg("%s: is %s%s", s->file, assay_type_name(t->type), ASSAY_DIMS_TEXT(t));
  assert_null(assay_tensor_widen(t, &wide));
  for (int64_t i = 0; i < wide->size; i++) {
    const double x =
        wide->store == ASSAY_STORE_F64 ? assay_f64(wide)[i] : (double)assay_i64(wide)[i];
    if (x != s->values[i]) fail_msg("%s: element %d is %g", s->file, (int)i, x);
  }
  assay_tensor_release(wide);
}

static void real_files(void** state) {
  (void)state;
  for (size_t i = 0; i < sizeof samples / sizeof *samples; i++) {
    const sample_t* s = &samples[i];
    char name[64];
    snprintf(name, sizeof name, "%s.pt", s->file);
    assay_mapping_t* m = map_sample(name);
    assay_tensor_t* t = NULL;
    assert_true(assay_torch_is(assay_mapping_data(m), assay_mapping_size(m)));
    assay_status_t st = assay_torch_parse(assay_mapping_data(m), assay_mapping_size(m), &t);
    if (s->says ? !st || !strstr(assay_status_message(st), s->says) : st != NULL)
      fail_msg("%s: %s", s->file, st ? assay_status_message(st) : "was read");
    assay_status_free(st);
    if (t) hold_against(s, t);
    assay_tensor_release(t);
    assay_mapping_release(m);
  }
}

// Dictionaries of tensors, and nothing else in them.
static void dictionaries(void** state) {
  (void)state;
  static const struct {
    const char *file, *says, *names;
  } rows[] = {{"dictionary.pt", NULL, "x "},
              {"state_dict.pt", NULL, "weight bias "},
              {"bfloat16.pt", NULL, " "},
              {"checkpoint.pt", "more than a dictionary of them", ""}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    assay_mapping_t* m = map_sample(rows[i].file);
    assay_set_t set = {0};
    bool named = false;
    char names[64] = "";
    assay_status_t st =
        assay_torch_read(assay_mapping_data(m), assay_mapping_size(m), &set, &named);
    if (rows[i].says ? !st || !strstr(assay_status_message(st), rows[i].says) : st != NULL)
      fail_msg("%s: %s", rows[i].file, st ? assay_status_message(st) : "was read");
    assay_status_free(st);
    for (size_t k = 0; k < set.n; k++) strcat(strcat(names, set.names[k]), " ");
    assert_string_equal(names, rows[i].names);
    if (set.n) assert_int_equal(named, *set.names[0] != 0);
    if (i == 0) hold_against(&samples[0], set.tensors[0]);
    assay_set_deinit(&set);
    assay_mapping_release(m);
  }
}

// As Polygraphy saves inputs that NumPy has no type for.
static void real_json(void** state) {
  (void)state;
  assay_mapping_t* m = map_sample("inputs.json");
  assay_saved_t saved = {0};
  assert_null(assay_saved_parse_json(assay_mapping_data(m), assay_mapping_size(m), NULL, &saved));
  assert_int_equal(saved.n, 1);
  for (size_t i = 0; i < sizeof samples / sizeof *samples; i++) {
    const char* name = strcmp(samples[i].file, "bfloat16") == 0     ? "x"
                       : strcmp(samples[i].file, "transposed") == 0 ? "y"
                                                                    : NULL;
    if (name) hold_against(&samples[i], assay_set_find(&saved.runs[0], name));
  }
  assay_saved_deinit(&saved);
  assay_mapping_release(m);
}

static assay_status_t read_file(const uint8_t* data, size_t size) {
  assay_set_t set = {0};
  bool named;
  assay_status_t st = assay_torch_read(data, size, &set, &named);
  assay_set_deinit(&set);
  return st;
}

static void damaged_files(void** state) {
  (void)state;
  static const char* const names[] = {"view.pt", "parameter.pt", "float8.pt", "dictionary.pt",
                                      "state_dict.pt"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    assay_mapping_t* m = map_sample(names[i]);
    damage_all(assay_mapping_data(m), assay_mapping_size(m), true, read_file);
    assay_mapping_release(m);
  }
}

static void damaged(void** state) {
  (void)state;
  damage_all((const uint8_t*)good, sizeof good - 1, true, read_bytes);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(one_tensor),  cmocka_unit_test(others),
                                     cmocka_unit_test(damaged),     cmocka_unit_test(real_files),
                                     cmocka_unit_test(real_json),   cmocka_unit_test(damaged_files),
                                     cmocka_unit_test(dictionaries)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
