// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/json.hpp"
#include "trireme/telemetry/processor_time.hpp"

#include <span>
#include <string>
#include <vector>

/// Use of the cores of ranks: their own use, other programs', the hypervisor's.
namespace trireme::telemetry {

/// Use of cores by the ranks that may run on them, over an interval.
struct CoresUse {
  std::string node;
  int first_rank = 0;
  int rank_count = 0;
  int core_count = 0;
  double seconds = 0;
  // Shares of the cores' time.
  double own = 0;
  double others = 0;  ///< other programs
  double stolen = 0;  ///< other virtual machines
  double interrupts = 0;
  double idle = 0;
  /// Share that a limit of a cgroup took of the processor time which the node's ranks would have
  /// used without it.
  double throttled = 0;
};

/// A cause that keeps ranks from their cores. Other programs and machines do so where little of the
/// cores' time is left over.
enum class Hindrance { none, other_programs, hypervisor, limit };
Hindrance hindrance_of(const CoresUse& use);
/// Share that the hindrance takes; 0 without one.
double hindered_share(const CoresUse& use);
/// "62 % of the processor time of 4 cores of 4 ranks (first: rank 0) on n01 went to other programs,
/// 30 % to the ranks"; empty without a hindrance.
std::string hindrance_text(const CoresUse& use);
/// Remedy for a hindrance; empty without one.
std::string hindrance_remedy(Hindrance hindrance);

/// A rank, its cores and what it has used.
struct RankCores {
  int rank = 0;
  std::vector<int> cores;
  double own = 0;  ///< ProcessorShares::own
};

/// Use of a node's cores: ranks whose cores overlap stand together. Empty where the node's shares
/// have no cores.
std::vector<CoresUse> uses_of(const std::string& node, std::span<const RankCores> ranks,
                              const ProcessorShares& shares);

/// The use that hinders its ranks most; if none does, the one with the largest share of others.
/// Null of none.
const CoresUse* most_hindered(std::span<const CoresUse> uses);

/// Members of a line of kind `processors` (docs/run-directory.md).
base::Json to_json(const CoresUse& use);
/// Reads a line as untrusted input: what is no share counts as none.
CoresUse cores_use_from(const base::Json& line);

}  // namespace trireme::telemetry
