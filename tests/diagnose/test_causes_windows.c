// Windows told in the other order of sides, poolings that went through a function, and masks of
// windows: each is found by golden outputs alone, and its repair, made in the model, gives golden.
#include "diagnose/cause_case.h"

#define DILATED(d, p)                                                                           \
  {                                                                                             \
    "Conv c x w -> a | dilations=" d " pads=" p, "Relu r a -> b", "GlobalAveragePool g b -> e", \
        "Flatten f e -> h", "MatMul m h v -> y"                                                 \
  }
#define POOLED(k, p)                                                                          \
  {                                                                                           \
    "Conv c x w -> a", "AveragePool q a -> b | kernel_shape=" k " pads=" p, "Mul s b b -> d", \
        "GlobalAveragePool g d -> e", "Flatten f e -> h", "MatMul m h v -> y"                 \
  }
#define ATTENTION \
  { "MatMul a q k -> s", "Add b s mask -> t", "Softmax c t -> p | axis=-1", "MatMul d p u -> y" }

static const cause_row_t rows[] = {
    {"sides of a window",
     "c",
     {"dilations of a convolution",
      17,
      {"x float[2,3,9,9]"},
      {"w float[4,3,3,3]", "v float[4,3]"},
      DILATED("1,3", "1,3,1,3"),
      "y"},
     DILATED("3,1", "3,1,3,1"),
     0,
     NULL},
    {"sides of a window",
     "q",
     {"sides of a pooling",
      17,
      {"x float[2,3,9,9]"},
      {"w float[4,3,1,1]", "v float[4,3]"},
      POOLED("3,7", "1,3,1,3"),
      "y"},
     POOLED("7,3", "3,1,3,1"),
     0,
     NULL},
    {"through a function",
     "p",
     {"erosion",
      17,
      {"x float[2,3,8,8]"},
      {"w float[4,3,1,1]", "v float[5,4,1,1]"},
      {"Conv c x w -> a", "Neg n a -> b", "MaxPool p b -> d | kernel_shape=3,3", "Neg o d -> e",
       "Conv z e v -> y"},
      "y"},
     {"Conv c x w -> a", "MaxPool p a -> e | kernel_shape=3,3", "Conv z e v -> y"},
     0,
     NULL},
    {"through a function",
     "p",
     {"root of the mean of squares",
      17,
      {"x float[2,3,8,8]"},
      {"w float[4,3,1,1]", "v float[5,4,1,1]"},
      {"Conv c x w -> a", "Mul n a a -> b", "AveragePool p b -> d | kernel_shape=3,3",
       "Sqrt o d -> e", "Conv z e v -> y"},
      "y"},
     {"Conv c x w -> a", "AveragePool p a -> e | kernel_shape=3,3", "Conv z e v -> y"},
     0,
     NULL},
    {"mask",
     "b",
     {"what is near only",
      17,
      {"q float[5,4]"},
      {"mask float[5,5] 0 -99 -99 -99 -99 0 0 -99 -99 -99 -99 0 0 -99 -99 -99 -99 0 0 -99 -99 -99 "
       "-99 0 0",
       "k float[4,5]", "u float[5,3]"},
      ATTENTION,
      "y"},
     ATTENTION,
     0,
     "mask float[5,5] 0 -99 -99 -99 -99 0 0 -99 -99 -99 0 0 0 -99 -99 0 0 0 0 -99 0 0 0 0 0"},
    {"mask",
     "b",
     {"by blocks",
      17,
      {"q float[4,4]"},
      {"mask float[4,4] 0 -99 -99 -99 0 0 -99 -99 -99 -99 0 -99 -99 -99 0 0", "k float[4,4]",
       "u float[4,3]"},
      ATTENTION,
      "y"},
     ATTENTION,
     0,
     "mask float[4,4] 0 -99 -99 -99 0 0 -99 -99 0 0 0 -99 0 0 0 0"},
};

static void windows_are_found(void** state) {
  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) cause_is_found(&rows[i]);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(windows_are_found)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
