#include "ownership.hpp"

#include "trireme/base/contract.hpp"
#include "trireme/base/philox.hpp"

#include <algorithm>

namespace trireme::engine {
namespace {

/// Where elements from `begin` of the flat buffer on lie in the piece's tensor.
device::StochasticRounding place_in_tensor(const model::StageParameters& stage,
                                           const model::Piece& piece, std::int64_t begin) {
  const auto& tensor = stage.parameters()[piece.parameter].tensor;
  const auto& [offset, length] = piece.box;
  TRIREME_EXPECT(length.size() == 1 || length.size() == 2, "parameters are vectors and matrices");
  device::StochasticRounding place;
  place.stream = base::stream_of(tensor.name);
  place.begin = begin - piece.flat.begin;
  place.width = length.back();
  place.stride = tensor.shape.back();
  place.first = length.size() == 1 ? offset[0] : offset[0] * place.stride + offset[1];
  return place;
}

class Collector {
 public:
  Collector(const model::StageParameters& stage, optim::ParameterRounding rounding)
      : stage_(stage), rounding_(rounding) {}

  void add(layout::FlatRange owned) {
    for (const auto& slab : stage_.slabs()) {
      switch (rounding_) {
        case optim::ParameterRounding::nearest:
          add_run(owned, {slab.pieces.front().flat.begin, slab.pieces.back().flat.end}, slab);
          break;
        case optim::ParameterRounding::stochastic:
          // A run of one tensor each.
          for (const auto& piece : slab.pieces) add_piece(owned, piece, slab);
          break;
      }
    }
    ownership_.state_size += owned.size();
  }
  Ownership take() { return std::move(ownership_); }

 private:
  /// Whether there is a run in both; the last segment is it then.
  bool add_run(layout::FlatRange owned, layout::FlatRange run, const model::Slab& slab) {
    const auto begin = std::max(owned.begin, run.begin);
    const auto end = std::min(owned.end, run.end);
    if (begin >= end) return false;
    const auto state_begin = ownership_.state_size + begin - owned.begin;
    ownership_.segments.push_back({{begin, end}, state_begin, slab.decays});
    return true;
  }
  void add_piece(layout::FlatRange owned, const model::Piece& piece, const model::Slab& slab) {
    if (!add_run(owned, piece.flat, slab)) return;
    auto& segment = ownership_.segments.back();
    segment.place = place_in_tensor(stage_, piece, segment.flat.begin);
  }

  const model::StageParameters& stage_;
  optim::ParameterRounding rounding_;
  Ownership ownership_;
};

}  // namespace

Ownership ownership_of(const EngineOptions& options, const model::StageParameters& stage,
                       int data_rank) {
  Collector collector(stage, options.rule.rounding);
  if (options.zero_level == 0) {
    collector.add({0, stage.flat().size});
    return collector.take();
  }
  for (std::size_t bucket = 0; bucket < stage.flat().buckets.size(); ++bucket) {
    collector.add(stage.flat().shard_of_bucket(bucket, data_rank));
  }
  return collector.take();
}

}  // namespace trireme::engine
