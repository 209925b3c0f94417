// SPDX-License-Identifier: Apache-2.0
#include "collective.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace trireme::predict {
namespace {

/// A protocol of NCCL's: its part of the link's rate, and of the latencies of the simple one. The
/// ratios are those of its table for rings: base 3.6, 10.0, 8.4 us; a hop over NVLink 0.47, 1.9,
/// 3.4 us; over a network 2.7, 4.0, 9.6 us.
struct Protocol {
  double rate;
  double base;
  double hop;
  double network_hop;
};
constexpr std::array protocols{
    Protocol{0.25, 3.6 / 8.4, 0.47 / 3.4, 2.7 / 9.6},  // LL
    Protocol{0.92, 10.0 / 8.4, 1.9 / 3.4, 4.0 / 9.6},  // LL128
    Protocol{1.0, 1.0, 1.0, 1.0},                      // Simple
};
constexpr double tree_rate = 0.9;

}  // namespace

Placement::Placement(const Machine& machine, int world_size)
    : node_size_(machine.node.computes_on_cores() ? world_size : machine.node.gpus),
      world_size_(world_size) {}

int Placement::nodes_of(int first, int size, int stride) const {
  int nodes = 1;
  for (int member = 1; member < size; ++member) {
    const int rank = first + member * stride;
    nodes += crosses(rank - stride, rank) ? 1 : 0;
  }
  return nodes;
}

GroupPlace Placement::group(int size, int stride) const {
  int nodes = 1;
  // Groups lie one after the other in blocks; where a block ends with a node, they repeat.
  for (int block = 0; block + size * stride <= world_size_; block += size * stride) {
    if (block > 0 && block % node_size_ == 0) break;
    for (int first = block; first < block + stride; ++first) {
      nodes = std::max(nodes, nodes_of(first, size, stride));
    }
  }
  return {size, (size + nodes - 1) / nodes};
}

double Links::network_rate(int members_on_node) const {
  const double node = machine_.nics * machine_.network.rate / machine_.oversubscription;
  return machine_.share.link * node * members_on_node / node_size_;
}

double Links::bus_rate(const GroupPlace& place) const {
  const double inside = machine_.share.link * machine_.inside.rate;
  if (place.nodes() == 1) return inside;
  const double network = network_rate(place.on_node);
  return place.on_node == 1 ? network : std::min(inside, network);
}

Time Links::collective(CollectiveKind kind, double bytes, const GroupPlace& place) const {
  if (place.size <= 1 || bytes <= 0) return Time::zero();
  const bool sums_for_all = kind == CollectiveKind::all_reduce;
  const double passes = sums_for_all ? 2 : 1;
  const double steps = passes * (place.size - 1);
  const double part = bytes / place.size;
  const bool inside = place.nodes() == 1;
  const auto& link = inside ? machine_.inside : machine_.network;
  if (!link.messages.empty()) {
    return time_of(steps * message_seconds(link.messages, part) / machine_.share.link);
  }

  const double seconds_of_bytes = steps * part / bus_rate(place);
  const double network_steps = inside ? 0 : passes * (place.nodes() - 1);
  double best = std::numeric_limits<double>::infinity();
  for (const auto& protocol : protocols) {
    const double hop = protocol.hop * machine_.inside.hop;
    const double network_hop = protocol.network_hop * machine_.network.hop;
    const double base = protocol.base * link.latency;
    const double ring = base + (steps - network_steps) * hop + network_steps * network_hop;
    best = std::min(best, ring + seconds_of_bytes / protocol.rate);
    if (inside || !sums_for_all) continue;
    const double tree =
        base + 2 * ((place.on_node - 1) * hop + std::log2(place.nodes()) * network_hop);
    best = std::min(best, tree + seconds_of_bytes / std::min(protocol.rate, tree_rate));
  }
  return time_of(best);
}

Time Links::least_of_all(CollectiveKind kind, double bytes, const GroupPlace& place) const {
  if (place.size <= 1 || bytes <= 0) return Time::zero();
  const auto& messages = place.nodes() == 1 ? machine_.inside.messages : machine_.network.messages;
  // Each of many is rounded to picoseconds.
  constexpr Time rounding{1000};
  if (messages.empty()) {
    // The least of lines that begin above zero: two times together are no less than that of both.
    return std::max(collective(kind, bytes, place) - rounding, Time::zero());
  }
  const double steps = (kind == CollectiveKind::all_reduce ? 2 : 1) * (place.size - 1);
  const double seconds = steps * bytes / place.size * least_seconds_of_byte(messages);
  return std::max(time_of(seconds / machine_.share.link) - rounding, Time::zero());
}

Time Links::message(double bytes, bool crosses_nodes) const {
  const auto& link = crosses_nodes ? machine_.network : machine_.inside;
  if (!link.messages.empty()) {
    return time_of(message_seconds(link.messages, bytes) / machine_.share.link);
  }
  const double rate = crosses_nodes ? network_rate(1) : machine_.share.link * link.rate;
  return time_of(link.latency + link.hop + bytes / rate);
}

double message_seconds(const std::vector<MeasuredMessage>& messages, double bytes) {
  const auto above = std::find_if(messages.begin(), messages.end(),
                                  [&](const auto& message) { return message.bytes >= bytes; });
  if (above == messages.begin()) return above->seconds;
  if (messages.size() == 1) return messages.front().seconds * bytes / messages.front().bytes;
  const auto upper = above == messages.end() ? above - 1 : above;
  const auto lower = upper - 1;
  const double slope = (upper->seconds - lower->seconds) / (upper->bytes - lower->bytes);
  return std::max(lower->seconds + slope * (bytes - lower->bytes), 0.0);
}

double least_seconds_of_byte(const std::vector<MeasuredMessage>& messages) {
  // Between two sizes a line lies between its ends' ratios; beyond the last it nears its slope.
  double least = std::numeric_limits<double>::infinity();
  for (const auto& message : messages) least = std::min(least, message.seconds / message.bytes);
  const double far = 1e3 * messages.back().bytes;
  const double slope = (message_seconds(messages, 2 * far) - message_seconds(messages, far)) / far;
  return std::max(std::min(least, slope), 0.0);
}

}  // namespace trireme::predict
