// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "abi.hpp"
#include "sockets.hpp"
#include "worker.hpp"

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace trireme::nccl_net {

class Connection;

inline constexpr int max_grouped_receives = 8;

/// Handle that NCCL holds of transfers under way: one send, a group of receives, or a flush.
struct Request {
  Connection* connection = nullptr;
  int parts = 0;
  bool in_use = false;
  std::array<Operation, max_grouped_receives> operations;
};

/// One direction between two processes: data through UCX, and a TCP socket that carries nothing but
/// a goodbye; when it breaks before, the peer is dead. UCX reports to a receiver only the end of a
/// message, so that without the socket a dead peer would be waited for forever.
class Connection {
 public:
  enum class Direction { sends, receives };
  Connection(std::shared_ptr<Worker> worker, Direction direction, base::File socket,
             std::uint32_t number, std::string peer);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  /// Opens the data path, for sends only. address: of the peer's worker.
  void open_way(const std::vector<std::byte>& address);

  /// Functions return null where all requests are in use: NCCL then tries again.
  Request* send(const void* data, std::size_t size, int tag);
  Request* receive(int count, void** data, const std::size_t* sizes, const int* tags);
  Request* flush(int count, void** data, const int* sizes, void** registrations);
  /// True when all parts of a request are done; it is then free again. Throws base::Error when a
  /// part failed or the peer is gone.
  bool test(Request& request, int* sizes);

  Worker& worker() { return *worker_; }
  /// Message for the log, once, after the first transfer of a sender: "to 10.0.0.2:4711 over
  /// rc_mlx5/mlx5_0:1"; else empty.
  std::string news();

 private:
  using Clock = std::chrono::steady_clock;
  Request* take(int parts);
  void look_after_peer();
  [[noreturn]] void explain(ucs_status_t status);
  std::uint64_t tag_of(int tag) const;

  std::shared_ptr<Worker> worker_;
  Direction direction_;
  base::File socket_;
  std::uint32_t number_;
  std::string peer_;
  Endpoint endpoint_;
  std::vector<Request> requests_;
  PeerState peer_state_ = PeerState::alive;
  Clock::time_point next_look_ = Clock::now();
  Clock::time_point goodbye_at_{};
  bool has_sent_ = false;
  bool has_told_ = false;
};

/// Address of a listener, which NCCL carries from the receiver to the sender.
struct Handle {
  std::uint32_t magic = 0;
  std::uint32_t version = 0;
  std::array<std::byte, 16> secret{};
  SocketAddress address{};
};
static_assert(sizeof(Handle) <= handle_bytes);

/// Listener that waits for the sender with the secret of its handle. Never blocks.
class Listener {
 public:
  Listener(std::shared_ptr<Worker> worker, const SocketAddress& address);
  const Handle& handle() const { return handle_; }
  /// Null until the sender has introduced itself.
  std::unique_ptr<Connection> accept();

 private:
  struct Caller {
    base::File socket;
    Transfer greeting;
    std::optional<Transfer> answer;
    std::uint32_t number = 0;
    std::chrono::steady_clock::time_point deadline;
  };
  bool advance(Caller& caller);

  std::shared_ptr<Worker> worker_;
  Handle handle_;
  base::File socket_;
  std::vector<Caller> callers_;
};

/// Sender's side of the handshake.
class Dial {
 public:
  Dial(std::shared_ptr<Worker> worker, const Handle& handle);
  /// Null until the receiver has answered. Throws base::Error when it cannot be reached.
  std::unique_ptr<Connection> advance();

 private:
  std::shared_ptr<Worker> worker_;
  std::string peer_;
  base::File socket_;
  Transfer greeting_;
  Transfer header_;
  std::optional<Transfer> address_;
  std::chrono::steady_clock::time_point deadline_;
};

}  // namespace trireme::nccl_net
