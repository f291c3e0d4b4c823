// Help and usage, from the tables.
#include <string.h>

#include "base/shown.h"
#include "frontends/polygraphy/flags.h"

static const char* const group_names[PG_N_GROUPS] = {
    [PG_RUNNING] = "Running",   [PG_COMPARISON] = "Comparing", [PG_MODELS] = "ONNX models",
    [PG_BUILDING] = "Building", [PG_DEBUG] = "Debugging",      [PG_SURGEON] = "Surgeon",
    [PG_OTHER] = "Others",      [PG_LOGGING] = "Logging",      [PG_TENSORFLOW] = "TensorFlow",
};

enum { WIDTH = 100, LEFT = 30 };

// Prints text that begins in a column, with line breaks between words.
static void put_wrapped(const char* text, int indent, int column, FILE* out) {
  for (const char* at = text; *at;) {
    const size_t n = strcspn(at, " ");
    if (column > indent && column + 1 + (int)n > WIDTH) {
      fprintf(out, "\n%*s", indent, "");
      column = indent;
    } else if (column > indent) {
      fputc(' ', out);
      column++;
    }
    fwrite(at, 1, n, out);
    column += (int)n;
    at += n + (at[n] == ' ');
  }
  fputc('\n', out);
}

// Words to choose from that would fill the line stand in the text instead.
static bool is_long(const pg_flag_t* f) { return f->value && strlen(f->value) > WIDTH / 2; }

// "--name VALUE", as usage and help show it.
static void put_flag(const pg_flag_t* f, assay_str_t* out) {
  for (const char* c = f->names; *c; c++)
    assay_str_append_n(out, *c == ' ' ? ", " : c, *c == ' ' ? 2 : 1);
  if (!f->value) return;
  const char* dots =
      f->kind == PG_LIST || f->kind == PG_LISTS || f->kind == PG_CHOICES || f->kind == PG_REST
          ? " ..."
          : "";
  const bool may = f->kind == PG_LIST0 || f->kind == PG_OPT_TEXT;
  assay_str_printf_raw(out, " %s%s%s%s", may ? "[" : "", is_long(f) ? "WORD" : f->value,
                       f->kind == PG_LIST0 ? " ..." : dots, may ? "]" : "");
}

static void print_flag(const pg_flag_t* f, FILE* out) {
  assay_str_t left = {0}, text = {0};
  put_flag(f, &left);
  assay_str_append(&text, f->text);
  for (const char* c = is_long(f) ? f->value : ""; *c; c++)
    assay_str_printf_raw(&text, "%s%s%c", c == f->value ? ": " : "", *c == '|' ? "," : "",
                         *c == '|' ? ' ' : *c);
  if (f->fallback && f->kind != PG_COUNT)
    assay_str_printf_raw(&text, " (default: %s)", f->fallback);
  if (left.len > LEFT)
    fprintf(out, "  %s\n%*s", assay_str_get(&left), LEFT + 4, "");
  else
    fprintf(out, "  %-*s  ", LEFT, assay_str_get(&left));
  put_wrapped(assay_str_get(&text), LEFT + 4, LEFT + 4, out);
  assay_str_deinit(&left);
  assay_str_deinit(&text);
}

static bool has_group(pg_command_id_t c, pg_group_t g) {
  for (int f = 0; f < PG_N_FLAGS; f++)
    if (pg_flags[f].group == g && pg_flags[f].level == PG_WORKS && pg_flag_has((pg_flag_id_t)f, c))
      return true;
  return false;
}

static void print_names(pg_command_id_t c, pg_level_t level, const char* title, FILE* out) {
  assay_str_t names = {0};
  for (int f = 0; f < PG_N_FLAGS; f++) {
    if (pg_flags[f].level != level || !pg_flag_has((pg_flag_id_t)f, c)) continue;
    const size_t n = strcspn(pg_flags[f].names, " ");
    assay_str_printf_raw(&names, "%s%.*s", names.len ? " " : "", (int)n, pg_flags[f].names);
  }
  if (names.len) {
    fprintf(out, "\n%s:\n  ", title);
    put_wrapped(assay_str_get(&names), 2, 2, out);
  }
  assay_str_deinit(&names);
}

static void print_call(pg_command_id_t c, FILE* out) {
  const pg_command_t* row = &pg_commands[c];
  fprintf(out, "usage: polygraphy %s%s%s [options]%s%s\n", row->tool, row->name ? " " : "",
          row->name ? row->name : "", *row->model ? " " : "", row->model);
}

void pg_usage(pg_command_id_t c, FILE* out) {
  const pg_command_t* row = &pg_commands[c];
  print_call(c, out);
  fprintf(out, "'polygraphy %s%s%s -h' shows the options\n", row->tool, row->name ? " " : "",
          row->name ? row->name : "");
}

// One example for each subcommand.
static const char* example(pg_command_id_t c) {
  static const char* const rows[PG_N_COMMANDS] = {
      [PG_CMD_run] = "run model.onnx --trt --fp16 --onnxrt --atol 1e-2 --rtol 1e-2",
      [PG_CMD_convert] = "convert model.onnx --fp16 -o model.engine",
      [PG_CMD_inspect_model] = "inspect model model.onnx --show layers",
      [PG_CMD_inspect_data] = "inspect data outputs.json --all --show-values",
      [PG_CMD_inspect_tactics] = "inspect tactics replay.json",
      [PG_CMD_inspect_diff_tactics] = "inspect diff-tactics --dir polygraphy_artifacts",
      [PG_CMD_inspect_capability] = "inspect capability model.onnx --with-partitioning",
      [PG_CMD_inspect_sparsity] = "inspect sparsity model.onnx",
      [PG_CMD_check_lint] = "check lint model.onnx -o report.json",
      [PG_CMD_check_accuracy] = "check accuracy results.json --check-error-stat max --atol 1e-2",
      [PG_CMD_surgeon_extract] =
          "surgeon extract model.onnx --inputs x:auto:auto --outputs y:auto -o part.onnx",
      [PG_CMD_surgeon_sanitize] = "surgeon sanitize model.onnx --fold-constants -o clean.onnx",
      [PG_CMD_surgeon_insert] =
          "surgeon insert model.onnx --inputs x --outputs y --op Relu -o more.onnx",
      [PG_CMD_surgeon_prune] = "surgeon prune model.onnx -o sparse.onnx",
      [PG_CMD_surgeon_weight_strip] = "surgeon weight-strip model.onnx -o light.onnx",
      [PG_CMD_surgeon_weight_reconstruct] = "surgeon weight-reconstruct light.onnx -o random.onnx",
      [PG_CMD_debug_precision] =
          "debug precision model.onnx --fp16 --check polygraphy run polygraphy_debug.engine --trt "
          "--load-inputs in.json --load-outputs golden.json --abs 1e-2",
      [PG_CMD_debug_reduce] =
          "debug reduce model.onnx -o small.onnx --check polygraphy run "
          "polygraphy_debug.onnx --trt --onnxrt",
      [PG_CMD_debug_build] =
          "debug build model.onnx --until 10 --check polygraphy run "
          "polygraphy_debug.engine --trt --load-outputs golden.json",
      [PG_CMD_debug_repeat] = "debug repeat --until 10 --check ./check.sh",
      [PG_CMD_data_concat] = "data concat a.json b.json -o all.json",
      [PG_CMD_data_merge] = "data merge inputs.json outputs.json -o layerwise.json",
  };
  return rows[c];
}

void pg_help_command(pg_command_id_t c, FILE* out) {
  const pg_command_t* row = &pg_commands[c];
  print_call(c, out);
  fprintf(out, "\n%s%s\n", row->summary, ".");
  for (int g = 0; g < PG_N_GROUPS; g++) {
    if (!has_group(c, (pg_group_t)g)) continue;
    fprintf(out, "\n%s:\n", group_names[g]);
    for (int f = 0; f < PG_N_FLAGS; f++)
      if (pg_flags[f].group == (pg_group_t)g && pg_flags[f].level == PG_WORKS &&
          pg_flag_has((pg_flag_id_t)f, c))
        print_flag(&pg_flags[f], out);
  }
  print_names(c, PG_ACCEPT, "Read, without effect in Assay (a note says why)", out);
  print_names(c, PG_REJECT, "Not supported (an error says what to use in their place)", out);
  fputs(
      "\nNames may be shortened as far as they stay clear; lists end at the next name, or at "
      "'--'.\n"
      "\nExample:\n  assay polygraphy",
      out);
  put_wrapped(example(c), 6, 18, out);
}

static void print_commands(const char* tool, FILE* out) {
  for (int c = 0; c < PG_N_COMMANDS; c++) {
    const pg_command_t* row = &pg_commands[c];
    char name[64];
    if (tool && strcmp(row->tool, tool) != 0) continue;
    snprintf(name, sizeof name, "%s%s%s", row->tool, row->name ? " " : "",
             row->name ? row->name : "");
    fprintf(out, "  %-28s  %s\n", name, row->summary);
  }
}

void pg_help(FILE* out) {
  fputs(
      "usage: polygraphy [-h] [-v] TOOL ...\n\n"
      "Polygraphy's command line over Assay: runs models by several runners and compares them,\n"
      "converts, inspects, changes and reduces them. A link named polygraphy to the program does\n"
      "the same as 'assay polygraphy'.\n\nTools:\n",
      out);
  print_commands(NULL, out);
  fputs(
      "\n'polygraphy TOOL -h' shows its options.\n"
      "\nExample:\n  assay polygraphy run model.onnx --trt --onnxrt\n",
      out);
}

void pg_help_tool(const char* tool, FILE* out) {
  fprintf(out, "usage: polygraphy %s [-h] SUBTOOL ...\n\nSubtools:\n", tool);
  print_commands(tool, out);
  fprintf(out, "\n'polygraphy %s SUBTOOL -h' shows its options, with an example.\n", tool);
}
