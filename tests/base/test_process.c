// Commands: how they end, what of their text is told, and that nothing of them stays behind.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

// cmocka needs these before it
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/process.h"

static void commands_end(void** state) {
  (void)state;
  static const struct {
    const char* command;
    double seconds;
    const char* says;  // NULL: it ends well
  } rows[] = {
      {"true", 60, NULL},
      {"echo text; echo more >&2", 60, NULL},
      {"head -c 1000000 /dev/zero", 60, NULL},
      {"test -z \"$(cat)\"", 60, NULL},  // the input is empty
      {"exit 7", 60, "ended with exit code 7; it printed nothing"},
      {"echo one; echo two >&2; exit 1", 60, "exit code 1; its last lines: one; two"},
      {"seq 100; exit 1", 60, "its last lines: 95; 96; 97; 98; 99; 100"},
      {"head -c 100000 /dev/zero | tr '\\0' x; echo; echo end; exit 1", 60, "xxx; end"},
      {"printf '\\033[1;31mred\\033[0m\\a\\n\\n  \\n'; exit 1", 60, "its last lines: red"},
      {"printf '\\033['; exit 1", 60, "exit code 1"},
      {"nothing-of-that-name", 60, "exit code 127"},
      {"kill -9 $$", 60, "was ended by signal 9"},
      {"sleep 100", 0.2, "did not end within 0.2 seconds and was killed; it printed nothing"},
      {"echo started; sleep 100 & sleep 100", 0.3, "was killed; its last lines: started"},
      // It ends, and leaves something behind that holds its output: that is not waited for.
      {"sleep 5 & exit 0", 60, NULL},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    const time_t start = time(NULL);
    assay_status_t st = assay_process_run(rows[i].command, rows[i].seconds);
    if (!st != !rows[i].says || (st && !strstr(assay_status_message(st), rows[i].says)))
      fprintf(stderr, "%s: %s\n", rows[i].command, st ? assay_status_message(st) : "ended well");
    assert_true(!st == !rows[i].says);
    if (st) {
      assert_int_equal(assay_status_code(st), ASSAY_DEVICE);
      assert_non_null(strstr(assay_status_message(st), rows[i].says));
      assert_null(strpbrk(assay_status_message(st), "\n\x1b\a"));
    }
    assay_status_free(st);
    assert_true(time(NULL) - start < 60);
  }
}

static void folders(void** state) {
  (void)state;
  assay_str_t a = {0}, b = {0};
  struct stat info;
  assert_null(assay_folder_make_temporary(&a));
  assert_null(assay_folder_make_temporary(&b));
  assert_string_not_equal(assay_str_get(&a), assay_str_get(&b));
  assert_int_equal(stat(assay_str_get(&a), &info), 0);
  assert_true(S_ISDIR(info.st_mode));
  assert_int_equal(info.st_mode & 077, 0);  // nobody else's business
  assert_int_equal(rmdir(assay_str_get(&a)), 0);
  assert_int_equal(rmdir(assay_str_get(&b)), 0);
  assay_str_deinit(&a);
  assay_str_deinit(&b);
}

// A rule says where folders are made, or that none is; without one it is as before.
static void folders_by_rule(void** state) {
  assay_str_t base = {0}, made = {0}, nowhere = {0};
  (void)state;
  assert_null(assay_folder_make_temporary(&base));
  assay_folder_rule_temporary(assay_str_get(&base), NULL);
  assert_null(assay_folder_make_temporary(&made));
  assert_int_equal(strncmp(assay_str_get(&made), assay_str_get(&base), base.len), 0);
  assert_int_equal(made.text[base.len], '/');
  assert_int_equal(rmdir(assay_str_get(&made)), 0);
  assay_folder_rule_temporary(assay_str_get(&base), "--some-flag=no");
  assay_status_t st = assay_folder_make_temporary(&nowhere);
  assert_non_null(st);
  assert_non_null(strstr(assay_status_message(st), "--some-flag=no does not allow it"));
  assay_status_free(st);
  assay_folder_rule_temporary("/no/such/folder", NULL);
  st = assay_folder_make_temporary(&nowhere);
  assert_non_null(st);
  assert_non_null(strstr(assay_status_message(st), "/no/such/folder/"));
  assay_status_free(st);
  assert_int_equal(nowhere.len, 0);
  assay_folder_rule_temporary(NULL, NULL);
  assert_null(assay_folder_make_temporary(&nowhere));
  assert_int_not_equal(strncmp(assay_str_get(&nowhere), assay_str_get(&base), base.len), 0);
  assert_int_equal(rmdir(assay_str_get(&nowhere)), 0);
  assert_int_equal(rmdir(assay_str_get(&base)), 0);
  assay_str_deinit(&nowhere);
  assay_str_deinit(&made);
  assay_str_deinit(&base);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(commands_end), cmocka_unit_test(folders),
                                     cmocka_unit_test(folders_by_rule)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
