// Help of options with its marks replaced by what the tables of targets and of formats hold.
#ifndef ASSAY_CLI_HELP_TEXT_H_
#define ASSAY_CLI_HELP_TEXT_H_

#include "base/str.h"

// Appends the text. {build} and {look} become the names of targets and which of them is the
// default, for what is built and for what is looked at; {formats} the formats of files of tensors
// that are read. A line break is put into a list where it passes the width of the help's column.
assay_status_t cli_help_text(const char* help, assay_str_t* out) ASSAY_MUST_USE;

#endif  // ASSAY_CLI_HELP_TEXT_H_
