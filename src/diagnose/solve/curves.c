// Functions of one value with numbers, fitted to pairs.
#include "diagnose/solve/curves.h"

#include <math.h>

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

static const assay_curve_kind_t FUNCTIONS[] = {
    {"tanh", "Tanh", assay_tanh, -1},
    {"sigmoid", "Sigmoid", sigmoid, 0},
    {"exp", "Exp", assay_exp, 0},
    {"log", "Log", assay_log, 0},
    {"sqrt", "Sqrt", sqrt, 0},
    {"1/", "Reciprocal", reciprocal, -1},
    {"1/sqrt", "Sqrt Reciprocal", inverse_root, 0},
    {"square", "dup *", square, 1},
    {"cube", "dup dup * *", cube, -1},
    {"abs", "Abs", fabs, 1},
    {"relu", "Relu", relu, 0},
    {"softplus", "Softplus", softplus, 0},
    {"erf", "Erf", assay_erf, -1},
    {"silu", "dup Sigmoid *", silu, 0},
    {"gelu", "dup 0.70710678118654752 * Erf 1 + * 0.5 *", gelu, 0},
    {"elu", "Elu", elu, 0},
    {"softsign", "Softsign", softsign, -1},
    {"sin", "Sin", assay_sin, -1},
    {"cos", "Cos", assay_cos, 1},
    {"atan", "Atan", assay_atan, -1},
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
    y[i] = p->f->of(v->a * p->x[i] + v->b);
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

bool assay_curve_fit(const assay_curve_kind_t* f, size_t form, int n, const double* x,
                     const double* want, assay_curve_fit_t* out) {
  enum { EQUATIONS = 3 };  // for each unknown number
  const problem_t p = {f, FORMS[form].free, n, x, want};
  const double size = rms(n, x), spread = rms(n, want);
  const bool a = p.free & (A | TIED), b = p.free & B;
  double left[ASSAY_CURVE_SAMPLES];
  *out = (assay_curve_fit_t){.a = 1, .left = INFINITY};
  if (n < EQUATIONS * FORMS[form].n || !(size > 0)) return false;
  if (!a && !b) return leave(&p, out, left);
  const double from_a[] = {1, 0.1, 1 / size, 0.1 / size, 0.02 / size, 5 / size, -1 / size};
  const double from_b[] = {0, 1e-3 * size, 1};
  for (size_t i = 0; i < (a ? sizeof from_a / sizeof *from_a : 1); i++)
    for (size_t k = 0; k < (b ? sizeof from_b / sizeof *from_b : 1); k++)
      if (out->left > 1e-7 * spread) descend(&p, size, spread, out, from_a[i], from_b[k]);
  if (out->a < 0 && f->parity) {
    out->a = -out->a;
    out->b = -out->b;
    out->c *= f->parity;
  }
  return isfinite(out->left);
}
