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
struct Term {
  /// Option of srun, sbatch and salloc without its dashes: "tensor-parallel".
  std::string_view option = {};
  /// Variable that asks for the same, and under which tasks find it.
  std::string_view variable = {};
  /// Key of the configuration that it sets; empty for what is no key.
  std::string_view key = {};
  /// Whole numbers from minimum to maximum; none where maximum < minimum.
  int minimum = 0;
  int maximum = -1;
  /// Words that are values, too.
  std::vector<std::string_view> words = {};
  /// section.key=value; may be given again, and all count in their order.
  bool is_setting = false;
  /// Of the value, in help: "N|auto".
  std::string_view argument = {};
  /// One line of help.
  std::string_view usage = {};

  bool is_number() const { return maximum >= minimum; }
};

/// In the order in which help shows them.
std::span<const Term> terms();

/// By option or by variable; null when there is none.
const Term* find_option(std::string_view option);
const Term* find_variable(std::string_view variable);

/// "a number from 0 to 3", "on or off": what a value may be, in words.
std::string permitted_text(const Term& term);

/// The value in its canonical form. The failure names what was asked for (`place`, as in "srun
/// --zero-level"), the value, the rule and the nearest choices.
base::Result<std::string> parse_value(const Term& term, std::string_view text,
                                      std::string_view place);

}  // namespace trireme::launch
