// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/result.hpp"
#include "trireme/config/config.hpp"

#include "apps/cli/command.hpp"

#include <CLI/CLI.hpp>

#include <functional>
#include <span>
#include <string>

/// Options that several commands have. They are declared here alone, so that each has one name and
/// one form; a word that a command had earlier is accepted besides, and no help shows it.
namespace trireme::apps {

/// Option of a degree of parallelism: the launch contract's words.
struct DegreeOption {
  const char* name;
  const char* earlier;
  const char* key;
  const char* meaning;
};
std::span<const DegreeOption> degree_options();

constexpr int most_ranks = 1 << 20;

/// Adds --ranks N, from 1 to `most`; `earlier` is an option of before, or null.
void add_ranks(CLI::App& app, int& ranks, const std::string& meaning, const char* earlier,
               int most = most_ranks);

/// Ranks in all, as --ranks gives them; for 0, those of one replica, or of as many replicas as
/// parallel.data asks for. Failure (ExitCode::usage): more than most_ranks.
base::Result<int> ranks_in_all(int given, const config::Config& config);

/// Adds --svg FILE, where '-' is standard output; `earlier` is an option of before, or null.
CLI::Option* add_svg(CLI::App& app, std::string& file, const std::string& meaning,
                     const char* earlier = nullptr);

/// Words of one start of a command that draws: what standard output and --svg FILE receive.
struct Drawing {
  /// File of --svg; empty: no picture.
  const std::string& file;
  /// Room that logs, and what the picture shows.
  const char* room;
  std::string title;
  std::function<std::string()> picture;
  /// Whether the text is JSON: never replaced by the picture.
  bool json;
  std::function<std::string()> text;
};
/// Writes the picture into its file and the text to standard output; with --svg -, the picture
/// alone to standard output. Throws base::Error (ExitCode::usage) for --svg - beside --json.
void write_drawing(const Drawing& drawing, Context& context);

/// Adds the earlier word of an option for the same value: accepted, and shown nowhere.
template <typename Value>
CLI::Option* add_earlier(CLI::App& app, const char* word, Value& value, CLI::Option* option) {
  return app.add_option(word, value)->group("")->excludes(option);
}

}  // namespace trireme::apps
