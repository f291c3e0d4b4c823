// Which tactic is taken: among those that give the same bits the fastest, else the first of the
// table.
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "exec/choice/choice.h"
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
static const assay_tactic_t absent = {
    .name = "absent", .source = "a", .make = decline, .numerics = "z"};
static const assay_tactic_t slow = {.name = "slow", .source = "a", .make = make, .numerics = "x"};
static const assay_tactic_t quick = {.name = "quick", .source = "b", .make = make, .numerics = "x"};
static const assay_tactic_t other = {.name = "other", .source = "b", .make = make, .numerics = "y"};
static const assay_tactic_t lone = {.name = "lone", .source = "c", .make = make};

static int last_runs;  // that a time was asked for

// The later in the alphabet of these names, the slower.
static assay_status_t time_of(void* user, const assay_sized_layer_t* l, assay_kernel_t* k, int runs,
                              double* out) {
  last_runs = runs;
  (void)user;
  (void)l;
  const bool variant = strchr(k->name, '/') != NULL;
  *out = (double)(variant ? k->name[strlen(k->name) - 1] : k->name[0]);
  return NULL;
}

// Tactics with variants, each written as "NAME:NUMERICS:PREDICTED"; its time is its last letter.
typedef struct variant_row {
  const char *name, *numerics;
  double predicted;
} variant_row_t;

static assay_status_t list(const variant_row_t* r, size_t n, assay_variant_t* out, size_t* out_n) {
  for (size_t i = 0; i < n; i++) {
    strcpy(out[i].name, r[i].name);
    out[i].numerics = r[i].numerics;
    out[i].predicted = r[i].predicted;
  }
  *out_n = n;
  return NULL;
}

static assay_status_t three_tiles(const assay_sized_layer_t* l, assay_variant_t* out, size_t* n) {
  (void)l;
  static const variant_row_t r[] = {{"tile_k", "x", 30}, {"split_a", "y", 5}, {"tile_h", "x", 10}};
  return list(r, 3, out, n);
}

// The first four of them are predicted to be faster than any tile of the other.
static assay_status_t many_tiles(const assay_sized_layer_t* l, assay_variant_t* out, size_t* n) {
  (void)l;
  variant_row_t r[20];
  char names[20][4];
  for (int i = 0; i < 20; i++) {
    names[i][0] = 't', names[i][1] = (char)('z' - i), names[i][2] = 0;
    r[i] = (variant_row_t){names[i], "x", i < 4 ? 1 + i : 20 + i};
  }
  return list(r, 20, out, n);
}

static assay_status_t no_tiles(const assay_sized_layer_t* l, assay_variant_t* out, size_t* n) {
  (void)l, (void)out;
  return *n = 0, NULL;
}

static assay_status_t make_variant(const assay_sized_layer_t* l, const assay_variant_t* v,
                                   assay_kernel_t** out) {
  assert_true(strlen(v->name) > 0);
  return strcmp(v->name, "tz") == 0 ? NULL : make(l, out);  // one variant declines
}

static const assay_tactic_t tiled = {
    .name = "tiled", .source = "a", .variants = three_tiles, .make_variant = make_variant};
static const assay_tactic_t many = {
    .name = "many", .source = "b", .variants = many_tiles, .make_variant = make_variant};
static const assay_tactic_t none = {
    .name = "none", .source = "b", .variants = no_tiles, .make_variant = make_variant};

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
  static const assay_layer_t layer = {.name = "a layer", .n_nodes = 0};
  const assay_sized_layer_t sized = {.layer = &layer};
  assay_candidate_t candidates[ASSAY_MAX_CANDIDATES];
  assay_kernel_t* k = NULL;
  op_case_ok(assay_choose(c, &sized, &k, candidates, n));
  const char* name = k ? k->name : NULL;
  if (k) assert_int_equal(strncmp(name, k->tactic->name, strlen(k->tactic->name)), 0);
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

// Kernels of ours that are timed at most.
enum { ALL = ASSAY_MAX_CANDIDATES - ASSAY_MAX_LIBRARY_WAYS };

// Variants compete as tactics do: the first that the table's first tactic lists says which bits,
// not the likeliest, and of those that have them the ones with the best predictions are timed,
// whosever they are.
static void variants_compete(void** state) {
  static const struct {
    const assay_tactic_t* table[3];
    bool measure, any;
    const char *forced, *taken;
    int candidates;
  } cases[] = {
      {{&tiled}, false, false, NULL, "tiled/tile_h", 1},
      {{&tiled}, true, false, NULL, "tiled/tile_h", 2},
      {{&tiled}, true, true, NULL, "tiled/split_a", 3},
      {{&quick, &tiled}, true, false, NULL, "tiled/tile_h", 3},
      {{&quick, &tiled}, false, false, NULL, "quick", 1},
      {{&many, &tiled}, true, false, NULL, "tiled/tile_h", ALL},
      {{&absent, &many, &tiled}, true, false, NULL, "tiled/tile_h", ALL},
      {{&other, &many, &tiled}, true, false, NULL, "tiled/split_a", 2},
      {{&many}, true, false, NULL, "many/tp", ALL},
      {{&none, &tiled}, true, false, NULL, "tiled/tile_h", 2},
      {{&none}, true, true, NULL, NULL, 0},
      {{&slow, &tiled}, true, false, "tiled/tile_k a layer\n", "tiled/tile_k", 1},
      {{&slow, &tiled}, true, false, "tiled a layer\n", "tiled/tile_h", 1},
      {{&slow, &tiled}, true, false, "tiled/tile a layer\n", "tiled/tile_h", 3},
      {{&slow, &many}, true, false, "many/tz a layer\n", "many/tq", ALL},
  };
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    assay_choice_setting_t setting = {.tactics = cases[i].table, .machine = "any", .time = time_of};
    while (setting.n_tactics < 3 && cases[i].table[setting.n_tactics]) setting.n_tactics++;
    const assay_backend_options_t o = {
        .measure = cases[i].measure, .batch_variant = cases[i].any, .forced = cases[i].forced};
    assay_choice_t* c = NULL;
    op_case_ok(assay_choice_create(&setting, &o, &c));
    for (int again = 0; again < 2; again++) {  // the second time times are known
      int n = 0;
      expect(take(c, &n), cases[i].taken);
      assert_int_equal(n, cases[i].candidates);
    }
    assay_choice_destroy(c);
  }
}

// Times are kept by tactic and variant, and come back from text.
static void times_of_variants_are_kept(void** state) {
  (void)state;
  static const assay_tactic_t* const table[] = {&quick, &tiled};
  const assay_choice_setting_t setting = {
      .tactics = table, .n_tactics = 2, .machine = "any", .time = time_of};
  const char text[] = "assay timing cache 1\nany\n3 quick |\n2 tiled/tile_k |\n9 tiled/tile_h |\n";
  const assay_backend_options_t o = {.timings = text, .timings_bytes = sizeof text - 1};
  assay_choice_t* c = NULL;
  int n = 0;
  op_case_ok(assay_choice_create(&setting, &o, &c));
  expect(take(c, &n), "tiled/tile_k");
  assert_int_equal(n, 3);
  assay_choice_destroy(c);
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

// Times of a cache that was made where the first tactic was left out, or where all competed and it
// was not among those that were timed.
static void unknown_tactics_of_other_bits_come_first(void** state) {
  static const struct {
    const assay_tactic_t* table[4];
    const char *text, *taken;
    bool measure, any;
  } cases[] = {
      {{&slow, &other, &quick}, "1 other |\n", "slow", false, false},
      {{&slow, &other, &quick}, "1 other |\n", "quick", true, false},
      {{&never, &other, &quick}, "1 other |\n", "other", false, false},
      {{&never, &other, &lone}, "1 lone |\n", "other", false, false},
      {{&slow, &other, &quick}, "1 other |\n2 quick |\n", "slow", false, false},
      {{&slow, &other, &quick}, "1 other |\n", "other", false, true},
      {{&slow, &tiled}, "1 tiled/split_a |\n", "slow", false, false},
  };
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char text[128];
    assay_choice_setting_t setting = {.tactics = cases[i].table, .machine = "any", .time = time_of};
    while (setting.n_tactics < 4 && cases[i].table[setting.n_tactics]) setting.n_tactics++;
    snprintf(text, sizeof text, "assay timing cache 1\nany\n%s", cases[i].text);
    const assay_backend_options_t o = {.timings = text,
                                       .timings_bytes = strlen(text),
                                       .measure = cases[i].measure,
                                       .batch_variant = cases[i].any};
    assay_choice_t* c = NULL;
    int n = 0;
    op_case_ok(assay_choice_create(&setting, &o, &c));
    expect(take(c, &n), cases[i].taken);
    assay_choice_destroy(c);
  }
}

// A tactic that is forced on a layer runs it, whatever the times, the bits and the sources; where
// it does not take the layer, others do.
static void forced_tactics(void** state) {
  static const struct {
    const char *forced, *sources, *taken;
  } forced_rows[] = {
      {"slow a layer\n", NULL, "slow"},     {"other a layer\n", NULL, "other"},
      {"other a layer", "a", "other"},      {"slow b\nother a layer\nlone c\n", NULL, "other"},
      {"other a\n", NULL, "quick"},         {"other a layers\n", NULL, "quick"},
      {"other  a layer\n", NULL, "quick"},  {"never a layer\n", NULL, "quick"},
      {"nothing a layer\n", NULL, "quick"}, {"", NULL, "quick"},
      {"\n\nslow a layer", NULL, "slow"},
  };
  static const assay_tactic_t* const table[] = {&never, &slow, &quick, &other, &lone};
  (void)state;
  for (size_t i = 0; i < sizeof forced_rows / sizeof *forced_rows; i++) {
    const assay_choice_setting_t setting = {
        .tactics = table, .n_tactics = 5, .machine = "any", .time = time_of};
    const assay_backend_options_t o = {
        .measure = true, .forced = forced_rows[i].forced, .tactic_sources = forced_rows[i].sources};
    assay_choice_t* c = NULL;
    int n = 0;
    op_case_ok(assay_choice_create(&setting, &o, &c));
    expect(take(c, &n), forced_rows[i].taken);
    assay_choice_destroy(c);
  }
}

static assay_status_t make_large(const assay_sized_layer_t* l, assay_kernel_t** out) {
  ASSAY_TRY(make(l, out));
  (*out)->scratch = 1000;
  return NULL;
}
static assay_status_t make_larger(const assay_sized_layer_t* l, assay_kernel_t** out) {
  ASSAY_TRY(make(l, out));
  (*out)->scratch = 2000;
  return NULL;
}
static const assay_tactic_t larger = {
    .name = "a_larger", .source = "a", .make = make_larger, .numerics = "x"};
static const assay_tactic_t large = {
    .name = "b_large", .source = "a", .make = make_large, .numerics = "x"};

// Kernels that need too much scratch are passed by, whether their times are known or not; where all
// do, the least is taken.
static void scratch_is_limited(void** state) {
  (void)state;
  static const struct {
    const assay_tactic_t* table[3];
    uint64_t limit;
    bool measure;
    const char* taken;
  } cases[] = {
      {{&larger, &large, &slow}, 0, true, "a_larger"},
      {{&larger, &large, &slow}, 1000, true, "b_large"},
      {{&larger, &large, &slow}, 999, true, "slow"},
      {{&larger, &slow, &large}, 10, false, "slow"},
      {{&larger, &large, &large}, 10, true, "b_large"},
      {{&large, &larger, &larger}, 10, false, "b_large"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const assay_choice_setting_t setting = {
        .tactics = cases[i].table, .n_tactics = 3, .machine = "any", .time = time_of};
    const assay_backend_options_t o = {
        .measure = cases[i].measure, .max_scratch = cases[i].limit, .timing_runs = 7};
    assay_choice_t* c = NULL;
    int n = 0;
    last_runs = 7;
    op_case_ok(assay_choice_create(&setting, &o, &c));
    for (int again = 0; again < 2; again++) {  // the second time times are known
      expect(take(c, &n), cases[i].taken);
      if (!again && cases[i].measure) op_case_ok(assay_timings_add(c->timings, "a_larger", "|", 1));
    }
    assert_int_equal(last_runs, 7);
    assay_choice_destroy(c);
  }
}

// ---- kernels of a library -----------------------------------------------------------------------

static const variant_row_t* library;  // what it offers
static size_t n_library;

static assay_status_t offer(const assay_sized_layer_t* l, assay_variant_t* out, size_t* n) {
  (void)l;
  return list(library, n_library, out, n);
}

static assay_status_t make_offered(const assay_sized_layer_t* l, const assay_variant_t* v,
                                   assay_kernel_t** out) {
  for (size_t i = 0; i < n_library; i++)
    if (strcmp(library[i].name, v->name) == 0) return make(l, out);
  return NULL;
}

static const assay_tactic_t brought = {.name = "brought",
                                       .source = "f",
                                       .variants = offer,
                                       .make_variant = make_offered,
                                       .verify = true};

static int compared;

// Those whose names begin with 's' have the bits of the first.
static assay_status_t same_bits(void* user, const assay_sized_layer_t* l, assay_kernel_t* const* k,
                                int n, bool* out) {
  (void)user, (void)l;
  assert_false(k[0]->tactic->verify);
  for (int i = 1; i < n; i++) {
    assert_true(k[i]->tactic->verify);
    out[i] = k[i]->name[strlen("brought/")] == 's';
    compared++;
  }
  return NULL;
}

static const variant_row_t offered[] = {{"sb", "x", 1}, {"sa", "x", 2}, {"oa", "x", 3}};
static const variant_row_t others_offered[] = {{"oa", "x", 1}, {"pA", NULL, 2}};

typedef struct library_row {
  const assay_tactic_t* table[3];
  const variant_row_t* offers;
  size_t n;
  const char *text, *taken;  // what is known
  bool measure, any, forced, compares;
  int left_out;
} library_row_t;

static const library_row_t library_rows[] = {
    // Bits decide, then times; where nothing is measured or known, ours run.
    {{&slow, &brought}, offered, 3, "", "brought/sa", true, false, false, true, 1},
    {{&brought, &slow}, offered, 3, "", "brought/sa", true, false, false, true, 1},
    {{&slow, &brought}, others_offered, 2, "", "slow", true, false, false, true, 1},
    {{&slow, &brought}, offered, 3, "", "slow", false, false, false, false, 0},
    {{&brought, &slow}, offered, 3, "", "slow", false, false, false, false, 0},
    // It says nobody's bits: without one of ours there is none of it, and none of other numerics.
    {{&brought, &never}, offered, 3, "", NULL, true, false, false, true, 3},
    {{&other, &brought}, offered, 3, "", "other", true, false, false, false, 0},
    {{&brought, &other}, offered, 3, "", "other", false, false, false, false, 0},
    // Where any bits do, nobody looks.
    {{&slow, &brought}, others_offered, 2, "", "brought/pA", true, true, false, false, 0},
    {{&slow, &brought}, offered, 3, "", "brought/oa", false, false, true, false, 0},
    // One that came after the times were measured.
    {{&slow, &brought}, offered, 3, "5 slow |\n", "brought/sa", true, false, false, true, 1},
    // Known by the numerics whose bits it had, and in no other way.
    {{&slow, &brought},
     offered,
     3,
     "5 slow |\n2 brought/sb=x |\n0 brought/oa!x |\n",
     "brought/sb",
     false,
     false,
     false,
     false,
     1},
    {{&slow, &brought},
     offered,
     3,
     "5 slow |\n2 brought/sb |\n",
     "slow",
     false,
     false,
     false,
     false,
     0},
    {{&slow, &brought},
     offered,
     3,
     "5 slow |\n2 brought/sb=y |\n",
     "slow",
     false,
     false,
     false,
     false,
     0},
    {{&slow, &brought},
     offered,
     3,
     "5 slow |\n7 brought/sb=x |\n",
     "slow",
     false,
     false,
     false,
     false,
     0},
    {{&slow, &brought}, offered, 3, "2 brought/sb=x |\n", "slow", false, false, false, false, 0},
    // What is not there any more makes room for the next one.
    {{&slow, &brought},
     others_offered,
     2,
     "5 slow |\n2 brought/sb=x |\n",
     "slow",
     false,
     false,
     false,
     false,
     0},
    {{&slow, &quick, &brought},
     others_offered,
     2,
     "5 slow |\n3 quick |\n2 brought/sb=x |\n1 brought/sa=x |\n",
     "quick",
     false,
     false,
     false,
     false,
     0},
};

static void expect_library_row(const library_row_t* r) {
  char text[256];
  assay_candidate_t candidates[ASSAY_MAX_CANDIDATES];
  static const assay_layer_t layer = {.name = "a layer", .n_nodes = 0};
  const assay_sized_layer_t sized = {.layer = &layer};
  assay_choice_setting_t setting = {
      .tactics = r->table, .machine = "any", .time = time_of, .same_bits = same_bits};
  while (setting.n_tactics < 3 && r->table[setting.n_tactics]) setting.n_tactics++;
  snprintf(text, sizeof text, "assay timing cache 1\nany\n%s", r->text);
  const assay_backend_options_t o = {.measure = r->measure,
                                     .batch_variant = r->any,
                                     .timings = text,
                                     .timings_bytes = strlen(text),
                                     .forced = r->forced ? "brought/oa a layer\n" : NULL};
  assay_choice_t* c = NULL;
  library = r->offers;
  n_library = r->n;
  compared = 0;
  op_case_ok(assay_choice_create(&setting, &o, &c));
  for (int again = 0; again < 2; again++) {
    assay_kernel_t* k = NULL;
    int n = 0, left_out = 0;
    op_case_ok(assay_choose(c, &sized, &k, candidates, &n));
    expect(k ? k->name : NULL, r->taken);
    for (int i = 0; i < n; i++) left_out += candidates[i].differs;
    assert_int_equal(left_out, r->left_out);
    if (k) k->destroy(k);
  }
  if (!r->compares || r->table[0] == &never || r->table[1] == &never)
    assert_int_equal(compared, 0);
  else
    assert_true(compared > 0);
  assay_choice_destroy(c);
}

static void bits_of_a_library_are_looked_at(void** state) {
  (void)state;
  for (size_t i = 0; i < sizeof library_rows / sizeof *library_rows; i++) {
    print_message("row %zu\n", i);
    expect_library_row(&library_rows[i]);
  }
}

// A plan is made with these: times, and what was left out.
static void what_was_found_is_kept(void** state) {
  static const assay_tactic_t* const table[] = {&slow, &brought};
  const assay_choice_setting_t setting = {
      .tactics = table, .n_tactics = 2, .machine = "any", .time = time_of, .same_bits = same_bits};
  const assay_backend_options_t o = {.measure = true};
  assay_choice_t* c = NULL;
  assay_str_t text = {0};
  bool measured = false;
  int n = 0;
  (void)state;
  library = offered;
  n_library = 3;
  op_case_ok(assay_choice_create(&setting, &o, &c));
  expect(take(c, &n), "brought/sa");
  op_case_ok(assay_choice_timings(c, &text, &measured));
  assert_true(measured);
  assert_string_equal(assay_str_get(&text),
                      "assay timing cache 1\nany\n0 brought/oa!x |\n97 brought/sa=x |\n98 "
                      "brought/sb=x |\n115 slow |\n");
  assay_choice_destroy(c);
  const assay_backend_options_t later = {.timings = assay_str_get(&text),
                                         .timings_bytes = strlen(assay_str_get(&text))};
  op_case_ok(assay_choice_create(&setting, &later, &c));
  expect(take(c, &n), "brought/sa");
  assert_int_equal(n, 4);
  assay_choice_destroy(c);
  assay_str_deinit(&text);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_same_bits_compete),
      cmocka_unit_test(variants_compete),
      cmocka_unit_test(times_of_variants_are_kept),
      cmocka_unit_test(known_times_do_not_change_bits),
      cmocka_unit_test(unknown_tactics_of_other_bits_come_first),
      cmocka_unit_test(forced_tactics),
      cmocka_unit_test(scratch_is_limited),
      cmocka_unit_test(bits_of_a_library_are_looked_at),
      cmocka_unit_test(what_was_found_is_kept),
  };
  return cmocka_run_group_tests_name("choice", tests, NULL, NULL);
}
