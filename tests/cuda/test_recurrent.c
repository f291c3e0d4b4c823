// Recurrent layers on a GPU that is not there (fake/): beside the emulated engine and within their
// bounds; a sample's bits whatever its neighbours in the batch are; lengths that are not valid.
#include <stdlib.h>

#include "backends/tactic_case.h"

// x comes out of a layer, so that in 16 bits it is of 16 bits.
#define T 5e-6
#define LIST(...) \
  { __VA_ARGS__ }
#define ROW(name, x, constants, node, out) \
  { {name, 22, x, constants, {"Neg a x0 -> x", node}, out}, "recurrent", T, false }
// Of weights that are not small: each step makes of a difference some times as much.
#define AMPLIFIED(name, x, constants, node, out) \
  { {name, 22, x, constants, {"Neg a x0 -> x", node}, out}, "recurrent", 20 * T, false }
#define LSTM "x0 float[5,3,7]"
#define WEIGHTS "w float[1,40,7]", "r float[1,40,10]"
#define BOTH "w float[2,40,7]", "r float[2,40,10]"

static const tactic_case_t cells[] = {
    ROW("LSTM", {LSTM}, LIST(WEIGHTS), "LSTM n x w r -> y h c | hidden_size=10", "y h c"),
    ROW("LSTM of one unit", {"x0 float[3,1,1]"}, LIST("w float[1,4,1]", "r float[1,4,1]"),
        "LSTM n x w r -> y | hidden_size=1", "y"),
    ROW("LSTM, all inputs", LIST(LSTM, "l int32[3] 5 0 2", "h float[2,3,10]", "c float[2,3,10]"),
        LIST(BOTH, "b float[2,80]", "p float[2,30]"),
        "LSTM n x w r b l h c p -> y z q | hidden_size=10 direction=bidirectional", "y z q"),
    ROW("LSTM, reversed", LIST(LSTM, "l int32[3] 5 1 2"),
        LIST("w float[1,32,7]", "r float[1,32,8]", "b float[1,64]"),
        "LSTM n x w r b l -> y | hidden_size=8 direction=reverse", "y"),
    ROW("LSTM, batch first",
        LIST("x0 float[3,5,7]", "h float[3,2,10]", "c float[3,2,10]", "l int32[3] 5 1 4"),
        LIST(BOTH, "b float[2,80]"),
        "LSTM n x w r b l h c -> y z q | hidden_size=10 direction=bidirectional layout=1", "y z q"),
    ROW("LSTM, a large batch", LIST("x0 float[4,37,24]"),
        LIST("w float[2,80,24]", "r float[2,80,20]"),
        "LSTM n x w r -> y h c | hidden_size=20 direction=bidirectional", "y h c"),
    ROW("LSTM, the last states only", {LSTM}, LIST(WEIGHTS),
        "LSTM n x w r -> _ _ c | hidden_size=10", "c"),
    ROW("LSTM with a clip", {LSTM}, LIST(WEIGHTS), "LSTM n x w r -> y | hidden_size=10 clip=0.5",
        "y"),
    ROW("LSTM with one gate for two", {LSTM}, LIST(WEIGHTS, "p float[1,30]"),
        "LSTM n x w r _ _ _ _ p -> y | hidden_size=10 input_forget=1", "y"),
    ROW("LSTM, weights of a run", LIST(LSTM, "w float[1,40,7]", "r float[1,40,10]"), {0},
        "LSTM n x w r -> y | hidden_size=10", "y"),
    ROW("LSTM of more than a warp", LIST("x0 float[9,2,64]"),
        LIST("w float[1,512,64]", "r float[1,512,128]", "b float[1,1024]"),
        "LSTM n x w r b -> y | hidden_size=128", "y"),
    ROW("LSTM, hard functions", {LSTM}, LIST(WEIGHTS),
        "LSTM n x w r -> y | hidden_size=10 activations=HardSigmoid,Softsign,ScaledTanh "
        "activation_alpha=0.25,1.5 activation_beta=0.4,0.5",
        "y"),
    ROW("GRU", LIST(LSTM, "h float[1,3,10]"),
        LIST("w float[1,30,7]", "r float[1,30,10]", "b float[1,60]"),
        "GRU n x w r b _ h -> y z | hidden_size=10", "y z"),
    ROW("GRU, reset behind", LIST(LSTM, "h float[2,3,10]", "l int32[3] 5 0 2"),
        LIST("w float[2,30,7]", "r float[2,30,10]", "b float[2,60]"),
        "GRU n x w r b l h -> y z | hidden_size=10 linear_before_reset=1 direction=bidirectional",
        "y z"),
    ROW("GRU, no biases", LIST(LSTM, "l int32[3] 5 0 2"),
        LIST("w float[2,27,7]", "r float[2,27,9]"),
        "GRU n x w r _ l -> _ z | hidden_size=9 direction=bidirectional", "z"),
    ROW("GRU with a clip, other functions", {LSTM}, LIST("w float[1,30,7]", "r float[1,30,10]"),
        "GRU n x w r -> y | hidden_size=10 activations=Sigmoid,Elu activation_alpha=0.7 clip=1.5",
        "y"),
    AMPLIFIED("RNN", LIST(LSTM, "h float[2,3,33]", "l int32[3] 5 0 2"),
              LIST("w float[2,33,7]", "r float[2,33,33]", "b float[2,66]"),
              "RNN n x w r b l h -> y z | hidden_size=33 direction=bidirectional", "y z"),
    ROW("RNN, an affine function of each direction", {LSTM},
        LIST("w float[2,9,7]", "r float[2,9,9]"),
        "RNN n x w r -> y | hidden_size=9 direction=bidirectional activations=Affine,Affine "
        "activation_alpha=0.5,0.25 activation_beta=0.1,-0.2",
        "y"),
    ROW("RNN, a leaky one", {LSTM}, LIST("w float[1,9,7]", "r float[1,9,9]"),
        "RNN n x w r -> y | hidden_size=9 activations=LeakyRelu activation_alpha=0.3", "y"),
    ROW("RNN, with a threshold", {LSTM}, LIST("w float[1,9,7]", "r float[1,9,9]"),
        "RNN n x w r -> y | hidden_size=9 activations=Softplus", "y"),
};

static void cells_agree(void** state) {
  (void)state;
  tactic_case_all(cells, sizeof cells / sizeof *cells);
}

// Operands of the first products are rounded to tf32, states that are made are not.
static void tf32_keeps_its_bounds(void** state) {
  (void)state;
  for (size_t i = 0; i < sizeof cells / sizeof *cells; i++) {
    assay_tensor_t* in[GRAPH_CASE_ROWS] = {NULL};
    assay_model_t* m = graph_case_model(&cells[i].graph, in);
    tactic_run_t r;
    tactic_case_run(m, "cuda", ASSAY_FORMAT_TF32, in, &r);
    assert_true(tactic_case_is_by(r.tactic, "recurrent_mma"));
    tactic_case_judge(&cells[i], ASSAY_FP32_TIGHT, m, ASSAY_FORMAT_TF32, in);
    tactic_case_release(&r);
    graph_case_release(in);
    assay_model_release(m);
  }
}

static void lengths_out_of_range_are_errors(void** state) {
  (void)state;
  static const char* const lengths[][2] = {{"l int32[2] 6 1", "sequence_lens[0] is 6"},
                                           {"l int32[2] 5 -1", "sequence_lens[1] is -1"}};
  for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
    const graph_case_t row = {"LSTM",
                              22,
                              {"x float[5,2,7]", lengths[i][0]},
                              {WEIGHTS},
                              {"LSTM n x w r _ l -> y | hidden_size=10"},
                              "y"};
    assay_tensor_t* in[GRAPH_CASE_ROWS] = {NULL};
    assay_model_t* m = graph_case_model(&row, in);
    tactic_run_t r;
    assay_status_t st = tactic_case_try(m, "cuda", ASSAY_FORMAT_FP32, in, &r);
    assert_non_null(st);
    assert_non_null(strstr(assay_status_message(st), lengths[i][1]));
    assay_status_free(st);
    graph_case_release(in);
    assay_model_release(m);
  }
}

// ---- the same bits alone and in a batch ---------------------------------------------------------

static const char* const alone[] = {
    "LSTM n x w r -> y | hidden_size=8 direction=bidirectional layout=1",
    "GRU n x w r -> y | hidden_size=8 direction=bidirectional layout=1"};

// in: of the first run, with whose elements another one begins; NULL elements: nothing yet.
static void run_batch(const char* node, const char* x, bool gru, assay_format_t format,
                      assay_tensor_t** in, tactic_run_t* r) {
  const graph_case_t graph = {node,
                              22,
                              {x, gru ? "w float[2,24,40]" : "w float[2,32,40]",
                               gru ? "r float[2,24,8]" : "r float[2,32,8]"},
                              {NULL},
                              {node},
                              "y"};
  assay_tensor_t* own[GRAPH_CASE_ROWS] = {NULL};
  assay_model_t* m = graph_case_model(&graph, own);
  for (size_t i = 0; own[i]; i++) {
    if (in[i]) memcpy(own[i]->data, in[i]->data, (size_t)own[i]->size * sizeof(double));
    if (!in[i]) in[i] = assay_tensor_retain(own[i]);
  }
  tactic_case_run(m, "cuda", format, own, r);
  graph_case_release(own);
  assay_model_release(m);
}

static void batches_change_nothing(void** state) {
  (void)state;
  static const assay_format_t formats[] = {ASSAY_FORMAT_FP32, ASSAY_FORMAT_FP16};
  for (size_t i = 0; i < sizeof alone / sizeof *alone; i++)
    for (size_t f = 0; f < sizeof formats / sizeof *formats; f++) {
      tactic_run_t many, one;
      assay_tensor_t* in[GRAPH_CASE_ROWS] = {NULL};
      run_batch(alone[i], "x float[9,5,40]", i == 1, formats[f], in, &many);
      run_batch(alone[i], "x float[1,5,40]", i == 1, formats[f], in, &one);
      if (memcmp(many.out[0]->data, one.out[0]->data, (size_t)one.out[0]->size * sizeof(double)))
        fail_msg("%s: a sample's bits depend on its batch", alone[i]);
      graph_case_release(in);
      tactic_case_release(&many);
      tactic_case_release(&one);
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(cells_agree), cmocka_unit_test(tf32_keeps_its_bounds),
      cmocka_unit_test(lengths_out_of_range_are_errors), cmocka_unit_test(batches_change_nothing)};
  const char* platform = getenv("ASSAY_TEST_LIBCUDA");
  setenv("ASSAY_CUDA_PATH", platform ? platform : ".", 1);
  tactic_case_backend = "cuda";
  return cmocka_run_group_tests(tests, NULL, NULL);
}
