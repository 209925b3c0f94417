#pragma once

#include "trireme/base/environment.hpp"
#include "trireme/launch/contract.hpp"
#include "trireme/launch/geometry.hpp"

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace trireme::spank {

/// The submitting side: gathers what is asked for, refuses the impossible before a job exists, and
/// hands the contract on in the environment.
class Submission {
 public:
  /// Options that an enclosing job was submitted with, which Slurm gives to each nested srun as if
  /// they stood on its command line.
  void remember_inherited(const base::Environment& environment);
  void note_option(const launch::Option& option, std::string_view text);
  /// False after a refusal, whose text was printed.
  bool validate(launch::Command command);

 private:
  struct Noted {
    const launch::Option* option;
    std::string text;
  };

  std::map<const launch::Option*, std::string> inherited_;
  std::vector<Noted> noted_;
};

}  // namespace trireme::spank
