#include "trireme/layout/reshard.hpp"

#include "trireme/base/contract.hpp"
#include "trireme/base/format.hpp"

#include <algorithm>
#include <tuple>

namespace trireme::layout {
namespace {

/// A box and all the ranks that hold it.
struct Replicas {
  Box box;
  std::vector<base::Rank> ranks;  // ascending
};

/// Held boxes that are not empty, equal ones brought together.
std::vector<Replicas> by_box(std::span<const PlacedBox> held) {
  std::vector<const PlacedBox*> sorted;
  for (const PlacedBox& placed : held) {
    if (element_count(placed.box) > 0) sorted.push_back(&placed);
  }
  std::sort(sorted.begin(), sorted.end(), [](const PlacedBox* a, const PlacedBox* b) {
    return std::tie(a->box.offset, a->box.length, a->rank) <
           std::tie(b->box.offset, b->box.length, b->rank);
  });
  std::vector<Replicas> result;
  for (const PlacedBox* placed : sorted) {
    if (result.empty() || !(result.back().box == placed->box)) {
      result.push_back({placed->box, {}});
    }
    result.back().ranks.push_back(placed->rank);
  }
  return result;
}

bool holds(const Replicas& replicas, base::Rank rank) {
  return std::binary_search(replicas.ranks.begin(), replicas.ranks.end(), rank);
}

base::Rank least_loaded(const Replicas& replicas, const SourceLoad& load) {
  return *std::min_element(
      replicas.ranks.begin(), replicas.ranks.end(),
      [&](base::Rank a, base::Rank b) { return load[a.index()] < load[b.index()]; });
}

/// Takes from `replicas` what is still missing of a wanted box.
void take(const Replicas& replicas, base::Rank reader, std::vector<Box>& missing,
          std::vector<Read>& reads, SourceLoad& load) {
  std::vector<Box> still_missing;
  for (Box& part : missing) {
    std::optional<Box> common = intersect(part, replicas.box);
    if (!common) {
      still_missing.push_back(std::move(part));
      continue;
    }
    for (Box& rest : subtract(part, *common)) still_missing.push_back(std::move(rest));
    const base::Rank source = holds(replicas, reader) ? reader : least_loaded(replicas, load);
    load[source.index()] += element_count(*common);
    reads.push_back({source, replicas.box, std::move(*common)});
  }
  missing = std::move(still_missing);
}

}  // namespace

base::Result<std::vector<std::vector<Read>>> plan_reads(std::string_view tensor,
                                                        std::span<const PlacedBox> held,
                                                        std::span<const PlacedBox> wanted,
                                                        SourceLoad& load) {
  for (const PlacedBox& placed : held) {
    if (load.size() <= placed.rank.index()) load.resize(placed.rank.index() + 1, 0);
  }
  const std::vector<Replicas> sources = by_box(held);
  std::vector<std::vector<Read>> result(wanted.size());
  for (std::size_t at = 0; at < wanted.size(); ++at) {
    const base::Rank reader = wanted[at].rank;
    std::vector<Box> missing;
    if (element_count(wanted[at].box) > 0) missing.push_back(wanted[at].box);
    for (const bool own : {true, false}) {  // what the reader holds itself comes first
      for (const Replicas& replicas : sources) {
        if (missing.empty()) break;
        if (holds(replicas, reader) == own) take(replicas, reader, missing, result[at], load);
      }
    }
    if (!missing.empty()) {
      return base::Failure{
          base::ExitCode::checkpoint,
          base::format("elements {} of tensor {} are held by no rank of the source (rank {} needs "
                       "them); the source is incomplete, use another one",
                       text(missing.front()), tensor, reader.value())};
    }
  }
  return result;
}

std::vector<PlacedBox> placed_boxes(const TensorSpec& spec, const Residence& residence) {
  const Mesh& mesh = residence.mesh;
  for (const int stage : residence.stages) {
    TRIREME_EXPECT(stage >= 0 && stage < mesh.degree(Axis::pipeline), "a stage of this mesh");
  }
  std::vector<PlacedBox> result;
  for (int value = 0; value < mesh.world_size(); ++value) {
    const base::Rank rank(value);
    const auto& stages = residence.stages;
    const int stage = mesh.coordinate(Axis::pipeline, rank);
    if (!stages.empty() && std::find(stages.begin(), stages.end(), stage) == stages.end()) continue;
    result.push_back({rank, shard_box(spec, mesh, rank)});
  }
  return result;
}

base::Result<std::vector<std::vector<Read>>> reshard(const TensorSpec& spec,
                                                     const Residence& source,
                                                     const Residence& destination,
                                                     SourceLoad& load) {
  const std::vector<PlacedBox> wanted = placed_boxes(spec, destination);
  auto reads = plan_reads(spec.name, placed_boxes(spec, source), wanted, load);
  if (!reads) return reads.failure();
  std::vector<std::vector<Read>> result(static_cast<std::size_t>(destination.mesh.world_size()));
  for (std::size_t at = 0; at < wanted.size(); ++at) {
    result[wanted[at].rank.index()] = std::move((*reads)[at]);
  }
  return result;
}

}  // namespace trireme::layout
