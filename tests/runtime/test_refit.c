// Refit: what comes out is what a build of the new model from the same times would give; what is
// not the same model is refused by name.
#include "fail_case.h"
#include "refit_case.h"

// From an engine that was built and from its file, by a model: each time the plan of a new build,
// byte by byte; and back again.
static void a_refit_is_a_build(void** state) {
  (void)state;
  for (size_t i = 0; i < N_ROWS; i++) {
    assay_engine_shape_t shape;
    const assay_engine_options_t o = options_of(&rows[i], &shape);
    write_changed(model_path(rows[i].model), at("new.onnx"), (uint32_t)i, NULL);
    assay_engine_t *old = build(model_path(rows[i].model), &o), *loaded = NULL;
    assay_engine_t *fresh = build(at("new.onnx"), &o), *fitted = NULL, *back = NULL;
    assay_model_t *new_model = load(at("new.onnx")), *old_model = load(model_path(rows[i].model));
    ok(assay_engine_save(old, at("old.plan")));
    ok(assay_engine_load(at("old.plan"), &loaded));
    for (int file = 0; file < 2; file++) {
      ok(assay_engine_refit(file ? loaded : old, new_model, &fitted));
      assert_same_plan(fitted, fresh, rows[i].model);
      ok(assay_engine_refit(fitted, old_model, &back));
      assert_same_plan(back, old, "back again");
      assay_engine_release(back);
      assay_engine_release(fitted);
    }
    assay_model_release(new_model);
    assay_model_release(old_model);
    assay_engine_release(loaded);
    assay_engine_release(old);
    assay_engine_release(fresh);
  }
}

// A plan whose file has weights in 16 bits takes float32 weights that round to them for the same.
static void rounded_weights_are_the_same(void** state) {
  (void)state;
  assay_engine_options_t o = ASSAY_ENGINE_OPTIONS_INIT;
  assay_engine_t *built = NULL, *loaded = NULL, *fitted = NULL;
  assay_model_t *same = load(model_path("transformer")), *other = NULL;
  assay_refit_t counts;
  o.precision = ASSAY_FORMAT_FP16;
  built = build(model_path("transformer"), &o);
  ok(assay_engine_save(built, at("old.plan")));
  ok(assay_engine_load(at("old.plan"), &loaded));
  ok(assay_engine_refit_with(loaded, same, 0, NULL, NULL, &counts, &fitted));
  assert_int_equal(counts.n_changed, 0);
  assay_engine_release(fitted);
  write_changed(model_path("transformer"), at("new.onnx"), 3, NULL);
  other = load(at("new.onnx"));
  ok(assay_engine_refit_with(loaded, other, 0, NULL, NULL, &counts, &fitted));
  assert_true(counts.n_changed > 3);
  assay_engine_release(fitted);
  assay_model_release(same);
  assay_model_release(other);
  assay_engine_release(loaded);
  assay_engine_release(built);
}

static void weights_come_by_name(void** state) {
  (void)state;
  enum { N = 2 };
  float images[N * IMAGE], want[N * CLASSES], got[N * CLASSES], before[N * CLASSES];
  assay_set_t set = {0};
  assay_engine_options_t o = ASSAY_ENGINE_OPTIONS_INIT;
  const int64_t dims[] = {2, 3, 16, 16};
  const assay_engine_shape_t shape = {.input = "image", .rank = 4, .dims = dims};
  o.shapes = &shape;
  o.n_shapes = 1;
  write_changed(model_path("classifier"), at("new.onnx"), 7, &set);
  assay_engine_t *old = build(model_path("classifier"), &o), *fresh = build(at("new.onnx"), &o);
  assay_engine_t *first = NULL, *both = NULL, *loaded = NULL;
  const size_t half = set.n / 2;
  // One half, and then the other from the plan's file.
  ok(assay_engine_refit_tensors(old, half, (const char* const*)set.names, set.tensors, &first));
  ok(assay_engine_save(first, at("first.plan")));
  ok(assay_engine_load(at("first.plan"), &loaded));
  ok(assay_engine_refit_tensors(loaded, set.n - half, (const char* const*)set.names + half,
                                set.tensors + half, &both));
  assay_engine_t* engines[] = {old, fresh, both};
  float* results[] = {before, want, got};
  fill(images, N * IMAGE, 3);
  for (int i = 0; i < 3; i++) {
    assay_context_t* c = open_context(engines[i], NULL);
    classify(c, images, N, results[i]);
    assay_context_destroy(c);
  }
  assert_memory_equal(got, want, sizeof want);
  assert_memory_not_equal(got, before, sizeof want);
  assay_set_deinit(&set);
  assay_engine_release(old);
  assay_engine_release(fresh);
  assay_engine_release(first);
  assay_engine_release(both);
  assay_engine_release(loaded);
}

static assay_tensor_t* floats(int rank, const int64_t* dims) {
  assay_tensor_t* t = NULL;
  ok(assay_tensor_create_zero(ASSAY_TYPE_FLOAT, rank, dims, &t));
  return t;
}

static void refuse(const assay_engine_t* e, const char* name, assay_tensor_t* take_tensor,
                   assay_code_t code, const char* text) {
  assay_engine_t* out = NULL;
  fails(assay_engine_refit_tensors(e, 1, &name, &take_tensor, &out), code, text);
  assert_null(out);
  assay_tensor_release(take_tensor);
}

static void what_does_not_fit_is_refused(void** state) {
  (void)state;
  const int64_t dims[] = {3};
  assay_tensor_t* t = NULL;
  assay_engine_t *e = build(model_path("detector"), NULL), *out = NULL;
  refuse(e, "nothing", floats(1, dims), ASSAY_NOT_FOUND, "has no weight 'nothing'");
  refuse(e, "resize0", floats(1, dims), ASSAY_NOT_FOUND, "a run computes the value");
  refuse(e, "w0", floats(1, dims), ASSAY_INVALID_ARGUMENT,
         "weight 'w0' is float[4] in the plan, and");
  ok(assay_tensor_create_zero(ASSAY_TYPE_DOUBLE, 1, (int64_t[]){4}, &t));
  refuse(e, "w0", t, ASSAY_INVALID_ARGUMENT, "the new one is double[4]");
  // The factors of a Resize are part of the shapes behind it.
  t = floats(1, (int64_t[]){4});
  for (int i = 0; i < 4; i++) assay_f64(t)[i] = i < 2 ? 1 : 3;
  refuse(e, "w0", t, ASSAY_INVALID_ARGUMENT, "weight 'w0' is part of how the model was compiled");
  refuse(e, "w0", floats(1, (int64_t[]){4}), ASSAY_INVALID_ARGUMENT, "weight 'w0' is part of how");
  const char* twice[] = {"w0", "w0"};
  assay_tensor_t* both[] = {floats(1, (int64_t[]){4}), floats(1, (int64_t[]){4})};
  fails(assay_engine_refit_tensors(e, 2, twice, both, &out), ASSAY_INVALID_ARGUMENT, "given twice");
  assay_tensor_release(both[0]);
  assay_tensor_release(both[1]);
  assay_model_t* other = load(model_path("classifier"));
  fails(assay_engine_refit(e, other, &out), ASSAY_INVALID_ARGUMENT,
        "the model is not the plan's with other weights");
  fails(assay_engine_refit(e, NULL, &out), ASSAY_INVALID_ARGUMENT, "no model");
  assay_model_release(other);
  assay_engine_release(e);
}

// Of the constants that make a Gelu one is no longer what it has to be: it is named, among many
// that change.
static void constants_of_patterns_are_named(void** state) {
  (void)state;
  assay_model_t* m = NULL;
  assay_engine_t *e = build(model_path("transformer"), NULL), *out = NULL;
  ok(assay_onnx_read(model_path("transformer"), &m));
  const assay_value_t* half = NULL;
  const assay_graph_t* g = m->graph;
  for (size_t i = 0; i < g->n_initializers; i++) {
    assay_tensor_t* wide = NULL;
    const assay_tensor_t* c = g->initializers[i]->constant;
    if (c->type != ASSAY_TYPE_FLOAT || c->size != 1) continue;
    ok(assay_tensor_widen(g->initializers[i]->constant, &wide));
    if (assay_f64(wide)[0] == 0.5) half = g->initializers[i];
    assay_tensor_release(wide);
  }
  assert_non_null(half);
  assay_set_t set = {0};
  for (size_t i = 0; i < g->n_initializers; i++) {
    assay_value_t* v = g->initializers[i];
    assay_tensor_t* t = NULL;
    if (v == half) {
      t = floats(half->constant->rank, half->constant->dims);
      assay_f64(t)[0] = 0.75;
    } else if (is_trained(v)) {
      t = changed(v->constant, (uint32_t)i);
    }
    if (t) ok(assay_set_add(&set, v->name, t));
  }
  char text[128];
  snprintf(text, sizeof text, "weight '%s' is part of how the model was compiled", half->name);
  fails(assay_engine_refit_tensors(e, set.n, (const char* const*)set.names, set.tensors, &out),
        ASSAY_INVALID_ARGUMENT, text);
  assay_set_deinit(&set);
  assay_model_release(m);
  assay_engine_release(e);
}

static void allocations_may_fail(void** state) {
  (void)state;
  write_changed(model_path("quantized"), at("new.onnx"), 3, NULL);
  assay_engine_t *built = build(model_path("quantized"), NULL), *e = NULL;
  assay_model_t* m = load(at("new.onnx"));
  ok(assay_engine_save(built, at("old.plan")));
  assay_engine_release(built);
  ok(assay_engine_load(at("old.plan"), &e));
  for (int sticky = 0; sticky < 2; sticky++) {
    bool reached = true;
    for (uint64_t n = 1; reached; n = fail_next(n, 64)) {
      assay_engine_t* out = NULL;
      const int64_t live = assay_alloc_live();
      assay_alloc_fail_after(n, sticky);
      assay_status_t st = assay_engine_refit(e, m, &out);
      reached = assay_alloc_fail_after(0, false) >= n;
      if (!reached) ok(st), st = NULL;
      if (st) assert_int_equal(assay_status_code(st), ASSAY_NO_MEMORY);
      assay_status_free(st);
      assay_engine_release(out);
      assert_int_equal(assay_alloc_live(), live);
    }
  }
  assay_model_release(m);
  assay_engine_release(e);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(a_refit_is_a_build),
                                     cmocka_unit_test(rounded_weights_are_the_same),
                                     cmocka_unit_test(weights_come_by_name),
                                     cmocka_unit_test(what_does_not_fit_is_refused),
                                     cmocka_unit_test(constants_of_patterns_are_named),
                                     cmocka_unit_test(allocations_may_fail)};
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
