// The range of an input's shapes that an engine is built for, and the one it is built best for.
#include "runtime/profile.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static assay_status_t bad_text(const char* input, const char* text) {
  return ASSAY_ERROR(
      ASSAY_INVALID_ARGUMENT,
      "'%s=%s' is not a profile: say MIN:OPT:MAX with shapes such as 1x3x224x224 (or "
      "values such as [4,3]), each of the same rank, none smaller than the one "
      "before",
      input, text);
}

// Reads "4x3x224x224", or values "[4,3]", up to ':' or the end; false if it is none.
static bool parse_dims(const char** text, bool values, int* rank, int64_t* dims) {
  if (values && *(*text)++ != '[') return false;
  for (*rank = 0; *rank < ASSAY_PROFILE_MAX_RANK;) {
    char* end;
    errno = 0;
    const long long d = strtoll(*text, &end, 10);
    if (end == *text || errno || d < 1) return false;
    dims[(*rank)++] = d;
    *text = end;
    if (**text != (values ? ',' : 'x')) break;
    (*text)++;
  }
  if (values && *(*text)++ != ']') return false;
  return !**text || **text == ':';
}

assay_status_t assay_profile_parse(const char* input, const char* text, assay_profile_t* out) {
  int64_t* const parts[] = {out->min, out->opt, out->max};
  const char* at = text;
  int n = 0;
  *out = (assay_profile_t){.input = input, .values = *text == '['};
  for (; n < 3; n++) {
    int rank = 0;
    if (!parse_dims(&at, out->values, &rank, parts[n]) || (n && rank != out->rank))
      return bad_text(input, text);
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

static bool takes(const assay_profile_t* p, int rank, const int64_t* dims) {
  bool ok = rank == p->rank;
  for (int i = 0; ok && i < rank; i++) ok = dims[i] >= p->min[i] && dims[i] <= p->max[i];
  return ok;
}

assay_status_t assay_profile_check(const assay_profile_t* p, int rank, const int64_t* dims) {
  if (takes(p, rank, dims)) return NULL;
  char given[256], min[256], max[256];
  return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                     "input '%s' is %s; the plan was built for %s to %s: build it for that, too",
                     p->input, assay_dims_text(rank, dims, given, sizeof given),
                     assay_dims_text(p->rank, p->min, min, sizeof min),
                     assay_dims_text(p->rank, p->max, max, sizeof max));
}

// ---- tensors ------------------------------------------------------------------------------------

// The elements of a small integer tensor; false: it is none.
static bool elements(const assay_tensor_t* t, int n, int64_t* out) {
  if (t->kind != ASSAY_KIND_TENSOR || t->size != n) return false;
  if (t->store == ASSAY_STORE_I64) {
    memcpy(out, t->data, (size_t)n * sizeof *out);
    return true;
  }
  const bool narrow = t->type == ASSAY_TYPE_INT32;
  if (t->store != ASSAY_STORE_PACKED || (!narrow && t->type != ASSAY_TYPE_INT64)) return false;
  for (int i = 0; i < n; i++) {
    int32_t x;
    if (!narrow) {
      memcpy(&out[i], (const char*)t->data + 8 * i, sizeof out[i]);
      continue;
    }
    memcpy(&x, (const char*)t->data + 4 * i, sizeof x);
    out[i] = x;
  }
  return true;
}

bool assay_profile_takes(const assay_profile_t* p, const assay_tensor_t* t) {
  int64_t x[ASSAY_PROFILE_MAX_RANK];
  if (!p->values) return takes(p, t->rank, t->dims);
  return elements(t, p->rank, x) && takes(p, p->rank, x);
}

uint64_t assay_profiles_take(const assay_profile_t* p, size_t n, const assay_value_t* input,
                             const assay_tensor_t* t) {
  uint64_t take = 0;
  bool any = false;
  for (size_t i = 0; i < n; i++) {
    if (strcmp(p[i].input, input->name) != 0) continue;
    any = true;
    if (assay_profile_takes(&p[i], t)) take |= UINT64_C(1) << p[i].profile;
  }
  return any ? take : UINT64_MAX;
}

static void print_numbers(int n, const int64_t* x, assay_str_t* out) {
  assay_str_append(out, "[");
  for (int i = 0; i < n; i++) assay_str_printf(out, i ? ", %lld" : "%lld", (long long)x[i]);
  assay_str_append(out, "]");
}

void assay_profile_print(const assay_profile_t* p, assay_str_t* out) {
  assay_str_append(out, p->values ? " values " : " ");
  print_numbers(p->rank, p->min, out);
  assay_str_append(out, " to ");
  print_numbers(p->rank, p->max, out);
}

void assay_profile_print_given(const assay_profile_t* p, const assay_tensor_t* t,
                               assay_str_t* out) {
  int64_t x[ASSAY_PROFILE_MAX_RANK];
  const bool reported = p->values && elements(t, p->rank, x);
  if (reported) assay_str_append(out, "values ");
  print_numbers(reported ? p->rank : t->rank, reported ? x : t->dims, out);
}

int assay_profiles_count(const assay_profile_t* p, size_t n) {
  int count = 0;
  for (size_t i = 0; i < n; i++) count = p[i].profile >= count ? p[i].profile + 1 : count;
  return count;
}

const assay_profile_t* assay_profiles_find(const assay_profile_t* p, size_t n, const char* input,
                                           int profile) {
  for (size_t i = 0; i < n; i++)
    if (p[i].profile == profile && strcmp(p[i].input, input) == 0) return &p[i];
  return NULL;
}

static bool is_scalar(const assay_value_t* v) {
  const assay_valtype_t* t = v ? (v->type ? v->type : v->declared) : NULL;
  return t && t->kind == ASSAY_KIND_TENSOR && t->has_shape && !t->rank;
}

void assay_profiles_shape(const assay_profile_t* p, size_t n, const char* name,
                          const assay_value_t* input, int64_t* dims, assay_input_shape_t* out) {
  const assay_profile_t* first = assay_profiles_find(p, n, name, 0);
  *out = (assay_input_shape_t){name, first ? first->rank : 0, dims};
  if (first && first->values) {
    out->rank = is_scalar(input) ? 0 : 1;
    dims[0] = first->rank;
    return;
  }
  for (int d = 0; d < out->rank; d++) dims[d] = first->min[d];
  for (size_t i = 0; i < n; i++)
    for (int d = 0; strcmp(p[i].input, name) == 0 && d < out->rank; d++)
      if (d >= p[i].rank || p[i].min[d] != p[i].max[d] || p[i].min[d] != dims[d]) dims[d] = -1;
}

assay_status_t assay_profile_values(const assay_profile_t* p, const assay_value_t* input,
                                    const int64_t* values, assay_tensor_t** out) {
  const assay_valtype_t* t = input->type ? input->type : input->declared;
  const int64_t n = p->rank;
  const bool scalar = is_scalar(input);
  const assay_type_t elem =
      t && t->kind == ASSAY_KIND_TENSOR && t->elem ? t->elem : ASSAY_TYPE_INT64;
  if (assay_type_store(elem) != ASSAY_STORE_I64 || (scalar && n != 1))
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                       "input '%s' is %s: it does not hold %lld values of a shape", input->name,
                       ASSAY_VALTYPE_TEXT(t), (long long)n);
  assay_tensor_t* made = NULL;
  ASSAY_TRY(assay_tensor_create(elem, scalar ? 0 : 1, &n, &made));
  memcpy(made->data, values, (size_t)n * sizeof *values);
  *out = made;
  return NULL;
}
