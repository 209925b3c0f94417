// SPDX-License-Identifier: Apache-2.0
#include "apps/cli/text_options.hpp"

#include "apps/cli/option_values.hpp"

#include <algorithm>
#include <thread>

namespace trireme::apps {

void add_text_options(CLI::App& app, data::DocumentSources& sources) {
  app.add_option("--input", sources.paths, "Text to read: files or folders")
      ->required()
      ->type_name("PATH");
  app.add_option("--text-field", sources.text_field, "Member of a JSON object that holds its text")
      ->type_name("NAME")
      ->capture_default_str();
}

void add_threads_option(CLI::App& app, int& threads) {
  constexpr int most_threads = 1024;
  threads = std::clamp(static_cast<int>(std::thread::hardware_concurrency()), 1, most_threads);
  app.add_option("--threads", threads, "Threads to work with; the result does not depend on them")
      ->check(in_range(1, most_threads))
      ->type_name("N")
      ->default_str("all of the machine");
}

}  // namespace trireme::apps
