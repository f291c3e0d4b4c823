// Objects of the server, rules that hold for all of them, errors and messages.
#include <jansson.h>
#include <stdarg.h>

#include "inside.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static object_t* objects;
static int n_broken;
static char first_broken[512];
static int calls, failing_call, n_faults;
static const char* failing_function;
static TRITONSERVER_Error_Code failing_code;
static uint32_t version[2] = {1, 19};

// ---- rules
// --------------------------------------------------------------------------------------

void fake_break(const char* format, ...) {
  va_list list;
  va_start(list, format);
  pthread_mutex_lock(&lock);
  if (n_broken++ == 0) vsnprintf(first_broken, sizeof first_broken, format, list);
  pthread_mutex_unlock(&lock);
  va_end(list);
}

void fake_forgive(void) { n_broken = 0; }
int fake_broken(void) { return n_broken; }
const char* fake_first_broken(void) { return n_broken ? first_broken : "nothing"; }

void* fake_new(size_t size, const char* kind) {
  object_t* object = calloc(1, size);
  if (!object) abort();
  object->kind = kind;
  object->alive = true;
  pthread_mutex_lock(&lock);
  object->next = objects;
  objects = object;
  pthread_mutex_unlock(&lock);
  return object;
}

bool fake_is(const void* object, const char* kind, const char* function) {
  const object_t* o = object;
  if (!o)
    fake_break("%s: no %s", function, kind);
  else if (strcmp(o->kind, kind) != 0)
    fake_break("%s: a %s instead of a %s", function, o->kind, kind);
  else if (!o->alive)
    fake_break("%s: a %s that is gone", function, kind);
  else
    return true;
  return false;
}

static void free_object(object_t* o) {
  if (strcmp(o->kind, "error") == 0) free(((TRITONSERVER_Error*)o)->message);
  if (strcmp(o->kind, "message") == 0) free(((TRITONSERVER_Message*)o)->text);
  if (strcmp(o->kind, "request") == 0) fake_free_request((TRITONBACKEND_Request*)o);
  free(o);
}

// What lives as long as the backend and its models is not looked at here.
static bool outlives(const object_t* o) {
  static const char* const kinds[] = {"backend", "attribute", "model", "instance"};
  if (strcmp(o->kind, "message") == 0 && ((const TRITONSERVER_Message*)o)->is_lent) return true;
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
    if (strcmp(o->kind, kinds[i]) == 0) return true;
  return false;
}

void fake_reset(void) {
  object_t** at = &objects;
  while (*at) {
    object_t* o = *at;
    if (o->alive && outlives(o)) {
      at = &o->next;
      continue;
    }
    if (o->alive) fake_break("a %s was left over", o->kind);
    *at = o->next;
    free_object(o);
  }
  calls = failing_call = 0;
  failing_function = NULL;
}

// ---- faults
// -------------------------------------------------------------------------------------

int fake_fail_call(int n) {
  const int made = calls;
  calls = 0;
  failing_call = n;
  return made;
}

int fake_faults(void) {
  pthread_mutex_lock(&lock);
  const int n = n_faults;
  pthread_mutex_unlock(&lock);
  return n;
}

void fake_fail_function(const char* name, TRITONSERVER_Error_Code code) {
  failing_function = name;
  failing_code = code;
}

TRITONSERVER_Error* fake_fault(const char* function) {
  pthread_mutex_lock(&lock);
  const bool now = ++calls == failing_call;
  n_faults += now;
  pthread_mutex_unlock(&lock);
  if (now) return TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_INTERNAL, "a fault that was asked for");
  if (failing_function && strcmp(failing_function, function) == 0)
    return TRITONSERVER_ErrorNew(failing_code, "this function fails");
  return NULL;
}

void fake_set_version(uint32_t major, uint32_t minor) {
  version[0] = major;
  version[1] = minor;
}

TRITONSERVER_Error* TRITONBACKEND_ApiVersion(uint32_t* major, uint32_t* minor) {
  FAULT;
  *major = version[0];
  *minor = version[1];
  return NULL;
}

// ---- errors and log lines
// -----------------------------------------------------------------------

TRITONSERVER_Error* TRITONSERVER_ErrorNew(TRITONSERVER_Error_Code code, const char* message) {
  TRITONSERVER_Error* error = fake_new(sizeof *error, "error");
  if (code > TRITONSERVER_ERROR_CANCELLED) fake_break("an error has code %d", (int)code);
  if (!message || !*message) fake_break("an error has no message");
  error->code = code;
  error->message = strdup(message ? message : "");
  return error;
}

void TRITONSERVER_ErrorDelete(TRITONSERVER_Error* error) {
  if (!fake_is(error, "error", __func__)) return;
  error->object.alive = false;
  free(error->message);
  error->message = NULL;
}

const char* TRITONSERVER_ErrorMessage(TRITONSERVER_Error* error) {
  return fake_is(error, "error", __func__) ? error->message : "";
}

const char* fake_take_error(TRITONSERVER_Error* error) {
  static const char* const codes[] = {"UNKNOWN",     "INTERNAL",    "NOT_FOUND",      "INVALID_ARG",
                                      "UNAVAILABLE", "UNSUPPORTED", "ALREADY_EXISTS", "CANCELLED"};
  static _Thread_local char text[2048];
  if (!error) return NULL;
  snprintf(text, sizeof text, "%s: %s", codes[error->code], TRITONSERVER_ErrorMessage(error));
  TRITONSERVER_ErrorDelete(error);
  return text;
}

static char last_log[1024];

const char* fake_last_log(void) { return last_log; }

TRITONSERVER_Error* TRITONSERVER_LogMessage(TRITONSERVER_LogLevel level, const char* file, int line,
                                            const char* message) {
  FAULT;
  if (level > TRITONSERVER_LOG_VERBOSE || !file || line < 1 || !message)
    fake_break("a log line is not complete");
  pthread_mutex_lock(&lock);
  snprintf(last_log, sizeof last_log, "%s", message);
  pthread_mutex_unlock(&lock);
  return NULL;
}

// ---- messages
// -----------------------------------------------------------------------------------

TRITONSERVER_Message* fake_message(const char* text, bool is_lent) {
  TRITONSERVER_Message* message = fake_new(sizeof *message, "message");
  message->bytes = strlen(text);
  message->text = malloc(message->bytes + 1);  // no NUL behind it
  if (!message->text) abort();
  memcpy(message->text, text, message->bytes);
  message->is_lent = is_lent;
  return message;
}

TRITONSERVER_Error* TRITONSERVER_MessageNewFromSerializedJson(TRITONSERVER_Message** message,
                                                              const char* text, size_t bytes) {
  FAULT;
  json_t* parsed = json_loadb(text, bytes, 0, NULL);
  if (!parsed) return TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_INTERNAL, "not JSON");
  char* copy = strndup(text, bytes);
  *message = fake_message(copy, false);
  free(copy);
  json_decref(parsed);
  return NULL;
}

TRITONSERVER_Error* TRITONSERVER_MessageSerializeToJson(TRITONSERVER_Message* message,
                                                        const char** text, size_t* bytes) {
  CHECK(message, "message");
  *text = message->text;
  *bytes = message->bytes;
  return NULL;
}

// It fails after it has let go of the message: what failed is told, and nothing can be done.
TRITONSERVER_Error* TRITONSERVER_MessageDelete(TRITONSERVER_Message* message) {
  if (fake_is(message, "message", __func__)) {
    if (message->is_lent) fake_break("a message of the server's is deleted");
    message->object.alive = false;
    free(message->text);
    message->text = NULL;
  }
  FAULT;
  return NULL;
}
