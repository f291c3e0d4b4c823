#include "runtime/profile.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static assay_status_t bad_text(const char* input, const char* text) {
  return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                     "'%s=%s' is no profile: say MIN:OPT:MAX with shapes such as 1x3x224x224, each "
                     "of the same rank, none smaller than the one before",
                     input, text);
}

// Reads "4x3x224x224" up to ':' or the end; false if it is no shape.
static bool parse_dims(const char** text, int* rank, int64_t* dims) {
  for (*rank = 0; *rank < ASSAY_PROFILE_MAX_RANK;) {
    char* end;
    errno = 0;
    const long long d = strtoll(*text, &end, 10);
    if (end == *text || errno || d < 1) return false;
    dims[(*rank)++] = d;
    *text = end;
    if (**text != 'x') break;
    (*text)++;
  }
  return !**text || **text == ':';
}

assay_status_t assay_profile_parse(const char* input, const char* text, assay_profile_t* out) {
  int64_t* const parts[] = {out->min, out->opt, out->max};
  const char* at = text;
  int n = 0;
  *out = (assay_profile_t){.input = input};
  for (; n < 3; n++) {
    int rank = 0;
    if (!parse_dims(&at, &rank, parts[n]) || (n && rank != out->rank)) return bad_text(input, text);
    out->rank = rank;
    if (!*at) break;
    at++;
  }
  if (n == 1 || n == 3) return bad_text(input, text);
  if (n == 0) {
    memcpy(out->opt, out->min, sizeof out->opt);
    memcpy(out->max, out->min, sizeof out->max);
  }
  for (int i = 0; i < out->rank; i++)
    if (out->min[i] > out->opt[i] || out->opt[i] > out->max[i]) return bad_text(input, text);
  return NULL;
}

assay_status_t assay_profile_check(const assay_profile_t* p, int rank, const int64_t* dims) {
  bool ok = rank == p->rank;
  for (int i = 0; ok && i < rank; i++) ok = dims[i] >= p->min[i] && dims[i] <= p->max[i];
  if (ok) return NULL;
  char given[256], min[256], max[256];
  return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                     "input '%s' is %s; the plan was built for %s to %s: build it for that, too",
                     p->input, assay_dims_text(rank, dims, given, sizeof given),
                     assay_dims_text(p->rank, p->min, min, sizeof min),
                     assay_dims_text(p->rank, p->max, max, sizeof max));
}
