// Numbers of several nodes at once: attributes that an exporter has dropped everywhere come back;
// what they cannot explain is left alone.
#include "base/clock.h"
#include "diagnose/search_case.h"
#include "diagnose/search_joint.h"

#define WEIGHTS \
  { "w1 float[6,7]", "w2 float[7,7]", "w3 float[7,7]", "w4 float[7,5]", "b float[7]", NULL, }
#define CHAIN(one, two, three)                                                       \
  {                                                                                  \
    "MatMul m1 x w1 -> a", one, "MatMul m2 e w2 -> c", "Add s c b -> d", two,        \
        "MatMul m3 f w3 -> g", three, "Add r h f -> i", "MatMul m4 i w4 -> y", NULL, \
  }

typedef struct row {
  graph_case_t wrong, right;
  struct {
    const char* node;
    double value;
  } want[4];
} row_t;

static const row_t rows[] = {
    {{"Elu without alpha",
      17,
      {"x float[9,6]"},
      WEIGHTS,
      CHAIN("Elu p a -> e", "Elu q d -> f", "Elu t g -> h"),
      "y"},
     {"right",
      17,
      {"x float[9,6]"},
      WEIGHTS,
      CHAIN("Elu p a -> e | alpha=0.25", "Elu q d -> f | alpha=1.7", "Elu t g -> h | alpha=0.5"),
      "y"},
     {{"p", 0.25}, {"q", 1.7}, {"t", 0.5}}},
    // Ten numbers of golden say enough of three.
    {{"few outputs",
      17,
      {"x float[2,6]"},
      WEIGHTS,
      CHAIN("Elu p a -> e", "Elu q d -> f", "Elu t g -> h"),
      "y"},
     {"right",
      17,
      {"x float[2,6]"},
      WEIGHTS,
      CHAIN("Elu p a -> e | alpha=0.25", "Elu q d -> f | alpha=1.7", "Elu t g -> h | alpha=0.5"),
      "y"},
     {{"p", 0.25}, {"q", 1.7}, {"t", 0.5}}},
    // One of them is right, and no fault.
    {{"LeakyRelu without alpha",
      17,
      {"x float[9,6]"},
      WEIGHTS,
      CHAIN("LeakyRelu p a -> e", "LeakyRelu q d -> f", "LeakyRelu t g -> h"),
      "y"},
     {"right",
      17,
      {"x float[9,6]"},
      WEIGHTS,
      CHAIN("LeakyRelu p a -> e | alpha=0.3", "LeakyRelu q d -> f",
            "LeakyRelu t g -> h | alpha=0.125"),
      "y"},
     {{"p", 0.3}, {"t", 0.125}}},
    // Another operator is no matter of numbers.
    {{"Sigmoid instead of Tanh",
      17,
      {"x float[9,6]"},
      WEIGHTS,
      CHAIN("Elu p a -> e", "Sigmoid q d -> f", "Elu t g -> h"),
      "y"},
     {"right",
      17,
      {"x float[9,6]"},
      WEIGHTS,
      CHAIN("Elu p a -> e", "Tanh q d -> f", "Elu t g -> h"),
      "y"},
     {{NULL, 0}}},
};

static void fitted_is(const row_t* row) {
  search_case_t c;
  assay_fault_t faults[ASSAY_SEARCH_FAULTS] = {0};
  size_t n = 0, trials = 0, want = 0;
  search_case_init(&row->wrong, &row->right, &c);
  c.targets[0].explained_rms = c.targets[0].explained_max = 1e-6;
  op_case_ok(assay_search_joint(&c.search, assay_clock_seconds() + 30, faults, &n, &trials));
  while (want < 4 && row->want[want].node) want++;
  if (n != want) fail_msg("%s: %zu faults, expected %zu", row->wrong.name, n, want);
  for (size_t i = 0; i < n; i++) {
    if (strcmp(faults[i].node->label, row->want[i].node) != 0 ||
        faults[i].repair.value != (double)(float)row->want[i].value || !faults[i].restored)
      fail_msg("%s: fault %zu is '%s', %s", row->wrong.name, i, faults[i].node->label,
               faults[i].repair.text);
    assay_repair_deinit(&faults[i].repair);
  }
  assert_true(trials > 0);
  search_case_deinit(&c);
}

static void numbers_are_fitted_together(void** state) {
  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) fitted_is(&rows[i]);
}

// Out of time before it begins: nothing is found, and nothing is lost.
static void time_is_kept(void** state) {
  (void)state;
  search_case_t c;
  assay_fault_t faults[ASSAY_SEARCH_FAULTS] = {0};
  size_t n = 1, trials = 0;
  search_case_init(&rows[0].wrong, &rows[0].right, &c);
  op_case_ok(assay_search_joint(&c.search, assay_clock_seconds() - 1, faults, &n, &trials));
  assert_int_equal(n, 0);
  search_case_deinit(&c);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(numbers_are_fitted_together),
      cmocka_unit_test(time_is_kept),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
