// Polynomials of the vector functions, highest coefficient first. Made by
// scripts/fit_polynomials.py; after each its largest error, relative to the function's value.
#ifndef ASSAY_BACKENDS_VMATH_POLYNOMIALS_H_
#define ASSAY_BACKENDS_VMATH_POLYNOMIALS_H_

// (e^r - 1 - r) / r^2, |r| <= ln(2) / 16; 2^-36.1.
VTABLE double poly_expm1[4] = {
    0x1.1111ca91aacfcp-7, 0x1.555c283e4b9b5p-5, 0x1.55555562811d8p-3, 0x1.ffffffe5dd786p-2};
// (2^r - 1) / r, |r| <= 1 / 2; 2^-32.0.
VTABLE double poly_exp2m1[7] = {
    0x1.ffcb97614673cp-17, 0x1.443f8615b2b8fp-13, 0x1.5d88be28df755p-10, 0x1.3b2a1c10db2d9p-7,
    0x1.c6b08cb0c0a99p-5, 0x1.ebfbe0454ea7dp-3, 0x1.62e42fefd38b9p-1};
// (log((1 + s) / (1 - s)) - 2 s) / s^3 by s^2, |s| <= (sqrt(2) - 1)^2; 2^-37.6.
VTABLE double poly_log[4] = {
    0x1.e2f42b348bbadp-3, 0x1.2438e9553f450p-2, 0x1.999a7a35a3e44p-2, 0x1.555554fdd6cb4p-1};
// (log2((1 + s) / (1 - s)) - 2 s / ln(2)) / s^3 by s^2, as before; 2^-44.9.
VTABLE double poly_log2[5] = {
    0x1.2150886869089p-2, 0x1.479d18843a826p-2, 0x1.a619f4d3dc9afp-2, 0x1.2776c2f164166p-1,
    0x1.ec709dc4c13a3p-1};
// (sin(r) - r) / r^3 by r^2, |r| <= pi / 4; 2^-37.5.
VTABLE double poly_sin[4] = {
    0x1.6cd1d504b6d23p-19, -0x1.a00f7eb49d6dep-13, 0x1.11110869deb5fp-7, -0x1.5555554c712c8p-3};
// (cos(r) - 1 + r^2 / 2) / r^4 by r^2, |r| <= pi / 4; 2^-42.9.
VTABLE double poly_cos[4] = {
    -0x1.241e87077f641p-22, 0x1.a010de65fdf59p-16, -0x1.6c16b82965c4cp-10, 0x1.5555554ed8c69p-5};
// (asin(x) - x) / x^3 by x^2, |x| <= 1 / 2; 2^-35.8.
VTABLE double poly_asin[7] = {
    0x1.1bd19aedaa0fep-5, 0x1.ec2b87682ee7cp-8, 0x1.931ef85f7d96bp-6, 0x1.ed5d343e664d6p-6,
    0x1.6ddabea3cf976p-5, 0x1.3332aa0ce2426p-4, 0x1.55555605c1b82p-3};
// (atan(x) - x) / x^3 by x^2, |x| <= 1; 2^-33.9.
VTABLE double poly_atan[11] = {
    -0x1.6ded4f6783324p-11, 0x1.42d9c1ea58821p-8, -0x1.0b0c43c5f682ap-6, 0x1.1a6ca9c056440p-5,
    -0x1.be97c41f66410p-5, 0x1.29588f854a433p-4, -0x1.700b16abffefap-4, 0x1.c66e48ee2bbb8p-4,
    -0x1.248a2c61df890p-3, 0x1.999937ec6d5f3p-3, -0x1.555554872c81bp-2};
// erf(x) / x by x^2, |x| <= 1; 2^-34.8.
VTABLE double poly_erf[8] = {
    -0x1.43809595b9ca9p-17, 0x1.d825294018d7fp-14, -0x1.bcbe608d66303p-11, 0x1.5628e954a9d5ap-8,
    -0x1.b829a74670b27p-6, 0x1.ce2f07951630cp-4, -0x1.8127465fadb91p-2, 0x1.20dd7504007c7p+0};
// (Phi(-b) e^(b^2 / 2) / (1 - v) - 1 / 2) / v by v = 1 - 1 / (1 + 0.3 b), 0 <= b <= 15; 2^-36.1.
VTABLE double poly_tail[13] = {
    0x1.7ac90c81117c4p-8, -0x1.33fed8291421bp-5, 0x1.81e5627cedf91p-4, -0x1.d7626ed04d88bp-4,
    0x1.4a9f4f27622f5p-4, -0x1.db2e432d3317cp-5, 0x1.c9f52f1f6e61ap-6, 0x1.430a662e4beb0p-5,
    0x1.9ee6eda7bba22p-7, -0x1.197d4fa0be688p-3, -0x1.4cfef10f7d2fap-4, 0x1.3c7fc8b010d62p-1,
    -0x1.a8dc8aabb010dp-1};
// the same with fewer terms; 2^-28.5.
VTABLE double poly_tail_short[10] = {
    0x1.da762d4c1f731p-10, 0x1.af0a5b6368c6ap-7, -0x1.eba939b2954a4p-5, 0x1.dd4a3690d8b3bp-5,
    0x1.242dd350af87ep-6, 0x1.4f789055b340fp-6, -0x1.1cccf8775b5e1p-3, -0x1.4c3b8796dce87p-4,
    0x1.3c7e66fa7a285p-1, -0x1.a8dc83b4d9b18p-1};
// (e^r - 1 - r) / r^2, |r| <= ln(2) / 32, in float32; 2^-29.2.
VTABLE float poly32_exp[2] = {
    0x1.55559ap-3F, 0x1.00021ep-1F};
// (tanh(x) - x) / x^3 by x^2, |x| <= 0.875, in float32; 2^-29.5.
VTABLE float poly32_tanh[7] = {
    -0x1.f99b1ep-12F, 0x1.5b65c4p-9F, -0x1.1100c2p-7F, 0x1.6376b6p-6F, -0x1.b9da5p-5F,
    0x1.110fa8p-3F, -0x1.55555p-2F};
// erf(x) / x - 1 by x^2, |x| <= 0.91, in float32; 2^-28.8.
VTABLE float poly32_erf[8] = {
    0x1.c3cap-19F, 0x1.204786p-14F, -0x1.9edb0ap-11F, 0x1.53cc22p-8F, -0x1.b7f9aep-6F,
    0x1.ce2d42p-4F, -0x1.81274p-2F, 0x1.06eba8p-3F};
// log(erfc(a)) by a, 0.9 <= a <= 4, in float32; 2^-29.0.
VTABLE float poly32_erfc[7] = {
    0x1.9d81dep-13F, -0x1.907f9ap-9F, 0x1.6cfc42p-6F, -0x1.aa22d2p-4F, -0x1.462cbap-1F,
    -0x1.20b43p+0F, -0x1.744a0ep-13F};
// Phi(-b), 0 <= b <= 5, in float32; 2^-24.3.
VTABLE float pieces32_gelu[9][32] = {
    {0x1p-1F, 0x1.9aecbap-2F, 0x1.3bf144p-2F, 0x1.d022p-3F, 0x1.44ed0cp-3F, 0x1.b0bdd2p-4F,
     0x1.11a46ep-4F, 0x1.482a24p-5F, 0x1.74bcf8p-6F, 0x1.90925p-7F, 0x1.96f4e6p-8F, 0x1.869044p-9F,
     0x1.61de2p-10F, 0x1.2e86fep-11F, 0x1.e7dbcap-13F, 0x1.72d956p-14F, 0x1.09ad7ap-15F,
     0x1.66a5bcp-17F, 0x1.c80728p-19F, 0x1.11056ep-20F, 0x1.33ca3p-22F, 0x1.46a16cp-24F,
     0x1.463cfap-26F, 0x1.32a35ep-28F, 0x1.0f30eep-30F, 0x1.c34c28p-33F, 0x1.61404ap-35F,
     0x1.04178ap-37F, 0x1.683c36p-40F, 0x1.d53e3cp-43F, 0x1.1f68f2p-45F, 0x1.4b13e8p-48F},
    {0x0p+0F, 0x1.3a459cp-27F, -0x1.19536p-28F, 0x1.5ad36p-29F, -0x1.20d186p-29F, -0x1.a8ad8cp-29F,
     -0x1.da73bcp-30F, 0x1.452788p-33F, 0x1.64ce06p-33F, -0x1.bc5d76p-32F, -0x1.036558p-33F,
     -0x1.6c0d4p-34F, -0x1.9e3764p-36F, -0x1.05c276p-36F, -0x1.a8bc34p-38F, 0x1.2cb8c4p-40F,
     -0x1.5722cp-40F, 0x1.7c171ep-42F, 0x1.b40ce6p-44F, -0x1.8e46b6p-46F, -0x1.cd295p-47F,
     0x1.934a18p-49F, 0x1.0b4d64p-51F, 0x1.1bbb5p-56F, 0x1.a6c86ap-55F, 0x1.08264ep-58F,
     0x1.5f0382p-60F, -0x1.30cc7p-62F, -0x1.12a1a8p-65F, 0x1.74b99ap-68F, 0x1.8254a8p-71F,
     0x1.46e2a4p-74F},
    {0x1.364e96p-10F, 0x1.eb2e88p-11F, 0x1.55cc9cp-12F, -0x1.660182p-12F, -0x1.914c5p-11F,
     -0x1.aa7894p-11F, -0x1.23ff88p-11F, -0x1.86b2ecp-13F, 0x1.e9666cp-14F, 0x1.136abp-12F,
     0x1.12e97cp-12F, 0x1.7a674ap-13F, 0x1.62e3dcp-14F, 0x1.de19e8p-17F, -0x1.63de74p-16F,
     -0x1.f9fe76p-16F, -0x1.abbb3cp-16F, -0x1.1d9c48p-16F, -0x1.451468p-17F, -0x1.45d3fcp-18F,
     -0x1.24ab6ep-19F, -0x1.dc3e46p-21F, -0x1.617baap-22F, -0x1.e11aa4p-24F, -0x1.2d4bf4p-25F,
     -0x1.5c484p-27F, -0x1.7462fcp-29F, -0x1.70f32ep-31F, -0x1.533b0ep-33F, -0x1.21cf7p-35F,
     -0x1.cc94e2p-38F, -0x1.54b8dep-40F},
    {0x0p+0F, 0x1.f823eep-10F, 0x1.912574p-9F, 0x1.8d43bep-9F, 0x1.07ce1ap-9F, 0x1.2f0d34p-11F,
     -0x1.55f77p-11F, -0x1.55e168p-10F, -0x1.60e46ep-10F, -0x1.03a56cp-10F, -0x1.0dad1p-11F,
     -0x1.faa4cp-14F, 0x1.cb036ep-14F, 0x1.9083acp-13F, 0x1.7a00eap-13F, 0x1.15c962p-13F,
     0x1.5aa968p-14F, 0x1.7ca342p-15F, 0x1.769f06p-16F, 0x1.4e2dp-17F, 0x1.1028f8p-18F,
     0x1.96cd18p-20F, 0x1.180864p-21F, 0x1.641e9ep-23F, 0x1.a340cep-25F, 0x1.c9be04p-27F,
     0x1.d0268cp-29F, 0x1.b5a266p-31F, 0x1.80136p-33F, 0x1.3a0354p-35F, 0x1.deb08ap-38F,
     0x1.545f1ep-40F},
    {-0x1.46cff8p-7F, -0x1.159348p-7F, -0x1.2c6dc8p-8F, 0x1.3453ecp-13F, 0x1.084b78p-8F,
     0x1.8860a6p-8F, 0x1.809d6ep-8F, 0x1.1a87a2p-8F, 0x1.26dd38p-9F, 0x1.e4481cp-12F,
     -0x1.5d6768p-11F, -0x1.26549ep-10F, -0x1.227234p-10F, -0x1.c5d0c4p-11F, -0x1.2f5b8ap-11F,
     -0x1.66915p-12F, -0x1.7d3bc4p-13F, -0x1.706694p-14F, -0x1.45c636p-15F, -0x1.08e0bep-16F,
     -0x1.8d6b4ep-18F, -0x1.13cfb4p-19F, -0x1.62e304p-21F, -0x1.a7fffcp-23F, -0x1.d6fffcp-25F,
     -0x1.e701c6p-27F, -0x1.d5264p-29F, -0x1.a5655p-31F, -0x1.61277ep-33F, -0x1.144dbep-35F,
     -0x1.93d678p-38F, -0x1.13c6f6p-40F},
    {-0x0p+0F, -0x1.83b266p-7F, -0x1.4a7862p-6F, -0x1.77d16cp-6F, -0x1.4a5ebep-6F, -0x1.c01988p-7F,
     -0x1.8de1acp-8F, 0x1.9c3b96p-12F, 0x1.26dc4p-8F, 0x1.923448p-8F, 0x1.84e526p-8F,
     0x1.378efep-8F, 0x1.b3ab9p-9F, 0x1.105bdcp-9F, 0x1.34999ap-10F, 0x1.3f894cp-11F,
     0x1.300cb2p-12F, 0x1.0aeca8p-13F, 0x1.b1a958p-15F, 0x1.46b162p-16F, 0x1.c94504p-18F,
     0x1.29b5fcp-19F, 0x1.690b4ep-21F, 0x1.982d06p-23F, 0x1.ae8634p-25F, 0x1.a7efc4p-27F,
     0x1.85f252p-29F, 0x1.4f3732p-31F, 0x1.0d6dd8p-33F, 0x1.9518cap-36F, 0x1.1cf042p-38F,
     0x1.77273ap-41F},
    {0x1.105838p-4F, 0x1.eeef68p-5F, 0x1.6883dp-5F, 0x1.67c244p-6F, 0x1.7039f6p-34F,
     -0x1.188c8ap-6F, -0x1.ba1634p-6F, -0x1.e5e9f2p-6F, -0x1.ba4b44p-6F, -0x1.60193ap-6F,
     -0x1.f6924ap-7F, -0x1.45e9ccp-7F, -0x1.8342c6p-8F, -0x1.a7dc2ap-9F, -0x1.acf0e6p-10F,
     -0x1.927594p-11F, -0x1.5ed3f2p-12F, -0x1.1c955p-13F, -0x1.ae2d7ap-15F, -0x1.2f3ea4p-16F,
     -0x1.8f1698p-18F, -0x1.ea9f2ep-20F, -0x1.19df02p-21F, -0x1.2ede96p-23F, -0x1.30733cp-25F,
     -0x1.1e699ep-27F, -0x1.f87d4p-30F, -0x1.a00fb2p-32F, -0x1.416654p-34F, -0x1.d133a2p-37F,
     -0x1.3b7a68p-39F, -0x1.9104eap-42F},
    {0x0p+0F, 0x1.8bf2bap-5F, 0x1.6883dp-4F, 0x1.ce8c0ep-4F, 0x1.ef8e58p-4F, 0x1.d394e8p-4F,
     0x1.8de0c8p-4F, 0x1.3537cap-4F, 0x1.ba4b44p-5F, 0x1.24833cp-5F, 0x1.66fac6p-6F,
     0x1.99b834p-7F, 0x1.b3ab1ep-8F, 0x1.b02bc6p-9F, 0x1.90584ep-10F, 0x1.5a9d9cp-11F,
     0x1.18a98ep-12F, 0x1.a94faep-14F, 0x1.2daedcp-15F, 0x1.90cf78p-17F, 0x1.f2dc44p-19F,
     0x1.22e8f2p-20F, 0x1.3e0232p-22F, 0x1.45e514p-24F, 0x1.392622p-26F, 0x1.1a2e2p-28F,
     0x1.dcf8ecp-31F, 0x1.7a21d8p-33F, 0x1.1939b8p-35F, 0x1.88765ap-38F, 0x1.00f39ap-40F,
     0x1.3bb982p-43F},
    {-0x1.988454p-2F, -0x1.8bf2bap-2F, -0x1.6883dp-2F, -0x1.345d5ep-2F, -0x1.ef8e58p-3F,
     -0x1.7610bap-3F, -0x1.094086p-3F, -0x1.616454p-4F, -0x1.ba4b44p-5F, -0x1.0402ep-5F,
     -0x1.1f2f06p-6F, -0x1.29fa54p-7F, -0x1.227214p-8F, -0x1.09f38ep-9F, -0x1.c9897ep-11F,
     -0x1.71b92ep-12F, -0x1.18a98ep-13F, -0x1.904afep-15F, -0x1.0c29a6p-16F, -0x1.518646p-18F,
     -0x1.8f1696p-20F, -0x1.bb4a8cp-22F, -0x1.ce8ec4p-24F, -0x1.c56b24p-26F, -0x1.a1881p-28F,
     -0x1.6930a8p-30F, -0x1.258556p-32F, -0x1.c027cep-35F, -0x1.41664p-37F, -0x1.b10f58p-40F,
     -0x1.121484p-42F, -0x1.45e83p-45F},
};
// 1 / (1 + e^(sqrt(8 / pi) (b + 0.044715 b^3))), 0 <= b <= 4, in float32; 2^-24.5.
VTABLE float pieces32_gelu_tanh[9][32] = {
    {0x1p-1F, 0x1.9aee04p-2F, 0x1.3bfa4cp-2F, 0x1.d0523p-3F, 0x1.453d22p-3F, 0x1.b1795ep-4F,
     0x1.123c8ep-4F, 0x1.48a34ap-5F, 0x1.73ef8ap-6F, 0x1.8c25e8p-7F, 0x1.8b6cccp-8F,
     0x1.701acep-9F, 0x1.3dd716p-10F, 0x1.fa1996p-12F, 0x1.71379ap-13F, 0x1.ea7566p-15F,
     0x1.26a204p-16F, 0x1.3e0c9ap-18F, 0x1.326b18p-20F, 0x1.05b8ccp-22F, 0x1.89ba42p-25F,
     0x1.0311eep-27F, 0x1.28401ap-30F, 0x1.2467dep-33F, 0x1.eee7fp-37F, 0x1.64b372p-40F,
     0x1.b2fefap-44F, 0x1.bdca44p-48F, 0x1.7d5cp-52F, 0x1.0e83eep-56F, 0x1.3c1a28p-61F,
     0x1.2e352ap-66F},
    {0x0p+0F, 0x1.f7028p-27F, -0x1.df7b6ep-27F, -0x1.dfddd8p-32F, 0x1.ab8dc4p-30F, 0x1.326f36p-29F,
     0x1.68e17ap-30F, -0x1.c997fep-32F, -0x1.3c7018p-31F, 0x1.079112p-32F, -0x1.78279ap-35F,
     -0x1.75335ap-39F, -0x1.3e0692p-35F, -0x1.cb776cp-37F, -0x1.34bcc6p-38F, -0x1.0760dep-41F,
     -0x1.94dc7cp-41F, -0x1.e9826cp-43F, -0x1.be9ee8p-45F, 0x1.7ca21ep-47F, 0x1.e91644p-50F,
     0x1.f4c86ap-52F, 0x1.c16f48p-55F, -0x1.725804p-59F, -0x1.08d044p-62F, -0x1.3a3816p-65F,
     -0x1.a8ad7ap-69F, -0x1.287b5ap-73F, 0x1.0ab1e2p-82F, 0x1.b57228p-81F, -0x1.e4ea6ep-88F,
     -0x1.50be96p-91F},
    {0x1.44e392p-10F, 0x1.02024ap-10F, 0x1.5a2eeep-12F, -0x1.aa8d38p-12F, -0x1.beb654p-11F,
     -0x1.b66b82p-11F, -0x1.051bb4p-11F, -0x1.cde172p-14F, 0x1.2efd78p-13F, 0x1.eeaa94p-13F,
     0x1.cb8a98p-13F, 0x1.481bf2p-13F, 0x1.6bba86p-14F, 0x1.e2d7cp-16F, -0x1.34f2fcp-17F,
     -0x1.b6dd8cp-16F, -0x1.c58b96p-16F, -0x1.4d1044p-16F, -0x1.8215c4p-17F, -0x1.6dab8cp-18F,
     -0x1.1f0304p-19F, -0x1.77915p-21F, -0x1.9a5cbep-23F, -0x1.76274ap-25F, -0x1.1c0deep-27F,
     -0x1.6600f4p-30F, -0x1.75165ep-33F, -0x1.40193cp-36F, -0x1.c2137cp-40F, -0x1.01f9eep-43F,
     -0x1.dfb5cp-48F, -0x1.67c7aep-52F},
    {0x0p+0F, 0x1.084452p-9F, 0x1.a4191ap-9F, 0x1.991ca2p-9F, 0x1.009da6p-9F, 0x1.b63636p-12F,
     -0x1.96de22p-11F, -0x1.54433cp-10F, -0x1.45f0bcp-10F, -0x1.d2bf9cp-11F, -0x1.f908f6p-12F,
     -0x1.3a5b5p-13F, 0x1.04be4cp-14F, 0x1.51276cp-13F, 0x1.6e954p-13F, 0x1.27dda2p-13F,
     0x1.85379p-14F, 0x1.ad6d2ep-15F, 0x1.91784p-16F, 0x1.3f1818p-17F, 0x1.af4306p-19F,
     0x1.eeb166p-21F, 0x1.e03e32p-23F, 0x1.892262p-25F, 0x1.0e3ef2p-27F, 0x1.36900cp-30F,
     0x1.28db78p-33F, 0x1.d59dbep-37F, 0x1.31bcb4p-40F, 0x1.45db4ep-44F, 0x1.1aae12p-48F,
     0x1.8ce6d4p-53F},
    {-0x1.4e489p-7F, -0x1.1ab274p-7F, -0x1.2a4e52p-8F, 0x1.86e458p-12F, 0x1.192f22p-8F,
     0x1.8dabcp-8F, 0x1.76a31p-8F, 0x1.0a7f4ep-8F, 0x1.1313f8p-9F, 0x1.f3afbp-12F,
     -0x1.1f5eacp-11F, -0x1.07d6c6p-10F, -0x1.14a534p-10F, -0x1.ca4264p-11F, -0x1.417bcp-11F,
     -0x1.8642fcp-12F, -0x1.9c47e4p-13F, -0x1.7b015ap-14F, -0x1.2e6facp-15F, -0x1.a178a6p-17F,
     -0x1.f054p-19F, -0x1.f9e5fp-21F, -0x1.b7ed7ep-23F, -0x1.44b4b2p-25F, -0x1.94aafep-28F,
     -0x1.a76e9cp-31F, -0x1.71e794p-34F, -0x1.0c3b2ap-37F, -0x1.4102bep-41F, -0x1.3b232p-45F,
     -0x1.f87e02p-50F, -0x1.473de4p-54F},
    {-0x0p+0F, -0x1.8c0c6ap-7F, -0x1.500d5p-6F, -0x1.7a9df6p-6F, -0x1.47d634p-6F, -0x1.b38bf4p-7F,
     -0x1.781724p-8F, 0x1.dee40ap-12F, 0x1.19d0b6p-8F, 0x1.7f9d8ep-8F, 0x1.78775p-8F,
     0x1.35623p-8F, 0x1.bd86fcp-9F, 0x1.1d780ep-9F, 0x1.46bbaap-10F, 0x1.4d6a6p-11F,
     0x1.2e145p-12F, 0x1.e378eep-14F, 0x1.53d36ap-15F, 0x1.a1367ap-17F, 0x1.bcc76cp-19F,
     0x1.9959e4p-21F, 0x1.435924p-23F, 0x1.b3d7dap-26F, 0x1.f24146p-29F, 0x1.e03124p-32F,
     0x1.83c546p-35F, 0x1.04c5e2p-38F, 0x1.22478cp-42F, 0x1.09c31cp-46F, 0x1.8dbb2ap-51F,
     0x1.e36bp-56F},
    {0x1.11b14cp-4F, 0x1.f08696p-5F, 0x1.6780dcp-5F, 0x1.6135b6p-6F, -0x1.af3d5ap-12F,
     -0x1.1a9338p-6F, -0x1.b5d8bp-6F, -0x1.de451ap-6F, -0x1.b3ec78p-6F, -0x1.5df83p-6F,
     -0x1.fa6c8cp-7F, -0x1.4d682ep-7F, -0x1.906dbp-8F, -0x1.b5de98p-9F, -0x1.b212fep-10F,
     -0x1.83e926p-11F, -0x1.368c78p-12F, -0x1.ba90fp-14F, -0x1.16de8p-15F, -0x1.34c9e2p-17F,
     -0x1.2a82bp-19F, -0x1.f4b18p-22F, -0x1.69fcdp-24F, -0x1.c0608p-27F, -0x1.d8c468p-30F,
     -0x1.a5a7c8p-33F, -0x1.3c18b8p-36F, -0x1.8bd2e2p-40F, -0x1.9b57f4p-44F, -0x1.607e64p-48F,
     -0x1.eefaep-53F, -0x1.1aeb46p-57F},
    {0x0p+0F, 0x1.8db006p-5F, 0x1.6983fep-4F, 0x1.ceb342p-4F, 0x1.ee6106p-4F, 0x1.d1860ap-4F,
     0x1.8c0a74p-4F, 0x1.349094p-4F, 0x1.bbc05cp-5F, 0x1.279b5ep-5F, 0x1.6d254cp-6F, 0x1.a178fp-7F,
     0x1.b82b76p-8F, 0x1.a9d882p-9F, 0x1.77c7e4p-10F, 0x1.2c81c4p-11F, 0x1.b0a49ap-13F,
     0x1.1675e6p-14F, 0x1.3e571p-16F, 0x1.410e7cp-18F, 0x1.1bc382p-20F, 0x1.b4b482p-23F,
     0x1.22a66p-25F, 0x1.4c72fap-28F, 0x1.44a1b2p-31F, 0x1.0cddd8p-34F, 0x1.77496ep-38F,
     0x1.b68a66p-42F, 0x1.aa3af6p-46F, 0x1.565212p-50F, 0x1.c368aap-55F, 0x1.e57f92p-60F},
    {-0x1.988454p-2F, -0x1.8be3b2p-2F, -0x1.685438p-2F, -0x1.341904p-2F, -0x1.ef2636p-3F,
     -0x1.7614e2p-3F, -0x1.09c7aep-3F, -0x1.6318e4p-4F, -0x1.bda58p-5F, -0x1.06289cp-5F,
     -0x1.20431p-6F, -0x1.26ffdap-7F, -0x1.178bf2p-8F, -0x1.e7bfcap-10F, -0x1.8546c2p-11F,
     -0x1.1a5e3cp-12F, -0x1.71d112p-14F, -0x1.b25192p-16F, -0x1.c64f02p-18F, -0x1.a46e08p-20F,
     -0x1.55ec02p-22F, -0x1.e57dfcp-25F, -0x1.2ae344p-27F, -0x1.3d03b2p-30F, -0x1.1fba92p-33F,
     -0x1.bbfd16p-37F, -0x1.2145b8p-40F, -0x1.3c350ap-44F, -0x1.200b64p-48F, -0x1.b26f0cp-53F,
     -0x1.0d6af6p-57F, -0x1.10fde4p-62F},
};
// 2^(i / 8), 2^(i / 16), and what float32 has lost of it.
VTABLE double table_exp2[8] = {
    0x1.0000000000000p+0, 0x1.172b83c7d517bp+0, 0x1.306fe0a31b715p+0, 0x1.4bfdad5362a27p+0,
    0x1.6a09e667f3bcdp+0, 0x1.8ace5422aa0dbp+0, 0x1.ae89f995ad3adp+0, 0x1.d5818dcfba487p+0};
VTABLE float table32_exp2[16] = {
    0x1p+0F, 0x1.0b5586p+0F, 0x1.172b84p+0F, 0x1.2387a6p+0F, 0x1.306fep+0F, 0x1.3dea64p+0F,
    0x1.4bfdaep+0F, 0x1.5ab07ep+0F, 0x1.6a09e6p+0F, 0x1.7a1148p+0F, 0x1.8ace54p+0F,
    0x1.9c4918p+0F, 0x1.ae89fap+0F, 0x1.c199bep+0F, 0x1.d5818ep+0F, 0x1.ea4afap+0F};
VTABLE float table32_exp2_low[16] = {
    0x0p+0F, 0x1.9f3122p-25F, -0x1.c15742p-27F, 0x1.ceac48p-25F, 0x1.4636e2p-25F, 0x1.824684p-25F,
    -0x1.593abcp-25F, -0x1.5bd5ecp-27F, 0x1.9fcef4p-26F, -0x1.829fdp-25F, 0x1.15506ep-27F,
    0x1.51f848p-27F, -0x1.a94b14p-26F, -0x1.3d56b2p-27F, -0x1.822dbcp-27F, 0x1.52486cp-27F};

#endif  // ASSAY_BACKENDS_VMATH_POLYNOMIALS_H_
