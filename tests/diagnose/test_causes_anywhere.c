// Faults that no usual cause is: each is found by golden outputs alone, by a small expression at
// some place, and its repair, made in the model, gives golden.
#include "diagnose/cause_case.h"

static const cause_row_t rows[] = {
    // Functions of one value: what a reduction reads, what a second output goes through, what was
    // made of several nodes.
    {"a function",
     "r",
     {"largest absolute",
      18,
      {"x float[4,6]"},
      {"axes int64[1] 1", "w float[6,8]"},
      {"Abs a x -> b", "ReduceMax r b axes -> c", "Div d x c -> e", "MatMul m e w -> f",
       "Tanh t f -> y"},
      "y"},
     {"ReduceMax r x axes -> c", "Div d x c -> e", "MatMul m e w -> f", "Tanh t f -> y"},
     0,
     NULL},
    {"a function",
     "s",
     {"second part",
      18,
      {"x float[4,12]"},
      {"w float[6,8]"},
      {"Split s x -> a b | axis=1 num_outputs=2", "Softsign q b -> c", "Mul p a c -> d",
       "MatMul m d w -> e", "Tanh t e -> y"},
      "y"},
     {"Split s x -> a b | axis=1 num_outputs=2", "Mul p a b -> d", "MatMul m d w -> e",
      "Tanh t e -> y"},
     0,
     NULL},
    // Units, where a fit does not find the way.
    {"a usual factor",
     "s",
     {"degrees",
      18,
      {"x float[5,6]"},
      {"k float[] 57.29577951308232", "w float[6,8]"},
      {"Mul f x k -> a", "Sin s a -> b", "MatMul m b w -> c", "Tanh t c -> y"},
      "y"},
     {"Sin s x -> b", "MatMul m b w -> c", "Tanh t c -> y"},
     0,
     NULL},
    // What is taken over an axis.
    {"a norm",
     "s",
     {"length of a part",
      18,
      {"x float[4,12]"},
      {"axes int64[1] 1", "w float[6,8]"},
      {"Split s x -> a b | axis=1 num_outputs=2", "ReduceL2 l b axes -> c", "Div d b c -> e",
       "Add p a e -> f", "MatMul m f w -> g", "Tanh t g -> y"},
      "y"},
     {"Split s x -> a b | axis=1 num_outputs=2", "Add p a b -> f", "MatMul m f w -> g",
      "Tanh t g -> y"},
     0,
     NULL},
    // Another value, which the model still has.
    {"another value",
     "m",
     {"scale of noise",
      18,
      {"x float[4,6]", "z float[4,1] positive"},
      {"one float[] 1", "w float[6,8]", "u float[1,8]"},
      {"Mul q z z -> a", "Add p a one -> b", "Sqrt r b -> c", "Div d x c -> e", "MatMul m e w -> f",
       "MatMul n c u -> g", "Add s f g -> h", "Tanh t h -> y"},
      "y"},
     {"Mul q z z -> a", "Add p a one -> b", "Sqrt r b -> c", "MatMul m x w -> f",
      "MatMul n c u -> g", "Add s f g -> h", "Tanh t h -> y"},
     0,
     NULL},
    // What a node is told.
    {"another operator",
     "r",
     {"soft largest",
      18,
      {"x float[6,5,4]"},
      {"axes int64[1] 1", "w float[4,7]"},
      {"ReduceLogSumExp r x axes -> a | keepdims=0", "MatMul m a w -> b", "Tanh t b -> y"},
      "y"},
     {"ReduceMean r x axes -> a | keepdims=0", "MatMul m a w -> b", "Tanh t b -> y"},
     0,
     NULL},
    {"another integer",
     "n",
     {"neighbours",
      18,
      {"x float[2,8,3,3]"},
      {"w float[5,8,1,1]"},
      {"LRN n x -> a | size=5 alpha=0.9", "Conv c a w -> b", "Tanh t b -> y"},
      "y"},
     {"LRN n x -> a | size=2 alpha=0.9", "Conv c a w -> b", "Tanh t b -> y"},
     0,
     NULL},
};

static void expressions_are_found(void** state) {
  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) cause_is_found(&rows[i]);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(expressions_are_found)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
