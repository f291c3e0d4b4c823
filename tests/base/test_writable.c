// Paths that can be written, and those that cannot, told without a trace.
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/writable.h"

static int enter(void** state) {
  char* folder = strdup("/tmp/assay_writable_XXXXXX");
  *state = folder;
  if (!folder || !mkdtemp(folder) || chdir(folder)) return -1;
  FILE* f = fopen("file", "w");
  if (!f) return -1;
  fclose(f);
  return mkdir("folder", 0777) || symlink("file", "link") || symlink("nowhere/x", "dangling");
}

static int leave(void** state) {
  static const char* const names[] = {"file", "link", "dangling", "pipe"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) (void)unlink(names[i]);
  const bool gone = !rmdir("folder") && !chdir("/") && !rmdir(*state);
  free(*state);
  return gone ? 0 : -1;  // nothing was made
}

static void paths(void** state) {
  (void)state;
  static const struct {
    const char* path;
    const char *file, *folder;  // part of the message; NULL: it can be written
  } rows[] = {
      {"new", NULL, NULL},
      {"file", NULL, "'file' is not a folder"},
      {"folder", "it is a folder; name a file in it", NULL},
      {"folder/new", NULL, NULL},
      {"new/", "it names a folder", NULL},
      {"no/new", "there is no folder 'no'; make it", NULL},
      {"no/such/folder", "there is no folder 'no/such'", NULL},
      {"file/new", "Not a directory", "Not a directory"},
      {"./link", NULL, "is not a folder"},
      {"/dev/null", NULL, "'/dev/null' is not a folder"},
      {"", "the path is empty", "the path is empty"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    for (int folder = 0; folder < 2; folder++) {
      const char* want = folder ? rows[i].folder : rows[i].file;
      assay_status_t st =
          folder ? assay_writable_folder(rows[i].path) : assay_writable_file(rows[i].path);
      if (!want != !st || (want && !strstr(assay_status_message(st), want)))
        fail_msg("'%s' as a %s: %s", rows[i].path, folder ? "folder" : "file",
                 st ? assay_status_message(st) : "fine");
      if (st) assert_int_equal(assay_status_code(st), ASSAY_DEVICE);
      assay_status_free(st);
    }
}

// A link stays, and a device is none of ours to replace.
static void links_and_devices(void** state) {
  (void)state;
  struct stat info;
  assert_null(assay_file_write("link", "text", 4));
  assert_int_equal(lstat("link", &info), 0);
  assert_true(S_ISLNK(info.st_mode));
  assert_int_equal(stat("file", &info), 0);
  assert_int_equal(info.st_size, 4);
  // A pipe in a device's place: if it were replaced, no harm would be done.
  char text[8] = "";
  assert_int_equal(mkfifo("pipe", 0600), 0);
  const int fd = open("pipe", O_RDONLY | O_NONBLOCK);
  assert_true(fd >= 0);
  assert_null(assay_file_write("pipe", "text", 4));
  assert_int_equal(stat("pipe", &info), 0);
  assert_true(S_ISFIFO(info.st_mode));
  assert_int_equal(read(fd, text, sizeof text), 4);
  close(fd);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(paths), cmocka_unit_test(links_and_devices)};
  return cmocka_run_group_tests(tests, enter, leave);
}
