#include "apps/version.hpp"

#include "trireme/base/format.hpp"

#include "build_info.hpp"

#include <CLI/Version.hpp>
#include <gnu/libc-version.h>
#include <sys/utsname.h>

#include <vector>

namespace trireme::apps {
namespace {

using base::format;

struct Running {
  std::string name;
  std::string state;
};

/// What the machine gives at run time, which may differ from what was built against. A room with
/// a foreign library has a function for the version that it runs with: list it here.
std::vector<Running> running_parts() {
  std::vector<Running> parts{{"C library", format("glibc {}", gnu_get_libc_version())}};
  utsname kernel{};
  if (::uname(&kernel) == 0) {
    parts.push_back({"kernel", format("{} {} {}", kernel.sysname, kernel.release, kernel.machine)});
  }
  return parts;
}

std::string row(std::string_view name, std::string_view state) {
  return format("  {:<22}{}\n", name, state);
}

}  // namespace

std::string version_text() {
  namespace info = build_info;
  std::string text = format("trireme {} (commit {})\n", info::version, info::commit);
  text += format("built as {} by {}{}\n", info::build_type, info::compiler,
                 info::sanitizers.empty() ? "" : format(" with sanitizers {}", info::sanitizers));
  for (const auto& part : info::parts) text += row(part.name, part.state);
  text += row("CLI11", CLI11_VERSION);
  text += "at run time\n";
  for (const auto& part : running_parts()) text += row(part.name, part.state);
  return text;
}

}  // namespace trireme::apps
