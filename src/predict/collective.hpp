// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/predict/machine.hpp"
#include "trireme/predict/time.hpp"
#include "trireme/predict/workload.hpp"

/// Times of collectives and messages. Private to the room.
namespace trireme::predict {

/// Ranks of a group, by the nodes on which they lie.
struct GroupPlace {
  int size = 1;
  /// Members on one node; the whole group where it lies on one.
  int on_node = 1;

  int nodes() const { return (size + on_node - 1) / on_node; }
};

/// Which ranks lie on which nodes: in their order, as many on each as it has GPUs; all on one node
/// of cores.
class Placement {
 public:
  Placement(const Machine& machine, int world_size);

  /// The groups of ranks `stride` apart, of which the mesh is full: that on the most nodes, which
  /// the others wait for.
  GroupPlace group(int size, int stride) const;
  bool crosses(int rank, int other) const { return rank / node_size_ != other / node_size_; }
  int node_of(int rank) const { return rank / node_size_; }
  int node_size() const { return node_size_; }

 private:
  int nodes_of(int first, int size, int stride) const;

  int node_size_;
  int world_size_;
};

enum class CollectiveKind { all_reduce, all_gather, reduce_scatter };

/// Collectives in NCCL's form (its src/graph/tuning.cc): latency + bytes / rate, of the fastest of
/// rings and trees in its three protocols. Groups of one kind that share a node's interfaces divide
/// them evenly.
class Links {
 public:
  Links(const Machine& machine, int node_size) : machine_(machine), node_size_(node_size) {}

  /// `bytes` of the whole tensor: all parts of it together.
  Time collective(CollectiveKind kind, double bytes, const GroupPlace& place) const;
  /// Time that collectives of so many bytes together take at least, however these are divided.
  Time least_of_all(CollectiveKind kind, double bytes, const GroupPlace& place) const;
  /// One rank's message; all ranks of a node send at once.
  Time message(double bytes, bool crosses_nodes) const;

 private:
  double network_rate(int members_on_node) const;
  /// Rate of the links that a rank's part of the traffic takes ("bus rate").
  double bus_rate(const GroupPlace& place) const;

  const Machine& machine_;
  int node_size_;
};

/// Linear between the measured sizes; at the last two's rate beyond them, the first one's time
/// below.
double message_seconds(const std::vector<MeasuredMessage>& messages, double bytes);
/// Least of message_seconds() for a byte, over all sizes.
double least_seconds_of_byte(const std::vector<MeasuredMessage>& messages);

}  // namespace trireme::predict
