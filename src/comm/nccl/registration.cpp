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

/// Whoever waited for a collective may have waited in the order of streams alone.
void settle(const Setting& setting) {
  try {
    setting.device->synchronize();
  } catch (const std::exception& error) {
    base::log::local::warning("comm", "{}", error.what());
  }
}

class RegisteredBuffer final : public Registration {
 public:
  RegisteredBuffer(const Setting& setting, Communicator& communicator, void* handle)
      : setting_(setting), communicator_(communicator), handle_(handle) {}
  RegisteredBuffer(const RegisteredBuffer&) = delete;
  RegisteredBuffer& operator=(const RegisteredBuffer&) = delete;
  ~RegisteredBuffer() override {
    // What is aborted has forgotten it.
    if (communicator_.aborted()) return;
    settle(setting_);
    warn(setting_, "ncclCommDeregister",
         setting_.api().deregister_buffer(communicator_.raw(), handle_));
  }

 private:
  Setting setting_;
  Communicator& communicator_;
  void* handle_;
};

class RegisteredWindow final : public Registration {
 public:
  RegisteredWindow(const Setting& setting, Communicator& communicator)
      : setting_(setting), communicator_(communicator) {}
  RegisteredWindow(const RegisteredWindow&) = delete;
  RegisteredWindow& operator=(const RegisteredWindow&) = delete;
  ~RegisteredWindow() override {
    if (communicator_.aborted() || window_ == nullptr) return;
    settle(setting_);
    warn(setting_, "ncclCommWindowDeregister",
         setting_.api().deregister_window(communicator_.raw(), window_));
  }
  /// NCCL writes here when its call is done.
  Window** place() { return &window_; }

 private:
  Setting setting_;
  Communicator& communicator_;
  Window* window_ = nullptr;
};

bool takes_windows(const Setting& setting, const device::Tensor& memory) {
  const auto address = reinterpret_cast<std::uintptr_t>(memory.raw());
  return setting.registration == NcclRegistration::windows &&
         setting.api().register_window != nullptr && setting.api().deregister_window != nullptr &&
         address % window_alignment == 0 && is_allocated_by_nccl(memory.raw(), memory.byte_count());
}

}  // namespace

std::unique_ptr<Registration> register_memory(const Setting& setting, Communicator& communicator,
                                              const OperationLabel& label,
                                              const device::Tensor& memory) {
  if (setting.registration == NcclRegistration::none || memory.byte_count() == 0) return nullptr;
  const auto& api = setting.api();
  if (takes_windows(setting, memory)) {
    auto window = std::make_unique<RegisteredWindow>(setting, communicator);
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
  return std::make_unique<RegisteredBuffer>(setting, communicator, handle);
}

}  // namespace trireme::comm::nccl
