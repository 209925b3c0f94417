// SPDX-License-Identifier: Apache-2.0
#include "trireme/base/error.hpp"
#include "trireme/base/file.hpp"
#include "trireme/base/format.hpp"
#include "trireme/data/indexed_tokens.hpp"

#include "data/tokens/megatron_index.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <limits>

namespace trireme::data {
namespace {

using base::ExitCode;
using base::format;

/// A file that is written front to back under a temporary name, through a buffer.
class SequentialFile {
 public:
  explicit SequentialFile(std::filesystem::path path)
      : path_(std::move(path)), temporary_(path_), buffer_() {
    temporary_ += format(".tmp-{}", ::getpid());
    buffer_.reserve(buffer_bytes);
  }
  SequentialFile(const SequentialFile&) = delete;
  SequentialFile& operator=(const SequentialFile&) = delete;
  ~SequentialFile() {
    if (file_) ::unlink(temporary_.c_str());
  }

  base::Status open() {
    auto file =
        base::open_file(temporary_, O_WRONLY | O_CREAT | O_TRUNC, 0644, ExitCode::checkpoint);
    if (!file) return file.failure();
    file_ = std::move(file).value();
    return {};
  }

  void append(const void* data, std::size_t size) {
    const auto* bytes = static_cast<const std::byte*>(data);
    if (buffer_.size() + size > buffer_bytes) flush();
    if (size > buffer_bytes) {
      base::write_at(file_, {bytes, size}, written_, temporary_);
      written_ += size;
      return;
    }
    buffer_.insert(buffer_.end(), bytes, bytes + size);
  }
  template <typename T>
  void append_value(T value) {
    append(&value, sizeof value);
  }

  /// The bytes are on the disk, still under the temporary name.
  void sync() {
    flush();
    if (::fsync(file_.get()) != 0) {
      base::throw_errno(ExitCode::checkpoint, format("cannot sync '{}'", temporary_.string()),
                        errno);
    }
  }

  void rename_into_place() {
    if (::rename(temporary_.c_str(), path_.c_str()) != 0) {
      base::throw_errno(ExitCode::checkpoint, format("cannot rename '{}'", temporary_.string()),
                        errno);
    }
    base::success_or_throw(file_.close());
  }

  const std::filesystem::path& path() const { return path_; }

 private:
  static constexpr std::size_t buffer_bytes = std::size_t{1} << 20;

  void flush() {
    base::write_at(file_, buffer_, written_, temporary_);
    written_ += buffer_.size();
    buffer_.clear();
  }

  std::filesystem::path path_;
  std::filesystem::path temporary_;
  base::File file_;
  std::vector<std::byte> buffer_;
  std::size_t written_ = 0;
};

std::filesystem::path with_suffix(std::filesystem::path path, const char* suffix) {
  path += suffix;
  return path;
}

}  // namespace

struct IndexedTokensWriter::State {
  State(const std::filesystem::path& prefix, TokenType type_of_token)
      : tokens(with_suffix(prefix, ".bin")),
        index(with_suffix(prefix, ".idx")),
        type(type_of_token) {}

  SequentialFile tokens;
  SequentialFile index;
  TokenType type;
  std::vector<std::int32_t> lengths;
  std::int64_t token_count = 0;
  std::vector<std::uint16_t> narrow;  // scratch
};

IndexedTokensWriter::IndexedTokensWriter(std::unique_ptr<State> state) : state_(std::move(state)) {}
IndexedTokensWriter::IndexedTokensWriter(IndexedTokensWriter&&) noexcept = default;
IndexedTokensWriter& IndexedTokensWriter::operator=(IndexedTokensWriter&&) noexcept = default;
IndexedTokensWriter::~IndexedTokensWriter() = default;

base::Result<IndexedTokensWriter> IndexedTokensWriter::create(const std::filesystem::path& prefix,
                                                              TokenType type) {
  auto state = std::make_unique<State>(prefix, type);
  if (auto status = state->tokens.open(); !status) return status.failure();
  if (auto status = state->index.open(); !status) return status.failure();
  return IndexedTokensWriter(std::move(state));
}

void IndexedTokensWriter::append_document(std::span<const std::int32_t> tokens) {
  TRIREME_EXPECT(tokens.size() <= std::numeric_limits<std::int32_t>::max(),
                 "a document of fewer than 2^31 tokens");
  auto& state = *state_;
  if (state.type == TokenType::uint16) {
    state.narrow.resize(tokens.size());
    std::transform(tokens.begin(), tokens.end(), state.narrow.begin(), [](std::int32_t token) {
      TRIREME_EXPECT(token >= 0 && token <= 65535, "ids that fit uint16");
      return static_cast<std::uint16_t>(token);
    });
    state.tokens.append(state.narrow.data(), 2 * tokens.size());
  } else {
    state.tokens.append(tokens.data(), tokens.size_bytes());
  }
  state.lengths.push_back(static_cast<std::int32_t>(tokens.size()));
  state.token_count += static_cast<std::int64_t>(tokens.size());
}

std::int64_t IndexedTokensWriter::document_count() const {
  return static_cast<std::int64_t>(state_->lengths.size());
}
std::int64_t IndexedTokensWriter::token_count() const {
  return state_->token_count;
}

void IndexedTokensWriter::finish() {
  auto& state = *state_;
  const auto count = static_cast<std::uint64_t>(state.lengths.size());
  auto& index = state.index;
  index.append(MegatronIndex::magic.data(), MegatronIndex::magic.size());
  index.append_value(MegatronIndex::version);
  index.append_value(state.type == TokenType::uint16 ? MegatronIndex::code_uint16
                                                     : MegatronIndex::code_int32);
  index.append_value(count);
  index.append_value(count + 1);
  index.append(state.lengths.data(), 4 * state.lengths.size());
  std::int64_t pointer = 0;
  for (const auto length : state.lengths) {
    index.append_value(pointer);
    pointer += length * static_cast<std::int64_t>(bytes_per_token(state.type));
  }
  for (std::uint64_t document = 0; document <= count; ++document) index.append_value(document);
  state.tokens.sync();
  index.sync();
  // An older index goes first and the new one comes last: no moment pairs one with foreign tokens.
  if (::unlink(index.path().c_str()) != 0 && errno != ENOENT) {
    base::throw_errno(ExitCode::checkpoint, format("cannot remove '{}'", index.path().string()),
                      errno);
  }
  state.tokens.rename_into_place();
  index.rename_into_place();
  base::sync_folder(index.path().parent_path());
}

}  // namespace trireme::data
