// What writers leave when their process is killed: on file systems that have files without names,
// on those that lack them, and on those that lack locks as well. The system calls are this file's.
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"

static bool no_unnamed, no_locks, die_at_rename;

int open(const char* path, int flags, ...) {
  va_list list;
  va_start(list, flags);
  const mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(list, mode_t) : 0;
  va_end(list);
  if (no_unnamed && (flags & O_TMPFILE) == O_TMPFILE) return errno = EOPNOTSUPP, -1;
  return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

int flock(int fd, int operation) {
  return no_locks ? (errno = ENOLCK, -1) : (int)syscall(SYS_flock, fd, operation);
}

int rename(const char* from, const char* to) {
  if (die_at_rename) raise(SIGKILL);
  return (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
}

// ---- a folder -----------------------------------------------------------------------------------

static char folder[64], path[80];

static int make_folder(void** state) {
  (void)state;
  no_unnamed = no_locks = die_at_rename = false;
  snprintf(folder, sizeof folder, "/tmp/assay_test_killed.XXXXXX");
  if (!mkdtemp(folder)) return -1;
  snprintf(path, sizeof path, "%s/file", folder);
  return 0;
}

static int remove_folder(void** state) {
  (void)state;
  char name[sizeof folder + 300];
  struct dirent* e;
  DIR* d = opendir(folder);
  if (!d) return -1;
  while ((e = readdir(d))) {
    snprintf(name, sizeof name, "%s/%s", folder, e->d_name);
    if (e->d_name[0] != '.') unlink(name);
  }
  closedir(d);
  return rmdir(folder);
}

static int in_order(const void* a, const void* b) { return strcmp(a, b); }

// The files there are, in order, with spaces between.
static void expect_files(const char* want) {
  char names[8][32] = {{0}}, text[256] = "";
  size_t n = 0, used = 0;
  struct dirent* e;
  DIR* d = opendir(folder);
  assert_non_null(d);
  while ((e = readdir(d)))
    if (e->d_name[0] != '.' && n < 8) snprintf(names[n++], sizeof names[0], "%.31s", e->d_name);
  closedir(d);
  qsort(names, n, sizeof names[0], in_order);
  for (size_t i = 0; i < n; i++)
    used += (size_t)snprintf(text + used, sizeof text - used, "%s%s", i ? " " : "", names[i]);
  assert_string_equal(text, want);
}

static void expect_content(const char* name, const char* want) {
  char text[64] = "", whole[sizeof folder + 64];
  snprintf(whole, sizeof whole, "%s/%s", folder, name);
  FILE* f = fopen(whole, "r");
  assert_non_null(f);
  assert_non_null(fgets(text, sizeof text, f));
  fclose(f);
  assert_string_equal(text, want);
}

static void ok(assay_status_t st) {
  if (st) fail_msg("%s", assay_status_message(st));
}

static void write_text(const char* text) { ok(assay_file_write(path, text, strlen(text))); }

static assay_writer_t* start(const char* text) {
  assay_writer_t* w = NULL;
  ok(assay_writer_open(path, &w));
  ok(assay_writer_write(w, text, strlen(text)));
  return w;
}

// Another process writes the file, and is killed before it is in place, or when it renames it.
static void write_and_die(const char* text, bool at_rename) {
  int status = 0;
  const pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    assay_writer_t* w = NULL;
    assay_status_t st = assay_writer_open(path, &w);
    if (!st) st = assay_writer_write(w, text, strlen(text));
    die_at_rename = at_rename;
    if (!st && at_rename) st = assay_writer_commit(w);
    if (!st && !at_rename) raise(SIGKILL);
    _exit(st ? 2 : 0);
  }
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

// ---- files without names ------------------------------------------------------------------------

static void nothing_is_left_of_a_file_without_a_name(void** state) {
  (void)state;
  write_and_die("new", false);
  expect_files("");
  write_text("old");
  write_and_die("new", false);
  expect_files("file");
  expect_content("file", "old");
}

// It gets the path in one call.
static void a_new_file_is_not_renamed(void** state) {
  (void)state;
  die_at_rename = true;
  write_text("new");
  expect_files("file");
  expect_content("file", "new");
}

static void a_whole_file_is_left_between_two_calls(void** state) {
  (void)state;
  write_text("old");
  write_and_die("new", true);
  expect_files("file file.assay-part");
  expect_content("file", "old");
  expect_content("file.assay-part", "new");
  write_text("newer");
  expect_files("file");
  expect_content("file", "newer");
  write_and_die("new", true);
  assert_int_equal(unlink(path), 0);
  write_text("newest");
  expect_files("file");
  expect_content("file", "newest");
}

// ---- files with names from the first ------------------------------------------------------------

static void the_next_writer_removes_what_was_left(void** state) {
  (void)state;
  no_unnamed = true;
  write_and_die("new", false);
  expect_files("file.assay-part1");
  write_text("newer");
  expect_files("file");
  write_and_die("newest", true);
  expect_files("file file.assay-part1");
  expect_content("file", "newer");
  assay_writer_abandon(start("last"));
  expect_files("file");
  expect_content("file", "newer");
}

static void writers_that_live_keep_their_files(void** state) {
  (void)state;
  no_unnamed = true;
  assay_writer_t *a = start("a"), *b = start("b");
  expect_files("file.assay-part1 file.assay-part2");
  write_and_die("c", false);
  expect_files("file.assay-part1 file.assay-part2 file.assay-part3");
  ok(assay_writer_commit(a));
  expect_content("file", "a");
  write_text("d");
  expect_files("file file.assay-part2");
  ok(assay_writer_commit(b));
  expect_files("file");
  expect_content("file", "b");
}

static void there_are_names_for_some(void** state) {
  (void)state;
  enum { WRITERS = 16 };
  assay_writer_t *w[WRITERS], *more = NULL;
  no_unnamed = true;
  for (int i = 0; i < WRITERS; i++) w[i] = start("x");
  assay_status_t st = assay_writer_open(path, &more);
  assert_non_null(st);
  assert_non_null(strstr(assay_status_message(st), strerror(EBUSY)));
  assay_status_free(st);
  for (int i = 0; i < WRITERS; i++) assay_writer_abandon(w[i]);
  expect_files("");
}

// Who lives cannot be told: nothing is removed.
static void without_locks_what_is_left_stays(void** state) {
  (void)state;
  no_unnamed = no_locks = true;
  write_and_die("a", false);
  write_text("b");
  expect_files("file file.assay-part1");
  expect_content("file", "b");
}

static void files_get_the_users_mask(void** state) {
  (void)state;
  const mode_t mask = umask(027);
  for (int named = 0; named < 2; named++) {
    struct stat info;
    no_unnamed = named;
    write_text("x");
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(info.st_mode & 0777, 0640);
    assert_int_equal(unlink(path), 0);
  }
  umask(mask);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, make_folder, remove_folder)

int main(void) {
  const struct CMUnitTest tests[] = {
      CASE(nothing_is_left_of_a_file_without_a_name), CASE(a_new_file_is_not_renamed),
      CASE(a_whole_file_is_left_between_two_calls),   CASE(the_next_writer_removes_what_was_left),
      CASE(writers_that_live_keep_their_files),       CASE(there_are_names_for_some),
      CASE(without_locks_what_is_left_stays),         CASE(files_get_the_users_mask),
  };
  return cmocka_run_group_tests_name("files of killed processes", tests, NULL, NULL);
}
