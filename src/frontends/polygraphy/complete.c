// What completion scripts know of Polygraphy's command line, from the tables of flags and
// subcommands.
#include <string.h>

#include "cli/shell/completion.h"
#include "frontends/polygraphy/flags.h"
#include "frontends/polygraphy/polygraphy.h"

static complete_takes_t takes_of(pg_kind_t kind) {
  switch (kind) {
    case PG_SWITCH:
    case PG_COUNT:
      return TAKES_NOTHING;
    case PG_CHOICES:
    case PG_LIST:
    case PG_LIST0:
    case PG_LISTS:
    case PG_REST:
      return TAKES_MANY;
    default:
      return TAKES_ONE;
  }
}

// Text may be a file's name, and mostly is; numbers are none.
static assay_status_t take_flag(assay_arena_t* arena, const pg_flag_t* f, complete_option_t* out) {
  *out = (complete_option_t){.takes = takes_of(f->kind),
                             .kind = VALUE_FILE,
                             .value = f->value,
                             .help = f->text,
                             .again = f->kind == PG_COUNT || f->kind == PG_LISTS};
  if (f->level == PG_ACCEPT)
    ASSAY_TRY(assay_arena_printf(arena, &out->help, "no effect: %s", f->text));
  if (f->kind == PG_INT || f->kind == PG_FLOAT) out->kind = VALUE_ANY;
  if (f->kind != PG_CHOICE && f->kind != PG_CHOICES) return NULL;
  out->kind = VALUE_WORDS;
  return complete_words(arena, f->value, &out->words);
}

// A row for each long spelling; the first one has the letter of a short one.
static assay_status_t add_flag(assay_arena_t* arena, const pg_flag_t* f, complete_option_t* rows,
                               size_t* n) {
  complete_option_t row;
  ASSAY_TRY(take_flag(arena, f, &row));
  for (const char* at = f->names; *at;) {
    const size_t len = strcspn(at, " ");
    if (len == 2) {
      row.letter = at[1];
    } else {
      ASSAY_TRY(assay_arena_strndup(arena, at, len, &row.name));
      rows[(*n)++] = row;
      row.letter = 0;
    }
    at += len + (at[len] == ' ');
  }
  return NULL;
}

static size_t count_spellings(const pg_flag_t* f) {
  size_t n = 1;
  for (const char* c = f->names; *c; c++) n += *c == ' ';
  return n;
}

static bool is_offered(int flag, pg_command_id_t command) {
  const pg_level_t level = pg_flags[flag].level;
  return (level == PG_WORKS || level == PG_ACCEPT) && pg_flag_has((pg_flag_id_t)flag, command);
}

static assay_status_t add_command(completion_t* out, pg_command_id_t c) {
  const pg_command_t* row = &pg_commands[c];
  complete_option_t* options = NULL;
  complete_line_t line = {.summary = row->summary};
  size_t n = 1;
  for (int f = 0; f < PG_N_FLAGS; f++) n += is_offered(f, c) ? count_spellings(&pg_flags[f]) : 0;
  ASSAY_TRY(assay_arena_new(out->arena, n, sizeof *options, &options));
  ASSAY_TRY(assay_arena_printf(out->arena, &line.path, "polygraphy %s%s%s", row->tool,
                               row->name ? " " : "", row->name ? row->name : ""));
  if (*row->model)
    options[line.n++] = (complete_option_t){.name = "FILE",
                                            .takes = TAKES_ONE,
                                            .kind = VALUE_FILE,
                                            .value = "FILE",
                                            .help = row->model,
                                            .again = strstr(row->model, "...") != NULL,
                                            .required = *row->model != '['};
  for (int f = 0; f < PG_N_FLAGS; f++)
    if (is_offered(f, c)) ASSAY_TRY(add_flag(out->arena, &pg_flags[f], options, &line.n));
  line.options = options;
  return complete_add(out, &line);
}

assay_status_t assay_polygraphy_complete(completion_t* out) {
  for (int c = 0; c < PG_N_COMMANDS; c++) ASSAY_TRY(add_command(out, (pg_command_id_t)c));
  return NULL;
}
