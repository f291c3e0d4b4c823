// What is the matter with scales that the model itself speaks against, in words.
#include <stdio.h>

#include "diagnose/quantizers/alternatives.h"

bool assay_quantizer_explain_told(assay_quantizer_site_t* s) {
  const char* name = s->value->name;
  const double has = s->has.scale[0], fits = s->fits.n ? s->fits.scale[0] : 0;
  switch (s->pattern) {
    case ASSAY_QUANTIZER_AXIS:
      snprintf(s->why, sizeof s->why,
               "the %lld scales of '%.80s' lie along axis %d, and are of axis %d",
               (long long)s->has.n, name, s->has.axis, s->fits.axis);
      return true;
    case ASSAY_QUANTIZER_SIGN:
      snprintf(s->why, sizeof s->why, "the bytes of '%.80s' are read %s a sign, and have %s", name,
               s->low < 0 ? "with" : "without", s->low < 0 ? "none" : "one");
      return true;
    case ASSAY_QUANTIZER_PRODUCT:
      snprintf(s->why, sizeof s->why,
               "the bias '%.80s' is in units of %.7g, the product that it is added to of %.7g%s",
               name, has, fits, s->fits.n > 1 ? " and others" : "");
      return true;
    case ASSAY_QUANTIZER_ORDER:
      snprintf(s->why, sizeof s->why, "the %lld scales of '%.80s' are in another order than its %s",
               (long long)s->has.n, name, "channels");
      return true;
    case ASSAY_QUANTIZER_ANOTHER:
      snprintf(s->why, sizeof s->why, "the scale %.7g of '%.80s' is %.4g times what fits (%s)", has,
               name, fits > 0 ? has / fits : 0, s->fits.how ? s->fits.how : "");
      return true;
    case ASSAY_QUANTIZER_ZERO:
      if (!s->stored) return false;
      snprintf(s->why, sizeof s->why, "the zero point %g of '%.80s' leaves its numbers on one side",
               s->has.zero[0], name);
      return true;
    default:
      if (!s->stored || !s->fits.n) return false;
      s->pattern = ASSAY_QUANTIZER_ANOTHER;
      snprintf(s->why, sizeof s->why, "the scale %.7g of '%.80s' is not the %.7g that it has %s",
               has, name, fits, s->fits.how ? s->fits.how : "elsewhere");
      return true;
  }
}
