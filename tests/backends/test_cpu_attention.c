// Attention beside the emulated engine: forms of operands, masks, windows, lengths beside tiles.
#include "backends/tactic_case.h"

#define ROW(name, opset, x, node) \
  { {name, opset, x, {0}, {node}, "y"}, "attention", 5e-6, false }
#define LIST(...) \
  { __VA_ARGS__ }
#define QKV "q float[2,3,20,16]", "k float[2,3,30,16]", "v float[2,3,30,24]"
#define LONG "q float[1,2,101,16]", "k float[1,2,603,16]", "v float[1,2,603,8]"

static const tactic_case_t cases[] = {
    ROW("heads", 23, LIST(QKV), "Attention n q k v -> y"),
    ROW("packed", 23, LIST("q float[2,20,48]", "k float[2,30,48]", "v float[2,30,72]"),
        "Attention n q k v -> y | q_num_heads=3 kv_num_heads=3"),
    ROW("fewer heads of keys", 23,
        LIST("q float[2,6,20,16]", "k float[2,2,30,16]", "v float[2,2,30,16]"),
        "Attention n q k v -> y"),
    ROW("scale and cap", 23, LIST(QKV), "Attention n q k v -> y | scale=0.7 softcap=1.5"),
    ROW("causal", 23, LIST("q float[1,2,101,16]", "k float[1,2,101,16]", "v float[1,2,101,8]"),
        "Attention n q k v -> y | is_causal=1"),
    ROW("many keys", 23, LIST(LONG), "Attention n q k v -> y"),
    ROW("many keys, causal", 23, LIST(LONG), "Attention n q k v -> y | is_causal=1"),
    ROW("a window", 25, LIST(LONG),
        "Attention n q k v -> y | left_window_size=5 right_window_size=7"),
    ROW("a mask", 23, LIST(LONG, "m float[101,603]"), "Attention n q k v m -> y"),
    ROW("a mask of heads", 23, LIST(QKV, "m float[3,1,30]"), "Attention n q k v m -> y"),
    ROW("a mask of queries", 23, LIST(QKV, "m float[2,1,20,1]"), "Attention n q k v m -> y"),
    ROW("a bool mask, with a query that sees nothing", 23,
        LIST("q float[1,1,3,8]", "k float[1,1,4,8]", "v float[1,1,4,8]",
             "m bool[3,4] 1 0 1 1 0 0 0 0 1 1 0 0"),
        "Attention n q k v m -> y"),
    ROW("one query", 23, LIST("q float[1,8,1,64]", "k float[1,8,77,64]", "v float[1,8,77,64]"),
        "Attention n q k v -> y"),
    {{"with a cache",
      23,
      {"q float[1,2,3,8]", "k float[1,2,3,8]", "v float[1,2,3,8]", "pk float[1,2,5,8]",
       "pv float[1,2,5,8]"},
      {0},
      {"Attention n q k v _ pk pv -> y"},
      "y"},
     "emu",
     5e-6,
     false},
};

static void cases_agree(void** state) {
  (void)state;
  tactic_case_all(cases, sizeof cases / sizeof *cases);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(cases_agree)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
