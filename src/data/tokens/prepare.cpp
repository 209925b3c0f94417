// SPDX-License-Identifier: Apache-2.0
#include "trireme/data/prepare.hpp"

#include "trireme/base/counted.hpp"
#include "trireme/base/error.hpp"
#include "trireme/base/file.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/json.hpp"
#include "trireme/base/json_text.hpp"
#include "trireme/base/suggest.hpp"
#include "trireme/data/indexed_tokens.hpp"

#include "data/documents/piece_reader.hpp"
#include "data/tokens/batch_encoder.hpp"
#include "data/tokens/ordered_pipeline.hpp"

#include <limits>

namespace trireme::data {
namespace {

using base::ExitCode;
using base::Failure;
using base::format;
using base::Json;

std::filesystem::path with_suffix(std::filesystem::path path, const char* suffix) {
  path += suffix;
  return path;
}

/// Ids that stand around the text of every document.
struct Around {
  std::vector<std::int32_t> before;
  std::vector<std::int32_t> behind;
};

/// Token file that is being written.
struct Target {
  IndexedTokensWriter writer;
  std::int64_t text_bytes = 0;

  TokenFileFacts facts(const Tokenizer& tokenizer, const Around& around) const {
    return {writer.document_count(), writer.token_count(), text_bytes,
            tokenizer.vocab_size(),  around.behind.back(), around.before};
  }
};

/// Assembles documents from pieces and appends each to its file.
class Sorter {
 public:
  Sorter(Target train, std::optional<Target> validation, double fraction, const Around& around)
      : train_(std::move(train)),
        validation_(std::move(validation)),
        // 2^64 times the fraction, without the overflow of 1.0.
        held_out_below_(static_cast<std::uint64_t>(fraction * 0x1.0p63) << 1),
        around_(around) {}

  void take(const EncodedBatch& batch) {
    if (!batch.skipped.empty() && notes_.skipped_lines == 0) {
      notes_.first_skipped = batch.skipped.front();
    }
    notes_.skipped_lines += std::ssize(batch.skipped);
    const auto* ids = batch.ids.data();
    for (const auto& piece : batch.pieces) {
      if (document_.empty() && text_bytes_ == 0) {
        hash_ = piece.hash;
        document_ = around_.before;
      }
      document_.insert(document_.end(), ids, ids + piece.tokens);
      ids += piece.tokens;
      text_bytes_ += static_cast<std::int64_t>(piece.text_bytes);
      repaired_ = repaired_ || piece.repaired;
      has_special_tokens_ = has_special_tokens_ || piece.has_special_tokens;
      if (piece.ends_document) end_document();
    }
  }

  Target& train() { return train_; }
  std::optional<Target>& validation() { return validation_; }
  const ReadNotes& notes() const { return notes_; }
  std::int64_t documents_with_special_tokens() const { return documents_with_special_tokens_; }

 private:
  void end_document() {
    if (document_.size() > around_.before.size()) {
      document_.insert(document_.end(), around_.behind.begin(), around_.behind.end());
      if (document_.size() > std::numeric_limits<std::int32_t>::max()) {
        throw base::Error(ExitCode::checkpoint,
                          "a document has more than 2^31 tokens (the token file's format counts "
                          "them with 32 bits); cut it with --document-separator");
      }
      auto& target = validation_ && hash_ < held_out_below_ ? *validation_ : train_;
      target.writer.append_document(document_);
      target.text_bytes += text_bytes_;
      notes_.repaired_documents += repaired_ ? 1 : 0;
      documents_with_special_tokens_ += has_special_tokens_ ? 1 : 0;
    }
    document_.clear();
    text_bytes_ = 0;
    repaired_ = false;
    has_special_tokens_ = false;
  }

  Target train_;
  std::optional<Target> validation_;
  std::uint64_t held_out_below_;
  const Around& around_;
  std::vector<std::int32_t> document_;
  std::int64_t text_bytes_ = 0;
  std::uint64_t hash_ = 0;
  bool repaired_ = false;
  bool has_special_tokens_ = false;
  ReadNotes notes_;
  std::int64_t documents_with_special_tokens_ = 0;
};

base::Result<std::int32_t> find_end_of_text(const Tokenizer& tokenizer, const std::string& name) {
  const auto id = name.empty() ? tokenizer.end_of_text() : tokenizer.token_to_id(name);
  if (id) return *id;
  if (name.empty()) {
    return base::usage_failure(
        "no file beside the tokenizer declares an end of text, and none of its special tokens has "
        "one "
        "of the usual names (documents could not be told apart); name the token with "
        "--end-of-text");
  }
  std::vector<std::string> names;
  for (const auto& token : tokenizer.added_tokens()) names.push_back(token.content);
  return base::usage_failure(
      format("the tokenizer has no token '{}'{}", name, base::did_you_mean(name, names)));
}

Around around_of(const Tokenizer& tokenizer, std::int32_t end_of_text, Template around) {
  Around ids;
  if (around == Template::apply) ids = {tokenizer.ids_before_text(), tokenizer.ids_behind_text()};
  // A template may end a text with the same token.
  if (ids.behind.empty() || ids.behind.back() != end_of_text) ids.behind.push_back(end_of_text);
  return ids;
}

void write_facts(const std::filesystem::path& prefix, const TokenFileFacts& facts) {
  const Json json{{"documents", facts.documents},     {"tokens", facts.tokens},
                  {"text_bytes", facts.text_bytes},   {"vocab_size", facts.vocab_size},
                  {"end_of_text", facts.end_of_text}, {"begin_of_text", facts.begin_of_text}};
  base::write_file_durably(with_suffix(prefix, ".json"), base::json_text(json, 2) + "\n");
}

base::Status check_split(const Target& train, const std::optional<Target>& validation,
                         double fraction) {
  const auto held_out = validation ? validation->writer.document_count() : 0;
  const auto documents = train.writer.document_count() + held_out;
  if (documents == 0) {
    return Failure{ExitCode::checkpoint, "the input holds no text (every document is empty)"};
  }
  if (train.writer.document_count() == 0 || (validation && held_out == 0)) {
    return base::usage_failure(format(
        "of {} {} were held out for validation (--validation-fraction {} is "
        "decided for each whole document); cut the text into more documents with "
        "--document-separator, or choose another fraction",
        base::counted(static_cast<std::int64_t>(documents), "document"), held_out, fraction));
  }
  return {};
}

std::filesystem::path validation_prefix(const PrepareOptions& options) {
  return with_suffix(options.out, ".validation");
}

/// Completes the files and reports their contents.
PrepareReport finish(Sorter& sorter, const Tokenizer& tokenizer, const Around& around,
                     const PrepareOptions& options) {
  PrepareReport report;
  report.notes = sorter.notes();
  report.documents_with_special_tokens = sorter.documents_with_special_tokens();
  report.train = sorter.train().facts(tokenizer, around);
  sorter.train().writer.finish();
  write_facts(options.out, report.train);
  if (auto& validation = sorter.validation()) {
    const auto facts = validation->facts(tokenizer, around);
    validation->writer.finish();
    write_facts(validation_prefix(options), facts);
    report.validation = facts;
  }
  return report;
}

}  // namespace

base::Result<PrepareReport> prepare(const DocumentSources& sources, const Tokenizer& tokenizer,
                                    const PrepareOptions& options,
                                    const ReadProgressCallback& progress) {
  TRIREME_EXPECT(options.threads >= 1, "at least one thread");
  const auto fraction = options.validation_fraction;
  if (!(fraction >= 0.0 && fraction < 1.0)) {
    return base::usage_failure(format(
        "--validation-fraction {} is not from 0 to below 1 (it is a share of the documents); "
        "choose for example 0.01",
        fraction));
  }
  const auto end_of_text = find_end_of_text(tokenizer, options.end_of_text);
  if (!end_of_text) return end_of_text.failure();
  auto documents = DocumentReader::open(sources);
  if (!documents) return documents.failure();
  const auto type = smallest_token_type(tokenizer.vocab_size());
  std::error_code error;
  const auto folder = options.out.parent_path();
  if (!folder.empty()) std::filesystem::create_directories(folder, error);
  auto train = IndexedTokensWriter::create(options.out, type);
  if (!train) return train.failure();
  std::optional<Target> validation;
  if (fraction > 0.0) {
    auto writer = IndexedTokensWriter::create(validation_prefix(options), type);
    if (!writer) return writer.failure();
    validation.emplace(Target{std::move(writer).value()});
  }

  const auto around = around_of(tokenizer, *end_of_text, options.around);
  const auto reading = options.special_spellings == SpecialSpellings::tokens
                           ? tokenizer
                           : tokenizer.with_special_spellings_as_text();
  Sorter sorter(Target{std::move(train).value()}, std::move(validation), fraction, around);
  PieceReader reader(std::move(documents).value(), reading);
  OrderedPipeline<DocumentBatch, EncodedBatch> pipeline;
  pipeline.run(
      options.threads,
      [&] {
        auto batch = reader.next();
        if (progress) progress(reader.progress());
        return batch;
      },
      [&] { return BatchEncoder(reading, sources); },
      [&](const EncodedBatch& batch) { sorter.take(batch); });

  if (auto status = check_split(sorter.train(), sorter.validation(), fraction); !status) {
    return status.failure();
  }
  auto report = finish(sorter, tokenizer, around, options);
  report.notes.byte_order_marks = reader.byte_order_marks();
  return report;
}

base::Result<std::optional<TokenFileFacts>> read_facts(const std::filesystem::path& prefix) {
  const auto path = with_suffix(prefix, ".json");
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return std::optional<TokenFileFacts>();
  const auto json = base::read_json_file(path, ExitCode::checkpoint, std::size_t{1} << 20);
  if (!json) return json.failure();
  TokenFileFacts facts;
  const auto read = [&](const char* name, auto& target) {
    const auto found = json->is_object() ? json->find(name) : json->end();
    if (found == json->end() || !found->is_number_integer()) return false;
    target = found->get<std::remove_reference_t<decltype(target)>>();
    return true;
  };
  if (!read("documents", facts.documents) || !read("tokens", facts.tokens) ||
      !read("text_bytes", facts.text_bytes) || !read("vocab_size", facts.vocab_size) ||
      !read("end_of_text", facts.end_of_text)) {
    return Failure{ExitCode::checkpoint,
                   format("'{}' lacks one of documents, tokens, text_bytes, vocab_size, "
                          "end_of_text (it is damaged or not from 'trireme data prepare'); prepare "
                          "the data again, or remove it",
                          path.string())};
  }
  if (const auto begin = json->find("begin_of_text"); begin != json->end()) {
    for (const auto& id : *begin) {
      if (id.is_number_integer()) facts.begin_of_text.push_back(id.get<std::int32_t>());
    }
  }
  return std::optional(facts);
}

}  // namespace trireme::data
