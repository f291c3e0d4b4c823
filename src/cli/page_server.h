// Serves one page to this machine's browsers until the program is interrupted.
//
// It listens at 127.0.0.1 only, answers GET and HEAD of "/", and refuses requests for other hosts:
// a site whose name is turned into 127.0.0.1 (DNS rebinding) cannot read the page.
#ifndef ASSAY_CLI_PAGE_SERVER_H_
#define ASSAY_CLI_PAGE_SERVER_H_

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

typedef struct page_server page_server_t;

// Starts to serve an HTML page, whose bytes are borrowed until the server is stopped. port 0: any
// that is free. From here on SIGINT and SIGTERM end page_server_wait, not the program. Errors:
// INVALID_ARGUMENT no such port, it is taken, or there is a server already (there can be one at a
// time); DEVICE the system refuses.
assay_status_t page_server_start(const char* html, size_t n, int64_t port,
                                 page_server_t** out) ASSAY_MUST_USE;
int page_server_port(const page_server_t* s);
// Waits for SIGINT or SIGTERM.
void page_server_wait(page_server_t* s);
// Ends what is being answered, and gives the signals back; NULL is allowed.
void page_server_stop(page_server_t* s);

#endif  // ASSAY_CLI_PAGE_SERVER_H_
