// Constants that look damaged by themselves are named, and healthy ones are not.
#include "diagnose/outputs/odd.h"
#include "diagnose/search_case.h"

typedef struct row {
  const char* name;
  const char* constants[3];  // w [4,6], t [4,6], k [6]
  const char* node;          // NULL: none is odd
  const char* text;
} row_t;

static const row_t rows[] = {
    {"healthy", {"w float[4,6]", "t float[4,6]", "k float[6]"}, NULL, NULL},
    {"one row for all",
     {"w float[4,6]",
      "t float[4,6] .1234 .2345 .3456 .4567 .5678 .6789 .1234 .2345 .3456 .4567 .5678 .6789 .1234 "
      ".2345 .3456 .4567 .5678 .6789 .1234 .2345 .3456 .4567 .5678 .6789",
      "k float[6]"},
     "add",
     "all its rows are the same"},
    {"cut short",
     {"w float[4,6] .1234 .2345 .3456 .4567 .5678 .6789 .7123 .2123 .3123 .4123 .5123 .6123 .1321 "
      ".2321 .3321 .4321 .5321 .6321 0 0 0 0 0 0",
      "t float[4,6]", "k float[6]"},
     "product",
     "its last numbers are zeros"},
    {"few digits",
     {"w float[4,6] .12 .23 -.34 .45 .56 -.67 .71 .21 .31 .41 -.51 .61 .13 .23 .33 -.43 .53 .63 "
      "1.2 "
      ".7 .9 .8 -.3 .2",
      "t float[4,6]", "k float[6]"},
     "product",
     "its numbers have two digits after the point at most"},
    // Whole numbers are what they are, and so are a few that come again.
    {"whole numbers", {"w float[4,6]", "t float[4,6]", "k float[6] 1 2 3 4 5 6"}, NULL, NULL},
    {"steps",
     {"w float[4,6] .5 .5 .25 .25 .5 .5 .25 .25 .5 .5 .25 .25 .5 .5 .25 .25 .5 .5 .25 .25 .5 .5 "
      ".25 "
      ".25",
      "t float[4,6]", "k float[6]"},
     NULL,
     NULL},
};

static void damaged_constants_are_named(void** state) {
  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    const row_t* r = &rows[i];
    const graph_case_t right = {
        "right",
        17,
        {"x float[2,4,4]"},
        {"w float[4,6]", "t float[4,6]", "k float[6]"},
        {"MatMul product x w -> a", "Add add a t -> b", "Mul mul b k -> c", "Tanh tanh c -> y"},
        "y"};
    graph_case_t wrong = right;
    search_case_t c;
    assay_odd_t odd[ASSAY_ODD_NODES];
    size_t n = 0;
    for (size_t k = 0; k < 3; k++) wrong.constants[k] = r->constants[k];
    // What differs is there in any case.
    wrong.nodes[3] = "Sigmoid tanh c -> y";
    search_case_init(&wrong, &right, &c);
    op_case_ok(assay_search_odd(&c.search, odd, &n));
    if (n != (r->node ? 1 : 0)) fail_msg("%s: %zu nodes, '%s'", r->name, n, n ? odd[0].text : "");
    if (n && (strcmp(odd[0].node->label, r->node) != 0 || strcmp(odd[0].text, r->text) != 0))
      fail_msg("%s: '%s', %s", r->name, odd[0].node->label, odd[0].text);
    search_case_deinit(&c);
  }
}

// The numbers of one layer in two: both are named.
static void copies_are_named(void** state) {
  (void)state;
  static const graph_case_t right = {
      "right",
      17,
      {"x float[2,4]"},
      {"k float[4] .1234 .2345 .3456 .4567", "l float[4] .5678 .1234 .2345 .3456"},
      {"Mul first x k -> a", "Tanh tanh a -> b", "Mul second b l -> y"},
      "y"};
  graph_case_t wrong = right;
  search_case_t c;
  assay_odd_t odd[ASSAY_ODD_NODES];
  size_t n = 0;
  wrong.constants[1] = "l float[4] .1234 .2345 .3456 .4567";
  search_case_init(&wrong, &right, &c);
  op_case_ok(assay_search_odd(&c.search, odd, &n));
  assert_int_equal(n, 2);
  assert_string_equal(odd[0].node->label, "first");
  assert_string_equal(odd[1].node->label, "second");
  search_case_deinit(&c);
  search_case_init(&right, &wrong, &c);
  op_case_ok(assay_search_odd(&c.search, odd, &n));
  assert_int_equal(n, 0);
  search_case_deinit(&c);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(damaged_constants_are_named),
                                     cmocka_unit_test(copies_are_named)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
