// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <mutex>
#include <tuple>
#include <type_traits>
#include <utility>

namespace trireme::device::simt {

/// Facts on a kernel that a launch by addresses alone needs.
struct KernelEntry {
  /// The kernel's own address, for its name.
  const void* code = nullptr;
  /// Copies the arguments from where the addresses point; the result is one thread's run.
  std::function<std::function<void()>(void** addresses)> bind;
};

/// The entry that kernel_address() once gave out; null: no kernel's address.
const KernelEntry* entry_of(const void* address);
/// Adds an entry; its address.
const void* add_entry(KernelEntry entry);

template <typename... Parameters, std::size_t... Indices>
std::function<void()> bind_arguments(void (*kernel)(Parameters...), void** addresses,
                                     std::index_sequence<Indices...>) {
  using Arguments = std::tuple<std::remove_cv_t<Parameters>...>;
  return [kernel, arguments = Arguments(*static_cast<const std::remove_cv_t<Parameters>*>(
                      addresses[Indices])...)] { std::apply(kernel, arguments); };
}

/// Address that stands for a kernel in the runtime's launches, which can be told nothing else.
template <typename... Parameters>
const void* kernel_address(void (*kernel)(Parameters...)) {
  static std::mutex mutex;
  static std::map<void (*)(Parameters...), const void*> known;
  const std::lock_guard<std::mutex> lock(mutex);
  auto& address = known[kernel];
  if (address == nullptr) {
    address = add_entry({reinterpret_cast<const void*>(kernel), [kernel](void** addresses) {
                           return bind_arguments(kernel, addresses,
                                                 std::index_sequence_for<Parameters...>());
                         }});
  }
  return address;
}

}  // namespace trireme::device::simt
