// Checks of parts of the samples: put together they are the check of all samples, to the byte of
// its report, wherever the samples were divided; what is damaged or of another check is refused.
#include <assay/assay.h>
#include <stdio.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "fail_case.h"
#include "onnx/load.h"
#include "passes/graph_case.h"

enum { SAMPLES = 9 };

typedef struct row {
  graph_case_t graph;
  double scale;  // of the inputs
  assay_format_t precision;
  const char* target;
  const char* requirement;  // NULL: none
  bool golden;
} row_t;

static const row_t rows[] = {
    {{"sums",
      0,
      {"x float[4,6]"},
      {"w float[6,5]"},
      {"MatMul m x w -> p", "Softmax s p -> y"},
      "y"},
     3,
     ASSAY_FORMAT_BF16,
     "emu",
     NULL,
     false},
    {{"overflow and its fix",
      0,
      {"x float[4]"},
      {"k float[] 4e4", "l float[] 1e-5"},
      {"Mul up x k -> p", "Mul down p l -> y"},
      "y"},
     3,
     ASSAY_FORMAT_FP16,
     "emu",
     NULL,
     false},
    // What is left of two nearly equal numbers: the condition differs from sample to sample.
    {{"cancelling",
      0,
      {"x float[8]"},
      {"k float[] 1000"},
      {"Add a x k -> p", "Sub b p k -> d", "Exp e d -> y"},
      "y"},
     1,
     ASSAY_FORMAT_BF16,
     "emu",
     NULL,
     false},
    {{"steps and choices",
      0,
      {"x float[3,7]"},
      {"k float[] 3"},
      {"Mul m x k -> p", "Round r p -> q", "ArgMax g p -> i | axis=1", "Mul n q p -> y"},
      "y i"},
     1,
     ASSAY_FORMAT_BF16,
     "emu",
     "snr_db >= 10",
     false},
    {{"slices",
      0,
      {"x float[1,3,40]"},
      {"w float[1,3,1] 1 1e-3 0"},
      {"Mul m x w -> p", "Tanh t p -> y"},
      "y"},
     1,
     ASSAY_FORMAT_FP8E4M3,
     "emu",
     NULL,
     true},
    {{"fused",
      0,
      {"x float[4,6]"},
      {"w float[6,5]", "c float[5]"},
      {"MatMul m x w -> p", "Add a p c -> q", "Relu r q -> y"},
      "y"},
     4,
     ASSAY_FORMAT_BF16,
     "cpu",
     NULL,
     true},
};

typedef struct fixture {
  const row_t* row;
  assay_model_t* model;
  assay_tensor_t* in[GRAPH_CASE_ROWS];
  assay_tensor_t* x[SAMPLES];       // inputs
  assay_tensor_t* golden[SAMPLES];  // NULL: none
} fixture_t;

static assay_samples_t* samples_of(const fixture_t* f, size_t first, size_t n) {
  assay_samples_t* s = NULL;
  op_case_ok(assay_samples_create(f->model, n, 1, (const char*[]){"x"}, f->x + first, NULL, &s));
  return s;
}

static assay_golden_t* golden_of(const fixture_t* f, size_t first, size_t n) {
  assay_golden_t* g = NULL;
  if (f->row->golden)
    op_case_ok(
        assay_golden_create(f->model, n, 1, (const char*[]){"y"}, f->golden + first, n, NULL, &g));
  return g;
}

// Golden: truth of the sample, which the engine differs from.
static void make_golden(fixture_t* f, size_t k) {
  assay_session_options_t o = ASSAY_SESSION_OPTIONS_INIT;
  assay_session_t* s = NULL;
  assay_tensor_t* y = NULL;
  o.mode = ASSAY_RUN_TRUTH;
  op_case_ok(assay_session_create(f->model, &o, &s));
  op_case_ok(assay_session_run(s, assay_model_input_count(f->model), &f->x[k], 1, &y));
  f->golden[k] = y;
  assay_session_destroy(s);
}

static void open_row(fixture_t* f, const row_t* row) {
  uint64_t seed = 3;
  char name[64];
  *f = (fixture_t){.row = row};
  f->model = graph_case_model(&row->graph, f->in);
  for (size_t k = 0; k < SAMPLES; k++) {
    f->x[k] = graph_case_tensor(row->graph.inputs[0], name, &seed);
    // Sizes differ, so that what is worst is not in the first sample, nor all in one.
    const double size = row->scale * (double)(1 + (k * 4) % SAMPLES);
    for (int64_t i = 0; i < f->x[k]->size; i++)
      assay_f64(f->x[k])[i] = (double)(float)(assay_f64(f->x[k])[i] * size);
    if (row->golden) make_golden(f, k);
  }
}

static void close_row(fixture_t* f) {
  for (size_t k = 0; k < SAMPLES; k++) {
    assay_tensor_release(f->x[k]);
    assay_tensor_release(f->golden[k]);
  }
  assay_model_release(f->model);
  graph_case_release(f->in);
}

static assay_check_t* check_of(const fixture_t* f, bool pictures) {
  assay_check_options_t o = ASSAY_CHECK_OPTIONS_INIT;
  assay_check_t* c = NULL;
  o.precision = f->row->precision;
  o.target = f->row->target;
  o.requirements = &f->row->requirement;
  o.n_requirements = f->row->requirement != NULL;
  o.pictures = pictures;
  op_case_ok(assay_check_create(f->model, &o, &c));
  return c;
}

static char* run_and_report(const fixture_t* f, assay_check_t* c) {
  assay_samples_t* inputs = samples_of(f, 0, SAMPLES);
  assay_golden_t* golden = golden_of(f, 0, SAMPLES);
  char* json = NULL;
  op_case_ok(assay_check_run(c, inputs, golden));
  op_case_ok(assay_check_report(c, ASSAY_REPORT_JSON, NULL, assay_report_collect, &json));
  assay_golden_destroy(golden);
  assay_samples_destroy(inputs);
  return json;
}

// ---- bytes of parts -----------------------------------------------------------------------------

static assay_status_t keep(void* user, const char* data, size_t size) {
  assay_str_append_n(user, data, size);
  return NULL;
}

static void add_range(const fixture_t* f, assay_check_t* c, size_t first, size_t n) {
  assay_samples_t* inputs = samples_of(f, first, n);
  assay_golden_t* golden = golden_of(f, first, n);
  op_case_ok(assay_check_add_samples(c, inputs, golden));
  assay_golden_destroy(golden);
  assay_samples_destroy(inputs);
}

static assay_str_t part_of(const fixture_t* f, size_t first, size_t n) {
  assay_check_t* c = check_of(f, false);
  assay_str_t bytes = {0};
  add_range(f, c, first, n);
  assert_int_equal(assay_check_added(c), n);
  op_case_ok(assay_check_save_part(c, keep, &bytes));
  assay_check_destroy(c);
  return bytes;
}

// ---- tests --------------------------------------------------------------------------------------

// Bit k of `cuts`: a part ends after sample k. Bit SAMPLES: the last part's samples are added to
// the gathering check itself; else every part is one of bytes.
static void check_divided(const fixture_t* f, unsigned cuts, const char* whole) {
  assay_check_t* c = check_of(f, false);
  for (size_t first = 0, end = 1; first < SAMPLES; first = end++) {
    while (end < SAMPLES && !(cuts >> (end - 1) & 1)) end++;
    if (end == SAMPLES && cuts >> SAMPLES & 1) {
      add_range(f, c, first, end - first);
      continue;
    }
    assay_str_t part = part_of(f, first, end - first);
    op_case_ok(assay_check_add_part(c, part.text, part.len));
    assay_str_deinit(&part);
  }
  char* json = run_and_report(f, c);
  if (strcmp(json, whole) != 0)
    fail_msg("%s, divided by %x:\n%s\nnot\n%s", f->row->graph.name, cuts, json, whole);
  assay_text_free(json);
  assay_check_destroy(c);
}

static void parts_make_the_whole(void** state) {
  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    fixture_t f;
    uint64_t seed = 11 * i + 1;
    open_row(&f, &rows[i]);
    assay_check_t* c = check_of(&f, false);
    char* whole = run_and_report(&f, c);
    assay_check_destroy(c);
    check_divided(&f, 0, whole);
    check_divided(&f, (1 << SAMPLES) - 1, whole);
    for (int k = 0; k < 12; k++) {
      seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
      check_divided(&f, (unsigned)(seed >> 40) & ((2 << SAMPLES) - 1), whole);
    }
    assay_text_free(whole);
    close_row(&f);
  }
}

// Parts that were put together are a part again.
static void parts_are_gathered_in_steps(void** state) {
  (void)state;
  fixture_t f;
  open_row(&f, &rows[0]);
  assay_check_t *whole = check_of(&f, false), *half = check_of(&f, false),
                *all = check_of(&f, false);
  assay_str_t a = part_of(&f, 0, 2), b = part_of(&f, 2, 3), ab = {0}, c = part_of(&f, 5, 4);
  op_case_ok(assay_check_add_part(half, a.text, a.len));
  op_case_ok(assay_check_add_part(half, b.text, b.len));
  op_case_ok(assay_check_save_part(half, keep, &ab));
  op_case_ok(assay_check_add_part(all, ab.text, ab.len));
  op_case_ok(assay_check_add_part(all, c.text, c.len));
  char *want = run_and_report(&f, whole), *got = run_and_report(&f, all);
  assert_string_equal(got, want);
  assay_text_free(want);
  assay_text_free(got);
  assay_str_t* const parts[] = {&a, &b, &ab, &c};
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) assay_str_deinit(parts[i]);
  assay_check_destroy(whole);
  assay_check_destroy(half);
  assay_check_destroy(all);
  close_row(&f);
}

static void fails(assay_status_t st, assay_code_t code, const char* word) {
  if (!st) fail_msg("no failure, where '%s' was expected", word);
  if (assay_status_code(st) != code || !strstr(assay_status_message(st), word))
    fail_msg("code %d, '%s'; expected %d with '%s'", (int)assay_status_code(st),
             assay_status_message(st), (int)code, word);
  assay_status_free(st);
}

static void what_does_not_fit_is_refused(void** state) {
  (void)state;
  fixture_t f, other;
  open_row(&f, &rows[0]);
  open_row(&other, &rows[1]);
  assay_samples_t* inputs = samples_of(&f, 0, SAMPLES);
  assay_str_t part = part_of(&f, 0, 2), strange = part_of(&other, 0, 2), none = {0};
  assay_check_t *c = check_of(&f, false), *pictured = check_of(&f, true);
  fails(assay_check_save_part(c, keep, &none), ASSAY_INVALID_ARGUMENT, "no samples");
  fails(assay_check_add_samples(pictured, inputs, NULL), ASSAY_UNSUPPORTED, "pictures");
  fails(assay_check_add_part(c, strange.text, strange.len), ASSAY_INVALID_ARGUMENT,
        "another model");
  fails(assay_check_add_part(c, "", 0), ASSAY_CORRUPT, "not a part");
  for (size_t i = 0; i < part.len; i++) {
    part.text[i] ^= 4;
    fails(assay_check_add_part(c, part.text, part.len), ASSAY_CORRUPT, "part");
    part.text[i] ^= 4;
    fails(assay_check_add_part(c, part.text, i), ASSAY_CORRUPT, "part");
  }
  assert_int_equal(assay_check_added(c), 0);
  op_case_ok(assay_check_add_part(c, part.text, part.len));
  fails(assay_check_run(c, inputs, NULL), ASSAY_INVALID_ARGUMENT, "2 samples were added");
  op_case_ok(assay_check_run(pictured, inputs, NULL));
  fails(assay_check_add_samples(pictured, inputs, NULL), ASSAY_INVALID_ARGUMENT, "has run");
  assay_str_deinit(&part);
  assay_str_deinit(&strange);
  assay_check_destroy(c);
  assay_check_destroy(pictured);
  assay_samples_destroy(inputs);
  close_row(&f);
  close_row(&other);
}

// A part with a number put in a place, and a checksum that fits.
static assay_status_t add_forged(const fixture_t* f, const assay_str_t* part, size_t at, int64_t x,
                                 bool report) {
  enum { HEAD = 16 };
  assay_check_t* c = check_of(f, false);
  assay_str_t forged = {0};
  assay_str_append_n(&forged, part->text, part->len);
  memcpy(forged.text + at, &x, sizeof x);
  const uint64_t sum = assay_hash(forged.text + HEAD, forged.len - HEAD, 0);
  memcpy(forged.text + HEAD / 2, &sum, sizeof sum);
  assay_status_t st = assay_check_add_part(c, forged.text, forged.len);
  if (!st && report) {
    assay_samples_t* inputs = samples_of(f, 0, SAMPLES);
    char* json = NULL;
    st = assay_check_run(c, inputs, NULL);
    if (!st) st = assay_check_report(c, ASSAY_REPORT_JSON, NULL, assay_report_collect, &json);
    assay_text_free(json);
    assay_samples_destroy(inputs);
  }
  assay_str_deinit(&forged);
  assay_check_destroy(c);
  return st;
}

// Counts that nothing has: they would overflow in sums over parts, or be told in reports.
static void what_cannot_be_is_refused(void** state) {
  (void)state;
  static const int64_t odd[] = {INT64_MIN, INT64_MAX, -1, 0};
  // After the head of the part, how many layers it has, and which the first is: its counts.
  enum { FIRST = 16 + 4 * 8 + 8 + 2 * 8, COUNTS = 9 };
  fixture_t f;
  open_row(&f, &rows[0]);
  assay_str_t part = part_of(&f, 0, SAMPLES);
  for (size_t k = 0; k < COUNTS; k++)
    for (int i = 0; i < 3; i++)
      fails(add_forged(&f, &part, FIRST + 8 * k, odd[i], false), ASSAY_CORRUPT, "cannot be");
  for (size_t at = 16; at + 8 <= part.len; at += 5) {
    assay_status_t st = add_forged(&f, &part, at, odd[at / 5 % 4], true);
    assert_int_not_equal(assay_status_code(st), ASSAY_INTERNAL);
    assay_status_free(st);
  }
  assay_str_deinit(&part);
  close_row(&f);
}

static fixture_t failing;
static assay_str_t failing_part;

static assay_status_t add_both(void* user) {
  assay_check_t* c = NULL;
  assay_check_options_t o = ASSAY_CHECK_OPTIONS_INIT;
  assay_samples_t* inputs = user;
  assay_str_t bytes = {0};
  o.precision = failing.row->precision;
  assay_status_t st = assay_check_create(failing.model, &o, &c);
  if (!st) st = assay_check_add_part(c, failing_part.text, failing_part.len);
  if (!st) st = assay_check_add_samples(c, inputs, NULL);
  if (!st) st = assay_check_save_part(c, keep, &bytes);
  assay_str_deinit(&bytes);
  assay_check_destroy(c);
  return st;
}

static void allocations_fail(void** state) {
  (void)state;
  open_row(&failing, &rows[0]);
  failing_part = part_of(&failing, 0, 2);
  assay_samples_t* inputs = samples_of(&failing, 2, 2);
  op_case_ok(add_both(inputs));  // what is made once and kept
  assert_true(fail_each(400, add_both, inputs) > 0);
  assay_samples_destroy(inputs);
  assay_str_deinit(&failing_part);
  close_row(&failing);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(parts_make_the_whole), cmocka_unit_test(parts_are_gathered_in_steps),
      cmocka_unit_test(what_does_not_fit_is_refused), cmocka_unit_test(what_cannot_be_is_refused),
      cmocka_unit_test(allocations_fail)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
