// Recurrent layers beside the emulated engine: cells, directions, layouts, lengths, states; and a
// sample's result whatever its neighbours in the batch are.
#include "backends/tactic_case.h"

// x comes out of a layer, so that in bf16 it is bf16.
#define T 5e-6
#define ROW(name, x, constants, node, out, tactic) \
  { {name, 22, x, constants, {"Neg a x0 -> x", node}, out}, tactic, T, false }
// Forty states without gates, of weights that are not small: each step makes of a difference some
// three times as much.
#define AMPLIFIED(name, x, constants, node, out, tactic) \
  { {name, 22, x, constants, {"Neg a x0 -> x", node}, out}, tactic, 20 * T, false }
#define LIST(...) \
  { __VA_ARGS__ }

static const tactic_case_t cells[] = {
    ROW("LSTM", LIST("x0 float[5,3,7]"), LIST("w float[1,40,7]", "r float[1,40,10]"),
        "LSTM n x w r -> y h c | hidden_size=10", "y h c", "recurrent"),
    ROW("LSTM, all inputs",
        LIST("x0 float[5,3,7]", "l int32[3] 5 0 2", "h float[2,3,10]", "c float[2,3,10]"),
        LIST("w float[2,40,7]", "r float[2,40,10]", "b float[2,80]"),
        "LSTM n x w r b l h c -> y z q | hidden_size=10 direction=bidirectional", "y z q",
        "recurrent"),
    ROW("LSTM, reversed", LIST("x0 float[5,3,7]", "l int32[3] 5 1 2"),
        LIST("w float[1,32,7]", "r float[1,32,8]", "b float[1,64]"),
        "LSTM n x w r b l -> y | hidden_size=8 direction=reverse", "y", "recurrent"),
    ROW("LSTM, batch first", LIST("x0 float[3,5,7]", "h float[3,2,10]", "c float[3,2,10]"),
        LIST("w float[2,40,7]", "r float[2,40,10]", "b float[2,80]"),
        "LSTM n x w r b _ h c -> y z q | hidden_size=10 direction=bidirectional layout=1", "y z q",
        "recurrent"),
    ROW("LSTM, a large batch", LIST("x0 float[4,37,20]"),
        LIST("w float[2,80,20]", "r float[2,80,20]"),
        "LSTM n x w r -> y h c | hidden_size=20 direction=bidirectional", "y h c", "recurrent"),
    ROW("LSTM with peepholes", LIST("x0 float[5,3,7]"),
        LIST("w float[1,40,7]", "r float[1,40,10]", "p float[1,30]"),
        "LSTM n x w r _ _ _ _ p -> y | hidden_size=10", "y", "emu"),
    ROW("LSTM with a clip", LIST("x0 float[5,3,7]"), LIST("w float[1,40,7]", "r float[1,40,10]"),
        "LSTM n x w r -> y | hidden_size=10 clip=0.5", "y", "emu"),
    ROW("GRU", LIST("x0 float[5,3,7]", "h float[1,3,10]"),
        LIST("w float[1,30,7]", "r float[1,30,10]", "b float[1,60]"),
        "GRU n x w r b _ h -> y z | hidden_size=10", "y z", "recurrent"),
    ROW("GRU, reset behind", LIST("x0 float[5,3,7]", "h float[2,3,10]", "l int32[3] 5 0 2"),
        LIST("w float[2,30,7]", "r float[2,30,10]", "b float[2,60]"),
        "GRU n x w r b l h -> y z | hidden_size=10 linear_before_reset=1 direction=bidirectional",
        "y z", "recurrent"),
    ROW("GRU, no biases", LIST("x0 float[5,3,7]", "l int32[3] 5 0 2"),
        LIST("w float[2,27,7]", "r float[2,27,9]"),
        "GRU n x w r _ l -> _ z | hidden_size=9 direction=bidirectional", "z", "recurrent"),
    AMPLIFIED("RNN", LIST("x0 float[5,3,7]", "h float[2,3,40]", "l int32[3] 5 0 2"),
              LIST("w float[2,40,7]", "r float[2,40,40]", "b float[2,80]"),
              "RNN n x w r b l h -> y z | hidden_size=40 direction=bidirectional", "y z",
              "recurrent"),
    ROW("LSTM of work for threads", LIST("x0 float[9,2,64]"),
        LIST("w float[1,512,64]", "r float[1,512,128]", "b float[1,1024]"),
        "LSTM n x w r b -> y | hidden_size=128", "y", "recurrent"),
};

static void cells_agree(void** state) {
  (void)state;
  for (size_t i = 0; i < sizeof cells / sizeof *cells; i++) tactic_case_check(&cells[i]);
}

static void lengths_out_of_range_are_errors(void** state) {
  (void)state;
  static const graph_case_t row = {"LSTM",
                                   22,
                                   {"x float[5,2,7]", "l int32[2] 6 1"},
                                   {"w float[1,40,7]", "r float[1,40,10]"},
                                   {"LSTM n x w r _ l -> y | hidden_size=10"},
                                   "y"};
  assay_tensor_t* in[GRAPH_CASE_ROWS] = {NULL};
  assay_model_t* m = graph_case_model(&row, in);
  tactic_run_t r;
  assay_status_t st = tactic_case_try(m, "cpu", ASSAY_FORMAT_FP32, in, &r);
  assert_non_null(st);
  assert_non_null(strstr(assay_status_message(st), "sequence_lens[0] is 6"));
  assay_status_free(st);
  graph_case_release(in);
  assay_model_release(m);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(cells_agree),
                                     cmocka_unit_test(lengths_out_of_range_are_errors)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
