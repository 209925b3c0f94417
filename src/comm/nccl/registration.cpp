// SPDX-License-Identifier: Apache-2.0
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

/// Polls an event for 50 ms: an idle GPU needs a moment to report that it is.
bool passes_soon(device::Event event) {
  constexpr int looks = 50;
  for (int look = 0; look < looks; ++look) {
    if (event.passed()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return false;
}

/// Ends the work of a stream after a failure, when no peer may be waited for.
void end_pending_work(CommStream& comm_stream) {
  comm_stream.enqueued.give_up();
  if (comm_stream.communicator.aborted()) return;
  if (comm_stream.next_to_enqueue != comm_stream.sequence_count ||
      !passes_soon(comm_stream.stream->record()))
    comm_stream.communicator.abort();
}

/// Waits for the stream's work; true if the communicator is still there to deregister memory from.
bool settle(CommStream& comm_stream) {
  try {
    if (std::uncaught_exceptions() > 0) {
      end_pending_work(comm_stream);
    } else {
      // The stream may lag behind: its last results need not have been waited for.
      comm_stream.stream->record().wait();
    }
  } catch (const std::exception& error) {
    base::log::local::warning("comm", "{}", error.what());
    if (std::uncaught_exceptions() > 0) comm_stream.communicator.abort();
  }
  return !comm_stream.communicator.aborted();
}

void forget_buffer(const Setting& setting, CommStream& comm_stream, void* handle) {
  if (!settle(comm_stream)) return;
  warn(setting, "ncclCommDeregister",
       setting.api().deregister_buffer(comm_stream.communicator.raw(), handle));
}

class RegisteredBuffer final : public Registration {
 public:
  RegisteredBuffer(const Setting& setting, CommStream& comm_stream, void* handle)
      : setting_(setting), comm_stream_(comm_stream), handle_(handle) {}
  RegisteredBuffer(const RegisteredBuffer&) = delete;
  RegisteredBuffer& operator=(const RegisteredBuffer&) = delete;
  ~RegisteredBuffer() override { forget_buffer(setting_, comm_stream_, handle_); }

 private:
  Setting setting_;
  CommStream& comm_stream_;
  void* handle_;
};

class RegisteredWindow final : public Registration {
 public:
  RegisteredWindow(const Setting& setting, CommStream& comm_stream)
      : setting_(setting), comm_stream_(comm_stream) {}
  RegisteredWindow(const RegisteredWindow&) = delete;
  RegisteredWindow& operator=(const RegisteredWindow&) = delete;
  ~RegisteredWindow() override {
    if (window_ == nullptr || !settle(comm_stream_)) return;
    warn(setting_, "ncclCommWindowDeregister",
         setting_.api().deregister_window(comm_stream_.communicator.raw(), window_));
  }
  /// Address that NCCL writes when its call is done.
  Window** place() { return &window_; }

 private:
  Setting setting_;
  CommStream& comm_stream_;
  Window* window_ = nullptr;
};

bool may_be_window(const device::Tensor& memory) {
  const auto address = reinterpret_cast<std::uintptr_t>(memory.raw());
  return memory.byte_count() > 0 && address % window_alignment == 0 &&
         is_allocated_by_nccl(memory.raw(), memory.byte_count());
}

/// Collective over the members, all of which have the same library. True if all can register a
/// window: one of another size, or used at other offsets, would corrupt memory without an error.
bool agree_on_window(const Setting& setting, const RegistrationRequest& request) {
  if (setting.registration != NcclRegistration::windows || request.offsets == Offsets::own ||
      setting.api().register_window == nullptr || setting.api().deregister_window == nullptr) {
    return false;
  }
  constexpr std::int64_t words = sizeof(std::uint64_t) / sizeof(std::int32_t);
  std::uint64_t mine = may_be_window(request.memory) ? request.memory.byte_count() : 0;
  std::vector<std::uint64_t> all(static_cast<std::size_t>(request.host.size()));
  request.host.all_gather({&mine, device::DType::i32, {words}},
                          {all.data(), device::DType::i32, {words * request.host.size()}});
  return mine > 0 && std::all_of(all.begin(), all.end(), [&](auto size) { return size == mine; });
}

}  // namespace

bool takes_buffers(const Setting& setting, const device::Tensor& memory) {
  return setting.registration != NcclRegistration::none && memory.byte_count() > 0 &&
         setting.api().register_buffer != nullptr && setting.api().deregister_buffer != nullptr;
}

void StreamMemory::add(const device::Tensor& memory) {
  entries_.push_back(Entry{memory});
}

bool StreamMemory::register_next(const Setting& setting, Communicator& communicator) {
  const auto next =
      std::find_if(entries_.begin(), entries_.end(), [](auto& each) { return !each.registered; });
  if (next == entries_.end()) return false;
  next->registered = true;
  communicator.note(setting.api().register_buffer(communicator.raw(), next->memory.raw(),
                                                  next->memory.byte_count(), &next->handle),
                    "ncclCommRegister");
  return true;
}

void StreamMemory::forget(const Setting& setting, CommStream& comm_stream,
                          const device::Tensor& memory) {
  const auto found = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& each) {
    return each.memory.raw() == memory.raw();
  });
  if (found == entries_.end()) return;
  // NCCL returns no handle for memory that it would not use.
  if (found->handle != nullptr) forget_buffer(setting, comm_stream, found->handle);
  entries_.erase(found);
}

std::unique_ptr<Registration> register_memory(const Setting& setting, CommStream& comm_stream,
                                              const OperationLabel& label,
                                              const RegistrationRequest& request) {
  const auto& memory = request.memory;
  const auto& api = setting.api();
  auto& communicator = comm_stream.communicator;
  if (agree_on_window(setting, request)) {
    auto window = std::make_unique<RegisteredWindow>(setting, comm_stream);
    communicator.note(api.register_window(communicator.raw(), memory.raw(), memory.byte_count(),
                                          window->place(), symmetric_window),
                      "ncclCommWindowRegister");
    await_init(communicator, label, setting);
    return window;
  }
  // NCCL allocates multicast memory: GPUs whose sums are taken in the switch address all members'
  // parts by one offset.
  const bool multicast = is_allocated_by_nccl(memory.raw(), memory.byte_count());
  if (!takes_buffers(setting, memory) || (multicast && request.offsets == Offsets::own)) {
    return nullptr;
  }
  void* handle = nullptr;
  communicator.note(
      api.register_buffer(communicator.raw(), memory.raw(), memory.byte_count(), &handle),
      "ncclCommRegister");
  await_init(communicator, label, setting);
  // NCCL returns no handle for memory that it would not use.
  if (handle == nullptr) return nullptr;
  return std::make_unique<RegisteredBuffer>(setting, comm_stream, handle);
}

}  // namespace trireme::comm::nccl
