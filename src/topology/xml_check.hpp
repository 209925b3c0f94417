// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/result.hpp"

#include <string_view>

namespace trireme::topology {

/// Refuses text that hwloc would need unreasonable memory or depth for, before it sees it: too
/// large, nested too deep, too many elements, numbers of processors or memory nodes that no
/// machine has, and document types with entities.
base::Status check_xml(std::string_view xml, std::string_view source);

/// Loads the text in a child process with limited time and throws the result away: what a parser
/// crashes on or hangs in is a failure in words here.
base::Status try_in_child(std::string_view xml, std::string_view source);

}  // namespace trireme::topology
