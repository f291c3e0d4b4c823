// Which tactic is taken: among those that give the same bits the fastest, else the first of the
// table.
#include <math.h>

#include "backends/choice.h"
#include "base/alloc.h"
#include "ops/op_case.h"

static void destroy(assay_kernel_t* k) { assay_free(k); }

static assay_status_t make(const assay_sized_layer_t* l, assay_kernel_t** out) {
  (void)l;
  ASSAY_TRY(ASSAY_NEW(out));
  (*out)->destroy = destroy;
  return NULL;
}

static assay_status_t decline(const assay_sized_layer_t* l, assay_kernel_t** out) {
  (void)l;
  (void)out;
  return NULL;
}

static const assay_tactic_t never = {
    .name = "never", .source = "a", .make = decline, .numerics = "x"};
static const assay_tactic_t slow = {.name = "slow", .source = "a", .make = make, .numerics = "x"};
static const assay_tactic_t quick = {.name = "quick", .source = "b", .make = make, .numerics = "x"};
static const assay_tactic_t other = {.name = "other", .source = "b", .make = make, .numerics = "y"};
static const assay_tactic_t lone = {.name = "lone", .source = "c", .make = make};

// The later in the alphabet of these names, the slower.
static assay_status_t time_of(void* user, const assay_sized_layer_t* l, assay_kernel_t* k,
                              double* out) {
  (void)user;
  (void)l;
  *out = (double)k->tactic->name[0];
  return NULL;
}

typedef struct choice_row {
  const assay_tactic_t* table[4];
  const char* sources;
  bool measure, any;
  const char* taken;
  int candidates;
} choice_row_t;

static const choice_row_t rows[] = {
    {{&never, &slow, &quick, &other}, NULL, true, false, "quick", 2},
    {{&never, &slow, &quick, &other}, NULL, false, false, "slow", 1},
    {{&slow, &other, &lone}, NULL, true, false, "slow", 1},
    {{&slow, &other, &quick}, NULL, true, false, "quick", 2},
    {{&lone, &quick, &other}, NULL, true, false, "lone", 1},
    {{&slow, &lone, &quick}, "b,c", true, false, "lone", 1},
    {{&never}, NULL, true, false, NULL, 0},
    {{&slow, &other, &lone}, NULL, true, true, "lone", 3},
    {{&slow, &other, &lone}, NULL, false, true, "slow", 1},
};

static const char* take(assay_choice_t* c, int* n) {
  static const assay_layer_t layer = {.n_nodes = 0};
  const assay_sized_layer_t sized = {.layer = &layer};
  assay_candidate_t candidates[ASSAY_MAX_CANDIDATES];
  assay_kernel_t* k = NULL;
  op_case_ok(assay_choose(c, &sized, &k, candidates, n));
  const char* name = k ? k->tactic->name : NULL;
  if (k) k->destroy(k);
  return name;
}

static void expect(const char* got, const char* want) {
  if (!got || !want)
    assert_ptr_equal(got, want);
  else
    assert_string_equal(got, want);
}

static void the_same_bits_compete(void** state) {
  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    const choice_row_t* r = &rows[i];
    assay_choice_setting_t setting = {.tactics = r->table, .machine = "any", .time = time_of};
    while (setting.n_tactics < 4 && r->table[setting.n_tactics]) setting.n_tactics++;
    const assay_backend_options_t o = {
        .measure = r->measure, .tactic_sources = r->sources, .batch_variant = r->any};
    assay_choice_t* c = NULL;
    op_case_ok(assay_choice_create(&setting, &o, &c));
    for (int again = 0; again < 2; again++) {  // the second time times are known
      int n = 0;
      expect(take(c, &n), r->taken);
      assert_int_equal(n, r->candidates);
    }
    assay_choice_destroy(c);
  }
}

// Times of an older cache, in which all competed.
static void known_times_do_not_change_bits(void** state) {
  (void)state;
  const assay_tactic_t* table[] = {&slow, &other, &quick};
  const assay_choice_setting_t setting = {
      .tactics = table, .n_tactics = 3, .machine = "any", .time = time_of};
  const assay_backend_options_t o = {.measure = true};
  assay_choice_t* c = NULL;
  op_case_ok(assay_choice_create(&setting, &o, &c));
  op_case_ok(assay_timings_add(c->timings, "other", "|", 1));
  op_case_ok(assay_timings_add(c->timings, "slow", "|", 3));
  op_case_ok(assay_timings_add(c->timings, "quick", "|", 2));
  int n = 0;
  expect(take(c, &n), "quick");
  assert_int_equal(n, 2);
  assay_choice_destroy(c);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_same_bits_compete),
      cmocka_unit_test(known_times_do_not_change_bits),
  };
  return cmocka_run_group_tests_name("choice", tests, NULL, NULL);
}
