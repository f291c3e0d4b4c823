// Polynomials of the vector functions, highest coefficient first. Made by
// scripts/fit_polynomials.py; behind each its largest error, relative to the function's value.
#ifndef ASSAY_BACKENDS_CPU_VMATH_POLYNOMIALS_H_
#define ASSAY_BACKENDS_CPU_VMATH_POLYNOMIALS_H_

// (e^r - 1 - r) / r^2, |r| <= ln(2) / 16; 2^-36.1.
static const double poly_expm1[4] = {
    0x1.1111ca91aacfcp-7, 0x1.555c283e4b9b5p-5, 0x1.55555562811d8p-3, 0x1.ffffffe5dd786p-2};
// (2^r - 1) / r, |r| <= 1 / 2; 2^-32.0.
static const double poly_exp2m1[7] = {
    0x1.ffcb97614673cp-17, 0x1.443f8615b2b8fp-13, 0x1.5d88be28df755p-10, 0x1.3b2a1c10db2d9p-7,
    0x1.c6b08cb0c0a99p-5, 0x1.ebfbe0454ea7dp-3, 0x1.62e42fefd38b9p-1};
// (log((1 + s) / (1 - s)) - 2 s) / s^3 by s^2, |s| <= (sqrt(2) - 1)^2; 2^-37.6.
static const double poly_log[4] = {
    0x1.e2f42b348bbadp-3, 0x1.2438e9553f450p-2, 0x1.999a7a35a3e44p-2, 0x1.555554fdd6cb4p-1};
// (log2((1 + s) / (1 - s)) - 2 s / ln(2)) / s^3 by s^2, as before; 2^-44.9.
static const double poly_log2[5] = {
    0x1.2150886869089p-2, 0x1.479d18843a826p-2, 0x1.a619f4d3dc9afp-2, 0x1.2776c2f164166p-1,
    0x1.ec709dc4c13a3p-1};
// (sin(r) - r) / r^3 by r^2, |r| <= pi / 4; 2^-37.5.
static const double poly_sin[4] = {
    0x1.6cd1d504b6d23p-19, -0x1.a00f7eb49d6dep-13, 0x1.11110869deb5fp-7, -0x1.5555554c712c8p-3};
// (cos(r) - 1 + r^2 / 2) / r^4 by r^2, |r| <= pi / 4; 2^-42.9.
static const double poly_cos[4] = {
    -0x1.241e87077f641p-22, 0x1.a010de65fdf59p-16, -0x1.6c16b82965c4cp-10, 0x1.5555554ed8c69p-5};
// (asin(x) - x) / x^3 by x^2, |x| <= 1 / 2; 2^-35.8.
static const double poly_asin[7] = {
    0x1.1bd19aedaa0fep-5, 0x1.ec2b87682ee7cp-8, 0x1.931ef85f7d96bp-6, 0x1.ed5d343e664d6p-6,
    0x1.6ddabea3cf976p-5, 0x1.3332aa0ce2426p-4, 0x1.55555605c1b82p-3};
// (atan(x) - x) / x^3 by x^2, |x| <= 1; 2^-33.9.
static const double poly_atan[11] = {
    -0x1.6ded4f6783324p-11, 0x1.42d9c1ea58821p-8, -0x1.0b0c43c5f682ap-6, 0x1.1a6ca9c056440p-5,
    -0x1.be97c41f66410p-5, 0x1.29588f854a433p-4, -0x1.700b16abffefap-4, 0x1.c66e48ee2bbb8p-4,
    -0x1.248a2c61df890p-3, 0x1.999937ec6d5f3p-3, -0x1.555554872c81bp-2};
// erf(x) / x by x^2, |x| <= 1; 2^-34.8.
static const double poly_erf[8] = {
    -0x1.43809595b9ca9p-17, 0x1.d825294018d7fp-14, -0x1.bcbe608d66303p-11, 0x1.5628e954a9d5ap-8,
    -0x1.b829a74670b27p-6, 0x1.ce2f07951630cp-4, -0x1.8127465fadb91p-2, 0x1.20dd7504007c7p+0};
// (Phi(-b) e^(b^2 / 2) / (1 - v) - 1 / 2) / v by v = 1 - 1 / (1 + 0.3 b), 0 <= b <= 15; 2^-36.1.
static const double poly_tail[13] = {
    0x1.7ac90c81117c4p-8, -0x1.33fed8291421bp-5, 0x1.81e5627cedf91p-4, -0x1.d7626ed04d88bp-4,
    0x1.4a9f4f27622f5p-4, -0x1.db2e432d3317cp-5, 0x1.c9f52f1f6e61ap-6, 0x1.430a662e4beb0p-5,
    0x1.9ee6eda7bba22p-7, -0x1.197d4fa0be688p-3, -0x1.4cfef10f7d2fap-4, 0x1.3c7fc8b010d62p-1,
    -0x1.a8dc8aabb010dp-1};
// the same with fewer terms; 2^-28.5.
static const double poly_tail_short[10] = {
    0x1.da762d4c1f731p-10, 0x1.af0a5b6368c6ap-7, -0x1.eba939b2954a4p-5, 0x1.dd4a3690d8b3bp-5,
    0x1.242dd350af87ep-6, 0x1.4f789055b340fp-6, -0x1.1cccf8775b5e1p-3, -0x1.4c3b8796dce87p-4,
    0x1.3c7e66fa7a285p-1, -0x1.a8dc83b4d9b18p-1};
// (e^r - 1 - r) / r^2, |r| <= ln(2) / 32, in float32; 2^-29.2.
static const float poly32_exp[2] = {
    0x1.55559ap-3F, 0x1.00021ep-1F};
// (tanh(x) - x) / x^3 by x^2, |x| <= 0.875, in float32; 2^-29.5.
static const float poly32_tanh[7] = {
    -0x1.f99b1ep-12F, 0x1.5b65c4p-9F, -0x1.1100c2p-7F, 0x1.6376b6p-6F, -0x1.b9da5p-5F,
    0x1.110fa8p-3F, -0x1.55555p-2F};
// erf(x) / x - 1 by x^2, |x| <= 0.91, in float32; 2^-28.8.
static const float poly32_erf[8] = {
    0x1.c3cap-19F, 0x1.204786p-14F, -0x1.9edb0ap-11F, 0x1.53cc22p-8F, -0x1.b7f9aep-6F,
    0x1.ce2d42p-4F, -0x1.81274p-2F, 0x1.06eba8p-3F};
// log(erfc(a)) by a, 0.9 <= a <= 4, in float32; 2^-29.0.
static const float poly32_erfc[7] = {
    0x1.9d81dep-13F, -0x1.907f9ap-9F, 0x1.6cfc42p-6F, -0x1.aa22d2p-4F, -0x1.462cbap-1F,
    -0x1.20b43p+0F, -0x1.744a0ep-13F};
// 2^(i / 8), 2^(i / 16), and what float32 has lost of it.
static const double table_exp2[8] = {
    0x1.0000000000000p+0, 0x1.172b83c7d517bp+0, 0x1.306fe0a31b715p+0, 0x1.4bfdad5362a27p+0,
    0x1.6a09e667f3bcdp+0, 0x1.8ace5422aa0dbp+0, 0x1.ae89f995ad3adp+0, 0x1.d5818dcfba487p+0};
static const float table32_exp2[16] = {
    0x1p+0F, 0x1.0b5586p+0F, 0x1.172b84p+0F, 0x1.2387a6p+0F, 0x1.306fep+0F, 0x1.3dea64p+0F,
    0x1.4bfdaep+0F, 0x1.5ab07ep+0F, 0x1.6a09e6p+0F, 0x1.7a1148p+0F, 0x1.8ace54p+0F,
    0x1.9c4918p+0F, 0x1.ae89fap+0F, 0x1.c199bep+0F, 0x1.d5818ep+0F, 0x1.ea4afap+0F};
static const float table32_exp2_low[16] = {
    0x0p+0F, 0x1.9f3122p-25F, -0x1.c15742p-27F, 0x1.ceac48p-25F, 0x1.4636e2p-25F, 0x1.824684p-25F,
    -0x1.593abcp-25F, -0x1.5bd5ecp-27F, 0x1.9fcef4p-26F, -0x1.829fdp-25F, 0x1.15506ep-27F,
    0x1.51f848p-27F, -0x1.a94b14p-26F, -0x1.3d56b2p-27F, -0x1.822dbcp-27F, 0x1.52486cp-27F};

#endif  // ASSAY_BACKENDS_CPU_VMATH_POLYNOMIALS_H_
