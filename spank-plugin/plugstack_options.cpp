// SPDX-License-Identifier: Apache-2.0
#include "plugstack_options.hpp"

#include "trireme/base/format.hpp"
#include "trireme/launch/plugstack_arguments.hpp"

#include "spank.hpp"

#include <unistd.h>

#include <climits>
#include <string_view>

namespace trireme::spank {
namespace {

PlugstackOptions::Limit limit_of(std::string_view word) {
  if (word == "unlimited") return PlugstackOptions::Limit::unlimited;
  return word == "none" ? PlugstackOptions::Limit::none : PlugstackOptions::Limit::keep;
}

/// Sets the option of an argument that is in launch's table.
bool set_argument(PlugstackOptions& options, std::string_view argument) {
  if (!launch::is_plugstack_argument(argument)) return false;
  const auto equals = argument.find('=');
  const auto name = argument.substr(0, equals);
  const auto value = argument.substr(equals + 1);
  if (name == "memlock") options.memlock = limit_of(value);
  if (name == "core") options.core = limit_of(value);
  if (name != "base") return true;
  options.base = value;
  const auto mark = options.base.find("%h");
  if (mark == std::string::npos) return true;
  char host[HOST_NAME_MAX + 1] = {};
  if (::gethostname(host, sizeof host - 1) != 0) return false;
  options.base.replace(mark, 2, host);
  return true;
}

}  // namespace

PlugstackOptions read_plugstack_options(const std::vector<std::string>& arguments) {
  PlugstackOptions options;
  for (const auto& argument : arguments) {
    if (set_argument(options, argument)) continue;
    std::vector<std::string> permitted;
    for (const auto& known : launch::plugstack_arguments()) {
      permitted.push_back(launch::permitted_text(known));
    }
    slurm_error("trireme: plugstack.conf: '%s' is none of %s (it is left out)", argument.c_str(),
                base::format("{}", base::join(permitted, ", ")).c_str());
  }
  return options;
}

}  // namespace trireme::spank
