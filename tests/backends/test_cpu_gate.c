// Halves of a tensor, multiplied: run by the tactic, in both layouts, with what the emulated engine
// gives, but for a second rounding in 16 bits, and for what a convolution before it rounds; what
// only looks like it is left to other layers.
#include "backends/tactic_case.h"

#define W \
  { "w float[6,3,1,1]", "halves int64[2] 3 3", "uneven int64[2] 1 5" }

static const tactic_case_t layers[] = {
    {{"channels, plain",
      17,
      {"x float[2,8,5,7]"},
      {NULL},
      {"Split h x -> a b | axis=1", "Mul m a b -> y"},
      "y"},
     "gate",
     1e-7,
     false},
    {{"channels that lie last, odd ones, the other half first",
      17,
      {"x float[2,3,37,41]"},
      W,
      {"Conv c x w -> c", "Split h c halves -> a b | axis=1", "Mul m b a -> y"},
      "y"},
     "gate",
     4e-7,
     false},
    {{"lines of an image whose channels lie last",
      17,
      {"x float[2,3,38,41]"},
      W,
      {"Conv c x w -> c", "Split h c -> a b | axis=2", "Mul m a b -> y"},
      "y"},
     "gate",
     4e-7,
     false},
    {{"samples, special inputs",
      17,
      {"x float[4,3,17,5]"},
      {NULL},
      {"Split h x -> a b | axis=-4", "Mul m a b -> y"},
      "y"},
     "gate",
     1e-7,
     true},
    {{"the last dimension",
      17,
      {"x float[70,2110]"},
      {NULL},
      {"Split h x -> a b | axis=-1", "Mul m a b -> y"},
      "y"},
     "gate",
     1e-7,
     false},
    {{"one half twice",
      17,
      {"x float[2,8,5,7]"},
      {NULL},
      {"Split h x -> a b | axis=1", "Mul m a a -> y"},
      "y"},
     "pointwise",
     1e-7,
     false},
    {{"halves that are not halves, broadcast",
      17,
      {"x float[2,6,5,7]"},
      W,
      {"Split h x uneven -> a b | axis=1", "Mul m a b -> y"},
      "y"},
     "pointwise",
     1e-7,
     false},
    {{"a half that others read, too",
      17,
      {"x float[2,8,5,7]"},
      {NULL},
      {"Split h x -> a b | axis=1", "Relu r a -> z", "Mul m a b -> y"},
      "y z"},
     "pointwise",
     1e-7,
     false},
};

static void test_layers(void** state) {
  (void)state;
  tactic_case_all(layers, sizeof layers / sizeof *layers);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_layers)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
