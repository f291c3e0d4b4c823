// Compiled kernels on disk.
#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backends/cuda/compiled.h"
#include "backends/cuda/function.h"
#include "exec/device/code.h"
#include "exec/weights.h"
#include "platform_case.h"

static char folder[] = "kernels.XXXXXX";
static char inner[sizeof folder + 8];

static void the_only_file(char* path, size_t n) {
  DIR* d = opendir(inner);
  int files = 0;
  assert_non_null(d);
  for (struct dirent* e; (e = readdir(d));) {
    if (e->d_name[0] == '.') continue;
    files++;
    snprintf(path, n, "%s/%s", inner, e->d_name);
  }
  closedir(d);
  assert_int_equal(files, 1);
}

static struct stat facts(const char* path) {
  struct stat s;
  assert_int_equal(stat(path, &s), 0);
  return s;
}

static void change_byte(const char* path, long at) {
  FILE* f = fopen(path, "r+b");
  assert_non_null(f);
  fseek(f, at, at < 0 ? SEEK_END : SEEK_SET);
  const int byte = fgetc(f);
  fseek(f, at, at < 0 ? SEEK_END : SEEK_SET);
  fputc(byte ^ 1, f);
  fclose(f);
}

static void keys_find_their_code(void** state) {
  (void)state;
  static const char code[] = "not really code";
  void* got = NULL;
  size_t bytes = 0;
  char path[600];
  ok(cuda_compiled_read("a", &got, &bytes));
  assert_null(got);
  ok(cuda_compiled_write("a", code, sizeof code));
  ok(cuda_compiled_read("a", &got, &bytes));
  assert_int_equal(bytes, sizeof code);
  assert_memory_equal(got, code, sizeof code);
  assay_free(got);
  ok(cuda_compiled_read("b", &got, &bytes));
  assert_null(got);
  // Damaged at any place, cut off, or of another key: as if it were not there.
  the_only_file(path, sizeof path);
  const long size = (long)facts(path).st_size;
  for (long at = 0; at < size; at++) {
    change_byte(path, at);
    ok(cuda_compiled_read("a", &got, &bytes));
    if (got) fail_msg("byte %ld of %ld is changed, and it is taken", at, size);
    change_byte(path, at);
  }
  for (long n = 0; n < size; n++) {
    assert_int_equal(truncate(path, n), 0);
    ok(cuda_compiled_read("a", &got, &bytes));
    assert_null(got);
  }
  unlink(path);
}

// One compilation, as if in a process of its own.
static void compile_anew(platform_t* p) {
  assay_weights_t* store = NULL;
  cuda_functions_t* functions = NULL;
  cuda_kernel_t kernel = NULL;
  const cuda_source_t source = {.file = "move.cu", .kernel = "move_bytes", .options = "-DBITS=32"};
  ok(assay_weights_create(&store));
  ok(cuda_functions_create(p->device, store, &functions));
  ok(cuda_function_get(functions, &source, &kernel));
  assert_non_null(kernel);
  cuda_functions_destroy(functions);
  assay_weights_destroy(store);
  assay_code_forget();
}

static void another_process_compiles_nothing(void** state) {
  (void)state;
  platform_t p;
  char path[600];
  platform_init(&p);
  compile_anew(&p);
  the_only_file(path, sizeof path);
  const struct stat first = facts(path);
  compile_anew(&p);
  the_only_file(path, sizeof path);
  assert_int_equal(facts(path).st_ino, first.st_ino);  // it was read, not written again
  change_byte(path, -1);
  compile_anew(&p);
  the_only_file(path, sizeof path);
  assert_int_not_equal(facts(path).st_ino, first.st_ino);
  compile_anew(&p);
  unlink(path);
  platform_deinit(&p);
}

static int count_files(void) {
  DIR* d = opendir(inner);
  int files = 0;
  assert_non_null(d);
  for (struct dirent* e; (e = readdir(d));) files += e->d_name[0] != '.';
  closedir(d);
  return files;
}

static void remove_files(void) {
  DIR* d = opendir(inner);
  char path[600];
  assert_non_null(d);
  for (struct dirent* e; (e = readdir(d));) {
    snprintf(path, sizeof path, "%s/%s", inner, e->d_name);
    if (e->d_name[0] != '.') unlink(path);
  }
  closedir(d);
}

typedef struct rehearsal {
  platform_t platform;
  assay_weights_t* store;
  cuda_functions_t* functions;
} rehearsal_t;

static void begin(rehearsal_t* r) {
  platform_init(&r->platform);
  assay_code_forget();
  ok(assay_weights_create(&r->store));
  ok(cuda_functions_create(r->platform.device, r->store, &r->functions));
}

static void end(rehearsal_t* r) {
  cuda_functions_destroy(r->functions);
  assay_weights_destroy(r->store);
  platform_deinit(&r->platform);
  remove_files();
}

static void ask(const rehearsal_t* r, const char* options, bool at_once) {
  const cuda_source_t source = {
      .file = "move.cu", .kernel = "move_bytes", .options = options, .at_once = at_once};
  cuda_kernel_t kernel = NULL;
  ok(cuda_function_get(r->functions, &source, &kernel));
  assert_non_null(kernel);
}

// The texts that a source is made of are gone when it is compiled.
static void what_is_rehearsed_is_compiled_at_the_end(void** state) {
  static const char* const bits[] = {"-DBITS=8", "-DBITS=16", "-DBITS=32", "-DBITS=8"};
  rehearsal_t r;
  (void)state;
  begin(&r);
  cuda_functions_rehearse(r.functions);
  for (int i = 0; i < 4; i++) {
    char text[16];
    snprintf(text, sizeof text, "%s", bits[i]);
    ask(&r, text, false);
  }
  assert_int_equal(count_files(), 0);
  ask(&r, "-DBITS=64", true);
  assert_int_equal(count_files(), 1);
  ok(cuda_functions_rehearsed(r.functions));
  assert_int_equal(count_files(), 4);
  remove_files();
  for (int i = 0; i < 4; i++) ask(&r, bits[i], false);
  assert_int_equal(count_files(), 0);  // they were compiled before
  end(&r);
}

static void an_error_of_a_rehearsal_names_the_kernel(void** state) {
  rehearsal_t r;
  (void)state;
  begin(&r);
  cuda_functions_rehearse(r.functions);
  ask(&r, "-DBITS=nonsense", false);
  ask(&r, "-DBITS=8", false);
  fails(cuda_functions_rehearsed(r.functions), ASSAY_INTERNAL, "kernel 'move_bytes' of move.cu");
  cuda_functions_rehearse(r.functions);
  ok(cuda_functions_rehearsed(r.functions));  // it is not asked for any more
  end(&r);
}

static void a_folder_that_cannot_be_written_is_said(void** state) {
  (void)state;
  char file[600];
  snprintf(file, sizeof file, "%s/file", folder);
  fclose(fopen(file, "w"));
  setenv("ASSAY_KERNEL_CACHE", file, 1);
  fails(cuda_compiled_write("a", "b", 1), ASSAY_INVALID_ARGUMENT, "ASSAY_KERNEL_CACHE");
  unlink(file);
  setenv("ASSAY_KERNEL_CACHE", inner, 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(keys_find_their_code),
      cmocka_unit_test(what_is_rehearsed_is_compiled_at_the_end),
      cmocka_unit_test(an_error_of_a_rehearsal_names_the_kernel),
      cmocka_unit_test(another_process_compiles_nothing),
      cmocka_unit_test(a_folder_that_cannot_be_written_is_said),
  };
  find_platform();
  if (!mkdtemp(folder)) return 1;
  snprintf(inner, sizeof inner, "%s/inner", folder);
  setenv("ASSAY_KERNEL_CACHE", inner, 1);
  const int failed = cmocka_run_group_tests(tests, NULL, NULL);
  rmdir(inner);
  rmdir(folder);
  return failed;
}
