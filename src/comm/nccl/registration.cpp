#include "comm/nccl/registration.hpp"

#include "trireme/base/log.hpp"

#include "comm/nccl/types.hpp"

#include <algorithm>
#include <chrono>
#include <exception>
#include <thread>
#include <vector>

namespace trireme::comm::nccl {
namespace {

void warn(const Setting& setting, const char* call, Result result) {
  if (result == Result::success || result == Result::in_progress) return;
  base::log::local::warning("comm",
                            "{}: {} (memory stays known to NCCL until its communicator ends)", call,
                            setting.api().get_error_string(result));
}

/// A card needs a moment to tell that it has nothing to do.
bool passes_soon(device::Event event) {
  constexpr int looks = 50;
  for (int look = 0; look < looks; ++look) {
    if (event.passed()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return false;
}

/// After a failure nobody may be waited for: what is under way ends with its communicator.
void end_what_is_under_way(Lane& lane) {
  lane.joined.give_up();
  if (lane.communicator.aborted()) return;
  if (lane.turn != lane.tickets || !passes_soon(lane.stream->record())) lane.communicator.abort();
}

/// Whether the communicator still knows its memory, which none of its operations needs any more.
bool settle(Lane& lane) {
  try {
    if (std::uncaught_exceptions() > 0) {
      end_what_is_under_way(lane);
    } else {
      // The device itself may not have followed: nobody may ask for the last results.
      lane.stream->record().wait();
    }
  } catch (const std::exception& error) {
    base::log::local::warning("comm", "{}", error.what());
    if (std::uncaught_exceptions() > 0) lane.communicator.abort();
  }
  return !lane.communicator.aborted();
}

void forget_buffer(const Setting& setting, Lane& lane, void* handle) {
  if (!settle(lane)) return;
  warn(setting, "ncclCommDeregister",
       setting.api().deregister_buffer(lane.communicator.raw(), handle));
}

class RegisteredBuffer final : public Registration {
 public:
  RegisteredBuffer(const Setting& setting, Lane& lane, void* handle)
      : setting_(setting), lane_(lane), handle_(handle) {}
  RegisteredBuffer(const RegisteredBuffer&) = delete;
  RegisteredBuffer& operator=(const RegisteredBuffer&) = delete;
  ~RegisteredBuffer() override { forget_buffer(setting_, lane_, handle_); }

 private:
  Setting setting_;
  Lane& lane_;
  void* handle_;
};

class RegisteredWindow final : public Registration {
 public:
  RegisteredWindow(const Setting& setting, Lane& lane) : setting_(setting), lane_(lane) {}
  RegisteredWindow(const RegisteredWindow&) = delete;
  RegisteredWindow& operator=(const RegisteredWindow&) = delete;
  ~RegisteredWindow() override {
    if (window_ == nullptr || !settle(lane_)) return;
    warn(setting_, "ncclCommWindowDeregister",
         setting_.api().deregister_window(lane_.communicator.raw(), window_));
  }
  /// NCCL writes here when its call is done.
  Window** place() { return &window_; }

 private:
  Setting setting_;
  Lane& lane_;
  Window* window_ = nullptr;
};

bool may_be_window(const device::Tensor& memory) {
  const auto address = reinterpret_cast<std::uintptr_t>(memory.raw());
  return memory.byte_count() > 0 && address % window_alignment == 0 &&
         is_allocated_by_nccl(memory.raw(), memory.byte_count());
}

/// Collective over the members, all of which have the same library. A window of one size here and
/// another there, or used at other offsets, would mix up memory without a word.
bool agree_on_window(const Setting& setting, const Shared& shared) {
  if (setting.registration != NcclRegistration::windows || shared.offsets == Offsets::own ||
      setting.api().register_window == nullptr || setting.api().deregister_window == nullptr) {
    return false;
  }
  constexpr std::int64_t words = sizeof(std::uint64_t) / sizeof(std::int32_t);
  std::uint64_t mine = may_be_window(shared.memory) ? shared.memory.byte_count() : 0;
  std::vector<std::uint64_t> all(static_cast<std::size_t>(shared.host.size()));
  shared.host.all_gather({&mine, device::DType::i32, {words}},
                         {all.data(), device::DType::i32, {words * shared.host.size()}});
  return mine > 0 && std::all_of(all.begin(), all.end(), [&](auto size) { return size == mine; });
}

}  // namespace

bool takes_buffers(const Setting& setting, const device::Tensor& memory) {
  return setting.registration != NcclRegistration::none && memory.byte_count() > 0 &&
         setting.api().register_buffer != nullptr && setting.api().deregister_buffer != nullptr;
}

void LaneMemory::add(const device::Tensor& memory) {
  all_.push_back(Known{memory});
}

bool LaneMemory::tell_next(const Setting& setting, Communicator& communicator) {
  const auto next = std::find_if(all_.begin(), all_.end(), [](auto& each) { return !each.told; });
  if (next == all_.end()) return false;
  next->told = true;
  communicator.note(setting.api().register_buffer(communicator.raw(), next->memory.raw(),
                                                  next->memory.byte_count(), &next->handle),
                    "ncclCommRegister");
  return true;
}

void LaneMemory::forget(const Setting& setting, Lane& lane, const device::Tensor& memory) {
  const auto found = std::find_if(all_.begin(), all_.end(), [&](const Known& each) {
    return each.memory.raw() == memory.raw();
  });
  if (found == all_.end()) return;
  // NCCL takes none where it would not use it.
  if (found->handle != nullptr) forget_buffer(setting, lane, found->handle);
  all_.erase(found);
}

std::unique_ptr<Registration> register_memory(const Setting& setting, Lane& lane,
                                              const OperationLabel& label, const Shared& shared) {
  const auto& memory = shared.memory;
  const auto& api = setting.api();
  auto& communicator = lane.communicator;
  if (agree_on_window(setting, shared)) {
    auto window = std::make_unique<RegisteredWindow>(setting, lane);
    communicator.note(api.register_window(communicator.raw(), memory.raw(), memory.byte_count(),
                                          window->place(), symmetric_window),
                      "ncclCommWindowRegister");
    await_birth(communicator, label, setting);
    return window;
  }
  // What NCCL has allocated is multicast memory: cards that add up in the switch address all
  // members' parts by one offset.
  const bool multicast = is_allocated_by_nccl(memory.raw(), memory.byte_count());
  if (!takes_buffers(setting, memory) || (multicast && shared.offsets == Offsets::own)) {
    return nullptr;
  }
  void* handle = nullptr;
  communicator.note(
      api.register_buffer(communicator.raw(), memory.raw(), memory.byte_count(), &handle),
      "ncclCommRegister");
  await_birth(communicator, label, setting);
  // NCCL takes none where it would not use it.
  if (handle == nullptr) return nullptr;
  return std::make_unique<RegisteredBuffer>(setting, lane, handle);
}

}  // namespace trireme::comm::nccl
