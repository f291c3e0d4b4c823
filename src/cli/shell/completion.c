// Completion scripts for shells, from the tables of verbs, options and other programs' flags. What
// a script knows is in it: it does not call the program.
#include "cli/shell/completion.h"

#include <string.h>

#include "cli/help_text.h"

// ---- the lines ----------------------------------------------------------------------------------

// A group is what stands in front of a line's last word, and in front of a group's.
static assay_status_t add_group(completion_t* c, const char* path, size_t n) {
  for (size_t i = 0; i < c->n_groups; i++)
    if (strlen(c->groups[i]) == n && strncmp(c->groups[i], path, n) == 0) return NULL;
  const char* group;
  ASSAY_TRY(assay_arena_strndup(c->arena, path, n, &group));
  ASSAY_TRY(assay_grow(&c->groups, &c->cap_groups, c->n_groups + 1, sizeof *c->groups));
  c->groups[c->n_groups++] = group;
  return NULL;
}

assay_status_t complete_add(completion_t* c, const complete_line_t* line) {
  ASSAY_TRY(assay_grow(&c->lines, &c->cap, c->n + 1, sizeof *c->lines));
  ASSAY_TRY(add_group(c, "", 0));
  for (const char* p = line->path; (p = strchr(p, ' ')); p++)
    ASSAY_TRY(add_group(c, line->path, (size_t)(p - line->path)));
  c->lines[c->n++] = *line;
  return NULL;
}

assay_status_t complete_words(assay_arena_t* arena, const char* choice, const char** out) {
  const size_t n = strlen(choice);
  char* words = assay_arena_alloc(arena, n + 1, 1);
  if (!words) return assay_status_no_memory();
  for (size_t i = 0; i < n; i++) words[i] = choice[i] == '|' ? ' ' : choice[i];
  *out = words;
  return NULL;
}

static assay_status_t take_option(completion_t* c, const verb_t* verb, const opt_t* o,
                                  complete_option_t* out) {
  assay_str_t words = {0}, help = {0};
  *out = (complete_option_t){
      .name = o->name,
      .letter = o->letter,
      .takes = o->kind == OPT_FLAG ? TAKES_NOTHING : TAKES_ONE,
      .value = o->value ? o->value : o->name,
      .again = o->kind == OPT_LIST || o->kind == OPT_RULES || o->kind == OPT_FIX,
      .required = o->required};
  assay_status_t st = cli_help_text(o->help, &help);
  if (!st) st = assay_arena_strdup(c->arena, assay_str_get(&help), &out->help);
  assay_str_deinit(&help);
  if (st || o->kind == OPT_FLAG) return st;
  out->kind = assay_cli_value_words(verb, o, &words);
  st = assay_str_status(&words);
  if (!st) st = assay_arena_strdup(c->arena, assay_str_get(&words), &out->words);
  assay_str_deinit(&words);
  return st;
}

static assay_status_t add_verb(completion_t* c, const verb_t* verb) {
  complete_option_t* options = NULL;
  complete_line_t line = {.path = verb->name, .summary = verb->summary};
  while (verb->options[line.n].name) line.n++;
  ASSAY_TRY(assay_arena_new(c->arena, line.n, sizeof *options, &options));
  for (size_t i = 0; i < line.n; i++)
    ASSAY_TRY(take_option(c, verb, &verb->options[i], &options[i]));
  line.options = options;
  return complete_add(c, &line);
}

static assay_status_t gather(completion_t* c) {
  ASSAY_TRY(assay_arena_create(&c->arena));
  for (const verb_t* const* v = assay_cli_verbs; *v; v++) ASSAY_TRY(add_verb(c, *v));
  for (const front_t* f = assay_cli_fronts; f->name; f++) ASSAY_TRY(f->complete(c));
  return NULL;
}

// ---- what writers share -------------------------------------------------------------------------

// The word of a line that follows a group's; NULL: it is of another one.
static const char* word_behind(const char* path, const char* group, size_t* out_n) {
  const size_t n = strlen(group);
  if (n && (strncmp(path, group, n) != 0 || path[n] != ' ')) return NULL;
  const char* word = n ? path + n + 1 : path;
  *out_n = strcspn(word, " ");
  return word;
}

static const char* own_summary(const char* path) {
  for (const family_t* f = assay_cli_families; f->name; f++)
    if (strcmp(f->name, path) == 0) return f->summary;
  for (const front_t* f = assay_cli_fronts; f->name; f++)
    if (strcmp(f->name, path) == 0) return f->summary;
  return NULL;
}

// Of a family or another program its own; of a group of that: the words that follow.
static void summarize(const completion_t* c, const char* path, assay_str_t* out) {
  const char* own = own_summary(path);
  if (own) assay_str_append(out, own);
  for (size_t i = 0; !own && i < c->n; i++) {
    size_t n;
    const char* word = word_behind(c->lines[i].path, path, &n);
    if (word) assay_str_printf(out, "%s%.*s", out->len ? ", " : "", (int)n, word);
  }
}

static bool came_before(const completion_t* c, size_t line, const char* group, const char* word,
                        size_t n) {
  for (size_t i = 0; i < line; i++) {
    size_t k;
    const char* other = word_behind(c->lines[i].path, group, &k);
    if (other && k == n && strncmp(other, word, n) == 0) return true;
  }
  return false;
}

void complete_each_word(const completion_t* c, const char* group, assay_str_t* out,
                        complete_word_fn append) {
  for (size_t i = 0; i < c->n; i++) {
    size_t n;
    const char* path = c->lines[i].path;
    const char* word = word_behind(path, group, &n);
    if (!word || came_before(c, i, group, word, n)) continue;
    assay_str_t name = {0}, whole = {0}, summary = {0};
    assay_str_append_n(&name, word, n);
    assay_str_append_n(&whole, path, (size_t)(word - path) + n);
    if (word[n])
      summarize(c, assay_str_get(&whole), &summary);
    else
      assay_str_append(&summary, c->lines[i].summary);
    append(out, group, assay_str_get(&name), assay_str_get(&summary));
    out->failed |= name.failed | whole.failed | summary.failed;
    assay_str_deinit(&name);
    assay_str_deinit(&whole);
    assay_str_deinit(&summary);
  }
}

const front_t* complete_front(const char* path) {
  const size_t n = strcspn(path, " ");
  for (const front_t* f = assay_cli_fronts; f->name; f++)
    if (strlen(f->name) == n && strncmp(f->name, path, n) == 0) return f;
  return NULL;
}

void complete_quoted(assay_str_t* out, const char* text) {
  for (const char* p = text; *p; p++) {
    if (*p == '\'')
      assay_str_append(out, "'\\''");
    else
      assay_str_append_n(out, *p == '\n' ? " " : p, 1);
  }
}

// -------------------------------------------------------------------------------------------------

static const struct {
  const char* name;
  void (*write)(const completion_t* c, assay_str_t* out);
} shells[] = {{"bash", complete_bash}, {"zsh", complete_zsh}, {"fish", complete_fish}};

assay_status_t assay_cli_completion(const char* shell, assay_str_t* out) {
  size_t k = 0;
  while (k < sizeof shells / sizeof *shells && strcmp(shells[k].name, shell) != 0) k++;
  if (k == sizeof shells / sizeof *shells)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "'%s' is not a shell that is known: bash, zsh, fish",
                       shell);
  completion_t c = {0};
  assay_status_t st = gather(&c);
  if (!st) shells[k].write(&c, out);
  assay_free(c.lines);
  assay_free(c.groups);
  assay_arena_destroy(c.arena);
  return st ? st : assay_str_status(out);
}
