// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/result.hpp"
#include "trireme/schema/schema.hpp"

#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace trireme::predict {

/// A measured product of an [m, k] and a [k, n] matrix.
struct MeasuredProduct {
  double m = 0;
  double n = 0;
  double k = 0;
  /// FLOP/s.
  double rate = 0;

  bool operator==(const MeasuredProduct&) const = default;
};

/// Time of one message, measured.
struct MeasuredMessage {
  double bytes = 0;
  double seconds = 0;

  bool operator==(const MeasuredMessage&) const = default;
};

/// GPUs and cores among which links of one kind lie: a node, or all that one switch of such links
/// joins.
struct Node {
  /// 0: its cores compute.
  int gpus = 0;
  int cores = 0;
  /// Peaks of products by data sheet, FLOP/s: of a GPU, or of all cores together.
  double peak_fp32 = 0;
  double peak_bf16 = 0;
  double peak_fp8 = 0;
  /// Memory of a GPU, or of the node; bytes, and bytes a second.
  std::int64_t memory = 0;
  double memory_rate = 0;
  /// Bytes of it that arrays and the libraries of kernels cannot have.
  std::int64_t reserved = 0;
  /// Seconds in which the host issues one operation; 0: a program's own.
  double launch_gap = 0;
  /// Bytes a second that a node's ranks write to the disk of runs, and copy from its GPUs to its
  /// own memory; 0: not known.
  double disk_write = 0;
  double host_copy = 0;

  std::int64_t room() const { return memory - reserved; }
  bool computes_on_cores() const { return gpus == 0; }
};

/// Parts of the data sheet's figures that programs reach: what a calibration moves.
struct Shares {
  double product = 1;
  double attention = 1;
  double memory = 1;
  double link = 1;
};

/// How products are cut for the processors of a GPU.
struct Tiles {
  /// Streaming multiprocessors; 0: products are not cut into tiles.
  int processors = 0;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  /// Terms of a sum after which half of a tile's rate is reached.
  double half_rate_terms = 0;
  /// Processors that a collective keeps from computing while it runs.
  int for_collectives = 0;
};

/// Links of one kind, one way.
struct Link {
  /// Bytes a second: of a GPU's links in the node, of one network interface.
  double rate = 0;
  /// Seconds: of a whole collective, and of each of its steps.
  double latency = 0;
  double hop = 0;
  /// In ascending order of bytes; where there are any, they stand for rate and latency.
  std::vector<MeasuredMessage> messages;
};

/// Place of a machine, and what nodes cost there; 0: not known.
struct Site {
  /// Prices of a node for an hour, in any currency: for oneself, and until others pay more.
  double node_hour = 0;
  double spot_hour = 0;
  /// Power of a node whose GPUs, or cores, compute, and of one that waits; watts.
  double busy_watts = 0;
  double idle_watts = 0;
  /// Energy of the site for that of its nodes, and grams of CO2 for a kilowatt-hour.
  double pue = 0;
  double grams_per_kwh = 0;
  /// Days of a node between two failures, and between two times that it is taken away.
  double mtbf_node_days = 0;
  double spot_mtbf_node_days = 0;
  /// Seconds from a failure to the first step again.
  double restart_seconds = 0;
  /// Words for data that may be there, with commas between.
  std::string allows;
};

/// A machine as its file describes it (docs/plan.md).
struct Machine {
  std::string name;
  Node node;
  Shares share;
  Tiles tiles;
  Link inside;
  Link network;
  /// Network interfaces of a node, and by how much the network's upper levels are narrower.
  int nics = 1;
  double oversubscription = 1;
  /// In bf16, and in fp32.
  std::vector<MeasuredProduct> products;
  std::vector<MeasuredProduct> products_fp32;
  Site site;
  /// Source of each key: a page, a data sheet, a command.
  std::map<std::string, std::string> sources;
};

/// Reads a machine file: the format of configurations, keys of its own, and a source for each key.
/// The failure lists every mistake found, one a line.
base::Result<Machine> read_machine(const std::filesystem::path& path);

/// A file that reads back as this machine: keys that may be missing are where they have a value.
/// `heading` is its first line, a comment.
std::string machine_text(const Machine& machine, std::string_view heading);

/// A key of machine files. `required` is empty, or says in which files it must stand.
struct MachineKey {
  schema::Key key;
  enum class Need { always, with_gpus, optional };
  Need need = Need::always;
  void (*store)(Machine& machine, const schema::Value& value) = nullptr;
  /// The value of a machine; of a table without rows an empty text.
  schema::Value (*value)(const Machine& machine) = nullptr;
};
/// All keys but the sources, in the order in which they are shown.
std::span<const MachineKey> machine_keys();
/// Table of all keys, Markdown: a part of docs/plan.md.
std::string machine_reference();

}  // namespace trireme::predict
