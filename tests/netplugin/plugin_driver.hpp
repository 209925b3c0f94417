// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "nccl-net-plugin/abi.hpp"

#include <sys/types.h>

#include <array>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

/// Drives the plugin as NCCL does: loaded with dlopen, through one of its tables, in processes of
/// their own.
namespace trireme::testing {

namespace net = nccl_net;

/// The file TRIREME_NET_PLUGIN, one version of its table.
class NetPlugin {
 public:
  explicit NetPlugin(int version);
  ~NetPlugin();
  NetPlugin(const NetPlugin&) = delete;
  NetPlugin& operator=(const NetPlugin&) = delete;

  int device_count() const;
  net::Properties properties(int device);
  net::Result make_virtual_device(int* device, std::vector<int> parts);
  net::Result listen(int device, void* handle, void** listener);
  net::Result connect(int device, void* handle, void** connection);
  net::Result send(void* connection, void* data, std::size_t size, int tag, void** request);
  net::Result receive(void* connection, int count, void** data, std::size_t* sizes, int* tags,
                      void** request);

  /// Memory, which is the same in all versions.
  const net::Memory& memory() const { return common_.memory; }
  const net::Completion& completion() const { return common_.completion; }
  /// Everything that the plugin has logged.
  static std::string& log();

 private:
  int version_;
  net::NetV9 common_{};
  const net::NetV10* v10_ = nullptr;
  const net::NetV11* v11_ = nullptr;
  void* context_ = nullptr;
};

using Handle = std::array<std::byte, net::handle_bytes>;

/// One of the two processes of a case. Failed expectations end it with a message.
class Peer {
 public:
  Peer(int version, int read_end, int write_end)
      : plugin(version), read_end_(read_end), write_end_(write_end) {}

  NetPlugin plugin;
  int device = 0;

  /// Between the two processes, beside the plugin.
  void tell(const void* data, std::size_t size) const;
  void hear(void* data, std::size_t size) const;
  /// Both come to the same place.
  void meet() const;

  void* receive_side();
  void* send_side();
  /// Until done; the received sizes of a group.
  std::vector<int> wait(void* request, int parts = 1) const;
  /// The first result that is no success within this time.
  net::Result wait_for_failure(void* request, double seconds) const;
  void send_all(void* connection, std::vector<std::byte>& data, int tag = 0);
  std::vector<std::byte> receive_all(void* connection, std::size_t room, int tag = 0);

 private:
  int read_end_;
  int write_end_;
};

void expect(bool holds, const std::string& sentence);
/// Bytes that depend on seed and place.
std::vector<std::byte> pattern(std::size_t size, unsigned seed);

struct Case {
  std::function<void(Peer&)> sender;
  std::function<void(Peer&)> receiver;
  int version = 11;
  /// Value of UCX_TLS.
  std::string transports = "tcp,self";
  bool sender_is_killed = false;
  bool receiver_is_killed = false;
};
/// Runs both sides in new processes (in the network namespaces TRIREME_SENDER_NETNS and
/// TRIREME_RECEIVER_NETNS, if set); what went wrong in words, empty when nothing did.
std::string run_case(const Case& test, double seconds = 60);

}  // namespace trireme::testing
