// SPDX-License-Identifier: Apache-2.0
#include "trireme/web/server.hpp"

#include "trireme/base/digest.hpp"
#include "trireme/base/file.hpp"
#include "trireme/base/tcp.hpp"
#include "trireme/base/thread_priority.hpp"

#include <fcntl.h>
#include <httplib.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace trireme::web {
namespace {

using Clock = std::chrono::steady_clock;

/// Lines of a request, until the empty one.
constexpr std::size_t most_head_bytes = 8192;
/// Time for which a slow client may keep the one thread from the next request.
constexpr std::chrono::seconds write_limit{2};
/// Connections that are open at once. One more takes the place of the oldest: a client sends its
/// request at once, and is answered though others are silent.
constexpr std::size_t most_pending = 16;

/// A connection whose request has not come as a whole yet.
struct Pending {
  base::File socket;
  Clock::time_point deadline;
  std::string head = {};

  bool is_whole() const { return head.find("\r\n\r\n") != std::string::npos; }
  /// False if the peer has closed it, or sends what is no request.
  bool read_on();
};

bool Pending::read_on() {
  std::array<char, 2048> block{};
  for (;;) {
    const auto count = ::recv(socket.get(), block.data(), block.size(), MSG_DONTWAIT);
    if (count < 0) return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
    if (count == 0) return false;
    head.append(block.data(), static_cast<std::size_t>(count));
    if (is_whole()) return true;
    if (head.size() > most_head_bytes) return false;
  }
}

/// A request that is in memory, and an answer that goes there.
class Exchange : public httplib::Stream {
 public:
  explicit Exchange(std::string_view head) : head_(head) {}
  const std::string& answer() const { return answer_; }

  bool is_readable() const override { return !head_.empty(); }
  bool is_writable() const override { return true; }
  ssize_t read(char* to, std::size_t size) override {
    const auto count = std::min(size, head_.size());
    std::copy_n(head_.data(), count, to);
    head_.remove_prefix(count);
    return static_cast<ssize_t>(count);
  }
  ssize_t write(const char* bytes, std::size_t size) override {
    answer_.append(bytes, size);
    return static_cast<ssize_t>(size);
  }
  void get_remote_ip_and_port(std::string&, int&) const override {}
  void get_local_ip_and_port(std::string&, int&) const override {}
  /// None: the library refuses descriptors from 1,024 on.
  socket_t socket() const override { return INVALID_SOCKET; }

 private:
  std::string_view head_;
  std::string answer_;
};

/// A peer that takes nothing for so long is left.
void send_all(const base::File& socket, std::string_view text) {
  const auto deadline = Clock::now() + write_limit;
  while (!text.empty() && Clock::now() < deadline) {
    const auto count = ::send(socket.get(), text.data(), text.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (count > 0) {
      text.remove_prefix(static_cast<std::size_t>(count));
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      constexpr int wait_ms = 100;
      pollfd writable{socket.get(), POLLOUT, 0};
      ::poll(&writable, 1, wait_ms);
    } else if (errno != EINTR) {
      return;
    }
  }
}

}  // namespace

/// The library reads requests and writes answers; connections are held here, where their number
/// and their time have limits: whoever reaches the port may open as many as he likes.
struct Server::Loop : httplib::Server {
  base::File listener;
  base::File wake;
  int port = 0;
  std::chrono::milliseconds request_limit{0};
  std::vector<Pending> pending;
  std::atomic<bool> ends = false;
  std::thread thread;

  /// False if nothing can listen there.
  bool listen(const std::string& address, std::uint16_t wanted);
  void serve();
  void take_new();
  void answer(const Pending& whole);
};

bool Server::Loop::listen(const std::string& address, std::uint16_t wanted) {
  // The library's own choice would share the port with another run of this user.
  set_socket_options([](socket_t socket) {
    const int yes = 1;
    ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  });
  const bool is_taken = wanted == 0 || !bind_to_port(address, wanted);
  port = is_taken ? bind_to_any_port(address) : wanted;
  if (port <= 0) return false;
  listener = base::File::adopt(svr_sock_.exchange(INVALID_SOCKET));
  return ::fcntl(listener.get(), F_SETFL, O_NONBLOCK) == 0 &&
         ::fcntl(listener.get(), F_SETFD, FD_CLOEXEC) == 0 &&
         ::listen(listener.get(), SOMAXCONN) == 0;
}

void Server::Loop::take_new() {
  auto accepted = base::tcp::accept_one(listener);
  if (!accepted.ok()) {
    // No descriptor is left: the oldest gives back its own, and nobody is asked again at once.
    if (!pending.empty()) pending.erase(pending.begin());
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    return;
  }
  if (!*accepted) return;
  if (pending.size() == most_pending) pending.erase(pending.begin());
  pending.push_back({std::move(accepted).value(), Clock::now() + request_limit});
}

void Server::Loop::answer(const Pending& whole) {
  Exchange exchange(whole.head);
  bool closed = false;
  process_request(exchange, true, closed, nullptr);
  send_all(whole.socket, exchange.answer());
}

void Server::Loop::serve() {
  while (!ends) {
    std::vector<pollfd> waited{{wake.get(), POLLIN, 0}, {listener.get(), POLLIN, 0}};
    for (const auto& each : pending) waited.push_back({each.socket.get(), POLLIN, 0});
    constexpr int look_ms = 200;
    // Order: read before poll(), so that what came while this thread had no processor is in time.
    const auto now = Clock::now();
    ::poll(waited.data(), waited.size(), pending.empty() ? -1 : look_ms);
    // Order: those who have sent before those who come.
    for (std::size_t at = 0, place = 2; place < waited.size(); ++place) {
      auto& one = pending[at];
      const bool is_open = waited[place].revents == 0 || one.read_on();
      if (is_open && one.is_whole()) answer(one);
      if (!is_open || one.is_whole() || now >= one.deadline) {
        pending.erase(pending.begin() + static_cast<std::ptrdiff_t>(at));
      } else {
        ++at;
      }
    }
    if (waited[1].revents != 0) take_new();
  }
}

Server::Server(std::unique_ptr<Loop> loop) : loop_(std::move(loop)) {}

std::unique_ptr<Server> Server::start(const Options& options, Page page) {
  auto loop = std::make_unique<Loop>();
  const auto path = page.path;
  loop->Get(path, [wanted = "Bearer " + options.token, page = std::move(page)](
                      const httplib::Request& request, httplib::Response& response) {
    if (!base::equal_secrets(request.get_header_value("Authorization"), wanted)) {
      response.status = 401;
      response.set_header("WWW-Authenticate", "Bearer");
      response.set_content(page.refusal, "text/plain");
      return;
    }
    response.set_content(page.text(), page.content_type);
  });
  loop->request_limit = options.request_limit;
  if (!loop->listen(options.address, options.port)) return nullptr;
  loop->wake = base::File::adopt(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  // Signals are for the threads that wait for them.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  loop->thread = std::thread([loop = loop.get()] {
    base::BackgroundPriority priority;
    priority.yield();
    loop->serve();
  });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return std::unique_ptr<Server>(new Server(std::move(loop)));
}

Server::~Server() {
  loop_->ends = true;
  ::eventfd_write(loop_->wake.get(), 1);
  loop_->thread.join();
}

std::uint16_t Server::port() const {
  return static_cast<std::uint16_t>(loop_->port);
}

}  // namespace trireme::web
