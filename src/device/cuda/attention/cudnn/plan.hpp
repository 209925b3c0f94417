// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/result.hpp"

#include "device/cuda/attention/cudnn/attention_graph.hpp"

#include <cstddef>
#include <map>
#include <optional>
#include <utility>

namespace trireme::device::cudnn {

/// GPU that plans are made for: that of a handle, or one that is only described, which can be done
/// without any (cuDNN 9.8 and newer), but not run.
struct Target {
  Handle handle = nullptr;
  const Descriptor* described = nullptr;
};

/// A graph made ready to run on one kind of GPU.
class Plan {
 public:
  struct Limits {
    /// Reproducibility; `repeatable`: only engines that the library does not mark as varying in
    /// their bits.
    AttentionBits bits = AttentionBits::repeatable;
    std::size_t most_workspace_bytes = 0;
  };
  /// Plan by the first engine, of those that the library names, fastest first, within the limits
  /// that it can make ready. The failure says what was wrong with each.
  static base::Result<Plan> make(const Api& api, Graph graph, const Target& target,
                                 const Limits& limits);

  std::size_t workspace_bytes() const { return workspace_bytes_; }
  /// Issues to the handle's stream. Addresses of tensors are the GPU's, those of scalars the
  /// host's, read before this returns.
  void run(Handle handle, const std::map<Operand, void*>& addresses, void* workspace) const;

 private:
  Plan(const Api& api, Graph graph, Descriptor operations)
      : api_(&api), graph_(std::move(graph)), operations_(std::move(operations)) {}
  /// Makes an engine ready, or says what is wrong with it.
  base::Status take(Descriptor config, const Target& target, const Limits& limits);

  const Api* api_;
  // Parts made from one another; the library does not document which it keeps.
  Graph graph_;
  Descriptor operations_;
  std::optional<Descriptor> config_;
  std::optional<Descriptor> plan_;
  std::size_t workspace_bytes_ = 0;
};

}  // namespace trireme::device::cudnn
