// Eight threads share an engine, each with a context of its own and sizes of its own; one more
// cancels runs by chance.
#include <pthread.h>
#include <stdatomic.h>

#include "engine_case.h"

enum { THREADS = 8, RUNS = 30 };

static float images[MAX * IMAGE];
static float want[MAX + 1][MAX * CLASSES];  // by how many images are run at once

typedef struct job {
  assay_engine_t* engine;
  unsigned seed;
  const char* wrong;  // NULL: nothing
  atomic_bool done;
  assay_context_t* context;  // of the thread whose runs are cancelled
} job_t;

// Runs once, by itself or through the context's thread, on `n` images.
static assay_status_t run(assay_context_t* c, int64_t n, bool start, float* out) {
  const int64_t dims[] = {n, 3, 16, 16};
  assay_status_t st = assay_context_bind_input(c, 0, ASSAY_TYPE_FLOAT, 4, dims, images,
                                               (size_t)n * IMAGE * sizeof *images);
  if (!st) st = assay_context_bind_output(c, 0, out, MAX * CLASSES * sizeof *out);
  if (!st && !start) return assay_context_run(c);
  if (!st) st = assay_context_start(c);
  return st ? st : assay_context_wait(c);
}

// cmocka is for one thread: what is wrong is said at the end.
static void* work(void* p) {
  job_t* j = p;
  float out[MAX * CLASSES];
  assay_context_options_t o = ASSAY_CONTEXT_OPTIONS_INIT;
  o.threads = 1 + (int)j->seed % 2;
  assay_context_t* c = NULL;
  assay_status_t st = assay_context_create(j->engine, &o, &c);
  unsigned random = j->seed;
  for (int i = 0; !st && !j->wrong && i < RUNS; i++) {
    random = random * 1664525u + 1013904223u;
    const int64_t n = 1 + (random >> 16) % MAX;
    memset(out, 0, sizeof out);
    st = run(c, n, i % 2, out);
    if (!st && memcmp(out, want[n], (size_t)n * CLASSES * sizeof *out) != 0)
      j->wrong = "other numbers than those of one thread";
  }
  if (st) j->wrong = "a run failed";
  assay_status_free(st);
  assay_context_destroy(c);
  return NULL;
}

static void* disturb(void* p) {
  job_t* j = p;
  while (!atomic_load(&j->done)) assay_context_cancel(j->context);
  return NULL;
}

static void* be_disturbed(void* p) {
  job_t* j = p;
  float out[MAX * CLASSES];
  pthread_t other;
  if (pthread_create(&other, NULL, disturb, j) != 0) return j->wrong = "no thread", NULL;
  for (int i = 0; !j->wrong && i < RUNS; i++) {
    assay_status_t st = run(j->context, 1 + i % MAX, i % 2, out);
    if (st && assay_status_code(st) != ASSAY_CANCELLED) j->wrong = "not cancelled, and not done";
    assay_status_free(st);
  }
  atomic_store(&j->done, true);
  pthread_join(other, NULL);
  assay_status_t st = run(j->context, 2, false, out);
  if (st || memcmp(out, want[2], 2 * CLASSES * sizeof *out) != 0)
    j->wrong = "a context is of no use after it was cancelled";
  assay_status_free(st);
  return NULL;
}

static void share(const assay_engine_options_t* options) {
  pthread_t threads[THREADS + 1];
  job_t jobs[THREADS + 1];
  assay_engine_t* e = build_model("classifier", options);
  fill(images, MAX * IMAGE, 11);
  // An engine of its own: the one that is shared has made nothing of its weights yet.
  assay_engine_t* alone = build_model("classifier", options);
  assay_context_t* c = open_context(alone, NULL);
  for (int64_t n = 1; n <= MAX; n++) classify(c, images, n, want[n]);
  assay_context_destroy(c);
  assay_engine_release(alone);
  for (unsigned i = 0; i <= THREADS; i++) {
    jobs[i] = (job_t){.engine = e, .seed = i};
    if (i == THREADS) jobs[i].context = open_context(e, NULL);
    assert_int_equal(pthread_create(&threads[i], NULL, i < THREADS ? work : be_disturbed, &jobs[i]),
                     0);
  }
  for (int i = 0; i <= THREADS; i++) pthread_join(threads[i], NULL);
  for (int i = 0; i <= THREADS; i++)
    if (jobs[i].wrong) fail_msg("thread %d: %s", i, jobs[i].wrong);
  assay_context_destroy(jobs[THREADS].context);
  assay_engine_release(e);
}

static void threads_share_an_engine(void** state) {
  (void)state;
  share(NULL);
}

static void threads_share_an_engine_in_bf16(void** state) {
  (void)state;
  const assay_engine_options_t o = {.struct_size = sizeof o, .precision = ASSAY_FORMAT_BF16};
  share(&o);
}

static void threads_share_an_emulated_engine(void** state) {
  (void)state;
  const assay_engine_options_t o = {.struct_size = sizeof o, .target = "emu"};
  share(&o);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(threads_share_an_engine),
                                     cmocka_unit_test(threads_share_an_engine_in_bf16),
                                     cmocka_unit_test(threads_share_an_emulated_engine)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
