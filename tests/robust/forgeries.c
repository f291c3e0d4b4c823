// Forged plans, timing caches and certificates, whose checksums fit: each ends with an error that
// says what is wrong, or runs. Nothing else: no crash, no endless run, no allocation past what the
// files are worth, nothing left allocated, no error that is our own mistake. The files that they
// are made of, one in twenty, are taken.
//
//   forgeries COUNT [--seed S] [--first K] [--seconds T] [--folder F] [--only] [--list] [--keep]
//
//   --only     forgery K in this process, for a debugger, and what comes of it
//   --list     what came of each
//   --keep     each is kept in the folder, and nothing is done with it
//   --seconds  how long one may take (20)
//   --folder   where forgeries that failed are kept (the current one)
//
// What is drawn follows from the seed and a forgery's number. Exit code 1: something did not hold;
// a failure names the number.
#include <errno.h>
#include <omp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../fuzz/forge.h"
#include "../fuzz/subjects.h"
#include "../fuzz/wire.h"
#include "base/alloc.h"
#include "onnx/load.h"
#include "onnx/onnx.h"
#include "seed_case.h"

enum {
  PER_SUBJECT = 20,  // forgeries of one file, one after the other
  SUBJECTS = 5000,
  LIMIT_BYTES = 512 << 20,  // that the library may allocate
  MAX_RESIDENT = 1024,      // MB that a process may grow by, code and mapped files among them
};

typedef enum kind { PLAN = 0, CACHE, CERTIFICATE, N_KINDS } kind_t;
static const char* const kind_names[] = {"plan", "timing cache", "certificate"};

// What processes tell each other.
typedef struct tally {
  uint64_t at;    // the forgery at hand
  uint64_t done;  // up to here
  uint64_t ran[N_KINDS], refused[N_KINDS], failures;
} tally_t;

typedef struct args {
  uint64_t count, first, seed;
  unsigned seconds;
  const char* folder;
  bool only, list, keep, seeded;
} args_t;

static tally_t* tally;
static char work[] = "/tmp/assay-forgeries-XXXXXX";

// wire.h asks for it; libFuzzer has its own.
size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size) {
  if (!size) return 0;
  const size_t at = (size_t)wire_draw(size), left = size - at;
  switch (wire_draw(4)) {
    case 0:
      data[at] = (uint8_t)wire_draw(256);
      return size;
    case 1:
      data[at] ^= (uint8_t)(1u << wire_draw(8));
      return size;
    case 2:
      memmove(data + at, data + at + 1, left - 1);
      return size - 1;
    default:
      if (size == max_size) return size;
      memmove(data + at + 1, data + at, left);
      return size + 1;
  }
}

// ---- one forgery --------------------------------------------------------------------------------

static uint64_t mix(uint64_t seed, uint64_t i) {  // splitmix64
  uint64_t z = seed * UINT64_C(0x2545f4914f6cdd1d) + (i + 1) * UINT64_C(0x9e3779b97f4a7c15);
  z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
  return z ^ z >> 31;
}

static kind_t kind_of(uint64_t i) {
  static const kind_t kinds[] = {PLAN,  PLAN, CERTIFICATE, PLAN, PLAN,
                                 CACHE, PLAN, PLAN,        PLAN, PLAN};
  return kinds[i / PER_SUBJECT % (sizeof kinds / sizeof *kinds)];
}

// Models of tests/, which have what drawn networks have not: Loop, If, sequences.
static const char* const named[] = {"loop", "detector", "quantized", "transformer", "classifier"};
enum { N_NAMED = sizeof named / sizeof *named };

static forged_t named_plan(uint64_t number) {
  char path[512];
  assay_model_t* m = NULL;
  const char* folder = getenv("ASSAY_TEST_MODELS");
  if (!folder) return subject_plan(number, work);
  snprintf(path, sizeof path, "%s/%s/model.onnx", folder, named[number % N_NAMED]);
  assay_status_t st = assay_onnx_load(path, 0, NULL, &m);
  if (st) {
    fprintf(stderr, "%s\n", assay_status_message(st));
    exit(2);
  }
  const forged_t out = subject_plan_of(m, number, work);
  assay_model_release(m);
  return out;
}

// The file that forgeries i / PER_SUBJECT are made of: kept until another one is asked for.
static const forged_t* subject_of(const args_t* a, uint64_t i, uint64_t* out_number) {
  static forged_t made;
  static uint64_t made_of = UINT64_MAX;
  const uint64_t group = i / PER_SUBJECT;
  *out_number = mix(a->seed, group) % SUBJECTS;
  if (made_of == group) return &made;
  free(made.at);
  made_of = group;
  const kind_t kind = kind_of(i);
  const bool is_named = kind == PLAN && group % 4 == 1;
  made = is_named        ? named_plan(*out_number)
         : kind == PLAN  ? subject_plan(*out_number, work)
         : kind == CACHE ? subject_cache(*out_number, work)
                         : subject_certificate(*out_number);
  return &made;
}

static void forge(kind_t kind, forged_t* f, uint64_t seed) {
  if (kind == PLAN)
    forge_plan(f, seed);
  else if (kind == CACHE)
    forge_cache(f, seed);
  else
    forge_certificate(f, seed);
}

static assay_status_t use(kind_t kind, uint64_t number, const forged_t* f, const char* path) {
  if (kind == PLAN) return use_plan(number, path);
  if (kind == CACHE) return use_cache(number, path);
  return use_certificate(number, f->at, f->n);
}

static void path_of(char* out, size_t n) { snprintf(out, n, "%s/forged", work); }

// Copies the forgery at hand into the folder; `path` says where to.
static void keep(const args_t* a, uint64_t i, char* path, size_t n_path) {
  char from[64], bytes[4096];
  path_of(from, sizeof from);
  snprintf(path, n_path, "%s/forgery-%llu-%llu", a->folder, (unsigned long long)a->seed,
           (unsigned long long)i);
  FILE *in = fopen(from, "rb"), *out = fopen(path, "wb");
  for (size_t n; in && out && (n = fread(bytes, 1, sizeof bytes, in)) > 0;)
    if (fwrite(bytes, 1, n, out) != n) break;
  if (in) fclose(in);
  if (out) fclose(out);
}

static void failure(const args_t* a, uint64_t i, const char* why) {
  char to[512];
  tally->failures++;
  keep(a, i, to, sizeof to);
  printf("FAIL forgery %llu of seed %llu (%s): %s; kept as %s\n", (unsigned long long)i,
         (unsigned long long)a->seed, kind_names[kind_of(i)], why, to);
  fflush(stdout);
}

static long resident_mb(void) {
  struct rusage u;
  return getrusage(RUSAGE_SELF, &u) ? 0 : u.ru_maxrss / 1024;
}

// The first of each twenty is not forged. A stripped plan is read, and does not run.
static bool is_whole(uint64_t i) { return i % PER_SUBJECT == 0; }

static void judge(const args_t* a, uint64_t i, assay_status_t st, int64_t left, long grown) {
  char text[256];
  const kind_t kind = kind_of(i);
  const char* message = st ? assay_status_message(st) : "runs";
  *(st ? &tally->refused[kind] : &tally->ran[kind]) += 1;
  if (a->list || a->only) printf("%llu %s: %s\n", (unsigned long long)i, kind_names[kind], message);
  if (a->list) fflush(stdout);
  if (assay_status_code(st) == ASSAY_INTERNAL) failure(a, i, message);
  if (is_whole(i) && st && !strstr(message, "the plan is stripped")) failure(a, i, message);
  snprintf(text, sizeof text, "%lld allocations are left", (long long)left);
  if (left) failure(a, i, text);
  snprintf(text, sizeof text, "it took %ld MB", grown);
  if (grown > MAX_RESIDENT) failure(a, i, text);
}

static void try_one(const args_t* a, uint64_t i) {
  char path[64];
  uint64_t number;
  const kind_t kind = kind_of(i);
  const forged_t* subject = subject_of(a, i, &number);
  forged_t f = {malloc(subject->n + 1), subject->n};
  if (!f.at) abort();
  if (!f.n) {
    free(f.at);
    return;
  }
  memcpy(f.at, subject->at, f.n);
  if (!is_whole(i)) forge(kind, &f, mix(~a->seed, i));
  path_of(path, sizeof path);
  subject_write(path, f.at, f.n);
  if (a->keep) {
    char kept[512];
    keep(a, i, kept, sizeof kept);
    free(f.at);
    return;
  }
  const long before = resident_mb();
  const int64_t live = assay_alloc_live();
  alarm(a->seconds);
  assay_status_t st = use(kind, number, &f, path);
  alarm(0);
  const int64_t kept = assay_alloc_live() - live - (st != NULL);
  judge(a, i, st, kept > 0 ? kept : 0, resident_mb() - before);
  assay_status_free(st);
  free(f.at);
}

// ---- all of them --------------------------------------------------------------------------------

// Works from tally->done on, in a process that may die.
static void child(const args_t* a) {
  enum { BATCH = 400 };  // a process starts anew now and then: what grows is told from what leaks
  omp_set_num_threads(1);
  assay_memory_set_limit(LIMIT_BYTES);
  for (int k = 0; k < BATCH && tally->done < a->first + a->count; k++) {
    tally->at = tally->done;
    try_one(a, tally->at);
    tally->done++;
  }
  fflush(stdout);
  _exit(0);
}

static void run_child(const args_t* a) {
  fflush(stdout);
  const pid_t pid = fork();
  int status = 0;
  char why[128];
  if (pid < 0) abort();
  if (!pid) child(a);
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status) && !WEXITSTATUS(status)) return;
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
    snprintf(why, sizeof why, "it takes more than %u s", a->seconds);
  else if (WIFSIGNALED(status))
    snprintf(why, sizeof why, "signal %d (%s)", WTERMSIG(status), strsignal(WTERMSIG(status)));
  else
    snprintf(why, sizeof why, "it ends the process with %d", WEXITSTATUS(status));
  failure(a, tally->at, why);
  tally->done = tally->at + 1;
}

static bool read_args(int argc, char** argv, args_t* a) {
  *a = (args_t){.seconds = 20, .folder = "."};
  if (argc < 2) return false;
  a->count = (uint64_t)test_draws(strtoll(argv[1], NULL, 10));
  for (int i = 2; i < argc; i++) {
    const char* value = i + 1 < argc ? argv[i + 1] : "";
    if (strcmp(argv[i], "--only") == 0)
      a->only = true;
    else if (strcmp(argv[i], "--list") == 0)
      a->list = true;
    else if (strcmp(argv[i], "--keep") == 0)
      a->keep = true;
    else if (strcmp(argv[i], "--seed") == 0)
      a->seed = strtoull(value, NULL, 10), a->seeded = true, i++;
    else if (strcmp(argv[i], "--first") == 0)
      a->first = strtoull(value, NULL, 10), i++;
    else if (strcmp(argv[i], "--seconds") == 0)
      a->seconds = (unsigned)strtoul(value, NULL, 10), i++;
    else if (strcmp(argv[i], "--folder") == 0)
      a->folder = value, i++;
    else
      return false;
  }
  if (!a->seeded) a->seed = test_seed();
  return a->count > 0;
}

static void report(const args_t* a) {
  printf("%llu forgeries of seed %llu:", (unsigned long long)a->count, (unsigned long long)a->seed);
  for (int k = 0; k < N_KINDS; k++)
    printf(" %llu %ss run and %llu do not,", (unsigned long long)tally->ran[k], kind_names[k],
           (unsigned long long)tally->refused[k]);
  printf(" %llu failures\n", (unsigned long long)tally->failures);
}

int main(int argc, char** argv) {
  args_t a;
  if (!read_args(argc, argv, &a))
    return fprintf(stderr, "forgeries COUNT [--seed S] [--first K] [--only] ...\n"), 2;
  tally = mmap(NULL, sizeof *tally, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (tally == MAP_FAILED || !mkdtemp(work)) return 2;
  tally->done = a.first;
  if (a.only) {
    omp_set_num_threads(1);
    assay_memory_set_limit(LIMIT_BYTES);
    a.seconds = 0;
    try_one(&a, a.first);
  }
  while (!a.only && tally->done < a.first + a.count) run_child(&a);
  report(&a);
  char command[128];
  snprintf(command, sizeof command, "%s/forged", work);
  remove(command);
  snprintf(command, sizeof command, "%s/made.plan", work);
  remove(command);
  snprintf(command, sizeof command, "%s/made.times", work);
  remove(command);
  rmdir(work);
  return tally->failures ? 1 : 0;
}
