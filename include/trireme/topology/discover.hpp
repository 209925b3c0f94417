// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/result.hpp"
#include "trireme/topology/machine.hpp"

#include <cstddef>
#include <filesystem>
#include <string_view>

namespace trireme::topology {

/// Largest description that is read; the largest known machines need about 1 MB.
inline constexpr std::size_t max_xml_bytes = std::size_t{16} << 20;

/// Machine of this process, as hwloc detects it. Machine::allowed is the set that cgroups and the
/// process's own CPU mask leave. GPU drivers are not touched: devices are identified by PCI.
base::Result<Machine> discover();

/// A machine recorded by `lstopo machine.xml` (hwloc XML, versions 1 and 2), of unknown origin:
/// its size, depth and numbers are limited, and it is read in a child process first, so that
/// whatever it does to the parser is a failure in words (ExitCode::topology), not a crash.
base::Result<Machine> from_xml(const std::filesystem::path& path);

/// Machine in a text; `source` is its name in failures.
base::Result<Machine> from_xml_text(std::string_view xml, std::string_view source);

}  // namespace trireme::topology
