// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace trireme::device::simt {

/// A stack of its own for every thread of a block, and the switch between them. One fiber runs at
/// a time, on the system's thread that drives it.
class Fiber {
 public:
  Fiber();
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  using Body = void (*)(void*);
  /// The next resume() calls body(argument) on this fiber's stack. Whatever the fiber did before
  /// is forgotten: its objects are not destroyed. `body` must not return: it ends with suspend().
  void prepare(Body body, void* argument);
  /// Goes to the fiber; comes back when it suspends.
  void resume();
  /// Called on the fiber: back to whoever resumed it.
  void suspend();

 private:
  static void enter();

  std::byte* memory_ = nullptr;
  void* stack_pointer_ = nullptr;
  void* caller_stack_pointer_ = nullptr;
  Body body_ = nullptr;
  void* argument_ = nullptr;
  // Marks by which the address sanitizer knows the two stacks.
  void* fiber_marks_ = nullptr;
  void* caller_marks_ = nullptr;
  const void* caller_bottom_ = nullptr;
  std::size_t caller_size_ = 0;
};

}  // namespace trireme::device::simt
