// --timingCacheFile: read if it is there and ours; written after the build, with what others have
// added to it meanwhile, under a lock.
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/file.h"
#include "exec/choice/timings.h"
#include "frontends/trtexec/job.h"
#include "frontends/trtexec/log.h"

const char* trt_cache_file(const trt_options_t* o) {
  return trt_given(o, TRT_FLAG_noBuilderCache) ? NULL : trt_text(o, TRT_FLAG_timingCacheFile);
}

// The file's text in the arena, "" where there is none that a build could read.
static assay_status_t read_cache(const trt_job_t* j, const char* path, bool warn, bool* out_other,
                                 const char** out) {
  assay_mapping_t* m = NULL;
  assay_timings_t* t = NULL;
  *out = "";
  ASSAY_TRY(assay_timing_cache_read(path, &m));
  if (!m) return NULL;
  const char* text = (const char*)assay_mapping_data(m);
  const size_t n = assay_mapping_size(m);
  assay_status_t st = assay_timings_create("", &t);
  if (!st) {
    assay_status_t bad = assay_timings_parse(t, text, n, NULL);
    if (bad && assay_status_code(bad) == ASSAY_CORRUPT) {
      *out_other = true;
      if (warn)
        trt_warn("'%s' is not a timing cache of Assay's (%s): it is not read, and left as it is",
                 path, assay_status_message(bad));
      assay_status_free(bad);
    } else {
      st = bad;
    }
  }
  assay_timings_destroy(t);
  if (!st && !*out_other) st = assay_arena_strndup(j->arena, text, n, out);
  assay_mapping_release(m);
  return st;
}

// The second line of a cache: the machine that it is of.
static size_t machine_line(const char* text, const char** out) {
  const char* end = strchr(text, '\n');
  *out = end ? end + 1 : "";
  return strcspn(*out, "\n");
}

static bool same_machine(const char* a, const char* b) {
  const char *x, *y;
  const size_t n = machine_line(a, &x), m = machine_line(b, &y);
  return n == m && strncmp(x, y, n) == 0;
}

assay_status_t trt_cache_read(const trt_job_t* j, const char* path, bool* out_other,
                              const char** out) {
  return read_cache(j, path, true, out_other, out);
}

void trt_cache_report(const trt_job_t* j, const char* path, const char* text) {
  if (!*text || !j->timings.len || !same_machine(text, assay_str_get(&j->timings))) return;
  trt_info("Loaded %zu bytes of timing cache from %s: %s", strlen(text), path,
           j->timings_measured ? "kernels that it did not have were timed"
                               : "no kernel had to be timed");
}

static assay_status_t merge(const trt_job_t* j, const char* path) {
  const char *there, *machine, *name;
  bool other = false;
  assay_timings_t* t = NULL;
  assay_str_t text = {0};
  ASSAY_TRY(read_cache(j, path, false, &other, &there));
  if (other) return NULL;
  if (*there && !same_machine(there, assay_str_get(&j->timings)))
    return trt_warn(
               "'%s' is of another machine or number of threads: it is not read, and left as "
               "it is",
               path),
           NULL;
  const size_t n = machine_line(assay_str_get(&j->timings), &machine);
  ASSAY_TRY(assay_arena_strndup(j->arena, machine, n, &name));
  assay_status_t st = assay_timings_create(name, &t);
  if (!st && *there) st = assay_timings_parse(t, there, strlen(there), NULL);
  if (!st) st = assay_timings_parse(t, j->timings.text, j->timings.len, NULL);
  if (!st) st = assay_timings_print(t, false, &text);
  if (!st) st = assay_file_write(path, assay_str_get(&text), text.len);
  if (!st) trt_info("Saved %zu bytes of timing cache to %s", text.len, path);
  assay_timings_destroy(t);
  assay_str_deinit(&text);
  return assay_status_note(st, "--timingCacheFile=%s", path);
}

// Waits for others that write to the file: a lock on one beside it, which stays, since the file
// itself is replaced.
static assay_status_t lock(const trt_job_t* j, const char* path, int* out) {
  const char* beside = NULL;
  int failed;
  ASSAY_TRY(assay_arena_printf(j->arena, &beside, "%s.lock", path));
  *out = open(beside, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (*out < 0)
    return ASSAY_ERROR(ASSAY_DEVICE, "'%s' cannot be made: %s", beside, strerror(errno));
  do failed = flock(*out, LOCK_EX);
  while (failed && errno == EINTR);
  if (!failed) return NULL;
  assay_status_t st =
      ASSAY_ERROR(ASSAY_DEVICE, "'%s' cannot be locked: %s", beside, strerror(errno));
  close(*out);
  return st;
}

// Writes what was measured, with what others have added to the file since it was read.
assay_status_t trt_cache_write(const trt_job_t* j, const char* path) {
  int held = -1;
  if (!path || !*path || j->timings_kept || !j->timings.len) return NULL;
  ASSAY_TRY(assay_status_note(lock(j, path, &held), "--timingCacheFile=%s", path));
  assay_status_t st = merge(j, path);
  close(held);
  return st;
}
