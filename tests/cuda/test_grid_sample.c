// GridSample on a GPU that is not there (fake/): beside the emulated engine and within its bounds,
// at the borders, and at places that are none.
#include <stdlib.h>

#include "backends/tactic_case.h"

#define LIST(...) \
  { __VA_ARGS__ }
#define ROW(opset, x, grid, options)                                                        \
  {                                                                                         \
    {options ", " x, opset, LIST(x, grid), {0}, {"GridSample n x g -> y | " options}, "y"}, \
        "grid_sample", 1e-6, false                                                          \
  }
#define PLANES(options) ROW(20, "x float[2,11,5,7]", "g float[2,4,9,2]", options)
// Ends of the axes, the middle, and beyond.
#define FAR                                                                                     \
  "g float[1,3,4,2] -1 -1  1 1  -1.4 0.3  2.5 -3.25  0 0  0.999 -0.999  -7 9  1.05 1.05  0.25 " \
  "-0.75  100 -100  -1 1  1.5 0.5"
#define BEYOND(options) ROW(20, "x float[1,3,4,6]", FAR, options)
static const tactic_case_t samples[] = {
    PLANES("mode=linear"),
    PLANES("mode=nearest"),
    PLANES("mode=cubic"),
    PLANES("mode=linear align_corners=1"),
    PLANES("mode=cubic align_corners=1 padding_mode=reflection"),
    BEYOND("mode=linear padding_mode=zeros"),
    BEYOND("mode=linear padding_mode=border"),
    BEYOND("mode=linear padding_mode=reflection"),
    BEYOND("mode=linear padding_mode=border align_corners=1"),
    BEYOND("mode=linear padding_mode=reflection align_corners=1"),
    BEYOND("mode=cubic padding_mode=zeros"),
    BEYOND("mode=cubic padding_mode=border"),
    BEYOND("mode=cubic padding_mode=reflection"),
    BEYOND("mode=nearest padding_mode=zeros"),
    BEYOND("mode=nearest padding_mode=border align_corners=1"),
    BEYOND("mode=nearest padding_mode=reflection"),
    ROW(16, "x float[1,9,5,1]", "g float[1,3,3,2]", "mode=bilinear"),
    ROW(16, "x float[1,2,5,6]", "g float[1,3,3,2]", "mode=bicubic padding_mode=border"),
    ROW(20, "x float[2,3,9]", "g float[2,17,1]", "mode=linear"),
    ROW(20, "x float[2,3,9]", "g float[2,17,1]", "mode=cubic padding_mode=reflection"),
    ROW(20, "x float[1,3,4,5,6]", "g float[1,2,3,4,3]", "mode=linear padding_mode=border"),
    ROW(20, "x float[1,3,4,5,6]", "g float[1,2,3,4,3]", "mode=nearest"),
};

static void samples_agree(void** state) {
  (void)state;
  tactic_case_all(samples, sizeof samples / sizeof *samples);
}

// Coordinates that are NaN, infinite or huge, and such elements: as in the emulated engine.
static void specials_agree(void** state) {
  (void)state;
  static const char* const nodes[] = {
      "GridSample n x g -> y | padding_mode=zeros", "GridSample n x g -> y | padding_mode=border",
      "GridSample n x g -> y | padding_mode=reflection",
      "GridSample n x g -> y | mode=nearest padding_mode=reflection",
      "GridSample n x g -> y | mode=cubic padding_mode=border"};
  for (size_t i = 0; i < sizeof nodes / sizeof *nodes; i++) {
    const graph_case_t graph = {nodes[i], 20,         {"x float[1,2,6,6]", "g float[1,6,6,2]"},
                                {NULL},   {nodes[i]}, "y"};
    assay_tensor_t* in[GRAPH_CASE_ROWS] = {NULL};
    assay_model_t* m = graph_case_model(&graph, in);
    tactic_run_t want, got;
    tactic_case_specials(in[1]);
    tactic_case_run(m, "emu", ASSAY_FORMAT_FP32, in, &want);
    tactic_case_run(m, "cuda", ASSAY_FORMAT_FP32, in, &got);
    assert_true(tactic_case_is_by(got.tactic, "grid_sample"));
    tactic_case_compare(nodes[i], "fp32", want.out[0], got.out[0], 1e-6);
    tactic_case_release(&want);
    tactic_case_release(&got);
    graph_case_release(in);
    assay_model_release(m);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(samples_agree),
                                     cmocka_unit_test(specials_agree)};
  const char* platform = getenv("ASSAY_TEST_LIBCUDA");
  setenv("ASSAY_CUDA_PATH", platform ? platform : ".", 1);
  tactic_case_backend = "cuda";
  return cmocka_run_group_tests(tests, NULL, NULL);
}
