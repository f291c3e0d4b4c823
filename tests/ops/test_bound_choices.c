// Choices by computed numbers: which element is nearest, whether a place lies within the image,
// which boxes overlap too much. Engines that compute those numbers in their own arithmetic may
// choose otherwise near a tie, and only there: limits reach to the other choice, and are 0 (or
// rounding's) elsewhere.
#include "ops/bound_case.h"

typedef struct choice {
  op_case_t row;
  // By element of output 0: how far the other choice lies from truth; 0: there is none.
  const char* other;
} choice_t;

static const choice_t choices[] = {
    // Places j / 3: at 3, 6 and 9 an engine that multiplies by 1/3 may stay below 1, 2 and 3.
    {{"Resize",
      13,
      "mode=nearest coordinate_transformation_mode=asymmetric nearest_mode=floor",
      {"float[4] iota", "-", "float[1] 3"},
      {"?"},
      NULL},
     "float[12] 0 0 0 1 0 0 1 0 0 1 0 0"},
    // (j + 0.5) / 2 - 0.5 is a quarter away from ties.
    {{"Resize",
      13,
      "mode=nearest coordinate_transformation_mode=half_pixel",
      {"float[4] iota", "-", "float[1] 2"},
      {"?"},
      NULL},
     "float[8] 0 0 0 0 0 0 0 0"},
    // 2 (j + 0.5) - 0.5 is on one.
    {{"Resize",
      13,
      "mode=nearest coordinate_transformation_mode=half_pixel",
      {"float[4] 0 1 4 9", "-", "float[1] 0.5"},
      {"?"},
      NULL},
     "float[2] 1 5"},
    {{"Resize",
      13,
      "mode=nearest coordinate_transformation_mode=half_pixel",
      {"uint8[4] 0 10 40 90", "-", "float[1] 0.5"},
      {"?"},
      NULL},
     "float[2] 10 50"},
    {{"Resize",
      19,
      "mode=nearest coordinate_transformation_mode=align_corners nearest_mode=round_prefer_ceil",
      {"float[3] 0 1 5", "-", "-", "int64[1] 5"},
      {"?"},
      NULL},
     "float[5] 0 1 0 4 0"},
    // Ties along both axes: the farthest of the other three.
    {{"Resize",
      13,
      "mode=nearest coordinate_transformation_mode=half_pixel",
      {"float[2,2] 0 1 10 100", "-", "float[2] 0.5 0.5"},
      {"?"},
      NULL},
     "float[1,1] 100"},
    {{"Upsample", 9, "mode=nearest", {"float[1,3] 5 7 8", "float[2] 1 3"}, {"?"}, NULL},
     "float[1,9] 0 0 0 2 0 0 1 0 0"},
    // The ends of the crop are the image's: outside it the value is 10.
    {{"Resize",
      13,
      "mode=linear coordinate_transformation_mode=tf_crop_and_resize extrapolation_value=10",
      {"float[4] iota", "float[2] 0 1", "-", "int64[1] 3"},
      {"?"},
      NULL},
     "float[3] 10 0 7"},
    // Places 0.5, and 0.85.
    {{"GridSample",
      20,
      "mode=nearest align_corners=1",
      {"float[1,1,1,2] 0 3", "float[1,1,2,2] 0 0 0.7 0"},
      {"?"},
      NULL},
     "float[1,1,1,2] 3 0"},
    // The last place may lie outside, too.
    {{"com.microsoft.CropAndResize",
      1,
      "mode=nearest",
      {"float[1,1,2,2] 0 0 8 8", "float[1,4] 0 0 1 1", "int32[1] 0", "int32[2] 3 1"},
      {"?"},
      NULL},
     "float[1,1,3,1] 0 8 8"},
    {{"MaxRoiPool",
      1,
      "pooled_shape=1,1 spatial_scale=0.5",
      {"float[1,1,1,4] 0 1 2 7", "float[1,5] 0 0 0 5 0"},
      {"?"},
      NULL},
     "float[1,1,1,1] 5"},
};

// For an engine of which little is known, or that follows the documented order. Gives the choices
// that limits on the inputs leave open.
static int64_t limits_behind(const op_case_t* row, bool documented, const assay_limits_t* in_error,
                             bool flips, assay_limits_t* out) {
  assay_rounding_t rounding = assay_rounding_unknown(ASSAY_FORMAT_FP32, ASSAY_FORMAT_FP32);
  rounding.documented = documented;
  return bound_case_limits(row, &rounding, in_error, flips, out);
}

static void limits_of(const op_case_t* row, bool documented, assay_limits_t* out) {
  assert_int_equal(limits_behind(row, documented, NULL, true, out), 0);
}

static void ties_have_two_answers(void** state) {
  (void)state;
  for (size_t r = 0; r < sizeof choices / sizeof *choices; r++) {
    assay_limits_t l = {0};
    limits_of(&choices[r].row, false, &l);
    assay_tensor_t* other = op_case_tensor(choices[r].other);
    assert_non_null(l.guaranteed);
    assert_int_equal(l.guaranteed->size, other->size);
    for (int64_t i = 0; i < other->size; i++) {
      const double far = assay_f64(other)[i], g = assay_f64(l.guaranteed)[i];
      const double p = assay_f64(l.probable)[i], rounding = 1e-4;
      if (p >= far && g >= p && g <= 2 * far + rounding) continue;
      fail_msg("row %zu (%s), element %lld: limits %g and %g, the other choice is %g away", r,
               choices[r].row.op, (long long)i, g, p, far);
    }
    assay_tensor_release(other);
    assay_limits_deinit(&l);
  }
}

// The emulated engine computes places in float64: it has no choice.
static void documented_order_has_none(void** state) {
  (void)state;
  for (size_t r = 0; r < sizeof choices / sizeof *choices; r++) {
    assay_limits_t l = {0};
    if (strcmp(choices[r].row.op, "Resize") != 0 && strcmp(choices[r].row.op, "Upsample") != 0)
      continue;
    limits_of(&choices[r].row, true, &l);
    for (int64_t i = 0; l.guaranteed && i < l.guaranteed->size; i++)
      assert_true(assay_f64(l.guaranteed)[i] < 1e-4);
    assay_limits_deinit(&l);
  }
}

// Floor and its like behind numbers that may be off by 0.01: only those near an edge may come out
// otherwise.
static void choices_flip_near_edges(void** state) {
  (void)state;
  static const struct {
    op_case_t row;
    const char* flips;  // limits
    int64_t open;
  } edges[] = {
#define X "float[4] 1.3 2 3.5 0.001"
      {{"Floor", 13, NULL, {X}, {"?"}, NULL}, "double[4] 0 1 0 1", 2},
      {{"Ceil", 13, NULL, {X}, {"?"}, NULL}, "double[4] 0 1 0 1", 2},
      {{"Round", 13, NULL, {X}, {"?"}, NULL}, "double[4] 0 0 1 0", 1},
      {{"Sign", 13, NULL, {X}, {"?"}, NULL}, "double[4] 0 0 0 2", 1},
      {{"Cast", 13, "to=7", {X}, {"?"}, NULL}, "double[4] 0 1 0 0", 1},
      {{"Cast", 13, "to=9", {X}, {"?"}, NULL}, "double[4] 0 0 0 1", 1},
      {{"Less", 13, NULL, {X, "float[] 3.505"}, {"?"}, NULL}, "double[4] 0 0 1 0", 1},
      {{"Equal", 13, NULL, {X, "float[] 1.305"}, {"?"}, NULL}, "double[4] 1 0 0 0", 1},
      {{"Equal", 13, NULL, {X, "float[] 1.3"}, {"?"}, NULL}, "double[4] 1 0 0 0", 1},
      {{"Equal", 13, NULL, {X, "float[] 7"}, {"?"}, NULL}, NULL, 0},
      {{"ArgMax", 13, NULL, {X}, {"?"}, NULL}, NULL, 0},
      // Indices of all that the largest may be.
      {{"ArgMax", 13, NULL, {"float[4] 1 1.005 0.99 0.9"}, {"?"}, NULL}, "double[1] 1", 1},
      {{"ArgMin", 13, "axis=1", {"float[2,2] 1 1.5 1 1.015"}, {"?"}, NULL}, "double[2,1] 0 1", 1},
      {{"Hardmax", 13, NULL, {"float[1,2] 1 9"}, {"?"}, NULL}, "double[1,2] inf inf", 2},
  };
  for (size_t r = 0; r < sizeof edges / sizeof *edges; r++) {
    assay_tensor_t* x = op_case_tensor(edges[r].row.in[0]);
    assay_limits_t in[2] = {{NULL, NULL}}, l = {0};
    op_case_ok(assay_tensor_create(ASSAY_TYPE_DOUBLE, x->rank, x->dims, &in[0].guaranteed));
    for (int64_t i = 0; i < x->size; i++) assay_f64(in[0].guaranteed)[i] = 0.01;
    in[0].probable = in[0].guaranteed;
    assert_int_equal(limits_behind(&edges[r].row, false, in, false, &l), edges[r].open);
    assert_null(l.guaranteed);
    assert_int_equal(limits_behind(&edges[r].row, false, in, true, &l), edges[r].open);
    assay_tensor_t* expected = edges[r].flips ? op_case_tensor(edges[r].flips) : NULL;
    if (!expected != !l.guaranteed || (expected && !op_case_same(l.guaranteed, expected))) {
      if (l.guaranteed) op_case_print(l.guaranteed);
      fail_msg("row %zu (%s)", r, edges[r].row.op);
    }
    assay_tensor_release(expected);
    assay_tensor_release(in[0].guaranteed);
    assay_tensor_release(x);
    assay_limits_deinit(&l);
  }
}

// Which elements TopK takes is open where two of them may change places; a line by itself.
static void indices_are_open_near_ties(void** state) {
  (void)state;
  static const struct {
    op_case_t row;
    int64_t open;
  } rows[] = {
      {{"TopK", 11, NULL, {"float[4] 1 3 2 0", "int64[1] 2"}, {"?", "?"}, NULL}, 0},
      {{"TopK", 11, NULL, {"float[4] 1 3 2.99 0", "int64[1] 3"}, {"?", "?"}, NULL}, 2},
      {{"TopK", 11, NULL, {"float[4] 1 3 2.99 0", "int64[1] 1"}, {"?", "?"}, NULL}, 1},
      {{"TopK", 11, "axis=0", {"float[2,2] 1 3 1.01 0", "int64[1] 1"}, {"?", "?"}, NULL}, 1},
  };
  for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
    assay_tensor_t* x = op_case_tensor(rows[r].row.in[0]);
    assay_limits_t in[2] = {{NULL, NULL}}, l = {0};
    op_case_ok(assay_tensor_create(ASSAY_TYPE_DOUBLE, x->rank, x->dims, &in[0].guaranteed));
    for (int64_t i = 0; i < x->size; i++) assay_f64(in[0].guaranteed)[i] = 0.01;
    in[0].probable = in[0].guaranteed;
    const int64_t open = limits_behind(&rows[r].row, false, in, true, &l);
    if (open != rows[r].open) fail_msg("row %zu: %lld are open", r, (long long)open);
    assay_limits_deinit(&l);
    assay_tensor_release(in[0].guaranteed);
    assay_tensor_release(x);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(ties_have_two_answers),
      cmocka_unit_test(documented_order_has_none),
      cmocka_unit_test(choices_flip_near_edges),
      cmocka_unit_test(indices_are_open_near_ties),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
