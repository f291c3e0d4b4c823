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
    ROW("fewer heads of keys, causal, a mask", 23,
        LIST("q float[2,6,37,16]", "k float[2,2,70,16]", "v float[2,2,70,16]", "m float[6,37,70]"),
        "Attention n q k v m -> y | is_causal=1"),
    ROW("fewer heads of keys, packed", 23,
        LIST("q float[2,20,48]", "k float[2,30,16]", "v float[2,30,24]"),
        "Attention n q k v -> y | q_num_heads=3 kv_num_heads=1"),
    ROW("fewer heads of keys, packed, one query", 23,
        LIST("q float[2,1,96]", "k float[2,30,32]", "v float[2,30,48]", "m float[2,6,1,30]"),
        "Attention n q k v m -> y | q_num_heads=6 kv_num_heads=2"),
    ROW("a window far into the keys", 25,
        LIST("q float[1,2,1101,8]", "k float[1,2,1203,8]", "v float[1,2,1203,8]"),
        "Attention n q k v -> y | left_window_size=5 right_window_size=0"),
    ROW("more queries than keys, in a window", 25,
        LIST("q float[1,2,150,8]", "k float[1,2,40,8]", "v float[1,2,40,8]"),
        "Attention n q k v -> y | left_window_size=9 softcap=2.0"),
    {{"of com.microsoft",
      23,
      {"q float[2,20,48]", "k float[2,30,48]", "v float[2,30,72]"},
      {0},
      {"com.microsoft.MultiHeadAttention n q k v -> y | num_heads=3"},
      "y"},
     "attention",
     5e-6,
     false},
    ROW("one query", 23, LIST("q float[1,8,1,64]", "k float[1,8,77,64]", "v float[1,8,77,64]"),
        "Attention n q k v -> y"),
    ROW("two queries, packed, a mask", 23,
        LIST("q float[2,2,48]", "k float[2,600,48]", "v float[2,600,72]", "m float[2,3,2,600]"),
        "Attention n q k v m -> y | q_num_heads=3 kv_num_heads=3"),
    ROW("a query in a window", 25,
        LIST("q float[1,2,1,10]", "k float[1,2,1203,10]", "v float[1,2,1203,9]"),
        "Attention n q k v -> y | right_window_size=700 softcap=2.0"),
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

// Written out in nodes.
#define NODES(name, opset, x, c, node) \
  { {name, opset, x, c, node, "y"}, "attention", 5e-6, false }
#define PLAIN                                                                      \
  "Transpose kt k -> kt | perm=0,1,3,2", "MatMul m q kt -> s", "Softmax p s -> p", \
      "MatMul o p v -> y"

static const tactic_case_t nodes[] = {
    NODES("plain", 17, LIST(QKV), LIST(NULL), LIST(PLAIN)),
    NODES("many keys", 17, LIST(LONG), LIST(NULL), LIST(PLAIN)),
    NODES("odd sizes", 17, LIST("q float[3,1,65,7]", "k float[3,1,33,7]", "v float[3,1,33,5]"),
          LIST(NULL), LIST(PLAIN)),
    NODES("one query and one key", 17,
          LIST("q float[1,2,1,3]", "k float[1,2,1,3]", "v float[1,2,1,1]"), LIST(NULL),
          LIST(PLAIN)),
    NODES("keys of all batches", 17,
          LIST("q float[4,2,9,8]", "k float[1,2,50,8]", "v float[1,1,50,33]"), LIST(NULL),
          LIST(PLAIN)),
    NODES("rank 2", 17, LIST("q float[5,8]", "k float[8,9]", "v float[9,4]"), LIST(NULL),
          LIST("MatMul m q k -> s", "Softmax p s -> p", "MatMul o p v -> y")),
    NODES("a query, keys as columns and values of far rows", 17,
          LIST("q float[2,3,1,21]", "k float[2,3,21,530]", "w float[2,3,37,530]"), LIST(NULL),
          LIST("MatMul m q k -> s", "Softmax p s -> p", "Transpose vt w -> v | perm=0,1,3,2",
               "MatMul o p v -> y")),
    NODES("a query with masks by Where", 17,
          LIST("q float[2,4,1,64]", "k float[2,4,77,64]", "v float[2,4,77,64]", "c bool[1,1,1,77]",
               "n float[2,1,1,77]"),
          LIST("low float[] -10000"),
          LIST("Transpose kt k -> kt | perm=0,1,3,2", "MatMul m q kt -> s", "Where a c s low -> sa",
               "Add b sa n -> sb", "Softmax p sb -> p", "MatMul o p v -> y")),
    NODES("masks of nothing and of rows, and a scale", 17, LIST(LONG),
          LIST("f float[] 0.3", "m float[101,1]"),
          LIST("Transpose kt k -> kt | perm=0,1,3,2", "MatMul m q kt -> s", "Mul f s f -> sf",
               "Add a sf m -> sm", "Softmax p sm -> p", "MatMul o p v -> y")),
    NODES("masks by Where", 17, LIST(QKV, "c bool[2,1,20,30]", "d bool[30]"),
          LIST("low float[] -100", "inf float[] -1000"),
          LIST("Transpose kt k -> kt | perm=0,1,3,2", "MatMul m q kt -> s", "Where a c s low -> sa",
               "Where b d inf sa -> sb", "Softmax p sb -> p", "MatMul o p v -> y")),
    NODES("out of one product, as Swin has it", 17,
          LIST("x float[6,9,48]", "b float[1,2,9,9]", "m float[1,3,1,9,9]"),
          LIST("five int64[5] 6 9 3 2 8", "zero int64[1] 0", "one int64[1] 1",
               "three int64[5] 2 3 2 9 9", "four int64[4] 6 2 9 9", "f float[] 0.25"),
          LIST("Reshape r x five -> r", "Transpose t r -> t | perm=2,0,3,1,4",
               "Split s t -> s0 s1 s2 | axis=0", "Squeeze q s0 zero -> q", "Squeeze k s1 zero -> k",
               "Squeeze v s2 zero -> v", "Mul qs q f -> q2", "Transpose kt k -> kt | perm=0,1,3,2",
               "MatMul m q2 kt -> s", "Add a s b -> sb", "Reshape ra sb three -> sr",
               "Add am sr m -> sm", "Reshape rb sm four -> s4", "Softmax p s4 -> p",
               "MatMul o p v -> o", "Transpose yt o -> y | perm=0,2,1,3")),
    NODES("out of one product, as GPT-2 has it", 17, LIST("x float[2,70,96]", "m float[1,1,70,70]"),
          LIST("h int64[4] 0 0 2 -1", "f float[] 0.25"),
          LIST("Split s x -> q0 k0 v0 | axis=-1", "Reshape rq q0 h -> q1", "Reshape rk k0 h -> k1",
               "Reshape rv v0 h -> v1", "Transpose tq q1 -> q | perm=0,2,1,3",
               "Transpose tk k1 -> k | perm=0,2,3,1", "Transpose tv v1 -> v | perm=0,2,1,3",
               "MatMul m q k -> s", "Mul f s f -> sf", "Add a sf m -> sm", "Softmax p sm -> p",
               "MatMul o p v -> o", "Transpose yt o -> y | perm=0,2,1,3")),
    {{"with infinities and NaN", 17, LIST(QKV), {0}, {PLAIN}, "y"}, "attention", 5e-6, true},
    {{"of a query, with infinities and NaN",
      17,
      LIST("q float[2,3,1,16]", "k float[2,3,30,16]", "v float[2,3,30,24]"),
      {0},
      {PLAIN},
      "y"},
     "attention",
     5e-6,
     true},
};

static void nodes_agree(void** state) {
  (void)state;
  tactic_case_all(nodes, sizeof nodes / sizeof *nodes);
}

static void cases_agree(void** state) {
  (void)state;
  tactic_case_all(cases, sizeof cases / sizeof *cases);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(cases_agree), cmocka_unit_test(nodes_agree)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
