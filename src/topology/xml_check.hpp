// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/result.hpp"

#include <string_view>

namespace trireme::topology {

/// Refuses text that would take hwloc unreasonable memory or depth, before hwloc parses it: too
/// large, nested too deep, too many elements, numbers of processors or memory nodes that no machine
/// has, and document types with entities.
base::Status check_xml(std::string_view xml, std::string_view source);

/// Loads the text in a child process with limited time and discards the result: a crash or a hang
/// of the parser becomes an error text here.
base::Status try_in_child(std::string_view xml, std::string_view source);

}  // namespace trireme::topology
