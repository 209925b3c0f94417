// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/result.hpp"

#include <span>
#include <string>
#include <string_view>
#include <vector>

/// The contract between whoever launches a job (the SPANK plugin, or a person who exports the same
/// variables under mpirun) and the ranks: what may be asked for, under which names.
namespace trireme::launch {

/// Version of the contract. A reader refuses a newer one: it might misread it.
inline constexpr int contract_version = 1;

/// One thing that a launch may ask for. Everything is made from this table: the options of srun,
/// sbatch and salloc, the variables, the values' checks and docs/launch-contract.md.
struct Option {
  /// Name without its dashes: "tensor-parallel".
  std::string_view name = {};
  /// Variable that asks for the same, and under which tasks find it.
  std::string_view variable = {};
  /// Key of the configuration that it sets, whose range and choices are the option's; empty for
  /// what is no key.
  std::string_view key = {};
  /// One line of help.
  std::string_view usage = {};
  /// Whole numbers from minimum to maximum; none where maximum < minimum.
  int minimum = 0;
  int maximum = -1;
  /// Words that are values, too.
  std::vector<std::string_view> words = {};
  /// Whether the value is section.key=value; it may be given again, and all count in their order.
  bool sets_any_key = false;
  /// Form of the value, in help: "N|auto".
  std::string argument = {};

  bool is_number() const { return maximum >= minimum; }
};

/// In the order in which help shows them.
std::span<const Option> options();

/// By option or by variable; null when there is none.
const Option* find_option(std::string_view name);
const Option* find_variable(std::string_view variable);

/// "a number from 0 to 3", "a number of at least 1 or auto", "on or off": what a value may be, in
/// words.
std::string permitted_text(const Option& option);

/// The value in its canonical form. The failure names what was asked for (`place`, as in "srun
/// --zero-level"), the value, the rule and the nearest choices.
base::Result<std::string> parse_value(const Option& option, std::string_view text,
                                      std::string_view place);

}  // namespace trireme::launch
