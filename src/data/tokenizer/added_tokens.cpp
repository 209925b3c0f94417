// SPDX-License-Identifier: Apache-2.0
#include "data/tokenizer/added_tokens.hpp"

#include "data/tokenizer/text/unicode.hpp"

#include <algorithm>

namespace trireme::data {

base::Result<Regex> word_character() {
  return Regex::compile("[\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}\\p{Join_Control}]");
}

AddedTokenFinder::AddedTokenFinder(std::vector<AddedToken> tokens,
                                   const std::vector<std::string>& contents)
    : tokens_(std::move(tokens)), nodes_(1) {
  for (std::size_t i = 0; i < tokens_.size(); ++i) {
    insert(contents[i], static_cast<std::int32_t>(i));
  }
}

std::int32_t AddedTokenFinder::step(std::int32_t node, unsigned char byte) const {
  const auto& next = nodes_[static_cast<std::size_t>(node)].next;
  const auto found = std::lower_bound(next.begin(), next.end(), byte,
                                      [](const auto& edge, auto b) { return edge.first < b; });
  return found == next.end() || found->first != byte ? -1 : found->second;
}

void AddedTokenFinder::insert(std::string_view content, std::int32_t token) {
  if (content.empty()) return;
  begins_[static_cast<unsigned char>(content.front())] = true;
  std::int32_t node = 0;
  for (const char letter : content) {
    const auto byte = static_cast<unsigned char>(letter);
    auto next = step(node, byte);
    if (next < 0) {
      next = static_cast<std::int32_t>(nodes_.size());
      auto& edges = nodes_[static_cast<std::size_t>(node)].next;
      edges.insert(std::upper_bound(edges.begin(), edges.end(), std::pair(byte, next)),
                   {byte, next});
      nodes_.emplace_back();
    }
    node = next;
  }
  // The first of two equal contents is the one that is found.
  auto& end = nodes_[static_cast<std::size_t>(node)].token;
  if (end < 0) end = token;
}

std::optional<AddedTokenFinder::Found> AddedTokenFinder::find(std::string_view text,
                                                              std::size_t from) const {
  for (auto begin = from; begin < text.size(); ++begin) {
    if (!begins_[static_cast<unsigned char>(text[begin])]) continue;
    std::optional<Found> longest;
    std::int32_t node = 0;
    for (auto at = begin; at < text.size(); ++at) {
      node = step(node, static_cast<unsigned char>(text[at]));
      if (node < 0) break;
      const auto token = nodes_[static_cast<std::size_t>(node)].token;
      if (token >= 0) longest = Found{static_cast<std::size_t>(token), begin, at + 1};
    }
    if (longest) return longest;
  }
  return std::nullopt;
}

bool AddedTokenFinder::stands_alone(std::string_view text, const Found& found, Matcher& word) {
  const auto is_word = [&](std::size_t begin, std::size_t bytes) {
    return word.find(text.substr(begin, bytes), 0).has_value();
  };
  if (found.begin > 0) {
    const auto bytes = code_point_before(text, found.begin).bytes;
    if (is_word(found.begin - bytes, bytes)) return false;
  }
  return found.end == text.size() || !is_word(found.end, code_point_at(text, found.end).bytes);
}

void AddedTokenFinder::split(std::string_view text, Matcher& word,
                             std::vector<Segment>& segments) const {
  std::size_t done = 0;
  for (auto found = find(text, 0); found; found = find(text, found->end)) {
    const auto& token = tokens_[found->token];
    if (token.single_word && !stands_alone(text, *found, word)) continue;
    auto begin = found->begin;
    auto end = found->end;
    if (token.lstrip) {
      while (begin > done) {
        const auto before = code_point_before(text, begin);
        if (!is_white_space(before.value)) break;
        begin -= before.bytes;
      }
    }
    if (token.rstrip) {
      while (end < text.size()) {
        const auto after = code_point_at(text, end);
        if (!is_white_space(after.value)) break;
        end += after.bytes;
      }
    }
    if (done < begin) segments.push_back({text.substr(done, begin - done), std::nullopt});
    segments.push_back({text.substr(begin, end - begin), token.id});
    done = end;
  }
  if (done < text.size()) segments.push_back({text.substr(done), std::nullopt});
}

}  // namespace trireme::data
