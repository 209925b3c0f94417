// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/layout/flat.hpp"
#include "trireme/layout/mesh.hpp"

#include "unit/checkpoint/support.hpp"

#include <deque>
#include <string>
#include <vector>

namespace trireme::tests {

/// How a run of the toy model is arranged.
struct Arrangement {
  int pipeline;
  int data;
  int tensor;
  int zero_level;
  int ranks() const { return pipeline * data * tensor; }
  std::string text() const {
    return "pp" + std::to_string(pipeline) + " dp" + std::to_string(data) + " tp" +
           std::to_string(tensor) + " zero" + std::to_string(zero_level);
  }
};

constexpr int toy_layers = 4;

struct ToyTensor {
  layout::TensorSpec spec;
  int layer;  ///< -1: on the first and on the last stage, as a tied embedding is
};

/// Dimensions that no degree divides, key-value heads fewer than ranks, tensors of one block, of
/// several, and small enough for the arena.
inline std::vector<ToyTensor> toy_tensors() {
  using layout::Axis;
  std::vector<ToyTensor> tensors{{{"embed", {1201, 33}, {{Axis::tensor, 0}}}, -1}};
  for (int layer = 0; layer < toy_layers; ++layer) {
    const auto name = "layers." + std::to_string(layer) + ".";
    const std::int64_t width = layer == 0 ? 1500 : 90;
    tensors.push_back({{name + "norm", {width}, {}}, layer});
    tensors.push_back({{name + "q", {26, width}, {{Axis::tensor, 0, 2}}}, layer});
    tensors.push_back({{name + "kv", {8, width}, {{Axis::tensor, 0, 4, 2}}}, layer});
    tensors.push_back({{name + "out", {width, 701}, {{Axis::tensor, 1}}}, layer});
    tensors.push_back({{name + "conv", {3, 5, 7, 11}, {{Axis::tensor, 2}}}, layer});
  }
  return tensors;
}

/// What one rank holds: parameters in bf16, whole on every data-parallel rank; master copies and
/// moments in fp32, at ZeRO level 1 only this rank's slice of the flat buffer.
class ToyState {
 public:
  ToyState(const Arrangement& arrangement, int rank)
      : arrangement_(arrangement),
        mesh_(layout::Mesh::of(arrangement.pipeline, arrangement.data, arrangement.tensor)),
        rank_(rank) {
    for (const auto& [spec, layer] : toy_tensors()) {
      if (!on_my_stage(layer)) continue;
      const auto box = layout::shard_box(spec, mesh_, rank_);
      add("model/" + spec.name, spec.shape, device::DType::bf16, box);
      for (const char* purpose : {"master/", "adam_m/"}) {
        for (const auto& part : optimizer_boxes(box)) {
          add(purpose + spec.name, spec.shape, device::DType::f32, part);
        }
      }
    }
  }

  std::vector<checkpoint::SaveItem> save_items() const {
    std::vector<checkpoint::SaveItem> items;
    for (const auto& each : held) items.push_back(each.item);
    return items;
  }
  std::vector<checkpoint::LoadItem> load_items() const {
    std::vector<checkpoint::LoadItem> items;
    for (const auto& each : held) items.push_back(each.wanted());
    return items;
  }
  void fill() {
    for (auto& each : held) each.fill();
  }
  void spoil() {
    for (auto& each : held) std::fill(each.memory.begin(), each.memory.end(), std::byte{0xEE});
  }
  std::int64_t wrong_elements() const {
    std::int64_t wrong = 0;
    for (const auto& each : held) wrong += each.wrong_elements();
    return wrong;
  }

  std::deque<Held> held;

 private:
  bool on_my_stage(int layer) const {
    const int stage = mesh_.coordinate(layout::Axis::pipeline, rank_);
    if (layer < 0) return stage == 0 || stage == arrangement_.pipeline - 1;
    return layer * arrangement_.pipeline / toy_layers == stage;
  }
  std::vector<layout::Box> optimizer_boxes(const layout::Box& box) const {
    if (arrangement_.zero_level == 0) return {box};
    const auto count = layout::element_count(box);
    const auto shards = arrangement_.data;
    const auto shard = mesh_.coordinate(layout::Axis::data, rank_);
    return layout::boxes_of_flat_range(box, count * shard / shards, count * (shard + 1) / shards);
  }
  void add(std::string name, layout::Shape shape, device::DType dtype, layout::Box box) {
    held.emplace_back(std::move(name), std::move(shape), dtype, std::move(box));
  }

  Arrangement arrangement_;
  layout::Mesh mesh_;
  base::Rank rank_;
};

inline const std::vector<Arrangement>& arrangements() {
  static const std::vector<Arrangement> all{{1, 1, 1, 0}, {1, 2, 1, 1}, {2, 1, 2, 0},
                                            {1, 3, 2, 1}, {2, 3, 1, 0}, {4, 1, 2, 1}};
  return all;
}

}  // namespace trireme::tests
