// SPDX-License-Identifier: Apache-2.0
#include "support/ras_server.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <stdexcept>
#include <utility>

namespace trireme::testing {

RasServer::RasServer(Conversation conversation)
    : conversation_(std::move(conversation)),
      listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* const name = reinterpret_cast<sockaddr*>(&address);
  if (::bind(listener_, name, size) != 0 || ::listen(listener_, 8) != 0 ||
      ::getsockname(listener_, name, &size) != 0) {
    throw std::runtime_error("no port for the stand-in of RAS");
  }
  port_ = ntohs(address.sin_port);
  thread_ = std::thread([this] { serve(); });
}

RasServer::~RasServer() {
  ends_ = true;
  thread_.join();
  ::close(listener_);
}

std::string RasServer::address() const {
  return "127.0.0.1:" + std::to_string(port_);
}

void RasServer::serve() {
  while (!ends_) {
    pollfd entry{listener_, POLLIN, 0};
    if (::poll(&entry, 1, 20) <= 0) continue;
    const int socket = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (socket < 0) continue;
    ++callers_;
    conversation_(socket);
    ::close(socket);
  }
}

std::string hear_line(int socket) {
  std::string line;
  char letter = 0;
  while (::recv(socket, &letter, 1, 0) == 1) {
    if (letter == '\n') return line;
    line += letter;
  }
  return {};
}

bool say(int socket, const std::string& text) {
  return ::send(socket, text.data(), text.size(), MSG_NOSIGNAL) ==
         static_cast<ssize_t>(text.size());
}

RasServer::Conversation RasServer::answering(std::string text) {
  return [text = std::move(text)](int socket) {
    for (auto line = hear_line(socket); !line.empty(); line = hear_line(socket)) {
      if (line.starts_with("CLIENT PROTOCOL ")) {
        say(socket, "SERVER PROTOCOL 2\n");
      } else if (line.starts_with("TIMEOUT ")) {
        say(socket, "OK\n");
      } else if (line == "STATUS") {
        say(socket, text);
        return;
      } else {
        say(socket, "ERROR: Unknown command " + line + "\n");
      }
    }
  };
}

}  // namespace trireme::testing
