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

/// UCX as this plugin uses it: every function of UCP is called in worker.cpp only, once.
namespace trireme::nccl_net {

/// One transfer under way. Must not move until it is done.
struct Operation {
  bool done = true;
  ucs_status_t status = UCS_OK;
  std::size_t bytes = 0;
  void* handle = nullptr;  ///< UCP's request while it is not done
};

/// Throws base::Error with the failed action and UCX's reason: ExitCode::peer where the peer is
/// gone, ExitCode::usage where a message was longer than its buffer, else ExitCode::internal.
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

/// UCX endpoint to one peer.
struct Endpoint {
  ucp_ep_h handle = nullptr;
};

/// One opened device. NCCL's threads share it: callers of a member hold `mutex`.
class Worker {
 public:
  /// settings: of UCX, by name without "UCX_"; they take precedence over the environment.
  explicit Worker(const std::vector<std::pair<std::string, std::string>>& settings);
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  std::mutex& mutex() { return mutex_; }
  bool moves_cuda_memory() const { return moves_cuda_memory_; }
  /// Next number of a connection that ends here; the numbers distinguish them.
  std::uint32_t next_connection() { return ++connections_; }

  std::vector<std::byte> address() const;
  void connect(const std::vector<std::byte>& address, Endpoint& endpoint);
  /// Waits until sent data are flushed, at most this long.
  void close(Endpoint& endpoint, double seconds);

  /// Transport of an endpoint that has moved data: "rc_mlx5/mlx5_0:1", several with commas; empty
  /// where UCX does not report it.
  std::string way_of(const Endpoint& endpoint) const;

  void send(const Endpoint& endpoint, const void* data, std::size_t size, std::uint64_t tag,
            Operation& operation);
  void receive(void* data, std::size_t size, std::uint64_t tag, Operation& operation);
  /// Reads one byte through the NIC, ordered after all data that it has written before.
  void read_back(const void* data, Registration& registration, Operation& operation);
  void cancel(Operation& operation);
  /// Lets UCX make progress; true when an event was processed.
  bool progress() { return ucp_worker_progress(worker_) != 0; }

  Registration* register_memory(void* data, std::size_t size, int type);
  void release(Registration* registration);

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
