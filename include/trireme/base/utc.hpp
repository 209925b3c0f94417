// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ctime>
#include <string>

namespace trireme::base {

/// "2026-11-22T05:03:11.250Z": a moment for files, which are read later and elsewhere (ISO 8601).
std::string utc_text(const timespec& moment);
/// The same, of now.
std::string utc_text();

}  // namespace trireme::base
