// Constants that are a series, as what each step adds or keeps, and as what has come together until
// there: noise of diffusion, discounts, places, edges of bins.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "diagnose/causes/surroundings.h"
#include "diagnose/proposals.h"

static bool is_float(const assay_tensor_t* t) {
  return t && t->kind == ASSAY_KIND_TENSOR && t->store == ASSAY_STORE_F64 && t->size > 0;
}

// y[i] of y[i - 1], x[i - 1] and x[i]; the first stays.
typedef enum form { PRODUCT, RATIO, SUM, DIFFERENCE } form_t;

static const struct {
  const char* text;
  form_t form;
  bool turned;    // from the end
  bool positive;  // where all are above 0
} forms[] = {
    {"the product until there of", PRODUCT, false, true},
    {"what each keeps of the one before, of", RATIO, false, true},
    {"the sum until there of", SUM, false, false},
    {"what each is more than the one before, of", DIFFERENCE, false, false},
    {"the product from there on of", PRODUCT, true, true},
    {"the sum from there on of", SUM, true, false},
};

static double next(form_t form, double made, double before, double now) {
  return form == PRODUCT ? made * now
         : form == RATIO ? now / before
         : form == SUM   ? made + now
                         : now - before;
}

static assay_status_t offer(const assay_suspect_t* s, const char* cause, size_t input, size_t k,
                            const assay_tensor_t* x, const assay_trial_t* t, bool* stop) {
  static const double LARGEST = 1e6;
  assay_tensor_t* y = NULL;
  char text[200];
  ASSAY_TRY(assay_tensor_copy(x, &y));
  double made = 0, before = 0;
  bool sane = true;
  for (int64_t i = 0; i < x->size; i++) {
    const int64_t at = forms[k].turned ? x->size - 1 - i : i;
    const double now = assay_f64(x)[at];
    made = i ? next(forms[k].form, made, before, now) : now;
    before = now;
    assay_f64(y)[at] = (double)(float)made;
    sane &= isfinite(made) && fabs(made) < LARGEST;
  }
  if (!sane) return assay_tensor_release(y), NULL;
  snprintf(text, sizeof text, "%s '%.100s' in place of it", forms[k].text,
           s->node->inputs[input]->name);
  return assay_offer_constant(s, cause, input, y, text, t, stop);
}

static assay_status_t propose_input(const assay_suspect_t* s, const char* cause, size_t input,
                                    const assay_tensor_t* x, const assay_trial_t* t, bool* stop) {
  double low = HUGE_VAL;
  for (int64_t i = 0; i < x->size; i++) low = fmin(low, assay_f64(x)[i]);
  for (size_t k = 0; k < sizeof forms / sizeof *forms && !*stop; k++)
    if (low > 0 || !forms[k].positive) ASSAY_TRY(offer(s, cause, input, k, x, t, stop));
  return NULL;
}

// A row of numbers that is looked up, or laid along an axis. Source: alphas that were not
// multiplied up, huggingface/diffusers issue 26 (J. Ho et al., 2020, 2).
assay_status_t assay_propose_series(const assay_suspect_t* s, const char* cause,
                                    const assay_trial_t* t, bool* stop) {
  static const char* const ops[] = {
      "Gather",         "Mul",        "Div", "Add",   "Sub",  "Pow",
      "Sqrt",           "Exp",        "Log", "Where", "Less", "Greater",
      "GreaterOrEqual", "LessOrEqual"};
  enum { FEWEST = 4, MOST = 1 << 16 };
  bool is_one = false;
  for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
    is_one |= !*s->node->domain && strcmp(s->node->op_type, ops[i]) == 0;
  for (size_t i = 0; is_one && i < s->n_in && !*stop; i++) {
    assay_tensor_t* x = NULL;
    ASSAY_TRY(assay_suspect_constant(s, i, &x));
    assay_status_t st = NULL;
    if (is_float(x) && x->size >= FEWEST && x->size <= MOST && x->size == x->dims[x->rank - 1])
      st = propose_input(s, cause, i, x, t, stop);
    assay_tensor_release(x);
    ASSAY_TRY(st);
  }
  return NULL;
}
