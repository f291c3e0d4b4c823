// States of contexts and sizes that grow: what a run makes is what the next one reads, with the
// bits of runs that were prepared for these sizes alone, and without preparing anything.

#include "base/alloc.h"
#include "engine_case.h"
#include "fail_case.h"
#include "runtime/context_internal.h"

enum { STEPS = 40, MAX_OUTPUTS = 8, LAYERS = 7, HEADS = 3, WIDTH = 16, WORDS = 50 };

static assay_engine_t* build(const char* name, const assay_engine_options_t* options) {
  char path[512];
  assay_model_t* m = NULL;
  assay_engine_t* e = NULL;
  snprintf(path, sizeof path, "%s/states/%s.onnx", getenv("ASSAY_TEST_MODELS"), name);
  ok(assay_model_load(path, &m));
  ok(assay_engine_build(m, options, &e));
  assay_model_release(m);
  return e;
}

static size_t input(const assay_engine_t* e, const char* name) {
  size_t i = 0;
  ok(assay_engine_find_input(e, name, &i));
  return i;
}

static assay_tensor_t* output(assay_context_t* c, const assay_engine_t* e, const char* name) {
  size_t i = 0;
  ok(assay_engine_find_output(e, name, &i));
  assay_tensor_t* t = assay_context_output(c, i);
  assert_non_null(t);
  return t;
}

static void expect_same(const assay_engine_t* e, assay_context_t* a, assay_context_t* b,
                        const char* what, int step) {
  for (size_t i = 0; i < assay_engine_output_count(e); i++) {
    assay_tensor_t *x = assay_context_output(a, i), *y = assay_context_output(b, i);
    const size_t bytes = assay_tensor_bytes(x);
    char *p = malloc(bytes + 1), *q = malloc(bytes + 1);
    assert_int_equal(bytes, assay_tensor_bytes(y));
    ok(assay_tensor_read(x, p, bytes));
    ok(assay_tensor_read(y, q, bytes));
    if (memcmp(p, q, bytes) != 0)
      fail_msg("%s, step %d: output '%s' has other bits", what, step,
               assay_io_name(assay_engine_output(e, i)));
    free(p);
    free(q);
    assay_tensor_release(x);
    assay_tensor_release(y);
  }
}

// ---- a decoder ----------------------------------------------------------------------------------

typedef struct decoder {
  assay_context_t* context;
  int64_t ids[STEPS], positions[STEPS], ones[STEPS], at;
} decoder_t;

static void cache_names(int i, char* past, char* present) {
  snprintf(past, 64, "past_key_values.%d.%s", i / 2, i % 2 ? "value" : "key");
  snprintf(present, 64, "present.%d.%s", i / 2, i % 2 ? "value" : "key");
}

static const char mask_length[] = "past_sequence_length + sequence_length";

static void open_decoder(assay_engine_t* e, int threads, int64_t capacity, decoder_t* d) {
  char past[64], present[64];
  assay_context_options_t options = ASSAY_CONTEXT_OPTIONS_INIT;
  options.threads = threads;
  memset(d, 0, sizeof *d);
  d->context = open_context(e, &options);
  for (int i = 0; i < STEPS; i++) d->ones[i] = 1;
  for (int i = 0; i < 2 * LAYERS; i++) {
    cache_names(i, past, present);
    ok(assay_context_bind_state(d->context, past, present, capacity));
  }
  ok(assay_context_grow(d->context, mask_length, capacity));
}

static int64_t word(int seed, int64_t i) { return (i * i * 7 + i * 3 + seed * 11) % WORDS; }

static void bind_words(const assay_engine_t* e, decoder_t* d, int seed, int64_t n) {
  const int64_t dims[] = {1, n}, all[] = {1, d->at + n};
  for (int64_t i = 0; i < n; i++) {
    d->ids[i] = word(seed, d->at + i);
    d->positions[i] = d->at + i;
  }
  ok(assay_context_bind_input(d->context, input(e, "input_ids"), ASSAY_TYPE_INT64, 2, dims, d->ids,
                              (size_t)n * 8));
  ok(assay_context_bind_input(d->context, input(e, "position_ids"), ASSAY_TYPE_INT64, 2, dims,
                              d->positions, (size_t)n * 8));
  ok(assay_context_bind_input(d->context, input(e, "attention_mask"), ASSAY_TYPE_INT64, 2, all,
                              d->ones, (size_t)all[1] * 8));
}

static void step(const assay_engine_t* e, decoder_t* d, int seed, int64_t n) {
  bind_words(e, d, seed, n);
  ok(assay_context_run(d->context));
  d->at += n;
}

// The logits of the last word of a run.
static void last_logits(const assay_engine_t* e, assay_context_t* c, int64_t n, float* out) {
  assay_tensor_t* t = output(c, e, "logits");
  float* x = malloc((size_t)n * WORDS * sizeof *x);
  assert_int_equal(assay_tensor_size(t), n * WORDS);
  ok(assay_tensor_read(t, x, (size_t)n * WORDS * sizeof *x));
  memcpy(out, x + (n - 1) * WORDS, WORDS * sizeof *x);
  free(x);
  assay_tensor_release(t);
}

// A context with what another one has in its caches, which has run for no size before.
static void open_copy(assay_engine_t* e, const decoder_t* from, bool states, decoder_t* d) {
  char past[64], present[64];
  if (states) {
    open_decoder(e, 0, STEPS, d);
  } else {
    memset(d, 0, sizeof *d);
    d->context = open_context(e, NULL);
    memcpy(d->ones, from->ones, sizeof d->ones);
  }
  d->at = from->at;
  for (int i = 0; i < 2 * LAYERS; i++) {
    assay_tensor_t* t = NULL;
    cache_names(i, past, present);
    if (from->at) {
      ok(assay_context_state(from->context, past, &t));
    } else {
      const int64_t dims[] = {1, HEADS, 0, WIDTH};
      ok(assay_tensor_make(ASSAY_TYPE_FLOAT, 4, dims, NULL, 0, &t));
    }
    ok(states ? assay_context_set_state(d->context, past, t)
              : assay_context_set_input(d->context, input(e, past), t));
    assay_tensor_release(t);
  }
}

static const char* const sources[] = {NULL, "assay"};

// Every extent: the same bits as in a context that is prepared for it alone; with our own kernels,
// also in one in which nothing grows.
static void decoding_has_the_bits_of_exact_sizes(void** state) {
  (void)state;
  static const struct {
    const char *name, *model, *target, *sources;
    assay_format_t precision;
    bool exact;
    int steps;
  } rows[] = {
      {"all kernels", "gpt2", "cpu", NULL, ASSAY_FORMAT_FP32, false, STEPS},
      {"our own", "gpt2", "cpu", "assay", ASSAY_FORMAT_FP32, true, STEPS},
      {"our own, bf16", "gpt2", "cpu", "assay", ASSAY_FORMAT_BF16, true, 16},
      {"our own, fp16", "gpt2", "cpu", "assay", ASSAY_FORMAT_FP16, true, 16},
      {"emulated", "gpt2", "emu", NULL, ASSAY_FORMAT_BF16, true, 8},
      {"the operator", "gpt2_operator", "cpu", "assay", ASSAY_FORMAT_FP32, true, STEPS},
      {"the operator, bf16", "gpt2_operator", "cpu", "assay", ASSAY_FORMAT_BF16, true, 16},
  };
  for (size_t s = 0; s < sizeof rows / sizeof *rows; s++) {
    assay_engine_options_t options = ASSAY_ENGINE_OPTIONS_INIT;
    options.target = rows[s].target;
    options.tactic_sources = rows[s].sources;
    options.precision = rows[s].precision;
    assay_engine_t* e = build(rows[s].model, &options);
    decoder_t d;
    open_decoder(e, 0, STEPS, &d);
    while (d.at < rows[s].steps) {
      const int64_t n = d.at % 7 == 3 && d.at + 3 <= STEPS ? 3 : 1;
      decoder_t fresh, exact;
      open_copy(e, &d, true, &fresh);
      open_copy(e, &d, false, &exact);
      step(e, &fresh, 1, n);
      step(e, &exact, 1, n);
      step(e, &d, 1, n);
      expect_same(e, d.context, fresh.context, rows[s].name, (int)d.at);
      if (rows[s].exact) expect_same(e, d.context, exact.context, rows[s].name, (int)d.at);
      assay_context_destroy(fresh.context);
      assay_context_destroy(exact.context);
    }
    assay_context_destroy(d.context);
    assay_engine_release(e);
  }
}

// Another order of sums, that of a matrix of scores, is all that a whole sequence may differ by.
static void gives_what_the_whole_sequence_gives(const char* model) {
  assay_engine_t *e = build(model, NULL), *whole = build("gpt2_whole", NULL);
  assay_context_t* c = open_context(whole, NULL);
  decoder_t d;
  open_decoder(e, 0, STEPS, &d);
  int64_t ids[STEPS], positions[STEPS];
  const size_t names[] = {input(whole, "input_ids"), input(whole, "position_ids"),
                          input(whole, "attention_mask")};
  for (int64_t t = 0; t < STEPS; t++) {
    float have[WORDS], want_last[WORDS], max = 0;
    const int64_t dims[] = {1, t + 1};
    const int64_t* const data[] = {ids, positions, d.ones};
    ids[t] = word(2, t);
    positions[t] = t;
    for (int i = 0; i < 3; i++)
      ok(assay_context_bind_input(c, names[i], ASSAY_TYPE_INT64, 2, dims, data[i],
                                  (size_t)(t + 1) * 8));
    ok(assay_context_run(c));
    last_logits(whole, c, t + 1, want_last);
    step(e, &d, 2, 1);
    last_logits(e, d.context, 1, have);
    for (int i = 0; i < WORDS; i++) max = fmaxf(max, fabsf(want_last[i]));
    for (int i = 0; i < WORDS; i++)
      if (!(fabsf(have[i] - want_last[i]) <= 1e-5f * max))
        fail_msg("step %lld, word %d: %g, and %g of the whole", (long long)t, i, (double)have[i],
                 (double)want_last[i]);
  }
  assay_context_destroy(d.context);
  assay_context_destroy(c);
  assay_engine_release(e);
  assay_engine_release(whole);
}

static void decoding_gives_what_the_whole_sequence_gives(void** state) {
  (void)state;
  gives_what_the_whole_sequence_gives("gpt2");
  gives_what_the_whole_sequence_gives("gpt2_operator");
}

static void prepares_nothing(const char* model) {
  assay_engine_t* e = build(model, NULL);
  decoder_t d;
  open_decoder(e, 0, STEPS, &d);
  step(e, &d, 3, 1);
  const size_t first = assay_context_kernels_made(d.context);
  assert_true(first > 20);
  step(e, &d, 3, 1);
  const size_t made = assay_context_kernels_made(d.context);
  const size_t bytes = assay_context_memory(d.context);
  uint64_t tensors = 0;
  for (int round = 0; round < 3; round++) {
    while (d.at < STEPS) {
      assay_alloc_fail_after(0, false);
      step(e, &d, 3, 1);
      const uint64_t allocations = assay_alloc_fail_after(0, false);
      // The number of allocations of a step does not grow, either.
      if (d.at == 8) tensors = allocations;
      if (d.at > 8 && allocations > tensors)
        fail_msg("step %lld: %llu allocations, after %llu", (long long)d.at,
                 (unsigned long long)allocations, (unsigned long long)tensors);
      assert_int_equal(assay_context_kernels_made(d.context), made);
      assert_int_equal(assay_context_memory(d.context), bytes);
    }
    ok(assay_context_reset_states(d.context));
    d.at = 0;
    tensors = UINT64_MAX;
  }
  assay_context_destroy(d.context);
  // Without growth each step makes all kernels.
  decoder_t exact, from = {.at = 0};
  memcpy(from.ones, d.ones, sizeof from.ones);
  open_copy(e, &from, false, &exact);
  step(e, &exact, 3, 1);
  const size_t once = assay_context_kernels_made(exact.context);
  assay_context_destroy(exact.context);
  open_decoder(e, 0, STEPS, &d);
  step(e, &d, 3, 1);
  open_copy(e, &d, false, &exact);
  step(e, &exact, 3, 1);
  assert_true(once > 20 && assay_context_kernels_made(exact.context) > 20);
  assay_context_destroy(d.context);
  assay_context_destroy(exact.context);
  assay_engine_release(e);
}

static void no_step_prepares_anything(void** state) {
  (void)state;
  prepares_nothing("gpt2");
  prepares_nothing("gpt2_operator");
}

static assay_status_t see(void* user, const assay_layer_values_t* values) {
  (void)values;
  ++*(int*)user;
  return NULL;
}

static void expect_appended(const decoder_t* d, bool appended) {
  for (int i = 0; i < 2 * LAYERS; i++) {
    const context_state_t* s = &d->context->states[i];
    assert_non_null(s->append);
    assert_int_equal(s->append->appended, appended);
    assert_int_equal(s->append->with_capacity, appended);
    // Memory for a second copy comes with the need for it.
    if (appended) assert_null(s->memory[!s->now]);
  }
}

// Where all layers can, the cache is written behind what is there; where something looks at every
// layer, it is made elsewhere. The bits are the same, whichever way the first steps went.
static void caches_grow_in_place(void** state) {
  (void)state;
  assay_engine_t* e = build("gpt2", NULL);
  decoder_t a, b;
  open_decoder(e, 0, STEPS, &a);
  open_decoder(e, 0, STEPS, &b);
  int seen = 0;
  assay_context_options_t options = ASSAY_CONTEXT_OPTIONS_INIT;
  options.tap = see;
  options.tap_user = &seen;
  assay_context_destroy(b.context);
  b.context = open_context(e, &options);
  char past[64], present[64];
  for (int i = 0; i < 2 * LAYERS; i++) {
    cache_names(i, past, present);
    ok(assay_context_bind_state(b.context, past, present, STEPS));
  }
  for (int i = 0; i < 12; i++) {
    step(e, &a, 11, 1);
    step(e, &b, 11, 1);
    expect_appended(&a, true);
    expect_appended(&b, false);
    expect_same(e, a.context, b.context, "in place", i);
    // What one has goes to the other, from one form into the other.
    for (int k = 0; i % 4 == 3 && k < 2 * LAYERS; k++) {
      assay_tensor_t *x = NULL, *y = NULL;
      cache_names(k, past, present);
      ok(assay_context_state(a.context, past, &x));
      ok(assay_context_state(b.context, past, &y));
      ok(assay_context_set_state(b.context, past, x));
      ok(assay_context_set_state(a.context, past, y));
      assay_tensor_release(x);
      assay_tensor_release(y);
    }
  }
  assert_true(seen > 0);
  assay_context_destroy(a.context);
  assay_context_destroy(b.context);
  assay_engine_release(e);
}

static void states_begin_anew_after_a_reset(void** state) {
  (void)state;
  assay_engine_t* e = build("gpt2", NULL);
  decoder_t a, b;
  open_decoder(e, 0, STEPS, &a);
  open_decoder(e, 0, STEPS, &b);
  for (int i = 0; i < 9; i++) step(e, &a, 4, 1);
  ok(assay_context_reset_states(a.context));
  a.at = 0;
  assay_tensor_t* t = NULL;
  fails(assay_context_state(a.context, "past_key_values.0.key", &t), ASSAY_NOT_FOUND,
        "before the first run");
  for (int i = 0; i < 5; i++) {
    step(e, &a, 5, 1);
    step(e, &b, 5, 1);
    expect_same(e, a.context, b.context, "after a reset", i);
  }
  ok(assay_context_state(a.context, "past_key_values.1.value", &t));
  assert_int_equal(assay_tensor_dims(t)[2], 5);
  assay_tensor_release(t);
  assay_context_destroy(a.context);
  assay_context_destroy(b.context);
  assay_engine_release(e);
}

static void no_more_than_the_capacity(void** state) {
  (void)state;
  enum { CAPACITY = 6 };
  assay_engine_t* e = build("gpt2", NULL);
  decoder_t a, b;
  open_decoder(e, 0, CAPACITY, &a);
  open_decoder(e, 0, STEPS, &b);
  for (int i = 0; i < CAPACITY; i++) {
    step(e, &a, 6, 1);
    step(e, &b, 6, 1);
  }
  for (int i = 0; i < 2; i++) {
    bind_words(e, &a, 6, 1);
    fails(assay_context_run(a.context), ASSAY_INVALID_ARGUMENT, "room for 6 in dimension 2");
  }
  assay_tensor_t *x = NULL, *y = NULL;
  ok(assay_context_state(a.context, "past_key_values.1.key", &x));
  ok(assay_context_state(b.context, "past_key_values.1.key", &y));
  assert_int_equal(assay_tensor_dims(x)[2], CAPACITY);
  float p[HEADS * CAPACITY * WIDTH], q[HEADS * CAPACITY * WIDTH];
  ok(assay_tensor_read(x, p, sizeof p));
  ok(assay_tensor_read(y, q, sizeof q));
  assert_memory_equal(p, q, sizeof p);
  fails(assay_context_set_state(a.context, "past_key_values.0.key", NULL), ASSAY_INVALID_ARGUMENT,
        "not a tensor");
  assay_tensor_release(x);
  assay_tensor_release(y);
  ok(assay_context_reset_states(a.context));
  ok(assay_context_reset_states(b.context));
  a.at = b.at = 0;
  step(e, &a, 6, 1);
  step(e, &b, 6, 1);
  expect_same(e, a.context, b.context, "after the capacity", 0);
  assay_context_destroy(a.context);
  assay_context_destroy(b.context);
  assay_engine_release(e);
}

// Two at a time, in threads of their own, and with any number of threads: each as if alone.
static void contexts_do_not_disturb_each_other(void** state) {
  (void)state;
  assay_engine_t* e = build("gpt2", NULL);
  decoder_t a, b, alone[2];
  open_decoder(e, 1, STEPS, &a);
  open_decoder(e, 3, STEPS, &b);
  for (int i = 0; i < 2; i++) open_decoder(e, 2, STEPS, &alone[i]);
  for (int i = 0; i < 20; i++) {
    bind_words(e, &a, 7, 1);
    bind_words(e, &b, 8, 1);
    ok(assay_context_start(a.context));
    ok(assay_context_start(b.context));
    ok(assay_context_wait(b.context));
    ok(assay_context_wait(a.context));
    a.at++;
    b.at++;
    step(e, &alone[0], 7, 1);
    step(e, &alone[1], 8, 1);
    expect_same(e, a.context, alone[0].context, "beside another", i);
    expect_same(e, b.context, alone[1].context, "beside another", i);
  }
  assay_context_destroy(a.context);
  assay_context_destroy(b.context);
  for (int i = 0; i < 2; i++) assay_context_destroy(alone[i].context);
  assay_engine_release(e);
}

// A value that is taken back: what came after it leaves no trace.
static void a_state_can_be_set(void** state) {
  (void)state;
  assay_engine_t* e = build("gpt2", NULL);
  char past[64], present[64];
  decoder_t a, b;
  open_decoder(e, 0, STEPS, &a);
  open_decoder(e, 0, STEPS, &b);
  assay_tensor_t* kept[2 * LAYERS];
  for (int i = 0; i < 4; i++) step(e, &a, 9, 1), step(e, &b, 9, 1);
  for (int i = 0; i < 2 * LAYERS; i++) {
    cache_names(i, past, present);
    ok(assay_context_state(a.context, past, &kept[i]));
  }
  for (int i = 0; i < 7; i++) step(e, &a, 10, 1);
  for (int i = 0; i < 2 * LAYERS; i++) {
    cache_names(i, past, present);
    ok(assay_context_set_state(a.context, past, kept[i]));
    assay_tensor_release(kept[i]);
  }
  a.at = 4;
  for (int i = 0; i < 5; i++) {
    step(e, &a, 9, 1);
    step(e, &b, 9, 1);
    expect_same(e, a.context, b.context, "taken back", i);
  }
  assay_context_destroy(a.context);
  assay_context_destroy(b.context);
  assay_engine_release(e);
}

// ---- other models -------------------------------------------------------------------------------

static void bind_rows(assay_context_t* c, size_t i, const float* rows, int64_t n) {
  const int64_t dims[] = {n, 6};
  ok(assay_context_bind_input(c, i, ASSAY_TYPE_FLOAT, 2, dims, rows, (size_t)n * 6 * 4));
}

static assay_context_t* open_series(assay_engine_t* e) {
  assay_context_t* c = open_context(e, NULL);
  ok(assay_context_bind_state(c, "past", "present", STEPS));
  return c;
}

// Layers of many kinds see the sequence; some are emulated, some follow from sizes.
static void layers_of_all_kinds_grow(void** state) {
  (void)state;
  for (size_t s = 0; s < 2; s++) {
    assay_engine_options_t options = ASSAY_ENGINE_OPTIONS_INIT;
    options.tactic_sources = sources[s];
    assay_engine_t* e = build("series", &options);
    assay_context_t *c = open_series(e), *exact = open_context(e, NULL);
    const size_t past = input(e, "past"), x = input(e, "x");
    float rows[STEPS * 6];
    fill(rows, STEPS * 6, 3);
    size_t made = 0;
    int64_t at = 0;
    for (int i = 0; at < STEPS; i++) {
      const int64_t n = i % 5 == 4 && at + 2 <= STEPS ? 2 : 1;
      assay_context_t* fresh = open_series(e);
      assay_tensor_t* t = NULL;
      bind_rows(fresh, x, rows + at * 6, n);
      bind_rows(exact, x, rows + at * 6, n);
      bind_rows(c, x, rows + at * 6, n);
      bind_rows(exact, past, rows, at);
      if (at) {
        ok(assay_context_state(c, "past", &t));
        ok(assay_context_set_state(fresh, "past", t));
        assay_tensor_release(t);
      }
      ok(assay_context_run(fresh));
      ok(assay_context_run(exact));
      ok(assay_context_run(c));
      expect_same(e, c, fresh, "prepared for it", i);
      if (s == 1) expect_same(e, c, exact, "nothing grows", i);
      assay_context_destroy(fresh);
      at += n;
      if (i == 9) made = assay_context_kernels_made(c);
      if (i > 9 && s == 1) assert_int_equal(assay_context_kernels_made(c), made);
    }
    assay_context_destroy(c);
    assay_context_destroy(exact);
    assay_engine_release(e);
  }
}

// The capacity of a dimension that the engine's profile has a range for; two inputs have it.
static void sizes_of_a_profile_grow(void** state) {
  (void)state;
  enum { MAX_ROWS = 9 };
  const int64_t min[] = {1, 4}, best[] = {2, 4}, max[] = {MAX_ROWS, 4};
  const int64_t min_h[] = {1, 8}, best_h[] = {2, 8}, max_h[] = {MAX_ROWS, 8};
  const assay_engine_shape_t shapes[] = {{"x", 2, best, min, max}, {"h", 2, best_h, min_h, max_h}};
  assay_engine_options_t options = ASSAY_ENGINE_OPTIONS_INIT;
  options.shapes = shapes;
  options.n_shapes = 2;
  options.tactic_sources = "assay";
  assay_engine_t* e = build("recurrent", &options);
  assay_context_t *grows = open_context(e, NULL), *exact = open_context(e, NULL);
  float x[MAX_ROWS * 4], h[MAX_ROWS * 8];
  int64_t count = 3;
  size_t made = 0;
  fill(x, MAX_ROWS * 4, 5);
  fill(h, MAX_ROWS * 8, 6);
  ok(assay_context_grow(grows, "N", 0));
  for (int64_t n = 1; n <= MAX_ROWS; n++) {
    assay_context_t* const both[] = {grows, exact};
    for (int i = 0; i < 2; i++) {
      const int64_t dims[] = {n, 4}, hidden[] = {n, 8};
      ok(assay_context_bind_input(both[i], input(e, "x"), ASSAY_TYPE_FLOAT, 2, dims, x,
                                  (size_t)n * 16));
      ok(assay_context_bind_input(both[i], input(e, "h"), ASSAY_TYPE_FLOAT, 2, hidden, h,
                                  (size_t)n * 32));
      ok(assay_context_bind_input(both[i], input(e, "count"), ASSAY_TYPE_INT64, 0, NULL, &count,
                                  sizeof count));
      ok(assay_context_run(both[i]));
    }
    expect_same(e, grows, exact, "nothing grows", (int)n);
    if (n == 2) made = assay_context_kernels_made(grows);
    if (n > 2) assert_int_equal(assay_context_kernels_made(grows), made);
  }
  assert_true(assay_context_kernels_made(exact) > made);
  assay_context_destroy(grows);
  assay_context_destroy(exact);
  assay_engine_release(e);
}

static void states_that_keep_their_shape_begin_with_zeros(void** state) {
  (void)state;
  assay_engine_t* e = build("recurrent", NULL);
  assay_context_t *c = open_context(e, NULL), *by_hand = open_context(e, NULL);
  const int64_t dims[] = {3, 4}, hidden[] = {3, 8};
  float x[12], zeros[24] = {0};
  int64_t none = 0;
  fill(x, 12, 5);
  ok(assay_context_bind_state(c, "h", "next", 0));
  ok(assay_context_bind_state(c, "count", "counted", 0));
  ok(assay_context_bind_input(c, input(e, "x"), ASSAY_TYPE_FLOAT, 2, dims, x, sizeof x));
  ok(assay_context_bind_input(by_hand, input(e, "x"), ASSAY_TYPE_FLOAT, 2, dims, x, sizeof x));
  ok(assay_context_bind_input(by_hand, input(e, "h"), ASSAY_TYPE_FLOAT, 2, hidden, zeros,
                              sizeof zeros));
  ok(assay_context_bind_input(by_hand, input(e, "count"), ASSAY_TYPE_INT64, 0, NULL, &none,
                              sizeof none));
  for (int i = 0; i < 5; i++) {
    ok(assay_context_run(c));
    ok(assay_context_run(by_hand));
    expect_same(e, c, by_hand, "by hand", i);
    assay_tensor_t *next = output(by_hand, e, "next"), *counted = output(by_hand, e, "counted");
    int64_t n = 0;
    ok(assay_tensor_read(counted, &n, sizeof n));
    assert_int_equal(n, i + 1);
    ok(assay_context_set_input(by_hand, input(e, "h"), next));
    ok(assay_context_set_input(by_hand, input(e, "count"), counted));
    assay_tensor_release(next);
    assay_tensor_release(counted);
  }
  ok(assay_context_unbind_state(c, "count"));
  fails(assay_context_run(c), ASSAY_INVALID_ARGUMENT, "'count'");
  assay_context_destroy(c);
  assay_context_destroy(by_hand);
  assay_engine_release(e);
}

// ---- what goes wrong ----------------------------------------------------------------------------

static void what_does_not_go_together(void** state) {
  (void)state;
  static const struct {
    const char *model, *input, *output;
    int64_t capacity;
    assay_code_t code;
    const char* word;
  } rows[] = {
      {"gpt2", "past_key_values.9.key", "present.0.key", 9, ASSAY_NOT_FOUND,
       "past_key_values.9.key"},
      {"gpt2", "past_key_values.0.key", "present.9.key", 9, ASSAY_NOT_FOUND, "present.9.key"},
      {"gpt2", "past_key_values.0.key", "logits", 9, ASSAY_INVALID_ARGUMENT, "next input"},
      {"gpt2", "input_ids", "logits", 9, ASSAY_INVALID_ARGUMENT, "next input"},
      {"gpt2", "past_key_values.0.key", "present.0.key", 0, ASSAY_INVALID_ARGUMENT, "capacity"},
      {"gpt2", "past_key_values.0.key", "present.0.key", -1, ASSAY_INVALID_ARGUMENT, "capacity"},
      {"series", "past", "means", 0, ASSAY_INVALID_ARGUMENT, "dimension 0"},
      {"recurrent", "h", "next", 9, ASSAY_INVALID_ARGUMENT, "does not grow"},
      {"recurrent", "x", "next", 0, ASSAY_INVALID_ARGUMENT, "dimension 1"},
      {"recurrent", "h", "counted", 0, ASSAY_INVALID_ARGUMENT, "next input"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    assay_engine_t* e = build(rows[i].model, NULL);
    assay_context_t* c = open_context(e, NULL);
    fails(assay_context_bind_state(c, rows[i].input, rows[i].output, rows[i].capacity),
          rows[i].code, rows[i].word);
    assay_context_destroy(c);
    assay_engine_release(e);
  }
}

static void what_belongs_to_a_state_cannot_be_bound(void** state) {
  (void)state;
  assay_engine_t* e = build("recurrent", NULL);
  assay_context_t* c = open_context(e, NULL);
  const int64_t dims[] = {3, 8}, wide[] = {3, 9};
  float x[24] = {0};
  assay_tensor_t *t = NULL, *other = NULL;
  size_t next = 0;
  ok(assay_engine_find_output(e, "next", &next));
  ok(assay_tensor_make(ASSAY_TYPE_FLOAT, 2, dims, x, sizeof x, &t));
  fails(assay_context_set_state(c, "h", t), ASSAY_NOT_FOUND, "no state");
  fails(assay_context_unbind_state(c, "h"), ASSAY_NOT_FOUND, "no state");
  ok(assay_context_bind_state(c, "h", "next", 0));
  fails(assay_context_bind_state(c, "h", "next", 0), ASSAY_INVALID_ARGUMENT,
        "belongs to the state");
  fails(assay_context_set_input(c, input(e, "h"), t), ASSAY_INVALID_ARGUMENT, "belongs to");
  fails(assay_context_bind_input(c, input(e, "h"), ASSAY_TYPE_FLOAT, 2, dims, x, sizeof x),
        ASSAY_INVALID_ARGUMENT, "belongs to");
  fails(assay_context_bind_output(c, next, x, sizeof x), ASSAY_INVALID_ARGUMENT, "belongs to");
  float wider[27] = {0};
  ok(assay_tensor_make(ASSAY_TYPE_FLOAT, 2, wide, wider, sizeof wider, &other));
  fails(assay_context_set_state(c, "h", other), ASSAY_INVALID_ARGUMENT, "another type or shape");
  ok(assay_context_set_state(c, "h", t));
  fails(assay_context_grow(c, "M", 9), ASSAY_NOT_FOUND, "'M'");
  fails(assay_context_grow(c, "N", 0), ASSAY_INVALID_ARGUMENT, "no profile");
  fails(assay_context_grow(c, "N", -1), ASSAY_INVALID_ARGUMENT, "capacity");
  ok(assay_context_unbind_state(c, "h"));
  ok(assay_context_set_input(c, input(e, "h"), t));
  assay_tensor_release(t);
  assay_tensor_release(other);
  assay_context_destroy(c);
  assay_engine_release(e);
}

// Sizes of a state that nothing tells.
static void open_sizes_need_an_input_or_a_value(void** state) {
  (void)state;
  assay_engine_t* e = build("recurrent", NULL);
  assay_context_t* c = open_context(e, NULL);
  ok(assay_context_bind_state(c, "h", "next", 0));
  ok(assay_context_bind_state(c, "count", "counted", 0));
  fails(assay_context_run(c), ASSAY_INVALID_ARGUMENT, "assay_context_set_state");
  assay_context_destroy(c);
  assay_engine_release(e);
}

// Any allocation of a step may fail: the state stays, and the same step can be run again.
static void a_step_without_memory_leaves_the_states(void** state) {
  (void)state;
  assay_engine_t* e = build("gpt2", NULL);
  decoder_t a, b;
  open_decoder(e, 1, STEPS, &a);
  open_decoder(e, 1, STEPS, &b);
  step(e, &a, 12, 1);
  step(e, &b, 12, 1);
  bool reached = true;
  for (uint64_t n = 1; reached; n = fail_next(n, 60)) {
    if (a.at == STEPS) {
      ok(assay_context_reset_states(a.context));
      ok(assay_context_reset_states(b.context));
      a.at = b.at = 0;
    }
    bind_words(e, &a, 12, 1);
    assay_alloc_fail_after(n, false);
    assay_status_t st = assay_context_run(a.context);
    reached = assay_alloc_fail_after(0, false) >= n;
    if (st) {
      assert_int_equal(assay_status_code(st), ASSAY_NO_MEMORY);
      assay_status_free(st);
      ok(assay_context_run(a.context));
    }
    a.at++;
    step(e, &b, 12, 1);
    expect_same(e, a.context, b.context, "without memory", (int)a.at);
  }
  assay_context_destroy(a.context);
  assay_context_destroy(b.context);
  assay_engine_release(e);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(decoding_has_the_bits_of_exact_sizes),
      cmocka_unit_test(decoding_gives_what_the_whole_sequence_gives),
      cmocka_unit_test(no_step_prepares_anything),
      cmocka_unit_test(caches_grow_in_place),
      cmocka_unit_test(states_begin_anew_after_a_reset),
      cmocka_unit_test(no_more_than_the_capacity),
      cmocka_unit_test(contexts_do_not_disturb_each_other),
      cmocka_unit_test(a_state_can_be_set),
      cmocka_unit_test(layers_of_all_kinds_grow),
      cmocka_unit_test(sizes_of_a_profile_grow),
      cmocka_unit_test(states_that_keep_their_shape_begin_with_zeros),
      cmocka_unit_test(what_does_not_go_together),
      cmocka_unit_test(what_belongs_to_a_state_cannot_be_bound),
      cmocka_unit_test(open_sizes_need_an_input_or_a_value),
      cmocka_unit_test(a_step_without_memory_leaves_the_states),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
