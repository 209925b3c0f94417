#include "comm/nccl/registration.hpp"

#include "trireme/base/log.hpp"

#include "comm/nccl/types.hpp"

#include <exception>

namespace trireme::comm::nccl {
namespace {

void warn(const Setting& setting, const char* call, Result result) {
  if (result == Result::success || result == Result::in_progress) return;
  base::log::local::warning("comm",
                            "{}: {} (memory stays known to NCCL until its communicator ends)", call,
                            setting.api().get_error_string(result));
}

/// Whether the communicator still knows the memory, which none of its operations needs any more.
bool settle(Lane& lane) {
  try {
    if (std::uncaught_exceptions() > 0) {
      lane.joined.give_up();
    } else {
      // The device itself may not have followed: nobody may ask for the last results.
      lane.stream->record().wait();
    }
  } catch (const std::exception& error) {
    base::log::local::warning("comm", "{}", error.what());
  }
  return !lane.communicator.aborted();
}

class RegisteredBuffer final : public Registration {
 public:
  RegisteredBuffer(const Setting& setting, Lane& lane, void* handle)
      : setting_(setting), lane_(lane), handle_(handle) {}
  RegisteredBuffer(const RegisteredBuffer&) = delete;
  RegisteredBuffer& operator=(const RegisteredBuffer&) = delete;
  ~RegisteredBuffer() override {
    if (!settle(lane_)) return;
    warn(setting_, "ncclCommDeregister",
         setting_.api().deregister_buffer(lane_.communicator.raw(), handle_));
  }

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

bool takes_windows(const Setting& setting, const device::Tensor& memory) {
  const auto address = reinterpret_cast<std::uintptr_t>(memory.raw());
  return setting.registration == NcclRegistration::windows &&
         setting.api().register_window != nullptr && setting.api().deregister_window != nullptr &&
         address % window_alignment == 0 && is_allocated_by_nccl(memory.raw(), memory.byte_count());
}

}  // namespace

std::unique_ptr<Registration> register_memory(const Setting& setting, Lane& lane,
                                              const OperationLabel& label,
                                              const device::Tensor& memory) {
  if (setting.registration == NcclRegistration::none || memory.byte_count() == 0) return nullptr;
  const auto& api = setting.api();
  auto& communicator = lane.communicator;
  if (takes_windows(setting, memory)) {
    auto window = std::make_unique<RegisteredWindow>(setting, lane);
    communicator.note(api.register_window(communicator.raw(), memory.raw(), memory.byte_count(),
                                          window->place(), symmetric_window),
                      "ncclCommWindowRegister");
    await_birth(communicator, label, setting);
    return window;
  }
  if (api.register_buffer == nullptr || api.deregister_buffer == nullptr) return nullptr;
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
