// Manual pages in roff (the man macros), from the tables of verbs and options.
#include <string.h>

#include "base/shown.h"
#include "cli/help_text.h"
#include "cli/verbs.h"

// What exit codes of cli.h mean, for all verbs.
static const char* const codes[] = {
    [ASSAY_EXIT_OK] = "faithful, passed, done",
    [ASSAY_EXIT_UNFAITHFUL] = "not faithful, something failed, or what was asked for is not met",
    [ASSAY_EXIT_USAGE] = "the command line is wrong",
    [ASSAY_EXIT_INPUT] = "an input is unreadable or not valid ONNX",
    [ASSAY_EXIT_FAILED] =
        "could not be carried out: no memory, no device, a limit, a mistake of Assay's",
};

// Text as roff takes it literally; a newline becomes `line_end`.
static void append(assay_str_t* out, const char* text, const char* line_end) {
  static const struct {
    char c;
    const char* roff;
  } escapes[] = {{'\\', "\\[rs]"}, {'-', "\\-"},    {'\'', "\\[aq]"},
                 {'^', "\\[ha]"},  {'~', "\\[ti]"}, {'`', "\\[ga]"}};
  bool first = true;  // of a line
  for (const char* p = text; *p; p++) {
    const char* roff = NULL;
    for (size_t i = 0; i < sizeof escapes / sizeof *escapes; i++)
      if (escapes[i].c == *p) roff = escapes[i].roff;
    if (first && *p == '.') assay_str_append(out, "\\&");  // else it would be a request
    if (*p == '\n')
      assay_str_append(out, line_end);
    else if (roff)
      assay_str_append(out, roff);
    else
      assay_str_append_n(out, p, 1);
    first = *p == '\n';
  }
}

// "debug precision" as "debug-precision".
static void append_name(assay_str_t* out, const char* verb) {
  assay_str_append(out, "assay\\-");
  for (const char* p = verb; *p; p++)
    assay_str_append(out, *p == ' ' ? "\\-" : (const char[]){*p, 0});
}

static void begin(assay_str_t* out, const char* verb, const char* summary) {
  assay_str_append(out, ".TH ASSAY");
  for (const char* p = verb ? verb : ""; *p; p++) {
    if (p == verb) assay_str_append(out, "\\-");
    const bool lower = *p >= 'a' && *p <= 'z';
    assay_str_append(out, *p == ' ' ? "\\-" : (const char[]){(char)(lower ? *p - 32 : *p), 0});
  }
  assay_str_append(out, " 1 \"\" \"assay " ASSAY_VERSION "\" Assay\n.SH NAME\n");
  if (verb)
    append_name(out, verb);
  else
    assay_str_append(out, "assay");
  assay_str_append(out, " \\- ");
  append(out, summary, " ");
  assay_str_append(out, "\n.SH SYNOPSIS\n");
}

static void append_option(assay_str_t* out, const opt_t* o) {
  const bool positional = o->name[0] != '-';
  assay_str_append(out, ".TP\n");
  if (o->letter) assay_str_printf_raw(out, "\\fB\\-%c\\fR, ", o->letter);
  assay_str_append(out, positional ? "\\fI" : "\\fB");
  append(out, o->name, " ");
  assay_str_append(out, "\\fR");
  if (o->value) {
    assay_str_append(out, " \\fI");
    append(out, o->value, " ");
    assay_str_append(out, "\\fR");
  }
  assay_str_append(out, "\n");
  assay_str_t help = {0};
  assay_status_t st = cli_help_text(o->help, &help);
  out->failed |= st != NULL;
  append(out, assay_str_get(&help), "\n");
  assay_status_free(st);
  assay_str_deinit(&help);
  assay_str_append(out, "\n");
}

static void append_codes(assay_str_t* out) {
  assay_str_append(out, ".SH EXIT STATUS\n");
  for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
    assay_str_printf_raw(out, ".TP\n%zu\n", i);
    append(out, codes[i], " ");
    assay_str_append(out, "\n");
  }
}

// Lines as they are, without what they are indented by in the help.
static void append_lines(assay_str_t* out, const char* text) {
  assay_str_append(out, ".nf\n");
  while (*text) {
    while (*text == ' ') text++;
    const size_t n = strcspn(text, "\n");
    assay_str_t line = {0};
    assay_str_append_n(&line, text, n);
    append(out, assay_str_get(&line), "");
    assay_str_append(out, "\n");
    out->failed |= line.failed;
    assay_str_deinit(&line);
    text += n + (text[n] == '\n');
  }
  assay_str_append(out, ".fi\n");
}

void assay_cli_manual_verb(const verb_t* verb, assay_str_t* out) {
  assay_str_t usage = {0};
  begin(out, verb->name, verb->summary);
  assay_str_printf_raw(&usage, "assay %s %s", verb->name, verb->usage);
  append_lines(out, assay_str_get(&usage));
  out->failed |= usage.failed;
  assay_str_deinit(&usage);
  for (int positional = 1; positional >= 0; positional--) {
    bool any = !positional;  // of options there is always -h
    if (any) assay_str_append(out, ".SH OPTIONS\n");
    for (const opt_t* o = verb->options; o->name; o++) {
      if ((o->name[0] != '-') != (bool)positional) continue;
      if (!any) assay_str_append(out, ".SH ARGUMENTS\n");
      any = true;
      append_option(out, o);
    }
  }
  assay_str_append(out, ".TP\n\\fB\\-h\\fR, \\fB\\-\\-help\\fR\nshow the options\n");
  append_codes(out);
  if (verb->examples) {
    assay_str_append(out, ".SH EXAMPLES\n");
    append_lines(out, verb->examples);
  }
  assay_str_append(out, ".SH SEE ALSO\n.BR assay (1)\n");
}

void assay_cli_manual(assay_str_t* out) {
  begin(out, NULL, "run ONNX models and account for every number that a precision changes");
  assay_str_append(out, ".nf\nassay VERB [arguments]\n.fi\n.SH DESCRIPTION\n");
  append(out,
         "A model is evaluated in float64 (its truth) and run in the format asked for; for every "
         "layer Assay tells which error it made itself and which it inherited.\n"
         "Results go to the standard output, everything else to the standard error.\n",
         "\n");
  assay_str_append(out, ".SH VERBS\n");
  for (const verb_t* const* v = assay_cli_verbs; *v; v++) {
    assay_str_append(out, ".TP\n.BR ");
    append_name(out, (*v)->name);
    assay_str_append(out, " (1)\n");
    append(out, (*v)->summary, " ");
    assay_str_append(out, "\n");
  }
  for (const front_t* f = assay_cli_fronts; f->name; f++) {
    assay_str_printf_raw(out, ".TP\n.B assay %s\n", f->name);
    append(out, f->summary, " ");
    assay_str_printf_raw(out, "; \\[aq]assay %s \\-\\-help\\[aq] lists its flags\n", f->name);
  }
  assay_str_append(out, ".SH ENVIRONMENT\n.TP\nASSAY_MEMORY_LIMIT\n");
  append(out,
         "fail rather than take more memory than this (500M, 16G); --memory-limit goes before it",
         " ");
  assay_str_append(out, "\n");
  append_codes(out);
}
