// Forecasts against what happens: each value of a network is changed a little, and the targets'
// change is held against what was forecast.
#include "diagnose/search_case.h"
#include "diagnose/search_predict.h"

static const graph_case_t network = {
    "network",
    17,
    {"x float[2,3,6,6]"},
    {"w1 float[4,3,3,3]", "b1 float[4]", "s float[4] positive", "o float[4]", "m float[4]",
     "v float[4] positive", "w2 float[4,4,1,1]", "shape int64[2] 2 -1", "w3 float[36,5]",
     "b3 float[5]", "half float[] 0.5"},
    {"Conv conv x w1 b1 -> c1 | pads=1,1,1,1", "BatchNormalization bn c1 s o m v -> n1",
     "Sigmoid gate n1 -> g1", "Mul swish n1 g1 -> m1",
     "MaxPool pool m1 -> p1 | kernel_shape=2,2 strides=2,2", "Conv proj p1 w2 -> q1",
     "Add join p1 q1 -> j1", "Reshape flat j1 shape -> f1", "MatMul fc f1 w3 -> h1",
     "Add bias h1 b3 -> k1", "Mul scale k1 half -> l1", "Softmax soft l1 -> y",
     "ReduceMean mean j1 -> z | axes=2,3"},
    "y z"};

// The targets, where a value is given another tensor.
static void run_with(const search_case_t* c, const assay_value_t* v, assay_tensor_t* now,
                     assay_tensor_t** out) {
  const assay_evaluator_config_t config = {.mode = ASSAY_MODE_TRUTH, .keep_all = true};
  const assay_graph_t* g = c->model->graph;
  assay_evaluator_t* m = NULL;
  op_case_ok(assay_evaluator_create(c->model, &config, &m));
  assay_evaluator_set_inputs(m, c->in);
  for (size_t i = 0; i < g->n_nodes; i++) {
    op_case_ok(assay_evaluator_step(m, g->nodes[i]));
    if (v->producer == g->nodes[i]) assay_evaluator_set(m, v, now);
  }
  for (size_t k = 0; k < g->n_outputs; k++)
    out[k] = assay_tensor_retain(assay_evaluator_get(m, g->outputs[k]));
  assay_evaluator_destroy(m);
}

// In units of golden, as the search scores: <r, change> / <r, r> and |r + change| / |r|.
typedef struct effect {
  double along, remains;
} effect_t;

static effect_t effect_of(const search_case_t* c, assay_tensor_t* const* got) {
  double rr = 0, rc = 0, left = 0;
  for (size_t k = 0; k < c->search.n_targets; k++) {
    const assay_search_target_t* t = &c->targets[k];
    const assay_difference_t size = assay_difference(t->golden, t->golden);
    const double w = 1 / (size.ref_rms * sqrt((double)t->golden->size + 1));
    for (int64_t i = 0; i < t->golden->size; i++) {
      const double r = w * (assay_f64(t->truth)[i] - assay_f64(t->golden)[i]);
      const double d = w * (assay_f64(got[k])[i] - assay_f64(t->truth)[i]);
      rr += r * r, rc += r * d, left += (r + d) * (r + d);
    }
  }
  return (effect_t){rc / rr, sqrt(left / rr)};
}

typedef struct seen {
  double log_ratio;  // of what is forecast to be added, over what is
  int n;
} seen_t;

// A random change of a value, of `size` times its own size.
static void check_value(const search_case_t* c, const assay_predict_t* p, const assay_value_t* v,
                        double size, seen_t* seen) {
  assay_tensor_t *now = NULL, *got[SEARCH_CASE_TARGETS] = {NULL};
  uint64_t state = (uint64_t)v->id + 3;
  assay_forecast_t f = {.known = true};
  assay_tensor_t* was = assay_evaluator_get(c->evaluator, v);
  op_case_ok(assay_tensor_copy(was, &now));
  for (int64_t i = 0; i < now->size; i++) assay_f64(now)[i] += size * graph_case_random(&state);
  assay_predict_add(p, v, now, was, &f);
  run_with(c, v, now, got);
  const effect_t e = effect_of(c, got);
  assert_true(f.known);
  if (fabs(f.along - e.along) > 1e-3 * (fabs(e.along) + size))
    fail_msg("'%s': along %g, forecast %g", v->name, e.along, f.along);
  const double across = sqrt(fmax(0, e.remains * e.remains - (1 + e.along) * (1 + e.along)));
  const double remains = assay_forecast_remains(&f);
  const double guess = sqrt(fmax(0, remains * remains - (1 + f.along) * (1 + f.along)));
  if (guess > 4 * across || across > 4 * guess)
    fail_msg("'%s': across %g, forecast %g", v->name, across, guess);
  seen->log_ratio += log(guess / across);
  seen->n++;
  for (int k = 0; k < SEARCH_CASE_TARGETS; k++) assay_tensor_release(got[k]);
  assay_tensor_release(now);
}

static void forecasts_are_what_happens(void** state) {
  (void)state;
  graph_case_t wrong = network;
  search_case_t c;
  assay_predict_t* p = NULL;
  seen_t seen = {0};
  wrong.constants[10] = "half float[] 0.6";
  wrong.constants[6] = "w2 float[4,4,1,1] positive";
  search_case_init(&wrong, &network, &c);
  op_case_ok(assay_predict_create(&c.search, &p));
  assert_non_null(p);
  for (size_t i = c.search.n_nodes; i-- > 0;) {
    check_value(&c, p, c.search.nodes[i]->outputs[0], 1e-5, &seen);
    op_case_ok(assay_predict_pass(p, i));
  }
  // Little bias over all of them, though they share the probes.
  if (fabs(seen.log_ratio / seen.n) > log(2))
    fail_msg("forecasts are %g times what happens", exp(seen.log_ratio / seen.n));
  assay_predict_destroy(p);
  search_case_deinit(&c);
}

static const assay_node_t* node_of(const search_case_t* c, size_t i) { return c->search.nodes[i]; }

// The right repair of a linear network leaves nothing, whatever its size; a part of it leaves the
// rest, and points the right way.
static void right_repair_leaves_nothing(void** state) {
  (void)state;
  const graph_case_t right = {
      "linear",
      17,
      {"x float[2,3,5]"},
      {"w float[4,3,3]", "k float[] 2", "u float[12,3]", "s int64[2] 2 12"},
      {"Conv conv x w -> a", "Mul mul a k -> b", "Reshape flat b s -> c", "MatMul fc c u -> y"},
      "y"};
  graph_case_t wrong = right;
  search_case_t c;
  assay_predict_t* p = NULL;
  wrong.constants[1] = "k float[] -7";
  search_case_init(&wrong, &right, &c);
  op_case_ok(assay_predict_create(&c.search, &p));
  for (size_t i = c.search.n_nodes; i-- > 2;) op_case_ok(assay_predict_pass(p, i));
  const assay_value_t* b = node_of(&c, 1)->outputs[0];
  assay_tensor_t *now = NULL, *was = assay_evaluator_get(c.evaluator, b);
  op_case_ok(assay_tensor_copy(was, &now));
  for (int64_t i = 0; i < now->size; i++) assay_f64(now)[i] *= -2. / 7;
  assay_forecast_t f = {.known = true};
  assay_predict_add(p, b, now, was, &f);
  assert_true(assay_forecast_remains(&f) < 1e-9);
  for (int64_t i = 0; i < now->size; i++)
    assay_f64(now)[i] = assay_f64(was)[i] + 0.25 * (assay_f64(now)[i] - assay_f64(was)[i]);
  f = (assay_forecast_t){.known = true};
  assay_predict_add(p, b, now, was, &f);
  assert_true(fabs(assay_forecast_remains(&f) - 0.75) < 1e-9);
  assert_true(assay_forecast_best(&f) < 1e-9);
  assay_tensor_release(now);
  assay_predict_destroy(p);
  search_case_deinit(&c);
}

// A reduction over the wrong axis, which has another shape: what is right is broadcast.
static void broadcast_repair(void** state) {
  (void)state;
  const graph_case_t right = {
      "reduction",
      17,
      {"x float[1,4,3,3]"},
      {"k float[] 2"},
      {"ReduceMean mean x -> a | axes=1", "Sub sub x a -> b", "Mul mul b k -> y"},
      "y"};
  graph_case_t wrong = right;
  search_case_t c;
  assay_predict_t* p = NULL;
  assay_tensor_t* now = NULL;
  wrong.nodes[0] = "ReduceMean mean x -> a | axes=0";
  search_case_init(&wrong, &right, &c);
  op_case_ok(assay_predict_create(&c.search, &p));
  for (size_t i = c.search.n_nodes; i-- > 1;) op_case_ok(assay_predict_pass(p, i));
  const assay_node_t* n = node_of(&c, 0);
  const int64_t dims[] = {1, 1, 3, 3};
  op_case_ok(assay_tensor_create_zero(ASSAY_TYPE_FLOAT, 4, dims, &now));
  for (int i = 0; i < 36; i++) assay_f64(now)[i % 9] += assay_f64(c.in[0])[i] / 4;
  assay_forecast_t f = {.known = true};
  assay_predict_add(p, n->outputs[0], now, assay_evaluator_get(c.evaluator, n->outputs[0]), &f);
  assert_true(f.known && assay_forecast_remains(&f) < 1e-6);
  assay_tensor_release(now);
  assay_predict_destroy(p);
  search_case_deinit(&c);
}

// Behind an operator without a rule nothing is known; what nobody reads changes nothing; other
// shapes are not compared.
static void what_is_not_known(void** state) {
  (void)state;
  const graph_case_t right = {
      "unknown",
      17,
      {"x float[6] 1 2 2 3 3 3"},
      {"two float[] 2"},
      {"Mul first x two -> a", "Unique top a -> t", "Exp dead a -> d", "Neg last t -> y"},
      "y"};
  graph_case_t wrong = right;
  search_case_t c;
  assay_predict_t* p = NULL;
  wrong.constants[0] = "two float[] 3";
  search_case_init(&wrong, &right, &c);
  op_case_ok(assay_predict_create(&c.search, &p));
  for (size_t i = c.search.n_nodes; i-- > 0;) {
    const assay_value_t* v = node_of(&c, i)->outputs[0];
    assay_tensor_t* t = assay_evaluator_get(c.evaluator, v);
    assay_forecast_t f = {.known = true};
    assay_predict_add(p, v, t, t, &f);
    assert_int_equal(f.known, strcmp(v->name, "a") != 0);
    if (!strcmp(v->name, "a")) assert_true(isnan(assay_forecast_remains(&f)));
    if (!strcmp(v->name, "d")) assert_true(assay_forecast_remains(&f) == 1);
    assay_forecast_t other = {.known = true};
    if (!strcmp(v->name, "t")) {
      assay_predict_add(p, v, c.in[0], t, &other);
      assert_false(other.known);
    }
    op_case_ok(assay_predict_pass(p, i));
  }
  assay_predict_destroy(p);
  search_case_deinit(&c);
}

// Targets of other shapes than golden's, or of integers alone, have no forecasts.
static void what_cannot_be_compared(void** state) {
  (void)state;
  const graph_case_t right = {"a", 17, {"x float[2,3]"}, {NULL}, {"Transpose t x -> y"}, "y"};
  const graph_case_t wrong = {"b", 17, {"x float[2,3]"}, {NULL}, {"Relu t x -> y"}, "y"};
  const graph_case_t whole = {"c", 17, {"x float[2,3]"}, {NULL}, {"Cast t x -> y | to=7"}, "y"};
  const graph_case_t* const pairs[][2] = {{&wrong, &right}, {&whole, &whole}, {&wrong, &wrong}};
  for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
    search_case_t c;
    assay_predict_t* p = NULL;
    search_case_init(pairs[i][0], pairs[i][1], &c);
    op_case_ok(assay_predict_create(&c.search, &p));
    assert_null(p);
    search_case_deinit(&c);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(forecasts_are_what_happens), cmocka_unit_test(right_repair_leaves_nothing),
      cmocka_unit_test(broadcast_repair),           cmocka_unit_test(what_is_not_known),
      cmocka_unit_test(what_cannot_be_compared),
  };
  return cmocka_run_group_tests_name("search_predict", tests, NULL, NULL);
}
