// SPDX-License-Identifier: Apache-2.0
#include "data/tokenizer/training/trained_tokenizer.hpp"

#include "trireme/base/error.hpp"
#include "trireme/base/json.hpp"
#include "trireme/base/json_text.hpp"

#include "data/tokenizer/text/known_patterns.hpp"
#include "data/tokenizer/tokenizer_json.hpp"

namespace trireme::data {
namespace {

using base::Json;

Json byte_level(bool use_regex) {
  return {{"type", "ByteLevel"},
          {"add_prefix_space", false},
          {"trim_offsets", true},
          {"use_regex", use_regex}};
}

Json pre_tokenizer_json(PreTokenizerKind kind) {
  if (kind == PreTokenizerKind::gpt2) return byte_level(true);
  const auto pattern = kind == PreTokenizerKind::llama3 ? llama3_pattern : qwen2_pattern;
  auto parts = Json::array();
  parts.push_back({{"type", "Split"},
                   {"pattern", {{"Regex", std::string(pattern)}}},
                   {"behavior", "Isolated"},
                   {"invert", false}});
  parts.push_back(byte_level(false));
  return {{"type", "Sequence"}, {"pretokenizers", std::move(parts)}};
}

Json added_tokens_json(const std::vector<std::string>& tokens) {
  auto list = Json::array();
  for (std::size_t id = 0; id < tokens.size(); ++id) {
    list.push_back({{"id", id},
                    {"content", tokens[id]},
                    {"single_word", false},
                    {"lstrip", false},
                    {"rstrip", false},
                    {"normalized", false},
                    {"special", true}});
  }
  return list;
}

/// Parts of a tokenizer.json other than vocabulary and merges.
Json frame(const TrainingOptions& options) {
  const bool nfc = options.pre_tokenizer == PreTokenizerKind::qwen2;
  Json model{{"type", "BPE"},
             {"dropout", nullptr},
             {"unk_token", nullptr},
             {"continuing_subword_prefix", nullptr},
             {"end_of_word_suffix", nullptr},
             {"fuse_unk", false},
             {"byte_fallback", false},
             {"ignore_merges", false},
             {"vocab", Json::object()},
             {"merges", Json::array()}};
  return {{"version", "1.0"},
          {"truncation", nullptr},
          {"padding", nullptr},
          {"added_tokens", added_tokens_json(options.special_tokens)},
          {"normalizer", nfc ? Json{{"type", "NFC"}} : Json(nullptr)},
          {"pre_tokenizer", pre_tokenizer_json(options.pre_tokenizer)},
          {"post_processor", byte_level(false)},
          {"decoder", byte_level(false)},
          {"model", std::move(model)}};
}

}  // namespace

Tokenizer make_tokenizer(const TrainingOptions& options, const BpeTrainer& trainer) {
  TokenizerFile file;
  file.frame = frame(options);
  file.vocabulary = options.special_tokens;
  file.vocabulary.insert(file.vocabulary.end(), trainer.tokens().begin(), trainer.tokens().end());
  file.merges = trainer.merges();
  const auto json = base::json_text(write_tokenizer_json(file));
  return base::value_or_throw(Tokenizer::parse(json, "the trained tokenizer"));
}

}  // namespace trireme::data
