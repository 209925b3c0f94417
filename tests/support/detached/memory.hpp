// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/device/arena.hpp"

#include <cstddef>
#include <functional>
#include <stdexcept>

namespace trireme::testing {

/// What was done with memory that a GPU would not allow; the text names operation and memory.
class DetachedFault : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

/// Memory like a GPU's: addresses that the host cannot follow, and behind each of them memory for
/// those who compute in the GPU's stead. Fresh memory is full of NaN (-1 as whole numbers).
///
/// A host that reads or writes there all the same dies of SIGSEGV at once, after a line on stderr:
/// "the host touched byte 12 of 4096 of 'gradients', which lie on a device …".
namespace detached {

/// `before_release` is called before the memory goes.
device::Arena take(device::Purpose purpose, std::size_t capacity_bytes,
                   std::function<void()> before_release);

/// The same tensor where it can be reached; an empty one stays empty. Throws DetachedFault when it
/// is the host's own, or leaves its arena.
device::Tensor behind(const device::Tensor& tensor, const char* operation, const char* operand);

/// Whether the address is one that the host cannot follow.
bool owns(const void* address);

}  // namespace detached
}  // namespace trireme::testing
