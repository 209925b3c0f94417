#pragma once

#include "trireme/base/environment.hpp"
#include "trireme/comm/process_group.hpp"
#include "trireme/device/product_tuning.hpp"

#include <filesystem>
#include <span>

namespace trireme::train {

/// Where this user's programs keep what they can find again (XDG Base Directory Specification):
/// XDG_CACHE_HOME/trireme, else HOME/.cache/trireme; empty without either.
std::filesystem::path cache_folder(const base::Environment& environment);

/// Collective over the world. Host-blocking: yes. Every rank computes products as the file in
/// `folder` says that the first rank finds there; those of `calls` that it does not name are timed,
/// each rank its own, and of two choices for one product the lowest rank's counts, on all. The
/// first rank keeps what is new in the file: the next run begins with it, and so repeats this one.
/// A file that cannot be read or is damaged is as good as none, with a warning.
void choose_products(device::ProductTuning& tuning, std::span<const device::ProductCall> calls,
                     const std::filesystem::path& folder, comm::ProcessGroup& world);

}  // namespace trireme::train
