// --timeout: ends the program after so many seconds, wherever it is.
#ifndef ASSAY_CLI_TIMEOUT_H_
#define ASSAY_CLI_TIMEOUT_H_

#include <stdbool.h>

#include "base/status.h"

// Starts to count. When the time is over: what was found is printed, then a line on stderr that
// says what the program was doing; commands that it started are killed, its temporary folders
// removed, and it ends with ASSAY_EXIT_FAILED. `verb` is borrowed for good.
//   seconds  more than 0
// Errors: DEVICE no thread for it.
assay_status_t cli_timeout_start(const char* verb, double seconds) ASSAY_MUST_USE;
bool cli_timeout_runs(void);  // whether there is one
// What the program does from now on, for that line; copied.
void cli_timeout_doing(const char* what);
// What is to be printed on stdout then, in place of what was told before; copied. NULL: nothing any
// more, since the program prints it itself.
void cli_timeout_found(const char* text);
// Waits for the end if the time is over: what fails then fails since it was stopped.
void cli_timeout_hold(void);

#endif  // ASSAY_CLI_TIMEOUT_H_
