// SPDX-License-Identifier: Apache-2.0
// Formats of lines in NCCL's log: of its own sources, versions 2.18 to 2.30, and of the plugin
// rdma-sharp.
#include "trireme/comm/nccl_log.hpp"

#include <algorithm>
#include <cctype>
#include <optional>

namespace trireme::comm {
namespace {

using std::string_view;

constexpr std::size_t longest_line = 4096;
constexpr std::size_t most_names = 64;
constexpr std::size_t most_warnings = 8;

/// Text behind `mark` in a line; none without it.
std::optional<string_view> behind(string_view line, string_view mark) {
  const auto found = line.find(mark);
  if (found == string_view::npos) return std::nullopt;
  return line.substr(found + mark.size());
}

bool take(string_view& text, string_view start) {
  if (!text.starts_with(start)) return false;
  text.remove_prefix(start.size());
  return true;
}

bool take_end(string_view& text, string_view end) {
  if (!text.ends_with(end)) return false;
  text.remove_suffix(end.size());
  return true;
}

void keep(std::vector<std::string>& names, string_view name) {
  const bool known = std::find(names.begin(), names.end(), name) != names.end();
  if (!known && !name.empty() && names.size() < most_names) names.emplace_back(name);
}

bool is_number(string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char letter) {
    return std::isdigit(static_cast<unsigned char>(letter)) != 0;
  });
}

/// Network of "IB/0/GDRDMA", "UCX/1(3)/GDRDMA(PCI)/Shared", "AWS Libfabric/0": its name, its
/// device, optionally the rank whose GPU is used, and flags.
void read_network(string_view text, NcclTransport& found) {
  take_end(text, "/Shared");
  const bool direct = take_end(text, "/GDRDMA(PCI)") || take_end(text, "/GDRDMA");
  const auto slash = text.rfind('/');
  if (slash == string_view::npos || slash == 0) return;
  auto device = text.substr(slash + 1);
  device = device.substr(0, device.find('('));
  const std::string name(text.substr(0, slash));
  if (!is_number(device)) return;
  if (found.networks.size() >= most_names && found.networks.count(name) == 0) return;
  auto& network = found.networks[name];
  ++network.channels;
  if (direct) ++network.gpu_direct_channels;
}

/// "P2P/CUMEM/read", "SHM/direct/direct", "NET/IB/0/GDRDMA".
void read_way(string_view text, NcclTransport& found) {
  if (take(text, "NET/") || take(text, "COLLNET/")) return read_network(text, found);
  if (text.starts_with("P2P/MNNVL")) {
    ++found.fabric_channels;
  } else if (text.starts_with("P2P/")) {
    ++found.gpu_channels;
  } else if (text.starts_with("SHM")) {
    ++found.host_channels;
  }
}

/// " [0]mlx5_0:1/IB [1]mlx5_1:1/RoCE [RO]; OOB ib0:10.0.0.1<0>": names behind numbers.
void read_devices(string_view text, std::vector<std::string>& devices) {
  text = text.substr(0, text.find(';'));
  while (!text.empty()) {
    const auto end = std::min(text.find(' '), text.size());
    auto word = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const auto close = word.find(']');
    if (word.starts_with('[') && close != string_view::npos &&
        is_number(word.substr(1, close - 1)) && !word.substr(close).starts_with("]=")) {
      keep(devices, word.substr(close + 1));
    }
  }
}

/// "NET/Trireme : to 10.0.0.2:4711 over rc_mlx5/mlx5_0:1, cma/memory".
bool read_own_way(string_view message, NcclTransport& found) {
  if (!take(message, "NET/Trireme : to ")) return false;
  auto ways = behind(message, " over ");
  while (ways && !ways->empty()) {
    const auto end = std::min(ways->find(", "), ways->size());
    keep(found.ways, ways->substr(0, end));
    ways->remove_prefix(std::min(end + 2, ways->size()));
  }
  return true;
}

void read_message(string_view message, NcclTransport& found) {
  if (message.starts_with("Channel ") || message.starts_with("CollNet ")) {
    if (const auto way = behind(message, " via ")) read_way(*way, found);
    return;
  }
  if (read_own_way(message, found)) return;
  for (const auto* const words :
       {"Successfully loaded external plugin ", "Successfully loaded external network plugin ",
        "NET/Plugin: Plugin name set by env to ", "Plugin Path : "}) {
    auto name = message;
    if (take(name, words)) return keep(found.plugins, name);
  }
  if (auto name = message; take(name, "NET/")) {
    const auto devices = behind(name, " : Using");
    if (!devices || found.devices.size() >= most_names) return;
    read_devices(*devices, found.devices[std::string(name.substr(0, name.find(' ')))]);
  }
}

template <typename Read>
void each_line(string_view text, Read&& read) {
  while (!text.empty()) {
    const auto end = std::min(text.find('\n'), text.size());
    const auto line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.size() <= longest_line) read(line);
  }
}

}  // namespace

NcclTransport read_nccl_log(string_view text) {
  NcclTransport found;
  each_line(text, [&](string_view line) {
    if (const auto message = behind(line, " NCCL INFO ")) read_message(*message, found);
  });
  return found;
}

std::vector<std::string> warnings_of_nccl_log(string_view text) {
  std::vector<std::string> warnings;
  each_line(text, [&](string_view line) {
    if (const auto message = behind(line, " NCCL WARN ")) warnings.emplace_back(*message);
  });
  const auto surplus = warnings.size() - std::min(warnings.size(), most_warnings);
  warnings.erase(warnings.begin(), warnings.begin() + static_cast<std::ptrdiff_t>(surplus));
  return warnings;
}

}  // namespace trireme::comm
