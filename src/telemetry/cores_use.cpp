// SPDX-License-Identifier: Apache-2.0
#include "trireme/telemetry/cores_use.hpp"

#include "trireme/base/counted.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/text.hpp"

#include <algorithm>
#include <cmath>
#include <map>

namespace trireme::telemetry {
namespace {

// Thresholds, as docs/reports.md has them.
constexpr double much = 0.15;
constexpr double enough_idle = 0.30;

/// Ranks whose cores overlap, by an arbitrary number of their set.
class CoreSets {
 public:
  explicit CoreSets(std::span<const RankCores> ranks) : set_of_rank_(ranks.size()) {
    std::map<int, std::size_t> first_of_core;
    for (std::size_t at = 0; at < ranks.size(); ++at) {
      set_of_rank_[at] = at;
      for (const int core : ranks[at].cores) {
        const auto [found, is_new] = first_of_core.emplace(core, at);
        if (!is_new) join(found->second, at);
      }
    }
  }
  std::size_t set_of(std::size_t rank) {
    while (set_of_rank_[rank] != rank) {
      rank = set_of_rank_[rank] = set_of_rank_[set_of_rank_[rank]];
    }
    return rank;
  }

 private:
  void join(std::size_t one, std::size_t other) {
    const auto [low, high] = std::minmax({set_of(one), set_of(other)});
    set_of_rank_[high] = low;
  }
  std::vector<std::size_t> set_of_rank_;
};

double share_of(const base::Json& line, const char* key) {
  const auto found = line.find(key);
  if (found == line.end() || !found->is_number()) return 0;
  return std::clamp(found->get<double>(), 0.0, 1.0);
}

int count_of(const base::Json& line, const char* key) {
  constexpr std::int64_t most = 1 << 30;
  const auto found = line.find(key);
  if (found == line.end() || !found->is_number_integer()) return 0;
  return static_cast<int>(std::clamp<std::int64_t>(found->get<std::int64_t>(), 0, most));
}

double rounded(double share) {
  return std::round(share * 1e3) / 1e3;
}

}  // namespace

Hindrance hindrance_of(const CoresUse& use) {
  if (use.throttled >= much) return Hindrance::limit;
  if (use.idle > enough_idle || std::max(use.others, use.stolen) < much) return Hindrance::none;
  return use.stolen > use.others ? Hindrance::hypervisor : Hindrance::other_programs;
}

double hindered_share(const CoresUse& use) {
  switch (hindrance_of(use)) {
    case Hindrance::other_programs:
      return use.others;
    case Hindrance::hypervisor:
      return use.stolen;
    case Hindrance::limit:
      return use.throttled;
    case Hindrance::none:
      break;
  }
  return 0;
}

std::string hindrance_text(const CoresUse& use) {
  const auto hindrance = hindrance_of(use);
  const auto ranks = use.rank_count == 1 ? base::format("rank {}", use.first_rank)
                                         : base::format("{} ranks (first: rank {})", use.rank_count,
                                                        use.first_rank);
  const auto node = base::printable(use.node);
  const double percent = 100 * hindered_share(use);
  const auto cores = base::format("{:.0f} % of the processor time of {} of {} on {}", percent,
                                  base::counted(use.core_count, "core"), ranks, node);
  switch (hindrance) {
    case Hindrance::other_programs:
      return base::format("{} went to other programs, {:.0f} % to the ranks", cores, 100 * use.own);
    case Hindrance::hypervisor:
      return base::format("{} went to other virtual machines (steal)", cores);
    case Hindrance::limit:
      return base::format(
          "a limit of processor time took {:.0f} % of what the ranks on {} would have used",
          percent, node);
    case Hindrance::none:
      break;
  }
  return {};
}

std::string hindrance_remedy(Hindrance hindrance) {
  switch (hindrance) {
    case Hindrance::other_programs:
      return "end them, or give the ranks cores that no other program uses (sbatch --exclusive, "
             "--cpus-per-task)";
    case Hindrance::hypervisor:
      return "the host has promised more cores than it has: move the machine, or ask for dedicated "
             "ones";
    case Hindrance::limit:
      return "raise the limit of their cgroup (the container's, or --cpus-per-task), or start "
             "fewer ranks and threads";
    case Hindrance::none:
      break;
  }
  return {};
}

std::vector<CoresUse> uses_of(const std::string& node, std::span<const RankCores> ranks,
                              const ProcessorShares& shares) {
  CoreSets sets(ranks);
  double own_of_node = 0;
  for (const auto& rank : ranks) own_of_node += rank.own;
  std::map<std::size_t, std::pair<CoresUse, std::map<int, CoreShare>>> uses;
  for (std::size_t at = 0; at < ranks.size(); ++at) {
    auto& [use, cores] = uses[sets.set_of(at)];
    if (use.rank_count++ == 0) use.first_rank = ranks[at].rank;
    use.own += ranks[at].own;
    for (const int core : ranks[at].cores) {
      const auto found = shares.cores.find(core);
      if (found != shares.cores.end()) cores[core] = found->second;
    }
  }
  std::vector<CoresUse> all;
  for (auto& [set, entry] : uses) {
    auto& [use, cores] = entry;
    if (cores.empty()) continue;
    const auto count = static_cast<double>(cores.size());
    double busy = 0;
    for (const auto& [core, each] : cores) {
      busy += each.busy / count;
      use.stolen += each.stolen / count;
      use.interrupts += each.interrupts / count;
    }
    use.node = node;
    use.core_count = static_cast<int>(cores.size());
    use.seconds = shares.seconds;
    // Threads that may run elsewhere are counted here, too.
    use.own = std::min(use.own / count, busy);
    use.others = busy - use.own;
    use.idle = std::max(0.0, 1 - busy - use.stolen - use.interrupts);
    const double wanted = own_of_node + shares.throttled;
    if (wanted > 0) use.throttled = shares.throttled / wanted;
    all.push_back(use);
  }
  return all;
}

const CoresUse* most_hindered(std::span<const CoresUse> uses) {
  const auto most =
      std::max_element(uses.begin(), uses.end(), [](const CoresUse& one, const CoresUse& other) {
        return std::pair(hindered_share(one), one.others + one.stolen) <
               std::pair(hindered_share(other), other.others + other.stolen);
      });
  return most == uses.end() ? nullptr : &*most;
}

base::Json to_json(const CoresUse& use) {
  return {{"node", use.node},
          {"first_rank", use.first_rank},
          {"ranks", use.rank_count},
          {"cores", use.core_count},
          {"seconds", rounded(use.seconds)},
          {"own", rounded(use.own)},
          {"others", rounded(use.others)},
          {"stolen", rounded(use.stolen)},
          {"interrupts", rounded(use.interrupts)},
          {"idle", rounded(use.idle)},
          {"throttled", rounded(use.throttled)}};
}

CoresUse cores_use_from(const base::Json& line) {
  CoresUse use;
  const auto node = line.find("node");
  if (node != line.end() && node->is_string()) use.node = node->get<std::string>();
  use.first_rank = count_of(line, "first_rank");
  use.rank_count = count_of(line, "ranks");
  use.core_count = count_of(line, "cores");
  const auto seconds = line.find("seconds");
  const bool is_time = seconds != line.end() && seconds->is_number();
  use.seconds = is_time ? std::clamp(seconds->get<double>(), 0.0, 1e9) : 0;
  use.own = share_of(line, "own");
  use.others = share_of(line, "others");
  use.stolen = share_of(line, "stolen");
  use.interrupts = share_of(line, "interrupts");
  use.idle = share_of(line, "idle");
  use.throttled = share_of(line, "throttled");
  return use;
}

}  // namespace trireme::telemetry
