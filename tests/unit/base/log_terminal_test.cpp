// SPDX-License-Identifier: Apache-2.0
// Lines of the log on a terminal, read from the descriptor that stands in for it.
#include "trireme/base/log_terminal.hpp"

#include "trireme/base/columns.hpp"
#include "trireme/base/error.hpp"
#include "trireme/base/file.hpp"
#include "trireme/base/text.hpp"

#include "support/temporary_folder.hpp"

#include <catch2/catch.hpp>
#include <fcntl.h>
#include <unistd.h>

#include <functional>

using namespace trireme;

namespace {

/// Text that `speak` writes to stderr while a terminal of so many columns is attached.
std::string written(std::size_t columns, const std::function<void()>& speak,
                    const base::log::Settings& settings = {}) {
  const tests::TemporaryFolder folder;
  const auto path = folder.path() / "terminal";
  // NOLINTNEXTLINE(performance-unnecessary-copy-initialization): configure() changes the original.
  const auto before = base::log::settings();
  const int descriptor = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  const int standard = ::dup(STDERR_FILENO);
  REQUIRE(::dup2(descriptor, STDERR_FILENO) == STDERR_FILENO);
  base::log::configure(settings);
  base::log::attach_terminal({.columns = [columns] { return columns; }});
  speak();
  base::log::attach_terminal({});
  base::log::configure(before);
  ::dup2(standard, STDERR_FILENO);
  ::close(standard);
  ::close(descriptor);
  return base::value_or_throw(base::read_text_file(path));
}

constexpr std::size_t time_width = base::log::time_columns;

}  // namespace

TEST_CASE(
    "on a terminal a line says time, room and message, and level and rank where they matter") {
  base::log::Settings settings;
  settings.identity = {.rank = 3, .world_size = 8, .node = "n07"};
  const auto text = written(
      80,
      [] {
        base::log::local::info("train", "here");
        base::log::local::warning("data", "careful");
      },
      settings);
  const auto lines = base::split(text, '\n');
  REQUIRE(lines.size() == 3);
  CHECK(lines[0].substr(time_width) == "r0003/0008 n07 train: here");
  CHECK(lines[1].substr(time_width) == "warning: r0003/0008 n07 data: careful");
  CHECK(written(80, [] { base::log::info("train", "all"); }).substr(time_width) == "train: all\n");
}

TEST_CASE("long messages are broken at the terminal's width, behind the time") {
  const auto text = written(50, [] {
    base::log::info("train", "{}",
                    "words and words and words and words and words and\nanother paragraph");
  });
  std::string said;
  for (const auto line : base::split(base::trimmed(text), '\n')) {
    CAPTURE(line);
    CHECK(base::width_of(line) <= 50);
    said += line.substr(time_width);
    said += '|';
  }
  CHECK(said == "train: words and words and words and|words and words and|another paragraph|");
}

TEST_CASE("the status line stays below the lines of the log, and errors end it") {
  const auto text = written(80, [] {
    base::log::set_status_line("half done");
    base::log::info("train", "one");
    base::log::local::error("train", "two");
    base::log::info("train", "three");
    base::log::set_status_line("");
  });
  // Erased and drawn again around each line, with the cursor at its begin.
  CHECK(text.starts_with("half done\r\r\033[K"));
  CHECK(text.find("train: one\nhalf done\r") != std::string::npos);
  const auto error = text.find("error: train: two");
  REQUIRE(error != std::string::npos);
  CHECK(text.find("half done", error) == std::string::npos);
  CHECK(text.ends_with("train: three\n"));
}

TEST_CASE("without a terminal nothing is drawn") {
  const tests::TemporaryFolder folder;
  CHECK(base::log::terminal_columns() == 0);
  base::log::set_status_line("never seen");
  base::log::write_to_terminal("neither");
  const auto text = written(80, [] {
    base::log::attach_terminal({});
    base::log::set_status_line("never seen");
    base::log::write_to_terminal("neither");
    base::log::info("train", "seen");
  });
  CHECK(text.find("never") == std::string::npos);
  CHECK(text.find("neither") == std::string::npos);
  CHECK(text.find("r0000/0001  train: seen\n") != std::string::npos);
}
