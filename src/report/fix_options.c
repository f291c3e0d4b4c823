// A fix as options: for Assay, for trtexec, and as the file that --fix-file reads.
#include <string.h>

#include "base/shell.h"
#include "base/shown.h"
#include "formats/format.h"
#include "report/report.h"

enum { SHORT = 400 };  // characters of options that are shown; longer ones stand in files and JSON

void assay_report_layer_precision(const assay_fix_t* f, assay_str_t* out) {
  assay_precision_print(f->nodes, f->n_nodes, f->format, out);
}

// ---- trtexec ------------------------------------------------------------------------------------

// A name that no quotes help: with a ' of its own, or with several '*'. What lies between the first
// and the last of these becomes a '*', which matches it; a list has no other spelling for it.
static void append_pattern(assay_str_t* out, const char* name) {
  static const char special[] = "',*";
  const size_t first = strcspn(name, special);
  size_t last = strlen(name);
  while (!strchr(special, name[last - 1])) last--;
  assay_str_append_n(out, name, first);
  assay_str_append(out, "*");
  assay_str_append(out, name + last);
}

void assay_report_trtexec_name(const char* name, assay_str_t* out) {
  const char* star = strchr(name, '*');
  if (strchr(name, '\'') || (star && strchr(star + 1, '*')))
    append_pattern(out, name);
  else
    assay_str_printf_raw(out, strchr(name, ',') ? "'%s'" : "%s", name);
}

void assay_report_trtexec_layer(const assay_node_t* n, const char* type, assay_str_t* list) {
  assay_str_t unnamed = {0};
  // As TensorRT's parser calls a node without a name.
  if (!*n->name && n->n_outputs && n->outputs[0])
    assay_str_printf_raw(&unnamed, "node_of_%s", n->outputs[0]->name);
  list->failed |= unnamed.failed;
  if (list->len) assay_str_append(list, ",");
  assay_report_trtexec_name(unnamed.len ? assay_str_get(&unnamed) : n->label, list);
  assay_str_printf(list, ":%s", type);
  assay_str_deinit(&unnamed);
}

void assay_report_trtexec_list(const char* list, assay_str_t* out) {
  assay_str_t word = {0};
  assay_str_printf_raw(&word, "--layerPrecisions=%s", list);
  out->failed |= word.failed;
  assay_shell_word(out, assay_str_get(&word));
  assay_str_deinit(&word);
}

void assay_report_trtexec(const assay_fix_t* f, assay_str_t* out) {
  assay_str_t list = {0};
  for (size_t i = 0; i < f->n_nodes; i++)
    assay_report_trtexec_layer(f->nodes[i], assay_format_name(f->format), &list);
  out->failed |= list.failed;
  assay_str_append(out, "--precisionConstraints=prefer ");
  assay_report_trtexec_list(assay_str_get(&list), out);
  assay_str_deinit(&list);
}

// ---- files and lines ----------------------------------------------------------------------------

void assay_report_rules_option(const char* rules, assay_str_t* out) {
  assay_str_append(out, "--layer-precision ");
  assay_shell_word_quoted(out, rules);
}

void assay_report_fix_file(const assay_fix_t* f, assay_str_t* out) {
  assay_str_t rules = {0};
  assay_report_layer_precision(f, &rules);
  out->failed |= rules.failed;
  assay_str_printf(out,
                   "# assay and trtexec options that keep these layers in %s\n"
                   "# assay reads this file with --fix-file\n",
                   assay_format_name(f->format));
  assay_report_rules_option(assay_str_get(&rules), out);
  assay_str_append(out, "\n");
  assay_report_trtexec(f, out);
  assay_str_append(out, "\n");
  assay_str_deinit(&rules);
}

void assay_report_option_line(const char* word, const assay_str_t* options, size_t n_layers,
                              const char* file, assay_str_t* out) {
  out->failed |= options->failed;
  assay_str_printf(out, "  %-7s ", word);
  if (options->len <= SHORT) {
    assay_str_printf(out, ASSAY_LINES "\n", assay_str_get(options));
    return;
  }
  assay_str_printf(out, "options of %zu layers   (", n_layers);
  if (file)
    assay_shell_word(out, file);
  else
    assay_str_append(out, "all of it: --save-options FILE, --json -");
  assay_str_append(out, ")\n");
}
