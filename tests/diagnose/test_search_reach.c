// How much of a change arrives: what sums and concatenations dilute, what paths join, what nobody
// reads.
#include "diagnose/search_case.h"
#include "diagnose/search_reach.h"

typedef struct reach_row {
  graph_case_t graph;
  struct {
    const char* value;
    double reach;
  } want[6];
} reach_row_t;

static const double root = 1.4142135623730951;

static void reach_is(const reach_row_t* row) {
  search_case_t c;
  double* reach = NULL;
  search_case_init(&row->graph, &row->graph, &c);
  op_case_ok(assay_search_reach(&c.search, &reach));
  for (int i = 0; i < 6 && row->want[i].value; i++) {
    const double got = reach[search_case_value(&c, row->want[i].value)->id];
    if (fabs(got - row->want[i].reach) > 1e-12)
      fail_msg("%s: '%s' reaches %g, expected %g", row->graph.name, row->want[i].value, got,
               row->want[i].reach);
  }
  assay_free(reach);
  search_case_deinit(&c);
}

static void changes_reach_the_targets(void** state) {
  (void)state;
  const reach_row_t rows[] = {
      {{"a chain hands changes on",
        17,
        {"x float[3] 1 2 3"},
        {NULL},
        {"Relu a x -> p", "Exp b p -> q", "Neg c q -> y"},
        "y"},
       {{"x", 1}, {"p", 1}, {"q", 1}, {"y", 1}}},
      // |a| = 5, |b| = 12 at right angles, |y| = 13.
      {{"a sum dilutes by size",
        17,
        {"x float[2] 5 0", "z float[2] 0 12"},
        {NULL},
        {"Relu a x -> p", "Relu b z -> q", "Add c p q -> y"},
        "y"},
       {{"p", 5. / 13}, {"q", 12. / 13}, {"x", 5. / 13}}},
      // What cancels grows, by 4 at most: |p| = 10 and 3, |y| = 1.
      {{"a difference of near values",
        17,
        {"x float[1] 10", "z float[1] 9"},
        {NULL},
        {"Relu a x -> p", "Relu b z -> q", "Sub c p q -> y"},
        "y"},
       {{"p", 4}, {"q", 4}}},
      {{"a difference of far values",
        17,
        {"x float[1] 3", "z float[1] 2"},
        {NULL},
        {"Relu a x -> p", "Relu b z -> q", "Sub c p q -> y"},
        "y"},
       {{"p", 3}, {"q", 2}}},
      {{"a concatenation dilutes by size",
        17,
        {"x float[2] 3 0", "z float[1] 4"},
        {NULL},
        {"Relu a x -> p", "Relu b z -> q", "Concat c p q -> y | axis=0"},
        "y"},
       {{"p", 0.6}, {"q", 0.8}}},
      // Both paths come together at x.
      {{"paths join",
        17,
        {"x float[2] 3 4"},
        {NULL},
        {"Relu a x -> p", "Relu b p -> q", "Relu c p -> r", "Concat d q r -> y | axis=0"},
        "y"},
       {{"q", 1 / root}, {"r", 1 / root}, {"p", 1}}},
      {{"two targets",
        17,
        {"x float[2] 3 4"},
        {NULL},
        {"Relu a x -> p", "Neg b p -> y", "Exp c p -> z"},
        "y z"},
       {{"p", root}, {"y", 1}, {"z", 1}}},
      {{"what nobody reads",
        17,
        {"x float[2] 3 4"},
        {NULL},
        {"Relu a x -> p", "Exp b x -> dead", "Neg c p -> y"},
        "y"},
       {{"dead", 0}, {"p", 1}}},
      {{"integers have no size",
        17,
        {"x int64[2] 3 4", "z int64[2] 1 2"},
        {NULL},
        {"Add a x z -> y"},
        "y"},
       {{"x", 1}, {"z", 1}}},
      {{"a sum of zeros",
        17,
        {"x float[2] 0 0", "z float[2] 0 0"},
        {NULL},
        {"Add a x z -> y"},
        "y"},
       {{"x", 1}, {"z", 1}}},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) reach_is(&rows[i]);
}

// An element that is not finite does not count.
static void not_finite(void** state) {
  (void)state;
  const reach_row_t row = {{"not finite",
                            17,
                            {"x float[3] 5 0 inf", "z float[3] 0 12 0"},
                            {NULL},
                            {"Relu a x -> p", "Relu b z -> q", "Add c p q -> y"},
                            "y"},
                           {{"p", 5. / 13}, {"q", 12. / 13}}};
  reach_is(&row);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(changes_reach_the_targets),
      cmocka_unit_test(not_finite),
  };
  return cmocka_run_group_tests_name("search_reach", tests, NULL, NULL);
}
