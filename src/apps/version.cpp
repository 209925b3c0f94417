// SPDX-License-Identifier: Apache-2.0
#include "apps/version.hpp"

#include "trireme/base/file.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/json.hpp"
#include "trireme/base/json_text.hpp"
#include "trireme/checkpoint/versions.hpp"
#include "trireme/comm/versions.hpp"
#include "trireme/data/versions.hpp"
#include "trireme/device/versions.hpp"
#include "trireme/store/object_store.hpp"
#include "trireme/topology/discover.hpp"
#include "trireme/topology/versions.hpp"
#include "trireme/web/http.hpp"

#include "build_info.hpp"

#include <CLI/Version.hpp>
#include <gnu/libc-version.h>
#include <sys/utsname.h>

#include <vector>

namespace trireme::apps {
namespace {

using base::format;
using base::Json;
using base::LibraryVersion;

/// Versions of libraries at run time, which may differ from those at build time. A room with
/// foreign libraries has a function for the versions that it runs with: list it here.
std::vector<LibraryVersion> running_libraries() {
  std::vector<LibraryVersion> libraries{{"C library", format("glibc {}", gnu_get_libc_version())}};
  for (const auto& room :
       {comm::library_versions(), device::library_versions(), topology::library_versions(),
        checkpoint::library_versions(), web::library_versions(), store::library_versions(),
        data::library_versions()}) {
    libraries.insert(libraries.end(), room.begin(), room.end());
  }
  return libraries;
}

std::string kernel_text() {
  utsname kernel{};
  if (::uname(&kernel) != 0) return "unknown";
  return format("{} {} {}", kernel.sysname, kernel.release, kernel.machine);
}

std::string row(std::string_view name, std::string_view state) {
  return format("  {:<22}{}\n", name, state);
}

Json cpu_json() {
  Json cpu;
  const auto machine = topology::discover();
  const bool known = machine.ok() && !machine->packages.empty();
  cpu["model"] = known ? Json(machine->packages.front().model) : Json(nullptr);
  cpu["instruction_sets"] = device::cpu_instruction_sets();
  return cpu;
}

Json run_json(const config::Config& config) {
  Json run;
  run["name"] = config.options().run.name;
  run["tags"] = config.options().run.tags;
  return run;
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
  for (const auto& running : running_libraries()) text += row(running.library, running.version);
  text += row("kernel", kernel_text());
  return text;
}

std::string tool_version() {
  return format("trireme {} ({})", build_info::version, build_info::commit);
}

void write_versions(const std::filesystem::path& run, const config::Config& config) {
  namespace info = build_info;
  Json json;
  json["version"] = info::version;
  json["commit"] = info::commit;
  json["build_type"] = info::build_type;
  json["compiler"] = info::compiler;
  json["sanitizers"] = info::sanitizers;
  for (const auto& part : info::parts) json["built_with"][std::string(part.name)] = part.state;
  json["built_with"]["CLI11"] = CLI11_VERSION;
  for (const auto& running : running_libraries()) {
    json["libraries"][running.library] = running.version;
  }
  json["kernel"] = kernel_text();
  json["cpu"] = cpu_json();
  json["run"] = run_json(config);
  base::write_file_durably(run / "versions.json", base::json_text(json, 2) + "\n");
}

}  // namespace trireme::apps
