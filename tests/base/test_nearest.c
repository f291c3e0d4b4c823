// Which names count as near to one that was given.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/nearest.h"

static void distances(void** state) {
  (void)state;
  static const struct {
    const char *a, *b;
    int limit, distance;
  } rows[] = {{"image", "image", 9, 0},    {"image", "imgae", 9, 2}, {"image", "Image", 9, 0},
              {"", "abc", 9, 3},           {"abc", "", 9, 3},        {"kitten", "sitting", 9, 3},
              {"kitten", "sitting", 2, 2}, {"a", "abcdefgh", 3, 3}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    assert_int_equal(assay_distance(rows[i].a, rows[i].b, rows[i].limit), rows[i].distance);
}

static void suggestions(void** state) {
  (void)state;
  static const struct {
    const char *wanted, *names[5], *text;
  } rows[] = {
      {"imgae", {"mask", "image", "ids"}, "; did you mean 'image'?"},
      {"score", {"scores", "boxes", "score_map"}, "; did you mean 'scores' or 'score_map'?"},
      {"scor", {"scores", "scores"}, "; did you mean 'scores'?"},
      {"x", {"y", "z"}, ""},
      {"", {"y", ""}, ""},
      {"completely_other", {"image", "mask"}, ""},
      {"/encodr/0/*",
       {"/decoder/0/MatMul", "/encoder/0/MatMul"},
       "; did you mean '/encoder/0/MatMul'?"},
      {"*", {"conv"}, ""},
      {"con1",
       {"conv1", "conv2", "conv3", "conv10"},
       "; did you mean 'conv1', 'conv2' or 'conv3'?"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    assay_nearest_t near = {.wanted = rows[i].wanted};
    for (size_t k = 0; k < 5 && rows[i].names[k]; k++) assay_nearest_offer(&near, rows[i].names[k]);
    assay_nearest_offer(&near, NULL);
    assert_string_equal(ASSAY_NEAREST_TEXT(&near), rows[i].text);
    assert_int_equal(assay_nearest_best(&near) != NULL, *rows[i].text != 0);
  }
}

// Names of any length stay within the text.
static void long_names(void** state) {
  (void)state;
  char name[600], other[600], text[64];
  memset(name, 'n', sizeof name - 1);
  name[sizeof name - 1] = 0;
  memcpy(other, name, sizeof name);
  other[3] = 'x';
  assay_nearest_t near = {.wanted = name};
  assay_nearest_offer(&near, other);
  assay_nearest_text(&near, text, sizeof text);
  assert_true(strlen(text) < sizeof text && strncmp(text, "; did you mean 'nnnx", 20) == 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(distances), cmocka_unit_test(suggestions),
                                     cmocka_unit_test(long_names)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
