// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/device/device.hpp"

#include <algorithm>
#include <compare>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace trireme::engine {

/// Cache of CUDA graphs for parts of a step that issue the same work again and again. A part runs
/// kernel by kernel at first, which also lets libraries initialize, is captured the second time,
/// and launched as graphs from then on.
///
/// A key identifies everything that such a part depends on: which part it is, and the addresses of
/// its static inputs. Everything else that may differ between two runs of one key is in those
/// tensors. So a graph is never launched for other tensors than its own; a part whose addresses
/// keep changing has many keys.
///
/// Operations that no graph can hold, such as a collective, are graph breaks: break_graph()
/// (docs/decisions/0026).
class CudaGraphCache {
 public:
  struct Key {
    int part = 0;
    std::vector<const void*> addresses;

    auto operator<=>(const Key&) const = default;
  };
  using Act = std::function<void()>;

  /// Largest number of keys, if a step has fewer parts: more graphs would cost memory, and are a
  /// sign that no work repeats.
  static constexpr std::size_t most_keys = 128;

  /// `parts`: how many a step runs. Buffers of a chunk are rings of unequal lengths, so that a part
  /// may meet the same addresses again only in the next step.
  explicit CudaGraphCache(device::Device& device, std::size_t parts = 0)
      : device_(device), most_keys_(std::max(most_keys, parts)) {}
  CudaGraphCache(const CudaGraphCache&) = delete;
  CudaGraphCache& operator=(const CudaGraphCache&) = delete;
  ~CudaGraphCache() = default;

  /// Runs the part: `body` issues its work and does nothing else that would have to be repeated.
  /// When the device cannot capture it, all parts run kernel by kernel from then on, and the reason
  /// is logged.
  template <typename Body>
  void run(const Key& key, const Body& body) {
    auto* const entry = entry_of(key);
    if (entry == nullptr || !entry->seen) {
      body();
      if (entry != nullptr) entry->seen = true;
      return;
    }
    const bool fresh = entry->segments.empty();
    const auto taken = fresh ? device_.taken_bytes() : 0;
    if (fresh && !capture(*entry, body)) {
      // Failed capture has executed nothing, neither here nor, for collectives, on other ranks.
      body();
      return;
    }
    launch(*entry);
    if (fresh) note_growth(taken);
  }

  /// Graph break, for the body of a part that is being captured: `act` is executed neither now nor
  /// by a graph, but whenever the part runs, between the graph of the work issued so far and that
  /// of the work issued next.
  void break_graph(Act act);
  /// True while a part is being captured.
  bool capturing() const { return capturing_ != nullptr; }

  /// Number of parts that were captured, of their graphs, and of launches of a part.
  std::size_t captured() const { return captured_; }
  std::size_t graphs() const { return graphs_; }
  std::size_t launched() const { return launched_; }
  /// Device memory that graphs took, measured as the device's free memory before and after: it is
  /// outside all arenas, and includes allocations of other programs at the same time.
  std::size_t bytes() const { return bytes_; }
  /// Reason why capturing was given up; empty otherwise.
  const std::string& reason() const { return reason_; }

 private:
  struct Segment {
    std::unique_ptr<device::CapturedGraph> graph;
    /// Graph breaks that follow the graph.
    std::vector<Act> acts;
  };
  struct Entry {
    bool seen = false;
    /// Empty until the part has been captured.
    std::vector<Segment> segments;
  };
  /// Entry of a key; null when nothing is captured.
  Entry* entry_of(const Key& key);
  bool capture(Entry& entry, const Act& body);
  /// Ends the capture of a graph; one of nothing is left out.
  void end_graph();
  void launch(const Entry& entry);
  void refuse(const std::string& reason);
  void note_growth(std::size_t taken_before);

  device::Device& device_;
  std::size_t most_keys_;
  std::map<Key, Entry> entries_;
  /// Segments of the part that is being captured.
  std::vector<Segment>* capturing_ = nullptr;
  std::size_t captured_ = 0;
  std::size_t graphs_ = 0;
  std::size_t launched_ = 0;
  std::size_t bytes_ = 0;
  std::string reason_;
};

}  // namespace trireme::engine
