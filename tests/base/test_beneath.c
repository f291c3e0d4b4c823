// Files below a folder, by the kernel's walk and by our own: nothing outside of it is read,
// whatever links, names or a neighbour that keeps exchanging folders for links try.
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/beneath.h"
#include "base/file.h"
#include "status_case.h"

static char root[200];

static const char* in_root(const char* name, char text[400]) {
  snprintf(text, 400, "%s/%s", root, name);
  return text;
}

static void put(const char* name, const char* content) {
  char path[400];
  FILE* f = fopen(in_root(name, path), "w");
  assert_non_null(f);
  fputs(content, f);
  assert_int_equal(fclose(f), 0);
}

static int set_up(void** state) {
  (void)state;
  char path[400], other[400];
  snprintf(root, sizeof root, "/tmp/assay_beneath_XXXXXX");
  if (!mkdtemp(root)) return -1;
  mkdir(in_root("in", path), 0700);
  mkdir(in_root("in/sub", path), 0700);
  mkdir(in_root("out", path), 0700);
  put("in/a.bin", "inside");
  put("in/sub/b.bin", "inside");
  put("out/b.bin", "outside");
  put("out/secret", "outside");
  return symlink(in_root("out/secret", path), in_root("in/link", other)) ||
         symlink("../out", in_root("in/away", other)) ||
         symlink("a.bin", in_root("in/near", other)) ||
         link(in_root("out/secret", path), in_root("in/hard", other)) ||
         mkfifo(in_root("in/pipe", other), 0600);
}

static int tear_down(void** state) {
  static const char* const files[] = {"in/link",      "in/away",   "in/near",
                                      "in/hard",      "in/pipe",   "in/a.bin",
                                      "in/sub/b.bin", "out/b.bin", "out/secret"};
  static const char* const folders[] = {"in/sub", "in/real", "in", "out", ""};
  char path[400];
  (void)state;
  for (size_t i = 0; i < sizeof files / sizeof *files; i++) unlink(in_root(files[i], path));
  for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) rmdir(in_root(folders[i], path));
  return 0;
}

static assay_folder_t* open_in(void) {
  char path[400];
  assay_folder_t* f = NULL;
  assert_null(assay_folder_open(in_root("in", path), &f));
  return f;
}

static void only_what_is_inside(void** state) {
  (void)state;
  static const struct {
    const char *path, *says;  // says NULL: it is read
    unsigned flags;
  } rows[] = {{"a.bin", NULL, 0},
              {"sub/b.bin", NULL, 0},
              {"./sub//b.bin", NULL, 0},
              {"hard", NULL, ASSAY_BENEATH_HARD_LINKS},
              {"hard", "2 names", 0},
              {"link", "symbolic link", 0},
              {"link", "symbolic link", ASSAY_BENEATH_HARD_LINKS},
              {"near", "symbolic link", 0},
              {"away/secret", "symbolic link", 0},
              {"../out/secret", "out of the folder", 0},
              {"sub/../../out/secret", "out of the folder", 0},
              {"/etc/passwd", "outside of the folder", 0},
              {"nothing", "No such file", 0},
              {"a.bin/b", "Not a directory", 0},
              {"sub", "", 0},
              {"pipe", "", 0},
              {"", "", 0}};
  assay_folder_t* f = open_in();
  for (unsigned walk = 0; walk <= ASSAY_BENEATH_WALK; walk += ASSAY_BENEATH_WALK)
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
      assay_mapping_t* m = NULL;
      assay_status_t st = assay_mapping_open_beneath(f, rows[i].path, rows[i].flags | walk, &m);
      const bool fits = rows[i].says ? st && strstr(assay_status_message(st), rows[i].says) : !st;
      if (!fits)
        fail_msg("'%s'%s: %s", rows[i].path, walk ? ", walked" : "",
                 st ? assay_status_message(st) : "was read");
      assay_status_free(st);
      assay_mapping_release(m);
    }
  assay_folder_close(f);
}

// A neighbour puts a link to the folder outside in the place of `sub`, and back, all the time.
static _Atomic bool stop;

static void* exchange(void* unused) {
  char sub[400], real[400];
  in_root("in/sub", sub);
  in_root("in/real", real);
  while (!stop) {
    if (!rename(sub, real)) {
      if (!symlink("../out", sub)) unlink(sub);
      rename(real, sub);
      usleep(20);
    }
  }
  return unused;
}

static void races_read_nothing_outside(void** state) {
  (void)state;
  enum { TRIES = 5000 };
  assay_folder_t* f = open_in();
  for (unsigned walk = 0; walk <= ASSAY_BENEATH_WALK; walk += ASSAY_BENEATH_WALK) {
    pthread_t neighbour;
    int read = 0;
    stop = false;
    assert_int_equal(pthread_create(&neighbour, NULL, exchange, NULL), 0);
    // As many tries as it takes to meet the folder, too.
    for (int i = 0; i < TRIES || (!read && i < 1000 * TRIES); i++) {
      assay_mapping_t* m = NULL;
      assay_status_t st = assay_mapping_open_beneath(f, "sub/b.bin", walk, &m);
      if (!st) {
        assert_int_equal(assay_mapping_size(m), 6);
        assert_memory_equal(assay_mapping_data(m), "inside", 6);
        read++;
      }
      assay_status_free(st);
      assay_mapping_release(m);
    }
    stop = true;
    pthread_join(neighbour, NULL);
    assert_true(read > 0);
  }
  assay_folder_close(f);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(only_what_is_inside),
                                     cmocka_unit_test(races_read_nothing_outside)};
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
