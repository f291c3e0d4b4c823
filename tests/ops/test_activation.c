// Activations in float64 against values made with mpmath (700 digits), tails and subnormals
// included.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

// cmocka needs the four above before it
#include <math.h>

#include <cmocka.h>

#include "ops/math/activation.h"

#define sigmoid assay_sigmoid
#define softplus assay_softplus
#define softsign assay_softsign
#define gelu assay_gelu
#define gelu_tanh assay_gelu_tanh
#define mish assay_mish
#define hard_swish assay_hard_swish

static double swish_1702(double x) { return assay_swish(x, 1.702); }
static double elu_07(double x) { return assay_elu(x, 0.7); }
static double celu_07(double x) { return assay_celu(x, 0.7); }

static const struct {
  double (*f)(double);
  double x, y;
} rows[] = {
    {sigmoid, -0x1.7480000000000p+9, 0x0.0000000000001p-1022},
    {sigmoid, -0x1.62c0000000000p+9, 0x0.54e90c99fb878p-1022},
    {sigmoid, -0x1.4000000000000p+5, 0x1.39792499b1a24p-58},
    {sigmoid, -0x1.0000000000000p+0, 0x1.136561454ba86p-2},
    {sigmoid, -0x1.12e0be826d695p-30, 0x1.fffffffbb47d0p-2},
    {sigmoid, 0x1.3333333333333p-2, 0x1.261d545e46a8bp-1},
    {sigmoid, 0x1.2800000000000p+5, 0x1.fffffffffffffp-1},
    {sigmoid, 0x0.0000000000001p-1022, 0x1.0000000000000p-1},
    {softplus, -0x1.7480000000000p+9, 0x0.0000000000001p-1022},
    {softplus, -0x1.62c0000000000p+9, 0x0.54e90c99fb878p-1022},
    {softplus, -0x1.4000000000000p+5, 0x1.39792499b1a24p-58},
    {softplus, -0x1.0000000000000p+0, 0x1.40c7abfbec124p-2},
    {softplus, 0x1.12e0be826d695p-30, 0x1.62e42ff3ef21fp-1},
    {softplus, 0x1.3333333333333p-2, 0x1.b56e0cf4511afp-1},
    {softplus, 0x1.2800000000000p+5, 0x1.2800000000000p+5},
    {softplus, 0x1.9000000000000p+9, 0x1.9000000000000p+9},
    {softsign, -0x1.7e43c8800759cp+996, -0x1.0000000000000p+0},
    {softsign, -0x1.8000000000000p+1, -0x1.8000000000000p-1},
    {softsign, 0x1.56e1fc2f8f359p-997, 0x1.56e1fc2f8f359p-997},
    {softsign, 0x1.999999999999ap-4, 0x1.745d1745d1746p-4},
    {gelu, -0x1.3400000000000p+5, -0x0.000000000000bp-1022},
    {gelu, -0x1.3000000000000p+5, -0x0.0000084474d57p-1022},
    {gelu, -0x1.299999999999ap+5, -0x1.5c2c2b35743e3p-1000},
    {gelu, -0x1.2400000000000p+5, -0x1.93ec522705a3ap-963},
    {gelu, -0x1.1f33333333333p+5, -0x1.fd9afe3d51859p-932},
    {gelu, -0x1.e000000000000p+4, -0x1.601c52358b95dp-651},
    {gelu, -0x1.899999999999ap+3, -0x1.7235e7f05949bp-111},
    {gelu, -0x1.4000000000000p+2, -0x1.80bcbae98063dp-20},
    {gelu, -0x1.0000000000000p+0, -0x1.44ed0bb7cb20bp-3},
    {gelu, -0x1.4f8b588e368f1p-17, -0x1.4f8aa9194e347p-18},
    {gelu, 0x1.56e1fc2f8f359p-997, 0x1.56e1fc2f8f359p-998},
    {gelu, 0x1.6666666666666p-1, 0x1.0fae235c089dcp-1},
    {gelu, 0x1.8000000000000p+1, 0x1.7f7b4cb426ddcp+1},
    {gelu, 0x1.2000000000000p+3, 0x1.2000000000000p+3},
    {gelu_tanh, -0x1.5666666666666p+4, -0x0.00000001355b1p-1022},
    {gelu_tanh, -0x1.5000000000000p+4, -0x1.9c99db33e694cp-998},
    {gelu_tanh, -0x1.419999999999ap+4, -0x1.1130d167bbcd9p-878},
    {gelu_tanh, -0x1.e000000000000p+3, -0x1.eb41c83768019p-379},
    {gelu_tanh, -0x1.4000000000000p+2, -0x1.ec28d40db8458p-23},
    {gelu_tanh, -0x1.0000000000000p+0, -0x1.453d22357147ap-3},
    {gelu_tanh, -0x1.4f8b588e368f1p-17, -0x1.4f8aa9194e347p-18},
    {gelu_tanh, 0x1.6666666666666p-1, 0x1.0fa6e38195e8bp-1},
    {gelu_tanh, 0x1.8000000000000p+1, 0x1.7f88cf57fba7bp+1},
    {gelu_tanh, 0x1.2000000000000p+3, 0x1.2000000000000p+3},
    {swish_1702, -0x1.b800000000000p+8, -0x0.0000000000005p-1022},
    {swish_1702, -0x1.b500000000000p+8, -0x0.0000000000353p-1022},
    {swish_1702, -0x1.ae4cccccccccdp+8, -0x0.00000047980eep-1022},
    {swish_1702, -0x1.2cb3333333333p+8, -0x1.d4f134237286ap-731},
    {swish_1702, -0x1.e000000000000p+4, -0x1.2ef04aded2b21p-69},
    {swish_1702, -0x1.0000000000000p+0, -0x1.3bcf6df1c93d6p-3},
    {swish_1702, -0x1.4f8b588e368f1p-17, -0x1.4f8a9d6b2c0ddp-18},
    {swish_1702, 0x1.6666666666666p-1, 0x1.12e3c398246b8p-1},
    {swish_1702, 0x1.e000000000000p+4, 0x1.e000000000000p+4},
    {mish, -0x1.7700000000000p+9, -0x0.0000000000003p-1022},
    {mish, -0x1.7480000000000p+9, -0x0.00000000001aap-1022},
    {mish, -0x1.5e00000000000p+9, -0x1.7aa3cdf7f304ep-1001},
    {mish, -0x1.6800000000000p+5, -0x1.7c309adf4f0dep-60},
    {mish, -0x1.3800000000000p+5, -0x1.03a0776484b96p-51},
    {mish, -0x1.4000000000000p+2, -0x1.130e795f2916ep-5},
    {mish, -0x1.0000000000000p+0, -0x1.36aedf68a4413p-2},
    {mish, -0x1.4f8b588e368f1p-17, -0x1.92a6aa543d9f5p-18},
    {mish, 0x1.6666666666666p-1, 0x1.1f4ed7145e1b3p-1},
    {mish, 0x1.8000000000000p+1, 0x1.7e46c76f59296p+1},
    {mish, 0x1.e000000000000p+4, 0x1.e000000000000p+4},
    {hard_swish, -0x1.7ffcb923a29c7p+1, -0x1.a30a9c12b95c7p-15},
    {hard_swish, -0x1.0000000000000p+0, -0x1.5555550000000p-2},
    {hard_swish, 0x1.56e1fc2f8f359p-997, 0x1.56e1fc2f8f359p-998},
    {hard_swish, 0x1.999999999999ap-4, 0x1.a740da7ae147bp-5},
    {hard_swish, 0x1.7333333333333p+1, 0x1.6d036a29eb852p+1},
    {elu_07, -0x1.9000000000000p+9, -0x1.6666666666666p-1},
    {elu_07, -0x1.4000000000000p+2, -0x1.63fc30cf986f1p-1},
    {elu_07, -0x1.12e0be826d695p-30, -0x1.80d43de691f63p-31},
    {celu_07, -0x1.9000000000000p+9, -0x1.6666666666666p-1},
    {celu_07, -0x1.4000000000000p+2, -0x1.661ddf4847b82p-1},
    {celu_07, -0x1.12e0be826d695p-30, -0x1.12e0be7f2221bp-30},
};

// The functions keep 4 ulp; ulps are those of subnormals where results are.
static void test_values(void** state) {
  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    double y = rows[i].f(rows[i].x), want = rows[i].y;
    double ulp = fmax(nextafter(fabs(want), INFINITY) - fabs(want), 0x1p-1074);
    if (!(fabs(y - want) <= 4 * ulp))
      fail_msg("row %zu: f(%a) = %a, expected %a", i, rows[i].x, y, want);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_values)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
