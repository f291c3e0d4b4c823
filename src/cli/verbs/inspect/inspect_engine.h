// What is in a plan file, and how its layers run.
#ifndef ASSAY_CLI_VERBS_INSPECT_INSPECT_ENGINE_H_
#define ASSAY_CLI_VERBS_INSPECT_INSPECT_ENGINE_H_

// explain: only layers with a node or output that matches, and how their tactics were chosen; NULL:
// a ledger of all. json: the file that is written instead of text, "-" for stdout; NULL: none.
// Returns the exit code.
int cli_inspect_engine(const char* file, const char* explain, const char* json);

#endif  // ASSAY_CLI_VERBS_INSPECT_INSPECT_ENGINE_H_
