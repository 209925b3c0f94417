// SPDX-License-Identifier: Apache-2.0
// trireme tokenizer train|encode|decode
#include "trireme/data/tokenizer.hpp"

#include "trireme/base/counted.hpp"
#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/log.hpp"
#include "trireme/base/number.hpp"
#include "trireme/data/tokenizer_training.hpp"

#include "apps/cli/commands.hpp"
#include "apps/cli/option_values.hpp"
#include "apps/cli/progress_line.hpp"
#include "apps/cli/standard_input.hpp"
#include "apps/cli/text_options.hpp"

namespace trireme::apps {
namespace {

using base::ExitCode;
using base::format;
using data::Tokenizer;

struct EncodeOptions {
  std::string tokenizer;
  bool plain = false;
};

void add_tokenizer_option(CLI::App& app, std::string& path) {
  app.add_option("--tokenizer", path, "Hugging Face tokenizer.json")->required()->type_name("FILE");
}

Action prepare_encode(CLI::App& app) {
  auto options = std::make_shared<EncodeOptions>();
  add_tokenizer_option(app, options->tokenizer);
  app.add_flag("--no-special-tokens", options->plain,
               "Leaves out what the tokenizer puts around a text (a begin-of-text token, say)");
  return [options](Context& context) {
    const auto tokenizer =
        base::value_or_throw(Tokenizer::load(options->tokenizer, data::DeclaredEnds::ignore));
    const auto around = options->plain ? data::Template::omit : data::Template::apply;
    const auto ids = tokenizer.encode(read_standard_input(), around);
    std::string text;
    for (const auto id : ids) {
      text += std::to_string(id);
      text += ' ';
    }
    if (!text.empty()) text.back() = '\n';
    context.out.write(text);
    return ExitCode::done;
  };
}

struct DecodeOptions {
  std::string tokenizer;
  bool skip_special = false;
};

std::vector<std::int32_t> parse_ids(std::string_view text) {
  std::vector<std::int32_t> ids;
  constexpr std::string_view blanks = " \t\r\n";
  for (;;) {
    const auto begin = text.find_first_not_of(blanks);
    if (begin == std::string_view::npos) return ids;
    text.remove_prefix(begin);
    const auto word = text.substr(0, text.find_first_of(blanks));
    const auto id = base::number_in<std::int32_t>(word);
    if (!id) {
      throw base::Error(ExitCode::usage,
                        format("'{}' is no token id (decode reads whole numbers separated by "
                               "white space); pass what 'trireme tokenizer encode' prints",
                               word.substr(0, 40)));
    }
    ids.push_back(*id);
    text.remove_prefix(word.size());
  }
}

void require_known(const Tokenizer& tokenizer, const std::vector<std::int32_t>& ids) {
  for (const auto id : ids) {
    if (id >= 0 && id < tokenizer.vocab_size()) continue;
    throw base::Error(
        ExitCode::usage,
        format("id {} is outside this tokenizer's vocabulary of {} (the ids come from "
               "another tokenizer); pass the one that encoded them",
               id, tokenizer.vocab_size()));
  }
}

Action prepare_decode(CLI::App& app) {
  auto options = std::make_shared<DecodeOptions>();
  add_tokenizer_option(app, options->tokenizer);
  app.add_flag("--skip-special-tokens", options->skip_special, "Leaves special tokens out");
  return [options](Context& context) {
    const auto tokenizer =
        base::value_or_throw(Tokenizer::load(options->tokenizer, data::DeclaredEnds::ignore));
    const auto ids = parse_ids(read_standard_input());
    require_known(tokenizer, ids);
    context.out.write(tokenizer.decode(
        ids, options->skip_special ? data::SpecialTokens::skip : data::SpecialTokens::keep));
    return ExitCode::done;
  };
}

struct TrainOptions {
  data::DocumentSources sources;
  data::TrainingOptions training;
  std::string out;
};

CLI::Validator pre_tokenizer_kind() {
  return number_of({{"gpt2", static_cast<int>(data::PreTokenizerKind::gpt2)},
                    {"llama3", static_cast<int>(data::PreTokenizerKind::llama3)},
                    {"qwen2", static_cast<int>(data::PreTokenizerKind::qwen2)}});
}

void report(const data::TrainedTokenizer& trained, const TrainOptions& options) {
  const auto& facts = trained.report;
  const auto vocab_size = trained.tokenizer.vocab_size();
  base::log::info("tokenizer",
                  "{}: {} tokens from {} of text ({}, {} distinct words); counted in {}, "
                  "merged in {}",
                  options.out, vocab_size, base::bytes_text(facts.text_bytes),
                  base::counted(static_cast<std::int64_t>(facts.documents), "document"),
                  facts.distinct_words, base::duration_text(facts.counting_seconds),
                  base::duration_text(facts.merging_seconds));
  say_notes("tokenizer", facts.notes);
  if (vocab_size == options.training.vocab_size) return;
  base::log::warning("tokenizer",
                     "no more pairs occur {} times: the vocabulary has {} tokens instead of {}; "
                     "give more text, or a lower --min-frequency",
                     options.training.min_frequency, vocab_size, options.training.vocab_size);
}

Action prepare_train(CLI::App& app) {
  auto options = std::make_shared<TrainOptions>();
  auto& training = options->training;
  add_text_options(app, options->sources);
  app.add_option("--vocab-size", training.vocab_size,
                 "Token ids in all: special tokens, 256 bytes and merges")
      ->required()
      ->type_name("N");
  app.add_option("--out", options->out, "Where the tokenizer.json goes")
      ->required()
      ->type_name("FILE");
  app.add_option("--pre-tokenizer", training.pre_tokenizer,
                 "How text is cut into words: gpt2, llama3 (digits in threes) or qwen2 (single "
                 "digits, NFC)")
      ->transform(pre_tokenizer_kind())
      ->default_str("llama3")
      ->type_name("KIND");
  app.add_option("--special-token", training.special_tokens,
                 "Token that is never cut and gets one of the first ids; may be given again")
      ->type_name("TEXT")
      ->default_str("<|endoftext|>");
  app.add_option("--min-frequency", training.min_frequency, "Pairs that are rarer are not merged")
      ->type_name("N")
      ->capture_default_str();
  add_threads_option(app, training.threads);
  return [options](Context& /*context*/) {
    ProgressLine line("tokenizer", "reading");
    const auto trained = base::value_or_throw(data::train_tokenizer(
        options->sources, options->training,
        [&](const data::ReadProgress& at) { line.show(at.bytes_read, at.bytes_total); }));
    line.end();
    trained.tokenizer.save(options->out);
    report(trained, *options);
    return ExitCode::done;
  };
}

}  // namespace

Command tokenizer_command() {
  return {.name = "tokenizer",
          .summary = "Trains tokenizers; turns text into token ids and back",
          .group = "Data",
          .subcommands = {
              {.name = "train",
               .summary = "Learns a byte-level BPE vocabulary from text",
               .details = "The result does not depend on the number of threads. It is a Hugging "
                          "Face tokenizer.json.\n\n" +
                          std::string(input_formats),
               .prepare = prepare_train},
              {.name = "encode",
               .summary = "Reads text from standard input and prints its token ids",
               .details = "Ids are separated by spaces and equal those of Hugging Face tokenizers. "
                          "Ill-formed UTF-8 is read as U+FFFD.",
               .prepare = prepare_encode},
              {.name = "decode",
               .summary = "Reads token ids from standard input and prints their text",
               .details = "Nothing is added to the text, not even a line break at its end.",
               .prepare = prepare_decode},
          }};
}

}  // namespace trireme::apps
