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

/// Flat buffer of one rank: all tensors of its stage, one after another.
class ToyBuffer {
 public:
  struct Entry {
    layout::TensorSpec spec;
    layout::Box box;
    bool primary;  ///< no other stage or tensor-parallel rank saves this box
  };

  ToyBuffer(const Arrangement& arrangement, int rank)
      : mesh_(layout::Mesh::of(arrangement.pipeline, arrangement.data, arrangement.tensor)),
        rank_(rank) {
    std::vector<std::int64_t> sizes;
    for (const auto& [spec, layer] : toy_tensors()) {
      if (!on_my_stage(layer)) continue;
      const auto box = layout::shard_box(spec, mesh_, rank_);
      entries.push_back({spec, box, is_primary(spec, layer, box)});
      boxes.push_back(box);
      sizes.push_back(layout::element_count(box));
    }
    constexpr std::int64_t bucket_elements = 20'000;
    flat = layout::flat_layout(sizes, arrangement.data, bucket_elements, 1);
  }

  int shard() const { return mesh_.coordinate(layout::Axis::data, rank_); }
  checkpoint::FileRange files() const {
    return {static_cast<std::size_t>(rank_.value()),
            static_cast<std::size_t>(std::max(1, mesh_.stride(layout::Axis::data))),
            static_cast<std::size_t>(mesh_.degree(layout::Axis::data))};
  }
  /// Tensors in a bucket that are saved from here.
  std::vector<std::size_t> saved_in(std::size_t bucket) const {
    std::vector<std::size_t> saved;
    for (std::size_t index = 0; index < entries.size(); ++index) {
      const auto range = flat.tensors[index];
      if (entries[index].primary && range.size() > 0 && range.begin < flat.buckets[bucket].end &&
          flat.buckets[bucket].begin < range.end) {
        saved.push_back(index);
      }
    }
    return saved;
  }

  std::vector<Entry> entries;
  std::vector<layout::Box> boxes;
  layout::FlatLayout flat;

 private:
  bool on_my_stage(int layer) const {
    const int stages = mesh_.degree(layout::Axis::pipeline);
    const int stage = mesh_.coordinate(layout::Axis::pipeline, rank_);
    if (layer < 0) return stage == 0 || stage == stages - 1;
    return layer * stages / toy_layers == stage;
  }
  bool is_primary(const layout::TensorSpec& spec, int layer, const layout::Box& box) const {
    if (layer < 0 && mesh_.coordinate(layout::Axis::pipeline, rank_) != 0) return false;
    for (int tensor = 0; tensor < mesh_.coordinate(layout::Axis::tensor, rank_); ++tensor) {
      const auto other = mesh_.moved(rank_, layout::Axis::tensor, tensor);
      if (layout::shard_box(spec, mesh_, other) == box) return false;
    }
    return true;
  }

  layout::Mesh mesh_;
  base::Rank rank_;
};

struct ToyPurpose {
  const char* prefix;
  device::DType dtype;
};
/// Parameters in bf16, master copies and moments in fp32.
inline const std::vector<ToyPurpose>& toy_purposes() {
  static const std::vector<ToyPurpose> purposes{{"model/", device::DType::bf16},
                                                {"master/", device::DType::f32},
                                                {"adam_m/", device::DType::f32}};
  return purposes;
}

/// Where a run of the toy model saves its state.
inline checkpoint::Contents toy_contents(const Arrangement& arrangement) {
  checkpoint::ContentsBuilder builder;
  for (int rank = 0; rank < arrangement.ranks(); ++rank) {
    const ToyBuffer buffer(arrangement, rank);
    if (buffer.shard() != 0) continue;
    for (const auto& [prefix, dtype] : toy_purposes()) {
      for (std::size_t bucket = 0; bucket < buffer.flat.buckets.size(); ++bucket) {
        const auto saved = buffer.saved_in(bucket);
        if (saved.empty()) continue;
        const auto range = buffer.flat.buckets[bucket];
        const auto number =
            builder.add_bucket(dtype, buffer.files(), range.size() / arrangement.data);
        for (const auto index : saved) {
          const auto& [spec, box, primary] = buffer.entries[index];
          builder.add_part(prefix + spec.name, spec.shape, box, number,
                           buffer.flat.tensors[index].begin - range.begin);
        }
      }
    }
  }
  return builder.take();
}

/// State of one rank: parameters whole on every data-parallel rank; at ZeRO level 1 master copies
/// and moments only of its shard of every bucket.
class ToyState {
 public:
  ToyState(const Arrangement& arrangement, int rank)
      : arrangement_(arrangement), buffer_(arrangement, rank) {
    for (const auto& [prefix, dtype] : toy_purposes()) {
      if (arrangement.zero_level == 0 || dtype == device::DType::bf16) {
        for (const auto& [spec, box, primary] : buffer_.entries) {
          held.emplace_back(prefix + spec.name, spec.shape, dtype, box);
        }
      } else {
        for (const auto& [index, box, begin] : my_pieces()) {
          const auto& spec = buffer_.entries[index].spec;
          held.emplace_back(prefix + spec.name, spec.shape, dtype, box);
        }
      }
    }
  }

  /// Everything that checkpoint::save needs of this rank.
  checkpoint::SaveRequest request(const std::filesystem::path& folder, std::int64_t step,
                                  std::uint64_t tokens = 0, base::Json state = {}) {
    return {folder, step, tokens, "test", std::move(state), toy_contents(arrangement_), shards()};
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
  std::vector<layout::FlatBox> my_pieces() const {
    return layout::pieces_of_shard(buffer_.flat, buffer_.boxes, buffer_.shard());
  }
  /// Memory of this rank's shards, in the order of toy_contents(), with what is held.
  std::vector<device::Tensor> shards() {
    memory_.clear();
    std::vector<device::Tensor> shards;
    for (const auto& [prefix, dtype] : toy_purposes()) {
      for (std::size_t bucket = 0; bucket < buffer_.flat.buckets.size(); ++bucket) {
        if (buffer_.saved_in(bucket).empty()) continue;
        const auto range = buffer_.flat.shard_of_bucket(bucket, buffer_.shard());
        auto& memory = memory_.emplace_back(
            static_cast<std::size_t>(range.size()) * device::size_of(dtype), std::byte{0xCC});
        for (const auto& [index, box, begin] : my_pieces()) {
          if (begin < range.begin || begin >= range.end) continue;
          copy_held(
              prefix + buffer_.entries[index].spec.name, box,
              &memory[static_cast<std::size_t>(begin - range.begin) * device::size_of(dtype)]);
        }
        shards.push_back({memory.data(), dtype, {range.size()}});
      }
    }
    return shards;
  }
  /// Copies the elements of a box from the box of that tensor which holds it.
  void copy_held(const std::string& name, const layout::Box& box, std::byte* to) const {
    for (const auto& each : held) {
      if (each.name != name || layout::intersect(each.box, box) != box) continue;
      const auto size = device::size_of(each.data.dtype());
      for (const auto& run : layout::copy_runs(each.box, box)) {
        std::memcpy(to + static_cast<std::size_t>(run.destination) * size,
                    &each.memory[static_cast<std::size_t>(run.source) * size],
                    static_cast<std::size_t>(run.count) * size);
      }
      return;
    }
  }

  Arrangement arrangement_;
  ToyBuffer buffer_;
  std::deque<std::vector<std::byte>> memory_;
};

inline const std::vector<Arrangement>& arrangements() {
  static const std::vector<Arrangement> all{{1, 1, 1, 0}, {1, 2, 1, 1}, {2, 1, 2, 0},
                                            {1, 3, 2, 1}, {2, 3, 1, 0}, {4, 1, 2, 1}};
  return all;
}

}  // namespace trireme::tests
