// SPDX-License-Identifier: Apache-2.0
#include "trireme/data/prepare.hpp"

#include "trireme/base/counted.hpp"
#include "trireme/base/error.hpp"
#include "trireme/base/file.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/json.hpp"
#include "trireme/base/suggest.hpp"
#include "trireme/data/indexed_tokens.hpp"

#include "data/documents/piece_reader.hpp"
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

/// Result of one thread for a batch: the pieces' tokens, one after the other.
struct EncodedPiece {
  std::size_t tokens = 0;
  std::size_t text_bytes = 0;
  std::uint64_t hash = 0;  ///< of the piece's text
  bool ends_document = true;
  bool repaired = false;
};
struct EncodedBatch {
  std::vector<std::int32_t> ids;
  std::vector<EncodedPiece> pieces;
};

/// Encoder of one thread.
class BatchEncoder {
 public:
  BatchEncoder(const Tokenizer& tokenizer, std::string text_field)
      : encoder_(tokenizer), text_field_(std::move(text_field)) {}

  EncodedBatch operator()(const DocumentBatch& batch) {
    EncodedBatch encoded;
    for (const auto& document : batch.documents) {
      const auto text = document_text(batch, document, text_field_, storage_);
      const auto ids_before = encoded.ids.size();
      const auto repaired_before = encoder_.repaired_texts();
      encoder_.encode(text, encoded.ids);
      encoded.pieces.push_back({encoded.ids.size() - ids_before, text.size(), document_hash(text),
                                document.ends_document,
                                encoder_.repaired_texts() != repaired_before});
    }
    return encoded;
  }

 private:
  Tokenizer::Encoder encoder_;
  std::string text_field_;
  std::string storage_;
};

/// Token file that is being written.
struct Target {
  IndexedTokensWriter writer;
  std::int64_t text_bytes = 0;

  TokenFileFacts facts(const Tokenizer& tokenizer, std::int32_t end_of_text) const {
    return {writer.document_count(), writer.token_count(), text_bytes, tokenizer.vocab_size(),
            end_of_text};
  }
};

/// Assembles documents from pieces and appends each to its file.
class Sorter {
 public:
  Sorter(Target train, std::optional<Target> validation, double fraction, std::int32_t end_of_text)
      : train_(std::move(train)),
        validation_(std::move(validation)),
        // 2^64 times the fraction, without the overflow of 1.0.
        held_out_below_(static_cast<std::uint64_t>(fraction * 0x1.0p63) << 1),
        end_of_text_(end_of_text) {}

  void take(const EncodedBatch& batch) {
    const auto* ids = batch.ids.data();
    for (const auto& piece : batch.pieces) {
      if (document_.empty() && text_bytes_ == 0) hash_ = piece.hash;
      document_.insert(document_.end(), ids, ids + piece.tokens);
      ids += piece.tokens;
      text_bytes_ += static_cast<std::int64_t>(piece.text_bytes);
      repaired_ = repaired_ || piece.repaired;
      if (piece.ends_document) end_document();
    }
  }

  Target& train() { return train_; }
  std::optional<Target>& validation() { return validation_; }
  std::int64_t repaired_documents() const { return repaired_documents_; }

 private:
  void end_document() {
    if (!document_.empty()) {
      document_.push_back(end_of_text_);
      if (document_.size() > std::numeric_limits<std::int32_t>::max()) {
        throw base::Error(ExitCode::checkpoint,
                          "a document has more than 2^31 tokens (the token file's format counts "
                          "them with 32 bits); cut it with --document-separator");
      }
      auto& target = validation_ && hash_ < held_out_below_ ? *validation_ : train_;
      target.writer.append_document(document_);
      target.text_bytes += text_bytes_;
      repaired_documents_ += repaired_ ? 1 : 0;
    }
    document_.clear();
    text_bytes_ = 0;
    repaired_ = false;
  }

  Target train_;
  std::optional<Target> validation_;
  std::uint64_t held_out_below_;
  std::int32_t end_of_text_;
  std::vector<std::int32_t> document_;
  std::int64_t text_bytes_ = 0;
  std::uint64_t hash_ = 0;
  bool repaired_ = false;
  std::int64_t repaired_documents_ = 0;
};

base::Result<std::int32_t> find_end_of_text(const Tokenizer& tokenizer, const std::string& name) {
  const auto id = name.empty() ? tokenizer.end_of_text() : tokenizer.token_to_id(name);
  if (id) return *id;
  if (name.empty()) {
    return base::usage_failure(
        "the tokenizer has no end-of-text token by one of the usual names (documents could not be "
        "told apart); name the token with --end-of-text");
  }
  std::vector<std::string> names;
  for (const auto& token : tokenizer.added_tokens()) names.push_back(token.content);
  return base::usage_failure(
      format("the tokenizer has no token '{}'{}", name, base::did_you_mean(name, names)));
}

void write_facts(const std::filesystem::path& prefix, const TokenFileFacts& facts) {
  const Json json{{"documents", facts.documents},
                  {"tokens", facts.tokens},
                  {"text_bytes", facts.text_bytes},
                  {"vocab_size", facts.vocab_size},
                  {"end_of_text", facts.end_of_text}};
  base::write_file_durably(with_suffix(prefix, ".json"), json.dump(2) + "\n");
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
PrepareReport finish(Sorter& sorter, const Tokenizer& tokenizer, std::int32_t end_of_text,
                     const PrepareOptions& options) {
  PrepareReport report;
  report.repaired_documents = sorter.repaired_documents();
  report.train = sorter.train().facts(tokenizer, end_of_text);
  sorter.train().writer.finish();
  write_facts(options.out, report.train);
  if (auto& validation = sorter.validation()) {
    const auto facts = validation->facts(tokenizer, end_of_text);
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

  Sorter sorter(Target{std::move(train).value()}, std::move(validation), fraction, *end_of_text);
  PieceReader reader(std::move(documents).value(), tokenizer);
  OrderedPipeline<DocumentBatch, EncodedBatch> pipeline;
  pipeline.run(
      options.threads,
      [&] {
        auto batch = reader.next();
        if (progress) progress(reader.progress());
        return batch;
      },
      [&] { return BatchEncoder(tokenizer, sources.text_field); },
      [&](const EncodedBatch& batch) { sorter.take(batch); });

  if (auto status = check_split(sorter.train(), sorter.validation(), fraction); !status) {
    return status.failure();
  }
  return finish(sorter, tokenizer, *end_of_text, options);
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
  return std::optional(facts);
}

}  // namespace trireme::data
