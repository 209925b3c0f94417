// SPDX-License-Identifier: Apache-2.0
#include "mpi/commands/text_model.hpp"

#include "trireme/base/error.hpp"
#include "trireme/base/file.hpp"
#include "trireme/base/format.hpp"

#include "mpi/commands/ranks.hpp"

namespace trireme::tests {

TextModel make_text_model(const std::filesystem::path& folder, int vocabulary) {
  std::filesystem::create_directories(folder);
  const TextModel made{folder / "model", folder / "tokens"};
  std::string words;
  for (int line = 0; line < 60; ++line) {
    words += base::format("line {} of a text has {} words\n", line, line * 7 % 60);
  }
  base::write_file_durably(folder / "text.txt", words);
  const auto text = (folder / "text.txt").string();
  const auto tokenizer = (folder / "made.json").string();
  done_on_ranks(1, {"-q", "tokenizer", "train", "--input", text, "--vocab-size",
                    std::to_string(vocabulary), "--out", tokenizer});
  done_on_ranks(1, {"-q", "data", "prepare", "--input", text, "--tokenizer", tokenizer, "--out",
                    made.tokens.string()});
  const auto run = (folder / "made").string();
  done_on_ranks(
      1, with_settings({"-q", "train"},
                       {"run.directory=" + run, "data.train=" + made.tokens.string(),
                        "data.tokenizer=" + tokenizer, "model.architecture=llama",
                        "model.hidden_size=16", "model.num_hidden_layers=2",
                        "model.num_attention_heads=4", "model.num_key_value_heads=2",
                        "model.intermediate_size=24", "model.max_position_embeddings=32",
                        "model.initializer_range=0.3", "train.sequence_length=16", "train.steps=1",
                        "optimizer.learning_rate=0", "numerics.threads=1"}));
  done_on_ranks(1, {"checkpoint", "export", run, "--to", made.model.string()});
  return made;
}

}  // namespace trireme::tests
