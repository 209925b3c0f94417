// SPDX-License-Identifier: Apache-2.0
#include "train/saving/replica_check.hpp"

#include "trireme/base/contract.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/text.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <vector>

namespace trireme::train {
namespace {

/// Words of all replicas, [replicas][count].
std::vector<std::int32_t> gather(comm::ProcessGroup& group, std::vector<std::int32_t> mine) {
  const auto count = std::ssize(mine);
  std::vector<std::int32_t> all(static_cast<std::size_t>(count * group.size()));
  group.host_group().all_gather(
      device::Tensor(mine.data(), device::DType::i32, {count}),
      device::Tensor(all.data(), device::DType::i32, {count * group.size()}));
  return all;
}

std::vector<std::int32_t> words_of(const std::vector<std::uint64_t>& hashes) {
  std::vector<std::int32_t> words(2 * hashes.size());
  std::memcpy(words.data(), hashes.data(), words.size() * sizeof words[0]);
  return words;
}

/// Replicas whose value is not the most frequent one; all of them where two values are as frequent.
std::vector<std::size_t> minority(const std::vector<std::uint64_t>& values) {
  std::map<std::uint64_t, std::size_t> counts;
  for (const auto value : values) ++counts[value];
  std::size_t most = 0;
  for (const auto& [value, count] : counts) most = std::max(most, count);
  const bool clear = std::count_if(counts.begin(), counts.end(),
                                   [&](const auto& each) { return each.second == most; }) == 1;
  std::vector<std::size_t> found;
  for (std::size_t index = 0; index < values.size(); ++index) {
    if (!clear || counts[values[index]] < most) found.push_back(index);
  }
  return found;
}

/// The hash of one parameter on each replica.
std::vector<std::uint64_t> column(const std::vector<std::int32_t>& words, std::size_t parameters,
                                  std::size_t parameter) {
  std::vector<std::uint64_t> values(words.size() / (2 * parameters));
  for (std::size_t replica = 0; replica < values.size(); ++replica) {
    std::memcpy(&values[replica], &words[2 * (replica * parameters + parameter)],
                sizeof values[replica]);
  }
  return values;
}

std::string sentence(const char* whose, const std::string& parameter,
                     const std::vector<std::size_t>& members,
                     const std::vector<std::int32_t>& ranks) {
  std::vector<std::int32_t> unlike;
  for (const auto member : members) unlike.push_back(ranks[member]);
  return base::format(
      "{} do not hold the same parameters: '{}' {} (a GPU, a processor, memory or a link that "
      "flips "
      "bits)",
      whose, parameter,
      unlike.size() == ranks.size()
          ? base::format("differs between ranks {}", base::join(unlike, ", "))
          : base::format("on {} {} is unlike that of the other {} replicas",
                         unlike.size() == 1 ? "rank" : "ranks", base::join(unlike, ", "),
                         ranks.size() - unlike.size()));
}

/// Parameters with hashes of their bits, in an order that all members of a group share.
struct HashedParameters {
  std::vector<std::string> names;
  std::vector<std::uint64_t> hashes;
};

std::string difference(const char* whose, const HashedParameters& held, comm::ProcessGroup& group,
                       base::Rank rank) {
  if (group.size() == 1) return {};
  base::Fnv1a digest;
  for (const auto word : words_of(held.hashes)) digest.add_word(static_cast<std::uint32_t>(word));
  auto mine = words_of({digest.value()});
  mine.push_back(rank.value());
  const auto digests = gather(group, std::move(mine));
  const auto replicas = static_cast<std::size_t>(group.size());
  std::vector<std::int32_t> ranks(replicas);
  bool alike = true;
  for (std::size_t replica = 0; replica < replicas; ++replica) {
    ranks[replica] = digests[3 * replica + 2];
    alike = alike && std::equal(&digests[0], &digests[2], &digests[3 * replica]);
  }
  if (alike) return {};
  const auto all = gather(group, words_of(held.hashes));
  for (std::size_t parameter = 0; parameter < held.names.size(); ++parameter) {
    const auto members = minority(column(all, held.names.size(), parameter));
    if (!members.empty()) return sentence(whose, held.names[parameter], members, ranks);
  }
  TRIREME_ENSURE(false, "digests differ where a hash does");
  return {};
}

}  // namespace

std::string replica_difference(engine::Engine& engine, const comm::AxisGroups& groups,
                               base::Rank rank) {
  const auto hashes = engine.parameter_hashes();
  HashedParameters all;
  HashedParameters uncut;
  std::size_t index = 0;
  for (const auto& part : engine.parameter_parts()) {
    const auto hash = hashes[index++];
    all.names.push_back(part.name);
    all.hashes.push_back(hash);
    if (part.box.length != part.shape) continue;
    uncut.names.push_back(part.name);
    uncut.hashes.push_back(hash);
  }
  const auto of_replicas = difference("replicas", all, groups.replicas(), rank);
  // All ranks ask for both, whatever the first has found: each is a collective.
  const auto of_tensor =
      difference("tensor-parallel ranks", uncut, groups.on(layout::Axis::tensor), rank);
  return of_replicas.empty() ? of_tensor : of_replicas;
}

}  // namespace trireme::train
