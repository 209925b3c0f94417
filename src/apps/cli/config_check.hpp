// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/result.hpp"
#include "trireme/config/config.hpp"

#include <string>
#include <vector>

namespace trireme::apps {

/// Findings of one process on a start.
struct Verdict {
  /// Differences from what the run or its weights had, a sentence each.
  std::vector<std::string> notes = {};
  /// Checks that were not possible, and why: one clause each.
  std::vector<std::string> unchecked = {};
  /// How often the run sees its data (data::text()); empty where they cannot be read.
  std::string exposure = {};
  /// Files that are not there yet, in the words with which `train` refuses to begin without them.
  std::vector<std::string> missing = {};
};

/// Checks a start before there are ranks, with the functions that the ranks use: what the run keeps
/// from its earlier starts, the model, the layout on so many ranks (0: the smallest possible
/// number), batches and stages, tokenizer and data, trackers and key.
base::Result<Verdict> check_run(const config::Config& config, int ranks = 0);

/// The part of check_run() that reads no token file and no tokenizer: each of many ranks may ask,
/// before it starts MPI. A model that is not known is a failure.
base::Status check_model_and_layout(const config::Config& config, int ranks = 0);

/// Warnings about keys that a later file replaces, with the remedy, one line each; empty where
/// files agree.
std::vector<std::string> replacement_texts(const std::vector<std::string>& files);

}  // namespace trireme::apps
