// The tables of flags and subcommands.
#include "frontends/polygraphy/flags.h"

#include <string.h>

#include "base/nearest.h"
#include "frontends/polygraphy/job.h"

// Sets of subcommands that many flags have in common.
#define C(id) (1u << PG_CMD_##id)
enum {
  BUILDING = C(run) | C(convert) | C(debug_precision) | C(debug_build),
  COMPARING = C(run) | C(check_accuracy),
  DEBUGGING = C(debug_precision) | C(debug_reduce) | C(debug_build) | C(debug_repeat),
  FEEDING = C(run) | C(convert) | C(check_lint) | C(surgeon_extract) | C(surgeon_sanitize) |
            C(debug_precision) | C(debug_reduce) | C(debug_build),
  WRITING = C(surgeon_extract) | C(surgeon_sanitize) | C(surgeon_insert) | C(surgeon_prune) |
            C(surgeon_weight_strip) | C(surgeon_weight_reconstruct),
  LOADING = C(run) | C(convert) | C(inspect_model) | C(inspect_capability) | C(inspect_sparsity) |
            C(check_lint) | WRITING | C(debug_precision) | C(debug_reduce) | C(debug_build),
  SAVING = C(run) | C(convert) | C(inspect_capability) | WRITING | C(debug_reduce),
  ALL = (1u << PG_N_COMMANDS) - 1,
};

const pg_flag_t pg_flags[PG_N_FLAGS] = {
#define PG_FLAG(id, names, kind, level, group, commands, value, fallback, text) \
  {names, PG_##kind, PG_##level, PG_##group, (uint32_t)(commands), value, fallback, text},
#include "frontends/polygraphy/flags.inc"
#undef PG_FLAG
};
#undef C

const pg_command_t pg_commands[PG_N_COMMANDS] = {
#define PG_COMMAND(id, tool, name, framed, model, summary) \
  {tool, name, framed, model, summary, pg_run_##id},
#include "frontends/polygraphy/commands.inc"
#undef PG_COMMAND
};

bool pg_is(const pg_args_t* a, pg_flag_id_t f, const char* word) {
  return a->at[f].text && strcmp(a->at[f].text, word) == 0;
}

bool pg_flag_has(pg_flag_id_t f, pg_command_id_t command) {
  return pg_flags[f].commands >> command & 1;
}

// Walks over the words of a list with one separator.
static const char* next_word(const char* at, char separator, size_t* out_n) {
  const char* end = strchr(at, separator);
  *out_n = end ? (size_t)(end - at) : strlen(at);
  return end ? end + 1 : at + *out_n;
}

bool pg_flag_is(const pg_flag_t* f, const char* word, size_t n) {
  size_t len;
  for (const char *at = f->names, *next; *at; at = next) {
    next = next_word(at, ' ', &len);
    if (len == n && strncmp(at, word, n) == 0) return true;
  }
  return false;
}

bool pg_flag_starts(const pg_flag_t* f, const char* word, size_t n) {
  size_t len;
  for (const char *at = f->names, *next; *at; at = next) {
    next = next_word(at, ' ', &len);
    if (len > n && n > 2 && strncmp(at, word, n) == 0) return true;
  }
  return false;
}

bool pg_is_choice(const char* words, const char* value) {
  size_t len;
  for (const char *at = words, *next; *at; at = next) {
    next = next_word(at, '|', &len);
    if (len == strlen(value) && strncmp(at, value, len) == 0) return true;
  }
  return false;
}

const char* pg_flag_nearest(pg_command_id_t command, const char* word) {
  const char* best = NULL;
  const size_t length = strcspn(word, "=");
  int min = (int)(length < 60 ? length : 60) / 3 + 1;
  char name[64], given[64];
  if (length >= sizeof given) return NULL;
  memcpy(given, word, length);
  given[length] = 0;
  for (int f = 0; f < PG_N_FLAGS; f++) {
    size_t n;
    if (!pg_flag_has((pg_flag_id_t)f, command)) continue;
    for (const char *at = pg_flags[f].names, *next; *at; at = next) {
      next = next_word(at, ' ', &n);
      if (n < 3 || n >= sizeof name) continue;
      memcpy(name, at, n);
      name[n] = 0;
      const int d = assay_distance(given, name, min);
      if (d < min) min = d, best = at;
    }
  }
  return best;
}
