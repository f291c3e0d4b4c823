// The verbs of the family edit have the options of the library's edits, and besides those that all
// of them have.
#include <assay/edit.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
// cmocka wants those before it.
#include <cmocka.h>

#include "cli/verbs.h"

static const verb_t* verb_of(size_t edit) {
  char name[64];
  snprintf(name, sizeof name, "edit %s", assay_edit_name(edit));
  return assay_cli_find_verb(name);
}

// The option of a name without the dashes; NULL: the verb does not have it.
static const opt_t* option_of(const verb_t* verb, const char* name) {
  for (const opt_t* o = verb->options; o->name; o++)
    if (strncmp(o->name, "--", 2) == 0 && strcmp(o->name + 2, name) == 0) return o;
  return NULL;
}

static void every_edit_is_a_verb_with_its_options(void** state) {
  (void)state;
  const char* name;
  for (size_t i = 0; assay_edit_name(i); i++) {
    const verb_t* verb = verb_of(i);
    if (!verb) fail_msg("there is no verb 'edit %s'", assay_edit_name(i));
    for (size_t k = 0; (name = assay_edit_option_name(i, k)); k++) {
      const opt_t* o = option_of(verb, name);
      if (!o) fail_msg("%s has no option --%s", verb->name, name);
      const bool flag = !*assay_edit_option_value(i, k);
      if (flag != (o->kind == OPT_FLAG) ||
          assay_edit_option_repeats(i, k) != (o->kind == OPT_LIST) ||
          (!flag && strcmp(o->value, assay_edit_option_value(i, k)) != 0))
        fail_msg("%s: --%s takes something else than the edit", verb->name, name);
    }
  }
}

static bool is_of_edit(size_t edit, const char* name) {
  const char* x;
  for (size_t k = 0; (x = assay_edit_option_name(edit, k)); k++)
    if (strcmp(x, name) == 0) return true;
  return false;
}

// An option that one verb has and its edit does not would be read and not used.
static void other_options_are_those_of_all(void** state) {
  (void)state;
  for (size_t i = 0; assay_edit_name(i); i++)
    for (const opt_t* o = verb_of(i)->options; o->name; o++) {
      if (strncmp(o->name, "--", 2) != 0 || is_of_edit(i, o->name + 2)) continue;
      for (size_t k = 0; assay_edit_name(k); k++)
        if (!option_of(verb_of(k), o->name + 2))
          fail_msg("edit %s has %s, which its edit does not know", assay_edit_name(i), o->name);
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_edit_is_a_verb_with_its_options),
      cmocka_unit_test(other_options_are_those_of_all),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
