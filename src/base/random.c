// Random numbers that depend on a seed, a stream's name and a position only: any element can be
// drawn at any time, by any thread, and is always the same.
#include "base/random.h"

#include <math.h>

#include "base/functions.h"

void assay_philox4x32(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]) {
  uint32_t c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3];
  uint32_t k0 = key[0], k1 = key[1];
  for (int round = 0; round < 10; round++) {
    uint64_t p0 = UINT64_C(0xD2511F53) * c0, p1 = UINT64_C(0xCD9E8D57) * c2;
    uint32_t n0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0, n2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
    c0 = n0;
    c1 = (uint32_t)p1;
    c2 = n2;
    c3 = (uint32_t)p0;
    k0 += UINT32_C(0x9E3779B9);
    k1 += UINT32_C(0xBB67AE85);
  }
  out[0] = c0;
  out[1] = c1;
  out[2] = c2;
  out[3] = c3;
}

// FNV-1a, 64 bits.
static uint64_t hash_byte(uint64_t h, unsigned char byte) {
  return (h ^ byte) * UINT64_C(0x100000001b3);
}

static uint64_t hash_name(const char* name) {
  uint64_t h = UINT64_C(0xcbf29ce484222325);
  for (; *name; name++) h = hash_byte(h, (unsigned char)*name);
  return h;
}

static uint64_t hash_number(uint64_t h, uint64_t x) {
  for (int i = 0; i < 8; i++) h = hash_byte(h, (unsigned char)(x >> 8 * i));
  return h;
}

assay_random_t assay_random_make(uint64_t seed, const char* name, uint64_t iteration) {
  uint64_t stream = hash_name(name);
  if (iteration) stream = hash_number(stream, iteration);
  return (assay_random_t){.seed = seed, .stream = stream};
}

uint64_t assay_random_iteration(uint64_t outer, uint64_t round) {
  uint64_t h = hash_number(hash_number(hash_name(""), outer), round);
  return h ? h : 1;
}

// The top 53 bits of half a block: the seed is the key, stream and position are the counter.
static uint64_t draw(const assay_random_t* r, uint64_t index) {
  uint64_t block = index >> 1;
  const uint32_t counter[4] = {(uint32_t)block, (uint32_t)(block >> 32), (uint32_t)r->stream,
                               (uint32_t)(r->stream >> 32)};
  const uint32_t key[2] = {(uint32_t)r->seed, (uint32_t)(r->seed >> 32)};
  uint32_t out[4];
  assay_philox4x32(counter, key, out);
  int half = 2 * (int)(index & 1);
  return ((uint64_t)out[half + 1] << 32 | out[half]) >> 11;
}

double assay_random_uniform(const assay_random_t* r, uint64_t index) {
  return (double)draw(r, index) * 0x1p-53;
}

double assay_random_normal(const assay_random_t* r, uint64_t index) {
  uint64_t bits = draw(r, index);
  // The middle of the number's interval, so that neither 0 nor 1 comes up. The upper half is the
  // lower
  // one mirrored: 1 - p would lose the tail's bits.
  if (bits < UINT64_C(1) << 52) return assay_normal_quantile(((double)bits + 0.5) * 0x1p-53);
  return -assay_normal_quantile(((double)((UINT64_C(1) << 53) - 1 - bits) + 0.5) * 0x1p-53);
}

// Coefficients, highest power first.
static double polynomial(const double c[8], double x) {
  double s = c[0];
  for (int i = 1; i < 8; i++) s = s * x + c[i];
  return s;
}

// Source: Wichura, 'Algorithm AS 241: The Percentage Points of the Normal Distribution', Applied
// Statistics 37 (1988), routine PPND16.
double assay_normal_quantile(double p) {
  static const double a[8] = {2.5090809287301226727e3, 3.3430575583588128105e4,
                              6.7265770927008700853e4, 4.5921953931549871457e4,
                              1.3731693765509461125e4, 1.9715909503065514427e3,
                              1.3314166789178437745e2, 3.3871328727963666080e0};
  static const double b[8] = {5.2264952788528545610e3, 2.8729085735721942674e4,
                              3.9307895800092710610e4, 2.1213794301586595867e4,
                              5.3941960214247511077e3, 6.8718700749205790830e2,
                              4.2313330701600911252e1, 1.0};
  static const double c[8] = {7.74545014278341407640e-4, 2.27238449892691845833e-2,
                              2.41780725177450611770e-1, 1.27045825245236838258e0,
                              3.64784832476320460504e0,  5.76949722146069140550e0,
                              4.63033784615654529590e0,  1.42343711074968357734e0};
  static const double d[8] = {1.05075007164441684324e-9, 5.47593808499534494600e-4,
                              1.51986665636164571966e-2, 1.48103976427480074590e-1,
                              6.89767334985100004550e-1, 1.67638483018380384940e0,
                              2.05319162663775882187e0,  1.0};
  static const double e[8] = {2.01033439929228813265e-7, 2.71155556874348757815e-5,
                              1.24266094738807843860e-3, 2.65321895265761230930e-2,
                              2.96560571828504891230e-1, 1.78482653991729133580e0,
                              5.46378491116411436990e0,  6.65790464350110377720e0};
  static const double f[8] = {2.04426310338993978564e-15, 1.42151175831644588870e-7,
                              1.84631831751005468180e-5,  7.86869131145613259100e-4,
                              1.48753612908506148525e-2,  1.36929880922735805310e-1,
                              5.99832206555887937690e-1,  1.0};
  double q = p - 0.5;
  if (fabs(q) <= 0.425) {
    double r = 0.180625 - q * q;
    return q * polynomial(a, r) / polynomial(b, r);
  }
  double r = sqrt(-assay_log(q < 0 ? p : 1 - p));
  double x = r <= 5 ? polynomial(c, r - 1.6) / polynomial(d, r - 1.6)
                    : polynomial(e, r - 5) / polynomial(f, r - 5);
  return q < 0 ? -x : x;
}
