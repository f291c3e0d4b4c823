// What texts show of names: nothing that a terminal takes for a command, whatever the bytes are.
#include <float.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
// clang-format off
#include <cmocka.h>
// clang-format on

#include "base/alloc.h"
#include "base/random.h"
#include "base/shown.h"
#include "seed_case.h"

typedef struct pair {
  const char *text, *shown;
} pair_t;
static const pair_t pairs[] = {
    {"", ""},
    {"conv1/weights:0 [x] 'y' \\", "conv1/weights:0 [x] 'y' \\"},
    {"caf\xc3\xa9 \xe2\x80\x94 \xf0\x9f\x98\x80", "caf\xc3\xa9 \xe2\x80\x94 \xf0\x9f\x98\x80"},
    {"\x1b[2K\r\n\t\a\x7f", "\\x1b[2K\\x0d\\x0a\\x09\\x07\\x7f"},
    {"\xc2\x9b\xc2\x80\xc2\x9f\xc2\xa0", "\\u009b\\u0080\\u009f\xc2\xa0"},
    {"\xe2\x80\xa7\xe2\x80\xa8\xe2\x80\xa9\xe2\x80\xaa\xe2\x80\xae\xe2\x80\xaf",
     "\xe2\x80\xa7\\u2028\\u2029\\u202a\\u202e\xe2\x80\xaf"},
    {"\xe2\x81\xa5\xe2\x81\xa6\xe2\x81\xa9\xe2\x81\xaa", "\xe2\x81\xa5\\u2066\\u2069\xe2\x81\xaa"},
    // No UTF-8: alone, cut short, longer than need be, a surrogate, past the last character.
    {"\x9b\xff", "\\x9b\\xff"},
    {"a\xc2", "a\\xc2"},
    {"\xe2\x80", "\\xe2\\x80"},
    {"\xe2\x80(", "\\xe2\\x80("},
    {"\xc0\x9b\xc1\xbf", "\\xc0\\x9b\\xc1\\xbf"},
    {"\xe0\x82\x9b", "\\xe0\\x82\\x9b"},
    {"\xf0\x80\x82\x9b", "\\xf0\\x80\\x82\\x9b"},
    {"\xed\xa0\x80", "\\xed\\xa0\\x80"},
    {"\xf4\x90\x80\x80\xf8", "\\xf4\\x90\\x80\\x80\\xf8"},
    {"\xc3\x1b[", "\\xc3\\x1b["},
};
enum { N_PAIRS = sizeof pairs / sizeof *pairs };

static void same(assay_str_t* take_got, const char* want) {
  assert_null(assay_str_status(take_got));
  assert_string_equal(assay_str_get(take_got), want);
  assay_str_deinit(take_got);
}

static void each_byte_is_shown(void** state) {
  (void)state;
  for (size_t i = 0; i < N_PAIRS; i++) {
    assay_str_t once = {0}, twice = {0}, printed = {0};
    assay_str_shown(&once, pairs[i].text);
    assay_str_shown(&twice, assay_str_get(&once));
    assay_str_printf(&printed, "%s\n%s", pairs[i].text, assay_str_get(&once));
    char both[256];
    snprintf(both, sizeof both, "%s\n%s", pairs[i].shown, pairs[i].shown);
    same(&printed, both);
    same(&twice, pairs[i].shown);
    same(&once, pairs[i].shown);
    assay_status_t st = ASSAY_ERROR(ASSAY_CORRUPT, "'%s' is odd", pairs[i].text);
    st = assay_status_note(st, "in '%s'", pairs[i].text);
    snprintf(both, sizeof both, "in '%s': '%s' is odd", pairs[i].shown, pairs[i].shown);
    assert_string_equal(assay_status_message(st), both);
    assay_status_free(st);
  }
}

// With something to hide and without, a format gives the same for all other arguments.
#define AGREES(...)                                           \
  do {                                                        \
    assay_str_t hidden = {0}, plain = {0};                    \
    assay_str_printf(&hidden, "%s" __VA_ARGS__);              \
    assay_str_append(&plain, "\\x1b");                        \
    assay_str_printf_raw(&plain, "%s" __VA_ARGS__);           \
    assert_memory_equal(hidden.text, "\\x1b", 4);             \
    assert_string_equal(hidden.text + 4, plain.text + 4 + 1); \
    assay_str_deinit(&hidden);                                \
    assay_str_deinit(&plain);                                 \
  } while (0)

static void other_arguments_are_printfs(void** state) {
  (void)state;
  const char* e = "\x1b";
  AGREES("|%d|%5d|%-5d|%05d|%+d|% d|%x|%#X|%o", e, -3, 4, 5, 6, 7, 8, 255u, 255u, 8u);
  AGREES("|%hhd|%hd|%ld|%lld|%zu|%jd|%td|%u", e, (signed char)-1, (short)-2, -3L, LLONG_MIN,
         SIZE_MAX, INTMAX_MIN, (ptrdiff_t)-4, UINT32_MAX);
  AGREES("|%f|%.3g|%10.2e|%-10.1f|%a|%g|%.17g|%Lg", e, 1.5, 2.25, 3e10, 4.0, 5.5, DBL_MAX, 0.1,
         6.5L);
  AGREES("|%*d|%-*d|%.*f|%*.*e|%*d", e, 6, 1, 6, 2, 3, 1.0 / 3, 12, 2, 7.0, -6, 9);
  AGREES("|%s|%8s|%-8s|%.2s|%*s|%.*s|%-*.*s|%c|%%|%5.1f%%", e, "a", "b", "c", "def", 7, "g", 2,
         "hij", 8, 1, "kl", 'm', 12.34);
  AGREES("|%p|%.0f|%.d|%5.3d\n", e, (void*)&pairs, 0.5, 3, 7);
}

static void lines_stay_where_asked(void** state) {
  (void)state;
  assay_str_t s = {0};
  assay_str_printf(&s, ASSAY_LINES "|%s|%-*s|%-4s|%6s|%.*s|", "a\n\tb\x1b", "a\nb", 0, "\n", "\n",
                   "\n", 3, "ab\ncd");
  same(&s, "a\n\tb\\x1b|a\\x0ab|\\x0a|\\x0a|  \\x0a|ab\\x0a|");
  // A text that ends where its precision does, not at a NUL.
  const char open[3] = {'a', '\a', 'c'};
  assay_str_printf(&s, "%.*s", 3, open);
  same(&s, "a\\x07c");
  assay_str_printf_raw(&s, "%s\n", "\x1b\xff");
  same(&s, "\x1b\xff\n");
}

static assay_random_t stream;
static uint64_t drawn;

static uint64_t number(uint64_t below) {
  return (uint64_t)(assay_random_uniform(&stream, drawn++) * (double)below);
}

// Random bytes: what comes out is UTF-8 without anything hidden, and shows as itself.
static void any_bytes(void** state) {
  (void)state;
  static const unsigned char likely[] = {0x1b, '\n', 0xc2, 0x9b, 0xe2, 0x80,
                                         0xae, 0x81, 0xa6, 0xf0, 'a',  '\\'};
  stream = assay_random_make(test_seed(), "shown", 0);
  for (int i = 0; i < 20000; i++) {
    char text[16];
    size_t n = number(sizeof text - 1);
    for (size_t k = 0; k < n; k++)
      text[k] = (char)(number(2) ? likely[number(sizeof likely)] : 1 + number(255));
    text[n] = 0;
    assay_str_t s = {0}, again = {0};
    assay_str_printf(&s, "%s", text);
    for (size_t at = 0; at < s.len;) {
      bool hidden;
      at += assay_char_length(s.text + at, s.len - at, &hidden, NULL);
      assert_false(hidden);
    }
    assay_str_printf(&again, "%s", assay_str_get(&s));
    assert_string_equal(assay_str_get(&again), assay_str_get(&s));
    assay_str_deinit(&s);
    assay_str_deinit(&again);
  }
}

static void without_memory(void** state) {
  (void)state;
  for (uint64_t nth = 1;; nth++) {
    assay_str_t s = {0};
    assay_alloc_fail_after(nth, true);
    assay_str_printf(&s, "%s and %s", "\x1b a long one that does not fit into eight bytes", "\x1b");
    assay_status_t st = ASSAY_ERROR(ASSAY_CORRUPT, "'%s'", "\x1b");
    const uint64_t made = assay_alloc_fail_after(0, false);
    assert_non_null(st);
    if (!s.failed)
      assert_string_equal(s.text, "\\x1b a long one that does not fit into eight bytes and \\x1b");
    assay_str_deinit(&s);
    assay_status_free(st);
    if (made < nth) break;
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(each_byte_is_shown),     cmocka_unit_test(other_arguments_are_printfs),
      cmocka_unit_test(lines_stay_where_asked), cmocka_unit_test(any_bytes),
      cmocka_unit_test(without_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
