// SPDX-License-Identifier: Apache-2.0
#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"
#include "trireme/checkpoint/items.hpp"

#include "checkpoint/manifest/check.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>

namespace trireme::checkpoint {
namespace {

/// Replicated boxes are cut into shard pieces of a sixteenth of what a rank will write, so that
/// ranks differ by no more than that; but none below 1 MiB, because each becomes a dataset.
constexpr std::int64_t pieces_per_rank = 16;
constexpr std::int64_t min_piece_bytes = std::int64_t{1} << 20;

struct Holder {
  std::size_t rank;
  std::size_t item;
};

using BoxKey = std::pair<layout::Shape, layout::Shape>;

struct Tensor {
  const HeldBox* first;
  std::size_t first_rank;
  std::map<BoxKey, std::vector<Holder>> boxes;
};

/// A box that exactly one of the holders writes.
struct Task {
  std::int64_t bytes;
  layout::Box box;
  const std::vector<Holder>* holders;
};

void check_same(const Tensor& tensor, const HeldBox& held, std::size_t rank) {
  if (tensor.first->shape == held.shape && tensor.first->dtype == held.dtype) return;
  throw base::Error(
      base::ExitCode::internal,
      base::format("tensor '{}' is {} [{}] on rank {} but {} [{}] on rank {} (all ranks must "
                   "describe one tensor alike)",
                   held.name, device::name(tensor.first->dtype),
                   base::join(tensor.first->shape, ", "), tensor.first_rank,
                   device::name(held.dtype), base::join(held.shape, ", "), rank));
}

std::map<std::string_view, Tensor> collect(const std::vector<std::vector<HeldBox>>& held) {
  std::map<std::string_view, Tensor> tensors;
  for (std::size_t rank = 0; rank < held.size(); ++rank) {
    for (std::size_t item = 0; item < held[rank].size(); ++item) {
      const auto& here = held[rank][item];
      auto& tensor = tensors.try_emplace(here.name, Tensor{&here, rank, {}}).first->second;
      check_same(tensor, here, rank);
      auto& holders = tensor.boxes[{here.box.offset, here.box.length}];
      // A rank that names a box twice still holds it once.
      if (holders.empty() || holders.back().rank != rank) holders.push_back({rank, item});
    }
  }
  return tensors;
}

void check(const std::map<std::string_view, Tensor>& tensors) {
  const auto defect = [](const base::Status& status) {
    if (!status) throw base::Error(base::ExitCode::internal, status.failure().text);
  };
  for (const auto& [name, tensor] : tensors) {
    defect(check_name(name));
    defect(check_shape(name, tensor.first->shape));
    std::vector<layout::Box> boxes;
    for (const auto& [key, holders] : tensor.boxes) boxes.push_back({key.first, key.second});
    defect(check_tiling(name, tensor.first->shape, boxes));
    // Name conflict: in master.h5 the shorter name would have to be a dataset and a group at once.
    for (auto at = name.find('/'); at != std::string::npos; at = name.find('/', at + 1)) {
      if (!tensors.contains(name.substr(0, at))) continue;
      throw base::Error(base::ExitCode::internal,
                        base::format("tensor name '{}' begins with the name of tensor '{}'", name,
                                     name.substr(0, at)));
    }
  }
}

std::int64_t bytes_of(const Tensor& tensor, const layout::Box& box) {
  return layout::element_count(box) *
         static_cast<std::int64_t>(device::size_of(tensor.first->dtype));
}

std::int64_t piece_bytes(const std::map<std::string_view, Tensor>& tensors, std::size_t ranks) {
  std::int64_t bytes = 0;
  for (const auto& [name, tensor] : tensors) {
    bytes += bytes_of(tensor, layout::whole(tensor.first->shape));
  }
  return std::max(min_piece_bytes, bytes / static_cast<std::int64_t>(ranks) / pieces_per_rank);
}

void add_tasks(const Tensor& tensor, std::int64_t piece_bytes, std::vector<Task>& tasks) {
  for (const auto& [key, holders] : tensor.boxes) {
    const layout::Box box{key.first, key.second};
    // Along the first dimension that has a length, a piece stays contiguous in the box.
    std::size_t along = 0;
    while (along + 1 < box.length.size() && box.length[along] == 1) ++along;
    const auto length = box.length[along];
    const auto pieces = holders.size() == 1 ? 1
                                            : std::clamp<std::int64_t>(
                                                  bytes_of(tensor, box) / piece_bytes, 1, length);
    for (std::int64_t piece = 0; piece < pieces; ++piece) {
      auto part = box;
      const auto begin = piece * length / pieces;
      part.offset[along] += begin;
      part.length[along] = (piece + 1) * length / pieces - begin;
      tasks.push_back({bytes_of(tensor, part), part, &holders});
    }
  }
}

}  // namespace

std::vector<std::vector<Assignment>> assign_writers(const std::vector<std::vector<HeldBox>>& held) {
  const auto tensors = collect(held);
  check(tensors);
  std::vector<Task> tasks;
  const auto bytes = piece_bytes(tensors, held.size());
  for (const auto& [name, tensor] : tensors) add_tasks(tensor, bytes, tasks);
  // Boxes that only one rank can write come first; then the largest, to the holder that has least
  // (longest processing time first). Stable, so that equal ranks compute equal assignments.
  std::stable_sort(tasks.begin(), tasks.end(), [](const Task& a, const Task& b) {
    return std::tuple(a.holders->size() > 1, -a.bytes) <
           std::tuple(b.holders->size() > 1, -b.bytes);
  });
  std::vector<std::int64_t> load(held.size(), 0);
  std::vector<std::vector<Assignment>> assignments(held.size());
  for (const auto& task : tasks) {
    const auto& writer = *std::min_element(
        task.holders->begin(), task.holders->end(),
        [&](const Holder& a, const Holder& b) { return load[a.rank] < load[b.rank]; });
    load[writer.rank] += task.bytes;
    assignments[writer.rank].push_back({writer.item, task.box});
  }
  for (auto& of_rank : assignments) {
    std::sort(of_rank.begin(), of_rank.end(), [](const Assignment& a, const Assignment& b) {
      return std::tie(a.item, a.box.offset) < std::tie(b.item, b.box.offset);
    });
  }
  return assignments;
}

}  // namespace trireme::checkpoint
