// Serves one page to this machine's browsers until the program is interrupted.
#include "cli/page_server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <signal.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"

enum { MAX_CONNECTIONS = 64, IDLE_SECONDS = 5 };

struct page_server {
  struct MHD_Daemon* daemon;
  struct MHD_Response *page, *missing, *method, *host;
  struct sigaction before[2];  // of `signals`
  bool caught;                 // they were taken over
  int port;
};

// ---- answers ------------------------------------------------------------------------------------

// "localhost", "127.0.0.1", with any port appended: it may be forwarded.
static bool is_local(const char* host) {
  static const char* const names[] = {"localhost", "127.0.0.1"};
  for (size_t i = 0; host && i < sizeof names / sizeof *names; i++) {
    const size_t n = strlen(names[i]);
    if (strncasecmp(host, names[i], n) != 0) continue;
    if (!host[n]) return true;
    if (host[n] == ':' && strspn(host + n + 1, "0123456789") == strlen(host + n + 1)) return true;
  }
  return false;
}

static enum MHD_Result answer(void* user, struct MHD_Connection* c, const char* url,
                              const char* method, const char* version, const char* data, size_t* n,
                              void** state) {
  const page_server_t* s = user;
  const char* host = MHD_lookup_connection_value(c, MHD_HEADER_KIND, MHD_HTTP_HEADER_HOST);
  (void)version, (void)data, (void)n, (void)state;
  if (!is_local(host)) return MHD_queue_response(c, MHD_HTTP_FORBIDDEN, s->host);
  if (strcmp(method, MHD_HTTP_METHOD_GET) != 0 && strcmp(method, MHD_HTTP_METHOD_HEAD) != 0)
    return MHD_queue_response(c, MHD_HTTP_METHOD_NOT_ALLOWED, s->method);
  if (strcmp(url, "/") != 0) return MHD_queue_response(c, MHD_HTTP_NOT_FOUND, s->missing);
  return MHD_queue_response(c, MHD_HTTP_OK, s->page);
}

// The text is borrowed.
static struct MHD_Response* response(const char* text, size_t n, const char* type) {
  static const char* const headers[][2] = {{"Cache-Control", "no-store"},
                                           {"X-Content-Type-Options", "nosniff"},
                                           {"X-Frame-Options", "DENY"},
                                           {"Cross-Origin-Resource-Policy", "same-origin"},
                                           {"Referrer-Policy", "no-referrer"}};
  struct MHD_Response* r =
      MHD_create_response_from_buffer(n, (void*)(uintptr_t)text, MHD_RESPMEM_PERSISTENT);
  bool whole = r && MHD_add_response_header(r, "Content-Type", type) == MHD_YES;
  for (size_t i = 0; whole && i < sizeof headers / sizeof *headers; i++)
    whole = MHD_add_response_header(r, headers[i][0], headers[i][1]) == MHD_YES;
  if (whole) return r;
  if (r) MHD_destroy_response(r);
  return NULL;
}

static assay_status_t make_answers(page_server_t* s, const char* html, size_t n) {
  static const char missing[] = "There is one page only: /\n", method[] = "GET and HEAD only\n",
                    host[] = "Only for localhost and 127.0.0.1\n";
  s->page = response(html, n, "text/html; charset=utf-8");
  s->missing = response(missing, sizeof missing - 1, "text/plain");
  s->method = response(method, sizeof method - 1, "text/plain");
  s->host = response(host, sizeof host - 1, "text/plain");
  const bool whole = s->page && s->missing && s->method && s->host &&
                     MHD_add_response_header(s->method, "Allow", "GET, HEAD") == MHD_YES;
  return whole ? NULL : assay_status_no_memory();
}

// ---- signals ------------------------------------------------------------------------------------

// A handler, not sigwait: threads that were there before would take a signal that is blocked here.
static const int signals[] = {SIGINT, SIGTERM};
enum { N_SIGNALS = sizeof signals / sizeof *signals };
static int reported[2] = {-1, -1};  // a pipe: the handler writes, page_server_wait reads

static void report(int number) {
  const int before = errno;
  (void)number;
  // A pipe that is full has been told already.
  if (write(reported[1], "", 1) < 0) errno = before;
  errno = before;
}

static assay_status_t catch_signals(page_server_t* s) {
  struct sigaction action = {.sa_handler = report};
  sigemptyset(&action.sa_mask);
  if (pipe(reported)) return ASSAY_ERROR(ASSAY_DEVICE, "no pipe: %s", strerror(errno));
  for (int i = 0; i < N_SIGNALS; i++) sigaction(signals[i], &action, &s->before[i]);
  s->caught = true;
  return NULL;
}

static void give_signals_back(page_server_t* s) {
  if (!s->caught) return;
  for (int i = 0; i < N_SIGNALS; i++) sigaction(signals[i], &s->before[i], NULL);
  for (int i = 0; i < 2; i++) {
    close(reported[i]);
    reported[i] = -1;
  }
}

void page_server_wait(page_server_t* s) {
  char byte;
  (void)s;
  while (read(reported[0], &byte, 1) < 0 && errno == EINTR) continue;
}

// ---- the socket ---------------------------------------------------------------------------------

static assay_status_t refused(int socket, int64_t port, const char* what) {
  const int error = errno;
  if (socket >= 0) close(socket);
  if (error == EADDRINUSE)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                       "port %" PRId64
                       " of 127.0.0.1 is taken: give another one, or 0 for any that is free",
                       port);
  return ASSAY_ERROR(error == EACCES ? ASSAY_INVALID_ARGUMENT : ASSAY_DEVICE,
                     "port %" PRId64 " of 127.0.0.1: %s: %s", port, what, strerror(error));
}

// A socket that listens, and its port.
static assay_status_t listen_at(int64_t port, int* out, int* out_port) {
  struct sockaddr_in at = {.sin_family = AF_INET,
                           .sin_port = htons((uint16_t)port),
                           .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t n = sizeof at;
  const int s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (s < 0) return refused(s, port, "no socket");
  // Connections of an earlier run that are not quite over are no reason to wait.
  setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int));
  if (bind(s, (struct sockaddr*)&at, sizeof at)) return refused(s, port, "it cannot be had");
  if (listen(s, MAX_CONNECTIONS)) return refused(s, port, "it cannot be listened at");
  if (getsockname(s, (struct sockaddr*)&at, &n)) return refused(s, port, "it has no name");
  *out_port = ntohs(at.sin_port);
  *out = s;
  return NULL;
}

// The daemon takes the socket over.
static assay_status_t serve(page_server_t* s, int64_t port) {
  int listening = -1;
  ASSAY_TRY(listen_at(port, &listening, &s->port));
  s->daemon =
      MHD_start_daemon(MHD_USE_AUTO | MHD_USE_INTERNAL_POLLING_THREAD, 0, NULL, NULL, answer, s,
                       MHD_OPTION_LISTEN_SOCKET, (MHD_socket)listening, MHD_OPTION_CONNECTION_LIMIT,
                       (unsigned)MAX_CONNECTIONS, MHD_OPTION_CONNECTION_TIMEOUT,
                       (unsigned)IDLE_SECONDS, MHD_OPTION_END);
  return s->daemon ? NULL : refused(listening, port, "it cannot be served");
}

assay_status_t page_server_start(const char* html, size_t n, int64_t port, page_server_t** out) {
  page_server_t* s = NULL;
  if (port < 0 || port > UINT16_MAX)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                       "%" PRId64 " is not a port: they go from 0 (any that is free) to 65535",
                       port);
  if (reported[0] >= 0)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "a page is served already: stop that server first");
  ASSAY_TRY(ASSAY_NEW(&s));
  assay_status_t st = make_answers(s, html, n);
  if (!st) st = catch_signals(s);
  if (!st) st = serve(s, port);
  if (st) return page_server_stop(s), st;
  *out = s;
  return NULL;
}

int page_server_port(const page_server_t* s) { return s->port; }

void page_server_stop(page_server_t* s) {
  if (!s) return;
  struct MHD_Response* const all[] = {s->page, s->missing, s->method, s->host};
  if (s->daemon) MHD_stop_daemon(s->daemon);
  for (size_t i = 0; i < sizeof all / sizeof *all; i++)
    if (all[i]) MHD_destroy_response(all[i]);
  give_signals_back(s);
  assay_free(s);
}
