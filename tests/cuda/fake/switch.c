// A switch of stacks.
#include "switch.h"

#include <stdint.h>

#if defined(__x86_64__)
// System V calling convention: rbx, rbp, r12 to r15 are the caller's.
__asm__(
    ".text\n.hidden fake_switch\n.globl fake_switch\n.type fake_switch, @function\nfake_switch:\n"
    "push %rbp\npush %rbx\npush %r12\npush %r13\npush %r14\npush %r15\n"
    "mov %rsp,(%rdi)\nmov %rsi,%rsp\n"
    "pop %r15\npop %r14\npop %r13\npop %r12\npop %rbx\npop %rbp\nret\n"
    ".size fake_switch, .-fake_switch\n");

void* fake_prepare(char* top, void (*start)(void)) {
  union {
    void (*function)(void);
    void* at;
  } entry = {.function = start};
  void** sp = (void**)((uintptr_t)top & ~(uintptr_t)15);
  *--sp = NULL;  // no caller
  *--sp = entry.at;
  sp -= 6;
  memset(sp, 0, 6 * sizeof *sp);
  return sp;
}
#elif defined(__aarch64__)
// Procedure call standard: x19 to x30, the lower halves of v8 to v15.
__asm__(
    ".text\n.hidden fake_switch\n.globl fake_switch\n.type fake_switch, %function\nfake_switch:\n"
    "sub sp, sp, #160\n"
    "stp x19, x20, [sp, #0]\nstp x21, x22, [sp, #16]\nstp x23, x24, [sp, #32]\n"
    "stp x25, x26, [sp, #48]\nstp x27, x28, [sp, #64]\nstp x29, x30, [sp, #80]\n"
    "stp d8, d9, [sp, #96]\nstp d10, d11, [sp, #112]\nstp d12, d13, [sp, #128]\n"
    "stp d14, d15, [sp, #144]\n"
    "mov x2, sp\nstr x2, [x0]\nmov sp, x1\n"
    "ldp x19, x20, [sp, #0]\nldp x21, x22, [sp, #16]\nldp x23, x24, [sp, #32]\n"
    "ldp x25, x26, [sp, #48]\nldp x27, x28, [sp, #64]\nldp x29, x30, [sp, #80]\n"
    "ldp d8, d9, [sp, #96]\nldp d10, d11, [sp, #112]\nldp d12, d13, [sp, #128]\n"
    "ldp d14, d15, [sp, #144]\nadd sp, sp, #160\nret\n"
    ".size fake_switch, .-fake_switch\n");

void* fake_prepare(char* top, void (*start)(void)) {
  union {
    void (*function)(void);
    void* at;
  } entry = {.function = start};
  void** sp = (void**)((uintptr_t)top & ~(uintptr_t)15) - 20;
  memset(sp, 0, 160);
  sp[11] = entry.at;  // x30
  return sp;
}
#else
#error "fibers need a switch of stacks for this CPU"
#endif
