// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/result.hpp"

#include <span>
#include <string>
#include <string_view>
#include <vector>

/// Contract between the launching side of a job (the SPANK plugin, or a user who exports the same
/// variables under mpirun) and the ranks: the options and their names.
namespace trireme::launch {

/// Version of the contract. A reader refuses a newer one: it might misread it.
inline constexpr int contract_version = 1;

/// Option of a launch. This table is the only source of the options of srun, sbatch and salloc, the
/// variables, the values' checks and docs/launch-contract.md.
struct Option {
  /// Name without its dashes: "tensor-parallel".
  std::string_view name = {};
  /// Variable with the same meaning, which tasks also find in their environment.
  std::string_view variable = {};
  /// Key of the configuration that it sets, whose range and choices are the option's; empty if it
  /// sets none.
  std::string_view key = {};
  /// Keys that it sets to its value where nothing else sets them; none where it sets one.
  std::vector<std::string> keys = {};
  /// Help text, one line.
  std::string_view usage = {};
  /// Whole numbers from minimum to maximum; none where maximum < minimum.
  int minimum = 0;
  int maximum = -1;
  /// Words that are also valid values.
  std::vector<std::string_view> words = {};
  /// True if the value is section.key=value; the option may be repeated, and all values count in
  /// order.
  bool sets_any_key = false;
  /// Form of the value, in help: "N|auto".
  std::string argument = {};

  bool is_number() const { return maximum >= minimum; }
};

/// Options in the order of the help.
std::span<const Option> options();

/// Option by its name; null when there is none.
const Option* find_option(std::string_view name);

/// Permitted values, in words: "a number from 0 to 3", "a number of at least 1 or auto", "on or
/// off".
std::string permitted_text(const Option& option);

/// Value in its canonical form. The failure names the option as given (`place`, as in "srun
/// --zero-level"), the value, the rule and the nearest choices.
base::Result<std::string> parse_value(const Option& option, std::string_view text,
                                      std::string_view place);

}  // namespace trireme::launch
