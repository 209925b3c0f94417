// SPDX-License-Identifier: Apache-2.0
// Arenas that NCCL allocates.
#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/log.hpp"
#include "trireme/comm/nccl_memory.hpp"
#include "trireme/device/passing_device.hpp"

#include "comm/nccl/abi.hpp"
#include "comm/nccl/registration.hpp"

#include <algorithm>
#include <map>
#include <mutex>
#include <utility>

namespace trireme::comm {
namespace nccl {
namespace {

struct Block {
  const Api* api = nullptr;
  device::Device* device = nullptr;
  std::size_t bytes = 0;
};

/// Owners of blocks: an arena frees memory by a function without an object.
std::mutex blocks_mutex;
std::map<const void*, Block>& blocks() {
  static std::map<const void*, Block> all;
  return all;
}

void give_back(std::byte* data, std::size_t) {
  Block block;
  {
    const std::lock_guard lock(blocks_mutex);
    block = blocks().at(data);
    blocks().erase(data);
  }
  // Order: unlike cudaFree, NCCL does not wait for kernels that still use the memory.
  block.device->synchronize();
  const auto result = block.api->free(data);
  if (result == Result::success) return;
  base::log::local::warning("comm", "ncclMemFree: {}", block.api->get_error_string(result));
}

class NcclMemoryDevice final : public device::PassingDevice {
 public:
  NcclMemoryDevice(device::Device& device, const NcclLibrary& library,
                   std::vector<device::Purpose> purposes)
      : PassingDevice(device), library_(library), purposes_(std::move(purposes)) {}

  device::Arena arena(device::Purpose purpose, std::size_t capacity_bytes) override {
    const bool is_shared =
        std::find(purposes_.begin(), purposes_.end(), purpose) != purposes_.end();
    if (!is_shared || capacity_bytes == 0) return inner().arena(purpose, capacity_bytes);
    // Arena of no bytes: makes the device the calling thread's.
    const auto current = inner().arena(device::Purpose::communication, 0);
    void* data = nullptr;
    const auto& api = *library_.api;
    const auto result = api.allocate(&data, capacity_bytes);
    if (result != Result::success || data == nullptr) {
      throw base::Error(
          base::ExitCode::topology,
          base::format("NCCL {} cannot take {} of the GPU's memory for {} ({}); use more ranks or "
                       "a smaller model, or comm.register_buffers = buffers",
                       nccl_version_text(library_.version), base::bytes_text(capacity_bytes),
                       device::name(purpose), api.get_error_string(result)));
    }
    const std::lock_guard lock(blocks_mutex);
    blocks()[data] = {&api, &inner(), capacity_bytes};
    return device::Arena::adopt(purpose, static_cast<std::byte*>(data), capacity_bytes, give_back);
  }

 private:
  NcclLibrary library_;
  std::vector<device::Purpose> purposes_;
};

}  // namespace

bool is_allocated_by_nccl(const void* data, std::size_t bytes) {
  const std::lock_guard lock(blocks_mutex);
  const auto found = blocks().find(data);
  return found != blocks().end() && found->second.bytes >= bytes;
}

}  // namespace nccl

std::unique_ptr<device::Device> with_nccl_memory(device::Device& device, const NcclLibrary& library,
                                                 std::vector<device::Purpose> purposes) {
  const auto& api = *library.api;
  if (device.is_host() || api.allocate == nullptr || api.free == nullptr ||
      api.register_window == nullptr || api.deregister_window == nullptr) {
    return nullptr;
  }
  return std::make_unique<nccl::NcclMemoryDevice>(device, library, std::move(purposes));
}

}  // namespace trireme::comm
