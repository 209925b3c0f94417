// SPDX-License-Identifier: Apache-2.0
#include "apps/cli/text_options.hpp"

#include "trireme/base/counted.hpp"
#include "trireme/base/log.hpp"

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
  app.add_flag_callback(
      "--skip-bad-lines", [&sources] { sources.bad_lines = data::BadLines::skip; },
      "Leaves lines of JSON out that are no document, and tells how many, instead of ending");
}

void say_notes(std::string_view room, const data::ReadNotes& notes) {
  if (notes.repaired_documents > 0) {
    base::log::warning(room,
                       "{} {} bytes that are not UTF-8 (or halves of surrogate pairs); these were "
                       "read as U+FFFD",
                       base::counted(notes.repaired_documents, "document"),
                       notes.repaired_documents == 1 ? "holds" : "hold");
  }
  if (notes.skipped_lines > 0) {
    base::log::warning(room, "{} left out (--skip-bad-lines), the first for this: {}",
                       base::counted(notes.skipped_lines, "line"), notes.first_skipped);
  }
  if (notes.byte_order_marks > 0) {
    base::log::info(room, "{} begin with a byte order mark, which was left out",
                    base::counted(notes.byte_order_marks, "text file"));
  }
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
