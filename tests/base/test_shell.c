// Words of command lines: a shell gets each as one word with the same bytes, nothing in it is run,
// no control character is printed, and the reader gets it back.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

// cmocka needs these before it
#include <unistd.h>

#include <cmocka.h>

#include "base/process.h"
#include "base/random.h"
#include "base/shell.h"
#include "base/shown.h"
#include "seed_case.h"

static const char* const words[] = {"plain",
                                    "/a/b:fp32,c@2%",
                                    "two words",
                                    "it's",
                                    "$HOME `x` \"q\" \\ * ; & | < > ( ) { } ! ~ #",
                                    "",
                                    "-n",
                                    "'",
                                    "''",
                                    "q'$(touch X)'z",
                                    "a\nb",
                                    "\nb",
                                    "tab\there",
                                    "\x1b]0;title\x07",
                                    "\x1b[2Ka'b\\c\x7f",
                                    "\\x1b",
                                    "$'x'",
                                    "~",
                                    "#no comment",
                                    "=ls",
                                    "\r\n",
                                    "1\x01"
                                    "1",
                                    "caf\xc3\xa9 \xc3\x80\xe2\x80\x94",
                                    "\xc2\x9b"
                                    "31m",
                                    "a\x9b"
                                    "b"};
enum { N_WORDS = sizeof words / sizeof *words };

typedef void append_t(assay_str_t* out, const char* text);
static append_t* const ways[] = {assay_shell_quote, assay_shell_word, assay_shell_word_quoted};

// A line of a script: the shell counts the words and compares the bytes of the first one.
static void add_line(assay_str_t* script, const char* word, const char* text) {
  assay_str_printf_raw(script, "set -- %s\n", text);
  assay_str_append(
      script, "test $# = 1 && test \"$(printf '%s' \"$1\" | od -An -v -tx1 | tr -d ' \\n')\" = '");
  for (const char* c = word; *c; c++) assay_str_printf(script, "%02x", (unsigned char)*c);
  assay_str_append(script, "' || { printf '%s' \"$1\" | od -c; exit 1; }\n");
}

static void run_script(const char* shell, assay_str_t* script) {
  assay_str_t command = {0};
  assay_str_append(script, "! test -e X\n");
  assay_str_printf(&command, "%s -c ", shell);
  assay_shell_quote(&command, assay_str_get(script));
  assert_null(assay_str_status(&command));
  assay_status_t st = assay_process_run(assay_str_get(&command), 60);
  if (st) fprintf(stderr, "%s: %s\n", shell, assay_status_message(st));
  assert_null(st);
  assay_str_deinit(&command);
  assay_str_deinit(script);
}

static bool has_control(const char* text) {
  for (const unsigned char* c = (const unsigned char*)text; *c; c++)
    if (*c < 0x20 || *c == 0x7f) return true;
  return strstr(text, "\xc2\x9b") || strstr(text, "a\x9b");
}

static void words_stay_words(void** state) {
  (void)state;
  for (size_t w = 0; w < sizeof ways / sizeof *ways; w++) {
    assay_str_t sh = {0}, bash = {0};
    for (size_t i = 0; i < N_WORDS; i++) {
      assay_str_t text = {0};
      ways[w](&text, words[i]);
      assert_null(assay_str_status(&text));
      const char* shown = assay_str_get(&text);
      // Older ones of /bin/sh do not know $'...', which is for people.
      if (strncmp(shown, "$'", 2) != 0) add_line(&sh, words[i], shown);
      add_line(&bash, words[i], shown);
      if (w > 0) assert_false(has_control(shown));
      assay_str_deinit(&text);
    }
    run_script("/bin/sh", &sh);
    if (access("/bin/bash", X_OK) == 0)
      run_script("/bin/bash", &bash);
    else
      assay_str_deinit(&bash);
  }
}

static void plain_words_are_bare(void** state) {
  (void)state;
  static const char* const rows[][2] = {{"/a/b:fp32,c@2%", "/a/b:fp32,c@2%"},
                                        {"a b", "'a b'"},
                                        {"*", "'*'"},
                                        {"", "''"},
                                        {"=a", "'=a'"},
                                        {"a\nb'c", "$'a\\x0ab\\'c'"},
                                        {"\xc2\x9b", "$'\\xc2\\x9b'"}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    assay_str_t text = {0};
    assay_shell_word(&text, rows[i][0]);
    assert_string_equal(assay_str_get(&text), rows[i][1]);
    assay_str_deinit(&text);
  }
}

static void words_are_read_back(void** state) {
  (void)state;
  for (size_t w = 0; w < sizeof ways / sizeof *ways; w++) {
    assay_str_t line = {0}, word = {0};
    bool any;
    assay_str_append(&line, "# what follows is read\n");
    for (size_t i = 0; i < N_WORDS; i++) {
      ways[w](&line, words[i]);
      assay_str_append(&line, i % 3 ? " " : "\n  # between\n");
    }
    const char* at = assay_str_get(&line);
    for (size_t i = 0; i < N_WORDS; i++) {
      assert_null(assay_shell_next(&at, &word, &any));
      assert_true(any);
      assert_string_equal(assay_str_get(&word), words[i]);
    }
    assert_null(assay_shell_next(&at, &word, &any));
    assert_false(any);
    assay_str_deinit(&line);
    assay_str_deinit(&word);
  }
}

static void other_ways_of_writing(void** state) {
  (void)state;
  static const struct {
    const char *text, *word;  // NULL: an error
  } rows[] = {{"a\\ b", "a b"},
              {"a\\\nb", "ab"},
              {"\"a \\\"b\\\" \\n\" c", "a \"b\" \\n"},
              {"--x='y z'#1 b", "--x=y z#1"},
              {"$'\\e\\t\\q\\x4'", "\x1b\tq\x04"},
              {"a'b", NULL},
              {"a\"b", NULL},
              {"a\"b\\\"", NULL},
              {"$'b\\'", NULL},
              {"$'b\\", NULL}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    assay_str_t word = {0};
    const char* at = rows[i].text;
    bool any = false;
    assay_status_t st = assay_shell_next(&at, &word, &any);
    if (!rows[i].word) {
      assert_int_equal(assay_status_code(st), ASSAY_CORRUPT);
    } else {
      assert_null(st);
      assert_true(any);
      assert_string_equal(assay_str_get(&word), rows[i].word);
    }
    assay_status_free(st);
    assay_str_deinit(&word);
  }
}

static assay_random_t stream;
static uint64_t drawn;

// Of what means something to a shell or a terminal, and other bytes.
static uint64_t number(uint64_t below) {
  return (uint64_t)(assay_random_uniform(&stream, drawn++) * (double)below);
}

static void draw(char* out, size_t max) {
  static const char odd[] = "'\"\\$`#*=\n\t \x1b\x7f\xc2\x9b\xe2x1af;&|<>(){}!~,:";
  const size_t n = (size_t)number(max + 1);
  for (size_t i = 0; i < n; i++)
    out[i] = number(2) ? odd[number(sizeof odd - 1)] : (char)(unsigned char)(1 + number(255));
  out[n] = 0;
}

static void any_words(void** state) {
  (void)state;
  enum { N = 3000, MAX = 12 };
  char word[MAX + 1], other[MAX + 1];
  stream = assay_random_make(test_seed(), "words", 0);
  for (int i = 0; i < N; i++) {
    assay_str_t line = {0}, read = {0};
    bool any = false;
    draw(word, MAX);
    draw(other, MAX);
    for (size_t w = sizeof ways / sizeof *ways; w-- > 0;) {
      ways[w](&line, word);
      const char* shown = assay_str_get(&line);
      for (size_t k = 0; w > 0 && k < line.len; k++) assert_true(shown[k] < 0 || shown[k] >= 0x20);
      assay_str_append(&line, " ");
    }
    const char* at = assay_str_get(&line);
    for (size_t w = 0; w < sizeof ways / sizeof *ways; w++) {
      assert_null(assay_shell_next(&at, &read, &any));
      assert_true(any);
      assert_string_equal(assay_str_get(&read), word);
    }
    // Whatever stands there is read to its end, or refused.
    at = other;
    assay_status_t st = NULL;
    for (any = true; !st && any;) st = assay_shell_next(&at, &read, &any);
    if (!st) assert_int_equal(*at, 0);
    assay_status_free(st);
    assay_str_deinit(&line);
    assay_str_deinit(&read);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(words_stay_words), cmocka_unit_test(plain_words_are_bare),
      cmocka_unit_test(words_are_read_back), cmocka_unit_test(other_ways_of_writing),
      cmocka_unit_test(any_words)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
