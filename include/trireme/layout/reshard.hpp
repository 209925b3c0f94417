#pragma once

#include "trireme/base/result.hpp"
#include "trireme/layout/box.hpp"

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace trireme::layout {

/// A box of one tensor at one rank: what it holds, or what it wants.
struct PlacedBox {
  base::Rank rank;
  Box box;
  bool operator==(const PlacedBox&) const = default;
};

/// One part of what a rank wants: `box`, which lies inside `held`, which rank `source` holds.
struct Read {
  base::Rank source;
  Box held;
  Box box;
  bool operator==(const Read&) const = default;
};

/// Elements read from each source rank so far. Carried over the tensors of a model, it spreads the
/// reads of all of them; it grows as ranks are met.
using SourceLoad = std::vector<std::int64_t>;

/// For each wanted box the reads that fill it, each element once. What a rank holds itself it reads
/// from itself; of several ranks that hold the same box, the one with the least load is read.
/// Held boxes may overlap in any way. Wanted elements that nobody holds are a failure
/// (ExitCode::checkpoint) that names the tensor and the box.
base::Result<std::vector<std::vector<Read>>> plan_reads(std::string_view tensor,
                                                        std::span<const PlacedBox> held,
                                                        std::span<const PlacedBox> wanted,
                                                        SourceLoad& load);

/// A mesh, and the pipeline coordinates that hold a tensor: one for a layer's weight, the first and
/// the last for tied embeddings, empty for all.
struct Residence {
  Mesh mesh;
  std::vector<int> stages;
};

/// The boxes of a tensor at the ranks that hold it, in the order of the ranks.
std::vector<PlacedBox> placed_boxes(const TensorSpec& spec, const Residence& residence);

/// A tensor's moves from one layout to another: result[rank] are the reads of that rank of the
/// destination, empty for ranks that do not hold the tensor there.
base::Result<std::vector<std::vector<Read>>> reshard(const TensorSpec& spec,
                                                     const Residence& source,
                                                     const Residence& destination,
                                                     SourceLoad& load);

}  // namespace trireme::layout
