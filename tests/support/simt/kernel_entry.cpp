// SPDX-License-Identifier: Apache-2.0
#include "support/simt/kernel_entry.hpp"

#include <memory>
#include <vector>

namespace trireme::device::simt {
namespace {

struct Entries {
  std::mutex mutex;
  std::map<const void*, std::unique_ptr<KernelEntry>> all;
};
Entries& entries() {
  // Whatever launches while the process ends still finds it.
  static auto* const known = new Entries;
  return *known;
}

}  // namespace

const KernelEntry* entry_of(const void* address) {
  auto& known = entries();
  const std::lock_guard<std::mutex> lock(known.mutex);
  const auto place = known.all.find(address);
  return place == known.all.end() ? nullptr : place->second.get();
}

const void* add_entry(KernelEntry entry) {
  auto& known = entries();
  const std::lock_guard<std::mutex> lock(known.mutex);
  auto owner = std::make_unique<KernelEntry>(std::move(entry));
  const void* address = owner.get();
  known.all.emplace(address, std::move(owner));
  return address;
}

}  // namespace trireme::device::simt
