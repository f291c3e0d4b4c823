// --gen-script: the run as a Python script. It calls this program with the line's words, a flag a
// line, so that it does what the line does.
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "frontends/polygraphy/run.h"
#include "ops/text/text_case.h"

// It imports nothing but os, which Python has loaded before the script's folder comes into its
// path: no module that happens to lie there is run.
static const char head[] =
    "#!/usr/bin/env python3\n"
    "\"\"\"Runs 'assay polygraphy run'; written by its --gen-script.\"\"\"\n"
    "import os\n"
    "\n"
    "# The program that wrote this; ASSAY_PROGRAM names another one.\n"
    "PROGRAM = os.environ.get(\"ASSAY_PROGRAM\", ";

static const char tail[] =
    "]\n"
    "\n"
    "if __name__ == \"__main__\":\n"
    "    os.execvp(PROGRAM, [PROGRAM, \"polygraphy\", \"run\"] + ARGUMENTS)\n";

// A string of Python. Bytes that are no UTF-8 become what os.fsdecode makes of them.
static void put_string(assay_str_t* out, const char* text) {
  const size_t n = strlen(text);
  assay_str_append(out, "\"");
  for (size_t at = 0; at < n;) {
    const uint32_t code = assay_utf8_read(text, n, &at);
    if (code >= ASSAY_BAD_BYTE)
      assay_str_printf(out, "\\udc%02x", (unsigned)(code - ASSAY_BAD_BYTE));
    else if (code < 0x20 || code == 0x7f)
      assay_str_printf(out, "\\x%02x", (unsigned)code);
    else if (code == '"' || code == '\\')
      assay_str_printf(out, "\\%c", (int)code);
    else
      assay_utf8_append(out, code);
  }
  assay_str_append(out, "\"");
}

static void put_line(assay_str_t* out, char* const* words, size_t n) {
  assay_str_append(out, "    ");
  for (size_t i = 0; i < n; i++) {
    put_string(out, words[i]);
    assay_str_append(out, i + 1 < n ? ", " : ",\n");
  }
}

// The model comes first: after a list it would be taken for a part of it. A name that looks like a
// flag stands after "--" at the end.
static void put_arguments(const pg_args_t* a, assay_str_t* out) {
  for (int late = 0; late < 2; late++) {
    for (size_t i = 0; i < a->positional.n; i++) {
      char* const model = (char*)(uintptr_t)a->positional.items[i];
      if ((*model == '-' ? 1 : 0) != late) continue;
      if (late)
        put_line(out, (char* const[]){(char[]){"--"}, model}, 2);
      else
        put_line(out, &model, 1);
    }
    for (size_t i = 0; !late && i < a->n_parts; i++)
      if (a->parts[i].flag != PG_FLAG_gen) put_line(out, a->parts[i].words, a->parts[i].n);
  }
}

static assay_status_t write_file(const char* path, const assay_str_t* text) {
  pg_log(PG_INFO, "Writing a script to %s", path);
  return assay_status_note(assay_file_write(path, assay_str_get(text), text->len), "--gen-script");
}

assay_status_t pg_run_write_script(pg_job_t* j) {
  const char* path = pg_text(j->args, PG_FLAG_gen);
  assay_str_t text = {0};
  assay_str_append(&text, head);
  put_string(&text, j->program);
  assay_str_append(&text, ")\n\nARGUMENTS = [\n");
  put_arguments(j->args, &text);
  assay_str_append(&text, tail);
  assay_status_t st = assay_str_status(&text);
  if (!st && strcmp(path, "-") != 0) st = write_file(path, &text);
  if (!st && strcmp(path, "-") == 0) fputs(assay_str_get(&text), stdout);
  assay_str_deinit(&text);
  return st;
}
