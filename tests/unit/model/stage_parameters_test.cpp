// SPDX-License-Identifier: Apache-2.0
#include "trireme/model/stage_parameters.hpp"

#include "unit/model/published.hpp"

#include <catch2/catch.hpp>

#include <map>

using namespace trireme;
using namespace trireme::tests;

namespace {

model::ModelConfig small(bool tied) {
  auto config = llama3_8b();
  config.vocab_size = 101;
  config.hidden_size = 16;
  config.intermediate_size = 23;
  config.num_hidden_layers = 4;
  config.num_attention_heads = 4;
  config.num_key_value_heads = 2;
  config.head_dim = 4;
  config.tie_word_embeddings = tied;
  return config;
}

model::StageParameters stage_of(const model::ModelConfig& config, const layout::Mesh& mesh,
                                int rank, const model::CostOfMatrix& cost = {},
                                ownership::Assignment assignment = ownership::Assignment::padded) {
  const auto ranges =
      layout::assign_layers(config.num_hidden_layers, {mesh.degree(layout::Axis::pipeline), 1}, {})
          .value();
  const auto stage = mesh.coordinate(layout::Axis::pipeline, base::Rank{rank});
  return {config,
          {mesh, base::Rank{rank}, ranges[static_cast<std::size_t>(stage)]},
          1024,
          {cost, {}, assignment}};
}

/// Initial value of every element of every parameter, as this rank has it.
void collect(const model::StageParameters& stage, std::map<std::string, float>& values) {
  std::vector<float> flat(static_cast<std::size_t>(stage.flat().size), -7.0F);
  model::initialise(stage, 5, {0, stage.flat().size},
                    device::Tensor(flat.data(), device::DType::f32, {stage.flat().size}));
  for (const auto& fused : stage.fused_parameters()) {
    for (const auto& piece : fused.pieces) {
      const auto& tensor = stage.parameters()[piece.parameter].tensor;
      const std::int64_t width = tensor.shape.size() == 2 ? tensor.shape[1] : 1;
      const std::int64_t columns = tensor.shape.size() == 2 ? piece.box.length[1] : 1;
      const std::int64_t first = tensor.shape.size() == 2 ? piece.box.offset[1] : 0;
      for (std::int64_t i = 0; i < piece.flat.size(); ++i) {
        const auto element = (piece.box.offset[0] + i / columns) * width + first + i % columns;
        const auto key = tensor.name + "#" + std::to_string(element);
        const float value = flat[static_cast<std::size_t>(piece.flat.begin + i)];
        const auto [found, is_new] = values.emplace(key, value);
        if (!is_new && found->second != value) FAIL(key << " differs between ranks");
      }
    }
  }
}

}  // namespace

TEST_CASE("initial values do not depend on the layout, and every element has one") {
  for (const bool tied : {false, true}) {
    const auto config = small(tied);
    std::map<std::string, float> serial;
    collect(stage_of(config, layout::Mesh::of(1, 1, 1), 0), serial);
    CHECK(static_cast<std::int64_t>(serial.size()) == model::parameter_count(config));
    for (const auto& mesh : {layout::Mesh::of(2, 3, 2), layout::Mesh::of(4, 1, 4)}) {
      std::map<std::string, float> parallel;
      for (int rank = 0; rank < mesh.world_size(); ++rank) {
        collect(stage_of(config, mesh, rank), parallel);
      }
      CHECK(parallel == serial);
    }
  }
}

TEST_CASE("exactly one rank of a replica is primary for every element") {
  for (const bool tied : {false, true}) {
    const auto config = small(tied);
    const auto mesh = layout::Mesh::of(2, 1, 4);
    std::int64_t primary = 0;
    for (int rank = 0; rank < mesh.world_size(); ++rank) {
      const auto stage = stage_of(config, mesh, rank);
      for (const auto& fused : stage.fused_parameters()) {
        for (const auto& piece : fused.pieces) primary += piece.primary ? piece.flat.size() : 0;
      }
    }
    CHECK(primary == model::parameter_count(config));
  }
}

TEST_CASE("deferred parameters lie in buckets of their own at the end") {
  const auto stage = stage_of(small(true), layout::Mesh::of(2, 2, 4), 0);
  std::int64_t others_end = 0;
  auto deferred_begin = std::ssize(stage.flat().buckets);
  for (std::size_t index = 0; index < stage.fused_parameters().size(); ++index) {
    const auto buckets = stage.flat().buckets_of_tensor(index);
    if (stage.fused_parameters()[index].deferred) {
      deferred_begin = std::min(deferred_begin, buckets.begin);
    } else {
      others_end = std::max(others_end, buckets.end);
    }
  }
  CHECK(others_end == deferred_begin);
  CHECK(deferred_begin < std::ssize(stage.flat().buckets));
}

namespace {

/// Shards of the bucket that have all of the range.
int holders_of(const layout::FlatLayout& flat, std::size_t bucket, layout::FlatRange range) {
  int shards = 0;
  for (int shard = 0; shard < flat.shards; ++shard) {
    const auto part = flat.shard_of_bucket(bucket, shard);
    shards += part.begin <= range.begin && range.end <= part.end ? 1 : 0;
  }
  return shards;
}

/// Returns the fused parameters whose pieces lie in two shards.
int check_owned(const model::StageParameters& stage) {
  const auto& flat = stage.flat();
  std::vector<int> holders(static_cast<std::size_t>(flat.size), 0);
  int divided = 0;
  std::int64_t owned = 0;
  for (std::size_t index = 0; index < stage.fused_parameters().size(); ++index) {
    const auto& fused = stage.fused_parameters()[index];
    const auto range = flat.tensors[index];
    for (auto at = range.begin; at < range.end; ++at) ++holders[static_cast<std::size_t>(at)];
    CHECK(range.size() == fused.element_count());
    CHECK(fused.pieces.front().flat.begin == range.begin);
    const auto buckets = flat.buckets_of_tensor(index);
    REQUIRE(buckets.size() == 1);
    const auto bucket = static_cast<std::size_t>(buckets.begin);
    CHECK(stage.is_owned(bucket) == fused.owned);
    CHECK(fused.owned == (fused.columns > 0 && fused.place.kind == model::Place::Kind::layer));
    if (!fused.owned) continue;
    owned += fused.element_count();
    for (const auto& piece : fused.pieces) CHECK(holders_of(flat, bucket, piece.flat) == 1);
    divided += holders_of(flat, bucket, range) == 0 ? 1 : 0;
  }
  CHECK(owned > 0);
  CHECK(*std::max_element(holders.begin(), holders.end()) == 1);
  CHECK(flat.buckets.back().end == flat.size);
  return divided;
}

}  // namespace

TEST_CASE("each matrix that a rule updates lies whole in one shard, and nothing overlaps") {
  for (const auto assignment : {ownership::Assignment::padded, ownership::Assignment::contiguous}) {
    for (const bool tied : {false, true}) {
      for (const auto& mesh :
           {layout::Mesh::of(1, 1, 1), layout::Mesh::of(2, 3, 1), layout::Mesh::of(1, 7, 1)}) {
        CAPTURE(ownership::name(assignment), tied, mesh.text());
        // No shard ends inside of gate and up, each of 23 x 16 elements, which is no multiple of
        // the alignment.
        check_owned(stage_of(small(tied), mesh, 0, model::muon_cost, assignment));
        auto aligned = small(tied);
        aligned.intermediate_size = 128;
        const auto divided = check_owned(stage_of(aligned, mesh, 0, model::muon_cost, assignment));
        if (mesh.degree(layout::Axis::data) == 7) CHECK(divided > 0);
        if (mesh.degree(layout::Axis::data) == 1) CHECK(divided == 0);
      }
    }
  }
}

TEST_CASE("buckets of a contiguous plan follow backward, and its shards have no padding") {
  auto config = small(false);
  config.intermediate_size = 128;
  const auto mesh = layout::Mesh::of(1, 3, 1);
  const auto stage = stage_of(config, mesh, 0, model::muon_cost, ownership::Assignment::contiguous);
  const auto& flat = stage.flat();
  std::int64_t owned = 0;
  std::int64_t length = 0;
  int ragged = 0;
  for (std::size_t bucket = 0; bucket < flat.buckets.size(); ++bucket) {
    CHECK(flat.cuts_of_bucket(bucket).empty() != stage.is_owned(bucket));
    if (!stage.is_owned(bucket)) continue;
    length += flat.buckets[bucket].size();
    const auto first = flat.shard_of_bucket(bucket, 0).size();
    for (int shard = 1; shard < flat.shards; ++shard) {
      ragged += flat.shard_of_bucket(bucket, shard).size() != first ? 1 : 0;
    }
  }
  std::int64_t last = 0;
  for (std::size_t index = 0; index < stage.fused_parameters().size(); ++index) {
    const auto& fused = stage.fused_parameters()[index];
    if (!fused.owned) continue;
    CHECK(flat.buckets_of_tensor(index).begin >= last);
    last = flat.buckets_of_tensor(index).begin;
    owned += fused.element_count();
  }
  CHECK(last > 0);
  CHECK(length == owned);
  CHECK(ragged > 0);
  CHECK(stage_of(config, mesh, 0, model::muon_cost).flat().cuts.empty());
}

TEST_CASE("owners of matrices change no initial value") {
  const auto config = small(false);
  std::map<std::string, float> serial;
  collect(stage_of(config, layout::Mesh::of(1, 1, 1), 0), serial);
  std::map<std::string, float> owned;
  collect(stage_of(config, layout::Mesh::of(1, 3, 1), 0, model::muon_cost), owned);
  CHECK(owned == serial);
}

TEST_CASE("pieces of a range are those that a scan of all finds, in the order of the parameters") {
  const model::CostOfMatrix cost = [](const ownership::MatrixShape& shape) {
    return model::MatrixCost{static_cast<double>(shape.rows * shape.columns), {}};
  };
  using Found = std::vector<std::pair<const model::ShardPiece*, layout::FlatRange>>;
  for (const auto& mesh : {layout::Mesh::of(1, 1, 1), layout::Mesh::of(2, 3, 2)}) {
    for (const bool has_owners : {false, true}) {
      const auto stage = stage_of(small(true), mesh, 0, has_owners ? cost : model::CostOfMatrix{},
                                  ownership::Assignment::contiguous);
      REQUIRE(stage.flat().buckets.size() > 2);
      // Shorter and longer than buckets, empty, and all of it.
      const auto size = stage.flat().size;
      for (const std::int64_t length :
           {std::int64_t{0}, std::int64_t{1}, std::int64_t{700}, size / 3, size}) {
        for (std::int64_t begin = 0; begin + length <= size; begin += 97) {
          const layout::FlatRange range{begin, begin + length};
          Found scanned;
          for (const auto& fused : stage.fused_parameters()) {
            for (const auto& piece : fused.pieces) {
              const layout::FlatRange common{std::max(range.begin, piece.flat.begin),
                                             std::min(range.end, piece.flat.end)};
              if (common.begin < common.end) scanned.emplace_back(&piece, common);
            }
          }
          Found found;
          stage.each_piece(range, [&](const model::ShardPiece& piece, layout::FlatRange common) {
            found.emplace_back(&piece, common);
          });
          if (found != scanned) FAIL("elements " << range.begin << " to " << range.end);
        }
      }
    }
  }
}

TEST_CASE("a matrix has one turn on every stage and rank") {
  const auto config = small(true);
  const model::CostOfMatrix cost = [](const ownership::MatrixShape& shape) {
    const auto work = static_cast<double>(shape.rows * shape.columns);
    return model::MatrixCost{work, {}, {work, 3, 0}};
  };
  std::map<std::string, std::int64_t> turns;
  int matrices = 0;
  for (const auto& mesh : {layout::Mesh::of(1, 1, 1), layout::Mesh::of(2, 2, 2)}) {
    for (int rank = 0; rank < mesh.world_size(); ++rank) {
      const auto stage = stage_of(config, mesh, rank, cost);
      for (const auto& fused : stage.fused_parameters()) {
        if (!fused.owned) continue;
        for (const auto& piece : fused.pieces) {
          const auto& name = stage.parameters()[piece.parameter].tensor.name;
          const auto turn = stage.renewal_turn(piece);
          CHECK(turns.emplace(name, turn).first->second == turn);
          ++matrices;
        }
      }
    }
  }
  CHECK(turns.size() == 28);
  CHECK(matrices == 28 + 4 * 28);
}
