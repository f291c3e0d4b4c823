// Thousands of builds and runs with sizes drawn from the profile: memory must not grow.
//
//     soak [--count N] [--seed S]
//
// Each turn builds an engine, runs it with one to four batches in up to two contexts, and lets it
// go. What is allocated must be back at its level behind each turn; what the system counts as the
// process's memory may grow by a tenth and 16 MB from the first tenth of the turns to the last
// (allocators and oneDNN's cache of primitives settle first).
#include <unistd.h>

#include "base/alloc.h"
#include "base/random.h"
#include "engine_case.h"

static struct {
  long count;
  uint64_t seed;
} options = {.count = 300, .seed = 5};

static int64_t resident_bytes(void) {
  long size, pages = -1;
  FILE* f = fopen("/proc/self/statm", "r");
  assert_non_null(f);
  assert_int_equal(fscanf(f, "%ld %ld", &size, &pages), 2);
  fclose(f);
  return (int64_t)pages * sysconf(_SC_PAGESIZE);
}

static int64_t draw(assay_random_t* r, uint64_t* at, int64_t n) {
  const int64_t x = (int64_t)(assay_random_uniform(r, (*at)++) * (double)n);
  return x < n ? x : n - 1;
}

static assay_engine_t* build(assay_model_t* m, assay_random_t* r, uint64_t* at) {
  static const assay_format_t formats[] = {ASSAY_FORMAT_FP32, ASSAY_FORMAT_BF16, ASSAY_FORMAT_FP16};
  static const int64_t min[] = {1, 3, 16, 16}, max[] = {MAX, 3, 16, 16};
  const int64_t best[] = {1 + draw(r, at, MAX), 3, 16, 16};
  const assay_engine_shape_t shape = {"image", 4, best, min, max};
  assay_engine_options_t o = ASSAY_ENGINE_OPTIONS_INIT;
  o.precision = formats[draw(r, at, 3)];
  o.fusion = draw(r, at, 4) == 0 ? ASSAY_FUSION_OFF : ASSAY_FUSION_TARGET;
  o.shapes = &shape;
  o.n_shapes = draw(r, at, 2) ? 1 : 0;
  assay_engine_t* e = NULL;
  ok(assay_engine_build(m, &o, &e));
  return e;
}

static void one_turn(assay_model_t* m, const float* images, assay_random_t* r, uint64_t* at) {
  float out[MAX * CLASSES];
  assay_engine_t* e = build(m, r, at);
  for (int64_t contexts = 1 + draw(r, at, 2); contexts > 0; contexts--) {
    assay_context_t* c = open_context(e, NULL);
    for (int64_t runs = 1 + draw(r, at, 2); runs > 0; runs--)
      classify(c, images, 1 + draw(r, at, MAX), out);
    assay_context_destroy(c);
  }
  assay_engine_release(e);
}

static void memory_does_not_grow(void** state) {
  (void)state;
  static float images[MAX * IMAGE];
  char path[512];
  assay_model_t* m = NULL;
  assay_random_t r = assay_random_make(options.seed, "soak", 0);
  uint64_t at = 0;
  int64_t live = 0, settled = 0, last = 0;
  fill(images, MAX * IMAGE, 7);
  snprintf(path, sizeof path, "%s/classifier/model.onnx", getenv("ASSAY_TEST_MODELS"));
  ok(assay_model_load(path, &m));
  printf("seed %llu, %ld builds\n", (unsigned long long)options.seed, options.count);
  for (long i = 0; i < options.count; i++) {
    one_turn(m, images, &r, &at);
    if (i == 0) live = assay_alloc_live();
    if (assay_alloc_live() > live)
      fail_msg("turn %ld: %lld allocations live, %lld behind the first", i,
               (long long)assay_alloc_live(), (long long)live);
    const int64_t now = resident_bytes();
    if (i <= options.count / 10 && now > settled) settled = now;
    last = now;
  }
  printf("%lld bytes resident after a tenth, %lld at the end\n", (long long)settled,
         (long long)last);
  assert_true(last <= settled + settled / 10 + (16 << 20));
  assay_model_release(m);
}

int main(int argc, char** argv) {
  for (int i = 1; i + 1 < argc; i += 2) {
    if (strcmp(argv[i], "--count") == 0)
      options.count = strtol(argv[i + 1], NULL, 10);
    else if (strcmp(argv[i], "--seed") == 0)
      options.seed = strtoull(argv[i + 1], NULL, 10);
    else
      return fprintf(stderr, "unknown option %s\n", argv[i]), 2;
  }
  const struct CMUnitTest tests[] = {cmocka_unit_test(memory_does_not_grow)};
  return cmocka_run_group_tests_name("soak", tests, NULL, NULL);
}
