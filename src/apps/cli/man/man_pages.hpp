// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

/// Text of the manual pages, with roff markup.
namespace trireme::apps {

/// Text that roff prints as it stands: no escapes, no hyphens turned to dashes, no requests at the
/// start of a line.
std::string roff(std::string_view text);

/// A term and, indented below it, what it means.
std::string item(std::string_view title, std::string_view text);

/// trireme-launch(7): options, variables and keys of the launch contract.
std::string launch_page();
/// spank_trireme(8): the plugin, for those who install it.
std::string plugin_page();

}  // namespace trireme::apps
