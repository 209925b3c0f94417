// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/tcp.hpp"
#include "trireme/base/text.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <cstddef>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace trireme::tests {

/// HTTP server whose answers a test writes: one request a connection.
class ScriptedServer {
 public:
  struct Request {
    std::string head;  ///< request line and headers, in lower case but for the first
    std::string body;
  };
  /// The whole answer to request number `index`.
  using Answer = std::function<std::string(std::size_t index, const Request&)>;

  explicit ScriptedServer(Answer answer) : answer_(std::move(answer)) {
    base::tcp::SocketAddress address{};
    address.v4.sin_family = AF_INET;
    address.v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    listener_ = base::value_or_throw(base::tcp::listen_at(address));
    url_ = base::format("http://{}", base::tcp::text_of(address));
    thread_ = std::jthread([this](const std::stop_token& stop) { serve(stop); });
  }
  ScriptedServer(const ScriptedServer&) = delete;
  ScriptedServer& operator=(const ScriptedServer&) = delete;
  ~ScriptedServer() = default;

  const std::string& url() const { return url_; }
  std::vector<Request> requests() const {
    const std::lock_guard lock(mutex_);
    return requests_;
  }

  static std::string answer(int status, std::string_view body, std::string_view headers = {}) {
    return base::format("HTTP/1.1 {} Said\r\nContent-Length: {}\r\nConnection: close\r\n{}\r\n{}",
                        status, body.size(), headers, body);
  }

 private:
  void serve(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      if (!readable(listener_.get())) continue;
      const auto connection = base::value_or_throw(base::tcp::accept_one(listener_));
      if (!connection) continue;
      const auto request = receive(connection.get(), stop);
      std::size_t index = 0;
      {
        const std::lock_guard lock(mutex_);
        index = requests_.size();
        requests_.push_back(request);
      }
      send_all(connection.get(), answer_(index, request));
    }
  }
  static bool readable(int descriptor) {
    pollfd waited{descriptor, POLLIN, 0};
    return ::poll(&waited, 1, 20) > 0;
  }
  static Request receive(int descriptor, const std::stop_token& stop) {
    std::string text;
    while (!stop.stop_requested()) {
      const auto end = text.find("\r\n\r\n");
      if (end != std::string::npos) {
        const auto line = text.find("\r\n");
        Request request{text.substr(0, line) + base::lower_case(text.substr(line, end - line)),
                        text.substr(end + 4)};
        constexpr std::string_view length = "\r\ncontent-length: ";
        const auto at = request.head.find(length);
        const auto bytes =
            at == std::string::npos ? 0 : std::stoul(request.head.substr(at + length.size()));
        if (request.body.size() >= bytes) return request;
      }
      if (!readable(descriptor)) continue;
      std::string piece(1 << 16, '\0');
      const auto count = ::recv(descriptor, piece.data(), piece.size(), 0);
      if (count <= 0) break;
      text.append(piece, 0, static_cast<std::size_t>(count));
    }
    return {};
  }
  static void send_all(int descriptor, std::string_view text) {
    while (!text.empty()) {
      const auto count = ::send(descriptor, text.data(), text.size(), MSG_NOSIGNAL);
      if (count < 0) {
        pollfd waited{descriptor, POLLOUT, 0};
        if (errno != EAGAIN || ::poll(&waited, 1, 1000) <= 0) return;
        continue;
      }
      text.remove_prefix(static_cast<std::size_t>(count));
    }
  }

  Answer answer_;
  base::File listener_;
  std::string url_;
  mutable std::mutex mutex_;
  std::vector<Request> requests_;
  std::jthread thread_;
};

}  // namespace trireme::tests
