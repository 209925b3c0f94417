// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/result.hpp"
#include "trireme/predict/machine.hpp"

#include <filesystem>
#include <string_view>

namespace trireme::apps {

/// Refuses a file of --machine-out that is there, or that cannot be written.
base::Status check_machine_out(const std::filesystem::path& out);

/// Writes a new machine file. Throws base::Error (usage), also where one is there by now.
void write_machine(const predict::Machine& machine, std::string_view heading,
                   const std::filesystem::path& out);

}  // namespace trireme::apps
