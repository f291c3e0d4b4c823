// Plan files: what is read runs to the same bits as what was written, and what is damaged is
// refused.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
// cmocka wants those before it.
#include <cmocka.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "data/samples.h"
#include "fail_case.h"
#include "onnx/load.h"
#include "runtime/executor.h"

static void ok(assay_status_t st) {
  if (st) fail_msg("%s", assay_status_message(st));
}

static const struct {
  const char *model, *input;
  int rank;
  int64_t dims[4];
  assay_format_t format;
  bool fused;
} cases[] = {
    {"classifier", "image", 4, {2, 3, 16, 16}, ASSAY_FORMAT_FP32, true},
    {"classifier", "image", 4, {2, 3, 16, 16}, ASSAY_FORMAT_BF16, true},
    {"transformer", "tokens", 2, {2, 16, 0, 0}, ASSAY_FORMAT_FP32, true},
    {"transformer", "tokens", 2, {2, 16, 0, 0}, ASSAY_FORMAT_FP16, false},
};

static assay_engine_t* build(size_t i) {
  char path[512];
  snprintf(path, sizeof path, "%s/%s/model.onnx", getenv("ASSAY_TEST_MODELS"), cases[i].model);
  const assay_input_shape_t shape = {cases[i].input, cases[i].rank, cases[i].dims};
  const assay_precision_t precision = {.format = cases[i].format};
  const assay_plan_options_t options = {.fused = cases[i].fused};
  assay_model_t* m = NULL;
  assay_plan_t* plan = NULL;
  assay_engine_t* e = NULL;
  ok(assay_onnx_load(path, 1, &shape, &m));
  ok(assay_plan_create(m, &precision, &options, 1, &plan));
  ok(assay_engine_create(plan, assay_backend_find("cpu"), NULL, &e));
  assay_model_release(m);
  return e;
}

// Runs once on inputs that the seed alone tells, and hashes what comes out.
static uint64_t run(assay_engine_t* engine) {
  const assay_model_t* m = assay_plan_layers(assay_engine_plan(engine))->model;
  const assay_graph_t* g = m->graph;
  assay_executor_t* e = NULL;
  assay_samples_t s = {0};
  uint64_t hash = 0;
  ok(assay_samples_generate(m, 5, &s));
  ok(assay_executor_run_engine(engine, NULL, &e));
  ok(assay_executor_set_inputs(e, assay_samples_get(&s, 0)));
  ok(assay_executor_run(e));
  for (size_t i = 0; i < g->n_outputs; i++) {
    const assay_tensor_t* t = assay_executor_get(e, g->outputs[i]);
    hash = assay_hash(t->data, (size_t)t->size * assay_store_elem_bytes(t->store), hash);
  }
  assay_executor_destroy(e);
  assay_samples_deinit(&s);
  return hash;
}

static char path[64];

static int make_path(void** state) {
  (void)state;
  snprintf(path, sizeof path, "/tmp/assay-test-plan-%ld", (long)getpid());
  return 0;
}

static int remove_path(void** state) {
  (void)state;
  unlink(path);
  return 0;
}

static void the_same_bits_come_back(void** state) {
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    assay_engine_t *built = build(i), *loaded = NULL;
    const uint64_t want = run(built);
    ok(assay_engine_save(built, path));
    assert_true(assay_engine_is_plan_file(path));
    assay_engine_release(built);
    ok(assay_engine_load(path, &loaded));
    assert_int_equal(assay_plan_layers(assay_engine_plan(loaded))->n_layers > 3, 1);
    assert_true(run(loaded) == want);
    assert_true(run(loaded) == want);
    assay_engine_release(loaded);
  }
}

static uint8_t* read_all(size_t* out_n) {
  assay_mapping_t* m = NULL;
  ok(assay_mapping_open(path, &m));
  *out_n = assay_mapping_size(m);
  uint8_t* bytes = malloc(*out_n);
  assert_non_null(bytes);
  memcpy(bytes, assay_mapping_data(m), *out_n);
  assay_mapping_release(m);
  return bytes;
}

static void write_all(const uint8_t* bytes, size_t n) {
  FILE* f = fopen(path, "wb");
  assert_non_null(f);
  assert_int_equal(fwrite(bytes, 1, n, f), n);
  assert_int_equal(fclose(f), 0);
}

// Loading must fail; returns the code.
static assay_code_t refused(const char* what, size_t at) {
  assay_engine_t* e = NULL;
  assay_status_t st = assay_engine_load(path, &e);
  if (!st) fail_msg("%s at byte %zu was not noticed", what, at);
  const assay_code_t code = assay_status_code(st);
  assay_status_free(st);
  return code;
}

static void damage_is_refused(void** state) {
  (void)state;
  enum { HEAD = 512, PLACES = 1000 };
  assay_engine_t* built = build(0);
  size_t n;
  run(built);
  ok(assay_engine_save(built, path));
  assay_engine_release(built);
  uint8_t* bytes = read_all(&n);
  for (size_t i = 0; i < HEAD; i++) {
    bytes[i] ^= 0x5a;
    write_all(bytes, n);
    refused("a flipped byte", i);
    bytes[i] ^= 0x5a;
  }
  for (size_t i = 0; i < PLACES; i++) {
    write_all(bytes, n / PLACES * i);
    assert_int_equal(refused("a cut", n / PLACES * i), ASSAY_CORRUPT);
  }
  for (size_t i = 0; i < 200; i++) {
    const size_t at = n / 200 * i;
    bytes[at] ^= 1;
    write_all(bytes, n);
    refused("a flipped bit", at);
    bytes[at] ^= 1;
  }
  free(bytes);
}

// The checksum that belongs to bytes that were changed.
static void sign(uint8_t* bytes, size_t n) {
  uint64_t hash = 0;
  const size_t end = n - sizeof hash;
  for (size_t at = 0; at < end; at += 1 << 20)
    hash = assay_hash(bytes + at, end - at < 1 << 20 ? end - at : 1 << 20, hash);
  memcpy(bytes + end, &hash, sizeof hash);
}

static uint8_t* find(uint8_t* bytes, size_t n, const char* text) {
  for (size_t i = 0; i + strlen(text) <= n; i++)
    if (memcmp(bytes + i, text, strlen(text)) == 0) return bytes + i;
  fail_msg("there is no '%s'", text);
  return NULL;
}

// Whole files, but for somebody else.
static void others_are_refused(void** state) {
  (void)state;
  static const struct {
    const char *text, *other;
    assay_code_t code;
  } changes[] = {{ASSAY_VERSION, "9", ASSAY_UNSUPPORTED},
                 {"x86-64", "z86-64", ASSAY_UNSUPPORTED},
                 {"cpu", "gpu", ASSAY_UNSUPPORTED},
                 {"\"layers\"", "\"players", ASSAY_CORRUPT},
                 {"\"nodes\": [", "\"nodes\": {", ASSAY_CORRUPT},
                 {"fp32", "fp99", ASSAY_CORRUPT}};
  assay_engine_t* built = build(0);
  size_t n;
  run(built);
  ok(assay_engine_save(built, path));
  assay_engine_release(built);
  uint8_t* bytes = read_all(&n);
  for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
    const size_t len = strlen(changes[i].other);
    char kept[64];
#ifndef __x86_64__
    if (strcmp(changes[i].text, "x86-64") == 0) continue;
#endif
    uint8_t* at = find(bytes, n, changes[i].text);
    memcpy(kept, at, len);
    memcpy(at, changes[i].other, len);
    sign(bytes, n);
    write_all(bytes, n);
    assert_int_equal(refused(changes[i].other, (size_t)(at - bytes)), changes[i].code);
    memcpy(at, kept, len);
  }
  free(bytes);
}

// Every allocation of saving and loading made to fail: an error, and nothing leaks.
static void allocations_may_fail(void** state) {
  (void)state;
  assay_engine_t* built = build(0);
  run(built);
  ok(assay_engine_save(built, path));
  for (int way = 0; way < 4; way++) {
    const bool loads = way / 2, sticky = way % 2;
    bool reached = true;
    for (uint64_t n = 1; reached; n = fail_next(n, 200)) {
      assay_engine_t* e = NULL;
      const int64_t live = assay_alloc_live();
      assay_alloc_fail_after(n, sticky);
      assay_status_t st = loads ? assay_engine_load(path, &e) : assay_engine_save(built, path);
      reached = assay_alloc_fail_after(0, false) >= n;
      if (!reached) ok(st), st = NULL;
      if (st) assert_int_equal(assay_status_code(st), ASSAY_NO_MEMORY);
      assay_status_free(st);
      assay_engine_release(e);
      // The engine keeps the text of its timings.
      assert_true(assay_alloc_live() <= live + (loads ? 0 : 1));
    }
  }
  assay_engine_release(built);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_same_bits_come_back), cmocka_unit_test(damage_is_refused),
      cmocka_unit_test(others_are_refused), cmocka_unit_test(allocations_may_fail)};
  return cmocka_run_group_tests(tests, make_path, remove_path);
}
