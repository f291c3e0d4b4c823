// The table of targets. Programs of tests compile this file with a table of their own
// (tests/device/mock/exec), which comes before the library's.
#include "exec/targets.h"

#include <assay/engine.h>
#include <string.h>

#define ASSAY_TARGET(name, about) extern const assay_backend_t assay_backend_##name;
#include "exec/targets.inc"
#undef ASSAY_TARGET

static const struct {
  const assay_backend_t* backend;
  const char* about;
} rows[] = {
#define ASSAY_TARGET(name, about) {&assay_backend_##name, about},
#include "exec/targets.inc"
#undef ASSAY_TARGET
};

enum { N_ROWS = sizeof rows / sizeof *rows };

const assay_backend_t* assay_target_at(size_t i) { return i < N_ROWS ? rows[i].backend : NULL; }

const char* assay_target_name(size_t i) { return i < N_ROWS ? rows[i].backend->name : NULL; }

const char* assay_target_description(size_t i) { return i < N_ROWS ? rows[i].about : NULL; }

const assay_backend_t* assay_target_default(assay_target_use_t use) {
  for (size_t i = 0; i < N_ROWS; i++)
    if (rows[i].backend->emulates == (use == ASSAY_TARGET_INSPECT)) return rows[i].backend;
  return rows[0].backend;
}

const assay_backend_t* assay_backend_find(const char* name) {
  for (size_t i = 0; i < N_ROWS; i++)
    if (strcmp(rows[i].backend->name, name) == 0) return rows[i].backend;
  return NULL;
}

bool assay_target_is_here(const char* name) {
  const assay_backend_t* b = name ? assay_backend_find(name) : NULL;
  return b && !b->emulates;
}

void assay_target_names(assay_str_t* out, const char* between) {
  for (size_t i = 0; i < N_ROWS; i++)
    assay_str_printf(out, "%s%s", i ? between : "", rows[i].backend->name);
}

void assay_target_choice(assay_str_t* out, assay_target_use_t use) {
  const assay_backend_t* first = assay_target_default(use);
  size_t left = N_ROWS - 1;
  assay_str_printf(out, "%s (default)", first->name);
  for (size_t i = 0; i < N_ROWS; i++)
    if (rows[i].backend != first)
      assay_str_printf(out, "%s%s", --left ? ", " : " or ", rows[i].backend->name);
}

assay_status_t assay_target_find(const char* name, assay_target_use_t use,
                                 const assay_backend_t** out) {
  *out = name ? assay_backend_find(name) : assay_target_default(use);
  if (*out) return NULL;
  assay_str_t names = {0};
  assay_target_names(&names, ", ");
  assay_status_t st = ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "unknown target '%s'; this build has %s",
                                  name, assay_str_get(&names));
  assay_str_deinit(&names);
  return st;
}
