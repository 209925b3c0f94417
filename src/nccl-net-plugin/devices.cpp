// SPDX-License-Identifier: Apache-2.0
#include "devices.hpp"

#include "trireme/base/format.hpp"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <optional>

namespace trireme::nccl_net {
namespace {

namespace fs = std::filesystem;

std::string first_line(const fs::path& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

/// The number that a text begins with.
template <typename T>
std::optional<T> leading_number(std::string_view text, int base = 10) {
  T value = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (read.ec != std::errc{}) return std::nullopt;
  return value;
}

/// Directories in a folder of /sys, by name; none where the folder is missing.
std::vector<fs::path> entries(const fs::path& folder) {
  std::vector<fs::path> found;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    found.push_back(it->path());
  }
  std::sort(found.begin(), found.end());
  return found;
}

std::string pci_path_of(const fs::path& entry) {
  std::error_code error;
  const auto path = fs::canonical(entry / "device", error);
  return error ? std::string() : path.string();
}

/// "0c42:a103:00b3:1234": the chip, whatever its ports.
std::uint64_t guid_of(std::string text) {
  text.erase(std::remove(text.begin(), text.end(), ':'), text.end());
  return leading_number<std::uint64_t>(text, 16).value_or(0);
}

void add_ports(const fs::path& nic, const DeviceChoice& choice, std::vector<Device>& found) {
  const auto name = nic.filename().string();
  for (const auto& port : entries(nic / "ports")) {
    // "4: ACTIVE"
    if (first_line(port / "state").find("ACTIVE") == std::string::npos) continue;
    const auto number = port.filename().string();
    Device device;
    device.name = device.ucx_name = base::format("{}:{}", name, number);
    if (!list_takes(choice.ib_hca, name) && !list_takes(choice.ib_hca, device.name)) continue;
    if (!list_takes(choice.net_devices, device.name)) continue;
    device.pci_path = pci_path_of(nic);
    device.guid = guid_of(first_line(nic / "node_guid"));
    device.port = leading_number<int>(number).value_or(1);
    // "400 Gb/sec (4X NDR)"
    device.megabits_per_second =
        1000 * leading_number<int>(first_line(port / "rate")).value_or(100);
    found.push_back(device);
  }
}

void add_interface(const std::string& name, const DeviceChoice& choice, const fs::path& sys,
                   std::vector<Device>& found) {
  if (!list_takes(choice.interfaces, name) || !list_takes(choice.net_devices, name)) return;
  const auto entry = sys / "class/net" / name;
  Device device;
  device.name = device.ucx_name = name;
  device.pci_path = pci_path_of(entry);
  device.guid = found.size();
  const auto speed = leading_number<int>(first_line(entry / "speed")).value_or(0);
  if (speed > 0) device.megabits_per_second = speed;
  found.push_back(device);
}

}  // namespace

bool list_takes(std::string_view list, std::string_view name) {
  if (list.empty() || list == "all") return true;
  const bool excludes = list.front() == '^';
  if (excludes) list.remove_prefix(1);
  const bool whole = !list.empty() && list.front() == '=';
  if (whole) list.remove_prefix(1);
  while (!list.empty()) {
    const auto comma = list.find(',');
    const auto item = list.substr(0, comma);
    if (!item.empty() && (whole ? name == item : name.substr(0, item.size()) == item)) {
      return !excludes;
    }
    list = comma == std::string_view::npos ? std::string_view() : list.substr(comma + 1);
  }
  return excludes;
}

std::vector<Device> find_devices(const DeviceChoice& choice,
                                 const std::vector<std::string>& interfaces, const fs::path& sys) {
  std::vector<Device> found;
  for (const auto& nic : entries(sys / "class/infiniband")) add_ports(nic, choice, found);
  if (!found.empty()) return found;
  for (const auto& name : interfaces) add_interface(name, choice, sys, found);
  return found;
}

Device joined(const std::vector<Device>& devices) {
  Device all = devices.front();
  for (std::size_t i = 1; i < devices.size(); ++i) {
    all.name += "+" + devices[i].name;
    all.ucx_name += "," + devices[i].ucx_name;
    all.megabits_per_second += devices[i].megabits_per_second;
    all.part_count += devices[i].part_count;
  }
  return all;
}

}  // namespace trireme::nccl_net
