// SPDX-License-Identifier: Apache-2.0
// trireme data prepare|inspect
#include "trireme/base/counted.hpp"
#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/json.hpp"
#include "trireme/base/json_text.hpp"
#include "trireme/base/log.hpp"
#include "trireme/base/utf8.hpp"
#include "trireme/data/indexed_tokens.hpp"
#include "trireme/data/prepare.hpp"
#include "trireme/huggingface/folder_warnings.hpp"

#include "apps/cli/commands.hpp"
#include "apps/cli/option_values.hpp"
#include "apps/cli/progress_line.hpp"
#include "apps/cli/text_options.hpp"

#include <algorithm>
#include <filesystem>
#include <system_error>

namespace trireme::apps {
namespace {

using base::ExitCode;
using base::format;
using base::Json;
using data::IndexedTokens;
using data::Tokenizer;

struct PrepareArguments {
  data::DocumentSources sources;
  data::PrepareOptions prepare;
  std::string tokenizer;
};

void report(const std::string& prefix, const data::TokenFileFacts& facts) {
  base::log::info("data", "{}.bin: {}, {} tokens, {:.3f} bytes of text a token", prefix,
                  base::counted(facts.documents, "document"), facts.tokens,
                  static_cast<double>(facts.text_bytes) /
                      static_cast<double>(std::max<std::int64_t>(facts.tokens, 1)));
}

/// Says what the documents begin with, and that some hold special tokens themselves.
void say_special_tokens(const Tokenizer& tokenizer, const data::PrepareReport& prepared) {
  std::string begin;
  for (const auto id : prepared.train.begin_of_text) {
    begin += format("{}{}", begin.empty() ? "" : " ", tokenizer.id_to_token(id).value_or("?"));
  }
  if (!begin.empty()) {
    base::log::info("data",
                    "every document begins with {}, as prompts do (--no-special-tokens leaves it "
                    "out)",
                    begin);
  }
  const auto count = prepared.documents_with_special_tokens;
  if (count == 0) return;
  base::log::info("data",
                  "{} special tokens in the text, which were read as these tokens "
                  "(--special-tokens-as-text reads them as text)",
                  base::counted(count, "document") + (count == 1 ? " holds" : " hold"));
}

/// Says which token ends documents where a file beside the tokenizer decides that.
void say_end_of_text(const Tokenizer& tokenizer) {
  const auto& ends = tokenizer.text_ends();
  if (ends.source.empty() || !ends.document_end) return;
  base::log::info("data", "documents end with token {}, '{}', as {} says", *ends.document_end,
                  tokenizer.id_to_token(*ends.document_end).value_or(""), ends.source);
  if (ends.overruled.empty()) return;
  base::log::warning("data",
                     "{} (another end of text than that of {}, which decides); --end-of-text names "
                     "one",
                     base::join(ends.overruled, ", "), ends.source);
}

/// Refuses to overwrite an input, as `--tokenizer words.json --out words` would.
base::Status refuse_overwriting(const PrepareArguments& arguments) {
  auto inputs = arguments.sources.paths;
  inputs.push_back(arguments.tokenizer);
  const auto prefix = arguments.prepare.out.string();
  for (const auto* ending :
       {".bin", ".idx", ".json", ".validation.bin", ".validation.idx", ".validation.json"}) {
    const auto output = prefix + ending;
    for (const auto& input : inputs) {
      std::error_code ignored;
      if (!std::filesystem::equivalent(output, input, ignored)) continue;
      return base::usage_failure(
          format("--out {} would write '{}', which is '{}' (the command reads it); choose another "
                 "prefix",
                 prefix, output, input));
    }
  }
  return {};
}

void add_prepare_options(CLI::App& app, const std::shared_ptr<PrepareArguments>& arguments) {
  auto& options = arguments->prepare;
  add_text_options(app, arguments->sources);
  app.add_option("--tokenizer", arguments->tokenizer, "Hugging Face tokenizer.json")
      ->required()
      ->type_name("FILE");
  app.add_option("--out", options.out, "Prefix of the files to write")
      ->required()
      ->type_name("PREFIX");
  app.add_option("--validation-fraction", options.validation_fraction,
                 "Share of documents to hold out")
      ->type_name("SHARE")
      ->capture_default_str();
  app.add_option("--document-separator", arguments->sources.separator,
                 "Cuts text files into documents: blank-line, or a regular expression (PCRE2)")
      ->type_name("REGEX");
  app.add_option(
         "--end-of-text", options.end_of_text,
         "Token that ends every document (default: the end of text that generation_config.json, "
         "config.json or tokenizer_config.json beside the tokenizer declares, else a special "
         "token by its usual name)")
      ->type_name("TOKEN");
  app.add_flag_callback(
      "--no-special-tokens", [&options] { options.around = data::Template::omit; },
      "Leaves out what the tokenizer puts around a text (a begin-of-text token, say), but for the "
      "end of text");
  app.add_flag_callback(
      "--special-tokens-as-text",
      [&options] { options.special_spellings = data::SpecialSpellings::text; },
      "Reads the spelling of a special token in a text (<|endoftext|>, say) as plain text, not as "
      "the token");
  add_threads_option(app, options.threads);
}

Action prepare_prepare(CLI::App& app) {
  auto arguments = std::make_shared<PrepareArguments>();
  add_prepare_options(app, arguments);
  return [arguments](Context& /*context*/) {
    base::success_or_throw(refuse_overwriting(*arguments));
    const bool names_end = !arguments->prepare.end_of_text.empty();
    const auto tokenizer = base::value_or_throw(Tokenizer::load(
        arguments->tokenizer, names_end ? data::DeclaredEnds::ignore : data::DeclaredEnds::read));
    if (!names_end) say_end_of_text(tokenizer);
    const auto folder = std::filesystem::path(arguments->tokenizer).parent_path();
    for (const auto& text : huggingface::tokenizer_warnings(folder, tokenizer)) {
      base::log::warning("data", "{}", text);
    }
    ProgressLine line("data", "preparing");
    const auto prepared = base::value_or_throw(data::prepare(
        arguments->sources, tokenizer, arguments->prepare,
        [&](const data::ReadProgress& at) { line.show(at.bytes_read, at.bytes_total); }));
    line.end();
    const auto prefix = arguments->prepare.out.string();
    report(prefix, prepared.train);
    if (prepared.validation) report(prefix + ".validation", *prepared.validation);
    say_notes("data", prepared.notes);
    say_special_tokens(tokenizer, prepared);
    return ExitCode::done;
  };
}

struct InspectArguments {
  std::string prefix;
  std::string tokenizer;
  std::int64_t documents = 0;
  bool json = false;
};

Json json_of(const IndexedTokens& tokens, const std::optional<data::TokenFileFacts>& facts) {
  Json json{{"path", tokens.path().string()},
            {"format", data::text(tokens.file_format())},
            {"token_type", data::text(tokens.token_type())},
            {"documents", tokens.document_count()},
            {"sequences", tokens.sequence_count()},
            {"tokens", tokens.token_count()}};
  if (const auto extremes = tokens.extremes()) {
    json["smallest_id"] = extremes->smallest;
    json["largest_id"] = extremes->largest;
  }
  json["fingerprint"] = format("{:016x}", tokens.fingerprint());
  if (facts) {
    json["text_bytes"] = facts->text_bytes;
    json["vocab_size"] = facts->vocab_size;
    json["end_of_text"] = facts->end_of_text;
    json["begin_of_text"] = facts->begin_of_text;
  }
  return json;
}

void print_documents(const IndexedTokens& tokens, const InspectArguments& arguments, Output& out) {
  const auto tokenizer =
      base::value_or_throw(Tokenizer::load(arguments.tokenizer, data::DeclaredEnds::ignore));
  std::vector<std::int32_t> ids;
  for (std::int64_t i = 0; i < std::min(arguments.documents, tokens.document_count()); ++i) {
    const auto range = tokens.document(i);
    ids.resize(static_cast<std::size_t>(range.end - range.begin));
    tokens.read(range.begin, ids);
    out.write(format("--- document {}, {} tokens\n{}\n", i, ids.size(), tokenizer.decode(ids)));
  }
}

Action prepare_inspect(CLI::App& app) {
  auto arguments = std::make_shared<InspectArguments>();
  app.add_option("PREFIX", arguments->prefix, "Token file, or its prefix")
      ->required()
      ->type_name("PATH");
  app.add_flag("--json", arguments->json, "One JSON object");
  auto* tokenizer =
      app.add_option("--tokenizer", arguments->tokenizer, "Tokenizer to show text with");
  tokenizer->type_name("FILE");
  app.add_option("--documents", arguments->documents, "Shows the text of so many documents")
      ->needs(tokenizer)
      ->check(zero_or_more())
      ->type_name("N");
  return [arguments](Context& context) {
    const auto tokens = base::value_or_throw(IndexedTokens::open(arguments->prefix));
    auto prefix = tokens.path();
    const auto facts = base::value_or_throw(data::read_facts(prefix.replace_extension()));
    const auto json = json_of(tokens, facts);
    if (arguments->json) {
      context.out.write(base::json_text(json) + "\n");
      return ExitCode::done;
    }
    for (const auto& [name, value] : json.items()) {
      context.out.write(base::repaired_utf8(
          format("{:<13}{}\n", name,
                 value.is_string() ? value.get<std::string>() : base::json_text(value))));
    }
    if (arguments->documents > 0) print_documents(tokens, *arguments, context.out);
    return ExitCode::done;
  };
}

}  // namespace

Command data_command() {
  return {
      .name = "data",
      .summary = "Turns text into token files for training, and shows what these hold",
      .group = "Data",
      .subcommands = {
          {.name = "prepare",
           .summary = "Writes PREFIX.bin/.idx (and PREFIX.validation.bin/.idx) from text",
           .details =
               "Each document begins and ends with what the tokenizer puts around a text, as "
               "prompts do, and ends with the end-of-text token. Which documents are held out "
               "depends on their text alone; the files do not depend on the number of "
               "threads, and appear only when they are complete. PREFIX.json keeps counts of "
               "documents, tokens and bytes.\n\n" +
               std::string(input_formats),
           .prepare = prepare_prepare},
          {.name = "inspect",
           .summary = "Checks a token file (Megatron .bin/.idx or llm.c .bin) and prints its facts",
           .prepare = prepare_inspect},
      }};
}

}  // namespace trireme::apps
