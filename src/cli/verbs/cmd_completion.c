// assay completion: scripts with which shells complete the command line.
#include "cli/cli.h"
#include "cli/verbs.h"

typedef struct args {
  const char* shell;
} args_t;

static int run(void* p) {
  const args_t* a = p;
  assay_str_t text = {0};
  assay_status_t st = assay_cli_completion(a->shell, &text);
  if (!st) fputs(assay_str_get(&text), stdout);
  assay_str_deinit(&text);
  return st ? assay_cli_fail(st, ASSAY_EXIT_USAGE) : ASSAY_EXIT_OK;
}

static const opt_t options[] = {
    {"SHELL", 0, OPT_STRING, offsetof(args_t, shell), NULL, "bash, zsh or fish", true}, {0}};

const verb_t assay_verb_completion = {
    .name = "completion",
    .summary = "print a script with which a shell completes verbs, options and values",
    .usage = "SHELL",
    .examples =
        "  assay completion bash > ~/.local/share/bash-completion/completions/assay\n"
        "  assay completion zsh > ~/.zfunc/_assay\n"
        "  assay completion fish > ~/.config/fish/completions/assay.fish\n",
    .options = options,
    .args_bytes = sizeof(args_t),
    .run = run,
};
