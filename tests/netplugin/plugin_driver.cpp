// SPDX-License-Identifier: Apache-2.0
#include "plugin_driver.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <thread>

namespace trireme::testing {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

[[gnu::format(printf, 5, 6)]] void collect(net::LogLevel, unsigned long, const char*, int,
                                           const char* format, ...) {
  std::array<char, 1024> text{};
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text.data(), text.size(), format, arguments);
  va_end(arguments);
  NetPlugin::log() += std::string(text.data()) + "\n";
}

void* symbol(const char* name) {
  const char* path = std::getenv("TRIREME_NET_PLUGIN");
  if (path == nullptr) throw std::runtime_error("TRIREME_NET_PLUGIN names no plugin");
  static void* const library = ::dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) throw std::runtime_error(::dlerror());
  void* found = ::dlsym(library, name);
  if (found == nullptr) throw std::runtime_error(::dlerror());
  return found;
}

template <typename Table>
void copy_common(const Table& from, net::NetV9& to) {
  to.devices = from.devices;
  to.memory = from.memory;
  to.completion = from.completion;
}

void enter_namespace(const char* variable) {
  const char* name = std::getenv(variable);
  if (name == nullptr) return;
  const int file = ::open((std::string("/run/netns/") + name).c_str(), O_RDONLY | O_CLOEXEC);
  expect(file >= 0 && ::setns(file, CLONE_NEWNET) == 0, std::string("network namespace ") + name);
  ::close(file);
}

pid_t start(const Case& test, bool sends, int read_end, int write_end) {
  const pid_t child = ::fork();
  if (child != 0) return child;
  try {
    enter_namespace(sends ? "TRIREME_SENDER_NETNS" : "TRIREME_RECEIVER_NETNS");
    // Namespaces stand for nodes, which share no memory.
    const bool apart = std::getenv("TRIREME_SENDER_NETNS") != nullptr;
    ::setenv("UCX_TLS", apart ? "tcp,self" : test.transports.c_str(), 1);
    ::setenv("UCX_WARN_UNUSED_ENV_VARS", "n", 1);
    Peer peer(test.version, read_end, write_end);
    (sends ? test.sender : test.receiver)(peer);
    std::_Exit(0);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n%s", sends ? "sender" : "receiver", error.what(),
                 NetPlugin::log().c_str());
    std::_Exit(1);
  }
}

/// Fault of how a process ended.
std::string judge(const char* who, int status, bool is_killed) {
  if (is_killed) {
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) return {};
    return std::string(who) + " was not killed";
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return {};
  return std::string(who) + (WIFSIGNALED(status) ? " died of a signal" : " failed");
}

}  // namespace

void expect(bool holds, const std::string& sentence) {
  if (!holds) throw std::runtime_error("not so: " + sentence);
}

std::vector<std::byte> pattern(std::size_t size, unsigned seed) {
  std::vector<std::byte> bytes(size);
  std::uint64_t state = seed * 0x9E3779B97F4A7C15ULL + 1;
  for (std::size_t i = 0; i < size; i += 8) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    std::memcpy(bytes.data() + i, &state, std::min<std::size_t>(8, size - i));
  }
  return bytes;
}

std::string& NetPlugin::log() {
  static std::string text;
  return text;
}

NetPlugin::NetPlugin(int version) : version_(version) {
  auto result = net::Result::internal_error;
  if (version == 9) {
    common_ = *static_cast<const net::NetV9*>(symbol("ncclNetPlugin_v9"));
    result = common_.init(collect);
  } else if (version == 10) {
    v10_ = static_cast<const net::NetV10*>(symbol("ncclNetPlugin_v10"));
    copy_common(*v10_, common_);
    result = v10_->init(collect, nullptr);
  } else {
    v11_ = static_cast<const net::NetV11*>(symbol("ncclNetPlugin_v11"));
    copy_common(*v11_, common_);
    net::Configuration configuration{-1};
    result = v11_->init(&context_, 1, &configuration, collect, nullptr);
  }
  expect(result == net::Result::success, "the plugin starts");
}

NetPlugin::~NetPlugin() {
  if (v11_ != nullptr) v11_->finalize(context_);
}

int NetPlugin::device_count() const {
  int count = 0;
  expect(common_.devices(&count) == net::Result::success, "devices are counted");
  return count;
}

net::Properties NetPlugin::properties(int device) {
  net::PropertiesV11 found{};
  auto result = net::Result::success;
  if (v11_ != nullptr) {
    result = v11_->get_properties(device, &found);
  } else if (v10_ != nullptr) {
    result = v10_->get_properties(device, &found.common);
  } else {
    result = common_.get_properties(device, &found.common);
  }
  expect(result == net::Result::success, "a device tells its properties");
  return found.common;
}

net::Result NetPlugin::make_virtual_device(int* device, std::vector<int> parts) {
  net::VirtualDevice wanted{static_cast<int>(parts.size()), {}};
  std::copy(parts.begin(), parts.end(), std::begin(wanted.devices));
  return v11_->completion.make_virtual_device(device, &wanted);
}

net::Result NetPlugin::listen(int device, void* handle, void** listener) {
  if (v11_ != nullptr) return v11_->listen(context_, device, handle, listener);
  if (v10_ != nullptr) return v10_->listen(device, handle, listener);
  return common_.listen(device, handle, listener);
}

net::Result NetPlugin::connect(int device, void* handle, void** connection) {
  net::Configuration configuration{-1};
  if (v11_ != nullptr) return v11_->connect(context_, device, handle, connection, nullptr);
  if (v10_ != nullptr) return v10_->connect(device, &configuration, handle, connection, nullptr);
  return common_.connect(device, handle, connection, nullptr);
}

net::Result NetPlugin::send(void* connection, void* data, std::size_t size, int tag,
                            void** request) {
  if (v11_ != nullptr) return v11_->send(connection, data, size, tag, nullptr, nullptr, request);
  if (v10_ != nullptr) return v10_->send(connection, data, size, tag, nullptr, nullptr, request);
  return common_.send(connection, data, size, tag, nullptr, request);
}

net::Result NetPlugin::receive(void* connection, int count, void** data, std::size_t* sizes,
                               int* tags, void** request) {
  std::array<void*, 8> none{};
  if (v11_ != nullptr) {
    return v11_->receive(connection, count, data, sizes, tags, none.data(), none.data(), request);
  }
  if (v10_ != nullptr) {
    return v10_->receive(connection, count, data, sizes, tags, none.data(), none.data(), request);
  }
  return common_.receive(connection, count, data, sizes, tags, none.data(), request);
}

void Peer::tell(const void* data, std::size_t size) const {
  expect(::write(write_end_, data, size) == static_cast<ssize_t>(size), "the other side is told");
}

void Peer::hear(void* data, std::size_t size) const {
  auto* place = static_cast<std::byte*>(data);
  while (size > 0) {
    const auto count = ::read(read_end_, place, size);
    expect(count > 0, "the other side says something");
    place += count;
    size -= static_cast<std::size_t>(count);
  }
}

void Peer::meet() const {
  char sign = 'm';
  tell(&sign, 1);
  hear(&sign, 1);
}

void* Peer::receive_side() {
  Handle handle{};
  void* listener = nullptr;
  expect(plugin.listen(device, handle.data(), &listener) == net::Result::success, "it listens");
  tell(handle.data(), handle.size());
  void* connection = nullptr;
  const auto begin = Clock::now();
  while (connection == nullptr) {
    expect(plugin.memory().accept(listener, &connection, nullptr) == net::Result::success,
           "it accepts");
    expect(seconds_since(begin) < 20, "a sender comes");
  }
  expect(plugin.completion().close_listener(listener) == net::Result::success,
         "it stops listening");
  return connection;
}

void* Peer::send_side() {
  Handle handle{};
  hear(handle.data(), handle.size());
  void* connection = nullptr;
  const auto begin = Clock::now();
  while (connection == nullptr) {
    expect(plugin.connect(device, handle.data(), &connection) == net::Result::success,
           "it connects");
    expect(seconds_since(begin) < 20, "the receiver answers");
  }
  return connection;
}

std::vector<int> Peer::wait(void* request, int parts) const {
  std::vector<int> sizes(static_cast<std::size_t>(parts), -1);
  int done = 0;
  while (done == 0) {
    expect(plugin.completion().test(request, &done, sizes.data()) == net::Result::success,
           "a transfer goes on");
  }
  return sizes;
}

net::Result Peer::wait_for_failure(void* request, double seconds) const {
  const auto begin = Clock::now();
  int done = 0;
  auto result = net::Result::success;
  while (result == net::Result::success && done == 0 && seconds_since(begin) < seconds) {
    result = plugin.completion().test(request, &done, nullptr);
  }
  return result;
}

void Peer::send_all(void* connection, std::vector<std::byte>& data, int tag) {
  void* request = nullptr;
  while (request == nullptr) {
    expect(plugin.send(connection, data.data(), data.size(), tag, &request) == net::Result::success,
           "it sends");
  }
  wait(request);
}

std::vector<std::byte> Peer::receive_all(void* connection, std::size_t room, int tag) {
  std::vector<std::byte> data(room, std::byte{0xEE});
  void* place = data.data();
  void* request = nullptr;
  expect(plugin.receive(connection, 1, &place, &room, &tag, &request) == net::Result::success,
         "it receives");
  data.resize(static_cast<std::size_t>(wait(request).front()));
  return data;
}

std::string run_case(const Case& test, double seconds) {
  int there[2];
  int back[2];
  if (::pipe2(there, O_CLOEXEC) != 0 || ::pipe2(back, O_CLOEXEC) != 0) return "no pipes";
  const pid_t children[2] = {start(test, true, back[0], there[1]),
                             start(test, false, there[0], back[1])};
  for (const int end : {there[0], there[1], back[0], back[1]}) ::close(end);
  int states[2] = {-1, -1};
  const auto begin = Clock::now();
  std::string wrong;
  for (int left = 2; left > 0;) {
    for (int i = 0; i < 2; ++i) {
      int state = 0;
      if (states[i] == -1 && ::waitpid(children[i], &state, WNOHANG) == children[i]) {
        states[i] = state;
        --left;
      }
    }
    if (left > 0 && seconds_since(begin) > seconds) {
      for (int i = 0; i < 2; ++i) {
        if (states[i] == -1) ::kill(children[i], SIGKILL);
      }
      wrong = "it hangs";
      seconds = 1e9;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  if (!wrong.empty()) return wrong;
  return judge("sender", states[0], test.sender_is_killed) +
         judge("receiver", states[1], test.receiver_is_killed);
}

}  // namespace trireme::testing
