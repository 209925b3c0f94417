// SPDX-License-Identifier: Apache-2.0
#include "trireme/data/tokenizer_training.hpp"

#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/utf8.hpp"

#include "data/documents/piece_reader.hpp"
#include "data/tokenizer/text/text_walker.hpp"
#include "data/tokenizer/training/trained_tokenizer.hpp"
#include "data/tokens/ordered_pipeline.hpp"

#include <chrono>
#include <memory>
#include <mutex>
#include <set>

namespace trireme::data {
namespace {

using base::format;
using Clock = std::chrono::steady_clock;

constexpr std::int32_t byte_count = 256;
constexpr std::int32_t most_vocab_size = 1 << 22;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

base::Status check(const TrainingOptions& options) {
  TRIREME_EXPECT(options.threads >= 1, "at least one thread");
  const auto specials = static_cast<std::int32_t>(options.special_tokens.size());
  const auto least = specials + byte_count;
  if (options.vocab_size < least || options.vocab_size > most_vocab_size) {
    return base::usage_failure(
        format("a vocabulary of {} is out of range ({} special tokens and 256 bytes have an id "
               "each, and no model holds more than {}); choose {} to {}",
               options.vocab_size, specials, most_vocab_size, least, most_vocab_size));
  }
  std::set<std::string> seen;
  for (const auto& token : options.special_tokens) {
    // Shorter ones could be the text of a byte.
    const bool valid = token.size() >= 3 && base::well_formed_prefix(token) == token.size();
    if (!valid || !seen.insert(token).second) {
      return base::usage_failure(
          format("special token '{}' cannot be one (it must be UTF-8 of at least three bytes, and "
                 "stand once); write for example '<|endoftext|>'",
                 token));
    }
  }
  return {};
}

/// Totals of the text that was read.
struct Read {
  std::uint64_t text_bytes = 0;
  std::uint64_t documents = 0;
  /// A part of a document: whether something became U+FFFD, and whether the document ends.
  struct Part {
    bool repaired;
    bool ends_document;
  };
  std::vector<Part> parts = {};
  std::vector<std::string> skipped = {};  ///< what is wrong with each line that was left out
};

/// Counting state of one thread, with a table of its own.
class BatchCounter {
 public:
  BatchCounter(const Tokenizer& tokenizer, const DocumentSources& sources, WordCounts& counts)
      : walker_(tokenizer), texts_(sources.text_field, sources.bad_lines), counts_(counts) {}

  Read operator()(const DocumentBatch& batch) {
    Read read;
    for (const auto& document : batch.documents) {
      const auto text = texts_.of(batch, document);
      if (const auto& skipped = texts_.skipped()) {
        read.skipped.push_back(*skipped);
        continue;
      }
      const auto repaired_before = walker_.repaired_texts();
      walker_.walk(
          text, [](std::int32_t /*token*/) {}, [&](std::string_view word) { counts_.add(word); });
      read.text_bytes += text.size();
      read.documents += document.ends_document ? 1 : 0;
      read.parts.push_back({texts_.is_repaired() || walker_.repaired_texts() != repaired_before,
                            document.ends_document});
    }
    return read;
  }

 private:
  TextWalker walker_;
  DocumentTexts texts_;
  WordCounts& counts_;
};

/// Counts the words of all documents; each thread has a table of its own until the end.
class Counting {
 public:
  Counting(const Tokenizer& tokenizer, const DocumentSources& sources)
      : tokenizer_(tokenizer), sources_(sources) {}

  WordCounts run(PieceReader& reader, int threads, const ReadProgressCallback& progress) {
    const auto pull = [&] {
      auto batch = reader.next();
      if (progress) progress(reader.progress());
      return batch;
    };
    OrderedPipeline<DocumentBatch, Read> pipeline;
    pipeline.run(
        threads, pull, [&] { return BatchCounter(tokenizer_, sources_, add_table()); },
        [&](const Read& part) { take(part); });
    notes_.byte_order_marks = reader.byte_order_marks();
    auto counts = std::move(*tables_.front());
    for (std::size_t i = 1; i < tables_.size(); ++i) {
      for (const auto& entry : tables_[i]->entries()) counts.add(entry.word, entry.count);
    }
    return counts;
  }

  const Read& read() const { return read_; }
  const ReadNotes& notes() const { return notes_; }

 private:
  void take(const Read& batch) {
    read_.text_bytes += batch.text_bytes;
    read_.documents += batch.documents;
    for (const auto& part : batch.parts) {
      repaired_ = repaired_ || part.repaired;
      if (!part.ends_document) continue;
      notes_.repaired_documents += repaired_ ? 1 : 0;
      repaired_ = false;
    }
    if (!batch.skipped.empty() && notes_.skipped_lines == 0) {
      notes_.first_skipped = batch.skipped.front();
    }
    notes_.skipped_lines += std::ssize(batch.skipped);
  }
  WordCounts& add_table() {
    const std::lock_guard lock(mutex_);
    return *tables_.emplace_back(std::make_unique<WordCounts>());
  }

  const Tokenizer& tokenizer_;
  const DocumentSources& sources_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<WordCounts>> tables_;
  Read read_;
  ReadNotes notes_;
  bool repaired_ = false;  ///< of the document that goes on
};

}  // namespace

base::Result<TrainedTokenizer> train_tokenizer(const DocumentSources& sources,
                                               const TrainingOptions& options,
                                               const ReadProgressCallback& progress) {
  if (auto status = check(options); !status) return status.failure();
  auto documents = DocumentReader::open(sources);
  if (!documents) return documents.failure();
  const auto first_id = static_cast<std::int32_t>(options.special_tokens.size());
  // Tokenizer of bytes and special tokens only, which finds the words to count.
  const auto bare = make_tokenizer(options, BpeTrainer(WordCounts(), first_id));

  auto start = Clock::now();
  PieceReader reader(std::move(documents).value(), bare);
  Counting counting(bare, sources);
  const auto counts = counting.run(reader, options.threads, progress);
  TrainingReport report;
  report.text_bytes = counting.read().text_bytes;
  report.documents = counting.read().documents;
  report.notes = counting.notes();
  report.distinct_words = counts.entries().size();
  report.counting_seconds = seconds_since(start);
  if (report.text_bytes == 0) {
    return base::Failure{base::ExitCode::checkpoint,
                         "the input holds no text (every document is empty, and a vocabulary is "
                         "learned from text); name files with text by --input"};
  }

  start = Clock::now();
  BpeTrainer trainer(counts, first_id);
  trainer.train(options.vocab_size, options.min_frequency);
  report.merging_seconds = seconds_since(start);
  return TrainedTokenizer{make_tokenizer(options, trainer), report};
}

}  // namespace trireme::data
