#pragma once

#include "trireme/device/kernels.hpp"

#include "device/cudnn/plan.hpp"

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <vector>

namespace trireme::device::cudnn {

/// Owner of a library's context for one stream of the current card.
class Context {
 public:
  Context(const Api& api, void* stream);
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;
  ~Context();
  Handle handle() const { return handle_; }

 private:
  const Api& api_;
  Handle handle_ = nullptr;
};

/// Attention and its backward by cuDNN, on one stream. Plans are made at the first use of a shape
/// (the library compiles a kernel: some tenths of a second) and kept. lse is what every other
/// implementation keeps, so either may do the backward of either's forward.
class FusedAttention {
 public:
  /// Device memory of so many bytes at least, at a multiple of 256, until the next call.
  using Workspace = std::function<void*(std::size_t bytes)>;

  FusedAttention(const Api& api, void* stream, Workspace workspace);

  /// Whether it has been issued; if not, somebody else must compute it.
  bool forward(const Attention& attention);
  /// A backward that would need more workspace is cut into runs of sequences, or of the heads of
  /// one sequence; at least one key head with its queries is taken at a time.
  bool backward(const AttentionBackward& backward,
                std::size_t most_workspace = most_workspace_bytes);

  static constexpr std::size_t most_workspace_bytes = std::size_t{1} << 30;
  /// For the forward and backward of such an attention, at most.
  static std::size_t workspace_bytes(const AttentionExtents& extents,
                                     std::size_t most_workspace = most_workspace_bytes);

  /// Which sequences and key heads one run of a backward takes.
  struct Part {
    std::int64_t first_sequence = 0;
    std::int64_t sequences = 0;
    std::int64_t first_kv_head = 0;
    std::int64_t kv_heads = 0;
  };
  static std::vector<Part> parts_of(const AttentionExtents& extents, std::size_t most_bytes);

 private:
  void run_part(const AttentionBackward& part, const Plan& plan, std::size_t workspace_bytes);

  /// Null if the library has none; said once for each shape.
  template <typename Extents, typename MakeGraph>
  const Plan* plan_for(std::map<Extents, std::optional<Plan>>& plans, const Extents& extents,
                       std::size_t most_bytes, const MakeGraph& graph);

  const Api& api_;
  Context context_;
  Workspace workspace_;
  std::map<AttentionExtents, std::optional<Plan>> forward_plans_;
  std::map<AttentionBackwardExtents, std::optional<Plan>> backward_plans_;
};

}  // namespace trireme::device::cudnn
