// SPDX-License-Identifier: Apache-2.0
#include "trireme/model/stage_parameters.hpp"

#include "trireme/base/contract.hpp"

#include "bucket_order.hpp"

#include <algorithm>
#include <utility>

namespace trireme::model {
namespace {

using layout::Axis;

/// Coordinates of a rank along tp that see different boxes of this parameter.
int distinct_parts(const Parameter& parameter, const layout::Mesh& mesh) {
  return mesh.degree(Axis::tensor) / layout::replica_count(parameter.tensor, mesh, Axis::tensor);
}

bool gradient_is_partial(const Parameter& parameter, const StagePlace& place) {
  if (place.mesh.degree(Axis::tensor) == 1) return false;
  switch (parameter.gradient) {
    case TensorGradient::complete:
      return false;
    case TensorGradient::partial_in_sequence:
      return place.sequence_parallel == SequenceParallel::on;
    case TensorGradient::partial_in_heads:
      return true;
    case TensorGradient::partial_in_replicas:
      return layout::replica_count(parameter.tensor, place.mesh, Axis::tensor) > 1;
  }
  return false;
}

ShardPiece make_shard_piece(const Parameter& parameter, std::size_t index,
                            const StagePlace& place) {
  const int replicas = layout::replica_count(parameter.tensor, place.mesh, Axis::tensor);
  const int coordinate = place.mesh.coordinate(Axis::tensor, place.rank);
  ShardPiece piece;
  piece.parameter = index;
  piece.box = layout::shard_box(parameter.tensor, place.mesh, place.rank);
  piece.parts = distinct_parts(parameter, place.mesh);
  piece.part = coordinate / replicas;
  piece.primary = coordinate % replicas == 0;
  const bool has_term = gradient_is_partial(parameter, place);
  piece.partial = has_term || replicas > 1;
  piece.contributes = has_term || piece.primary;
  return piece;
}

/// Elements of a tensor that tensor-parallel ranks hold: the fewest and the most.
std::pair<std::int64_t, std::int64_t> held_elements(const layout::TensorSpec& tensor,
                                                    const layout::Mesh& mesh) {
  std::pair<std::int64_t, std::int64_t> held{INT64_MAX, 0};
  for (const auto rank : mesh.group(Axis::tensor, base::Rank{0})) {
    const auto count = layout::element_count(layout::shard_box(tensor, mesh, rank));
    held = {std::min(held.first, count), std::max(held.second, count)};
  }
  return held;
}

}  // namespace

StageParameters::StageParameters(const ModelConfig& config, const StagePlace& place,
                                 std::int64_t bucket_elements, const MatrixOwning& owning,
                                 BucketBorders borders)
    : config_(config),
      selection_(owning.selection),
      borders_(borders),
      parameters_(model::parameters(config)),
      renewal_turns_(renewal_turns(parameters_, owning.cost, owning.selection)) {
  const int first_stage = place.placement().first_stage();
  const int last_stage = place.placement().last_stage();
  const int stage = place.mesh.coordinate(Axis::pipeline, place.rank);
  const bool shared = config.tie_word_embeddings && last_stage != first_stage;
  // Backward order: the last chunk first, and within a chunk from the head down.
  if (stage == last_stage) {
    collect(place, {Place::Kind::head, 0}, false);
    if (shared) collect(place, {Place::Kind::embedding, 0}, true);
  }
  for (auto chunk = place.chunks.rbegin(); chunk != place.chunks.rend(); ++chunk) {
    for (int layer = chunk->end - 1; layer >= chunk->begin; --layer) {
      collect(place, {Place::Kind::layer, layer}, false);
    }
  }
  if (stage == first_stage) collect(place, {Place::Kind::embedding, 0}, shared);
  for (auto& fused : fused_parameters_) {
    fused.owned =
        owning.cost && is_rule_matrix(parameters_[fused.pieces.front().parameter], selection_);
  }
  order_and_place(place.mesh, bucket_elements, owning);
  if (shared && stage == last_stage) {
    // The first stage counts the tied table.
    for (auto& piece : fused_parameters_[index_.find("embedding.weight")->second].pieces) {
      piece.primary = false;
    }
  }
}

/// Adds the fused parameters of one part of the model. The last stage takes of a tied embedding the
/// token table alone.
void StageParameters::collect(const StagePlace& place, const Place& part, bool tied) {
  const bool last_stage_copy =
      tied && place.mesh.coordinate(Axis::pipeline, place.rank) != place.placement().first_stage();
  const auto first = fused_parameters_.size();
  for (std::size_t index = 0; index < parameters_.size(); ++index) {
    const auto& parameter = parameters_[index];
    if (parameter.place != part) continue;
    const bool is_table = parameter.tensor.name == "embedding.weight";
    if (last_stage_copy && !is_table) continue;
    auto piece = make_shard_piece(parameter, index, place);
    if (fused_parameters_.size() == first ||
        fused_parameters_.back().name != parameter.fused_name) {
      FusedParameter fused;
      fused.name = parameter.fused_name;
      fused.place = part;
      fused.decays = parameter.decays;
      fused.tied = tied && is_table;
      fused.deferred = fused.tied;
      fused_parameters_.push_back(std::move(fused));
    }
    auto& fused = fused_parameters_.back();
    fused.rows += piece.box.length[0];
    fused.columns = piece.box.length.size() == 2 ? piece.box.length[1] : 0;
    fused.deferred = fused.deferred || piece.partial;
    fused.pieces.push_back(std::move(piece));
  }
}

/// Places of matrices with owners: those of a plan. The same on all tensor-parallel ranks, each of
/// which has room for what any of them holds. Pieces of a fused parameter have owners of their own
/// where a shard may end between them: where they are as long on all ranks and end at multiples of
/// the alignment.
layout::FlatLayout StageParameters::owned_layout(std::span<const FusedParameter> matrices,
                                                 const layout::Mesh& mesh,
                                                 std::int64_t bucket_elements,
                                                 const MatrixOwning& owning) {
  std::vector<ownership::OwnedTensor> tensors;
  std::vector<std::size_t> first_of;      // [matrix]: its first tensor
  std::vector<std::size_t> parameter_of;  // [tensor]
  const FusedParameter* before = nullptr;
  for (const auto& fused : matrices) {
    const bool begins_unit =
        borders_ == BucketBorders::units && before != nullptr && before->place != fused.place;
    before = &fused;
    first_of.push_back(tensors.size());
    bool apart = true;
    for (const auto& piece : fused.pieces) {
      const auto [fewest, most] = held_elements(parameters_[piece.parameter].tensor, mesh);
      apart = apart && fewest == most && most % parameter_alignment == 0;
    }
    for (const auto& piece : fused.pieces) {
      const auto& parameter = parameters_[piece.parameter];
      const auto& tensor = parameter.tensor;
      const ownership::MatrixShape shape{tensor.shape[0], tensor.shape[1]};
      const bool is_first = &piece == &fused.pieces.front();
      if (is_first || apart) {
        auto& owned = tensors.emplace_back();
        owned.name = tensor.name;
        owned.shape = shape;
        owned.joined = !is_first;
        owned.begins_bucket = is_first && begins_unit;
        parameter_of.push_back(piece.parameter);
      }
      auto cost = cost_of(owning.cost, shape, blocks_of(parameter));
      tensors.back().flops += cost.flops;
      if (apart || fused.pieces.size() == 1) tensors.back().split = std::move(cost.split);
      if (cost.renewal.flops > 0) {
        tensors.back().renewals.push_back(cost.renewal.at(renewal_turn(piece)));
      }
      tensors.back().held_elements += held_elements(tensor, mesh).second;
    }
  }
  ownership::PlanOptions options;
  options.data = mesh.degree(layout::replica_axes);
  options.bucket_elements = bucket_elements;
  options.alignment = parameter_alignment;
  const auto plan = ownership::make_plan(tensors, options, owning.assignment);
  for (const auto& owner : plan.matrices) {
    if (owner.is_shared()) shared_.emplace(parameter_of[owner.tensor], owner);
  }
  return flat_of_owners(matrices, first_of, plan);
}

const ownership::MatrixOwner* StageParameters::sharing_of(const ShardPiece& piece) const {
  const auto found = shared_.find(piece.parameter);
  return found == shared_.end() ? nullptr : &found->second;
}

std::int64_t StageParameters::blocks_of(const Parameter& parameter) const {
  return model::blocks_of(parameter, config_, selection_);
}

void StageParameters::order_and_place(const layout::Mesh& mesh, std::int64_t bucket_elements,
                                      const MatrixOwning& owning) {
  std::stable_sort(fused_parameters_.begin(), fused_parameters_.end(),
                   [](const FusedParameter& a, const FusedParameter& b) {
                     return bucket_class(a) < bucket_class(b);
                   });
  const int shards = mesh.degree(layout::replica_axes);
  auto next = fused_parameters_.cbegin();
  flat_ = layout::flat_layout({}, shards, bucket_elements, parameter_alignment);
  for (const auto kind : bucket_classes) {
    // The tied table is laid out alone, so that its bucket has the same shards on both stages that
    // hold it.
    if (kind == BucketClass::tied) first_tied_bucket_ = flat_.buckets.size();
    const auto begin = next;
    next = std::find_if(begin, fused_parameters_.cend(),
                        [&](const FusedParameter& fused) { return bucket_class(fused) != kind; });
    if (begin == next) continue;
    const std::span<const FusedParameter> members(begin, next);
    flat_ = concatenated(flat_, has_owners(kind)
                                    ? owned_layout(members, mesh, bucket_elements, owning)
                                    : flat_of_elements(members, borders_, shards, bucket_elements));
    owned_buckets_.resize(flat_.buckets.size(), has_owners(kind));
  }
  fused_of_bucket_.resize(flat_.buckets.size());
  for (std::size_t index = 0; index < fused_parameters_.size(); ++index) {
    const auto buckets = flat_.buckets_of_tensor(index);
    for (auto bucket = buckets.begin; bucket < buckets.end; ++bucket) {
      fused_of_bucket_[static_cast<std::size_t>(bucket)].push_back(index);
    }
    auto& fused = fused_parameters_[index];
    auto begin = flat_.tensors[index].begin;
    for (auto& piece : fused.pieces) {
      piece.flat = {begin, begin + layout::element_count(piece.box)};
      begin = piece.flat.end;
    }
    const bool unique = index_.emplace(fused.name, index).second;
    TRIREME_ENSURE(unique, "two fused parameters are called " + fused.name);
  }
}

std::vector<std::size_t> StageParameters::fused_in(layout::FlatRange range) const {
  const auto first = std::partition_point(
      flat_.buckets.begin(), flat_.buckets.end(),
      [&](const layout::FlatRange& bucket) { return bucket.end <= range.begin; });
  std::vector<std::size_t> found;
  for (auto bucket = first; bucket != flat_.buckets.end() && bucket->begin < range.end; ++bucket) {
    const auto& here = fused_of_bucket_[static_cast<std::size_t>(bucket - flat_.buckets.begin())];
    found.insert(found.end(), here.begin(), here.end());
  }
  // A tensor may lie in several buckets.
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

std::int64_t StageParameters::element_count() const {
  std::int64_t count = 0;
  for (const auto& fused : fused_parameters_) count += fused.element_count();
  return count;
}

void StageParameters::bind(const device::Tensor& parameters, const device::Tensor& gradients) {
  bind(std::vector<Region>{{{0, flat_.size}, parameters, gradients}});
}

void StageParameters::bind(std::vector<Region> regions) {
  regions_ = std::move(regions);
}

bool StageParameters::holds(std::string_view name) const {
  return index_.find(name) != index_.end();
}

device::Tensor StageParameters::view(std::string_view name, device::Tensor Region::*kind) const {
  const auto found = index_.find(name);
  if (found == index_.end()) return {};
  const auto& held = fused_parameters_[found->second];
  const auto begin = flat_.tensors[found->second].begin;
  const auto region = std::find_if(regions_.begin(), regions_.end(), [&](const Region& each) {
    return each.range.begin <= begin && begin + held.element_count() <= each.range.end;
  });
  if (region == regions_.end() || !((*region).*kind)) return {};
  const auto part = ((*region).*kind).slice(0, begin - region->range.begin, held.element_count());
  return held.columns == 0 ? part : part.reshape({held.rows, held.columns});
}

device::Tensor StageParameters::parameter(std::string_view name) const {
  return view(name, &Region::parameters);
}

device::Tensor StageParameters::gradient(std::string_view name) const {
  return view(name, &Region::gradients);
}

}  // namespace trireme::model
