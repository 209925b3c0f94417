// SPDX-License-Identifier: Apache-2.0
#include "trireme/huggingface/run_files.hpp"

#include "trireme/base/error.hpp"
#include "trireme/base/file.hpp"

#include "support/temporary_folder.hpp"

#include <catch2/catch.hpp>

using namespace trireme;
namespace fs = std::filesystem;

namespace {

std::string text_of(const fs::path& path) {
  return base::value_or_throw(base::read_text_file(path));
}

/// A folder with a tokenizer and what says how its texts end.
fs::path tokenizer_in(const fs::path& folder, const std::string& text, const std::string& end) {
  fs::create_directories(folder);
  base::write_file_durably(folder / "tokenizer.json", text);
  base::write_file_durably(folder / "generation_config.json", "{\"eos_token_id\": " + end + "}\n");
  return folder / "tokenizer.json";
}

const std::string small = "{\"model\":{\"type\":\"BPE\"}}";

}  // namespace

TEST_CASE("a tokenizer that is only written differently leaves the run's files as they are") {
  const tests::TemporaryFolder folder;
  const auto run = folder.path() / "run";
  fs::create_directories(run);
  huggingface::keep_tokenizer(tokenizer_in(folder.path() / "first", small, "7"), run);
  CHECK(text_of(run / "generation_config.json") == "{\"eos_token_id\": 7}\n");
  const auto same = tokenizer_in(folder.path() / "same", "{ \"model\": {\"type\": \"BPE\"} }", "8");
  huggingface::keep_tokenizer(same, run);
  CHECK(text_of(run / "tokenizer.json") == small);
  CHECK(text_of(run / "generation_config.json") == "{\"eos_token_id\": 7}\n");
  // Another one comes with its own.
  const auto other =
      tokenizer_in(folder.path() / "other", "{\"model\":{\"type\":\"WordPiece\"}}", "9");
  huggingface::keep_tokenizer(other, run);
  CHECK(text_of(run / "generation_config.json") == "{\"eos_token_id\": 9}\n");
}

TEST_CASE("what an imported model said of its texts stays where a tokenizer is added") {
  const tests::TemporaryFolder folder;
  const auto run = folder.path() / "run";
  fs::create_directories(run);
  base::write_file_durably(run / "generation_config.json", "{\"eos_token_id\": 3}\n");
  const auto tokenizer = folder.path() / "tokenizer.json";
  base::write_file_durably(tokenizer, small);
  huggingface::keep_tokenizer(tokenizer, run);
  CHECK(text_of(run / "tokenizer.json") == small);
  CHECK(text_of(run / "generation_config.json") == "{\"eos_token_id\": 3}\n");
}
