// Polygraphy's comparisons: numbers worked out by hand (or by NumPy, where it is said), and lines
// as the tool prints them.
#include <unistd.h>

#include "base/file.h"
#include "compare/comparison.h"
#include "compare/numeric.h"
#include "ops/image/image_codec.h"
#include "ops/op_case.h"

#define NAN_ ((double)NAN)
#define INF_ ((double)INFINITY)

// ---- what is compared ---------------------------------------------------------------------------

typedef struct setting {
  assay_metric_t metric;
  assay_error_stat_t stat;
  double atol, rtol;  // 0: the default
  double quantile;
  int64_t tolerance;
  bool infinities_equal, no_shape_check;
} setting_t;

typedef struct fixture {
  assay_comparing_settings_t comparison;
  assay_comparing_t run;
  assay_tolerances_t tolerances;
  assay_str_t text;
  int minimum;
} fixture_t;

static void put_line(void* self, assay_severity_t severity, int depth, const char* text) {
  fixture_t* f = self;
  const char mark = severity < ASSAY_LOG_INFO      ? 'V'
                    : severity < ASSAY_LOG_WARNING ? 'I'
                    : severity < ASSAY_LOG_ERROR   ? 'W'
                                                   : 'E';
  assay_str_printf(&f->text, "[%c] %*s", mark, 4 * depth, "");
  for (; *text; text++)
    if (*text == '\n')
      assay_str_printf(&f->text, "\n%*s", 4 + 4 * depth, "");
    else
      assay_str_append_n(&f->text, text, 1);
  assay_str_append(&f->text, "\n");
}

static bool shows(void* self, assay_severity_t severity) {
  return (int)severity >= ((const fixture_t*)self)->minimum;
}

static assay_status_t tolerances_of(void* self, const char* output, assay_tolerances_t* out) {
  (void)output;
  *out = ((const fixture_t*)self)->tolerances;
  return NULL;
}

static void begin(fixture_t* f, const setting_t* s) {
  *f = (fixture_t){.comparison = {.metrics = {s->metric},
                                  .n_metrics = 1,
                                  .infinities_equal = s->infinities_equal,
                                  .no_shape_check = s->no_shape_check,
                                  .tolerances = tolerances_of},
                   .minimum = ASSAY_LOG_INFO};
  f->comparison.self = f;
  f->comparison.log = (assay_compare_log_t){.line = put_line, .shows = shows, .self = f};
  assay_tolerances_init(&f->tolerances);
  f->tolerances.stat = s->stat;
  if (s->atol != 0) f->tolerances.atol.x = s->atol;
  if (s->rtol != 0) f->tolerances.rtol.x = s->rtol;
  if (s->quantile != 0) f->tolerances.quantile = s->quantile;
  f->tolerances.index_tolerance = s->tolerance;
}

static void start(fixture_t* f) {
  size_t pair = 1;
  op_case_ok(assay_comparing_check(&f->comparison));
  op_case_ok(assay_comparing_begin(&f->comparison, &f->run));
  op_case_ok(assay_comparing_add_pair(&f->run, "A", "B", &pair));
  assert_int_equal(pair, 0);
}

static void end(fixture_t* f) {
  assay_comparing_deinit(&f->run);
  assay_str_deinit(&f->text);
}

// "name=float[2] 1 2; other=..." as outputs.
static void outputs_of(const char* text, assay_set_t* out) {
  char part[512], name[64];
  *out = (assay_set_t){0};
  while (*text) {
    const size_t n = strcspn(text, ";"), equals = strcspn(text, "=");
    snprintf(part, sizeof part, "%.*s", (int)(n - equals - 1), text + equals + 1);
    snprintf(name, sizeof name, "%.*s", (int)equals, text);
    op_case_ok(assay_set_add(out, name, op_case_tensor(part)));
    text += n + (text[n] == ';');
    text += strspn(text, " ");
  }
}

static bool compare(fixture_t* f, const char* first, const char* second) {
  assay_set_t a, b;
  bool failed = false;
  outputs_of(first, &a);
  outputs_of(second, &b);
  op_case_ok(assay_comparing_iteration(&f->run, 0, &a, &b, &failed));
  assay_set_deinit(&a);
  assay_set_deinit(&b);
  return !failed;
}

static const assay_compared_t* compared(const fixture_t* f, size_t run, size_t output) {
  return &f->run.results.items[0].pairs[0].runs[run].outputs[output];
}

static bool same(double x, double y) {
  return x == y || (isnan(x) && isnan(y)) || fabs(x - y) <= 1e-7 * fabs(y);
}

// ---- tolerances ---------------------------------------------------------------------------------

static const struct {
  const char *a, *b;
  setting_t how;
  bool passes;
  double abs, rel;  // of the statistic that is checked
} tolerances[] = {
    {"float[4] 1 2 3 4", "float[4] 1 2 3 4", {0}, true, 0, 0},
    {"float[4] 1 2 3 4", "float[4] 1 2 3 5", {0}, false, 1, (double)0.2f},
    {"float[4] 1 2 3 4", "float[4] 1 2 3 5", {.atol = 1}, true, 1, (double)0.2f},
    // 0.2 as float32 is what is compared with float32
    {"float[4] 1 2 3 4", "float[4] 1 2 3 5", {.rtol = 0.2}, true, 1, (double)0.2f},
    {"double[4] 1 2 3 4", "double[4] 1 2 3 5", {.rtol = 0.2}, true, 1, 0.2},
    {"float[4] 1 2 3 4", "float[4] 1 2 3 5", {.rtol = 0.19}, false, 1, (double)0.2f},
    // both have to be passed in the same element
    {"float[2] 1 100", "float[2] 1.5 100.5", {.atol = 0.6, .rtol = 0.01}, true, 0.5, 1.0 / 3},
    {"float[2] 1 100", "float[2] 1.5 100.5", {.atol = 0.1, .rtol = 0.01}, false, 0.5, 1.0 / 3},
    {"float[2] 1 100", "float[2] 1 101", {.atol = 0.1, .rtol = 0.01}, true, 1, 1.0 / 101},
    {"float[2] 10 100", "float[2] 11 100", {.stat = ASSAY_STAT_MAX, .atol = 1}, true, 1, 1.0 / 11},
    {"float[4] 1 2 3 4",
     "float[4] 1 2 3 8",
     {.stat = ASSAY_STAT_MEAN, .atol = 0.9, .rtol = 0.2},
     true,
     1,
     0.125},
    {"float[4] 1 2 3 4",
     "float[4] 1 2 3 8",
     {.stat = ASSAY_STAT_MEAN, .atol = 0.9, .rtol = 0.1},
     false,
     1,
     0.125},
    {"float[5] 1 2 3 4 5", "float[5] 1 2 3 9 9", {.stat = ASSAY_STAT_MEDIAN}, true, 0, 0},
    // by NumPy: between 1 / 2 and 2 / 3
    {"float[4] 1 1 1 1",
     "float[4] 1 2 3 4",
     {.stat = ASSAY_STAT_MEDIAN},
     false,
     1.5,
     0.5833333730697632},
    // 0.75 * 3 = 2.25: a quarter of the way from 2 to 3
    {"float[4] 1 1 1 1",
     "float[4] 1 2 3 4",
     {.stat = ASSAY_STAT_QUANTILE, .quantile = 0.75},
     false,
     2.25,
     0.6875},
    {"float[1] nan", "float[1] nan", {0}, false, NAN_, NAN_},
    {"float[2] nan 1", "float[2] 1 1", {.stat = ASSAY_STAT_MEAN, .atol = 9}, false, NAN_, NAN_},
    {"float[2] inf -inf", "float[2] inf -inf", {0}, false, NAN_, NAN_},
    {"float[2] inf -inf", "float[2] inf -inf", {.infinities_equal = true}, true, 0, 0},
    {"float[1] inf", "float[1] -inf", {.infinities_equal = true}, false, INF_, NAN_},
    // 1e-20 / 2.220446e-16
    {"float[2] 1e-20 1", "float[2] 0 1", {0}, true, 1e-20, 4.503599627370496e-05},
    {"bool[3] 1 0 1", "bool[3] 1 0 1", {0}, true, 0, NAN_},
    {"bool[2] 1 1", "bool[2] 1 0", {0}, false, 1, INF_},
    {"int8[2] -128 5", "int8[2] 127 5", {0}, false, 255, 255.0 / 127},
    {"uint8[2] 0 5", "uint8[2] 255 5", {0}, false, 255, 1},
    {"uint32[2] 0 4000000000", "uint32[2] 1 4000000000", {0}, false, 1, 1},
    {"int32[1] 7", "int32[1] 0", {0}, false, 7, INF_},  // integers have no epsilon
    {"uint64[1] 0",
     "uint64[1] 1",
     {0},
     false,
     18446744073709551615.0,
     18446744073709551615.0},  // wraps, as in NumPy
    {"float16[2] 1 2",
     "float16[2] 1 2.001953125",
     {.rtol = 0.001},
     true,
     0.001953125,
     (double)(0.001953125f / 2.001953125f)},
    {"float[0]", "float[0]", {0}, true, 0, 0},
    {"float[] 1.5", "float[] 1.25", {0}, false, 0.25, (double)0.2f},
};

static void tolerances_hold_or_not(void** state) {
  (void)state;
  for (size_t i = 0; i < sizeof tolerances / sizeof *tolerances; i++) {
    char a[256], b[256];
    fixture_t f;
    const setting_t how = tolerances[i].how;
    begin(&f, &how);
    start(&f);
    snprintf(a, sizeof a, "y=%s", tolerances[i].a);
    snprintf(b, sizeof b, "y=%s", tolerances[i].b);
    const bool passes = compare(&f, a, b);
    const assay_compared_t* c = compared(&f, 0, 0);
    const int at = how.stat == ASSAY_STAT_ELEMWISE ? ASSAY_DIFF_MAX : (int)how.stat - 1;
    if (passes != tolerances[i].passes || !c->diffs[at].known ||
        !same(c->diffs[at].abs, tolerances[i].abs) || !same(c->diffs[at].rel, tolerances[i].rel))
      fail_msg("row %zu: %s, abs %.17g, rel %.17g\n%s", i, passes ? "passes" : "fails",
               c->diffs[at].abs, c->diffs[at].rel, assay_str_get(&f.text));
    assert_int_equal(c->decided, how.stat == ASSAY_STAT_ELEMWISE);
    assert_int_equal(c->diffs[ASSAY_DIFF_QUANTILE].known, how.stat == ASSAY_STAT_QUANTILE);
    end(&f);
  }
}

// ---- one number ---------------------------------------------------------------------------------

static const struct {
  assay_metric_t metric;
  const char *a, *b;
  double limit, value;
  bool passes;
  const char* line;
} numbers[] = {
    {ASSAY_METRIC_L2, "float[2] 3 4", "float[2] 0 0", 5, 5, true,
     "L2 Norm: 5 (tolerance: 5) | PASSED"},
    {ASSAY_METRIC_L2, "float[2] 3 4", "float[2] 0 0", 4.9, 5, false,
     "L2 Norm: 5 (tolerance: 4.9) | FAILED"},
    {ASSAY_METRIC_L2, "int8[2] 100 -100", "int8[2] -100 100", 1e-5, 282.84271247461903, false,
     "L2 Norm: 282.84 (tolerance: 1e-05) | FAILED"},
    // digits until the two can be told apart
    {ASSAY_METRIC_L2, "double[1] 1.00000001", "double[1] 0", 1, 1.00000001, false,
     "L2 Norm: 1.00000001 (tolerance: 1) | FAILED"},
    {ASSAY_METRIC_COSINE, "float[2] 1 0", "float[2] 0 1", 0.997, 0, false,
     "Cosine Similarity: 0 (min required: 0.997) | FAILED"},
    {ASSAY_METRIC_COSINE, "float[2] 1 2", "float[2] 2 4", 0.997, 1, true, "PASSED"},
    {ASSAY_METRIC_COSINE, "float[2] 0 0", "float[2] 0 0", 0.997, 1, true, "PASSED"},
    {ASSAY_METRIC_COSINE, "float[2] 0 0", "float[2] 0 1", 0.997, 0, false, "FAILED"},
    {ASSAY_METRIC_COSINE, "float[2] inf 0", "float[2] 1 1", 0.997, NAN_, false,
     "Cosine Similarity: nan"},
    {ASSAY_METRIC_PSNR, "float[2] 10 0", "float[2] 9 1", 30, 20, false,
     "PSNR: 20 dB (min required: 30 dB) | FAILED"},
    {ASSAY_METRIC_PSNR, "float[2] -1 -1", "float[2] -2 -2", -1, 0, true,
     "PSNR: 0 dB (min required: -1 dB) | PASSED"},
    {ASSAY_METRIC_PSNR, "float[1] 1", "float[1] 1", 30, INF_, true, "PSNR: inf dB"},
    {ASSAY_METRIC_SNR, "float[2] 10 10", "float[2] 9 11", 20, 20, true,
     "SNR: 20 dB (min required: 20 dB) | PASSED"},
    {ASSAY_METRIC_SNR, "float[1] 0", "float[1] 1", 20, -INF_, false, "SNR: -inf dB"},
    {ASSAY_METRIC_SNR, "float[1] 5", "float[1] 5", 20, INF_, true, "SNR: inf dB"},
};

static void numbers_are_right(void** state) {
  (void)state;
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
    char a[256], b[256];
    fixture_t f;
    const setting_t how = {.metric = numbers[i].metric};
    begin(&f, &how);
    f.tolerances.limit[how.metric].x = numbers[i].limit;
    start(&f);
    snprintf(a, sizeof a, "y=%s", numbers[i].a);
    snprintf(b, sizeof b, "y=%s", numbers[i].b);
    const bool passes = compare(&f, a, b);
    const assay_compared_t* c = compared(&f, 0, 0);
    if (passes != numbers[i].passes || !c->known || !same(c->value, numbers[i].value) ||
        !strstr(assay_str_get(&f.text), numbers[i].line))
      fail_msg("row %zu: %.17g\n%s", i, c->value, assay_str_get(&f.text));
    end(&f);
  }
}

// ---- indices ------------------------------------------------------------------------------------

static const struct {
  const char *a, *b;
  int64_t tolerance;
  bool passes;
  const char* line;
} indices[] = {
    {"int64[3] 0 1 2", "int64[3] 0 1 2", 0, true,
     "PASSED | Difference is within index tolerance (0)"},
    {"int64[3] 0 1 2", "int64[3] 1 0 2", 0, false,
     "FAILED | Difference exceeds index tolerance (0)"},
    {"int64[3] 0 1 2", "int64[3] 1 0 2", 1, true, "index tolerance (1)"},
    {"int64[3] 0 1 2", "int64[3] 1 2 0", 1, false,
     "FAILED | Difference exceeds index tolerance (1)"},
    {"int64[3] 0 1 2", "int64[3] 1 2 0", 2, true, "index tolerance (2)"},
    {"int64[3] 0 1 7", "int64[3] 0 1 2", 0, false, "FAILED | Value: 7 not found in output"},
    {"int64[3] 0 1 7", "int64[3] 0 1 2", 1, true, "PASSED"},  // the last one is not looked at
    {"int64[2,2] 0 1 2 3", "int64[2,2] 0 1 3 2", 0, false, "exceeds"},
    {"int64[3] 0 1 2", "int64[2] 0 1", 0, false, "Cannot compare outputs of different shapes."},
    {"int64[2] 0 1", "int64[2] 5 6", 9, true, "PASSED"},
};

static void indices_may_be_near(void** state) {
  (void)state;
  for (size_t i = 0; i < sizeof indices / sizeof *indices; i++) {
    char a[256], b[256];
    fixture_t f;
    const setting_t how = {.metric = ASSAY_METRIC_INDICES, .tolerance = indices[i].tolerance};
    begin(&f, &how);
    start(&f);
    snprintf(a, sizeof a, "y=%s", indices[i].a);
    snprintf(b, sizeof b, "y=%s", indices[i].b);
    if (compare(&f, a, b) != indices[i].passes || !strstr(assay_str_get(&f.text), indices[i].line))
      fail_msg("row %zu\n%s", i, assay_str_get(&f.text));
    assert_false(compared(&f, 0, 0)->measured);
    end(&f);
  }
}

// ---- shapes and names ---------------------------------------------------------------------------

static const struct {
  const char *a, *b;
  bool check, passes;
  const char* line;
} shapes[] = {
    {"float[2,2] 1 2 3 4", "float[4] 1 2 3 4", true, false,
     "Note: Output shapes are (2, 2) and (4,)."},
    {"float[2,2] 1 2 3 4", "float[4] 1 2 3 4", false, true,
     "Reshaped array from shape: (4,) to: (2, 2)"},
    {"float[1,2] 1 2", "float[2,1,1] 1 2", false, true,
     "Reshaped array from shape: (2, 1, 1) to: (1, 2)"},
    {"float[2,3] 1 2 3 4 5 6", "float[3,2] 1 4 2 5 3 6", false, true,
     "Permuted array of shape: (3, 2) to: (2, 3) using permutation [1, 0]"},
    {"float[2,3] 1 2 3 4 5 6", "float[3,2] 1 2 3 4 5 6", false, false, "Permuted"},
    {"float[1,6] 1 2 3 4 5 6", "float[3,2] 1 2 3 4 5 6", false, true,
     "Reshaped array from shape: (3, 2) to: (1, 6)"},
    {"float[2,3,1] 1 2 3 4 5 6", "float[1,3,2] 1 4 2 5 3 6", false, true,
     "using permutation [2, 1, 0]"},
    {"float[2] 1 2", "float[3] 1 2 3", false, false,
     "Could not reshape array from shape: (3,) to (2,). Skipping reshape."},
};

static void shapes_are_matched_where_asked(void** state) {
  (void)state;
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
    char a[256], b[256];
    fixture_t f;
    const setting_t how = {.no_shape_check = !shapes[i].check};
    begin(&f, &how);
    start(&f);
    snprintf(a, sizeof a, "y=%s", shapes[i].a);
    snprintf(b, sizeof b, "y=%s", shapes[i].b);
    if (compare(&f, a, b) != shapes[i].passes || !strstr(assay_str_get(&f.text), shapes[i].line))
      fail_msg("row %zu\n%s", i, assay_str_get(&f.text));
    end(&f);
  }
}

static const struct {
  const char *a, *b;
  const char* others[2];  // of the outputs compared, in order; NULL: skipped
  const char* line;
} names[] = {
    {"x=float[1] 1; y=float[1] 2", "y=float[1] 2; x=float[1] 1", {"x", "y"}, "All outputs matched"},
    {"prob=float[1] 1",
     "Prob_1=float[1] 1",
     {"Prob_1"},
     "Assuming B output: Prob_1 corresponds to output: prob"},
    {"a=float[1] 1; b=float[1] 2",
     "q=float[1] 1; r=float[1] 2",
     {"q", "r"},
     "r corresponds to output: b"},
    // a name with an output of its own is not taken
    {"yy=float[1] 1; y=float[1] 2", "y=float[1] 2", {"y"}, "Output: 'yy' [A] is skipped"},
    {"a=float[1] 1; b=float[1] 2", "q=float[1] 1", {"q"}, "Output: 'b' [A] is skipped"},
};

static void outputs_go_with_the_nearest_name(void** state) {
  (void)state;
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    fixture_t f;
    const setting_t how = {0};
    begin(&f, &how);
    start(&f);
    if (!compare(&f, names[i].a, names[i].b) || !strstr(assay_str_get(&f.text), names[i].line))
      fail_msg("row %zu\n%s", i, assay_str_get(&f.text));
    const assay_compared_run_t* run = &f.run.results.items[0].pairs[0].runs[0];
    for (size_t k = 0; k < run->n; k++)
      assert_string_equal(run->outputs[k].other, names[i].others[k]);
    assert_int_equal(run->n, 1 + (names[i].others[1] != NULL));
    end(&f);
  }
}

static void nothing_in_common_is_an_error(void** state) {
  (void)state;
  fixture_t f;
  assay_set_t a, b = {0};
  const setting_t how = {0};
  bool failed;
  begin(&f, &how);
  start(&f);
  outputs_of("x=float[1] 1", &a);
  assay_status_t st = assay_comparing_iteration(&f.run, 0, &a, &b, &failed);
  assert_non_null(st);
  assert_non_null(strstr(assay_status_message(st), "no common outputs"));
  assay_status_free(st);
  assay_set_deinit(&a);
  end(&f);
}

// ---- lines --------------------------------------------------------------------------------------

// A run of Polygraphy 0.53.6, but for the lines of the second output; the numbers are as it printed
// them.
static const char failing_first[] =
    "prob=float[2,5] 0.2072589 0.21669109 0.13640611 0.26862144 0.17102243 0.2150111 0.21533428 "
    "0.13020597 0.2703826 0.16906601";
static const char failing_second[] =
    "prob=float[2,5] 0.2083578 0.21558678 0.13640578 0.2700369 0.1696128 0.21622463 0.21413253 "
    "0.13019516 0.27189913 0.1675486";
static const char failing_lines[] =
    "[I]     simple | Comparing Output: 'prob' (dtype=float32, shape=(2, 5)) with 'prob' "
    "(dtype=float32, shape=(2, 5))\n"
    "[I]         Tolerance: [abs=0.0001, rel=0.0001] | Checking elemwise error\n"
    "[I]         Error Metrics: prob\n"
    "[I]             Minimum Required Tolerance: elemwise error | [abs=0.0015174] OR "
    "[rel=0.0090566] (requirements may be lower if both abs/rel tolerances are set)\n"
    "[I]             Absolute Difference | Stats: mean=0.0010489, std-dev=0.00054183, "
    "var=2.9358e-07, median=0.0012076, min=3.2783e-07 at (0, 2), max=0.0015174 at (1, 4), "
    "avg-magnitude=0.0010489, p90=0.0015166, p95=0.001517, p99=0.0015173\n"
    "[I]                 ---- Values ----\n"
    "                        [[1.0989010e-03 1.1043102e-03 3.2782555e-07 1.4154613e-03 "
    "1.4096349e-03]\n"
    "                         [1.2135208e-03 1.2017488e-03 1.0818243e-05 1.5165210e-03 "
    "1.5174150e-03]]\n"
    "[I]                 ---- Histogram ----\n"
    "                    Bin Range            |  Num Elems | Visualization\n"
    "                    (3.28e-07, 0.000152) |          2 | ####################\n"
    "                    (0.000152, 0.000304) |          0 | \n"
    "                    (0.000304, 0.000455) |          0 | \n"
    "                    (0.000455, 0.000607) |          0 | \n"
    "                    (0.000607, 0.000759) |          0 | \n"
    "                    (0.000759, 0.000911) |          0 | \n"
    "                    (0.000911, 0.00106 ) |          0 | \n"
    "                    (0.00106 , 0.00121 ) |          4 | "
    "########################################\n"
    "                    (0.00121 , 0.00137 ) |          0 | \n"
    "                    (0.00137 , 0.00152 ) |          4 | "
    "########################################\n"
    "[I]             Relative Difference | Stats: mean=0.0049893, std-dev=0.0027893, var=7.78e-06, "
    "median=0.0054258, min=2.4033e-06 at (0, 2), max=0.0090566 at (1, 4), avg-magnitude=0.0049893, "
    "p90=0.0083855, p95=0.008721, p99=0.0089895\n"
    "[I]                 ---- Values ----\n"
    "                        [[5.2741058e-03 5.1223463e-03 2.4033113e-06 5.2417326e-03 "
    "8.3109001e-03]\n"
    "                         [5.6123151e-03 5.6121731e-03 8.3092513e-05 5.5775130e-03 "
    "9.0565663e-03]]\n"
    "[I]                 ---- Histogram ----\n"
    "                    Bin Range            |  Num Elems | Visualization\n"
    "                    (2.4e-06 , 0.000908) |          2 | ##########################\n"
    "                    (0.000908, 0.00181 ) |          0 | \n"
    "                    (0.00181 , 0.00272 ) |          0 | \n"
    "                    (0.00272 , 0.00362 ) |          0 | \n"
    "                    (0.00362 , 0.00453 ) |          0 | \n"
    "                    (0.00453 , 0.00543 ) |          3 | "
    "########################################\n"
    "                    (0.00543 , 0.00634 ) |          3 | "
    "########################################\n"
    "                    (0.00634 , 0.00725 ) |          0 | \n"
    "                    (0.00725 , 0.00815 ) |          0 | \n"
    "                    (0.00815 , 0.00906 ) |          2 | ##########################\n"
    "[E]         FAILED | Output: 'prob' | Difference exceeds tolerance (rel=0.0001, abs=0.0001)\n"
    "[I]     A: prob | Stats: mean=0.2, std-dev=0.046007, var=0.0021166, median=0.21113, "
    "min=0.13021 at (1, 2), max=0.27038 at (1, 3), avg-magnitude=0.2, p90=0.2688, p95=0.26959, "
    "p99=0.27022\n"
    "[I]         ---- Values ----\n"
    "                [[0.2072589  0.21669109 0.13640611 0.26862144 0.17102243]\n"
    "                 [0.2150111  0.21533428 0.13020597 0.2703826  0.16906601]]\n"
    "[I]         ---- Histogram ----\n"
    "            Bin Range      |  Num Elems | Visualization\n"
    "            (0.13 , 0.144) |          2 | ########################################\n"
    "            (0.144, 0.159) |          0 | \n"
    "            (0.159, 0.173) |          2 | ########################################\n"
    "            (0.173, 0.187) |          0 | \n"
    "            (0.187, 0.201) |          0 | \n"
    "            (0.201, 0.215) |          2 | ########################################\n"
    "            (0.215, 0.229) |          2 | ########################################\n"
    "            (0.229, 0.244) |          0 | \n"
    "            (0.244, 0.258) |          0 | \n"
    "            (0.258, 0.272) |          2 | ########################################\n";

static void lines_are_those_of_the_tool(void** state) {
  (void)state;
  fixture_t f;
  const setting_t how = {.atol = 1e-4, .rtol = 1e-4};
  begin(&f, &how);
  f.comparison.fail_fast = true;
  start(&f);
  f.text.len = 0;
  assert_false(compare(&f, failing_first, failing_second));
  const size_t n = strlen(failing_lines);
  if (f.text.len < n || memcmp(f.text.text, failing_lines, n) != 0)
    assert_string_equal(assay_str_get(&f.text), failing_lines);
  assert_non_null(strstr(f.text.text + n, "[I]     B: prob | Stats: mean=0.2, std-dev=0.04663, "));
  end(&f);
}

// What -v adds, and what comes once.
static void more_is_said_to_those_who_ask(void** state) {
  (void)state;
  fixture_t f;
  const setting_t how = {0};
  begin(&f, &how);
  f.minimum = ASSAY_LOG_SUPER;
  start(&f);
  assert_false(compare(&f, "y=float[3] 0 1 2", "y=float[3] 0 1 9"));
  const char* text = assay_str_get(&f.text);
  assert_non_null(strstr(text, "Mismatched indices:\n                [[2]]\n"));
  assert_non_null(strstr(text, "| Mismatched values:\n                [2.]\n"));
  assert_non_null(strstr(text, "| Output: y: Some values are 0."));
  const size_t before = f.text.len;
  assert_false(compare(&f, "y=float[3] 0 1 2", "y=float[3] 0 1 9"));
  assert_null(strstr(assay_str_get(&f.text) + before, "Some values are 0."));
  end(&f);
}

// ---- over iterations ----------------------------------------------------------------------------

static void summaries_count_iterations(void** state) {
  (void)state;
  fixture_t f;
  const setting_t how = {0};
  begin(&f, &how);
  start(&f);
  assert_true(compare(&f, "y=float[1] 1", "y=float[1] 1"));
  assert_false(compare(&f, "y=float[1] 1", "y=float[1] 2"));
  assert_true(compare(&f, "y=float[1] 1", "y=float[1] 1"));
  f.text.len = 0;
  op_case_ok(assay_comparing_summary(&f.run));
  assert_string_equal(
      assay_str_get(&f.text),
      "[E] Accuracy Summary | A vs. B | Passed: 2/3 iterations | Pass Rate: 66.67%\n");
  end(&f);
}

static void averages_can_pass_where_iterations_fail(void** state) {
  (void)state;
  fixture_t f;
  const setting_t how = {.metric = ASSAY_METRIC_L2};
  bool passed = false;
  begin(&f, &how);
  f.comparison.check_average = true;
  f.tolerances.limit[ASSAY_METRIC_L2].x = 2;
  start(&f);
  assert_false(compare(&f, "y=float[1] 4", "y=float[1] 1"));  // 3
  assert_true(compare(&f, "y=float[1] 1", "y=float[1] 1"));   // 0: 1.5 in the mean
  f.text.len = 0;
  op_case_ok(assay_comparing_summary(&f.run));
  assert_string_equal(assay_str_get(&f.text),
                      "[I] Accuracy Summary | A vs. B | Passed: 1/1 outputs\n"
                      "[I]     y | PASSED:\n"
                      "[I]         L2 Norm: 1.5 (tolerance: 2) | PASSED\n");
  op_case_ok(assay_accuracy_results_passed(&f.run.results, &passed));
  assert_true(passed);
  end(&f);
}

static void averages_of_no_number_are_refused(void** state) {
  (void)state;
  static const struct {
    assay_metric_t metric;
    assay_error_stat_t stat;
    bool fail_fast;
    const char* word;
  } rows[] = {{ASSAY_METRIC_SIMPLE, ASSAY_STAT_ELEMWISE, false, "elemwise"},
              {ASSAY_METRIC_INDICES, ASSAY_STAT_MAX, false, "indices"},
              {ASSAY_METRIC_L2, ASSAY_STAT_MAX, true, "--fail-fast"}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    fixture_t f;
    const setting_t how = {.metric = rows[i].metric, .stat = rows[i].stat};
    begin(&f, &how);
    f.comparison.check_average = true;
    f.comparison.fail_fast = rows[i].fail_fast;
    assay_status_t st = assay_comparing_check(&f.comparison);
    assert_non_null(st);
    assert_non_null(strstr(assay_status_message(st), rows[i].word));
    assay_status_free(st);
    end(&f);
  }
}

// ---- files --------------------------------------------------------------------------------------

static const char path[] = "comparison_results.json";

static void results_are_read_back(void** state) {
  (void)state;
  fixture_t f;
  const setting_t how = {.stat = ASSAY_STAT_QUANTILE, .atol = 3};
  assay_accuracy_results_t back = {0};
  begin(&f, &how);
  f.comparison.metrics[1] = ASSAY_METRIC_PSNR;
  f.comparison.metrics[2] = ASSAY_METRIC_INDICES;
  f.comparison.n_metrics = 3;
  start(&f);
  compare(&f, "y=float[2] 1 nan; z=float[2] 1 2", "y=float[2] 1 2; z=float[2] 1 2");
  compare(&f, "y=float[2] 1 2; z=float[3] 1 2 3", "y=float[2] 1 3; z=float[2] 1 2");
  op_case_ok(assay_accuracy_results_write(path, &f.run.results));
  op_case_ok(assay_accuracy_results_read(path, &back));
  unlink(path);
  assert_int_equal(back.n, 3);
  for (size_t m = 0; m < 3; m++) {
    assert_int_equal(back.items[m].metric, f.run.results.items[m].metric);
    assert_string_equal(back.items[m].pairs[0].second, "B");
    for (size_t i = 0; i < 2; i++) {
      for (size_t k = 0; k < 2; k++) {
        const assay_compared_t* x = &f.run.results.items[m].pairs[0].runs[i].outputs[k];
        const assay_compared_t* y = &back.items[m].pairs[0].runs[i].outputs[k];
        bool before = false, after = true;
        op_case_ok(assay_compared_passed(back.items[m].metric, x, &before));
        op_case_ok(assay_compared_passed(back.items[m].metric, y, &after));
        assert_int_equal(before, after);
        assert_string_equal(x->output, y->output);
        assert_true(x->measured == y->measured && same(x->value, y->value));
        assert_true(same(x->diffs[ASSAY_DIFF_QUANTILE].abs, y->diffs[ASSAY_DIFF_QUANTILE].abs));
        assert_true(!x->measured || m || y->threshold.atol.x == 3);
      }
    }
  }
  assay_accuracy_results_deinit(&back);
  end(&f);
}

#define RESULT(of)                                      \
  "{\"lst\": [{\"lst\": [[[\"A\", \"B\"], [{\"y\": " of \
  "}]]], \"aggregation\": \"average\"}], \"polygraphy_class\": \"AccuracyResults\"}"
static const struct {
  const char *text, *error;  // NULL: it is right
} files[] = {
    {RESULT("{\"thresholds\": {\"threshold\": 1}, \"l2_norm\": NaN, \"polygraphy_class\": "
            "\"L2Result\"}"),
     NULL},
    {RESULT("true"), NULL},
    {RESULT("{\"l2_norm\": 1, \"polygraphy_class\": \"L2Result\"}"),
     "a threshold lacks 'threshold'"},
    {RESULT("{\"l2_norm\": \"much\", \"thresholds\": {\"threshold\": 1}, \"polygraphy_class\": "
            "\"L2Result\"}"),
     "'l2_norm' is not a number"},
    {RESULT("{\"polygraphy_class\": \"OutputCompareResult\", \"thresholds\": "
            "{\"check_error_stat\": \"most\"}}"),
     "check_error_stat"},
    {RESULT("{\"polygraphy_class\": \"MyResult\"}"), "MyResult"},
    {RESULT("7"), "neither true or false nor an object"},
    {"{\"lst\": [{\"lst\": [[[\"A\"], []]]}], \"polygraphy_class\": \"AccuracyResults\"}",
     "a pair of runners"},
    {"{\"lst\": [7], \"polygraphy_class\": \"AccuracyResults\"}", "'lst' is missing"},
    {"{\"lst\": [], \"polygraphy_class\": \"RunResults\"}", "no accuracy results"},
    {"[]", "no accuracy results"},
    {"{", "JSON"},
    {"", "JSON"},
};

static void files_are_checked(void** state) {
  (void)state;
  for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
    assay_accuracy_results_t r = {0};
    op_case_ok(assay_file_write(path, files[i].text, strlen(files[i].text)));
    assay_status_t st = assay_accuracy_results_read(path, &r);
    unlink(path);
    if (!!st != !!files[i].error || (st && !strstr(assay_status_message(st), files[i].error)))
      fail_msg("row %zu: %s", i, st ? assay_status_message(st) : "read");
    assay_status_free(st);
    assay_accuracy_results_deinit(&r);
  }
}

// ---- statistics ---------------------------------------------------------------------------------

// By NumPy 2.4: sums of float32 in its order, quantiles between neighbours, histograms.
static void statistics_are_those_of_numpy(void** state) {
  (void)state;
  assay_tensor_t* t = NULL;
  assay_numeric_t a = {0};
  assay_numeric_stats_t s;
  assay_numeric_bins_t bins;
  static const int64_t counts[ASSAY_NUMERIC_BINS] = {9282, 2414, 1692, 1348, 1138,
                                                     994,  889,  809,  744,  691};
  const int64_t n = 20001;
  op_case_ok(assay_tensor_create(ASSAY_TYPE_FLOAT, 1, &n, &t));
  // (i * 7919 mod 20011) / 20011 as float32, cubed as float32
  for (int64_t i = 0; i < n; i++) {
    const float x = (float)((double)(i * 7919 % 20011) / 20011);
    assay_f64(t)[i] = (double)((float)((double)x * x) * x);
  }
  op_case_ok(assay_numeric_from(t, &a));
  op_case_ok(assay_numeric_stats(&a, &s));
  assert_true(s.mean == 0.25001195073127747 && s.magnitude == s.mean);
  assert_true(s.variance == 0.0803602784872055 && s.deviation == 0.28347888588905334);
  assert_true(s.median == 0.12501873075962067);
  assert_true(s.p90 == 0.7290120720863342 && s.p95 == 0.8573141694068909 &&
              s.p99 == 0.9701682925224304);
  assert_true(s.min.at == 0 && s.max.at == 18980);
  assert_true(assay_numeric_bins(&a, NULL, &bins));
  assert_memory_equal(bins.count, counts, sizeof counts);
  assay_numeric_deinit(&a);
  assay_tensor_release(t);
}

// ---- pictures -----------------------------------------------------------------------------------

static void decode(const char* file, assay_image_t* out) {
  assay_mapping_t* m = NULL;
  op_case_ok(assay_mapping_open(file, &m));
  op_case_ok(assay_image_decode_png(assay_mapping_data(m), assay_mapping_size(m), out));
  assay_mapping_release(m);
  assert_non_null(out->rgb);
  unlink(file);
}

static const uint8_t* pixel(const assay_image_t* image, int64_t x, int64_t y) {
  return image->rgb + (y * image->width + x) * 3;
}

// Two slices of 2 x 3, 32 pixels an element: the largest error is bright, none is dark, NaN green.
static void pictures_show_where_errors_are(void** state) {
  (void)state;
  static const uint8_t dark[] = {13, 8, 135}, bright[] = {240, 249, 33}, green[] = {0, 200, 0};
  fixture_t f;
  assay_image_t map = {0}, plot = {0};
  const setting_t how = {0};
  begin(&f, &how);
  f.comparison.heatmaps = f.comparison.plots = "comparison_pictures";
  start(&f);
  assert_false(compare(&f, "a/b=float[2,2,3] 1 2 3 4 5 6 7 8 9 10 11 12",
                       "a/b=float[2,2,3] 1 2 3 4 5 8 7 8 9 nan 11 12"));
  decode("comparison_pictures/absolute_error_a_b.png", &map);
  decode("comparison_pictures/error_metrics_a_b.png", &plot);
  assert_int_equal(unlink("comparison_pictures/relative_error_a_b.png"), 0);
  rmdir("comparison_pictures");
  assert_int_equal(map.height, 64);
  assert_int_equal(map.width, 2 * (3 * 32 + 4) + 16);
  assert_memory_equal(pixel(&map, 5, 5), dark, 3);
  assert_memory_equal(pixel(&map, 2 * 32 + 5, 32 + 5), bright, 3);
  assert_memory_equal(pixel(&map, 100 + 5, 32 + 5), green, 3);
  assert_int_equal(plot.width, 960);
  assert_non_null(strstr(f.text.text, "Saving 'Absolute Error | a/b' heatmap (dark: 0, bright: 2"));
  assay_image_drop(&map);
  assay_image_drop(&plot);
  end(&f);
}

// ---- no memory ----------------------------------------------------------------------------------

// All of a comparison but the making of its inputs.
static assay_status_t compare_all(fixture_t* f, const assay_set_t* a, const assay_set_t* b) {
  size_t pair;
  bool failed;
  ASSAY_TRY(assay_comparing_begin(&f->comparison, &f->run));
  ASSAY_TRY(assay_comparing_add_pair(&f->run, "A", "B", &pair));
  ASSAY_TRY(assay_comparing_iteration(&f->run, pair, a, b, &failed));
  return assay_comparing_summary(&f->run);
}

static void each_allocation_may_fail(void** state) {
  (void)state;
  assay_set_t a, b;
  bool done = false;
  outputs_of("y=float[2,3] 1 2 3 4 5 6; z=float16[2] 0 1", &a);
  outputs_of("y=float[3,2] 1 4 2 5 3 7; zz=float[2] 0 2", &b);
  for (uint64_t n = 1; !done; n++) {
    fixture_t f;
    const setting_t how = {.no_shape_check = true};
    const int64_t live = assay_alloc_live();
    begin(&f, &how);
    f.comparison.metrics[1] = ASSAY_METRIC_COSINE;
    f.comparison.n_metrics = 2;
    f.minimum = ASSAY_LOG_SUPER;
    assay_alloc_fail_after(n, false);
    assay_status_t st = compare_all(&f, &a, &b);
    done = assay_alloc_fail_after(0, false) < n;
    if (st) assert_int_equal(assay_status_code(st), ASSAY_NO_MEMORY);
    assay_status_free(st);
    end(&f);
    assert_int_equal(assay_alloc_live(), live);
    assert_true(n < 100000);
  }
  assay_set_deinit(&a);
  assay_set_deinit(&b);
}

static int by_value(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

// Ranks of many elements of both signs and all magnitudes, in any order, are those of sorting.
static void ranks_are_those_of_sorting(void** state) {
  (void)state;
  enum { N = (1 << 15) + 1 };
  static const int64_t ranks[] = {0, 1, N / 3, N / 3 + 1, N / 2, 9 * (N / 10), N - 2, N - 1, 7};
  const int64_t n = N;
  double* sorted = malloc(N * sizeof *sorted);
  assay_tensor_t* t = NULL;
  assay_numeric_t a = {0};
  assay_ranked_t r;
  assert_non_null(sorted);
  op_case_ok(assay_tensor_create(ASSAY_TYPE_DOUBLE, 1, &n, &t));
  for (int64_t i = 0; i < N; i++) {
    const double x = ldexp((double)(i * 7919 % N + 1), (int)(i % 41) - 30);
    assay_f64(t)[i] = sorted[i] = i % 3 == 0 ? -x : i % 500 == 1 ? (double)INFINITY : x;
  }
  qsort(sorted, N, sizeof *sorted, by_value);
  op_case_ok(assay_numeric_from(t, &a));
  op_case_ok(assay_ranked_init(&a, &r));
  assert_true(assay_ranked_median(&r) == sorted[N / 2]);
  for (size_t i = 0; i < sizeof ranks / sizeof *ranks; i++)
    if (isfinite(sorted[ranks[i]]))
      assert_true(assay_ranked_quantile(&r, (double)ranks[i] / (N - 1)) == sorted[ranks[i]]);
  assay_ranked_deinit(&r);
  assert_true(assay_numeric_min(&a).x == sorted[0] && assay_numeric_max(&a).x == INFINITY);
  assert_int_equal(assay_numeric_max(&a).at, 1);
  a.f[N - 5] = a.f[N - 2] = NAN;
  assert_int_equal(assay_numeric_min(&a).at, N - 5);
  op_case_ok(assay_ranked_init(&a, &r));
  assert_true(isnan(assay_ranked_median(&r)) && isnan(assay_ranked_quantile(&r, 0.9)));
  assay_ranked_deinit(&r);
  assay_numeric_deinit(&a);
  assay_tensor_release(t);
  free(sorted);
}

// Unsigned numbers past 2^63, and neighbours that are one float64.
static void extremes_of_integers_are_exact(void** state) {
  (void)state;
  int64_t x[] = {(int64_t)1 << 53, ((int64_t)1 << 53) + 1, -1, 5};
  assay_numeric_t a = {.number = ASSAY_NUMERIC_I64, .rank = 1, .dims = {4}, .n = 4, .i = x};
  assert_int_equal(assay_numeric_max(&a).at, 1);
  assert_int_equal(assay_numeric_min(&a).at, 2);
  a.number = ASSAY_NUMERIC_U64;
  assert_int_equal(assay_numeric_max(&a).at, 2);
  assert_int_equal(assay_numeric_min(&a).at, 3);
}

static void text_has_no_numbers(void** state) {
  (void)state;
  assay_tensor_t* t = op_case_tensor("string[1] a");
  assay_numeric_t a = {0};
  assay_status_t st = assay_numeric_from(t, &a);
  assert_int_equal(assay_status_code(st), ASSAY_UNSUPPORTED);
  assay_status_free(st);
  assay_tensor_release(t);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(tolerances_hold_or_not),
                                     cmocka_unit_test(numbers_are_right),
                                     cmocka_unit_test(indices_may_be_near),
                                     cmocka_unit_test(shapes_are_matched_where_asked),
                                     cmocka_unit_test(outputs_go_with_the_nearest_name),
                                     cmocka_unit_test(nothing_in_common_is_an_error),
                                     cmocka_unit_test(lines_are_those_of_the_tool),
                                     cmocka_unit_test(more_is_said_to_those_who_ask),
                                     cmocka_unit_test(summaries_count_iterations),
                                     cmocka_unit_test(averages_can_pass_where_iterations_fail),
                                     cmocka_unit_test(averages_of_no_number_are_refused),
                                     cmocka_unit_test(results_are_read_back),
                                     cmocka_unit_test(files_are_checked),
                                     cmocka_unit_test(statistics_are_those_of_numpy),
                                     cmocka_unit_test(ranks_are_those_of_sorting),
                                     cmocka_unit_test(extremes_of_integers_are_exact),
                                     cmocka_unit_test(pictures_show_where_errors_are),
                                     cmocka_unit_test(each_allocation_may_fail),
                                     cmocka_unit_test(text_has_no_numbers)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
