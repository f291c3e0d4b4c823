// polygraphy debug: regular expressions, what counts as a failure, names of files that are put
// aside, numbers, and the order in which things are tried.
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "frontends/polygraphy/debug/debug_loop.h"
#include "frontends/polygraphy/debug/debug_search.h"

// ---- regular expressions ------------------------------------------------------------------------

static void regexes(void** state) {
  static const struct {
    const char *python, *text;
    bool matches;
  } rows[] = {
      {"err", "an error", true},
      {"err", "fine", false},
      {"e\\w+r", "error", true},
      {"e\\w+r", "e r", false},
      {"\\d+\\.\\d", "took 12.5 s", true},
      {"\\d\\.\\d", "1x5", false},
      {"a\\sb", "a\tb", true},
      {"a\\Sb", "a b", false},
      {"\\D", "123", false},
      {"\\W", "a_1", false},
      {"[\\d,]+;", "1,2;", true},
      {"^[\\w-]+$", "a-b_1", true},
      {"^[\\w-]+$", "a b", false},
      {"[^\\s]x", " x", false},
      {"[]a]", "]", true},
      {"[\\]]", "]", true},
      {"[\\]]", "\\", false},
      {"[a\\-z]", "m", false},
      {"[a\\-z]", "-", true},
      {"[\\^]", "^", true},
      {"[\\^]", "a", false},
      {"[.]", "a", false},
      {"(?:ab)+c", "ababc", true},
      {"(?i)nan", "NaN", true},
      {"nan", "NaN", false},
      {"a.*?b", "axxb", true},
      {"a.b", "a\nb", false},
      {"^b$", "a\nb\nc", true},
      {"\\bin\\b", "a in b", true},
      {"\\bin\\b", "main", false},
      {"a\\nb", "a\nb", true},
      {"\\(x\\)", "(x)", true},
      {"FAILED|Error", "an Error", true},
      {"x{2,3}y", "xxy", true},
      {"[[:digit:]]z", "7z", true},
  };
  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    regex_t r;
    assay_status_t st = pg_regex_compile(rows[i].python, &r);
    if (st) fail_msg("'%s': %s", rows[i].python, assay_status_message(st));
    if ((regexec(&r, rows[i].text, 0, NULL, 0) == 0) != rows[i].matches)
      fail_msg("'%s' on '%s': %d was expected", rows[i].python, rows[i].text, rows[i].matches);
    regfree(&r);
  }
}

static void bad_regexes(void** state) {
  static const struct {
    const char *python, *message;
  } rows[] = {{"(", "Unmatched"},     {"[a", "not closed"},  {"a\\", "ends with"},
              {"(?=a)", "not there"}, {"\\Aa", "not there"}, {"(?P<n>a)", "not there"},
              {"[\\D]", "not there"}, {"\\q", "not there"},  {"[", "not closed"}};
  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    regex_t r;
    assay_status_t st = pg_regex_compile(rows[i].python, &r);
    if (!st || !strstr(assay_status_message(st), rows[i].message))
      fail_msg("'%s': %s; '%s' was expected", rows[i].python,
               st ? assay_status_message(st) : "(good)", rows[i].message);
    assay_status_free(st);
  }
}

// ---- commands and verdicts ----------------------------------------------------------------------

static void commands(void** state) {
  const char* words[] = {"sh", "-c", "printf 'a\\0b'; echo no >&2; exit 3", NULL};
  const char* killed[] = {"sh", "-c", "kill -9 $$", NULL};
  const char* left[] = {"sh", "-c", "sleep 5 & echo x", NULL};  // does not wait for what is left
  const char* missing[] = {"./there/is/none", NULL};
  pg_ended_t e = {0};
  (void)state;
  assert_null(pg_command_run(words, &e));
  assert_int_equal(e.status, 3);
  assert_string_equal(assay_str_get(&e.out), "a b");
  assert_string_equal(assay_str_get(&e.err), "no\n");
  pg_ended_deinit(&e);
  assert_null(pg_command_run(killed, &e));
  assert_int_equal(e.status, -9);
  pg_ended_deinit(&e);
  assert_null(pg_command_run(left, &e));
  assert_string_equal(assay_str_get(&e.out), "x\n");
  pg_ended_deinit(&e);
  assay_status_t st = pg_command_run(missing, &e);
  assert_int_equal(assay_status_code(st), ASSAY_NOT_FOUND);
  assay_status_free(st);
}

static void verdicts(void** state) {
  static const int codes[] = {2, -9};
  static const struct {
    bool codes, ignore;
    const char* regex;
    int status;
    const char *out, *err;
    bool passes;
  } rows[] = {
      {false, false, NULL, 0, "", "", true},      {false, false, NULL, 1, "", "", false},
      {false, false, NULL, -9, "", "", false},    {true, false, NULL, 2, "", "", false},
      {true, false, NULL, 1, "", "", true},       {true, false, NULL, 0, "", "", true},
      {true, false, NULL, -9, "", "", false},     {true, true, NULL, 2, "", "", true},
      {true, true, NULL, 1, "", "", false},       {true, true, NULL, 0, "", "", true},
      {false, false, "bad", 0, "bad", "", false}, {false, false, "bad", 0, "", "so bad", false},
      {false, false, "bad", 1, "fine", "", true}, {true, false, "bad", 2, "bad", "", false},
      {true, false, "bad", 1, "bad", "", true},   {true, false, "bad", 2, "fine", "", true},
      {true, true, "bad", 2, "bad", "", true},    {true, true, "bad", 0, "bad", "", false},
      {true, true, "bad", 1, "fine", "", true},
  };
  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    regex_t r;
    pg_judge_t j = {.codes = codes, .n_codes = rows[i].codes ? 2 : 0, .ignore = rows[i].ignore};
    pg_ended_t e = {.status = rows[i].status};
    if (rows[i].regex) assert_null(pg_regex_compile(rows[i].regex, &r));
    j.regexes = &r;
    j.n_regexes = rows[i].regex ? 1 : 0;
    assay_str_append(&e.out, rows[i].out);
    assay_str_append(&e.err, rows[i].err);
    if (pg_judge_passes(&j, &e) != rows[i].passes)
      fail_msg("row %zu: %d was expected", i, rows[i].passes);
    pg_ended_deinit(&e);
    pg_judge_deinit(&j);
  }
}

// ---- names and numbers --------------------------------------------------------------------------

static void artifact_names(void** state) {
  static const struct {
    const char* path;
    bool good;
    size_t index;
    const char *suffix, *name;
  } rows[] = {
      {"art.txt", true, 0, NULL, "d/good/art_S_N0.txt"},
      {"art.txt", false, 12, "outputs", "d/bad/art_S_N12_outputs.txt"},
      {"q/w/b.tar.gz", true, 1, NULL, "d/good/b.tar_S_N1.gz"},
      {".h", true, 0, NULL, "d/good/.h_S_N0"},
      {"a.d/none", true, 0, NULL, "d/good/none_S_N0"},
      {"fold.d/", false, 3, "inputs", "d/bad/fold_S_N3_inputs.d"},
      {"/tmp/.x.y", true, 0, NULL, "d/good/.x_S_N0.y"},
  };
  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    assay_str_t name = {0};
    pg_artifact_name("d", rows[i].good, rows[i].path, "S", rows[i].index, rows[i].suffix, &name);
    assert_string_equal(assay_str_get(&name), rows[i].name);
    assay_str_deinit(&name);
  }
}

// As Python's repr() has them.
static void numbers(void** state) {
  static const struct {
    double x;
    const char* text;
  } rows[] = {{0, "0.0"},
              {100, "100.0"},
              {50, "50.0"},
              {200.0 / 3, "66.66666666666667"},
              {0.006856679916381836, "0.006856679916381836"},
              {1.3828277587890625e-05, "1.3828277587890625e-05"},
              {1e-5, "1e-05"},
              {0.0001, "0.0001"},
              {123456789, "123456789.0"},
              {1e16, "1e+16"},
              {0.1, "0.1"},
              {12.5, "12.5"}};
  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    assay_str_t text = {0};
    pg_put_float(&text, rows[i].x);
    assert_string_equal(assay_str_get(&text), rows[i].text);
    assay_str_deinit(&text);
  }
}

// ---- orders -------------------------------------------------------------------------------------

// What is tried where numbers from `min` on are hits, as "2 1 0 >1".
static void search(pg_search_mode_t mode, size_t top, bool known, size_t min, assay_str_t* out) {
  pg_search_t h = pg_search_begin(mode, top, known);
  for (int n = 0; !h.done && n < 50; n++) {
    assay_str_printf(out, "%zu ", h.at);
    pg_search_record(&h, h.at >= min);
  }
  if (h.found)
    assay_str_printf(out, ">%zu", h.best);
  else
    assay_str_append(out, "none");
}

static void orders(void** state) {
  static const struct {
    pg_search_mode_t mode;
    size_t top;
    bool known;
    size_t min, about;
    const char* tried;
  } rows[] = {
      {PG_SEARCH_BISECT, 4, true, 1, 3, "2 1 0 >1"},  // of 5 nodes: m, e, c
      {PG_SEARCH_BISECT, 4, true, 0, 3, "2 1 0 >0"},
      {PG_SEARCH_BISECT, 4, true, 4, 3, "2 3 >4"},
      {PG_SEARCH_BISECT, 1, true, 0, 1, "0 >0"},
      {PG_SEARCH_BISECT, 1, true, 1, 1, "0 >1"},
      {PG_SEARCH_BISECT, 0, true, 0, 0, ">0"},
      {PG_SEARCH_BISECT, 8, false, 5, 5, "8 4 6 5 >5"},
      {PG_SEARCH_BISECT, 8, false, 9, 5, "8 none"},
      {PG_SEARCH_BISECT, 8, false, 0, 5, "8 4 2 1 0 >0"},
      {PG_SEARCH_BISECT, 0, false, 0, 1, "0 >0"},
      {PG_SEARCH_UP, 4, false, 2, 5, "0 1 2 >2"},
      {PG_SEARCH_UP, 4, false, 5, 5, "0 1 2 3 4 none"},
      {PG_SEARCH_DOWN, 4, true, 2, 4, "3 2 1 0 >2"},
      {PG_SEARCH_DOWN, 4, false, 4, 5, "4 3 2 1 0 >4"},
      {PG_SEARCH_DOWN, 0, true, 0, 0, ">0"},
  };
  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    const pg_search_t begun = pg_search_begin(rows[i].mode, rows[i].top, rows[i].known);
    assay_str_t tried = {0};
    search(rows[i].mode, rows[i].top, rows[i].known, rows[i].min, &tried);
    if (strcmp(assay_str_get(&tried), rows[i].tried) != 0)
      fail_msg("row %zu: %s; '%s' was expected", i, assay_str_get(&tried), rows[i].tried);
    if (pg_search_max_tries(&begun) != rows[i].about)
      fail_msg("row %zu: about %zu; %zu was expected", i, pg_search_max_tries(&begun),
               rows[i].about);
    assay_str_deinit(&tried);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(regexes),        cmocka_unit_test(bad_regexes), cmocka_unit_test(commands),
      cmocka_unit_test(verdicts),       cmocka_unit_test(numbers),     cmocka_unit_test(orders),
      cmocka_unit_test(artifact_names),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
