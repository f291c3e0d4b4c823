// Targets: which of them are this machine, whose times can be measured.
#include <assay/engine.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
// cmocka wants those before it.
#include <cmocka.h>

#include "exec/targets.h"

static const struct {
  const char* name;
  bool here;
} rows[] = {{"cpu", true}, {"emu", false}, {"gpu", false}, {"", false}, {NULL, false}};

static void one_target_is_this_machine(void** state) {
  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    if (assay_target_is_here(rows[i].name) != rows[i].here)
      fail_msg("'%s' is %sthis machine", rows[i].name ? rows[i].name : "(none)",
               rows[i].here ? "not " : "");
}

// What is built without a name of a target is for this machine; models' own values are looked at
// without it.
static void the_default_is_this_machine(void** state) {
  (void)state;
  assert_true(assay_target_is_here(assay_target_default(ASSAY_TARGET_BUILD)->name));
  assert_false(assay_target_is_here(assay_target_default(ASSAY_TARGET_INSPECT)->name));
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(one_target_is_this_machine),
                                     cmocka_unit_test(the_default_is_this_machine)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
