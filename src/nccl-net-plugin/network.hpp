// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "abi.hpp"
#include "connection.hpp"
#include "devices.hpp"

#include <map>
#include <memory>
#include <mutex>
#include <vector>

namespace trireme::nccl_net {

/// State of the plugin in a process: the devices, which all of NCCL's communicators share.
class Network {
 public:
  /// Finds devices; throws base::Error when there is none.
  explicit Network(const DeviceChoice& choice);

  int device_count() const;
  const Device& device(int index) const;
  /// Adds a device that joins several; returns its index.
  int join(const std::vector<int>& parts);
  /// Address at which a device's listeners accept connections.
  SocketAddress address_of(int index) const;
  /// UCX settings of a device, without those that the user has set.
  std::vector<std::pair<std::string, std::string>> settings_of(const Device& device) const;

 private:
  DeviceChoice choice_;
  std::vector<Interface> interfaces_;
  mutable std::mutex mutex_;
  /// A list, because NCCL keeps pointers to names.
  std::vector<std::unique_ptr<Device>> devices_;
};

/// Workers of one NCCL communicator, one for each device that it uses, shared by its threads only.
class Session {
 public:
  explicit Session(std::shared_ptr<Network> network) : network_(std::move(network)) {}

  std::unique_ptr<Listener> listen(int device);
  /// Null until the peer has answered; NCCL calls with the same handle at the same place again.
  std::unique_ptr<Connection> connect(int device, const void* handle);

 private:
  std::shared_ptr<Worker> worker_of(int device);

  std::shared_ptr<Network> network_;
  std::mutex mutex_;
  std::map<int, std::shared_ptr<Worker>> workers_;
  std::map<const void*, std::unique_ptr<Dial>> dials_;
};

}  // namespace trireme::nccl_net
