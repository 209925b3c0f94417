// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/checkpoint/folders.hpp"

#include <filesystem>

namespace trireme::checkpoint {

/// Adds to the report of a step whose checksums are right: tensors with values that are not finite,
/// and those of which HDF5 reads other values through master.h5 than a load does.
void deep_check(const std::filesystem::path& step_folder, const Manifest& manifest,
                VerifyReport& report);

}  // namespace trireme::checkpoint
