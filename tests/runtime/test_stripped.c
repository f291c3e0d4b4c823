// Plans without weights: nothing of a weight is in the file; a refit with the model makes of it
// what a build would have; other weights are told from those; what is damaged is refused.
#include "base/hash.h"
#include "fail_case.h"
#include "refit_case.h"
#include "runtime/executor.h"

static assay_engine_t* build_stripped(const char* path, assay_engine_options_t o, bool refittable) {
  if (o.timing_cache) o.timing_cache = at("times.txt");
  o.strip_weights = true;
  o.refittable = refittable;
  return build(path, &o);
}

static uint8_t* file_bytes(const char* path, size_t* out_n) {
  assay_mapping_t* m = NULL;
  ok(assay_mapping_open(path, &m));
  *out_n = assay_mapping_size(m);
  uint8_t* bytes = malloc(*out_n);
  assert_non_null(bytes);
  memcpy(bytes, assay_mapping_data(m), *out_n);
  assay_mapping_release(m);
  return bytes;
}

static void write_bytes(const char* path, const uint8_t* bytes, size_t n) {
  FILE* f = fopen(path, "wb");
  assert_non_null(f);
  assert_int_equal(fwrite(bytes, 1, n, f), n);
  assert_int_equal(fclose(f), 0);
}

static const uint8_t* find_bytes(const uint8_t* in, size_t n, const void* what, size_t n_what) {
  for (size_t i = 0; i + n_what <= n; i++)
    if (in[i] == *(const uint8_t*)what && memcmp(in + i, what, n_what) == 0) return in + i;
  return NULL;
}

// No float weight of more than eight elements has its first ones in the file.
static void assert_no_weights(const char* file, const char* model) {
  assay_model_t* m = NULL;
  size_t n, looked = 0;
  uint8_t* bytes = file_bytes(file, &n);
  ok(assay_onnx_read(model, &m));
  for (size_t g = 0; g < m->n_graphs; g++)
    for (size_t i = 0; i < m->graphs[g]->n_initializers; i++) {
      const assay_value_t* v = m->graphs[g]->initializers[i];
      assay_tensor_t* packed = NULL;
      if (v->constant->type != ASSAY_TYPE_FLOAT || v->constant->size <= 8) continue;
      if (strcmp(v->name, "sizes") == 0) continue;  // a shape is made of it
      ok(assay_tensor_pack(v->constant, &packed));
      float x[4];
      memcpy(x, packed->data, sizeof x);
      if (x[0] != x[1] && find_bytes(bytes, n, x, 16))
        fail_msg("%s: '%s' is there", model, v->name);
      looked += x[0] != x[1];
      assay_tensor_release(packed);
    }
  assert_true(looked > 0);
  free(bytes);
  assay_model_release(m);
}

// A stripped plan says what is missing, does not run, and can be written again. A refit makes of it
// what a build without stripping writes.
static void a_refit_makes_it_whole(void** state) {
  (void)state;
  for (size_t i = 0; i < N_ROWS; i++) {
    assay_engine_shape_t shape;
    const assay_engine_options_t o = options_of(&rows[i], &shape);
    const char* path = model_path(rows[i].model);
    assay_engine_t *whole = build(path, &o), *stripped = build_stripped(path, o, false);
    assay_engine_t *loaded = NULL, *fitted = NULL;
    assay_context_t* c = NULL;
    assay_model_t* m = load(path);
    uint64_t bytes = 0;
    // With its weights in memory it is an engine like others.
    assert_int_equal(assay_engine_missing_weights(stripped, NULL), 0);
    ok(assay_engine_save(stripped, at("stripped.plan")));
    ok(assay_engine_load(at("stripped.plan"), &loaded));
    assert_true(assay_engine_missing_weights(loaded, &bytes) > 0);
    assert_true(bytes > 0);
    fails(assay_context_create(loaded, NULL, &c), ASSAY_UNSUPPORTED, "assay refit PLAN --weights");
    assert_same_plan(loaded, stripped, "written again");
    ok(assay_engine_refit(loaded, m, &fitted));
    assert_int_equal(assay_engine_missing_weights(fitted, NULL), 0);
    assert_same_plan(fitted, whole, rows[i].model);
    if (strcmp(rows[i].model, "classifier") == 0) assert_no_weights(at("stripped.plan"), path);
    assay_model_release(m);
    assay_engine_release(whole);
    assay_engine_release(stripped);
    assay_engine_release(loaded);
    assay_engine_release(fitted);
  }
}

// The same model with other weights: refused by the first one, unless the plan was built for that.
static void other_weights_need_a_refittable_plan(void** state) {
  (void)state;
  for (size_t i = 0; i < N_ROWS; i++) {
    assay_engine_shape_t shape;
    const assay_engine_options_t o = options_of(&rows[i], &shape);
    const char* path = model_path(rows[i].model);
    write_changed(path, at("new.onnx"), (uint32_t)i + 50, NULL);
    assay_engine_t *was = build(path, &o), *fresh = build(at("new.onnx"), &o);
    assay_model_t* m = load(at("new.onnx"));
    assay_engine_release(was);  // its times are known from now on
    for (int refittable = 0; refittable < 2; refittable++) {
      assay_engine_t *loaded = NULL, *fitted = NULL, *built = build_stripped(path, o, refittable);
      ok(assay_engine_save(built, at("stripped.plan")));
      assay_engine_release(built);
      ok(assay_engine_load(at("stripped.plan"), &loaded));
      assay_status_t st = assay_engine_refit(loaded, m, &fitted);
      if (refittable) {
        ok(st);
        assert_same_plan(fitted, fresh, rows[i].model);
      } else {
        fails(st, ASSAY_INVALID_ARGUMENT, "is not the one that the plan was built with");
        assert_null(fitted);
      }
      assay_engine_release(loaded);
      assay_engine_release(fitted);
    }
    assay_model_release(m);
    assay_engine_release(fresh);
  }
}

// The first weight that differs is named, also one that is small and still there.
static void the_first_other_weight_is_named(void** state) {
  (void)state;
  assay_model_t* m = NULL;
  assay_engine_options_t o = ASSAY_ENGINE_OPTIONS_INIT;
  assay_engine_t *built = build_stripped(model_path("classifier"), o, false), *e = NULL,
                 *out = NULL;
  ok(assay_engine_save(built, at("stripped.plan")));
  ok(assay_engine_load(at("stripped.plan"), &e));
  ok(assay_onnx_read(model_path("classifier"), &m));
  for (size_t i = 0; i < m->graph->n_initializers; i++) {
    const assay_value_t* v = m->graph->initializers[i];
    assay_set_t set = {0};
    char text[256];
    if (!is_trained(v)) continue;
    for (size_t k = 0; k < m->graph->n_initializers; k++) {
      const assay_value_t* w = m->graph->initializers[k];
      assay_tensor_t* t = w == v ? changed(w->constant, 9) : assay_tensor_retain(w->constant);
      ok(assay_set_add(&set, w->name, t));
    }
    snprintf(text, sizeof text, "weight '%s' is not the one", v->name);
    fails(assay_engine_refit_tensors(e, set.n, (const char* const*)set.names, set.tensors, &out),
          ASSAY_INVALID_ARGUMENT, text);
    assay_set_deinit(&set);
  }
  assay_model_release(m);
  assay_engine_release(built);
  assay_engine_release(e);
}

// Weights may come by name, all of those that are missing.
static void all_that_is_missing_is_needed(void** state) {
  (void)state;
  enum { N = 2 };
  float images[N * IMAGE], want[N * CLASSES], got[N * CLASSES];
  assay_set_t set = {0};
  assay_engine_options_t o = ASSAY_ENGINE_OPTIONS_INIT;
  write_changed(model_path("classifier"), at("new.onnx"), 7, &set);
  assay_engine_t *fresh = build(at("new.onnx"), &o), *e = NULL, *out = NULL;
  assay_engine_t* built = build_stripped(at("new.onnx"), o, false);
  ok(assay_engine_save(built, at("stripped.plan")));
  ok(assay_engine_load(at("stripped.plan"), &e));
  fails(assay_engine_refit_tensors(e, 1, (const char* const*)set.names, set.tensors, &out),
        ASSAY_INVALID_ARGUMENT, "is missing: the plan is stripped and needs all of its");
  ok(assay_engine_refit_tensors(e, set.n, (const char* const*)set.names, set.tensors, &out));
  fill(images, N * IMAGE, 3);
  for (int i = 0; i < 2; i++) {
    assay_context_t* c = open_context(i ? out : fresh, NULL);
    classify(c, images, N, i ? got : want);
    assay_context_destroy(c);
  }
  assert_memory_equal(got, want, sizeof want);
  assay_set_deinit(&set);
  assay_engine_release(fresh);
  assay_engine_release(built);
  assay_engine_release(e);
  assay_engine_release(out);
}

// Other weights that would compile to another graph.
static void another_graph_is_refused(void** state) {
  (void)state;
  assay_model_t* m = NULL;
  assay_engine_options_t o = ASSAY_ENGINE_OPTIONS_INIT;
  assay_engine_t* built = build_stripped(model_path("transformer"), o, true);
  assay_engine_t *e = NULL, *out = NULL;
  ok(assay_engine_save(built, at("stripped.plan")));
  ok(assay_engine_load(at("stripped.plan"), &e));
  ok(assay_onnx_read(model_path("transformer"), &m));
  size_t n = 0;
  for (size_t i = 0; i < m->graph->n_initializers; i++) {
    assay_value_t* v = m->graph->initializers[i];
    assay_tensor_t* wide = NULL;
    if (v->constant->type != ASSAY_TYPE_FLOAT || v->constant->size != 1) continue;
    ok(assay_tensor_widen(v->constant, &wide));
    if (assay_f64(wide)[0] == 0.5) {  // of the Gelu
      assay_tensor_t* t = NULL;
      ok(assay_tensor_create_zero(ASSAY_TYPE_FLOAT, wide->rank, wide->dims, &t));
      assay_f64(t)[0] = 0.75;
      ok(assay_model_take_tensor(m, t));
      v->constant = t;
      n++;
    }
    assay_tensor_release(wide);
  }
  assert_true(n > 0);
  ok(assay_onnx_write(m, at("new.onnx"), NULL));
  assay_model_release(m);
  m = load(at("new.onnx"));
  fails(assay_engine_refit(e, m, &out), ASSAY_INVALID_ARGUMENT,
        "with these weights the model compiles to another graph (there is one more ");
  assay_model_release(m);
  assay_engine_release(built);
  assay_engine_release(e);
}

// What runs of a plan give, as a hash.
static uint64_t run(assay_engine_t* engine, const float* x, size_t n_x) {
  const int64_t dims[] = {2, 12};
  uint64_t hash = 0;
  assay_context_t* c = open_context(engine, NULL);
  ok(assay_context_bind_input(c, 0, ASSAY_TYPE_FLOAT, 2, dims, x, n_x * sizeof *x));
  ok(assay_context_run(c));
  assay_tensor_t* t = assay_context_output(c, 0);
  float y[24];
  assert_int_equal(assay_tensor_dims(t)[1], 6);
  ok(assay_tensor_read(t, y, sizeof y));
  hash = assay_hash(y, sizeof y, 0);
  assay_tensor_release(t);
  assay_context_destroy(c);
  return hash;
}

// Sparse, within nodes and bodies, as lists; and floats that a shape is made of, which stay.
static void constants_may_be_anywhere(void** state) {
  (void)state;
  static const char path[] = "models/small/places.onnx";
  static const char* const gone[] = {"sparse", "listed", "named", "step"};
  float x[24];
  assay_model_t* m = load(path);
  assay_engine_options_t o = ASSAY_ENGINE_OPTIONS_INIT;
  assay_engine_t *whole = build(path, &o), *built = build_stripped(path, o, false);
  assay_engine_t *loaded = NULL, *fitted = NULL;
  size_t n;
  ok(assay_engine_save(built, at("stripped.plan")));
  ok(assay_engine_load(at("stripped.plan"), &loaded));
  assert_int_equal(assay_engine_missing_weights(loaded, NULL), 4);
  assert_int_equal(assay_io_dim(assay_engine_output(loaded, 0), 1), 6);
  ok(assay_engine_refit(loaded, m, &fitted));
  for (uint32_t seed = 0; seed < 6; seed++) {  // both branches
    fill(x, 24, seed);
    assert_true(run(fitted, x, 24) == run(whole, x, 24));
  }
  uint8_t* bytes = file_bytes(at("stripped.plan"), &n);
  for (size_t g = 0, found = 0; g < m->n_graphs; found = 0, g++)
    for (size_t i = 0; i < 4; i++) {
      const assay_value_t* v = assay_graph_find(m->graphs[g], gone[i]);
      assay_tensor_t* packed = NULL;
      if (!v || !v->constant || v->graph != m->graphs[g]) continue;
      ok(assay_tensor_pack(v->constant, &packed));
      found++;
      if (find_bytes(bytes, n, (const char*)packed->data + 16, 16))
        fail_msg("'%s' is in the file, number %zu", gone[i], found);
      assay_tensor_release(packed);
    }
  free(bytes);
  assay_model_release(m);
  assay_engine_release(whole);
  assay_engine_release(built);
  assay_engine_release(loaded);
  assay_engine_release(fitted);
}

// ---- damage -------------------------------------------------------------------------------------

static assay_code_t refused(const char* what, size_t at_byte) {
  assay_engine_t* e = NULL;
  assay_status_t st = assay_engine_load(at("stripped.plan"), &e);
  if (!st) fail_msg("%s at byte %zu was not noticed", what, at_byte);
  const assay_code_t code = assay_status_code(st);
  assay_status_free(st);
  return code;
}

static uint8_t* stripped_file(size_t* n) {
  assay_engine_options_t o = ASSAY_ENGINE_OPTIONS_INIT;
  assay_engine_t* built = build_stripped(model_path("quantized"), o, false);
  ok(assay_engine_save(built, at("stripped.plan")));
  assay_engine_release(built);
  return file_bytes(at("stripped.plan"), n);
}

static void damage_is_refused(void** state) {
  (void)state;
  enum { HEAD = 512 };
  size_t n;
  uint8_t* bytes = stripped_file(&n);
  for (size_t i = 0; i < n; i += i < HEAD ? 1 : 29) {
    bytes[i] ^= 0x5a;
    write_bytes(at("stripped.plan"), bytes, n);
    refused("a flipped byte", i);
    bytes[i] ^= 0x5a;
  }
  for (size_t i = 0; i < n; i += 97) {
    write_bytes(at("stripped.plan"), bytes, i);
    assert_int_equal(refused("a cut", i), ASSAY_CORRUPT);
  }
  free(bytes);
}

// Whole by its checksum, but with another text.
static void nonsense_is_refused(void** state) {
  (void)state;
  static const struct {
    const char *text, *other;
  } changes[] = {{"\"stripped\": {\"refittable\": false", "\"stripped\": [\"refittable\", false"},
                 {"\"form\": \"", "\"farm\": \""},
                 {"\"weights\": [[", "\"weights\": [7,["},
                 {"\"weights\"", "\"waiters\""},
                 {"\"data_bytes\": ", "\"data_bytes\":-"},
                 {"\"data_bytes\": ", "\"data_bites\": "},
                 {", \"w2\", ", ", 12345, "},
                 {"]]}}", "],{}}"}};
  size_t n;
  uint8_t* bytes = stripped_file(&n);
  for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
    char kept[64];
    uint64_t hash = 0;
    const size_t len = strlen(changes[i].other), end = n - sizeof hash;
    uint8_t* from =
        (uint8_t*)(uintptr_t)find_bytes(bytes, n, changes[i].text, strlen(changes[i].text));
    if (!from) fail_msg("there is no '%s'", changes[i].text);
    memcpy(kept, from, len);
    memcpy(from, changes[i].other, len);
    for (size_t k = 0; k < end; k += 1 << 20)
      hash = assay_hash(bytes + k, end - k < 1 << 20 ? end - k : 1 << 20, hash);
    memcpy(bytes + end, &hash, sizeof hash);
    write_bytes(at("stripped.plan"), bytes, n);
    assert_int_equal(refused(changes[i].other, (size_t)(from - bytes)), ASSAY_CORRUPT);
    memcpy(from, kept, len);
  }
  free(bytes);
}

// Every allocation of saving, loading and refitting made to fail: an error, and nothing leaks.
static void allocations_may_fail(void** state) {
  (void)state;
  enum { SAVE, LOAD, REFIT, STEPS };
  assay_engine_options_t o = ASSAY_ENGINE_OPTIONS_INIT;
  const char* path = "models/small/places.onnx";
  assay_engine_t *built = build_stripped(path, o, true), *e = NULL;
  assay_model_t* m = load(path);
  ok(assay_engine_save(built, at("stripped.plan")));
  ok(assay_engine_load(at("stripped.plan"), &e));
  for (int run = 0; run < 2 * STEPS; run++) {
    const int step = run / 2;
    bool reached = true;
    for (uint64_t n = 1; reached; n = fail_next(n, 64)) {
      assay_engine_t* out = NULL;
      const int64_t live = assay_alloc_live();
      assay_alloc_fail_after(n, run % 2);
      assay_status_t st = step == SAVE   ? assay_engine_save(built, at("saved.plan"))
                          : step == LOAD ? assay_engine_load(at("stripped.plan"), &out)
                                         : assay_engine_refit(e, m, &out);
      reached = assay_alloc_fail_after(0, false) >= n;
      if (!reached) ok(st), st = NULL;
      if (st && assay_status_code(st) != ASSAY_NO_MEMORY)
        fail_msg("step %d, allocation %d: %s", step, (int)n, assay_status_message(st));
      assay_status_free(st);
      assay_engine_release(out);
      // The engine keeps the text of its timings.
      assert_true(assay_alloc_live() <= live + (step == SAVE ? 1 : 0));
    }
  }
  assay_model_release(m);
  assay_engine_release(built);
  assay_engine_release(e);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(a_refit_makes_it_whole),
                                     cmocka_unit_test(other_weights_need_a_refittable_plan),
                                     cmocka_unit_test(the_first_other_weight_is_named),
                                     cmocka_unit_test(all_that_is_missing_is_needed),
                                     cmocka_unit_test(another_graph_is_refused),
                                     cmocka_unit_test(constants_may_be_anywhere),
                                     cmocka_unit_test(damage_is_refused),
                                     cmocka_unit_test(nonsense_is_refused),
                                     cmocka_unit_test(allocations_may_fail)};
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
