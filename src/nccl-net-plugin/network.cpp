// SPDX-License-Identifier: Apache-2.0
#include "network.hpp"

#include "trireme/base/error.hpp"

#include <algorithm>
#include <cstring>

namespace trireme::nccl_net {
namespace {

std::vector<std::string> names_of(const std::vector<Interface>& interfaces) {
  std::vector<std::string> names;
  for (const auto& each : interfaces) names.push_back(each.name);
  return names;
}

}  // namespace

Network::Network(const DeviceChoice& choice) : choice_(choice), interfaces_(find_interfaces()) {
  for (auto& device : find_devices(choice_, names_of(interfaces_))) {
    devices_.push_back(std::make_unique<Device>(std::move(device)));
  }
  if (devices_.empty()) {
    throw base::Error(base::ExitCode::topology,
                      "no network device: no active InfiniBand port and no interface that is up "
                      "and chosen; look at UCX_NET_DEVICES, NCCL_IB_HCA, NCCL_SOCKET_IFNAME");
  }
}

int Network::device_count() const {
  const std::lock_guard lock(mutex_);
  return static_cast<int>(devices_.size());
}

const Device& Network::device(int index) const {
  const std::lock_guard lock(mutex_);
  if (index < 0 || index >= static_cast<int>(devices_.size())) {
    throw base::Error(base::ExitCode::usage, "no such device: " + std::to_string(index));
  }
  return *devices_[static_cast<std::size_t>(index)];
}

int Network::join(const std::vector<int>& parts) {
  std::vector<Device> whole;
  for (const int part : parts) whole.push_back(device(part));
  if (whole.empty()) throw base::Error(base::ExitCode::usage, "a device of no devices");
  const std::lock_guard lock(mutex_);
  devices_.push_back(std::make_unique<Device>(joined(whole)));
  return static_cast<int>(devices_.size()) - 1;
}

std::vector<std::pair<std::string, std::string>> Network::settings_of(const Device& device) const {
  std::vector<std::pair<std::string, std::string>> settings;
  if (choice_.net_devices.empty()) settings.emplace_back("NET_DEVICES", device.ucx_name);
  if (device.part_count > 1) {
    settings.emplace_back("MAX_RNDV_RAILS", std::to_string(device.part_count));
  }
  // Segment size: with error handling, UCX 1.13 sends large messages over TCP in segments; the
  // default of 64 KiB costs a fifth of the bandwidth (perf/results/communication.md).
  if (choice_.tcp_segment.empty()) settings.emplace_back("RX_SEG_SIZE", "512k");
  return settings;
}

SocketAddress Network::address_of(int index) const {
  const auto& name = device(index).name;
  const auto find = [&](const auto& fits) {
    return std::find_if(interfaces_.begin(), interfaces_.end(), fits);
  };
  auto found = find([&](const Interface& each) { return each.name == name; });
  if (found == interfaces_.end()) {
    // An InfiniBand port has no address of its own: its listener uses the job's IP network.
    found = find([&](const Interface& each) { return list_takes(choice_.interfaces, each.name); });
  }
  if (found == interfaces_.end()) {
    throw base::Error(base::ExitCode::topology,
                      "no interface at which peers could meet; look at NCCL_SOCKET_IFNAME");
  }
  return found->address;
}

std::shared_ptr<Worker> Session::worker_of(int device) {
  const std::lock_guard lock(mutex_);
  auto& worker = workers_[device];
  if (!worker) {
    worker = std::make_shared<Worker>(network_->settings_of(network_->device(device)));
  }
  return worker;
}

std::unique_ptr<Listener> Session::listen(int device) {
  return std::make_unique<Listener>(worker_of(device), network_->address_of(device));
}

std::unique_ptr<Connection> Session::connect(int device, const void* handle) {
  auto worker = worker_of(device);
  const std::lock_guard lock(mutex_);
  auto& dial = dials_[handle];
  try {
    if (!dial) {
      Handle told;
      std::memcpy(&told, handle, sizeof(told));
      dial = std::make_unique<Dial>(std::move(worker), told);
    }
    auto connection = dial->advance();
    if (connection) dials_.erase(handle);
    return connection;
  } catch (...) {
    dials_.erase(handle);
    throw;
  }
}

}  // namespace trireme::nccl_net
