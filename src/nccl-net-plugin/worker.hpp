// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ucp/api/ucp.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

/// UCX as this plugin uses it: every call of UCP stands in worker.cpp, once.
namespace trireme::nccl_net {

/// One transfer under way. It must stay where it is until it is done.
struct Operation {
  bool done = true;
  ucs_status_t status = UCS_OK;
  std::size_t bytes = 0;
  void* handle = nullptr;  ///< UCP's request while it is not done
};

/// Throws base::Error with what failed and UCX's reason: ExitCode::peer where the peer is gone,
/// ExitCode::usage where a message was longer than its buffer, else ExitCode::internal.
[[noreturn]] void throw_ucx(const char* doing, ucs_status_t status);

/// Memory that NICs may read and write. Ranges that lie in one that is registered share it.
struct Registration {
  std::byte* begin = nullptr;
  std::size_t size = 0;
  int type = 0;  ///< pointer_host or pointer_cuda
  ucp_mem_h memory = nullptr;
  ucp_rkey_h own_key = nullptr;  ///< for reads by this process itself, made when first needed
  int users = 0;
};

/// The way to one peer.
struct Endpoint {
  ucp_ep_h handle = nullptr;
};

/// One device, opened. NCCL's threads share it: whoever calls a member holds `mutex`.
class Worker {
 public:
  /// settings: of UCX, by name without "UCX_"; they win over the environment.
  explicit Worker(const std::vector<std::pair<std::string, std::string>>& settings);
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  std::mutex& mutex() { return mutex_; }
  bool moves_cuda_memory() const { return moves_cuda_memory_; }
  /// Tells connections that end here apart.
  std::uint32_t next_connection() { return ++connections_; }

  std::vector<std::byte> address() const;
  void connect(const std::vector<std::byte>& address, Endpoint& endpoint);
  /// Waits for what was sent, at most this long.
  void close(Endpoint& endpoint, double seconds);

  /// What carries the data of an endpoint that has moved some: "rc_mlx5/mlx5_0:1", several with
  /// commas; empty where UCX does not say.
  std::string way_of(const Endpoint& endpoint) const;

  void send(const Endpoint& endpoint, const void* data, std::size_t size, std::uint64_t tag,
            Operation& operation);
  void receive(void* data, std::size_t size, std::uint64_t tag, Operation& operation);
  /// Reads one byte through the NIC, behind whatever it has written before.
  void read_back(const void* data, Registration& registration, Operation& operation);
  void cancel(Operation& operation);
  /// Lets UCX work; true when something happened.
  bool progress() { return ucp_worker_progress(worker_) != 0; }

  Registration* register_memory(void* data, std::size_t size, int type);
  void release(Registration* registration);
  std::size_t registration_count() const { return registrations_.size(); }

 private:
  void start(ucs_status_ptr_t outcome, Operation& operation);
  void unmap(Registration& registration);

  std::mutex mutex_;
  ucp_context_h context_ = nullptr;
  ucp_worker_h worker_ = nullptr;
  bool moves_cuda_memory_ = false;
  std::uint32_t connections_ = 0;
  Endpoint self_;
  std::byte sink_{};
  std::multimap<std::byte*, Registration> registrations_;  ///< by begin
};

}  // namespace trireme::nccl_net
