// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/config/config.hpp"
#include "trireme/plan/memory_plan.hpp"
#include "trireme/plan/pictures.hpp"
#include "trireme/plan/search.hpp"
#include "trireme/predict/machine.hpp"

#include <CLI/CLI.hpp>

#include <filesystem>

/// trireme plan --svg DIR
namespace trireme::apps {

/// Adds the option.
void add_pictures(CLI::App& app, std::filesystem::path& folder);

/// Refuses a folder that cannot be written to, before anything is computed. Throws Error
/// (checkpoint).
void check_picture_folder(const std::filesystem::path& folder);

/// Writes the pictures of a plan of all ranks into a folder, which is made. Throws Error.
plan::Pictures draw_plan(const std::filesystem::path& folder, const plan::MemoryPlan& memory,
                         const config::Config& config, const predict::Machine& machine);

/// The same of the best layout that a search has found.
plan::Pictures draw_best(const std::filesystem::path& folder, const plan::SearchResult& result,
                         const config::Config& config, const model::ModelConfig& model,
                         const predict::Machine& machine);

}  // namespace trireme::apps
