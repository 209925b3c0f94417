// SPDX-License-Identifier: Apache-2.0
#include "support/fake_nccl/fake_comm.hpp"
#include "support/fake_nccl/fake_slots.hpp"

#include <stdexcept>
#include <utility>

namespace trireme::testing {

using comm::nccl::Api;
using comm::nccl::Comm;
using comm::nccl::Config;
using comm::nccl::DataType;
using comm::nccl::Reduction;
using comm::nccl::Result;
using comm::nccl::UniqueId;
using comm::nccl::Window;
using Part = FakeComm::Part;

/// The functions of a table.
template <std::size_t slot>
struct FakeCalls {
  static FakeNccl* current() { return fakes.at(slot); }
  static bool refuses(const char* call) { return current()->faults.refused_call == call; }
  static Result refusal() { return current()->faults.refusal; }
  static Comm* raw(FakeComm* comm) { return reinterpret_cast<Comm*>(comm); }

  static Result version(int* version) {
    *version = 22899;
    return Result::success;
  }
  static Result unique_id(UniqueId* id) {
    return refuses("ncclGetUniqueId") ? refusal() : current()->make_id(id);
  }
  static Result init(Comm** comm, int ranks, UniqueId id, int rank, Config* config) {
    if (config->blocking != 0) throw std::logic_error("a communicator whose calls block");
    if (refuses("ncclCommInitRankConfig")) return refusal();
    *comm = raw(current()->begin_comm(ranks, rank, id));
    return Result::in_progress;
  }
  static Result init_scalable(Comm** comm, int ranks, int rank, int ids, UniqueId* all,
                              Config* config) {
    for (int id = 0; id < ids; ++id) {
      if (words_of(all[id]).maker < 0) throw std::logic_error("one of several ids is none");
    }
    current()->ids_taken = ids;
    return init(comm, ranks, all[0], rank, config);
  }
  static Result split(Comm* comm, int color, int key, Comm** part, Config* config) {
    if (config->blocking != 0) throw std::logic_error("a part whose calls block");
    if (refuses("ncclCommSplit")) return refusal();
    *part = raw(current()->split(*current()->find(comm), color, key));
    return Result::in_progress;
  }
  static Result finalize(Comm* comm) {
    current()->find(comm)->expect_no_registrations();
    current()->find(comm)->begin("ncclCommFinalize", nullptr);
    return Result::in_progress;
  }
  static Result destroy(Comm* comm) {
    current()->remove(*current()->find(comm));
    ++current()->ended_in_order;
    return Result::success;
  }
  static Result abort(Comm* comm) {
    const auto found = current()->find(comm);
    found->abort();
    current()->remove(*found);
    ++current()->aborted;
    return Result::success;
  }
  static Result async_error(Comm* comm, Result* error) {
    current()->listen();
    *error = current()->find(comm)->look();
    return Result::success;
  }
  static const char* error_string(Result result) {
    return result == Result::remote_error ? "remote process exited or there was a network error"
                                          : "internal error";
  }
  static const char* last_error(Comm*) { return "told by the stand-in"; }

  static Result register_buffer(Comm* comm, void* data, std::size_t size, void** handle) {
    if (refuses("ncclCommRegister")) return refusal();
    *handle = current()->find(comm)->add_registration(data, size);
    ++current()->buffers_registered;
    return Result::success;
  }
  static Result deregister_buffer(Comm* comm, void* handle) {
    current()->find(comm)->remove_registration(handle);
    return Result::success;
  }
  static Result allocate(void** data, std::size_t size) {
    if (refuses("ncclMemAlloc")) return refusal();
    *data = current()->allocate(size);
    return Result::success;
  }
  static Result free(void* data) {
    current()->release(data);
    return Result::success;
  }
  /// Done, and its window there, after some looks.
  static Result register_window(Comm* comm, void* data, std::size_t size, Window** window,
                                int flags) {
    if (refuses("ncclCommWindowRegister")) return refusal();
    if (flags != comm::nccl::symmetric_window) throw std::logic_error("a window of its own kind");
    if (current()->allocations_.count(data) == 0) {
      throw std::logic_error("a window of memory that NCCL has not allocated");
    }
    const auto found = current()->find(comm);
    auto* const handle = found->add_registration(data, size);
    found->begin("ncclCommWindowRegister", [window, handle] {
      *window = static_cast<Window*>(handle);
      return true;
    });
    ++current()->windows_registered;
    return Result::in_progress;
  }
  static Result deregister_window(Comm* comm, Window* window) {
    current()->find(comm)->remove_registration(window);
    return Result::success;
  }

  /// Calls since the group's start.
  struct Grouped {
    bool open = false;
    std::vector<Part> parts;
    Comm* comm = nullptr;
    void* stream = nullptr;
  };
  static Grouped& grouped() {
    static Grouped calls;
    return calls;
  }
  static Result group_start() {
    grouped() = {};
    grouped().open = true;
    return Result::success;
  }
  static Result group_end() {
    auto calls = std::exchange(grouped(), {});
    if (!calls.open) throw std::logic_error("ncclGroupEnd without a start");
    return calls.parts.empty()
               ? Result::success
               : issue("ncclGroupEnd", std::move(calls.parts), calls.comm, calls.stream);
  }
  static Result issue(const char* call, std::vector<Part> parts, Comm* comm, void* stream) {
    if (refuses(call)) return refusal();
    current()->find(comm)->issue(call, std::move(parts), stream);
    return Result::in_progress;
  }
  static Result take(const char* call, const Part& part, Comm* comm, void* stream) {
    ++current()->calls[call];
    if (!grouped().open) return issue(call, {part}, comm, stream);
    if (refuses(call)) return refusal();
    if (grouped().comm != nullptr && (grouped().comm != comm || grouped().stream != stream)) {
      throw std::logic_error("a group of calls of several communicators or streams");
    }
    if (grouped().parts.size() == current()->faults.calls_per_group) {
      throw std::logic_error("a group of more calls than NCCL takes");
    }
    grouped().parts.push_back(part);
    grouped().comm = comm;
    grouped().stream = stream;
    return Result::success;
  }
  static std::int64_t elements(std::size_t count) { return static_cast<std::int64_t>(count); }

  // NOLINTBEGIN(readability-function-size): NCCL says how many parameters its functions have
  static Result all_reduce(const void* from, void* to, std::size_t count, DataType type,
                           Reduction op, Comm* comm, void* stream) {
    return take("ncclAllReduce", {Part::Kind::all_reduce, from, to, elements(count), type, op, 0},
                comm, stream);
  }
  static Result reduce_scatter(const void* from, void* to, std::size_t count, DataType type,
                               Reduction op, Comm* comm, void* stream) {
    const auto all = elements(count) * current()->find(comm)->size();
    return take("ncclReduceScatter", {Part::Kind::reduce_scatter, from, to, all, type, op, 0}, comm,
                stream);
  }
  static Result reduce(const void* from, void* to, std::size_t count, DataType type, Reduction op,
                       int root, Comm* comm, void* stream) {
    return take("ncclReduce", {Part::Kind::reduce, from, to, elements(count), type, op, root}, comm,
                stream);
  }
  static Result all_gather(const void* from, void* to, std::size_t count, DataType type, Comm* comm,
                           void* stream) {
    return take("ncclAllGather",
                {Part::Kind::all_gather, from, to, elements(count), type, Reduction::sum, 0}, comm,
                stream);
  }
  static Result broadcast(const void* from, void* to, std::size_t count, DataType type, int root,
                          Comm* comm, void* stream) {
    return take("ncclBroadcast",
                {Part::Kind::broadcast, from, to, elements(count), type, Reduction::sum, root},
                comm, stream);
  }
  // NOLINTEND(readability-function-size)
  static Result send(const void* from, std::size_t count, DataType type, int peer, Comm* comm,
                     void* stream) {
    return take("ncclSend",
                {Part::Kind::send, from, nullptr, elements(count), type, Reduction::sum, peer},
                comm, stream);
  }
  static Result receive(void* to, std::size_t count, DataType type, int peer, Comm* comm,
                        void* stream) {
    return take("ncclRecv",
                {Part::Kind::receive, nullptr, to, elements(count), type, Reduction::sum, peer},
                comm, stream);
  }
};

namespace {

template <std::size_t slot>
Api table() {
  using C = FakeCalls<slot>;
  Api api;
  api.get_version = C::version;
  api.get_unique_id = C::unique_id;
  api.init_rank = C::init;
  api.init_rank_scalable = C::init_scalable;
  api.split = C::split;
  api.finalize = C::finalize;
  api.destroy = C::destroy;
  api.abort = C::abort;
  api.get_async_error = C::async_error;
  api.get_error_string = C::error_string;
  api.get_last_error = C::last_error;
  api.group_start = C::group_start;
  api.group_end = C::group_end;
  api.all_reduce = C::all_reduce;
  api.reduce_scatter = C::reduce_scatter;
  api.all_gather = C::all_gather;
  api.reduce = C::reduce;
  api.broadcast = C::broadcast;
  api.send = C::send;
  api.receive = C::receive;
  api.register_buffer = C::register_buffer;
  api.deregister_buffer = C::deregister_buffer;
  api.allocate = C::allocate;
  api.free = C::free;
  api.register_window = C::register_window;
  api.deregister_window = C::deregister_window;
  return api;
}

template <std::size_t... all>
std::array<Api, fake_slots> tables(std::index_sequence<all...>) {
  return {table<all>()...};
}

}  // namespace

comm::NcclLibrary FakeNccl::library() const {
  static const auto all = tables(std::make_index_sequence<fake_slots>{});
  return {&all.at(slot_), 22899, "a stand-in"};
}

}  // namespace trireme::testing
