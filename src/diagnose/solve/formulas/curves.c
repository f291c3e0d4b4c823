// Functions of one value with numbers, fitted to pairs.
#include "diagnose/solve/formulas/curves.h"

#include <math.h>
#include <stdint.h>

#include "base/functions.h"

// ---- the functions -----------------------------------------------------------------------------

static double sigmoid(double x) { return 1 / (1 + assay_exp(-x)); }
static double reciprocal(double x) { return 1 / x; }
static double softplus(double x) { return fmax(x, 0) + assay_log1p(assay_exp(-fabs(x))); }
static double softsign(double x) { return x / (1 + fabs(x)); }
static double inverse_root(double x) { return 1 / sqrt(x); }
static double relu(double x) { return fmax(x, 0); }
static double square(double x) { return x * x; }
static double cube(double x) { return x * x * x; }
static double elu(double x) { return x < 0 ? assay_expm1(x) : x; }
static double silu(double x) { return x * sigmoid(x); }
static double gelu(double x) { return 0.5 * x * (1 + assay_erf(x * 0.70710678118654752)); }

static double clip_to_1(double x) { return fmin(fmax(x, 0), 1); }
static double gauss(double x) { return assay_exp(-x * x); }
static double root_of_square(double x) { return sqrt(1 + x * x); }
static double over_root(double x) { return x / sqrt(1 + x * x); }
static double over_square(double x) { return 1 / (1 + x * x); }
static double log_of_square(double x) { return assay_log(1 + x * x); }
static double times_log(double x) { return x * assay_log(x); }
static double mish(double x) { return x * assay_tanh(softplus(x)); }
static double tanh_shrunk(double x) { return x - assay_tanh(x); }
static double shrunk(double x) { return x - fmin(fmax(x, -1), 1); }
static double squared_relu(double x) { return relu(x) * relu(x); }

// Of the size, with the sign of x: how sounds and gradients are compressed, and expanded again
// (ITU-T G.711's law of 255; symlog of D. Hafner and others, 2023).
static double signed_expm1(double x) { return copysign(assay_expm1(fabs(x)), x); }
static double signed_log1p(double x) { return copysign(assay_log1p(fabs(x)), x); }
static double power(double x, double a) { return assay_pow(x, a); }
static double signed_power(double x, double a) { return copysign(assay_pow(fabs(x), a), x); }

static const assay_curve_kind_t FUNCTIONS[] = {
    {"tanh", "Tanh", assay_tanh, -1, false, NULL},
    {"sigmoid", "Sigmoid", sigmoid, 0, false, NULL},
    {"exp", "Exp", assay_exp, 0, false, NULL},
    {"log", "Log", assay_log, 0, false, NULL},
    {"sqrt", "Sqrt", sqrt, 0, false, NULL},
    {"1/", "Reciprocal", reciprocal, -1, false, NULL},
    {"1/sqrt", "Sqrt Reciprocal", inverse_root, 0, false, NULL},
    {"square", "dup *", square, 1, false, NULL},
    {"cube", "dup dup * *", cube, -1, false, NULL},
    {"abs", "Abs", fabs, 1, false, NULL},
    {"relu", "Relu", relu, 0, false, NULL},
    {"softplus", "Softplus", softplus, 0, false, NULL},
    {"erf", "Erf", assay_erf, -1, false, NULL},
    {"silu", "dup Sigmoid *", silu, 0, false, NULL},
    {"gelu", "dup 0.70710678118654752 * Erf 1 + * 0.5 *", gelu, 0, false, NULL},
    {"elu", "Elu", elu, 0, false, NULL},
    {"softsign", "Softsign", softsign, -1, false, NULL},
    {"sin", "Sin", assay_sin, -1, false, NULL},
    {"cos", "Cos", assay_cos, 1, false, NULL},
    {"atan", "Atan", assay_atan, -1, false, NULL},
    {"power", "^", NULL, 0, false, power},
    {"signed power", "^ x Sign *", NULL, 0, true, signed_power},
    {"signed exp - 1", "Abs Exp 1 - x Sign *", signed_expm1, -1, true, NULL},
    {"signed log(1 + |x|)", "Abs 1 + Log x Sign *", signed_log1p, -1, true, NULL},
    {"clip to 0 .. 1", "0 max 1 min", clip_to_1, 0, false, NULL},
    {"exp of -square", "dup * Neg Exp", gauss, 1, false, NULL},
    {"root of 1 + square", "dup * 1 + Sqrt", root_of_square, 1, false, NULL},
    {"x over root of 1 + square", "dup dup * 1 + Sqrt /", over_root, -1, false, NULL},
    {"1 over 1 + square", "dup * 1 + Reciprocal", over_square, 1, false, NULL},
    {"log of 1 + square", "dup * 1 + Log", log_of_square, 1, false, NULL},
    {"x log x", "dup Log *", times_log, 0, false, NULL},
    {"squared relu", "Relu dup *", squared_relu, 0, false, NULL},
    {"mish", "dup Softplus Tanh *", mish, 0, false, NULL},
    {"x - tanh", "dup Tanh -", tanh_shrunk, -1, false, NULL},
    {"soft shrinking", "dup -1 max 1 min -", shrunk, -1, false, NULL},
    {"sinh", "Sinh", assay_sinh, -1, false, NULL},
    {"asinh", "Asinh", assay_asinh, -1, false, NULL},
    {"cosh", "Cosh", assay_cosh, 1, false, NULL},
    {"atanh", "Atanh", assay_atanh, -1, false, NULL},
};

size_t assay_curve_count(void) { return sizeof FUNCTIONS / sizeof *FUNCTIONS; }
const assay_curve_kind_t* assay_curve_get(size_t i) { return &FUNCTIONS[i]; }

// ---- the forms ---------------------------------------------------------------------------------

enum { A = 1, B = 2, C = 4, D = 8, TIED = 16 };  // TIED: c = 1 / a, as soft caps have it

static const struct {
  unsigned free;
  int n;
} FORMS[] = {
    {TIED, 1},  {A, 1},         {B, 1},         {C, 1},         {D, 1},
    {C | D, 2}, {A | B, 2},     {A | C, 2},     {B | C, 2},     {A | D, 2},
    {B | D, 2}, {A | B | C, 3}, {A | C | D, 3}, {B | C | D, 3}, {A | B | C | D, 4},
};

size_t assay_curve_forms(void) { return sizeof FORMS / sizeof *FORMS; }

typedef struct problem {
  const assay_curve_kind_t* f;
  unsigned free;
  int n;
  const double *x, *want;
} problem_t;

// What is left of each pair with a and b as they are, c and d the best. False: f is not defined
// there.
static bool leave(const problem_t* p, assay_curve_fit_t* v, double* left) {
  double y[ASSAY_CURVE_SAMPLES], sy = 0, sw = 0, yy = 0, yw = 0, sum = 0;
  for (int i = 0; i < p->n; i++) {
    y[i] = p->f->power ? p->f->power(p->x[i] + v->b, v->a) : p->f->of(v->a * p->x[i] + v->b);
    if (!isfinite(y[i])) return false;
    sy += y[i];
    sw += p->want[i];
    yy += y[i] * y[i];
    yw += y[i] * p->want[i];
  }
  const double n = p->n, var = yy - sy * sy / n;
  v->c = p->free & TIED ? 1 / v->a : 1;
  v->d = 0;
  if ((p->free & C) && (p->free & D)) {
    if (!(var > 1e-13 * yy)) return false;
    v->c = (yw - sy * sw / n) / var;
  } else if (p->free & C) {
    if (!(yy > 0)) return false;
    v->c = yw / yy;
  }
  if (p->free & D) v->d = (sw - v->c * sy) / n;
  for (int i = 0; i < p->n; i++) {
    left[i] = p->want[i] - v->c * y[i] - v->d;
    sum += left[i] * left[i];
  }
  v->left = sqrt(sum / n);
  return isfinite(v->left);
}

// ---- steps -------------------------------------------------------------------------------------

// The change of what is left with a or b.
static bool slope(const problem_t* p, const assay_curve_fit_t* at, const double* left, bool of_a,
                  double step, double* out) {
  assay_curve_fit_t moved = *at;
  *(of_a ? &moved.a : &moved.b) += step;
  if (!leave(p, &moved, out)) return false;
  for (int i = 0; i < p->n; i++) out[i] = (out[i] - left[i]) / step;
  return true;
}

static double dot(int n, const double* a, const double* b) {
  double sum = 0;
  for (int i = 0; i < n; i++) sum += a[i] * b[i];
  return sum;
}

// One damped step from *at; false: none makes it better.
static bool improve(const problem_t* p, double size, double* damping, assay_curve_fit_t* at,
                    double* left) {
  enum { TRIES = 8 };
  double ja[ASSAY_CURVE_SAMPLES] = {0}, jb[ASSAY_CURVE_SAMPLES] = {0};
  double next[ASSAY_CURVE_SAMPLES];
  const bool a = p->free & (A | TIED), b = p->free & B;
  if (a && !slope(p, at, left, true, 1e-6 * fabs(at->a), ja)) return false;
  if (b && !slope(p, at, left, false, 1e-6 * (fabs(at->b) + fabs(at->a) * size), jb)) return false;
  const double aa = dot(p->n, ja, ja), ab = dot(p->n, ja, jb), bb = dot(p->n, jb, jb);
  const double ga = dot(p->n, ja, left), gb = dot(p->n, jb, left);
  for (int k = 0; k < TRIES; k++, *damping *= 10) {
    const double h = a ? aa * (1 + *damping) : 1, v = b ? bb * (1 + *damping) : 1;
    const double det = h * v - ab * ab;
    assay_curve_fit_t to = *at;
    if (!(det > 0)) continue;
    if (a) to.a -= (ga * v - gb * ab) / det;
    if (b) to.b -= (gb * h - ga * ab) / det;
    if (to.a == 0 || !leave(p, &to, next) || !(to.left < at->left)) continue;
    *damping = fmax(*damping / 30, 1e-14);
    *at = to;
    for (int i = 0; i < p->n; i++) left[i] = next[i];
    return true;
  }
  return false;
}

static void descend(const problem_t* p, double size, double spread, assay_curve_fit_t* best,
                    double a, double b) {
  enum { STEPS = 40, FIRST = 8 };
  double left[ASSAY_CURVE_SAMPLES], damping = 1e-3;
  assay_curve_fit_t at = {.a = a, .b = b};
  if (!leave(p, &at, left)) return;
  for (int i = 0; i < STEPS; i++) {
    const double before = at.left;
    if (!improve(p, size, &damping, &at, left)) break;
    if (i >= FIRST && (at.left > 0.1 * spread || at.left > 0.999 * before)) break;
  }
  if (at.left < best->left) *best = at;
}

static double rms(int n, const double* x) { return sqrt(dot(n, x, x) / n); }

// From several starts.
static void search(const problem_t* p, double size, double spread, assay_curve_fit_t* out) {
  static const double EXPONENTS[] = {0.5, 2, 0.3, 3, -1, -0.5, 1.5};
  const bool a = p->free & (A | TIED), b = p->free & B;
  const double from_a[] = {1, 0.1, 1 / size, 0.1 / size, 0.02 / size, 5 / size, -1 / size};
  const double from_b[] = {0, 1e-3 * size, 1};
  for (size_t i = 0; i < (a ? sizeof from_a / sizeof *from_a : 1); i++)
    for (size_t k = 0; k < (b ? sizeof from_b / sizeof *from_b : 1); k++)
      if (out->left > 1e-7 * spread)
        descend(p, size, spread, out, (p->f->power ? EXPONENTS : from_a)[i], from_b[k]);
}

// A quarter of the pairs, where that is enough: most functions are out of the question by these.
static bool may_fit(const problem_t* p, double size, double spread, assay_curve_fit_t* out) {
  enum { EACH = 4 };
  double x[ASSAY_CURVE_SAMPLES / EACH], want[ASSAY_CURVE_SAMPLES / EACH];
  problem_t few = *p;
  few.n = p->n / EACH;
  few.x = x;
  few.want = want;
  for (int i = 0; i < few.n; i++) {
    // From end to end.
    const int at = (int)((int64_t)i * (p->n - 1) / (few.n - 1));
    x[i] = p->x[at];
    want[i] = p->want[at];
  }
  search(&few, size, spread, out);
  return out->left <= 1e-3 * spread;
}

bool assay_curve_fit(const assay_curve_kind_t* f, size_t form, int n, const double* x,
                     const double* want, assay_curve_fit_t* out) {
  enum { EQUATIONS = 3, MANY = 48 };  // for each unknown number; with which a part tells
  const problem_t p = {f, FORMS[form].free, n, x, want};
  const double size = rms(n, x), spread = rms(n, want);
  const bool no_a = f->power && (!(p.free & A) || p.free & TIED);
  const bool no_b = f->about_zero && p.free & B;
  double left[ASSAY_CURVE_SAMPLES];
  *out = (assay_curve_fit_t){.a = 1, .left = INFINITY};
  if (n < EQUATIONS * FORMS[form].n || !(size > 0) || no_a || no_b) return false;
  if (!(p.free & (A | B | TIED))) return leave(&p, out, left);
  if (n >= MANY) {
    assay_curve_fit_t few = *out;
    if (!may_fit(&p, size, spread, &few)) return false;
    descend(&p, size, spread, out, few.a, few.b);
  } else {
    search(&p, size, spread, out);
  }
  if (out->a < 0 && f->parity) {
    out->a = -out->a;
    out->b = -out->b;
    out->c *= f->parity;
  }
  return isfinite(out->left);
}
