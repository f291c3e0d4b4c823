// The table of targets. Programs of tests compile this file with a table of their own
// (tests/device/mock/exec), which comes before the library's.
#include "exec/targets.h"

#include <assay/engine.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/shown.h"
#include "exec/drivers.h"

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

#define AUTO "auto"

enum { N_ROWS = sizeof rows / sizeof *rows };

const assay_backend_t* assay_target_at(size_t i) { return i < N_ROWS ? rows[i].backend : NULL; }

const char* assay_target_name(size_t i) { return i < N_ROWS ? rows[i].backend->name : NULL; }

const char* assay_target_description(size_t i) { return i < N_ROWS ? rows[i].about : NULL; }

const assay_backend_t* assay_target_default(assay_target_use_t use) {
  for (size_t i = 0; i < N_ROWS; i++)
    if (rows[i].backend->emulates == (use == ASSAY_TARGET_INSPECT)) return rows[i].backend;
  return rows[0].backend;
}

// ---- devices of targets -------------------------------------------------------------------------

// The rows of targets with devices, once for each device, and of those that are like others, once
// for each of these.
static assay_backend_t of_device[N_ROWS][ASSAY_TARGET_DEVICES];

static void make_devices(void) {
  for (size_t i = 0; i < N_ROWS; i++) {
    const char* const* likes = rows[i].backend->likes;
    for (int d = 0; d < ASSAY_TARGET_DEVICES && (likes ? likes[d] != NULL : true); d++) {
      of_device[i][d] = *rows[i].backend;
      of_device[i][d].device = likes ? d + 1 : d;
      if (likes) of_device[i][d].name = likes[d];
      of_device[i][d].is_like = likes;
    }
  }
}

// The place of a name among those of a target that is like others; -1: it is none of them.
static int like_number(const assay_backend_t* b, const char* name) {
  for (int d = 0; d < ASSAY_TARGET_DEVICES && b->likes[d]; d++)
    if (strcmp(b->likes[d], name) == 0) return d;
  return -1;
}

// The number behind "NAME:"; -1: it is none, or too large.
static int device_number(const char* text) {
  char* end = NULL;
  const long n = strtol(text, &end, 10);
  return *text >= '0' && *text <= '9' && !*end && n < ASSAY_TARGET_DEVICES ? (int)n : -1;
}

const assay_backend_t* assay_backend_find(const char* name) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  const size_t n = strcspn(name, ":");
  if (strcmp(name, AUTO) == 0) return assay_target_auto(NULL);
  for (size_t i = 0; i < N_ROWS; i++) {
    const assay_backend_t* b = rows[i].backend;
    if (strlen(b->name) != n || strncmp(b->name, name, n) != 0) continue;
    if (!name[n]) return b;
    const int device = b->likes    ? like_number(b, name)
                       : b->driver ? device_number(name + n + 1)
                                   : -1;
    if (device < 0 || (!device && !b->likes)) return device ? NULL : b;
    pthread_once(&once, make_devices);
    return &of_device[i][device];
  }
  return NULL;
}

assay_status_t assay_target_want(const assay_backend_t* target) {
  if (!target->driver) return NULL;
  return assay_status_note(target->driver->want(target->device), "target '%s'", target->name);
}

assay_status_t assay_target_hold(const assay_backend_t* target, assay_device_t** out) {
  *out = NULL;
  return target->driver ? target->driver->open(target->device, out) : NULL;
}

void assay_target_let_go(assay_device_t* held) {
  if (held) held->driver->close(held);
}

const assay_backend_t* assay_target_auto(assay_str_t* out_why) {
  const assay_backend_t* usual = assay_target_default(ASSAY_TARGET_BUILD);
  assay_str_t missing = {0};
  for (size_t i = 0; i < N_ROWS; i++) {
    const assay_backend_t* b = rows[i].backend;
    assay_status_t st = b->driver ? assay_target_want(b) : NULL;
    if (st) assay_str_printf(&missing, "%s%s", missing.len ? "; " : "", assay_status_message(st));
    if (b->driver && !st) {
      assay_str_deinit(&missing);
      if (out_why) assay_str_printf(out_why, "%s, ", b->name);
      if (out_why) assay_backend_describe(b, out_why);
      return b;
    }
    assay_status_free(st);
  }
  if (out_why) assay_str_printf(out_why, "%s (%s)", usual->name, assay_str_get(&missing));
  assay_str_deinit(&missing);
  return usual;
}

void assay_target_describe(const assay_backend_t* target, assay_str_t* out) {
  if (target->driver)
    assay_driver_describe_all(target->driver, out);
  else
    assay_backend_describe(target, out);
}

// ---- names --------------------------------------------------------------------------------------

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
  assay_str_printf(out, "%s (default)", first->name);
  for (size_t i = 0; i < N_ROWS; i++)
    if (rows[i].backend != first)
      assay_str_printf(out, ", %s%s", rows[i].backend->name, rows[i].backend->driver ? "[:N]" : "");
  assay_str_append(out, " or " AUTO);
}

assay_status_t assay_target_find(const char* name, assay_target_use_t use,
                                 const assay_backend_t** out) {
  *out = name ? assay_backend_find(name) : assay_target_default(use);
  if (*out) return NULL;
  assay_str_t names = {0};
  assay_target_names(&names, ", ");
  assay_status_t st = ASSAY_ERROR(
      ASSAY_INVALID_ARGUMENT, "unknown target '%s'; this build has %s%s", name,
      assay_str_get(&names),
      strchr(name, ':') ? "; behind ':' is the number of a device, where a target has several"
                        : "");
  assay_str_deinit(&names);
  return st;
}
