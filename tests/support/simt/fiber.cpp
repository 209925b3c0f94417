// SPDX-License-Identifier: Apache-2.0
#include "support/simt/fiber.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <new>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

// switch_stack(save, next): stores the callee-saved registers and the stack pointer in *save, and
// goes on where `next` was stored. x86-64, System V; the control words of the two floating-point
// units are the same on all fibers.
asm(R"(
.text
.globl trireme_simt_switch_stack
.type trireme_simt_switch_stack, @function
trireme_simt_switch_stack:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size trireme_simt_switch_stack, .-trireme_simt_switch_stack
)");

extern "C" void trireme_simt_switch_stack(void** save, void* next);

namespace trireme::device::simt {
namespace {

#if defined(__SANITIZE_ADDRESS__)
constexpr std::size_t stack_bytes = 512 * 1024;
void starting_switch(void** marks, const void* bottom, std::size_t size) {
  __sanitizer_start_switch_fiber(marks, bottom, size);
}
void finished_switch(void* marks, const void** bottom, std::size_t* size) {
  __sanitizer_finish_switch_fiber(marks, bottom, size);
}
void forget_marks(void* memory, std::size_t size) {
  __asan_unpoison_memory_region(memory, size);
}
#else
constexpr std::size_t stack_bytes = 64 * 1024;
void starting_switch(void**, const void*, std::size_t) {}
void finished_switch(void*, const void**, std::size_t*) {}
void forget_marks(void*, std::size_t) {}
#endif

constexpr std::size_t guard_bytes = 4096;

/// Whose stack is being entered for the first time.
Fiber* entering = nullptr;

}  // namespace

Fiber::Fiber() {
  void* block = ::mmap(nullptr, guard_bytes + stack_bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (block == MAP_FAILED) throw std::bad_alloc();
  ::mprotect(block, guard_bytes, PROT_NONE);
  memory_ = static_cast<std::byte*>(block);
}

Fiber::~Fiber() {
  forget_marks(memory_ + guard_bytes, stack_bytes);
  ::munmap(memory_, guard_bytes + stack_bytes);
}

void Fiber::prepare(Body body, void* argument) {
  body_ = body;
  argument_ = argument;
  fiber_marks_ = nullptr;
  forget_marks(memory_ + guard_bytes, stack_bytes);
  // Six registers and the address to go to; after its return the stack pointer is, as at every
  // function's entry, 8 away from a multiple of 16.
  auto* top = reinterpret_cast<void**>(memory_ + guard_bytes + stack_bytes) - 1;
  *--top = reinterpret_cast<void*>(&Fiber::enter);
  for (int saved = 0; saved < 6; ++saved) *--top = nullptr;
  stack_pointer_ = static_cast<void*>(top);
}

void Fiber::resume() {
  entering = this;
  starting_switch(&caller_marks_, memory_ + guard_bytes, stack_bytes);
  trireme_simt_switch_stack(&caller_stack_pointer_, stack_pointer_);
  finished_switch(caller_marks_, nullptr, nullptr);
}

void Fiber::suspend() {
  starting_switch(&fiber_marks_, caller_bottom_, caller_size_);
  trireme_simt_switch_stack(&stack_pointer_, caller_stack_pointer_);
  finished_switch(fiber_marks_, &caller_bottom_, &caller_size_);
}

void Fiber::enter() {
  auto* self = entering;
  finished_switch(nullptr, &self->caller_bottom_, &self->caller_size_);
  self->body_(self->argument_);
  __builtin_trap();
}

}  // namespace trireme::device::simt
