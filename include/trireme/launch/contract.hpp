// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/environment.hpp"
#include "trireme/base/result.hpp"
#include "trireme/launch/options.hpp"

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace trireme::launch {

/// The variable in which the submitting side encodes the whole contract. Its name begins
/// with SLURM_ because Slurm passes such variables on even under --export=NONE
/// (docs/decisions/0005).
inline constexpr std::string_view encoded_variable = "SLURM_TRIREME";
/// Variables that the plugin sets on each node for the tasks: the node's name, the contract's
/// version, the job's folder, the node's record.
inline constexpr std::string_view node_variable = "TRIREME_LAUNCH_NODE";
inline constexpr std::string_view version_variable = "TRIREME_LAUNCH_VERSION";
inline constexpr std::string_view directory_variable = "TRIREME_LAUNCH_DIRECTORY";
inline constexpr std::string_view record_variable = "TRIREME_LAUNCH_RECORD";

/// Option with its value and its origin: "sbatch --tensor-parallel", "TRIREME_TENSOR_PARALLEL".
struct Setting {
  const Option* option = nullptr;
  std::string value;
  std::string origin;
  bool operator==(const Setting&) const = default;
};

/// Settings of a launch. At most one value for each option, except --trireme-set, whose values keep
/// their order.
class Contract {
 public:
  const std::vector<Setting>& settings() const { return settings_; }
  const Setting* find(std::string_view option) const;
  /// Number of an option; none when it is not set, or set to a word.
  std::optional<int> number(std::string_view option) const;

  /// Replaces the option's earlier value; one more --trireme-set is added.
  void put(Setting setting);
  /// Removes an option.
  void drop(std::string_view option);
  /// Applies another contract on top of this one. Its settings of any key are added.
  void put_all(const Contract& other);

  /// True if any option is set and --trireme=off is not.
  bool active() const;
  bool off() const;

  bool operator==(const Contract&) const = default;

 private:
  std::vector<Setting> settings_;
};

/// The value of encoded_variable: "1;tensor-parallel=2@srun%20--tensor-parallel;...".
std::string encode(const Contract& contract);
/// Contract of an encoded text, strictly: any text that encode() would not write is a failure
/// (ExitCode::launch), as are a newer version and a text of more than 64 KiB or 1,000 settings.
base::Result<Contract> decode(std::string_view encoded);

/// Variables in the tasks' environment, by name: those of the options set, TRIREME_SET with one
/// setting a line. For --trireme=off only TRIREME_LAUNCH.
std::map<std::string, std::string, std::less<>> variables(const Contract& contract);

/// Use of the contract of an enclosing job.
enum class Inherit { yes, no };

/// Contract of this environment: the content of encoded_variable, overridden by variables that
/// differ from it, which were exported by hand. Without Inherit::yes only these.
base::Result<Contract> read_contract(const base::Environment& environment,
                                     Inherit inherit = Inherit::yes);

/// True if the submitting side had the plugin, but this node does not: limits and records are
/// missing, and variables were read from encoded_variable only.
bool plugin_is_absent_here(const base::Environment& environment);

}  // namespace trireme::launch
